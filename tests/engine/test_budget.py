"""Budgets: what is set aside, what is charged, who waits, who is refused; and never a cent too much."""

from __future__ import annotations

import asyncio
import copy
import pickle
import random
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from attrs import define, evolve, field
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Judge, Jury, Panel, Rubric, Ungraded, evaluate
from rubric.engine.budget import Amount, Budget
from rubric.engine.pipeline import Dispatcher, adrive
from rubric.engine.rate_limits import Limits
from rubric.errors import DefinitionError, ModelError
from rubric.grading.flow import flow
from rubric.models.pricing import dearest, price
from rubric.models.registry import model_of
from rubric.models.retry import attempt, persist
from rubric.models.token_counts import count_tokens, most_tokens
from rubric.testing.scripted_model import ScriptedModel
from rubric.values import Media
from rubric.values.requests import Ask, Failure, Reply, Usage
from tests.examples import examples, rounds
from tests.rows import each_row
from tests.sendables import RECENT, ask_of, openai_ask
from tests.servers import Server
from tests.simulating import now, simulate

MILLION = 10**6
PRICES = (1.0, 4.0)
GOOD = Reply("yes", usage=Usage(1, 100, 0, 10, 0.01))


@define
class Vendor:
    """
    A model that bills what it says to nobody but itself: tokens as many as were expected at most, and sometimes those.

    Args:
        tells: Whether its replies have a usage.
    """

    chance: random.Random
    tells: bool = True
    billed: float = 0.0
    calls: int = 0
    under_way: int = 0
    most: int = 0
    kinds: list[str] = field(factory=list)

    async def answer(self, ask: Ask, /) -> Reply:
        self.calls += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self.chance.uniform(0, 3))
        finally:
            self.under_way -= 1
        return await self._reply(ask)

    async def _reply(self, ask: Ask) -> Reply:
        if self.chance.random() < 0.1:
            raise ModelError(Failure("rate_limited", "busy", status=429))
        there, back = await most_tokens(ask)
        sent, came = (self.chance.choice([1, n // 3, n]) for n in (there, back))
        cost = (sent * PRICES[0] + came * PRICES[1]) / MILLION
        self.billed += cost
        if self.chance.random() < 0.1:
            raise ModelError(Failure(self.chance.choice(["timeout", "transport"]), "lost", in_doubt=True))
        if self.chance.random() < 0.1:
            raise ModelError(Failure("bad_response", "no chat completion"))
        usage = Usage(1, sent, 0, came, self.chance.choice([cost, None])) if self.tells else Usage(1, 0, 0, 0, None, 1)
        return Reply("yes", usage=usage)


def ask_about(model: Any, **judge: Any) -> Ask:
    """Return an ask of *model*, with at most 100 tokens back."""
    return ask_of(Judge(model, **{"retries": 0, "timeout": 10_000, **judge}))


async def send_all(vendor: Any, budget: Budget, count: int, in_flight: int, **judge: Any) -> list[Reply | Failure]:
    """Send so many requests, so many at once."""
    room = Dispatcher(asyncio.Semaphore(in_flight), limiter=budget)
    return await asyncio.gather(*(room.send(ask_about(vendor, **judge)) for _ in range(count)))


def worst_of(ask: Ask) -> float:
    """Return the most that *ask* may cost at PRICES."""
    there, back = simulate(most_tokens(ask))
    return (there * PRICES[0] + back * PRICES[1]) / MILLION


@each_row("in_flight", [1, 8, 256])
@each_row("tells", [True, False], ids=["known", "missing usage"])
@each_row("seed", range(rounds(20)))
def test_no_run_spends_more_than_its_budget(seed: int, tells: bool, in_flight: int) -> None:
    """With up to 256 in flight, replies with and without usage, failures and retries: the bill is within the cap."""
    chance = random.Random(seed)
    vendor = Vendor(chance, tells)
    worst = worst_of(ask_about(vendor))
    count = in_flight + 60
    budget = Budget(cost=worst * chance.uniform(0.5, count / 2), prices={"Vendor": PRICES})
    outcomes = simulate(send_all(vendor, budget, count, in_flight, retries=2))
    assert budget.cost is not None
    assert budget.spent.cost is not None
    assert vendor.billed <= budget.spent.cost + 1e-9
    assert budget.spent.cost <= budget.cost
    assert budget.held == Amount(0.0, 0, 0)
    refused = [each for each in outcomes if isinstance(each, Failure) and each.kind == "budget"]
    assert bool(refused) == (budget.cost - budget.spent.cost < worst)
    assert sum(each.usage.calls for each in outcomes) == vendor.calls
    assert in_flight == 1 or vendor.most > 1 or budget.cost < 2 * worst


@each_row("in_flight", [1, 8, 256])
@each_row("seed", range(rounds(20)))
def test_a_model_without_a_price_is_never_asked_on_a_budget(seed: int, in_flight: int) -> None:
    """It is refused at the start; and wherever it turns up later, unsent."""
    vendor, budget = Vendor(random.Random(seed)), Budget(cost=1.0)
    with pytest.raises(DefinitionError, match=r"the price of 'Vendor' is not known, .* or give the price"):
        budget.check(Judge(vendor))
    outcomes = simulate(send_all(vendor, budget, in_flight + 10, in_flight))
    assert {getattr(each, "kind", "") for each in outcomes} == {"budget"}
    assert (vendor.calls, vendor.billed, budget.spent) == (0, 0.0, Amount())


@examples(30)
@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(0, 5_000), st.integers(1, 16))
def test_calls_and_tokens_are_capped_alike(seed: int, calls: int, tokens: int, in_flight: int) -> None:
    """Of both, no more is charged than may be; a request that is turned away is charged neither."""
    vendor, budget = Vendor(random.Random(seed)), Budget(calls=calls, tokens=tokens)
    outcomes = simulate(send_all(vendor, budget, 50, in_flight))
    assert budget.spent.calls is not None
    assert budget.spent.calls <= calls
    assert budget.spent.tokens is not None
    assert budget.spent.tokens <= tokens
    turned_away = sum(getattr(each, "kind", "") == "rate_limited" for each in outcomes)
    assert vendor.calls == budget.spent.calls + turned_away


CHARGED = [
    (GOOD, Amount(0.01, 1, 110)),
    (Reply("yes", usage=Usage(1, 100, 0, 10, None)), Amount(0.00014, 1, 110)),
    (Reply("yes"), Amount(None, 1, None)),
    (Failure("rate_limited", "", status=429), Amount(0.0, 0, 0)),
    (Failure("auth", "", status=401), Amount(0.0, 0, 0)),
    (Failure("rate_limited", "", in_doubt=True), Amount(None, 1, None)),
    (Failure("timeout", "", in_doubt=True), Amount(None, 1, None)),
    (Failure("bad_response", ""), Amount(None, 1, None)),
    (Failure("bad_response", "", usage=Usage(1, 7, 0, 1, 0.5)), Amount(0.5, 1, 8)),
    (Failure("exception", ""), Amount(None, 1, None)),
]


@each_row(("outcome", "charged"), CHARGED)
def test_what_is_charged(outcome: Reply | Failure, charged: Amount) -> None:
    """What the reply says; at the price where it tells tokens alone; all that was set aside (None) where nobody knows."""
    model = ScriptedModel([outcome])
    ask, budget = ask_about(model), Budget(cost=1.0, prices={"ScriptedModel": PRICES})
    simulate(attempt(model, ask, limiter=budget))
    there, back = simulate(most_tokens(ask))
    most = Amount(worst_of(ask), 1, there + back)
    cost = most.cost if charged.cost is None else charged.cost
    tokens = most.tokens if charged.tokens is None else charged.tokens
    assert budget.spent.cost == pytest.approx(cost)
    assert (budget.spent.calls, budget.spent.tokens) == (charged.calls, tokens)


def test_what_does_not_fit_waits_for_those_under_way() -> None:
    """What they do not take is there for those that wait, first come, first served; then the rest is refused."""
    ask = ask_about(ScriptedModel(lambda _: evolve(GOOD, usage=Usage(1, 1, 0, 0, worst / 4))))
    worst = worst_of(ask)
    budget = Budget(cost=worst * 1.5, prices={"ScriptedModel": PRICES})

    async def main() -> list[Reply | Failure]:
        return await send_all(ask.judge.model, budget, 10, 10)

    outcomes = simulate(main())
    assert [type(each) for each in outcomes] == [Reply] * 3 + [Failure] * 7
    assert "not sent: over the budget of $" in str(outcomes[3])
    assert str(outcomes[3]).startswith("criterion 'is-polite', judge 'ScriptedModel': budget: ")
    assert outcomes[3].usage == Usage()


def test_a_budget_is_shared_by_threads() -> None:
    """Runs on loops of their own take from one budget, and no more than there is."""
    budget, vendor = Budget(calls=50), ScriptedModel(lambda _: GOOD)
    threads = [Thread(target=lambda: asyncio.run(send_all(vendor, budget, 40, 8))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (budget.spent.calls, len(vendor.asks), budget.left.calls) == (50, 50, 0)


def test_what_is_cancelled_is_charged() -> None:
    """A request that was under way may have been paid for; one that waited was not."""
    vendor, budget = Vendor(random.Random(1)), Budget(calls=2)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await send_all(vendor, budget, 5, 5)

    simulate(main())
    assert (budget.spent.calls, budget.held.calls) == (2, 0)


def test_a_request_that_another_gate_refuses_is_not_charged() -> None:
    """Nothing has left."""
    ask, budget = ask_about(ScriptedModel([GOOD])), Budget(calls=2)

    async def main() -> None:
        with pytest.raises(ModelError):
            async with budget(ask), Limits(tpm=1, clock=now)(ask):
                raise AssertionError

    simulate(main())
    assert (budget.spent, budget.held.calls) == (Amount(), 0)


def test_what_was_graded_in_part_is_kept() -> None:
    """When the budget ends, findings that are there stay, the others say why, and the usage counts what was sent."""
    rubric = Rubric().expects("One", id="one").expects("Two", id="two").expects("Three", id="three")
    judge = Judge(ScriptedModel(dict.fromkeys(("one", "two", "three"), True)))
    steps = flow(Candidate("A text."), rubric, judge)
    result = simulate(adrive(steps, Dispatcher(asyncio.Semaphore(1), limiter=Budget(calls=2)).send))
    assert isinstance(result, Ungraded)
    assert [failure.kind for failure in result.failures] == ["budget"]
    assert result.usage.calls == 2
    assert result.coverage == pytest.approx(2 / 3)
    assert "over the budget of 2 calls: 2 are spent" in str(result.failures[0])


def test_others_spend_too() -> None:
    """What an agent or a script has spent is charged; what they do not tell makes the sum unknown."""
    budget = Budget()
    budget.charge(Usage(2, 30, 0, 4, 0.5))
    assert budget.spent == Amount(0.5, 2, 34)
    budget.charge(Usage(1, 1, 0, 0, None))
    assert budget.spent == Amount(None, 3, 35)
    with pytest.raises(
        ModelError, match=r"over the budget of \$1: \$0.5000 are spent, and this case may take \$0.6000"
    ):
        _charged(Budget(cost=1), 0.5).refuse_beyond(0.6)


def _charged(budget: Budget, cost: float) -> Budget:
    budget.charge(Usage(1, 0, 0, 0, cost))
    return budget


def test_every_judge_of_a_bench_is_checked() -> None:
    """Juries and panels have judges; without a cap on the cost, prices do not matter."""
    bench = Panel([Jury(Judge("openai/gpt-4o-mini"), 2), Panel([Judge("openai/made-up-by-us")])])
    with pytest.raises(DefinitionError, match=r"max_cost: the price of 'openai/made-up-by-us' is not known"):
        Budget(cost=1).check(bench, name="max_cost")
    Budget(cost=1, prices={"openai/made-up-by-us": (1, 2)}).check(bench)
    Budget(calls=1).check(bench)


def test_a_budget_says_how_it_stands() -> None:
    """What is spent, what is set aside, what is left."""
    budget = Budget(cost=5, calls=10_000)
    assert repr(budget) == "<Budget: $0.0000, 0 calls, 0 tokens spent; $5.0000, 10,000 calls left>"
    assert repr(Budget()) == "<Budget: $0.0000, 0 calls, 0 tokens spent; no limit left>"
    ask = ask_about("offline")

    async def main() -> str:
        async with budget(ask):
            return repr(budget)

    assert ", $0.0000, 1 call, " in asyncio.run(main())


@each_row(
    "given_",
    [
        {"cost": -1},
        {"cost": float("nan")},
        {"calls": 1.5},
        {"tokens": True},
        {"prices": {"a": (1,)}},
        {"prices": {"a": (-1, 0)}},
    ],
)
def test_what_is_no_budget_is_refused(given_: dict[str, Any]) -> None:
    """A cap is a finite number of at least 0, a price two of them."""
    with pytest.raises(DefinitionError):
        Budget(**given_)


def test_a_cap_stays() -> None:
    """The cap of a budget that is in use does not change."""
    with pytest.raises(AttributeError):
        Budget(cost=1).cost = 2


TEXTS = st.text(max_size=300) | st.text(st.characters(min_codepoint=0x900, max_codepoint=0x9FFF), max_size=200)


@examples(50)
@given(TEXTS, st.sampled_from(["openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5"]))
def test_a_prompt_has_no_more_tokens_than_are_expected(text: str, model: str) -> None:
    """At least as many as the tokeniser counts for the whole, with room for what frames it."""
    ask = ask_of(Judge(model), shared=text)
    sent, back = asyncio.run(most_tokens(ask))
    assert sent >= count_tokens(ask.judge, "".join(message.text for message in ask.messages)) + 16
    assert back == 100
    assert (
        asyncio.run(most_tokens(evolve(ask, media=(("", Media("image", "https://example.org/a.png")),))))[0]
        >= sent + 10_000
    )
    assert asyncio.run(most_tokens(evolve(ask, n=3)))[1] == 300


@pytest.mark.skipif(not RECENT, reason="an older LiteLLM lists other prices")
def test_the_dearest_price_counts() -> None:
    """Writing to a cache costs more than sending; a long prompt more than a short one; a service tier more than none."""
    mini, claude = Judge("openai/gpt-4o-mini"), Judge("anthropic/claude-sonnet-4-5")
    assert dearest(mini, 10) == price(mini)
    assert dearest(evolve(mini, params={"service_tier": "priority"}), 10) == (2.5e-07, 1e-06)
    assert dearest(claude, 10) == (3.75e-06, 1.5e-05)
    assert dearest(Judge("offline"), 10) == (0.0, 0.0)
    assert dearest(Judge("openai/made-up-by-us"), 10) is None
    long = dearest(Judge("gemini/gemini-2.5-pro"), 300_000)
    assert long == (2.5e-06, 1.5e-05)


@pytest.mark.parametrize(("behaviour", "via"), [("ok", "litellm"), ("no-usage", "litellm"), ("ok", "http")])
def test_real_requests_are_charged(behaviour: str, via: str) -> None:
    """Over a socket: what the vendor reports, at our price where the model tells none; without usage, all of it."""
    with Server() as server:
        ask = openai_ask(server.at(behaviour), via=via)
        budget = Budget(cost=1.0)
        outcome = asyncio.run(attempt(model_of(ask.judge), ask, limiter=budget))
    there, back = asyncio.run(most_tokens(ask))
    rates = dearest(ask.judge, there)
    assert rates is not None
    assert isinstance(outcome, Reply)
    most = there * rates[0] + back * rates[1]
    told = outcome.usage.prompt_tokens * rates[0] + outcome.usage.completion_tokens * rates[1]
    assert budget.spent.cost == pytest.approx(told if behaviour == "ok" else most)
    assert 0 < told <= most or behaviour == "no-usage"


def test_results_have_the_cost_by_the_prices_of_the_budget(tmp_path: Path) -> None:
    """What the budget says is spent is what the results cost; a store keeps it, and a hit is free."""
    with Server() as server:
        params = {"api_base": server.at("ok").openai, "api_key": "sk-test"}
        judge = Judge("openai/made-up-model", via="http", params=params)
        for name in ("openai/made-up-model", "openai/gpt-4o-mini"):  # in place of a known price, too
            budget = Budget(cost=1.0, prices={name: (10, 20)})
            cost = 0.0
            for _ in range(2):
                result = evaluate(
                    "Thank you.",
                    Rubric(["Is kind", "Is short"]),
                    evolve(judge, model=name),
                    budget=budget,
                    store=tmp_path / "kept.db",
                )
                assert result.usage.cost is not None
                cost += result.usage.cost
            assert budget.spent.cost == pytest.approx(cost)
            assert cost > 0


def test_whole_cases_are_set_aside_alike() -> None:
    """Of what was set aside, what it took is charged; all of it where that is not known, or it broke off."""
    budget, events = Budget(cost=1.0), list[str]()

    async def spend(name: str, usage: Usage | None) -> None:
        async with budget.holding(0.4) as settle:
            events.append(f"{name} began")
            await asyncio.sleep(1)
            if usage is not None:
                settle(usage)
        events.append(f"{name} ended")

    async def main() -> None:
        usages = [Usage(3, 10, 0, 5, 0.1), Usage(3, 10, 0, 5, None, 1), Usage(0, cost=0.0), None]
        await asyncio.gather(*(spend(name, usage) for name, usage in zip("abcde", [*usages, None], strict=True)))

    with pytest.raises(ModelError, match=r"\$0\.9000 are spent, and this case may take \$0\.4000"):
        simulate(main())
    assert events == ["a began", "b began", "a ended", "b ended", "c began", "c ended", "d began", "d ended"]


def test_a_small_request_does_not_overtake_a_large_one() -> None:
    """Else the large one could wait for ever."""
    budget, order = Budget(cost=1.0), list[float]()

    async def spend(cost: float, after: float) -> None:
        await asyncio.sleep(after)
        async with budget.holding(cost) as settle:
            order.append(cost)
            await asyncio.sleep(10)
            settle(Usage(1, 1, 0, 1, 0.0))

    async def main() -> None:
        await asyncio.gather(spend(0.5, 0), spend(0.8, 1), spend(0.1, 2), spend(0.2, 3))

    simulate(main())
    assert order == [0.5, 0.8, 0.1, 0.2]


def test_what_no_budget_lets_through_is_no_call() -> None:
    """Also where whoever tries again is another than who was refused, as a store in front of the models is."""

    async def refused() -> Failure:
        return Failure("budget", "")

    assert asyncio.run(persist(refused, 2)) == (Failure("budget", ""), Usage())


@each_row(("gate", "name"), [(Budget(cost=1), "budget"), (Limits(rpm=5), "limits")])
@each_row("share", [pickle.dumps, copy.copy, copy.deepcopy])
def test_what_counts_in_one_process_says_how_several_share_it(gate: Any, name: str, share: Any) -> None:
    """A copy would count anew, so that twice as much could be spent."""
    with pytest.raises(DefinitionError, match=f"grade_on_cluster.*{name}={name}.*in each process") as caught:
        share(gate)
    assert caught.value.field == name
