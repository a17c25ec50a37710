"""
Drive steps, and build the request pipeline: store, concurrency, budget, rate limits, model.

`flow` and the other steps of `rubric.grading` send nothing themselves: they yield batches of asks and are sent the
outcomes. `drive` and `adrive` are the two drivers. Both get each ask to a *transport*, a function from an `Ask` to its
`Reply` or `Failure`. Transports wrap one another like middleware:

    ask -> leads -> store -> dispatcher (retries) -> [turn, place, budget, limits, the store's record] -> model

Every single request passes the part in brackets, retries included, and leaves it when it is through. The store's record
comes last: a request that still waits when the process dies was not sent. An ask for a program takes another way: to
what runs programs, where they are allowed.
"""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Union

from attrs import define, evolve, field, fields_dict, frozen

from rubric.engine.progress import Spent
from rubric.errors import ModelError, RubricError
from rubric.grading.code_checks import forbidden
from rubric.grading.flow import LONG_PREFIX
from rubric.grading.steps import Batch, Got, Steps, T
from rubric.internals import background_loop
from rubric.internals.fields import check_count, refuse
from rubric.models.registry import identity, model_of
from rubric.models.retry import Backoffs, attempt, usage_of
from rubric.models.threads import outcome_in_thread
from rubric.models.windows import deaf_to, may_overflow, refusal, window_of
from rubric.values.checks import Launcher
from rubric.values.judges import AnyJudge, Judge, Model, is_async
from rubric.values.requests import PROGRAMS, Ask, Commit, Failure, Limiter, Reply, Transport, Usage, commit_nothing

if TYPE_CHECKING:
    from rubric.engine.breaker import Breaker
    from rubric.engine.budget import Budget
    from rubric.store.store import Store

CONCURRENCY = 64
"""Requests in flight, and candidates in progress, at once where the caller says nothing else."""

Outcome = Reply | Failure


async def _at_once(outcome: Outcome) -> Outcome:
    return outcome


StoreLike = Union["Store", str, os.PathLike[str]]
"""A store, or the path of one, which is then opened for one call."""

# -- drivers ---------------------------------------------------------------------------------------------


def drive(
    steps: Steps[T],
    transport: Callable[[Ask], Outcome],
    *,
    together: Callable[[Callable[[Ask], Outcome], Batch], Iterable[Outcome]] = map,
) -> T:
    """
    Run *steps* to their result, without an event loop.

    Args:
        steps: What yields batches of asks, such as `flow(candidate, rubric, judge)`.
        transport: Returns the reply or the failure of one ask. It raises nothing for a request that failed; anything
            that it raises ends the steps and is raised here.
        together: Sends a batch, with the outcomes in the order of the asks: `map`, one after another; or the `map` of a
            thread pool.

    Example:
        >>> from rubric import Candidate, Judge, Rubric
        >>> from rubric.driving import Reply, drive, flow
        >>> steps = flow(Candidate("Thank you."), Rubric.of("Is polite"), Judge("any", sealed=False))
        >>> drive(steps, lambda ask: Reply('{"reason": "it thanks", "score": 0.9}')).score
        0.9
    """
    try:
        batch = next(steps)
        while True:
            batch = steps.send(tuple(together(transport, batch)))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


async def adrive(
    steps: Steps[T],
    transport: Transport | None = None,
    *,
    together: Callable[[Transport, Batch], Awaitable[Sequence[Outcome]]] | None = None,
) -> T:
    """
    Run *steps* to their result, on an event loop.

    Cancelled, it cancels the asks in flight and waits for them; likewise when *transport* raises.

    Args:
        steps: What yields batches of asks, such as `flow(candidate, rubric, judge)`.
        transport: Awaited with each ask. None sends asks straight to the models of their judges, 32 at once.
        together: Sends a batch, with the outcomes in the order of the asks. None sends all asks of it at once, as tasks
            of asyncio; a function of yours may send them otherwise, or on another event loop such as Trio's.
    """
    try:
        if together is None:
            check_loop()
        send, send_all = transport or Dispatcher().send, together or _side_by_side
        batch = next(steps)
        while True:
            batch = steps.send(tuple(await send_all(send, batch)))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


