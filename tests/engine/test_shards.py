"""Shards: every candidate is in one, the same everywhere, and their results become one file again."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Judge, Message, ToolCall, agrade_many, grade_many, plan
from rubric.engine.shards import EndMark, Shard, merge_results
from rubric.engine.sources import Placed
from rubric.errors import DefinitionError, LoadError
from rubric.values import RunMetrics
from tests.examples import examples
from tests.rows import each_row

ROWS: st.SearchStrategy[Any] = st.one_of(
    st.text(),
    st.builds(Candidate, st.text(), input=st.text(), variables=st.dictionaries(st.text(), st.text() | st.floats())),
    st.fixed_dictionaries({"output": st.text() | st.none() | st.floats()}, optional={"input": st.text()}),
    st.none() | st.integers() | st.just({}),
)


def every(count: int) -> list[Shard]:
    """Return all shards of *count*."""
    return [Shard(number, count) for number in range(1, count + 1)]


@examples(50)
@given(st.lists(ROWS, max_size=20), st.integers(1, 7))
def test_every_candidate_is_in_exactly_one_shard(rows: list[Any], count: int) -> None:
    """Whatever it is, with the place that it has in the whole."""
    placed = [one for shard in every(count) for one in shard.of(rows)]  # type: ignore[union-attr]
    assert sorted(one.index for one in placed) == list(range(len(rows)))
    assert all(rows[one.index] is one.item for one in placed)


@examples(60)
@given(st.text(), st.text(), st.integers(0, 99), st.integers(0, 99), st.integers(1, 7))
def test_the_same_content_is_in_the_same_shard(text: str, said: str, one: int, other: int, count: int) -> None:
    """Wherever it stands, and whether it is written as a candidate or as a row with more columns."""
    candidate = Candidate(text, input=said)
    row = {"id": one, "input": said, "output": text, "reference": None}
    assert Shard.holding(one, candidate, count).number == Shard.holding(other, row, count).number
    assert Shard.holding(one, text, count).number == Shard.holding(other, {"output": text}, count).number


def test_what_is_no_candidate_goes_by_its_place() -> None:
    """So that it too is told once."""
    assert [Shard.holding(index, None, 3).number for index in range(4)] == [1, 2, 3, 1]


def test_a_value_that_json_has_no_form_for_says_the_same_every_time() -> None:
    """The name of its type stands for it, not its address."""
    assert len({Shard.holding(0, Candidate("a", variables={"it": object()}), 10**6).number for _ in range(9)}) == 1


def test_shards_stay_as_they_are() -> None:
    """Another version that put candidates elsewhere would pay for them again."""
    tools = Candidate("b", tool_calls=[ToolCall("find", arguments={"x": [1, None]})], messages=[Message("user", "Hi")])
    items = ["", "a", Candidate("a", input="q"), tools, "\ud800 é", Candidate("b", metrics=RunMetrics(latency=1.5))]
    assert [Shard.holding(0, item, 1000).number for item in items] == NUMBERS


NUMBERS = [188, 950, 820, 918, 213, 689]


def test_another_process_has_the_same_shards() -> None:
    """With hashes of its own, as every process has them."""
    texts = [f"Text number {number}" for number in range(50)]
    code = "import sys; from rubric.engine.shards import Shard; print([p.index for p in Shard(2, 3).of(eval(sys.argv[1]))])"
    done = subprocess.run([sys.executable, "-c", code, repr(texts)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([one.index for one in Shard(2, 3).of(texts)])  # type: ignore[union-attr]


def test_shards_are_about_equal() -> None:
    """Of 3,000 candidates, a third each, give or take a tenth."""
    texts = [f"Text number {number}" for number in range(3_000)]
    sizes = [len([*shard.of(texts)]) for shard in every(3)]  # type: ignore[misc]
    assert all(900 < size < 1_100 for size in sizes)


@each_row("text", ["", "0/4", "5/4", "1", "1/0", "-1/4", "1/4/2", "a/b", "1.0/4", "١/٤"])
def test_what_names_no_shard_is_refused(text: str) -> None:
    """With what was found, and what is allowed."""
    with pytest.raises(DefinitionError, match="'1/16'") as refused:
        Shard.parse(text)
    assert repr(text) in str(refused.value)


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_shard_is_read_as_it_is_written(number: int, more: int) -> None:
    """From its text comes the same shard."""
    shard = Shard(number, number + more)
    assert Shard.parse(f" {shard}") == shard


@pytest.mark.parametrize(("number", "count"), [(0, 1), (2, 1), (1, 0), (True, 1), (1.0, 2)])
def test_no_shard_is_made_that_there_is_not(number: Any, count: Any) -> None:
    """Nor of what is not a number."""
    with pytest.raises(DefinitionError):
        Shard(number, count)


def test_results_keep_their_place_in_the_whole() -> None:
    """Also of what is not a candidate, and as the error says it."""
    rows: list[Any] = ["Thank you.", None, "Go away.", {"text": "?"}]
    parts = [grade_many(shard.of(rows), "Says thank you", "offline").collect() for shard in every(2)]
    whole = grade_many(rows, "Says thank you", "offline").collect()
    results = sorted((result for part in parts for result in part), key=lambda result: result.index or 0)
    assert [(r.index, r.to_dict()) for r in results] == [(r.index, r.to_dict()) for r in whole]


def test_a_shard_can_be_planned() -> None:
    """What is wrong with a candidate is told with its place in the whole."""
    texts = [f"Text number {number}" for number in range(10)]
    plans = [plan(shard.of(texts), "Says thank you", "offline") for shard in every(2)]
    assert sum(part.most for part in plans) == plan(texts, "Says thank you", "offline").most == 10
    planned = plan(Shard(1, 2).of(["", "", "", "", None, "Hi."]), "Says thank you", "offline")
    assert "1 of 2 rows hold no candidate and are left out: candidates[4]: expected a text" in planned.remarks[0]


def test_an_async_source_has_shards_too() -> None:
    """It is gone through as it comes."""

    async def texts() -> AsyncIterator[str]:
        for number in range(10):
            yield f"Text number {number}"

    async def graded() -> list[int | None]:
        return [result.index async for result in agrade_many(Shard(1, 2).of(texts()), "Is a text", "offline")]

    wanted = [one.index for one in Shard(1, 2).of([f"Text number {n}" for n in range(10)])]  # type: ignore[union-attr]
    assert asyncio.run(graded()) == wanted


def lines_of(*indices: int) -> str:
    """Return results of the candidates *indices*."""
    return "".join(json.dumps({"index": index, "score": 0.5, "reason": "\u00e9"}) + "\n" for index in indices)


def written(folder: Path, *texts: str) -> list[Path]:
    """Return files with *texts*."""
    paths = [folder / f"part-{number}.jsonl" for number in range(1, len(texts) + 1)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8", newline="\n")
    return paths


@examples(30)
@given(st.lists(st.integers(1, 4), max_size=20))
def test_merged_results_are_those_of_one_run(tmp_path_factory: pytest.TempPathFactory, shards: list[int]) -> None:
    """Byte for byte, in the order of the candidates, however they were shared out."""
    folder = tmp_path_factory.mktemp("merged")
    parts = [[index for index, shard in enumerate(shards) if shard == number] for number in range(1, 5)]
    marks = [EndMark(f"{n}/4", len(part), len(shards), "d", "r", "j") for n, part in enumerate(parts, 1)]
    paths = written(folder, *(lines_of(*part) + str(mark) for part, mark in zip(parts, marks, strict=True)))
    assert merge_results(paths, folder / "all.jsonl") == len(shards)
    assert (folder / "all.jsonl").read_text(encoding="utf-8") == lines_of(*range(len(shards)))


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ((lines_of(0, 1), lines_of(1, 2)), r"part-2.jsonl:1:1: the result of candidate 1 is in another place too"),
        ((lines_of(0, 3), lines_of(4)), r"part-1.jsonl:2:1: before this, candidates 1 to 2 should come"),
        ((lines_of(0), lines_of(2)), r"part-2.jsonl:1:1: before this, candidate 1 should come"),
        ((lines_of(0, 2, 1),), r"part-1.jsonl:2:1: before|part-1.jsonl:3:1: candidate 1 comes after 2; sort"),
        ((lines_of(0, 1)[:-9],), r"part-1.jsonl:2:1: this is not a whole line"),
        ((lines_of(0)[:-1],), r"part-1.jsonl:1:1: this is not a whole line"),
        (('{"score": 1}\n',), r"not a whole line"),
        (('{"index": true}\n',), r"not a whole line"),
        (('{"index": -1}\n',), r"not a whole line"),
        (("[]\n",), r"not a whole line"),
    ],
)
def test_results_that_are_not_whole_are_not_merged(tmp_path: Path, texts: tuple[str, ...], why: str) -> None:
    """The file and the line are told, and an old file stays as it was."""
    (tmp_path / "all.jsonl").write_text("old", encoding="utf-8")
    with pytest.raises(LoadError, match=why):
        merge_results(written(tmp_path, *texts), tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl").read_text(encoding="utf-8") == "old"
    assert not [*tmp_path.glob(".*")]


@pytest.mark.parametrize(
    ("second", "other", "why"),
    [
        ([{"output": "c", "key": "c"}], "Is warm", ""),
        (
            [{"output": "c", "key": "a"}],
            "Is warm",
            "part-2.jsonl:1:1: the key 'a' is in .*part-1.jsonl too; two runs are",
        ),
        ([{"output": "c"}], "Is warm", "part-2.jsonl:1:1: this result has no key .*; grade each part with its column"),
        (
            [{"output": "c", "key": "c"}],
            "Is cold",
            "part-2.jsonl:1:1: this is of another rubric or judge; two runs are",
        ),
    ],
)
def test_runs_of_parts_are_merged_by_their_keys(tmp_path: Path, second: list[Any], other: str, why: str) -> None:
    """Files that were split by hand follow one another, numbered anew; one that is graded otherwise is refused."""
    parts = ([{"output": "a", "key": "a"}, {"output": "b", "key": "b"}], "Is warm"), (second, other)
    paths = [tmp_path / f"part-{number}.jsonl" for number in (1, 2)]
    for (rows, rubric), path in zip(parts, paths, strict=True):
        grade_many(rows, rubric, "offline").collect().to_jsonl(path)
    if why:
        with pytest.raises(LoadError, match=why):
            merged(paths)
    else:
        assert [(line["index"], line["key"]) for line in merged(paths)] == [(0, "a"), (1, "b"), (2, "c")]


DATA = [f"Text number {number}: thank you." for number in range(20)]


def parts_of(folder: Path, count: int = 3, rubric: str = "Says thank you", **given: Any) -> list[Path]:
    """Return the files of results of all shards, each graded to its end."""
    texts, judge = given.get("texts", DATA), given.get("judge", "offline")
    paths = [folder / f"{count}-{number}.jsonl" for number in range(1, count + 1)]
    for shard, path in zip(every(count), paths, strict=True):
        grade_many(shard.of(texts), rubric, judge).collect().to_jsonl(path)
    return paths


def spoilt(path: Path, spoil: Callable[[list[str]], list[str]]) -> Path:
    """Return *path*, whose lines are now what *spoil* makes of them."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(spoil(lines)), encoding="utf-8")
    return path


