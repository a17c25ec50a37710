"""What code decides: every check and condition, and what strangers' schemas and candidates may cost."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from rubric.engine.grade import evaluate
from rubric.errors import DefinitionError, DumpError
from rubric.formats.rubrics import dumps
from rubric.grading.code_checks import decide, meets, settle
from rubric.values.candidates import Candidate
from rubric.values.checks import (
    Calls,
    Check,
    Contains,
    ContainsAll,
    ContainsAny,
    Decided,
    EndsWith,
    Equals,
    FitsSchema,
    Holds,
    IsJSON,
    Matches,
    Script,
    StartsWith,
    Trajectory,
    Unsupported,
)
from rubric.values.criteria import Criterion, When
from rubric.values.findings import Scored, Unjudged
from rubric.values.matching import misfit
from rubric.values.rubrics import Rubric
from rubric.values.runs import ToolCall
from tests.rows import each_row

RUN = Candidate(
    "Done.",
    tool_calls=[{"name": "close", "arguments": {"ticket": 7, "tags": ["a"], "deep": {"x": 1}}}, {"name": "log"}],
)
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


DECIDED: list[tuple[Check, Candidate | str, bool]] = [
    (Contains("cat"), "a cat", True), (Contains("cat"), "a Cat", False), (Contains("cat", ignore_case=True), "a Cat", True),
    (Contains("straße", ignore_case=True), "STRASSE", True), (Contains("a.c"), "abc", False), (Contains("x"), "", False),
    (StartsWith("Dear"), "Dear X", True), (StartsWith("Dear"), "dear X", False), (StartsWith("dear", ignore_case=True), "DEAR X", True),
    (StartsWith("Dear"), "O Dear", False),
    (EndsWith("yours"), "I am yours", True), (EndsWith("yours"), "yours, X", False), (EndsWith("YOURS", ignore_case=True), "yours", True),
    (ContainsAny(["cat", "dog"]), "a dog", True), (ContainsAny(["cat", "dog"]), "a Dog", False),
    (ContainsAll(["cat", "dog"]), "cat, dog", True), (ContainsAll(["cat", "dog"]), "cat", False), (ContainsAll(["CAT"], ignore_case=True), "cat", True),
    (Equals("yes"), " yes\n", True), (Equals("yes"), "yes.", False), (Equals("yes"), "Yes", False), (Equals("yes", ignore_case=True), "YES", True),
    (Matches(r"\d{3}"), "id 123", True), (Matches(r"^\d{3}$"), "id 123", False), (Matches("(?i)sorry"), "SORRY", True), (Matches(r"\p{L}+"), "é", True),
    (IsJSON(), "{}", True), (IsJSON(), " [1, 2]\n", True), (IsJSON(), '"text"', True), (IsJSON(), "null", True), (IsJSON(), "1e999", True),
    (IsJSON(), "9" * 5_000, True), (IsJSON(), "", False), (IsJSON(), "{}{}", False), (IsJSON(), "```json\n{}\n```", False), (IsJSON(), "{'a': 1}", False),
    (IsJSON(), "NaN", False), (IsJSON(), "[Infinity]", False), (IsJSON(), "{", False), (IsJSON(), "[" * 200_000, False),
    (FitsSchema(PERSON), '{"name": "x"}', True), (FitsSchema(PERSON), '{"name": 1}', False), (FitsSchema(PERSON), "{}", False),
    (FitsSchema(PERSON), '{"name": "x", "age": 1}', False), (FitsSchema(PERSON), "not JSON", False), (FitsSchema(PERSON), "NaN", False),
    (FitsSchema({}), "1", True), (FitsSchema({"not": {}}), "1", False), (FitsSchema({"type": "integer"}), "9" * 5_000, False),
    (Calls("close"), RUN, True), (Calls("open"), RUN, False), (Calls("log"), RUN, True), (Calls("Close"), RUN, True),
    (Calls("cl*"), RUN, True), (Calls("clos?"), RUN, True), (Calls("clos"), RUN, False), (Calls("*x*"), RUN, False), (Calls("c.*"), RUN, False),
    (Calls("CL*", arguments={"ticket": 7}), RUN, True), (Calls("cl*", arguments={"ticket": 8}), RUN, False),
    (Calls("close", arguments={"ticket": 7}), RUN, True), (Calls("close", arguments={"ticket": 8}), RUN, False),
    (Calls("close", arguments={"tags": ["a"], "deep": {"x": 1}}), RUN, True), (Calls("close", arguments={"nope": None}), RUN, False),
    (Calls("log", arguments={"ticket": 7}), RUN, False), (Calls("close"), "close()", False),
]  # fmt: skip


@each_row(("check", "candidate", "holds"), DECIDED, ids=range(len(DECIDED)))
def test_a_check_decides(check: Check, candidate: Candidate | str, holds: bool) -> None:
    """Each check holds where it should, does not where it should not, and says why."""
    found, why = meets(check, Candidate.of(candidate))
    assert found is holds
    assert why


@each_row(
    ("when", "candidate", "holds"),
    [
        (None, "", True), (When(contains="cat"), "a cat", True), (When(contains="cat"), "a Cat", False), (When(regex="^a"), "a cat", True),
        (When(regex="^c"), "a cat", False), (When(tool_called="close"), RUN, True), (When(tool_called="open"), RUN, False),
        (When(tool_called="CL*"), RUN, True), (When(tool_called="o*"), RUN, False),
        (When(holds=lambda c: c.output == "x"), "x", True), (When(holds=lambda c: c.output == "x"), "y", False),
    ],
    ids=range(11),
)  # fmt: skip
def test_a_condition_holds_or_not(when: When | None, candidate: Candidate | str, holds: bool) -> None:
    """A criterion applies where its condition holds; without one it always does."""
    assert Criterion("Is said.", when=when).applies_to(Candidate.of(candidate)) is holds


def test_a_check_of_no_kind_is_a_bug() -> None:
    """A check that the library does not know is refused, not passed."""
    with pytest.raises(TypeError, match="not a check"):
        meets(type("Odd", (Check,), {})(), Candidate("x"))


# -- schemas --------------------------------------------------------------------------------------------------

DOUBLING = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)} | {"a40": {}}


@each_row(
    "schema",
    [
        {"type": "nope"}, {"properties": []}, {"$ref": 5}, {"pattern": "("}, {"pattern": "(?=x)"}, {"pattern": "(a)\\1"}, {"pattern": "a{2000}"},
        {"patternProperties": {"(?!x)": {}}}, {"properties": {"a": {"items": {"pattern": "(?<=x)"}}}}, {"$defs": {"x": {"pattern": "\\Z"}}},
        {"$ref": "http://127.0.0.1:9/x.json"}, {"properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}, {"$ref": "file:///etc/passwd"},
        {"$ref": "other.json"}, {"$ref": "#/nowhere"}, {"$dynamicRef": "http://127.0.0.1:9/x"}, {"$ref": "#"}, {"allOf": [{"$ref": "#"}]},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, {"not": {"not": {"$ref": "#"}}},
        {"$defs": DOUBLING, "$ref": "#/$defs/a0"}, {"$defs": DOUBLING, "properties": {"x": {"$ref": "#/$defs/a0"}}},
        {"unevaluatedProperties": False, "patternProperties": {"(a+)+$": {}}}, {"multipleOf": 0}, {"required": "name"}, {"$dynamicRef": "#"},
        {"$schema": "http://json-schema.org/draft-03/schema#", "extends": {"$ref": "#"}},
    ],
    ids=lambda schema: ascii(schema)[:90] + f" {len(str(schema))}",
)  # fmt: skip
def test_a_bad_schema_is_refused_when_it_is_built(schema: dict[str, Any]) -> None:
    """What is not a schema, leads outside, runs in circles, doubles without end, or has patterns RE2 does not take, is refused."""
    with pytest.raises(DefinitionError, match=r"^schema"):
        FitsSchema(schema)


@each_row(
    ("schema", "text", "holds"),
    [
        ({"items": {"$ref": "#"}}, "[[[[]]]]", True),
        ({"items": {"$ref": "#"}, "type": "array"}, "[[[[1]]]]", False),
        ({"items": {"$ref": "#"}}, "[" * 900 + "]" * 900, False),
        ({"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}, "[1, 2]", True),
        ({"$id": "https://x.example/a", "$defs": {"p": {"$id": "p", "type": "integer"}}, "$ref": "p"}, '"x"', False),
        ({"$anchor": "top", "properties": {"next": {"$ref": "#top"}}, "type": "object"}, '{"next": {"next": {}}}', True),
        ({"pattern": "^(a+)+$"}, json.dumps("a" * 50_000 + "!"), False),
        ({"pattern": "\\p{L}"}, '"é"', True),
        ({"patternProperties": {"^(a+)+$": {"type": "integer"}}, "additionalProperties": False}, json.dumps({"a" * 50_000 + "!": 1}), False),
        ({"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": False}, '{"ab": 1}', True),
        ({"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "string"}}, '{"ab": 1, "b": "x"}', True),
        ({"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "string"}}, '{"ab": 1, "b": 2}', False),
        ({"properties": {"a": {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "^(a+)+$"}}}, json.dumps({"a": "a" * 60 + "!"}), False),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "pattern": "^(a+)+$"}, json.dumps("a" * 60 + "!"), False),
        ({"$schema": "http://nowhere.example/schema", "type": "object"}, "{}", True),
        ({"uniqueItems": True}, json.dumps([{"n": n} for n in range(30_000)]), True),
        ({"uniqueItems": True}, '[{"n": 1}, {"n": 1.0}]', False),
        ({"uniqueItems": True}, "[1, true, 0, false, null, \"1\"]", True),
        ({"unevaluatedProperties": False, "properties": {"a": {}}}, '{"b": 1}', False),
        ({"multipleOf": 0.1}, "1" + "0" * 400, False),
    ],
    ids=range(20),
)  # fmt: skip
def test_a_schema_costs_little_whatever_is_checked(schema: dict[str, Any], text: str, holds: bool) -> None:
    """Patterns, references, items and depth are bounded: a candidate cannot make a check hang or crash."""
    assert meets(FitsSchema(schema), Candidate(text))[0] is holds


ITEMS = st.sampled_from([None, True, False, 0, 1, 1.0, 0.5, "", "1"]) | st.integers() | st.floats(allow_nan=False)
VALUES = st.recursive(
    ITEMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=2), max_leaves=6
)


@given(st.lists(VALUES, max_size=4))
@example([[1], [True], [1]])
def test_items_are_unique_if_no_two_are_equal(items: list[Any]) -> None:
    """Our own comparison of items agrees with what jsonschema takes for equal, pair by pair."""
    pairs = [Draft202012Validator({"const": one}).is_valid(two) for one, two in combinations(items, 2)]
    assert (misfit({"uniqueItems": True}, items) == "") is not any(pairs)


@pytest.mark.parametrize("key", ["not", "items", "allOf"])
def test_a_deep_schema_is_refused(key: str) -> None:
    """A schema that is nested in itself dozens of times is refused, not walked."""
    schema: dict[str, Any] = {}
    for _ in range(60):
        schema = {key: [schema] if key == "allOf" else schema}
    with pytest.raises(DefinitionError, match="nested at most"):
        FitsSchema(schema)


def test_nothing_is_fetched() -> None:
    """A schema that names addresses, as dialect, id or reference, opens no socket and no file."""
    script = """
