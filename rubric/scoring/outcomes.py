"""
Weighted averages that are exact until the last rounding, and do not depend on the order.

From findings to a score, its bounds and a verdict: pure, exact, and the same for one judge, a jury and a panel.

Everything works on *contributions*: a criterion's place in 0..1 with 1 as good, so guards and penalties contribute
1 - score.
What is not known yet is settled twice, at its worst and at its best; the two outcomes are the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean
from typing import Literal

from attrs import evolve, frozen

from rubric.internals.containers import NoTruth
from rubric.internals.frozen_map import FrozenMap
from rubric.values.answers import Choices, Levels, Unit, YesNo
from rubric.values.checks import Check
from rubric.values.criteria import Criterion
from rubric.values.findings import Abstained, Finding, NotApplicable, Scored, Unjudged
from rubric.values.rubrics import Rubric
from rubric.values.trees import DecisionTree

TOLERANCE = 1e-9
"""How far below a threshold a score may lie and still meet it: 0.7999999999999999 meets 0.8."""


def mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted mean, in whole numbers: exact until the last rounding, and in any order the same."""
    ratios = [(v.as_integer_ratio(), w.as_integer_ratio()) for v, w in zip(values, weights, strict=True)]
    part, below_part = _exact_sum([(v * w, below_v * below_w) for (v, below_v), (w, below_w) in ratios])
    whole, below_whole = _exact_sum([weight for _, weight in ratios])
    return (part * below_whole) / (whole * below_part)  # whole numbers of any size divide with one rounding


def share_of_points(earning: Sequence[tuple[float, float]], penalties: Sequence[tuple[float, float]]) -> float:
    """
    Return the points that are met over those that can be met, cut to 0..1: exact until the last rounding.

    Args:
        earning: The contribution and the points of each criterion that earns points.
        penalties: The same of each penalty; a contribution of 1 takes nothing off, one of 0 all its points.
    """
    met = sum((Fraction(c) * Fraction(points) for c, points in earning), Fraction())
    lost = sum((Fraction(1 - c) * Fraction(points) for c, points in penalties), Fraction())
    return float(min(max((met - lost) / sum(Fraction(points) for _, points in earning), Fraction()), Fraction(1)))


