"""JavaScript of promptfoo's files: its documented examples with their results, and programs that mean harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner

from rubric import Candidate, Judge, Rubric, ToolCall
from rubric.__main__ import main
from rubric.engine.grade import evaluate
from rubric.formats.javascript import inline
from rubric.formats.suites import convert, load_suite, loads_suite
from rubric.programs import javascript
from rubric.programs.javascript import JavaScriptError, Program, ThrownError
from rubric.results.result import Grade, Ungraded
from rubric.suites.suite import Suite
from rubric.values.checks import Similar, Unsupported
from rubric.values.findings import Unjudged
from tests.agentv import written
from tests.rows import each_row

pytest.importorskip("quickjs", reason="the extra javascript is not installed")


def suite_of(assertion: dict[str, Any], folder: Path | None = None, **test: Any) -> Suite:
    data = {"tests": [{"assert": [assertion], **test}]}
    if folder is not None:
        return load_suite(written(folder / "promptfooconfig.yaml", json.dumps(data)))
    return loads_suite(json.dumps(data), "promptfoo")


def graded(
    output: str | Candidate, value: str, *, folder: Path | None = None, kind: str = "javascript", **more: Any
) -> Grade | Ungraded:
    """Grade *output* by a `javascript` assertion with *value*; *more* are keys of the test or of the assertion."""
    own: dict[str, Any] = {key: more.pop(key) for key in ("threshold", "config", "transform", "weight") if key in more}
    (case,) = suite_of({"type": kind, "value": value, **own}, folder, **more)
    return evaluate(output, case.rubric, "offline")


def result(*args: Any, **more: Any) -> tuple[bool, float] | None:
    found = graded(*args, **more)
    return (found.passed, round(found.score, 3)) if isinstance(found, Grade) else None


def why(found: Grade | Ungraded) -> str:
    (finding,) = (one for one in found if isinstance(one, Unjudged))
    return finding.failure.message


# -- the examples of the documentation ------------------------------------------------------------------------

LINES = """
// Insert your scoring logic here...
if (output === 'Expected output') {
  return {pass: true, score: 0.5};
}
return {pass: false, score: 0, reason: 'Assertion failed'};
"""


@each_row(
    ("output", "value", "expected"),
    [
        ("He said: Hello, World!", "output.includes('Hello, World!')", (True, 1.0)),
        ("Hello", "output.includes('Hello, World!')", (False, 0.0)),
        ("Expected output", LINES, (True, 0.5)),
        ("another", LINES, (False, 0.0)),
        ("x", "if (errorCase) {\n  throw new Error('This is an error');\n}\nreturn {pass: true, score: 1};", (False, 0.0)),
        ('[{"function": {"name": "get_current_weather"}}]', "output[0].function.name === 'get_current_weather'", (True, 1.0)),
        ('{"sentiment": "positive"}', "output.sentiment === 'positive'", (True, 1.0)),
        ('{"a": 1}', "JSON.parse(output).a === 1", (True, 1.0)),
        ('{"a": 1}', "output.includes('\"a\"')", (True, 1.0)),
        ('{"a": 1}', "typeof output === 'string'", (True, 1.0)),
        ("abc", "output.length", (True, 1.0)),
        ("", "output.length", (False, 0.0)),
        ("abcd", "1 / (output.length + 1)", (True, 0.2)),
        ("abcd", "Math.max(0, Math.min(1, 1 - (output.length - 2) / 4));", (True, 0.5)),
        ("a;b", "const s = output; s === 'a;b'", (True, 1.0)),
        ("abc", "const f = (x) => { const y = x; return y.length; }; f(output) === 3", (True, 1.0)),
        ("abc", "let n = output.match(/[;]/) ? 1 : 0; n === 0", (True, 1.0)),
        ("abc", "return_value", (False, 0.0)),
        ("abc", "undefined", (False, 0.0)),
        ("abc", "NaN", (False, 0.0)),
        ("abc", "'a text'", (False, 0.0)),
        ("abc", "(async () => output === 'abc')()", (True, 1.0)),
        ("abc", "const x = ", (False, 0.0)),
    ],
)  # fmt: skip
def test_an_inline_assertion_has_promptfoos_result(output: str, value: str, expected: tuple[bool, float]) -> None:
    """A boolean, a number above 0, or `{pass, score}`; what it throws, and what is none of these, fails it."""
    assert result(output, value) == expected


@pytest.mark.parametrize(
    ("threshold", "kind", "expected"),
    [(0.5, "javascript", (True, 1.0)), (50, "javascript", (False, 1.0)), (0.5, "not-javascript", (False, 1.0))],
)
def test_a_number_is_compared_with_the_threshold(threshold: float, kind: str, expected: tuple[bool, float]) -> None:
    """`Math.log(output.length) * 10` is 23 for ten letters: it is compared as it is, and counts as 1."""
    found = graded("abcdefghij", "Math.log(output.length) * 10", threshold=threshold, kind=kind)
    assert (found.passed, found.outcome.score) == expected
    assert "its score 23.0259 is cut to 1" in str(found)


@pytest.mark.parametrize(("output", "expected"), [("a", (False, 0.0)), ("b", (True, 1.0))])
def test_a_negated_assertion_turns_its_verdict_over(output: str, expected: tuple[bool, float]) -> None:
    """`not-javascript` passes where the code says no."""
    assert result(output, "output === 'a'", kind="not-javascript") == expected


def test_the_context_holds_the_variables_the_prompt_and_the_configuration(tmp_path: Path) -> None:
    """Variables keep their types."""
    variables = {"example": "Example text", "min_length": 10, "list": [1, 2], "deep": {"a": True}}
    assert result("see Example text", "output.includes(context.vars.example)", vars=variables) == (True, 1.0)
    assert result("0123456789", "output.length >= context.vars.min_length", vars=variables) == (True, 1.0)
    assert result("x", "context.vars.list[1] === 2 && context.vars.deep.a", vars=variables) == (True, 1.0)
    assert result("x", "context.vars.example === '{{example}}'", vars=variables) == (True, 1.0)
    written(
        tmp_path / "s.js", "module.exports = (output, context) => output.length > context.config.maximumOutputSize;"
    )
    assert result("0123456789x", "file://s.js", folder=tmp_path, config={"maximumOutputSize": 10}) == (True, 1.0)
    (case,) = suite_of({"type": "javascript", "value": "context.prompt === 'Q'"})
    assert evaluate(Candidate("x", input="Q"), case.rubric, "offline").passed


EXTERNAL = """
module.exports = (output, context) => {
  console.log('Prompt:', context.prompt);
  console.log('Vars', context.vars.topic);
  let result = {pass: output.toLowerCase().includes('bananas'), score: 0.5, reason: 'Contains banana'};
  result = {
    pass: true, score: 0.75, reason: 'Looks good to me',
    componentResults: [{pass: true, score: 0.5, reason: 'Contains banana', namedScores: {'Uses banana': 1.0}}],
  };
  return result;
};
"""


@pytest.mark.parametrize(
    ("name", "text", "reference"),
    [
        ("a.js", EXTERNAL, "file://a.js"),
        ("a.cjs", EXTERNAL, "file://a.cjs"),
        ("a.mjs", EXTERNAL.replace("module.exports =", "export default"), "file://a.mjs"),
        ("a.js", EXTERNAL.replace("module.exports =", "exports.custom ="), "file://a.js:custom"),
        (
            "a.mjs",
            "export function custom(output) { return {pass: true, score: 0.75, reason: 'x'}; }",
            "file://a.mjs:custom",
        ),
        (
            "a.js",
            "async function main(o) { return {pass: true, score: 0.75}; }\nmodule.exports = main;",
            "file://sub/../a.js",
        ),
    ],
)
def test_a_file_exports_an_assertion(name: str, text: str, reference: str, tmp_path: Path) -> None:
    """CommonJS, an ES module, a function by its name, an async one."""
    written(tmp_path / name, text)
    assert result("bananas", reference, folder=tmp_path) == (True, 0.75)


def test_reasons_are_shown() -> None:
    """The author's own, or the error."""
    assert "too short" in str(graded("x", "({pass: false, score: 0, reason: 'too short'})"))
    assert "ReferenceError: nothing" in str(graded("x", "nothing.at.all"))


