"""
Any model of any vendor, through LiteLLM: `Judge("anthropic/...")`.

LiteLLM itself (its import, its switches, its short way to OpenAI) is in `litellm_library`, the wire below it in
`litellm_http`. A quirk of a vendor goes

- here, if LiteLLM must be called differently: a form of structured output, a mark for the cache, a parameter;
- into `api_keys`, if it is the name of a key;
- into `chat_completions`, if it is in a response of OpenAI's protocol;
- into `failure_kinds`, if it is in the text or the status of an error.

All calls run on `rubric.internals.background_loop`, since LiteLLM's clients outlive the loops of callers. Its retries
are off: `retry` does them for all models alike.
"""

from __future__ import annotations

import asyncio
import json
import os
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from attrs import evolve

from rubric.errors import ModelError
from rubric.internals import background_loop
from rubric.internals.frozen_map import Memo, thaw
from rubric.internals.secrets import values_of
from rubric.internals.telemetry import parent_span
from rubric.models import litellm_library
from rubric.models.api_keys import borrow_arguments, require_key
from rubric.models.chat_completions import (
    ADDRESSING,
    chat,
    first_form,
    form_for,
    relax,
    replies_for,
    reply_from,
    response_format,
    wanted_params,
)
from rubric.models.litellm_library import (
    is_watched,
    library,
    payer_of,
    price_entry,
    skip_unwanted_logging,
    supported_parameters,
    take_short_way,
    vendor_of,
)
from rubric.models.pricing import is_simply_priced, with_cost
from rubric.values.requests import Reply, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rubric.models.chat_completions import Form
    from rubric.values.judges import Judge
    from rubric.values.requests import Ask


_HOSTS_OF_CLAUDE = frozenset({"bedrock", "bedrock_converse", "vertex_ai", "azure_ai"})
_JSON_ALONE = frozenset({"deepseek"})  # LiteLLM lists its models with a schema, which its API refuses
_LITELLMS = frozenset(  # LiteLLM's table has these among OpenAI's parameters, and no model says that it takes them
    {"additional_drop_params", "allowed_openai_params", "api_version", "custom_llm_provider", "drop_params"}
    | {"extra_headers", "metadata"}
)
_UNSENDABLE = ("UnsupportedParamsError",)
_PLAIN = ADDRESSING | {"top_p", "presence_penalty", "frequency_penalty", "reasoning_effort", "stop", "user"}
"""Parameters that have no effect on how LiteLLM reads a response of OpenAI's, and what it says that it cost."""


