"""
Who casts which vote.

A reply is kept by what was asked and by the number of the vote, and serves whoever asks for just that. So no two judges
of a bench may ask the same model as the same vote: one reply would stand for two opinions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from attrs import frozen

from rubric.grading.voting import members_of
from rubric.judges import Bench, Judge, Model

__all__ = ["Seat", "seated"]


@frozen
class Seat:
    """
    A place on a bench.

    Args:
        judge: Who sits there: one judge, or several that vote.
        vote: The number of a single judge's vote; 0 for several, who have their own.
        members: The places of those who vote, in order.
    """

    judge: Bench
    vote: int = 0
    members: tuple[Seat, ...] = ()


def seated(bench: Bench) -> Seat:
    """
    Return *bench* with the votes of its single judges numbered, in order: how many before have the same model.

    So a judge alone is vote 0, and those of a jury are 0, 1, 2 and so on, wherever they sit. Judges that differ in
    their settings alone are numbered as one model, since not every setting reaches it.
    """
    before = Counter[object]()

    def place(judge: Bench) -> Seat:
        if not isinstance(judge, Judge):
            return Seat(judge, members=tuple(place(member) for member in members_of(judge)))
        model = _name(judge.model)
        before[model] += 1
        return Seat(judge, before[model] - 1)

    return Seat(bench) if isinstance(bench, Judge) else place(bench)


def _name(model: str | Model | Callable[..., object]) -> str:
    """Return what models that a store might take for one have in common: a name, or where a function or class is."""
    if isinstance(model, str):
        return model
    told = getattr(model, "identity", None)
    if isinstance(told, str):
        return told
    place: Any = model if hasattr(model, "__qualname__") else type(model)
    return f"{place.__module__}.{place.__qualname__}"
