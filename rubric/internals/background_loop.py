"""
One event loop in a thread of its own, for everything that must live on the same loop.

It is started on first use, renewed after a fork and closed at exit. Clients that keep connections leak them when
loops come and go; and a synchronous caller, perhaps inside a running loop (a notebook), has none that it could use.

Why not anyio's blocking portal: `start_blocking_portal` lives as long as a `with` block, and its provider as long as a
user of it. The thread that outlives calls, the renewal in a forked child, the closers at exit and the interrupt that
waits for the task would still be ours; and the core imports nothing but attrs and the standard library.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attrs import define, field

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine


T = TypeVar("T")
_SECONDS_TO_CLOSE = 5.0


@define(eq=False)
class _Job(Generic[T]):
    """A coroutine on the background loop; `finished` has a result when its task has ended, not before."""

    loop: asyncio.AbstractEventLoop
    coroutine: Coroutine[Any, Any, T]
    finished: Future[T] = field(factory=Future)
    _task: asyncio.Task[T] | None = None
    _unwanted: bool = False

    def start(self) -> None:
        self._task = self.loop.create_task(self.coroutine)
        self._task.add_done_callback(self._finish)
        if self._unwanted:
            self._task.cancel()

    def cancel(self) -> None:
        """Ask the task to stop; `finished` is done when it has."""
        with suppress(RuntimeError):  # the loop is closed, and the task with it
            self.loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        self._unwanted = True
        if self._task is not None:
            self._task.cancel()

    def _finish(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.finished.cancel()
        elif (error := task.exception()) is not None:
            self.finished.set_exception(error)
        else:
            self.finished.set_result(task.result())


@define(eq=False)
class _Background:
    loop: asyncio.AbstractEventLoop = field(factory=asyncio.new_event_loop)
    thread: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.thread = threading.Thread(target=self._serve, name="rubric", daemon=True)
        try:
            self.thread.start()
        except RuntimeError:  # the process ends, and from Python 3.12 on it starts no more threads
            self.loop.close()
            raise

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> _Job[T]:
        job = _Job(self.loop, coroutine)
        self.loop.call_soon_threadsafe(job.start, context=copy_context())
        return job

    def close(self) -> None:
        with suppress(TimeoutError):
            self.submit(self._wind_up()).finished.result(2 * _SECONDS_TO_CLOSE)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_SECONDS_TO_CLOSE)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        stopped = False
        while not stopped:
            # A task that raises one of these also breaks out of the loop; the others must go on.
            with suppress(KeyboardInterrupt, SystemExit):
                self.loop.run_forever()
                stopped = True
        self.loop.close()

    async def _wind_up(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_TO_CLOSE):
                others = asyncio.all_tasks() - {asyncio.current_task()}
                for closer in reversed(_closers):
                    with suppress(Exception):  # one that fails must not keep the others from closing
                        await closer()
                for task in others:
                    task.cancel()
                await asyncio.gather(*others, return_exceptions=True)
                await self.loop.shutdown_asyncgens()

                # Not `shutdown_default_executor`: it starts a thread, which Python 3.12 refuses at exit. By then Python
                # has waited for the executor's threads, and `loop.close` tells it to end.


_lock = threading.Lock()  # two first calls from two threads would start two loops
_background: _Background | None = None
_orphans: list[_Background] = []  # parents' loops, kept: collecting one would close the selector that both share
_closers: list[Callable[[], Awaitable[object]]] = []


def _for(coroutine: Coroutine[Any, Any, Any]) -> _Background:
    """Return the background loop, started if need be, to run *coroutine* on."""
    global _background  # noqa: PLW0603 - one loop a process is what this module is for
    try:
        with _lock:
            if _background is None:
                _background = _Background()
                _close_first_at_exit()
            return _background
    except RuntimeError:
        coroutine.close()  # or Python warns that it was never awaited
        raise


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """
    Run *coroutine* on the background loop and return what it returns; any thread may call this, also inside a loop.

    An interrupt (Ctrl-C) cancels the coroutine, waits until it has ended, and is raised.

    Raises:
        RuntimeError: The call came from the background loop itself, which would wait for itself for ever; or at the
            very end of the process, when no thread can be started.
    """
    background = _for(coroutine)
    if threading.current_thread() is background.thread:
        coroutine.close()
        message = "a synchronous call from inside the background loop would never return; await the async form instead"
        raise RuntimeError(message)
    job = background.submit(coroutine)
    try:
        return job.finished.result()
    except BaseException:
        if not job.finished.done():  # it came from outside: a signal
            job.cancel()
            with suppress(BaseException):
                job.finished.result()
        raise


async def on_background(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await *coroutine* on the background loop, from any loop; a cancellation is passed on, and waits for its end."""
    background = _for(coroutine)
    if threading.current_thread() is background.thread:
        return await coroutine
    job = background.submit(coroutine)
    waiting = asyncio.wrap_future(job.finished)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        job.cancel()
        await asyncio.wait([waiting])
        if not waiting.cancelled():
            waiting.exception()  # retrieved, or asyncio logs that it never was
        raise


def before_close(closer: Callable[[], Awaitable[object]], /) -> None:
    """Register *closer*, awaited on the background loop whenever that is closed, the last one first."""
    _closers.append(closer)
    _close_first_at_exit()


def close() -> None:
    """End the background loop; the next use starts another."""
    global _background
    with _lock:
        ending, _background = _background, None
    if ending is not None:
        ending.close()


def _close_first_at_exit() -> None:
    # Handlers run last in, first out; a library that was imported since may have one that needs our loop closed.
    atexit.unregister(close)
    atexit.register(close)


def _forget_after_fork() -> None:
    """Drop the parent's loop, whose thread is not in this process; closing it here would disturb the parent's."""
    global _background, _lock  # noqa: PLW0603
    _lock = threading.Lock()  # a thread that is not here may have held it: the first call would wait for ever
    if _background is not None:
        _orphans.append(_background)
    _background = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
