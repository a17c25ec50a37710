"""`rubric grade-many` and `merge`: a file of candidates in, a line a result out."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from junitparser import JUnitXml

from rubric import Grades, Jury, grade_many
from rubric.__main__ import main
from rubric.commands import grade_many as grade_many_command
from rubric.commands.grade_many import _open_results
from rubric.results import Counts
from rubric.store.audit import stats
from tests.browsers import data_of
from tests.places import ROOT
from tests.rows import each_row
from tests.servers import openai_serving

TEXTS = ["We thank you.", "Go away.", "Thanks, and thank you.", "", "Please wait.", "Thank you, thank you."]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a rubric and a file of candidates."""
    (tmp_path / "polite.yaml").write_text(
        "rubric: polite\nthreshold: 0.5\ncriteria:\n  - Says thank you\n  - {id: waits, text: Says please wait}\n"
    )
    (tmp_path / "texts.jsonl").write_text("".join(f"{json.dumps(text)}\n" for text in TEXTS), encoding="utf-8")
    return tmp_path


def graded(folder: Path, *options: object, candidates: str = "texts.jsonl", judge: str = "offline") -> Result:
    """Run the command."""
    files = [folder / "polite.yaml", folder / candidates]
    return CliRunner().invoke(main, ["grade-many", *map(str, (*files, "--judge", judge, *options))])


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the results in a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_file_that_takes_an_extra_is_a_wrong_input_without_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line names the extra in quotes, as every shell takes it; 1 would mean that candidates fail."""
    (folder / "rows.xlsx").write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    result = graded(folder, candidates="rows.xlsx")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "to read Excel files takes openpyxl: pip install 'rubric-grade[xlsx]'\n"


def test_a_folder_or_several_files_are_a_candidate_each(folder: Path) -> None:
    """Results have the names of the files, and `--rerun` and the kept run know the command by its files."""
    (folder / "logs").mkdir()
    for name, text in (("a.txt", "We thank you."), ("b.txt", "Go away.")):
        (folder / "logs" / name).write_text(text)
    whole, several = folder / "whole.jsonl", folder / "several.jsonl"
    assert graded(folder, "--out", whole, candidates="logs").exit_code == 0
    done = graded(folder, folder / "logs" / "b.txt", "--out", several, candidates="logs/a.txt")
    assert (done.exit_code, "2 files: 2 candidates" in done.stderr) == (0, True)
    assert [row["key"] for row in rows_of(several)] == ["a.txt", "b.txt"]
    assert rows_of(several) == rows_of(whole)


def test_candidates_that_do_not_pass_are_named_below_the_summary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten at most, each with why, and the way to see all of it; not for machines, and not under --quiet."""
    (folder / "logs").mkdir()
    for n in range(13):
        (folder / "logs" / f"{n:02}.txt").write_text("We thank you." if n == 1 else "Go away.")
    monkeypatch.setenv("RUBRIC_RUNS", str(folder / "runs"))
    lines = [f"  {n:02}.txt: the score 0.000 is below the threshold 0.5" for n in (0, *range(2, 11))]
    named = "\n".join([*lines, "  and 2 more"])
    assert graded(folder, candidates="logs").stdout.endswith(f"not passed; `rubric view` shows all:\n{named}\n")
    assert graded(folder, "--no-keep", candidates="logs").stdout.endswith(f"not passed:\n{named}\n")
    assert "not passed" not in graded(folder, "--quiet", candidates="logs").stdout
    assert "not passed" not in graded(folder, "--format", "json", candidates="logs").stdout
    assert "not passed" not in graded(folder, candidates="logs/01.txt").stdout


def test_each_candidate_has_a_line_and_the_summary_is_printed(folder: Path) -> None:
    """In the order of the file, with all of its findings; standard output holds nothing else."""
    done = graded(folder, "--out", folder / "out.jsonl", "--format", "json")
    assert done.exit_code == 0
    rows = rows_of(folder / "out.jsonl")
    whole = grade_many(TEXTS, load(folder), "offline").collect()
    assert [(row["index"], row["score"]) for row in rows] == [(r.index, r.outcome.score) for r in whole]
    assert rows[0]["findings"][0]["reason"]
    assert json.loads(done.stdout) == json.loads(json.dumps(whole.summary().to_dict()))
    assert f"graded {len(TEXTS)}" in done.stderr


def load(folder: Path) -> Any:
    """Return the rubric in *folder*."""
    from rubric import load

    return load(folder / "polite.yaml")


def test_a_page_of_all_results_may_be_written(folder: Path) -> None:
    """`--report` writes one HTML page with every result, or what a reporter of suites makes of them, and nothing else."""
    done = graded(folder, "--report", folder / "page.html")
    assert done.exit_code == 0
    page = (folder / "page.html").read_text("utf-8")
    assert len(data_of(page)["rows"]) == len(TEXTS)
    assert "Says please wait" in page
    graded(folder, "--report", folder / "table.csv")
    assert len((folder / "table.csv").read_text("utf-8").splitlines()) > len(TEXTS)
    refused = graded(folder, "--report", folder / "page.pdf")
    assert (refused.exit_code, "names no reporter; end it in one of" in refused.stderr) == (2, True)


