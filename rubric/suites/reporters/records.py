"""The whole report as plain data and as JSON, and back: what other programs read, and what baselines are kept in."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from attrs import fields
from cattrs import Converter, transform_error
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from rubric.errors import DefinitionError
from rubric.mappings import FrozenMap, thaw
from rubric.suites.reports import Report
from rubric.suites.rows import Row

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SCHEMA", "from_dict", "loads", "render", "row_dict", "to_dict", "written"]

SCHEMA = "rubric-report/1"
"""The version of the form. A number after the slash that is higher than this one is a form that readers must learn."""

_MOST = 10


def render(report: Report) -> str:
    """Return the whole *report* as JSON; nothing in it is cut."""
    return written(to_dict(report), indent=2) + "\n"


def to_dict(report: Report) -> dict[str, Any]:
    """Return *report* as plain JSON-able data; what can be computed from the rows stands in `summary`."""
    data = thaw(_converter.unstructure(report))
    return {"schema": SCHEMA, "summary": summary(report), **data}


def summary(report: Report) -> dict[str, Any]:
    """Return in plain data what *report* comes to."""
    return {
        "passed": report.passed,
        "exit_code": report.exit_code,
        "cases": len(report),
        "counts": dict(report.counts),
        "usage": _converter.unstructure(report.usage),
    }


def row_dict(row: Row) -> dict[str, Any]:
    """Return *row* as plain JSON-able data."""
    data: dict[str, Any] = thaw(_converter.unstructure(row))
    return data


def loads(text: str | bytes, source: str = "the report") -> Report:
    """
    Return the report that `render` wrote as *text*.

    Raises:
        DefinitionError: It is no JSON, or no report; the message names *source* and lists what is wrong.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as problem:
        message = f"expected a report in JSON, got text that is none: {problem}"
        raise DefinitionError(source, message) from None
    return from_dict(data, source)


def from_dict(data: Mapping[str, Any], source: str = "the report") -> Report:
    """
    Return the report of which `to_dict` made *data*; its rows have no `result`.

    Raises:
        DefinitionError: Data of another kind; the message lists what is wrong.
    """
    found = data.get("schema") if isinstance(data, dict) else data
    if found != SCHEMA:
        message = f"expected data with the schema {SCHEMA!r}, got {_shortly(found)}; write it with the reporter 'json'"
        raise DefinitionError(source, message)
    body = {key: value for key, value in data.items() if key not in ("schema", "summary")}
    try:
        return _converter.structure(body, Report)
    except Exception as problem:  # noqa: BLE001 - cattrs raises a group of all kinds
        wrong = transform_error(problem, "report")
        rest = [f"and {len(wrong) - _MOST} more"] if len(wrong) > _MOST else []
        raise DefinitionError(source, "; ".join([*wrong[:_MOST], *rest])) from None


def _shortly(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"  # noqa: PLR2004 - a line's worth


# -- JSON that any reader can take -----------------------------------------------------------------------

_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def written(data: Any, *, indent: int | None = None) -> str:
    """Return *data* as JSON that can be encoded, and that holds no line end but those of *indent*."""
    text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False, default=str)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


# -- the converter ---------------------------------------------------------------------------------------


def _exactly(*kinds: type) -> Any:
    """Return the hook that takes values of *kinds* as they are, and refuses others instead of converting them."""
    names = " or ".join(kind.__name__ for kind in kinds)

    def hook(value: Any, _: Any) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            msg = f"expected {names}, got {_shortly(value)}"
            raise TypeError(msg)
        return value

    return hook


def _plain(value: Any) -> Any:
    """Return *value* as JSON can hold it; what is no data becomes text."""
    if isinstance(value, FrozenMap | dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)


def _made() -> Converter:
    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook(str, _exactly(str))
    converter.register_structure_hook(bool, _exactly(bool))
    converter.register_structure_hook(int, _exactly(int))
    converter.register_structure_hook(float, _exactly(int, float))
    converter.register_structure_hook(FrozenMap, lambda value, _: FrozenMap(_exactly(dict)(value, dict)))
    converter.register_unstructure_hook(FrozenMap, _plain)
    left_out: Any = {fields(Row).result.name: override(omit=True)}
    converter.register_structure_hook(Row, make_dict_structure_fn(Row, converter, **left_out))
    converter.register_unstructure_hook(Row, make_dict_unstructure_fn(Row, converter, **left_out))
    return converter


_converter = _made()
