"""
What LiteLLM's ways to vendors are: the short one to OpenAI, and those that do not lead over httpx.

LiteLLM has two ways to OpenAI and to those who speak its protocol: through OpenAI's client library, or, where
`EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER` is true, through the HTTP client that it has for most other vendors. The
second takes a third less of CPU time. It leaves out the headers that say which organisation and project pays, so they
are given with the call; and it does not lead to a few small vendors, which is said where they are asked.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

from rubric.errors import ModelError
from rubric.exchanges import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_way", "is_watched", "payer_of", "shorten_the_way"]

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
