"""
Judges by a name: what installed distributions register as entry points of the group `rubric.judges`.

A name without a slash is looked up where a text becomes a judge, and a judge that no file can hold, such as a function,
is written as the name under which it is registered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, TypeVar

from rubric.errors import DefinitionError
from rubric.internals import plugins

GROUP = "rubric.judges"
T = TypeVar("T")


def registered_judge(as_judge: Callable[[Any], T], name: str) -> T | None:
    """
    Return what is registered as *name*, by *as_judge*; None if there is none.

    Raises:
        DefinitionError: It cannot be loaded, is no judge, or several distributions register the name.
    """
    if "/" in name or name == "offline" or name not in _names(tuple(sys.path)):
        return None
    found = plugins.load(GROUP, name, "judge")
    assert found is not None  # noqa: S101 - it is one of the names
    if isinstance(found.value, str):
        raise DefinitionError("judge", f"{name!r} of {found.source} is a text; register Judge({found.value!r})")
    try:
        return as_judge(found.value)
    except DefinitionError as problem:
        raise DefinitionError("judge", f"{name!r} of {found.source} is no judge: {problem.message}") from problem


def name_of(judge: object, as_judge: Callable[[Any], object]) -> str | None:
    """Return the name under which *judge* is registered; None if it is not."""
    found = plugins.load_all(GROUP, partial(registered_judge, as_judge))
    return next((name for name, each in found.items() if each == judge), None)


@lru_cache(maxsize=8)
def _names(_path: tuple[str, ...]) -> frozenset[str]:
    """Return all names, by the path on which distributions lie: to list them is slow."""
    return frozenset(plugins.names(GROUP))
