"""
The context windows of models: whether a prompt is certain to be too long, before it is sent.

A judge may state its window (`Judge(context=8192)`); else the list that comes with LiteLLM has it, as the most tokens
of a prompt. The list is read as a file: importing LiteLLM takes seconds. Tokens are counted only of prompts that have
more bytes than the window has tokens: no tokeniser makes more tokens than bytes.

A count is exact for OpenAI's models. For others it is an estimate, so a prompt is refused where the count is half as
much again as the window; between the two the server decides.
"""

from __future__ import annotations

import asyncio

from rubric.models.offline import OFFLINE
from rubric.models.pricing import entry_for, model_name
from rubric.values.clients import client_model_name
from rubric.values.judges import Judge
from rubric.values.requests import Ask, Failure


def window_of(judge: Judge, /) -> int | None:
    """Return how many tokens a prompt for *judge* may have; None if that is unknown."""
    if judge.context is not None:
        return judge.context
    name = judge.model if isinstance(judge.model, str) else client_model_name(judge.model) if judge.client else ""
    tokens = entry_for(name).get("max_input_tokens") if name and name != OFFLINE else None
    return tokens if isinstance(tokens, int) and tokens > 0 else None


_FLAGS = {"image": "vision", "audio": "audio_input", "video": "video_input", "document": "pdf_input"}


def deaf_to(ask: Ask) -> Failure | None:
    """Return why *ask* is not sent, if its model takes none of a medium that the ask has, by LiteLLM's list."""
    model = model_name(ask.judge)
    entry = entry_for(model) if model and model != OFFLINE else {}
    held = {media.kind: name or f"an {media.kind}" for name, media in reversed(ask.media)}
    lacks = next(
        (kind for kind in _FLAGS if kind in held and entry and not entry.get(f"supports_{_FLAGS[kind]}")), None
    )
    if lacks is None:
        return None
    message = f"not sent: {model} takes no {lacks}, by LiteLLM's list, and the prompt has {held[lacks]}"
    criterion = ask.criteria[0].id if len(ask.criteria) == 1 else ""
    cure = f"choose a model that does (supports_{_FLAGS[lacks]})"
    return Failure("unsupported", f"{message}; {cure}", judge=ask.judge.name, criterion=criterion)


def _texts(ask: Ask) -> list[str]:
    return [*(part for message in ask.messages for part in message.parts), *ask.turns, ask.tools]


def may_overflow(ask: Ask, window: int) -> bool:
    """True if *ask* has more bytes than *window* has tokens, so that they have to be counted."""
    texts = _texts(ask)
    if 4 * sum(map(len, texts)) <= window:  # a character has four bytes at most
        return False
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) > window


async def refusal(ask: Ask, window: int) -> Failure | None:
    """Return why *ask* is not sent, if it is certain to exceed *window*. A long count runs in a thread."""
    from rubric.models.token_counts import load_tokeniser  # noqa: PLC0415 - for long prompts

    if model := model_name(ask.judge):
        await load_tokeniser(model)
    return await asyncio.to_thread(_refusal, ask, window)


def _refusal(ask: Ask, window: int) -> Failure | None:
    from rubric.models.token_counts import count, is_exact  # noqa: PLC0415 - as above

    model = model_name(ask.judge)
    tokens, exact = sum(count(model, text) for text in _texts(ask)), is_exact(model)
    if tokens <= (window if exact else window + window // 2):
        return None
    about = "" if exact else "about "
    cure = "choose a model that reads more, let it look things up with Rubric(max_steps=8), or ask of segments: "
    cure += f"Criterion(..., on='any segment') and Judge(..., segment_tokens={max(1_000, window // 2)})"
    message = f"not sent: the prompt has {about}{tokens:,} tokens, and {ask.judge.name} reads {window:,}; {cure}"
    criterion = ask.criteria[0].id if len(ask.criteria) == 1 else ""
    return Failure("context_window", message, judge=ask.judge.name, criterion=criterion)
