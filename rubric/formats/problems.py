"""Problems with a document, each at its place: all of them, in the order of the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from rubric.errors import DefinitionError, LoadError, Problem
from rubric.formats.document import Document, KeyPath, Node, find, plain, refused, show_path
from rubric.formats.fields import TOO_DEEP, SeveralError, UnknownKeyError, WrongKeyError, problems_of
from rubric.internals.fields import suggest
from rubric.internals.text import shorten

MOST = 100
"""Problems that one error lists; the rest is counted."""

LONGEST = 400
"""Characters of one message."""

T = TypeVar("T")


def read_as(read: Callable[[Any], T], document: Document) -> T:
    """
    Return *document* as *read* reads its data.

    Raises:
        LoadError: With all that is wrong.
    """
    found = Found(document)
    value: T | None = None
    try:
        value = read(plain(document.root, found.tell))
    except (DefinitionError, SeveralError) as problem:
        found.add(problem)
    except RecursionError:
        raise refused(document.source, document.root.place, TOO_DEEP) from None
    if found.complaints or value is None:
        raise found.error()
    return value


@frozen
class Complaint:
    """One problem: at which path, at which node, and its message."""

    node: Node
    path: KeyPath
    what: DefinitionError | str


@define
class Found:
    """The problems of a document, as they are found."""

    document: Document
    complaints: list[Complaint] = field(factory=list)

    def tell(self, node: Node, path: KeyPath, message: str) -> None:
        """Add the flaw of a node."""
        self.complaints.append(Complaint(node, path, message))

    def add(self, problem: DefinitionError | SeveralError) -> None:
        """Add the problems that a reader has raised."""
        for path, error in problems_of(problem):
            node, known = find(self.document.root, path, key=isinstance(error, WrongKeyError))
            self.complaints.append(Complaint(node, known, error))

    def error(self) -> LoadError:
        """Return all as one error; of several problems at one place it has the first."""
        first: dict[tuple[int, int], Complaint] = {}
        for complaint in self.complaints:
            first.setdefault(complaint.node.place, complaint)
        ordered = [first[place] for place in sorted(first)]
        problems = [self._problem(complaint) for complaint in ordered[:MOST]]
        if len(ordered) > MOST:
            rest = Complaint(ordered[MOST].node, (), f"and {len(ordered) - MOST} more problems from here on")
            problems.append(self._problem(rest))
        return LoadError(problems)

    def _problem(self, complaint: Complaint) -> Problem:
        message = shorten(_message(complaint.what), LONGEST)
        return Problem(self.document.source, *complaint.node.place, show_path(complaint.path), message)


def _message(what: DefinitionError | str) -> str:
    match what:
        case str():
            return what
        case UnknownKeyError():  # near names are looked for here, since only MOST problems are shown
            return f"unknown key{suggest(shorten(str(what.key), 40), what.allowed)}"
        case _:
            return what.message
