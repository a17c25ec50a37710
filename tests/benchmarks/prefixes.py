"""
Tokens a grade, and how much of them a prefix cache can serve: ours by strategy, and other libraries.

    python -m tests.benchmarks.prefixes [--criteria 1 5 20] [--tokens 2000]
    python -m tests.benchmarks.prefixes --group 8

One candidate is graded. A server writes down every request and when it came; tokens are those of OpenAI's tokeniser, of
all messages of a request. A cache holds the beginnings of prompts whose answers are out, in blocks of 128 tokens from
1,024 on, as OpenAI documents its own; "in turn" is for calls one after another, "at once" for 64 at a time, as far as
the library makes them so. The tokens billed count a cached token as a tenth. What ours asks must be what
`rubric.plan` says. With `--group`, so many completions of one task are graded by ours, by five criteria.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from rubric import Candidate, Judge, grade_many, plan
from rubric.models.litellm_library import library
from rubric.models.token_counts import count_tokens
from tests.benchmarks.homes import Failed, installed, run_way
from tests.benchmarks.instant import requests_at, running
from tests.benchmarks.ways import MODEL, QUESTION, Work, candidates, criteria, our_judge, our_rubric
from tests.servers import prompt_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.instant import Seen

BLOCK, LEAST = 128, 1_024
CACHED_PRICE = 0.1
MANY = 20
LEAST_CACHEABLE = 0.9
MOST_BILLED = 0.2  # of what autorubric's mode of a call a criterion is billed
OURS = "rubric, grades over HTTP"
SECONDS = 0.02
"""For how long the server thinks, so that calls that are made together are under way together."""

DOUBLES = ("rubric, calls over HTTP", "rubric, calls through LiteLLM", "rubric, grades through LiteLLM", "bare LiteLLM")


@cache
def encoded(text: str) -> tuple[int, ...]:
    """Return the tokens of *text*."""
    return tuple(library().encode(model=MODEL, text=text))


@frozen
class Cache:
    """What a vendor keeps of prompts: their beginnings."""

    known: set[tuple[int, ...]] = field(factory=set)

    def take(self, tokens: tuple[int, ...]) -> None:
        """Keep the beginnings of *tokens*."""
        self.known.update(tokens[:end] for end in range(LEAST, len(tokens) + 1, BLOCK))

    def served(self, tokens: tuple[int, ...]) -> int:
        """Return how many of *tokens* are kept."""
        return max((end for end in range(LEAST, len(tokens) + 1, BLOCK) if tokens[:end] in self.known), default=0)


def cached(seen: Sequence[Seen]) -> int:
    """Return how many tokens of the prompts a cache could have served, given when each came and was answered."""
    kept, count = Cache(), 0
    answered = sorted(seen, key=lambda one: one.answered)
    for one in sorted(seen, key=lambda one: one.came):
        while answered and answered[0].answered <= one.came:
            kept.take(encoded(prompt_of(answered.pop(0).body)))
        count += kept.served(encoded(prompt_of(one.body)))
    return count


@frozen
class Row:
    """What the prompts of one grade came to."""

    calls: int
    tokens: int
    in_turn: int
    at_once: int

    @classmethod
    def of(cls, in_turn: Sequence[Seen], at_once: Sequence[Seen]) -> Row:
        """Return what both ways to send the same prompts came to."""
        tokens = sum(len(encoded(prompt_of(one.body))) for one in at_once)
        return cls(len(at_once), tokens, cached(in_turn), cached(at_once))

    @property
    def billed(self) -> tuple[float, float]:
        """The tokens billed, in turn and at once."""
        return tuple(self.tokens - (1 - CACHED_PRICE) * served for served in (self.in_turn, self.at_once))  # type: ignore[return-value]

    def cells(self) -> str:
        """Return the row as cells of Markdown."""
        shares = (f"{served / self.tokens:.0%}" for served in (self.in_turn, self.at_once))
        billed = (f"{tokens:,.0f}" for tokens in self.billed)
        return " | ".join([str(self.calls), f"{self.tokens:,}", *shares, *billed])


def measured(way: str, count: int, characters: int) -> Row:
    """Grade one candidate by *way*, in turn and at once."""
    seen = []
    with running(SECONDS, record=True) as base:
        for concurrency in (1, 64):
            run_way(way, base=base, criteria=count, concurrency=concurrency, candidates=1, characters=characters)
            seen.append(requests_at(base))
    if way == OURS:
        agree(seen[1], count, characters)
    return Row.of(*seen)


def agree(seen: Sequence[Seen], count: int, characters: int) -> None:
    """See whether the tokens that were sent are those that `rubric.plan` counts."""
    (text,), judge = candidates(1, characters), Judge(f"openai/{MODEL}")
    rubric = our_rubric(Work("", criteria(count), 1))
    planned = plan(Candidate(text, input=QUESTION), rubric, judge)
    sent = sum(count_tokens(judge, prompt_of(one.body).strip("\n")) for one in seen)
    assert planned.least == planned.most == len(seen), (planned, len(seen))
    assert planned.prompt_tokens == (sent, sent), (planned, sent)


# -- completions of one task -----------------------------------------------------------------------------


def completions(count: int) -> list[Candidate]:
    """Return *count* completions of some 100 tokens of one task of some 1,600."""
    task, reference, context = candidates(3, 2_500, seed=3)
    return [Candidate(text, input=task, reference=reference, context=context) for text in candidates(count, 500)]


def common(prompts: Sequence[str]) -> int:
    """Return how many characters all of *prompts* begin with."""
    return next(place for place, letters in enumerate(zip(*prompts, strict=False)) if len({*letters}) > 1)


def measured_group(count: int) -> str:
    """Grade *count* completions of one task, in turn and at once; return what came of it as a table."""
    seen, rubric = [], our_rubric(Work("", criteria(5), 1))
    with running(SECONDS, record=True) as base:
        for concurrency in (1, 64):
            judge = our_judge(Work(base, [], concurrency), via="http")
            grade_many(completions(count), rubric, judge, concurrency=concurrency, progress=False).collect()
            seen.append(requests_at(base))
    # The prompts about one criterion: the ends of the others differ in it.
    planned = [plan(each, rubric, judge).asks[0] for each in completions(count)]
    prompts = ["".join(message.text for message in ask.messages) for ask in planned]
    head = f"{common(prompts):,} of {max(map(len, prompts)):,} characters of the prompts are the same.\n\n"
    head += "| completions | calls | prompt tokens | cacheable in turn | at once | billed in turn | at once |\n"
    return f"{head}|---|---|---|---|---|---|---|\n| {count} | {Row.of(*seen).cells()} |\n"


def characters_of(tokens: int) -> int:
    """Return how long a candidate of so many *tokens* is."""
    (text,) = candidates(1, 10_000)
    return round(tokens * len(text) / len(encoded(text)))


def measure_all(ways: Sequence[str], counts: Sequence[int], tokens: int) -> dict[tuple[str, int], Row]:
    """Measure each of *ways* with each number of criteria; what fails is left out, and said."""
    found: dict[tuple[str, int], Row] = {}
    for way in ways:
        for count in counts:
            try:
                found[way, count] = measured(way, count, characters_of(tokens))
            except Failed as why:
                print(f"{way} failed with {count} criteria: {why}\n")
    return found


def print_all(found: dict[tuple[str, int], Row]) -> None:
    """Print the table."""
    print("| way | criteria | calls | prompt tokens | cacheable in turn | at once | billed in turn | at once |")
    print("|---|---|---|---|---|---|---|---|")
    for (way, count), row in found.items():
        print(f"| {way} | {count} | {row.cells()} |")
    print()


def bars(found: dict[tuple[str, int], Row]) -> list[str]:
    """Return for each bar in words whether it is met: with as many criteria as there are, at least 20."""
    most = max(count for _, count in found)
    mine, theirs = found.get((OURS, most)), found.get(("autorubric", most))
    if mine is None or most < MANY:
        return []
    share = min(mine.in_turn, mine.at_once) / mine.tokens
    said = [
        f"cacheable of ours, {most} criteria: {share:.1%}, at least {LEAST_CACHEABLE:.0%}: {_met(share >= LEAST_CACHEABLE)}"
    ]
    if theirs is not None:
        ratio = max(a / b for a, b in zip(mine.billed, theirs.billed, strict=True))
        said.append(
            f"billed, {most} criteria: {ratio:.2f} × autorubric, at most {MOST_BILLED}: {_met(ratio <= MOST_BILLED)}"
        )
    return said


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


def main(*words: str) -> int:
    """Measure all ways that differ in their prompts; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--criteria", type=int, nargs="+", default=[1, 5, 20])
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--ways", nargs="+")
    parser.add_argument("--group", type=int, metavar="COMPLETIONS", help="of one task, instead of single candidates")
    given: Any = parser.parse_args(words)
    if given.group:
        print(measured_group(given.group))
        return 0
    ways = [way for way in installed() if (way in given.ways if given.ways else way not in DOUBLES)]
    print(f"One candidate of {given.tokens:,} tokens; a cached token is billed as {CACHED_PRICE:g}.\n")
    found = measure_all(ways, given.criteria, given.tokens)
    print_all(found)
    said = bars(found)
    print("\n".join(f"* {line}" for line in said), end="\n\n")
    return int(any(line.endswith("MISSED") for line in said))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
