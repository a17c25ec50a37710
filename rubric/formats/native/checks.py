"""Checks in files: one table of their names, from which their reader and writer come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
from attrs import frozen

from rubric.errors import DefinitionError, DumpError
from rubric.formats import fields
from rubric.formats.fields import WRITERS, Data
from rubric.formats.native.run_rules import read_rules
from rubric.values import checks
from rubric.values.checks import Check


@frozen
class CheckRow:
    """A check with fields, by its class *kind*; the first, if all have it, may stand for the whole check."""

    kind: type[Check]

    @property
    def fields(self) -> list[str]:
        return [f.name for f in attrs.fields(cast("Any", self.kind))]

    @property
    def has_first(self) -> bool:
        """True if the first field may stand for the whole check."""
        return attrs.fields(cast("Any", self.kind))[0].default is attrs.NOTHING

    def reader(self) -> Callable[[Any], Check]:
        """Return the function that reads the check: a mapping of its fields, or the value of the first."""
        read = fields.reader_of(self.kind)
        return lambda data: read(data if isinstance(data, dict) or not self.has_first else {self.fields[0]: data})


ROWS: dict[str, CheckRow] = {
    "contains": CheckRow(checks.Contains),
    "starts_with": CheckRow(checks.StartsWith),
    "ends_with": CheckRow(checks.EndsWith),
    "contains_any": CheckRow(checks.ContainsAny),
    "contains_all": CheckRow(checks.ContainsAll),
    "equals": CheckRow(checks.Equals),
    "matches": CheckRow(checks.Matches),
    "calls": CheckRow(checks.Calls),
    "trajectory": CheckRow(checks.Trajectory),
    "similar": CheckRow(checks.Similar),
    "within": CheckRow(checks.Within),
    "script": CheckRow(checks.Script),
    "unsupported": CheckRow(checks.Unsupported),
}


def _read_assertion(data: Any) -> Check:
    from rubric.formats.assertions.table import read_assertion  # noqa: PLC0415 - it brings code that few rubrics need

    return read_assertion(fields.read_free(data))


_FIRST = ("contains", "starts_with", "ends_with", "contains_any", "contains_all", "equals", "matches")
CHECKS: dict[Any, Callable[[Any], Check]] = {
    **{name: ROWS[name].reader() for name in _FIRST},
    "fits_schema": lambda data: checks.FitsSchema(fields.read_free(fields.as_dict(data, "a JSON Schema, written out"))),
    **{name: row.reader() for name, row in ROWS.items() if name not in _FIRST},
    "run": read_rules,
    "assertion": _read_assertion,
}
"""The reader of each check but `is_json`, which has no fields, in the order of messages."""


def read_check(data: Any) -> Check:
    """Return a check: `is_json`, or one by its name, such as `{contains: ...}`."""
    if data == "is_json":
        return checks.IsJSON()
    given = fields.as_dict(data, f"is_json, or a mapping with one of {', '.join(CHECKS)}")
    gathering = fields.Gathering()
    found: list[Check] = []
    for position, (name, value) in enumerate(given.items()):
        with gathering.at(name):
            if name not in CHECKS:
                allowed = [*CHECKS, "is_json"]
                raise fields.UnknownKeyError(name, allowed, "Check", value, _read_named, said="no such check")
            if position:
                raise fields.WrongKeyError("", "a criterion has one check; make it a criterion of its own")
            found.append(CHECKS[name](value))
    gathering.finish()
    if not found:
        raise DefinitionError("", f"expected a check, got none; allowed: {', '.join(CHECKS)}, is_json")
    return found[0]


def _read_named(name: str, value: Any) -> Check:
    return CHECKS[name](value) if name in CHECKS else checks.IsJSON()


def _writer(name: str, row: CheckRow) -> Callable[[Check], Data]:
    def write(check: Check) -> Data:
        given = fields.fields_of(check)
        return {name: given if len(given) > 1 or not row.has_first else next(iter(given.values()))}

    return write


WRITERS |= {row.kind: _writer(name, row) for name, row in ROWS.items()}
_script = WRITERS[checks.Script]


def _assertion(check: Check) -> Data:
    """Return a function, or the program of a Python assertion, as the assertion that it is."""
    from rubric.formats.assertions.table import write_check  # noqa: PLC0415 - as for reading

    said = write_check(check)
    if said is not None:
        return {"assertion": fields.free({**said.data, **said.own})}
    if isinstance(check, checks.Script):
        return cast("Data", _script(check))
    raise DumpError(f"its answer is of a class of your own, {check}; files know only those of the library")


WRITERS |= {
    checks.FitsSchema: lambda check: {"fits_schema": fields.free(check.schema)},
    checks.IsJSON: lambda _: "is_json",
}
WRITERS |= {checks.Holds: _assertion, checks.Script: _assertion}
