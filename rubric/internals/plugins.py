"""
Plug-ins: what installed distributions register by entry point.

Entry points are looked up for a name that is not ours, or to list all names, and not before: a look-up reads the
metadata of every installed distribution. A plug-in is imported when it is used. One that cannot be loaded stops what
needs it by name; all else goes on without it, with one warning.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from attrs import frozen

from rubric.errors import DefinitionError
from rubric.internals.secrets import describe


@frozen
class Plugin:
    """What a distribution registers: the loaded object, and its *source*, the distribution with its version."""

    value: Any
    source: str


class PluginWarning(UserWarning):
    """A plug-in is left out, since it cannot be loaded; the text names its distribution and the error."""


T = TypeVar("T")
_NAME, _PROJECT = "rubric-grade", Path(__file__).parents[2] / "pyproject.toml"


def entry_points_of(group: str, name: str = "") -> list[EntryPoint]:
    """
    Return the entry points of *group*, all or those called *name*, sorted.

    A checkout may be imported without an installation, or be newer than that: ours are then what its project file says.
    """
    found = [*entry_points(group=group)]
    if _PROJECT.is_file():
        project = tomllib.loads(_PROJECT.read_text("utf-8")).get("project", {})
        if project.get("name") == _NAME:
            own = project.get("entry-points", {}).get(group, {})
            found = [point for point in found if point.dist is None or point.dist.name != _NAME]
            found += [EntryPoint(name, value, group) for name, value in own.items()]
    return sorted((one for one in found if name in ("", one.name)), key=lambda point: point.name)


def names(group: str) -> tuple[str, ...]:
    """Return the names that distributions register in *group*, sorted."""
    return tuple(dict.fromkeys(point.name for point in entry_points_of(group)))


def load(group: str, name: str, kind: str) -> Plugin | None:
    """
    Return the plug-in called *name*; None if there is none.

    Args:
        group: Of entry points, such as `rubric.reporters`.
        kind: What it is, for errors: `reporter`.

    Raises:
        DefinitionError: It cannot be loaded, or several distributions register the name.
    """
    found = entry_points_of(group, name)
    if not found:
        return None
    if len(found) > 1:
        sources = " and ".join(sorted(_source(each) for each in found))
        raise DefinitionError(kind, f"{name!r} is registered by {sources}; uninstall all but one of them")
    source = _source(found[0])
    try:
        return Plugin(found[0].load(), source)
    except Exception as error:
        message = f"{name!r} of {source} cannot be loaded: {describe(error)}; upgrade that distribution or uninstall it"
        raise DefinitionError(kind, message) from error


def load_all(group: str, find: Callable[[str], T]) -> dict[str, T]:
    """Return what *find* returns for each name in *group*; a `PluginWarning` tells of each that it refuses."""
    found = {}
    for name in names(group):
        try:
            found[name] = find(name)
        except DefinitionError as problem:
            warnings.warn(str(problem), PluginWarning, stacklevel=2)
    return found


def _source(entry: EntryPoint) -> str:
    return "an unknown distribution" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
