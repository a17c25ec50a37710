"""
Intervals around shares and means, with 95 % confidence.

A share has the interval of A. Agresti and B. A. Coull (The American Statistician 52, 1998): the middle of Wilson's, and
as wide or wider, since Wilson's covers 84 to 92 % of shares near an end in small samples (L. D. Brown, T. T. Cai and A.
DasGupta, Statistical Science 16, 2001). Below ten it is the exact one (C. J. Clopper and E. S. Pearson, Biometrika 26,
1934). A mean of values in 0..1 has Student's, around one pseudo-observation more at each end of the scale: values near
an end vary less in a small sample than in truth, and five equal ones not at all.

Observations that belong together are one group: their spread is that between groups, by the jackknife that leaves out a
group at a time (K. M. Wolter, Introduction to Variance Estimation, 2007, chapter 4), with groups - 1 degrees of
freedom. A pseudo-observation then weighs as much as it takes to count as one, which is the design effect (L. Kish,
Survey Sampling, 1965). A share of groups has the interval of a share of as many verdicts as they are worth (C. Franco
and others, Journal of Survey Statistics and Methodology 7, 2019).

A mean of paired differences has Student's interval too, with half a pseudo-pair at each end of what was seen and one
without a difference (the idea of A. Agresti and Y. Min, Statistics in Medicine 24, 2005, for pass rates): a handful of
differing verdicts is not an alarm, and no interval has a width of 0. Groups count as many pairs as they are worth, and
uneven ones have fewer degrees of freedom than their number says.

Student's quantile comes from the exact series of the distribution for whole degrees of freedom (Abramowitz and Stegun
26.7.3 and 26.7.4), and for many from the expansion around the normal one (26.7.5).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from functools import lru_cache
from statistics import NormalDist, fmean

from attrs import frozen

from rubric.internals.text import counted

Interval = tuple[float, float]
"""The lower and the upper end."""

CONFIDENCE = 0.95
_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
_Z_80 = NormalDist().inv_cdf(0.8)
_NOTHING = 1e-12

FEW_GROUPS = 20
"""With so many groups, or fewer, an interval can be too narrow."""

_MANY = 200
"""Degrees of freedom from which the expansion is exact to nine digits."""

_BISECTIONS = 80

_EXACT_BELOW, _FINE = 10, 10**9
"""Counts below which a share has the exact interval, and how finely that is searched."""


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
    said = f"{counted(count, 'group')}: with {FEW_GROUPS} or fewer, intervals can be too narrow"
    return said if 0 < count <= FEW_GROUPS else ""


def share_interval(successes: float, n: float, q: float = _Z) -> Interval | None:
    """
    Return where the true share lies if *successes* of *n* were counted; None if there is nothing to count.

    Neither need be whole (E. L. Korn and B. I. Graubard, Survey Methodology 24, 1998); *q* is the quantile.
    """
    if not n:
        return None
    if n < _EXACT_BELOW and q == _Z and n == int(n) and successes == int(successes):
        return _exact_end(int(successes), int(n)), 1 - _exact_end(int(n - successes), int(n))
    size = n + q * q
    middle = (successes + q * q / 2) / size
    half = q * math.sqrt(middle * (1 - middle) / size)
    return 0.0 if successes == 0 else max(0.0, middle - half), 1.0 if successes == n else min(1.0, middle + half)


@lru_cache
def _exact_end(count: int, n: int) -> float:
    """Return the share of which *count* or more of *n* are seen in 2.5 % of samples."""

    def tail(place: int) -> float:
        p = place / _FINE
        return math.fsum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(count, n + 1))

    return bisect_left(range(_FINE), (1 - CONFIDENCE) / 2, key=tail) / _FINE if count else 0.0


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
    is_share = all(value in (0, 1) for value in values)
    if len(sums) == len(values) and is_share:
        return share_interval(round(sum(values)), len(values))
    size, mean = len(values) / len(sums), fmean(values)
    _, _, effective = _pad(sums, sizes, size)  # pseudo-observations that weigh as much as a group
    middle, variance, _ = _pad(sums, sizes, min(size, (len(values) + 2 * size) / effective))  # as much as one does
    quantile = t_quantile(_freedom(sizes))
    if is_share:
        worth = min(len(values), max(1.0, middle * (1 - middle) / variance - 2))
        return share_interval(mean * worth, worth, quantile)
    half = quantile * math.sqrt(variance)
    return max(0.0, min(middle - half, mean)), min(1.0, max(middle + half, mean))


@frozen
class PairedMean:
    """
    Where a mean of paired differences lies.

    Args:
        middle: The middle of its intervals.
        units: The number of groups, or of pairs without groups.
        step: The variance that a difference adds to the mean, for each unit of the difference.
    """

    mean: float
    middle: float
    error: float
    freedom: int
    units: int
    step: float

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """Return where the true mean lies, with *confidence*."""
        half = t_quantile(self.freedom, confidence) * self.error
        return min(self.middle - half, self.mean), max(self.middle + half, self.mean)

    def detectable(self, confidence: float = CONFIDENCE) -> float:
        """Return the difference that 80 % of such comparisons find; it adds to the differences by chance."""
        square = (t_quantile(self.freedom, confidence) + _Z_80) ** 2
        own = square * self.step
        return (own + math.sqrt(own * own + 4 * square * (self.error**2 - self.step**2))) / 2  # less what one pair adds


def paired_mean(differences: Sequence[float], groups: Sequence[Hashable] | None = None) -> PairedMean | None:
    """
    Return where the mean of paired *differences* lies; None below two pairs or groups.

    Args:
        differences: Of each pair.
        groups: The group of each; None where they are independent.
    """
    sums, sizes = _by_group(differences, groups)
    n, m = len(differences), len(sums)
    if m < 2:  # noqa: PLR2004
        return None
    largest = max(map(abs, differences)) or 1.0  # the square of a difference of 1e-200 would be 0
    shares = [one / largest for one in differences]
    mean, square = math.fsum(shares) / n, math.fsum(one * one for one in shares) / n
    worth = float(n)
    if m < n:
        own = n * (square - mean * mean)
        moved = ((one / largest - size * mean) / (1 - size / n) for one, size in zip(sums, sizes, strict=True))
        by_group = (m - 1) / m * math.fsum(one * one for one in moved)
        worth = n / max(1.0, by_group / own) if own > _NOTHING else float(m)
    middle = mean * worth / (worth + 2)
    # A pair more for each way to move: D. G. Bonett and R. M. Price, J. Educational and Behavioral Statistics 37, 2012.
    variance = ((square * worth + 2) / (worth + 2) - middle * middle) / (worth + 2)
    step = largest / (worth + 2)
    return PairedMean(
        math.fsum(differences) / n, middle * largest, math.sqrt(variance) * largest, _freedom(sizes), m, step
    )


def _freedom(sizes: Sequence[float]) -> int:
    """Return the degrees of freedom of groups: those of as many even ones as have the same spread of sizes."""
    return max(1, round(math.fsum(sizes) ** 2 / math.fsum(one * one for one in sizes)) - 1)


def _pad(sums: Sequence[float], sizes: Sequence[float], pseudo: float) -> tuple[float, float, float]:
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
