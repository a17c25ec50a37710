"""What code can decide about a candidate, without a call to a judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from rubric.internals.fields import Shown, as_map, as_tuple, flag, number, refuse, string, text
from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.internals.text import shorten
from rubric.values.answers import Answer
from rubric.values.matching import check_schema, pattern

if TYPE_CHECKING:
    from attrs import Attribute

    from rubric.values.candidates import Candidate


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
class EndsWith(Check, Shown):
    """The output ends with *text*."""

    _positional = ("text",)

    text: str = field(validator=text)
    ignore_case: bool = field(default=False, kw_only=True, validator=flag)

    def __str__(self) -> str:
        return f"ends with {shorten(self.text, 60)!r}"


def _as_texts(value: Iterable[str]) -> tuple[str, ...]:
    texts = as_tuple("texts", value, str, "texts")
    if not texts or not all(texts):
        raise refuse("texts", value, "a list of texts, none of them empty")
    return texts


@frozen(repr=False)
class ContainsAny(Check, Shown):
    """The output has at least one of *texts* in it."""

    _positional = ("texts",)

    texts: tuple[str, ...] = field(converter=_as_texts)
    ignore_case: bool = field(default=False, kw_only=True, validator=flag)

    def __str__(self) -> str:
        return f"contains any of {shorten(', '.join(map(repr, self.texts)), 60)}"


@frozen(repr=False)
class ContainsAll(Check, Shown):
    """The output has each of *texts* in it."""

    _positional = ("texts",)

    texts: tuple[str, ...] = field(converter=_as_texts)
    ignore_case: bool = field(default=False, kw_only=True, validator=flag)

    def __str__(self) -> str:
        return f"contains all of {shorten(', '.join(map(repr, self.texts)), 60)}"


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
    arguments: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=_as_arguments)

    def __str__(self) -> str:
        with_ = f" with {shorten(json.dumps(str(self.arguments)), 60)}" if self.arguments else ""
        return f"calls {self.name}{with_}"


Opinion = bool | float | tuple[bool | float, str]
"""What a function says of a candidate: yes or no, or a score in 0..1; with a reason, if it has one."""


def _callable(_: Any, __: Attribute[Any], value: object) -> None:
    if not callable(value) or isinstance(value, type):
        raise refuse("function", value, "a function from a Candidate to a bool or a score in 0..1")


@frozen(repr=False)
class Holds(Check, Shown):
    """
    What a *function* of one's own says of the `Candidate`: a bool, a score in 0..1, or a pair with a reason.

    It cannot be written to a file. A function that raises, or says something else, leaves the criterion unjudged.
    """

    _positional = ("function",)

    function: Callable[[Candidate], Opinion] = field(validator=_callable)

    def __str__(self) -> str:
        return str(getattr(self.function, "__name__", "a function"))


def _as_command(value: Iterable[str]) -> tuple[str, ...]:
    command = as_tuple("command", value, str, "texts: the program and its arguments")
    if not command or not command[0].strip():
        raise refuse("command", value, "a program and its arguments")
    return command


def _as_config(value: Mapping[str, Any]) -> FrozenMap:
    return as_map("config", value)


@frozen(repr=False)
class Script(Check, Shown):
    """
    What a program says of the candidate, given it as JSON on standard input (AgentV's `script` graders).

    It runs only in the run of a suite that allows scripts; everywhere else the criterion stays unjudged.

    Args:
        command: The program and its arguments. No shell reads them.
        folder: Where it runs; empty means the folder of the file that names it.
        timeout: Seconds until it is stopped.
        config: Free data that is handed to it.
    """

    _positional = ("command",)

    command: tuple[str, ...] = field(converter=_as_command)
    folder: str = field(default="", kw_only=True, validator=string)
    timeout: float = field(default=60.0, kw_only=True, validator=number(0, 86_400, above=True))
    config: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=_as_config)

    def __str__(self) -> str:
        return f"script {shorten(' '.join(self.command), 60)}"


@frozen(repr=False)
class Unsupported(Check, Shown):
    """A grader of another system, *type*, that this library does not have: whatever it belongs to is ungraded."""

    _positional = ("type",)

    type: str = field(validator=text)

    def __str__(self) -> str:
        return f"unsupported: {shorten(self.type, 60)}"


NOTHING = Unsupported("no grader")
"""What a case of another system that asserts nothing is graded by: nothing, so that it is ungraded and no pass."""


@frozen(repr=False)
class Decided(Check, Shown):
    """What was decided elsewhere, such as by a script: a *score* in 0..1, and why."""

    _positional = ("score",)

    score: float = field(validator=number(0, 1))
    reason: str = field(default="", kw_only=True, validator=string)

    def __str__(self) -> str:
        return self.reason or f"decided: {self.score:g}"


AnyCheck = (
    Contains
    | StartsWith
    | EndsWith
    | ContainsAny
    | ContainsAll
    | Equals
    | Matches
    | IsJSON
    | FitsSchema
    | Calls
    | Holds
    | Script
    | Unsupported
    | Decided
)
"""Every check there is: a `match` over it ends with `assert_never`, so that type checkers name each one forgotten."""
