"""
From what a vendor or a client library raised to one of our few kinds of failure.

The kind rests on facts where there are any: the HTTP status that came back, or the broken connection, wherever in
the chain of causes it stands. Client libraries rename both: a 413 may come out as a rate limit, a reset as a 500.

| what happened                                       | kind                                   |
|-----------------------------------------------------|----------------------------------------|
| 401, 403, no credentials                            | auth                                   |
| 402; 429 or 400 that speaks of quota or credit      | quota                                  |
| other 429                                           | rate_limited, with Retry-After         |
| 408, 504, no answer in time                         | timeout (in doubt)                     |
| 409, 500, 502, 503, 529, other 5xx                  | overloaded: another attempt may do     |
| broken connection                                   | transport (in doubt)                   |
| a 200 that is no chat completion                    | bad_response                           |
| 4xx about the length of the prompt                  | context_window                         |
| 4xx from a content filter                           | refusal                                |
| other 4xx, a missing package                        | bad_request                            |
| LiteLLM knows no vendor by the model's name         | bad_request, with the form of a name   |
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from rubric.exchanges import Failure, FailureKind
from rubric.models.redacting import redact
from rubric.showing import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["failure_of", "failure_of_status", "words_of"]

_BY_STATUS: dict[int, FailureKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "timeout",
    409: "overloaded",
    429: "rate_limited",
    504: "timeout",
}
_TOO_MANY = 429
_SERVER_ERROR = 500

_QUOTA = re.compile(r"insufficient_quota|credit balance|insufficient (?:balance|credit|funds)", re.IGNORECASE)
_BILLING = re.compile(r"\bbilling\b", re.IGNORECASE)
_WAIT = re.compile(r'retry(?:Delay"?\s*:\s*"|\s+in\s+)(\d+(?:\.\d+)?)\s*s', re.IGNORECASE)
_CONTEXT = re.compile(
    r"context_length_exceeded|maximum context length|context window|prompt is too long|too many (?:input )?tokens",
    re.IGNORECASE,
)
_POLICY = re.compile(r"content_policy|content management policy|content_filter|safety system", re.IGNORECASE)

_TIMEOUTS = {"TimeoutError", "TimeoutException", "APITimeoutError", "Timeout"}
_TRANSPORTS = {"TransportError", "ClientConnectionError", "ClientPayloadError", "ConnectionError"}
_CREDENTIALS = {"DefaultCredentialsError", "NoCredentialsError", "RefreshError"}

_NO_VENDOR = re.compile(r"LLM Provider NOT provided.*?model=(\S+)", re.DOTALL)
_A_NAME = "no vendor is known by {!r}{} A model's name is vendor/model, such as 'openai/gpt-5.6'"


def failure_of(error: BaseException, secrets: Iterable[str] = ()) -> Failure:
    """Return the failure that *error*, raised by a client library, amounts to; *secrets* do not occur in it."""
    chain = [*_causes(error)]
    names = {ancestor.__name__ for link in chain for ancestor in type(link).__mro__}
    if unknown := _NO_VENDOR.search(str(error)):
        near = get_close_matches(unknown[1], ["offline"], n=1)
        return Failure("bad_request", _A_NAME.format(unknown[1], "; did you mean 'offline'?" if near else "."))
    said = words_of(str(error), secrets)
    response = next((link.response for link in chain if type(link).__name__ == "HTTPStatusError"), None)  # type: ignore[attr-defined]
    if response is not None:
        return failure_of_status(response.status_code, said, response.headers, names)
    kind = _kind_without_status(names)
    if kind is not None:
        return Failure(kind, said, in_doubt=kind in ("timeout", "transport"))
    status = getattr(error, "status_code", None)
    if status in (None, 200, _SERVER_ERROR):  # 500 is what libraries make up where there is no status
        return Failure("bad_response", f"what came back is no chat completion: {said}")
    return failure_of_status(status, said, {}, names)


def failure_of_status(
    status: int, said: str, headers: Mapping[str, Any] | None = None, names: Iterable[str] = ()
) -> Failure:
    """
    Return the failure that an HTTP answer with an error *status* amounts to.

    Args:
        said: The message of the answer, redacted.
        names: Class names of the exceptions that came with it, which may know more than the message tells.
    """
    wait = _wait(headers or {}, said)
    kind = _kind_of_status(status, said, {*names}, waits=wait is not None)
    return Failure(kind, f"HTTP {status}: {said}", status=status, retry_after=wait, in_doubt=kind == "timeout")


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


def _kind_without_status(names: set[str]) -> FailureKind | None:
    if names & _TIMEOUTS:
        return "timeout"
    if names & _TRANSPORTS:
        return "transport"
    if names & _CREDENTIALS:
        return "auth"
    return "bad_request" if "ImportError" in names else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _wait(headers: Mapping[str, Any], said: str) -> float | None:
    """Return the seconds that the server asks to wait: a number, an HTTP date, or as Gemini says it in its message."""
    value = str(headers.get("retry-after") or headers.get("Retry-After") or "").strip()
    if not value:
        return float(match[1]) if (match := _WAIT.search(said)) else None
    try:
        return max(0.0, float(value))
    except ValueError:
        return _until(value)


def _until(date: str) -> float | None:
    try:
        then = parsedate_to_datetime(date)
    except ValueError:
        return None
    return max(0.0, (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


_PREFIX = re.compile(r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout)\b(?: \w+Error)?(?: Error)?\s*[:-]\s*")
_TAIL = re.compile(
    r"\s*(?:Traceback \(most recent call last\)|Error_str:|\.? Handle with `|, Original Response:).*", re.DOTALL
)
_MESSAGE = re.compile(r'"message"\s*:\s*"((?:[^"\\]|\\.)*)"')


def words_of(text: str, secrets: Iterable[str] = ()) -> str:
    """Return what the vendor said in *text*, redacted, without the names that client libraries put before it."""
    text = redact(text, secrets)
    if message := _MESSAGE.search(text):
        code = re.search(r'"code"\s*:\s*"([^"]+)"', text)
        return shorten(f"{message[1]} ({code[1]})" if code else message[1])
    text = _TAIL.sub("", text)
    while shorter := _PREFIX.sub("", text, count=1):
        if shorter == text:
            break
        text = shorter
    return shorten(text)
