"""The evaluator for Phoenix, in real evaluations of data frames."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.harnesses import BAD, CHAT, GOOD, ODD, POLITE, SEEN, harness, judging, seen

phoenix = harness("phoenix.evals", "phoenix")
pytestmark = pytest.mark.filterwarnings("ignore")


def evaluated(judge: Any, *, later: bool = False) -> Any:
    """Return the frame of an evaluation of a good, a bad and an odd output."""
    import pandas as pd
    from phoenix.evals import async_evaluate_dataframe, evaluate_dataframe

    from rubric.integrations.phoenix import RubricEvaluator

    frame = pd.DataFrame({"context.span_id": ["a", "b", "c"], "input": "When?", "output": [GOOD, BAD, ODD]})
    given: dict[str, Any] = {"dataframe": frame, "evaluators": [RubricEvaluator(POLITE, judge)], "hide_tqdm_bar": True}
    return asyncio.run(async_evaluate_dataframe(**given)) if later else evaluate_dataframe(**given)


@pytest.mark.parametrize("later", [False, True])
def test_the_mean_is_that_of_the_graded_rows(later: bool) -> None:
    """In Phoenix's annotations an ungraded row has no number, so its mean leaves it out."""
    from phoenix.evals.utils import to_annotation_dataframe

    with judging() as judge:
        found = to_annotation_dataframe(dataframe=evaluated(judge, later=later), score_names=["polite"])
    assert found["score"].mean() == (1 + 0.25) / 2
    assert found["score"].count() == 2
    assert list(found["label"]) == ["pass", "fail", "ungraded"]
    assert "✗ Names a day" in found["explanation"][1]
    assert "not graded" in found["explanation"][2]


def test_the_scores_are_json_with_cost_and_digest() -> None:
    """Each cell of the column is a score of Phoenix's; each criterion has a column besides."""
    with judging() as judge:
        found = evaluated(judge)
    rows = [json.loads(json.dumps(each)) for each in found["polite_score"]]
    assert all(each["metadata"]["rubric"]["digest"] == POLITE.digest for each in rows)
    assert [each["metadata"]["passed"] for each in rows] == [True, False, None]
    assert all("cost" in each["metadata"] for each in rows)
    assert [each and each["score"] for each in found["polite.day_score"]] == [1, 0, None]
    # An evaluation that raises would be repeated ten times.
    assert {each["status"] for each in found["polite_execution_details"]} == {"COMPLETED"}


def test_columns_can_be_renamed_and_missing_ones_are_empty() -> None:
    """Input, reference and context are kept though Phoenix needs the output alone; NaN is not text."""
    from phoenix.evals import bind_evaluator

    from rubric.integrations.phoenix import RubricEvaluator, default_candidate

    seen = []

    def candidate(row: Any) -> Any:
        seen.append(default_candidate(row))
        return seen[-1]

    evaluator = RubricEvaluator(POLITE, "offline", candidate=candidate)
    bound = bind_evaluator(evaluator=evaluator, input_mapping={"output": "answer"})
    bound.evaluate({"answer": GOOD, "input": "When?", "reference": float("nan"), "expected": "Friday", "context": "A."})
    (made,) = seen
    assert (made.output, made.input, made.reference, made.context) == (GOOD, "When?", "Friday", "A.")


def test_a_chat_is_not_flattened() -> None:
    """An output with messages keeps the conversation and the tool calls."""
    from rubric.integrations.phoenix import default_candidate

    candidate = default_candidate({"output": {"messages": CHAT}})
    assert seen(candidate) == SEEN


@pytest.mark.parametrize("later", [False, True])
def test_a_row_without_an_output_is_ungraded_at_once(later: bool) -> None:
    """It is not text and no score of 0, and Phoenix does not try it ten times more."""
    import pandas as pd
    from phoenix.evals import async_evaluate_dataframe, evaluate_dataframe

    from rubric.integrations.phoenix import RubricEvaluator

    frame = pd.DataFrame({"output": [None, float("nan"), GOOD]})
    with judging() as judge:
        given: dict[str, Any] = {"dataframe": frame, "evaluators": [RubricEvaluator(POLITE, judge)]}
        found = asyncio.run(async_evaluate_dataframe(**given)) if later else evaluate_dataframe(**given)
    assert [each["label"] for each in found["polite_score"]] == ["ungraded", "ungraded", "pass"]
    assert [each.get("score") for each in found["polite_score"]] == [None, None, 1]
    assert all(not each["exceptions"] for each in found["polite_execution_details"])


def test_a_mistake_of_the_candidate_function_is_tried_once() -> None:
    """An error of ours is one that Phoenix does not try again."""
    import pandas as pd
    from phoenix.evals import evaluate_dataframe

    from rubric.integrations.phoenix import RubricEvaluator

    evaluator = RubricEvaluator(POLITE, "offline", candidate=lambda row: 7)  # type: ignore[arg-type,return-value]
    found = evaluate_dataframe(dataframe=pd.DataFrame({"output": [GOOD]}), evaluators=[evaluator])
    (details,) = found["polite_execution_details"]
    assert (len(details["exceptions"]), "candidate returned int" in details["exceptions"][0]) == (1, True)
