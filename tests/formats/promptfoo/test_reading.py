"""promptfoo's configurations as suites: tests, variables, prompts, providers, graders and what is not carried over."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric.engine.grade import grade
from rubric.errors import DefinitionError, LoadError
from rubric.formats.assertions.texts import KNOWN
from rubric.formats.files import parse
from rubric.formats.notes import Loading, Notes
from rubric.formats.promptfoo.reader import read
from rubric.formats.promptfoo.texts import _fill_plain
from rubric.formats.suites import convert, load_suite, loads_suite
from rubric.formats.templates.render import render
from rubric.results.result import Grade
from rubric.suites.suite import Suite
from rubric.testing.scripted_model import Says, ScriptedModel
from rubric.values.answers import Unit
from rubric.values.candidates import Candidate
from rubric.values.checks import Contains, Equals, Holds, IsJSON, Script, Unsupported
from rubric.values.findings import Scored
from rubric.values.judges import Judge
from rubric.values.rubrics import Rubric
from tests.places import SHARED
from tests.real_files import suite_or_error
from tests.rows import each_row

IS_JSON = {"type": "is-json"}
CORPUS = SHARED / "corpus" / "promptfoo"
SEEDS = SHARED / "seeds"


def opened(text: str, **loading: Any) -> tuple[Suite, Notes]:
    """Return the suite of a configuration in YAML, and what was noted of it."""
    notes = Notes(parse(text, "promptfooconfig.yaml"))
    suite = read(notes, Loading(**loading))
    notes.finish()
    return suite, notes


def loads(text: str, **loading: Any) -> Suite:
    """Return the suite of a configuration in YAML."""
    return opened(text, **loading)[0]


def problems(text: str, **loading: Any) -> str:
    """Return what is wrong with a configuration in YAML."""
    with pytest.raises(LoadError) as caught:
        loads(text, **loading)
    return str(caught.value)


def warned(text: str, **loading: Any) -> str:
    """Return what was warned of."""
    return "\n".join(map(str, opened(text, **loading)[1].warnings))


def one(assertion: str, **loading: Any) -> Rubric:
    """Return the rubric of a test with one assertion, which is given in the flow style of YAML."""
    (case,) = loads(f"tests: [{{assert: [{assertion}]}}]", **loading)
    return case.rubric


# -- what becomes of an assertion ------------------------------------------------------------------------


def test_a_rubric_without_a_threshold_is_decided_by_the_judges_own_flag() -> None:
    """One `llm-rubric` is the rubric of its case, free-form and without a threshold."""
    assert one("{type: llm-rubric, value: Is polite}") == Rubric.of("Is polite", threshold=None)


@pytest.mark.parametrize("threshold", ["0.5", '"0.5"'])
def test_a_threshold_is_met_by_the_score_and_the_flag(threshold: str) -> None:
    """A threshold, as a number or as a text, makes a criterion with a score and a flag."""
    rubric = one(f"{{type: llm-rubric, value: Is polite, threshold: {threshold}}}")
    assert (rubric.threshold, rubric.criteria[0].answer) == (0.5, Unit(flag=True))


def test_a_threshold_of_zero_is_a_threshold() -> None:
    """With a threshold of 0, a score of 0 passes when the judge says so."""
    rubric = one("{type: llm-rubric, value: Is polite, threshold: 0}")
    assert grade("Hello", rubric, Judge(ScriptedModel([Says(0.0, flag=True)]))).passed


def test_with_a_threshold_of_the_test_a_failing_flag_fails_only_its_own_assertion() -> None:
    """The weighted mean decides alone, as promptfoo has it."""
    (case,) = loads("tests: [{threshold: 0.5, assert: [{type: llm-rubric, value: a}, {type: llm-rubric, value: b}]}]")
    result = grade("Hello", case.rubric, Judge(ScriptedModel([Says(1.0, flag=True), Says(0.0, flag=False)])))
    assert (result.score, result.passed) == (0.5, True)


def test_without_a_threshold_all_assertions_must_pass() -> None:
    """One failing check fails the test whatever the mean is."""
    (case,) = loads("tests: [{assert: [{type: contains, value: a}, {type: contains, value: b}]}]")
    result = grade("only a", case.rubric, Judge("offline"))
    assert (result.score, result.passed) == (0.5, False)


def test_a_weight_of_zero_is_judged_and_does_not_count() -> None:
    """A failing assertion of weight 0 is reported; the test passes."""
    (case,) = loads(
        "tests: [{assert: [{type: llm-rubric, value: a, weight: 0}, {type: llm-rubric, value: b}]}]",
    )
    result = grade("Hello", case.rubric, Judge(ScriptedModel([Says(0.0, flag=False), Says(1.0, flag=True)])))
    assert (result.score, result.passed, len(result.findings)) == (1.0, True, 2)


def test_weights_that_are_all_zero_are_an_error() -> None:
    """A test in which nothing counts is refused, at its place."""
    found = problems("tests: [{assert: [{type: llm-rubric, value: a, weight: 0}]}]")
    assert "promptfooconfig.yaml:1:" in found
    assert "weights" in found


@pytest.mark.parametrize("weight", ["-1", "many", ".inf"])
def test_a_weight_that_is_none_is_an_error(weight: str) -> None:
    """Weights are finite numbers of at least 0."""
    assert "weight" in problems(f"tests: [{{assert: [{{type: contains, value: a, weight: {weight}}}]}}]")


def test_a_negated_rubric_turns_score_and_verdict_over() -> None:
    """`not-llm-rubric` passes where the rubric fails, with 1 - score; its threshold comes first."""
    rubric = one("{type: not-llm-rubric, value: Is rude, threshold: 0.5}")
    result = grade("Hello", rubric, Judge(ScriptedModel([Says(0.3, flag=True)])))
    assert result.passed
    assert result.score == pytest.approx(0.7)


def test_a_negated_check_passes_where_the_check_fails() -> None:
    """`not-contains` is a check turned over; it holds for an empty output too."""
    rubric = one("{type: not-contains, value: sorry}")
    assert [grade(text, rubric, Judge("offline")).passed for text in ("Hello", "so sorry", "")] == [True, False, True]


def test_a_set_of_assertions_is_a_nested_rubric() -> None:
    """`assert-set` has a weight and a threshold of its own."""
    (case,) = loads("""
        tests:
          - assert:
              - type: assert-set
                weight: 3
                threshold: 0.5
                assert: [{type: contains, value: a}, {type: contains, value: b}]
              - {type: contains, value: a}
    """)
    result = grade("only a", case.rubric, Judge("offline"))
    assert (result.score, result.passed, case.rubric.criteria[0].weight) == (0.625, True, 3)


def test_the_ids_of_criteria_come_from_the_metric_or_the_type() -> None:
    """The metric is a tag too; ids that meet again are numbered."""
    (case,) = loads("""
        tests:
          - assert:
              - {type: contains, value: a, metric: Tone of voice}
              - {type: contains, value: b}
              - {type: contains, value: c}
    """)
    assert [(c.id, c.tags) for c in case.rubric.criteria] == [
        ("tone-of-voice", ("Tone of voice",)),
        ("contains", ()),
        ("contains-2", ()),
    ]


@each_row("kind", ["moderation", "not-moderation", "webhook", "guardrails", "classifier", "promptfoo:redteam:pii"])
def test_a_grader_that_we_do_not_have_leaves_its_case_ungraded(kind: str) -> None:
    """What cannot be carried out is never a pass: its criterion stays unjudged."""
    rubric = one(f"{{type: '{kind}', value: x}}")
    assert rubric.criteria[0].answer == Unsupported(kind)
    assert rubric.criteria[0].answer.cure


@each_row("kind", sorted(KNOWN - {"assert-set"}))
def test_each_type_of_promptfoo_is_graded_or_says_what_would_make_it_gradable(kind: str) -> None:
    """Each reason has its cure: in its words, or beside them."""
    value = {"is-sql": "", "contains-sql": "", "is-xml": "", "contains-xml": "", "word-count": ", value: 3"}
    value |= {"max-score": "", "is-html": "", "contains-html": "", "is-json": "", "contains-json": ""}
    value |= {
        "trajectory:step-count": ", value: {max: 3}",
        "trajectory:tool-args-match": ", value: {name: a, args: {}}",
    }
    text = f"tests: [{{vars: {{context: c}}, assert: [{{type: '{kind}'{value.get(kind, ', value: x')}}}]}}]"
    (case,) = loads_suite(text, "promptfoo")
    lacking = [c.answer for c in case.rubric.criteria if isinstance(c.answer, Unsupported)]
    assert all(one.cure or "pip install" in one.type or "WordNet" in one.type for one in lacking)


def test_a_misspelt_type_is_an_error_with_a_suggestion() -> None:
    """A type that is nearly one is not taken for a foreign grader."""
    assert "did you mean 'llm-rubric'" in problems("tests: [{assert: [{type: llm-rubrik, value: a}]}]")


@pytest.mark.parametrize("test", ["{vars: {a: b}}", "{vars: {a: b}, assert: []}", "{vars: {a: b}, threshold: 0}"])
def test_a_test_without_assertions_is_ungraded_and_says_so(test: str) -> None:
    """Where nothing is asserted promptfoo passes; nobody has judged anything, so we do not."""
    suite, notes = opened(f"tests: [{test[:-1]}, providerOutput: anything at all}}]")
    assert "asserts nothing" in str(notes.warnings[0])
    (row,) = suite.run("offline")
    assert (row.status, row.score) == ("ungraded", None)
    assert "nothing is asserted" in row.reason


def test_a_test_without_assertions_converts() -> None:
    """Into a test without assertions, and into a case of ours that nothing decides."""
    suite, _ = opened("tests: [{vars: {a: b}}]")
    written = convert(suite, "promptfoo")
    assert (written.data["tests"], written.dropped) == ([{"vars": {"a": "b"}}], ())
    again = loads_suite(str(convert(suite)))
    assert again.cases[0].rubric == suite.cases[0].rubric


WRONG_KEYS = [
    ("tests: [{asert: []}]", "1:10: tests[0].asert: unknown key 'asert'; did you mean 'assert'?"),
    ("tests: [{var: {a: b}}]", "did you mean 'vars'?"),
    ("test: []\nprompts: [a]", "1:1: test: unknown key 'test'; did you mean 'tests'?"),
    ("default_test: {assert: []}\ntests: [{vars: {}}]", "did you mean 'defaultTest'?"),
    ("defaultTest: {asert: []}\ntests: [{vars: {}}]", "1:15: defaultTest.asert: unknown key"),
    ("tests: [{assert: [{type: contains, vlaue: a}]}]", "1:36: tests[0].assert[0].vlaue: unknown key"),
    ("tests: [{assert: [{type: llm-rubric, value: a, treshold: 1}]}]", "did you mean 'threshold'?"),
    ("tests: [{assert: [{type: assert-set, asserts: []}]}]", "did you mean 'assert'?"),
    ("defaultTset: {}\ntests: [{assert: [{type: is-json}]}]", "did you mean 'defaultTest'?"),
    ("tests: [{options: {rubric_prompt: a}, assert: [{type: is-json}]}]", "did you mean 'rubricPrompt'?"),
    ("tests: [{assert: [{type: llm-rubric, value: a, provider: {id: 'openai:x', confg: {}}}]}]", "'config'?"),
    ("providers: [{id: 'openai:x', lable: a}]\ntests: [{assert: [{type: is-json}]}]", "did you mean 'label'?"),
    ("scenarios: [{config: [{}], test: []}]", "did you mean 'tests'?"),
]


@each_row(("text", "message"), WRONG_KEYS)
def test_a_key_that_was_meant_to_grade_is_a_problem(text: str, message: str) -> None:
    """One that is nearly another: read over, it would leave a test unasserted."""
    assert message in problems(text)


STRAY_KEYS = [
    ("tests: [{type: contains, value: a}]", "tests[0].type: 'type' has no effect here; it belongs to an assertion"),
    ("tests: [{rubricPrompt: a, assert: [{type: is-json}]}]", "it belongs under `options`"),
    ("defaultTest: {rubricPrompt: a}\ntests: [{assert: [{type: is-json}]}]", "it belongs under `options`"),
    ("tests: [{options: {assert: [{type: is-json}]}}]", "it belongs to the test, beside `options`"),
    ("tests: [{assert: [{type: is-json, vars: {}}]}]", "it belongs to the test"),
    ("tests: [{assert: [{type: llm-rubric, value: a, assert: []}]}]", "only a set has assertions"),
    ("tests: [{vars: {a: b}, assertions: [{type: is-json}]}]", "'assertions' has no effect here; promptfoo reads"),
]


@each_row(("text", "message"), STRAY_KEYS)
def test_a_key_at_the_place_of_another_leaves_its_test_ungraded(text: str, message: str) -> None:
    """Promptfoo reads over it, so the file is valid; graded without it, the test would be another one."""
    assert message in warned(text)
    assert [entry.unsupported for entry in loads(text).plan("openai/gpt-5")] != [()]


def test_the_prompt_of_a_test_is_not_asked_and_the_test_is_graded() -> None:
    """Promptfoo asks each test every prompt, whatever the test itself says."""
    text = "prompts: ['1 {{q}}', '2 {{q}}']\ntests: [{prompt: one, vars: {q: a}, assert: [{type: is-json}]}]"
    assert "tests[0].prompt: the prompt of a test is not asked" in warned(text)
    assert [case.input for case in loads(text)] == ["1 a", "2 a"]
    assert [entry.unsupported for entry in loads(text).plan("openai/gpt-5")] == [(), ()]


def test_a_broken_prompt_leaves_its_own_cases_ungraded() -> None:
    """Promptfoo finds it when it asks, and the other prompts are asked."""
    text = "prompts: ['1 {{q}}', '2 {{\"q\": 1}}']\ntests: [{vars: {q: a}, assert: [{type: is-json}]}]"
    whole, broken = loads(text).plan("openai/gpt-5")
    assert (whole.unsupported, "a broken template" in str(broken.unsupported)) == ((), True)


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("v.json", '{"a": [1, 2]}\n', '{"a": [1, 2]}'),
        ("v.yaml", "a: [1, 2]\nb: ü\n", '{"a":[1,2],"b":"ü"}'),
        ("v.yml", "plain\n", '"plain"'),
    ],
)
def test_a_variable_of_a_file_is_a_text(name: str, text: str, shown: str, tmp_path: Path) -> None:
    """As in promptfoo: JSON as it is written, YAML as JSON, also for code that parses it."""
    (tmp_path / name).write_text(text, "utf-8")
    code = "\"typeof context.vars.v === 'string' && JSON.parse(context.vars.v) !== null\""
    test = f"{{vars: {{v: 'file://{name}'}}, assert: [{{type: javascript, value: {code}}}]}}"
    (case,) = loads(f"prompts: ['{{{{v}}}}']\ntests: [{test}]", folder=tmp_path)
    assert (case.input, case.variables["v"]) == (shown, shown)
    assert grade("x", case.rubric, judge="offline").passed


def test_a_threshold_above_every_score_leaves_its_test_ungraded() -> None:
    """A threshold that no score can reach is unsupported, not a certain failure."""
    text = "tests: [{vars: {a: b}, assert: [{type: llm-rubric, value: kind, threshold: 3.5}, {type: is-json}]}]"
    (entry,) = loads(text).plan("openai/gpt-5")
    assert "a threshold of 3.5, above every score" in str(entry.unsupported)


STRAY_FIELDS = [
    ("assert: [{type: contains, value: z}]\ntests: [{assert: [{type: is-json}]}]", "1:1: assert: assertions beside"),
    ("threshold: 0.9\ntests: [{assert: [{type: is-json}]}]", "write it under `defaultTest`"),
    ("rubricPrompt: a\ntests: [{assert: [{type: is-json}]}]", "write it under `defaultTest.options`"),
]


@pytest.mark.parametrize(("text", "message"), STRAY_FIELDS)
def test_a_field_of_tests_beside_them_is_told_and_has_no_effect(text: str, message: str) -> None:
    """As in promptfoo, where the tests are graded without it."""
    assert message in warned(text)
    assert loads(text).cases[0].rubric == loads("tests: [{assert: [{type: is-json}]}]").cases[0].rubric


def test_a_prompt_is_called_by_the_label_of_its_file_and_by_its_id(tmp_path: Path) -> None:
    """A file with several prompts has one label in the configuration; a provider names that."""
    (tmp_path / "two.txt").write_text("A\n---\nB\n")
    prompts = "prompts: [{id: 'file://two.txt', label: letters}, {id: third, label: last, raw: C}]\n"
    for wanted, inputs in (("letters", ["A", "B"]), ("third", ["C"]), ("last", ["C"]), ("let*", ["A", "B"])):
        providers = f"providers: [{{id: 'openai:gpt-5', prompts: ['{wanted}']}}]\n"
        suite = loads(f"{prompts}{providers}tests: [{{assert: [{{type: is-json}}]}}]", folder=tmp_path)
        assert [case.input for case in suite] == inputs


def test_the_raw_text_of_a_prompt_may_name_a_file(tmp_path: Path) -> None:
    """As in promptfoo: a name is never sent as if it were the prompt."""
    (tmp_path / "ask.txt").write_text("Ask {{a}}")
    text = "prompts: [{label: x, raw: 'file://ask.txt'}]\ntests: [{vars: {a: b}, assert: [{type: is-json}]}]"
    assert loads(text, folder=tmp_path).cases[0].input == "Ask b"


PROMPTS = [
    ("<{{a}}>", "up {{ b | upper }}", "<up B>"),
    ("<{{a}}>", "of {{ unknown }}", "<of {{ unknown }}>"),
    ("<{{a}}>", "open {{ b", "<open {{ b>"),
    ("open {{ and a", "x", "open {{ and a"),
]


@pytest.mark.parametrize(("prompt", "variable", "shown"), PROMPTS)
def test_variables_that_are_templates_are_filled_in_and_open_tags_are_left(
    prompt: str, variable: str, shown: str
) -> None:
    """As in promptfoo, with the variable in the prompt and another variable in it."""
    text = json.dumps({"prompts": [prompt], "tests": [{"vars": {"a": variable, "b": "b"}, "assert": [IS_JSON]}]})
    assert loads(text).cases[0].input == shown


@pytest.mark.parametrize("template", ["{{ a.split(',')[0] }}", "{% macro m() %}x{% endmacro %}", "{{ a | batch(2) }}"])
def test_a_template_beyond_ours_leaves_its_case_ungraded(template: str) -> None:
    """Nunjucks takes it, so the file is valid; a slip is a problem of the file."""
    prompt = json.dumps({"prompts": [template], "tests": [{"vars": {"a": "b"}, "assert": [IS_JSON]}]})
    value = json.dumps({"tests": [{"vars": {"a": "b"}, "assert": [{"type": "contains", "value": template}]}]})
    for text in (prompt, value):
        ((reason,),) = (entry.unsupported for entry in loads(text).plan("openai/gpt-5"))
        assert "which is not carried out (write what it makes)" in reason


def test_a_filter_that_nobody_has_is_a_problem() -> None:
    """It is a slip."""
    assert "no filter is called 'uper'" in problems("prompts: ['{{ a | uper }}']\ntests: [{assert: [{type: is-json}]}]")


def test_the_newline_that_ends_a_variable_is_not_shown_in_a_prompt() -> None:
    """Blocks of YAML end with one; promptfoo takes it off."""
    text = "prompts: ['<{{a}}>']\ntests:\n- vars:\n    a: |\n      x\n      y\n  assert: [{type: is-json}]\n"
    assert loads(text).cases[0].input == "<x\ny>"


@pytest.mark.parametrize("value", ["false", "''", "null"])
def test_a_schema_of_nothing_asks_for_json_alone(value: str) -> None:
    """As in promptfoo, which validates by a schema only where there is one."""
    assert one(f"{{type: is-json, value: {value}}}") == one("{type: is-json}")


@pytest.mark.parametrize("type", ["is-json", "contains-json"])
def test_a_schema_that_promptfoo_would_not_compile_leaves_its_case_ungraded(type: str) -> None:
    """A validator passes over unknown keywords: every output would fit an example, or a misspelt schema."""
    text = f"tests: [{{assert: [{{type: {type}, value: {{intent: billing}}}}]}}, {{assert: [{{type: is-json}}]}}]"
    suite = loads(text).answered(['{"intent": "refund"}'] * 2)
    assert [row.status for row in suite.run("offline")] == ["ungraded", "passed"]


def test_null_takes_back_the_default_of_an_option() -> None:
    """As in promptfoo, for which there is no such transform then."""
    text = "{options: {transformVars: null, transform: output.trim()}}"
    suite = loads(
        f"defaultTest: {text}\ntests: [{{options: {{transform: null}}, assert: [{{type: equals, value: a}}]}}]"
    )
    assert suite == loads("tests: [{assert: [{type: equals, value: a}]}]")


@pytest.mark.parametrize("replies", [{"test-1": "{}"}, {"{}"}, b"{}", 7, pd.DataFrame({"output": ["{}"]})])
def test_outputs_that_would_be_read_as_their_keys_are_refused(replies: Any) -> None:
    """Mappings, sets, bytes, numbers and frames are refused where a list of replies is due."""
    with pytest.raises(DefinitionError, match="expected a list of replies"):
        loads("tests: [{assert: [{type: is-json}]}]").answered(replies)


@pytest.mark.parametrize(
    "name", ["echo", "https", "{id: echo}", "file://judge.js", "'azure:chat:{{ env.UNDECLARED }}'"]
)
def test_the_judge_of_the_run_takes_the_place_of_a_grader_that_cannot_be_called(name: str) -> None:
    """A program, an address, or a name that needs an environment variable: the file is valid, and says no other judge."""
    text = f"defaultTest: {{options: {{provider: {name}}}}}\ntests: [{{assert: [{{type: llm-rubric, value: a}}]}}]"
    assert "the judge of the run takes" in warned(text)
    suite = loads(text)
    assert suite.cases[0].judge is None
    assert [entry.unsupported for entry in suite.plan("openai/gpt-5")] == [()]


@pytest.mark.parametrize(("kind", "passes"), [("regex", True), ("not-regex", False)])
def test_a_pattern_that_looks_around_is_matched_as_javascript_does(kind: str, passes: bool) -> None:
    """RE2 does not take it; the engine does, within its limits."""
    rubric = one(f"{{type: {kind}, value: 'a(?!b)'}}")
    assert grade("ac", rubric, Judge("offline")).passed is passes
    assert grade("ab", rubric, Judge("offline")).passed is not passes


def test_names_in_a_file_of_tests_start_at_the_configuration(tmp_path: Path) -> None:
    """As in promptfoo, but for files of variables, which are beside the tests; what is only there is read from there."""
    for name, text in {
        "data.txt": "of the configuration",
        "checks/short.js": "module.exports = (output) => output.length < 5",
        "checks/short.py": "def get_assert(output, context):\n    return len(output) < 5",
        "cases/data.txt": "of the tests",
        "cases/beside.txt": "beside",
        "cases/vars.yml": "c: file://data.txt",
        "cases/a.yaml": "- vars: {a: 'file://data.txt', b: 'file://beside.txt'}\n  assert:\n"
        "  - {type: contains, value: 'file://data.txt'}\n  - {type: javascript, value: 'file://checks/short.js'}\n"
        "  - {type: python, value: 'file://checks/short.py'}\n"
        "- {vars: vars.yml, assert: [{type: equals, value: 'file://data.txt'}]}\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "promptfooconfig.yaml").write_text("prompts: ['{{a}}']\ntests: file://cases/*.yaml\n")
    suite = load_suite(tmp_path / "promptfooconfig.yaml")
    first, second = suite.cases
    assert first.variables == {"a": "of the configuration", "b": "beside"}
    assert second.variables == {"c": "of the configuration"}
    assert second.rubric.criteria[0].answer == Equals("of the configuration")
    (row,) = Suite(cases=[evolve(first, output="abc")]).run(allow_scripts=True)
    assert isinstance(row.result, Grade)
    assert [finding.score for finding in row.result.findings if isinstance(finding, Scored)] == [0, 1, 1]


def test_a_grader_may_be_the_label_of_a_provider() -> None:
    """As in promptfoo, where tests name the providers of the file by their labels."""
    text = "providers: [{id: 'openai:gpt-5-mini', label: strict}]\ntests: [{assert: [{type: llm-rubric, value: a, provider: strict}]}]"
    assert loads(text).cases[0].judge == Judge("openai/gpt-5-mini")


def test_any_other_unknown_key_is_told_and_left() -> None:
    """Authors keep notes of their own in files."""
    suite, notes = opened("owner: me\ntests: [{ticket: 7, assert: [{type: is-json, because: x}]}]")
    assert [warning.path for warning in notes.warnings] == ["owner", "tests[0].ticket", "tests[0].assert[0].because"]
    assert len(suite) == 1


@pytest.mark.parametrize("value", ["''", "'  '", "[]", "7", "true"])
def test_a_rubric_without_text_is_an_error(value: str) -> None:
    """A rubric that says nothing, or is not text, is refused at its place."""
    found = problems(f"tests: [{{assert: [{{type: llm-rubric, value: {value}}}]}}]")
    assert "promptfooconfig.yaml:1:" in found
    assert "a rubric needs text" in found


def test_a_list_of_texts_is_criteria_each_with_its_own_verdict() -> None:
    """As in AgentV, each item of a list is judged by itself."""
    rubric = one("{type: llm-rubric, value: [Is polite, {id: short, outcome: Is short, weight: 2}]}")
    assert [(c.id, c.text, c.weight) for c in rubric.criteria] == [
        ("rubric-1", "Is polite", 1),
        ("short", "Is short", 2),
    ]


def test_a_mapping_is_shown_to_the_judge_as_json() -> None:
    """promptfoo hands an object to its judge as compact JSON."""
    assert one("{type: llm-rubric, value: {tone: [warm]}}").text == '{"tone":["warm"]}'


def test_a_template_can_be_shared() -> None:
    """`$ref` takes an assertion from `assertionTemplates`; keys beside it win."""
    (case,) = loads("""
        assertionTemplates: {polite: {type: llm-rubric, value: Is polite, threshold: 0.9}}
        tests: [{assert: [{$ref: '#/assertionTemplates/polite', threshold: 0.4}]}]
    """)
    assert (case.rubric.threshold, case.rubric.criteria[0].text) == (0.4, "Is polite")


@pytest.mark.parametrize("reference", ["'#/assertionTemplates/none'", "'#/assertionTemplates/loop'", "else.yaml", "7"])
def test_a_reference_that_leads_nowhere_is_an_error(reference: str) -> None:
    """References are to this file, to something that is there, and not in a circle."""
    found = problems(f"""
        assertionTemplates: {{loop: {{$ref: '#/assertionTemplates/loop'}}}}
        tests: [{{assert: [{{$ref: {reference}}}]}}]
    """)
    assert "promptfooconfig.yaml:" in found


def test_a_python_assertion_runs_a_function_of_the_callers() -> None:
    """Code in files is not run; a function that the caller names is."""

    def short(candidate: Candidate) -> bool:
        return len(candidate.output) < 10

    for value in ("short", "file://checks.py:short"):
        rubric = one(f"{{type: python, value: '{value}'}}", functions={"short": short})
        assert rubric.criteria[0].answer == Holds(short)
    assert isinstance(one("{type: python, value: len(output) < 10}").criteria[0].answer, Script)


# -- tests -------------------------------------------------------------------------------------------------


def test_defaults_stand_under_every_test() -> None:
    """Asserts are prepended, variables and options merged, and the test wins."""
    suite = loads("""
        prompts: ['{{a}} {{b}}']
        defaultTest:
          vars: {a: 1, b: 2}
          threshold: 0.3
          options: {provider: openai:gpt-5}
          assert: [{type: contains, value: x}]
        tests:
          - vars: {b: 3}
            assert: [{type: llm-rubric, value: Is polite}]
          - options: {provider: openai:gpt-5-mini}
            assert: [{type: llm-rubric, value: Is polite}]
            threshold: 0.6
          - options: {disableDefaultAsserts: true}
            assert: [{type: equals, value: y}]
    """)
    first, second, third = suite
    assert (first.input, first.rubric.threshold, first.judge) == ("1 3", 0.3, Judge("openai/gpt-5"))
    assert [c.id for c in first.rubric.criteria] == ["contains", "llm-rubric"]
    assert (second.input, second.rubric.threshold, second.judge) == ("1 2", 0.6, Judge("openai/gpt-5-mini"))
    assert [c.answer for c in third.rubric.criteria] == [Equals("y")]


def test_lists_of_texts_multiply_a_test() -> None:
    """A case for each combination of listed variables; a list of numbers is one value."""
    suite = loads("""
        prompts: ['{{greeting}} {{name}} {{n[1]}}']
        tests:
          - vars: {greeting: [hi, yo], name: [Ann, Bob], n: [1, 2]}
            assert: [{type: contains, value: '{{name}}'}]
    """)
    assert [case.input for case in suite] == ["hi Ann 2", "hi Bob 2", "yo Ann 2", "yo Bob 2"]
    assert suite.cases[1].id == "hi, Bob, [1,2]"
    assert suite.cases[1].rubric.criteria[0].answer == Contains("Bob")


def test_lists_need_not_multiply() -> None:
    """`disableVarExpansion` keeps a list together."""
    (case,) = loads("tests: [{vars: {a: [x, y]}, options: {disableVarExpansion: true}, assert: [{type: is-json}]}]")
    assert case.variables["a"] == '["x","y"]'


def test_several_prompts_and_providers_make_a_matrix() -> None:
    """Each cell is a case that knows its coordinates; a provider may be limited to some prompts."""
    suite = loads("""
        prompts: [{raw: 'Say {{a}}', label: short}, {raw: 'Please say {{a}}', label: long}]
        providers: [openai:gpt-5, {id: anthropic:claude, label: claude, prompts: [long]}]
        tests: [{description: greets, vars: {a: hi}, assert: [{type: contains, value: hi}]}]
    """)
    assert [(case.id, case.input, dict(case.cell)) for case in suite] == [
        ("greets / short / openai:gpt-5", "Say hi", {"prompt": "short", "provider": "openai:gpt-5"}),
        ("greets / long / openai:gpt-5", "Please say hi", {"prompt": "long", "provider": "openai:gpt-5"}),
        ("greets / long / claude", "Please say hi", {"prompt": "long", "provider": "claude"}),
    ]


def test_one_prompt_and_one_provider_make_no_matrix() -> None:
    """A case of a plain configuration has no coordinates; its id is the description, or what its variables hold."""
    suite = loads("""
        prompts: ['{{a}}']
        providers: openai:gpt-5
        tests:
          - {description: Greets, vars: {a: hi}, assert: [{type: contains, value: hi}]}
          - {vars: {a: hi}, assert: [{type: contains, value: hi}]}
          - {description: Greets, vars: {a: hi}, assert: [{type: contains, value: hi}]}
    """)
    assert [case.id for case in suite] == ["Greets", "hi", "Greets #2"]
    assert all(not case.cell for case in suite)


def test_a_test_without_a_description_is_named_by_its_own_variables() -> None:
    """Not by those of all tests, nor by what the environment holds; by its number where it has none."""
    text = """
        prompts: ['{{a}}']
        defaultTest: {vars: {tone: kind}}
        tests:
          - {vars: {a: "one\\ntwo", b: 2, c: '{{env.NAME}}', d: past}}
          - {vars: {a: same}}
          - {vars: {tone: stern}}
          - {vars: {a: same}}
          - {}
    """
    suite = loads(text, environ={"NAME": "hidden"})
    assert [case.id for case in suite] == ["one two, 2, {{env.NAME}}", "same", "stern", "same #2", "test-5"]


def test_scenarios_multiply_their_tests() -> None:
    """Each test of a scenario runs on top of each of its configurations."""
    suite = loads("""
        prompts: ['{{language}}: {{text}}']
        scenarios:
          - config: [{vars: {language: French}}, {vars: {language: German}, assert: [{type: contains, value: g}]}]
            tests: [{vars: {text: hi}, assert: [{type: contains, value: h}]}]
    """)
    assert [case.input for case in suite] == ["French: hi", "German: hi"]
    assert [len(case.rubric.criteria) for case in suite] == [1, 2]


def test_assertions_by_themselves_are_one_test() -> None:
    """An example of the documentation that is nothing but assertions loads as one case."""
    (case,) = loads("assert: [{type: llm-rubric, value: Is polite}]")
    assert case.rubric.text == "Is polite"


def test_a_fixed_output_and_the_echo_provider_need_no_target() -> None:
    """`providerOutput` is the candidate; `echo` answers with its prompt."""
    first, second = loads("""
        prompts: ['Say {{a}}']
        providers: [echo]
        tests:
          - {vars: {a: hi}, providerOutput: {said: hi}, assert: [{type: is-json}]}
          - {vars: {a: hi}, assert: [{type: contains, value: hi}]}
    """)
    assert (first.output, second.output) == ('{"said":"hi"}', "Say hi")


def test_an_echo_of_nothing_is_told_with_its_cause() -> None:
    """The prompt lacks its variable, so there is no answer to grade; it is no model that would need a vendor."""
    suite = loads(
        "prompts: ['{{a}}']\nproviders: [echo]\ntests: [{vars: {b: hi}, assert: [{type: contains, value: h}]}]"
    )
    (row,) = suite.run("offline", target="providers")
    assert row.status == "deferred"
    assert "'echo': it gives its prompt back, and the prompt is empty: a variable of it is missing" in row.reason


def test_a_chat_is_read_as_messages() -> None:
    """A prompt that is a JSON list of messages is filled text by text, so that no value can break it."""
    (case,) = loads("""
        prompts:
          - |
            [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "{{q}}"}]
        tests: [{vars: {q: 'say "hi"'}, assert: [{type: contains, value: hi}]}]
    """)
    assert [(m.role, m.content) for m in case.messages] == [("system", "Be kind"), ("user", 'say "hi"')]


def test_a_chat_may_be_written_in_yaml() -> None:
    """A prompt that is a YAML list of messages is a chat too."""
    (case,) = loads("""
        prompts:
          - |
            - role: user
              content: 'Ask {{q}}'
        tests: [{vars: {q: 'a: b'}, assert: [{type: contains, value: hi}]}]
    """)
    assert [(m.role, m.content) for m in case.messages] == [("user", "Ask a: b")]


def test_a_file_of_tests_is_a_suite() -> None:
    """A list of tests by themselves loads too; there is then nothing that is asked."""
    assert [case.input for case in loads("- {assert: [{type: is-json}]}\n- {assert: [{type: is-json}]}")] == ["", ""]


def test_variables_may_stand_in_one_another_and_are_templates_in_a_prompt() -> None:
    """A plain slot in a variable is filled; whatever else it holds is computed in a prompt alone, as in promptfoo."""
    (case,) = loads("""
        prompts: ['{{a}}']
        tests: [{vars: {a: 'about {{b}} {{ 1 + 1 }}', b: ships}, assert: [{type: is-json}]}]
    """)
    assert case.input == "about ships 2"
    assert case.variables["a"] == "about ships {{ 1 + 1 }}"


# -- files -------------------------------------------------------------------------------------------------


def test_files_are_read_from_the_folder_of_the_file_that_names_them(tmp_path: Path) -> None:
    """Prompts, tests, variables, defaults and rubrics may stand in files, each beside the one that names it."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "prompt.txt").write_text("First {{a}}\n---\nSecond {{a}}\n")
    (tmp_path / "default.yaml").write_text("assert: [{type: llm-rubric, value: 'file://sub/rubric.txt'}]")
    (tmp_path / "sub" / "rubric.txt").write_text("Is about {{a}}\n")
    (tmp_path / "sub" / "value.txt").write_text("ships\n")
    (tmp_path / "sub" / "tests.yaml").write_text("- vars: {a: 'file://value.txt'}\n")
    suite = loads(
        """
        prompts: [file://prompt.txt]
        defaultTest: file://default.yaml
        tests: file://sub/*.yaml
        """,
        folder=tmp_path,
    )
    assert [case.input for case in suite] == ["First ships", "Second ships"]
    assert {case.rubric.text for case in suite} == {"Is about {{a}}"}  # promptfoo fills in no template of its file
    assert any("taken as it stands, as in promptfoo" in warning.message for warning in suite.warnings)
    assert suite.cases[0].place is not None
    assert suite.cases[0].place.source.endswith("tests.yaml")


