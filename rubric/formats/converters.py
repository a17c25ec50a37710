"""The converter from plain data to nouns, and how its hooks gather what is wrong instead of stopping at the first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import attrs
from attrs import define, field
from cattrs import Converter, IterableValidationError, IterableValidationNote
from cattrs.gen import make_dict_structure_fn_from_attrs, override

from rubric.errors import DefinitionError
from rubric.showing import shorten

if TYPE_CHECKING:
    from attrs import Attribute

__all__ = ["KEYS", "Gathering", "WrongKeyError", "as_dict", "as_list", "converter", "cure", "reader_of", "wanted"]

T = TypeVar("T")
Read = Callable[[Any], Any]

converter = Converter(detailed_validation=True, forbid_extra_keys=True)
"""Its hooks are in `structuring`."""

KEYS: dict[type, dict[str, str]] = {}
"""For each noun, the key in files of each field that a file may give."""


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
