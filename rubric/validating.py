"""Validators for the fields of nouns: each raises a `DefinitionError` with the field, what was found, the cure."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from rubric.errors import DefinitionError
from rubric.mappings import FrozenMap
from rubric.secrets import redact
from rubric.showing import shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from attrs import Attribute

    Validator = Callable[[Any, Attribute[Any], Any], None]

T = TypeVar("T")


def refuse(field: str, found: object, allowed: str) -> DefinitionError:
    """Return (not raise) the error that says what stands in *field* and what may."""
    return DefinitionError(field, f"expected {allowed}, got {shorten(redact(repr(found)))}")


def suggest(found: str, allowed: Iterable[str]) -> str:
    """Return `"; did you mean 'x'?"` where a name in *allowed* is near *found*, else what is allowed."""
    names = [*allowed]
    near = get_close_matches(found, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; allowed: {', '.join(names)}"


_INFLECTED = re.compile(r"(?<=.{3})(?:ions?|s|ed|ing)$")


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _stem(letters: str) -> str:
    return _INFLECTED.sub("", letters)


def misspelt(found: object, allowed: Iterable[str]) -> str:
    """
    Return the name in *allowed* that *found*, which is none of them, was meant to be; empty if it is just another.

    Near are names that differ by a letter, by the order of their letters, by case and separators (`rubric_prompt`,
    `rubricPrompt`) or by an ending (`assertions`, `assert`).
    """
    if not isinstance(found, str):
        return ""
    letters = _letters(found)
    names = {_letters(name): name for name in allowed}
    same = [name for name in names if _stem(name) == _stem(letters)]
    shuffled = [name for name in names if sorted(name) == sorted(letters) and len(name) > 3]  # noqa: PLR2004 - not id, di
    near = same or shuffled or get_close_matches(letters, names, n=1, cutoff=0.8)
    return names[near[0]] if near else ""


def text(_: Any, attribute: Attribute[Any], value: object) -> None:
    """Refuse all but text with something in it."""
    check_text(attribute.name, value)


def check_text(field: str, value: object) -> None:
    """Refuse all but text with something in it, for *field*."""
    if isinstance(value, bool):
        said = "yes" if value else "no"
        raise DefinitionError(field, f'expected text, got the boolean {value}; quote it: "{said}"')
    if not isinstance(value, str):
        raise refuse(field, value, "text")
    if not value.strip():
        raise DefinitionError(field, "expected text, got an empty one; write what is to be judged")


def string(_: Any, attribute: Attribute[Any], value: object) -> None:
    """Refuse all but text; it may be empty."""
    if not isinstance(value, str):
        raise refuse(attribute.name, value, "text")


def flag(_: Any, attribute: Attribute[Any], value: object) -> None:
    """Refuse all but True and False."""
    if not isinstance(value, bool):
        raise refuse(attribute.name, value, "True or False")


def number(low: float = 0.0, high: float = math.inf, *, above: bool = False) -> Validator:
    """Return a validator for finite numbers from *low* (or just *above* it) to *high*."""

    def validate(_: Any, attribute: Attribute[Any], value: object) -> None:
        check_number(attribute.name, value, low, high, above=above)

    return validate


def check_number(field: str, value: object, low: float, high: float = math.inf, *, above: bool = False) -> None:
    """Refuse all but finite numbers from *low* (or just *above* it) to *high*, for *field*."""
    start = f"above {low:g}" if above else f"from {low:g}"
    allowed = f"a finite number {start}" + ("" if math.isinf(high) else f" to {high:g}")
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise refuse(field, value, allowed)
    if not low <= value <= high or (above and value == low):
        raise refuse(field, value, allowed)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def count(low: int = 1) -> Validator:
    """Return a validator for whole numbers of at least *low*."""

    def validate(_: Any, attribute: Attribute[Any], value: object) -> None:
        check_count(attribute.name, value, low)

    return validate


def check_count(field: str, value: object, low: int = 1) -> None:
    """Refuse all but whole numbers of at least *low*, for *field*."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise refuse(field, value, f"a whole number of at least {low}")


def one_of(*names: str) -> Validator:
    """Return a validator for one of *names*."""

    def validate(_: Any, attribute: Attribute[Any], value: object) -> None:
        if not isinstance(value, str) or value not in names:
            hint = suggest(value, names) if isinstance(value, str) else f"; allowed: {', '.join(names)}"
            raise DefinitionError(attribute.name, f"unknown value {shorten(repr(value))}{hint}")

    return validate


def optional(validator: Validator) -> Validator:
    """Return *validator*, for fields that may also be None."""

    def validate(instance: Any, attribute: Attribute[Any], value: object) -> None:
        if value is not None:
            validator(instance, attribute, value)

    return validate


def identifier(_: Any, attribute: Attribute[Any], value: object) -> None:
    """Refuse all but text that can be told apart by eye: nothing invisible, no white space at the ends."""
    check_text(attribute.name, value)
    assert isinstance(value, str)  # noqa: S101 - check_text has seen to it
    if value != value.strip() or any(unicodedata.category(c)[0] == "C" for c in value):
        raise DefinitionError(
            attribute.name, f"{value!r} has white space at its ends or invisible characters; take them out"
        )


def as_map(field: str, value: object) -> FrozenMap:
    """Return *value*, a mapping, as one that does not change; all else is refused."""
    if not isinstance(value, Mapping):
        raise refuse(field, value, "a mapping")
    return FrozenMap(value)


def as_tuple(field: str, value: object, kind: type[T], what: str) -> tuple[T, ...]:
    """Return *value*, an iterable of *kind*, as a tuple; a lone text, a mapping or a set is refused."""
    if isinstance(value, str | bytes | Mapping | AbstractSet) or not isinstance(value, Iterable):
        raise refuse(field, value, f"a list of {what}")
    items = tuple(value)
    for index, item in enumerate(items):
        if not isinstance(item, kind):
            raise refuse(f"{field}[{index}]", item, what)
    return items
