"""
Failure mapping: from an error of a vendor or a client library to one of our kinds of failure.

Facts decide if there are any: the HTTP status of the response, or the broken connection, wherever it is in the chain
of causes. Client libraries rename both: a 413 may arrive as a rate limit, a reset as a 500. A status says too little
where servers use one for several things, so the codes in the body decide first, then its words, then the status. A
vendor's quirk goes into `failures.toml`, and its body into the tests. docs/reference/errors.md has the kinds by event.

In doubt is a request that may have been carried out, and charged, without our knowing: it left, and no response came.
A request that never left is free and not in doubt.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from attrs import evolve

from rubric.internals.fields import nearest
from rubric.internals.secrets import redact
from rubric.internals.text import shorten
from rubric.values.requests import Failure, FailureKind, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


UNSENT_USAGE = Usage(calls=1, cost=0.0)
"""The usage of an attempt whose request never left: nothing that anybody can charge."""

_NO_PASSWORD, _TIMED_OUT, _TOO_MANY = 407, 408, 429
_FIRST_REDIRECT, _FIRST_ERROR, _SERVER_ERROR, _LAST_ERROR = 300, 400, 500, 599
_STATUS = re.compile(r"\s*([45]\d\d)\b", re.ASCII)
_BILLING = re.compile(r"plan and billing|billing details", re.IGNORECASE)
_WAIT = re.compile(
    r'(?:retryDelay"?\s*:\s*"|(?:retry|try again)\s+(?:in|after)\s+)((?:\d+(?:\.\d+)?\s*[a-z]+\s?)+)', re.IGNORECASE
)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|h|m|s)", re.IGNORECASE)
_UNITS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

_ALL = frozenset(range(400, 600))
_RANGES = {
    "all": _ALL,
    "all but 429": _ALL - {429},  # of a 429, "too many tokens" are those of a minute
    "4xx": frozenset(range(400, 500)),
    "5xx": frozenset(range(500, 600)),
}


@cache
def _tables() -> tuple[dict[str, FailureKind], dict[str, int], list[tuple[FailureKind, frozenset[int], str]]]:
    """Return `failures.toml`: kinds by codes and statuses, statuses by words, and kinds by phrases."""
    import tomllib  # noqa: PLC0415 - for the first failure
    from importlib.resources import files  # noqa: PLC0415

    data = tomllib.loads(files("rubric.models").joinpath("failures.toml").read_text("utf-8"))
    codes = {code: kind for kind, listed in data["codes"].items() for code in listed.split()}
    codes |= {f"HTTP {status}": kind for kind, listed in data["kinds"].items() for status in listed.split()}
    statuses = {word: int(status) for status, listed in data["statuses"].items() for word in listed.split()}
    return codes, statuses, [(row["kind"], _RANGES[row["statuses"]], row["pattern"]) for row in data["words"]]


_CODES = ("code", "status", "status_code", "http_status", "http_status_code", "type")
_MARKS = (*_CODES, "error_type", "reason", "__type")
_WORDS = ("message", "msg", "error", "detail", "details", "raw", "title")
_ECHOES = {"input", "failed_generation", "flagged_input"}  # texts of others, which must not decide
_MOST_LEVELS, _MOST_TOLD = 8, 200

_UNCONNECTED = {  # httpx's own ConnectError may be a reset of what was sent, those below it are not
    "aiohttp.ClientConnectorError", "aiohttp.ConnectionTimeoutError", "httpcore.ConnectError",
    "httpcore.ConnectTimeout", "httpcore.PoolTimeout",
}  # fmt: skip

_PROXIES = {"aiohttp.ClientHttpProxyError", "httpcore.ProxyError"}
_CERTIFICATES = {"SSLCertVerificationError", "CertificateError"}
_UNTRUSTED = (
    "the server's certificate cannot be verified, so nothing was sent; if it is one of your own, name its authority's "
    "file in SSL_CERT_FILE: {}"
)
_ENDS_OF_TLS = {"SSLEOFError", "SSLZeroReturnError"}  # a retry may help
_NO_COMPLETION = "what came back is not a chat completion: "
_NO_TLS = "{}; is the address https://, and the server plain http://?"
_NO_ENTRY = (
    "the proxy wants a user and a password, which stand before its host and an @ in HTTPS_PROXY or HTTP_PROXY: {}"
)
_LONGEST_SAID = 2**13  # characters, of which 200 are shown: masking secrets in megabytes would block the loop
_LONGEST_READ = 2**16  # characters of JSON, of which the words are fewer
_TIMEOUTS = {"TimeoutError", "TimeoutException", "APITimeoutError", "Timeout"}
_BY_CLASS: tuple[tuple[FailureKind, set[str]], ...] = (
    ("timeout", _TIMEOUTS),
    ("transport", {"TransportError", "ClientConnectionError", "ClientPayloadError", "ConnectionError"}),
    ("auth", {"DefaultCredentialsError", "NoCredentialsError", "RefreshError"}),
    ("bad_request", {"ImportError"}),
)
"""The kinds of errors without a status, by the names of their classes; the first match decides."""

_NO_VENDOR = re.compile(
    r"(?:LLM Provider NOT provided.*?model=|GetLLMProvider Exception.*?original model: )(\S+)", re.DOTALL
)
_WITH_COLON = re.compile("(openai|anthropic|gemini|azure|mistral|groq|ollama|bedrock|xai):/*(.+)")
_A_NAME = "no vendor is known by {!r}{} A model's name is vendor/model, such as 'openai/gpt-5.6'"
_OWN_SERVER = "; on a server of yours, it is openai/{} where OPENAI_BASE_URL has its address, or Judge({!r}, via={!r})"


def no_vendor(model: str) -> str:
    """Return the message that no vendor is known by the name *model*."""
    meant = [*nearest(model, ["offline"]), _WITH_COLON.sub(r"\1/\2", model)][0]
    return _A_NAME.format(model, f"; did you mean {meant!r}?" if meant != model else ".")


def failure_of(
    error: BaseException, secrets: Iterable[str] = (), answer: tuple[int, Mapping[str, Any], str] | None = None
) -> Failure:
    """Map *error* of a client library to a failure without *secrets*; *answer* is its response, if known."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    names = {ancestor.__name__ for link in chain for ancestor in type(link).__mro__}
    if unknown := _NO_VENDOR.search(str(error)):
        own = ("its-model", unknown[1]) if "://" in unknown[1] else (unknown[1], "http://localhost:8000/v1")
        return Failure("bad_request", no_vendor(unknown[1]) + _OWN_SERVER.format(own[0], *own))
    said = words_of(str(error), secrets)
    if unconnected := _unsent(chain, names, said):
        return unconnected
    if answer is None:
        response = next((link.response for link in chain if type(link).__name__ == "HTTPStatusError"), None)  # type: ignore[attr-defined]
        answer = None if response is None else (response.status_code, response.headers, "")
    if answer is not None:
        return failure_of_status(answer[0], answer[2] or str(error), answer[1], names, secrets)
    for kind, classes in _BY_CLASS:
        if names & classes:
            return Failure(kind, said, in_doubt=kind in ("timeout", "transport"))
    status = status_in(getattr(error, "status_code", None))
    if status in (None, _SERVER_ERROR):  # libraries make up a 500 if there is no status
        return Failure("bad_response", f"{_NO_COMPLETION}{said}")
    return failure_of_status(status, str(error), {}, names, secrets)


