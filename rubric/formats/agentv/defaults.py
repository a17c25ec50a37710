"""What the cases of a file share: `default_test`, suite-level graders and input, and the references of a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as Folder
from typing import Any

from attrs import evolve, field, frozen

from rubric.errors import LoadError
from rubric.formats.agentv.generations import GRADERS
from rubric.formats.agentv.judging import read_judge
from rubric.formats.agentv.scopes import Scope
from rubric.formats.documents import Path
from rubric.formats.includes.including import is_reference, read_document_at
from rubric.judges import Judge
from rubric.showing import shorten
from rubric.validating import suggest

__all__ = ["Defaults", "Entries", "entries_of", "read_defaults"]

_REF = "ref://"
_CONFIG = ".agentv/config.yaml"
_DEEPEST = 8

Entries = tuple[Any, Scope, Path]
"""A list of graders, and where it stands."""


@frozen
class Defaults:
    """
    What the cases of a file share.

    Args:
        test: The fields of `default_test`, and where they stand.
        suite: The fields of the file itself, and where they stand.
        prompts: How the cases' variables become a prompt (generation 2).
    """

    suite: Mapping[Any, Any]
    scope: Scope
    test: Mapping[Any, Any] = field(factory=dict)
    test_scope: Scope | None = None
    test_path: Path = ()

    @property
    def variables(self) -> Mapping[str, Any]:
        """The variables that every case has."""
        found = self.test.get("vars")
        return found if isinstance(found, Mapping) else {}

    @property
    def options(self) -> Mapping[Any, Any]:
        """The options of `default_test`."""
        found = self.test.get("options")
        return found if isinstance(found, Mapping) else {}

    def judge(self) -> Judge | None:
        """Return who judges where a case names nobody."""
        if self.test_scope is None:
            return None
        return read_judge(self.options, self.test_scope, (*self.test_path, "options"))

    def graders(self, variables: Mapping[str, Any]) -> list[Entries]:
        """Return the graders that every case gets after its own, with the *variables* of a case."""
        found = [(value, evolve(self.scope, variables=variables), path) for value, path in entries_of(self.suite)]
        if self.test_scope is not None:
            scope = evolve(self.test_scope, variables=variables)
            found += [(value, scope, (*self.test_path, *path)) for value, path in entries_of(self.test)]
        return found


def entries_of(part: Mapping[Any, Any]) -> list[tuple[Any, Path]]:
    """Return the lists of graders that a case, or a file, has, each with its path; inline rubrics come first."""
    execution = part.get("execution")
    nested = execution if isinstance(execution, Mapping) else {}
    places = [(part, (key,)) for key in GRADERS] + [(nested, ("execution", key)) for key in GRADERS]
    inline = [([{"type": "rubric", "rubrics": part["rubrics"]}], ("rubrics",))] if part.get("rubrics") else []
    return [*inline, *((place[path[-1]], path) for place, path in places if place.get(path[-1]) is not None)]


def read_defaults(data: Mapping[Any, Any], scope: Scope) -> Defaults:
    """Return what the cases of *data*, a whole file, share."""
    defaults = Defaults(data, scope)
    value = data.get("default_test")
    if value is None:
        return defaults
    if isinstance(value, str):
        return _included(value, defaults, scope)
    if isinstance(value, Mapping):
        return evolve(defaults, test=value, test_scope=scope, test_path=("default_test",))
    message = f"expected the fields of a test, `file://...` or `ref://...`; got {shorten(repr(value))}"
    scope.error(("default_test",), message)
    return defaults


def _included(value: str, defaults: Defaults, scope: Scope) -> Defaults:
    path: Path = ("default_test",)
    reference = _resolved(value, defaults.suite, scope, path)
    if reference is None:
        return defaults
    included = read_document_at(reference, scope.loading, scope.notes, path)
    if included is None:
        return defaults
    notes, loading = included
    test = notes.data()
    if not isinstance(test, Mapping):
        notes.error((), "expected the fields of a test: `options`, `vars`, `assert`, `threshold`")
        return defaults
    return evolve(defaults, test=test, test_scope=evolve(scope, notes=notes, loading=loading))


def _resolved(value: str, data: Mapping[Any, Any], scope: Scope, path: Path) -> str | None:
    """Return *value* with the names of a project followed to the file that they stand for."""
    names = {**_project(scope), **(data["refs"] if isinstance(data.get("refs"), Mapping) else {})}
    for _ in range(_DEEPEST):
        value = scope.fill(value.strip(), path)
        if not value.startswith(_REF):
            if is_reference(value):
                return value
            scope.error(path, f"expected `file://...` or `ref://...`, got {shorten(repr(value))}")
            return None
        name = value.removeprefix(_REF)
        found = names.get(name)
        if not isinstance(found, str):
            hint = suggest(name, names) if names else f"; write it under `refs` in {_CONFIG}"
            scope.error(path, f"no reference is called {name!r}{hint}")
            return None
        value = found
    scope.error(path, "the references lead from one to another without end")
    return None


def _project(scope: Scope) -> dict[str, Any]:
    """Return the references of the project's configuration; none where it has no such file."""
    root = scope.loading.root
    if root is None or not Folder(root, _CONFIG).is_file():
        return {}
    loading = evolve(scope.loading, folder=root)
    try:
        included = read_document_at(_CONFIG, loading, scope.notes, ("default_test",))
    except LoadError as problem:
        scope.error(("default_test",), str(problem))
        return {}
    data = None if included is None else included[0].data()
    refs = data.get("refs") if isinstance(data, Mapping) else None
    return dict(refs) if isinstance(refs, Mapping) else {}