def test_a_table_is_a_test_a_row(tmp_path: Path) -> None:
    """Columns are variables; those that begin with `__` say how the row is graded."""
    (tmp_path / "tests.csv").write_text(
        "q,__expected1,__expected2,__metric,__threshold,__description,__metadata:team,__config:__expected1:threshold\n"
        'hi,llm-rubric: is polite,"contains-any: a, b",tone,0.5,Greets,red,0.9\n'
        ",,,,,,,\n"
        "yo,Hello,,,,,,\n"
    )
    first, second = loads("prompts: ['{{q}}']\ntests: tests.csv", folder=tmp_path)
    assert (first.id, first.input, first.rubric.threshold, dict(first.metadata)) == (
        "Greets",
        "hi",
        0.5,
        {"team": "red"},
    )
    assert [c.tags for c in first.rubric.criteria] == [("tone",), ("tone",)]
    inner = first.rubric.criteria[0].answer
    assert isinstance(inner, Rubric)
    assert inner.threshold == 0.9
    assert (second.rubric.criteria[0].answer, second.place is not None) == (Equals("Hello"), True)


def test_lines_of_json_are_tests(tmp_path: Path) -> None:
    """A JSONL file holds a test a line."""
    (tmp_path / "t.jsonl").write_text('{"vars": {"q": "hi"}, "assert": [{"type": "is-json"}]}\n')
    (case,) = loads("prompts: ['{{q}}']\ntests: [file://t.jsonl]", folder=tmp_path)
    assert (case.input, case.rubric.criteria[0].answer) == ("hi", IsJSON())


