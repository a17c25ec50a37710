"""A Dask cluster of processes: every shard is resumed, whatever becomes of a worker, and limits hold for all of them."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import dask
import pytest
from distributed import Client

from rubric import Budget, Candidate, DefinitionError, Grades, Judge, Limits, Rubric, grade_many
from rubric.dask import ClusterError
from rubric.dask.cluster import grade_on_cluster
from rubric.driving import Usage
from rubric.engine.shared_limits import Share
from rubric.store import StoreError
from tests.benchmarks.cluster import POLITE, cluster_of, failings, killed_run, server_of

TEXTS = [f"Text number {number}: thank you." for number in range(40)]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Return a client of two workers, each a process of its own."""
    with cluster_of(2) as client:
        yield client


def graded(client: Client, folder: Path, texts: Any = TEXTS, judge: Any = "offline", **given: Any) -> Grades:
    """Grade *texts* on the cluster."""
    return grade_on_cluster(client, texts, "Says thank you", judge, store_folder=folder, **given)


def test_the_results_are_those_of_one_process(client: Client, tmp_path: Path) -> None:
    """In the order of the candidates, also of what is none; a second run pays nothing."""
    texts = [*TEXTS, None, Candidate("Go away.", input="Hello?"), {"output": "Thank you."}]
    seen: list[int] = []
    grades = graded(client, tmp_path, texts, shards=5, progress=lambda state: seen.append(state.done))
    alone = grade_many(texts, "Says thank you", "offline").collect()
    assert [(r.index, r.to_dict()) for r in grades] == [(r.index, r.to_dict()) for r in alone]
    assert seen == list(range(1, len(texts) + 1))
    assert graded(client, tmp_path, texts).usage.calls == 0
    assert len([*tmp_path.glob("shard-?-of-5.db")]) == 5


def test_columns_are_named_for_a_cluster(client: Client, tmp_path: Path) -> None:
    """They are refused before anything goes to the cluster, and read by its workers."""
    rows = [{"answer": text} for text in TEXTS]
    with pytest.raises(DefinitionError, match="'answer' looks like a field"):
        graded(client, tmp_path, rows)
    grades = graded(client, tmp_path, rows, shards=3, columns={"output": "answer"})
    assert [r.to_dict() for r in grades] == [r.to_dict() for r in grade_many(TEXTS, "Says thank you", "offline")]


def test_a_worker_that_is_killed_loses_nothing(client: Client, tmp_path: Path) -> None:
    """Nothing is paid twice; what was in flight is told, and graded by the next run; the limit holds for the server."""
    limits = Limits(rpm=25, window=0.5)
    with server_of((0.01, 0.1)) as served:
        outcome = killed_run(client, served, 60, limits, tmp_path, shards=6, concurrency=4)
    assert failings(outcome, 60, 25, 0.5) == []
    assert outcome.in_doubt <= 4


def test_a_budget_holds_for_all_workers(client: Client, tmp_path: Path) -> None:
    """The rest is ungraded; what was spent is charged to it, so that it holds for the next run too."""
    budget = Budget(calls=25)
    with server_of((0.0, 0.01)) as (address, paid):
        judge = Judge("openai/counted", via="http", params={"api_base": address, "api_key": "none-at-all"})
        first = grade_on_cluster(client, TEXTS, POLITE, judge, store_folder=tmp_path, shards=4, budget=budget)
        again = grade_on_cluster(client, TEXTS, POLITE, judge, store_folder=tmp_path, budget=budget)
    assert sum(paid.values()) == 25
    assert budget.left.calls == 0
    assert [len(grades.ungraded) for grades in (first, again)] == [15, 15]
    assert {failure.kind for result in first.ungraded for failure in result.failures} == {"budget"}


def test_an_interrupted_run_goes_on_where_it_was(client: Client, tmp_path: Path) -> None:
    """Nothing new leaves once it has ended; all that had left is kept, and nothing is paid for twice."""

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with server_of((0.0, 0.02)) as (address, paid):
        judge = Judge("openai/counted", via="http", params={"api_base": address, "api_key": "none-at-all"})
        with pytest.raises(KeyboardInterrupt):
            grade_on_cluster(
                client, TEXTS, POLITE, judge, store_folder=tmp_path, shards=8, concurrency=1, progress=stop
            )
        grades = grade_on_cluster(client, TEXTS, POLITE, judge, store_folder=tmp_path)
    assert not grades.ungraded
    assert 0 < grades.usage.calls < len(TEXTS)
    assert (sum(paid.values()), paid.paid_twice) == (len(TEXTS), 0)


