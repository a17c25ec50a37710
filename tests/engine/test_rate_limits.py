"""Limits of models, in simulated time: windows, places, order, and what a busy server changes."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections import deque
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from attrs import define, field
from hypothesis import example, given
from hypothesis import strategies as st

from rubric.engine.pipeline import Dispatcher
from rubric.engine.rate_limits import Limits
from rubric.errors import DefinitionError, ModelError
from rubric.models.retry import attempt
from rubric.values.judges import Judge
from rubric.values.requests import Ask, Failure, Reply, Usage
from tests.examples import examples
from tests.sendables import ask_of
from tests.simulating import now, simulate

GOOD = Reply("yes", usage=Usage(1, 10, 0, 5, 0.0))
BUSY = Failure("rate_limited", "busy", status=429)

Answer = Callable[[int], tuple[float, float, "Reply | Failure"]]


@define
class Vendor:
    """A model that notes when requests arrive; *answer* says, of each by its number, how long it takes to, and what."""

    answer_to: Answer = lambda _: (0.0, 1.0, GOOD)
    is_serial: bool = False
    left: list[float] = field(factory=list)
    arrived: list[float] = field(factory=list)
    under_way: int = 0
    most: int = 0

    async def answer(self, ask: Ask, /) -> Reply:
        travel, work, outcome = self.answer_to(len(self.left))
        self.left.append(now())
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(travel)
            self.arrived.append(now())
            await asyncio.sleep(work)
        finally:
            self.under_way -= 1
        if isinstance(outcome, Failure):
            raise ModelError(outcome)
        return outcome


def limited(**settings: Any) -> Limits:
    """Return limits that read the clock of the running loop."""
    return Limits(clock=now, **settings)


def ask(vendor: Vendor, **judge: Any) -> Ask:
    """Return an ask of *vendor*; its prompt and its reply are well below 1,000 tokens."""
    return ask_of(Judge(vendor, **{"retries": 0, "timeout": 10_000, **judge}))


async def send(vendor: Vendor, limits: Limits, after: float = 0.0, **judge: Any) -> Reply | Failure:
    """Send one request to *vendor* after so many seconds."""
    await asyncio.sleep(after)
    return await attempt(vendor, ask(vendor, **judge), limiter=limits)


async def send_all(vendor: Vendor, limits: Limits, afters: list[float], **judge: Any) -> list[Reply | Failure]:
    """Send a request after each of *afters*, side by side."""
    return await asyncio.gather(*(send(vendor, limits, after, **judge) for after in afters))


def told_to_wait(seconds: float) -> Vendor:
    """Return a model whose first reply asks to wait, and which answers well from then on."""
    closed = Failure("rate_limited", "", retry_after=seconds)
    return Vendor(lambda number: (0.0, 1.0, GOOD if number else closed))


def fullest(times: list[float], seconds: float) -> int:
    """Return how many of *times* are in the fullest window of so many seconds."""
    window, most = deque[float](), 0
    for each in sorted(times):
        window.append(each)
        while window[0] <= each - seconds:
            window.popleft()
        most = max(most, len(window))
    return most


@examples(60)
@given(
    afters=st.lists(st.floats(0, 200), min_size=1, max_size=60),
    seed=st.integers(0, 2**32),
    rpm=st.integers(1, 12),
    concurrency=st.none() | st.integers(1, 8),
)
@example([0.0] * 40, 1, 5, None)
def test_no_window_of_a_minute_is_over_the_limit(
    afters: list[float], seed: int, rpm: int, concurrency: int | None
) -> None:
    """Whenever requests come, and however long each travels (up to 5 s) and takes, the vendor never counts too many."""
    chance = random.Random(seed)
    said: tuple[Reply | Failure, ...] = (GOOD, GOOD, BUSY)
    vendor = Vendor(lambda _: (chance.uniform(0, 5), chance.choice([0, 1, 90]), chance.choice(said)))
    outcomes = simulate(send_all(vendor, limited(rpm=rpm, concurrency=concurrency), afters))
    assert len(outcomes) == len(vendor.arrived) == len(afters)
    assert fullest(vendor.left, 60) <= rpm
    assert fullest(vendor.arrived, 60) <= rpm
    assert vendor.most <= (concurrency or len(afters))


def test_a_burst_fills_the_window_at_once_and_again_when_it_is_over() -> None:
    """What the limit allows leaves without a wait, and no slower than the limit over time."""
    vendor = Vendor(lambda _: (0.0, 0.0, GOOD))
    simulate(send_all(vendor, limited(rpm=10), [0.0] * 30))
    assert vendor.left[:10] == [0.0] * 10
    assert vendor.left[10:] == pytest.approx([60.0] * 10 + [120.0] * 10, abs=0.1)


@examples(40)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=40, unique=True), st.integers(1, 5))
def test_requests_leave_in_the_order_in_which_they_came(afters: list[float], rpm: int) -> None:
    """Nobody overtakes, and nobody is forgotten."""
    vendor, limits, order = Vendor(), limited(rpm=rpm, concurrency=2), list[float]()

    async def one(after: float) -> None:
        await asyncio.sleep(after)
        async with limits(ask(vendor)) as settle:
            order.append(after)
            await asyncio.sleep(1)
            settle(GOOD)

    async def main() -> None:
        await asyncio.gather(*(one(after) for after in afters))

    simulate(main())
    assert order == sorted(afters)


def test_tokens_are_estimated_and_then_known() -> None:
    """The longest reply is counted until the reply is there; then what it took, which makes room for others."""
    vendor = Vendor(lambda _: (0.0, 1.0, GOOD))  # 15 tokens
    limits = limited(tpm=5_000)
    simulate(send_all(vendor, limits, [0.0] * 8, max_tokens=10))  # the ask itself: up to 100 back, some 200 sent
    assert vendor.left[-1] < 60
    unmetered = Vendor(lambda _: (0.0, 1.0, Reply("yes")))
    simulate(send_all(unmetered, limited(tpm=1_000), [0.0] * 8))
    assert fullest(unmetered.left, 60) < 8


@examples(40)
@given(st.integers(0, 2**32), st.integers(700, 3_000))
def test_no_window_has_more_tokens_than_the_limit(seed: int, tpm: int) -> None:
    """Whatever replies take, up to what was estimated, the tokens of any minute are within the limit."""
    chance, took = random.Random(seed), list[int]()

    def reply(_: int) -> tuple[float, float, Reply]:
        took.append(chance.randint(1, 250))
        return chance.uniform(0, 5), chance.uniform(0, 20), Reply("yes", usage=Usage(1, took[-1], 0, 0, 0.0))

    vendor = Vendor(reply)
    simulate(send_all(vendor, limited(tpm=tpm), [chance.uniform(0, 90) for _ in range(30)]))
    entries = list(zip(vendor.left, took, strict=True))
    for start, _ in entries:
        assert sum(tokens for at, tokens in entries if start <= at < start + 60) <= tpm


def test_what_never_fits_is_refused() -> None:
    """A request with more tokens than a minute has fails, unsent, and says what helps."""
    vendor = Vendor()
    outcome = simulate(send(vendor, limited(tpm=100)))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage, vendor.left) == ("bad_request", Usage(), [])
    assert "raise tpm, or lower max_tokens" in outcome.message


@examples(40)
@given(st.integers(0, 2**32), st.sampled_from([0.5, 7.0, 100.0]))
def test_no_request_leaves_before_the_server_wants_it(seed: int, wait: float) -> None:
    """What one request is told (Retry-After) holds for all of that model, those that wait and those that come."""
    chance, closed = random.Random(seed), list[tuple[float, float]]()

    def busy(number: int) -> tuple[float, float, Reply | Failure]:
        return 0.0, chance.uniform(0, 2), GOOD if chance.random() < 0.7 else Failure("overloaded", "", retry_after=wait)

    vendor, limits = Vendor(busy), limited(concurrency=4)

    async def one(after: float) -> None:
        outcome = await send(vendor, limits, after)
        if isinstance(outcome, Failure):
            closed.append((now(), now() + wait))

    async def main() -> None:
        await asyncio.gather(*(one(chance.uniform(0, 30)) for _ in range(30)))

    simulate(main())
    assert len(vendor.left) == 30
    assert not [left for left in vendor.left for start, end in closed if start < left < end]


def test_retries_wait_as_long_as_the_others() -> None:
    """The request that was told to wait is tried again after it, and comes through."""
    vendor = told_to_wait(30)
    outcomes = simulate(send_all(vendor, limited(), [0.0, 5.0], retries=2))
    assert [type(each) for each in outcomes] == [Reply, Reply]
    assert vendor.left[0] == 0
    assert min(vendor.left[1:]) >= 31


def test_a_wait_of_more_than_two_minutes_is_not_waited_for() -> None:
    """Those that would have to wait so long fail at once, unsent and free; later ones are sent."""
    vendor = told_to_wait(600)
    outcomes = simulate(send_all(vendor, limited(concurrency=1), [0.0, 0.5, 100.0, 550.0], retries=2))
    assert [getattr(each, "kind", "sent") for each in outcomes] == ["rate_limited"] * 3 + ["sent"]
    assert [each.usage.calls for each in outcomes] == [1, 0, 0, 1]
    assert (vendor.left[0], len(vendor.left)) == (0.0, 2)
    assert vendor.left[1] >= 601
    assert "not sent: the server has asked to wait, another 600 seconds" in str(outcomes[1])


def test_a_busy_server_gets_half_as_many_at_once() -> None:
    """All that one burst is refused halves the number once; replies bring it back, one more a round."""
    vendor, limits = Vendor(lambda number: (0.0, 1.0, BUSY if number < 16 else GOOD)), limited(concurrency=16)

    async def main() -> list[int]:
        seen = []
        for _ in range(12):
            vendor.most = 0
            await send_all(vendor, limits, [0.0] * 8)
            seen.append(vendor.most)
        return seen

    async def storm() -> None:
        await send_all(vendor, limits, [0.0] * 16)

    async def both() -> list[int]:
        await storm()
        return await main()

    seen = simulate(both())
    assert seen[0] == 8
    (limiter,) = limits._limiters.values()
    assert limiter.allowed == 16


def test_storm_after_storm_leaves_one_at_a_time() -> None:
    """However busy the server, one request at a time is tried."""
    vendor = Vendor(lambda _: (0.0, 1.0, BUSY))
    limits = limited(concurrency=64)
    simulate(send_all(vendor, limits, [0.0] * 200))
    assert len(vendor.left) == 200
    (limiter,) = limits._limiters.values()
    assert (limiter.allowed, limiter.in_flight) == (1.0, 0)


def test_models_keys_and_addresses_are_counted_by_themselves() -> None:
    """A model does not wait for another, nor for the same one at another key; limits by model stand for the others'."""

    async def main() -> list[float]:
        one, two = Vendor(), Vendor()
        limits = limited(rpm=1, by_model={"Vendor": Limits(rpm=2)})
        await asyncio.gather(
            *(send(one, limits) for _ in range(4)),
            *(send(two, limits) for _ in range(2)),
            *(send(one, limits, params={"api_key": "other"}) for _ in range(2)),
        )
        return sorted(one.left + two.left)

    assert simulate(main()) == pytest.approx([0.0] * 6 + [61.0] * 2, abs=0.1)


