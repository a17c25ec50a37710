"""
The one reader of rows: JSON lines, JSON, CSV, TSV, Parquet and Excel, for every argument that takes a file of rows.

Nothing is read before the first row is taken, and then some rows at a time. A line that cannot be read is a `Broken`,
which says why, so that it costs that line alone; what is wrong with the whole file is raised. Nothing is dropped: a
cell beyond the last name, a column or a key that is there twice and bytes that are not UTF-8 are refused. An empty cell
is a missing value in every kind of file.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from sys import float_info
from threading import Lock
from typing import Any, NoReturn, TextIO
from zipfile import BadZipFile

from attrs import frozen

from rubric.errors import DefinitionError
from rubric.internals.text import shorten

Numbered = Iterator[tuple[int, Any]]
"""Rows, each with its line in the file, or its place from 1 where the file has no lines."""


@frozen
class Broken:
    """A line, or an entry, that holds nothing; it is refused when its turn comes, and those after it are still read."""

    why: str
    key: str = ""


def rows_in(
    field: str, path: Path, kind: str = "", *, broken: Callable[[str], object] | None = None
) -> Iterator[tuple[str, Any]]:
    """
    Yield the place and the content of each row of the file at *path*.

    Args:
        field: The argument that names the file, for errors.
        kind: The suffix of its kind, where a file of any name is of that kind.
        broken: Makes what stands for a row that cannot be read, of the reason; None refuses the file at the first one,
            where a dropped row would be missed.

    Raises:
        DefinitionError: There is no such file, its kind is unknown, or it cannot be read as one of that kind.
    """
    read = READERS.get(kind or path.suffix.lower())
    if read is None:
        raise DefinitionError(field, f"expected a file that ends in {', '.join(READERS)}, got {str(path)!r}")
    if not path.is_file():  # nor a pipe, which would never end
        raise DefinitionError(field, f"there is no file {str(path)!r}")
    try:
        with path.open("rb") as file:
            if file.read(15) == b"SQLite format 3":
                cure = f"such as grade-many rubric.yaml answers.jsonl --store {path.name} --out results.jsonl"
                _refuse(f"{path.name} is a store of replies; to grade by them again asks nothing, {cure}")
        for number, row in read(path):
            if isinstance(row, Broken):
                yield f"{path.name}:{number}", (broken or _refuse)(row.why)
            elif not is_report(row):  # the line that sums up a report of ours is not a row
                yield f"{path.name}:{number}", row
    except DefinitionError as problem:
        raise DefinitionError(field, problem.message) from None
    except OSError as problem:
        raise DefinitionError(field, f"{path.name} cannot be read: {problem.strerror or problem}") from None


def _refuse(why: str) -> NoReturn:
    raise DefinitionError("", why)


def first_row(path: Path) -> Any:
    """Return what the first line of the file at *path* holds if it is JSON, else None."""
    _, row = next(_json_lines(path), (0, None))
    return None if isinstance(row, Broken) else row


# -- text ------------------------------------------------------------------------------------------------

_LONGEST_CELL = 2**24
"""Characters of a cell in CSV: more than any model reads, and an end to the text that a missing quote swallows."""

_COUNTED = 2**27
"""Bytes up to which the lines of a file are counted beforehand: about half a second."""

NO_TEXT = "no text in UTF-8; save the file in that encoding"
"""The message for a file or line that is not UTF-8."""

_MARKED = re.compile("[\udc80-\udcff]")


def _open(path: Path, newline: str | None = None) -> TextIO:
    """Return the text in *path*, with marks for bytes that are not text, so that they cost no more than their line."""
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline=newline)


def _is_text(given: str) -> bool:
    return given.isascii() or not _MARKED.search(given)


def _json_lines(path: Path) -> Numbered:
    with _open(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number, _json_line(f"{path.name}:{number}", line)


def _json_line(where: str, line: str) -> Any:
    if not _is_text(line):
        return Broken(f"{where}: {NO_TEXT}")
    try:
        return read_json(line.rstrip())
    except (ValueError, RecursionError) as problem:
        return Broken(f"{where}: no JSON: {problem}")


def _json_file(path: Path) -> Numbered:
    """Yield what a JSON file lists: an array, an object alone, promptfoo's results, or the rows of a report of ours."""
    with _open(path) as file:
        text = file.read()
    if not _is_text(text):
        raise DefinitionError("", f"{path.name}: {NO_TEXT}")
    try:
        found: Any = read_json(text) if text.strip() else []
    except (ValueError, RecursionError) as problem:
        raise DefinitionError("", f"{path.name}: no JSON: {shorten(str(problem), 200)}") from None
    while isinstance(found, Mapping) and "results" in found:  # promptfoo's are two deep, and were one
        found = found["results"]
    if is_report(found):
        found = found.get("rows")
    yield from enumerate(found if isinstance(found, list) else [found], 1)


