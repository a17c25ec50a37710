"""
A metric for deepeval: `RubricMetric(rubric)`.

An ungraded test case raises `UngradedError`; run deepeval with `ignore_errors=True` and its `error` holds the
explanation and its `score` is None. deepeval counts such a case as failed in its pass rate: it has no third outcome.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rubric import Budget, Candidate, Grade, Rubric, ToolCall, Ungraded, UngradedError, aevaluate, evaluate
from rubric.embed import Grader, JudgeLike, Limiter, StoreLike, checked_candidate, guided
from rubric.integrations.mapping import importing, mapped, output_text
from rubric.values import AnyJudge

with importing("deepeval", "deepeval"):
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase


def default_candidate(test_case: LLMTestCase) -> Candidate:
    """
    Return the actual output as the candidate, with input, expected output, context and tool calls.

    Raises:
        DefinitionError: There is neither an actual output nor a tool call.
    """
    output = test_case.actual_output
    retrieved = [str(getattr(one, "context", one)) for one in test_case.retrieval_context or ()]
    return Candidate(
        "" if output is None and test_case.tools_called else output_text(output),
        input=test_case.input or "",
        reference=test_case.expected_output or "",
        context="\n\n".join([*(test_case.context or ()), *retrieved]),
        tool_calls=[
            ToolCall(call.name, arguments=call.input_parameters or {}, result=call.output)
            for call in test_case.tools_called or ()
        ],
    )


class RubricMetric(BaseMetric):  # type: ignore[misc]  # deepeval is not typed
    """
    Grade the actual output of a test case against a rubric.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge or the name of a model; None takes the model that the environment has a key for.
        candidate: Makes the candidate of a test case.
        name: The name in deepeval's reports; None takes the rubric's.
        store, budget, limits: What `evaluate` takes under these names.
    """

    @guided
    def __init__(
        self,
        rubric: Rubric | str | Path,
        judge: JudgeLike | None = None,
        *,
        candidate: Callable[[LLMTestCase], Candidate] = default_candidate,
        name: str | None = None,
        store: StoreLike | None = None,
        budget: Budget | None = None,
        limits: Limiter | None = None,
    ) -> None:
        # deepeval copies a metric by its arguments, which it looks up under their names.
        self.rubric, self.judge, self.candidate, self.name = rubric, judge, candidate, name
        self.store, self.budget, self.limits = store, budget, limits
        self._grader = Grader(rubric, judge, {"store": store, "budget": budget, "limits": limits})
        # deepeval shows it and, where a metric does not say itself whether it succeeded, compares with it.
        self.threshold = 0.5 if self._grader.rubric.threshold is None else self._grader.rubric.threshold
        self.evaluation_model = str(getattr(self._grader.judge, "name", self._grader.judge or "default judge"))
        self.include_reason = True

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        """Grade *test_case* and return its score in 0..1."""
        return self._take(evaluate(*self._begin(test_case), **self._grader.options))

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        """Grade *test_case* like `measure`, without holding up the event loop."""
        return self._take(await aevaluate(*self._begin(test_case), **self._grader.options))

    def _begin(self, test_case: LLMTestCase) -> tuple[Candidate, Rubric, AnyJudge | None]:
        """Forget the last result, and return what is graded next, and by what."""
        self.score: float | None = None
        self.success: bool | None = None
        self.reason: str | None = None
        self.error: str | None = None
        self.score_breakdown: dict[str, float] | None = None
        self.evaluation_cost: float | None = None
        self.result: Grade | Ungraded | None = None
        return checked_candidate(self.candidate(test_case), "candidate"), self._grader.rubric, self._grader.judge

    def _take(self, result: Grade | Ungraded) -> float:
        said = mapped(result)
        self.result = result
        self.evaluation_cost, self.reason = said.cost, said.reason
        self.verbose_logs = json.dumps(said.metadata["rubric"])  # deepeval's results have no other place for the digest
        self.input_tokens, self.output_tokens = said.prompt_tokens, said.completion_tokens
        if not isinstance(result, Grade):
            self.error = said.reason
            raise UngradedError(result)
        self.score, self.success = said.score, said.passed
        self.score_breakdown = dict(said.parts)
        return result.score

    def is_successful(self) -> bool:
        """True if the candidate passes: gates decide as well as the score."""
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return self.name or self._grader.rubric.name or "Rubric"
