"""What cattrs and the nouns complain about, as problems with a place: all of them, in the order of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

from attrs import define, field, frozen
from cattrs import AttributeValidationNote, BaseValidationError, ForbiddenExtraKeysError, IterableValidationNote

from rubric.errors import DefinitionError, LoadError, Problem
from rubric.formats.cursor import WrongKeyError
from rubric.formats.document import Document, KeyPath, Node, find, plain, refused, show_path
from rubric.formats.nouns import ANSWERS, KEYS, converter
from rubric.internals.fields import suggest
from rubric.internals.text import shorten
from rubric.values.criteria import Criterion

MOST = 100
"""Problems that one error lists; the rest is counted."""

LONGEST = 400
"""Characters of one message."""

T = TypeVar("T")


def read_as(cls: type[T], document: Document) -> T:
    """
    Return *document* as a noun of class *cls*.

    Raises:
        LoadError: With all that is wrong.
    """
    found = Found(document)
    noun: T | None = None
    try:
        noun = converter.structure(plain(document.root, found.tell), cls)
    except (BaseValidationError, DefinitionError) as problem:
        found.add(problem)
    except RecursionError:
        raise refused(document.source, document.root.place, _TOO_DEEP) from None
    if found.complaints or noun is None:
        raise found.error()
    return noun


_TOO_DEEP = "this nests too deep to be read from so deep a stack; make it flatter"


@frozen
class Complaint:
    """One thing that is wrong: at which path, at which node, and what to say."""

    node: Node
    path: KeyPath
    what: Exception | str


@define
class Found:
    """What is wrong with a document, as it comes up."""

    document: Document
    complaints: list[Complaint] = field(factory=list)

    def tell(self, node: Node, path: KeyPath, message: str) -> None:
        """Add the flaw of a node."""
        self.complaints.append(Complaint(node, path, message))

    def add(self, problem: Exception) -> None:
        """Add what structuring came up with."""
        for path, error in leaves(problem, ()):
            about_key = isinstance(error, UnknownKeyError | WrongKeyError)
            node, known = find(self.document.root, path, key=about_key)
            self.complaints.append(Complaint(node, known, error))

    def error(self) -> LoadError:
        """Return all as one error; of several complaints at one place the first counts, the others follow."""
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
        what = complaint.what
        message = what if isinstance(what, str) else words(what)
        place = complaint.node.place
        return Problem(self.document.source, *place, show_path(complaint.path), shorten(message, LONGEST))


class UnknownKeyError(Exception):
    """A key that the noun *cl* does not have."""

    def __init__(self, key: Any, cl: type) -> None:
        super().__init__(key, cl)
        self.key, self.cl = key, cl


class MissingKeyError(Exception):
    """A key that a noun must have."""


def leaves(problem: Exception, path: KeyPath, cl: type = object) -> Iterator[tuple[KeyPath, Exception]]:
    """
    Yield what *problem* is made of, each with its path.

    What is no complaint about the data is raised. *cl* is the noun in which the problem came up.
    """
    note = _note(problem)
    if isinstance(note, AttributeValidationNote):
        path = (*path, _key(cl, note.name))
    elif isinstance(note, IterableValidationNote):
        path = (*path, note.index)
    match problem:
        case BaseValidationError():
            for part in problem.exceptions:
                yield from leaves(part, path, problem.cl)
        case ForbiddenExtraKeysError():
            for key in problem.extra_fields:
                yield (*path, key), UnknownKeyError(key, problem.cl)
        case KeyError():
            yield path[:-1], MissingKeyError(path[-1])
        case DefinitionError():
            yield (*path, *_steps(problem, note, cl)), problem
        case RecursionError():
            yield path, DefinitionError("", _TOO_DEEP)
        case _:
            raise problem


def _note(problem: Exception) -> object:
    kinds = AttributeValidationNote | IterableValidationNote
    return next((note for note in getattr(problem, "__notes__", ()) if isinstance(note, kinds)), None)


def _key(cl: type, name: str) -> str:
    return KEYS.get(cl, {}).get(name, name)


_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)", re.ASCII)


def _steps(problem: DefinitionError, note: object, cl: type) -> KeyPath:
    """Return the steps of the field that a noun complains about, without the one that the *note* gives already."""
    steps = [int(index) if index else _key(cl, name) for index, name in _STEP.findall(problem.field)]
    repeated = isinstance(note, AttributeValidationNote) and steps[:1] == [_key(cl, note.name)]
    return tuple(steps[1:] if repeated else steps)


def words(problem: Exception) -> str:
    """Return what to say about *problem*: what was found, what is allowed, the cure."""
    match problem:
        case UnknownKeyError():
            return f"unknown key{suggest(shorten(str(problem.key), 40), _allowed(problem.cl))}"
        case MissingKeyError():
            return f"the key {problem.args[0]!r} is missing; add it"
        case DefinitionError():
            return problem.message
        case _:
            return str(problem)


def _allowed(cl: type) -> list[str]:
    names = [*KEYS[cl].values()]
    return [*names, *(key for key in ANSWERS if key not in names)] if cl is Criterion else names
