"""The plain form of results is written from the fields of nouns, and files of earlier versions are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric import DefinitionError, Grade, Grades, Judge, Panel, Rubric, evaluate
from rubric.results.plain_data import KINDS, Record, plain, read
from rubric.results.report_rows import Entry
from rubric.suites.report import SCHEMA, Report
from rubric.values.findings import Abstained, Evidence, NotApplicable, Scored, Unjudged
from rubric.values.requests import Failure
from tests.places import ROOT
from tests.rows import each_row

FILES = ROOT / "tests" / "files" / "results"
PANEL = Panel(Judge("some/model"), Judge("other/model"))
FINDING = Scored("a", 1.0, True, evidence=(Evidence("x", 1, 2),))


def written() -> dict[str, Any]:
    return evaluate("It is kind.", Rubric("r", ["Is kind"]), "offline").to_dict()


def test_lines_of_an_earlier_version_come_back_whole() -> None:
    """Every kind of finding is read from a file as it was written before there was one table of fields."""
    grades = Grades.read_jsonl(FILES / "results.jsonl", Rubric.load(FILES / "rubric.yaml"))
    lines = [json.loads(line) for line in (FILES / "results.jsonl").read_text("utf-8").splitlines()]
    assert [json.loads(line) for line in (grades.to_jsonl() or "").splitlines()] == lines
    assert {each["kind"] for line in lines for each in line["findings"]} == {"scored", "not_applicable", "unjudged"}
    nested, missing = grades[0]["style"], grades[1]["tone"]
    assert isinstance(nested, Scored)
    assert nested.parts[1] == Scored("thanks", 0.0, value=False)
    assert isinstance(missing, Unjudged)
    assert missing.failure.usage.cost is None


def test_a_panel_of_an_earlier_version_comes_back_whole() -> None:
    """The votes are results in the same form."""
    data = json.loads((FILES / "panel.json").read_text("utf-8"))
    assert Grade.from_dict(data, Rubric.load(FILES / "rubric.yaml"), PANEL).to_dict() == data


def test_a_report_of_an_earlier_form_is_a_baseline(tmp_path: Path) -> None:
    """What was written is read, and written the same again, with the keys that came later at their defaults."""
    report = Report.load(FILES / "report.json")
    assert report[0].entries[2].status == "not_applicable"
    (tmp_path / "again.json").write_text(report.render("json"), "utf-8")
    assert Report.load(tmp_path / "again.json").render("json") == report.render("json")
    later: dict[str, Any] = {"schema": SCHEMA, "lack": "", "points_off": None, "needs": "", "metrics": {}}
    earlier = json.loads((FILES / "report.json").read_text("utf-8"))
    assert earlier.pop("schema") == "rubric-report/2"
    assert _without(later, json.loads(report.render("json"))) == earlier
    assert report.against(report).exit_code == 0


def _without(keys: dict[str, Any], data: Any) -> Any:
    """Return *data* without *keys* that have these values, at any depth."""
    if isinstance(data, list):
        return [_without(keys, each) for each in data]
    if not isinstance(data, dict):
        return data
    return {k: _without(keys, v) for k, v in data.items() if k not in keys or v != keys[k]}


def test_a_result_is_read_without_its_rubric() -> None:
    """A record has the findings as nouns, and what each contributes; it writes what it was read from."""
    data = json.loads((FILES / "panel.json").read_text("utf-8"))
    record = Record.from_dict(data)
    assert record.to_dict() == data
    assert (record.verdict, record.contributions["clarity"], len(record.votes)) == ("pass", 0.7, 2)
    assert isinstance(record.findings[2], NotApplicable)


def test_columns_that_people_add_to_a_line_are_passed_over() -> None:
    """A note beside a result does not make its file unreadable."""
    assert Record.from_dict({**written(), "my note": "looked at"}) == Record.from_dict(written())


@each_row(
    ("change", "complaint"),
    [
        ({"score": "0.5"}, "score: expected a number or null, got '0.5'"),
        ({"passed": 1}, "passed: expected true or false or null, got 1"),
        ({"verdict": "good"}, "verdict: expected one of pass, borderline, fail, got 'good'"),
        ({"bounds": [0]}, "bounds: expected a list of 2, got [0]"),
        ({"gates": "a"}, "gates: expected a list, got 'a'"),
        ({"scoer": 1}, "scoer: unknown key; did you mean 'score'?"),
        ({"findings": [{"kind": "scored", "id": "a"}]}, "findings[0].score: it is missing"),
        ({"findings": [{"kind": "skored", "id": "a"}]}, "findings[0].kind: expected one of scored, not_applicable"),
        ({"findings": [{"kind": "abstained", "id": "a", "reasn": ""}]}, "findings[0].reasn: unknown key; did you"),
        ({"findings": [{"kind": "abstained", "id": "a", "contribution": "1"}]}, "findings[0].contribution: expected"),
        ({"usage": {"calls": 0.5}}, "usage.calls: expected a whole number, got 0.5"),
        ({"failures": [7]}, "failures[0]: expected a mapping, got 7"),
    ],
)
def test_what_is_no_result_is_named_by_its_place(change: dict[str, Any], complaint: str) -> None:
    """Nothing is converted or left out: the error has the path, what stands there and what may."""
    with pytest.raises(DefinitionError) as caught:
        Grade.from_dict({**written(), **change}, Rubric("r", ["Is kind"]))
    assert complaint in str(caught.value)


def test_all_problems_are_listed() -> None:
    """One error has the problems of several fields."""
    with pytest.raises(DefinitionError, match=r"score: expected .*; coverage: expected"):
        Record.from_dict({**written(), "score": "1", "coverage": None})


@pytest.mark.parametrize("data", [None, 7, [], "x", {"score": float("nan")}])
def test_other_data_is_refused(data: object) -> None:
    """Values of other types have our error, not Python's."""
    with pytest.raises(DefinitionError, match="data"):
        Record.from_dict(data)


@pytest.mark.parametrize(
    "finding",
    [FINDING, NotApplicable("a", "why"), Abstained("a"), Unjudged("a", Failure("timeout", "late"), parts=(FINDING,))],
    ids=lambda finding: type(finding).__name__,
)
def test_every_field_of_a_finding_is_written_and_read(finding: Any) -> None:
    """The keys are the fields, `kind` and `contribution`, and what is read is equal."""
    data = json.loads(json.dumps(plain(finding)))
    assert {*data} == {"kind", "contribution", *(each.name for each in type(finding).__attrs_attrs__)}
    assert data["kind"] == KINDS[type(finding)]
    record = Record.from_dict({"score": None, "verdict": None, "passed": None, "findings": [data]})
    assert record.findings == (finding,)


def test_a_field_that_a_file_lacks_has_its_default() -> None:
    """A file from before a field was added is read."""
    assert read(Entry, {"id": "a", "text": "t", "status": "scored"}, "file") == Entry("a", "t", "scored")
