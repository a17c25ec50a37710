"""From findings to a score, bounds and a verdict: every rule by itself, and the laws that hold for all of them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Choices, Contains, Criterion, Levels, Rubric, Unit, YesNo, ask, grade, plan
from rubric.errors import DefinitionError
from rubric.results import Abstained, Evidence, NotApplicable, Scored, Unjudged
from rubric.scoring import outcomes
from rubric.scoring.outcomes import Outcome, outcome
from rubric.values.aggregations import mean
from rubric.values.findings import Finding
from tests.examples import examples
from tests.findings import GONE, INVENTED, QUOTED, Known, at_stage, cases
from tests.rows import each_row

UNITS = Rubric().scores("a").scores("b")


def units(a: float, b: float) -> tuple[Finding, ...]:
    """Return the findings of two criteria that were scored."""
    return (Scored("a", a), Scored("b", b))


def one(criterion: Criterion, finding: Finding, **rule: Any) -> Outcome:
    """Return what a rubric of one criterion comes to."""
    return outcome(Rubric(criteria=[criterion], **rule), [finding])


# -- the mean and the threshold ----------------------------------------------------------------------------


def test_the_score_is_the_weighted_mean() -> None:
    """Sum of weight times contribution, over the sum of the weights."""
    assert outcome(UNITS.revising("a", weight=3), units(1.0, 0.6)).score == 0.9


def test_min_is_the_worst_contribution() -> None:
    """Under `min` weights do not matter."""
    assert outcome(UNITS.revising("a", weight=9).by_worst(), units(1.0, 0.3)).score == 0.3


@pytest.mark.parametrize(("score", "passed"), [(0.7, True), (0.7 - 1e-9, True), (0.7 - 2e-9, False), (0.69, False)])
def test_the_threshold_has_a_tolerance_of_a_billionth(score: float, passed: bool) -> None:
    """A score that is at most 1e-9 below the threshold meets it."""
    assert one(Criterion("a", answer=Unit()), Scored("a", score)).passed is passed


def test_a_mean_that_is_exactly_the_threshold_meets_it() -> None:
    """Weights 2 and 1 with 9 and 6 of 10 are 0.8, where naive arithmetic says 0.7999999999999999."""
    rubric = Rubric(threshold=0.8).rates("a", weight=2).rates("b")
    came_to = outcome(rubric, units(0.9, 0.6))
    assert came_to.passed is True
    assert came_to.score == pytest.approx(0.8, abs=1e-15)


def test_a_threshold_of_zero_is_a_threshold() -> None:
    """Everything meets a threshold of 0."""
    assert one(Criterion("a", answer=Unit()), Scored("a", 0.0), threshold=0).passed is True


def test_strict_wants_every_contribution_to_be_one() -> None:
    """A mean of 0.995 is not strictly a pass, and neither is one that is short of 1 by less than the tolerance."""
    rubric = UNITS.strictly()
    assert outcome(rubric, units(1.0, 1.0)).passed is True
    assert outcome(rubric, units(1.0, 0.99)).passed is False
    assert outcome(rubric, units(1.0, math.nextafter(1.0, 0.0))).passed is False


@pytest.mark.parametrize(
    ("score", "verdict"), [(0.8, "pass"), (0.79, "borderline"), (0.6, "borderline"), (0.59, "fail")]
)
def test_a_fail_within_the_band_is_borderline(score: float, verdict: str) -> None:
    """With a threshold of 0.8 and a band from 0.6, as in the first generation of AgentV."""
    rule = {"threshold": 0.8, "borderline": 0.6}
    assert one(Criterion("a", answer=Unit()), Scored("a", score), **rule).verdict == verdict


def test_what_fails_a_gate_is_not_borderline() -> None:
    """A gate fails the grade outright."""
    rubric = UNITS.revising("b", required=True).borderline_at(0.5)
    assert outcome(rubric, units(0.9, 0.4)).verdict == "fail"


# -- no threshold: the judge's own flag --------------------------------------------------------------------


@pytest.mark.parametrize(("score", "flag"), [(0.0, True), (1.0, False), (0.3, True)])
def test_without_a_threshold_the_judges_flag_decides(score: float, flag: bool) -> None:
    """The score is reported; pass is what the judge said."""
    came_to = one(Criterion("a", answer=Unit(flag=True)), Scored("a", score, flag=flag), threshold=None)
    assert (came_to.score, came_to.passed) == (score, flag)


def test_without_a_threshold_every_criterion_must_hold() -> None:
    """One unmet criterion of yes and no fails."""
    rubric = Rubric(threshold=None).expects("a", weight=99).expects("b")
    assert outcome(rubric, units(1.0, 1.0)).passed is True
    assert outcome(rubric, units(1.0, 0.0)).passed is False


def test_with_a_threshold_both_the_flag_and_the_score_count() -> None:
    """A false flag fails what meets the threshold."""
    criterion = Criterion("a", answer=Unit(flag=True))
    assert one(criterion, Scored("a", 0.9, flag=False)).passed is False
    assert one(criterion, Scored("a", 0.9, flag=True)).passed is True
    assert one(criterion, Scored("a", 0.6, flag=True)).passed is False


# -- gates -------------------------------------------------------------------------------------------------


def test_a_required_criterion_below_the_threshold_fails_a_high_mean() -> None:
    """Weights 9 and 1 with 1.0 and 0.6: the score 0.96 is reported, and the grade fails."""
    came_to = outcome(UNITS.revising("a", weight=9).revising("b", required=True), units(1.0, 0.6))
    assert (came_to.score, came_to.passed, came_to.gates) == (0.96, False, ("b",))


def test_a_criterion_that_is_not_required_does_not_gate() -> None:
    """The same without the gate passes."""
    assert outcome(UNITS.revising("a", weight=9), units(1.0, 0.6)).passed is True


@pytest.mark.parametrize(("score", "gates"), [(0.9, ()), (0.89, ("b",))])
def test_min_score_is_the_criterions_own_gate_value(score: float, gates: tuple[str, ...]) -> None:
    """It gates with or without `required`, and in place of the rubric's threshold."""
    assert outcome(UNITS.revising("b", min_score=0.9), units(1.0, score)).gates == gates
    assert outcome(UNITS.revising("b", min_score=0.9, required=True), units(1.0, score)).gates == gates


