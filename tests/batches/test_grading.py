"""Grading through a vendor's batches: all asks of a round in one file, and nothing sent or paid for twice."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rubric import DefinitionError, Grade, Judge, Jury, Rubric, Ungraded, ask, grade_many
from rubric.batches.grading import acancel_batches, agrade_in_batches, cancel_batches, grade_in_batches
from rubric.engine import Shard
from rubric.engine.budget import Budget
from rubric.models.token_counts import worst_cost
from rubric.results.collection import Grades
from rubric.store.store import Store
from rubric.values.judges import Cascade
from tests.batch_server import Batching, BatchServer
from tests.command_line import run as run_command
from tests.judging import JudgeLike
from tests.places import ROOT
from tests.sendables import KEY, ask_of

CANDIDATES = ["Open the settings.", "Nobody knows.", "Ask your bank."]
RUBRIC = Rubric().expects("Says what to do", id="a").rates("Is clear", id="b")
SAYS = JudgeLike({"Says what to do": True, "Is clear": 7, "First?": 0.9, "Second?": 0.2})


def judge_at(base: str, **options: Any) -> Judge:
    """Return a judge that asks at *base*."""
    return Judge("openai/gpt-4o-mini", params={"api_base": base, "api_key": KEY}, **options)


def graded(base: str, path: Path, rubric: Rubric = RUBRIC, *, bench: Any = None, **options: Any) -> Grades:
    """Return the results of grading three candidates."""
    judge = judge_at(base, max_tokens=100)
    return grade_in_batches(CANDIDATES, rubric, bench(judge) if bench else judge, path, poll=0, **options)


def run(held: Batching, path: Path, *args: Any, **options: Any) -> Grades:
    """Return the same, at a server of its own."""
    with BatchServer(held) as server:
        return graded(server.base, path, *args, **options)


def test_all_asks_of_a_round_are_one_batch(tmp_path: Path) -> None:
    """Three candidates and two criteria are six requests in one file; the answers find their asks."""
    held = Batching(SAYS)
    results = run(held, tmp_path / "batches.json")
    assert [result.outcome.score for result in results] == pytest.approx([0.85] * 3)
    assert [result.index for result in results] == [0, 1, 2]
    assert (len(held.batches), len(held.answered)) == (1, 6)
    assert all(isinstance(result, Grade) and result.usage.calls == 2 for result in results)


def test_a_shard_is_graded_in_batches(tmp_path: Path) -> None:
    """Each result has its place in the whole data set."""
    places = list[int | None]()
    with BatchServer(Batching(SAYS)) as server:
        for number in (1, 2):
            shard, path = Shard(number, 2).of(CANDIDATES), tmp_path / f"{number}.json"
            results = grade_in_batches(shard, RUBRIC, judge_at(server.base), path, poll=0)
            assert [result.index for result in results] == [placed.index for placed in shard]  # type: ignore[union-attr]
            assert "end_of_shard" in results.to_jsonl()
            places += [result.index for result in results]
    assert sorted(place for place in places if place is not None) == [0, 1, 2]


def test_columns_are_named_for_batches(tmp_path: Path) -> None:
    """They are refused before anything is sent."""
    rows = [{"answer": text} for text in CANDIDATES]
    with BatchServer(held := Batching(SAYS)) as server:
        arguments = (rows, RUBRIC, judge_at(server.base), tmp_path / "batches.json")
        with pytest.raises(DefinitionError, match="'answer' looks like a field"):
            grade_in_batches(*arguments, poll=0)
        assert held.batches == {}
        assert len(grade_in_batches(*arguments, columns={"output": "answer"}, poll=0).graded) == 3


def test_the_line_for_half_the_price_runs_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option that the command lacks is answered in Python, with what was typed beside it; so is an argument."""
    monkeypatch.chdir(tmp_path)
    Path("r.yaml").write_text("criteria: [Says what to do]\n")
    Path("rows.csv").write_text("id,answer\n" + "".join(f"{n},{text}\n" for n, text in enumerate(CANDIDATES)))
    typed = "grade-many r.yaml rows.csv -j openai/gpt-4o-mini --batch --column output=answer --column key=id"
    beside = ("--store", "kept.db", "--max-cost", "2", "--out", "out.jsonl", "--concurrency", "2")
    said = run_command(*typed.split(), *beside).stderr
    line = re.search(r"such as (python -c \"[^\"]*\")", said)
    assert line
    assert all(word in said for word in ("in flight, such as --concurrency", "it is without --concurrency 2; see"))
    with pytest.raises(DefinitionError, match="requests in flight are concurrency=8") as told:
        grade_many(["Ask your bank."], RUBRIC, "openai/gpt-4o-mini", batch=True)  # type: ignore[call-arg]
    code = str(told.value).partition("write ")[2].partition("; requests")[0]
    with BatchServer(held := Batching(SAYS, looks=0)) as server:
        env = {**os.environ, "OPENAI_BASE_URL": server.base, "OPENAI_API_KEY": KEY, "PYTHONPATH": str(ROOT)}
        bash = line[1].replace("python", shlex.quote(sys.executable), 1)
        done = subprocess.run(["bash", "-c", bash], env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, len(held.batches)) == (0, 1), done.stderr
        assert [json.loads(row)["key"] for row in Path("out.jsonl").read_text().splitlines()] == ["0", "1", "2"]
        for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
            monkeypatch.setenv(name, env[name])
        exec(code, {"rubric": RUBRIC})  # noqa: S102 - the cure that was printed
        assert len(held.batches) == 2


