"""
Rate limits: requests at once, requests and tokens a minute, and the server's wishes (Retry-After, 429, 503, 529).

`Limits` is what users give. For each model, at each key and address, it makes a `ModelLimiter`: a number of requests at
once that follows the server, a `Window` of requests and one of tokens, and a `FairQueue` in which requests wait.

Why not aiolimiter or pyrate-limiter: a place must be given back when a request does not leave after all, or takes fewer
tokens than it might; one object is shared by event loops in several threads; and a forked child must begin anew.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from heapq import heappop, heappush
from threading import Lock
from typing import TYPE_CHECKING, NoReturn
from weakref import WeakSet, ref

from attrs import define, evolve, field, frozen

from rubric.errors import DefinitionError, ModelError
from rubric.internals.fields import as_map, count, number, optional
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.guided import Guided, guided_init
from rubric.models.retry import LONGEST_WAIT
from rubric.values.requests import Ask, Commit, Failure, Reply

if TYPE_CHECKING:
    from rubric.values.judges import Judge

Clock = Callable[[], float]

# -- limits ----------------------------------------------------------------------------------------------


def address(judge: Judge) -> tuple[str, ...]:
    """Return the key and the address of *judge*: with its model, they tell apart for whom a vendor counts."""
    return tuple(str(judge.params.get(name)) for name in ("api_key", "api_base", "base_url"))


def _as_models(value: Mapping[str, Limits]) -> FrozenMap:
    found = as_map("by_model", value)
    for name, limits in found.items():
        if not isinstance(limits, Limits) or limits.by_model:
            raise DefinitionError(f"by_model.{name}", "expected Limits without limits by model of their own")
    return found


@guided_init
@frozen
class Limits(Guided):
    """
    How fast each model may be asked. Every request passes these limits, retries included.

    Each model, at each key and address, is counted by itself, in all runs that are given the same object. Requests wait
    in the order in which they come. When a server asks to wait (Retry-After), no request is sent to that model before;
    if it asks for more than two minutes, requests that would have to wait so long fail at once, unsent. A server that
    is too busy (429, 503, 529) gets half as many requests at once. While requests go well, their number doubles in each
    round up to half of what it was before the trouble, and then grows by an eighth a round, or by one if that is more.
    While nothing goes well, one request at a time tries, at most a quarter of a second apart.

    Args:
        concurrency: Requests at once for a model; None for any number.
        rpm: Requests in any 60 seconds; None for no limit.
        tpm: Tokens in any 60 seconds: those of the prompt and the longest reply, until it is known what it took.
        by_model: Limits of single models by their names; a limit that these leave out is that of the others.

    Raises:
        DefinitionError: A limit that would let nothing through.

    Example:
        >>> Limits(concurrency=64, rpm=500, by_model={"anthropic/claude-sonnet-5-5": Limits(rpm=50)}).rpm
        500
    """

    concurrency: int | None = field(default=None, kw_only=True, validator=optional(count(1)))
    rpm: int | None = field(default=None, kw_only=True, validator=optional(count(1)))
    tpm: int | None = field(default=None, kw_only=True, validator=optional(count(1)))
    by_model: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=_as_models)
    _window: float = field(default=60.0, kw_only=True, repr=False, validator=number(0, above=True))
    _clock: Clock = field(default=time.monotonic, kw_only=True, repr=False, eq=False)
    _lock: Lock = field(factory=Lock, init=False, repr=False, eq=False)
    _limiters: dict[tuple[object, ...], ModelLimiter] = field(factory=dict, init=False, repr=False, eq=False)

    def __reduce__(self) -> NoReturn:
        raise of_one_process("limits", "Limits(rpm=100)")

    @asynccontextmanager
    async def __call__(self, ask: Ask) -> AsyncIterator[Commit]:
        """Return what the request *ask* passes: entered when it may be sent, left when it is through."""
        limiter = self._limiter(ask.judge)
        # Counting tokens is slow, so it comes first: a place in a window is for a request that is sent at once.
        tokens = 0
        if limiter.tokens is not None:
            from rubric.models.token_counts import most_tokens  # noqa: PLC0415 - few limits are of tokens

            tokens = sum(await most_tokens(ask))
        async with limiter.place(tokens) as commit:
            yield commit

    def _limiter(self, judge: Judge) -> ModelLimiter:
        model = judge.model
        key = (model if isinstance(model, str) else id(model), *address(judge))
        with self._lock:  # two threads would each make one, and send twice as much
            if key not in self._limiters:
                self._limiters[key] = self.of(judge.name).limiter(self._keep_alive(model, key))
            return self._limiters[key]

    def _keep_alive(self, model: object, key: tuple[object, ...]) -> object:
        """Return what keeps the id of *model* its own: if possible a reference that takes the limiter away with it."""
        try:
            return ref(model, lambda _: self._limiters.pop(key, None))
        except TypeError:  # a name; or an object whose id would be used again if it were not kept
            return model

    def of(self, name: str) -> Limits:
        """Return the limits of the model with this *name*."""
        own: Limits | None = self.by_model.get(name)
        if own is None:
            return self
        concurrency, rpm, tpm = own.concurrency or self.concurrency, own.rpm or self.rpm, own.tpm or self.tpm
        return evolve(self, concurrency=concurrency, rpm=rpm, tpm=tpm)

    def limiter(self, model: object) -> ModelLimiter:
        """Return a new limiter that holds *model* to these limits."""
        requests = None if self.rpm is None else Window(self.rpm, self._window)
        tokens = None if self.tpm is None else Window(self.tpm, self._window)
        return ModelLimiter(self._clock, self.concurrency or math.inf, model, requests, tokens)


def of_one_process(name: str, example: str) -> DefinitionError:
    """Return the error for a limiter, made as in *example*, that is copied: it would count twice."""
    message = (
        "it counts in one process, and can be neither pickled nor copied; give it to "
        f"rubric.dask.grade_on_cluster(..., {name}={name}), where it holds for all workers together, or make one "
        f"in each process with its share: {example}"
    )
    return DefinitionError(name, message)


# -- windows ---------------------------------------------------------------------------------------------

_GRACE = 5.0  # seconds after which a request that was sent is taken to have arrived


@define(eq=False)
class Entry:
    """An amount that counts until it *expires*, in the seconds of the clock."""

    amount: float
    latest: float
    expires: float


@define(eq=False)
class Window:
    """
    Counts what was sent within the last *seconds*: a sliding window, exact to the request.

    A leaky bucket lets nearly twice its limit through in the window after a pause; this does not. A vendor counts
    requests when they arrive, which cannot be seen from here: at some time between sending and the reply. So an entry
    counts from when its request is sent until *seconds* after its reply, or after its fifth second in flight, whichever
    comes first. If it counted from sending alone, a slow request could arrive in the vendor's next window.
    """

    limit: float
    seconds: float = 60.0
    used: float = 0.0
    _entries: list[tuple[float, int, Entry]] = field(factory=list, repr=False)
    _numbers: itertools.count[int] = field(factory=itertools.count, repr=False)  # ties: entries have no order

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds for which *amount* certainly does not fit: 0 if it fits now."""
        self._expire(now)
        if self.used + amount <= self.limit:
            return 0.0
        return self._entries[0][0] - now if self._entries else math.inf

    def take(self, amount: float, now: float) -> Entry:
        """Count *amount*, which is sent *now*."""
        latest = now + _GRACE + self.seconds
        entry = Entry(amount, latest, latest)
        self._push(entry)
        self.used += amount
        return entry

    def commit(self, entry: Entry, amount: float, now: float) -> None:
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
            if entry.expires == at:  # else it was committed since, and is in the heap twice
                self.used -= entry.amount
                entry.amount = 0


