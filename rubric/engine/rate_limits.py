"""
How fast models may be asked: requests at once, requests and tokens a minute, and when a server asks to wait.

A line in which tasks wait, first come, first served, whatever loop or thread they belong to.

How much may leave in any window of time.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from heapq import heappop, heappush
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakSet, ref

from attrs import Attribute, define, evolve, field, frozen

from rubric.errors import DefinitionError, ModelError
from rubric.internals.fields import as_map, count, number, optional
from rubric.internals.frozen_map import FrozenMap
from rubric.models.pricing import most_tokens
from rubric.models.retry import LONGEST_WAIT
from rubric.values.requests import Ask, Commit, Failure, Reply

if TYPE_CHECKING:
    from rubric.values.judges import Judge


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
class FairQueue:
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


_lines: WeakSet[FairQueue] = WeakSet()


def _renew_all() -> None:
    for line in [*_lines]:
        line.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


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
    _numbers: itertools.count[int] = field(factory=itertools.count, repr=False)

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


ADDRESS = ("api_key", "api_base", "base_url")
"""The parameters of a judge that say whose limits hold, beside its model."""

_BUSY = frozenset({"rate_limited", "overloaded"})

_GROWTH = 1 / 8
"""By how much of itself the number of requests at once grows in a round that goes well."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.03, 0.25
"""Seconds between two tries of a server that turns away everything: an outage must not use up the retries of all."""

Clock = Callable[[], float]


def _as_models(value: Mapping[str, Limits]) -> FrozenMap:
    return as_map("by_model", value)


def _models(_: Any, attribute: Attribute[Any], value: Mapping[str, object]) -> None:
    for name, limits in value.items():
        if not isinstance(limits, Limits) or limits.by_model:
            raise DefinitionError(f"{attribute.name}.{name}", "expected Limits without limits by model of their own")


@frozen
class Limits:
    """
    How fast each model may be asked. It is a gate: every request passes it, retries included.

    Each model, at each key and address, is counted by itself, in all runs that are given the same object. Requests wait
    in the order in which they come. When a server asks to wait (Retry-After), no request leaves for that model before;
    if it asks for more than two minutes, those that would have to wait so long fail at once, unsent. A server that is
    too busy (429, 503, 529) gets half as many requests at once. While requests go well, their number doubles in each
    round up to half of what it was before the trouble, and then grows by an eighth a round, or by one if that is more.
    While nothing goes well, one request at a time tries, at most a quarter of a second apart.

    Args:
        concurrency: Requests at once for a model; None for as many as come.
        rpm: Requests in any 60 seconds; None for no limit.
        tpm: Tokens in any 60 seconds: those of the prompt and the longest reply, until it is known what it took.
        by_model: Limits of single models by their names; what these leave out is as for the others.

    Raises:
        DefinitionError: A limit that would let nothing through.

    Example:
        >>> Limits(concurrency=64, rpm=500, by_model={"anthropic/claude-sonnet-5-5": Limits(rpm=50)}).rpm
        500
    """

    concurrency: int | None = field(default=None, kw_only=True, validator=optional(count(1)))
    rpm: int | None = field(default=None, kw_only=True, validator=optional(count(1)))
    tpm: int | None = field(default=None, kw_only=True, validator=optional(count(1)))
    by_model: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=_as_models, validator=_models)
    _window: float = field(default=60.0, kw_only=True, repr=False, validator=number(0, above=True))
    _clock: Clock = field(default=time.monotonic, kw_only=True, repr=False, eq=False)
    _lock: Lock = field(factory=Lock, init=False, repr=False, eq=False)
    _limiters: dict[tuple[object, ...], Limiter] = field(factory=dict, init=False, repr=False, eq=False)

    def __call__(self, ask: Ask) -> AbstractAsyncContextManager[Commit]:
        """Return what the request *ask* passes: entered when it may leave, left when it is through."""
        return self._passing(ask)

    def __reduce__(self) -> NoReturn:
        raise of_one_process("limits", "Limits(rpm=100)")

    @asynccontextmanager
    async def _passing(self, ask: Ask) -> AsyncIterator[Commit]:
        limiter = self._limiter(ask.judge)
        # What is slow comes first: a place in a window is for a request that leaves at once.
        tokens = sum(await most_tokens(ask)) if limiter.tokens is not None else 0
        async with limiter.place(tokens) as settle:
            yield settle

    def _limiter(self, judge: Judge) -> Limiter:
        model = judge.model
        key = (model if isinstance(model, str) else id(model), *(str(judge.params.get(name)) for name in ADDRESS))
        with self._lock:
            if key not in self._limiters:
                self._limiters[key] = self._of(judge.name).limiter(self._kept(model, key))
            return self._limiters[key]

    def _kept(self, model: object, key: tuple[object, ...]) -> object:
        """Return what a limiter keeps of *model*: where that can be, a reference with which the limiter goes, too."""
        try:
            return ref(model, lambda _: self._limiters.pop(key, None))
        except TypeError:  # a name; or an object whose id would be used again if it were not kept
            return model

    def _of(self, name: str) -> Limits:
        own: Limits | None = self.by_model.get(name)
        if own is None:
            return self
        concurrency, rpm, tpm = own.concurrency or self.concurrency, own.rpm or self.rpm, own.tpm or self.tpm
        return evolve(self, concurrency=concurrency, rpm=rpm, tpm=tpm)

    def limiter(self, model: object) -> Limiter:
        """Return what holds *model* to these limits."""
        requests = None if self.rpm is None else Window(self.rpm, self._window)
        tokens = None if self.tpm is None else Window(self.tpm, self._window)
        return Limiter(self._clock, self.concurrency or math.inf, model, requests, tokens)


