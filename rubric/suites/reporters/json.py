"""Newline-delimited JSON: a line for each case, and a summary as the last line; for logs and for `jq`."""

from __future__ import annotations

from rubric.suites.report import SCHEMA, Report, dump_json, summary


def render_lines(report: Report) -> str:
    """Return *report* as lines, each an object whose `type` is `row` or `summary`; nothing in it is cut."""
    rows = [{"type": "row", **row.to_dict()} for row in report]
    last = {
        "type": "summary",
        "schema": SCHEMA,
        "suite": report.suite,
        **summary(report),
        "deferred": report.deferred,
        "warnings": list(report.warnings),
        "version": report.version,
        "duration": report.duration,
    }
    return "".join(f"{dump_json(line)}\n" for line in [*rows, last])


def render(report: Report) -> str:
    """Return the whole *report* as JSON; nothing in it is cut."""
    return dump_json(report.to_dict(), indent=2) + "\n"
