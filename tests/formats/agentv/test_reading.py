"""AgentV files of the three generations: what each field becomes, and what is refused, with its place."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from rubric import (
    Candidate,
    Contains,
    Criterion,
    Grade,
    Judge,
    Levels,
    Message,
    Rubric,
    ScoreRange,
    ToolCall,
    Ungraded,
    Unit,
    YesNo,
    evaluate,
)
from rubric.engine.grade import grade
from rubric.engine.pipeline import adrive
from rubric.errors import LoadError
from rubric.formats.agentv.prompts import REPLY
from rubric.formats.agentv.reader import read
from rubric.formats.agentv.scope import generation_of
from rubric.formats.notes import Loading
from rubric.formats.suites import load_suite
from rubric.grading.flow import flow
from rubric.suites.suite import Suite
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.checks import Holds, Script, Unsupported
from rubric.values.requests import Ask, Reply
from tests.agentv import loads, notes_of, rubric_of, written
from tests.rows import each_row

BANDS = {0: "wrong", 5: "half right", 10: "right"}


def _load(path: Path, **options: Any) -> Suite:
    notes = notes_of(path.read_text(encoding="utf-8"), path.name)
    suite = read(notes, Loading(folder=path.parent, base=path.parent, **options))
    notes.finish()
    return suite


def _problem(text: str, **options: Any) -> str:
    with pytest.raises(LoadError) as caught:
        loads(dedent(text), **options)
    return str(caught.value)


# -- generations -----------------------------------------------------------------------------------------


@each_row(
    ("data", "generation"),
    [
        ({"evalcases": []}, "agentv-1"),
        ({"eval_cases": []}, "agentv-1"),
        ({"rubrics": ["a"]}, "agentv-1"),
        ({"tests": [{"assertions": ["a"]}]}, "agentv-1.5"),
        ({"tests": [{"criteria": "a"}], "execution": {"target": "x"}}, "agentv-1.5"),
        ({"tests": [{"assert": ["a"]}]}, "agentv-2"),
        ({"tests": [{"criteria": "a"}], "prompts": ["{{ input }}"]}, "agentv-2"),
        ({"tests": []}, "agentv-2"),
        ([{"type": "llm_judge"}], "agentv-1"),
        ([{"type": "llm-rubric", "value": "x"}], "agentv-2"),
    ],
)
def test_a_generation_is_told_by_its_keys(data: Any, generation: str) -> None:
    """The names of the cases and of the graders say which generation a file is of."""
    assert generation_of(data) == generation


@pytest.mark.parametrize(
    ("key", "item", "required"),
    [
        ("assert", {"type": "llm-rubric", "value": [{"id": "a", "outcome": "x"}]}, True),
        ("assertions", {"type": "rubrics", "criteria": [{"id": "a", "outcome": "x"}]}, False),
        ("rubrics", {"id": "a", "expected_outcome": "x"}, False),
    ],
)
def test_required_is_as_the_page_of_the_generation_says(key: str, item: Any, required: bool) -> None:
    """An item that does not say so is a gate in generation 2, and none before; the caller can decide otherwise."""
    assert rubric_of(item, key=key).criteria[0].required is required
    assert rubric_of(item, key=key, required=not required).criteria[0].required is not required


@pytest.mark.parametrize("key", ["assert", "assertions", "rubrics"])
def test_plain_texts_are_required_criteria(key: str) -> None:
    """Each text is a yes/no criterion that gates, called by its position, in every generation."""
    rubric = rubric_of("Is polite", "Is short", key=key)
    assert rubric.criteria == tuple(
        Criterion(text, id=f"rubric-{number}", required=True)
        for number, text in enumerate(["Is polite", "Is short"], 1)
    )


def test_generation_1_has_a_borderline_band() -> None:
    """From 0.6 a case of generation 1 that fails is borderline, and passes from 0.8."""
    (case,) = loads({"evalcases": [{"id": "a", "input": "Q", "rubrics": ["x"]}]})
    assert (case.rubric.threshold, case.rubric.borderline) == (0.8, 0.6)


# -- items -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ranges",
    [
        BANDS,
        {"0": "wrong", "5": "half right", "10": "right"},
        [
            {"score_range": [5, 9], "outcome": "half right"},
            {"score_range": [10, 10], "outcome": "right"},
            {"score_range": [0, 4], "outcome": "wrong"},
        ],
    ],
    ids=["map", "text keys", "list"],
)
def test_score_ranges_are_bands_from_0_to_10(ranges: Any) -> None:
    """Lower bounds and explicit spans, in any order, are the same levels."""
    levels = Levels(ScoreRange(0, 4, "wrong"), ScoreRange(5, 9, "half right"), ScoreRange(10, 10, "right"))
    item = {"id": "a", "outcome": "Is right", "score_ranges": ranges}
    rubric = rubric_of({"type": "llm-rubric", "value": [item]})
    assert rubric.criteria == (Criterion("Is right", id="a", answer=levels),)


def test_bands_beside_a_text_make_it_one_analytic_criterion() -> None:
    """`score_ranges` of the grader itself turn its text into an item with bands."""
    rubric = rubric_of({"type": "llm-rubric", "value": "Is right", "score_ranges": BANDS, "min_score": 0.6})
    (criterion,) = rubric.criteria
    assert (criterion.id, criterion.text, criterion.min_score) == ("rubric-1", "Is right", 0.6)
    assert isinstance(criterion.answer, Levels)


@pytest.mark.parametrize(
    ("fields", "gate"),
    [
        ({"required_min_score": 7}, 0.7),
        ({"min_score": 0.7}, 0.7),
        ({"min_score": 0.7, "required_min_score": 7}, 0.7),
        ({"required_min_score": 0}, None),
    ],
)
def test_a_gate_in_tenths_and_one_in_0_to_1_are_the_same(fields: dict[str, Any], gate: float | None) -> None:
    """`required_min_score` counts from 0 to 10, `min_score` from 0 to 1."""
    rubric = rubric_of({"id": "a", "expected_outcome": "x", "score_ranges": BANDS, **fields}, key="rubrics")
    assert rubric.criteria[0].min_score == gate


@pytest.mark.parametrize(
    ("key", "as_code", "gate"),
    [("assert", True, None), ("assertions", True, 1.0), ("rubrics", True, 1.0), ("assertions", None, None)],
)
def test_a_required_level_gates_at_the_threshold(key: str, as_code: bool | None, gate: float | None) -> None:
    """As the code before generation 2 takes it, at 10 of 10, where the caller asks for that."""
    item = {"id": "a", "required": True, "score_ranges": BANDS}
    entries = {"assertions": {"type": "rubrics", "criteria": [item]}, "assert": {"type": "llm-rubric", "value": [item]}}
    criterion = rubric_of(entries.get(key, item), key=key, required=as_code).criteria[0]
    assert (criterion.required, criterion.min_score) == (True, gate)


@pytest.mark.parametrize(("score", "verdict"), [(0, "fail"), (1, "pass"), (7, "pass")])
def test_a_required_level_of_generation_1_fails_at_a_score_of_0_alone(score: int, verdict: str) -> None:
    """As its pages say; the weighted mean is above the threshold."""
    item = {"id": "a", "expected_outcome": "x", "required": True, "weight": 0.1, "score_ranges": BANDS}
    other = {"id": "b", "expected_outcome": "y", "weight": 10}
    (case,) = loads({"evalcases": [{"id": "t", "input": "What?", "rubrics": [item, other]}]})
    result = grade(Candidate("x"), case.rubric, Judge(ScriptedModel({"a": score, "b": True})))
    assert result.verdict == verdict


@pytest.mark.parametrize(("key", "text"), [("assert", "outcome"), ("rubrics", "expected_outcome")])
def test_an_item_without_a_text_leaves_its_case_ungraded(key: str, text: str) -> None:
    """The warning says where, and what an item needs; the others alone could pass."""
    items = [{"id": "a", "weight": 2}, {"id": "b", text: "x"}]
    entries = items if key == "rubrics" else [{"type": "llm-rubric", "value": items}]
    root = "evalcases" if key == "rubrics" else "tests"
    notes = notes_of(json.dumps({root: [{"id": "t1", "input": "What?", key: entries}]}))
    (case,) = read(notes, Loading())
    notes.finish()
    assert isinstance(evaluate("x", case.rubric, lambda _: '{"verdict": true}'), Ungraded)
    assert any(f"an item needs `{text}`" in str(problem) for problem in notes.warnings)


@each_row("word", ["text", "description", "expected_outcome", "outcome", "criteria", "criterion"])
@each_row("generation", ["tests", "evalcases"])
def test_a_required_item_counts_under_each_key_that_means_its_text(generation: str, word: str) -> None:
    """None of them is passed over: a judge that says no to it fails the case."""
    items = [{"id": "a", word: "Names the day", "required": True}, {"id": "b", "outcome": "Is polite", "weight": 9}]
    graders: dict[str, Any] = {
        "tests": {"assert": [{"type": "llm-rubric", "value": items}]},
        "evalcases": {"rubrics": items},
    }
    (case,) = loads({generation: [{"id": "t", "input": "What?", **graders[generation]}]})
    assert [(one.id, one.text) for one in case.rubric.criteria] == [("a", "Names the day"), ("b", "Is polite")]
    assert not grade(Candidate("x"), case.rubric, Judge(ScriptedModel({"a": False, "b": True}))).passed


@each_row("key", ["output", "answer", "actual_output"])
@each_row("said", ["Go away.", "", None])
def test_of_a_chat_as_output_only_the_assistants_words_are_graded(key: str, said: str | None) -> None:
    """The user's are not an answer; without an answer the case is ungraded."""
    chat = [{"role": "user", "content": "Thank you, kind sir"}, {"role": "assistant", "content": said}]
    (case,) = loads({"tests": [{"id": "t", "input": "q", "criteria": "Is polite", key: chat}]})
    assert case.output == (said or None)
    result = evaluate("some words here", case.rubric, lambda _: '{"verdict": true, "score": 1.0, "pass": true}')
    assert isinstance(result, Grade if said else Ungraded)


