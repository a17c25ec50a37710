"""What a file needs and a load does not have: it leaves the part that needs it ungraded, and no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric.errors import LoadError
from rubric.formats.suites import load_suite, loads_suite
from rubric.suites.suite import Suite
from rubric.values.checks import Unsupported
from tests.agentv import written
from tests.rows import each_row

NEEDS_X = {
    "a check": "tests: [{vars: {q: a}, assert: [{type: contains, value: '{{ env.X }}'}]}, {PLAIN}]",
    "a rubric": "tests: [{vars: {q: a}, assert: [{type: llm-rubric, value: 'Is {{ env.X }}'}]}, {PLAIN}]",
    "a rubric's prompt": (
        "tests: [{vars: {q: a}, assert: [{type: llm-rubric, value: b, rubricPrompt: 'In {{ env.X }}: {{ output }}'}]}, {PLAIN}]"
    ),
    "a variable": "tests: [{vars: {q: 'in {{ env.X }}'}, assert: [{type: contains, value: b}]}, {PLAIN}]",
    "a file": "tests: [{vars: {q: a}, assert: [{type: contains, value: 'file://{{ env.X }}/a.txt'}]}, {PLAIN}]",
    "code": """tests: [{vars: {q: a}, assert: [{type: javascript, value: 'output == "{{ env.X }}"'}]}, {PLAIN}]""",
    "a transform": "tests: [{vars: {q: a}, options: {transform: '\"{{ env.X }}\"'}, assert: [{type: contains, value: b}]}, {PLAIN}]",
    "one of several assertions": "tests: [{assert: [{type: contains, value: b}, {type: contains, value: '{{ env.X }}'}]}, {PLAIN}]",
    "AgentV: an input": "tests: [{id: a, input: 'in {{ env.X }}', criteria: Polite}, {id: b, input: c, criteria: Polite}]",
    "AgentV: a criterion": "tests: [{id: a, input: a, assert: ['Is {{ env.X }}']}, {id: b, input: c, criteria: Polite}]",
    "AgentV: a variable": (
        "tests: [{id: a, input: 'a {{ v }}', vars: {v: '{{ env.X }}'}, criteria: Polite}, {id: b, input: c, criteria: Polite}]"
    ),
}
PLAIN = "vars: {q: c}, assert: [{type: contains, value: d}]"


def loaded(name: str, **options: Any) -> Suite:
    system = "agentv-2" if name.startswith("AgentV") else "promptfoo"
    return loads_suite(NEEDS_X[name].replace("{PLAIN}", f"{{{PLAIN}}}"), system, **options)


def ungraded(suite: Suite) -> list[str]:
    """What the two cases of *suite* are not graded for; '' where nothing is in the way."""
    return [
        "; ".join(c.answer.type for c in case.rubric.criteria if isinstance(c.answer, Unsupported)) for case in suite
    ]


@each_row("name", NEEDS_X)
def test_an_undeclared_variable_leaves_its_case_alone_ungraded(name: str) -> None:
    """And the reason has the cure, in code and on the command line."""
    found, other = ungraded(loaded(name))
    assert "environ={'X': ...}" in found
    assert "--env X" in found
    assert other == ""


@pytest.mark.parametrize(
    "tests",
    [
        "['file://{{ env.X }}/t.yaml', {PLAIN}]",
        "[{vars: 'file://{{ env.X }}/v.yaml', assert: [{type: contains, value: b}]}, {PLAIN}]",
    ],
)
def test_a_reference_with_an_undeclared_variable_leaves_its_own_cases_ungraded(tests: str) -> None:
    """One case takes the place of the tests in a file that cannot be named."""
    suite = loads_suite("prompts: ['{{ q }}']\ntests: " + tests.replace("{PLAIN}", f"{{{PLAIN}}}"), "promptfoo")
    found, other = ungraded(suite)
    assert "--env X" in found
    assert (other, suite[1].input) == ("", "c")


def test_an_undeclared_variable_in_the_name_of_the_defaults_leaves_all_cases_ungraded() -> None:
    """Every case depends on the defaults, so each has the reason with the variable's name."""
    suite = loads_suite(f"defaultTest: 'file://{{{{ env.X }}}}/d.yaml'\ntests: [{{{PLAIN}}}]\n", "promptfoo")
    (found,) = ungraded(suite)
    assert "a defaultTest with the undeclared environment variable 'X'" in found


