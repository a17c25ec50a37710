"""
Texts that are safe to show and to write.

What looks like a key, and secret values of the environment, are masked; half surrogates, which no file can hold, become
U+FFFD. Other control characters stay: each reporter escapes them as its format wants.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import frozen

from rubric.models.redacting import MASK, redact

__all__ = ["clean", "moved", "whole"]

_HALVES = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Return *text* without secrets and half surrogates."""
    return redact(whole(text))


def whole(text: str) -> str:
    """Return *text* with half surrogates replaced, each by one character."""
    return _HALVES.sub("\ufffd", text)


@frozen
class _Kept:
    """A stretch that stands in a text before and after it was masked, from *start* to *end* before."""

    start: int
    end: int
    shift: int


def moved(before: str, after: str) -> Callable[[int], tuple[int, int]]:
    """
    Return where an offset of *before* lies in *after*, which is *before* with parts of it masked.

    An offset within a mask lies, as a start, where the mask starts, and as an end, where the mask ends: the pair.
    """
    if before == after:
        return lambda at: (at, at)
    stretches = _stretches(before, after)

    def move(at: int) -> tuple[int, int]:
        for stretch, following in zip(stretches, [*stretches[1:], None], strict=True):
            if stretch.start <= at <= stretch.end:
                return at + stretch.shift, at + stretch.shift
            if following is not None and stretch.end < at < following.start:
                return stretch.end + stretch.shift, following.start + following.shift
        return len(after), len(after)

    return move


def _stretches(before: str, after: str) -> list[_Kept]:
    """Return what was kept: the first stretch starts both texts, the last one ends them, the others follow in order."""
    pieces = after.split(MASK)
    found: list[_Kept] = []
    at = place = 0
    for index, piece in enumerate(pieces):
        last = index == len(pieces) - 1
        start = len(before) - len(piece) if last and index else max(at, before.find(piece, at))
        found.append(_Kept(start, start + len(piece), place - start))
        at, place = start + len(piece), place + len(piece) + len(MASK)
    return found
