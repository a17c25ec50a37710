"""
The one loop that tries again.

| kind                                                          | attempts         |
|---------------------------------------------------------------|------------------|
| rate_limited, overloaded, timeout, transport                  | 1 + retries      |
| bad_response                                                  | 2 of these at most |
| auth, quota, refusal, context_window, bad_request, exception  | 1                |
| whatever a gate refuses, such as budget                       | 0: it stays here |

A form of the reply that the server refuses (`Failure.again`) is no attempt: it is sent in another form at once.

A reply that came, and cannot be read, is asked for again by `rubric.grading.flow`: at most `Judge.repairs` times, with
the retries that are left. So a criterion takes at most 1 + retries + repairs requests, whatever goes wrong.

Between two attempts it waits a random part of 0.5, 1, 2 ... 20 seconds (full jitter), or as long as the server asks
for if that is longer. A server that asks for more than two minutes ends it.

Waits between two attempts, and the early end of them.

A request that waits to be tried again is not in flight: it holds no place among the requests, and its candidate no
worker. And a backoff that has doubled several times is right only as long as the model is down. When a model answers
again, the requests that wait for it are sent again, a few for each reply, so that full throughput is a few round trips
away and not the longest backoff.
"""

from __future__ import annotations

import asyncio
import math
import random as randomness
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, evolve, field, frozen

from rubric.errors import ModelError
from rubric.internals.secrets import describe
from rubric.models.failures import UNSENT_USAGE
from rubric.values.requests import RETRIED, UNSENT, Failure, Limiter, Reply, Usage

if TYPE_CHECKING:
    from rubric.values.judges import Model
    from rubric.values.requests import Ask


LONGEST_WAIT = 120.0
"""Seconds that a server may ask to wait; more ends it."""

_DARK = 0.5
"""Seconds without a reply after which a model counts as down: where replies keep coming, a backoff has its purpose."""

_WOKEN = 3
"""Requests that one reply wakes: with the next request of its own worker, four times as many in each round trip."""

parking: ContextVar[Callable[[int], None] | None] = ContextVar("parking", default=None)
"""Is told 1 when work of this context begins to wait to be tried again, and -1 when it goes on; set by a worker."""


@contextmanager
def _parked() -> Iterator[None]:
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
    """Wait for so many *seconds* before another attempt; the worker takes other work meanwhile."""
    with _parked():
        await asyncio.sleep(seconds)