@define
class _Permit:
    """One request under way: since when, what it counts for, and what came of it."""

    since: float
    request: Entry | None
    tokens: Entry | None
    outcome: Reply | Failure | None = None
    is_sent: bool = True

    def settle(self, outcome: Reply | Failure | None) -> None:
        """Take note of what came; None: nothing has left."""
        self.outcome, self.is_sent = outcome, outcome is not None


@define(eq=False)
class Limiter:
    """
    Holds one model to its limits.

    Args:
        most: Requests at once.
        model: What tells that its id is not another's.
        requests: Those of the last minute.
        tokens: Those of the last minute.
        room: Requests at once for now: fewer than the most after the server has been too busy.
        goal: Up to here the room doubles in each round: half of what was in flight when a trouble began. What an outage
            takes from the room says nothing about what the server bears afterwards, so it leaves the goal as it is.
        under_way: Requests that have left and are not through.
        closed_until: No request leaves before; in the seconds of the clock.
    """

    clock: Clock
    most: float
    model: object = None
    requests: Window | None = None
    tokens: Window | None = None
    room: float = field(init=False)
    goal: float = 0.0
    under_way: int = 0
    closed_until: float = -math.inf
    _cut: float = -math.inf
    _trouble: float = math.inf  # when the first request left that was turned away this time
    _pause: float = 0.0  # while nothing has gone well since the last cut
    _line: FairQueue = field(factory=FairQueue)

    def __attrs_post_init__(self) -> None:
        self.room = self.most
        self._line.forked = self._begin_anew

    def _begin_anew(self) -> None:
        self.under_way = 0

    @asynccontextmanager
    async def place(self, tokens: int) -> AsyncIterator[Commit]:
        """
        Wait for a place for a request of so many *tokens* at most, and give it up afterwards.

        Raises:
            ModelError: It will not get one within two minutes, or ever.
        """
        if self.tokens is not None and tokens > self.tokens.limit:
            raise ModelError(Failure("bad_request", _TOO_LARGE.format(tokens, self.tokens.limit)))
        permits: list[_Permit] = []
        await self._line.pass_through(partial(self._admit, tokens, permits))
        try:
            yield permits[0].settle
        finally:
            with self._line.lock:
                self._take_back(permits[0])
                self._line.ring()

    def _admit(self, tokens: int, permits: list[_Permit]) -> float:
        now = self.clock()
        if self.closed_until - now > LONGEST_WAIT:
            seconds = self.closed_until - now
            raise ModelError(Failure("rate_limited", _CLOSED.format(seconds), retry_after=seconds))
        wait = max(
            self.closed_until - now,
            0.0 if self.under_way + 1 <= self.room else math.inf,
            0.0 if self.requests is None else self.requests.wait(1, now),
            0.0 if self.tokens is None else self.tokens.wait(tokens, now),
        )
        if wait <= 0:
            self.under_way += 1
            request = None if self.requests is None else self.requests.take(1, now)
            entry = None if self.tokens is None else self.tokens.take(tokens, now)
            permits.append(_Permit(now, request, entry))
        return wait

    def _take_back(self, permit: _Permit) -> None:
        now, outcome = self.clock(), permit.outcome
        if self.requests is not None and permit.request is not None:
            self.requests.settle(permit.request, int(permit.is_sent), now)
        if self.tokens is not None and permit.tokens is not None:
            took = _tokens_of(outcome, permit.tokens.amount) if permit.is_sent else 0
            self.tokens.settle(permit.tokens, took, now)
        if isinstance(outcome, Reply):
            self._speed_up(permit)
        elif outcome is not None:
            self._slow_down(outcome, permit, now)
        self.under_way -= 1

    def _speed_up(self, permit: _Permit) -> None:
        if permit.since > self._cut:
            self._pause = 0.0
        elif permit.since >= self._trouble:  # it takes some and turns away others: this is what it bears, no outage
            self.goal = min(self.goal, self.room)
        more = 1.0 if self.room < self.goal else max(1 / self.room, _GROWTH)
        self.room = min(self.most, self.room + more)

    def _slow_down(self, failure: Failure, permit: _Permit, now: float) -> None:
        if failure.kind in _BUSY and permit.since > self._cut:  # those that left before have had their say
            half = min(self.room, self.under_way) / 2
            if not self._pause:
                self.goal, self._trouble = half, permit.since
            elif half < 1:  # the only one in flight was turned away, and nothing has gone well for a while
                self.closed_until = max(self.closed_until, now + self._pause)
            self.room, self._cut = max(1.0, half), now
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause or _FIRST_PAUSE)
        if failure.retry_after is not None:
            self.closed_until = max(self.closed_until, now + failure.retry_after)


def _tokens_of(outcome: Reply | Failure | None, most: float) -> float:
    """Return the tokens that a request took: the *most* it could where nobody says."""
    usage = None if outcome is None else outcome.usage
    if usage is None or usage.unmetered or not usage.calls:
        return most
    return usage.prompt_tokens + usage.completion_tokens


_TOO_LARGE = "a request of up to {:,} tokens never fits into {:,.0f} tokens a minute; raise tpm, or lower max_tokens"
_CLOSED = "not sent: the server has asked to wait, another {:.0f} seconds from now"


def of_one_process(name: str, example: str) -> DefinitionError:
    """
    Return (not raise) the error for a gate that is pickled or copied: it would count twice what is to count once.

    Args:
        name: What it is given as, `budget` or `limits`.
        example: How one is made, such as `Budget(cost=1.00)`.
    """
    message = (
        "it counts in one process, and can be neither pickled nor copied; give it to "
        f"rubric.dask.grade_on_cluster(..., {name}={name}), where it holds for all workers together, or make one "
        f"in each process with its share: {example}"
    )
    return DefinitionError(name, message)
