"""
Templates of assertions: a `rubricPrompt` as a template of ours, and values with files read and variables put in.

Plain slots such as `{{output}}`, `{{rubric}}` and `{{question}}` of a prompt stay slots: values are put in once, when a
candidate is graded, and none of them is ever read as a template. Anything else is rendered while loading.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import Any, get_args

from attrs import field, frozen

from rubric.errors import DefinitionError
from rubric.formats.cursor import Cursor
from rubric.formats.includes import is_code, is_reference, read_text_at
from rubric.formats.promptfoo.texts import as_text, filled, followed
from rubric.formats.templates.render import is_template, names_in, render
from rubric.internals.text import shorten
from rubric.values.requests import Role

_BUILT_IN = frozenset({"output", "rubric"})

_OURS = frozenset({
    "candidate", "input", "reference", "context", "conversation", "tool_calls", "file_changes", "guidelines",
    "criterion", "reply",
})  # fmt: skip
"""Slots of ours that promptfoo does not have: a variable of that name gets another name."""

SLOT = re.compile(r"\{\{\s*([^\W\d]\w*(?:\.\w+)*)\s*\}\}")
_RAW_OR_PLAIN = re.compile(r"\{%\s*raw\s*%\}(.*?)\{%\s*endraw\s*%\}|\{\{-?\s*([^\W\d]\w*)\s*-?\}\}", re.DOTALL)

_BOUND = re.compile(r"\{%-?\s*(?:for\s+(.+?)\s+in|set\s+([^=%]+?)\s*=)\s")
"""What a loop or a `set` gives a name to."""

_COMMENT = re.compile(r"^[ \t]*//.*$", re.MULTILINE)


class UnsupportedPromptError(Exception):
    """A prompt that this library cannot send as it is meant; the text says what it needs."""


@frozen
class Slots:
    """The variables of a test, and the *extra* ones that its prompts turned out to need."""

    variables: dict[str, Any]
    extra: dict[str, str] = field(factory=dict)

    def _named(self, name: str) -> str:
        """Return the slot for the variable *name*, or for promptfoo's own of that name."""
        if name in _BUILT_IN or name not in _OURS:
            return name
        self.extra[f"vars.{name}"] = as_text(self.variables[name])
        return f"vars.{name}"

    def _verbatim(self, text: str) -> str:
        """Return *text* with a slot in the place of each part that looks like one."""
        return SLOT.sub(lambda match: f"{{{{ {self._holding(match[0])} }}}}", text)

    def _holding(self, text: str) -> str:
        """Return a slot whose value is *text*."""
        for name, value in self.extra.items():
            if value == text and name.startswith("verbatim."):
                return name
        name = f"verbatim.{len(self.extra)}"
        self.extra[name] = text
        return name

    def filled(self, template: str) -> str:
        """
        Return *template* with only plain slots left in it.

        Raises:
            DefinitionError: It is no template, or computes with values that are known only when a candidate is graded.
        """
        mark = _mark_for(template, self.variables)
        own = _bound(template)
        kept: list[str] = []

        def keep(match: re.Match[str]) -> str:
            raw, name = match.groups()
            if name in own:
                return match[0]
            if raw is None and name not in _BUILT_IN and name not in self.variables:
                return ""
            kept.append(self._verbatim(raw) if raw is not None else f"{{{{ {self._named(name)} }}}}")
            return f"{mark}{len(kept) - 1}{mark}"

        held = _RAW_OR_PLAIN.sub(keep, template)
        if is_template(held):
            held = self._rendered(held)
        return re.sub(f"{mark}(\\d+){mark}", lambda match: kept[int(match[1])], held)

    def _rendered(self, held: str) -> str:
        for name in _BUILT_IN & names_in(held):
            message = f"a template that computes with {name} is not read; only a plain {{{{ {name} }}}} is filled in"
            raise DefinitionError("", message)
        return self._verbatim(render(held, self.variables))


def _bound(template: str) -> frozenset[str]:
    """Return the names that *template* itself gives to something: those are no slots."""
    found = (name for pair in _BOUND.findall(template) for part in pair for name in part.split(","))
    return frozenset(name.strip() for name in found if name.strip())


def _mark_for(*texts: Any) -> str:
    """Return characters for private use that occur in none of *texts*."""
    whole, mark = as_text([*texts]), "\ue000"
    while mark in whole:
        mark += "\ue000"
    return mark


