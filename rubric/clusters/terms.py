"""What a run on a cluster may send, in a form that goes to the scheduler and the workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, fields, frozen

from rubric.drivers.budgets import Amount
from rubric.drivers.limits import Limits

__all__ = ["Terms", "Wanted"]

Wanted = tuple[str, str, str, int, float]
"""A request: its number, the model's name, what tells apart models of that name, its most tokens, its most dollars."""


@frozen
class Terms:
    """
    What a run may send, as it goes to the scheduler and the workers: no locks, no state.

    Args:
        run: The name of the run.
        limits: How `Limits` of each model are made, by the model's name; of the others under the empty one.
        cost: What is left of the budget, in US dollars; None for any.
        calls: How many requests are left of the budget; None for any.
        tokens: How many tokens are left of the budget; None for any.
        prices: Of models by their names, as `Budget` has them.
    """

    run: str
    limits: dict[str, dict[str, Any]]
    cost: float | None = None
    calls: int | None = None
    tokens: int | None = None
    prices: dict[str, tuple[float, float]] = field(factory=dict)

    @classmethod
    def of(cls, run: str, limits: Limits | None, left: Amount, prices: Mapping[str, tuple[float, float]]) -> Terms:
        """Return the terms of *run*, for which so much is *left* of a budget with these *prices*."""
        return cls(run, _settings(limits or Limits()), left.cost, left.calls, left.tokens, dict(prices))

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how many tokens a request may take."""
        limited = any(given.get("tpm") is not None for given in self.limits.values())
        return limited or self.cost is not None or self.tokens is not None

    def name(self, what: str) -> str:
        """Return what the scheduler calls one of its services to this run."""
        return f"rubric-{self.run}-{what}"


def _settings(limits: Limits) -> dict[str, dict[str, Any]]:
    every = _given(limits)
    own = {name: {k: v for k, v in _given(each).items() if v is not None} for name, each in limits.by_model.items()}
    return {"": every} | {name: every | {k: v for k, v in each.items() if k != "window"} for name, each in own.items()}


def _given(limits: Limits) -> dict[str, Any]:
    return {
        part.alias or part.name: getattr(limits, part.name)
        for part in fields(Limits)
        if part.init and (part.alias or part.name) not in ("clock", "by_model")
    }
