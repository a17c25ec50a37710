"""mcptest's external scorers: real programs that read and write what its documentation says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rubric import LoadError, load_suite
from rubric.formats.suites import loads_suite
from rubric.results.report_rows import Row
from rubric.suites.suite import Suite
from tests.rows import each_row

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups are a matter of POSIX")

EVALS = """
evals:
  - name: summary-quality
    server: main
    prompt: Summarize the incident report.
    response: Checkout v2 failed.
    rubric: "Names the service and the release tag, under 50 words."
"""
SCORERS = """
scorers:
  - name: facts
    type: exec
    command: [python3, scorers/facts.py]
    cwd: "."
    timeout_ms: 20000
"""
DOCUMENTED = {"verdict": "pass", "score": 0.92, "reasoning": "names both", "cost_usd": 0.0003}


def suite_of(folder: Path, code: str, scorers: str = SCORERS) -> Suite:
    """Return the suite of a file whose scorer is a program of *code*, to which `given` is what it was given."""
    (folder / "scorers").mkdir()
    (folder / "scorers" / "facts.py").write_text(f"import json, sys\ngiven = json.load(sys.stdin)\n{code}\n")
    (folder / "evals.yml").write_text(EVALS + scorers)
    suite = load_suite(folder / "evals.yml")
    assert suite.format == "mcptest"
    return suite


def scored(folder: Path, said: Any) -> Row:
    """Return the row of the case that a scorer decides that writes *said*."""
    return suite_of(folder, f"print({json.dumps(said)!r})").run("offline", allow_scripts=True)[
        "summary-quality [facts]"
    ]


def test_a_scorer_reads_what_mcptest_hands_over(tmp_path: Path) -> None:
    """Four keys: the prompt, the response, the rubric as texts, and metadata."""
    suite = suite_of(tmp_path, f"print(json.dumps({{**{DOCUMENTED!r}, 'reasoning': json.dumps(given)}}))")
    assert [case.id for case in suite] == ["summary-quality", "summary-quality [facts]"]
    row = suite.run("offline", allow_scripts=True)["summary-quality [facts]"]
    assert (row.status, row.score, row.usage.cost) == ("passed", 0.92, 0.0003)
    assert json.loads(row.entries[0].reason) == {
        "input": "Summarize the incident report.",
        "output": "Checkout v2 failed.",
        "criteria": "Names the service and the release tag, under 50 words.",
        "metadata": {"eval": "summary-quality"},
    }


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (DOCUMENTED, "passed"),
        ({**DOCUMENTED, "verdict": "fail"}, "failed"),
        ({**DOCUMENTED, "score": 0.2}, "passed"),
        ({**DOCUMENTED, "score": 8}, "ungraded"),
        ({"reasoning": "no verdict"}, "ungraded"),
        ([], "ungraded"),
    ],
)
def test_its_verdict_decides(said: Any, status: str, tmp_path: Path) -> None:
    """Whatever its score is; what is not a verdict is not a score."""
    assert scored(tmp_path, said).status == status


def test_a_scorer_that_fails_leaves_its_case_ungraded(tmp_path: Path) -> None:
    """An exit code other than 0 is a failure, and says why."""
    row = suite_of(tmp_path, "sys.exit('no such dataset')").run("offline", allow_scripts=True)[
        "summary-quality [facts]"
    ]
    assert row.status == "ungraded"
    assert "no such dataset" in row.reason


def test_no_scorer_runs_without_permission(tmp_path: Path) -> None:
    """The eval itself is graded."""
    report = suite_of(tmp_path, "open('ran', 'w')").run("offline")
    assert report["summary-quality [facts]"].status == "ungraded"
    assert "allow_scripts=True" in report["summary-quality [facts]"].reason
    assert report["summary-quality"].status in ("passed", "failed")
    assert not (tmp_path / "ran").exists()


def test_variables_of_a_scorer_are_not_passed_and_said_so(tmp_path: Path) -> None:
    """They are how files name keys."""
    suite = suite_of(tmp_path, "pass", SCORERS + '    env: {KEY: "${KEY}"}\n')
    assert ["not passed" in problem.message for problem in suite.warnings] == [True]


@each_row(
    ("scorer", "said"),
    [
        ("{name: a, type: exec}", "'command' is missing"),
        ("{type: exec, command: [x]}", "'name' is missing"),
        ("{name: a, command: x.py}", "a list: the program"),
        ("{name: a, command: [x], timeout: 3}", "timeout_ms"),
        ("{name: a, command: [x], timeout_ms: 0}", "above 0"),
        ("{name: a, command: [x]}, {name: a, command: [y]}", "belongs to another scorer"),
    ],
)
def test_a_scorer_that_cannot_be_run_is_a_problem_with_a_place(scorer: str, said: str) -> None:
    """As any other flaw of a file."""
    with pytest.raises(LoadError, match=said):
        loads_suite(f"{EVALS}scorers: [{scorer}]\n")


def test_other_kinds_of_scorers_are_named() -> None:
    """Their cases are ungraded."""
    suite = loads_suite(f"{EVALS}scorers: [{{name: a, type: wasm}}]\n")
    assert "a scorer of the type wasm" in suite.run("offline", allow_scripts=True)["summary-quality [a]"].reason
