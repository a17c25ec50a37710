"""
A parsed document: nodes that know their place in the file, built within limits.

The parsers of YAML and JSON hand nodes to a `Builder` in the order of the file. A node that cannot be read keeps its
place and has a flaw, so that one load reports all of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar, cast

from attrs import define, field, frozen

from rubric.errors import LoadError, Problem
from rubric.internals.text import shorten

KeyPath = tuple[Any, ...]
"""The steps from the root of a document to one of its nodes: keys of mappings and indices of lists."""


# -- nodes --------------------------------------------------------------------------------------------------
# Not frozen: attrs sets the fields of a frozen class three times slower, and a file has thousands of nodes.


@define(eq=False)
class Node:
    """A value at *line* and *column* (from 1, in characters). A *flaw* says why it cannot be read."""

    line: int
    column: int
    flaw: str = field(default="", kw_only=True)

    @property
    def place(self) -> tuple[int, int]:
        """The line and the column."""
        return self.line, self.column


@define(eq=False)
class Scalar(Node):
    """
    A text, a number, a boolean or nothing.

    Args:
        cut: What is wrong with a text that a comment cuts. Files of other systems are read as they read them; in ours,
            a criterion is never shorter than it looks (see `uncut`).
    """

    value: Any = field(kw_only=True)
    cut: str = field(default="", kw_only=True)


@define(eq=False)
class Branch(Node):
    """A list or a mapping with its *parts*, its number of *events* (while open, those before it) and its *height*."""

    parts: list[Node] = field(factory=list, kw_only=True)
    events: int = field(default=1, kw_only=True)
    height: int = field(default=1, kw_only=True)


@define(eq=False)
class Listing(Branch):
    """A list of nodes."""


@define(eq=False)
class Mapping(Branch):
    """Keys and values; *parts* holds them in turn."""

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Yield each key with its value, in the order of the file."""
        parts = iter(self.parts)
        return zip(parts, parts, strict=True)

    @cached_property
    def named(self) -> dict[Any, tuple[Node, Node]]:
        """The keys and values by the value of the key; the first of several counts."""
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


# -- from nodes to plain data -------------------------------------------------------------------------------


class Unreadable:
    """Replaces a node with a flaw in plain data; the flaw itself is reported separately."""

    shown: ClassVar[str] = "<unreadable>"

    def __repr__(self) -> str:
        return self.shown


Tell = Callable[[Node, KeyPath, str], None]


def plain(node: Node, tell: Tell = lambda *_: None, path: KeyPath = ()) -> Any:
    """Return *node* as plain Python data, and *tell* each flaw with its path; a flawed node is `Unreadable`."""
    if node.flaw:
        tell(node, path, node.flaw)
        return Unreadable()
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Listing):
        return [plain(part, tell, (*path, index)) for index, part in enumerate(node.parts)]
    found: dict[Any, Any] = {}
    mapping = cast("Mapping", node)
    for key, part in mapping.pairs():
        if not isinstance(key, Scalar):
            tell(key, path, "a key is a text or a number, not a list or a mapping")
        elif key.flaw:
            tell(key, path, key.flaw)
        elif key.value in found:
            shown, first = shorten(repr(key.value), 60), mapping.named[key.value][0].line
            tell(key, (*path, key.value), f"the key {shown} stands in line {first} already; keep one of them")
        elif isinstance(part, Scalar) and not part.flaw:  # nearly all values; no path is built for them
            found[key.value] = part.value
        else:
            found[key.value] = plain(part, tell, (*path, key.value))
    return found


def uncut(root: Node) -> Node:
    """Return *root*, in which each text that a comment cuts has a flaw."""
    rest = [root]
    while rest:
        node = rest.pop()
        if isinstance(node, Branch):
            rest += node.parts
        elif isinstance(node, Scalar):
            node.flaw = node.flaw or node.cut
    return root


# -- paths --------------------------------------------------------------------------------------------------


def find(root: Node, path: KeyPath, *, key: bool = False) -> tuple[Node, KeyPath]:
    """Return the node at *path*, or with *key* the key that names it, and the path as far as the document has it."""
    node = shown = root
    for depth, step in enumerate(path):
        if isinstance(node, Listing) and isinstance(step, int) and step < len(node.parts):
            node = shown = node.parts[step]
        elif isinstance(node, Mapping) and (
            found := node.named.get(step if step in node.named else _BOOLEANS.get(step))
        ):
            shown, node = found
        else:
            return node, path[:depth]
    return (shown if key else node), path


