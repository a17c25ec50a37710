"""
Graders of a run's calls of tools: `trajectory:*`, `skill-used` and `tool-call-f1`, which promptfoo and AgentV share;
AgentV's `tool-trajectory` and `skill-trigger`, by its `graders/tool-trajectory.ts` and `graders/skill-trigger.ts`; and
promptfoo's `is-valid-*-call`, by the schemas of the tools. `docs/how-to/from_promptfoo.md` and `from_agentv.md` have
their meaning. A case without calls has called nothing; one whose calls were not recorded looks the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from attrs import field, frozen

from rubric import Candidate, DefinitionError, FitsSchema, Holds, ToolCall, Trajectory
from rubric.embed import Check, Decided, FrozenMap, fields, freeze, shorten, thaw
from rubric.formats.json_values import is_same
from rubric.values import Unsupported

# -- of both systems ---------------------------------------------------------------------------------------

_SHELLS = frozenset({"exec_command", "local_shell", "shell"})
_COMMANDS = ("cmd", "command", "commands")


def _command(call: ToolCall) -> str:
    """Return the command of a call of a shell; '' if it is none, or has none."""
    given = call.arguments if call.name.lower() in _SHELLS else {}
    value = thaw(next((given[key] for key in _COMMANDS if given.get(key)), ""))
    return " ".join(map(str, value)).strip() if isinstance(value, list) else str(value).strip()


_SKILL = ("skill", "name", "command")


def _uses(what: str, candidate: Candidate) -> list[tuple[str, ...]]:
    """Return what a pattern may match of each use: a skill, or a tool; of a shell, its command and program too."""
    calls = candidate.tool_calls
    if what == "skill":
        given = [call.arguments for call in calls if call.name.lower() == "skill"]
        skills = [next((one[key] for key in _SKILL if one.get(key)), None) for one in given]
        return [(skill,) for skill in skills if isinstance(skill, str)]
    steps = [(call.name, said, said.split()[0]) if (said := _command(call)) else (call.name,) for call in calls]
    return [step for step in steps if what == "step" or (what == "tool") == (len(step) == 1)]


@frozen
class Used:
    """A function for `Holds`: each of *names*, or *one*, was used *least* to *most* times; *what*: tool, step, ..."""

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
        used = _uses(self.what, candidate)
        counts = [sum(map(Trajectory([name]).followed_by, used)) for name in self.names]
        held = [self.least <= count and (self.most is None or count <= self.most) for count in counts]
        return (any if self.one else all)(held), f"used: {shorten(', '.join(one[0] for one in used), 200) or 'none'}"


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
        calls = [call for call in candidate.tool_calls if not _command(call) and _is_called(self.name, call.name)]
        given = [thaw(call.arguments) for call in calls]
        wanted, usual, same = self._trim(thaw(self.expected)), thaw(self.defaults), is_same if self.exact else _fits
        found = [{k: v for k, v in one.items() if k not in usual or not is_same(v, usual[k])} for one in given]
        holds = any(same(self._trim(one), wanted) for one in found)
        return holds, f"arguments: {shorten(repr(given), 200)}"

    def _trim(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        wild = [name for name in self.ignore if "*" in name or "?" in name]
        kept = {key: item for key, item in value.items() if key not in self.ignore}
        return {key: item for key, item in kept.items() if not any(_is_called(name, key) for name in wild)}


def _is_called(name: str, called: str) -> bool:
    return Trajectory([name]).followed_by([called])


def _fits(actual: Any, wanted: Any) -> bool:
    """True if *actual* has all that is in *wanted*; lists have the same length."""
    if isinstance(wanted, Mapping):
        return isinstance(actual, Mapping) and all(k in actual and _fits(actual[k], v) for k, v in wanted.items())
    if isinstance(wanted, list):
        return isinstance(actual, list) and len(actual) == len(wanted) and all(map(_fits, actual, wanted))
    return is_same(actual, wanted)


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
        given = (call.get("name") for call in _calls(candidate, ("tools",)) if isinstance(call, Mapping))
        called, expected = {name for name in given if isinstance(name, str)}, set(self.expected)
        shared = len(called & expected)
        score = 2 * shared / (len(called) + len(expected))
        reason = f"called: {', '.join(sorted(called)) or 'none'}; expected: {', '.join(sorted(expected))}"
        return Decided(score, reason=shorten(reason), passed=score >= self.threshold)


def trajectory_check(kind: str, value: Any, *, one: bool = False) -> Check:
    """
    Return the check for the type *kind* (without `not-`) with *value*, or refuse the value.

    Where the check will be turned over (*one*), several names must then all be missing.
    """
    if kind == "trajectory:tool-sequence":
        return _sequence(value)
    if kind == "trajectory:tool-args-match":
        return _arguments(value)
    what = {"trajectory:tool-used": "tool", "skill-used": "skill", "trajectory:step-count": "step"}[kind]
    if not isinstance(value, Mapping):
        if what == "step":
            raise fields.refuse("value", value, "a mapping with min or max")
        found = names(value)
        return Holds(Used(what, found, one=one and len(found) > 1))
    step = value.get("type") if what == "step" else None
    if step not in (None, "tool", "command"):
        return Unsupported(f"{kind} of the type {shorten(str(step), 40)}: only calls of tools and commands are known")
    least, most = value.get("min"), value.get("max")
    for count in (least, most):
        if count is not None and (type(count) is not int or count < 0):
            raise fields.refuse("value", count, "a whole number from 0 as min and max")
    if what == "step" and least is None and most is None:
        raise fields.refuse("value", dict(value), "a mapping with min or max")
    name = _name(value) if what != "step" else value.get("pattern") or value.get("name") or "*"
    first = 0 if what == "step" or (what == "skill" and most is not None) else 1
    return Holds(Used(step or what, (str(name),), first if least is None else least, most))


def names(value: Any) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not given or not all(isinstance(one, str) and one.strip() for one in given):
        raise fields.refuse("value", value, "a name, or a list of names")
    return tuple(one.strip() for one in given)


def _name(value: Any) -> str:
    found = value if isinstance(value, str) else value.get("pattern") or value.get("name")
    if not isinstance(found, str) or not found.strip():
        raise fields.refuse("value", value, "a name, or a mapping with name or pattern")
    return found.strip()


def _sequence(value: Any) -> Check:
    steps = value.get("steps") if isinstance(value, Mapping) else value
    if not isinstance(steps, list) or not steps or not all(isinstance(one, str | Mapping) for one in steps):
        raise fields.refuse("value", value, "a list of steps, or a mapping with steps")
    exact = isinstance(value, Mapping) and value.get("mode") == "exact"
    return Trajectory([_name(step) for step in steps], order="exact" if exact else "in_order")


def _arguments(value: Any) -> Check:
    if not isinstance(value, Mapping) or not {"args", "arguments"} & value.keys():
        raise fields.refuse("value", value, "a mapping with name and args")
    mode, ignore, defaults = value.get("mode", "partial"), value.get("ignore") or [], value.get("defaults") or {}
    if mode not in ("partial", "exact"):
        raise fields.refuse("value", mode, "partial or exact as mode")
    if not isinstance(defaults, Mapping):
        raise fields.refuse("value", defaults, "a mapping of arguments as defaults")
    expected = value["args"] if "args" in value else value["arguments"]
    return Holds(ArgumentsMatch(_name(value), expected, mode == "exact", names(ignore) if ignore else (), defaults))


# -- tool-trajectory ---------------------------------------------------------------------------------------

_MODES = ("any_order", "in_order", "exact", "superset", "subset")
_MATCHES = ("exact", "superset", "subset", "ignore")

KEYS = frozenset({"mode", "minimums", "expected", "args_match", "argsMatch"})
"""The keys of a `tool-trajectory` beside those of all graders."""


@frozen
class ExpectedCall:
    """An expected call of a *tool*; arguments of None fit any. *match* says how, or which of them, are compared."""

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
            return all(want is None or is_same(got, want) for want, got in found)
        keys = {"superset": wanted, "subset": given}.get(self.match, {*wanted, *given})
        return all(key in wanted and key in given and is_same(given[key], wanted[key]) for key in keys)


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
        if self.mode == "any_order":
            held = [sum(c.name == name for c in calls) >= least for name, least in self.minimums.items()]
        elif self.mode == "exact":
            held = [n < len(calls) and one.fits(calls[n]) for n, one in enumerate(self.expected)]
        elif self.mode == "subset":
            held = [any(one.fits(call) for one in self.expected) for call in calls]
        else:
            held = self._match_calls([*calls])
        called = shorten(", ".join(call.name for call in calls), 200) or "none"
        return sum(held) / len(held) if held else 1.0, f"called: {called}"

    def _match_calls(self, calls: list[ToolCall]) -> list[bool]:
        """Return which of the expected calls are among *calls*, each of which counts once; in order or not."""
        held = []
        for wanted in self.expected:
            # In order, a call of the tool with other arguments is used up too: it was meant to be this one.
            near = [call.name == wanted.tool if self.mode == "in_order" else wanted.fits(call) for call in calls]
            at = near.index(True) if True in near else None
            held.append(at is not None and wanted.fits(calls[at]))
            if self.mode == "in_order":
                calls = [] if at is None else calls[at + 1 :]
            elif at is not None:
                del calls[at]
        return held


def read_tool_trajectory(given: Mapping[str, Any], usual: str = "exact") -> Holds:
    """Return the check that the keys *given* say, or refuse a mode; *usual* is how arguments are compared."""
    mode = given.get("mode")
    if mode not in _MODES:
        raise fields.refuse("mode", mode, f"one of {', '.join(_MODES)}")
    if mode == "any_order":
        least = given.get("minimums")
        if not isinstance(least, Mapping) or not all(type(n) is int and n >= 0 for n in least.values()):
            raise fields.refuse("minimums", least, "a whole number from 0 for each tool")
        return Holds(ToolTrajectory(mode, minimums=FrozenMap({str(name): count for name, count in least.items()})))
    expected, match = given.get("expected"), _match(given, usual)
    if not isinstance(expected, list | tuple):
        raise fields.refuse("expected", expected, "a list of calls, each with `tool`")
    return Holds(ToolTrajectory(mode, tuple(_read_call(call, match) for call in expected)))


def _match(given: Mapping[str, Any], usual: str | tuple[str, ...]) -> str | tuple[str, ...]:
    found = given.get("args_match", given.get("argsMatch"))
    if isinstance(found, list | tuple) and found and all(isinstance(path, str) and path for path in found):
        return tuple(found)
    if found is not None and found not in _MATCHES:
        raise fields.refuse("args_match", found, f"one of {', '.join(_MATCHES)}, or a list of paths")
    return usual if found is None else str(found)


def _read_call(call: Any, usual: str | tuple[str, ...]) -> ExpectedCall:
    if not isinstance(call, Mapping) or not isinstance(call.get("tool"), str) or not call["tool"].strip():
        raise fields.refuse("expected", call, "calls with `tool`, the name of one")
    arguments = call.get("args")
    if isinstance(arguments, Mapping):
        return ExpectedCall(call["tool"], arguments, _match(call, usual))
    if arguments not in (None, "any"):
        raise fields.refuse("expected", arguments, "a mapping, or any, as `args`")
    return ExpectedCall(call["tool"])


def trajectory_data(function: ToolTrajectory) -> dict[str, Any]:
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


# -- schemas of tools --------------------------------------------------------------------------------------

SOURCES = {
    "is-valid-openai-tools-call": ("tools",),
    "is-valid-openai-function-call": ("functions",),
    "is-valid-function-call": ("tools", "functions"),
}
"""The types that are read here, and the keys of a provider's configuration that list what can be called."""

