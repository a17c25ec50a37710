"""How asks get to who answers them: past a store, so many at once, each request within a budget and limits."""

from __future__ import annotations

import asyncio
import os

from attrs import frozen

from rubric.drivers.attempts import Gate
from rubric.drivers.budgets import Budget
from rubric.drivers.carrying import CONCURRENCY, Carry, Room
from rubric.drivers.gates import gates
from rubric.judges import Bench
from rubric.store.stores import Store
from rubric.validating import check_count, refuse

__all__ = ["Route", "Stored", "route"]


Stored = Store | str | os.PathLike[str]
"""A store, or the path of one, which is then opened for the occasion."""


@frozen
class Route:
    """
    A way for asks.

    Args:
        carry: Takes an ask along it.
        room: Where its requests find their places.
        own: The store that was opened for it, and is closed with it.
    """

    carry: Carry
    room: Room
    own: Store | None = None

    def close(self) -> None:
        """Close what was opened for it."""
        if self.own is not None:
            self.own.close()


def route(
    *,
    concurrency: int = CONCURRENCY,
    store: Stored | None = None,
    budget: Budget | None = None,
    limits: Gate | None = None,
    bench: Bench | None = None,
) -> Route:
    """
    Return the way by *store*, *budget* and *limits*.

    What a request passes last is the store's record that it leaves: what still waits when a process dies was not sent.

    Args:
        concurrency: How many asks are under way at once.
        store: A store, or the path of one; None keeps nothing.
        budget: What may be spent.
        limits: How fast models may be asked.
        bench: Who judges, where it is to be seen first that the budget can hold. It may load LiteLLM.

    Raises:
        DefinitionError: An argument of another kind, or a budget that cannot hold.
        StoreError: The store at a path cannot be opened.
    """
    _check(concurrency, store, budget, limits)
    if budget is not None and bench is not None:
        budget.check(bench)
    gate = gates(budget, limits)
    if store is None:
        room = Room(asyncio.Semaphore(concurrency), gate)
        return Route(room.carry, room)
    kept = store if isinstance(store, Store) else Store(store)
    room = Room(asyncio.Semaphore(concurrency), kept.gate(gate))
    return Route(kept.carry(room.carry, gated=True), room, None if kept is store else kept)


def _check(concurrency: object, store: object, budget: object, limits: object) -> None:
    check_count("concurrency", concurrency)
    if not (store is None or isinstance(store, Store | str | os.PathLike)):
        raise refuse("store", store, "a Store, or the path of one")
    if not (budget is None or isinstance(budget, Budget)):
        raise refuse("budget", budget, "a Budget, such as Budget(cost=5.00)")
    if isinstance(limits, Budget | type) or not (limits is None or callable(limits)):
        raise refuse("limits", limits, "Limits, such as Limits(rpm=500)")
