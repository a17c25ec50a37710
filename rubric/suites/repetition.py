"""
Repeat the grading of a candidate, or the making of it, and measure how often the verdicts differ.

A judge that samples gives the same candidate another verdict now and then. How often it does is the noise of every
score: a suite whose criteria flip in one repetition of five cannot show a difference of one case in ten. A target that
samples makes another candidate each time: the runs of a case show how often it succeeds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from math import comb
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from attrs import asdict, evolve, frozen

from rubric.embed import Listed, NoTruth, guided, mean_interval, percent, table
from rubric.suites.case_rows import row_id

if TYPE_CHECKING:
    from rubric import Candidate
    from rubric.results import Row
    from rubric.suites.cases import Case
    from rubric.suites.report import Report

Interval = tuple[float, float]

AXIS = "repeat"
"""The coordinate of a repetition in the cell of its case."""

RUN = "run"
"""The coordinate of a candidate among those that a target made for one case."""

VERDICT = "(verdict)"
"""Used in the place of a criterion for the verdict on the whole case."""


def repeat_case(case: Case, times: int) -> Iterator[Case]:
    """Yield *case* so many *times*, each with its number from 1 in its id and its cell; once, it is left as it is."""
    if times == 1:
        yield case
        return
    for number in range(1, times + 1):
        yield evolve(case, id=f"{row_id(case)}{_suffix(number)}", cell={**case.cell, AXIS: number})


def several(case: Case, runs: int | None) -> Iterator[Case]:
    """Yield *case* for each of its runs (*runs* of them, if given), each with its number from 1 in id and cell."""
    times = case.runs if runs is None else runs
    if times == 1 or case.output is not None:
        yield evolve(case, runs=1) if case.runs > 1 else case
        return
    for number in range(1, times + 1):
        yield evolve(case, id=run_id(case, number), cell={**case.cell, RUN: number}, runs=1)


def run_id(case: Case, number: int) -> str:
    """Return the id of run *number* of *case*."""
    return f"{row_id(case)}{_suffix(number, RUN)}"


def with_key(candidate: Candidate, case: Case) -> Candidate:
    """Return *candidate* with its own key, else the id of *case*; the runs of one case are one group."""
    run = case.cell.get(RUN)
    group = "" if run is None else case.id.removesuffix(_suffix(run, RUN))
    return evolve(candidate, key=candidate.key or case.id, group=candidate.group or group)


def case_of(row: Row) -> str:
    """Return the id of the case that *row* is a repetition or a run of."""
    return row.id.removesuffix(_suffix(row.cell.get(AXIS))).removesuffix(_suffix(row.cell.get(RUN), RUN))


def _suffix(number: Any, axis: str = AXIS) -> str:
    return f" [{axis} {number}]"


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
        interval: Where the true flip rate lies, by case, with 95 % confidence; None below two cases.
    """

    _truth = ".flipped"

    rubric: str
    id: str
    cases: int = 0
    flipped: int = 0
    pairs: int = 0
    differing: int = 0
    spread: float = 0.0
    interval: Interval | None = None

    @property
    def rate(self) -> float:
        """The flip rate in 0..1: how likely two repetitions of the same case are to differ."""
        return self.differing / self.pairs if self.pairs else 0.0


