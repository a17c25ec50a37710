"""
Simulate how often the intervals cover the truth: the tables of `docs/explanation/simulations.md`, with fixed seeds.

    python -m tests.simulations [--runs 1000] [--seed N] [--only NAME ...] [--write]

All of them take some twenty minutes; `nox -s simulations` runs it. `--seed` draws other samples, and `--write` puts the
tables into the page.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence

from tests.places import ROOT
from tests.simulations import agreeing, aligning, assuming, choosing, drawing, estimating, preferring, trusting
from tests.simulations.drawing import SIZES, Table

PAGE = ROOT / "docs" / "explanation" / "simulations.md"
_BY_SIZE = tuple(f"n = {n}" for n in SIZES)
_LABELS = tuple(f"{n} labels" for n in SIZES)
_GATE = ("gate: none", "compare: none", "gate: a drop of .10", "compare: a drop of .10")
_GROUPS = (*(f"20 × 10, ICC {icc}" for icc in (0.1, 0.3, 0.6)), "10 uneven, ICC 0.3")
_CLUSTERED = ("300 prompts × 5 (without groups)", "100 prompts × 10 (without groups)")
_ALIGN = (
    *("judge", "true agreement", "honest less true", "apparent less true"),
    *("nothing to gain: accepted", ".10 to gain: accepted", "its true gain"),
)


def aligned(runs: int) -> Table:
    """Yield how honest `align` is, and how often it accepts an edit, with recorded judges."""
    for cells, holds in aligning.table(runs):
        yield cells, float(holds)


TABLES: dict[Callable[[int], Table], tuple[int, Sequence[object]]] = {
    trusting.rates_of_one: (1, ("rate", *_BY_SIZE)),
    estimating.means: (1, ("mean", *_BY_SIZE, *_GROUPS)),
    trusting.several_runs: (1, ("cases", "pass@3", "pass^3", "flip rate")),
    estimating.estimates: (1, ("rate", "judge", *_LABELS)),
    estimating.estimated_means: (1, ("mean", *_BY_SIZE)),
    estimating.grouped_estimates: (1, ("rate", "intraclass correlation", "40 prompts × 5", "30 prompts of 1 to 40")),
    estimating.rogan_gladen: (1, ("rate", "judge", "50 labels", "100 labels", "200 labels")),
    agreeing.coefficients: (1, ("rate", "judge", *_BY_SIZE, "20 × 10, ICC 0.3")),
    agreeing.rates: (1, ("rate", "n", *agreeing.RATES_OF_CLASSES)),
    agreeing.numbers: (1, ("ratings", "figure", *_BY_SIZE, "20 × 10")),
    agreeing.uneven: (1, ("what", "n", *agreeing.UNEVEN)),
    agreeing.items: (1, ("rate", "shared", *_BY_SIZE[1:], "20 × 10")),
    agreeing.ceilings: (1, ("what", "people", "n", "judge with each", "people with each other")),
    agreeing.juries: (1, ("candidates", "flip rate", "ICC1", "alpha")),
    trusting.kept: (1, ("judge", "error", "labels", "allowed", "kept", "too many")),
    trusting.drops: (
        1,
        ("cases", "the same system, 2 % flips", "a drop of .10, 2 % flips", "a drop of .10, 5 % flips"),
    ),
    trusting.two_runs: (1, ("cases × runs", "spread", *_GATE)),
    trusting.drifts: (1, ("ICC", "unchanged", "right in .7, not .9")),
    trusting.remarked: (1, ("labels", "judge .9/.8", "judge .8/.95")),
    trusting.useless: (1, ("judge", "20 labels", "60 labels", "200 labels")),
    choosing.chosen: (
        2,
        ("labels", *choosing.FIGURES, "cross-fitted less true", "apparent less true", "true agreement"),
    ),
    preferring.won: (1, ("rate", *_BY_SIZE, "20 × 10, ICC 0.3")),
    preferring.strengths: (1, ("pairs", "strongest", "second", "third", "weakest")),
    choosing.paired: (
        1,
        ("n", "2 % lost, 2 % gained", "2 % lost, 12 % gained", "10 % lost, 20 % gained", "errors by length"),
    ),
    choosing.detected: (1, ("pairs", "2 % lost, 2 % gained", "10 % lost, 10 % gained")),
    choosing.slices: (1, ("labels", "no difference", "fails .2 more of the long ones that people pass")),
    assuming.clustered: (3, ("rate", "intraclass correlation", *_CLUSTERED)),
    assuming.ungraded: (1, ("labels", "with labels on ungraded ones", "without them", "bounds")),
    assuming.divided: (2, ("labels", "the mean of the votes", "without those on which they differ")),
    assuming.weighted: (3, ("labels", "by weight", "without weights")),
    assuming.drawn: (1, ("rate", "odds of a fail", "5 labels", "20 labels", "60 labels", "200 labels")),
    assuming.by_weight: (4, ("what", "drawn", "labels", "coverage")),
    assuming.corrected_differences: (2, ("the new system", "labels of both", "corrected", "by the judge alone")),
    assuming.calibrated: (16, ("labels", "isotonic", "platt", "linear")),
    assuming.beside: (1, ("criteria", "an interval leaves out 0", "a change is shown", "the word is said")),
    aligned: (10, _ALIGN),
}
"""Each table, the part of the runs that it takes, and its head."""


def lines_of(head: Sequence[object], rows: Iterator[Sequence[object]]) -> Iterator[str]:
    """Yield a table as Markdown."""
    for cells in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(map(str, cells))} |"


def put(name: str, lines: Sequence[str]) -> None:
    """Replace the first table after the place where the page names it."""
    text = PAGE.read_text("utf-8")
    found = re.search(rf"\(`{name}`[\s\S]*?\n\n((?:\|.*\n)+)", text)
    if found is None:
        raise SystemExit(f"{PAGE.name} names no table (`{name}`)")
    start, end = found.span(1)
    PAGE.write_text(text[:start] + "".join(f"{line}\n" for line in lines) + text[end:], "utf-8")


def main() -> int:
    """Print tables; return 1 if an interval covers less than 93 %, or another figure does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0, help="draw other samples")
    parser.add_argument("--only", nargs="+", choices=[table.__name__ for table in TABLES])
    parser.add_argument("--write", action="store_true", help="put them into the page of the documentation")
    given = parser.parse_args()
    drawing.SEED = given.seed
    least: dict[str, float] = {}
    for table, (part, head) in TABLES.items():
        name = table.__name__
        if given.only and name not in given.only:
            continue
        rows = [*table(max(1, given.runs // part))]
        lines = [*lines_of(head, (cells for cells, _ in rows))]
        print(f"\n### {name}\n", *lines, sep="\n", flush=True)
        least[name] = min(worst for _, worst in rows)
        if given.write:
            put(name, lines)
    print("\nThe lowest of each table:", ", ".join(f"{name} {worst:.1%}" for name, worst in least.items()))
    return int(min(least.values()) < 0.93)


if __name__ == "__main__":
    sys.exit(main())
