"""`prompts` of a generation 2 file: how the variables of a case become what is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from rubric.formats.agentv.scopes import Scope
from rubric.formats.documents import Path
from rubric.formats.includes.including import is_reference, read_text_at
from rubric.showing import shorten

__all__ = ["Template", "read_prompts"]

_ALONE = re.compile(r"\s*\{\{\s*(?:vars\.)?([^\W\d]\w*)\s*\}\}\s*")


@frozen
class Template:
    """One way to ask: a text or messages, with `{{ variables }}`; *label* tells it from the others."""

    label: str
    content: Any
    path: Path

    def asks(self, scope: Scope) -> Any:
        """Return what is asked with the variables of *scope*; a lone variable is taken whole."""
        if isinstance(self.content, str) and (match := _ALONE.fullmatch(self.content)):
            return scope.variables.get(match[1])
        return self.content


def read_prompts(value: Any, scope: Scope, path: Path = ("prompts",)) -> list[Template]:
    """Return the templates that *value* holds: texts, lists of messages, files, or mappings with one of them."""
    if value is None:
        return []
    entries = value if isinstance(value, list) else [value]
    found = [_template(entry, index, scope, (*path, index)) for index, entry in enumerate(entries)]
    return [template for template in found if template is not None]


def _template(entry: Any, index: int, scope: Scope, path: Path) -> Template | None:
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