@frozen
class Flips(Listed[Flip]):
    """The flip rate of each criterion of a report, the least stable first; the verdicts on whole cases come first."""

    criteria: tuple[Flip, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the flip rates as plain JSON-able data."""
        return {"flips": [{**asdict(flip), "rate": flip.rate} for flip in self.criteria]}

    def _repr_markdown_(self) -> str:
        head = ("rubric", "criterion", "flip rate", "cases that flipped", "largest spread")
        rows = [
            (
                flip.rubric,
                flip.id,
                percent(flip.rate, flip.interval),
                f"{flip.flipped} of {flip.cases}",
                f"{flip.spread:.2f}",
            )
            for flip in self.criteria
        ]
        return table(head, rows)


@guided
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
                    entries[entry.id].append((not row.falls_short(entry), entry.score))
        for id_, found in entries.items():
            seen[rows[0].rubric, id_].append(found)
    rates = [count_flips(*name, groups) for name, groups in seen.items()]
    return Flips(tuple(sorted(rates, key=lambda flip: (flip.id != VERDICT, -flip.rate, -flip.spread))))


def count_flips(rubric: str, id: str, groups: Sequence[Sequence[tuple[Hashable, float | None]]]) -> Flip:
    """Return how often the answers in *groups* differ: one group a candidate, one answer and its score a repetition."""
    groups = [group for group in groups if len(group) > 1]
    differ, interval = _differing([[met for met, _ in group] for group in groups])
    scores = [[score for _, score in group if score is not None] for group in groups]
    return Flip(
        rubric,
        id,
        len(groups),
        sum(len({met for met, _ in group}) > 1 for group in groups),
        len(differ),
        sum(differ),
        max((max(found) - min(found) for found in scores if found), default=0.0),
        interval,
    )


def _differing(cases: Sequence[Sequence[Hashable]]) -> tuple[list[bool], Interval | None]:
    """Return of each two answers to a case whether they differ, and where the share that differs lies."""
    pairs = [(n, one != other) for n, said in enumerate(cases) for one, other in combinations(said, 2)]
    differ = [differs for _, differs in pairs]
    return differ, mean_interval([float(differs) for differs in differ], [n for n, _ in pairs])


# -- the runs of a target ----------------------------------------------------------------------------------


@frozen
class PassRate(NoTruth):
    """
    How likely *k* runs of a case are to pass, as a mean over the cases.

    Both estimators are unbiased: for a case that passed c of n runs they average over all choices of k of them.

    Args:
        k: The number of runs.
        any_passes: pass@k, that at least one passes: 1 - C(n - c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374).
        all_pass: pass^k, that all of them pass: C(c, k) / C(n, k) (Yao et al. 2024, arXiv 2406.12045).
        cases: The cases with k graded runs or more; the others have no estimate for this k.
        any_interval: Where the true pass@k lies, by case, with 95 % confidence; None below two cases.
        all_interval: The same of pass^k.
    """

    _truth = ".any_passes or .all_pass"

    k: int
    any_passes: float
    all_pass: float
    cases: int
    any_interval: Interval | None = None
    all_interval: Interval | None = None


@frozen
class PassRates(Listed[PassRate]):
    """
    The pass rates of a report whose cases had several runs, for each k from 1.

    Args:
        rates: One for each k, up to the most runs that a case has.
        runs: The runs that were graded.
        ungraded: The runs that were not: no verdict is neither a pass nor a fail, so they are in no rate.
        flip_rate: How likely two runs of the same case are to differ in their verdicts, in 0..1.
        flip_interval: Where the true flip rate lies, by case, with 95 % confidence; None below two cases.
    """

    _kind = "rate"
    _items = "rates"
    _id = attrgetter("k")

    rates: tuple[PassRate, ...] = ()
    runs: int = 0
    ungraded: int = 0
    flip_rate: float = 0.0
    flip_interval: Interval | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the pass rates as plain JSON-able data."""
        rates = [
            {"k": rate.k, "pass@k": rate.any_passes, "pass^k": rate.all_pass, "cases": rate.cases}
            | {"pass@k interval": rate.any_interval, "pass^k interval": rate.all_interval}
            for rate in self.rates
        ]
        flips = {"flip_rate": self.flip_rate, "flip_interval": self.flip_interval}
        return {"runs": self.runs, "ungraded": self.ungraded, **flips, "pass_rates": rates}

    def _repr_markdown_(self) -> str:
        head = ("k", "pass@k: one of k passes", "pass^k: all of k pass", "cases")
        rows = [
            (f"{r.k}", percent(r.any_passes, r.any_interval), percent(r.all_pass, r.all_interval), f"{r.cases}")
            for r in self.rates
        ]
        ungraded = f", {self.ungraded} ungraded" if self.ungraded else ""
        flips = percent(self.flip_rate, self.flip_interval)
        return f"{self.runs} runs graded{ungraded}; flip rate {flips}\n\n{table(head, rows)}"


@guided
def pass_rates(report: Report) -> PassRates:
    """
    Return how likely one of k runs, and all of k runs, of a case are to pass.

    Where each candidate was graded several times, a run passes if more than half of its verdicts are passes. A report
    without several runs of a case has no pass rates.
    """
    verdicts: dict[str, dict[Any, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for row in report:
        if RUN in row.cell:
            found = verdicts[case_of(row)][row.cell[RUN]]
            found += [row.status == "passed"] if row.status in ("passed", "failed") else []
    cases = [[2 * sum(said) > len(said) for said in runs.values() if said] for runs in verdicts.values()]
    graded = sum(map(len, cases))
    differ, interval = _differing(cases)
    return PassRates(
        tuple(
            _rate(k, [runs for runs in cases if len(runs) >= k]) for k in range(1, max(map(len, cases), default=0) + 1)
        ),
        graded,
        sum(map(len, verdicts.values())) - graded,
        sum(differ) / len(differ) if differ else 0.0,
        interval,
    )


def _rate(k: int, cases: Sequence[Sequence[bool]]) -> PassRate:
    one = [1 - comb(len(runs) - sum(runs), k) / comb(len(runs), k) for runs in cases]
    every = [comb(sum(runs), k) / comb(len(runs), k) for runs in cases]
    n, intervals = len(cases), (mean_interval(one), mean_interval(every))
    return PassRate(k, sum(one) / n, sum(every) / n, n, *intervals)
