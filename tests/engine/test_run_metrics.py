"""What a run took: given with a response, measured of a live target, and limited by checks and by files."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from rubric import Candidate, Case, Criterion, DefinitionError, Grade, Rubric, Suite, dumps, loads
from rubric.engine.grade import evaluate
from rubric.formats.suites import loads_suite
from rubric.suites.targets.base import Response
from rubric.values import RunMetrics, Within
from rubric.values.findings import Scored, Unjudged
from rubric.values.requests import Usage
from tests.rows import each_row

MEASURED = RunMetrics(latency=1.2, cost=0.002, tokens=900, calls=2, perplexity=4.0)


def found(check: Within, **fields: Any) -> Any:
    rubric = Rubric(criteria=[Criterion("Cheap", id="c", answer=check)])
    return evaluate(Candidate("An answer", **fields), rubric, "offline")["c"]


@pytest.mark.parametrize(
    ("limits", "score"),
    [
        ({"latency": 1.2}, 1),
        ({"latency": 1.1}, 0),
        ({"cost": 0.002, "tokens": 800}, 0.5),
        ({"calls": 2, "tool_calls": 0, "perplexity": 5}, 1),
        ({"cost": 0}, 0),
    ],
)
def test_the_score_is_the_share_of_limits_that_the_run_kept(limits: dict[str, float], score: float) -> None:
    """A limit itself is allowed."""
    assert found(Within(**limits), metrics=MEASURED).score == score


def test_a_limit_on_what_is_not_known_is_not_judged_and_says_what_would_make_it_known() -> None:
    """It is neither kept nor broken: AgentV fails such a case, promptfoo raises."""
    finding = found(Within(latency=5, tokens=9, tool_calls=1), metrics={"latency": 1})
    assert isinstance(finding, Unjudged)
    assert "the tokens of the run is not known" in finding.failure.message
    assert "`metrics`" in finding.failure.message


@pytest.mark.parametrize("limits", [{}, {"latency": -1}, {"latency": "fast"}, {"cost": float("nan")}])
def test_limits_are_numbers_from_0(limits: dict[str, Any]) -> None:
    """And there is at least one."""
    with pytest.raises(DefinitionError):
        Within(**limits)


def test_metrics_are_a_mapping_with_known_names() -> None:
    """Anything else is refused, with what is allowed."""
    with pytest.raises(DefinitionError, match="latency, cost, tokens, calls, perplexity or finish_reason"):
        Candidate("a", metrics={"duration": 1})
    with pytest.raises(DefinitionError, match=r"metrics\.latency"):
        Candidate("a", metrics={"latency": -1})


def test_a_check_of_limits_is_a_mapping_in_files_also_with_one_limit() -> None:
    """A bare number would not say what it limits."""
    rubric = Rubric("r", criteria=[Criterion("Cheap", answer=Within(cost=0.01))])
    assert "within: {cost: 0.01}" in dumps(rubric)
    assert loads(dumps(rubric)) == rubric


def test_a_live_target_is_measured() -> None:
    """Its time is taken around the call, and cost, calls and tokens are those of its usage."""

    def answer(case: Case) -> Response:
        time.sleep(0.02)
        return Response(case.responding("An answer"), Usage(2, 700, 0, 200, 0.002))

    check = Within(latency=30, cost=0.002, tokens=900, calls=2)
    (row,) = Suite("s", [Case("a", Rubric(criteria=[Criterion("x", id="c", answer=check)]), input="Q")]).run(
        "offline", target=answer
    )
    assert isinstance(row.result, Grade)
    assert row.result.passed
    reason = row.result["c"].reason
    assert "cost $0.002, at most $0.002" in reason
    assert "latency 0.0" in reason


def test_a_target_of_unknown_usage_has_a_latency_and_no_cost() -> None:
    """Nothing that was not reported is taken for 0."""
    suite = Suite("s", [Case("a", Rubric(criteria=[Criterion("x", answer=Within(cost=1))]), input="Q")])
    (row,) = suite.run("offline", target=lambda case: "An answer")
    assert row.status == "ungraded"
    assert "the cost of the run is not known" in row.reason


# The figures are those of upstream's own tests: promptfoo's latency and cost, AgentV's execution-metrics.
@each_row(
    ("assertion", "metrics", "outcome"),
    [
        ({"type": "latency", "threshold": 100}, {"latency": 0.05}, (True, 1)),
        ({"type": "latency", "threshold": 100}, {"latency": 1}, (False, 0)),
        ({"type": "not-latency", "threshold": 100}, {"latency": 1}, (True, 1)),
        ({"type": "latency", "threshold": 0}, {"latency": 0}, (True, 1)),
        ({"type": "cost", "threshold": 0.001}, {"cost": 0.0005}, (True, 1)),
        ({"type": "cost", "threshold": 0.001}, {"cost": 0.002}, (False, 0)),
        ({"type": "perplexity", "threshold": 1.5}, {"perplexity": 1.2}, (True, 1)),
    ],
)
def test_limits_of_promptfoo(assertion: dict[str, Any], metrics: dict[str, float], outcome: tuple[bool, float]) -> None:
    """Its latencies are in milliseconds."""
    (case,) = loads_suite(json.dumps({"tests": [{"assert": [assertion]}]}), "promptfoo")
    result = evaluate(Candidate("x", metrics=metrics), case.rubric, "offline")
    assert isinstance(result, Grade)
    assert (result.passed, result.score) == outcome


@pytest.mark.parametrize(
    ("grader", "score"),
    [
        ({"type": "execution-metrics", "max_tool_calls": 10, "max_tokens": 2000, "max_duration_ms": 10000}, 1),
        ({"type": "execution-metrics", "max_tokens": 500, "max_cost_usd": 0.05}, 0.5),
        ({"type": "latency", "threshold": 1000}, 0),
        ({"type": "cost", "budget": 0.01}, 1),
        ({"type": "token-usage", "max_total": 1000}, 1),
    ],
)
def test_limits_of_agentv(grader: dict[str, Any], score: float) -> None:
    """The score is the share of limits that were kept."""
    (case,) = loads_suite(json.dumps({"tests": [{"id": "a", "input": "Q", "assert": [grader]}]}), "agentv-2")
    assert not loads_suite(json.dumps({"tests": [{"id": "a", "input": "Q", "assert": [grader]}]})).warnings
    (finding,) = evaluate(Candidate("x", metrics=MEASURED), case.rubric, "offline").findings
    assert isinstance(finding, Scored)
    assert finding.score == score
