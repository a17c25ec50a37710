"""
Where candidates come from: iterables, sync or async, columns, frames, folders, and files of JSON lines, CSV or Parquet.

The table of all that is taken, and what an item of it is, is in docs/how-to/many_candidates.md.

Of a mapping, the keys that a `Candidate` has count, or those that `columns=` names; `output` must be among them, unless
`messages` are a chat that ends with it (`rubric.values.chats`). A key that looks like a field and is not used is
refused; other keys are ignored (`rubric.engine.columns`).
A `Path` among the items is read: its text is the output. A text that looks like a path is refused
(`rubric.internals.fields.names_a_file`); give `Candidate("notes.txt")` or `{"output": "notes.txt"}` to grade the text.
Files and frames are read while they are graded, so memory stays flat. A broken line costs that line alone, if possible.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter, deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from functools import partial
from glob import glob
from itertools import count, islice
from os.path import commonpath, exists
from pathlib import Path
from typing import Any, cast

from attrs import evolve, field, frozen

from rubric.engine.columns import OWN_NAMES, Columns
from rubric.errors import DefinitionError, Wording
from rubric.internals.fields import is_missing, names_a_file, refuse
from rubric.internals.row_files import (
    LIBRARIES,
    NO_TEXT,
    READERS,
    Broken,
    count_rows,
    first_row,
    refuse_twice,
    rows_in,
    slices,
)
from rubric.internals.text import shorten
from rubric.results.result import Grade, Ungraded
from rubric.runs.formats import candidate_of_run, candidates_in, candidates_of_file, format_of, inspect_samples
from rubric.runs.log_texts import refuse_log
from rubric.runs.logs import entries_of
from rubric.values.candidates import Candidate, is_log, of_text
from rubric.values.chats import fields_with_chats, is_chat, listed
from rubric.values.judges import AnyJudge
from rubric.values.requests import Failure
from rubric.values.rubrics import Rubric
from rubric.values.runs import Run

Candidates = Iterable[Any] | AsyncIterable[Any] | str | Path
"""Many candidates: an iterable or async iterable of them, a frame, a column, or the path of a file or folder."""

_LOOKED_AT = 100
"""Rows of a file whose columns are checked beforehand."""


@frozen
class Placed:
    """A candidate with its place in the whole data set, from 0, and the columns of its row."""

    index: int
    item: Any
    columns: Columns = field(default=OWN_NAMES, repr=False)
    row: str = field(default="", repr=False)
    """Where it lies among several files, such as `row 3 of part1.parquet`."""

    @classmethod
    def at(cls, index: int, item: Any, columns: Columns = OWN_NAMES) -> Placed:
        """Return *item* with the place and the columns that it has already, or with *index* and *columns*."""
        return item if isinstance(item, Placed) else cls(index, item, columns)

    @property
    def candidate(self) -> Candidate:
        """
        The item as a candidate.

        Raises:
            DefinitionError: It can be none; the field begins with its place, such as `candidates[3].output`.
        """
        try:
            return as_candidate(self.item, self.columns)
        except DefinitionError as error:
            raise self.locate(error) from None

    def locate(self, error: DefinitionError) -> DefinitionError:
        """Return *error*, which this candidate has raised, with its place; the field of that is within it."""
        said = f"{error.message} ({self.row})" if self.row else error.message
        return DefinitionError(f"candidates[{self.index}]{'.' if error.field else ''}{error.field}", said)

    def ungraded(
        self, rubric: Rubric, judge: AnyJudge, failure: Failure, candidate: Candidate | None = None
    ) -> Ungraded:
        """Return the result for *failure*, with what is known of the item, which may be no *candidate*."""
        about = stand_in(self.item, self.columns) if candidate is None else candidate
        result = Ungraded.of(rubric, judge, failure, index=self.index)
        return evolve(result, key=about.key, group=about.group, variables=about.variables, candidate=candidate)

    def fetch(self) -> Placed:
        """Return the item with the candidate of its file in place of a `Path`, which other machines cannot read."""
        if not isinstance(self.item, Path):
            return self
        try:
            return evolve(self, item=as_candidate(self.item))
        except DefinitionError as error:
            return evolve(self, item=Broken(error.message))


@frozen
class Source:
    """
    A data set of candidates.

    Args:
        count: Returns how many there are, if it can; it is None where that is not known without taking them.
        is_held: Whether they are in memory already, so that taking the next one never has to wait.
        given: The argument that the items come from; a shard knows more than its items: its part, its end.
    """

    items: Iterable[Any] | AsyncIterable[Any] = field(repr=False)
    count: Callable[[], int | None] | None = field(default=None, repr=False)
    is_held: bool = False
    columns: Columns = OWN_NAMES
    given: object = field(default=None, repr=False)

    def at(self, index: int, item: object) -> Placed:
        """Return *item*, which is at *index* unless it has a place of its own, with that and the columns."""
        return Placed.at(index, item, self.columns)

    def candidate(self, item: object) -> Candidate:
        """Return *item* as a candidate; raise `DefinitionError`, with the field within the item, if it can be none."""
        return as_candidate(item, self.columns)

    def remark(self, first: object = None) -> str:
        """Return a remark on texts in the first rows that no field takes; in *first* where rows are read only once."""
        placed = self.at(0, first)
        is_read_once = isinstance(self.items, _Rows) and self.given is not None
        if is_read_once or not isinstance(self.items, _Rows | list | tuple):
            return placed.columns.remark([placed.item])
        with suppress(Exception):  # reading them again will tell what is wrong
            rows = islice(self.items, _LOOKED_AT)  # parts of a data set, as a cluster has them, get none
            return self.columns.remark(
                self.at(0, each).item if isinstance(self.items, _Rows) else each for each in rows
            )
        return ""

    def read_all(self) -> tuple[dict[int, Candidate], str]:
        """Return all candidates by their places, and a remark on the rows that hold none; raise if all are such."""
        if isinstance(self.items, AsyncIterable):
            raise refuse("candidates", self.given, "an iterable that is not async, or the path of a file")
        found: dict[int, Candidate] = {}
        errors = []
        for placed in map(self.at, count(), self.items):
            try:
                found[placed.index] = placed.candidate
            except DefinitionError as error:
                errors.append(error)
        if errors and not found:
            raise errors[0]
        rows = f"{len(errors):,} of {len(found) + len(errors):,} rows hold no candidate and are left out"
        return found, f"{rows}: {errors[0]}" if errors else ""

    @property
    def total(self) -> int | None:
        """How many there are; None where that is not known beforehand. It may have to look into a file."""
        return None if self.count is None else self.count()

    def check_rubrics(self, rubrics: int) -> None:
        """Refuse *rubrics* of another number than the candidates; a shard's list is that of the whole data set."""
        if (count := self.total) not in (None, rubrics):
            cure = "give one for each, or one for all; several criteria are Rubric('reply', ['Is polite', 'Is clear'])"
            raise DefinitionError("rubric", f"there are {rubrics} rubrics for {count} candidates; {cure}")


