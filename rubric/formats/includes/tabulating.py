"""Tables as documents: CSV, TSV and JSONL, a mapping for each row, with the lines that the rows stand in."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator

from rubric.formats.documents import Document, Listing, Mapping, Node, Scalar
from rubric.formats.growing import FOR_SUITES, LONGEST_SCALAR, refused
from rubric.formats.json_parsing import parse_json
from rubric.showing import shorten

__all__ = ["TABLES", "parse_table"]

MOST_ROWS = 10_000
"""Rows of one table."""


def parse_table(text: str, source: str, suffix: str) -> Document:
    """
    Return the rows of *text*, a file with one of the suffixes in `TABLES`, as a document: a list of its rows.

    Raises:
        LoadError: It is no such table, or beyond the limits.
    """
    rows: list[Node] = []
    for row in TABLES[suffix](text.removeprefix("\ufeff"), source):
        rows.append(row)
        if len(rows) > MOST_ROWS:
            raise refused(source, row.place, f"a table has at most {MOST_ROWS} rows; split the file")
    return Document(source, Listing(1, 1, parts=rows))


def _lines(text: str, source: str) -> Iterator[Node]:
    for line, row in enumerate(text.split("\n"), 1):
        if row.strip() and (root := parse_json(row, source, FOR_SUITES, line)):
            yield root


def _commas(text: str, source: str) -> Iterator[Node]:
    return _records(text, source, ",")


def _tabs(text: str, source: str) -> Iterator[Node]:
    return _records(text, source, "\t")


def _records(text: str, source: str, delimiter: str) -> Iterator[Node]:
    head: list[str] = []
    for line, cells in _cells(text, source, delimiter):
        if not any(cell.strip() for cell in cells):
            continue
        if head:
            yield _record(head, cells, source, line)
        else:
            head = _head(cells, source, line)


def _cells(text: str, source: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the line that it starts in."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as problem:
        raise refused(source, (line, 1), f"this is not CSV: {problem}") from None


def _head(cells: list[str], source: str, line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    for name in names:
        if name and names.count(name) > 1:
            shown = shorten(repr(name), 60)
            raise refused(source, (line, 1), f"two columns are called {shown}; give each a name of its own")
    return names


def _record(head: list[str], cells: list[str], source: str, line: int) -> Mapping:
    cells = [*cells, *[""] * (len(head) - len(cells))]
    for column, cell in enumerate(cells):
        if cell.strip() and not (column < len(head) and head[column]):
            message = f"the cell {column + 1} of this row stands in no named column; name it, or quote its commas"
            raise refused(source, (line, 1), message)
        if len(cell) > LONGEST_SCALAR:
            raise refused(source, (line, 1), f"a text has at most {LONGEST_SCALAR} characters; shorten it")
    named = [(name, cell) for name, cell in zip(head, cells, strict=False) if name]
    return Mapping(line, 1, parts=[Scalar(line, 1, value=value) for pair in named for value in pair])


TABLES: dict[str, Callable[[str, str], Iterator[Node]]] = {
    ".csv": _commas,
    ".tsv": _tabs,
    ".jsonl": _lines,
    ".ndjson": _lines,
}
"""What reads a table, by the suffix of its file."""
