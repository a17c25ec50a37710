"""What promptfoo's files name elsewhere: assertions, options, outputs that other tests store."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rubric import Candidate, Rubric, ToolCall
from rubric.engine.grade import evaluate
from rubric.errors import LoadError
from rubric.formats.assertions.tool_calls import trajectory_check
from rubric.formats.suites import load_suite, loads_suite
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from tests.rows import each_row


def suite_of(folder: Path, tests: Any, **data: Any) -> Suite:
    data = {"prompts": ["{{n}}"], "providers": ["echo"], "tests": tests} | data
    (folder / "promptfooconfig.yaml").write_text(json.dumps(data))
    return load_suite(folder / "promptfooconfig.yaml")


CONTAINS, EQUALS = {"type": "contains", "value": "he"}, {"type": "equals", "value": "hello"}


@pytest.mark.parametrize(
    ("asserted", "count"),
    [
        ("file://both.json", 2),
        (["file://one.json"], 1),
        (["file://both.json", CONTAINS], 3),
        ([{"type": "assert-set", "assert": "file://both.json"}], 2),
    ],
)
def test_assertions_may_be_in_files(tmp_path: Path, asserted: Any, count: int) -> None:
    """A file holds one assertion or a list, in place of the list, of an item, or of a set."""
    (tmp_path / "both.json").write_text(json.dumps([CONTAINS, EQUALS]))
    (tmp_path / "one.json").write_text(json.dumps(CONTAINS))
    (tmp_path / "tests.json").write_text(json.dumps([{"vars": {"n": "hello"}, "assert": asserted}]))
    (row,) = suite_of(tmp_path, "file://tests.json").run("offline")
    assert row.status == "passed"
    assert len(row.entries) == count


def test_options_and_defaults_may_be_in_files(tmp_path: Path) -> None:
    """`options` and `defaultTest` are read from the files that they name."""
    (tmp_path / "options.json").write_text(json.dumps({"prefix": "oh, "}))
    (tmp_path / "default.json").write_text(json.dumps({"assert": [{"type": "equals", "value": "oh, hello"}]}))
    tests = [{"vars": {"n": "hello"}, "options": "file://options.json"}]
    (row,) = suite_of(tmp_path, tests, defaultTest="file://default.json").run("offline")
    assert row.status == "passed"


def test_a_pdf_is_not_read_and_leaves_its_case_ungraded(tmp_path: Path) -> None:
    """The reason names the file, and the suite loads."""
    (tmp_path / "doc.pdf").write_bytes(b"%PDF-1.4")
    (row,) = suite_of(tmp_path, [{"vars": {"n": "file://doc.pdf"}, "assert": [CONTAINS]}]).run(
        "offline", target=lambda _: "he"
    )
    assert row.status == "ungraded"
    assert "doc.pdf" in row.reason


def test_context_recall_takes_the_prompt_for_the_context_where_there_is_none(tmp_path: Path) -> None:
    """As promptfoo does; the other types that ask about a context have none then, and are ungraded."""
    recall, faithful = ({"type": f"context-{kind}", "value": "All of it"} for kind in ("recall", "faithfulness"))
    (case,) = suite_of(tmp_path, [{"vars": {"n": "hello"}, "assert": [recall]}])
    assert case.context == "hello"
    (row,) = suite_of(tmp_path, [{"vars": {"n": "hello"}, "assert": [faithful]}]).run("offline")
    assert "without a context" in row.reason


def test_a_test_that_shows_the_stored_output_of_another_is_ungraded(tmp_path: Path) -> None:
    """Its assertions would say something else; where its prompt shows it, no target is asked."""
    first = {"vars": {"n": "a"}, "options": {"storeOutputAs": "told"}, "assert": [{"type": "equals", "value": "a"}]}
    by_variable = {"vars": {"n": "so {{told}}"}, "assert": [CONTAINS]}
    by_assertion = {"vars": {"n": "b"}, "assert": [{"type": "equals", "value": "{{ told }}"}]}
    apart = {"vars": {"n": "told"}, "assert": [{"type": "equals", "value": "told"}]}
    rows = suite_of(tmp_path, [first, by_variable, by_assertion, apart]).run("offline")
    assert [row.status for row in rows] == ["passed", "ungraded", "ungraded", "passed"]
    assert "storeOutputAs: told" in rows[1].reason


def test_no_target_is_asked_where_a_prompt_shows_a_stored_output(tmp_path: Path) -> None:
    """Answers from elsewhere are graded."""
    first = {"vars": {"n": "a"}, "options": {"storeOutputAs": "told"}, "assert": [CONTAINS]}
    suite = suite_of(
        tmp_path,
        [first, {"vars": {"n": "b"}, "assert": [CONTAINS]}],
        prompts=["{{n}} {{told}}"],
        providers=["openai:x"],
    )
    assert [row.status for row in suite.run("offline", target=lambda _: "hello")] == ["passed", "passed"]
    (row,) = suite.only(suite.cases[1].id).run("offline", target="openai/gpt-5-mini")
    assert (row.status, "storeOutputAs: told" in row.reason) == ("deferred", True)


def test_a_threshold_that_no_test_can_have_leaves_its_test_ungraded(tmp_path: Path) -> None:
    """The other tests are graded."""
    tests = [{"vars": {"n": "he"}, "assert": [CONTAINS], "threshold": bar} for bar in (0.5, 1.5)]
    rows = suite_of(tmp_path, tests).run("offline")
    assert [row.status for row in rows] == ["passed", "ungraded"]
    assert "1.5" in rows[1].reason


# -- finished outputs --------------------------------------------------------------------------------------

CALLED = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "find", "arguments": "{}"}}]}


@pytest.mark.parametrize("end", [[], [{"role": "assistant", "content": "Done."}]])
def test_messages_beside_an_output_are_its_conversation(end: list[dict[str, str]]) -> None:
    """The calls in the messages are the case's calls, with or without the final answer among them."""
    suite = Suite(cases=[Case("a", "Is right", input="Find it.")])
    row = {"id": "a", "output": "Done.", "messages": [{"role": "user", "content": "Find it."}, CALLED, *end]}
    (case,) = suite.answered([row])
    assert case.output == "Done."
    assert [call.name for call in case.tool_calls] == ["find"]


