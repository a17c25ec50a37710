"""
The retry policy, and the loop that follows it.

`retry_delay` is the policy as a pure function; docs/reference/errors.md has it by kind. A response format that the
server refuses (`Failure.again`) is no attempt: the request is sent at once in another format. A reply that cannot be
read is asked for again by `rubric.grading.flow`, at most `Judge.repairs` times and within the retries that are left. So
a criterion takes at most 1 + retries + repairs requests, whatever goes wrong.

A request that waits to be retried is not in flight: it holds no place among the requests, and its candidate holds no
worker. A backoff that has doubled several times is right only while the model is down. When the model answers again,
each reply wakes a few of the requests that wait, so full throughput is a few round trips away, not a longest backoff.
"""

from __future__ import annotations

import asyncio
import math
import random as randomness
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from attrs import define, evolve, field, frozen

from rubric.errors import ModelError
from rubric.internals.secrets import describe
from rubric.internals.telemetry import TRACES, chat_span, is_traced, logger
from rubric.models.chat_completions import thinking, with_room
from rubric.models.failure_kinds import UNSENT_USAGE
from rubric.values.requests import RETRIED, UNSENT, Failure, Limiter, Reply, Usage

if TYPE_CHECKING:
    from rubric.models.threads import Job
    from rubric.values.judges import Model
    from rubric.values.requests import Ask

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[Any]]

LONGEST_WAIT = 120.0
"""The most seconds that a server may ask to wait; more ends the retries."""

_BASE_SECONDS, _LONGEST_BACKOFF = 0.5, 20.0
_DOUBLINGS = 10  # the backoff is the longest by then, and 2.0 ** 1024 would overflow
_BAD_RESPONSES = 2
_UNBILLED = frozenset({"auth", "quota", "rate_limited", "overloaded", "context_window", "bad_request"})

# -- the policy ------------------------------------------------------------------------------------------


def retry_delay(
    failures: Sequence[Failure],
    retries: int = 2,
    *,
    resends: bool = True,
    random: Callable[[], float] = randomness.random,
) -> float | None:
    """
    Return the seconds to wait before a request is sent again; None if it is not.

    The wait is a random part of 0.5, 1, 2 ... 20 seconds (full jitter), or the server's Retry-After if that is longer.
    A server that asks for more than two minutes ends the retries.

    Args:
        failures: Of all attempts so far, in order.
        retries: How many further attempts a request may have, as `Ask.retries_left` says.
        resends: False if a request must not be sent again once it may have been carried out, as `Ask.resends` says.
        random: Returns a number from 0 to 1, for the jitter.

    Example:
        >>> from rubric.driving import Failure, retry_delay
        >>> busy = Failure("rate_limited", "429", retry_after=7.0)
        >>> retry_delay([busy]), retry_delay([busy] * 3), retry_delay([Failure("auth", "401")])
        (7.0, None, None)
    """
    last = failures[-1]
    if last.in_doubt and not resends:
        return None
    if last.again:  # each format is refused once, so this ends
        return 0.0
    attempts = sum(not failure.again for failure in failures)
    if attempts > retries or last.kind not in RETRIED or (last.retry_after or 0) > LONGEST_WAIT:
        return None
    if sum(failure.kind == "bad_response" for failure in failures) >= _BAD_RESPONSES:
        return None
    backoff = random() * min(_LONGEST_BACKOFF, _BASE_SECONDS * 2.0 ** min(len(failures) - 1, _DOUBLINGS))
    return max(last.retry_after or 0.0, backoff)


def is_free(failure: Failure) -> bool:
    """True if a failed request cost nothing: it was not sent, or was turned away, and reports no usage."""
    if failure.usage == UNSENT_USAGE:
        return True
    return failure.kind in _UNBILLED and not failure.in_doubt and not failure.usage.calls


def usage_of(failure: Failure) -> Usage:
    """Return what a failed attempt used: as the model reports, else by its kind."""
    if failure.usage.calls:
        return failure.usage
    if failure.kind in UNSENT:
        return Usage()
    return Usage(calls=1, cost=0.0) if is_free(failure) else Usage(calls=1, cost=None, unmetered=1)


# -- waiting ---------------------------------------------------------------------------------------------

parking: ContextVar[Callable[[int], None] | None] = ContextVar("parking", default=None)
"""Called with 1 when work of this context begins to wait for a retry, and with -1 when it goes on; set by a worker."""


@contextmanager
def _park() -> Iterator[None]:
    tell = parking.get()
    if tell is None:
        yield
        return
    tell(1)
    try:
        yield
    finally:
        tell(-1)


async def sleep(seconds: float) -> None:
    """Wait *seconds* before the next attempt; the worker takes other work meanwhile."""
    with _park():
        await asyncio.sleep(seconds)


_DARK = 0.5
"""Seconds without a reply after which a model counts as down: while replies keep coming, a backoff has its purpose."""

_WOKEN = 3
"""Requests that one reply wakes: with the next request of its own worker, four times as many in each round trip."""