@each_row(
    "empty",
    [
        "",
        {"type": "llm-rubric"},
        {"type": "llm-rubric", "value": [], "required": True},
        {"type": "assert-set", "assert": []},
        {"type": "llm-rubric", "value": [{"id": "a", "required": True}, "Is kind"]},
        {"type": "llm-rubric", "value": [{"id": "a", "outcome": "", "required": True}, "Is kind"]},
        {"type": "llm-rubric", "value": [{"id": "a", "outcome": None, "required": True}, "Is kind"]},
    ],
    ids=str,
)
def test_a_grader_without_content_is_not_passed_over(empty: Any) -> None:
    """Beside others it leaves the case ungraded, where the others would pass."""
    try:
        (case,) = loads(
            {"tests": [{"id": "t", "input": "What?", "assert": [empty, {"type": "contains", "value": "x"}]}]}
        )
    except LoadError:
        return
    assert isinstance(evaluate("x", case.rubric, lambda _: '{"verdict": true}'), Ungraded)


def test_an_operator_is_a_polarity() -> None:
    """Contradiction and correctness are ways to judge the text, and never turn a score over."""
    items = [{"id": o, "outcome": "x", "operator": o} for o in ("correctness", "contradiction")]
    rubric = rubric_of({"type": "llm-rubric", "value": items})
    assert [criterion.polarity for criterion in rubric.criteria] == ["correctness", "contradiction"]


