"""
Changing a YAML file in place: comments, order and quotes stay wherever nothing changes.

ruamel's round-trip mode keeps them. The changed values are written in the style in which a new file would have them.
"""

from __future__ import annotations

import sys
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.emitter import Emitter
from ruamel.yaml.events import MappingEndEvent, SequenceEndEvent
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString, SingleQuotedScalarString

from rubric.formats.native.answers import ANSWERS
from rubric.formats.native.rubric import KINDS
from rubric.formats.yaml import fits_a_line, style_of

ONE_OF = (tuple(ANSWERS), KINDS)
"""Keys of which one excludes the others."""


def edit(text: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the YAML *text*, which says *old*, so changed that it says *new*."""
    yaml = _editor()
    root = yaml.load(text)
    criteria = root.get("criteria") if isinstance(root, CommentedMap) else None
    if isinstance(criteria, CommentedSeq) and criteria and not criteria.fa.flow_style():
        yaml.indent(mapping=2, sequence=criteria.lc.col + 2, offset=criteria.lc.col)  # the file's own indentation
    return _print(yaml, _merge(root, old, new, ()))


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
    """Match the items by their ids or texts, and move each with its comments; one with a new name keeps its place."""
    was = {_name_of(item): index for index, item in enumerate(old)}
    kept = {_name_of(item) for item in new}
    renamed = {index for name, index in was.items() if name not in kept} if len(new) == len(old) else set()
    items, comments = [], {}
    for index, item in enumerate(new):
        before = was.pop(_name_of(item), index if index in renamed else None)
        if comment := None if before is None else node.ca.items.get(before):
            comments[index] = comment
        # Behind a comment ruamel loses a line end of keys that stand on lines of their own.
        inline = bool(comment) and isinstance(item, dict) and not isinstance(node[before], CommentedMap)
        if before is None or inline:
            items.append(_style(item, (*path, index), inline=inline))
        else:
            items.append(_merge(node[before], old[before], item, (*path, index)))
    node.ca.items.clear()
    del node[:]
    node.extend(items)
    node.ca.items.update(comments)
    return node


def _name_of(item: Any) -> str:
    """Return the id or the text of a criterion, or else all of it: what no other item has."""
    return str(item.get("id") or item.get("text") or item) if isinstance(item, dict) else str(item)


# -- ruamel's round-trip mode -------------------------------------------------------------------------------


def _editor() -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.Emitter = _Emitter
    yaml.Representer = _Representer
    yaml.preserve_quotes = True
    yaml.width = sys.maxsize
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


class _Emitter(Emitter):
    """Starts a new line after a flow mapping or list with a comment, where ruamel may run on into the next item."""

    def expect_flow_mapping_key(self) -> None:
        ends = isinstance(self.event, MappingEndEvent)
        super().expect_flow_mapping_key()
        self.no_newline = False if ends else self.no_newline

    def expect_flow_sequence_item(self) -> None:
        ends = isinstance(self.event, SequenceEndEvent)
        super().expect_flow_sequence_item()
        self.no_newline = False if ends else self.no_newline


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
