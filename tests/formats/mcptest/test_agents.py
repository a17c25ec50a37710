"""mcptest's `agents:` tests: what is read of them, what code decides of a run, and real runs with a real MCP server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from rubric import Candidate, Grade, Judge, LoadError, ToolCall, grade
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


def test_a_test_is_a_case_that_passes_if_all_it_expects_holds() -> None:
    """Each entry of `expect` is a required criterion, with its description as the text."""
    suite = loads_suite(FILE)
    (case,) = suite
    assert (suite.format, case.id, case.server, case.runs) == ("mcptest", "routes to the weather", "weather", 2)
    assert case.input == "What is the weather in Oslo?"
    assert [c.id for c in case.rubric.criteria] == ["expect 1", "expect 2", "expect 3"]
    assert case.rubric.criteria[2].text == "asks for the city"
    assert all(c.required for c in case.rubric.criteria)


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


RUN = Candidate(
    "21 degrees",
    tool_calls=[
        ToolCall(
            "get_weather", arguments={"city": "Oslo", "days": [1, 2], "nothing": None, "exact": True, "at": {"hour": 7}}
        ),
        ToolCall("notify", arguments={}),
    ],
    metrics={"tokens": 420},
)


@pytest.mark.parametrize(
    ("target", "matcher", "holds"),
    [
        ("tool_calls[0].name", "exact: get_weather", True),
        ("tool_calls[1].name", "exact: get_weather", False),
        ("tool_calls[2].name", "exact: get_weather", False),
        ("tool_calls[0].args.at.hour", "exact: 7", True),
        ("tool_calls[0].args.at.hour", "exact: '7'", False),
        ("tool_calls[0].args.exact", "exact: 1", False),
        ("tool_calls[0].args.days", "exact: [1, 2]", True),
        ("tool_calls[0].args.days[1]", "exact: 2", True),
        ("tool_calls[0].args.days[1]", "exact: 2.0", True),
        ("tool_calls[0].args.days", "contains: true", False),
        ("tool_calls[0].args.nothing", "exact: null", True),
        ("tool_calls[0].args.missing", "exact: null", False),
        ("tool_calls[0].args.city.name", "exact: Oslo", False),
        ("tool_calls[0].args.city", "contains: sl", True),
        ("tool_calls[0].args.city", "contains: OS", False),
        ("tool_calls[0].args.city", "icontains: OS", True),
        ("tool_names", "contains: notify", True),
        ("tool_names", "contains: not", False),
        ("tool_names", "icontains: NOTIFY", True),
        ("tool_names", "contains-all: [notify, get_weather]", True),
        ("tool_names", "contains-all: [notify, get_forecast]", False),
        ("tool_names", "exact: [get_weather, notify]", True),
        ("tool_calls", "schema: {type: array, minItems: 2, maxItems: 2}", True),
        ("tool_calls[0].args", "schema: {type: object, required: [country]}", False),
        ("tool_calls[0].args.city", "regex: '(?i)^OSLO$'", True),
        ("conversation.tokens.total", "regex: '^[0-9]+$'", True),
    ],
)
def test_a_matcher_looks_at_its_target(target: str, matcher: str, holds: bool) -> None:
    """Paths and matchers compare as documented: types and case count, `icontains` ignores case."""
    case = case_of(f'{{target: "{target}", matcher: {{{matcher}}}}}')
    result = grade(RUN, case.rubric, "offline")
    assert isinstance(result, Grade)
    assert (result.passed, result.score) == (holds, float(holds))


def test_every_key_of_a_matcher_counts() -> None:
    """A matcher of three keys makes three criteria, and the one that fails is the gate."""
    case = case_of("{target: 'tool_calls[0].args.city', matcher: {contains: Os, regex: lo$, exact: Bergen}}")
    assert len(case.rubric.criteria) == 3
    assert grade(RUN, case.rubric, "offline").gates == ("expect exact",)


@pytest.mark.parametrize(
    ("target", "matcher", "why"),
    [
        ("conversation.tokens.total", "regex: '1'", "tokens of the run are not known"),
        ("tool_calls[0].args", "contains: city", "does not say how contains matches a dict"),
    ],
)
def test_what_is_not_known_is_no_verdict(target: str, matcher: str, why: str) -> None:
    """Unknown token counts and undocumented comparisons leave the case ungraded with the reason."""
    case = case_of(f'{{target: "{target}", matcher: {{{matcher}}}}}')
    (row,) = Suite(cases=[evolve(case, output="x", tool_calls=RUN.tool_calls)]).run("offline")
    assert row.status == "ungraded"
    assert why in row.reason


@pytest.mark.parametrize(
    "expect",
    ["{target: final_text, matcher: {exact: a}}", "{target: 'tool_calls[0].server', matcher: {exact: a}}",
     "{target: tool_names, matcher: {semantic: a}}"],
)  # fmt: skip
def test_a_target_or_a_matcher_that_no_page_shows_stays_ungraded_and_names_those_that_are_known(expect: str) -> None:
    """An undocumented target or matcher is unsupported, and its cure lists the known ones."""
    (criterion,) = case_of(expect).rubric.criteria
    assert isinstance(criterion.answer, Unsupported)
    assert "known are" in criterion.answer.cure


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
        ("{target: '[0', matcher: {exact: a}}", "", "tool_calls[0].name"),
        ("{target: tool_names, matcher: {contains-all: a}}", "", "a list of texts"),
        ("{target: tool_names, matcher: {regex: '('}}", "", "RE2"),
        ("{target: tool_names, matcher: {schema: 3}}", "", "JSON Schema"),
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
    """The agent calls the tool of the server; code decides the calls, and a judge the reply."""
    suite = loads_suite(
        ONCE + "      - eval.rubric: Says how warm it is\n"
        "evals:\n- {name: says it, server: weather, prompt: What is the weather in Oslo?,"
        " rubric: {criteria: [{name: city, description: Names the city}]}}\n"
    )
    rows = rows_of(suite, *[OSLO, SUNNY] * 3, judged=[0.9] * 2)
    assert [row.status for row in rows] == ["passed"] * 3
    assert {row.output for row in rows} == {SUNNY}
    assert [row.id for row in rows] == ["says it", "routes to the weather", "routes to the weather [expect]"]
    assert "get_weather" in rows[2].entries[0].reason


def test_a_run_that_calls_nothing_fails_what_is_expected_of_its_calls() -> None:
    """A missing call fails the criterion, and the reason says how many calls there were."""
    (row,) = rows_of(loads_suite(ONCE), "It may be warm.")
    assert row.status == "failed"
    assert "there is no tool_calls[0].name; calls: 0" in row.entries[0].reason


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
    report = loads_suite(FILE).run("offline", target=AgentTarget(MODEL, {}, params={"api_key": "k"}))
    assert {row.status for row in report} == {"deferred"}
    assert "'weather'; known: none" in report[0].reason


def test_files_of_its_pages_load_as_what_they_are(tmp_path: Path) -> None:
    """With the pages' comment, by the shape of what is expected, and with servers in a list."""
    for head in ("# yaml-language-server: $schema=https://mcptest.sh/schema/v1.json\n", ""):
        file = tmp_path / "suite.yml"
        file.write_text(head + FILE.replace("weather: {command: [python, weather_server.py]}", "- {name: weather}"))
        assert load_suite(file).format == "mcptest"
