"""
Recognise secrets and keep them out of every text that people read or that is written to a file.

One rule for parameters, headers, environment variables and query strings. A name is split into words, so that `apiKey`,
`x-api-key` and `OPENAI_API_KEY` are treated alike, and `max_tokens` or `monkey` are not secrets:

| a name is secret                                    | and is not                                     |
|-----------------------------------------------------|------------------------------------------------|
| with a word such as password, secret, credential,   | `secretary`                                    |
| authorization, cookie, private, signature           |                                                |
| that ends in key, or in key and id                  | `public_key`, `prompt_cache_key`, `key_points` |
| that ends in token                                  | `max_tokens`, `eos_token`, `cost_per_token`    |
| that ends in auth                                   | `auth_type`                                    |

Values are masked as well: anything that looks like a key, and the values of secret environment variables.

The texts of a `Reply`, a finding and a failure are masked when it is made: so all results, reports, logs and stores
have them masked, whoever made it. What is graded stays as it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.internals.text import shorten

MASK = "[secret]"
"""Replaces a secret within a text."""

HIDDEN = "***"
"""Replaces a value whose name says that it is secret."""


# -- by name -----------------------------------------------------------------------------------------------

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_ALWAYS = frozenset({"bearer", "cookie", "cookies", "creds", "dsn", "hmac", "jwt", "otp", "passcode", "private",
                     "pw", "pwd", "sas", "sig", "signature"})  # fmt: skip

_WITHIN = re.compile(
    r"passw(?:or)?d|passphrase|secret(?!ar)|credential|authorization|connectionstring"
    r"|(?:api|access|account|auth|private|signing)key"
    r"|(?:api|access|auth|refresh|session|security)tokens?(?!s)"
)
"""Parts that make a name secret within a longer word too: `PGPASSWORD`, `apikey`."""

_ENDS = re.compile(r"(?:^|_)(?:(?:db|smtp|user|ftp|proxy)_pass|auth|keys?(?:_(?:id|value|base64|b64|json|pem|\d+))*)$")
_TOKEN = re.compile(r"(?:^|_)[a-z]*token(?:_(?:id|value|secret|\d+))*$")

_OPEN = re.compile(
    r"(?:^|_)(?:(?:cache|public)_keys?"
    r"|(?:eos|bos|pad|stop|start|end|first|last|next|max|min|mask|sep|cls|unk|special|per|prompt|completion"
    r"|input|output|total|image|audio)_?token(?:_id)?)$"
)
"""Names that look secret and are not: tokens that models count and stop at, keys that anyone may see."""


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """True if a setting, a header or a variable called *name* holds a secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    spelled = "_".join(words)
    if not _ALWAYS.isdisjoint(words) or _WITHIN.search("".join(words)):
        return True
    return not _OPEN.search(spelled) and bool(_ENDS.search(spelled) or _TOKEN.search(spelled))


_LOGIN = re.compile(
    r"(?:^|[-_])(?:keys?|token|secret|passw(?:or)?d|credentials?|auth|authorization|cookie)$", re.IGNORECASE
)


def names_a_login(name: str) -> bool:
    """
    True if a variable called *name* in a function's code holds a login.

    The rule for names in code is narrower: there a `signature` may just as well be the end of a letter, and part of
    what makes one judge differ from another. Stored replies depend on this rule, so it must not change.
    """
    return bool(_LOGIN.search(name))


# -- by value ----------------------------------------------------------------------------------------------

_SHORTEST = 8
"""The fewest characters of a secret that is masked wherever it occurs: shorter ones are flags and words."""

_SHORTEST_TEXT = len("://u@")
"""The fewest characters of a text in which anything is masked. Most texts of a result are empty."""

# A shape takes no quote, and no half of an escape: a mask within JSON must neither end a text nor begin one. After `\n`
# in JSON, a key has a letter before it.
_SHAPES = re.compile(
    r"""
      -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----
      (?:(?:[\w+/=:,.\s-]|\\+[nrt])*?-----END\ [A-Z\ ]*PRIVATE\ KEY-----|(?:[\w+/=:,.\s-]|\\+[nrt])*)
    | (?:\b|(?<=\\[nrt]))(?:
          (?:sk|pk|rk)[-_][\w*.-]{8,}
        | (?:gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|gsk_|hf_|AIza|ya29\.)[\w-]{8,}
        | (?:AKIA|ASIA)[0-9A-Z]{12,}
      )
    | (?<=://)[^\s/?\#"'<>]{1,1000}(?=@)                      # user and password in an address
    | (?i:(?<=bearer\ )|(?<=basic\ )|(?<=api[-_]key=)|(?<=apikey=)|(?<=api-key:\ )|(?<=accountkey=))[\w.~+/=-]{8,}
    """,
    re.VERBOSE | re.DOTALL,
)

