"""What rows of finished outputs have beside the output: shown to the judge, or told of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from rubric import Candidate, Case, DefinitionError, Judge, Rubric, Suite, ToolCall, loads_suite
from rubric.testing import ScriptedModel
from tests.command_line import run
from tests.rows import each_row

KINDS = {
    "native": {"cases": [{"id": "a", "rubric": {"criteria": ["Is right by the reference"]}}]},
    "promptfoo": {
        "prompts": ["{{q}}"],
        "providers": ["openai:gpt-5"],
        "tests": [{"vars": {"q": ""}, "assert": [{"type": "llm-rubric", "value": "Is right"}]}],
    },
    "agentv-1": {"evalcases": [{"id": "a", "expected_outcome": "Is right", "rubrics": ["Is right"]}]},
    "agentv-1.5": {
        "tests": [{"id": "a", "criteria": "Right", "assertions": [{"type": "rubrics", "criteria": ["Is right"]}]}]
    },
    "mcptest": {"evals": [{"name": "a", "server": "api", "prompt": "Q", "rubric": "Is right"}]},
    "deepeval": {"name": "a", "criteria": "Is right", "evaluation_params": ["actual_output", "expected_output"]},
}


def asked(suite: Suite) -> str:
    """Return all that the judges of *suite* are asked."""
    model = ScriptedModel(lambda _: True)
    suite.run(Judge(model))
    return "\n".join(str(message) for ask in model.asks for message in ask.messages)


@each_row("kind", [*KINDS])
def test_a_reference_beside_an_output_reaches_the_judge(kind: str) -> None:
    """Whatever file the rubric is from, and under each name that means it alone; so does a context if it has none."""
    for name in ("reference", "expected_output", "ground_truth"):
        suite = loads_suite(json.dumps(KINDS[kind]), kind)
        row = {"id": suite.cases[0].id, "output": "It is 4.", name: "Four, says REF", "context": "CTX"}
        answered = suite.answered([row])
        told = "its context is not that of its case" in "".join(one.message for one in answered.warnings)
        assert told == bool(suite.cases[0].context)
        seen = asked(answered)
        assert ("REF" in seen, "CTX" in seen or told) == (True, True), name


@each_row(
    ("row", "told"),
    [
        ({"reference": "Five"}, "its reference is not that of its case, which judges see (first: replies[0])"),
        ({"reference": " Four\n"}, None),
        ({"reference": ["Four", "4"]}, "no judge sees the column 'reference'; rename it reference, or make it a text"),
        ({"context": {"a": 1}}, "no judge sees the column 'context'; rename it context, or make it a text"),
        ({"answer": "4"}, "the column 'answer'; rename it output or reference"),
        ({"ground_truth": "Four", "gold": "4"}, "the column 'gold'; rename it reference"),
        ({"tools_called": [{"name": "add"}]}, "the column 'tools_called'; rename it tool_calls"),
        ({"tool_calls": [{"name": "add"}], "score": 1, "error": "", "cost": 0.2, "reason": "Because of it"}, None),
        ({"input": "How much is 2 + 2?"}, None),
        ({"question": "How much is 2 + 3?"}, "its input is not that of its case"),
    ],
)
def test_what_no_judge_sees_of_a_row_is_told(row: Mapping[str, Any], told: str | None) -> None:
    """The case's own value stays, and the warning is one line for all such rows."""
    case = Case("a", "Is right", reference="Four", input="How much is 2 + 2?")
    answered = Suite("s", [case]).answered([{"id": "a", "output": "It is 4.", **row}] * 2)
    assert [one.reference for one in answered] == ["Four"] * 2
    said = [one.message for one in answered.warnings]
    assert len(said) == bool(told)
    assert (told or "") in "".join(said)


def test_the_question_of_a_chat_reaches_the_judge() -> None:
    """A case without a question takes that of the chat whose answer is graded."""
    chat = [{"role": "user", "content": "How much is it?"}, {"role": "assistant", "content": "It is 4."}]
    (case,) = Suite("s", [Case("a", "Is right")]).answered([{"id": "a", "output": chat}])
    assert (case.input, case.output) == ("How much is it?", "It is 4.")


def test_a_column_that_means_the_output_alone_is_it() -> None:
    """As in a file of many candidates."""
    (case,) = Suite("s", [Case("a", "Is right")]).answered([{"case": "a", "reply": "It is 4."}])
    assert case.output == "It is 4."


