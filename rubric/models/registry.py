"""
From a judge to the model that answers for it (`model_of`), and the models that are functions of the user's.

An async function is awaited on the caller's loop. A sync one is called in threads of its own: one, unless the user
allows more. So it need not be thread-safe, and objects that belong to a thread (a connection of sqlite3) work as long
as the function is in use. At most four idle threads are kept; so judges that come and go, such as a lambda a sample,
leave no more than that. Only pending calls keep a function alive.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Hashable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread, current_thread
from time import perf_counter
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from attrs import define, evolve, field, frozen

from rubric.errors import ModelError, NoJudgeError
from rubric.internals.secrets import describe
from rubric.models.api_keys import default_judge, surely_missing_key
from rubric.models.litellm import LiteLLMModel
from rubric.models.offline import OFFLINE, OfflineModel
from rubric.values.clients import client_kind
from rubric.values.judges import Model, is_async
from rubric.values.requests import Failure, Reply, Usage

if TYPE_CHECKING:
    from rubric.values.judges import Function, Judge
    from rubric.values.requests import Ask


_MOST_IDLE = 4
_Job = tuple["Future[Any]", Callable[[], Any]]


@define(eq=False)
class _Pool:
    """
    The threads of one function.

    Args:
        jobs: Calls that wait; None ends the thread that takes it.
        workers: The threads, with the call that each executes.
        pending: The number of unfinished calls, waiting ones included.
    """

    jobs: SimpleQueue[_Job | None] = field(factory=SimpleQueue)
    workers: dict[Thread, Future[Any] | None] = field(factory=dict)
    pending: int = 0

    def start(self) -> None:
        # A daemon: the interpreter waits at exit for an executor of the standard library, and so for a call that hangs.
        worker = Thread(target=_work, args=(self,), name="rubric-judge", daemon=True)
        self.workers[worker] = None
        try:
            worker.start()
        except BaseException:
            del self.workers[worker]
            raise


_threads_lock = Lock()
_pools: dict[Hashable, _Pool] = {}  # the one that was used last comes last
# The lock is held for all changes of pools: otherwise a pool could get a call just after the None that ends its thread.


def submit(owner: Hashable, call: Callable[[], Any], threads: int = 1) -> Future[Any]:
    """
    Have a thread of *owner* call *call*; calls start in the order of submission.

    Args:
        owner: Identifies a function while it is alive; a later one may have the same.
        call: It must not raise.
        threads: How many threads there may be, the same in each call for this *owner*.

    Raises:
        RuntimeError: The system starts no more threads.
    """
    future: Future[Any] = Future()
    with _threads_lock:
        pool = _pools.pop(owner, None) or _Pool()
        _pools[owner] = pool
        if len(pool.workers) < min(threads, pool.pending + 1):
            pool.start()
        pool.pending += 1
        pool.jobs.put((future, call))
    return future


def abandon(owner: Hashable, future: Future[Any]) -> None:
    """Give up the call of *future*: a thread that hangs in it is left behind, and another takes its place."""
    with _threads_lock:
        pool = _pools.get(owner)
        hung = [] if pool is None else [worker for worker, at in pool.workers.items() if at is future]
        if pool is None or not hung:
            return
        del pool.workers[hung[0]]
        pool.pending -= 1
        if not (pool.pending or pool.workers):
            del _pools[owner]
        elif pool.pending > len(pool.workers):
            with suppress(RuntimeError):  # no more threads: the next call tries again, and is told
                pool.start()


def _work(pool: _Pool) -> None:
    me = current_thread()
    while (job := pool.jobs.get()) is not None:
        future, call = job
        del job
        with _threads_lock:
            pool.workers[me] = future
        if future.set_running_or_notify_cancel():
            future.set_result(call())
        del future, call  # nothing is kept alive while waiting for the next one
        if not _goes_on(pool, me):
            return


def _goes_on(pool: _Pool, me: Thread) -> bool:
    """Record that the call of *me* is finished; False if it was abandoned."""
    with _threads_lock:
        if me not in pool.workers:
            return False
        pool.workers[me] = None
        pool.pending -= 1
        if not pool.pending:
            _end_the_oldest()
        return True


def _end_the_oldest() -> None:
    """End the threads of idle pools, the least recently used first, until few enough are idle."""
    idle = [(owner, pool) for owner, pool in _pools.items() if not pool.pending]
    surplus = sum(len(pool.workers) for _, pool in idle) - _MOST_IDLE
    for owner, pool in idle:
        if surplus <= 0:
            return
        del _pools[owner]  # from now on it gets no call, so nothing comes after the None
        surplus -= len(pool.workers)
        for _ in pool.workers:
            pool.jobs.put(None)


def _forget_after_fork() -> None:
    """Drop the parent's threads, which do not exist in this child, and the lock, which one of them may have held."""
    global _threads_lock  # noqa: PLW0603
    _threads_lock = Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


_Outcome = tuple[Any, BaseException | None]