def test_the_mark_of_a_comment_is_that_of_the_exit_code(folder: Path) -> None:
    """In Markdown, a gate that passes has no cross, of a suite as of many candidates."""
    for rate, mark in (("0.1", "✅"), ("1", "❌")):
        graded(folder, "--report", folder / "many.md", "--min-pass-rate", rate)
        assert (folder / "many.md").read_text("utf-8").splitlines()[2].startswith(mark)
        cases = [
            {"id": f"c{n}", "output": text, "rubric": [{"check": {"contains": "thank"}}]}
            for n, text in enumerate(["thanks", "no"])
        ]
        (folder / "suite.yaml").write_text(json.dumps({"suite": "s", "cases": cases}))
        args = [
            "grade",
            str(folder / "suite.yaml"),
            "-j",
            "offline",
            "--out",
            str(folder / "s.md"),
            "--min-pass-rate",
            rate,
        ]
        CliRunner().invoke(main, args)
        assert (folder / "s.md").read_text("utf-8").splitlines()[2].startswith(mark)


def test_many_candidates_are_reported_to_ci(folder: Path) -> None:
    """JUnit has a test for each, and the exit code is that of the pass rate; several reports are of one run."""
    done = graded(folder, "--report", folder / "junit.xml", "--report", folder / "r.md", "--min-pass-rate", "1")
    assert (folder / "r.md").read_text("utf-8").startswith("## polite")
    whole = grade_many(TEXTS, load(folder), "offline").collect()
    suite = JUnitXml.fromfile(str(folder / "junit.xml"))
    assert (suite.tests, suite.failures, done.exit_code) == (len(TEXTS), sum(not one.passed for one in whole), 1)
    assert suite.time > 0
    refused = graded(folder, "--out", folder / "junit.xml")
    assert f"--judge offline --report {folder / 'junit.xml'}" in " ".join(refused.stderr.split())


def test_people_get_a_table(folder: Path) -> None:
    """Without a file of results, too."""
    done = graded(folder)
    assert done.exit_code == 0
    assert "6 results" in done.stdout
    assert "waits" in done.stdout


def test_what_cannot_be_graded_makes_it_2(folder: Path) -> None:
    """It has its line all the same, with the reason; the rest is graded."""
    (folder / "rows.csv").write_text("input,output\nHi,Thank you\nHi\n", encoding="utf-8")
    done = graded(folder, "--out", folder / "out.jsonl", candidates="rows.csv")
    assert done.exit_code == 2
    rows = rows_of(folder / "out.jsonl")
    assert [row["verdict"] for row in rows] == ["pass", None]
    assert "candidates[1].output" in rows[1]["failures"][0]["message"]


@pytest.mark.parametrize(("rate", "code"), [(0.3, 0), (0.9, 1)])
def test_a_pass_rate_may_be_demanded(folder: Path, rate: float, code: int) -> None:
    """Without a demand, grades that do not pass are results like others."""
    done = graded(folder, "--min-pass-rate", rate)
    assert (done.exit_code, f"fewer than --min-pass-rate {rate}" in done.stderr) == (code, code == 1)


def test_the_threshold_may_be_another(folder: Path) -> None:
    """As for `grade`."""
    assert json.loads(graded(folder, "--threshold", 0, "--format", "json").stdout)["failed"] == 1  # the empty one


def test_a_second_run_pays_nothing_and_writes_the_same(folder: Path) -> None:
    """Every reply comes from the store; the file is the same to the byte."""
    store, out = folder / "replies.db", folder / "out.jsonl"
    assert graded(folder, "--store", store, "--out", out).exit_code == 0
    first = out.read_bytes()
    done = graded(folder, "--store", store, "--out", out, "--format", "json")
    assert json.loads(done.stdout)["usage"]["calls"] == 0
    assert out.read_bytes() == first


def test_a_limit_grades_the_first_candidates_alone(folder: Path) -> None:
    """They are the first lines of the whole; with shards, or with those of an earlier run, it would be unclear."""
    assert graded(folder, "--out", folder / "all.jsonl").exit_code == 0
    assert graded(folder, "--limit", 2, "--out", folder / "two.jsonl").exit_code == 0
    assert rows_of(folder / "two.jsonl")[:2] == rows_of(folder / "all.jsonl")[:2]
    assert [row["index"] for row in rows_of(folder / "two.jsonl") if "index" in row] == [0, 1]
    for other in (("--shard", "1/2"), ("--rerun", "failed")):
        assert "--limit has no effect with" in graded(folder, "--limit", 2, *other).stderr


def test_a_text_alone_is_a_file_of_several(folder: Path) -> None:
    """Its result may be written, and reported, as those of many are."""
    (folder / "one.txt").write_text("Thank you.")
    assert graded(folder, "--report", folder / "one.xml", candidates="one.txt").exit_code == 0
    assert "one.txt" in (folder / "one.xml").read_text()


def test_a_column_of_ids_is_told_where_none_is_named(folder: Path) -> None:
    """Labels by key would match nothing; where it is named, nothing is said."""
    (folder / "ids.jsonl").write_text('{"case_id": "a", "output": "Thank you."}\n')
    line = "results have no keys; those in a column are named, as --column key=case_id"
    assert line in graded(folder, candidates="ids.jsonl").stderr
    assert "no keys" not in graded(folder, "--column", "key=case_id", candidates="ids.jsonl").stderr