@each_row("kind", [*KINDS])
def test_rows_that_are_graded_by_a_suite_are_told_the_option(kind: str) -> None:
    """It is no rubric, and no line is printed that would be refused again."""
    with TemporaryDirectory() as folder:
        suite, rows = Path(folder, "suite.yaml"), Path(folder, "rows.jsonl")
        suite.write_text(json.dumps(KINDS[kind]))
        rows.write_text('{"output": "It is 4.", "expected": "Four"}')
        done = run("grade-many", str(suite), str(rows), "-j", "offline")
        assert f"--outputs {rows}" in done.stderr or kind == "agentv-1.5"
        assert "write rubric" not in done.stderr


def test_a_text_and_its_reference_beside_a_suite_are_told_where_they_belong(tmp_path: Path) -> None:
    """The suite alone is another line, and says what it leaves out."""
    suite, text = tmp_path / "suite.yaml", tmp_path / "answer.txt"
    suite.write_text(json.dumps(KINDS["deepeval"]))
    text.write_text("It is 4.")
    done = run("grade", str(suite), str(text), "--reference", str(text), "-j", "offline")
    assert "rows of answers: --outputs rows.jsonl" in done.stderr
    assert f"without --reference {text} {text}, write a line such as rubric grade {suite} -j offline" in done.stderr


# -- what a metric of deepeval names ------------------------------------------------------------------------


def metric(*params: str, **more: Any) -> Suite:
    """Return the suite of a metric that names *params*."""
    return loads_suite(json.dumps({"name": "a", "criteria": "Is right", "evaluation_params": [*params], **more}))


@each_row(
    ("params", "needs"),
    [
        (["actual_output", "expected_output"], ("reference",)),
        (["input", "context", "retrieval_context", "tools_called"], ("input", "context", "tool_calls")),
        (["LLMTestCaseParams.EXPECTED_OUTPUT"], ("reference",)),
    ],
)
def test_a_case_needs_what_its_metric_names(params: list[str], needs: tuple[str, ...]) -> None:
    """By the names that a candidate has; so does the case in our format."""
    suite = metric(*params)
    assert suite.cases[0].needs == needs
    assert not suite.warnings


def test_a_parameter_that_no_candidate_has_is_told() -> None:
    """It is named at its place in the file."""
    (warning,) = metric("actual_output", "expected_tools").warnings
    assert warning.message == "'expected_tools' is not shown to judges here"


def test_a_candidate_without_what_its_metric_names_costs_no_call() -> None:
    """It is told before the run; the others are graded."""
    rows = [{"id": "metric", "output": "Paris", "expected_output": "Paris"}, {"id": "metric", "output": "Rome"}]
    suite = metric("actual_output", "expected_output").answered(rows)
    assert [one.message for one in suite.warnings] == [
        "it has no reference, which its rubric needs (first: replies[1])"
    ]
    model = ScriptedModel(lambda _: 10)
    report = suite.run(Judge(model))
    assert [row.status for row in report] == ["passed", "deferred"]
    assert report.rows[1].reason == "it has no reference, which its rubric needs"
    assert len(model.asks) == 1
    assert "it has no reference" in suite.plan("offline")._repr_markdown_()


def test_a_target_gives_what_its_metric_names_or_its_answer_is_not_judged() -> None:
    """What is needed may come with the answer, as retrieved texts do."""
    suite, model = metric("actual_output", "retrieval_context", "tools_called"), ScriptedModel(lambda _: 10)
    call = ToolCall("search")
    report = suite.run(Judge(model), target=lambda _: Candidate("Paris", context="It is Paris", tool_calls=[call]))
    assert report.rows[0].status == "passed"
    report = suite.run(Judge(model), target=lambda _: "Paris")
    assert (report.rows[0].status, len(model.asks)) == ("ungraded", 1)
    assert "it has no context and no tool_calls, which its rubric needs" in report.rows[0].reason


def test_needs_are_fields_of_a_candidate() -> None:
    """Another name is refused."""
    with pytest.raises(DefinitionError, match="needs"):
        Case("a", "Is right", needs=["refrence"])


def test_an_output_may_have_the_name_that_deepeval_gives_it(tmp_path: Path) -> None:
    """A row of test cases of deepeval is one, as it is."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": "a", "actual_output": "Hello"}\n', encoding="utf-8")
    suite = Suite("s", [Case("a", Rubric.of("Is polite"), input="Hi")])
    assert suite.answered(rows).cases[0].output == "Hello"