def merged(paths: Sequence[Path]) -> list[Any]:
    """Return the lines of *paths* in one file."""
    out = paths[0].with_name("all.jsonl")
    merge_results(paths, out)
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_whole_shards_are_merged_and_their_marks_left_out(tmp_path: Path) -> None:
    """In any order of the files, empty shards among them, and with judges at other addresses."""
    judges = [Judge("offline", timeout=seconds, params={"api_base": f"http://{seconds}/v1"}) for seconds in (1, 2)]
    for number, shard in enumerate(every(40)):
        grades = grade_many(shard.of(DATA), "Says thank you", judges[number % 2]).collect()
        grades.to_jsonl(tmp_path / f"{number}.jsonl")
    paths = sorted(tmp_path.iterdir(), reverse=True)
    assert [line["index"] for line in merged(paths)] == list(range(20))


def test_a_blank_line_after_an_end_mark_is_no_result(tmp_path: Path) -> None:
    """An editor, or `echo`, puts it there."""
    paths = parts_of(tmp_path)
    spoilt(paths[0], lambda lines: [*lines, "\n", " \n"])
    assert [line["index"] for line in merged(paths)] == list(range(20))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda lines: lines[:-1], "N.jsonl:[0-9]+:1: the file ends without an end mark"),
        (lambda lines: lines[:-3], "before this, candidate|without an end mark"),
        (lambda _: [], "before this, candidate|without an end mark"),
        (lambda lines: [*lines[:-1], lines[-1][:-9]], "not a whole line"),
        (lambda lines: [*lines[:-2], lines[-1]], "before this, candidate|counts [0-9]+ results, and"),
        (lambda lines: [*lines[1:]], "before this, candidate"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "before this, candidate|comes after"),
        (lambda lines: [*lines, lines[0]], "results follow an end mark|not a whole line"),
        (lambda lines: [*lines[:-1], '{"end_of_shard": {"shard": "1/3"}}\n'], "not a whole line"),
    ],
    ids=["mark", "end", "all", "half a mark", "a line before", "the first", "order", "more", "no mark"],
)
@pytest.mark.parametrize("which", [0, 2])
def test_a_shard_that_is_not_whole_is_not_merged(
    tmp_path: Path, spoil: Callable[[list[str]], list[str]], why: str, which: int
) -> None:
    """Whatever is missing, whichever shard it is."""
    paths = parts_of(tmp_path)
    spoilt(paths[which], spoil)
    with pytest.raises(LoadError, match=why.replace("N", f"3-{which + 1}")):
        merged(paths)
    assert not (tmp_path / "all.jsonl").exists()


