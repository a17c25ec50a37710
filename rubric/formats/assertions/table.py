"""
Assertions that code decides: one table of their types, from which readers, writers and the JSON Schema come.

A row of `KINDS` says which keys a type has, which field of the check each of them is, and which systems have it. A
check without a row has no place in the files of other systems. A package adds a type with an entry point of the group
`rubric.assertions` that names a `Kind`. What each type holds of is in docs/how-to/from_promptfoo.md and from_agentv.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

import attrs
from attrs import evolve

from rubric import (
    Candidate,
    Contains,
    ContainsAll,
    ContainsAny,
    DefinitionError,
    EndsWith,
    Equals,
    FitsSchema,
    Holds,
    IsJSON,
    Matches,
    StartsWith,
    Trajectory,
)
from rubric.embed import Check, FrozenMap, Key, Kind, fields, number, plugins, thaw
from rubric.formats.assertions import tool_calls
from rubric.formats.assertions.field_accuracy import AGGREGATIONS, MATCHES, Field, FieldAccuracy
from rubric.formats.assertions.forms import FORMS, FinishReason, Form, PerplexityScore, form_of, sql_lacks
from rubric.formats.assertions.keys import (
    AGENTV,
    ANY,
    BOTH,
    FLAG,
    MAPPING,
    NEEDED,
    OPTIONAL,
    OWN,
    PROMPTFOO,
    TEXT,
    TEXTS,
    Data,
    Said,
    Value,
    instance,
    mapping_of,
    some,
)
from rubric.formats.assertions.text_metrics import EXTRA, THRESHOLDS, TextMetric, is_installed
from rubric.formats.assertions.texts import DETERMINISTIC, ContainsJSON
from rubric.formats.assertions.tool_calls import Used
from rubric.formats.fields import UnknownKeyError, read_all, reader_of
from rubric.formats.javascript import JavaScript, Transform, Transformed, inline
from rubric.formats.python import is_python, python_data, python_script
from rubric.programs.javascript import Program
from rubric.suites.output_choice import MaxScore, SelectBest
from rubric.values import Script, Within

GROUP = "rubric.assertions"
"""The group of entry points in which packages register types."""


def _in_units(units: float) -> Callable[[float], float]:
    def write(found: float) -> float:
        short = float(f"{found * units:.15g}")  # 1.001 * 1000 is 1000.9999999999999, and 1001 / 1000 is 1.001
        shown = short if short / units == found else found * units
        return int(shown) if shown.is_integer() else shown

    return write


def _limit(name: str, key: str, units: float = 1, **more: Any) -> Key:
    return Key(key, name, number(0, units=units), None, **{"write": _in_units(units), **more})


# -- rows --------------------------------------------------------------------------------------------------


_TEXT_OR_NUMBER: Data = {"type": ["string", "number"]}


def _value_row(type_: str, of: type, name: str, systems: frozenset[str] = BOTH, **fixed: Any) -> dict[str, Kind]:
    """Return the row of a *type* whose one key is the value of the field *name*."""
    item = {} if type_ == "equals" or type_.endswith("-json") else _TEXT_OR_NUMBER
    schema = some(item) if type_.endswith(("-any", "-all")) else item
    default = OPTIONAL if type_.endswith("-json") else NEEDED
    key = Key("value", name, Value(DETERMINISTIC[type_], schema), default)  # makes the check, which may be another one
    return {type_: Kind(of, (key,), systems, fixed, lambda **made: made[name])}


_FOLDED: Data = {"ignore_case": True}
_STEPS = "trajectory:step-count"
_USED = {"tool": "trajectory:tool-used", "step": _STEPS, "command": _STEPS, "skill": "skill-used"}


def _write_used(function: Used) -> Said | None:
    kind, own = _USED[function.what], {"any": True} if function.one else {}
    if (function.least, function.most) == (1, None) and kind != _STEPS:
        return Said({"type": kind, "value": [*function.names]}, own, OWN if own else BOTH)
    if len(function.names) != 1 or own:
        return None
    step = {"type": "command"} if function.what == "command" else {}
    most = {} if function.most is None else {"max": function.most}
    return Said({"type": kind, "value": {**step, "pattern": function.names[0], "min": function.least, **most}})


def _arguments(function: tool_calls.ArgumentsMatch) -> Said:
    value: Data = {"name": function.name, "args": thaw(function.expected)}
    value |= {"mode": "exact"} if function.exact else {}
    value |= {"ignore": [*function.ignore]} if function.ignore else {}
    value |= {"defaults": thaw(function.defaults)} if function.defaults else {}
    return Said({"type": "trajectory:tool-args-match", "value": value})


def _sequence(check: Trajectory) -> Said:
    steps = {"mode": "exact", "steps": [*check.tools]} if check.order == "exact" else [*check.tools]
    return Said({"type": "trajectory:tool-sequence", "value": steps})


_ANY = Key("any", "one", FLAG, default=False, systems=OWN)
_VALUE = Key("value", "value", ANY)
_CALLS: dict[str, tuple[type, Callable[[Any], Said | None], tuple[Key, ...]]] = {
    "trajectory:tool-used": (Used, _write_used, (_VALUE, _ANY)),
    "skill-used": (Used, _write_used, (_VALUE, _ANY)),
    _STEPS: (Used, _write_used, (_VALUE, _ANY)),
    "trajectory:tool-sequence": (Trajectory, _sequence, (_VALUE,)),
    "trajectory:tool-args-match": (tool_calls.ArgumentsMatch, _arguments, (_VALUE,)),
}


def _form(kind: str) -> Value:
    return Value(lambda value: form_of(kind, value).value)


def _names(value: Any) -> tuple[str, ...]:
    return tool_calls.names(value.split(",") if isinstance(value, str) else value)


def _one(names: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        fields.check_name("", value, names)
        return str(value)

    return read


_OF_FIELDS: dict[str, Any] = {
    "path": instance(str, "a path", TEXT.schema), "match": Value(_one(MATCHES), {"enum": [*MATCHES]}), "required": FLAG,
    "relative": FLAG, "weight": number(0), "tolerance": number(0), "formats": TEXTS,
}  # fmt: skip
_read_field = reader_of(Field, **{name: one.read for name, one in _OF_FIELDS.items()})


def _field_data(function_fields: tuple[Field, ...]) -> list[Data]:
    usual = {one.name: one.default for one in attrs.fields(Field)}
    rows = [attrs.asdict(one, filter=lambda at, said: said != usual[at.name]) for one in function_fields]
    return [{key: [*said] if isinstance(said, tuple) else said for key, said in row.items()} for row in rows]


_FIELD: Data = {"type": "object", "required": ["path"], "additionalProperties": False}
_FIELD["properties"] = {name: one.schema for name, one in _OF_FIELDS.items()}
_FIELDS: Data = {"type": "array", "minItems": 1, "items": _FIELD}


def _fields(value: Any) -> tuple[Field, ...]:
    if not value:
        raise fields.refuse("", value, "a list of fields, each with a path")
    return tuple(read_all(value, "field", _read_field))


def _skill(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DefinitionError("", "expected the name of a skill as `skill`")
    return value.strip()


_SCHEMAS = Key("schemas", "schemas", mapping_of("a JSON Schema for each tool, by its name"), systems=OWN)

KINDS: dict[str, Kind] = {
    **_value_row("contains", Contains, "text"),
    **_value_row("icontains", Contains, "text", **_FOLDED),
    **_value_row("contains-any", ContainsAny, "texts"),
    **_value_row("contains-all", ContainsAll, "texts"),
    **_value_row("icontains-any", ContainsAny, "texts", **_FOLDED),
    **_value_row("icontains-all", ContainsAll, "texts", **_FOLDED),
    **_value_row("equals", Equals, "text"),
    **_value_row("regex", Matches, "pattern"),
    **_value_row("starts-with", StartsWith, "text"),
    **_value_row("ends-with", EndsWith, "text"),
    **_value_row("is-json", FitsSchema, "schema"),
    **_value_row("contains-json", ContainsJSON, "schema", PROMPTFOO),
    "latency": Kind(Within, (_limit("latency", "threshold", 1000),)),
    "cost": Kind(Within, (_limit("cost", "budget", systems=AGENTV, write=None), _limit("cost", "threshold"))),
    "perplexity": Kind(Within, (_limit("perplexity", "threshold"),), PROMPTFOO),
    "execution-metrics": Kind(
        Within,
        (
            _limit("tool_calls", "max_tool_calls"), _limit("calls", "max_llm_calls"), _limit("tokens", "max_tokens"),
            _limit("cost", "max_cost_usd"), _limit("latency", "max_duration_ms", 1000),
        ),
        AGENTV,
    ),
    "token-usage": Kind(Within, (_limit("tokens", "max_total"),), AGENTV),
    **{
        kind: Kind(
            TextMetric,
            (
                Key("value", "references", TEXTS, write=lambda texts: texts[0] if len(texts) == 1 else [*texts]),
                Key("threshold", "threshold", number(0), bar),
            ),
            PROMPTFOO,
            {"kind": kind},
            lacks=lambda: "" if is_installed() else EXTRA,
        )
        for kind, bar in THRESHOLDS.items()
    },
    **{
        kind: Kind(
            Form,
            (
                Key(
                    "value", "value", _form(kind),
                    NEEDED if kind == "word-count" else OPTIONAL, lambda value: value.get("count", thaw(value)),
                ),
            ),
            PROMPTFOO,
            {"kind": kind},
            lacks=sql_lacks if kind.endswith("sql") else str,
        )
        for kind in FORMS
    },
    "finish-reason": Kind(FinishReason, (Key("value", "expected", TEXT),), PROMPTFOO),
    "perplexity-score": Kind(PerplexityScore, (Key("threshold", "threshold", number(0, 1), None),), PROMPTFOO),
    **{
        kind: Kind(of, keys, BOTH, make=partial(tool_calls.trajectory_check, kind), said=said)
        for kind, (of, said, keys) in _CALLS.items()
    },
    "tool-call-f1": Kind(
        tool_calls.ToolCallF1,
        (
            Key("value", "expected", Value(_names, some({"type": "string"}))),
            Key("threshold", "threshold", number(0, 1), 1.0, systems=PROMPTFOO),
        ),
    ),
    "field-accuracy": Kind(
        FieldAccuracy,
        (
            Key("fields", "fields", Value(_fields, _FIELDS), write=_field_data),
            Key(
                "aggregation", "strict", Value(
                    lambda value: _one(AGGREGATIONS)(value) == AGGREGATIONS[1], {"enum": [*AGGREGATIONS]}
                ), default=False, write=lambda strict: AGGREGATIONS[strict],
            ),
        ),
        AGENTV,
    ),
    "tool-trajectory": Kind(
        tool_calls.ToolTrajectory,
        tuple(Key(name, name, ANY, None) for name in sorted(tool_calls.KEYS)),
        AGENTV,
        make=lambda **given: tool_calls.read_tool_trajectory({k: v for k, v in given.items() if v is not None}),
        said=lambda found: Said({"type": "tool-trajectory", **tool_calls.trajectory_data(found)}, systems=AGENTV),
    ),
    "skill-trigger": Kind(
        tool_calls.SkillTriggered,
        (Key("skill", "skill", Value(_skill, TEXT.schema)), Key("should_trigger", "wanted", FLAG, default=True)),
        AGENTV,
    ),
    **{kind: Kind(tool_calls.ValidCalls, (_SCHEMAS,), OWN, {"kind": kind}) for kind in tool_calls.SOURCES},
    "select-best": Kind(
        SelectBest,
        (Key("test", "test", TEXT), Key("text", "text", TEXT, ""), Key("prompt", "prompt", TEXT, None)),
        OWN,
    ),
    "max-score": Kind(
        MaxScore,
        (
            Key("test", "test", TEXT), Key("weights", "weights", MAPPING, FrozenMap()),
            Key("total", "total", FLAG, default=False), Key("threshold", "threshold", number(), None),
        ),
        OWN,
    ),
}  # fmt: skip
"""The types that code decides, without `not-`. Where two say the same of a check, the first is written."""


@cache
def _plugin_names() -> tuple[str, ...]:
    return plugins.names(GROUP)  # a look-up is slow, and files may hold many types that nobody has


@cache
def _plugin_kinds() -> dict[str, Kind]:
    return plugins.load_all(GROUP, _registered)


def _registered(name: str) -> Kind:
    plugin = plugins.load(GROUP, name, "type")
    if plugin is None or not isinstance(plugin.value, Kind) or name in KINDS:
        raise DefinitionError("type", f"{name!r} of {plugin and plugin.source} is not a new Kind; uninstall it")
    return plugin.value


def find_kind(name: str) -> Kind | None:
    """
    Return the type called *name*, without `not-`; None if neither this package nor a plug-in has it.

    Raises:
        DefinitionError: A package registers something else than a new type under this name.
    """
    if known := KINDS.get(name) or _plugin_kinds().get(name):
        return known
    return _registered(name) if name in _plugin_names() else None


# -- writing -----------------------------------------------------------------------------------------------


def write_check(check: Check, *, negated: bool = False) -> Said | None:
    """Return *check* as an assertion, to be *negated* by `not-` or not; None where no system has the same."""
    subject: Any = check.function if isinstance(check, Holds) else check
    if negated and isinstance(subject, Used) and len(subject.names) > 1:
        subject = evolve(subject, one=not subject.one)  # as it is read before it is turned over
    if isinstance(subject, Script):
        return _write_python(subject) if is_python(subject) else None
    if isinstance(subject, IsJSON):
        return Said({"type": "is-json"})
    if type(subject) in _CODE:
        return _CODE[type(subject)](subject)
    ours = _write_by(KINDS, subject)
    return _write_by(_plugin_kinds(), subject) if ours is None else ours  # others are looked up where none of ours does


def _write_by(kinds: Mapping[str, Kind], subject: Any) -> Said | None:
    rows = ((kind, row) for kind, row in kinds.items() if row.of is type(subject))
    return next((assertion for kind, row in rows if (assertion := row.write(kind, subject)) is not None), None)


def _code(program: Program) -> str | Data:
    """Return the code of *program* as it is inline in a file; a mapping, of our own, for what is not inline."""
    if program.module:
        return {"module": program.body, **({"function": program.name} if program.name else {})}
    tried = (program.body.removeprefix("return "), program.body)
    return next((code for code in tried if inline(code) == program), {"body": program.body})


def _program(value: Any, at: str) -> Program:
    if isinstance(value, str) and value.strip():
        return inline(value)
    if isinstance(value, Mapping) and {*value} in ({"module"}, {"module", "function"}, {"body"}):
        texts = [*map(str, value.values())]
        return Program(texts[0]) if "body" in value else Program(texts[0], True, str(value.get("function", "")))  # noqa: FBT003
    raise fields.refuse(at, value, "code: a text, {body}, or {module, function}")


def _write_javascript(function: JavaScript) -> Said:
    code = _code(function.program)
    said = {"value": code, "threshold": function.threshold, "config": thaw(function.config)}
    data = {"type": "not-javascript" if function.negate else "javascript"}
    data |= {key: value for key, value in said.items() if value is not None}
    own: Data = {} if function.source == code else {"source": function.source}
    own |= {"variables": thaw(function.variables)} if function.variables else {}
    if not isinstance(code, str):
        return Said(data, own, OWN)
    return Said(data, own, PROMPTFOO)


def _write_transformed(function: Transformed) -> Said | None:
    inner = write_check(function.check)
    transform = function.transform
    if inner is None or "transform" in inner.data or transform.context is not None or transform.scripts:
        return None
    if "javascript" in inner.data["type"] and inner.own.get("variables", {}) != thaw(transform.variables):
        return None  # both are of one test, whose variables they see
    said = write_transform(transform)
    return Said(inner.data | said.data, inner.own | said.own, inner.systems & said.systems)


def write_transform(transform: Transform) -> Said:
    """Return *transform*, one without `scripts`, as keys of an assertion; in our own format also those of an `on`."""
    codes = [_code(program) for program in transform.programs if isinstance(program, Program)]
    plain = len(codes) == 1 and isinstance(codes[0], str)
    data: Data = {"transform": codes[0] if plain else codes} if codes else {}
    own: Data = {"variables": thaw(transform.variables)} if transform.variables else {}
    own |= {"shared": transform.shared} if transform.shared else {}
    own |= {"context": _code(transform.context)} if isinstance(transform.context, Program) else {}
    own |= {"images": [*transform.images]} if transform.images else {}
    return Said(data, own, PROMPTFOO if plain and transform.context is None and not transform.images else OWN)


def _write_python(script: Script) -> Said:
    data, own = python_data(script)
    own |= {"folder": script.folder} if script.folder else {}
    return Said(data, own, OWN if own else PROMPTFOO)


_CODE: dict[type, Callable[[Any], Said | None]] = {JavaScript: _write_javascript, Transformed: _write_transformed}


# -- reading -----------------------------------------------------------------------------------------------


def read_transform(given: Mapping[str, Any]) -> Transform:
    """Return the transform that `write_transform` wrote as *given*; raise DefinitionError for other data."""
    listed = given.get("transform", [])
    programs = tuple(_program(code, "transform") for code in (listed if isinstance(listed, list | tuple) else [listed]))
    variables, shared = given.get("variables", {}), given.get("shared", 0)
    if not isinstance(variables, Mapping):
        raise fields.refuse("variables", variables, "a mapping")
    if isinstance(shared, bool) or not isinstance(shared, int) or not 0 <= shared <= len(programs):
        raise fields.refuse("shared", shared, "how many of the programs are the test's")
    of_context, images = given.get("context"), Candidate("", images=given.get("images", ())).images
    if not programs and of_context is None and not images:
        raise fields.refuse("transform", listed, "code, or a list of it")
    context = None if of_context is None else _program(of_context, "context")
    return Transform(programs, FrozenMap(variables), shared, context, images)


def _check_keys(given: Iterable[str], known: Iterable[str], owner: str = "") -> None:
    for key in {*given} - {*known}:
        raise DefinitionError(key, f"unknown key{UnknownKeyError(key, sorted(known), owner).cure}")


def read_view(given: Mapping[str, Any]) -> Transform:
    """Return the transform that a criterion is `on`; raises DefinitionError: it is none."""
    _check_keys(given, ("transform", "variables", "shared", "context", "images"), "View")
    return read_transform(given)


def _javascript_of(
    value: Any, source: str | None, variables: Any, config: Any, threshold: float | None, *, negate: bool
) -> JavaScript:
    said = source if source is not None else value if isinstance(value, str) else "a module"
    settings = None if config is None else FrozenMap(config)
    return JavaScript(
        said, _program(value, "value"), FrozenMap(variables), settings, threshold=threshold, negate=negate
    )


def _python_of(value: str, threshold: float | None, config: Any, folder: str, *, data: bool, negate: bool) -> Check:
    source = "output['']" if data else ""
    made = python_script(value, source=source, threshold=threshold, negate=negate, config=config)
    return evolve(made, folder=folder)


_BAR = Key("threshold", "threshold", number(), None)
_SOURCE = instance((str, dict), "code: a text, {body}, or {module, function}", {"type": ["string", "object"]})
_READ: dict[str, Kind] = {
    **{f"{no}javascript": Kind(JavaScript, (
        Key("value", "value", _SOURCE), _BAR, Key("config", "config", MAPPING, None),
        Key("source", "source", TEXT, None), Key("variables", "variables", MAPPING, FrozenMap()),
    ), fixed={"negate": bool(no)}, make=_javascript_of) for no in ("", "not-")},
    **{f"{no}python": Kind(Script, (
        Key("value", "value", TEXT), _BAR, Key("config", "config", ANY, None), Key("data", "data", FLAG, default=False),
        Key("folder", "folder", TEXT, ""),
    ), fixed={"negate": bool(no)}, make=_python_of) for no in ("", "not-")},
}  # fmt: skip
"""The types of code in our own format, which turn their own verdicts over."""


def read_assertion(given: Mapping[str, Any]) -> Check:
    """Return the check of an assertion in our own format, or raise an error with each key that is wrong."""
    kind = given.get("type")
    row = _READ.get(kind) or find_kind(kind) if isinstance(kind, str) else None
    if row is None:
        raise DefinitionError("type", f"no such assertion: {kind!r}{fields.suggest(str(kind), _all())}")
    _check_keys(given, row.names() | {"type", *_OF_ALL})
    check = row.read(thaw(given))
    return Holds(Transformed(check, read_transform(given))) if "transform" in given else check


_OF_ALL: Data = {"transform": {}, "variables": MAPPING.schema, "shared": {"type": "integer", "minimum": 0}}
"""The keys that each type has, for what its check is asked of."""


def _all() -> dict[str, Kind]:
    return {**KINDS, **_READ, **_plugin_kinds()}


def assertion_schema() -> Data:
    """Return the JSON Schema of an assertion in our own format; types with the same keys share a form."""
    forms: dict[str, Data] = {}
    for kind, row in _all().items():
        keys = _OF_ALL | {key.name: key.value.schema for key in row.keys}
        required = ["type", *row.needs()]
        form = forms.setdefault(json.dumps([keys, required]), {"properties": {"type": {"enum": []}, **keys}})
        form |= {"required": required, "additionalProperties": False}
        form["properties"]["type"]["enum"].append(kind)
    return {"type": "object", "anyOf": [*forms.values()]}
