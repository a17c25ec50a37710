"""
From plain data to nouns, field by field, with each problem noted where it stands in the document.

Nothing here raises: what is wrong goes to the `Notes`, and None comes back in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

import attrs

from rubric.errors import DefinitionError
from rubric.formats.converters import cure, wanted
from rubric.formats.documents import Path, Unreadable
from rubric.formats.notes import Notes
from rubric.showing import shorten
from rubric.validating import suggest

__all__ = ["fits", "given", "listing", "made", "mapping", "only"]

T = TypeVar("T")


def mapping(notes: Notes, path: Path, value: object, what: str = "a mapping") -> dict[Any, Any] | None:
    """Return *value*, a mapping; note anything else as not *what* was expected."""
    if isinstance(value, dict):
        return value
    _refuse(notes, path, value, what)
    return None


def listing(notes: Notes, path: Path, value: object, what: str = "a list") -> list[Any]:
    """Return *value*, a list; note anything else as not *what* was expected, and return nothing."""
    if isinstance(value, list):
        return value
    _refuse(notes, path, value, what)
    return []


def _refuse(notes: Notes, path: Path, value: object, what: str) -> None:
    if not isinstance(value, Unreadable):  # whose flaw is noted already
        notes.error(path, wanted(what, value).message)


def only(notes: Notes, path: Path, data: Mapping[Any, Any], allowed: Iterable[str]) -> None:
    """Note each key of *data* that is not among *allowed*, with the nearest one that is."""
    names = [*allowed]
    for key in data:
        if key not in names:
            notes.error((*path, key), f"unknown key{suggest(shorten(str(key), 40), names)}", key=True)


def given(notes: Notes, path: Path, data: Mapping[Any, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    """Return by field what *data* gives under the *keys* of fields; a key without a value is noted."""
    found = {}
    for name, key in keys.items():
        if key in data and data[key] is None:
            notes.error((*path, key), "expected a value, got nothing; give it one, or take the key out")
        elif key in data:
            found[name] = data[key]
    return found


def made(
    notes: Notes, path: Path, cls: type[T], values: Mapping[str, Any], keys: Mapping[str, str] | None = None
) -> T | None:
    """
    Return a *cls* of *values* (by field); None if something is wrong with it, all of which is noted.

    Args:
        notes: Where to note it.
        path: Where the noun stands.
        cls: An attrs class whose fields have validators.
        values: What the document says, by field.
        keys: The keys in the document of fields whose names in code are others.
    """
    if not fits(notes, path, cls, values, keys):
        return None
    try:
        return cls(**values)
    except DefinitionError as problem:
        notes.error((*path, *_steps(problem.field, keys or {})), problem.message)
        return None


def fits(notes: Notes, path: Path, cls: type, values: Mapping[str, Any], keys: Mapping[str, str] | None = None) -> bool:
    """Say whether each of *values* is what its field of *cls* takes, and none is missing; note all else."""
    known = keys or {}
    wrong = False
    for attribute in attrs.fields(cast("Any", cls)):
        key = known.get(attribute.name, attribute.name)
        if attribute.name in values:
            problem = _problem(attribute, values[attribute.name])
            if problem is not None and not isinstance(values[attribute.name], Unreadable):
                where = _steps(problem.field, {})[1:]
                message = problem.message + cure(values[attribute.name], problem.message)
                notes.error((*path, key, *where), message)
            wrong = wrong or problem is not None
        elif attribute.init and attribute.default is attrs.NOTHING:
            notes.error(path, f"the key {key!r} is missing; add it")
            wrong = True
    return not wrong


def _problem(attribute: Any, value: object) -> DefinitionError | None:
    try:
        converted = attribute.converter(value) if attribute.converter else value
        if attribute.validator:
            attribute.validator(None, attribute, converted)
    except DefinitionError as problem:
        return problem
    return None


_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)", re.ASCII)


def _steps(field: str, keys: Mapping[str, str]) -> Path:
    """Return the path that *field* of a `DefinitionError` stands for, such as `criteria[2].id`."""
    return tuple(int(index) if index else keys.get(name, name) for index, name in _STEP.findall(field))