_RESULT, _ERROR = "MCP Tool Result", "MCP Tool Error"
"""What promptfoo writes into an output before the results of MCP servers."""


@frozen
class ValidCalls:
    """A function for `Holds`: the candidate calls tools, by their names and within their *schemas*."""

    kind: str
    schemas: FrozenMap = field(converter=FrozenMap)

    @property
    def __name__(self) -> str:
        return shorten(f"{self.kind}: {', '.join(self.schemas)}", 80)

    @cached_property
    def _checks(self) -> dict[str, FitsSchema]:
        return {name: FitsSchema(schema) for name, schema in self.schemas.items()}

    def __call__(self, candidate: Candidate) -> tuple[bool, str]:
        """Return whether it holds for *candidate*, and why not."""
        calls = [*_calls(candidate, SOURCES[self.kind])]
        if not calls and "tools" in SOURCES[self.kind] and (_ERROR in candidate.output or _RESULT in candidate.output):
            failed = _ERROR in candidate.output
            return not failed, "a call of an MCP server failed" if failed else "the calls of MCP servers have results"
        wrong = next((why for call in calls if (why := self._wrong(call))), "")
        return bool(calls) and not wrong, wrong or (f"{len(calls)} valid" if calls else "nothing is called")

    def _wrong(self, call: Any) -> str:
        """Return why *call* is not valid; '' if it is."""
        name, arguments = (call.get("name"), call.get("arguments")) if isinstance(call, Mapping) else (None, None)
        if not isinstance(name, str):
            return f"no call: {shorten(repr(call), 100)}"
        if name not in self.schemas:
            return f"there is no tool {shorten(name, 60)!r}"
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                return f"the arguments of {shorten(name, 60)} are not JSON"
        why = self._checks[name].misfit(arguments)
        return f"{shorten(name, 60)}: {why}" if why else ""


