"""
Memory and speed of `grade_many`: a five-criterion rubric, a judge that answers at once, candidates of 2 kB.

    python -m tests.benchmarks.memory                  # 1,000,000 candidates
    python -m tests.benchmarks.memory 20000 --profile  # where the time goes

It prints the memory of the process at 10 % and at the end, and grades a second of processor time, and fails if the
process has grown by more than 20 MiB in between.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rubric import Judge, Rubric
from rubric.driving import Reply, Usage
from rubric.engine.bulk import grade_many
from rubric.values.requests import Ask
from tests.benchmarks.sampling import sampling

MOST_MIB = 20
LEAST_GRADES = 5_000
MOST_PROFILED = 20_000

FIVE = Rubric("five")
for text in ("Answers the question", "Cites a source", "Is polite", "Is short", "Names the version"):
    FIVE = FIVE.expects(text)


class Instant:
    """A model that answers at once, always the same."""

    async def answer(self, ask: Ask, /) -> Reply:
        """Return a yes."""
        return Reply('{"reason": "as always", "verdict": true}', usage=Usage(calls=1, cost=0.0))


def mib() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def candidates(n: int) -> Iterator[str]:
    """Yield *n* texts of 2 kB."""
    return (f"The answer number {i} is in the notes. {'Lorem ipsum. ' * 150}" for i in range(n))


def graded(n: int) -> tuple[float, float]:
    """Grade *n* candidates; return the memory after a tenth of them, and at the end."""
    early = 0.0
    for result in grade_many(candidates(n), FIVE, Judge(Instant())):
        assert result.passed
        if result.index == n // 10:
            early = mib()
    return early, mib()


def main(*words: str) -> int:
    """Print the figures; what it returns is the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args(words)
    if given.profile:
        profile_flow(min(given.candidates, MOST_PROFILED))
    began = time.process_time()
    early, late = graded(given.candidates)
    rate = given.candidates / (time.process_time() - began)
    print(f"| candidates | MiB at 10 % | MiB at the end | grades a second of processor time (bar: {LEAST_GRADES:,}) |")
    print("|---|---|---|---|")
    print(f"| {given.candidates:,} | {early:.1f} | {late:.1f} | {rate:,.0f} |\n")
    return int(late - early > MOST_MIB)


def profile_flow(n: int, rows: int = 20) -> None:
    """Print where the processor time of *n* grades goes, on one loop in this thread."""
    import asyncio

    from rubric.engine.bulk import agrade_many

    async def read() -> None:
        async for _ in agrade_many(list(candidates(n)), FIVE, Judge(Instant())):
            pass

    with sampling() as samples:
        asyncio.run(read())
    whole = samples.functions.total()
    print("| module | share of processor time |\n|---|---|")
    for module, count in samples.by_module().most_common(rows):
        print(f"| `{module}` | {count / whole:.1%} |")
    print("\n| function | share of processor time |\n|---|---|")
    for (module, function), count in samples.functions.most_common(rows):
        print(f"| `{module}.{function}` | {count / whole:.1%} |")
    print()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
