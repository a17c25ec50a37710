"""
From the findings of several judges to one finding a criterion.

Who casts which vote.

A reply is kept by what was asked and by the number of the vote, and serves whoever asks for just that. So no two judges
of a bench may ask the same model as the same vote: one reply would stand for two opinions.

From many to one: what the votes of a jury or a panel come to, and whether the votes that are left could change it.

A vote that came to nothing, or was not cast, is settled twice like any other unknown: at its worst and at its best.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, assert_never

from attrs import evolve, frozen

from rubric.scoring.outcomes import (
    EVEN,
    TOLERANCE,
    Extreme,
    Outcome,
    asks_evidence,
    mean,
    median,
    medians,
    meets,
    outcome,
    substantiated,
    unknown,
    verdict_of,
)
from rubric.values.criteria import Criterion
from rubric.values.findings import Abstained, Finding, NotApplicable, Scored, Unjudged
from rubric.values.judges import AnyJudge, Judge, Jury, Model, Panel, members_of, passes_needed, size_of
from rubric.values.rubrics import Rubric
from rubric.values.trees import DecisionTree


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
    unwanted = criterion.is_unwanted
    backed = [substantiated(rubric, criterion, v) for v in findings]
    raw = [v.score if ok else float(unwanted) for v, ok in zip(findings, backed, strict=True)]
    score = _middle(raw, weights, how, unwanted=unwanted)
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
        weighted=spokesman.weighted and spokesman.score == score,
        path=spokesman.path if isinstance(criterion.answer, DecisionTree) else (),
        parts=parts,
    )


def _middle(raw: Sequence[float], weights: Sequence[float], how: Pooling, *, unwanted: bool) -> float:
    """Return the pooled score. A majority is the median that leans as the tie break says."""
    match how.aggregate:
        case "median":
            return median(raw, weights)
        case "majority":
            low, high = medians(raw, weights)
            return high if (how.tie_break == "pass") != unwanted else low
        case _:
            return mean(raw, weights)


def _pooled_dead(
    criterion: Criterion, votes: Sequence[Finding], weights: Sequence[float], how: Pooling, dead: Unjudged
) -> Unjudged:
    unwanted = criterion.is_unwanted
    known = [(v.score, v.score) if isinstance(v, Scored) else (0.0, 1.0) for v in votes]
    lows = [v.low if isinstance(v, Unjudged) else low for v, (low, _) in zip(votes, known, strict=True)]
    highs = [v.high if isinstance(v, Unjudged) else high for v, (_, high) in zip(votes, known, strict=True)]
    low, high = (_middle(extremes, weights, how, unwanted=unwanted) for extremes in (lows, highs))
    return Unjudged(criterion.id, dead.failure, dead.text, low, high, votes=tuple(votes))


@frozen
class Seat:
    """
    A place on a bench.

    Args:
        judge: Who sits there: one judge, or several that vote.
        vote: The number of a single judge's vote; 0 for several, who have their own.
        members: The places of those who vote, in order.
    """

    judge: AnyJudge
    vote: int = 0
    members: tuple[Seat, ...] = ()


def seated(bench: AnyJudge) -> Seat:
    """
    Return *bench* with the votes of its single judges numbered, in order: how many before have the same model.

    So a judge alone is vote 0, and those of a jury are 0, 1, 2 and so on, wherever they sit. Judges that differ in
    their settings alone are numbered as one model, since not every setting reaches it.
    """
    before = Counter[object]()

    def place(judge: AnyJudge) -> Seat:
        if not isinstance(judge, Judge):
            return Seat(judge, members=tuple(place(member) for member in members_of(judge)))
        model = _name(judge.model)
        before[model] += 1
        return Seat(judge, before[model] - 1)

    return Seat(bench) if isinstance(bench, Judge) else place(bench)


def _name(model: str | Model | Callable[..., object]) -> str:
    """Return what models that a store might take for one have in common: a name, or where a function or class is."""
    if isinstance(model, str):
        return model
    told = getattr(model, "identity", None)
    if isinstance(told, str):
        return told
    place: Any = model if hasattr(model, "__qualname__") else type(model)
    return f"{place.__module__}.{place.__qualname__}"


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