import sys
from rubric.values.checks import FitsSchema
from rubric.errors import DefinitionError
from rubric.values.matching import misfit
FitsSchema({"type": "object"})
misfit({"pattern": "a"}, "a")

def guard(event, args):
    if event.startswith(("socket.", "urllib.")) or (event == "open" and "passwd" in str(args[0])):
        print(event, args, flush=True)

sys.addaudithook(guard)
for address in ("http://127.0.0.1:9/x.json", "https://json-schema.invalid/y", "file:///etc/passwd", "ftp://127.0.0.1/z"):
    for schema in ({"$ref": address}, {"$schema": address}, {"$id": address, "items": {"$ref": "other"}}, {"$dynamicRef": address}):
        try:
            misfit(dict(FitsSchema(schema).schema), [1])
        except DefinitionError:
            pass
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("said", "score", "reason"),
    [
        (True, 1.0, "f: yes"),
        (False, 0.0, "f: no"),
        (0.25, 0.25, "f: 0.25"),
        ((1, "long enough"), 1.0, "long enough"),
    ],
)
def test_a_function_of_ones_own_decides(said: Any, score: float, reason: str) -> None:
    """It says yes or no, or a score, and may give its reason."""

    def f(candidate: Candidate) -> Any:
        return said

    found = settle(Criterion("x"), Holds(f), Candidate("y"))
    assert isinstance(found, Scored)
    assert (found.score, found.reason) == (score, reason)


