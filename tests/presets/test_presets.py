"""The ready rubrics: each tells its good examples from its bad ones, given the verdicts of a good judge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rubric import Case, DefinitionError, Judge, check, dumps, grade, lint, load, load_suite, loads, presets
from rubric.driving import Ask
from rubric.internals.frozen_map import thaw
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.answers import JudgeAnswer
from tests.command_line import run
from tests.places import ROOT
from tests.rows import each_row

CASES = [(name, case) for name in presets.NAMES for case in presets.examples(name)]


def good_judge(case: Case) -> Judge:
    """Return a judge that gives the verdicts that the example says."""
    verdicts = thaw(case.metadata["verdicts"])

    def answer(ask: Ask) -> Any:
        (criterion,) = ask.criteria
        value = verdicts[criterion.id]
        return {"reason": "r", "verdict" if isinstance(value, bool) else "score": value}

    return Judge(ScriptedModel(answer), sealed=False)


@each_row(("name", "case"), CASES, ids=[f"{name}: {case.id}" for name, case in CASES])
def test_an_example_comes_out_as_its_tag_says(name: str, case: Case) -> None:
    """With its recorded verdicts, each example passes if and only if it is tagged must-pass."""
    assert case.candidate is not None
    result = grade(case.candidate, getattr(presets, name), good_judge(case))
    assert result.passed is ("must-pass" in case.tags)


QUOTABLE = {
    "says-what-it-did", "finds", "responds", "moves-on", "tone", "supported", "addresses", "complete", "actionable",
    "does-all", "willing",
}  # fmt: skip
"""Criteria that are met by what stands in the answer; others are met by what does not, or where nothing is asked."""


@each_row(("name", "case"), CASES, ids=[f"{name}: {case.id}" for name, case in CASES])
def test_an_honest_judge_passes_good_answers_where_quotes_are_required(name: str, case: Case) -> None:
    """It quotes what there is to quote: a criterion that is met by an absence asks for none."""
    assert case.candidate is not None
    verdicts, words = thaw(case.metadata["verdicts"]), case.candidate.output

    def answer(ask: Ask) -> Any:
        (criterion,) = ask.criteria
        value, quotes = (
            verdicts[criterion.id],
            [words[:40]] if criterion.id in QUOTABLE or criterion.is_unwanted else [],
        )
        return {"reason": "r", "evidence": quotes, "verdict" if isinstance(value, bool) else "score": value}

    judge = Judge(ScriptedModel(answer), sealed=False)
    result = grade(case.candidate, getattr(presets, name).with_evidence(), judge)
    assert result.passed is ("must-pass" in case.tags)


@each_row("name", presets.NAMES)
def test_a_ready_rubric_is_whole(name: str) -> None:
    """Each has anchors, examples of both kinds with verdicts for every criterion, and survives YAML."""
    rubric = getattr(presets, name)
    assert loads(dumps(rubric)) == rubric
    assert any(criterion.anchors for criterion in rubric)
    tags = [tag for case in presets.examples(name) for tag in case.tags]
    assert (tags.count("must-pass") >= 1, tags.count("must-fail") >= 2) == (True, True)
    for case in presets.examples(name):
        assert case.rubric == rubric
        assert [*case.metadata["verdicts"]] == [criterion.id for criterion in rubric]


@each_row("name", presets.NAMES)
def test_a_good_judge_passes_the_tests_of_a_ready_rubric_and_a_constant_one_does_not(name: str) -> None:
    """A judge that always gives the best answer fails the rubric's own tests."""
    rubric = getattr(presets, name)
    said = {case.candidate.output: case for case in presets.examples(name) if case.candidate}

    def answer(ask: Ask) -> Any:
        prompt = " ".join(message.text for message in ask.messages)
        (case,) = (case for output, case in said.items() if output in prompt)
        value = thaw(case.metadata["verdicts"])[ask.criteria[0].id]
        return {"reason": "r", "verdict" if isinstance(value, bool) else "score": value}

    found = check(rubric, Judge(ScriptedModel(answer), sealed=False))
    assert found.ok, str(found)
    assert len(found) == len(said)
    best: dict[str, Any] = {one.id: one.answer.nearest(1.0) for one in rubric if isinstance(one.answer, JudgeAnswer)}
    lazy = check(rubric, Judge(ScriptedModel(best)))
    assert lazy.exit_code == 1


@each_row("name", presets.NAMES)
def test_a_ready_rubric_has_nothing_wrong(name: str) -> None:
    """Lint has no remark on any preset."""
    assert [str(remark) for remark in lint(ROOT / "rubric" / "presets" / f"{name}.yaml")] == []


def test_every_file_beside_the_module_is_a_ready_rubric() -> None:
    """Each YAML file of the folder is listed and validates."""
    folder = ROOT / "rubric" / "presets"
    assert sorted(file.stem for file in folder.glob("*.yaml")) == sorted(presets.NAMES)
    assert run("validate", str(folder)).exit_code == 0


def test_another_name_says_which_there_are() -> None:
    """An unknown preset is an error with the list or the nearest name."""
    with pytest.raises(AttributeError, match="helpfulness"):
        presets.kindness  # noqa: B018
    with pytest.raises(ImportError, match=r"did you mean 'groundedness'"):
        from rubric.presets import faithfulness  # noqa: F401
    with pytest.raises(DefinitionError, match="did you mean 'safety'"):
        presets.examples("safty")


def test_a_preset_is_read_on_first_use() -> None:
    """`import rubric` reads no preset."""
    code = "import rubric, sys; print('rubric.presets' in sys.modules, rubric.presets.examples.cache_info().misses)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "0"]


@pytest.mark.parametrize("name", [*presets.NAMES, "code-review"])
def test_init_starts_from_a_preset(name: str, tmp_path: Path) -> None:
    """`init --preset` writes the rubric and a suite that uses it."""
    made = run("init", str(tmp_path / "evals"), "--preset", name)
    assert made.exit_code == 0
    rubric = load(tmp_path / "evals" / "rubric.yaml")
    assert rubric == getattr(presets, name.replace("-", "_"))
    assert load_suite(tmp_path / "evals" / "suite.yaml")[0].rubric == rubric
    planned = run("plan", str(tmp_path / "evals" / "suite.yaml"), "-j", "offline", "--format", "json")
    assert json.loads(planned.stdout)["calls"]["most"] > 0


def test_init_refuses_a_preset_that_is_not_there(tmp_path: Path) -> None:
    """The error lists the presets, and the command ends with 2."""
    refused = run("init", str(tmp_path), "--preset", "kindness")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "helpfulness" in refused.stderr
