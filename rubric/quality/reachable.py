"""
What a criterion can do at all: whether any answers of the others let it decide, and whether it alone fails a grade.

Answers of the others include graded ones, and that they leave the mean. So this is about sums that can be reached, and
not about chances. What all others come to is known for each criterion from those before it and those after it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import accumulate, islice, pairwise
from math import ceil, lcm
from typing import TypeVar, assert_never

from rubric import Choices, Criterion, DecisionTree, Holds, Levels, Rubric, YesNo
from rubric.embed import TOLERANCE, Check, Decided
from rubric.quality.coalitions import Move, Steps, part_at, scores_of
from rubric.scoring.outcomes import Part, Rules
from rubric.values import Script, Similar, Unsupported, Within
from rubric.values.aggregations import exact

_MOST_VALUES = 4_000
"""How many sums of the others are kept to decide whether a criterion can matter; beyond it, all between two ends."""

_Values = tuple[Sequence[int], int]
"""Sorted values on a grid, and how far above each of them any value is possible too."""

T = TypeVar("T")


def _others(items: Sequence[T], join: Callable[[T, T], T], start: T) -> list[tuple[T, T]]:
    """Return what comes before each item and what comes after it, joined."""
    before = [*accumulate(items, join, initial=start)]
    after = [*accumulate(reversed(items), join, initial=start)][::-1]
    return [*zip(before, after[1:], strict=False)]


def _plus(one: _Values, other: _Values) -> _Values:
    values = _sums(one[0], other[0]) if one[0] and other[0] else one[0]
    if len(values) > _MOST_VALUES:  # all that lies between the ends: more than there is, so nothing possible is denied
        return [values[0]], one[1] + other[1] + values[-1] - values[0]
    return values, one[1] + other[1]


def _sums(many: Sequence[int], few: Sequence[int]) -> Sequence[int]:
    """Return all sums; even ones as a range, which takes no longer for 1,000 criteria of equal weights than for ten."""
    if isinstance(many, range):
        step, reach = many.step, len(many) * many.step
        if all(b - a <= reach and (b - a) % step == 0 for a, b in pairwise(few)):
            return range(many.start + few[0], many.stop + few[-1], step)
    values = sorted({a + b for a in many for b in few})
    even = range(values[0], values[-1] + 1, max(1, values[1] - values[0])) if len(values) > 1 else values
    return even if len(even) == len(values) and [*even] == values else values


class Sums:
    """The sums that the other criteria can have without failing a gate, for each criterion, on a grid."""

    def __init__(self, allowed: Sequence[tuple[Iterable[Fraction], Fraction]]) -> None:
        # Each criterion may add any of some values, and up to a span more.
        self.grid = grid = lcm(*(one.denominator for values, span in allowed for one in (*values, span)))
        whole: list[_Values] = [(sorted({int(v * grid) for v in some}), int(span * grid)) for some, span in allowed]
        self.allowed, self.others = whole, _others(whole, _plus, ([0], 0))

    def above(self, index: int, least: Fraction) -> Fraction | None:
        """Return the smallest sum of the others from *least* on."""
        (before, span), (after, more) = self.others[index]
        wanted, found = ceil(least * self.grid - span - more), None
        reaching = bisect_left(before, wanted - after[-1]) if after else 0
        for one in islice(before, reaching, None):
            at = bisect_left(after, wanted - one)
            if at < len(after) and (found is None or one + after[at] < found):
                found = one + after[at]
            if found == wanted or one + after[0] >= wanted:  # none is nearer
                break
        return None if found is None else max(Fraction(found, self.grid), least)


class Reach:
    """What each criterion of a *rubric* can do: `Reach(rubric).decides(0)`."""

    def __init__(self, rubric: Rubric) -> None:
        self.rubric, self.rules = rubric, Rules(rubric)
        self._criteria = rubric.judged
        self._ends = [tuple(part_at(rubric, one, best=best) for best in (False, True)) for one in self._criteria]
        self._leaves = [one.when is not None or rubric.policy(one) == "exclude" for one in self._criteria]
        self._combination, self._steps = self.rules.combination, Steps(self.rules)
        self._moves = [tuple(map(self._steps.move, ends)) for ends in self._ends]

    def _with_others(self, moves: Sequence[Move]) -> list[list[Move]]:
        found = _others(moves, lambda one, other: self._steps.join((one, other)), self._steps.join(()))
        return [[*pair] for pair in found]

    @cached_property
    def _at_best(self) -> list[list[Move]]:
        """For each criterion, what the others do at their best."""
        return self._with_others([best for _, best in self._moves])

    @cached_property
    def _staying(self) -> list[list[Move]]:
        """The same, without those that may leave the mean."""
        start, each = self._steps.join(()), zip(self._moves, self._leaves, strict=True)
        return self._with_others([start if leaves else best for (_, best), leaves in each])

    def _score(self, moves: Iterable[Move]) -> float:
        """Return the score of *moves*, before any negation."""
        return float(self._combination.finish(self._steps.join(moves)[0], self.rules.whole))

    def vetoes(self, index: int) -> bool:
        """True if the criterion, alone at its worst, changes the verdict of a candidate that is best in all."""
        ends = [self._steps.passes(self._steps.join([*self._at_best[index], move])) for move in self._moves[index]]
        return ends[0] != ends[1]

    # -- whether it decides --------------------------------------------------------------------------------

    @cached_property
    def _above_threshold(self) -> Sums:
        """What the others add, each its weight times what it contributes above the threshold."""
        # So one that leaves the mean adds 0, and the grade passes from a sum of 0.
        return Sums([self._allowance(n) for n in range(len(self._criteria))])

    @cached_property
    def _always_gated(self) -> list[int]:
        return [n for n, (values, _) in enumerate(self._above_threshold.allowed) if not values]

    @cached_property
    def _insufficient(self) -> list[int]:
        """The criteria that stay, and fail a rubric that asks for all of them, even at their best."""
        staying = [n for n, one in enumerate(self._criteria) if one.weight and not self._leaves[n]]
        return [n for n in staying if not self._suffices(self._ends[n][1])]

    def _suffices(self, part: Part) -> bool:
        return part.contribution == 1 if self.rubric.strict else part.holds

    def decides(self, index: int) -> bool:
        """True if some answers of the others let the criterion change the verdict."""
        rubric, (worst, best) = self.rubric, self._ends[index]
        counts = bool(self._criteria[index].weight)
        if best.gated or self._always_gated not in ([], [index]):
            return False
        if rubric.strict or rubric.threshold is None:
            if self._insufficient not in ([], [index]):
                return False
            return (self._suffices(best) or not counts) and (worst.gated or (counts and not self._suffices(worst)))
        match self._combination.state:
            case "least":
                # The score is one of the values, so what is best for the others lets this one decide, if anything does.
                low, high = self._moves[index]
                return any(
                    self.rules.meets(self._score([*others[index], high]))
                    and (worst.gated or not self.rules.meets(self._score([*others[index], low])))
                    for others in (self._staying, self._at_best)
                )
            case "sum":
                pass
            case never:
                assert_never(never)
        slack = Fraction(TOLERANCE) * self.rules.whole
        low_sum, high_sum = (self._above(part.rule.criterion, part.contribution) for part in (worst, best))
        least = self._above_threshold.above(index, -slack - high_sum)
        return least is not None and (worst.gated or least + low_sum < -slack)

    def _above(self, criterion: Criterion, contribution: float) -> Fraction:
        """Return what a *contribution* adds above the threshold."""
        weight, earns = exact(criterion.weight), self.rules.earns(criterion)
        earned = weight * exact(self.rubric.threshold or 0) if earns else 0
        return self._combination.value(exact(contribution), weight, earns=earns) - earned

    def _allowance(self, index: int) -> tuple[Iterable[Fraction], Fraction]:
        """Return what the criterion can add without failing its gate, and how far above it any value is possible."""
        criterion, (worst, best) = self._criteria[index], self._ends[index]
        may_leave, value = self._leaves[index], partial(self._above, criterion)
        if _is_continuous(criterion):
            low = worst.contribution
            if worst.gated and not best.gated and not isinstance(criterion.answer, Rubric):
                low = worst.rule.gate or low
            values = set() if best.gated else {value(low)}
            span = value(best.contribution) - value(low) if values else Fraction()
            return values | ({Fraction()} if may_leave else set()), max(span, Fraction())
        parts = [self.rules.part(criterion, score) for score in scores_of(criterion)]
        values = {value(part.contribution) for part in parts if not part.gated}
        if may_leave:
            values.add(Fraction())
        elif isinstance(credit := self.rubric.policy(criterion), int | float):
            values.add(value(float(credit)))
        return values, Fraction()


def _is_continuous(criterion: Criterion) -> bool:
    """True if its score may be any number between two ends."""
    if isinstance(criterion.answer, Check):
        return isinstance(criterion.answer, Holds | Script | Unsupported | Decided | Within | Similar)
    return not isinstance(criterion.answer, YesNo | Levels | Choices | DecisionTree)
