"""A chat with a LiteLLM model, one turn at a time: for what makes candidates, not for what judges them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from attrs import evolve

from rubric import loops
from rubric.errors import ModelError
from rubric.judges import Judge
from rubric.models.credentials import VENDORS, borrowed
from rubric.models.litellm import LiteLLMModel, complete, library, vendor_of
from rubric.models.turns import ToolRequest, Turn, turn_from
from rubric.secrets import values_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ToolRequest", "Turn", "chat", "missing_key", "take_turn"]

_BRINGS_ITS_OWN = frozenset({"api_key", "api_base", "base_url", "azure_ad_token"})
_INSTEAD_OF_KEYS = {
    "anthropic": ("ANTHROPIC_AUTH_TOKEN",),
    "azure": ("AZURE_AD_TOKEN", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"),
}


async def chat(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    temperature: float | None = None,
    max_tokens: int = 4096,
    timeout: float = 60,  # noqa: ASYNC109 - the same deadline goes to LiteLLM
    params: Mapping[str, Any] | None = None,
) -> Turn:
    """
    Send *messages* to *model* and return its turn: one attempt.

    Args:
        model: A LiteLLM name.
        messages: In the form of OpenAI's chat API.
        tools: Functions that the model may want called, in the same form.
        temperature: As the vendor reads it; None sends none.
        max_tokens: The longest turn.
        timeout: Seconds, from sending to the last byte.
        params: Further parameters, as LiteLLM names them.

    Raises:
        ModelError: With the typed failure; its message has no secrets in it.
    """
    asked = Judge(model, temperature=temperature, max_tokens=max_tokens, timeout=timeout, params=params or {})
    return await take_turn(asked, messages, tools)


async def take_turn(
    asked: Judge, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
) -> Turn:
    """Do what `chat` does, with the model and the settings of *asked*, which judges nothing here."""
    await LiteLLMModel().ready()
    return await loops.on_background(_turn(asked, messages, tools))


async def _turn(asked: Judge, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Turn:
    response, unsent = await complete(asked, lambda: _request(asked, messages, tools))
    try:
        return turn_from(response, unsent, values_of(asked.params))
    except ModelError as error:
        if error.failure.kind != "truncated":
            raise
        cure = f"{error.failure.message}; give more than max_tokens={asked.max_tokens}"
        raise ModelError(evolve(error.failure, message=cure)) from None


def _request(asked: Judge, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    request = {"model": asked.name, "messages": [dict(message) for message in messages], "max_tokens": asked.max_tokens}
    return {**request, "tools": [dict(tool) for tool in tools]} if tools else request


def missing_key(asked: Judge, environ: Mapping[str, str] = os.environ) -> str:
    """
    Return the variables of which one would have to be set for *asked* to be let in, in words; empty if none is missing.

    Whoever brings a key or an address is believed, and so are vendors that know other ways in than a key.
    """
    if _BRINGS_ITS_OWN & asked.params.keys():
        return ""
    provider = vendor_of(asked.name)[1]
    names = _key_names(asked.name, provider)
    instead = _INSTEAD_OF_KEYS.get(provider, ())
    if borrowed(provider, asked.params, environ).get("api_key") or any(environ.get(n) for n in (*names, *instead)):
        return ""
    return " or ".join(names)


def _key_names(model: str, provider: str) -> tuple[str, ...]:
    vendor = next((vendor for vendor in VENDORS if vendor.provider == provider), None)
    if vendor is None:
        missing = library().validate_environment(model=model)["missing_keys"]
        return tuple(name for name in missing if name.endswith("_API_KEY"))
    native = tuple(name for _, names in vendor.native for name in names)
    return tuple(dict.fromkeys(n for n in (*vendor.keys, *native) if n.endswith(("_API_KEY", "_TOKEN"))))
