"""
LiteLLM, imported once and kept quiet, and the facts that it has about models and vendors.

Its import takes seconds, so it happens on the first call. The switches that are set then hold for the whole process:

| switch                                               | without it                                              |
|------------------------------------------------------|---------------------------------------------------------|
| `LITELLM_LOCAL_MODEL_COST_MAP`, `..._BETA_HEADERS`   | the import fetches files from the internet              |
| `LITELLM_MODE=PRODUCTION`                            | the import loads `.env` files into the environment      |
| `suppress_debug_info`, the logger at CRITICAL        | each failed call prints advice                          |
| `EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER`          | calls to OpenAI take a third more CPU time              |

Variables that the user has set win. The last switch sends calls to OpenAI, and to vendors of its protocol, through
LiteLLM's own HTTP client instead of OpenAI's library (the short way). It leaves out the headers that name the paying
organisation and project, so these are given with the call; and it does not lead to a few small vendors, for whom
`take_short_way` raises.
"""

from __future__ import annotations

import ctypes
import inspect
import logging
import os
import sys
import warnings
from functools import cache, lru_cache
from importlib.metadata import version
from threading import Lock
from typing import TYPE_CHECKING, Any

from rubric.errors import ModelError
from rubric.internals import background_loop
from rubric.models.threads import in_thread
from rubric.values.requests import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping


_SWITCHES = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",
}

_WARNINGS = (
    # pydantic, of LiteLLM's classes, some of which are built on their first use
    ".*conflict with protected namespace",
    ".*attribute on the instance is deprecated",
    ".*`ReadOnly` qualifier",
    # pydantic, of replies that are not a chat completions
    "Pydantic serializer warnings",
    # a deadline that ended a call before it had begun
    "coroutine '[^']*completion[^']*' was never awaited",
)

_library: Any = None
_hushed: Any = None
_ours = False
_importing = Lock()
_orphans: list[Any] = []


# -- the import -------------------------------------------------------------------------------------------


async def ready() -> None:
    """Import LiteLLM in a thread, so that neither the loop nor a deadline waits for it."""
    if _library is None:
        await in_thread((id(_importing),), _import, 1)  # a daemon, so that no exit waits for the import


def is_loaded() -> bool:
    """True if `library` returns at once."""
    return _library is not None


def library() -> Any:
    """Return LiteLLM, imported on the first call, and kept quiet."""
    global _hushed  # noqa: PLW0603 - like the filters
    if _library is None:
        _import()
    # The filters are checked on each call. Where warnings are errors, as in many test suites, they would come back as
    # failed calls; and code that restores the filters (`warnings.catch_warnings`, pytest after each test) removes ours.
    if _hushed not in warnings.filters:
        for message in _WARNINGS:
            warnings.filterwarnings("ignore", message)
        _hushed = warnings.filters[0]
    return _library


def _import() -> None:
    global _library, _ours  # noqa: PLW0603 - known at the import alone
    with _importing:  # of two first calls side by side, the second would take LiteLLM for the user's own import
        if _library is not None:
            return
        _ours = "litellm" not in sys.modules
        for name, value in _SWITCHES.items():
            os.environ.setdefault(name, value)
        import litellm  # noqa: PLC0415 - seconds, and half of the standard library
        from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport  # noqa: PLC0415

        from rubric.models.litellm_http import watch  # noqa: PLC0415 - it brings aiohttp and httpx, as LiteLLM does

        litellm.suppress_debug_info = True
        if _ours and "LITELLM_LOG" not in os.environ:
            logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
        watch(LiteLLMAiohttpTransport)
        background_loop.before_close(_close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forget_clients)
        _library = litellm


async def _close() -> None:
    from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER  # noqa: PLC0415

    try:
        await GLOBAL_LOGGING_WORKER.flush()
        await GLOBAL_LOGGING_WORKER.stop()
    finally:
        litellm = library()
        await litellm.close_litellm_async_clients()
        clients = litellm.in_memory_llm_clients_cache
        for client in [*clients.cache_dict.values()]:  # older releases leave out OpenAI's
            if inspect.iscoroutinefunction(close := getattr(client, "close", None)):
                await close()
        clients.flush_cache()


def _forget_clients() -> None:
    """Drop the parent's clients in a forked child: closing them would end connections that the parent still uses."""
    # A finaliser closes them, too, and takes their sockets out of the epoll that both processes share: the parent would
    # wait for ever for its next response. So they are kept, also when the child ends: Python empties modules then.
    clients = library().in_memory_llm_clients_cache
    if not _orphans:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_orphans))  # one reference that nothing takes back
    _orphans.extend(clients.cache_dict.values())
    clients.flush_cache()


# -- the short way to OpenAI ------------------------------------------------------------------------------

