"""
The way of one warm `grade` through our files: how many it enters, and how often it changes between them.

    python -m tests.benchmarks.trace [--show]

A change is a call of a function in another file of ours than the last call. The judge is an async function, and then a
server of OpenAI's protocol over HTTP. With `--show`, each file has its calls and the functions that were called in it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import rubric
from rubric import Criterion, Judge, Rubric, agrade
from tests.benchmarks.instant import running

HOME = str(Path(rubric.__file__).parent)
MOST_FILES, MOST_CHANGES = 18, 80
"""The goals of issue 24."""


async def answer(messages: list[dict[str, str]]) -> str:
    """Say yes."""
    return '{"verdict": "yes", "reason": "It thanks."}'


def calls_of(judge: Judge) -> list[tuple[str, str]]:
    """Return the file and the function of each call within a grade, after one that warmed all up."""
    called: list[tuple[str, str]] = []

    def look(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(HOME):
            called.append((name.removeprefix(HOME).lstrip("/"), frame.f_code.co_qualname))

    async def main() -> None:
        one = Rubric(criteria=[Criterion("Says thank you")])
        await agrade("Thanks for the book.", one, judge)
        sys.setprofile(look)
        try:
            await agrade("Thank you for waiting.", one, judge)
        finally:
            sys.setprofile(None)

    asyncio.run(main())
    return called


def row(name: str, called: list[tuple[str, str]]) -> tuple[str, int, int, int]:
    """Return the *name*, the files, the changes between them, and the calls."""
    files = [file for file, _ in called]
    return name, len({*files}), sum(one != other for one, other in pairwise(files)), len(files)


def main() -> None:
    """Print a table of both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="list the functions that are called in each file")
    shows = parser.parse_args().show
    with running(0.0) as base:
        http = Judge("openai/instant", via="http", params={"api_base": base, "api_key": "none"})
        ways = {"an async function": calls_of(Judge(answer)), "HTTP": calls_of(http)}
    print(f"| judge | files (goal {MOST_FILES}) | changes (goal {MOST_CHANGES}) | calls |\n|---|---|---|---|")
    for name, called in ways.items():
        print("| {} | {} | {} | {} |".format(*row(name, called)))
    for name, called in ways.items() if shows else ():
        functions: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for file, function in called:
            functions[file][function] += 1
        print(f"\n{name}")
        for file, counts in sorted(functions.items(), key=lambda each: -each[1].total()):
            print(f"  {file}: {', '.join(f'{function} {count}' for function, count in counts.most_common())}")


if __name__ == "__main__":
    main()
