"""A line in which tasks wait, first come, first served, whatever loop or thread they belong to."""

from __future__ import annotations

import asyncio
import math
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from weakref import WeakSet

from attrs import define, field

__all__ = ["Line"]

_TICK = 0.001  # clocks round: a wait that ends a hair early would be one round more, or many


@define(eq=False)
class _Place:
    """Where one task stands; the bell tells it to look again."""

    loop: asyncio.AbstractEventLoop = field(factory=asyncio.get_running_loop)
    _bell: asyncio.Event = field(factory=asyncio.Event)

    def ring(self) -> bool:
        """Tell the task to look again; say whether there may still be one."""
        if _is_running(self.loop):
            self._bell.set()
            return True
        try:
            self.loop.call_soon_threadsafe(self._bell.set)
        except RuntimeError:  # the loop is closed, and its tasks are gone
            return False
        return True

    def hush(self) -> None:
        self._bell.clear()

    async def wait(self, seconds: float) -> None:
        """Return when the bell has rung, after *seconds* at the latest."""
        if math.isinf(seconds):
            await self._bell.wait()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + _TICK):
                await self._bell.wait()


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    """Say whether this is called from *loop*."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


@define(eq=False)
class Line:
    """
    Lets tasks through in the order in which they came.

    Args:
        lock: Held while somebody is let through; whoever changes what that depends on holds it too, and then calls
            `ring`.
        forked: Is called in a forked child, where nobody is who stood in the line or has been let through.
    """

    lock: Lock = field(factory=Lock)
    forked: Callable[[], None] | None = None
    _waiting: deque[_Place] = field(factory=deque)

    def __attrs_post_init__(self) -> None:
        _lines.add(self)

    async def pass_through(self, admit: Callable[[], float]) -> None:
        """
        Return when *admit* lets the caller through. Cancelled, it leaves the line.

        Args:
            admit: Is called with the lock held, for the first in the line alone. It returns 0 when it has let the
                caller through, else how many seconds to wait before it is called again (`inf`: until `ring`); what it
                raises is raised here.
        """
        with self.lock:
            if not self._waiting and admit() <= 0:
                return
            place = _Place()
            self._waiting.append(place)
            self._forget_the_dead()
        try:
            while (seconds := self._look(place, admit)) > 0:
                await place.wait(seconds)
        finally:
            self._leave(place)

    def ring(self) -> None:
        """Have the first in the line look again; called with the lock held."""
        while self._waiting and not self._waiting[0].ring():
            self._waiting.popleft()

    def _look(self, place: _Place, admit: Callable[[], float]) -> float:
        with self.lock:
            place.hush()
            return admit() if self._waiting[0] is place else math.inf

    def _leave(self, place: _Place) -> None:
        with self.lock:
            with suppress(ValueError):
                self._waiting.remove(place)
            self.ring()

    def _forget_the_dead(self) -> None:
        while self._waiting[0].loop.is_closed():
            self._waiting.popleft()
            self.ring()

    def renew(self) -> None:
        """Begin anew in a forked child: the lock may have been held, and who waited is not here."""
        self.lock = Lock()
        self._waiting.clear()
        if self.forked is not None:
            self.forked()


_lines: WeakSet[Line] = WeakSet()


def _renew_all() -> None:
    for line in [*_lines]:
        line.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
