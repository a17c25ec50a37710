"""A table for spreadsheets: a row a case, with what each criterion contributes, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rubric import Grades
from rubric.embed import shown
from rubric.internals.row_files import csv_text
from rubric.results import Row
from rubric.suites.report import Report


def render(report: Report) -> str:
    """Return *report* as CSV; columns that `Grades.rows` has too have its names."""
    cells = dict.fromkeys(name for row in report for name in row.cell)
    ids: dict[str, list[str]] = {entry.id: [] for row in report for entry in row.entries}
    results = {id(row.result.rubric): row.result for row in report if row.result is not None}
    for name in Grades(results.values()).rows()[0] if results else ():
        if name.startswith(("value.", "level.")):
            ids[name.partition(".")[2]].append(name)
    names = _values(Row("", "deferred"), 0, cells, ids)
    return shown(csv_text([names, *(_values(row, n, cells, ids).values() for n, row in enumerate(report))]))


def _values(row: Row, index: int, cells: Iterable[str], ids: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the columns of *row*; one without a coordinate, or without a criterion, has nothing in its place."""
    entries = {entry.id: entry for entry in row.entries}
    return {
        "index": index,
        "key": row.id,
        **{f"cell.{name}": row.cell.get(name) for name in cells},
        "rubric": row.rubric,
        "judge": row.judge,
        "input": row.input,
        "output": row.output,
        "score": row.score,
        "passed": None if row.score is None else row.status == "passed",
        "verdict": row.verdict or row.status,
        "low": row.bounds[0],
        "high": row.bounds[1],
        "reason": row.reason,
        **{
            name: getattr(entries.get(id_), name.partition(".")[0].replace("criterion", "contribution"), None)
            for id_ in ids
            for name in (f"criterion.{id_}", *ids[id_])
        },
        **{f"reason.{id_}": entries[id_].reason if id_ in entries else None for id_ in ids},
        "calls": row.usage.calls,
        "prompt_tokens": row.usage.prompt_tokens,
        "completion_tokens": row.usage.completion_tokens,
        "cost": row.usage.cost,
        "remark": row.remark,
    }