def source_of(candidates: Candidates, columns: Mapping[str, str | Sequence[str] | None] | None = None, /) -> Source:
    """
    Return *candidates* as a source; nothing but the names of columns is read yet.

    Args:
        columns: The column of each field of a candidate that has another name; None for a column to ignore.

    Raises:
        DefinitionError: It is one candidate, no iterable, or a file of a kind that cannot be read; or a column looks
            like a field and is not used. Where that is not seen before the first row is taken, it is raised then.
        ImportError: The library that reads files of this kind is not installed.
    """
    named = Columns({} if columns is None else columns)
    if isinstance(candidates, str | Path):
        return _at_path(candidates, named)
    if isinstance(candidates, list | tuple) and candidates and all(isinstance(each, Path) for each in candidates):
        return _files(candidates, named)
    if isinstance(candidates, Candidate | Mapping | bytes):
        message = f"expected many candidates, got one {type(candidates).__name__}"
        raise DefinitionError("candidates", message + cure_of(candidates))
    refuse_swapped("candidates", candidates)
    count = partial(len, candidates) if isinstance(candidates, Sized) else None
    if (frame := _frame(candidates)) is not None:
        rows, names = frame
        refuse_twice(names)
        if names := named.names_in(islice(rows, _LOOKED_AT)) or names:
            named.check(names)
            named.check_output(names, islice(rows, _LOOKED_AT))
        return Source(rows, count, columns=named)
    if isinstance(candidates, AsyncIterable):
        return Source(_AsyncChecked(candidates, named), count, columns=named, given=candidates)
    if not isinstance(candidates, Iterable):
        raise refuse("candidates", candidates, "an iterable, an async iterable, a frame, or the path of a file")
    if not isinstance(candidates, list | tuple):
        return Source(_Rows(partial(_check_first_of, candidates, named)), count, columns=named, given=candidates)
    if candidates and not is_message(candidates[0]):
        candidates = [*map(plain, candidates)] if hasattr(type(candidates[0]), "model_dump") else candidates
    _check_held(candidates, named)
    return Source(candidates, count, is_held=True, columns=named)


