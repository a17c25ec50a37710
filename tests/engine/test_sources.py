"""Where many candidates come from: columns, frames, files, and how they are taken."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Case, Contains, DefinitionError, Judge, Rubric, Suite, Ungraded, grade
from rubric.engine import Shard
from rubric.engine.bulk import grade_many
from rubric.engine.sources import as_candidate, source_of
from rubric.engine.worker_pool import reader_of
from rubric.testing.scripted_model import ScriptedModel

ROWS = [
    {"output": "Good morning", "input": "Hello", "id": 1},
    {"output": "Wie geht’s?\n“Gut”, sagt er; 7,5 Äpfel", "input": None, "id": 2},
    {"output": "last", "input": "x", "id": 3},
]
CANDIDATES = [
    Candidate("Good morning", input="Hello"),
    Candidate("Wie geht’s?\n“Gut”, sagt er; 7,5 Äpfel"),
    Candidate("last", input="x"),
]


def read(given: Any) -> list[Candidate]:
    items = source_of(given).items
    assert isinstance(items, Iterable)
    return [as_candidate(item) for item in items]


def jsonl(path: Path) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "csv", "tsv", "parquet"])
def test_files_hold_candidates(tmp_path: Path, suffix: str) -> None:
    """Each kind of file gives the candidates that stand in it, by a `Path` and by a text."""
    path = tmp_path / f"answers.{suffix}"
    frame = pl.DataFrame(ROWS)
    match suffix:
        case "csv" | "tsv":
            frame.write_csv(path, separator="," if suffix == "csv" else "\t")
        case "parquet":
            frame.write_parquet(path)
        case _:
            jsonl(path)
    assert read(path) == read(str(path)) == CANDIDATES


def test_frames_and_columns_hold_candidates() -> None:
    """A frame of pandas or polars gives its rows, a lazy one too; a column gives its texts."""
    assert read(pd.DataFrame(ROWS)) == CANDIDATES
    assert read(pl.DataFrame(ROWS)) == CANDIDATES
    assert read(pl.LazyFrame(ROWS)) == CANDIDATES
    texts = [candidate.output for candidate in CANDIDATES]
    assert [c.output for c in read(pd.Series(texts))] == [c.output for c in read(pl.Series(texts))] == texts


def test_how_many_there_are_is_known_where_it_can_be() -> None:
    """Lists, columns and frames have a length; generators have none."""
    assert [source_of(given).total for given in (["a"], pd.DataFrame(ROWS), pl.Series(["a", "b"]))] == [1, 3, 2]
    assert source_of(iter(["a"])).total is None


def test_how_many_a_file_holds(tmp_path: Path) -> None:
    """Lines that hold something and rows of Parquet are counted, and rows of CSV, one of which may have several lines."""
    path = jsonl(tmp_path / "answers.jsonl")
    path.write_bytes(path.read_bytes() + b" \n\n" + b'"without an end"')
    pl.DataFrame(ROWS).write_parquet(tmp_path / "answers.parquet")
    pl.DataFrame(ROWS).write_csv(tmp_path / "answers.csv")
    names = ("answers.jsonl", "answers.parquet", "answers.csv")
    assert [source_of(tmp_path / name).total for name in names] == [len(read(path)), 3, 3] == [4, 3, 3]
    (tmp_path / "answers.csv").write_text('output\n"one\nrow"\n\nanother\n')
    assert source_of(tmp_path / "answers.csv").total == len(read(tmp_path / "answers.csv")) == 2
    (tmp_path / "answers.parquet").write_text("no Parquet")
    assert source_of(tmp_path / "answers.parquet").total is None


def test_a_missing_value_in_a_column_is_ungraded() -> None:
    """NaN in a column of pandas becomes an ungraded in its place."""
    column = pd.Series(["good", None, "fine"])
    results = list(grade_many(column, Rubric().expects("x"), Judge(ScriptedModel(lambda _: True))))
    assert [isinstance(result, Ungraded) for result in results] == [False, True, False]


def test_parts_of_a_run_are_read_from_rows() -> None:
    """Messages and tool calls of a JSON row become those of the candidate."""
    row = {"output": "x", "messages": [{"role": "user", "content": "y"}], "tool_calls": [{"name": "t"}]}
    candidate = as_candidate(row)
    assert (candidate.input, candidate.tool_calls[0].name) == ("y", "t")


def test_a_broken_line_is_ungraded_and_the_next_is_read(tmp_path: Path) -> None:
    """A line that is not JSON says where it stands."""
    path = tmp_path / "answers.jsonl"
    path.write_text('{"output": "a"}\n{"output": \n\n"text"\n', encoding="utf-8")
    results = list(grade_many(path, Rubric().expects("x"), Judge(ScriptedModel(lambda _: True))))
    assert [isinstance(result, Ungraded) for result in results] == [False, True, False]
    assert "answers.jsonl:2: no JSON" in results[1].failures[0].message


def test_parquet_without_polars_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a missing extra comes at the call, with the cure."""
    path = tmp_path / "answers.parquet"
    path.touch()
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"pip install 'rubric-grade\[parquet\]'"):
        source_of(path)


