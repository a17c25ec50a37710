"""A Dask cluster of processes: every shard is resumed, whatever becomes of a worker, and limits hold for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from distributed import Client

from rubric import Budget, Candidate, DefinitionError, Grades, Judge, Limits, Rubric, StoreError, grade_many
from rubric.clusters import grade_on_cluster
from rubric.clusters.terms import Terms
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


def test_limits_by_model_go_to_the_scheduler() -> None:
    """Each with what it does not say itself, as for one process; tokens are counted where that matters."""
    limits = Limits(concurrency=8, rpm=100, window=2.0, by_model={"a/b": Limits(rpm=5, tpm=700)})
    terms = Terms.of("run", limits, Budget(calls=3))
    assert {name: Limits(**given) for name, given in terms.limits.items()} == {
        "": Limits(concurrency=8, rpm=100, window=2.0),
        "a/b": Limits(concurrency=8, rpm=5, tpm=700, window=2.0),
    }
    assert (terms.calls, terms.counts_tokens) == (3, True)
    assert not Terms.of("run", Limits(rpm=5), None).counts_tokens


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
        ({"budget": Budget(cost=1), "judge": lambda messages: "yes"}, "the price of '<lambda>' is not known"),
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
def test_what_cannot_be_sent_to_a_worker_is_refused_before_anything_starts(
    client: Client, tmp_path: Path, name: str
) -> None:
    """With the cure, and nothing in the folder."""
    lock = Lock()
    rubric = Rubric().expects("Says thank you", when=lambda _: bool(lock)) if name == "rubric" else "Says thank you"
    judge = Locked() if name == "judge" else "offline"
    with pytest.raises(DefinitionError, match=f"^{name}: it cannot be sent to the workers .*name a model"):
        grade_on_cluster(client, TEXTS, rubric, judge, store_folder=tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_a_lambda_judges_on_a_cluster(client: Client, tmp_path: Path) -> None:
    """Dask sends it by value."""
    grades = graded(client, tmp_path, TEXTS[:2], judge=lambda _: '{"reason": "so", "verdict": true}')
    assert [grade.passed for grade in grades] == [True, True]
