"""Prompts, variables and tests that functions in JavaScript and TypeScript make for promptfoo's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric.formats.suites import dumps_suite, load_suite
from rubric.suites.suite import Suite
from rubric.suites.targets.http import _answer
from rubric.values.runs import Message
from tests.agentv import written

pytest.importorskip("quickjs", reason="the extra javascript is not installed")
pytest.importorskip("tree_sitter_typescript", reason="the extra javascript is not installed")

CONTAINS = [{"type": "contains", "value": "x"}]


def loaded(folder: Path, files: dict[str, str], **data: Any) -> Suite:
    for name, text in files.items():
        written(folder / name, text)
    whole = {"providers": ["openai:gpt-5-mini"], **data}
    return load_suite(written(folder / "promptfooconfig.yaml", json.dumps(whole)))


def asked(folder: Path, text: str, reference: Any = "file://ask.js", *, name: str = "ask.js", **test: Any) -> Any:
    """Return the input, or the messages, of a case whose prompt *text* makes."""
    test = {"vars": {"topic": "tea", "deep": {"n": [1, 2]}}, "assert": CONTAINS, **test}
    (case,) = loaded(folder, {name: text}, prompts=[reference], tests=[test])
    return [(one.role, one.content) for one in case.messages] or case.input


CHAT = "[{role: 'system', content: 'Be brief'}, {role: 'user', content: `On ${vars.topic}, {{ topic }}`}]"


@pytest.mark.parametrize(
    ("name", "text", "reference", "expected"),
    [
        ("ask.js", "module.exports = ({vars}) => `On ${vars.topic}: {{ topic }}`", "file://ask.js", "On tea: tea"),
        ("ask.mjs", "export const two = async ({vars}) => `n ${vars.deep.n[1]}`", "file://ask.mjs:two", "n 2"),
        ("ask.cjs", "exports.ask = (c) => ({prompt: 'P ' + c.vars.topic, config: {a: 1}})", "ask.cjs:ask", "P tea"),
        ("ask.ts", "export default (c: any): string => c.provider.id", "file://ask.ts", "openai:gpt-5-mini"),
        ("ask.js", "module.exports = (c) => c.config.tone", {"raw": "file://ask.js", "config": {"tone": "dry"}}, "dry"),
        ("ask.js", "module.exports = () => ({a: [1]})", {"id": "file://ask.js", "label": "l"}, '{"a":[1]}'),
        ("ask.js", f"module.exports = ({{vars}}) => {CHAT}", "file://ask.js", [("system", "Be brief"), ("user", "On tea, tea")]),
        ("ask.js", f"module.exports = ({{vars}}) => ({{prompt: {CHAT}}})", "file://ask.js", [("system", "Be brief"), ("user", "On tea, tea")]),
    ],
)  # fmt: skip
def test_a_function_makes_the_prompt_of_each_case(
    name: str, text: str, reference: Any, expected: Any, tmp_path: Path
) -> None:
    """A text, data as JSON, or a chat, of the variables with their types; it may be a template itself."""
    assert asked(tmp_path, text, reference, name=name) == expected


def test_the_configuration_of_a_prompt_is_that_of_its_request(tmp_path: Path) -> None:
    """What its function returns goes over what the file says, and both over the provider's."""
    files = {"ask.js": "module.exports = () => ({prompt: 'hi', config: {temperature: 0.5, tone: 'dry'}})"}
    prompts = [{"id": "file://ask.js", "config": {"max_tokens": 9, "temperature": 0.1}}]
    provider = {"id": "openai:gpt-5-mini", "config": {"temperature": 0, "top_p": 1}}
    (case,) = loaded(tmp_path, files, prompts=prompts, providers=[provider], tests=[{"assert": CONTAINS}])
    assert dict(case.providers[0].settings) == {"temperature": 0.5, "top_p": 1, "max_tokens": 9}
    assert case.input == "hi"


