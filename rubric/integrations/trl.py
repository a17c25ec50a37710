"""
A reward function for TRL's trainers: `rubric_reward(rubric, judge)`.

The reward is the score, and 0 where a gate failed (`gated`). An ungraded completion has the reward None, which TRL
leaves out of the baseline. The metric `<name>/ungraded` has their share, and the logged completions the digest of the
rubric and, of one rubric, a column for each criterion.
"""

from __future__ import annotations

import asyncio
import itertools
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rubric import Candidate, DefinitionError, Grade, Rubric, RubricError, Ungraded, agrade_many
from rubric.embed import JudgeLike, candidate_of, fields, shorten
from rubric.engine import AsyncGrading
from rubric.integrations.mapping import beside, checked_options, rubric_of
from rubric.rewards import Audit, dropped, reward_of, rubric_of_row
from rubric.values import as_judge

Reward = Callable[..., Coroutine[Any, Any, list[float | None]]]


def default_candidate(prompt: Any, completion: Any, reference: Any = None) -> Candidate:
    """
    Return the completion as the candidate, with the prompt as its input.

    Of a conversational prompt the last message is the input, and those before it the conversation; the tool calls of a
    conversational completion are kept, and its last message is the candidate.
    """
    made = candidate_of(completion or "", prompt or None, reference=beside(reference))
    return Candidate("", run=made.run, reference=made.reference) if made.unanswered else made


def rubric_reward(
    rubric: Rubric | str | Path | None = None,
    judge: JudgeLike | None = None,
    *,
    rubrics: str | None = None,
    reference: str | None = None,
    name: str | None = None,
    gated: float = 0.0,
    candidate: Callable[[Any, Any, Any], Candidate] = default_candidate,
    deadline: float | None = None,
    dropout: float = 0.0,
    seed: int = 0,
    audit: Audit | None = None,
    **options: Any,
) -> Reward:
    """
    Return an async reward function for `GRPOTrainer(reward_funcs=...)` and TRL's other online trainers.

    Args:
        rubric: A rubric, a free-form text, or the path of a file: one for all prompts.
        judge: A judge or the name of a model; None takes the model that the environment has a key for.
        rubrics: In place of *rubric*: the column of the data set with the rubric of each prompt, in the forms of
            `rubric.rewards.rubric_of_row`.
        reference: The column of the data set that has reference answers; None: there are none.
        name: What TRL's logs call it; None takes the rubric's name, or `rubric`.
        gated: The most that a completion earns whose gate failed, as in `rubric.rewards.reward_of`.
        candidate: Makes the candidate of a prompt, a completion and a reference.
        deadline: Seconds for a batch: what is not graded then has no reward, and is counted as `<name>/late`; the
            audit has what is left of them.
        dropout: The chance of each criterion, but gates, to be left out of a step: the same ones for a whole group.
        seed: Of the dropout; the step counts too.
        audit: Has a second judge grade some completions of each step, and warns if the reward is hacked.
        options: What `agrade_many` takes besides: `store`, `budget`, `limits`, `concurrency`.
    """
    if (rubric is None) == (rubrics is None):
        raise DefinitionError("rubric", 'give one: rubric=..., or the column of those of all prompts, rubrics="..."')
    if isinstance(rubric, str) and rubric.isidentifier():
        cure = f'write rubrics="{rubric}"; for a text of one word, Rubric.of("{rubric}")'
        raise DefinitionError("rubric", f"{rubric!r} may be a column; {cure}")
    given, by = None if rubric is None else rubric_of(rubric), None if judge is None else as_judge(judge)
    fields.check_number("dropout", dropout, 0, 1)
    fields.check_number("gated", gated, 0, 1)
    fields.check_number("deadline", 1 if deadline is None else deadline, 0, above=True)
    _check_audit(audit)
    called = name or (given.name if given is not None else "") or "rubric"
    calls, told = itertools.count(), itertools.count()
    checked_options(options, by)

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
        count, call = len(completions), next(calls)
        references = [None] * count if reference is None else _column(columns, "reference", reference, count)
        rows = zip(_column({"prompts": prompts}, "prompts", "prompts", count), completions, references, strict=True)
        made = [None if row[1] is None else candidate(*row) for row in rows]  # what is not there is ungraded, and no 0
        cells = [] if given is not None else _column(columns, "rubrics", rubrics or "", count)
        own = [given] * count if given is not None else _rubrics(prompts, cells)
        step = getattr(columns.get("trainer_state"), "global_step", call)
        by_prompt = [dropped(one, dropout, f"{seed}/{step}") if dropout else one for one in own]
        _check_groups(prompts, by_prompt)
        stream = agrade_many(made, by_prompt, by, ordered=False, progress=False, **options)
        ends = None if deadline is None else asyncio.get_running_loop().time() + deadline
        results = await _grade_until(stream, count, ends)
        earned = [reward_of(one, gated) for one in results]
        _tell_spent(called, results, options.get("budget"), told)
        metrics = {"ungraded": earned.count(None) / count, "late": results.count(None) / count} if count else {}
        if audit is not None:
            with suppress(TimeoutError):  # what is late is not audited at this step
                async with asyncio.timeout_at(ends):
                    if await audit.areview([one for one in results if one is not None]):
                        warnings.warn(audit.sentence, stacklevel=2)
            metrics |= {"audit/evidence": audit.evidence(), "audit/alarms": len(audit.alarms)}
        if log_metric is not None:
            for metric, value in metrics.items():
                log_metric(f"{called}/{metric}", value)
        if log_extra is not None:
            log_extra(f"{called}/rubric", [one.digest for one in by_prompt])
            for criterion in given.judged if given is not None else ():
                shares = [None if one is None else one.contributions.get(criterion.id) for one in results]
                log_extra(f"{called}/{criterion.id}", shares)
        return earned

    reward.__name__ = reward.__qualname__ = called
    return reward