def test_a_batch_costs_what_batches_do(tmp_path: Path) -> None:
    """Half of what the same tokens cost one by one."""
    (first, *_) = run(Batching(SAYS), tmp_path / "batches.json")
    assert first.usage.cost == pytest.approx(2 * (10 * 0.75e-7 + 5 * 3e-7))


def test_early_stops_are_off_and_trees_take_a_round_a_question(tmp_path: Path) -> None:
    """Five votes of three candidates at once; a tree asked ahead is one round."""
    held = Batching(SAYS)
    run(held, tmp_path / "a", Rubric().expects("Says what to do"), bench=lambda one: Jury(one, 5, early_stop=True))
    assert (len(held.batches), len(held.answered)) == (1, 15)
    tree = Rubric.deciding(ask("First?").yes(ask("Second?").yes(1.0).no(0.5)).no(0.0))
    for name, speculate, rounds in (("b", False, 2), ("c", True, 1)):
        held = Batching(SAYS)
        with BatchServer(held) as server:
            judge = judge_at(server.base, speculate=speculate)
            results = grade_in_batches(CANDIDATES, tree, judge, tmp_path / name, poll=0)
        assert (len(held.batches), [r.outcome.score for r in results]) == (rounds, [0.5] * 3)


def test_more_requests_than_a_batch_may_have_are_several(tmp_path: Path) -> None:
    """All of one round, at once."""
    held = Batching(SAYS)
    assert all(isinstance(result, Grade) for result in run(held, tmp_path / "batches.json", size=4))
    assert (len(held.batches), len(held.answered)) == (2, 6)


# -- going on --------------------------------------------------------------------------------------------------


def test_a_run_that_was_cancelled_goes_on_by_the_batch(tmp_path: Path) -> None:
    """Nothing is sent again; and a run after the end reads the same answers for nothing."""
    held, path = Batching(SAYS, looks=10**9), tmp_path / "batches.json"

    async def begun(base: str) -> None:
        task = asyncio.create_task(agrade_in_batches(CANDIDATES, RUBRIC, judge_at(base), path, poll=0))
        await asyncio.to_thread(held.looked.wait, 60)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    with BatchServer(held) as server:
        asyncio.run(begun(server.base))
        held.looks = 0
        first, again = (grade_in_batches(CANDIDATES, RUBRIC, judge_at(server.base), path, poll=0) for _ in range(2))
    assert (len(held.batches), len(held.answered)) == (1, 6)
    assert list(first) == list(again)
    assert KEY not in path.read_text()


