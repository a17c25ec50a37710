"""A table for spreadsheets: a row a case, with what each criterion contributes, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rubric import Grades
from rubric.embed import shown
from rubric.internals.row_files import csv_text
from rubric.results import Entry, Row
from rubric.suites.report import Report


def render(report: Report) -> str:
    """Return *report* as CSV; columns that `Grades.rows` has too have its names."""
    cells = dict.fromkeys(name for row in report for name in row.cell)
    results = Grades({id(row.result.rubric): row.result for row in report if row.result is not None}.values())
    answers = [
        name for row in results.rows()[:1] for name in row if name.startswith(("criterion.", "value.", "level."))
    ]
    ids = dict.fromkeys(entry.id for row in report for entry in row.entries)  # also of a report from a file
    columns = dict.fromkeys([*answers, *(f"{kind}{id_}" for kind in ("criterion.", "reason.") for id_ in ids)])
    names = _values(Row("", "deferred"), 0, cells, columns)
    return shown(csv_text([names, *(_values(row, n, cells, columns).values() for n, row in enumerate(report))]))


def _values(row: Row, index: int, cells: Iterable[str], columns: Iterable[str]) -> dict[str, Any]:
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
        **{name: _cell(entries, *name.split(".", 1)) for name in columns},
        "calls": row.usage.calls,
        "prompt_tokens": row.usage.prompt_tokens,
        "completion_tokens": row.usage.completion_tokens,
        "cost": row.usage.cost,
        "remark": row.remark,
    }


def _cell(entries: Mapping[str, Entry], kind: str, id_: str) -> object:
    return getattr(entries.get(id_), "contribution" if kind == "criterion" else kind, None)
