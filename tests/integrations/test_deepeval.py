"""The metric for deepeval, in real evaluations of deepeval's, offline."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from rubric import DefinitionError, UngradedError
from tests.harnesses import BAD, GOOD, ODD, POLITE, harness, judging

harness("deepeval")
pytestmark = pytest.mark.filterwarnings("ignore")

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def metric(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield the metric with a judge at a local server."""
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    from rubric.integrations.deepeval import RubricMetric

    with judging() as judge:
        yield RubricMetric(POLITE, judge)


def case_of(text: str) -> Any:
    """Return a test case with *text* as the actual output."""
    from deepeval.test_case import LLMTestCase, ToolCall

    call = ToolCall(name="orders", input_parameters={"id": 7}, output="paid")
    return LLMTestCase(input="When?", actual_output=text, expected_output="On Friday", tools_called=[call])


def test_one_run_has_a_pass_a_fail_and_an_error(metric: Any) -> None:
    """deepeval's own results: score, success, reason, digest; the ungraded case has an error and no score."""
    from deepeval import evaluate
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig

    found = evaluate(
        [case_of(text) for text in (GOOD, BAD, ODD)],
        [metric],
        async_config=AsyncConfig(run_async=True),
        error_config=ErrorConfig(ignore_errors=True),
        cache_config=CacheConfig(write_cache=False),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
    )
    data = {result.input + result.actual_output: result.metrics_data[0] for result in found.test_results}
    good, bad, odd = (data[f"When?{text}"] for text in (GOOD, BAD, ODD))
    assert (good.score, good.success, bad.score, bad.success) == (1, True, 0.25, False)
    assert "✗ Names a day" in bad.reason
    assert odd.score is None
    assert "not graded" in odd.error
    assert all(json.loads(each.verbose_logs)["digest"] == POLITE.digest for each in (good, bad, odd))


@pytest.mark.parametrize("text", [GOOD, BAD])
def test_sync_and_async_agree(metric: Any, text: str) -> None:
    """`measure` and `a_measure` give the same score, success and parts."""
    case = case_of(text)
    sync = (metric.measure(case), metric.is_successful(), metric.score_breakdown)
    assert (asyncio.run(metric.a_measure(case)), metric.is_successful(), metric.score_breakdown) == sync
    assert metric.input_tokens > 0


def test_a_gate_fails_a_case_whose_score_is_above_the_threshold() -> None:
    """Success is the verdict, not score and threshold compared."""
    from rubric.integrations.deepeval import RubricMetric

    with judging() as judge:
        metric = RubricMetric(POLITE.revising("day", required=True).passing_at(0.2), judge)
        assert metric.measure(case_of(BAD)) == 0.25
        assert not metric.is_successful()


def test_an_ungraded_case_raises(metric: Any) -> None:
    """It is no 0, and no failure of the candidate."""
    with pytest.raises(UngradedError):
        metric.measure(case_of(ODD))
    assert metric.score is None
    assert metric.evaluation_cost is None or metric.evaluation_cost >= 0


def test_tools_that_were_called_are_carried_over() -> None:
    """The default candidate has input, reference and tool calls."""
    from rubric.integrations.deepeval import default_candidate

    candidate = default_candidate(case_of(GOOD))
    assert (candidate.input, candidate.reference) == ("When?", "On Friday")
    assert [(call.name, dict(call.arguments), call.result) for call in candidate.tool_calls] == [
        ("orders", {"id": 7}, "paid")
    ]


def test_a_test_case_without_an_output_is_not_graded() -> None:
    """No actual output is an error, unless the run consists of its tool calls."""
    from deepeval.test_case import LLMTestCase, ToolCall

    from rubric.integrations.deepeval import default_candidate

    with pytest.raises(DefinitionError, match="failed"):
        default_candidate(LLMTestCase(input="When?"))
    called = LLMTestCase(input="When?", tools_called=[ToolCall(name="orders")])
    assert [call.name for call in default_candidate(called).tool_calls] == ["orders"]
