"""
From many to one: what the votes of a jury or a panel come to, and whether the votes that are left could change it.

A vote that came to nothing, or was not cast, is settled twice like any other unknown: at its worst and at its best.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import assert_never

from attrs import evolve

from rubric.grading.averaging import TOLERANCE, mean, median
from rubric.grading.scoring import EVEN, Extreme, Outcome, meets, unknown, verdict_of
from rubric.judges import Bench, Cascade, Judge, Jury, Panel, passes_needed
from rubric.rubrics import Rubric


def size_of(rule: Jury | Panel | Cascade) -> int:
    """Return how many votes *rule* has; those of a cascade are its first judge's, and its second's if it is asked."""
    return len(members_of(rule))


def members_of(rule: Jury | Panel | Cascade) -> Sequence[Bench]:
    """Return who casts the votes of *rule*, in order."""
    match rule:
        case Jury():
            return (rule.judge,) * rule.size
        case Panel():
            return rule.judges
        case Cascade():
            return (rule.first, rule.then)


def judges_of(bench: Bench) -> Iterator[Judge]:
    """Yield every single judge of *bench*, in order; that of a jury once."""
    match bench:
        case Judge():
            yield bench
        case Jury():
            yield from judges_of(bench.judge)
        case Panel():
            for member in bench.judges:
                yield from judges_of(member)
        case Cascade():
            yield from judges_of(bench.first)
            yield from judges_of(bench.then)


def unhurried(bench: Bench) -> Bench:
    """Return *bench* without early stops."""
    match bench:
        case Jury():
            return evolve(bench, judge=unhurried(bench.judge), early_stop=False)
        case Panel():
            return evolve(bench, judges=[unhurried(member) for member in bench.judges], early_stop=False)
        case Cascade():
            return evolve(bench, first=unhurried(bench.first), then=unhurried(bench.then))
        case _:
            return bench


def tally(rule: Jury | Panel, rubric: Rubric, votes: Sequence[Outcome]) -> Outcome:
    """
    Return what *votes*, in the order of the judges, come to; votes that are missing at the end were not cast.

    Votes that came to nothing are left out where the quorum is met without them. A verdict that
    the missing votes cannot change stands without them.
    """
    cast = list(votes)
    if cast and all(vote.vacuous for vote in cast):
        return cast[0]
    dead = [v for v in cast if v.score is None]
    if dead and rule.quorum is not None and len(cast) - len(dead) >= rule.quorum:
        kept = [i for i, vote in enumerate(cast) if vote.score is not None]
        rule, cast = _only(rule, kept, len(cast)), [cast[i] for i in kept]
        dead = []
    whole = cast + [unknown(rubric)] * (size_of(rule) - len(cast))
    worst, best = _combined(rule, rubric, whole, best=False), _combined(rule, rubric, whole, best=True)
    if dead or not cast or not _agree(rubric, worst, best):
        return Outcome(worst, best, None, None, coverage=_coverage(cast, size_of(rule)))
    score = mean([v.score for v in cast if v.score is not None], _weights(rule)[: len(cast)])
    settled = Extreme(score, worst.passed, gated=_gated(rule, cast))
    counts = settled.gated and settled.passed == rubric.negate
    return Outcome(
        settled,
        settled,
        score,
        verdict_of(rubric, settled),
        gates=tuple(dict.fromkeys(gate for vote in cast for gate in vote.gates)) if counts else (),
    )


def is_decided(rule: Jury | Panel, rubric: Rubric, votes: Sequence[Outcome]) -> bool:
    """Say whether there are no votes left, or none that could change the verdict."""
    if len(votes) == size_of(rule):
        return True
    if not votes or not rule.early_stop:
        return False
    if rule.quorum is not None and sum(v.score is not None for v in votes) < rule.quorum:
        return False
    came_to = tally(rule, rubric, votes)
    return _agree(rubric, came_to.worst, came_to.best)


def fewest_votes(rule: Jury | Panel, rubric: Rubric, cast: Sequence[Outcome] = ()) -> int:
    """Return the fewest further votes that could decide: casting these together costs no call that is not needed."""

    def could_decide(further: int) -> bool:
        return any(is_decided(rule, rubric, [*cast, *[guess] * further]) for guess in _GUESSES)

    left = size_of(rule) - len(cast)
    return 1 + bisect_left(range(1, left), x=True, key=could_decide)


def _guess(score: float, *, passed: bool, gated: bool) -> Outcome:
    extreme = Extreme(score, passed=passed, gated=gated)
    return Outcome(extreme, extreme, score, "pass" if passed else "fail")


_GUESSES = tuple(
    _guess(score, passed=passed, gated=gated)
    for score in (0.0, 1.0)
    for passed in (False, True)
    for gated in (False, True)
)
"""The votes that decide soonest: none of another kind could make fewer do."""


def _agree(rubric: Rubric, worst: Extreme, best: Extreme) -> bool:
    """Say whether all that is unknown leaves the verdict as it is: whether a fail is borderline is part of it."""
    return verdict_of(rubric, worst) == verdict_of(rubric, best)


def _only(rule: Jury | Panel, kept: Sequence[int], cast: int) -> Jury | Panel:
    """Return *rule* for the votes that came to something, and those that are still to come."""
    if isinstance(rule, Jury):
        return evolve(rule, size=rule.size - cast + len(kept), quorum=None)
    members = [*kept, *range(cast, len(rule.judges))]
    weights = None if rule.weights is None else [rule.weights[i] for i in members]
    return evolve(rule, judges=[rule.judges[i] for i in members], weights=weights, quorum=None)


def _weights(rule: Jury | Panel) -> Sequence[float]:
    return (isinstance(rule, Panel) and rule.weights) or (1,) * size_of(rule)


def _coverage(cast: Sequence[Outcome], size: int) -> float:
    return min(sum(v.coverage for v in cast) / size, 1 - TOLERANCE)


def _gated(rule: Jury | Panel, votes: Sequence[Outcome]) -> bool:
    return not _gates_hold([v.worst for v in votes], _weights(rule)[: len(votes)])


def _gates_hold(votes: Sequence[Extreme], weights: Sequence[float]) -> bool:
    """Say whether more than half of the members found no gate failed: a gate is not averaged away."""
    return mean([not v.gated for v in votes], weights) > EVEN + TOLERANCE


def _combined(rule: Jury | Panel, rubric: Rubric, votes: Sequence[Outcome], *, best: bool) -> Extreme:
    extremes = [v.best if best else v.worst for v in votes]
    weights = _weights(rule)
    score = mean([e.score for e in extremes], weights)
    gated = not _gates_hold(extremes, weights)
    if isinstance(rule, Jury):
        passes = sum(e.passed for e in extremes)
        return Extreme(score, passes >= passes_needed(rule.consensus, len(extremes)), gated)
    match rule.aggregate:
        case "mean":
            return Extreme(score, _passes_as(rubric, score, extremes, weights), gated)
        case "median":
            middle = median([e.score for e in extremes], weights)
            return Extreme(score, _passes_as(rubric, middle, extremes, weights), gated)
        case "majority":
            return Extreme(score, _majority([e.passed for e in extremes], weights, rule.tie_break), gated)
        case never:
            assert_never(never)


def _passes_as(rubric: Rubric, value: float, votes: Sequence[Extreme], weights: Sequence[float]) -> bool:
    """Say whether a panel passes whose mean or median is *value*."""
    if rubric.threshold is None and not rubric.strict:
        return _majority([v.passed for v in votes], weights, "fail")
    holds = _gates_hold(votes, weights)
    if rubric.negate:
        return not (meets(rubric, 1 - value) and holds)
    return meets(rubric, value) and holds


def _majority(passes: Sequence[bool], weights: Sequence[float], tie_break: str) -> bool:
    share = mean(passes, weights)
    if abs(share - EVEN) <= TOLERANCE:
        return tie_break == "pass"
    return share > EVEN
