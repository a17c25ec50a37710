"""Files: read within bounds and without hanging, parsed as YAML 1.2, JSON or rows, written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from collections.abc import Mapping as AnyMapping
from functools import partial
from pathlib import Path, PurePath
from typing import Literal

from rubric.errors import DefinitionError, DumpError, LoadError
from rubric.formats.document import (
    FOR_RUBRICS,
    FOR_SUITES,
    LONGEST_SCALAR,
    Document,
    Limits,
    Listing,
    Mapping,
    Node,
    Scalar,
    load_error,
)
from rubric.formats.json import parse_json
from rubric.formats.yaml import parse_yaml
from rubric.internals.atomic_write import replacing
from rubric.internals.fields import refuse_path
from rubric.internals.text import shorten

Language = Literal["yaml", "json"]

WHOLE = (0, 0)
"""The place of a problem of the file as a whole, which no line has."""

LANGUAGES: dict[str, Language] = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}
"""The language of a file, by its suffix."""


def parse(text: str, source: str, language: Language = "yaml", limits: Limits = FOR_RUBRICS) -> Document:
    """
    Return *text* as a document.

    JSON within YAML is read as JSON. The escapes of a pair of surrogates are one character in both.

    Raises:
        LoadError: It is not YAML (or JSON), it holds nothing, or it is beyond the limits.
    """
    if len(text) > limits.largest or len(text.encode("utf-8", "surrogatepass")) > limits.largest:
        raise too_large(source, limits)
    text = text.removeprefix("\ufeff")
    parser = parse_json if language == "json" or _is_json(text) else parse_yaml
    root = parser(text, source, limits)
    if root is None:
        raise load_error(source, (1, 1), "there is nothing in it; a rubric has `criteria`, `text` or `tree`")
    named = _SCHEMA.search(text[:_HEAD])
    return Document(source, root, named[1] if named else "")


def parse_file(text: str, file: Path) -> Document | None:
    """Return *text*, that of a *file* of suites, as a document; None for a suffix that no document has."""
    suffix = file.suffix.lower()
    if suffix in TABLES:
        return parse_table(text, str(file), suffix)
    return parse(text, str(file), LANGUAGES[suffix], FOR_SUITES) if suffix in LANGUAGES else None


_SCHEMA = re.compile(r"^#\s*yaml-language-server:\s*\$schema=(\S+)", re.MULTILINE)

_HEAD = 2_000
"""Characters in which editors look for the schema of a file."""


def given_text(text: object, load: str) -> str:
    """Return *text*, given as that of a document; refuse a path, which is for the function that *load* names."""
    if isinstance(text, str):
        refuse_path("text", text, f"write {load}({text!r})")
        return text
    match text:
        case bytes() | bytearray():
            cure = "; decode it: data.decode()"
        case PurePath():
            cure = f"; give {load}({str(text)!r})"
        case AnyMapping() | list():
            cure = "; give json.dumps(data), which is read as well"
        case _:
            cure = ""
    raise DefinitionError("text", f"expected the text of a document, got {shorten(repr(text))}{cure}")


def is_document(text: str) -> bool:
    """True if *text*, given for a path, is the text of a document: it has lines, or a key with a value."""
    return "\n" in text or re.match(r'[{\s"]*\w+"?: ', text) is not None


def too_large(source: str, limits: Limits) -> LoadError:
    return load_error(source, WHOLE, f"a file has at most {limits.largest // 1024} KiB; split it")


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except RecursionError:
        return True  # the parser of JSON refuses it at once
    except ValueError:
        return False
    return True


def read_text(path: Path, base: Path | None = None, limits: Limits = FOR_SUITES) -> str:
    """
    Return the text of the file at *path*, which must be within *base* where that is given.

    Raises:
        LoadError: There is no such file, it is no plain file (but a folder, a pipe, a device), leaves *base*, it is too
            large, or it is not UTF-8.
    """
    source = str(path)
    data = read_bytes(path, base, limits.largest + 4)
    if len(data.removeprefix(b"\xef\xbb\xbf")) > limits.largest:
        raise too_large(source, limits)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        before = problem.object[: problem.start]
        start = before.rfind(b"\n") + 1
        place = before.count(b"\n") + 1, len(before[start:].decode("utf-8", "replace")) + 1
        message = f"the byte 0x{problem.object[problem.start]:02x} is not UTF-8; save the file as UTF-8"
        raise load_error(source, place, message) from None


def read_bytes(path: Path, base: Path | None, most: int) -> bytes:
    """Return the first *most* bytes of the plain file at *path*, which must be within *base* where that is given."""
    source = str(path)
    try:
        found = path.resolve(strict=True)
        if base is not None and not found.is_relative_to(base.resolve()):
            raise load_error(source, WHOLE, f"this file is outside of {base}; move it there")
        handle = os.open(found, _FLAGS)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise load_error(source, WHOLE, _no_file(found, base))
        with os.fdopen(handle, "rb") as file:
            return file.read(most)
    except LoadError:
        raise
    except (OSError, ValueError, RuntimeError) as problem:  # a loop of links was a RuntimeError until 3.13
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise load_error(source, WHOLE, f"this file cannot be read: {reason}") from None


def _no_file(path: Path, base: Path | None) -> str:
    """Return why *path* is not read; of a folder that the user named, with the files in it that may be meant."""
    names: list[str] = []
    if base is None and path.is_dir():
        names = sorted(one.name for one in path.iterdir() if one.suffix in (".yaml", ".yml", ".json"))
    if not names:
        return "this is not a file (but a folder, a pipe or a device); name a file"
    more = f" (and {len(names) - _SHOWN} more)" * (len(names) > _SHOWN)
    return f"this is not a file but a folder; name one in it: {', '.join(names[:_SHOWN])}{more}"


_SHOWN = 5


# Without O_NONBLOCK, opening a pipe that nobody writes to would hang.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


def write_text(path: Path, text: str) -> None:
    """
    Put *text* into the file at *path*; a reader finds the old text or the new one, whole.

    Raises:
        DumpError: *path* is something else than a plain file.
        OSError: It cannot be written.
    """
    if path.exists() and not path.is_file():
        raise DumpError(f"{path.resolve()} is not a file that can be written; choose another name")
    with replacing(path) as file:
        file.write(text)


# -- tables: a mapping for each row, with the line that it starts in ------------------------------------------


MOST_ROWS = 10_000
MOST_COLUMNS = 1_000
"""Rows of one table."""


def parse_table(text: str, source: str, suffix: str) -> Document:
    """Return the rows of *text*, a file with one of the suffixes in `TABLES`, as a document: a list of its rows."""
    rows: list[Node] = []
    for row in TABLES[suffix](text.removeprefix("\ufeff"), source):
        rows.append(row)
        if len(rows) > MOST_ROWS:
            raise load_error(source, row.place, f"a table has at most {MOST_ROWS} rows; split the file")
    return Document(source, Listing(1, 1, parts=rows))


def rows_of_json(text: str, source: str) -> Iterator[Node]:
    """Yield the lines of *text* that are not blank, each as JSON."""
    for line, row in enumerate(text.split("\n"), 1):
        if row.strip() and (root := parse_json(row, source, FOR_SUITES, line)):
            yield root


def _records(text: str, source: str, delimiter: str) -> Iterator[Node]:
    head: list[str] = []
    closed = re.compile(rf'("(?:[^"]|"")*") +(?=[{delimiter}\r\n]|\Z)|"(?:[^"]|"")*"|[^"]+')
    if '" ' in text:  # blanks after a closing quote, which spreadsheets pass over
        text = closed.sub(lambda found: found[1] or found[0], text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            if head and any(cell.strip() for cell in cells):
                yield _record(head, cells, source, line)
            elif any(cell.strip() for cell in cells):
                head = _head(cells, source, line)
            line = reader.line_num + 1  # where the next row starts
    except csv.Error as problem:
        raise load_error(source, (line, 1), f"this is not CSV: {problem}") from None


def _head(cells: list[str], source: str, line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) > MOST_COLUMNS:
        raise load_error(
            source, (line, 1), f"a table has at most {MOST_COLUMNS} columns, not {len(names)}; leave some out"
        )
    for name in names:
        if name and names.count(name) > 1:
            shown = shorten(repr(name), 60)
            raise load_error(source, (line, 1), f"two columns are called {shown}; give each a name of its own")
    return names


def _record(head: list[str], cells: list[str], source: str, line: int) -> Mapping:
    cells = [*cells, *[""] * (len(head) - len(cells))]
    for column, cell in enumerate(cells):
        if cell.strip() and not (column < len(head) and head[column]):
            message = f"the cell {column + 1} of this row stands in no named column; name it, or quote its commas"
            raise load_error(source, (line, 1), message)
        if len(cell) > LONGEST_SCALAR:
            raise load_error(source, (line, 1), f"a text has at most {LONGEST_SCALAR} characters; shorten it")
    named = [(name, cell) for name, cell in zip(head, cells, strict=False) if name]
    return Mapping(line, 1, parts=[Scalar(line, 1, value=value) for pair in named for value in pair])


TABLES: dict[str, Callable[[str, str], Iterator[Node]]] = {
    ".csv": partial(_records, delimiter=","),
    ".tsv": partial(_records, delimiter="\t"),
    ".jsonl": rows_of_json,
    ".ndjson": rows_of_json,
}
"""The reader of a table, by the suffix of its file."""
