"""
Values of ours as fields of a pydantic model, and so as parameters of FastAPI; the first such field loads this.

A rubric and a criterion are read and written as in files, and results are written as by `to_dict`. Other values are
read by their constructor: `"openai/gpt-5"` is a `Judge`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

from rubric import Criterion, Rubric, Store


def get_pydantic_core_schema(kind: type, *_: Any) -> Any:
    """Return the schema with which pydantic reads and writes fields of this *kind*."""
    from pydantic_core import core_schema  # noqa: PLC0415 - an extra, which is there if it asks

    is_written = kind is Criterion or hasattr(kind, "to_dict")
    written = core_schema.plain_serializer_function_ser_schema(_plain) if is_written else None
    return core_schema.no_info_plain_validator_function(partial(_checked, kind), serialization=written)


def get_pydantic_json_schema(kind: type, _: Any, handler: Any) -> dict[str, Any]:
    """Return the JSON Schema of such fields: what is read may be a text as well."""
    forms = [{"type": "object"}, {"type": "string"}][: 1 + (handler.mode == "validation")]
    return {"title": kind.__name__, "anyOf": forms}


def _checked(kind: type, value: Any) -> Any:
    try:
        return _read(kind, value)
    except ValueError as error:  # ours may hold what FastAPI cannot write into its answer
        raise ValueError(str(error)) from None


def _read(kind: Any, value: Any) -> Any:
    """Return *value* as one of this *kind*: a mapping, or a text, is what makes it."""
    reader = getattr(kind, "from_dict", None)
    if isinstance(value, kind):
        return value
    if kind is Criterion and isinstance(value, Mapping | str):
        return Rubric.from_dict({"criteria": [value]})[0]
    if reader and "rubric" in inspect.signature(reader).parameters:
        line = f"{kind.__name__}.from_dict(data, rubric)"
        raise ValueError(f"it is read with its rubric; take the field as a dict, and write {line}")
    if kind is Store or not isinstance(value, Mapping | str):  # the path of a request opens no file
        raise ValueError(f"expected a {kind.__name__}, got {type(value).__name__}")
    if isinstance(value, str):
        return kind.from_yaml(value) if kind is Rubric else kind(value)
    return reader(value) if reader else kind(**value)


def _plain(value: Any) -> Any:
    """Return the plain form of *value*, which `_read` reads."""
    return Rubric("", [value]).to_dict()["criteria"][0] if isinstance(value, Criterion) else value.to_dict()
