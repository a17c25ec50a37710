"""
Checks as assertions: plain data with a `type`, as promptfoo and AgentV write them, and back.

| check | type |
|---|---|
| of texts, patterns and JSON | as in `assertion_types` |
| limits of a run | `latency`, `cost`, `perplexity`; several in AgentV: `execution-metrics` |
| similarity | `similar`, of words and letters `rouge-n`, `bleu`, `gleu`, `levenshtein` |
| calls of tools | `trajectory:*`, `skill-used`, `tool-call-f1`, `is-valid-*-call` |
| runs and fields, in AgentV | `tool-trajectory`, `skill-trigger`, `field-accuracy` |
| the form of an output | `is-xml`, `is-html`, `is-sql` and `contains-*` of them, `word-count` |
| how it ended | `finish-reason`, `perplexity-score` |
| code | `javascript`, `python`; any of these with a `transform` |

`said_of` is the one table of them: a check without a row in it has no place in the files of other systems. What only
our own format holds, under `check: {assertion: ...}`, is beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs
from attrs import evolve, field, frozen

from rubric.errors import DefinitionError
from rubric.formats.assertion_types import DETERMINISTIC, ContainsJSON, check_of, type_of
from rubric.formats.field_accuracy import AGGREGATIONS, MATCHES, Field, FieldAccuracy
from rubric.formats.javascript import RETURNS, JavaScript, Transform, Transformed, inline
from rubric.formats.output_checks import FORMS, FinishReason, Form, PerplexityScore, form_of
from rubric.formats.python import is_python, python_data, python_script
from rubric.formats.text_metrics import THRESHOLDS, TextMetric
from rubric.formats.tool_trajectory import (
    KEYS,
    SKILL_KEYS,
    SkillTriggered,
    ToolTrajectory,
    read_skill_trigger,
    read_tool_trajectory,
    tool_trajectory_data,
)
from rubric.formats.trajectories import KINDS, ArgumentsMatch, ToolCallF1, Used, trajectory_check
from rubric.formats.valid_calls import SOURCES, ValidCalls
from rubric.internals.fields import refuse, suggest
from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.internals.javascript import Program
from rubric.suites.comparisons import Comparison, MaxScore, SelectBest
from rubric.values import checks
from rubric.values.checks import Check, Holds

Data = dict[str, Any]


@frozen
class Said:
    """
    A check as an assertion.

    Args:
        data: Its keys, as promptfoo and AgentV spell them.
        own: Further keys, which only our own format has.
        systems: Which systems have it with the keys of *data*.
    """

    data: Data
    own: Data = field(factory=dict)
    systems: frozenset[str] = frozenset({"promptfoo", "agentv"})


_PROMPTFOO, _AGENTV, _NEITHER = frozenset({"promptfoo"}), frozenset({"agentv"}), frozenset[str]()
_MILLISECONDS = 1000


def said_of(check: Check, *, negated: bool = False) -> Said | None:
    """
    Return *check* as an assertion; None where no system has one that does exactly the same.

    Args:
        negated: Whether it is turned over where it is written, by `not-` before its type.
    """
    match check:
        case checks.Within():
            return _limits(check)
        case checks.Trajectory():
            steps = {"mode": "exact", "steps": [*check.tools]} if check.order == "exact" else [*check.tools]
            return None if check.order == "any_order" else Said(_valued("trajectory:tool-sequence", steps))
        case checks.Script():
            return _python(check) if is_python(check) else None
        case Holds():
            row = FUNCTIONS.get(type(check.function))
            return None if row is None else row(_unturned(check.function, negated=negated))
        case _:  # those for which there is no type differ from system to system: see the writers
            named = type_of(check)
            return None if named is None else Said(_valued(*named))


def _valued(kind: str, value: Any = None) -> Data:
    return {"type": kind} if value is None else {"type": kind, "value": value}


_UNITS = {"latency": ("latency", _MILLISECONDS), "cost": ("cost", 1), "perplexity": ("perplexity", 1)}
_METRICS = {
    "tool_calls": ("max_tool_calls", 1),
    "calls": ("max_llm_calls", 1),
    "tokens": ("max_tokens", 1),
    "cost": ("max_cost_usd", 1),
    "latency": ("max_duration_ms", _MILLISECONDS),
}


def _limits(check: checks.Within) -> Said | None:
    limits = check.limits
    (first, *others) = limits
    if not others and first in _UNITS:
        kind, units = _UNITS[first]
        systems = _PROMPTFOO if first == "perplexity" else _PROMPTFOO | _AGENTV
        return Said({"type": kind, "threshold": _whole(limits[first] * units)}, systems=systems)
    if not limits.keys() <= _METRICS.keys():
        return None
    rows = {_METRICS[name][0]: _whole(limit * _METRICS[name][1]) for name, limit in limits.items()}
    return Said({"type": "execution-metrics", **rows}, systems=_AGENTV)


def _whole(number: float) -> float:
    return int(number) if float(number).is_integer() else number


# -- functions ---------------------------------------------------------------------------------------------


def _unturned(function: Any, *, negated: bool) -> Any:
    """Return *function* as it is read before it is turned over: then one of several names is enough."""
    several = isinstance(function, Used) and len(function.names) > 1
    return evolve(function, one=not function.one) if negated and several else function


def _contains_json(function: ContainsJSON) -> Said:
    schema = None if function.schema is None else thaw(function.schema)
    return Said(_valued("contains-json", schema), systems=_PROMPTFOO)


def _text_metric(function: TextMetric) -> Said:
    texts = [*function.references]
    data = _valued(function.kind, texts[0] if len(texts) == 1 else texts)
    bar = {} if function.threshold == THRESHOLDS[function.kind] else {"threshold": function.threshold}
    return Said(data | bar, systems=_PROMPTFOO)


_STEPS = "trajectory:step-count"
_USED = {"tool": "trajectory:tool-used", "step": _STEPS, "command": _STEPS, "skill": "skill-used"}


def _used(function: Used) -> Said | None:
    kind, own = _USED[function.what], {"any": True} if function.one else {}
    systems = _NEITHER if own else _PROMPTFOO | _AGENTV
    if (function.least, function.most) == (1, None) and kind != _STEPS:
        return Said(_valued(kind, [*function.names]), own, systems)
    if len(function.names) != 1 or own:
        return None
    most = {} if function.most is None else {"max": function.most}
    typed = {"type": "command"} if function.what == "command" else {}
    return Said(_valued(kind, {**typed, "pattern": function.names[0], "min": function.least, **most}))


def _arguments(function: ArgumentsMatch) -> Said:
    value: Data = {"name": function.name, "args": thaw(function.expected)}
    value |= {"mode": "exact"} if function.exact else {}
    value |= {"ignore": [*function.ignore]} if function.ignore else {}
    value |= {"defaults": thaw(function.defaults)} if function.defaults else {}
    return Said(_valued("trajectory:tool-args-match", value))


def _f1(function: ToolCallF1) -> Said:
    data = _valued("tool-call-f1", [*function.expected])
    bar = {} if function.threshold == 1 else {"threshold": function.threshold}
    return Said(data | bar, systems=_PROMPTFOO if bar else _PROMPTFOO | _AGENTV)


def _tool_trajectory(function: ToolTrajectory) -> Said:
    return Said({"type": "tool-trajectory", **tool_trajectory_data(function)}, systems=_AGENTV)


def _skill_triggered(function: SkillTriggered) -> Said:
    wanted = {} if function.wanted else {"should_trigger": False}
    return Said({"type": "skill-trigger", "skill": function.skill, **wanted}, systems=_AGENTV)


def _fields(function: FieldAccuracy) -> Said:
    usual = {one.name: one.default for one in attrs.fields(Field)}
    rows = [attrs.asdict(one, filter=lambda at, said: said != usual[at.name]) for one in function.fields]
    rows = [{key: [*said] if isinstance(said, tuple) else said for key, said in row.items()} for row in rows]
    strict = {"aggregation": AGGREGATIONS[1]} if function.strict else {}
    return Said({"type": "field-accuracy", "fields": rows, **strict}, systems=_AGENTV)


def _valid_calls(function: ValidCalls) -> Said:
    return Said({"type": function.kind}, {"schemas": thaw(function.schemas)}, _NEITHER)


def _form(function: Form) -> Said:
    value = None if function.value is None else thaw(function.value)
    value = value["count"] if value and "count" in value else value
    return Said(_valued(function.kind, value), systems=_PROMPTFOO)


def _finish_reason(function: FinishReason) -> Said:
    return Said(_valued("finish-reason", function.expected), systems=_PROMPTFOO)


def _perplexity_score(function: PerplexityScore) -> Said:
    bar = {} if function.threshold is None else {"threshold": function.threshold}
    return Said({"type": "perplexity-score", **bar}, systems=_PROMPTFOO)


_COMPARISONS: dict[type, str] = {SelectBest: "select-best", MaxScore: "max-score"}


def _comparison(function: Comparison) -> Said:
    """Return what compares the outputs of one test, which promptfoo tells by its prompts and providers."""
    fields_ = attrs.asdict(function, recurse=False)
    usual = {one.name: one.default for one in attrs.fields(type(function))}
    own = {key: thaw(value) for key, value in fields_.items() if value != usual[key]}
    return Said({"type": _COMPARISONS[type(function)]}, own, _NEITHER)


# -- code --------------------------------------------------------------------------------------------------


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
    raise refuse(at, value, "code: a text, {body}, or {module, function}")


def _javascript(function: JavaScript) -> Said:
    code = _code(function.program)
    data = _valued("not-javascript" if function.negate else "javascript", code)
    data |= {} if function.threshold is None else {"threshold": function.threshold}
    data |= {} if function.config is None else {"config": thaw(function.config)}
    own: Data = {} if function.source == code else {"source": function.source}
    own |= {"variables": thaw(function.variables)} if function.variables else {}
    if not isinstance(code, str):
        return Said(data, own, _NEITHER)
    # A line with `return` in it is a body for AgentV, and its `not-` turns the outcome of a grader over, not of code.
    alike = not own and not function.negate and ("\n" in code or not RETURNS.search(code))
    return Said(data, own, _PROMPTFOO | _AGENTV if alike else _PROMPTFOO)


def _transformed(function: Transformed) -> Said | None:
    inner = said_of(function.check)
    transform = function.transform
    if inner is None or "transform" in inner.data or transform.context is not None:
        return None
    if "javascript" in inner.data["type"] and inner.own.get("variables", {}) != thaw(transform.variables):
        return None  # both are of one test, whose variables they see
    said = transform_said(transform)
    return Said(inner.data | said.data, inner.own | said.own, inner.systems & said.systems)


def transform_said(transform: Transform) -> Said:
    """Return *transform* as the keys of an assertion; in our own format also those of a criterion's `on`."""
    codes = [_code(program) for program in transform.programs]
    plain = len(codes) == 1 and isinstance(codes[0], str)
    data: Data = {"transform": codes[0] if plain else codes} if codes else {}
    own: Data = {"variables": thaw(transform.variables)} if transform.variables else {}
    own |= {"shared": transform.shared} if transform.shared else {}
    own |= {} if transform.context is None else {"context": _code(transform.context)}
    return Said(data, own, _PROMPTFOO if plain and transform.context is None else _NEITHER)


