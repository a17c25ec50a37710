"""From nouns to plain data, as one would write it by hand: what is as by default is left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from rubric.answers import Answer, Choices, Levels, Unit, YesNo
from rubric.checks import (
    Calls,
    Check,
    Contains,
    ContainsAll,
    ContainsAny,
    EndsWith,
    Equals,
    FitsSchema,
    IsJSON,
    Matches,
    Script,
    StartsWith,
    Unsupported,
)
from rubric.criteria import Anchor, Criterion, When
from rubric.errors import DumpError
from rubric.formats.converters import KEYS
from rubric.formats.structuring import words_of
from rubric.rubrics import Rubric
from rubric.scales import Boolean, Letter, Likert, UnitScale
from rubric.showing import shorten, shown_fields
from rubric.trees import DecisionTree, Leaf

__all__ = ["WRITERS", "as_data", "fields_of", "free", "write"]

Data = dict[str, Any]

_CRITERION = ("id", "text", "weight", "required", "polarity", "min_score", "evidence", "abstain", "when", "answer")
_RUBRIC = ("name", "threshold", "borderline", "strict", "aggregation", "evidence", "abstain", "scale", "negate")
_LAST = ("criteria", "text", "tree")


def as_data(rubric: Rubric) -> Data:
    """
    Return *rubric* as plain data in the spelling of files.

    Raises:
        DumpError: It holds what no file can say; the message names the criterion.
    """
    data: Data = write(rubric)
    return data


def write(value: Any) -> Any:
    if type(value) in WRITERS:
        return WRITERS[type(value)](value)
    if isinstance(value, tuple):
        return [write(item) for item in value]
    if isinstance(value, Mapping):
        return {_free_key(key): write(item) for key, item in value.items()}
    return free(value)


def fields_of(value: Any, first: tuple[str, ...] = (), last: tuple[str, ...] = (), without: str = "") -> Data:
    """Return the fields of *value* that differ from their defaults, but for *without*, under their keys in files."""
    found = {f.name: getattr(value, f.name) for f in shown_fields(value) if f.name != without}
    names = [name for name in first if name in found]
    names += [name for name in found if name not in (*first, *last)]
    names += [name for name in last if name in found]
    return {KEYS[type(value)][name]: write(found[name]) for name in names}


# -- free data ------------------------------------------------------------------------------------


def free(value: object) -> Any:
    """Return *value* as plain data of the exact types that files know."""
    match value:
        case None | bool():
            return value
        case str():
            return str(value)
        case int():
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case list() | tuple():
            return [free(item) for item in value]
        case Mapping():
            return {_free_key(key): free(item) for key, item in value.items()}
    msg = f"{shorten(repr(value), 80)} cannot be written; use texts, finite numbers, booleans, lists and mappings"
    raise DumpError(msg)


def _free_key(key: object) -> str:
    if isinstance(key, str):
        return str(key)
    msg = f"the key {shorten(repr(key), 80)} cannot be written; keys are texts"
    raise DumpError(msg)


# -- answers --------------------------------------------------------------------------------------


def _answer(answer: Answer) -> Data:
    """Return the key and the value that give *answer*."""
    for kind, key in _ANSWER_KEYS.items():
        if isinstance(answer, kind) and type(answer) in WRITERS:
            return {key: write(answer)}
    msg = f"its answer is of a class of your own, {type(answer).__name__}; files know only those of the library"
    raise DumpError(msg)


def _unit(unit: Unit) -> Any:
    return {"unit": {"flag": True}} if unit.flag else "unit"


def _levels(levels: Levels) -> Any:
    return {key: str(text) for key, text in levels.texts.items()} or f"{levels.low}..{levels.high}"


def _choices(choices: Choices) -> Any:
    if any(choice.text for choice in choices.choices):
        return [fields_of(choice) for choice in choices.choices]
    return {str(choice.label): free(choice.score) for choice in choices.choices}


def _leaf(leaf: Leaf) -> Any:
    return fields_of(leaf) if leaf.reason else free(leaf.score)


def _check(name: str) -> Callable[[Check], Data]:
    def write(check: Check) -> Data:
        fields = fields_of(check)
        return {name: fields if len(fields) > 1 else next(iter(fields.values()))}

    return write


# -- criteria and rubrics -------------------------------------------------------------------------


def _when(when: When) -> Data:
    if when.holds is None:
        return fields_of(when)
    msg = "its `when` is a Python function; use contains, regex or tool_called"
    raise DumpError(msg)


def _criterion(criterion: Criterion) -> Data | str:
    try:
        data = fields_of(criterion, first=_CRITERION, without="answer")
        answer = {} if criterion.answer == YesNo() else _answer(criterion.answer)
    except DumpError as problem:
        raise _named(criterion, problem) from None
    first: tuple[str, ...] = _CRITERION
    if criterion.text == words_of(criterion.answer):
        del data["text"]
        first = ("id",)
    head = {key: data.pop(key) for key in first if key in data}
    data = {**head, **answer, **data}
    return str(criterion.text) if [*data] == ["text"] else data


class _NamedError(DumpError):
    """A `DumpError` that names its criterion already."""


def _named(criterion: Criterion, problem: DumpError) -> DumpError:
    if isinstance(problem, _NamedError):
        return problem
    return _NamedError(f"criterion {criterion.id!r}: {problem}")


def _rubric(rubric: Rubric) -> Data:
    data = fields_of(rubric, first=_RUBRIC, last=_LAST)
    return data if any(key in data for key in _LAST) else {**data, "criteria": []}


def _likert(likert: Likert) -> Data:
    return {"likert": {"min": free(likert.low), "max": free(likert.high)}}


WRITERS: dict[type, Callable[[Any], Any]] = {
    Unit: _unit,
    Levels: _levels,
    Choices: _choices,
    DecisionTree: fields_of,
    Leaf: _leaf,
    Contains: _check("contains"),
    StartsWith: _check("starts_with"),
    EndsWith: _check("ends_with"),
    ContainsAny: _check("contains_any"),
    ContainsAll: _check("contains_all"),
    Equals: _check("equals"),
    Matches: _check("matches"),
    FitsSchema: lambda check: {"fits_schema": free(check.schema)},
    Calls: _check("calls"),
    Script: _check("script"),
    Unsupported: _check("unsupported"),
    IsJSON: lambda _: "is_json",
    Rubric: _rubric,
    Criterion: _criterion,
    Anchor: fields_of,
    When: _when,
    UnitScale: lambda _: "unit",
    Boolean: lambda _: "boolean",
    Letter: lambda _: "letter",
    Likert: _likert,
}

_ANSWER_KEYS: dict[type, str] = {
    Unit: "answer",
    Levels: "levels",
    Choices: "choices",
    DecisionTree: "tree",
    Check: "check",
    Rubric: "rubric",
}
