"""The cells of a matrix in a report: the last coordinate of a case names its column, all others its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from rubric.results import Row

_BRACKETS = re.compile(r"\s*[\[(][^\[\]()]*[\])]$")
"""The cell of a matrix at the end of a case's id."""


@frozen
class Grid:
    """The rows of each line by their *columns*, with the number of each in the report; the *corner* names both."""

    corner: str
    columns: Sequence[str]
    lines: Mapping[str, Mapping[str, Sequence[tuple[int, Row]]]]


def grid_of(rows: Iterable[Row]) -> Grid | None:
    """Return the rows with a cell as a grid, whose lines are named by the common part of their ids; None without."""
    columns: dict[str, None] = {}
    corner: dict[str, None] = {}
    lines: dict[str, dict[str, list[tuple[int, Row]]]] = {}
    for number, row in enumerate(rows, 1):
        if row.cell:
            *others, column = map(str, row.cell.values())
            name = " · ".join(part for part in (_without_cell(row), *others) if part)
            columns[column] = None
            corner |= dict.fromkeys(row.cell)
            lines.setdefault(name, {}).setdefault(column, []).append((number, row))
    return Grid(" × ".join(corner), [*columns], lines) if lines else None


def _without_cell(row: Row) -> str:
    """Return the id of *row* without its cell, which is in brackets at the end or named by its values there."""
    name = _BRACKETS.sub("", row.id)
    named = row.id.removeprefix(name).strip("[] ").split()
    for value in map(str, row.cell.values()):
        if value in named:
            named.remove(value)
        elif found := [*re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", name)]:  # what stands before is the case's own
            name = f"{name[: found[-1].start()]} {name[found[-1].end() :]}"
    return " ".join(name.split()).strip(" -_/:,·")
