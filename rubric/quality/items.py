"""
What each criterion does in grades that exist: its spread, its relation to the rest, its flips, and whether it has drifted.

The terms are those of item analysis: a criterion is an item, and its *discrimination* is the corrected item-total
correlation, that of its contributions with the mean of the other criteria (F. M. Lord and M. R. Novick, Statistical
Theories of Mental Test Scores, 1968, chapter 15). Correlations have Fisher's interval (R. A. Fisher, Metron 1, 1921).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import NormalDist, StatisticsError, correlation, fmean, pstdev
from typing import Any

from attrs import asdict, frozen

from rubric.errors import DefinitionError
from rubric.internals.containers import Listed, NoTruth
from rubric.internals.fields import check_number
from rubric.internals.text import cell, table
from rubric.results.result import Grade, Ungraded
from rubric.scoring.intervals import CONFIDENCE, Interval, jackknife, mean_interval, t_quantile
from rubric.values.findings import Scored

RARE = 0.05
"""An answer this rare tells candidates apart in one case of twenty: a criterion whose rarer answers are rarer is dead."""

_REDUNDANT = 0.9
_FEWEST = 4
"""How many pairs a correlation needs for an interval."""


@frozen
class Item(NoTruth):
    """
    One criterion in the grades.

    Args:
        id: The criterion's id.
        n: In how many grades it has a score.
        missing: In how many it has none: not applicable, abstained or unjudged.
        mean: The mean of its contributions, in 0..1; None without any.
        interval: The 95 % interval of the mean, by group where candidates have groups.
        spread: The standard deviation of its contributions.
        discrimination: Its correlation with the mean of the other criteria; None where one of the two does not vary.
        discrimination_interval: The 95 % interval of that.
        flips: The chance that two votes of a jury differ on it; None without votes.
        dead: True if it is shown to tell (nearly) no candidates apart: the 95 % bound on its rarer answers is below
            5 %, which takes 59 equal answers or more. None where that is not shown, which is not the same as alive.
        labels: Its correlation with the labels, where labels are given.
    """

    _truth = ".dead"

    id: str
    n: int
    missing: int
    mean: float | None
    interval: Interval | None
    spread: float | None
    discrimination: float | None
    discrimination_interval: Interval | None
    flips: float | None
    dead: bool | None
    labels: float | None = None


@frozen
class Pair(NoTruth):
    """Two criteria whose contributions correlate at 0.9 or more: *n* grades, the *correlation* and its interval."""

    _truth = ".correlation"

    ids: tuple[str, str]
    n: int
    correlation: float
    interval: Interval


@frozen(repr=False)
class Items(Listed[Item]):
    """
    The criteria in some grades, in the order of the rubric.

    Args:
        items: One for each criterion.
        redundant: Pairs of criteria that (nearly) always say the same.
        grades: How many results were looked at.
        ungraded: How many of them have no verdict, and are left out.
        digest: The digest of their rubric.
    """

    _kind = "criterion"

    items: tuple[Item, ...]
    redundant: tuple[Pair, ...]
    grades: int
    ungraded: int
    digest: str
    _contributions: Mapping[str, Mapping[str, Sequence[float]]]
    """The contributions of each criterion, by group."""

    @property
    def _listed(self) -> Sequence[Item]:
        return self.items

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        dead = [repr(item.id) for item in self if item.dead]
        told = [f"{', '.join(dead)} {'tells' if len(dead) == 1 else 'tell'} no candidates apart"] if dead else []
        told += [f"{a!r} and {b!r} say the same" for a, b in (pair.ids for pair in self.redundant)]
        left = f" ({self.ungraded:,} ungraded left out)" if self.ungraded else ""
        what = "; ".join(told) or "No criterion is shown to be dead, and no two to say the same"
        return f"{what}, in {self.grades - self.ungraded:,} grades{left}."

    def against(self, old: Items, *, risk: float = 0.05) -> Drift:
        """
        Return which criteria differ from those of *old* grades.

        Each mean is compared by Welch's test, by group where candidates have groups; Holm's correction keeps the chance
        of any false alarm at *risk*.

        Raises:
            DefinitionError: The grades are of another rubric.
        """
        check_number("risk", risk, 0, 1)
        if self.digest != old.digest:
            message = f"expected the items of grades of the same rubric, got {old.digest} for {self.digest}"
            raise DefinitionError("old", message)
        changes = [_change(id_, self._contributions[id_], old._contributions[id_]) for id_ in self._contributions]
        order = sorted(range(len(changes)), key=lambda at: changes[at][2])
        adjusted, least = [1.0] * len(changes), 0.0
        for rank, at in enumerate(order):
            least = max(least, min(1.0, changes[at][2] * (len(changes) - rank)))
            adjusted[at] = least
        moved = (
            Change(item.id, then.mean, item.mean, difference, interval, p, changed=p <= risk)
            for item, then, (difference, interval, _), p in zip(self, old, changes, adjusted, strict=True)
        )
        return Drift(tuple(moved), risk)

    def __repr__(self) -> str:
        return f"<Items: {self.sentence}>"

    def __str__(self) -> str:
        return f"{self.sentence}\n\n{self._table()}"

    def _repr_markdown_(self) -> str:
        return f"{cell(self.sentence)}\n\n{self._table()}"

    def _table(self) -> str:
        head = ("criterion", "n", "mean", "spread", "with the rest", "flips", "dead")
        rows = [
            (
                item.id,
                f"{item.n:,}",
                _shown(item.mean, item.interval),
                _shown(item.spread),
                _shown(item.discrimination, item.discrimination_interval),
                "-" if item.flips is None else f"{item.flips:.1%}",
                "yes" if item.dead else "not shown",
            )
            for item in self
        ]
        return table(head, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON holds."""
        return {
            "sentence": self.sentence,
            "digest": self.digest,
            "grades": self.grades,
            "ungraded": self.ungraded,
            "items": [asdict(item) for item in self],
            "redundant": [asdict(pair) for pair in self.redundant],
        }