_BOOLEANS: dict[Any, Any] = {"yes": True, "no": False}
"""Two keys that YAML 1.1 reads as booleans; files written by such tools have the booleans in their place."""


def show_path(path: KeyPath) -> str:
    """Return *path* as people write it, `criteria[0].weight`, in at most 200 characters."""
    shown = "".join(_show_step(step) for step in path).removeprefix(".")
    return shown if len(shown) <= 200 else f"…{shown[-199:]}"  # noqa: PLR2004


def _show_step(step: Any) -> str:
    if isinstance(step, str) and step.replace("-", "_").isidentifier() and len(step) <= 40:  # noqa: PLR2004
        return f".{step}"
    return f"[{shorten(repr(step), 40)}]"


_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)", re.ASCII)


def steps_of(field: str) -> KeyPath:
    """Return the path that the *field* of a `DefinitionError` names, such as `criteria[2].id`."""
    return tuple(int(index) if index else name for index, name in _STEP.findall(field))


# -- unquoted scalars, after the core schema of YAML 1.2 ----------------------------------------------------

MERGING = "merge keys (<<) are not read; write out what they stand for"
"""The flaw of a merge key, where they are not read."""

LONGEST_NUMBER = 400
"""Characters. The largest finite float has 309 digits before its point."""

_WORDS: dict[str, bool | None] = {"": None, "~": None}
for _word, _value in (("null", None), ("true", True), ("false", False)):
    _WORDS |= dict.fromkeys((_word, _word.capitalize(), _word.upper()), _value)
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?(?:[Tt]|[ \t]+)[0-9][0-9]?:[0-9]{2}.*")
_TELLING = frozenset("tTfFnN~-+.0123456789<")
"""The first characters of the unquoted scalars that may be something other than text."""


def kind_of(scalar: str) -> str:
    """
    Return the kind of the unquoted *scalar* in YAML 1.2: `str`, `int`, `float`, `bool`, `null`, `merge` or `date`.

    `1_000` and `0b11`, numbers in YAML 1.1, are texts. So are dates, which the parsers of most languages still read.
    """
    if scalar and scalar[0] not in _TELLING:
        return "str"
    if scalar in _WORDS:
        return "null" if _WORDS[scalar] is None else "bool"
    if _INTEGER.fullmatch(scalar):
        return "int"
    if _FLOAT.fullmatch(scalar):
        return "float"
    return "merge" if scalar == "<<" else "date" if _DATE.fullmatch(scalar) else "str"


def read_scalar(scalar: str, *, dates: bool = False) -> tuple[Any, str]:
    """Return the value of the unquoted *scalar*, and its flaw ('' as a rule); *dates* are texts, or flaws."""
    if scalar and scalar[0] not in _TELLING:  # as most texts
        return scalar, ""
    match kind_of(scalar):
        case "null" | "bool":
            return _WORDS[scalar], ""
        case "int" | "float" as kind:
            return _read_number(scalar, kind)
        case "date" if not dates:
            return scalar, f'expected text, a number or a boolean, got the date {scalar}; quote it: "{scalar}"'
        case "merge":
            return scalar, MERGING
        case _:
            return scalar, ""


