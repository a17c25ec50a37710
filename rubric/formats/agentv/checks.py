"""
AgentV's graders that code decides: those of `formats.assertions`, and JavaScript.

`CHECKS` is their table. A limit on what is not known leaves the case ungraded here; AgentV fails it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from rubric import DefinitionError, Holds
from rubric.embed import Check, Cursor, FrozenMap, fields, shorten
from rubric.formats.agentv.scope import Entry
from rubric.formats.assertions.field_accuracy import Field
from rubric.formats.assertions.table import KINDS, find_kind
from rubric.formats.assertions.texts import DETERMINISTIC, UnsupportedPatternError, with_spaces
from rubric.formats.assertions.tool_calls import read_tool_trajectory
from rubric.formats.javascript import RETURNS, JavaScript, inline, tell_engine
from rubric.formats.keys import words_of
from rubric.programs.javascript import Program
from rubric.values import Unsupported, Within

_UNKNOWN = ("max_input", "max_output", "target_exploration_ratio")
"""Keys that limit what is not known here: tokens sent and received apart, and which tools explore."""


def read_check(entry: Entry) -> Check:
    """Return the check of *entry*, of a type in `KINDS`."""
    kind, at = entry.kind.replace("_", "-"), entry.at  # as older files write it
    row = find_kind(kind)
    if row is None:
        return unknown(entry)
    for key in (key for key in _UNKNOWN if at.has(key)):
        entry.warn(f"{key} is not supported: cases that have it are ungraded", key)
        return Unsupported(f"{entry.kind} with {key}")
    given = {key: entry.scope.fill_all(at[key]) for key in row.names("agentv") if at.has(key)}
    if row.of is Within and not given:
        names = [key.name for key in row.keys]
        raise DefinitionError("type", f"{entry.kind} limits nothing; give it {' or '.join(names)}")
    if kind == "tool-trajectory":
        return _trajectory(entry, given)
    if kind == "regex" and isinstance(given.get("value"), str):
        given["value"] = f"{_flags(at['flags'].value or '')}{with_spaces(given['value'])}"
    if isinstance(given.get("fields"), list):
        given["fields"] = [_of_field(part, given["fields"][part.step]) for part in at["fields"]]
    said = str(at.value.get("type"))
    if not isinstance(given.get("should_trigger", True), bool):  # AgentV asks whether it is `false`
        entry.warn(f"{given.pop('should_trigger')!r} is read as true; write true or false", "should_trigger")
    try:
        return row.read(given | {"any": said.startswith("not-") != (at.value.get("negate") is True)})
    except UnsupportedPatternError as pattern:
        entry.warn(f"RE2 does not take the pattern {pattern}: cases that have it are ungraded", "value")
        return Unsupported(f"{entry.kind} by a pattern that RE2 does not take")


def _of_field(at: Cursor, given: Any) -> Any:
    """Return a field of `field-accuracy` without the keys that AgentV passes over, which are noted."""
    at.reads(known := [one.name for one in attrs.fields(Field)])
    return {key: value for key, value in given.items() if key in known} if isinstance(given, dict) else given


def _flags(flags: Any) -> str:
    """Return the flags of a JavaScript pattern as RE2 writes them; `g`, `u` and `y` make no difference to a test."""
    if not isinstance(flags, str) or set(flags) - set("imsguy"):
        raise DefinitionError("flags", f"expected some of the letters i, m, s; got {shorten(repr(flags))}")
    known = "".join(flag for flag in "ims" if flag in flags)
    return f"(?{known})" if known else ""


def _trajectory(entry: Entry, given: Mapping[str, Any]) -> Check:
    if given.get("expected") == [] and given.get("mode") != "subset":
        entry.warn("an empty `expected` holds of any calls; for a run without calls write `mode: subset`", "expected")
    for call in entry.at["expected"] if isinstance(entry.at["expected"].value, list) else ():
        for key in ("max_duration_ms", "maxDurationMs"):
            if isinstance(call.value, Mapping) and call.has(key):
                call[key].once(f"`{key}` does not count: how long a call took is not known here")
    return read_tool_trajectory(given, "superset" if entry.scope.generation == "agentv-1" else "exact")


def read_javascript(entry: Entry) -> Check:
    """Return the JavaScript that *entry* is: an expression, or a body of its own with `return`."""
    at = entry.at
    if not isinstance(at["value"].value, str) or not at["value"].value.strip():
        raise DefinitionError("value", "expected a line of JavaScript, or a body with `return`")
    tell_engine(at)
    code = entry.scope.text(at["value"])
    threshold = at["threshold"].number() if at.has("threshold") else None
    config: Any = entry.scope.fill_all(at["config"])
    return Holds(
        JavaScript(
            code,
            Program(code) if RETURNS.search(code) else inline(code),
            FrozenMap(entry.scope.variables),
            FrozenMap(config) if isinstance(config, Mapping) else None,
            threshold,
        )
    )


def unknown(entry: Entry, graders: Sequence[str] = ()) -> Check:
    """Return the function of the caller's for the type of *entry*; else how to give it, or the type that is near."""
    kind = shorten(entry.kind, 60)
    if (function := entry.at.loading.functions.get(entry.kind)) is not None:
        return Holds(function)
    why = f"{words_of('agentv', 'grader', 'ungraded').get(kind, kind)} without functions={{{kind!r}: function}}"
    near = fields.misspelt(kind, [*CHECKS, *graders])
    hint = f"; did you mean {near!r}?" if near and near != kind else ""
    entry.warn(f"{why} is not supported: its cases are ungraded{hint}", "type")
    return Unsupported(why)


CHECKS: dict[str, tuple[Callable[[Entry], Check], frozenset[str]]] = {
    kind: (
        read_check,
        row.names("agentv")
        | ({*_UNKNOWN, "exploration_tolerance"} if row.of is Within else {"flags"} if kind in DETERMINISTIC else set()),
    )
    for kind, row in KINDS.items()
    if "agentv" in row.systems or kind in DETERMINISTIC
}
CHECKS["javascript"] = (read_javascript, frozenset({"value", "threshold", "config"}))
CHECKS |= {kind.replace("-", "_"): row for kind, row in CHECKS.items()}
"""The readers of types, with the keys that they read besides those of all; generation 1 writes them with `_`."""
