"""How much may leave in any window of time."""

from __future__ import annotations

import math
from heapq import heappop, heappush
from itertools import count

from attrs import define, field

__all__ = ["Entry", "Window"]

_GRACE = 5.0  # seconds after which a request that has left is taken to have arrived


@define(eq=False)
class Entry:
    """What is counted until it *expires*, in the seconds of the clock."""

    amount: float
    latest: float
    expires: float


@define(eq=False)
class Window:
    """
    Counts what has left within the last *seconds*: a sliding window, exact to the request.

    A bucket that leaks lets nearly twice its limit through in the window after a pause; this does not. And since a
    vendor counts requests when they arrive, which nobody here can see, an entry is counted from when its request leaves
    until the window is over that began when the request was through, or had been under way for five seconds.

    Args:
        limit: The most that any window may hold.
        seconds: How long a window is.
        used: What is in the window now.
    """

    limit: float
    seconds: float = 60.0
    used: float = 0.0
    _entries: list[tuple[float, int, Entry]] = field(factory=list, repr=False)
    _numbers: count[int] = field(factory=count, repr=False)

    def wait(self, amount: float, now: float) -> float:
        """Return for how many seconds there is certainly no room for *amount*: 0 if there is some now."""
        self._expire(now)
        if self.used + amount <= self.limit:
            return 0.0
        return self._entries[0][0] - now if self._entries else math.inf

    def take(self, amount: float, now: float) -> Entry:
        """Count *amount*, which leaves *now*."""
        latest = now + _GRACE + self.seconds
        entry = Entry(amount, latest, latest)
        self._push(entry)
        self.used += amount
        return entry

    def settle(self, entry: Entry, amount: float, now: float) -> None:
        """Count *amount* for *entry* instead, whose request is through *now*."""
        if entry.expires <= now:
            self._expire(now)
            return
        self.used += amount - entry.amount
        entry.amount, entry.expires = amount, min(entry.latest, now + self.seconds)
        self._push(entry)

    def _push(self, entry: Entry) -> None:
        heappush(self._entries, (entry.expires, next(self._numbers), entry))

    def _expire(self, now: float) -> None:
        while self._entries and self._entries[0][0] <= now:
            at, _, entry = heappop(self._entries)
            if entry.expires == at:  # else it has been settled, and stands here twice
                self.used -= entry.amount
                entry.amount = 0
