"""
Items of a checklist and of an analytic rubric, as AgentV has them and promptfoo takes them: texts or mappings.

docs/how-to/from_agentv.md says what each key means. `score_ranges` are bands from 0 to 10 without gap or overlap, in
three spellings: a map of lower bounds to texts, a list of `{score_range: [low, high], outcome: text}`, and either
beside a `value` that is a text. They guide the judge and do not quantise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count, pairwise
from typing import Literal

from attrs import frozen

from rubric import Criterion, Levels, ScoreRange, YesNo
from rubric.embed import Cursor, fields, shorten
from rubric.values import Unsupported

Generation = Literal["agentv-1", "agentv-1.5", "agentv-2"]

HIGHEST = 10
_DIGITS = len(str(HIGHEST))
_RANGE_TEXTS = ("outcome", "expected_outcome", "description", "criteria")
_SHAPE = (
    "expected a map from the first score of each band to its text, such as {0: wrong, 5: half right, 10: right}, "
    "or a list of {score_range: [low, high], outcome: text}"
)


@frozen
class ItemScope:
    """The *generation* of AgentV that items are in, and whether a criterion that does not say so is *required*."""

    generation: Generation = "agentv-2"
    required: bool | None = None

    @property
    def is_current(self) -> bool:
        """True for generation 2, in which older names are errors."""
        return self.generation == "agentv-2"

    def fill(self, text: str, at: Cursor) -> str:  # noqa: ARG002 - a dialect with variables has a use for it
        """Return *text*, found at the cursor, with variables in their places; here there are none."""
        return text

    def text(self, at: Cursor) -> str:
        """Return the text at the cursor, filled; empty, with an error noted, if it is something else."""
        found = at.text()
        return "" if found is None else self.fill(found, at)


# -- bands ----------------------------------------------------------------------------------------------------


def read_ranges(at: Cursor, scope: ItemScope) -> Levels | None:
    """Return the levels from 0 to 10 at the cursor; None, with errors noted, where it has none."""
    if isinstance(at.value, Mapping):
        return _from_map(at, scope)
    if not isinstance(at.value, list):
        at.error(f"{_SHAPE}; got {shorten(repr(at.value))}")
        return None
    read = [_band(item, scope) for item in at]
    bands = sorted((band for band in read if band is not None), key=lambda band: (band.low, band.high))
    return Levels(bands) if len(bands) == len(read) and _is_whole(at, bands) else None


def _from_map(at: Cursor, scope: ItemScope) -> Levels | None:
    bounds: dict[int, str] = {}
    for key, words in at.items():
        low = key
        if isinstance(key, str) and key.strip().isascii() and key.strip().isdigit() and len(key.strip()) <= _DIGITS:
            low = int(key)
        if isinstance(low, bool) or not isinstance(low, int) or not 0 <= low <= HIGHEST:
            words.error(f"{_SHAPE}; {shorten(repr(key))} is not a whole number from 0 to 10", key=True)
            return None
        if not isinstance(words.value, str) or not words.value.strip():
            words.error(f"{_SHAPE}; the band from {low} has no text, got {shorten(repr(words.value))}")
            return None
        if low in bounds:
            words.error(f"two bands start at {low}; each score belongs to one", key=True)
            return None
        bounds[low] = scope.fill(words.value, words)
    if not bounds:
        at.error(f"{_SHAPE}; got an empty map")
        return None
    starts = sorted(bounds)
    if starts[0] != 0:
        at.error(f"the bands must start at 0 (got {starts[0]}); say what the scores below it mean")
        return None
    ends = [*(start - 1 for start in starts[1:]), HIGHEST]
    return Levels([ScoreRange(low, high, bounds[low]) for low, high in zip(starts, ends, strict=True)])


def _band(at: Cursor, scope: ItemScope) -> ScoreRange | None:
    if not isinstance(at.value, Mapping):
        at.error(f"expected {{score_range: [low, high], outcome: text}}, got {shorten(repr(at.value))}")
        return None
    span = _span(at["score_range"])
    words = next((at.value[key] for key in _RANGE_TEXTS if key in at), None)
    if not isinstance(words, str) or not words.strip():
        at.error("a band needs an `outcome`: the text that says what its scores mean")
        return None
    return None if span is None else ScoreRange(*span, scope.fill(words, at))


def _span(at: Cursor) -> tuple[int, int] | None:
    value = at.value
    # Numbers that float() takes: a whole number may have more digits than that.
    fits = isinstance(value, list) and all(type(part) in (int, float) and abs(part) < 1e300 for part in value)  # noqa: PLR2004
    if not fits or len(value) != 2:  # noqa: PLR2004
        at.error(f"a score_range is a list of two numbers, [low, high]; got {shorten(repr(value))}")
    elif not all(float(part).is_integer() for part in value):
        at.error(f"the ends of a score_range are whole numbers (integers), got {value}")
    elif not all(0 <= part <= HIGHEST for part in value):
        at.error(f"the ends of a score_range lie from 0 to 10 (bounds included), got {value}")
    elif value[0] > value[1]:
        at.error(f"a score_range starts at its lower end, got {value}; swap them")
    else:
        return int(value[0]), int(value[1])
    return None


def _is_whole(at: Cursor, bands: list[ScoreRange]) -> bool:
    for before, after in pairwise(bands):
        if after.low <= before.high:
            at.error(f"the score_ranges {before} and {after} overlap; each score belongs to one band")
            return False
    covered = {score for band in bands for score in range(band.low, band.high + 1)}
    missing = [str(score) for score in range(HIGHEST + 1) if score not in covered]
    if missing:
        at.error(f"the score_ranges leave out the scores {', '.join(missing)}; cover 0 to 10 without a gap")
    return not missing


# -- items ----------------------------------------------------------------------------------------------------

_TEXTS: dict[str, tuple[str, ...]] = {
    "agentv-1": ("expected_outcome", "description", "outcome"),
    "agentv-1.5": ("outcome", "criteria", "expected_outcome", "description"),
    "agentv-2": ("outcome", "criteria"),
}

_ALSO = ("outcome", "criteria", "expected_outcome", "description", "text", "criterion", "requirement")
"""Keys that mean the text where an item has none of its generation's; AgentV passes over the item."""