ITEM_ERRORS = {
    "weight": ("-1", "expected a number from 0"),
    "min_score": ("0", "expected a number above 0 to 1"),
    "required": ("maybe", "expected true or false"),
    "required_min_score": ("7", "write `min_score`"),
    "outcome": ("no", "expected text"),
    "score_ranges": ("{0: wrong, 5: 7}", "has no text"),
}


@each_row("name", ITEM_ERRORS)
def test_a_wrong_field_of_an_item_is_an_error_at_its_place(name: str) -> None:
    """The problem names the line, the path and the cure."""
    value, words = ITEM_ERRORS[name]
    value = "false" if name == "outcome" else value
    item = {"outcome": "x"} | {name: None}
    lines = [f"          {key}: {value if key == name else said}" for key, said in item.items()]
    text = "tests:\n  - id: a\n    assert:\n      - type: llm-rubric\n        value:\n        - id: one\n" + "\n".join(
        lines
    )
    with pytest.raises(LoadError) as caught:
        loads(text)
    (problem,) = caught.value.problems[:1]
    assert words in problem.message
    assert problem.line == 7 + [*item].index(name)
    assert problem.path.startswith("tests[0].assert[0].value[0]")


def test_rubrics_that_look_like_a_path_are_no_criterion() -> None:
    """AgentV skips a text there; a file's name would be judged as words."""
    text = '{"tests": [{"id": "a", "input": "Hi", "criteria": "Is kind", "assert": [{"type": "rubrics", "value": "rubric.yaml"}]}]}'
    assert "'rubric.yaml' looks like the path of a file, and is not text; write its criteria here" in _problem(text)


def test_a_file_without_tests_is_an_error() -> None:
    """Nothing would be graded, and a run over it would pass."""
    assert "there are no tests in it" in _problem('{"tests": []}')


def test_an_id_that_stands_twice_is_an_error() -> None:
    """AgentV lets the last one win; here both have to be told apart."""
    items = [{"id": "a", "outcome": "x"}, {"id": "a", "outcome": "y"}]
    assert "belongs to another item" in _problem(
        json.dumps({"tests": [{"assert": [{"type": "llm-rubric", "value": items}]}]})
    )


# -- graders ---------------------------------------------------------------------------------------------


def test_a_set_that_stands_alone_decides_with_its_own_verdict() -> None:
    """All in it must pass, although the mean alone would pass the case; beside other graders it adds to the mean."""
    inner = [{"type": "llm-rubric", "metric": name, "value": name} for name in "ab"]
    alone = rubric_of({"type": "assert-set", "assert": inner})
    beside = rubric_of({"type": "assert-set", "assert": inner}, {"type": "llm-rubric", "value": "c"})
    assert [criterion.required for criterion in alone.criteria] == [True]
    assert [criterion.required for criterion in beside.criteria] == [False, False]


def test_a_free_text_is_one_judgement_with_the_judges_own_flag() -> None:
    """One grader is the case's rubric itself."""
    rubric = rubric_of({"type": "llm-rubric", "metric": "tone", "value": "Is warm", "min_score": 0.9})
    criterion = Criterion("Is warm", id="tone", answer=Unit(flag=True), min_score=0.9)
    assert rubric == Rubric("tone", criteria=[criterion], threshold=0.8)


def test_data_is_shown_in_the_order_of_its_author() -> None:
    """Inputs, references and variables that are not texts are JSON, whose keys nobody has sorted."""
    data = {"zeta": 1, "alpha": "two"}
    test = {"id": "t", "vars": {"data": data, "said": "See {{ data }}"}, "expected_output": data, "input": data}
    (case,) = loads({"tests": [{**test, "assert": ["Good"]}]})
    assert case.reference == case.input == '{"zeta": 1, "alpha": "two"}'
    assert case.variables["data"] == '{"zeta": 1, "alpha": "two"}'


def test_free_data_is_judged_as_json() -> None:
    """A value that is not a list of items is shown to the judge as it is."""
    rubric = rubric_of({"type": "llm-rubric", "value": {"tone": "warm", "length": 3}})
    assert json.loads(rubric.criteria[0].text) == {"tone": "warm", "length": 3}