def test_merged_shards_are_the_whole(folder: Path) -> None:
    """Byte for byte what one run writes."""
    assert graded(folder, "--out", folder / "whole.jsonl").exit_code == 0
    parts = [folder / f"part-{number}.jsonl" for number in (1, 2, 3)]
    for number, part in enumerate(parts, 1):
        assert graded(folder, "--shard", f"{number}/3", "--store", f"{part}.db", "--out", part).exit_code == 0
    done = CliRunner().invoke(main, ["merge", *map(str, parts), "--out", str(folder / "merged.jsonl")])
    assert done.output == f"{folder / 'merged.jsonl'}: 6 results\n"
    assert (folder / "merged.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()


def test_a_shard_without_its_last_lines_is_not_taken_for_whole(folder: Path) -> None:
    """Another rubric is told, too."""
    parts = [folder / f"part-{number}.jsonl" for number in (1, 2, 3)]
    for number, part in enumerate(parts, 1):
        graded(folder, "--shard", f"{number}/3", "--out", part)
    *lines, _ = parts[2].read_text(encoding="utf-8").splitlines(keepends=True)
    parts[2].write_text("".join(lines), encoding="utf-8")
    merge = ["merge", *map(str, parts), "--out", str(folder / "merged.jsonl")]
    done = CliRunner().invoke(main, merge)
    assert (done.exit_code, "part-3.jsonl" in done.stderr) == (2, True)
    assert "the file ends without an end mark" in done.stderr
    parts[2].unlink()
    graded(folder, "--shard", "3/3", "--out", parts[2], "--threshold", 0)
    done = CliRunner().invoke(main, merge)
    assert "part-3.jsonl" in done.stderr
    assert "graded with another rubric than" in done.stderr


def test_parts_that_are_missing_are_told(folder: Path) -> None:
    """With the place, and the exit code 2; a slip of the pen destroys nothing."""
    assert graded(folder, "--out", folder / "whole.jsonl").exit_code == 0
    lines = (folder / "whole.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "part.jsonl").write_text("".join(lines[2:]), encoding="utf-8")
    done = CliRunner().invoke(main, ["merge", str(folder / "part.jsonl"), "--out", str(folder / "merged.jsonl")])
    assert done.exit_code == 2
    assert "part.jsonl:1:1: before this, candidates 0 to 1 should come" in done.stderr
    own = CliRunner().invoke(main, ["merge", str(folder / "part.jsonl"), "--out", str(folder / "part.jsonl")])
    assert own.exit_code == 2
    assert "this file is read; name another one" in own.stderr
    none = CliRunner().invoke(main, ["merge", str(folder / "no.jsonl"), "--out", str(folder / "merged.jsonl")])
    assert none.exit_code == 2
    assert "there is no such file" in none.stderr


def test_a_budget_ends_it_and_another_run_goes_on(folder: Path) -> None:
    """What was refused is ungraded; what was paid for is not paid for again."""
    store = folder / "replies.db"
    done = graded(folder, "--max-calls", 3, "--store", store, "--format", "json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["usage"]["calls"] == 3
    assert "budget" in json.loads(done.stdout)["failures"]
    again = graded(folder, "--store", store, "--format", "json")
    assert again.exit_code == 0
    assert json.loads(again.stdout)["usage"]["calls"] == 2 * 5 - 3  # the empty text is not asked about


def test_a_cost_is_held_where_the_price_is_known(folder: Path) -> None:
    """Where it is not, the refusal speaks in terms of the command line."""
    assert graded(folder, "--max-cost", 1).exit_code == 0
    refused = graded(folder, "--max-cost", 1, judge="nobody/knows-this")
    assert refused.exit_code == 2
    assert "give --max-calls N or give the price: --price MODEL=IN,OUT or leave out the cost" in " ".join(
        refused.stderr.split()
    )


def test_a_replay_sends_nothing(folder: Path) -> None:
    """It answers from a store; what was not recorded is ungraded, but for an empty text, which no judge reads."""
    store = folder / "kept.db"
    assert graded(folder, "--replay").exit_code == 2
    assert graded(folder, "--limit", 1, "--store", store).exit_code == 0
    assert graded(folder, "--limit", 1, "--store", store, "--replay").exit_code == 0
    other = graded(folder, "--store", store, "--replay", "--format", "json")
    said = json.loads(other.stdout)
    assert (other.exit_code, said["ungraded"], said["usage"]["calls"]) == (2, 4, 0)


def test_calls_in_doubt_are_held_or_sent_again(folder: Path) -> None:
    """As --in-doubt says."""
    store = folder / "replies.db"
    assert graded(folder, "--store", store).exit_code == 0
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE calls SET state = 'in_doubt', result = NULL WHERE id = 1")
        connection.commit()
    held = graded(folder, "--store", store, "--in-doubt", "hold", "--format", "json")
    assert (held.exit_code, json.loads(held.stdout)["failures"]) == (2, {"in_doubt": 1})
    assert graded(folder, "--store", store, "--in-doubt", "retry").exit_code == 0


def test_limits_let_through_what_they_allow(folder: Path) -> None:
    """Requests and tokens a minute, and so many at once."""
    assert graded(folder, "--rpm", 100, "--tpm", 10**6, "--concurrency", 2).exit_code == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--out", "polite.yaml"], "this file is read"),
        (["--out", "texts.jsonl"], "this file is read"),
        (["--out", "old.db", "--store", "old.db"], "this file is read"),
        (["--out", "."], "is a folder"),
        (["--out", "old.jsonl"], "would be paid for again"),
        (["--in-doubt", "hold"], "name one with --store FILE"),
        (["--shard", "0/3"], "from 1/16 to 16/16"),
        (["--max-cost", "-1"], "--max-cost"),
        (["--concurrency", "0"], "--concurrency"),
        (["--min-pass-rate", "2"], "--min-pass-rate"),
        (["--store", "nowhere/replies.db"], "there is no folder nowhere; write mkdir -p nowhere && rubric grade-many"),
        (["--store", "old.jsonl"], "not a reply store"),
    ],
)
def test_what_would_do_harm_or_nothing_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], why: str
) -> None:
    """Before anything is graded, and no file is touched."""
    monkeypatch.chdir(folder)
    for name in ("old.db", "old.jsonl"):
        Path(name).write_text("old " * 500, encoding="utf-8")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = graded(Path(), *options)
    assert done.exit_code == 2
    assert why in " ".join(done.stderr.split())
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_columns_are_named_on_the_command_line(folder: Path) -> None:
    """What is not used is refused before anything is graded, with the options that work; so it is in shards."""
    rows = [{"The answer": text, "answer": text, "question": "Why?"} for text in TEXTS]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    done = graded(folder, candidates="rows.jsonl")
    assert done.exit_code == 2
    assert "such as --column output=answer --column input=question" in " ".join(done.stderr.split())
    named = ["--column", "output=The answer", "--column", "question=", "--column", "answer="]
    for options in (named, [*named, "--shard", "1/1"]):
        done = graded(folder, "--out", folder / "out.jsonl", *options, "--format", "json", candidates="rows.jsonl")
        (folder / "out.jsonl").unlink()
        assert json.loads(done.stdout)["results"] == len(TEXTS)
        assert json.loads(done.stdout)["ungraded"] == 0