def _tell_spent(called: str, results: Sequence[Grade | Ungraded | None], budget: Any, told: Iterator[int]) -> None:
    """Warn once, by the number *told*, of *results* that a spent *budget* has left ungraded."""
    failures = [failure for one in results if isinstance(one, Ungraded) for failure in one.failures]
    why = next((failure.message for failure in failures if failure.kind == "budget"), "")
    if why and next(told) == 0:
        said = f"{called}: {why}; completions without a grade have no reward, and nothing is learnt of them"
        warnings.warn(f"{said}; make the reward with a larger budget than {budget!r}", stacklevel=3)


def _check_audit(audit: object) -> None:
    if audit is not None and not (isinstance(audit, Audit) and audit.judge is not None):
        raise fields.refuse("audit", audit, "an Audit with a second judge: Audit(judge)")


async def _grade_until(stream: AsyncGrading, count: int, ends: float | None) -> list[Grade | Ungraded | None]:
    """Return the result of each completion in order, None for those that come after the loop's time *ends*."""
    results: list[Grade | Ungraded | None] = [None] * count
    with suppress(TimeoutError):
        async with asyncio.timeout_at(ends), stream:
            async for each in stream:
                results[each.index or 0] = each
    return results


def _rubrics(prompts: Sequence[Any], cells: Sequence[Any]) -> list[Rubric]:
    """Return the rubric of each cell; the error of one names its row and its prompt."""
    rubrics: list[Rubric] = []
    for row, (prompt, cell) in enumerate(zip(prompts, cells, strict=True)):
        try:
            rubrics.append(rubric_of_row(cell))
        except RubricError as problem:
            raise DefinitionError(f"row {row}, {shorten(repr(prompt), 60)}", str(problem)) from None
    return rubrics


def _check_groups(prompts: Sequence[Any], rubrics: Sequence[Rubric]) -> None:
    """Refuse two rubrics for one prompt: a group has one baseline, and rewards of two versions are not compared."""
    seen: dict[str, str] = {}
    for prompt, rubric in zip(prompts, rubrics, strict=True):
        if seen.setdefault(repr(prompt), rubric.digest) != rubric.digest:
            why = f"the prompt {shorten(repr(prompt), 60)} has two rubrics in one batch"
            raise DefinitionError("rubrics", f"{why}; their rewards have no common baseline: give it one version")


def _column(columns: Mapping[str, Any], field: str, name: str, count: int) -> Sequence[Any]:
    if name not in columns:
        known = ", ".join(sorted(columns)) or "none"
        raise DefinitionError(field, f"the data set has no column {name!r}; its columns are: {known}")
    found: Sequence[Any] = columns[name]
    if len(found) != count:
        raise DefinitionError(field, f"{name!r} has {len(found)} values for {count} completions")
    return found