class FunctionModel:
    """
    Answers with the result of *function*.

    A sync function is called in a thread of its own, one call after another, in the order of the asks; it need not be
    thread-safe, and it may be a script. With more *threads*, as many calls run at once. An async function is awaited on
    the caller's loop, several calls at once.
    """

    def __init__(self, function: Function, /, *, threads: int = 1) -> None:
        self._function = function
        self._is_async = is_async(function)
        self._owner = (*identity(function), threads)
        self.threads = threads
        self.busy = 0.0
        """Seconds that calls of a sync function have taken so far."""

    @property
    def is_serial(self) -> bool:
        """Whether calls wait for a thread; that is not part of an attempt."""
        return not self._is_async

    async def answer(self, ask: Ask, /) -> Reply:
        """
        Return the reply to *ask*; a mapping is taken as JSON.

        Raises:
            ModelError: The function raised, or returned neither text nor a mapping.
        """
        said, error = await (self._on_the_loop(ask) if self._is_async else self._in_a_thread(ask))
        if isinstance(error, Exception):
            raise ModelError(Failure("exception", describe(error))) from error
        if error is not None:
            raise error
        return Reply(_as_text(said), usage=Usage(calls=1, cost=None, unmetered=1))

    # Exceptions of a function are passed as values: a StopIteration, which a script raises at its end, can pass neither
    # through a future nor out of a coroutine.

    async def _on_the_loop(self, ask: Ask) -> _Outcome:
        return await _awaited(self._function(ask.chat()))

    async def _in_a_thread(self, ask: Ask) -> _Outcome:
        context = copy_context()
        future = submit(self._owner, lambda: context.run(self._outcome, ask), self.threads)
        try:
            said, error = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            abandon(self._owner, future)
            raise
        return await _awaited(said) if isinstance(said, Awaitable) else (said, error)

    def _outcome(self, ask: Ask) -> _Outcome:
        began = perf_counter()
        try:
            return self._function(ask.chat()), None
        except BaseException as error:  # noqa: BLE001
            return None, error
        finally:
            self.busy += perf_counter() - began


async def _awaited(said: Any) -> _Outcome:
    try:
        return await said, None
    except Exception as error:  # noqa: BLE001
        return None, error


def _as_text(said: Any) -> str:
    if isinstance(said, str):
        return said
    if isinstance(said, Mapping):
        return json.dumps(dict(said), ensure_ascii=False, default=str)
    message = f"the function returned {type(said).__name__}; expected the text of a reply, or a mapping for JSON"
    raise ModelError(Failure("bad_response", message, usage=Usage(calls=1, cost=None, unmetered=1)))


def identity(function: Any) -> tuple[int, ...]:
    """Return the identity of *function* while it is alive: a bound method is another object at each look-up."""
    owner = getattr(function, "__self__", None)
    return (id(function),) if owner is None else (id(owner), id(getattr(function, "__func__", function)))


class KeylessModel:
    """Fails for want of a key, before LiteLLM's import; if there is a key by then, it answers."""

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the reply to *ask* if its judge has a key by now; raise `ModelError` if not."""
        if variables := surely_missing_key(ask.judge):
            raise ModelError(Failure("auth", f"no key for {ask.judge.name}: set {variables}"))
        return await _litellm.answer(ask)

    is_punctual = True


_offline, _litellm, _keyless = OfflineModel(), LiteLLMModel(), KeylessModel()
_lock = Lock()

_clients: WeakValueDictionary[tuple[str, int], Any] = WeakValueDictionary()
"""The models of clients that are in use, by identity: a model keeps its client alive, so no id is used twice."""

_functions: WeakValueDictionary[tuple[int, ...], FunctionModel] = WeakValueDictionary()
"""The models of functions that are in use, by identity: a model keeps its function alive, so no id is used twice."""


def model_of(judge: Judge, /) -> Model:
    """Return the model that answers for *judge*; all judges of a function share one, and so its thread."""
    model = judge.model
    if isinstance(model, str):
        if judge.via == "http":
            return _direct()
        return _offline if model == OFFLINE else _keyless if surely_missing_key(judge) else _litellm
    if isinstance(model, Model):
        return model
    return _of_client(model) if client_kind(model) else _of_function(model, judge.threads)


@cache
def _direct() -> Model:
    from rubric.models.openai_http import OpenAIHTTPModel  # noqa: PLC0415 - it brings aiohttp, for those who ask for it

    return OpenAIHTTPModel()


def _of_client(client: Any) -> Model:
    from rubric.models.client_models import model  # noqa: PLC0415 - it needs the threads of this module

    key = ("client", id(client))
    with _lock:
        found: Model = _clients.setdefault(key, model(client))
    return found


def _of_function(function: Function, threads: int) -> FunctionModel:
    # By identity: functions that compare equal may still be two. Under the lock: two models of one function would have
    # a thread each, and a function need not be thread-safe.
    key = (*identity(function), threads)
    with _lock:
        return _functions.setdefault(key, FunctionModel(function, threads=threads))


def _renew_lock() -> None:
    """Replace the lock in a forked child: a thread that is not there may have held it."""
    global _lock  # noqa: PLW0603
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@frozen
class EnvironmentModel:
    """The judge of a jury whose file names no model; outside of a suite's run, the default judge."""

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the default judge's reply to *ask*."""
        try:
            model = default_judge().model
        except NoJudgeError as problem:
            raise ModelError(Failure("auth", str(problem))) from None
        judge = evolve(ask.judge, model=model)
        return await model_of(judge).answer(evolve(ask, judge=judge))
