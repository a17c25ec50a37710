"""
Simulate how often the intervals cover the truth, as the Markdown that `docs/explanation/simulations.md` shows.

    python -m tests.simulations [--runs 2000]

It takes some twenty minutes; `nox -s simulations` runs it.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rubric.results.report_rows import Row, Status
from rubric.scoring.intervals import Statistic, mean_interval
from rubric.suites.report import Report
from rubric.trust.criterion_agreement import agreement_of
from rubric.trust.estimates import estimate_of
from rubric.trust.inference import Floats
from tests.simulations import aligning, trusting
from tests.simulations.trusting import ratings

JUDGES = {"useless": (0.5, 0.5), ".9/.8": (0.9, 0.8), ".8/.95": (0.8, 0.95), ".95/.95": (0.95, 0.95)}
RATES, SIZES, MORE = (0.05, 0.5, 0.95), (20, 60, 200), 2_000
Chance = np.random.Generator


def verdicts(chance: Chance, rate: float | Floats, errs: tuple[float, float], n: int) -> tuple[Floats, Floats]:
    """Return what people and a judge say of *n* candidates; the judge finds good and bad ones as *errs* says."""
    people = (chance.random(n) < rate).astype(float)
    return people, np.where(people == 1, chance.random(n) < errs[0], chance.random(n) >= errs[1]).astype(float)


def row(cells: Sequence[object]) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def head(*names: str) -> None:
    row(names)
    row(["---"] * len(names))


def estimates(runs: int) -> Iterator[float]:
    """Print the coverage and the width of corrected estimates of a rate."""
    print(
        "\n### Corrected rates\n\nCoverage of the 95 % interval, in brackets its width and that of the labels alone.\n"
    )
    head("rate", "judge", *(f"{n} labels" for n in trusting.SIZES))
    for rate in RATES:
        for name, errs in JUDGES.items():
            cells = []
            for n in trusting.SIZES:
                chance, hits, widths, alone = np.random.default_rng(1), 0, 0.0, 0.0
                for _ in range(runs):
                    people, judge = verdicts(chance, rate, errs, n + 1_000)
                    people[n:] = np.nan
                    found = estimate_of(ratings(people, judge))
                    (low, high), own = found.interval or (0, 1), found.labels_only.interval or (0, 1)
                    hits, widths, alone = hits + (low <= rate <= high), widths + high - low, alone + own[1] - own[0]
                yield hits / runs
                cells.append(f"{hits / runs:.1%} ({widths / runs:.3f}, {alone / runs:.3f})")
            row([rate, name, *cells])


def grouped_estimates(runs: int) -> Iterator[float]:
    """Print the coverage of corrected estimates where candidates come in groups."""
    print(
        "\n### Corrected rates by group\n\nForty prompts with five candidates each are labelled, of 400; judge .9/.8.\n"
    )
    head("rate", "intraclass correlation", "coverage", "width")
    for rate in RATES:
        for together in (0.1, 0.3, 0.6):
            chance, hits, widths = np.random.default_rng(2), 0, 0.0
            groups = np.repeat(np.arange(400), 5)
            for _ in range(runs // 2):
                shares = chance.beta(rate * (1 / together - 1), (1 - rate) * (1 / together - 1), 400)[groups]
                people, judge = verdicts(chance, shares, (0.9, 0.8), 2_000)
                people[200:] = np.nan
                low, high = estimate_of(ratings(people, judge, groups)).interval or (0, 1)
                hits, widths = hits + (low <= rate <= high), widths + high - low
            yield hits / (runs // 2)
            row([rate, together, f"{hits / (runs // 2):.1%}", f"{widths / (runs // 2):.3f}"])


def rogan_gladen(runs: int) -> Iterator[float]:
    """Print the coverage of Rogan and Gladen's estimate, from as many good as bad labelled candidates."""
    print("\n### Rogan–Gladen, half of the labelled candidates good\n")
    head("rate", "judge", *(f"{n} labels" for n in (50, 100, 200)))
    for rate in (0.5, 0.7, 0.95):
        for name, errs in {".7/.7": (0.7, 0.7), ".9/.8": (0.9, 0.8), ".95/.95": (0.95, 0.95)}.items():
            cells = []
            for n in (50, 100, 200):
                chance, hits = np.random.default_rng(3), 0
                for _ in range(runs):
                    people, judge = verdicts(chance, rate, errs, MORE)
                    some, says = verdicts(chance, 0.5, errs, n)
                    both = np.concatenate([some, np.full(len(people), np.nan)]), np.concatenate([says, judge])
                    low, high = estimate_of(ratings(*both), "rogan-gladen").interval or (0, 1)
                    hits += low <= rate <= high
                yield hits / runs
                cells.append(f"{hits / runs:.1%}")
            row([rate, name, *cells])


