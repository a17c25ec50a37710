"""Rules over runs as criteria: scores, guards, what is unknown, and the steps that are evidence."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from rubric import (
    Candidate,
    Criterion,
    Grade,
    Message,
    Rubric,
    Run,
    ToolCall,
    Trajectory,
    Ungraded,
    call,
    evaluate,
    lint,
    said,
    state,
)
from rubric.values import State, SubRun, Within
from rubric.values.findings import Evidence
from tests.rows import each_row
from tests.values.test_run_rules import agent, do, user

RUN = Run(
    [user("Go"), do("verify", order=7), do("refund", order=7), do("refund", order=8), do("delete_db"), agent("Done")]
)


def graded(check: Any, run: Run | Candidate = RUN, **fields: Any) -> Any:
    """Return the result of a criterion by *check*."""
    candidate = Candidate(run=run) if isinstance(run, Run) else run
    return evaluate(candidate, Rubric(criteria=[Criterion("It is so", id="c", check=check, **fields)]), "offline")


def test_a_broken_rule_scores_nothing_and_names_its_steps() -> None:
    """In the reason, and as evidence that code has found."""
    result = graded(call("refund").needs("verify", same="order"))
    assert isinstance(result, Grade)
    assert (result.score, result.passed) == (0, False)
    words = '[4] call refund({"order": 8})'
    assert result["c"].evidence == (Evidence(words, 0, len(words), "step 4"),)
    assert result["c"].evidence[0].verified
    assert "broken at step [4] call refund" in result["c"].reason


@each_row(
    ("check", "there"),
    [
        (call("delete_*"), True),
        (call("DELETE_*"), True),
        (call("drop_*"), False),
        (call("delete_*").at_least(2), False),
        (call("delete_db").then("verify"), False),
        (call("verify").then("refund"), True),
        (call("log").then("refund"), False),
        (Trajectory(["delete_*"]), True),
    ],
    ids=repr,
)
def test_a_guard_fails_where_the_rule_is_kept(check: Any, there: bool) -> None:
    """Wild cards are read; a rule that is kept only vacuously finds nothing."""
    result = graded(check, polarity="guard")
    assert isinstance(result, Grade)
    assert (result["c"].score, result.passed) == (float(there), not there)


def test_a_rule_that_is_kept_vacuously_says_so() -> None:
    """It scores 1, as every rule that is not broken."""
    result = graded(call("log").then("refund"))
    assert isinstance(result, Grade)
    assert result.passed
    assert "vacuously, since there is no call('log')" in result["c"].reason


def test_what_is_unknown_is_ungraded() -> None:
    """A run that is cut short may still break the rule; what is broken for good is broken."""
    cut = Run(RUN.events[:3], complete=False)
    candidate = Candidate("", run=cut)
    unknown = graded(call("refund").never().after("logout"), candidate)
    assert isinstance(unknown, Ungraded)
    assert "lacks a part" in unknown["c"].reason
    broken = graded(call("refund").never(), candidate)
    assert isinstance(broken, Grade)
    assert not broken.passed
    assert isinstance(graded(state("mail").unchanged()), Ungraded)


def test_a_result_without_its_call_makes_a_rule_unknown() -> None:
    """The tool may have been called, with arguments that nobody knows; the form of a call is told."""
    events = (user("Hi"), Message("tool", "ok", name="verify"), Message("assistant", "Done"))
    candidate = Candidate(run=Run(events))
    unknown = graded(call("verify").at_least(1), candidate)
    assert isinstance(unknown, Ungraded)
    assert "a result stands with its call, {name: search, result: found}" in unknown["c"].reason


def test_files_and_changes_are_states_after_the_run() -> None:
    """By the name of the file, and as `file_changes`."""
    candidate = Candidate(run=RUN, files={"a.md": "Total: 7"}, file_changes="+Total: 7")
    for check, passed in (
        (state("file:a.md", matches=r"Total: \d").at_end(), True),
        (state("file:a.md", matches="Sum").at_end(), False),
        (state("file_changes", matches=r"(?m)^\+Total").at_end(), True),
        (call("refund").then(state("file:a.md", "Total: 7")), True),
        (call("delete_db").last(), True),
    ):
        result = graded(check, candidate)
        assert isinstance(result, Grade), check
        assert result.passed is passed, check
    assert isinstance(graded(state("file:b.md", "x").at_end(), candidate), Ungraded)


def test_a_rule_of_a_turn_is_about_that_turn() -> None:
    """The calls of the turns before it do not count, and steps keep their numbers."""
    turns = Run([user("a"), do("search"), do("search"), agent("A"), user("b"), do("search"), agent("B")])
    result = graded(call("search").at_most(1), turns, on="each turn")
    assert isinstance(result, Grade)
    assert result.score == 0.5
    assert [quote.where for quote in result["c"].evidence] == ["step 3"]
    last = graded(call("search").never(), turns, on="last turn")
    assert [quote.where for quote in last["c"].evidence] == ["step 6"]


def test_a_state_before_the_turn_is_what_a_turn_begins_with() -> None:
    """`unchanged` compares with it."""
    turns = Run([State({"s": 1}), user("a"), agent("A"), user("b"), State({"s": 2}), agent("B")])
    assert not graded(state("s").unchanged(), turns, on="last turn").passed


def test_words_and_calls_stand_in_one_order() -> None:
    """Asked first is not asked later."""
    cases: list[tuple[list[Any], bool]] = [
        ([user("hi"), agent("Shall I?"), user("Yes"), do("refund"), agent("Done")], True),
        ([user("hi"), do("refund"), agent("Shall I?"), user("Yes"), agent("Done")], False),
    ]
    for events, passed in cases:
        result = graded(call("refund").needs(said("user", "(?i)yes")), Run(events))
        assert result.passed is passed


def test_a_candidate_of_lists_has_a_run_too() -> None:
    """Its calls come after its messages, before the output."""
    candidate = Candidate("Done", messages=[Message("user", "yes")], tool_calls=[ToolCall("refund")])
    assert graded(call("refund").needs(said("user", "yes")) & said("assistant", "Done").last(), candidate).passed


def test_lint_reads_no_texts_out_of_rules() -> None:
    """They are about the run, so no output meets or misses them."""
    rubric = Rubric(criteria=[Criterion("Never a", check=call("a").never()), Criterion("Ends", check=call("b").last())])
    assert [str(remark) for remark in lint(rubric) if "meet" in str(remark)] == []


@each_row(
    ("check", "met"),
    [
        (Within(tool_calls=1), None),
        (Within(tool_calls=0), False),
        (Trajectory(["verify", "refund"]), None),
        (Trajectory(["verify"]), True),
        (Trajectory(["verify"], order="exact"), None),
        (Trajectory(["refund"], order="exact"), False),
    ],
)
def test_what_may_follow_a_cut_is_not_counted_as_absent(check: Any, met: bool | None) -> None:
    """Limits and orders of calls are unknown where calls that the log lacks could change them."""
    cut = Run([Message("user", "Hi"), ToolCall("verify"), Message("assistant", "Done")], complete=False)
    result = evaluate(Candidate(run=cut), Rubric(criteria=[Criterion("Is so", id="c", check=check)]), "offline")
    assert result["c"].score == (None if met is None else met)


def test_a_log_that_ends_before_the_answer_is_no_fail() -> None:
    """What was not logged is not known to be empty."""
    rubric = Rubric(criteria=[Criterion("Is polite", id="c")])
    cut = Run([Message("user", "Hi")], complete=False)
    assert isinstance(evaluate(Candidate("", run=cut), rubric, "offline"), Ungraded)
    assert evaluate(Candidate("", run=evolve(cut, complete=True)), rubric, "offline").score == 0


def test_a_rule_on_a_sub_agent_names_the_steps_of_the_run() -> None:
    """Its second event is the step 2.2 of a run in which it was started second."""
    sub = SubRun("coder", Run([ToolCall("read"), ToolCall("delete")]))
    run = Run([Message("user", "Hi"), sub, Message("assistant", "Done")])
    criterion = Criterion("Keeps", id="c", check=call("delete").never(), on="sub-agent coder")
    result = evaluate(Candidate(run=run), Rubric(criteria=[criterion]), "offline")
    assert "broken at step [2.2]" in result["c"].reason
    assert result["c"].evidence[0].where == "step 2.2"
