"""
Readers of data files: the rows of JSON lines, CSV, TSV, Parquet and Excel, and of logs, one after the other.

Nothing is read before the first row is taken, and then some rows at a time. A line that is no row is a `Broken`, which
says why, so that it costs that line alone; what is wrong with the whole file is raised.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, TextIO
from zipfile import BadZipFile

from rubric.engine.columns import refuse_twice
from rubric.engine.logs import Broken, inspect_samples
from rubric.errors import DefinitionError

_ROWS = 2_048
"""Rows of a lazy frame, or of a Parquet file, that are in memory at once."""


def slices(frame: Any) -> Iterator[Any]:
    """Yield the rows of a lazy *frame* of polars, as mappings, some at a time."""
    start = 0
    while (part := frame.slice(start, _ROWS).collect()).height:
        yield from part.iter_rows(named=True)
        start += _ROWS


_LONGEST_CELL = 2**24
"""Characters of a cell in CSV: more than any model reads, and an end to the text that a missing quote swallows."""

_COUNTED = 2**27
"""Bytes up to which the lines of a file are counted beforehand: about half a second."""

NO_TEXT = "no text in UTF-8; save the file in that encoding"
"""What is told of a file, or a line, that is none."""

_MARKED = re.compile("[\udc80-\udcff]")


def _opened(path: Path, newline: str | None = None) -> TextIO:
    """Return the text in *path*, with marks for bytes that are no text, so that they cost no more than their line."""
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline=newline)


def _is_text(given: str) -> bool:
    return given.isascii() or not _MARKED.search(given)


def json_lines(path: Path) -> Iterator[Any]:
    """Yield what each line of a file of JSON lines holds; a `Broken` for a line that is none."""
    return (row for _, row in _placed_lines(path))


def placed_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the place and the content of each row of a CSV, TSV or JSONL file; a `Broken` for a line that is none."""
    separator = SEPARATORS[path.suffix.lower()]
    return _placed_cells(path, separator) if separator else _placed_lines(path)


def _placed_lines(path: Path) -> Iterator[tuple[str, Any]]:
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                where = f"{path.name}:{number}"
                yield where, _json_line(where, line)


