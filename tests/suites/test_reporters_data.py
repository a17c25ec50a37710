"""The reporters for programs: JSON and its way back, a line a case, and what both promise."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve
from hypothesis import given

from rubric import Judge, Panel, Rubric, Unit
from rubric import ask as when_asked
from rubric.errors import DefinitionError
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.row_files import rows_in
from rubric.results.report_rows import Row
from rubric.suites.cases import Case
from rubric.suites.report import SCHEMA, Report
from rubric.suites.reporters.registry import REPORTERS, reporter_for
from rubric.suites.runner import run_suite
from rubric.suites.suite import Suite
from rubric.testing.scripted_model import Says, ScriptedModel
from rubric.values.requests import Ask, Failure
from tests.everything import CANDIDATE, EVERYTHING, QUOTE, VERDICTS
from tests.examples import examples
from tests.reports import DEFERRED, FAILED, NASTY, PASSED, REPORT, UNGRADED, reports
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@given(reports)
@examples(25)
def test_a_report_that_was_written_reads_back_as_the_same(report: Report) -> None:
    """JSON, through bytes and back, loses nothing but the live results."""
    text = report.render("json").encode().decode()
    assert Report.from_dict(json.loads(text)) == report


def test_the_data_is_what_json_reads_back() -> None:
    """`to_dict` holds dicts, lists and plain values alone, in the order of the fields."""
    assert json.loads(REPORT.render("json")) == REPORT.to_dict()
    assert list(REPORT.to_dict())[:4] == ["schema", "summary", "suite", "rows"]


def test_the_data_names_its_schema_and_what_it_comes_to() -> None:
    """Who reads it need not count."""
    data = REPORT.to_dict()
    assert data["schema"] == SCHEMA
    assert data["summary"]["exit_code"] == 2
    assert data["summary"]["counts"] == {"passed": 1, "failed": 1, "ungraded": 1, "deferred": 1}
    assert data["summary"]["usage"]["cost"] == pytest.approx(0.0187)


def test_the_keys_belong_to_the_version_of_the_schema() -> None:
    """Whoever changes one of these lists gives the schema another number."""
    row = REPORT.to_dict()["rows"][0]
    assert SCHEMA == "rubric-report/4"
    assert list(row) == [
        "id", "status", "score", "verdict", "shown", "threshold", "bounds", "reason", "rubric", "judge", "input", "output",
        "run", "entries", "votes", "gates", "path", "warnings", "usage", "cell", "tags", "place", "vacuous",
        "needs", "metrics",
    ]  # fmt: skip
    assert list(row["entries"][0]) == [
        "id", "text", "status", "score", "contribution", "weight", "answer", "value", "level", "gated", "reason",
        "evidence", "path", "parts", "votes", "judge", "lack", "points_off",
    ]  # fmt: skip


def test_json_keeps_a_megabyte_whole() -> None:
    """What other reporters cut, this one keeps."""
    report = Report("s", (evolve(PASSED, output="x" * 1_000_000),))
    assert Report.from_dict(json.loads(report.render("json"))) == report


def test_a_cell_that_is_no_data_becomes_text() -> None:
    """A coordinate may be any Python value; numbers that JSON lacks are written as words."""
    row = evolve(PASSED, cell=FrozenMap({"n": float("nan"), "t": (1, "x"), "o": Row}))
    data = json.loads(Report("s", (row,)).render("json"))
    assert data["rows"][0]["cell"] == {"n": "nan", "t": [1, "x"], "o": str(Row)}


def test_every_line_of_ndjson_is_an_object_and_the_last_is_the_summary() -> None:
    """However a reader splits lines, it finds one for each case and one more."""
    report = Report("s", tuple(evolve(PASSED, id=text, output=text) for text in NASTY))
    lines = [json.loads(line) for line in report.render("ndjson").splitlines()]
    assert [line["type"] for line in lines] == ["row"] * len(NASTY) + ["summary"]
    assert [line["id"] for line in lines[:-1]] == list(NASTY)
    assert lines[-1]["counts"]["passed"] == len(NASTY)


def test_a_table_has_a_row_for_each_case_and_a_column_for_each_criterion(tmp_path: Path) -> None:
    """The numbers are those of the report, a deferred case has none, and a formula is a text."""
    formula = evolve(PASSED, id="=1+1", output="+2 is it")
    path = Report("s", (formula, FAILED, UNGRADED, DEFERRED)).write(tmp_path / "table.csv")
    rows = [row for _, row in rows_in("path", path, ".csv")]
    assert [row["key"] for row in rows] == ["=1+1", FAILED.id, UNGRADED.id, DEFERRED.id]
    assert [row["score"] for row in rows] == [f"{PASSED.score}", f"{FAILED.score}", None, None]
    assert [row["passed"] for row in rows] == ["True", "False", None, None]
    assert rows[3]["verdict"] == "deferred"
    assert ",'+2 is it," in path.read_text("utf-8")
    for entry in FAILED.entries:
        assert rows[1][f"reason.{entry.id}"] == (entry.reason or None)
        assert rows[1][f"criterion.{entry.id}"] == (None if entry.contribution is None else f"{entry.contribution}")


@pytest.mark.parametrize("name", sorted({*REPORTERS} - {"harbor"}))  # which writes nothing where a case has no grade
def test_a_file_is_written_by_the_reporter_of_its_ending(name: str, tmp_path: Path) -> None:
    """Each reporter has an ending of its own, and makes the folders that it needs."""
    for ending in REPORTERS[name].endings:
        path = REPORT.write(tmp_path / "new" / f"x{ending}")
        assert path.read_text("utf-8") == REPORT.render(name)
    assert REPORT.write(tmp_path / "any", name).read_text("utf-8") == REPORT.render(name)


def test_the_longest_ending_decides() -> None:
    """A name may end in two of them."""
    names = {"r.json": "json", "r.SARIF.json": "sarif", "gl-code-quality-report.json": "gitlab", "TEST-x.xml": "junit"}
    assert {path: reporter_for(path).name for path in names} == names


def test_an_unknown_reporter_or_ending_is_refused_with_what_there_is() -> None:
    """The message names what was found and what may stand there."""
    with pytest.raises(DefinitionError, match=r"reporter: unknown reporter 'junt'; did you mean 'junit'"):
        REPORT.render("junt")
    with pytest.raises(DefinitionError, match=r"'report.docx' names no reporter; end it in one of .*\.html"):
        REPORT.write("report.docx")


def test_a_report_is_loaded_from_its_file(tmp_path: Path) -> None:
    """A baseline is a file of the JSON reporter."""
    assert Report.load(REPORT.write(tmp_path / "r.json")) == REPORT


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected a report in JSON"),
        ("[]", "expected data with the schema"),
        ('{"schema": "rubric-report/9"}', "'rubric-report/9'"),
        (f'{{"schema": "{SCHEMA}"}}', "suite"),
        (f'{{"schema": "{SCHEMA}", "suite": "s", "rows": [{{"id": 7, "status": "passed"}}]}}', "rows[0].id"),
        (f'{{"schema": "{SCHEMA}", "suite": "s", "rows": [{{"id": "x", "status": "fine"}}]}}', "rows[0].status"),
        (f'{{"schema": "{SCHEMA}", "suite": "s", "color": 1}}', "color"),
    ],
)
def test_a_file_that_is_no_report_is_refused(text: str, complaint: str, tmp_path: Path) -> None:
    """The message names the file and what is wrong in it."""
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(DefinitionError) as caught:
        Report.load(path)
    assert str(path) in str(caught.value)
    assert complaint in str(caught.value)


def test_numbers_are_not_read_from_text() -> None:
    """Nothing is converted in silence."""
    data = REPORT.to_dict()
    data["rows"][0]["score"] = "0.9"
    with pytest.raises(DefinitionError, match=r"rows\[0\].score"):
        Report.from_dict(data)


def test_a_file_of_bytes_that_are_no_text_is_refused(tmp_path: Path) -> None:
    """As one that holds no report, not with an error of Python's."""
    path = tmp_path / "r.json"
    path.write_bytes(b"\xff\xfe\xfa" * 9)
    with pytest.raises(DefinitionError, match="expected a report in JSON"):
        Report.load(path)
    path.write_bytes(b"[" * 200_000)
    with pytest.raises(DefinitionError, match="expected a report in JSON"):
        Report.load(path)


