"""What code can decide about a candidate, without a call to a judge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from rubric.answers import Answer
from rubric.mappings import FrozenMap, thaw
from rubric.patterns import pattern
from rubric.schemas import check_schema
from rubric.showing import Shown, shorten
from rubric.validating import as_map, flag, refuse, text

__all__ = ["Calls", "Check", "Contains", "Equals", "FitsSchema", "IsJSON", "Matches", "StartsWith"]


class Check(Answer):
    """The parent of all checks. A check reads the candidate's output, or its tool calls."""

    __slots__ = ()

    def __str__(self) -> str:
        raise NotImplementedError


@frozen(repr=False)
class Contains(Check, Shown):
    """The output has *text* in it."""

    _positional = ("text",)

    text: str = field(validator=text)
    ignore_case: bool = field(default=False, kw_only=True, validator=flag)

    def __str__(self) -> str:
        return f"contains {shorten(self.text, 60)!r}"


@frozen(repr=False)
class StartsWith(Check, Shown):
    """The output begins with *text*."""

    _positional = ("text",)

    text: str = field(validator=text)
    ignore_case: bool = field(default=False, kw_only=True, validator=flag)

    def __str__(self) -> str:
        return f"starts with {shorten(self.text, 60)!r}"


@frozen(repr=False)
class Equals(Check, Shown):
    """The output is *text*; white space at the ends does not matter."""

    _positional = ("text",)

    text: str = field(validator=text)
    ignore_case: bool = field(default=False, kw_only=True, validator=flag)

    def __str__(self) -> str:
        return f"equals {shorten(self.text, 60)!r}"


@frozen(repr=False)
class Matches(Check, Shown):
    """The regular expression *pattern* (RE2 syntax) is found in the output."""

    _positional = ("pattern",)

    pattern: str = field(validator=pattern)

    def __str__(self) -> str:
        return f"matches {shorten(self.pattern, 60)}"


@frozen(repr=False)
class IsJSON(Check, Shown):
    """The output is one JSON value and nothing else."""

    def __str__(self) -> str:
        return "is JSON"


def _as_schema(value: Mapping[str, Any]) -> FrozenMap:
    if not isinstance(value, Mapping):
        raise refuse("schema", value, "a JSON Schema (a mapping)")
    schema = FrozenMap(value)
    check_schema("schema", thaw(schema))
    return schema


@frozen(repr=False)
class FitsSchema(Check, Shown):
    """The output is JSON that fits *schema* (JSON Schema; draft 2020-12 unless it names another)."""

    _positional = ("schema",)

    schema: FrozenMap = field(converter=_as_schema)

    def __str__(self) -> str:
        return f"fits the schema {shorten(str(self.schema.get('title') or self.schema), 60)}"


def _as_arguments(value: Mapping[str, Any]) -> FrozenMap:
    return as_map("arguments", value)


@frozen(repr=False)
class Calls(Check, Shown):
    """The candidate's run called the tool *name*, with at least the given *arguments*."""

    _positional = ("name",)

    name: str = field(validator=text)
    arguments: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=_as_arguments)

    def __str__(self) -> str:
        with_ = f" with {shorten(json.dumps(str(self.arguments)), 60)}" if self.arguments else ""
        return f"calls {self.name}{with_}"
