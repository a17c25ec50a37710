"""
Match texts against patterns and JSON Schemas from rubric files, within bounds that no file can exceed.

Regular expressions are RE2's: the time of a search is linear in the text. Schemas are checked when a rubric is built;
nothing is ever fetched, and a check counts its steps. For that a few keywords are our own: patterns are searched by
RE2, items are compared in linear time, references are counted.

`jsonschema-rs` is not taken. It counts no steps, and cannot be interrupted, where a schema of forty lines doubles its
references forty times; a value nested 100,000 levels deep ends the process; and its patterns are not RE2's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any

from rubric.errors import DefinitionError
from rubric.internals.fields import keeping, nearest
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.text import shorten

LONGEST_PATTERN = 1_000
LONGEST_TEXT = 1_000_000

_MOST_REPEATED = 500
"""The most instructions that the counts of a pattern may add: a search can take this many steps a character."""

_SILENT = """
    $anchor $comment $defs $dynamicAnchor $id $recursiveAnchor $schema $vocabulary contentEncoding contentMediaType
    contentSchema default definitions deprecated description else examples id maxContains minContains readOnly then
    title writeOnly discriminator example externalDocs xml
"""
"""Keywords of JSON Schema and OpenAPI that no value is checked by, or only together with another."""

_COUNT = r"(?<!\\)\{\d+(?:,\d*)?\}"


def check_pattern(field: str, pattern: object) -> str:
    """Return *pattern*; refuse all but RE2 syntax, which has no look-around, back-references or far counts."""
    if not isinstance(pattern, str) or not pattern:
        raise DefinitionError(field, f"expected a regular expression, got {pattern!r}")
    if len(pattern) > LONGEST_PATTERN:
        raise DefinitionError(field, f"a pattern has at most {LONGEST_PATTERN} characters, this one {len(pattern)}")
    try:
        _compile(pattern)
    except ValueError as problem:
        message = (
            f"{pattern!r} is not a pattern that RE2 takes ({problem}); "
            "it has no look-around and no back-references, and its \\w and \\d are ASCII (use \\p{L}, \\p{N})"
        )
        raise DefinitionError(field, message) from None
    if _size(pattern) - _size(re.sub(_COUNT, "", pattern)) > _MOST_REPEATED:
        raise DefinitionError(field, f"{pattern!r} repeats too much; count to 100 or so, or use * and +")
    return pattern


pattern = keeping(check_pattern)


def _size(pattern: str) -> int:
    """Return the size of *pattern* as a program over bytes, where a class of letters is one instruction or few."""
    try:
        return int(_compile(pattern.encode()).programsize)
    except ValueError:  # without its counts, or over bytes, it is not a pattern
        return 0


def matches(pattern: str, text: str) -> bool:
    """True if *pattern* is found anywhere in the first million characters of *text*."""
    clean = text[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")
    return _compile(pattern).search(clean) is not None


def json_key(value: Any) -> Hashable:
    """Return what is equal for equal values of JSON alone: in Python, True is 1 as well."""
    if isinstance(value, FrozenMap):
        return frozenset((name, json_key(one)) for name, one in value.items())
    if isinstance(value, tuple):
        return tuple(map(json_key, value))
    return (bool, value) if isinstance(value, bool) else value


def matches_name(name: str, called: str) -> bool:
    """True if *name* is that of the tool *called*; it may have `*` and `?`, and case does not matter."""
    if name in (called, "*"):  # most are; it needs no pattern
        return True
    wild = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in name)
    return matches(f"(?is)^{wild}$", called)  # RE2 is linear: the one is of a file, the other of a run


def spans(pattern: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where *pattern* is found in the first million characters of *text*."""
    clean = text[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")
    return (match.span() for match in _compile(pattern).finditer(clean))


@lru_cache(maxsize=256)  # bounded: a compiled pattern takes up to 8 MiB, and files bring patterns without end
def _compile(pattern: str | bytes) -> Any:
    import re2  # noqa: PLC0415 - a compiled extension that most rubrics never need

    options = re2.Options()
    options.log_errors = False
    if isinstance(pattern, bytes):
        options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True  # groups would need a slower engine, and nothing reads them
    options.max_mem = 8 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error as problem:
        detail = problem.args[0] if problem.args else ""
        raise ValueError(detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)) from None


_MOST_STEPS = 1_000_000

_STEPS_OF_A_REFERENCE = 50
"""Keywords that one check may look at; a schema of a few lines can double its references thirty times."""

_DEEPEST_CHECK = 100
"""Keywords within keywords. Python's recursion limit is not a bound: compiled code may crash before it is reached."""

