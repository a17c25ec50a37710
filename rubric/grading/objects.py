"""Finds the JSON objects in a text: strictly first, and with repairs only where nothing strict is found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_MOST_TRIES = 1_000
_LONGEST_REPAIR = 20_000
_DEEPEST = 64


class Ambiguous(Exception):  # noqa: N818 - it says what is wrong, it is caught at once
    """An object that says two things, such as one with a key that stands twice."""


Found = tuple[Mapping[str, Any], str]
"""An object, and its source text."""


def find_objects(text: str, accept: Callable[[Mapping[str, Any], str], bool]) -> list[Found]:
    """
    Return the objects in *text* that *accept* takes, in order: strict JSON, or if there is none of that, repaired.

    Raises:
        Ambiguous: An object has a key twice.
    """
    strict = [(value, raw) for value, raw in _strict(text) if accept(value, raw)]
    return strict or [(value, raw) for value, raw in _repaired(text) if accept(value, raw)]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        msg = f"the key {twice!r:.60} stands twice in one JSON object"
        raise Ambiguous(msg)
    return made


def _strict(text: str) -> list[Found]:
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_integer)
    found, at, tries = [], text.find("{"), 0
    while at >= 0 and tries < _MOST_TRIES:
        tries += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        found.append((value, text[at:end]))
        at = text.find("{", end)
    return found


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 40 else float(digits)  # noqa: PLR2004 - beyond any score, and slow to read


def _repaired(text: str) -> list[Found]:
    """Return what json-repair makes of the braced pieces of *text*; a piece that does not end is not repaired."""
    pieces = [piece for piece in _braced(text) if len(piece) <= _LONGEST_REPAIR]
    if not pieces:
        return []
    from json_repair import loads  # noqa: PLC0415 - only broken replies pay for it

    found = []
    for piece in pieces[-20:]:
        try:
            value = loads(_without_comments(piece))
        except (ValueError, RecursionError, TypeError, AttributeError, IndexError):
            continue
        if isinstance(value, dict):
            _refuse_twice(piece, value)
            found.append((value, piece))
    return found


def _refuse_twice(piece: str, value: Mapping[str, Any]) -> None:
    """json-repair keeps the last of two equal keys and says nothing; count them in the source."""
    for key in value:
        if isinstance(key, str) and len(re.findall(rf"""["'{{,\s]{re.escape(key)}["']?\s*:""", piece)) > 1:
            msg = f"the key {key!r:.60} stands twice in one JSON object"
            raise Ambiguous(msg)


def _without_comments(piece: str) -> str:
    return re.sub(r"^\s*//.*$", "", piece, flags=re.MULTILINE)


def _braced(text: str) -> list[str]:
    """Return the outermost pieces of *text* from a brace to the one that closes it; braces in quotes do not count."""
    spans: list[tuple[int, int]] = []
    opened: list[int] = []
    quoted = False
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and quoted:
            at += 1
        elif char == '"' and opened:
            quoted = not quoted
        elif char == "{" and not quoted:
            opened.append(at)
        elif char == "}" and opened and not quoted:
            start = opened.pop()
            if len(opened) < _DEEPEST:
                spans = [span for span in spans[-50:] if span[0] < start]
                spans.append((start, at + 1))
        at += 1
    return [text[start:end] for start, end in spans]