@pytest.mark.parametrize(
    "tag", ["{% switch q %}{% case 'c' %}one{% endswitch %}", "{% asyncEach n in q %}{% endeach %}"]
)
def test_a_tag_of_nunjucks_that_is_not_here_leaves_its_own_cases_ungraded(tag: str) -> None:
    """The other prompt is graded; a misspelt tag is reported as a broken template."""
    first, second = ungraded(loads_suite(f'prompts: ["{tag}", b]\ntests: [{{{PLAIN}}}]\n', "promptfoo"))
    assert "which is not carried out" in first
    assert second == ""
    (misspelt,) = ungraded(loads_suite(f'prompts: ["{{% swich q %}}"]\ntests: [{{{PLAIN}}}]\n', "promptfoo"))
    assert "a prompt with a broken template" in misspelt
    assert "swich" in misspelt


def test_a_variable_that_is_no_json_leaves_its_own_case_ungraded() -> None:
    """As in promptfoo, where that test is an error and the others run."""
    tests = "[{vars: {q: '{\"n\": 1}'}, assert: [{type: contains, value: d}]}, {PLAIN}]".replace(
        "{PLAIN}", f"{{{PLAIN}}}"
    )
    suite = loads_suite(f"prompts: ['{{{{ (q | load).n }}}}']\ntests: {tests}\n", "promptfoo")
    first, second = ungraded(suite)
    assert (first, suite[0].input) == ("", "1")
    assert "the filter load takes JSON" in second


@each_row("name", [name for name in NEEDS_X if name != "a file"])
def test_a_declared_variable_is_shown_to_each_part(name: str) -> None:
    """Wherever it may be asked for."""
    suite = loaded(name, environ={"X": "gpt-5"})
    assert ungraded(suite) == ["", ""]
    assert "gpt-5" in repr((suite[0].rubric, suite[0].judge, suite[0].variables, suite[0].input))


def test_a_prompt_with_an_undeclared_variable_leaves_its_own_column_ungraded() -> None:
    """The other prompt's cases are graded."""
    suite = loads_suite(f"prompts: ['a {{{{ q }}}}', 'b {{{{ env.X }}}}']\ntests: [{{{PLAIN}}}]\n", "promptfoo")
    first, second = ungraded(suite)
    assert (first, "'X'" in second) == ("", True)
    assert suite[0].input == "a c"


def test_an_undeclared_judge_of_an_agentv_file_gives_way_to_that_of_the_run() -> None:
    """As for a name that is not known here; it is a warning."""
    text = "default_test: {options: {provider: '{{ env.X }}'}}\ntests: [{id: a, input: b, criteria: Polite}]\n"
    suite = loads_suite(text, "agentv-2")
    assert suite.judge is None
    assert any("environ={'X': ...}" in str(warning) for warning in suite.warnings)


@pytest.mark.parametrize("provider", ["openai:{{ env.X }}", "{id: 'https://{{ env.X }}.example/', config: {body: a}}"])
def test_a_provider_that_needs_an_undeclared_variable_cannot_be_asked(provider: str) -> None:
    """Its cases can be graded all the same; asking it says the cure."""
    text = f"prompts: [a]\nproviders: [{provider if '{id' in provider else repr(provider)}]\ntests: [{{{PLAIN}}}]\n"
    (case,) = loads_suite(text, "promptfoo")
    assert "environ={'X': ...}" in case.providers[0].missing
    (case,) = loads_suite(text, "promptfoo", environ={"X": "gpt-5"})
    assert "gpt-5" in repr(case.providers)
    assert not case.providers[0].missing


GRADERS = {
    "python:judge.py": "give the judge in code",
    "file://judge.js": "give the judge in code",
    "adaline:openai:chat:gpt-5": "give the judge in code",
    "openai:{{ env.X }}": "environ={'X': ...}",
}


@pytest.mark.parametrize("grader", GRADERS)
def test_a_grader_that_is_not_called_here_gives_way_to_the_judge_of_the_run(grader: str) -> None:
    """promptfoo takes programs, addresses and gateways as graders too; the warning names the grader, and the cure."""
    asserted = f"{{type: llm-rubric, value: a, provider: '{grader}'}}"
    suite = loads_suite(f"tests: [{{assert: [{asserted}]}}, {{{PLAIN}}}]\n", "promptfoo")
    assert ungraded(suite) == ["", ""]
    assert suite[0].judge is None
    warnings = " ".join(map(str, suite.warnings))
    assert "the judge of the run takes" in warnings
    assert grader in warnings
    assert GRADERS[grader] in warnings


