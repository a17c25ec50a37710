"""
The budget and the limits of a run whose requests other processes send.

A process that sends works out what each request may take (`Share.claims`). The one that keeps the budget and the limits
lets it through, and counts what it took (`Share.allowance`). Claims and outcomes go between them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from attrs import define, field, fields, frozen

from rubric.engine.budget import Amount, Budget, Reservation
from rubric.engine.rate_limits import Limits, ModelLimiter, address
from rubric.store.cache_key import digest
from rubric.values.requests import Ask, Commit, Failure, Reply


@frozen
class Share:
    """
    The limits and the rest of a budget, as plain data for other processes: no locks, no state.

    Args:
        limits: The arguments of `Limits` for each model, by its name; under "" those for all other models.
        left: The rest of the budget.
        prices: Of models by their names, as `Budget` has them.
    """

    limits: dict[str, dict[str, Any]]
    left: Amount
    prices: dict[str, tuple[float, float]] = field(factory=dict)

    @classmethod
    def of(cls, limits: Limits | None, left: Amount, prices: Mapping[str, tuple[float, float]]) -> Share:
        """Return the share of a run with *limits*, and with what is *left* of a budget with these *prices*."""
        limits = limits or Limits()
        by_model = {"": limits, **{name: limits.of(name) for name in limits.by_model}}
        return cls({name: _settings_of(each) for name, each in by_model.items()}, left, dict(prices))

    @property
    def counts_tokens(self) -> bool:
        """True if a limit or the budget depends on the tokens of a request."""
        limited = any(given["tpm"] is not None for given in self.limits.values())
        return limited or self.left.cost is not None or self.left.tokens is not None

    def budget(self) -> Budget:
        """Return a budget of what is left."""
        left = self.left
        return Budget(cost=left.cost, calls=left.calls, tokens=left.tokens, prices=self.prices)

    def claims(self) -> Callable[[Ask], Awaitable[tuple[str, Reservation]]]:
        """Return what works out, for each request of this process, the key of its limiter and what it may take."""
        budget, tokens = self.budget(), self.counts_tokens

        async def claim(ask: Ask) -> tuple[str, Reservation]:
            told = "\n".join([ask.judge.name, str(ask.judge.via), *address(ask.judge)])
            return digest(told), await budget.claim(ask, tokens=tokens)

        return claim

    def allowance(self) -> Allowance:
        """Return what lets the requests of all processes through."""
        return Allowance(self, self.budget())


def _settings_of(limits: Limits) -> dict[str, Any]:
    names = {part.alias or part.name: part.name for part in fields(Limits) if part.init}
    return {alias: getattr(limits, name) for alias, name in names.items() if alias not in ("clock", "by_model")}


@define(eq=False)
class Allowance:
    """Holds requests that other processes send to the limits and the budget of a share."""

    share: Share
    _budget: Budget
    _limiters: dict[str, ModelLimiter] = field(factory=dict)

    @asynccontextmanager
    async def admit(self, name: str, key: str, claim: Reservation) -> AsyncIterator[Commit]:
        """Return what a request passes: entered when it may be sent, left when it is through; see `Budget`."""
        async with self._budget.reserve(claim) as commit, AsyncExitStack() as stack:
            try:
                if key not in self._limiters:
                    given = self.share.limits.get(name, self.share.limits[""])
                    self._limiters[key] = Limits(**given).limiter(name)
                commit_to_limits = await stack.enter_async_context(self._limiters[key].place(claim.most.tokens))
            except BaseException:  # it gets no place, and is not sent
                commit(None)
                raise

            def commit_to_both(outcome: Reply | Failure | None) -> None:
                commit(outcome)
                commit_to_limits(outcome)

            yield commit_to_both

    @property
    def taken(self) -> Amount:
        """What all requests have taken; those in flight count with the most that they may take."""
        spent, held = self._budget.spent, self._budget.held
        cost = None if spent.cost is None else spent.cost + (held.cost or 0.0)
        return Amount(cost, (spent.calls or 0) + (held.calls or 0), (spent.tokens or 0) + (held.tokens or 0))