_DEEPEST_SCHEMA = 40


class _TooMuchError(Exception):
    """A check took too many steps, or went too deep."""


def check_schema(field: str, schema: Mapping[str, Any]) -> None:
    """Refuse a faulty JSON Schema, patterns that RE2 does not take, and references that lead outside or nowhere."""
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - heavy, and few rubrics need it

    parts = list(_parts(field, schema))
    try:
        _kind(schema).check_schema(schema, format_checker=None)  # a format checker would refuse RE2's own patterns
    except SchemaError as problem:
        raise DefinitionError(field, f"not a JSON Schema at {problem.json_path}: {shorten(problem.message)}") from None
    except (AttributeError, ArithmeticError, RecursionError, TypeError, ValueError) as problem:  # beyond jsonschema
        raise DefinitionError(field, f"not a JSON Schema: {shorten(str(problem))}") from None
    _check_keywords(field, schema)
    for part in parts:
        patterns = [part["pattern"]] if isinstance(part.get("pattern"), str) else []
        named = part.get("patternProperties")
        for pattern in [*patterns, *(named if isinstance(named, Mapping) else ())]:
            check_pattern(field, pattern)
    if any("unevaluatedProperties" in part for part in parts) and any("patternProperties" in part for part in parts):
        raise DefinitionError(field, "unevaluatedProperties and patternProperties are not taken together")
    # References may lead outside, nowhere, in a circle or to thousands of others: each is followed.
    starts = [schema]
    if sum("$id" in part for part in parts) < 2:  # noqa: PLR2004 - further ones change what references are relative to
        references = dict.fromkeys(part["$ref"] for part in parts if isinstance(part.get("$ref"), str))
        starts += [{"$ref": reference} for reference in references]
    if any(_misfit(field, schema, None, start) is None for start in starts):
        raise DefinitionError(field, "the schema refers to itself, or to other parts of itself, without an end")


def _check_keywords(field: str, schema: Any) -> None:
    """
    Refuse keywords that no dialect has: a validator passes over them, so a slip, or an example, would fit everything.

    Annotations of OpenAPI and names that begin with `x-` are taken. The strict mode of ajv, promptfoo's, takes neither.
    """
    from referencing.jsonschema import DRAFT202012  # noqa: PLC0415 - comes with jsonschema

    known = _keywords()
    for name in map(str, schema):
        if name == "nullable":
            raise DefinitionError(field, 'nullable is of OpenAPI and allows nothing here; write type: [string, "null"]')
        if name not in known and not name.startswith("x-"):
            near = nearest(name, sorted(known), 0.8)
            cure = f"did you mean {near[0]!r}?" if near else "for a value itself, write {const: ...}"
            raise DefinitionError(field, f"{shorten(repr(name), 60)} is not a keyword of JSON Schema; {cure}")
    for inner in DRAFT202012.subresources_of(schema):
        if isinstance(inner, Mapping):
            _check_keywords(field, inner)


@cache
def _keywords() -> frozenset[str]:
    from jsonschema import validators  # noqa: PLC0415

    kinds = [getattr(validators, name) for name in dir(validators) if name.startswith("Draft")]
    return frozenset(_SILENT.split()).union(*(kind.VALIDATORS for kind in kinds))


def _parts(field: str, schema: Any, levels: int = _DEEPEST_SCHEMA) -> Iterator[Mapping[str, Any]]:
    """Yield every mapping in *schema*, itself too; refuse what is nested too deeply to be walked."""
    if not levels:
        raise DefinitionError(field, f"a schema is nested at most {_DEEPEST_SCHEMA} deep, this one more")
    if isinstance(schema, Mapping):
        yield schema
    for inner in schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list | tuple) else ():
        yield from _parts(field, inner, levels - 1)


def unknown_formats(schema: Mapping[str, Any]) -> list[str]:
    """Return the formats that *schema* names and that nothing checks."""
    from rubric.values.schema_formats import FORMATS  # noqa: PLC0415 - for schemas, which few rubrics have

    named = (part.get("format") for part in _parts("schema", schema))
    return sorted({name for name in named if isinstance(name, str)} - FORMATS)


def misfit(schema: Mapping[str, Any], value: Any) -> str:
    """Return where and why *value* does not fit *schema*; an empty text if it fits."""
    found = _misfit("schema", schema, value)
    return "$: it is nested too deeply, or is too much, to be checked" if found is None else found


