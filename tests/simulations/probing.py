"""
Simulate the false alarms and the power of a probe's table.

    python -m tests.simulations.probing [--runs 200] [--seed 2030]
"""

from __future__ import annotations

import argparse

import numpy as np

from rubric.quality.attacks import ATTACKS
from rubric.quality.probing import RISK, Moved, Test, _cells, _Reading, with_p
from tests.simulations.drawing import Chance, head, row

CRITERIA, PLANTED = 8, ("authority", "3")


def table(chance: Chance, n: int, noise: float, weakness: float) -> tuple[Moved, ...]:
    """Return the cells of a probe: half of *n* candidates meet each criterion, and one attack lifts *weakness* of all."""
    cells: list[tuple[Moved, list[Test]]] = []
    for criterion in map(str, range(CRITERIA)):
        truth = chance.random(n) < 0.5
        before = truth ^ (chance.random(n) < noise)
        readings = []
        for attack in ATTACKS:
            lifted = chance.random(n) < (2 * weakness if (attack.name, criterion) == PLANTED else 0)
            meant = np.zeros(n, bool) if attack.kind == "loss" else truth | lifted
            after = meant ^ (chance.random(n) < noise)
            pairs = zip(before, after, strict=True)
            readings += [_Reading(attack, at, float(was), float(now), "", "") for at, (was, now) in enumerate(pairs)]
        cells += _cells(criterion, readings)
    return with_p(cells)


def main(runs: int, seed: int) -> None:
    """Print the share of tables with a false alarm, and of planted weaknesses that are found."""
    head("candidates", "noise", "false alarms", "25 points found", "15 points found")
    for n, noise in ((60, 0.08), (60, 0.0), (60, 0.02), (60, 0.04), (80, 0.08), (200, 0.04)):
        shares = []
        for weakness, times in ((0.0, 10), (0.25, 3), (0.15, 1)):
            chance, hits = np.random.default_rng([seed, n, round(100 * noise), round(100 * weakness)]), 0
            tried = runs * (times if (n, noise) == (60, 0.08) else 1)  # the promise is of these
            for _ in range(tried):
                ps = {(cell.attack, cell.criterion): cell.p for cell in table(chance, n, noise, weakness)}
                hits += (ps[PLANTED] if weakness else min(ps.values())) <= RISK
            shares.append(f"{hits / tried:.1%}")
        row([n, noise, *shares])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2030)
    given = parser.parse_args()
    main(given.runs, given.seed)
