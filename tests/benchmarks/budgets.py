"""
Spend on a budget, again and again, against a local server, and compare the server's bill with the cap.

    python -m tests.benchmarks.budgets [--seeds 20] [--via litellm|http]

For each seed nine runs of `grade_many`: 1, 8 and 256 requests in flight; replies with usage, replies without, a model
without a price. The cap is random, and so are the lengths of replies, refusals (429, 500) and broken connections, for
which the server bills all that they might have taken. A bill over its cap ends the script with an error; so does a model
without a price that is asked at all.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from typing import TYPE_CHECKING, Any

from attrs import define, field

from rubric import Candidate, Judge, Rubric, Ungraded
from rubric.driving import flow
from rubric.engine.budget import Budget
from rubric.engine.bulk import grade_many
from rubric.errors import DefinitionError
from rubric.models.pricing import dearest
from rubric.models.token_counts import most_tokens
from tests.sendables import KEY
from tests.servers import Server, prompt_of

if TYPE_CHECKING:
    from rubric.values.requests import Ask
    from tests.servers import Endpoint

KINDS = ("known", "missing usage", "unknown price")
IN_FLIGHT = (1, 8, 256)
LEAST_CANDIDATES, MAX_TOKENS = 64, 100
TROUBLES = ("ok", "ok", "ok", "429", "500", "reset")
POLITE = Rubric("polite").expects("Is polite")


@define
class Till:
    """Answers with so many tokens as chance says, and adds up what that costs: *rates* a token, sent and back."""

    chance: random.Random
    rates: tuple[float, float]
    billed: float = 0.0

    def __call__(self, body: dict[str, Any]) -> str:
        text = "word" * self.chance.choice([1, 20, MAX_TOKENS])  # of which the server makes a token each
        self.bill(body, len(text) // 4)
        return text

    def bill(self, body: dict[str, Any], back: int) -> None:
        """Add what a request cost that so many tokens came *back* to."""
        self.billed += len(prompt_of(body)) // 4 * self.rates[0] + back * self.rates[1]


@define
class Row:
    """What the runs of one kind came to."""

    runs: int = 0
    requests: int = 0
    refused: int = 0
    over: int = 0
    shares: list[float] = field(factory=list)

    def count(self, cap: float, till: Till, requests: int, outcomes: list[str]) -> None:
        """Add a run."""
        self.runs += 1
        self.requests += requests
        self.refused += outcomes.count("budget") + outcomes.count("no price")
        self.over += till.billed > cap
        self.shares.append(till.billed / cap)


def judge_at(endpoint: Endpoint, model: str, via: Any) -> Judge:
    """Return who is asked in a run."""
    params = {"api_base": endpoint.openai, "api_key": KEY}
    return Judge(model, params=params, via=via, max_tokens=MAX_TOKENS, timeout=60, retries=1, repairs=0)


def texts(number: int) -> list[str]:
    """Return so many candidates, of one length."""
    return [f"Candidate {n:04}. {'It is of some length. ' * 40}" for n in range(number)]


def ask_of(judge: Judge) -> Ask:
    """Return the first ask of a run."""
    return next(flow(Candidate(texts(1)[0]), POLITE, judge))[0]


def spend(judge: Judge, budget: Budget, in_flight: int) -> list[str]:
    """Grade all candidates of a run and return what came of each, in a word; the replies hold no verdict."""
    candidates = texts(max(LEAST_CANDIDATES, in_flight))
    try:
        results = list(grade_many(candidates, POLITE, judge, concurrency=in_flight, budget=budget))
    except DefinitionError:
        return ["no price"] * len(candidates)
    assert all(isinstance(result, Ungraded) for result in results)
    return [result.failures[0].kind for result in results if isinstance(result, Ungraded)]


def run(kind: str, in_flight: int, seed: int, via: str, row: Row) -> None:
    """Make one run and count it."""
    chance = random.Random(f"{kind} {in_flight} {seed}")
    with Server() as server:
        said = ["no-usage" if kind == "missing usage" and each == "ok" else each for each in TROUBLES]
        endpoint = server.at(*chance.choices(said, k=4 * max(IN_FLIGHT)), said[0])
        judge = judge_at(endpoint, "openai/made-up-by-us" if kind == "unknown price" else "openai/gpt-4o-mini", via)
        sent, back = asyncio.run(most_tokens(ask_of(judge)))
        rates = dearest(judge, sent) or (1e-6, 1e-6)
        server.respond = till = Till(chance, rates)
        budget = Budget(cost=(sent * rates[0] + back * rates[1]) * chance.uniform(0.5, in_flight / 2 + 20))
        outcomes = spend(judge, budget, in_flight)
    for request, behaviour in zip(endpoint.requests, endpoint.behaviours, strict=False):
        if behaviour == "reset":
            till.bill(request.body, MAX_TOKENS)
    assert budget.cost is not None
    assert budget.held.calls == 0
    assert till.billed <= (budget.spent.cost or 0.0) + 1e-9
    assert ("no price" in outcomes) == (kind == "unknown price") == (not endpoint.requests and "budget" not in outcomes)
    row.count(budget.cost, till, len(endpoint.requests), outcomes)


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
