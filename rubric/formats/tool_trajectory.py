"""
AgentV's `tool-trajectory` and `skill-trigger`: the calls of tools of a run, compared with those that are expected.

| mode | the score is the share of |
|---|---|
| `any_order` | the tools in `minimums` that were called as often |
| `in_order` | the `expected` calls that were found one after the other; others may be between them |
| `exact` | the `expected` calls that were made in their place |
| `superset` | the `expected` calls that were made at all, each call counted once |
| `subset` | the calls made that are among the `expected` ones |

The arguments of an expected call are compared by `args_match`: `exact` (the default, before 1.5 `superset`), `superset`
(others may be there), `subset` (some may lack), `ignore`, or a list of paths. The rules are those of AgentV's
`graders/tool-trajectory.ts` and `graders/skill-trigger.ts`. How long a call took is not known here, and as in AgentV
such a limit does not count then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from rubric.errors import DefinitionError
from rubric.internals.fields import refuse
from rubric.internals.frozen_map import FrozenMap, freeze, thaw
from rubric.internals.text import shorten
from rubric.values.candidates import Candidate, ToolCall
from rubric.values.checks import Holds

_MODES = ("any_order", "in_order", "exact", "superset", "subset")
_MATCHES = ("exact", "superset", "subset", "ignore")

KEYS = frozenset({"mode", "minimums", "expected", "args_match", "argsMatch"})
"""The keys of a `tool-trajectory` beside those of all graders."""


@frozen
class ExpectedCall:
    """
    One call that is expected.

    Args:
        tool: The name of the tool.
        arguments: As they should be; None: whatever they are.
        match: How they are compared: one of `args_match`, or the paths that alone are compared.
    """

    tool: str
    arguments: Any = field(default=None, converter=freeze)
    match: str | tuple[str, ...] = "exact"

    def fits(self, call: ToolCall) -> bool:
        """True if *call* is the one that is expected."""
        if call.name != self.tool:
            return False
        if self.arguments is None or self.match == "ignore":
            return True
        wanted, given = thaw(self.arguments), thaw(call.arguments)
        if isinstance(self.match, tuple):
            found = [(_at(wanted, path), _at(given, path)) for path in self.match]
            return all(want is None or want == got for want, got in found)
        keys = {"superset": wanted, "subset": given}.get(self.match, {*wanted, *given})
        return all(key in wanted and key in given and wanted[key] == given[key] for key in keys)


def _at(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


@frozen
class ToolTrajectory:
    """A function for `Holds`: the share of *expected* calls, or of the tools in *minimums*, that a run made."""

    mode: str
    expected: tuple[ExpectedCall, ...] = ()
    minimums: FrozenMap = field(default=FrozenMap(), converter=FrozenMap)

    @property
    def __name__(self) -> str:
        names = [*self.minimums] if self.mode == "any_order" else [call.tool for call in self.expected]
        return shorten(f"tool-trajectory, {self.mode}: {', '.join(names)}", 80)

    def __call__(self, candidate: Candidate) -> tuple[float, str]:
        """Return the score of *candidate*, and what was called."""
        calls = candidate.tool_calls
        match self.mode:
            case "any_order":
                counts = {name: sum(call.name == name for call in calls) for name in self.minimums}
                held = [counts[name] >= least for name, least in self.minimums.items()]
            case "in_order":
                held = self._in_order(calls)
            case "exact":
                held = [n < len(calls) and one.fits(calls[n]) for n, one in enumerate(self.expected)]
            case "superset":
                held = self._somewhere([*calls])
            case _:
                held = [any(one.fits(call) for one in self.expected) for call in calls]
        called = shorten(", ".join(call.name for call in calls), 200) or "none"
        return sum(held) / len(held) if held else 1.0, f"called: {called}"

    def _in_order(self, calls: Sequence[ToolCall]) -> list[bool]:
        held, rest = [], iter(calls)
        for one in self.expected:
            # A call of the tool with other arguments is used up too: it was meant to be this one.
            found = next((call for call in rest if call.name == one.tool), None)
            held.append(found is not None and one.fits(found))
        return held

    def _somewhere(self, calls: list[ToolCall]) -> list[bool]:
        held = []
        for one in self.expected:
            found = next((n for n, call in enumerate(calls) if one.fits(call)), None)
            held.append(found is not None)
            if found is not None:
                del calls[found]
        return held


def read_tool_trajectory(given: Mapping[str, Any], usual: str = "exact") -> Holds:
    """
    Return the check that the keys *given* say.

    Args:
        usual: How arguments are compared where nothing says it.

    Raises:
        DefinitionError: A mode, or what it needs, is missing or wrong.
    """
    mode = given.get("mode")
    if mode not in _MODES:
        raise refuse("mode", mode, f"one of {', '.join(_MODES)}")
    if mode == "any_order":
        least = given.get("minimums")
        if not isinstance(least, Mapping) or not all(type(n) is int and n >= 0 for n in least.values()):
            raise refuse("minimums", least, "a whole number from 0 for each tool")
        return Holds(ToolTrajectory(mode, minimums=FrozenMap({str(name): count for name, count in least.items()})))
    expected, match = given.get("expected"), _match(given, usual)
    if not isinstance(expected, list | tuple) or not (expected or mode == "subset"):
        raise refuse("expected", expected, "a list of calls, each with `tool`")
    return Holds(ToolTrajectory(mode, tuple(_expected(call, match) for call in expected)))


_Match = str | tuple[str, ...]


def _match(given: Mapping[str, Any], usual: _Match) -> _Match:
    found = given.get("args_match", given.get("argsMatch"))
    if isinstance(found, list | tuple) and found and all(isinstance(path, str) and path for path in found):
        return tuple(found)
    if found is not None and found not in _MATCHES:
        raise refuse("args_match", found, f"one of {', '.join(_MATCHES)}, or a list of paths")
    return usual if found is None else str(found)


def _expected(call: Any, usual: _Match) -> ExpectedCall:
    if not isinstance(call, Mapping) or not isinstance(call.get("tool"), str) or not call["tool"].strip():
        raise refuse("expected", call, "calls with `tool`, the name of one")
    arguments = call.get("args")
    if arguments is not None and arguments != "any" and not isinstance(arguments, Mapping):
        raise refuse("expected", arguments, "a mapping, or any, as `args`")
    if not isinstance(arguments, Mapping):
        return ExpectedCall(call["tool"])
    return ExpectedCall(call["tool"], arguments, _match(call, usual))


def tool_trajectory_data(function: ToolTrajectory) -> dict[str, Any]:
    """Return the keys that `read_tool_trajectory` reads *function* of."""
    if function.mode == "any_order":
        return {"mode": function.mode, "minimums": thaw(function.minimums)}
    return {"mode": function.mode, "expected": [_call_data(call) for call in function.expected]}


def _call_data(call: ExpectedCall) -> dict[str, Any]:
    if call.arguments is None:
        return {"tool": call.tool}
    match = [*call.match] if isinstance(call.match, tuple) else call.match
    return {"tool": call.tool, "args": thaw(call.arguments), **({} if match == "exact" else {"args_match": match})}


# -- skills --------------------------------------------------------------------------------------------------

SKILL_KEYS = frozenset({"skill", "should_trigger"})
"""The keys of a `skill-trigger` beside those of all graders."""


@frozen
class SkillTriggered:
    """A function for `Holds`: the run used the *skill* by its tool or read one of its files; or did not (*wanted*)."""

    skill: str
    wanted: bool = True

    @property
    def __name__(self) -> str:
        return shorten(f"{'uses' if self.wanted else 'does not use'} the skill {self.skill}", 80)

    def __call__(self, candidate: Candidate) -> tuple[bool, str]:
        """Return whether it holds for *candidate*, and the call that shows it."""
        found = next((call for call in candidate.tool_calls if self._shows(call)), None)
        return (found is not None) is self.wanted, f"used by {found.name}" if found else "not used"

    def _shows(self, call: ToolCall) -> bool:
        given, folder = thaw(call.arguments), f"skills/{self.skill}/"
        if call.name.lower() == "skill" and self.skill in str(given.get("skill", "")):
            return True
        if call.name.lower() == "read" and folder in str(given.get("file_path") or given.get("path") or ""):
            return True
        result = thaw(call.result)
        return folder in (result if isinstance(result, str) else json.dumps(result, ensure_ascii=False))


def read_skill_trigger(given: Mapping[str, Any]) -> Holds:
    """
    Return the check that the keys *given* say.

    Raises:
        DefinitionError: It names no skill.
    """
    skill = given.get("skill")
    if not isinstance(skill, str) or not skill.strip():
        raise DefinitionError("skill" if "skill" in given else "type", "expected the name of a skill as `skill`")
    return Holds(SkillTriggered(skill.strip(), given.get("should_trigger") is not False))
