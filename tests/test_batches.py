"""Grading through a vendor's batches: all asks of a round in one file, and nothing sent twice."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rubric import DefinitionError, Grade, Judge, Jury, Rubric, Ungraded, ask
from rubric.drivers.batches import grade_in_batches
from tests.batch_server import Batching, BatchServer
from tests.judging import Judging
from tests.sendables import KEY

CANDIDATES = ["Open the settings.", "Nobody knows.", "Ask your bank."]
RUBRIC = Rubric().expects("Says what to do", id="a").rates("Is clear", id="b")
SAYS = Judging({"Says what to do": True, "Is clear": 7, "First?": 0.9, "Second?": 0.2})


class StopError(Exception):
    """What ends a run in the middle."""


def judge_at(base: str, **options: Any) -> Judge:
    """Return a judge that asks at *base*."""
    return Judge("openai/gpt-4o-mini", params={"api_base": base, "api_key": KEY}, **options)


def run(held: Batching, path: Path, rubric: Rubric = RUBRIC, *, bench: Any = None, sleep: Any = None) -> list[Any]:
    """Return the results of grading three candidates."""

    async def no_sleep(_: float) -> None:
        await asyncio.sleep(0)

    with BatchServer(held) as server:
        judge = (bench or (lambda one: one))(judge_at(server.base))
        return asyncio.run(grade_in_batches(CANDIDATES, rubric, judge, path, sleep=sleep or no_sleep))


def test_all_asks_of_a_round_are_one_batch(tmp_path: Path) -> None:
    """Three candidates and two criteria are six requests in one file; the answers find their asks."""
    held = Batching(SAYS)
    results = run(held, tmp_path / "batches.json")
    assert [result.score for result in results] == pytest.approx([0.85] * 3)
    assert (len(held.batches), len(held.answered)) == (1, 6)
    assert all(isinstance(result, Grade) and result.usage.calls == 2 for result in results)


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
            results = asyncio.run(grade_in_batches(CANDIDATES, tree, judge, tmp_path / name, poll=0))
        assert (len(held.batches), [r.outcome.score for r in results]) == (rounds, [0.5] * 3)


def test_a_run_that_was_ended_goes_on_by_the_batch(tmp_path: Path) -> None:
    """Nothing is sent again; and a run after the end reads the same answers for nothing."""
    held, path = Batching(SAYS, looks=3), tmp_path / "batches.json"
    with BatchServer(held) as server:

        async def stop(_: float) -> None:
            raise StopError

        def go(**options: Any) -> list[Any]:
            return asyncio.run(grade_in_batches(CANDIDATES, RUBRIC, judge_at(server.base), path, poll=0, **options))

        with pytest.raises(StopError):
            go(sleep=stop)
        first, again = go(), go()
    assert (len(held.batches), len(held.answered)) == (1, 6)
    assert first == again
    assert KEY not in path.read_text()


def test_a_batch_whose_id_nobody_heard_is_found_by_its_mark(tmp_path: Path) -> None:
    """The connection broke after it was created: this run has no answers, the next one takes it up."""
    held, path = Batching(SAYS, deaf=True), tmp_path / "batches.json"
    with BatchServer(held) as server:

        def go() -> list[Any]:
            return asyncio.run(grade_in_batches(CANDIDATES, RUBRIC, judge_at(server.base), path, poll=0))

        assert all(isinstance(result, Ungraded) and result.failures[0].in_doubt for result in go())
        held.deaf = False
        assert all(isinstance(result, Grade) for result in go())
    assert (len(held.batches), len(held.answered)) == (1, 6)


@pytest.mark.parametrize("ends", ["expired", "completed", "cancelled"])
def test_requests_without_an_answer_are_failures_and_are_sent_again_by_the_next_run(tmp_path: Path, ends: str) -> None:
    """No score is made up for them, and those that were answered are not paid for again."""
    held, path = Batching(SAYS, ends=ends, skipped=2), tmp_path / "batches.json"
    with BatchServer(held) as server:

        def go() -> list[Any]:
            judge = judge_at(server.base, repairs=0)
            return asyncio.run(grade_in_batches(CANDIDATES, RUBRIC, judge, path, poll=0))

        first = go()
        held.skipped = 0
        second = go()
    assert [type(result) for result in first] == [Ungraded, Grade, Grade]
    assert [type(result) for result in second] == [Grade] * 3
    assert len(held.answered) == len({*held.answered}) == 6


def test_other_judges_and_other_files_are_refused(tmp_path: Path) -> None:
    """Before anything is sent."""
    path = tmp_path / "batches.json"
    for judge in (Judge("offline"), Judge(lambda _: "")):
        with pytest.raises(DefinitionError, match="no batches"):
            asyncio.run(grade_in_batches(CANDIDATES, RUBRIC, judge, path))
    path.write_text(json.dumps({"a": 1}))
    with pytest.raises(DefinitionError, match="no list of batches"):
        asyncio.run(grade_in_batches(CANDIDATES, RUBRIC, Judge("openai/gpt-4o-mini"), path))


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.test_batches import CANDIDATES, RUBRIC, judge_at
from rubric.drivers.batches import grade_in_batches

asyncio.run(grade_in_batches(CANDIDATES, RUBRIC, judge_at(sys.argv[1]), Path(sys.argv[2]), poll=0.01))
"""


def test_a_process_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """`kill -9` once the batch is created: the next process waits for that one, and reads all of it."""
    held, path = Batching(SAYS, looks=10**9), tmp_path / "batches.json"
    with BatchServer(held) as server:
        process = subprocess.Popen([sys.executable, "-c", KILLED, server.base, str(path)])
        while not any(batch["looks"] for batch in held.batches.values()):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        process.wait()
        held.looks = 0
        results = asyncio.run(grade_in_batches(CANDIDATES, RUBRIC, judge_at(server.base), path, poll=0))
    assert all(isinstance(result, Grade) for result in results)
    assert (len(held.batches), len(held.answered)) == (1, 6)
