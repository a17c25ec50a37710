"""Readers and writers of nouns: between plain data and values, field by field."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn_from_attrs, override

from rubric.errors import DefinitionError, DumpError
from rubric.formats.cursor import Gathering, Read, T, WrongKeyError, as_dict, as_list, cure, wanted
from rubric.internals.fields import check_text, shown_fields
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.text import shorten
from rubric.values.answers import Answer
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    from attrs import Attribute


converter = Converter(detailed_validation=True, forbid_extra_keys=True)
"""Its hooks are in `structuring`."""

KEYS: dict[type, dict[str, str]] = {}
"""For each noun, the key in files of each field that a file may give."""


def reader_of(cls: type[T], renamed: Mapping[str, str] | None = None, **reads: Read | None) -> Callable[[Any], T]:
    """
    Return the function that reads a mapping as *cls*.

    Args:
        cls: A noun. Each of its fields is checked by its own converter and validator, so that all that is wrong with
            it comes up at once.
        renamed: The keys in files of the fields whose names in code are others.
        reads: For each field that is not plain data, what makes it of plain data; None for a field that no file gives.
    """
    fields: list[Any] = [f for f in attrs.fields(cast("Any", cls)) if reads.get(f.name, _same)]
    KEYS[cls] = {f.name: str((renamed or {}).get(f.name, f.name)) for f in fields}
    overrides: dict[str, Any] = {
        f.name: override(rename=KEYS[cls][f.name], struct_hook=_checked(f, reads.get(f.name) or _same)) for f in fields
    }
    build: Callable[..., T] = make_dict_structure_fn_from_attrs(fields, cls, converter, **overrides)
    needed = ", ".join(KEYS[cls][f.name] for f in fields if f.default is attrs.NOTHING)
    return lambda data: build(as_dict(data, f"a mapping with {needed}" if needed else "a mapping"), cls)


def _same(data: Any) -> Any:
    return data


def _checked(attribute: Attribute[Any], read: Read) -> Callable[[Any, Any], Any]:
    convert: Any = attribute.converter

    def hook(data: Any, _: Any) -> Any:
        try:
            value = convert(read(data)) if convert else read(data)
            if attribute.validator:
                attribute.validator(None, attribute, value)
        except DefinitionError as problem:
            raise DefinitionError(problem.field, problem.message + cure(data, problem.message)) from None
        return value

    return hook


_PLAIN = re.compile(r"(-?\d{1,16})\.\.(-?\d{1,16})", re.ASCII)
"""How levels without bands are written."""


# -- free data: metadata, schemas, arguments ------------------------------------------------------


def read_free(data: Any) -> FrozenMap:
    """Return a mapping of the author's own; all its keys are texts."""
    _check_keys(as_dict(data, "a mapping"))
    return FrozenMap(data)


def _check_keys(data: Any) -> None:
    gathering = Gathering(FrozenMap)
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        with gathering.at(key):
            if isinstance(data, dict):
                _check_key(key)
            _check_keys(value)
    gathering.finish()


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise WrongKeyError("", f'expected text as a key, got {key!r}; quote it: "{str(key).lower()}"')


def _named(data: Any, names: dict[str, Callable[[], T]], other: str) -> T:
    if isinstance(data, str) and data in names:
        return names[data]()
    allowed = f"{', '.join(names)} or {other}"
    raise wanted(allowed, data)


def _unnamed(build: Callable[[Any], T], data: Any) -> T:
    """Build a noun of one field that has no key of its own in files."""
    try:
        return build(data)
    except DefinitionError as problem:
        raise DefinitionError("", problem.message) from None


def _read_all(data: Any, what: type[T], read: Callable[[Any], T]) -> list[T]:
    gathering = Gathering(what)
    items = []
    for index, item in enumerate(as_list(data, f"a list of {what.__name__.lower()}s")):
        with gathering.at(index):
            items.append(read(item))
    gathering.finish()
    return items


def read_text(data: Any) -> Any:
    """Return *data*, a text with something in it."""
    try:
        check_text("", data)
    except DefinitionError as problem:
        raise DefinitionError("", problem.message + cure(data, problem.message)) from None
    return data


Data = dict[str, Any]
_LAST = ("criteria", "text", "tree")


def as_data(rubric: Rubric) -> Data:
    """
    Return *rubric* as plain data in the spelling of files.

    Raises:
        DumpError: It holds what no file can say; the message names the criterion.
    """
    data: Data = write(rubric)
    return data


def write(value: Any) -> Any:
    if type(value) in WRITERS:
        return WRITERS[type(value)](value)
    if isinstance(value, tuple):
        return [write(item) for item in value]
    if isinstance(value, Mapping):
        return {_free_key(key): write(item) for key, item in value.items()}
    return free(value)


def fields_of(value: Any, first: tuple[str, ...] = (), last: tuple[str, ...] = (), without: str = "") -> Data:
    """Return the fields of *value* that differ from their defaults, but for *without*, under their keys in files."""
    found = {f.name: getattr(value, f.name) for f in shown_fields(value) if f.name != without}
    names = [name for name in first if name in found]
    names += [name for name in found if name not in (*first, *last)]
    names += [name for name in last if name in found]
    return {KEYS[type(value)][name]: write(found[name]) for name in names}


# -- free data ------------------------------------------------------------------------------------


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
    msg = f"the key {shorten(repr(key), 80)} cannot be written; keys are texts"
    raise DumpError(msg)


class _NamedError(DumpError):
    """A `DumpError` that names its criterion already."""


def _with_criterion(criterion: Criterion, problem: DumpError) -> DumpError:
    if isinstance(problem, _NamedError):
        return problem
    return _NamedError(f"criterion {criterion.id!r}: {problem}")


ANSWERS: dict[Any, Callable[[Any], Answer]] = {}
"""The keys of which a criterion has at most one, each with its reader; `native.rubric` registers them."""

WRITERS: dict[type, Callable[[Any], Any]] = {}
"""For each noun that is not written field by field, its writer; the modules of `native` register theirs."""