def test_a_path_of_another_kind_is_refused() -> None:
    """What looks like a path of an unknown kind is taken for a text, and the error says what a path looks like."""
    with pytest.raises(DefinitionError, match=r"a path ends in \.jsonl, "):
        source_of("answers.docx")


@given(st.dictionaries(st.text(max_size=8) | st.integers() | st.none(), st.text(max_size=5) | st.none(), max_size=5))
def test_any_row_is_a_candidate_or_refused(row: dict[Any, Any]) -> None:
    """No row raises anything but `DefinitionError`."""
    try:
        assert isinstance(as_candidate(row), Candidate)
    except DefinitionError:
        assert not isinstance(row.get("output"), str) or "output" in row


# -- how they are taken ----------------------------------------------------------------------------------


def test_a_generator_has_a_thread_of_its_own() -> None:
    """It may block, so it runs neither on the event loop nor in several threads; it ends where it began."""
    seen = []

    def source() -> Iterator[int]:
        try:
            for n in range(50):
                seen.append(threading.current_thread())
                yield n
        finally:
            seen.append(threading.current_thread())

    async def main() -> list[int]:
        reader = reader_of(source())
        taken = []
        while items := await reader.read(7):
            assert len(items) <= 7
            taken += items
        await reader.aclose()
        return taken

    assert asyncio.run(main()) == list(range(50))
    assert len(set(seen)) == 1
    assert seen[0] is not threading.main_thread()
    assert not seen[0].is_alive()


def test_a_source_that_blocks_holds_up_nobody() -> None:
    """While a generator waits, what was taken is graded and handed out."""
    more = threading.Event()

    def source() -> Iterator[str]:
        yield "first"
        more.wait(30)
        yield "second"

    stream = iter(grade_many(source(), Rubric().expects("x"), Judge(ScriptedModel(lambda _: True)), concurrency=1))
    first = next(stream)
    more.set()
    assert [first.index, next(stream).index, next(stream, None)] == [0, 1, None]


