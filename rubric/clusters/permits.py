"""
Limits and a budget for a whole cluster.

They are kept by a plugin of the scheduler, which outlives every worker: what a worker sent before it died still counts.
Each request of a worker asks there for a permit, and gives it back when it is through, saying what came of it.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

from attrs import define, field
from distributed import Scheduler, SchedulerPlugin

from rubric.clusters.terms import Terms, Wanted
from rubric.drivers.attempts import Settle
from rubric.drivers.bills import Bill, Sum, pico
from rubric.drivers.budgets import Budget
from rubric.drivers.limits import Limiter, Limits
from rubric.errors import ModelError
from rubric.exchanges import Failure, Reply

__all__ = ["Permits"]

_GRACE = 5.0
"""Seconds after which the requests of a worker that is gone are taken to be through."""


class _Purse(Budget):
    """A budget that is told beforehand what a request may take."""

    def holding_most(self, most: Sum) -> AbstractAsyncContextManager[Bill]:
        """Set *most* aside until it is known what the request took."""
        return self._setting_aside(most, "this request")


@define
class _Permit:
    """What lets one request leave: whose it is, how it is given back, and who is told what came of it."""

    worker: str
    stack: AsyncExitStack = field(factory=AsyncExitStack)
    settles: list[Settle] = field(factory=list)

    async def close(self, outcome: Reply | Failure | None) -> None:
        """Give it back, with what came of the request; None: it has not left."""
        for settle in self.settles:
            settle(outcome)
        await self.stack.aclose()


class Permits(SchedulerPlugin):
    """
    Gives permits to the requests of one run.

    Args:
        terms: What the run may send.
    """

    def __init__(self, terms: Terms) -> None:
        self.name = terms.name("permits")
        self._terms = terms

    async def start(self, scheduler: Scheduler) -> None:
        """Open the services that workers and the client call."""
        self._scheduler = scheduler
        self._budget = _Purse(cost=self._terms.cost, calls=self._terms.calls, tokens=self._terms.tokens)
        self._limiters: dict[str, Limiter] = {}
        self._permits: dict[str, _Permit] = {}
        self._is_over = False
        self._services: dict[str, Callable[..., Any]] = {"take": self.take, "settle": self.settle, "end": self.end}
        scheduler.handlers.update({self._terms.name(what): how for what, how in self._services.items()})

    async def take(self, worker: str, wanted: list[Wanted]) -> list[tuple[str, bytes | None]]:
        """
        Return when the first of the requests *wanted* may leave: the numbers of all that may now, or may not at all.

        Beside a number stands why its request may not leave, or None. Those that are not named may be wanted again.

        Args:
            worker: Whose requests they are, by its address.
        """
        granting = [asyncio.create_task(self._grant(worker, one)) for one in wanted]
        await asyncio.wait(granting, return_when=asyncio.FIRST_COMPLETED)
        for task in granting:
            task.cancel()
        await asyncio.wait(granting)
        return [(one[0], task.result()) for one, task in zip(wanted, granting, strict=True) if not task.cancelled()]

    async def _grant(self, worker: str, wanted: Wanted) -> bytes | None:
        number, name, key, tokens, cost = wanted
        permit = _Permit(worker)
        try:
            bill = await permit.stack.enter_async_context(self._budget.holding_most(Sum(pico(cost), 1, tokens)))
            permit.settles.append(bill.settle)
            permit.settles.append(await permit.stack.enter_async_context(self._limiter(name, key).place(tokens)))
            self._refuse(worker)
        except (ModelError, asyncio.CancelledError) as error:
            await permit.close(None)
            if isinstance(error, ModelError):
                return pickle.dumps(error.failure)
            raise
        self._permits[number] = permit
        return None

    def _refuse(self, worker: str) -> None:
        if self._is_over or worker not in self._scheduler.workers:
            raise ModelError(Failure("exception", "not sent: the run is over, or this worker is cut off from it"))

    async def settle(self, outcomes: list[tuple[str, bytes | None]]) -> None:
        """Take permits back, each with what came of its request, pickled; None where nobody knows."""
        for number, outcome in outcomes:
            permit = self._permits.pop(number, None)
            if permit is not None and outcome is not None:
                await permit.close(pickle.loads(outcome))  # noqa: S301 - as Dask does
            elif permit is not None:
                await permit.stack.aclose()

    async def end(self) -> tuple[float | None, int, int]:
        """Let nothing leave any more, and return what has been spent: US dollars, requests, tokens."""
        self._is_over = True
        spent, held = self._budget.spent, self._budget.held  # what is under way counts as it may turn out
        asyncio.get_running_loop().call_later(_GRACE, self._withdraw)
        cost = None if spent.cost is None else spent.cost + (held.cost or 0.0)
        return cost, (spent.calls or 0) + (held.calls or 0), (spent.tokens or 0) + (held.tokens or 0)

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: Any) -> None:  # noqa: ARG002
        """Take back, in a moment, what *worker* held, which is gone: nobody knows what came of it."""
        held = [(number, None) for number, permit in self._permits.items() if permit.worker == worker]
        loop = asyncio.get_running_loop()
        loop.call_later(_GRACE, lambda: loop.create_task(self.settle([*held])))

    def _limiter(self, name: str, key: str) -> Limiter:
        if key not in self._limiters:
            given = self._terms.limits.get(name, self._terms.limits[""])
            self._limiters[key] = Limits(**given).limiter(name)
        return self._limiters[key]

    def _withdraw(self) -> None:
        for what in self._services:
            self._scheduler.handlers.pop(self._terms.name(what), None)
