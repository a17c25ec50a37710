"""The three verbs: `grade`, `agrade` (the same, awaited) and `plan`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from attrs import evolve

from rubric.engine.budget import Budget
from rubric.engine.pipeline import Dispatcher, StoreLike, route, run
from rubric.engine.sources import Candidates, candidate_at, holds_many, one_candidate, source_of
from rubric.errors import DefinitionError, UngradedError
from rubric.grading.flow import check, flow
from rubric.grading.planning import Plan, plan_one
from rubric.internals import background_loop
from rubric.internals.fields import refuse
from rubric.models.api_keys import default_judge
from rubric.models.pricing import count_tokens, price, worst_cost
from rubric.results.result import Grade, Ungraded
from rubric.values.candidates import Candidate
from rubric.values.judges import AnyJudge, Cascade, Function, Judge, Jury, Model, Panel, as_judge
from rubric.values.requests import Limiter
from rubric.values.rubrics import Rubric, rubric_of

JudgeLike = Judge | Jury | Panel | Cascade | Model | Function | str | Iterable[Any]
"""Whatever can stand for a judge: one, a jury, a panel, a cascade, a model name, a function, a list (a panel)."""


def grade(
    candidate: Candidate | str | Path,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
) -> Grade:
    """
    Grade *candidate* against *rubric* and return a `Grade`, with one finding for each criterion.

    It may be called anywhere: in scripts, in threads, and inside a running event loop (as in Jupyter).

    Args:
        candidate: What is graded. A text is its output, and so is the text in the file at a `Path`.
        rubric: What it is graded against. A text is a free-form rubric; a `Path` is loaded, as by `load`. A text that
            looks like the path of a file ("rubric.yaml") is refused, here and as a candidate.
        judge: Who judges. A model name stands for a judge of that model, a list for a panel. Left out, the
            environment's API keys name one.
        store: Keeps every reply, and serves what it has: a `Store`, or the path of one.
        budget: What may be spent; grades that are given the same object share it.
        limits: How fast models may be asked: `Limits`, shared like a budget.

    Raises:
        UngradedError: Something could not be judged; its `result` says what, and how the score could have come out.
        DefinitionError: An argument that cannot be graded with.
        LoadError: The file of the rubric holds none.
        NoJudgeError: No judge was given, and the environment names none.
        StoreError: The store cannot be opened, or not written to.
    """
    return whole(background_loop.run(_result(candidate, rubric, judge, store=store, budget=budget, limits=limits)))


async def agrade(
    candidate: Candidate | str | Path,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
) -> Grade:
    """Grade *candidate* like `grade`, without holding up the event loop."""
    return whole(await _result(candidate, rubric, judge, store=store, budget=budget, limits=limits))


async def _result(
    candidate: Candidate | str | Path, rubric: Rubric | str | Path, judge: JudgeLike | None, **way: Any
) -> Grade | Ungraded:
    if isinstance(candidate, Path) or isinstance(rubric, Path):  # a file may be on a slow disk
        candidate, rubric = await asyncio.to_thread(lambda: (one_candidate(candidate), as_rubric(rubric)))
    steps = flow(one_candidate(candidate), as_rubric(rubric), bench := as_bench(judge))
    if all(means is None for means in way.values()):
        room = Dispatcher()
        return remarked(await run(steps, carry=room.carry), room)
    with closing(await asyncio.to_thread(route, **way, bench=bench)) as opened:
        return remarked(await run(steps, carry=opened.carry), opened.room)


def remarked(result: Grade | Ungraded, room: Dispatcher) -> Grade | Ungraded:
    """Return *result* with what a person should know of how its asks, or those of others, went through *room*."""
    remarks = room.remarks()
    return evolve(result, warnings=(*result.warnings, *remarks)) if remarks else result


def whole(result: Grade | Ungraded) -> Grade:
    """Return *result* if it is a `Grade`; raise `UngradedError` if it is not."""
    if isinstance(result, Ungraded):
        raise UngradedError(result)
    return result


def as_bench(judge: JudgeLike | None) -> AnyJudge:
    """Return who judges; None leaves that to the environment."""
    return default_judge() if judge is None else as_judge(judge)


def as_rubric(rubric: Rubric | str | Path) -> Rubric:
    """Return *rubric*; a text is a free-form one, a `Path` is loaded."""
    if isinstance(rubric, Path):
        from rubric.formats.rubrics import load  # noqa: PLC0415 - who grades without files needs no parser of YAML

        return load(rubric)
    if isinstance(rubric, Candidate):
        raise DefinitionError("rubric", "got a Candidate; the candidate comes first, then the rubric, then the judge")
    return rubric_of(rubric)


def plan(
    candidates: Candidate | str | Candidates,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    columns: Mapping[str, str | None] | None = None,
) -> Plan:
    """
    Return what grading would take: calls, tokens, cost, and the exact messages. Nothing is sent.

    Args:
        candidates: One candidate, or several as for `grade_many`: an iterable (not an async one), a column or a frame,
            or the `Path` of such a file. A text is one candidate, and so is any other `Path`.
        rubric: As for `grade`.
        judge: As for `grade`.
        columns: Of several, as for `grade_many`.

    Raises:
        DefinitionError: An argument that cannot be graded with; so too an item that is no candidate.
    """
    bench, graded = as_bench(judge), as_rubric(rubric)
    check(graded)
    if isinstance(candidates, Candidate | str) or (isinstance(candidates, Path) and not holds_many(candidates)):
        candidates = [one_candidate(candidates)]
    source = source_of(candidates, columns)
    several = source.items
    if isinstance(several, AsyncIterable):
        raise refuse("candidates", candidates, "one candidate, an iterable that is not async, or the path of a file")

    def planned(index: int, item: object) -> Plan:
        candidate = candidate_at(index, item, source.columns)
        return plan_one(candidate, graded, bench, count=count_tokens, price=price, worst=worst_cost)

    return Plan.total(planned(index, item) for index, item in enumerate(several))
