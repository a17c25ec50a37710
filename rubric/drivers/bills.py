"""What is set aside and charged: money, requests and tokens, added up exactly."""

from __future__ import annotations

from attrs import define, frozen

from rubric.drivers.attempts import is_free
from rubric.exchanges import Failure, Reply, Usage

__all__ = ["PICO", "Amount", "Bill", "Sum", "pico"]

PICO = 10**12
"""Money is added up in whole pico-dollars, so that sums are exact."""


@frozen
class Amount:
    """
    Money, requests and tokens. Of what has no limit, it counts what is reported.

    Args:
        cost: In US dollars; None where it is not known, or not limited.
        calls: Requests; None where they are not limited.
        tokens: Sent and come back; None where they are not limited.
    """

    cost: float | None = 0.0
    calls: int | None = 0
    tokens: int | None = 0

    def __str__(self) -> str:
        parts = [] if self.cost is None else [f"${self.cost:.4f}"]
        parts += [] if self.calls is None else [f"{self.calls:,} calls"]
        parts += [] if self.tokens is None else [f"{self.tokens:,} tokens"]
        return ", ".join(parts) or "no limit"


@frozen
class Sum:
    """An amount to count with: *pico*-dollars, calls, tokens."""

    pico: int = 0
    calls: int = 0
    tokens: int = 0

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.pico + other.pico, self.calls + other.calls, self.tokens + other.tokens)

    def __sub__(self, other: Sum) -> Sum:
        return Sum(self.pico - other.pico, self.calls - other.calls, self.tokens - other.tokens)


def pico(dollars: float) -> int:
    """Return *dollars* in whole pico-dollars."""
    return round(dollars * PICO)


@define
class Bill:
    """
    What is charged: the *most* that was set aside, until more is known.

    Args:
        rates: For replies that tell their tokens and not their cost.
        is_agreed: Whether these hold whatever cost is told.
        outcome: What came of it.
        is_sent: False where nothing has left after all.
    """

    most: Sum
    rates: tuple[float, float] | None = None
    is_agreed: bool = False
    outcome: Reply | Failure | None = None
    is_sent: bool = True

    def settle(self, outcome: Reply | Failure | None) -> None:
        """Take note of what came; None: nothing has left."""
        self.outcome, self.is_sent = outcome, outcome is not None

    @property
    def charged(self) -> Sum:
        """What is charged."""
        if self.is_free:
            return Sum()
        usage = self.usage
        cost = self.most.pico if self.cost is None else pico(self.cost)
        if not self.is_metered:
            return Sum(max(cost, self.most.pico), max(self.most.calls, usage.calls), self.most.tokens)
        return Sum(cost, usage.calls, usage.prompt_tokens + usage.completion_tokens)

    @property
    def is_known(self) -> bool:
        """Whether it is what was taken, and not only the most that it can have been."""
        return self.is_free or (self.is_metered and self.cost is not None)

    @property
    def is_free(self) -> bool:
        return not self.is_sent or (isinstance(self.outcome, Failure) and is_free(self.outcome))

    @property
    def usage(self) -> Usage:
        return Usage() if self.outcome is None else self.outcome.usage

    @property
    def is_metered(self) -> bool:
        return self.usage.calls > 0 and not self.usage.unmetered

    @property
    def cost(self) -> float | None:
        """What it has cost, as far as that is told, or follows from the tokens."""
        usage = self.usage
        if self.rates is None or (usage.cost is not None and not self.is_agreed):
            return usage.cost
        return usage.prompt_tokens * self.rates[0] + usage.completion_tokens * self.rates[1]