def read_transform(given: Mapping[str, Any]) -> Transform:
    """
    Return what `transform_said` wrote as *given*.

    Raises:
        DefinitionError: It is none.
    """
    listed = given.get("transform", [])
    programs = tuple(_program(code, "transform") for code in (listed if isinstance(listed, list | tuple) else [listed]))
    variables, shared = given.get("variables", {}), given.get("shared", 0)
    if not isinstance(variables, Mapping):
        raise refuse("variables", variables, "a mapping")
    if isinstance(shared, bool) or not isinstance(shared, int) or not 0 <= shared <= len(programs):
        raise refuse("shared", shared, "how many of the programs are the test's")
    of_context = given.get("context")
    if not programs and of_context is None:
        raise refuse("transform", listed, "code, or a list of it")
    context = None if of_context is None else _program(of_context, "context")
    return Transform(programs, FrozenMap(variables), shared, context)


def read_view(given: Mapping[str, Any]) -> Transform:
    """
    Return the transform that a criterion is `on`.

    Raises:
        DefinitionError: It is none.
    """
    known = ("transform", "variables", "shared", "context")
    for key in given.keys() - {*known}:
        raise DefinitionError(key, f"unknown key{suggest(str(key), known)}")
    return read_transform(given)


def _python(script: checks.Script) -> Said:
    data, own = python_data(script)
    plain = not own and not script.folder
    own |= {"folder": script.folder} if script.folder else {}
    inline_only = plain and data["type"] == "python" and "config" not in data and ".py" not in str(data["value"])
    return Said(data, own, _PROMPTFOO | _AGENTV if inline_only else _PROMPTFOO if plain else _NEITHER)


