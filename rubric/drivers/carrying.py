"""
How an ask gets to whoever answers it.

A `Carry` takes an ask and returns what came of it; one may wrap another (a store in front of the models). A `Gate` is
what every single request passes on its way out, retries included: a rate limit, a budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from types import TracebackType

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


@frozen
class Room:
    """
    What may be under way at once: so many requests in all, and one for a model that takes them one after another.

    Args:
        all: Acquired by every request for as long as it is under way; who waits to try again holds nobody up.
        gate: What every request passes; None lets all through.
    """

    all: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(CONCURRENCY))
    gate: Gate | None = None
    _turns: dict[int, asyncio.Semaphore] = field(factory=dict)
    _models: dict[int, tuple[Judge, Model]] = field(factory=dict)  # by identity, and kept, so that it stays theirs

    async def carry(self, ask: Ask) -> Reply | Failure:
        """Take *ask* to the model of its judge."""
        model = self._model(ask.judge)
        async with self._turn(model):
            return await attempt(model, ask, gate=self._place)

    def _place(self, ask: Ask) -> AbstractAsyncContextManager[Settle]:
        return _Place(self.all, None if self.gate is None else self.gate(ask))

    def _model(self, judge: Judge) -> Model:
        known = self._models.get(id(judge)) or self._models.setdefault(id(judge), (judge, model_of(judge)))
        return known[1]

    def _turn(self, model: Model) -> AbstractAsyncContextManager[object]:
        """Return what to wait for before *model* is asked, so that its deadline does not run while others are."""
        if not getattr(model, "is_serial", False):
            return nullcontext()
        return self._turns.setdefault(id(model), asyncio.Semaphore(1))


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