def test_a_folder_keeps_its_number_of_shards(client: Client, tmp_path: Path) -> None:
    """With another, candidates would be in other shards than their replies."""
    graded(client, tmp_path, TEXTS[:3], shards=2)
    assert graded(client, tmp_path, TEXTS).usage.calls == len(TEXTS) - 3
    with pytest.raises(DefinitionError, match="has the replies of 2 shards, not 3"):
        graded(client, tmp_path, shards=3)


def test_a_store_that_cannot_be_written_to_ends_it(client: Client, tmp_path: Path) -> None:
    """With the error as the worker had it."""
    (tmp_path / "shard-1-of-1.db").write_text("something else " * 100, encoding="utf-8")
    with pytest.raises(StoreError, match="not a reply store"):
        graded(client, tmp_path)


def test_a_restarted_cluster_ends_the_run_with_an_error_of_ours(client: Client, tmp_path: Path) -> None:
    """What was paid for is charged, and kept: the next run goes on."""
    budget, restarted = Budget(calls=len(TEXTS)), list[object]()

    def restart(_: object) -> None:
        if not restarted:
            restarted.append(None)
            with suppress(TimeoutError):  # its busy workers take their time
                client.restart(timeout=2, wait_for_workers=False)

    with server_of((0.0, 0.02)) as (address, paid):
        judge = Judge("openai/counted", via="http", params={"api_base": address, "api_key": "none-at-all"})
        given: dict[str, Any] = {"store_folder": tmp_path, "budget": budget}
        with pytest.raises(ClusterError, match="restarted or lost; run it again"):
            grade_on_cluster(client, TEXTS, POLITE, judge, shards=8, concurrency=1, progress=restart, **given)
        assert sum(paid.values()) <= (budget.spent.calls or 0) < len(TEXTS)
        grade_on_cluster(client, TEXTS, POLITE, judge, **given)
    assert sum(paid.values()) <= (budget.spent.calls or 0) <= len(TEXTS)


