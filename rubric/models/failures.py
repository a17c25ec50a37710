"""
Failure mapping: from an error of a vendor or a client library to one of our kinds of failure.

Facts decide if there are any: the HTTP status of the response, or the broken connection, wherever it is in the chain
of causes. Client libraries rename both: a 413 may arrive as a rate limit, a reset as a 500. A vendor's quirk (a code, a
word for a status, a phrase about quota or the context window) goes into a table below.

In doubt is a request that may have been carried out, and charged, without our knowing: it left, and no response came.
A request that never left is free and not in doubt.

| event                                               | kind                                   |
|-----------------------------------------------------|----------------------------------------|
| 401, 403, no credentials                            | auth                                   |
| 402; 429 or 400 that mentions quota or credit       | quota                                  |
| other 429                                           | rate_limited, with Retry-After         |
| 408, 504, no answer in time                         | timeout (in doubt)                     |
| 409, 500, 502, 503, 529, other 5xx                  | overloaded: a retry may help           |
| broken connection                                   | transport (in doubt)                   |
| no connection, so that nothing was sent             | transport, timeout; at no cost         |
| a certificate that cannot be verified, no TLS       | bad_request, at no cost, with the cure |
| a proxy that cannot connect (502 and the like)      | transport or bad_request, at no cost   |
| 407 from a proxy                                    | auth, with the cure                    |
| a redirect, which is not followed                   | bad_request, with the new host         |
| a 200 without a chat completion                     | bad_response                           |
| 4xx about the length of the prompt                  | context_window                         |
| 4xx from a content filter                           | refusal                                |
| other 4xx, a missing package                        | bad_request                            |
| LiteLLM knows no vendor by the model's name         | bad_request, with the form of a name   |
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from attrs import evolve

from rubric.internals.secrets import redact
from rubric.internals.text import shorten
from rubric.values.requests import Failure, FailureKind, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


UNSENT_USAGE = Usage(calls=1, cost=0.0)
"""The usage of an attempt whose request never left: nothing that anybody can charge."""

_BY_STATUS: dict[int, FailureKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    407: "auth",
    408: "timeout",
    409: "overloaded",
    429: "rate_limited",
    504: "timeout",
}

_NO_PASSWORD, _TIMED_OUT, _TOO_MANY = 407, 408, 429
_FIRST_REDIRECT, _FIRST_ERROR, _SERVER_ERROR, _LAST_ERROR = 300, 400, 500, 599
_STATUS = re.compile(r"\s*([45]\d\d)\b", re.ASCII)
_QUOTA = re.compile(r"insufficient_quota|credit balance|insufficient (?:balance|credit|funds)", re.IGNORECASE)
_BILLING = re.compile(r"\bbilling\b", re.IGNORECASE)
_WAIT = re.compile(r'retry(?:Delay"?\s*:\s*"|\s+in\s+)(\d+(?:\.\d+)?)\s*s', re.IGNORECASE)
_CONTEXT = re.compile(
    r"context_length_exceeded|maximum context length|context window|prompt is too long|too many (?:input )?tokens",
    re.IGNORECASE,
)
_POLICY = re.compile(r"content_policy|content management policy|content_filter|safety system", re.IGNORECASE)

_CODES = ("code", "status", "status_code", "http_status", "type")

_STATUSES = {
    word: status
    for status, words in {
        400: "invalid_request_error invalid_argument failed_precondition context_length_exceeded content_filter "
        "content_policy_violation",
        401: "invalid_api_key authentication_error unauthenticated unauthorized",
        402: "payment_required billing_error",
        403: "permission_error permission_denied forbidden",
        404: "not_found not_found_error model_not_found",
        429: "rate_limit_exceeded rate_limit_error rate_limited resource_exhausted too_many_requests "
        "insufficient_quota",
        500: "server_error internal_server_error internal_error internal api_error",
        503: "overloaded unavailable service_unavailable engine_overloaded",
        504: "timeout timeout_error deadline_exceeded gateway_timeout",
        529: "overloaded_error",
    }.items()
    for word in words.split()
}
"""Statuses of errors that say no number, in lower case: OpenAI's codes, Anthropic's types, Google's statuses."""

_UNCONNECTED = {  # httpx's own ConnectError may be a reset of what was sent, those below it are not
    "aiohttp.ClientConnectorError",
    "aiohttp.ConnectionTimeoutError",
    "httpcore.ConnectError",
    "httpcore.ConnectTimeout",
    "httpcore.PoolTimeout",
}

_PROXIES = {"aiohttp.ClientHttpProxyError", "httpcore.ProxyError"}
_CERTIFICATES = {"SSLCertVerificationError", "CertificateError"}
_UNTRUSTED = (
    "the server's certificate cannot be verified, so nothing was sent; if it is one of your own, name its authority's "
    "file in SSL_CERT_FILE: {}"
)
_ENDS_OF_TLS = {"SSLEOFError", "SSLZeroReturnError"}  # a retry may help
_NO_COMPLETION = "what came back is no chat completion: "
_NO_TLS = "{}; is the address https://, and the server plain http://?"
_NO_ENTRY = "the proxy wants a user and a password: http://user:password@host:port in HTTPS_PROXY or HTTP_PROXY: {}"
_LONGEST_SAID = 2**13  # characters, of which 200 are shown: masking secrets in megabytes would block the loop
_TIMEOUTS = {"TimeoutError", "TimeoutException", "APITimeoutError", "Timeout"}
_BY_CLASS: tuple[tuple[FailureKind, set[str]], ...] = (
    ("timeout", _TIMEOUTS),
    ("transport", {"TransportError", "ClientConnectionError", "ClientPayloadError", "ConnectionError"}),
    ("auth", {"DefaultCredentialsError", "NoCredentialsError", "RefreshError"}),
    ("bad_request", {"ImportError"}),
)
"""The kinds of errors without a status, by the names of their classes; the first match decides."""