@pytest.mark.parametrize(
    "tests", ["file://gen.py", "gen.js:make", "{path: file://gen.py}", "huggingface://d/x", "https://a.b/c"]
)
def test_one_ungraded_case_stands_for_tests_that_are_made_elsewhere(tests: str, tmp_path: Path) -> None:
    """No code is run and nothing is fetched; the warning says what to do instead."""
    (case,) = (suite := loads(f"tests: {tests}", folder=tmp_path))
    assert isinstance(case.rubric.criteria[0].answer, Unsupported)
    assert f"promptfooconfig.yaml:1:{15 if 'path' in tests else 8}" in str(suite.warnings[0])


def test_nothing_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    """A reference that leaves the folder is an error at its place."""
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    found = problems("tests: [{vars: {a: 'file://../secret.txt'}, assert: [{type: is-json}]}]", folder=tmp_path / "in")
    assert "promptfooconfig.yaml:1:" in found
    assert "secret" not in found.replace("secret.txt", "")


# -- graders -------------------------------------------------------------------------------------------------


def test_the_nearest_provider_grades() -> None:
    """An assertion's provider comes before the test's, that before the default; where they differ, each has its own."""
    (case,) = loads("""
        defaultTest: {options: {provider: {text: openai:gpt-5, embedding: openai:embedding:x}}}
        tests:
          - assert:
              - {type: llm-rubric, value: a}
              - {type: llm-rubric, value: b, provider: anthropic:messages:claude-x}
    """)
    assert case.judge is None
    assert dict(case.judges) == {"llm-rubric": Judge("openai/gpt-5"), "llm-rubric-2": Judge("anthropic/claude-x")}