def test_tool_calls_are_the_output_of_a_candidate_without_text() -> None:
    """In the form of OpenAI's."""
    candidate = Candidate("", tool_calls=[ToolCall("get_weather", arguments={"city": "Boston"})])
    assert result(candidate, "output[0].function.name === 'get_weather'") == (True, 1.0)
    assert result(candidate, "JSON.parse(output[0].function.arguments).city === 'Boston'") == (True, 1.0)


def test_scores_count_in_a_weighted_mean() -> None:
    """The test's threshold decides, over numbers and booleans."""
    data = {
        "threshold": 0.6,
        "assert": [{"type": "javascript", "value": "0.5"}, {"type": "javascript", "value": "true"}],
    }
    (case,) = loads_suite(json.dumps({"tests": [data]}), "promptfoo")
    found = evaluate("x", case.rubric, "offline")
    assert (found.passed, found.outcome.score) == (True, 0.75)


# -- transforms -----------------------------------------------------------------------------------------------


def test_a_transform_changes_what_checks_see() -> None:
    """Of an assertion, of the test, and one after the other; data stay data for code, and are JSON for texts."""
    (case,) = suite_of({"type": "equals", "value": "abc", "transform": "output.trim().toLowerCase()"})
    assert evaluate(" ABC ", case.rubric, "offline").passed
    (case,) = suite_of({"type": "not-contains", "value": "b"}, options={"transform": "JSON.parse(output).text"})
    assert evaluate('{"text": "a", "note": "b"}', case.rubric, "offline").passed
    assertion = {"type": "javascript", "value": "output === 3", "transform": "output.n + 1"}
    (case,) = suite_of(assertion, options={"transform": "JSON.parse(output)"})
    assert evaluate('{"n": 2}', case.rubric, "offline").passed
    (case,) = suite_of({"type": "is-json", "transform": "({a: output})"})
    assert evaluate("x", case.rubric, "offline").passed


