"""Trajectories: the tools that a run called, by checks of our own and by promptfoo's and AgentV's graders."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rubric import Candidate, Criterion, DefinitionError, Grade, Rubric, Trajectory
from rubric.engine.grade import evaluate
from rubric.errors import LoadError
from rubric.formats.suites import loads_suite
from tests.rows import each_row

CALLS = [
    {"name": "search_orders", "arguments": {"order": 12, "filter": {"open": True, "page": 1}, "limit": 10}},
    {"name": "compose_reply", "arguments": {"tone": "kind"}},
    {"name": "search_orders", "arguments": {"order": 13}},
    {"name": "shell", "arguments": {"command": "ls -l"}},
    {"name": "Skill", "arguments": {"skill": "csv-analyzer"}},
]
RUN = Candidate("Done", tool_calls=CALLS)


@each_row(
    ("tools", "order", "follows"),
    [
        (["a", "b"], "in_order", True),
        (["b", "a"], "in_order", True),
        (["c", "b"], "in_order", False),
        (["A", "*", "c"], "in_order", True),
        (["a", "b", "a", "c"], "exact", True),
        (["a", "b", "a"], "exact", False),
        (["?", "b", "?", "?"], "exact", True),
    ],
)
def test_a_trajectory_is_followed(tools: list[str], order: Any, follows: bool) -> None:
    """In order with others between, or exactly."""
    run = Candidate("x", tool_calls=[{"name": name} for name in "abac"])
    result = evaluate(run, Rubric(criteria=[Criterion("x", answer=Trajectory(tools, order=order))]), "offline")
    assert isinstance(result, Grade)
    assert result.passed is follows


def test_a_trajectory_names_tools() -> None:
    """At least one, in a known order."""
    for tools, order in (([], "exact"), ([""], "exact"), (["a"], "any_order")):
        with pytest.raises(DefinitionError):
            Trajectory(tools, order=order)  # type: ignore[arg-type]


def test_stars_match_in_linear_time() -> None:
    """A name comes from the run, and a pattern from a file."""
    assert not Trajectory(["a*" * 12 + "b"]).followed_by(["a" * 100_000])


# The values are those of the documentation of `trajectory:*` and of the tests of both systems.
CASES: list[tuple[str, Any, bool]] = [
    ("trajectory:tool-used", "search_orders", True),
    ("trajectory:tool-used", "search_*", True),
    ("trajectory:tool-used", ["search_orders", "refund"], False),
    ("not-trajectory:tool-used", ["search_orders", "refund"], False),
    ("not-trajectory:tool-used", ["refund", "delete_*"], True),
    ("trajectory:tool-used", {"name": "search_orders", "min": 2}, True),
    ("trajectory:tool-used", {"pattern": "search_*", "min": 1, "max": 1}, False),
    ("trajectory:tool-used", "shell", False),
    ("trajectory:tool-sequence", ["search_orders", "compose_reply"], True),
    ("trajectory:tool-sequence", {"mode": "in_order", "steps": ["compose_reply", {"name": "search_orders"}]}, True),
    ("trajectory:tool-sequence", {"mode": "exact", "steps": ["search_orders", "compose_reply"]}, False),
    ("not-trajectory:tool-sequence", ["compose_reply", "refund"], True),
    ("trajectory:tool-args-match", {"name": "search_orders", "args": {"order": 13}}, True),
    ("trajectory:tool-args-match", {"name": "search_orders", "args": {"filter": {"open": True}}}, True),
    ("trajectory:tool-args-match", {"name": "search_orders", "args": {"order": 12}, "mode": "exact"}, False),
    (
        "trajectory:tool-args-match",
        {"name": "search_*", "args": {"order": 12}, "mode": "exact", "ignore": "fil*", "defaults": {"limit": 10}},
        True,
    ),
    ("trajectory:tool-args-match", {"name": "compose_reply", "arguments": {"tone": "rude"}}, False),
    ("trajectory:tool-args-match", {"name": "compose_reply", "args": {}, "mode": "exact", "ignore": ["TONE"]}, False),
    ("trajectory:tool-args-match", {"name": "compose_reply", "args": {}, "mode": "exact", "ignore": "TO*"}, True),
    ("trajectory:step-count", {"type": "command", "pattern": "ls", "min": 1}, True),
    ("trajectory:step-count", {"type": "command", "pattern": "LS *", "min": 1}, True),
    ("trajectory:step-count", {"type": "command", "pattern": "rm*", "max": 0}, True),
    ("trajectory:step-count", {"max": 5}, True),
    ("trajectory:step-count", {"type": "tool", "min": 5}, False),
    ("trajectory:step-count", {"pattern": "search_*", "min": 2, "max": 2}, True),
    ("skill-used", "csv-analyzer", True),
    ("not-skill-used", "csv-analyzer", False),
    ("skill-used", {"name": "csv-analyzer", "max": 0}, False),
]


@each_row("format", ["promptfoo", "agentv-2"])
@each_row(("kind", "value", "passed"), CASES, ids=lambda one: str(one)[:50])
def test_graders_of_tool_calls(format: str, kind: str, value: Any, passed: bool) -> None:
    """Both systems have the same types, with the same values."""
    test = {"id": "a", "input": "Q"} if format != "promptfoo" else {}
    suite = loads_suite(json.dumps({"tests": [{**test, "assert": [{"type": kind, "value": value}]}]}), format)
    assert not suite.warnings
    (case,) = suite
    result = evaluate(RUN, case.rubric, "offline")
    assert isinstance(result, Grade), result
    assert result.passed is passed


@pytest.mark.parametrize(
    ("value", "threshold", "passed", "score"),
    [
        (["search_orders", "compose_reply", "shell", "Skill"], None, True, 1),
        ("search_orders, refund", None, False, 1 / 3),
        ("search_orders, refund", 0.3, True, 1 / 3),
        (["refund"], 0.1, False, 0),
    ],
)
def test_the_f1_of_tool_calls(value: Any, threshold: float | None, passed: bool, score: float) -> None:
    """Of the sets of names: 2 |called and expected| / (|called| + |expected|)."""
    assertion = {"type": "tool-call-f1", "value": value} | ({} if threshold is None else {"threshold": threshold})
    (case,) = loads_suite(json.dumps({"tests": [{"assert": [assertion]}]}), "promptfoo")
    result = evaluate(RUN, case.rubric, "offline")
    assert isinstance(result, Grade)
    assert result.passed is passed
    assert result.score == pytest.approx(score)


def test_the_f1_of_calls_that_an_output_shows() -> None:
    """promptfoo's providers give the calls as their output; calls that were recorded come first."""
    assertion = {"type": "tool-call-f1", "value": ["a", "b"]}
    (case,) = loads_suite(json.dumps({"tests": [{"assert": [assertion]}]}), "promptfoo")
    calls = [{"type": "function", "function": {"name": name, "arguments": "{}"}} for name in "ab"]
    for output, given, score in (
        (json.dumps(calls), [], 1),
        (json.dumps({"tool_calls": calls}), [], 1),
        (json.dumps(calls), CALLS, 0),
        ('{"name": "a"}', [], 0),
    ):
        result = evaluate(Candidate(output, tool_calls=given), case.rubric, "offline")
        assert isinstance(result, Grade)
        assert result.score == score


@each_row(
    ("kind", "value"),
    [
        ("trajectory:tool-used", []),
        ("trajectory:tool-used", {"min": 1}),
        ("trajectory:tool-used", {"name": "a", "min": -1}),
        ("trajectory:tool-sequence", "a"),
        ("trajectory:tool-args-match", {"name": "a"}),
        ("trajectory:tool-args-match", {"name": "a", "args": {}, "mode": "loose"}),
        ("trajectory:step-count", {}),
        ("tool-call-f1", ""),
    ],
)
def test_a_value_that_a_type_cannot_have_is_an_error(kind: str, value: Any) -> None:
    """With what is allowed."""
    with pytest.raises(LoadError, match="expected"):
        loads_suite(json.dumps({"tests": [{"assert": [{"type": kind, "value": value}]}]}), "promptfoo")
