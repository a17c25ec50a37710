"""
Repeat the grading of a case, and measure how often the verdicts differ.

A judge that samples gives the same candidate another verdict now and then. How often it does is the noise of every
score: a suite whose criteria flip in one repetition of five cannot show a difference of one case in ten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from attrs import asdict, evolve, frozen

from rubric.internals.containers import Listed, NoTruth
from rubric.internals.text import table
from rubric.results.rows import short
from rubric.suites.row_builder import row_id

if TYPE_CHECKING:
    from rubric.results.rows import Row
    from rubric.suites.cases import Case
    from rubric.suites.report import Report

AXIS = "repeat"
"""The coordinate of a repetition in the cell of its case."""

VERDICT = "(verdict)"
"""Stands in the place of a criterion for the verdict on the whole case."""


def repeated(case: Case, times: int) -> Iterator[Case]:
    """Yield *case* so many *times*, each with its number from 1 in its id and its cell; once, it is left as it is."""
    if times == 1:
        yield case
        return
    for number in range(1, times + 1):
        yield evolve(case, id=f"{row_id(case)}{_suffix(number)}", cell={**case.cell, AXIS: number})


def _suffix(number: Any) -> str:
    return f" [{AXIS} {number}]"


@frozen
class Flip(NoTruth):
    """
    How often the verdicts on one criterion differ between repetitions.

    Args:
        rubric: The name of its rubric.
        id: The criterion's; `(verdict)` for the verdict on the case as a whole.
        cases: The cases of which two repetitions or more have a verdict.
        flipped: Those of them whose verdicts are not all the same.
        pairs: The pairs of repetitions of the same case that have a verdict.
        differing: Those of them whose verdicts differ.
        spread: The largest difference of two scores of the same case, in 0..1.
    """

    _truth = ".flipped"

    rubric: str
    id: str
    cases: int = 0
    flipped: int = 0
    pairs: int = 0
    differing: int = 0
    spread: float = 0.0

    @property
    def rate(self) -> float:
        """The flip rate in 0..1: how likely two repetitions of the same case are to differ."""
        return self.differing / self.pairs if self.pairs else 0.0


@frozen
class Flips(Listed[Flip]):
    """The flip rate of each criterion of a report, the least stable first; the verdicts on whole cases come first."""

    _kind = "criterion"

    criteria: tuple[Flip, ...] = ()

    @property
    def _listed(self) -> Sequence[Flip]:
        return self.criteria

    def to_dict(self) -> dict[str, Any]:
        """Return the flip rates as plain JSON-able data."""
        return {"flips": [{**asdict(flip), "rate": flip.rate} for flip in self.criteria]}

    def _repr_markdown_(self) -> str:
        head = ("rubric", "criterion", "flip rate", "cases that flipped", "largest spread")
        rows = [
            (flip.rubric, flip.id, f"{flip.rate:.0%}", f"{flip.flipped} of {flip.cases}", f"{flip.spread:.2f}")
            for flip in self.criteria
        ]
        return table(head, rows)


def flips(report: Report) -> Flips:
    """
    Return how often the verdicts of each criterion differ between the repetitions in *report*.

    The flip rate is the share of pairs of repetitions of the same case that differ, so it does not depend on how many
    repetitions there are. A verdict is whether the criterion is met as far as the case needs; a repetition that could
    not be judged is in no pair. A report without repetitions has no flip rates.
    """
    cases: dict[str, list[Row]] = defaultdict(list)
    for row in report:
        if AXIS in row.cell:
            cases[row.id.removesuffix(_suffix(row.cell[AXIS]))].append(row)
    seen: dict[tuple[str, str], list[list[tuple[bool, float | None]]]] = defaultdict(list)
    for rows in cases.values():
        verdicts = [(row.status == "passed", row.score) for row in rows if row.status in ("passed", "failed")]
        seen[rows[0].rubric, VERDICT].append(verdicts)
        entries: dict[str, list[tuple[bool, float | None]]] = defaultdict(list)
        for row in rows:
            for entry in row.entries:
                if entry.contribution is not None:
                    entries[entry.id].append((not short(row, entry), entry.score))
        for id_, found in entries.items():
            seen[rows[0].rubric, id_].append(found)
    counted = [_counted(*name, groups) for name, groups in seen.items()]
    return Flips(tuple(sorted(counted, key=lambda flip: (flip.id != VERDICT, -flip.rate, -flip.spread))))


def _counted(rubric: str, id: str, groups: Sequence[Sequence[tuple[bool, float | None]]]) -> Flip:
    groups = [group for group in groups if len(group) > 1]
    pairs = [pair for group in groups for pair in combinations((met for met, _ in group), 2)]
    scores = [[score for _, score in group if score is not None] for group in groups]
    return Flip(
        rubric,
        id,
        len(groups),
        sum(len({met for met, _ in group}) > 1 for group in groups),
        len(pairs),
        sum(first != second for first, second in pairs),
        max((max(found) - min(found) for found in scores if found), default=0.0),
    )
