"""
A bounded worker pool over a source that may have no end.

As many workers as requests may be in flight; each takes the next item when it is through with its last. An item that
waits for a retry keeps its worker, but nothing is done for it, so another worker starts meanwhile. The items that
were taken and not yet handed out are bounded, so a slow reader, and many items that wait, stop the workers.

Items are read without holding up the event loop: those in memory at once, an async iterable by awaiting it. Any other
iterable may have to wait for a disk or a network, so a thread of its own goes through it, from first item to last.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from itertools import islice
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

from attrs import define, field

from rubric.models.retry import parking

_GRACE = 2.0
"""Seconds that a source may take to let go of its current item when it is closed."""


def reader_of(items: Iterable[Any] | AsyncIterable[Any], *, is_held: bool = False) -> ItemReader:
    """
    Return a reader of *items*; those that are held in memory need no thread.

    Its `read` returns the next items, at most so many, none only at the end, and raises what the source raises. Its
    `aclose` lets go of the source: a generator is closed.
    """
    if isinstance(items, AsyncIterable):
        return _AsyncReader(items)
    return _MemoryReader(iter(items)) if is_held else _ThreadReader(items)


@define(eq=False)
class _MemoryReader:
    _items: Iterator[Any]

    async def read(self, most: int) -> list[Any]:
        return list(islice(self._items, most))

    async def aclose(self) -> None:
        """There is nothing to let go of."""


@define(eq=False)
class _AsyncReader:
    """One item at a time, as it comes: to wait for several would hold back the first."""

    _items: AsyncIterable[Any]
    _iterator: AsyncIterator[Any] | None = None

    async def read(self, most: int) -> list[Any]:  # noqa: ARG002
        if self._iterator is None:
            self._iterator = aiter(self._items)
        try:
            return [await anext(self._iterator)]
        except StopAsyncIteration:
            return []

    async def aclose(self) -> None:
        close = getattr(self._iterator, "aclose", None)
        if close is not None:
            await close()


@define(eq=False)
class _ThreadReader:
    """Reads in a thread until the source ends or it is closed; the lock guards all but the thread's own error."""

    _items: Iterable[Any]
    _taken: deque[Any] = field(factory=deque)
    _changed: Condition = field(factory=Condition)
    _allowed: int = 0  # how many items may have been taken, and not been handed over
    _waiter: Future[None] | None = None
    _ended: Future[None] = field(factory=Future)
    _thread: Thread | None = None
    _error: BaseException | None = None
    _is_through: bool = False
    _is_closed: bool = False

    async def read(self, most: int) -> list[Any]:
        while not (items := self._hand_over(most)):
            waiter = self._waiter
            if waiter is not None:
                await asyncio.wrap_future(waiter)
            elif self._is_through and not self._taken:
                break
        if not items and self._error is not None:
            raise self._error
        return items

    async def aclose(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            await asyncio.wait([asyncio.wrap_future(self._ended)], timeout=_GRACE)
            if self._ended.done():
                self._thread.join()  # setting `_ended` was the last thing it had to do

    def _hand_over(self, most: int) -> list[Any]:
        """Return the items that are there, at most *most*, and let the thread go on; without any, leave a waiter."""
        if self._thread is None:
            # A daemon, since a source that hangs must not hold up the exit; in the context of the caller.
            self._thread = Thread(target=copy_context().run, args=(self._serve,), name="rubric-source", daemon=True)
            self._thread.start()
        with self._changed:
            items = [self._taken.popleft() for _ in range(min(most, len(self._taken)))]
            self._allowed = most - len(items)
            self._waiter = None if items or self._is_through else Future()
            self._changed.notify()
        return items

    def _serve(self) -> None:
        iterator: Iterator[Any] | None = None
        try:
            iterator = iter(self._items)
            while self._may_go_on():
                self._taken.append(next(iterator))
                self._wake()
        except StopIteration:
            pass
        except BaseException as problem:  # noqa: BLE001 - it is raised where the items are read
            self._error = problem
        with suppress(Exception):
            getattr(iterator, "close", bool)()
        self._is_through = True
        self._wake()
        self._ended.set_result(None)

    def _may_go_on(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._taken) < self._allowed)
            return not self._is_closed

    def _wake(self) -> None:
        with self._changed:
            waiter, self._waiter = self._waiter, None
        if waiter is not None:
            with suppress(InvalidStateError):  # the caller has stopped waiting
                waiter.set_result(None)


ItemReader = _MemoryReader | _AsyncReader | _ThreadReader
R = TypeVar("R")

_SHARES = 8
"""In how many parts at least the results are handed out, so that the workers go on while one part is read."""