def _exact_sum(ratios: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the sum of *ratios* whose denominators are powers of two, as those of all floats are; not shortened."""
    common = max(below for _, below in ratios)
    return sum(above * (common // below) for above, below in ratios), common


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


EVEN = 0.5
"""Where yes begins, for a score that stands for a yes or a no."""

Verdict = Literal["pass", "borderline", "fail"]


@frozen
class Extreme(NoTruth):
    """How a rubric comes out when all that is unknown turns out one way."""

    score: float
    passed: bool
    gated: bool = False


@frozen
class Outcome(NoTruth):
    """
    What a rubric's findings come to.

    Args:
        worst: The outcome if everything unknown were against the candidate.
        best: The outcome if everything unknown were for it.
        score: The score in 0..1; None while something is unknown.
        verdict: `pass`, `borderline` or `fail`; None while something is unknown.
        gates: The ids of the criteria that failed the grade whatever the mean is; before any negation.
        contributions: What each resolved criterion contributes, by id.
        coverage: The share of the weight that is resolved.
        vacuous: Whether no criterion applied, so that there was nothing to fail.
    """

    worst: Extreme
    best: Extreme
    score: float | None
    verdict: Verdict | None
    gates: tuple[str, ...] = ()
    contributions: FrozenMap = FrozenMap()
    coverage: float = 1.0
    vacuous: bool = False

    @property
    def passed(self) -> bool | None:
        """True or False when both extremes agree, else None."""
        return self.worst.passed if self.worst.passed == self.best.passed else None

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest score that is still possible."""
        return self.worst.score, self.best.score


def unknown(rubric: Rubric) -> Outcome:
    """Return the outcome of a vote that was not cast, or came to nothing. Negation turns gates over like the rest."""
    worst = Extreme(0.0, passed=False, gated=not rubric.negate)
    best = Extreme(1.0, passed=True, gated=rubric.negate)
    return Outcome(worst, best, None, None, coverage=0.0)


@frozen
class _Part:
    """What one criterion comes to at one extreme."""

    criterion: Criterion
    contribution: float
    holds: bool  # what the criterion says by itself, where no threshold decides
    gated: bool
    resolved: float = 1.0  # the share of it that is known
    leaves: bool = False  # whether it may yet leave the mean: the judge may abstain, and that is excluded


def outcome(rubric: Rubric, findings: Sequence[Finding]) -> Outcome:
    """Return what *findings*, one for each of `rubric.judged` in that order, come to under *rubric*."""
    if all(isinstance(finding, NotApplicable) for finding in findings):
        whole = Extreme(1.0, passed=True)
        return Outcome(whole, whole, 1.0, "pass", vacuous=True)
    inner = [_inner(c, f) for c, f in zip(rubric.judged, findings, strict=True)]
    low = _parts(rubric, findings, inner, best=rubric.negate)
    coverage = _coverage(low)
    known = coverage == 1
    worst = best = _extreme(rubric, low, best=False)
    if not known:
        best = _extreme(rubric, _parts(rubric, findings, inner, best=not rubric.negate), best=True)
    return Outcome(
        worst,
        best,
        score=worst.score if known else None,
        verdict=verdict_of(rubric, worst) if known else None,
        gates=tuple(p.criterion.id for p in low if p.gated and p.resolved == 1),
        contributions=FrozenMap({p.criterion.id: p.contribution for p in low if p.resolved == 1}),
        coverage=coverage,
    )


def verdict_of(rubric: Rubric, extreme: Extreme) -> Verdict:
    """Return the verdict in words; what fails a gate is never borderline. To a negated rubric a gate is welcome."""
    if extreme.passed:
        return "pass"
    gated = extreme.gated and not rubric.negate
    if rubric.borderline is not None and not gated and extreme.score >= rubric.borderline - TOLERANCE:
        return "borderline"
    return "fail"


def meets(rubric: Rubric, score: float) -> bool:
    """Say whether *score*, before any negation, meets what the rubric asks of its mean."""
    if rubric.strict:
        return score >= 1 - TOLERANCE
    return rubric.threshold is None or score >= rubric.threshold - TOLERANCE


def substantiated(rubric: Rubric, criterion: Criterion, finding: Scored) -> bool:
    """
    Say whether *finding* has the evidence that it needs.

    An absence has no span to show: a clean guard, a clean penalty, a fact without a conflict, an unmet criterion are
    exempt.
    """
    if not asks_evidence(rubric, criterion) or any(e.verified for e in finding.evidence):
        return True
    score = _sampled(criterion, finding)
    match criterion.polarity:
        case "guard" | "penalty":
            return score < EVEN
        case "contradiction":
            return score >= EVEN
        case _:  # a pool without a verified quote has no vote but "unmet", however little above 0 these are weighted
            return score == 0 or bool(finding.votes)


def _sampled(criterion: Criterion, finding: Scored) -> float:
    """
    Return the score of the answer that the judge wrote, and gave its evidence for.

    A weighted "no" scores a little above 0; to ask it for a quote would fail every unmet criterion.
    """
    value = finding.value
    if not finding.weighted or value is None:
        return finding.score
    match criterion.answer:
        case Levels() as levels if isinstance(value, int):
            return levels.place(value)
        case Choices() as choices:
            choice = choices.get(str(value))
            return finding.score if choice is None else choice.score
        case _:
            return float(value)


def asks_evidence(rubric: Rubric, criterion: Criterion) -> bool:
    """Say whether the judge must quote the candidate for *criterion*: trees, checks, nested rubrics have no quotes."""
    return _is_asked(criterion) and (rubric.evidence if criterion.evidence is None else criterion.evidence)


def abstainable(rubric: Rubric, criterion: Criterion) -> bool:
    """Say whether the judge may answer *criterion* with "cannot tell"."""
    return _is_asked(criterion) and policy(rubric, criterion) != "forbid"


def _is_asked(criterion: Criterion) -> bool:
    return not isinstance(criterion.answer, DecisionTree | Check | Rubric)


def policy(rubric: Rubric, criterion: Criterion) -> str | float:
    """Return what becomes of an abstention on *criterion*."""
    return rubric.abstain if criterion.abstain is None else criterion.abstain


def _inner(criterion: Criterion, finding: Finding) -> Outcome | None:
    """Return what the findings of a nested rubric come to: once, for both extremes."""
    if not isinstance(criterion.answer, Rubric) or not isinstance(finding, Scored | Unjudged):
        return None
    return outcome(criterion.answer, finding.parts) if finding.parts else unknown(criterion.answer)


def _parts(rubric: Rubric, findings: Sequence[Finding], inner: Sequence[Outcome | None], *, best: bool) -> list[_Part]:
    triples = zip(rubric.judged, findings, inner, strict=True)
    made = (_part(rubric, criterion, finding, nested, best=best) for criterion, finding, nested in triples)
    parts = [part for part in made if part is not None]
    pairs = zip(rubric.judged, findings, strict=True)
    lost = any(c.weight and isinstance(f, Abstained) for c, f in pairs) and not any(p.criterion.weight for p in parts)
    return [] if lost else parts


def _part(
    rubric: Rubric, criterion: Criterion, finding: Finding, nested: Outcome | None, *, best: bool
) -> _Part | None:
    if nested is not None:
        return _nested(criterion, nested, best=best)
    match finding:
        case NotApplicable():
            return None
        case Abstained():
            return _abstained(rubric, criterion, best=best)
        case Scored() if not substantiated(rubric, criterion, finding):
            return _Part(criterion, 0.0, holds=False, gated=criterion.polarity != "penalty")
        case Scored():
            part = _judged(rubric, criterion, finding.score, flag=finding.flag, resolved=True)
            return evolve(part, holds=part.holds or _leans_well(rubric, criterion, finding))
        case Unjudged():
            return _open(rubric, criterion, finding.low, finding.high, best=best)


def _judged(rubric: Rubric, criterion: Criterion, score: float, *, flag: bool | None, resolved: bool) -> _Part:
    contribution = 1 - score if criterion.is_unwanted else score
    disowned = flag is False and criterion.answer == Unit(flag=True)
    holds = not disowned if isinstance(criterion.answer, Unit) else contribution == 1
    most_say_no = isinstance(criterion.answer, YesNo | Check) and contribution < EVEN
    gated = disowned or _below_gate(rubric, criterion, 0.0 if most_say_no else contribution)
    return _Part(criterion, contribution, holds=holds, gated=gated, resolved=float(resolved))


def _leans_well(rubric: Rubric, criterion: Criterion, finding: Scored) -> bool:
    """
    True if a weighted yes or no, or each vote in a pool with such, speaks for the candidate.

    Without a threshold the yes itself decides, and no weighted one is certain.
    """
    votes = [vote for vote in finding.votes if isinstance(vote, Scored)] or [finding]
    if not isinstance(criterion.answer, YesNo) or not any(vote.weighted for vote in votes):
        return False
    backed = all(substantiated(rubric, criterion, vote) for vote in votes)
    return backed and all(vote.score < EVEN if criterion.is_unwanted else vote.score >= EVEN for vote in votes)


def _open(rubric: Rubric, criterion: Criterion, low: float, high: float, *, best: bool) -> _Part:
    """
    Commit a criterion whose verdict is missing, and may lie anywhere from *low* to *high*.

    A judge may still abstain where it is allowed to, or fail to quote: then any contribution is possible, and a gate.
    """
    quoted = asks_evidence(rubric, criterion)
    if quoted or abstainable(rubric, criterion):
        low, high = 0.0, 1.0
    raw = high if best != criterion.is_unwanted else low
    part = _judged(rubric, criterion, raw, flag=best, resolved=False)
    abstains = policy(rubric, criterion) if abstainable(rubric, criterion) else None
    dreaded = (quoted and criterion.polarity != "penalty") or abstains == "fail"
    return evolve(part, gated=part.gated or (dreaded and not best), leaves=abstains == "exclude")


def _below_gate(rubric: Rubric, criterion: Criterion, contribution: float) -> bool:
    guard = criterion.polarity == "guard"
    if not (criterion.required or guard or criterion.min_score is not None):
        return False
    default = EVEN if rubric.threshold is None else rubric.threshold
    value = default if criterion.min_score is None else criterion.min_score
    flat = contribution == 0 and (guard or isinstance(criterion.answer, YesNo | Check))
    return flat or contribution < value - TOLERANCE


def _nested(criterion: Criterion, inner: Outcome, *, best: bool) -> _Part:
    unwanted, guard = criterion.is_unwanted, criterion.polarity == "guard"
    extreme = inner.best if best != unwanted else inner.worst
    contribution = 1 - extreme.score if unwanted else extreme.score
    holds = extreme.passed != unwanted
    too_low = criterion.min_score is not None and contribution < criterion.min_score - TOLERANCE
    # To an unwanted rubric a gate that fails in it is not its worst: that is to be met, and is neither extreme of it.
    bound = (all if best else any)((inner.worst.gated, inner.best.gated)) if unwanted else extreme.gated
    gated = too_low or ((criterion.required or guard) and not holds) or (_binds(criterion) and bound)
    return _Part(criterion, contribution, holds=holds, gated=gated, resolved=inner.coverage)


def _binds(criterion: Criterion) -> bool:
    inner = criterion.answer
    return isinstance(inner, Rubric) and inner.binding and not inner.negate


def _abstained(rubric: Rubric, criterion: Criterion, *, best: bool) -> _Part | None:
    match policy(rubric, criterion):
        case "exclude":
            return None
        case "forbid":
            return _open(rubric, criterion, 0.0, 1.0, best=best)
        case "fail":
            return _Part(criterion, 0.0, holds=False, gated=True)
        case _ if criterion.polarity == "penalty":  # no points are no loss, and a part of none is none
            return _Part(criterion, 1.0, holds=True, gated=False)
        case "zero":
            return _Part(criterion, 0.0, holds=False, gated=_below_gate(rubric, criterion, 0.0))
        case credit:
            part = float(credit)
            return _Part(criterion, part, holds=part == 1, gated=_below_gate(rubric, criterion, part))


def _extreme(rubric: Rubric, parts: Sequence[_Part], *, best: bool) -> Extreme:
    if not parts:  # every judge abstained: nothing is known
        return unknown(rubric).best if best else unknown(rubric).worst
    counted = [p for p in parts if p.criterion.weight]
    score = _score(rubric, counted, best=best != rubric.negate)
    gated = any(p.gated for p in parts)
    passed = meets(rubric, score) and not gated
    if rubric.strict:
        passed = passed and all(p.contribution == 1 for p in counted)
    elif rubric.threshold is None:
        passed = passed and all(p.holds for p in counted)
    return Extreme(1 - score, passed=not passed, gated=gated) if rubric.negate else Extreme(score, passed, gated)


def _score(rubric: Rubric, counted: Sequence[_Part], *, best: bool) -> float:
    """Return what *counted* come to, before any negation."""
    if not counted:  # what counts does not apply
        return 1.0
    if rubric.aggregation == "min":
        return min(p.contribution for p in counted)
    earning = [p for p in counted if p.criterion.polarity != "penalty"]
    penalties = [p for p in counted if p.criterion.polarity == "penalty"]
    if rubric.aggregation != "points" or not earning:
        return _mean(counted)
    score = share_of_points(*([(p.contribution, p.criterion.weight) for p in those] for those in (earning, penalties)))
    if penalties and all(p.leaves for p in earning):
        # Should the judge abstain from all that earns, the penalties are averaged, and half of them may be half a
        # point where they had eaten up all points: the one case in which leaving is no mean of staying as 0 and as 1.
        score = (max if best else min)(score, _mean(penalties))
    return score


def _mean(parts: Sequence[_Part]) -> float:
    return mean([p.contribution for p in parts], [p.criterion.weight for p in parts])


def _coverage(parts: Sequence[_Part]) -> float:
    """Return the resolved share of the weight: 1 only if all of it is, however little is missing."""
    if not parts:
        return 0.0
    if all(p.resolved == 1 for p in parts):
        return 1.0
    counted = [p for p in parts if p.criterion.weight]
    share = mean([p.resolved for p in counted], [p.criterion.weight for p in counted]) if counted else 1.0
    return min(share, 1 - TOLERANCE)
