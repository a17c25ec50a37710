"""Runs that the command line keeps: what is in them, how many there are, and what is done with the last ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric import Grades, evaluate, load
from rubric.commands import kept_runs
from rubric.commands.kept_runs import Keeper
from rubric.embed import RowBuilder
from rubric.suites import Report
from tests.command_line import REPLY, RUBRIC, run

SUITE = """
suite: replies
cases:
  - {id: warm, output: Thank you for waiting, rubric: [Says thank you for waiting]}
  - {id: cold, output: No, rubric: [Says thank you for waiting]}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder of its own, where runs are kept by default."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUBRIC_RUNS")
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "replies.jsonl").write_text('"Thank you for waiting"\n"No"\n')
    (tmp_path / "rubric.yaml").write_text("criteria: [Says thank you for waiting]\n")
    return tmp_path


def kept() -> list[Path]:
    return [each for each, _ in kept_runs.kept_runs(Path(".rubric/runs"))]


def test_each_run_is_kept_with_its_report_its_results_and_what_was_asked(folder: Path) -> None:
    """Of a suite, of many candidates and of one; and version control leaves all of them out."""
    run("grade", "suite.yaml", "-j", "offline")
    run("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline")
    run("grade", RUBRIC, REPLY, "-j", "offline")
    one, many, suite = kept()
    assert (folder / ".rubric" / ".gitignore").read_text() == "*\n"
    assert [len(Report.load(each / "report.json")) for each in (one, many, suite)] == [1, 2, 2]
    about = json.loads((many / "run.json").read_bytes())
    assert (about["files"], about["ended"] >= about["started"]) == (["rubric.yaml", "replies.jsonl"], True)
    results = Grades.read_jsonl(many / "results.jsonl", load("rubric.yaml"))
    assert [result.passed for result in results] == [True, False]
    assert [json.loads(line)["key"] for line in (suite / "results.jsonl").read_text().splitlines()] == ["warm", "cold"]


@pytest.mark.parametrize("how", ["option", "variable"])
def test_nothing_is_kept_where_that_is_asked_for(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the option, or by an empty variable of the environment."""
    if how == "variable":
        monkeypatch.setenv("RUBRIC_RUNS", "")
    run("grade", "suite.yaml", "-j", "offline", *(["--no-keep"] if how == "option" else []))
    run("grade", RUBRIC, REPLY, "-j", "offline", *(["--no-keep"] if how == "option" else []))
    run("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline", *(["--no-keep"] if how == "option" else []))
    assert not Path(".rubric").exists()


def test_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go when a new one begins; what is no run stays."""
    monkeypatch.setattr(kept_runs, "MOST", 2)
    Path(".rubric/runs/0000-notes").mkdir(parents=True)
    for name in ("a", "b", "c"):
        Keeper.of(name, ["f"]).end()
    assert [about["name"] for _, about in kept_runs.kept_runs(Path(".rubric/runs"))] == ["c", "b"]
    assert Path(".rubric/runs/0000-notes").exists()


def test_a_folder_that_cannot_be_written_to_is_told_and_the_run_goes_on() -> None:
    """A run is worth more than its copy."""
    Path(".rubric").write_text("a file")
    result = run("grade", "suite.yaml", "-j", "offline")
    assert result.exit_code == 1
    assert "1 passed, 1 failed" in result.stdout
    assert "not kept" in result.stderr


def test_no_secret_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks like a key is masked in each file of a run, however it came there."""
    key = "sk-proj-" + "a1B2" * 12
    monkeypatch.setenv("MY_API_KEY", key)
    Path("replies.jsonl").write_text(json.dumps(f"Thank you for waiting, {key}") + "\n")
    run("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline")
    for file in kept()[0].iterdir():
        assert key not in file.read_text()


def test_a_run_that_goes_on_can_be_read() -> None:
    """Its report has the rows so far, and says that it has not ended."""
    row = RowBuilder().of(evaluate("Hi", "Says hello", "offline"))
    keeper = Keeper.of("live", ["f"])
    keeper.add(row)
    (folder,) = kept()
    report = Report.load(folder / "report.json")
    assert (len(report), report.warnings) == (1, ("this run has not ended",))
    keeper.end()
    assert not Report.load(folder / "report.json").warnings


def test_the_ungraded_or_failed_of_the_last_run_are_asked_again_alone() -> None:
    """The new rows stand in the places of the old ones, and the others are not graded anew."""
    run("grade", "suite.yaml", "-j", "offline")
    Path("suite.yaml").write_text(SUITE.replace("output: No", "output: Thank you for waiting"))
    again = run("grade", "suite.yaml", "-j", "offline", "--rerun", "failed")
    assert again.stderr.startswith("replies: 1 case,")
    assert (again.exit_code, "2 passed" in again.stdout) == (0, True)
    assert len(Report.load(kept()[0] / "report.json")) == 2
    lines = (kept()[0] / "results.jsonl").read_text().splitlines()
    assert {(line["key"], line["passed"]) for line in map(json.loads, lines)} == {("warm", True), ("cold", True)}
    nothing = run("grade", "suite.yaml", "-j", "offline", "--rerun", "ungraded")
    assert (nothing.exit_code, "no case of the last run is ungraded" in nothing.stderr) == (2, True)


def test_the_last_two_runs_of_the_same_files_are_compared() -> None:
    """Where no file is named; a run of other files between them is passed over."""
    run("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline")
    alone = run("compare")
    assert (alone.exit_code, "1 kept runs of rubric.yaml, replies.jsonl" in alone.stderr) == (2, True)
    run("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline", "-t", "0.1")
    found = run("compare")
    assert found.exit_code == 0
    assert "pass rate" in found.stdout
    assert run("compare", "one.jsonl").exit_code == 2
