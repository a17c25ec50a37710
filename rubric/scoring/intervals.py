"""
Intervals around shares and means, with 95 % confidence.

A share has Wilson's score interval (E. B. Wilson, JASA 22, 1927). A mean of values in 0..1 has Student's, around one
pseudo-observation more at each end of the scale (the idea of Agresti and Coull, The American Statistician 52, 1998):
values near an end vary less in a small sample than in truth, and five equal ones do not vary at all.

Observations that belong together are one group: their spread is that between groups, by the jackknife that leaves out a
group at a time (K. M. Wolter, Introduction to Variance Estimation, 2007, chapter 4), with groups - 1 degrees of
freedom. A pseudo-observation then weighs as much as it takes to count as one, which is the design effect (L. Kish,
Survey Sampling, 1965).

Student's quantile comes from the exact series of the distribution for whole degrees of freedom (Abramowitz and Stegun
26.7.3 and 26.7.4), and for many from the expansion around the normal one (26.7.5).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from statistics import NormalDist, fmean

from attrs import frozen

Interval = tuple[float, float]
"""The lower and the upper end."""

CONFIDENCE = 0.95
_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)

FEW_GROUPS = 20
"""With fewer groups than these an interval can be too narrow."""

_MANY = 200
"""Degrees of freedom from which the expansion is exact to nine digits."""

_BISECTIONS = 80


@frozen
class Statistic:
    """
    A figure with its 95 % interval.

    Args:
        name: What it measures.
        value: None where it is undefined.
        interval: Where the true value lies; None where that cannot be said.
        reason: Why there is no value, or no interval.
    """

    name: str
    value: float | None
    interval: Interval | None = None
    reason: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return f"undefined: {self.reason}"
        if self.interval is None:
            return f"{self.value:.3f}"
        return f"{self.value:.3f} ({self.interval[0]:.3f} to {self.interval[1]:.3f})"


def percent(value: float, interval: Interval | None = None) -> str:
    """Return a share as people read it, such as `84 % (79 to 88)`."""
    return f"{value:.0%}".replace("%", " %") + (
        "" if interval is None else f" ({interval[0]:.0%} to {interval[1]:.0%})".replace("%", "")
    )


def few_groups(count: int) -> str:
    """Return a remark where groups are so few that intervals can be too narrow; else ''."""
    return (
        f"{count} groups: with fewer than {FEW_GROUPS}, intervals can be too narrow" if 0 < count < FEW_GROUPS else ""
    )


def share_interval(successes: float, n: float, q: float = _Z) -> Interval | None:
    """
    Return where the true share lies if *successes* of *n* were counted; None if there is nothing to count.

    Neither need be whole (E. L. Korn and B. I. Graubard, Survey Methodology 24, 1998); *q* is the quantile.
    """
    if not n:
        return None
    share, z2 = successes / n, q * q
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = q / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return 0.0 if successes == 0 else max(0.0, middle - half), 1.0 if successes == n else min(1.0, middle + half)


def mean_interval(values: Sequence[float], groups: Sequence[Hashable] | None = None) -> Interval | None:
    """
    Return where the true mean of *values*, all in 0..1, lies; that of values which are 0 or 1 is a share.

    Args:
        values: The observations.
        groups: The group of each; None, or a group for each observation, where they are independent.

    Returns:
        The interval; None if there are fewer than two observations or groups.
    """
    if len(values) < 2:  # noqa: PLR2004
        return None
    sums, sizes = _by_group(values, groups)
    if len(sums) < 2:  # noqa: PLR2004
        return None
    if len(sums) == len(values) and all(value in (0, 1) for value in values):
        return share_interval(round(sum(values)), len(values))
    size, mean = len(values) / len(sums), fmean(values)
    _, _, effective = _padded(sums, sizes, size)  # pseudo-observations that weigh as much as a group
    middle, variance, _ = _padded(sums, sizes, min(size, (len(values) + 2 * size) / effective))  # as much as one does
    half = t_quantile(len(sums) - 1) * math.sqrt(variance)
    return max(0.0, min(middle - half, mean)), min(1.0, max(middle + half, mean))


def _padded(sums: Sequence[float], sizes: Sequence[float], pseudo: float) -> tuple[float, float, float]:
    """Return mean, variance and effective number, with a pseudo-observation of the weight *pseudo* at each end."""
    middle, variance = jackknife([*sums, 0.0, pseudo], [*sizes, pseudo, pseudo])
    return middle, variance, min(math.fsum(sizes) + 2 * pseudo, max(1.0, middle * (1 - middle) / variance))


def jackknife(sums: Sequence[float], sizes: Sequence[float]) -> tuple[float, float]:
    """Return the mean of grouped observations, and its variance by leaving out a group at a time."""
    total, n, m = math.fsum(sums), math.fsum(sizes), len(sums)
    mean = total / n
    without = ((total - one) / (n - size) for one, size in zip(sums, sizes, strict=True))
    return mean, (m - 1) / m * math.fsum((each - mean) ** 2 for each in without)


def _by_group(values: Sequence[float], groups: Sequence[Hashable] | None) -> tuple[list[float], list[float]]:
    """Return the sum and the size of each group."""
    if groups is None:
        return [*values], [1.0] * len(values)
    sums: dict[Hashable, float] = {}
    sizes: dict[Hashable, float] = {}
    for value, group in zip(values, groups, strict=True):
        sums[group] = sums.get(group, 0.0) + value
        sizes[group] = sizes.get(group, 0.0) + 1
    return [*sums.values()], [*sizes.values()]


@lru_cache
def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return how many standard errors a mean lies within, with *confidence*, by its degrees of *freedom*."""
    if freedom > _MANY:
        z = NormalDist().inv_cdf(0.5 + confidence / 2)
        first = (z**3 + z) / 4
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + first / freedom + second / freedom**2 + third / freedom**3
    low, high = 0.0, 100.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """Return the probability of a value between -*t* and *t*."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = 0.0 if odd and freedom == 1 else term
    for k in range(1 + odd, freedom - 2, 2):
        term *= k / (k + 1) * cosine * cosine
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
