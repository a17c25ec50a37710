"""Attacks on many candidates at once: cancelled neighbours, judges with a memory, files that are not what they seem."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from rubric import DefinitionError, Grade, Judge, Rubric, Ungraded
from rubric.driving import Failure, Reply
from rubric.engine.bulk import agrade_many, grade_many
from rubric.results import Scored
from rubric.store import StoreError
from rubric.store.cache_key import Request, request_of
from rubric.store.database import Busy, Claim, Database, Yours
from rubric.store.schema import connect
from rubric.store.store import Store
from rubric.values.requests import Ask
from tests.batch_server import Batching, BatchServer
from tests.judging import JudgeLike
from tests.store.test_cache_key import ask

POLITE = Rubric().expects("Is polite", id="polite")
YES = json.dumps({"reason": "It is.", "verdict": True})
Messages = list[dict[str, Any]]


def failure_of(result: Grade | Ungraded) -> Failure:
    """Return the one failure of *result*."""
    assert isinstance(result, Ungraded)
    (failure,) = result.failures
    return failure


# -- whoever is cancelled is alone in it ---------------------------------------------------------------------


def test_a_stream_that_is_closed_takes_no_other_with_it(file: Path) -> None:
    """Who asks for what somebody else is just giving up asks for it anew, and is not cancelled too."""
    asked = asyncio.Event()

    async def slow_to_die(_: Messages) -> str:
        if not asked.is_set():
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.05)
        return YES

    async def main() -> list[float | None]:
        with Store(file) as store:
            first, second = (
                agrade_many(["Hello."], POLITE, Judge(slow_to_die, identity="v1"), store=store) for _ in range(2)
            )
            reading = asyncio.create_task(first.collect())
            await asked.wait()
            closing = asyncio.create_task(first.aclose())
            await asyncio.sleep(0.01)
            scores = [result.outcome.score async for result in second]
            await asyncio.gather(closing, reading)
            return scores

    assert asyncio.run(main()) == [1.0]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_judge_that_gives_up_by_itself_ends_no_stream(is_async: bool) -> None:
    """A client that raises `CancelledError` though nobody cancelled it is a failure of one candidate; it is in doubt."""

    def gives_up(messages: Messages) -> str:
        if "Go away" in messages[-1]["content"]:
            raise asyncio.CancelledError
        return YES

    async def on_the_loop(messages: Messages) -> str:
        return gives_up(messages)

    judge = Judge(on_the_loop if is_async else gives_up)
    first, second, third = grade_many(["Hello.", "Go away!", "Thank you."], POLITE, judge)
    assert (first.outcome.score, third.outcome.score) == (1.0, 1.0)
    assert (failure_of(second).kind, failure_of(second).in_doubt) == ("exception", True)


# -- which function it is --------------------------------------------------------------------------------------


def logging() -> Callable[[Messages], str]:
    """Return a judge that keeps a log."""
    log: list[Messages] = []

    def judge(messages: Messages) -> str:
        log.append(messages)
        return YES

    return judge


def counting() -> Callable[[Messages], str]:
    """Return a judge that counts."""
    calls = 0

    def judge(_: Messages) -> str:
        nonlocal calls
        calls += 1
        return YES

    return judge


@pytest.mark.parametrize("make", [logging, counting])
def test_a_judge_that_keeps_count_is_the_same_in_the_next_run(
    make: Callable[[], Callable[[Messages], str]], file: Path
) -> None:
    """What a function does to what it closes over makes no other judge of it, so nothing is paid for twice."""
    texts = [f"Hello, {n}." for n in range(6)]
    first, second = (
        grade_many(texts, POLITE, Judge(make(), identity="v1"), store=file, concurrency=2).collect() for _ in range(2)
    )
    assert (first.usage.calls, second.usage.calls) == (6, 0)


class Client:
    """A client of one's own."""

    def __init__(self, model: str) -> None:
        self.model = model

    def ask(self, _: Messages) -> str:
        return json.dumps({"reason": f"{self.model} says so.", "verdict": True})


