"""Disagreements: the candidates of which two sides do not say the same, each with what both say."""

from __future__ import annotations

from operator import attrgetter

import numpy as np
from attrs import field, frozen

from rubric.embed import Listed, NoTruth, Presented, Table, counted
from rubric.trust.ratings import Ratings


@frozen
class Disagreement(NoTruth):
    """
    One candidate of which the judge and people do not say the same.

    Args:
        criterion: Its id; empty for the whole.
        key: The candidate's, or its place where candidates have no keys.
        judge: What the judge says: `yes` or `no`, also of the whole, an option, or a number.
        people: What people say together; of two judges the other one.
    """

    _truth = ".judge and .people"

    criterion: str
    key: str
    judge: str | float
    people: str | float


@frozen(repr=False)
class Disagreements(Presented, Listed[Disagreement]):
    """
    What `agreement(...).disagreements` has: by criterion, of numbers the furthest apart first.

    Args:
        items: Each one.
        n: The ratings of both sides, the same ones among them; 0 where people are each compared with the others.
        sides: What the two are called.
    """

    _items, _kind, _id, _truth = "items", "disagreement", attrgetter("key"), "its length: len(disagreements)"

    items: tuple[Disagreement, ...]
    n: int = field(default=0)
    sides: tuple[str, str] = ("the judge", "people")

    @property
    def sentence(self) -> str:
        """How many there are."""
        one, other = self.sides
        many = f"{len(self):,} of {counted(self.n, 'rating')}" if self.n else counted(len(self), "rating")
        return f"{one[0].upper()}{one[1:]} and {other} differ in {many}."

    def tables(self) -> list[Table]:
        """Each candidate in a row."""

        def text_of(value: str | float) -> str:
            return value if isinstance(value, str) else f"{value:g}"

        rows = [(d.criterion or "the whole", d.key, text_of(d.judge), text_of(d.people)) for d in self]
        return [("", ("criterion", "key", *self.sides), [*rows])] if rows else []


def disagreements_in(ratings: Ratings) -> tuple[Disagreement, ...]:
    """Return the candidates on which the judge and the target differ; neither a tie nor an ungraded one does."""
    apart = np.nan_to_num(np.abs(ratings.judge - ratings.target))
    rows, names = np.flatnonzero(apart > 1e-9), ratings.names or [*map(str, range(len(apart)))]
    if ratings.scale.kind == "number":
        rows = rows[np.argsort(-apart[rows], kind="stable")]

    def value_of(code: float) -> str | float:
        return ratings.scale.names[int(code)] if ratings.scale.names else float(code)

    values = zip(rows, ratings.judge[rows], ratings.target[rows], strict=True)
    return tuple(Disagreement(ratings.criterion, names[row], value_of(a), value_of(b)) for row, a, b in values)
