"""
Rows of the table of assertion types: a `Kind` has a `Key` for each of its keys, and a key the `Value` that it takes.

A row reads an assertion, with its errors at their keys, writes a check as one, and has its JSON Schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from attrs import field, frozen

from rubric import DefinitionError, Holds
from rubric.embed import Check, FrozenMap, fields, thaw
from rubric.formats.fields import Gathering

Data = dict[str, Any]
BOTH = frozenset({"promptfoo", "agentv"})
PROMPTFOO, AGENTV, OWN = frozenset({"promptfoo"}), frozenset({"agentv"}), frozenset[str]()
NEEDED: Any = object()
OPTIONAL: Any = object()  # as NEEDED, but what is absent is read, as None


@frozen
class Said:
    """A check as an assertion: the keys of its *data*, which *systems* have, and its *own*, which our format has."""

    data: Data
    own: Data = field(factory=dict)
    systems: frozenset[str] = BOTH


@frozen
class Value:
    """How a value is read, by a function that refuses with a `DefinitionError`, and its JSON Schema."""

    read: Callable[[Any], Any]
    schema: Data = field(factory=dict)


@frozen
class Key:
    """
    A key of an assertion, called *name* in files; its *value* is read into a *field* of the check.

    Args:
        default: The value of the field where the key is absent, which is not written; else it is needed.
        write: From the value to data; None: another key says the same.
        systems: Which have it; none of them: our own format alone.
    """

    name: str
    field: str
    value: Value
    default: Any = NEEDED
    write: Callable[[Any], Any] | None = thaw
    systems: frozenset[str] = BOTH


@frozen
class Kind:
    """
    A type of assertion: the class *of* its check, or of the check's function, and its *keys*.

    Args:
        fixed: Fields of the check that the type says.
        make: Makes the check of its fields; None: its class does.
        said: Writes it where its fields do not say all.
        lacks: Returns what must be installed for it, or ''.
    """

    of: type
    keys: tuple[Key, ...] = ()
    systems: frozenset[str] = BOTH
    fixed: Mapping[str, Any] = {}
    make: Callable[..., Any] | None = None
    said: Callable[[Any], Said | None] | None = None
    lacks: Callable[[], str] = str

    def names(self, system: str = "") -> frozenset[str]:
        """Return the keys that it has in a *system*; in our own format all."""
        return frozenset(key.name for key in self.keys if not system or system in key.systems)

    def needs(self) -> list[str]:
        """Return the keys that it cannot do without."""
        return [key.name for key in self.keys if key.default is NEEDED]

    def read(self, given: Mapping[str, Any]) -> Check:
        """Return the check of the keys *given*; raises SeveralError: of all that is wrong, each with its path."""
        values, gathering = dict(self.fixed), Gathering()
        for key in self.keys:
            absent = given.get(key.name) is None
            if absent and key.default is NEEDED:
                with gathering.at():
                    raise DefinitionError("", f"the key {key.name!r} is missing; {_expectation(key)}")
            elif absent and key.default is not OPTIONAL:
                values.setdefault(key.field, key.default)
            else:
                with gathering.at(key.name):
                    values[key.field] = key.value.read(given.get(key.name))
        gathering.finish()
        made: Any = None
        with gathering.at():
            made = (self.make or self.of)(**values)
        gathering.finish()
        return made if isinstance(made, Check) else Holds(made)

    def write(self, kind: str, subject: Any) -> Said | None:
        """Return *subject*, of its class, as the assertion *kind*; None where that does not say all of it."""
        if self.said is not None:
            return self.said(subject)
        systems, keys = self.systems, {key.field: key for key in self.keys if key.write}
        given = {one.name for one in fields.shown_fields(subject)}
        rows: tuple[Data, Data] = {}, {}
        for one in attrs.fields(type(subject)):
            value = getattr(subject, one.name)
            key = keys.get(one.name)
            if one.name in self.fixed or key is None:
                if value != self.fixed[one.name] if one.name in self.fixed else one.name in given:
                    return None
            elif value is not None and value != key.default and key.write:
                rows[not key.systems][key.name] = key.write(value)
                systems = systems & key.systems
        return Said({"type": kind, **rows[0]}, rows[1], systems)


def _expectation(key: Key) -> str:
    try:
        key.value.read(None)
    except DefinitionError as problem:
        return problem.message.removesuffix(", got None")
    return "add it"


# -- values ------------------------------------------------------------------------------------------------


def number(low: float | None = None, high: float | None = None, *, units: float = 1) -> Value:
    """Return the reader of a number from *low* to *high*, so many *units* of which make one of ours."""
    span = ("" if low is None else f" from {low:g}") + ("" if high is None else f" to {high:g}")

    def read(value: Any) -> Any:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        if not fits or (low is not None and value < low) or (high is not None and value > high):
            raise fields.refuse("", value, f"a number{span}")
        return value if units == 1 else value / units

    bounds = {"minimum": low, "maximum": high}
    return Value(read, {"type": "number", **{name: bound for name, bound in bounds.items() if bound is not None}})


def instance(kinds: type | tuple[type, ...], words: str, schema: Data) -> Value:
    """Return the reader of a value of *kinds*, in *words*; an empty text is none."""

    def read(value: Any) -> Any:
        if not isinstance(value, kinds) or (value == "" and kinds is str):
            raise fields.refuse("", value, words)
        return value

    return Value(read, schema)


def mapping_of(words: str) -> Value:
    """Return the reader of a mapping, in *words*."""
    return instance((dict, FrozenMap), words, {"type": "object"})


TEXT, FLAG = instance(str, "a text", {"$ref": "#/$defs/text"}), instance(bool, "true or false", {"type": "boolean"})
ANY, MAPPING = Value(lambda value: value), mapping_of("a mapping")


def some(item: Data) -> Data:
    """Return the JSON Schema of an *item*, or of a list of them."""
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]}


def _texts(value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not texts or not all(isinstance(text, str) for text in texts):
        raise fields.refuse("", value, "a text, or a list of texts")
    return tuple(texts)


TEXTS = Value(_texts, some({"type": "string"}))
