"""
Shards: parts of a data set for several machines, and the merge of their results into one file.

The content of a candidate decides its shard, not its place: a text is in the same shard in every process and on every
day. So rows that are added, removed or sorted move no other row to a machine whose store lacks its replies, and equal
rows are paid for once. An item that is not a candidate (a missing text, a broken line) goes by its place, so that
exactly one shard reports it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from pathlib import Path
from typing import Any, Self

from attrs import asdict, define, field, fields, frozen, has

from rubric.engine.columns import Columns
from rubric.engine.sources import Candidates, Placed, source_of
from rubric.errors import DefinitionError, LoadError, Problem
from rubric.internals.atomic_write import replacing
from rubric.internals.fields import as_path, refuse
from rubric.internals.fields import count as counting
from rubric.internals.guided import guided
from rubric.store.cache_key import fingerprint
from rubric.values.judges import AnyJudge
from rubric.values.rubrics import Rubric

_FORM = "expected a shard and how many there are, such as '1/16' (from 1/16 to 16/16)"


@guided
@frozen
class Shard:
    """
    One part of a data set; every candidate is in exactly one of the *count* parts.

    Args:
        number: Which part, from 1.
        count: How many parts there are. With another count, candidates are in other parts.

    Raises:
        DefinitionError: There is no such part.

    Example:
        >>> texts = ["We thank you.", "Go away.", "Please wait."]
        >>> from rubric import grade_many
        >>> for number in (1, 2):
        ...     grades = grade_many(Shard(number, 2).of(texts), "Says thank you", "offline").collect()
        ...     print([(result.index, result.score) for result in grades])
        [(0, 0.5), (2, 0.0)]
        [(1, 0.0)]
    """

    number: int = field(validator=counting(1))
    count: int = field(validator=counting(1))

    def __attrs_post_init__(self) -> None:
        if self.number > self.count:
            raise DefinitionError("number", f"there is no shard {self.number} of {self.count}; {_FORM}")

    @classmethod
    def parse(cls, text: str, /) -> Self:
        """
        Return the shard that *text* names, such as 1/16.

        Raises:
            DefinitionError: It names none.
        """
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip()) if isinstance(text, str) else None
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise DefinitionError("shard", f"{text!r}: {_FORM}")
        return cls(int(found[1]), int(found[2]))

    @classmethod
    def holding(cls, index: int, item: object, count: int, /) -> Self:
        """Return the shard, of *count*, that has *item*, which is at *index* of the whole data set."""
        return cls(_number_of(index, _content(item), count), count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(
        self, candidates: Candidates, /, *, columns: Mapping[str, str | Sequence[str] | None] | None = None
    ) -> Iterable[Placed] | AsyncIterable[Placed]:
        """
        Return those of *candidates* that are in this shard, each with its place among all of them.

        `grade_many` takes the result, and gives every grade the `index` of the whole data set; so do `plan` and
        `grade_in_batches`. Nothing is read yet; it can be iterated as often as *candidates* can.

        Args:
            columns: Which column of a row holds which field of a candidate, as for `grade_many`.

        Raises:
            DefinitionError: They cannot be read, as in `grade_many`.
        """
        source = source_of(candidates, columns)
        if isinstance(source.items, AsyncIterable):
            return _AsyncPart(self, source.items, source.columns)
        return _SyncPart(self, source.items, source.columns)

    def has(self, index: int, item: object, /) -> bool:
        """True if *item*, which is at *index* of the whole data set, is in this shard."""
        return Shard.holding(index, item, self.count) == self

    @staticmethod
    def end_mark(items: object, results: int, rubric: Rubric | tuple[Rubric, ...], judge: AnyJudge) -> str:
        """Return the last line for the *results* of *items*; '' if these are not a shard, or were not all graded."""
        if not isinstance(items, _Part) or (read := items.read) is None or read.own != results:
            return ""
        digests = fingerprint(rubric), fingerprint(judge)
        return str(EndMark(str(items.shard), results, read.whole, read.digest.hexdigest(), *digests))


@define(eq=False)
class _Count:
    """Counts a data set as it is read: all candidates, those in the shard, and a digest of all."""

    whole: int = 0
    own: int = 0
    digest: Any = field(factory=lambda: hashlib.blake2b(digest_size=8))

    def take(self, item: object, part: _Part) -> tuple[Placed, ...]:
        """Count *item*, and return it with its place if it is in *part*."""
        placed = Placed.at(self.whole, item, part.columns)
        content = _content(placed)
        number = _number_of(self.whole, content, part.shard.count)
        self.digest.update(hashlib.blake2b(content or b"", digest_size=16).digest())
        self.whole += 1
        if number != part.shard.number:
            return ()
        self.own += 1
        return (placed,)


@define(eq=False)
class _Part:
    shard: Shard
    items: Any
    columns: Columns
    read: _Count | None = None  # once it has been read to its end


class _SyncPart(_Part):
    def __iter__(self) -> Iterator[Placed]:
        read = _Count()
        for item in self.items:
            yield from read.take(item, self)
        self.read = read


class _AsyncPart(_Part):
    async def __aiter__(self) -> AsyncIterator[Placed]:
        read = _Count()
        async for item in self.items:
            for placed in read.take(item, self):
                yield placed
        self.read = read


def _number_of(index: int, content: bytes | None, count: int) -> int:
    if content is None:
        return index % count + 1
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big") % count + 1


_ADDED = {
    "reference", "finish_reason", "name", "to", "media", "reasoning", "time", "metadata", "error", "agent", "duration",
}  # fmt: skip
"""Fields of messages, tool calls and metrics that a later version added: as defaults they do not count."""


def _content(item: object) -> bytes | None:
    """Return what a candidate holds, the same in every process, without defaults and its name; None if it is none."""
    try:
        one = Placed.at(0, item).candidate
        given = {name: value for name, value in one.given().items() if name not in ("key", "group", "remarks")}
        return json.dumps(_plain(given), sort_keys=True).encode()
    except Exception:  # noqa: BLE001 - grading it will say what is wrong
        return None


def _plain(value: Any) -> Any:
    """Return *value* as plain data; if JSON has no form for it, the name of its type, which stays the same."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if has(type(value)):
        told = [f for f in fields(type(value)) if f.name not in _ADDED or getattr(value, f.name) != f.default]
        return {f.name: _plain(getattr(value, f.name)) for f in told}
    return value if isinstance(value, str | int | float | bool | None) else type(value).__qualname__


