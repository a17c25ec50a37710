"""From the findings of several judges to one finding a criterion."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from rubric.criteria import Criterion
from rubric.findings import Abstained, Finding, NotApplicable, Scored, Unjudged
from rubric.grading.averaging import mean, median, medians
from rubric.grading.scoring import asks_evidence, outcome, substantiated
from rubric.judges import Jury, Panel
from rubric.rubrics import Rubric
from rubric.trees import DecisionTree


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