def test_functions_around_clients_of_other_models_are_other_judges(file: Path) -> None:
    """A stored reply of one model is never served as the other's: the user says which one answers."""

    def around(client: Client) -> Callable[[Messages], str]:
        def judge(messages: Messages) -> str:
            return client.ask(messages)

        return judge

    for model in ("small", "large"):
        (result,) = grade_many(["Hello."], POLITE, Judge(around(Client(model)), identity=model), store=file)
        assert isinstance(result, Grade)
        finding = result["polite"]
        assert isinstance(finding, Scored)
        assert finding.reason == f"{model} says so."


def test_a_setting_that_only_looks_like_an_address_is_part_of_the_key() -> None:
    """With the address given elsewhere, `endpoint` goes into the request like any other parameter."""
    given = [{"api_base": "http://localhost:1/v1"} | more for more in ({}, {"endpoint": "a"}, {"endpoint": "b"})]
    keys = {request_of(ask(Judge("openai/gpt-5.6", via="http", params=params))).key for params in given}
    assert len(keys) == 3


# -- batches -------------------------------------------------------------------------------------------------

_IN_BATCHES = """
import sys
from rubric import Judge, Rubric
from rubric.batches.grading import grade_in_batches
from rubric import Store

folder, base = sys.argv[1:]
judge = Judge("openai/gpt-4o-mini", params={"api_base": base, "api_key": "none"})
with Store(f"{folder}/replies.db", in_doubt="hold") as store:
    texts = [f"Hello, {n}." for n in range(1000)]
    grades = grade_in_batches(texts, Rubric().expects("Is polite"), judge, f"{folder}/list.json", store=store, poll=0.01)
    print(len(grades.passed))
"""


def _calls(file: Path) -> list[str]:
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        return [state for (state,) in connection.execute("SELECT state FROM calls")]
    return []


def test_who_dies_while_looking_into_the_store_leaves_nothing_in_doubt(tmp_path: Path) -> None:
    """Before its batch is created nothing has left, so a store that holds what is in doubt holds nothing back."""
    with BatchServer(Batching(JudgeLike({"Is polite": True}))) as server:
        command = [sys.executable, "-c", _IN_BATCHES, str(tmp_path), server.base]
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while first.poll() is None and not _calls(tmp_path / "replies.db"):
            time.sleep(0.001)
        first.kill()
        first.wait()
        second = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (second.stdout, second.stderr) == ("1000\n", "")


# -- files ---------------------------------------------------------------------------------------------------


def graded(path: Path, content: bytes) -> list[str]:
    """Return what becomes of each candidate in a file with *content*: `graded`, or why it is not."""
    path.write_bytes(content)
    results = grade_many(path, POLITE, lambda _: YES).collect()
    return ["graded" if isinstance(result, Grade) else failure_of(result).message for result in results]


def test_a_line_that_is_no_utf_8_costs_no_more_than_itself(tmp_path: Path) -> None:
    """The lines before and after it are graded, and it says where it stands and what helps."""
    said = graded(tmp_path / "a.jsonl", b'"Hello."\n"caf\xe9"\n"Thank you."\n')
    assert said == ["graded", "candidates[1]: a.jsonl:2: no text in UTF-8; save the file in that encoding", "graded"]


def test_a_row_that_is_no_utf_8_costs_no_more_than_itself(tmp_path: Path) -> None:
    """Spreadsheets like to save in an encoding of their own."""
    said = graded(tmp_path / "a.csv", b"output\nHello.\ncaf\xe9\nThank you.\n")
    assert said == ["graded", "candidates[1]: a.csv:3: no text in UTF-8; save the file in that encoding", "graded"]