def test_a_made_prompt_attaches_images_and_takes_nothing_around_it(tmp_path: Path) -> None:
    """promptfoo puts `prefix` and `suffix` around the text of the file, which is not sent."""
    chat = "[{role: 'user', content: [{type: 'text', text: vars.topic}, {type: 'image_url', image_url: {url: 'data:image/png;base64,iVBORw0KGgo='}}]}]"
    test = {"vars": {"topic": "tea"}, "assert": CONTAINS, "options": {"prefix": "before ", "suffix": " after"}}
    (case,) = loaded(
        tmp_path, {"ask.js": f"module.exports = ({{vars}}) => {chat}"}, prompts=["file://ask.js"], tests=[test]
    )
    assert case.messages == (Message("user", "tea"),)
    assert len(case.images) == 1
    assert asked(tmp_path, "module.exports = () => 'plain'", options={"prefix": "before "}) == "plain"


def test_each_file_that_a_pattern_matches_and_each_provider_has_a_prompt_of_its_own(tmp_path: Path) -> None:
    """As with texts."""
    made = loaded(
        tmp_path,
        {"asks/a.js": "module.exports = (c) => 'a ' + c.provider.label", "asks/b.mjs": "export default () => 'b'"},
        prompts=["file://asks/*"],
        providers=[{"id": "openai:gpt-5-mini", "label": "one"}, {"id": "openai:gpt-5", "label": "two"}],
        tests=[{"assert": CONTAINS}],
    )
    assert [case.input for case in made] == ["a one", "b", "a two", "b"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("module.exports = () => { throw new Error('no luck') }", "which failed (Error: no luck)"),
        ("module.exports = () => undefined", "it returned None"),
        ("module.exports = () => 7", "it returned 7"),
        ("module.exports = () => process.env.HOME", "needs process"),
    ],
)
def test_a_prompt_that_fails_leaves_its_case_ungraded(text: str, why: str, tmp_path: Path) -> None:
    """Nothing is asked in its place."""
    (case,) = loaded(tmp_path, {"ask.js": text}, prompts=["file://ask.js"], tests=[{"assert": CONTAINS}])
    (row,) = load_suite(tmp_path / "promptfooconfig.yaml").run("offline", target=lambda case: "x")
    assert row.status == "ungraded"
    assert why in " ".join(criterion.text for criterion in case.rubric.criteria)


def test_outputs_are_graded_where_a_prompt_cannot_be_run(tmp_path: Path) -> None:
    """A package that is not installed is told when the file is loaded, and in the row of a live run, which asks nothing."""
    files = {"ask.js": "const dedent = require('dedent');\nmodule.exports = () => dedent`x`"}
    suite = loaded(tmp_path, files, prompts=["file://ask.js"], tests=[{"assert": CONTAINS}])
    assert "it imports 'dedent'" in str(suite.warnings)
    (row,) = suite.run("offline", target="providers")
    assert row.status == "deferred"
    assert "npm install dedent" in row.reason
    assert dumps_suite(suite)
    (row,) = suite.answered([{"id": suite.cases[0].id, "output": "x"}]).run("offline")
    assert row.status == "passed"
    written(tmp_path / "node_modules" / "dedent" / "index.js", "module.exports = (parts) => parts[0].trim()")
    assert load_suite(tmp_path / "promptfooconfig.yaml").cases[0].input == "x"


def test_functions_make_variables(tmp_path: Path) -> None:
    """They are given the name, the prompt and the other variables, and return an `output` of any type."""
    files = {
        "v.js": "module.exports = (name, prompt, vars) => ({output: `${name} of ${vars.topic} in ${prompt.length}`});",
        "list.mjs": "export default async () => ({output: ['a', 'b']});",
        "bad.js": "module.exports = () => ({error: 'no luck'});",
    }
    test = {"vars": {"topic": "tea", "v": "file://v.js", "l": "file://list.mjs"}, "assert": CONTAINS}
    (case,) = loaded(tmp_path, files, prompts=["{{ v }}; {{ l[1] }}"], tests=[test])
    assert case.input == "v of tea in 19; b"
    test["vars"] = {"v": "file://bad.js"}
    (case,) = loaded(tmp_path, files, prompts=["{{ v }}"], tests=[test])
    assert "which failed (no luck)" in str(case.rubric.criteria)