def test_a_file_never_says_where_a_judge_is() -> None:
    """Temperature, length and seed are taken; endpoints, keys and headers are not, and their values are not shown."""
    text = """
        defaultTest:
          options:
            provider:
              id: openai:gpt-5
              config: {temperature: 0.2, max_tokens: 100, seed: 7, apiBaseUrl: http://evil, apiKey: sk-1, headers: {a: b}}
        tests: [{assert: [{type: llm-rubric, value: a}]}]
    """
    suite, notes = opened(text)
    assert suite.cases[0].judge == Judge("openai/gpt-5", temperature=0.2, max_tokens=100, seed=7)
    said = "\n".join(map(str, notes.warnings))
    assert all(name in said for name in ("apiBaseUrl", "apiKey", "headers"))
    assert "sk-1" not in said
    assert "evil" not in said


@pytest.mark.parametrize("provider", ["[openai:gpt-5]", "nothing", "{config: {a: 1}, id: 7}", "7"])
def test_a_provider_that_cannot_grade_is_an_error(provider: str) -> None:
    """A list and a bare word are not judges."""
    assert "provider" in problems(f"tests: [{{assert: [{{type: llm-rubric, value: a, provider: {provider}}}]}}]")


# -- prompts of one's own --------------------------------------------------------------------------------------


