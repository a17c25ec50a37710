"""Time and memory of `agreement`, `estimate` and `compare`: 10,000 grades of five criteria, in 1,000 groups."""

from __future__ import annotations

import random
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from rubric import Grades, Rubric
from rubric.trust import Labels, agreement, compare, estimate
from tests.recorded import grades

GRADES, GROUPS = 10_000, 1_000
MOST_SECONDS, MOST_MIB = 1.0, 200


def sample(seed: int, size: int = GRADES) -> tuple[Grades, Labels]:
    """Return grades of five criteria of each kind, and labels of three people on all of them."""
    chance = random.Random(seed)
    rubric = (
        Rubric("replies")
        .expects("Good", id="good")
        .expects("Short", id="short")
        .rates("Clear", {1: "no", 5: "yes"}, id="clear")
    )
    rubric = rubric.scores("Warm", id="warm").chooses("Tone?", {"cold": 0, "plain": 0.5, "warm": 1}, id="tone")

    def one() -> dict[str, Any]:
        numbers = {
            "clear": chance.randint(1, 5),
            "warm": chance.random(),
            "tone": chance.choice(["cold", "plain", "warm"]),
        }
        return {"good": chance.random() < 0.7, "short": chance.random() < 0.4, **numbers}

    said = {key: one() for key in range(size)}
    people = {key: {name: [value, value, one()[name]] for name, value in said[key].items()} for key in range(size)}
    return grades(rubric, said, {key: key % GROUPS for key in said}), Labels(people)


def measured(call: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of the second call, and the most memory in MiB of a third."""
    call()
    start = time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    tracemalloc.start()
    call()
    most = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return seconds, most


def main(words: str = "") -> int:
    """Print a table; return 1 if one of them takes longer than a second, or more than 200 MiB."""
    size = int(words or GRADES)
    (new, labels), (old, _) = sample(1, size), sample(2, size)
    calls: dict[str, Callable[[], object]] = {
        "agreement": lambda: agreement(new, labels),
        "estimate": lambda: estimate(new, labels, criterion="good"),
        "compare": lambda: compare(new, old),
    }
    print(f"{size:,} grades of five criteria in {GROUPS:,} groups, three labels of each\n")
    print("| call | seconds | MiB |\n|---|---|---|")
    missed = False
    for name, call in calls.items():
        seconds, most = measured(call)
        missed |= seconds > MOST_SECONDS or most > MOST_MIB
        print(f"| `{name}` | {seconds:.2f} | {most:.0f} |")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