def check_loop() -> None:
    """Raise where no asyncio loop runs: under trio, LiteLLM's and aiohttp's clients cannot work."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        message = (
            "this needs asyncio; under trio, drive the flow yourself: adrive(flow(candidate, rubric, "
            "judge), transport, together=...) of rubric.driving, or call rubric.grade in a thread"
        )
        raise RubricError(message) from None


async def _side_by_side(transport: Transport, batch: Batch) -> Got:
    """Send *batch* in this task until an ask waits, then each in its own: a task costs as much as all the rest."""
    if len(batch) == 1:
        return (await transport(batch[0]),)
    done, tasks = list[Outcome](), list[asyncio.Task[Outcome]]()

    async def send(ask: Ask) -> Outcome:
        return await transport(ask)

    try:
        async with asyncio.TaskGroup() as group:

            def send_the_others() -> None:
                tasks.extend([group.create_task(send(ask)) for ask in batch[len(done) + 1 :]])

            others = asyncio.get_running_loop().call_soon(send_the_others)
            try:
                for ask in batch:
                    done.append(await transport(ask))
                    if tasks:
                        break
            finally:
                others.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return (*done, *[task.result() for task in tasks])


async def side_by_side(jobs: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """
    Run *jobs* at once and return their results in order.

    The first error cancels the others, waits for them, and is raised by itself rather than in a group.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job) for job in jobs]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


# -- the dispatcher --------------------------------------------------------------------------------------


@frozen
class Dispatcher:
    """
    Sends asks to the models of their judges, a bounded number at once.

    Args:
        places: Acquired by every request for as long as it is in flight; one that waits for a retry holds none.
        judge: Of the whole run, if there is one: where it fails for good, no more of its members are asked.
        price: Returns the usage of a judge at agreed prices.
        spent: Counts each request, retries included.
    """

    places: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(CONCURRENCY))
    limiter: Limiter | None = None
    model_of: Callable[[Judge], Model] = model_of
    judge: AnyJudge | None = None
    price: Callable[[Judge, Usage], Usage] | None = None
    spent: Spent = field(factory=Spent)
    _breakers: list[Breaker] = field(factory=list)  # one, from the first failure on
    _turns: dict[int, _Turns] = field(factory=dict)  # by the model's id; _Turns keeps the model, so none is used twice
    _queues: dict[int, _ModelQueue] = field(factory=dict)  # by the judge's id; _ModelQueue keeps the judge

    def send(self, ask: Ask) -> Coroutine[Any, Any, Outcome]:
        """Send *ask* to the model of its judge, again where that may help; not if it cannot fit its context window."""
        queue = self._queues.get(id(ask.judge)) or self._queue(ask.judge)
        if ask.media and (failure := deaf_to(ask)) is not None:
            return _at_once(failure)
        if self._breakers and (failure := self._breakers[0].refusal(ask)) is not None:
            return _at_once(failure)
        if queue.window is not None and may_overflow(ask, queue.window):
            return self._check_and_attempt(queue, queue.window, ask)
        return attempt(queue.model, ask, limiter=queue.place, sleep=queue.backoffs.sleep, failed=queue.failed)

    async def _check_and_attempt(self, queue: _ModelQueue, window: int, ask: Ask) -> Outcome:
        return await refusal(ask, window) or await attempt(
            queue.model, ask, limiter=queue.place, sleep=queue.backoffs.sleep, failed=queue.failed
        )

    def _note(self, ask: Ask, failure: Failure) -> None:
        """Note that *ask* failed for good: its judge may be asked no more."""
        if not self._breakers:
            from rubric.engine.breaker import Breaker  # noqa: PLC0415 - for the first failure

            self._breakers.append(Breaker(self.judge))
        self._breakers[0].note(ask, failure, has_replied=self._queues[id(ask.judge)].backoffs.has_replied)

    def _count(self, judge: Judge, outcome: Outcome | None) -> None:
        """Count a request to *judge*; None for one that was cancelled in flight."""
        usage = usage_of(outcome) if isinstance(outcome, Failure) else Usage() if outcome is None else outcome.usage
        self.spent.add(usage if self.price is None else self.price(judge, usage), in_flight=outcome is None)

    def remarks(self) -> tuple[str, ...]:
        """Return what a person should know of how requests were sent, each remark once."""
        return tuple(remark for turns in self._turns.values() if (remark := turns.remark())) if self._turns else ()

    def _queue(self, judge: Judge) -> _ModelQueue:
        model, turns = self.model_of(judge), None
        if getattr(model, "is_serial", False):
            turns = self._turns.get(id(model)) or self._turns.setdefault(id(model), _Turns(model, judge))
        window = judge.context if judge.is_function else window_of(judge)
        queue = _ModelQueue(judge, model, turns, self.places, self.limiter, self._note, self._count, window)
        return self._queues.setdefault(id(judge), queue)


