"""
The aggregations: how the contributions of a rubric's criteria become one score. Each is a row of `COMBINATIONS`.

Grading, bounds and early stops combine floats at once, by `score`. Influence and reachability go through all that the
criteria could contribute, so they combine by steps: `start`, `join` with any number of `value`s, `finish`. A property
test holds that both agree, for each row. A further aggregation is a name in `rubrics.Aggregation`, a class, its row, a
name in `formats/rubric.schema.json`; if its state is neither a sum nor the least value, a type checker names the place
in `quality.reachable` that has to know it. It must be monotone: a better contribution never makes a worse score.

Means are exact until their last rounding, so they do not depend on the order of the criteria.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, ClassVar, Final, Literal

if TYPE_CHECKING:
    from rubric.values.rubrics import Aggregation


class Combination:
    """An aggregation; this one is the mean of the contributions, by weight."""

    state: ClassVar[Literal["sum", "least"]] = "sum"
    """What is joined: the values are added up, or the least of them is the score."""

    subtracts: ClassVar[bool] = False
    """True if penalties take points off those that others earn; else they are averaged like all others."""

    def score(self, values: Sequence[float], weights: Sequence[float], penalties: Sequence[bool]) -> float:  # noqa: ARG002
        """Return the score of the contributions *values*, at least one: exact until the last rounding."""
        return mean(values, weights)

    def start(self) -> Fraction:
        """Return the state before any value is joined, and the value of what does not count."""
        return Fraction()

    def value(self, contribution: Fraction, weight: Fraction, *, earns: bool) -> Fraction:
        """Return what a *contribution* of *weight* is in a state; *earns*: it is not a penalty that subtracts."""
        return weight * contribution if earns else -weight * (1 - contribution)

    def join(self, values: Iterable[Fraction | float]) -> Fraction | float:
        """Return the state after all *values*, of which the first is the start."""
        return sum(values)

    def finish(self, state: Fraction | float, whole: Fraction) -> Fraction | float:
        """Return the score of a final *state*; *whole* is the weight of all that earns, which is the score 1."""
        return min(max(state / whole, 0), 1)


class Points(Combination):
    """The points of what is met, less those of the penalties that are found, over all that can be met; in 0..1."""

    subtracts = True

    def score(self, values: Sequence[float], weights: Sequence[float], penalties: Sequence[bool]) -> float:
        pairs = [*zip(values, weights, strict=True)]
        earning = [*compress(pairs, [not is_lost for is_lost in penalties])]
        return share_of_points(earning, [*compress(pairs, penalties)]) if earning else mean(values, weights)


class Worst(Combination):
    """The worst contribution."""

    state = "least"

    def score(self, values: Sequence[float], weights: Sequence[float], penalties: Sequence[bool]) -> float:  # noqa: ARG002
        return min(values)

    def start(self) -> Fraction:
        return Fraction(1)

    def value(self, contribution: Fraction, weight: Fraction, *, earns: bool) -> Fraction:  # noqa: ARG002
        return contribution if weight else self.start()

    def join(self, values: Iterable[Fraction | float]) -> Fraction | float:
        return min(values)

    def finish(self, state: Fraction | float, whole: Fraction) -> Fraction | float:  # noqa: ARG002
        return state


COMBINATIONS: Final[Mapping[Aggregation, Combination]] = {
    "weighted_average": Combination(),
    "min": Worst(),
    "points": Points(),
}


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
    """Return the points met, less those of *penalties*, over all that can be met, in 0..1: exact until rounded."""
    met = sum((Fraction(c) * Fraction(points) for c, points in earning), Fraction())
    lost = sum((Fraction(1 - c) * Fraction(points) for c, points in penalties), Fraction())
    return float(min(max((met - lost) / sum(Fraction(points) for _, points in earning), Fraction()), Fraction(1)))
