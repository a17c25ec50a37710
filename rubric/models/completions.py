"""From a chat completion, in the shape that LiteLLM gives to all vendors', to a reply, or to what it holds."""

from __future__ import annotations

import math
from typing import Any

from rubric.errors import ModelError
from rubric.exchanges import Failure, Reply, TokenLogprob, Usage

__all__ = ["choice_of", "clean", "finish_of", "refusal_of", "reply_from", "usage_of"]


def reply_from(response: Any, unsent: tuple[str, ...] = ()) -> Reply:
    """
    Return the reply that *response* holds.

    A refusal, in the model's own words or by a filter, ends as `refusal`; a text that was cut, as `length`.

    Args:
        unsent: The parameters that were left out of the request.

    Raises:
        ModelError: It holds none; the failure keeps the usage.
    """
    usage, choice = usage_of(response), choice_of(response)
    text, refusal, finish = clean(choice.message.content), refusal_of(choice.message), finish_of(choice)
    model, several, logprobs = str(response.model or ""), _texts(response), _logprobs(choice)
    if refusal or finish == "content_filter":
        finish, refusal = "refusal", refusal or "stopped by a content filter"
    elif finish != "length" and not any(said.strip() for said in (text or "", *several)):
        raise ModelError(Failure("bad_response", f"the reply is empty (finish: {finish})", usage=usage))
    return Reply(text, finish, refusal, usage, model, unsent, logprobs, several)


def _texts(response: Any) -> tuple[str, ...]:
    """Return the texts of all choices, where there is more than one."""
    choices = response.choices
    return tuple(clean(choice.message.content) or "" for choice in choices) if len(choices) > 1 else ()


def _logprobs(choice: Any) -> tuple[TokenLogprob, ...] | None:
    """Return the tokens of *choice* with their probabilities; None unless all are there: half of them would mislead."""
    content = getattr(getattr(choice, "logprobs", None), "content", None)
    try:
        return tuple((*_token(entry), tuple(map(_token, entry.top_logprobs or ()))) for entry in content or ()) or None
    except (AttributeError, TypeError, ValueError):
        return None


def _token(entry: Any) -> tuple[str, float]:
    logprob = float(entry.logprob)
    if math.isnan(logprob):
        msg = "no probability"
        raise ValueError(msg)
    return clean(entry.token) or "", logprob


def choice_of(response: Any) -> Any:
    """Return the first choice of *response*; raise `ModelError` if it has none."""
    if not response.choices:
        raise ModelError(Failure("bad_response", "the reply has no choices", usage=usage_of(response)))
    return response.choices[0]


def clean(content: Any) -> str | None:
    """Return *content* as text that can be encoded: a lone surrogate becomes the replacement character."""
    if not isinstance(content, str):
        return None
    return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def refusal_of(message: Any) -> str:
    """Return what the model said instead of answering; empty if it did not refuse."""
    # Where it stands depends on the version of LiteLLM.
    fields = getattr(message, "provider_specific_fields", None) or {}
    return clean(fields.get("refusal") or getattr(message, "refusal", None)) or ""


def finish_of(choice: Any) -> str:
    """Return why the reply ended, in the vendor's own word where LiteLLM has turned an unknown one into `stop`."""
    mapped = choice.finish_reason or "stop"
    native = (getattr(choice, "provider_specific_fields", None) or {}).get("native_finish_reason")
    return str(native) if native and mapped == "stop" else str(mapped)


def usage_of(response: Any) -> Usage:
    """Return what *response* says that it used; unmetered if it says nothing."""
    said = getattr(response, "usage", None)
    sent, back = (getattr(said, name, 0) or 0 for name in ("prompt_tokens", "completion_tokens"))
    if not sent and not back:
        return Usage(calls=1, cost=None, unmetered=1)
    cached = getattr(getattr(said, "prompt_tokens_details", None), "cached_tokens", 0) or 0
    return Usage(1, sent, cached, back, response._hidden_params.get("response_cost"))  # noqa: SLF001 - where the cost is
