"""The one reader of rows: each argument that takes a file of rows reads all kinds of them, by the same rules."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openpyxl
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Grade, Grades, Judge, Rubric, Ungraded, grade, grade_many, load_suite
from rubric.errors import RubricError
from rubric.formats.suites import loads_suite
from rubric.internals.row_files import Broken, csv_text, read_json, rows_in
from rubric.labelling.drawing import Draw
from rubric.labelling.sheet import Answer, Sheet, read_answers
from rubric.quality.material import _pairs
from rubric.suites.report import Report
from rubric.trust.labels import Labels
from rubric.trust.pairwise.preference import pairs_of
from rubric.trust.ratings import as_judged
from tests.places import ROOT
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable


def YES(messages: object) -> str:  # noqa: N802 - a judge, beside its rubric
    """Judge that all is well."""
    return '{"verdict": true}'


POLITE = Rubric("r").expects("Is polite", id="polite")
SUITE = """
cases:
  - id: c1
    rubric: {criteria: [{id: polite, text: Is polite}]}
"""


def suite_outputs(path: Path) -> Any:
    file = path.with_name("suite.yaml")
    file.write_text(SUITE)
    return load_suite(file).answered(path).cases[0].output


DOORS: dict[str, Callable[[Path], Any]] = {
    "grade_many": lambda path: [grade_many(path, POLITE, YES).collect()[0].score or grade_many_why(path)],
    "answered": suite_outputs,
    "prefer_many": lambda path: pairs_of(path, None),
    "preferred": _pairs,
    "Labels.read": Labels.read,
    "label --add": lambda path: read_answers(path, "key"),
}


def grade_many_why(path: Path) -> Any:
    (result,) = grade_many(path, POLITE, YES).collect()
    assert isinstance(result, Ungraded)
    raise RubricError(result.failures[0].message)


HEADS = {
    "grade_many": "key,output",
    "answered": "id,output",
    "prefer_many": "a,b",
    "preferred": "a,b",
    "Labels.read": "key,value",
    "label --add": "key,value",
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_text_that_a_separator_cuts_is_refused_at_every_door(door: str, suffix: str, tmp_path: Path) -> None:
    """The line, what was found, and the cure; half of a text is never graded, compared or kept."""
    separator = "," if suffix == ".csv" else "\t"
    path = tmp_path / f"rows{suffix}"
    path.write_text(f"{HEADS[door]}\nc1,Dear customer, your refund is done\n".replace(",", separator))
    with pytest.raises(RubricError, match=rf"rows\{suffix}:2: 3 cells under 2 names; put texts that are cut into quot"):
        DOORS[door](path)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
def test_two_columns_of_one_name_are_refused_at_every_door(door: str, suffix: str, tmp_path: Path) -> None:
    """A row would hold the last of them."""
    names = HEADS[door].split(",")
    rows = [[*names, names[1]], ["c1", "one", "two"]]
    path = tmp_path / f"rows{suffix}"
    if suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)
    else:
        separator = "," if suffix == ".csv" else "\t"
        path.write_text("\n".join(separator.join(row) for row in rows))
    with pytest.raises(RubricError, match=f"two columns are called '{names[1]}'"):
        DOORS[door](path)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".ndjson"])
def test_a_key_that_stands_twice_is_refused_at_every_door(door: str, suffix: str, tmp_path: Path) -> None:
    """Which of the two is meant cannot be known."""
    name, other = HEADS[door].split(",")
    row = f'{{"{name}": "c1", "{other}": "one", "{other}": "two"}}'
    path = tmp_path / f"rows{suffix}"
    path.write_text(f"[{row}]" if suffix == ".json" else row)
    with pytest.raises(RubricError, match=f"the key '{other}' is used twice"):
        DOORS[door](path)


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write *rows* to *path* as its suffix says."""
    match path.suffix:
        case ".csv" | ".tsv":
            with path.open("w", newline="") as file:
                lines = csv.DictWriter(file, rows[0], delimiter="," if path.suffix == ".csv" else "\t")
                lines.writeheader()
                lines.writerows(rows)
        case ".json":
            path.write_text(json.dumps(rows))
        case ".jsonl" | ".ndjson":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case ".parquet":
            pl.DataFrame(rows).write_parquet(path)
        case ".xlsx":
            book = openpyxl.Workbook()
            book.active.append([*rows[0]])
            for row in rows:
                book.active.append([*row.values()])
            book.save(path)
    return path