def test_a_slot_in_a_check_is_refused_where_it_names_a_column(folder: Path) -> None:
    """Its braces would be searched for in each row; a pattern that escapes them is no slot."""
    row = {"output": "Friday", "ideal": "Friday"}
    (folder / "rows.jsonl").write_text(json.dumps(row), encoding="utf-8")
    for text, code in (("'{{ ideal }}'", 2), (r"'\{\{ideal\}\}'", 0), ("'{{ other }}'", 0)):
        (folder / "polite.yaml").write_text(f"criteria: [{{check: {{matches: {text}}}}}]", encoding="utf-8")
        done = graded(folder, "--column", "reference=ideal", candidates="rows.jsonl")
        assert done.exit_code == code, done.stderr
        assert ("shows no column: one rubric grades all rows" in " ".join(done.stderr.split())) is (code == 2)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ("answer", "expected FIELD=COLUMN"),
        ("=answer", "expected FIELD=COLUMN"),
        ("outptu=answer", "--column outptu: is not a field of a candidate"),
    ],
)
def test_columns_that_cannot_be_are_refused(folder: Path, column: str, why: str) -> None:
    """With the form that is expected, or the field that comes near."""
    done = graded(folder, "--column", column)
    assert done.exit_code == 2
    assert why in " ".join(done.stderr.split())


def test_a_column_is_named_once(folder: Path) -> None:
    """The second of two would win in silence."""
    done = graded(folder, "--column", "output=a", "--column", "output=b")
    assert (done.exit_code, "output is given twice" in done.stderr) == (2, True)


def test_the_reasons_stand_under_the_printed_summary(folder: Path) -> None:
    """So whoever ran it knows why rows are ungraded."""
    (folder / "rows.jsonl").write_text('{"output": 1}\n{"output": 2}\n', encoding="utf-8")
    assert "2 ungraded: 2 × bad_request" in " ".join(graded(folder, candidates="rows.jsonl").stdout.split())


@pytest.mark.parametrize("bad", [20, 5])
def test_rows_that_are_no_candidates_are_told_before_the_run(folder: Path, bad: int) -> None:
    """So nobody waits for a run of them; calls are projected from those that are."""
    rows = [{"answer": ["We thank you."]}] * bad + [{"answer": "We thank you."}] * (40 - bad)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    told = graded(folder, "--column", "output=answer", candidates="rows.jsonl").stderr.splitlines()
    why = "candidates[0].output: expected text, got ['We thank you.']"
    assert f"rows.jsonl: {bad} of the first 20 are no candidates: {why}" in told[0]
    assert ("rows.jsonl: 40 candidates, about 60 calls" in told[1]) == (bad == 5)
    assert not any("results is a grade" in line for line in told)


