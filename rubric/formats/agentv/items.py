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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from rubric.answers import YesNo
from rubric.criteria import Criterion, Polarity
from rubric.errors import DefinitionError
from rubric.formats.agentv.ranges import HIGHEST, read_ranges
from rubric.formats.agentv.scopes import Scope
from rubric.formats.documents import Path
from rubric.showing import shorten
from rubric.validating import misspelt, suggest

__all__ = ["are_items", "is_item", "read_items"]

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


def read_items(value: Sequence[Any], scope: Scope, paths: Sequence[Path]) -> list[Criterion]:
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


def _read(item: Any, own_id: str, scope: Scope, path: Path) -> Criterion | None:
    if isinstance(item, str):
        return _built(scope, path, scope.fill(item.strip(), path), id=own_id, required=True)
    if isinstance(item, Mapping):
        return _structured(item, own_id, scope, path)
    if isinstance(item, bool | int | float):
        scope.text(item, path)
    else:
        scope.error(path, f"expected the text of a criterion, or a mapping with `outcome`; got {shorten(repr(item))}")
    return None


def _structured(item: Mapping[Any, Any], own_id: str, scope: Scope, path: Path) -> Criterion | None:
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


def _built(scope: Scope, path: Path, words: str, **options: Any) -> Criterion | None:
    try:
        return Criterion(words, **options)
    except DefinitionError as problem:
        scope.error(path, problem)
        return None


def _check_keys(item: Mapping[Any, Any], scope: Scope, path: Path) -> None:
    allowed = [*_TEXTS[scope.generation], *_FIELDS]
    for key in item:
        if key not in allowed:
            scope.unknown((*path, key), "an item has no such field", allowed)


def _id(value: Any, own_id: str, scope: Scope, path: Path) -> str:
    if value is None:
        return own_id
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return scope.text(value, (*path, "id")).strip() or own_id


def _words(item: Mapping[Any, Any], scope: Scope, path: Path) -> str:
    given = [key for key in _TEXTS[scope.generation] if item.get(key) is not None]
    if len({str(item[key]) for key in given}) > 1:
        scope.error((*path, given[1]), f"`{given[0]}` says something else; keep one of them", key=True)
    if not given:
        return ""
    said = item[given[0]]
    return scope.text(said.strip() if isinstance(said, str) else said, (*path, given[0]))


def _polarity(value: Any, scope: Scope, path: Path) -> Polarity:
    if value is None:
        return "satisfy"
    if value in _OPERATORS:
        return cast("Polarity", value)
    message = f"unknown operator {shorten(repr(value))}; it is not used{suggest(str(value), _OPERATORS)}"
    scope.warn((*path, "operator"), message)
    return "satisfy"


def _gate(item: Mapping[Any, Any], scope: Scope, path: Path) -> tuple[float | None, bool]:
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


def _old_gate(value: Any, scope: Scope, path: Path) -> float | None:
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
