"""
When a call leaves: what the store is told between its being claimed and its being through.

A process that dies has sent what has left, and nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from contextvars import ContextVar

from attrs import define

from rubric.drivers.attempts import Gate, Settle, settle_nothing
from rubric.errors import ModelError, StoreError
from rubric.exchanges import Ask, Failure, Reply
from rubric.store.clerks import Clerk, settled

__all__ = ["Departure", "carried", "departing"]

Outcome = Reply | Failure


@define(eq=False)
class Departure:
    """Tells the store when a call leaves, as far as that is told apart from its being claimed."""

    clerk: Clerk
    call: int
    told: bool
    has_left: bool = False
    is_over: bool = False
    is_taken_over: bool = False

    async def leave(self) -> None:
        """Record that the call leaves; it may, once this has returned."""
        if not self.told and not self.has_left:
            may = await settled(self.clerk.write(lambda ledger: ledger.leave(self.call)))
            if not may:
                self.is_taken_over = True
                raise ModelError(Failure("in_doubt", _TAKEN_OVER))
        self.has_left = True

    def settle(self, outcome: Outcome | None) -> None:
        """Record that a request was turned away, so that it is not in doubt while it waits for the next attempt."""
        if not self.told and isinstance(outcome, Failure) and not outcome.in_doubt:
            self.clerk.owe(lambda ledger: ledger.stay(self.call))
            self.has_left = False

    def give_up(self) -> None:
        """Record that nobody waits for the call any more; it is not awaited: who claims it next is behind this."""
        if self.is_over:
            return
        self.is_over = True
        has_left = self.has_left
        with suppress(StoreError):  # it is closed, and what this session had sent is in doubt anyway
            self.clerk.owe(lambda ledger: ledger.doubt(self.call) if has_left else ledger.drop(self.call))


_TAKEN_OVER = "not sent: this process gave no sign for so long that another one has taken the call over"


carried: ContextVar[Departure | None] = ContextVar("departure", default=None)
"""The departure of the call that the running task carries."""


def departing(gate: Gate | None) -> Gate:
    """Return a gate that records each departure, after *gate* has let it through."""

    @asynccontextmanager
    async def passing(ask: Ask) -> AsyncIterator[Settle]:
        inner: AbstractAsyncContextManager[Settle] = nullcontext(settle_nothing) if gate is None else gate(ask)
        async with inner as settle:
            departure = carried.get()
            if departure is None:
                yield settle
                return
            try:
                await departure.leave()
            except BaseException:
                settle(None)  # so it stays here
                raise

            def both(outcome: Outcome | None) -> None:
                departure.settle(outcome)
                settle(outcome)

            yield both

    return passing
