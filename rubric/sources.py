"""
Where many candidates come from: iterables, sync or async, columns and frames of pandas and polars, and files.

| given                                                | an item is                                               |
|------------------------------------------------------|----------------------------------------------------------|
| an iterable or async iterable, a column              | a text, a `Candidate`, or a mapping of its fields        |
| a frame of pandas or polars, a table of Arrow        | a row, a mapping of its columns                          |
| a path that ends in .jsonl or .ndjson                | a line: a JSON text, or an object                        |
| a path that ends in .csv or .tsv                     | a row under the names of the first                       |
| a path that ends in .parquet (extra `parquet`)       | a row, a mapping of its columns                          |

Of a mapping, the keys that a `Candidate` has count; `output` must be among them, and other keys are passed over.
Files and frames are read as they are graded, so memory stays flat.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sized
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from attrs import field, fields, frozen

from rubric.candidates import Candidate
from rubric.errors import DefinitionError
from rubric.validating import refuse

__all__ = ["Broken", "Candidates", "Placed", "Source", "as_candidate", "candidate_at", "located", "source_of"]

Candidates = Iterable[Any] | AsyncIterable[Any] | str | Path
"""Many candidates, in any of the forms above."""

_ROWS = 2_048
"""Rows that are read of a Parquet file at once."""

_LONGEST_CELL = 2**24
"""Characters of a cell in CSV: more than any model reads, and an end to what a quote that is missing swallows."""

_COUNTED = 2**27
"""Bytes up to which the lines of a file are counted beforehand: about half a second."""

_NEAR = 0.85
_PARQUET = "to read Parquet files takes polars: pip install rubric-grade[parquet]"


@frozen
class Placed:
    """A candidate with its place in the whole data set, from 0."""

    index: int
    item: Any

    @classmethod
    def at(cls, index: int, item: Any) -> Placed:
        """Return *item* with the place that it has already, or with *index*."""
        return item if isinstance(item, Placed) else cls(index, item)


@frozen
class Source:
    """
    Where candidates come from.

    Args:
        items: They themselves; what is not a candidate is found out when its turn comes.
        count: Says how many there are, where that can be told without taking them; None where it cannot.
        is_held: Whether they are in memory already, so that to take the next one never has to wait.
    """

    items: Iterable[Any] | AsyncIterable[Any] = field(repr=False)
    count: Callable[[], int | None] = field(default=lambda: None, repr=False)
    is_held: bool = False

    @property
    def total(self) -> int | None:
        """How many there are; None where that is not known beforehand. It may have to look into a file."""
        return self.count()


def source_of(candidates: Candidates, /) -> Source:
    """
    Return where *candidates* come from; nothing is taken or read yet.

    Raises:
        DefinitionError: It is one candidate, no iterable, or a file of a kind that cannot be read.
        ImportError: What reads files of this kind is not installed.
    """
    if isinstance(candidates, str | Path):
        return _file(candidates)
    if isinstance(candidates, Candidate | Mapping | bytes):
        message = f"expected many candidates, got one {type(candidates).__name__}; put it into a list, or use grade()"
        raise DefinitionError("candidates", message)
    if (rows := _frame(candidates)) is not None:
        return Source(rows, partial(_size, candidates))
    if not isinstance(candidates, Iterable | AsyncIterable):
        raise refuse("candidates", candidates, "an iterable, an async iterable, a frame, or the path of a file")
    return Source(candidates, partial(_size, candidates), isinstance(candidates, list | tuple))


def as_candidate(item: object, /) -> Candidate:
    """
    Return *item* as a candidate.

    Raises:
        DefinitionError: It can be none; the field is within the item, such as `output`.
    """
    if isinstance(item, str):
        return Candidate(item)
    if isinstance(item, Candidate):
        return item
    if isinstance(item, Mapping):
        return _of_row(item)
    if isinstance(item, Broken):
        raise DefinitionError("", item.why)
    raise DefinitionError("", f"expected a text, a Candidate or a mapping, got {_called(item)}")


def candidate_at(index: int, item: object, /) -> Candidate:
    """
    Return *item*, which stands at *index* if it does not say where itself, as a candidate.

    Raises:
        DefinitionError: It can be none; the field begins with its place, such as `candidates[3].output`.
    """
    placed = Placed.at(index, item)
    try:
        return as_candidate(placed.item)
    except DefinitionError as error:
        raise located(placed.index, error) from None


def located(index: int, error: DefinitionError) -> DefinitionError:
    """Return *error*, which one candidate has raised, with the *index* of that one."""
    return DefinitionError(f"candidates[{index}]{'.' if error.field else ''}{error.field}", error.message)


def _called(item: object) -> str:
    return f"nothing ({item})" if _is_missing(item) else type(item).__name__


_FIELDS = tuple(field.name for field in fields(Candidate))


def _of_row(row: Mapping[Any, Any]) -> Candidate:
    given = {name: row[name] for name in _FIELDS if name in row and not _is_missing(row[name])}
    for name in row:
        near = get_close_matches(name, _FIELDS, 1, _NEAR) if isinstance(name, str) and name not in _FIELDS else []
        if near and near[0] not in row:
            raise DefinitionError(name, f"is no field of a candidate; did you mean {near[0]!r}?")
    if "output" not in row:
        named = ", ".join(map(str, row)) or "nothing"
        raise DefinitionError("output", f"is not there; name the text that is graded so (there are: {named})")
    if "output" not in given:
        raise DefinitionError("output", f"expected text, got nothing ({row['output']})")
    return Candidate(**given)


def _is_missing(value: object) -> bool:
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124 - NaN
        return True
    return type(value).__name__ in ("NAType", "NaTType") and type(value).__module__.startswith("pandas.")


# -- frames ----------------------------------------------------------------------------------------------


def _frame(candidates: Any) -> Iterable[Any] | None:
    """Return the rows of a frame; None if *candidates* are no frame. No library is loaded to find out."""
    home, kind = type(candidates).__module__.partition(".")[0], type(candidates).__name__
    match home, kind:
        case "pandas", "DataFrame":
            names = [str(name) for name in candidates.columns]
            return _Rows(lambda: (dict(zip(names, row, strict=True)) for row in _tuples(candidates)))
        case "polars", "DataFrame":
            return _Rows(lambda: candidates.iter_rows(named=True))
        case "polars", "LazyFrame":
            return _Rows(lambda: _slices(candidates))
        case "pyarrow", "Table" | "RecordBatch":
            return _Rows(lambda: (row for batch in candidates.to_batches() for row in batch.to_pylist()))
        case _:
            return None


def _tuples(frame: Any) -> Iterator[tuple[Any, ...]]:
    rows: Iterator[tuple[Any, ...]] = frame.itertuples(index=False, name=None)
    return rows


def _slices(frame: Any) -> Iterator[Any]:
    start = 0
    while (part := frame.slice(start, _ROWS).collect()).height:
        yield from part.iter_rows(named=True)
        start += _ROWS


@frozen
class _Rows:
    """Rows that are made anew for each who goes through them, and not before."""

    _make: Callable[[], Iterator[Any]]

    def __iter__(self) -> Iterator[Any]:
        return self._make()


def _size(candidates: object) -> int | None:
    return len(candidates) if isinstance(candidates, Sized) else None


# -- files -----------------------------------------------------------------------------------------------


def _file(given: str | Path) -> Source:
    path = Path(given)
    read = _READERS.get(path.suffix.lower())
    if read is None:
        known = ", ".join(_READERS)
        message = f"expected many candidates, got the text {str(given)[:60]!r}; a path ends in {known}, a text is"
        raise DefinitionError("candidates", f"{message} for grade()")
    if not path.is_file():
        raise DefinitionError("candidates", f"there is no file {str(given)!r}")
    if path.suffix.lower() == ".parquet":
        _polars()
    return Source(_Rows(lambda: read(path)), partial(_entries, path))


def _entries(path: Path) -> int | None:
    """Return how many rows the file at *path* has, where that is soon found out."""
    try:
        if path.suffix.lower() == ".parquet":
            return int(_polars().scan_parquet(path, glob=False).select(_polars().len()).collect().item())
        if path.suffix.lower() not in _BY_LINE or path.stat().st_size > _COUNTED:
            return None
        with path.open("rb") as lines:
            return sum(not line.isspace() for line in lines)
    except Exception:  # noqa: BLE001 - whoever reads it will tell what is wrong with it
        return None


_BY_LINE = (".jsonl", ".ndjson")


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
        # Python's own limit is for all of a process, and shorter than a long candidate.
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
        with _opened(path, newline="") as lines:
            rows = csv.DictReader(lines, delimiter=separator, strict=True)
            try:
                for row in rows:
                    yield _row(path, rows.line_num, row)
            except csv.Error as problem:
                cure = f"put texts that hold {separator!r}, quotes or line breaks into quotes, each quote in them twice"
                raise DefinitionError("candidates", f"{path.name}:{rows.reader.line_num}: {problem}; {cure}") from None

    return read


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
    pl = _polars()
    try:
        yield from _slices(pl.scan_parquet(path, glob=False))
    except pl.exceptions.PolarsError as problem:
        raise DefinitionError("candidates", f"{path.name} cannot be read as Parquet: {problem}") from None


def _polars() -> Any:
    try:
        import polars as pl  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ImportError(_PARQUET, name="polars") from error
    return pl


_READERS: dict[str, Callable[[Path], Iterator[Any]]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
    ".parquet": _parquet,
}
