"""Rows of pairs: which columns are the two sides, which hold what both share, and what is refused before it is paid."""

from __future__ import annotations

import ast
import csv
import io
import json
import shlex
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pytest

from rubric import Contains, DefinitionError, Judge, Jury, Rubric, When, prefer_many
from rubric.testing import ScriptedModel
from rubric.trust.pairwise.preference import pairs_of, plan_pairs
from tests.command_line import run
from tests.rows import each_row

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ["It is on its way.", "Thank you, it is on its way.", "We are sorry, it is late.", "It will come on Friday."]
ASKED = "Where is my order?"
SHORT = {"ticket": "T0", "topic": "refund", "id": "7"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for all rows of a table."""
    return tmp_path_factory.mktemp("pairs")


def rows_with(names: str, count: int = 3) -> list[dict[str, Any]]:
    """Return rows with these columns: short values under the names of `SHORT`, sentences under all others."""
    columns = names.split()
    return [
        {name: SHORT.get(name, f"{TEXTS[(n + place) % 4]} ({n})") for place, name in enumerate(columns)}
        for n in range(count)
    ]


def written(rows: list[dict[str, Any]], folder: Path) -> Path:
    file = io.StringIO()
    writer = csv.DictWriter(file, [*rows[0]])
    writer.writeheader()
    writer.writerows(rows)
    path = folder / "pairs.csv"
    path.write_text(file.getvalue())
    (folder / "rubric.yaml").write_text("criteria: [Says thank you]\n")
    return path


def refusal_of(rows: Any, columns: Any = None) -> str:
    """Return why *rows* are refused, before anything is asked."""
    model = ScriptedModel(lambda _: "tie")
    with pytest.raises(DefinitionError) as refused:
        prefer_many(rows, "Says thank you", model, columns=columns)
    assert model.asks == []
    return str(refused.value)


@each_row(
    ("names", "given", "cure"),
    [
        ("ticket customer_question reply_old reply_new topic", {}, {"a": "reply_old", "b": "reply_new"}),
        ("reply_old ticket reply_new", {"a": "reply_old", "b": "nosuch"}, {"a": "reply_old", "b": "reply_new"}),
        ("reply_old reply_new", {"b": "reply_old"}, {"a": "reply_new", "b": "reply_old"}),
        ("id answer_b answer_a", {}, {"a": "answer_b", "b": "answer_a"}),
        ("reply_old reply_new", {"a": "ticket"}, {"a": "reply_old", "b": "reply_new"}),
        (
            "gpt4_output claude_output reference_output",
            {},
            {"a": "gpt4_output", "b": "claude_output", "reference": "reference_output"},
        ),
        ("response1 response2 customer_text", {}, {"a": "response1", "b": "response2"}),
        ("replyOld replyNew", {}, {"a": "replyOld", "b": "replyNew"}),
        ("customer_mail customer_reply_x customer_reply_y", {}, {"a": "customer_reply_x", "b": "customer_reply_y"}),
        ("old new topic", {}, {"a": "old", "b": "new"}),
        ("question prompt_v1 prompt_v2", {}, {"a": "prompt_v1", "b": "prompt_v2", "input": "question"}),
        ("prompt chosen rejected", {}, {"a": "chosen", "b": "rejected", "input": "prompt"}),
        ("question_text answer_text reply_text", {}, {"a": "answer_text", "b": "reply_text"}),
        ("question a_reply b_reply", {}, {"a": "a_reply", "b": "b_reply", "input": "question"}),
        ("topic reply_old reply_new", {"group": "topic"}, {"a": "reply_old", "b": "reply_new", "group": "topic"}),
    ],
)
def test_both_sides_are_the_two_columns_that_resemble_each_other(
    names: str, given: Any, cure: dict[str, str], folder: Path
) -> None:
    """The line that is printed has the pair, in Python and at a terminal, and runs."""
    rows = rows_with(names)
    said = refusal_of(rows, given)
    shown = said[said.index("columns={") + len("columns=") : said.index("}") + 1]
    assert ast.literal_eval(shown) == cure
    assert len(prefer_many(rows, "Says thank you", "offline", columns=cure)) == 3
    options = [word for field, column in given.items() for word in ("--column", f"{field}={column}")]
    path = written(rows, folder)
    refused = run("prefer", str(path), str(folder / "rubric.yaml"), "-j", "offline", *options)
    line = refused.stderr.rpartition("; write rubric ")[2]
    assert [word for word in shlex.split(line) if "=" in word] == [f"{name}={of}" for name, of in cure.items()]
    assert run(*shlex.split(line)).exit_code == 0


def test_a_short_reply_keeps_no_side_from_being_proposed() -> None:
    """Two columns whose names are a pair are one, although half of the replies are of a single word."""
    rows = [{"reply_old": "Done.", "reply_new": "Thank you. Next step: log in."}, {"reply_old": "Sorry, not yet."}]
    assert "columns={'a': 'reply_old', 'b': 'reply_new'}" in refusal_of(rows)


@each_row(
    ("names", "given"),
    [
        ("ticket customer_question reply topic", {}),
        ("reply_old reply_new reply_mid", {}),
        ("question_text answer_text", {}),
        ("question_en reply_en reply_de", {"input": "question_en", "key": "reply_de"}),
        ("mail summary", {}),
        ("reply_old ticket", {"a": "reply_old", "b": "nosuch"}),
        ("topic ticket id", {}),
    ],
)
def test_without_one_clear_pair_no_line_is_proposed(names: str, given: Any, folder: Path) -> None:
    """The refusal names the columns, says how the sides are named, and has no line that could be run."""
    rows = rows_with(names)
    said = refusal_of(rows, given)
    assert f"(there are: {', '.join(names.split())})" in said
    assert "name both sides, a and b, with columns=" in said
    options = [word for field, column in given.items() for word in ("--column", f"{field}={column}")]
    refused = run("prefer", str(written(rows, folder)), str(folder / "rubric.yaml"), "-j", "offline", *options)
    assert refused.exit_code == 2
    assert "name both sides, a and b, with --column FIELD=COLUMN" in refused.stderr
    assert "write rubric" not in refused.stderr


@each_row(
    ("columns", "said"),
    [
        ({"key": "nosuch"}, "columns.key: there is no column 'nosuch'"),
        ({"input": "quesiton"}, "columns.input: there is no column 'quesiton'; did you mean 'question'?"),
        ({"model_a": "old"}, "columns.model_a: there is no column 'old'"),
        ({"model": "x"}, "columns.model: is not a field of a pair"),
        ({"output": "a"}, "columns.output: is not a field of a pair"),
        ({"a": None}, "columns.a: a pair has one; name its column"),
        ({"a": "b"}, "columns.b: both sides are the column 'b'; name the other one"),
        ({"b": "nosuch", "a": "nosuch"}, "columns.b: both sides are the column 'nosuch'; name the other one"),
        (["a"], "columns: expected a mapping such as {'a': 'answer', 'input': 'question'}, got ['a']"),
        ({"A": "x", "B": "y"}, "columns.A: is not a field of a pair; it is 'a': columns={'a': 'x', 'b': 'y'}"),
        ({"query": "x", "z": None, "B": "y"}, "it is 'input': columns={'input': 'x', 'z': None, 'b': 'y'}"),
        ({"input": 3}, "columns.input: expected the name of a column"),
        (
            {},
            "'question' looks like a field of a pair and is not used; say which field it is, such as columns={'input'",
        ),
    ],
)
def test_columns_are_checked_as_those_of_candidates(columns: Any, said: str) -> None:
    """A column that is named must be there, and one that looks like a field must be used or passed over."""
    rows = rows_with("a b question")
    assert said in refusal_of(rows, columns)
    assert len(prefer_many(rows, "Says thank you", "offline", columns={"question": None})) == 3


def test_columns_of_pairs_without_rows_are_refused() -> None:
    """Tuples have no columns, so naming some has no effect."""
    assert "there are no rows with columns here" in refusal_of([("x", "y")], {"a": "left"})


def test_a_row_without_a_side_is_named_by_its_place() -> None:
    """A row that lacks what others have, or whose cell is empty, is refused with its place."""
    for lacking in ({"a": "One."}, {"a": "One.", "b": None}, {"a": "One.", "b": float("nan")}):
        assert "pairs[1].b: expected an output, got nothing" in refusal_of([{"a": "One.", "b": "Two."}, lacking])


def test_an_empty_cell_is_no_text() -> None:
    """Missing values of a frame's rows are not shared, and name nothing."""
    nan = float("nan")
    row = {"a": "One.", "b": "Two.", "input": nan, "key": nan, "group": None, "model_a": nan}
    (one,) = prefer_many([row], "Says thank you", "offline")
    assert (one.key, one.group, one.names) == ("", "", ("a", "b"))
    assert one.results[0].candidate is None or one.results[0].candidate.input == ""


@each_row("frame_of", [pd.DataFrame, pl.DataFrame])
def test_a_frame_is_a_table_of_pairs(frame_of: Any) -> None:
    """The rows of a frame are taken and checked as those of a file; an empty cell is no text."""
    rows = rows_with("ticket reply_old reply_new output")
    frame = frame_of([{**row, "question": None} for row in rows])
    assert "name both sides, a and b, with columns={'a': 'reply_old', 'b': 'reply_new', 'input': 'question'}" in (
        refusal_of(frame[["ticket", "reply_old", "reply_new", "question"]])
    )
    columns = {"a": "reply_old", "b": "reply_new", "key": "ticket", "input": "question"}
    model = ScriptedModel(lambda _: {"choice": "tie"})
    found = prefer_many(frame, "Says thank you", model, columns=columns)
    assert [one.key for one in found] == ["T0"] * 3
    assert rows[0]["reply_new"] in model.asks[0].messages[-1].text
    assert "None" not in model.asks[0].messages[-1].text
    with pytest.raises(DefinitionError, match="there are no pairs"):
        prefer_many(frame[:0], "Says thank you", model, columns=columns)


def test_a_file_of_pairs_may_be_named_by_a_text(tmp_path: Path) -> None:
    """The path of a file is taken as `grade_many` takes it; any other text is refused with the kinds of files."""
    path = written(rows_with("a b"), tmp_path)
    assert len(prefer_many(str(path), "Says thank you", "offline")) == len(prefer_many(path, "Is", "offline")) == 3
    assert refusal_of("Thank you.") == (
        "pairs: expected a file that ends in .jsonl, .ndjson, .json, .csv, .tsv, .parquet, .xlsx, got 'Thank you.'"
    )
    assert refusal_of("nosuch.csv") == "pairs: there is no file 'nosuch.csv'"


def test_rows_of_json_may_lack_shared_fields(tmp_path: Path) -> None:
    """A field that one row has is a column of all."""
    path = tmp_path / "pairs.jsonl"
    rows: list[dict[str, Any]] = [{"a": "One.", "b": "Two."}, {"a": "One.", "b": "Two.", "ticket": 7}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = prefer_many(path, "Says thank you", "offline", columns={"key": "ticket"})
    assert [one.key for one in found] == ["", "7"]


def test_a_text_that_no_judge_sees_is_a_remark() -> None:
    """A column of texts that no field takes is named with the line that uses it; with that line the judge sees it."""
    rows = rows_with("customer_question a b")
    found = prefer_many(rows, "Says thank you", "offline")
    (remark,) = [one for one in found.remarks() if "customer_question" in one]
    assert remark.startswith("the column 'customer_question' holds texts that no judge sees; name its field, ")
    columns = ast.literal_eval(remark[remark.index("columns={") + len("columns=") : remark.index("}") + 1])
    model = ScriptedModel(lambda _: {"choice": "tie"})
    used = prefer_many(rows, "Says thank you", model, columns=columns)
    assert rows[0]["customer_question"] in model.asks[0].messages[-1].text
    assert not [one for one in used.remarks() if "customer_question" in one]


def test_a_terminal_is_told_what_it_will_take_and_what_no_judge_sees(folder: Path) -> None:
    """Before the first call a line has the pairs, the calls and the cost, and another names the text left out."""
    path = str(written(rows_with("customer_question a b", 30), folder))
    line = ["prefer", path, str(folder / "rubric.yaml"), "-j", "offline"]
    done = run(*line, "--format", "json")
    head, warning = done.stderr.splitlines()
    assert head == f"{path}: 30 pairs, about 60 calls, free of charge"
    assert warning == (
        "warning: the column 'customer_question' holds texts that no judge sees; name its field, --column "
        "input=customer_question, or pass it over: --column customer_question="
    )
    assert json.loads(done.stdout)["counts"]["unjudged"] == 0
    for option in ("input=customer_question", "customer_question="):
        head = f"{path}: 30 pairs, about 30 calls, free of charge"
        assert run(*line, "--one-order", "--column", option).stderr.splitlines() == [head]


def test_a_plan_has_the_calls_that_are_made() -> None:
    """Criteria that code decides, and those that do not apply, take no call; a jury takes each of its votes."""
    rubric = (
        Rubric()
        .expects("Says thank you")
        .checks(Contains("day"), id="day")
        .expects("Is short", when=When(contains="sorry"))
    )
    pairs, _ = pairs_of(rows_with("a b", 4))
    for both_orders in (True, False):
        model = ScriptedModel(lambda _: {"choice": "1"})
        judge = Jury(Judge(model), 3, early_stop=True)
        planned = plan_pairs(pairs, rubric, judge, both_orders=both_orders)
        prefer_many(pairs, rubric, judge, both_orders=both_orders)
        assert planned.least == planned.most == len(model.asks)


def test_the_table_counts_each_outcome() -> None:
    """What is shown has how many pairs are better on either side, tied, inconsistent and unjudged, by their systems."""
    replies = {"One.": "tie", "Two.": "1"}  # a tie in both orders, and the first text in both
    model = ScriptedModel(
        lambda ask: {"choice": next(said for text, said in replies.items() if text in str(ask.messages))}
    )
    rows = [{"a": text, "b": "Reply.", "model_a": "old", "model_b": "new"} for text in ("One.", "One.", "Two.")]
    found = prefer_many(rows, "Says thank you", model)
    lines = str(found).splitlines()
    at = lines.index("Outcomes")
    assert [line.split() for line in lines[at + 1 : at + 3]] == [
        ["old", "new", "tie", "inconsistent", "unjudged"],
        ["0", "0", "2", "1", "0"],
    ]
    mixed = prefer_many([*rows, {"a": "One.", "b": "Reply."}], "Says thank you", model)
    assert mixed.tables()[0][1][:2] == ("a", "b")