@pytest.mark.parametrize("others", [0, 3])
def test_a_batch_whose_id_nobody_heard_is_found_by_its_mark(tmp_path: Path, others: int) -> None:
    """The connection broke after it was created: this run has no answers, the next one takes it up, from any page."""
    held, path = Batching(SAYS, deaf=True, page=2), tmp_path / "batches.json"
    with BatchServer(held) as server:
        first = graded(server.base, path)
        assert all(isinstance(result, Ungraded) and result.failures[0].in_doubt for result in first)
        held.deaf = False
        for _ in range(others):
            held.create({"endpoint": "", "input_file_id": "file-0"})
        assert all(isinstance(result, Grade) for result in graded(server.base, path))
    assert (len(held.batches), len(held.answered)) == (1 + others, 6)


@pytest.mark.parametrize("ends", ["expired", "completed", "cancelled"])
def test_requests_without_an_answer_are_failures_and_are_sent_again_by_the_next_run(tmp_path: Path, ends: str) -> None:
    """No score is made up for them, nobody pays for them, and those that were answered are not sent again."""
    held, path = Batching(SAYS, ends=ends, skipped=2), tmp_path / "batches.json"
    with BatchServer(held) as server:
        first = graded(server.base, path)
        assert len(held.batches) == 1
        held.skipped = 0
        second = graded(server.base, path)
    assert [type(result) for result in first] == [Ungraded, Grade, Grade]
    assert first[0].usage.cost == 0
    assert f"is {ends}, without an answer" in str(first[0].failures[0])
    assert [type(result) for result in second] == [Grade] * 3
    assert len(held.answered) == len({*held.answered}) == 6


def test_what_the_queue_has_no_room_for_waits_for_the_others(tmp_path: Path) -> None:
    """Three batches and room for one: each is sent again when those before it are through."""
    held = Batching(SAYS, room=1)
    assert all(isinstance(result, Grade) for result in run(held, tmp_path / "batches.json", size=2))
    assert len(held.answered) == len({*held.answered}) == 6
    alone = Batching(SAYS, room=0)
    results = run(alone, tmp_path / "alone.json")
    assert [result.failures[0].kind for result in results] == ["rate_limited"] * 3
    assert len(alone.batches) == 1


def test_batches_can_be_cancelled(tmp_path: Path) -> None:
    """What was answered by then counts, and the next run sends the rest."""
    held, path = Batching(SAYS, looks=10**9), tmp_path / "batches.json"
    with BatchServer(held) as server:
        judge = judge_at(server.base, max_tokens=100)

        async def main() -> int:
            task = asyncio.create_task(agrade_in_batches(CANDIDATES, RUBRIC, judge, path, poll=0))
            await asyncio.to_thread(held.looked.wait, 60)
            held.skipped = 4
            cancelled = await acancel_batches(path, Jury(judge, 3))
            assert [type(result) for result in await task] == [Ungraded, Ungraded, Grade]
            return cancelled

        assert asyncio.run(main()) == 1
        assert cancel_batches(path, judge) == 0
        held.looks, held.skipped = 0, 0
        assert all(isinstance(result, Grade) for result in graded(server.base, path))
    assert len(held.answered) == len({*held.answered}) == 6


KILLED = """
import sys
from pathlib import Path
from tests.batches.test_grading import graded

graded(sys.argv[1], Path(sys.argv[2]), store=sys.argv[3])
"""


def test_a_process_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """`kill -9` once the batch is created: the next process waits for that one, and reads all of it."""
    held, path, store = Batching(SAYS, looks=10**9), tmp_path / "batches.json", tmp_path / "replies.db"
    with BatchServer(held) as server:
        process = subprocess.Popen([sys.executable, "-c", KILLED, server.base, str(path), str(store)])
        assert held.looked.wait(60)
        process.kill()
        process.wait()
        held.looks = 0
        results = graded(server.base, path, store=store)
    assert all(isinstance(result, Grade) for result in results)
    assert (len(held.batches), len(held.answered)) == (1, 6)