def sent(text: str, output: str = "the output") -> list[tuple[str, str]]:
    """Return the messages that the judge of the one case is sent."""
    (case,) = loads(text)
    model = ScriptedModel([{"pass": True, "score": 1, "reason": "ok"}])
    candidate = case.answered(output).candidate
    assert candidate is not None
    assert isinstance(grade(candidate, case.rubric, Judge(model)), Grade)
    return [(message.role, message.text) for message in model.asks[0].messages]


def test_a_prompt_of_ones_own_is_sent_as_it_is() -> None:
    """Output, rubric and variables are filled in; a variable named like a slot of ours keeps its own value."""
    found = sent("""
        prompts: ['Ask {{input}}']
        tests:
          - vars: {input: mine, n: 2}
            assert:
              - {type: llm-rubric, value: 'About {{n}}', rubricPrompt: '{{output}}|{{ rubric }}|{{input}}|{{n}}|{{gone}}|'}
    """)
    assert found == [("user", "the output|About 2|mine|2||")]


def test_no_value_becomes_a_slot() -> None:
    """What looks like a slot in a variable, in the output or in a raw block is shown as it is."""
    found = sent(
        """
        tests:
          - vars: {a: '{{ rubric }}', b: [1, '{{ output }}']}
            assert:
              - type: llm-rubric
                value: R
                rubricPrompt: '{{ a }} {{ b[1] }} {% raw %}{{ output }}{% endraw %} {{ output }}'
        """,
        output="{{ rubric }}",
    )
    assert found == [("user", "{{ rubric }} {{ output }} {{ output }} {{ rubric }}")]