def test_several_graders_are_criteria_with_their_weights() -> None:
    """Texts together are one grader that weighs as many; a gate in it fails the case."""
    rubric = rubric_of(
        "A", {"type": "contains", "value": "x", "required": True}, "B", {"type": "llm-rubric", "value": "C"}
    )
    assert [c.id for c in rubric.criteria] == ["llm-rubric", "contains", "llm-rubric-2"]
    assert [c.weight for c in rubric.criteria] == [2, 1, 1]
    assert [getattr(c.answer, "binding", None) for c in rubric.criteria] == [True, None, False]
    assert rubric.criteria[1] == Criterion("contains 'x'", id="contains", answer=Contains("x"), required=True)


@pytest.mark.parametrize(
    ("key", "fields", "gate"),
    [
        ("assert", {"required": True}, 0.8),
        ("assert", {"required": True, "min_score": 0.6}, 0.6),
        ("assertions", {"required": 0.6}, 0.6),
        ("assert", {}, None),
    ],
)
def test_a_required_grader_is_a_gate_of_the_case(key: str, fields: dict[str, Any], gate: float | None) -> None:
    """At its own value, else at the case's threshold."""
    value = "criteria" if key == "assertions" else "value"
    entry = {"type": "llm-rubric", value: [{"id": "a", "outcome": "x"}], **fields}
    rubric = rubric_of(entry, {"type": "contains", "value": "x"}, key=key)
    assert rubric.criteria[0].min_score == gate


def test_a_set_is_a_rubric_of_its_graders() -> None:
    """Without a threshold all must pass; with one the mean decides."""
    inner = [{"type": "contains", "value": "x", "weight": 2}, {"type": "llm-rubric", "value": "Is warm"}]
    every, mean = (
        {"type": "assert-set", "metric": m, "assert": inner, **t} for m, t in [("a", {}), ("b", {"threshold": 0.5})]
    )
    rubric = rubric_of(every, mean)
    thresholds = [c.answer.threshold for c in rubric.criteria if isinstance(c.answer, Rubric)]
    assert thresholds == [None, 0.5]
    (first, _) = rubric.criteria
    assert isinstance(first.answer, Rubric)
    assert [c.weight for c in first.answer.criteria] == [2, 1]


@pytest.mark.parametrize("negation", [{"type": "not-contains"}, {"type": "contains", "negate": True}])
def test_a_negated_check_is_turned_over(negation: dict[str, Any]) -> None:
    """`not-` and `negate` are the same."""
    rubric = rubric_of({**negation, "value": "x"})
    (criterion,) = rubric.criteria
    assert isinstance(criterion.answer, Rubric)
    assert criterion.answer.negate
    assert criterion.answer.criteria[0].answer == Contains("x")


def test_a_script_is_a_program_that_a_run_may_allow() -> None:
    """Its command, its folder and what it is handed are kept; nothing is run."""
    entry = {
        "type": "script",
        "metric": "s",
        "command": "python check.py --fast",
        "cwd": "..",
        "config": {"a": 1},
        "max": 3,
    }
    script = rubric_of(entry, {"type": "contains", "value": "x"}).criteria[0].answer
    assert script == Script(["python", "check.py", "--fast"], folder="..", config={"a": 1, "max": 3})


def test_graders_in_a_set_have_its_config_below_their_own() -> None:
    """Where they read one at all."""
    inner = [{"type": "script", "command": ["x"], "config": {"a": 1}}, {"type": "contains", "value": "x"}]
    rubric = rubric_of({"type": "assert-set", "config": {"a": 0, "b": 2}, "assert": inner})
    (answer,) = [c.answer for c in rubric.criteria]
    assert isinstance(answer, Rubric)
    assert [c.answer for c in answer.criteria] == [Script(["x"], config={"a": 1, "b": 2}), Contains("x")]


def test_a_python_assertion_is_a_function_that_the_caller_gives() -> None:
    """A file names it; it cannot bring one."""

    def is_short(candidate: Any) -> bool:
        return len(candidate.output) < 10

    rubric = rubric_of({"type": "python", "value": "is_short"}, functions={"is_short": is_short})
    assert rubric.criteria[0].answer == Holds(is_short)


@pytest.mark.parametrize("kind", ["moderation-x", "trace-span-count", "min-words"])
def test_a_grader_that_is_not_here_leaves_the_case_ungraded(kind: str) -> None:
    """It stands in the rubric, undecided; the file's warnings name it, and the function that would decide it."""
    suite = loads({"tests": [{"id": "a", "input": "Q", "assert": ["x", {"type": kind, "value": "y"}]}]})
    assert suite["a"].rubric.criteria[1].answer == Unsupported(f"{kind} without functions={{{kind!r}: function}}")
    assert any(kind in warning.message and warning.path for warning in suite.warnings)


@each_row("kind", ["rubrics", "rubric", "llm-grader", "llm_judge", "g-eval", "composite", "select-best"])
def test_what_generation_2_took_out_is_an_error_with_the_cure(kind: str) -> None:
    """The problem names what to write instead."""
    assert "write `type: " in _problem(json.dumps({"tests": [{"assert": [{"type": kind, "value": "x"}]}]}))


