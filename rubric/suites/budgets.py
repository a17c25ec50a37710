"""What a run may spend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from attrs import define, field

from rubric.errors import DefinitionError, ModelError
from rubric.exchanges import Failure
from rubric.judges import Judge
from rubric.models import price

__all__ = ["Budget", "check_prices"]


@define
class Budget:
    """
    Holds a run to a cap.

    Before a case is judged, the most that it is planned to take is set aside; afterwards, what it took is counted.
    Re-asks of unreadable replies are not in the plan, so the cap can be overstepped by those of the
    cases that are under way. What live targets spend is counted where they tell it, and never planned.

    Args:
        cap: In US dollars; None for none.
        spent: What the cases that are through took; the planned most of those whose cost is not known.
        held: What is set aside for those that are under way.
    """

    cap: float | None = None
    spent: float = 0.0
    held: float = 0.0
    _changed: asyncio.Condition = field(factory=asyncio.Condition)
    _turn: asyncio.Lock = field(factory=asyncio.Lock)

    @asynccontextmanager
    async def holding(self, worst: float) -> AsyncIterator[Bill]:
        """
        Set *worst* aside, waiting for other cases if it does not fit beside what is set aside for those.

        Raises:
            ModelError: It does not fit into what is left.
        """
        async with self._turn, self._changed:  # in the order of the cases
            await self._changed.wait_for(lambda: self._fits(self.held + worst) or not self.held)
            self.refuse_beyond(worst)
            self.held += worst
        bill = Bill(worst)
        try:
            yield bill
        finally:
            async with self._changed:
                self.held = max(0.0, self.held - worst)
                self.spent += bill.cost
                self._changed.notify_all()

    def refuse_beyond(self, worst: float) -> None:
        """Raise `ModelError` if *worst* does not fit into what is left."""
        if self.cap is not None and not self._fits(worst):
            message = (
                f"over the budget of ${self.cap:g}: ${self.spent:.4f} are spent, and this case may take ${worst:.4f}"
            )
            raise ModelError(Failure("budget", message))

    def _fits(self, more: float) -> bool:
        return self.cap is None or self.spent + more <= self.cap + _ROUNDING


_ROUNDING = 1e-12


@define
class Bill:
    """What a case takes, in US dollars: the planned most, until more is known."""

    cost: float


def check_prices(judges: Iterable[Judge]) -> None:
    """
    Refuse a budget for *judges* of which one has no known price.

    Raises:
        DefinitionError: With the name of the judge.
    """
    for judge in judges:
        if price(judge) is None:
            message = f"the price of {judge.name!r} is not known, so no budget can hold; leave max_cost out"
            raise DefinitionError("max_cost", message)
