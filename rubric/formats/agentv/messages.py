"""
What AgentV's tests ask and are answered with: texts, chats, content blocks, attached files, tool calls, templates.

A chat (`input`, `expected_output`) is a text or a list of messages. The `prompts` of a generation 2 file say how the
variables of a case become what is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from rubric import Message, ToolCall
from rubric.embed import Cursor, shorten
from rubric.formats.agentv.prompts import prompt_in
from rubric.formats.agentv.scope import Scope, as_json_list, as_text
from rubric.formats.images import image_in, is_image
from rubric.formats.includes import is_code, is_reference, may_be_read, read_text_at

Asked = tuple[str, tuple[Message, ...]]
"""What a case asks: one text, or the messages of a chat."""

_CALLS = "a list of tool calls, such as {tool: search, input: {...}}"


def read_asked(parts: list[Cursor], scope: Scope) -> Asked:
    """Return what *parts*, each a text or a list of messages, ask together: a lone user's message is a text."""
    messages = [message for part in parts for message in _messages(part, scope)]
    if len(messages) == 1 and messages[0].role == "user":
        return messages[0].content, ()
    return "", tuple(messages)


def _messages(at: Cursor, scope: Scope) -> Iterator[Message]:
    match at.value:
        case None:
            return
        case list() as parts if parts and all(isinstance(part, Mapping) and "role" in part for part in parts):
            made = (at.built(Message, part.value["role"], read_text(part["content"], scope)) for part in at)
            yield from filter(None, made)
        case str() | list() | Mapping():
            yield Message("user", read_text(at, scope))
        case _:
            yield Message("user", scope.text(at))


def read_text(at: Cursor, scope: Scope) -> str:
    """Return a text, a list of messages or of blocks, or plain data, as one text."""
    match at.value:
        case None:
            return ""
        case str() as text:
            return scope.fill(text, at)
        case list() as parts if parts and all(isinstance(part, Mapping) and "content" in part for part in parts):
            return "\n\n".join(read_text(part["content"], scope) for part in at)
        case list() as parts if parts and all(isinstance(part, Mapping) and "type" in part for part in parts):
            return "\n\n".join(shown for part in at if (shown := _block(part, scope)) is not None)
        case _:
            return as_text(scope.fill_all(at))


_IMAGES = ("image", "image_url", "input_image")


def _block(at: Cursor, scope: Scope) -> str | None:
    """Return a content block as text; None for an image that is attached."""
    kind, value = at.value["type"], next((at.value[key] for key in ("value", "text", "path") if key in at), "")
    if kind in ("text", "input_text"):
        return scope.text(at.holding(value))
    if scope.attached is not None and (kind in _IMAGES or (kind == "file" and is_image(str(value)))):
        image = image_in(scope.fill_all(at)) or (scope.fill(value, at) if isinstance(value, str) else None)
        missing = len(scope.attached.missing)
        if scope.attached.take(image or None, at):
            return f"[image: {image}]" if len(scope.attached.missing) > missing else None
    if kind == "file" and isinstance(value, str):
        return _file(scope.fill(value, at), at)
    at.once(f"content of the type {shorten(repr(kind), 40)} is not shown to the judge")
    return f"[{kind}]"


def _file(name: str, at: Cursor) -> str:
    """Return the text of an attached file where it is there and may be read, else its name."""
    relative = name.removeprefix("file://")

    def lacking(_: str) -> None:
        at.once(f"the file {shorten(name, 100)} is not there, or is not text: the judge is shown its name alone")

    if not may_be_read(relative, at.loading):
        # Nothing is told of what lies outside of the base, not even whether it is there.
        at.once(f"the file {shorten(name, 100)} is not there: the judge is shown its name alone")
    elif (text := read_text_at(relative, at, code=True, lacking=lacking)) is not None:
        return f"{relative}:\n{text}"
    return f"[file: {name}]"


def read_calls(at: Cursor) -> list[ToolCall]:
    """Return the tool calls of a fixed response."""
    return [] if at.value is None else at.each(_CALLS, _call)


def _call(at: Cursor) -> ToolCall | None:
    if not at.mapping(_CALLS):
        return None
    name = next((at.value[key] for key in ("tool", "name") if key in at), None)
    arguments = at.find("input", "arguments", "args")
    given = {} if arguments is None else arguments.value
    return at.built(ToolCall, name, arguments=given, result=at.first("output", "result").value)


_ALONE = re.compile(r"\s*\{\{\s*(?:vars\.)?([^\W\d]\w*)\s*\}\}\s*")


@frozen
class Template:
    """One way to ask: a text or messages with slots, called *label*; *missing* is what this library lacks to ask."""

    label: str
    content: Any
    missing: str = ""

    def asks(self, scope: Scope) -> Any:
        """Return the input with the variables of *scope*; a lone variable is taken whole."""
        if isinstance(self.content, str) and (match := _ALONE.fullmatch(self.content)):
            return scope.variables.get(match[1])
        return self.content


def read_prompts(at: Cursor, scope: Scope) -> list[Template]:
    """Return the templates of a file: texts, lists of messages, files, or mappings with one of them."""
    if at.value is None:
        return []
    entries = at if isinstance(at.value, list) else at.holding([at.value])
    return entries.each("prompts", lambda entry: _template(entry, f"prompt {entry.step + 1}", scope))


def _template(at: Cursor, label: str, scope: Scope) -> Template | None:
    if isinstance(at.value, Mapping) and "role" not in at.value:
        label = next((str(at.value[key]) for key in ("label", "id") if at.value.get(key)), label)
        at = at.find("prompt", "raw", "file", "content", "messages") or at.holding(None)
        if at.step == "file" and isinstance(at.value, str) and not is_reference(at.value):
            at = at.holding(f"file://{at.value}")
    if isinstance(at.value, str) and is_reference(at.value):
        name = scope.fill(at.value, at)
        if is_code(name):
            at.warn(f"{shorten(name, 80)} is code, which is not run: its cases are ungraded")
        text, missing = prompt_in(name, at)
        if text is None:
            return Template(label, "", missing) if missing else None
        chat = as_json_list(text)
        return Template(label, text if chat is None else chat)
    if isinstance(at.value, str | list):
        return Template(label, at.value)
    at.refuse("a prompt: a text, a list of messages or a file")
    return None
