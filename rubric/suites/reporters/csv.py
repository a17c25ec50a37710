"""A table for spreadsheets: a row a case, with what each criterion contributes, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rubric.embed import shown
from rubric.internals.row_files import csv_text
from rubric.results import Row
from rubric.suites.report import Report


def render(report: Report) -> str:
    """Return *report* as CSV; columns that `Grades.rows` has too have its names."""
    cells = dict.fromkeys(name for row in report for name in row.cell)
    ids = dict.fromkeys(entry.id for row in report for entry in row.entries)
    names = _values(Row("", "deferred"), 0, cells, ids)
    return shown(csv_text([names, *(_values(row, n, cells, ids).values() for n, row in enumerate(report))]))


def _values(row: Row, index: int, cells: Iterable[str], ids: Iterable[str]) -> dict[str, Any]:
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
        **{f"criterion.{id_}": entries[id_].contribution if id_ in entries else None for id_ in ids},
        **{f"reason.{id_}": entries[id_].reason if id_ in entries else None for id_ in ids},
        "calls": row.usage.calls,
        "prompt_tokens": row.usage.prompt_tokens,
        "completion_tokens": row.usage.completion_tokens,
        "cost": row.usage.cost,
        "remark": row.remark,
    }
