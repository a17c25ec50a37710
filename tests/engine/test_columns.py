"""Columns that hold fields under other names, and why results are ungraded, under their summary."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import polars as pl
import pytest

from rubric import (
    Candidate,
    DefinitionError,
    Grade,
    Grades,
    Judge,
    Rubric,
    Ungraded,
    agrade_many,
    evaluate,
    grade_many,
    loads_suite,
    plan,
)  # fmt: skip
from rubric.engine import Shard
from rubric.engine.columns import _CALLED, FIELDS, Columns
from rubric.testing.scripted_model import ScriptedModel
from tests.rows import each_row

ASKED = [{"question": "Why?", "answer": "Thank you."}, {"question": "How?", "answer": "Thank you, so."}]
NAMED = {"output": "answer", "input": "question"}
POLITE = Rubric("polite").expects("Says thank you")


def model() -> ScriptedModel:
    """Return a model that says yes."""
    return ScriptedModel(lambda _: True)


def written(suffix: str, folder: Path) -> Path:
    path, frame = folder / f"replies.{suffix}", pl.DataFrame(ASKED)
    match suffix:
        case "csv" | "tsv":
            frame.write_csv(path, separator="," if suffix == "csv" else "\t")
        case "parquet":
            frame.write_parquet(path)
        case _:
            path.write_text("".join(json.dumps(row) + "\n" for row in ASKED))
    return path


async def one_by_one() -> AsyncIterator[dict[str, str]]:
    for row in ASKED:
        yield row


class Table:
    """What a table of pyarrow shows of itself, which is not among the extras."""

    schema = SimpleNamespace(names=["question", "answer"])

    def to_batches(self) -> list[Table]:
        return [self]

    def to_pylist(self) -> list[dict[str, str]]:
        return ASKED


Table.__module__ = "pyarrow.lib"

FORMS: dict[str, Callable[[Path], Any]] = {
    "list": lambda _: ASKED,
    "generator": lambda _: iter(ASKED),
    "async": lambda _: one_by_one(),
    "pandas": lambda _: pd.DataFrame(ASKED),
    "polars": lambda _: pl.DataFrame(ASKED),
    "lazy": lambda _: pl.LazyFrame(ASKED),
    "arrow": lambda _: Table(),
    **{suffix: partial(written, suffix) for suffix in ("jsonl", "csv", "tsv", "parquet")},
}


@pytest.mark.parametrize("form", FORMS)
def test_columns_are_named(form: str, tmp_path: Path) -> None:
    """The question reaches the judge from each form of rows, under the name that is given for it."""
    judge = model()
    grades = grade_many(FORMS[form](tmp_path), POLITE, Judge(judge), columns=NAMED).collect()
    assert len(grades.passed) == 2
    assert [(word in ask.messages[-1].text) for ask in judge.asks for word in ("Why?", "How?")] in (
        [True, False, False, True],
        [False, True, True, False],
    )


@pytest.mark.parametrize("form", FORMS)
def test_columns_that_look_like_fields_are_refused_once(form: str, tmp_path: Path) -> None:
    """Nothing is asked before; the message names all of them, and the call that works."""
    judge = model()
    with pytest.raises(DefinitionError) as caught:
        grade_many(FORMS[form](tmp_path), POLITE, Judge(judge)).collect()
    assert "'question', 'answer' look like fields" in str(caught.value)
    assert "columns={'output': 'answer', 'input': 'question'}" in str(caught.value)
    assert judge.asks == []


def test_the_async_twin_has_columns_too() -> None:
    """`agrade_many` takes and refuses what `grade_many` does."""

    async def main() -> int:
        with pytest.raises(DefinitionError, match="'question', 'answer' look like"):
            await agrade_many(one_by_one(), POLITE, Judge(model())).collect()
        return len((await agrade_many(one_by_one(), POLITE, Judge(model()), columns=NAMED).collect()).passed)

    assert asyncio.run(main()) == 2


def test_plans_and_shards_have_columns() -> None:
    """A plan counts what is asked; a shard has the rows that it had with columns of our own names."""
    ours = [{"input": row["question"], "output": row["answer"]} for row in ASKED]
    assert plan(ASKED, POLITE, "offline", columns=NAMED) == plan(ours, POLITE, "offline")
    for number in (1, 2):
        shards = (Shard(number, 2).of(ASKED, columns=NAMED), Shard(number, 2).of(ours))
        one, other = ([placed.index for placed in shard] for shard in shards)  # type: ignore[union-attr]
        assert one == other
    some = Shard(1, 1).of(ASKED, columns=NAMED)
    assert len(grade_many(some, POLITE, Judge(model())).collect().passed) == 2
    for refused in (lambda: plan(ASKED, POLITE, "offline"), lambda: Shard(1, 1).of(ASKED)):
        with pytest.raises(DefinitionError, match="look like fields"):
            refused()
    with pytest.raises(DefinitionError, match=r"say it there: Shard\.of"):
        grade_many(some, POLITE, "offline", columns=NAMED).collect()


@each_row(
    ("names", "cure"),
    [
        ("output question", {"input": "question"}),
        ("output Ground-Truth", {"reference": "Ground-Truth"}),
        ("output retrievedContexts prompt", {"input": "prompt", "context": "retrievedContexts"}),
        ("output expected_output id", {"reference": "expected_output"}),
        ("OUTPUT Tool Calls", {"output": "OUTPUT", "tool_calls": "Calls"}),
        ("outptu", {"output": "outptu"}),
        ("output refrence", {"reference": "refrence"}),
        ("output answer", {"reference": "answer"}),
        ("answer response", {"output": "response", "reference": "answer"}),
        ("output input instruction", {"instruction": None}),
        ("completion response query", {"output": "completion", "input": "query", "response": None}),
    ],
)
def test_the_cure_works(names: str, cure: dict[str, str | None]) -> None:
    """What a refusal says to give is taken, whatever case and separators the names have."""
    there = names.split() if "Tool" not in names else ["OUTPUT", "Tool Calls"]
    cure = {"output": "OUTPUT", "tool_calls": "Tool Calls"} if "Tool" in names else cure
    with pytest.raises(DefinitionError, match="not used") as caught:
        Columns().check(there)
    assert f"columns={cure!r}" in str(caught.value)
    Columns(cure).check(there)
    assert {"output"} <= Columns(cure).row(dict.fromkeys(there, "x")).keys()


def test_a_misspelt_column_is_refused_as_the_field_that_it_means() -> None:
    """A column with a letter left out, of a field or of what it is called elsewhere, is not taken for a variable."""
    called = [*FIELDS, *(name for names in _CALLED.values() for name in names.split())]
    slips = {name[:at] + name[at + 1 :] for name in called for at in range(1, len(name)) if len(name) > len("answers")}
    for slip in slips - {*FIELDS}:
        with pytest.raises(DefinitionError, match="not used"):
            Columns().check(["output", slip])


def test_columns_that_resemble_nothing_are_passed_over() -> None:
    """Ids, counts and figures of the user's own are not fields, and neither are fields with a number's name beside."""
    Columns().check(
        ["output", "id", "model", "score", "input_tokens", "response_time", "question_id", "created", "url"]
    )


@pytest.mark.parametrize("ignored", ["question", "input"])
def test_a_column_is_passed_over(ignored: str) -> None:
    """None passes a column over, also one that is called like a field."""
    judge = model()
    (grade,) = grade_many([{"output": "a", ignored: "Why?"}], POLITE, Judge(judge), columns={ignored: None})
    assert isinstance(grade, Grade)
    assert "Why?" not in judge.asks[0].messages[-1].text


@each_row(
    ("columns", "message"),
    [
        (
            {"answer": "output"},
            "columns.answer: is not a field of a candidate; it is the other way round: columns={'output': 'answer'}, or, where the column is called 'output', columns={'output': 'output'}",
        ),
        (
            {"output": "a", "topic": "topic"},
            "columns.topic: is not a field of a candidate; a column to group by is a variable: columns={'output': 'a', 'variables': ['topic']}",
        ),
        ({"ouput": "a"}, "columns.ouput: is not a field of a candidate; it is 'output': columns={'output': 'a'}"),
        ({"output": "anser"}, "columns.output: there is no column 'anser'; did you mean 'answer'?"),
        ({"output": None}, "columns.output: a candidate has one; name its column"),
        (
            {"output": 3},
            "columns.output: expected the name of a column, or None to pass over a column of this name, got 3",
        ),
        (["a"], "columns: expected a mapping such as {'output': 'answer', 'input': 'question'}, got ['a']"),
    ],
)
def test_columns_that_cannot_be(columns: Any, message: str) -> None:
    """What is not a name of a field or of a column is refused at the call, with the cure."""
    with pytest.raises(DefinitionError) as caught:
        grade_many(ASKED, POLITE, "offline", columns=columns)
    assert str(caught.value) == message


def test_columns_of_texts_are_an_option_without_an_effect() -> None:
    """Texts have no columns."""
    for texts in (["a", "b"], [Candidate("a")]):
        with pytest.raises(DefinitionError, match="no rows with columns here"):
            grade_many(texts, POLITE, "offline", columns=NAMED)
    with pytest.raises(DefinitionError, match="no rows with columns here"):
        plan("a", POLITE, "offline", columns=NAMED)


def test_a_later_row_with_other_columns_is_ungraded() -> None:
    """A stream has been paid for by then, so the row that would be judged without its question says so itself."""

    def rows() -> Iterator[dict[str, str]]:
        yield {"output": "a"}
        yield {"output": "b", "question": "Why?"}

    good, bad = grade_many(rows(), POLITE, Judge(model()))
    assert (type(good), type(bad)) == (Grade, Ungraded)
    assert "columns={'input': 'question'}" in bad.failures[0].message


def test_contexts_and_images_may_be_one_or_several() -> None:
    """A list of texts is one context, a lone address one image: so other systems have them."""
    row = Columns({"context": "contexts", "images": "image"}).row({"output": "a", "contexts": ["b", "c"], "image": "x"})
    assert row == {"output": "a", "context": ["b", "c"], "images": "x"}
    rows = [{"output": "a", "contexts": ["first part", "second part"], "image": "https://example.org/a.png"}]
    judge = model()
    grade_many(rows, POLITE, Judge(judge), columns={"context": "contexts", "images": "image"}).collect()
    assert "first part\n\nsecond part" in judge.asks[0].messages[-1].text
    assert [one.address for _, one in judge.asks[0].media] == ["https://example.org/a.png"]


# -- reasons ---------------------------------------------------------------------------------------------


def test_the_reasons_stand_under_the_summary() -> None:
    """The commonest come first; those that differ in numbers and quotations alone are counted as one."""
    said = [{"text": n} for n in range(10)] + [None, None, "Thank you."]
    grades = grade_many(said, POLITE, "offline").collect()
    reason = "10 × bad_request: candidates[0].output: is not there; name the text"
    for shown in (str(grades), grades.summary()._repr_markdown_().replace("\\", "")):
        assert f"12 ungraded: {reason}" in shown
        assert "; 2 × bad_request: candidates[10]: expected a text" in shown
    assert [*grades.summary().to_dict()["reasons"].values()] == [10, 2]


def test_unreadable_replies_are_told_of() -> None:
    """What the judge did wrong stands under the summary, too."""
    grades = grade_many(["a", "b"], POLITE, lambda _: "no idea").collect()
    assert "2 ungraded: 2 × unreadable: it holds no JSON" in str(grades)


@pytest.mark.parametrize("form", FORMS)
def test_columns_are_kept_as_variables(form: str, tmp_path: Path) -> None:
    """They are not part of what is graded, and results are grouped by them."""
    named = {"output": "answer", "input": "question", "variables": ["question", "answer"]}
    grades = grade_many(FORMS[form](tmp_path), POLITE, Judge(model()), columns=named).collect()
    assert {key: len(part) for key, part in grades.by("question").items()} == {"Why?": 1, "How?": 1}
    assert grades.by("answer").keys() == {row["answer"] for row in ASKED}


def test_a_column_of_variables_is_one_of_them_unless_it_holds_a_mapping() -> None:
    """One column may hold them all; a text of a mapping could be meant as either, and is refused."""
    told = [
        candidate_of_row({"output": "Hi", "topic": held}, "topic").variables
        for held in ("refunds", {"topic": "refunds"})
    ]
    assert told == [{"topic": "refunds"}, {"topic": "refunds"}]
    with pytest.raises(DefinitionError, match="a mapping as text"):
        candidate_of_row({"output": "Hi", "topic": '{"topic": "refunds"}'}, "topic")
    with pytest.raises(DefinitionError, match="there is no column 'topics'; did you mean 'topic'"):
        Columns({"variables": ["topics"]}).check(["output", "topic"])
    with pytest.raises(
        DefinitionError, match=r"columns\.variables: expected the name of a column, or several in a list"
    ):
        Columns({"variables": {"topic": "topic"}})


@pytest.mark.parametrize("frame", [pd.DataFrame, partial(pl.DataFrame, strict=False)])
def test_an_empty_cell_of_a_frame_is_no_value_of_a_variable(frame: Any) -> None:
    """It became a group of its own, 'nan'."""
    rows = frame({"output": ["Hi", "Hello", "Hey"], "topic": ["a", None, "b"], "n": [1.5, float("nan"), 2.5]})
    grades = grade_many(rows, POLITE, "offline", columns={"variables": ["topic", "n"]}).collect()
    assert [[*grades.by(name)] for name in ("topic", "n")] == [["a", "b", "(none)"], ["1.5", "2.5", "(none)"]]
    assert (grades.rows()[1]["variable.topic"], grades.rows()[1]["variable.n"]) == (None, None)


def candidate_of_row(row: dict[str, Any], variables: str) -> Candidate:
    """Return the candidate of a *row* with one column of *variables*."""
    return Candidate(**Columns({"variables": variables}).row(row))


def test_a_chat_is_an_output() -> None:
    """The refusal of another column asks for no output beside it."""
    with pytest.raises(DefinitionError) as refused:
        Columns().check(["messages", "patch"])
    assert "columns={'patch': None} (there are" in str(refused.value)


def test_a_plan_leaves_rows_without_a_candidate_out_and_names_the_first() -> None:
    """As grading does, which leaves them ungraded; a plan of such rows alone has nothing to count."""
    planned = plan([{"output": "Thank you."}, {"output": None}, {"output": "Bye."}], POLITE, "offline")
    assert planned.most == 2
    assert planned.remarks[0].startswith(
        "1 of 3 rows hold no candidate and are left out: candidates[1].output: expected"
    )
    with pytest.raises(DefinitionError, match=r"candidates\[0\].output: expected text"):
        plan([{"output": None}], POLITE, "offline")
    each = plan(["Thank you.", None, "Go."], [POLITE, POLITE, POLITE.expects("Is short")], "offline")
    assert each.most == 3


def test_documents_of_langchain_are_a_context() -> None:
    """As objects and as rows of JSON hold them, beside texts and others' parts; a part without a text is refused."""
    documents = [SimpleNamespace(page_content="one", metadata={}), {"page_content": "two", "metadata": {}}, "three"]
    documents += [{"type": "text", "text": "four"}, SimpleNamespace(text="five"), {"content": "six"}, {"text": ""}]
    (found,) = grade_many([{"output": "Thank you.", "context": documents}], POLITE, "offline").collect()
    assert found.candidate is not None
    assert found.candidate.context == "one\n\ntwo\n\nthree\n\nfour\n\nfive\n\nsix\n\n"
    (refused,) = grade_many(
        [{"output": "a", "context": [{"role": "user", "content": "x"}]}], POLITE, "offline"
    ).collect()
    assert "a chat is one candidate" in str(refused.failures[0])
    (refused,) = grade_many([{"output": "Thank you.", "context": [{"title": "x"}]}], POLITE, "offline").collect()
    assert "context: expected text" in str(refused.failures[0])