def test_a_transform_that_fails_leaves_its_case_ungraded() -> None:
    """Nothing is known of an output that could not be had."""
    (case,) = suite_of({"type": "contains", "value": "a", "transform": "output.a.b"})
    assert isinstance(evaluate("a", case.rubric, "offline"), Ungraded)


@each_row(
    "assertion",
    [
        {"type": "latency", "threshold": 3000},
        {"type": "cost", "threshold": 1},
        {"type": "perplexity", "threshold": 1},
        {"type": "perplexity-score"},
        {"type": "finish-reason", "value": "stop"},
        {"type": "not-latency", "threshold": 3000},
    ],
)
def test_what_is_not_known_of_a_run_is_told_as_without_a_transform(assertion: dict[str, Any]) -> None:
    """No transform failed, and no program; the kind of the failure is that of the check."""
    failures = []
    for more in ({}, {"transform": "output"}):
        found = evaluate("a", suite_of({**assertion, **more})[0].rubric, "offline")
        failures += [(one.failure.kind, one.failure.message) for one in found if isinstance(one, Unjudged)]
    plain, after = failures
    assert after == plain
    assert after[0] == "unsupported"


def judged(output: str, *assertions: dict[str, Any], suite: dict[str, Any] | None = None, **test: Any) -> list[str]:
    """Grade *output* by *assertions* of one test, and return what the judge was asked."""
    asked: list[str] = []

    def grade(messages: list[dict[str, str]]) -> str:
        asked.append(messages[-1]["content"])
        return '{"reason": "It does.", "pass": true, "score": 1}'

    (case,) = loads_suite(json.dumps({"tests": [{"assert": [*assertions], **test}], **(suite or {})}), "promptfoo")
    report = Suite("s", [case.answered(output)]).run(Judge(grade))
    assert [row.status for row in report] == ["passed"], report[0].reason
    return asked


