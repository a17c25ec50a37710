"""What the systems with signed weights have in common: a negative weight is a guard, and an id may have to be made."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from attrs import define, field

from rubric.criteria import slug

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rubric.formats.documents import Path
    from rubric.formats.notes import Notes

__all__ = ["NATIVE", "Ids", "as_guard", "tell_scores"]

NATIVE = (
    "criteria of negative weight are guards here: they count in the mean and fail the grade, so the score differs from "
    "the format's own, which subtracts them; rubric.grading.compat.llm_data_score(grade) gives that one"
)


def as_guard(values: dict[str, Any]) -> bool:
    """Turn a negative weight in *values*, fields of a criterion, into a guard; say whether it was one."""
    weight = values.get("weight")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not weight < 0:
        return False
    values |= {"weight": -weight, "polarity": "guard"}
    return True


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
        """Use *id*, as the file gives it; say whether it was free."""
        if not isinstance(id, str):
            return True
        free = id not in self.used
        self.used.add(id)
        return free

    def make(self, text: object) -> dict[str, str]:
        """Return the field of a criterion with this *text* and an id of its own; nothing where there is no text."""
        if not isinstance(text, str) or not text.strip():
            return {}
        base = slug(text)
        found = next(id for id in self._tries(base) if id not in self.used | self.given)
        self.used.add(found)
        return {"id": found}

    def _tries(self, base: str) -> Iterator[str]:
        yield base
        yield from (f"{base}-{number}" for number in count(2))


def tell_scores(notes: Notes, path: Path, *, guards: bool) -> None:
    """Warn, once a file, of what these formats do not say and of how their own score differs."""
    notes.warn(path, "the format has no pass mark; 0.7 is taken, as everywhere here")
    if guards:
        notes.warn(path, NATIVE)
