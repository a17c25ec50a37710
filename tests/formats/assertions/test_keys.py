"""The table of assertion types: what each system's reader, our own format and its JSON Schema make of one row."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rubric.engine.grade import grade
from rubric.errors import DumpError, LoadError
from rubric.formats.assertions.table import KINDS, assertion_schema
from rubric.formats.rubrics import dumps, loads, schema
from rubric.formats.suites import convert, loads_suite
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values.candidates import Candidate
from rubric.values.checks import Contains, Unsupported
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric
from tests.formats.assertions.test_table import IDS, SAMPLES
from tests.rows import each_row

_VALIDATOR = Draft202012Validator(schema())


def _promptfoo(*asserts: dict[str, Any]) -> Suite:
    return loads_suite(json.dumps({"prompts": ["Q"], "tests": [{"assert": [*asserts]}]}), "promptfoo")


def _agentv(**grader: Any) -> Suite:
    return loads_suite(json.dumps({"tests": [{"id": "t", "input": "q", "assert": [grader]}]}), "agentv-2")


def _document(assertion: Any) -> dict[str, Any]:
    return {"criteria": [{"text": "It holds", "check": {"assertion": assertion}}]}


WITHOUT_THRESHOLD = {
    "contains": "zzz", "icontains": "zzz", "contains-any": ["zzz"], "regex": "zzz", "equals": "zzz", "is-json": None,
    "starts-with": "zzz", "ends-with": "zzz", "word-count": 9, "is-xml": None, "contains-html": None,
    "trajectory:tool-used": "search", "skill-used": "search",
}  # fmt: skip


@each_row("bar", [0, 1.5, "0.5"])
@each_row("kind", WITHOUT_THRESHOLD)
def test_a_threshold_of_a_type_that_has_none_changes_no_verdict(kind: str, bar: Any) -> None:
    """promptfoo does not read it: with 0 the assertion would pass whatever the output is."""
    suite = _promptfoo({"type": kind, "value": WITHOUT_THRESHOLD[kind], "threshold": bar})
    assert [warning.path for warning in suite.warnings] == ["tests[0].assert[0].threshold"]
    assert grade(Candidate("x"), suite.cases[0].rubric, "offline").passed is False


@pytest.mark.parametrize("kind", ["is-refusal", "factuality", "model-graded-closedqa", "select-best"])
def test_a_threshold_that_a_model_grader_does_not_read_is_told(kind: str) -> None:
    """Its categories, or its yes or no, decide."""
    suite = _promptfoo({"type": kind, "value": "a", "threshold": 0.9})
    assert any("reads no threshold" in str(warning) for warning in suite.warnings)


def test_a_check_under_a_threshold_is_written_as_a_set() -> None:
    """Since `contains` has no threshold in promptfoo, a set with one has it."""
    inner = Rubric(criteria=[Criterion("contains 'a'", id="overall", answer=Contains("a"))], threshold=0.5)
    written = convert(Suite("s", [Case("a", Rubric(criteria=[Criterion("it", answer=inner)]))]), "promptfoo")
    assert [one["type"] for test in written.data["tests"] for one in test["assert"]] == ["assert-set"]


@each_row("kind", ["latency", "cost", "perplexity", "similar", "bleu", "tool-call-f1", "javascript"])
def test_a_threshold_may_be_written_as_text(kind: str) -> None:
    """As JavaScript compares a number with it."""
    value = {} if kind in ("latency", "cost", "perplexity") else {"value": "a"}
    assert _promptfoo({"type": kind, "threshold": "0.5", **value}) == _promptfoo(
        {"type": kind, "threshold": 0.5, **value}
    )


@pytest.mark.parametrize(
    ("kind", "bar"), [("latency", -1), ("bleu", -1), ("tool-call-f1", 7), ("perplexity-score", 7), ("similar", "high")]
)
def test_a_wrong_threshold_is_shown_at_its_key(kind: str, bar: Any) -> None:
    """For each family of types alike."""
    with pytest.raises(LoadError, match=r"assert\[0\]\.threshold: expected a number"):
        _promptfoo({"type": kind, "value": "a", "threshold": bar})


NEED_A_VALUE = [
    "contains", "regex", "equals", "javascript", "python", "bleu", "word-count", "similar", "tool-call-f1",
    "factuality", "finish-reason", "llm-rubric", "agent-rubric", "g-eval", "trajectory:tool-used",
    "trajectory:goal-success", "select-best", "context-recall",
]  # fmt: skip


@each_row("kind", NEED_A_VALUE)
def test_an_assertion_without_a_value_leaves_its_case_ungraded(kind: str) -> None:
    """promptfoo reads the file and fails that one test: the other tests are graded."""
    text = json.dumps({"prompts": ["Q"], "tests": [{"assert": [{"type": kind}]}, {"assert": [{"type": "is-json"}]}]})
    suite = loads_suite(text, "promptfoo")
    assert isinstance(suite.cases[0].rubric.criteria[0].answer, Unsupported)
    assert [warning.path for warning in suite.warnings] == ["tests[0].assert[0]"]
    assert not isinstance(suite.cases[1].rubric.criteria[0].answer, Unsupported)


@pytest.mark.parametrize("kind", ["contains", "regex", "starts-with"])
def test_a_boolean_where_text_is_wanted_is_refused_with_its_cure(kind: str) -> None:
    """The quoted value is the line that works."""
    with pytest.raises(LoadError, match=r"assert\[0\]\.value: .* got True; quote it: \"true\""):
        _promptfoo({"type": kind, "value": True})
    assert _promptfoo({"type": kind, "value": "true"}).cases


def test_an_empty_step_is_shown_at_its_place() -> None:
    """Among the steps of `g-eval`."""
    with pytest.raises(LoadError, match=r"assert\[0\]\.value\[1\]: expected text, got an empty one"):
        _promptfoo({"type": "g-eval", "value": ["Is kind", ""]})


def test_a_word_for_no_is_an_error_in_our_format_and_a_warning_in_agentv() -> None:
    """AgentV asks whether `should_trigger` is `false`, and reads all else as true."""
    data = {"type": "skill-trigger", "skill": "pdf", "should_trigger": "no"}
    suite = _agentv(**data)
    assert [warning.path for warning in suite.warnings] == ["tests[0].assert[0].should_trigger"]
    assert suite.cases[0].rubric == _agentv(**data | {"should_trigger": True}).cases[0].rubric
    with pytest.raises(LoadError, match=r"should_trigger: expected true or false, got 'no'"):
        loads(json.dumps(_document(data)))


@each_row(
    ("assertion", "path"),
    [
        ({"type": "max-score", "test": "t", "weights": 3}, "weights"),
        ({"type": "max-score", "test": "t", "total": "perhaps"}, "total"),
        ({"type": "field-accuracy", "fields": [{"path": 3}]}, r"fields\[0\]\.path"),
        ({"type": "field-accuracy", "fields": [{"path": "a", "weight": "heavy"}]}, r"fields\[0\]\.weight"),
        ({"type": "field-accuracy", "fields": [{"path": "a", "required": "no"}]}, r"fields\[0\]\.required"),
        ({"type": "field-accuracy", "fields": [{"path": "a", "mtach": "exact"}]}, r"fields\[0\]\.mtach"),
        ({"type": "tool-call-f1", "value": ["a"], "threshold": 7}, "threshold"),
        ({"type": "perplexity-score", "threshold": 7}, "threshold"),
        ({"type": "trajectory:tool-used", "value": "x", "any": "yes"}, "any"),
        ({"type": "contains", "vlaue": "x"}, "vlaue"),
        ({"type": "latency", "threshold": -1}, "threshold"),
    ],
)
def test_a_wrong_value_is_refused_at_its_key_by_the_loader_and_by_the_schema(assertion: Any, path: str) -> None:
    """An editor marks what the loader refuses."""
    document = _document(assertion)
    with pytest.raises(LoadError, match=rf"check\.assertion\.{path}: "):
        loads(json.dumps(document))
    assert not _VALIDATOR.is_valid(document)


@each_row("check", SAMPLES, ids=IDS)
def test_what_is_written_of_a_check_fits_the_schema(check: Any) -> None:
    """Of each class that files have."""
    _VALIDATOR.validate(json.loads(dumps(Rubric(criteria=[Criterion("It holds", answer=check)]), format="json")))


def test_the_schema_has_each_row_of_the_table_with_its_keys() -> None:
    """It follows from the table, so nothing is said twice."""
    forms = assertion_schema()["anyOf"]
    keys = {kind: {*form["properties"]} for form in forms for kind in form["properties"]["type"]["enum"]}
    beside = {"type", "transform", "variables", "shared"}
    assert all(keys[kind] == row.names() | beside for kind, row in KINDS.items())
    assert schema()["$defs"]["check"]["anyOf"][1]["properties"]["assertion"]["anyOf"] == forms


WRONG = [3, -1, "abc", "", True, None, [], {}, [3], ["x", ""], {"a": 1}]


@each_row("check", SAMPLES, ids=IDS)
def test_a_mutant_of_an_assertion_is_read_or_refused(check: Any) -> None:
    """With no other exception, also where it is shown or written again."""
    data = json.loads(dumps(Rubric(criteria=[Criterion("It holds", answer=check)]), format="json"))
    found = data["criteria"][0].get("check")
    assertion: dict[str, Any] = (found.get("assertion") if isinstance(found, dict) else None) or {}
    for key in assertion:
        for mutant in ({k: v for k, v in assertion.items() if k != key}, *({**assertion, key: one} for one in WRONG)):
            try:
                read = loads(json.dumps(_document(mutant)))
            except LoadError:
                continue
            assert repr(read.criteria[0].answer)
            assert loads(dumps(read)) == read


@each_row("milliseconds", [1001, 999, 1000.1, 0.1, 4321, 1 / 3, 123456.789])
def test_a_limit_is_written_in_the_unit_as_it_was_read(milliseconds: float) -> None:
    """1.001 s are 1001 ms, though 1.001 * 1000 is 1000.9999999999999."""
    written = convert(_promptfoo({"type": "latency", "threshold": milliseconds}), "promptfoo")
    (test,) = written.data["tests"]
    assert [one["threshold"] for one in test["assert"] if one["type"] == "latency"] == [milliseconds]


def test_a_suite_of_which_nothing_is_left_names_all_that_was_lost() -> None:
    """The first loss need not be the reason."""
    lacking = Criterion("rouge", id="it", answer=Unsupported("a grader of theirs"))
    case = Case("a", Rubric(criteria=[lacking]), input="q", output="It costs 5 EUR.")
    with pytest.raises(DumpError, match=r"nothing is left of it to grade by: .*a grader of theirs"):
        convert(Suite("s", [case]), "promptfoo")


@pytest.mark.parametrize(
    "grader",
    [{"type": "execution-metrics"}, {"type": "latency"}, {"type": "trajectory:goal-success"}, {"type": "contains"}],
)
def test_an_error_of_agentv_says_its_field_once(grader: dict[str, Any]) -> None:
    """In its path, whether the file is refused or the case stays ungraded."""
    try:
        said = [str(warning.message) for warning in _agentv(**grader).warnings]
    except LoadError as refused:
        said = [problem.message for problem in refused.problems]
    assert said
    assert not [message for message in said if message.startswith(("type:", "value:"))]


def test_a_slip_in_an_operator_is_an_error() -> None:
    """A word that resembles none is passed over with a warning, as AgentV does."""
    with pytest.raises(LoadError, match=r"operator: unknown operator 'correctnes'.*did you mean 'correctness'"):
        _agentv(type="llm-rubric", value=[{"outcome": "x", "operator": "correctnes"}])
    assert _agentv(type="llm-rubric", value=[{"outcome": "x", "operator": "near"}]).warnings


def test_a_key_of_a_field_that_agentv_passes_over_is_a_warning() -> None:
    """A slip is an error there too."""
    fields = [{"path": "a", "match": "exact", "note": "of mine"}]
    assert [one.path for one in _agentv(type="field-accuracy", fields=fields).warnings] == [
        "tests[0].assert[0].fields[0].note"
    ]
    with pytest.raises(LoadError, match="did you mean 'match'"):
        _agentv(type="field-accuracy", fields=[{"path": "a", "mtach": "exact"}])


G_EVAL = {"name": "a", "criteria": "Is it kind?", "threshold": 0.9}
JUDGE = {"name": "a", "instructions": "Is {{ outputs }} kind?", "feedback_value_type": "float"}
ADK = {"threshold": 0.8, "rubrics": [{"rubric_id": "a", "rubric_content": {"text_property": "Is kind"}}]}


@each_row(
    ("form", "data", "slip"),
    [
        ("deepeval", {**G_EVAL, "treshold": 0.9}, "treshold"),
        ("deepeval", {**G_EVAL, "rubric": [{"score_rnage": [0, 10], "expected_outcome": "x"}]}, "score_rnage"),
        ("deepeval", {"metrcs": [], **G_EVAL}, ""),
        ("mlflow", {**JUDGE, "feedbck_value_type": "float"}, "feedbck_value_type"),
        ("mlflow", {"scorers": [{**JUDGE, "modle": "openai:/gpt-5"}]}, "modle"),
        ("adk", {"criteria": {"rubric_based_x": {**ADK, "judge_model_optoins": {}}}}, "judge_model_optoins"),
        ("adk", {"criteria": {"rubric_based_x": {**ADK, "judge_model_options": {"judge_modle": "a"}}}}, "judge_modle"),
    ],
)
def test_a_misspelt_key_of_a_framework_is_not_passed_over(form: str, data: Any, slip: str) -> None:
    """A level, a threshold or a judge would be lost without a word."""
    try:
        told = [str(warning) for warning in loads_suite(json.dumps(data), form).warnings]
    except LoadError as error:
        told = [str(problem) for problem in error.problems]
        assert any(f"{slip}: unknown key" in one for one in told)
    assert any(slip in one for one in told)


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("healthbench", {"prompt": "q", "rubrics": [{"criterion": "a", "points": 1, "tgas": []}]}),
        ("autorubric", [{"name": "a", "requirement": "b", "wieght": 2}]),
        ("adk", {"criteria": {"rubric_based_x": {"threshold": 1, "rubrics": [5]}}}),
        ("mlflow", {"name": "a", "guidelines": 5}),
    ],
)
def test_no_error_follows_from_another(form: str, data: Any) -> None:
    """An item that cannot be read is not a lack of items."""
    with pytest.raises(LoadError) as caught:
        loads_suite(json.dumps(data), form)
    assert len(caught.value.problems) == 1
    assert "give it some" not in str(caught.value)


def test_an_order_that_no_system_has_is_refused() -> None:
    """A criterion `calls` for each tool says the same."""
    with pytest.raises(LoadError, match="in_order"):
        loads(
            json.dumps({"criteria": [{"text": "a", "check": {"trajectory": {"tools": ["b"], "order": "any_order"}}}]})
        )
