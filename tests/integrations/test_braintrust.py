"""The scorer for Braintrust and autoevals, in real evaluations of Braintrust's that send nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.harnesses import BAD, CHAT, GOOD, ODD, POLITE, SEEN, harness, judging, seen

braintrust = harness("braintrust")
pytestmark = pytest.mark.filterwarnings("ignore")


def evaluated(judge: Any) -> Any:
    """Return the result of an evaluation of a good, a bad and an odd output."""
    from braintrust import Eval

    from rubric.integrations.braintrust import RubricScorer

    return Eval(
        "replies",
        data=[{"input": text, "expected": "Friday"} for text in (GOOD, BAD, ODD)],
        task=lambda text: text,
        scores=[RubricScorer(POLITE, judge)],
        no_send_logs=True,
    )


def test_the_mean_is_that_of_the_graded_cases() -> None:
    """An ungraded case has the score None, and no error."""
    with judging() as judge:
        result = evaluated(judge)
    assert {each.input: each.scores["polite"] for each in result.results} == {GOOD: 1, BAD: 0.25, ODD: None}
    assert all(each.error is None for each in result.results)
    assert result.summary.scores["polite"].score == (1 + 0.25) / 2


def test_the_log_has_reasons_cost_and_digest() -> None:
    """Braintrust's span of a score has them as metadata, in JSON."""
    from braintrust import logger
    from braintrust.test_helpers import init_test_logger

    with judging() as judge, logger._internal_with_memory_background_logger() as memory:
        init_test_logger("replies")
        evaluated(judge)
        spans = [each for each in memory.pop() if each["span_attributes"]["type"] == "score"]
    found = {each["input"]["input"]: json.loads(json.dumps(each["metadata"])) for each in spans}
    assert "✗ Names a day" in found[BAD]["reason"]
    assert "not graded" in found[ODD]["reason"]
    assert [found[text]["passed"] for text in (GOOD, BAD, ODD)] == [True, False, None]
    assert all(each["rubric"]["digest"] == POLITE.digest for each in found.values())
    assert all("cost" in each for each in found.values())


@pytest.mark.parametrize("text", [GOOD, BAD, ODD])
def test_sync_and_async_agree(text: str) -> None:
    """`eval` and `eval_async` of autoevals' protocol give the same score and verdict."""
    from rubric.integrations.braintrust import RubricScorer

    with judging() as judge:
        scorer = RubricScorer(POLITE, judge, name="tone")
        sync, later = scorer(text, "Friday", input="When?"), asyncio.run(scorer.eval_async(text, input="When?"))
    assert (sync.name, sync.score, sync.metadata["verdict"]) == (later.name, later.score, later.metadata["verdict"])
    assert sync.name == "tone"


def test_a_chat_is_not_flattened() -> None:
    """An output with messages keeps the conversation and the tool calls."""
    from rubric.integrations.braintrust import default_candidate

    candidate = default_candidate("When?", {"messages": CHAT}, "Friday")
    assert seen(candidate) == SEEN
    assert candidate.reference == "Friday"