def test_arrays_in_cells_are_lists() -> None:
    """A frame of pandas holds lists as arrays, those within others too, and so may a candidate."""
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")

    def array(*items: object) -> Any:
        made = np.empty(len(items), dtype=object)
        made[:] = items
        return made

    cells = {
        "context": array("one", {"text": "two"}),
        "images": array("https://x.example/a.png"),
        "tool_calls": array({"name": "pay", "arguments": {"to": array("a", "b")}}),
        "variables": {"tags": array("x", "y")},
    }
    (found,) = grade_many(pd.DataFrame([{"output": "Thank you.", **cells}]), POLITE, "offline").collect()
    assert found.candidate is not None
    assert (found.candidate.context, found.candidate.images) == ("one\n\ntwo", ("https://x.example/a.png",))
    assert found.candidate.tool_calls[0].arguments == {"to": ("a", "b")}
    assert found.candidate.variables == {"tags": ("x", "y")}
    nested = [{"out": {"answer": "Thanks.", "docs": array("one")}, "empty": array()}]
    columns = {"output": "out.answer", "context": "out.docs", "images": "empty"}
    (found,) = grade_many(nested, POLITE, "offline", columns=columns).collect()
    assert found.candidate == Candidate("Thanks.", context=array("one"))


def test_several_documents_are_a_context_wherever_there_is_one() -> None:
    """In code, in rows and in the cases of a file; other items are refused without a cure that fails, too."""
    documents = ["one", "two"]
    assert Candidate("Thank you.", context=documents).context == "one\n\ntwo"
    case = {"input": "When?", "output": "Friday.", "context": documents}
    (read,) = loads_suite(json.dumps({"suite": "s", "rubric": "Is polite", "cases": [case]})).cases
    assert read.context == "one\n\ntwo"
    with pytest.raises(DefinitionError, match=r"^context: expected text, got \[1, 'b'\]$"):
        Candidate("Thank you.", context=[1, "b"])


