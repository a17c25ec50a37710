"""
AgentV's `field-accuracy`: the fields of an output that is JSON, compared with those of the expected one.

A field that the expected output lacks holds. docs/how-to/from_agentv.md has the rest, by AgentV's own code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Any

from attrs import frozen

from rubric import Candidate
from rubric.embed import shorten
from rubric.formats.json_values import is_same, json_values

MATCHES = ("exact", "numeric_tolerance", "date")
AGGREGATIONS = ("weighted_average", "all_or_nothing")
_FORMATS = ("DD-MMM-YYYY", "MM/DD/YYYY", "DD/MM/YYYY", "MM-DD-YYYY", "DD-MM-YYYY")
_NUMBER = re.compile(r"\s*([+-]?(?:\d{1,300}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)")
"""A number at the start of a text; what follows, such as a unit, does not matter."""

_ABSENT: Any = object()


@frozen
class Field:
    """A field to compare: where it is, how, and how much it counts."""

    path: str
    match: str = "exact"
    required: bool = True
    weight: float = 1.0
    tolerance: float = 0.0
    relative: bool = False
    formats: tuple[str, ...] = _FORMATS

    def holds(self, given: Any, expected: Any) -> bool:
        """True if *given* is as good as *expected*."""
        if self.match == "exact":
            return is_same(given, expected)
        if self.match == "date":
            day = _day(given, self.formats)
            return day is not None and day == _day(expected, self.formats)
        number, wanted = _number(given), _number(expected)
        if number is None or wanted is None:
            return False
        most = self.tolerance * abs(wanted) if self.relative and wanted else self.tolerance
        return abs(number - wanted) <= most


@frozen
class FieldAccuracy:
    """A function for `Holds`: the share of *fields* that are as in the reference; *strict*: all or nothing."""

    fields: tuple[Field, ...]
    strict: bool = False

    @property
    def __name__(self) -> str:
        return shorten(f"fields: {', '.join(field.path for field in self.fields)}", 80)

    def __call__(self, candidate: Candidate) -> tuple[float, str]:
        """Return the score of *candidate*, and which fields fail."""
        *_, expected = None, *json_values(candidate.reference)
        if expected is None:
            raise ValueError("the expected output is not JSON; give `expected_output` with the fields")
        output = next(json_values(candidate.output), None)
        if output is None:
            return 0.0, "the output is not JSON"
        wrong, right, whole = [], 0.0, 0.0
        for field in self.fields:
            wanted, given = _at(expected, field.path), _at(output, field.path)
            if wanted is not _ABSENT and given is _ABSENT and not field.required:
                continue
            held = wanted is _ABSENT or (given is not _ABSENT and field.holds(given, wanted))
            wrong += [] if held else [f"{field.path} ({'missing' if given is _ABSENT else 'differs'})"]
            whole += field.weight
            right += field.weight if held else 0.0
        score = float(not wrong) if self.strict else right / whole if whole else 0.0
        return min(score, 1.0), shorten(", ".join(wrong)) if wrong else "all fields are as expected"


def _at(value: Any, path: str) -> Any:
    """Return what is at *path*, such as `items[0].price`; `_ABSENT` where there is nothing."""
    for step in (step for step in re.split(r"[.\[\]]", path) if step):
        if isinstance(value, list):
            value = value[int(step)] if step.isdecimal() and len(step) < 10 and int(step) < len(value) else _ABSENT  # noqa: PLR2004
        else:
            value = value.get(step, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        found = _NUMBER.match(value)
        return None if found is None else float(found[1])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _day(value: Any, formats: Sequence[str]) -> date | None:
    """Return the day that *value* is: in ISO format, or as JavaScript reads it; by *formats* the day stands first."""
    with suppress(ValueError):
        return datetime.fromisoformat(str(value).strip()).date()
    orders = [format_.index("DD") < format_.index("MM") for format_ in formats if _NUMERIC.search(format_)]
    with suppress(ValueError, OverflowError):
        return _loose_day(str(value), day_first=bool(orders) and orders[0])
    return None


_NUMERIC = re.compile(r"(?<!M)MM(?!M).*DD|DD.*(?<!M)MM(?!M)")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_BESIDE_DAYS = re.compile(
    r"\([^()]*\)|(?:\b\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s*[ap]m\b)?|\b(?:gmt|utc|z)\b)(?:\s*[+-]\d{1,4})?",
    re.IGNORECASE,
)
"""What stands beside the day: remarks in brackets, a time, a zone."""

_PART = re.compile(r"(\d{1,6})|([^\W\d_]+)|[\s,./-]+")


def _loose_day(text: str, *, day_first: bool) -> date | None:
    """Return the day of *text* as V8's `Date` reads it: `Jan 2, 2024`, `2 January 2024`, `Tue 1/2/2024`; else None."""
    numbers: list[int] = []
    month, end, text = 0, 0, _BESIDE_DAYS.sub(" ", text).strip()
    while end < len(text):
        part = _PART.match(text, end)
        if part is None:
            return None
        end = part.end()
        if part[1]:
            numbers.append(int(part[1]))
        elif part[2] and part[2][:3].lower() in _MONTHS:
            month = _MONTHS.index(part[2][:3].lower()) + 1
        elif part[2] and numbers:  # a word may stand before the first number, such as the day of the week
            return None
    return _date_of(numbers, month, day_first=day_first) if numbers else None


def _date_of(numbers: Sequence[int], month: int, *, day_first: bool) -> date:
    """Return the day of *numbers*: the year stands first if it cannot be a day; what is left out is 1, as in V8."""
    first, second, third = [*numbers, 1, 1][:3]
    is_day = 1 <= first <= 31  # noqa: PLR2004
    if month:
        year, day = (second, first) if is_day else (first, second)
    elif not is_day:
        year, month, day = first, second, third
    else:
        swapped = len(numbers) == 3 and second <= 12 and (day_first or first > 12)  # noqa: PLR2004
        (day, month), year = (first, second) if swapped else (second, first), third
    return date(year + (2000 if year < 50 else 1900 if year < 100 else 0), month, day)  # noqa: PLR2004
