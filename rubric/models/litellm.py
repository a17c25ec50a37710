"""
What LiteLLM's ways to vendors are: the short one to OpenAI, and those that do not lead over httpx.

LiteLLM has two ways to OpenAI and to those who speak its protocol: through OpenAI's client library, or, where
`EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER` is true, through the HTTP client that it has for most other vendors. The
second takes a third less of CPU time. It leaves out the headers that say which organisation and project pays, so they
are given with the call; and it does not lead to a few small vendors, which is said where they are asked.

Any model of any vendor, through LiteLLM: all that names it is here and in `clients`.

LiteLLM is imported on the first call, with its fetches, its `.env` loading and its chatter switched off. All calls run
on `rubric.internals.background_loop`, since its clients outlive the loops of callers. Its retries are off.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sys
import warnings
from functools import cache, lru_cache
from importlib.metadata import version
from threading import Lock
from typing import TYPE_CHECKING, Any

from attrs import evolve

from rubric.errors import ModelError
from rubric.internals import background_loop
from rubric.internals.frozen_map import Memo, thaw
from rubric.internals.secrets import values_of
from rubric.models.api_keys import borrowed
from rubric.models.chat_completions import chat, reply_from
from rubric.models.price_list import priced
from rubric.models.structured_output import first_form, lowered, response_format
from rubric.values.requests import Failure, Reply, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rubric.models.structured_output import Form
    from rubric.values.judges import Judge
    from rubric.values.requests import Ask


_SHORT = "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER"  # looked at by LiteLLM on each call
_OPENAI = frozenset({"openai", "custom_openai"})
_OTHER_CLIENTS = frozenset({"azure_ai"})
_ELSEWHERE = frozenset({"aiohttp_openai", "sagemaker", "sagemaker_chat", "vertex_ai", "vertex_ai_beta"})
_LACKING = frozenset({"aiml", "xinference"})


def shorten_the_way(provider: str) -> None:
    """Have LiteLLM take its short way from the first call to OpenAI on, unless the environment says otherwise."""
    if provider == "openai":
        os.environ.setdefault(_SHORT, "True")


def check_way(litellm: Any, provider: str) -> None:
    """
    Raise where the short way is on and does not lead to *provider*.

    Raises:
        ModelError: It says how to turn the short way off.
    """
    if not _is_short() or not _is_passed(litellm, provider):
        return
    if provider in _LACKING or (provider not in _OPENAI and provider not in _listed(litellm)):
        cure = f"set {_SHORT}=False to ask {provider} in a process that asks OpenAI, too"
        raise ModelError(Failure("bad_request", cure))


def is_watched(litellm: Any, provider: str) -> bool:
    """Return whether LiteLLM is certain to ask *provider* over httpx, not by a library of its own, or the user's."""
    return provider in _listed(litellm) and provider not in _ELSEWHERE


def payer_of(provider: str, given: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the argument with the headers that OpenAI's client library would send of its own accord; *given* wins."""
    if provider != "openai" or not _is_short():
        return {}
    organization = given.get("organization") or environ.get("OPENAI_ORGANIZATION") or environ.get("OPENAI_ORG_ID")
    payer = {"OpenAI-Organization": organization, "OpenAI-Project": environ.get("OPENAI_PROJECT_ID")}
    headers = {name: value for name, value in payer.items() if value} | {**(given.get("extra_headers") or {})}
    return {"extra_headers": headers} if headers else {}


def _is_short() -> bool:
    return os.environ.get(_SHORT, "").lower() == "true"


@cache
def _is_passed(litellm: Any, provider: str) -> bool:
    """Say whether the short way passes *provider*."""
    if provider in _OPENAI or provider in litellm.openai_compatible_providers:
        return provider not in _OTHER_CLIENTS
    try:
        from litellm.llms.openai_like.json_loader import JSONProviderRegistry  # noqa: PLC0415 - after the switches
    except ImportError:  # an older LiteLLM has all of them in its list
        return False
    return bool(JSONProviderRegistry.exists(provider))


@cache
def _listed(litellm: Any) -> frozenset[str]:
    return frozenset(provider.value for provider in litellm.LlmProviders)


_SWITCHES = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",
}

