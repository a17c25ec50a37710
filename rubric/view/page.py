"""
Results as one HTML page: what failed first, a table of the candidates by criteria, and one candidate beside it.

The page holds its data (`run_data.py`) and our own script (`run_page/*.js`), loads nothing, and shows untrusted text as
text: the script makes no markup of it. Its policy allows this one script and no request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rubric.embed import RowBuilder
from rubric.results import Row, Summary
from rubric.view import html
from rubric.view.cards import criteria_bars, figures_of, histogram, name_of_result, remarks
from rubric.view.run_data import NOBODY, RunData, block, script


def results_page(results: Sequence[Any], summary: Summary, title: str = "", people: Mapping[str, Any] = NOBODY) -> str:
    """Return any results as a page: rates, what failed, why some are ungraded, each criterion, and every result."""
    data = rows_data(rows_of_results(results), people)
    names = dict.fromkeys(row["rubric"] for row in data["rows"] if "rubric" in row)
    graded = summary.passed + summary.failed
    rest = f", {summary.ungraded:,} ungraded" if summary.ungraded else ""
    headline = f"{summary.passed:,} of {graded:,} grades pass{rest}" if graded else f"nothing graded{rest}"
    figures = figures_of(summary)
    if not summary.usage.calls:  # lines of `grade-many` do not hold what was used
        figures = [(name, value) for name, value in figures if name not in ("calls", "cost")]
    version = next((result.rubric.digest for result in results[:1]), "")
    return page(
        title or " · ".join([*names][:3]) or "rubric",
        headline,
        data,
        passed=bool(graded) and summary.passed == len(results),
        counts={"passed": summary.passed, "failed": summary.failed, "ungraded": summary.ungraded},
        figures=figures,
        remarks=remarks(summary),
        above=[histogram(results)],
        folded=[("Each criterion: mean and 95 % interval", criteria_bars(summary))],
        footer=f"rubric digest {version[:16]}" if version else "",
    )


def rows_of_results(results: Iterable[Any]) -> Iterator[Row]:
    """Yield *results* as rows, named by their keys or places."""
    build = RowBuilder()
    return (build.of(result, name_of_result(result, number)) for number, result in enumerate(results))


def rows_data(rows: Iterable[Row], people: Mapping[str, Any] = NOBODY) -> dict[str, Any]:
    """Return *rows* as the data of a page, with what *people* say of each."""
    data = RunData(people=people)
    found = [data.of(row) for row in rows]
    return {"criteria": data.criteria, "rows": found}


def page(
    title: str,
    headline: str,
    data: Mapping[str, Any],
    *,
    passed: bool,
    counts: Mapping[str, int],
    figures: Iterable[tuple[str, object]] = (),
    remarks: Iterable[object] = (),
    above: Iterable[object] = (),
    folded: Iterable[tuple[str, object]] = (),
    failed: str = "What failed, first",
    footer: str = "",
    more_script: str = "",
    sources: str = "",
) -> str:
    """
    Return *data*, the criteria and rows that `RunData` builds, as a page.

    The *headline* says the result in a few words, in the colour of *passed*; *counts* are the rows of each status.
    *above* stands beside what *failed*, which is its title; each of *folded* behind a line. *more_script* is our own,
    for what a server adds, and runs after the page's; *sources* are further directives of the policy.
    """
    rows = data["rows"]
    body = html.render(
        "results.html",
        title=title,
        headline=headline,
        passed=passed,
        figures=figures,
        shares=html.shares(counts) if rows else None,
        remarks=remarks,
        failed=failed if rows else "",
        above=[part for part in above if part is not None],
        folded=[(words, part) for words, part in folded if part is not None],
        data=block(data),
    )
    return html.page(
        f"{title}: {headline}",
        body,
        more_style=html.file("run_page/page.css"),
        footer=footer,
        script=script() + more_script,
        sources=sources,
    )