@each_row("name", sorted({*REPORTERS} - {"harbor"}))  # which writes nothing where a case has no grade
def test_what_a_suite_came_to_renders_and_reads_back(name: str) -> None:
    """A rubric with every answer type, before one judge and before a panel, and a tree: graded, and reported."""
    report = graded()
    assert [row.status for row in report] == ["passed", "failed", "failed", "ungraded"]
    assert report.render(name)
    assert Report.from_dict(json.loads(report.render("json"))) == report


@cache
def graded() -> Report:
    """Return the report of a suite that scripted judges have graded."""

    def says(ask: Ask, changes: Mapping[str, Any]) -> Says:
        criterion = ask.criteria[0]
        answers = {"Greets by name": True, **VERDICTS, **changes}
        value = answers.get(criterion.text, 0.3 if isinstance(criterion.answer, Unit) else True)
        return Says(value, reason=f"of {criterion.id}", evidence=(QUOTE,) if criterion.id in ask.quoted else ())

    kind = Judge(ScriptedModel(lambda ask: says(ask, {})))
    stern = Judge(ScriptedModel(lambda ask: says(ask, {"A newcomer could act on it": 1})))
    dead = Judge(ScriptedModel(lambda _: Failure("quota", "the account is empty")))
    tree = Rubric.deciding(when_asked("Is it polite?").yes(1.0).no(0.4), name="manners")
    own = {name: getattr(CANDIDATE, name) for name in ("output", "input", "reference", "context", "tool_calls")}
    cases = [
        Case("one judge", EVERYTHING, **own),
        Case("a panel", EVERYTHING, judge=Panel([kind, stern]), **own),
        Case("a tree", tree, output="Hm. Well."),
        Case("no judge", tree, output="Good day!", judge=dead),
    ]
    return asyncio.run(run_suite(Suite("graded", cases, judge=kind)))


def test_what_is_deferred_changes_the_exit_code_only_as_the_report_says() -> None:
    """The summary of every reporter rests on these."""
    rows = (PASSED, DEFERRED)
    codes = {word: Report("s", rows, deferred=word).exit_code for word in ("pass", "fail", "error")}
    assert codes == {"pass": 0, "fail": 1, "error": 2}
    assert Report("s", (FAILED, UNGRADED), deferred="pass").exit_code == 2