@each_row("said", [None, "yes", 2, -0.1, float("nan"), (1, 2), (1, "a", "b"), ZeroDivisionError])
def test_a_function_that_says_nothing_of_use_is_not_a_verdict(said: Any) -> None:
    """What it raises or returns otherwise leaves the criterion unjudged."""

    def f(candidate: Candidate) -> Any:
        return 1 / 0 if said is ZeroDivisionError else said

    found = settle(Criterion("x"), Holds(f), Candidate("y"))
    assert isinstance(found, Unjudged)
    assert found.failure.kind == "exception"


@pytest.mark.parametrize("check", [Unsupported("rouge-n"), Script(["./check.py"])])
def test_what_cannot_be_run_is_not_a_verdict(check: Check) -> None:
    """A grader that is not there, and a script that may not run, leave the criterion unjudged."""
    found = settle(Criterion("x"), check, Candidate("y"))
    assert isinstance(found, Unjudged)
    assert found.failure.kind == "unsupported"
    assert str(check).split()[-1] in found.failure.message


def test_what_was_decided_elsewhere_is_taken_as_it_is() -> None:
    """Its score and its reason are the finding's."""
    assert settle(Criterion("x"), Decided(0.4, reason="so"), Candidate("y")) == Scored(
        Criterion("x").id, 0.4, 0.4, "so"
    )


