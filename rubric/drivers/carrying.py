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
from typing import Any

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

_SLOW, _SLOW_CALL = 0.5, 0.01
"""Seconds in all, and for a call, from which on a function that others wait for is told of: no script takes as long."""


@frozen
class Room:
    """
    What may be in flight at once: so many requests in all, and a few for a model that takes no more.

    Args:
        all: Acquired by every request for as long as it is in flight; one that waits to be tried again holds nothing.
        gate: What every request passes; None lets all through.
    """

    all: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(CONCURRENCY))
    gate: Gate | None = None
    _turns: dict[int, _Turn] = field(factory=dict)
    _models: dict[int, _Desk] = field(factory=dict)  # by the judge's identity

    async def carry(self, ask: Ask) -> Reply | Failure:
        """Take *ask* to the model of its judge."""
        desk = self._models.get(id(ask.judge)) or self._desk(ask.judge)

        def place(each: Ask) -> AbstractAsyncContextManager[Settle]:
            return _Place(desk, self.all, None if self.gate is None else self.gate(each))

        return await attempt(desk.model, ask, gate=place, sleep=desk.backoffs.sleep)

    def remarks(self) -> tuple[str, ...]:
        """Return what a person should know of how asks were carried, and has not been told yet."""
        return tuple(remark for turn in self._turns.values() if (remark := turn.remark()))

    def _desk(self, judge: Judge) -> _Desk:
        model, turn = model_of(judge), None
        if getattr(model, "is_serial", False):
            turn = self._turns.get(id(model)) or self._turns.setdefault(id(model), _Turn(model, judge))
        return self._models.setdefault(id(judge), _Desk(judge, model, turn))


@frozen
class _Desk:
    """
    Where the requests to one judge stand.

    Args:
        judge: Is kept, so that its id is not used again.
        turn: Taken first, by each request to a model that takes a few at a time: while it waits for its turn it takes
            no place from other models, and its deadline does not run.
    """

    judge: Judge
    model: Model
    turn: _Turn | None
    backoffs: Backoffs = field(factory=Backoffs)


@define(eq=False)
class _Turn:
    """
    The turns of requests to a model that takes a few calls at a time.

    Args:
        model: With the seconds of its calls so far, as `busy`.
        judge: One of those that name it.
        waiting: How many requests wait.
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

    async def begin(self) -> float:
        """Wait for a turn, and return how long the model has been busy by then; `end` wants that back."""
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        return float(getattr(self.model, "busy", 0.0))

    def end(self, began: float) -> None:
        """Let the next request have its turn."""
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
    """A turn, a place among the requests in flight, and then the gate; written out, for each request passes it."""

    _desk: _Desk
    _all: asyncio.Semaphore
    _gate: AbstractAsyncContextManager[Settle] | None
    _settle: Settle = settle_nothing
    _began: float = 0.0

    async def __aenter__(self) -> Settle:
        if self._desk.turn is not None:
            self._began = await self._desk.turn.begin()
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
            self._desk.turn.end(self._began)
