"""The rule over runs, or the check of a call, that was meant by one in a file that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rubric.internals.guesses import roles

CALLED = {"tool_called", "tool_call", "called", "tool", "calls", "tool_calls", "tools", "sequence"}
_ORDERED = ("order", "in_order", "ordered", "exact", "strict")
_ARGUMENTS = ("args", "arguments", "parameters", "input", "with", "kwargs")
_TIMES = ("times", "exactly", "count")
_ALONE = ("never", "first", "last", "always")


def run_check_in(value: Any) -> dict[str, Any]:
    """Return the check of rules over the run, or of the order of its calls, that *value* names; {} if it names none."""
    if isinstance(value, dict) and len(value) == 1 and value.keys() & {"rule", "rules", "run_rule", "run_rules", "run"}:
        value = next(iter(value.values()))
    rows: list[Any] = value if isinstance(value, list) else [value]
    rules = [_rule_in(each) if isinstance(each, dict) else {} for each in rows]
    if rules and all(rules):
        return {"run": rules if rows is value else rules[0]}
    given: dict[str, Any] = value if isinstance(value, dict) and len(value) == 2 else {}  # noqa: PLR2004 - both of them
    order, tools = next((key for key in _ORDERED if key in given), ""), [*CALLED & given.keys()]
    if not order or not tools:
        return {}
    is_exact = any(each in ("exact", "strict") for each in (order, given[order]))
    return {"trajectory": {"tools": given[tools[0]], "order": "exact" if is_exact else "in_order"}}


def _rule_in(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the rule that *value* names by a call, and where it stands or how often; {} if it names none."""
    given: dict[str, Any] = {}
    is_alone = any(value.get(key) is True for key in _ALONE)  # of which `after` says since when
    for key, each in value.items():
        name = str(key) if key == "after" and is_alone else roles("rules").get(str(key), str(key))
        if name in given:
            return {}
        given[name] = each if name in ("arguments", "same") else _event_in(each)
    if "every" not in given and given.keys() & {"then", "before"} and "first" in given:
        given["every"] = given.pop("first")
    if len(given) == 1 and given.keys() & {"at_most", "at_least"} and "call" in next(iter(value)):
        return {**given, "of": "*"}
    if "every" not in given:
        return given if given.keys() & {*_ALONE, "at_most", "at_least"} else {}
    one, arguments = given.pop("every"), given.pop("arguments", None)
    one = one if arguments is None else {"call": one, "arguments": arguments}
    if "before" in given and not given.keys() & {"needs", "then"}:
        return {"every": given.pop("before"), "needs": one, **given}
    if given.keys() & {"needs", "then", "needs_one"}:
        return {"every": one, **given}
    if counts := [key for key in ("at_most", "at_least") if key in given]:
        return {counts[0]: given.pop(counts[0]), "of": one, **given}
    alone = next((key for key in _ALONE if given.get(key) is True), "")
    return {alone: one, **{key: each for key, each in given.items() if key != alone}} if alone else {}


def _event_in(value: Any) -> Any:
    """Return the event of a rule that *value* names: the name of a tool, or a mapping."""
    if not isinstance(value, dict):
        return value
    own = {**roles("rules"), "every": "every", "name": "every"}
    event = {"call" if own.get(key) == "every" else own.get(key, key): each for key, each in value.items()}
    return event["call"] if [*event] == ["call"] else event


def call_with(value: Mapping[Any, Any]) -> tuple[str, Any] | None:
    """Return a word for a call in *value* with the call that it names with arguments, or so often; None if none is."""
    *names, other = sorted(map(str, value), key=lambda key: key in (*_ARGUMENTS, *_TIMES))
    if len(names) != 1 or not isinstance(name := value[names[0]], str):
        return None
    if other in _TIMES:
        return (names[0], {name: value[other]}) if type(value[other]) is int else None
    return (names[0], {"name": name, "arguments": value[other]}) if other in _ARGUMENTS else None


def call_in(value: Any) -> dict[str, Any]:
    """Return the check that a tool was called, as *value* has it, or so often, or that several were, in their order."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return {"trajectory": value}
    if isinstance(value, dict) and value and all(type(each) is int and each >= 0 for each in value.values()):
        return {"run": [rule for name, times in value.items() for rule in _counted(str(name), times)]}
    own = {"tool": "name", "function": "name", **dict.fromkeys(_ARGUMENTS, "arguments")}
    is_named = isinstance(value, dict)
    return {"calls": {own.get(key, key): each for key, each in value.items()} if is_named else value}


def calls_in(value: Any) -> list[dict[str, Any]]:
    """Return the checks of the calls that must be there, in their order, or must not, as *value* has them; or []."""
    own = roles("called")
    rules, found = list[dict[str, Any]](), list[dict[str, Any]]()
    for key, each in value.items() if isinstance(value, dict) else ():
        names = [each] if isinstance(each, str) else each
        if key not in own or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return []
        if own[key] == "in_order":
            found.append({"trajectory": {"tools": names, "order": "in_order"}})
        else:
            rules += [{"never": name} if own[key] == "never" else {"at_least": 1, "of": name} for name in names]
    return [*found, *([{"run": rules}] if rules else [])]


def _counted(name: str, times: int) -> list[dict[str, Any]]:
    """Return the rules that a tool is called so many *times*, or that all are, where *name* is a bound."""
    if (bound := roles("rules").get(name)) in ("at_most", "at_least"):
        return [{str(bound): times, "of": "*"}]
    return [{"at_least": times, "of": name}, {"at_most": times, "of": name}] if times else [{"never": name}]
