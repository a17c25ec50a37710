"""
JUnit XML, as CI systems read it.

There is no standard; this is the common core: a failure for a failed case, an error for an ungraded one, and for a
deferred one what the report counts it as. The score is among the properties of a case. The criteria are in its failure
or error, and among the properties of a pass, which has neither.
"""

from __future__ import annotations

from rubric.embed import line
from rubric.results import Entry, Row
from rubric.suites.report import Report
from rubric.view import html

LONGEST = 20_000
"""Characters of a candidate, or of a reason, that are shown."""

_DEFERRED = {"pass": "skipped", "fail": "failure", "error": "error"}


def render(report: Report) -> str:
    """Return *report* as XML, with characters that XML cannot hold as escapes."""
    kinds = [outcome(report, row) for row in report]
    cases = [
        (row, kind, [(name, _line(row, entry)) for name, entry in row.all_entries()])
        for row, kind in zip(report, kinds, strict=True)
    ]
    known = {"kinds": kinds, "cases": cases, "longest": LONGEST, "line": line}
    return str(html.render("junit.xml", report=report, **known))


def outcome(report: Report, row: Row) -> str:
    """Return the name of the element for the status of *row*; empty for a pass."""
    names = {"passed": "", "failed": "failure", "ungraded": "error", "deferred": _DEFERRED[report.deferred]}
    return names[row.status]


def _line(row: Row, entry: Entry) -> str:
    return " · ".join(filter(None, (entry.verdict, line(entry.reason), entry.proof(row))))
