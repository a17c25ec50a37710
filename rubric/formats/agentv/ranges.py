"""
`score_ranges`: bands on the scale from 0 to 10, in the three spellings that AgentV documents.

A map of lower bounds to texts, a list of `{score_range: [low, high], outcome: text}`, and either of them beside a
`value` that is a text. The bands cover 0 to 10 without gap or overlap; they guide the judge and do not quantise.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from rubric.answers import Levels, ScoreRange
from rubric.formats.agentv.scopes import Scope
from rubric.formats.documents import Path
from rubric.showing import shorten

__all__ = ["read_ranges"]

HIGHEST = 10
_TEXTS = ("outcome", "expected_outcome", "description", "criteria")
_SHAPE = (
    "expected a map from the first score of each band to its text, such as {0: wrong, 5: half right, 10: right}, "
    "or a list of {score_range: [low, high], outcome: text}"
)


def read_ranges(value: Any, scope: Scope, path: Path) -> Levels | None:
    """Return *value* as levels from 0 to 10; None, with errors noted, where it is none."""
    if isinstance(value, Mapping):
        return _from_map(value, scope, path)
    if isinstance(value, list):
        return _from_list(value, scope, path)
    scope.error(path, f"{_SHAPE}; got {shorten(repr(value))}")
    return None


def _from_map(value: Mapping[Any, Any], scope: Scope, path: Path) -> Levels | None:
    bounds: dict[int, str] = {}
    for key, words in value.items():
        low = _bound(key)
        if low is None:
            scope.error((*path, key), f"{_SHAPE}; {shorten(repr(key))} is no whole number from 0 to 10", key=True)
            return None
        if not isinstance(words, str) or not words.strip():
            scope.error((*path, key), f"{_SHAPE}; the band from {low} has no text, got {shorten(repr(words))}")
            return None
        if low in bounds:
            scope.error((*path, key), f"two bands start at {low}; each score belongs to one", key=True)
            return None
        bounds[low] = scope.fill(words, (*path, key))
    if not bounds:
        scope.error(path, f"{_SHAPE}; got an empty map")
        return None
    starts = sorted(bounds)
    if starts[0] != 0:
        scope.error(path, f"the bands must start at 0 (got {starts[0]}); say what the scores below it mean")
        return None
    ends = [*(start - 1 for start in starts[1:]), HIGHEST]
    return Levels([ScoreRange(low, high, bounds[low]) for low, high in zip(starts, ends, strict=True)])


def _bound(key: object) -> int | None:
    if isinstance(key, str) and key.strip().isascii() and key.strip().isdigit():
        key = int(key) if len(key.strip()) <= len(str(HIGHEST)) else None
    if isinstance(key, bool) or not isinstance(key, int) or not 0 <= key <= HIGHEST:
        return None
    return key


def _from_list(value: list[Any], scope: Scope, path: Path) -> Levels | None:
    read = [_band(item, scope, (*path, index)) for index, item in enumerate(value)]
    bands = sorted((band for band in read if band is not None), key=lambda band: (band.low, band.high))
    if len(bands) < len(read) or not _is_whole(bands, scope, path):
        return None
    return Levels(bands)


def _band(item: Any, scope: Scope, path: Path) -> ScoreRange | None:
    if not isinstance(item, Mapping):
        scope.error(path, f"expected {{score_range: [low, high], outcome: text}}, got {shorten(repr(item))}")
        return None
    span = _span(item.get("score_range"), scope, (*path, "score_range"))
    words = next((item[key] for key in _TEXTS if key in item), None)
    if not isinstance(words, str) or not words.strip():
        scope.error(path, "a band needs an `outcome`: the text that says what its scores mean")
        return None
    return None if span is None else ScoreRange(*span, scope.fill(words, path))


def _span(value: Any, scope: Scope, path: Path) -> tuple[int, int] | None:
    if not isinstance(value, list) or len(value) != 2 or not all(_is_number(part) for part in value):  # noqa: PLR2004
        scope.error(path, f"a score_range is a list of two numbers, [low, high]; got {shorten(repr(value))}")
    elif not all(float(part).is_integer() for part in value):
        scope.error(path, f"the ends of a score_range are whole numbers (integers), got {value}")
    elif not all(0 <= part <= HIGHEST for part in value):
        scope.error(path, f"the ends of a score_range lie from 0 to 10 (bounds included), got {value}")
    elif value[0] > value[1]:
        scope.error(path, f"a score_range starts at its lower end, got {value}; swap them")
    else:
        return int(value[0]), int(value[1])
    return None


def _is_number(part: object) -> bool:
    return isinstance(part, int | float) and not isinstance(part, bool) and part == part and abs(part) != float("inf")  # noqa: PLR0124


def _is_whole(bands: list[ScoreRange], scope: Scope, path: Path) -> bool:
    for before, after in pairwise(bands):
        if after.low <= before.high:
            scope.error(path, f"the score_ranges {before} and {after} overlap; each score belongs to one band")
            return False
    covered = {score for band in bands for score in range(band.low, band.high + 1)}
    missing = [str(score) for score in range(HIGHEST + 1) if score not in covered]
    if missing:
        scope.error(path, f"the score_ranges leave out the scores {', '.join(missing)}; cover 0 to 10 without a gap")
    return not missing
