"""
Items of a checklist and of an analytic rubric: from a text or a mapping to a `Criterion`.

| item | criterion |
|---|---|
| a text | yes/no, required |
| `outcome` (generation 1: `expected_outcome`, `description`; 2 also: `criteria`) | the text |
| `id` | the id, `rubric-N` if left out, where N is its position from 1; unique |
| `weight` | the weight, at least 0 |
| `required` | a gate; left out: in generation 2 yes, before that no, with bands no |
| `min_score` in (0, 1], `required_min_score` in 0..10 | the gate's value |
| `operator` | the polarity: `correctness` or `contradiction` |
| `score_ranges` | a whole number from 0 to 10 |

`score_ranges`: bands on the scale from 0 to 10, in the three spellings that AgentV documents.

A map of lower bounds to texts, a list of `{score_range: [low, high], outcome: text}`, and either of them beside a
`value` that is a text. The bands cover 0 to 10 without gap or overlap; they guide the judge and do not quantise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from rubric.errors import DefinitionError
from rubric.formats.agentv.scope import Scope
from rubric.formats.document import KeyPath
from rubric.internals.fields import misspelt, suggest
from rubric.internals.text import shorten
from rubric.values.answers import Levels, ScoreRange, YesNo
from rubric.values.criteria import Criterion, Polarity

HIGHEST = 10
_RANGE_TEXTS = ("outcome", "expected_outcome", "description", "criteria")
_SHAPE = (
    "expected a map from the first score of each band to its text, such as {0: wrong, 5: half right, 10: right}, "
    "or a list of {score_range: [low, high], outcome: text}"
)


def read_ranges(value: Any, scope: Scope, path: KeyPath) -> Levels | None:
    """Return *value* as levels from 0 to 10; None, with errors noted, where it is none."""
    if isinstance(value, Mapping):
        return _from_map(value, scope, path)
    if isinstance(value, list):
        return _from_list(value, scope, path)
    scope.error(path, f"{_SHAPE}; got {shorten(repr(value))}")
    return None


def _from_map(value: Mapping[Any, Any], scope: Scope, path: KeyPath) -> Levels | None:
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


def _from_list(value: list[Any], scope: Scope, path: KeyPath) -> Levels | None:
    read = [_band(item, scope, (*path, index)) for index, item in enumerate(value)]
    bands = sorted((band for band in read if band is not None), key=lambda band: (band.low, band.high))
    if len(bands) < len(read) or not _is_whole(bands, scope, path):
        return None
    return Levels(bands)


def _band(item: Any, scope: Scope, path: KeyPath) -> ScoreRange | None:
    if not isinstance(item, Mapping):
        scope.error(path, f"expected {{score_range: [low, high], outcome: text}}, got {shorten(repr(item))}")
        return None
    span = _span(item.get("score_range"), scope, (*path, "score_range"))
    words = next((item[key] for key in _RANGE_TEXTS if key in item), None)
    if not isinstance(words, str) or not words.strip():
        scope.error(path, "a band needs an `outcome`: the text that says what its scores mean")
        return None
    return None if span is None else ScoreRange(*span, scope.fill(words, path))


def _span(value: Any, scope: Scope, path: KeyPath) -> tuple[int, int] | None:
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


def _is_whole(bands: list[ScoreRange], scope: Scope, path: KeyPath) -> bool:
    for before, after in pairwise(bands):
        if after.low <= before.high:
            scope.error(path, f"the score_ranges {before} and {after} overlap; each score belongs to one band")
            return False
    covered = {score for band in bands for score in range(band.low, band.high + 1)}
    missing = [str(score) for score in range(HIGHEST + 1) if score not in covered]
    if missing:
        scope.error(path, f"the score_ranges leave out the scores {', '.join(missing)}; cover 0 to 10 without a gap")
    return not missing


_TEXTS: dict[str, tuple[str, ...]] = {
    "agentv-1": ("expected_outcome", "description", "outcome"),
    "agentv-1.5": ("outcome", "criteria", "expected_outcome", "description"),
    "agentv-2": ("outcome", "criteria"),
}

_FIELDS = ("id", "weight", "required", "min_score", "required_min_score", "operator", "score_ranges")
_HINTS = frozenset({"id", "weight", "required", "min_score", "operator"})
_OPERATORS = ("correctness", "contradiction")


def is_item(value: object) -> bool:
    """Say whether a mapping is an item that is scored, or a misspelt one, and not free data for the judge."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("outcome"), str | bool | int | float) or "score_ranges" in value:
        return True
    if value.keys().isdisjoint(_HINTS):
        return False
    return isinstance(value.get("criteria"), str) or any(misspelt(key, ("outcome", "score_ranges")) for key in value)


def are_items(value: object) -> bool:
    """Say whether a list holds items: at least one text, or mapping that is scored."""
    return isinstance(value, list) and any(isinstance(part, str) or is_item(part) for part in value)


