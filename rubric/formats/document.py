"""
A document as it was parsed: nodes that know their place in the file, and what is wrong with them.

Growing a document node by node, within limits that no rubric needs and a hostile file meets at once.

What an unquoted scalar means, after the core schema of YAML 1.2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar

from attrs import define, field, frozen
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.resolver import Resolver

from rubric.errors import LoadError, Problem
from rubric.internals.text import shorten

KeyPath = tuple[Any, ...]
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


Tell = Callable[[Node, KeyPath, str], None]


def plain(node: Node, tell: Tell, path: KeyPath = ()) -> Any:
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


def _plain_list(node: Listing, tell: Tell, path: KeyPath) -> list[Any]:
    return [plain(part, tell, (*path, index)) for index, part in enumerate(node.parts)]


def _plain_dict(node: Mapping, tell: Tell, path: KeyPath) -> dict[Any, Any]:
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


def find(root: Node, path: KeyPath, *, key: bool = False) -> tuple[Node, KeyPath]:
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


def show_path(path: KeyPath, limit: int = 200) -> str:
    """Return *path* as people write it: `criteria[0].weight`."""
    shown = "".join(_show_step(step) for step in path).removeprefix(".")
    return shown if len(shown) <= limit else f"…{shown[1 - limit :]}"


def _show_step(step: Any) -> str:
    if isinstance(step, str) and step.replace("-", "_").isidentifier() and len(step) <= 40:  # noqa: PLR2004
        return f".{step}"
    return f"[{shorten(repr(step), 40)}]"


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


LONGEST_SCALAR = 200_000
"""Characters of one text."""

MOST_FLAWS = 100
"""Anchors, tags, dates and whatever else cannot be read as it stands."""

DEEPEST = 128
"""Lists and mappings within one another: a tree of 64 questions within twenty rubrics that nest."""


@frozen
class Limits:
    """
    What a document may be.

    Args:
        largest: Bytes.
        events: Scalars, and starts and ends of lists and mappings; what an alias repeats counts each time.
        aliases: Whether anchors, aliases and merge keys are read.
    """

    largest: int
    events: int
    aliases: bool = False


FOR_RUBRICS = Limits(512 * 1024, 20_000)
FOR_SUITES = Limits(4 * 1024 * 1024, 200_000, aliases=True)


def refused(source: str, place: tuple[int, int], message: str, path: str = "") -> LoadError:
    """Return (not raise) the error for a document that cannot be read any further."""
    return LoadError([Problem(source, *place, path, shorten(message, 400))])


@define
class Span:
    """How many *events* a list or a mapping takes (until it ends: how many came before it), and how deep it goes."""

    events: int
    height: int = 1


@define
class Growing:
    """A document that is being read; `add` its nodes in the order of the file, `close` its lists and mappings."""

    source: str
    limits: Limits = FOR_RUBRICS
    root: Node | None = None
    _open: list[Listing | Mapping] = field(factory=list)
    _spans: dict[int, Span] = field(factory=dict)
    _events: int = 0
    _flaws: int = 0

    def add(self, node: Node) -> None:
        """Put *node* where it belongs; a list or a mapping takes what follows until it is closed."""
        self._count(node)
        self._count_flaw(node)
        if self._open:
            self._open[-1].parts.append(node)
        elif self.root is None:
            self.root = node
        if isinstance(node, Listing | Mapping):
            self._enter(node)
        elif isinstance(node, Scalar) and isinstance(node.value, str) and len(node.value) > LONGEST_SCALAR:
            message = f"a text has at most {LONGEST_SCALAR} characters, this one {len(node.value)}; shorten it"
            raise refused(self.source, node.place, message)

    def close(self) -> Listing | Mapping:
        """End the innermost list or mapping, and return it."""
        node = self._open.pop()
        self._count(node)
        span = self._spans[id(node)]
        span.events = self._events - span.events
        if self._open:
            self._heighten(self._open[-1], span.height + 1)
        return node

    def repeat(self, node: Node) -> bool:
        """Put *node*, which stands elsewhere already, here too; False where it has not ended yet."""
        if any(node is ancestor for ancestor in self._open):
            return False
        span = self._spans.get(id(node), Span(1))
        self._events += span.events - 1
        self._count(node)
        if len(self._open) + span.height > DEEPEST:
            raise self._too_deep(node)
        if self._open:
            self._open[-1].parts.append(node)
            self._heighten(self._open[-1], span.height + 1)
        return True

    def adopt(self, owner: Mapping, key: Node, value: Node) -> None:
        """Let *owner*, which has ended, take a *key* and a *value* that stand elsewhere: they count once more."""
        span = self._spans.get(id(value), Span(1))
        self._events += span.events
        self._count(key)
        mine = self._spans[id(owner)]
        mine.events += span.events + 1
        mine.height = max(mine.height, span.height + 1)
        owner.parts.extend((key, value))

    def _heighten(self, node: Node, height: int) -> None:
        span = self._spans[id(node)]
        span.height = max(span.height, height)

    def _enter(self, node: Listing | Mapping) -> None:
        self._open.append(node)
        self._spans[id(node)] = Span(self._events - 1)
        if len(self._open) > DEEPEST:
            raise self._too_deep(node)

    def _too_deep(self, node: Node) -> LoadError:
        return refused(self.source, node.place, f"lists and mappings nest more than {DEEPEST} deep; make it flatter")

    def _count_flaw(self, node: Node) -> None:
        self._flaws += bool(node.flaw) and not (node.flaw == MERGING and self.limits.aliases)
        if self._flaws > MOST_FLAWS:
            raise refused(self.source, node.place, f"{node.flaw} (and so with {MOST_FLAWS} others above)")

    def _count(self, node: Node) -> None:
        self._events += 1
        if self._events > self.limits.events:
            message = f"a document has at most {self.limits.events} parts (texts, lists, mappings); split the file"
            raise refused(self.source, node.place, message)
