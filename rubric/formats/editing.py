"""
Changing a YAML file in place: comments, order and quotes stay wherever nothing changes.

ruamel's round-trip mode keeps order and quotes. It holds a comment by the token before it, so that the heading of an
item would go with the item above. Comments and blank lines are taken out before, and put back beside their items after.
The changed values are written in the style in which a new file would have them.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Iterator
from io import StringIO
from typing import Any

from attrs import frozen
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString, SingleQuotedScalarString

from rubric.formats.document import KeyPath
from rubric.formats.insertion import Span, spans, walk
from rubric.formats.native.answers import ANSWERS
from rubric.formats.native.rubric import KINDS
from rubric.formats.yaml import fits_a_line, style_of

ONE_OF = (tuple(ANSWERS), KINDS)
"""Keys of which one excludes the others."""


def edit(text: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the YAML *text*, which says *old*, so changed that it says *new*."""
    text, comments = _take_comments(text)
    yaml = _editor()
    root = yaml.load(text)
    criteria = root.get("criteria") if isinstance(root, CommentedMap) else None
    if isinstance(criteria, CommentedSeq) and criteria and not criteria.fa.flow_style():
        yaml.indent(mapping=2, sequence=criteria.lc.col + 2, offset=criteria.lc.col)  # the file's own indentation
    return _put_comments(_print(yaml, _merge(root, old, new, ())), comments, old, new)


def _merge(node: Any, old: Any, new: Any, path: tuple[Any, ...]) -> Any:
    """Return *node*, which says *old*, changed where it must be to say *new*."""
    if old == new and type(old) is type(new):
        return node
    if isinstance(node, CommentedMap) and isinstance(new, dict):
        return _merged_map(node, old if isinstance(old, dict) else {"text": old}, new, path)
    if isinstance(node, CommentedSeq) and isinstance(old, list) and isinstance(new, list) and new:
        return _merged_list(node, old, new, path)
    return _style(new, path)


def _merged_map(node: CommentedMap, old: dict[str, Any], new: dict[str, Any], path: tuple[Any, ...]) -> CommentedMap:
    for key in [key for key in old if key not in new and key in node]:
        del node[key]
    for key, value in new.items():
        if key not in old or old[key] != value:
            rivals = [rival for keys in ONE_OF if key in keys for rival in keys if rival in node and rival not in new]
            for rival in rivals:
                del node[rival]
            node[key] = _merge(node.get(key), old.get(key), value, (*path, key))
    return node


def _merged_list(node: CommentedSeq, old: list[Any], new: list[Any], path: tuple[Any, ...]) -> CommentedSeq:
    items = [
        _style(item, (*path, index)) if before is None else _merge(node[before], old[before], item, (*path, index))
        for index, (item, before) in enumerate(zip(new, _places(old, new), strict=True))
    ]
    node.ca.items.clear()
    del node[:]
    node.extend(items)
    return node


def _places(old: list[Any], new: list[Any]) -> list[int | None]:
    """Return the index in *old* of each item of *new*, by its id or text; one with a new name keeps its place."""
    was = {_name_of(item): index for index, item in enumerate(old)}
    kept = {_name_of(item) for item in new}
    renamed = {index for name, index in was.items() if name not in kept} if len(new) == len(old) else set()
    return [was.pop(_name_of(item), index if index in renamed else None) for index, item in enumerate(new)]


def _name_of(item: Any) -> str:
    """Return the id or the text of a criterion, or else all of it: what no other item has."""
    return str(item.get("id") or item.get("text") or item) if isinstance(item, dict) else str(item)


# -- comments -----------------------------------------------------------------------------------------------


@frozen
class _Entry:
    """A key of a mapping with its value, or an item of a list, from *start* to *end*; its *column* counts from 0."""

    path: KeyPath
    start: int
    end: int
    column: int
    is_leaf: bool


@frozen
class _Comment:
    """A comment or blank line at a *column*: *above* or *after* an entry, or *beside* its first or *last* line."""

    text: str
    column: int
    at: str
    entry: _Entry | None = None  # the file, whose top is above it


def _entries(node: Span | None, path: KeyPath = ()) -> Iterator[_Entry]:
    """Yield the entries in the order of the text, an outer one first."""
    if node is None or node.is_flow:
        return
    step = 2 if node.is_mapping else 1
    for index, (name, value) in enumerate(zip(node.parts[::step], node.parts[step - 1 :: step], strict=True)):
        inner = (*path, name.key if node.is_mapping else index)
        yield _Entry(inner, name.start, value.end, node.column - 1, value.is_flow or not value.parts)
        yield from _entries(value, inner)


