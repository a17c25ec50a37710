"""How values show themselves: a `repr` that one would type, and Markdown tables for notebooks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs

from rubric.mappings import FrozenMap, thaw

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Shown:
    """
    Gives a frozen attrs class the `repr` that one would type.

    The fields named in `_positional` come first and bare; a field that has its default value is left out.
    """

    __slots__ = ()
    _positional: tuple[str, ...] = ()

    def __repr__(self) -> str:
        fields = {f.alias or f.name: getattr(self, f.name) for f in shown_fields(self)}
        last = max((n for n, name in enumerate(self._positional, 1) if name in fields), default=0)
        bare = [repr(thaw_shown(getattr(self, name))) for name in self._positional[:last]]
        named = [f"{k}={thaw_shown(v)!r}" for k, v in fields.items() if k not in self._positional]
        return f"{type(self).__name__}({', '.join(bare + named)})"


def thaw_shown(value: Any) -> Any:
    """Return a `FrozenMap` as a dict, so that a repr can be typed back."""
    return thaw(value) if isinstance(value, FrozenMap) else value


def shown_fields(value: Any) -> list[attrs.Attribute[Any]]:
    """Return the fields of *value* that differ from their defaults."""
    return [f for f in attrs.fields(type(value)) if f.init and getattr(value, f.name) != default_of(f, value)]


def default_of(field: attrs.Attribute[Any], value: Any) -> Any:
    """Return what *field* of *value* would hold had nothing been given for it."""
    default: Any = field.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # attrs types Factory as a function
        made = default.factory(value) if default.takes_self else default.factory()
        return field.converter(made) if callable(field.converter) else made
    return default


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; cells are escaped, so that no cell can leave its place."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


_ESCAPES = str.maketrans({c: f"\\{c}" for c in "\\`*_[]|~$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})


def cell(value: object) -> str:
    """Return *value* as the text of one Markdown cell."""
    return "" if value is None else " ".join(str(value).split()).translate(_ESCAPES)


def shorten(text: str, limit: int = 200) -> str:
    """Return *text* on one line, cut to *limit* characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def as_json(value: Any) -> str:
    """Return *value* as JSON on one line, with its keys in order; what JSON does not know as text."""
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that are no text, or that cannot be sorted
        return str(value)
