"""Growing a document node by node, within limits that no rubric needs and a hostile file meets at once."""

from __future__ import annotations

from attrs import define, field

from rubric.errors import LoadError, Problem
from rubric.formats.documents import Listing, Mapping, Node, Scalar
from rubric.showing import shorten

__all__ = ["Growing", "refused"]

LARGEST = 512 * 1024
"""Bytes of a document."""
MOST_EVENTS = 20_000
"""Scalars, and starts and ends of lists and mappings."""
LONGEST_SCALAR = 200_000
"""Characters of one text."""
MOST_FLAWS = 100
"""Anchors, tags, dates and whatever else cannot be read as it stands."""
DEEPEST = 128
"""Lists and mappings within one another: a tree of 64 questions within twenty rubrics that nest."""


def refused(source: str, place: tuple[int, int], message: str, path: str = "") -> LoadError:
    """Return (not raise) the error for a document that cannot be read any further."""
    return LoadError([Problem(source, *place, path, shorten(message, 400))])


@define
class Growing:
    """A document that is being read; `add` its nodes in the order of the file, `close` its lists and mappings."""

    source: str
    root: Node | None = None
    _open: list[Listing | Mapping] = field(factory=list)
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

    def close(self) -> None:
        """End the innermost list or mapping."""
        self._count(self._open.pop())

    def _enter(self, node: Listing | Mapping) -> None:
        self._open.append(node)
        if len(self._open) > DEEPEST:
            message = f"lists and mappings nest more than {DEEPEST} deep; make it flatter"
            raise refused(self.source, node.place, message)

    def _count_flaw(self, node: Node) -> None:
        self._flaws += bool(node.flaw)
        if self._flaws > MOST_FLAWS:
            raise refused(self.source, node.place, f"{node.flaw} (and so with {MOST_FLAWS} others above)")

    def _count(self, node: Node) -> None:
        self._events += 1
        if self._events > MOST_EVENTS:
            message = f"a document has at most {MOST_EVENTS} parts (texts, lists, mappings); split the file"
            raise refused(self.source, node.place, message)