@pytest.mark.parametrize(
    ("rule", "supported"),
    [({"type": "weighted_average", "weights": {"a": 3}}, True), ({"type": "code_judge", "path": "x"}, False)],
)
def test_a_composite_with_a_mean_is_a_set(rule: dict[str, Any], supported: bool) -> None:
    """Its aggregator's weights are those of the graders; a program that aggregates is not supported."""
    inner = [{"name": name, "type": "llm_judge", "prompt": f"Is {name}"} for name in ("a", "b")]
    entry = {"name": "panel", "type": "composite", "evaluators": inner, "aggregator": rule}
    (case,) = loads({"evalcases": [{"id": "t", "input": "Q", "execution": {"evaluators": [entry]}}]})
    answer = case.rubric.criteria[0].answer
    assert isinstance(answer, Rubric) is supported
    if isinstance(answer, Rubric):
        assert [(c.id, c.weight) for c in answer.criteria] == [("a", 3), ("b", 1)]


def _panel(aggregator: dict[str, Any], *members: Any, **options: Any) -> Rubric:
    entry = {"name": "panel", "type": "composite", "assertions": [*members], "aggregator": aggregator}
    return loads({"tests": [{"id": "t", "input": "Q", "assertions": [entry], **options}]})["t"].rubric


def test_a_composite_with_a_threshold_counts_the_graders_that_pass() -> None:
    """A grader passes from 0.8, whatever the case's threshold is; how far it is from that does not count."""
    members = [{"name": name, "type": "llm-grader", "prompt": f"Is {name}"} for name in ("a", "b", "c")]
    rubric = _panel({"type": "threshold", "threshold": 0.6}, *members, execution={"threshold": 0.5})
    one = grade("x", rubric, Judge(ScriptedModel({"a": 0.79, "b": 0.79, "c": 1.0})))
    assert one.score == pytest.approx(1 / 3)
    assert not one.passed
    two = grade("x", rubric, Judge(ScriptedModel({"a": 0.8, "b": 0.8, "c": 0.0})))
    assert two.score == pytest.approx(2 / 3)
    assert two.passed
    checks = [{"name": n, "type": "contains", "value": n, "weight": w} for n, w in (("x", 1), ("y", 9))]
    assert grade("x", _panel({"type": "threshold", "threshold": 0.5}, *checks), "offline").score == 0.5


def test_a_composite_weighs_its_graders_by_its_aggregator_alone() -> None:
    """The `weight` of a grader in it has no effect in AgentV, which the file is told."""
    members = [{"name": name, "type": "contains", "value": name, "weight": 3} for name in ("a", "b")]
    entry = {
        "type": "composite",
        "assertions": members,
        "aggregator": {"type": "weighted_average", "weights": {"b": 3}},
    }
    suite = loads({"tests": [{"id": "t", "input": "Q", "assertions": [entry]}]})
    answer = suite["t"].rubric.criteria[0].answer
    assert isinstance(answer, Rubric)
    assert [(c.id, c.weight) for c in answer.criteria] == [("a", 1), ("b", 3)]
    assert [warning.message for warning in suite.warnings if "`weight` of a itself is not used" in warning.message]


def test_providers_are_judges() -> None:
    """An id of a vendor's model is a judge; a name that only AgentV knows is a warning."""
    entries = [
        {"type": "llm-rubric", "metric": n, "value": "x", "provider": p}
        for n, p in [("a", "openai:gpt-5"), ("b", "my grader")]
    ]
    suite = loads({"tests": [{"id": "t", "input": "Q", "assert": entries}]})
    assert dict(suite["t"].judges) == {"a": Judge("openai/gpt-5")}
    assert any("my grader" in warning.message for warning in suite.warnings)


# -- prompts ---------------------------------------------------------------------------------------------


def test_a_prompt_with_variables_replaces_the_whole_prompt() -> None:
    """AgentV's variables become our slots; a name that is none is left as it stands, and told."""
    entry = {
        "type": "llm-rubric",
        "value": "Is warm",
        "prompt": "{{ output }} vs {{ expected_output }}: {{criteria}} {{ odd }}",
    }
    suite = loads({"tests": [{"id": "t", "input": "Q", "assert": [entry]}]})
    (case,) = suite
    assert case.rubric.prompt == "{{ output }} vs {{ reference }}: {{ rubric }} {{ vars.odd }}" + REPLY
    assert case.variables["vars.odd"] == "{{ odd }}"
    assert any("{{ odd }}" in warning.message for warning in suite.warnings)


def test_a_prompt_may_be_a_list_of_messages() -> None:
    """Each message keeps its role; the form of the reply stands at the end of the last."""
    chat = [{"role": "system", "content": "Judge"}, {"role": "user", "content": "{{ output }}"}]
    rubric = rubric_of({"type": "llm-rubric", "value": "Is warm", "prompt": chat})
    assert json.loads(rubric.prompt or "") == [chat[0], {"role": "user", "content": "{{ output }}" + REPLY}]


def test_a_plain_prompt_is_what_is_judged() -> None:
    """Without a variable it replaces the criteria alone."""
    rubric = rubric_of({"type": "llm-rubric", "prompt": "Is it warm?"})
    assert (rubric.criteria[0].text, rubric.prompt) == ("Is it warm?", None)


