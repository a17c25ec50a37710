"""
A `Carry` that asks a store first: what has been answered is served, what has not is sent, once, and kept.

Whoever asks for the same in one event loop shares one request; it is cancelled when nobody waits for it any more. Other
loops and other processes look again until the answer is there, or its sender is gone.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from attrs import define, evolve, field, frozen

from rubric.drivers.carrying import Carry
from rubric.exchanges import UNSENT, Ask, Failure, Reply
from rubric.store.clerks import Clerk, settled
from rubric.store.departures import Departure, carried
from rubric.store.keys import key_of, request_of
from rubric.store.ledgers import Busy, Doubtful, InDoubt, Kept, Wanted, Yours
from rubric.store.outcomes import free, kind_of, never_left

__all__ = ["Flight", "Keeping"]

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

    clerk: Clerk
    inner: Carry
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
