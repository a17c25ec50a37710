"""
A scorer for MLflow: `rubric_scorer(rubric)`.

It returns `Feedback` with the score, the reasons and the judge as its source. An ungraded row is a `Feedback` with an
error, which MLflow's aggregations leave out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Unpack

from rubric import Candidate, Rubric, RubricError
from rubric.embed import Grader, JudgeLike
from rubric.integrations import mapping
from rubric.integrations.mapping import GradeOptions, importing

with importing("mlflow", "mlflow"):
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback
    from mlflow.genai.scorers import Scorer


def default_candidate(inputs: Any, outputs: Any, expectations: Any) -> Candidate:
    """Return the outputs as the candidate, with inputs and the expected response; outputs may be a chat."""
    expected = expectations.get("expected_response") if isinstance(expectations, dict) else expectations
    return mapping.default_candidate(inputs, outputs, expected or expectations)


def rubric_scorer(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    name: str | None = None,
    candidate: Callable[[Any, Any, Any], Candidate] = default_candidate,
    **options: Unpack[GradeOptions],
) -> Any:
    """
    Return a scorer for `mlflow.genai.evaluate`.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge or the name of a model; None takes the model that the environment has a key for.
        name: The name of the feedback; None takes the rubric's name, or `rubric`.
        candidate: Makes the candidate of inputs, outputs and expectations.
        options: What `evaluate` takes besides: `store`, `budget`, `limits`.
    """
    grader = Grader(rubric, judge, options, candidate)
    called, by = name or grader.name, str(getattr(grader.judge, "name", grader.judge or "default judge"))

    # Of a function MLflow would register the source alone, which has neither rubric nor judge: it refuses a class.
    class RubricScorer(Scorer):  # type: ignore[misc]  # MLflow may not be installed
        def __call__(self, inputs: Any = None, outputs: Any = None, expectations: Any = None) -> Feedback:
            try:
                result = grader.evaluate(inputs, outputs, expectations)
            except RubricError as problem:
                return Feedback(name=called, error=problem)
            source = AssessmentSource(source_type="LLM_JUDGE", source_id=by)
            # MLflow's metadata are texts.
            metadata = {
                "rubric": json.dumps(result.metadata["rubric"]),
                "rubric_digest": grader.rubric.digest,
                "verdict": result.label,
                "passed": json.dumps(result.passed),
                "cost": json.dumps(result.cost),
            }
            said = {"name": called, "source": source, "metadata": metadata, "rationale": result.reason}
            if result.score is None:
                return Feedback(error=AssessmentError("UNGRADED", result.reason), **said)
            return Feedback(value=result.score, **said)

    return RubricScorer(name=called)