def _json_line(where: str, line: str) -> Any:
    if not _is_text(line):
        return Broken(f"{where}: {NO_TEXT}")
    try:
        return json.loads(line, object_pairs_hook=_once)
    except (ValueError, RecursionError) as problem:
        return Broken(f"{where}: no JSON: {problem}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return *pairs* as a mapping; refuse a key that is there twice, of which a mapping would hold the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for n, (key, _) in enumerate(pairs) if any(key == other for other, _ in pairs[:n]))
        raise ValueError(f"the key {twice!r} is used twice")
    return found


def _separated(path: Path, separator: str) -> Iterator[Any]:
    return (row for _, row in _placed_cells(path, separator))


def _placed_cells(path: Path, separator: str) -> Iterator[tuple[str, Any]]:
    with _opened(path, newline="") as lines:
        rows = csv.DictReader(lines, delimiter=separator, strict=True)
        try:
            _check_header(f"{path.name}:1", rows.fieldnames or (), separator)
            for row in _roomy(rows):
                where = f"{path.name}:{rows.line_num}"
                yield where, _row(where, row)
        except csv.Error as problem:
            cure = f"put texts that hold {separator!r}, quotes or line breaks into quotes, each quote in them twice"
            raise DefinitionError("candidates", f"{path.name}:{rows.reader.line_num}: {problem}; {cure}") from None


def _check_header(where: str, names: Sequence[str], separator: str) -> None:
    """Refuse the names of columns that are no text, in one cell for another separator, or used twice."""
    if not all(map(_is_text, names)) or "\0" in "".join(names):
        raise DefinitionError("candidates", f"{where}: {NO_TEXT}")
    other = next((each for each in ";\t,|" if each != separator and len(names) == 1 and each in names[0]), "")
    if other:
        cure = "name the file .tsv" if other == "\t" else f"save it with {separator!r}"
        raise DefinitionError("candidates", f"{where}: the columns are parted by {other!r}, not {separator!r}; {cure}")
    refuse_twice(names, where)


_limiting = Lock()


def _roomy(rows: Iterator[Any]) -> Iterator[Any]:
    """Yield *rows* without Python's limit for a cell, which is short for a text."""
    while True:
        with _limiting:  # the limit is one for the process: two threads would restore each other's
            limit = csv.field_size_limit(_LONGEST_CELL)
            try:
                row = next(rows, None)
            finally:
                csv.field_size_limit(limit)
        if row is None:
            return
        yield row


def _row(where: str, row: dict[Any, Any]) -> Any:
    """Return *row* unless it is no text, or was cut: a cell beyond the last name belongs to one of the texts."""
    if (beyond := row.get(None)) is not None:
        found, allowed = len(row) - 1 + len(beyond), len(row) - 1
        return Broken(f"{where}: {found} cells under {allowed} names; put texts that are cut into quotes")
    if not all(_is_text(cell) for cell in row.values() if cell is not None):
        return Broken(f"{where}: {NO_TEXT}")
    return row


def _parquet(path: Path) -> Iterator[Any]:
    pl = polars()
    try:
        yield from slices(pl.scan_parquet(path, glob=False))
    except pl.exceptions.PolarsError as problem:
        raise DefinitionError("candidates", f"{path.name} cannot be read as Parquet: {problem}") from None


def polars() -> Any:
    """
    Return polars.

    Raises:
        ImportError: It is not installed; with the command that installs it.
    """
    try:
        import polars as pl  # noqa: PLC0415 - an extra
    except ImportError as error:
        message = "to read Parquet files takes polars: pip install rubric-grade[parquet]"
        raise ImportError(message, name="polars") from error
    return pl


def _sheet(path: Path) -> Iterator[Any]:
    """Yield the rows of the first sheet of an Excel file under the names of its first row, some at a time."""
    library = _openpyxl()
    try:
        book = library.load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, KeyError, library.utils.exceptions.InvalidFileException, OSError) as problem:
        raise DefinitionError("candidates", f"{path.name} cannot be read as an Excel file: {problem}") from None
    rows = book.worksheets[0].iter_rows(values_only=True)
    try:
        names = next(rows, ())
        refuse_twice([name for name in map(str, names) if name != "None"], path.name)
        for row in rows:
            named = {str(name): cell for name, cell in zip(names, row, strict=False) if name is not None}
            if any(cell is not None for cell in named.values()):  # a sheet often ends in rows that were emptied
                yield named
    finally:
        rows.close()  # or the file stays open: an unfinished iteration holds on to it
        book.close()


def _openpyxl() -> Any:
    try:
        import openpyxl  # noqa: PLC0415 - an extra
    except ImportError as error:
        message = "to read Excel files takes openpyxl: pip install rubric-grade[xlsx]"
        raise ImportError(message, name="openpyxl") from error
    return openpyxl


LIBRARIES: dict[Callable[[Path], Iterator[Any]], Callable[[], object]] = {_parquet: polars, _sheet: _openpyxl}
"""What a reader needs: missing libraries are told before the first row is taken."""

SEPARATORS = {".csv": ",", ".tsv": "\t", ".jsonl": "", ".ndjson": ""}
"""What parts the cells of a text file with a row a line; nothing where each line is JSON."""

READERS: dict[str, Callable[[Path], Iterator[Any]]] = {
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".csv": partial(_separated, separator=","),
    ".tsv": partial(_separated, separator="\t"),
    ".parquet": _parquet,
    ".xlsx": _sheet,
    ".eval": inspect_samples,
}
"""How to read a file, by its suffix; nothing is read before the first row is taken."""


def count_rows(path: Path) -> int | None:
    """Return how many rows the file at *path* has, where that is soon found out."""
    try:
        if path.suffix.lower() == ".parquet":
            return int(polars().scan_parquet(path, glob=False).select(polars().len()).collect().item())
        if path.suffix.lower() not in (".jsonl", ".ndjson") or path.stat().st_size > _COUNTED:
            return None
        with path.open("rb") as lines:
            return sum(not line.isspace() for line in lines)
    except Exception:  # noqa: BLE001 - reading it will tell what is wrong with it
        return None