@define(eq=False)
class Backoffs:
    """
    The requests to one judge that wait to be tried again.

    They belong to one event loop.
    """

    _asleep: dict[asyncio.Future[None], float] = field(factory=dict)  # since when; the first has slept longest
    _replied: float = math.inf  # when the last reply came; before there is one, when the first request fell asleep
    _dawn: float = -math.inf  # what fell asleep before is woken by replies
    _not_before: float = 0.0

    async def sleep(self, seconds: float) -> None:
        """Wait for so many *seconds*, or until the model answers again."""
        loop = asyncio.get_running_loop()
        bell = loop.create_future()
        self._asleep[bell] = loop.time()
        self._replied = min(self._replied, loop.time())
        try:
            with _parked():
                await asyncio.wait([bell], timeout=seconds)
        finally:
            self._asleep.pop(bell, None)

    def settle(self, outcome: Reply | Failure | None) -> None:
        """Take note of what came of a request."""
        if isinstance(outcome, Reply):
            self._wake()
        elif outcome is not None and 0 < (outcome.retry_after or 0) <= LONGEST_WAIT:
            until = asyncio.get_running_loop().time() + (outcome.retry_after or 0)
            self._not_before = max(self._not_before, until)

    def _wake(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._replied >= _DARK:
            # Only what fell asleep in the dark is woken. Were every reply to wake what was just turned away, a server
            # that takes some and turns away others would see all retries of a request within a few milliseconds.
            self._dawn = now
        self._replied = now
        if now < self._not_before:  # one of them may have been told to wait so long
            return
        for _ in range(_WOKEN):
            bell = next(iter(self._asleep), None)
            if bell is None or self._asleep[bell] > self._dawn:
                return
            del self._asleep[bell]
            bell.set_result(None)


T = TypeVar("T")
_BASE_SECONDS = 0.5
_LONGEST_BACKOFF = 20.0
_DOUBLINGS = 10  # by then it is the longest anyway
_BAD_RESPONSES = 2
_UNBILLED = frozenset({"auth", "quota", "rate_limited", "overloaded", "context_window", "bad_request"})
Sleep = Callable[[float], Awaitable[Any]]


@frozen
class _Unsent:
    """What a gate has refused, and why."""

    failure: Failure


async def attempt(
    model: Model,
    ask: Ask,
    *,
    gate: Limiter | None = None,
    sleep: Sleep = sleep,
    random: Callable[[], float] = randomness.random,
) -> Reply | Failure:
    """
    Ask *model*, again where that may help, and return its reply or the last failure, with the usage of all attempts.

    Each attempt ends within the judge's timeout. A request that was turned away with an error status costs nothing;
    one whose fate is unknown counts as unmetered. Nothing is raised but cancellations and interrupts.

    Args:
        gate: What each attempt passes; the waiting in it is not part of the judge's timeout.
        sleep: Awaited between attempts, with the seconds.
        random: Returns a number from 0 to 1, for the jitter.
    """

    async def once() -> Reply | _Unsent | Failure:
        return await _passed(model, ask, gate)

    outcome: Reply | _Unsent | Failure
    outcome, spent = await persist(once, ask.retries_left, resends=ask.resends, sleep=sleep, random=random)
    if isinstance(outcome, Reply):
        return evolve(outcome, usage=spent + outcome.usage) if spent.calls else outcome
    return _located(outcome.failure if isinstance(outcome, _Unsent) else outcome, ask, spent)


async def persist(
    once: Callable[[], Awaitable[T | Failure]],
    retries: int,
    *,
    resends: bool = True,
    sleep: Sleep = sleep,
    random: Callable[[], float] = randomness.random,
) -> tuple[T | Failure, Usage]:
    """
    Await *once*, again where that may help, and return what came last, with the usage of the attempts that failed.

    Args:
        once: One attempt; it returns its failure, and raises none.
        retries: How many further attempts there may be.
        resends: Whether there is another after a failure in doubt.
        sleep: Awaited between attempts, with the seconds.
        random: Returns a number from 0 to 1, for the jitter.
    """
    spent, failures = Usage(), list[Failure]()
    while True:
        outcome = await once()
        if not isinstance(outcome, Failure):
            return outcome, spent
        spent += _usage(outcome)
        failures.append(outcome)
        if not _goes_on(failures, retries) or (outcome.in_doubt and not resends):
            return _explained(outcome), spent
        if outcome.again:
            continue
        backoff = random() * min(_LONGEST_BACKOFF, _BASE_SECONDS * 2.0 ** min(len(failures) - 1, _DOUBLINGS))
        await sleep(max(outcome.retry_after or 0.0, backoff))


def _goes_on(failures: Sequence[Failure], retries: int) -> bool:
    """Say whether another attempt follows on *failures*."""
    last = failures[-1]
    if last.again:  # each form is refused once, so this comes to an end
        return True
    tried = sum(not failure.again for failure in failures)
    if tried > retries or last.kind not in RETRIED or (last.retry_after or 0) > LONGEST_WAIT:
        return False
    return sum(failure.kind == "bad_response" for failure in failures) < _BAD_RESPONSES


async def _prepared(model: Model) -> Failure | None:
    """Let a model that has a `ready` get ready, outside of any deadline; return why it cannot."""
    ready = getattr(model, "ready", None)
    if ready is None:
        return None
    try:
        await ready()
    except ModelError as error:
        return error.failure
    except Exception as error:  # noqa: BLE001 - a model of the user's own may raise anything
        return Failure("exception", describe(error))
    return None


async def _passed(model: Model, ask: Ask, gate: Limiter | None) -> Reply | _Unsent | Failure:
    unready = await _prepared(model)  # before the gate: what is through that leaves at once
    if unready is not None:
        return unready
    if gate is None:
        return await _once(model, ask)
    try:
        async with gate(ask) as settle:
            outcome = await _once(model, ask)
            settle(outcome)
            return outcome
    except ModelError as error:
        return _Unsent(error.failure)


async def _once(model: Model, ask: Ask) -> Reply | Failure:
    try:
        # A model that keeps the deadline itself knows whether the request had left by then.
        async with asyncio.timeout(None if getattr(model, "is_punctual", False) else ask.judge.timeout):
            reply: object = await model.answer(ask)
    except ModelError as error:
        return error.failure
    except TimeoutError:
        return Failure("timeout", f"no whole answer within {ask.judge.timeout:g} seconds", in_doubt=True)
    except asyncio.CancelledError as error:
        if _is_cancelled():
            raise
        return Failure("exception", f"the model raised {describe(error)}, and nobody had cancelled it", in_doubt=True)
    except Exception as error:  # noqa: BLE001 - a model of the user's own may raise anything
        return Failure("exception", describe(error))
    if isinstance(reply, Reply):
        return reply
    return Failure("exception", f"the model returned {type(reply).__name__}, expected a Reply")


def _is_cancelled() -> bool:
    """Say whether somebody has cancelled this task: a client that gives up by itself raises the same."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _usage(failure: Failure) -> Usage:
    """Return what a failed attempt used: as the model says, else by its kind."""
    if failure.usage.calls:
        return failure.usage
    if failure.kind in UNSENT:
        return Usage()
    return Usage(calls=1, cost=0.0) if is_free(failure) else Usage(calls=1, cost=None, unmetered=1)


def is_free(failure: Failure) -> bool:
    """Say whether a request that failed cost nothing: it never left, or was turned away, and no usage with it."""
    if failure.usage == UNSENT_USAGE:
        return True
    return failure.kind in _UNBILLED and not failure.in_doubt and not failure.usage.calls


def _explained(failure: Failure) -> Failure:
    if failure.kind not in RETRIED or (failure.retry_after or 0) <= LONGEST_WAIT:
        return failure
    wait = f"the server asks to wait {failure.retry_after:g} seconds, {LONGEST_WAIT:g} are the most"
    return evolve(failure, message=f"{failure.message}; {wait}")


def _located(failure: Failure, ask: Ask, spent: Usage) -> Failure:
    criterion = failure.criterion or (ask.criteria[0].id if len(ask.criteria) == 1 else "")
    judge = failure.judge or ask.judge.name
    return evolve(failure, judge=judge, criterion=criterion, usage=spent)
