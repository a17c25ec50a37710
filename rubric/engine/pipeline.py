"""
Build the request pipeline: store, concurrency, budget, rate limits, model.

A `Transport` takes an ask and returns its reply or failure. One may wrap another, as the store wraps the models. A
`Limiter` is passed by every single request, retries included: a rate limit, a budget.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any

from attrs import define, field, frozen

from rubric.engine.budget import Budget
from rubric.grading.steps import Batch, Got, Steps, T
from rubric.internals.fields import check_count, refuse
from rubric.models.registry import model_of
from rubric.models.retry import Backoffs, attempt
from rubric.store.store import Store
from rubric.values.judges import AnyJudge, Judge, Model
from rubric.values.requests import Ask, Commit, Failure, Limiter, Reply, Transport, commit_nothing

CONCURRENCY = 32
"""How many asks are under way at once where nobody says otherwise."""

_SLOW, _SLOW_CALL = 0.5, 0.01
"""Seconds in all, and for a call, from which on a function that others wait for is told of: no script takes as long."""


@frozen
class Dispatcher:
    """
    What may be in flight at once: so many requests in all, and a few for a model that takes no more.

    Args:
        all: Acquired by every request for as long as it is in flight; one that waits to be tried again holds nothing.
        gate: What every request passes; None lets all through.
    """

    all: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(CONCURRENCY))
    gate: Limiter | None = None
    _turns: dict[int, _Turns] = field(factory=dict)
    _models: dict[int, _ModelQueue] = field(factory=dict)  # by the judge's identity

    async def carry(self, ask: Ask) -> Reply | Failure:
        """Take *ask* to the model of its judge."""
        desk = self._models.get(id(ask.judge)) or self._desk(ask.judge)

        def place(each: Ask) -> AbstractAsyncContextManager[Commit]:
            return _Place(desk, self.all, None if self.gate is None else self.gate(each))

        return await attempt(desk.model, ask, gate=place, sleep=desk.backoffs.sleep)

    def remarks(self) -> tuple[str, ...]:
        """Return what a person should know of how asks were carried, and has not been told yet."""
        return tuple(remark for turn in self._turns.values() if (remark := turn.remark()))

    def _desk(self, judge: Judge) -> _ModelQueue:
        model, turn = model_of(judge), None
        if getattr(model, "is_serial", False):
            turn = self._turns.get(id(model)) or self._turns.setdefault(id(model), _Turns(model, judge))
        return self._models.setdefault(id(judge), _ModelQueue(judge, model, turn))


@frozen
class _ModelQueue:
    """
    Where the requests to one judge stand.

    Args:
        judge: Is kept, so that its id is not used again.
        turn: Taken first, by each request to a model that takes a few at a time: while it waits for its turn it takes
            no place from other models, and its deadline does not run.
    """

    judge: Judge
    model: Model
    turn: _Turns | None
    backoffs: Backoffs = field(factory=Backoffs)


@define(eq=False)
class _Turns:
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
class _Place(AbstractAsyncContextManager[Commit]):
    """A turn, a place among the requests in flight, and then the gate; written out, for each request passes it."""

    _desk: _ModelQueue
    _all: asyncio.Semaphore
    _gate: AbstractAsyncContextManager[Commit] | None
    _settle: Commit = commit_nothing
    _began: float = 0.0

    async def __aenter__(self) -> Commit:
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


def gates(*several: Limiter | None) -> Limiter | None:
    """
    Return one gate that a request passes where it is to pass all of *several*, in order; None for none.

    They are left in the reverse order; each is told what came of the request. Where it gets no further than one of them
    (it is refused there, or cancelled while it waits), those before are told that it has not left.
    """
    present = [gate for gate in several if gate is not None]
    if len(present) < 2:  # noqa: PLR2004
        return present[0] if present else None
    return partial(_passage, present)


@asynccontextmanager
async def _passage(several: Sequence[Limiter], ask: Ask) -> AsyncIterator[Commit]:
    async with AsyncExitStack() as stack:
        settles: list[Commit] = []

        def settle(outcome: Reply | Failure | None) -> None:
            for each in settles:
                each(outcome)

        try:
            for gate in several:
                told = await stack.enter_async_context(gate(ask))
                settles.append(told)
        except BaseException:
            settle(None)
            raise
        yield settle


async def run(steps: Steps[T], *, carry: Transport | None = None) -> T:
    """
    Return what *steps* come to, with each ask answered by the model of its judge.

    Cancelled, it cancels the asks that are under way and waits for them; so it does when *carry* raises, such as a
    `StoreError`.

    Args:
        steps: What yields asks and is sent what came of them.
        carry: How asks get to who answers them; None: straight to their models, 32 at once.
    """
    carry = carry or Dispatcher().carry
    try:
        batch = next(steps)
        while True:
            batch = steps.send(await _carried(carry, batch))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


async def _carried(carry: Transport, batch: Batch) -> Got:
    if len(batch) == 1:
        return (await carry(batch[0]),)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_one(carry, ask)) for ask in batch]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return tuple(task.result() for task in tasks)


async def _one(carry: Transport, ask: Ask) -> Reply | Failure:
    return await carry(ask)


StoreLike = Store | str | os.PathLike[str]
"""A store, or the path of one, which is then opened for the occasion."""


@frozen
class Pipeline:
    """
    A way for asks.

    Args:
        carry: Takes an ask along it.
        room: Where its requests find their places.
        own: The store that was opened for it, and is closed with it.
    """

    carry: Transport
    room: Dispatcher
    own: Store | None = None

    def close(self) -> None:
        """Close what was opened for it."""
        if self.own is not None:
            self.own.close()


def route(
    *,
    concurrency: int = CONCURRENCY,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
    bench: AnyJudge | None = None,
) -> Pipeline:
    """
    Return the way by *store*, *budget* and *limits*.

    What a request passes last is the store's record that it leaves: what still waits when a process dies was not sent.

    Args:
        concurrency: How many asks are under way at once.
        store: A store, or the path of one; None keeps nothing.
        budget: What may be spent.
        limits: How fast models may be asked.
        bench: Who judges, where it is to be seen first that the budget can hold. It may load LiteLLM.

    Raises:
        DefinitionError: An argument of another kind, or a budget that cannot hold.
        StoreError: The store at a path cannot be opened.
    """
    _check(concurrency, store, budget, limits)
    if budget is not None and bench is not None:
        budget.check(bench)
    gate = gates(budget, limits)
    if store is None:
        room = Dispatcher(asyncio.Semaphore(concurrency), gate)
        return Pipeline(room.carry, room)
    kept = store if isinstance(store, Store) else Store(store)
    room = Dispatcher(asyncio.Semaphore(concurrency), kept.gate(gate))
    return Pipeline(kept.carry(room.carry, gated=True), room, None if kept is store else kept)


def _check(concurrency: object, store: object, budget: object, limits: object) -> None:
    check_count("concurrency", concurrency)
    if not (store is None or isinstance(store, Store | str | os.PathLike)):
        raise refuse("store", store, "a Store, or the path of one")
    if not (budget is None or isinstance(budget, Budget)):
        raise refuse("budget", budget, "a Budget, such as Budget(cost=5.00)")
    if isinstance(limits, Budget | type) or not (limits is None or callable(limits)):
        raise refuse("limits", limits, "Limits, such as Limits(rpm=500)")
