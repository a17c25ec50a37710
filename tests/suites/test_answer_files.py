"""Results whose answers stand in files beside them, as AgentV's `index.jsonl` has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric import Case, DefinitionError, Rubric
from rubric.formats.suites import loads_suite
from rubric.suites.suite import Suite
from rubric.values import Within

EVAL = """
tests:
  - {id: one, input: Q, assertions: [{type: contains, value: yes}]}
  - {id: two, input: Q, assertions: [{type: tool-trajectory, mode: exact, expected: [{tool: search}]}]}
"""


def index(folder: Path, **answers: str | None) -> Path:
    """Return an index of *answers* by test, each in a file of its own; None names one that leads out of the folder."""
    rows = []
    for test, answer in answers.items():
        row: dict[str, Any] = {"test_id": test, "target": "llm", "execution_status": "ok"}
        row["answer_path"] = "../secret.txt" if answer is None else f"{test}/answer.md"
        if answer is not None:
            (folder / test).mkdir()
            (folder / test / "answer.md").write_text(answer)
            said = {"role": "assistant", "content": answer, "tool_calls": [{"tool": "search", "input": {"q": "x"}}]}
            (folder / test / "transcript.jsonl").write_text(json.dumps(said) + "\n")
            row["transcript_path"] = f"{test}/transcript.jsonl"
        rows.append(json.dumps(row))
    (folder / "index.jsonl").write_text("\n".join(rows))
    return folder / "index.jsonl"


def suite() -> Suite:
    return loads_suite(EVAL)


def test_answers_and_calls_are_read_from_their_files(tmp_path: Path) -> None:
    """The answer as it is, and what its run called from the transcript."""
    report = suite().answered(index(tmp_path, one="yes\n", two="done")).run("offline")
    assert [(row.output, row.status) for row in report] == [("yes\n", "passed"), ("done", "passed")]


@pytest.mark.parametrize("lost", ["outside", "missing", "huge"])
def test_a_file_that_cannot_be_read_is_no_answer(tmp_path: Path, lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its case is deferred, and the warning says why; the others are graded."""
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("yes")
    path = index(folder, one=None if lost == "outside" else "yes", two="done")
    if lost == "missing":
        (folder / "one" / "answer.md").unlink()
    elif lost == "huge":
        monkeypatch.setattr("rubric.suites.answer_files._LARGEST", 3)
        (folder / "one" / "answer.md").write_text("yes, yes")
        (folder / "two" / "answer.md").write_text("ok")
        (folder / "two" / "transcript.jsonl").write_text("")
    answered = suite().answered(path)
    assert answered.cases[0].output is None
    assert answered.cases[1].output is not None
    assert any("cannot be read" in problem.message for problem in answered.warnings)


def test_an_index_without_readable_answers_is_refused(tmp_path: Path) -> None:
    """The reason is that of its first row."""
    with pytest.raises(DefinitionError, match=r"none of .* cannot be read"):
        suite().answered(index(tmp_path, one=None))


def test_a_report_of_ours_keeps_what_the_runs_took(tmp_path: Path) -> None:
    """A limit on latency is decided again from it, and two reports of runs alike are equal."""
    suite = Suite("s", [Case("a", Rubric().checks(Within(latency=60)), input="Why?")])
    report = suite.run(target=lambda _: "so")
    assert report[0].metrics.keys() == {"latency"}
    report.write(tmp_path / "report.json")
    again = suite.answered(tmp_path / "report.json")
    assert (again["a"].metrics.latency, again.warnings) == (report[0].metrics["latency"], ())
    assert again.run()["a"].status == "passed"
