"""Texts that no field takes are named once, in the plan and in the summary; so is a question that is not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from attrs import evolve
from click.testing import CliRunner

from rubric import Candidate, Contains, Criterion, Message, Rubric, Run, ToolCall, evaluate, grade, grade_many, plan
from rubric.__main__ import main
from rubric.formats.suites import loads_suite
from rubric.quality.lint import lint

POLITE = Rubric("r").expects("Is polite", id="polite")
ASKED = ["Where is my refund?", "When does it come, please?", "Why does it take so long?"]
QUIET = [
    {
        "id": n,
        "group": "a",
        "name": "Ann Lee",
        "email": "ann@example.com",
        "price": 1.5,
        "tags": ["a b c"],
        "empty": None,
    }
    for n in range(3)
]


def rows(name: str) -> list[dict[str, Any]]:
    return [{"output": "On Friday, thanks.", name: asked, **row} for asked, row in zip(ASKED, QUIET, strict=True)]


def forms(folder: Path, given: list[dict[str, Any]]) -> dict[str, Any]:
    lines = folder / "a.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in given))
    (folder / "a.json").write_text(json.dumps(given))
    flat = [{name: value for name, value in row.items() if name != "tags"} for row in given]
    pd.DataFrame(flat).to_csv(folder / "a.csv", index=False)
    pl.DataFrame(flat).write_parquet(folder / "a.parquet")
    files = {f"a.{kind}": folder / f"a.{kind}" for kind in ("jsonl", "json", "csv", "parquet")}
    return {
        **files,
        "list": given,
        "generator": iter(given),
        "pandas": pd.DataFrame(flat),
        "polars": pl.DataFrame(flat),
    }


@pytest.mark.parametrize("name", ["customer_message", "q", "user", "email_body", "Frage"])
def test_a_text_column_that_no_field_takes_is_named_once_in_the_summary(name: str, tmp_path: Path) -> None:
    """Whatever its name, and in every form of data; ids, names, numbers and groups are not."""
    for form, given in forms(tmp_path, rows(name)).items():
        summary = grade_many(given, POLITE, "offline").collect().summary()
        said = (
            f"the column {name!r} holds texts that no judge sees; name its field, columns={{'input': {name!r}}}, "
            f"or pass it over: columns={{{name!r}: None}}"
        )
        assert list(summary.warnings) == [said], form
        assert str(summary).count(f"column {name!r}") == 1


def test_the_plan_names_it_too(tmp_path: Path) -> None:
    """In its words, its data and its Markdown."""
    for form, given in forms(tmp_path, rows("q")).items():
        if form != "generator":
            planned = plan(given, POLITE, "offline")
            assert "the column 'q' holds texts" in repr(planned)
            assert planned.to_dict()["remarks"] == list(planned.remarks)


@pytest.mark.parametrize("columns", [{"input": "q"}, {"q": None}])
def test_a_column_that_is_used_or_passed_over_is_not_named(columns: dict[str, str | None], tmp_path: Path) -> None:
    """The lines that the remark shows work."""
    for given in forms(tmp_path, rows("q")).values():
        assert grade_many(given, POLITE, "offline", columns=columns).collect().summary().warnings == {}


def test_rows_of_metadata_alone_have_no_remark() -> None:
    """Two words are a name, and one text among many other values is a note."""
    given = [{"output": "On Friday.", **row} for row in QUIET]
    assert grade_many(given, POLITE, "offline").collect().summary().warnings == {}
    noted = [
        {**row, "note": "to be looked at again"} if n == 0 else {**row, "note": "ok"} for n, row in enumerate(given)
    ]
    assert grade_many(noted, POLITE, "offline").collect().summary().warnings == {}


def test_the_command_names_it_in_its_own_words(tmp_path: Path) -> None:
    """Once, in the summary."""
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows("q")))
    POLITE.save(tmp_path / "r.yaml")
    arguments = ["grade-many", str(tmp_path / "r.yaml"), str(tmp_path / "a.jsonl"), "--judge", "offline"]
    said = CliRunner().invoke(main, arguments)
    assert said.output.count("the column 'q' holds texts that no judge sees") == 1


ASKING = Rubric("r").expects("Answers the question that was asked", id="answers")


def test_a_plan_says_that_a_rubric_speaks_of_a_question_that_is_not_there() -> None:
    """By a criterion or a prompt, unless a candidate has an input or a chat."""
    said = "the rubric speaks of the question (answers), and there is none; give it as `input`"
    assert plan([{"output": "On Friday."}], ASKING, "offline").remarks == (said,)
    assert plan("On Friday.", ASKING, "offline").remarks == (said,)
    assert plan([{"output": "On Friday.", "input": "When?"}], ASKING, "offline").remarks == ()
    assert plan("On Friday.", POLITE, "offline").remarks == ()
    prompted = evolve(POLITE, prompt="{{ input }} {{ output }} {{ criterion }}")
    assert "(its prompt)" in plan("On Friday.", prompted, "offline").remarks[0]


def test_a_plan_says_that_a_rubric_speaks_of_a_context_that_is_not_there() -> None:
    """Retrieved texts that no candidate has, also within its question or as files."""
    grounded = Rubric("r").requires("Every claim is supported by the context", id="supported")
    row = {"output": "On Friday.", "input": "When?"}
    said = "the rubric speaks of the context (supported), and there is none; give it as `context`"
    assert plan([row, row], grounded, "offline").remarks == (said,)
    assert plan([row, {**row, "context": "Friday"}], grounded, "offline").remarks == ()
    assert plan([{**row, "input": "Context: Friday. When?"}], grounded, "offline").remarks == ()
    assert plan([row], POLITE, "offline").remarks == ()
    assert grade_many([row, row], grounded, "offline").collect().summary().warnings == {said: 2}


def test_each_result_says_what_the_rubric_speaks_of_and_its_candidate_lacks() -> None:
    """By every door, and counted; a run, a criterion of code and an empty cell beside a text are told apart."""
    rubric = Rubric("r").expects("Every claim is supported by the context", id="supported")
    rubric = rubric.expects("Agrees with the reference", id="agrees")
    context, reference = (
        f"the rubric speaks of the {name} ({id_}), and there is none; give it as `{name}`"
        for name, id_ in (("context", "supported"), ("reference", "agrees"))
    )
    whole = {"output": "On Friday.", "input": "When?", "context": "Friday", "reference": "Friday"}
    rows: list[dict[str, Any]] = [
        whole,
        {**whole, "context": None},
        {**whole, "reference": ""},
        {"output": "On Friday.", "input": "When?"},
    ]
    lacking = [(), (context,), (reference,), (reference, context)]
    results = grade_many(rows, rubric, "offline").collect()
    assert [result.warnings for result in results] == lacking
    assert results.summary().warnings == {context: 2, reference: 2}
    for row, said in zip(rows, lacking, strict=True):
        kept = {name: value for name, value in row.items() if value}
        assert grade(kept.pop("output"), rubric, "offline", **kept).warnings == said
        assert evaluate(row, rubric, "offline").warnings == said
    chat = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "On Friday."}]
    run = Run([Message("user", "When?"), ToolCall("search", result="Friday"), Message("assistant", "On Friday.")])
    by_code = Rubric("r", [Criterion("Agrees with the reference", check=Contains("Friday"))])
    assert evaluate({"messages": [*chat, *chat]}, rubric, "offline").warnings == ()
    assert evaluate(Candidate(run=run), rubric, "offline").warnings == ()
    assert evaluate("On Friday.", by_code, "offline").warnings == ()


def test_lint_says_that_a_case_has_no_question() -> None:
    """Its rubric speaks of one."""
    suite = """
cases:
  - {id: a, output: On Friday., rubric: {criteria: [Answers the question that was asked]}}
  - {id: b, output: On Friday., input: "When?", rubric: {criteria: [Answers the question that was asked]}}
"""
    assert [remark.rule for remark in lint(loads_suite(suite))] == ["question-missing"]