# -- results ---------------------------------------------------------------------------------------------


@frozen
class EndMark:
    """
    The last line of a shard's file of results: it shows that the file is whole, and which run it belongs to.

    Args:
        shard: The part, such as 1/16.
        results: How many lines come before.
        candidates: How many the whole data set has.
        judge: A digest of the judges, without addresses and keys: each machine may have its own.
    """

    shard: str
    results: int
    candidates: int
    data: str
    rubric: str
    judge: str

    def __str__(self) -> str:
        return json.dumps({"end_of_shard": asdict(self)}) + "\n"


@guided
def merge_results(parts: Sequence[str | Path], out: str | Path) -> int:
    """
    Write the results of all shards into one file, in the order of the whole data set, and return their number.

    The lines stay as they are; the end marks are left out. The file appears when it is whole; memory stays flat.
    Results of several runs, each with a key that no other has, follow one another and are numbered anew. Such files
    have no end marks, so one that was cut off is not told.

    Args:
        parts: Files of one JSON object a line with its `index`, and an `EndMark` as the last line, as `grade-many
            --shard` and `Grades.to_jsonl` write them for a shard that was graded to its end.
        out: The file to write; an old one is replaced.

    Raises:
        LoadError: A line is not a result, or is there twice, or one is missing; a file is cut off; or the files are not
            of the same data set, rubric, judge and number of shards. It names the file and the line.
    """
    if isinstance(parts, str | Path) or not isinstance(parts, Iterable):
        raise refuse("parts", parts, "a list of the files of all shards")
    paths = [as_path(f"parts[{number}]", part) for number, part in enumerate(parts)]
    out = as_path("out", out)
    if not paths:
        raise refuse("parts", parts, "the files of all shards, at least one; without any, out would be emptied")
    marks = [found for path in paths if (found := _mark_at_the_end(path)) is not None]
    _check_one_run(marks, all_marked=len(marks) == len(paths))
    files = [_File(path) for path in paths]
    written = 0
    with replacing(out, errors="surrogateescape") as file:
        are_runs = not marks and len(paths) > 1 and all(_begins(path) for path in paths)
        for line in _by_key(files) if are_runs else _in_order(files):
            file.write(line)
            written += 1
        for each in files:
            if each.mark is None:
                if are_runs:
                    continue
                raise _wrong(each.path, each.lines + 1, _NO_MARK)
            if each.mark.results != each.lines:
                why = f"the end mark counts {each.mark.results} results, and {each.lines} are before it"
                raise _wrong(each.path, each.lines + 1, f"{why}; let the run that writes it come to its end")
    return written


@define(eq=False)
class _File:
    """A file of results, as it is read: the number of lines, and the mark after them."""

    path: Path
    lines: int = 0
    mark: EndMark | None = None

    def __iter__(self) -> Iterator[tuple[int, str, int, str, Mapping[str, Any]]]:
        last = -1
        with self.path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                if self.mark is not None and line.isspace():  # as `echo` puts it there
                    continue
                if self.mark is not None:
                    raise _wrong(self.path, number, "results follow an end mark; give each shard's file by itself")
                self.mark = _mark_of(line)
                if self.mark is None:
                    row = _row(self.path, number, line)
                    index = row["index"]
                    if index <= last:
                        why = f"candidate {index} comes after {last}; sort the lines by `index`"
                        raise _wrong(self.path, number, why)
                    last, self.lines = index, number
                    yield index, str(self.path), number, line, row


