"""Files of deepeval, Google's ADK and MLflow: recognised, read, located, and written natively."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rubric import Candidate, Judge, grade
from rubric.errors import LoadError
from rubric.formats.suites import convert, loads_suite
from rubric.suites.suite import Suite
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.answers import Levels, ScoreRange, Unit, YesNo
from rubric.values.checks import Unsupported
from tests.rows import each_row

ADK = {
    "criteria": {
        "rubric_based_final_response_quality_v1": {
            "threshold": 0.8,
            "judge_model_options": {"judge_model": "gemini-2.5-flash", "num_samples": 5},
            "rubrics": [
                {"rubric_id": "direct", "rubric_content": {"text_property": "Answers the question itself."}},
                {"rubricId": "short", "rubricContent": {"textProperty": "Is short."}},
            ],
        }
    }
}
G_EVAL = {
    "name": "Correctness",
    "evaluation_steps": ["Compare the facts", "Punish what is left out"],
    "evaluation_params": ["actual_output", "expected_output"],
    "rubric": [
        {"score_range": [0, 4], "expected_outcome": "Wrong"},
        {"score_range": [5, 10], "expected_outcome": "Right"},
    ],
    "threshold": 0.6,
    "model": "openai/gpt-5",
}
GRAPH = {
    "name": "Headings",
    "dag": {
        "nodes": {
            "task": {"type": "TaskNode", "instructions": "List the headings", "children": ["all"]},
            "all": {"type": "BinaryJudgementNode", "criteria": "Are all three there?", "children": ["no", "yes"]},
            "no": {"type": "VerdictNode", "verdict": False, "score": 0},
            "yes": {"type": "VerdictNode", "verdict": True, "child": {"type": "node", "ref": "order"}},
            "order": {"type": "NonBinaryJudgementNode", "criteria": "In order?", "children": ["y", "two", "none"]},
            "y": {"type": "VerdictNode", "verdict": "Yes", "score": 10},
            "two": {"type": "VerdictNode", "verdict": "Two are not", "score": 4},
            "none": {"type": "VerdictNode", "verdict": "None is", "score": 2},
        }
    },
}
MLFLOW = {
    "name": "tone",
    "serialization_version": 1,
    "instructions_judge_pydantic_data": {
        "instructions": "Is {{ outputs }} a polite answer to {{ inputs }}?",
        "model": "openai:/gpt-5",
        "feedback_value_type": {"type": "boolean"},
    },
}
ALL: dict[str, Any] = {"adk": ADK, "deepeval": G_EVAL, "mlflow": MLFLOW}


def loads(data: object, form: str | None = None) -> Suite:
    """Return the suite of plain data."""
    return loads_suite(json.dumps(data), form)


@pytest.mark.parametrize("name", ALL)
def test_a_file_is_recognised_and_comes_back_from_our_own_format(name: str) -> None:
    """Converted to the native format, it is the same suite."""
    suite = loads(ALL[name])
    assert suite.format == name
    again = loads_suite(str(convert(suite)))
    assert [case.rubric for case in again] == [case.rubric for case in suite]


@each_row(
    ("data", "form"),
    [
        ([G_EVAL], "deepeval"),
        ({"metrics": [G_EVAL, GRAPH]}, "deepeval"),
        (GRAPH, "deepeval"),
        (GRAPH["dag"], "deepeval"),
        ({"name": "polite", "guidelines": ["Is polite"]}, "mlflow"),
        ({"name": "q", "instructions": "Rate {{ outputs }}", "model": "anthropic:/claude-opus-4-1"}, "mlflow"),
        ([MLFLOW], "mlflow"),
        ({"criteria": [{"id": "a", "text": "b"}]}, "native"),
    ],
)
def test_each_spelling_is_recognised(data: object, form: str) -> None:
    """Alone, in a list, and under the keys that the frameworks use."""
    assert loads(data).format == form


def test_a_rubric_of_adk_passes_by_the_share_of_its_criteria() -> None:
    """Its threshold is the rubric's, its model the judge's."""
    (case,) = loads(ADK)
    assert [(c.id, c.text) for c in case.rubric.criteria] == [
        ("direct", "Answers the question itself."),
        ("short", "Is short."),
    ]
    assert (case.rubric.threshold, case.judge) == (0.8, Judge("gemini/gemini-2.5-flash"))
    assert "Jury" in str(loads(ADK).warnings[0])


@pytest.mark.parametrize(("lower", "verdict"), [(True, "pass"), (False, "fail")])
def test_each_metric_has_its_own_threshold(lower: bool, verdict: str) -> None:
    """One metric below its own fails the case, whatever the mean."""
    tools = {"threshold": 0.5, "rubrics": [{"rubric_id": "calls", "rubric_content": {"text_property": "Calls one."}}]}
    (case,) = loads({"criteria": {**ADK["criteria"], "rubric_based_tool_use_quality_v1": tools}})
    model = ScriptedModel({"direct": True, "short": True, "calls": lower})
    assert grade(Candidate("x"), case.rubric, Judge(model)).verdict == verdict


def test_a_metric_that_is_no_rubric_leaves_the_case_ungraded() -> None:
    """It is a grader that this library lacks, and is named."""
    suite = loads({"criteria": {**ADK["criteria"], "tool_trajectory_avg_score": 1.0}})
    assert suite.cases[0].rubric["tool_trajectory_avg_score"].answer == Unsupported("tool_trajectory_avg_score")
    assert "tool_trajectory_avg_score" in "\n".join(map(str, suite.warnings))


def test_the_steps_and_bands_of_g_eval_reach_the_judge() -> None:
    """The bands run from 0 to 10; the threshold is the metric's."""
    (case,) = loads(G_EVAL)
    (criterion,) = case.rubric.criteria
    assert criterion.text.splitlines()[1:] == ["1. Compare the facts", "2. Punish what is left out"]
    assert criterion.answer == Levels(ScoreRange(0, 4, "Wrong"), ScoreRange(5, 10, "Right"))
    assert (case.rubric.threshold, case.judge) == (0.6, Judge("openai/gpt-5"))


