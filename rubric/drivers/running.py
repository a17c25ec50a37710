"""Drives a flow: carries its asks to models, concurrently within bounds, and hands back what came."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from rubric.drivers.attempts import attempt
from rubric.exchanges import Ask, Failure, Reply
from rubric.grading.batching import Got, Steps
from rubric.models import model_of

T = TypeVar("T")

CONCURRENCY = 32
"""How many asks of one grade are under way at once."""


async def run(steps: Steps[T], *, concurrency: int = CONCURRENCY) -> T:
    """
    Return what *steps* come to, with each ask answered by the model of its judge.

    Cancelled, it cancels the asks that are under way and waits for them.
    """
    room = asyncio.Semaphore(concurrency)
    try:
        batch = next(steps)
        while True:
            batch = steps.send(await _carry(batch, room))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


async def _carry(batch: tuple[Ask, ...], room: asyncio.Semaphore) -> Got:
    async def carry(ask: Ask) -> Reply | Failure:
        async with room:
            return await attempt(model_of(ask.judge), ask)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(carry(ask)) for ask in batch]
    return tuple(task.result() for task in tasks)