STEPS = ["We thank you.", "Please wait."]


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize(("row", "column", "name"), [
    ({"answer": STEPS}, "answer", "texts.jsonl"),
    ({"answer": STEPS}, "answer", "all of it.json"),
    ({"model's answer": STEPS}, "model's answer", "rows.jsonl"),
    ({"output": "We thank you. Please wait.", "reference": STEPS}, "output", "rows.jsonl"),
    ({"output": [{"step": 1, "says": "We thank you."}, {"says": "Please wait."}]}, "output", "rows.jsonl"),
    (STEPS, "", "rows.jsonl"),
])  # fmt: skip
def test_a_list_in_a_file_is_told_with_the_line_that_makes_a_text_of_it(
    row: Any, column: str, name: str, tmp_path: Path
) -> None:
    """The line is for a terminal, names the file, and leaves rows with a text as they are."""
    (tmp_path / "polite.yaml").write_text("criteria: [Says thank you, Says please wait]\n")
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "We thank you. Please wait."}]
    rows = [row, *({column: each} if column else each for each in ("Go away.", chat))]
    lines = [*map(json.dumps, rows)]
    (tmp_path / name).write_text("\n".join(lines) if name.endswith("l") else f"[{', '.join(lines)}]")
    named = ["--column", f"output={column}"] if column else []
    told = graded(tmp_path, *named, candidates=name).stderr.splitlines()[0]
    assert f"1 of the first 3 are no candidates: candidates[0]{'.' * bool(column)}" in told
    subprocess.run(["/bin/sh", "-c", told.rpartition("in a file, run ")[2]], cwd=tmp_path, check=True)
    done = graded(tmp_path, *named, "--out", tmp_path / "out.jsonl", candidates="rows_texts.jsonl")
    assert (done.exit_code, [each["passed"] for each in rows_of(tmp_path / "out.jsonl")]) == (0, [True, False, True])


def test_results_of_other_candidates_are_not_written_over(folder: Path) -> None:
    """With a store a run replaces its own results, and none whose first has a key of no candidate."""
    rows = {"mine": [{"output": "Thank you.", "id": "a"}], "other": [{"output": "No.", "id": "b"}]}
    for name, some in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in some))
    options = ("--store", folder / "s.db", "--out", folder / "out.jsonl", "--column", "key=id")
    codes = [graded(folder, *options, candidates="mine.jsonl").exit_code for _ in range(2)]
    before = (folder / "out.jsonl").read_bytes()
    refused = graded(folder, *options, candidates="other.jsonl")
    assert (codes, refused.exit_code) == ([0, 0], 2)
    assert "out.jsonl has results of other candidates, such as 'a'; name another file, or delete it" in refused.stderr
    assert (folder / "out.jsonl").read_bytes() == before


def test_a_file_without_candidates_is_told(folder: Path) -> None:
    """Unless it is a shard's, which may be empty."""
    (folder / "none.jsonl").write_text("\n", encoding="utf-8")
    done = graded(folder, candidates="none.jsonl")
    assert done.exit_code == 2
    assert "there is no candidate in it" in done.stderr
    assert graded(folder, "--shard", "1/2", "--min-pass-rate", 1, candidates="none.jsonl").exit_code == 0
    assert graded(folder, candidates="no.jsonl").exit_code == 2


def test_a_summary_needs_no_results_kept() -> None:
    """It is the same as that of all results."""
    rows = [*TEXTS, None, "Thanks"] * 3
    results = [*grade_many(rows, "Says thank you", Jury("offline", 3))]
    counts = Counts()
    for result in results:
        counts.add(result)
    assert counts.summary() == Grades(results).summary()
    assert len(counts._known) < len(counts)


# -- runs that are stopped -------------------------------------------------------------------------------

MANY = 300


def started(folder: Path, *options: str) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    command = [sys.executable, "-m", "rubric", "grade-many", str(folder / "polite.yaml"), str(folder / "many.jsonl")]
    files = ["--store", str(folder / "replies.db"), "--out", str(folder / "out.jsonl"), "--judge", "offline"]
    return subprocess.Popen([*command, *files, *options], cwd=ROOT, stderr=subprocess.PIPE, stdout=-1, text=True)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_goes_on_where_it_was(folder: Path, stop: signal.Signals) -> None:
    """What is in the store is not paid for again, and the file is that of a run that was not stopped, to the byte."""
    lines = (f"{json.dumps(f'Text number {number}: thank you')}\n" for number in range(MANY))
    (folder / "many.jsonl").write_text("".join(lines), encoding="utf-8")
    child = started(folder, "--concurrency", "1", "--max-cost", "1")
    wait_for(lambda: (folder / "out.jsonl").exists() and len((folder / "out.jsonl").read_bytes()) > 10_000)
    child.send_signal(stop)
    _, told = child.communicate(timeout=30)
    if stop == signal.SIGINT:
        assert child.returncode == 130
        kept = stats(folder / "replies.db").states["done"]
        assert re.search(rf"\d+ candidates were finished; {kept} calls, .*; run the same command again to go on", told)
        assert "is not paid for again, and --max-cost counts anew" in told
    finished = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    kept = stats(folder / "replies.db").states["done"]
    assert 0 < len(finished) < MANY
    done = graded(folder, *kept_in(folder), candidates="many.jsonl")
    assert json.loads(done.stdout)["usage"]["calls"] == 2 * MANY - kept
    stopped = (folder / "out.jsonl").read_bytes()
    assert graded(folder, "--out", folder / "whole.jsonl", candidates="many.jsonl").exit_code == 0
    assert stopped == (folder / "whole.jsonl").read_bytes()


