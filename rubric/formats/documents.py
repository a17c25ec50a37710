"""A document as it was parsed: nodes that know their place in the file, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar

from attrs import field, frozen

from rubric.showing import shorten

__all__ = ["Document", "Listing", "Mapping", "Node", "Path", "Scalar", "Unreadable", "find", "plain", "show_path"]

Path = tuple[Any, ...]
"""The steps from the root of a document to one of its nodes: keys of mappings and indices of lists."""


@frozen(eq=False)
class Node:
    """What stands at *line* and *column* (from 1). A *flaw* says why it cannot be read as it stands."""

    line: int
    column: int
    flaw: str = field(default="", kw_only=True)

    @property
    def place(self) -> tuple[int, int]:
        """The line and the column."""
        return self.line, self.column


@frozen(eq=False)
class Scalar(Node):
    """A text, a number, a boolean or nothing."""

    value: Any = field(kw_only=True)


@frozen(eq=False)
class Listing(Node):
    """A list of nodes."""

    parts: list[Node] = field(factory=list, kw_only=True)


@frozen(eq=False)
class Mapping(Node):
    """Keys and values; *parts* holds them in turn, as they are read."""

    parts: list[Node] = field(factory=list, kw_only=True)

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Yield each key with its value, in the order of the file."""
        return zip(self.parts[::2], self.parts[1::2], strict=True)

    @cached_property
    def named(self) -> dict[Any, tuple[Node, Node]]:
        """The keys and values by what the keys say; the first of several counts."""
        found: dict[Any, tuple[Node, Node]] = {}
        for key, value in self.pairs():
            if isinstance(key, Scalar) and not key.flaw:
                found.setdefault(key.value, (key, value))
        return found


@frozen
class Document:
    """The *root* node of a document, the *source* that its problems name, and the *schema* that its head names."""

    source: str
    root: Node
    schema: str = ""


class Unreadable:
    """What stands in the data for a node with a flaw; the flaw itself is told apart."""

    shown: ClassVar[str] = "<unreadable>"

    def __repr__(self) -> str:
        return self.shown


Tell = Callable[[Node, Path, str], None]


def plain(node: Node, tell: Tell, path: Path = ()) -> Any:
    """Return *node* as plain Python data, and *tell* each flaw with its path; what has one is `Unreadable`."""
    if node.flaw:
        tell(node, path, node.flaw)
        return Unreadable()
    match node:
        case Scalar():
            return node.value
        case Listing():
            return _plain_list(node, tell, path)
        case Mapping():
            return _plain_dict(node, tell, path)


def _plain_list(node: Listing, tell: Tell, path: Path) -> list[Any]:
    return [plain(part, tell, (*path, index)) for index, part in enumerate(node.parts)]


def _plain_dict(node: Mapping, tell: Tell, path: Path) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    lines: dict[Any, int] = {}
    for key, part in node.pairs():
        if not isinstance(key, Scalar):
            tell(key, path, "a key is a text or a number, not a list or a mapping")
        elif key.flaw:
            tell(key, path, key.flaw)
        elif key.value in found:
            shown = shorten(repr(key.value), 60)
            first = lines[key.value]
            tell(key, (*path, key.value), f"the key {shown} stands in line {first} already; keep one of them")
        else:
            lines[key.value] = key.line
            found[key.value] = plain(part, tell, (*path, key.value))
    return found


def find(root: Node, path: Path, *, key: bool = False) -> tuple[Node, Path]:
    """
    Return the node at *path*, and the path as far as the document has it.

    With *key*, the node is the key that names it, where there is one.
    """
    node = shown = root
    for depth, step in enumerate(path):
        name, value = _child(node, step)
        if value is None:
            return node, path[:depth]
        node, shown = value, (name or value)
    return (shown if key else node), path


def _child(node: Node, step: Any) -> tuple[Node | None, Node | None]:
    if isinstance(node, Listing) and isinstance(step, int) and step < len(node.parts):
        return None, node.parts[step]
    if isinstance(node, Mapping):
        return node.named.get(step if step in node.named else _BOOLEANS.get(step), (None, None))
    return None, None


_BOOLEANS: dict[Any, Any] = {"yes": True, "no": False}
"""What YAML 1.1 made of two keys, and files from that time have in their place."""


def show_path(path: Path, limit: int = 200) -> str:
    """Return *path* as people write it: `criteria[0].weight`."""
    shown = "".join(_show_step(step) for step in path).removeprefix(".")
    return shown if len(shown) <= limit else f"…{shown[1 - limit :]}"


def _show_step(step: Any) -> str:
    if isinstance(step, str) and step.replace("-", "_").isidentifier() and len(step) <= 40:  # noqa: PLR2004
        return f".{step}"
    return f"[{shorten(repr(step), 40)}]"
