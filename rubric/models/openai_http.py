"""
OpenAI and the servers of its chat completions protocol, straight over HTTP: `Judge("openai/...", via="http")`.

It costs a fraction of the CPU time that LiteLLM takes for a call, and ends in the same replies and kinds of failure. No
more of a reply is read than what was asked for can need.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from attrs import evolve

from rubric.errors import ModelError
from rubric.models.bodies import most_bytes
from rubric.models.endpoints import endpoint_of, exposure_of
from rubric.models.openai_replies import reply_in
from rubric.models.openai_requests import content_of, form_of
from rubric.models.pricelists import priced
from rubric.models.sessions import answer_to, whole
from rubric.models.structured import lowered

if TYPE_CHECKING:
    from rubric.exchanges import Ask, Reply

__all__ = ["OpenAIHTTPModel"]

_LARGE = 2**20


class OpenAIHTTPModel:
    """
    Answers with the model that the judge names, in one attempt, on the loop of whoever asks.

    A refusal is a `Reply` with `finish="refusal"`, so that its usage is kept; `length` is one that was cut. Everything
    else raises `ModelError`. What a call costs is worked out from its tokens, for models that LiteLLM's price list has;
    of others it is unknown (None).
    """

    is_punctual = True  # it keeps the judge's deadline, and knows whether the request had left by then

    async def answer(self, ask: Ask, /) -> Reply:
        """
        Return the reply to *ask*.

        Raises:
            ModelError: With the typed failure; its message has no secrets in it.
        """
        endpoint = endpoint_of(ask.judge)
        form = form_of(ask, endpoint)
        content, unsent = content_of(ask, endpoint)
        data = content if len(content) < _LARGE else BytesIO(content)  # aiohttp warns of large bodies in one piece
        try:
            async with answer_to(endpoint, "POST", endpoint.url, ask.judge.timeout, data=data) as response:
                limit = most_bytes(len(content), ask.max_tokens * ask.n, logprobs=ask.judge.logprobs)
                body = await whole(response, limit)
        except ModelError as error:
            raise ModelError(lowered(ask.judge, form, error.failure)) from None
        try:
            reply = reply_in(body, unsent, endpoint.secrets)
        except ModelError as error:
            failure = error.failure
            raise ModelError(evolve(failure, usage=priced(ask.judge, failure.usage))) from None
        return evolve(reply, usage=priced(ask.judge, reply.usage), remarks=exposure_of(endpoint))