@pytest.mark.parametrize("form", ["pandas", "polars", "lazy", "arrow", "jsonl", "csv", "tsv", "parquet"])
def test_rows_without_the_text_that_is_graded_are_refused_with_the_columns_that_may_be_it(
    form: str, tmp_path: Path
) -> None:
    """Each row would be ungraded. Columns of texts come first; each line that is printed works."""
    rows = FORMS[form](tmp_path)
    passed = {"question": None, "answer": None}  # so nothing looks like a field
    with pytest.raises(DefinitionError) as caught:
        grade_many(rows, POLITE, "offline", columns=passed)
    assert "no column holds the text that is graded; name it: columns=" in str(caught.value)
    ways = re.findall(r"columns=(\{.*?\})", str(caught.value))
    assert ways
    for way in ways:
        assert len(grade_many(rows, POLITE, "offline", columns=ast.literal_eval(way)).collect().graded) == 2


def test_a_list_is_what_is_graded_sooner_than_an_id(tmp_path: Path) -> None:
    """Where no column has a text; the next error says how a list becomes one."""
    (tmp_path / "rows.jsonl").write_text('{"id": "r0", "steps": ["Thank you.", "It arrives."]}\n')
    with pytest.raises(DefinitionError) as caught:
        grade_many(tmp_path / "rows.jsonl", POLITE, "offline")
    assert "name it: columns={'output': 'steps'} (there are: id, steps)" in str(caught.value)


