"""Tests in rubrics: what they may expect, that no judge and no store sees them, and how they are run."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from rubric import (
    Anchor,
    Candidate,
    DefinitionError,
    Judge,
    LoadError,
    Rubric,
    Store,
    check,
    diff,
    dump,
    dumps,
    grade,
    lint,
    load,
    load_suite,
    loads,
)
from rubric.driving import Ask, Failure
from rubric.testing import ScriptedModel
from rubric.values import RubricTest
from tests.command_line import run
from tests.recorded import lines, needs_data
from tests.rows import each_row

RUBRIC = (
    Rubric("reply", threshold=0.6)
    .requires("Says the date", id="date")
    .rates("Is clear", 1, 5, id="clarity")
    .forbids("Blames the customer", id="blame")
)
GOOD, BAD = "It arrives on Friday.", "No idea, your fault."


def judge(**said: Any) -> Judge:
    """Return a judge that finds the good reply good and the other one bad, but for what is *said* of the bad one."""

    def answer(ask: Ask) -> Any:
        id_ = ask.criteria[0].id
        good = {"date": True, "clarity": 5, "blame": False}
        bad = {"date": False, "clarity": 2, "blame": True, **said}
        return (good if GOOD in ask.messages[-1].text else bad)[id_]

    return Judge(ScriptedModel(answer), identity=f"answers {said}")


def asks(of: Judge) -> list[Ask]:
    model: Any = of.model
    found: list[Ask] = model.asks
    return found


TESTED = RUBRIC.tested_by(GOOD, passes=True, score="0.8..1").tested_by(
    BAD, fails=["date", "blame"], passes=False, score=(0, 0.4), expects={"clarity": "1..2", "blame": True}
)


def test_a_judge_that_says_what_tests_expect_passes_them() -> None:
    """Both tests pass, no criterion is one-sided, and the sentence counts tests and calls."""
    found = check(TESTED, judge())
    assert [trial.status for trial in found] == ["passed", "passed"]
    assert (found.ok, found.exit_code, found.one_sided) == (True, 0, ())
    assert found.sentence == "2 of 2 tests passed; 6 calls."


def test_each_thing_that_is_not_as_expected_is_named() -> None:
    """The failures name the score, the verdict and the level that were expected."""
    found = check(TESTED, judge(date=True, clarity=5))
    assert found[1].failures == ("the score is not 0..0.4", "'date' is not unmet", "'clarity' is not '1..2'")
    assert found.exit_code == 1
    assert "1 failed" in repr(found)


def test_a_test_that_could_not_be_judged_has_not_passed() -> None:
    """A refusal makes it ungraded and the exit code 2."""
    found = check(TESTED, judge(clarity=Failure("refusal", "no")))
    assert found[1].status == "ungraded"
    assert (found.ok, found.exit_code) == (False, 2)


def test_criteria_that_no_test_shows_both_ways_are_named() -> None:
    """A criterion that is unmet in every test is listed as one-sided."""
    found = check(TESTED, judge(blame=False, date=False))
    assert found.one_sided == ("blame",)
    assert "'blame' is not both met and unmet in the tests" in found._repr_markdown_()


def test_tests_reach_no_prompt_no_store_and_no_digest(tmp_path: Path) -> None:
    """A rubric with tests finds the stored replies of the one without, and has its digest."""
    plain, tested = judge(), judge()
    store = Store(tmp_path / "replies.db")
    grade(GOOD, RUBRIC, plain, store=store)
    assert grade(GOOD, TESTED, tested, store=store).usage.calls == 0
    grade(GOOD, TESTED, tested)
    shown = [[m.text for m in ask.messages] for ask in asks(tested)]
    assert not any("your fault" in text for texts in shown for text in texts)
    assert TESTED.digest == RUBRIC.digest
    assert TESTED != RUBRIC
    assert [(change.id, change.affects) for change in diff(RUBRIC, TESTED)] == [("tests", "people")]


def test_forty_tests_are_checked_from_a_store_without_a_call(tmp_path: Path) -> None:
    """The first check pays for 40 tests, three criteria and three repeats, the second for nothing."""
    rubric = RUBRIC
    for number in range(40):
        rubric = rubric.tested_by(f"{GOOD} {number}", passes=True)
    store = Store(tmp_path / "replies.db")
    assert check(rubric, judge(), 3, store=store).usage.calls == 360
    again = check(rubric, judge(), 3, store=store)
    assert (again.ok, again.usage.calls) == (True, 0)


def test_repeats_tell_how_often_answers_flip() -> None:
    """The rate counts the pairs of repeats with different answers, and the tests still pass."""
    rubric = Rubric("r").rates("Is clear", 1, 5, id="clarity")
    said = {"aaa": deque([4, 4, 4]), "bbb": deque([4, 5, 4]), "ccc": deque([3, 4, 5])}
    for text in said:
        rubric = rubric.tested_by(text, passes=True)

    def answer(ask: Ask) -> Any:
        return next(levels for text, levels in said.items() if text in ask.messages[-1].text).popleft()

    found = check(rubric, Judge(ScriptedModel(answer)), 3)
    flip = found.flips["clarity"]
    assert (flip.flipped, flip.cases, flip.differing, flip.pairs) == (2, 3, 5, 9)
    assert [trial.status for trial in found] == ["passed", "passed", "passed"]
    assert "2 of 3" in str(found)


def test_one_repeat_has_no_flips() -> None:
    """A single repeat makes no pair."""
    assert len(check(TESTED, judge()).flips) == 0


@each_row(
    ("fields", "match"),
    [
        ({}, "expects something"),
        ({"passes": True, "fails": True}, "both"),
        ({"passes": ["a"], "fails": ["a"]}, "'a' is to be met and not to be met"),
        ({"fails": False}, "passes: true"),
        ({"passes": "date"}, "list of ids"),
        ({"score": "0.4..0"}, "lowest number first"),
        ({"score": 3}, "score"),
        ({"score": True}, "a range such as"),
    ],
)
def test_a_test_that_cannot_be_is_refused(fields: dict[str, Any], match: str) -> None:
    """Empty, contradictory and malformed expectations are definition errors."""
    with pytest.raises(DefinitionError, match=match):
        RubricTest(GOOD, **fields)


@pytest.mark.parametrize("reply", ["reply.txt", "file://reply.txt"])
def test_a_path_is_not_tested_as_text(reply: str) -> None:
    """A reply that looks like a path is refused in code."""
    with pytest.raises(DefinitionError, match="file"):
        RubricTest(reply, passes=True)


@pytest.mark.parametrize(
    ("expected", "match"),
    [
        ({"fails": ["dat"]}, r"tests\[0\].fails: no criterion 'dat'; did you mean 'date'"),
        ({"expects": {"clarity": 9}}, r"tests\[0\].expects.clarity"),
        ({"expects": {"date": 1}}, "true or false"),
    ],
)
def test_a_test_of_what_the_rubric_does_not_have_is_refused(expected: dict[str, Any], match: str) -> None:
    """Unknown ids and impossible values are named with the test's place."""
    with pytest.raises(DefinitionError, match=match):
        check(RUBRIC.tested_by(GOOD, **expected), judge())


