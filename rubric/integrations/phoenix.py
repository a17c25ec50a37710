"""
An evaluator for Phoenix (`arize-phoenix-evals`): `RubricEvaluator(rubric)`.

An ungraded row has a score without a number and the label `ungraded`, which pandas and Phoenix leave out of averages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

from attrs import evolve

from rubric import Candidate, Rubric, RubricError
from rubric.embed import Grader, JudgeLike, Mapped, fields
from rubric.integrations import mapping
from rubric.integrations.mapping import UNGRADED, GradeOptions, beside, importing

with importing("phoenix", "arize-phoenix-evals"):
    from phoenix.evals import Evaluator, Score
    from phoenix.evals.exceptions import PhoenixException
    from pydantic import BaseModel, ConfigDict


class Fields(BaseModel):
    """The columns that are read, besides those that an input mapping adds for `candidate`."""

    model_config = ConfigDict(extra="allow")
    output: Any
    input: Any = None
    reference: Any = None
    expected: Any = None
    context: Any = None


def default_candidate(row: Mapping[str, Any]) -> Candidate:
    """
    Return the output as the candidate, with input, context, and the reference or else the expected output.

    An output with `messages` is a chat: its last message is the candidate, those before it the conversation, and its
    tool calls are kept.
    """
    found = {name: value for name, value in row.items() if not fields.is_missing(value)}
    reference = found.get("reference", found.get("expected"))
    made = mapping.default_candidate(found.get("input"), found.get("output"), reference)
    return evolve(made, context=beside(found.get("context")))


@contextmanager
def _tried_once() -> Iterator[None]:
    """Raise an error of ours as one of Phoenix's, which it does not try ten times more."""
    try:
        yield
    except RubricError as problem:
        raise PhoenixException(str(problem)) from problem


class RubricEvaluator(Evaluator):  # type: ignore[misc]  # Phoenix may not be installed
    """
    Evaluate the column `output` against a rubric.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge or the name of a model; None takes the model that the environment has a key for.
        name: The name of the score; None takes the rubric's name, or `rubric`.
        candidate: Makes the candidate of a row. A row whose output is missing is ungraded without it.
        options: What `evaluate` takes besides: `store`, `budget`, `limits`.
    """

    def __init__(
        self,
        rubric: Rubric | str | Path,
        judge: JudgeLike | None = None,
        *,
        name: str | None = None,
        candidate: Callable[[Mapping[str, Any]], Candidate] = default_candidate,
        **options: Unpack[GradeOptions],
    ) -> None:
        self._grader = Grader(rubric, judge, options, candidate)
        super().__init__(name=name or self._grader.name, kind="llm", input_schema=Fields)

    def evaluate(self, eval_input: dict[str, Any], input_mapping: Any = None) -> list[Score]:
        """Return the score of a row and those of its criteria; *input_mapping* renames columns."""
        scores: list[Score] = super().evaluate(eval_input, self._with_optional(eval_input, input_mapping))
        return scores

    async def async_evaluate(self, eval_input: dict[str, Any], input_mapping: Any = None) -> list[Score]:
        """Return what `evaluate` returns, without holding up the event loop."""
        scores: list[Score] = await super().async_evaluate(eval_input, self._with_optional(eval_input, input_mapping))
        return scores

    def _with_optional(self, eval_input: Mapping[str, Any], given: Any) -> dict[str, Any]:
        # Phoenix drops columns that its schema does not require, unless a mapping names them.
        named = {name: name for name in Fields.model_fields if name in eval_input}
        return {**named, **(given or self._input_mapping or {})}

    def _evaluate(self, eval_input: dict[str, Any]) -> list[Score]:
        if fields.is_missing(eval_input["output"]):
            return [self._without_output()]
        with _tried_once():
            return self._scores(self._grader.evaluate(eval_input))

    async def _async_evaluate(self, eval_input: dict[str, Any]) -> list[Score]:
        if fields.is_missing(eval_input["output"]):
            return [self._without_output()]
        with _tried_once():
            return self._scores(await self._grader.aevaluate(eval_input))

    def _without_output(self) -> Score:
        why = "there is no output, as of a task that failed; nothing was graded"
        return Score(name=self.name, label=UNGRADED, explanation=why, kind="llm")

    def _scores(self, result: Mapped) -> list[Score]:
        metadata = {"passed": result.passed, "cost": result.cost, **result.metadata}
        whole = Score(
            name=self.name,
            score=result.score,
            label=result.label,
            explanation=result.reason,
            metadata=metadata,
            kind="llm",
        )
        parts = [Score(name=f"{self.name}.{id}", score=share, kind="llm") for id, share in result.parts.items()]
        return [whole, *parts]
