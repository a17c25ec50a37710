"""
Files that a file names: `file://rubric.md`, `tests/*.yaml`.

Nothing outside of the base is read, code is never run, and whatever is refused is noted where the reference stands.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rubric.errors import DefinitionError, LoadError, Problem
from rubric.formats.documents import Document, Listing
from rubric.formats.documents import Path as Steps
from rubric.formats.files import read_text
from rubric.formats.growing import FOR_SUITES
from rubric.formats.includes.loading import Loading
from rubric.formats.includes.references import Located, bare, expand, is_code, is_pattern, locate, quoted
from rubric.formats.includes.tabulating import TABLES, parse_table
from rubric.formats.notes import Notes
from rubric.formats.parsing import parse
from rubric.formats.templates import show_environment
from rubric.showing import shorten
from rubric.suites.cases import Place

__all__ = ["Row", "expand_at", "is_reference", "read_document_at", "read_rows_at", "read_text_at"]

DEEPEST = 8
"""Files that include one another."""
MOST_FILES = 256
"""Different files that one load reads, besides the first."""
MOST_CHARACTERS = 16 * 1024 * 1024
"""Characters that one load takes from them, a file that is named twice counted twice."""

MOST_COMPARED = 1000
"""Errors among which one is looked for that is said already."""

T = TypeVar("T")


class Row(dict[str, Any]):
    """A row of a table: what its columns hold, and its *place* in the file."""

    place: Place


def is_reference(value: object) -> bool:
    """Tell whether *value* names a file: a text that starts with `file://`."""
    return isinstance(value, str) and value.lstrip()[:7].lower() == "file://"


def expand_at(reference: str, loading: Loading, notes: Notes, path: Steps) -> list[str]:
    """
    Return the references that *reference* stands for, sorted: itself, or the files that `*`, `?` and `**` match.

    A pattern that matches nothing is noted as an error.
    """

    def work(name: str) -> list[str]:
        return [f"file://{found}" for found in expand(name, loading)] if is_pattern(name) else [reference]

    return _noted(reference, loading, notes, path, work) or []


def read_text_at(reference: str, loading: Loading, notes: Notes, path: Steps, *, code: bool = False) -> str | None:
    """
    Return the text of the file that *reference* names; None, and an error noted at *path*, where that cannot be.

    With *code*, the file may be a program: it is material to be shown, and not run either.
    """

    def work(name: str) -> str:
        located = _one(name, loading, code=code)
        return _text(located, loading, name)

    return _noted(reference, loading, notes, path, work)


def read_document_at(reference: str, loading: Loading, notes: Notes, path: Steps) -> tuple[Notes, Loading] | None:
    """
    Return the YAML, JSON, JSONL or CSV document that *reference* names, and the loading for what it names in turn.

    Its notes know its own places. They share the lists of *notes*, so an error in either is raised by `notes.finish()`;
    nothing need be (or may be) copied from one to the other.
    """

    def work(name: str) -> tuple[Notes, Loading]:
        located = _one(name, loading)
        _refuse_circles(located, loading, name)
        document = _document(located, loading, name)
        inner = Notes(document, notes.errors, notes.warnings)
        return inner, loading.within(located.shown.parent, located.real)

    return _noted(reference, loading, notes, path, work)


def read_rows_at(reference: str, loading: Loading, notes: Notes, path: Steps) -> list[Row] | None:
    """Return the rows of the CSV, JSONL, JSON or YAML file that *reference* names (a dict each, with its place)."""
    found = read_document_at(reference, loading, notes, path)
    if found is None:
        return None
    inner, _ = found
    known = len(notes.errors)
    rows = _rows(inner)
    return rows if len(notes.errors) == known else None


def _rows(notes: Notes) -> list[Row]:
    data = notes.data()
    if not isinstance(notes.document.root, Listing):
        notes.error((), "expected a list of rows; write one mapping for each")
        return []
    return [row for index, value in enumerate(data) if (row := _row(notes, (index,), value)) is not None]


def _row(notes: Notes, path: Steps, value: Any) -> Row | None:
    if not isinstance(value, dict):
        notes.error(path, f"expected a row (a mapping), got {shorten(repr(value), 60)}")
        return None
    row = Row({str(name): cell for name, cell in value.items()})
    row.place = notes.place(path)
    return row


def _noted(reference: str, loading: Loading, notes: Notes, path: Steps, work: Callable[[str], T]) -> T | None:
    """Return what *work* makes of the bare name; what it raises is noted at *path*, or where the file itself errs."""
    before = len(notes.errors)
    shown = show_environment(reference, loading, notes, path)
    if len(notes.errors) > before:
        return None
    try:
        return work(bare(shown))
    except DefinitionError as error:
        notes.error(path, error)
    except LoadError as error:
        notes.errors.extend(error.problems)
    _once(notes.errors, before)
    return None


def _once(errors: list[Problem], before: int) -> None:
    """Drop what is said already: what all tests share is read for each of them."""
    if errors[before:] and before < MOST_COMPARED:
        errors[before:] = [problem for problem in errors[before:] if problem not in errors[:before]]


def _one(name: str, loading: Loading, *, code: bool = False) -> Located:
    """Return the one file that *name* means."""
    if is_code(name) and not code:
        message = (
            f"{quoted(name)}: code in files is not run; give the function to the loader (functions={{name: function}})"
        )
        raise DefinitionError("", message)
    if is_pattern(name):
        raise DefinitionError("", f"{quoted(name)}: one file is read here, not those that match a pattern; name it")
    return locate(name, loading)


def _text(located: Located, loading: Loading, name: str) -> str:
    library = loading.library
    if located.real not in library.texts:
        if len(library.texts) >= MOST_FILES:
            raise DefinitionError("", f"{quoted(name)}: at most {MOST_FILES} files are read for one; put some together")
        library.texts[located.real] = _read(located, loading, name)
    text = library.texts[located.real]
    library.taken += len(text) + 64
    if library.taken > MOST_CHARACTERS:
        message = f"{quoted(name)}: what is included comes to more than {MOST_CHARACTERS} characters; include less"
        raise DefinitionError("", message)
    return text


def _read(located: Located, loading: Loading, name: str) -> str:
    try:
        return read_text(located.real, loading.root, FOR_SUITES)
    except LoadError as error:
        missing = f"there is no such file; check its path, which starts at {shorten(str(loading.folder), 120)}"
        why = error.problems[0].message if os.path.exists(located.real) else missing  # noqa: PTH110  # exists() may raise
        raise DefinitionError("", f"{quoted(name)}: {why}") from None


def _document(located: Located, loading: Loading, name: str) -> Document:
    text = _text(located, loading, name)
    documents = loading.library.documents
    if located.real not in documents:
        documents[located.real] = _parsed(text, located.shown, name)
    return documents[located.real]


def _parsed(text: str, shown: Path, name: str) -> Document:
    suffix = shown.suffix.lower()
    if not text.strip():
        raise DefinitionError("", f"{quoted(name)}: there is nothing in this file")
    if suffix in TABLES:
        return parse_table(text, str(shown), suffix)
    if suffix not in (".yaml", ".yml", ".json"):
        raise DefinitionError("", f"{quoted(name)}: expected a .yaml, .json, .jsonl or .csv file")
    return parse(text, str(shown), "json" if suffix == ".json" else "yaml", FOR_SUITES)


def _refuse_circles(located: Located, loading: Loading, name: str) -> None:
    if located.real in loading.trail:
        raise DefinitionError("", f"{quoted(name)}: this file includes itself, by way of others; break the circle")
    if len(loading.trail) >= DEEPEST:
        raise DefinitionError(
            "", f"{quoted(name)}: files include one another more than {DEEPEST} deep; make it flatter"
        )
