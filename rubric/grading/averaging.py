"""Weighted averages that are exact until the last rounding, and do not depend on the order."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean

TOLERANCE = 1e-9
"""How far below a threshold a score may lie and still meet it: 0.7999999999999999 meets 0.8."""


def mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted mean, in whole numbers: exact until the last rounding, and in any order the same."""
    ratios = [(v.as_integer_ratio(), w.as_integer_ratio()) for v, w in zip(values, weights, strict=True)]
    part, below_part = _exact_sum([(v * w, below_v * below_w) for (v, below_v), (w, below_w) in ratios])
    whole, below_whole = _exact_sum([weight for _, weight in ratios])
    return (part * below_whole) / (whole * below_part)  # whole numbers of any size divide with one rounding


def share_of_points(earning: Sequence[tuple[float, float]], penalties: Sequence[tuple[float, float]]) -> float:
    """
    Return the points that are met over those that can be met, cut to 0..1: exact until the last rounding.

    Args:
        earning: The contribution and the points of each criterion that earns points.
        penalties: The same of each penalty; a contribution of 1 takes nothing off, one of 0 all its points.
    """
    met = sum((Fraction(c) * Fraction(points) for c, points in earning), Fraction())
    lost = sum((Fraction(1 - c) * Fraction(points) for c, points in penalties), Fraction())
    return float(min(max((met - lost) / sum(Fraction(points) for _, points in earning), Fraction()), Fraction(1)))


def _exact_sum(ratios: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the sum of *ratios* whose denominators are powers of two, as those of all floats are; not shortened."""
    common = max(below for _, below in ratios)
    return sum(above * (common // below) for above, below in ratios), common


def median(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted median; where half of the weight lies on each side, the middle of the two."""
    low, high = medians(values, weights)
    return fmean((low, high))


def medians(values: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """Return the lower and the upper weighted median; they differ where half of the weight lies on each side."""
    ordered = sorted(zip(values, map(Fraction, weights), strict=True))
    half, seen = sum((weight for _, weight in ordered), Fraction()) / 2, Fraction()
    for index, (value, weight) in enumerate(ordered):
        seen += weight
        if abs(seen - half) <= Fraction(TOLERANCE) * half and index + 1 < len(ordered):
            return value, ordered[index + 1][0]
        if seen > half:
            return value, value
    return ordered[-1][0], ordered[-1][0]