# -- the store and the budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize("in_doubt", ["retry", "hold"])
def test_a_store_keeps_each_answer_once_and_serves_it(tmp_path: Path, in_doubt: Any) -> None:
    """Also to a run that knows nothing of the batches, and to one whose candidates are more."""
    held = Batching(SAYS)
    with BatchServer(held) as server, Store(tmp_path / "replies.db", in_doubt=in_doubt) as store:
        judge = judge_at(server.base)
        some = grade_in_batches(CANDIDATES[:2], RUBRIC, judge, tmp_path / "a", store=store, poll=0)
        every = grade_in_batches(CANDIDATES, RUBRIC, judge, tmp_path / "b", store=store, poll=0)
    assert [result.usage.calls for result in [*some, *every]] == [2, 2, 0, 0, 2]
    assert len(held.answered) == len({*held.answered}) == 6
    with Store(tmp_path / "replies.db", mode="replay") as store:
        again = grade_in_batches([*CANDIDATES, "Another."], RUBRIC, judge, tmp_path / "c", store=store, poll=0)
    assert [result.outcome for result in again[:3]] == [result.outcome for result in every]
    assert [failure.kind for failure in again[3].failures] == ["replay"] * 2
    assert not (tmp_path / "c").exists()


def test_the_same_ask_twice_is_paid_for_once(tmp_path: Path) -> None:
    """Two candidates that are the same text, with a store and without."""
    for name, store in (("a", None), ("b", tmp_path / "replies.db")):
        held = Batching(SAYS)
        with BatchServer(held) as server:
            results = grade_in_batches(
                ["Yes."] * 2, RUBRIC, judge_at(server.base), tmp_path / name, store=store, poll=0
            )
        assert len(held.answered) == 2
        assert [result.usage.calls for result in results] == [2, 0]


def test_a_budget_is_kept_round_by_round(tmp_path: Path) -> None:
    """What does not fit waits until it is known what the rest has taken; in the end all fits."""
    held = Batching(SAYS)
    with BatchServer(held) as server:
        worst = worst_cost(ask_of(judge_at(server.base), shared="x" * 2000))
        assert worst is not None
        budget = Budget(cost=worst * 3)
        with pytest.warns(UserWarning, match=r"for fewer, write budget=Budget\(cost=[\d.]+\)$"):
            results = graded(server.base, tmp_path / "batches.json", budget=budget)
    assert all(isinstance(result, Grade) for result in results)
    assert 1 < len(held.batches) <= 6
    assert budget.spent.cost == pytest.approx(sum(result.usage.cost or 0 for result in results))
    assert (budget.spent.calls, budget.held.calls) == (6, 0)


def test_a_budget_that_takes_several_rounds_is_told_before_the_first(tmp_path: Path) -> None:
    """A round may take a day; either cure makes one of them, and there is no word where all fits."""
    held = Batching(SAYS)
    with BatchServer(held) as server:

        def of_night(judge: Judge, budget: Budget) -> Grades:
            path = tmp_path / f"{len(held.batches)}.json"
            return grade_in_batches(CANDIDATES, RUBRIC, judge, path, poll=0, budget=budget)

        with pytest.warns(UserWarning, match="rounds or more") as told:
            of_night(judge_at(server.base), Budget(cost=0.0016))
        (said,) = {str(each.message) for each in told}
        rounds = int(re.search(r"of 6 requests .* that is (\d+) rounds or more", said)[1])  # type: ignore[index]
        assert 1 < rounds <= (before := len(held.batches))
        longest, budget = re.search(r"give the judge max_tokens=(\d+), or write budget=(.*)", said).groups()  # type: ignore[union-attr]
        of_night(judge_at(server.base, max_tokens=int(longest)), Budget(cost=0.0016))
        of_night(judge_at(server.base), eval(budget))  # noqa: S307 - the cure that was printed
        assert len(held.batches) == before + 2


def test_a_row_without_an_output_is_ungraded_in_batches_too(tmp_path: Path) -> None:
    """The others are graded, each in its place."""
    rows = [
        {"output": text, "key": key} for key, text in zip("abcd", [CANDIDATES[0], None, *CANDIDATES[1:]], strict=True)
    ]
    with BatchServer(Batching(SAYS)) as server:
        found = grade_in_batches([*rows, 7], RUBRIC, judge_at(server.base), tmp_path / "batches.json", poll=0)
    assert [(each.index, each.key, isinstance(each, Grade)) for each in found] == [
        (0, "a", True), (1, "b", False), (2, "c", True), (3, "d", True), (4, "", False),
    ]  # fmt: skip
    assert "candidates[1].output: expected text, got nothing (None)" in str(found[1])