def test_a_judge_whose_replies_are_unreadable_is_told_early_and_when_the_run_is_stopped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said of the next run holds: the last request of each ungraded candidate is sent again."""
    (folder / "rows.jsonl").write_text("".join(f'"Text {n}"\n' for n in range(40)))
    with openai_serving(lambda _: "It is polite.") as server:
        for turn in (1, 2):
            monkeypatch.setattr(grade_many_command, "line_of", stopping_after(20))
            sent = len(server.requests)
            done = graded(folder, *kept_in(folder), candidates="rows.jsonl", judge="openai/tiny")
            assert done.exit_code == 130
            assert "rows.jsonl: none of 20 results is a grade: unreadable: it holds no JSON" in done.stderr
            assert "Ctrl-C ends the run, and --limit 20 grades no more than these" in done.stderr
            told = " ".join(done.stderr.split())
            found = re.search(
                r"(\d+) ungraded: \1 × unreadable: it holds no JSON.*interrupted: \1 candidates were", told
            )
            assert found is not None
            assert int(found[1]) >= 20
            said = re.search(r"candidates were finished; (\d+) calls?, [^;]*(?:; (\d+) request)?", told)
            assert said is not None
            assert sum(map(int, said.groups("0"))) >= len(server.requests) - sent
            assert "replies.db has is not paid for again, but the ungraded are asked again" in done.stderr
            assert len(server.requests) - sent >= 80 / turn  # two criteria, each with a complaint


def test_a_suite_whose_judge_cannot_be_read_is_told_early(folder: Path) -> None:
    """In the words of many candidates, once; a suite with a grade among its first is not told of."""
    rows = [{"id": f"c{n}", "output": f"Text {n}", "rubric": ["Is polite"]} for n in range(25)]
    (folder / "suite.yaml").write_text(json.dumps({"suite": "s", "cases": rows}))
    with openai_serving(lambda _: "It is polite.") as server:
        done = CliRunner().invoke(main, ["grade", str(folder / "suite.yaml"), "--judge", "openai/tiny"])
        assert done.stderr.count("suite.yaml: none of 20 results is a grade: ") == 1
        assert "it holds no JSON" in done.stderr
        assert "Ctrl-C ends the run with a report, and --fail-fast would have ended it" in " ".join(done.stderr.split())
        sent = len(server.requests)
        fast = ["grade", str(folder / "suite.yaml"), "--judge", "openai/tiny", "--fail-fast", "--concurrency", "1"]
        CliRunner().invoke(main, fast)
        assert len(server.requests) - sent == 2  # a case, and its re-ask
    assert "is a grade" not in CliRunner().invoke(main, ["grade", str(folder / "suite.yaml"), "-j", "offline"]).stderr


def test_texts_that_no_judge_sees_are_told_in_options(folder: Path) -> None:
    """Those that the command has, so that the line can be typed."""
    rows = [{"output": "We thank you.", "notes": "This is said of it."}] * 3
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    told = " ".join(graded(folder, candidates="rows.jsonl").stdout.split())
    assert "name its field, --column input=notes, or pass it over: --column notes=" in told


@each_row(
    ("content", "text"),
    [
        ([{"type": "text", "text": "We thank"}, {"type": "text", "text": " you."}], "We thank you."),
        ([{"type": "output_text", "text": "We thank you.", "annotations": []}], "We thank you."),
        ([{"type": "text", "text": "We"}, {"type": "step"}], None),
    ],
)
def test_the_parts_of_a_content_are_the_text_of_an_answer(content: Any, text: str | None) -> None:
    """OpenAI has answers in them; other lists are refused."""
    (result,) = grade_many([{"output": content}], "Says thank", "offline", keep=True)
    assert (None if result.candidate is None else result.candidate.output) == text


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ({"input": "Why?", "output": "We thank you."}, True),
        ({"output": "We thank you."}, True),
        ({"question": "Why?", "answer": "We thank you."}, True),
        ([{"question": "Why?", "answer": "We thank you."}], True),
        ({"answer": "We thank you.", "sources": ["a"]}, False),
        ({"name": "Anna", "total": 3}, False),
        (["We thank you."], False),
    ],
)
def test_a_row_is_never_graded_as_a_text(data: Any, rows: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both lines are printed, and work: that for rows, and that for JSON which is an answer itself."""
    monkeypatch.chdir(folder)
    Path("a.json").write_text(json.dumps(data))
    done = CliRunner().invoke(main, ["grade", "polite.yaml", "a.json", "-j", "offline"])
    assert (done.exit_code == 2) == rows
    if rows:
        assert "a.json holds rows; as one text, give it at standard input: - < a.json" in done.stderr
        line = done.stderr.rpartition("; write rubric ")[2].partition("; see ")[0]
        assert CliRunner().invoke(main, shlex.split(line)).exit_code == 0
    piped = CliRunner().invoke(main, ["grade", "polite.yaml", "-", "-j", "offline"], input=json.dumps(data))
    assert piped.exit_code < 2


def stopping_after(most: int) -> Callable[[object], bytes]:
    """Return what writes the line of a result, and is Ctrl-C after *most* of them."""
    numbers = count()

    def line_of(_: object) -> bytes:
        if next(numbers) % (most + 1) == most:
            raise KeyboardInterrupt
        return b""

    return line_of


def kept_in(folder: Path) -> list[object]:
    """Return the options of a run that goes on."""
    return ["--store", folder / "replies.db", "--out", folder / "out.jsonl", "--format", "json"]


