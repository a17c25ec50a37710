"""
A YAML or JSON file as its text: what it says where, and keys put into its mappings. All else keeps every byte.

The places come from the events of ruamel's parser. Nothing is parsed and written anew, so comments, quotes, anchors,
blank lines and indentation stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from ruamel.yaml import YAML, events
from ruamel.yaml.error import YAMLError

from rubric.errors import DumpError
from rubric.formats.document import FOR_SUITES, Branch, KeyPath, Node, Scalar, plain
from rubric.formats.files import LANGUAGES, parse, read_text
from rubric.formats.yaml import to_yaml


@frozen
class Page:
    """The *text* of the YAML or JSON file at *path*."""

    path: Path
    text: str = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> Page | None:
        """Return the file at *path*; None if its suffix is neither that of YAML nor that of JSON."""
        return cls(path, read_text(path)) if path.suffix.lower() in LANGUAGES else None

    def data(self) -> Any:
        """Return what the file says as plain data; raise `LoadError` if it cannot be read."""
        return plain(self._parse())

    def texts(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield each text in the file, keys too, with its line and column."""
        waiting = [self._parse()]
        while waiting:  # not recursive: a file may nest deeper than Python's stack allows
            node = waiting.pop()
            if isinstance(node, Scalar) and isinstance(node.value, str):
                yield node.value, node.place
            elif isinstance(node, Branch):
                waiting.extend(reversed(node.parts))

    def comments(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        """Yield what *pattern* matches outside of all keys and values, with its line."""
        matches = [*pattern.finditer(self.text)]
        scalars = [span for span, _ in walk(spans(self.text)) if span.key is not None] if matches else []
        for match in matches:
            if not any(span.start <= match.start() < span.end for span in scalars):
                yield self.text.count("\n", 0, match.start()) + 1, match

    def mappings(self) -> dict[tuple[int, int], KeyPath]:
        """Return the path of each mapping by its line and column; that of the innermost, where several start."""
        return {(span.line, span.column): path for span, path in walk(spans(self.text)) if span.is_mapping}

    def put(self, key: str, values: Mapping[KeyPath, Any]) -> str:
        """Return the text with *key* in mappings, whose paths have the *values*; an old value is replaced."""
        text = insert_key(self.text, key, values)
        wanted = self.data()
        for path, value in values.items():
            reduce(getitem, path, wanted)[key] = value
        if Page(self.path, text).data() != wanted:
            raise DumpError(f"{self.path}: {key!r} cannot be put into this file in place; write it by hand")
        return text

    def _parse(self) -> Node:
        return parse(self.text, str(self.path), LANGUAGES[self.path.suffix.lower()], FOR_SUITES).root


@define
class Span:
    """A node between two offsets; *key* is a scalar's text, *parts* are the items, or keys and values in turn."""

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


def spans(text: str) -> Span | None:
    """Return the root node of *text* with its parts; None if there is nothing in it."""
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


def walk(root: Span | None) -> Iterator[tuple[Span, KeyPath]]:
    """Yield all nodes from *root* on, each with the path of the value that it is, or is a key of."""
    waiting: list[tuple[Span, KeyPath]] = [] if root is None else [(root, ())]
    while waiting:
        node, path = waiting.pop()
        yield node, path
        if node.is_mapping:
            for key, value in zip(node.parts[::2], node.parts[1::2], strict=False):
                waiting += [(key, path), (value, (*path, key.key))]
        else:
            waiting += [(part, (*path, index)) for index, part in enumerate(node.parts)]


def insert_key(text: str, key: str, values: Mapping[KeyPath, Any]) -> str:
    """Return *text* with *key* in the mappings at the paths of *values*, each in the style of its mapping."""
    mappings, edits = {path: span for span, path in walk(spans(text)) if span.is_mapping}, []
    for path, value in values.items():
        if path not in mappings:
            raise DumpError(f"there is no mapping at {path}")
        edits.append(_edit(text, mappings[path], key, value))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _edit(text: str, node: Span, key: str, value: Any) -> tuple[int, int, str]:
    """Return the start and the end of what is replaced in *text*, and the new text."""
    old, line_end = node.value(key), "\r\n" if "\r\n" in text else "\n"
    if node.is_flow:
        new = json.dumps({key: value}, ensure_ascii=False)[1:-1]
        if old is not None:
            return old[0].start, old[1].end, new
        if not node.parts:
            return node.start + 1, node.start + 1, new
        end = node.parts[-1].end
        return end, end, f"{_separator(text, node)}{new}"
    first = node.parts[0]  # an anchor may come before it
    indent = " " * (first.column - 1)
    new = to_yaml({key: value}).rstrip("\n").replace("\n", f"{line_end}{indent}")
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
