"""
OpenAI and the servers of its chat completions protocol, straight over HTTP: `Judge("openai/...", via="http")`.

It costs a fraction of the CPU time that LiteLLM takes for a call, and ends in the same replies and kinds of failure. A
request leaves once; redirects are not followed, so that neither key nor candidate goes where nobody sent them; and no
more of a reply is read than what was asked for can need.
"""

from __future__ import annotations

import asyncio
import zlib
from io import BytesIO
from typing import TYPE_CHECKING

import aiohttp
from attrs import evolve

from rubric.errors import ModelError
from rubric.exchanges import Failure, Reply, Usage
from rubric.models.classifying import failure_of, failure_of_status, words_of
from rubric.models.endpoints import endpoint_of, proxy_for
from rubric.models.openai_replies import reply_in
from rubric.models.openai_requests import content_of
from rubric.models.pricelists import priced
from rubric.models.sessions import session_here

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rubric.exchanges import Ask
    from rubric.models.endpoints import Endpoint

__all__ = ["OpenAIHTTPModel"]

_OK, _REDIRECTS = 200, 300
_LONGEST_ERROR = 2**16
_LEAST_READ = 2**20
_A_TOKEN = 256  # bytes of JSON; one that comes with its alternatives takes more
_A_TOKEN_WITH_ALTERNATIVES = 4096
_LARGE = 2**20
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 47}


class OpenAIHTTPModel:
    """
    Answers with the model that the judge names, in one attempt, on the loop of whoever asks.

    A refusal is a `Reply` with `finish="refusal"`, so that its usage is kept; `length` is one that was cut. Everything
    else raises `ModelError`. What a call costs is worked out from its tokens, for models that LiteLLM's price list has;
    of others it is unknown (None).
    """

    async def answer(self, ask: Ask, /) -> Reply:
        """
        Return the reply to *ask*.

        Raises:
            ModelError: With the typed failure; its message has no secrets in it.
        """
        endpoint = endpoint_of(ask.judge)
        content, unsent = content_of(ask, endpoint)
        status, headers, body = await _within(ask.judge.timeout, endpoint, content, _limit(ask, content))
        if not _OK <= status < _REDIRECTS:
            said = words_of(body[:_LONGEST_ERROR].decode("utf-8", "replace"), endpoint.secrets)
            raise ModelError(failure_of_status(status, said, headers))
        try:
            reply = reply_in(body, unsent, endpoint.secrets)
        except ModelError as error:
            failure = error.failure
            raise ModelError(evolve(failure, usage=priced(ask.judge, failure.usage))) from None
        return evolve(reply, usage=priced(ask.judge, reply.usage))


def _limit(ask: Ask, content: bytes) -> int:
    """Return how many bytes a reply to *ask* may have; some servers send the prompt back in it."""
    token = _A_TOKEN_WITH_ALTERNATIVES if ask.judge.logprobs else _A_TOKEN
    return _LEAST_READ + 2 * len(content) + ask.max_tokens * ask.n * token


async def _within(
    seconds: float, endpoint: Endpoint, content: bytes, limit: int
) -> tuple[int, Mapping[str, str], bytes]:
    try:
        async with asyncio.timeout(seconds):
            return await _exchange(endpoint, content, limit)
    except TimeoutError:
        raise ModelError(Failure("timeout", f"no whole answer within {seconds:g} seconds", in_doubt=True)) from None
    except aiohttp.ClientConnectorError as error:  # there was no connection, so nothing was sent
        said = words_of(str(error), endpoint.secrets)
        raise ModelError(Failure("transport", said, usage=Usage(calls=1, cost=0.0))) from None
    except (aiohttp.InvalidURL, ValueError) as error:
        said = words_of(str(error), endpoint.secrets)
        raise ModelError(Failure("bad_request", f"the request cannot be sent: {said}")) from None
    except (aiohttp.ClientError, OSError) as error:
        raise ModelError(failure_of(error, endpoint.secrets)) from None


async def _exchange(endpoint: Endpoint, content: bytes, limit: int) -> tuple[int, Mapping[str, str], bytes]:
    session = await session_here()
    data = content if len(content) < _LARGE else BytesIO(content)  # aiohttp warns of large bodies in one piece
    proxy = proxy_for(endpoint.url)
    async with session.post(
        endpoint.url, data=data, headers=endpoint.headers, proxy=proxy, allow_redirects=False
    ) as response:
        body = await _read(response, limit)
        return response.status, response.headers, _decoded(body, response.headers.get("Content-Encoding", ""), limit)


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > limit:
            response.close()
            raise _too_long(limit)
        parts.append(part)
    return b"".join(parts)


def _decoded(body: bytes, encoding: str, limit: int) -> bytes:
    """Return *body* unpacked, within bounds: none but plain text was asked for, and some gateways pack all the same."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in _WINDOWS:
        raise ModelError(Failure("bad_response", f"a reply in an encoding that was not asked for: {encoding[:40]!r}"))
    try:
        unpacked = zlib.decompressobj(_WINDOWS[encoding]).decompress(body, limit + 1)
    except zlib.error:
        raise ModelError(Failure("bad_response", "a reply that is packed, and cannot be unpacked")) from None
    if len(unpacked) > limit:
        raise _too_long(limit)
    return unpacked


def _too_long(limit: int) -> ModelError:
    return ModelError(Failure("bad_response", f"the reply is longer than {limit:,} bytes, and was not read to its end"))
