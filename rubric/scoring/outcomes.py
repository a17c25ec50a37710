"""
Turn findings into a score, its bounds and a verdict: pure, exact, and the same for one judge, a jury and a panel.

Everything works on *contributions*: the place of a criterion in 0..1 with 1 as good, so guards and penalties contribute
1 - score, and `rubric.values.aggregations` makes one score of them. What is unknown is resolved twice, at its worst and
at its best; the two extremes are the bounds. That holds because every aggregation is monotone: a better contribution
never makes a worse score, and never fails a gate. (The one exception, points beside criteria that may leave the mean,
is handled in `_score`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean
from typing import Literal, assert_never

from attrs import define, frozen

from rubric.internals.containers import NoTruth
from rubric.internals.frozen_map import FrozenMap, Memo
from rubric.values.aggregations import COMBINATIONS, Combination, exact, mean
from rubric.values.answers import EVEN, JudgeAnswer, Unit, YesNo
from rubric.values.checks import Check, Unsupported
from rubric.values.criteria import Criterion
from rubric.values.findings import Abstained, Finding, NotApplicable, Scored, Unjudged
from rubric.values.rubrics import Rubric

TOLERANCE = 1e-9
"""
How far below a threshold a score may lie and still meet it.

Judges and users write decimals, which floats only approximate: the exact mean of the floats 0.1 and 0.7 rounds to
0.39999999999999997, and must meet 0.4. Such errors are below 1e-15, and no two scores that mean something else are as
near as 1e-9.
"""

Verdict = Literal["pass", "borderline", "fail"]


# -- medians ---------------------------------------------------------------------------------------------


def median(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted median; where half of the weight lies on each side, the middle of the two."""
    return fmean(medians(values, weights))


