"""Results by what they share: a tag, a group, a verdict or a variable, each with its rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from rubric.internals.fields import refuse
from rubric.internals.text import counted, visible
from rubric.results.presentation import Presented, Table
from rubric.results.summary import with_interval

if TYPE_CHECKING:
    from rubric.results.collection import Grades
    from rubric.results.result import Grade, Ungraded

_NAMES = ("tag", "group", "key", "verdict", "rubric", "judge")

NO_VALUE = "(none)"
"""The group of results without a value."""


@frozen(repr=False)
class Groups(Presented, Mapping[str, "Grades"]):
    """
    Results by what they share, which `Grades.by` returns: a mapping from each value to its `Grades`.

    Args:
        by: What they share.
        groups: The results of each value, in the order in which the values first came. A result without one is under
            `(none)`, and one with several tags under each of them.
    """

    by: str
    groups: Mapping[str, Grades]

    def __getitem__(self, value: str) -> Grades:
        return self.groups[value]

    def __iter__(self) -> Iterator[str]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    __hash__ = None  # type: ignore[assignment]  # a mapping

    @property
    def sentence(self) -> str:
        """How many groups there are."""
        return f"{counted(len(self), 'group')} by {self.by}"

    def tables(self) -> list[Table]:
        """Return a row a group: its results, its pass rate and mean with their intervals, and what is ungraded."""
        rows: list[tuple[object, ...]] = []
        for value, results in self.groups.items():
            said = results.summary()
            rates = (
                with_interval(said.pass_rate, said.pass_interval, "{:.1%}"),
                with_interval(said.mean, said.mean_interval, "{:.3f}"),
            )
            rows.append((visible(value)[0], said.results, *rates, said.ungraded))
        return [("", (self.by, "results", "pass rate", "mean", "ungraded"), rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary of each group as plain JSON-able data."""
        return {value: results.summary().to_dict() for value, results in self.groups.items()}


def values_of(result: Grade | Ungraded, by: str | Callable[[Any], object]) -> Sequence[str]:
    """Return the values of *result* by which `Grades.by` groups it; none where it has none."""
    if callable(by):
        found = by(result)
        return [] if found is None else [str(found)]
    variables = {} if result.candidate is None else result.candidate.variables
    if by == "tag" and "tag" not in variables:
        return result.tags
    if by not in _NAMES or by in variables:
        return [str(variables[by])] if by in variables else []
    value = getattr(result, by)
    name = str(getattr(value, "name", value) or "")
    return [name] if name else []


def refuse_unknown(by: object, results: Sequence[Grade | Ungraded]) -> Exception:
    """Return the error for results of which none has a value *by*, with what there is."""
    variables = {name for result in results if result.candidate is not None for name in result.candidate.variables}
    known = ", ".join([*_NAMES, *sorted(variables)[:20]])
    return refuse("by", by, f"{known}, or a function of a result; no result here has it")
