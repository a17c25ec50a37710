"""The one thread that writes: whatever is waiting when it gets to it goes into one transaction."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from attrs import define, field

from rubric.errors import StoreError
from rubric.store.database import BEAT, Database
from rubric.store.schema import as_store_error, written

T = TypeVar("T")

_AT_ONCE = 256
"""Changes that go into one transaction."""


@define(eq=False)
class _Order(Generic[T]):
    """
    Something to be done with the ledger.

    Args:
        write: Done in a transaction.
        read: Tried before, outside of one; None from it means that the ledger must be written to.
        owed: Whether it is kept, and tried again, until it has been done.
    """

    write: Callable[[Database], T] | None
    read: Callable[[Database], T | None] | None = None
    owed: bool = False
    done: Future[T] = field(factory=Future)


class WriterThread:
    """
    Does what it is given, in order, in a thread of its own.

    Args:
        path: Of the file, for messages.
        ledger: Of which this thread is the only user.
        is_busy: Tells whether calls are under way, so that others must know that this session is there.
    """

    def __init__(self, path: Path, ledger: Database, is_busy: Callable[[], bool]) -> None:
        self._path = path
        self._ledger = ledger
        self._is_busy = is_busy
        self._last_beat = 0.0
        self._orders: SimpleQueue[_Order[Any] | None] = SimpleQueue()
        self._owed: list[_Order[Any]] = []
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="rubric-store", daemon=True)
        self._thread.start()

    def read(self, what: Callable[[Database], T]) -> Future[T]:
        """Have *what* done; it changes nothing."""
        return self._put(_Order(None, what))

    def write(
        self, what: Callable[[Database], T], *, unless: Callable[[Database], T | None] | None = None
    ) -> Future[T]:
        """Have *what* done in a transaction, unless what *unless* returns is enough."""
        return self._put(_Order(what, unless))

    def owe(self, what: Callable[[Database], T]) -> Future[T]:
        """Have *what* done in a transaction; where that fails, again before the next one, and at the end."""
        return self._put(_Order(what, owed=True))

    def close(self) -> None:
        """Do what is left, and end; in a forked child there is no thread to end."""
        if not self._thread.is_alive():
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._orders.put(None)
        self._thread.join()

    def _put(self, order: _Order[T]) -> Future[T]:
        with self._lock:
            if self._closed:
                raise StoreError(f"{self._path}: the store is closed")
            self._orders.put(order)
        return order.done

    def _serve(self) -> None:
        going = True
        while going:
            batch = self._batch()
            going = None not in batch
            self._do([order for order in batch if order is not None])
            self._beat()
        self._wind_up()

    def _batch(self) -> list[_Order[Any] | None]:
        """Return what is waiting; with calls under way, nothing after a while."""
        batch: list[_Order[Any] | None] = []
        with suppress(Empty):
            batch.append(self._orders.get(timeout=BEAT if self._is_busy() else None))
            while len(batch) < _AT_ONCE:
                batch.append(self._orders.get_nowait())
        return batch

    def _do(self, batch: list[_Order[Any]]) -> None:
        changes = [order for order in batch if not self._is_read(order)]
        if not changes:
            return
        try:
            results = self._written([*self._owed, *changes])
        except Exception:  # noqa: BLE001 - whatever it is, it is one order's
            self._one_by_one(changes)
        else:
            self._owed.clear()
            for order, result in results:
                _settle(order, result)

    def _is_read(self, order: _Order[Any]) -> bool:
        """Commit *order* if reading is enough; say whether it was."""
        if order.read is None:
            return False
        try:
            result = order.read(self._ledger)
        except Exception as error:  # noqa: BLE001 - it is for whoever waits
            _fail(order, as_store_error(self._path, error))
            return True
        if result is None and order.write is not None:
            return False
        _settle(order, result)
        return True

    def _written(self, orders: list[_Order[Any]]) -> list[tuple[_Order[Any], Any]]:
        """Do *orders* in one transaction, and return their results."""
        before = self._ledger.tally
        try:
            with written(self._ledger.connection):
                return [(order, order.write(self._ledger)) for order in orders if order.write is not None]
        except BaseException:
            self._ledger.tally = before
            raise

    def _one_by_one(self, changes: list[_Order[Any]]) -> None:
        """Find out which of *changes* cannot be done; what is owed is kept, and stands before all others."""
        for order in [*self._owed, *changes]:
            try:
                ((_, result),) = self._written([order])
            except Exception as error:  # noqa: BLE001 - it is for whoever waits
                _fail(order, as_store_error(self._path, error))
                self._keep_owing(order, error)
            else:
                _settle(order, result)
                if order in self._owed:
                    self._owed.remove(order)

    def _keep_owing(self, order: _Order[Any], error: Exception) -> None:
        """Keep an owed *order* for later, if it is the file that is in the way: locked, full, gone for now."""
        if order.owed and isinstance(error, sqlite3.OperationalError):
            if order not in self._owed:
                self._owed.append(order)
        elif order in self._owed:
            self._owed.remove(order)

    def _beat(self) -> None:
        now = time.monotonic()
        if self._is_busy() and now - self._last_beat >= BEAT and self._ledger.session:
            self._last_beat = now
            with suppress(sqlite3.Error):
                self._ledger.beat()

    def _wind_up(self) -> None:
        if self._ledger.session:
            self._do([_Order(Database.end)])
        self._ledger.connection.close()


def _settle(order: _Order[T], result: T) -> None:
    if not order.done.done():
        order.done.set_result(result)


def _fail(order: _Order[Any], error: Exception) -> None:
    if not order.done.done():
        order.done.set_exception(error)


async def settled(future: Future[T]) -> T:
    """Return what the clerk did; a cancellation waits until it has been done."""
    waiting = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        await asyncio.wait([waiting])
        if not waiting.cancelled():
            waiting.exception()  # asked for, so that nobody logs that it was not
        raise
