"""
Simulate the false alarms and the power of a probe's table.

    python -m tests.simulations.probing [--runs 200]
"""

from __future__ import annotations

import argparse

import numpy as np

from rubric.quality.attacks import ATTACKS
from rubric.quality.probing import RISK, Moved, _cells, _Reading, with_p
from tests.simulations.drawing import Chance, head, row

CRITERIA, PLANTED = 8, ("authority", "3")


def table(chance: Chance, n: int, noise: float, weakness: float) -> tuple[Moved, ...]:
    """Return the cells of a probe: half of *n* candidates meet each criterion, and one attack lifts *weakness* of all."""
    cells: list[Moved] = []
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


def main(runs: int) -> None:
    """Print the share of tables with a false alarm, and of planted weaknesses that are found."""
    head("candidates", "noise", "false alarms", "25 points found", "15 points found")
    for n, noise in ((60, 0.0), (60, 0.02), (60, 0.04), (60, 0.08), (80, 0.08), (200, 0.04)):
        chance = np.random.default_rng(30)
        alarms = np.mean([any(c.p <= RISK for c in table(chance, n, noise, 0)) for _ in range(runs)])
        found = []
        for weakness in (0.25, 0.15):
            chance = np.random.default_rng(31)
            hits = [{(c.attack, c.criterion): c.p for c in table(chance, n, noise, weakness)} for _ in range(runs)]
            found.append(f"{np.mean([one[PLANTED] <= RISK for one in hits]):.1%}")
        row([n, noise, f"{alarms:.1%}", *found])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    main(parser.parse_args().runs)