KINDS = [".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".xlsx"]


@pytest.mark.parametrize("suffix", KINDS)
def test_every_door_reads_every_kind_of_file(suffix: str, tmp_path: Path) -> None:
    """The same two rows are read from each."""
    replies = written(tmp_path / f"replies{suffix}", [{"id": "c1", "output": "Thanks, all"}])
    assert suite_outputs(replies) == "Thanks, all"
    pairs = written(tmp_path / f"pairs{suffix}", [{"a": "Thanks, all", "b": "No"}])
    assert [(pair.a.output, pair.b.output) for pair in pairs_of(pairs)[0]] == [("Thanks, all", "No")]
    labels = written(tmp_path / f"labels{suffix}", [{"key": "a", "value": "yes"}, {"key": "b", "value": None}])
    assert [(label.key, label.value) for label in Labels.read(labels)] == [("a", "yes")]
    assert [(answer.name, answer.value) for answer in read_answers(labels, "key")] == [("a", "yes"), ("b", "")]
    rows = written(tmp_path / f"rows{suffix}", [{"output": "Thanks", "input": "q"}])
    assert [result.candidate for result in grade_many(rows, POLITE, YES)] == [Candidate("Thanks", input="q")]


@pytest.mark.parametrize("suffix", KINDS)
def test_an_empty_cell_is_a_missing_output_in_every_kind_of_file(suffix: str, tmp_path: Path) -> None:
    """It is ungraded, as a missing value of a frame is; an output that is written as "" in JSON is graded as empty."""
    path = written(tmp_path / f"rows{suffix}", [{"output": "Thanks", "input": "q"}, {"output": None, "input": "q2"}])
    first, second = grade_many(path, POLITE, YES).collect()
    frame_first, frame_second = grade_many(pl.DataFrame({"output": ["Thanks", None]}), POLITE, YES).collect()
    assert (first.score, second.score) == (frame_first.score, frame_second.score) == (1.0, None)
    assert isinstance(second, Ungraded)
    assert "candidates[1].output: expected text, got nothing" in second.failures[0].message


def test_an_empty_text_in_json_is_graded_as_an_empty_output(tmp_path: Path) -> None:
    """JSON can tell an empty text from a missing one."""
    path = written(tmp_path / "rows.jsonl", [{"output": ""}])
    assert isinstance(grade_many(path, POLITE, YES).collect()[0], Grade)


OTHER_TABLES = {
    "rubric/formats/files.py": "tables of test cases, whose cells have places and limits",
    "rubric/internals/row_files.py": "the reader",
    "rubric/results/collection.py": "makes frames",
}
OTHER_JSON = {
    "rubric/programs/javascript_worker.py": "requests of its parent",
    "rubric/commands/kept_runs.py": "lines of ours, which are copied as they are",
    "rubric/suites/answer_files.py": "a transcript, whose messages are not rows",
}


def test_no_other_module_reads_rows() -> None:
    """Those that import a library of tables are listed, and lines of JSON are read by the reader alone."""
    importing, looping = set(), set()
    for file in (ROOT / "rubric").rglob("*.py"):
        name, text = file.relative_to(ROOT).as_posix(), file.read_text("utf-8")
        if not re.search(r"import .*(?:csv|openpyxl|polars)|json\.loads", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import) and {alias.name for alias in node.names} & {"csv", "openpyxl", "polars"}:
                importing.add(name)
            if isinstance(node, ast.For | ast.ListComp | ast.GeneratorExp):
                over = node if isinstance(node, ast.For) else node.generators[0]
                calls = [ast.unparse(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)]
                if "line" in ast.unparse(over.target) + ast.unparse(over.iter) and "json.loads" in calls:
                    looping.add(name)
    assert importing == OTHER_TABLES.keys()
    assert looping == OTHER_JSON.keys()


# -- cells that a spreadsheet would run ------------------------------------------------------------------

FORMULAS = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "''@a", "＝1"]
TEXTS = st.one_of(st.sampled_from(FORMULAS), st.text(st.sampled_from("'=+-@\t\r\n\",;1a.＝"), max_size=8), st.text())


@each_row("text", FORMULAS)
def test_a_text_that_begins_like_a_formula_gets_a_quote(text: str) -> None:
    """A spreadsheet then shows it as text."""
    assert [*csv.reader(io.StringIO(csv_text([[text]]), newline=""))] == [[f"'{text}"]]


@each_row("cell", [-1, -0.5, "-2", "+3.5", "-1e-7", "a=1", "", None, True, "'a"])
def test_numbers_and_plain_texts_stay_as_they_are(cell: object) -> None:
    """A negative number is none that a spreadsheet runs."""
    assert csv_text([[cell]]) == f"{'' if cell is None else cell}\n"


@given(reason=TEXTS, rater=TEXTS.map(str.strip).filter(bool), name=TEXTS.map(str.strip).filter(bool))
def test_a_sheet_of_labels_reads_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, reason: str, rater: str, name: str
) -> None:
    """Escaped cells come back as they were given."""
    try:
        (reason + rater + name).encode()
    except UnicodeEncodeError:
        return
    if "\0" in reason + rater + name:
        return
    sheet = Sheet(tmp_path_factory.mktemp("labels") / "labels.csv", Draw.of([name]))
    answer = Answer(name, rater, "clear", "yes", reason)
    sheet.add([answer])
    assert sheet.read() == [answer]
    assert not any(
        cell[:1] in ("=", "@", "\t", "\r")
        for row in csv.reader(io.StringIO(sheet.path.read_bytes().decode(), newline=""))
        for cell in row
    )


