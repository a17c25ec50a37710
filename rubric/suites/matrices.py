"""One case fanned out over judges and prompts: a case for each cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from attrs import evolve

from rubric.judges import Bench
from rubric.suites.cases import Case

__all__ = ["cells"]


def cells(case: Case, judges: Sequence[tuple[str, Bench]] = (), prompts: Sequence[str] = ()) -> Iterator[Case]:
    """
    Yield *case* once for each cell: a judge varies who judges, a prompt what is answered. An axis may be empty.

    Args:
        case: What is fanned out. Its cells keep its rubric, and their ids name their coordinates.
        judges: Each with the name by which its cells are called.
        prompts: What each cell answers.
    """
    who: list[tuple[str, Bench] | None] = [*judges] or [None]
    what = [*enumerate(prompts, 1)] or [(0, "")]
    for judge, (number, prompt) in product(who, what):
        made = evolve(case, id=f"{case.id} [{_label(judge[0] if judge else '', number)}]")
        if judge:
            made = evolve(made, judge=judge[1], cell={"model": judge[0]})
        if number:
            made = evolve(made, input=prompt, cell={**made.cell, "prompt": prompt})
        yield made


def _label(judge: str, number: int) -> str:
    """Return the coordinates of a cell in words: the judge, and the *number* of the prompt from 1 (0: no such axis)."""
    return ", ".join([judge] * bool(judge) + [f"prompt {number}"] * bool(number))
