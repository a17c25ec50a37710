"""Several gates: the order they are passed in; and what gets past only some has not left, and costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from rubric import Judge, grade_many
from rubric.engine.budget import Amount, Budget
from rubric.engine.pipeline import chain_limiters, pipeline
from rubric.engine.rate_limits import Limits
from rubric.errors import ModelError, StoreError
from rubric.models.retry import attempt
from rubric.models.token_counts import most_tokens
from rubric.store.store import Store
from rubric.values.requests import Ask, Commit, Failure, Limiter, Reply, Usage
from tests.rows import each_row
from tests.sendables import ask_of
from tests.simulating import now, simulate
from tests.storing import POLITE, Counted

GOOD = Reply("yes", usage=Usage(1, 100, 0, 10, 0.01))
NOTHING = Amount(0.0, 0, 0)


@define(eq=False)
class Slow:
    """A model that takes its time to get ready and to answer."""

    calls: int = 0
    through: int = 0
    seconds: float = 1.0
    identity: str = "slow"

    async def ready(self) -> None:
        await asyncio.sleep(self.seconds)

    async def answer(self, _: Ask, /) -> Reply:
        self.calls += 1
        await asyncio.sleep(self.seconds)
        await asyncio.sleep(self.seconds)
        self.through += 1
        return GOOD


@define
class Turnstile:
    """A gate that takes its time, and counts what is told to it."""

    seconds: float = 1.0
    refuses: bool = False
    told: list[Reply | Failure | None] = field(factory=list)

    @asynccontextmanager
    async def __call__(self, _: Ask) -> AsyncIterator[Commit]:
        await asyncio.sleep(self.seconds)
        if self.refuses:
            raise ModelError(Failure("rate_limited", "not today", retry_after=100.0))
        yield self.told.append


def ask_to(model: Any) -> Ask:
    """Return an ask of *model*."""
    return ask_of(Judge(model, retries=0, timeout=10_000))


def most_of(ask: Ask) -> Amount:
    """Return the most that *ask* may take, at a dollar for a million tokens."""
    there, back = simulate(most_tokens(ask))
    return Amount(pytest.approx((there + back) / 10**6), 1, there + back)  # type: ignore[arg-type]  # it compares


@each_row("at", [step / 2 for step in range(14)])
def test_a_cancellation_anywhere_charges_what_has_left_and_nothing_else(at: float) -> None:
    """Getting ready, in each gate, in the line of each, under way: the books are closed, and right."""
    model = Slow()
    ask = ask_to(model)
    limits = Limits(concurrency=1, rpm=5, tpm=10_000, clock=now)
    budget = Budget(cost=1.0, tokens=10_000, calls=5, prices={"Slow": (1.0, 1.0)})
    gate = chain_limiters(budget, Turnstile(), limits, Turnstile())

    async def main() -> bool:
        task = asyncio.create_task(attempt(model, ask, limiter=gate))
        await asyncio.sleep(at)
        was_under_way = task.cancel()
        await asyncio.wait([task])
        return was_under_way

    was_cancelled = simulate(main())
    most = most_of(ask)
    assert was_cancelled == (model.through == 0)
    charged = NOTHING if not model.calls else most if was_cancelled else Amount(0.01, 1, 110)
    assert (budget.spent, budget.held) == (charged, NOTHING)
    for limiter in limits._limiters.values():
        assert limiter.requests is not None
        assert limiter.tokens is not None
        assert (limiter.in_flight, limiter.requests.used) == (0, model.calls)
        assert limiter.tokens.used == charged.tokens


def test_what_waits_for_a_place_holds_no_money_once_it_is_cancelled() -> None:
    """It had passed the budget, and stood in the line of the limits; what it had set aside is there for others."""
    model, limits, budget = Slow(), Limits(concurrency=1, clock=now), Budget(calls=2)
    gate = chain_limiters(budget, limits)

    async def main() -> list[Any]:
        tasks = [asyncio.create_task(attempt(model, ask_to(model), limiter=gate)) for _ in range(3)]
        await asyncio.sleep(1.5)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, third = simulate(main())
    assert (type(first), type(second), type(third)) == (Reply, asyncio.CancelledError, Reply)
    assert (model.calls, budget.spent.calls) == (2, 2)


@pytest.mark.parametrize("first", [True, False])
def test_a_refusal_by_any_gate_is_no_call_for_the_others(first: bool) -> None:
    """Nor is it taken for the vendor's own: a limiter that stands before keeps its speed."""
    model, limits, budget = Slow(), Limits(concurrency=8, rpm=5, clock=now), Budget(calls=2)
    several: list[Limiter] = [budget, limits]
    gate = chain_limiters(*(several if first else several[::-1]), Turnstile(refuses=True))
    outcome = simulate(attempt(model, ask_to(model), limiter=gate))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage, model.calls) == ("rate_limited", Usage(), 0)
    assert (budget.spent, budget.held.calls) == (NOTHING, 0)
    (limiter,) = limits._limiters.values()
    assert limiter.requests is not None
    assert (limiter.allowed, limiter.requests.used, limiter.closed_until < 0) == (8, 0, True)


