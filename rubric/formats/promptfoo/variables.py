"""The variables of a test: read from files, put into one another, and multiplied where they are lists of texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice, product
from pathlib import PurePosixPath
from typing import Any

from rubric.formats.includes.including import expand_at, is_reference, read_text_at
from rubric.formats.includes.references import is_code
from rubric.formats.promptfoo.parts import Part, as_text

__all__ = ["OWN", "as_texts", "combinations", "nested", "scripted"]

OWN = "case_input"
"""The variable in which our own writer puts what a case asks. Read back, it is the input again and no variable."""
MOST = 10_000
"""Combinations of the variables of one test."""

_NESTED = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_ROUNDS = 5
_MEDIA = frozenset({
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".svg", ".wav", ".mp3", ".ogg", ".flac", ".m4a", ".mp4",
    ".mov", ".webm", ".pdf", ".docx", ".xlsx", ".zip",
})  # fmt: skip


def scripted(variables: Mapping[str, Part]) -> list[Part]:
    """Return the variables whose values code would make."""
    return [part for part in variables.values() if is_reference(part.value) and is_code(part.value)]


def combinations(variables: Mapping[str, Part], *, expand: bool) -> list[dict[str, Any]]:
    """
    Return the variables of each case that a test stands for: one, or with *expand* one for each combination of lists.

    As in promptfoo, only lists whose first item is a text are expanded. What cannot be read is noted, and left out.
    """
    choices = [_choices(part, expand=expand) for part in variables.values()]
    found = [dict(zip(variables, picked, strict=True)) for picked in islice(product(*choices), MOST + 1)]
    if len(found) > MOST:
        next(iter(variables.values())).error(f"these lists come to more than {MOST} combinations; shorten them")
        return found[:1]
    return [nested(values) for values in found]


def _choices(part: Part, *, expand: bool) -> list[Any]:
    if is_reference(part.value):
        return _read_all(part)
    if expand and isinstance(part.value, list) and part.value and isinstance(part.value[0], str):
        return [value for item in part.parts() for value in _choices(item, expand=False)]
    return [part.value]


def _read_all(part: Part) -> list[Any]:
    if is_code(part.value):
        return [part.value]
    references = expand_at(part.value, part.loading, part.notes, part.path)
    return [_read(part.holding(reference)) for reference in references] or [None]


def _read(part: Part) -> Any:
    suffix = PurePosixPath(part.value).suffix.lower()
    if suffix in _MEDIA:
        part.warn(f"{suffix[1:]} files are not read; the variable stays the name of the file")
        return part.value
    if suffix in (".yaml", ".yml", ".json"):
        found = part.followed()
        return None if found is None else found.value
    text = read_text_at(part.value, part.loading, part.notes, part.path)
    return None if text is None else text.strip()


def nested(values: dict[str, Any]) -> dict[str, Any]:
    """Put variables into the texts of others; nothing more than a plain slot is read in them."""
    for _ in range(_ROUNDS):
        filled = {name: _filled(value, values) for name, value in values.items()}
        if filled == values:
            break
        values = filled
    return values


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if not isinstance(value, str):
        return value
    return _NESTED.sub(lambda found: as_text(values[found[1]]) if found[1] in values else found[0], value)


def as_texts(variables: Mapping[str, Any], *, own: bool = False) -> dict[str, str]:
    """Return the variables as texts, for the prompts of judges; without `OWN` where it is our *own*."""
    return {name: as_text(value) for name, value in variables.items() if name != OWN or not own}
