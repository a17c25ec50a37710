"""
What a grade costs under each strategy, from the prompts that `rubric.plan` counts and the prices that LiteLLM lists.

    python -m tests.benchmarks.costs [--criteria 10] [--tokens 2000] [--plot docs/explanation/cost_of_a_grade.svg]

Nothing is sent. A reply has as many tokens as the one that the benchmarks' server gives; what a reasoning model thinks
comes on top. A vendor's cache is taken to hold the prefix that the first call has sent, and nothing else.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from rubric import Candidate, Judge, Jury, plan
from rubric.models.litellm_library import library
from rubric.models.token_counts import count_tokens
from rubric.values.judges import Cascade
from tests.benchmarks.instant import verdict
from tests.benchmarks.prefixes import Cache, characters_of, encoded
from tests.benchmarks.ways import QUESTION, Work, candidates, criteria, our_rubric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rubric.values.judges import AnyJudge
    from rubric.values.requests import Ask

MODEL, CHEAP = "openai/gpt-5.6", "openai/gpt-5.4-nano"
VOTES = 3
DOUBTS = 0.2  # of the candidates, for a cascade
A_THOUSAND = 1_000


@frozen
class Bill:
    """What one grade takes."""

    calls: float = 0
    prompt: float = 0
    cached: float = 0
    completion: float = 0
    dollars: float = 0

    def __add__(self, other: Bill) -> Bill:
        return Bill(
            self.calls + other.calls,
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.completion + other.completion,
            self.dollars + other.dollars,
        )

    def times(self, share: float) -> Bill:
        """Return the bill of so many grades."""
        each = (self.calls, self.prompt, self.cached, self.completion, self.dollars)
        return Bill(*(part * share for part in each))


@frozen
class Prices:
    """What a model takes for a token, in US dollars."""

    prompt: float
    cached: float
    completion: float

    @classmethod
    def of(cls, model: str, *, batch: bool = False) -> Prices:
        """Return the prices of *model* as LiteLLM lists them; in a batch a cache is not counted upon."""
        info = library().get_model_info(model)
        kind = "_batches" if batch else ""
        prompt, completion = info[f"input_cost_per_token{kind}"], info[f"output_cost_per_token{kind}"]
        return cls(prompt, prompt if batch else info["cache_read_input_token_cost"], completion)

    def bill(self, prompt: int, cached: int, completion: int) -> Bill:
        """Return the bill of one call."""
        dollars = (prompt - cached) * self.prompt + cached * self.cached + completion * self.completion
        return Bill(1, prompt, cached, completion, dollars)


@frozen
class Case:
    """What is graded."""

    candidate: Candidate
    rubric: Any

    @classmethod
    def of(cls, count: int, tokens: int) -> Case:
        """Return the benchmarks' candidate of so many *tokens*, and *count* criteria."""
        (text,) = candidates(1, characters_of(tokens))
        return cls(Candidate(text, input=QUESTION), our_rubric(Work("", criteria(count), 1)))

    def asks(self, bench: AnyJudge) -> tuple[Ask, ...]:
        """Return what *bench* asks at most."""
        return plan(self.candidate, self.rubric, bench).asks

    def bill(self, bench: AnyJudge, *, cache: bool = True, batch: bool = False, choices: int = 1) -> Bill:
        """Return the bill of all that *bench* may ask."""
        asks = self.asks(bench)
        kept, total = Cache(), Bill()
        for number, ask in enumerate(asks):
            prompt = "\n".join(message.text for message in ask.messages)
            tokens = encoded(prompt)
            served = kept.served(tokens) if cache else 0
            if not number:
                kept.take(tokens)
            sent, back = count_tokens(ask.judge, prompt), choices * replied(ask)
            total += Prices.of(ask.judge.name, batch=batch).bill(sent, served, back)
        planned = plan(self.candidate, self.rubric, bench)
        assert (total.calls, total.prompt) == (planned.most, planned.prompt_tokens[1]), (total, planned)
        return total


def replied(ask: Ask) -> int:
    """Return how many tokens the benchmarks' server answers *ask* with."""
    escaped = ask.messages[-1].text.replace('"', '\\"').encode()
    return len(encoded(verdict(escaped)))


@frozen
class Strategy:
    """A strategy, and what it takes: what is known, and at least and at most where that depends on the verdicts."""

    name: str
    usual: Bill
    least: Bill
    most: Bill

    @classmethod
    def fixed(cls, name: str, bill: Bill) -> Strategy:
        """Return a strategy whose bill does not depend on the verdicts."""
        return cls(name, bill, bill, bill)


def strategies(case: Case) -> list[Strategy]:
    """Return what each strategy takes for *case*."""
    one = Judge(MODEL)
    single, jury = case.bill(one), case.bill(Jury(one, VOTES))
    cheap = case.bill(Judge(CHEAP))
    cascade = Cascade(Judge(CHEAP), Jury(one, VOTES), when="borderline")
    assert len(case.asks(cascade)) == cheap.calls + jury.calls
    together = evolve(one, per_call="all")
    shared = Jury(one, VOTES, one_request=True)
    assert plan(case.candidate, case.rubric, shared).least == single.calls
    return [
        Strategy.fixed("one call a criterion, nothing cached", case.bill(one, cache=False)),
        Strategy.fixed("one call a criterion, prefix cached", single),
        Strategy.fixed("one call a criterion, batch API", case.bill(one, cache=False, batch=True)),
        Strategy.fixed("all criteria in one call", case.bill(together)),
        Strategy.fixed(f"jury of {VOTES}", jury),
        Strategy.fixed(f"jury of {VOTES}, one request", case.bill(one, choices=VOTES)),
        Strategy(f"jury of {VOTES}, early stop", *early_stop(case, one, jury)),
        Strategy("cascade: small model, then jury", cheap + jury.times(DOUBTS), cheap, cheap + jury),
    ]


def early_stop(case: Case, judge: Judge, whole: Bill) -> tuple[Bill, Bill, Bill]:
    """Return the bills where all agree, where all agree, and where the last vote decides."""
    least = case.bill(Jury(judge, VOTES // 2 + 1))
    assert plan(case.candidate, case.rubric, Jury(judge, VOTES, early_stop=True)).least == least.calls
    return least, least, whole


def print_all(found: Sequence[Strategy]) -> None:
    """Print the table."""
    first = found[0].usual.dollars
    print("| strategy | calls | prompt tokens | of them cached | reply tokens | $ for 1,000 grades | × the first |")
    print("|---|---|---|---|---|---|---|")
    for one in found:
        bill = one.usual
        spread = "" if one.least == one.most else f" ({_dollars(one.least)} to {_dollars(one.most)})"
        figures = (f"{bill.calls:g}", *(f"{n:,.0f}" for n in (bill.prompt, bill.cached, bill.completion)))
        print(f"| {one.name} | {' | '.join(figures)} | {_dollars(bill)}{spread} | {bill.dollars / first:.2f} |")
    print()


def _dollars(bill: Bill) -> str:
    return f"{bill.dollars * A_THOUSAND:,.2f}"


def main(*words: str) -> None:
    """Print the table, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--criteria", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args(words)
    found = strategies(Case.of(given.criteria, given.tokens))
    print(f"{given.criteria} criteria, a candidate of {given.tokens:,} tokens, {MODEL}; first in the cascade {CHEAP}\n")
    print_all(found)
    if given.plot:
        from tests.benchmarks.plots import draw

        draw(found, given.plot, f"{given.criteria} criteria, {given.tokens:,} tokens, {MODEL.partition('/')[2]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
