"""
An evaluator for pydantic-evals: `RubricEvaluator(rubric)`.

It gives an assertion (passed), a score and a label, and a score a criterion under `rubric.<id>`. An ungraded case
raises, so pydantic-evals reports an evaluator failure, and its averages leave the case out.
"""

from __future__ import annotations

# pyright: reportMissingImports=false
# The harness is not a dependency.
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rubric import Candidate, Grade, Rubric, UngradedError, aevaluate, dumps, loads
from rubric.embed import checked_candidate
from rubric.integrations import mapping
from rubric.integrations.mapping import checked_options, importing, mapped, rubric_of

with importing("pydantic_evals", "pydantic-evals"):
    from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext


def default_candidate(context: EvaluatorContext[Any, Any, Any]) -> Candidate:
    """Return the output as the candidate, with the inputs and the expected output; the output may be a chat."""
    return mapping.default_candidate(context.inputs, context.output, context.expected_output)


@dataclass(repr=False)
class RubricEvaluator(Evaluator[Any, Any, Any]):  # type: ignore[misc]  # pydantic-evals may not be installed
    """
    Grade the output of a case against a rubric.

    Its fields are plain data, so that `Dataset.to_file` writes and `Dataset.from_file` reads them; the version of the
    evaluator is the rubric's digest.

    Args:
        rubric: A free-form text, the path of a file, or the data of a rubric file; a `Rubric` is turned into its data.
        judge: The name of a model, or a judge, which no file can hold; None takes the model that the environment has a
            key for.
        prefix: What the names of the results begin with.
        store, budget, limits: What `evaluate` takes under these names; of them a file can hold the path of a store.
    """

    rubric: str | dict[str, Any]
    judge: Any = None
    prefix: str = "rubric"
    store: Any = None
    budget: Any = None
    limits: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.rubric, Rubric):
            self.rubric = json.loads(dumps(self.rubric, format="json"))
        checked_options(self._options)

    @property
    def _options(self) -> dict[str, Any]:
        return {"store": self.store, "budget": self.budget, "limits": self.limits}

    @property
    def value(self) -> Rubric:
        """The rubric as a value."""
        if isinstance(self.rubric, Mapping):
            return loads(json.dumps(self.rubric))
        return rubric_of(self.rubric)

    def get_evaluator_version(self) -> str:
        """Return the rubric's digest."""
        return self.value.digest

    def candidate(self, context: EvaluatorContext[Any, Any, Any]) -> Candidate:
        """Return the candidate of a case; a subclass may make it otherwise."""
        return default_candidate(context)

    async def evaluate(self, ctx: EvaluatorContext[Any, Any, Any]) -> dict[str, Any]:
        """
        Return assertion, score, label, and a score a criterion.

        Raises:
            UngradedError: The output could not be graded.
        """
        made = checked_candidate(self.candidate(ctx), "candidate")
        result = await aevaluate(made, self.value, self.judge, **self._options)
        said, name = mapped(result), self.prefix
        tokens = {"prompt_tokens": said.prompt_tokens, "completion_tokens": said.completion_tokens}
        spent = tokens if said.cost is None else {"cost_usd": said.cost, **tokens}
        ctx.metrics.update({f"{name}.{key}": value for key, value in spent.items()})
        ctx.attributes[name] = said.metadata["rubric"]
        if not isinstance(result, Grade):
            raise UngradedError(result)
        return {
            f"{name}.passed": EvaluationReason(value=bool(said.passed), reason=said.reason),
            f"{name}.score": EvaluationReason(value=result.score, reason=said.reason),
            f"{name}.verdict": EvaluationReason(value=said.label, reason=said.reason),
            **{f"{name}.{id}": share for id, share in said.parts.items()},
        }
