"""
A `Transport` that asks a store first: what has been answered is served, what has not is sent, once, and kept.

Whoever asks for the same in one event loop shares one request; it is cancelled when nobody waits for it any more. Other
loops and other processes look again until the answer is there, or its sender is gone.

When a call leaves: what the store is told between its being claimed and its being through.

A process that dies has sent what has left, and nothing else.

The reply store as it is used: opened, put in front of whatever carries asks, and closed.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Self, get_args

from attrs import define, evolve, field, frozen

from rubric.errors import DefinitionError, ModelError, StoreError
from rubric.internals.fields import as_path, refuse
from rubric.store.cache_key import key_of, request_of
from rubric.store.database import (
    Busy,
    Database,
    Doubtful,
    InDoubt,
    Kept,
    Mode,
    Tally,
    Wanted,
    Yours,
    free,
    kind_of,
    never_left,
)
from rubric.store.schema import connect, connect_to_read, explained, written
from rubric.store.writer_thread import WriterThread, settled
from rubric.values.requests import UNSENT, Ask, Commit, Failure, Limiter, Reply, Transport, commit_nothing


@define(eq=False)
class Departure:
    """Tells the store when a call leaves, as far as that is told apart from its being claimed."""

    clerk: WriterThread
    call: int
    told: bool
    has_left: bool = False
    is_over: bool = False
    is_taken_over: bool = False

    async def leave(self) -> None:
        """Record that the call leaves; it may, once this has returned."""
        if not self.told and not self.has_left:
            may = await settled(self.clerk.write(lambda ledger: ledger.leave(self.call)))
            if not may:
                self.is_taken_over = True
                raise ModelError(Failure("in_doubt", _TAKEN_OVER))
        self.has_left = True

    def settle(self, outcome: Outcome | None) -> None:
        """Record that a request was turned away, so that it is not in doubt while it waits for the next attempt."""
        if not self.told and isinstance(outcome, Failure) and not outcome.in_doubt:
            self.clerk.owe(lambda ledger: ledger.stay(self.call))
            self.has_left = False

    def give_up(self) -> None:
        """Record that nobody waits for the call any more; it is not awaited: who claims it next is behind this."""
        if self.is_over:
            return
        self.is_over = True
        has_left = self.has_left
        with suppress(StoreError):  # it is closed, and what this session had sent is in doubt anyway
            self.clerk.owe(lambda ledger: ledger.doubt(self.call) if has_left else ledger.drop(self.call))


_TAKEN_OVER = "not sent: this process gave no sign for so long that another one has taken the call over"

carried: ContextVar[Departure | None] = ContextVar("departure", default=None)
"""The departure of the call that the running task carries."""


def departing(gate: Limiter | None) -> Limiter:
    """Return a gate that records each departure, after *gate* has let it through."""

    @asynccontextmanager
    async def passing(ask: Ask) -> AsyncIterator[Commit]:
        inner: AbstractAsyncContextManager[Commit] = nullcontext(commit_nothing) if gate is None else gate(ask)
        async with inner as settle:
            departure = carried.get()
            if departure is None:
                yield settle
                return
            try:
                await departure.leave()
            except BaseException:
                settle(None)  # so it stays here
                raise

            def both(outcome: Outcome | None) -> None:
                departure.settle(outcome)
                settle(outcome)

            yield both

    return passing


Outcome = Reply | Failure

_FIRST_LOOK, _SLOWEST_LOOK = 0.02, 0.5
"""Seconds until one looks again for what somebody else has sent."""


@define(eq=False)
class Flight:
    """A request under way, and how many wait for it; with nobody left it is given up, and none may join it any more."""

    task: asyncio.Task[Outcome]
    departures: list[Departure]
    waiting: int = 0
    is_taken: bool = False
    is_given_up: bool = False

    @property
    def is_open(self) -> bool:
        """Whether what comes of it can still be waited for."""
        return not (self.is_given_up or self.task.done())

    async def join(self) -> Outcome:
        """Return what comes; its usage to the first that gets it, the others share what is paid for."""
        self.waiting += 1
        try:
            outcome = await asyncio.shield(self.task)
        finally:
            self.waiting -= 1
            if not self.waiting and not self.task.done():
                self.is_given_up = True
                self.task.cancel()
                await asyncio.wait([self.task])
        taken, self.is_taken = self.is_taken, True
        return free(outcome) if taken else outcome


@frozen
class Keeping:
    """
    Carries asks past a store.

    Args:
        clerk: Who writes.
        inner: Takes on what is not kept.
        in_doubt: Whether what may have been paid for is sent again.
        replays: Whether nothing is sent at all.
        gated: Whether departures are told by a gate.
        flights: What is under way, by event loop and key.
        name: Of the store, for messages.
    """

    clerk: WriterThread
    inner: Transport
    in_doubt: InDoubt
    replays: bool
    gated: bool
    name: str
    flights: dict[tuple[int, str], Flight] = field(repr=False)

    async def carry(self, ask: Ask) -> Outcome:
        """Return what is kept for *ask*, or what comes of sending it."""
        text = request_of(ask)
        goes_on = ask.repair < ask.judge.repairs
        wanted = Wanted(key_of(text), text, ask.judge.name, goes_on=goes_on, leaves=not self.gated)
        if self.replays:
            return await self._replay(ask, wanted)
        return await self._flight(ask, wanted).join()

    def _flight(self, ask: Ask, wanted: Wanted) -> Flight:
        """Return the flight that is to bring what is *wanted*: one that is under way, or a new one."""
        loop = asyncio.get_running_loop()
        place = (id(loop), wanted.key)
        flight = self.flights.get(place)
        if flight is None or not flight.is_open or flight.task.get_loop() is not loop:
            departures: list[Departure] = []
            task = loop.create_task(self._fetch(ask, wanted, departures))
            flight = self.flights[place] = Flight(task, departures)
            flight.task.add_done_callback(lambda task: self._land(place, task))
        return flight

    def _land(self, place: tuple[int, str], task: asyncio.Task[Outcome]) -> None:
        if not task.cancelled():
            task.exception()  # asked for, so that nobody logs that it was not: whoever waits gets it
        flight = self.flights.get(place)
        if flight is not None and flight.task is task:
            del self.flights[place]

    async def _replay(self, ask: Ask, wanted: Wanted) -> Outcome:
        kept = await settled(self.clerk.read(lambda ledger: ledger.recall(wanted)))
        if kept is not None:
            return free(kept.outcome)
        message = f"{self.name} has no reply to this ask; record it with mode='read-write'"
        return _located(Failure("replay", message), ask)

    def _clear_wrecks(self) -> None:
        """Give up what was under way on loops that are closed: nothing will come of it."""
        for place, flight in [*self.flights.items()]:
            if flight.task.get_loop().is_closed() and self.flights.pop(place, None) is flight:
                for departure in flight.departures:
                    departure.give_up()

    async def _fetch(self, ask: Ask, wanted: Wanted, departures: list[Departure]) -> Outcome:
        pause = _FIRST_LOOK
        while True:
            match await self._claim(wanted):
                case Kept(outcome):
                    return free(outcome)
                case Doubtful(sent_at):
                    return _located(_held(sent_at), ask)
                case Yours(call):
                    departures.append(Departure(self.clerk, call, told=not self.gated, has_left=not self.gated))
                    outcome = await self._send(ask, departures[-1])
                    if not (departures[-1].is_taken_over and never_left(outcome)):
                        return outcome
                case Busy():
                    self._clear_wrecks()
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _SLOWEST_LOOK)

    async def _claim(self, wanted: Wanted) -> Kept | Yours | Busy | Doubtful:
        future = self.clerk.write(lambda ledger: ledger.claim(wanted), unless=lambda ledger: ledger.look(wanted))
        try:
            return await settled(future)
        except asyncio.CancelledError:
            claimed = None if future.cancelled() or future.exception() else future.result()
            if isinstance(claimed, Yours):
                Departure(self.clerk, claimed.id, told=True).give_up()
            raise

    async def _send(self, ask: Ask, departure: Departure) -> Outcome:
        carried.set(departure)  # in the context of a task that has nothing else to do
        try:
            outcome = await self.inner(ask if self.in_doubt == "retry" else evolve(ask, resends=False))
        except BaseException:
            departure.give_up()
            raise
        if never_left(outcome):
            departure.has_left = False
            departure.give_up()
            return outcome
        kept, kind = _as_kept(outcome, departure), kind_of(ask, outcome)
        await settled(self.clerk.owe(lambda ledger: ledger.finish(departure.call, kept, kind)))
        departure.is_over = True
        return outcome


def _as_kept(outcome: Outcome, departure: Departure) -> Outcome:
    """Return *outcome* as it is kept: held back after an attempt whose fate is not known, the call is in doubt."""
    if isinstance(outcome, Failure) and outcome.kind in UNSENT and departure.has_left:
        return evolve(outcome, in_doubt=True)
    return outcome


def _held(sent_at: float) -> Failure:
    when = datetime.fromtimestamp(sent_at, UTC).isoformat(sep=" ", timespec="seconds")
    message = f"it was sent at {when}, and may have been paid for; what came of it is not known"
    return Failure("in_doubt", message, in_doubt=True)


def _located(failure: Failure, ask: Ask) -> Failure:
    return evolve(failure, judge=ask.judge.name, criterion=ask.criteria[0].id if len(ask.criteria) == 1 else "")


_PATIENCE = 30.0
_orphans: list[object] = []


class Store:
    """
    A file of replies: what has been answered is served from it, free of charge; what has not is sent, and kept.

    That one file is the cache, the resume after a crash, the recording for CI and the audit trail. Several processes of
    one machine may share it. It can be sent to another process, which opens the file for itself.

    Args:
        path: Of the file; it is made if there is none, its folder is not.
        mode: `read-write`; `replay`: nothing is sent, and what is not in the file is a failure of the kind `replay`;
            `refresh`: everything is asked again once, and replaces what was kept.
        in_doubt: What becomes of calls that had been sent when a process died, or that timed out: `retry` sends them
            again, and at most those that were in flight are paid for twice; `hold` never pays twice, and makes them
            failures of the kind `in_doubt`.
        patience: Seconds to wait for another process that keeps the file locked.

    Raises:
        StoreError: The file cannot be opened, or is something else.
        DefinitionError: No path, or a mode or a policy that there is not.

    Example:
        >>> import asyncio, tempfile
        >>> from rubric import Candidate, Judge, Rubric, flow
        >>> from rubric.engine.pipeline import Dispatcher, adrive
        >>> from rubric.store import Store
        >>> polite = Rubric("polite").expects("Is polite")
        >>> def graded(store):
        ...     steps = flow(Candidate("Good morning!"), polite, Judge("offline"))
        ...     return asyncio.run(adrive(steps, store.carry(Dispatcher().send)))
        >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/replies.db") as store:
        ...     first, second = graded(store), graded(store)
        ...     first.usage.calls, second.usage.calls, first.score == second.score
        (1, 0, True)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        mode: Mode = "read-write",
        in_doubt: InDoubt = "retry",
        patience: float = _PATIENCE,
    ) -> None:
        self.path = as_path("path", path)
        if str(self.path) == ":memory:":
            raise refuse("path", path, "the path of a file, which is what outlives a process")
        if mode not in get_args(Mode):
            raise refuse("mode", mode, "one of 'read-write', 'replay', 'refresh'")
        if in_doubt not in get_args(InDoubt):
            raise refuse("in_doubt", in_doubt, "'retry' or 'hold'")
        if mode == "replay" and in_doubt != "retry":
            raise DefinitionError("in_doubt", "a replay sends nothing, so nothing comes into doubt; take it out")
        self.mode: Mode = mode
        self.in_doubt: InDoubt = in_doubt
        self.patience = patience
        self._open()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, mode={self.mode!r}, in_doubt={self.in_doubt!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (str(self.path), self.mode, self.in_doubt, self.patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what is left, and close the file; what is under way then is in doubt."""
        if self._process == os.getpid():
            self._finalizer()

    @property
    def tally(self) -> Tally:
        """What it has been good for since it was opened."""
        return self._ledger.tally

    def carry(self, inner: Transport, *, gated: bool = False) -> Transport:
        """
        Return a `Transport` that asks this store first, and *inner* for what is not in it.

        Args:
            inner: Takes an ask to whoever answers it.
            gated: Whether every request that *inner* sends passes `gate`. Then what still waits for its turn when a
                process dies is not in doubt: only what has left is.

        The carry raises `StoreError` where the file cannot be written to: what could not be kept is not sent.
        """

        async def carried(ask: Ask) -> Reply | Failure:
            self._follow_fork()
            keeping = Keeping(
                self._clerk, inner, self.in_doubt, self.mode == "replay", gated, str(self.path), self._flights
            )
            return await keeping.carry(ask)

        return carried

    def gate(self, inner: Limiter | None = None) -> Limiter:
        """Return a gate that records each departure of what `carry(..., gated=True)` carries, after *inner*."""
        return departing(inner)

    def _open(self) -> None:
        self._process = os.getpid()
        self._flights: dict[tuple[int, str], Flight] = {}
        reads = self.mode == "replay"
        connection = (connect_to_read if reads else connect)(self.path, self.patience)
        self._ledger = Database(connection, self.mode, self.in_doubt)
        if not reads:
            with explained(self.path), written(connection):
                self._ledger.begin()
        flights = self._flights
        self._clerk = WriterThread(self.path, self._ledger, lambda: bool(flights))
        self._finalizer = weakref.finalize(self, self._clerk.close)

    def _follow_fork(self) -> None:
        """Open the file again in a forked child: neither the thread nor the connection is for this process."""
        if self._process != os.getpid():
            self._finalizer.detach()
            _orphans.append((self._ledger, self._clerk))
            self._open()


def _reopened(path: str, mode: Mode, in_doubt: InDoubt, patience: float) -> Store:
    return Store(path, mode=mode, in_doubt=in_doubt, patience=patience)
