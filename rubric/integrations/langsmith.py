"""
Evaluators for LangSmith and openevals: `rubric_evaluator(rubric)`, `arubric_evaluator(rubric)`.

An ungraded example has the score None and the label `ungraded`, which LangSmith's averages leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from rubric import Candidate, Rubric
from rubric.embed import Grader, JudgeLike, Mapped, checked_candidate
from rubric.integrations.mapping import default_candidate

__all__ = ["arubric_evaluator", "default_candidate", "rubric_evaluator"]

Result = dict[str, Any]


def rubric_evaluator(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    key: str | None = None,
    candidate: Callable[[Any, Any, Any], Candidate] = default_candidate,
) -> Callable[..., Result]:
    """
    Return an evaluator for `langsmith.evaluate`, with the signature that openevals' evaluators have.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge or the name of a model; None takes the model that the environment has a key for.
        key: The name of the feedback; None takes the rubric's name, or `rubric`.
        candidate: Makes the candidate of inputs, outputs and reference outputs.
    """
    grader = Grader(rubric, judge)

    def evaluate(*, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None, **_: Any) -> Result:
        made = checked_candidate(candidate(inputs, outputs, reference_outputs), "candidate")
        return _feedback(key or grader.rubric.name or "rubric", grader.evaluate(made))

    return evaluate


def arubric_evaluator(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    key: str | None = None,
    candidate: Callable[[Any, Any, Any], Candidate] = default_candidate,
) -> Callable[..., Coroutine[Any, Any, Result]]:
    """Return an evaluator like that of `rubric_evaluator` for `langsmith.aevaluate`."""
    grader = Grader(rubric, judge)

    async def evaluate(*, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None, **_: Any) -> Result:
        made = checked_candidate(candidate(inputs, outputs, reference_outputs), "candidate")
        return _feedback(key or grader.rubric.name or "rubric", await grader.aevaluate(made))

    return evaluate


def _feedback(key: str, result: Mapped) -> Result:
    return {
        "key": key,
        "score": result.score,
        "value": result.label,
        "comment": result.reason,
        "metadata": {**result.metadata, "passed": result.passed, "cost": result.cost},
    }