RUBRIC = {"type": "llm-rubric", "value": "Is polite"}


def test_a_judge_is_shown_the_output_after_the_transforms() -> None:
    """First the test's, then the assertion's own; another assertion of the test sees no more than the test's."""
    own = {**RUBRIC, "transform": "output.toUpperCase()"}
    (asked,) = judged('{"text": "good day"}', own, options={"transform": "JSON.parse(output).text"})
    assert "GOOD DAY" in asked
    assert '{"text"' not in asked
    first, second = sorted(judged("good day", own, {**RUBRIC, "value": "Is short", "weight": 2}))
    assert ("GOOD DAY" in first) != ("GOOD DAY" in second)
    assert ("good day" in first) != ("good day" in second)


@pytest.mark.parametrize(
    ("code", "passes"),
    [
        ("module.exports = (o, { vars }) => o.includes('a') && o.length === 9;", True),
        ("module.exports = { check: function (text) { return typeof text === 'string'; } };", True),
        ("export default async (out: string): Promise<boolean> => out.endsWith('}');", True),
        ("module.exports = (o) => JSON.parse(o).a === 12;", True),
        ("module.exports = (o) => o.a === 12;", True),
        ("module.exports = (reply) => Object.keys(reply).length === 1;", True),
        ("module.exports = (o) => typeof o === 'object';", False),
    ],
)
def test_a_module_is_given_a_text_unless_it_takes_its_parameter_for_data(
    code: str, passes: bool, tmp_path: Path
) -> None:
    """As in promptfoo, whose providers give texts: whatever the parameter is called, a key or an item asks for data."""
    name = "check.ts" if "Promise" in code else "check.js"
    written(tmp_path / name, code)
    value = f"file://{name}" + (":check" if "check:" in code else "")
    found = graded('{"a": 12}', value, folder=tmp_path)
    assert found.passed is passes


def test_the_transform_of_a_test_takes_the_place_of_the_default_one() -> None:
    """The two transforms are never applied one after the other."""
    default = {"defaultTest": {"options": {"transform": "output + '!'"}}}
    (asked,) = judged("good day", RUBRIC, suite=default)
    assert "good day!" in asked
    (asked,) = judged("good day", RUBRIC, suite=default, options={"transform": "output + '?'"})
    assert "good day?" in asked
    assert "!?" not in asked


def test_negated_and_nested_judges_are_shown_the_transformed_output() -> None:
    """A transform reaches `not-llm-rubric` and the members of an `assert-set`."""
    inner = {"type": "assert-set", "assert": [{**RUBRIC, "transform": "output[0]"}, {"type": "contains", "value": "x"}]}
    (asked,) = judged("zyx", inner)
    assert "zyx" not in asked
    (case,) = suite_of({"type": "not-llm-rubric", "value": "Is rude", "transform": "output.trim()"})
    assert case.rubric.criteria[0].on != "conversation"


def test_a_transform_that_fails_leaves_a_judged_assertion_ungraded_without_a_call() -> None:
    """The reason has JavaScript's error, and the judge is not asked."""
    (case,) = suite_of({**RUBRIC, "transform": "output.a.b"})
    (row,) = Suite("s", [case.answered("x")]).run(Judge(lambda _: pytest.fail("asked")))
    assert row.status == "ungraded"
    assert "TypeError" in row.reason


def test_results_of_promptfoo_are_not_transformed_again() -> None:
    """They hold the output after the transforms of the test; those of an assertion are applied when it is graded."""
    own = [{"type": "equals", "value": "a!?", "transform": "output + '?'"}, {**RUBRIC, "threshold": 0.5}]
    test = {"vars": {"q": "1"}, "assert": own, "options": {"transform": "output + '!'"}}
    suite = loads_suite(json.dumps({"tests": [test]}), "promptfoo")
    judge = Judge(lambda messages: json.dumps({"reason": "-", "pass": "a!!" not in str(messages), "score": 1}))
    for replies in ([{"vars": {"q": "1"}, "response": {"output": "a!"}}], ["a"]):
        assert [row.status for row in suite.answered(replies).run(judge)] == ["passed"]