_FIRST_SHORT = (1, 106)  # the release from which on the short way was tried with all that can go wrong
_HOSTS_OF_CLAUDE = frozenset({"bedrock", "bedrock_converse", "vertex_ai", "azure_ai"})
_ALTERNATIVES = 20  # of the likeliest tokens in each place: the most that OpenAI gives
_LITELLMS = frozenset(  # these stand among OpenAI's parameters in its table, and no model says that it takes them
    {"additional_drop_params", "allowed_openai_params", "api_version", "custom_llm_provider", "drop_params"}
    | {"extra_headers", "metadata"}
)
_UNSENDABLE = ("UnsupportedParamsError",)

_WARNINGS = (
    # pydantic, of LiteLLM's classes, some of which are built on their first use
    ".*conflict with protected namespace",
    ".*attribute on the instance is deprecated",
    ".*`ReadOnly` qualifier",
    # pydantic, of replies that are no chat completions
    "Pydantic serializer warnings",
    # a deadline that ended a call before it had begun
    "coroutine '[^']*completion[^']*' was never awaited",
)

_hushed: Any = None
_ours = False
_importing = Lock()
_orphans: list[Any] = []


class LiteLLMModel:
    """
    Answers with the model that the judge names, in one attempt.

    A refusal is a `Reply` with `finish="refusal"`, so that its usage is kept; `length` is one that was cut. A parameter
    that the model does not take is left out and named in `Reply.unsent`. Everything else raises `ModelError`.
    """

    is_punctual = True

    async def ready(self) -> None:
        """Import LiteLLM, which takes seconds, so that no deadline has to count them."""
        if not _imported.cache_info().currsize:
            await asyncio.to_thread(_import)

    async def answer(self, ask: Ask, /) -> Reply:
        """
        Return the reply to *ask*.

        Raises:
            ModelError: With the typed failure; its message has no secrets in it.
        """
        await self.ready()
        return await background_loop.on_background(_answer(ask))


def library() -> Any:
    """Return LiteLLM, imported on the first call, and kept quiet."""
    litellm = _import()
    _hush()
    return litellm


def _import() -> Any:
    """Import LiteLLM once, however many first calls there are at a time: the second of them would not find it new."""
    if _imported.cache_info().currsize:
        return _imported()
    with _importing:
        return _imported()


@cache
def _imported() -> Any:
    global _ours  # noqa: PLW0603 - known at the import alone
    _ours = "litellm" not in sys.modules
    for name, value in _SWITCHES.items():
        os.environ.setdefault(name, value)
    import litellm  # noqa: PLC0415 - seconds, and half of the standard library

    litellm.suppress_debug_info = True
    if _ours and "LITELLM_LOG" not in os.environ:
        logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    _watch()
    background_loop.before_close(_close_clients)
    background_loop.before_close(_stop_logging)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget_clients)
    return litellm


def _watch() -> None:
    from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport  # noqa: PLC0415

    from rubric.models.litellm_http import watch  # noqa: PLC0415 - it brings aiohttp and httpx, as LiteLLM does

    watch(LiteLLMAiohttpTransport)


@cache
def _may_shorten() -> bool:
    """Say whether nobody but us uses LiteLLM: who hands it a client of OpenAI's library must not find it changed."""
    return _ours and tuple(int(part) for part in version("litellm").split(".")[:2]) >= _FIRST_SHORT


def _hush() -> None:
    """
    Ignore the warnings that LiteLLM causes.

    Looked at on each call: where warnings are errors, as in many test suites, they would come back as failed calls, and
    whoever restores the filters (`warnings.catch_warnings`, pytest after each test) takes ours away.
    """
    global _hushed  # noqa: PLW0603 - like the filters
    if _hushed not in warnings.filters:
        for message in _WARNINGS:
            warnings.filterwarnings("ignore", message)
        _hushed = warnings.filters[0]


