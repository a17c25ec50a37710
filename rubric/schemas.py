"""JSON Schemas from rubric files: checked when they are built, never fetched from anywhere, their patterns linear in time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from rubric.errors import DefinitionError
from rubric.patterns import check_pattern, matches
from rubric.showing import shorten


def check_schema(field: str, schema: Mapping[str, Any]) -> None:
    """Refuse what is no JSON Schema, and patterns that RE2 does not take."""
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - heavy, and few rubrics need it

    try:
        _validator(schema).check_schema(schema)
    except SchemaError as problem:
        message = f"not a JSON Schema at {problem.json_path}: {shorten(problem.message)}"
        raise DefinitionError(field, message) from None
    for pattern in _patterns(schema):
        check_pattern(field, pattern)


def misfit(schema: Mapping[str, Any], value: Any) -> str:
    """Return where and why *value* does not fit *schema*; an empty text if it fits."""
    from referencing import Registry  # noqa: PLC0415 - comes with jsonschema
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    validator = _validator(schema)(schema, registry=Registry())
    try:
        error = next(iter(validator.iter_errors(value)), None)
    except Unresolvable as problem:
        raise DefinitionError("schema", f"{problem.ref!r} is outside the schema; nothing is fetched") from None
    return "" if error is None else shorten(f"{error.json_path}: {error.message}")


def _validator(schema: Mapping[str, Any]) -> Any:
    from jsonschema.validators import Draft202012Validator, validator_for  # noqa: PLC0415

    return _linear(validator_for(schema, default=Draft202012Validator))


@cache
def _linear(kind: Any) -> Any:
    """Return the validator class *kind* with its regular expressions searched by RE2."""
    from jsonschema.validators import extend  # noqa: PLC0415

    return extend(kind, {"pattern": _pattern, "patternProperties": _pattern_properties})


def _pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415

    if validator.is_type(instance, "string") and not matches(pattern, instance):
        yield ValidationError(f"{shorten(instance, 80)!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, properties: Mapping[str, Any], instance: Any, _: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for pattern, schema in properties.items():
            for name in filter(lambda name: matches(pattern, name), list(instance)):  # noqa: B023 - used at once
                yield from validator.descend(instance[name], schema, path=name, schema_path=pattern)


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        if isinstance(schema.get("patternProperties"), Mapping):
            yield from schema["patternProperties"]
        for inner in schema.values():
            yield from _patterns(inner)
    elif isinstance(schema, list | tuple):
        for inner in schema:
            yield from _patterns(inner)
