"""
The key that a reply is stored under: everything that determines the reply, and nothing else.

That is the model and its address, the messages, the schema, the images, the parameters, the longest reply, and which
vote and which re-ask it is; also every field that asks and judges may get later, unless it is named here as one that
makes no difference. Keys, tokens, passwords and headers are left out. The mark and the nonce in the messages are
derived from the texts, so the same ask has the same key in every process and on every day.

A vendor's model is identified by its name and the digest of its address, a client by its model and its settings. What
a function calls cannot be known, so its user says which function it is: `Judge(function, identity="v1")`; an object may
have an attribute `identity` that is a text. Replies of others are not kept.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from json.encoder import encode_basestring_ascii
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import attrs
from attrs import field, frozen

from rubric.errors import DefinitionError
from rubric.internals.fields import default_of
from rubric.internals.frozen_map import FrozenMap, Memo
from rubric.internals.secrets import holds_headers, is_secret, redact
from rubric.models.api_keys import borrow_arguments
from rubric.models.function_judge import FunctionJudge
from rubric.values.judges import AnyJudge, Judge, Model
from rubric.values.requests import MOST_TOKENS, Ask, Outgoing

ADDRESSES = ("api_base", "base_url", "base", "api_url", "endpoint")
"""Settings that are addresses, in order of precedence. They may hold passwords, so only their digests are kept."""


def digest(text: str) -> str:
    """Return the SHA-256 of *text*, in 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def endpoint_of(judge: Judge, environ: Mapping[str, str] = os.environ) -> str:
    """Return a digest of the address that *judge* sends to, without its login; empty for the vendor's own."""
    address = next((str(judge.params[name]) for name in ADDRESSES if judge.params.get(name)), "")
    if not address:
        vendor, _, model = judge.name.partition("/")
        provider = vendor if model and judge.via == "litellm" else "openai"
        names = [f"{provider.upper()}_{last}" for last in ("BASE_URL", "API_BASE")]
        address = next((environ[name] for name in names if environ.get(name)), "")
        address = address or borrow_arguments(provider, judge.params, environ).get("api_base", "")
    if not address:
        return ""
    with suppress(ValueError):  # it is not an address, and counts as it is
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        address = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), parts.query, ""))
    return digest(address)[:16]


def check_identity(judge: AnyJudge) -> None:
    """Refuse a judge with a function whose replies could not be told from those of an older version of it."""
    for each in judge.single_judges():
        if each.identified_by is None:
            by_criterion = isinstance(each.model, FunctionJudge)
            call, known = "judge_function" if by_criterion else "Judge", getattr(each.model, "__name__", "")
            other = "model" if isinstance(each.model, Model) and not by_criterion else "function"
            name = known if known.isidentifier() else other
            message = (
                f"what {each.name} calls cannot be known, so a store could serve replies of an older version; write "
                f"{call}({name}, identity='v1'), and another identity when its answers change, or leave out the store"
            )
            raise DefinitionError("store", message)


def fingerprint(value: object) -> str:
    """Return a short digest of a rubric or a judge, the same on every machine: without addresses, keys, timeouts."""
    return digest(json.dumps(_parts(value), sort_keys=True))[:16]


def _parts(value: Any) -> object:
    if isinstance(value, Mapping):
        named = {str(name): item for name, item in value.items()}
        local = {*ADDRESSES, "timeout", "retries", "threads"}
        shared = named.keys() - local - {name for name in named if holds_headers(name) or is_secret(name)}
        return {name: _parts(named[name]) for name in shared}
    if attrs.has(type(value)):
        given = {field.name: getattr(value, field.name) for field in attrs.fields(type(value)) if field.eq}
        return [type(value).__qualname__, _parts(given)]
    if isinstance(value, list | tuple):
        return [_parts(item) for item in value]
    return value if isinstance(value, str | int | float | None) else _place(value)


def _place(value: Any) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(named, '__module__', None)}.{named.__qualname__}"


_IN_REQUEST = frozenset({"judge", "messages", "retries", "resends"})