TWICE = "two columns are called 'output'"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("twice.csv", b"output,output\na,b\n", TWICE),
        ("semicolon.csv", b"output;input\na;b\n", "parted by ';'"),
        ("tab.csv", b"output\tinput\na\tb\n", "name the file .tsv"),
        ("utf16.csv", "output,input\na,b\n".encode("utf-16"), "no text in UTF-8"),
        ("none.xlsx", b"", "cannot be read as an Excel file"),
    ],
)
def test_a_table_with_a_wrong_head_is_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    """Of two columns of one name a row holds the last; other separators and encodings hide the columns."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DefinitionError, match=said):
        [*grade_many(tmp_path / name, "Is polite", "offline")]


def test_two_columns_of_one_name_are_refused_in_frames_and_sheets(tmp_path: Path) -> None:
    """As in text files."""
    frame = pd.DataFrame([["a", "b"]], columns=["output", "output"])
    book = openpyxl.Workbook()
    for row in (["output", "output"], ["a", "b"]):
        book.active.append(row)
    book.save(tmp_path / "twice.xlsx")
    for table in (frame, tmp_path / "twice.xlsx"):
        with pytest.raises(DefinitionError, match=TWICE):
            [*grade_many(table, "Is polite", "offline")]


def test_a_line_of_json_with_a_key_twice_is_ungraded(tmp_path: Path) -> None:
    """Which of the two outputs is meant, nobody knows."""
    (tmp_path / "a.jsonl").write_text('{"output": "a", "output": "b"}\n{"output": "c"}\n')
    first, second = grade_many(tmp_path / "a.jsonl", "Is polite", "offline")
    assert isinstance(first, Ungraded)
    assert "'output' is used twice" in first.failures[0].message
    assert second.candidate == Candidate("c")


CHAT = [{"role": "user", "content": "Who won?"}, {"role": "assistant", "content": "Anna won."}]
SEARCHING = [
    CHAT[0],
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}],
    },
]


def test_a_folder_and_a_list_of_paths_hold_a_candidate_a_file(tmp_path: Path) -> None:
    """Texts and agents' runs, each under the name of its file; hidden files are not looked at."""
    logs = tmp_path / "logs"
    (logs / "late").mkdir(parents=True)
    (logs / "a.json").write_text(json.dumps(CHAT))
    (logs / "late" / "b.json").write_text(json.dumps({"messages": SEARCHING}))
    (logs / ".state.json").write_text("{}")
    (logs / "c.json").write_text(json.dumps([{"output": "x"}, {"output": "y"}]))
    whole = grade_many(logs, "Anna won", "offline").collect()
    listed = grade_many(sorted(logs.rglob("[a-c].json")), "Anna won", "offline").collect()
    assert [*listed] == [*whole] == [*grade_many(str(logs), "Anna won", "offline").collect()]
    assert [(each.key, each.score) for each in whole] == [("a.json", 1), ("c.json", None), ("late/b.json", None)]
    assert "c.json holds many candidates; grade that file alone" in str(whole.ungraded[0].failures[0])
    texts = [tmp_path / "one.txt", tmp_path / "two.txt"]
    texts[0].write_text("Anna won")
    found = grade_many(texts, "Anna won", "offline").collect()
    assert [(each.key, each.score) for each in found] == [("one.txt", 1), ("two.txt", None)]
    assert "there is no file" in str(found.ungraded[0].failures[0])


def test_a_folder_of_several_kinds_is_refused_with_the_line_for_one(tmp_path: Path) -> None:
    """A README beside the answers would be graded, and paid for; so would a folder without a file be nothing."""
    for name in ("a.md", "b.md", "c.json"):
        (tmp_path / name).write_text("Anna won")
    with pytest.raises(
        DefinitionError, match=r"expected files of one kind in .*, got 2 .md, 1 .json; name them"
    ) as said:
        grade_many(tmp_path, "Anna won", "offline")
    line = str(said.value).rpartition(", or ")[2]
    assert len(grade_many(eval(line), "Anna won", "offline").collect()) == 2  # noqa: S307 - the cure that was printed
    (tmp_path / "none").mkdir()
    with pytest.raises(DefinitionError, match="got none; name them"):
        grade_many(tmp_path / "none", "Anna won", "offline")
    with pytest.raises(DefinitionError, match="have no columns"):
        grade_many([tmp_path / "a.md"], "Anna won", "offline", columns={"output": "answer"})


