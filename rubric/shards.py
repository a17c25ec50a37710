"""
Parts of a data set, for several machines: which candidates each has, and how their results become one file again.

A candidate belongs to the shard that its content says, not its place: the same text is in the same shard in every
process, on every day, wherever it stands. So rows that are added, taken out or sorted move no other row to a machine
whose store does not have its replies, and of two that are the same, one is paid for. What is no candidate (a missing
text, a broken line) goes by its place, so that it too is told once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from pathlib import Path
from typing import Any, Self

from attrs import field, fields, frozen, has

from rubric.candidates import Candidate
from rubric.columns import Columns
from rubric.errors import DefinitionError, LoadError, Problem
from rubric.replacing import replacing
from rubric.sources import Candidates, Placed, source_of
from rubric.validating import as_path, refuse
from rubric.validating import count as counting

__all__ = ["Placed", "Shard", "merge_results"]

_FORM = "expected a shard and how many there are, such as '1/16' (from 1/16 to 16/16)"


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

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(
        self, candidates: Candidates, /, *, columns: Mapping[str, str | None] | None = None
    ) -> Iterable[Placed] | AsyncIterable[Placed]:
        """
        Return those of *candidates* that are in this shard, each with its place among all of them.

        `grade_many` takes what this returns, and gives every result the `index` of the whole data set; so do `plan` and
        `grade_in_batches`. Nothing is read yet; it can be gone through as often as *candidates* can.

        Args:
            columns: Which column of a row holds which field of a candidate, as for `grade_many`.

        Raises:
            DefinitionError: They cannot be read; see `rubric.sources`.
        """
        source = source_of(candidates, columns)
        items = source.items
        if isinstance(items, AsyncIterable):
            return _AsyncPart(self, items, source.columns)
        return _Part(self, items, source.columns)

    def has(self, index: int, item: object, /) -> bool:
        """Say whether *item*, which is at *index* of the whole data set, is in this shard."""
        return number_of(index, item, self.count) == self.number


@frozen
class _Part:
    _shard: Shard
    _items: Iterable[Any]
    _columns: Columns

    def __iter__(self) -> Iterator[Placed]:
        for index, item in enumerate(self._items):
            placed = Placed(index, item, self._columns)
            if self._shard.has(index, placed):
                yield placed


@frozen
class _AsyncPart:
    _shard: Shard
    _items: AsyncIterable[Any]
    _columns: Columns

    async def __aiter__(self) -> AsyncIterator[Placed]:
        index = 0
        async for item in self._items:
            placed = Placed(index, item, self._columns)
            if self._shard.has(index, placed):
                yield placed
            index += 1


def number_of(index: int, item: object, count: int) -> int:
    """Return which of *count* shards, from 1, *item* is in, which is at *index* of the whole data set."""
    try:
        content = _content(Placed.at(index, item).candidate)
    except Exception:  # noqa: BLE001 - grading it will say what is wrong
        return index % count + 1
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big") % count + 1


def _content(candidate: Candidate) -> bytes:
    """Return what *candidate* says, the same in every process; fields without anything in them do not count."""
    given = {f.name: value for f in fields(Candidate) if (value := getattr(candidate, f.name)) or f.name == "output"}
    return json.dumps(_plain(given), sort_keys=True).encode()


def _plain(value: Any) -> Any:
    """Return *value* as JSON has it; of what JSON has no form for, the name of its type, which stays the same."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if has(type(value)):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(type(value))}
    return value if isinstance(value, str | int | float | bool | None) else type(value).__qualname__


# -- results ---------------------------------------------------------------------------------------------


def merge_results(parts: Sequence[str | Path], out: str | Path) -> int:
    """
    Write the results of all shards into one file, in the order of the whole data set, and return how many there are.

    The lines stay as they are. The file is there when it is whole; memory stays flat.

    Args:
        parts: Files of one JSON object a line with its `index`, as `grade-many` and `Grades.to_jsonl` write them.
        out: The file to write; an old one is replaced.

    Raises:
        LoadError: A line is no result, or stands twice, or one is missing; with the file and the line.
    """
    if isinstance(parts, str | Path) or not isinstance(parts, Iterable):
        raise refuse("parts", parts, "a list of the files of all shards")
    files = [as_path(f"parts[{number}]", part) for number, part in enumerate(parts)]
    out = as_path("out", out)
    written = 0
    with replacing(out, errors="surrogateescape") as file:
        for line in _in_order(files):
            file.write(line)
            written += 1
    return written


def _in_order(parts: Sequence[Path]) -> Iterator[str]:
    for due, (index, name, number, line) in enumerate(merge(*(_lines(part) for part in parts))):
        if index < due:
            raise _wrong(name, number, f"the result of candidate {index} stands in another place too; give it once")
        if index > due:
            gap = f"candidate {due}" if index == due + 1 else f"candidates {due} to {index - 1}"
            raise _wrong(name, number, f"before this, {gap} should come; name the files of all shards, once through")
        yield line


def _lines(part: Path) -> Iterator[tuple[int, str, int, str]]:
    last = -1
    with part.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            index = _index(part, number, line)
            if index <= last:
                raise _wrong(str(part), number, f"candidate {index} comes after {last}; sort the lines by `index`")
            last = index
            yield index, str(part), number, line


def _index(part: Path, number: int, line: str) -> int:
    try:
        found = json.loads(line)["index"]
    except (ValueError, RecursionError, LookupError, TypeError):
        found = None
    if isinstance(found, bool) or not isinstance(found, int) or found < 0 or not line.endswith("\n"):
        raise _wrong(str(part), number, "this is no whole line of results; let the run that writes it come to its end")
    return found


def _wrong(part: str, number: int, why: str) -> LoadError:
    return LoadError([Problem(part, number, 1, "", why)])
