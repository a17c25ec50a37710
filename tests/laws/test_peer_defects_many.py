"""Defects that were found in other graders of many candidates: E8 to E12, E15 and E18."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import define, field

from rubric import Grade, Judge, Rubric, Ungraded
from rubric.engine.bulk import agrade_many, grade_many
from rubric.engine.pipeline import Dispatcher
from rubric.engine.rate_limits import Limits
from rubric.errors import ModelError
from rubric.store.audit import verify
from rubric.testing.scripted_model import reply_to
from rubric.values.requests import Ask, Failure, Reply
from tests.asks import ask_about
from tests.places import ROOT
from tests.servers import Server
from tests.simulating import now, simulate
from tests.storing import PAID, POLITE, Counted, is_odd, scores


def texts(n: int, kind: str = "Text") -> list[str]:
    """Return so many candidates."""
    return [f"{kind} number {number}." for number in range(n)]


@define(eq=False)
class Busy:
    """A model that takes *seconds*; the first ask about a text that is sick is told to come again in so many."""

    seconds: float = 0.01
    again: float = 3.0
    under_way: int = 0
    most: int = 0
    sick: set[str] = field(factory=lambda: {"sick"})
    ended: dict[str, float] = field(factory=dict)
    calls: int = 0

    async def answer(self, ask: Ask, /) -> Reply:
        self.calls += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.under_way -= 1
        if ask.candidate in self.sick:
            self.sick.remove(ask.candidate)
            raise ModelError(Failure("rate_limited", "slowly", retry_after=self.again))
        self.ended[ask.candidate] = asyncio.get_running_loop().time()
        return Reply(reply_to(ask, True), usage=PAID)


def test_a_hundred_candidates_by_ten_criteria_are_not_a_thousand_requests_at_once() -> None:
    """E8: where nobody says how many, 64 requests are under way, and no more."""
    rubric = Rubric()
    for number in range(10):
        rubric = rubric.expects(f"Meets requirement {number}")
    model = Busy(0.001)
    results = list(grade_many(texts(100), rubric, Judge(model)))
    assert (len(results), model.calls, model.under_way) == (100, 1_000, 0)
    assert 10 < model.most <= 64


@pytest.mark.parametrize(
    ("candidates", "rubric", "identity"),
    [
        (texts(5, "Essay"), POLITE, "counted"),
        (texts(5), Rubric("polite").expects("Is rude"), "counted"),
        (texts(5), POLITE, "another"),
    ],
    ids=["submissions", "criterion", "model"],
)
def test_as_many_others_are_not_taken_for_those_of_yesterday(
    file: Path, candidates: list[str], rubric: Rubric, identity: str
) -> None:
    """E9: as many candidates, criteria and the same name; but new texts, another criterion or model are asked about."""
    old, new = Counted(), Counted(lambda _: False, identity=identity)
    yesterday = list(grade_many(texts(5), POLITE, Judge(old), store=file))
    today = list(grade_many(candidates, rubric, Judge(new), store=file))
    assert (len(old.asks), len(new.asks)) == (5, 5)
    assert scores([*yesterday, *today]) == [1.0] * 5 + [0.0] * 5


def test_a_second_run_asks_for_what_failed_and_for_nothing_else(file: Path) -> None:
    """E10: two of six fail; the next run makes two calls, and all six are graded."""
    sick = {"Text number 1.", "Text number 4."}
    first = Counted(lambda ask: Failure("refusal", "no") if ask.candidate in sick else True)
    results = list(grade_many(texts(6), POLITE, Judge(first), store=file))
    assert [isinstance(result, Ungraded) for result in results] == [False, True, False, False, True, False]
    second = Counted()
    results = list(grade_many(texts(6), POLITE, Judge(second), store=file))
    assert all(isinstance(result, Grade) for result in results)
    assert {ask.candidate for ask in second.asks} == sick
    assert len(second.asks) == 2


KILLED = """
import os, signal, sys
from rubric import Judge
from rubric.engine.bulk import grade_many
from tests.storing import POLITE, Counted, is_odd, scores
from tests.laws.test_peer_defects_many import texts

