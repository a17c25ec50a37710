"""
Waits between two attempts, and the early end of them.

A request that waits to be tried again is not in flight: it holds no place among the requests, and its candidate no
worker. And a backoff that has doubled several times is right only as long as the model is down. When a model answers
again, the requests that wait for it are sent again, a few for each reply, so that full throughput is a few round trips
away and not the longest backoff.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from attrs import define, field

from rubric.exchanges import Failure, Reply

__all__ = ["LONGEST_WAIT", "Backoffs", "parking", "sleep"]

LONGEST_WAIT = 120.0
"""Seconds that a server may ask to wait; more ends it."""

_DARK = 0.5
"""Seconds without a reply after which a model counts as down: where replies keep coming, a backoff has its purpose."""

_WOKEN = 3
"""Requests that one reply wakes: with the next request of its own worker, four times as many in each round trip."""

parking: ContextVar[Callable[[int], None] | None] = ContextVar("parking", default=None)
"""Is told 1 when work of this context begins to wait to be tried again, and -1 when it goes on; set by a worker."""


@contextmanager
def _parked() -> Iterator[None]:
    tell = parking.get()
    if tell is None:
        yield
        return
    tell(1)
    try:
        yield
    finally:
        tell(-1)


async def sleep(seconds: float) -> None:
    """Wait for so many *seconds* before another attempt; the worker takes other work meanwhile."""
    with _parked():
        await asyncio.sleep(seconds)


@define(eq=False)
class Backoffs:
    """
    The requests to one judge that wait to be tried again.

    They belong to one event loop.
    """

    _asleep: dict[asyncio.Future[None], float] = field(factory=dict)  # since when; the first has slept longest
    _replied: float = math.inf  # when the last reply came; before there is one, when the first request fell asleep
    _dawn: float = -math.inf  # what fell asleep before is woken by replies
    _not_before: float = 0.0

    async def sleep(self, seconds: float) -> None:
        """Wait for so many *seconds*, or until the model answers again."""
        loop = asyncio.get_running_loop()
        bell = loop.create_future()
        self._asleep[bell] = loop.time()
        self._replied = min(self._replied, loop.time())
        try:
            with _parked():
                await asyncio.wait([bell], timeout=seconds)
        finally:
            self._asleep.pop(bell, None)

    def settle(self, outcome: Reply | Failure | None) -> None:
        """Take note of what came of a request."""
        if isinstance(outcome, Reply):
            self._wake()
        elif outcome is not None and 0 < (outcome.retry_after or 0) <= LONGEST_WAIT:
            until = asyncio.get_running_loop().time() + (outcome.retry_after or 0)
            self._not_before = max(self._not_before, until)

    def _wake(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._replied >= _DARK:
            # Only what fell asleep in the dark is woken. Were every reply to wake what was just turned away, a server
            # that takes some and turns away others would see all retries of a request within a few milliseconds.
            self._dawn = now
        self._replied = now
        if now < self._not_before:  # one of them may have been told to wait so long
            return
        for _ in range(_WOKEN):
            bell = next(iter(self._asleep), None)
            if bell is None or self._asleep[bell] > self._dawn:
                return
            del self._asleep[bell]
            bell.set_result(None)