def test_similarity_is_measured_after_a_transform() -> None:
    """The embedding model gets the transformed output and the expected text."""
    (case,) = suite_of({"type": "similar", "value": "yes", "transform": "output.split(':')[1]"})
    seen: list[str] = []

    def vectors(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return [[1.0, 0.0] for _ in texts]

    (criterion,) = case.rubric.criteria
    check = criterion.answer
    assert isinstance(check, Similar)
    rubric = Rubric(criteria=[evolve(criterion, answer=evolve(check, model=vectors))])
    evaluate("answer:yes", rubric, "offline")
    assert seen == ["yes", "yes"]


def test_a_context_is_made_of_the_output_before_the_transform_of_the_test() -> None:
    """As in promptfoo's documentation: both take the output of the provider."""
    assertion = {"type": "context-faithfulness", "threshold": 0.5, "contextTransform": "output.sources.join(' ')"}
    output = '{"answer": "It rains.", "sources": ["Rain is", "expected."]}'
    (asked,) = judged(output, assertion, options={"transform": "output.answer"}, vars={"query": "Weather?"})
    assert "Rain is expected." in asked
    assert '"sources"' not in asked


def test_a_context_that_is_no_text_leaves_the_case_ungraded() -> None:
    """A `contextTransform` that returns a number is an error of the case, and no call is made."""
    (case,) = suite_of({"type": "context-relevance", "contextTransform": "42"}, vars={"query": "q"})
    (row,) = Suite("s", [case.answered("x")]).run(Judge(lambda _: pytest.fail("asked")))
    assert (row.status, "no text" in row.reason) == ("ungraded", True)


def test_variables_are_transformed_before_prompts_and_assertions() -> None:
    """The example of promptfoo's documentation: what is made is added to the variables, and may replace them."""
    code = """return {
      uppercase_topic: vars.topic.toUpperCase(),
      topic_length: vars.topic.length,
      content: vars.content.trim()
    };"""
    data = {
        "prompts": ["Summarize in {{topic_length}} words: {{content}}"],
        "defaultTest": {"options": {"transformVars": code}},
        "tests": [
            {
                "vars": {"topic": "climate change", "content": "  This is some text.  "},
                "assert": [{"type": "contains", "value": "{{uppercase_topic}}"}],
            }
        ],
    }
    (case,) = loads_suite(json.dumps(data), "promptfoo")
    assert case.input == "Summarize in 14 words: This is some text."
    assert evaluate("on CLIMATE CHANGE", case.rubric, "offline").passed


def test_transformed_variables_can_be_lists_and_have_an_id_that_stays() -> None:
    """A list makes one case per item, and `context.uuid` is the same in every load."""

    def cases(code: str, **vars_: Any) -> list[Any]:
        test = {"vars": vars_, "options": {"transformVars": code}, "assert": [{"type": "contains", "value": "{{x}}"}]}
        return [*loads_suite(json.dumps({"prompts": ["{{x}}"], "tests": [test]}), "promptfoo")]

    assert [case.input for case in cases("({x: vars.y.split(' ')})", y="a b")] == ["a", "b"]
    assert [case.input for case in cases("return { ...vars, x: `![image](${vars.url})` }\n", url="u")] == [
        "![image](u)"
    ]
    first, second = (cases("{ ...vars, x: context.uuid }")[0].input for _ in range(2))
    assert first == second != ""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("nothing.there", "ReferenceError"),
        ("42", "returned no variables"),
        ("file://vars.rb", "only JavaScript and TypeScript are run"),
    ],
)
def test_variables_that_cannot_be_transformed_leave_their_case_ungraded(code: str, said: str) -> None:
    """The unsupported criterion has the error, the wrong return value or the language."""
    (case,) = suite_of({"type": "contains", "value": "x"}, options={"transformVars": code})
    assert any(isinstance(c.answer, Unsupported) and said in c.answer.type for c in case.rubric.criteria)