def test_messages_that_are_no_chat_are_told() -> None:
    """Such a row leaves its case without an output, with a warning."""
    suite = Suite(cases=[Case("a", "Is right"), Case("b", "Is right")])
    rows = [{"id": "a", "output": "A", "messages": ["hello"]}, {"id": "b", "output": "B"}]
    answered = suite.answered(rows)
    assert [case.output for case in answered] == [None, "B"]
    assert any("are not a chat" in str(warning) for warning in answered.warnings)


# -- calls of tools ----------------------------------------------------------------------------------------


@each_row("mode", ["exact", "partial"])
@each_row(("given", "passed"), [(True, True), (1, False), (1.0, False)])
def test_true_is_no_1_among_the_arguments_of_calls(mode: str, given: Any, passed: bool) -> None:
    """Only the boolean matches `true`, in exact and in partial mode."""
    value = {"name": "find", "args": {"open": True}, "mode": mode}
    check = trajectory_check("trajectory:tool-args-match", value)
    call = ToolCall("find", arguments={"open": given})
    result = evaluate(Candidate("-", tool_calls=[call]), Rubric().checks(check, id="called"), "offline")
    assert result.passed is passed


@pytest.mark.long
@pytest.mark.parametrize(
    "part",
    [
        "{{",
        "{% ",
        "{% raw %}",
        "{% include",
        "{% for ",
        "{% set ",
        " ",
        "{{ a",
        "{{ r/",
        "{{!",
        "\n",
        "const /*",
        "'\\",
    ],
)
@pytest.mark.parametrize("start", ["", "{% for"])
def test_a_text_of_a_file_is_read_in_time_that_grows_with_its_length(start: str, part: str, tmp_path: Path) -> None:
    """Whatever it repeats: a tag that nothing ends is not looked for again at each of its letters."""
    text = start + part * (150_000 // len(part)) + "x"
    rubric = {"type": "llm-rubric", "value": text, "rubricPrompt": text}
    tests = [
        {"vars": {"a": "b"}, "options": {"storeOutputAs": "a"}, "assert": [{"type": "javascript", "value": text}]},
        {"vars": {"a": text}, "assert": [rubric]},
    ]
    with suppress(LoadError):
        suite_of(tmp_path, tests, prompts=[text, "{{ a }}"])
    with suppress(LoadError):
        loads_suite(json.dumps({"tests": [{"id": "a", "input": text, "criteria": text}]}), "agentv-2")


def test_a_name_that_a_template_sets_is_no_slot(tmp_path: Path) -> None:
    """A variable of `{% set %}` is filled in, while `{{ output }}` remains for the judge."""
    rubric = {"type": "llm-rubric", "value": "x", "rubricPrompt": "{% set tone='warm' %}Is it {{ tone }}? {{ output }}"}
    (case,) = suite_of(tmp_path, [{"assert": [rubric]}])
    assert case.rubric.prompt == "Is it warm? {{ output }}"


def test_numbers_of_variables_are_written_as_javascript_writes_them(tmp_path: Path) -> None:
    """Alone, in lists and in JSON: promptfoo 0.121 renders the same."""
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{v}} {{v | dump}} {{l | dump}} {{w}} {{e}} {{s}} {{m}}']\n"
        "tests: [{vars: {v: 2.0, l: {a: [[2.0, 3.5]]}, w: 1.50, e: 1.0e21, s: 1e-7, m: 0.00001}, assert: [{type: is-json}]}]"
    )
    (case,) = load_suite(tmp_path / "promptfooconfig.yaml")
    assert case.input == '2 2 {"a":[[2,3.5]]} 1.5 1e+21 1e-7 0.00001'


