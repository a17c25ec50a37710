"""Files of candidates: JSON lines, CSV, Parquet. What is wrong with a line costs that line alone, where that can be."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any, TextIO

from attrs import frozen

from rubric.errors import DefinitionError

__all__ = ["READERS", "Broken", "entries", "polars", "slices", "text_of"]

_ROWS = 2_048
"""Rows that are read of a Parquet file at once."""

_LONGEST_CELL = 2**24
"""Characters of a cell in CSV: more than any model reads, and an end to what a quote that is missing swallows."""

_COUNTED = 2**27
"""Bytes up to which the lines of a file are counted beforehand: about half a second."""

_PARQUET = "to read Parquet files takes polars: pip install rubric-grade[parquet]"


def entries(path: Path) -> int | None:
    """Return how many rows the file at *path* has, where that is soon found out."""
    try:
        if path.suffix.lower() == ".parquet":
            return int(polars().scan_parquet(path, glob=False).select(polars().len()).collect().item())
        if path.suffix.lower() not in _BY_LINE or path.stat().st_size > _COUNTED:
            return None
        with path.open("rb") as lines:
            return sum(not line.isspace() for line in lines)
    except Exception:  # noqa: BLE001 - whoever reads it will tell what is wrong with it
        return None


_BY_LINE = (".jsonl", ".ndjson")


def text_of(path: Path) -> str:
    """
    Return the text in the file at *path*, which is one candidate.

    Raises:
        DefinitionError: There is no such file, or no text in UTF-8 in it.
    """
    if not path.is_file():  # nor a pipe, which would never end
        raise DefinitionError("", f"there is no file {str(path)!r}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DefinitionError("", f"{path.name}: {_NO_TEXT}") from None
    except OSError as problem:
        raise DefinitionError("", f"{path.name} cannot be read: {problem.strerror or problem}") from None


def _json_lines(path: Path) -> Iterator[Any]:
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _json_line(path, number, line)


def _opened(path: Path, newline: str | None = None) -> TextIO:
    """Return the text in *path*; bytes that are none come out marked, so that they cost no more than their own line."""
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline=newline)


def _is_text(given: str) -> bool:
    """Say whether *given* was UTF-8."""
    return given.isascii() or not _MARKED.search(given)


_MARKED = re.compile("[\udc80-\udcff]")


def _json_line(path: Path, number: int, line: str) -> Any:
    if not _is_text(line):
        return Broken(f"{path.name}:{number}: {_NO_TEXT}")
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as problem:
        return Broken(f"{path.name}:{number}: no JSON: {problem}")


@frozen
class Broken:
    """A line that holds nothing; whoever comes to it says so, and the lines after it are still read."""

    why: str


def _separated(separator: str) -> Callable[[Path], Iterator[Any]]:
    def read(path: Path) -> Iterator[Any]:
        with _opened(path, newline="") as lines:
            rows = csv.DictReader(lines, delimiter=separator, strict=True)
            try:
                for row in _roomy(rows):
                    yield _row(path, rows.line_num, row)
            except csv.Error as problem:
                cure = f"put texts that hold {separator!r}, quotes or line breaks into quotes, each quote in them twice"
                raise DefinitionError("candidates", f"{path.name}:{rows.reader.line_num}: {problem}; {cure}") from None

    return read


_limiting = Lock()


def _roomy(rows: Iterator[Any]) -> Iterator[Any]:
    """Yield *rows*, with Python's limit for a cell out of the way: it is one for the process, and short for a text."""
    while True:
        with _limiting:
            limit = csv.field_size_limit(_LONGEST_CELL)
            try:
                row = next(rows, None)
            finally:
                csv.field_size_limit(limit)
        if row is None:
            return
        yield row


def _row(path: Path, number: int, row: dict[Any, Any]) -> Any:
    """Return *row*, unless it is no text, or has been cut: what is beyond the last name belongs to one of its texts."""
    if (beyond := row.get(None)) is not None:
        found, allowed = len(row) - 1 + len(beyond), len(row) - 1
        return Broken(f"{path.name}:{number}: {found} cells under {allowed} names; put texts that are cut into quotes")
    if not all(_is_text(cell) for cell in row.values() if cell is not None):
        return Broken(f"{path.name}:{number}: {_NO_TEXT}")
    return row


_NO_TEXT = "no text in UTF-8; save the file in that encoding"


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
        ImportError: It is not installed; with what to install.
    """
    try:
        import polars as pl  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ImportError(_PARQUET, name="polars") from error
    return pl


def slices(frame: Any) -> Iterator[Any]:
    """Yield the rows of a lazy *frame* of polars, as mappings, some at a time."""
    start = 0
    while (part := frame.slice(start, _ROWS).collect()).height:
        yield from part.iter_rows(named=True)
        start += _ROWS


READERS: dict[str, Callable[[Path], Iterator[Any]]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
    ".parquet": _parquet,
}
"""How to read a file, by what its name ends in; nothing is read before the first row is taken."""
