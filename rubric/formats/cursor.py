"""
The converter from plain data to nouns, and how its hooks gather what is wrong instead of stopping at the first.

What a file of another system is read with: where it stands, and what it may see.

From plain data to nouns, field by field, with each problem noted where it stands in the document.

Nothing here raises: what is wrong goes to the `Notes`, and None comes back in its place.

What is noted while a document of another system is read: errors and warnings, each with its place in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import attrs
from attrs import define, evolve, field, frozen
from cattrs import IterableValidationError, IterableValidationNote

from rubric.errors import DefinitionError, LoadError, Problem
from rubric.formats.document import Document, KeyPath, Node, Unreadable, find, plain, show_path
from rubric.internals.fields import misspelt, suggest
from rubric.internals.text import shorten
from rubric.suites.cases import Place

T = TypeVar("T")
Read = Callable[[Any], Any]


class WrongKeyError(DefinitionError):
    """A complaint about a key, not about what stands behind it."""


@define
class Gathering:
    """What is wrong with one value: do each step `with gathering.at(key)`, then `finish`."""

    what: type
    wrong: list[Exception] = field(factory=list)

    @contextmanager
    def at(self, *step: Any) -> Iterator[None]:
        """Keep an exception of the block, with the *step* (a key or an index) at which it came up."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001 - raised again by finish, with its place
            if step:
                problem.add_note(IterableValidationNote("", step[0], None))
            self.wrong.append(problem)

    def finish(self) -> None:
        """Raise what was gathered, if anything was."""
        if self.wrong:
            message = f"while reading {self.what.__name__}"
            raise IterableValidationError(message, self.wrong, self.what)  # pyright: ignore[reportCallIssue] - an untyped __new__


_BARE = re.compile(r"[-+]?\d+(\.\d+)?|true|false", re.ASCII)


def cure(found: object, message: str) -> str:
    """Return what to do about quotes that are one too many or missing, where *message* does not say so yet."""
    if "quote" in message:
        return ""
    if isinstance(found, str) and _BARE.fullmatch(found):
        return "; take the quotes off"
    if isinstance(found, int | float) and not isinstance(found, bool) and message.startswith("expected text"):
        return f'; quote it: "{found}"'
    return ""


def as_dict(data: object, what: str) -> dict[Any, Any]:
    """Return *data*, a mapping; anything else is refused in favour of *what*."""
    if not isinstance(data, dict):
        raise wanted(what, data)
    return data


def as_list(data: object, what: str) -> list[Any]:
    """Return *data*, a list; anything else is refused in favour of *what*."""
    if not isinstance(data, list):
        raise wanted(what, data)
    return data


def wanted(what: str, found: object) -> DefinitionError:
    """Return (not raise) the error that says what stands somewhere and what may."""
    shown = {dict: "a mapping", list: "a list", type(None): "nothing"}.get(type(found)) or shorten(repr(found), 80)
    return DefinitionError("", f"expected {what}, got {shown}")


@define
class Library:
    """
    What one load has read, shared by a file and all that it includes.

    Args:
        texts: The texts of the files, by their real paths.
        documents: The documents among them.
        taken: Characters handed out so far, a file that is included twice counted twice.
    """

    texts: dict[Path, str] = field(factory=dict)
    documents: dict[Path, Document] = field(factory=dict)
    taken: int = 0


