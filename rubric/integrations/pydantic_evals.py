"""
An evaluator for pydantic-evals: `RubricEvaluator(rubric)`.

It gives an assertion (passed), a score and a label, and a score a criterion under `rubric.<id>`. An ungraded case
raises, so pydantic-evals reports an evaluator failure, and its averages leave the case out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from rubric import Candidate, DefinitionError, Grade, Rubric, UngradedError, aevaluate, dumps, loads
from rubric.embed import checked_candidate, guided
from rubric.integrations import mapping
from rubric.integrations.mapping import checked_options, importing, mapped, rubric_of

with importing("pydantic_evals", "pydantic-evals"):
    from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext


_AS_DATA = {
    "judge": "before it is written, name a model, such as judge='openai/gpt-5'",
    "store": "before it is written, give its path, store='replies.db'",
    "budget": "before it is written, leave it out, and set evaluator.budget once it is read",
    "limits": "before it is written, leave them out, and set evaluator.limits once it is read",
}
"""The fields that a file holds as a text alone, and the cure for other values."""
_NOT_HELD = "not written, since no file can hold it: a"


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
        for name, cure in _AS_DATA.items():
            if str(getattr(self, name)).startswith(_NOT_HELD):
                raise DefinitionError(name, f"the file that was read cannot hold it; {cure}")
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

    def build_serialization_arguments(self) -> dict[str, Any]:
        """Return the fields as plain data; of a value that no file can hold, a note that is refused when it is read."""
        arguments: dict[str, Any] = super().build_serialization_arguments()
        for name in arguments.keys() & _AS_DATA:
            if not isinstance(arguments[name], str | PathLike):
                arguments[name] = f"{_NOT_HELD} {type(arguments[name]).__name__}"
        return arguments

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
        for key, value in spent.items():  # another evaluator of the case may have spent some, too
            ctx.metrics[f"{name}.{key}"] = ctx.metrics.get(f"{name}.{key}", 0) + value
        taken = sum(each.rpartition("_")[0] == name or each == name for each in ctx.attributes)
        # As pydantic-evals numbers the scores of evaluators of one name.
        ctx.attributes[f"{name}_{taken + 1}" if taken else name] = said.metadata["rubric"]
        if not isinstance(result, Grade):
            raise UngradedError(result)
        return {
            f"{name}.passed": EvaluationReason(value=bool(said.passed), reason=said.reason),
            f"{name}.score": EvaluationReason(value=result.score, reason=said.reason),
            f"{name}.verdict": EvaluationReason(value=said.label, reason=said.reason),
            **{f"{name}.{id}": share for id, share in said.parts.items()},
        }


RubricEvaluator.__init__ = guided(RubricEvaluator.__init__)  # type: ignore[method-assign]  # that of the dataclass
