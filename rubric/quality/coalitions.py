"""
A rubric as a voting game: every coalition of up to 14 players, and orders drawn at random where there are more.

A player is a criterion, or a leaf below it, at its best or at its worst answer. What the criteria of a level add is
joined by the steps of `rubric.scoring.combination`; the result of a nested rubric is what it adds to the one around it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from math import factorial
from operator import or_
from typing import Literal

from attrs import define, field, frozen

from rubric import Choices, Criterion, DecisionTree, Levels, Rubric
from rubric.embed import share_interval
from rubric.scoring.aggregation import Extreme, Part, Rules
from rubric.values import Leaf

MOST_PLAYERS = 14
"""How many players are counted exactly: some 16,000 coalitions, in a tenth of a second."""

_DRAWN = 4_000
"""How many orders of the players are drawn; the standard error of a share is at most 0.008."""

Move = tuple[Fraction | float, int]
"""What one criterion, or several, add to the state of a level: a sum (or, by `min`, the least), and flags."""

_GATED, _UNHELD, _IMPERFECT = 1, 2, 4


@frozen
class Share:
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

    def end(self, state: Move) -> Extreme:
        value, flags = state
        return self.rules.finish(value, bool(flags & _GATED), bool(flags))


@define
class Child:
    """One criterion of a level, and the players below it."""

    criterion: Criterion
    players: range
    ends: tuple[Move, Move] | None = None  # of a leaf: at its worst and its best
    level: Game | None = None  # of a nested rubric whose leaves are players
    questions: tuple[DecisionTree, ...] = ()  # of a tree whose questions are


@define
class Game:
    """The criteria of a rubric as players; with those of nested rubrics, and the questions of trees, if asked for."""

    steps: Steps
    children: list[Child]
    players: range
    _moves: dict[tuple[str, float | Extreme], Move] = field(factory=dict)

    @classmethod
    def of(cls, rubric: Rubric, *, nested: bool, first: int = 0) -> Game:
        """Return the game of *rubric*, whose players are numbered from *first*."""
        children, number, steps = [], first, Steps(Rules(rubric))
        for criterion in rubric.judged:
            child = Child(criterion, range(number, number + 1))
            if nested and isinstance(criterion.answer, Rubric):
                child.level = cls.of(criterion.answer, nested=True, first=number)
                child.players = child.level.players
            elif nested and isinstance(criterion.answer, DecisionTree):
                child.questions = tuple(criterion.answer.nodes())
                child.players = range(number, number + len(child.questions))
            else:
                worst, best = (_rounded(steps.move(part_at(rubric, criterion, best=end))) for end in (False, True))
                child.ends = worst, best
            children.append(child)
            number = child.players.stop
        return cls(steps, children, range(first, number))

    def passes(self, answers: Sequence[bool]) -> bool:
        """True if the rubric passes where each player is at its best or, where its answer is False, at its worst."""
        return self._result(answers).passed

    def _result(self, answers: Sequence[bool]) -> Extreme:
        moves = [
            self._below(child, answers) if child.ends is None else child.ends[answers[child.players.start]]
            for child in self.children
        ]
        return self.steps.end(self.steps.join(moves))

    def _below(self, child: Child, answers: Sequence[bool]) -> Move:
        """Return what a nested rubric or a tree adds, by the answers to its own players."""
        result = _walk(child, answers) if child.level is None else child.level._result(answers)  # noqa: SLF001
        if (known := self._moves.get((child.criterion.id, result))) is None:
            move = _rounded(self.steps.move(self.steps.rules.part(child.criterion, result)))
            known = self._moves[child.criterion.id, result] = move
        return known

    def has_questions(self) -> bool:
        """True if a question of a tree is a player: then a better answer may make a worse score."""
        return any(child.questions or (child.level and child.level.has_questions()) for child in self.children)


def _rounded(move: Move) -> Move:
    """Return *move* in floats: a sum differs by 1e-15 at most, and no score means something else within 1e-9."""
    return float(move[0]), move[1]


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


def _walk(child: Child, answers: Sequence[bool]) -> float:
    number = dict(zip(map(id, child.questions), child.players, strict=True))
    node: DecisionTree | Leaf = child.questions[0]
    while isinstance(node, DecisionTree):  # the better branch: by the mean of its scores where questions are even
        better, worse = (node.yes, node.no) if _worth(node.yes) >= _worth(node.no) else (node.no, node.yes)
        node = better if answers[number[id(node)]] else worse
    return node.score


def _worth(branch: DecisionTree | Leaf) -> float:
    return branch.score if isinstance(branch, Leaf) else (_worth(branch.yes) + _worth(branch.no)) / 2


def solve(game: Game) -> tuple[list[Share], list[float], Literal["exact", "sampled"]]:
    """Return the share and the flip of each player of *game*, and how they were found."""
    if len(game.players) > MOST_PLAYERS:
        return (*_draw(game), "sampled")
    return (*_count(game), "exact")


def _count(game: Game) -> tuple[list[Share], list[float]]:
    """Return shares and flips by all coalitions; the players of a coalition are the bits of its number."""
    n = len(game.players)
    passing = [game.passes([bool(members >> player & 1) for player in range(n)]) for members in range(1 << n)]
    changes = [[0] * n for _ in range(n)]  # of each player, by the size of the coalition that it joins
    flips = [0] * n
    for members, without in enumerate(passing):
        for player in range(n):
            if not members >> player & 1 and passing[members | 1 << player] != without:
                flips[player] += 1
                changes[player][members.bit_count()] += 1 if not without else -1
    chances = [Fraction(factorial(size) * factorial(n - 1 - size), factorial(n)) for size in range(n)]
    shares = [Share(float(sum(c * count for c, count in zip(chances, counts, strict=True)))) for counts in changes]
    return shares, [flip / 2 ** (n - 1) for flip in flips]


def _draw(game: Game) -> tuple[list[Share], list[float]]:
    """Return shares and flips from orders and coalitions drawn at random, always the same ones."""
    n, chance = len(game.players), random.Random(0)  # noqa: S311 - chance, no secret
    decided, order, base = [0] * n, [*range(n)], game.passes([False] * n)
    has_questions = game.has_questions()
    for _ in range(_DRAWN if has_questions or base != game.passes([True] * n) else 0):
        chance.shuffle(order)
        if has_questions:  # the verdict may change again and again
            answers, before = [False] * n, base
            for player in order:
                answers[player] = True
                after = game.passes(answers)
                decided[player] += after - before
                before = after
            continue
        low, high, answers, good = 0, n, [False] * n, 0  # it changes once: look for the place by halves
        while high - low > 1:
            middle = (low + high) // 2
            for player in order[min(good, middle) : max(good, middle)]:
                answers[player] = good < middle
            good = middle
            low, high = (low, middle) if game.passes(answers) != base else (middle, high)
        decided[order[low]] += 1
    flips, coalitions = [0] * n, _DRAWN // n + 1
    for _ in range(coalitions):
        members = [chance.random() < 0.5 for _ in range(n)]  # noqa: PLR2004 - even chance
        won = game.passes(members)
        for player in range(n):
            members[player] = not members[player]
            flips[player] += game.passes(members) != won
            members[player] = not members[player]
    shares = [Share(count / _DRAWN, share_interval(max(count, 0), _DRAWN)) for count in decided]
    return shares, [flip / coalitions for flip in flips]