def plain(item: Any) -> Any:
    """Return the fields of an object of Pydantic's, as SDKs return them; a message is a chat; all else as it is."""
    if not hasattr(type(item), "model_dump"):
        return item
    return {"messages": [item]} if is_message(item) else item.model_dump(mode="json", exclude_none=True)


def cure_of(value: object, place: str = "candidates") -> str:
    """Return the end of the message on *value*, which cannot stand at this *place*; "" if no cure is known."""
    from rubric.internals.guesses import instead  # noqa: PLC0415 - needed for errors alone

    kind = f"message of {type(value).__name__}" if is_message(value) else "chat" if is_chat(value) else ""
    return instead(place, value, kind)


def as_candidate(item: object, columns: Columns = OWN_NAMES, /) -> Candidate:
    """Return *item* as a candidate; *columns* are those of a row. The field of an error is within the item."""
    if isinstance(item, str):
        refuse_log("", item)
        return of_text("", item)
    if isinstance(item, Candidate):
        return item
    if isinstance(item, Run):
        return candidate_of_run(item)
    if isinstance(item, Path):
        return _of_runs(item.name, candidates_of_file(item)) or Candidate(text_of(item))
    if isinstance(item, Mapping):
        return (None if columns.named else _of_runs("the row", _runs_in(item))) or _of_row(item, columns)
    if isinstance(item, Broken):
        raise DefinitionError("", item.why)
    if isinstance(item, list) and is_chat(item) and (made := _of_runs("the chat", candidates_in(item))):
        return made
    if (held := plain(item)) is not item:
        return as_candidate(held, columns)
    said = f"expected a text, a Candidate, a mapping or a Path, got {name_of_type(item)}"
    raise _with_file_line(DefinitionError("", said + cure_of(item)), "", item, columns.file)


def is_message(value: object) -> bool:
    """True if *value* is a message alone, which is part of a chat, and no row with an output."""
    return not (isinstance(value, Mapping) and "output" in value) and is_chat([value])


def _runs_in(row: Mapping[Any, Any]) -> Iterator[Any] | None:
    """Return the candidates in *row*, if that is a run itself; a chat has the fields of a candidate."""
    return None if "messages" in row and "epoch" not in row else candidates_in(row)


def has_columns(item: object, columns: Columns = OWN_NAMES) -> bool:
    """True if *item* is a row with the fields of a candidate, and not a run."""
    return isinstance(item, Mapping) and (bool(columns.named) or _runs_in(item) is None)


def _of_runs(name: str, found: Iterator[Any] | None) -> Candidate | None:
    """Return the one candidate among those *found* in what *name* names; None if none were looked for."""
    first, *more = [None] if found is None else [*islice(found, 2)] or [Broken("it has no run")]
    if more:
        raise DefinitionError("", f"{name} has several runs; grade_many(path, rubric, judge) grades each")
    return first if first is None else as_candidate(first)


def stand_in(item: object, columns: Columns = OWN_NAMES, /) -> Candidate:
    """Return a candidate with the key, the group and the variables of *item*, a row that may be no candidate."""
    with suppress(Exception):  # what is wrong with the row is told elsewhere
        row = columns.row(item) if isinstance(item, Mapping) else dict[str, Any](key=getattr(item, "key", None))
        names = {"key", "group", "variables"} & row.keys()
        return Candidate("", **{name: row[name] for name in names if not is_missing(row[name])})
    return Candidate("")


