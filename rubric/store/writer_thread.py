"""
The one thread that changes the file: all tasks that wait go into one transaction.

An event loop hands over a task with `write`, and awaits its result: that is the one hop from loop to thread and back.
Tasks run in the order in which they were handed over, so a task may rely on those before it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from attrs import define

from rubric.errors import StoreError
from rubric.store.database import HEARTBEAT, Database
from rubric.store.schema import as_store_error, transaction

T = TypeVar("T")

_AT_ONCE = 512
"""Tasks in one transaction: a few milliseconds, for which other processes wait."""


class _Unhurried(asyncio.Future[T]):
    """A future whose cancellation waits for the result: a claim must be known before it can be given up."""

    def cancel(self, msg: Any = None) -> bool:
        del msg
        return False


@define(eq=False)
class Task(Generic[T]):
    """
    A change to the file.

    Args:
        run: Makes it; in a transaction that is rolled back, it runs again.
        is_kept: Whether it stays pending, and is tried again, while the file is locked or the disk full.
        future: Gets the result once it is committed; None if no caller waits.
        result: The same for later tasks, which run before the future's loop does.
    """

    run: Callable[[Database], T]
    is_kept: bool = False
    future: asyncio.Future[T] | None = None
    result: T | None = None
    error: Exception | None = None

    def __await__(self) -> Generator[Any, None, T]:
        assert self.future is not None  # noqa: S101 - a task without a caller is posted
        return self.future.__await__()


class WriterThread:
    """
    Runs tasks, in order, in a thread of its own.

    Args:
        is_busy: Tells whether requests are in flight, so that other sessions need a heartbeat.
    """

    def __init__(self, path: Path, database: Database, is_busy: Callable[[], bool]) -> None:
        self._path = path
        self._database = database
        self._is_busy = is_busy
        self._last_beat = 0.0
        self._waiting: list[Task[Any]] = []
        self._pending: list[Task[Any]] = []
        # Guards `_waiting` and `_closed`: without it, a task could be added after the thread has looked for the last.
        self._changed = threading.Condition(threading.Lock())
        self._waking: set[asyncio.AbstractEventLoop | None] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="rubric-store", daemon=True)
        self._thread.start()

    def write(self, run: Callable[[Database], T], *, is_kept: bool = False) -> Task[T]:
        """Have *run* done in a transaction; await the task that is returned."""
        loop = asyncio.get_running_loop()
        task = self._enqueue(Task(run, is_kept, _Unhurried(loop=loop)))
        # The thread wakes once the loop has run all that is ready now, so that their tasks share a transaction. Woken
        # for each, it would compete with the loop for the interpreter, which costs both more than the transaction.
        if loop not in self._waking:
            self._waking.add(loop)
            loop.call_soon(self._wake, loop)
        return task

    def post(self, run: Callable[[Database], Any]) -> None:
        """Have *run* done, without waiting: pending until it is, at the latest when the store is closed."""
        self._enqueue(Task(run, is_kept=True))
        self._wake(None)  # at once: no loop may be running any more

    def close(self) -> None:
        """Run pending tasks, and end; in a forked child there is no thread to end."""
        if not self._thread.is_alive():
            return
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _enqueue(self, task: Task[T]) -> Task[T]:
        with self._changed:
            if self._closed:
                raise StoreError(f"{self._path}: the store is closed")
            self._waiting.append(task)
        return task

    def _wake(self, loop: asyncio.AbstractEventLoop | None) -> None:
        with self._changed:
            self._waking.discard(loop)
            if self._waiting:
                self._changed.notify()

    def _serve(self) -> None:
        while True:
            with self._changed:
                if not self._waiting and not self._closed:
                    self._changed.wait(HEARTBEAT if self._is_busy() else None)
                tasks, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
                is_over = self._closed and not tasks
            if is_over:
                break
            self._do(tasks)
            now = time.monotonic()
            if self._is_busy() and now - self._last_beat >= HEARTBEAT:
                self._last_beat = now
                with suppress(sqlite3.Error):
                    self._database.beat()
        self._do([Task(Database.end)])
        self._database.close()

    def _do(self, tasks: list[Task[Any]]) -> None:
        """Run *tasks* in one transaction, or else one by one; deliver their results."""
        if not tasks:
            return
        pending, self._pending = self._pending, []
        try:
            self._commit([*pending, *tasks])
        except Exception:  # noqa: BLE001 - any error is that of one task
            for task in [*pending, *tasks]:
                try:
                    self._commit([task])
                except Exception as error:  # noqa: BLE001 - the task's future raises it
                    task.error = as_store_error(self._path, error)
                    # Operational errors pass: locked, full, gone for now. Any other would come again for ever.
                    if task.is_kept and isinstance(error, sqlite3.OperationalError):
                        self._pending.append(task)
        delivered: dict[asyncio.AbstractEventLoop, list[Task[Any]]] = {}
        for task in tasks:
            if task.future is not None:
                delivered.setdefault(task.future.get_loop(), []).append(task)
        for loop, done in delivered.items():
            with suppress(RuntimeError):  # the loop is closed, and no task waits there
                loop.call_soon_threadsafe(_deliver, done)

    def _commit(self, tasks: list[Task[Any]]) -> None:
        try:
            with transaction(self._database.connection):
                for task in tasks:
                    task.result = task.run(self._database)
        except BaseException:
            # What the transaction gave out is void: a call that seems to be sent would leave without a record.
            for task in tasks:
                task.result = None
            self._database.forget()
            raise


def _deliver(tasks: list[Task[Any]]) -> None:
    for task in tasks:
        future = task.future
        if future is None or future.done():
            continue
        if task.error is None:
            future.set_result(task.result)
        else:
            future.set_exception(task.error)
            future.exception()  # retrieved, so that asyncio does not log an exception that was never retrieved
