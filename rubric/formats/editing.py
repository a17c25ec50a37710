"""Changing a YAML file in place: comments, order and quotes stay wherever nothing changes."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from rubric.formats.structuring import ANSWERS, KINDS
from rubric.formats.writing import editor, print_yaml, styled

__all__ = ["edited"]

ONE_OF = (tuple(ANSWERS), KINDS)
"""Keys of which one excludes the others: to set one is to take the others out."""


def edited(text: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the YAML *text*, which says *old*, so changed that it says *new*."""
    yaml = editor()
    root = yaml.load(text)
    _indent(yaml, root)
    return print_yaml(yaml, merged(root, old, new, ()))


def _indent(yaml: YAML, root: Any) -> None:
    """Take over how far the file indents its criteria."""
    criteria = root.get("criteria") if isinstance(root, CommentedMap) else None
    if isinstance(criteria, CommentedSeq) and criteria and not criteria.fa.flow_style():
        dash = criteria.lc.col
        yaml.indent(mapping=2, sequence=dash + 2, offset=dash)


def merged(node: Any, old: Any, new: Any, path: tuple[Any, ...]) -> Any:
    """Return *node*, which says *old*, changed where it must be to say *new*."""
    if old == new and type(old) is type(new):
        return node
    if isinstance(node, CommentedMap) and isinstance(new, dict):
        return _merged_map(node, old if isinstance(old, dict) else {"text": old}, new, path)
    if isinstance(node, CommentedSeq) and isinstance(old, list) and isinstance(new, list) and new:
        return _merged_list(node, old, new, path)
    return styled(new, path)


def _merged_map(node: CommentedMap, old: dict[str, Any], new: dict[str, Any], path: tuple[Any, ...]) -> CommentedMap:
    for key in [key for key in old if key not in new and key in node]:
        del node[key]
    for key, value in new.items():
        if key not in old or old[key] != value:
            _take_out_rivals(node, key)
            node[key] = merged(node.get(key), old.get(key), value, (*path, key))
    return node


def _take_out_rivals(node: CommentedMap, key: str) -> None:
    for keys in ONE_OF:
        for rival in keys if key in keys else ():
            if rival != key and rival in node and isinstance(rival, str):
                del node[rival]


def _merged_list(node: CommentedSeq, old: list[Any], new: list[Any], path: tuple[Any, ...]) -> CommentedSeq:
    """Match the items by what they are called, and take each along with its comments."""
    was = {_called(item): index for index, item in enumerate(old)}
    items, comments = [], {}
    for index, item in enumerate(new):
        before = was.pop(_called(item), None)
        if before is None:
            items.append(styled(item, (*path, index)))
            continue
        items.append(merged(node[before], old[before], item, (*path, index)))
        if before in node.ca.items:
            comments[index] = node.ca.items[before]
    node.ca.items.clear()
    del node[:]
    node.extend(items)
    node.ca.items.update(comments)
    return node


def _called(item: Any) -> str:
    """Return what tells *item* from its neighbours: the id or the text of a criterion, or all of it."""
    if isinstance(item, dict):
        return str(item.get("id") or item.get("text") or item)
    return str(item)
