"""
The threads that call sync functions of the user's: one for each function, unless the user allows more.

So a function need not be thread-safe, and objects that belong to a thread (a connection of sqlite3) work as long as the
function is in use. At most four idle threads are kept; so judges that come and go, such as a lambda a sample, leave no
more than that. Only pending calls keep a function alive.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from contextvars import Context, copy_context
from queue import SimpleQueue
from threading import Lock, Thread, current_thread
from typing import Any
from weakref import WeakKeyDictionary

from attrs import define, field

_MOST_IDLE = 4
Outcome = tuple[Any, BaseException | None]
"""What a call returned, or what it raised: a StopIteration, which a script raises at its end, passes no future."""


@define(eq=False)
class _Mailbox:
    """The outcomes for one event loop that it has not seen; to wake a loop costs more than a short call."""

    outcomes: deque[tuple[asyncio.Future[Outcome], Outcome]] = field(factory=deque)
    is_told: bool = False

    def open(self) -> None:
        # In this order: an outcome that comes meanwhile is taken by the loop below, or wakes the event loop again.
        self.is_told = False
        while self.outcomes:
            future, outcome = self.outcomes.popleft()
            if not future.done():
                future.set_result(outcome)


@define(eq=False)
class Job:
    """A call for a thread; *began* is the time of its event loop when a thread took it."""

    call: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Outcome]
    mailbox: _Mailbox
    context: Context = field(factory=copy_context)
    began: float | None = None

    def run(self) -> None:
        if self.future.cancelled():
            return
        self.began = self.loop.time()
        try:
            outcome: Outcome = self.context.run(self.call), None
        except BaseException as error:  # noqa: BLE001 - it is raised where the outcome is awaited
            outcome = None, error
        self.mailbox.outcomes.append((self.future, outcome))
        if not self.mailbox.is_told:
            self.mailbox.is_told = True
            with suppress(RuntimeError):  # the event loop is closed
                self.loop.call_soon_threadsafe(self.mailbox.open)


@define(eq=False)
class _Pool:
    """The threads of one function: *jobs* wait (None ends a thread), *pending* counts the unfinished calls."""

    jobs: SimpleQueue[Job | None] = field(factory=SimpleQueue)
    workers: dict[Thread, Job | None] = field(factory=dict)
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


_mailboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Mailbox] = WeakKeyDictionary()


def submit(owner: Hashable, call: Callable[[], Any], threads: int = 1) -> Job:
    """Have one of the *threads* of *owner*, a function, call *call*; calls start in order."""
    loop = asyncio.get_running_loop()
    mailbox = _mailboxes.get(loop) or _mailboxes.setdefault(loop, _Mailbox())
    job = Job(call, loop, loop.create_future(), mailbox)
    with _lock:
        pool = _pools.pop(owner, None) or _Pool()
        _pools[owner] = pool
        if len(pool.workers) < min(threads, pool.pending + 1):
            pool.start()
        pool.pending += 1
        pool.jobs.put(job)
    return job


async def outcome_of(owner: Hashable, job: Job) -> Outcome:
    """Return the outcome of *job*, a call of *owner*; cancelled, it gives the call up."""
    try:
        return await job.future
    except asyncio.CancelledError:
        abandon(owner, job)
        raise


async def outcome_in_thread(owner: Hashable, call: Callable[[], Any], threads: int = 1) -> Outcome:
    """Return the outcome of *call* in one of the *threads* of *owner*; cancelled, it gives the call up."""
    return await outcome_of(owner, submit(owner, call, threads))


async def in_thread(owner: tuple[int, ...], call: Callable[[], Any], threads: int) -> Any:
    """Return what *call* returns in a thread of *owner*, of which there are at most so many; raise what it raises."""
    said, error = await outcome_in_thread(("client", *owner), call, threads)
    if error is not None:
        raise error
    return said


def abandon(owner: Hashable, job: Job) -> None:
    """Give up *job*: a thread that hangs in it is left behind, and another takes its place."""
    with _lock:
        pool = _pools.get(owner)
        hung = [] if pool is None else [worker for worker, at in pool.workers.items() if at is job]
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
        with _lock:
            pool.workers[me] = job
        job.run()
        del job  # nothing is kept alive while waiting for the next one
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
