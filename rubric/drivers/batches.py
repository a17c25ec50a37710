"""
Drives flows through a vendor's batch API: all that they ask goes out round by round, as files, at half the price.

A round may take as long as the vendor likes, a day at most. What was sent is kept in a small JSON file: run again with
the same flows after a crash, a Ctrl-C or a reboot, and the same batches are waited for and read, without being sent
again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path
from uuid import uuid4

from attrs import define, evolve, field

from rubric.drivers import batch_calls as calls
from rubric.drivers.attempts import Settle, settle_nothing
from rubric.drivers.batch_lists import BatchList, Sent
from rubric.drivers.budgets import Budget
from rubric.drivers.carrying import Carry
from rubric.errors import DefinitionError, ModelError
from rubric.exchanges import Ask, Failure, Reply, Usage
from rubric.grading.batching import Batch, Got, Steps, T
from rubric.judges import Judge
from rubric.models import openai_batches as vendor
from rubric.models.openai_batches import Line

__all__ = ["cancelled_in", "run_in_batches"]

_AT_ONCE = 256  # asks that a store is asked for
_MISSED = "it is not in the store, and goes into a batch"

Outcome = Reply | Failure
Past = Callable[[Carry], Carry]
"""Puts a store in front of whatever carries asks, as `Store.carry` does."""


async def run_in_batches(
    steps: Steps[T],
    path: str | os.PathLike[str],
    *,
    past: Past | None = None,
    budget: Budget | None = None,
    size: int = calls.MOST_LINES,
    poll: float = 60.0,
) -> T:
    """
    Return what *steps* come to, with each batch of asks answered by batches of the vendor's.

    Args:
        path: Where it is written down which batches were sent. One run at a time may use it.
        past: A store that is asked first, and that keeps each answer as soon as it has been read.
        budget: What may be spent. What does not fit beside the rest waits until that is through, and is then refused if
            it still does not. What an earlier run has sent is charged like the rest, and never refused.
        size: The most requests a batch.
        poll: Seconds between two looks at a batch.

    Raises:
        DefinitionError: A judge has no batches, or *path* holds something else.
        StoreError: The store cannot be written to.
    """
    rounds = _Rounds(BatchList.read(Path(path)), past, budget, size, poll)
    got: Got | None = None
    try:
        while True:
            got = await rounds.answered(next(steps) if got is None else steps.send(got))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


async def cancelled_in(path: str | os.PathLike[str], judges: Iterable[Judge]) -> int:
    """
    Cancel what is under way of the batches in *path*, and return how many that are.

    Args:
        judges: Whose addresses and keys the batches were sent with; each address is asked once.

    Raises:
        DefinitionError: *path* holds something else.
        ModelError: The vendor does not say.
    """
    places = {vendor.place_of(judge): judge for judge in judges}
    cancelled = 0
    for one in BatchList.read(Path(path)).sent:
        for judge in places.values():
            batch = one.id or await vendor.find(judge, one.mark)
            cancelled += bool(batch) and await vendor.cancel(judge, batch)
    return cancelled


Wanted = Mapping[str, tuple[Line, Ask]]


@define
class _Rounds:
    known: BatchList
    past: Past | None
    budget: Budget | None
    size: int
    poll: float
    answers: dict[str, Outcome] = field(factory=dict)

    async def answered(self, batch: Batch) -> Got:
        """Return what came of the asks of *batch*."""
        lines = [_line(ask) for ask in batch]
        wanted = {line.key: (line, ask) for line, ask in zip(lines, batch, strict=True) if isinstance(line, Line)}
        if self.past is not None:
            await self._recall(self.past, wanted)
        await self._adopt(self._open(wanted))
        await self._resume(self._open(wanted))
        while fresh := self._open(wanted):
            await self._wave(fresh)
        return self._got(batch, lines)

    def _open(self, wanted: Wanted) -> dict[str, tuple[Line, Ask]]:
        return {key: pair for key, pair in wanted.items() if key not in self.answers}

    # -- the store -----------------------------------------------------------------------------------------

    async def _recall(self, past: Past, wanted: Wanted) -> None:
        """Take from the store what it has."""

        async def miss(_: Ask) -> Outcome:
            return Failure("replay", _MISSED)  # of a kind of what is not sent: so the store lets go of it

        async def look(key: str, ask: Ask) -> None:
            outcome = await past(miss)(ask)
            if not (isinstance(outcome, Failure) and outcome.message == _MISSED):
                self.answers[key] = outcome

        await _each(look(key, ask) for key, (_, ask) in self._open(wanted).items())

    async def _keep(self, wanted: Wanted, found: Mapping[str, Outcome]) -> None:
        """Have the store keep what was *found*, before anybody uses it."""
        if self.past is None:
            return

        async def keep(past: Past, ask: Ask, outcome: Outcome) -> None:
            async def came(_: Ask) -> Outcome:
                return outcome

            await past(came)(ask)

        await _each(keep(self.past, wanted[key][1], outcome) for key, outcome in found.items())

    # -- what an earlier run has sent ----------------------------------------------------------------------

    async def _adopt(self, wanted: Wanted) -> None:
        """Look for batches whose ids nobody lived to hear; what was not created is forgotten, and so sent again."""
        for one in [one for one in self.known.sent if not one.id]:
            judge = next((wanted[key][1].judge for key in one.keys if key in wanted), None)
            if judge is None:
                continue
            batch = await calls.found(judge, one.mark)
            if isinstance(batch, Failure):
                self.answers |= dict.fromkeys(one.keys, batch)
            elif batch:
                one.id = batch
                self.known.write()
            else:
                self.known.forget(one.keys)

    async def _resume(self, wanted: Wanted) -> None:
        """Wait for what was sent before, and charge it: it was set aside by whoever is gone."""
        found = await self._received(wanted)
        if self.budget is None:
            return
        for key, outcome in found.items():
            await self.budget.charge_for(wanted[key][1], outcome)

    # -- what is sent now ----------------------------------------------------------------------------------

    async def _wave(self, fresh: Wanted) -> None:
        """Send as much of *fresh* as the budget allows at once, and wait for it; answer what it never will."""
        async with AsyncExitStack() as held:
            settles = await self._admitted(held, fresh)
            wave = {key: fresh[key] for key in settles}
            found: dict[str, Outcome] = {}
            try:
                for judge, lines in calls.in_files(wave.values(), self.size):
                    await self._send(judge, lines)
                found = await self._received(wave)
            finally:
                self._settle(settles, found)
        self._queue_again(found)

    def _settle(self, settles: Mapping[str, Settle], found: Mapping[str, Outcome]) -> None:
        """Tell the budget what came; of what was sent, and has no answer yet, nothing: so all of it is charged."""
        sent = self.known.keys()
        for key, settle in settles.items():
            if key in found or key not in sent:
                settle(found.get(key))

    async def _admitted(self, held: AsyncExitStack, fresh: Wanted) -> dict[str, Settle]:
        """Return those that fit, with whom to tell what came; where none does, their refusals are their answers."""
        if self.budget is None:
            return dict.fromkeys(fresh, settle_nothing)
        settles: dict[str, Settle] = {}
        refused: dict[str, Outcome] = {}
        for key, (_, ask) in fresh.items():
            try:
                settles[key] = await held.enter_async_context(self.budget.at_once(ask))
            except ModelError as error:
                refused[key] = error.failure
        if not settles:
            self.answers |= refused
        return settles

    async def _send(self, judge: Judge, lines: Sequence[Line]) -> None:
        one = Sent(uuid4().hex, "", [line.key for line in lines])
        self.known.sent.append(one)
        self.known.write()
        made = await calls.created(judge, lines, one.mark)
        if isinstance(made, Failure):
            self.answers |= dict.fromkeys(one.keys, made)
            if not made.in_doubt:
                self.known.forget(one.keys)
        else:
            one.id = made
            self.known.write()

    async def _received(self, wanted: Wanted) -> dict[str, Outcome]:
        """Wait for all batches with something *wanted*, and return what they answer to it."""
        found: dict[str, Outcome] = {}
        for one in [*self.known.sent]:
            mine = {key: wanted[key] for key in one.keys if key in wanted and key not in self.answers}
            if mine and one.id:
                found |= await self._receive(one, mine)
        return found

    async def _receive(self, one: Sent, mine: Wanted) -> dict[str, Outcome]:
        """Wait until *one* is over, and keep what it answers."""
        judge = next(iter(mine.values()))[1].judge
        came = await calls.answers(judge, one.id, {key: line for key, (line, _) in mine.items()}, self.poll)
        if isinstance(came, Failure):  # nobody says how it stands: another run will ask
            self.answers |= dict.fromkeys(mine, came)
            return {}
        await self._keep(mine, came)
        self.answers |= came
        self.known.forget(key for key, outcome in came.items() if isinstance(outcome, Failure))
        return came

    def _queue_again(self, found: Mapping[str, Outcome]) -> None:
        """Send again what the vendor's queue had no room for, if others were answered meanwhile and have made some."""
        if any(isinstance(outcome, Reply) for outcome in found.values()):
            for key, outcome in found.items():
                if isinstance(outcome, Failure) and vendor.is_queue_full(outcome):
                    del self.answers[key]

    def _got(self, batch: Batch, lines: Sequence[Line | Failure]) -> Got:
        """Return the answers in the order of the asks; asks that are the same to the byte were paid for once."""
        served: set[str] = set()
        got: list[Outcome] = []
        for ask, line in zip(batch, lines, strict=True):
            answer = line if isinstance(line, Failure) else self.answers[line.key]
            paid = isinstance(line, Failure) or line.key not in served
            answer = answer if paid else evolve(answer, usage=Usage())
            got.append(evolve(answer, judge=ask.judge.name) if isinstance(answer, Failure) else answer)
            served |= set() if isinstance(line, Failure) else {line.key}
        return tuple(got)


def _line(ask: Ask) -> Line | Failure:
    if not vendor.has_batches(ask.judge):
        raise DefinitionError("judge", f"{ask.judge.name!r} has no batches here; name a model of OpenAI's")
    try:
        return vendor.line_of(ask)
    except ModelError as error:
        return error.failure


async def _each(several: Iterable[Awaitable[None]]) -> None:
    """Await *several*, some at a time; raise what the first of them raises once the others beside it are through."""
    waiting = iter(several)
    while some := [*islice(waiting, _AT_ONCE)]:
        for came in await asyncio.gather(*some, return_exceptions=True):
            if isinstance(came, BaseException):
                raise came
