"""
Checks in the files of other systems: each comes back as it was, or is told as lost.

A new check, or a new function of `Holds` that comes from files, is named here until it has a row in
`rubric.formats.assertions.table`.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import rubric.formats
from rubric import Criterion, Rubric, dumps, loads
from rubric.errors import DumpError, LoadError
from rubric.formats.assertions.field_accuracy import Field, FieldAccuracy
from rubric.formats.assertions.forms import FinishReason, Form, PerplexityScore
from rubric.formats.assertions.table import KINDS
from rubric.formats.assertions.text_metrics import TextMetric
from rubric.formats.assertions.texts import ContainsJSON
from rubric.formats.assertions.tool_calls import (
    ArgumentsMatch,
    ExpectedCall,
    SkillTriggered,
    ToolCallF1,
    ToolTrajectory,
    Used,
    ValidCalls,
)
from rubric.formats.javascript import JavaScript, Transform, Transformed, inline
from rubric.formats.python import python_script
from rubric.formats.suites import convert, loads_suite
from rubric.internals.frozen_map import FrozenMap
from rubric.programs.javascript import Program
from rubric.suites.cases import Case
from rubric.suites.output_choice import MaxScore, SelectBest
from rubric.suites.suite import Suite
from rubric.values.answers import Unit
from rubric.values.checks import Check, Contains, Holds, Matches, Similar, Trajectory, Unsupported, Within
from tests.rows import each_row
from tests.values.test_closed_unions import CHECKS, UNWRITTEN

SHORT = inline("output.length < 9")
FUNCTION = Program("module.exports = (output) => output === context.vars.a", module=True)
IN_FILES: list[Any] = [
    ContainsJSON(),
    ContainsJSON({"type": "object", "required": ["a"]}),
    TextMetric("rouge-n", ("The cat sat",), 0.75),
    TextMetric("bleu", ("The cat sat", "A cat"), 0.3),
    TextMetric("levenshtein", ("cat",), 2.0),
    Used("tool", ("search", "read")),
    Used("tool", ("sea*",), 2, 3),
    Used("step", ("*",), 0, 4),
    Used("step", ("run",), 1),
    Used("skill", ("pdf",)),
    Used("skill", ("pdf",), 0, 2),
    Used("tool", ("a", "b"), one=True),
    ArgumentsMatch("search", {"q": "x"}),
    ArgumentsMatch("search", {"q": ["x", 1]}, True, ("id",), {"page": 1}),
    Used("command", ("git*",), 1, 2),
    ToolTrajectory("any_order", minimums={"a": 2}),
    ToolTrajectory("in_order", (ExpectedCall("a"), ExpectedCall("b", {"q": 1}), ExpectedCall("b", {}, ("q.r",)))),
    SkillTriggered("pdf", wanted=False),
    Form("is-xml", {"requiredElements": ["a.b"]}),
    Form("contains-html"),
    Form("is-sql", {"databaseType": "MySQL", "allowedTables": ["select::null::a"]}),
    Form("word-count", {"count": 3}),
    Form("word-count", {"min": 1, "max": 3}),
    FinishReason("stop"),
    PerplexityScore(0.5),
    ToolCallF1(("a", "b")),
    ToolCallF1(("a", "b"), 0.5),
    FieldAccuracy((Field("a.b"), Field("c", "date", formats=("DD/MM/YYYY",), required=False)), strict=True),
    FieldAccuracy((Field("n", "numeric_tolerance", tolerance=0.1, relative=True, weight=2.0),)),
    ValidCalls("is-valid-openai-tools-call", {"search": {"type": "object"}}),
    JavaScript("output.length < 9", SHORT),
    JavaScript("output.length", inline("output.length"), config=FrozenMap({"a": 1}), threshold=3.0, negate=True),
    JavaScript("const a = 1; a > 0", inline("const a = 1; a > 0")),
    JavaScript("x\ny", inline("const a = output;\nreturn a === '{{ a }}'")),
    JavaScript("file://a.js", FUNCTION, {"a": "b"}),
    Transformed(Contains("a", ignore_case=True), Transform((inline("output.trim()"),))),
    SelectBest("test 1", "the shortest"),
    MaxScore("test 1", {"a": 1.0}),
    Transformed(
        Holds(JavaScript("output > 3", inline("output > 3"), {"a": "b"})), Transform((SHORT, FUNCTION), {"a": "b"})
    ),
]
"""Functions that files have, of each class."""

PROGRAMS = [
    python_script("len(output) < 9"),
    python_script("x = 1\nreturn len(output)", threshold=3, negate=True, config={"a": 1}),
    python_script("file://checks.py:short", source="return output['a']"),
]
OTHERS: list[Check] = [
    Within(latency=2.5),
    Within(cost=0.01),
    Within(perplexity=3),
    Within(tokens=100, calls=2),
    Trajectory(["a", "b"], order="exact"),
    Similar(["a", "b"], threshold=0.9, measure="dot"),
    Similar("a", model="mistral/mistral-embed"),
    Matches("(?i)abc"),
    *PROGRAMS,
]
SAMPLES = [*map(Holds, IN_FILES), *OTHERS, *(check for kind, check in CHECKS.items() if kind not in UNWRITTEN)]
IDS = [f"{number} {str(check)[:40]}" for number, check in enumerate(SAMPLES)]


def test_every_function_that_files_have_is_in_the_table() -> None:
    """Its docstring says that it is one; a class without a row, or without a sample here, is named."""
    folder = Path(rubric.formats.__file__).parent
    names = [".".join(file.relative_to(folder).with_suffix("").parts) for file in folder.rglob("*.py")]
    found = {
        kind
        for name in names
        if not name.endswith("__init__")
        for kind in vars(import_module(f"rubric.formats.{name}")).values()
        if isinstance(kind, type) and not kind.__subclasses__()
        if any((one.__doc__ or "").lstrip().startswith("A function for `Holds`") for one in kind.__mro__)
    }
    rows = {row.of for row in KINDS.values() if not issubclass(row.of, Check)} | {JavaScript, Transformed}
    assert found == rows == {type(function) for function in IN_FILES}


@each_row("check", SAMPLES, ids=IDS)
def test_our_own_format_holds_every_check(check: Check) -> None:
    """Written and read again, it is the same."""
    whole = Rubric(criteria=[Criterion("It holds", answer=check)])
    assert loads(dumps(whole)) == whole


def test_a_case_with_a_grader_that_cannot_be_written_is_left_out() -> None:
    """Without it, a case that is ungraded would pass; the caller may say that it is to be skipped."""
    lacking = Criterion("rouge", id="it", answer=Unsupported("a grader of theirs"))
    cases = [Case("a", Rubric(criteria=[lacking, Criterion("Is warm", id="warm")])), Case("b", "Is short")]
    written = convert(Suite("s", cases), "promptfoo")
    assert [case.id for case in loads_suite(str(written))] == ["b"]
    assert any("'a grader of theirs' cannot be written" in loss for loss in written.dropped)
    kept = convert(Suite("s", cases).unsupported_as("skip"), "promptfoo")
    assert [case.id for case in loads_suite(str(kept))] == ["a", "b"]
    with pytest.raises(DumpError, match="nothing is left"):
        convert(Suite("s", cases[:1]), "promptfoo")


@each_row("check", [check for check in SAMPLES if not isinstance(check, Unsupported)], ids=IDS[:-1])
@each_row("negate", [False, True])
def test_a_check_comes_back_or_is_told_as_lost(check: Check, negate: bool) -> None:
    """As a criterion of its own, and turned over, beside another one."""
    inner = Rubric(
        threshold=None, criteria=[Criterion(str(check), id="overall", answer=check)], negate=negate, degenerate="judge"
    )
    made = Criterion(str(check), id="it", answer=inner) if negate else Criterion(str(check), id="it", answer=check)
    beside = Criterion("Is warm", id="warm")
    written = convert(Suite("s", [Case("a", Rubric(criteria=[made, beside]))]), "promptfoo")
    (read,) = loads_suite(json.dumps(written.data), "promptfoo")
    kept = "it" in read.rubric and _same(read.rubric["it"].answer, made.answer)
    told = [loss for loss in written.dropped if "'it'" in loss or " it" in loss or ".it" in loss]
    assert kept or told, written.data


@pytest.mark.parametrize(
    "transform",
    [
        Transform((SHORT,)),
        Transform((SHORT, FUNCTION), {"a": "b"}, 1),
        Transform((), context=SHORT),
        Transform((SHORT,), context=FUNCTION),
    ],
    ids=["inline", "of the test", "of the context", "of both"],
)
def test_a_judged_criterion_keeps_its_transform(transform: Transform) -> None:
    """In our own format; in promptfoo where its programs are inline, and else it is told."""
    whole = Rubric(threshold=None, criteria=[Criterion("Is warm", id="it", answer=Unit(flag=True), on=transform)])
    (criterion,) = loads(dumps(whole)).criteria
    assert criterion == whole.criteria[0]
    assert isinstance(criterion.on, Transform)
    assert criterion.on.shared == transform.shared
    both = evolve(whole, criteria=[*whole.criteria, Criterion("Is short", id="short", answer=Unit(flag=True))])
    written = convert(Suite("s", [Case("a", both)]), "promptfoo")
    again = loads_suite(str(written)).cases[0].rubric["it"]
    assert again.on == transform or any("on of the criterion 'it'" in loss for loss in written.dropped)


@pytest.mark.parametrize(
    ("given", "says"), [({"transfrom": "1"}, "transform"), ({}, "code"), ({"transform": "1", "shared": 2}, "how many")]
)
def test_what_no_transform_can_be_is_refused(given: dict[str, Any], says: str) -> None:
    """With what is allowed."""
    with pytest.raises(LoadError, match=says):
        loads(json.dumps({"criteria": [{"text": "a", "on": given}]}))


def _same(found: Any, wanted: Any) -> bool:
    if isinstance(found, Rubric) and isinstance(wanted, Rubric):
        pairs = zip(found.criteria, wanted.criteria, strict=False)
        return found.negate == wanted.negate and all(_same(one.answer, other.answer) for one, other in pairs)
    return bool(found == wanted)


@each_row(
    ("given", "says"),
    [
        ({"type": "rouge"}, "rouge-n"),
        ({"value": "x"}, "no such assertion"),
        ({"type": "rouge-n"}, "a text, or a list of texts"),
        ({"type": "rouge-n", "value": "x", "threshold": "high"}, "a number"),
        ({"type": "rouge-n", "value": "x", "treshold": 1}, "threshold"),
        ({"type": "javascript"}, "code"),
        ({"type": "javascript", "value": "1", "config": 3}, "a mapping"),
        ({"type": "javascript", "value": "1", "variables": 3}, "a mapping"),
        ({"type": "contains", "value": "x", "transform": []}, "a list of it"),
        ({"type": "field-accuracy", "fields": [{"match": "exact"}]}, "path"),
        ({"type": "field-accuracy", "fields": [{"path": "a", "match": "near"}]}, "numeric_tolerance"),
        ({"type": "field-accuracy", "fields": [{"path": "a"}], "aggregation": "min"}, "all_or_nothing"),
        ({"type": "is-valid-function-call"}, "a JSON Schema for each tool"),
    ],
)
def test_what_no_assertion_can_be_is_refused(given: dict[str, Any], says: str) -> None:
    """With what was found, and what is allowed."""
    text = json.dumps({"criteria": [{"text": "a", "check": {"assertion": given}}]})
    with pytest.raises(Exception, match=says):
        loads(text)
