"""
A report in Markdown, for job summaries and for comments: a table of the cases, more on each that did not pass, and a
table of the criteria of those that did.

Untrusted text is escaped so that it stays text: no markup, no link, and no mention by an `@`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import evolve

from rubric.embed import cell, cut, line, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rubric.results import Entry, Row
    from rubric.suites.report import Report


LONGEST = 4_000
"""Characters of a candidate that are shown."""

MOST = 200
"""Criteria of passed cases that are shown: job summaries and comments have a largest size."""

_MARKS: dict[str, str] = {"passed": "✅", "failed": "❌", "ungraded": "⚠️", "deferred": "⏸️"}


def render(report: Report) -> str:
    """Return *report* as Markdown."""
    totals = f"{_MARKS['passed' if report.passed else 'failed']} {cell(report.usage)}, {report.duration:.1f} s"
    if report.counts["deferred"]:
        totals += f", deferred cases count as {report.deferred}"
    parts = [f"## {plain(report.suite) or 'rubric'}: {report.tally}", totals]
    if len(report):
        parts.append(_table(("case", "result", "score", "why"), map(_cells, report)))
    parts += [f"> **warning:** {plain(warning)}" for warning in report.warnings]
    parts += [part for row in report if row.status != "passed" for part in _section(row)]
    # One table of why the cases passed: criteria, reasons, quotes and walks.
    passes = [
        (plain(row.id, 120), *_entry(row, name, entry))
        for row in report
        if row.status == "passed"
        for name, entry in row.all_entries()
    ]
    if passes:
        parts.append("**Passed, and why:**")
        parts.append(_table(("case", "criterion", "result", "reason", "evidence"), passes[:MOST]))
    if len(passes) > MOST:
        parts.append(f"{len(passes) - MOST:,} criteria of passed cases are left out here.")
    return "\n\n".join(parts) + "\n"


_CALLS = re.compile(r"@(?=\w)|#(?=\d)")
_LINKS = re.compile(r"(?i)(?<=[a-z])://|\bwww\.|\bmailto:")


def plain(text: str, limit: int = 300) -> str:
    """Return *text* on one line, as Markdown that shows just that."""
    quiet = _CALLS.sub(lambda m: f"{m[0]}<!-- -->", cell(line(text, limit)))
    return _LINKS.sub(lambda m: m[0].replace(":", "&#58;").replace(".", "&#46;"), quiet)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cells(row: Row) -> tuple[str, str, str, str]:
    why = row.remark or row.reason or row.walk
    return plain(row.id, 120), f"{_MARKS[row.status]} {row.status}", plain(_score(row)), plain(why, 160)


def _score(row: Row) -> str:
    figures = row.figure(" to ")
    if row.score is None or row.status != "failed" or row.threshold is None:
        return figures
    if figures == f"{row.score:.2f}" and row.shortfall:
        figures = row.shortfall
    return f"{figures}, needs {row.threshold:.2f}"


def _section(row: Row) -> Iterator[str]:
    yield f"### {_MARKS[row.status]} {plain(row.id, 120)}: {row.status} {plain(_score(row))}".rstrip()
    if row.reason:
        yield f"**Why:** {plain(row.reason, 1000)}"
    if row.entries:
        rows = [_entry(row, name, entry) for name, entry in row.all_entries()]
        yield _table(("criterion", "result", "reason", "evidence"), rows)
    if row.path:
        yield f"**Path:** {plain(row.walk, 1000)}"
    if row.votes:
        votes = [(plain(vote.judge, 80), vote.figure, plain(vote.verdict)) for vote in row.votes]
        yield _table(("judge", "score", "verdict"), votes)
    yield from (f"**warning:** {plain(warning)}" for warning in row.warnings)
    if row.output:
        # Word for word, in a fence that it cannot close, folded away.
        inside = shown(cut(row.output, LONGEST))
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", inside)), default=0))
        yield f"<details><summary>candidate</summary>\n\n{fence}text\n{inside}\n{fence}\n\n</details>"


def _entry(row: Row, name: str, entry: Entry) -> tuple[str, str, str, str]:
    known = evolve(row, path=()) if row.status == "passed" else row  # a section shows the path on a line of its own
    what = entry.label().removeprefix(line(entry.id, 80))
    return plain(f"{name}{what}"), entry.verdict, plain(entry.reason), plain(entry.proof(known), 600)
