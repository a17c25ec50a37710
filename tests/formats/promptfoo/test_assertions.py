"""Deterministic assertions as checks, and the shorthand for assertions in tables."""

from __future__ import annotations

from typing import Any

import pytest

from rubric.engine.grade import grade
from rubric.errors import DefinitionError
from rubric.formats.assertions.texts import DETERMINISTIC, UnsupportedPatternError, assertion_of
from rubric.grading.code_checks import meets
from rubric.values.candidates import Candidate
from rubric.values.checks import Contains, ContainsAll, ContainsAny, Equals, FitsSchema, IsJSON, Matches, StartsWith
from rubric.values.criteria import Criterion
from rubric.values.judges import Judge
from rubric.values.rubrics import Rubric
from tests.rows import each_row


@each_row(
    ("kind", "value", "check"),
    [
        ("contains", "a", Contains("a")),
        ("contains", 3.0, Contains("3")),
        ("icontains", 2.5, Contains("2.5", ignore_case=True)),
        ("contains-any", 'a, "b, c"', ContainsAny(["a", "b, c"])),
        ("icontains-all", ["a", 1], ContainsAll(["a", "1"], ignore_case=True)),
        ("equals", "a", Equals("a")),
        ("equals", {"a": 1}, FitsSchema({"const": {"a": 1}})),
        ("regex", "a+", Matches("a+")),
        ("starts-with", "a", StartsWith("a")),
        ("is-json", None, IsJSON()),
        ("is-json", '{"type": "array"}', FitsSchema({"type": "array"})),
    ],
)
def test_a_deterministic_assertion_is_a_check(kind: str, value: Any, check: object) -> None:
    """Types that code decides become checks; numbers stand for their text, one text with commas for several."""
    assert DETERMINISTIC[kind](value) == check


@each_row(
    ("kind", "value"),
    [
        ("contains", True),
        ("contains", ""),
        ("contains", None),
        ("contains-any", []),
        ("contains-any", {"a": 1}),
        ("regex", "(a"),
        ("is-json", 7),
        ("is-json", "{"),
        ("is-json", {"type": "nothing"}),
    ],
)
def test_a_value_that_a_type_cannot_have_is_refused(kind: str, value: Any) -> None:
    """What is wrong is said as a definition error."""
    with pytest.raises(DefinitionError):
        DETERMINISTIC[kind](value)


@pytest.mark.parametrize(
    ("pattern", "output"),
    [
        (r"1\u00A0000", "1\u00a0000"),
        (r"^[\u4e00-\u9fff]+$", "\u4e2d"),
        ("a[^]b", "a\nb"),
        (r"a\/b", "a/b"),
    ],
)
def test_a_pattern_of_javascript_is_written_for_re2(pattern: str, output: str) -> None:
    """What only the spelling keeps from RE2 is spelled otherwise."""
    assert meets(DETERMINISTIC["regex"](pattern), Candidate(output))[0]


@pytest.mark.parametrize("pattern", ["(?<=a)b", "(?=a)", r"(a)\1"])
def test_a_pattern_that_re2_does_not_have_leaves_its_case_ungraded(pattern: str) -> None:
    """It is an ordinary one of JavaScript, and no mistake."""
    with pytest.raises(UnsupportedPatternError):
        DETERMINISTIC["regex"](pattern)


def test_an_output_may_be_compared_with_nothing() -> None:
    """`not-equals: ''` is how a configuration asks for any output at all."""
    check = DETERMINISTIC["equals"]("")
    assert [meets(check, Candidate(output))[0] for output in ("", " \n", "a")] == [True, True, False]


@each_row(
    ("output", "schema", "holds"),
    [
        ('see {"a": 1}.', None, True),
        ("[1] and {1,2}", None, True),
        ("see [1]", None, False),
        ("see {a: 1}", None, True),
        ('see {"a": {"b": 1}', {"required": ["a"]}, True),
        ('{"b": 1} {"a": 1}', {"required": ["a"]}, True),
        ("{ and } then {", None, True),
        ("} no [1, {", None, False),
        ('[1] then {"a": 1}', {"type": "object"}, True),
        ("[1]", {"type": "object"}, False),
        ("never " + "{" * 5000, None, False),  # which took minutes
        ("never " + "${" * 2000, None, False),
        ("never " + "[" * 5000, None, False),
    ],
)
def test_json_may_stand_anywhere_in_an_output(output: str, schema: Any, holds: bool) -> None:
    """`contains-json` finds what YAML takes for a mapping, its end added; a list is none."""
    check = DETERMINISTIC["contains-json"](schema)
    rubric = Rubric(criteria=[Criterion("x", answer=check)], threshold=None)
    assert grade(output, rubric, Judge("offline")).passed == holds


@each_row(
    ("text", "assertion"),
    [
        ("grade: is polite ", {"type": "llm-rubric", "value": " is polite "}),
        ("not-llm-rubric: is rude", {"type": "not-llm-rubric", "value": "is rude"}),
        ("contains-any: a, b", {"type": "contains-any", "value": ["a", "b"]}),
        ("similar(0.8): hi", {"type": "similar", "value": "hi", "threshold": 0.8}),
        ("similar: hi", {"type": "similar", "value": "hi", "threshold": 0.8}),
        ("levenshtein: hi", {"type": "levenshtein", "value": "hi", "threshold": 0.75}),
        ('contains-all: "a,b", c,, "say ""d"""', {"type": "contains-all", "value": ["a,b", "c", 'say "d"']}),
        ('contains-any: "a, b', {"type": "contains-any", "value": '"a, b'}),
        ("skill-used: find", {"type": "skill-used", "value": "find"}),
        ("ends-with: a", {"type": "equals", "value": "ends-with: a"}),
        ("file://wanted.txt", {"type": "equals", "value": "file://wanted.txt"}),
        ("file://check.mjs:f", {"type": "javascript", "value": "file://check.mjs:f"}),
        ("is-json", {"type": "is-json"}),
        ("fn: output.length", {"type": "javascript", "value": " output.length"}),
        ("file://check.py:f", {"type": "python", "value": "file://check.py:f"}),
        ("Hello: world", {"type": "equals", "value": "Hello: world"}),
    ],
)
def test_a_text_stands_for_an_assertion(text: str, assertion: dict[str, Any]) -> None:
    """The type before the colon, or else the text that the output equals."""
    assert assertion_of(text) == assertion