def _misfit(field: str, schema: Mapping[str, Any], value: Any, start: Mapping[str, Any] | None = None) -> str | None:
    """Return what `misfit` does, or None if that takes too much; *start*: the part of *schema* to begin at."""
    from referencing import Registry  # noqa: PLC0415 - comes with jsonschema
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    validator = _bound_validator(_kind(schema))(_without_dialects(schema), registry=Registry())
    work = _WORK.set(SimpleNamespace(steps=0, depth=0))
    try:
        begun = validator if start is None else validator.evolve(schema=_without_dialects(start))
        error = next(begun.iter_errors(value), None)
    except Unresolvable as problem:
        message = f"{problem.ref!r} is outside the schema, or nowhere in it; nothing is fetched; write what it has here"
        raise DefinitionError(field, message) from None
    except (_TooMuchError, RecursionError, ArithmeticError):
        return None
    finally:
        _WORK.reset(work)
    return "" if error is None else shorten(f"{error.json_path}: {error.message}")


def _kind(schema: Mapping[str, Any]) -> Any:
    from jsonschema.validators import Draft202012Validator, validator_for  # noqa: PLC0415

    return validator_for(schema, default=Draft202012Validator)


def _without_dialects(schema: Any) -> Any:
    """Return *schema* without `$schema`: on meeting one, jsonschema would go back to its own keywords."""
    if isinstance(schema, Mapping):
        return {k: _without_dialects(v) for k, v in schema.items() if k != "$schema" or not isinstance(v, str)}
    return [_without_dialects(inner) for inner in schema] if isinstance(schema, list | tuple) else schema


# -- keywords of our own: from a validator, the keyword's value, what is checked and the schema, to the errors ---------

# Keywords are given no place for it.
_WORK: ContextVar[SimpleNamespace] = ContextVar("the work of the check in progress")


@cache
def _bound_validator(kind: Any) -> Any:
    """Return the validator class *kind* with our own keywords."""
    from jsonschema.validators import extend  # noqa: PLC0415

    own = {
        "format": _format,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    counted = {name: _count_steps(name, own.get(name, keyword)) for name, keyword in kind.VALIDATORS.items()}
    return extend(kind, counted)  # type: ignore[no-untyped-call]  # its types are not said


def _count_steps(name: str, keyword: Any) -> Callable[..., Iterator[Any]]:
    steps = _STEPS_OF_A_REFERENCE if "Ref" in name or name in ("$ref", "extends") else 1

    def count_steps(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        work = _WORK.get()
        work.steps += steps
        work.depth += 1
        try:
            if work.steps > _MOST_STEPS or work.depth > _DEEPEST_CHECK:
                raise _TooMuchError
            yield from keyword(validator, value, instance, schema) or ()
        finally:
            work.depth -= 1

    return count_steps


def _error(message: str) -> Any:
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415

    return ValidationError(message)


def _format(_: Any, name: str, instance: Any, __: Mapping[str, Any]) -> Iterator[Any]:
    from rubric.values.schema_formats import fits  # noqa: PLC0415 - as above

    if not fits(name, instance):
        yield _error(f"{shorten(repr(instance), 80)} is not of the format {name!r}")


def _pattern(validator: Any, pattern: str, instance: Any, _: Mapping[str, Any]) -> Iterator[Any]:
    if validator.is_type(instance, "string") and not matches(pattern, instance):
        yield _error(f"{shorten(instance, 80)!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, properties: Mapping[str, Any], instance: Any, _: Mapping[str, Any]
) -> Iterator[Any]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, schema in properties.items():
        for name in [name for name in instance if matches(pattern, name)]:
            yield from validator.descend(instance[name], schema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, extra: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    if extra is True or not validator.is_type(instance, "object"):
        return
    patterns = schema.get("patternProperties", {})
    for name in [name for name in instance if name not in schema.get("properties", {})]:
        if any(matches(pattern, name) for pattern in patterns):
            continue
        if extra is False:
            yield _error(f"{shorten(name, 80)!r} is not among the properties that are allowed")
        else:
            yield from validator.descend(instance[name], extra, path=name)


def _unique_items(validator: Any, wanted: Any, instance: Any, _: Mapping[str, Any]) -> Iterator[Any]:
    import json  # noqa: PLC0415 - building a rubric needs none

    if wanted and validator.is_type(instance, "array"):
        seen = {json.dumps(_normal(item), sort_keys=True) for item in instance}
        if len(seen) < len(instance):
            yield _error("two of the items are equal")


def _normal(value: Any) -> Any:
    """Return *value* with 1.0 as 1: JSON Schema takes them for equal."""
    if isinstance(value, dict):
        return {key: _normal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_normal(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