_SHORT = "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER"  # LiteLLM reads it on each call
_FIRST_SHORT = (1, 106)  # the first release whose short way was tried with all that can go wrong
_OPENAI = frozenset({"openai", "custom_openai"})
_OTHER_CLIENTS = frozenset({"azure_ai"})
_LACKING = frozenset({"aiml", "xinference"})


def take_short_way(provider: str) -> None:
    """Have LiteLLM take its short way from the first call to OpenAI on; refuse a *provider* it does not reach."""
    if provider == "openai" and _may_shorten():
        os.environ.setdefault(_SHORT, "True")
    if not _is_short() or not _is_passed(provider):
        return
    if provider in _LACKING or (provider not in _OPENAI and provider not in _providers()):
        cure = f"set {_SHORT}=False to ask {provider} in a process that asks OpenAI, too"
        raise ModelError(Failure("bad_request", cure))


@cache
def _may_shorten() -> bool:
    """True if no other code uses LiteLLM here; shortening would change an OpenAI client that its user gives it."""
    return _ours and tuple(int(part) for part in version("litellm").split(".")[:2]) >= _FIRST_SHORT


def _is_short() -> bool:
    return os.environ.get(_SHORT, "").lower() == "true"


@cache
def _is_passed(provider: str) -> bool:
    if provider in _OPENAI or provider in library().openai_compatible_providers:
        return provider not in _OTHER_CLIENTS
    try:
        from litellm.llms.openai_like.json_loader import JSONProviderRegistry  # noqa: PLC0415 - after the switches
    except ImportError:  # an older LiteLLM has all of them in its list
        return False
    return bool(JSONProviderRegistry.exists(provider))


def payer_of(provider: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the argument with the headers that OpenAI's client library would add by itself; *given* ones win."""
    if provider != "openai" or not _is_short():
        return {}
    headers = payer_headers(given, os.environ) | {**(given.get("extra_headers") or {})}
    return {"extra_headers": headers} if headers else {}


def payer_headers(given: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that name who pays OpenAI: *given* parameters go before *environ*."""
    organization = given.get("organization") or environ.get("OPENAI_ORGANIZATION") or environ.get("OPENAI_ORG_ID")
    payer = {"OpenAI-Organization": organization, "OpenAI-Project": environ.get("OPENAI_PROJECT_ID")}
    return {name: str(value) for name, value in payer.items() if value}


def skip_unwanted_logging() -> bool:
    """Spare a call LiteLLM's own log records; False if the user has registered a callback, a cache or a rule."""
    litellm = library()
    if litellm.callbacks or litellm.success_callback or litellm.failure_callback:
        return False
    try:
        from litellm._internal_context import is_internal_call  # noqa: PLC0415
    except ImportError:  # an older LiteLLM logs always
        return False
    is_internal_call.set(True)
    return not (litellm.cache or litellm.post_call_rules)


# -- facts ------------------------------------------------------------------------------------------------

_ELSEWHERE = frozenset({"aiohttp_openai", "sagemaker", "sagemaker_chat", "vertex_ai", "vertex_ai_beta"})


@lru_cache(maxsize=256)
def vendor_of(model: str) -> tuple[str, str]:
    """Return the vendor's own name of *model* and LiteLLM's name of the vendor; an unknown one is empty."""
    try:
        name, provider, *_ = library().get_llm_provider(model)
    except Exception:  # noqa: BLE001 - it raises the error of the request, which says it better
        return model, ""
    return name, provider


@lru_cache(maxsize=256)
def price_entry(model: str) -> Mapping[str, Any] | None:
    """Return the entry of *model* in LiteLLM's price list; None if it has no price."""
    # For a name that looks like one of a vendor's, or a model whose price has steps, LiteLLM makes up a price of 0.
    name, provider = vendor_of(model)
    try:
        info: Mapping[str, Any] = library().get_model_info(name, custom_llm_provider=provider or None)
    except Exception:  # noqa: BLE001 - an unlisted model; the class of the error moves between versions
        return None
    entry = library().model_cost.get(info.get("key")) or {}
    prices = (entry.get("input_cost_per_token"), entry.get("output_cost_per_token"))
    return None if None in prices else info


@lru_cache(maxsize=256)
def supported_parameters(model: str) -> frozenset[str]:
    """Return the parameters of OpenAI's that *model* takes."""
    name, provider = vendor_of(model)
    return frozenset(library().get_supported_openai_params(model=name, custom_llm_provider=provider or None) or ())


def is_watched(provider: str) -> bool:
    """True if LiteLLM is certain to ask *provider* over httpx, and not with a library of its own or the user's."""
    return provider in _providers() and provider not in _ELSEWHERE


@cache
def _providers() -> frozenset[str]:
    return frozenset(provider.value for provider in library().LlmProviders)
