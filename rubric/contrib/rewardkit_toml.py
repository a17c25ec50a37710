"""TOML as JSON whose keys stand in the lines of the file, so that what is wrong with them is told at its place."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from typing import Any

from rubric import DefinitionError

_BEGINS = re.compile(r"\s*(?:(?P<open>\[\[?)\s*(?P<table>[\w.-]+)\s*\]|(?P<key>[\w-]+)\s*=)")
_FENCE = re.compile(r'"""|' + "'''")


def as_json(text: str) -> str:
    """
    Return the TOML in *text* as JSON.

    Raises:
        DefinitionError: It is no TOML.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise DefinitionError("", f"this is not TOML: {problem}") from None
    lines, parts, here = _lines(text), list[str](), 1

    def put(value: Any, path: tuple[Any, ...]) -> None:
        nonlocal here
        if not isinstance(value, dict | list):
            parts.append(json.dumps(value, default=str))
            return
        before, end = "{}" if isinstance(value, dict) else "[]"
        for step, part in value.items() if isinstance(value, dict) else enumerate(value):
            line = max(here, lines.get((*path, step), here))
            parts.extend((before, "\n" * (line - here), f"{json.dumps(step)}:" if end == "}" else ""))
            here, before = line, ","
            put(part, (*path, step))
        parts.append(end if before == "," else before + end)

    put(data, ())
    return "".join(parts)


def _lines(text: str) -> dict[tuple[Any, ...], int]:
    """Return the line of each table, and of each key that begins a line, by its path."""
    found: dict[tuple[Any, ...], int] = {}
    head: tuple[Any, ...] = ()
    counts, is_text = Counter[str](), False
    for number, line in enumerate(text.split("\n"), 1):
        begins = None if is_text else _BEGINS.match(line)
        is_text ^= len(_FENCE.findall(line)) % 2 == 1
        if begins and begins["table"]:
            head = tuple(begins["table"].split("."))
            found.setdefault(head, number)
            if begins["open"] == "[[":
                head = (*head, counts[begins["table"]])
                counts[begins["table"]] += 1
        if begins:
            found.setdefault((*head, *filter(None, [begins["key"]])), number)
    return found
