"""Calls of tools against their schemas: promptfoo's `is-valid-openai-tools-call` and its kin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric import Candidate, Grade
from rubric.engine.grade import evaluate
from rubric.formats.suites import load_suite, loads_suite
from rubric.suites.cases import Case
from rubric.values.checks import Unsupported
from tests.rows import each_row

WEATHER = {
    "name": "get_current_weather",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string"}, "unit": {"enum": ["Celsius", "Fahrenheit"]}},
        "required": ["location"],
    },
}
TOOLS = [
    {"type": "function", "function": WEATHER},
    {"type": "mcp", "server_label": "docs", "headers": {"Authorization": "Bearer {{ env.DOCS_KEY }}"}},
]
BOSTON = {"name": "get_current_weather", "arguments": '{"location": "Boston, MA"}'}


def cases_of(kind: str, *providers: Any, **test: Any) -> list[Case]:
    data = {"prompts": ["Q"], "providers": [*providers], "tests": [{"assert": [{"type": kind}], **test}]}
    return [*loads_suite(json.dumps(data), "promptfoo", source="promptfooconfig.json").cases]


def passes(kind: str, output: Any, config: dict[str, Any] | None = None, **candidate: Any) -> bool | None:
    """Return whether *output* passes where the provider has *config*."""
    found = {"tools": TOOLS, "functions": [WEATHER]} if config is None else config
    (case,) = cases_of(kind, {"id": "openai:gpt-4o", "config": found})
    text = output if isinstance(output, str) else json.dumps(output)
    result = evaluate(Candidate(text, **candidate), case.rubric, "offline")
    assert isinstance(result, Grade), result
    return result.passed


# The cases are those of promptfoo's tests.
@each_row(
    ("function", "valid"),
    [
        (BOSTON, True),
        ({**BOSTON, "arguments": '{"location": "Boston, MA", "unit": "Celsius"}'}, True),
        ({**BOSTON, "arguments": '{"unit": "Celsius"}'}, False),
        ({**BOSTON, "arguments": '{"location": "Boston, MA", "unit": "Kelvin"}'}, False),
        ({**BOSTON, "arguments": "{}"}, False),
        ({**BOSTON, "arguments": '{"location": '}, False),
        ({**BOSTON, "arguments": "[" * 100_000}, False),
        ({"name": "get_time", "arguments": "{}"}, False),
        ({"arguments": "{}"}, False),
        ("get_current_weather", False),
    ],
)
def test_a_call_is_valid_that_fits_its_schema(function: Any, valid: bool) -> None:
    """By the name of a tool, however the output holds it; `not-` turns it over."""
    calls = [{"type": "function", "function": function}]
    assert passes("is-valid-openai-tools-call", calls) is valid
    assert passes("is-valid-openai-tools-call", {"content": "x", "tool_calls": calls}) is valid
    assert passes("is-valid-openai-function-call", {"function_call": function}) is valid
    assert passes("is-valid-function-call", calls) is valid
    assert passes("not-is-valid-openai-tools-call", calls) is not valid


def test_each_call_must_be_valid() -> None:
    """One that is not fails all of them."""
    calls = [{"function": BOSTON}, {"function": {**BOSTON, "name": "get_time"}}]
    assert passes("is-valid-openai-tools-call", calls) is False
    assert passes("is-valid-openai-tools-call", calls[:1]) is True


@each_row("output", ["It is sunny.", "", [], {}, {"tool_calls": None}, '"x"', "null", [None], "3"])
def test_an_output_without_a_call_is_not_valid(output: Any) -> None:
    """Whatever else it holds."""
    assert passes("is-valid-openai-tools-call", output) is False
    assert passes("is-valid-openai-function-call", output) is False
    assert passes("is-valid-function-call", output) is False


def test_calls_that_were_recorded_come_first() -> None:
    """An output can be words beside them."""
    calls = [{"name": "get_current_weather", "arguments": {"location": "Boston"}}]
    assert passes("is-valid-openai-tools-call", "Sunny", tool_calls=calls) is True
    assert passes("is-valid-openai-tools-call", "MCP Tool Result (x): y", tool_calls=[{"name": "get_time"}]) is False


@pytest.mark.parametrize(
    ("output", "valid"),
    [
        ("MCP Tool Result (search): found", True),
        ("MCP Tool Error (search): timeout", False),
        ("MCP Tool Result (a): b\nMCP Tool Error (search): timeout", False),
    ],
)
def test_results_of_mcp_servers_are_valid_calls_unless_one_failed(output: str, valid: bool) -> None:
    """As promptfoo shows them in an output."""
    assert passes("is-valid-openai-tools-call", output) is valid


def test_tools_are_those_of_each_provider() -> None:
    """A provider without any leaves its cases ungraded, and names what is missing."""
    other = {"anthropic:messages:claude-x": {"config": {"tools": [{"name": "get_time", "input_schema": {}}]}}}
    cases = cases_of("is-valid-function-call", {"id": "openai:gpt-4o", "config": {"tools": TOOLS}}, other, "openai:x")
    output = Candidate(json.dumps([{"function": BOSTON}]))
    found = [evaluate(output, case.rubric, "offline") for case in cases]
    assert [result.passed if isinstance(result, Grade) else None for result in found] == [True, False, None]
    check = cases[2].rubric.criteria[0].answer
    assert isinstance(check, Unsupported)
    assert "without the tools or functions of a provider" in check.type


def test_tools_are_read_from_files_and_filled(tmp_path: Path) -> None:
    """As promptfoo's tools have them."""
    (tmp_path / "tools.yaml").write_text("- {type: function, function: {name: '{{ tool }}'}}\n")
    text = """\
prompts: [Q]
providers: [{id: "openai:gpt-4o", config: {tools: file://tools.yaml}}]
tests: [{vars: {tool: get_time}, assert: [{type: is-valid-openai-tools-call}]}]
"""
    (tmp_path / "promptfooconfig.yaml").write_text(text)
    (case,) = load_suite(tmp_path / "promptfooconfig.yaml").cases
    result = evaluate(Candidate('[{"function": {"name": "get_time", "arguments": "{}"}}]'), case.rubric, "offline")
    assert isinstance(result, Grade)
    assert result.passed


@each_row(
    "tools",
    [
        "file://missing.yaml",
        [3],
        {"a": 1},
        [{"name": "x", "parameters": 3}],
        [{"name": "x", "parameters": {"type": 3}}],
        [{"functionDeclarations": [{"name": "x", "parameters": {"type": "OBJECT"}}]}],
    ],
)
def test_tools_that_cannot_be_read_leave_the_case_ungraded(tools: Any) -> None:
    """The rest of the file loads."""
    (case,) = cases_of("is-valid-openai-tools-call", {"id": "openai:gpt-4o", "config": {"tools": tools}})
    assert isinstance(case.rubric.criteria[0].answer, Unsupported)


def test_a_file_of_tools_that_is_missing_leaves_the_case_ungraded(tmp_path: Path) -> None:
    """The warning names it."""
    test = {"assert": [{"type": "is-valid-openai-tools-call"}]}
    provider = {"id": "openai:gpt-4o", "config": {"tools": "file://missing.yaml"}}
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(json.dumps({"prompts": ["Q"], "providers": [provider], "tests": [test]}))
    suite = load_suite(path)
    assert isinstance(suite.cases[0].rubric.criteria[0].answer, Unsupported)
    assert any("missing.yaml" in str(warning) for warning in suite.warnings)
