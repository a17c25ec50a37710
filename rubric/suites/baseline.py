"""
Compare two runs of a suite: what is better, worse or otherwise changed since a baseline.

A missing score never counts as 0: a case that is ungraded on either side has no difference in score, and a case that is
no longer graded is neither better nor worse.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from attrs import asdict, field, frozen

from rubric.embed import (
    TOLERANCE,
    Listed,
    NoTruth,
    Presented,
    Status,
    Table,
    counted,
    few_groups,
    fields,
    paired_mean,
    percent,
    shorten,
)
from rubric.results import Entry, Row
from rubric.suites.repetition import case_of
from rubric.view.comparison_page import by_name

if TYPE_CHECKING:
    from rubric.suites.report import Deferred, Report


Kind = Literal["better", "worse", "same", "new", "gone", "ungraded"]
PASSED, FAILED, ERROR = 0, 1, 2

_BOTH = 2
"""Scores that are those of a pass and of a fail, and say nothing more."""

_GRADED = ("passed", "failed")
_RANKS: dict[Status, int] = {"passed": 2, "failed": 1, "ungraded": 0, "deferred": 0}
"""A failed case ranks above one without a grade: its result is known."""


@frozen
class Drop:
    """
    How far a rate or a mean fell between two runs over the same cases.

    Args:
        measure: `pass rate` or `mean score`.
        n: The rows in both runs.
        cases: The cases that they are runs or repetitions of; the runs of a case count as one draw.
        drop: The value before less the value now.
        interval: Where the true drop lies. It lies above 0 with a probability of at most *risk* if nothing has changed.
        risk: The accepted probability of a false alarm.
        detectable: The drop that 80 % of such comparisons find.
    """

    measure: str
    n: int
    cases: int
    drop: float
    interval: tuple[float, float]
    risk: float
    detectable: float

    @property
    def is_shown(self) -> bool:
        """True if the interval lies above 0: chance does not explain the drop."""
        return self.interval[0] > 0


def drop_of(measure: str, pairs: Sequence[tuple[float, float]], cases: Sequence[str], risk: float) -> Drop | None:
    """Return how far the values of *pairs*, before and now, fell over *cases*, at this *risk*; None below two cases."""
    found = paired_mean([before - after for before, after in pairs], cases) if pairs else None
    if found is None:
        return None
    sure = 1 - 2 * risk
    low, high = found.interval(sure)
    ends = max(low, -1.0), min(high, 1.0)  # shares are no further apart
    return Drop(measure, len(pairs), found.units, found.mean, ends, risk, found.detectable(sure))


@frozen
class CriterionChange(NoTruth):
    """
    A criterion of a case whose result changed.

    Args:
        id: The criterion's; in a nested rubric after the ids of the criteria around it.
        before: Its contribution in 0..1, or the word for why there is none; None if it is new.
        after: The same, now; None if it is gone.
        gated: True if it fails the grade now.
    """

    _truth = ".after"

    id: str
    before: float | str | None
    after: float | str | None
    gated: bool = False


@frozen
class Change(NoTruth):
    """
    One case in both runs.

    Args:
        id: The case's.
        kind: `better`, `worse`, `same`, `new` (not in the baseline), `gone` (only in the baseline) or `ungraded` (no
            longer graded).
        before: Its status in the baseline; None for a new case.
        after: Its status now; None for a case that is gone.
        score_before: In 0..1; None without a grade.
        score_after: The same, now.
        criteria: The criteria whose results changed.
        case: The id of the case that it is a run or a repetition of; else its own.
    """

    _truth = ".kind"

    id: str
    kind: Kind
    before: Status | None = None
    after: Status | None = None
    score_before: float | None = None
    score_after: float | None = None
    criteria: tuple[CriterionChange, ...] = ()
    case: str = ""

    @property
    def delta(self) -> float | None:
        """The score now less the score before; None unless both are known."""
        return _less(self.score_after, self.score_before)

    @property
    def changed_status(self) -> bool:
        """True if the case is in both runs and its status changed."""
        return self.kind not in ("new", "gone") and self.before != self.after


@frozen(repr=False)
class Comparison(Presented, Listed[Change]):
    """
    A report beside its baseline.

    Args:
        suite: The suite's name.
        changes: One for each case: those of the report in its order, then those that are gone.
        largest_drop: How far the score of a case, and the mean of the cases that have a score in both, may fall;
            None lets scores fall as long as no case that passed stops passing.
        deferred: What deferred cases count as, as in the report.
        risk: How often a comparison with an unchanged system may fail; None lets no case get worse.
    """

    _kind = "case"
    _items = "changes"

    suite: str
    changes: tuple[Change, ...]
    largest_drop: float | None = field(default=None, validator=fields.optional(fields.number(0, 1)))
    deferred: Deferred = "error"
    risk: float | None = field(default=None, validator=fields.optional(fields.number(1e-6, 0.5)))

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """Return the changes of one *kind*."""
        fields.check_name("kind", kind, get_args(Kind))
        return tuple(change for change in self.changes if change.kind == kind)

    @property
    def counts(self) -> dict[Kind, int]:
        """The number of cases of each kind."""
        found = Counter(change.kind for change in self.changes)
        return {kind: found[kind] for kind in get_args(Kind)}

    @property
    def mean_before(self) -> float | None:
        """The baseline's mean score over the cases that have a score in both; None if there are none."""
        return _mean(change.score_before for change in self._scored)

    @property
    def mean_after(self) -> float | None:
        """The mean score now, over the same cases."""
        return _mean(change.score_after for change in self._scored)

    @property
    def mean_delta(self) -> float | None:
        """How the mean changed; None if no case has a score in both."""
        return _less(self.mean_after, self.mean_before)

    @property
    def _scored(self) -> list[Change]:
        return [change for change in self.changes if change.delta is not None]

    @property
    def dropped(self) -> tuple[Change, ...]:
        """The cases whose score fell by more than is allowed; none without a limit."""
        return tuple(change for change in self._scored if self._is_drop(change.delta))

    @property
    def broken(self) -> tuple[Change, ...]:
        """The cases that passed and now fail."""
        side = self._counts_as
        return tuple(c for c in self.changes if side(c.before) == "pass" and side(c.after) == "fail")

    @property
    def lost(self) -> tuple[Change, ...]:
        """The cases that were graded and now are not."""
        return tuple(c for c in self.changes if c.before in _GRADED and self._counts_as(c.after) == "error")

    @property
    def drops(self) -> tuple[Drop, ...]:
        """
        How far the pass rate fell, and the mean score where it says more; empty without `risk`, or below two cases.

        Cases without a verdict on either side are left out. Two measures have half of the risk each.
        """
        if self.risk is None:
            return ()
        verdicts = [(c, self._counts_as(c.before), self._counts_as(c.after)) for c in self.changes]
        known = [(c, float(a == "pass"), float(b == "pass")) for c, a, b in verdicts if {a, b} <= {"pass", "fail"}]
        scored = [(c, c.score_before or 0.0, c.score_after or 0.0) for c in self._scored]
        says_more = (
            len({pair for c in self._scored for pair in ((c.before, c.score_before), (c.after, c.score_after))}) > _BOTH
        )
        measures = {"pass rate": known} | ({"mean score": scored} if says_more else {})
        found = (
            drop_of(name, [(a, b) for _, a, b in rows], [c.case or c.id for c, _, _ in rows], self.risk / len(measures))
            for name, rows in measures.items()
        )
        return tuple(drop for drop in found if drop is not None)

    def _is_drop(self, delta: float | None) -> bool:
        return self.largest_drop is not None and delta is not None and delta < -self.largest_drop - TOLERANCE

    def _counts_as(self, status: Status | None) -> Deferred | None:
        known: dict[Status, Deferred] = {
            "passed": "pass",
            "failed": "fail",
            "ungraded": "error",
            "deferred": self.deferred,
        }
        return None if status is None else known[status]

    @property
    def exit_code(self) -> int:
        """
        0: no worse than is allowed; 1: a pass was lost, or a score fell too far; 2: a case is no longer graded.

        With `risk` 1 says that the pass rate or the mean score fell by more than chance explains.
        """
        if self.lost:
            return ERROR
        if self.risk is not None:
            return FAILED if any(drop.is_shown for drop in self.drops) else PASSED
        return FAILED if self.broken or self.dropped or self._is_drop(self.mean_delta) else PASSED

    @property
    def passed(self) -> bool:
        """True if the report is no worse than is allowed."""
        return self.exit_code == PASSED

    @property
    def sentence(self) -> str:
        """A description of what changed."""
        allowed = "No pass is lost" if self.risk is self.largest_drop is None else "No drop beyond what is allowed"
        passed = allowed if self.counts["worse"] else "No worse than the baseline"
        if self.risk is not None and self.counts["worse"] and all(drop.detectable > 1 for drop in self.drops):
            passed = "Too few cases to show a drop"
        counts = ", ".join(f"{count} {kind}" for kind, count in self.counts.items() if count) or "no cases"
        lost = "Cases are no longer graded" if self.lost and not self.counts["worse"] else "Worse than the baseline"
        told = passed if self.passed else lost
        return f"{told}: {counts}, mean {_format_delta(self.mean_delta)}."

    def remarks(self) -> list[str]:
        """Return a sentence for each drop, what is left out, and what such a comparison would find."""
        if self.risk is None:
            is_let_fall = self.largest_drop is None and self.passed and self.counts["worse"]
            return [
                "A score may fall while its case passes; largest_drop=0 (--largest-drop 0) allows no drop."
            ] * is_let_fall
        lines = [_in_words(drop) for drop in self.drops]
        rated = next(iter(self.drops), None)
        if rated is not None and rated.n > rated.cases and (few := few_groups(rated.cases)):
            lines.append(f"Runs of one case count as one draw; {few}.")
        left_out = len(self.changes) - (rated.n if rated else 0)
        if left_out:
            lines.append(f"{counted(left_out, 'case')} left out: no verdict in one of the runs.")
        if rated is None:
            return [*lines, "Fewer than two cases have a verdict in both runs, so nothing can be compared."]
        least = f"A drop of {rated.detectable:.2f} is" if rated.detectable <= 1 else "No drop is so large that it is"
        return [*lines, f"{least} found by 80 % of such comparisons."]

    def tables(self) -> list[Table]:
        """The cases that changed."""
        rows = [_cells(change) for change in self.changes if change.kind != "same" or change.changed_status]
        return [("", ("case", "change", "before", "after", "score", "criteria"), [*rows])] if rows else []

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain JSON-able data."""
        means = ("mean_before", "mean_after", "mean_delta")
        known = {name: getattr(self, name) for name in ("suite", "passed", "exit_code", "largest_drop", "risk", *means)}
        drops = [{**asdict(drop), "is_shown": drop.is_shown} for drop in self.drops]
        changes = [{**asdict(c), "delta": c.delta, "changed_status": c.changed_status} for c in self.changes]
        return {**known, "counts": dict(self.counts), "drops": drops, "changes": changes}


def compare(
    report: Report, baseline: Report, *, largest_drop: float | None = None, risk: float | None = None
) -> Comparison:
    """
    Compare *report* with *baseline*; cases with the same id belong together.

    Args:
        report: The run now.
        baseline: The earlier run.
        largest_drop: How far the score of a case, and the mean of them, may fall, in 0..1; None sets no limit.
        risk: How often a comparison with an unchanged system may fail.
    """
    before, after = by_name(baseline), by_name(report)
    changes = [_change(before.get(key), row) for key, row in after.items()]
    changes += [_change(row, None) for key, row in before.items() if key not in after]
    return Comparison(report.suite, tuple(changes), largest_drop, report.deferred, risk)


def _change(before: Row | None, after: Row | None) -> Change:
    if after is None:
        assert before is not None  # noqa: S101 - one of the two runs has the case
        return Change(before.id, "gone", before=before.status, score_before=before.score, case=case_of(before))
    if before is None:
        return Change(after.id, "new", after=after.status, score_after=after.score, case=case_of(after))
    delta = _RANKS[after.status] - _RANKS[before.status] or _less(after.score, before.score) or 0
    kind: Kind = "same" if abs(delta) <= TOLERANCE else "better" if delta > 0 else "worse"
    kind = "ungraded" if after.status == "ungraded" and before.status in _GRADED else kind
    criteria = tuple(_criteria(before, after))
    return Change(after.id, kind, before.status, after.status, before.score, after.score, criteria, case_of(after))


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


def _mean(scores: Iterable[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return math.fsum(known) / len(known) if known else None


def _criteria(before: Row, after: Row) -> Iterator[CriterionChange]:
    old, new = dict(before.all_entries()), dict(after.all_entries())
    for id_ in dict.fromkeys([*new, *old]):
        a, b = _result(old.get(id_)), _result(new.get(id_))
        gated = id_ in new and new[id_].gated
        is_same = a == b
        if isinstance(a, int | float) and isinstance(b, int | float):
            is_same = abs(a - b) <= TOLERANCE  # the same votes in another order may differ in the last digit
        if not is_same or gated != (id_ in old and old[id_].gated):
            yield CriterionChange(id_, a, b, gated)


def _result(entry: Entry | None) -> float | str | None:
    if entry is None:
        return None
    return entry.status if entry.contribution is None else entry.contribution


def _in_words(drop: Drop) -> str:
    is_same, (low, high) = abs(drop.drop) <= TOLERANCE, drop.interval
    low, high = (-high, -low) if drop.drop < 0 and not is_same else (low, high)
    rows = counted(drop.cases, "case") + (f" with {drop.n:,} runs" if drop.n > drop.cases else "")
    of = " of the drop" if is_same else ""
    where = f"({percent(1 - 2 * drop.risk)} interval{of} {low:+.3f} to {high:+.3f}, {rows})"
    moved = "did not change" if is_same else f"{'fell' if drop.drop > 0 else 'rose'} by {abs(drop.drop):.3f}"
    judged = "chance does not explain it" if drop.is_shown else "no drop is shown"
    return f"The {drop.measure} {moved} {where}: {judged}."


def _format_delta(delta: float | None) -> str:
    return "unknown" if delta is None else f"{delta:+.3f}"


def _cells(change: Change) -> tuple[str, ...]:
    score = _format_delta(change.delta) if change.delta is not None else "–"
    criteria = ", ".join(f"{shorten(c.id, 40)}: {_word(c.before)} → {_word(c.after)}" for c in change.criteria)
    before, after = (
        (status or "") if score is None else f"{status} {score:.3f}"
        for status, score in ((change.before, change.score_before), (change.after, change.score_after))
    )
    return shorten(change.id, 120), change.kind, before, after, score, shorten(criteria, 300)


def _word(value: float | str | None) -> str:
    if value is None:
        return "none"
    return value.replace("_", " ") if isinstance(value, str) else f"{value:.2f}"
