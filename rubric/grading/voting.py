"""
From many to one: what the votes of a jury or a panel come to, and whether the votes that are left could change it.

A vote that came to nothing, or was not cast, is settled twice like any other unknown: at its worst and at its best.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean
from typing import assert_never

from attrs import evolve, frozen

from rubric.criteria import Criterion
from rubric.findings import Abstained, Finding, NotApplicable, Scored, Unjudged
from rubric.grading.scoring import (
    EVEN,
    TOLERANCE,
    Extreme,
    Outcome,
    asks_evidence,
    mean,
    meets,
    outcome,
    substantiated,
    unknown,
    verdict_of,
)
from rubric.judges import Judge, Jury, Panel, passes_needed
from rubric.rubrics import Rubric
from rubric.trees import DecisionTree


def size_of(rule: Jury | Panel) -> int:
    """Return how many votes *rule* has."""
    return rule.size if isinstance(rule, Jury) else len(rule.judges)


def members_of(rule: Jury | Panel) -> Sequence[Judge | Jury | Panel]:
    """Return who casts the votes of *rule*, in order."""
    return (rule.judge,) * rule.size if isinstance(rule, Jury) else rule.judges


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


def median(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted median; where half of the weight lies on each side, the middle of the two."""
    low, high = medians(values, weights)
    return fmean((low, high))


def medians(values: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """Return the lower and the upper weighted median; they differ where half of the weight lies on each side."""
    ordered = sorted(zip(values, map(Fraction, weights), strict=True))
    half, seen = sum((weight for _, weight in ordered), Fraction()) / 2, Fraction()
    for index, (value, weight) in enumerate(ordered):
        seen += weight
        if abs(seen - half) <= Fraction(TOLERANCE) * half and index + 1 < len(ordered):
            return value, ordered[index + 1][0]
        if seen > half:
            return value, value
    return ordered[-1][0], ordered[-1][0]


# -- findings ------------------------------------------------------------------------------------------


@frozen
class Pooling:
    """How the findings of several judges become one: `mean`, `median` or `majority`, with weights and a tie break."""

    aggregate: str = "mean"
    tie_break: str = "fail"
    weights: tuple[float, ...] | None = None
    quorum: int | None = None

    @classmethod
    def of(cls, rule: Jury | Panel) -> Pooling:
        """Return how *rule* pools. Where a panel pools verdicts, and in a jury, findings are shown by their mean."""
        if isinstance(rule, Panel) and rule.level == "criterion":
            return cls(rule.aggregate, rule.tie_break, rule.weights, rule.quorum)
        return cls(weights=rule.weights if isinstance(rule, Panel) else None, quorum=rule.quorum or 1)


def pool(rubric: Rubric, votes: Sequence[Sequence[Finding]], how: Pooling) -> tuple[Finding, ...]:
    """Return one finding a criterion, pooled from the findings of each vote."""
    if len(votes) == 1:
        return tuple(votes[0])
    return tuple(
        _pooled(rubric, criterion, [vote[index] for vote in votes], how)
        for index, criterion in enumerate(rubric.judged)
    )


def _pooled(rubric: Rubric, criterion: Criterion, votes: Sequence[Finding], how: Pooling) -> Finding:
    """Failed votes come first: they are no verdict. Then what does not apply, then abstentions, which have no score."""
    weights = (how.weights or (1,) * len(votes))[: len(votes)]
    dead = [v for v in votes if isinstance(v, Unjudged)]
    needed = len(votes) if how.quorum is None else how.quorum
    if dead and len(votes) - len(dead) < needed:
        return _pooled_dead(criterion, votes, weights, how, dead[0])
    scored = [(v, w) for v, w in zip(votes, weights, strict=True) if isinstance(v, Scored)]
    if not scored:
        absent = next((v for v in votes if isinstance(v, Abstained)), None)
        reason = next((v.reason for v in votes if isinstance(v, NotApplicable)), "")
        made = NotApplicable(criterion.id, reason) if absent is None else Abstained(criterion.id, absent.reason)
        return evolve(made, votes=tuple(votes))
    return evolve(_pooled_scores(rubric, criterion, scored, how), votes=tuple(votes))


def _pooled_scores(
    rubric: Rubric, criterion: Criterion, scored: Sequence[tuple[Scored, float]], how: Pooling
) -> Scored:
    findings, weights = [v for v, _ in scored], [w for _, w in scored]
    guard = criterion.polarity == "guard"
    backed = [substantiated(rubric, criterion, v) for v in findings]
    raw = [v.score if ok else float(guard) for v, ok in zip(findings, backed, strict=True)]
    score = _middle(raw, weights, how, guard=guard)
    kept = [v for v, ok in zip(findings, backed, strict=True) if ok] or findings
    spokesman = min(kept, key=lambda v: abs(v.score - score))
    flags = [v.flag for v in findings if v.flag is not None]
    parts: tuple[Finding, ...] = ()
    if isinstance(criterion.answer, Rubric) and all(v.parts for v in findings):
        parts = pool(criterion.answer, [v.parts for v in findings], evolve(how, weights=tuple(weights), quorum=1))
    quotes = [e for v in kept for e in v.evidence] if asks_evidence(rubric, criterion) else list(spokesman.evidence)
    return Scored(
        criterion.id,
        outcome(criterion.answer, parts).score or 0.0 if isinstance(criterion.answer, Rubric) and parts else score,
        value=spokesman.value if spokesman.score == score else None,
        reason=spokesman.reason,
        evidence=tuple(dict.fromkeys(quotes)),
        flag=sum(flags) * 2 > len(flags) if flags else None,
        level=spokesman.level if spokesman.score == score else "",
        path=spokesman.path if isinstance(criterion.answer, DecisionTree) else (),
        parts=parts,
    )


def _middle(raw: Sequence[float], weights: Sequence[float], how: Pooling, *, guard: bool) -> float:
    """Return the pooled score. A majority is the median that leans as the tie break says."""
    match how.aggregate:
        case "median":
            return median(raw, weights)
        case "majority":
            low, high = medians(raw, weights)
            return high if (how.tie_break == "pass") != guard else low
        case _:
            return mean(raw, weights)


def _pooled_dead(
    criterion: Criterion, votes: Sequence[Finding], weights: Sequence[float], how: Pooling, dead: Unjudged
) -> Unjudged:
    guard = criterion.polarity == "guard"
    known = [(v.score, v.score) if isinstance(v, Scored) else (0.0, 1.0) for v in votes]
    lows = [v.low if isinstance(v, Unjudged) else low for v, (low, _) in zip(votes, known, strict=True)]
    highs = [v.high if isinstance(v, Unjudged) else high for v, (_, high) in zip(votes, known, strict=True)]
    low, high = (_middle(extremes, weights, how, guard=guard) for extremes in (lows, highs))
    return Unjudged(criterion.id, dead.failure, dead.text, low, high, votes=tuple(votes))
