"""
A rubric as a voting game: every coalition of up to 14 criteria, and orders drawn at random where there are more.

A player is a criterion at its best or at its worst answer. What the criteria add is joined by the steps of
`rubric.values.aggregations`, in floats: a sum differs by 1e-15 at most, and no score means something else within 1e-9.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from functools import reduce
from math import factorial
from operator import or_

from attrs import frozen

from rubric import Choices, Criterion, DecisionTree, Levels, Rubric
from rubric.embed import share_interval
from rubric.scoring.outcomes import Part, Rules

MOST_PLAYERS = 14
"""How many criteria are counted exactly: some 16,000 coalitions, in a tenth of a second."""

_DRAWN = 4_000
"""How many orders of the criteria are drawn; the standard error of a share is at most 0.008."""

Move = tuple[Fraction | float, int]
"""What one criterion, or several, add to the state of a rubric: a sum (or, by `min`, the least), and flags."""

_GATED, _UNHELD, _IMPERFECT = 1, 2, 4


@frozen
class Share:
    """How often a criterion decides, with the *interval* of an estimate."""

    value: float
    interval: tuple[float, float] | None = None


@frozen
class Steps:
    """How the moves of the criteria of a rubric become its result."""

    rules: Rules

    def move(self, part: Part) -> Move:
        """Return what *part* adds, exactly."""
        rubric, flags = self.rules.rubric, _GATED if part.gated else 0
        if part.rule.criterion.weight and rubric.strict:
            flags |= _IMPERFECT if part.contribution != 1 else 0
        elif part.rule.criterion.weight and rubric.threshold is None:
            flags |= 0 if part.holds else _UNHELD
        return self.rules.value(part), flags

    def join(self, moves: Iterable[Move]) -> Move:
        values, flags = zip((self.rules.combination.start(), 0), *moves, strict=True)
        return self.rules.combination.join(values), reduce(or_, set(flags))

    def passes(self, state: Move) -> bool:
        value, flags = state
        return bool(self.rules.finish(value, bool(flags & _GATED), bool(flags)).passed)


def part_at(rubric: Rubric, criterion: Criterion, *, best: bool) -> Part:
    """Return *criterion* at the best or the worst answer that a judge, code or its own rubric can give."""
    good = best != criterion.is_unwanted
    if isinstance(inner := criterion.answer, Rubric):
        parts = [part_at(inner, one, best=good != inner.negate) for one in inner.judged]
        return Rules(rubric).part(criterion, Rules(inner).result(parts))
    scores = scores_of(criterion)
    return Rules(rubric).part(criterion, max(scores) if good else min(scores))


def scores_of(criterion: Criterion) -> tuple[float, ...]:
    """Return the scores that *criterion* can have, before polarity; of a continuous one the two ends."""
    match criterion.answer:
        case Choices(choices=choices):
            return tuple(choice.score for choice in choices)
        case Levels() as levels:
            return (*map(levels.place, range(levels.low, min(levels.high, levels.low + 100))), 1.0)
        case DecisionTree() as tree:
            return tuple(leaf.score for leaf in tree.leaves())
        case _:
            return 0.0, 1.0


def shares_of(rubric: Rubric) -> list[Share]:
    """Return how often each criterion of *rubric* decides: exactly, or with an interval where there are many."""
    steps = Steps(Rules(rubric))
    ends = []
    for criterion in rubric.judged:
        worst, best = (steps.move(part_at(rubric, criterion, best=end)) for end in (False, True))
        ends.append(((float(worst[0]), worst[1]), (float(best[0]), best[1])))
    return _count_all(steps, ends) if len(ends) <= MOST_PLAYERS else _sample(steps, ends)


def _count_all(steps: Steps, ends: Sequence[tuple[Move, Move]]) -> list[Share]:
    """Count all coalitions; the criteria that are at their best are the bits of a coalition's number."""
    n, states = len(ends), [steps.join(())]
    for moves in ends:
        states = [steps.join((state, move)) for move in moves for state in states]
    results = {state: steps.passes(state) for state in {*states}}
    passing = [results[state] for state in states]
    changes = [[0] * n for _ in range(n)]  # of each criterion, by the size of the coalition that it joins
    for members, without in enumerate(passing):
        for player in range(n):
            if not members >> player & 1 and passing[members | 1 << player] != without:
                changes[player][members.bit_count()] += 1
    chances = [Fraction(factorial(size) * factorial(n - 1 - size), factorial(n)) for size in range(n)]
    sign = 1 if passing[-1] >= passing[0] else -1
    return [Share(sign * float(sum(c * k for c, k in zip(chances, counts, strict=True)))) for counts in changes]


def _sample(steps: Steps, ends: Sequence[tuple[Move, Move]]) -> list[Share]:
    """Draw orders at random, always the same ones; along an order the verdict changes once at most."""

    def passes(at_best: Collection[int]) -> bool:
        return steps.passes(steps.join([end[player in at_best] for player, end in enumerate(ends)]))

    n, chance = len(ends), random.Random(0)  # noqa: S311 - chance, no secret
    decided, order, base = [0] * n, [*range(n)], passes(())
    for _ in range(_DRAWN if passes(range(n)) != base else 0):
        chance.shuffle(order)
        place = bisect_left(range(n), x=True, key=lambda last: passes({*order[: last + 1]}) != base)
        decided[order[place]] += 1
    return [Share(count / _DRAWN, share_interval(count, _DRAWN)) for count in decided]
