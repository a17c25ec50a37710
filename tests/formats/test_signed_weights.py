"""Scores by the rule of the systems with signed weights, against the rule as it is documented."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Choices, Contains, Criterion, DefinitionError, Grade, Judge, Jury, Rubric, When
from rubric.contrib.autorubric import llm_data_score
from rubric.contrib.signed_weights import by_points
from rubric.testing.scripted_model import Says, ScriptedModel
from tests.drive import drive

Part = tuple[float, float | None]
"""A signed weight, and a value in 0..1; None for "cannot tell"."""


def documented(parts: list[Part], credit: str | float = "exclude") -> Fraction | None:
    """Return what the documented formula makes of *parts*, before it is cut; None where nothing is scored."""
    total = positive = negative = Fraction()
    scored = 0
    for weight, value in parts:
        w = Fraction(weight)
        if value is None:
            if credit == "exclude":
                continue
            partial = 0 if isinstance(credit, str) or w < 0 else Fraction(credit)
            total += w if credit == "fail" and w < 0 else partial * w
        else:
            total += Fraction(value) * w
        scored += 1
        positive += max(w, Fraction())
        negative += max(-w, Fraction())
    if not scored:
        return None
    return total / positive if positive > 0 else 1 + total / negative if negative > 0 else Fraction()


def graded(parts: list[Part], credit: str | float = "exclude", against: str = "guard") -> Grade | None:
    """Return the grade of a rubric with *parts*, those *against* of that polarity; None where it is no grade."""
    menu = Choices({"none": 0, "some": 0.25, "half": 0.5, "most": 0.7, "all": 1})
    criteria = [
        Criterion("t", id=f"c{n}", answer=menu, weight=abs(w), polarity=against if w < 0 else "satisfy")  # type: ignore[arg-type]
        for n, (w, _) in enumerate(parts)
    ]
    labels = {choice.score: choice.label for choice in menu.choices}
    script = {f"c{n}": Says(None if v is None else labels[v]) for n, (_, v) in enumerate(parts)}
    rubric = Rubric(abstain=credit, **by_points(criteria))  # type: ignore[arg-type]  # a policy, or a number
    result = drive(rubric, Judge(ScriptedModel(script)))
    return result if isinstance(result, Grade) else None


_weights = st.one_of(st.sampled_from([10.0, 8.0, -15.0, 1.0, 0.1, -0.3]), st.floats(-100, 100, allow_subnormal=False))
_values = st.sampled_from([0.0, 0.25, 0.5, 0.7, 1.0])
_parts = st.lists(st.tuples(_weights, _values), min_size=1, max_size=6).filter(lambda parts: any(w for w, _ in parts))


@given(_parts)
def test_the_score_is_the_documented_one_to_the_last_digit(parts: list[Part]) -> None:
    """What is met adds its signed weight; positive weights stand below the line; the result is cut to 0..1."""
    grade, exact = graded(parts), documented(parts)
    assert grade is not None
    assert exact is not None
    assert llm_data_score(grade, cut=False) == float(exact)
    assert llm_data_score(grade) == float(min(max(exact, Fraction()), Fraction(1)))


_open_parts = st.lists(st.tuples(_weights, st.one_of(st.none(), _values)), min_size=1, max_size=5)


@given(_open_parts.filter(lambda parts: any(w for w, _ in parts)), st.sampled_from(["exclude", "zero", 0.5]))
def test_abstentions_follow_the_documented_strategies(parts: list[Part], credit: str | float) -> None:
    """SKIP leaves them out, ZERO adds nothing, PARTIAL gives credit to positive weights."""
    grade, exact = graded(parts, credit), documented(parts, credit)
    if grade is not None and exact is not None:
        assert llm_data_score(grade, cut=False) == pytest.approx(float(exact), abs=1e-12)


@given(_open_parts.filter(lambda parts: any(w for w, _ in parts)), st.sampled_from(["exclude", "zero", 0.5]))
def test_with_penalties_the_native_score_is_the_documented_one(parts: list[Part], credit: str | float) -> None:
    """By points where both signs meet, averaged where one is alone; abstentions too."""
    grade, exact = graded(parts, credit, "penalty"), documented(parts, credit)
    if grade is not None and exact is not None:
        assert grade.score == pytest.approx(float(min(max(exact, Fraction()), Fraction(1))), abs=1e-12)
        assert llm_data_score(grade) == pytest.approx(grade.score, abs=1e-12)


@pytest.mark.parametrize(("polarity", "score"), [("satisfy", 0.25), ("guard", 0.0)])
def test_an_abstention_that_fails_takes_the_worst_option(polarity: str, score: float) -> None:
    """The lowest value for what counts for, the highest for what counts against."""
    menu = Choices({"some": 0.25, "all": 1})
    criterion = Criterion("t", id="c", answer=menu, polarity=polarity, abstain="fail")  # type: ignore[arg-type]
    grade = drive(Rubric(criteria=[criterion]), Judge(ScriptedModel([Says(None)])))
    assert isinstance(grade, Grade)
    assert llm_data_score(grade) == score


@given(_parts.map(lambda parts: [(abs(w), v) for w, v in parts]), st.booleans())
def test_the_native_score_is_the_same_where_all_weights_have_one_sign(parts: list[Part], negative: bool) -> None:
    """They part only where both signs meet."""
    grade = graded([(-w if negative else w, v) for w, v in parts])
    assert grade is not None
    assert llm_data_score(grade) == pytest.approx(grade.score, abs=1e-12)


def test_what_is_met_and_should_not_be_is_subtracted() -> None:
    """10 and 8 for, 15 against: 3 of 18; natively the guard fails the grade and stands below the line."""
    grade = graded([(10, 1.0), (8, 1.0), (-15, 1.0)])
    assert grade is not None
    assert llm_data_score(grade) == 3 / 18
    assert (grade.score, grade.passed) == (18 / 33, False)


def test_what_does_not_apply_does_not_count() -> None:
    """Neither above nor below the line."""
    rubric = Rubric(criteria=[Criterion("a", answer=Contains("x")), Criterion("b", when=When(contains="absent"))])
    grade = drive(rubric, Judge(ScriptedModel([])), "x it is")
    assert isinstance(grade, Grade)
    assert llm_data_score(grade) == 1.0


def test_the_grade_of_several_judges_is_scored_vote_by_vote() -> None:
    """The formula is about one judge's verdicts."""
    rubric = Rubric().expects("a").forbids("b")
    grade = drive(rubric, Jury(Judge(ScriptedModel([True, False, True, True])), 2))
    assert isinstance(grade, Grade)
    with pytest.raises(DefinitionError, match="score each of its `votes`"):
        llm_data_score(grade)
    assert [llm_data_score(vote) for vote in grade.votes if isinstance(vote, Grade)] == [1.0, 0.0]