@pytest.mark.parametrize("check", [Holds(lambda candidate: True), Decided(1)])
def test_code_does_not_go_into_a_file(check: Check) -> None:
    """A function, and what was decided in a run, cannot be written down, and the error names the criterion."""
    with pytest.raises(DumpError, match="criterion 'mine'"):
        dumps(Rubric(criteria=[Criterion("x", id="mine", answer=check)]))


@pytest.mark.parametrize("texts", [[], "cat", [""], [1]])
def test_texts_to_look_for_are_texts(texts: Any) -> None:
    """None of them is empty, and there is at least one."""
    with pytest.raises(DefinitionError, match=r"^texts"):
        ContainsAny(texts)


@pytest.mark.parametrize("command", [[], "./check.py", [" "]])
def test_a_script_has_a_command(command: Any) -> None:
    """It is a program and its arguments, not a line for a shell."""
    with pytest.raises(DefinitionError, match=r"^command"):
        Script(command)


@pytest.mark.parametrize("said", ["raises", "async"])
def test_a_condition_that_is_no_use_is_not_a_verdict(said: str) -> None:
    """One that raises, or is async, leaves its criterion unjudged; it neither applies nor does not."""

    def raising(candidate: Candidate) -> bool:
        raise KeyError(candidate.output)

    async def waiting(candidate: Candidate) -> bool:
        return False

    condition: Any = raising if said == "raises" else waiting
    found = decide(Criterion("x", when=condition), Candidate("y"))
    assert isinstance(found, Unjudged)
    assert found.failure.kind == "exception"


@pytest.mark.parametrize("name", ["delete_*", "DELETE_db", "delete_??", "*", "delete_db"])
def test_each_check_of_calls_reads_names_alike(name: str) -> None:
    """A guard finds the call that a sequence finds, and a condition too."""
    run = Candidate("Done.", tool_calls=[ToolCall("delete_db")])
    for check in (Calls(name), Trajectory([name])):
        guard = Rubric(criteria=[Criterion("Deletes", check=check, polarity="guard")])
        assert not evaluate(run, guard, "offline").passed
    assert When(tool_called=name).holds_for(run)


@each_row("function", [len, lambda given: given + "!", lambda given: given[:4]])
def test_a_function_that_takes_the_candidate_for_a_text_is_told_its_output(function: Any) -> None:
    """A check by a function of the user's own is given the candidate, and the error of a text says so."""
    found = decide(Criterion("Is short", check=Holds(function)), Candidate("So kind"))
    assert isinstance(found, Unjudged)
    assert "it is given the candidate, whose text is candidate.output" in found.reason


def test_another_error_of_a_function_says_no_more() -> None:
    """An attribute that the candidate lacks has its own cure."""
    found = decide(Criterion("Is short", check=Holds(lambda given: 1 / 0)), Candidate("So kind"))
    assert "candidate.output" not in getattr(found, "reason", "candidate.output")