def _unsent(chain: Sequence[BaseException], names: set[str], said: str) -> Failure | None:
    """Return the failure if there was no connection; None if there may have been one."""
    if names & _CERTIFICATES:
        return unsent(Failure("bad_request", _UNTRUSTED.format(said)))
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}": e for e in chain for kind in type(e).__mro__}
    if proxy := next((kinds[name] for name in _PROXIES if name in kinds), None):
        first, *_ = [*str(proxy).split(maxsplit=1), ""]  # httpx has it in the message alone
        status = status_in(getattr(proxy, "status", first)) or _SERVER_ERROR
        passing = status >= _SERVER_ERROR or status in (_TIMED_OUT, _TOO_MANY)
        kind: FailureKind = "auth" if status == _NO_PASSWORD else "transport" if passing else "bad_request"
        told = _NO_ENTRY.format(said) if kind == "auth" else said
        return unsent(Failure(kind, f"the proxy refused to lead there: {told}", status=status))
    if not _UNCONNECTED & kinds.keys():
        return None
    if "SSLError" in names and not names & _ENDS_OF_TLS:
        return unsent(Failure("bad_request", _NO_TLS.format(said)))
    return unsent(Failure("timeout" if names & _TIMEOUTS else "transport", said))


def unsent(failure: Failure) -> Failure:
    """Return *failure*, of an attempt whose request never left, as free and not in doubt."""
    kind, said = failure.kind, failure.message
    if kind == "bad_response":  # from something in between, such as a proxy: it cannot be the model's
        kind, said = "transport", f"no connection came about: {said.removeprefix(_NO_COMPLETION)}"
    return evolve(failure, kind=kind, message=said, in_doubt=False, usage=UNSENT_USAGE)


