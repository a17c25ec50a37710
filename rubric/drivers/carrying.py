"""
How an ask gets to whoever answers it.

A `Carry` takes an ask and returns what came of it; one may wrap another (a store in front of the models). A `Gate` is
what every single request passes on its way out, retries included: a rate limit, a budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from attrs import define, field, frozen

from rubric.drivers.attempts import Gate, Settle, attempt, settle_nothing
from rubric.drivers.backoffs import Backoffs
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
    What may be in flight at once: so many requests in all, and one for a model that takes them one after another.

    Args:
        all: Acquired by every request for as long as it is in flight; one that waits to be tried again holds nothing.
        gate: What every request passes; None lets all through.
    """

    all: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(CONCURRENCY))
    gate: Gate | None = None
    _turns: dict[int, asyncio.Semaphore] = field(factory=dict)
    _models: dict[int, _Desk] = field(factory=dict)  # by the judge's identity

    async def carry(self, ask: Ask) -> Reply | Failure:
        """Take *ask* to the model of its judge."""
        desk = self._models.get(id(ask.judge)) or self._desk(ask.judge)

        def place(each: Ask) -> AbstractAsyncContextManager[Settle]:
            return _Place(desk, self.all, None if self.gate is None else self.gate(each))

        return await attempt(desk.model, ask, gate=place, sleep=desk.backoffs.sleep)

    def _desk(self, judge: Judge) -> _Desk:
        model = model_of(judge)
        turn = self._turns.setdefault(id(model), asyncio.Semaphore(1)) if getattr(model, "is_serial", False) else None
        return self._models.setdefault(id(judge), _Desk(judge, model, turn))


@frozen
class _Desk:
    """
    Where the requests to one judge stand.

    Args:
        judge: Is kept, so that its id is not used again.
        turn: Acquired first, by each request to a model that takes one after another: while it waits for its turn it
            takes no place from other models, and its deadline does not run.
    """

    judge: Judge
    model: Model
    turn: asyncio.Semaphore | None
    backoffs: Backoffs = field(factory=Backoffs)


@define(eq=False)
class _Place(AbstractAsyncContextManager[Settle]):
    """A turn, a place among the requests in flight, and then the gate; written out, for each request passes it."""

    _desk: _Desk
    _all: asyncio.Semaphore
    _gate: AbstractAsyncContextManager[Settle] | None
    _settle: Settle = settle_nothing

    async def __aenter__(self) -> Settle:
        if self._desk.turn is not None:
            await self._desk.turn.acquire()
        try:
            await self._all.acquire()
            try:
                if self._gate is not None:
                    self._settle = await self._gate.__aenter__()
            except BaseException:
                self._all.release()
                raise
        except BaseException:
            self._end_turn()
            raise
        return self._tell

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return None if self._gate is None else await self._gate.__aexit__(kind, error, trace)
        finally:
            self._all.release()
            self._end_turn()

    def _tell(self, outcome: Reply | Failure | None) -> None:
        self._settle(outcome)
        self._desk.backoffs.settle(outcome)

    def _end_turn(self) -> None:
        if self._desk.turn is not None:
            self._desk.turn.release()
