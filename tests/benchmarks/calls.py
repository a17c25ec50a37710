"""
What a judge call costs in time: ours over HTTP and through LiteLLM, bare clients, other libraries.

    python -m tests.benchmarks.calls [--calls 1000] [--rounds 5] [--concurrency 64 256] [--ways ...]

Each way runs in a fresh process, against a server in another one that answers after 50 ms; the ways take turns, so that
what else the machine does falls on all of them, and the medians are printed as a Markdown table. "Calls" of ours are
single ones, for comparison with the bare clients; "grades" are whole ones of five criteria.
"""

from __future__ import annotations

import argparse
import os
import sys
from statistics import median
from typing import Any

from tests.benchmarks.homes import Failed, installed, run_way
from tests.benchmarks.instant import running
from tests.benchmarks.ways import WAYS

CRITERIA = 5
CHARACTERS = 2_000
SECONDS = 0.05

CPU_BARS = {
    "rubric, calls through LiteLLM": ("bare LiteLLM", 0.75),
    "rubric, calls over HTTP": ("bare aiohttp", 2.5),
}
FEWEST = 64
RATE_BARS = {"rubric, grades over HTTP": ("autorubric", 5.0)}
SLOW = frozenset({"deepeval", "inspect_ai"})  # ms of CPU a call: they get a fifth of the calls

Runs = dict[str, list[dict[str, Any]]]


def measured(ways: list[str], calls: int, rounds: int, concurrency: int) -> Runs:
    """Run each of *ways* once a round, and return what was found; a way that fails is left out, and said."""
    found: Runs = {way: [] for way in ways}
    with running(SECONDS) as base:
        for _ in range(rounds):
            for way in [*found]:
                share = 5 if way in SLOW else 1
                number = max(1, calls // CRITERIA // share)
                spec = {"base": base, "criteria": CRITERIA, "characters": CHARACTERS, "concurrency": concurrency}
                try:
                    found[way].append(
                        run_way(way, **spec, candidates=number, warm=2 * concurrency // CRITERIA // share)
                    )
                except Failed as why:
                    del found[way]
                    print(f"{way} failed: {why}\n")
    return found


def middle(runs: list[dict[str, Any]], key: str) -> float:
    """Return the median of *key*."""
    return float(median(run[key] for run in runs))


def table(found: Runs) -> str:
    """Return what was found as a Markdown table."""
    cost = {way: middle(runs, "ms") for way, runs in found.items()}
    lines = [
        "| way | calls/s | CPU ms a call | × bare aiohttp | × bare LiteLLM | peak MiB |",
        "|---|---|---|---|---|---|",
    ]
    for way, runs in found.items():
        ratios = [f"{cost[way] / cost[bare]:.2f}" if bare in cost else "" for bare in ("bare aiohttp", "bare LiteLLM")]
        figures = (f"{middle(runs, 'calls/s'):.0f}", f"{cost[way]:.2f}", *ratios, f"{middle(runs, 'MiB'):.0f}")
        lines.append(f"| {way} | {' | '.join(figures)} |")
    return "\n".join(lines)


def bars(found: Runs, concurrency: int) -> list[str]:
    """
    Return for each bar in words whether it is met; a ratio is the median of the ratios within a round.

    With few calls at a time it is the server that is waited for, by all alike: then no bar is set.
    """
    said: list[str] = []
    if concurrency < FEWEST:
        return said
    for way, (other, most) in CPU_BARS.items():
        if found.get(way) and found.get(other):
            ratio = median(a["ms"] / b["ms"] for a, b in zip(found[way], found[other], strict=False))
            said.append(f"CPU, {way}: {ratio:.2f} × {other}, at most {most}: {_met(ratio <= most)}")
    for way, (other, least) in RATE_BARS.items():
        if found.get(way) and found.get(other):
            ratio = median(a["calls/s"] / b["calls/s"] for a, b in zip(found[way], found[other], strict=False))
            said.append(f"calls/s, {way}: {ratio:.1f} × {other}, at least {least:g}: {_met(ratio >= least)}")
    return said


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


def versions(found: Runs) -> str:
    """Return the versions of what was measured."""
    known = {f"{name} {number}" for runs in found.values() for run in runs for name, number in run["versions"].items()}
    return ", ".join(sorted(known))


def compare(ways: list[str], calls: int, rounds: int, concurrency: int) -> bool:
    """Print the table of one concurrency, and whether the bars are met; return that."""
    before = os.getloadavg()[0]
    found = measured(ways, calls, rounds, concurrency)
    load = f"load of the machine {before:.1f} before and {os.getloadavg()[0]:.1f} after"
    print(
        f"{calls} calls, {concurrency} at a time, answered after {SECONDS * 1000:.0f} ms, medians of {rounds}; {load}\n"
    )
    print(f"{table(found)}\n\n{versions(found)}\n")
    said = bars(found, concurrency)
    print("\n".join(f"* {line}" for line in said), end="\n\n")
    return all(line.endswith(": met") for line in said)


def main(*words: str) -> int:
    """Measure all ways; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--ways", nargs="+", default=[*WAYS], choices=[*WAYS])
    given = parser.parse_args(words)
    ways = [way for way in installed() if way in given.ways]
    met = [compare(ways, given.calls, given.rounds, concurrency) for concurrency in given.concurrency]
    return int(not all(met))


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a file shows each table as it comes
    sys.exit(main(*sys.argv[1:]))