@frozen
class _ModelQueue:
    """Where the requests to one judge wait."""

    judge: Judge  # kept, so that its id is not used again
    model: Model
    turns: _Turns | None  # taken first: meanwhile it takes no place from other models, and its deadline does not run
    places: asyncio.Semaphore
    limiter: Limiter | None
    failed: Callable[[Ask, Failure], None]
    count: Callable[[Judge, Outcome | None], None]
    window: int | None = None
    backoffs: Backoffs = field(factory=Backoffs)

    def place(self, ask: Ask) -> AbstractAsyncContextManager[Commit]:
        return _Place(self, None if self.limiter is None else self.limiter(ask))


@define(eq=False)
class _Place(AbstractAsyncContextManager[Commit]):
    """A turn, a place among the requests in flight, then the limiter. Written out, since each request passes it."""

    _queue: _ModelQueue
    _limiter: AbstractAsyncContextManager[Commit] | None
    _commit: Commit = commit_nothing
    _began: float = 0.0

    async def __aenter__(self) -> Commit:
        if self._queue.turns is not None:
            self._began = await self._queue.turns.begin()
        has_place = False
        try:
            has_place = await self._queue.places.acquire()
            if self._limiter is not None:
                self._commit = await self._limiter.__aenter__()
        except BaseException:
            self._leave(has_place=has_place)
            raise
        return self._commit_both

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if kind is not None:  # cancelled: a model raises nothing else
            self._queue.count(self._queue.judge, None)
        try:
            return None if self._limiter is None else await self._limiter.__aexit__(kind, error, trace)
        finally:
            self._leave(has_place=True)

    def _commit_both(self, outcome: Outcome | None) -> None:
        self._commit(outcome)
        self._queue.backoffs.commit(outcome)
        if outcome is not None:
            self._queue.count(self._queue.judge, outcome)

    def _leave(self, *, has_place: bool) -> None:
        if has_place:
            self._queue.places.release()
        if self._queue.turns is not None:
            self._queue.turns.end(self._began)


_SLOW, _SLOW_CALL = 0.5, 0.01
"""Seconds in all, and for a call, above which a function that holds up others is remarked on: no script is so slow."""

_FAST, _AHEAD = 0.001, 31
"""A function that takes fewer seconds has so many calls wait in its thread: to wake it costs more than such a call."""


@define(eq=False)
class _Turns:
    """The turns, *width* of them, of requests to a model that takes a few calls at a time, and counts its seconds."""

    model: Any
    judge: Judge
    waiting: int = 0
    calls: int = 0
    seconds: float = 0.0
    is_told: bool = False
    width: int = field(init=False)
    _places: asyncio.Semaphore = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.width = getattr(self.model, "threads", 1)
        self._places = asyncio.Semaphore(self.width)

    async def begin(self) -> float:
        """Wait for a turn; return how long the model has been busy by then, for `end`."""
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        return float(getattr(self.model, "busy", 0.0))

    def end(self, began: float) -> None:
        """Let the next request have its turn, or two or none of them if there are to be more turns, or fewer."""
        is_fast = getattr(self.model, "pace", _FAST) < _FAST
        wanted = getattr(self.model, "threads", 1) + (_AHEAD if is_fast else 0)
        change = (wanted > self.width) - (wanted < self.width)
        self.width += change
        for _ in range(1 + change):
            self._places.release()
        if self.waiting:
            self.calls += 1
            self.seconds += (getattr(self.model, "busy", 0.0) - began) / self.width

    def remark(self) -> str:
        """Return once that calls have waited for slow ones of a sync function; '' where the user has chosen so."""
        is_slow = self.seconds >= max(_SLOW, self.calls * _SLOW_CALL)
        if self.is_told or not is_slow or self.judge.threads > 1:
            return ""
        self.is_told = True
        return (
            f"{self.judge.name} is a synchronous function, so its calls wait for one another; if it may be called side "
            f"by side, say so: Judge(function, threads=8), or make it async"
        )


async def _send_priced(transport: Transport, price: Callable[[Judge, Usage], Usage], ask: Ask) -> Outcome:
    outcome = await transport(ask)
    return evolve(outcome, usage=price(ask.judge, outcome.usage))


def _send(transport: Transport, spent: Spent, budget: Budget | None, ask: Ask) -> Awaitable[Outcome]:
    """Send *ask* by *transport*, or run its program."""
    return transport(ask) if ask.program is None else _run(ask, ask.program, spent, budget)


async def _run(ask: Ask, program: Launcher, spent: Spent, budget: Budget | None) -> Outcome:
    """Run *program*, count its cost, and charge *budget* with it, which nothing can hold back."""
    run = PROGRAMS.get()
    outcome = forbidden(ask.criteria[0], program.scripts) if run is None else await run(ask)
    spent.add(outcome.usage)
    if budget is not None:
        budget.charge(outcome.usage)
    return outcome