def read_items(value: Sequence[Any], scope: Scope, paths: Sequence[KeyPath]) -> list[Criterion]:
    """Return the items of *value*, each of which stands at its path, as criteria; errors are noted."""
    criteria: list[Criterion] = []
    for index, (item, path) in enumerate(zip(value, paths, strict=True)):
        criterion = _read(item, f"rubric-{index + 1}", scope, path)
        if criterion is None:
            continue
        if any(criterion.id == other.id for other in criteria):
            scope.error(path, f"the id {criterion.id!r} belongs to another item already; give one of them another")
            continue
        criteria.append(criterion)
    return criteria


def _read(item: Any, own_id: str, scope: Scope, path: KeyPath) -> Criterion | None:
    if isinstance(item, str):
        return _built(scope, path, scope.fill(item.strip(), path), id=own_id, required=True)
    if isinstance(item, Mapping):
        return _structured(item, own_id, scope, path)
    if isinstance(item, bool | int | float):
        scope.text(item, path)
    else:
        scope.error(path, f"expected the text of a criterion, or a mapping with `outcome`; got {shorten(repr(item))}")
    return None


def _structured(item: Mapping[Any, Any], own_id: str, scope: Scope, path: KeyPath) -> Criterion | None:
    before = len(scope.notes.errors)
    _check_keys(item, scope, path)
    id_ = _id(item.get("id"), own_id, scope, path)
    ranges = read_ranges(item["score_ranges"], scope, (*path, "score_ranges")) if "score_ranges" in item else None
    words = _words(item, scope, path) or (id_ if "score_ranges" in item else "")
    gate, required = _gate(item, scope, path)
    weight = scope.number(item.get("weight", 1), (*path, "weight"))
    if len(scope.notes.errors) > before:
        return None
    if not words:
        needed = _TEXTS[scope.generation][0]
        scope.warn(path, f"an item needs `{needed}`: the text of what is checked; it is left out, as AgentV does")
        return None
    return _built(
        scope,
        path,
        words,
        id=id_,
        weight=weight,
        required=required,
        min_score=gate,
        polarity=_polarity(item.get("operator"), scope, path),
        answer=ranges or YesNo(),
    )


def _built(scope: Scope, path: KeyPath, words: str, **options: Any) -> Criterion | None:
    try:
        return Criterion(words, **options)
    except DefinitionError as problem:
        scope.error(path, problem)
        return None


def _check_keys(item: Mapping[Any, Any], scope: Scope, path: KeyPath) -> None:
    allowed = [*_TEXTS[scope.generation], *_FIELDS]
    for key in item:
        if key not in allowed:
            scope.unknown((*path, key), "an item has no such field", allowed)


def _id(value: Any, own_id: str, scope: Scope, path: KeyPath) -> str:
    if value is None:
        return own_id
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return scope.text(value, (*path, "id")).strip() or own_id


def _words(item: Mapping[Any, Any], scope: Scope, path: KeyPath) -> str:
    given = [key for key in _TEXTS[scope.generation] if item.get(key) is not None]
    if len({str(item[key]) for key in given}) > 1:
        scope.error((*path, given[1]), f"`{given[0]}` says something else; keep one of them", key=True)
    if not given:
        return ""
    said = item[given[0]]
    return scope.text(said.strip() if isinstance(said, str) else said, (*path, given[0]))


def _polarity(value: Any, scope: Scope, path: KeyPath) -> Polarity:
    if value is None:
        return "satisfy"
    if value in _OPERATORS:
        return cast("Polarity", value)
    message = f"unknown operator {shorten(repr(value))}; it is not used{suggest(str(value), _OPERATORS)}"
    scope.warn((*path, "operator"), message)
    return "satisfy"


def _gate(item: Mapping[Any, Any], scope: Scope, path: KeyPath) -> tuple[float | None, bool]:
    """Return the value that the item's score must meet, None for the rubric's threshold; and whether it must."""
    ranged = "score_ranges" in item
    required: bool | None = not ranged and scope.required
    if item.get("required") is not None:
        required = scope.flag(item["required"], (*path, "required"))
    gate = None
    if item.get("min_score") is not None:
        gate = scope.number(item["min_score"], (*path, "min_score"), above=True, high=1)
    if item.get("required_min_score") is not None:
        old = _old_gate(item["required_min_score"], scope, (*path, "required_min_score"))
        if gate is not None and old is not None and gate != old:
            scope.error(
                (*path, "required_min_score"), f"`min_score` says {gate:g}, this says {old:g}; keep one of them"
            )
        gate = old if gate is None else gate
    if gate is None and required and ranged and scope.is_strict:
        gate = 1.0
    return gate, bool(required)


def _old_gate(value: Any, scope: Scope, path: KeyPath) -> float | None:
    """Return `required_min_score`, a whole number from 0 to 10, as a score in 0..1; None for 0, which gates nothing."""
    if scope.generation == "agentv-2":
        scope.error(path, "`required_min_score` was removed; write `min_score`, from 0 to 1: a tenth of it", key=True)
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= HIGHEST:
        scope.error(path, f"expected a whole number (an integer) from 0 to 10, got {shorten(repr(value))}")
        return None
    if scope.generation == "agentv-1.5":
        scope.warn(path, f"`required_min_score` is deprecated; write `min_score: {value / HIGHEST:g}`", key=True)
    return value / HIGHEST or None
