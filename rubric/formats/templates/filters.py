"""
The filters that templates may use: plain functions of plain data.

They do what users of Nunjucks expect, and what could grow without bounds says beforehand how large it will be.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from jinja2.runtime import Undefined

from rubric import DefinitionError
from rubric.embed import LackingError, shorten
from rubric.formats.json_values import javascript_data, javascript_number

LARGEST = 1_000_000
"""Characters of any text that a template makes."""


def check_size(size: int) -> None:
    """Refuse a text of more than `LARGEST` characters."""
    if size > LARGEST:
        raise DefinitionError("", f"the template makes more than {LARGEST} characters; make it shorter")


def joined(parts: Iterable[str]) -> str:
    """Return *parts* as one text; a `DefinitionError` says that it grows beyond `LARGEST`."""
    found, size = [], 0
    for part in parts:
        size += len(part)
        check_size(size)
        found.append(part)
    return "".join(found)


def as_text(value: Any) -> str:
    """Return *value* as text: nothing is empty, lists and mappings are JSON, 1.0 is 1."""
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return javascript_number(value)
        case dict() | list() | tuple():
            return dump(value)
        case int() | Undefined():
            return str(value)
        case _:  # an object of Jinja's, such as the loop
            return ""


def dump(value: Any, indent: Any = None) -> str:
    """Return *value* as JSON: on one line, or with *indent* spaces a level (at most 8)."""
    spaces = None if indent is None else min(max(_int(indent), 0), 8)
    separators = (",", ":") if spaces is None else (",", ": ")
    encoder = json.JSONEncoder(ensure_ascii=False, indent=spaces, separators=separators, default=as_text)
    return joined(encoder.iterencode(None if isinstance(value, Undefined) else javascript_data(value)))


def _default(value: Any, fallback: Any = "", boolean: Any = False) -> Any:  # noqa: FBT002
    missing = isinstance(value, Undefined) or (boolean and not value)
    return fallback if missing else value


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | list | tuple | Mapping) else 0


def _items(value: Any) -> list[Any]:
    """Return *value* as a list: the letters of a text, the keys of a mapping, nothing for nothing."""
    if value is None or isinstance(value, Undefined):
        return []
    if isinstance(value, str | list | tuple | Mapping):
        return list(value)
    raise DefinitionError("", f"the template expects a list, got {type(value).__name__}")


def _join(value: Any, separator: Any = "") -> str:
    parts, between = [as_text(part) for part in _items(value)], as_text(separator)
    check_size(sum(map(len, parts)) + len(between) * len(parts))
    return between.join(parts)


def _replace(value: Any, old: Any, new: Any, count: Any = -1) -> str:
    text, found, fresh, most = as_text(value), as_text(old), as_text(new), _int(count)
    times = len(text) + 1 if not found else text.count(found)
    check_size(len(text) + (times if most < 0 else min(times, most)) * len(fresh))
    return text.replace(found, fresh, most)


def _int(value: Any, default: Any = 0) -> Any:
    try:
        return int(float(value)) if isinstance(value, str) else int(value)
    except (TypeError, ValueError, OverflowError):
        return default


def _float(value: Any, default: Any = 0.0) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return default


def _round(value: Any, digits: Any = 0, method: Any = "common") -> Any:
    places = min(max(_int(digits), -15), 15)
    scale = 10.0**places
    scaled = float(value) * scale
    match as_text(method):
        case "ceil":
            return math.ceil(scaled) / scale
        case "floor":
            return math.floor(scaled) / scale
        case _:
            return math.floor(scaled + 0.5) / scale


def _truncate(value: Any, length: Any = 255, killwords: Any = False, end: Any = "...") -> str:  # noqa: FBT002
    text, most = as_text(value), max(_int(length), 0)
    if len(text) <= most:
        return text
    cut = text[:most]
    return (cut if killwords else (cut.rsplit(" ", 1)[0] if " " in cut else cut)) + as_text(end)


def _indent(value: Any, width: Any = 4, first: Any = False) -> str:  # noqa: FBT002
    spaces = " " * min(max(_int(width), 0), 80)
    return (spaces if first else "") + _replace(value, "\n", f"\n{spaces}")


def _sort(value: Any, reverse: Any = False, case_sensitive: Any = False) -> list[Any]:  # noqa: FBT002
    def key(item: Any) -> Any:
        return item.lower() if isinstance(item, str) and not case_sensitive else item

    return sorted(_items(value), key=key, reverse=bool(reverse))


def _of_text(change: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: change(as_text(value))


_escape = _of_text(html.escape)


def _load(text: str) -> Any:
    """Return the data that *text*, which is JSON, stands for."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        why = f"the filter load takes JSON, got {shorten(repr(text), 60)}"
        raise LackingError(f"a variable that is no JSON: {why}", why) from None


FILTERS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "capitalize": _of_text(str.capitalize),
    "count": _length,
    "d": _default,
    "default": _default,
    "dump": dump,
    "e": _escape,
    "escape": _escape,
    "first": lambda value: next(iter(_items(value)), None),
    "float": _float,
    "forceescape": _escape,
    "indent": _indent,
    "int": _int,
    "join": _join,
    "last": lambda value: next(reversed(_items(value)), None),
    "length": _length,
    "list": _items,
    "load": _of_text(_load),
    "lower": _of_text(str.lower),
    "nl2br": _of_text(lambda text: text.replace("\n", "<br />\n")),
    "replace": _replace,
    "reverse": lambda value: (value if isinstance(value, str) else _items(value))[::-1],
    "round": _round,
    "safe": lambda value: value,
    "sort": _sort,
    "string": as_text,
    "striptags": _of_text(lambda text: " ".join(re.sub("<[^<>]*>", "", text).split())),
    "sum": lambda value: sum(_items(value)),
    "title": _of_text(str.title),
    "tojson": dump,
    "trim": lambda value, letters=None: as_text(value).strip(None if letters is None else as_text(letters)),
    "truncate": _truncate,
    "upper": _of_text(str.upper),
    "urlencode": _of_text(lambda text: quote(text, safe="")),
    "wordcount": _of_text(lambda text: len(text.split())),
}
"""Every filter, by name. `safe` changes nothing, since nothing is escaped unless `escape` says so."""