def test_a_rubric_without_tests_is_not_checked() -> None:
    """The error names the verb that adds tests."""
    with pytest.raises(DefinitionError, match="tested_by"):
        check(RUBRIC, judge())


def test_an_anchor_is_no_test() -> None:
    """A test whose reply is an anchor is refused, and lint reports it."""
    anchored = TESTED.revising("date", anchors=[Anchor(f" {GOOD} ", 1)])
    with pytest.raises(DefinitionError, match=r"tests\[0\].*anchor of 'date'"):
        check(anchored, judge())
    assert "test-is-anchor" in [remark.rule for remark in lint(anchored)]
    assert "test-is-anchor" not in [remark.rule for remark in lint(TESTED)]


FILE = """\
rubric: reply
criteria:
  - id: date
    text: Says the date
  - id: clarity
    text: Is clear
    levels: {1: bad, 5: good}
# What a good judge says:
tests:
  - {reply: "It arrives on Friday.", passes: true}  # the good one
  - {reply: file://bad.txt, fails: [date], score: 0..0.4, expects: {clarity: 2}}
  - reply: {output: Because., input: Why?}
    fails: true
"""


def test_a_file_holds_tests_with_replies_of_their_own(tmp_path: Path) -> None:
    """Replies may be text, files or candidates, and writing keeps comments and file names."""
    (tmp_path / "bad.txt").write_text(BAD)
    (tmp_path / "rubric.yaml").write_text(FILE)
    rubric = load(tmp_path / "rubric.yaml")
    assert [test.candidate.output for test in rubric.tests] == [GOOD, BAD, "Because."]
    assert rubric.tests[1] == RubricTest(BAD, fails=["date"], score=(0, 0.4), expects={"clarity": 2})
    assert rubric.tests[2] == RubricTest(Candidate("Because.", input="Why?"), fails=True)
    assert loads(dumps(rubric)) == rubric
    dump(rubric.passing_at(0.8), tmp_path / "rubric.yaml")
    kept = (tmp_path / "rubric.yaml").read_text()
    assert all(line in kept for line in ("# the good one", "file://bad.txt", "# What a good judge says:"))
    assert [change.id for change in diff(rubric, load(tmp_path / "rubric.yaml"))] == ["threshold"]


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("{reply: file://none.txt, fails: true}", "reply"),
        ("{reply: file://../../etc/hosts, fails: true}", "reply"),
        ("{reply: {output: file://rubric.yaml}, fails: true}", "no file is read for it; .* reply: file://rubric.yaml"),
        ("{reply: a b, fails: [dat]}", "did you mean 'date'"),
        ("{reply: a b}", "expects something"),
        ("{reply: a b, pases: true}", "did you mean 'passes'"),
    ],
)
def test_a_wrong_test_in_a_file_is_told_with_its_place(tmp_path: Path, line: str, match: str) -> None:
    """Missing files, outside paths, unknown ids and keys are reported at their line."""
    file = tmp_path / "rubric.yaml"
    file.write_text(f"criteria: [{{id: date, text: Says the date}}]\ntests:\n  - {line}\n")
    with pytest.raises(LoadError, match=match) as caught:
        load(file)
    assert caught.value.problems[0].line == 3


