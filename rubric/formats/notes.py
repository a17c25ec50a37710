"""What is noted while a document of another system is read: errors and warnings, each with its place in the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field

from rubric.errors import DefinitionError, LoadError, Problem
from rubric.formats.documents import Document, Node, Path, find, plain, show_path
from rubric.showing import shorten
from rubric.suites.cases import Place
from rubric.validating import misspelt

__all__ = ["Notes"]

LONGEST = 400
"""Characters of one message."""

_ASIDE = ("x-", ".")
"""How authors begin keys of their own, such as those that hold YAML anchors."""


@define
class Notes:
    """
    Collects what is wrong (`error`) and what cannot be carried over (`warn`) while *document* is read.

    A path is a tuple of keys and indices from the root, such as `("tests", 0, "assert", 2, "type")`.
    """

    document: Document
    errors: list[Problem] = field(factory=list)
    warnings: list[Problem] = field(factory=list)

    def data(self) -> Any:
        """Return the document as plain data; flaws of its nodes are noted as errors."""
        return plain(self.document.root, self._flaw)

    def _flaw(self, node: Node, path: Path, message: str) -> None:
        self.errors.append(self._problem(node, path, message))

    def error(self, path: Path, message: str | DefinitionError, *, key: bool = False) -> None:
        """Note that what stands at *path* is wrong; with *key*, point at the key that names it."""
        self.errors.append(self._at(path, str(message), key=key))

    def warn(self, path: Path, message: str, *, key: bool = False) -> None:
        """Note that what stands at *path* is read otherwise than it says, or not at all."""
        told = self._at(path, message, key=key)
        if told not in self.warnings:  # what many cases share is read for each of them
            self.warnings.append(told)

    def unknown(
        self, path: Path, message: str, known: Iterable[str], elsewhere: Mapping[Any, str] | None = None
    ) -> None:
        """
        Note the key that ends *path* and that nothing is known by at this place.

        A key that is nearly a known one, or that has its place *elsewhere*, was meant to grade: read over, it would
        leave a test without its assertions. So it is wrong; any other is told with the *message*.

        Args:
            path: Of the key.
            message: What becomes of a key that is simply another.
            known: The keys that may stand here.
            elsewhere: For keys of other places, where they belong.
        """
        key = path[-1]
        near = "" if str(key).startswith(_ASIDE) else misspelt(key, known)
        shown = shorten(str(key), 40)
        if elsewhere and key in elsewhere:
            told = self._at(path, f"{shown!r} has no effect here; {elsewhere[key]}", key=True)
        elif near:
            told = self._at(path, f"unknown key {shown!r}; did you mean {near!r}?", key=True)
        else:
            self.warn(path, message, key=True)
            return
        if told not in self.errors:  # what many cases share is read for each of them
            self.errors.append(told)

    def place(self, path: Path) -> Place:
        """Return where *path* stands."""
        node, _ = find(self.document.root, path)
        return Place(self.document.source, node.line, node.column)

    def finish(self) -> None:
        """Raise what was noted as wrong, all of it, in the order of the file."""
        if self.errors:
            raise LoadError(sorted(self.errors, key=lambda problem: (problem.line, problem.column)))

    def _at(self, path: Path, message: str, *, key: bool) -> Problem:
        node, known = find(self.document.root, path, key=key)
        return self._problem(node, known, message)

    def _problem(self, node: Node, path: Path, message: str) -> Problem:
        return Problem(self.document.source, *node.place, show_path(path), shorten(message, LONGEST))
