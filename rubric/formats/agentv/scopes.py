"""What a part of a file is read with: its notes, its folder, its generation and the variables that it may show."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from attrs import evolve, field, frozen

from rubric.errors import DefinitionError
from rubric.formats.agentv.generations import Generation
from rubric.formats.agentv.quoting import unquoted
from rubric.formats.documents import Path, Unreadable
from rubric.formats.includes.loading import Loading
from rubric.formats.notes import Notes
from rubric.formats.templates import render, show_environment
from rubric.showing import as_json, shorten
from rubric.validating import suggest

__all__ = ["Scope", "as_text"]

THRESHOLD = 0.8
"""Where an AgentV case passes, unless it says otherwise."""

_SLOT = re.compile(r"\{\{\s*([^\W\d]\w*(?:\.\w+)*)\s*\}\}")
_ENVIRONMENT = re.compile(r"\{\{\s*(?:process\.)?env\b|\$\{\{")
_EXPRESSION = re.compile(r"\{%|\{\{[^{}]*[^\w\s.{}][^{}]*\}\}")
_MISSING = object()
_DEEPEST = 4


def as_text(value: Any) -> str:
    """Return *value* as people read it: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else as_json(value)


def _as_written(value: Any) -> str:
    """Return what was probably written for *value*, a boolean or a number; empty for all else."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, int | float) else ""


@frozen
class Scope:
    """
    Where a part of a file is read.

    Args:
        notes: Of the file.
        loading: Where the file stands, and what it may see.
        generation: What the file is written in.
        variables: The `vars` of the case, rendered.
        told: What was warned of already, where once is enough.
    """

    notes: Notes
    loading: Loading
    generation: Generation
    variables: Mapping[str, Any] = field(factory=dict)
    told: set[str] = field(factory=set)

    @property
    def required(self) -> bool:
        """Whether a criterion that does not say so is a gate: as documented, unless the caller decides."""
        return self.is_current if self.loading.required is None else self.loading.required

    @property
    def is_strict(self) -> bool:
        """Whether a required item with bands needs 10 of 10: as the code before generation 2 has it, not its pages."""
        return self.loading.required is True and not self.is_current

    @property
    def is_current(self) -> bool:
        """Whether the file is of generation 2, in which older names are errors."""
        return self.generation == "agentv-2"

    def error(self, path: Path, message: str | DefinitionError, *, key: bool = False) -> None:
        """Note that what stands at *path* is wrong."""
        self.notes.error(path, message, key=key)

    def warn(self, path: Path, message: str, *, key: bool = False) -> None:
        """Note that what stands at *path* is read otherwise than it says, or not at all."""
        self.notes.warn(path, message, key=key)

    def unknown(
        self, path: Path, message: str, known: Collection[str], elsewhere: Mapping[Any, str] | None = None
    ) -> None:
        """Note a key that is not *known*: see `Notes.unknown`."""
        self.notes.unknown(path, f"{message}; it is not used{suggest(str(path[-1]), known)}", known, elsewhere)

    def once(self, path: Path, message: str) -> None:
        """Warn of the key at *path*, the first time that this is said."""
        if message not in self.told:
            self.told.add(message)
            self.warn(path, message, key=True)

    def seeing(self, variables: Mapping[str, Any], path: Path) -> Scope:
        """Return the scope of a case with *variables*; they may show one another, but for those that are raw."""
        raw = {name: said for name, v in variables.items() if isinstance(v, str) and (said := unquoted(v)) is not None}
        scope = evolve(self, variables={**variables, **raw})
        for _ in range(_DEEPEST):
            rendered = {
                name: value if name in raw else scope.filled(value, (*path, name))
                for name, value in scope.variables.items()
            }
            if rendered == scope.variables:
                break
            scope = evolve(self, variables=rendered)
        return scope

    def filled(self, value: Any, path: Path) -> Any:
        """Return plain data with each text in it filled."""
        if isinstance(value, str):
            return self.fill(value, path)
        if isinstance(value, list):
            return [self.filled(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, Mapping):
            return {key: self.filled(item, (*path, key)) for key, item in value.items()}
        return value

    def fill(self, text: str, path: Path) -> str:
        """
        Return *text* with variables in the place of `{{ name }}`.

        A name that is no variable is left as it stands, as AgentV does.
        """
        if (raw := unquoted(text)) is not None:
            return raw
        if _ENVIRONMENT.search(text):
            text = show_environment(text, self.loading, self.notes, path)
        if not self.is_current and not self.variables:
            return text
        if not _EXPRESSION.search(text):
            return _SLOT.sub(self._value, text)
        try:
            return render(text, {**self.variables, "vars": dict(self.variables)}, unknown="keep")
        except DefinitionError as problem:
            self.error(path, problem)
            return text

    def _value(self, match: re.Match[str]) -> str:
        found = self.look_up(match[1])
        return match[0] if found is None else found

    def look_up(self, name: str) -> str | None:
        """Return the variable called *name*, such as `topic` or `vars.person.name`, as text; None if there is none."""
        value: Any = self.variables
        for step in name.removeprefix("vars.").split("."):
            value = value.get(step, _MISSING) if isinstance(value, Mapping) else _MISSING
        return None if value is _MISSING else as_text(value)

    def text(self, value: Any, path: Path) -> str:
        """Return *value*, which must be a text, filled; empty, with an error noted, if it is something else."""
        if isinstance(value, str):
            return self.fill(value, path)
        if isinstance(value, Unreadable):  # its flaw is noted already
            return ""
        said = _as_written(value)
        cure = f'; quote it: "{said}"' if said else ""
        self.error(path, f"expected text, got {shorten(repr(value))}{cure}")
        return ""

    def number(self, value: Any, path: Path, *, above: bool = False, high: float | None = None) -> float | None:
        """Return *value*, a number from 0 (or just *above* it) to *high*; None, with an error noted, for all else."""
        fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
        if fits and not (above and value == 0) and (high is None or value <= high):
            return float(value) if isinstance(value, float) else value
        allowed = f"a number {'above' if above else 'from'} 0" + ("" if high is None else f" to {high:g}")
        self.error(path, f"expected {allowed}, got {shorten(repr(value))}")
        return None

    def flag(self, value: Any, path: Path) -> bool | None:
        """Return *value*, true or false; None, with an error noted, for all else."""
        if isinstance(value, bool):
            return value
        self.error(path, f"expected true or false, got {shorten(repr(value))}")
        return None
