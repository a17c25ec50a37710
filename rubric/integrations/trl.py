"""
A reward function for TRL's trainers: `rubric_reward(rubric, judge)`.

An ungraded completion has the reward None, which TRL leaves out of the group's baseline. The metric `<name>/ungraded`
has their share, and the logged completions a column for each criterion.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from rubric import Candidate, DefinitionError, Grade, Rubric, Ungraded, agrade_many
from rubric.embed import JudgeLike, candidate_of
from rubric.integrations.mapping import beside, checked_options, rubric_of
from rubric.values import as_judge

Reward = Callable[..., Coroutine[Any, Any, list[float | None]]]


def default_candidate(prompt: Any, completion: Any, reference: Any = None) -> Candidate:
    """
    Return the completion as the candidate, with the prompt as its input.

    Of a conversational prompt the last message is the input, and those before it the conversation; the tool calls of a
    conversational completion are kept, and its last message is the candidate.
    """
    return candidate_of(completion or "", prompt or None, answered=False, reference=beside(reference))


def rubric_reward(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    reference: str | None = None,
    name: str | None = None,
    candidate: Callable[[Any, Any, Any], Candidate] = default_candidate,
    **options: Any,
) -> Reward:
    """
    Return an async reward function for `GRPOTrainer(reward_funcs=...)` and TRL's other online trainers.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge or the name of a model; None takes the model that the environment has a key for.
        reference: The column of the data set that has reference answers; None: there are none.
        name: What TRL's logs call it; None takes the rubric's name, or `rubric`.
        candidate: Makes the candidate of a prompt, a completion and a reference.
        options: What `agrade_many` takes besides: `store`, `budget`, `limits`, `concurrency`.
    """
    given, by = rubric_of(rubric), None if judge is None else as_judge(judge)
    called = name or given.name or "rubric"
    checked_options(options)

    async def reward(
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Any] | None = None,
        *,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        del completion_ids  # the text is graded
        references = _references(columns, reference, len(completions))
        made = [candidate(*each) for each in zip(prompts, completions, references, strict=True)]
        results = [each async for each in agrade_many(made, given, by, progress=False, **options)]
        if log_metric is not None and results:
            log_metric(f"{called}/ungraded", sum(isinstance(each, Ungraded) for each in results) / len(results))
        if log_extra is not None:
            for criterion in given.judged:
                log_extra(f"{called}/{criterion.id}", [_share(each, criterion.id) for each in results])
        return [each.score if isinstance(each, Grade) else None for each in results]

    reward.__name__ = reward.__qualname__ = called
    return reward


def _references(columns: Mapping[str, Any], name: str | None, count: int) -> Sequence[Any]:
    if name is None:
        return [None] * count
    if name not in columns:
        known = ", ".join(sorted(columns)) or "none"
        raise DefinitionError("reference", f"the data set has no column {name!r}; its columns are: {known}")
    found: Sequence[Any] = columns[name]
    return found


def _share(result: Grade | Ungraded, criterion: str) -> float | None:
    share: float | None = result.contributions.get(criterion)
    return share