# -- waiting in order ------------------------------------------------------------------------------------

_TICK = 0.001  # clocks round: a wait that ends a hair early would be one round more, or many


@define(eq=False)
class _Waiter:
    """One task in a queue. Its event belongs to its own loop, so other threads set it through that loop."""

    loop: asyncio.AbstractEventLoop = field(factory=asyncio.get_running_loop)
    woken: asyncio.Event = field(factory=asyncio.Event)

    def wake(self) -> bool:
        """Have the task look again; False if its loop is closed, and the task gone."""
        with suppress(RuntimeError):  # no loop runs in this thread
            if asyncio.get_running_loop() is self.loop:
                self.woken.set()
                return True
        try:
            self.loop.call_soon_threadsafe(self.woken.set)
        except RuntimeError:
            return False
        return True

    async def wait(self, seconds: float) -> None:
        """Return when it is woken, after *seconds* at the latest."""
        with suppress(TimeoutError):
            async with asyncio.timeout(None if math.isinf(seconds) else seconds + _TICK):
                await self.woken.wait()


@define(eq=False)
class FairQueue:
    """
    Lets tasks through in the order in which they came, whatever event loop or thread they belong to.

    asyncio's own locks belong to one loop. With one lock for each loop, and a shared count, the loop that is busiest
    would always win, and requests of another wait for ever. So there is one queue, guarded by a lock of threads that is
    held for a look and never across an `await`.

    Args:
        lock: Held while a task is let through. Code that changes what this depends on holds it too, and then calls
            `wake_first`.
        after_fork: Called in a forked child, in which none of the tasks exists that waits or was let through.
    """

    lock: Lock = field(factory=Lock)
    after_fork: Callable[[], None] | None = None
    _waiting: deque[_Waiter] = field(factory=deque)

    def __attrs_post_init__(self) -> None:
        _queues.add(self)

    async def pass_through(self, admit: Callable[[], float]) -> None:
        """
        Return when *admit* lets the caller through. Cancelled, it leaves the queue.

        *admit* is called with the lock held, for the first in the queue alone. It returns 0 when it has let the caller
        through, else the seconds until it is called again (`inf`: until `wake_first`). What it raises is raised here.
        """
        with self.lock:
            if not self._waiting and admit() <= 0:
                return
            waiter = _Waiter()
            self._waiting.append(waiter)
            # The tasks of a loop that was closed never leave by themselves, and would hold up all behind them.
            while self._waiting[0].loop.is_closed():
                self._waiting.popleft()
                self.wake_first()
        try:
            while (seconds := self._look(waiter, admit)) > 0:
                await waiter.wait(seconds)
        finally:
            with self.lock:
                with suppress(ValueError):
                    self._waiting.remove(waiter)
                self.wake_first()

    def wake_first(self) -> None:
        """Have the first in the queue look again; called with the lock held."""
        while self._waiting and not self._waiting[0].wake():
            self._waiting.popleft()

    def _look(self, waiter: _Waiter, admit: Callable[[], float]) -> float:
        with self.lock:
            waiter.woken.clear()  # before the look: a change after it wakes the waiter again
            return admit() if self._waiting[0] is waiter else math.inf

    def begin_anew(self) -> None:
        """Begin anew in a forked child: a thread that is not there may have held the lock, and no task waits here."""
        self.lock = Lock()
        self._waiting.clear()
        if self.after_fork is not None:
            self.after_fork()


