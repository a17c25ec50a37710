"""
From values by group to means, errors, intervals and p-values.

A group counts as one draw: errors are those between groups, by the jackknife that leaves out a group, with Student's
quantile at groups - 1 degrees of freedom.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from scipy import stats

from rubric.embed import mean_interval, paired_mean, share_interval

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Interval = tuple[float, float]

UPPER = 0.975
"""Where the upper end of an interval with 95 % confidence lies."""

_COPIES = 50
"""How often a candidate of average weight is repeated."""

POWER = 0.8
"""The probability with which a difference is found that counts as one that can be found."""


def compact(groups: Codes) -> Codes:
    """Return *groups* numbered from 0 without gaps."""
    return np.unique(groups, return_inverse=True)[1].astype(np.intp)


def folds_of(groups: Codes, count: int) -> Codes:
    """Return the fold of each candidate, the same in every process; a group, numbered from 0, is in one fold."""
    order = [*range(int(groups.max()) + 1)]
    random.Random(0).shuffle(order)  # noqa: S311 - no secret
    return np.array(order, dtype=np.intp)[groups] % count


def unit_interval(values: Floats, groups: Codes | None) -> Interval | None:
    """Return where the mean of *values* in 0..1 lies; for one value that is 0 or 1, that of a share."""
    if len(values) == 1 and values[0] in (0, 1):
        return share_interval(int(values[0]), 1)
    return mean_interval(values.tolist(), None if groups is None else groups.tolist())


@lru_cache
def student(freedom: float) -> float:
    """Return Student's quantile at the upper end of an interval."""
    return float(stats.t.ppf(UPPER, freedom))


def quantile(groups: Codes | None, n: float) -> float:
    """Return Student's quantile for *n* units, or for their groups; two at least."""
    return student(max(1.0, (n if groups is None else len(np.unique(groups))) - 1))


def repeat_by_weight(weights: Floats) -> Codes:
    """Return the place of each candidate as often as it counts; the copies of a candidate are to be one group."""
    return np.repeat(
        np.arange(len(weights)), np.maximum(1, np.rint(weights / weights.mean() * _COPIES)).astype(np.intp)
    )


def mean_error(values: Floats, groups: Codes | None, weights: Floats | None = None) -> tuple[float, float]:
    """Return the mean of *values*, by *weights*, and its standard error by group; NaN below two groups."""
    w = np.ones(len(values)) if weights is None else weights
    mean = float(np.average(values, weights=w))
    moved = w * (values - mean) / w.mean()
    sums = moved if groups is None else np.bincount(compact(groups), weights=moved)
    m = len(sums)
    if m < 2:
        return mean, float("nan")
    return mean, float(np.sqrt(m / (m - 1) * (sums**2).sum()) / len(values))


@frozen
class Contrast:
    """A mean difference with its standard error, and what follows from that; see `CriterionDifference`."""

    value: float
    interval: Interval
    p: float
    error: float
    detectable: float


def paired_contrast(differences: Floats, groups: Codes | None) -> Contrast | None:
    """Return the contrast of paired *differences*; None below two groups."""
    found = paired_mean(differences.tolist(), None if groups is None else groups.tolist())
    if found is None:
        return None
    p = float(2 * stats.t.sf(abs(found.middle) / found.error, found.freedom))
    return Contrast(found.mean, found.interval(), p, found.error, found.detectable())


def unpaired_contrast(a: Floats, b: Floats, groups_a: Codes | None, groups_b: Codes | None) -> Contrast | None:
    """Return the contrast of the means of *a* and *b*, from different candidates (Welch); None below two groups."""
    (mean_a, error_a), (mean_b, error_b) = mean_error(a, groups_a), mean_error(b, groups_b)
    if np.isnan(error_a + error_b):
        return None
    spread = float(np.ptp(np.concatenate([a, b]))) or 1.0
    floors = [(spread / 2 / len(each)) ** 2 for each in (a, b)]
    va, vb = error_a**2 + floors[0], error_b**2 + floors[1]
    na, nb = (len(x) if g is None else len(np.unique(g)) for x, g in ((a, groups_a), (b, groups_b)))
    freedom = (va + vb) ** 2 / (va**2 / (na - 1) + vb**2 / (nb - 1))
    return contrast(mean_a - mean_b, float(np.sqrt(va + vb)), freedom)


def contrast(value: float, error: float, freedom: float) -> Contrast:
    """Return the contrast of a difference with a standard *error*."""
    q = student(freedom)
    p = float(2 * stats.t.sf(abs(value) / error, freedom)) if error else float(value == 0)
    detectable = (q + float(stats.norm.ppf(POWER))) * error
    return Contrast(value, (value - q * error, value + q * error), p, error, detectable)


def holm(ps: Sequence[float]) -> list[float]:
    """Return *ps* adjusted so that one false alarm among all is as rare as asked (S. Holm, 1979)."""
    order = np.argsort(ps, kind="stable")
    adjusted, highest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = highest
    return adjusted