def test_the_command_says_the_result_by_its_exit_code(tmp_path: Path) -> None:
    """Passing ends with 0, failing with 1, and a rubric without tests with 2."""
    file = tmp_path / "rubric.yaml"
    head = "criteria: [{id: ticket, check: {contains: 'ticket #'}}]\ntests:\n  - {reply: 'It is ticket #1', passes: true}\n"
    file.write_text(head + "  - {reply: It is done, fails: [ticket]}\n")
    assert run("check", str(file), "-j", "offline").exit_code == 0
    file.write_text(head + "  - {reply: It is done, passes: true}\n")
    failed = run("check", str(file), "-j", "offline", "--format", "json")
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["tests"][1]["failures"] == ["the grade does not pass"]
    file.write_text("criteria: [A]\n")
    assert run("check", str(file), "-j", "offline").exit_code == 2


@needs_data
def test_the_flips_of_a_recorded_judge_are_counted_to_the_digit() -> None:
    """Three samples of GPT-4 each: of 320 replies 121 are not rated alike, and 244 of 960 pairs of samples differ."""
    rows = lines("prometheus_gpt4_jury", "vicuna.jsonl.gz")
    votes = [iter(row["scores"]) for row in rows]
    rubric = Rubric("r").rates("Good", (1, 5), id="good")
    for number in range(len(rows)):
        rubric = rubric.tested_by(f"It is reply {number}.", expects={"good": "1..5"})

    def answer(ask: Ask) -> int:
        prompt = " ".join(message.text for message in ask.messages)
        return int(next(votes[int(prompt.partition("It is reply ")[2].partition(".")[0])]))

    found = check(rubric, Judge(ScriptedModel(answer), sealed=False), 3)
    flip = next(one for one in found.flips if one.id == "good")
    assert (flip.flipped, flip.cases, flip.differing, flip.pairs) == (121, 320, 244, 960)
    assert "37.8% (121 of 320)" in str(found)


def test_replies_in_files_are_read_in_suites_and_for_nested_rubrics(tmp_path: Path) -> None:
    """`file://` replies are read at every level of a suite."""
    (tmp_path / "bad.txt").write_text("No idea.")
    inner = "{criteria: [{id: x, check: {contains: a}}], tests: [{reply: file://bad.txt, passes: true}]}"
    rubric = f"{{criteria: [{{id: in, text: t, rubric: {inner}}}], tests: [{{reply: file://bad.txt, fails: [in]}}]}}"
    rubric = rubric.replace("text: t, ", "")
    (tmp_path / "s.yaml").write_text(f"suite: s\nrubric: {rubric}\ncases: [{{id: a}}, {{id: b, rubric: {rubric}}}]\n")
    for case in load_suite(tmp_path / "s.yaml"):
        assert case.rubric.tests[0].candidate.output == "No idea."
        nested = case.rubric["in"].answer
        assert isinstance(nested, Rubric)
        assert nested.tests[0].candidate.output == "No idea."
        assert check(nested, "offline").ok


def test_the_tests_of_the_rubrics_of_a_suite_are_run_once_each(tmp_path: Path) -> None:
    """A shared rubric is checked under the first case that uses it."""
    file = tmp_path / "suite.yaml"
    file.write_text("""
suite: replies
judge: offline
rubrics:
  ticket:
    criteria: [{id: ticket, check: {contains: 'ticket #'}}]
    tests: [{reply: 'It is ticket #1', passes: true}, {reply: It is done, fails: true}]
  polite:
    criteria: [Thanks the customer]
    tests: [{reply: No., passes: true}]
cases:
  - {id: plain, rubric: Is warm, output: a}
  - {id: first, rubric: {ref: ticket}, output: a}
  - {id: second, rubric: {ref: ticket}, output: b}
  - {id: third, rubric: {ref: polite}, output: b}
""")
    done = run("check", str(file), "--format", "json")
    assert [(one["case"], one["ok"]) for one in json.loads(done.stdout)] == [("first", True), ("third", False)]
    assert done.exit_code == 1
    shown = run("check", str(file)).stdout
    assert "first: 2 of 2 tests passed" in shown
    assert "third: 0 of 1 test passed" in shown


def test_a_suite_without_tests_is_told_where_they_go(tmp_path: Path) -> None:
    """The command ends with 2 and says that no rubric of the suite has tests."""
    file = tmp_path / "suite.yaml"
    file.write_text("cases: [{id: a, rubric: Is warm, output: b}]\n")
    done = run("check", str(file), "-j", "offline")
    assert done.exit_code == 2
    assert "is a suite, and none of its rubrics has tests" in done.stderr


def test_a_suite_in_place_of_a_rubric_is_told_its_name(tmp_path: Path) -> None:
    """`load` names `load_suite` for a file with cases."""
    file = tmp_path / "suite.yaml"
    file.write_text("suite: a\ncases: [{id: a, rubric: Is warm, output: b}]\n")
    with pytest.raises(LoadError, match="this is a suite, with cases; load_suite"):
        load(file)