def test_what_is_cancelled_gives_its_place_up() -> None:
    """Whether it was under way or in the line."""
    vendor, limits = Vendor(lambda _: (0.0, 100.0, GOOD)), limited(concurrency=2)

    async def main() -> float:
        tasks = [asyncio.create_task(send(vendor, limits)) for _ in range(6)]
        await asyncio.sleep(1)
        for task in (tasks[0], tasks[2], tasks[5]):  # under way, the first in the line, the last
            task.cancel()
        await asyncio.wait(tasks)
        return now()

    assert simulate(main()) == pytest.approx(200, abs=0.1)
    (limiter,) = limits._limiters.values()
    assert (limiter.in_flight, len(limiter._queue._waiting)) == (0, 0)


def test_models_that_take_one_after_another_do_not_lock_up() -> None:
    """Turns, room and limits are taken in one order, so all come through."""
    serial, other = Vendor(is_serial=True), Vendor()
    limits = limited(concurrency=1, rpm=30)

    async def main() -> int:
        room = Dispatcher(asyncio.Semaphore(3), limiter=limits)
        asks = [ask(vendor) for _ in range(20) for vendor in (serial, other)]
        return len(await asyncio.gather(*(room.send(each) for each in asks)))

    assert simulate(main()) == 40


def test_limits_keep_no_function_alive() -> None:
    """Functions that come and go under the same limits leave nothing in them."""
    limits = Limits(rpm=1_000)
    for _ in range(5):
        outcome = asyncio.run(Dispatcher(limiter=limits).send(ask_of(Judge(lambda _: "yes"))))
        assert isinstance(outcome, Reply)
    for _ in range(100):  # the thread of the last function may still be between its result and its next call
        gc.collect()
        if not limits._limiters:
            break
        time.sleep(0.01)
    assert limits._limiters == {}


