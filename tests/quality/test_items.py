"""What each criterion does in grades: dead ones, twins, votes that differ, and changes since other grades."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rubric import DefinitionError, Grade, Grades, Jury, Rubric, Ungraded, grade
from rubric.quality import items
from rubric.results.result import conclude_votes
from rubric.testing import ScriptedModel
from tests.recorded import result

RUBRIC = (
    Rubric("support").expects("Answers", id="a").expects("Is in English", id="b").rates("Is clear", 1, 5, id="clarity")
)


def graded(n: int, *, rate: float = 0.7, seed: int = 0, groups: int = 1, **said: Any) -> list[Grade | Ungraded]:
    """Return grades of a judge that finds 'a' met at a *rate*, which differs between groups."""
    chance = random.Random(seed)
    found = []
    own = rate
    for place in range(n):
        own = chance.random() if groups > 1 and place % groups == 0 else own
        values = {"a": chance.random() < own, "b": True, "clarity": chance.randint(1, 5), **said}
        group = f"{seed}/{place // groups}" if groups > 1 else ""
        found.append(result(RUBRIC, values, key=f"{seed}/{place}", group=group))
    return found


def test_a_criterion_is_dead_from_59_equal_answers_on() -> None:
    """Fewer equal answers leave it open, and a rare exception among many changes nothing."""
    assert items(graded(58))["b"].dead is None
    assert items(graded(59))["b"].dead is True
    assert items(graded(59))["a"].dead is None
    assert items([*graded(58), *graded(1, b=False)])["b"].dead is None
    assert items([*graded(200), *graded(1, b=False)])["b"].dead is True


def test_twins_are_named_with_their_number_and_interval() -> None:
    """Two criteria with equal answers are a redundant pair with its correlation."""
    chance = random.Random(1)
    said = [chance.random() < 0.5 for _ in range(80)]
    found = items([result(RUBRIC, {"a": one, "b": one, "clarity": 3}) for one in said])
    assert [(pair.ids, pair.n) for pair in found.redundant] == [(("a", "b"), 80)]
    assert found.redundant[0].correlation.interval is not None
    assert "'a' and 'b' say the same" in found.sentence
    assert "correlation 1.000" in str(found)


def test_rare_verdicts_that_never_meet_may_meet_in_other_candidates() -> None:
    """A criterion and people pass 4 of 60 each, never the same: a validity of .2 is not excluded, as .05 once was."""
    grades = Grades([result(RUBRIC, {"a": n % 15 == 0, "b": n % 2 == 0, "clarity": 3}, key=str(n)) for n in range(60)])
    validity = items(grades, {str(n): n % 15 == 7 for n in range(60)})["a"].validity
    assert validity is not None
    assert validity.value == pytest.approx(-1 / 14)
    assert validity.interval is not None
    assert validity.interval[1] > 0.2


def test_three_grades_are_too_few_for_a_pair() -> None:
    """No redundancy is claimed from three results."""
    assert not items([result(RUBRIC, {"a": one, "b": one, "clarity": 3}) for one in (True, False, True)]).redundant


def test_a_criterion_is_held_against_the_weighted_mean_of_the_others() -> None:
    """Discrimination is the correlation with the others' weighted mean, computed here by hand."""
    rubric = Rubric("r").expects("x", id="x", weight=5).expects("y", id="y").expects("z", id="z", weight=3)
    rows = [(1, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 1), (1, 1, 1), (0, 0, 0)]
    found = items([result(rubric, dict(zip("xyz", map(bool, row), strict=True))) for row in rows])
    rest = [(y + 3 * z) / 4 for _, y, z in rows]
    mean = sum(rest) / 6
    covariance = sum((x - 0.5) * (r - mean) for (x, _, _), r in zip(rows, rest, strict=True)) / 6
    expected = covariance / (0.5 * (sum((r - mean) ** 2 for r in rest) / 6) ** 0.5)
    assert found["x"].discrimination.value == pytest.approx(expected)


