"""Results come back whole from plain data and JSON lines, and go out as CSV; frames keep the names of their rows."""

from __future__ import annotations

import csv
import json
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import (
    Candidate,
    Cascade,
    Contains,
    DefinitionError,
    Grade,
    Grades,
    Judge,
    Jury,
    LoadError,
    Panel,
    Rubric,
    ask,
    evaluate,
    grade_many,
)
from tests.rows import each_row

EVERYTHING = (
    Rubric("everything", evidence=True, abstain="exclude")
    .expects("Thanks the customer", id="thanks")
    .rates("Is clear", 1, 5, id="clear")
    .chooses("Which tone?", {"cold": 0, "warm": 1}, id="tone")
    .forbids("Promises a refund", id="refund")
    .checks(Contains("ticket"), id="ticket")
    .decides(ask("Is it urgent?").yes(1.0).no(ask("Is it polite?").yes(0.5).no(0.0)), id="tree")
    .includes(Rubric("inner", ["Is kind", "Is short"]), id="inner")
    .expects("Applies to code", when={"contains": "code"}, id="code")
)


def unreadable(_: object) -> str:
    return "no verdict"


JUDGES: list[Any] = [
    Judge("offline"),
    Jury("offline", 3),
    Jury("offline", 5, early_stop=True),
    Panel("offline", Judge("offline", seed=2), level="criterion"),
    Panel("offline", Jury("offline", 3), aggregate="median"),
    Cascade("offline", Judge("offline", seed=1), when="fails"),
    Judge(unreadable),
    Panel("offline", Judge(unreadable)),
]
TEXTS = [
    "We thank you for the ticket. It is urgent, kind and short.",
    "No.",
    "...",
    "A refund is promised for the code.",
]


@each_row("judge", JUDGES, ids=count())
def test_a_result_comes_back_whole(judge: Any) -> None:
    """`from_dict` gives an equal result for every kind of judge."""
    for text in TEXTS:
        result = evaluate(text, EVERYTHING, judge)
        again = Grade.from_dict(json.loads(json.dumps(result.to_dict())), EVERYTHING, judge)
        assert again == result
        assert again.models == result.models


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    """Odd characters in a candidate survive JSON."""
    result = evaluate(Candidate(text), EVERYTHING, "offline")
    assert Grade.from_dict(json.loads(json.dumps(result.to_dict())), EVERYTHING, "offline") == result


def test_lines_come_back_with_their_places_and_keys(tmp_path: Path) -> None:
    """JSON lines of graded and failed rows give equal grades, with one of several rubrics."""
    rows = [{"output": text, "key": f"row {n}"} for n, text in enumerate(TEXTS)] + [{"output": None}]
    grades = grade_many(rows, EVERYTHING, Jury("offline", 3)).collect()
    grades.to_jsonl(tmp_path / "results.jsonl")
    again = Grades.read_jsonl(tmp_path / "results.jsonl", EVERYTHING, Jury("offline", 3))
    assert again == grades
    assert [(one.index, one.key) for one in again] == [(one.index, one.key) for one in grades]
    assert Grades.from_dict(grades.to_dict(), [Rubric("other"), EVERYTHING], Jury("offline", 3)) == grades


def test_a_judge_that_is_a_model_name_alone_need_not_be_given(tmp_path: Path) -> None:
    """A model's name in the line is enough to restore the judge."""
    grades = grade_many(TEXTS, EVERYTHING, "offline").collect()
    grades.to_jsonl(tmp_path / "results.jsonl")
    assert Grades.read_jsonl(tmp_path / "results.jsonl", EVERYTHING) == grades