def test_results_in_csv_hold_no_formula_and_read_back(tmp_path: Path) -> None:
    """Keys, groups and reasons are texts of strangers; numbers stay numbers."""
    rubric = Rubric("r").expects("Is polite", id="polite")
    said = json.dumps({"reason": '=HYPERLINK("http://evil")', "verdict": True})
    grades = grade_many([Candidate("Thanks", key="@key", group="-g")], rubric, lambda _: said).collect()
    grades.to_csv(tmp_path / "grades.csv")
    (row,) = csv.DictReader(io.StringIO((tmp_path / "grades.csv").read_text("utf-8"), newline=""))
    assert (row["key"], row["group"], row["score"]) == ("'@key", "'-g", "1.0")
    assert row["reason.polite"].startswith("'=HYPERLINK")
    ((_, back),) = rows_in("candidates", tmp_path / "grades.csv")
    assert (back["key"], back["group"], back["reason.polite"]) == ("@key", "-g", '=HYPERLINK("http://evil")')


def test_a_quote_at_the_start_of_a_text_of_others_stays(tmp_path: Path) -> None:
    """Only tables of ours are written with it."""
    (tmp_path / "a.csv").write_text("output\n'=' is an operator\n")
    assert [row for _, row in rows_in("candidates", tmp_path / "a.csv")] == [{"output": "'=' is an operator"}]


@pytest.mark.long
# -- bounds ----------------------------------------------------------------------------------------------


def test_a_table_of_many_columns_is_read_in_linear_time(tmp_path: Path) -> None:
    """60,000 columns, of which one is graded."""
    names = ["output", *(f"c{n}" for n in range(60_000))]
    (tmp_path / "wide.csv").write_text("\n".join((",".join(names), ",".join(["Thanks"] * len(names)))))
    start = time.process_time()
    (result,) = grade_many(tmp_path / "wide.csv", POLITE, YES).collect()
    assert result.score == 1.0
    assert time.process_time() - start < 10


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 400, "1e400"])
def test_a_number_beyond_a_float_is_refused_where_it_is_read(number: str, tmp_path: Path) -> None:
    """Rows, results and reports; nothing could be computed or drawn of it."""
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"output": "a", "metadata": {number}}}')
    ((_, row),) = rows_in("candidates", path, broken=Broken)
    assert isinstance(row, Broken)
    assert "too large" in row.why
    result = grade("Thanks", POLITE, YES)
    line = Grades([result]).to_jsonl().replace('"score": 1.0', f'"score": {number}')
    path.write_text(line)
    for read in (lambda: Grades.read_jsonl(path, POLITE, Judge(YES)), lambda: as_judged(path)):
        with pytest.raises(RubricError, match="too large"):
            read()
    with pytest.raises(RubricError, match="too large"):
        Report.load(path)


@each_row("number", [10**400, -(10**400), float("inf"), float("nan")])
@each_row("place", ["score", "cost"])
def test_plain_data_with_such_a_number_is_refused_too(number: float, place: str) -> None:
    """A report or a result of it would load, and could not be drawn."""

    def changed(data: Any) -> Any:
        if isinstance(data, dict):
            return {name: number if name == place else changed(value) for name, value in data.items()}
        return [*map(changed, data)] if isinstance(data, list) else data

    grades = grade_many(["Thanks"], POLITE, YES).collect()
    with pytest.raises(RubricError, match=rf"data\..*{place}: expected a finite number"):
        Grades.from_dict(changed(grades.to_dict()), POLITE, Judge(YES))
    report = loads_suite(SUITE.replace("id: c1", "id: c1\n    output: Thanks")).run(Judge(YES))
    with pytest.raises(RubricError, match=rf"{place}: expected a finite number"):
        Report.from_dict(changed(json.loads(report.render("json"))))


@each_row("cut", range(2, 62))
def test_a_line_that_is_cut_off_says_so(cut: int) -> None:
    """Wherever the cut is, also in a pretty file; a fault in the middle is no cut."""
    whole = json.dumps({"a": [True, None, False, -1.5, "x y", {"b": "it's"}], "tail": "some more words"})
    text = whole[:cut]
    if "\\" not in text[-2:]:
        with pytest.raises(ValueError, match="it is cut off before its end"):
            read_json(text)
    with pytest.raises(ValueError, match="Expecting") as caught:
        read_json('{"a" 1}' + text)
    assert "cut off" not in str(caught.value)
