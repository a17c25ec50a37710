"""The model that the environment has a key for, when it is asked and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from rubric.errors import ModelError, NoJudgeError
from rubric.exchanges import Failure
from rubric.models.defaults import default_judge
from rubric.models.resolving import model_of

if TYPE_CHECKING:
    from rubric.exchanges import Ask, Reply

__all__ = ["EnvironmentModel"]


@frozen
class EnvironmentModel:
    """Stands for whoever judges, in a jury whose file names no model: outside of a suite's run, the default judge."""

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the reply of that model to *ask*."""
        try:
            model = default_judge().model
        except NoJudgeError as problem:
            raise ModelError(Failure("auth", str(problem))) from None
        judge = evolve(ask.judge, model=model)
        return await model_of(judge).answer(evolve(ask, judge=judge))
