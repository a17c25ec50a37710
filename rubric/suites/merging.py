"""Grading a candidate whose criteria are not all judged by the same judge."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import evolve

from rubric.candidates import Candidate
from rubric.drivers.carrying import Carry
from rubric.drivers.running import run
from rubric.exchanges import Usage
from rubric.findings import Finding
from rubric.grades import Grade, Ungraded, conclude, conclude_votes
from rubric.grading.degenerates import why_degenerate
from rubric.grading.flow import flow
from rubric.grading.voting import members_of, unhurried
from rubric.judges import Bench, Judge
from rubric.rubrics import Rubric
from rubric.suites.benches import Assigned

__all__ = ["graded", "share", "side_by_side"]

T = TypeVar("T")


async def graded(candidate: Candidate, rubric: Rubric, assigned: Assigned, carry: Carry) -> Grade | Ungraded:
    """
    Return what *candidate* comes to, with each criterion judged by the one whom it is *assigned* to.

    Where several judge, each grades its own criteria, and the findings are scored together. With a jury or a panel
    among them, what the others found counts in each of its votes.
    """
    groups = assigned.groups(rubric)
    said_nothing = rubric.degenerate != "judge" and why_degenerate(candidate)
    if said_nothing or len(groups) <= 1:
        return await run(flow(candidate, rubric, groups[0][0] if groups else assigned.bench), carry=carry)
    results = await side_by_side(
        run(flow(candidate, share(rubric, ids), unhurried(bench)), carry=carry) for bench, ids in groups
    )
    others = {finding.id: finding for result in results[1:] for finding in result.findings}
    merged = _merged(rubric, groups[0][0], results[0], others)
    return evolve(
        merged,
        usage=sum((result.usage for result in results), Usage()),
        failures=tuple(failure for result in results for failure in result.failures),
        warnings=_unique(warning for result in results for warning in result.warnings),
    )


async def side_by_side(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return what all *jobs* come to; the first error cancels the others, waits for them, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job) for job in jobs]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def share(rubric: Rubric, ids: Sequence[str]) -> Rubric:
    """Return *rubric* with the criteria called *ids* alone; its outcome means nothing, its findings do."""
    if len(ids) == len(rubric.judged):
        return rubric
    kept = [criterion for criterion in rubric.criteria if criterion.id in ids]
    if not any(criterion.weight for criterion in kept):  # no rubric may consist of what does not count
        kept = [evolve(criterion, weight=1) for criterion in kept]
    return evolve(rubric, criteria=kept)


def _merged(rubric: Rubric, bench: Bench, own: Grade | Ungraded, others: Mapping[str, Finding]) -> Grade | Ungraded:
    """Return what the findings of *bench* come to together with those of the *others*: in every vote, if it votes."""
    if not isinstance(bench, Judge):
        pairs = zip(members_of(bench), own.votes, strict=False)  # a cascade may not have asked its second
        return conclude_votes(rubric, bench, [_merged(rubric, member, vote, others) for member, vote in pairs])
    found = {**others, **{finding.id: finding for finding in own.findings}}
    findings = [found[criterion.id] for criterion in rubric.judged]
    return conclude(rubric, bench, findings, usage=own.usage, failures=own.failures, warnings=own.warnings)


def _unique(warnings: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(warnings))