def test_a_prompt_file_that_shows_no_answer_is_given_it_at_its_end(tmp_path: Path) -> None:
    """A template without the answer could not judge it; AgentV skips such a grader."""
    written(tmp_path / "good.md", "Judge {{ output }}")
    written(tmp_path / "bad.md", "Judge it")
    text = "tests: [{{id: a, input: Q, assert: [{{type: llm-rubric, value: x, prompt: 'file://{}'}}]}}]"
    suite = _load(written(tmp_path / "good.yaml", text.format("good.md")))
    assert suite["a"].rubric.prompt == "Judge {{ output }}" + REPLY
    suite = _load(written(tmp_path / "bad.yaml", text.format("bad.md")))
    assert suite["a"].rubric.prompt == "Judge it\n\n[[ ## answer ## ]]\n{{ output }}" + REPLY
    assert "shows no answer" in str(suite.warnings[0])


@pytest.mark.parametrize("name", ["missing.md", "../outside.md", "file://grader.ts"])
def test_a_prompt_that_is_not_within_reach_leaves_its_case_ungraded(name: str, tmp_path: Path) -> None:
    """A warning says where was looked; the other cases are graded, and nothing outside is read."""
    written(tmp_path / "outside.md", "Judge {{ output }}")
    text = f"tests: [{{id: a, input: Q, assert: [{{type: llm-rubric, value: x, prompt: '{name}'}}]}}, {{id: b, input: Q, assert: [x]}}]"
    suite = load_suite(written(tmp_path / "in" / "x.eval.yaml", text), base=tmp_path / "in")
    assert isinstance(suite["a"].rubric.criteria[0].answer, Unsupported)
    assert isinstance(suite["b"].rubric.criteria[0].answer, YesNo)
    assert suite.warnings


# -- cases -----------------------------------------------------------------------------------------------


def test_a_case_has_what_belongs_to_its_answer() -> None:
    """Messages, reference, criteria, a fixed response with its calls, tags and free data."""
    (case,) = loads(
        dedent("""
        tests:
          - id: full
            criteria: Answers well
            input: [{role: system, content: Be brief}, {role: user, content: [{type: text, value: Hi}]}]
            expected_output: [{role: assistant, content: {answer: 4}}]
            output: "4"
            tool_calls: [{tool: calc, input: {a: 2}, output: "4"}]
            file_changes: +x
            tags: [math]
            metadata: {row: 1}
            assert: [Is right]
        """)
    )
    assert case.messages == (Message("system", "Be brief"), Message("user", "Hi"))
    assert (case.reference, case.output, case.context) == ('{"answer": 4}', "4", "Answers well")
    assert case.tool_calls == (ToolCall("calc", arguments={"a": 2}, result="4"),)
    assert (case.file_changes, case.tags, dict(case.metadata)) == ("+x", ("math",), {"row": 1})
    assert (case.place.line, case.place.column) == (3, 5) if case.place else False


def test_variables_are_put_into_prompts_and_criteria() -> None:
    """`vars` of the default test and of the test, which wins, show one another; unknown names stay."""
    suite = loads(
        dedent("""
        prompts: ["Tell {{ who }} of {{ topic }}"]
        default_test: {vars: {who: engineers, topic: nothing}}
        tests:
          - id: a
            vars: {topic: "{{ vars.month }} notes", month: July, expected_output: "{{ topic }}"}
            assert: ["Says {{ topic }} to {{ vars.who }}, not {{ odd }}"]
        """)
    )
    (case,) = suite
    assert case.input == "Tell engineers of July notes"
    assert case.reference == "July notes"
    assert case.rubric.criteria[0].text == "Says July notes to engineers, not {{ odd }}"


def test_several_prompts_make_a_case_each() -> None:
    """The cell of the matrix says which prompt it is."""
    prompts = [{"label": "long", "prompt": "Explain {{ x }}"}, {"id": "short", "prompt": "{{ x }}?"}]
    suite = loads({"prompts": prompts, "tests": [{"id": "a", "vars": {"x": "Y"}, "assert": ["Good"]}]})
    assert [(c.id, c.input, dict(c.cell)) for c in suite] == [
        ("a [long]", "Explain Y", {"prompt": "long"}),
        ("a [short]", "Y?", {"prompt": "short"}),
    ]


def test_a_test_without_graders_is_judged_by_its_criteria() -> None:
    """In every generation; without criteria either the case is ungraded, and that is told."""
    suite = loads({"tests": [{"id": "a", "criteria": "Is right", "input": "Q"}, {"id": "b", "input": "Q"}]})
    assert suite["a"].rubric.criteria[0].text == "Is right"
    assert suite["b"].rubric.criteria[0].answer == Unsupported("no grader")
    assert any("nothing to grade by" in warning.message for warning in suite.warnings)


def test_shared_graders_come_after_a_tests_own_unless_it_skips_them() -> None:
    """Graders of the file and of the default test hold for every test but those with `skip_defaults`."""
    tests = [
        {"id": "a", "input": "Q", "assert": ["own"]},
        {"id": "b", "input": "Q", "assert": ["own"], "execution": {"skip_defaults": True}},
    ]
    suite = loads(
        {"assert": [{"type": "contains", "value": "x"}], "default_test": {"assert": ["shared"]}, "tests": tests}
    )
    assert [c.id for c in suite["a"].rubric.criteria] == ["llm-rubric", "contains", "llm-rubric-2"]
    assert [c.id for c in suite["b"].rubric.criteria] == ["rubric-1"]