_READING = frozenset({"criteria", "nonce", "abstainable", "quoted", "candidate", "run", "many", "flagless", "about"})
"""Fields of an ask that are in its messages already, or that only reading the reply depends on."""

# Fields that hold a model to its reply's form and length. Which schema a server takes is found out by asking, and a
# reply that is whole is the same under any limit: a stored one serves all of them. A limit of the user's own counts.
_HOLDING = frozenset({"exact", "max_tokens"})

_HANDLING = frozenset(
    {"model", "identity", "params", "timeout", "retries", "repairs", "speculate", "prime", "threads", "context"}
) | frozenset(
    {"embedder", "per_call", "prompt", "sealed", "reasoning", "reader", "segment_tokens"}  # in the ask or its messages
)
"""Fields of a judge that are in its asks already, or that do not reach the vendor."""

SHARED, NONCE = "\x01", "\x02"
"""Mark the gaps of a skeleton. JSON escapes control characters, so no text of a request can hold these two."""


@frozen
class Request:
    """
    All that determines the reply to an ask, as JSON in one form, taken apart so that the store keeps each part once.

    Args:
        key: The SHA-256 of the whole text: what the reply is stored under.
        skeleton: The text with gaps, the same for every candidate that is asked about one criterion.
        shared: Fills the gap `SHARED`: the part of the prompt that all asks about one candidate share.
        nonce: Fills the gaps `NONCE`.
    """

    key: str
    model: str
    skeleton: str = field(repr=False)
    shared: str = field(default="", repr=False)
    nonce: str = ""

    @property
    def text(self) -> str:
        """The whole request as JSON."""
        return self.skeleton.replace(SHARED, _escape(self.shared)).replace(NONCE, self.nonce)


def request_of(ask: Ask) -> Request:
    """Return the request of *ask*: the model and its address, the messages, the schema and all settings."""
    if ask.judge.identified_by is None:
        check_identity(ask.judge)
    before, after = _frame(ask)
    last = ask.messages[-1]
    if len(last.parts) > 1:
        lead, shared, rest = "", last.parts[0], "".join(last.parts[1:])
    else:  # from the user's own prompt: the candidate is what other criteria have in common with this one
        lead, shared, rest = last.text.partition(ask.candidate) if ask.candidate else (last.text, "", "")
    opening, state = _opening(before, ask.messages[:-1], last.role, lead, shared)
    ending = f'{_escape(rest)}"]]{after}'
    whole = state.copy()
    whole.update(ending.encode())
    nonce = ask.nonce if ask.nonce.isalnum() and ask.nonce.isascii() else ""
    skeleton = opening + (ending.replace(nonce, NONCE) if nonce else ending)
    return Request(whole.hexdigest(), ask.judge.name, skeleton, shared, nonce)


def key_at(request: Request, endpoint: str) -> str:
    """Return the key that *request* would have at the address with the digest *endpoint*; '' is the vendor's own."""
    said = json.loads(request.text) | {"endpoint": endpoint}
    return digest(_json({name: value for name, value in said.items() if value != ""}))


# A candidate's criteria are asked one after another, so the 64 latest beginnings are enough for those in flight. To
# hash the candidate anew for each criterion would double the cost of a key.
@functools.lru_cache(maxsize=64)
def _opening(
    before: str, messages: tuple[Outgoing, ...], role: str, lead: str, shared: str
) -> tuple[str, hashlib._Hash]:
    """Return the text up to the end of *shared*, as a skeleton, and the state of the hash at that point."""
    earlier = "".join(f'["{message.role}","{_escape(message.text)}"],' for message in messages)
    opening = f'{before}"messages":[{earlier}["{role}","{_escape(lead)}{SHARED}'
    return opening, hashlib.sha256(opening.replace(SHARED, _escape(shared)).encode())


def _escape(text: str) -> str:
    return encode_basestring_ascii(text)[1:-1]


_MOST_FRAMES = 256