def test_columns_of_texts_are_named_for_the_text_that_is_graded(tmp_path: Path) -> None:
    """Ids and topics are not; what is named for another field stays so."""
    file = tmp_path / "a.csv"
    file.write_text("no,customer_msg,agent_reply,topic\n4,Where is my refund?,It comes on Friday.,refunds\n")
    with pytest.raises(DefinitionError) as caught:
        grade_many(file, POLITE, "offline", columns={"key": "no"})
    message = (
        "name it: columns={'key': 'no', 'output': 'customer_msg'} or columns={'key': 'no', 'output': 'agent_reply'}"
    )
    assert message in str(caught.value)


@pytest.mark.parametrize("judge", ["offline", ["offline", "offline"]])
def test_a_row_that_is_no_candidate_keeps_key_group_variables_and_judge(judge: Any, tmp_path: Path) -> None:
    """So it counts among the ungraded of its topic, and is read again from a file."""
    rows = [{"output": text, "no": n, "topic": "refunds"} for n, text in enumerate(["It comes on Friday.", None])]
    named = {"key": "no", "group": "topic", "variables": ["topic"]}
    grades = grade_many(rows, POLITE, judge, columns=named).collect()
    assert [(one.key, one.group, one.variables["topic"]) for one in grades] == [
        ("0", "refunds", "refunds"),
        ("1", "refunds", "refunds"),
    ]
    assert {topic: len(part.ungraded) for topic, part in grades.by("topic").items()} == {"refunds": 1}
    assert len(grades.by("judge")) == 1
    grades.to_jsonl(tmp_path / "a.jsonl")
    again = Grades.read_jsonl(tmp_path / "a.jsonl", POLITE, judge)
    assert [one.to_dict() for one in again] == [one.to_dict() for one in grades]