def refuse_swapped(field: str, value: object) -> None:
    """Refuse a rubric or a result as candidates; one can iterate over them as well."""
    if isinstance(value, Rubric):
        raise DefinitionError(field, "got a Rubric; the candidate comes first, then the rubric, then the judge")
    if isinstance(value, Grade | Ungraded):
        raise DefinitionError(field, f"got a {type(value).__name__}, a result; give what was graded, result.candidate")


def refuse_column(rubric: object, candidates: object) -> None:
    """Refuse a text as the rubric, or as one of several, that names a column: the rubric of each row may be meant."""
    texts = [rubric] if isinstance(rubric, str) else rubric if isinstance(rubric, list | tuple) else ()
    if not any(isinstance(each, str) for each in texts):
        return
    first = candidates[0] if isinstance(candidates, list | tuple) and candidates else None
    schema = getattr(candidates, "collect_schema", None)  # of polars, whose lazy frames warn where columns are read
    names = first if isinstance(first, Mapping) else schema() if schema else getattr(candidates, "columns", ())
    if not isinstance(names, Iterable):  # such as those of a shard, which say what was given
        return
    for each in texts:
        if isinstance(each, str) and each in names:
            frame = "frame.collect()" if hasattr(candidates, "collect") else "frame"
            rows = f"[row[{each!r}] for row in rows]" if names is first else f"list({frame}[{each!r}])"
            cure = f"for the rubric of each row, write rubric={rows}; for this text, write rubric=Rubric.of({each!r})"
            raise DefinitionError("rubric", f"there is a column {each!r}; {cure}")


def name_of_type(item: object) -> str:
    """Name *item* for an error: its type, or a path's file name, since a whole path hides what is wrong."""
    if isinstance(item, Path):
        return f"the file {item.name!r} of many"
    return f"nothing ({item})" if is_missing(item) else type(item).__name__


def _of_row(row: Mapping[Any, Any], columns: Columns) -> Candidate:
    given = columns.row(row)
    for name in ("run", "output", "messages"):
        held = plain(given.get(name))
        if isinstance(held, Mapping | list) and not is_chat(held) and (made := _of_runs(name, candidates_in(held))):
            del given[name]
            beside = {each: given.get(each) or getattr(made, each) for each in ("reference", "key")}
            output = given.get("output", None if made.unanswered else made.output)
            given |= {"run": made.run, "output": output, "remarks": made.remarks, **beside}
    given = fields_with_chats(given)
    if "messages" in given and not {"output", "run"} & given.keys():
        said = f"expected messages, each with a role and a content, got {shorten(repr(given['messages']), 80)}"
        raise DefinitionError(str(columns.named.get("messages", "messages")), said)
    if "output" not in given and "run" not in given:
        named = ", ".join(map(str, row)) or "nothing"
        chats = "".join(f"; {name!r} is a chat: name it messages" for name in row if is_chat(listed(row[name])))
        raise DefinitionError("output", f"is not there; name the text that is graded so (there are: {named}){chats}")
    if "run" not in given and is_missing(given["output"]):
        raise DefinitionError("output", f"expected text, got nothing ({given['output']})")
    if isinstance(output := given.get("output"), str) and is_log(output):
        said = "the output is graded as a text, and has messages by their roles: name it messages to grade the run"
        given["remarks"] = (*given.get("remarks", ()), said)
    if isinstance(images := given.get("images"), str):  # a column often holds one
        given["images"] = [images]
    try:
        return Candidate(**{name: value for name, value in given.items() if not is_missing(value)})
    except DefinitionError as error:
        column = str(columns.named.get(error.field, error.field))
        raise _with_file_line(error, column, given.get(error.field), columns.file) from None


def _with_file_line(error: DefinitionError, column: str, held: object, file: str) -> DefinitionError:
    """Return *error* with the line that makes texts of lists such as *held*: of a *column* of a *file*, or its rows."""
    if not isinstance(held, list) or is_chat(held):
        return error
    path = f".{column}" if not column or (column.isidentifier() and column.isascii()) else f".[{json.dumps(column)}]"
    chosen = f'{path}|arrays|select((.[0]|type=="object" and has("role"))|not)'  # a chat stays one
    made = f'({chosen}) |= if all(type=="string") then join("\\n\\n") else tojson end'
    rows = ".[]|" if file.endswith(".json") else ""
    line = f"jq -c {shlex.quote(rows + made)} {shlex.quote(file or 'rows.jsonl')} > rows_texts.jsonl"
    return DefinitionError(error.field, f"{error.message}; in a file, run {line}")