def test_a_low_min_score_lowers_the_gate() -> None:
    """A required criterion with a gate of 0.3 lets 0.4 through under a threshold of 0.7."""
    assert outcome(UNITS.revising("b", min_score=0.3, required=True), units(1.0, 0.4)).gates == ()


def test_a_gate_has_the_same_tolerance() -> None:
    """A contribution that is a rounding error below its gate value meets it."""
    assert outcome(UNITS.revising("b", min_score=0.8), units(1.0, 0.7999999999999999)).gates == ()


def test_an_unmet_required_yes_or_no_gates_under_any_threshold() -> None:
    """A no is a no, even where the threshold is 0."""
    assert one(Criterion("a", required=True), Scored("a", 0.0), threshold=0).passed is False


def test_a_pooled_yes_or_no_gates_as_more_than_half_say() -> None:
    """A third of the judges say yes: for a gate that is a no, even where the threshold is lower."""
    criterion = Criterion("a", required=True)
    assert one(criterion, Scored("a", 1 / 3), threshold=0.1).gates == ("a",)
    assert one(criterion, Scored("a", 2 / 3), threshold=0.1).gates == ()


# -- polarities --------------------------------------------------------------------------------------------


def test_a_clean_guard_contributes_one() -> None:
    """Not present is good."""
    came_to = one(Criterion("leak", polarity="guard"), Scored("leak", 0.0))
    assert (came_to.score, came_to.passed) == (1.0, True)


def test_a_guard_that_is_found_present_fails_a_high_mean() -> None:
    """Weights 9 and 1: 0.9 is reported, and the guard gates."""
    rubric = Rubric().scores("a", weight=9).forbids("b")
    came_to = outcome(rubric, units(1.0, 1.0))
    assert (came_to.score, came_to.passed, came_to.gates) == (0.9, False, ("b",))


