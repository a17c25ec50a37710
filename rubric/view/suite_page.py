"""The report of a suite as one HTML page, with a grid of the cells of its matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rubric.view import html
from rubric.view.cards import MOST_ROWS, Shown, anchor_of, draw, histogram
from rubric.view.grid import grid_of
from rubric.view.page import page, rows_data

if TYPE_CHECKING:
    from rubric.suites.report import Report


def render(report: Report, **served: Any) -> str:
    """Return *report* as a page; *served* is what a server adds to it, as for `page`."""
    usage = report.usage
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    figures: list[tuple[str, Any]] = [
        ("cases", f"{len(report):,}"),
        ("calls", f"{usage.calls:,}"),
        (f"tokens in{cached}", f"{usage.prompt_tokens:,}"),
        ("tokens out", f"{usage.completion_tokens:,}"),
        ("cost", "unknown" if usage.cost is None else f"${usage.cost:.4f}"),
        ("s", f"{report.duration:.1f}"),
    ]
    drawn = html.render("grid.html", grid=grid) if (grid := grid_of(report.rows)) else None
    remarks = list(report.warnings)
    remarks += [f"Deferred cases count as {report.deferred}."] if report.counts["deferred"] else []
    return page(
        report.suite or "rubric",
        report.tally,
        rows_data(report.rows),
        passed=report.passed,
        counts=report.counts,  # type: ignore[arg-type]  # a status is a text
        figures=figures,
        remarks=map(html.notice, remarks),
        above=[drawn, histogram(report.rows)],
        footer=f"rubric {report.version}",
        **served,
    )


def card(report: Report) -> str:
    """Return *report* as a card for a notebook: the first cases, those that did not pass before the others."""
    rows = sorted(report.rows, key=lambda row: row.status == "passed")
    anchor = anchor_of(rows[:MOST_ROWS])
    lines = [draw("case", Shown(row, f"{anchor}-{n}")) for n, row in enumerate(rows[:MOST_ROWS])]
    shares = html.shares(report.counts)
    more = len(rows) - MOST_ROWS
    return html.fragment(html.render("suite_card.html", report=report, lines=lines, more=more, shares=shares))
