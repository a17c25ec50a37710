"""Grades as values: what they say, how they show it, and how they are recomputed under another rule."""

from __future__ import annotations

import copy
import json
import pickle
import re
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import (
    Anchor,
    Criterion,
    DefinitionError,
    Grade,
    Judge,
    Jury,
    Likert,
    Panel,
    Rubric,
    Ungraded,
    UngradedError,
    Unit,
    When,
    ask,
    diff,
    evaluate,
    grade,
    grade_many,
)
from rubric.driving import Failure
from rubric.errors import CallError, ModelError
from rubric.results import Scored, Unjudged
from rubric.results.result import conclude
from rubric.testing.scripted_model import Line, Says, ScriptedModel
from rubric.values import Boolean, Letter, UnitScale
from rubric.values.findings import Finding
from tests.drive import drive
from tests.examples import examples
from tests.findings import improvised, rubrics
from tests.rows import each_row

TWO = Rubric("two").expects("Answers the question", id="a").scores("Warm", id="b")


def says(*lines: Line) -> Judge:
    """Return a judge that says *lines* in turn."""
    return Judge(ScriptedModel(lines))


def whole(rubric: Rubric, *lines: Line) -> Grade:
    """Return the grade that a judge who says *lines* gives."""
    result = drive(rubric, says(*lines))
    assert isinstance(result, Grade)
    return result


# -- what a grade says -------------------------------------------------------------------------------------


@each_row(
    ("scale", "score", "shown"),
    [
        (UnitScale(), 0.8, "0.80"),
        (Likert(1, 5), 0.75, "4.0/5"),
        (Likert(0, 10), 0.5, "5.0/10"),
        (Boolean(), 0.7, "pass"),
        (Boolean(), 0.69, "fail"),
        (Letter(), 1.0, "A"),
        (Letter(), 0.9, "A"),
        (Letter(), 0.8, "B"),
        (Letter(), 0.7, "C"),
        (Letter(), 0.6, "D"),
        (Letter(), 0.59, "F"),
        (Letter(), 0.7999999999999999, "B"),
    ],
)
def test_the_scale_says_how_a_score_is_shown(scale: Any, score: float, shown: str) -> None:
    """The score itself stays in 0..1."""
    grade = whole(Rubric().scores("a").shown_as(scale), score)
    assert (grade.shown, grade.score) == (shown, score)


def test_feedback_tells_what_to_improve() -> None:
    """A line for each criterion that is not fully met, a guard among them; nothing for a perfect grade."""
    rubric = TWO.forbids("Promises a refund", id="g")
    grade = whole(rubric, True, Says(0.5, reason="a bit stiff"), Says(True, reason="it does"))
    assert grade.feedback() == "- Not fully met: Warm (a bit stiff)\n- Must not hold: Promises a refund (it does)"
    assert whole(rubric, True, 1.0, False).feedback() == ""


def test_findings_are_looked_up_by_id() -> None:
    """An unknown id names the nearest one."""
    grade = whole(TWO, True, 0.5)
    assert isinstance(grade["b"], Scored)
    assert grade["b"].score == 0.5
    with pytest.raises(KeyError, match="did you mean"):
        grade["bb"]


def test_contributions_have_one_as_good() -> None:
    """A guard that was found is 0."""
    assert dict(whole(TWO.forbids("x", id="g"), True, 0.5, True).contributions) == {"a": 1.0, "b": 0.5, "g": 0.0}


def test_a_contradictory_flag_is_kept_and_told() -> None:
    """A pass with a score of 0 passes where the flag decides, with a warning."""
    grade = whole(Rubric.of("x", threshold=None), Says(0.0, flag=True))
    assert (grade.score, grade.passed) == (0.0, True)
    assert grade.warnings == ("contradictory: the judge passed 'overall' with a score of 0",)


def test_an_error_explains_what_could_not_be_judged() -> None:
    """Which criterion, by whom, why, and what the score could have been; the result goes with it."""
    result = drive(TWO, says(True, Failure("auth", "the key is wrong", judge="m")))
    assert isinstance(result, Ungraded)
    error = UngradedError(result)
    assert str(error) == (
        "not graded: the score could be 0.500 to 1.000 (50% of the weight was judged)\n"
        "  criterion 'b', judge 'm': auth: the key is wrong"
    )
    assert error.result is result


