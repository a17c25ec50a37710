"""What the tests of the store grade with: a model that counts its asks, and a store in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from attrs import define, field

from rubric import Candidate, Grade, Judge, Rubric, Ungraded
from rubric.driving import flow
from rubric.engine.pipeline import Dispatcher, adrive
from rubric.errors import ModelError
from rubric.store.audit import stats
from rubric.testing.scripted_model import reply_to
from rubric.values.requests import Ask, Failure, Reply, Transport, Usage

if TYPE_CHECKING:
    from pathlib import Path

    from rubric.store.store import Store

POLITE = Rubric("polite").expects("Is polite")
PAID = Usage(calls=1, prompt_tokens=100, completion_tokens=10, cost=0.25)

Line = Reply | Failure | str | bool


@define(eq=False)
class Counted:
    """
    A model that counts what it is asked, and answers after *busy* seconds.

    Args:
        say: What it answers to an ask.
        identity: What a store tells it by.
    """

    say: Callable[[Ask], Line] = lambda _: True
    busy: float = 0.0
    identity: str = "counted"
    asks: list[Ask] = field(factory=list)
    asked: asyncio.Event = field(factory=asyncio.Event)
    cancelled: int = 0

    async def answer(self, ask: Ask, /) -> Reply:
        self.asks.append(ask)
        self.asked.set()
        try:
            await asyncio.sleep(self.busy)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        said = self.say(ask)
        if isinstance(said, Failure):
            raise ModelError(said)
        if isinstance(said, Reply):
            return said
        return Reply(said if isinstance(said, str) else reply_to(ask, said), usage=PAID)


def states(file: Path) -> dict[str, int]:
    """Return how many calls are in which state."""
    return {str(name): int(number) for name, number in stats(file).states.items()}


def is_odd(ask: Ask) -> bool:
    """Answer by the number of the candidate, the last thing in it but one: so a reply to another ask shows."""
    return int(ask.candidate[-2]) % 2 == 1


def carry_of(store: Store) -> Transport:
    """Return a carry past *store* as `grade_many` has it: departures are told by the gate."""
    return store.transport(Dispatcher(limiter=store.limiter()).send, limited=True)


async def carried(store: Store, ask: Ask) -> Reply | Failure:
    """Return what comes of *ask*."""
    return await carry_of(store)(ask)


async def agraded(
    store: Store, judge: Judge, candidate: Candidate | str = "Good morning!", rubric: Rubric = POLITE
) -> Grade | Ungraded:
    """Return what *candidate* comes to."""
    return await adrive(flow(Candidate.of(candidate), rubric, judge), carry_of(store))


def graded(
    store: Store, judge: Judge, candidate: Candidate | str = "Good morning!", rubric: Rubric = POLITE
) -> Grade | Ungraded:
    """Return what *candidate* comes to, in a loop of its own."""
    return asyncio.run(agraded(store, judge, candidate, rubric))


def scores(results: Iterable[Grade | Ungraded]) -> list[float | None]:
    """Return the score of each; None where it is not a grade."""
    return [result.score if isinstance(result, Grade) else None for result in results]


def told(result: Grade | Ungraded) -> object:
    """Return what a result says apart from what was used for it."""
    return _without_usage(result.to_dict())


def _without_usage(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _without_usage(value) for name, value in data.items() if name != "usage"}
    return [_without_usage(value) for value in data] if isinstance(data, list) else data
