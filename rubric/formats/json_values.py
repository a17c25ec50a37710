"""Values of JSON: found in outputs, compared, and written as JavaScript writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

_MOST_STARTS = 2_000
"""How many places of an output are tried as the start of a JSON value: an output is untrusted text."""


def json_values(text: str) -> Iterator[Any]:
    """Yield the JSON lists and mappings in *text*, outermost only."""
    decoder, position, starts = json.JSONDecoder(parse_constant=int), 0, 0  # NaN is not JSON, and no int: an error
    while starts < _MOST_STARTS:
        position = min((at for mark in "[{" if (at := text.find(mark, position)) >= 0), default=-1)
        if position < 0:
            return
        starts += 1
        try:
            found, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
        else:
            yield found
            position = end


_LONGEST_OBJECT, _MOST_CHARACTERS, _MOST_LENIENT = 100_000, 1_000_000, 100_000  # YAML takes some 10 µs a character


def json_objects(text: str, lenient: Callable[[str], Any]) -> Iterator[dict[str, Any]]:
    """Yield the outermost objects in *text*, as promptfoo finds them; *lenient* reads what is not JSON."""
    closing: dict[int, tuple[int, int]] = {}
    opened: list[int] = []
    for mark in re.finditer("[{}]", text):
        if mark[0] == "{":
            opened.append(mark.start())
        elif opened:
            closing[opened.pop()] = mark.end(), 0
    # A brace that ends the text opens nothing, as there.
    closing |= {start: (len(text), len(opened) - n) for n, start in enumerate(opened) if start < len(text) - 1}
    position = work = reread = 0
    for start in sorted(closing)[:_MOST_STARTS]:
        end, missing = closing[start]
        if start < position or end - start > _LONGEST_OBJECT or (work := work + end - start) > _MOST_CHARACTERS:
            continue
        part = text[start:end] + "}" * missing
        try:
            found = json.loads(part, parse_constant=int)
        except (ValueError, RecursionError):
            found = lenient(part) if (reread := reread + len(part)) <= _MOST_LENIENT else None
        if isinstance(found, dict):
            position = end
            yield found


def is_same(one: Any, other: Any) -> bool:
    """True if two values of JSON are equal; unlike in Python, true is not 1."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def each_text(value: Any, change: Callable[[str], Any]) -> Any:
    """Return plain data with each text in it as *change* makes it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [each_text(inner, change) for inner in value]
    return {key: each_text(inner, change) for key, inner in value.items()} if isinstance(value, Mapping) else value


_LEAST_WRITTEN_OUT, _LEAST_WITH_EXPONENT = 1e-6, 1e21


def javascript_number(value: float) -> str:
    """Return *value* as JavaScript writes it: `2` for 2.0, `0.00001`, `1e-7` and `1e+21`."""
    whole = javascript_data(value)
    if isinstance(whole, float) and _LEAST_WRITTEN_OUT <= abs(whole) < 1:
        return format(Decimal(repr(whole)), "f")
    return re.sub(r"e([+-])0", r"e\1", repr(whole))


def javascript_data(value: Any) -> Any:
    """Return *value* with its numbers as JavaScript has them: 2.0 is 2."""
    match value:
        case float() if value.is_integer() and abs(value) < _LEAST_WITH_EXPONENT:
            return int(value)
        case dict():
            return {key: javascript_data(part) for key, part in value.items()}
        case list() | tuple():
            return [javascript_data(part) for part in value]
    return value
