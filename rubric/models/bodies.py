"""
The body of a vendor's reply: how long it may be, unpacked and parsed within bounds.

A stranger's server wrote it. So it is bounded before anything reads it whole: in bytes as it comes, in bytes as it is
unpacked (a gzip of 200 kB may hold 200 MB), and in depth.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

from rubric.errors import ModelError
from rubric.exchanges import Failure
from rubric.models.classifying import failure_of_status, status_in, words_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Iterable

__all__ = ["MOST_BYTES", "error_in", "most_bytes", "parsed", "read", "read_now"]

MOST_BYTES = 2**24
"""Bytes that a reply may have at most, whatever was asked for."""

_LONGEST_ERROR = 2**13  # LiteLLM masks secrets in it with a dozen patterns, on the loop
_LEAST_READ = 2**20
_A_TOKEN = 256  # bytes of JSON; one that comes with its alternatives takes more
_A_TOKEN_WITH_ALTERNATIVES = 4096
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 47}
_FIRST_ERROR = 400
_CODES = ("code", "status", "status_code", "http_status")


def most_bytes(sent: int, tokens: int, *, logprobs: bool = False) -> int:
    """
    Return how many bytes may come back for a request of *sent* bytes that asks for *tokens* at most.

    Some servers send the prompt back in their reply.
    """
    token = _A_TOKEN_WITH_ALTERNATIVES if logprobs else _A_TOKEN
    return min(MOST_BYTES, _LEAST_READ + 2 * sent + tokens * token)


async def read(parts: AsyncIterable[bytes], status: int, encoding: str, limit: int) -> bytes:
    """
    Return the body that *parts* bring, unpacked; of an error's no more than its beginning.

    None but plain text was asked for, and some gateways pack all the same.

    Raises:
        ModelError: It has more than *limit* bytes, or is packed in a way that nobody asked for. The rest is not read.
    """
    body = bytearray()
    async for part in parts:
        if not _add(body, part, status, limit):
            break
    return _unpacked(bytes(body), status, encoding.strip().lower(), limit)


def read_now(parts: Iterable[bytes], status: int, encoding: str, limit: int) -> bytes:
    """Do what `read` does, in a thread."""
    body = bytearray()
    for part in parts:
        if not _add(body, part, status, limit):
            break
    return _unpacked(bytes(body), status, encoding.strip().lower(), limit)


def _add(body: bytearray, part: bytes, status: int, limit: int) -> bool:
    """Add *part* to *body* and return whether there is room for more."""
    body += part
    if status >= _FIRST_ERROR:
        return len(body) < _LONGEST_ERROR
    if len(body) > limit:
        raise _too_long(limit)
    return True


def _unpacked(body: bytes, status: int, encoding: str, limit: int) -> bytes:
    whole = body
    if encoding not in ("", "identity"):
        if encoding not in _WINDOWS:
            raise ModelError(Failure("bad_response", f"a reply in an encoding not asked for: {encoding[:40]!r}"))
        try:
            whole = zlib.decompressobj(_WINDOWS[encoding]).decompress(body, limit + 1)
        except zlib.error:
            raise ModelError(Failure("bad_response", "a reply that is packed, and cannot be unpacked")) from None
    if status >= _FIRST_ERROR:
        return whole[:_LONGEST_ERROR]
    if len(whole) > limit:
        raise _too_long(limit)
    return whole


def parsed(body: bytes, secrets: Iterable[str] = ()) -> Any:
    """
    Return the JSON in *body*.

    Raises:
        ModelError: It is none, or nested too deeply; *secrets* are not shown.
    """
    try:
        return json.loads(body)
    except RecursionError:
        raise ModelError(Failure("bad_response", "what came back is nested too deeply")) from None
    except ValueError:
        said = words_of(body[:1000].decode("utf-8", "replace"), secrets) or "nothing"
        raise ModelError(Failure("bad_response", f"what came back is not JSON: {said}")) from None


def error_in(error: object, secrets: Iterable[str] = ()) -> Failure:
    """Return the failure that an error object in a 200 stands for: gateways hand on a vendor's status in it."""
    said = words_of(json.dumps(error), secrets)
    codes = [status_in(error.get(name)) for name in _CODES] if isinstance(error, dict) else []
    if status := next(filter(None, codes), None):
        return failure_of_status(status, said)
    return Failure("bad_response", f"an error instead of a reply: {said}")


def _too_long(limit: int) -> ModelError:
    return ModelError(Failure("bad_response", f"the reply is longer than {limit:,} bytes, and was not read to its end"))
