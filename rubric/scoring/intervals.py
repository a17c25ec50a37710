"""
Intervals around shares and means, with 95 % confidence.

A share has Wilson's score interval (E. B. Wilson, JASA 22, 1927). A mean has Student's: its quantile comes from the
exact series of the distribution for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4), and for many
from the expansion around the normal one (26.7.5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist, fmean, stdev

Interval = tuple[float, float]
"""The lower and the upper end."""

_CONFIDENCE = 0.95
_Z = NormalDist().inv_cdf(0.5 + _CONFIDENCE / 2)

_MANY = 200
"""Degrees of freedom from which the expansion is exact to nine digits."""

_BISECTIONS = 80


def share_interval(successes: int, n: int) -> Interval | None:
    """Return where the true share lies if *successes* of *n* were counted; None if there is nothing to count."""
    if not n:
        return None
    share, z2 = successes / n, _Z * _Z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    return low, 1.0 if successes == n else min(1.0, middle + half)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return where the true mean of *values*, all in 0..1, lies; None if there are fewer than two."""
    if len(values) < 2:  # noqa: PLR2004
        return None
    mean = fmean(values)
    half = t_quantile(len(values) - 1) * stdev(values, mean) / math.sqrt(len(values))
    return max(0.0, mean - half), min(1.0, mean + half)


@lru_cache
def t_quantile(freedom: int) -> float:
    """Return how many standard errors a mean lies within, with 95 % confidence, by its degrees of *freedom*."""
    if freedom > _MANY:
        first = (_Z**3 + _Z) / 4
        second = (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96
        third = (3 * _Z**7 + 19 * _Z**5 + 17 * _Z**3 - 15 * _Z) / 384
        return _Z + first / freedom + second / freedom**2 + third / freedom**3
    low, high = 0.0, 20.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < _CONFIDENCE else (low, middle)
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