def means(runs: int) -> Iterator[float]:
    """Print the coverage of the interval of a mean, without and with groups."""
    print("\n### Means of scores in quarters, and of groups\n")
    groups = {f"20 × 10, ICC {icc}": (icc, [10] * 20) for icc in (0.1, 0.3, 0.6)}
    groups |= {"10 uneven, ICC 0.3": (0.3, [1, 2, 3, 5, 8, 10, 15, 20, 30, 40])}
    head("mean", *(f"n = {n}" for n in trusting.SIZES), *groups)
    for mean in (0.05, 0.5, 0.8, 0.95):
        cells, chance = [], np.random.default_rng(4)
        for n in trusting.SIZES:
            drawn = (chance.binomial(4, mean, n) / 4 for _ in range(runs))
            cells.append(covered((mean_interval(x.tolist()) for x in drawn), mean, runs))
        for icc, sizes in groups.values():
            a, b = mean * (1 / icc - 1), (1 - mean) * (1 / icc - 1)
            among = np.repeat(np.arange(len(sizes)), sizes)
            drawn = (chance.binomial(1, chance.beta(a, b, len(sizes))[among]).astype(float) for _ in range(runs))
            cells.append(covered((mean_interval(x.tolist(), among.tolist()) for x in drawn), mean, runs))
        yield from cells
        row([mean, *(f"{cell:.1%}" for cell in cells)])


def covered(intervals: Iterator[tuple[float, float] | None], truth: float, runs: int) -> float:
    return sum(low <= truth <= high for low, high in filter(None, intervals)) / runs


def coefficients(runs: int) -> Iterator[float]:
    """Print the coverage of coefficients of agreement, in a quarter of the runs; undefined ones do not count."""
    runs //= 4
    print("\n### Agreement and coefficients\n\nAgreement, kappa, AC1, alpha.\n")
    head("rate", "judge", *(f"{n} labels" for n in SIZES))
    for rate in RATES:
        for name, errs in JUDGES.items():
            cells = []
            people, judge = verdicts(np.random.default_rng(5), rate, errs, 200_000)
            truth = [one.value for one in measures(people, judge)]
            for n in SIZES:
                chance, hits, counts = np.random.default_rng(6), [0] * 4, [0] * 4
                for _ in range(runs):
                    for place, one in enumerate(measures(*verdicts(chance, rate, errs, n))):
                        if one.interval is not None:
                            counts[place] += 1
                            hits[place] += one.interval[0] <= (truth[place] or 0) <= one.interval[1]
                shares = [hit / count for hit, count in zip(hits, counts, strict=True)]
                yield shares[0]
                cells.append(", ".join(f"{each:.0%}" for each in shares))
            row([rate, name, *cells])


def measures(people: Floats, judge: Floats) -> list[Statistic]:
    found = agreement_of(ratings(people, judge))
    return [found[name] for name in ("agreement", "kappa", "AC1", "alpha")]


