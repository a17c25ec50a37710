"""What the simulations draw: verdicts of people and of judges, in groups or not; and whether an interval covers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rubric.trust.inference import Codes, Floats
from rubric.trust.ratings import VERDICT, Ratings, Scale

Chance = np.random.Generator
Table = Iterator[tuple[tuple[object, ...], float]]
"""Rows, each with the worst of its figures: a coverage, or one less a rate of false alarms."""

JUDGES = {"useless": (0.5, 0.5), ".9/.8": (0.9, 0.8), ".8/.95": (0.8, 0.95), ".95/.95": (0.95, 0.95)}
RATES, SIZES = (0.05, 0.5, 0.95), (5, 20, 60, 200, 1_000)


SEED = 0
"""What `--seed` gives: another one draws other samples."""


def chance_of(*seed: int) -> Chance:
    """Return the generator of a table, by its own *seed* and that of all tables."""
    return np.random.default_rng([SEED, *seed] if SEED else [*seed])


def row(cells: Sequence[object]) -> None:
    """Print a row of a Markdown table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def head(*names: str) -> None:
    """Print the head of a Markdown table."""
    row(names)
    row(["---"] * len(names))


def verdicts(chance: Chance, rate: float | Floats, errs: tuple[float, float], n: int) -> tuple[Floats, Floats]:
    """Return what people and a judge say of *n* candidates; the judge finds good and bad ones as *errs* says."""
    people = (chance.random(n) < rate).astype(float)
    return people, np.where(people == 1, chance.random(n) < errs[0], chance.random(n) >= errs[1]).astype(float)


def grouped(chance: Chance, rate: float, icc: float, groups: Codes) -> Floats:
    """Return the rate of the group of each candidate, with an intraclass correlation of *icc*."""
    return chance.beta(rate * (1 / icc - 1), (1 - rate) * (1 / icc - 1), int(groups.max()) + 1)[groups]


def ratings(people: Floats, judge: Floats, groups: Any = None, scale: Scale = VERDICT) -> Ratings:
    """Return the ratings of one criterion."""
    among = np.arange(len(judge)) if groups is None else groups
    return Ratings("x", scale, judge, people[:, None], among, groups is not None, ("",), np.ones(len(judge)))


def covers(interval: tuple[float, float] | None, truth: float) -> bool:
    return interval is not None and interval[0] - 1e-9 <= truth <= interval[1] + 1e-9
