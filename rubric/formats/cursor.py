"""
The cursor: a value of a document that knows its path and its place, and notes what is wrong with it.

Every foreign format is read through it. Nothing here raises while a document is read: problems go to the `Notes`, and
None takes the place of what is wrong.

The native format is read by `fields`, which raises; `problems` finds the places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import attrs
from attrs import define, field

from rubric.errors import DefinitionError
from rubric.formats.document import FOR_SUITES, KeyPath, Node, Unreadable, find, steps_of
from rubric.formats.fields import SeveralError, cure, message_of, mismatch, problems_of
from rubric.formats.files import parse, read_text
from rubric.formats.notes import LackingError, Loading, Notes
from rubric.internals.fields import check_text, misspelt
from rubric.internals.guesses import key_cure
from rubric.internals.text import shorten
from rubric.values.places import Place

T = TypeVar("T")

_ASIDE = ("x-", ".")
"""How authors begin keys of their own, such as those that hold YAML anchors."""


@define(eq=False)
class Cursor:
    """
    A value of a document that knows its path and its place, and notes what is wrong with it.

    Going down makes a cursor and nothing else: paths and places are worked out when a problem is noted.

    Args:
        value: Plain data.
        notes: Where problems are noted.
        parent: The mapping or list that holds the value; None for the root of the document.
        step: The key or the index at which *parent* holds it.
    """

    value: Any
    notes: Notes = field(repr=False)
    parent: Cursor | None = field(default=None, repr=False)
    step: Any = None
    _located: tuple[Node, Node, bool] | None = field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, notes: Notes, loading: Loading | None = None) -> Cursor:
        """Return the root of the document of *notes*, which is read with *loading*."""
        if loading is not None:
            notes.loading = loading
        return cls(notes.data(), notes)

    @classmethod
    def parse(cls, text: str, source: str) -> Cursor:
        """Return the root of *text*, a document in YAML or JSON, or raise a `LoadError`."""
        return cls.of(Notes(parse(text, source, limits=FOR_SUITES)))

    @classmethod
    def read(cls, file: Path) -> Cursor:
        """Return the root of the document in *file*, or raise a `LoadError`."""
        return cls.parse(read_text(file, None, FOR_SUITES), str(file))

    # -- going down ---------------------------------------------------------------------------------------

    def __getitem__(self, step: Any) -> Cursor:
        """Return the value at *step*, a key or an index; None is the value of a key that is not there."""
        held, value = self.value, None
        if isinstance(held, dict):
            value = held.get(step)
        elif isinstance(held, list) and isinstance(step, int):
            value = held[step]
        return Cursor(value, self.notes, self, step)

    def __contains__(self, key: Any) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def has(self, key: Any) -> bool:
        """True if it is a mapping with a value, other than nothing, at *key*."""
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def find(self, *keys: Any) -> Cursor | None:
        """Return the value at the first of *keys* that has one."""
        return next((self[key] for key in keys if self.has(key)), None)

    def first(self, *keys: Any) -> Cursor:
        """Return the value at the first of *keys* that has one; where none has, nothing, at the place of the first."""
        return self.find(*keys) or self[keys[0]]

    def under(self, key: Any) -> Cursor:
        """Return the mapping at *key*; an empty one at its place where anything else is there."""
        found = self[key]
        return found if isinstance(found.value, dict) else found.holding({})

    def holding(self, value: Any) -> Cursor:
        """Return a cursor at the same place with another *value*."""
        return Cursor(value, self.notes, self.parent, self.step)

    def items(self) -> Iterator[tuple[Any, Cursor]]:
        """Yield the keys and the values of a mapping."""
        return ((key, self[key]) for key in self.value)

    def __iter__(self) -> Iterator[Cursor]:
        """Yield the items of a list."""
        return (Cursor(value, self.notes, self, index) for index, value in enumerate(self.value))

    @property
    def root(self) -> Cursor:
        """The whole document."""
        found = self
        while found.parent is not None:
            found = found.parent
        return found

    # -- its place -----------------------------------------------------------------------------------------

    @property
    def loading(self) -> Loading:
        """What its document is read with."""
        return self.notes.loading

    @property
    def path(self) -> KeyPath:
        """The keys and indices from the root."""
        steps: list[Any] = []
        found = self
        while found.parent is not None:
            steps.append(found.step)
            found = found.parent
        return tuple(reversed(steps))

    @property
    def place(self) -> Place:
        """Its place in the file; of a value that the file does not have, the place of its holder."""
        node, _, _ = self._where()
        return Place(self.notes.document.source, node.line, node.column)

    def _where(self) -> tuple[Node, Node, bool]:
        """Return its node, the node of its key, and whether the document has it; else the nearest node above it."""
        # Kept, and found from the parent: from the root it would be quadratic in a list of 1,000 tests.
        if self._located is None:
            if self.parent is None:
                root = self.notes.document.root
                self._located = root, root, True
            else:
                above, _, there = self.parent._where()  # noqa: SLF001 - its own kind
                node, known = find(above, (self.step,)) if there else (above, ())
                name = find(above, (self.step,), key=True)[0] if known else node
                self._located = node, name, bool(known)
        return self._located

    def _spot(self, *, key: bool) -> tuple[Node, KeyPath]:
        node, name, there = self._where()
        nearest = self
        while not nearest._where()[2] and nearest.parent is not None:
            nearest = nearest.parent
        return (name if key and there else node), nearest.path

    # -- diagnostics --------------------------------------------------------------------------------------

    def error(self, message: str | DefinitionError, *, key: bool = False, slip: bool | None = None) -> None:
        """Note that it is wrong; with *key*, point at its key, whose *slip* it is."""
        self.notes.tell(*self._spot(key=key), message, slip=key if slip is None else slip)

    def warn(self, message: str, *, key: bool = False) -> None:
        """Note that it is read otherwise than it says, or not at all."""
        self.notes.warn(*self._spot(key=key), message)

    def once(self, message: str) -> None:
        """Warn of its key, the first time that *message* comes up in this load."""
        if self.notes.is_new(message):
            self.warn(message, key=True)

    def refuse(self, what: str, names: Iterable[str] = ()) -> None:
        """Note that *what* was expected in its place; a slip of one of *names* is told as such."""
        if not isinstance(self.value, Unreadable):  # its flaw is noted already
            near = misspelt(self.value, names)
            self.error(mismatch(what, self.value).message + (f"; did you mean {near!r}?" if near else ""))

    def needs(self, key: str, why: str = "") -> bool:
        """True if it is a mapping with *key*; else note that the key is missing, and *why* it is wanted."""
        if key not in self:
            self.error(f"the key {key!r} is missing; add it{why}")
        return key in self

    def only(self, allowed: Iterable[str], owner: str = "") -> None:
        """Note each key that is not *allowed*, with the one of *owner*, a kind of value, that was meant."""
        names = [*allowed]
        for key in self.value:
            if key not in names:
                self[key].error(f"unknown key{key_cure(owner, key, names, self.value[key])}", key=True)

    def reads(
        self,
        known: Collection[str],
        fates: Mapping[str, str] | None = None,
        elsewhere: Mapping[Any, str] | None = None,
        quiet: Collection[str] = (),
        *,
        once: Mapping[str, str] | None = None,
        unread: str = "",
        idle: str = "",
    ) -> None:
        """
        Note each key of a mapping that is not *known*: what becomes of it, by *fates*, or as `unknown` does.

        Keys that are *quiet* change nothing here, and neither does a key that resembles one: `shared`, which holds YAML
        anchors, is not a `sharing`.

        Args:
            once: As *fates*, but each sentence is told once in a load.
            unread: The warning of an unknown key.
            idle: In the place of that warning, told once in a load of each key `{}` that is no slip.
        """
        for key, part in self.items() if isinstance(self.value, dict) else ():
            if fates and key in fates:
                part.warn(fates[key])
            elif once and key in once:
                part.once(once[key])
            elif key in known or key in quiet:
                continue
            elif not idle or key in (elsewhere or ()):
                message = unread or f"the key {shorten(repr(str(key)), 60)} is not read"
                part.unknown(message, {*known, *(fates or ())}, elsewhere)
            elif not part.is_slip(known):
                part.once(idle.replace("{}", str(key)))

    def unknown(self, message: str, known: Iterable[str], elsewhere: Mapping[Any, str] | None = None) -> None:
        """
        Note that its key is not *known* here.

        A key that is nearly a known one, or that belongs *elsewhere*, was meant to grade: read over, it would leave a
        test without its assertions. The first is an error. So is the second, but within `Notes.lacking`, where the
        other system reads over it, it leaves ungraded what it is in. Any other key is a warning.

        Args:
            message: The warning, before the key that was meant, or those that are read.
            known: The keys that are read here.
            elsewhere: For keys of other places, where they belong.
        """
        if elsewhere and self.step in elsewhere:
            shown = shorten(str(self.step), 40)
            message = f"{shown!r} has no effect here; {elsewhere[self.step]}"
            self.error(LackingError(f"the key {shown!r} at another's place", message), key=True)
        elif not self.is_slip(known):
            self.warn(f"{message}{key_cure('', self.step, sorted(known)) if self.step else ''}", key=True)

    def is_slip(self, known: Iterable[str]) -> bool:
        """True if its key is nearly a *known* one, which is noted as an error."""
        near = "" if str(self.step).startswith(_ASIDE) else misspelt(self.step, sorted(known))
        if near:
            self.error(f"unknown key {shorten(str(self.step), 40)!r}; did you mean {near!r}?", key=True)
        return bool(near)

    # -- typed values -------------------------------------------------------------------------------------

    def mapping(self, what: str = "a mapping") -> bool:
        """True if it is a mapping; else note that *what* was expected."""
        if not (fits := isinstance(self.value, dict)):
            self.refuse(what)
        return fits

    def listing(self, what: str = "a list") -> list[Cursor]:
        """Return the items of a list; note anything else, and return none."""
        if not isinstance(self.value, list):
            self.refuse(what)
            return []
        return [*self]

    def each(self, what: str, read: Callable[[Cursor], T | None]) -> list[T]:
        """Return what *read* makes of the items of a list, without those of which it makes nothing."""
        return [made for item in self.listing(what) if (made := read(item)) is not None]

    def text(self, what: str = "text") -> str | None:
        """Return the text that it is; note anything else."""
        if isinstance(self.value, str):
            return self.value
        found: Any = {True: "yes", False: "no"}[self.value] if isinstance(self.value, bool) else self.value
        if isinstance(found, str | int | float):
            self.error(f'{mismatch(what, self.value).message}; quote it: "{found}"')
        else:
            self.refuse(what)
        return None

    def words(self, what: str = "text") -> str | None:
        """Return the text that it is; note anything else and an empty one, which would be passed over."""
        found = self.text(what)
        if found is not None and not found.strip():
            self.error(f"expected {what}, got an empty one; write what is to be judged")
            return None
        return found

    def flag(self) -> bool | None:
        """Return true or false; note anything else."""
        if isinstance(self.value, bool):
            return self.value
        self.refuse("true or false")
        return None

    def number(
        self, low: float | None = None, high: float | None = None, *, above: bool = False, written: bool = False
    ) -> float | None:
        """
        Return the number that it is; note anything else.

        Args:
            low: The lowest number allowed.
            high: The highest number allowed.
            above: Whether *low* itself is refused.
            written: Whether a text that is a number will do.
        """
        value = self.value
        if written and isinstance(value, str):
            with suppress(ValueError):
                value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf:
            fits = low is None or value > low or (value == low and not above)
            if fits and (high is None or value <= high):
                return value
        span = "" if low is None else f" {'above' if above else 'from'} {low:g}"
        self.refuse(f"a number{span}" + ("" if high is None else f" to {high:g}"))
        return None

    # -- fields of a class --------------------------------------------------------------------------------

    def noun(self, cls: type[T], what: str, keys: Mapping[str, str], *, beside: Iterable[str] = ()) -> T | None:
        """
        Return the *cls* that a mapping gives; None if something is wrong, all of which is noted.

        Args:
            cls: An attrs class whose fields have validators.
            what: The mapping that is expected, in words.
            keys: By field, the key that gives it. Other keys are errors.
            beside: Keys that the caller reads.
        """
        if not self.mapping(what):
            return None
        self.only((*keys.values(), *beside), cls.__name__)
        return self.made(cls, self.given(keys), keys)

    def given(self, keys: Mapping[str, str], *, blank: Collection[str] = ()) -> dict[str, Any]:
        """
        Return by field the values at the *keys* of fields; a key without a value is noted.

        Args:
            keys: By field, the key that gives it.
            blank: Keys that may have no value, and then give none.
        """
        found = {}
        for name, key in keys.items():
            if self.has(key):
                found[name] = self.value[key]
            elif key in self and key not in blank:
                self[key].error("expected a value, got nothing; give it one, or take the key out")
        return found

    def made(self, cls: type[T], values: Mapping[str, Any], keys: Mapping[str, str] | None = None) -> T | None:
        """
        Return a *cls* of *values*; None if one of them is wrong, which is noted at its key.

        Args:
            cls: An attrs class whose fields have validators.
            values: By field.
            keys: The keys of fields whose names in the document are others.
        """
        if not self.fits(cls, values, keys):
            return None
        try:
            return cls(**values)
        except DefinitionError as problem:
            self.below([(keys or {}).get(step, step) for step in steps_of(problem.field)]).error(problem.message)
            return None

    def built(self, make: Callable[..., T], *args: Any, **options: Any) -> T | None:
        """Return what *make* gives; None if it refuses the arguments, which is noted here, or at the path it names."""
        return self._make(partial(make, *args, **options), Cursor.error)

    def spared(self, make: Callable[..., T], *args: Any) -> T | None:
        """Return what *make* gives; None, with a warning in the place of an error, where its case will be ungraded."""
        return self._make(partial(make, *args), lambda at, problem: at.warn(f"{problem}; the case is ungraded"))

    def _make(self, make: Callable[[], T], note: Callable[[Cursor, Any], None]) -> T | None:
        try:
            return make()
        except (DefinitionError, SeveralError) as error:
            for path, problem in problems_of(error):
                if isinstance(problem, LackingError):
                    self.error(problem)
                elif path and path[0] in self:
                    note(self.below(path), message_of(problem))
                else:
                    note(self, problem)
            return None

    def passes(self, check: Callable[[str, Any], object] = check_text) -> bool:
        """True if *check* lets the value pass, by default as a text with words in it; else note its refusal."""
        try:
            check("", self.value)
        except DefinitionError as problem:
            self.error(problem.message)
            return False
        return True

    def fits(self, cls: type, values: Mapping[str, Any], keys: Mapping[str, str] | None = None) -> bool:
        """True if *values* are what the fields of *cls* take, and none is missing; note all else."""
        known = keys or {}
        wrong = False
        for attribute in attrs.fields(cast("Any", cls)):
            key = known.get(attribute.name, attribute.name)
            if attribute.name in values:
                value = values[attribute.name]
                problem = _problem(attribute, value)
                if problem is not None and not isinstance(value, Unreadable):
                    below = self.below((key, *steps_of(problem.field)[1:]))
                    below.error(problem.message + cure(value, problem.message))
                wrong = wrong or problem is not None
            elif attribute.init and attribute.default is attrs.NOTHING:
                self.error(f"the key {key!r} is missing; add it")
                wrong = True
        return not wrong

    def below(self, path: Iterable[Any]) -> Cursor:
        """Return the cursor at *path* from here."""
        found = self
        for step in path:
            found = Cursor(None, self.notes, found, step)
        return found


def _problem(attribute: Any, value: object) -> DefinitionError | None:
    try:
        converted = attribute.converter(value) if attribute.converter else value
        if attribute.validator:
            attribute.validator(None, attribute, converted)
    except DefinitionError as problem:
        return problem
    return None