_queues: WeakSet[FairQueue] = WeakSet()


def _begin_all_anew() -> None:
    for queue in [*_queues]:
        queue.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_all_anew)


# -- one model -------------------------------------------------------------------------------------------

_BUSY = frozenset({"rate_limited", "overloaded"})

_GROWTH = 1 / 8
"""By how much of itself the number of requests at once grows in a round that goes well."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.03, 0.25
"""Seconds between two tries of a server that turns away everything: an outage must not use up the retries of all."""


_Held = tuple[float, "Entry | None", "Entry | None"]
"""One request in flight: since when, and what it counts for in the windows of requests and of tokens."""


@define(eq=False)
class ModelLimiter:
    """
    Holds one model to its limits.

    Args:
        model: Keeps the id of the model its own.
        allowed: Requests at once for now: fewer than the most after the server has been too busy.
        goal: Up to here `allowed` doubles in each round: half of what was in flight when a trouble began. An outage
            tells nothing about what the server bears afterwards, so what it takes from `allowed` leaves the goal.
        closed_until: No request is sent before; in the seconds of the clock.
    """

    clock: Clock
    most: float
    model: object = None
    requests: Window | None = None
    tokens: Window | None = None
    allowed: float = field(init=False)
    goal: float = 0.0
    in_flight: int = 0
    closed_until: float = -math.inf
    _cut: float = -math.inf
    _trouble: float = math.inf  # when the first request was sent that was turned away this time
    _pause: float = 0.0  # while nothing has gone well since the last cut
    _queue: FairQueue = field(factory=FairQueue)

    def __attrs_post_init__(self) -> None:
        self.allowed = self.most
        self._queue.after_fork = self._begin_anew

    def _begin_anew(self) -> None:
        self.in_flight = 0  # those are the parent's; the windows stay, since the vendor counts them all

    @asynccontextmanager
    async def place(self, tokens: int) -> AsyncIterator[Commit]:
        """Hold a place for a request of at most *tokens*; raise if none comes within two minutes."""
        if self.tokens is not None and tokens > self.tokens.limit:
            raise ModelError(Failure("bad_request", _TOO_LARGE.format(tokens, self.tokens.limit)))
        admitted: list[_Held] = []
        await self._queue.pass_through(partial(self._admit, tokens, admitted))
        outcomes: list[Reply | Failure | None] = []
        try:
            yield outcomes.append
        finally:
            with self._queue.lock:
                self._take_back(*admitted[0], outcomes)
                self._queue.wake_first()

    def _admit(self, tokens: int, admitted: list[_Held]) -> float:
        now = self.clock()
        if self.closed_until - now > LONGEST_WAIT:
            seconds = self.closed_until - now
            raise ModelError(Failure("rate_limited", _CLOSED.format(seconds), retry_after=seconds))
        wait = max(
            self.closed_until - now,
            0.0 if self.in_flight + 1 <= self.allowed else math.inf,
            0.0 if self.requests is None else self.requests.wait(1, now),
            0.0 if self.tokens is None else self.tokens.wait(tokens, now),
        )
        if wait <= 0:
            self.in_flight += 1
            request = None if self.requests is None else self.requests.take(1, now)
            entry = None if self.tokens is None else self.tokens.take(tokens, now)
            admitted.append((now, request, entry))
        return wait

    def _take_back(
        self, since: float, request: Entry | None, tokens: Entry | None, outcomes: list[Reply | Failure | None]
    ) -> None:
        now, outcome = self.clock(), outcomes[-1] if outcomes else None
        is_sent = outcome is not None or not outcomes  # a request without a commit is in doubt, and so counts
        if self.requests is not None and request is not None:
            self.requests.commit(request, int(is_sent), now)
        if self.tokens is not None and tokens is not None:
            self.tokens.commit(tokens, _tokens_of(outcome, tokens.amount) if is_sent else 0, now)
        if isinstance(outcome, Reply):
            self._speed_up(since)
        elif outcome is not None:
            self._slow_down(outcome, since, now)
        self.in_flight -= 1

    def _speed_up(self, since: float) -> None:
        if since > self._cut:
            self._pause = 0.0
        elif since >= self._trouble:  # some are taken, others turned away: its capacity, not an outage
            self.goal = min(self.goal, self.allowed)
        more = 1.0 if self.allowed < self.goal else max(1 / self.allowed, _GROWTH)
        self.allowed = min(self.most, self.allowed + more)

    def _slow_down(self, failure: Failure, since: float, now: float) -> None:
        # Only requests that were sent after the last cut count: a whole round that was turned away is one trouble.
        if failure.kind in _BUSY and since > self._cut:
            half = min(self.allowed, self.in_flight) / 2
            if not self._pause:
                self.goal, self._trouble = half, since
            elif half < 1:  # the only one in flight was turned away, and nothing has gone well for a while
                self.closed_until = max(self.closed_until, now + self._pause)
            self.allowed, self._cut = max(1.0, half), now
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause or _FIRST_PAUSE)
        if failure.retry_after is not None:
            self.closed_until = max(self.closed_until, now + failure.retry_after)


def _tokens_of(outcome: Reply | Failure | None, most: float) -> float:
    """Return the tokens that a request took: the *most* it could if no usage was reported."""
    usage = None if outcome is None else outcome.usage
    if usage is None or usage.unmetered or not usage.calls:
        return most
    return usage.prompt_tokens + usage.completion_tokens


_TOO_LARGE = "a request of up to {:,} tokens never fits into {:,.0f} tokens a minute; raise tpm, or lower max_tokens"
_CLOSED = "not sent: the server has asked to wait, another {:.0f} seconds from now"
