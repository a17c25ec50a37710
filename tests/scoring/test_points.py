"""Scoring by points, and penalties: what subtracts and fails nothing."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from rubric import (
    Choices,
    Contains,
    Criterion,
    DefinitionError,
    Grade,
    Judge,
    Jury,
    Panel,
    Rubric,
    Unit,
    convert,
    dumps,
    grade,
    loads,
)
from rubric.driving import Failure
from rubric.results import Abstained, NotApplicable, Scored, Unjudged
from rubric.results.result import Ungraded
from rubric.scoring.outcomes import outcome
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.testing.scripted_model import Says, ScriptedModel
from rubric.values.findings import Finding
from tests.drive import drive
from tests.rows import each_row

GONE = Failure("timeout", "nothing came back")
HEALTH = Rubric("health").expects("good", weight=5, id="good").penalizes("bad", points=3, id="bad").by_points()


def graded(rubric: Rubric, *answers: Any) -> Grade:
    """Return the grade of *rubric* for which a judge gives *answers*."""
    result = drive(rubric, Judge(ScriptedModel([*answers])))
    assert isinstance(result, Grade)
    return result


def came_to(rubric: Rubric, *findings: Finding) -> tuple[float, float]:
    """Return the bounds of *rubric* with *findings*."""
    return outcome(rubric, findings).bounds


@pytest.mark.parametrize(
    ("good", "bad", "score"), [(True, True, 0.4), (True, False, 1.0), (False, True, 0.0), (False, False, 0.0)]
)
def test_points_met_stand_over_those_that_can_be_met(good: bool, bad: bool, score: float) -> None:
    """As in HealthBench: 5 met, 3 taken off, of 5; cut to 0..1."""
    assert graded(HEALTH, good, bad).score == score


def test_a_penalty_fails_nothing() -> None:
    """It only takes off points: what passes without them passes."""
    result = graded(HEALTH.passing_at(0.4), True, True)
    assert (result.passed, result.gates, result.contributions["bad"]) == (True, (), 0.0)


def test_points_without_penalties_are_the_weighted_average() -> None:
    """Partial answers give a part of the points."""
    rubric = Rubric().scores("a", weight=3).scores("b", weight=1)
    assert graded(rubric.by_points(), 0.5, 1).score == graded(rubric, 0.5, 1).score == 0.625


def test_a_penalty_may_be_answered_in_any_way() -> None:
    """It takes off as large a part of its points as it is found."""
    rubric = Rubric().expects("a", weight=4).scores("b", polarity="penalty", weight=2).by_points()
    assert graded(rubric, True, 0.5).score == 0.75
    menu = Choices({"never": 0, "often": 1})
    chosen = Rubric().expects("a", weight=4).chooses("b", menu, polarity="penalty").by_points()
    assert graded(chosen, True, Says("often")).score == 0.75
    checked = Rubric().expects("a", weight=4).checks(Contains("sorry"), polarity="penalty").by_points()
    assert grade("sorry, yes", checked, lambda _: '{"verdict": true}').score == 0.75


def test_a_nested_rubric_may_be_a_penalty() -> None:
    """Its score is how far it is found; a gate in it fails nothing outside."""
    inner = Rubric("sloppy").requires("typos").expects("rude")
    rubric = Rubric().expects("a", weight=4).includes(inner, polarity="penalty", weight=2).by_points()
    result = graded(rubric, True, False, True)
    assert (result.score, result.gates) == (0.75, ())


def test_penalties_alone_are_averaged() -> None:
    """What was not found of them: as autorubric has it for a file of negative weights."""
    rubric = Rubric().penalizes("a", points=1).penalizes("b", points=3)
    assert graded(rubric, True, False).score == 0.75


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rubric", "said"),
    [
        (HEALTH.without("good"), "no criterion earns points"),
        (HEALTH.revising("good", weight=0), "no criterion earns points"),
        (evolve(HEALTH, aggregation="weighted_average"), "by_points()"),
        (HEALTH.by_worst(), "by_points()"),
        (Rubric().expects("a").includes(HEALTH.without("good"), id="inner"), r"criteria\[1\].aggregation"),
    ],
)
def test_penalties_without_points_to_subtract_from_are_refused(rubric: Rubric, said: str) -> None:
    """Before the first call, and in files."""
    with pytest.raises(DefinitionError, match=said.replace("(", r"\(").replace(")", r"\)")):
        grade("x", rubric, lambda _: '{"verdict": true}')
    with pytest.raises(ValueError, match=r"earns points|subtracts points"):
        loads(dumps(rubric))


@each_row(
    ("build", "said"),
    [
        (lambda: Rubric().penalizes("a", points=-3), "points: expected a finite number above 0"),
        (lambda: Rubric().penalizes("a", points=0), "above 0, got 0"),
        (lambda: Rubric().penalizes("a", weight=3), "the weight of a penalty is its points"),  # type: ignore[call-arg]  # the point of the test
        (lambda: Rubric().penalizes("a", polarity="guard"), "this verb means 'penalty'"),  # type: ignore[call-arg]  # the point of the test
        (lambda: Rubric().penalizes("a", required=True), r"required=True has no effect.*forbids\('a'\)"),  # type: ignore[call-arg]  # the point of the test
        (lambda: Rubric().penalizes("a", min_score=0.5), r"min_score=0.5 has no effect"),  # type: ignore[call-arg]  # the point of the test
        (lambda: Criterion("a", polarity="penalty", answer=Unit(flag=True)), "answer=.*has no effect"),
        (lambda: Criterion("a", polarity="penalty", answer=Rubric(binding=True)), "has no effect"),
        (lambda: Rubric().expects("a", points=3), "the points of a criterion are its weight"),  # type: ignore[call-arg]
        (lambda: HEALTH.passing_at(None), "'bad' is a penalty"),
        (lambda: Rubric.of("Good?").by_points(), "a free-form text earns no points"),
        (lambda: graded(HEALTH, True, True).rescore(aggregation="weighted_average"), r"by_points\(\)"),
    ],
)
def test_an_option_that_a_penalty_cannot_have_is_refused(build: Any, said: str) -> None:
    """With the cure."""
    with pytest.raises(DefinitionError, match=said):
        build()


# -- what is not known, and what does not apply --------------------------------------------------------------


def test_bounds_hold_a_missing_penalty_at_its_worst_and_best() -> None:
    """Found and not found."""
    gone = Unjudged("bad", GONE)
    assert came_to(HEALTH, Scored("good", 1.0), gone) == (0.4, 1.0)
    assert came_to(HEALTH, Unjudged("good", GONE), Scored("bad", 1.0)) == (0.0, 0.4)
    result = drive(HEALTH.passing_at(0.3), Judge(ScriptedModel({"good": True, "bad": GONE})))
    assert isinstance(result, Ungraded)
    assert (result.bounds, result.passed) == ((0.4, 1.0), True)


def test_bounds_hold_the_case_that_all_that_earns_is_abstained_from() -> None:
    """Then the penalties are averaged, and half a penalty is half the score, whatever it would have eaten up."""
    rubric = (
        Rubric(abstain="exclude").expects("a", id="a").scores("b", id="b", polarity="penalty", weight=10).by_points()
    )
    half = Scored("b", 0.5)
    assert came_to(rubric, Unjudged("a", GONE), half) == (0.0, 0.5)
    assert came_to(rubric, Abstained("a"), half) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("policy", "score", "passed"), [("exclude", 1.0, True), ("zero", 1.0, True), (0.5, 1.0, True), ("fail", 0.4, False)]
)
def test_a_penalty_of_which_the_judge_cannot_tell_takes_nothing_off(policy: Any, score: float, *, passed: bool) -> None:
    """As in autorubric; but where an abstention fails, it takes off all, and the grade fails as for any criterion."""
    result = graded(HEALTH.abstaining(policy).passing_at(0.3), True, Says(None))
    assert (result.score, result.passed) == (score, passed)


def test_what_does_not_apply_neither_earns_nor_takes_off() -> None:
    """Its points stand below the line no more."""
    rubric = Rubric().expects("a", weight=5).expects("b", weight=5).penalizes("c", points=3).by_points()
    a, b, c = (criterion.id for criterion in rubric.criteria)
    assert came_to(rubric, Scored(a, 1.0), NotApplicable(b), NotApplicable(c)) == (1.0, 1.0)
    assert came_to(rubric, Scored(a, 1.0), NotApplicable(b), Scored(c, 1.0)) == (0.4, 0.4)
    assert came_to(rubric, NotApplicable(a), NotApplicable(b), Scored(c, 1.0)) == (0.0, 0.0)


def test_a_penalty_without_a_quote_takes_off_its_points_and_fails_nothing() -> None:
    """A clean one has nothing to quote."""
    rubric = HEALTH.revising("bad", evidence=True).passing_at(0.4)
    found = graded(rubric, True, Says(value=True, evidence=("not there",)))
    clean = graded(rubric, True, Says(value=False))
    assert (found.score, found.passed, clean.score) == (0.4, True, 1.0)


def test_an_empty_candidate_has_every_penalty() -> None:
    """It fails, and no penalty looks as if it had been looked for and not found."""
    result = drive(HEALTH, Judge(ScriptedModel([])), "  ")
    assert isinstance(result, Grade)
    assert (result.score, dict(result.contributions)) == (0.0, {"good": 0.0, "bad": 0.0})


# -- with several judges, in another rule, in other forms -----------------------------------------------------


def test_juries_and_panels_average_points_or_pool_penalties() -> None:
    """A jury's score is the mean of its votes'; pooled by criterion, two thirds of a penalty take off two thirds."""
    says = [True, True, True, True, True, False]
    jury = drive(HEALTH, Jury(Judge(ScriptedModel(says)), 3))
    assert isinstance(jury, Grade)
    assert jury.score == pytest.approx((0.4 + 0.4 + 1) / 3)
    members = [Judge(ScriptedModel(says[n : n + 2])) for n in (0, 2, 4)]
    for aggregate, score in (("mean", 0.6), ("majority", 0.4), ("median", 0.4)):
        members = [Judge(ScriptedModel(says[n : n + 2])) for n in (0, 2, 4)]
        pooled = drive(HEALTH, Panel(members, aggregate=aggregate, level="criterion"))  # type: ignore[arg-type]
        assert isinstance(pooled, Grade)
        assert pooled.score == pytest.approx(score)


def test_a_negated_or_strict_rubric_by_points_follows_its_score() -> None:
    """Turned over it is 1 - score; strictly, nothing may be taken off."""
    assert graded(evolve(HEALTH, negate=True), True, True).score == 0.6
    assert not graded(HEALTH.strictly(), True, True).passed
    assert graded(HEALTH.strictly(), True, False).passed


def test_a_penalty_can_be_rescored_as_a_guard() -> None:
    """Both are asked the same."""
    result = graded(HEALTH, True, True)
    as_guard = HEALTH.revising("bad", polarity="guard")
    again = result.rescore(evolve(as_guard, aggregation="weighted_average"))
    assert isinstance(again, Grade)
    assert (again.score, again.gates) == (0.625, ("bad",))
    model = ScriptedModel([True] * 4)
    for rubric in (HEALTH, as_guard):
        drive(rubric, Judge(model))
    assert [ask.messages for ask in model.asks[:2]] == [ask.messages for ask in model.asks[2:]]


def test_points_and_penalties_stand_in_files() -> None:
    """As they are built."""
    text = dumps(HEALTH)
    assert "aggregation: points" in text
    assert "polarity: penalty" in text
    assert loads(text) == HEALTH


def test_the_table_and_the_feedback_show_what_is_taken_off() -> None:
    """With a minus sign, and in words for the author."""
    assert "| bad | bad | yes or no, penalty | -3 |" in HEALTH._repr_markdown_()
    assert "| id | criterion | answer | points |" in HEALTH._repr_markdown_()
    assert graded(HEALTH, True, True).feedback().startswith("- Should not hold, takes off up to 3: bad")


def test_other_formats_say_that_they_have_no_penalties() -> None:
    """They leave the penalty out, and say so; points without penalties are what they have anyway."""

    def written(rubric: Rubric) -> tuple[str, str]:
        made = convert(Suite(cases=[Case("c", rubric, output="x")]), "promptfoo")
        return str(made), "\n".join(made.dropped)

    text, losses = written(HEALTH)
    assert "bad" in losses
    assert "subtract" in losses or "penalt" in losses
    assert "penalty" not in text
    assert "points" not in text
    assert "aggregation" not in losses + written(HEALTH.without("bad"))[0] + written(HEALTH.without("bad"))[1]
