"""
The one parser of a chat completion: plain data, or LiteLLM's objects of the same form, to a reply.

Vendors and servers of OpenAI's protocol differ in where things stand and in what they are called. All of that is in the
tables of this module, so that a payload reads alike whether it came straight or through LiteLLM.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from attrs import evolve

from rubric.errors import ModelError
from rubric.exchanges import Failure, Reply, TokenLogprob, Usage
from rubric.models.bodies import error_in

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["at", "choice_of", "clean", "finish_of", "reply_from", "said_in", "usage_of"]

_FINISHES = {
    word: finish
    for finish, words in {
        "stop": "stop eos eos_token end_turn stop_sequence complete completed finish_reason_unspecified",
        "length": "length max_tokens max_output_tokens max_length model_length compaction "
        "model_context_window_exceeded",
        "content_filter": "content_filter content_filtered refusal safety recitation language other blocklist "
        "prohibited_content spii sensitive error_toxic guardrail_intervened escalation no_image image_safety "
        "image_prohibited_content image_recitation image_other",
        "tool_calls": "tool_calls tool_call tool_use",
        "error": "error abort aborted network_error insufficient_system_resource malformed_response",
    }.items()
    for word in words.split()
}
"""Why a reply ended, in lower case: what vendors call it, and what it is called here. Other words stay as they are."""

_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", "thinking_blocks")

_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),  # OpenAI, Azure, xAI, Groq, Mistral, Qwen, vLLM, OpenRouter
    ("input_tokens_details", "cached_tokens"),  # the Responses API
    ("prompt_cache_hit_tokens",),  # DeepSeek
    ("cached_tokens",),  # Moonshot, Together
    ("cache_read_input_tokens",),  # Anthropic
)
_MOST_TOKENS = 10**9  # of which no reply has so many; arithmetic with a number of 4,000 digits raises


def reply_from(response: Any, unsent: tuple[str, ...] = (), secrets: Iterable[str] = ()) -> Reply:
    """
    Return the reply that *response* holds.

    A refusal, in the model's own words or by a filter, ends as `refusal`; a text that was cut, as `length`.

    Args:
        unsent: The parameters that were left out of the request.
        secrets: What must not be shown in a failure.

    Raises:
        ModelError: It holds none; the failure keeps the usage.
    """
    usage, choice = usage_of(response), choice_of(response, secrets)
    texts = [said_in(each, usage) for each in at(response, "choices")]
    (text, refusal), finish, model = texts[0], finish_of(choice), at(response, "model")
    if refusal or finish == "content_filter":
        finish, refusal = "refusal", refusal or "stopped by a content filter"
    elif finish != "length" and not any((each or "").strip() for each, _ in texts):
        thought = ", nothing but reasoning" if any(at(at(choice, "message"), name) for name in _THOUGHT_FIELDS) else ""
        raise ModelError(Failure("bad_response", f"the reply is empty (finish: {finish}{thought})", usage=usage))
    several = tuple(each or "" for each, _ in texts) if len(texts) > 1 else ()
    model = model if isinstance(model, str) else ""
    return Reply(text, finish, refusal, usage, model, unsent, _logprobs(choice), several)


def at(value: Any, name: str) -> Any:
    """Return what *value*, an object of JSON or of LiteLLM's, has under *name*; None if nothing."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def choice_of(response: Any, secrets: Iterable[str] = ()) -> Any:
    """
    Return the first choice of *response*.

    Raises:
        ModelError: It has none; there is an error instead, or beside it; or the server broke the reply off.
    """
    choices, usage = at(response, "choices"), usage_of(response)
    good = isinstance(choices, list) and bool(choices) and all(_is_choice(choice) for choice in choices)
    error = at(response, "error") or at(response, "errors") or (_further(choices[0], "error") if good else None)
    if not error and not good and any(at(response, name) for name in ("message", "msg", "detail")):
        error = response
    if error:
        failure = error_in(error, secrets)
        raise ModelError(failure if usage.unmetered else evolve(failure, usage=usage))
    if not good:
        said = "the reply has no choices" if not choices else "what came back is no chat completion"
        raise ModelError(Failure("bad_response", said, usage=usage))
    if (finish := finish_of(choices[0])) == "error":
        raise ModelError(Failure("bad_response", f"the server broke the reply off (finish: {finish})", usage=usage))
    return choices[0]


