"""
Readers and writers of values, field by field: between plain data and attrs classes.

The fields of a class are the one table: `reader_of` makes a reader of them, which checks each by its own converter and
validator, and `fields_of` writes those that differ from their defaults. `KEYS` has the key in files of each field.
A reader raises all problems of a value at once, each with its path; `read_as` finds their places in a document.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property, partial
from typing import Any, TypeVar, cast

import attrs
from attrs import Attribute, define, field

from rubric.errors import DefinitionError, DumpError, LoadError, Problem
from rubric.formats.document import Document, KeyPath, Node, find, load_error, plain, show_path, steps_of, uncut
from rubric.internals.conversions import meant_value
from rubric.internals.fields import check_text, default_of
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.guesses import form_cure, key_cure, value_cure
from rubric.internals.text import shorten

T = TypeVar("T")
Read = Callable[[Any], Any]
Data = dict[str, Any]

KEYS: dict[type, dict[str, str]] = {}
"""For each class, the key in files of each field that a file may give."""

WRITERS: dict[type, Callable[[Any], Any]] = {}
"""For each class that is not written field by field, its writer; the modules of `native` register theirs."""


# -- problems -----------------------------------------------------------------------------------------------


class WrongKeyError(DefinitionError):
    """A complaint about a key, not about its value."""


def cure(found: object, message: str) -> str:
    """Return the advice to add or remove quotes, or to write a number in another way, if *message* has none yet."""
    if "quote" in message:
        return ""
    if isinstance(found, int | float) and not isinstance(found, bool) and message.startswith("expected text"):
        return f'; quote it: "{found}"'
    return value_cure(found, message)


def as_dict(data: object, what: str) -> dict[Any, Any]:
    """Return *data*, a mapping; refuse anything else with *what* was expected."""
    if not isinstance(data, dict):
        raise mismatch(what, data)
    return data


def as_list(data: object, what: str) -> list[Any]:
    """Return *data*, a list; refuse anything else with *what* was expected."""
    if not isinstance(data, list):
        raise mismatch(what, data)
    return data


def mismatch(what: str, found: object) -> DefinitionError:
    """Return (not raise) the error that *what* was expected instead of *found*."""
    shown = {dict: "a mapping", list: "a list", type(None): "nothing"}.get(type(found)) or shorten(repr(found), 80)
    return DefinitionError("", f"expected {what}, got {shown}")


class UnknownKeyError(WrongKeyError):
    """
    A *key* that is none of those *allowed*. Near names are looked for only when it is shown.

    *read* reads a value as that of an allowed key, or raises.
    """

    def __init__(
        self,
        key: Any,
        allowed: Iterable[str],
        owner: str = "",
        value: Any = None,
        read: Callable[[str, Any], object] = lambda _, value: value,
        *,
        said: str = "unknown key",
    ) -> None:
        super().__init__("", f"unknown key {key!r}")
        self.key, self.allowed, self.owner, self.value, self.read, self.said = key, allowed, owner, value, read, said

    @cached_property
    def cure(self) -> str:
        """The end of the message: the key that is meant, or a line."""
        return key_cure(self.owner, self.key, self.allowed, self.value)

    @property
    def meant(self) -> str:
        """The key that is proposed; '' if none is."""
        found = re.search("^; did you mean '(.*)'", self.cure)
        return found[1] if found else ""

    @cached_property
    def within(self) -> list[tuple[KeyPath, DefinitionError]]:
        """The problems of the value as that of the key that is meant, each with its path."""
        gathering = Gathering()
        with gathering.at():
            self.read(self.meant, self.value) if self.meant else None
        return gathering.problems


class MissingKeyError(DefinitionError):
    """A complaint that a *key* is missing."""

    def __init__(self, key: str) -> None:
        super().__init__("", f"the key {key!r} is missing; add it")
        self.key = key


def _unless_cut(unknown: dict[Any, WrongKeyError], given: Data) -> list[tuple[KeyPath, DefinitionError]]:
    """Return the problems of *unknown* keys in *given*; of a text that a comma cut within braces, the whole, once."""
    key, parts = "", list[Any]()
    for name, value in [*given.items(), ("", "")]:
        if value is None and name in unknown and parts:
            parts.append(name)
            continue
        for part in parts[1:]:
            del unknown[part]
        if len(parts) > 1:
            whole = json.dumps(", ".join(map(str, parts)), ensure_ascii=False)
            message = f"unknown key; within braces a comma ends a text; write {key}: {whole}"
            unknown[parts[1]] = WrongKeyError("", message)
        key, parts = name, [value] if isinstance(value, str) else []
    return [((key,), problem) for key, problem in unknown.items()]


def message_of(problem: DefinitionError) -> str:
    """Return the message of *problem*, its cure as a file has it; that of an unknown key has the nearest known one."""
    if isinstance(problem, UnknownKeyError):
        why = next((f" There, {message_of(error)}" for path, error in problem.within if not path), "")
        return f"{problem.said}{problem.cure}{why}"
    if getattr(problem, "is_whole", False):
        return problem.message
    message = re.sub(r"; write \w+=\[.* for .* in .*$", "", problem.message)  # only Python has comprehensions
    message = re.sub(r'score \w+\(\), which is (\w+)="(\w+)"', r"write \1: \2", message)
    form = form_cure(message)
    return re.sub(rf"(write|such as) {re.escape(problem.field)}=", rf"\1 {problem.field}: ", message) + form


class SeveralError(Exception):
    """The problems of one value, each with its path."""

    def __init__(self, problems: list[tuple[KeyPath, DefinitionError]]) -> None:
        super().__init__(problems)
        self.problems = problems


TOO_DEEP = "this nests too deep to be read from so deep a stack; make it flatter"


def problems_of(problem: Exception) -> list[tuple[KeyPath, DefinitionError]]:
    """Return the problems that *problem* stands for, each with its path."""
    match problem:
        case SeveralError():
            return problem.problems
        case DefinitionError():
            return [(steps_of(problem.field), problem)]
        case _:
            return [((), DefinitionError("", TOO_DEEP))]


@define
class Gathering:
    """The problems of one value: do each step `with gathering.at(key)`, then `finish`."""

    problems: list[tuple[KeyPath, DefinitionError]] = field(factory=list)

    @contextmanager
    def at(self, *step: Any) -> Iterator[None]:
        """Keep an error of the block, with its *step* (a key or an index)."""
        try:
            yield
        except (DefinitionError, SeveralError, RecursionError) as problem:
            self.problems += [((*step, *path), error) for path, error in problems_of(problem)]

    def finish(self) -> None:
        """Raise the problems, if there are any."""
        if self.problems:
            raise SeveralError(self.problems)


# -- reading ------------------------------------------------------------------------------------------------


def reader_of(
    cls: type[T],
    renamed: Mapping[str, str] | None = None,
    beside: Iterable[str] = (),
    also: Iterable[Attribute[Any]] = (),
    **reads: Read | None,
) -> Callable[[Any], T]:
    """
    Return the function that reads a mapping as *cls*, an attrs class whose fields have converters and validators.

    Files have the keys *renamed* for their fields. The caller has read the keys *beside* itself, which may have their
    readers as values, and gives what the constructor takes *also*.
    *reads* holds a reader for fields that are not plain data, None for those of no file; a `FrozenMap` is free data.
    """
    free = {f.name: read_free for f in attrs.fields(cast("Any", cls)) if f.type in (FrozenMap, "FrozenMap")}
    reads = {**free, **reads}
    fields = [f for f in (*attrs.fields(cast("Any", cls)), *also) if f.name not in reads or reads[f.name]]
    keys = KEYS[cls] = {f.name: str((renamed or {}).get(f.name, f.name)) for f in fields}
    rows = {keys[f.name]: (f.name, reads.get(f.name)) for f in fields}
    needed = [keys[f.name] for f in fields if f.default is attrs.NOTHING]
    what = f"a mapping with {', '.join(needed)}" if needed else "a mapping"

    def read(data: Any) -> T:
        given = as_dict(data, what)
        gathering = Gathering()
        values: dict[str, Any] = {}
        for key, value in given.items():
            if key in rows:
                name, read_value = rows[key]
                values[name] = value
                if read_value is not None:
                    with gathering.at(key):
                        values[name] = _read_with_cure(read_value, value)
        if not gathering.problems and len(values) == len(given) and all(key in given for key in needed):
            try:
                return cls(**values)
            except DefinitionError as problem:
                _check_each(given, values, gathering, fields, keys)
                if not gathering.problems:
                    path = tuple(keys.get(step, step) for step in steps_of(problem.field))
                    raise SeveralError([(path, problem)]) from None
        else:
            _check_each(given, values, gathering, fields, keys)
        unknown = dict[Any, WrongKeyError]()
        for key in given:
            if key not in rows:
                allowed = [*rows, *(name for name in beside if name not in rows)]
                read_as = partial(_read_as, rows, fields, beside)
                unknown[key] = UnknownKeyError(key, allowed, cls.__name__, given[key], read_as)
        gathering.problems += _unless_cut(unknown, given) if unknown else ()
        gathering.finish()
        return cls(**values)

    return read


def _read_as(
    rows: Mapping[str, tuple[str, Read | None]],
    fields: list[Attribute[Any]],
    beside: Iterable[str],
    key: str,
    value: Any,
) -> None:
    """Read *value* as that of *key*, one of the *rows*, or of those *beside* that have readers; raise its problems."""
    name, read_value = rows.get(key) or ("", beside[key] if isinstance(beside, Mapping) else None)
    found = _read_with_cure(read_value, value) if read_value else value
    for attribute in (each for each in fields if each.name == name):
        _check(attribute, found)


def _read_with_cure(read: Read, data: Any) -> Any:
    try:
        return read(data)
    except DefinitionError as problem:
        raise DefinitionError(problem.field, problem.message + cure(data, problem.message)) from None


def _check_each(
    given: Data, values: Data, gathering: Gathering, fields: list[Attribute[Any]], keys: Mapping[str, str]
) -> None:
    """Add the problems of each field to those of reading, in the order of the fields."""
    read_wrong = gathering.problems
    gathering.problems = []
    for attribute in fields:
        key = keys[attribute.name]
        wrong = [problem for problem in read_wrong if problem[0][0] == key]
        gathering.problems += wrong
        if wrong:
            continue
        if key in given:
            with gathering.at(key):
                _check(attribute, values[attribute.name])
        elif attribute.default is attrs.NOTHING:
            gathering.problems.append(((), MissingKeyError(key)))


def _check(attribute: Attribute[Any], data: Any) -> None:
    try:
        convert: Any = attribute.converter
        value = convert(data) if convert else data
        if attribute.validator:
            attribute.validator(None, attribute, value)
    except DefinitionError as problem:
        first, *rest = steps_of(problem.field) or ("",)
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)
        if first != attribute.name:
            path = f"{first}{path}"
        more = cure(data, problem.message)  # which counts before a name that is near by chance
        said = (problem.message.partition("; did you mean")[0] if more else problem.message) + more
        raise DefinitionError(path.removeprefix("."), said + _meant(attribute, data, said)) from None


def _meant(attribute: Attribute[Any], data: Any, message: str) -> str:
    """Return the end of *message*, on *data* for a field, with the value that was meant; '' if it has a cure."""

    def fits(value: object) -> bool:
        with suppress(DefinitionError, TypeError, ValueError):
            convert: Any = attribute.converter
            if attribute.validator:
                attribute.validator(None, attribute, convert(value) if convert else value)
                return True
        return False

    found = meant_value(attribute.name, data, fits) if type(data) in (str, int, float) and "; " not in message else []
    return f"; write {attribute.name}: {found[0]}" if found and isinstance(found[0], int | float) else ""


def read_each(data: Mapping[Any, Any], read: Callable[[Any], T]) -> dict[Any, T]:
    """Return the values of *data*, each as *read* reads it; all their problems are raised at once."""
    gathering = Gathering()
    found = {}
    for key, value in data.items():
        with gathering.at(key):
            found[key] = read(value)
    gathering.finish()
    return found


def read_all(data: Any, name: str, read: Callable[[Any], T]) -> list[T]:
    """Return the items of the list *data*, each as *read* reads it; *name* is the word for one of them."""
    return [*read_each(dict(enumerate(as_list(data, f"a list of {name}s"))), read).values()]


def read_within(data: Any, key: str, read: Callable[[Any], T]) -> T:
    """Return what *read* makes of a mapping with *data* under a *key* that the file does not have."""
    try:
        return read({key: data})
    except SeveralError as error:
        raise SeveralError([(path[path[:1] == (key,) :], problem) for path, problem in error.problems]) from None


def read_inner(data: Data, key: str, read: Callable[[Any], T]) -> T:
    """Return the value under *key* in *data*, as *read* reads it."""
    return read_each({key: data[key]}, read)[key]


def read_named(data: Any, names: Mapping[str, Callable[[], T]], other: str) -> T:
    """Return the value that the name *data* stands for; *other* is allowed beside *names*."""
    if isinstance(data, str) and data in names:
        return names[data]()
    raise mismatch(f"{', '.join(names)} or {other}", data)


def read_bare(build: Callable[[Any], T], data: Any) -> T:
    """Build a value of one field that has no key of its own in files."""
    try:
        return build(data)
    except DefinitionError as problem:
        raise DefinitionError("", problem.message) from None


def read_text(data: Any) -> Any:
    """Return *data*, a text that is not blank."""
    try:
        check_text("", data)
    except DefinitionError as problem:
        raise DefinitionError("", problem.message + cure(data, problem.message)) from None
    return data


def read_free(data: Any) -> FrozenMap:
    """Return a mapping of the author's own; all its keys are texts."""
    _check_keys(as_dict(data, "a mapping"))
    return FrozenMap(data)