@define(eq=False)
class Backoffs:
    """The requests to one judge that wait to be retried; they belong to one event loop."""

    _asleep: dict[asyncio.Future[None], float] = field(factory=dict)  # since when; the first has slept longest
    _replied: float = math.inf  # when the last reply came; before there is one, when the first request fell asleep
    _dawn: float = -math.inf  # requests that fell asleep before are woken by replies
    _not_before: float = 0.0
    has_replied: bool = False

    async def sleep(self, seconds: float) -> None:
        """Wait *seconds*, or until the model answers again."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._asleep[waiter] = loop.time()
        self._replied = min(self._replied, loop.time())
        try:
            with _park():
                await asyncio.wait([waiter], timeout=seconds)
        finally:
            self._asleep.pop(waiter, None)

    def commit(self, outcome: Reply | Failure | None) -> None:
        """Note the outcome of a request: a reply wakes others, a Retry-After keeps them asleep."""
        now = asyncio.get_running_loop().time()
        if not isinstance(outcome, Reply):
            if outcome is not None and 0 < (outcome.retry_after or 0) <= LONGEST_WAIT:
                self._not_before = max(self._not_before, now + (outcome.retry_after or 0))
            return
        self.has_replied = True
        if now - self._replied >= _DARK:
            # Only requests that fell asleep in the dark are woken. If every reply woke those that were just turned
            # away, a server that takes some and turns away others would see all their retries within milliseconds.
            self._dawn = now
        self._replied = now
        if not self._asleep or now < self._not_before:  # one of them may have been told to wait until then
            return
        for waiter in [*islice(self._asleep, _WOKEN)]:
            if self._asleep[waiter] > self._dawn:
                return
            del self._asleep[waiter]
            waiter.set_result(None)


# -- deadlines -------------------------------------------------------------------------------------------

_HAIR = 1e-6  # clocks round: a timer may fire a hair before the time it was set for


@define(eq=False)
class _Watch:
    """The requests of one event loop with one timeout: they expire in the order of sending, so one timer does."""

    pending: dict[Deadline, None] = field(factory=dict)
    is_armed: bool = False

    def expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the requests whose time is over, and set the timer for the next."""
        self.is_armed = False
        now = loop.time() + _HAIR
        for deadline in [*self.pending]:
            if deadline.when <= now and (later := deadline.later(now)) > now:
                deadline.when = later
                self.pending = dict.fromkeys(sorted(self.pending, key=attrgetter("when")))
                self.expire(loop)
                return
            if deadline.when > now:
                self.arm(deadline, loop)
                return
            del self.pending[deadline]
            deadline.is_over = True
            deadline.task.cancel()

    def arm(self, deadline: Deadline, loop: asyncio.AbstractEventLoop) -> None:
        self.is_armed = True
        loop.call_at(deadline.when, self.expire, loop)


# Neither a watch nor a loop is kept by this: a watch knows its loop by the timer alone, which the loop owns.
_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[float, _Watch]] = WeakKeyDictionary()


class Deadline:
    """
    Like `asyncio.timeout`, at a fifth of its cost, for the many requests that have the same timeout.

    A timer for each of them is set and cancelled within milliseconds; that took a tenth of a whole grade. The time of
    a *job* for a thread runs from when a thread takes it.
    """

    __slots__ = ("_cancelling", "_job", "_seconds", "_watch", "is_over", "task", "when")

    def __init__(self, seconds: float, job: Job | None = None) -> None:
        self._seconds, self._job = seconds, job
        self.is_over = False

    def later(self, now: float) -> float:
        """Return when the time is over, of a job as its thread began it: if none has, it has all its time *now*."""
        return self.when if self._job is None else (self._job.began or now) + self._seconds

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        watches = _watches.get(loop)
        if watches is None:
            watches = _watches.setdefault(loop, {})
        self._watch = watches.get(self._seconds) or watches.setdefault(self._seconds, _Watch())
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a deadline is for a task")
        self.task, self._cancelling, self.when = task, task.cancelling(), loop.time() + self._seconds
        self._watch.pending[self] = None
        if not self._watch.is_armed:
            self._watch.arm(self, loop)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self.is_over:
            del self._watch.pending[self]
        # Another cancellation than ours goes on as one: the caller wants this task to end.
        elif self.task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError


# -- the loop --------------------------------------------------------------------------------------------


async def persist(
    once: Callable[[], Awaitable[T | Failure]],
    retries: int,
    *,
    first: T | Failure | None = None,
    resends: bool = True,
    sleep: Sleep = sleep,
    random: Callable[[], float] = randomness.random,
) -> tuple[T | Failure, Usage]:
    """
    Await *once* until it succeeds or `retry_delay` ends it; return the last outcome and what failed attempts used.

    *once* returns its failure and raises none; *first* is the outcome of an attempt that was made already.
    """
    outcome = await once() if first is None else first
    spent, failures = Usage(), list[Failure]()
    while isinstance(outcome, Failure):
        spent += usage_of(outcome)
        failures.append(outcome)
        delay = retry_delay(failures, retries, resends=resends, random=random)
        if delay is None:
            return _explain(outcome), spent
        logger.info("retry %d in %.1f s: %s (HTTP %s)", len(failures), delay, outcome.kind, outcome.status or "-")
        if not outcome.again:
            await sleep(delay)
        outcome = await once()
    return outcome, spent


