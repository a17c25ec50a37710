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

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import attrs
from attrs import evolve, field, frozen

from rubric.errors import DefinitionError
from rubric.formats import tool_calls
from rubric.formats.assertion_types import DETERMINISTIC, ContainsJSON, check_of, type_of
from rubric.formats.field_accuracy import AGGREGATIONS, MATCHES, Field, FieldAccuracy
from rubric.formats.javascript import RETURNS, JavaScript, Transform, Transformed, inline
from rubric.formats.mcptest.agents import RunExpectation, run_expectation
from rubric.formats.output_checks import FORMS, FinishReason, Form, PerplexityScore, form_of
from rubric.formats.python import is_python, python_data, python_script
from rubric.formats.text_metrics import THRESHOLDS, TextMetric
from rubric.formats.tool_calls import Used
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
            return None if check.order == "any_order" else Said(_row("trajectory:tool-sequence", value=steps))
        case checks.Script():
            return _python(check) if is_python(check) else None
        case Holds():
            function: Any = check.function
            if negated and isinstance(function, Used) and len(function.names) > 1:
                function = evolve(function, one=not function.one)  # as it is read before it is turned over
            row = FUNCTIONS.get(type(function))
            return None if row is None else row(function)
        case _:  # those for which there is no type differ from system to system: see the writers
            named = type_of(check)
            return None if named is None else Said(_row(named[0], value=named[1]))


def _row(kind: str, **keys: Any) -> Data:
    """Return the assertion of the type *kind* with those of *keys* that have a value."""
    return {"type": kind} | {key: thaw(value) for key, value in keys.items() if value is not None}


def _bar(function: Any, usual: float | None) -> float | None:
    """Return the threshold of *function*; None where it is the *usual* one, which is not written."""
    return None if function.threshold == usual else function.threshold


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


def _one_or_all(texts: tuple[str, ...]) -> str | tuple[str, ...]:
    return texts[0] if len(texts) == 1 else texts


_STEPS = "trajectory:step-count"
_USED = {"tool": "trajectory:tool-used", "step": _STEPS, "command": _STEPS, "skill": "skill-used"}


def _used(function: Used) -> Said | None:
    kind, own = _USED[function.what], {"any": True} if function.one else {}
    systems = _NEITHER if own else _PROMPTFOO | _AGENTV
    if (function.least, function.most) == (1, None) and kind != _STEPS:
        return Said(_row(kind, value=[*function.names]), own, systems)
    if len(function.names) != 1 or own:
        return None
    step = {"pattern": function.names[0], "min": function.least} | (
        {} if function.most is None else {"max": function.most}
    )
    typed = {"type": "command"} if function.what == "command" else {}
    return Said(_row(kind, value={**typed, **step}))


def _arguments(function: tool_calls.ArgumentsMatch) -> Said:
    value: Data = {"name": function.name, "args": thaw(function.expected)}
    value |= {"mode": "exact"} if function.exact else {}
    value |= {"ignore": [*function.ignore]} if function.ignore else {}
    value |= {"defaults": thaw(function.defaults)} if function.defaults else {}
    return Said(_row("trajectory:tool-args-match", value=value))


def _f1(function: tool_calls.ToolCallF1) -> Said:
    bar = _bar(function, 1)
    data = _row("tool-call-f1", value=[*function.expected], threshold=bar)
    return Said(data, systems=_PROMPTFOO | _AGENTV if bar is None else _PROMPTFOO)


def _fields(function: FieldAccuracy) -> Said:
    usual = {one.name: one.default for one in attrs.fields(Field)}
    rows = [attrs.asdict(one, filter=lambda at, said: said != usual[at.name]) for one in function.fields]
    rows = [{key: [*said] if isinstance(said, tuple) else said for key, said in row.items()} for row in rows]
    strict = AGGREGATIONS[1] if function.strict else None
    return Said(_row("field-accuracy", fields=rows, aggregation=strict), systems=_AGENTV)


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
    kind = "not-javascript" if function.negate else "javascript"
    data = _row(kind, value=code, threshold=function.threshold, config=function.config)
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
    if inner is None or "transform" in inner.data or transform.context is not None or transform.scripts:
        return None
    if "javascript" in inner.data["type"] and inner.own.get("variables", {}) != thaw(transform.variables):
        return None  # both are of one test, whose variables they see
    said = transform_said(transform)
    return Said(inner.data | said.data, inner.own | said.own, inner.systems & said.systems)


def transform_said(transform: Transform) -> Said:
    """
    Return *transform* as the keys of an assertion; in our own format also those of a criterion's `on`.

    One in Python, with `scripts`, is in no file of ours.
    """
    codes = [_code(program) for program in transform.programs if isinstance(program, Program)]
    plain = len(codes) == 1 and isinstance(codes[0], str)
    data: Data = {"transform": codes[0] if plain else codes} if codes else {}
    own: Data = {"variables": thaw(transform.variables)} if transform.variables else {}
    own |= {"shared": transform.shared} if transform.shared else {}
    own |= {"context": _code(transform.context)} if isinstance(transform.context, Program) else {}
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
    ContainsJSON: lambda found: Said(_row("contains-json", value=found.schema), systems=_PROMPTFOO),
    TextMetric: lambda found: Said(
        _row(found.kind, value=_one_or_all(found.references), threshold=_bar(found, THRESHOLDS[found.kind])),
        systems=_PROMPTFOO,
    ),
    Used: _used,
    tool_calls.ArgumentsMatch: _arguments,
    tool_calls.ToolCallF1: _f1,
    tool_calls.ToolTrajectory: lambda found: Said(
        _row("tool-trajectory", **tool_calls.trajectory_data(found)), systems=_AGENTV
    ),
    tool_calls.SkillTriggered: lambda found: Said(
        _row("skill-trigger", skill=found.skill, should_trigger=None if found.wanted else False), systems=_AGENTV
    ),
    RunExpectation: lambda found: Said(
        {"type": "run-expectation", "target": found.target, "matcher": found.matcher, "value": thaw(found.value)},
        systems=_NEITHER,
    ),
    FieldAccuracy: _fields,
    Form: lambda found: Said(_row(found.kind, value=(found.value or {}).get("count", found.value)), systems=_PROMPTFOO),
    FinishReason: lambda found: Said(_row("finish-reason", value=found.expected), systems=_PROMPTFOO),
    PerplexityScore: lambda found: Said(_row("perplexity-score", threshold=found.threshold), systems=_PROMPTFOO),
    tool_calls.ValidCalls: lambda found: Said({"type": found.kind}, {"schemas": thaw(found.schemas)}, _NEITHER),
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
    check = read(thaw(given))
    return Holds(Transformed(check, read_transform(given))) if "transform" in given else check


