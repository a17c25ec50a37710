"""mcptest's files and distilled cases, read from files as mcptest has them, and graded."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from rubric import Grade, Judge, Jury, LoadError, Panel, Ungraded, plan
from rubric.formats.suites import load_suite, loads_suite
from rubric.formats.yaml import to_yaml
from rubric.suites.cases import Case
from rubric.suites.runner import run_suite
from rubric.suites.suite import Suite
from rubric.testing.scripted_model import Says, ScriptedModel
from rubric.values.judges import AnyJudge
from rubric.values.requests import Failure
from tests.drive import check_details, drive
from tests.places import SHARED
from tests.rows import each_row

_SHARED = SHARED
_FILE = _SHARED / "upstream_cases.json"
_CORPUS = _SHARED / "corpus" / "mcptest"


def loaded(text: str) -> Suite:
    """Return the suite of *text* by the default call; a `LoadError` if something is wrong."""
    suite = loads_suite(text)
    assert suite.format == "mcptest"
    return suite


# -- the corpus --------------------------------------------------------------------------------------------


def _files() -> list[Any]:
    if not _CORPUS.is_dir():
        return [pytest.param(None, marks=pytest.mark.skip("the corpus is not beside this checkout"))]
    return [pytest.param(path, id=path.name) for path in sorted(_CORPUS.glob("*.y*ml"))]


@each_row("path", _files())
def test_a_file_of_the_corpus_loads_and_names_what_it_leaves_out(path: Path) -> None:
    """Every file has a case, and each block that is not about rubrics a warning of its own."""
    suite = load_suite(path)
    blocks = {*re.findall(r"^(\w+):", path.read_text("utf-8"), re.MULTILINE)} - {"evals", "rubrics"}
    assert len(suite) >= 1
    assert {problem.path.partition("[")[0] for problem in suite.warnings} == blocks


# -- the distilled cases -----------------------------------------------------------------------------------

_SAID = {
    "criteria_and_tree": "criteria or tree, not both",
    "duplicate_name": "belongs to .* already",
    "empty_panel": r"at least one judge|panel: expected",
    "invalid_consensus": "consensus: expected a finite number above 0 to 1",
    "invalid_likert": r"\.likert\b",
    "invalid_when": r"\.when\b",
    "missing_description": r"the key 'description' is missing|\.description: ",
    "missing_name": "the key 'name' is missing",
    "no_criteria_or_tree": "nothing to grade by|expected text",
    "panel_and_jury": "not both",
    "ref_override_not_allowed": "only threshold and strict may stand beside ref|unknown key",
    "tree_incomplete": "the branch '(yes|no)' is missing|expected a leaf",
    "tree_root_must_ask": "a tree starts with a question",
    "unknown_aggregation": "aggregation: (unknown value|expected)",
    "unknown_preset": "there is no preset",
    "unknown_ref": "there is no rubric|cannot refer",
    "unknown_scale": "scale: expected unit|unknown key",
    "weights_sum_zero": "their weights sum to 0",
}
"""For each kind of error in the cases, what our problem says; a kind that is not here must be an error all the same."""

_AT_GRADING = {"judge_score_out_of_range": "expected a score from 0 to 1"}


def _distilled() -> list[dict[str, Any]]:
    if not _FILE.is_file():
        return []
    return [case for case in json.loads(_FILE.read_text("utf-8")) if case["format"] == "mcptest"]


def _expected(case: dict[str, Any]) -> dict[str, Any]:
    """Return what is proposed where that is figures, not words; else what was found."""
    proposed = case.get("proposed")
    found: dict[str, Any] = proposed if isinstance(proposed, dict) else case["expected"]
    return found


def _chosen(kind: str) -> list[Any]:
    cases = [case for case in _distilled() if _kind(case) == kind]
    if not cases:
        return [pytest.param({}, marks=pytest.mark.skip("no such case is beside this checkout"))]
    return [pytest.param(case, id=case["id"]) for case in cases]


def _kind(case: dict[str, Any]) -> str:
    expected = _expected(case)
    error = expected.get("error")
    if error:
        return "ungraded" if error in _AT_GRADING or error.startswith("judge_") else "refused"
    if case["candidate"] is None and "cells" not in expected and "projected_calls" not in expected:
        return "deferred"
    return next((key for key in ("cells", "projected_calls") if key in expected), "graded")


def _text(case: dict[str, Any]) -> str:
    """Return the file that a case is about: its keys of an eval, and the named rubrics beside them."""
    keys = dict(case["rubric"])
    shared = {"rubrics": keys.pop("rubrics")} if "rubrics" in keys else {}
    response = {} if case["candidate"] is None else {"response": case["candidate"]}
    eval_ = {"name": case["id"], "prompt": "What changed?", **response, **keys}
    return to_yaml({**shared, "evals": [eval_]})


def _suite(case: dict[str, Any]) -> Suite:
    return loaded(_text(case))


def _bench(bench: AnyJudge | None, models: list[ScriptedModel]) -> AnyJudge:
    """Return *bench* with scripts in the place of its models, and *models* filled with them."""
    match bench:
        case Panel():
            return evolve(bench, judges=[Judge(model, repairs=0) for model in models])
        case Jury():
            return evolve(bench, judge=Judge(models[0], repairs=0))
        case _:
            return Judge(models[0], repairs=0)


def _line(reply: Any) -> Any:
    """Return a reply of a case as a line of a script: a verdict, a failure, or whatever else stands there."""
    if not isinstance(reply, dict) or "score" not in reply:
        broken = isinstance(reply, dict) and "__error" in reply
        return Failure("exception", str(reply["__error"])) if broken else reply
    return Says(reply["score"], reply.get("reason") or "", (reply["evidence"],) if reply.get("evidence") else ())


def _models(case: dict[str, Any], bench: AnyJudge | None) -> list[ScriptedModel]:
    """Return a script for each judge: the replies of a panel are listed one member after the other."""
    said = [_line(reply) for reply in case["judge_replies"]]
    if len(said) == 1 and "preset" in str(case["rubric"]):  # a preset has several criteria, and each gets this reply
        said *= 3
    members = len(bench.judges) if isinstance(bench, Panel) else 1
    each = len(said) // members
    return [ScriptedModel(said[n * each : (n + 1) * each]) for n in range(members)]


def _graded(case: dict[str, Any]) -> tuple[Grade | Ungraded, list[ScriptedModel]]:
    only: Case = _suite(case).cases[0]
    models = _models(case, only.judge)
    assert only.candidate is not None
    return drive(only.rubric, _bench(only.judge, models), only.candidate), models


@each_row("case", _chosen("graded"))
def test_a_distilled_case_comes_to_its_figures(case: dict[str, Any]) -> None:
    """Score and verdict; where they are told, also gates, walk, display, prompt and calls."""
    (result, models), expected = _graded(case), _expected(case)
    assert isinstance(result, Grade)
    assert result.score == pytest.approx(result.score if expected.get("score") is None else expected["score"])
    assert result.passed is expected.get("pass", result.passed)
    check_details(result, models, expected)


@each_row("case", _chosen("refused"))
def test_a_distilled_error_is_a_problem_with_a_place(case: dict[str, Any]) -> None:
    """It is told when the file is loaded, at a line of the rubric or the judge."""
    with pytest.raises(LoadError) as caught:
        _suite(case)
    problems = caught.value.problems
    assert any(re.search(_SAID.get(_expected(case)["error"], ""), str(problem)) for problem in problems)
    assert all(problem.line and problem.column > 1 for problem in problems)


@pytest.mark.parametrize("case", _chosen("ungraded"))
def test_a_distilled_error_of_the_judge_is_no_grade(case: dict[str, Any]) -> None:
    """The file loads; the reply cannot be read, and there is no score."""
    result, _ = _graded(case)
    assert isinstance(result, Ungraded)
    assert re.search(_AT_GRADING.get(_expected(case)["error"], ""), result.explain())


@pytest.mark.parametrize("case", _chosen("deferred"))
def test_a_distilled_case_without_a_response_is_deferred(case: dict[str, Any]) -> None:
    """Nobody is asked, and it counts as passed where the run says so, as with mcptest."""
    judge = Judge(ScriptedModel([]))
    report = asyncio.run(run_suite(_suite(case), judge, deferred="pass"))
    assert [row.status for row in report.rows] == ["deferred"]
    assert report.deferred == "pass"


@pytest.mark.parametrize("case", _chosen("cells"))
def test_a_distilled_matrix_has_its_cells(case: dict[str, Any]) -> None:
    """A case for each, with a name and coordinates of its own, and the same rubric."""
    suite = _suite(case)
    assert len(suite) == len({case.cell for case in suite}) == _expected(case)["cells"]
    assert len({case.rubric for case in suite}) == 1


@pytest.mark.parametrize("case", _chosen("projected_calls"))
def test_a_distilled_plan_counts_its_calls(case: dict[str, Any]) -> None:
    """Nothing is sent: the calls are criteria times votes, or times the members of a panel."""
    only = _suite(case).cases[0]
    models = _models(case, only.judge)
    planned = plan(str(only.output), only.rubric, _bench(only.judge, models))
    assert (planned.least, planned.most) == (_expected(case)["projected_calls"],) * 2
    assert not any(model.asks for model in models)
