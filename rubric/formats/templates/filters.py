"""
The filters that templates may use: plain functions of plain data.

They do what users of Nunjucks expect, and what could grow without bounds says beforehand how large it will be.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from attrs import frozen

from rubric import DefinitionError
from rubric.embed import LackingError, shorten
from rubric.formats.json_values import javascript_data, javascript_number
from rubric.formats.keys import keys_of

LARGEST = 1_000_000
"""Characters of any text that a template makes."""


@frozen
class Missing:
    """A variable called *name* that is not there: empty, and false."""

    name: str

    def __bool__(self) -> bool:
        return False


def check_size(size: int) -> None:
    """Refuse a text of more than `LARGEST` characters."""
    if size > LARGEST:
        raise DefinitionError("", f"the template makes more than {LARGEST} characters; make it shorter")


def join_parts(parts: Iterable[str]) -> str:
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
        case None | Missing():
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return javascript_number(value)
        case dict() | list() | tuple():
            return dump(value)
        case _:
            return str(value)


def dump(value: Any, indent: Any = None) -> str:
    """Return *value* as JSON: on one line, or with *indent* spaces a level (at most 8)."""
    spaces = min(max(indent, 0), 8) if isinstance(indent, int) else None
    separators = (",", ":") if spaces is None else (",", ": ")
    encoder = json.JSONEncoder(ensure_ascii=False, indent=spaces, separators=separators, default=as_text)
    return join_parts(encoder.iterencode(None if isinstance(value, Missing) else javascript_data(value)))


def _default(value: Any, fallback: Any = "", boolean: Any = False) -> Any:  # noqa: FBT002
    return fallback if isinstance(value, Missing) or (boolean and not value) else value


def _items(value: Any) -> list[Any]:
    """Return *value* as a list: the letters of a text, the keys of a mapping, nothing for nothing."""
    if value is None or isinstance(value, Missing):
        return []
    if isinstance(value, str | list | tuple | Mapping):
        return list(value)
    raise DefinitionError("", f"the template expects a list, got {type(value).__name__}")


def _join(value: Any, separator: Any = "") -> str:
    parts, between = [as_text(part) for part in _items(value)], as_text(separator)
    check_size(sum(map(len, parts)) + len(between) * len(parts))
    return between.join(parts)


def _replace(value: Any, old: Any, new: Any) -> str:
    text, found, fresh = as_text(value), as_text(old), as_text(new)
    times = len(text) + 1 if not found else text.count(found)
    check_size(len(text) + times * len(fresh))
    return text.replace(found, fresh)


def _of_text(change: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: change(as_text(value))


_escape = _of_text(html.escape)


def _load(text: str) -> Any:
    """Return the data that *text*, which is JSON, stands for."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        why = f"the filter load takes JSON, got {shorten(repr(text), 60)}"
        raise LackingError(f"a variable that is not JSON: {why}", why) from None


FILTERS: dict[str, Callable[..., Any]] = {
    "capitalize": _of_text(str.capitalize),
    "d": _default,
    "default": _default,
    "dump": dump,
    "e": _escape,
    "escape": _escape,
    "first": lambda value: next(iter(_items(value)), None),
    "join": _join,
    "last": lambda value: next(reversed(_items(value)), None),
    "length": lambda value: len(value) if isinstance(value, str | list | tuple | Mapping) else 0,
    "load": _of_text(_load),
    "lower": _of_text(str.lower),
    "replace": _replace,
    "safe": lambda value: value,
    "string": as_text,
    "title": _of_text(str.title),
    "tojson": dump,
    "trim": _of_text(str.strip),
    "upper": _of_text(str.upper),
    "urlencode": _of_text(lambda text: quote(text, safe="")),
}
"""Every filter, by name. `safe` changes nothing, since nothing is escaped unless `escape` says so."""

NUNJUCKS = keys_of("promptfoo", "tags", "filters")
"""Filters of Nunjucks that are not here."""
