"""The problems of a native document, each at its place, in the order of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from rubric.errors import DefinitionError, LoadError, Problem
from rubric.formats.document import Document, KeyPath, Node, find, plain, refused, show_path
from rubric.formats.fields import TOO_DEEP, SeveralError, UnknownKeyError, WrongKeyError, problems_of
from rubric.internals.fields import suggest
from rubric.internals.text import shorten

MOST = 100
"""Problems that one error lists; the rest is counted."""

T = TypeVar("T")


def read_as(read: Callable[[Any], T], document: Document) -> T:
    """
    Return *document* as *read* reads its data.

    Raises:
        LoadError: With all that is wrong.
    """
    # Of several problems at one place, the first is shown.
    found: dict[tuple[int, int], tuple[KeyPath, DefinitionError | str]] = {}

    def note(node: Node, path: KeyPath, what: DefinitionError | str) -> None:
        found.setdefault(node.place, (path, what))

    value: T | None = None
    try:
        value = read(plain(document.root, note))
    except (DefinitionError, SeveralError) as problem:
        for path, error in problems_of(problem):
            note(*find(document.root, path, key=isinstance(error, WrongKeyError)), error)
    except RecursionError:
        raise refused(document.source, document.root.place, TOO_DEEP) from None
    if found or value is None:
        raise LoadError([*_shown(found, document.source)])
    return value


def _shown(found: dict[tuple[int, int], tuple[KeyPath, DefinitionError | str]], source: str) -> Iterator[Problem]:
    for position, place in enumerate(sorted(found)):
        path, what = found[place]
        if position == MOST:
            yield Problem(source, *place, "", f"and {len(found) - MOST} more problems from here on")
            return
        if isinstance(what, UnknownKeyError):  # near names are looked for here, since only MOST problems are shown
            message = f"unknown key{suggest(shorten(str(what.key), 40), what.allowed)}"
        else:
            message = what if isinstance(what, str) else what.message
        yield Problem(source, *place, show_path(path), shorten(message, 400))
