"""Values of a promptfoo configuration: shown as texts, filled with variables, followed to the files that they name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rubric.formats.cursor import Cursor
from rubric.formats.includes import is_reference, read_document_at
from rubric.formats.templates.render import is_template, names_in, render, show_environment
from rubric.internals.fields import suggest

_PROVIDED = frozenset({"env", "output", "rubric", "context", "vars", "prompt"})
"""Names that promptfoo gives a template itself."""

_MINDED = re.compile(r"\{%|\bor\b|default|\bd\(")
"""How a template looks that minds whether a variable is there."""

_ENVIRONMENT = re.compile(r"\{\{-?\s*(?:process\.)?env\b")


def as_text(value: Any) -> str:
    """Return *value* as promptfoo shows it in a text: lists and mappings as JSON, nothing as nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return compact(value)


def compact(value: Any) -> str:
    """Return *value* as JSON without white space, as JavaScript writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def named(at: Cursor) -> Iterator[tuple[str, Cursor]]:
    """Yield the keys, as texts, and the values of a mapping."""
    return ((str(key), part) for key, part in at.items())


def listed(at: Cursor, what: str) -> list[Cursor]:
    """Return the items of a list of *what*; nothing is none, and anything else is noted."""
    return [] if at.value is None else at.listing(f"a list of {what}")


def check_keys(
    at: Cursor,
    known: frozenset[str],
    fates: Mapping[str, str] | None = None,
    elsewhere: Mapping[Any, str] | None = None,
    quiet: frozenset[str] = frozenset(),
) -> None:
    """
    Note each key of *at* that is not *known*: what becomes of it, by *fates*, or where it belongs, by *elsewhere*.

    Keys that are *quiet* change nothing here, and neither does a key that resembles one: `shared`, which holds YAML
    anchors, is no `sharing`.
    """
    for key, part in named(at):
        if fates and key in fates:
            part.warn(fates[key])
        elif key not in known and key not in quiet:
            what = f"the key {key!r} is not read{suggest(key, sorted(known)) if key else ''}"
            part.unknown(what, known | (fates or {}).keys(), elsewhere)


def filled(at: Cursor, text: str, variables: Mapping[str, Any]) -> str:
    """
    Return *text*, found at the cursor, with *variables* and declared environment variables in their places.

    Raises:
        DefinitionError: It is no template.
    """
    if _ENVIRONMENT.search(text):
        text = show_environment(text, at.loading, at.notes, at.path)
    if not is_template(text):
        return text
    if (plain := _slots_filled(text, variables)) is not None:
        return plain
    for name in _missing(text, variables):
        hint = suggest(name, [*variables]) if variables else ""
        at.warn(f"there is no variable {name!r}, so nothing stands in its place{hint}")
    return render(text, variables)


_SLOT = re.compile(r"\{\{\s*([^\W\d]\w*)\s*\}\}")
_WORDS = frozenset({"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else"})
_MOST_SLOTS, _LONGEST = 8, 200_000


def _slots_filled(text: str, variables: Mapping[str, Any]) -> str | None:
    """Return *text* with its slots filled, where it has plain ones for texts and nothing else; else None."""
    # The straight path: a metered Jinja environment costs more than the rest of a case. Whatever Jinja would change
    # (line ends), compute, or refuse for its size goes the long way round.
    rest, count = _SLOT.subn("", text)
    if count > _MOST_SLOTS or "{" in rest or "}" in rest or "\r" in rest:
        return None
    names = {*_SLOT.findall(text)}
    if names & _WORDS or not all(isinstance(variables.get(name), str) for name in names):
        return None
    filled = _SLOT.sub(lambda match: variables[match[1]], text)
    return filled if len(filled) <= _LONGEST else None


def _missing(text: str, variables: Mapping[str, Any]) -> list[str]:
    """Return the names in *text* that no variable has, in order."""
    if _MINDED.search(text):
        return []
    return sorted(name for name in names_in(text) - variables.keys() - _PROVIDED if not name.startswith("_"))


def followed(at: Cursor) -> Cursor | None:
    """Return the document that *at* names, if it is a reference, else *at*; None if it could not be read."""
    return read_document_at(at.value, at) if is_reference(at.value) else at
