"""Rubrics that were generated and not reviewed."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from attrs import evolve

from rubric import Case, Judge, Rubric, Suite, diff, dumps, evaluate, grade, grade_many, loads, loads_suite, plan
from rubric.formats import schema
from rubric.quality import UnreviewedWarning
from rubric.testing import ScriptedModel
from tests.places import ROOT

RAW = Rubric("raw", criteria=["Is polite"], reviewed=False, provenance={"writer": "openai/gpt-5", "sources": ["ab12"]})


def yes() -> Judge:
    return Judge(ScriptedModel(lambda _: True))


def test_grading_with_unreviewed_criteria_warns_once() -> None:
    """The first grade warns; later grades of the same rubric do not."""
    rubric = evolve(RAW, criteria=["Is polite, the first time"])
    with pytest.warns(UnreviewedWarning, match="unreviewed generated criteria: raw; read the criteria"):
        grade("Good morning!", rubric, yes())
    grade("Good morning!", rubric, yes())  # a second warning would be an error here
    assert len(grade_many(["Good morning!", "Hello!"], rubric, yes()).collect()) == 2


@pytest.mark.parametrize("reviewed", [True, None])
def test_reviewed_criteria_are_no_matter_of_a_warning(reviewed: bool | None) -> None:
    """A rubric that is reviewed, or was never drafted, gives no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grade("Good morning!", evolve(RAW, reviewed=reviewed), yes()).passed


def test_a_plan_grades_nothing_and_warns_of_nothing() -> None:
    """Planning an unreviewed rubric gives no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plan("Good morning!", evolve(RAW, criteria=["Is polite, as planned"]), "offline").asks


def test_an_unreviewed_rubric_within_another_warns_too() -> None:
    """The warning names the outer rubric."""
    whole = Rubric("whole").includes(evolve(RAW, criteria=["Is polite, within"]), id="raw")
    with pytest.warns(UnreviewedWarning, match="whole"):
        evaluate("Good morning!", whole, yes())


def test_review_and_provenance_reach_no_prompt_and_change_no_digest() -> None:
    """Both rubrics send equal messages, and the difference concerns people only."""
    model, plain = ScriptedModel(lambda _: True), evolve(RAW, reviewed=True, provenance={})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grade("Good morning!", RAW, Judge(model))
    grade("Good morning!", plain, Judge(model))
    assert model.asks[0].messages == model.asks[1].messages
    assert RAW.digest == plain.digest
    assert {change.affects for change in diff(RAW, plain).changes} == {"people"}


def test_a_store_serves_the_replies_of_a_rubric_after_its_review(tmp_path: Path) -> None:
    """Marking a rubric as reviewed costs no new call."""
    judge, store = yes(), tmp_path / "replies.db"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert grade("Good morning!", RAW, judge, store=store).usage.calls == 1
    assert grade("Good morning!", evolve(RAW, reviewed=True), judge, store=store).usage.calls == 0


def test_a_file_holds_review_and_provenance() -> None:
    """Both fields survive YAML and are in the schema."""
    text = dumps(RAW)
    assert "reviewed: false\n" in text
    assert loads(text) == RAW
    assert {"reviewed", "provenance"} <= {*schema()["$defs"]["rubric"]["properties"]}


def test_a_suite_says_once_which_cases_are_unreviewed() -> None:
    """One note of the report lists the cases, and a file can hold the mark."""
    suite = Suite(
        "s", [Case("a", RAW, output="Hi!"), Case("b", RAW, output="Hi!"), Case("c", "Is polite", output="Hi!")]
    )
    report = suite.run(yes())
    (note,) = report.warnings
    assert note.startswith("unreviewed generated criteria: a, b; read the criteria, then write")
    written = "suite: s\ncases:\n- {id: a, output: Hi!, rubric: {reviewed: false, criteria: [Is polite]}}\n"
    assert loads_suite(written)["a"].rubric.reviewed is False


def test_the_command_prints_the_warning_as_one_line(tmp_path: Path) -> None:
    """Standard error has one line, without the place in the source."""
    RAW.save(tmp_path / "raw.yaml")
    (tmp_path / "reply.txt").write_text("Good morning!")
    command = [sys.executable, "-m", "rubric", "grade", "raw.yaml", "reply.txt", "-j", "offline"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT), "PATH": ""}
    )
    lines = [line for line in done.stderr.splitlines() if "reviewed" in line]
    assert len(lines) == 1
    assert lines[0].startswith("warning: unreviewed generated criteria: raw;")
