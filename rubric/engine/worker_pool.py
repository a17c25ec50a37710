"""
Many pieces of work at once, of a source that may have no end.

Workers pull: there are as many as may be under way at once, and each takes the next item when it is through with its
last. An item that waits to be tried again is under way, but nothing is done for it: another worker stands in meanwhile.
What has been taken and not been handed out is bounded, so a slow reader, and many items that wait, stop the workers.

Takes items from an iterable without holding up the event loop.

What is in memory already is taken at once, what is async is awaited. Any other iterable may have to wait (for a disk,
for a network), so a thread of its own goes through it, from its first item to its end.
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
from typing import Any, Generic, Protocol, TypeVar

from attrs import define, field

from rubric.models.retry import parking

_GRACE = 2.0
"""Seconds that a source may take to let go of its current item when it is closed."""


class Pull(Protocol):
    """Takes items from a source, one call after another."""

    async def take(self, most: int) -> list[Any]:
        """Return the next items, *most* at the most; none only at the end. It raises what the source raises."""
        ...

    async def aclose(self) -> None:
        """Let go of the source: a generator is closed."""
        ...


def pulling(items: Iterable[Any] | AsyncIterable[Any], *, is_held: bool = False) -> Pull:
    """Return what takes from *items*; *is_held*: they are in memory already, and need no thread."""
    if isinstance(items, AsyncIterable):
        return _Awaited(items)
    return _Held(iter(items)) if is_held else _Threaded(items)


@define(eq=False)
class _Held:
    """Items that are in memory."""

    _items: Iterator[Any]

    async def take(self, most: int) -> list[Any]:
        return list(islice(self._items, most))

    async def aclose(self) -> None:
        """There is nothing to let go of."""


@define(eq=False)
class _Awaited:
    """An async iterable: one item at a time, as it comes."""

    _items: AsyncIterable[Any]
    _iterator: AsyncIterator[Any] | None = None

    async def take(self, most: int) -> list[Any]:  # noqa: ARG002
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
class _Threaded:
    """An iterable that may have to wait; the thread ends when the source does, or is let go of."""

    _items: Iterable[Any]
    _taken: deque[Any] = field(factory=deque)
    _changed: Condition = field(factory=Condition)
    _allowed: int = 0  # how many items may have been taken, and not been handed over
    _waiter: Future[None] | None = None
    _ended: Future[None] | None = None
    _thread: Thread | None = None
    _error: BaseException | None = None
    _is_through: bool = False
    _is_closed: bool = False

    async def take(self, most: int) -> list[Any]:
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
        if self._ended is not None:
            await asyncio.wait([asyncio.wrap_future(self._ended)], timeout=_GRACE)
            if self._thread is not None and self._ended.done():
                self._thread.join()  # to say so was the last thing it had to do

    def _hand_over(self, most: int) -> list[Any]:
        """Return what is there, *most* at the most, and let the thread go on; with nothing there, leave a waiter."""
        if self._ended is None:
            self._ended = Future()
            serve = (self._serve, self._ended)
            self._thread = Thread(target=copy_context().run, args=serve, name="rubric-source", daemon=True)
            self._thread.start()
        with self._changed:
            items = [self._taken.popleft() for _ in range(min(most, len(self._taken)))]
            self._allowed = most - len(items)
            self._waiter = None if items or self._is_through else Future()
            self._changed.notify()
        return items

    # -- in the thread -----------------------------------------------------------------------------------

    def _serve(self, ended: Future[None]) -> None:
        iterator: Iterator[Any] | None = None
        try:
            iterator = iter(self._items)
            while self._may_go_on():
                self._add(next(iterator))
        except StopIteration:
            pass
        except BaseException as problem:  # noqa: BLE001 - whoever waits for the items is to have it
            self._error = problem
        with suppress(Exception):
            getattr(iterator, "close", bool)()
        self._is_through = True
        self._wake()
        ended.set_result(None)

    def _may_go_on(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._taken) < self._allowed)
            return not self._is_closed

    def _add(self, item: Any) -> None:
        self._taken.append(item)
        self._wake()

    def _wake(self) -> None:
        with self._changed:
            waiter, self._waiter = self._waiter, None
        if waiter is not None:
            with suppress(InvalidStateError):  # nobody waits any longer
                waiter.set_result(None)


R = TypeVar("R")

_SHARES = 8
"""In how many parts at least what is ready is handed out, so that the workers go on while one part is read."""


@define(eq=False)
class Stream(Generic[R]):
    """
    What comes of the items of a source, a few at a time; nothing starts before the first `take`.

    It belongs to the event loop of the first `take`.

    Args:
        pull: Takes the items.
        work: Makes a result of an item and its place, from 0; what it raises ends the stream.
        concurrency: How many items are worked on at once, besides those that wait to be tried again.
        ahead: How many more may have been taken from the source, and not been handed out.
        ordered: Whether results come in the order of the items, or as they are completed.
    """

    _pull: Pull
    _work: Callable[[int, Any], Awaitable[R]]
    _concurrency: int
    _ahead: int
    _ordered: bool = True
    _workers: set[asyncio.Task[None]] = field(factory=set)
    _waiting: deque[Any] = field(factory=deque)  # taken, and not begun
    _ready: dict[int, R] = field(factory=dict)  # completed, in the order of their completion
    _queue: deque[int] = field(factory=deque)  # their places, where that order is the one that counts
    _begun: int = 0
    _handed: int = 0
    _held: int = 0  # taken from the source, and not read by whoever reads
    _reading: int = 0
    _parked: int = 0  # items that wait to be tried again
    _ended: bool = False
    _closed: bool = False
    _error: BaseException | None = None
    _turn: asyncio.Lock = field(factory=asyncio.Lock)
    _room: asyncio.Event = field(factory=asyncio.Event)
    _news: asyncio.Event = field(factory=asyncio.Event)

    async def take(self) -> list[R]:
        """
        Return the next results, at least one; none at the end. What it returned last counts as read.

        Raises:
            BaseException: What the source or the work raised, once all that was made before has been handed out.
        """
        self._held -= self._reading
        self._reading = 0
        self._room.set()
        self._engage()
        while not (due := self._due()):
            if self._is_over():
                await self._finish()
                return []
            self._news.clear()
            await self._news.wait()
        self._reading = len(due)
        return due

    async def aclose(self) -> None:
        """Stop: cancel what is under way, wait until it has ended, and let go of the source."""
        workers = [*self._workers]
        self.abandon()
        await asyncio.gather(*workers, return_exceptions=True)
        await self._pull.aclose()

    def abandon(self) -> None:
        """Stop like `aclose`, without waiting; to be called on the loop."""
        self._ended = self._closed = True
        for worker in self._workers:
            worker.cancel()

    async def _finish(self) -> None:
        await self.aclose()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _due(self) -> list[R]:
        most = max(1, (self._concurrency + self._ahead) // _SHARES)
        due: list[R] = []
        while len(due) < most and (place := self._next()) in self._ready:
            due.append(self._ready.pop(place))
            self._handed += 1
            if not self._ordered:
                self._queue.popleft()
        return due

    def _next(self) -> int:
        """Return the place of the result that is to be handed out next."""
        if self._ordered:
            if self._handed not in self._ready and self._ready and self._is_over():
                self._handed = min(self._ready)  # work that raised has left a gap; what follows it is not lost
            return self._handed
        return self._queue[0] if self._queue else -1

    def _is_over(self) -> bool:
        return self._ended and not self._workers

    # -- workers -----------------------------------------------------------------------------------------

    def _engage(self) -> None:
        """Set another worker to work, if there may be one and may be work for it."""
        if len(self._workers) < self._concurrency + self._parked and not (self._ended and not self._waiting):
            worker = asyncio.get_running_loop().create_task(self._labour())
            self._workers.add(worker)
            worker.add_done_callback(self._discharge)

    def _discharge(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        error = asyncio.CancelledError() if worker.cancelled() else worker.exception()
        if error is not None and not self._closed:
            self._error = self._error or error
            self._ended = True
            self._waiting.clear()
            self._room.set()
        self._news.set()

    def _park(self) -> Callable[[int], None]:
        """Return what is told how many parts of one item begin or cease to wait to be tried again."""
        waiting, loop = 0, asyncio.get_running_loop()

        def tell(more: int) -> None:
            nonlocal waiting
            if asyncio.get_running_loop() is not loop:  # a judge that grades by itself, on the background loop
                return
            before, waiting = waiting, waiting + more
            self._parked += (waiting > 0) - (before > 0)
            self._engage()

        return tell

    def _is_needed(self, worker: asyncio.Task[None] | None) -> bool:
        """True if *worker* goes on; one more than there may be leaves at once, so that the next sees it gone."""
        if len(self._workers) <= self._concurrency + self._parked or worker is None:
            return True
        self._workers.discard(worker)
        return False

    async def _labour(self) -> None:
        worker = asyncio.current_task()
        while self._is_needed(worker) and await self._supplied():
            place, item = self._begun, self._waiting.popleft()
            self._begun += 1
            self._engage()
            parking.set(self._park())
            self._ready[place] = await self._work(place, item)
            if not self._ordered:
                self._queue.append(place)
            self._news.set()
            await asyncio.sleep(0)  # work that never waits would keep the loop from all others

    async def _supplied(self) -> bool:
        """Wait for something to do; False if nothing will come."""
        if not self._waiting:
            async with self._turn:
                while not self._waiting and not self._ended:
                    await self._supply()
        return bool(self._waiting)

    async def _supply(self) -> None:
        while self._held >= self._concurrency + self._ahead and not self._ended:
            self._room.clear()
            await self._room.wait()
        try:
            items = await self._pull.take(self._concurrency + self._ahead - self._held)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - it is raised when what is under way has been handed out
            self._error = self._error or error
            items = []
        self._ended = self._ended or not items
        self._held += len(items)
        self._waiting.extend(items)
