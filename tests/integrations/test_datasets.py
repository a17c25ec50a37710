"""The functions for `Dataset.map`, in real data sets of Hugging Face's, and those as candidates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rubric import DefinitionError, grade_many
from tests.harnesses import BAD, GOOD, ODD, POLITE, harness, judging

datasets = harness("datasets")
pytestmark = pytest.mark.filterwarnings("ignore")

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [ODD, GOOD, BAD]
NAMED = {"output": "answer", "input": "question"}


@pytest.fixture
def data(tmp_path: Path) -> Any:
    """Return a data set in a file, so that `map` caches what it makes."""
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps({"question": "When?", "answer": text}) + "\n" for text in TEXTS))
    return datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))


@pytest.mark.parametrize("options", [{"batched": True}, {"batched": True, "batch_size": 1}, {}])
@pytest.mark.parametrize("is_async", [False, True])
def test_columns_are_added(data: Any, options: dict[str, Any], is_async: bool) -> None:
    """The mean is that of the graded rows, though the first batch has no score at all."""
    from rubric.integrations.datasets import arubric_map, rubric_map

    with judging() as judge:
        function = (arubric_map if is_async else rubric_map)(POLITE, judge, columns=NAMED)
        graded = data.map(function, load_from_cache_file=False, **options)
    assert graded["rubric.score"][:] == [None, 1, 0.25]
    assert graded["rubric.passed"][:] == [None, True, False]
    assert graded["rubric.verdict"][:] == ["ungraded", "pass", "fail"]
    assert graded["rubric.criterion.day"][:] == [None, 1, 0]
    assert graded.to_pandas()["rubric.score"].mean() == (1 + 0.25) / 2
    assert "not graded" in graded["rubric.reason"][0]
    assert "✗ Names a day" in graded["rubric.reason"][2]
    assert json.loads(graded["rubric.result"][1])["digest"] == POLITE.digest


def test_a_second_run_and_other_processes_ask_nothing_anew(data: Any) -> None:
    """The function has the same fingerprint each time, so the cache of `map` serves it; processes share the rows."""
    from rubric.integrations.datasets import rubric_map
    from tests.harnesses import respond
    from tests.servers import Server

    with Server(respond=respond) as server:
        endpoint = server.at("ok")
        from rubric import Judge

        judge = Judge("openai/gpt-4o-mini", repairs=0, via="http", params={"api_base": endpoint.openai, "api_key": "k"})
        first = data.map(rubric_map(POLITE, judge, columns=NAMED), batched=True)
        asked = len(endpoint.requests)
        again = data.map(rubric_map(POLITE, judge, columns=NAMED), batched=True)
        assert len(endpoint.requests) == asked
        apart = data.map(rubric_map(POLITE, judge, columns=NAMED), batched=True, num_proc=2, load_from_cache_file=False)
    assert first["rubric.score"][:] == again["rubric.score"][:] == apart["rubric.score"][:] == [None, 1, 0.25]


def test_formats_do_not_matter_or_are_refused(data: Any) -> None:
    """Arrays are read as lists; in a format of frames, `map` would drop the other columns."""
    from rubric.integrations.datasets import rubric_map

    with judging() as judge:
        function = rubric_map(POLITE, judge, columns=NAMED)
        graded = data.with_format("numpy").map(function, batched=True)
        assert graded.with_format(None)["rubric.score"][:] == [None, 1, 0.25]
        with pytest.raises(DefinitionError, match=r"with_format\(None\)"):
            data.with_format("pandas").map(function, batched=True)


def test_a_stream_of_a_data_set_is_graded() -> None:
    """An `IterableDataset` takes the same function."""
    from rubric.integrations.datasets import rubric_map

    rows = datasets.Dataset.from_list([{"output": text} for text in TEXTS]).to_iterable_dataset()
    with judging() as judge:
        graded = list(rows.map(rubric_map(POLITE, judge, prefix="polite"), batched=True))
    assert [row["polite.score"] for row in graded] == [None, 1, 0.25]


def test_chats_keep_their_tool_calls() -> None:
    """A column of chats needs no column of outputs, in batches and out of them."""
    from rubric.integrations.datasets import rubric_map

    call = {"id": "1", "type": "function", "function": {"name": "orders", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "When?", "tool_calls": None},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "assistant", "content": GOOD, "tool_calls": None},
    ]
    data = datasets.Dataset.from_list([{"messages": chat}])
    with judging() as judge:
        for options in ({"batched": True}, {}):
            assert data.map(rubric_map(POLITE, judge), **options)["rubric.score"][:] == [1]
        (result,) = grade_many(data, POLITE, judge)
    assert result.outcome.score == 1


def test_a_data_set_is_a_source_of_candidates(data: Any) -> None:
    """Its columns are checked beforehand, its length is known, and a format for tensors does not matter."""
    with judging() as judge:
        stream = grade_many(data.with_format("numpy"), POLITE, judge, columns=NAMED)
        assert [result.outcome.score for result in stream] == [None, 1, 0.25]
        with pytest.raises(DefinitionError, match="'question', 'answer' look like fields"):
            grade_many(data, POLITE, judge)
        with pytest.raises(DefinitionError, match="look like fields"):
            grade_many(data.to_iterable_dataset(), POLITE, judge)
