"""
The columns of promptfoo's table: prompts and providers, which of them a test runs in, and what it asks there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from attrs import frozen

from rubric.errors import DefinitionError, LoadError
from rubric.formats.cursor import Cursor
from rubric.formats.document import plain
from rubric.formats.files import parse
from rubric.formats.includes import expand_at, is_code, is_reference, read_document_at, read_text_at
from rubric.formats.promptfoo.tests import Test
from rubric.formats.promptfoo.texts import as_json_list, as_text, check_keys, compact, each_text, filled, listed, named
from rubric.internals.text import shorten
from rubric.values.candidates import Message

_PROMPT_FILE = re.compile(r"[^\s{}]+\.(?:txt|json|jsonl|ya?ml|md|j2|csv|[cm]?[jt]s|py)(?::\w+)?")
_YAML_CHAT = re.compile(r"\s*-\s+role:")
_SEPARATOR = re.compile(r"^---[ \t]*$", re.MULTILINE)
_KNOWN_KEYS = frozenset({"id", "raw", "label", "display", "template"})
_FATES = {
    "config": "the configuration of a prompt is not used",
    "function": "a prompt that a function makes is not read; the input of its cases is empty",
}


@frozen
class Prompt:
    """A prompt: its *template*, empty where code would make it; and what it is called."""

    template: str
    label: str
    part: Cursor


@frozen
class Asked:
    """The input of a target: a text, or the messages of a chat."""

    input: str = ""
    messages: tuple[Message, ...] = ()


def prompts_of(part: Cursor | None) -> list[Prompt]:
    """Return the prompts of the configuration, in order; one that cannot be read is noted."""
    if part is None:
        return []
    if isinstance(part.value, str):
        found = _of_text(part, "")
    elif isinstance(part.value, dict):
        found = [p for name, label in named(part) for p in _of_text(label.holding(name), as_text(label.value))]
    else:
        found = [prompt for item in listed(part, "prompts") for prompt in _of_item(item)]
    return [Prompt(p.template, p.label or f"prompt-{n}", p.part) for n, p in enumerate(found, 1)]


def _of_item(part: Cursor) -> list[Prompt]:
    if isinstance(part.value, str):
        return _of_text(part, "")
    if not part.mapping("a prompt: a text, or a mapping with raw and label"):
        return []
    check_keys(part, _KNOWN_KEYS, _FATES)
    label = as_text(part.value.get("label") or part.value.get("display"))
    raw = part.find("raw", "template")
    if raw is not None:
        text = raw.text("the text of a prompt")
        return [] if text is None else [Prompt(text, label or as_text(part.value.get("id")), raw)]
    source = part.find("id")
    if source is None or source.text("the file of a prompt") is None:
        if source is None and not part.has("function"):
            part.error("a prompt has a text; write it as `raw`")
        return [Prompt("", label, part)]
    return _of_text(source, label)


def _of_text(part: Cursor, label: str) -> list[Prompt]:
    """Return the prompts of a text: itself, or those in the files that it names."""
    text = part.value
    if not is_reference(text) and not _PROMPT_FILE.fullmatch(text):
        return [Prompt(text, label, part)]
    name = text.removeprefix("file://")
    if is_code(name):
        part.warn(f"{shorten(name, 80)} is code, which is not run; the input of its cases is empty")
        return [Prompt("", label or name, part)]
    references = expand_at(text, part)
    return [prompt for reference in references for prompt in _of_file(part.holding(reference), label)]


def _of_file(part: Cursor, label: str) -> list[Prompt]:
    name = PurePosixPath(part.value.removeprefix("file://"))
    label = label or name.name
    if name.suffix in (".yaml", ".yml", ".csv", ".jsonl"):
        whole = read_document_at(part.value, part)
        if whole is None:
            return []
        if name.suffix in (".yaml", ".yml"):
            chat = compact(whole.value) if isinstance(whole.value, list) else as_text(whole.value)
            return [Prompt(chat, label, whole)]
        rows = listed(whole, "prompts")
        return [_of_row(row, _numbered(label, n, len(rows))) for n, row in enumerate(rows, 1)]
    text = read_text_at(part.value, part)
    if text is None:
        return []
    pieces = [piece.strip() for piece in _SEPARATOR.split(text)] if name.suffix == ".txt" else [text]
    kept = [piece for piece in pieces if piece]
    return [Prompt(piece, _numbered(label, n, len(kept)), part) for n, piece in enumerate(kept, 1)]


def _of_row(row: Cursor, label: str) -> Prompt:
    if row.has("prompt"):
        return Prompt(as_text(row.value["prompt"]), as_text(row.value.get("label")) or label, row["prompt"])
    return Prompt(as_text(row.value), label, row)


def _numbered(label: str, number: int, count: int) -> str:
    return label if count == 1 else f"{label} {number}"


def ask(prompt: Prompt, variables: Mapping[str, Any], prefix: str = "", suffix: str = "") -> Asked:
    """Return the input that *prompt* makes of *variables*; a broken template is noted, and asks nothing."""
    try:
        messages = as_json_list(prompt.template) or _as_yaml_list(prompt.template)
        if messages is not None:
            # Each text by itself, so that no value can break the JSON around it.
            return _asked(prompt, each_text(messages, lambda text: filled(prompt.part, text, variables)))
        text = filled(prompt.part, f"{prefix}{prompt.template}{suffix}", variables)
    except DefinitionError as problem:
        prompt.part.error(problem)
        return Asked()
    chat = as_json_list(text)
    return Asked(text) if chat is None else _asked(prompt, chat, text)


def _as_yaml_list(text: str) -> list[Any] | None:
    """Return the messages of a text that is a YAML list of them; None for any other text."""
    if not _YAML_CHAT.match(text):
        return None
    try:
        found = plain(parse(text, "prompt").root, lambda *_: None)
    except LoadError:
        return None
    return found if isinstance(found, list) and all(isinstance(message, dict) for message in found) else None


def _asked(prompt: Prompt, chat: list[Any], text: str = "") -> Asked:
    """Return *chat* as messages; a list that is no chat is a text like any other."""
    if not is_chat(chat):
        return Asked(text or json.dumps(chat, ensure_ascii=False))
    return Asked(messages=tuple(Message(m["role"], _content(prompt, m["content"])) for m in chat))


def is_chat(found: list[Any]) -> bool:
    """True if a JSON list is the messages of a chat."""
    return all(isinstance(m, dict) and isinstance(m.get("role"), str) and "content" in m for m in found)


def _content(prompt: Prompt, content: Any) -> str:
    if not isinstance(content, list):
        return as_text(content)
    texts = [piece for piece in content if isinstance(piece, dict) and isinstance(piece.get("text"), str)]
    if len(texts) < len(content):
        prompt.part.warn("the pictures and sounds of a prompt are not carried over, only its texts")
    return "\n".join(piece["text"] for piece in texts)


@frozen
class Cell:
    """One column of promptfoo's table: a prompt and a provider, and their names where there are several."""

    prompt: Prompt | None
    provider: str
    names: dict[str, str]


