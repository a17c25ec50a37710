"""What an unquoted scalar means, after the core schema of YAML 1.2."""

from __future__ import annotations

import math
import re
from typing import Any

from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.resolver import Resolver

from rubric.showing import shorten

__all__ = ["MERGING", "is_text", "read_scalar"]

MERGING = "merge keys (<<) are not read; write out what they stand for"
"""The flaw of a merge key, where they are not read."""

LONGEST_NUMBER = 400
"""Characters. The largest finite float has 309 digits before its point."""

_RESOLVER = Resolver()
_BASED = re.compile(r"[-+]?0[box]", re.ASCII)


def kind_of(scalar: str) -> str:
    """Return what YAML 1.2 takes the unquoted *scalar* for: `str`, `int`, `float`, `bool`, `null`, `timestamp` ..."""
    tag = _RESOLVER.resolve(ScalarNode, scalar, (True, False))
    return str(tag).rpartition(":")[2]


def is_text(scalar: str) -> bool:
    """Say whether *scalar* is a text also without quotes."""
    return kind_of(scalar) in ("str", "value")


def read_scalar(scalar: str) -> tuple[Any, str]:
    """Return the value of the unquoted *scalar*, and what is wrong with it (nothing, as a rule)."""
    match kind_of(scalar):
        case "null":
            return None, ""
        case "bool":
            return scalar.lower() == "true", ""
        case "int" | "float" as kind:
            return _read_number(scalar, kind)
        case "timestamp":
            return scalar, f'expected text, a number or a boolean, got the date {scalar}; quote it: "{scalar}"'
        case "merge":
            return scalar, MERGING
        case _:
            return scalar, ""


def _read_number(scalar: str, kind: str) -> tuple[Any, str]:
    if len(scalar) > LONGEST_NUMBER:
        return None, f"expected a number of at most {LONGEST_NUMBER} digits, got {len(scalar)}; quote it if it is text"
    try:
        value = _number(scalar.replace("_", ""), kind)
    except ValueError:
        return None, f'{shorten(scalar)!r} looks like a number and is none; quote it: "{scalar}"'
    if isinstance(value, float) and not math.isfinite(value):
        return None, f"expected a finite number, got {scalar}; quote it if it is text"
    return value, ""


def _number(digits: str, kind: str) -> int | float:
    if kind == "float":
        return float(digits.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return int(digits, 0) if _BASED.match(digits) else int(digits)
