"""The messages of an ask in the form that chat APIs take, with the marks and the images that go with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rubric.exchanges import Ask, Outgoing

__all__ = ["chat"]


def chat(ask: Ask, *, cache_control: bool = False) -> list[dict[str, Any]]:
    """
    Return the messages of *ask*: each content is one text where that will do, else a list of blocks.

    Args:
        cache_control: Mark the end of what all asks about one candidate share, for vendors whose prefix cache wants
            to be told (Anthropic). Others find the same prefix by themselves.
    """
    *before, last = ask.messages
    messages = [{"role": message.role, "content": message.text} for message in before]
    marked = cache_control and len(last.parts) > 1
    content = _blocks(last, ask.images, marked=marked) if marked or ask.images else last.text
    return [*messages, {"role": last.role, "content": content}]


def _blocks(message: Outgoing, images: tuple[str, ...], *, marked: bool) -> list[dict[str, Any]]:
    # Images come first: what follows the tail would differ in its place from ask to ask.
    blocks: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": image}} for image in images]
    if not marked:
        return [*blocks, _text(message.text)]
    shared, *tail = message.parts
    return [*blocks, {**_text(shared), "cache_control": {"type": "ephemeral"}}, _text("".join(tail))]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