def test_a_declared_variable_names_the_grader() -> None:
    """It is the judge of its case."""
    asserted = "{type: llm-rubric, value: a, provider: 'openai:{{ env.X }}'}"
    suite = loads_suite(f"tests: [{{assert: [{asserted}]}}]\n", "promptfoo", environ={"X": "gpt-5"})
    assert "gpt-5" in repr(suite[0].judge)


def test_a_misspelt_vendor_of_a_grader_is_an_error_of_the_file() -> None:
    """Else every case of it would stay ungraded for one letter."""
    asserted = "{type: llm-rubric, value: a, provider: 'opnai:gpt-5'}"
    with pytest.raises(LoadError, match="did you mean 'openai'"):
        loads_suite(f"tests: [{{assert: [{asserted}]}}]\n", "promptfoo")


@pytest.mark.parametrize("rest", ["prompts: [a, b]", "prompts: [a, b]\nredteam: {plugins: [pii]}"])
def test_prompts_without_tests_are_asked_once_each_and_stay_ungraded(rest: str) -> None:
    """As in promptfoo, where one looks at the outputs by oneself, or tests are generated."""
    suite = loads_suite(rest + "\n", "promptfoo")
    assert [case.input for case in suite] == ["a", "b"]
    assert any("asserts nothing" in str(warning) for warning in suite.warnings)


FILTERED = "tests: [{vars: {q: a}, assert: [{type: contains, value: '{{ q | shout }}'}]}, {%s}]\n" % PLAIN  # noqa: UP031


def test_a_filter_of_the_files_own_leaves_its_case_alone_ungraded() -> None:
    """It is code, which is not run."""
    found, other = ungraded(loads_suite("nunjucksFilters: {shout: ./shout.js}\n" + FILTERED, "promptfoo"))
    assert "'shout' of nunjucksFilters" in found
    assert other == ""


def test_a_filter_that_nobody_knows_is_an_error_of_the_file() -> None:
    """It is most likely misspelt; the message lists those that there are."""
    with pytest.raises(LoadError, match="no filter is called 'shout'"):
        loads_suite("nunjucksFilters: {other: ./shout.js}\n" + FILTERED, "promptfoo")


@pytest.mark.parametrize(
    "value",
    ["file://gone.txt", "file://gone.yaml", "file://known.txt\n\nand more"],
    ids=["a text", "a document", "the first of several lines"],
)
def test_a_variable_whose_file_is_not_there_leaves_its_case_alone_ungraded(value: str, tmp_path: Path) -> None:
    """As in promptfoo, where that test alone fails; a text of several lines is not a name of a file."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "known.txt").write_text("known")
    test = {"vars": {"q": value}, "assert": [{"type": "contains", "value": "b"}]}
    (tmp_path / "promptfooconfig.yaml").write_text(f"tests: [{json.dumps(test)}, {{{PLAIN}}}]\n")
    suite = load_suite(tmp_path / "promptfooconfig.yaml")
    found, other = ungraded(suite)
    assert "variables with" in found
    assert other == ""
    assert any("vars.q" in str(warning) for warning in suite.warnings)


def test_a_list_of_tests_keeps_those_whose_file_is_there(tmp_path: Path) -> None:
    """One ungraded case stands for each file that is not; promptfoo passes over it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "some.yaml").write_text(f"[{{{PLAIN}}}]\n")
    (tmp_path / "promptfooconfig.yaml").write_text("tests: ['file://some.yaml', 'file://gone.yaml']\n")
    kept, found = ungraded(load_suite(tmp_path / "promptfooconfig.yaml"))
    assert kept == ""
    assert "tests in a file that is not within reach (gone.yaml)" in found


def test_an_unknown_key_that_is_another_word_is_no_misspelling() -> None:
    """`provenance` is not `governance`: the file loads, with a warning."""
    text = "execution: {target: a}\nprovenance: {origin: b}\ntests: [{id: a, input: b, criteria: Polite}]\n"
    assert any("provenance" in str(warning) for warning in loads_suite(text, "agentv-2").warnings)


@pytest.mark.parametrize(
    ("name", "command"),
    [("promptfooconfig.js", "node -p"), ("promptfooconfig.ts", "npx tsx -e"), ("promptfooconfig.mjs", "npx tsx -e")],
)
def test_a_configuration_that_needs_node_is_refused_with_the_command_that_writes_it_out(
    name: str, command: str, tmp_path: Path
) -> None:
    """Where it needs a module of Node's that it has not: it is run without."""
    (tmp_path / name).write_text("module.exports = {tests: require('child_process').execSync('ls')}")
    with pytest.raises(LoadError) as caught:
        load_suite(tmp_path / name)
    assert "is a program, and cannot be run here: it imports 'child_process', and" in str(caught.value)
    assert command in str(caught.value)
    assert "> promptfooconfig.json" in str(caught.value)


