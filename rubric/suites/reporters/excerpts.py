"""Strangers' text made fit for a report: nothing in it steers a terminal, breaks a parser, or fills a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubric.prompts.escaping import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rubric.findings import Evidence, Step
    from rubric.suites.rows import Entry

__all__ = ["cut", "figure", "line", "quotes", "shown", "walk"]


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


def figure(entry: Entry) -> str:
    """Return what an entry came to in a word or a number, for a column."""
    return entry.status if entry.contribution is None else f"{entry.contribution:.2f}"