@examples(25)
@given(st.integers(1, 4), st.data())
def test_no_cut_of_a_file_is_taken_for_whole(
    tmp_path_factory: pytest.TempPathFactory, count: int, data: st.DataObject
) -> None:
    """At any byte, of any of the files."""
    paths = parts_of(tmp_path_factory.mktemp("cut"), count)
    part = data.draw(st.sampled_from(paths))
    whole = part.read_bytes()
    part.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(LoadError):
        merged(paths)


def test_shards_of_another_run_are_not_merged(tmp_path: Path) -> None:
    """Of another rubric, judge, data set or number of shards; or the same twice; or not all."""
    one, two, three = parts_of(tmp_path)

    def refused(*paths: Path) -> str:
        with pytest.raises(LoadError) as error:
            merged(paths)
        return str(error.value)

    def other(name: str, **given: Any) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        return parts_of(folder, **given)[2]

    assert "graded with another rubric than" in refused(one, two, other("rubric", rubric="Says please"))
    assert "graded with another judge than" in refused(one, two, other("judge", judge=Judge("offline", seed=5)))
    assert "graded with another data set than" in refused(one, two, other("data", texts=DATA[:-1]))
    assert "graded with another data set than" in refused(one, two, other("words", texts=[*DATA[:-1], "Other."]))
    assert "this is shard 3/4, and" in refused(one, two, other("count", count=4))
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(two.read_bytes())
    assert f"this is shard 2/3, and so is {two}; give it once" in refused(one, two, three, copy)
    assert "shard 2/3 is not among the files" in refused(one, three)
    assert merged([one, two, three])