def medians(values: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """Return the lower and the upper weighted median; they differ where half of the weight lies on each side."""
    ordered = sorted(zip(values, map(Fraction, weights), strict=True))
    half, seen = sum((weight for _, weight in ordered), Fraction()) / 2, Fraction()
    for index, (value, weight) in enumerate(ordered):
        seen += weight
        # Relative, since weights may be of any size: 0.1 + 0.2 on one side and 0.3 on the other are halves.
        if abs(seen - half) <= Fraction(TOLERANCE) * half and index + 1 < len(ordered):
            return value, ordered[index + 1][0]
        if seen > half:
            return value, value
    return ordered[-1][0], ordered[-1][0]


# -- outcomes --------------------------------------------------------------------------------------------


@frozen
class Extreme(NoTruth):
    """The result of a rubric when everything unknown turns out one way."""

    score: float
    passed: bool
    gated: bool = False


@frozen
class Outcome(NoTruth):
    """
    The result of a rubric's findings.

    Args:
        worst: The outcome if everything unknown were against the candidate.
        best: The outcome if everything unknown were for it.
        score: The score in 0..1; None while something is unknown.
        verdict: `pass`, `borderline` or `fail`; None while something is unknown.
        gates: The ids of the criteria that failed the grade whatever the mean is; before any negation.
        contributions: The contribution of each resolved criterion, by id.
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
    """Return the outcome of a vote that was not cast or has no result. Negation turns its gates over like the rest."""
    worst = Extreme(0.0, passed=False, gated=not rubric.negate)
    best = Extreme(1.0, passed=True, gated=rubric.negate)
    return Outcome(worst, best, None, None, coverage=0.0)


def outcome(rubric: Rubric, findings: Sequence[Finding]) -> Outcome:
    """Return the outcome of *findings*, one for each of `rubric.judged` in that order, under *rubric*."""
    if {NotApplicable}.issuperset(map(type, findings)):
        whole = Extreme(1.0, passed=True)
        return Outcome(whole, whole, 1.0, "pass", vacuous=True)
    low = _parts(rubric, findings, best=rubric.negate)
    coverage = _coverage(low)
    worst = best = _extreme(rubric, low, best=False)
    if coverage != 1:
        best = _extreme(rubric, _parts(rubric, findings, best=not rubric.negate), best=True)
        score = verdict = None
    else:
        score, verdict = worst.score, verdict_of(rubric, worst)
    known = [part for part in low if part.resolved == 1]
    contributions = FrozenMap({part.id: part.contribution for part in known})
    gates = tuple([part.id for part in known if part.gated])
    return Outcome(worst, best, score, verdict, gates, contributions, coverage)


def verdict_of(rubric: Rubric, extreme: Extreme) -> Verdict:
    """Return the verdict; a failed gate is never borderline. In a negated rubric a failed gate is welcome."""
    if extreme.passed:
        return "pass"
    gated = extreme.gated and not rubric.negate
    if rubric.borderline is not None and not gated and extreme.score >= rubric.borderline - TOLERANCE:
        return "borderline"
    return "fail"


def meets(rubric: Rubric, score: float) -> bool:
    """True if *score*, before any negation, meets what the rubric asks of its mean."""
    if rubric.strict:
        return score >= 1 - TOLERANCE
    return rubric.threshold is None or score >= rubric.threshold - TOLERANCE


# -- what a rubric asks of a criterion -------------------------------------------------------------------


def is_substantiated(rubric: Rubric, criterion: Criterion, finding: Scored) -> bool:
    """
    True if *finding* has the evidence that it needs.

    An absence has no span to show: a clean guard, a clean penalty, a fact without a conflict, an unmet criterion are
    exempt.
    """
    if not asks_evidence(rubric, criterion) or any(e.verified for e in finding.evidence):
        return True
    score = finding.score
    if finding.weighted and finding.value is not None and isinstance(criterion.answer, JudgeAnswer):
        # The judge gave its evidence for the answer that it wrote. A weighted "no" scores a little above 0; to ask it
        # for a quote would fail every unmet criterion.
        score = criterion.answer.place(finding.value)
    match criterion.polarity:
        case "guard" | "penalty":
            return score < EVEN
        case "contradiction":
            return score >= EVEN
        case _:  # votes pooled without a verified quote all say "unmet", even where weighting puts them above 0
            return score == 0 or bool(finding.votes)


def asks_evidence(rubric: Rubric, criterion: Criterion) -> bool:
    """True if the judge must quote the candidate for *criterion*: trees, checks, nested rubrics have no quotes."""
    return isinstance(criterion.answer, JudgeAnswer) and (
        rubric.evidence if criterion.evidence is None else criterion.evidence
    )


def abstainable(rubric: Rubric, criterion: Criterion) -> bool:
    """True if the judge may answer *criterion* with "cannot tell"."""
    return isinstance(criterion.answer, JudgeAnswer) and rubric.policy(criterion) != "forbid"


_PLAIN = (YesNo, Check)


@frozen
class _Rule:
    """The scoring rule of criteria that differ only in their words; a rubric works it out once for all candidates."""

    criterion: Criterion  # one of them
    weight: float
    unwanted: bool
    penalty: bool
    quoted: bool
    policy: str | float
    abstainable: bool
    gate: float | None  # the contribution below which it fails the grade; None: it is not a gate
    lack_gates: bool  # whether a quote that is missing fails the grade: not where nothing counts on it
    zero_gates: bool  # whether 0 fails even a gate of 0, as a "no" does
    plain: bool  # answered with yes or no

    @classmethod
    def of(cls, rubric: Rubric, criterion: Criterion) -> _Rule:
        plain, policy, gate = isinstance(criterion.answer, _PLAIN), rubric.policy(criterion), rubric.gate_of(criterion)
        return cls(
            criterion,
            criterion.weight,
            unwanted=criterion.is_unwanted,
            penalty=criterion.polarity == "penalty",
            quoted=asks_evidence(rubric, criterion),
            policy=policy,
            abstainable=policy != "forbid" and abstainable(rubric, criterion),
            gate=gate,
            lack_gates=gate is not None or (criterion.weight > 0 and criterion.polarity != "penalty"),
            zero_gates=plain or criterion.polarity == "guard",
            plain=plain,
        )

    def gates(self, contribution: float) -> bool:
        """True if *contribution* fails the grade."""
        no = self.zero_gates and contribution == 0
        return self.gate is not None and (no or contribution < self.gate - TOLERANCE)


# -- criteria at one extreme -----------------------------------------------------------------------------


@define
class Part:
    """One criterion at one extreme."""

    rule: _Rule
    contribution: float
    holds: bool  # what the criterion says by itself, where no threshold decides
    gated: bool
    resolved: float = 1.0  # the share of it that is known
    leaves: bool = False  # whether it may yet leave the mean: the judge may abstain, and that is excluded
    id: str = ""


def _parts(rubric: Rubric, findings: Sequence[Finding], *, best: bool) -> list[Part]:
    rules = rubric.derive(("rules",), lambda: _rules(rubric))
    parts = list[Part]()
    for criterion, rule, finding in zip(rubric.judged, rules, findings, strict=True):
        part = _part(rubric, rule, finding, best=best)
        if part is not None:
            part.id = criterion.id
            parts.append(part)
    if [part for part in parts if part.rule.weight]:
        return parts
    lost = any(rule.weight and isinstance(finding, Abstained) for rule, finding in zip(rules, findings, strict=True))
    return [] if lost else parts


def _rules(rubric: Rubric) -> tuple[_Rule, ...]:
    """Return the rule of each criterion; those that are asked alike share one."""
    known: dict[object, _Rule] = {}
    rules = list[_Rule]()
    for one in rubric.judged:
        key = id(one.answer), one.polarity, one.weight, one.required, one.min_score, one.evidence, one.abstain
        if key not in known:
            known[key] = _Rule.of(rubric, one)
        rules.append(known[key])
    return tuple(rules)


def _part(rubric: Rubric, rule: _Rule, finding: Finding, *, best: bool) -> Part | None:
    match finding:  # the usual case first
        case Scored() | Unjudged() if isinstance(rule.criterion.answer, Rubric):
            inner = _inner(finding, rule.criterion.answer)
            return _nested_part(rule, rule.criterion.answer, inner, best=best)
        case Scored() if rule.quoted and not is_substantiated(rubric, rule.criterion, finding):
            return Part(rule, 0.0, holds=False, gated=rule.lack_gates)
        case Scored():
            part = _judged_part(rule, finding.score, flag=finding.flag)
            if finding.flag is not None and isinstance(rule.criterion.answer, Check):
                part.holds = finding.flag != rule.unwanted
            if finding.weighted or finding.votes:
                part.holds = part.holds or _leans_well(rubric, rule, finding)
            return part
        case Unjudged():
            return _open(rule, finding.low, finding.high, best=best)
        case Abstained():
            return _abstained_part(rule, best=best)
        case NotApplicable():
            return None
        case never:
            assert_never(never)


def failing(rubric: Rubric, findings: Sequence[Finding]) -> list[str]:
    """Return the ids of the criteria that do not hold by themselves: each fails a rubric without a threshold."""
    parts = _parts(rubric, findings, best=False)
    return [part.id for part in parts if part.rule.weight and not part.holds]


@Memo
def _inner(finding: Scored | Unjudged, rubric: Rubric) -> Outcome:
    """Return the outcome of the findings of a nested rubric, worked out once a finding."""
    # Else each level works out all levels below it again, at both extremes, and 64 levels take four times as long as
    # 32. Findings are told apart by identity; under another rubric (a rescore) the outcome is worked out anew.
    return outcome(rubric, finding.parts) if finding.parts else unknown(rubric)


def _judged_part(rule: _Rule, score: float, *, flag: bool | None) -> Part:
    contribution, disowned = 1 - score if rule.unwanted else score, False
    holds = contribution == 1
    if isinstance(answer := rule.criterion.answer, Unit):
        disowned = answer.flag and flag is False
        holds = not disowned
    most_say_no = rule.plain and contribution < EVEN
    gated = disowned or rule.gates(0.0 if most_say_no else contribution)
    return Part(rule, contribution, holds, gated)


def _leans_well(rubric: Rubric, rule: _Rule, finding: Scored) -> bool:
    """True if a weighted yes or no, or each vote in a pool of them, speaks for the candidate."""
    if not isinstance(rule.criterion.answer, YesNo):
        return False
    votes = [vote for vote in finding.votes if isinstance(vote, Scored)] or [finding]
    if not any(vote.weighted for vote in votes):
        return False
    backed = all(is_substantiated(rubric, rule.criterion, vote) for vote in votes)
    return backed and all(vote.score < EVEN if rule.unwanted else vote.score >= EVEN for vote in votes)


def _open(rule: _Rule, low: float, high: float, *, best: bool) -> Part:
    """Return a criterion whose verdict is missing, and may lie anywhere from *low* to *high*."""
    # A judge may still abstain where it is allowed to, or fail to quote: then any contribution is possible, and a gate.
    if rule.quoted or rule.abstainable:
        low, high = 0.0, 1.0
    part = _judged_part(rule, high if best != rule.unwanted else low, flag=best)
    abstains = rule.policy if rule.abstainable else None
    dreaded = (rule.quoted and rule.lack_gates) or abstains == "fail"
    part.gated = part.gated or (dreaded and not best)
    part.resolved, part.leaves = 0.0, abstains == "exclude"
    return part


def _nested_part(rule: _Rule, rubric: Rubric, inner: Outcome, *, best: bool) -> Part:
    criterion, unwanted = rule.criterion, rule.unwanted
    extreme = inner.best if best != unwanted else inner.worst
    score = float(extreme.passed) if rubric.all_or_nothing else extreme.score
    contribution = 1 - score if unwanted else score
    holds = extreme.passed != unwanted
    too_low = criterion.min_score is not None and contribution < criterion.min_score - TOLERANCE
    # To an unwanted rubric a gate that fails in it is not its worst: that is to be met, and is neither extreme of it.
    bound = (all if best else any)((inner.worst.gated, inner.best.gated)) if unwanted else extreme.gated
    binds = rubric.binding and not rubric.negate
    gated = too_low or ((criterion.required or criterion.polarity == "guard") and not holds) or (binds and bound)
    return Part(rule, contribution, holds, gated, inner.coverage)


def _abstained_part(rule: _Rule, *, best: bool) -> Part | None:
    match rule.policy:
        case "exclude":
            return None
        case "forbid":
            return _open(rule, 0.0, 1.0, best=best)
        case "fail":
            return Part(rule, 0.0, holds=False, gated=True)
        case _ if rule.penalty:  # no points are not a loss, and a part of none is none
            return Part(rule, 1.0, holds=True, gated=False)
        case credit:
            part = 0.0 if credit == "zero" else float(credit)
            return Part(rule, part, holds=part == 1, gated=rule.gates(part))


# -- for those who ask "what if" ---------------------------------------------------------------------------


@frozen
class Rules:
    """What *rubric* makes of answers that nobody has given: of parts that are certain, and of findings."""

    rubric: Rubric

    def part(self, criterion: Criterion, inner: float | Extreme) -> Part:
        """Return *criterion* for a judge's score, with the pass flag that goes with it, or for its rubric's result."""
        rule = _Rule.of(self.rubric, criterion)
        if isinstance(inner, Extreme):
            assert isinstance(criterion.answer, Rubric)  # noqa: S101 - for type checkers
            return _nested_part(rule, criterion.answer, Outcome(inner, inner, inner.score, None), best=False)
        return _judged_part(rule, inner, flag=(inner < EVEN) == rule.unwanted)

    def result(self, parts: Sequence[Part]) -> Extreme:
        """Return the result of *parts*, of the criteria that apply."""
        return _extreme(self.rubric, parts, best=False) if parts else Extreme(1.0, passed=True)

    def outcome(self, findings: Sequence[Finding]) -> Outcome:
        """Return the outcome of *findings*, one for each of `rubric.judged` in that order."""
        return outcome(self.rubric, findings)

    def meets(self, score: float) -> bool:
        """True if *score*, before any negation, meets what the rubric asks of its mean."""
        return meets(self.rubric, score)

    def earns(self, criterion: Criterion) -> bool:
        """False if *criterion* takes points off those that others earn."""
        if criterion.polarity != "penalty" or not self.combination.subtracts:
            return True
        return not any(one.weight and one.polarity != "penalty" for one in self.rubric.judged)

    @property
    def combination(self) -> Combination:
        """How the rubric combines."""
        return COMBINATIONS[self.rubric.aggregation]

    @property
    def whole(self) -> Fraction:
        """The weight of all that earns, which is the score 1."""

        def add_up() -> Fraction:
            return sum((exact(c.weight) for c in self.rubric.judged if self.earns(c)), Fraction())

        return self.rubric.derive(("whole",), add_up)

    def value(self, part: Part) -> Fraction:
        """Return what *part* adds to the state of a combination."""
        criterion = part.rule.criterion
        return self.combination.value(exact(part.contribution), exact(criterion.weight), earns=self.earns(criterion))

    def finish(self, state: Fraction | float, gated: bool, fails: bool, /) -> Extreme:  # noqa: FBT001 - a state
        """Return the result of the final *state* of a combination; *fails*: whatever its score is."""
        score = self.combination.finish(state, self.whole)
        passed = not fails and meets(self.rubric, float(score))
        return (
            Extreme(float(1 - score), not passed, gated) if self.rubric.negate else Extreme(float(score), passed, gated)
        )


# -- from criteria to a score ----------------------------------------------------------------------------


def _extreme(rubric: Rubric, parts: Sequence[Part], *, best: bool) -> Extreme:
    if not parts:  # every judge abstained: nothing is known
        return unknown(rubric).best if best else unknown(rubric).worst
    counted = [part for part in parts if part.rule.weight]
    score = _score(rubric, counted, best=best != rubric.negate)
    gated = True in [part.gated for part in parts]
    passed = meets(rubric, score) and not gated
    if rubric.strict:
        passed = passed and all(part.contribution == 1 for part in counted)
    elif rubric.threshold is None:
        passed = passed and all(part.holds for part in counted)
    return Extreme(1 - score, not passed, gated) if rubric.negate else Extreme(score, passed, gated)


def _score(rubric: Rubric, counted: Sequence[Part], *, best: bool) -> float:
    """Return the score of *counted*, before any negation."""
    if not counted:  # what counts does not apply
        return 1.0
    combination = COMBINATIONS[rubric.aggregation]
    score = _combine(combination, counted)
    if not combination.subtracts:
        return score
    penalties = [part for part in counted if part.rule.penalty]
    if penalties and all(part.leaves for part in counted if not part.rule.penalty):
        # Should the judge abstain from all that earns, the penalties are averaged, and half of them may be half a
        # point where they had eaten up all points, the one case where leaving is not a mean of staying as 0 and as 1.
        score = (max if best else min)(score, _combine(combination, penalties))
    return score


def _combine(combination: Combination, parts: Sequence[Part]) -> float:
    values = [part.contribution for part in parts]
    if len(values) == 1:  # which is the score in each aggregation: a mean, the worst, or points
        return float(values[0])
    rules = [part.rule for part in parts]
    return combination.score(values, [rule.weight for rule in rules], [rule.penalty for rule in rules])


def skipped_weight(rubric: Rubric) -> float:
    """Return the share of the weight in *rubric* that graders have which the library lacks and the caller skipped."""
    counted = [criterion for criterion in rubric.criteria if criterion.weight]
    if not counted:
        return 0.0
    return mean([_skipped_weights(criterion) for criterion in counted], [criterion.weight for criterion in counted])


def _skipped_weights(criterion: Criterion) -> float:
    match criterion.answer:
        case Unsupported(otherwise="skip"):
            return 1.0
        case Rubric() as inner:
            return skipped_weight(inner)
        case _:
            return 0.0


def _coverage(parts: Sequence[Part]) -> float:
    """Return the resolved share of the weight: 1 only if all of it is, however little is missing."""
    if False not in [part.resolved == 1 for part in parts]:
        return 1.0 if parts else 0.0
    counted = [part for part in parts if part.rule.weight]
    share = mean([part.resolved for part in counted], [part.rule.weight for part in counted]) if counted else 1.0
    return min(share, 1 - TOLERANCE)