class Post:
    """A gate that writes down who passes."""

    def __init__(self, name: str, log: list[str], *, shut: bool = False) -> None:
        self.name, self.log, self.shut = name, log, shut

    @asynccontextmanager
    async def __call__(self, ask: Ask) -> AsyncIterator[Commit]:
        if self.shut:
            raise ModelError(Failure("budget", "shut"))
        self.log.append(f"{self.name} in")
        try:
            yield lambda outcome: self.log.append(f"{self.name} told {type(outcome).__name__}")
        finally:
            self.log.append(f"{self.name} out")


@pytest.fixture
def log() -> list[str]:
    return []


def test_several_gates_are_passed_in_order(log: list[str]) -> None:
    """A request enters them in order, each is told what came, and they are left in the reverse order."""
    gate = chain_limiters(Post("a", log), None, Post("b", log))
    assert gate is not None
    model = Slow()
    assert simulate(attempt(model, ask_to(model), limiter=gate)) == GOOD
    assert log == ["a in", "b in", "a told Reply", "b told Reply", "b out", "a out"]


def test_a_gate_that_is_shut_lets_the_others_go(log: list[str]) -> None:
    """If one refuses, those before it are told that nothing has left, and are left."""
    gate = chain_limiters(Post("a", log), Post("b", log, shut=True))
    results = list(grade_many(["x"], POLITE, Judge(Counted()), limits=gate))
    assert [failure.kind for failure in results[0].failures] == ["budget"]
    assert log == ["a in", "a told NoneType", "a out"]


def test_no_gates_are_none(log: list[str]) -> None:
    """Nothing to pass is not a gate; one is itself."""
    post = Post("a", log)
    assert chain_limiters(None, None) is None
    assert chain_limiters(None, post) is post


def test_what_a_store_cannot_record_is_not_sent_and_not_charged(tmp_path: Path) -> None:
    """The store's record is the last thing that a request passes: where that fails, all is given back."""
    model, budget, limits = Slow(seconds=0), Budget(calls=1), Limits(rpm=1)

    @asynccontextmanager
    async def closing(ask: Ask) -> AsyncIterator[Commit]:
        async with limits(ask) as settle:
            store.close()
            yield settle

    async def main(store: Store) -> None:
        way = pipeline(store=store, budget=budget, limits=closing)
        with pytest.raises(StoreError):
            await way.send(ask_to(model))

    store = Store(tmp_path / "replies.db")
    asyncio.run(main(store))
    (limiter,) = limits._limiters.values()
    assert limiter.requests is not None
    assert (model.calls, budget.spent, budget.held.calls) == (0, NOTHING, 0)
    assert (limiter.in_flight, limiter.requests.used) == (0, 0)


def test_every_request_passes_the_limits(log: list[str], tmp_path: Path) -> None:
    """`grade_many` sends all requests through the gates that it is given; what a store has is not a request."""
    store = tmp_path / "replies.db"
    grade_many(["known"], POLITE, Judge(Counted()), store=store).collect()
    results = grade_many(["known", "new"], POLITE, Judge(Counted()), store=store, limits=Post("a", log)).collect()
    assert [(result.passed, result.usage.calls) for result in results] == [(True, 0), (True, 1)]
    assert log == ["a in", "a told Reply", "a out"]
