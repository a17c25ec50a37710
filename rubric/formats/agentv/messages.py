"""
Chats: from `input`, `expected_output` and `prompts` to texts and messages, and back.

A chat is a text or a list of messages. The `prompts` of a generation 2 file say how the variables of a case become
what is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from os.path import normpath
from pathlib import Path as FilePath
from typing import Any

from attrs import frozen

from rubric.errors import DefinitionError
from rubric.formats.agentv.scope import Scope, as_text
from rubric.formats.cursor import Cursor
from rubric.formats.includes import is_reference, read_text_at
from rubric.internals.text import shorten
from rubric.values.candidates import Message, ToolCall

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
            yield from (message for part in at if (message := _message(part, scope)))
        case str() | list() | Mapping():
            yield Message("user", read_text(at, scope))
        case _:
            yield Message("user", scope.text(at))


def _message(at: Cursor, scope: Scope) -> Message | None:
    try:
        return Message(at.value["role"], read_text(at["content"], scope))
    except DefinitionError as problem:
        at[problem.field].error(problem)
        return None


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
            return "\n\n".join(_block(part, scope) for part in at)
        case _:
            return as_text(scope.filled(at))


def _block(at: Cursor, scope: Scope) -> str:
    kind, value = at.value["type"], next((at.value[key] for key in ("value", "text", "path") if key in at), "")
    if kind in ("text", "input_text"):
        return scope.text(at.holding(value))
    if kind == "file" and isinstance(value, str):
        return _file(scope.fill(value, at), at)
    at.once(f"content of the type {shorten(repr(kind), 40)} is not shown to the judge")
    return f"[{kind}]"


def _file(name: str, at: Cursor) -> str:
    """Return the text of an attached file where it is there and may be read, else its name."""
    folder = at.loading.folder
    relative = name.removeprefix("file://")
    if folder is not None and _is_there(folder, relative, at.loading.root):
        text = read_text_at(relative, at)
        if text is not None:
            return f"{relative}:\n{text}"
    else:
        at.once(f"the file {shorten(name, 100)} is not there: the judge is shown its name alone")
    return f"[file: {name}]"


def _is_there(folder: FilePath, relative: str, root: FilePath | None) -> bool:
    """True if the file is there; of what lies outside of *root* nothing is told, not even that."""
    file = FilePath(normpath(folder / relative))
    within = not relative.startswith("/") and file.is_relative_to(normpath(root or folder))
    return within and file.is_file()


def read_calls(at: Cursor) -> list[ToolCall]:
    """Return the tool calls of a fixed response."""
    if at.value is None:
        return []
    return [call for part in at.listing(_CALLS) if (call := _call(part))]


def _call(at: Cursor) -> ToolCall | None:
    if not at.mapping(_CALLS):
        return None
    name = next((at.value[key] for key in ("tool", "name") if key in at), None)
    arguments = at.find("input", "arguments", "args")
    given = {} if arguments is None else arguments.value
    return at.built(ToolCall, name, arguments=given, result=at.first("output", "result").value)


def write_asked(input: str, messages: tuple[Message, ...]) -> Any:
    """Return what a case asks as AgentV writes it: a text, or a list of messages."""
    chat = [{"role": message.role, "content": message.content} for message in messages]
    return [*chat, {"role": "user", "content": input}] if chat and input else chat or input


_ALONE = re.compile(r"\s*\{\{\s*(?:vars\.)?([^\W\d]\w*)\s*\}\}\s*")


@frozen
class Template:
    """One way to ask: a text or messages, with `{{ variables }}`; *label* tells it from the others."""

    label: str
    content: Any

    def asks(self, scope: Scope) -> Any:
        """Return the input with the variables of *scope*; a lone variable is taken whole."""
        if isinstance(self.content, str) and (match := _ALONE.fullmatch(self.content)):
            return scope.variables.get(match[1])
        return self.content


def read_prompts(at: Cursor, scope: Scope) -> list[Template]:
    """Return the templates of a file: texts, lists of messages, files, or mappings with one of them."""
    if at.value is None:
        return []
    entries = [*at] if isinstance(at.value, list) else [at.holding([at.value])[0]]
    found = [_template(entry, f"prompt {number}", scope) for number, entry in enumerate(entries, 1)]
    return [template for template in found if template is not None]


def _template(at: Cursor, label: str, scope: Scope) -> Template | None:
    if isinstance(at.value, Mapping) and "role" not in at.value:
        label = next((str(at.value[key]) for key in ("label", "id") if at.value.get(key)), label)
        at = at.find("prompt", "raw", "file", "content", "messages") or at.holding(None)
        if at.step == "file" and isinstance(at.value, str) and not is_reference(at.value):
            at = at.holding(f"file://{at.value}")
    if isinstance(at.value, str) and is_reference(at.value):
        text = read_text_at(scope.fill(at.value, at), at)
        return None if text is None else Template(label, _chat(text))
    if isinstance(at.value, str | list):
        return Template(label, at.value)
    at.refuse("a prompt: a text, a list of messages or a file")
    return None


def _chat(text: str) -> Any:
    """Return the messages that *text* holds as JSON; the text itself if it holds none."""
    if not text.lstrip().startswith("["):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, list) else text