def test_a_check_without_a_value_leaves_its_case_ungraded(tmp_path: Path) -> None:
    """Promptfoo reads the file, and fails that test alone."""
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['x']\ntests: [{assert: [{type: contains-any}]}, {assert: [{type: contains, value: b}]}]"
    )
    first, second = load_suite(tmp_path / "promptfooconfig.yaml").run("offline", target=lambda case: "b")
    assert (first.status, second.status) == ("ungraded", "passed")


@pytest.mark.parametrize(
    "providers",
    [["file://a\\b.yaml"], [{"id": "openai:gpt-5", "config": {"tools": "file://a\\b.json"}}]],
)
def test_a_provider_whose_file_has_no_name_is_missing(providers: list[Any], tmp_path: Path) -> None:
    """Its cases load, and the reason names the file."""
    (case,) = suite_of(tmp_path, [{"assert": [{"type": "is-json"}]}], providers=providers)
    assert "that is not within reach" in case.providers[0].missing


def test_tests_in_a_spreadsheet_leave_one_case_ungraded(tmp_path: Path) -> None:
    """The warning says what to do, also where a sheet is named; the other tests are graded."""
    listed = "[t.xlsx, 'file://t.XLSX#Sheet2', {assert: [{type: equals, value: a}]}]"
    (tmp_path / "promptfooconfig.yaml").write_text(f"prompts: [a]\nproviders: [echo]\ntests: {listed}\n")
    suite = load_suite(tmp_path / "promptfooconfig.yaml")
    assert [row.status for row in suite.run("offline")] == ["ungraded", "ungraded", "passed"]
    assert "save its sheet as CSV, and name that file" in suite.warnings[0].message