class LiteLLMModel:
    """
    Answers with the model that the judge names, in one attempt.

    A refusal is a `Reply` with `finish="refusal"`, so that its usage is kept; `length` is one that was cut. A parameter
    that the model does not take is left out and named in `Reply.unsent`. Everything else raises `ModelError`.
    """

    is_punctual = True

    async def ready(self) -> None:
        """Import LiteLLM, which takes seconds, so that no deadline has to count them."""
        await litellm_library.ready()

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the reply to *ask*; raise `ModelError` with the failure, whose message has no secrets in it."""
        await self.ready()
        require_key(ask.judge)
        return await background_loop.on_background(_embed(ask) if ask.embeds else _answer(ask))


async def _answer(ask: Ask) -> Reply:
    model = ask.judge.name
    form = form_for(ask, _first_schema(ask.judge, _first_form(model))) if ask.schema and not ask.steps else "nothing"
    replies = replies_for(ask) if "n" in supported_parameters(model) else 1

    def request() -> dict[str, Any]:
        messages = chat(ask, cache_control=_wants_cache_control(model))
        choices = {"n": replies} if replies > 1 else {}
        limited = {"model": model, "messages": messages, "max_tokens": ask.max_tokens}
        return limited | choices | response_format(form, ask) | ask.offered()

    try:
        response, unsent = await complete(ask.judge, request, may_end_early=_is_plain(ask.judge))
    except ModelError as error:
        raise ModelError(relax(ask, replies, form, error.failure)) from None
    if ask.schema and not ask.steps and form == "nothing":
        unsent = (*unsent, "response_format")
    price = partial(_with_known_cost, ask.judge)
    return reply_from(response, unsent, _secrets(ask.judge), price, ask=ask)


_A_VECTOR = 16_384
"""Numbers, and so about tokens, of the longest embedding there is."""


async def _embed(ask: Ask) -> Reply:
    """Return the reply to *ask* for embeddings: the vectors of its messages' texts, as JSON."""
    from rubric.models.litellm_http import calling  # noqa: PLC0415 - as below

    judge, texts = ask.judge, [message.text for message in ask.messages]
    provider = vendor_of(judge.name)[1]
    extra = borrow_arguments(provider, judge.params)
    secrets = (*extra.values(), *_secrets(judge))
    with calling(logprobs=False, secrets=secrets, is_watched=is_watched(provider)) as call:
        call.tokens = _A_VECTOR * len(texts)
        try:
            async with asyncio.timeout(judge.timeout):
                given = {**thaw(judge.params), **extra}
                response = await library().aembedding(judge.name, texts, **given, timeout=judge.timeout, max_retries=0)
            vectors = [each["embedding"] for each in sorted(response.data, key=lambda each: each["index"])]
            sent = response.usage.prompt_tokens if response.usage else 0
        except TimeoutError:
            raise ModelError(call.out_of_time(judge.timeout)) from None
        except Exception as error:  # noqa: BLE001 - whatever it was, it becomes a typed failure
            raise ModelError(call.failure_of(error)) from None
    usage = Usage(calls=1, prompt_tokens=sent, cost=None, unmetered=int(not sent))
    return Reply(json.dumps(vectors), usage=_with_known_cost(judge, usage), model=str(response.model or ""))


def _with_known_cost(judge: Judge, usage: Usage) -> Usage:
    """Return *usage* with a cost of None if LiteLLM says 0 for want of a price; if it says none, as listed."""
    return evolve(usage, cost=None) if usage.cost == 0 and price_entry(judge.name) is None else with_cost(judge, usage)


_secrets: Memo[Judge, [], tuple[str, ...]] = Memo(lambda judge: values_of(judge.params))


async def complete(
    judge: Judge, request: Callable[[], Mapping[str, Any]], *, may_end_early: bool = False
) -> tuple[Any, tuple[str, ...]]:
    """
    Send the result of *request*, with the parameters of *judge*, to its model: once, and on the background loop alone.

    It returns the completion, and the names of parameters that the model does not take and that were left out; it
    raises `ModelError` with the failure, whose message has no secrets in it.
    """
    from rubric.models.litellm_http import Answered, addresses_in, calling  # noqa: PLC0415 - it brings aiohttp and httpx

    provider = vendor_of(judge.name)[1]
    extra = borrow_arguments(provider, judge.params)
    take_short_way(provider)
    secrets = (*extra.values(), *_secrets(judge))
    unsent: tuple[str, ...] = ()
    with calling(logprobs=judge.logprobs, secrets=secrets, is_watched=is_watched(provider)) as call:
        try:
            wanted, unsent = _sendable(judge)
            is_quiet = skip_unwanted_logging()
            call.may_end_early = is_quiet and may_end_early
            given = {**request(), **wanted, **extra, **payer_of(provider, wanted)}
            call.images = addresses_in(given.get("messages", ()))
            if not is_quiet and (parent := parent_span()) is not None:
                given["metadata"] = {**(given.get("metadata") or {}), "litellm_parent_otel_span": parent}
            call.tokens = given["max_tokens"] * given.get("n", 1)
            async with asyncio.timeout(judge.timeout):
                response = await library().acompletion(**given, timeout=judge.timeout, max_retries=0)
            if call.was_cut:
                response.choices[0].finish_reason = "length"
        except Answered:
            response = call.completion
        except TimeoutError:
            raise ModelError(call.out_of_time(judge.timeout)) from None
        except Exception as error:  # noqa: BLE001 - whatever it was, it becomes a typed failure
            if call.completion is None:
                raise ModelError(call.failure_of(error)) from None  # the cause may hold keys
            # LiteLLM raises over a text in parts, say, and over an error beside choices forgets what they have cost.
            response = call.completion
    return response, unsent