def drops(runs: int) -> Iterator[float]:
    """Print how often `Report.compare` fails."""
    print("\n### Comparisons of two runs\n\nHow often `Report.compare(baseline, risk=0.05)` fails.\n")
    head("cases", "the same system, 2 % flips", "a drop of .10, 2 % flips", "a drop of .10, 5 % flips")
    for cases in (20, 50, 200):
        cells = []
        for flips, drop in ((0.02, 0.0), (0.02, 0.1), (0.05, 0.1)):
            chance, failed = random.Random(8), 0
            for _ in range(runs):
                truth = [chance.random() < 0.8 for _ in range(cases)]
                worse = [t and chance.random() >= drop / 0.8 for t in truth]
                before, after = ([t ^ (chance.random() < flips) for t in run] for run in (truth, worse))
                failed += report(after).compare(report(before)).exit_code
            cells.append(failed / runs)
        yield 1 - cells[0]
        row([cases, *(f"{cell:.1%}" for cell in cells)])


def aligned(runs: int) -> Iterator[float]:
    """Print how honest `align` is, and how often it accepts an edit, with recorded judges; in a tenth of the runs."""
    runs = max(1, runs // 10)
    print(f"\n### Edits that are fitted to labels\n\n{runs} samples each.\n")
    head(
        "judge",
        "true",
        "honest less true",
        "apparent less true",
        "nothing to gain: accepted",
        ".10 to gain",
        "true gain",
    )
    for cells, holds in aligning.table(runs):
        yield float(holds)
        row(cells)


def shown(title: str, names: Sequence[str], table: Callable[[int], trusting.Table], part: int = 1) -> Any:
    """Return the printer of a *table* of `trusting`, in a *part* of the runs."""

    def printed(runs: int) -> Iterator[float]:
        print(f"\n### {title}\n")
        head(*names)
        for cells, worst in table(max(1, runs // part)):
            row(cells)
            yield worst

    printed.__name__ = table.__name__
    return printed


def report(passed: Sequence[bool]) -> Report:
    status: dict[bool, Status] = {True: "passed", False: "failed"}
    return Report("s", tuple(Row(str(n), status[one], score=float(one)) for n, one in enumerate(passed)))


_BY_SIZE = tuple(f"n = {n}" for n in trusting.SIZES)
_GATE = ("gate: none", "compare: none", "gate: a drop of .10", "compare: a drop of .10")
TABLES: tuple[Callable[[int], Iterator[float]], ...] = (
    shown("Pass rates, exactly", ("rate", *_BY_SIZE), trusting.rates_of_one),
    means,
    estimates,
    shown("Corrected means", ("mean", *_BY_SIZE), trusting.estimated_means, 2),
    grouped_estimates,
    rogan_gladen,
    coefficients,
    shown("Numbers", ("ratings", "n", *trusting._NUMBERS), trusting.numbers, 2),
    shown("pass@3, pass^3, flip rates", ("cases", "pass@3", "pass^3", "flip rate"), trusting.several_runs),
    shown("Kept verdicts", ("judge", "error", "labels", "allowed", "kept", "too many"), trusting.kept),
    drops,
    shown("Two runs, by case", ("cases × runs", "spread", *_GATE), trusting.two_runs),
    shown("Drift", ("ICC", "unchanged", "right in .7, not .9"), trusting.drifts),
    shown("Labels that were chosen", ("labels", "judge .9/.8", "judge .8/.95"), trusting.remarked),
    shown("Useless, opposite", ("judge", "20 labels", "60 labels", "200 labels"), trusting.useless),
    aligned,
)


def main() -> int:
    """Print all tables; return 1 if an interval covers less than 90 %, or another figure does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--only", choices=[table.__name__ for table in TABLES])
    given = parser.parse_args()
    least = [min(table(given.runs)) for table in TABLES if given.only in (None, table.__name__)]
    print(f"\nThe lowest coverage of each table: {', '.join(f'{each:.1%}' for each in least)}")
    return int(min(least) < 0.9)


if __name__ == "__main__":
    sys.exit(main())
