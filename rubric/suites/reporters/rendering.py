"""Strangers' text made fit for a report: nothing in it steers a terminal, breaks a parser, or fills a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubric.internals.text import visible
from rubric.suites.report import Entry, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rubric.values.findings import Evidence, Step


VACUOUS = "vacuous: nothing applied"
"""What every reporter says of a pass that nobody judged, so that it does not look like a judged 1.00."""


def shown(text: str) -> str:
    r"""Return *text* with what is invisible, or no character at all, as `\u{...}`; lines end in a line feed alone."""
    return visible(text.replace("\r\n", "\n"))[0].replace("\r", "\\u{d}")


def cut(text: str, limit: int) -> str:
    """Return *text*; of one longer than *limit* characters the beginning and the end, with a mark between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters are left out here …]\n{text[-half:]}"


def line(text: str, limit: int = 300) -> str:
    """Return *text* on one line, in at most *limit* characters, with nothing hidden in it."""
    words = " ".join(text[: 4 * limit].split())
    whole = len(text) <= 4 * limit and len(words) <= limit
    return shown(words if whole else f"{words[: limit - 1]}…")


def quotes(evidence: Iterable[Evidence], limit: int = 120) -> str:
    """Return what was quoted on one line, with a word on each quote that the candidate does not hold."""
    return " ".join(f"“{line(e.text, limit)}”{'' if e.verified else ' (not found)'}" for e in evidence)


def walk(path: Iterable[Step], limit: int = 120) -> str:
    """Return a walk down a tree on one line."""
    return " → ".join(f"{line(step.question, limit)} {'yes' if step.yes else 'no'}" for step in path)


def proof(entry: Entry, path: Iterable[Step] = (), limit: int = 600) -> str:
    """Return on one line what *entry* was quoted for, and its walk; not that of the whole case, which is *path*."""
    steps = walk(entry.path) if entry.path != path else ""
    return " · ".join(line(text, limit) for text in (quotes(entry.evidence), steps) if text)


def figure(entry: Entry) -> str:
    """Return what an entry came to in a word or a number, for a column."""
    came_to = entry.status if entry.contribution is None else f"{entry.contribution:.2f}"
    nothing = entry.parts and all(part.status == "not applicable" for part in entry.parts)
    return f"{came_to}, vacuous" if nothing else came_to


def flat(entries: Iterable[Entry], within: str = "") -> Iterator[tuple[str, Entry]]:
    """Yield each entry, then those of its nested rubric, with the ids that it stands under: `style/greets`."""
    for entry in entries:
        name = f"{within}/{line(entry.id, 80)}" if within else line(entry.id, 80)
        yield name, entry
        yield from flat(entry.parts, name)


TOLERANCE = 1e-9


def short(row: Row, entry: Entry) -> bool:
    """Say whether *entry* failed the grade, or contributes less than the whole grade has to reach."""
    if entry.gated:
        return True
    enough = 1.0 if row.threshold is None else row.threshold
    return entry.contribution is not None and bool(entry.weight) and entry.contribution < enough - TOLERANCE
