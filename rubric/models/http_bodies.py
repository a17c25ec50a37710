"""
The body of a response: its bounds, and how it is unpacked and parsed within them.

It is untrusted input, so it is bounded before anything reads it whole: in bytes, packed and unpacked (a gzip of 200 kB
may hold 200 MB), in depth, and in its number of values. A parser blocks the event loop, deadlines included, and takes
some 25 bytes of memory for each byte of `[],[],[],`. All checks are single calls of C functions over the bytes.
"""

from __future__ import annotations

import json
import re
import zlib
from typing import TYPE_CHECKING, Any

from attrs import define, field

from rubric.errors import ModelError
from rubric.models.failure_kinds import error_in_stream, words_of
from rubric.values.requests import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Iterable, Iterator


MOST_BYTES = 2**24
"""The most bytes of a reply, whatever was requested."""

DEEPEST = 64
"""How deep the brackets of a body may be nested; a chat completion with probabilities has some eight levels."""

_LONGEST_ERROR = 2**13  # LiteLLM masks secrets in it with a dozen patterns, on the loop
_LEAST_READ = 2**20
_A_TOKEN = 256  # bytes of JSON; one that comes with its alternatives takes more
_A_TOKEN_WITH_ALTERNATIVES = 4096
_BYTES_A_VALUE = 6  # or more, on the average; a token with its alternatives has eight
_FEW_VALUES, _MOST_VALUES = 2**14, 2**20  # a million takes the parser some tenths of a second
_PIECE = 2**18
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 47}
_FIRST_ERROR = 400
_TEXT = re.compile(rb'"[^"]*"?')
_AS_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def most_bytes(sent: int, tokens: int, *, logprobs: bool = False) -> int:
    """Return how many bytes the response to a request of *sent* bytes, which some repeat, for *tokens* may have."""
    token = _A_TOKEN_WITH_ALTERNATIVES if logprobs else _A_TOKEN
    return min(MOST_BYTES, _LEAST_READ + 2 * sent + tokens * token)


# -- reading and unpacking -------------------------------------------------------------------------------


async def read(parts: AsyncIterable[bytes], status: int, encoding: str, limit: int) -> bytes:
    """
    Return the body in *parts*, unpacked; of an error no more than its beginning.

    Plain text was requested, and some gateways compress all the same.

    Raises:
        ModelError: It has more than *limit* bytes, or an unknown encoding. The rest is not read.
    """
    body = _Body(status, _unpacker(encoding), limit)
    async for part in parts:
        if not body.has_room_after(part):
            break
    return bytes(body.read)


def read_now(parts: Iterable[bytes], status: int, encoding: str, limit: int) -> bytes:
    """Do what `read` does, in a thread."""
    body = _Body(status, _unpacker(encoding), limit)
    for part in parts:
        if not body.has_room_after(part):
            break
    return bytes(body.read)


async def pour(parts: AsyncIterable[bytes], encoding: str, take: Callable[[bytes], None]) -> None:
    """Call *take* with each piece of *parts*, unpacked; raise `ModelError` if that is impossible."""
    unpack = _unpacker(encoding)
    async for part in parts:
        for piece in unpack(part):
            take(piece)


@define
class _Body:
    status: int
    unpack: Callable[[bytes], Iterator[bytes]]
    limit: int
    read: bytearray = field(factory=bytearray)

    def has_room_after(self, part: bytes) -> bool:
        """Add *part*, and return whether there is room for more."""
        for piece in self.unpack(part):
            self.read += piece
            if self.status >= _FIRST_ERROR and len(self.read) >= _LONGEST_ERROR:
                del self.read[_LONGEST_ERROR:]
                return False
            if len(self.read) > self.limit:
                raise too_long(self.limit)
        return True


def _unpacker(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return lambda part: iter((part,))
    if encoding not in _WINDOWS:
        raise ModelError(Failure("bad_response", f"a reply in an encoding not asked for: {encoding[:40]!r}"))
    stream = zlib.decompressobj(_WINDOWS[encoding])

    def unpack(part: bytes) -> Iterator[bytes]:
        try:
            while part and not stream.eof:  # a bomb comes out in pieces, too
                yield stream.decompress(part, _PIECE)
                part = stream.unconsumed_tail
        except zlib.error:
            raise ModelError(Failure("bad_response", "a reply that is packed, and cannot be unpacked")) from None

    return unpack


def too_long(limit: int) -> ModelError:
    """Return the error of a reply that has more than *limit* bytes."""
    return ModelError(Failure("bad_response", f"the reply is longer than {limit:,} bytes, and was not read to its end"))


# -- parsing ---------------------------------------------------------------------------------------------


def parse(body: bytes, secrets: Iterable[str] = ()) -> Any:
    """Return the JSON in *body*; raise `ModelError`, without *secrets*, if it is none, too deep or too large."""
    try:
        _refuse_monsters(body)
        return json.loads(body)
    except RecursionError:
        deep = f"what came back is nested too deeply: {DEEPEST} levels are the most"
        raise ModelError(Failure("bad_response", deep)) from None
    except ValueError:
        text = body.decode("utf-8", "replace")
        said = words_of(text[:1000], secrets) or "nothing"
        unread = Failure("bad_response", f"what came back is not JSON: {said}")
        raise ModelError(error_in_stream(text, secrets) or unread) from None


def _refuse_monsters(body: bytes) -> None:
    """Raise an error if no parser should get *body*: `RecursionError` as one would, or `ModelError` for its size."""
    brackets = body.count(b"[") + body.count(b"{")
    if brackets <= DEEPEST and body.count(b",") <= _FEW_VALUES:
        return
    # Signs within texts do not count: a judge may quote code, and some servers repeat the prompt.
    bare = body.replace(rb"\\", b"").replace(rb"\"", b"")
    most = min(_FEW_VALUES + len(body) // _BYTES_A_VALUE, _MOST_VALUES)
    bare = _TEXT.sub(b"", bare) if bare.count(b'"') <= most else bare
    if bare.count(b"[") + bare.count(b"{") + bare.count(b",") > most:
        raise ModelError(Failure("bad_response", "what came back has too many values to be read"))
    if _is_deep(bare):
        raise RecursionError


def _is_deep(bare: bytes) -> bool:
    """True if the brackets of *bare* are nested deeper than `DEEPEST`: each pass removes the innermost."""
    left = bare.translate(_AS_ONE_KIND, _NO_BRACKETS)
    for _ in range(DEEPEST):
        inner = left.replace(b"[]", b"")
        if len(inner) == len(left):  # brackets that were never closed; the parser will say so, unless they are deep
            return left.count(b"[") > DEEPEST
        left = inner
    return bool(left)
