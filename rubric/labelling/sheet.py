"""
The file of labels that a page fills: a row a label, as `Labels.read` takes it, written whole after each answer.

It is all that is kept, so labelling goes on wherever it stopped. Each answer is merged into the file as it is at that
moment: two tabs, two raters, two processes and an editor of the file lose nothing of one another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import frozen

from rubric import DefinitionError
from rubric.embed import replacing, rows_in, shorten
from rubric.internals.row_files import csv_text
from rubric.labelling.drawing import Draw

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_FIELDS = ("rater", "criterion", "value", "reason", "judge_seen")
LONGEST = 10_000
"""Characters of a reason or a name."""


@frozen
class Answer:
    """
    One answer of a person to a criterion, or to the whole, of the candidate with this key or place as its *name*.

    The *value* is as `Labels.read` takes it; empty for "cannot tell", which is not counted; None for one taken back.
    """

    name: str
    rater: str
    criterion: str
    value: str | None
    reason: str = ""
    judge_seen: bool = False

    @classmethod
    def of(cls, data: Any, allowed: Mapping[str, frozenset[str] | None]) -> Answer:
        """Return the answer in *data*, which a page sent, if its value is *allowed*: None allows any number."""
        names = ("name", "rater", "criterion", "value", "reason")
        if not isinstance(data, dict) or not all(isinstance(data.get(n), str | None) for n in names):
            raise DefinitionError("answer", f"expected an object with the texts {', '.join(names)}")
        said: dict[str, str] = {name: data.get(name) or "" for name in names}
        found = cls(
            said["name"],
            said["rater"].strip()[:LONGEST],
            said["criterion"],
            data.get("value"),
            said["reason"][:LONGEST],
            judge_seen=data.get("judge_seen") is True,
        )
        if not found.rater or not found.name:
            raise DefinitionError("answer", "expected the name of a rater and of a candidate")
        if found.criterion not in allowed:
            raise DefinitionError("answer.criterion", f"there is no criterion {found.criterion!r} on this page")
        values = allowed[found.criterion]
        if found.value and not (_is_number(found.value) if values is None else found.value in values):
            asked = found.criterion or "the whole"
            raise DefinitionError("answer.value", f"{found.value!r} is not an answer to {asked!r}")
        return found


def _is_number(value: str) -> bool:
    try:
        return abs(float(value)) < float("inf")
    except ValueError:
        return False


@frozen(eq=False)
class Sheet:
    """The file of labels at *path*, which need not exist, with its rows in the order of *draw*."""

    path: Path
    draw: Draw

    def read(self) -> list[Answer]:
        """Return what is in the file; other columns are refused, which writing it would lose."""
        return read_answers(self.path, self.draw.by) if self.path.exists() else []

    def add(self, answers: Iterable[Answer]) -> list[Answer]:
        """Merge *answers* into the file, each in the place of an earlier one to the same question; return them all."""
        with lock(self.path):
            rows = {(each.name, each.rater, each.criterion): each for each in self.read()}
            for each in answers:
                place = (each.name, each.rater, each.criterion)
                if each.value is None:
                    rows.pop(place, None)
                else:
                    rows[place] = each
            kept = list(rows.values())
            text = self._text(kept)
            with replacing(self.path, errors="backslashreplace") as file:
                file.write(text)
            return kept

    def _text(self, rows: list[Answer]) -> str:
        places = self.draw.places
        rows.sort(key=lambda each: places.get(each.name, len(places)))  # stable: raters and criteria as they came
        lines: list[tuple[str, ...]] = [(self.draw.by, *_FIELDS)]
        for each in rows:
            seen = "yes" if each.judge_seen else ""
            lines.append((each.name, each.rater, each.criterion, each.value or "", each.reason, seen))
        return csv_text(lines)


def read_answers(path: Path, by: str) -> list[Answer]:
    """Return the answers in the file of labels at *path*, in which candidates are named *by* `key` or `index`."""
    answers = []
    for where, row in rows_in("labels", path):
        if not isinstance(row, Mapping) or not {by, "value"} <= row.keys():
            found = ", ".join(row) if isinstance(row, Mapping) else shorten(repr(row))
            raise DefinitionError(where, f"expected the columns {by} and value, got {found}")
        if other := [name for name in row if name not in (by, *_FIELDS)]:
            cure = f"; the columns of this file are {by}, {', '.join(_FIELDS)}: name another file"
            raise DefinitionError(where, f"its column {other[0]!r} would be lost{cure}")
        said = {name: "" if value is None else str(value) for name, value in row.items()}
        told = {each: said.get(each, "").strip() for each in ("rater", "criterion", "value")}
        seen = said.get("judge_seen") == "yes"
        answers.append(Answer(name=said[by], reason=said.get("reason", ""), judge_seen=seen, **told))
    return answers


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """
    Hold the lock on the file at *path*, for which other threads and processes wait.

    The system holds it on a hidden file beside the real one, which is replaced meanwhile. A process that is killed
    leaves no lock, and the hidden file goes with its last holder.
    """
    target = path.resolve()
    beside = target.with_name(f".{target.name[:80]}.lock")
    while True:
        with beside.open("ab") as file:
            _wait_for(file.fileno())
            with suppress(FileNotFoundError):  # a holder before may have removed it: others would lock a new file
                if os.path.samestat(os.fstat(file.fileno()), beside.stat()):
                    try:
                        yield
                    finally:
                        with suppress(OSError):  # on Windows, where others have it open
                            beside.unlink()
                    return


def _wait_for(handle: int) -> None:
    """Wait until no other process holds the lock on the open file *handle*, and take it."""
    if sys.platform == "win32":
        while True:
            with suppress(OSError):  # it gives up after ten seconds
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
                return
    else:
        fcntl.flock(handle, fcntl.LOCK_EX)
