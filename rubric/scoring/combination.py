"""
How contributions become one score: the aggregations of a rubric, each in all of its forms.

Grading, bounds and early stops combine floats at once, by `score`. Influence and reachability go through all that the
criteria could contribute, so they combine by steps: `start`, `join` with any number of `value`s, `finish`. A property
test holds that both agree, for each member of `Aggregation`. A further aggregation is a member of that type and a case
in each method here, which a type checker names. It must be monotone: a better contribution never makes a worse score.

Means are exact until their last rounding, so they do not depend on the order of the criteria.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import compress
from typing import assert_never

from attrs import frozen

from rubric.values.rubrics import Aggregation


@frozen
class Combination:
    """
    One aggregation.

    Args:
        kind: Its name.
        whole: For the steps: the weight of all that earns, which is the score 1.
    """

    kind: Aggregation
    whole: Fraction = Fraction(1)

    @property
    def subtracts(self) -> bool:
        """True if penalties take points off those that others earn; else they are averaged like all others."""
        return self.kind == "points"

    @property
    def is_sum(self) -> bool:
        """True if values are added up; else a single one of them is the score."""
        match self.kind:
            case "weighted_average" | "points":
                return True
            case "min":
                return False
            case never:
                assert_never(never)

    def score(self, values: Sequence[float], weights: Sequence[float], penalties: Sequence[bool]) -> float:
        """Return the score of the contributions *values*, at least one: exact until the last rounding."""
        match self.kind:
            case "weighted_average":
                return mean(values, weights)
            case "min":
                return min(values)
            case "points":
                earning, lost = (
                    [*compress(zip(values, weights, strict=True), side)]
                    for side in (
                        [not is_lost for is_lost in penalties],
                        penalties,
                    )
                )
                return share_of_points(earning, lost) if earning else mean(values, weights)
            case never:
                assert_never(never)

    def start(self) -> Fraction:
        """Return the state before any value is joined, and the value of what does not count."""
        match self.kind:
            case "weighted_average" | "points":
                return Fraction()
            case "min":
                return Fraction(1)
            case never:
                assert_never(never)

    def value(self, contribution: Fraction, weight: Fraction, *, earns: bool) -> Fraction:
        """Return what a *contribution* of *weight* is in a state; *earns*: it is no penalty that subtracts."""
        if not weight:
            return self.start()
        match self.kind:
            case "weighted_average" | "points":
                return weight * contribution if earns else -weight * (1 - contribution)
            case "min":
                return contribution
            case never:
                assert_never(never)

    def join(self, values: Iterable[Fraction | float]) -> Fraction | float:
        """Return the state after all *values*, of which the first is the start."""
        match self.kind:
            case "weighted_average" | "points":
                return sum(values)
            case "min":
                return min(values)
            case never:
                assert_never(never)

    def finish(self, state: Fraction | float) -> Fraction | float:
        """Return the score of a final *state*."""
        return min(max(state / self.whole, 0), 1) if self.is_sum else state


@lru_cache(maxsize=4096)  # rubrics have few weights and scores, and each is asked for again and again
def exact(value: float) -> Fraction:
    """Return the decimal or the simple ratio that *value* was written as: 0.1 is 1/10."""
    near = Fraction(value).limit_denominator(10**9)
    return near if abs(near - Fraction(value)) <= abs(Fraction(value)) / 10**13 else Fraction(value)


# -- means -----------------------------------------------------------------------------------------------

_YES_OR_NO = frozenset({0.0, 1.0})


def mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """
    Return the weighted mean: exact until the last rounding, and the same in any order.

    All is done in whole numbers, since a sum of floats depends on their order, and a candidate would pass or fail by
    the order of its criteria. Two cases are exact without fractions: a lone value, and yes and no with whole weights.
    """
    if len(values) == 1:
        return float(values[0])
    if _YES_OR_NO.issuperset(values) and type(total := sum(weights)) is int:  # a sum is an int if all of it is
        return sum(compress(weights, values)) / total
    ratios = [(v.as_integer_ratio(), w.as_integer_ratio()) for v, w in zip(values, weights, strict=True)]
    part, below_part = _exact_sum([(v * w, below_v * below_w) for (v, below_v), (w, below_w) in ratios])
    whole, below_whole = _exact_sum([weight for _, weight in ratios])
    return (part * below_whole) / (whole * below_part)  # whole numbers of any size divide with one rounding


def _exact_sum(ratios: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the sum of *ratios* whose denominators are powers of two, as those of all floats are; not shortened."""
    common = max(below for _, below in ratios)
    return sum(above * (common // below) for above, below in ratios), common


def share_of_points(earning: Sequence[tuple[float, float]], penalties: Sequence[tuple[float, float]]) -> float:
    """
    Return the points that are met over those that can be met, cut to 0..1: exact until the last rounding.

    Args:
        earning: The contribution and the points of each criterion that earns points.
        penalties: The same of each penalty; a contribution of 1 takes nothing off, one of 0 all its points.
    """
    met = sum((Fraction(c) * Fraction(points) for c, points in earning), Fraction())
    lost = sum((Fraction(1 - c) * Fraction(points) for c, points in penalties), Fraction())
    return float(min(max((met - lost) / sum(Fraction(points) for _, points in earning), Fraction()), Fraction(1)))