FUNCTIONS: dict[type, Callable[[Any], Said | None]] = {
    ContainsJSON: _contains_json,
    TextMetric: _text_metric,
    Used: _used,
    ArgumentsMatch: _arguments,
    ToolCallF1: _f1,
    ToolTrajectory: _tool_trajectory,
    SkillTriggered: _skill_triggered,
    FieldAccuracy: _fields,
    Form: _form,
    FinishReason: _finish_reason,
    PerplexityScore: _perplexity_score,
    ValidCalls: _valid_calls,
    JavaScript: _javascript,
    Transformed: _transformed,
    SelectBest: _comparison,
    MaxScore: _comparison,
}
"""The functions of `Holds` that files can say. Those of a caller's own cannot be written."""


# -- reading -----------------------------------------------------------------------------------------------

_OWN = frozenset({"variables", "transform", "shared"})
"""Keys that are read beside those of a type."""


def read_assertion(given: Mapping[str, Any]) -> Check:
    """
    Return the check of an assertion in our own format.

    Raises:
        DefinitionError: A type, a key or a value that there is not.
    """
    kind = given.get("type")
    if not isinstance(kind, str) or kind not in _READERS:
        raise DefinitionError("type", f"no such assertion: {kind!r}{suggest(str(kind), _READERS)}")
    keys, read = _READERS[kind]
    for key in given.keys() - keys - _OWN - {"type"}:
        raise DefinitionError(key, f"unknown key{suggest(str(key), sorted(keys | _OWN))}")
    variables = given.get("variables", {})
    if not isinstance(variables, Mapping):
        raise refuse("variables", variables, "a mapping")
    check = read(given)
    return Holds(Transformed(check, read_transform(given))) if "transform" in given else check


