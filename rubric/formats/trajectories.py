"""
Graders of a run's tool calls that promptfoo and AgentV share: `trajectory:*`, `skill-used`, `tool-call-f1`.

| type | value | holds if |
|---|---|---|
| `trajectory:tool-used` | a name, names, or `{name or pattern, min, max}` | each was called; as often as it says |
| `trajectory:tool-sequence` | steps, or `{mode: in_order or exact, steps}` | they were called in this order, alone |
| `trajectory:tool-args-match` | `{name, args, mode: partial or exact, ignore, defaults}` | a call had these arguments |
| `trajectory:step-count` | `{name or pattern, type: tool or command, min, max}` | so many calls were made |
| `skill-used` | as `tool-used` | the tool `Skill` was called with its name |
| `tool-call-f1` | names | its score is the F1 of the sets of names, 1 unless a threshold says less |

Names may have `*` and `?`, and case does not matter in them. A call of a shell (`shell`, `exec_command`,
`local_shell`) with a command is a step, and no tool. Turned over, several names must all be missing. A case without
calls of tools has called none: nobody can tell it from one whose calls were not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

from rubric.internals.fields import refuse
from rubric.internals.frozen_map import FrozenMap, freeze, thaw
from rubric.internals.text import shorten
from rubric.values.candidates import Candidate, ToolCall
from rubric.values.checks import Check, Decided, Holds, Trajectory, Unsupported, matches_name

_SHELLS = frozenset({"exec_command", "local_shell", "shell"})
_COMMANDS = frozenset({"cmd", "command", "commands"})


def _is_tool(call: ToolCall) -> bool:
    return not (call.name.lower() in _SHELLS and any(call.arguments.get(key) for key in _COMMANDS))


_SKILL = ("skill", "name", "command")


def _skills(candidate: Candidate) -> list[str]:
    calls = [call for call in candidate.tool_calls if call.name.lower() == "skill"]
    found = (next((call.arguments[key] for key in _SKILL if call.arguments.get(key)), None) for call in calls)
    return [skill for skill in found if isinstance(skill, str)]


_WHAT: dict[str, Callable[[Candidate], list[str]]] = {
    "tool": lambda candidate: [call.name for call in candidate.tool_calls if _is_tool(call)],
    "command": lambda candidate: [call.name for call in candidate.tool_calls if not _is_tool(call)],
    "step": lambda candidate: [call.name for call in candidate.tool_calls],
    "skill": _skills,
}


@frozen
class Used:
    """
    A function for `Holds`: each of *names* was used from *least* to *most* times.

    Args:
        what: `tool`, `command`, `step` or `skill`.
        one: Whether one of them is enough.
    """

    what: str
    names: tuple[str, ...]
    least: int = 1
    most: int | None = None
    one: bool = False

    @property
    def __name__(self) -> str:
        times = f" {self.least} to {self.most} times" if self.most is not None else ""
        times = f" at least {self.least} times" if not times and self.least != 1 else times
        return shorten(f"uses the {self.what} {(' or ' if self.one else ', ').join(self.names)}{times}", 80)

    def __call__(self, candidate: Candidate) -> tuple[bool, str]:
        """Return whether it holds for *candidate*, and what was used."""
        used = _WHAT[self.what](candidate)
        counts = [sum(matches_name(name, one) for one in used) for name in self.names]
        held = [self.least <= count and (self.most is None or count <= self.most) for count in counts]
        return (any if self.one else all)(held), f"used: {shorten(', '.join(used), 200) or 'none'}"


@frozen
class ArgumentsMatch:
    """A function for `Holds`: a call of the tool *name* had the *expected* arguments."""

    name: str
    expected: Any = field(converter=freeze)
    exact: bool = False
    ignore: tuple[str, ...] = ()
    defaults: FrozenMap = field(default=FrozenMap(), converter=FrozenMap)

    @property
    def __name__(self) -> str:
        return shorten(f"calls {self.name} with {thaw(self.expected)!r}", 80)

    def __call__(self, candidate: Candidate) -> tuple[bool, str]:
        """Return whether it holds for *candidate*, and which arguments there were."""
        calls = [call for call in candidate.tool_calls if _is_tool(call) and matches_name(self.name, call.name)]
        given = [thaw(call.arguments) for call in calls]
        wanted = self._kept(thaw(self.expected))
        defaults = thaw(self.defaults)
        found = [self._kept({k: v for k, v in one.items() if k not in defaults or v != defaults[k]}) for one in given]
        holds = any(one == wanted if self.exact else _fits(one, wanted) for one in found)
        return holds, f"arguments: {shorten(repr(given), 200)}"

    def _kept(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: one for key, one in value.items() if not any(matches_name(name, key) for name in self.ignore)}


def _fits(actual: Any, wanted: Any) -> bool:
    """True if *actual* has all that is in *wanted*; lists have the same length."""
    if isinstance(wanted, Mapping):
        return isinstance(actual, Mapping) and all(k in actual and _fits(actual[k], v) for k, v in wanted.items())
    if isinstance(wanted, list):
        return isinstance(actual, list) and len(actual) == len(wanted) and all(map(_fits, actual, wanted))
    return type(actual) is type(wanted) and bool(actual == wanted)


@frozen
class ToolCallF1:
    """A function for `Holds`: the F1 of the names of the tools that were called and of those *expected*."""

    expected: tuple[str, ...]
    threshold: float = 1.0

    @property
    def __name__(self) -> str:
        return shorten(f"tool-call-f1: {', '.join(self.expected)}", 80)

    def __call__(self, candidate: Candidate) -> Decided:
        """Return the score of *candidate*."""
        called, expected = {call.name for call in candidate.tool_calls}, set(self.expected)
        shared = len(called & expected)
        score = 2 * shared / (len(called) + len(expected))
        reason = f"called: {', '.join(sorted(called)) or 'none'}; expected: {', '.join(sorted(expected))}"
        return Decided(score, reason=shorten(reason), passed=score >= self.threshold)


# -- from values to checks ---------------------------------------------------------------------------------


def trajectory_check(kind: str, value: Any, *, negate: bool = False, threshold: float | None = None) -> Check:
    """
    Return the check for the type *kind* (without `not-`) with *value*.

    Args:
        negate: Whether the check will be turned over: several names must then all be missing.
        threshold: Of `tool-call-f1`.

    Raises:
        DefinitionError: A value that the type cannot have; its field is `value`.
    """
    if kind == "tool-call-f1":
        return Holds(ToolCallF1(tuple(_names(value, split=True)), 1.0 if threshold is None else threshold))
    if kind == "trajectory:tool-sequence":
        return _sequence(value)
    if kind == "trajectory:tool-args-match":
        return _arguments(value)
    what = {"trajectory:tool-used": "tool", "skill-used": "skill", "trajectory:step-count": "step"}[kind]
    if not isinstance(value, Mapping):
        if what == "step":
            raise refuse("value", value, "a mapping with min or max")
        names = tuple(_names(value))
        return Holds(Used(what, names, one=negate and len(names) > 1))
    step = value.get("type") if what == "step" else None
    if step not in (None, "tool", "command"):
        return Unsupported(f"{kind} of the type {shorten(str(step), 40)}: only calls of tools and commands are known")
    least, most = value.get("min"), value.get("max")
    for count in (least, most):
        if count is not None and (type(count) is not int or count < 0):
            raise refuse("value", count, "a whole number from 0 as min and max")
    if what == "step" and least is None and most is None:
        raise refuse("value", dict(value), "a mapping with min or max")
    name = _name(value) if what != "step" else value.get("pattern") or value.get("name") or "*"
    first = 0 if what == "step" or (what == "skill" and most is not None) else 1
    counted = step or what
    return Holds(Used(counted, (str(name),), first if least is None else least, most))


def _names(value: Any, *, split: bool = False) -> Iterator[str]:
    given = value.split(",") if split and isinstance(value, str) else [value] if isinstance(value, str) else value
    names = [one.strip() for one in given if isinstance(one, str)] if isinstance(given, list) else []
    if not names or not all(names) or len(names) < len(given):
        raise refuse("value", value, "a name, or a list of names")
    return iter(names)


def _name(value: Any) -> str:
    found = value if isinstance(value, str) else value.get("pattern") or value.get("name")
    if not isinstance(found, str) or not found.strip():
        raise refuse("value", value, "a name, or a mapping with name or pattern")
    return found.strip()


def _sequence(value: Any) -> Check:
    steps = value.get("steps") if isinstance(value, Mapping) else value
    if not isinstance(steps, list) or not steps or not all(isinstance(one, str | Mapping) for one in steps):
        raise refuse("value", value, "a list of steps, or a mapping with steps")
    exact = isinstance(value, Mapping) and value.get("mode") == "exact"
    return Trajectory([_name(step) for step in steps], order="exact" if exact else "in_order")


def _arguments(value: Any) -> Check:
    if not isinstance(value, Mapping) or not {"args", "arguments"} & value.keys():
        raise refuse("value", value, "a mapping with name and args")
    mode, ignore, defaults = value.get("mode", "partial"), value.get("ignore") or [], value.get("defaults") or {}
    if mode not in ("partial", "exact"):
        raise refuse("value", mode, "partial or exact as mode")
    if not isinstance(defaults, Mapping):
        raise refuse("value", defaults, "a mapping of arguments as defaults")
    expected = value["args"] if "args" in value else value["arguments"]
    ignored = tuple(_names(ignore)) if ignore else ()
    return Holds(ArgumentsMatch(_name(value), expected, mode == "exact", ignored, defaults))


KINDS = (
    "trajectory:tool-used", "trajectory:tool-sequence", "trajectory:tool-args-match", "trajectory:step-count",
    "skill-used", "tool-call-f1",
)  # fmt: skip
"""The types that are read here."""
