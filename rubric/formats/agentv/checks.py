"""
AgentV's graders that code decides, beside those of `assertion_types`: limits of a run, calls of tools, JavaScript.

`CHECKS` is their table. A limit on what is not known leaves the case ungraded here; AgentV fails it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rubric.errors import DefinitionError
from rubric.formats import tool_calls
from rubric.formats.agentv.scope import Entry
from rubric.formats.cursor import Cursor
from rubric.formats.field_accuracy import AGGREGATIONS, MATCHES, Field, FieldAccuracy
from rubric.formats.javascript import RETURNS, JavaScript, inline
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.javascript import EXTRA, Program, is_installed
from rubric.internals.text import shorten
from rubric.values.checks import Check, Holds, Unsupported, Within

_MILLISECONDS = 1000

_LIMITS: dict[str, dict[str, tuple[str, float]]] = {
    "latency": {"threshold": ("latency", _MILLISECONDS)},
    "cost": {"budget": ("cost", 1), "threshold": ("cost", 1)},
    "token-usage": {"max_total": ("tokens", 1)},
    "execution-metrics": {
        "max_tool_calls": ("tool_calls", 1),
        "max_llm_calls": ("calls", 1),
        "max_tokens": ("tokens", 1),
        "max_cost_usd": ("cost", 1),
        "max_duration_ms": ("latency", _MILLISECONDS),
    },
}
"""The keys of each type that limits a run: the limit that each sets, and how many of its units make one of ours."""

_UNKNOWN = ("max_input", "max_output", "target_exploration_ratio")
"""Keys that limit what is not known here: tokens sent and received apart, and which tools explore."""


def limited(entry: Entry) -> Check:
    """Return the limits of the run that *entry* sets."""
    keys, at = _LIMITS[entry.kind.replace("_", "-")], entry.at  # as older files write it
    for key in (key for key in _UNKNOWN if at.has(key)):
        entry.warn(f"{key} is not supported: cases that have it are ungraded", key)
        return Unsupported(f"{entry.kind} with {key}")
    limits = {}
    for key, (name, units) in keys.items():
        if at.has(key) and (limit := at[key].number(0)) is not None:
            limits[name] = limit / units
    if not limits:
        raise DefinitionError("type", f"{entry.kind} limits nothing; give it {' or '.join(keys)}")
    return Within(**limits)


def of_tool_calls(entry: Entry) -> Check:
    """Return the check of the run's tool calls that *entry* is."""
    said = str(entry.at.value.get("type"))
    negate = said.startswith("not-") != (entry.at.value.get("negate") is True)
    return tool_calls.trajectory_check(
        entry.kind.replace("_", "-"), entry.scope.filled(entry.at["value"]), negate=negate
    )


_OF_FIELDS = frozenset({"path", "match", "required", "weight", "tolerance", "relative", "formats"})


def field_accuracy(entry: Entry) -> Holds:
    """
    Return the comparison of fields that *entry* is.

    Raises:
        DefinitionError: It compares nothing, or aggregates in a way that there is not.
    """
    fields = entry.at["fields"].each("a list of fields", _field)
    aggregation = entry.at.value.get("aggregation") or "weighted_average"
    if aggregation not in AGGREGATIONS:
        raise DefinitionError("aggregation", f"expected {' or '.join(AGGREGATIONS)}, got {aggregation!r}")
    if not fields:
        raise DefinitionError("fields", "field-accuracy compares nothing; give it `fields`, each with a path")
    return Holds(FieldAccuracy(tuple(fields), aggregation == "all_or_nothing"))


def _field(at: Cursor) -> Field | None:
    if not at.mapping("a field (a mapping with path and match)"):
        return None
    for key in at.value.keys() - _OF_FIELDS:
        at[key].unknown(f"the key {key!r} is not read", _OF_FIELDS)
    path, match = at["path"].text("the path of a field"), at.value.get("match") or "exact"
    if match not in MATCHES:
        at["match"].error(f"expected {', '.join(MATCHES)}, got {shorten(repr(match), 60)}")
    options: dict[str, Any] = {key: at[key].number(0) for key in ("weight", "tolerance") if at.has(key)}
    options |= {key: at[key].flag() for key in ("required", "relative") if at.has(key)}
    if at.has("formats"):
        options["formats"] = tuple(at["formats"].each("a list of formats", lambda one: one.text("a format")))
    return None if path is None else Field(path, match, **options)


