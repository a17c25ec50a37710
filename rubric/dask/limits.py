"""
The gate of a worker's requests: the scheduler says when each may leave.

Limits and a budget for a whole cluster.

They are kept by a plugin of the scheduler, which outlives every worker: what a worker sent before it died still counts.
Each request of a worker asks there for a permit, and gives it back when it is through, saying what came of it.

What a run on a cluster may send, in a form that goes to the scheduler and the workers.
"""

from __future__ import annotations

import asyncio
import pickle
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import islice
from typing import Any
from uuid import uuid4

from attrs import define, evolve, field, fields, frozen
from distributed import Scheduler, SchedulerPlugin, Worker

from rubric.engine.budget import Amount, Budget, Reservation, Sum, pico
from rubric.engine.rate_limits import ADDRESS, Limits, ModelLimiter
from rubric.errors import ModelError
from rubric.internals.secrets import describe
from rubric.models.pricing import dearest, most_tokens
from rubric.store.cache_key import digest
from rubric.values.judges import Judge
from rubric.values.requests import Ask, Commit, Failure, Reply

Wanted = tuple[str, str, str, int, float]
"""A request: its number, the model's name, what tells apart models of that name, its most tokens, its most dollars."""


@frozen
class Terms:
    """
    What a run may send, as it goes to the scheduler and the workers: no locks, no state.

    Args:
        run: The name of the run.
        limits: How `Limits` of each model are made, by the model's name; of the others under the empty one.
        cost: What is left of the budget, in US dollars; None for any.
        calls: How many requests are left of the budget; None for any.
        tokens: How many tokens are left of the budget; None for any.
        prices: Of models by their names, as `Budget` has them.
    """

    run: str
    limits: dict[str, dict[str, Any]]
    cost: float | None = None
    calls: int | None = None
    tokens: int | None = None
    prices: dict[str, tuple[float, float]] = field(factory=dict)

    @classmethod
    def of(cls, run: str, limits: Limits | None, left: Amount, prices: Mapping[str, tuple[float, float]]) -> Terms:
        """Return the terms of *run*, for which so much is *left* of a budget with these *prices*."""
        return cls(run, _settings(limits or Limits()), left.cost, left.calls, left.tokens, dict(prices))

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how many tokens a request may take."""
        limited = any(given.get("tpm") is not None for given in self.limits.values())
        return limited or self.cost is not None or self.tokens is not None

    def name(self, what: str) -> str:
        """Return what the scheduler calls one of its services to this run."""
        return f"rubric-{self.run}-{what}"


def _settings(limits: Limits) -> dict[str, dict[str, Any]]:
    every = _given(limits)
    own = {name: {k: v for k, v in _given(each).items() if v is not None} for name, each in limits.by_model.items()}
    return {"": every} | {name: every | {k: v for k, v in each.items() if k != "window"} for name, each in own.items()}


def _given(limits: Limits) -> dict[str, Any]:
    return {
        part.alias or part.name: getattr(limits, part.name)
        for part in fields(Limits)
        if part.init and (part.alias or part.name) not in ("clock", "by_model")
    }


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

    def __call__(self, ask: Ask) -> AbstractAsyncContextManager[Commit]:
        """Return what the request *ask* passes."""
        return self._passing(ask)

    @asynccontextmanager
    async def _passing(self, ask: Ask) -> AsyncIterator[Commit]:
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
    bill = Reservation(Sum(), rates, agreed, outcome)
    usage = evolve(outcome.usage, cost=bill.cost) if bill.is_metered else outcome.usage
    if isinstance(outcome, Reply):
        return Reply(None, usage=usage)
    return Failure(outcome.kind, "", in_doubt=outcome.in_doubt, retry_after=outcome.retry_after, usage=usage)


_GRACE = 5.0
"""Seconds after which the requests of a worker that is gone are taken to be through."""


class _Purse(Budget):
    """A budget that is told beforehand what a request may take."""

    def holding_most(self, most: Sum) -> AbstractAsyncContextManager[Reservation]:
        """Set *most* aside until it is known what the request took."""
        return self._setting_aside(most, "this request")


@define
class _Permit:
    """What lets one request leave: whose it is, how it is given back, and who is told what came of it."""

    worker: str
    stack: AsyncExitStack = field(factory=AsyncExitStack)
    settles: list[Commit] = field(factory=list)

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
        self._limiters: dict[str, ModelLimiter] = {}
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
            permit.settles.append(bill.commit)
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

    def _limiter(self, name: str, key: str) -> ModelLimiter:
        if key not in self._limiters:
            given = self._terms.limits.get(name, self._terms.limits[""])
            self._limiters[key] = Limits(**given).limiter(name)
        return self._limiters[key]

    def _withdraw(self) -> None:
        for what in self._services:
            self._scheduler.handlers.pop(self._terms.name(what), None)