def test_one_object_serves_several_loops() -> None:
    """Runs in threads of their own, each with a loop, share the limits."""
    limits, running, most = Limits(concurrency=3), list[int](), list[int]()
    vendor = Vendor()

    async def one() -> None:
        async with limits(ask(vendor)) as settle:
            running.append(1)
            most.append(len(running))
            await asyncio.sleep(0.001)
            running.pop()
            settle(GOOD)

    async def main() -> None:
        await asyncio.gather(*(one() for _ in range(30)))

    threads = [Thread(target=lambda: asyncio.run(main())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (len(most), max(most)) == (120, 3)


def test_a_loop_that_is_gone_holds_nobody_up() -> None:
    """What waited on a loop that was closed without ending its tasks is passed over."""
    limits, vendor = Limits(concurrency=1), Vendor()
    loop = asyncio.new_event_loop()

    async def enter() -> None:
        async with limits(ask(vendor)):
            await asyncio.sleep(0)

    holding = limits(ask(vendor))
    loop.run_until_complete(holding.__aenter__())
    lost = loop.create_task(enter())
    loop.run_until_complete(asyncio.sleep(0))

    async def main() -> None:
        waiting = asyncio.create_task(enter())
        await asyncio.sleep(0)
        loop.close()
        await holding.__aexit__(None, None, None)
        await waiting

    asyncio.run(main())
    lost._log_destroy_pending = False  # type: ignore[attr-defined]  # it is meant to be


@pytest.mark.parametrize(
    "given_",
    [
        {"rpm": 0},
        {"tpm": -1},
        {"concurrency": True},
        {"by_model": {"a": 3}},
        {"by_model": {"a": Limits(by_model={"b": Limits()})}},
    ],
)
def test_limits_that_let_nothing_through_are_refused(given_: dict[str, Any]) -> None:
    """A limit is a whole number from 1; limits of models have none by model of their own."""
    with pytest.raises(DefinitionError):
        Limits(**given_)


def test_limits_are_values() -> None:
    """They compare by what they say."""
    assert Limits(rpm=3) == Limits(rpm=3) != Limits(rpm=4)
    assert repr(Limits(rpm=3)) == "Limits(concurrency=None, rpm=3, tpm=None, by_model={})"