def template_of(part: Cursor, slots: Slots) -> str | None:
    """
    Return the `rubricPrompt` *part* as a template of ours; None, with an error noted, if it is none.

    Raises:
        UnsupportedPromptError: It needs code or pictures, which this library does not have.
    """
    found = _read(part)
    if found is None:
        return None
    return found.built(_of_text if isinstance(found.value, str) else _of_messages, found.value, slots)


def _read(part: Cursor) -> Cursor | None:
    if not is_reference(part.value):
        return part
    name = PurePosixPath(part.value.removeprefix("file://"))
    if is_code(name.name):
        raise UnsupportedPromptError(f"code: {part.value}")
    if name.suffix in (".yaml", ".yml"):
        return followed(part)
    text = read_text_at(part.value, part)
    return None if text is None else part.holding(text.strip() if name.suffix == ".txt" else text)


def _of_text(text: str, slots: Slots) -> str:
    messages = as_json_list(text)
    if messages is None:
        return slots.filled(text)
    return _of_messages(messages, slots)


def as_json_list(text: str) -> list[Any] | None:
    """Return the JSON list that *text* is, with or without `//` comments in it; None for any other text."""
    if not text.lstrip().startswith("["):
        return None
    for attempt in (text, without_comments(text), without_comments(text).replace('\\\\"', '\\"')):
        try:
            found = json.loads(attempt)
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, list) and found and isinstance(found[0], dict) else None
    return None


def without_comments(text: str) -> str:
    """Return *text* without the lines that are `//` comments."""
    return _COMMENT.sub("", text)


def _of_messages(messages: Any, slots: Slots) -> str:
    if not isinstance(messages, list) or not messages:
        raise DefinitionError("", "expected a prompt: a text, or a list of messages with role and content")
    made = [_message(index, message, slots) for index, message in enumerate(messages)]
    return json.dumps(made, ensure_ascii=False)


def _message(index: int, message: Any, slots: Slots) -> dict[str, str]:
    role, content = (message.get("role"), message.get("content")) if isinstance(message, dict) else (None, None)
    role = "system" if role == "developer" else role
    if not isinstance(role, str) or role not in get_args(Role) or not isinstance(content, str | list):
        allowed = "a message with a role (system, user, assistant) and a content"
        raise DefinitionError("", f"message {index + 1}: expected {allowed}, got {shorten(repr(message), 60)}")
    return {"role": role, "content": slots.filled(content if isinstance(content, str) else _joined(content))}


def _joined(content: list[Any]) -> str:
    """Return the texts of a content in parts."""
    for piece in content:
        if not isinstance(piece, dict) or piece.get("type") != "text" or not isinstance(piece.get("text"), str):
            kind = piece.get("type") if isinstance(piece, dict) else piece
            raise UnsupportedPromptError(f"{shorten(str(kind), 40)} in its rubricPrompt")
    return "\n".join(piece["text"] for piece in content)


@frozen
class Context:
    """
    The test around assertions, which they are read with.

    Args:
        slots: Its variables.
        provider: The grader, unless an assertion names another.
        prompt: The `rubricPrompt`, unless an assertion has another.
    """

    slots: Slots
    provider: Cursor | None = None
    prompt: Cursor | None = None


def content_of(value: Cursor, context: Context) -> Cursor | None:
    """Return *value* with files read and templates rendered, all the way down; None if it was noted why not."""
    if is_reference(value.value):
        found = _file(value)
        return None if found is None else found.holding(_filled(found.value, found, context))
    return value.built(lambda: value.holding(_filled(value.value, value, context)))


def _file(value: Cursor) -> Cursor | None:
    suffix = PurePosixPath(value.value).suffix
    if is_code(value.value):
        raise UnsupportedPromptError(f"code: {value.value}")
    if suffix in (".json", ".yaml", ".yml"):
        return followed(value)
    text = read_text_at(value.value, value)
    return None if text is None else value.holding(text.strip())


def _filled(value: Any, place: Cursor, context: Context) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, place, context) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, place, context) for inner in value]
    return filled(place, value, context.slots.variables) if isinstance(value, str) else value


def rendered(text: str, place: Cursor, context: Context) -> str | None:
    content = content_of(place.holding(text), context)
    return None if content is None else str(content.value)