@pytest.mark.parametrize(
    ("name", "text", "reference"),
    [
        ("t.js", "module.exports = [{vars: {n: 1}, assert: []}, {vars: {n: 2}}]", "file://t.js"),
        ("t.ts", "export async function make(): Promise<object[]> { return [{vars: {n: 1}}, {vars: {n: 2}}] }", "t.ts:make"),
        ("t.mjs", "export default (config) => config.all.map((n) => ({vars: {n}}))", {"path": "file://t.mjs", "config": {"all": [1, 2]}}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("listed", [True, False])
def test_a_module_makes_tests(name: str, text: str, reference: Any, *, listed: bool, tmp_path: Path) -> None:
    """A list that it exports, or that its function returns."""
    suite = loaded(tmp_path, {name: text}, prompts=["{{ n }}"], tests=[reference] if listed else reference)
    assert [case.input for case in suite] == ["1", "2"]


def test_tests_that_cannot_be_made_are_one_ungraded_case(tmp_path: Path) -> None:
    """It says why."""
    files = {"t.js": "const fs = require('fs');\nmodule.exports = () => JSON.parse(fs.readFileSync('t.json'));"}
    (case,) = loaded(tmp_path, files, prompts=["{{ n }}"], tests="file://t.js")
    assert "no such file or directory, open 't.json'" in str(case.rubric.criteria)


# -- transforms of providers ----------------------------------------------------------------------------------

SHOUT = {"t.js": "const {mark} = require('./mark.json');\nmodule.exports.shout = (output, {vars}) => output.toUpperCase() + mark + vars.n;"}  # fmt: skip
SHOUT["mark.json"] = '{"mark": "!"}'
PROVIDER = {"id": "openai:gpt-5-mini", "transform": "file://t.js:shout"}
TEST = {"vars": {"n": 1}, "options": {"transform": "'<' + output + '>'"}, "assert": [{"type": "equals", "value": "<HI!1>"}]}  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "test"),
    [
        ({**PROVIDER, "id": "echo"}, TEST),
        ({**PROVIDER, "id": "echo", "label": "the prompt"}, TEST),
        (PROVIDER, {**TEST, "providerOutput": "hi"}),
        ({"echo": {"config": {"transform": "output.toUpperCase() + '!' + context.vars.n"}}}, TEST),
    ],
)
def test_an_output_of_the_file_goes_through_the_provider_then_the_test(
    provider: Any, test: Any, tmp_path: Path
) -> None:
    """In promptfoo's order; the transform may be a function in a file."""
    suite = loaded(tmp_path, SHOUT, prompts=["hi"], providers=[provider], tests=[test])
    (row,) = suite.run("offline")
    assert (row.status, row.output) == ("passed", "HI!1")


def test_given_outputs_go_through_the_provider_once(tmp_path: Path) -> None:
    """Raw ones do; those of promptfoo's results, and of a report of ours, went through it before."""
    suite = loaded(tmp_path, SHOUT, prompts=["hi"], providers=[PROVIDER], tests=[TEST])
    (raw,) = suite.answered([{"id": "1", "output": "hi"}]).run("offline")
    again = (report := suite.answered([{"id": "1", "output": "hi"}]).run("offline")).to_dict()["rows"]
    (ours,) = suite.answered(again).run("offline")
    finished = {"vars": {"n": 1}, "promptIdx": 0, "provider": {"id": PROVIDER["id"]}, "response": {"output": "<HI!1>"}}
    (theirs,) = suite.answered([finished]).run("offline")
    assert [row.status for row in (raw, *report, ours, theirs)] == ["passed"] * 4


def test_a_providers_transform_that_fails_leaves_its_case_ungraded(tmp_path: Path) -> None:
    """Of a fixed output, and of a given one, which is listed."""
    provider = {"id": "echo", "transform": "output.no.such"}
    (row,) = loaded(tmp_path, {}, prompts=["hi"], providers=[provider], tests=[TEST]).run("offline")
    assert row.status == "ungraded"
    assert "a provider's transform that failed (TypeError" in str(row.result)
    suite = loaded(tmp_path, {}, prompts=["hi"], providers=[{**provider, "id": "openai:gpt-5"}], tests=[TEST])
    suite = suite.answered([{"id": "1", "output": "hi"}])
    assert suite.cases[0].output is None
    assert "the transform of the provider 'openai:gpt-5': TypeError" in str(suite.warnings)


def test_a_provider_whose_file_is_not_there_says_so(tmp_path: Path) -> None:
    """For live runs of the file's providers."""
    (case,) = loaded(tmp_path, {}, prompts=["hi"], providers=[PROVIDER], tests=[TEST])
    assert "its transform is in a file that is not within reach" in case.providers[0].missing


def test_the_response_of_an_address_goes_through_a_file(tmp_path: Path) -> None:
    """`transformResponse` is given the JSON, the text, and what else is known of the response."""
    config = {"url": "http://127.0.0.1:1/", "body": {"q": "{{prompt}}"}, "transformResponse": "file://r.mjs:found"}
    files = {
        "r.mjs": "export const found = (json, text, c) => ({output: json.a + text.length + c.response.headers.k});"
    }
    (case,) = loaded(tmp_path, files, prompts=["hi"], providers=[{"id": "http", "config": config}], tests=[TEST])
    request = case.providers[0].request
    assert request is not None
    about = {"status": 200, "statusText": "", "headers": {"k": "v"}}
    assert _answer('{"a": "x"}', about, request, None) == "x10v"


def test_filters_of_the_file_are_run_in_its_templates(tmp_path: Path) -> None:
    """They are given the value and the arguments, in prompts, variables and assertions; they return any data."""
    files = {
        "loud.js": "module.exports = (text, sign = '') => text.toUpperCase() + sign",
        "parts.mjs": "export default (text) => text.split('-')",
    }
    test = {"vars": {"a": "x-y"}, "assert": [{"type": "contains", "value": "{{ a | loud }}"}]}
    filters = {"loud": "./loud.js", "parts": "file://parts.mjs", "upper": "loud.js"}
    prompts = ["{% for one in a | parts %}{{ one | loud('!') | trim }} {% endfor %}{{ a | upper }}"]
    (case,) = loaded(tmp_path, files, prompts=prompts, tests=[test], nunjucksFilters=filters)
    assert case.input == "X! Y! X-Y"
    assert "X-Y" in str(case.rubric.criteria[0])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("module.exports = () => { throw new Error('no luck') }", "which failed (Error: no luck)"),
        ("module.exports = () => { for (;;); }", "needs more than 1 seconds"),
        ("module.exports = () => process.env.HOME", "needs process"),
        ("module.exports = () => ({}).a.b", "TypeError"),
        ("const a = require('fs')", "without Node's modules"),
    ],
)
def test_a_filter_that_fails_leaves_its_case_ungraded(text: str, why: str, tmp_path: Path) -> None:
    """Others of the file are graded."""
    tests = [{"vars": {"a": one}, "assert": CONTAINS} for one in ("", "b")]
    prompts = ["x{% if a %}{{ a | f }}{% endif %}"]
    suite = loaded(
        tmp_path, {"f.js": text}, prompts=prompts, tests=tests, nunjucksFilters={"f": "f.js"}, providers=["echo"]
    )
    assert [row.status for row in suite.run("offline", target=lambda case: "x")] == ["passed", "ungraded"]
    assert why in suite.run("offline", target="providers")[1].reason
    assert why in " ".join(criterion.text for criterion in suite.cases[1].rubric.criteria)