def _read_number(scalar: str, kind: str) -> tuple[Any, str]:
    if len(scalar) > LONGEST_NUMBER:
        return None, f"expected a number of at most {LONGEST_NUMBER} digits, got {len(scalar)}; quote it if it is text"
    if kind == "int":
        return int(scalar, 0 if scalar[:2] in ("0o", "0x") else 10), ""
    value = float(scalar.lower().replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(value):
        return None, f"expected a finite number, got {scalar}; quote it if it is text"
    return value, ""


# -- building, within limits --------------------------------------------------------------------------------

LONGEST_SCALAR = 200_000
"""Characters of one text."""

MOST_FLAWS = 100
"""Anchors, tags, dates and other nodes that cannot be read."""

DEEPEST = 128
"""Lists and mappings within one another: a tree of 64 questions within twenty nested rubrics."""


@frozen
class Limits:
    """
    The limits of a document.

    The limit on events bounds the time and the memory of a load also where the text repeats: nine anchors of nine
    aliases each are 9**9 nodes in a file of 400 bytes. So an alias counts as many events as the node that it repeats.

    Args:
        largest: Bytes.
        events: Scalars, and starts and ends of lists and mappings.
        aliases: Whether anchors, aliases and merge keys are read.
    """

    largest: int
    events: int
    aliases: bool = False


FOR_RUBRICS = Limits(512 * 1024, 20_000)
FOR_SUITES = Limits(4 * 1024 * 1024, 200_000, aliases=True)


def too_deep(source: str, place: tuple[int, int]) -> LoadError:
    """Return (not raise) the error of a document that nests deeper than `DEEPEST`, at line and column *place*."""
    return load_error(source, place, f"lists and mappings nest more than {DEEPEST} deep; make it flatter")


def load_error(source: str, place: tuple[int, int], message: str) -> LoadError:
    """Return (not raise) the error for a document that cannot be read any further."""
    return LoadError([Problem(source, *place, "", shorten(message, 400))])


@define
class Builder:
    """Builds a document: `add` its nodes in the order of the file, `close` its lists and mappings."""

    source: str
    limits: Limits = FOR_RUBRICS
    root: Node | None = None
    _open: list[Branch] = field(factory=list)
    _events: int = 0
    _flaws: int = 0

    def add(self, node: Node) -> None:
        """Put *node* where it belongs; a list or a mapping takes the nodes that follow until it is closed."""
        self._count(node)
        if node.flaw:
            self._flaws += not (node.flaw == MERGING and self.limits.aliases)
            if self._flaws > MOST_FLAWS:
                raise load_error(self.source, node.place, f"{node.flaw} (and so with {MOST_FLAWS} others above)")
        if self._open:
            self._open[-1].parts.append(node)
        elif self.root is None:
            self.root = node
        if isinstance(node, Branch):
            node.events = self._events - 1
            self._open.append(node)
            if len(self._open) > DEEPEST:
                raise too_deep(self.source, node.place)
        elif (
            isinstance(node, Scalar)
            and isinstance(node.value, str)
            and len(node.value) > LONGEST_SCALAR
            and not node.value.startswith("data:image/")  # which may be as large as the file
        ):
            message = f"a text has at most {LONGEST_SCALAR} characters, this one {len(node.value)}; shorten it"
            raise load_error(self.source, node.place, message)

    @property
    def key(self) -> Node | None:
        """The key that waits for its value, if one does."""
        parts = self._open[-1].parts if self._open and isinstance(self._open[-1], Mapping) else []
        return parts[-1] if len(parts) % 2 else None

    def close(self) -> Branch:
        """End the innermost list or mapping, and return it."""
        node = self._open.pop()
        self._count(node)
        node.events = self._events - node.events
        if self._open:
            self._open[-1].height = max(self._open[-1].height, node.height + 1)
        return node

    def repeat(self, node: Node) -> bool:
        """Put *node*, which is in the document already, here too; False where it has not ended yet."""
        if any(node is ancestor for ancestor in self._open):
            return False
        events, height = _extent(node)
        self._events += events - 1
        self._count(node)
        if len(self._open) + height > DEEPEST:
            raise too_deep(self.source, node.place)
        if self._open:
            self._open[-1].parts.append(node)
            self._open[-1].height = max(self._open[-1].height, height + 1)
        return True

    def adopt(self, owner: Mapping, key: Node, value: Node) -> None:
        """Let *owner*, which has ended, take a *key* and a *value* of another mapping: they count once more."""
        events, height = _extent(value)
        self._events += events
        self._count(key)
        owner.events += events + 1
        owner.height = max(owner.height, height + 1)
        owner.parts.extend((key, value))

    def _count(self, node: Node) -> None:
        self._events += 1
        if self._events > self.limits.events:
            message = f"a document has at most {self.limits.events} parts (texts, lists, mappings); split the file"
            raise load_error(self.source, node.place, message)


def _extent(node: Node) -> tuple[int, int]:
    """Return the events and the height of *node*."""
    return (node.events, node.height) if isinstance(node, Branch) else (1, 1)
