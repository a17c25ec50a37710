"""Python assertions of promptfoo and AgentV: their documented results, run as programs where the caller allows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from rubric.formats.suites import load_suite, loads_suite
from rubric.results.report_rows import Row
from rubric.suites.suite import Suite
from rubric.values.checks import Script
from tests.agentv import written
from tests.rows import each_row


def row(suite: Suite, **options: Any) -> Row:
    (only,) = suite.run("offline", allow_scripts=True, **options)
    return only


def asserted(value: str, output: str = "Hello", **more: Any) -> Row:
    own = {key: more.pop(key) for key in ("threshold", "type", "config") if key in more}
    test: dict[str, Any] = {"providerOutput": output, "assert": [{"type": "python", "value": value, **own}], **more}
    return row(loads_suite(json.dumps({"tests": [test]}), "promptfoo"))


# The results of promptfoo's documentation of `python`, and of its tests of numbers, thresholds and `not-python`.
@each_row(
    ("value", "more", "passed", "score"),
    [
        ("output == 'Hello'", {}, True, 1),
        ("output == 'Bye'", {}, False, 0),
        ("len(output) / 10", {}, True, 0.5),
        ("len(output) / 10", {"threshold": 0.6}, False, 0.5),
        ("0", {}, False, 0),
        ("max(0, len(output) - 300)", {}, False, 0),
        ("'true'", {}, True, 1),
        ("{'pass': True, 'score': 0.5, 'reason': 'half'}", {}, True, 0.5),
        ("{'pass': True, 'score': 0.5}", {"threshold": 0.7}, False, 0.5),
        ("json.dumps({'pass_': False, 'score': 0.2})", {}, False, 0.2),
        ("output == 'Hello'", {"type": "not-python"}, False, 0),
        ("0.3", {"type": "not-python", "threshold": 0.5}, True, 0.3),
        ("x = len(output)\nif x > 3:\n    return {'pass': True, 'score': 1}\nreturn False", {}, True, 1),
        ("context['vars']['greeting'] in output", {"vars": {"greeting": "Hell"}}, True, 1),
        ("context['config']['least'] < len(output)", {"config": {"least": 3}}, True, 1),
        ("output == '{{greeting}}'", {"vars": {"greeting": "Hello"}}, True, 1),
        ("len(output)", {}, True, 1),
    ],
)
def test_python_decides_as_in_promptfoo(value: str, more: dict[str, Any], passed: bool, score: float) -> None:
    """A boolean, a number, or a mapping; its own `pass` decides, whatever the score."""
    found = asserted(value, **more)
    assert found.status == ("passed" if passed else "failed"), found.reason
    assert found.score == pytest.approx(score)


@pytest.mark.parametrize(
    ("value", "why"),
    [("1 / 0", "ZeroDivisionError"), ("None", "it returned None"), ("assert False\nreturn 1", "AssertionError")],
)
def test_an_error_of_the_code_fails_and_is_told(value: str, why: str) -> None:
    """As in promptfoo, whose score is 0 then."""
    found = asserted(value)
    assert (found.status, found.score) == ("failed", 0)
    assert why in found.reason


def test_json_is_read_for_code_that_takes_the_output_for_data() -> None:
    """promptfoo hands over what the provider returns, which may be data."""
    assert asserted("output.get('city') == 'Rome'", '{"city": "Rome"}').status == "passed"
    assert asserted("output.startswith('{')", '{"city": "Rome"}').status == "passed"


def test_what_the_code_prints_is_no_verdict() -> None:
    """It goes where errors go."""
    assert asserted("print('{}')\nreturn True").status == "passed"


def test_no_code_runs_unless_the_caller_allows_it() -> None:
    """Its case is ungraded, and says how it would be graded."""
    suite = loads_suite(json.dumps({"tests": [{"providerOutput": "a", "assert": [{"type": "python", "value": "1"}]}]}))
    (found,) = suite.run("offline")
    assert found.status == "ungraded"
    assert "allow_scripts=True" in found.reason


def test_code_that_does_not_end_is_stopped() -> None:
    """It leaves its case ungraded."""
    suite = loads_suite(
        json.dumps(
            {"tests": [{"providerOutput": "a", "assert": [{"type": "python", "value": "exec('while 1: pass')"}]}]}
        )
    )
    (case,) = suite
    criterion = case.rubric.criteria[0]
    assert isinstance(criterion.answer, Script)
    quick = evolve(criterion, answer=evolve(criterion.answer, timeout=0.5))
    found = row(evolve(suite, cases=[evolve(case, rubric=evolve(case.rubric, criteria=[quick]))]))
    assert found.status == "ungraded"
    assert "0.5 seconds" in found.reason


def test_a_file_has_its_function_and_its_neighbours(tmp_path: Path) -> None:
    """`get_assert`, or the one behind a colon; it may import what is beside it, and sees no key."""
    written(tmp_path / "checks" / "words.py", "GREETING = 'Hello'\n")
    written(
        tmp_path / "checks" / "asserts.py",
        "import os\nfrom words import GREETING\n\ndef get_assert(output, context):\n    return output == GREETING\n\n"
        "def keyless(output, context):\n    return 'OPENAI_API_KEY' not in os.environ\n",
    )
    asserts = [{"type": "python", "value": f"file://checks/asserts.py{name}"} for name in ("", ":keyless")]
    config = {"tests": [{"providerOutput": "Hello", "assert": asserts}]}
    assert row(load_suite(written(tmp_path / "promptfooconfig.yaml", json.dumps(config)))).status == "passed"


def test_a_file_that_is_not_there_leaves_the_case_ungraded(tmp_path: Path) -> None:
    """With a warning; other cases of the file are graded."""
    config = {"tests": [{"providerOutput": "a", "assert": [{"type": "python", "value": "file://none.py"}]}]}
    suite = load_suite(written(tmp_path / "promptfooconfig.yaml", json.dumps(config)))
    assert row(suite).status == "ungraded"


def test_python_of_agentv() -> None:
    """Its numbers pass above 0, or from the threshold; the case from its own."""
    grader = {"type": "python", "value": "0.9 if 'a' in output else 0"}
    suite = loads_suite(json.dumps({"tests": [{"id": "a", "input": "Q", "assert": [grader]}]}), "agentv-2")
    (case,) = suite
    assert not suite.warnings
    assert row(Suite("s", [case.answered("abc")])).score == pytest.approx(0.9)