_NO_VENDOR = re.compile(r"LLM Provider NOT provided.*?model=(\S+)", re.DOTALL)
_A_NAME = "no vendor is known by {!r}{} A model's name is vendor/model, such as 'openai/gpt-5.6'"


def no_vendor(model: str) -> str:
    """Return the message that no vendor is known by the name *model*."""
    near = get_close_matches(model, ["offline"], n=1)
    return _A_NAME.format(model, "; did you mean 'offline'?" if near else ".")


def failure_of(
    error: BaseException, secrets: Iterable[str] = (), answer: tuple[int, Mapping[str, Any]] | None = None
) -> Failure:
    """
    Map *error*, raised by a client library, to a failure without *secrets*.

    Args:
        answer: Status and headers of the response that it was raised over, if they are known.
    """
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    names = {ancestor.__name__ for link in chain for ancestor in type(link).__mro__}
    if unknown := _NO_VENDOR.search(str(error)):
        return Failure("bad_request", no_vendor(unknown[1]))
    said = words_of(str(error), secrets)
    if unconnected := _unsent(chain, names, said):
        return unconnected
    if answer is None:
        response = next((link.response for link in chain if type(link).__name__ == "HTTPStatusError"), None)  # type: ignore[attr-defined]
        answer = None if response is None else (response.status_code, response.headers)
    if answer is not None:
        return failure_of_status(answer[0], said, answer[1], names)
    for kind, classes in _BY_CLASS:
        if names & classes:
            return Failure(kind, said, in_doubt=kind in ("timeout", "transport"))
    status = status_in(getattr(error, "status_code", None))
    if status in (None, _SERVER_ERROR):  # libraries make up a 500 if there is no status
        return Failure("bad_response", f"{_NO_COMPLETION}{said}")
    return failure_of_status(status, said, {}, names)


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
    status: int, said: str, headers: Mapping[str, Any] | None = None, names: Iterable[str] = ()
) -> Failure:
    """
    Map an HTTP response with an error *status* to a failure.

    Args:
        said: The message of the response, redacted.
        names: Class names of the exceptions raised over it, which may say more than the message.
    """
    headers = headers or {}
    if _FIRST_REDIRECT <= status < _FIRST_ERROR:
        try:
            location = str(headers.get("location") or headers.get("Location") or "")
            host = urlsplit(location).netloc.rpartition("@")[2]  # neither a password before it nor a key after it
        except ValueError:
            host = ""
        to = f" to {shorten(redact(host))}" if host else ""
        said = f"a redirect{to}, which is not followed; if it is right, give the address that it leads to"
        return Failure("bad_request", f"HTTP {status}: {said}", status=status)
    said = _NO_ENTRY.format(said) if status == _NO_PASSWORD else said
    wait = _wait(headers, said)
    kind = _kind_of_status(status, said, {*names}, waits=wait is not None)
    return Failure(kind, f"HTTP {status}: {said}", status=status, retry_after=wait, in_doubt=kind == "timeout")


def error_in(error: object, secrets: Iterable[str] = ()) -> Failure:
    """
    Map an *error* in a 200 to a failure: gateways pass on a vendor's status in it.

    The status may be a number, a text, or a vendor's word, in several places; the first number decides.
    """
    said = words_of(json.dumps(error, default=str), secrets)
    error = next((each for each in error if isinstance(each, dict)), error) if isinstance(error, list) else error
    marks = [error.get(name) for name in _CODES] if isinstance(error, dict) else []
    numbers = [status_in(mark) for mark in marks]
    words = [_STATUSES.get(mark.strip().lower()) for mark in marks if isinstance(mark, str)]
    if status := next(filter(None, numbers + words), None):
        return failure_of_status(status, said)
    return Failure("bad_response", f"an error instead of a reply: {said}")


def _kind_of_status(status: int, said: str, names: set[str], *, waits: bool) -> FailureKind:
    # Gemini speaks of quota and billing also where a minute's rate is meant; then it says how long to wait.
    empty = _QUOTA.search(said) or (status == _TOO_MANY and not waits and _BILLING.search(said))
    if empty and status < _SERVER_ERROR:
        return "quota"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= _SERVER_ERROR:
        return "overloaded"
    if "ContextWindowExceededError" in names or _CONTEXT.search(said):
        return "context_window"
    if "ContentPolicyViolationError" in names or _POLICY.search(said):
        return "refusal"
    return "bad_request"


def _wait(headers: Mapping[str, Any], said: str) -> float | None:
    """Return the seconds that the server asks to wait: a number, an HTTP date, or a phrase of Gemini's message."""
    value = str(headers.get("retry-after") or headers.get("Retry-After") or "").strip()
    if not value:
        return float(match[1]) if (match := _WAIT.search(said)) else None
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
_MESSAGE = re.compile(r'"message"\s*:\s*"((?:[^"\\]|\\.)*)"')


def words_of(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the vendor's message in *text*, redacted, without the names that client libraries put before it."""
    text = redact(text[:_LONGEST_SAID], secrets)
    if message := _MESSAGE.search(text):
        code = re.search(r'"code"\s*:\s*"([^"]+)"', text)
        return shorten(f"{message[1]} ({code[1]})" if code else message[1])
    text = _TAIL.sub("", _SSL_OBJECT.sub("", text))
    while shorter := _PREFIX.sub("", text, count=1):
        if shorter == text:
            break
        text = shorter
    return shorten(text)
