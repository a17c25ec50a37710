"""
How long rules over runs take: `python -m tests.benchmarks.rules`.

Each of the eleven of the documentation judges a run of 100,000 calls five times; the least of the processor's time is
printed, in seconds, since what else the machine does only adds to it.
"""

from __future__ import annotations

import argparse
import sys
import time
from random import Random

from rubric import ToolCall
from rubric.values.runs import Run
from tests.values.test_run_rules import ELEVEN


def run_of(calls: int) -> Run:
    """Return a run of so many *calls* of four tools, with arguments that come again."""
    rnd = Random(1)
    tools = ["verify", "refund", "edit", "read"]
    return Run([ToolCall(rnd.choice(tools), arguments={"order": n % 977, "path": str(n % 31)}) for n in range(calls)])


def seconds(calls: int, rounds: int) -> dict[str, float]:
    """Return the least time of each rule."""
    run, took = run_of(calls), dict[str, list[float]]()
    for name, rule in [*ELEVEN.items()] * rounds:
        began = time.process_time()
        rule.judge(run)
        took.setdefault(name, []).append(time.process_time() - began)
    return {name: min(times) for name, times in took.items()}


def main() -> None:
    """Print a row for each rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for name, took in seconds(options.calls, options.rounds).items():
        sys.stdout.write(f"| {name} | {took:.3f} |\n")


if __name__ == "__main__":
    main()
