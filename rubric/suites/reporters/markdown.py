"""
A report in Markdown, for job summaries and for comments: a grid of the answers where cases have cells, else a table of
the cases; more on each that did not pass; and a table of the criteria of those that did.

Untrusted text is escaped so that it stays text: no markup, no link, and no mention by an `@`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import evolve

from rubric.embed import cell, cut, line, shown
from rubric.view.grid import grid_of
from rubric.view.html import text_template

if TYPE_CHECKING:
    from rubric.results import Row
    from rubric.suites.report import Report


LONGEST = 4_000
"""Characters of a candidate that are shown."""

MOST = 200
"""Criteria of passed cases that are shown: job summaries and comments have a largest size."""

_MARKS: dict[str, str] = {"passed": "✅", "failed": "❌", "ungraded": "⚠️", "deferred": "⏸️"}


def render(report: Report) -> str:
    """Return *report* as Markdown."""
    passed = [evolve(row, path=()) for row in report if row.status == "passed"]
    words = {"plain": plain, "cell": cell, "line": line, "score": _score, "fenced": _fence, "marks": _MARKS}
    passes = [(row, name, entry) for row in passed for name, entry in row.all_entries()]
    text = text_template("report.md").render(words, report=report, grid=grid_of(report), passes=passes, most=MOST)
    return f"{text.rstrip()}\n"


_CALLS = re.compile(r"@(?=\w)|#(?=\d)")
_LINKS = re.compile(r"(?i)(?<=[a-z])://|\bwww\.|\bmailto:")


def plain(text: str, limit: int = 300) -> str:
    """Return *text* on one line, as Markdown that shows just that."""
    return without_links(cell(line(text, limit)))


def without_links(text: str) -> str:
    """Return the Markdown *text* so that it mentions nobody, and links nothing."""
    quiet = _CALLS.sub(lambda m: f"{m[0]}<!-- -->", text)
    return _LINKS.sub(lambda m: m[0].replace(":", "&#58;").replace(".", "&#46;"), quiet)


def _score(row: Row) -> str:
    figures = row.figure(" to ")
    if row.score is not None and row.status == "failed" and row.threshold is not None:
        figures = row.shortfall if figures == f"{row.score:.2f}" and row.shortfall else figures
        figures = f"{figures}, {row.needs or f'needs {row.threshold:.2f}'}"
    return plain(figures)


def _fence(text: str) -> str:
    """Return *text* word for word, in a fence that it cannot close."""
    inside = shown(cut(text, LONGEST))
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", inside)), default=0))
    return f"{fence}text\n{inside}\n{fence}"