def shards(folder: Path, kinds: str) -> list[Path]:
    """Write a table of three rows a file, the last of them without an output."""
    folder.mkdir()
    for n, kind in enumerate(kinds.split()):
        frame = pl.DataFrame({"id": [f"{n}-{row}" for row in range(3)], "output": ["Anna won", "Ben won", None]})
        write: Any = {"csv": frame.write_csv, "jsonl": frame.write_ndjson}.get(kind, frame.write_parquet)
        write(folder / f"{n}.{kind}")
    return sorted(folder.iterdir())


def test_tables_are_read_one_after_another(tmp_path: Path) -> None:
    """By a folder, a pattern or a list; places count through all, and an error names the row of its file."""
    folder, mixed = tmp_path / "a", shards(tmp_path / "b", "parquet parquet csv jsonl")
    shards(folder, "parquet parquet")
    for data, files in (
        (folder, 2),
        (str(folder), 2),
        (f"{folder}/*.parquet", 2),
        (Path(folder, "[01].p*"), 2),
        (mixed, 4),
        (tuple(mixed), 4),
        ([folder, mixed[2]], 3),
    ):
        source = source_of(data, {"key": "id"})
        assert source.total == 3 * files
        found = grade_many(data, "Anna won", "offline", columns={"key": "id"}).collect()
        assert [each.index for each in found] == [*range(3 * files)]
        assert [each.key for each in found][:4] == ["0-0", "0-1", "0-2", "1-0"]
        told = r"candidates\[5\].output: expected text, got nothing \(None\) \(row 3 of (a/|b/)?1.parquet\)"
        assert re.search(told, str(found[5]))
        parts = [grade_many(Shard(n, 2).of(data, columns={"key": "id"}), "Anna won", "offline") for n in (1, 2)]
        assert sorted(one.index or 0 for part in parts for one in part.collect()) == [*range(3 * files)]


def test_tables_are_looked_at_before_a_row_is_graded(tmp_path: Path) -> None:
    """A column that the last file lacks is told at once, with the file; rows are read as they are graded."""
    paths = shards(tmp_path / "t", "csv csv")
    paths[1].write_text("output\nhello\n")
    with pytest.raises(DefinitionError, match=r"1.csv: there is no column 'id'"):
        grade_many(paths, "Anna won", "offline", columns={"key": "id"})
    paths[1].write_text("")
    assert len(grade_many(paths, "Anna won", "offline", columns={"key": "id"}).collect()) == 3
    paths[1].unlink()
    with pytest.raises(DefinitionError, match=r"1.csv: there is no file"):
        grade_many(paths, "Anna won", "offline")


def test_texts_beside_tables_are_refused_with_the_lines_for_each(tmp_path: Path) -> None:
    """A text is a candidate, and a row of a table is one; both lines do what they say."""
    paths = shards(tmp_path / "t", "csv jsonl")
    for name in ("a.txt", "b.md"):
        paths.append(tmp_path / "t" / name)
        paths[-1].write_text("Anna won")
    with pytest.raises(DefinitionError, match="of a table, each row is a candidate") as said:
        grade_many(paths, "Anna won", "offline")
    lines = str(said.value).partition("such as ")[2].split(", or ")
    found = [eval(line.removeprefix("candidates="), {"paths": paths}) for line in lines]  # noqa: S307 - printed cures
    assert [len(grade_many(each, "Anna won", "offline").collect()) for each in found] == [6, 2]


@pytest.mark.parametrize("columns", [None, {"key": "id"}])
def test_names_of_tables_that_are_no_list_of_paths_are_refused_with_one(
    tmp_path: Path, columns: dict[str, str] | None
) -> None:
    """A pattern of `glob` gives texts, and one of `Path` an iterator: neither is graded as texts."""
    paths = shards(tmp_path / "t", "csv csv")
    for data, again in (([*map(str, paths)],) * 2, (map(str, paths), map(str, paths)), (iter(paths), iter(paths))):
        with pytest.raises(DefinitionError, match=r"0.csv' holds many candidates") as said:
            grade_many(data, "Anna won", "offline", columns=columns).collect()
        line = str(said.value).partition("candidates=")[2]
        made = eval(line, {"paths": again, "Path": Path})  # noqa: S307 - the cure that was printed
        assert len(grade_many(made, "Anna won", "offline", columns=columns).collect()) == 6


