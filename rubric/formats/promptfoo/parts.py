"""A part of a configuration: its value, where it stands for errors, and where its own references start."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve, field, frozen

from rubric.errors import DefinitionError, Problem
from rubric.formats.cursor import Loading, Notes
from rubric.formats.document import KeyPath
from rubric.formats.includes import is_reference, read_document_at
from rubric.formats.templates.render import is_template, names_in, render, show_environment
from rubric.internals.fields import suggest
from rubric.internals.text import shorten
from rubric.suites.cases import Place

_PROVIDED = frozenset({"env", "output", "rubric", "context", "vars", "prompt"})
"""Names that promptfoo gives a template itself."""

_MINDED = re.compile(r"\{%|\bor\b|default|\bd\(")
"""How a template looks that minds whether a variable is there."""


def _missing(text: str, variables: Mapping[str, Any]) -> list[str]:
    """Return the names in *text* that nothing stands for, in order."""
    if _MINDED.search(text):
        return []
    return sorted(name for name in names_in(text) - variables.keys() - _PROVIDED if not name.startswith("_"))


@frozen(eq=False)
class Part:
    """
    A part of a document.

    Args:
        value: Plain data.
        notes: Of the document that it stands in.
        loading: What the document is read with.
        path: From the root of the document.
        root: The whole document, as plain data.
    """

    value: Any
    notes: Notes
    loading: Loading
    path: KeyPath = ()
    root: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, notes: Notes, loading: Loading) -> Part:
        """Return the whole document of *notes*."""
        data = notes.data()
        return cls(data, notes, loading, (), data)

    def at(self, *steps: Any) -> Part:
        """Return what stands at *steps* within; its value is None where there is nothing."""
        value: Any = self.value
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else value[step]
        return evolve(self, value=value, path=(*self.path, *steps))

    def has(self, key: str) -> bool:
        """Say whether it is a mapping with something at *key*."""
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def find(self, key: str) -> Part | None:
        """Return what stands at *key*, if anything does."""
        return self.at(key) if self.has(key) else None

    def holding(self, value: Any) -> Part:
        """Return the part with another *value*, at the same place."""
        return evolve(self, value=value)

    def items(self) -> Iterator[tuple[str, Part]]:
        """Yield the keys, as texts, and the values of a mapping."""
        for key in self.value:
            yield str(key), self.at(key)

    def parts(self) -> list[Part]:
        """Return the items of a list."""
        return [self.at(index) for index in range(len(self.value))]

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.notes.place(self.path)

    def error(self, message: str | DefinitionError) -> None:
        """Note that it is wrong; the same error at the same place is noted once."""
        self.notes.error(self.path, message)
        _drop_repeated(self.notes.errors)

    def warn(self, message: str) -> None:
        """Note that it is read otherwise than it says, or not at all."""
        self.notes.warn(self.path, message)
        _drop_repeated(self.notes.warnings)

    def mapping(self, what: str) -> Part | None:
        """Return it if it is a mapping; else note that *what* is one."""
        if isinstance(self.value, dict):
            return self
        self.error(f"expected {what} (a mapping), got {shorten(repr(self.value), 60)}")
        return None

    def listed(self, what: str) -> list[Part]:
        """Return the items of a list; what is no list is noted, and nothing is none."""
        if self.value is None:
            return []
        if isinstance(self.value, list):
            return self.parts()
        self.error(f"expected a list of {what}, got {shorten(repr(self.value), 60)}")
        return []

    def number(self) -> float | None:
        """Return it as a number, if it is one or is written as one; else note that it is none."""
        value = self.value
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                value = None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.error(f"expected a number, got {shorten(repr(self.value), 60)}")
            return None
        return value

    def text(self, what: str) -> str | None:
        """Return it if it is a text; else note that *what* is one."""
        if isinstance(self.value, str):
            return self.value
        self.error(f"expected {what} (a text), got {shorten(repr(self.value), 60)}")
        return None

    def filled(self, text: str, variables: Mapping[str, Any]) -> str:
        """
        Return *text* with *variables*, and the environment variables that are declared, in their places.

        Raises:
            DefinitionError: It is no template.
        """
        if _ENVIRONMENT.search(text):
            text = show_environment(text, self.loading, self.notes, self.path)
        if not is_template(text):
            return text
        for name in _missing(text, variables):
            hint = suggest(name, [*variables]) if variables else ""
            self.warn(f"there is no variable {name!r}, so nothing stands in its place{hint}")
        return render(text, variables)

    def followed(self) -> Part | None:
        """Return the document that it names, if it is a reference; else itself. None: it could not be read."""
        if not is_reference(self.value):
            return self
        found = read_document_at(self.value, self.loading, self.notes, self.path)
        if found is None:
            return None
        return Part.of(*found)

    def unknown_keys(
        self,
        known: frozenset[str],
        quiet: frozenset[str],
        fates: Mapping[str, str],
        elsewhere: Mapping[Any, str] | None = None,
    ) -> None:
        """
        Note every key that is not *known*: what becomes of it, by *fates*, or where it belongs, by *elsewhere*.

        Those that are *quiet* are known and change nothing here, and neither does a key that resembles one: `shared`,
        which holds YAML anchors, is no `sharing`.
        """
        for key, part in self.items():
            if key in known or key in quiet:
                continue
            if key in fates:
                part.warn(fates[key])
            else:
                what = f"the key {key!r} is not read{suggest(key, known) if key else ''}"
                self.notes.unknown(part.path, what, known | fates.keys(), elsewhere)


_ENVIRONMENT = re.compile(r"\{\{-?\s*(?:process\.)?env\b")


def _drop_repeated(problems: list[Problem]) -> None:
    if problems[-1] in problems[:-1]:
        problems.pop()


def as_text(value: Any) -> str:
    """Return *value* as promptfoo shows it in a text: lists and mappings as JSON, nothing as nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return compact(value)


def compact(value: Any) -> str:
    """Return *value* as JSON without white space, as JavaScript writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