# -- columns, checked before anything is paid for ---------------------------------------------------------


def _refuse_table(item: object) -> None:
    """Refuse the path of a table, or of a folder, as an item: of a list of paths alone all rows are read."""
    if (isinstance(item, Path) or (isinstance(item, str) and names_a_file(item))) and holds_many(Path(item)):
        said = f"{str(item)!r} holds many candidates; the rows of all such files are read with a list of their paths"
        raise DefinitionError("candidates", f"{said}, such as candidates=sorted(map(Path, paths))")


def _check_first(item: object, columns: Columns) -> None:
    """Refuse all items for the keys of the first; a later item that differs is refused by itself."""
    _refuse_table(item)
    item = item if is_message(item) else plain(item)
    are_many = isinstance(item, list | tuple) or bool(getattr(item, "ndim", 0))
    if (are_many and not is_chat(item)) or is_message(item):
        said = f"its items are not candidates, but {name_of_type(item)}s"
        raise DefinitionError("candidates", said + cure_of(item))
    if columns.named and isinstance(item, str):
        raise DefinitionError("columns", "there are no rows with columns here, but texts; leave it out")
    if isinstance(item, Placed) and columns.named:
        raise DefinitionError("columns", "these are parts of a data set already; say it there: Shard.of(..., columns=)")
    if has_columns(item, columns):
        columns.check(columns.names_in([cast("Mapping[Any, Any]", item)]))


def _check_held(items: list[Any] | tuple[Any, ...], columns: Columns) -> None:
    _refuse_table(next(iter(items), None))
    if columns.named and items and not any(isinstance(item, Mapping | Placed) for item in items):
        found = name_of_type(items[0])
        raise DefinitionError("columns", f"there are no rows with columns here, but {found}; leave it out")
    if items and isinstance(items[0], Mapping) and not is_message(items[0]):
        columns.check(columns.names_in(item for item in items if has_columns(item, columns)))
    elif items:
        _check_first(items[0], columns)


def _check_first_of(items: Iterable[Any], columns: Columns) -> Iterator[Any]:
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

# Not by narwhals: it cannot slice a lazy frame, has no RecordBatch, refuses two columns of one name and keeps names
# that are not texts. The code around it would be as long as the code without it.


def _frame(candidates: Any) -> tuple[_Rows, list[str]] | None:
    """Return the rows of a frame and its columns, none if unreadable; None if *candidates* are not a frame."""
    match type(candidates).__module__.partition(".")[0], type(candidates).__name__:
        case "pandas", "DataFrame":
            names = [str(name) for name in candidates.columns]
            keyed = _is_labelled(candidates.index) and "key" not in names
            tuples = partial(candidates.itertuples, index=keyed, name=None)
            shown = ["key", *names] if keyed else names
            return _Rows(lambda: (dict(zip(shown, row, strict=True)) for row in tuples())), names
        case "polars", "DataFrame":
            return _Rows(lambda: candidates.iter_rows(named=True)), [*candidates.columns]
        case "polars", "LazyFrame":
            names = []
            with suppress(Exception):
                names = candidates.collect_schema().names()
            return _Rows(lambda: slices(candidates)), names
        case "pyarrow", "Table" | "RecordBatch":
            rows = _Rows(lambda: (row for batch in candidates.to_batches() for row in batch.to_pylist()))
            return rows, [*candidates.schema.names]
        case "datasets", "Dataset" | "IterableDataset":
            plain = candidates.with_format(None)  # a format for tensors is of numbers
            return _Rows(lambda: iter(plain)), [*(candidates.column_names or ())]
        case _:
            return None


def _is_labelled(index: Any) -> bool:
    """True if *index*, of a frame of pandas, names its rows: by other texts or numbers than their places."""
    is_places = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    if is_places or index.nlevels > 1 or not index.is_unique:
        return False
    return index.dtype.kind in "iu" or index.inferred_type == "string"


