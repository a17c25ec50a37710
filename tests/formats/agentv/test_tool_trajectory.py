"""AgentV's graders of what a run did: tool-trajectory, skill-trigger, goals, JavaScript, templates, custom types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric import Candidate, Grade, LoadError, Rubric, Ungraded, load_suite
from rubric.engine.grade import evaluate
from rubric.formats.suites import loads_suite
from rubric.suites.suite import Suite
from rubric.testing.scripted_model import ScriptedModel
from tests.rows import each_row


def suite_of(grader: dict[str, Any], *, first: bool = False, **options: Any) -> Suite:
    """Return the suite of a file with one *grader*, of generation 1 (*first*) or 1.5, by the default call."""
    if first:
        evaluators = {"execution": {"evaluators": [{"name": "it", **grader}]}}
        data: dict[str, Any] = {"evalcases": [{"id": "a", "input": "Q", "expected_outcome": "Good", **evaluators}]}
    else:
        data = {"tests": [{"id": "a", "input": "Q", "criteria": "Good", "assertions": [grader]}]}
    return loads_suite(json.dumps(data), **options)


def score_of(grader: dict[str, Any], *calls: Any, first: bool = False) -> float:
    """Return the score of a run with *calls*, each the name of a tool, or its name and arguments."""
    made = [call if isinstance(call, tuple) else (call, {}) for call in calls]
    run = Candidate("Done", tool_calls=[{"name": name, "arguments": given} for name, given in made])
    result = evaluate(run, suite_of(grader, first=first).cases[0].rubric, "offline")
    assert isinstance(result, Grade), result
    return result.score


def trajectory(mode: str, *expected: Any, **more: Any) -> dict[str, Any]:
    """Return a tool-trajectory of *expected* calls, each the name of a tool or a mapping."""
    calls = [{"tool": call} if isinstance(call, str) else call for call in expected]
    return {"type": "tool-trajectory", "mode": mode, **({"expected": calls} if calls else {}), **more}


MINIMUMS = trajectory("any_order", minimums={"knowledgeSearch": 2, "documentRetrieve": 1})
WORKFLOW = trajectory("in_order", "fetchData", "validateSchema", "transformData", "saveResults")
AUTH = trajectory("exact", "checkCredentials", "generateToken", "auditLog")
SEARCH = {"tool": "search", "args": {"query": "machine learning"}}
FOUND = ("search", {"query": "machine learning"})
FOUND_MORE = ("search", {"query": "machine learning", "limit": 3})
WRONG = ("search", {"query": "knitting"})


@each_row(
    ("grader", "calls", "score"),
    [
        (MINIMUMS, ["documentRetrieve", "knowledgeSearch", "knowledgeSearch"], 1),
        (MINIMUMS, ["knowledgeSearch", "documentRetrieve"], 0.5),
        (MINIMUMS, [], 0),
        (WORKFLOW, ["fetchData", "log", "validateSchema", "transformData", "saveResults", "log"], 1),
        (WORKFLOW, ["fetchData", "transformData", "validateSchema", "saveResults"], 0.5),
        (WORKFLOW, ["fetchData"], 0.25),
        (AUTH, ["checkCredentials", "generateToken", "auditLog"], 1),
        (AUTH, ["checkCredentials", "auditLog", "generateToken"], 1 / 3),
        (AUTH, ["checkCredentials", "generateToken"], 2 / 3),
        (trajectory("in_order", SEARCH, {"tool": "process", "args": "any"}, "save"), [FOUND, ("process", {"x": 1}), "save"], 1),
        (trajectory("in_order", SEARCH), [WRONG], 0),
        (trajectory("in_order", SEARCH), [WRONG, FOUND], 0),
        (trajectory("in_order", SEARCH), [FOUND_MORE], 0),
        (trajectory("in_order", SEARCH, args_match="superset"), [FOUND_MORE], 1),
        (trajectory("in_order", {**SEARCH, "args_match": "ignore"}), [WRONG], 1),
        (trajectory("exact", {**SEARCH, "argsMatch": ["query"]}), [FOUND_MORE], 1),
        (trajectory("superset", "a", "b", "a"), ["c", "b", "a"], 2 / 3),
        (trajectory("superset", SEARCH, args_match="subset"), ["search"], 1),
        (trajectory("subset", "a", "b"), ["a", "a", "c"], 2 / 3),
        (trajectory("subset", "a"), [], 1),
        (trajectory("subset", expected=[]), ["a"], 0),
    ],
)  # fmt: skip
def test_the_score_is_the_share_that_agentv_documents(grader: dict[str, Any], calls: list[Any], score: float) -> None:
    """The files are those of its page on tool trajectories; what it does with arguments is what its code does."""
    assert score_of(grader, *calls) == pytest.approx(score)


def test_generation_1_takes_further_arguments() -> None:
    """`args` of generation 1 named some of them; later ones name all unless they say otherwise."""
    grader = {**trajectory("in_order", SEARCH), "type": "tool_trajectory"}
    assert (score_of(grader, FOUND_MORE, first=True), score_of(grader, FOUND_MORE)) == (1, 0)


def test_a_limit_of_time_does_not_count_and_says_so() -> None:
    """AgentV leaves it out too where a trace has no durations."""
    grader = trajectory("in_order", {"tool": "Read", "max_duration_ms": 100}, {"tool": "Edit", "max_duration_ms": 500})
    suite = suite_of(grader)
    assert ["does not count" in problem.message for problem in suite.warnings] == [True]
    assert score_of(grader, "Read", "Edit") == 1


@each_row(
    ("grader", "said"),
    [
        (trajectory("sideways", "a"), "one of any_order"),
        ({"type": "tool-trajectory", "expected": [{"tool": "a"}]}, "one of any_order"),
        (trajectory("any_order"), "a whole number from 0"),
        (trajectory("in_order"), "a list of calls"),
        (trajectory("in_order", {"args": {}}), "calls with `tool`"),
        (trajectory("exact", "a", args_match="loose"), "one of exact"),
        (trajectory("exact", {"tool": "a", "args": "some"}), "a mapping, or any"),
        ({"type": "skill-trigger"}, "the name of a skill"),
    ],
)
def test_what_cannot_be_compared_leaves_its_test_ungraded(grader: dict[str, Any], said: str) -> None:
    """AgentV skips such a grader with a warning; here the warning has its place, and the other tests are graded."""
    suite = suite_of(grader)
    assert [problem.line for problem in suite.warnings if said in problem.message] == [1]
    assert isinstance(evaluate("Done", suite.cases[0].rubric, "offline"), Ungraded)


@pytest.mark.parametrize("mode", ["in_order", "exact", "superset", "subset"])
def test_an_empty_list_of_calls_is_read_as_agentv_reads_it(mode: str) -> None:
    """Only `subset` minds calls then; where the others hold of any calls, a warning says so."""
    grader = trajectory(mode, expected=[])
    assert (score_of(grader), score_of(grader, "a")) == (1, float(mode != "subset"))
    assert any("holds of any calls" in problem.message for problem in suite_of(grader).warnings) == (mode != "subset")


@pytest.mark.parametrize(
    ("call", "triggered"),
    [
        ({"name": "Skill", "arguments": {"skill": "csv-analyzer"}}, True),
        ({"name": "Read", "arguments": {"file_path": ".claude/skills/csv-analyzer/SKILL.md"}}, True),
        ({"name": "Bash", "arguments": {"command": "ls"}, "result": ".agents/skills/csv-analyzer/SKILL.md"}, True),
        ({"name": "Read", "arguments": {"file_path": "csv-analyzer.md"}}, False),
    ],
)
def test_a_skill_is_triggered(call: dict[str, Any], triggered: bool) -> None:
    """By its tool, by reading its files, or where a result shows them."""
    for wanted in (True, False):
        grader = {"type": "skill-trigger", "skill": "csv-analyzer", "should_trigger": wanted}
        result = evaluate(Candidate("x", tool_calls=[call]), suite_of(grader).cases[0].rubric, "offline")
        assert isinstance(result, Grade)
        assert result.passed is (triggered is wanted)


def test_a_goal_is_judged_by_what_the_run_did() -> None:
    """The judge sees the calls of tools, and its own verdict can fail the case."""
    (case,) = suite_of({"type": "trajectory:goal-success", "value": {"goal": "Refund the order"}})
    model = ScriptedModel(['{"reason": "no refund", "pass": false, "score": 0.9}'])
    result = evaluate(Candidate("Done", tool_calls=[{"name": "find_order"}]), case.rubric, model)
    assert isinstance(result, Grade)
    assert not result.passed
    shown = "\n".join(message.text for message in model.asks[0].messages)
    assert "reached this goal: Refund the order" in shown
    assert "find_order" in shown


# The first four are of the tests of AgentV's own assertions.
SCRIPTS = [
    ("output.length > 3", True),
    ("({pass: output.includes('Hello'), score: 0.9, reason: 'greets'})", True),
    ("const words = output.split(' '); words.length === 2", True),
    ("if (output.length < 3) { return false; } return context.expectedOutput.length === 0;", True),
    ("output.length > 100", False),
    ("output.includes('{{ word }}')", True),
]


@pytest.mark.parametrize(("code", "passed"), SCRIPTS)
def test_javascript_is_run_in_the_engine(code: str, passed: bool, tmp_path: Path) -> None:
    """A file with AgentV's name, though the type was promptfoo's first."""
    pytest.importorskip("quickjs")
    file = tmp_path / "greeting.eval.yaml"
    test = {"id": "a", "vars": {"word": "world"}, "assert": [{"type": "javascript", "value": code}]}
    file.write_text(json.dumps({"prompts": ["Say it."], "tests": [test]}))
    suite = load_suite(file)
    assert (suite.format, suite.warnings) == ("agentv-2", ())
    result = evaluate(Candidate("Hello world"), suite.cases[0].rubric, "offline")
    assert isinstance(result, Grade)
    assert result.passed is passed


def test_templates_of_graders_are_included(tmp_path: Path) -> None:
    """By a name in `.agentv/templates`, or a path; texts of a template join those beside it."""
    files = {
        ".git/HEAD": "",
        ".agentv/templates/safe.yaml": "assert:\n- Is harmless\n- include: short\n",
        ".agentv/templates/short.yml": "assert: [{type: regex, value: '^.{1,80}$'}]\n",
        "evals/shared/json.yaml": "assert: [{type: is-json}]\n",
        "evals/a.eval.yaml": "tests: [{id: a, vars: {input: Q}, assert: [Is kind, {include: safe},"
        " {include: ./shared/json.yaml}]}]\nprompts: ['{{ input }}']\n",
        "evals/b.eval.yaml": "tests: [{id: a, vars: {input: Q}, assert: [{include: sfe}]}]\nprompts: ['{{ input }}']\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (case,) = load_suite(tmp_path / "evals/a.eval.yaml")
    texts, pattern, json_ = (criterion.answer for criterion in case.rubric.criteria)
    assert isinstance(texts, Rubric)
    assert [criterion.text for criterion in texts.criteria] == ["Is kind", "Is harmless"]
    assert (str(pattern), str(json_)) == ("matches ^.{1,80}$", "is JSON")
    with pytest.raises(LoadError, match=r"b\.eval\.yaml.*include: .*sfe\.yaml.*looked"):
        load_suite(tmp_path / "evals/b.eval.yaml")


def test_a_type_of_the_projects_own_is_a_function_of_the_caller() -> None:
    """Without one, the case is ungraded, and says how to give it."""
    suite = suite_of({"type": "min-words"})
    result = evaluate(Candidate("one two three"), suite.cases[0].rubric, "offline")
    assert isinstance(result, Ungraded)
    assert "functions={'min-words': function}" in result.explain()
    (case,) = suite_of({"type": "min-words"}, functions={"min-words": lambda run: len(run.output.split()) >= 3})
    assert isinstance(evaluate(Candidate("one two three"), case.rubric, "offline"), Grade)
