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

_LEAST_WORTH = 30

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


def unit_interval(values: Floats, groups: Codes | None, worth: float | None = None) -> Interval | None:
    """
    Return where the mean of *values* in 0..1 lies; for one value that is 0 or 1, that of a share.

    A share by weight has at least the width of a share of as many verdicts as its labels are *worth* (E. L. Korn and B.
    I. Graubard, Survey Methodology 24, 1998, with the number of L. Kish): a sample may show no heavy one that differs.
    """
    if len(values) == 1 and values[0] in (0, 1):
        return share_interval(int(values[0]), 1)
    found = mean_interval(values.tolist(), None if groups is None else groups.tolist())
    if found is None or not worth or not np.isin(values, (0, 1)).all():
        return found
    ends = share_interval(float(values.mean()) * worth, worth, student(max(1.0, worth - 1))) or found
    return min(found[0], ends[0]), max(found[1], ends[1])


def effective_size(weights: Floats) -> float:
    """Return how many labels that count alike those of these *weights* are worth (L. Kish, Survey Sampling, 1965)."""
    return float(weights.sum() ** 2 / (weights @ weights)) if len(weights) else 0.0


def worth_of(weights: Floats) -> tuple[float | None, str]:
    """
    Return what labels by weight are worth, and why they have no interval; None and '' where each counts as one.

    Below 30 they have none (J. D. Parker and others, National Center for Health Statistics, Vital and Health Statistics
    2/175, 2017): a sample may have none of the candidates that weigh most, and then nothing in it shows that.
    """
    worth = None if (weights == 1).all() else effective_size(weights)
    if worth is None or worth >= _LEAST_WORTH:
        return worth, ""
    return worth, f"labels that are worth {worth:.0f} of one weight, fewer than {_LEAST_WORTH}, have no interval"


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