def test_results_of_a_judge_that_is_not_given_are_shown_and_not_asked_for_anew(tmp_path: Path) -> None:
    """A function, or a model with settings, is recorded by its name and its digest, which stay as they are."""
    judge = Judge(lambda _: "Hm.", identity="v1", retries=0, repairs=0)
    grades = grade_many(TEXTS, EVERYTHING, judge).collect()
    grades.to_jsonl(tmp_path / "results.jsonl")
    again = Grades.read_jsonl(tmp_path / "results.jsonl", EVERYTHING)
    assert str(again) == str(grades)
    assert {one.judge.digest for one in again} == {judge.digest}
    again.to_jsonl(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "results.jsonl").read_text()
    asked = evaluate(TEXTS[0], Rubric().expects("Is polite"), again[0].judge)
    assert "give it as judge=..." in asked.explain()


def test_a_result_of_another_rubric_or_judge_is_refused() -> None:
    """Digests are compared; retries, which no reply depends on, may differ."""
    data = evaluate(TEXTS[0], EVERYTHING, Judge("offline", temperature=1)).to_dict()
    with pytest.raises(DefinitionError, match=r"^rubric: the result is of the rubric"):
        Grade.from_dict(data, EVERYTHING.without("tree"), Judge("offline", temperature=1))
    with pytest.raises(DefinitionError, match=r"^judge: the result is by another judge"):
        Grade.from_dict(data, EVERYTHING, "offline")
    assert Grade.from_dict(data, EVERYTHING, Judge("offline", temperature=1, retries=5)).rubric == EVERYTHING


def test_a_score_that_was_changed_is_refused() -> None:
    """The score must follow from the findings, and other data is not a result."""
    data = evaluate(TEXTS[0], EVERYTHING, "offline").to_dict()
    with pytest.raises(DefinitionError, match="its findings give"):
        Grade.from_dict({**data, "score": 1.0}, EVERYTHING)
    with pytest.raises(DefinitionError, match="no result that to_dict made"):
        Grade.from_dict({"digest": EVERYTHING.digest}, EVERYTHING)


def test_a_line_that_is_no_result_is_named(tmp_path: Path) -> None:
    """The error has the file and the number of the line."""
    file = tmp_path / "results.jsonl"
    file.write_text(grade_many(TEXTS, EVERYTHING, "offline").collect().to_jsonl() + "{}\n", encoding="utf-8")
    with pytest.raises(LoadError, match=r"results.jsonl:5:1: .*no result"):
        Grades.read_jsonl(file, EVERYTHING)


def test_no_digest_of_a_judge_holds_its_key() -> None:
    """Two keys give one digest."""
    first, other = (
        Judge("openai/gpt-5", api_key=key, api_base="http://x") for key in ("sk-aaaaaaaaaaa", "sk-bbbbbbbbbbb")
    )
    digests = [evaluate("...", EVERYTHING, judge).to_dict()["judge_digest"] for judge in (first, other)]
    assert digests[0] == digests[1]


# -- out as a table ----------------------------------------------------------------------------------------


