"""
A report as one HTML page that holds all it needs: it loads nothing, runs nothing, and shows untrusted text as text.

Jinja escapes every text in the template, after its invisible characters have been turned into escapes. A
Content-Security-Policy is the second line of defence: it allows no script, and one style sheet, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from attrs import frozen
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from rubric.internals.text import cut, shown
from rubric.results.rows import figure, score_of, short
from rubric.scoring.aggregation import TOLERANCE
from rubric.suites.report import tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rubric.results.rows import Entry, Row
    from rubric.suites.report import Report
    from rubric.values.findings import Evidence


LONGEST_OUTPUT = 20_000
"""Characters of a candidate; of a longer one, only its ends and the quotes are shown."""

AROUND = 300
"""Characters that are shown around a quote in the middle of a long candidate."""


@frozen
class Piece:
    """A stretch of the candidate, with the *numbers* of the quotes that begin in it; or how much is *left_out* here."""

    text: str = ""
    quoted: bool = False
    numbers: tuple[int, ...] = ()
    left_out: int = 0


def evidence_of(entries: Iterable[Entry]) -> Iterator[Evidence]:
    """Yield every quote, those of nested rubrics and of votes too."""
    for entry in entries:
        yield from entry.evidence
        yield from evidence_of((*entry.parts, *entry.votes))


def numbered(output: str, entries: Iterable[Entry]) -> dict[Evidence, int]:
    """Return a number from 1 for each quote in *output*, in the order of the text."""
    found = {e for e in evidence_of(entries) if _span(e, len(output)) is not None}
    return {e: n for n, e in enumerate(sorted(found, key=lambda e: (e.start, e.end, e.text)), 1)}


def _span(evidence: Evidence, length: int) -> tuple[int, int] | None:
    """Return the place of the quote in a text of *length* characters, or None if it has none."""
    start, end = evidence.start, evidence.end
    if evidence.where != "output" or start is None or end is None or not 0 <= start < end <= length:
        return None
    return start, end


def pieces(output: str, marks: Mapping[Evidence, int]) -> list[Piece]:
    """Return *output* in pieces; a quote that overlaps others is in several of them."""
    length, half = len(output), LONGEST_OUTPUT // 2
    spans = {n: span for e, n in marks.items() if (span := _span(e, length))}
    kept = [(0, length)]
    if length > LONGEST_OUTPUT:
        windows = [(max(a - AROUND, 0), min(a + 2 * AROUND, length)) for a, _ in spans.values()]
        kept = [(0, half), (length - half, length), *windows]
    found: list[Piece] = []
    for start, end in pairwise(sorted({0, length}.union(*spans.values(), *kept))):
        if any(a <= start and end <= b for a, b in kept):
            quoted = any(a <= start and end <= b for a, b in spans.values())
            found.append(Piece(output[start:end], quoted, tuple(n for n, (a, _) in spans.items() if a == start)))
        else:
            before = found.pop().left_out if found and found[-1].left_out else 0
            found.append(Piece(left_out=before + end - start))
    return found


LONGEST = 2_000
"""Characters of a reason or another text that are shown."""

NAME = 300
"""Characters of an id or another name."""

OPEN = 8
"""How many of the cases that did not pass are unfolded from the start."""


def render(report: Report) -> str:
    """Return *report* as a page."""
    style = _text("page.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    cases = list(_cases(report))
    widths = [count / max(len(report), 1) for count in report.counts.values()]
    return _template().render(
        report=report,
        headline=tally(report.counts),
        shares=list(zip(report.counts, accumulate(widths, initial=0.0), widths, strict=False)),
        cases=cases,
        grid=_grid(cases),
        style=Markup(style),  # noqa: S704 - our own
        style_hash=Markup(digest),  # noqa: S704 - as above
    )


@cache
def _text(name: str) -> str:
    return files("rubric.suites.reporters").joinpath(name).read_text("utf-8")


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True, finalize=_visible)
    environment.filters |= {
        "cut": lambda text, limit=LONGEST: cut(text, limit),
        "figure": figure,
        "look": _look,
        "mark": lambda share: f"{min(max(100 * share, 1), 99):.2f}",
        "name": lambda text: cut(text, NAME),
        "percent": lambda share: f"{min(max(100 * share, 0), 100):.2f}",
        "word": lambda verdict: verdict if verdict in ("pass", "borderline", "fail", "ungraded") else "plain",
    }
    return environment.from_string(_text("page.html"))


def _visible(value: Any) -> Any:
    """Return *value* with invisible characters as escapes."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@frozen
class Shape:
    """A case as the page shows it."""

    row: Row
    anchor: str
    score: str
    open: bool
    marks: Mapping[Evidence, int]
    pieces: tuple[Piece, ...]


def _cases(report: Report) -> Iterator[Shape]:
    left = OPEN
    for number, row in enumerate(report, 1):
        left -= row.status != "passed"
        is_open = row.status != "passed" and left >= 0
        marks = numbered(row.output, row.entries)
        score = score_of(row, "–") or "–"
        yield Shape(row, f"case-{number}", score, is_open, marks, tuple(pieces(row.output, marks)))


@frozen
class Look:
    """How an entry is marked: the *kind* of its icon, the *sign* in it, the *word* for it, the *fill* of its bar."""

    kind: str
    sign: str
    word: str
    fill: str = "passed"


def _look(entry: Entry, row: Row) -> Look:
    if entry.contribution is None:
        kinds = {"unjudged": Look("open", "!", "unjudged"), "abstained": Look("none", "?", "cannot tell")}
        return kinds.get(entry.status, Look("none", "–", entry.status))
    if not entry.contribution or entry.gated:
        return Look("unmet", "✕", "not met", "failed")
    if entry.contribution < 1 - TOLERANCE:
        return Look("part", "~", "met in part", "ungraded" if short(row, entry) else "passed")
    return Look("met", "✓", "met")


@frozen
class Grid:
    """
    The cases of a matrix by its last coordinate (the columns) and by all others (the lines).

    A line is the common part of its cases' names, and the cases of each column.
    """

    corner: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str, list[list[Shape]]], ...]


_BRACKETS = re.compile(r"\s*[\[(][^\[\]()]*[\])]$")
"""The cell of a matrix at the end of a case's id."""


def _grid(cases: Iterable[Shape]) -> Grid | None:
    """Return the grid of the cases that are cells of a matrix; None if there are none."""
    placed = [case for case in cases if case.row.cell]
    columns: dict[str, None] = {}
    spots: dict[str, dict[str, list[Shape]]] = {}
    for case in placed:
        *others, column = map(str, case.row.cell.values())
        name = " · ".join(part for part in (_without_cell(case.row), *others) if part)
        columns[column] = None
        spots.setdefault(name, {}).setdefault(column, []).append(case)
    if not placed:
        return None
    lines = tuple((name, [found.get(column, []) for column in columns]) for name, found in spots.items())
    return Grid(" × ".join(dict.fromkeys(key for case in placed for key in case.row.cell)), tuple(columns), lines)


def _without_cell(row: Row) -> str:
    """Return the id of *row* without its cell, which is in brackets at the end or named by its values."""
    name = _BRACKETS.sub("", row.id)
    for value in row.cell.values():
        name = re.sub(rf"(?<!\w){re.escape(str(value))}(?!\w)", " ", name)
    return " ".join(name.split()).strip(" -_/:,·")