_KEYS = frozenset({"id", "config", "label", "prompts", "transform", "delay", "env", "inputs"})


def providers_of(whole: Cursor) -> list[Cursor]:
    """Return the providers (or targets) that a configuration lists."""
    part = whole.find("providers", "targets")
    if part is None:
        return []
    found = [*part] if isinstance(part.value, list) else [part]
    for provider in found:
        if isinstance(provider.value, dict) and "id" in provider.value:
            check_keys(provider, _KEYS)
    return found


def cells_of(prompts: list[Prompt], providers: list[Cursor]) -> list[Cell]:
    """Return a cell for each provider and each prompt that it takes; one cell where there are none."""
    found: list[Cell] = []
    rows: list[Prompt | None] = [*prompts] or [None]
    columns: list[Cursor | None] = [*providers] or [None]
    for provider in columns:
        name, wanted = _named(provider)
        for prompt in rows:
            if prompt is not None and wanted and not _is_among(prompt.label, wanted):
                continue
            names = {"prompt": prompt.label} if prompt is not None and len(prompts) > 1 else {}
            names |= {"provider": name} if len(providers) > 1 else {}
            found.append(Cell(prompt, name, names))
    return found


def _named(provider: Cursor | None) -> tuple[str, list[str]]:
    """Return the name of a provider, and the prompts that it is limited to."""
    value = None if provider is None else provider.value
    if not isinstance(value, dict):
        return as_text(value), []
    if len(value) == 1 and "id" not in value:
        ((id_, inner),) = value.items()
        value = {"id": id_, **(inner if isinstance(inner, dict) else {})}
    wanted = value.get("prompts")
    name = as_text(value.get("label") or value.get("id"))
    return name, [as_text(label) for label in wanted] if isinstance(wanted, list) else []


def _is_among(name: str, wanted: list[str]) -> bool:
    return any(fnmatchcase(name, pattern) or name.startswith(f"{pattern}:") for pattern in wanted)


def cells_for(test: Test, cells: list[Cell]) -> list[Cell]:
    """Return the cells that *test* runs in."""
    for key in ("providers", "prompts"):
        part = test.fields.get(key)
        if part is not None and isinstance(part.value, list):
            wanted = [as_text(value) for value in part.value]
            names = [
                cell.provider if key == "providers" else cell.prompt.label if cell.prompt else "" for cell in cells
            ]
            cells = [cell for cell, name in zip(cells, names, strict=True) if _is_among(name, wanted)]
    own = test.fields.get("provider")
    if own is None:
        return cells
    name, _ = _named(own)
    kept = {cell.prompt.label if cell.prompt else "": cell for cell in cells}.values()
    return [Cell(cell.prompt, name, {**cell.names, "provider": name}) for cell in kept]
