"""
Put keys into the mappings of a YAML or JSON file: all else keeps every byte.

The places come from the events of ruamel's parser. Nothing is parsed and written anew, so comments, quotes, anchors,
blank lines and indentation stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from attrs import define, field, frozen
from ruamel.yaml import YAML, events
from ruamel.yaml.error import YAMLError

from rubric.errors import DumpError
from rubric.formats.document import KeyPath
from rubric.formats.yaml import to_yaml


@define
class Span:
    """
    A node of a file and where it lies.

    Args:
        start: The offset of its first character.
        end: The offset after its last one; of a block, after that of its last part.
        line: Where it starts, from 1.
        column: Likewise.
        key: Its text, if it is a scalar.
        is_flow: Whether it is in braces or brackets.
        parts: Its items; of a mapping, its keys and values in turn.
    """

    start: int
    end: int
    line: int
    column: int
    key: str | None = None
    is_mapping: bool = False
    is_flow: bool = False
    parts: list[Span] = field(factory=list)

    def value(self, key: str) -> tuple[Span, Span] | None:
        """Return the key *key* of this mapping and its value; None if it has none."""
        pairs = zip(self.parts[::2], self.parts[1::2], strict=False) if self.is_mapping else ()
        return next((pair for pair in pairs if pair[0].key == key), None)


@frozen
class Insertion:
    """Puts *key* with *value* into the mapping at *path*; a key that is there gets the new value."""

    path: KeyPath
    key: str
    value: Any


def spans(text: str) -> Span | None:
    """
    Return the root node of *text* with its parts; None if there is nothing in it.

    Raises:
        DumpError: ruamel cannot read it.
    """
    root: Span | None = None
    opened: list[Span] = []
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            if isinstance(event, events.CollectionEndEvent):
                done = opened.pop()
                last = done.parts[-1].end if done.parts else event.end_mark.index
                done.end = event.end_mark.index if done.is_flow else last
            if not isinstance(event, events.NodeEvent):
                continue
            start, end = event.start_mark, event.end_mark
            one = Span(start.index, end.index, start.line + 1, start.column + 1)
            if isinstance(event, events.ScalarEvent | events.AliasEvent):
                one.key = event.value if isinstance(event, events.ScalarEvent) else None
                one.end = one.start + len(text[one.start : one.end].rstrip())
                if one.start == one.end and opened and opened[-1].parts:  # nothing, whose mark is that of what follows
                    before = opened[-1].parts[-1].end
                    one.start = one.end = text.find(":", before) + 1 if opened[-1].is_mapping else before
            elif isinstance(event, events.CollectionStartEvent):
                one.is_flow, one.is_mapping = bool(event.flow_style), isinstance(event, events.MappingStartEvent)
            if opened:
                opened[-1].parts.append(one)
            else:
                root = one
            if isinstance(event, events.CollectionStartEvent):
                opened.append(one)
    except (YAMLError, ValueError, IndexError, AttributeError, TypeError) as problem:
        raise DumpError(f"this file cannot be changed in place: {' '.join(str(problem).split())}") from None
    return root


def inserted(text: str, insertions: Iterable[Insertion]) -> str:
    """
    Return *text* with all *insertions*, each in the style of the mapping that it is for.

    Raises:
        DumpError: The text cannot be read, or there is no mapping at a path.
    """
    root, edits = spans(text), []
    for one in insertions:
        node = _found(root, one.path)
        if node is None or not node.is_mapping:
            raise DumpError(f"there is no mapping at {one.path}")
        edits.append(_edit(text, node, one))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _found(node: Span | None, path: KeyPath) -> Span | None:
    for step in path:
        if node is None:
            return None
        if isinstance(step, int):
            node = node.parts[step] if not node.is_mapping and step < len(node.parts) else None
        else:
            pair = node.value(step)
            node = None if pair is None else pair[1]
    return node


def _edit(text: str, node: Span, one: Insertion) -> tuple[int, int, str]:
    """Return the start and the end of what is replaced in *text*, and the new text."""
    old, line_end = node.value(one.key), "\r\n" if "\r\n" in text else "\n"
    if node.is_flow:
        new = json.dumps({one.key: one.value}, ensure_ascii=False)[1:-1]
        if old is not None:
            return old[0].start, old[1].end, new
        if not node.parts:
            return node.start + 1, node.start + 1, new
        end = node.parts[-1].end
        return end, end, f"{_separator(text, node)}{new}"
    first = node.parts[0]  # an anchor may come before it
    indent = " " * (first.column - 1)
    new = to_yaml({one.key: one.value}).rstrip("\n").replace("\n", f"{line_end}{indent}")
    if old is not None:
        return old[0].start, old[1].end, new
    end = text.find("\n", node.end)  # behind a comment on the last line
    end = len(text) if end < 0 else end - (text[end - 1 : end] == "\r")
    return end, end, f"{line_end}{indent}{new}"


def _separator(text: str, node: Span) -> str:
    """Return what stands between two keys of a mapping in braces: in JSON as people indent it, a line end."""
    if len(node.parts) > 2:  # noqa: PLR2004 - a key and its value
        between = text[node.parts[1].end : node.parts[2].start]
        return between if not between.replace(",", "").strip() and between.count(",") == 1 else ", "
    before = text[node.start + 1 : node.parts[0].start]
    return f",{before}" if before and not before.strip() else ", "