def test_a_guard_that_is_partly_present_gates_on_its_contribution() -> None:
    """Present by 0.4 contributes 0.6, which is below the threshold of 0.7."""
    came_to = outcome(Rubric().scores("a").adding(Criterion("b", answer=Unit(), polarity="guard")), units(1.0, 0.4))
    assert (came_to.score, came_to.gates) == (0.8, ("b",))


def test_a_guard_that_is_present_gates_even_at_threshold_zero() -> None:
    """What must not hold and does is never a pass."""
    assert one(Criterion("a", polarity="guard"), Scored("a", 1.0), threshold=0).passed is False


@pytest.mark.parametrize("polarity", ["contradiction", "correctness"])
def test_contradiction_and_correctness_are_not_inverted(polarity: Any) -> None:
    """Their score is their contribution, and they gate only where they are required."""
    criterion = Criterion("a", polarity=polarity)
    assert one(criterion, Scored("a", 1.0)).score == 1.0
    assert outcome(Rubric(criteria=[criterion]).scores("b", weight=9), units(0.0, 1.0)).passed is True


# -- not applicable, abstained -----------------------------------------------------------------------------


def test_what_does_not_apply_is_neither_in_the_mean_nor_a_gate() -> None:
    """A required criterion that does not apply costs nothing."""
    came_to = outcome(UNITS.revising("a", required=True), (NotApplicable("a"), Scored("b", 0.8)))
    assert (came_to.score, came_to.passed, came_to.gates) == (0.8, True, ())


def test_if_nothing_applies_the_pass_is_vacuous() -> None:
    """Everything not applicable: 1, passed, and marked so."""
    came_to = outcome(UNITS, (NotApplicable("a"), NotApplicable("b")))
    assert (came_to.score, came_to.passed, came_to.vacuous) == (1.0, True, True)


def test_a_vacuous_pass_is_not_turned_over() -> None:
    """There is nothing to negate where nothing applied."""
    came_to = outcome(Rubric(negate=True).scores("a"), (NotApplicable("a"),))
    assert (came_to.score, came_to.passed) == (1.0, True)


@pytest.mark.parametrize(
    ("policy", "score", "passed"),
    [("exclude", 0.9, True), ("zero", 0.45, False), ("fail", 0.45, False), (0.5, 0.7, True), (1, 0.95, True)],
)
def test_the_policy_says_what_an_abstention_becomes(policy: Any, score: float, passed: bool) -> None:
    """Out of the mean, a contribution of 0, that and a failed gate, or a partial credit."""
    came_to = outcome(UNITS.abstaining(policy), (Scored("a", 0.9), Abstained("b")))
    assert came_to.score == pytest.approx(score)
    assert came_to.passed is passed


def test_fail_gates_where_zero_does_not() -> None:
    """With a weight of 9 for the rest, `zero` passes and `fail` does not."""
    rubric, found = UNITS.revising("a", weight=9), (Scored("a", 1.0), Abstained("b"))
    assert outcome(rubric.abstaining("zero"), found).passed is True
    assert outcome(rubric.abstaining("fail"), found).gates == ("b",)


def test_an_abstention_without_a_policy_is_not_a_verdict() -> None:
    """Under `forbid` it stays unknown."""
    came_to = outcome(UNITS, (Scored("a", 1.0), Abstained("b")))
    assert (came_to.score, came_to.bounds, came_to.coverage) == (None, (0.5, 1.0), 0.5)


def test_a_criterions_own_policy_comes_before_the_rubrics() -> None:
    """`zero` of the criterion wins over `exclude` of the rubric."""
    rubric = UNITS.abstaining("exclude").revising("b", abstain="zero")
    assert outcome(rubric, (Scored("a", 1.0), Abstained("b"))).score == 0.5