def test_a_template_cannot_run_a_filter_without_end(tmp_path: Path) -> None:
    """Each call is charged as much work."""
    files = {"f.js": "module.exports = (text) => text"}
    loop = "{% for a in n %}{% for b in n %}{{ b | f }}{% endfor %}{% endfor %}"
    tests = [{"vars": {"n": [*range(90)]}, "assert": CONTAINS}]
    (case,) = loaded(tmp_path, files, prompts=[loop], tests=tests, nunjucksFilters={"f": "f.js"})
    assert "too much work" in str(case.rubric.criteria)


def test_providers_and_parts_of_their_configuration_may_be_in_files(tmp_path: Path) -> None:
    """The names in a file of providers start at the configuration, as in promptfoo."""
    files = {
        "p/all.yaml": "- {id: openai:gpt-5-mini, label: one, config: {response_format: file://schema.json}}\n- echo",
        "p/one.json": '{"id": "http://127.0.0.1:1/", "config": {"body": "file://p/body.yaml"}}',
        "p/body.yaml": "question: '{{prompt}}'",
        "schema.json": '{"type": "json_object"}',
    }
    providers = ["file://p/all.yaml", "file://p/one.json"]
    suite = loaded(tmp_path, files, prompts=["hi"], tests=[{"assert": CONTAINS}], providers=providers)
    first, second, third = [case.providers[0] for case in suite.cases]
    assert (first.name, first.model, dict(first.settings["response_format"])) == (
        "one",
        "openai/gpt-5-mini",
        {"type": "json_object"},
    )
    assert second.name == "echo"
    assert third.request is not None
    assert json.loads(third.request.body) == {"question": "hi"}


