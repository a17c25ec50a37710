"""
OpenAI and the servers of its chat completions protocol, straight over HTTP: `Judge("openai/...", via="http")`.

It costs a fraction of the CPU time that LiteLLM takes for a call, and ends in the same replies and kinds of failure. A
request leaves once; redirects are not followed, so that neither key nor candidate goes where nobody sent them; and no
more of a reply is read than what was asked for can need.
"""

from __future__ import annotations

import asyncio
from io import BytesIO
from typing import TYPE_CHECKING

import aiohttp
from attrs import evolve

from rubric.errors import ModelError
from rubric.exchanges import Failure, Reply
from rubric.models.bodies import most_bytes, read
from rubric.models.classifying import failure_of, failure_of_status, words_of
from rubric.models.endpoints import endpoint_of, proxy_for
from rubric.models.openai_replies import reply_in
from rubric.models.openai_requests import content_of
from rubric.models.pricelists import priced
from rubric.models.sessions import session_here

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rubric.exchanges import Ask
    from rubric.models.endpoints import Endpoint

__all__ = ["OpenAIHTTPModel"]

_OK, _REDIRECTS = 200, 300
_LARGE = 2**20


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
        limit = most_bytes(len(content), ask.max_tokens * ask.n, logprobs=ask.judge.logprobs)
        status, headers, body = await _within(ask.judge.timeout, endpoint, content, limit)
        if not _OK <= status < _REDIRECTS:
            said = words_of(body.decode("utf-8", "replace"), endpoint.secrets)
            raise ModelError(failure_of_status(status, said, headers))
        try:
            reply = reply_in(body, unsent, endpoint.secrets)
        except ModelError as error:
            failure = error.failure
            raise ModelError(evolve(failure, usage=priced(ask.judge, failure.usage))) from None
        return evolve(reply, usage=priced(ask.judge, reply.usage))


async def _within(
    seconds: float, endpoint: Endpoint, content: bytes, limit: int
) -> tuple[int, Mapping[str, str], bytes]:
    try:
        async with asyncio.timeout(seconds):
            return await _exchange(endpoint, content, limit)
    except TimeoutError:
        raise ModelError(Failure("timeout", f"no whole answer within {seconds:g} seconds", in_doubt=True)) from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ModelError(_failure(error, endpoint.secrets)) from None


def _failure(error: Exception, secrets: Iterable[str]) -> Failure:
    # A certificate that cannot be verified is a ValueError, too.
    if isinstance(error, aiohttp.InvalidURL) or not isinstance(error, aiohttp.ClientError | OSError):
        return Failure("bad_request", f"the request cannot be sent: {words_of(str(error), secrets)}")
    return failure_of(error, secrets)


async def _exchange(endpoint: Endpoint, content: bytes, limit: int) -> tuple[int, Mapping[str, str], bytes]:
    session = await session_here()
    data = content if len(content) < _LARGE else BytesIO(content)  # aiohttp warns of large bodies in one piece
    proxy = proxy_for(endpoint.url)
    async with session.post(
        endpoint.url, data=data, headers=endpoint.headers, proxy=proxy, allow_redirects=False
    ) as response:
        encoding = response.headers.get("Content-Encoding", "")
        body = await read(response.content.iter_any(), response.status, encoding, limit)
        return response.status, response.headers, body
