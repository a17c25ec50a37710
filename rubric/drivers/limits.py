"""How fast models may be asked: requests at once, requests and tokens a minute, and when a server asks to wait."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import ref

from attrs import Attribute, define, evolve, field, frozen

from rubric.drivers.attempts import Settle
from rubric.drivers.backoffs import LONGEST_WAIT
from rubric.drivers.gates import of_one_process
from rubric.drivers.lines import Line
from rubric.drivers.windows import Entry, Window
from rubric.errors import DefinitionError, ModelError
from rubric.exchanges import Ask, Failure, Reply
from rubric.mappings import FrozenMap
from rubric.models.ceilings import most_tokens
from rubric.validating import as_map, count, number, optional

if TYPE_CHECKING:
    from rubric.judges import Judge

__all__ = ["ADDRESS", "Limits"]

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

    def __call__(self, ask: Ask) -> AbstractAsyncContextManager[Settle]:
        """Return what the request *ask* passes: entered when it may leave, left when it is through."""
        return self._passing(ask)

    def __reduce__(self) -> NoReturn:
        raise of_one_process("limits", "Limits(rpm=100)")

    @asynccontextmanager
    async def _passing(self, ask: Ask) -> AsyncIterator[Settle]:
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
    _line: Line = field(factory=Line)

    def __attrs_post_init__(self) -> None:
        self.room = self.most
        self._line.forked = self._begin_anew

    def _begin_anew(self) -> None:
        self.under_way = 0

    @asynccontextmanager
    async def place(self, tokens: int) -> AsyncIterator[Settle]:
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