def is_report(data: Any) -> bool:
    """True if *data* is a report of ours in JSON, or the line of one that sums it up."""
    return isinstance(data, Mapping) and str(data.get("schema")).startswith("rubric-report/")


def read_json(text: str | bytes) -> Any:
    """
    Return the data in *text*, in which each key stands once and each number fits into a float.

    Raises:
        ValueError: It is not. A number of hundreds of digits could be read, but no mean, chart or sheet made of it.
        RecursionError: It is too deep.
    """
    try:
        return json.loads(text, object_pairs_hook=_once, parse_int=_integer, parse_float=_float)
    except json.JSONDecodeError as problem:
        rest, said = problem.doc[problem.pos :].strip(), problem.msg
        is_cut = any(word.startswith(rest) for word in ("true", "false", "null", "-", ".", "e")) and problem.doc.strip()
        if is_cut or said.startswith("Unterminated"):
            said = f"it is cut off before its end: {said}"
        raise json.JSONDecodeError(said, problem.doc, problem.pos) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return *pairs* as a mapping; refuse a key that is there twice, of which a mapping would hold the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"the key {_twice([key for key, _ in pairs])!r} is used twice")
    return found


def _twice(names: Sequence[str]) -> str:
    """Return the first of *names* that stands there twice; '' if none does."""
    counts = Counter(names)
    return next((name for name in names if name and counts[name] > 1), "")


def refuse_twice(names: Sequence[str], where: str = "") -> None:
    """Refuse *names* of columns of which two are the same: a row would hold the last of them."""
    if twice := _twice(names):
        at = f"{where}: " if where else ""
        raise DefinitionError("columns", f"{at}two columns are called {twice!r}; rename one, or leave it out")


def _integer(digits: str) -> int:
    _float(digits)
    return int(digits)


def _float(digits: str) -> float:
    found = float(digits)
    if abs(found) == float("inf"):
        raise ValueError(f"the number {digits[:12]}... of {len(digits)} characters is too large")
    return found


def check_finite(field: str, data: Any) -> None:
    """Refuse plain *data* with a number that is not finite, or too large for a float."""
    if where := _not_finite(data):
        raise DefinitionError(f"{field}{where}", "expected a finite number that a float holds, got another")


def _not_finite(data: Any) -> str:
    """Return the path to the first such number in *data*, such as `.rows.0.score`; '' if there is none."""
    for name, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, (int, float)):
            if not abs(value) <= float_info.max:  # also NaN
                return f".{name}"
        elif isinstance(value, dict | list) and (rest := _not_finite(value)):
            return f".{name}{rest}"
    return ""


def _cells(path: Path, separator: str) -> Numbered:
    with _open(path, newline="") as lines:
        rows = csv.reader(lines, delimiter=separator, strict=True)
        try:
            names: list[str] = next(filter(None, _roomy(rows)), [])
            _check_header(f"{path.name}:1", names, separator)
            read = _unescape if any(own <= {*names} for own in _OWN_COLUMNS) else str
            for cells in filter(None, _roomy(rows)):
                where = f"{path.name}:{rows.line_num}"
                if len(cells) > len(names):
                    why = f"{len(cells)} cells under {len(names)} names; put texts that are cut into quotes"
                    yield rows.line_num, Broken(f"{where}: {why}")
                elif not all(map(_is_text, cells)):
                    yield rows.line_num, Broken(f"{where}: {NO_TEXT}")
                else:
                    yield rows.line_num, dict(zip_longest(names, (read(cell) or None for cell in cells)))
        except csv.Error as problem:
            cure = f"put texts that hold {separator!r}, quotes or line breaks into quotes, each quote in them twice"
            raise DefinitionError("", f"{path.name}:{rows.line_num}: {problem}; {cure}") from None


