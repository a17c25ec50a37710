"""How often the intervals of estimates cover: rates and means, by group, of all candidates, and by Rogan and Gladen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rubric.embed import mean_interval
from rubric.trust.estimates import estimate_of
from rubric.trust.ratings import Scale
from tests.simulations.drawing import JUDGES, RATES, SIZES, Table, chance_of, covers, grouped, ratings, verdicts

_STARS = Scale("number", 0.0, 4.0)
_MEANS = {
    "2.0, flat": (0.2, 0.2, 0.2, 0.2, 0.2),
    "2.0, narrow": (0, 0.1, 0.8, 0.1, 0),
    "3.6": (0.02, 0.03, 0.03, 0.17, 0.75),
    "3.88": (0, 0.01, 0.01, 0.07, 0.91),
    "0.3": (0.85, 0.1, 0.02, 0.01, 0.02),
}


def means(runs: int) -> Table:
    """Yield the coverage of the interval of a mean, without and with groups."""
    groups = {icc: [10] * 20 for icc in (0.1, 0.3, 0.6)} | {0.31: [1, 2, 3, 5, 8, 10, 15, 20, 30, 40]}
    for mean in (0.05, 0.5, 0.8, 0.95):
        cells, chance = [], chance_of(4)
        for n in SIZES:
            drawn = (chance.binomial(4, mean, n) / 4 for _ in range(runs))
            cells.append(_covered((mean_interval(x.tolist()) for x in drawn), mean, runs))
        for icc, sizes in groups.items():
            among = np.repeat(np.arange(len(sizes)), sizes)
            drawn = (verdicts(chance, grouped(chance, mean, icc, among), (1, 1), len(among))[0] for _ in range(runs))
            cells.append(_covered((mean_interval(x.tolist(), among.tolist()) for x in drawn), mean, runs))
        yield (mean, *(f"{cell:.1%}" for cell in cells)), min(cells)


def _covered(intervals: Iterator[tuple[float, float] | None], truth: float, runs: int) -> float:
    return sum(covers(one, truth) for one in intervals) / runs


def estimates(runs: int) -> Table:
    """Yield the coverage and the width of corrected estimates of a rate, and the width of the labels alone."""
    for rate in RATES:
        for name, errs in JUDGES.items():
            cells, worst = [], 1.0
            for n in SIZES:
                chance, hits, widths, alone = chance_of(1), 0, 0.0, 0.0
                for _ in range(runs):
                    people, judge = verdicts(chance, rate, errs, n + 1_000)
                    people[n:] = np.nan
                    found = estimate_of(ratings(people, judge))
                    (low, high), own = found.interval or (0, 1), found.labels_only.interval or (0, 1)
                    hits += covers((low, high), rate)
                    widths, alone = widths + high - low, alone + own[1] - own[0]
                worst = min(worst, hits / runs)
                cells.append(f"{hits / runs:.1%} ({widths / runs:.3f}, {alone / runs:.3f})")
            yield (rate, name, *cells), worst


def estimated_means(runs: int) -> Table:
    """Yield the coverage of the estimate of a mean on 0..4, and its width over that of the labels alone."""
    for place, (name, weights) in enumerate(_MEANS.items()):
        truth, cells, worst = float(np.array(weights) @ np.arange(5)), [], 1.0
        for n in SIZES:
            chance, hits, widths = chance_of(11, place), 0, 0.0
            for _ in range(runs):
                people = chance.choice(5, n + 1_000, p=weights).astype(float)
                off = np.where(chance.random(n + 1_000) < 0.8, 0, chance.choice([-1, 1], n + 1_000))
                judge = np.clip(people + off, 0, 4)
                people[n:] = np.nan
                found = estimate_of(ratings(people, judge, scale=_STARS))
                hits += covers(found.interval, truth)
                (low, high), (least, most) = found.interval or (0, 0), found.labels_only.interval or (0, 1)
                widths += (high - low) / (most - least) / runs
            worst = min(worst, hits / runs)
            cells.append(f"{hits / runs:.1%} ({widths:.2f})")
        yield (name, *cells), worst


def grouped_estimates(runs: int) -> Table:
    """Yield the coverage of corrected estimates where candidates come in even or uneven groups, and their width."""
    even, uneven = [5] * 400, [1, 2, 3, 5, 8, 10, 15, 20, 30, 40] * 30
    for rate in RATES:
        for together in (0.1, 0.3, 0.6):
            cells, worst = [], 1.0
            for sizes, labelled in ((even, 40), (uneven, 30)):
                groups, n = np.repeat(np.arange(len(sizes)), sizes), sum(sizes[:labelled])
                chance, hits, widths = chance_of(2, round(100 * rate)), 0, 0.0
                for _ in range(runs):
                    people, judge = verdicts(chance, grouped(chance, rate, together, groups), (0.9, 0.8), len(groups))
                    people[n:] = np.nan
                    low, high = estimate_of(ratings(people, judge, groups)).interval or (0, 1)
                    hits, widths = hits + covers((low, high), rate), widths + high - low
                worst = min(worst, hits / runs)
                cells.append(f"{hits / runs:.1%} ({widths / runs:.3f})")
            yield (rate, together, *cells), worst


def rogan_gladen(runs: int) -> Table:
    """Yield the coverage of Rogan and Gladen's estimate, from as many good as bad labelled candidates."""
    for rate in (0.5, 0.7, 0.95):
        for name, errs in {".7/.7": (0.7, 0.7), ".9/.8": (0.9, 0.8), ".95/.95": (0.95, 0.95)}.items():
            cells = []
            for n in (50, 100, 200):
                chance, hits = chance_of(3), 0
                for _ in range(runs):
                    people, judge = verdicts(chance, rate, errs, 2_000)
                    some, says = verdicts(chance, 0.5, errs, n)
                    both = np.concatenate([some, np.full(len(people), np.nan)]), np.concatenate([says, judge])
                    hits += covers(estimate_of(ratings(*both), "rogan-gladen").interval or (0, 1), rate)
                cells.append(hits / runs)
            yield (rate, name, *(f"{cell:.1%}" for cell in cells)), min(cells)
