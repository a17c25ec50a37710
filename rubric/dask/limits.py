"""
Limits and a budget for a whole cluster: a plug-in of the scheduler grants each request of a worker a permit.

The scheduler keeps them because it outlives every worker: requests that a worker sent before it died still count. A
worker's `PermitLimiter` asks for a permit before each request leaves, and returns it with the request's result.
docs/how-to/more_than_one_machine.md has what happens if a worker or the scheduler dies.
"""

from __future__ import annotations

import asyncio
import pickle
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import islice
from typing import Any
from uuid import uuid4

from attrs import define, field, frozen
from distributed import Scheduler, SchedulerPlugin, Worker

from rubric import ModelError
from rubric.driving import Ask, Failure, Reply
from rubric.engine import Share

Outcome = Reply | Failure | None
Wanted = tuple[str, str, str, bytes]
"""A request: its number, the model's name, the key of its limiter, and what it may take, pickled."""

Queue = deque[tuple[Wanted, asyncio.Future[None]]]


@frozen
class RunSettings:
    """The name of a *run*, and its *share* of limits and a budget."""

    run: str
    share: Share

    def name(self, service: str) -> str:
        """Return the name of a *service* of the scheduler for this run."""
        return f"rubric-{self.run}-{service}"


_AT_ONCE = 64
"""Requests in one call of the scheduler."""

# -- a worker --------------------------------------------------------------------------------------------

_RETURNS = ""
"""The task that returns permits; the others are named by the key of their queue, which is never empty."""


