"""What the benchmarks' formats share: signed weights, made ids, and where a file lists its examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from rubric import Criterion
from rubric.embed import Cursor
from rubric.formats.rubric_items import free_name


def as_penalty(values: dict[str, Any]) -> None:
    """Turn a negative weight in *values*, fields of a criterion, into a penalty of as many points."""
    weight = values.get("weight")
    if not isinstance(weight, bool) and isinstance(weight, int | float) and weight < 0:
        values |= {"weight": -weight, "polarity": "penalty"}


def by_points(criteria: Sequence[Criterion]) -> dict[str, Any]:
    """Return the fields of a rubric of *criteria* with these systems' score: points, where both signs meet."""
    signs = {criterion.polarity == "penalty" for criterion in criteria if criterion.weight}
    return {"criteria": criteria, **({"aggregation": "points"} if len(signs) > 1 else {})}


@define
class Ids:
    """
    The ids of the criteria of one rubric, some of which the file gives.

    Args:
        given: Those of the file, which none that is made may be.
        used: Those that a criterion has.
    """

    given: frozenset[str] = frozenset()
    used: set[str] = field(factory=set)

    def take(self, id: object) -> bool:
        """Use *id*, as the file gives it; True if it was free."""
        if not isinstance(id, str):
            return True
        free = id not in self.used
        self.used.add(id)
        return free

    def make(self, text: object) -> dict[str, str]:
        """Return the field of a criterion with this *text* and an id of its own; nothing where there is no text."""
        if not isinstance(text, str) or not text.strip():
            return {}
        found = free_name(Criterion(text).id, self.used | self.given)
        self.used.add(found)
        return {"id": found}


_ROOTS = ("tests", "examples")
"""The keys under which a file may list its examples; `tests` is what the rows of a JSONL file come as."""


def examples(root: Cursor, what: str) -> list[Cursor]:
    """Return the examples of a file: itself, or the items of a list, bare or under a key; *what* describes them."""
    listed = next((root[key] for key in _ROOTS if key in root), root)
    return [listed] if isinstance(listed.value, dict) else listed.listing(what)


def warn_of_pass_mark(root: Cursor) -> None:
    """Warn, once a file, that these formats have no pass mark."""
    root.warn("the format has no pass mark; 0.7 is taken, as everywhere here")