async def _stop_logging() -> None:
    from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER  # noqa: PLC0415

    await GLOBAL_LOGGING_WORKER.flush()
    await GLOBAL_LOGGING_WORKER.stop()


async def _close_clients() -> None:
    litellm = library()
    await litellm.close_litellm_async_clients()
    cache = litellm.in_memory_llm_clients_cache
    for client in [*cache.cache_dict.values()]:  # older releases leave out OpenAI's
        if inspect.iscoroutinefunction(close := getattr(client, "close", None)):
            await close()
    cache.flush_cache()


def _forget_clients() -> None:
    """Drop the parent's clients in a forked child; closing them would take their connections from its loop."""
    cache = library().in_memory_llm_clients_cache
    _orphans.extend(cache.cache_dict.values())
    cache.flush_cache()


@lru_cache(maxsize=256)
def vendor_of(model: str) -> tuple[str, str]:
    """Return the vendor's own name of *model* and LiteLLM's name of the vendor; an unknown one is empty."""
    try:
        name, provider, *_ = library().get_llm_provider(model)
    except Exception:  # noqa: BLE001 - it raises what the request would raise, and better there
        return model, ""
    return name, provider


@lru_cache(maxsize=256)
def listed(model: str) -> Mapping[str, Any] | None:
    """
    Return what LiteLLM's price list has of *model*; None where it has no price.

    Asked for a name that looks like one of a vendor's, or for a model whose price has steps, LiteLLM makes up a 0.
    """
    name, provider = vendor_of(model)
    try:
        info: Mapping[str, Any] = library().get_model_info(name, custom_llm_provider=provider or None)
    except Exception:  # noqa: BLE001 - an unlisted model; the class of the error moves between versions
        return None
    entry = library().model_cost.get(info.get("key")) or {}
    prices = (entry.get("input_cost_per_token"), entry.get("output_cost_per_token"))
    return None if None in prices else info


async def _answer(ask: Ask) -> Reply:
    form, asked = _held_to(ask)
    try:
        response, unsent = await complete(ask.judge, lambda: _request(ask) | asked)
    except ModelError as error:
        raise ModelError(lowered(ask.judge, form, error.failure)) from None
    if ask.schema and form == "nothing":
        unsent = (*unsent, "response_format")
    try:
        reply = reply_from(response, unsent, values_of(ask.judge.params))
    except ModelError as error:
        raise ModelError(evolve(error.failure, usage=_known(ask.judge, error.failure.usage))) from None
    return evolve(reply, usage=_known(ask.judge, reply.usage))


def _held_to(ask: Ask) -> tuple[Form, dict[str, Any]]:
    return response_format(ask.judge, ask.schema, _first_form(ask.judge.name)) if ask.schema else ("nothing", {})


def _known(judge: Judge, usage: Usage) -> Usage:
    """Return *usage* with a cost of None where LiteLLM says 0 for want of a price; where it says none, as listed."""
    return evolve(usage, cost=None) if usage.cost == 0 and listed(judge.name) is None else priced(judge, usage)