def test_a_loop_of_a_prompt_names_its_items_itself() -> None:
    """What a loop or a `set` names is not a slot; what stands in the loop otherwise is."""
    prompt = "{% set end = '!' %}{% for i in l %}{{ i }}:{{output}};{% endfor %}{{end}} {{rubric}}"
    text = f"""tests: [{{vars: {{l: [a, b], i: 9}}, options: {{disableVarExpansion: true}},
      assert: [{{type: llm-rubric, value: R, rubricPrompt: "{prompt}"}}]}}]"""
    assert sent(text) == [("user", "a:the output;b:the output;! R")]


def test_a_chat_prompt_may_have_comments() -> None:
    """JSON with `//` comments, as the documentation shows it, is a chat."""
    found = sent("""
        defaultTest:
          options:
            rubricPrompt: |
              [
                // German: "Grade"
                {"role": "system", "content": "Bewerte"},
                {"role": "user", "content": "{{ output }}: {{ rubric }}"}
              ]
        tests: [{assert: [{type: llm-rubric, value: 'say "hi"'}]}]
    """)
    assert found == [("system", "Bewerte"), ("user", 'the output: say "hi"')]


def test_a_prompt_with_pictures_leaves_its_case_ungraded() -> None:
    """A judge that would not see the picture is not asked."""
    rubric = one(
        """{type: llm-rubric, value: a, rubricPrompt: [{role: user, content: [{type: image_url, image_url: x}]}]}"""
    )
    assert isinstance(rubric.criteria[0].answer, Unsupported)


