"""
A rubric as a voting game, and its coalitions counted by size: exact, as long as there are not too many sums.

For each sum of weights that the earlier criteria reach, the coalitions that reach it are counted by their size; so are
those of the later criteria that then pass (prefixes times suffixes). The counts by size are the digits of one large
whole number, so adding and multiplying them is exact and quick. A nested rubric is counted like the whole, and its
results are what it adds to it. Where weights have no common grid there are too many sums; then orders of the players
are drawn, and the shares have an interval.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import reduce
from math import factorial, lcm
from typing import Any, Literal

from attrs import define, frozen

from rubric import Choices, Criterion, DecisionTree, Leaf, Levels, Rubric
from rubric.embed import share_interval
from rubric.scoring.aggregation import Part, Rules

_MOST_STATES = 20_000
"""How many sums and flags are kept at a criterion; beyond it, orders are drawn."""

_MOST_WORK = 4_000_000_000
"""How large the exact count may be: states times the bits of a count; about two seconds."""

_DRAWN = 4_000
"""How many orders of the players are drawn; the standard error of a share is at most 0.008."""


@frozen
class Share:
    value: float
    interval: tuple[float, float] | None = None


_Answers = Callable[[int], bool]
"""Whether the player with a number is at its best."""

_Move = tuple[int, int]
"""A sum (or, by `min`, the least contribution) on the grid of its level; and flags."""

_Joined = Callable[[int, int], int]
"""Returns the sum, or the least, of two states of a level."""

_GATED, _UNHELD, _IMPERFECT = 1, 2, 4


@define
class Child:
    """One criterion of a level, and the players below it."""

    criterion: Criterion
    players: range
    worst: Part | None = None  # of a leaf
    best: Part | None = None
    level: Game | None = None  # of a nested rubric whose leaves are players
    questions: tuple[DecisionTree, ...] = ()  # of a tree whose questions are


@define
class Game:
    """The criteria of a rubric as players; with those of nested rubrics, and the questions of trees, if asked for."""

    rubric: Rubric
    children: list[Child]
    players: range

    @classmethod
    def of(cls, rubric: Rubric, *, nested: bool, first: int = 0) -> Game:
        """Return the game of *rubric*, whose players are numbered from *first*."""
        children, number = [], first
        for criterion in rubric.judged:
            child = Child(criterion, range(number, number + 1))
            if nested and isinstance(criterion.answer, Rubric):
                child.level = cls.of(criterion.answer, nested=True, first=number)
                child.players = child.level.players
            elif nested and isinstance(criterion.answer, DecisionTree):
                child.questions = tuple(criterion.answer.nodes())
                child.players = range(number, number + len(child.questions))
            else:
                child.worst, child.best = (part_at(rubric, criterion, best=best) for best in (False, True))
            children.append(child)
            number = child.players.stop
        return cls(rubric, children, range(first, number))

    def passes(self, answers: _Answers) -> bool:
        """True if the rubric passes where each player is at its best or its worst, by the rules of grading."""
        return Rules(self.rubric).result(self._parts(answers)).passed

    def _parts(self, answers: _Answers) -> list[Part]:
        parts, rules = list[Part](), Rules(self.rubric)
        for child in self.children:
            if child.level is not None:
                inner = Rules(child.level.rubric).result(child.level._parts(answers))  # noqa: SLF001 - of the same class
                parts.append(rules.part(child.criterion, inner))
            elif child.questions:
                parts.append(rules.part(child.criterion, _walk(child, answers)))
            elif child.best is not None and child.worst is not None:
                parts.append(child.best if answers(child.players.start) else child.worst)
        return parts

    def has_questions(self) -> bool:
        """True if a question of a tree is a player: then a better answer may make a worse score."""
        return any(child.questions or (child.level and child.level.has_questions()) for child in self.children)


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


def _walk(child: Child, answers: _Answers) -> float:
    number = dict(zip(map(id, child.questions), child.players, strict=True))
    node: DecisionTree | Leaf = child.questions[0]
    while isinstance(node, DecisionTree):
        better, worse = _branches(node)
        node = better if answers(number[id(node)]) else worse
    return node.score


def _branches(node: DecisionTree) -> tuple[DecisionTree | Leaf, DecisionTree | Leaf]:
    """Return the better branch and the worse one: by the mean of their scores where questions are even; else yes."""
    return (node.yes, node.no) if _worth(node.yes) >= _worth(node.no) else (node.no, node.yes)


def _worth(branch: DecisionTree | Leaf) -> float:
    return branch.score if isinstance(branch, Leaf) else (_worth(branch.yes) + _worth(branch.no)) / 2


def solve(game: Game) -> tuple[list[Share], list[float], Literal["exact", "sampled"]]:
    """Return the share and the flip of each player of *game*, and how they were found."""
    n = len(game.players)
    try:
        pivots = _Counting(n).pivots(game)
    except _TooManyError:
        return (*_draw(game), "sampled")
    chances = [Fraction(factorial(size) * factorial(n - 1 - size), factorial(n)) for size in range(n)]
    shares = [Share(float(sum(map(Fraction.__mul__, chances, map(Fraction, counts))))) for counts in pivots]
    return shares, [abs(float(Fraction(sum(map(abs, counts)), 2 ** (n - 1)))) for counts in pivots], "exact"


def _draw(game: Game) -> tuple[list[Share], list[float]]:
    """Return shares and flips from orders and coalitions drawn at random, always the same ones."""
    n, chance = len(game.players), random.Random(0)  # noqa: S311 - chance, no secret
    decided, order, base = [0] * n, [*range(n)], game.passes(lambda _: False)
    changes = base != game.passes(lambda _: True)
    steps = range(n) if game.has_questions() else None
    for _ in range(_DRAWN if changes or steps else 0):
        chance.shuffle(order)
        place = {player: at for at, player in enumerate(order)}
        if steps is None:  # the verdict changes once: look for the place by halves
            low, high = 0, n
            while high - low > 1:
                middle = (low + high) // 2
                changed = game.passes(lambda player: place[player] < middle) != base  # noqa: B023
                low, high = (low, middle) if changed else (middle, high)
            decided[order[low]] += 1
            continue
        before = base
        for at in steps:
            after = game.passes(lambda player: place[player] <= at)  # noqa: B023
            decided[order[at]] += after - before
            before = after
    flips = [0] * n
    for _ in range(_DRAWN // n + 1):
        members = [chance.random() < 0.5 for _ in range(n)]  # noqa: PLR2004 - even chance
        for player in range(n):
            with_it, without = (
                game.passes(lambda one: end if one == player else members[one])  # noqa: B023
                for end in (True, False)
            )
            flips[player] += with_it != without
    shares = [Share(count / _DRAWN, share_interval(max(count, 0), _DRAWN)) for count in decided]
    return shares, [count / (_DRAWN // n + 1) for count in flips]


# -- counting coalitions ---------------------------------------------------------------------------------


class _TooManyError(Exception):
    """There are more sums than are kept."""


@define
class _Counts:
    """The coalitions of a level, counted."""

    prefixes: list[dict[_Move, int]]  # before each child: the coalitions of the earlier ones, by state
    moves: list[dict[_Move, int]]  # of each child: its coalitions, by what they add
    results: list[list[tuple[Any, _Move]]]  # of each child: each of its results, and what it adds
    final: dict[_Move, int]
    inner: list[_Counts | None]
    grid: int


class _Counting:
    """
    Counts coalitions by size: a count is a whole number whose digit k, of `bits` bits, is the number of size k.

    No digit exceeds the number of all coalitions of its size, so none runs over into the next.
    """

    def __init__(self, players: int) -> None:
        self.bits, self.players, self.work = players + 1, players, 0

    def pivots(self, game: Game) -> list[list[int]]:
        """Return for each player, by size, how many coalitions without it pass with it, less those that cease to."""
        found: list[list[int]] = [[] for _ in range(self.players)]
        counts = self._forward(game, top=True)
        ends = {state: int(Rules(game.rubric).finish(*_ending(counts.grid, state)).passed) for state in counts.final}
        self._backward(game, counts, ends, found)
        return found

    def _forward(self, game: Game, *, top: bool) -> _Counts:
        rules = Rules(game.rubric)
        start, join = rules.combination.start(), rules.combination.join
        inner: list[_Counts | None] = []
        parts: list[list[tuple[Any, Part, int]]] = []  # of each child: a result, its part, its coalitions
        for child in game.children:
            inner.append(None if child.level is None else self._forward(child.level, top=False))
            parts.append(list(self._results(game.rubric, child, inner[-1])))
        values = [[rules.value(part) for _, part, _ in results] for results in parts]
        grid = reduce(lcm, (value.denominator for some in values for value in some), 1)
        counts, states = _Counts([], [], [], {}, inner, grid), {(int(start * grid), 0): 1}
        for results, some in zip(parts, values, strict=True):
            moves: dict[_Move, int] = {}
            placed = []
            for (result, part, ways), value in zip(results, some, strict=True):
                move = int(value * grid), _flags(game.rubric, part)
                moves[move] = moves.get(move, 0) + ways
                placed.append((result, move))
            counts.prefixes.append(states)
            counts.moves.append(moves)
            counts.results.append(placed)
            following: dict[_Move, int] = {}
            for state, ways in states.items():
                for move, more in moves.items():
                    after = _join(join, state, move, top=top)
                    following[after] = following.get(after, 0) + ways * more
            states = following
            self.work += len(states) * len(moves)
            if len(states) > _MOST_STATES or self.work * self.players > _MOST_WORK:
                raise _TooManyError
        counts.final = states
        return counts

    def _results(self, rubric: Rubric, child: Child, inner: _Counts | None) -> Iterator[tuple[Any, Part, int]]:
        if child.level is not None and inner is not None:
            ended = Rules(child.level.rubric)
            for state, ways in inner.final.items():
                yield state, Rules(rubric).part(child.criterion, ended.finish(*_ending(inner.grid, state))), ways
        elif child.questions:
            ways_to: dict[float, int] = {}
            for leaf, ways in self._leaves(child.questions[0], 1):
                ways_to[leaf.score] = ways_to.get(leaf.score, 0) + ways
            for score, ways in ways_to.items():
                yield score, Rules(rubric).part(child.criterion, score), ways
        elif child.best is not None and child.worst is not None:
            yield False, child.worst, 1
            yield True, child.best, 1 << self.bits

    def _free(self, branch: DecisionTree | Leaf) -> int:
        """Return the coalitions of the questions of *branch*, none of which is asked."""
        questions = len([*branch.nodes()]) if isinstance(branch, DecisionTree) else 0
        return int((1 + (1 << self.bits)) ** questions)

    def _leaves(self, branch: DecisionTree | Leaf, ways: int) -> Iterator[tuple[Leaf, int]]:
        if isinstance(branch, Leaf):
            yield branch, ways
            return
        better, worse = _branches(branch)
        yield from self._leaves(better, (ways << self.bits) * self._free(worse))
        yield from self._leaves(worse, ways * self._free(better))

    def _backward(self, game: Game, counts: _Counts, values: dict[_Move, int], found: list[list[int]]) -> None:
        """Fill *found*; *values*: the coalitions of all other players that pass, by the final state of this level."""
        join = Rules(game.rubric).combination.join
        for at in range(len(game.children) - 1, -1, -1):
            child, states, top = game.children[at], counts.prefixes[at], values.keys()
            passing = {
                move: sum(
                    ways * values[after]
                    for state, ways in states.items()
                    if (after := self._after(join, state, move, top)) is not None
                )
                for move in counts.moves[at]
            }
            if (inner := counts.inner[at]) is not None and child.level is not None:
                self._backward(child.level, inner, {state: passing[move] for state, move in counts.results[at]}, found)
            elif child.questions:
                by_score = {score: passing[move] for score, move in counts.results[at]}
                players = dict(zip(map(id, child.questions), child.players, strict=True))
                self._questions(child.questions[0], 1, by_score, players, found)
            else:
                (_, worst), (_, best) = counts.results[at]
                found[child.players.start] = self._difference(passing[best], passing[worst])
            values = {
                state: sum(
                    ways * values[after]
                    for move, ways in counts.moves[at].items()
                    if (after := self._after(join, state, move, top)) is not None
                )
                for state in states
            }

    @staticmethod
    def _after(join: _Joined, state: _Move, move: _Move, known: Any) -> _Move | None:
        after = _join(join, state, move, top=False)
        if after in known:
            return after
        after = _join(join, state, move, top=True)
        return after if after in known else None

    def _questions(
        self,
        node: DecisionTree | Leaf,
        others: int,
        by_score: Mapping[float, int],
        players: Mapping[int, int],
        found: list[list[int]],
    ) -> int:
        """Fill *found* for the questions from *node* on; return the coalitions below it and elsewhere that pass."""
        if isinstance(node, Leaf):
            return by_score[node.score]
        better, worse = _branches(node)
        free_better, free_worse = self._free(better), self._free(worse)
        if_better = self._questions(better, (others << self.bits) * free_worse, by_score, players, found) * free_worse
        if_worse = self._questions(worse, others * free_better, by_score, players, found) * free_better
        found[players[id(node)]] = self._difference(if_better * others, if_worse * others)
        return (if_better << self.bits) + if_worse

    def _difference(self, more: int, less: int) -> list[int]:
        mask = (1 << self.bits) - 1
        shifts = range(0, self.players * self.bits, self.bits)
        return [((more >> shift) & mask) - ((less >> shift) & mask) for shift in shifts]


def _flags(rubric: Rubric, part: Part) -> int:
    flags = _GATED if part.gated else 0
    if part.rule.criterion.weight:
        if rubric.strict:
            flags |= _IMPERFECT if part.contribution != 1 else 0
        elif rubric.threshold is None:
            flags |= 0 if part.holds else _UNHELD
    return flags


def _join(join: _Joined, state: _Move, move: _Move, *, top: bool) -> _Move:
    flags = state[1] | move[1]
    if top and flags:  # it fails whatever the sum is, and at the top the sum is not needed
        return 0, flags and _GATED
    return join(state[0], move[0]), flags


def _ending(grid: int, state: _Move) -> tuple[Fraction, bool, bool]:
    """Return the final *state* as `Rules.finish` takes it: the combination's, whether it is gated, whether it fails."""
    value, flags = state
    return Fraction(value, grid), bool(flags & _GATED), bool(flags)