async def complete(judge: Judge, request: Callable[[], Mapping[str, Any]]) -> tuple[Any, tuple[str, ...]]:
    """
    Send what *request* returns, with the parameters of *judge*, to its model: once, and on the background loop alone.

    Returns:
        The completion, and the names of parameters that the model does not take and that were left out.

    Raises:
        ModelError: With the typed failure; its message has no secrets in it.
    """
    from rubric.models.litellm_http import calling  # noqa: PLC0415 - it brings aiohttp and httpx, as LiteLLM does

    params = judge.params
    provider = vendor_of(judge.name)[1]
    extra = borrowed(provider, params)
    if _may_shorten():
        shorten_the_way(provider)
    check_way(library(), provider)
    secrets = (*extra.values(), *values_of(params))
    unsent: tuple[str, ...] = ()
    with calling(logprobs=judge.logprobs, secrets=secrets, is_watched=is_watched(library(), provider)) as call:
        try:
            wanted, unsent = _sendable(judge)
            _skip_unwanted_logging()
            given = {**request(), **wanted, **extra, **payer_of(provider, wanted)}
            call.tokens = given["max_tokens"] * given.get("n", 1)
            async with asyncio.timeout(judge.timeout):
                response = await library().acompletion(**given, timeout=judge.timeout, max_retries=0)
            if call.was_cut:
                response.choices[0].finish_reason = "length"
        except TimeoutError:
            raise ModelError(call.out_of_time(judge.timeout)) from None
        except Exception as error:  # noqa: BLE001 - whatever it was, it becomes a typed failure
            if call.completion is None:
                raise ModelError(call.failure_of(error)) from None  # the cause may hold keys
            # LiteLLM raises over a text in parts, say, and over an error beside choices forgets what they have cost.
            response = call.completion
    return response, unsent


def _skip_unwanted_logging() -> None:
    """Spare each call LiteLLM's own log records, unless the user has registered a callback for them."""
    litellm = library()
    if litellm.callbacks or litellm.success_callback or litellm.failure_callback:
        return
    try:
        from litellm._internal_context import is_internal_call  # noqa: PLC0415
    except ImportError:  # an older LiteLLM logs always
        return
    is_internal_call.set(True)


def _request(ask: Ask) -> dict[str, Any]:
    model = ask.judge.name
    request = {
        "model": model,
        "messages": chat(ask, cache_control=_wants_cache_control(model)),
        "max_tokens": ask.max_tokens,
    }
    if ask.n > 1 and "n" in _supported(model):
        request["n"] = ask.n
    return request


@lru_cache(maxsize=256)
def _first_form(model: str) -> Form:
    name, provider = vendor_of(model)
    takes = bool(library().supports_response_schema(model=name, custom_llm_provider=provider or None))
    has_format = "response_format" in _supported(model)
    return first_form(provider, has_format=has_format, takes_schema=takes, is_listed=listed(model) is not None)


@lru_cache(maxsize=256)
def _wants_cache_control(model: str) -> bool:
    name, provider = vendor_of(model)
    if provider != "anthropic" and not (provider in _HOSTS_OF_CLAUDE and "claude" in name):
        return False
    return bool(library().utils.supports_prompt_caching(model=name, custom_llm_provider=provider))


@lru_cache(maxsize=256)
def _supported(model: str) -> frozenset[str]:
    name, provider = vendor_of(model)
    return frozenset(library().get_supported_openai_params(model=name, custom_llm_provider=provider or None) or ())


@Memo
def _sendable(judge: Judge) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the parameters of *judge* that its model takes, and the names of those that it does not."""
    alternatives = {"logprobs": True, "top_logprobs": _ALTERNATIVES} if judge.logprobs else {}
    given = {"temperature": judge.temperature, "seed": judge.seed, **alternatives, **thaw(judge.params)}
    wanted = {name: value for name, value in given.items() if value is not None}
    effort = {name: wanted[name] for name in ("reasoning_effort", "thinking") if name in wanted}
    unsent = tuple(name for name, value in wanted.items() if not _takes(judge.name, {**effort, name: value}, name))
    return {name: value for name, value in wanted.items() if name not in unsent}, unsent


def _takes(model: str, params: dict[str, Any], name: str) -> bool:
    if name in _LITELLMS or name not in library().utils.DEFAULT_CHAT_COMPLETION_PARAM_VALUES:
        return True  # how LiteLLM is to call, or the vendor's own: no parameter of OpenAI's
    if name not in _supported(model):
        return False
    bare, provider = vendor_of(model)
    try:
        library().utils.get_optional_params(model=bare, custom_llm_provider=provider, **params)
    except Exception as error:  # noqa: BLE001 - other troubles belong to the request itself
        return type(error).__name__ not in _UNSENDABLE
    return True