def _is_choice(choice: Any) -> bool:
    message = at(choice, "message")
    return isinstance(message, dict) or hasattr(message, "content")


def said_in(choice: Any, usage: Usage) -> tuple[str | None, str]:
    """
    Return the text of *choice*, None where it has none, and what the model said instead of answering.

    Raises:
        ModelError: Its content is neither text nor parts that hold some; *usage* goes with the failure.
    """
    message = at(choice, "message")
    content, refusals = at(message, "content"), [_further(message, "refusal")]
    if isinstance(content, list):
        texts: list[str] = []
        for part in content:
            kind, text = at(part, "type"), part if isinstance(part, str) else at(part, "text")
            if kind == "refusal":
                refusals.append(at(part, "refusal"))
            elif isinstance(text, str) and kind not in _THOUGHTS:
                texts.append(text)
            elif kind not in _THOUGHTS:
                raise ModelError(
                    Failure("bad_response", f"a part of the reply is no text: {kind!r}"[:100], usage=usage)
                )
        content = "".join(texts) if texts else None
    if content is not None and not isinstance(content, str):
        raise ModelError(Failure("bad_response", f"the reply's content is a {type(content).__name__}", usage=usage))
    return clean(content), next((said for refusal in refusals if (said := clean(refusal))), "")


def _further(value: Any, name: str) -> Any:
    """Return what *value* has under *name*, a field that is not OpenAI's: LiteLLM may have put it aside."""
    return at(at(value, "provider_specific_fields"), name) or at(value, name)


def clean(content: Any) -> str | None:
    """Return *content* as text that can be encoded: a lone surrogate becomes the replacement character."""
    if not isinstance(content, str):
        return None
    return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def finish_of(choice: Any) -> str:
    """Return why *choice* ended; the vendor's own word decides where a gateway, or LiteLLM, has made a `stop` of it."""
    finish = _finish(at(choice, "finish_reason"))
    return _finish(_further(choice, "native_finish_reason")) if finish == "stop" else finish


def _finish(word: Any) -> str:
    return _FINISHES.get(word.lower(), word) if isinstance(word, str) and word else "stop"


def usage_of(response: Any) -> Usage:
    """Return what *response* says that was used; unmetered if it says nothing. The cost is LiteLLM's, else unknown."""
    said = at(response, "usage")
    sent, back = (_count(at(said, name)) for name in ("prompt_tokens", "completion_tokens"))
    if not sent and not back:  # the names of Anthropic, who counts apart what the cache has, and of the Responses API
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        sent, back = sum(_count(at(said, name)) for name in names), _count(at(said, "output_tokens"))
    if not sent and not back:
        return Usage(calls=1, cost=None, unmetered=1)
    cached = next((count for path in _CACHED if (count := _count(_along(said, path)))), 0)
    hidden = at(response, "_hidden_params") if not isinstance(response, dict) else None
    return Usage(1, sent, min(cached, sent), back, at(hidden, "response_cost"))


def _along(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = at(value, name)
    return value


def _count(value: Any) -> int:
    """Return *value* as a number of tokens: 0 where it is none that can be believed."""
    try:
        count = 0 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return count if 0 < count <= _MOST_TOKENS else 0


def _logprobs(choice: Any) -> tuple[TokenLogprob, ...] | None:
    """Return the tokens of *choice* with their probabilities; None unless all are there: half of them would mislead."""
    tokens = at(at(choice, "logprobs"), "content")
    if not isinstance(tokens, list):
        return None
    try:
        return tuple((*_token(each), tuple(map(_token, at(each, "top_logprobs") or ()))) for each in tokens) or None
    except (TypeError, ValueError, OverflowError):
        return None


def _token(said: Any) -> tuple[str, float]:
    token, logprob = clean(at(said, "token")), float(at(said, "logprob"))
    if token is None or math.isnan(logprob):
        msg = "no token, or no probability"
        raise ValueError(msg)
    return token, min(logprob, 0.0)
