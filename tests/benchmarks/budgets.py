"""
Spend on a budget, again and again, against a local server, and compare the server's bill with the cap.

    python -m tests.benchmarks.budgets [--seeds 20] [--via litellm|http]

For each seed nine runs: 1, 8 and 256 requests in flight; replies with usage, replies without, a model without a price.
The cap is random, and so are the lengths of replies, refusals (429, 500) and broken connections. A bill over its cap
ends the script with an error.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from typing import TYPE_CHECKING, Any

from attrs import define, field

from rubric.drivers.budgets import Budget
from rubric.drivers.carrying import Room
from rubric.errors import DefinitionError
from rubric.exchanges import Ask, Reply
from rubric.judges import Judge
from rubric.models.ceilings import dearest, most_tokens
from tests.sendables import KEY, ask_of
from tests.servers import Server, prompt_of

if TYPE_CHECKING:
    from tests.servers import Endpoint

KINDS = ("known", "missing usage", "unknown price")
IN_FLIGHT = (1, 8, 256)
REQUESTS, MAX_TOKENS = 64, 100
TROUBLES = ("ok", "ok", "ok", "429", "500", "reset")


@define
class Till:
    """Answers with so many tokens as chance says, and adds up what that costs."""

    chance: random.Random
    rates: tuple[float, float]
    billed: float = 0.0
    requests: int = 0

    def __call__(self, body: dict[str, Any]) -> str:
        text = "word" * self.chance.choice([1, 20, MAX_TOKENS])  # of which the server makes a token each
        self.requests += 1
        self.billed += len(prompt_of(body)) // 4 * self.rates[0] + len(text) // 4 * self.rates[1]
        return text


@define
class Row:
    """What the runs of one kind came to."""

    runs: int = 0
    requests: int = 0
    refused: int = 0
    over: int = 0
    shares: list[float] = field(factory=list)

    def count(self, cap: float, till: Till, outcomes: list[str]) -> None:
        self.runs += 1
        self.requests += till.requests
        self.refused += outcomes.count("budget")
        self.over += till.billed > cap
        self.shares.append(till.billed / cap)


def ask_for(endpoint: Endpoint, model: str, via: Any) -> Ask:
    """Return what every request of a run asks."""
    params = {"api_base": endpoint.openai, "api_key": KEY}
    judge = Judge(model, params=params, via=via, max_tokens=MAX_TOKENS, timeout=20, retries=0)
    return ask_of(judge, shared="A candidate of some length. " * 40, max_tokens=MAX_TOKENS)


async def spend(ask: Ask, budget: Budget, in_flight: int) -> list[str]:
    """Send all requests of a run and return what came of each, in a word."""
    room = Room(asyncio.Semaphore(in_flight), gate=budget)
    outcomes = await asyncio.gather(*(room.carry(ask) for _ in range(REQUESTS)))
    return ["reply" if isinstance(each, Reply) else each.kind for each in outcomes]


def run(kind: str, in_flight: int, seed: int, via: str, row: Row) -> None:
    """Make one run and count it."""
    chance = random.Random(f"{kind} {in_flight} {seed}")
    with Server() as server:
        said = ["no-usage" if kind == "missing usage" and each == "ok" else each for each in TROUBLES]
        endpoint = server.at(*chance.choices(said, k=REQUESTS), said[0])
        ask = ask_for(endpoint, "openai/made-up-by-us" if kind == "unknown price" else "openai/gpt-4o-mini", via)
        sent, back = asyncio.run(most_tokens(ask))
        rates = dearest(ask.judge, sent) or (1e-6, 1e-6)
        server.respond = till = Till(chance, rates)
        budget = Budget(cost=(sent * rates[0] + back * rates[1]) * chance.uniform(0.5, 40))
        assert budget.cost is not None
        check(budget, ask.judge, refuses=kind == "unknown price")
        outcomes = asyncio.run(spend(ask, budget, in_flight))
    assert budget.held.calls == 0
    assert till.billed <= (budget.spent.cost or 0.0) + 1e-9
    row.count(budget.cost, till, outcomes)


def check(budget: Budget, judge: Judge, *, refuses: bool) -> None:
    """See whether a judge without a price is refused at the start."""
    try:
        budget.check(judge)
    except DefinitionError:
        assert refuses
    else:
        assert not refuses


def say(line: str) -> None:
    """Print *line* at once."""
    print(line, flush=True)


def main() -> None:
    """Make all runs and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--via", choices=("litellm", "http"), default="litellm")
    options = parser.parse_args()
    over = 0
    say("| price, usage | in flight | runs | requests | refused | of the cap, at most | runs over it |")
    say("|---|---|---|---|---|---|---|")
    for kind in KINDS:
        for in_flight in IN_FLIGHT:
            row = Row()
            for seed in range(options.seeds):
                run(kind, in_flight, seed, options.via, row)
            over += row.over
            figures = f"{row.runs} | {row.requests:,} | {row.refused:,} | {max(row.shares):.1%} | {row.over}"
            say(f"| {kind} | {in_flight} | {figures} |")
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