def test_what_was_not_read_to_its_end_has_no_mark() -> None:
    """Neither the results that were read so far, nor a part of them, nor what is not a shard."""
    stream = grade_many(Shard(1, 2).of(DATA), "Says thank you", "offline")
    for _ in stream:
        assert stream.end_mark == ""
        break
    whole = grade_many(Shard(1, 2).of(DATA), "Says thank you", "offline")
    grades = whole.collect()
    assert json.loads(whole.end_mark)["end_of_shard"]["results"] == len(grades)
    assert "end_of_shard" not in grades[:2].to_jsonl()
    assert "end_of_shard" not in grade_many(DATA, "Says thank you", "offline").collect().to_jsonl()


def test_shards_of_rows_with_columns_of_other_names_have_marks_too() -> None:
    """Whether the rows come at once or one by one."""
    rows = [{"answer": f"Text number {number}"} for number in range(4)]

    async def each() -> AsyncIterator[dict[str, str]]:
        for row in rows:
            yield row

    async def marked(candidates: Any) -> str:
        stream = agrade_many(Shard(1, 2).of(candidates, columns={"output": "answer"}), "Is a text", "offline")
        await stream.collect()
        return stream.end_mark

    assert asyncio.run(marked(each())) == asyncio.run(marked(rows)) != ""


def test_one_place_holds_one_candidate() -> None:
    """As text for people, too."""
    assert repr(Placed(3, "a")) == "Placed(index=3, item='a')"