@frozen
class Loading:
    """
    Where a file stands, and what it may see.

    Args:
        folder: Of the file that is being read: relative references start there. None: text that stands in no file.
        base: Nothing outside of this folder is read. None: the folder itself.
        environ: The environment variables that a file may show, by name; none unless the caller declares some.
            `os.environ` is never asked.
        required: Whether an AgentV criterion that does not say so is a gate. None: as its generation documents it.
        functions: The Python functions that assertions may name. A file cannot bring code of its own.
        trail: The files that led here, the outermost first; a file cannot include one of them.
        library: What has been read so far.
    """

    folder: Path | None = None
    base: Path | None = None
    environ: Mapping[str, str] = field(factory=dict, repr=lambda environ: repr([*environ]))
    required: bool | None = None
    functions: Mapping[str, Callable[..., Any]] = field(factory=dict)
    trail: tuple[Path, ...] = ()
    library: Library = field(factory=Library, eq=False, repr=False)

    @property
    def root(self) -> Path | None:
        """The folder that nothing leaves: *base*, or where that is not given *folder*."""
        return self.base if self.base is not None else self.folder

    def within(self, folder: Path, file: Path) -> Loading:
        """Return the loading for *file* (its real path), which this one includes and which stands in *folder*."""
        return evolve(self, folder=folder, base=self.root, trail=(*self.trail, file))


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

    def _flaw(self, node: Node, path: KeyPath, message: str) -> None:
        self.errors.append(self._problem(node, path, message))

    def error(self, path: KeyPath, message: str | DefinitionError, *, key: bool = False) -> None:
        """Note that what stands at *path* is wrong; with *key*, point at the key that names it."""
        self.errors.append(self._at(path, str(message), key=key))

    def warn(self, path: KeyPath, message: str, *, key: bool = False) -> None:
        """Note that what stands at *path* is read otherwise than it says, or not at all."""
        told = self._at(path, message, key=key)
        if told not in self.warnings:  # what many cases share is read for each of them
            self.warnings.append(told)

    def unknown(
        self, path: KeyPath, message: str, known: Iterable[str], elsewhere: Mapping[Any, str] | None = None
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

    def place(self, path: KeyPath) -> Place:
        """Return where *path* stands."""
        node, _ = find(self.document.root, path)
        return Place(self.document.source, node.line, node.column)

    def finish(self) -> None:
        """Raise what was noted as wrong, all of it, in the order of the file."""
        if self.errors:
            raise LoadError(sorted(self.errors, key=lambda problem: (problem.line, problem.column)))

    def _at(self, path: KeyPath, message: str, *, key: bool) -> Problem:
        node, known = find(self.document.root, path, key=key)
        return self._problem(node, known, message)

    def _problem(self, node: Node, path: KeyPath, message: str) -> Problem:
        return Problem(self.document.source, *node.place, show_path(path), shorten(message, LONGEST))


def mapping(notes: Notes, path: KeyPath, value: object, what: str = "a mapping") -> dict[Any, Any] | None:
    """Return *value*, a mapping; note anything else as not *what* was expected."""
    if isinstance(value, dict):
        return value
    _refuse(notes, path, value, what)
    return None


def listing(notes: Notes, path: KeyPath, value: object, what: str = "a list") -> list[Any]:
    """Return *value*, a list; note anything else as not *what* was expected, and return nothing."""
    if isinstance(value, list):
        return value
    _refuse(notes, path, value, what)
    return []


def _refuse(notes: Notes, path: KeyPath, value: object, what: str) -> None:
    if not isinstance(value, Unreadable):  # whose flaw is noted already
        notes.error(path, wanted(what, value).message)


def only(notes: Notes, path: KeyPath, data: Mapping[Any, Any], allowed: Iterable[str]) -> None:
    """Note each key of *data* that is not among *allowed*, with the nearest one that is."""
    names = [*allowed]
    for key in data:
        if key not in names:
            notes.error((*path, key), f"unknown key{suggest(shorten(str(key), 40), names)}", key=True)


def given(notes: Notes, path: KeyPath, data: Mapping[Any, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    """Return by field what *data* gives under the *keys* of fields; a key without a value is noted."""
    found = {}
    for name, key in keys.items():
        if key in data and data[key] is None:
            notes.error((*path, key), "expected a value, got nothing; give it one, or take the key out")
        elif key in data:
            found[name] = data[key]
    return found


def made(
    notes: Notes, path: KeyPath, cls: type[T], values: Mapping[str, Any], keys: Mapping[str, str] | None = None
) -> T | None:
    """
    Return a *cls* of *values* (by field); None if something is wrong with it, all of which is noted.

    Args:
        notes: Where to note it.
        path: Where the noun stands.
        cls: An attrs class whose fields have validators.
        values: What the document says, by field.
        keys: The keys in the document of fields whose names in code are others.
    """
    if not fits(notes, path, cls, values, keys):
        return None
    try:
        return cls(**values)
    except DefinitionError as problem:
        notes.error((*path, *_steps(problem.field, keys or {})), problem.message)
        return None


def fits(
    notes: Notes, path: KeyPath, cls: type, values: Mapping[str, Any], keys: Mapping[str, str] | None = None
) -> bool:
    """Say whether each of *values* is what its field of *cls* takes, and none is missing; note all else."""
    known = keys or {}
    wrong = False
    for attribute in attrs.fields(cast("Any", cls)):
        key = known.get(attribute.name, attribute.name)
        if attribute.name in values:
            problem = _problem(attribute, values[attribute.name])
            if problem is not None and not isinstance(values[attribute.name], Unreadable):
                where = _steps(problem.field, {})[1:]
                message = problem.message + cure(values[attribute.name], problem.message)
                notes.error((*path, key, *where), message)
            wrong = wrong or problem is not None
        elif attribute.init and attribute.default is attrs.NOTHING:
            notes.error(path, f"the key {key!r} is missing; add it")
            wrong = True
    return not wrong


def _problem(attribute: Any, value: object) -> DefinitionError | None:
    try:
        converted = attribute.converter(value) if attribute.converter else value
        if attribute.validator:
            attribute.validator(None, attribute, converted)
    except DefinitionError as problem:
        return problem
    return None


_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)", re.ASCII)


def _steps(field: str, keys: Mapping[str, str]) -> KeyPath:
    """Return the path that *field* of a `DefinitionError` stands for, such as `criteria[2].id`."""
    return tuple(int(index) if index else keys.get(name, name) for index, name in _STEP.findall(field))