_MOST_LEADS = 256  # tasks, with the text of each


@frozen
class Leads:
    """
    Sends the first request about a task ahead of the others that share a long prefix with it.

    `rubric.grading.flow` does so for the asks about one candidate. Completions of one task are graded side by side, and
    would all be billed for the whole task: a vendor caches a prefix when the first request that has it is answered.
    A judge with `prime=False` saves that round. An ask without such a prefix costs nothing here.
    """

    transport: Transport
    _leads: dict[tuple[str, str, str], asyncio.Event] = field(factory=dict)

    def send(self, ask: Ask) -> Awaitable[Outcome]:
        """Send *ask*, once the first ask with its prefix has an outcome, whatever it is."""
        if (cuts := ask.messages[-1].cuts) and ask.judge.prime:
            system = ask.messages[0].text
            shortest = LONG_PREFIX - len(system)
            if cuts[-1] >= shortest:
                cut = cuts[bisect_left(cuts, shortest)]
                return self._in_order((ask.judge.name, system, ask.messages[-1].parts[0][:cut]), ask)
        return self.transport(ask)

    async def _in_order(self, prefix: tuple[str, str, str], ask: Ask) -> Outcome:
        lead = self._leads.get(prefix)
        if lead is not None:
            await lead.wait()
            return await self.transport(ask)
        if len(self._leads) >= _MOST_LEADS:  # the oldest; the asks that wait for it hold it themselves
            del self._leads[next(iter(self._leads))]
        lead = self._leads[prefix] = asyncio.Event()
        try:
            return await self.transport(ask)
        finally:
            lead.set()


def chain_limiters(*several: Limiter | None) -> Limiter | None:
    """Return one limiter that passes a request through all of *several*, in order; None for none."""
    # They are left in the reverse order, and each is told the outcome. A request that one of them refuses, or that is
    # cancelled while it waits there, was not sent: the limiters before it are told so.
    present = [limiter for limiter in several if limiter is not None]
    if len(present) < 2:  # noqa: PLR2004
        return present[0] if present else None
    return partial(_chain, present)


@asynccontextmanager
async def _chain(several: Sequence[Limiter], ask: Ask) -> AsyncIterator[Commit]:
    async with AsyncExitStack() as stack:
        commits: list[Commit] = []

        def commit(outcome: Outcome | None) -> None:
            for each in commits:
                each(outcome)

        try:
            for limiter in several:
                # Not in one expression with the append: `commits` is the list as it is after the wait.
                entered = await stack.enter_async_context(limiter(ask))
                commits.append(entered)
        except BaseException:
            commit(None)
            raise
        yield commit


# -- the pipeline ----------------------------------------------------------------------------------------


@frozen
class Pipeline:
    """
    The way of requests through store, budget and limits to a model; see `pipeline`. Leaving `with` closes it.

    Args:
        send: A transport for `adrive`: awaited with an ask, it returns the reply or the failure.
        dispatcher: Where requests get their places.
        own: The store that was opened for it, and is closed with it.
        keeps: Whether a store keeps the replies.
    """

    send: Transport
    dispatcher: Dispatcher
    own: Store | None = None
    keeps: bool = False

    def check(self, judge: AnyJudge) -> None:
        """
        Refuse *judge* before it is asked, if the store could not tell its replies from those of another version of it.

        Raises:
            DefinitionError: It has the line that works.
        """
        if self.keeps:
            from rubric.store.cache_key import check_identity  # noqa: PLC0415 - most runs keep no replies

            check_identity(judge)

    def send_blocking(self, ask: Ask) -> Outcome:
        """
        Send *ask* and wait for its outcome: a transport for `drive`. Any thread may call it.

        It runs on the library's background loop, so it and `send` must not be mixed on one pipeline: its places belong
        to one event loop.
        """

        async def sent() -> Outcome:
            return await self.send(ask)

        return background_loop.run(sent())

    def close(self) -> None:
        """Close the store that was opened for it."""
        if self.own is not None:
            self.own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def pipeline(
    transport: Callable[[Ask], Outcome] | Transport | None = None,
    *,
    concurrency: int = CONCURRENCY,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
) -> Pipeline:
    """
    Build the request pipeline: store, concurrency, budget, rate limits and retries around *transport*.

    Args:
        transport: Sends one request, and returns its reply or failure, or raises `ModelError`. An async function is
            awaited; a blocking one is called in threads of its own, at most *concurrency*. Each call is one attempt
            and ends within the judge's timeout. None: the models of the judges, as `grade` asks them.
        concurrency: Requests in flight at once.
        store: A store, or the path of one; None keeps nothing.
        budget: What may be spent.
        limits: How fast models may be asked.

    Raises:
        DefinitionError: An argument of another kind.
        StoreError: The store at a path cannot be opened.
    """
    if transport is not None and not callable(transport):
        raise refuse("transport", transport, "a function from an Ask to its Reply or Failure, sync or async")
    return Options(concurrency, store, budget, limits).pipeline(transport=transport)


