"""
Logistic regression by Newton's method, with sandwich errors by group.

The errors are those of K.-Y. Liang and S. Zeger (Biometrika 73, 1986), with Student's quantile at groups - 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rubric.trust.inference import Interval, quantile

_ROUNDS, _STEP, _ENOUGH, _RIDGE = 100, 4.0, 1e-10, 1e-6
_EVEN = 0.5


class Logistic:
    """
    The log odds of *wins*, values in 0..1, as sums over *rows*.

    Args:
        groups: The group of each row.
        even: Rows more, each half won, which keep coefficients finite and are not part of the errors.
    """

    def __init__(
        self,
        rows: Sequence[Sequence[float]],
        wins: Sequence[float],
        groups: Sequence[str],
        even: Sequence[Sequence[float]],
    ) -> None:
        x, won = np.array(rows), np.array(wins)
        every, goal = np.vstack([x, even]), np.append(won, [_EVEN] * len(even))
        self._values = np.zeros(x.shape[1])
        for _ in range(_ROUNDS):
            p = _sigmoid(every @ self._values)
            self._information = (every.T * (p * (1 - p))) @ every + _RIDGE * np.eye(x.shape[1])
            step = np.linalg.solve(self._information, every.T @ (goal - p) - _RIDGE * self._values)
            largest = float(np.abs(step).max())
            self._values += step * min(1.0, _STEP / (largest or 1.0))
            if largest < _ENOUGH:
                break
        names, codes = np.unique(groups, return_inverse=True)
        self._scores = np.zeros((len(names), x.shape[1]))
        np.add.at(self._scores, codes, x * (won - _sigmoid(x @ self._values))[:, None])
        self._is_grouped = len(names) < len(x)

    def estimate(self, contrast: Sequence[float]) -> tuple[float, Interval | None]:
        """Return the sum of the coefficients by *contrast*, with its interval; None for one group."""
        value, m = float(self._values @ contrast), len(self._scores)
        if m < 2:
            return value, None
        weights = np.linalg.solve(self._information, contrast)
        model = 0.0 if self._is_grouped else float(weights @ contrast)  # without variance between groups
        variance = max(float(((self._scores @ weights) ** 2).sum()) * m / (m - 1), model)
        half = quantile(None, m) * math.sqrt(variance)
        return value, (value - half, value + half)


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((1 + np.tanh(x / 2)) / 2)  # overflows nowhere
