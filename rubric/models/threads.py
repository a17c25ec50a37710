"""
The threads that call sync functions of the user's: one for each function, unless the user allows more.

So a function need not be thread-safe, and objects that belong to a thread (a connection of sqlite3) work as long as the
function is in use. At most four idle threads are kept; so judges that come and go, such as a lambda a sample, leave no
more than that. Only pending calls keep a function alive.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread, current_thread
from typing import Any

from attrs import define, field

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


_lock = Lock()
_pools: dict[Hashable, _Pool] = {}  # the one that was used last comes last
# The lock is held for all changes of pools: otherwise a pool could get a call just after the None that ends its thread.


def submit(owner: Hashable, call: Callable[[], Any], threads: int = 1) -> Future[Any]:
    """Have one of the *threads* of *owner*, a function, call *call*, which must not raise; calls start in order."""
    future: Future[Any] = Future()
    with _lock:
        pool = _pools.pop(owner, None) or _Pool()
        _pools[owner] = pool
        if len(pool.workers) < min(threads, pool.pending + 1):
            pool.start()
        pool.pending += 1
        pool.jobs.put((future, call))
    return future


Outcome = tuple[Any, BaseException | None]
"""What a function has returned, or the error that it has raised."""


async def outcome_in_thread(owner: Hashable, call: Callable[[], Any], threads: int = 1) -> Outcome:
    """
    Return the outcome of *call* in one of the *threads* of *owner*; cancelled, it gives the call up.

    An error is a value, since a StopIteration, which a script raises at its end, can pass neither through a future nor
    out of a coroutine.
    """

    def caught() -> Outcome:
        try:
            return call(), None
        except BaseException as error:  # noqa: BLE001
            return None, error

    future = submit(owner, partial(copy_context().run, caught), threads)
    try:
        outcome: Outcome = await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        abandon(owner, future)
        raise
    return outcome


async def in_thread(owner: tuple[int, ...], call: Callable[[], Any], threads: int) -> Any:
    """Return what *call* returns in a thread of *owner*, of which there are at most so many; raise what it raises."""
    said, error = await outcome_in_thread(("client", *owner), call, threads)
    if error is not None:
        raise error
    return said


def abandon(owner: Hashable, future: Future[Any]) -> None:
    """Give up the call of *future*: a thread that hangs in it is left behind, and another takes its place."""
    with _lock:
        pool = _pools.get(owner)
        hung = [] if pool is None else [worker for worker, at in pool.workers.items() if at is future]
        if pool is None or not hung:
            return
        del pool.workers[hung[0]]
        pool.pending -= 1
        if not (pool.pending or pool.workers):
            del _pools[owner]
        elif pool.pending > len(pool.workers):
            with suppress(RuntimeError):  # no more threads: the next call tries again, and raises it
                pool.start()


def _work(pool: _Pool) -> None:
    me = current_thread()
    while (job := pool.jobs.get()) is not None:
        future, call = job
        del job
        with _lock:
            pool.workers[me] = future
        if future.set_running_or_notify_cancel():
            future.set_result(call())
        del future, call  # nothing is kept alive while waiting for the next one
        with _lock:
            if me not in pool.workers:  # the call was abandoned
                return
            pool.workers[me] = None
            pool.pending -= 1
            if not pool.pending:
                _end_the_oldest()


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
    global _lock  # noqa: PLW0603
    _lock = Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