@pytest.mark.parametrize("name", ["file://gone.yaml", "file://../../gone.json"])
def test_a_provider_without_its_files_is_not_asked(name: str, tmp_path: Path) -> None:
    """Given outputs are graded all the same."""
    provider = {"id": "openai:gpt-5-mini", "config": {"tools": name}}
    suite = loaded(tmp_path, {}, prompts=["hi"], tests=[{"assert": CONTAINS}], providers=[provider, name])
    rows = suite.run("offline", target="providers")
    assert [row.status for row in rows] == ["deferred", "deferred"]
    assert all("not within reach" in row.reason for row in rows)
    assert {row.status for row in suite.run("offline", target=lambda case: "x")} == {"passed"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("module.exports = () => 'Judge {{ output }} by {{ rubric }}'", "Judge {{ output }} by {{ rubric }}"),
        ("export default async () => [{role: 'user', content: 'Is {{ output }} ok?'}]", "Is {{ output }} ok?"),
    ],
)
def test_a_function_makes_the_rubric_prompt(text: str, shown: str, tmp_path: Path) -> None:
    """It is called without arguments, as in promptfoo."""
    test = {"options": {"rubricPrompt": "file://r.mjs"}, "assert": [{"type": "llm-rubric", "value": "Kind?"}]}
    (case,) = loaded(
        tmp_path, {"r.mjs": text.replace("module.exports =", "export default")}, prompts=["a"], tests=[test]
    )
    assert case.rubric.prompt is not None
    assert shown in case.rubric.prompt


def test_a_rubric_prompt_that_fails_leaves_its_case_ungraded(tmp_path: Path) -> None:
    """A prompt function that returns a number makes the criterion unsupported, with the value."""
    test = {"options": {"rubricPrompt": "file://r.js"}, "assert": [{"type": "llm-rubric", "value": "Kind?"}]}
    (case,) = loaded(tmp_path, {"r.js": "module.exports = () => 7"}, prompts=["a"], tests=[test])
    assert "which returned 7" in str(case.rubric.criteria)