_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")  # noqa: RUF001 - Excel takes full width too
_QUOTED = re.compile('[",\r\n]')
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """
    Return *rows* as CSV for a spreadsheet, which would run a text that begins like a formula.

    Such a text gets a quote before it, as OWASP advises; numbers stay numbers. `rows_in` takes the quote away again.
    """
    return "".join(",".join(map(_cell, row)) + "\n" for row in rows)


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    is_formula = isinstance(value, str) and _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    text = f"'{text}" if is_formula else text
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text  # csv.writer forgets some "\r"


def _unescape(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


_OWN_COLUMNS = (frozenset({"index", "score", "passed", "verdict", "low", "high"}), frozenset({"rater", "judge_seen"}))
"""Columns of tables that are written by `csv_text`: in those of others, a quote at the start belongs to the text."""


def _check_header(where: str, names: Sequence[str], separator: str) -> None:
    """Refuse the names of columns that are not text, in one cell for another separator, or used twice."""
    if not all(map(_is_text, names)) or "\0" in "".join(names):
        raise DefinitionError("", f"{where}: {NO_TEXT}")
    other = next((each for each in ";\t,|" if each != separator and len(names) == 1 and each in names[0]), "")
    if other:
        cure = "name the file .tsv" if other == "\t" else f"save it with {separator!r}"
        raise DefinitionError("", f"{where}: the columns are parted by {other!r}, not {separator!r}; {cure}")
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


# -- Parquet and Excel ------------------------------------------------------------------------------------

_ROWS = 2_048
"""Rows of a lazy frame, or of a Parquet file, that are in memory at once."""


def slices(frame: Any) -> Iterator[Any]:
    """Yield the rows of a lazy *frame* of polars, as mappings, some at a time."""
    start = 0
    while (part := frame.slice(start, _ROWS).collect()).height:
        yield from part.iter_rows(named=True)
        start += _ROWS


def _parquet(path: Path) -> Numbered:
    pl = polars()
    try:
        yield from enumerate(slices(pl.scan_parquet(path, glob=False)), 1)
    except pl.exceptions.PolarsError as problem:
        raise DefinitionError("", f"{path.name} cannot be read as Parquet: {problem}") from None


def _library(name: str, kind: str, extra: str) -> Any:
    """Return the library *name*; the `ImportError` without it has the command that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        message = f"to read {kind} files takes {name}: pip install 'rubric-grade[{extra}]'"
        raise ImportError(message, name=name) from error


polars = partial(_library, "polars", "Parquet", "parquet")
_openpyxl = partial(_library, "openpyxl", "Excel", "xlsx")


def _sheet(path: Path) -> Numbered:
    """Yield the rows of the first sheet of an Excel file under the names of its first row, some at a time."""
    library = _openpyxl()
    try:
        book = library.load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, KeyError, library.utils.exceptions.InvalidFileException, OSError) as problem:
        raise DefinitionError("", f"{path.name} cannot be read as an Excel file: {problem}") from None
    rows = book.worksheets[0].iter_rows(values_only=True)
    try:
        names = ["" if name is None else str(name) for name in next(rows, ())]
        refuse_twice(names, path.name)
        for number, row in enumerate(rows, 2):
            named = {name: cell for name, cell in zip(names, row, strict=False) if name}
            if any(cell is not None for cell in named.values()):  # a sheet often ends in rows that were emptied
                yield number, named
    finally:
        rows.close()  # or the file stays open: an unfinished iteration holds on to it
        book.close()


LIBRARIES: dict[str, Callable[[], object]] = {".parquet": polars, ".xlsx": _openpyxl}
"""What a reader needs: missing libraries are told before the first row is taken."""

READERS: dict[str, Callable[[Path], Numbered]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_file,
    ".csv": partial(_cells, separator=","),
    ".tsv": partial(_cells, separator="\t"),
    ".parquet": _parquet,
    ".xlsx": _sheet,
}
"""How to read a file, by its suffix; nothing is read before the first row is taken."""


def count_rows(path: Path) -> int | None:
    """Return how many rows the file at *path* has, where that is soon found out."""
    try:
        if path.suffix.lower() == ".parquet":
            return int(polars().scan_parquet(path, glob=False).select(polars().len()).collect().item())
        if path.suffix.lower() not in (".jsonl", ".ndjson", ".csv") or path.stat().st_size > _COUNTED:
            return None
        if path.suffix.lower() == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as rows:
                return sum(bool(row) for row in csv.reader(rows)) - 1
        with path.open("rb") as lines:
            return sum(not line.isspace() for line in lines)
    except Exception:  # noqa: BLE001 - reading it will tell what is wrong with it
        return None