def test_what_does_not_fit_is_refused_and_not_sent(tmp_path: Path) -> None:
    """Four calls of six; what they found is kept, and the next run sends the two others alone."""
    held, path, budget = Batching(SAYS), tmp_path / "batches.json", Budget(calls=4)
    with BatchServer(held) as server:
        results = graded(server.base, path, budget=budget)
        assert [type(result) for result in results] == [Grade, Grade, Ungraded]
        assert {failure.kind for failure in results[2].failures} == {"budget"}
        assert (len(held.answered), budget.spent.calls) == (4, 4)
        second = Budget(calls=6)
        assert all(isinstance(result, Grade) for result in graded(server.base, path, budget=second))
    assert (len(held.answered), second.spent.calls) == (6, 6)  # those of the first run were charged, too


def test_what_an_earlier_run_has_sent_is_charged_at_the_agreed_price(tmp_path: Path) -> None:
    """Also of a model that no list has."""
    with BatchServer(Batching(SAYS)) as server:
        judge = Judge("openai/made-up-by-us", params={"api_base": server.base, "api_key": KEY})
        for _ in range(2):
            budget = Budget(cost=1.0, prices={judge.name: (1.0, 4.0)})
            grade_in_batches(CANDIDATES, RUBRIC, judge, tmp_path / "batches.json", budget=budget, poll=0)
            assert budget.spent.cost == pytest.approx(6 * (10 + 4 * 5) / 10**6)


def test_a_run_that_is_cancelled_is_charged_what_it_has_sent(tmp_path: Path) -> None:
    """The vendor goes on without us."""
    held, budget = Batching(SAYS, looks=10**9), Budget(calls=10)

    async def main(base: str) -> None:
        path = tmp_path / "batches.json"
        judging = agrade_in_batches(CANDIDATES, RUBRIC, judge_at(base), path, budget=budget, poll=0)
        task = asyncio.create_task(judging)
        await asyncio.to_thread(held.looked.wait, 60)
        task.cancel()
        await asyncio.wait([task])

    with BatchServer(held) as server:
        asyncio.run(main(server.base))
    assert (budget.spent.calls, budget.held.calls) == (6, 0)


def test_a_batch_that_cannot_be_created_costs_nothing(tmp_path: Path) -> None:
    """Nobody is there."""
    budget, judge = Budget(calls=10), judge_at("http://127.0.0.1:9/v1", retries=0)
    results = grade_in_batches(CANDIDATES, RUBRIC, judge, tmp_path / "batches.json", budget=budget)
    assert {failure.kind for result in results for failure in result.failures} == {"transport"}
    assert (budget.spent.calls, budget.held.calls) == (0, 0)


# -- what is refused -------------------------------------------------------------------------------------------


def test_other_judges_candidates_and_files_are_refused(tmp_path: Path) -> None:
    """Before anything is sent, whoever would be asked only later among them."""
    path = tmp_path / "batches.json"
    benches: list[Any] = [
        "offline",
        lambda _: "",
        Cascade("openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5", "fails"),
    ]
    for bench in benches:
        with pytest.raises(DefinitionError, match="no batches"):
            grade_in_batches(CANDIDATES, RUBRIC, bench, path)
    for options in ({"size": 0}, {"poll": -1}, {"size": True}):
        with pytest.raises(DefinitionError):
            grade_in_batches(CANDIDATES, RUBRIC, "openai/gpt-4o-mini", path, **options)
    for text in (json.dumps({"a": 1}), "[]", "no JSON", json.dumps({"batches": [], "format": 9})):
        path.write_text(text)
        with pytest.raises(DefinitionError, match="not a list of batches"):
            grade_in_batches(CANDIDATES, RUBRIC, "openai/gpt-4o-mini", path)
