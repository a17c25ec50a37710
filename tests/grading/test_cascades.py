"""A cheap judge first, and another only where the first leaves a doubt."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import DefinitionError, Grade, Judge, Jury, Panel, Rubric, Ungraded
from rubric.driving import Failure
from rubric.formats.fields import write
from rubric.formats.native.judge import read_any_judge
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.judges import AnyJudge, Cascade
from tests.drive import drive, planned
from tests.examples import examples
from tests.findings import improvised, rubrics
from tests.rows import each_row
from tests.strategies import any_judges

WARM = Rubric(borderline=0.5).scores("Is it warm?", id="warm")
GONE = Failure("timeout", "nothing came back")


def says(*lines: Any) -> Judge:
    """Return a judge that says *lines*, one an ask."""
    return Judge(ScriptedModel(lines), repairs=0, retries=0)


def calls(judge: AnyJudge) -> int:
    """Return how often *judge* was asked."""
    assert isinstance(judge, Judge)
    assert isinstance(judge.model, ScriptedModel)
    return len(judge.model.asks)


@each_row(
    ("when", "first", "asks_then"),
    [
        ("fails", 0.69, True),
        ("fails", 0.7, False),
        ("borderline", 0.5, True),
        ("borderline", 0.4, False),
        ("borderline", 0.9, False),
        ("ungraded", 0.1, False),
        ("ungraded", GONE, True),
        ("fails", GONE, True),
        ((0.4, 0.6), GONE, True),
        ((0.4, 0.6), 0.4, True),
        ((0.4, 0.6), 0.6, True),
        ((0.4, 0.6), 0.61, False),
        (lambda result: result.outcome.score == 0.3, 0.3, True),
        (lambda result: result.outcome.score == 0.3, 0.4, False),
        (lambda result: isinstance(result, Ungraded), GONE, True),
        (lambda _: False, GONE, False),
    ],
)
def test_the_second_is_asked_where_the_first_leaves_a_doubt(when: Any, first: Any, asks_then: bool) -> None:
    """The result is that of the last who was asked; no grade is a doubt, unless a function says otherwise."""
    then = says(0.95)
    result = drive(WARM, Cascade(says(first), then, when))
    assert (calls(then), len(result.votes)) == (int(asks_then), 1 + asks_then)
    assert result.outcome == result.votes[-1].outcome
    assert result.findings == result.votes[-1].findings


def test_votes_that_disagree_are_a_doubt() -> None:
    """Two verdicts among the votes of a jury, or of a panel, ask the second; one does not."""
    for lines, asked in (((0.9, 0.1, 0.9), 1), ((0.9, 0.8, 0.7), 0)):
        then = says(0.0)
        drive(WARM, Cascade(Jury(says(*lines), 3), then, when="disagrees"))
        assert calls(then) == asked


def test_usage_failures_and_warnings_of_both_are_kept() -> None:
    """What the first cost, and what went wrong in it, belongs to the result."""
    result = drive(WARM, Cascade(says(GONE), Jury(says(0.9, 0.8), 2), when="fails"))
    assert isinstance(result, Grade)
    assert (result.usage.calls, [failure.kind for failure in result.failures]) == (2, ["timeout"])
    assert [type(vote) for vote in result.votes] == [Ungraded, Grade]


def test_a_second_that_comes_to_nothing_leaves_it_ungraded() -> None:
    """A doubtful first result is not a stand-in for the second's."""
    result = drive(WARM, Cascade(says(0.6), says(GONE), when="borderline"))
    assert isinstance(result, Ungraded)
    assert result.outcome.bounds == (0.0, 1.0)


def test_first_and_second_are_asked_as_different_votes() -> None:
    """Else a store would serve the second from the first's replies, where both are the same model."""
    model = ScriptedModel([0.1, 0.1, 0.1, 0.1])
    drive(WARM, Cascade(Judge(model), Jury(Judge(model), 3), when="fails"))
    assert [ask.vote for ask in model.asks] == [0, 1, 2, 3]


def test_a_cascade_may_be_in_a_jury_a_panel_and_another_cascade() -> None:
    """It votes like any other judge."""
    cascade = Cascade(says(0.1, 0.9, 0.9), says(0.8, 0.8), when="fails")
    result = drive(WARM, Panel([cascade, says(1.0)]))
    assert isinstance(result, Grade)
    assert result.score == pytest.approx(0.9)
    deep = drive(WARM, Cascade(Jury(cascade, 2), says(0.3), when=(0.8, 1)))
    assert isinstance(deep, Grade)
    assert deep.score == 0.3


