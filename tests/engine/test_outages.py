"""What is in backoff holds no place, and an outage is over when the server is well again; in simulated time."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from attrs import define, field

from rubric import Grade, Judge, Limits, Rubric, agrade, agrade_many
from rubric.engine.pipeline import Dispatcher
from rubric.errors import ModelError
from rubric.values.requests import Ask, Failure, Reply, Usage
from tests.rows import each_row
from tests.sendables import ask_of
from tests.simulating import now, simulate

YES = Reply('{"reason": "so", "verdict": true}', usage=Usage(1, 10, 0, 5, 0.0))
BUSY = Failure("rate_limited", "busy", status=429)
RUBRIC = Rubric("polite").expects("Is polite")
SECONDS = 0.1


@define
class Vendor:
    """A model that turns all away from one time to another, and answers after a tenth of a second else."""

    down: tuple[float, float] = (0.0, 0.0)
    failure: Failure = BUSY
    is_serial: bool = False
    left: list[tuple[float, str]] = field(factory=list)
    answered: list[float] = field(factory=list)
    in_flight: int = 0
    most: int = 0

    async def answer(self, ask: Ask, /) -> Reply:
        self.left.append((now(), ask.candidate))
        is_down = self.down[0] <= now() < self.down[1] or ask.candidate == "the hopeless one"
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(SECONDS / 20 if is_down else SECONDS)
        self.in_flight -= 1
        if is_down:
            raise ModelError(self.failure)
        self.answered.append(now())
        return YES


def graded(vendor: Vendor, texts: list[str], concurrency: int, retries: int = 8, **given: Any) -> list[Any]:
    """Grade *texts* in simulated time, and return the results as they come."""
    random.seed(7)

    async def main() -> list[Any]:
        judge = Judge(vendor, retries=retries, timeout=10_000)
        return [each async for each in agrade_many(texts, RUBRIC, judge, concurrency=concurrency, **given)]

    return simulate(main())


def texts(number: int) -> list[str]:
    """Return so many candidates."""
    return [f"Text number {each}." for each in range(number)]


@pytest.mark.long
@each_row("limits", [None, Limits(clock=now)], ids=["alone", "limits"])
@each_row("concurrency", [8, 32])
@each_row("ordered", [True, False])
def test_throughput_is_back_soon_after_an_outage(limits: Limits | None, concurrency: int, ordered: bool) -> None:
    """Well again at 3.0 s after 1.5 s of nothing but 429: nine tenths from 5.0 s on, and never 0.5 s of nothing."""
    vendor = Vendor(down=(1.5, 3.0))
    results = graded(vendor, texts(60 * concurrency), concurrency, limits=limits, ordered=ordered)
    assert all(isinstance(each, Grade) for each in results)
    in_a_second = sum(5.0 <= at < 6.0 for at in vendor.answered)
    assert in_a_second >= 0.9 * concurrency / SECONDS
    left = [at for at, _ in vendor.left]
    assert max(later - at for at, later in pairwise(left) if at > 2.5) <= 0.5
    assert vendor.most <= concurrency


def test_limits_spare_the_retries_in_an_outage() -> None:
    """A server that turns all away is tried by one request at a time, so two retries each are enough."""
    vendor = Vendor(down=(1.5, 3.0))
    results = graded(vendor, texts(1_000), 32, retries=2, limits=Limits(clock=now))
    assert all(isinstance(each, Grade) for each in results)
    assert sum(1.55 < at < 3.0 for at, _ in vendor.left) < 20


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_candidate_in_backoff_holds_no_worker(concurrency: int) -> None:
    """The others go on, no more of them at once than may be, and it takes no longer than they do."""
    vendor = Vendor(failure=Failure("timeout", "", in_doubt=True))
    results = graded(vendor, ["the hopeless one", *texts(12 * concurrency)], concurrency, retries=4, ordered=False)
    assert [type(each) is Grade for each in results] == [True] * 12 * concurrency + [False]
    assert vendor.most <= concurrency
    assert max(vendor.answered) <= 12 * SECONDS + 1


def test_what_waits_is_bounded() -> None:
    """However many wait to be tried again, the source is read no further than twice the concurrency."""
    vendor, taken = Vendor(down=(0.0, 1e6)), list[int]()

    async def source() -> Any:
        for number in range(1_000):
            taken.append(number)
            yield f"Text number {number}."

    async def main() -> None:
        judge = Judge(vendor, retries=20, timeout=10_000)
        async with agrade_many(source(), RUBRIC, judge, concurrency=4) as stream:
            with suppress(TimeoutError):
                async with asyncio.timeout(30):
                    await anext(aiter(stream))

    simulate(main())
    assert len({text for _, text in vendor.left}) == len(taken) == 8


def test_a_server_that_takes_some_is_not_pressed() -> None:
    """Where replies keep coming, a backoff lasts as long as chance says: no request is tried three times at once."""

    @define
    class Half(Vendor):
        async def answer(self, ask: Ask, /) -> Reply:
            self.down = (now(), now() + 1) if self.in_flight >= 4 else (0.0, 0.0)
            return await super().answer(ask)

    vendor = Half()
    graded(vendor, texts(200), 8, retries=3)
    tries: dict[str, list[float]] = {}
    for at, text in vendor.left:
        tries.setdefault(text, []).append(at)
    waits = sorted(later - at for each in tries.values() for at, later in pairwise(each))
    assert len(waits) > 50
    assert waits[len(waits) // 2] > SECONDS


def test_a_server_that_asks_to_wait_is_not_woken_for() -> None:
    """A backoff that another request's reply ends lasts as long as the server has asked for."""
    vendor = Vendor()
    room = Dispatcher()
    judge = Judge(vendor, retries=3, timeout=10_000)

    async def main() -> None:
        vendor.down, vendor.failure = (0.0, 0.05), Failure("rate_limited", "", retry_after=5.0)
        waiting = [asyncio.create_task(room.send(ask_of(judge))) for _ in range(3)]
        await asyncio.sleep(1)
        await room.send(ask_of(judge))
        assert len(vendor.left) == 4
        await asyncio.gather(*waiting)

    simulate(main())
    assert min(at for at, _ in vendor.left[4:]) >= 5.0


def test_a_turn_is_not_held_in_backoff() -> None:
    """A model that takes one request after another answers the next while one waits to be tried again."""
    vendor = Vendor(is_serial=True, failure=Failure("timeout", "", in_doubt=True))
    judge = Judge(vendor, retries=5, timeout=10_000)
    room = Dispatcher()

    async def main() -> float:
        hopeless = asyncio.create_task(room.send(ask_of(judge, candidate="the hopeless one")))
        await asyncio.sleep(0.01)
        await room.send(ask_of(judge))
        at = now()
        await hopeless
        return at

    random.seed(7)
    assert simulate(main()) < 0.5
    assert vendor.most == 1


def test_a_judge_that_grades_by_itself_may_wait() -> None:
    """Its own waits are those of the candidate that it judges."""
    inner = Vendor(down=(0.0, 0.3))

    async def judging(messages: Any) -> str:
        result = await agrade("A text.", RUBRIC, Judge(inner, retries=8, timeout=10_000))
        return f'{{"reason": "so", "verdict": {str(result.passed).lower()}}}'

    async def main() -> list[Any]:
        judge = Judge(judging, timeout=10_000)
        return [each async for each in agrade_many(texts(9), RUBRIC, judge, concurrency=2)]

    assert [each.passed for each in simulate(main())] == [True] * 9
