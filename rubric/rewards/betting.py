"""
Has a mean grown? An e-process by betting, which may be looked at after every step and stopped at any.

A bettor stakes a share of their capital on each gap being larger than allowed. While the mean of the next gap, given
all before, is at most what is allowed, no bet gains on average, so capital of 1 ever reaches 1 / risk with at most that
risk (J. Ville 1939; I. Waudby-Smith and A. Ramdas, JRSS B 86, 2024). Nobody knows when a change begins, or how large it
is: the capital is spread over all beginnings and over three stakes, and what has not begun is kept (a mixture, so an
e-process; J. Shin, A. Ramdas and A. Rinaldo, "E-detectors", NEJSDS 2, 2024).

The largest stake that cannot ruin is set by the lowest gap there can be. Gaps that are means over many criteria hardly
go that far: where the usual gap is learned, those beyond a *span* count as the span, both before and after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from attrs import evolve, frozen

from rubric.embed import NoTruth

STAKES = (0.15, 0.4, 0.95)
"""Shares of the largest stake that cannot ruin."""

_MOST = 1e100  # a sure alarm: products of later steps stay finite
_HALF = 50  # steps until half of the capital has begun
_SPANS = (0.5, 1.0)
_SIZES, _BEYOND = 4, 0.01  # gaps of fewer sizes are verdicts, whose span is 1; and the share of gaps beyond a span


def unspent(steps: int) -> float:
    """Return the share of the capital that is kept for beginnings after *steps*: it shrinks slowly, and never ends."""
    return 1 / (1 + math.log2(1 + steps / _HALF))


def settle(capital: Sequence[Any], gap: Any, allowed: Any, fresh: float = 0.0, span: Any = 1.0) -> tuple[Any, ...]:
    """Return the capital on each stake, with *fresh* put in, after one *gap* within *span*; or arrays, of many runs."""
    gain = (gap - allowed) / (allowed + span)
    return tuple((held + fresh / len(STAKES)) * (1 + stake * gain) for held, stake in zip(capital, STAKES, strict=True))


@frozen
class EProcess(NoTruth):
    """
    The evidence that a mean gap is larger than *allowed*: the *capital* on each stake after so many *steps*.

    Gaps beyond *span* count as the span.
    """

    _truth = ".value"

    allowed: float
    span: float = 1.0
    capital: tuple[float, ...] = (0.0,) * len(STAKES)
    steps: int = 0

    @property
    def value(self) -> float:
        """The capital, of 1 at the start: 20 or more is ever reached with at most 1 in 20."""
        return sum(self.capital) + unspent(self.steps)

    def after(self, gaps: Sequence[float]) -> EProcess:
        """Return it after one more step, with the *gaps* of it; a step without any changes nothing."""
        if not gaps:
            return self
        fresh, capital = unspent(self.steps) - unspent(self.steps + 1), self.capital
        for gap in clip(gaps, self.span):
            after = settle(capital, gap, self.allowed, fresh, self.span)
            capital, fresh = tuple(min(_MOST, held) for held in after), 0.0
        return evolve(self, capital=capital, steps=self.steps + 1)


def clip(gaps: Sequence[float], span: float) -> list[float]:
    """Return *gaps*, those beyond *span* as the span."""
    return [max(-span, min(span, gap)) for gap in gaps]


def usual(gaps: Sequence[float], risk: float) -> tuple[float, float]:
    """Return what the mean of *gaps* exceeds with at most *risk*, whatever their span is, and that span."""
    is_fine = len({abs(round(gap, 9)) for gap in gaps}) >= _SIZES
    narrow, whole = _SPANS
    span = narrow if is_fine and sum(abs(gap) > narrow for gap in gaps) <= _BEYOND * len(gaps) else whole
    return upper_limit(clip(gaps, span), risk / len(_SPANS), span), span


def upper_limit(gaps: Sequence[float], risk: float, span: float = 1.0) -> float:
    """Return what the mean of *gaps*, within *span*, exceeds with at most *risk*: exact, by bets that it is lower."""
    low, high = -span, span
    for _ in range(40):
        middle = (low + high) / 2
        capital: Sequence[float] = (1 / len(STAKES),) * len(STAKES)
        for gap in gaps:
            capital = [min(_MOST, held) for held in settle(capital, -gap, -middle, span=span)]
        low, high = (low, middle) if sum(capital) >= 1 / risk else (middle, high)
    return high