def test_a_text_that_a_comma_cuts_is_not_graded_as_half_of_itself(tmp_path: Path) -> None:
    """A row with more cells than there are names has lost its quotes."""
    said = graded(tmp_path / "a.csv", b'output\nHello, you fool!\n"Hello, friend."\n')
    assert said == ["candidates[0]: a.csv:2: 2 cells under 1 names; put texts that are cut into quotes", "graded"]


def test_a_long_text_in_csv_is_graded(tmp_path: Path) -> None:
    """Python's own reader stops at 128 KiB."""
    assert graded(tmp_path / "a.csv", b"output\n" + b"word " * 40_000 + b"\n") == ["graded"]


def test_a_quote_that_is_never_closed_says_where(tmp_path: Path) -> None:
    """The error names file, line and cure."""
    with pytest.raises(DefinitionError, match=r"a\.csv:3: .* into quotes"):
        graded(tmp_path / "a.csv", b'output\nHello.\n"Hello" you\n')


def test_a_file_that_is_no_parquet_says_so(tmp_path: Path) -> None:
    """The error names the file, not only what the reader of Parquet makes of its bytes."""
    with pytest.raises(DefinitionError, match=r"a\.parquet cannot be read as Parquet"):
        graded(tmp_path / "a.parquet", b"Hello.")


def test_what_pandas_has_no_value_for_is_missing() -> None:
    """`NA`, its own sign, is not text: a field without value is left out, and an output without value is not a candidate."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"output": ["Hello.", None], "reference": [None, "Hi."]}, dtype="string")
    first, second = grade_many(frame, POLITE, lambda _: YES)
    assert isinstance(first, Grade)
    assert failure_of(second).message == "candidates[1].output: expected text, got nothing (<NA>)"


# -- what was opened is closed -------------------------------------------------------------------------------


def test_a_stream_that_is_never_read_closes_the_store_that_it_opened(file: Path) -> None:
    """Leaving `with` is enough; nothing holds the file any more."""
    with grade_many(["Hello."], POLITE, Judge(lambda _: YES, identity="v1"), store=file) as stream:
        pass
    with pytest.raises(StoreError, match="closed"):
        stream.collect()


def test_an_async_stream_that_is_never_read_closes_the_store_that_it_opened(file: Path) -> None:
    """So it is with `async with`."""

    async def main() -> None:
        async with agrade_many(["Hello."], POLITE, Judge(lambda _: YES, identity="v1"), store=file) as stream:
            pass
        with pytest.raises(StoreError, match="closed"):
            await stream.collect()

    asyncio.run(main())


# -- forks ---------------------------------------------------------------------------------------------------

_FORKING = """
import asyncio, itertools, os, sys, warnings
from rubric import Budget, Limits, Rubric, grade_many

warnings.simplefilter("ignore", DeprecationWarning)  # that other threads are there is the point
polite = Rubric().expects("Is polite")
gates = {"limits": Limits(concurrency=2), "budget": Budget(calls=30)}

async def judge(messages):
    if os.getpid() == parent and gates["budget"].spent.calls:
        await asyncio.Event().wait()
    return '{"reason": "", "verdict": true}'

parent = os.getpid()
stream = iter(grade_many((f"Hello, {n}." for n in itertools.count()), polite, judge, **gates))
next(stream)
while gates["budget"].held.calls < 2:
    pass
if child := os.fork():
    sys.exit(os.waitpid(child, 0)[1])
grades = grade_many([f"Thank you, {n}." for n in range(10)], polite, judge, **gates).collect()
os._exit(len(grades.ungraded))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_does_not_wait_for_what_its_parent_has_under_way() -> None:
    """Limits and budgets that were shared at the fork let the child's own requests through."""
    outcome = subprocess.run([sys.executable, "-c", _FORKING], capture_output=True, text=True, timeout=60, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, "")


# -- calls that change hands -----------------------------------------------------------------------------------


