"""mcptest's `agents:` tests: what is read of them, what code decides of a run, and real runs with a real MCP server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric import Judge, LoadError
from rubric.formats.mcptest.agents import BLOCKS
from rubric.formats.native.suite import write_suite
from rubric.formats.suites import load_suite, loads_suite
from rubric.results.rows import Row
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.suites.targets.agents import AgentTarget
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.checks import Unsupported
from tests.suites.test_agents import MODEL, OSLO, SUNNY, started
from tests.tool_server import ToolServer

FILE = """\
servers:
  weather: {command: [python, weather_server.py]}
agents:
  - name: routes to the weather
    model: claude-sonnet-4-5
    servers: [weather]
    runs: 2
    prompt: What is the weather in Oslo?
    max_turns: 3
    expect:
      - target: tool_calls[0].name
        matcher: {exact: get_weather}
      - target: tool_names
        matcher: {contains-all: [get_weather]}
      - target: tool_calls[0].args.city
        matcher: {regex: "(?i)oslo"}
        message: asks for the city
"""


def case_of(expect: str, more: str = "") -> Case:
    """Return the case of a test that expects *expect*."""
    (case,) = loads_suite(f"agents:\n- name: a\n  prompt: P\n  expect: [{expect}]\n{more}", "mcptest")
    return case


def problem_of(expect: str, more: str = "") -> str:
    with pytest.raises(LoadError) as caught:
        case_of(expect, more)
    return str(caught.value)


def test_what_code_decides_of_a_run_leaves_its_case_ungraded() -> None:
    """Each matcher is a criterion that is not supported, with the cure; what a judge decides is a case of its own."""
    suite = loads_suite(FILE)
    (case,) = suite
    assert (suite.format, case.id, case.server, case.runs) == ("mcptest", "routes to the weather", "weather", 2)
    assert case.input == "What is the weather in Oslo?"
    assert [c.id for c in case.rubric.criteria] == ["expect 1", "expect 2", "expect 3"]
    assert case.rubric.criteria[2].text == "the matcher regex of tool_calls[0].args.city"
    lacking = [c.answer for c in case.rubric.criteria if isinstance(c.answer, Unsupported)]
    assert len(lacking) == 3
    assert all("tool-trajectory" in one.cure for one in lacking)


def test_what_the_target_decides_is_told() -> None:
    """Warnings name the settings of the agent that the target replaces, and the option for the server."""
    warnings = [str(warning) for warning in loads_suite(FILE).warnings]
    assert any("model, max_turns; the target that you give plays the agent" in warning for warning in warnings)
    assert any("--server weather=COMMAND" in warning for warning in warnings)


def test_a_rubric_in_a_test_is_a_case_of_its_own_beside_what_code_decides() -> None:
    """`eval.rubric` makes a second case with the same server and number of runs."""
    judged = FILE + "      - eval.rubric: Says how warm it is\n"
    first, second = loads_suite(judged)
    assert (first.id, second.id) == ("routes to the weather", "routes to the weather [expect]")
    assert [case.server for case in (first, second)] == ["weather", "weather"]
    assert (first.runs, first.rubric.text) == (2, "Says how warm it is")


def test_of_several_servers_all_are_offered() -> None:
    """A test that names two servers is bound to neither of them."""
    assert loads_suite(FILE.replace("[weather]", "[weather, maps]")).cases[0].server == ""


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_that_scores_by_rules_of_its_own_leaves_its_test_ungraded(block: str) -> None:
    """Its criterion is unsupported, and the cure names the assertion to use in its place."""
    case = case_of("{target: tool_names, matcher: {contains: a}}", f"  {block}: {{}}\n")
    last = case.rubric.criteria[-1]
    assert last.id == block
    assert isinstance(last.answer, Unsupported)
    assert "tool-trajectory" in last.answer.cure


@pytest.mark.parametrize(
    ("expect", "more", "told"),
    [
        ("{target: tool_names, matcher: {exact: a}}", "  runs: -2\n", "runs"),
        ("{target: tool_names, matcher: {exact: a}}", "  golden_paths: {}\n", "did you mean 'golden_path'?"),
    ],
)
def test_a_mistake_is_told_at_its_place(expect: str, more: str, told: str) -> None:
    """The problem starts with the file's position and says what is allowed."""
    found = problem_of(expect, more)
    assert told in found
    assert found.startswith("<string>:") or ":" in found


