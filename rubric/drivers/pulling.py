"""
Takes items from an iterable without holding up the event loop.

What is in memory already is taken at once, what is async is awaited. Any other iterable may have to wait (for a disk,
for a network), so a thread of its own goes through it, from its first item to its end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from itertools import islice
from threading import Condition, Thread
from typing import Any, Protocol

from attrs import define, field

__all__ = ["Pull", "pulling"]

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