def test_a_chat_is_an_item_of_many(tmp_path: Path) -> None:
    """A log of an agent a line, as `jq -c . logs/*.json` writes them; one that ends with a call has no answer."""
    lines = tmp_path / "runs.jsonl"
    lines.write_text("".join(json.dumps(each) + "\n" for each in (CHAT, SEARCHING)))
    for chats in (lines, [CHAT, SEARCHING]):
        found = grade_many(chats, "Anna won", "offline").collect()
        assert [each.score for each in found] == [1, None]


def test_a_list_of_mappings_that_are_no_messages_is_not_taken_for_a_chat() -> None:
    """What messages are is said, and the line for other lists."""
    for output, told in (
        ([{"step": 1}], "for the JSON of other lists, write output=json.dumps"),
        (CHAT, "is one cand"),
    ):
        with pytest.raises(DefinitionError, match=told):
            Candidate(output)  # type: ignore[arg-type]


class Dumped:
    """An object of Pydantic's, as SDKs return them."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)

    def model_dump(self, *, mode: str, exclude_none: bool) -> dict[str, Any]:
        """Return the fields as plain data."""
        assert (mode, exclude_none) == ("json", True)
        return dict(vars(self))


SAID = {"role": "assistant", "content": "On Friday."}
RESPONSES = {
    "openai.ChatCompletion": Dumped(object="chat.completion", choices=[{"index": 0, "message": SAID}]),
    "openai.ChatCompletionMessage": Dumped(**SAID),
    "openai.Response": Dumped(
        object="response",
        output=[{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "On Friday."}]}],
    ),
    "anthropic.Message": Dumped(
        type="message", role="assistant", content=[{"type": "text", "text": "On Friday."}], stop_reason="end_turn"
    ),
    "langchain.AIMessage": Dumped(type="ai", content="On Friday.", tool_calls=[], response_metadata={}),
    "a row": Dumped(output="On Friday."),
}


@pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES)
def test_the_response_of_an_sdk_is_a_candidate(response: Any) -> None:
    """Its text is graded: alone, in a cell, by a target of a suite, and among many unless these may be a chat."""
    rubric = Rubric().checks(Contains("Friday"))
    assert grade(response, rubric, "offline").passed
    if not hasattr(response, "output") or isinstance(response.output, list):
        assert grade({"output": response, "input": "When?"}, rubric, "offline").passed
    report = Suite("s", [Case("a", rubric, input="When?")]).run("offline", target=lambda _: response)
    answered: Any = report.grades[0].candidate
    assert (answered.output, answered.input, answered.key) == ("On Friday.", "When?", "a")
    for many in ([response, response], (response for _ in range(2))):
        if hasattr(response, "content"):
            with pytest.raises(DefinitionError, match=r"write grade_many\(\[each.content for each in candidates\]"):
                grade_many(many, rubric, "offline").collect()
        else:
            assert [each.passed for each in grade_many(many, rubric, "offline")] == [True, True]


def test_objects_with_columns_of_their_own_are_rows() -> None:
    """A column is named as for mappings, and a name that looks like a field is refused before anything is asked."""
    rows = [Dumped(answer="On Friday.", id=7)]
    assert [each.key for each in grade_many(rows, "Is a", "offline", columns={"output": "answer", "key": "id"})] == [
        "7"
    ]
    with pytest.raises(DefinitionError, match="'output': 'answer'"):
        grade_many(rows, "Is a", "offline")
    with pytest.raises(DefinitionError, match="there are: page_content, type"):
        grade(Dumped(page_content="On Friday.", type="Document"), "Is a", "offline")