@pytest.mark.parametrize("kind", ["execution_metrics", "token_usage", "execution-metrics", "token-usage"])
def test_limits_of_a_run_are_read_in_older_spellings_too(kind: str) -> None:
    """With underscores, as AgentV wrote its types before."""
    limit = "max_total: 9" if "token" in kind else "max_tool_calls: 9"
    for key in ("evaluators", "assertions"):
        (case,) = loads_suite(f"tests: [{{id: a, input: b, {key}: [{{type: {kind}, {limit}}}]}}]\n", "agentv-1.5")
        assert "Within" in repr(case.rubric)


@pytest.mark.parametrize("kind", ["skill_used", "trajectory:tool_used", "tool_call_f1"])
def test_checks_of_calls_are_read_in_older_spellings_too(kind: str) -> None:
    """As with hyphens."""
    text = "tests: [{id: a, input: b, assertions: [{type: '%s', value: c}]}]\n"
    older, newer = (loads_suite(text % name, "agentv-1.5")[0].rubric for name in (kind, kind.replace("_", "-")))
    assert repr(older.criteria[0].answer) == repr(newer.criteria[0].answer)


def test_templates_include_files_below_the_base(tmp_path: Path) -> None:
    """In prompts, in values and in the prompts of judges; from the configuration's folder, and one within another."""
    written(tmp_path / "project" / "parts" / "inner.txt", "to {{ name }}")
    written(tmp_path / "project" / "part.txt", "\n{%- include './parts/inner.txt' -%}\n!")
    data = {
        "prompts": ["Say hello {% include \"part.txt\" %}{% include 'none.txt' ignore missing %} {% raw %}{% include 'x' %}{% endraw %}"],
        "tests": [{"vars": {"name": "Ann"}, "assert": [
            {"type": "contains", "value": "{% include 'part.txt' %}"},
            {"type": "llm-rubric", "value": "Polite", "rubricPrompt": "{% include 'part.txt' %} {{ output }} {{ rubric }}"},
        ]}],
    }  # fmt: skip
    (case,) = load_suite(written(tmp_path / "project" / "promptfooconfig.yaml", json.dumps(data)))
    assert case.input == "Say hello to Ann! {% include 'x' %}"
    assert "to Ann!" in str(case.rubric.criteria[0].answer)
    assert "to {{ name }}! {{ output }}" in repr(case.rubric)


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("{% include '../secret.txt' %}", "a prompt with a template with include"),
        ("{% include 'none.txt' %}", "a prompt with a template with include"),
        ("{% include name %}", "a prompt with a template with include"),
        ("{% include 'circle.txt' %}", "a prompt with a template with include"),
        ("{% import 'circle.txt' as m %}{{ m.x }}", "a prompt with a template with import"),
        ("{{ name | replace(r/a+/g, 'o') }}", "a regular expression (r/.../)"),
        ("{% if r/^A/i.test(name) %}a{% endif %}", "a regular expression (r/.../)"),
    ],
)
def test_a_template_that_needs_more_leaves_its_cases_ungraded(prompt: str, why: str, tmp_path: Path) -> None:
    """A file elsewhere or nowhere, a circle, a name that a variable holds, macros, and patterns of Nunjucks."""
    written(tmp_path / "secret.txt", "CANARY")
    written(tmp_path / "project" / "circle.txt", "{% include 'circle.txt' %}" * 3)
    data = {"prompts": [prompt], "tests": [{"vars": {"name": "Ann"}, "assert": [{"type": "contains", "value": "b"}]}]}
    suite = load_suite(written(tmp_path / "project" / "promptfooconfig.yaml", json.dumps(data)))
    assert why in ungraded(suite)[0]
    assert "CANARY" not in str(suite)


def test_a_division_is_no_regular_expression() -> None:
    """Only what Nunjucks reads as one: `r/` at the start of an expression's part."""
    data = {"prompts": ["{{ vr/2/m }} r/x/"], "tests": [{"vars": {"m": 2, "vr": 4}, "assert": [{"type": "is-json"}]}]}
    suite = loads_suite(json.dumps(data), "promptfoo")
    assert (ungraded(suite), suite[0].input) == ([""], "1 r/x/")