def test_a_converted_test_decides_alike() -> None:
    """The rubric comes back equal from the native form."""
    suite = loads_suite(FILE)
    text = json.dumps(write_suite(suite)[0])
    again = loads_suite(text, "native")
    assert again.cases[0].rubric == suite.cases[0].rubric


# -- live ---------------------------------------------------------------------------------------------------


ONCE = FILE.replace("    runs: 2\n", "")


def rows_of(suite: Suite, *script: Any, judged: Any = ()) -> list[Row]:
    """Run *suite* with a real MCP server and a model that follows *script*."""
    with ToolServer(*script) as model:
        agent = AgentTarget(MODEL, {"weather": started()}, params=model.params)
        return [*suite.run(Judge(ScriptedModel(judged), repairs=0), target=agent, concurrency=1)]


def test_a_suite_is_run_live_with_its_server() -> None:
    """The agent calls the tool of the server, and a judge decides the reply."""
    suite = loads_suite(
        ONCE + "      - eval.rubric: Says how warm it is\n"
        "evals:\n- {name: says it, server: weather, prompt: What is the weather in Oslo?,"
        " rubric: {criteria: [{name: city, description: Names the city}]}}\n"
    )
    rows = rows_of(suite, *[OSLO, SUNNY] * 3, judged=[0.9] * 2)
    assert [row.status for row in rows] == ["passed", "passed", "ungraded"]
    assert {row.output for row in rows[:2]} == {SUNNY}
    assert [row.id for row in rows] == ["says it", "routes to the weather", "routes to the weather [expect]"]


TOOLS = """\
tools:
- name: says how warm it is
  server: weather
  tool: TOOL
  args: {city: Oslo}
  expect:
  - target: "result.content[0].text"
    matcher: {llm-judge: {rubric: Says how warm it is, threshold: 0.6}}
"""


@pytest.mark.parametrize(
    ("tool", "status", "told"),
    [
        ("get_weather", "passed", SUNNY),
        ("fail", "ungraded", "the sensor is broken"),
        ("get_wether", "ungraded", "did you mean 'get_weather'?"),
    ],
)
def test_a_judged_test_of_a_tool_grades_what_the_tool_returns(tool: str, status: str, told: str) -> None:
    """No model is asked for it; an error of the tool is nothing that a judge could grade."""
    suite = loads_suite(TOOLS.replace("TOOL", tool))
    (row,) = rows_of(suite, 500, judged=[0.7])
    assert row.status == status
    assert told in (row.output or row.reason)


def test_a_part_of_a_result_that_is_no_text_is_deferred() -> None:
    """An argument that refers to an unknown part of an earlier result defers the case and names the known parts."""
    text = TOOLS.replace("result.content[0].text", "result.structuredContent.city").replace("TOOL", "get_weather")
    report = loads_suite(text).run("offline", target=AgentTarget(MODEL, {"weather": started()}))
    assert report[0].status == "deferred"
    assert "known: result" in report[0].reason


def test_a_server_that_was_not_given_defers() -> None:
    """Without the server every case waits, and the reason lists the known servers."""
    suite = loads_suite(FILE + "      - eval.rubric: Says how warm it is\n").only("routes to the weather")
    report = suite.run("offline", target=AgentTarget(MODEL, {}, params={"api_key": "k"}))
    assert {row.status for row in report} == {"deferred"}
    assert "'weather'; known: none" in report[0].reason


def test_files_of_its_pages_load_as_what_they_are(tmp_path: Path) -> None:
    """With the pages' comment, by the shape of what is expected, and with servers in a list."""
    for head in ("# yaml-language-server: $schema=https://mcptest.sh/schema/v1.json\n", ""):
        file = tmp_path / "suite.yml"
        file.write_text(head + FILE.replace("weather: {command: [python, weather_server.py]}", "- {name: weather}"))
        assert load_suite(file).format == "mcptest"
