"""
A scorer for Inspect: `rubric_scorer(rubric)`.

The judge is asked with Inspect's own `get_model().generate`, so its cache, limits, retries, roles and logs apply, under
asyncio and trio. An ungraded sample is `Score.unscored`, which Inspect's metrics leave out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rubric.engine.pipeline import adrive
from rubric.grading.flow import flow
from rubric.integrations.mapping import chat_of, checked_candidate, mapped, missing, rubric_of
from rubric.models.client_models import ClientModel
from rubric.models.client_models import model as model_of
from rubric.values.candidates import Candidate
from rubric.values.judges import Judge, JudgeLike, Panel, as_judge
from rubric.values.requests import Ask, Failure, Reply
from rubric.values.rubrics import Rubric
from rubric.errors import ModelError

try:
    from inspect_ai.model import Model, get_model
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import TaskState
    from inspect_ai.util import collect
except ImportError as error:
    raise missing("inspect_ai", "inspect-ai") from error


def default_candidate(state: TaskState, target: Target) -> Candidate:
    """Return the sample's last completion as the candidate, with its input, target, conversation and tool calls."""
    messages, calls = chat_of(state.messages)
    output = state.output.completion
    before = messages[:-1] if messages and messages[-1].content == output else messages
    return Candidate(output, input=state.input_text, reference=target.text, messages=before[1:], tool_calls=calls)


@scorer(metrics=[mean(), stderr()])
def rubric_scorer(
    rubric: Rubric | str | Path,
    *,
    model: str | Model | None = None,
    model_role: str | None = "grader",
    judge: JudgeLike | None = None,
    candidate: Callable[[TaskState, Target], Candidate] = default_candidate,
) -> Scorer:
    """
    Score samples against a rubric.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        model: The model that judges; None takes that of *model_role*, or else the one that is evaluated.
        model_role: The role whose model judges.
        judge: A judge with settings of ours (temperature, reasoning, a jury, a panel). A judge that names a model is
            asked as it always is, outside of Inspect; `Judge("inspect")` stands for the model above.
        candidate: Makes the candidate of a sample.
    """
    given = rubric_of(rubric)

    async def score(state: TaskState, target: Target) -> Score:
        chosen = get_model(model) if model is not None else get_model(role=model_role)
        by = _judge(judge, chosen)
        made = checked_candidate(candidate(state, target), "candidate")
        result = mapped(await adrive(flow(made, given, by), _send, together=collect))
        metadata = {**result.metadata, "rubric_digest": given.digest}
        if not result.graded:
            return Score.unscored(
                reason="grader_failed", answer=made.output, explanation=result.reason, metadata=metadata
            )
        return Score(value=result.score, answer=made.output, explanation=result.reason, metadata=metadata)

    return score