def test_a_guard_that_is_abstained_from_is_no_clean_guard() -> None:
    """`zero` is a contribution of 0 whatever the polarity, and a guard that contributes 0 gates."""
    rubric = Rubric(abstain="zero").scores("a", weight=9).forbids("b")
    came_to = outcome(rubric, (Scored("a", 1.0), Abstained("b")))
    assert (came_to.score, came_to.gates) == (0.9, ("b",))


def test_if_every_judge_abstains_nothing_is_known() -> None:
    """All excluded: no score, no verdict, bounds as wide as they can be."""
    came_to = outcome(UNITS.abstaining("exclude"), (Abstained("a"), Abstained("b")))
    assert (came_to.score, came_to.bounds, came_to.passed, came_to.coverage) == (None, (0.0, 1.0), None, 0.0)


# -- evidence ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("evidence", [(), INVENTED])
def test_a_verdict_without_evidence_scores_nothing_and_gates(evidence: tuple[Evidence, ...]) -> None:
    """A missing quote and an invented one are alike."""
    rubric = UNITS.with_evidence()
    came_to = outcome(rubric, (Scored("a", 1.0, evidence=QUOTED), Scored("b", 1.0, evidence=evidence)))
    assert (came_to.score, came_to.passed, came_to.gates) == (0.5, False, ("b",))


def test_one_verified_quote_is_enough() -> None:
    """A further quote that is not found does no harm."""
    assert one(Criterion("a", evidence=True), Scored("a", 1.0, evidence=INVENTED + QUOTED)).passed is True


@pytest.mark.parametrize(
    ("polarity", "score"), [("guard", 0.0), ("contradiction", 1.0), ("satisfy", 0.0), ("correctness", 0.0)]
)
def test_an_absence_needs_no_evidence(polarity: Any, score: float) -> None:
    """A clean guard, a fact that nothing conflicts with and an unmet criterion have no span to show."""
    assert one(Criterion("a", polarity=polarity, evidence=True), Scored("a", score)).gates == ()


@pytest.mark.parametrize(("polarity", "score"), [("guard", 1.0), ("contradiction", 0.0), ("correctness", 0.2)])
def test_a_presence_needs_evidence(polarity: Any, score: float) -> None:
    """What the judge says is there must be shown; a partial score too."""
    criterion = Criterion("a", answer=Unit(), polarity=polarity, evidence=True)
    assert one(criterion, Scored("a", score), threshold=0).gates == ("a",)


def test_a_criterion_can_be_exempt_from_evidence() -> None:
    """`evidence=False` of the criterion wins over the rubric's."""
    assert one(Criterion("a", evidence=False), Scored("a", 1.0), evidence=True).passed is True


@pytest.mark.parametrize("answer", [Contains("x"), ask("q").yes(1).no(0)])
def test_code_and_trees_need_no_evidence(answer: Any) -> None:
    """There is nobody to quote."""
    assert one(Criterion("a", answer=answer), Scored("a", 1.0), evidence=True).passed is True


# -- nested and negated ------------------------------------------------------------------------------------


def nested(**options: Any) -> Rubric:
    """Return a rubric with another one in it, which passes from 0.5."""
    return Rubric().includes(Rubric(threshold=0.5).scores("x"), id="b", **options)


def found(score: float) -> tuple[Finding, ...]:
    """Return the finding of a nested rubric that came to *score*."""
    return (Scored("b", score, parts=(Scored("x", score),)),)


def test_a_nested_rubric_contributes_its_score() -> None:
    """It is one criterion of the outer one."""
    assert outcome(nested(), found(0.6)).score == 0.6


def test_the_same_finding_is_judged_anew_under_another_rubric() -> None:
    """What is remembered of a nested finding belongs to one rubric: with other weights the outcome is another."""
    inner = Rubric("inner", criteria=[Criterion("x", id="x"), Criterion("y", id="y")])
    finding = Scored("b", 0.5, parts=(Scored("x", 1.0), Scored("y", 0.0)))

    def score(inner: Rubric) -> float | None:
        return outcome(Rubric(criteria=[Criterion("b", id="b", answer=inner)]), [finding]).score

    assert score(inner) == 0.5
    assert score(inner.revising("x", weight=3)) == 0.75
    assert score(inner.by_worst()) == 0
    assert score(inner) == 0.5