# -- what may not be done -------------------------------------------------------------------------------------

FORBIDDEN = [
    "require('fs').readFileSync('/etc/passwd', 'utf8')",
    "process.env.HOME",
    "process.mainModule.require('child_process').execSync('id')",
    "globalThis.process.exit(0)",
    "this.constructor.constructor('return process')().env",
    "[].constructor.constructor('return require')()('fs')",
    "import('fs')",
    "fetch('http://127.0.0.1:1/')",
    "new XMLHttpRequest()",
    "new WebSocket('ws://127.0.0.1:1')",
    "setTimeout(() => 1, 10)",
    "std.loadFile('/etc/passwd')",
    "os.exec(['id'])",
    "try { require('fs') } catch (e) {}\nreturn true",
    "new CustomEvent('x').type === 'x'",
    "new ReadableStream().locked === false",
    "clearImmediate(1) === undefined",
    "performance.mark('x').name === 'x'",
    "new console.Console(process.stdout)",
    "/(x)/.test(output) && RegExp.$1 === 'x'",
    "/x/.test(output) && RegExp['$&'] === output && RegExp.lastMatch === output",
    "context.test.metadata.tags.length === 2",
    "context.provider ? 1 : 0",
]


@each_row("value", FORBIDDEN)
def test_files_processes_and_the_network_are_not_there(value: str) -> None:
    """The case is ungraded, and says what the code needs; it neither passes nor fails."""
    found = graded("x", value)
    assert isinstance(found, Ungraded)
    assert "the JavaScript needs" in why(found)


@pytest.mark.parametrize(
    "value",
    [
        "(1234.5).toLocaleString() === '1,234.5'",
        "['b', 'C'].sort((a, b) => a.localeCompare(b)).join('') === 'bC'",
        "new Date('2024-03-05').toLocaleDateString('en-US') === '3/5/2024'",
        "[3000, 1].toLocaleString() === '3,000,1'",
        "'I'.toLocaleLowerCase('tr') === 'ı'",
    ],
)
def test_functions_of_locales_are_not_answered_without_tables(value: str) -> None:
    """Node answers yes to each; the engine's plain forms would answer no, and the candidate would fail for that."""
    found = graded("x", value)
    assert isinstance(found, Ungraded)
    assert "Intl" in why(found)


def test_functions_of_locales_answer_where_every_locale_agrees() -> None:
    """Equal texts, plain letters and small numbers."""
    assert result("X", "output.toLocaleLowerCase('en-US') + 'A'.toLocaleLowerCase() === 'xa'") == (True, 1.0)
    assert result("x", "'a'.localeCompare('b') < 0 && 'é'.localeCompare('é') === 0") == (True, 1.0)
    assert result("x", "[3, 1].toLocaleString() === '3,1'") == (True, 1.0)


@each_row(
    "value",
    [
        "Array.fromAsync([1, 2]).then((all) => all.length === 2)",
        "const {promise, resolve} = Promise.withResolvers();\nqueueMicrotask(() => resolve(true));\nreturn promise",
        "atob(btoa(output)) === 'x'",
        "console.assert(true) === undefined && console.group('x') === undefined && console.dir({}) === undefined",
        "(console.time('a'), console.timeEnd('a'), console.count(), performance.now() > 0)",
        "(RegExp.$1 = 'mine') === 'mine'",
    ],
)
def test_what_node_has_and_needs_no_system_is_there(value: str) -> None:
    """Promises, base64, timers of `console` and the static properties of `RegExp` work."""
    assert result("x", value) == (True, 1.0)