_NO_MARK = (
    "the file ends without an end mark, so its last lines may be missing; let the run that writes it come to its end "
    "(with its store, that is free)"
)
_TAIL = 4096  # bytes; an end mark has some 200


def _mark_at_the_end(path: Path) -> tuple[Path, EndMark] | None:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        last = [line for line in file.read().splitlines(keepends=True) if not line.isspace()][-1:]
    mark = _mark_of(last[0].decode("utf-8", "replace")) if last else None
    return None if mark is None else (path, mark)


def _mark_of(line: str) -> EndMark | None:
    if not (line.startswith('{"end_of_shard"') and line.endswith("\n")):
        return None
    try:
        mark = EndMark(**json.loads(line)["end_of_shard"])
        Shard.parse(mark.shard)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return mark if isinstance(mark.results, int) else None


def _check_one_run(marks: Sequence[tuple[Path, EndMark]], *, all_marked: bool) -> None:
    """Raise `LoadError` if *marks* are not of one run: each shard once, of the same data, rubric and judge."""
    if not marks:
        return
    first, expected = marks[0]
    count = Shard.parse(expected.shard).count
    seen: dict[int, Path] = {}
    for path, mark in marks:
        shard, line = Shard.parse(mark.shard), mark.results + 1
        if shard.count != count:
            raise _wrong(path, line, f"this is shard {shard}, and {first} is shard {expected.shard}; {_ONE_COUNT}")
        for name, what in _SAME.items():
            if getattr(mark, name) != getattr(expected, name):
                raise _wrong(path, line, f"this shard was graded with another {what} than {first}; {_ONE_RUN}")
        if shard.number in seen:
            raise _wrong(path, line, f"this is shard {shard}, and so is {seen[shard.number]}; give it once")
        seen[shard.number] = path
    if all_marked and (missing := [f"{number}/{count}" for number in range(1, count + 1) if number not in seen]):
        more = " and more" if missing[_FEW:] else ""
        raise _wrong(first, 1, f"shard {', '.join(missing[:_FEW])}{more} is not among the files; name those of all")


_SAME = {"candidates": "data set", "data": "data set", "rubric": "rubric", "judge": "judge"}
_ONE_COUNT = "merge the shards of one number"
_ONE_RUN = "grade all shards with the same rubric, judge and candidates"
_TWO_RUNS = "two runs are compared, such as rubric compare new.jsonl old.jsonl"
_FEW = 8


def _in_order(files: Iterable[_File]) -> Iterator[str]:
    for due, (index, name, number, line, _) in enumerate(merge(*files)):
        if index < due:
            why = f"the result of candidate {index} is in another place too; shards of one run have each once"
            raise _wrong(name, number, f"{why}; {_TWO_RUNS}")
        if index > due:
            gap = f"candidate {due}" if index == due + 1 else f"candidates {due} to {index - 1}"
            raise _wrong(name, number, f"before this, {gap} should come; name the files of all shards, once through")
        yield line


def _begins(path: Path) -> bool:
    """True if the file at *path* begins with candidate 0, which one shard of a run has at most."""
    with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        return next(lines, "").startswith('{"index": 0,')


def _by_key(files: Iterable[_File]) -> Iterator[str]:
    """Yield the results of several runs, numbered anew; all are of one rubric and judge, and no two have one key."""
    seen, made = dict[str, str](), set[object]()
    for file in files:
        for due, (index, name, number, _, row) in enumerate(file):
            key = row.get("key")
            made.add((row.get("digest"), row.get("judge_digest")))
            if index > due:
                raise _wrong(name, number, f"before this, candidate {due} should come; let the run come to its end")
            if key is None:
                cure = "grade each part with its column of keys, such as --column key=id"
                raise _wrong(name, number, f"this result has no key to tell it from those of other files; {cure}")
            if key in seen or len(made) > 1:
                what = f"the key {key!r} is in {seen[key]} too" if key in seen else "this is of another rubric or judge"
                raise _wrong(name, number, f"{what}; {_TWO_RUNS}")
            seen[key] = name
            yield json.dumps({**row, "index": len(seen) - 1}, ensure_ascii=False) + "\n"


def _row(part: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        row: Mapping[str, Any] = json.loads(line)
        found = row["index"]
    except (ValueError, RecursionError, LookupError, TypeError):
        found, row = None, {}
    if isinstance(found, bool) or not isinstance(found, int) or found < 0 or not line.endswith("\n"):
        raise _wrong(part, number, "this is not a whole line of results; let the run that writes it come to its end")
    return row


def _wrong(part: str | Path, number: int, why: str) -> LoadError:
    return LoadError([Problem(str(part), number, 1, "", why)])
