"""What code decides about a candidate: checks, and whether a criterion applies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rubric.candidates import Candidate
from rubric.checks import Calls, Check, Contains, Equals, FitsSchema, IsJSON, Matches, StartsWith
from rubric.criteria import When
from rubric.mappings import thaw
from rubric.patterns import matches
from rubric.schemas import misfit
from rubric.showing import shorten


def applies(when: When | None, candidate: Candidate) -> bool:
    """Say whether a criterion with *when* applies to *candidate*."""
    if when is None:
        return True
    if when.contains is not None:
        return when.contains in candidate.output
    if when.regex is not None:
        return matches(when.regex, candidate.output)
    if when.tool_called is not None:
        return any(call.name == when.tool_called for call in candidate.tool_calls)
    return bool(when.holds and when.holds(candidate))


def decide(check: Check, candidate: Candidate) -> tuple[bool, str]:
    """Return whether *candidate* passes *check*, and why or why not."""
    match check:
        case Contains():
            holds = _fold(check.text, check.ignore_case) in _fold(candidate.output, check.ignore_case)
        case StartsWith():
            holds = _fold(candidate.output, check.ignore_case).startswith(_fold(check.text, check.ignore_case))
        case Equals():
            holds = _fold(candidate.output, check.ignore_case).strip() == _fold(check.text, check.ignore_case).strip()
        case Matches():
            holds = matches(check.pattern, candidate.output)
        case IsJSON():
            return _is_json(candidate.output)
        case FitsSchema():
            return _fits(thaw(check.schema), candidate.output)
        case Calls():
            mine = [call for call in candidate.tool_calls if call.name == check.name]
            holds = any(_covers(call.arguments, check.arguments) for call in mine)
        case _:
            msg = f"{type(check).__name__} is no check that this library knows"
            raise TypeError(msg)
    return holds, f"{check}: {'yes' if holds else 'no'}"


def _fold(text: str, ignore_case: bool) -> str:  # noqa: FBT001
    return text.casefold() if ignore_case else text


def _covers(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in given and given[name] == value for name, value in wanted.items())


def _is_json(text: str) -> tuple[bool, str]:
    try:
        _parse(text)
    except RecursionError:
        return False, "is not JSON: it is nested too deeply to be read"
    except ValueError as problem:
        return False, f"is not JSON: {shorten(str(problem), 120)}"
    return True, "is JSON"


def _parse(text: str) -> Any:
    return json.loads(text, parse_constant=_no_constant, parse_int=_integer)


def _no_constant(name: str) -> Any:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _integer(digits: str) -> int | float:
    """Read numbers of thousands of digits as floats: Python takes its time for them, and then refuses them."""
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


_MOST_DIGITS = 1_000


def _fits(schema: Any, text: str) -> tuple[bool, str]:
    holds, why = _is_json(text)
    if not holds:
        return False, why
    problem = misfit(schema, _parse(text))
    return not problem, f"does not fit the schema at {problem}" if problem else "fits the schema"
