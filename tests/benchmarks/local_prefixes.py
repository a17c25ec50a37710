"""
What a real prefix cache serves, and the time that it saves: one candidate by 20 criteria, eight of one task by 5.

    python -m tests.benchmarks.local_prefixes ADDRESS

ADDRESS is that of llama.cpp's server, as `docs/how-to/local_models.md` starts it (`http://127.0.0.1:8080/v1`), with 4,096
tokens a slot at least. The server itself says how many tokens of a prompt it did not read again. Each way grades texts
of its own, so that no way finds what another has left. `cache_prompt` is a setting of llama.cpp: without it each prompt
is read from its beginning. Ratios hold within a run on an idle machine; a run takes about ten minutes on two cores.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from rubric import Candidate, Criterion, Judge, Rubric, grade_many
from rubric.driving import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

WAYS: dict[str, dict[str, Any]] = {
    "no cache": {"prime": False, "params": {"cache_prompt": False}},
    "cache": {"prime": False},
    "cache, one request ahead": {},
}
PLACES = ["Lisbon", "Oslo", "Quito", "Rabat", "Hanoi", "Turin", "Izmir", "Dakar", "Perth", "Sofia"]


def words(count: int, seed: int) -> str:
    """Return a text of about *count* words that no other *seed* begins with."""
    return f"Report {seed}. " + " ".join(f"Parcel {seed + n} goes to {PLACES[n % 10]}." for n in range(count // 5))


def rubric_of(size: int) -> Rubric:
    """Return a rubric of so many criteria."""
    return Rubric("r", criteria=[Criterion(f"Names parcel {n} with its place") for n in range(size)])


def work(seed: int) -> Iterator[tuple[str, list[Candidate], Rubric]]:
    """Yield each piece of work: its name, the candidates, and the rubric."""
    yield "1 candidate, 20 criteria", [Candidate(words(500, seed))], rubric_of(20)
    task = words(400, seed + 50)
    completions = [Candidate(words(40, seed + 100 + n), input=task) for n in range(8)]
    yield "8 completions of a task, 5 criteria", completions, rubric_of(5)


def main(address: str) -> int:
    """Print a row for each piece of work and way."""
    print("| work | way | prompt tokens | not read again | seconds | of no cache |\n|---|---|---|---|---|---|")
    first: dict[str, float] = {}
    for turn, (way, options) in enumerate(WAYS.items()):
        judge = Judge("m", via=address, temperature=0.0, timeout=900, reasoning="none", **options)
        for name, candidates, rubric in work(1000 * (turn + 1)):
            began = time.monotonic()
            grades = grade_many(candidates, rubric, judge, concurrency=8).collect()
            seconds = time.monotonic() - began
            usage = Usage.total(grade.usage for grade in grades)
            ratio = seconds / first.setdefault(name, seconds)
            share = usage.cached_tokens / max(usage.prompt_tokens, 1)
            cells = name, way, f"{usage.prompt_tokens:,}", f"{share:.0%}", f"{seconds:.0f}", f"{ratio:.2f}"
            print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
