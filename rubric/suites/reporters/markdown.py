"""
A report in Markdown, for job summaries and for comments: a grid of the answers where cases have cells, else a table of
the cases; more on each that did not pass; and a table of the criteria of those that did.

Untrusted text is escaped so that it stays text: no markup, no link, and no mention by an `@`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from itertools import accumulate

from attrs import evolve

from rubric.embed import cell, counted, cut, line, shown
from rubric.results import Row
from rubric.suites.report import Report
from rubric.view.grid import grid_of
from rubric.view.html import text_template

LONGEST = 4_000
"""Characters of a candidate that are shown."""

MOST = 200
"""Criteria of passed cases that are shown."""

_LARGEST, _NOTE = 65_536, 500
"""Characters of a comment on GitHub, which takes no more, and of a line that says what is left out."""

_MARKS: dict[str, str] = {"passed": "✅", "failed": "❌", "ungraded": "⚠️", "deferred": "⏸️"}


def render(report: Report, lead: str = "", *, largest: int = _LARGEST, passed: bool | None = None) -> str:
    """
    Return *report* as Markdown after the text *lead*, cut at an entry to *largest* characters at most.

    Its mark says whether the report passes, or what a gate of its own says: *passed*.
    """
    met = [evolve(row, path=()) for row in report if row.status == "passed"]
    words = {"plain": plain, "cell": cell, "line": line, "score": _score, "fenced": _fence, "marks": _MARKS}
    passes = [(row, name, entry) for row in met for name, entry in row.all_entries()]
    given = {"report": report, "grid": grid_of(report), "passes": passes, "most": MOST, "entry_of": _entry_of}
    given["passed"] = report.passed if passed is None else passed
    text = text_template("report.md").render(words, **given).rstrip()
    lines = (f"{_entry_of('line', 'of the comparison')}{each}" for each in lead.splitlines(keepends=True))
    head, *rest = _ENTRY.split(f"{''.join(lines)}{text}\n")
    sizes = [*accumulate(map(len, [head, *rest[2::3]]))]
    if sizes[-1] > largest:
        kept = 3 * max(0, bisect_right(sizes, largest - _NOTE) - 1)
        left = Counter(zip(rest[kept::3], rest[kept + 1 :: 3], strict=True))
        left += Counter({("criterion", "of passed cases"): max(0, len(passes) - MOST)})
        told = ", ".join(f"{counted(count, noun)} {of}" for (noun, of), count in left.items())
        note = f"Left out here, since GitHub takes no longer text: {told}. The page has all: --out report.html.\n"
        return f"{''.join([head, *rest[2:kept:3]]).rstrip()}\n\n{note}"
    return "".join([head, *rest[2::3]])


_ENTRY = re.compile("\x1e(\\w+) ([^\x1e]+)\x1e")  # no text of a report holds this character: it is shown as an escape


def _entry_of(noun: str, of: str) -> str:
    """Return the mark at the start of an entry, by which it is counted: so many of a *noun*, *of* what."""
    return f"\x1e{noun} {of}\x1e"


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
    figures = ", ".join(filter(None, (row.figure(" to "), row.would)))
    if row.score is not None and row.status == "failed" and row.threshold is not None:
        figures = row.shortfall if figures == f"{row.score:.2f}" and row.shortfall else figures
        figures = f"{figures}, {row.needs or f'needs {row.threshold:.2f}'}"
    return plain(figures)


def _fence(text: str) -> str:
    """Return *text* word for word, in a fence that it cannot close."""
    inside = shown(cut(text, LONGEST))
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", inside)), default=0))
    return f"{fence}text\n{inside}\n{fence}"