@frozen
class Change(NoTruth):
    """
    One criterion before and now.

    Args:
        id: The criterion's id.
        before: Its mean then.
        now: Its mean now.
        difference: Now less before; None where one of the two has too few grades.
        interval: The 95 % interval of the difference.
        p: How likely such a difference is by chance alone, corrected by Holm for the number of criteria.
        changed: Whether that is at most the risk.
    """

    _truth = ".changed"

    id: str
    before: float | None
    now: float | None
    difference: float | None
    interval: Interval | None
    p: float
    changed: bool


@frozen(repr=False)
class Drift(Listed[Change]):
    """How the criteria differ between two sets of grades; *exit_code* is 1 if any has changed."""

    _kind = "criterion"

    changes: tuple[Change, ...]
    risk: float

    @property
    def _listed(self) -> Sequence[Change]:
        return self.changes

    @property
    def changed(self) -> tuple[Change, ...]:
        """The criteria that have changed."""
        return tuple(change for change in self.changes if change.changed)

    @property
    def exit_code(self) -> int:
        """1 if any criterion has changed, else 0."""
        return int(bool(self.changed))

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        moved = [f"{c.id!r} {c.before:.2f} to {c.now:.2f}" for c in self.changed]
        return f"Changed: {', '.join(moved)}." if moved else "No criterion has changed by more than chance explains."

    def __repr__(self) -> str:
        return f"<Drift: {self.sentence}>"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON holds."""
        return {"sentence": self.sentence, "risk": self.risk, "changes": [asdict(change) for change in self.changes]}


def items(grades: Iterable[Grade | Ungraded], labels: Any = None) -> Items:
    """
    Return what each criterion does in *grades*; no calls.

    Args:
        grades: Results under one rubric. The ungraded ones are left out, and counted.
        labels: `Labels` of people; then each criterion is correlated with them.

    Raises:
        DefinitionError: There is no grade, or the grades are of several rubrics.
    """
    results = [*grades]
    graded = [result for result in results if isinstance(result, Grade)]
    if not graded:
        raise DefinitionError("grades", f"expected at least one grade, got {len(results)} results and none that is one")
    rubric = graded[0].rubric
    for index, result in enumerate(results):
        if result.rubric.digest != rubric.digest:
            message = f"expected grades of one rubric, got one of {result.rubric.digest} after {rubric.digest}"
            raise DefinitionError(f"grades[{index}]", f"{message}; look at each rubric's grades by themselves")
    weights = {criterion.id: criterion.weight for criterion in rubric.judged}
    groups = [grade.group or grade.key or str(index) for index, grade in enumerate(graded)]
    found = tuple(_item(id_, graded, groups, weights) for id_ in weights)
    pairs = [_pair(one, other, graded) for one, other in combinations(weights, 2)]
    contributions: dict[str, dict[str, list[float]]] = {id_: defaultdict(list) for id_ in weights}
    for grade, group in zip(graded, groups, strict=True):
        for id_, value in grade.contributions.items():
            contributions[id_][group].append(value)
    redundant = tuple(pair for pair in pairs if pair is not None and pair.correlation >= _REDUNDANT)
    return Items(found, redundant, len(results), len(results) - len(graded), rubric.digest, contributions)


def _item(id: str, graded: Sequence[Grade], groups: Sequence[str], weights: Mapping[str, float]) -> Item:
    values, own, rest, among = [], [], [], []
    for grade, group in zip(graded, groups, strict=True):
        value = grade.contributions.get(id)
        if value is None:
            continue
        values.append(value)
        among.append(group)
        others = {other: c for other, c in grade.contributions.items() if other != id and weights[other]}
        if others:
            own.append(value)
            rest.append(sum(c * weights[o] for o, c in others.items()) / sum(weights[o] for o in others))
    related = _correlation(own, rest)
    commonest = max(Counter(values).values(), default=0)
    n = len(values)
    return Item(
        id,
        n,
        len(graded) - n,
        fmean(values) if values else None,
        mean_interval(values, among) if values else None,
        pstdev(values) if values else None,
        related,
        None if related is None else _fisher(related, len(own)),
        _flips(id, graded),
        True if n and _upper_bound(n - commonest, n) < RARE else None,
    )


def _pair(one: str, other: str, graded: Sequence[Grade]) -> Pair | None:
    both = [(g.contributions[one], g.contributions[other]) for g in graded if {one, other} <= g.contributions.keys()]
    related = _correlation([a for a, _ in both], [b for _, b in both])
    interval = None if related is None else _fisher(related, len(both))
    return None if related is None or interval is None else Pair((one, other), len(both), related, interval)


def _correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    try:
        return max(-1.0, min(1.0, correlation(one, other)))
    except StatisticsError:  # fewer than two, or one of them is constant
        return None


def _fisher(r: float, n: int) -> Interval | None:
    if n < _FEWEST:
        return None
    if abs(r) >= 1 - 1e-12:  # noqa: PLR2004 - rounding; a perfect correlation has no width by this rule
        return (r, r)
    half = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2) / math.sqrt(max(n - 3, 1))
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def _flips(id: str, graded: Sequence[Grade]) -> float | None:
    """Return the chance that two votes on the same candidate differ."""
    differing = pairs = 0
    for grade in graded:
        votes = [vote.score for vote in getattr(grade[id], "votes", ()) if isinstance(vote, Scored)]
        n = len(votes)
        pairs += n * (n - 1) // 2
        differing += (n * n - sum(count * count for count in Counter(votes).values())) // 2
    return differing / pairs if pairs else None


def _upper_bound(k: int, n: int) -> float:
    """Return the one-sided 95 % bound on a rate of which *k* in *n* were seen (Clopper and Pearson, 1934)."""
    if k >= n:
        return 1.0
    low, high = k / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        at_most = sum(math.comb(n, i) * middle**i * (1 - middle) ** (n - i) for i in range(k + 1))
        low, high = (middle, high) if at_most > 1 - CONFIDENCE else (low, middle)
    return high


def _change(
    id: str, now: Mapping[str, Sequence[float]], old: Mapping[str, Sequence[float]]
) -> tuple[float | None, Interval | None, float]:
    """Return the difference of two means, its interval, and the two-sided p of Welch's test."""
    if len(now) < 2 or len(old) < 2:  # noqa: PLR2004
        return None, None, 1.0
    (mean, variance), (before, variance_before) = (
        jackknife([sum(values) for values in one.values()], [len(values) for values in one.values()])
        for one in (now, old)
    )
    # A sample without spread is not known to have none: one observation more at the pooled mean of both keeps the test
    # from firing on 60 equal answers against 58.
    total = variance + variance_before
    pooled = fmean([value for one in (now, old) for values in one.values() for value in values])
    floor = pooled * (1 - pooled) * (1 / len(now) + 1 / len(old)) if _is_binary(now) and _is_binary(old) else 0.0
    total = max(total, floor)
    if not total:
        return mean - before, (mean - before, mean - before), 1.0 if mean == before else 0.0
    freedom = max(1, min(len(now), len(old)) - 1)
    t, half = abs(mean - before) / math.sqrt(total), t_quantile(freedom) * math.sqrt(total)
    return mean - before, (mean - before - half, mean - before + half), _p_of(t, freedom)


def _is_binary(by_group: Mapping[str, Sequence[float]]) -> bool:
    return all(value in (0, 1) for values in by_group.values() for value in values)


def _p_of(t: float, freedom: int) -> float:
    """Return the chance of a value beyond *t* on either side, by Student's distribution."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if t_quantile(freedom, middle) < t else (low, middle)
    return 1 - (low + high) / 2


def _shown(value: float | None, interval: Interval | None = None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" + (f" ({interval[0]:.2f} to {interval[1]:.2f})" if interval else "")