def _check_keys(data: Any) -> None:
    gathering = Gathering()
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        with gathering.at(key):
            if isinstance(data, dict):
                check_key(key)
            _check_keys(value)
    gathering.finish()


def check_key(key: object) -> None:
    """Refuse a key that is not text."""
    if not isinstance(key, str):
        raise WrongKeyError("", f'expected text as a key, got {key!r}; quote it: "{str(key).lower()}"')


# -- documents ---------------------------------------------------------------------------------------------

MOST = 100
"""Problems that one error lists; the rest is counted."""


def read_as(read: Callable[[Any], T], document: Document) -> T:
    """Return *document* as *read* reads its data; raises LoadError: with all that is wrong."""
    # Of several problems at one place, the first is shown; a mapping begins where its first key does.
    found: dict[tuple[int, int, bool], tuple[KeyPath, DefinitionError | str]] = {}

    def note(node: Node, path: KeyPath, what: DefinitionError | str) -> None:
        found.setdefault((*node.place, isinstance(what, WrongKeyError)), (path, what))

    value: T | None = None
    try:
        value = read(plain(uncut(document.root), note))
    except (DefinitionError, SeveralError) as problem:
        for path, error in _whole(problems_of(problem)):
            note(*find(document.root, path, key=isinstance(error, WrongKeyError)), error)
    except RecursionError:
        raise load_error(document.source, document.root.place, TOO_DEEP) from None
    if found or value is None:
        is_suite = {"cases", "suite"} & {*getattr(document.root, "named", ())}
        raise LoadError([*_problems(found, document.source, "suite" if is_suite else "rubric")])
    return value


