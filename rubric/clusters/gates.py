"""The gate of a worker's requests: the scheduler says when each may leave."""

from __future__ import annotations

import asyncio
import pickle
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import islice
from typing import Any
from uuid import uuid4

from attrs import define, evolve, field
from distributed import Worker

from rubric.clusters.terms import Terms, Wanted
from rubric.drivers.attempts import Settle
from rubric.drivers.bills import Bill, Sum
from rubric.drivers.limits import ADDRESS
from rubric.errors import ModelError
from rubric.exchanges import Ask, Failure, Reply
from rubric.judges import Judge
from rubric.models.ceilings import dearest, most_tokens
from rubric.models.redacting import describe
from rubric.store.identities import digest

__all__ = ["PermitGate"]

_MILLION = 10**6

_AT_ONCE = 64
"""Requests that the scheduler is asked about at once."""


@define(eq=False)
class PermitGate:
    """
    The gate of a worker's requests: each has a permit of the scheduler before it leaves.

    What is wanted while the scheduler is asked waits for the next time, so that it hears of many requests at once, and
    of no more than one line of them for a model.
    """

    terms: Terms
    worker: Worker
    _lines: dict[str, deque[tuple[Wanted, asyncio.Future[None]]]] = field(factory=dict)
    _returns: list[tuple[str, bytes | None]] = field(factory=list)
    _tasks: dict[str, asyncio.Task[None]] = field(factory=dict)

    def __call__(self, ask: Ask) -> AbstractAsyncContextManager[Settle]:
        """Return what the request *ask* passes."""
        return self._passing(ask)

    @asynccontextmanager
    async def _passing(self, ask: Ask) -> AsyncIterator[Settle]:
        tokens, cost, rates = await self._most(ask)
        number = uuid4().hex
        await self._take((number, ask.judge.name, _key(ask.judge), tokens, cost))
        outcomes: list[Reply | Failure | None] = []
        try:
            yield outcomes.append
        finally:
            agreed = isinstance(ask.judge.model, str) and ask.judge.name in self.terms.prices
            self._return(number, pickle.dumps(_told(outcomes[-1], rates, agreed=agreed)) if outcomes else None)

    async def _most(self, ask: Ask) -> tuple[int, float, tuple[float, float] | None]:
        """Return the most tokens and dollars that *ask* may take, and the prices of a token there and back."""
        if not self.terms.counts_tokens:
            return 0, 0.0, None
        sent, back = await most_tokens(ask)
        if self.terms.cost is None:
            return sent + back, 0.0, None
        given = self.terms.prices.get(ask.judge.name)
        rates = dearest(ask.judge, sent) if given is None else (given[0] / _MILLION, given[1] / _MILLION)
        if rates is None:
            raise ModelError(
                Failure("budget", f"not sent: the price of {ask.judge.name!r} is not known to this worker")
            )
        return sent + back, sent * rates[0] + back * rates[1], rates

    async def _take(self, wanted: Wanted) -> None:
        key = wanted[2]
        granted = asyncio.get_running_loop().create_future()
        self._lines.setdefault(key, deque()).append((wanted, granted))
        self._have_done(key, partial(self._ask_for, self._lines[key]))
        await granted

    async def _ask_for(self, line: deque[tuple[Wanted, asyncio.Future[None]]]) -> None:
        while line:
            some = dict(islice(((wanted[0], (wanted, granted)) for wanted, granted in line), _AT_ONCE))
            answers = await self._call(
                "take", worker=self.worker.address, wanted=[wanted for wanted, _ in some.values()]
            )
            for number, refused in answers:
                one = some[number]
                line.remove(one)
                self._hand_over(number, one[1], refused)

    def _hand_over(self, number: str, granted: asyncio.Future[None], refused: bytes | None) -> None:
        if refused is not None and not granted.done():
            granted.set_exception(ModelError(pickle.loads(refused)))  # noqa: S301 - as Dask does
        elif not granted.done():
            granted.set_result(None)
        elif refused is None:  # whoever wanted it has been cancelled
            self._return(number, pickle.dumps(None))

    def _return(self, number: str, outcome: bytes | None) -> None:
        """Give a permit back; nobody waits for that."""
        self._returns.append((number, outcome))
        self._have_done("", self._give_back)

    async def _give_back(self) -> None:
        while self._returns:
            some, self._returns = self._returns, []
            await self._call("settle", outcomes=some)

    def _have_done(self, what: str, how: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have *how* done by a task, unless one does it."""
        if what not in self._tasks:
            self._tasks[what] = asyncio.get_running_loop().create_task(how())
            self._tasks[what].add_done_callback(lambda task: self._done(what, how, task))

    def _done(self, what: str, how: Callable[[], Coroutine[Any, Any, None]], task: asyncio.Task[None]) -> None:
        del self._tasks[what]
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        waiting = self._lines.get(what, self._returns)
        if waiting and error is None:  # it came when the task was about to end
            self._have_done(what, how)
        elif error is not None:
            self._fail(what, error)

    def _fail(self, what: str, error: BaseException) -> None:
        """Tell those that wait in a line that the scheduler is gone, or has ended the run."""
        for _, granted in self._lines.pop(what, ()):
            if not granted.done():
                granted.set_exception(ModelError(Failure("exception", f"not sent: {describe(error)}")))

    async def _call(self, what: str, **given: Any) -> Any:
        """Call the scheduler, on the event loop of the worker, which has the connection."""

        async def call() -> Any:
            service: Callable[..., Awaitable[Any]] = getattr(self.worker.scheduler, self.terms.name(what))
            return await service(**given)

        loop = self.worker.loop.asyncio_loop  # type: ignore[attr-defined]  # Tornado's loop is asyncio's
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), loop))

    async def aclose(self) -> None:
        """Wait until all permits are back."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            await asyncio.sleep(0)


def _key(judge: Judge) -> str:
    address = [str(judge.params.get(name)) for name in ADDRESS]
    return digest("\n".join([judge.name, str(judge.via), *address]))


def _told(
    outcome: Reply | Failure | None, rates: tuple[float, float] | None, *, agreed: bool
) -> Reply | Failure | None:
    """Return of *outcome* what the scheduler needs to know, with the cost that follows from the tokens."""
    if outcome is None:  # it has not left after all
        return None
    bill = Bill(Sum(), rates, agreed, outcome)
    usage = evolve(outcome.usage, cost=bill.cost) if bill.is_metered else outcome.usage
    if isinstance(outcome, Reply):
        return Reply(None, usage=usage)
    return Failure(outcome.kind, "", in_doubt=outcome.in_doubt, retry_after=outcome.retry_after, usage=usage)