def test_each_level_of_a_deep_rubric_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grading concludes every level, from the innermost one: none works out again what lies below it."""
    counted: list[Rubric] = []

    def parts(rubric: Rubric, *given: Any, **options: Any) -> Any:
        counted.append(rubric)
        return original(rubric, *given, **options)

    original = outcomes._parts
    monkeypatch.setattr(outcomes, "_parts", parts)
    rubric = Rubric("innermost", criteria=[Criterion("b", id="b")])
    finding = Scored("b", 1.0)
    for level in range(40):
        assert outcome(rubric, [finding]).score == 1
        rubric, finding = (
            Rubric(f"{level}", criteria=[Criterion("b", id="b", answer=rubric)]),
            Scored("b", 1.0, parts=(finding,)),
        )
    assert len(counted) <= 2 * 40


def test_a_required_nested_rubric_gates_by_its_own_verdict() -> None:
    """0.6 passes the inner threshold of 0.5, though it is below the outer one of 0.7."""
    assert outcome(nested(required=True), found(0.6)).gates == ()
    assert outcome(nested(required=True), found(0.4)).gates == ("b",)


def test_a_nested_guard_is_inverted() -> None:
    """A rubric that passes is found present."""
    came_to = outcome(nested(polarity="guard"), found(0.6))
    assert (came_to.score, came_to.gates) == (0.4, ("b",))


def test_negation_turns_score_and_verdict_over() -> None:
    """The score is 1 - score, and pass is fail."""
    came_to = one(Criterion("a", answer=Unit()), Scored("a", 0.75), negate=True)
    assert (came_to.score, came_to.passed) == (0.25, False)


def test_a_negated_gate_is_a_pass() -> None:
    """What fails by a gate passes when it is turned over."""
    assert one(Criterion("a", required=True), Scored("a", 0.0), negate=True).passed is True


def test_a_failure_stays_a_failure_when_negated() -> None:
    """Unknown is unknown: the bounds are turned over, no verdict appears."""
    came_to = one(Criterion("a"), Unjudged("a", GONE), negate=True)
    assert (came_to.score, came_to.bounds, came_to.passed) == (None, (0.0, 1.0), None)


# -- what is not known -------------------------------------------------------------------------------------


def test_bounds_give_the_missing_its_worst_and_its_best() -> None:
    """Weights 3 and 1: the missing quarter lies between 0 and 1."""
    came_to = outcome(UNITS.revising("a", weight=3), (Scored("a", 0.8), Unjudged("b", GONE)))
    assert came_to.bounds == pytest.approx((0.6, 0.85))
    assert (came_to.score, came_to.coverage, came_to.passed) == (None, 0.75, None)


def test_a_missing_guard_is_worst_when_it_is_present() -> None:
    """By polarity: the lowest score is that of a guard found present, and then the grade fails."""
    came_to = outcome(Rubric(threshold=0).forbids("a"), (Unjudged("a", GONE),))
    assert (came_to.worst.passed, came_to.best.passed) == (False, True)


def test_a_missing_criterion_that_can_change_nothing_leaves_a_verdict() -> None:
    """A failed gate is a fail whatever is missing; a light criterion cannot undo a pass."""
    gated = outcome(UNITS.revising("a", required=True), (Scored("a", 0.0), Unjudged("b", GONE)))
    light = outcome(UNITS.revising("a", weight=99), (Scored("a", 1.0), Unjudged("b", GONE)))
    assert (gated.passed, light.passed) == (False, True)


def test_a_missing_criterion_with_evidence_may_still_gate() -> None:
    """No quote, no pass: so a pass is not certain, however light the criterion."""
    rubric = UNITS.revising("a", weight=99).revising("b", evidence=True)
    assert outcome(rubric, (Scored("a", 1.0), Unjudged("b", GONE))).passed is None


def test_a_missing_criterion_may_still_be_abstained_from() -> None:
    """A choice between 0.5 and 0.6 that is left out of the mean leaves 0.9, so 0.9 is within the bounds."""
    rubric = Rubric(abstain="exclude").scores("a").chooses("b", {"low": 0.5, "high": 0.6})
    low, high = outcome(rubric, (Scored("a", 0.9), Unjudged("b", GONE, "", 0.5, 0.6))).bounds
    assert low <= 0.9 <= high


def test_coverage_is_one_only_if_nothing_is_missing() -> None:
    """However little the missing weight is."""
    rubric = UNITS.revising("a", weight=1e300).revising("b", weight=1e-300)
    assert outcome(rubric, (Scored("a", 1.0), Unjudged("b", GONE))).coverage < 1


def test_as_many_findings_as_criteria_are_needed() -> None:
    """A finding that is left out is a mistake, not a criterion less."""
    with pytest.raises(ValueError, match="zip"):
        outcome(UNITS, (Scored("a", 1.0),))


def test_a_thousand_criteria_have_an_exact_mean() -> None:
    """Ten contributions of 0.1 a hundred times over are 0.1."""
    rubric = Rubric(criteria=[Criterion("x", id=f"c{i}", answer=Unit()) for i in range(1_000)])
    assert outcome(rubric, [Scored(c.id, 0.1) for c in rubric.criteria]).score == 0.1


def test_rubrics_may_be_nested_fifty_deep() -> None:
    """The work grows with the depth, not with two to its power."""
    rubric, finding = Rubric().scores("x"), Scored("x", 0.9)
    for _ in range(50):
        rubric, finding = Rubric().includes(rubric, id="x"), Scored("x", 0.9, parts=(finding,))
    assert outcome(rubric, [finding]).score == 0.9


# -- laws --------------------------------------------------------------------------------------------------

Case = tuple[Rubric, tuple[Known, ...]]


@examples(100)
@given(cases(depth=2))
def test_the_score_lies_in_all_earlier_bounds(case: Case) -> None:
    """For any polarity, policy, aggregation, negation, nesting, gate and threshold; and bounds never widen."""
    rubric, facts = case
    before, then, last = (outcome(rubric, at_stage(rubric, facts, stage)) for stage in range(3))
    assert 0 <= before.bounds[0] <= then.bounds[0] <= last.bounds[0] <= last.bounds[1]
    assert last.bounds[1] <= then.bounds[1] <= before.bounds[1] <= 1
    assert last.score is None or last.bounds == (last.score, last.score)


@examples(100)
@given(cases(depth=2))
def test_a_verdict_that_is_certain_stays(case: Case) -> None:
    """True or False before everything is known is never contradicted by what comes."""
    rubric, facts = case
    before, then, last = (outcome(rubric, at_stage(rubric, facts, stage)).passed for stage in range(3))
    assert before in (None, then)
    assert then in (None, last)


@examples(100)
@given(cases())
def test_coverage_only_grows(case: Case) -> None:
    """What is known stays known, and 1 means all."""
    rubric, facts = case
    before, then, last = (outcome(rubric, at_stage(rubric, facts, stage)) for stage in range(3))
    assert 0 <= before.coverage <= then.coverage <= last.coverage <= 1
    assert (last.coverage == 1) is (last.score is not None)


@examples(100)
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_criteria_does_not_matter(case: Case, random: Any) -> None:
    """Neither to the score, nor to the bounds, nor to the verdict."""
    rubric, facts = case
    pairs = list(zip(rubric.criteria, at_stage(rubric, facts, 1), strict=True))
    random.shuffle(pairs)
    again = rubric.without(*[c.id for c in rubric.criteria]).adding(*[criterion for criterion, _ in pairs])
    shuffled = outcome(again, [finding for _, finding in pairs])
    straight = outcome(rubric, at_stage(rubric, facts, 1))
    assert (shuffled.bounds, shuffled.verdict, shuffled.passed) == (straight.bounds, straight.verdict, straight.passed)


contributed = st.one_of(st.sampled_from([0, 1, 0.0, 1.0, True, False]), st.floats(0, 1))
weighing = st.one_of(st.integers(1, 10), st.floats(1e-6, 1e6))


@given(
    st.one_of(
        st.lists(st.tuples(contributed, weighing), min_size=1),
        st.lists(st.tuples(st.booleans(), st.integers(1)), min_size=1),
    )
)
def test_a_mean_is_exact_until_its_last_rounding(pairs: list[tuple[float, float]]) -> None:
    """Whatever is short for it, as for a lone value, or for yes and no: the mean is that of fractions, rounded once."""
    whole = sum(Fraction(weight) for _, weight in pairs)
    exact = sum(Fraction(value) * Fraction(weight) for value, weight in pairs) / whole
    assert mean([value for value, _ in pairs], [weight for _, weight in pairs]) == float(exact)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(5e-324, 1.7e308)), min_size=1, max_size=8))
def test_a_mean_lies_between_its_smallest_and_its_largest_value(pairs: list[tuple[float, float]]) -> None:
    """Whatever the weights: no overflow, no NaN, no rounding beyond the ends."""
    values = [value for value, _ in pairs]
    assert min(values) <= mean(values, [weight for _, weight in pairs]) <= max(values)


@examples(100)
@given(cases())
def test_negation_is_undone_by_negation(case: Case) -> None:
    """The verdict of a negated rubric is the other one, and its bounds are mirrored; nothing applied stays a pass."""
    rubric, facts = case
    findings = at_stage(rubric, facts, 1)
    plain, other = outcome(rubric, findings), outcome(evolve(rubric, negate=not rubric.negate), findings)
    if not plain.vacuous and not all(isinstance(f, Abstained) for f in findings):
        assert other.bounds == pytest.approx((1 - plain.bounds[1], 1 - plain.bounds[0]), abs=1e-15)
        assert other.passed is (None if plain.passed is None else not plain.passed)


@pytest.mark.parametrize(
    ("answer", "low", "high"),
    [(YesNo(), 0, 1), (Levels({1: "bad", 5: "good"}), 0, 1), (Choices({"a": 0.2, "b": 1}), 0.2, 1)],
)
def test_an_unjudged_criterion_reaches_as_far_as_its_answers(answer: Any, low: float, high: float) -> None:
    """The bounds are those of the answers there are."""
    assert one(Criterion("a", answer=answer), Unjudged("a", GONE, "", low, high)).bounds == (low, high)


# -- what counts for nothing, and what binds ---------------------------------------------------------------

WATCHED = Rubric().scores("a").scores("b", weight=0)


def test_what_weighs_nothing_is_shown_and_not_counted() -> None:
    """The mean, the worst, the bounds and the strict rule leave it out."""
    assert outcome(WATCHED, units(1.0, 0.0)).score == 1
    assert outcome(WATCHED.by_worst(), units(1.0, 0.0)).score == 1
    assert outcome(WATCHED.strictly(), units(1.0, 0.0)).passed is not None
    assert outcome(WATCHED, units(1.0, 0.25)).contributions["b"] == 0.25


def test_what_weighs_nothing_still_gates() -> None:
    """A requirement is one whatever it weighs."""
    assert outcome(WATCHED.revising("b", required=True), units(1.0, 0.0)).gates == ("b",)


def test_what_weighs_nothing_and_is_missing_is_still_missing() -> None:
    """The result is not whole, though its bounds agree."""
    found = outcome(WATCHED, (Scored("a", 1.0), Unjudged("b", GONE)))
    assert (found.score, found.bounds) == (None, (1.0, 1.0))
    assert found.coverage < 1


def test_what_counts_does_not_apply_and_what_does_not_count_does() -> None:
    """There is nothing to fail but gates."""
    assert outcome(WATCHED, (NotApplicable("a"), Scored("b", 0.0))).score == 1
    assert outcome(WATCHED.revising("b", required=True), (NotApplicable("a"), Scored("b", 0.0))).passed is False


def test_an_abstention_of_all_that_counts_says_nothing() -> None:
    """What weighs nothing does not stand in for it."""
    found = outcome(WATCHED.abstaining("exclude"), (Abstained("a"), Scored("b", 1.0)))
    assert (found.score, found.bounds) == (None, (0.0, 1.0))


def test_a_rubric_in_which_nothing_counts_cannot_grade() -> None:
    """It may be built on, criterion by criterion; graded with, it is refused, and the error names the place."""
    start = Rubric().expects("a", weight=0)
    with pytest.raises(DefinitionError, match=r"^criteria: their weights sum to 0"):
        grade("x", start, "offline")
    with pytest.raises(DefinitionError, match=r"^criteria: their weights sum to 0"):
        plan("x", start, "offline")
    with pytest.raises(DefinitionError, match=r"^criteria\[0\]\.criteria: their weights sum to 0"):
        grade("x", Rubric().includes(start), "offline")
    assert grade("x", start.expects("b"), "offline").coverage == 1


@each_row(
    ("name", "value"),
    [
        ("evidence", True),
        ("abstain", "exclude"),
        ("abstain", 0.0),
        ("guidelines", "Be fair."),
        ("prompt", "{{ candidate }}"),
        ("max_steps", 2),
    ],
)
def test_a_setting_that_no_criterion_has_is_refused(name: str, value: Any) -> None:
    """Where all criteria are rubrics, each has its own; one that they all have too may stand outside."""
    inner = Rubric("inner", ["Is polite"])
    with pytest.raises(DefinitionError, match=f"^{name}: it has no effect: each criterion is a rubric"):
        evolve(Rubric().includes(inner), **{name: value}).check_weights()
    evolve(Rubric().includes(inner).expects("b"), **{name: value}).check_weights()
    evolve(Rubric().includes(evolve(inner, **{name: value})), **{name: value}).check_weights()


def test_an_all_or_nothing_rubric_counts_outside_by_its_verdict() -> None:
    """What it needs to pass is not known yet: the outer score may be all or nothing of its weight."""
    inner = Rubric("inner", threshold=0.6, all_or_nothing=True).scores("a").scores("b")
    outer = Rubric().includes(inner).expects("c", weight=3)
    scored = [Scored("inner", 0.5, parts=(Scored("a", 0.4), Scored("b", 0.6))), Scored("c", 1.0)]
    assert outcome(outer, scored).score == 0.75
    better = [Scored("inner", 0.6, parts=(Scored("a", 0.6), Scored("b", 0.6))), Scored("c", 1.0)]
    assert outcome(outer, better).score == 1.0
    assert outcome(outer, better).passed is True
    half = [Scored("inner", 0.6, parts=(Scored("a", 0.6), Unjudged("b", GONE))), Scored("c", 1.0)]
    assert outcome(outer, half).bounds == (0.75, 1.0)
    guard = Criterion("x", id="inner", polarity="guard", answer=inner)
    assert outcome(Rubric(criteria=[guard]), scored[:1]).score == 1.0


INNER = Rubric("inner").scores("a", required=True).scores("b", weight=9)
OUTER_PARTS = (Scored("inner", 0.9, parts=(Scored("a", 0.0), Scored("b", 1.0))),)


def test_a_gate_inside_a_binding_rubric_fails_the_outer_one() -> None:
    """Without `binding`, or negated, only the score counts outside."""
    assert outcome(Rubric().includes(INNER), OUTER_PARTS).passed is True
    assert outcome(Rubric().includes(evolve(INNER, binding=True)), OUTER_PARTS).gates == ("inner",)
    # What is unknown of an unwanted one may fail its score and no gate, which is none of its extremes.
    unwanted = Criterion("x", id="inner", polarity="guard", answer=evolve(INNER, binding=True, threshold=0.9))
    unknown = Unjudged("inner", GONE, parts=(Unjudged("a", GONE), Unjudged("b", GONE)))
    assert outcome(Rubric(criteria=[unwanted]), [unknown]).passed is None
    negated = evolve(INNER, binding=True, negate=True)
    assert outcome(Rubric(threshold=0.1).includes(negated), OUTER_PARTS).gates == ()
