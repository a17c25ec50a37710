"""JSON as a document: the standard library judges the text, and its tokens give the places."""

from __future__ import annotations

import json
import re
from typing import Any

from rubric.formats import document
from rubric.formats.document import Limits, Node, Scalar, load_error

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]]|[^\s{}\[\],:"]+|\n')
_CONSTANTS = ("NaN", "Infinity", "-Infinity")


def parse_json(text: str, source: str, limits: Limits = document.FOR_RUBRICS, line: int = 1) -> Node | None:
    """Return the root node of *text*, which starts at *line*; a `LoadError` says where it is not JSON."""
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as problem:
        raise load_error(
            source, (line + problem.lineno - 1, problem.colno), f"this is not JSON: {problem.msg}"
        ) from None
    except RecursionError:
        raise document.too_deep(source, (line, 1)) from None
    builder = document.Builder(source, limits)
    start = 0
    for found in _TOKEN.finditer(text):
        token, column = found[0], found.start() - start + 1
        match token:
            case "\n":
                line, start = line + 1, found.end()
            case "{":
                builder.add(document.Mapping(line, column))
            case "[":
                builder.add(document.Listing(line, column))
            case "}" | "]":
                builder.close()
            case _:
                builder.add(_scalar(token, line, column))
    return builder.root


def _scalar(token: str, line: int, column: int) -> Scalar:
    if token.startswith('"'):
        return Scalar(line, column, value=json.loads(token))
    if token in _CONSTANTS:
        return Scalar(line, column, value=None, flaw=f"expected a finite number, got {token}")
    value, flaw = document.read_scalar(token)
    return Scalar(line, column, value=value, flaw=flaw)


def to_json(data: Any) -> str:
    """Return *data* as JSON, readable; only what UTF-8 cannot hold is escaped."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


_SURROGATE = re.compile("[\ud800-\udfff]")
"""Halves of pairs, which models do return: a text with one cannot be encoded, so that writing the file would fail."""