def status_in(value: object) -> int | None:
    """Return *value*, a number or a text that begins with its digits, as the HTTP status of an error; None if not."""
    match = _STATUS.match(value) if isinstance(value, str) else None
    number = int(match[1]) if match else value
    return int(number) if isinstance(number, int | float) and _FIRST_ERROR <= number <= _LAST_ERROR else None


def failure_of_status(
    status: int,
    body: str,
    headers: Mapping[str, Any] | None = None,
    names: Iterable[str] = (),
    secrets: Iterable[str] = (),
) -> Failure:
    """Map an HTTP response, over which exceptions with *names* were raised, to a failure without *secrets*."""
    headers = {str(name).lower(): value for name, value in (headers or {}).items()}
    if _FIRST_REDIRECT <= status < _FIRST_ERROR:
        try:
            # Neither a password before the host nor a key after it.
            host = urlsplit(str(headers.get("location") or "")).netloc.rpartition("@")[2]
        except ValueError:
            host = ""
        to = f" to {shorten(redact(host))}" if host else ""
        said = f"a redirect{to}, which is not followed; if it is right, give the address that it leads to"
        return Failure("bad_request", f"HTTP {status}: {said}", status=status)
    said, words, marks = _read(body, secrets)
    marks.add(str(headers.get("x-amzn-errortype") or "").partition(":")[0].lower())
    said = _NO_ENTRY.format(said) if status == _NO_PASSWORD else said or "an empty body"
    wait = _wait(headers, body[:_LONGEST_READ])
    kind = _kind_of(status, marks, words, {*names}, waits=wait is not None)
    return Failure(kind, f"HTTP {status}: {said}", status=status, retry_after=wait, in_doubt=kind == "timeout")


def error_in(error: object, secrets: Iterable[str] = ()) -> Failure:
    """Map an *error* in a 200 to a failure: its first number is the status, else a vendor's word for one."""
    text = json.dumps(error, default=str)
    error = next((each for each in error if isinstance(each, dict)), error) if isinstance(error, list) else error
    named = [error.get(name) for name in _CODES] if isinstance(error, dict) else []
    numbers = [status_in(mark) for mark in named]
    statuses = [_tables()[1].get(mark.strip().lower()) for mark in named if isinstance(mark, str)]
    if status := next(filter(None, numbers + statuses), None):
        return failure_of_status(status, text, secrets=secrets)
    failure = failure_of_status(_FIRST_ERROR, text, secrets=secrets)
    kind = "bad_response" if failure.kind == "bad_request" else failure.kind  # its words may be known
    return Failure(kind, f"an error instead of a reply: {words_of(text, secrets)}")


def error_in_stream(text: str, secrets: Iterable[str] = ()) -> Failure | None:
    """Return the failure in *text* if it is a stream of events, which nobody asked for, and one holds an error."""
    for data in _EVENT.findall(text[:_LONGEST_READ]):
        with suppress(ValueError, RecursionError):
            if isinstance(said := json.loads(data), dict) and (error := said.get("error")):
                return error_in(said if isinstance(error, str) else error, secrets)
    return None


