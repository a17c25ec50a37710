"""
Combine the votes of a jury or a panel, and tell whether the votes that are left could change the verdict.

A panel at the level of criteria pools findings, one for each criterion; all others combine the outcomes of whole votes.
A vote that failed or was not cast is resolved twice, like anything unknown: at its worst and at its best. The verdict
is decided where both agree, so an early stop never changes one: no vote that is left out could be worse than the worst
or better than the best, since all combinations are monotone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import product, starmap
from typing import Any, assert_never

from attrs import evolve, frozen

from rubric.scoring import outcomes
from rubric.scoring.outcomes import TOLERANCE, Outcome
from rubric.values.aggregations import mean
from rubric.values.answers import EVEN
from rubric.values.criteria import Criterion
from rubric.values.findings import Abstained, Finding, NotApplicable, Scored, Unjudged
from rubric.values.judges import AnyJudge, Judge, Jury, Panel, passes_needed
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
        _pool(rubric, criterion, [vote[index] for vote in votes], how) for index, criterion in enumerate(rubric.judged)
    )


def _pool(rubric: Rubric, criterion: Criterion, votes: Sequence[Finding], how: Pooling) -> Finding:
    """Pool the findings of one criterion: failures (not verdicts) first, then scores, abstentions, the rest."""
    weights = (how.weights or (1,) * len(votes))[: len(votes)]
    failed = [vote for vote in votes if isinstance(vote, Unjudged)]
    needed = len(votes) if how.quorum is None else how.quorum
    if failed and len(votes) - len(failed) < needed:
        ends = [(v.low, v.high) if isinstance(v, Unjudged) else (0.0, 1.0) for v in votes]
        ends = [(v.score, v.score) if isinstance(v, Scored) else end for v, end in zip(votes, ends, strict=True)]
        low, high = (_middle(end, weights, how, unwanted=criterion.is_unwanted) for end in zip(*ends, strict=True))
        return Unjudged(criterion.id, failed[0].failure, failed[0].text, low, high, votes=tuple(votes))
    scored = [(vote, weight) for vote, weight in zip(votes, weights, strict=True) if isinstance(vote, Scored)]
    if scored:
        return evolve(_pooled_scores(rubric, criterion, scored, how), votes=tuple(votes))
    absent = next((vote for vote in votes if isinstance(vote, Abstained)), None)
    if absent is not None:
        return Abstained(criterion.id, absent.reason, tuple(votes))
    reason = next((vote.reason for vote in votes if isinstance(vote, NotApplicable)), "")
    return NotApplicable(criterion.id, reason, tuple(votes))


def _pooled_scores(
    rubric: Rubric, criterion: Criterion, scored: Sequence[tuple[Scored, float]], how: Pooling
) -> Scored:
    findings, weights = [v for v, _ in scored], [w for _, w in scored]
    unwanted = criterion.is_unwanted
    backed = [outcomes.is_substantiated(rubric, criterion, v) for v in findings]
    raw = [v.score if ok else float(unwanted) for v, ok in zip(findings, backed, strict=True)]
    score = _middle(raw, weights, how, unwanted=unwanted)
    kept = [v for v, ok in zip(findings, backed, strict=True) if ok] or findings
    nearest = min(kept, key=lambda v: abs(v.score - score))
    flags = [v.flag for v in findings if v.flag is not None]
    parts: tuple[Finding, ...] = ()
    inner = evolve(how, weights=tuple(weights), quorum=1)
    if isinstance(criterion.answer, Rubric) and all(v.parts for v in findings):
        parts = pool(criterion.answer, [v.parts for v in findings], inner)
    elif len({tuple([part.id for part in v.parts]) for v in findings}) == 1:  # turns: judges may cut other segments
        each = zip(*[v.parts for v in findings], strict=True)
        parts = tuple([evolve(_pool(rubric, criterion, part, inner), id=part[0].id) for part in each])
    quotes = (
        [e for v in kept for e in v.evidence] if outcomes.asks_evidence(rubric, criterion) else list(nearest.evidence)
    )
    return Scored(
        criterion.id,
        outcomes.outcome(criterion.answer, parts).score or 0.0
        if isinstance(criterion.answer, Rubric) and parts
        else score,
        value=nearest.value if nearest.score == score else None,
        reason=nearest.reason,
        evidence=tuple(dict.fromkeys(quotes)),
        flag=sum(flags) * 2 > len(flags) if flags else None,
        level=nearest.level if nearest.score == score else "",
        weighted=nearest.weighted and nearest.score == score,
        path=nearest.path if isinstance(criterion.answer, DecisionTree) else (),
        parts=parts,
    )


def _middle(raw: Sequence[float], weights: Sequence[float], how: Pooling, *, unwanted: bool) -> float:
    """Return the pooled score. A majority is the median that leans as the tie break says."""
    match how.aggregate:
        case "median":
            return outcomes.median(raw, weights)
        case "majority":
            low, high = outcomes.medians(raw, weights)
            return high if (how.tie_break == "pass") != unwanted else low
        case _:
            return mean(raw, weights)


@frozen
class Voter:
    """
    A judge and the number of its vote.

    Args:
        vote: The number of a single judge's vote; 0 for several, whose members have their own.
    """

    judge: AnyJudge
    vote: int = 0
    members: tuple[Voter, ...] = ()


def number_votes(judge: AnyJudge) -> Voter:
    """
    Return *judge* with the votes of its single judges numbered: how many before have the same model.

    A reply is stored by its request and its vote number, so no two judges may ask the same model as the same vote: one
    reply would count as two opinions. A judge alone is vote 0, and those of a jury are 0, 1, 2 and so on, however they
    are nested. Judges that differ in their settings alone share one count, since not every setting reaches the model.
    """
    if isinstance(judge, Judge):
        return Voter(judge)
    before = Counter[str]()

    def number(judge: AnyJudge) -> Voter:
        if not isinstance(judge, Judge):
            return Voter(judge, members=tuple(number(member) for member in judge.members))
        name = _name(judge)
        before[name] += 1
        return Voter(judge, before[name] - 1)

    return number(judge)


def _name(judge: Judge) -> str:
    """Return what the store may tell the model of *judge* by: its name, its identity, or the place of its function."""
    if isinstance(judge.model, str) or judge.identified_by is not None:
        return judge.model if isinstance(judge.model, str) else judge.identified_by or ""
    place: Any = judge.model if hasattr(judge.model, "__qualname__") else type(judge.model)
    return f"{place.__module__}.{place.__qualname__}"


def tally(rule: Jury | Panel, rubric: Rubric, votes: Sequence[Outcome]) -> Outcome:
    """
    Return the outcome of *votes*, in the order of the judges; votes that are missing at the end were not cast.

    Failed votes are left out where the quorum is met without them. A verdict that the missing votes cannot change
    holds without them.
    """
    if votes and all(vote.vacuous for vote in votes):
        return votes[0]
    failed = [vote for vote in votes if vote.score is None]
    if failed and rule.quorum is not None and len(votes) - len(failed) >= rule.quorum:
        kept = [index for index, vote in enumerate(votes) if vote.score is not None]
        rule, votes, failed = _only(rule, kept, len(votes)), [votes[index] for index in kept], []
    whole = [*votes, *[outcomes.unknown(rubric)] * (len(rule.members) - len(votes))]
    worst, best = _combine(rule, rubric, whole, best=False), _combine(rule, rubric, whole, best=True)
    if failed or not votes or not _agree(rubric, worst, best):
        coverage = min(sum(vote.coverage for vote in votes) / len(rule.members), 1 - TOLERANCE)
        return Outcome(worst, best, None, None, coverage=coverage)
    weights = _weights(rule)[: len(votes)]
    score = mean([vote.score for vote in votes if vote.score is not None], weights)
    known = outcomes.Extreme(score, worst.passed, gated=not _gates_hold([vote.worst for vote in votes], weights))
    counts = known.gated and known.passed == rubric.negate
    gates = tuple(dict.fromkeys(gate for vote in votes for gate in vote.gates)) if counts else ()
    return Outcome(known, known, score, outcomes.verdict_of(rubric, known), gates)


def is_decided(rule: Jury | Panel, rubric: Rubric, votes: Sequence[Outcome]) -> bool:
    """True if there are no votes left, or none that could change the verdict."""
    if len(votes) == len(rule.members):
        return True
    if not votes or not rule.early_stop:
        return False
    if rule.quorum is not None and sum(vote.score is not None for vote in votes) < rule.quorum:
        return False
    so_far = tally(rule, rubric, votes)
    return _agree(rubric, so_far.worst, so_far.best)


def fewest_votes(rule: Jury | Panel, rubric: Rubric, cast: Sequence[Outcome] = ()) -> int:
    """Return the fewest further votes that could decide; as many can be asked for at once without a needless call."""

    def could_decide(further: int) -> bool:
        return any(is_decided(rule, rubric, [*cast, *[guess] * further]) for guess in _GUESSES)

    left = len(rule.members) - len(cast)
    return 1 + bisect_left(range(1, left), x=True, key=could_decide)


_GUESSES = tuple(
    Outcome(guess, guess, guess.score, "pass" if guess.passed else "fail")
    for guess in starmap(outcomes.Extreme, product((0.0, 1.0), (False, True), (False, True)))
)
"""The votes that decide soonest. All combinations are monotone, so no vote in between decides with fewer."""


def _agree(rubric: Rubric, worst: outcomes.Extreme, best: outcomes.Extreme) -> bool:
    """True if nothing unknown can change the verdict; whether a fail is borderline is part of it."""
    return outcomes.verdict_of(rubric, worst) == outcomes.verdict_of(rubric, best)


def _only(rule: Jury | Panel, kept: Sequence[int], cast: int) -> Jury | Panel:
    """Return *rule* for the votes at *kept* of those that were *cast*, and for those that are still to come."""
    if isinstance(rule, Jury):
        return evolve(rule, size=rule.size - cast + len(kept), quorum=None)
    members = [*kept, *range(cast, len(rule.judges))]
    weights = None if rule.weights is None else [rule.weights[i] for i in members]
    return evolve(rule, judges=[rule.judges[i] for i in members], weights=weights, quorum=None)


def _weights(rule: Jury | Panel) -> Sequence[float]:
    return (isinstance(rule, Panel) and rule.weights) or (1,) * len(rule.members)


def _gates_hold(votes: Sequence[outcomes.Extreme], weights: Sequence[float]) -> bool:
    """True if more than half of the members found no gate failed: a gate is not averaged away."""
    return mean([not v.gated for v in votes], weights) > EVEN + TOLERANCE


def _combine(rule: Jury | Panel, rubric: Rubric, votes: Sequence[Outcome], *, best: bool) -> outcomes.Extreme:
    extremes = [v.best if best else v.worst for v in votes]
    weights = _weights(rule)
    score = mean([e.score for e in extremes], weights)
    gated = not _gates_hold(extremes, weights)
    if isinstance(rule, Jury):
        passes = sum(e.passed for e in extremes)
        return outcomes.Extreme(score, passes >= passes_needed(rule.consensus, len(extremes)), gated)
    verdicts = [e.passed for e in extremes]
    match rule.aggregate:
        case "majority":
            return outcomes.Extreme(score, _has_consensus(rule, verdicts, weights), gated)
        case "mean":
            value = score
        case "median":
            value = outcomes.median([e.score for e in extremes], weights)
        case never:
            assert_never(never)
    if rubric.threshold is None and not rubric.strict:  # nothing is asked of the value, so the verdicts decide
        return outcomes.Extreme(score, _majority(verdicts, weights, "fail"), gated)
    if rubric.negate:
        return outcomes.Extreme(score, gated or not outcomes.meets(rubric, 1 - value), gated)
    return outcomes.Extreme(score, outcomes.meets(rubric, value) and not gated, gated)


def _has_consensus(panel: Panel, passes: Sequence[bool], weights: Sequence[float]) -> bool:
    if panel.consensus is None:
        return _majority(passes, weights, panel.tie_break)
    if len({*weights}) == 1:  # all alike, so counts are compared: 2 of 3 meets 0.67
        return sum(passes) >= passes_needed(panel.consensus, len(passes))
    return mean(passes, weights) >= panel.consensus - TOLERANCE


def _majority(passes: Sequence[bool], weights: Sequence[float], tie_break: str) -> bool:
    share = mean(passes, weights)
    if abs(share - EVEN) <= TOLERANCE:
        return tie_break == "pass"
    return share > EVEN
