"""
What each criterion does in grades: how much it varies, whether it goes with the others, how often it flips.

All of it is read from grades; no model is called. Sources: item analysis of tests (R. L. Ebel and D. A. Frisbie,
"Essentials of Educational Measurement", 1991); the bound on a rate by C. J. Clopper and E. S. Pearson, 1934.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from os import PathLike
from typing import Any

import numpy as np
from attrs import field, frozen
from scipy import stats

from rubric import DefinitionError, Grade, Grades, Ungraded
from rubric.embed import Listed, NoTruth, Presented, Statistic, Table, fields, guided
from rubric.trust import coefficients as co
from rubric.trust.annotators import votes_of
from rubric.trust.assumptions import of_labels, sentences
from rubric.trust.coefficients import share
from rubric.trust.drift import Baseline, Drift, drift
from rubric.trust.inference import Codes, Floats, compact
from rubric.trust.labels import Labels, as_labels
from rubric.trust.ratings import Judged, as_judged, match_labels

RARE = 0.05
"""A criterion is dead where its rarer answers are rarer than this: they set apart fewer than one in twenty."""

_REDUNDANT, _SURE = 0.9, 0.95


@frozen
class Item(NoTruth):
    """
    One criterion in the grades.

    Args:
        id: The criterion's id.
        n: In how many grades it has a score.
        missing: In how many it has none: not applicable, abstained or unjudged.
        mean: The mean of its contributions, in 0..1, by group where candidates have groups.
        spread: The standard deviation of its contributions; None without any.
        discrimination: Its correlation with the weighted mean of the other criteria.
        flips: How often two votes of a jury on one candidate differ on it; None without votes.
        dead: True if it is shown to tell (nearly) no candidates apart: the 95 % bound on the share of its rarer answers
            is below 5 %, which takes 59 equal answers or more. None where that is not shown.
        validity: Its correlation with what people say of the whole, where labels are given; else None.
    """

    _truth = ".dead"

    id: str
    n: int
    missing: int
    mean: Statistic
    spread: float | None
    discrimination: Statistic
    flips: Statistic | None
    dead: bool | None
    validity: Statistic | None = None


@frozen
class Pair(NoTruth):
    """Two criteria that correlate at 0.9 or more: their *ids*, *n* grades, the *correlation* with its interval."""

    _truth = ".correlation"

    ids: tuple[str, str]
    n: int
    correlation: Statistic


@frozen(repr=False)
class Items(Presented, Listed[Item]):
    """
    The criteria in some grades, in the order of the rubric.

    Args:
        items: One for each criterion; by id, `items(grades)["clarity"]`.
        redundant: Pairs of criteria that (nearly) always say the same.
        grades: How many results were looked at.
        ungraded: How many of them have no verdict, and are left out.
        digest: The rubric's.
        baseline: What later items are compared with.
        notes: What is not as figures with labels assume.
    """

    _items = "items"
    _truth = "its figures"

    items: tuple[Item, ...]
    redundant: tuple[Pair, ...]
    grades: int
    ungraded: int
    digest: str
    baseline: Baseline = field(eq=False)
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        dead = [repr(item.id) for item in self if item.dead]
        told = [f"{', '.join(dead)} {'tells' if len(dead) == 1 else 'tell'} no candidates apart"] if dead else []
        told += [f"{a!r} and {b!r} say the same" for a, b in (pair.ids for pair in self.redundant)]
        left = f" ({self.ungraded:,} ungraded left out)" if self.ungraded else ""
        what = "; ".join(told) or "No criterion is shown to be dead, and no two to say the same"
        return f"{what}, in {self.grades - self.ungraded:,} grades{left}."

    def remarks(self) -> list[str]:
        """The pairs of criteria that say the same, with their figures, and what is not as assumed."""
        named = ((pair, " and ".join(map(repr, pair.ids))) for pair in self.redundant)
        said = [f"{ids}: correlation {pair.correlation} in {pair.n:,} grades" for pair, ids in named]
        return [*said, *sentences(self.notes)]

    def tables(self) -> list[Table]:
        """Each criterion in a row; columns without a figure are left out."""
        columns: dict[str, list[object]] = {
            "criterion": [item.id for item in self],
            "n": [f"{item.n:,}" for item in self],
            "mean": [_text(item.mean) for item in self],
            "spread": ["–" if item.spread is None else item.spread for item in self],
            "with the rest": [_text(item.discrimination) for item in self],
            "with people": [_text(item.validity) for item in self],
            "votes differ": [_text(item.flips) for item in self],
            "tells apart": ["shown not to" if item.dead else "perhaps" for item in self],
        }
        kept = {name: said for name, said in columns.items() if name in ("criterion", "n") or {*said} != {"–"}}
        return [("", tuple(kept), [*zip(*kept.values(), strict=True)])]

    def against(self, old: Items, *, risk: float = 0.05) -> Drift:
        """
        Say which criteria differ from those of *old* grades, by more than chance explains.

        Candidates that are in both are compared with themselves; a group counts as one. Holm's correction keeps the
        chance of any false alarm at *risk*.

        Raises:
            DefinitionError: *old* is not items, or of another rubric.
        """
        if not isinstance(old, Items):
            raise fields.refuse("old", old, "what items(grades) returned")
        if self.digest != old.digest:
            message = f"expected items of grades of the same rubric ({self.digest}), got {old.digest}"
            raise DefinitionError("old", f"{message}; `agreement(...).against` compares different rubrics with people")
        return drift(self.baseline, old.baseline, risk)


@guided
def items(
    grades: Grades | Sequence[Grade | Ungraded], labels: Labels | Mapping[Any, Any] | str | PathLike[str] | None = None
) -> Items:
    """
    Return what each criterion does in *grades*; no calls.

    Args:
        grades: Results under one rubric. The ungraded ones are left out, and counted.
        labels: What people say of the whole; then `validity` is how each criterion goes with it.

    Raises:
        DefinitionError: There is no grade, the grades are of several rubrics, or labels are of criteria alone.
    """
    results = [*grades] if not isinstance(grades, str | PathLike | Grade | Ungraded) else []
    graded = [result for result in results if isinstance(result, Grade)]
    if not graded:
        allowed = "results of which one is graded, such as what grade_many(...).collect() returns"
        raise fields.refuse("grades", grades, allowed)
    rubric = graded[0].rubric
    for index, result in enumerate(results):
        if result.rubric.digest != rubric.digest:
            message = f"expected grades of one rubric, got one of {result.rubric.digest} after {rubric.digest}"
            raise DefinitionError(f"grades[{index}]", f"{message}; look at each rubric's grades by themselves")
    given = as_judged(graded)
    groups = given.groups if given.grouped else None
    ids = rubric.ids
    said = {id_: np.array([grade.contributions.get(id_, np.nan) for grade in graded], dtype=float) for id_ in ids}
    weights = np.array([criterion.weight for criterion in rubric.judged], dtype=float)
    whole, notes = (None, []) if labels is None else _whole(given, as_labels(labels))
    found = []
    for at, id_ in enumerate(ids):
        mine = said[id_]
        rest = _mean_of([said[other] for other in ids if other != id_], np.delete(weights, at))
        values = mine[~np.isnan(mine)]
        flips = votes_of(id_, given.columns[id_][0], given.votes[id_], given).flip_rate if given.votes else None
        mean, spread = _mean("mean", mine, groups), float(values.std()) if len(values) else None
        discrimination = _correlation("discrimination", mine, rest, groups)
        validity = None if whole is None else _correlation("validity", mine, whole, groups)
        counts, dead = (len(values), len(graded) - len(values)), True if _is_dead(values) else None
        found.append(Item(id_, *counts, mean, spread, discrimination, flips, dead, validity))
    pairs = [_pair(one, other, said, groups) for one, other in combinations(ids, 2)]
    redundant = tuple(p for p in pairs if p.correlation.interval and (p.correlation.value or 0) >= _REDUNDANT)
    baseline = Baseline(given.name, rubric.digest, {id_: _by_unit(graded, said[id_]) for id_ in ids})
    left = len(results) - len(graded)
    return Items(tuple(found), redundant, len(results), left, rubric.digest, baseline, tuple(notes))


def _whole(given: Judged, labels: Labels) -> tuple[Floats, list[str]]:
    for ratings in match_labels(given, labels):
        if not ratings.criterion:
            return ratings.target, of_labels(given, labels, [ratings], cure="label one")
    message = "expected labels of the whole, got some of criteria alone; agreement(grades, labels) compares those"
    raise DefinitionError("labels", message)


def _mean_of(columns: Sequence[Floats], weights: Floats) -> Floats:
    """Return the weighted mean of *columns* in each row, over those that have a value; NaN where none has."""
    if not columns:
        return np.full(1, np.nan)
    table = np.stack(columns, axis=1)
    means = np.ma.average(np.ma.masked_invalid(table), axis=1, weights=weights)
    return np.asarray(np.ma.filled(means, np.nan))


def _mean(name: str, values: Floats, groups: Codes | None) -> Statistic:
    there = ~np.isnan(values)
    if not there.any():
        return Statistic(name, None, reason="no grade has a score of it")
    return share(name, values[there], None if groups is None else compact(groups[there]))


def _correlation(name: str, one: Floats, other: Floats, groups: Codes | None) -> Statistic:
    if len(other) != len(one):
        return Statistic(name, None, reason="there is no other criterion")
    there = ~np.isnan(one) & ~np.isnan(other)
    if not there.any():
        return Statistic(name, None, reason="no grade has both")
    among = None if groups is None else compact(groups[there])
    return co.correlation(name, one[there], other[there], among)


def _pair(one: str, other: str, said: Mapping[str, Floats], groups: Codes | None) -> Pair:
    n = int((~np.isnan(said[one]) & ~np.isnan(said[other])).sum())
    return Pair((one, other), n, _correlation("correlation", said[one], said[other], groups))


def _is_dead(values: Floats) -> bool:
    """True if the 95 % bound on the share of answers other than the commonest is below 5 %."""
    n = len(values)
    rarer = n - int(np.unique(values, return_counts=True)[1].max(initial=0))
    return rarer < n and float(stats.beta.ppf(_SURE, rarer + 1, n - rarer)) < RARE


def _by_unit(graded: Sequence[Grade], values: Floats) -> dict[str, list[float | None]]:
    """Return the mean of each group, by its name: what belongs together counts as one."""
    units: dict[str, list[float]] = {}
    for at, (grade, value) in enumerate(zip(graded, values, strict=True)):
        if not np.isnan(value):
            cluster = grade.cluster
            units.setdefault(str(at if cluster is None else cluster), []).append(float(value))
    return {name: [float(np.mean(some)), None] for name, some in units.items()}


def _text(statistic: Statistic | None) -> str:
    if statistic is None or statistic.value is None:
        return "–"
    low, high = statistic.interval or (None, None)
    return f"{statistic.value:.2f}" + ("" if low is None else f" ({low:.2f} to {high:.2f})")
