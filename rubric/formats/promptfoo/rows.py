"""A row of a CSV file as a test: columns are variables, and those that begin with `__` say how it is graded."""

from __future__ import annotations

import re
from typing import Any

from rubric.formats.promptfoo.parts import Part
from rubric.formats.promptfoo.shorthand import assertion_of

__all__ = ["row_of"]

_EXPECTED = re.compile(r"__expected\d*")
_SETTING = re.compile(r"__config:__expected(\d*):(\w+)")
_METADATA = re.compile(r"__metadata:(.+?)(\[\])?")
_PLAIN = {
    "__description": ("description",),
    "__threshold": ("threshold",),
    "__providerOutput": ("providerOutput",),
    "__prefix": ("options", "prefix"),
    "__suffix": ("options", "suffix"),
}


def row_of(part: Part) -> Part:
    """Return the row *part* as the mapping that a test is in YAML. A column that is not known is noted."""
    test: dict[str, Any] = {"vars": {}, "assert": []}
    numbered: dict[int, dict[str, Any]] = {}
    for column, cell in part.items():
        if not column.startswith("__"):
            test["vars"][column] = cell.value
        elif not cell.value.strip():
            continue
        elif _EXPECTED.fullmatch(column):
            number = int(column.removeprefix("__expected") or 1)
            numbered[number] = assertion_of(cell.value)
            test["assert"].append(numbered[number])
        else:
            _set(test, column, cell)
    _configure(part, test, numbered)
    return part.holding({key: value for key, value in test.items() if value})


def _set(test: dict[str, Any], column: str, cell: Part) -> None:
    if column in _PLAIN:
        *outer, last = _PLAIN[column]
        inner = test.setdefault(outer[0], {}) if outer else test
        inner[last] = cell.value
    elif match := _METADATA.fullmatch(column):
        value = [item.strip() for item in re.split(r"(?<!\\),", cell.value)] if match[2] else cell.value
        test.setdefault("metadata", {})[match[1]] = value
    elif column != "__metric" and not _SETTING.fullmatch(column):
        cell.notes.unknown(cell.path, f"the column {column} is not read", ("__expected", "__metric", *_PLAIN))


def _configure(part: Part, test: dict[str, Any], numbered: dict[int, dict[str, Any]]) -> None:
    """Give the assertions of the row what other columns say of them."""
    metric = part.value.get("__metric") or ""
    for assertion in test["assert"]:
        if metric.strip():
            assertion["metric"] = metric
    for column, cell in part.items():
        match = _SETTING.fullmatch(column)
        if match is None or not cell.value.strip():
            continue
        assertion = numbered.get(int(match[1] or 1))
        if assertion is None or match[2] != "threshold":
            cell.warn(f"the column {column} is not read: it sets the threshold of a column __expected{match[1]}")
        else:
            assertion["threshold"] = cell.value
