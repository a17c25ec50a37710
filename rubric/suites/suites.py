"""A suite: cases that are graded together, as a file of one of the documented systems holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from rubric.errors import DefinitionError, Problem
from rubric.judges import Bench, as_judge
from rubric.mappings import FrozenMap
from rubric.suites.cases import Case
from rubric.validating import as_map, as_tuple, string

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attrs import Attribute

__all__ = ["Suite"]


def _as_cases(value: Iterable[Case]) -> tuple[Case, ...]:
    return as_tuple("cases", value, Case, "cases")


def _unique(_: Any, __: Attribute[Any], cases: tuple[Case, ...]) -> None:
    seen: set[str] = set()
    for index, case in enumerate(cases):
        if case.id in seen:
            raise DefinitionError(f"cases[{index}].id", f"the id {case.id!r} stands twice; give one of them another")
        seen.add(case.id)


def _as_bench(value: Any) -> Bench | None:
    return None if value is None else as_judge(value)


def _as_metadata(value: Mapping[str, Any]) -> FrozenMap:
    return as_map("metadata", value)


@frozen(repr=False)
class Suite:
    """
    Cases that are graded together.

    Args:
        name: What it is called.
        cases: In order; no two share an id.
        judge: Who judges where neither the caller nor the case names one.
        format: The format of the file that it was loaded from: `native`, `promptfoo`, `agentv-2`, ...
        source: The file.
        warnings: What the file says that could not be carried over, each with its place.
        metadata: Free data.
    """

    name: str = field(default="", validator=string)
    cases: tuple[Case, ...] = field(default=(), converter=_as_cases, validator=_unique)
    judge: Bench | None = field(default=None, kw_only=True, converter=_as_bench)
    format: str = field(default="native", kw_only=True)
    source: str = field(default="", kw_only=True, eq=False)
    warnings: tuple[Problem, ...] = field(default=(), kw_only=True, eq=False)
    metadata: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=_as_metadata)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    def __len__(self) -> int:
        return len(self.cases)

    def __getitem__(self, id: str) -> Case:
        """Return the case called *id*."""
        for case in self.cases:
            if case.id == id:
                return case
        raise KeyError(id)

    def __repr__(self) -> str:
        return f"<Suite {self.name!r}: {len(self.cases)} cases, {self.format}>"

    def only(self, *ids: str) -> Suite:
        """Return the suite with the cases called *ids* alone."""
        return evolve(self, cases=[self[id_] for id_ in ids])
