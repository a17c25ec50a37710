"""
A scorer for Braintrust and autoevals: `RubricScorer(rubric)`.

An ungraded case has the score None, which Braintrust's averages leave out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Unpack

from rubric import Candidate, Rubric
from rubric.embed import Grader, JudgeLike, Mapped
from rubric.integrations.mapping import GradeOptions, default_candidate, importing

with importing("braintrust", "autoevals"):
    try:  # one protocol, which each of the two packages defines
        from autoevals import Score, Scorer
    except ImportError:
        from braintrust.score import Score, Scorer

__all__ = ["RubricScorer", "default_candidate"]


class RubricScorer(Scorer):  # type: ignore[misc]  # autoevals may not be installed
    """
    Score the output of a case against a rubric.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge or the name of a model; None takes the model that the environment has a key for.
        name: The name of the score; None takes the rubric's name, or `rubric`.
        candidate: Makes the candidate of input, output and expected output.
        options: What `evaluate` takes besides: `store`, `budget`, `limits`.
    """

    def __init__(
        self,
        rubric: Rubric | str | Path,
        judge: JudgeLike | None = None,
        *,
        name: str | None = None,
        candidate: Callable[[Any, Any, Any], Candidate] = default_candidate,
        **options: Unpack[GradeOptions],
    ) -> None:
        self._grader = Grader(rubric, judge, options, candidate)
        self._called = name or self._grader.name

    def _name(self) -> str:
        return self._called

    def _run_eval_sync(self, output: Any, expected: Any = None, **given: Any) -> Score:
        return self._score(self._grader.evaluate(given.get("input"), output, expected))

    async def _run_eval_async(self, output: Any, expected: Any = None, **given: Any) -> Score:
        return self._score(await self._grader.aevaluate(given.get("input"), output, expected))

    def _score(self, result: Mapped) -> Score:
        metadata = {"reason": result.reason, "verdict": result.label, "passed": result.passed, "cost": result.cost}
        return Score(name=self._called, score=result.score, metadata={**metadata, **result.metadata})