@define(eq=False)
class WorkerPool(Generic[R]):
    """
    Works on the items of a source, and hands out a few results at a time; nothing starts before the first `take`.

    It belongs to the event loop of the first `take`.

    Args:
        work: Makes a result of an item and its place, from 0; an exception of it ends the pool.
        concurrency: How many items are worked on at once, besides those that wait for a retry.
        ahead: How many more may have been taken from the source, and not been handed out.
        ordered: Whether results come in the order of the items, or as they are completed.
    """

    _reader: ItemReader
    _work: Callable[[int, Any], Awaitable[R]]
    _concurrency: int
    _ahead: int
    _ordered: bool = True
    _workers: set[asyncio.Task[None]] = field(factory=set)
    _pending: deque[Any] = field(factory=deque)  # read, and not begun
    _results: dict[int, R] = field(factory=dict)  # by the number in which they are handed out
    _begun: int = 0
    _completed: int = 0
    _handed: int = 0
    _held: int = 0  # items that were read from the source, and whose results have not been read
    _lent: int = 0  # results that `take` returned last
    _unread: list[R] = field(factory=list)  # those of them that nobody has taken out of its list
    _parked: int = 0  # items that wait for a retry
    _ended: bool = False
    _closed: bool = False
    _error: BaseException | None = None
    _reading: asyncio.Lock = field(factory=asyncio.Lock)  # one worker reads at a time, or items would change places
    _has_space: asyncio.Event = field(factory=asyncio.Event)
    _has_news: asyncio.Event = field(factory=asyncio.Event)

    async def take(self) -> list[R]:
        """Return the next results, none at the end; the last ones count as read. Errors come after earlier results."""
        self._held -= self._lent
        self._lent = 0
        self._has_space.set()
        self._add_worker()
        while not (due := self._due()):
            if self._ended and not self._workers:
                await self.aclose()
                if self._error is not None:
                    error, self._error = self._error, None
                    raise error
                return []
            self._has_news.clear()
            await self._has_news.wait()
        self._lent, self._unread = len(due), due
        return due

    def rest(self) -> list[R]:
        """Return the results that nobody has read once the pool is closed; some stand behind one that was not made."""
        found = [*self._unread, *(self._results[place] for place in sorted(self._results))]
        self._unread.clear()
        self._results.clear()
        return found

    async def aclose(self) -> None:
        """Stop: cancel the workers, wait until they have ended, and let go of the source."""
        workers = [*self._workers]
        self.abandon()
        await asyncio.gather(*workers, return_exceptions=True)
        await self._reader.aclose()

    def abandon(self) -> None:
        """Stop like `aclose`, without waiting; to be called on the loop."""
        self._ended = self._closed = True
        for worker in self._workers:
            worker.cancel()

    def _due(self) -> list[R]:
        most = max(1, (self._concurrency + self._ahead) // _SHARES)
        due: list[R] = []
        if self._results and self._handed not in self._results and self._ended and not self._workers:
            self._handed = min(self._results)  # work that raised has left a gap; the results after it are not lost
        while len(due) < most and self._handed in self._results:
            due.append(self._results.pop(self._handed))
            self._handed += 1
        return due

    # -- workers -----------------------------------------------------------------------------------------

    def _add_worker(self) -> None:
        """Start another worker, if there may be one and may be work for it."""
        if len(self._workers) < self._concurrency + self._parked and not (self._ended and not self._pending):
            worker = asyncio.get_running_loop().create_task(self._run())
            self._workers.add(worker)
            worker.add_done_callback(self._remove_worker)

    def _remove_worker(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        error = asyncio.CancelledError() if worker.cancelled() else worker.exception()
        if error is not None and not self._closed:
            self._error = self._error or error
            self._ended = True
            self._pending.clear()
            self._has_space.set()
        self._has_news.set()

    def _is_needed(self, worker: asyncio.Task[None] | None) -> bool:
        """True if *worker* goes on; one more than there may be leaves at once, so that the next sees it gone."""
        if len(self._workers) <= self._concurrency + self._parked or worker is None:
            return True
        self._workers.discard(worker)
        return False

    async def _run(self) -> None:
        worker, loop = asyncio.current_task(), asyncio.get_running_loop()
        # In two turns of the loop the work before has sent all that it sends at once: a budget that is spent meanwhile
        # leaves one piece of work half done, and not as many as there are workers.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        rested = loop.time()
        while self._is_needed(worker) and (self._pending or await self._read()):
            place, item = self._begun, self._pending.popleft()
            self._begun += 1
            self._add_worker()
            parking.set(_Parking(self, loop).tell)
            result = await self._work(place, item)
            self._results[place if self._ordered else self._completed] = result
            self._completed += 1
            self._has_news.set()
            # Work that never waits (a judge that answers at once) would keep the loop from all others; to yield after
            # each item costs as much as a small part of the work, so it is done by the clock.
            if loop.time() - rested > _MOST_SECONDS:
                await asyncio.sleep(0)
                rested = loop.time()

    async def _read(self) -> bool:
        """Wait for something to do; False if nothing will come."""
        async with self._reading:
            if self._pending or self._ended:
                return bool(self._pending)
            while self._held >= self._concurrency + self._ahead and not self._ended:
                self._has_space.clear()
                await self._has_space.wait()
            try:
                items = await self._reader.read(self._concurrency + self._ahead - self._held)
            except (asyncio.CancelledError, GeneratorExit):
                raise
            except BaseException as error:  # noqa: BLE001 - it is raised once the results before it are handed out
                self._error = self._error or error
                items = []
            self._ended = self._ended or not items
            self._held += len(items)
            self._pending.extend(items)
        return bool(self._pending)


_MOST_SECONDS = 0.001


@define(eq=False)
class _Parking:
    """Counts how many requests of one worker's item wait for a retry: an item is parked while any of them does."""

    pool: WorkerPool[Any]
    loop: asyncio.AbstractEventLoop
    waiting: int = 0

    def tell(self, more: int) -> None:
        """Note that *more* requests wait; -1 when one goes on."""
        if asyncio.get_running_loop() is not self.loop:  # a judge that grades by itself, on the background loop
            return
        before, self.waiting = self.waiting, self.waiting + more
        self.pool._parked += (self.waiting > 0) - (before > 0)  # noqa: SLF001 - of this module
        self.pool._add_worker()  # noqa: SLF001