def _take_comments(text: str) -> tuple[str, list[_Comment]]:
    """Return *text* without comments and blank lines, and these; those within braces or a text stay in it."""
    entries = [*_entries(root := spans(text))]
    if not entries:
        return text, []
    starts, by_path = [entry.start for entry in entries], {entry.path: entry for entry in entries}
    inside = bytearray(len(text) + 1)
    for span, _ in walk(root):
        if span.is_flow or not span.parts:  # it is written as one piece
            inside[span.start + 1 : span.end] = bytes([1]) * (span.end - span.start - 1)
    kept: list[str] = []
    comments: list[_Comment] = []
    waiting: list[str] = []  # lines above the next entry, or after the last

    def settle(offset: int) -> None:
        index = bisect_left(starts, offset)
        following = entries[index] if index < len(entries) else None
        is_after = index > 0
        for line in waiting:
            column = len(line) - len(line.lstrip())
            is_after = is_after and column > (following.column if following else 0)
            owner, at = following if index else None, "above" if following else "after"
            if is_after:  # deeper than what follows: it is of the innermost entry that is less deep
                path = entries[index - 1].path
                outer = (by_path[path[:length]] for length in range(len(path), 0, -1))
                owner, at = next((entry for entry in outer if entry.column < column), None), "after"
            comments.append(_Comment(line.lstrip(), column, at, owner))
        waiting.clear()

    offset = 0
    for line in text.splitlines(keepends=True):
        if not inside[offset] and (not line.strip() or line.lstrip().startswith("#")):
            waiting.append(line.rstrip())
        else:
            settle(offset)
            found = next((each for each in _BESIDE.finditer(line) if not inside[offset + each.end() - 1]), None)
            before, first = (bisect_left(starts, place) for place in (offset + len(line), offset))
            if found and before:
                is_first = first < before or (first < len(entries) and not line[: found.start()].strip(" -"))
                at, owner = ("beside", entries[first]) if is_first else ("last", entries[before - 1])
                comments.append(_Comment(line[found.start() :].rstrip(), found.end() - 1, at, owner))
            kept.append(f"{line[: found.start()]}\n" if found and before else line)
        offset += len(line)
    settle(len(text))
    return "".join(kept), comments


_BESIDE = re.compile(r"[ \t]+#")


def _put_comments(text: str, comments: list[_Comment], old: Any, new: Any) -> str:
    """Return *text* with the *comments* of entries that became part of it, and of the file."""
    entries = {entry.path: entry for entry in _entries(spans(text))}
    lines = text.splitlines()
    around: dict[tuple[int, str], list[str]] = {}
    for comment in comments:
        was, at = comment.entry, comment.at
        now = None if was is None else entries.get(_moved(was.path, old, new))
        if was is None:
            top = next(iter(entries.values())).start if entries else 0
            line, column = text.count("\n", 0, top) if at == "above" else len(lines) - 1, comment.column
        elif now is None:
            continue
        else:
            line = text.count("\n", 0, now.end if at in ("last", "after") else now.start)
            column = max(comment.column + now.column - was.column, 0)
        if at in ("beside", "last"):
            words = comment.text.lstrip()
            gap = len(comment.text) - len(words)
            lines[line] += " " * (gap if gap <= _GAP else max(comment.column - len(lines[line]), _GAP)) + words
            continue
        if at == "after" and now and now.is_leaf and "\n" in text[now.start : now.end]:
            column = now.column  # deeper, it would be part of a text on lines of its own
        around.setdefault((line, at), []).append(f"{' ' * column}{comment.text}".rstrip())
    each = ((*around.get((n, "above"), ()), line, *around.get((n, "after"), ())) for n, line in enumerate(lines))
    return "\n".join(line for group in each for line in group) + "\n"


_GAP = 2
"""Spaces in front of a comment; where there were more, it stood in a column with others."""


def _moved(path: KeyPath, old: Any, new: Any) -> KeyPath:
    """Return where what *path* leads to in *old* is in *new*; a path of nothing where it is gone."""
    moved: list[Any] = []
    for name in path:
        if isinstance(name, int) and isinstance(old, list) and isinstance(new, list) and old != new:
            places = _places(old, new)
            if name not in places:
                return ()
            moved.append(places.index(name))
            old, new = old[name], new[moved[-1]]
        else:
            moved.append(name)
            old, new = (_value(data, name) for data in (old, new))
    return tuple(moved)


def _value(data: Any, key: str | int) -> Any:
    if isinstance(data, dict):
        return next((value for name, value in data.items() if str(name) == key), None)
    return data[key] if isinstance(data, list) and isinstance(key, int) and key < len(data) else None


# -- ruamel's round-trip mode -------------------------------------------------------------------------------


def _editor() -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.Representer = _Representer
    yaml.preserve_quotes = True
    yaml.width = sys.maxsize
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


class _Representer(RoundTripRepresenter):
    """Writes nothing as `null`, since a key without a value looks like a slip."""

    def represent_nothing(self, _: None) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:null", "null")


_Representer.add_representer(type(None), _Representer.represent_nothing)


def _print(yaml: YAML, data: Any) -> str:
    stream = StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()


def _style(data: Any, path: tuple[Any, ...], *, inline: bool = False) -> Any:
    """Return *data*, which is at *path*, as what ruamel writes like `rubric.formats.yaml`; *inline* within one line."""
    if isinstance(data, str):
        style = style_of(data, inline=inline)
        return _STYLES[style](data) if style else data
    if not isinstance(data, dict | list):
        return data
    inline = inline or (bool(path) and fits_a_line(data, path))
    block: CommentedMap | CommentedSeq = CommentedMap()
    if isinstance(data, dict):
        for key, value in data.items():
            styled_key = key if key in ("yes", "no") else _style(key, (), inline=True)
            block[styled_key] = _style(value, (*path, key), inline=inline)
    else:
        block = CommentedSeq(_style(value, (*path, index), inline=inline) for index, value in enumerate(data))
    if inline:
        block.fa.set_flow_style()
    return block


_STYLES = {"|": LiteralScalarString, "'": SingleQuotedScalarString, '"': DoubleQuotedScalarString}
