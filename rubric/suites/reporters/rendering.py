"""Untrusted text made fit for a report: nothing in it steers a terminal, breaks a parser, or fills a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubric.internals.text import line
from rubric.scoring.aggregation import TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rubric.suites.report import Entry, Row, Vote
    from rubric.values.findings import Evidence, Step


VACUOUS = "vacuous: nothing applied"
"""The remark on a pass to which no criterion applied, so that it does not look like a judged 1.00."""


def quotes(evidence: Iterable[Evidence], limit: int = 120) -> str:
    """Return the quotes on one line; quotes that are not in the candidate are marked."""
    return " ".join(f"“{line(e.text, limit)}”{'' if e.verified else ' (not found)'}" for e in evidence)


def walk(path: Iterable[Step], limit: int = 120) -> str:
    """Return a walk down a tree on one line."""
    return " → ".join(f"{line(step.question, limit)} {'yes' if step.yes else 'no'}" for step in path)


def proof(entry: Entry, path: Iterable[Step] = (), limit: int = 600) -> str:
    """Return the quotes of *entry* and its walk on one line, without a walk that is the case's own *path*."""
    steps = walk(entry.path) if entry.path != path else ""
    return " · ".join(line(text, limit) for text in (quotes(entry.evidence), steps) if text)


def result_of(entry: Entry) -> str:
    """Return the contribution of *entry*, or the word for why there is none."""
    return entry.status if entry.contribution is None else f"{entry.contribution:.2f}"


def figure(entry: Entry) -> str:
    """Return the result of *entry* in a word or a number, for a column."""
    nothing = entry.parts and all(part.status == "not applicable" for part in entry.parts)
    return f"{result_of(entry)}, vacuous" if nothing else result_of(entry)


def verdict(entry: Entry) -> str:
    """Return the result of *entry*, and whether it failed the grade."""
    return f"{figure(entry)}, gate failed" if entry.gated else figure(entry)


def score_of(row: Row, between: str) -> str:
    """Return the score on its scale; for an ungraded case, its bounds with *between* in the middle; or nothing."""
    if row.score is not None:
        return line(row.shown, 40) or f"{row.score:.2f}"
    return f"{row.bounds[0]:.2f}{between}{row.bounds[1]:.2f}" if row.status == "ungraded" else ""


def score_of_vote(vote: Vote) -> str:
    """Return the score of *vote*, or that it has none."""
    return "no score" if vote.score is None else f"{vote.score:.2f}"


def flat(entries: Iterable[Entry], within: str = "") -> Iterator[tuple[str, Entry]]:
    """Yield each entry, then those of its nested rubric, with the ids from the top: `style/greets`."""
    for entry in entries:
        name = f"{within}/{line(entry.id, 80)}" if within else line(entry.id, 80)
        yield name, entry
        yield from flat(entry.parts, name)


def short(row: Row, entry: Entry) -> bool:
    """True if *entry* failed the grade, or contributes less than the whole grade has to reach."""
    if entry.gated:
        return True
    enough = 1.0 if row.threshold is None else row.threshold
    return entry.contribution is not None and bool(entry.weight) and entry.contribution < enough - TOLERANCE
