"""
A judge plug-in for verifiers (v1): `{"id": "rubric_verifiers", "rubric": "polite.yaml"}` in a task's `judges`.

verifiers finds plug-ins by the name of a top-level module, and `rubric` is one of its own, so the wheel has this module
as `rubric_verifiers` too. A rollout that could not be graded raises: it has an error and no reward.
"""

from __future__ import annotations

from typing import Any, cast

from rubric import Candidate, DefinitionError, Judge, Rubric, Ungraded, UngradedError, aevaluate, model
from rubric.embed import candidate_of_chat, fields
from rubric.integrations.mapping import beside, importing, mapped, rubric_of
from rubric.rewards import reward_of, rubric_of_row

with importing("verifiers", "verifiers"):
    import verifiers.v1 as vf
    from verifiers.v1.clients.base import build_async_openai
    from verifiers.v1.types import ID, Usage

__all__ = ["RubricJudge", "RubricJudgeConfig", "default_candidate"]


class RubricJudgeConfig(vf.JudgeConfig):  # type: ignore[misc]  # verifiers may not be installed
    """
    What `judges` may have besides verifiers' own keys (`name`, `weight`, `model`, `base_url`, `sampling`, ...).

    Args:
        rubric: The path of a rubric file, or a free-form text.
        rubric_field: In its place, the field of the task with a rubric of its own, in a form of `rubric_of_row`.
        answer_field: The field of the task with the reference answer; "": there is none.
        store: The path of a reply store; "": none.
        gated: The most that a rollout earns whose gate failed, as in `rubric.rewards.reward_of`.
    """

    id: ID = "rubric_verifiers"
    rubric: str = ""
    rubric_field: str = ""
    answer_field: str = ""
    store: str = ""
    gated: float = 0.0


def default_candidate(task: Any, trace: Any, answer_field: str = "") -> Candidate:
    """Return the last reply as the candidate, with the prompt, the conversation and the tool calls of the rollout."""
    if answer_field and not hasattr(task, answer_field):
        raise AttributeError(f"the task has no field {answer_field!r}, which answer_field names")
    reference = beside(getattr(task, answer_field, None)) if answer_field else ""
    return candidate_of_chat(trace.messages, output=trace.last_reply, input=task.prompt_text, reference=reference)


class RubricJudge(vf.Judge[float, RubricJudgeConfig]):  # type: ignore[misc]  # verifiers may not be installed
    """Rewards a rollout with the score of a rubric, and logs a metric for each criterion."""

    def __init__(self, config: RubricJudgeConfig) -> None:
        super().__init__(config)
        if config.prompt is not None:
            raise ValueError("prompt has no effect here; a rubric has guidelines, and a template of its own (prompt)")
        if bool(config.rubric) == bool(config.rubric_field):
            raise DefinitionError("rubric", "give rubric, for all tasks, or rubric_field, for one of each; not both")
        fields.check_number("gated", config.gated, 0, 1)
        self.rubric = rubric_of(config.rubric) if config.rubric else None

    def rubric_for(self, task: Any) -> Rubric:
        """Return the rubric of all tasks, or the one that *task* holds."""
        return rubric_of_row(getattr(task, self.config.rubric_field)) if self.rubric is None else self.rubric

    async def score(self, task: Any, trace: Any) -> float:
        """
        Return the score of *trace*, in 0..1; at most `gated` where a gate failed.

        Raises:
            UngradedError: It could not be graded; verifiers keeps the error, and the trace has no reward.
        """
        candidate = default_candidate(task, trace, self.config.answer_field)
        settings = self.config.sampling.model_dump(exclude_none=True)
        own = {name: settings.pop(name) for name in ("temperature", "max_tokens") if name in settings}
        async with build_async_openai(self.config) as client:
            judge = Judge(model(client, self.config.model), **own, params=settings)
            result = await aevaluate(candidate, self.rubric_for(task), judge, store=self.config.store or None)
        said, name = mapped(result), self.reward_name
        trace.info.setdefault("rubric", {})[name] = {**said.metadata["rubric"], "reason": said.reason}
        used = result.usage
        trace.extra_usage.append(
            Usage(
                prompt_tokens=used.prompt_tokens - used.cached_tokens,
                completion_tokens=used.completion_tokens,
                cached_input_tokens=used.cached_tokens,
                cost=used.cost,
            )
        )
        trace.record_metric(f"{name}/ungraded", float(not said.graded))
        trace.record_metrics({f"{name}/{criterion}": share for criterion, share in said.parts.items()})
        if isinstance(result, Ungraded):
            raise UngradedError(result)
        return cast("float", reward_of(result, self.config.gated))  # a grade has one