@frozen
class _Rows:
    """Rows that are made anew for each iteration, and not before."""

    _make: Callable[[], Iterator[Any]]

    def __iter__(self) -> Iterator[Any]:
        return self._make()


# -- files -----------------------------------------------------------------------------------------------


def holds_many(path: Path, /) -> bool:
    """True if *path* is a folder, or a file of many candidates; JSON without their fields may be one, as text."""
    if path.is_dir():
        return True
    if path.suffix.lower() != ".json":
        return path.suffix.lower() in (*READERS, ".eval")
    with suppress(Exception):  # reading it as a text will tell what is wrong
        if (runs := candidates_of_file(path)) is not None:
            return len([*islice(runs, 2)]) > 1
        rows = _rows(path)
        first = rows[0] if rows and isinstance(rows[0], Mapping) else {}
        means = {OWN_NAMES.means(name)[:1] for name in first} - {()}
        return entries_of(rows) is not None or bool({"output", "messages"} & {*first}) or {("output",)} < means
    return False


def path_or_text(given: str) -> str | Path:
    """Return *given* as a path if `grade_many` reads it, and no text that is graded looks so; else as a text."""
    if names_a_file(given):
        return Path(given) if holds_many(Path(given)) else given
    if not given.startswith(("//", "\\")) and exists(given):  # noqa: PTH110 - it raises for no text
        cure = f"write Path({given!r}) to have it read, or Candidate({given!r}) for these words"
        raise DefinitionError("candidates", f"there is a file or a folder {given!r}, and it is a text; {cure}")
    return given


