"""The candidate in pieces: which of them were quoted as evidence, and what a page leaves out of a long one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rubric.findings import Evidence
    from rubric.suites.rows import Entry

__all__ = ["Piece", "numbered", "pieces"]

LONGEST = 20_000
"""Characters of a candidate from which on only its ends, and what was quoted, are shown."""

AROUND = 300
"""Characters that are shown before and after a quote in what is left out otherwise."""


@frozen
class Piece:
    """
    A stretch of the candidate.

    Args:
        text: The candidate's own words.
        quoted: Whether they were quoted.
        numbers: The quotes that begin here.
        left_out: How many characters a page leaves out here, instead.
    """

    text: str = ""
    quoted: bool = False
    numbers: tuple[int, ...] = ()
    left_out: int = 0


def evidence_of(entries: Iterable[Entry]) -> Iterator[Evidence]:
    """Yield every quote, those of nested rubrics and of votes too."""
    for entry in entries:
        yield from entry.evidence
        yield from evidence_of(entry.parts)
        yield from evidence_of(entry.votes)


def numbered(output: str, entries: Iterable[Entry]) -> dict[Evidence, int]:
    """Return a number from 1 for each quote that lies in *output*, in the order of the text."""
    found = {e for e in evidence_of(entries) if _span(e, len(output)) is not None}
    return {e: n for n, e in enumerate(sorted(found, key=lambda e: (e.start, e.end, e.text)), 1)}


def _span(evidence: Evidence, length: int) -> tuple[int, int] | None:
    """Return where the quote lies, or None if it does not lie in a text of *length* characters."""
    start, end = evidence.start, evidence.end
    if evidence.where != "output" or start is None or end is None or not 0 <= start < end <= length:
        return None
    return start, end


def pieces(output: str, marks: Mapping[Evidence, int]) -> list[Piece]:
    """Return *output* in pieces; a quote that others overlap is in more than one of them."""
    spans = {n: span for e, n in marks.items() if (span := _span(e, len(output)))}
    kept = _kept(len(output), spans.values())
    edges = {0, len(output)}.union(*spans.values(), *kept)
    found = [_piece(output, a, b, spans, kept) for a, b in pairwise(sorted(edges))]
    return list(_joined(found))


def _kept(length: int, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return what is shown of a text: all of it, or its ends and the surroundings of the beginning of each quote."""
    if length <= LONGEST:
        return [(0, length)]
    half = LONGEST // 2
    windows = [(max(a - AROUND, 0), min(a + 2 * AROUND, length)) for a, _ in spans]
    return [(0, half), (length - half, length), *windows]


def _piece(
    output: str, start: int, end: int, spans: Mapping[int, tuple[int, int]], kept: Iterable[tuple[int, int]]
) -> Piece:
    if not any(a <= start and end <= b for a, b in kept):
        return Piece(left_out=end - start)
    quoted = any(a <= start and end <= b for a, b in spans.values())
    return Piece(output[start:end], quoted, tuple(n for n, (a, _) in spans.items() if a == start))


def _joined(found: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces with neighbours that are left out as one."""
    left_out = 0
    for piece in found:
        if not piece.left_out and left_out:
            yield Piece(left_out=left_out)
        left_out = left_out + piece.left_out if piece.left_out else 0
        if not piece.left_out:
            yield piece
    if left_out:
        yield Piece(left_out=left_out)