@pytest.mark.parametrize(
    ("whole", "test", "threshold"),
    [
        ({}, {}, 0.8),
        ({"threshold": 0.5}, {}, 0.5),
        ({"threshold": 0.5, "default_test": {"threshold": 0.6}}, {}, 0.6),
        ({"execution": {"threshold": 0.7}}, {"threshold": 0.9}, 0.9),
    ],
)
def test_the_nearest_threshold_counts(whole: Any, test: Any, threshold: float) -> None:
    """A test's, then the default test's, then the file's, then AgentV's 0.8."""
    (case,) = loads({**whole, "tests": [{"id": "a", "input": "Q", "assert": ["x"], **test}]})
    assert case.rubric.threshold == threshold


def test_tests_may_stand_in_other_files(tmp_path: Path) -> None:
    """YAML, JSON lines and CSV, by name and by pattern; problems name the file that they are in."""
    written(tmp_path / "cases" / "a.yaml", "- {id: a, input: Q, assert: [Good]}\n")
    written(tmp_path / "cases" / "b.jsonl", '{"id": "b", "input": "Q", "assert": ["Good"]}\n')
    written(tmp_path / "rows.csv", "id,input,__expected\nc,Q,contains: yes\n")
    text = "tests:\n  - file://cases/*.yaml\n  - file://cases/b.jsonl\n  - file://rows.csv\n  - {id: d, input: Q, assert: [x]}\n"
    suite = _load(written(tmp_path / "suite.yaml", text))
    assert [case.id for case in suite] == ["a", "b", "c", "d"]
    assert suite["c"].rubric.criteria[0].answer == Contains("yes")
    assert suite["a"].place is not None
    assert suite["a"].place.source.endswith("a.yaml")


def test_the_default_test_may_be_a_reference_of_the_project(tmp_path: Path) -> None:
    """`ref://` names stand in .agentv/config.yaml, and may show where the repository is."""
    written(
        tmp_path / ".agentv" / "config.yaml", "refs: {shared: 'file://{{ env.AGENTV_REPO_ROOT }}/.agentv/test.yaml'}\n"
    )
    written(tmp_path / ".agentv" / "test.yaml", "options: {rubric_prompt: 'file://judge.txt'}\n")
    written(tmp_path / ".agentv" / "judge.txt", "Judge {{ output }} by {{ criteria }}")
    suite = _load(
        written(tmp_path / "suite.yaml", "default_test: ref://shared\ntests: [{id: a, input: Q, assert: [Good]}]\n")
    )
    assert suite["a"].rubric.prompt == "Judge {{ output }} by {{ rubric }}" + REPLY


def test_graders_alone_make_one_case() -> None:
    """A fragment of the documentation, without tests, can be graded with all the same; that is told."""
    suite = loads({"assert": ["Is polite"]})
    assert [case.id for case in suite] == ["test-1"]
    assert any("there are no `tests`" in warning.message for warning in suite.warnings)


def test_all_problems_are_told_at_once() -> None:
    """In the order of the file, and what could be read is read all the same."""
    text = dedent("""
        tests:
          - id: a
            assert: [{type: llm-rubric, value: x, weight: -1}]
          - id: a
            assert: [{value: x}]
          - 7
        """)
    notes = notes_of(text)
    suite = read(notes, Loading())
    with pytest.raises(LoadError) as caught:
        notes.finish()
    assert [problem.line for problem in caught.value.problems] == [4, 5, 6, 7]
    assert [case.id for case in suite] == ["a"]


def test_what_holds_for_every_test_is_told_once() -> None:
    """A problem in a shared grader is one problem, however many tests there are."""
    tests = [{"id": id_, "input": "Q", "assert": ["x"]} for id_ in "abc"]
    notes = notes_of(json.dumps({"assert": [{"type": "g-eval"}, {"type": "rouge-n"}], "tests": tests}))
    read(notes, Loading())
    assert len(notes.errors) == 1
    assert len(notes.warnings) == 1


@pytest.mark.parametrize("key", ["assert", "assertions"])
def test_what_is_not_used_is_told(key: str) -> None:
    """Keys that are about making answers, and keys that nobody knows, are warnings with their place."""
    suite = loads(
        {"wrokspace": 1, "environment": {}, "tests": [{"id": "a", "input": "Q", "turns": [], key: ["x"], "odd": 1}]}
    )
    told = {warning.path for warning in suite.warnings}
    assert {"wrokspace", "environment", "tests[0].turns", "tests[0].odd"} <= told
    assert any(isinstance(c.answer, Unsupported) for c in suite["a"].rubric.criteria)


# -- graded ----------------------------------------------------------------------------------------------


class _Yes:
    async def answer(self, ask: Ask) -> Reply:
        (criterion,) = ask.criteria
        return Reply(json.dumps({"verdict": "not" not in criterion.text, "reason": "r"}))


def test_a_failed_gate_in_one_of_several_graders_fails_the_case() -> None:
    """The mean stays what it is, and the required criterion that failed fails the whole case."""
    items = [{"id": "a", "outcome": "good", "weight": 9}, {"id": "b", "outcome": "not good"}]
    rubric = rubric_of({"type": "llm-rubric", "value": items}, {"type": "contains", "value": "x"})
    result = asyncio.run(adrive(flow(Candidate("an x answer"), rubric, Judge(_Yes(), per_call=1))))
    assert isinstance(result, Grade)
    assert result.score == pytest.approx(0.95)
    assert not result.passed
    assert result.gates == ("llm-rubric",)