def text_of(path: Path) -> str:
    """Return the text in the file at *path*, which is one candidate."""
    if not path.is_file():  # nor a pipe, which would never end
        raise DefinitionError("", f"there is no file {str(path)!r}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DefinitionError("", f"{path.name}: {NO_TEXT}") from None
    except OSError as problem:
        raise DefinitionError("", f"{path.name} cannot be read: {problem.strerror or problem}") from None
    refuse_log("", text, str(path))
    return text


def _rows(path: Path) -> list[Any]:
    return [row for _, row in rows_in("candidates", path, broken=Broken)]


def _may_be_run(path: Path) -> bool:
    """True unless the first line of JSON lines is a row by itself: then all of them are, and are read as they come."""
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        return True
    first = first_row(path)
    return isinstance(first, Mapping) and ({"context", "attributes"} <= first.keys() or format_of([first]) is not None)


def _folder(folder: Path) -> list[Path]:
    """Return the files below *folder* that are not hidden; refuse files of several kinds."""
    files = [each for each in sorted(folder.rglob("*")) if each.is_file()]
    files = [each for each in files if not any(part.startswith(".") for part in each.relative_to(folder).parts)]
    kinds = Counter(each.suffix.lower() for each in files)
    if len(kinds) != 1:
        some = ", ".join(f"{n:,} {kind or 'without an ending'}" for kind, n in kinds.most_common()) or "none"
        kind = next(iter(kinds), ".json")
        line = f"{folder}/*{kind} at a terminal, or sorted(Path({str(folder)!r}).glob('*{kind}'))"
        raise DefinitionError("candidates", f"expected files of one kind in {folder}, got {some}; name them: {line}")
    return files


def _at_path(given: str | Path, columns: Columns) -> Source:
    """Return a source of the file or folder at *given*, or of what a pattern finds."""
    if (folder := Path(given)).is_dir():
        return _files(_folder(folder), columns, folder)
    found = [] if folder.exists() else sorted(glob(str(given), recursive=True))  # noqa: PTH207 - it may be absolute
    return _files([*map(Path, found)], columns) if found else _file(given, columns)


def _files(given: Sequence[Path], columns: Columns, folder: Path | None = None) -> Source:
    """
    Return a source of the files at *given*, and of those in the folders among them.

    Each is a text or a run, whose key is its path in the *folder*, or in a common one; or all are tables.
    """
    paths = [each for path in given for each in (_folder(path) if path.is_dir() else [path])]
    with suppress(ValueError):  # of relative and absolute paths
        folder = Path(commonpath(each.parent for each in paths)) if folder is None else folder
    names = [path.as_posix() if folder is None else path.relative_to(folder).as_posix() for path in paths]
    kinds = {path.suffix.lower(): holds_many(path) for path in reversed(paths)}  # as the first of each kind does
    if all(kinds.values()):
        return _tables([*zip(paths, names, strict=True)], columns)
    if any(kinds.values()):
        tables = tuple(sorted(kind for kind, is_table in kinds.items() if is_table))
        one, other = (f"[path for path in paths if path.suffix.lower() {verb} {tables}]" for verb in ("in", "not in"))
        said = "of a table, each row is a candidate, and a text is one itself; give one of both, such as candidates="
        raise DefinitionError("candidates", f"{said}{one}, or candidates={other}")
    if columns.named:
        raise DefinitionError("columns", "files of texts and runs have no columns; leave it out")
    return Source(_Rows(lambda: map(_of_file, paths, names)), partial(len, paths), given=paths)


def _tables(named: Sequence[tuple[Path, str]], columns: Columns) -> Source:
    """Return a source of the rows of all tables, one after another; each is looked at before the first row is taken."""

    def opened() -> Iterator[tuple[Source, str]]:
        for path, name in named:
            try:
                yield _file(path, columns), name
            except DefinitionError as error:
                raise DefinitionError(error.field, Wording(f"{name}: ", error.message)) from None

    def rows() -> Iterator[Placed]:
        places = count()
        for source, name in opened():
            for number, item in enumerate(cast("Iterable[Any]", source.items), 1):
                yield Placed(next(places), item, source.columns, f"row {number} of {name}")

    def total() -> int | None:
        counts = [source.total for source, _ in opened()]
        return None if None in counts else sum(filter(None, counts))

    deque(opened(), maxlen=0)
    return Source(_Rows(rows), total, columns=columns)


def _of_file(path: Path, name: str) -> Candidate | Broken:
    try:
        if holds_many(path):
            return Broken(f"{path.name} holds many candidates; grade that file alone", name)
        made = as_candidate(path)
    except DefinitionError as error:
        return Broken(error.message, name)
    return made if made.key else evolve(made, key=name)


def _file(given: str | Path, columns: Columns) -> Source:
    path, columns = Path(given), evolve(columns, file=str(given))
    kind = path.suffix.lower()
    if kind not in (*READERS, ".eval"):
        known = ", ".join([*READERS, ".eval"])
        message = f"expected many candidates, got the text {str(given)[:60]!r}; a path ends in {known}, a text is"
        raise DefinitionError("candidates", f"{message} for grade()")
    if not path.is_file():
        raise DefinitionError("candidates", f"there is no file {str(given)!r}")
    LIBRARIES.get(kind, bool)()
    if kind == ".eval":
        if columns.named:
            raise DefinitionError("columns", f"{path.name} is a log of samples, and has no columns; leave it out")
        inspect_samples(path)  # it says here what to install
        return Source(_Rows(lambda: inspect_samples(path)))
    if not columns.named and _may_be_run(path) and candidates_of_file(path) is not None:
        return Source(_Rows(lambda: candidates_of_file(path) or iter(())))
    if kind == ".json" or (kind in (".jsonl", ".ndjson") and not columns.named and entries_of([first_row(path)])):
        rows = _rows(path)  # all: traces are put together of spans
        if not columns.named and (entries := entries_of(rows)) is not None:
            return Source(_Rows(entries))
        _check_held(rows, columns)
        if names := columns.names_in(row for row in rows if has_columns(row, columns)):
            columns.check_output(names, rows)
        return Source(rows, partial(len, rows), is_held=True, columns=columns)
    found: list[Any] = []
    with suppress(Exception):  # reading it again will tell what is wrong
        found += (row for _, row in islice(rows_in("candidates", path, broken=Broken), _LOOKED_AT))
    # a row of JSON need not have all of them
    names = columns.names_in(row for row in found if has_columns(row, columns))
    if names:  # there are none in an empty file, or in one of texts
        columns.check(names)
        columns.check_output(names, found)
    rows_anew = _Rows(lambda: (row for _, row in rows_in("candidates", path, broken=Broken)))
    return Source(rows_anew, partial(count_rows, path), columns=columns)
