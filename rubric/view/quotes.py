"""Where the quotes of a result are in its candidate: the text in pieces, each quoted or not, long ones with gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from attrs import frozen

from rubric.results import Entry, Evidence

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


def number_quotes(output: str, entries: Iterable[Entry]) -> dict[Evidence, int]:
    """Return a number from 1 for each quote in *output*, in the order of the text."""
    quotes = {e for e in evidence_of(entries) if _span(e, len(output)) is not None}
    return {e: n for n, e in enumerate(sorted(quotes, key=lambda e: (e.start, e.end, e.text)), 1)}


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