def _frame(ask: Ask) -> tuple[str, str]:
    """Return the JSON of all but the messages: what sorts before them, and what sorts after them."""
    judge = ask.judge
    # The address is looked up for each ask: a cell of a notebook may change the environment, and a kept answer would
    # then be served for another model.
    identity, endpoint = judge.identified_by or "", endpoint_of(judge) if isinstance(judge.model, str) else ""
    values = [getattr(ask, name) for name, _ in _ASKED]
    # By identity, since to hash a schema takes longer than to write it; the entry holds the schema, so its id is not
    # given to another object while the entry is there.
    place = (identity, endpoint, *(id(value) if isinstance(value, FrozenMap) else value for value in values))
    frames = _frames(judge)
    found = frames.get(place)
    if found is None:
        said = {"model": judge.name, "identity": identity, "endpoint": endpoint, **_changes(ask, _ASKED)}
        kept = {name: value for name, value in (said | _settings(judge)).items() if value != ""}
        before = _json({name: value for name, value in kept.items() if name < "messages"})[:-1]
        after = _json({name: value for name, value in kept.items() if name > "messages"})[1:]
        if len(frames) >= _MOST_FRAMES:  # schemas and pictures of single candidates would pile up
            frames.clear()
        found = frames[place] = (values, before + "," * (before != "{"), "," * (after != "}") + after)
    return found[1:]


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=_encode)


def _defaults(kind: type[Ask | Judge], skipped: frozenset[str]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of *kind* that count, with their defaults: a new field changes no key until it is set."""
    fields = [f for f in attrs.fields(kind) if f.name not in skipped]
    return tuple((f.name, default_of(f, None)) for f in fields)


_ASKED = _defaults(Ask, _IN_REQUEST | _READING | _HOLDING)
_SET = _defaults(Judge, _HANDLING)


def _changes(value: Ask | Judge, fields: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return {name: it for name, default in fields if (it := getattr(value, name)) != default}


@Memo
def _frames(judge: Judge) -> dict[tuple[Any, ...], tuple[list[Any], str, str]]:
    """Return the cache of frames that goes away with *judge*."""
    del judge
    return {}


@Memo  # there are many asks to one judge
def _settings(judge: Judge) -> dict[str, Any]:
    """Return the settings of *judge* that reach the vendor."""
    given = {
        name: digest(str(it))[:16] if name in ADDRESSES else _plain(it) for name, it in _changes(judge, _SET).items()
    }
    if judge.max_tokens == MOST_TOKENS:  # the limit of all judges once, when it was not a part of the key
        del given["max_tokens"]
    address = next((name for name in ADDRESSES if judge.params.get(name)), "")  # in the key as the endpoint
    asked = {name: value for name, value in judge.params.items() if name != address and not holds_headers(name)}
    params = {name: _plain(value) for name, value in _without_secrets(asked).items()}
    for name in {*ADDRESSES} & params.keys():  # they may hold a password
        params[name] = digest(json.dumps(params[name], sort_keys=True))[:16]
    return given | ({"params": params} if params else {})


def _encode(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else _plain(value)


_SAME_REPLY = re.compile(r"(?:cache|public)_keys?$|cost_per_\w*token$")
"""Names of parameters that change the cost of a reply, or where it is cached, but not its text."""


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {str(name): item for name, item in value.items() if not is_secret(str(name))}
        return {name: _without_secrets(item) for name, item in kept.items() if not _SAME_REPLY.search(name)}
    if isinstance(value, list | tuple):
        return [_without_secrets(item) for item in value]
    # The digest keeps two texts apart that differ only where they are masked. Secrets of the environment do not count:
    # they differ from process to process, and the key would too.
    safe = redact(value, environ={}) if isinstance(value, str) else value
    return value if safe == value else f"{safe} #{digest(value)[:16]}"


def _plain(value: Any) -> Any:
    """Return *value* as data with one form in JSON: 1.0 is 1, as it is for judges."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=str)
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return value if isinstance(value, str | int | bool | None) else _place(value)