def test_votes_of_a_jury_give_how_often_two_of_them_differ() -> None:
    """The flip rate counts pairs of votes, and is None without votes."""
    rubric = Rubric("r").expects("x", id="x")
    jury = Jury("offline", 3)

    def of(*votes: bool) -> Grade | Ungraded:
        return conclude_votes(rubric, jury, [result(rubric, {"x": vote}) for vote in votes])

    flips = items([of(True, True, True), of(True, True, False)])["x"].flips
    assert flips is not None
    assert flips.value == pytest.approx(1 / 3)  # none of three pairs, and two of three
    assert items(graded(3))["a"].flips is None


def test_labels_of_the_whole_say_which_criterion_goes_with_people() -> None:
    """Validity is the correlation with people's verdicts; labels of criteria are refused."""
    grades = graded(100)
    labels = {one.key: one.contributions["a"] == 1 for one in grades if isinstance(one, Grade)}
    found = items(grades, labels)
    assert found["a"].validity is not None
    assert found["a"].validity.value == pytest.approx(1)
    assert items(grades)["a"].validity is None
    with pytest.raises(DefinitionError, match="labels of the whole"):
        items(grades, {"0/1": {"a": True}})


def test_a_change_is_found() -> None:
    """A pass rate that falls from 0.9 to 0.5 is shown for its criterion alone."""
    drift = items(graded(100, rate=0.9, seed=1)).against(items(graded(100, rate=0.5, seed=2)))
    assert [change.id for change in drift.shown] == ["the judge on a"]
    assert drift.exit_code == 1


@pytest.mark.long
@pytest.mark.parametrize("groups", [1, 5])
def test_an_unchanged_judge_is_called_changed_in_six_of_a_hundred_at_most(groups: int) -> None:
    """The rate of false alarms holds for independent and for grouped results."""
    alarms = 0
    for run in range(100):
        new, old = (items(graded(50, seed=2 * run + one, groups=groups)) for one in (0, 1))
        alarms += new.against(old).changed
    assert alarms <= 6


def test_grades_of_two_rubrics_are_refused() -> None:
    """Mixed results, and a comparison with another rubric's, are errors."""
    other = result(RUBRIC.without("b"), {"a": True, "clarity": 2})
    with pytest.raises(DefinitionError, match=r"grades\[1\].*one rubric"):
        items([*graded(1), other])
    with pytest.raises(DefinitionError, match="same rubric"):
        items(graded(2)).against(items([other]))


@pytest.mark.parametrize("given", [[], "grades.jsonl", [1]])
def test_anything_but_results_is_refused(given: Any) -> None:
    """Empty lists, paths and numbers are not results."""
    with pytest.raises(DefinitionError, match="results of which one is graded"):
        items(given)


def test_ungraded_results_are_left_out_and_counted() -> None:
    """The sentence says how many were left out."""
    found = items(Grades([*graded(4), result(RUBRIC, {"a": True})]))
    assert (found.grades, found.ungraded, found["a"].n) == (5, 1, 4)
    assert "1 ungraded left out" in found.sentence


def test_items_show_themselves() -> None:
    """Text, Markdown, card, data and chart all name the dead criterion."""
    found = items(graded(60), {"0/1": True, "0/2": False})
    assert "'b' tells no candidates apart" in repr(found)
    assert "| b |" in found._repr_markdown_()
    assert "shown not to" in found._repr_html_()
    assert found.to_dict()["items"][1]["dead"] is True


def test_a_criterion_that_does_not_apply_is_missing() -> None:
    """It counts as missing and has no mean."""
    rubric = Rubric("r").expects("x", id="x").expects("y", id="y", when={"contains": "z"})
    found = items([grade("plain", rubric, ScriptedModel({"x": True}))])
    assert (found["y"].n, found["y"].missing, found["y"].mean.value) == (0, 1, None)