def _whole(found: list[tuple[KeyPath, DefinitionError]]) -> Iterator[tuple[KeyPath, DefinitionError]]:
    """Yield the problems *found*, and those under unknown keys, as if the keys that are meant stood there."""
    unknown = [(path, error) for path, error in found if isinstance(error, UnknownKeyError)][:MOST]
    meant = {(path[:-1], error.meant) for path, error in unknown}
    for path, error in found:
        if not isinstance(error, MissingKeyError) or (path, error.key) not in meant:
            yield path, error
    for path, error in unknown:
        yield from _whole([((*path, *inner), each) for inner, each in error.within if inner])


def _problems(
    found: dict[tuple[int, int, bool], tuple[KeyPath, DefinitionError | str]], source: str, kind: str
) -> Iterator[Problem]:
    for position, key in enumerate(sorted(found)):
        (path, what), place = found[key], key[:2]
        if position == MOST:
            yield Problem(source, *place, "", f"and {len(found) - MOST} more problems from here on")
            return
        message = what if isinstance(what, str) else message_of(what)  # here, since only MOST problems are shown
        if source[:1] != "<":
            named = rf"(?<=rubric )([a-z-]+) {kind}\.yaml\b"
            message = re.sub(named, lambda found: f"{found[1]} {shlex.quote(source)}", message)
        yield Problem(source, *place, show_path(path), shorten(message, 900))