def wait_for(condition: Callable[[], bool]) -> None:
    """Return when *condition* holds."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("command", ["grade", "grade-many", "plan"])
def test_files_in_the_wrong_order_are_told_in_the_right_one(folder: Path, command: str) -> None:
    """The line that is printed has the rubric first."""
    text, rubric = folder / "texts.csv", folder / "polite.yaml"
    text.write_text("output\nThank you.\n")
    said = CliRunner().invoke(main, [command, str(text), str(rubric), "--judge", "offline"])
    assert said.exit_code == 2
    assert said.stderr.startswith("the rubric comes first; ")
    assert f"{rubric} {text} --judge offline; see" in said.stderr


@pytest.mark.parametrize(("words", "said"), [
    (("grade", "polite.yaml", "texts.csv", "--max-cost", "1"), "; write rubric grade-many polite.yaml texts.csv --max-cost 1"),
    (("plan", "polite.yaml", "texts.csv", "--text-column", "output"), "? Write rubric plan polite.yaml texts.csv --column"),
    (("compare", "b.jsonl", "--previous", "a.jsonl"), "did you mean '--baseline'? Write rubric compare b.jsonl --baseline a.jsonl"),
    (("validate", "--file", "polite.yaml"), "without an option; write rubric validate polite.yaml"),
    (("init", "--name", "mine"), "into a folder; write rubric init mine"),
    (("label", "polite.yaml", "--annotator", "ann"), "a file of labels, such as rubric label answers.jsonl polite.yaml --out ann.csv"),
    (("convert", "polite.yaml", "--to", "r.yaml"), "has an option; write rubric convert polite.yaml --out r.yaml"),
    (("diff", "results.jsonl", "results.jsonl"), "does not explain; write rubric compare results.jsonl"),
])  # fmt: skip
def test_what_other_tools_have_is_answered_with_ours(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    """The line that is printed has all that was typed."""
    monkeypatch.chdir(folder)
    (folder / "texts.csv").write_text("output\nThank you.\n")
    for name in ("results.jsonl", "a.jsonl", "b.jsonl"):
        (folder / name).write_text('{"findings": []}\n')
    assert said in CliRunner().invoke(main, [*words]).stderr


def test_a_reply_given_as_an_option_is_told_its_place(folder: Path) -> None:
    """`--output` means the reply if there is such a file, and else the file of results."""
    (reply := folder / "reply.txt").write_text("Thank you.")
    said = CliRunner().invoke(main, ["grade", str(folder / "polite.yaml"), "--output", str(reply)])
    assert f"what is graded comes second; write rubric grade {folder / 'polite.yaml'} {reply}" in said.stderr
    said = CliRunner().invoke(main, ["grade", "suite.yaml", "--output", "report.json"])
    assert "Write rubric grade suite.yaml --out report.json" in said.stderr


def test_an_unknown_option_is_answered_for_the_command_that_was_typed() -> None:
    """`agree` takes no rubric, so no line of another command is proposed."""
    said = CliRunner().invoke(main, ["agree", "results.jsonl", "labels.csv", "--rubric", "rubric.yaml"])
    assert "rubric grade" not in said.stderr
    said = CliRunner().invoke(main, ["plan", "reply.txt", "--rubric", "rubric.yaml"])
    assert "the rubric or suite comes first; write rubric plan rubric.yaml reply.txt" in said.stderr


def test_results_are_not_written_into_a_file_called_minus(tmp_path: Path) -> None:
    """`-` is standard input elsewhere; results go to a file."""
    rubric, rows = tmp_path / "r.yaml", tmp_path / "rows.jsonl"
    rubric.write_text("rubric: r\ncriteria: [Is polite]\n")
    rows.write_text('"Hello"\n')
    done = CliRunner().invoke(main, ["grade-many", str(rubric), str(rows), "-j", "offline", "--out", "-"])
    assert done.exit_code == 2
    assert "name a .jsonl" in done.stderr


@pytest.mark.parametrize(
    ("share", "code", "said"),
    [("99%", 1, "fewer than --min-pass-rate 0.99"), ("99/100", 1, "fewer than --min-pass-rate 0.99"), ("0%", 0, ""),
     ("80", 2, "for 80 % write 0.8"), ("150", 2, "not in the range"), ("most", 2, "not a valid float")],
)  # fmt: skip
def test_a_share_may_be_written_in_per_cent(folder: Path, share: str, code: int, said: str) -> None:
    """A number above 1 could be meant as one or by mistake, so its cure is told."""
    done = graded(folder, "--min-pass-rate", share)
    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr


def test_junit_is_asked_for_by_the_ending_of_the_report(folder: Path) -> None:
    """An option that other tools have is answered with ours."""
    assert "--judge offline --report x.xml; see" in graded(folder, "--junit", "x.xml").stderr


def test_tables_of_a_folder_are_one_data_set(folder: Path) -> None:
    """For the commands that read candidates: by the folder, by a pattern, and by each file."""
    (rubric, shards) = (folder / "thanks.yaml", folder / "shards")
    rubric.write_text("rubric: thanks\ncriteria: [Says thank you]\n")
    shards.mkdir()
    for n in range(2):
        (shards / f"{n}.csv").write_text(f"id,answer\n{n}a,Thank you\n{n}b,No\n")
    named = ["--column", "key=id", "--column", "output=answer"]
    for given in ([shards], [shards / "0.csv", shards / "1.csv"]):
        out = folder / f"{len(given)}.jsonl"
        command = ["grade-many", rubric, *given, "-j", "offline", "--no-keep", "--out", out, *named]
        assert CliRunner().invoke(main, [*map(str, command)]).exit_code == 0
        assert [json.loads(line)["key"] for line in out.read_text().splitlines()] == ["0a", "0b", "1a", "1b"]
    for data in (shards, shards / "*.csv"):
        planned = CliRunner().invoke(main, ["plan", str(rubric), str(data), "-j", "offline", *named])
        assert "4 calls" in planned.stdout, planned.stderr
        page = ["label", str(data), str(rubric), "--html", str(folder / "p.html"), *named]
        assert "4 candidates to label" in CliRunner().invoke(main, page).output


def test_figures_are_told_of_each_group(folder: Path) -> None:
    """Of a column, which is kept as a variable, and of a verdict; with --format json, beside it."""
    rows = [{"output": "Thank you" if n % 2 else "No", "topic": "even" if n % 2 == 0 else "odd"} for n in range(6)]
    (folder / "topics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "thanks.yaml").write_text("rubric: thanks\ncriteria: [Says thank you]\n")
    command = ["grade-many", str(folder / "thanks.yaml"), str(folder / "topics.jsonl"), "-j", "offline", "--quiet"]
    found = CliRunner().invoke(main, [*command, "--by", "topic"])
    assert found.exit_code == 0
    assert [line.partition(";")[0] for line in found.stdout.splitlines()[1:]] == [
        "topic even: 3 results: 0 of 3 grades pass",
        "topic odd: 3 results: 3 of 3 grades pass",
    ]
    assert CliRunner().invoke(main, [*command, "--by", "topic", "--column", "variables=topic"]).stdout == found.stdout
    assert "verdict pass: 3 results" in CliRunner().invoke(main, [*command, "--by", "verdict"]).stdout
    as_json = CliRunner().invoke(main, [*command, "--by", "topic", "--format", "json"])
    assert json.loads(as_json.stdout)["results"] == 6
    assert "topic odd: 3 results" in as_json.stderr
    refused = CliRunner().invoke(main, [*command, "--by", "topik"])
    assert (refused.exit_code, "did you mean 'topic'?" in refused.stderr) == (2, True)


def test_figures_of_a_suite_are_told_of_each_tag(folder: Path) -> None:
    """And of all; refused where no case has one."""
    case = "{id: a, tags: [smoke], output: It says thank you, rubric: Says thank you}"
    (folder / "tags.yaml").write_text(f"suite: s\ncases: [{case}]\n")
    command = ["grade", str(folder / "tags.yaml"), "-j", "offline", "--quiet", "--no-keep", "--by"]
    found = CliRunner().invoke(main, [*command, "tag"]).stdout.splitlines()
    assert [line.partition(" grades")[0] for line in found[1:]] == [
        "all: 1 result: 1 of 1",
        "tag smoke: 1 result: 1 of 1",
    ]
    summary = json.loads(CliRunner().invoke(main, [*command, "tag", "--format", "json"]).stdout)["summary"]
    assert (summary["mean"], summary["pass_rate"], summary["mean_interval"]) == (1.0, 1.0, None)
    assert "--by: expected tag, group" in CliRunner().invoke(main, [*command, "nothing"]).stderr


def test_an_axis_of_a_matrix_groups_and_an_unknown_one_is_refused_before_the_first_call(folder: Path) -> None:
    """What is paid is then grouped: the name is looked for in the cases."""
    rows = "matrix: [{cell: {prompt: short}, input: a}, {cell: {prompt: long}, input: b}]"
    (folder / "cells.yaml").write_text(f"suite: s\n{rows}\ncases: [{{id: a, output: Thanks, rubric: Thanks}}]\n")
    command = ["grade", str(folder / "cells.yaml"), "-j", "offline", "--no-keep", "--by"]
    found = CliRunner().invoke(main, [*command, "prompt", "--quiet"]).stdout
    assert "prompt short: 1 result" in found
    assert "prompt long: 1 result" in found
    refused = CliRunner().invoke(main, [*command, "promt"])
    assert "did you mean 'prompt'?" in refused.stderr
    assert refused.stdout == ""
    assert "2 cases" not in refused.stderr  # the line before the first call


def test_a_disk_that_is_full_for_a_while_is_told_once_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines stay in the buffer and are flushed when there is room again; while there is none, closing raises."""
    raw = _Full(tmp_path / "out.jsonl")
    monkeypatch.setattr(Path, "open", lambda *_: io.BufferedWriter(raw))
    file = _open_results(tmp_path / "out.jsonl")
    monkeypatch.undo()
    file.write(b"a line\n")
    _wait(lambda: raw.refused > 2)
    raw.is_full = False
    _wait(lambda: raw.read() == b"a line\n")
    said = capsys.readouterr().err
    assert said.count("warning") == 1
    assert f"--out {tmp_path / 'out.jsonl'}: No space left on device; its last lines wait" in " ".join(said.split())
    raw.is_full = True
    file.write(b"another\n")
    with pytest.raises(OSError, match="No space left"):
        file.close()


class _Full(io.FileIO):
    """A file on a disk without room."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w")
        self.is_full, self.refused = True, 0

    def write(self, data: Any) -> int:
        if self.is_full:
            self.refused += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data) or 0

    def read(self, *_: object) -> bytes:
        return Path(str(self.name)).read_bytes()


def _wait(until: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not until() and time.monotonic() < end:
        time.sleep(0.02)
