"""The values of assertions: files read, variables put in."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from attrs import frozen

from rubric.errors import DefinitionError
from rubric.formats.includes.including import is_reference, read_text_at
from rubric.formats.includes.references import is_code
from rubric.formats.promptfoo.parts import Part
from rubric.formats.promptfoo.rubric_prompts import Slots, UnsupportedPromptError

__all__ = ["Context", "content_of", "rendered"]


@frozen
class Context:
    """
    What the assertions of a test are read with.

    Args:
        slots: Its variables.
        provider: Who grades, unless an assertion names another.
        prompt: The `rubricPrompt`, unless an assertion has another.
    """

    slots: Slots
    provider: Part | None = None
    prompt: Part | None = None


def content_of(value: Part, context: Context) -> Part | None:
    """Return *value* with files read and templates rendered, all the way down; None if it was noted why not."""
    if is_reference(value.value):
        found = _file(value)
        return None if found is None else found.holding(_filled(found.value, found, context))
    try:
        return value.holding(_filled(value.value, value, context))
    except DefinitionError as problem:
        value.error(problem)
        return None


def _file(value: Part) -> Part | None:
    suffix = PurePosixPath(value.value).suffix
    if is_code(value.value):
        raise UnsupportedPromptError(f"code: {value.value}")
    if suffix in (".json", ".yaml", ".yml"):
        return value.followed()
    text = read_text_at(value.value, value.loading, value.notes, value.path)
    return None if text is None else value.holding(text.strip())


def _filled(value: Any, place: Part, context: Context) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, place, context) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, place, context) for inner in value]
    return place.filled(value, context.slots.variables) if isinstance(value, str) else value


def rendered(text: str, place: Part, context: Context) -> str | None:
    content = content_of(place.holding(text), context)
    return None if content is None else str(content.value)