@define
class Session:
    """One of several processes that share a store, without the process."""

    file: Path
    database: Database = field(init=False)

    def __attrs_post_init__(self) -> None:
        connection = connect(self.file, 5.0)
        self.database = Database(connection, connection, "read-write", "hold")
        self.database.begin()

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def claim(self, name: str) -> Claim:
        """Claim the request with *name*."""
        return self.database.claim(request(name), goes_on=False, leaves=False)

    def is_taken_for_gone(self) -> None:
        """Look like one that is stopped for longer than others wait: a laptop that is shut."""
        self.database.connection.execute("UPDATE sessions SET is_open = 0 WHERE id = ?", (self.database.session,))


def request(name: str) -> Request:
    """Return a request that is as good as any."""
    return Request(name.encode().hex(), "model", name)


def number(claim: Claim) -> int:
    """Return the number of a call that has been claimed."""
    assert isinstance(claim, Yours)
    return claim.id


def test_an_answer_that_comes_late_is_never_kept_for_another_question(file: Path) -> None:
    """A call that was taken over, and given up, leaves no number to the next one."""
    with closing(Session(file)) as slow, closing(Session(file)) as quick:
        call = number(slow.claim("first"))
        slow.is_taken_for_gone()
        quick.database.drop(number(quick.claim("first")))
        quick.claim("second")
        slow.database.finish(call, request("first"), Reply("of the first"), None)
        assert isinstance(quick.database.look(request("second"), goes_on=False), Busy)


def test_a_call_that_was_taken_over_does_not_leave_twice(file: Path) -> None:
    """Who comes back to a call that another session has sent meanwhile is told, and sends nothing."""
    with closing(Session(file)) as slow, closing(Session(file)) as quick:
        call = number(slow.claim("first"))
        slow.is_taken_for_gone()
        other = number(quick.claim("first"))
        assert (quick.database.leave(other), slow.database.leave(call)) == (True, False)


def test_who_was_taken_for_gone_asks_the_store_again(file: Path) -> None:
    """What another process has taken over, and answered, is served here, and the judge is not asked a second time."""
    asked = []

    def judge(messages: Messages) -> str:
        asked.append(messages)
        return YES

    def take_over() -> None:
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            # As who takes over what was never sent; a claim that came after this would be waited for below, for ever.
            while not connection.execute("DELETE FROM calls WHERE state = 'claimed'").rowcount:
                time.sleep(0.01)
        grade_many(["Hello."], POLITE, Judge(judge, identity="v1"), store=file).collect()

    @asynccontextmanager
    async def long_wait(_: Ask) -> AsyncIterator[Callable[[object], None]]:
        await asyncio.to_thread(take_over)
        yield lambda _: None

    (result,) = grade_many(["Hello."], POLITE, Judge(judge, identity="v1"), store=file, limits=long_wait)
    assert (result.outcome.score, result.usage.calls, len(asked)) == (1.0, 0, 1)


_CLOSING_A_LOOP = """
import asyncio, sys
from rubric import Rubric, agrade_many
from rubric import Judge
from rubric import Store

polite, answers = Rubric().expects("Is polite"), asyncio.Event()

async def judge(messages):
    if not hurried:
        await asyncio.Event().wait()
    return '{"reason": "", "verdict": true}'

hurried = False
loop = asyncio.new_event_loop()
with Store(sys.argv[1]) as store:
    left = aiter(agrade_many(["Hello."], polite, Judge(judge, identity="v1"), store=store))
    task = loop.create_task(left.__anext__())
    loop.run_until_complete(asyncio.sleep(0.2))
    loop.close()
    hurried = True
    grades = asyncio.run(agrade_many(["Hello."], polite, Judge(judge, identity="v1"), store=store).collect())
    print(len(grades.passed), store.tally.resent)
"""


def test_what_was_under_way_on_a_loop_that_is_closed_holds_nobody_up(file: Path) -> None:
    """Nothing will come of it, so the next who asks for the same sends it, and does not wait for ever."""
    command = [sys.executable, "-c", _CLOSING_A_LOOP, str(file)]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert outcome.stdout == "1 1\n"
