"""
Evidence is checked in code: a quote counts only if its words stand in the candidate.

Compared are texts in which runs of white space, typographic quotes and dashes, and invisible characters are folded;
reported is the candidate's own span, with its offsets.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from rubric.findings import Evidence

_ESCAPE = re.compile(r"\\u\{[0-9a-f]{1,6}\}")
_FOLDED = str.maketrans(
    {"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "–": "-", "—": "-", "‐": "-", "‑": "-"}
)


def quote(words: str, text: str, where: str = "output") -> Evidence | None:
    """Return the span of *text* that *words* quote, or None if there is none."""
    wanted = "".join(_fold(_ESCAPE.sub("", words))[0]).strip()
    if not any(c.isalnum() for c in wanted):
        return None
    folded, places = _folded(text)
    at = folded.find(wanted)
    if at < 0:
        return None
    start, end = places[at], places[at + len(wanted) - 1] + 1
    while end < len(text) and unicodedata.combining(text[end]):
        end += 1
    return Evidence(text[start:end], start, end, where)


@lru_cache(maxsize=8)
def _folded(text: str) -> tuple[str, list[int]]:
    chars, places = _fold(text)
    return "".join(chars), places


def _fold(text: str) -> tuple[list[str], list[int]]:
    """Return the characters of *text* as they are compared, and the place in *text* of each."""
    chars: list[str] = []
    places: list[int] = []
    for at, char in enumerate(text):
        if char.isspace():
            if chars and chars[-1] != " ":
                chars.append(" ")
                places.append(at)
            continue
        if unicodedata.category(char) in ("Cf", "Cc", "Cs"):
            continue
        if unicodedata.combining(char) and chars and chars[-1] != " ":
            chars[-1] = unicodedata.normalize("NFC", chars[-1] + char)
            continue
        for folded in unicodedata.normalize("NFC", char).translate(_FOLDED):
            chars.append(folded)
            places.append(at)
    return chars, places
