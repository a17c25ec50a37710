"""Calls to a vendor's batch API, again where that may help, until it is known what came of a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from rubric.drivers.attempts import persist
from rubric.errors import ModelError
from rubric.exchanges import Ask, Failure, Reply
from rubric.judges import Judge
from rubric.models import openai_batches as vendor
from rubric.models.openai_batches import BatchState, Line

__all__ = ["MOST_LINES", "answers", "created", "found", "in_files"]

T = TypeVar("T")

MOST_LINES = 50_000
"""The most requests that the vendor takes in one batch."""

_MOST_BYTES = 150_000_000


def in_files(wanted: Iterable[tuple[Line, Ask]], size: int) -> Iterator[tuple[Judge, list[Line]]]:
    """Yield what goes into one file each: of one judge, and no more than *size* or than a vendor takes."""
    by_judge: dict[int, tuple[Judge, list[Line]]] = {}
    for line, ask in wanted:
        by_judge.setdefault(id(ask.judge), (ask.judge, []))[1].append(line)
    for judge, every in by_judge.values():
        part: list[Line] = []
        length = 0
        for line in every:
            if part and (len(part) >= min(size, MOST_LINES) or length + len(line.body) > _MOST_BYTES):
                yield judge, part
                part, length = [], 0
            part.append(line)
            length += len(line.body) + 1
        yield judge, part


async def created(judge: Judge, lines: Sequence[Line], mark: str) -> str | Failure:
    """Create a batch of *lines*, and return its id; it is tried again as long as there can be none yet."""

    async def once() -> str | Failure:
        try:
            return await vendor.create(judge, lines, mark)
        except ModelError as error:
            if error.failure.in_doubt:
                raise
            return error.failure

    try:
        made, _ = await persist(once, judge.retries)
    except ModelError as error:
        return error.failure
    return made


async def found(judge: Judge, mark: str) -> str | Failure:
    """Return the id of the batch with *mark*; an empty text if the vendor has none."""
    return await _tried(judge, partial(vendor.find, judge, mark))


async def answers(
    judge: Judge, batch: str, lines: Mapping[str, Line], poll: float
) -> dict[str, Reply | Failure] | Failure:
    """
    Wait until *batch* is over, and return what came of each of its *lines*, by key; a failure where nobody says.

    Args:
        poll: Seconds between two looks at it.
    """
    state = await _over(judge, batch, poll)
    if isinstance(state, Failure):
        return state
    answered: dict[str, Reply | Failure] = {}
    for name in state.files:
        came = await _tried(judge, partial(vendor.replies, judge, name, lines))
        if isinstance(came, Failure):
            return came
        answered |= came
    lost = state.lost(batch)
    return {key: answered.get(key, lost) for key in lines}


async def _over(judge: Judge, batch: str, poll: float) -> BatchState | Failure:
    while True:
        state = await _tried(judge, partial(vendor.state, judge, batch))
        if isinstance(state, Failure) or state.is_over:
            return state
        await asyncio.sleep(poll)


async def _tried(judge: Judge, once: Callable[[], Awaitable[T]]) -> T | Failure:
    async def caught() -> T | Failure:
        try:
            return await once()
        except ModelError as error:
            return error.failure

    outcome, _ = await persist(caught, judge.retries)
    return outcome
