"""
Results as one HTML page that holds all it needs: it loads nothing, runs nothing, and shows untrusted text as text.

The page filters and sorts by its style sheet: radio buttons, and an order for each row. Rows out of sight are not laid
out, so ten thousand of them scroll.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from attrs import evolve

from rubric.embed import RowBuilder
from rubric.view import charts, html
from rubric.view.cards import case, figures_of, histogram, measured, name_of_result, remarks
from rubric.view.html import Html

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rubric.results import Row, Summary

OPEN = 8
"""How many of the results that did not pass are unfolded from the start, where there are few."""

FEW = 200
"""Results on a page of few: above, all are folded."""

WHOLE = 500
"""Results on a page of many that unfold a whole card: those without a pass and with the lowest scores come first."""

MANY = 1_500
"""Results above which the others are shown in brief."""

MOST_CRITERIA = 24
"""Criteria that rows can be filtered by: those that most rows fall short of."""

_STATUSES = ("failed", "ungraded", "deferred", "passed")
_SORTS = (
    ("order", "as given", ""),
    ("low", "lowest first", "var(--n)"),
    ("high", "highest first", "calc(0 - var(--n))"),
)


def results_page(results: Sequence[Any], summary: Summary, title: str = "", *, search: str | None = None) -> str:
    """
    Return any results as a page: rates, why some are ungraded, each criterion, the scores, and every result.

    Args:
        results: The results.
        summary: Of all of them.
        title: The page's; the names of the rubrics if left empty.
        search: As for `page`; the results alone are searched that have all of these words.
    """
    build = RowBuilder()
    rows = [evolve(build.of(result, name_of_result(result, n)), result=None) for n, result in enumerate(results)]
    names = list(dict.fromkeys(row.rubric for row in rows if row.rubric))
    graded = summary.passed + summary.failed
    rest = f", {summary.ungraded:,} ungraded" if summary.ungraded else ""
    headline = f"{summary.passed:,} of {graded:,} grades pass{rest}" if graded else f"nothing graded{rest}"
    figures = figures_of(summary)
    if search is not None and not summary.usage.calls:  # lines of `grade-many` do not hold what was used
        figures = [(name, value) for name, value in figures if name not in ("calls", "cost")]
    version = next((result.rubric.digest for result in results[:1]), "")
    return page(
        title or " · ".join(names[:3]) or "rubric",
        headline,
        found(rows, search),
        passed=bool(graded) and summary.passed == len(rows),
        figures=figures,
        above=[*remarks(summary), histogram(rows), measured(summary)],
        named="Results",
        footer=f"rubric digest {version[:16]}" if version else "",
        search=search,
    )


def found(rows: Sequence[Row], search: str | None) -> Sequence[Row]:
    """Return the *rows* with all words of *search* in their names, texts, criteria and reasons."""
    words = (search or "").casefold().split()
    return [row for row in rows if _has(row, words)] if words else rows


def _has(row: Row, words: Iterable[str]) -> bool:
    said = [row.id, row.input, row.output, row.reason, row.status, *row.tags]
    said += [part for entry in row.entries for part in (entry.id, entry.text, entry.reason)]
    whole = "\n".join(said).casefold()
    return all(word in whole for word in words)


def page(
    title: str,
    headline: str,
    rows: Sequence[Row],
    *,
    passed: bool,
    figures: Iterable[tuple[str, object]] = (),
    counts: Mapping[str, int] | None = None,
    warnings: Iterable[str] = (),
    above: Iterable[object] = (),
    named: str = "Cases",
    footer: str = "",
    search: str | None = None,
) -> str:
    """
    Return *rows* as a page.

    Args:
        title: The name of the suite or of the rubric.
        headline: The result in a few words.
        passed: The colour of the headline.
        figures: Of the whole run, each with its name.
        counts: The number of rows of each status; counted where it is None.
        warnings: Of the whole run.
        above: Shown before the rows: charts, tables.
        named: The title of the rows.
        footer: The last line.
        search: The words that a server searched the rows for, in a form for others; None on a page of a file.
    """
    if counts is None:
        found = Counter[str](row.status for row in rows)
        counts = {status: found[status] for status in ("passed", "failed", "ungraded", "deferred")}
    short = _falling_short(rows)
    groups = [("show", ["all", *_STATUSES])]
    groups += [("sort", [name for name, _, _ in _SORTS])] if len(rows) > 1 else []
    groups += [("short", [*range(len(short) + 1)])] if len(short) > 1 else []
    body = html.render(
        "results.html",
        title=title,
        headline=headline,
        passed=passed,
        figures=figures,
        shares=charts.shares(counts),
        warnings=warnings,
        form=None if search is None else html.search_form(search),
        groups=groups,
        total=len(rows),
        counts=counts,
        statuses=_STATUSES,
        sorts=_SORTS,
        short=short,
        above=above,
        named=named,
        many=MANY,
        whole=WHOLE,
        cases=_cases(rows, list(short)),
    )
    style = _style(rows, len(short))
    return html.page(f"{title}: {headline}", body, more_style=style, footer=footer, has_form=search is not None)


def _falling_short(rows: Iterable[Row]) -> dict[str, int]:
    """Return how many rows fall short of each criterion, by its text, the most first."""
    found: Counter[str] = Counter()
    for row in rows:
        short = (entry.text for entry in row.entries if entry.contribution is None or entry.contribution < 1)
        found.update([*dict.fromkeys(short)])  # a set has another order in each process
    return dict(found.most_common(MOST_CRITERIA))


def _cases(rows: Sequence[Row], short: Sequence[str]) -> Iterable[Html]:
    left = OPEN if len(rows) <= FEW else 0
    places = {name: n for n, name in enumerate(short, 1)}
    brief: set[int] = set()
    if len(rows) > MANY:
        ranked = sorted(range(len(rows)), key=lambda n: (rows[n].status == "passed", rows[n].bounds[0]))
        brief = set(ranked[WHOLE:])
    for number, row in enumerate(rows, 1):
        left -= row.status != "passed"
        unmet = {e.text for e in row.entries if e.contribution is None or e.contribution < 1} & places.keys()
        kinds = " ".join(f"short{n}" for n in sorted(places[name] for name in unmet))
        is_open = row.status != "passed" and left >= 0
        yield case(row, f"case-{number}", is_open=is_open, kinds=kinds, is_brief=number - 1 in brief)


def _style(rows: Sequence[Row], criteria: int) -> str:
    """Return the rules of this page: each row's place by score, and which button leaves which rows."""
    ordered = sorted(range(len(rows)), key=lambda n: rows[n].bounds[0])
    rules = [f"#case-{n + 1}{{--n:{place}}}" for place, n in enumerate(ordered)] if len(rows) > 1 else []
    rules += [f"#sort-{name}:checked~main .case{{order:{order}}}" for name, _, order in _SORTS if order]
    rules += [f"#short-{n}:checked~main .case:not(.short{n}){{display:none}}" for n in range(1, criteria + 1)]
    rules += [f"#show-{name}:checked~main .case:not(.{name}){{display:none}}" for name in _STATUSES]
    names = [f"show-{name}" for name in ("all", *_STATUSES)]
    names += [f"sort-{name}" for name, _, _ in _SORTS] + [f"short-{n}" for n in range(criteria + 1)]
    for state, look in (
        ("checked", "border-color:var(--accent);color:var(--accent);box-shadow:inset 0 0 0 1px var(--accent)"),
        ("focus-visible", "outline:2px solid var(--accent);outline-offset:2px"),
    ):
        labels = ",".join(f'#{name}:{state}~:is(.filter,.fold) [for="{name}"]' for name in names)
        rules.append(f".rubric :is({labels}){{{look}}}")
    return "\n".join(rules)
