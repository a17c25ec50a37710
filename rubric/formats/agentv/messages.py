"""
Chats: from `input` and `expected_output`, texts or lists of messages, to texts and `Message`s.

`prompts` of a generation 2 file: how the variables of a case become what is asked.
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
from rubric.formats.document import KeyPath
from rubric.formats.includes import is_reference, read_text_at
from rubric.internals.text import shorten
from rubric.values.candidates import Message, ToolCall

Asked = tuple[str, tuple[Message, ...]]
"""What a case asks: one text, or the messages of a chat."""

_CALLS = "a list of tool calls, such as {tool: search, input: {...}}"


def read_asked(values: list[tuple[Any, KeyPath]], scope: Scope) -> Asked:
    """Return what *values*, each a text or a list of messages, ask together: a lone user's message is a text."""
    messages = [message for value, path in values for message in _messages(value, scope, path)]
    if len(messages) == 1 and messages[0].role == "user":
        return messages[0].content, ()
    return "", tuple(messages)


def _messages(value: Any, scope: Scope, path: KeyPath) -> Iterator[Message]:
    match value:
        case None:
            return
        case str():
            yield Message("user", scope.fill(value, path))
        case list() if value and all(isinstance(part, Mapping) and "role" in part for part in value):
            for index, part in enumerate(value):
                if message := _message(part, scope, (*path, index)):
                    yield message
        case list() | Mapping():
            yield Message("user", read_text(value, scope, path))
        case _:
            yield Message("user", scope.text(value, path))


def _message(part: Mapping[Any, Any], scope: Scope, path: KeyPath) -> Message | None:
    try:
        return Message(part["role"], read_text(part.get("content"), scope, (*path, "content")))
    except DefinitionError as problem:
        scope.error((*path, problem.field), problem)
        return None


def read_text(value: Any, scope: Scope, path: KeyPath) -> str:
    """Return *value*, a text, a list of messages or of blocks, or plain data, as one text."""
    match value:
        case None:
            return ""
        case str():
            return scope.fill(value, path)
        case list() if value and all(isinstance(part, Mapping) and "content" in part for part in value):
            parts = (read_text(part["content"], scope, (*path, i, "content")) for i, part in enumerate(value))
            return "\n\n".join(parts)
        case list() if value and all(isinstance(part, Mapping) and "type" in part for part in value):
            return "\n\n".join(_block(part, scope, (*path, index)) for index, part in enumerate(value))
        case _:
            return as_text(scope.filled(value, path))


def _block(part: Mapping[Any, Any], scope: Scope, path: KeyPath) -> str:
    value = next((part[key] for key in ("value", "text", "path") if key in part), "")
    if part["type"] in ("text", "input_text"):
        return scope.text(value, path)
    if part["type"] == "file" and isinstance(value, str):
        return _file(scope.fill(value, path), scope, path)
    scope.once(path, f"content of the type {shorten(repr(part['type']), 40)} is not shown to the judge")
    return f"[{part['type']}]"


def _file(name: str, scope: Scope, path: KeyPath) -> str:
    """Return the text of an attached file where it is there and may be read, else its name."""
    folder = scope.loading.folder
    relative = name.removeprefix("file://")
    if folder is not None and _is_there(folder, relative, scope.loading.root):
        text = read_text_at(relative, scope.loading, scope.notes, path)
        if text is not None:
            return f"{relative}:\n{text}"
    else:
        scope.once(path, f"the file {shorten(name, 100)} is not there: the judge is shown its name alone")
    return f"[file: {name}]"


def _is_there(folder: FilePath, relative: str, root: FilePath | None) -> bool:
    """Say whether the file is there; of what lies outside of *root* nothing is told, not even that."""
    file = FilePath(normpath(folder / relative))
    within = not relative.startswith("/") and file.is_relative_to(normpath(root or folder))
    return within and file.is_file()


def read_calls(value: Any, scope: Scope, path: KeyPath) -> list[ToolCall]:
    """Return the tool calls of a fixed response."""
    if value is None:
        return []
    if not isinstance(value, list):
        scope.error(path, f"expected {_CALLS}, got {shorten(repr(value))}")
        return []
    return [call for index, part in enumerate(value) if (call := _call(part, scope, (*path, index)))]


def _call(part: Any, scope: Scope, path: KeyPath) -> ToolCall | None:
    if not isinstance(part, Mapping):
        scope.error(path, f"expected {_CALLS}, got {shorten(repr(part))}")
        return None
    name = next((part[key] for key in ("tool", "name") if key in part), None)
    arguments: Any = next((part[key] for key in ("input", "arguments", "args") if part.get(key) is not None), {})
    result = next((part[key] for key in ("output", "result") if part.get(key) is not None), None)
    try:
        return ToolCall(name, arguments=arguments, result=result)  # type: ignore[arg-type]
    except DefinitionError as problem:
        scope.error(path, problem)
        return None


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
    path: KeyPath

    def asks(self, scope: Scope) -> Any:
        """Return what is asked with the variables of *scope*; a lone variable is taken whole."""
        if isinstance(self.content, str) and (match := _ALONE.fullmatch(self.content)):
            return scope.variables.get(match[1])
        return self.content


def read_prompts(value: Any, scope: Scope, path: KeyPath = ("prompts",)) -> list[Template]:
    """Return the templates that *value* holds: texts, lists of messages, files, or mappings with one of them."""
    if value is None:
        return []
    entries = value if isinstance(value, list) else [value]
    found = [_template(entry, index, scope, (*path, index)) for index, entry in enumerate(entries)]
    return [template for template in found if template is not None]


def _template(entry: Any, index: int, scope: Scope, path: KeyPath) -> Template | None:
    label = f"prompt {index + 1}"
    if isinstance(entry, Mapping) and "role" not in entry:
        label = next((str(entry[key]) for key in ("label", "id") if entry.get(key)), label)
        key = next((key for key in ("prompt", "raw", "file", "content", "messages") if entry.get(key) is not None), "")
        entry, path = entry.get(key), (*path, key) if key else path
        if key == "file" and isinstance(entry, str) and not is_reference(entry):
            entry = f"file://{entry}"
    if isinstance(entry, str) and is_reference(entry):
        entry = read_text_at(scope.fill(entry, path), scope.loading, scope.notes, path)
        return None if entry is None else Template(label, _chat(entry), path)
    if isinstance(entry, str | list):
        return Template(label, entry, path)
    scope.error(path, f"expected a prompt: a text, a list of messages or a file; got {shorten(repr(entry))}")
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