for result in grade_many(texts(20), POLITE, Judge(Counted(is_odd)), concurrency=1, store=sys.argv[1]):
    if result.index == 19:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the store of a run that was killed after its last result."""
    file = tmp_path_factory.mktemp("killed") / "replies.db"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(file)], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGKILL
    return file


@pytest.mark.parametrize("cut", [0, 1, 9_000, 30_000])
def test_a_torn_file_is_resumed(killed: Path, file: Path, cut: int) -> None:
    """E11: of a run that lost power the last bytes are missing: what is whole is served, the rest is asked again."""
    shutil.copy(killed, file)
    log = killed.with_name(f"{file.name}-wal").read_bytes()
    file.with_name(f"{file.name}-wal").write_bytes(log[: len(log) - cut])
    model = Counted(is_odd)
    again = list(grade_many(texts(20), POLITE, Judge(model), store=file))
    assert scores(again) == [0.0, 1.0] * 10
    assert len(model.asks) == 0 if cut == 0 else len(model.asks) < 20
    assert verify(file) == []


def test_stopping_at_the_first_failure_stops_all_requests() -> None:
    """E12: who leaves the loop leaves no task behind, and a while later no call has gone out."""
    model = Busy(sick={"Text number 0."}, again=600)

    async def main() -> int:
        async with agrade_many(texts(200), POLITE, Judge(model)) as stream:
            async for result in stream:
                assert isinstance(result, Ungraded)
                break
        assert model.under_way == 0
        calls = model.calls
        await asyncio.sleep(20 * model.seconds)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return calls

    assert asyncio.run(main()) == model.calls < 200


@pytest.mark.parametrize("limits", [None, Limits(clock=now, concurrency=1)], ids=["a room", "limits"])
def test_who_waits_to_try_again_holds_nobody_up(limits: Limits | None) -> None:
    """E15: with one request at a time, two healthy candidates are through before one that is turned away at first."""
    model = Busy(again=0.0 if limits else 3.0)
    judge = Judge(model)

    async def main() -> None:
        room = Dispatcher(asyncio.Semaphore(9 if limits else 1), limits)
        asks = [ask_about(text, *POLITE.criteria, judge=judge) for text in ("sick", "healthy 1", "healthy 2")]
        await asyncio.gather(*(room.send(ask) for ask in asks))

    simulate(main())
    assert (model.most, model.calls) == (1, 4)
    assert model.ended["healthy 2"] < model.ended["sick"]
    assert limits or model.ended["sick"] - model.ended["healthy 2"] > 2


QUIET = """
import os, sys
strangers = []
def watch(event, args):
    if event == "socket.connect" and isinstance(args[1], tuple) and not str(args[1][0]).startswith("127."):
        strangers.append(args[1])
    if event == "socket.getaddrinfo" and not str(args[0]).startswith(("127.", "localhost")):
        strangers.append(args[0])
sys.addaudithook(watch)
import rubric
from rubric.engine.bulk import grade_many
judge = rubric.Judge("openai/gpt-4o-mini", via="http", params={"api_base": sys.argv[1], "api_key": "none-at-all"})
results = list(grade_many(["Good morning!", "Good night!"], "Is polite", judge))
results += grade_many(["Good morning!"], "Is polite", "offline")
print(len(results), "CANARY" in os.environ, strangers, sorted(os.listdir()))
"""


def test_grading_reads_no_env_file_asks_no_stranger_and_writes_nothing(tmp_path: Path) -> None:
    """E18: `.env` stands in the folder and in the one above; LiteLLM, which would read it, is in models/test_processes.py."""
    folder = tmp_path / "project"
    folder.mkdir()
    for place in (tmp_path, folder):
        (place / ".env").write_text("CANARY=sk-from-a-file\n", encoding="utf-8")
    with Server() as server:
        command = [sys.executable, "-c", QUIET, server.at("ok").openai]
        environ = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM")}
        done = subprocess.run(
            command, cwd=folder, env=environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
        )
    assert (done.stdout, done.stderr) == ("3 False [] ['.env']\n", "")