def tool_trajectory(entry: Entry) -> Check:
    """
    Return the `tool-trajectory` that *entry* is.

    Raises:
        DefinitionError: A mode, or what it needs, is missing or wrong.
    """
    for call in entry.at["expected"] if isinstance(entry.at["expected"].value, list) else ():
        for key in ("max_duration_ms", "maxDurationMs"):
            if isinstance(call.value, Mapping) and call.has(key):
                call[key].once(f"`{key}` does not count: how long a call took is not known here")
    usual = "superset" if entry.scope.generation == "agentv-1" else "exact"
    return tool_calls.read_tool_trajectory(entry.scope.filled(entry.at), usual)


def skill_trigger(entry: Entry) -> Check:
    """
    Return the `skill-trigger` that *entry* is.

    Raises:
        DefinitionError: It names no skill.
    """
    return tool_calls.read_skill_trigger(entry.scope.filled(entry.at))


def scripted(entry: Entry) -> Check:
    """
    Return the JavaScript that *entry* is: an expression, or a body of its own with `return`.

    Raises:
        DefinitionError: There is no code.
    """
    at = entry.at
    if not isinstance(at["value"].value, str) or not at["value"].value.strip():
        raise DefinitionError("value", "expected a line of JavaScript, or a body with `return`")
    if not is_installed():
        return not_gradable(entry, f"{entry.kind}, which needs an engine ({EXTRA})")
    code = entry.scope.text(at["value"])
    threshold = at["threshold"].number() if at.has("threshold") else None
    config: Any = entry.scope.filled(at["config"])
    return Holds(
        JavaScript(
            code,
            Program(code) if RETURNS.search(code) else inline(code),
            FrozenMap(entry.scope.variables),
            FrozenMap(config) if isinstance(config, Mapping) else None,
            threshold,
        )
    )


def not_gradable(entry: Entry, why: str) -> Unsupported:
    """Return the check of *entry*, which is not graded here, and warn *why*."""
    entry.warn(f"{why} is not supported: its cases are ungraded", "type")
    return Unsupported(why)


_WHY: dict[str, str] = {
    "webhook": "webhook, which sends the answer to an address,",
    "similar": "similar, whose score AgentV makes of the cosine in a way of its own,",
}
"""Types of AgentV's that are not graded here, and why."""


def unknown(entry: Entry) -> Check:
    """Return the function of the caller's for the type of *entry*; where there is none, how to give it."""
    kind = shorten(entry.kind, 60)
    if (function := entry.at.loading.functions.get(entry.kind)) is not None:
        return Holds(function)
    return not_gradable(entry, f"{_WHY.get(kind, kind)} without functions={{{kind!r}: function}}")


CHECKS: dict[str, tuple[Callable[[Entry], Check], frozenset[str]]] = {
    kind: (limited, frozenset({*keys, *_UNKNOWN, "exploration_tolerance"})) for kind, keys in _LIMITS.items()
}
CHECKS |= {kind: (of_tool_calls, frozenset({"value"})) for kind in tool_calls.KINDS}
CHECKS["field-accuracy"] = (field_accuracy, frozenset({"fields", "aggregation"}))
CHECKS["tool-trajectory"] = (tool_trajectory, tool_calls.KEYS)
CHECKS["skill-trigger"] = (skill_trigger, tool_calls.SKILL_KEYS)
CHECKS["javascript"] = (scripted, frozenset({"value", "threshold", "config"}))
CHECKS |= {kind.replace("-", "_"): row for kind, row in CHECKS.items()}
"""The readers of types, with the keys that they read besides those of all; generation 1 writes them with `_`."""
