"""
Compare two runs over the same cases: has a rate or a mean fallen, or is it noise?

The interval is Student's around the mean of the paired differences, with half a pseudo-case at each end of what was
seen and one without a difference (the idea of A. Agresti and Y. Min, Statistics in Medicine 24, 2005, for pass rates):
so a handful of differing verdicts is no alarm, and no interval has a width of 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

from attrs import frozen

from rubric.scoring.intervals import t_quantile

_MANY = 400
"""Differing cases from which the power is that of the normal approximation (R. J. Connor, Biometrics 43, 1987)."""


@frozen
class Drop:
    """
    How far a rate or a mean fell between two runs over the same cases.

    Args:
        measure: `pass rate` or `mean score`.
        n: The cases in both runs.
        drop: The value before less the value now.
        interval: Where the true drop lies. It lies above 0 with a probability of at most *risk* if nothing has changed.
        risk: The accepted probability of a false alarm.
        noise: The share of cases whose value would differ by chance, as far as it can be told.
    """

    measure: str
    n: int
    drop: float
    interval: tuple[float, float]
    risk: float
    noise: float

    @property
    def is_shown(self) -> bool:
        """True if the interval lies above 0: chance does not explain the drop."""
        return self.interval[0] > 0


def drop_of(measure: str, before: Sequence[float], after: Sequence[float], risk: float) -> Drop | None:
    """
    Return how far *before* fell to *after*: values in 0..1 of the same cases in order; None below two cases.

    Args:
        measure: What the values are.
        before: Of the earlier run; a verdict is 1 or 0.
        after: Of the later run.
        risk: The accepted probability of a false alarm.
    """
    n = len(before)
    if n < 2:  # noqa: PLR2004
        return None
    drops = [a - b for a, b in zip(before, after, strict=True)]
    largest = max(map(abs, drops)) or 1.0
    shares = [drop / largest for drop in drops]  # the square of a drop of 1e-200 would be 0, and the interval empty
    low, high = _interval(n, math.fsum(shares), math.fsum(share * share for share in shares), risk)
    lost, won = sum(d > 0 for d in drops), sum(d < 0 for d in drops)
    noise = min(lost + won, 2 * min(lost, won) + 1) / n
    return Drop(measure, n, math.fsum(drops) / n, (low * largest, high * largest), risk, noise or 1 / n)


def _interval(n: int, total: float, squares: float, risk: float) -> tuple[float, float]:
    mean = total / (n + 2)
    error = math.sqrt((squares + 1) / (n + 2) - mean * mean) / math.sqrt(n + 2)
    half = t_quantile(n - 1, 1 - 2 * risk) * error
    return mean - half, mean + half


@lru_cache
def power(n: int, noise: float, drop: float, risk: float) -> float:
    """
    Return how often a *drop* of the pass rate over *n* cases is found.

    Args:
        n: The cases, two at least.
        noise: The share of cases whose verdict differs between two runs of the same system.
        drop: The drop of the pass rate.
        risk: The accepted probability of a false alarm.
    """
    differ = min(1.0, noise + drop)
    lost = min(1.0, (noise / 2 + drop) / differ)
    if n * differ > _MANY:
        z = NormalDist().inv_cdf(1 - risk)
        return NormalDist().cdf((drop * math.sqrt(n) - z * math.sqrt(differ)) / math.sqrt(differ - drop * drop))
    spread = 8 * math.sqrt(n * differ * (1 - differ)) + 8
    few, many = max(0, int(n * differ - spread)), min(n, int(n * differ + spread) + 1)
    return math.fsum(_mass(d, n, differ) * _tail(_needed(d, n, risk), d, lost) for d in range(few, many + 1))


def _needed(differing: int, n: int, risk: float) -> int:
    """Return how many of the *differing* cases must be lost for an alarm; one more than there are, if none suffices."""
    low, high = 0, differing + 1
    while low < high:
        middle = (low + high) // 2
        if _interval(n, 2 * middle - differing, differing, risk)[0] > 0:
            high = middle
        else:
            low = middle + 1
    return low


def _tail(k: int, n: int, share: float) -> float:
    """Return the probability of at least *k* of *n*, each with the probability *share*."""
    return math.fsum(_mass(j, n, share) for j in range(k, n + 1))


def _mass(k: int, n: int, share: float) -> float:
    if share in (0, 1):
        return float(k == n * share)
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(share) + (n - k) * math.log1p(-share))