def test_a_graph_leaves_its_case_ungraded_with_the_cure() -> None:
    """It is recognised, and named as what is not read."""
    suite = loads(GRAPH)
    (criterion,) = suite.cases[0].rubric.criteria
    assert isinstance(criterion.answer, Unsupported)
    assert "a tree in our own format" in str(suite.warnings[0])


def test_guidelines_are_gates_and_slots_are_words() -> None:
    """Each guideline must hold; instructions say what their slots stand for."""
    (case,) = loads([{"name": "g", "guidelines": ["Is polite", "Is short"]}, MLFLOW])
    assert [(c.id, c.text, c.required) for c in case.rubric.criteria] == [
        ("g-1", "Is polite", True),
        ("g-2", "Is short", True),
        ("tone", "Is the answer a polite answer to the input?", False),
    ]
    assert case.judges == {"tone": Judge("openai/gpt-5")}


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("bool", YesNo()),
        ({"type": "string"}, YesNo()),
        ({"enum": ["yes", "no"]}, YesNo()),
        ("float", Unit()),
        ({"enum": ["good", "bad"]}, Unsupported("mlflow judge with labels")),
    ],
)
def test_the_kind_of_feedback_is_the_kind_of_answer(kind: object, answer: object) -> None:
    """Labels have no scores, so a case with them stays ungraded."""
    (case,) = loads({"name": "q", "instructions": "Rate {{ outputs }}", "feedback_value_type": kind})
    assert case.rubric.criteria[0].answer == answer


@pytest.mark.parametrize(
    ("data", "form", "place"),
    [
        ({"criteria": {"rubric_based_x": {"rubrics": []}}}, "adk", "criteria.rubric_based_x: the key 'threshold'"),
        ({**G_EVAL, "rubric": [{"score_range": [0, 4], "expected_outcome": "a"}]}, "deepeval", "rubric: the score_ran"),
        ({**G_EVAL, "rubric": [{"score_range": 4, "expected_outcome": "a"}]}, "deepeval", "rubric[0].score_range"),
        ({"name": "q", "instructions": 5}, "mlflow", "instructions: expected"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(data: object, form: str, place: str) -> None:
    """Nothing raises but a located error."""
    with pytest.raises(LoadError) as caught:
        loads(data, form)
    assert place in str(caught.value)


@each_row("form", ALL)
@each_row("data", [None, 5, "x", [], {}, [None], {"criteria": 5}, {"metrics": {}}, {"nodes": {"a": 1}}])
def test_anything_else_is_refused_with_a_place(form: str, data: object) -> None:
    """Empty files, texts and numbers too."""
    with pytest.raises(LoadError):
        loads(data, form)


def test_a_metric_of_adk_with_a_threshold_of_0_is_no_gate() -> None:
    """No score fails it."""
    metric = {**ADK["criteria"]["rubric_based_final_response_quality_v1"], "threshold": 0}
    (case,) = loads({"criteria": {"rubric_based_final_response_quality_v1": metric}}, "adk")
    assert case.rubric.threshold == 0


KIND = {"name": "k", "guidelines": ["Be kind"]}


def _adk(*rubrics: Any) -> Any:
    named = {"rubric_based_tool_use_quality_v1": {"threshold": 0.5, "rubrics": [*rubrics]}}
    beside = {"threshold": 0.5, "rubrics": [{"rubric_id": "b", "rubric_content": {"text_property": "Kind"}}]}
    return {"criteria": {**named, "rubric_based_final_response_quality_v1": beside}}


@each_row(
    ("kind", "data"),
    [
        ("mlflow", [{"name": "j", "guidelines": ["Be kind", ""]}]),
        ("mlflow", [{"name": "j", "guidelines": ["Be kind", " "]}]),
        ("mlflow", [{"name": "j", "guidelines": []}, KIND]),
        ("mlflow", [{"name": "j", "instructions": " "}, KIND]),
        ("mlflow", [{"name": "j", "instructions": ""}, KIND]),
        ("adk", _adk()),
        ("adk", _adk({"rubric_id": "a", "rubric_content": {"text_property": ""}})),
        ("deepeval", [{"name": "x", "criteria": ""}, {"name": "y", "criteria": "Kind"}]),
        ("deepeval", [{"name": "x", "evaluation_steps": ["A", ""]}, {"name": "y", "criteria": "Kind"}]),
        ("autorubric", [{"name": "s", "criteria": []}, {"requirement": "Kind", "weight": 3}]),
        ("autorubric", [{"name": "s", "sections": []}, {"requirement": "Kind", "weight": 3}]),
    ],
)
def test_an_empty_item_is_refused_and_not_passed_over(kind: str, data: Any) -> None:
    """The others alone could pass."""
    with pytest.raises(LoadError):
        loads_suite(json.dumps(data), kind)


@pytest.mark.parametrize("typo", ["typ", "enumm"])
def test_a_misspelt_key_of_an_mlflow_type_is_refused(typo: str) -> None:
    """Read over, a number would be asked as yes or no."""
    judge = {"name": "q", "instructions": "Rate {{ outputs }}", "feedback_value_type": {typo: "number"}}
    with pytest.raises(LoadError, match="did you mean"):
        loads(judge, "mlflow")