def test_a_prompt_that_computes_with_the_output_is_an_error() -> None:
    """What is known only when something is graded cannot be rendered while loading."""
    found = problems("tests: [{assert: [{type: llm-rubric, value: a, rubricPrompt: '{{ output | upper }}'}]}]")
    assert "computes with output" in found


def test_a_rubric_may_stand_in_its_prompt_alone() -> None:
    """Without a value, the prompt says what is graded."""
    assert sent("tests: [{assert: [{type: llm-rubric, rubricPrompt: 'Grade {{output}}'}]}]") == [
        ("user", "Grade the output")
    ]


# -- nothing in silence ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "test",
    [
        "options: {transform: file://trim.py}",
        "options: {transformVars: x}",
        "assertScoringFunction: file://score.js",
        "vars: {a: file://make.py}",
    ],
)
def test_code_that_would_change_what_is_graded_leaves_the_case_ungraded(test: str, tmp_path: Path) -> None:
    """A case whose text or score code would change is not graded without it."""
    (case,) = loads(f"tests: [{{assert: [{{type: llm-rubric, value: a}}], {test}}}]", folder=tmp_path)
    assert any(isinstance(c.answer, Unsupported) for c in case.rubric.criteria)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("extensions: [file://hook.js:x]", "extensions"),
        ("derivedMetrics: []", "derivedMetrics"),
        ("owner: me", "the key 'owner' is not read"),
        ("env: {A: b}", "env"),
    ],
)
def test_keys_that_are_not_read_are_told(text: str, what: str) -> None:
    """A key that matters and is not carried out, or is not known, is warned of."""
    assert what in warned(f"{text}\ntests: [{{assert: [{{type: is-json}}]}}]")


def test_keys_about_presentation_are_ignored() -> None:
    """What says where results go, and how they are shown, does not matter for grading."""
    text = "outputPath: out.csv\nsharing: true\nevaluateOptions: {maxConcurrency: 4}\n"
    assert not warned(f"{text}tests: [{{assert: [{{type: is-json}}]}}]")


