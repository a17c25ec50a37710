"""The value that was meant, where one of another type or with a unit was given; only the one that fits is proposed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from rubric.errors import DefinitionError
from rubric.internals.fields import as_share
from rubric.internals.guesses import table

_QUANTITY = r"(?a)(\D{0,3}?)(-?\d{1,9}(?:[_,]\d{3})*(?:\.\d{1,9})?)\s*([A-Za-z/% ]{0,20})"


def meant_value(field: str, value: object, fits: Callable[[object], bool]) -> list[object]:
    """Return the one conversion of *value* for *field* that *fits*; an empty list if none does, or several."""
    fitting = [each for each in conversions(field, value) if fits(each)][::-1]
    found = {repr([*each]) if isinstance(each, list | tuple) else repr(each): each for each in fitting}
    return [*found.values()] if len(found) == 1 else []


def conversions(field: str, value: object) -> Iterator[object]:
    """Yield what *value* could mean for *field* in another type, or without its unit; so of what is within it."""
    word = str(value).strip().lower()
    yield from (worth for each, worth in table()["quantities"].get(field, {}).items() if each == word)
    if isinstance(value, re.Pattern):
        yield f"(?i){value.pattern}" if value.flags & re.IGNORECASE else value.pattern
    elif isinstance(value, str):
        yield from _of_text(field, value.strip())
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from (str(value), *([-value] if field == "points" and value < 0 else ()))
        yield from [bool(value)] * (value in (0, 1))
        if value % 1 == 0:
            yield int(value)
    elif isinstance(value, Mapping) and field != "criteria":  # whose keys are ids
        yield from ([*value.values()], {key: _plain(each) for key, each in value.items()})
    elif isinstance(value, list | tuple | set | frozenset) and value:
        yield from _of_list(field, [*value])


def _plain(value: object) -> object:
    """Return the number that a text is, such as "2", "80%" or "4/5"; anything else as it is."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if not isinstance(value, str):
        return value
    share = as_share(value)
    number = float(value) if re.fullmatch(r"(?a)-?\d{1,9}(\.\d{1,9})?", value.strip()) else share
    return value if number is None else int(number) if number.is_integer() else number


def _of_text(field: str, text: str) -> Iterator[object]:
    yield from [share] if (share := as_share(text)) is not None else []
    if ends := re.fullmatch(r"(\d{1,3})\s*(?:-|to|\.\.)\s*(\d{1,3})", text):
        yield from ((int(ends[1]), int(ends[2])), *_of_list(field, [int(ends[1]), int(ends[2])]))
    if not (found := re.fullmatch(_QUANTITY, text)):
        yield text.lower()
        parts = [part.strip() for part in text.split(",")]
        yield from (parts, [*map(_plain, parts)])
    elif factor := (table()["units"]["every"] | table()["units"].get(field, {})).get(
        (found[1] + found[3]).strip().lower()
    ):
        number = float(re.sub("[_,]", "", found[2])) * factor
        yield int(number) if number.is_integer() else number


def _of_list(field: str, items: list[object]) -> Iterator[object]:
    yield from ([*items], *items[: len(items) == 1], [*map(_plain, items)])
    numbers = [each for each in items if type(each) is int]
    if len(numbers) == len(items) > 2 and numbers == [*range(numbers[0], numbers[-1] + 1)]:  # noqa: PLR2004 - a scale
        yield (numbers[0], numbers[-1])
    if kind := table()["each"].get(field):
        make: Any = getattr(import_module("rubric"), kind)
        with suppress(TypeError, DefinitionError):
            yield [make(*each) if isinstance(each, list | tuple) else each for each in items]
    if kind := table()["kinds"].get(field):
        with suppress(TypeError, DefinitionError):
            yield getattr(import_module("rubric"), kind)(*items)
    pairs: list[Any] = [[*each.values()] if isinstance(each, Mapping) else each for each in items]
    if not all(isinstance(each, list | tuple) and len(each) == 2 for each in pairs):  # noqa: PLR2004 - a pair
        return
    for both in (pairs, [pair[::-1] for pair in pairs]):
        if field == "criteria":
            yield [{"text": text, "weight": weight} for text, weight in both]
        elif all(isinstance(key, str | int) for key, _ in both):
            yield dict(both)