@frozen
class _Unsent:
    """A refusal by a limiter: the request was not sent, is not retried, and was not a call."""

    failure: Failure


async def attempt(
    model: Model,
    ask: Ask,
    *,
    limiter: Limiter | None = None,
    sleep: Sleep = sleep,
    random: Callable[[], float] = randomness.random,
    failed: Callable[[Ask, Failure], None] | None = None,
) -> Reply | Failure:
    """
    Send *ask* to *model*, again where that may help; return the reply or the last failure, with all usage.

    Each attempt passes *limiter* and then ends within the judge's timeout; none of its places is held in *sleep*. A
    request that was turned away with an error status costs nothing; one whose fate is unknown counts as unmetered.
    Nothing is raised but cancellations and interrupts. *failed* is told of a request that was sent and failed for good.
    """
    if thinking:  # before the limiter: a budget reserves what is then sent
        ask = with_room(ask)
    first = await _send(model, ask, limiter)
    if isinstance(first, Reply):  # the usual ask is through: the loop is for requests that failed
        return first
    once = partial(_send, model, ask, limiter)
    last: tuple[Reply | _Unsent | Failure, Usage] = await persist(
        once, ask.retries_left, first=first, resends=ask.resends, sleep=sleep, random=random
    )
    outcome, spent = last
    if isinstance(outcome, Reply):
        return evolve(outcome, usage=spent + outcome.usage) if spent.calls else outcome
    failure = outcome.failure if isinstance(outcome, _Unsent) else outcome
    if failed is not None and failure is outcome:
        failed(ask, failure)
    criterion = failure.criterion or (ask.criteria[0].id if len(ask.criteria) == 1 else "")
    return evolve(failure, judge=failure.judge or ask.judge.name, criterion=criterion, usage=spent)


async def _send(model: Model, ask: Ask, limiter: Limiter | None) -> Reply | _Unsent | Failure:
    ready = getattr(model, "ready", None)
    if ready is not None:
        # Before the limiter, since a request that is through it is sent at once; and outside of any deadline.
        try:
            await ready()
        except ModelError as error:
            return error.failure
        except Exception as error:  # noqa: BLE001 - a model of the user's own may raise anything
            return Failure.of(error)
    if limiter is None:
        return await _answer(model, ask)
    try:
        async with limiter(ask) as commit:
            # Cancelled here, the request is left without a commit, and so in doubt: the vendor may carry it out all the
            # same. Every limiter then counts it as sent, and a budget charges all that it had reserved.
            outcome = await _answer(model, ask)
            commit(outcome)
            return outcome
    except ModelError as error:
        return _Unsent(error.failure)


def _answer(model: Model, ask: Ask) -> Coroutine[Any, Any, Reply | Failure]:
    is_plain = TRACES not in sys.modules or not is_traced()
    return _ask_once(model, ask) if is_plain else _trace(model, ask)


async def _trace(model: Model, ask: Ask) -> Reply | Failure:
    from rubric.models.pricing import entry_for, model_name  # noqa: PLC0415 - for those who trace

    listed = model_name(ask.judge)
    vendor, _, name = listed.partition("/") if "/" in listed else ("", "", listed)
    vendor = vendor or str(entry_for(name).get("litellm_provider") or "")
    with chat_span(ask, name or ask.judge.name, vendor) as record:
        outcome = await _ask_once(model, ask)
        record(outcome)
    return outcome


async def _ask_once(model: Model, ask: Ask) -> Reply | Failure:
    try:
        if getattr(model, "is_punctual", False):  # it keeps the deadline itself, and knows whether the request was sent
            reply: object = await model.answer(ask)
        else:
            with Deadline(ask.judge.timeout):
                reply = await model.answer(ask)
    except ModelError as error:
        return error.failure
    except TimeoutError:
        return Failure("timeout", f"no whole answer within {ask.judge.timeout:g} seconds", in_doubt=True)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():  # a client that gives up by itself raises the same exception
            raise
        return Failure("exception", f"the model raised {describe(error)}, and it had not been cancelled", in_doubt=True)
    except Exception as error:  # noqa: BLE001 - a model of the user's own may raise anything
        return Failure.of(error)
    if isinstance(reply, Reply):
        return reply
    return Failure("exception", f"the model returned {type(reply).__name__}, expected a Reply")


def _explain(failure: Failure) -> Failure:
    if failure.kind not in RETRIED or (failure.retry_after or 0) <= LONGEST_WAIT:
        return failure
    wait = f"the server asks to wait {failure.retry_after:g} seconds, {LONGEST_WAIT:g} are the most"
    return evolve(failure, message=f"{failure.message}; {wait}")