def test_a_failure_of_a_nested_criterion_is_named() -> None:
    """Not only the criterion that holds the rubric."""
    rubric = Rubric().includes(TWO, id="n")
    result = drive(rubric, says(True, Failure("auth", "the key is wrong")))
    assert isinstance(result, Ungraded)
    assert "'b'" in result.explain()


def test_results_are_values() -> None:
    """Equal, hashable, and the same after a copy."""
    findings: list[Finding] = [Scored("a", 1.0), Unjudged("b", Failure("auth", "no"))]
    result = conclude(TWO, Judge("offline"), findings)
    again = conclude(TWO, Judge("offline"), findings)
    assert result == again == copy.deepcopy(result) == pickle.loads(pickle.dumps(result))  # noqa: S301 - our own
    assert hash(result) == hash(again)
    assert isinstance(result, Ungraded)


def test_errors_that_hold_results_can_be_pickled() -> None:
    """They cross process borders with what they hold."""
    result = conclude(TWO, Judge("offline"), [Scored("a", 1.0), Unjudged("b", Failure("auth", "no"))])
    assert isinstance(result, Ungraded)
    error = pickle.loads(pickle.dumps(UngradedError(result)))  # noqa: S301 - our own
    assert (error.result, str(error)) == (result, str(UngradedError(result)))
    failed = pickle.loads(pickle.dumps(ModelError(Failure("auth", "no"))))  # noqa: S301 - our own
    assert failed.failure == Failure("auth", "no")


def test_a_grade_shows_itself_as_a_table() -> None:
    """A row a criterion, and what hangs on it."""
    grade = whole(TWO.revising("b", min_score=0.9), True, Says(0.5, reason="a | b"))
    assert grade._repr_markdown_() == (
        "**fail** · 0.75, gated by b, needs 0.70 · 2 calls, 0 in, 0 out tokens, \\$0.0000 · *two*\n\n"
        "| criterion | weight | verdict | reason | evidence |\n"
        "|---|---|---|---|---|\n"
        "| a: Answers the question | 1 | 1.00 (yes) | as scripted |  |\n"
        "| b: Warm | 1 | 0.50 (0.5), gate failed | a \\| b |  |"
    )


@examples(80)
@given(rubrics(), st.integers(), st.sampled_from([0, 0.3]))
def test_any_result_can_be_written_as_json(rubric: Rubric, seed: int, failing: float) -> None:
    """And shown, and told in words."""
    panel = Panel([Jury(Judge(ScriptedModel(improvised((seed, n), failing=failing))), 2) for n in range(2)])
    result = drive(rubric, panel)
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (data["score"], data["bounds"]) == (result.outcome.score, list(result.bounds))
    assert result._repr_markdown_().startswith(f"**{result.outcome.verdict or 'ungraded'}**")
    assert isinstance(result.feedback() if isinstance(result, Grade) else result.explain(), str)


# -- another rule, no calls --------------------------------------------------------------------------------


def test_a_rule_for_juries_within_a_panel_reaches_them() -> None:
    """The members' own consensus is part of the rule."""
    judge = Judge(ScriptedModel([0.9, 0.9, 0.1]))
    result = drive(Rubric.of("x"), Panel([Jury(judge, 3, 0.5)], aggregate="majority"))
    assert result.passed is True
    assert result.rescore(judge=Panel([Jury(judge, 3, 1.0)], aggregate="majority")).passed is False


def test_votes_that_an_early_stop_left_out_are_missing_under_a_harder_rule() -> None:
    """Two passes of three decide a majority, but not a consensus of all."""
    judge = says(0.9, 0.9, 0.1)
    result = drive(Rubric.of("x"), Jury(judge, 3, early_stop=True))
    assert result.passed is True
    harder = result.rescore(judge=Jury(judge, 3, 1.0))
    assert isinstance(harder, Ungraded)
    assert "not cast" in harder.explain()


