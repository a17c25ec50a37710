"""Growing a document node by node, within limits that no rubric needs and a hostile file meets at once."""

from __future__ import annotations

from attrs import define, field, frozen

from rubric.errors import LoadError, Problem
from rubric.formats.documents import Listing, Mapping, Node, Scalar
from rubric.formats.scalars import MERGING
from rubric.showing import shorten

__all__ = ["FOR_RUBRICS", "FOR_SUITES", "Growing", "Limits", "refused"]

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