@contextmanager
def cluster_in_processes() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Have a scheduler and a worker that can be killed; yield its address and its process."""
    python = [sys.executable, "-m"]
    scheduler = subprocess.Popen(
        [
            *python,
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--no-show",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert scheduler.stderr is not None
    address = next(found[0] for line in scheduler.stderr if (found := re.search(r"tcp://\S+", line)))
    draining = threading.Thread(target=deque, args=(scheduler.stderr, 0), daemon=True)  # a full pipe would stop it
    draining.start()
    settings = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "5")
    worker = subprocess.Popen([*python, "distributed.cli.dask_worker", address, *settings], stderr=subprocess.DEVNULL)
    try:
        yield address, scheduler
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
        draining.join()
        scheduler.stderr.close()


@contextmanager
def client_that_gives_up(scheduler: str) -> Iterator[Client]:
    """
    Have a client whose scheduler dies, and let it close itself.

    It does so after three seconds without the scheduler. Two closings at once fail in distributed: both cancel the
    same attempt to connect, and the second finds its timeout "expiring".
    """
    client = Client(scheduler, timeout=3)
    try:
        yield client
    finally:
        end = time.monotonic() + 60
        while client.status != "closed" and time.monotonic() < end:
            time.sleep(0.05)
        client.close()


def test_a_budget_holds_when_the_scheduler_dies(client: Client, tmp_path: Path) -> None:
    """Nobody knows what has left, so all counts as spent: a second run with the same budget sends nothing."""
    budget, texts = Budget(calls=50), [f"Text number {number}." for number in range(80)]

    def kill(process: subprocess.Popen[str]) -> None:
        while len(paid) < 20:
            time.sleep(0.005)
        process.kill()

    def run(client: Client, shards: int | None = None) -> Grades:
        judge = Judge("openai/counted", via="http", params={"api_base": address, "api_key": "none-at-all"})
        return grade_on_cluster(client, texts, POLITE, judge, store_folder=tmp_path, budget=budget, shards=shards)

    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), server_of((0.01, 0.02)) as (address, paid):
        with cluster_in_processes() as (scheduler, process), client_that_gives_up(scheduler) as dying:
            threading.Thread(target=kill, args=(process,), daemon=True).start()
            with pytest.raises(ClusterError, match="run it again"):
                run(dying, shards=4)
        assert (budget.spent.calls, budget.held.calls) == (50, 0)
        again = run(client)
    assert 20 <= sum(paid.values()) <= 50
    assert {failure.kind for result in again.ungraded for failure in result.failures} == {"budget"}


def test_what_is_entrusted_is_charged_once_it_is_told() -> None:
    """Others wait for it meanwhile; what has no limit is not set aside."""
    budget = Budget(calls=3)
    with budget.entrusting() as (left, settle):
        assert (left.calls, left.tokens, budget.left.calls) == (3, None, 0)
        settle(Usage(calls=2))
    assert (budget.spent.calls, budget.left.calls, budget.held.calls) == (2, 1, 0)
    with budget.entrusting():
        pass
    assert (budget.spent.calls, budget.left.calls) == (3, 0)


@pytest.mark.parametrize(
    "text", ["", '{"shards": ', "[]", '{"shards": 0}', '{"shards": true}', '{"shards": "x"}', "{}"]
)
def test_a_damaged_count_of_shards_is_told(client: Client, tmp_path: Path, text: str) -> None:
    """With the number that the names of the stores say; without the file, these say it."""
    graded(client, tmp_path, TEXTS[:3], shards=2)
    file = tmp_path / "shards.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DefinitionError, match=r'is damaged or gone; write \{"shards": 2\} into it'):
        graded(client, tmp_path)
    file.unlink()
    assert graded(client, tmp_path, TEXTS[:3]).usage.calls == 0
    assert file.read_text(encoding="utf-8") == '{"shards": 2}'
    file.write_text('{"shards": 3}', encoding="utf-8")
    with pytest.raises(DefinitionError, match="says 3, and the stores beside it say otherwise"):
        graded(client, tmp_path)


LOCK = threading.Lock()


def _locked(_: Any) -> str:
    with LOCK:
        return "yes"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"judge": partial(_locked, LOCK)}, "judge"),
        ({"texts": ["a", Candidate("b", variables={"x": LOCK})]}, r"candidates\[1\]"),
    ],
)
def test_what_cannot_be_sent_to_a_worker_is_refused(
    client: Client, tmp_path: Path, given: dict[str, Any], name: str
) -> None:
    """Before anything is, with what it is."""
    with pytest.raises(DefinitionError, match=f"{name}: it cannot be sent to the workers .*lock"):
        graded(client, tmp_path, **given)
    assert not [*tmp_path.iterdir()]


def test_limits_by_model_go_to_the_scheduler() -> None:
    """Each with what it does not say itself, as for one process; tokens are counted where that matters."""
    limits = Limits(concurrency=8, rpm=100, window=2.0, by_model={"a/b": Limits(rpm=5, tpm=700)})
    share = Share.of(limits, Budget(calls=3).left, {})
    assert {name: Limits(**given) for name, given in share.limits.items()} == {
        "": Limits(concurrency=8, rpm=100, window=2.0),
        "a/b": Limits(concurrency=8, rpm=5, tpm=700, window=2.0),
    }
    assert (share.left.calls, share.counts_tokens) == (3, True)
    assert not Share.of(Limits(rpm=5), Budget().left, {}).counts_tokens


async def _no_texts() -> Any:
    yield "a"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"texts": _no_texts()}, "candidates: expected an iterable that is not async"),
        ({"shards": 0}, "shards: expected a whole number"),
        ({"concurrency": 0}, "concurrency: expected a whole number"),
        ({"in_doubt": "ask"}, "in_doubt: expected 'retry' or 'hold'"),
        ({"limits": 5}, "limits: expected Limits"),
        ({"budget": 5}, "budget: expected a Budget"),
        (
            {"budget": Budget(cost=1), "judge": Judge(lambda messages: "yes", identity="v1")},
            "the price of '<lambda>' is not known",
        ),
        ({"folder": "nowhere"}, "there is no folder"),
        ({"client": "tcp://127.0.0.1:8786"}, "client: expected a distributed.Client"),
    ],
)
def test_what_cannot_be_graded_with_is_refused(client: Client, tmp_path: Path, given: dict[str, Any], why: str) -> None:
    """Before anything is sent."""
    arguments: dict[str, Any] = {"client": client, "folder": tmp_path} | given
    with pytest.raises(DefinitionError, match=why):
        graded(**arguments)


class Locked:
    """A judge that no process can be sent."""

    def __init__(self) -> None:
        self.lock = Lock()

    def __call__(self, messages: Any) -> str:
        """Say yes."""
        return '{"reason": "so", "verdict": true}'


@pytest.mark.parametrize("name", ["judge", "rubric"])
def test_an_own_object_or_condition_with_a_lock_is_refused(client: Client, tmp_path: Path, name: str) -> None:
    """With the cure, and nothing in the folder."""
    lock = Lock()
    rubric = Rubric().expects("Says thank you", when=lambda _: bool(lock)) if name == "rubric" else "Says thank you"
    judge = Locked() if name == "judge" else "offline"
    with pytest.raises(DefinitionError, match=f"^{name}: it cannot be sent to the workers .*a model name"):
        grade_on_cluster(client, TEXTS, rubric, judge, store_folder=tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_a_lambda_judges_on_a_cluster(client: Client, tmp_path: Path) -> None:
    """Dask sends it by value."""
    grades = graded(
        client, tmp_path, TEXTS[:2], judge=Judge(lambda _: '{"reason": "so", "verdict": true}', identity="v1")
    )
    assert [grade.passed for grade in grades] == [True, True]
