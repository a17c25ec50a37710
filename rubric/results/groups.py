"""What results share: a tag, a group, a verdict or a variable, by which `Grades.by` groups them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rubric.results.result import Grade, Ungraded

_NAMES = ("tag", "group", "key", "verdict", "rubric", "judge")

NO_VALUE = "(none)"
"""The group of results without a value."""


def values_of(result: Grade | Ungraded, by: str | Callable[[Any], object]) -> Sequence[str]:
    """Return the values of *result* by which it is grouped; none where it has none."""
    variables = {} if result.candidate is None else result.candidate.variables
    if by == "tag" and "tag" not in variables:
        return result.tags
    found = by(result) if callable(by) else variables.get(by, getattr(result, by, None) if by in _NAMES else None)
    name = getattr(found, "name", found)
    return [] if name is None or name == "" else [str(name)]
