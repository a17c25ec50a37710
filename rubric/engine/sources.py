"""
Files of candidates: JSON lines, CSV, Parquet. What is wrong with a line costs that line alone, where that can be.

Where many candidates come from: iterables, sync or async, columns and frames of pandas and polars, and files.

| given                                                | an item is                                               |
|------------------------------------------------------|----------------------------------------------------------|
| an iterable or async iterable, a column              | a text, a `Candidate`, a mapping of its fields, a `Path` |
| a frame of pandas or polars, a table of Arrow        | a row, a mapping of its columns                          |
| a path that ends in .jsonl or .ndjson                | a line: a JSON text, or an object                        |
| a path that ends in .csv or .tsv                     | a row under the names of the first                       |
| a path that ends in .parquet (extra `parquet`)       | a row, a mapping of its columns                          |

Of a mapping, the keys that a `Candidate` has count, or those that `rubric.engine.columns` is told; `output` must be
among them. A key that looks like a field and is not used is refused; other keys are passed over.
A `Path` among the items is read: its text is the output. A text that looks like a path is refused
(`rubric.internals.fields.names_a_file`); give `Candidate("notes.txt")` or `{"output": "notes.txt"}` to grade the text.
Files and frames are read as they are graded, so memory stays flat.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, TextIO

from attrs import field, frozen

from rubric.engine.columns import OWN_NAMES, Columns
from rubric.errors import DefinitionError
from rubric.internals.fields import refuse, refuse_path
from rubric.results.result import Grade, Ungraded
from rubric.values.candidates import Candidate
from rubric.values.rubrics import Rubric

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

Candidates = Iterable[Any] | AsyncIterable[Any] | str | Path
"""Many candidates, in any of the forms above."""

_LOOKED_AT = 100
"""Rows of a file whose columns are looked at beforehand."""


@frozen
class Placed:
    """A candidate with its place in the whole data set, from 0, and the columns of its row."""

    index: int
    item: Any
    columns: Columns = field(default=OWN_NAMES, repr=False)

    @classmethod
    def at(cls, index: int, item: Any, columns: Columns = OWN_NAMES) -> Placed:
        """Return *item* with the place and the columns that it has already, or with *index* and *columns*."""
        return item if isinstance(item, Placed) else cls(index, item, columns)

    @property
    def candidate(self) -> Candidate:
        """
        The candidate.

        Raises:
            DefinitionError: It is none; the field is within the item, such as `output`.
        """
        return as_candidate(self.item, self.columns)


@frozen
class Source:
    """
    Where candidates come from.

    Args:
        items: They themselves; what is not a candidate is found out when its turn comes.
        count: Says how many there are, where that can be told without taking them; None where it cannot.
        is_held: Whether they are in memory already, so that to take the next one never has to wait.
        columns: Which columns hold which fields, where they are rows.
        given: What the items are taken from, which may know more than they: a part of a data set, its end.
    """

    items: Iterable[Any] | AsyncIterable[Any] = field(repr=False)
    count: Callable[[], int | None] = field(default=lambda: None, repr=False)
    is_held: bool = False
    columns: Columns = OWN_NAMES
    given: object = field(default=None, repr=False)

    @property
    def total(self) -> int | None:
        """How many there are; None where that is not known beforehand. It may have to look into a file."""
        return self.count()


def source_of(candidates: Candidates, columns: Mapping[str, str | None] | None = None, /) -> Source:
    """
    Return where *candidates* come from; no more is taken or read yet than the names of columns.

    Args:
        columns: The column of each field of a candidate that stands under another name; None for a column to pass over.

    Raises:
        DefinitionError: It is one candidate, no iterable, or a file of a kind that cannot be read; or a column looks
            like a field and is not used. Where that is not seen before the first row is taken, it is raised then.
        ImportError: What reads files of this kind is not installed.
    """
    named = Columns.of(columns)
    if isinstance(candidates, str | Path):
        return _file(candidates, named)
    if isinstance(candidates, Candidate | Mapping | bytes):
        message = f"expected many candidates, got one {type(candidates).__name__}; put it into a list, or use grade()"
        raise DefinitionError("candidates", message)
    _refuse_swapped("candidates", candidates)
    if (rows := _frame(candidates)) is not None:
        _check_names(_names(candidates), named)
        return Source(rows, partial(_size, candidates), columns=named)
    if isinstance(candidates, AsyncIterable):
        return Source(_AsyncChecked(candidates, named), partial(_size, candidates), columns=named, given=candidates)
    if not isinstance(candidates, Iterable):
        raise refuse("candidates", candidates, "an iterable, an async iterable, a frame, or the path of a file")
    if not isinstance(candidates, list | tuple):
        checked = _Rows(partial(_checked, candidates, named))
        return Source(checked, partial(_size, candidates), columns=named, given=candidates)
    _check_held(candidates, named)
    return Source(candidates, partial(_size, candidates), is_held=True, columns=named)


def as_candidate(item: object, columns: Columns = OWN_NAMES, /) -> Candidate:
    """
    Return *item* as a candidate; *columns* are those of a row.

    Raises:
        DefinitionError: It can be none; the field is within the item, such as `output`.
    """
    if isinstance(item, str):
        refuse_path("", item, f"give Path({item!r}) to have the file read, or Candidate({item!r}) to grade these words")
        return Candidate(item)
    if isinstance(item, Candidate):
        return item
    if isinstance(item, Path):
        return Candidate(text_of(item))
    if isinstance(item, Mapping):
        return _of_row(item, columns)
    if isinstance(item, Broken):
        raise DefinitionError("", item.why)
    raise DefinitionError("", f"expected a text, a Candidate, a mapping or a Path, got {_called(item)}")


def one_candidate(value: object, /) -> Candidate:
    """
    Return *value*, given as the one candidate of `grade`, as a candidate; a `Path` is read.

    Raises:
        DefinitionError: It can be none: it is several, or a rubric, or the path of a file as a text.
    """
    if isinstance(value, str | Candidate) or (isinstance(value, Path) and not holds_many(value)):
        try:
            return as_candidate(value)
        except DefinitionError as error:
            raise DefinitionError("candidate", error.message) from None
    _refuse_swapped("candidate", value)
    if isinstance(value, Mapping):
        cure = "Candidate(output=..., input=...), or Candidate(**row)"
    elif isinstance(value, Path | Iterable | AsyncIterable) and not isinstance(value, bytes):
        cure = "many candidates are for grade_many(candidates, rubric, judge)"
    else:
        cure = "give the text that is graded, Candidate(text), or the Path of its file"
    raise DefinitionError("candidate", f"expected one text, Candidate or Path, got {_called(value)}; {cure}")


def holds_many(path: Path, /) -> bool:
    """True if *path* names a file of many candidates."""
    return path.suffix.lower() in READERS


def fetched(item: object, /) -> object:
    """Return *item* for another machine: a `Path` as the candidate that its file holds, all else as it is."""
    if not isinstance(item, Path):
        return item
    try:
        return as_candidate(item)
    except DefinitionError as error:
        return Broken(error.message)


def _refuse_swapped(field: str, value: object) -> None:
    """Refuse a rubric or a result, which can be gone through as well, as candidates."""
    if isinstance(value, Rubric):
        raise DefinitionError(field, "got a Rubric; the candidate comes first, then the rubric, then the judge")
    if isinstance(value, Grade | Ungraded):
        raise DefinitionError(field, f"got a {type(value).__name__}, a result; give what is to be graded")


def candidate_at(index: int, item: object, columns: Columns = OWN_NAMES, /) -> Candidate:
    """
    Return *item*, which stands at *index* if it does not say where itself, as a candidate.

    Raises:
        DefinitionError: It can be none; the field begins with its place, such as `candidates[3].output`.
    """
    placed = Placed.at(index, item, columns)
    try:
        return placed.candidate
    except DefinitionError as error:
        raise located(placed.index, error) from None


def located(index: int, error: DefinitionError) -> DefinitionError:
    """Return *error*, which one candidate has raised, with the *index* of that one."""
    return DefinitionError(f"candidates[{index}]{'.' if error.field else ''}{error.field}", error.message)


def _called(item: object) -> str:
    """Return what *item* is; a path by its name, since all of it is in the way of what is wrong with it."""
    if isinstance(item, Path):
        return f"the file {item.name!r} of many"
    return f"nothing ({item})" if _is_missing(item) else type(item).__name__


def _of_row(row: Mapping[Any, Any], columns: Columns) -> Candidate:
    given = columns.row(row)
    if "output" not in given:
        named = ", ".join(map(str, row)) or "nothing"
        raise DefinitionError("output", f"is not there; name the text that is graded so (there are: {named})")
    if _is_missing(given["output"]):
        raise DefinitionError("output", f"expected text, got nothing ({given['output']})")
    return Candidate(**{name: _as_field(name, value) for name, value in given.items() if not _is_missing(value)})


def _as_field(name: str, value: Any) -> Any:
    """Return *value* as the field has it, where a column often holds one text for several, or several for one."""
    if name == "images" and isinstance(value, str):
        return [value]
    if name == "context" and isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return "\n\n".join(value)
    return value


def _is_missing(value: object) -> bool:
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124 - NaN
        return True
    return type(value).__name__ in ("NAType", "NaTType") and type(value).__module__.startswith("pandas.")


# -- columns ---------------------------------------------------------------------------------------------


def _check_first(item: object, columns: Columns) -> None:
    """Refuse all items for what the first is, before any is paid for; another that differs is refused by itself."""
    if isinstance(item, Placed) and columns.named:
        raise DefinitionError("columns", "these are parts of a data set already; say it there: Shard.of(..., columns=)")
    if isinstance(item, Mapping):
        columns.check(item)


def _check_held(items: list[Any] | tuple[Any, ...], columns: Columns) -> None:
    if columns.named and items and not any(isinstance(item, Mapping | Placed) for item in items):
        raise DefinitionError("columns", f"there are no rows with columns here, but {_called(items[0])}; leave it out")
    if items and isinstance(items[0], Mapping):
        columns.check(dict.fromkeys(name for item in items if isinstance(item, Mapping) for name in item))
    elif items:
        _check_first(items[0], columns)


def _check_names(names: Sequence[Any], columns: Columns) -> None:
    if names:  # there are none in an empty file, or in one of texts
        columns.check(names)


def _checked(items: Iterable[Any], columns: Columns) -> Iterator[Any]:
    iterator = iter(items)
    try:
        for place, item in enumerate(iterator):
            if not place:
                _check_first(item, columns)
            yield item
    finally:
        getattr(iterator, "close", bool)()


@frozen
class _AsyncChecked:
    _items: AsyncIterable[Any]
    _columns: Columns

    async def __aiter__(self) -> AsyncIterator[Any]:
        iterator, is_first = aiter(self._items), True
        try:
            async for item in iterator:
                if is_first:
                    _check_first(item, self._columns)
                is_first = False
                yield item
        finally:
            close = getattr(iterator, "aclose", None)
            if close is not None:
                await close()


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
            return _Rows(lambda: slices(candidates))
        case "pyarrow", "Table" | "RecordBatch":
            return _Rows(lambda: (row for batch in candidates.to_batches() for row in batch.to_pylist()))
        case _:
            return None


def _names(frame: Any) -> list[str]:
    """Return the names of the columns of *frame*; none where reading it will tell what is wrong with it."""
    with suppress(Exception):
        match type(frame).__name__:
            case "LazyFrame":
                return [*frame.collect_schema().names()]
            case "DataFrame":
                return [str(name) for name in frame.columns]
            case _:
                return [*frame.schema.names]
    return []


def _tuples(frame: Any) -> Iterator[tuple[Any, ...]]:
    rows: Iterator[tuple[Any, ...]] = frame.itertuples(index=False, name=None)
    return rows


@frozen
class _Rows:
    """Rows that are made anew for each who goes through them, and not before."""

    _make: Callable[[], Iterator[Any]]

    def __iter__(self) -> Iterator[Any]:
        return self._make()


def _size(candidates: object) -> int | None:
    return len(candidates) if isinstance(candidates, Sized) else None


def _file(given: str | Path, columns: Columns) -> Source:
    path = Path(given)
    read = READERS.get(path.suffix.lower())
    if read is None:
        known = ", ".join(READERS)
        message = f"expected many candidates, got the text {str(given)[:60]!r}; a path ends in {known}, a text is"
        raise DefinitionError("candidates", f"{message} for grade()")
    if not path.is_file():
        raise DefinitionError("candidates", f"there is no file {str(given)!r}")
    if path.suffix.lower() == ".parquet":
        polars()
    _check_names(_first_names(read(path)), columns)
    return Source(_Rows(lambda: read(path)), partial(entries, path), columns=columns)


def _first_names(rows: Iterator[Any]) -> list[Any]:
    """Return the names in the first rows; those of JSON need not have all of them."""
    names: dict[Any, None] = {}
    with suppress(Exception):  # reading it again will tell what is wrong
        for row in islice(rows, _LOOKED_AT):
            names |= dict.fromkeys(row if isinstance(row, Mapping) else ())
    return [*names]