IN_OTHERS = [
    {"inputs": {"question": "When?", "context": "Friday"}, "outputs": {"answer": "It comes on Friday."}, "n": 1},
    {"inputs": {"question": "Why?"}, "outputs": {"answer": "No idea."}, "n": 2},
]


@pytest.mark.parametrize("form", ["list", "pandas", "flat", "jsonl"])
def test_a_column_may_lie_in_another(form: str, tmp_path: Path) -> None:
    """The refusal names each; one that is not there is told with the nearest; a frame may have them flat."""
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in IN_OTHERS))
    data: dict[str, Any] = {
        "list": IN_OTHERS, "pandas": pd.DataFrame(IN_OTHERS), "flat": pd.json_normalize(IN_OTHERS),
        "jsonl": tmp_path / "rows.jsonl",
    }  # fmt: skip
    with pytest.raises(DefinitionError) as caught:
        grade_many(data[form], POLITE, "offline")
    named = ast.literal_eval(str(caught.value).partition("such as columns=")[2].partition(", or pass")[0])
    assert named == {"output": "outputs.answer", "input": "inputs.question", "context": "inputs.context"}
    kept: list[Any] = [grade.candidate for grade in grade_many(data[form], POLITE, "offline", columns=named).collect()]
    one, other = kept
    assert (one.output, one.input, one.context) == ("It comes on Friday.", "When?", "Friday")
    assert (other.input, other.context) == ("Why?", "")
    with pytest.raises(DefinitionError, match=r"no column 'outputs.answr'; did you mean 'outputs.answer'\?"):
        grade_many(data[form], POLITE, "offline", columns={**named, "output": "outputs.answr"})
    if form != "flat":
        alone: list[Any] = [
            *grade_many(data[form], POLITE, "offline", columns={"output": "outputs.answer", "inputs": None})
        ]
        assert [grade.candidate.input for grade in alone] == ["", ""]


def test_one_row_with_columns_in_others_is_answered_with_the_candidate() -> None:
    """The mapping that is printed is what `grade` takes."""
    with pytest.raises(DefinitionError) as caught:
        evaluate(IN_OTHERS[0], POLITE, "offline")
    line = str(caught.value).partition("write ")[2].removesuffix(" for such a row")
    made = eval(line, {"row": IN_OTHERS[0]})  # noqa: S307 - the line that the error proposes
    candidate: Any = evaluate(made, POLITE, "offline").candidate
    assert candidate.context == "Friday"


def test_variables_may_lie_in_another_column() -> None:
    """One of them, or a mapping of all."""
    named = {"output": "outputs.answer", "input": "inputs.question"}
    one, _ = grade_many(IN_OTHERS, POLITE, "offline", columns={**named, "variables": "inputs.context"}).collect()
    assert dict(one.variables) == {"inputs.context": "Friday"}
    all_, _ = grade_many(IN_OTHERS, POLITE, "offline", columns={"output": "outputs.answer", "variables": "inputs"})
    assert dict(all_.variables) == {"question": "When?", "context": "Friday"}
