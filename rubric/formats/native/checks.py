""""""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rubric.errors import DefinitionError
from rubric.formats.cursor import Gathering, WrongKeyError, as_dict
from rubric.formats.nouns import WRITERS, Data, fields_of, free, read_free, reader_of
from rubric.internals.fields import suggest
from rubric.values.checks import (
    Calls,
    Check,
    Contains,
    ContainsAll,
    ContainsAny,
    EndsWith,
    Equals,
    FitsSchema,
    IsJSON,
    Matches,
    Script,
    StartsWith,
    Unsupported,
)


def read_check(data: Any) -> Check:
    """Return what code decides: `is_json`, or one check by its name, such as `{contains: ...}`."""
    if data == "is_json":
        return IsJSON()
    checks = as_dict(data, f"is_json, or a mapping with one of {', '.join(CHECKS)}")
    gathering = Gathering(Check)
    found: list[Check] = []
    for position, (name, value) in enumerate(checks.items()):
        with gathering.at(name):
            if name not in CHECKS:
                raise WrongKeyError("", f"no such check{suggest(str(name), [*CHECKS, 'is_json'])}")
            if position:
                raise WrongKeyError("", "a criterion has one check; make it a criterion of its own")
            found.append(CHECKS[name](value))
    gathering.finish()
    if not found:
        raise DefinitionError("", f"expected a check, got none; allowed: {', '.join(CHECKS)}, is_json")
    return found[0]


def _bare_or(read: Callable[[Any], Any], key: str) -> Callable[[Any], Any]:
    return lambda data: read(data if isinstance(data, dict) else {key: data})


def _read_schema(data: Any) -> FitsSchema:
    return FitsSchema(read_free(data))


CHECKS: dict[Any, Callable[[Any], Check]] = {
    "contains": _bare_or(reader_of(Contains), "text"),
    "starts_with": _bare_or(reader_of(StartsWith), "text"),
    "ends_with": _bare_or(reader_of(EndsWith), "text"),
    "contains_any": _bare_or(reader_of(ContainsAny), "texts"),
    "contains_all": _bare_or(reader_of(ContainsAll), "texts"),
    "equals": _bare_or(reader_of(Equals), "text"),
    "matches": _bare_or(reader_of(Matches), "pattern"),
    "fits_schema": _read_schema,
    "calls": _bare_or(reader_of(Calls, arguments=read_free), "name"),
    "script": _bare_or(reader_of(Script, config=read_free), "command"),
    "unsupported": _bare_or(reader_of(Unsupported), "type"),
}


def _check(name: str) -> Callable[[Check], Data]:
    def write(check: Check) -> Data:
        fields = fields_of(check)
        return {name: fields if len(fields) > 1 else next(iter(fields.values()))}

    return write


WRITERS |= {
    Contains: _check("contains"),
    StartsWith: _check("starts_with"),
    EndsWith: _check("ends_with"),
    ContainsAny: _check("contains_any"),
    ContainsAll: _check("contains_all"),
    Equals: _check("equals"),
    Matches: _check("matches"),
    FitsSchema: lambda check: {"fits_schema": free(check.schema)},
    Calls: _check("calls"),
    Script: _check("script"),
    Unsupported: _check("unsupported"),
    IsJSON: lambda _: "is_json",
}
