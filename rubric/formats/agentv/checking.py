"""Checks as AgentV states them: the types of assertion that code decides."""

from __future__ import annotations

from typing import Any

from rubric.checks import (
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
)
from rubric.formats.agentv.quoting import quoted
from rubric.mappings import thaw

__all__ = ["state_check"]

_SECONDS = 60


def state_check(check: Check) -> dict[str, Any] | None:
    """Return the type and the value of the assertion that is *check*; None where AgentV has none like it."""
    match check:
        case Contains():
            return {"type": _folded(check, "contains"), "value": quoted(check.text)}
        case ContainsAny():
            return {"type": _folded(check, "contains-any"), "value": [quoted(text) for text in check.texts]}
        case ContainsAll():
            return {"type": _folded(check, "contains-all"), "value": [quoted(text) for text in check.texts]}
        case Equals() | StartsWith() | EndsWith() if not check.ignore_case:
            return {"type": _TYPES[type(check)], "value": quoted(check.text)}
        case Matches():
            return {"type": "regex", "value": quoted(check.pattern)}
        case IsJSON():
            return {"type": "is-json"}
        case FitsSchema():
            return {"type": "is-json", "value": thaw(check.schema)}
        case Script():
            return _script(check)
        case _:
            return None


_TYPES: dict[type, str] = {Equals: "equals", StartsWith: "starts-with", EndsWith: "ends-with"}


def _folded(check: Contains | ContainsAny | ContainsAll, kind: str) -> str:
    return f"i{kind}" if check.ignore_case else kind


def _script(check: Script) -> dict[str, Any]:
    row: dict[str, Any] = {"type": "script", "command": [quoted(word) for word in check.command]}
    row |= {"cwd": quoted(check.folder)} if check.folder else {}
    row |= {"timeout": check.timeout} if check.timeout != _SECONDS else {}
    return row | ({"config": thaw(check.config)} if check.config else {})
