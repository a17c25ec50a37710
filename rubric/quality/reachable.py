"""
What a criterion can do at all: whether any answers of the others let it decide, and how far it moves the score.

Answers of the others include graded ones, and that they leave the mean. So this is about sums that can be reached, and
not about chances.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction

from attrs import evolve, frozen

from rubric import Choices, Criterion, DecisionTree, Holds, Levels, Rubric, YesNo
from rubric.embed import TOLERANCE, Check, Decided
from rubric.quality.coalitions import part_at, scores_of
from rubric.scoring.aggregation import Part, Rules
from rubric.scoring.combination import exact
from rubric.values import Script, Similar, Unsupported, Within

_MOST_VALUES = 4_000
"""How many sums of the others are kept to decide whether a criterion can matter; beyond it, all between two ends."""


def vetoes(rubric: Rubric, index: int) -> bool:
    """True if the criterion at *index* alone, at its worst, changes the verdict of a candidate that is best in all."""
    parts = [part_at(rubric, criterion, best=True) for criterion in rubric.judged]
    rules = Rules(rubric)
    best = rules.result(parts).passed
    parts[index] = part_at(rubric, rubric.judged[index], best=False)
    return rules.result(parts).passed != best


def _leaves(rubric: Rubric, criterion: Criterion) -> bool:
    """True if *criterion* may leave the mean: its condition may not hold, or its judge may abstain."""
    return criterion.when is not None or rubric.policy(criterion) == "exclude"


@frozen
class Reach:
    """
    The sums that the other criteria can have without failing a gate: each of *before* with each of *after*.

    To each sum anything up to *span* may be added, where scores are continuous.
    """

    before: Sequence[Fraction]
    after: Sequence[Fraction]
    span: Fraction
    gated: bool  # whether some criterion of them always fails its gate

    @classmethod
    def of_others(cls, rubric: Rubric, *, from_threshold: bool = True) -> list[Reach]:
        """
        Return the sums of the others, for each criterion of *rubric*.

        With *from_threshold* a criterion adds its weight times what it contributes above the threshold. So one that
        leaves the mean adds 0, and the grade passes from a sum of 0.
        """
        threshold = exact(rubric.threshold or 0) if from_threshold else Fraction()
        allowed = [_allowed(rubric, criterion, threshold, may_leave=from_threshold) for criterion in rubric.judged]
        befores, afters = [_ZERO], [_ZERO]
        for one in allowed:
            befores.append(_plus(befores[-1], one))
        for one in reversed(allowed):
            afters.append(_plus(afters[-1], one))
        afters.reverse()
        reaches = []
        for index in range(len(allowed)):
            (before, span), (after, more) = befores[index], afters[index + 1]
            gated = any(not values for at, (values, _) in enumerate(allowed) if at != index)
            reaches.append(cls(before, after, span + more, gated))
        return reaches

    def above(self, least: Fraction) -> Fraction | None:
        """Return the smallest sum from *least* on."""
        found = []
        for one in self.before:
            at = bisect_left(self.after, least - self.span - one)
            if at < len(self.after):
                found.append(max(one + self.after[at], least))
        return min(found, default=None)


_Values = tuple[list[Fraction], Fraction]
"""Sorted values, and how far above each of them any value is possible too."""

_ZERO: _Values = ([Fraction()], Fraction())


def _plus(one: _Values, other: _Values) -> _Values:
    values = sorted({a + b for a in one[0] for b in other[0]}) if other[0] else one[0]
    if len(values) > _MOST_VALUES:  # all that lies between the ends: more than there is, so nothing possible is denied
        return [values[0]], one[1] + other[1] + values[-1] - values[0]
    return values, one[1] + other[1]


def _allowed(rubric: Rubric, criterion: Criterion, threshold: Fraction, *, may_leave: bool) -> _Values:
    """Return what *criterion* can add without failing its gate."""
    weight, adds = exact(criterion.weight), Rules(rubric).earns(criterion)
    worst, best = (part_at(rubric, criterion, best=end) for end in (False, True))

    def value(contribution: float) -> Fraction:
        return weight * (exact(contribution) - threshold) if adds else -weight * (1 - exact(contribution))

    continuous = not isinstance(criterion.answer, YesNo | Levels | Choices | DecisionTree)
    if isinstance(criterion.answer, Check):
        continuous = isinstance(criterion.answer, Holds | Script | Unsupported | Decided | Within | Similar)
    if continuous:
        low = worst.contribution
        if worst.gated and not best.gated and not isinstance(criterion.answer, Rubric):
            low = worst.rule.gate or low
        values = [] if best.gated else [value(low)]
        span = value(best.contribution) - value(low) if values else Fraction()
        if may_leave and _leaves(rubric, criterion):
            values.append(Fraction())
        return sorted(set(values)), max(span, Fraction())
    parts = [Rules(rubric).part(criterion, score) for score in scores_of(criterion)]
    found = {value(part.contribution) for part in parts if not part.gated}
    if may_leave and _leaves(rubric, criterion):
        found.add(Fraction())
    elif isinstance(credit := rubric.policy(criterion), int | float):
        found.add(value(float(credit)))
    return sorted(found), Fraction()


def decides(rubric: Rubric, index: int, others: Reach) -> bool:
    """True unless no answers of the others let the criterion at *index* change the verdict."""
    criterion = rubric.judged[index]
    worst, best = (part_at(rubric, criterion, best=end) for end in (False, True))
    if others.gated or best.gated:
        return False
    rest = [one for at, one in enumerate(rubric.judged) if at != index and one.weight]
    staying = [one for one in rest if not _leaves(rubric, one)]
    tops = [part_at(rubric, one, best=True) for one in staying]
    counts = bool(criterion.weight)
    if rubric.strict or rubric.threshold is None:

        def suffices(part: Part) -> bool:
            return part.contribution == 1 if rubric.strict else part.holds

        if not all(suffices(part) for part in tops):
            return False
        return (suffices(best) or not counts) and (worst.gated or (counts and not suffices(worst)))
    if not Rules(rubric).combination.is_sum:
        # The score is one of the values, so what is best for the others lets this one decide, if anything does.
        return any(
            _meets(rubric, [*others, best]) and (worst.gated or not _meets(rubric, [*others, worst]))
            for others in (tops, [part_at(rubric, one, best=True) for one in rest])
        )
    slack = Fraction(TOLERANCE) * Rules(rubric).combination.whole
    low, high = (_above_threshold(rubric, part) for part in (worst, best))
    least = others.above(-slack - high)
    return least is not None and (worst.gated or least + low < -slack)


def _combined(rubric: Rubric, parts: Sequence[Part]) -> float:
    counted = [part for part in parts if part.rule.weight]
    return Rules(evolve(rubric, negate=False)).result(counted).score if counted else 1.0


def _meets(rubric: Rubric, parts: Sequence[Part]) -> bool:
    return Rules(rubric).meets(_combined(rubric, parts))


def _above_threshold(rubric: Rubric, part: Part) -> Fraction:
    value = Rules(rubric).value(part)
    if Rules(rubric).earns(part.rule.criterion):
        value -= exact(part.rule.criterion.weight) * exact(rubric.threshold or 0)
    return value


def pull(rubric: Rubric, index: int) -> tuple[float, float]:
    """Return the least and the greatest change of the score between the worst and the best answer at *index*."""
    criterion = rubric.judged[index]
    if not criterion.weight:
        return 0.0, 0.0
    at_worst, at_best = (part_at(rubric, criterion, best=end) for end in (False, True))
    worst, best = at_worst.contribution, at_best.contribution
    others = [one for at, one in enumerate(rubric.judged) if at != index and one.weight]
    combination = Rules(rubric).combination
    if not combination.is_sum:
        rests = [
            [part_at(rubric, one, best=False) for one in others],
            [part_at(rubric, one, best=True) for one in others if not _leaves(rubric, one)],
        ]
        changes = [_combined(rubric, [*rest, at_best]) - _combined(rubric, [*rest, at_worst]) for rest in rests]
        return min(changes), max(changes)
    change = exact(criterion.weight) * (exact(best) - exact(worst))
    if all(Rules(rubric).earns(one) for one in rubric.judged):
        staying = sum((exact(one.weight) for one in others if not _leaves(rubric, one)), exact(criterion.weight))
        return float(change / combination.whole), float(change / staying)
    whole = combination.whole
    low = Rules(rubric).value(part_at(rubric, criterion, best=False))
    reach = Reach.of_others(rubric, from_threshold=False)[index]

    def at(others: Fraction) -> Fraction:
        cut = [min(max((others + end) / whole, Fraction()), Fraction(1)) for end in (low, low + change)]
        return cut[1] - cut[0]

    bottom, top = (edge(reach.before) + edge(reach.after) for edge in (min, max))
    inside = [found for found in (reach.above(-low), reach.above(whole - low - change)) if found is not None]
    points = [bottom, top + reach.span, *inside]
    return float(min(map(at, points))), float(max(map(at, points)))