@pytest.mark.parametrize("aggregate", ["mean", "median", "majority"])
def test_votes_that_were_not_cast_are_missing_by_criterion_too(aggregate: Any) -> None:
    """A third vote could still turn what is pooled, but not what code found not to apply."""
    rubric = Rubric.of("x").passing_at(0.9)
    members = [says(line) for line in (0.0, 0.0, 1.0)]
    result = drive(rubric, Panel(members, aggregate=aggregate, early_stop=True))
    assert result.passed is False
    pooled = result.rescore(judge=Panel(members, aggregate=aggregate, level="criterion"))
    assert isinstance(pooled, Ungraded)


def test_other_weights_need_no_call() -> None:
    """The criteria are the same, their weights are not."""
    assert whole(TWO, True, 0.5).rescore(TWO.revising("a", weight=3)).outcome.score == 0.875


def test_a_degenerate_result_stays_one() -> None:
    """For a judge and for a jury; where the rubric then says so, it is an error."""
    for judge in (says(), Jury(says(), 3)):
        result = drive(TWO, judge, "...")
        assert result.rescore() == result
        assert isinstance(result.rescore(degenerate="error"), Ungraded)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"rubric": TWO.without("a")}, "rubric"),
        ({"judge": Jury("offline", 2)}, "judge"),
        ({"treshold": 0.5}, "treshold"),
        ({"threshold": 2}, "threshold"),
    ],
)
def test_what_cannot_be_rescored_is_refused(arguments: Any, field: str) -> None:
    """Other criteria, votes that are not there, fields that no rubric has, values that no rubric takes."""
    with pytest.raises(DefinitionError) as refused:
        whole(TWO, True, 0.5).rescore(**arguments)
    assert refused.value.field == field


def test_a_rule_for_another_number_of_votes_is_refused() -> None:
    """Two votes cannot be three."""
    result = drive(TWO, Jury(Judge(ScriptedModel(lambda _: True)), 2))
    with pytest.raises(DefinitionError, match="expected 2 votes, got a rule for 3"):
        result.rescore(judge=Jury("offline", 3))


@pytest.mark.parametrize("changes", [{"text": "Is rude"}, {"polarity": "contradiction"}, {"answer": Unit()}])
def test_findings_are_not_applied_to_another_question(changes: dict[str, Any]) -> None:
    """A criterion that keeps its id but asks something else has not been judged."""
    rubric = Rubric().expects("Is polite")
    result = grade("Good day!", rubric, Judge(ScriptedModel({"is-polite": True})))
    with pytest.raises(DefinitionError, match="grade the candidate again"):
        result.rescore(rubric.revising("is-polite", id="is-polite", **changes))


def test_waiting_for_a_turn_is_not_part_of_an_attempt() -> None:
    """A function that takes its time is called once for each criterion, however many wait."""

    def slow(_: object) -> str:
        time.sleep(0.2)
        return '{"verdict": true}'

    rubric = Rubric().adding(*[f"criterion {n}" for n in range(6)])
    result = grade("Good day!", rubric, Judge(slow, timeout=0.8, retries=0))
    assert (result.passed, result.usage.calls) == (True, 6)


def test_a_judge_does_not_show_its_key() -> None:
    """What stands in a repr ends up in notebooks and logs."""
    judge = Judge("openai/gpt-5.6", params={"api_key": "sk-secret", "reasoning_effort": "low"})
    assert "sk-secret" not in repr(judge)
    assert "low" in repr(judge)


def test_evidence_that_is_no_quote_is_asked_for_again() -> None:
    """It is an unreadable reply, not a verdict without evidence."""
    rubric = Rubric().expects("Is polite", evidence=True)
    replies: list[Line] = [{"verdict": True, "evidence": 5}, {"verdict": True, "evidence": ["Good day"]}]
    result = grade("Good day!", rubric, Judge(ScriptedModel(replies)))
    assert (result.score, result.usage.calls) == (1.0, 2)


