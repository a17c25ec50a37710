"""The messages of an ask in the form that chat APIs take, with the marks that some vendors want."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rubric.exchanges import Ask

__all__ = ["chat"]


def chat(ask: Ask, *, cache_control: bool = False) -> list[dict[str, Any]]:
    """
    Return the messages of *ask* as its `chat` does, with marks where they are wanted.

    Args:
        cache_control: Mark the end of what all asks about one candidate share, for vendors whose prefix cache wants
            to be told (Anthropic). Others find the same prefix by themselves.
    """
    messages = ask.chat()
    shared, *tail = ask.messages[-1].parts
    if not (cache_control and tail):
        return messages
    *before, last = messages
    images = last["content"][:-1] if ask.images else []
    marked = {"type": "text", "text": shared, "cache_control": {"type": "ephemeral"}}
    return [*before, {**last, "content": [*images, marked, {"type": "text", "text": "".join(tail)}]}]