def _number(given: Mapping[str, Any], key: str, default: Any = None) -> Any:
    said = given.get(key, default)
    if said is not default and (isinstance(said, bool) or not isinstance(said, int | float)):
        raise refuse(key, said, "a number")
    return said


def _text(given: Mapping[str, Any], key: str, default: str | None = None) -> str:
    said = given.get(key, default)
    if not isinstance(said, str):
        raise refuse(key, said, "a text")
    return said


def _read_metric(given: Mapping[str, Any]) -> Check:
    value = given.get("value")
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not texts or not all(isinstance(text, str) for text in texts):
        raise refuse("value", value, "a text, or a list of texts")
    kind = str(given["type"])
    return Holds(TextMetric(kind, tuple(texts), _number(given, "threshold", THRESHOLDS[kind])))


def _read_calls(given: Mapping[str, Any]) -> Check:
    value = thaw(given.get("value"))
    one, bar = given.get("any") is True, _number(given, "threshold")
    return trajectory_check(str(given["type"]), value, negate=one, threshold=bar)


def _read_fields(given: Mapping[str, Any]) -> Check:
    rows, aggregation = thaw(given.get("fields")), given.get("aggregation", AGGREGATIONS[0])
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) and "path" in row for row in rows):
        raise refuse("fields", rows, "a list of fields, each a mapping with a path")
    known = {one.name for one in attrs.fields(Field)}
    for row in rows:
        if row.keys() - known or row.get("match", MATCHES[0]) not in MATCHES:
            raise refuse("fields", row, f"the keys {', '.join(sorted(known))}, and as match {', '.join(MATCHES)}")
    if aggregation not in AGGREGATIONS:
        raise refuse("aggregation", aggregation, " or ".join(AGGREGATIONS))
    given_fields: list[Data] = [{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows]
    return Holds(FieldAccuracy(tuple(Field(**row) for row in given_fields), aggregation == AGGREGATIONS[1]))


def _read_comparison(given: Mapping[str, Any]) -> Check:
    kind: Any = next(kind for kind, name in _COMPARISONS.items() if name == given["type"])
    fields_: Data = {key: thaw(value) for key, value in given.items() if key != "type"}
    texts = {key: value for key, value in fields_.items() if key in ("test", "text", "prompt")}
    if not texts.get("test") or not all(isinstance(value, str) for value in texts.values()):
        raise refuse("test", texts, "texts; the cases of one test share its name")
    return Holds(kind(**fields_))


def _read_valid(given: Mapping[str, Any]) -> Check:
    schemas = given.get("schemas")
    if not isinstance(schemas, Mapping):
        raise refuse("schemas", schemas, "a JSON Schema for each tool, by its name")
    return Holds(ValidCalls(str(given["type"]), thaw(schemas)))


def _read_javascript(given: Mapping[str, Any]) -> Check:
    value, config = given.get("value"), given.get("config")
    source = _text(given, "source", value if isinstance(value, str) else "a module")
    if config is not None and not isinstance(config, Mapping):
        raise refuse("config", config, "a mapping")
    return Holds(
        JavaScript(
            source,
            _program(value, "value"),
            FrozenMap(given.get("variables", {})),
            None if config is None else FrozenMap(config),
            threshold=_number(given, "threshold"),
            negate=given["type"] == "not-javascript",
        )
    )


def _read_python(given: Mapping[str, Any]) -> Check:
    config = given.get("config")
    script = python_script(
        _text(given, "value"),
        source="output['']" if given.get("data") is True else "",
        threshold=_number(given, "threshold"),
        negate=given["type"] == "not-python",
        config=None if config is None else thaw(config),
    )
    return evolve(script, folder=_text(given, "folder", ""))


_Reader = tuple[frozenset[str], Callable[[Mapping[str, Any]], Check]]
_READERS: dict[str, _Reader] = {
    **{
        kind: (frozenset({"value"}), lambda given: cast("Check", check_of(given["type"], thaw(given.get("value")))))
        for kind in DETERMINISTIC
    },
    **dict.fromkeys(THRESHOLDS, (frozenset({"value", "threshold"}), _read_metric)),
    **dict.fromkeys(
        FORMS, (frozenset({"value"}), lambda given: Holds(form_of(str(given["type"]), thaw(given.get("value")))))
    ),
    "finish-reason": (frozenset({"value"}), lambda given: Holds(FinishReason(_text(given, "value")))),
    "perplexity-score": (
        frozenset({"threshold"}),
        lambda given: Holds(PerplexityScore(_number(given, "threshold"))),
    ),
    **dict.fromkeys(KINDS, (frozenset({"value", "threshold", "any"}), _read_calls)),
    **dict.fromkeys(SOURCES, (frozenset({"schemas"}), _read_valid)),
    **{
        name: (frozenset(one.name for one in attrs.fields(cast("Any", kind))), _read_comparison)
        for kind, name in _COMPARISONS.items()
    },
    "field-accuracy": (frozenset({"fields", "aggregation"}), _read_fields),
    "tool-trajectory": (KEYS, lambda given: read_tool_trajectory(thaw(given))),
    "skill-trigger": (SKILL_KEYS, read_skill_trigger),
    **dict.fromkeys(
        ("javascript", "not-javascript"), (frozenset({"value", "threshold", "config", "source"}), _read_javascript)
    ),
    **dict.fromkeys(
        ("python", "not-python"), (frozenset({"value", "threshold", "config", "data", "folder"}), _read_python)
    ),
}