def table_judge(messages: list[dict[str, Any]]) -> str:
    """Answer by the whole request, in the form that it asks for: another request may get another answer."""
    text = "\n".join(str(m["content"]) for m in messages)
    chance = Random(text)
    said: dict[str, Any] = {"reason": "x"}
    if '"evidence": [' in text:
        said["evidence"] = ["Good"]
    if '"choice"' in text:
        said["choice"] = chance.choice(["a", "b"])
    elif '"score"' in text:
        said["score"] = chance.choice([0, 1])
    else:
        said["verdict"] = chance.random() < 0.5
    return json.dumps(said)


CHANGES: dict[str, Callable[[Rubric], Rubric]] = {
    "when": lambda r: r.revising("a", when=When(contains="day")),
    "when that does not hold": lambda r: r.revising("a", when=When(contains="voucher")),
    "evidence": lambda r: r.with_evidence(),
    "evidence of one": lambda r: r.revising("a", evidence=True),
    "guidelines": lambda r: r.guided_by("Be strict."),
    "abstain": lambda r: r.abstaining("exclude"),
    "prompt": lambda r: evolve(r, prompt="Look at {{ output }} for {{ criterion }}: {{ reply }}"),
    "anchors": lambda r: r.revising("a", anchors=[Anchor("Hello", 1.0)]),
    "on": lambda r: r.revising("a", on="each turn"),
    "text": lambda r: r.revising("a", text="Is very polite"),
    "order": lambda r: evolve(r, criteria=r.criteria[::-1]),
    "nested guidelines": lambda r: r.revising("n", answer=Rubric("n", ["Is kind"]).guided_by("Be kind.")),
    "another question of a tree": lambda r: r.revising("t", answer=ask("Is it late?").yes(1.0).no(0.0)),
    "leaves of a tree": lambda r: r.revising("t", answer=ask("Is it early?").yes(0.25).no(0.75)),
    "nested weights": lambda r: r.revising("n", answer=Rubric("n", ["Is kind", Criterion("Is short", weight=3)])),
    "weight": lambda r: r.revising("b", weight=3),
    "threshold": lambda r: r.passing_at(0.1),
    "worst": lambda r: r.by_worst(),
    "required": lambda r: r.revising("a", required=True),
    "min_score": lambda r: r.revising("b", min_score=0.9),
    "strict": lambda r: r.strictly(),
}


@each_row("name", CHANGES)
@each_row("votes", [1, 3])
def test_rescoring_equals_grading_again_or_is_refused(name: str, votes: int) -> None:
    """What would ask the judge something else is refused with what it is; all else comes to the same without a call."""
    rubric = (
        Rubric("r")
        .expects("Is polite", id="a")
        .scores("Is warm", id="b")
        .decides("Is in time", by=ask("Is it early?").yes(1.0).no(0.0), id="t")
        .includes(Rubric("n", ["Is kind", "Is short"]), id="n")
    )
    changed = CHANGES[name](rubric)
    judge = Judge(table_judge) if votes == 1 else Jury(Judge(table_judge), votes)
    result, again = evaluate("Good day to you.", rubric, judge), evaluate("Good day to you.", changed, judge)
    if diff(rubric, changed).needs_calls:
        with pytest.raises(DefinitionError, match="grade the candidate again, with the same store"):
            result.rescore(changed)
    else:
        assert result.rescore(changed).outcome == again.outcome


def test_results_are_added_found_by_key_and_never_called() -> None:
    """A sum has both parts; a text in brackets, brackets and `count()` are answered with the line that works."""
    some = grade_many(
        [{"key": "a", "output": "polite"}, {"key": "b", "output": "No."}], Rubric("r", ["Is polite"]), "offline"
    ).collect()
    assert [result.key for result in some + some] == ["a", "b", "a", "b"]
    with pytest.raises(TypeError, match=re.escape("write grades.by('key')['b'][0]")):
        some["b"]  # type: ignore[call-overload]
    assert some.by("key")["b"][0] == some[1]
    with pytest.raises(CallError, match=r"leave the brackets out: grades\.passed or \.failed"):
        some.failed()
    with pytest.raises(CallError, match=re.escape("write len(grades)")):
        some.count()  # type: ignore[call-arg]
