"""Drives a flow: has the asks of each batch carried side by side, and hands back what came."""

from __future__ import annotations

import asyncio

from rubric.drivers.carrying import Carry, Room
from rubric.exchanges import Ask, Failure, Reply
from rubric.grading.batching import Batch, Got, Steps, T

__all__ = ["run"]


async def run(steps: Steps[T], *, carry: Carry | None = None) -> T:
    """
    Return what *steps* come to, with each ask answered by the model of its judge.

    Cancelled, it cancels the asks that are under way and waits for them; so it does when *carry* raises, such as a
    `StoreError`.

    Args:
        steps: What yields asks and is sent what came of them.
        carry: How asks get to who answers them; None: straight to their models, 32 at once.
    """
    carry = carry or Room().carry
    try:
        batch = next(steps)
        while True:
            batch = steps.send(await _carried(carry, batch))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


async def _carried(carry: Carry, batch: Batch) -> Got:
    if len(batch) == 1:
        return (await carry(batch[0]),)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_one(carry, ask)) for ask in batch]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return tuple(task.result() for task in tasks)


async def _one(carry: Carry, ask: Ask) -> Reply | Failure:
    return await carry(ask)