def _number(given: Data, key: str, default: Any = None) -> Any:
    said = given.get(key, default)
    if said is not default and (isinstance(said, bool) or not isinstance(said, int | float)):
        raise refuse(key, said, "a number")
    return said


def _text(given: Data, key: str, default: str | None = None) -> str:
    said = given.get(key, default)
    if not isinstance(said, str):
        raise refuse(key, said, "a text")
    return said


def _read_metric(given: Data) -> Check:
    value = given.get("value")
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise refuse("value", value, "a text, or a list of texts")
    kind = given["type"]
    return Holds(TextMetric(kind, tuple(texts), _number(given, "threshold", THRESHOLDS[kind])))


def _read_calls(given: Data) -> Check:
    one, bar = given.get("any") is True, _number(given, "threshold")
    return tool_calls.trajectory_check(given["type"], given.get("value"), negate=one, threshold=bar)


def _read_fields(given: Data) -> Check:
    rows, aggregation = given.get("fields"), given.get("aggregation", AGGREGATIONS[0])
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


def _read_comparison(given: Data) -> Check:
    kind: Any = next(kind for kind, name in _COMPARISONS.items() if name == given["type"])
    fields_ = {key: value for key, value in given.items() if key != "type"}
    texts = {key: value for key, value in fields_.items() if key in ("test", "text", "prompt")}
    if not texts.get("test") or not all(isinstance(value, str) for value in texts.values()):
        raise refuse("test", texts, "texts; the cases of one test share its name")
    return Holds(kind(**fields_))


def _read_valid(given: Data) -> Check:
    schemas = given.get("schemas")
    if not isinstance(schemas, dict):
        raise refuse("schemas", schemas, "a JSON Schema for each tool, by its name")
    return Holds(tool_calls.ValidCalls(given["type"], schemas))


def _read_expectation(given: Data) -> Check:
    return run_expectation(given.get("target"), given.get("matcher"), given.get("value"))


def _read_javascript(given: Data) -> Check:
    value, config = given.get("value"), given.get("config")
    source = _text(given, "source", value if isinstance(value, str) else "a module")
    if config is not None and not isinstance(config, dict):
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


def _read_python(given: Data) -> Check:
    source, negate = "output['']" if given.get("data") is True else "", given["type"] == "not-python"
    bar = _number(given, "threshold")
    script = python_script(
        _text(given, "value"), source=source, threshold=bar, negate=negate, config=given.get("config")
    )
    return evolve(script, folder=_text(given, "folder", ""))


_Reader = Callable[[Data], Check]


def _read_by(read: _Reader, kinds: Iterable[str], *keys: str) -> dict[str, tuple[frozenset[str], _Reader]]:
    """Return the rows of *kinds*, which *read* reads, with the *keys* of each."""
    return dict.fromkeys(kinds, (frozenset(keys), read))


_READERS = {
    **_read_by(lambda given: cast("Check", check_of(given["type"], given.get("value"))), DETERMINISTIC, "value"),
    **_read_by(_read_metric, THRESHOLDS, "value", "threshold"),
    **_read_by(lambda given: Holds(form_of(given["type"], given.get("value"))), FORMS, "value"),
    **_read_by(lambda given: Holds(FinishReason(_text(given, "value"))), ["finish-reason"], "value"),
    **_read_by(lambda given: Holds(PerplexityScore(_number(given, "threshold"))), ["perplexity-score"], "threshold"),
    **_read_by(_read_calls, tool_calls.KINDS, "value", "threshold", "any"),
    **_read_by(_read_valid, tool_calls.SOURCES, "schemas"),
    **_read_by(_read_comparison, ["select-best"], *(one.name for one in attrs.fields(SelectBest))),
    **_read_by(_read_comparison, ["max-score"], *(one.name for one in attrs.fields(MaxScore))),
    **_read_by(_read_fields, ["field-accuracy"], "fields", "aggregation"),
    **_read_by(tool_calls.read_tool_trajectory, ["tool-trajectory"], *tool_calls.KEYS),
    **_read_by(tool_calls.read_skill_trigger, ["skill-trigger"], *tool_calls.SKILL_KEYS),
    **_read_by(_read_expectation, ["run-expectation"], "target", "matcher", "value"),
    **_read_by(_read_javascript, ["javascript", "not-javascript"], "value", "threshold", "config", "source"),
    **_read_by(_read_python, ["python", "not-python"], "value", "threshold", "config", "data", "folder"),
}