def test_calls_within_calls_are_as_many_as_in_node() -> None:
    """Ten thousand work; more leave the case ungraded, since Node's own limit depends on the machine."""
    deep = "(function f(n) { return n ? f(n - 1) : true })"
    assert result("x", f"{deep}(10000)") == (True, 1.0)
    for endless in (f"{deep}(1e6)", "JSON.parse('['.repeat(1e6))", "/(?:(?:(a))*)*$/.test('a'.repeat(1e6))"):
        found = graded("x", endless)
        assert isinstance(found, Ungraded)
        assert "needs more than" in why(found)


ENDLESS = [
    "while (true) { try { throw 1 } catch (e) {} }\nreturn 1",
    "({toJSON() { for (;;); }})",
    "/^(([a-z])+.)+[A-Z]([a-z])+$/.test('a'.repeat(60))",
    "Array.prototype.reverse.call({length: 2 ** 53 - 1})",
    "(async () => { for (;;) await 1 })()",
    "new Promise(() => {})",
]


@pytest.mark.parametrize("value", ENDLESS)
def test_an_endless_program_is_stopped(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the engine cannot be interrupted; the next program runs."""
    monkeypatch.setattr(javascript, "SECONDS", 0.2)
    found = graded("x", value)
    assert isinstance(found, Ungraded)
    assert "was stopped" in why(found)
    assert result("ab", "output.length === 2") == (True, 1.0)


def test_a_program_that_is_always_stopped_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand cases do not wait a thousand times; a few stops may be the fault of a candidate."""
    monkeypatch.setattr(javascript, "SECONDS", 0.1)
    said = [why(graded("x", "for (;;) ;\nreturn 1")) for _ in range(5)]
    assert ["was stopped at its limits 3 times" in one for one in said] == [False, False, False, True, True]


@pytest.mark.parametrize(
    "value",
    ["const a = [];\nfor (;;) a.push(new Array(1000).fill(1))", "'a'.repeat(2 ** 29)", "new Array(2 ** 31).fill(0)"],
)
def test_a_memory_bomb_is_stopped(value: str) -> None:
    """Within the memory of the engine."""
    found = graded("x", value)
    assert isinstance(found, Ungraded)
    assert "64 MiB" in why(found)


@each_row(
    "value",
    [
        "Object.prototype.toJSON = () => 7\nreturn false",
        "JSON.stringify = () => '{\"value\": true}'\nreturn false",
        "Promise.prototype.then = () => 1\nreturn false",
        "Object.prototype.pass = true\nObject.prototype.score = 1\nreturn false",
        "globalThis.$result = '{\"value\": true}'\nreturn false",
        "Object.freeze(globalThis)\nreturn false",
        "Number.isFinite = () => true\nreturn false",
    ],
)
def test_a_program_changes_no_prototype_but_its_own(value: str) -> None:
    """It spoils its own result at most: the next program has an engine of its own."""
    found = graded("x", value)
    assert not found.passed
    assert result("ab", "({pass: output.length === 2, score: 1})") == (True, 1.0)
    assert result("ab", "typeof {}.pass === 'undefined' && typeof $result === 'undefined'") == (True, 1.0)


def test_nothing_of_one_case_is_left_for_the_next() -> None:
    """Global variables are those of one evaluation."""
    assert result("x", "globalThis.kept = output\nreturn true") == (True, 1.0)
    assert result("y", "typeof kept === 'undefined'") == (True, 1.0)


def test_the_process_of_the_engine_knows_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started with an empty environment, and stops with this one."""
    monkeypatch.setenv("OPENAI_API_KEY", "canary-5f1e")
    javascript._worker().end()
    Program("return 1").run("", {})
    process = javascript._worker().process
    assert process is not None
    environment = Path(f"/proc/{process.pid}/environ")
    if environment.exists():
        assert b"canary" not in environment.read_bytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_starts_an_engine_of_its_own() -> None:
    """Two processes never read from the same pipe."""
    code = (
        "import os\nfrom rubric.programs.javascript import Program\nrun = lambda: Program('return output').run('x', {})\n"
        "assert run() == 'x'\npid = os.fork()\nassert run() == 'x'\nif not pid: os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\nassert run() == 'x'"
    )
    root = str(Path(javascript.__file__).parents[2])
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]  # Python warns of any fork with threads
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": root})
    assert (done.returncode, done.stderr) == (0, b"")


# -- what is not run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.rb", "puts 1"), ("a.mjs", "import fs from 'fs';\nexport default () => true"), ("b.js", "")],
)
def test_a_file_that_cannot_be_run_leaves_its_case_ungraded(name: str, text: str, tmp_path: Path) -> None:
    """Another language, a module that imports what Node has, a file that is not there."""
    if text:
        written(tmp_path / name, text)
    suite = suite_of({"type": "javascript", "value": f"file://{name}"}, tmp_path)
    assert isinstance(suite.cases[0].rubric.criteria[0].answer, Unsupported)
    assert suite.warnings


def test_without_the_extra_a_run_is_ungraded_and_what_was_loaded_keeps_its_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The load says once what to install; a file that is converted then is graded where the engine is there."""
    with monkeypatch.context() as without:
        without.setattr(
            "rubric.programs.javascript.find_spec", lambda name: None if name == "quickjs" else find_spec(name)
        )
        without.setattr(javascript, "_WORKER", javascript._Worker())
        asserts: Any = [{"type": "javascript", "value": "true"}, {"type": "regex", "value": "(?=a)"}]
        suite = suite_of(asserts[0], **{"assert": asserts, "providerOutput": "a"})
        (row,) = suite.run("offline")
        converted = str(convert(suite))
    assert ["rubric-grade[javascript]" in str(warning) for warning in suite.warnings].count(True) == 1
    assert row.status == "ungraded"
    assert "pip install 'rubric-grade[javascript]'" in row.reason
    assert [criterion.id for criterion in suite.cases[0].rubric.criteria] == ["javascript", "regex"]
    (row,) = loads_suite(converted).run("offline")
    assert row.status in ("passed", "failed")


def test_without_the_extra_its_checks_are_graders_that_are_lacking(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`validate` ends as a run would, and `unsupported_as` leaves them out."""
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text(
        "tests:\n  - {providerOutput: a, assert: [{type: javascript, value: 'true'}, {type: contains, value: a}]}\n"
    )
    assert CliRunner().invoke(main, ["validate", str(file)]).exit_code == 0
    monkeypatch.setattr(javascript, "find_spec", lambda name: None if name == "quickjs" else find_spec(name))
    monkeypatch.setattr(javascript, "_WORKER", javascript._Worker())
    said = CliRunner().invoke(main, ["validate", str(file)])
    assert (said.exit_code, "1 of 1 case holds graders that do not run here (javascript)" in said.output) == (
        2,
        True,
    )
    suite = load_suite(file)
    assert [row.status for row in suite.run("offline")] == ["ungraded"]
    (row,) = suite.unsupported_as("skip").run("offline")
    assert (row.status, row.warnings) == ("passed", ("skipped as asked: javascript; 50% of the weight was judged",))


def test_code_is_converted_to_promptfoo_as_it_is() -> None:
    """What was loaded from there goes back."""
    converted = convert(suite_of({"type": "javascript", "value": "output.length > 3"}), "promptfoo")
    assert "output.length > 3" in str(converted)
    assert not converted.dropped


@each_row("part", ["'\\", '"\\', "`\\", "=/[", "/*", "=/\\"])
def test_a_line_is_read_in_time_that_grows_with_its_length(part: str) -> None:
    """Of many starts of a text, a pattern or a comment that nothing ends, each is read once."""
    assert inline("const a = " + part * 300_000).body.startswith("const a = ")


def test_programs_say_why_they_end() -> None:
    """What they throw is an error of theirs; a limit is one of the run."""
    with pytest.raises(ThrownError, match="Error: x"):
        inline("(() => { throw new Error('x') })()").run("", {})
    with pytest.raises(JavaScriptError, match="stopped"):
        inline("(() => { for (;;); })()").run("", {})