def _kind_of(status: int, marks: set[str], words: str, names: set[str], *, waits: bool) -> FailureKind:
    codes, _, rows = _tables()
    for code, known in codes.items():
        if code in marks:
            return known
    # Gemini speaks of quota and billing also where a minute's rate is meant; then it says how long to wait.
    if status == _TOO_MANY and not waits and _BILLING.search(words):
        return "quota"
    for kind, statuses, phrases in rows:
        if status in statuses and re.search(phrases, words, re.IGNORECASE):
            return kind
    if f"HTTP {status}" in codes:
        return codes[f"HTTP {status}"]
    if status >= _SERVER_ERROR:
        return "overloaded"
    if "ContextWindowExceededError" in names:
        return "context_window"
    return "refusal" if "ContentPolicyViolationError" in names else "bad_request"


def _wait(headers: Mapping[str, Any], said: str) -> float | None:
    """Return the seconds that the server asks to wait: a number, an HTTP date, or a phrase of its message."""
    value = str(headers.get("retry-after") or "").strip()
    if not value:
        times = _TIME.findall(match[1]) if (match := _WAIT.search(said)) else ()
        return sum(float(number) * _UNITS[unit.lower()] for number, unit in times) if times else None
    with suppress(ValueError):
        return max(0.0, float(value))
    try:
        then = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


_PREFIX = re.compile(r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout)\b(?: \w+Error)?(?: Error)?\s*[:-]\s*")
_TAIL = re.compile(
    r"(?:Traceback \(most recent call last\)|Error_str:|\.? Handle with `|, Original Response:).*", re.DOTALL
)
_SSL_OBJECT = re.compile(r" ssl:(?:default|None|False|<ssl\.SSLContext object at \w+>)")
_EVENT = re.compile(r"^data:\s*(\{.*)$", re.MULTILINE)
_PAGE = re.compile(r"\s*<(?:!doctype|html|head|body)\b", re.IGNORECASE)
_TITLE = re.compile(r"<(title|h1)\b[^>]*>([^<]*)", re.IGNORECASE)
_DECODER = json.JSONDecoder()


def words_of(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the vendor's message in *text*, redacted, without the names that client libraries put before it."""
    return _read(text, secrets)[0]


def _read(text: str, secrets: Iterable[str] = ()) -> tuple[str, str, set[str]]:
    """Return what is shown of *text*, an error's; all its words; and its codes, in lower case. None has *secrets*."""
    start = text.find("{", 0, _LONGEST_SAID)
    told = list(islice(_texts_in(text[start:_LONGEST_READ]), _MOST_TOLD)) if start >= 0 else []
    codes = {mark.rpartition("#")[2].strip().lower() for name, mark in told if name in _MARKS}
    if found := dict.fromkeys(said for name, said in told if name in _WORDS):
        words = redact(": ".join(found)[:_LONGEST_SAID], secrets)
        code = next((mark for name, mark in told if name == "code" and not mark.isdecimal()), "")
        return shorten(redact(f"{words} ({code})", secrets) if code else words), words, codes
    text = redact(text[:_LONGEST_SAID], secrets).strip('" \n')
    if _PAGE.match(text) and (title := _TITLE.search(text)):
        text = title[2]
    text = _TAIL.sub("", _SSL_OBJECT.sub("", text))
    while shorter := _PREFIX.sub("", text, count=1):
        if shorter == text:
            break
        text = shorter
    return shorten(text), text, codes


def _texts_in(value: object, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the messages and codes in *value*, an error as JSON, with their names, the outermost first."""
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value, _ = _DECODER.raw_decode(value)
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, dict) or depth > _MOST_LEVELS:
        return
    items = {str(name).lower(): item for name, item in value.items() if name not in _ECHOES}
    where = f"{'.'.join(map(str, place))}: " if isinstance(place := items.get("loc"), list) else ""
    inner = [item for item in items.values() if isinstance(item, dict | list) or str(item).lstrip().startswith("{")]
    for name in (name for name in items if name in _MARKS or name in _WORDS):
        if isinstance(item := items[name], str | int) and str(item).strip() and item not in inner:
            yield name, f"{where if name in _WORDS else ''}{item}"
    for item in inner:
        yield from _texts_in(item, depth + 1)
