"""
Results as one HTML page that holds all it needs: it loads nothing, runs nothing, and shows untrusted text as text.

The page filters and sorts by its style sheet: radio buttons, and an order for each row. Rows out of sight are not laid
out, so ten thousand of them scroll.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rubric.rendering import charts, html
from rubric.rendering.html import Html, tag, text
from rubric.results.cards import case

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rubric.results.rows import Row

OPEN = 8
"""How many of the results that did not pass are unfolded from the start, where there are few."""

FEW = 200
"""Results on a page of few: above, all are folded."""

MOST_CRITERIA = 24
"""Criteria that rows can be filtered by: those that most rows fall short of."""

_STATUSES = ("failed", "ungraded", "deferred", "passed")
_SORTS = (
    ("order", "as given", ""),
    ("low", "lowest first", "var(--n)"),
    ("high", "highest first", "calc(0 - var(--n))"),
)


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
    version: str = "",
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
        version: Of the library.
    """
    counts = Counter(row.status for row in rows) if counts is None else counts
    short = _falling_short(rows)
    badge = html.badge(headline, "passed" if passed else "failed")
    head = tag(
        "header",
        tag("div", tag("h1", text(title, html.NAME)), badge, class_="head"),
        html.facts(*figures),
        charts.shares(counts),
        *(html.notice(warning) for warning in warnings),
    )
    body = tag("p", f"There are no {named.lower()} in this report.", class_="empty")
    if rows:
        body = tag("div", *_cases(rows, list(short)), class_="cases")
    main = tag("main", *above, tag("h2", named, class_="section"), body)
    controls = _controls(len(rows), counts, short)
    style, footer = _style(rows, len(short)), f"rubric {version}"
    return html.page(f"{title}: {headline}", head, *controls, main, more_style=style, footer=footer)


def _controls(total: int, counts: Mapping[str, int], short: Mapping[str, int]) -> Iterable[Html]:
    """Yield the buttons that filter and sort, then their labels."""
    statuses = [status for status in _STATUSES if counts.get(status)]
    groups = [("show", ["all", *_STATUSES])]
    groups += [("sort", [name for name, _, _ in _SORTS])] if total > 1 else []
    groups += [("short", [str(n) for n in range(len(short) + 1)])] if len(short) > 1 else []
    for group, names in groups:
        for name in names:
            button = f"{group}-{name}"
            yield tag("input", class_="pick", type="radio", name=group, id=button, checked=name == names[0])
    labels = [_label("show", "all", "all", total)]
    labels += [_label("show", status, status, counts[status]) for status in statuses]
    if total > 1:
        labels += [tag("span", "sort", class_="soft"), *(_label("sort", name, words) for name, words, _ in _SORTS)]
    yield tag("nav", *labels, class_="filter", aria_label="Show and sort")
    if len(short) > 1:
        unmet = [_label("short", str(n), name, count) for n, (name, count) in enumerate(short.items(), 1)]
        choices = tag("nav", _label("short", "0", "all"), *unmet, class_="filter small", aria_label="Show by criterion")
        yield html.fold("Show only what falls short of a criterion", choices, kind="choose")


def _label(group: str, name: str, words: str, count: int | None = None) -> Html:
    return tag("label", text(words, 80), None if count is None else tag("b", f"{count:,}"), for_=f"{group}-{name}")


def _falling_short(rows: Iterable[Row]) -> dict[str, int]:
    """Return how many rows fall short of each criterion, by its text, the most first."""
    found: Counter[str] = Counter()
    for row in rows:
        found.update({entry.text for entry in row.entries if entry.contribution is None or entry.contribution < 1})
    return dict(found.most_common(MOST_CRITERIA))


def _cases(rows: Sequence[Row], short: Sequence[str]) -> Iterable[Html]:
    left = OPEN if len(rows) <= FEW else 0
    places = {name: n for n, name in enumerate(short, 1)}
    for number, row in enumerate(rows, 1):
        left -= row.status != "passed"
        unmet = {e.text for e in row.entries if e.contribution is None or e.contribution < 1} & places.keys()
        kinds = " ".join(f"short{n}" for n in sorted(places[name] for name in unmet))
        yield case(row, f"case-{number}", is_open=row.status != "passed" and left >= 0, kinds=kinds)


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