_HINTS = ("ya29.", "key=", "key: ", "://", "aiza", "akia", "asia", "bearer ", "basic ")
_HYPHENED = ("k-", "glpat-", "-----begin", "xox")
_UNDERSCORED = ("k_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "hf_")
"""One of all these is in each text, in lower case, that a shape fits: nearly no reply holds any."""

_WEB_TOKEN = re.compile(r"(?<![\w-])([\w-]{11,}+)\.[\w-]{8,}\.[\w-]*")
_BEGINS = re.compile(r"(?:\b|(?<=\\[nrt]))eyJ[\w-]{8,}")
"""A JSON web token may begin after a hyphen. Both in one would read a word again from each `eyJ` in it."""

_QUERY = re.compile(r"(?<=[?&;])([\w.\-%\[\]]{1,100})=(?!\[secret\])([^\s&;#\"'<>\\]+)")
_IN_QUERIES = frozenset({"assertion", "code", "codeverifier", "samlresponse", "session", "sessionid", "sid"})
"""Names, in lower case and without signs, that are secret in the query of an address: each lets its holder in."""

_SAID = re.compile(r"[:=]\s?\\?[\"']?(?:(?i:bearer|basic|token)\s)?([\w.~+/=!@$%^*-]{8,})")
_TO_DIGIT = re.compile(r"[^\s\"',;&\d]*(\d?)")
"""From the beginning of a value to its first digit, without which it is no secret."""

_SAYS = re.compile(r"\s?[\"']?\\?([\w.-]{1,100})")
"""The name before a value, read backwards: from the value on there is one place where it can begin."""

_IN_NAMES = (
    "key", "token", "auth", "pass", "pw", "secret", "cred", "connection", "bearer", "cookie", "private", "sig", "dsn",
    "hmac", "jwt", "otp", "sas",
)  # fmt: skip
"""One of these is in each name, in lower case, that is secret: nearly no reply holds any."""

_PAIR = re.compile(r"([\w.-]{1,100})=(?=[\w.~+/!@$%^*-]{4})")

_LOGS_IN = re.compile(r"(?:bearer|basic|token|apikey)\s+\S+", re.IGNORECASE)

_NO_SECRETS = frozenset({"PWD", "OLDPWD"})
"""Variables of every environment that hold folders, though their names say password."""


def redact(text: str, secrets: Iterable[str] = (), environ: Mapping[str, str] | None = None) -> str:
    """Return *text* with *secrets*, secret values of the environment, and all that looks like a secret, masked."""
    if len(text) < _SHORTEST_TEXT:
        return text
    seen, known, clean_texts = _seen
    if environ is not None or seen != getattr(os.environ, "_data", None):  # encoded: to decode all of it takes 100 µs
        known, clean_texts = _known_in(environ)
    if text in clean_texts and not secrets:
        return text
    masked = _mask_text(text, _longest_first((*known, *_forms(tuple(secrets)))) if secrets else known)
    if masked == text and len(text) <= _LONGEST_KEPT:
        if len(clean_texts) >= _MOST_KEPT:
            clean_texts.clear()
        clean_texts.add(text)
    return masked


def _mask_text(masked: str, forms: Iterable[str]) -> str:
    for form in forms:
        if form in masked:
            masked = masked.replace(form, MASK)
    low = masked.lower()
    holds = low.__contains__  # mapped over names: a loop over them takes as long as all the rest
    hints = [*_HINTS, *(_HYPHENED if "-" in low else ()), *(_UNDERSCORED if "_" in low else ())]
    if "eyJ" in masked:
        masked = _mask_spans(masked, _web_tokens(masked))
    if True in map(holds, hints):
        masked = _SHAPES.sub(MASK, masked)
    if "=" in masked:
        masked = _QUERY.sub(lambda m: f"{m[1]}={MASK}" if _is_secret_in_query(unquote(m[1])) else m[0], masked)
    if (":" in low or "=" in low) and True in map(holds, _IN_NAMES):
        masked = _mask_spans(masked, _named_values(masked))
    return masked


def _web_tokens(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each JSON web token in *text* starts and ends."""
    at = 0
    while found := _WEB_TOKEN.search(text, at):
        at = found.end(1)
        if (begins := _BEGINS.search(text, found.start(), at)) is not None:
            yield begins.start(), (at := found.end())


def _named_values(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each value that a secret's name introduces starts and ends in *text*."""
    # A long text may be one word of thousands of values: no part of it may be read anew for each of them.
    at, digit = 0, -1
    while said := _SAID.search(text, at):
        start, at = said.start(1), said.end()
        if digit < start:
            ahead = _TO_DIGIT.match(text, start)
            assert ahead is not None  # noqa: S101 - it fits an empty text
            if not ahead[1]:  # nor has any value that begins within this word
                at = max(said.start() + 1, ahead.end() - len(":\\bearer"))
                continue
            digit = ahead.end() - 1
        if (place := _secret_in(said)) is not None:
            yield start + place, at


def _mask_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces, done = list[str](), 0
    for start, end in spans:
        pieces += [text[done:start], MASK]
        done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _secret_in(said: re.Match[str]) -> int | None:
    """Return where in the value *said* a secret begins; None if it holds none."""
    before = _SAYS.match(said.string[max(0, said.start() - 103) : said.start()][::-1])
    if before is not None and _introduces(before[1][::-1]):
        return 0
    pairs = _PAIR.finditer(said[1]) if "=" in said[1] else ()
    return next((each.end() for each in pairs if _introduces(each[1])), None)


def _is_secret_in_query(name: str) -> bool:
    return is_secret(name) or re.sub(r"[\W_]", "", name.lower()) in _IN_QUERIES


_PIECES = re.compile(r'"((?:[^"\\]++|\\.)*+)"|[^"]+', re.DOTALL)


def redact_reply(text: str, secrets: Iterable[str] = ()) -> str:
    """
    Return *text*, which may hold JSON, redacted: what it says remains, and so does where each of its texts ends.

    A name beside a value masks it within a text alone, since `"password": "level2-strict"` may be a verdict.
    """
    if redact(text, secrets) == text and not ("\\u" in text or "\\/" in text):
        return text

    def piece(found: re.Match[str]) -> str:
        if found[1] is None:
            return redact(found[0], secrets)
        try:
            said = json.loads(found[0], strict=False)
        except ValueError:
            return f'"{redact(found[1], secrets)}"'
        masked = (redact_reply if said[:1] in ("{", "[") else redact)(said, secrets)
        return found[0] if masked == said else json.dumps(masked, ensure_ascii=False)

    return _PIECES.sub(piece, text)


def redact_given(text: str, secrets: Iterable[str]) -> str:
    """Return *text* as `redact_reply` does if it may hold one of *secrets*: a `Reply` of it masks all the rest."""
    may_hold = "\\u" in text or "\\/" in text or True in map(text.__contains__, _forms(tuple(secrets)))
    return redact_reply(text, secrets) if may_hold else text


def redact_value(said: Any) -> Any:
    """Return *said*, a text of a reply or a tuple of such, redacted; all else as it is: a user's model may give it."""
    if not said:
        return said
    if isinstance(said, str):
        return redact_reply(said)
    return tuple(map(redact_value, said)) if isinstance(said, tuple) else said


def redact_values(said: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return each of *said* as `redact_value` does, and *said* itself where nothing is masked: nearly always."""
    try:  # at once: what fits within one of them fits within all of them, a line each
        lines = "\n".join([each if isinstance(each, str) else "\n".join(each) for each in said if each])
        if redact_reply(lines) is lines:
            return said
    except TypeError:  # a user's model gave something else
        pass
    return tuple(map(redact_value, said))


@lru_cache(maxsize=64)  # each reply is looked through for the keys of its endpoint, and to quote one takes 1 µs
def _forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Return each secret as it is, as an address has it and as JSON has it: servers echo what they were sent."""
    long = [secret for secret in secrets if len(secret) >= _SHORTEST]
    return tuple(
        form for each in long for form in (each, quote(each, safe="", errors="replace"), json.dumps(each)[1:-1])
    )


def _longest_first(forms: Iterable[str]) -> tuple[str, ...]:
    """Return *forms* in the order of masking: a secret may be a part of a longer one, which must go first."""
    return tuple(sorted(set(forms), key=lambda form: (-len(form), form)))


def _forms_in(environ: Mapping[str, str]) -> tuple[str, ...]:
    values = [value for name, value in environ.items() if name not in _NO_SECRETS and is_secret(name)]
    return _longest_first(_forms(tuple(values)))


_MOST_KEPT, _LONGEST_KEPT = 1024, 1000

_seen: tuple[Any, tuple[str, ...], set[str]] = ((), (), set())
"""
What `os.environ` held when its secrets were last looked for, their forms, and texts without any secret.

A text is redacted twenty times for each case of a suite, so short ones that hold nothing are kept; one that holds a
secret never is. The two hundred variables of a CI job cost more than the text, so the dict inside `os.environ` is
compared with a copy of it: equal keys and values are mostly the same objects, which takes two microseconds. Any change
through `os.environ` shows there. What `os.putenv` or C code sets behind its back is never seen, since `os.environ`
itself does not show it.
"""


def _known_in(environ: Mapping[str, str] | None) -> tuple[tuple[str, ...], set[str]]:
    """Look for the secrets in *environ*, or in that of this process: return their forms, and an empty set of texts."""
    global _seen  # noqa: PLW0603
    if environ is not None:
        return _forms_in(environ), set()
    # The copy comes first, so a change after it is found by the next call. All are replaced in one assignment: a
    # thread that reads meanwhile gets the old ones, never a new copy with old forms.
    seen = dict(getattr(os.environ, "_data", ()))
    forms, clean_texts = _forms_in(os.environ), set[str]()
    _seen = (seen, forms, clean_texts)
    return forms, clean_texts


@lru_cache(maxsize=4096)
def _introduces(name: str) -> bool:
    """True if *name* announces a secret in a sentence; a lone `Key:` or `token:` announces other things too."""
    return is_secret(name) and (len(_WORDS.findall(name)) > 1 or bool(_WITHIN.search(name.lower())))


def holds_headers(name: str) -> bool:
    """True for a parameter of headers: they say who asks, and by which way, so no key and no digest has them."""
    return "headers" in name.lower()


def mask_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return *settings* with secrets masked, by name and by look, at every level; headers are always masked."""
    return {name: _mask(str(name), value) for name, value in settings.items()}


def _mask(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if is_secret(name) or holds_headers(name):
        return HIDDEN
    if isinstance(value, Mapping):
        return mask_settings(value)
    if isinstance(value, list | tuple):
        return type(value)(_mask("", item) for item in value) if type(value) in (list, tuple) else HIDDEN
    if isinstance(value, str):
        return HIDDEN if _LOGS_IN.fullmatch(value) else redact(value)
    return value


def values_of(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts in *settings*, at every level, that must not appear in a message."""
    return tuple(_values(settings, secret=False))


def _values(value: Any, *, secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _values(item, secret=secret or is_secret(str(name)) or holds_headers(str(name)))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _values(item, secret=secret)
    elif secret and value is not None and not isinstance(value, bool):
        yield str(value)
        yield from str(value).split()[1:] if _LOGS_IN.fullmatch(str(value)) else ()
    elif isinstance(value, str) and "://" in value:  # the password in an address, and secrets in its query
        try:
            parts = urlsplit(value)
        except ValueError:
            return
        yield from (part for part in (parts.password, unquote(parts.password or "")) if part)
        yield from (given for name, given in parse_qsl(parts.query) if _is_secret_in_query(name))


class Settings(FrozenMap):
    """Parameters for a vendor, whose `repr` shows no secret."""

    __slots__ = ()

    def __repr__(self) -> str:
        return redact(repr(mask_settings(thaw(self))), values_of(self))


class Hidden(FrozenMap):
    """Settings of which each is secret: its `repr` shows their names alone."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(dict.fromkeys(self, HIDDEN))


def masked_command(words: Iterable[str]) -> list[str]:
    """Return the *words* of a command, with what follows a flag such as `--token` masked."""
    given = [*words]
    pairs = zip(["", *given], given, strict=False)
    return [MASK if before.startswith("-") and is_secret(before) else word for before, word in pairs]


def describe(error: BaseException) -> str:
    """Return type and text of *error* on one line, redacted."""
    name, text = type(error).__name__, str(error)
    return shorten(redact(f"{name}: {text}" if text else name))


_HALVES = re.compile("[\ud800-\udfff]")


def clean(text: str, secrets: Iterable[str] = ()) -> str:
    """Return *text* without *secrets*, all that looks like a secret, and half surrogates."""
    return redact(text if text.isascii() else whole(text), secrets)


def clean_part(text: str) -> str:
    """Return *text*, of a reply that was just masked, as `clean` does, without a new look at the environment."""
    return text if text in _seen[2] else clean(text)


def whole(text: str) -> str:
    """Return *text* with half surrogates replaced, each by one character."""
    return text if text.isascii() else _HALVES.sub("\ufffd", text)


def map_offsets(before: str, after: str) -> Callable[[int], tuple[int, int]]:
    """
    Return a function from an offset in *before* to its place in *after*, which is *before* with parts masked.

    The place is a pair, for an offset that starts a span and one that ends it. They differ within a mask: it belongs to
    the span as a whole.
    """
    if before == after:
        return lambda at: (at, at)
    # Where the stretches between the masks start and end in *before*, and how far they are shifted in *after*. The
    # first one starts both texts, the last one ends both, and the others follow in order.
    stretches = []
    pieces = after.split(MASK)
    end = place = 0
    for index, piece in enumerate(pieces):
        is_last = 0 < index == len(pieces) - 1
        start = len(before) - len(piece) if is_last else max(end, before.find(piece, end))
        end = start + len(piece)
        stretches.append((start, end, place - start))
        place += len(piece) + len(MASK)

    def move(at: int) -> tuple[int, int]:
        last = 0
        for start, end, shift in stretches:
            if at < start:
                return last, start + shift
            if at <= end:
                return at + shift, at + shift
            last = end + shift
        return len(after), len(after)

    return move
