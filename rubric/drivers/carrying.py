"""
How an ask gets to whoever answers it.

A `Carry` takes an ask and returns what came of it; one may wrap another (a store in front of the models). A `Gate` is
what every single request passes on its way out, retries included: a rate limit, a budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any

from attrs import define, field, frozen

from rubric.drivers.attempts import Gate, Settle, attempt, settle_nothing
from rubric.exchanges import Ask, Failure, Reply
from rubric.judges import Judge, Model
from rubric.models import model_of

__all__ = ["CONCURRENCY", "Carry", "Room"]

Carry = Callable[[Ask], Awaitable[Reply | Failure]]
"""Takes an ask to whoever answers, and returns what came of it; it raises cancellations and interrupts alone."""

CONCURRENCY = 32
"""How many asks are under way at once where nobody says otherwise."""

_SLOW, _SLOW_CALL = 0.5, 0.01
"""Seconds in all, and for a call, from which on a function that others wait for is told of: no script takes as long."""


@frozen
class Room:
    """
    What may be under way at once: so many requests in all, and a few for a model that takes no more.

    Args:
        all: Acquired by every request for as long as it is under way; who waits to try again holds nobody up.
        gate: What every request passes; None lets all through.
    """

    all: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(CONCURRENCY))
    gate: Gate | None = None
    _turns: dict[int, _Turn] = field(factory=dict)
    _models: dict[int, tuple[Judge, Model]] = field(factory=dict)  # by identity, and kept, so that it stays theirs

    async def carry(self, ask: Ask) -> Reply | Failure:
        """Take *ask* to the model of its judge."""
        model = self._model(ask.judge)
        if not getattr(model, "is_serial", False):
            return await attempt(model, ask, gate=self._place)
        turn = self._turns.get(id(model)) or self._turns.setdefault(id(model), _Turn(model, ask.judge))
        async with turn.taken():
            return await attempt(model, ask, gate=self._place)

    def remarks(self) -> tuple[str, ...]:
        """Return what a person should know of how asks were carried, and has not been told yet."""
        return tuple(remark for turn in self._turns.values() if (remark := turn.remark()))

    def _place(self, ask: Ask) -> AbstractAsyncContextManager[Settle]:
        return _Place(self.all, None if self.gate is None else self.gate(ask))

    def _model(self, judge: Judge) -> Model:
        known = self._models.get(id(judge)) or self._models.setdefault(id(judge), (judge, model_of(judge)))
        return known[1]


@define(eq=False)
class _Turn:
    """
    Who may ask a model that takes a few calls at a time.

    They wait here, and not at the model, so that the deadline of one does not run while others are at it.

    Args:
        model: With the seconds of its calls so far, as `busy`.
        judge: One of those who ask it.
        waiting: How many wait.
        calls: How many calls there were while others waited.
        seconds: How long these calls took.
    """

    model: Any
    judge: Judge
    waiting: int = 0
    calls: int = 0
    seconds: float = 0.0
    is_told: bool = False
    _places: asyncio.Semaphore = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._places = asyncio.Semaphore(getattr(self.model, "threads", 1))

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        began = getattr(self.model, "busy", 0.0)
        try:
            yield
        finally:
            self._places.release()
            if self.waiting:
                self.calls += 1
                self.seconds += getattr(self.model, "busy", 0.0) - began

    def remark(self) -> str:
        """Return once that calls have waited for slow ones of a sync function; nothing where the user has chosen so."""
        is_slow = self.seconds >= max(_SLOW, self.calls * _SLOW_CALL)
        if self.is_told or not is_slow or self.judge.threads > 1:
            return ""
        self.is_told = True
        return (
            f"{self.judge.name} is a synchronous function, so its calls wait for one another; if it may be called side "
            f"by side, say so: Judge(function, threads=8), or make it async"
        )


@define(eq=False)
class _Place(AbstractAsyncContextManager[Settle]):
    """A place among the requests under way, and then the gate; written out, for it is passed by each request."""

    _all: asyncio.Semaphore
    _gate: AbstractAsyncContextManager[Settle] | None

    async def __aenter__(self) -> Settle:
        await self._all.acquire()
        if self._gate is None:
            return settle_nothing
        try:
            return await self._gate.__aenter__()
        except BaseException:
            self._all.release()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return None if self._gate is None else await self._gate.__aexit__(kind, error, trace)
        finally:
            self._all.release()