@Memo
def _is_plain(judge: Judge) -> bool:
    """True if LiteLLM adds nothing to the response: one of OpenAI's, with the usual prices."""
    # What LiteLLM does after the response takes a third of its CPU time: objects of pydantic, and the cost, which is
    # then worked out here. It knows more where prices depend on more than tokens sent, cached and received.
    return vendor_of(judge.name)[1] == "openai" and _PLAIN.issuperset(judge.params) and is_simply_priced(judge)


@lru_cache(maxsize=256)
def _first_form(model: str) -> Form:
    """Return the form of reply that *model* is asked for first, by LiteLLM's dialect of its vendor."""
    # LiteLLM knows of listed models alone whether they take a schema; a deployment or a model of last week needs it
    # most. JSON mode is sent where the vendor has no more, or where OpenAI lists the model without a schema; nothing,
    # where the dialect has no `response_format`.
    name, provider = vendor_of(model)
    if "response_format" not in supported_parameters(model):
        return "nothing"
    takes_schema = library().supports_response_schema(model=name, custom_llm_provider=provider or None)
    if provider in _JSON_ALONE or (provider == "openai" and price_entry(model) is not None and not takes_schema):
        return "json"
    return "schema"


_LOCAL = frozenset(
    {"docker_model_runner", "hosted_vllm", "llamafile", "lm_studio", "ollama", "ollama_chat", "vllm", "xinference"}
)
"""LiteLLM's names of servers that compile a schema for each request."""


def _first_schema(judge: Judge, form: Form) -> Form:
    """Return *form*, or the tighter schema that the vendor or the server of *judge* takes, as `first_form` has it."""
    provider = vendor_of(judge.name)[1]
    if form != "schema" or provider not in {*_LOCAL, "openai"}:
        return form
    if provider != "openai":
        return "exact"
    named = os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE") or "https://api.openai.com"
    return first_form(str(judge.params.get("api_base") or judge.params.get("base_url") or named))


@lru_cache(maxsize=256)
def _wants_cache_control(model: str) -> bool:
    name, provider = vendor_of(model)
    if provider != "anthropic" and not (provider in _HOSTS_OF_CLAUDE and "claude" in name):
        return False
    return bool(library().utils.supports_prompt_caching(model=name, custom_llm_provider=provider))


@Memo
def _sendable(judge: Judge) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the parameters of *judge* that its model takes, and the names of those that it does not."""
    wanted = thaw(wanted_params(judge))
    effort = {name: wanted[name] for name in ("reasoning_effort", "thinking") if name in wanted}
    unsent = tuple(name for name, value in wanted.items() if not _takes(judge.name, {**effort, name: value}, name))
    return {name: value for name, value in wanted.items() if name not in unsent}, unsent


def _takes(model: str, params: dict[str, Any], name: str) -> bool:
    if name in _LITELLMS or name not in library().utils.DEFAULT_CHAT_COMPLETION_PARAM_VALUES:
        return True  # how LiteLLM is to call, or the vendor's own: no parameter of OpenAI's
    if name not in supported_parameters(model):
        return False
    bare, provider = vendor_of(model)
    try:
        library().utils.get_optional_params(model=bare, custom_llm_provider=provider, **params)
    except Exception as error:  # noqa: BLE001 - other troubles belong to the request itself
        return type(error).__name__ not in _UNSENDABLE
    return True
