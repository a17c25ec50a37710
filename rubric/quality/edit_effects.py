"""
What an edit of a rubric moves: `shifts` grades the same candidates by both rubrics, and compares them group by group.

An edit that moves no verdict one way rather than the other moves as many up as down, whatever the judge's noise: the
sign test of the moved verdicts is exact. The p-values of the whole and of its groups are adjusted together, by the
method of Holm for exact tests that `rubric.quality.probing` names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from attrs import evolve, field, frozen

from rubric import Candidate, DefinitionError, Grade, Rubric, diff, grade_many, plan
from rubric.driving import Usage
from rubric.embed import (
    JudgeLike,
    Listed,
    NoTruth,
    Presented,
    Table,
    as_rubric,
    counted,
    guided,
    judge_or_default,
    paired_mean,
)
from rubric.engine import Candidates, Plan
from rubric.quality.probing import RISK, Result, adjust, all_of, failures_of, sign_tails
from rubric.values import AnyJudge


@frozen
class Shift(NoTruth):
    """
    How the grades of one group move from the rubric `a` to the rubric `b`.

    Args:
        id: The group's name (`Candidate.group`); empty for all candidates.
        up: The candidates that pass by `b` alone; *down*: those that pass by `a` alone.
        n: The candidates that both rubrics graded; *lost*: those that one of them did not.
        shift: The mean shift of the score, `b` less `a`, in -1..1; None without a graded candidate.
        interval: Where the mean shift lies, with 95 % confidence; None below two candidates.
        p: The chance of such moves if as many rise as fall, by an exact sign test, adjusted for all rows.
    """

    _truth = ".p"

    id: str
    up: int
    down: int
    n: int
    lost: int
    shift: float | None
    interval: tuple[float, float] | None
    p: float = 1.0


@frozen(repr=False)
class Shifts(Presented, Listed[Shift]):
    """
    What `shifts` returns: all candidates, then each group.

    Args:
        rows: The row of all candidates first, then the groups in the order in which they occur.
        pairs: The result of each candidate by `a` and by `b`.
        judge: The judge's name.
        usage: What it took.
        notes: The commonest failure, and which rows are left out.
    """

    _kind = "group"
    _items = "rows"
    _truth = ".significant"

    rows: tuple[Shift, ...]
    pairs: tuple[tuple[Result, Result], ...] = field(eq=False)
    judge: str
    usage: Usage
    notes: tuple[str, ...] = ()

    @property
    def significant(self) -> tuple[Shift, ...]:
        """The rows that chance does not explain; at most 5 % of edits that favour neither direction show one."""
        return tuple(row for row in self.rows if row.p <= RISK)

    @property
    def sentence(self) -> str:
        """The main finding."""
        whole = self.rows[0]
        if whole.shift is None:
            return "No candidate was graded by both rubrics."
        names = ", ".join(repr(row.id) if row.id else "all" for row in self.significant)
        shown = f"shown to shift: {names}" if names else "no shift of verdicts is shown"
        moves = f"{whole.up} of {counted(whole.n, 'verdict')} move up and {whole.down} down"
        return f"{moves}, the mean score by {whole.shift:+.3f}; {shown}."

    def remarks(self) -> list[str]:
        """What was left out, and what it took."""
        left_out = f"{counted(self.rows[0].lost, 'candidate')} without a grade by one of the rubrics, left out."
        return [*([left_out] if self.rows[0].lost else []), *self.notes, f"{self.usage}; judged by {self.judge}."]

    def tables(self) -> list[Table]:
        """All candidates in a row, then each group."""
        rows = []
        for row in self.rows:
            ends = "–" if row.interval is None else f"{row.interval[0]:+.3f} to {row.interval[1]:+.3f}"
            shift = "–" if row.shift is None else f"{row.shift:+.3f}"
            rows.append((row.id or "all", row.n, row.up, row.down, shift, ends, f"{row.p:.2g}"))
        head = ("group", "graded", "up", "down", "shift of the score", "95 % interval", "p (Holm)")
        return [("", head, rows)]


@guided
def shifts(
    a: Rubric | str | Path,
    b: Rubric | str | Path,
    judge: JudgeLike | None = None,
    candidates: Candidates = (),
    *,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    **options: Any,
) -> Shifts:
    """
    Return what the edit of rubric *a* into rubric *b* moves: verdicts and scores, on the whole and by group.

    An edit that keeps the pass rate of a benchmark may still shift one group of candidates; it is seen here. An edit of
    weights, thresholds and the like rescores the grades by *a*, without a call. With a `store`, criteria that the edit
    leaves alone are judged once for both; without one, the judge's noise on them is part of the moves.

    Args:
        a: The rubric before the edit, as for `grade`.
        b: The rubric after the edit.
        judge: As for `grade`.
        candidates: As for `grade_many`. Their `group` names the slices that are told apart, and within one they count
            as independent.
        columns: As for `grade_many`.
        options: What `grade_many` takes besides: `store`, `budget`, `limits`, `concurrency`, `progress`. What a budget
            refuses is left out, and counted.

    Raises:
        DefinitionError: The rubrics do not differ, or there are no candidates.
    """
    texts, rubrics, by, new, left_out = _prepare(a, b, judge, candidates, columns)
    results = [*grade_many(texts, rubrics, by, **{"progress": False, **options}).collect()]
    both = results[1::2] if new in rubrics else [result.rescore(new) for result in results]
    pairs = [*zip(results[:: 1 + (new in rubrics)], both, strict=True)]
    parts = {"": pairs}
    for pair in pairs if len({pair[0].group for pair in pairs}) > 1 else ():
        if pair[0].group:
            parts.setdefault(pair[0].group, []).append(pair)
    rows = [_shift(name, some) for name, some in parts.items()]
    ps = adjust([(count, sign_tails(row.up + row.down)) for row in rows for count in (row.up, row.down)])
    rows = [evolve(row, p=min(ps[2 * at : 2 * at + 2])) for at, row in enumerate(rows)]
    notes = (*failures_of(results), *([left_out] if left_out else []))
    return Shifts(tuple(rows), tuple(pairs), by.name, Usage.total(result.usage for result in results), notes)


@guided
def plan_shifts(
    a: Rubric | str | Path,
    b: Rubric | str | Path,
    judge: JudgeLike | None = None,
    candidates: Candidates = (),
    *,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
) -> Plan:
    """Return what `shifts` would take, of the same arguments: calls, tokens and cost. Nothing is sent."""
    texts, rubrics, by, _, left_out = _prepare(a, b, judge, candidates, columns)
    planned = plan(texts, rubrics, by)
    return evolve(planned, remarks=(*planned.remarks, left_out)) if left_out else planned


def _prepare(
    a: Any, b: Any, judge: Any, candidates: Any, columns: Any
) -> tuple[list[Candidate], list[Rubric], AnyJudge, Rubric, str]:
    """Return what is graded, and by which rubric: by *a* alone where its grades can be scored again by *b*."""
    old, new = as_rubric(a), as_rubric(b)
    changes = diff(old, new)
    if not changes.of("judge") and not changes.of("score"):
        raise DefinitionError("b", "asks and scores as a does, so nothing can move; give the edited rubric")
    texts, left_out = all_of(candidates, columns)
    by = judge_or_default(judge).without_early_stop()
    by_rubric = [old, new] if changes.needs_calls else [old]  # pair by pair, so that a budget ends after whole pairs
    return [text for text in texts for _ in by_rubric], by_rubric * len(texts), by, new, left_out


def _shift(name: str, pairs: Sequence[tuple[Result, Result]]) -> Shift:
    both = [(a, b) for a, b in pairs if isinstance(a, Grade) and isinstance(b, Grade)]
    up, down = (sum((a.passed, b.passed) == (not one, one) for a, b in both) for one in (True, False))
    moves = [b.score - a.score for a, b in both]
    found = paired_mean(moves)
    ends = None if found is None else found.interval()
    shift, n = fmean(moves) if moves else None, len(both)
    return Shift(name, up, down, n, len(pairs) - n, shift, ends and (max(-1.0, ends[0]), min(1.0, ends[1])))