def _calls(candidate: Candidate, sources: tuple[str, ...]) -> Iterator[Any]:
    """Yield the calls of *candidate*: those that were recorded, else those in an output that is JSON."""
    if "tools" in sources and candidate.tool_calls:
        yield from ({"name": call.name, "arguments": thaw(call.arguments)} for call in candidate.tool_calls)
        return
    try:
        output = json.loads(candidate.output)
    except (ValueError, RecursionError):
        return
    if isinstance(output, dict) and "functions" in sources and ("function_call" in output or "name" in output):
        yield output.get("function_call", output)
    elif "tools" in sources:
        calls = output.get("tool_calls") if isinstance(output, dict) else output
        for call in calls if isinstance(calls, list) else ():
            yield call.get("function", call) if isinstance(call, dict) else call


def schemas_of(tools: Any) -> dict[str, Mapping[str, Any]]:
    """Return the schemas of *tools*, in OpenAI's or Anthropic's form, by name; one without takes any arguments."""
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) for tool in tools):
        raise fields.refuse("tools", tools, "a list of tools")
    found: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        if declared := {"functionDeclarations", "function_declarations"} & tool.keys():
            cure = "give them in OpenAI's form: {type: function, function: {name, parameters}}"
            raise DefinitionError(
                "tools", f"Google's {declared.pop()} are not read, as their types are its own; {cure}"
            )
        one = tool["function"] if isinstance(tool.get("function"), Mapping) else tool
        if isinstance(one.get("name"), str):
            schema = one.get("parameters", one.get("input_schema", {}))
            if not isinstance(schema, Mapping):
                raise fields.refuse("tools", schema, "a JSON Schema (a mapping)")
            found[one["name"]] = FitsSchema(schema).schema
    return found