@frozen
class Options:
    """The options that all ways to grade share; `pipeline` says what they mean."""

    concurrency: int = CONCURRENCY
    store: StoreLike | None = None
    budget: Budget | None = None
    limits: Limiter | None = None
    keep: bool | None = None

    def __attrs_post_init__(self) -> None:
        check_count("concurrency", self.concurrency)
        if not (self.keep is None or isinstance(self.keep, bool)):
            raise refuse("keep", self.keep, "True, False, or None: where there is a store")
        store, budget, limits = self.store, self.budget, self.limits
        if not (store is None or isinstance(store, str | os.PathLike)):
            from rubric.store.store import Store  # noqa: PLC0415 - SQLite and cattrs, for a store that is given alone

            if not isinstance(store, Store):
                raise refuse("store", store, "a Store, or the path of one")
        if budget is None and limits is None:
            return
        from rubric.engine.budget import Budget  # noqa: PLC0415 - most runs have none

        if not (budget is None or isinstance(budget, Budget)):
            raise refuse("budget", budget, "a Budget, such as Budget(cost=5.00)")
        if isinstance(limits, Budget | type) or not (limits is None or callable(limits)):
            raise refuse("limits", limits, "Limits, such as Limits(rpm=500)")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return those *given* by name; an unknown one is answered with the one, or the line, that was meant."""
        if not given.keys() <= fields_dict(cls).keys():
            from rubric.internals.guesses import refuse_option  # noqa: PLC0415 - needed for errors alone

            refuse_option(given, fields_dict(cls))
        return cls(**given)

    @property
    def keeps(self) -> bool:
        """True if results keep their transcripts: where it was asked for, else with a store."""
        return self.store is not None if self.keep is None else self.keep

    def pipeline(
        self,
        judge: AnyJudge | None = None,
        transport: Callable[[Ask], Outcome] | Transport | None = None,
        *,
        checks_budget: bool = True,
    ) -> Pipeline:
        """
        Open the pipeline.

        Args:
            judge: Checked first: whether a budget knows the prices that it needs, and a store which function it is.
            transport: Sends one request, instead of the models of the judges.
            checks_budget: False where that comes later: it may load LiteLLM, which takes seconds.

        Raises:
            DefinitionError: A budget that cannot hold.
            StoreError: The store at a path cannot be opened.
        """
        if self.budget is not None and judge is not None and checks_budget:
            self.budget.check(judge)
        if self.store is not None and judge is not None and transport is None:
            from rubric.store.cache_key import check_identity  # noqa: PLC0415 - as above

            check_identity(judge)
        models = model_of if transport is None else _ForeignModel(transport, self.concurrency).of
        places, limiter = asyncio.Semaphore(self.concurrency), chain_limiters(self.budget, self.limits)
        store = self.store
        if isinstance(store, str | os.PathLike):
            from rubric.store.store import Store  # noqa: PLC0415 - as above

            store = Store(store)
        pricing = self.budget.price_usage if self.budget is not None and self.budget.prices else None
        dispatcher = Dispatcher(places, limiter if store is None else store.limiter(limiter), models, judge, pricing)
        send: Transport = dispatcher.send
        if pricing is not None:  # before the store, which keeps the cost
            send = partial(_send_priced, send, pricing)
        transport = send if store is None else store.transport(send, limited=True)
        own = None if store is self.store else store
        send = partial(_send, Leads(transport).send, dispatcher.spent, self.budget)
        return Pipeline(send, dispatcher, own, store is not None)


@frozen
class _ForeignModel:
    """Answers for all judges with a transport of the user's; a blocking one in threads, which no exit waits for."""

    transport: Callable[[Ask], Any]
    threads: int

    def of(self, _: Judge) -> Model:
        return self

    async def answer(self, ask: Ask, /) -> Reply:
        if is_async(self.transport):
            outcome = await self.transport(ask)
        else:
            owner = (*identity(self.transport), "transport")
            outcome, error = await outcome_in_thread(owner, partial(self.transport, ask), self.threads)
            if error is not None:
                raise error
            outcome = await outcome if isinstance(outcome, Awaitable) else outcome
        if isinstance(outcome, Failure):
            raise ModelError(outcome)
        return outcome  # type: ignore[no-any-return]  # `attempt` refuses all but replies