# -- writing ------------------------------------------------------------------------------------------------


def write(value: Any) -> Any:
    """Return *value* as plain data, without the fields that have their defaults."""
    if type(value) in WRITERS:
        return WRITERS[type(value)](value)
    if isinstance(value, tuple):
        return [write(item) for item in value]
    if isinstance(value, Mapping):
        return {_free_key(key): write(item) for key, item in value.items()}
    return free(value)


def fields_of(value: Any, first: tuple[str, ...] = (), last: tuple[str, ...] = (), without: str = "") -> Data:
    """Return the fields of *value* that differ from their defaults, by their keys in files: *first*, others, *last*."""
    kind: Any = type(value)
    found = {}
    for f, default in _order(kind, first, last):
        given = getattr(value, f.name)
        if f.name != without and given != (default_of(f, value) if default is _COMPUTED else default):
            is_whole = f.name == "weight" and float(given).is_integer()  # a score of 1.0 may mean other than 1
            found[KEYS[kind][f.name]] = int(given) if is_whole else write(given)
    return found


_COMPUTED = object()


@cache
def _order(cls: type, first: tuple[str, ...], last: tuple[str, ...]) -> list[tuple[Attribute[Any], Any]]:
    """Return the fields of *cls* in the order of writing, each with its default, or `_COMPUTED`."""
    given = {f.name: f for f in attrs.fields(cast("Any", cls)) if f.init}
    fields = [given.get(name) for name in (*first, *(name for name in given if name not in (*first, *last)), *last)]
    return [(f, _COMPUTED if getattr(f.default, "takes_self", False) else default_of(f, None)) for f in fields if f]


def free(value: object) -> Any:
    """Return *value* as plain data of the exact types that files know."""
    match value:
        case None | bool():
            return value
        case str():
            return str(value)
        case int():
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case list() | tuple():
            return [free(item) for item in value]
        case Mapping():
            return {_free_key(key): free(item) for key, item in value.items()}
    msg = f"{shorten(repr(value), 80)} cannot be written; use texts, finite numbers, booleans, lists and mappings"
    raise DumpError(msg)


def _free_key(key: object) -> str:
    if isinstance(key, str):
        return str(key)
    raise DumpError(f"the key {shorten(repr(key), 80)} cannot be written; keys are texts")
