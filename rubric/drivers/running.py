"""Drives a flow: carries its asks to models, concurrently within bounds, and hands back what came."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TypeVar

from attrs import field, frozen

from rubric.drivers.attempts import attempt
from rubric.exchanges import Ask, Failure, Reply
from rubric.grading.batching import Got, Steps
from rubric.judges import Model
from rubric.models import model_of

T = TypeVar("T")

CONCURRENCY = 32
"""How many asks of one grade are under way at once."""


async def run(steps: Steps[T], *, concurrency: int = CONCURRENCY, room: Room | None = None) -> T:
    """
    Return what *steps* come to, with each ask answered by the model of its judge.

    Cancelled, it cancels the asks that are under way and waits for them. Steps that run side by side share a *room*.
    """
    room = room or Room(asyncio.Semaphore(concurrency))
    try:
        batch = next(steps)
        while True:
            batch = steps.send(await _carry(batch, room))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


@frozen
class Room:
    """What may be under way at once: so many asks in all, and one for a model that takes them one after another."""

    all: asyncio.Semaphore
    _turns: dict[int, asyncio.Semaphore] = field(factory=dict)

    def turn(self, model: Model) -> AbstractAsyncContextManager[object]:
        """Return what to wait for before *model* is asked, so that its deadline does not run while others are."""
        if not getattr(model, "is_serial", False):
            return nullcontext()
        return self._turns.setdefault(id(model), asyncio.Semaphore(1))


async def _carry(batch: tuple[Ask, ...], room: Room) -> Got:
    async def carry(ask: Ask) -> Reply | Failure:
        model = model_of(ask.judge)
        async with room.turn(model), room.all:
            return await attempt(model, ask)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(carry(ask)) for ask in batch]
    return tuple(task.result() for task in tasks)