def test_a_pair_holds_two_scores_in_order() -> None:
    """And a lone judge has no votes to disagree."""
    for when in ((0.6, 0.4), (0.1,), (0, 2), 5, "sometimes"):
        with pytest.raises(DefinitionError, match="when"):
            Cascade("a", "b", when)
    with pytest.raises(DefinitionError, match="cannot disagree"):
        Cascade("a", "b", when="disagrees")


def test_a_cascade_shows_itself_as_one_types_it() -> None:
    """In a repr and in a notebook."""
    cascade = Cascade("a", Jury("b", 5), (0.4, 0.6))
    assert repr(cascade) == "Cascade(Judge('a'), Jury(Judge('b'), 5), when=(0.4, 0.6))"
    assert "then" in cascade._repr_markdown_()
    assert cascade == Cascade("a", Jury("b", 5), [0.4, 0.6])
    assert hash(cascade) == hash(Cascade("a", Jury("b", 5), (0.4, 0.6)))


@examples(40)
@given(rubrics(), st.integers(), st.sampled_from(["fails", "borderline", "ungraded", "disagrees", (0.3, 0.8)]))
def test_a_cascade_comes_to_what_its_members_come_to(rubric: Rubric, seed: int, when: Any) -> None:
    """For any rubric: the first's result, or the second's as if it had been asked alone; never more calls than both."""
    first = Jury(Judge(ScriptedModel(improvised((seed, 1), failing=0.1))), 2)
    then = Judge(ScriptedModel(improvised((seed, 2), failing=0.1)))
    result = drive(rubric, Cascade(first, then, when))
    assert result.votes[0] == drive(rubric, first)
    assert result.outcome == result.votes[-1].outcome
    assert result.usage.calls == sum(vote.usage.calls for vote in result.votes)


# -- under another rule ------------------------------------------------------------------------------------


def test_a_second_opinion_stands_under_any_rule() -> None:
    """Where the second was asked, its findings are the better ones."""
    result = drive(WARM, Cascade(says(0.6), says(0.2), when="borderline")).rescore(threshold=0.5)
    assert isinstance(result, Grade)
    assert (result.score, result.passed, len(result.votes)) == (0.2, False, 2)


def test_a_rule_that_needs_the_second_where_it_was_not_asked_leaves_it_open() -> None:
    """No calls are made, and the first's doubtful result does not stand in."""
    result = drive(WARM, Cascade(says(0.8), says(0.2), when="fails")).rescore(threshold=0.9)
    assert isinstance(result, Ungraded)
    assert result.bounds == (0.0, 1.0)
    assert result.failures[-1].kind == "not_cast"


def test_another_occasion_can_be_tried_without_a_call() -> None:
    """But a cascade's results are not the votes of a jury."""
    result = drive(WARM, Cascade(says(0.8), says(0.2), when="fails"))
    assert isinstance(result.rescore(judge=Cascade("a", "b", (0.7, 0.9))), Ungraded)
    assert isinstance(result.rescore(judge=Cascade("a", "b", (0.9, 1))), Grade)
    with pytest.raises(DefinitionError, match="are not the votes"):
        result.rescore(judge=Jury("a", 2))


# -- beforehand, and in files ------------------------------------------------------------------------------


def test_a_plan_counts_the_first_at_least_and_both_at_most() -> None:
    """Every ask that may be made is in it, with its vote."""
    plan = planned(WARM, Cascade("a", Jury("b", 3), when="fails"))
    assert (plan.least, plan.most, plan.ceiling) == (1, 4, 8)
    assert [ask.vote for ask in plan.asks] == [0, 0, 1, 2]
    assert plan.cost is not None
    assert plan.cost[0] < plan.cost[1]


def test_a_cascade_in_a_file_reads_as_it_is_written() -> None:
    """By its words; a function stays in code."""
    data = {"cascade": {"first": "offline", "then": {"jury": {"judge": "b"}}, "when": [0.4, 0.6]}}
    cascade = Cascade("offline", Jury("b"), (0.4, 0.6))
    assert (read_any_judge(data), write(cascade)) == (cascade, data)
    with pytest.raises(Exception, match="is a function"):
        write(Cascade("a", "b", when=callable))


@given(any_judges)
def test_any_bench_reads_back_as_itself(bench: AnyJudge) -> None:
    """Cascades in juries in cascades among them."""
    assert read_any_judge(write(bench)) == bench