def test_an_item_is_yes_or_no_unless_it_has_bands() -> None:
    """Each item of a list is answered in its own way."""
    items = [{"id": "a", "outcome": "x"}, {"id": "b", "outcome": "y", "score_ranges": BANDS}]
    rubric = rubric_of({"type": "llm-rubric", "value": items})
    assert [type(c.answer) for c in rubric.criteria] == [YesNo, Levels]


WHOLE: dict[str, Any] = {
    "threshold": 0.7,
    "prompts": ["{{ x }}"],
    "default_test": {"vars": {"x": "y"}, "options": {"provider": "openai:gpt-5", "rubric_prompt": "{{ output }}"}},
    "tests": [
        {
            "id": "a",
            "criteria": "Good",
            "vars": {"x": "z"},
            "tool_calls": [{"tool": "t", "input": {"a": 1}}],
            "assert": [
                "Text",
                {"type": "llm-rubric", "value": [{"id": "i", "outcome": "x", "score_ranges": BANDS, "min_score": 0.5}]},
                {"type": "assert-set", "threshold": 0.5, "assert": [{"type": "regex", "value": "a", "flags": "i"}]},
                {"type": "script", "command": ["x"], "cwd": ".", "config": {"a": 1}, "required": True, "weight": 2},
            ],
        }
    ],
}
JUNK: list[Any] = [
    None,
    7,
    -1,
    0.5,
    "x",
    "",
    [],
    {},
    True,
    [1],
    {"a": 1},
    "file://x",
    "{{ x }}",
    "{% if %}",
    [{}],
    "ref://q",
]


def _paths(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(inner for key, part in pairs for inner in _paths(part, (*path, key)))]


@pytest.mark.long
@each_row("path", _paths(WHOLE)[1:], ids=lambda path: ".".join(map(str, path)))
def test_nothing_that_a_field_may_hold_breaks_the_reader(path: tuple[Any, ...]) -> None:
    """Whatever stands where, it is read, warned of, or an error with a place."""
    for junk in JUNK:
        data = json.loads(json.dumps(WHOLE))
        part = data
        for key in path[:-1]:
            part = part[str(key) if isinstance(part, dict) else key]
        part[str(path[-1]) if isinstance(part, dict) else path[-1]] = junk
        notes = notes_of(json.dumps(data))
        read(notes, Loading())
        assert all(problem.line and problem.message for problem in [*notes.errors, *notes.warnings])


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("tests: [{id: a, input: Q, threshold: 0.5, assertions: [{type: contains, value: x}]}]", 0.8),
        ("tests: [{id: a, input: Q, execution: {threshold: 0.5}, assertions: [{type: contains, value: x}]}]", 0.5),
        ("threshold: 0.5\ntests: [{id: a, input: Q, assertions: [{type: contains, value: x}]}]", 0.8),
        ("tests: [{id: a, input: Q, threshold: 0.5, assert: [{type: contains, value: x}]}]", 0.5),
    ],
)
def test_before_generation_2_a_threshold_stands_under_execution(text: str, threshold: float) -> None:
    """Elsewhere AgentV reads over it, which a warning says with the cure."""
    suite = loads(text)
    assert suite.cases[0].rubric.threshold == threshold
    assert any("under `execution`" in problem.message for problem in suite.warnings) == (
        "0.5" in text and threshold == 0.8
    )


@pytest.mark.parametrize(
    ("grader", "passes"),
    [
        ({"type": "is-json", "negate": True}, True),
        ({"type": "not-contains", "value": "x"}, True),
        ({"type": "equals", "value": ""}, True),
        ({"type": "contains", "value": "x"}, False),
    ],
)
def test_an_empty_answer_is_left_to_the_checks_where_no_judge_is_asked(grader: dict[str, Any], passes: bool) -> None:
    """As AgentV does; only a judge can be talked round by nothing."""
    result = evaluate("", rubric_of(grader), "offline")
    assert isinstance(result, Grade)
    assert result.passed == passes


def test_a_no_break_space_is_white_space_in_a_pattern() -> None:
    """As in JavaScript; French and typeset answers have them."""
    rubric = rubric_of({"type": "regex", "value": r"\d+\s?km"}, {"type": "regex", "value": "KM$", "flags": "i"})
    result = evaluate("10\u00a0km", rubric, "offline")
    assert isinstance(result, Grade)
    assert result.score == 1


def test_a_grader_of_one_item_without_an_id_is_a_criterion_of_the_case() -> None:
    """No rubric stands around it, and its gate still fails the case; an item with an id of its own keeps it."""
    rubric = rubric_of({"type": "contains", "value": "a"}, "Is short", key="assert")
    assert [(c.id, c.text, c.required) for c in rubric.criteria[1:]] == [("llm-rubric", "Is short", True)]
    named = rubric_of(
        {"type": "contains", "value": "a"}, {"type": "llm-rubric", "value": [{"id": "x", "outcome": "Is short"}]}
    )
    assert isinstance(named.criteria[1].answer, Rubric)