@define(eq=False)
class PermitLimiter:
    """
    The limiter of a worker's requests: each gets a permit of the scheduler before it leaves.

    A queue for each model has one call of the scheduler in flight; requests that arrive meanwhile go with the next one,
    so that a call carries many.
    """

    settings: RunSettings
    worker: Worker
    _claim: Any = field(init=False)
    _queues: dict[str, Queue] = field(factory=dict)
    _returns: list[tuple[str, bytes | None]] = field(factory=list)
    _tasks: dict[str, asyncio.Task[None]] = field(factory=dict)

    @_claim.default
    def _claims(self) -> Any:
        return self.settings.share.claims()

    @asynccontextmanager
    async def __call__(self, ask: Ask) -> AsyncIterator[Callable[[Outcome], None]]:
        """Return the context in which the request *ask* is sent."""
        (key, claim), number = await self._claim(ask), uuid4().hex
        granted = asyncio.get_running_loop().create_future()
        queue = self._queues.setdefault(key, deque())
        queue.append(((number, ask.judge.name, key, pickle.dumps(claim)), granted))
        self._start(key, partial(self._ask_for, queue))
        await granted
        outcomes: list[Outcome] = []
        try:
            yield outcomes.append
        finally:
            self._return(number, pickle.dumps(claim.count_outcome(outcomes[-1])) if outcomes else None)

    async def _ask_for(self, queue: Queue) -> None:
        while queue:
            some = dict(islice(((wanted[0], (wanted, granted)) for wanted, granted in queue), _AT_ONCE))
            wanted = [wanted for wanted, _ in some.values()]
            answers = await self._call("take", worker=self.worker.address, wanted=wanted)
            for number, refused in answers:
                queue.remove(some[number])
                _, granted = some[number]
                if granted.done():
                    if refused is None:  # its request has been cancelled, and would not return the permit
                        self._return(number, pickle.dumps(None))
                elif refused is None:
                    granted.set_result(None)
                else:
                    granted.set_exception(ModelError(pickle.loads(refused)))  # noqa: S301 - as Dask does

    def _return(self, number: str, outcome: bytes | None) -> None:
        """Return a permit in the background; a finished request does not wait for that."""
        self._returns.append((number, outcome))
        self._start(_RETURNS, self._return_all)

    async def _return_all(self) -> None:
        while self._returns:
            some, self._returns = self._returns, []
            await self._call("settle", outcomes=some)

    def _start(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start the task *name* that does *work*, unless it is running."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.get_running_loop().create_task(work())
            self._tasks[name].add_done_callback(lambda task: self._end_task(name, work, task))

    def _end_task(self, name: str, work: Callable[[], Coroutine[Any, Any, None]], task: asyncio.Task[None]) -> None:
        del self._tasks[name]
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        waiting = self._queues.get(name, self._returns)
        if waiting and error is None:  # it arrived between the task's last look and its end, and would wait for ever
            self._start(name, work)
        elif error is not None:  # the scheduler is gone, or has ended the run
            for _, granted in self._queues.pop(name, ()):
                if not granted.done():
                    granted.set_exception(ModelError(Failure("exception", f"not sent: {Failure.of(error).message}")))

    async def _call(self, service: str, **given: Any) -> Any:
        """Call a *service* of the scheduler on the worker's event loop, which owns the connection."""

        async def call() -> Any:
            function: Callable[..., Awaitable[Any]] = getattr(self.worker.scheduler, self.settings.name(service))
            return await function(**given)

        loop = self.worker.loop.asyncio_loop  # type: ignore[attr-defined]  # Tornado's loop is asyncio's
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), loop))

    async def aclose(self) -> None:
        """Wait until all permits have been returned."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            await asyncio.sleep(0)


# -- the scheduler ---------------------------------------------------------------------------------------

_GRACE = 5.0
"""Seconds until the requests of a dead worker count as finished: a request that it sent may still be in flight."""


@define
class _Permit:
    """The permit of one request: its worker, and what it passed; *commit* takes its outcome."""

    worker: str
    stack: AsyncExitStack = field(factory=AsyncExitStack)
    commit: Callable[[Outcome], None] | None = None

    async def close(self, outcome: Outcome) -> None:
        """Return it with the result of the request; None: it was not sent."""
        if self.commit is not None:
            self.commit(outcome)
        await self.stack.aclose()


class PermitPlugin(SchedulerPlugin):
    """Grants permits to the requests of one run, within the limits and the budget of its *settings*."""

    def __init__(self, settings: RunSettings) -> None:
        self.name = settings.name("permits")
        self._settings = settings

    async def start(self, scheduler: Scheduler) -> None:
        """Register the services that workers and the client call."""
        given = self._settings
        self._scheduler = scheduler
        self._allowance = given.share.allowance()
        self._permits: dict[str, _Permit] = {}
        self._is_over = False
        self._services: dict[str, Callable[..., Any]] = {"take": self.take, "settle": self.settle, "end": self.end}
        scheduler.handlers.update({given.name(name): service for name, service in self._services.items()})

    async def take(self, worker: str, wanted: list[Wanted]) -> list[tuple[str, bytes | None]]:
        """
        Wait until the first of the requests *wanted* is granted or refused, and return all that are by then.

        Each is its number and None, or the failure that refuses it. The worker asks again for the others.

        Args:
            worker: The address of the worker that sends them.
        """
        granting = [asyncio.create_task(self._grant(worker, one)) for one in wanted]
        await asyncio.wait(granting, return_when=asyncio.FIRST_COMPLETED)
        for task in granting:
            task.cancel()
        await asyncio.wait(granting)
        return [(one[0], task.result()) for one, task in zip(wanted, granting, strict=True) if not task.cancelled()]

    async def _grant(self, worker: str, wanted: Wanted) -> bytes | None:
        number, name, key, claim = wanted
        permit = _Permit(worker)
        try:
            admitted = self._allowance.admit(name, key, pickle.loads(claim))  # noqa: S301 - as Dask does
            permit.commit = await permit.stack.enter_async_context(admitted)
            if self._is_over or worker not in self._scheduler.workers:
                message = "not sent: the run is over, or this worker is cut off from it"
                raise ModelError(Failure("exception", message))  # noqa: TRY301
        except (ModelError, asyncio.CancelledError) as error:
            await permit.close(None)
            if isinstance(error, ModelError):
                return pickle.dumps(error.failure)
            raise
        self._permits[number] = permit
        return None

    async def settle(self, outcomes: list[tuple[str, bytes | None]]) -> None:
        """Take permits back, each with the pickled result of its request; None if the result is unknown."""
        for number, outcome in outcomes:
            permit = self._permits.pop(number, None)
            if permit is not None and outcome is not None:
                await permit.close(pickle.loads(outcome))  # noqa: S301 - as Dask does
            elif permit is not None:  # closed without a result, the reservation is charged whole
                await permit.stack.aclose()

    async def end(self) -> tuple[float | None, int, int]:
        """Grant no permit any more, and return what has been spent: US dollars, requests, tokens."""
        self._is_over = True
        taken = self._allowance.taken
        asyncio.get_running_loop().call_later(_GRACE, self._withdraw)
        return taken.cost, taken.calls or 0, taken.tokens or 0

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: Any) -> None:  # noqa: ARG002
        """Take back the permits of a dead *worker* after a grace; the results of its requests are unknown."""
        held = [(number, None) for number, permit in self._permits.items() if permit.worker == worker]
        loop = asyncio.get_running_loop()
        loop.call_later(_GRACE, lambda: loop.create_task(self.settle([*held])))

    def _withdraw(self) -> None:
        for service in self._services:
            self._scheduler.handlers.pop(self._settings.name(service), None)
