"""The verb for those who can wait a day: `grade_in_batches`, at half the price."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from attrs import evolve

from rubric import loops
from rubric.drivers.batch_calls import MOST_LINES
from rubric.drivers.batches import cancelled_in, run_in_batches
from rubric.drivers.budgets import Budget
from rubric.errors import DefinitionError
from rubric.gradebooks import Grades
from rubric.grading.batching import together
from rubric.grading.flow import flow
from rubric.grading.voting import judges_of, unhurried
from rubric.judges import Bench
from rubric.models.openai_batches import has_batches
from rubric.routes import Stored
from rubric.rubrics import Rubric
from rubric.shards import end_mark
from rubric.sources import Candidates, Placed, Source, candidate_at, source_of
from rubric.store import Store
from rubric.store.identities import fingerprint
from rubric.validating import as_path, check_count, check_number
from rubric.verbs import Judging, as_bench, as_rubric

__all__ = ["acancel_batches", "agrade_in_batches", "cancel_batches", "grade_in_batches"]


def grade_in_batches(
    candidates: Candidates,
    rubric: Rubric | str | Path,
    judge: Judging | None,
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str | None] | None = None,
    store: Stored | None = None,
    budget: Budget | None = None,
    size: int = MOST_LINES,
    poll: float = 60.0,
) -> Grades:
    """
    Grade *candidates* through the vendor's batch API, and return their results in order.

    All that can be asked at once goes out as files, round by round; re-asks of unreadable replies and the next
    questions of trees are rounds of their own (`Judge(speculate=True)` asks all questions of a tree in one). A round
    takes as long as the vendor likes, a day at most. Early stops are off: votes that wait for votes wait for days.

    Which batches were sent is kept at *path*. After a crash, a Ctrl-C or a reboot, call it again with the same
    arguments: it waits for the same batches and reads them, and nothing is sent twice. What came to nothing (a batch
    that expired, or was cancelled) is ungraded, costs nothing, and is sent again by the next call.

    Args:
        candidates: As for `grade_many`; all of them are read at once, and one that is none is an error.
        rubric: As for `grade`.
        judge: As for `grade`, with models of OpenAI's alone, or of servers of its batches that
            `params={"api_base": ...}` names. They are asked straight over HTTP, also without `via="http"`.
        path: A file of your own for each run; it holds no text and no key.
        columns: Which column of a row holds which field of a candidate, as for `grade_many`.
        store: Serves what it has, and keeps each answer as soon as it is read: a `Store`, or the path of one.
        budget: What may be spent; at the ordinary price until it is known what it took. What does not fit is sent in a
            later round, or refused.
        size: The most requests a batch: fewer, where the vendor's queue has no room for as many.
        poll: Seconds between two looks at a batch.

    Raises:
        DefinitionError: An argument that cannot be graded with, a judge without batches, or a budget that cannot hold.
        NoJudgeError: No judge was given, and the environment names none.
        StoreError: The store cannot be opened, or not written to.
    """
    return loops.run(
        agrade_in_batches(
            candidates, rubric, judge, path, columns=columns, store=store, budget=budget, size=size, poll=poll
        )
    )


async def agrade_in_batches(
    candidates: Candidates,
    rubric: Rubric | str | Path,
    judge: Judging | None,
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str | None] | None = None,
    store: Stored | None = None,
    budget: Budget | None = None,
    size: int = MOST_LINES,
    poll: float = 60.0,
) -> Grades:
    """Grade *candidates* like `grade_in_batches`, on the running event loop."""
    _check(size, poll)
    file = as_path("path", path)
    graded, bench = as_rubric(rubric), _in_batches(as_bench(judge))
    source = source_of(candidates, columns)
    placed = await _read(source)
    flows = [flow(candidate_at(one.index, one), graded, bench, ahead=False) for one in placed]
    if budget is not None:
        await asyncio.to_thread(budget.check, bench)
    with ExitStack() as opened:
        kept = store if store is None or isinstance(store, Store) else opened.enter_context(Store(store))
        # Gated, though nothing is sent that way: who dies while looking something up leaves nothing in doubt.
        past = None if kept is None else partial(kept.carry, gated=True)
        results = await run_in_batches(together(flows), file, past=past, budget=budget, size=size, poll=poll)
    grades = [evolve(result, index=one.index) for one, result in zip(placed, results, strict=True)]
    return Grades(grades, end=end_mark(source.given, len(grades), lambda: (fingerprint(graded), fingerprint(bench))))


def cancel_batches(path: str | os.PathLike[str], judge: Judging | None = None) -> int:
    """
    Cancel what is under way of the batches that `grade_in_batches` has written down at *path*, and return their number.

    What was answered by then is paid for, and the next run reads it; the rest it sends again.

    Args:
        judge: As it was for `grade_in_batches`: whose keys and addresses the batches were sent with.

    Raises:
        DefinitionError: *path* holds something else.
        ModelError: The vendor does not say.
    """
    return loops.run(acancel_batches(path, judge))


async def acancel_batches(path: str | os.PathLike[str], judge: Judging | None = None) -> int:
    """Cancel batches like `cancel_batches`, on the running event loop."""
    return await cancelled_in(as_path("path", path), judges_of(_in_batches(as_bench(judge))))


def _check(size: object, poll: object) -> None:
    check_count("size", size)
    check_number("poll", poll, 0, 86_400)


def _in_batches(bench: Bench) -> Bench:
    """Return *bench* as it votes in batches; raise `DefinitionError` if one of its judges has none."""
    for judge in judges_of(bench):
        if not has_batches(judge):
            raise DefinitionError("judge", f"{judge.name!r} has no batches here; name a model of OpenAI's")
    return unhurried(bench)


async def _read(source: Source) -> list[Placed]:
    items = source.items
    every = [item async for item in items] if isinstance(items, AsyncIterable) else [*items]
    return [Placed.at(index, item, source.columns) for index, item in enumerate(every)]