def test_csv_has_the_rows_with_scores_and_reasons(tmp_path: Path) -> None:
    """The text and the file hold each score and each criterion's reason."""
    grades = grade_many(TEXTS, EVERYTHING, "offline").collect()
    rows = [*csv.DictReader(StringIO(grades.to_csv()))]
    assert [row["score"] for row in rows] == [str(result.score) for result in grades]
    assert [row["reason.thanks"] for row in rows] == [result["thanks"].reason for result in grades]
    grades.to_csv(tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8") == grades.to_csv()


def test_a_frame_is_joined_in_one_line() -> None:
    """The index names the results, and a join by place brings each to its row."""
    frame = pd.DataFrame({"output": TEXTS, "author": ["a", "b", "c", "d"]}, index=[7, 3, 9, 1])
    grades = grade_many(frame, EVERYTHING, "offline").collect()
    assert [result.key for result in grades] == ["7", "3", "9", "1"]
    failed = grades.failed.to_pandas().set_index("index").drop(columns=["input", "output"])
    joined = frame.reset_index(drop=True).join(failed)
    assert list(joined["author"]) == ["a", "b", "c", "d"]
    assert [*joined["score"].notna()] == [not result.passed for result in grades]


@pytest.mark.parametrize(
    "index", [None, pd.Index(["x", "x"]), pd.Index([0.5, 1.5]), pd.MultiIndex.from_tuples([(1, 2), (3, 4)])]
)
def test_an_index_that_names_no_rows_is_no_key(index: Any) -> None:
    """Default, repeated, decimal and multiple indexes leave the keys empty."""
    frame = pd.DataFrame({"output": ["a", "b"]}, index=index)
    assert [result.key for result in grade_many(frame, "Is polite", "offline")] == ["", ""]


def test_mean_and_pass_rate_are_found_where_people_look() -> None:
    """They are attributes and calls of the collection, and None without results."""
    grades = grade_many(["polite", "no"], "Is polite", "offline").collect()
    assert grades.mean == grades.mean() == grades.summary().mean == 0.5  # type: ignore[misc]
    assert grades.pass_rate == 0.5
    assert Grades().mean is Grades().pass_rate is None


# -- in from a spreadsheet ---------------------------------------------------------------------------------


def sheet(path: Path, *rows: tuple[Any, ...]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_a_sheet_is_a_source_of_rows(tmp_path: Path) -> None:
    """A worksheet's rows are graded, empty rows are skipped, and a number is not an output."""
    file = sheet(
        tmp_path / "answers.xlsx", ("id", "output", None), (7, "polite", "x"), (None, None, None), (8, 5, None)
    )
    results = grade_many(file, "Is polite", "offline", columns={"key": "id"}).collect()
    assert [(result.key, result.score) for result in results] == [("7", 1.0), ("8", None)]
    assert "output: expected text, got 5" in results[1].explain()


def test_a_column_of_a_sheet_that_looks_like_a_field_is_refused(tmp_path: Path) -> None:
    """A column "question" must be mapped or renamed."""
    file = sheet(tmp_path / "answers.xlsx", ("question", "output"), ("why?", "polite"))
    with pytest.raises(DefinitionError, match="'question' looks like a field"):
        grade_many(file, "Is polite", "offline")


def test_a_usage_that_a_file_does_not_have_is_unknown(tmp_path: Path) -> None:
    """It is never 0 calls and no dollars; a file that has it says it."""
    grades = grade_many(["a", "b"], "Is polite", "offline").collect()
    data = grades.to_dict()
    for each in data["results"]:
        del each["usage"]
    read = Grades.from_dict(data, grades[0].rubric)
    assert (read.summary().usage.cost, str(read[0].usage)) == (None, "unknown")
    assert "used       unknown, since the file of the results does not have it" in str(read.summary())
    assert Grades.from_dict(grades.to_dict(), grades[0].rubric).summary() == grades.summary()


@pytest.mark.parametrize("given", ["r10.yaml", Path("r10.yaml"), ["r10.yaml"]])
def test_a_path_in_place_of_the_rubric_says_what_reads_it(given: Any, tmp_path: Path) -> None:
    """Of a file, of data, and of one result."""
    grades = grade_many(["a"], "Is polite", "offline").collect()
    grades.to_jsonl(tmp_path / "r.jsonl")
    said = r"rubric: expected a Rubric, or several, got .*r10.yaml.*; write load\('r10.yaml'\)"
    for read in (
        lambda: Grades.read_jsonl(tmp_path / "r.jsonl", given),
        lambda: Grades.from_dict(grades.to_dict(), given),
        lambda: Grade.from_dict(grades[0].to_dict(), given),
    ):
        with pytest.raises(DefinitionError, match=said):
            read()


def test_results_of_another_threshold_are_read_with_the_old_and_rescored(tmp_path: Path) -> None:
    """The message has the way, which asks nobody."""
    old = Rubric.of("Is polite")
    grades = grade_many(["a"], old, "offline").collect()
    new = old.passing_at(0.9)
    with pytest.raises(DefinitionError, match=r"write grades.rescore\(new\)"):
        Grades.from_dict(grades.to_dict(), new)
    assert Grades.from_dict(grades.to_dict(), old).rescore(new)[0].rubric == new