_FIELDS = ("id", "weight", "required", "min_score", "required_min_score", "operator", "score_ranges")
_HINTS = frozenset({"id", "weight", "required", "min_score", "operator"})
_OPERATORS = ("correctness", "contradiction")


def free_name(stem: str, taken: Collection[str]) -> str:
    """Return *stem*, or the first of `stem-2`, `stem-3` and so on that is not *taken*."""
    return next(name for n in count(1) if (name := stem if n == 1 else f"{stem}-{n}") not in taken)


def is_item(value: object) -> bool:
    """True if *value* is an item that is scored, or a misspelt one, and not free data for the judge."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("outcome"), str | bool | int | float) or "score_ranges" in value:
        return True
    if value.keys().isdisjoint(_HINTS):
        return False
    has_text = any(isinstance(value.get(key), str) for key in _ALSO)
    return has_text or any(fields.misspelt(key, ("outcome", "score_ranges")) for key in value)


def are_items(value: object) -> bool:
    """True if a list holds items: at least one text, or mapping that is scored."""
    return isinstance(value, list) and any(isinstance(part, str) or is_item(part) for part in value)


def read_items(items: Sequence[Cursor], scope: ItemScope) -> list[Criterion]:
    """Return *items* as criteria; errors are noted."""
    criteria: dict[str, Criterion] = {}
    for number, item in enumerate(items, 1):
        criterion = _read(item, f"rubric-{number}", scope)
        if criterion is None:
            continue
        if criteria.setdefault(criterion.id, criterion) is not criterion:
            item.error(f"the id {criterion.id!r} belongs to another item already; give one of them another")
    return [*criteria.values()]


def _read(at: Cursor, own_id: str, scope: ItemScope) -> Criterion | None:
    match at.value:
        case str() as text:
            return at.built(Criterion, scope.fill(text.strip(), at), id=own_id, required=True)
        case Mapping():
            return _read_mapping(at, own_id, scope)
        case bool() | int() | float():
            at.text()
        case _:
            at.refuse("the text of a criterion, or a mapping with `outcome`")
    return None


def _read_mapping(at: Cursor, own_id: str, scope: ItemScope) -> Criterion | None:
    before = at.notes.failures
    texts = _TEXTS[scope.generation]
    texts = texts if any(at.has(key) for key in texts) else (*texts, *_ALSO)
    at.reads((*texts, *_FIELDS), unread="an item has no such field; it is not used")
    id_ = at["id"].value
    whole = isinstance(id_, int) and not isinstance(id_, bool)
    id_ = str(id_) if whole else own_id if id_ is None else scope.text(at["id"]).strip() or own_id
    ranges = read_ranges(at["score_ranges"], scope) if "score_ranges" in at else None
    words = _words(at, scope, texts) or (id_ if "score_ranges" in at else "")
    gate, required = _gate(at, scope)
    weight = at["weight"].number(0) if "weight" in at else 1
    if at.notes.failures > before:
        return None
    if not words:
        at.warn(f"an item needs `{texts[0]}`: the text of what is checked; without it the case is ungraded")
        return at.built(Criterion, "an item without a text", id=id_, answer=Unsupported("an item without a text"))
    operator = at["operator"].value
    if operator is not None and operator not in _OPERATORS:
        hint = fields.suggest(str(operator), _OPERATORS)
        note = at["operator"].error if fields.misspelt(str(operator), _OPERATORS) else at["operator"].warn
        note(f"unknown operator {shorten(repr(operator))}; it is not used{hint}")
    return at.built(
        Criterion,
        words,
        id=id_,
        weight=weight,
        required=required,
        min_score=gate and float(gate),  # a whole 1 could be a level
        polarity=operator if operator in _OPERATORS else "satisfy",
        answer=ranges or YesNo(),
    )


def _words(at: Cursor, scope: ItemScope, keys: Sequence[str]) -> str:
    given = [at[key] for key in dict.fromkeys(keys) if at.has(key)]
    if len({str(said.value) for said in given}) > 1:
        given[1].error(f"`{given[0].step}` says something else; keep one of them", key=True)
    if not given:
        return ""
    said = given[0]
    return scope.text(said.holding(said.value.strip()) if isinstance(said.value, str) else said)


def _gate(at: Cursor, scope: ItemScope) -> tuple[float | None, bool]:
    """Return the value that the item's score must meet, None for the rubric's threshold; and whether it must."""
    ranged = "score_ranges" in at
    by_default = scope.is_current if scope.required is None else scope.required
    required: bool | None = at["required"].flag() if at.has("required") else not ranged and by_default
    gate = at["min_score"].number(0, 1, above=True) if at.has("min_score") else None
    if at.has("required_min_score"):
        old = _old_gate(at["required_min_score"], scope)
        if gate is not None and old is not None and gate != old:
            at["required_min_score"].error(f"`min_score` says {gate:g}, this says {old:g}; keep one of them")
        gate = old if gate is None else gate
    if gate is None and required and ranged and scope.required and not scope.is_current:
        gate = 1.0  # 10 of 10: as the code before generation 2 has it, not its pages
    if gate is None and required and ranged and scope.generation == "agentv-1":
        gate = 1 / HIGHEST  # its pages fail the case at a score of 0, and scores are whole numbers
    return gate, bool(required)


def _old_gate(at: Cursor, scope: ItemScope) -> float | None:
    """Return `required_min_score`, a whole number from 0 to 10, as a score in 0..1; None for 0, which gates nothing."""
    if scope.is_current:
        at.error("`required_min_score` was removed; write `min_score`, from 0 to 1: a tenth of it", key=True)
        return None
    if isinstance(at.value, bool) or not isinstance(at.value, int) or not 0 <= at.value <= HIGHEST:
        at.error(f"expected a whole number (an integer) from 0 to 10, got {shorten(repr(at.value))}")
        return None
    if scope.generation == "agentv-1.5":
        at.warn(f"`required_min_score` is deprecated; write `min_score: {at.value / HIGHEST:g}`", key=True)
    return at.value / HIGHEST or None
