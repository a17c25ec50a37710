"""
What code decides of mcptest's `agents:` tests: the expectations of the run of an agent.

A test has a `prompt`, `servers`, `runs`, and `expect`: a list of a `target` in the run, and a `matcher` that must hold
for the value there. A test passes if all of them hold.

| target | value |
|---|---|
| `tool_calls[0].name`, `tool_calls[0].args.city` | of a call, counted from 0; `tool_calls` is the list |
| `tool_names` | the names of the tools, call by call |
| `conversation.tokens.total` | the tokens that the run took |

| matcher | holds for |
|---|---|
| `exact` | this very value |
| `contains`, `icontains` | a text with this text in it; a list with this item; the latter whatever the case |
| `contains-all` | a text or a list with all of these in it |
| `regex` | a text, or a number, in which the pattern is found |
| `schema` | a value that fits this JSON Schema |

These are of mcptest's pages "Models and the compatibility matrix", "Scenario 13: tool overload" and "Scenario 17: one
agent test across a model matrix". Other targets and matchers, and the blocks that score a trace by rules of their own
(`BLOCKS`), are named on its pages without their fields: they stay ungraded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from attrs import field, frozen

from rubric import Candidate, Criterion, DefinitionError, FitsSchema, Holds, Matches
from rubric.embed import Check, Cursor, fields, freeze, shorten, thaw
from rubric.formats.json_values import is_same
from rubric.formats.output_checks import UnknownError
from rubric.values import Unsupported

BLOCKS = (
    "trajectory", "trajectory_axes", "golden_path", "equal_function_sets", "distractors", "tool_selection",
    "orchestration", "recovery", "faults",
)  # fmt: skip
"""The blocks of a test that score a run, or change it, by fields that no page here shows."""

_READ = ("name", "prompt", "server", "servers", "runs", "expect")
_TARGETS = ("model", "models", "max_turns")
_KNOWN = (*_READ, *_TARGETS, *BLOCKS, "eval", "discovery")

_CURE = "write it in our own format, where trajectory, tool-call-f1 and tool-trajectory check the calls of a run"
_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[(\d+)\]")
_TOTAL = "conversation.tokens.total"
_NOTHING: Any = object()
"""In the place of a value that a run has not."""


@frozen
class RunExpectation:
    """A function for `Holds`: the *matcher* holds, with *value*, for what is at the *target* of a run."""

    target: str
    matcher: str
    value: Any = field(converter=freeze)

    @property
    def __name__(self) -> str:
        return shorten(f"{self.target}, {self.matcher}: {thaw(self.value)!r}", 80)

    @cached_property
    def _wanted(self) -> Any:
        return FitsSchema(self.value) if self.matcher == "schema" else thaw(self.value)

    def __call__(self, candidate: Candidate) -> tuple[bool, str]:
        """
        Return whether it holds for *candidate*, and what was found.

        Raises:
            UnknownError: The run's tokens are not known; or mcptest does not say how such a value is matched.
        """
        found = _at(candidate, self.target)
        if found is _NOTHING:
            return False, f"there is no {self.target}; calls: {len(candidate.tool_calls)}"
        return _holds(self.matcher, found, self._wanted), f"{self.target} is {shorten(repr(found), 200)}"


def run_expectation(target: Any, matcher: Any, value: Any) -> Check:
    """
    Return the check of an expectation; an unsupported one where mcptest's pages do not say what it means.

    Raises:
        DefinitionError: A target that is no path, or a value that the matcher cannot have.
    """
    if not isinstance(target, str) or not _steps(target):
        raise fields.refuse("target", target, "a path into the run, such as tool_calls[0].name")
    if not _is_known(target):
        return Unsupported(f"the target {shorten(target, 60)}", cure=f"known are tool_calls, tool_names, {_TOTAL}")
    if matcher not in _VALUES:
        return Unsupported(f"the matcher {shorten(str(matcher), 60)}", cure=f"known are {', '.join(_VALUES)}")
    _VALUES[matcher](value)
    return Holds(RunExpectation(target, matcher, value))


def _steps(target: str) -> list[str | int]:
    """Return the keys and positions of a path; empty for a text that is none."""
    found = [*_STEP.finditer(target)]
    whole = "".join(step[0] for step in found) == target and target[:1] not in (".", "[", "")
    return [int(step[2]) if step[2] else step[1] for step in found] if whole else []


def _is_known(target: str) -> bool:
    match _steps(target):
        case ["tool_names"] | ["tool_names", int()] | ["tool_calls"] | ["tool_calls", int()]:
            return True
        case ["tool_calls", int(), "name"] | ["tool_calls", int(), "args", *_]:
            return True
        case _:
            return target == _TOTAL


def _at(candidate: Candidate, target: str) -> Any:
    if target == _TOTAL:
        if candidate.metrics.tokens is None:
            raise UnknownError("the tokens of the run are not known; give the response with `metrics: {tokens: ...}`")
        return candidate.metrics.tokens
    calls = [{"name": call.name, "args": thaw(call.arguments)} for call in candidate.tool_calls]
    value: Any = {"tool_calls": calls, "tool_names": [call["name"] for call in calls]}
    for step in _steps(target):
        if isinstance(value, Mapping):
            value = value.get(step, _NOTHING)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step] if step < len(value) else _NOTHING
        else:
            return _NOTHING
    return value


def _holds(matcher: str, found: Any, wanted: Any) -> bool:
    match matcher:
        case "exact":
            return is_same(found, wanted)
        case "schema":
            return not wanted.misfit(found)
        case "regex":
            return Matches(wanted).found_in(_text(matcher, found))
        case "contains-all":
            return all(_is_in(one, found, matcher) for one in wanted)
        case "icontains":
            lowered = [_lower(one) for one in found] if isinstance(found, list) else _lower(found)
            return _is_in(_lower(wanted), lowered, matcher)
        case _:
            return _is_in(wanted, found, matcher)


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _is_in(part: Any, found: Any, matcher: str) -> bool:
    if isinstance(found, list):
        return any(is_same(part, one) for one in found)
    return _text(matcher, part) in _text(matcher, found)


def _text(matcher: str, found: Any) -> str:
    if isinstance(found, str):
        return found
    if isinstance(found, bool | int | float):
        return json.dumps(found)
    raise UnknownError(f"mcptest does not say how {matcher} matches a {type(found).__name__}; use exact or schema")


def _any(value: Any) -> None:
    """Refuse nothing."""


def _scalar(value: Any) -> None:
    if not isinstance(value, str | int | float) or value == "":
        raise fields.refuse("value", value, "a text")


def _list(value: Any) -> None:
    if not isinstance(value, list) or not value:
        raise fields.refuse("value", value, "a list of texts")


def _schema(value: Any) -> None:
    if not isinstance(value, Mapping):
        raise fields.refuse("value", value, "a JSON Schema (a mapping)")
    FitsSchema(value)


_VALUES = {
    "exact": _any, "contains": _scalar, "icontains": _scalar, "contains-all": _list, "regex": Matches,
    "schema": _schema,
}  # fmt: skip
"""For each matcher, what refuses a value that it cannot have."""


# -- reading -----------------------------------------------------------------------------------------------


def read_expectations(test: Cursor, judged: Iterable[str]) -> list[Criterion]:
    """Return a criterion for each expectation of *test* that code decides; the matchers *judged* are read elsewhere."""
    if not isinstance(test.value, dict):
        return []
    for key, part in test.items():
        if key not in _KNOWN:
            part.is_slip(_KNOWN)
    listed = test["expect"].value
    items = [*test["expect"]] if isinstance(listed, list) else [test["expect"]] if isinstance(listed, dict) else []
    found = [criterion for item in items for criterion in _read_item(item, {*judged, "eval"}, len(items))]
    for block in (key for key in BLOCKS if key in test):
        lack = Unsupported(f"{block} of an agents test", cure=_CURE)
        found.append(Criterion(str(lack), id=block, answer=lack, required=True))
    return found


def _read_item(at: Cursor, judged: set[str], count: int) -> Iterator[Criterion]:
    if not isinstance(at.value, dict) or not isinstance(at["matcher"].value, dict):
        return
    said = at["matcher"]
    for key, value in said.items():
        if key in judged:
            continue
        try:
            check = run_expectation(at["target"].value, key, value.value)
        except DefinitionError as problem:
            where = at["target"] if problem.field == "target" else value
            where.error(problem.message)
            continue
        text = at["message"].value if isinstance(at["message"].value, str) else ""
        number = f" {at.step + 1}" if count > 1 else ""
        id_ = f"expect{number}" if len(said.value) == 1 else f"expect{number} {key}"
        yield Criterion(text.strip() or str(check), id=id_, answer=check, required=True)


def unread(block: Cursor) -> list[str]:
    """Return the keys of the tests of *block* that nothing here reads: those of the target first."""
    keys = dict.fromkeys(key for test in block if isinstance(test.value, dict) for key in test.value)
    rest = [str(key) for key in keys if key not in _KNOWN]
    return [*(key for key in _TARGETS if key in keys), *rest]
