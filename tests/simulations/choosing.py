"""
Simulate the rates of verdicts, the figures of a chosen threshold, and the false alarms of errors by length.

    python -m tests.simulations.choosing [--runs 500]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from attrs import evolve

from rubric import Rubric
from rubric.trust.cutoffs import _Sample
from rubric.trust.inference import Floats
from rubric.trust.rates import balanced, rates_of
from rubric.trust.slices import _slice
from tests.simulations.__main__ import Chance, head, row, verdicts
from tests.simulations.trusting import ratings

TPR, TNR = 0.9, 0.8
FIGURES = ("TPR", "TNR", "precision", "F1", "balanced accuracy")


def rates(runs: int, seed: int = 26) -> None:
    """Print the coverage of each rate, for a judge with a TPR of .9 and a TNR of .8; undefined samples are left out."""
    print("\n## Rates of verdicts\n")
    head("rate", "n", *FIGURES)
    chance = np.random.default_rng(seed)
    for rate in (0.05, 0.5, 0.95):
        for n, groups in ((20, 0), (60, 0), (200, 0), (1_000, 0), (200, 20)):
            found = [*_covered(chance, rate, n, groups, runs)]
            told = [[float(held) for one in found if (held := one[k]) is not None] for k in range(len(FIGURES))]
            size = f"{groups} × {n // groups}, ICC 0.3" if groups else n
            row([rate, size, *(f"{np.mean(one):.1%}" if len(one) > runs / 2 else "–" for one in told)])


def _covered(chance: Chance, rate: float, n: int, groups: int, runs: int) -> Iterator[list[bool | None]]:
    hits, alarms = rate * TPR, (1 - rate) * (1 - TNR)
    truth = {"TPR": TPR, "TNR": TNR, "precision": hits / (hits + alarms), "F1": 2 * hits / (hits + alarms + rate)}
    truth["balanced accuracy"] = (TPR + TNR) / 2
    for _ in range(runs):
        among = np.arange(n) % groups if groups else None
        shares = rate if among is None else chance.beta(rate * 7 / 3, (1 - rate) * 7 / 3, groups)[among]
        people, judge = verdicts(chance, shares, (TPR, TNR), n)
        no, yes = rates_of(judge, people, ("no", "yes"), among)
        found = (yes.recall, no.recall, yes.precision, yes.f1, balanced((no, yes), judge, people, among))
        yield [
            None if one.interval is None else one.interval[0] <= truth[name] <= one.interval[1]
            for name, one in zip(FIGURES, found, strict=True)
        ]


def chosen(runs: int, seed: int = 27) -> None:
    """Print how often the interval of a chosen threshold's agreement holds, and how far the apparent figure flatters."""
    print("\n## Chosen thresholds\n")
    head("labels", "cross-fitted: coverage", "cross-fitted less true", "apparent less true", "true agreement")
    chance = np.random.default_rng(seed)
    rubric = Rubric("r").scores("Good", id="good")
    quality, scores = _scored(chance, 50_000)
    for n in (20, 60, 200):
        covered, honest, flattering, reached = [], [], [], []
        for _ in range(runs):
            real, given = _scored(chance, n)
            people = (real >= 0.45).astype(float)
            if people.sum() in (0, n):
                continue
            best = _Sample(given, people, None, given, rubric, n).choice("agreement", 0.0)
            true = float(np.mean((scores >= best.threshold) == (quality >= 0.45)))
            low, high = best["agreement"].interval or (0.0, 1.0)
            covered.append(low <= true <= high)
            honest.append((best["agreement"].value or 0.0) - true)
            flattering.append(best.apparent - true)
            reached.append(true)
        told = (f"{np.mean(honest):+.3f}", f"{np.mean(flattering):+.3f}", f"{np.mean(reached):.3f}")
        row([n, f"{np.mean(covered):.1%}", *told])


def _scored(chance: Chance, n: int) -> tuple[Floats, Floats]:
    quality = chance.random(n)
    return quality, np.clip(np.round(quality + chance.normal(0, 0.12, n), 2), 0, 1)


def slices(runs: int, seed: int = 28) -> None:
    """Print how often a difference by length is told, where there is none and where the judge fails more long ones."""
    print("\n## Errors by length\n")
    head("labels", "no difference", "fails .2 more of the long ones that people pass")
    chance = np.random.default_rng(seed)
    for n in (40, 100, 300):
        cells = []
        for harder in (0.0, 0.2):
            told = 0
            for _ in range(runs):
                people, judge = verdicts(chance, 0.7, (TPR, TNR), n)
                is_long = np.arange(n) % 2 == 1
                judge = np.where(is_long & (people == 1) & (chance.random(n) < harder), 0.0, judge)
                found = _slice("long", evolve(ratings(people, judge)), np.ones(n, dtype=bool), is_long, "length")
                told += found.p <= 0.05
            cells.append(f"{told / runs:.1%}")
        row([n, *cells])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    given = parser.parse_args()
    rates(given.runs)
    chosen(given.runs)
    slices(given.runs)
