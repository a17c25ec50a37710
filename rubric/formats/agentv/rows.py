"""
Rows of a CSV file as tests: a column is a field of a test, or a variable of that name.

`__expected` (and `__expected1`, ...) hold assertions as one text, as in promptfoo: `contains: hello`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rubric.formats.promptfoo.shorthand import assertion_of

__all__ = ["is_row", "test_of"]

_FIELDS = frozenset({"id", "criteria", "input", "expected_output", "threshold", "description"})
_MAGIC = "__"


def is_row(fields: Mapping[Any, Any]) -> bool:
    """Say whether *fields* are a row with columns that hold assertions."""
    return any(isinstance(key, str) and key.startswith(f"{_MAGIC}expected") for key in fields)


def test_of(row: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return *row* as the fields of a test."""
    magic = {key.removeprefix(_MAGIC): row[key] for key in row if isinstance(key, str) and key.startswith(_MAGIC)}
    plain = {key: value for key, value in row.items() if key not in {f"{_MAGIC}{name}" for name in magic}}
    test = {key: value for key, value in plain.items() if key in _FIELDS and value not in (None, "")}
    test["vars"] = {key: value for key, value in plain.items() if key not in _FIELDS}
    said = [str(value) for name, value in magic.items() if name.startswith("expected") and value]
    test["assert"] = [assertion_of(text) for text in said]
    for name in ("threshold", "description"):
        if magic.get(name):
            test[name] = _number(magic[name]) if name == "threshold" else magic[name]
    left = [name for name in magic if not name.startswith("expected") and name not in ("threshold", "description")]
    return test | {f"{_MAGIC}{name}": magic[name] for name in left if magic[name]}


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