def test_an_environment_variable_is_shown_only_where_it_is_declared() -> None:
    """A file shows what it declares itself or what the caller declares, and nothing of the process."""
    text = "prompts: ['{{ env.NAME }}']\ntests: [{assert: [{type: is-json}]}]\n"
    assert loads(text, environ={"NAME": "x"}).cases[0].input == "x"
    assert loads(text + "env: {NAME: y}").cases[0].input == "y"
    assert "'NAME' is not declared" in str(loads(text).warnings[0])


def test_every_problem_is_told_at_once_and_in_order() -> None:
    """Errors of several tests are all reported, each at its line."""
    found = problems("""tests:
  - assert: [{type: llm-rubric, value: ''}]
  - assert: [{type: regex, value: '(x'}]
  - assert: [{type: contains, value: true}]
  - assert: 7
  - 7
""")
    assert [line.split(":")[1] for line in found.splitlines()] == ["2", "3", "4", "5", "6"]


# -- real files ------------------------------------------------------------------------------------------------

FILES = sorted(CORPUS.rglob("*.yaml")) if CORPUS.exists() else []


@pytest.mark.long
@pytest.mark.skipif(not FILES, reason="the corpus of real files is not beside the project")
def test_every_real_file_loads_or_says_where_it_does_not() -> None:
    """A file of the corpus is a suite with ids of their own, or its error has a line and a message."""
    found = [suite_or_error(file) for file in FILES]
    suites = [each for each in found if isinstance(each, Suite)]
    assert len(suites) > len(FILES) * 0.9
    for error in (each for each in found if isinstance(each, LoadError)):
        assert all(problem.line >= 1 and problem.message for problem in error.problems), error
    for suite in suites:
        assert len(suite) == len({case.id for case in suite}) > 0


def blocks() -> list[Any]:
    """Return the YAML blocks of the seed page about promptfoo."""
    pages = [p.read_text(encoding="utf-8") for p in SEEDS.glob("*.txt")] if SEEDS.exists() else []
    page = next((text for text in pages if text.lstrip().startswith("# LLM Rubric")), "")
    found = [block.partition("```")[0] for block in page.split("```yaml\n")[1:]]
    return [pytest.param(block, id=str(number)) for number, block in enumerate(found)]


@pytest.mark.parametrize("block", blocks())
def test_every_block_of_the_documentation_loads_or_is_told_to_be_quoted(block: str, tmp_path: Path) -> None:
    """The blocks that are not YAML, for want of quotes, fail where that is and say the cure."""
    for name in ("prompt1.txt", "prompt2.txt"):
        (tmp_path / name).write_text("{{question}}")
    without_quotes = 'question: "{{question}}" without' in block
    if without_quotes:
        found = problems(block, folder=tmp_path)
        assert "quote" in found
        line = next(n for n, text in enumerate(block.splitlines(), 1) if 'question: "{{' in text)
        assert f"promptfooconfig.yaml:{line}:" in found
        return
    if "\nassert:" not in f"\n{block}" and "tests:" not in block:
        block += "\nassert: [{type: llm-rubric, value: Is kind}]\n"
    assert loads(block, folder=tmp_path).cases


def test_what_leaves_a_case_ungraded_is_told_when_the_file_is_read() -> None:
    """Once, however many cases share it; and so is a variable that is not there."""
    text = """\
prompts: ["{{ question }} {{ mistyped }}"]
defaultTest: {assert: [{type: moderation, value: x}]}
tests: [{vars: {question: a}}, {vars: {question: b}}]
"""
    suite = loads_suite(text, "promptfoo", source="p.yaml")
    told = [str(warning) for warning in suite.warnings]
    assert sum("assertion type 'moderation' is not supported" in line for line in told) == 1
    assert sum("there is no variable 'mistyped'" in line for line in told) == 1


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (
            "assert: [{type: contains-all, value: []}]",
            r"contains-all with a fault: expected a list .*, got \[\]; mend it",
        ),
        ("assert: [{type: contains, value: x}], type: contains", ".*another's place .*; move the key, or take it out"),
    ],
)
def test_an_ungraded_case_says_what_to_mend(test: str, said: str) -> None:
    """A value or a place that is wrong is not called a type that the library lacks."""
    good = "assert: [{type: contains, value: Hi}]"
    suite = loads_suite(f"prompts: [Hi]\nproviders: [echo]\ntests: [{{{test}}}, {{{good}}}]\n", "promptfoo")
    row, _ = suite.run("offline", target=lambda case: case.input)
    assert any(re.fullmatch(f"unsupported: {said}", entry.reason) for entry in row.entries), row.entries


@pytest.mark.parametrize("kind", ["not_contains", "notContains", "NOT-contains", "not-contain"])
def test_the_hint_for_a_turned_type_is_a_turned_type(kind: str) -> None:
    """The type without its `not-` would assert the opposite."""
    text = f"prompts: [a]\ntests: [{{assert: [{{type: {kind}, value: b}}]}}]"
    with pytest.raises(LoadError, match="did you mean 'not-contains'"):
        loads_suite(text)


_BITS = (
    "{{ a }}",
    "{{b}}",
    "{{ é }}",
    "{{ a.b }}",
    "{{ a|upper }}",
    "{{ true }}",
    "{{",
    "}",
    "\n",
    "\r\n",
    "{# c #}",
    "x",
)


@given(st.lists(st.sampled_from(_BITS), max_size=5).map("".join))
def test_plain_slots_are_filled_as_the_template_engine_fills_them(text: str) -> None:
    """The straight path for texts with plain slots gives what rendering gives, or leaves the text to it."""
    variables = {"a": "A {{ b }}", "b": "", "é": "E"}
    filled = _fill_plain(text, variables)
    assert filled is None or filled == render(text, variables)


def test_the_variable_prompt_is_asked_where_a_configuration_has_no_prompts() -> None:
    """As in promptfoo, whose prompt is then `{{prompt}}`, with the `prefix` and as messages where it is JSON."""
    chat = json.dumps(json.dumps([{"role": "user", "content": "c"}]))
    text = f"tests: [{{vars: {{prompt: a}}, options: {{prefix: 'b '}}}}, {{vars: {{prompt: {chat}}}}}, {{vars: {{q: d}}}}]\n"
    first, second, third = loads(text)
    assert first.input == "b a"
    assert [message.content for message in second.messages] == ["c"]
    assert (third.input, third.messages, third.output) == ("", (), None)


def test_an_address_is_sent_no_prompt_where_nothing_is_asked() -> None:
    """Its body has the variables alone."""
    provider = {
        "id": "http",
        "config": {"url": "http://a.test", "method": "POST", "body": {"p": "<{{prompt}}>", "q": "{{q}}"}},
    }
    (case,) = loads(json.dumps({"providers": [provider], "tests": [{"vars": {"q": "d"}}]}))
    request = case.providers[0].request
    assert request is not None
    assert json.loads(request.body) == {"p": "<>", "q": "d"}
