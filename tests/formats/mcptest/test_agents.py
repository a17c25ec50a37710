"""mcptest's `agents:` tests: what is read of them, what code decides of a run, and real runs with a real MCP server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rubric import Judge, LoadError
from rubric.formats.suites import load_suite, loads_suite
from rubric.results.report_rows import Row
from rubric.suites.suite import Suite
from rubric.suites.targets.agents import AgentTarget
from rubric.testing.scripted_model import ScriptedModel
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


JUDGED = FILE + "      - eval.rubric: Says how warm it is\n"


def test_a_rubric_among_the_matchers_is_a_case() -> None:
    """It has the prompt, the server and the runs of its test; what code decides is left out, and told."""
    suite = loads_suite(JUDGED)
    (case,) = suite
    assert (suite.format, case.id, case.server, case.runs) == ("mcptest", "routes to the weather", "weather", 2)
    assert (case.input, case.rubric.text) == ("What is the weather in Oslo?", "Says how warm it is")
    assert any("only its rubrics are read" in str(warning) for warning in suite.warnings)


def test_a_file_without_rubrics_is_refused() -> None:
    """The matchers that code decides are mcptest's own."""
    with pytest.raises(LoadError, match="there is nothing in it to grade"):
        loads_suite(FILE)


def test_what_the_target_decides_is_told() -> None:
    """Warnings name who plays the agent, and the option for the server."""
    warnings = [str(warning) for warning in loads_suite(JUDGED).warnings]
    assert any("the target that you give plays the agent" in warning for warning in warnings)
    assert any("--server weather=COMMAND" in warning for warning in warnings)


def test_of_several_servers_all_are_offered() -> None:
    """A test that names two servers is bound to neither of them."""
    assert loads_suite(JUDGED.replace("[weather]", "[weather, maps]")).cases[0].server == ""


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
    rows = rows_of(suite, *[OSLO, SUNNY] * 2, judged=[0.9] * 2)
    assert [row.status for row in rows] == ["passed", "passed"]
    assert {row.output for row in rows} == {SUNNY}
    assert [row.id for row in rows] == ["says it", "routes to the weather"]


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
    report = loads_suite(JUDGED).run("offline", target=AgentTarget(MODEL, {}, params={"api_key": "k"}))
    assert {row.status for row in report} == {"deferred"}
    assert "'weather'; known: none" in report[0].reason


def test_files_of_its_pages_load_as_what_they_are(tmp_path: Path) -> None:
    """With the pages' comment, by the shape of what is expected, and with servers in a list."""
    for head in ("# yaml-language-server: $schema=https://mcptest.sh/schema/v1.json\n", ""):
        file = tmp_path / "suite.yml"
        file.write_text(head + JUDGED.replace("weather: {command: [python, weather_server.py]}", "- {name: weather}"))
        assert load_suite(file).format == "mcptest"
