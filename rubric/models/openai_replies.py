"""From the body of a chat completion, which a stranger's server wrote, to a reply or a typed failure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rubric.errors import ModelError
from rubric.exchanges import Failure, Reply, TokenLogprob, Usage
from rubric.models.bodies import error_in, parsed
from rubric.models.classifying import words_of
from rubric.models.completions import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["reply_in"]


def reply_in(body: bytes, unsent: tuple[str, ...] = (), secrets: Iterable[str] = ()) -> Reply:
    """
    Return the reply that *body*, of an answer with status 200, holds.

    A refusal, in the model's own words or by a filter, ends as `refusal`; a text that was cut, as `length`.

    Args:
        unsent: The parameters that were left out of the request.
        secrets: What must not be shown in a failure.

    Raises:
        ModelError: It holds none; the failure keeps the usage.
    """
    data = _completion(body, secrets)
    usage = _usage(data.get("usage"))
    choices = _choices(data, usage, secrets)
    texts = [_text(choice["message"], usage) for choice in choices]
    first, text = choices[0], texts[0]
    finish, refusal = _finish(first), clean(first["message"].get("refusal")) or ""
    if refusal or finish == "content_filter":
        finish, refusal = "refusal", refusal or "stopped by a content filter"
    elif finish != "length" and not any((text or "").strip() for text in texts):
        raise ModelError(Failure("bad_response", f"the reply is empty (finish: {finish})", usage=usage))
    several = tuple(text or "" for text in texts) if len(texts) > 1 else ()
    model = data.get("model")
    logprobs = _logprobs(first.get("logprobs"))
    return Reply(text, finish, refusal, usage, model if isinstance(model, str) else "", unsent, logprobs, several)


def _completion(body: bytes, secrets: Iterable[str]) -> dict[str, Any]:
    data = parsed(body, secrets)
    if not isinstance(data, dict):
        said = words_of(body[:1000].decode("utf-8", "replace"), secrets)
        raise ModelError(Failure("bad_response", f"what came back is no chat completion: {said}"))
    return data


def _choices(data: dict[str, Any], usage: Usage, secrets: Iterable[str]) -> list[dict[str, Any]]:
    choices = data.get("choices")
    if isinstance(choices, list) and choices and all(_is_choice(choice) for choice in choices):
        return choices
    if error := data.get("error"):
        raise ModelError(error_in(error, secrets))
    said = "the reply has no choices" if not choices else "what came back is no chat completion"
    raise ModelError(Failure("bad_response", said, usage=usage))


def _is_choice(choice: object) -> bool:
    return isinstance(choice, dict) and isinstance(choice.get("message"), dict)


def _text(message: dict[str, Any], usage: Usage) -> str | None:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return clean(content)
    raise ModelError(Failure("bad_response", f"the reply's content is a {type(content).__name__}", usage=usage))


def _finish(choice: dict[str, Any]) -> str:
    finish = choice.get("finish_reason")
    if not isinstance(finish, str) or not finish:
        return "stop"
    return "length" if finish == "max_tokens" else finish


def _usage(said: object) -> Usage:
    """Return what the server says that was used; unmetered if it says nothing. What it cost, it does not say."""
    if not isinstance(said, dict):
        return Usage(calls=1, cost=None, unmetered=1)
    sent, back = _count(said.get("prompt_tokens")), _count(said.get("completion_tokens"))
    if not sent and not back:
        return Usage(calls=1, cost=None, unmetered=1)
    details = said.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else said.get("prompt_cache_hit_tokens")
    return Usage(1, sent, min(_count(cached), sent), back, None)


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _logprobs(said: object) -> tuple[TokenLogprob, ...] | None:
    """Return the tokens with their probabilities; None unless all are there, since half of them would mislead."""
    tokens = said.get("content") if isinstance(said, dict) else None
    if not isinstance(tokens, list) or not tokens:
        return None
    try:
        return tuple((*_token(token), tuple(map(_token, token.get("top_logprobs") or ()))) for token in tokens)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _token(said: Any) -> tuple[str, float]:
    logprob = float(said["logprob"])
    if math.isnan(logprob):
        msg = "no probability"
        raise ValueError(msg)
    return clean(str(said["token"])) or "", logprob
