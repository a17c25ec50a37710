"""
What a judge call costs in CPU time: bare LiteLLM, ours through LiteLLM, ours straight over HTTP, bare aiohttp.

    python -m tests.benchmarks.calls [--calls 1000] [--runs 5] [--concurrency 64 256]

Each way runs in a fresh process, against a server in another one that answers after 50 ms; the ways take turns, and
the medians are printed as a Markdown table. The figures of interest are the ratios: the rest is the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from statistics import median
from typing import TYPE_CHECKING, Any

from rubric.criteria import Criterion
from rubric.drivers.attempts import attempt
from rubric.exchanges import Ask, Outgoing, Reply
from rubric.judges import Judge
from rubric.mappings import thaw
from rubric.models import model_of
from tests.benchmarks.instant import ROOT, running
from tests.sendables import VERDICT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Call = Callable[[], Awaitable[object]]

MODEL = "gpt-4o-mini"
KEY = "sk-bench-0123456789abcdef"
CRITERIA = 5
CANDIDATE = "The quick brown fox jumps over the lazy dog, and then it has a rest. " * 30
QUESTION = 'Is it polite? Answer with {"nonce": "abcdefgh", "reason": ..., "verdict": ...}'
FORMAT = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": thaw(VERDICT)}}
MESSAGES = [{"role": "system", "content": "You judge."}, {"role": "user", "content": CANDIDATE + QUESTION}]
BARS = {"ours through LiteLLM": ("bare LiteLLM", 0.75), "ours over HTTP": ("bare aiohttp", 2.5)}


async def bare_aiohttp(base: str) -> Call:
    """Post and read JSON, with no error handling: the floor."""
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    body = {"model": MODEL, "messages": MESSAGES, "max_tokens": 4096, "temperature": 0, "response_format": FORMAT}
    headers = {"Authorization": f"Bearer {KEY}"}

    async def call() -> object:
        async with session.post(f"{base}/chat/completions", json=body, headers=headers) as response:
            return (await response.json())["choices"][0]["message"]["content"]

    return call


async def bare_litellm(base: str) -> Call:
    """`litellm.acompletion` as people call it."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it would fetch its prices
    import litellm

    options = {"api_base": base, "api_key": KEY, "temperature": 0, "max_tokens": 4096, "response_format": FORMAT}
    return lambda: litellm.acompletion(model=f"openai/{MODEL}", messages=MESSAGES, **options)


async def ours(base: str, **options: Any) -> Call:
    """One attempt of ours, typed reply and all."""
    ask = Ask(
        judge_at(base, **options),
        (Outgoing("system", ("You judge.",)), Outgoing("user", (CANDIDATE, QUESTION))),
        VERDICT,
        (Criterion("Is polite"),),
    )

    async def call() -> object:
        outcome = await attempt(model_of(ask.judge), ask)
        assert isinstance(outcome, Reply), outcome
        return outcome

    return call


async def whole_grades(base: str, **options: Any) -> Call:
    """A grade of five criteria, from the texts to the score; counted as five calls."""
    from rubric import Rubric, agrade

    rubric = Rubric("manners")
    for number in range(CRITERIA):
        rubric = rubric.expects(f"Is polite, in sense {number}")
    judge = judge_at(base, **options)
    return lambda: agrade(CANDIDATE, rubric, judge)


def judge_at(base: str, **options: Any) -> Judge:
    """Return a judge that is asked at *base*."""
    return Judge(f"openai/{MODEL}", temperature=0, params={"api_base": base, "api_key": KEY}, **options)


WAYS: dict[str, tuple[int, Callable[[str], Awaitable[Call]]]] = {
    "bare aiohttp": (1, bare_aiohttp),
    "ours over HTTP": (1, lambda base: ours(base, via="http")),
    "bare LiteLLM": (1, bare_litellm),
    "ours through LiteLLM": (1, ours),
    "whole grades over HTTP": (CRITERIA, lambda base: whole_grades(base, via="http")),
    "whole grades through LiteLLM": (CRITERIA, whole_grades),
}


async def measure(way: str, base: str, calls: int, concurrency: int) -> dict[str, float]:
    """Return calls a second, and milliseconds of CPU time a call, of *way*."""
    each, make = WAYS[way]
    call = await make(base)
    await drain(call, iter(range(2 * concurrency // each)), concurrency // each)  # connections, caches
    wall, cpu = time.perf_counter(), time.process_time()
    await drain(call, iter(range(calls // each)), concurrency // each)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"calls/s": calls / wall, "ms": 1000 * cpu / calls}


async def drain(call: Call, work: Iterator[int], workers: int) -> None:
    """Make a call for each item of *work*, so many at a time."""

    async def worker() -> None:
        for _ in work:
            await call()

    await asyncio.gather(*(worker() for _ in range(max(1, workers))))


def in_child(way: str, base: str, calls: int, concurrency: int) -> dict[str, float]:
    """Measure in a fresh process."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.calls", "--child", way, base]
    command += ["--calls", str(calls), "--concurrency", str(concurrency)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, cwd=ROOT)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(ways: list[str], calls: int, runs: int, concurrency: int) -> None:
    """Print the table of one concurrency, and whether the bars are met."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    with running(0.05) as base:
        for _ in range(runs):
            for way in ways:
                found[way].append(in_child(way, base, calls, concurrency))
    cost = {way: median(run["ms"] for run in seen) for way, seen in found.items()}
    print(f"\n{calls} calls, {concurrency} at a time, answered after 50 ms, medians of {runs}\n")
    print("| way | calls/s | CPU ms a call | x bare aiohttp | x bare LiteLLM |\n|---|---|---|---|---|")
    for way, seen in found.items():
        ratios = [f"{cost[way] / cost[bare]:.2f}" if bare in cost else "" for bare in ("bare aiohttp", "bare LiteLLM")]
        print(f"| {way} | {median(run['calls/s'] for run in seen):.0f} | {cost[way]:.3f} | {' | '.join(ratios)} |")
    for way, (bare, most) in BARS.items():
        if {way, bare} <= cost.keys():
            verdict = "met" if cost[way] <= most * cost[bare] else "MISSED"
            print(f"\n{way}: {cost[way] / cost[bare]:.2f} x {bare}, at most {most}: {verdict}")


def main() -> None:
    """Measure all ways, or be the process of one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--ways", nargs="+", default=[*WAYS], choices=[*WAYS])
    parser.add_argument("--child", nargs=2, metavar=("WAY", "BASE"))
    given = parser.parse_args()
    if given.child:
        way, base = given.child
        print(json.dumps(asyncio.run(measure(way, base, given.calls, given.concurrency[0]))))
        return
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a file shows each table as it comes
    for concurrency in given.concurrency:
        compare(given.ways, given.calls, given.runs, concurrency)


if __name__ == "__main__":
    main()
