"""`store=`, `budget=` and `limits=` of the verbs and of suites: what an ask passes on its way, and in which order."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from rubric import (
    Budget,
    Candidate,
    Case,
    DefinitionError,
    Grade,
    Judge,
    Jury,
    Limits,
    Panel,
    Rubric,
    RubricError,
    Store,
    Suite,
    Ungraded,
    agrade,
    agrade_many,
    evaluate,
    grade,
    grade_many,
    plan,
)
from rubric.driving import adrive, flow
from rubric.engine.pipeline import Leads, side_by_side
from rubric.store import StoreError
from rubric.testing.scripted_model import reply_to
from rubric.values.requests import Ask, Failure, Reply
from tests.simulating import simulate
from tests.storing import PAID, POLITE, Counted

TEXTS = [f"Good morning, number {n}!" for n in range(20)]


def states(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT state, count(*) FROM calls GROUP BY state").fetchall())


def test_what_has_been_graded_with_a_store_is_not_asked_again(tmp_path: Path) -> None:
    """Given the path of a store, the second run gets the same results without a call, and shows none as spent."""
    model = Counted()
    first = grade_many(TEXTS, POLITE, Judge(model), store=tmp_path / "replies.db").collect()
    second = grade_many(TEXTS, POLITE, Judge(model), store=tmp_path / "replies.db").collect()
    assert len(model.asks) == len(TEXTS)
    assert [result.to_dict()["score"] for result in first] == [result.to_dict()["score"] for result in second]
    assert sum(result.usage.calls for result in second) == 0


def test_a_single_grade_takes_a_store_a_budget_and_limits(tmp_path: Path) -> None:
    """Both verbs for one candidate take what the verbs for many take."""
    model, path, budget = Counted(), tmp_path / "replies.db", Budget(calls=5)
    one = grade(TEXTS[0], POLITE, Judge(model), store=path, budget=budget, limits=Limits(rpm=100))
    again = asyncio.run(agrade(TEXTS[0], POLITE, Judge(model), store=path, budget=budget, limits=Limits(rpm=100)))
    assert (one.usage.calls, again.usage.calls, budget.spent.calls, len(model.asks)) == (1, 0, 1, 1)


def test_a_suite_takes_a_store_and_limits(tmp_path: Path) -> None:
    """A suite that runs twice over one store asks its judges once."""
    model = Counted()
    suite = Suite("mornings", [Case(f"case-{n}", POLITE, output=text) for n, text in enumerate(TEXTS)])
    reports = [suite.run(Judge(model), store=tmp_path / "replies.db", limits=Limits(concurrency=2)) for _ in range(2)]
    assert len(model.asks) == len(TEXTS)
    assert [report.usage.calls for report in reports] == [len(TEXTS), 0]


def test_a_store_that_was_opened_for_a_stream_is_closed_with_it(tmp_path: Path) -> None:
    """Once the loop is left, no session of the store is open, and nothing in it is in doubt."""
    path = tmp_path / "replies.db"
    for _ in grade_many(TEXTS, POLITE, Judge(Counted()), store=path):
        break
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT sum(is_open) FROM sessions").fetchone() == (0,)
    assert set(states(path)) <= {"done", "in_doubt"}


def test_a_store_that_was_given_stays_open(tmp_path: Path) -> None:
    """A store of the caller's own is closed by the caller."""
    with Store(tmp_path / "replies.db") as store:
        grade_many(TEXTS[:2], POLITE, Judge(Counted()), store=store).collect()
        assert grade(TEXTS[0], POLITE, Judge(Counted()), store=store).usage.calls == 0


def test_a_store_that_cannot_be_written_to_ends_the_stream(tmp_path: Path) -> None:
    """Results that were made come out, then the error that names the file: nothing more is asked or lost in silence."""
    path, model, seen = tmp_path / "replies.db", Counted(), []
    rubric = Rubric().expects("One").expects("Two").expects("Three")
    with Store(path, patience=0.05) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        with pytest.raises(StoreError, match=r"replies\.db"):  # noqa: PT012 - it is the loop that raises
            for result in grade_many(TEXTS, rubric, Judge(model), store=store, concurrency=1):
                seen.append(result)
                if len(seen) == 3:
                    other.execute("BEGIN EXCLUSIVE")
        other.execute("ROLLBACK")
    assert all(isinstance(result, Grade) for result in seen)
    assert 3 <= len(seen) < len(TEXTS)


def test_a_store_that_cannot_be_written_to_ends_an_async_stream_and_a_suite(tmp_path: Path) -> None:
    """The error comes as it is, not wrapped into a group."""
    path = tmp_path / "replies.db"
    suite = Suite("mornings", [Case(f"case-{n}", POLITE, output=text) for n, text in enumerate(TEXTS)])
    rubric = Rubric().expects("One").expects("Two")
    with Store(path, patience=0.05) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError):
            asyncio.run(agrade_many(TEXTS, rubric, Judge(Counted()), store=store).collect())
        with pytest.raises(StoreError):
            suite.run(Judge(Counted()), store=store)
        other.execute("ROLLBACK")


def test_what_waits_for_a_limit_is_not_in_doubt(tmp_path: Path) -> None:
    """Only a request that has left is in doubt when its run is cut off."""
    path = tmp_path / "replies.db"

    async def cut() -> None:
        model = Counted(busy=60)
        stream = agrade_many(TEXTS, POLITE, Judge(model), store=path, limits=Limits(concurrency=3))
        reading = asyncio.create_task(stream.collect())
        await model.asked.wait()
        await asyncio.sleep(0.05)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(cut())
    assert states(path) == {"in_doubt": 3}


def test_equal_judges_of_a_panel_have_a_stored_reply_each(tmp_path: Path) -> None:
    """One reply never stands for two votes, whoever casts them."""
    model, path = Counted(), tmp_path / "replies.db"
    judge = Judge(model)
    bench = Panel([judge, Jury(judge, 3), judge])
    for _ in range(2):
        grade(TEXTS[0], POLITE, bench, store=path)
    assert len(model.asks) == 5


def test_a_budget_holds_before_the_store_and_over_it(tmp_path: Path) -> None:
    """What a budget refuses is not kept; what is stored costs nothing of it."""
    model, path = Counted(), tmp_path / "replies.db"
    first = grade_many(TEXTS, POLITE, Judge(model), store=path, budget=Budget(calls=8)).collect()
    second = grade_many(TEXTS, POLITE, Judge(model), store=path, budget=Budget(calls=12)).collect()
    refused = [result for result in first if isinstance(result, Ungraded)]
    assert {failure.kind for result in refused for failure in result.failures} == {"budget"}
    assert (len(refused), len(second.ungraded), len(model.asks)) == (12, 0, 20)
    assert states(path) == {"done": 20}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"store": 1}, "store: expected a Store"),
        ({"budget": 5.0}, "budget: expected a Budget"),
        ({"limits": 500}, "limits: expected Limits"),
        ({"limits": Budget(calls=5)}, "limits: expected Limits"),
        ({"store": ":memory:"}, "path: expected the path of a file"),
    ],
)
def test_means_of_another_kind_are_refused(given: dict[str, Any], message: str) -> None:
    """A number is not a budget, and the error says what is one."""
    with pytest.raises(DefinitionError, match=message):
        grade_many(TEXTS, POLITE, "offline", **given)
    with pytest.raises(DefinitionError, match=message):
        grade(TEXTS[0], POLITE, "offline", **given)


def test_a_budget_that_cannot_hold_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    """A cap in dollars on a judge without a price leaves no file behind."""
    with pytest.raises(DefinitionError, match="price"):
        grade_many(TEXTS, POLITE, Judge(Counted()), store=tmp_path / "replies.db", budget=Budget(cost=1))
    assert not list(tmp_path.iterdir())


def test_a_budget_without_a_price_is_refused_before_anything_is_sent() -> None:
    """The sync verb refuses at the call, the async one when it is first read."""
    model = Counted()
    with pytest.raises(DefinitionError, match="price"):
        grade_many(["x"], POLITE, Judge(model), budget=Budget(cost=1.0))
    with pytest.raises(DefinitionError, match="price"):
        asyncio.run(agrade_many(["x"], POLITE, Judge(model), budget=Budget(cost=1.0)).collect())
    assert model.asks == []


def test_limits_hold_for_many() -> None:
    """A limit of the model's own binds before the concurrency of the run does."""
    now, most = 0, 0

    async def judge(messages: list[dict[str, object]]) -> str:
        nonlocal now, most
        now, most = now + 1, max(most, now + 1)
        await asyncio.sleep(0.001)
        now -= 1
        return '{"reason": "", "verdict": true}'

    grades = grade_many([f"text {n}" for n in range(20)], POLITE, judge, limits=Limits(concurrency=3)).collect()
    assert (len(grades.passed), most) == (20, 3)


# -- the first request about a task ------------------------------------------------------------------------------

TASK = "Explain, step by step, how a refund is made. " * 100


def rounds(candidates: list[Candidate], **options: Any) -> list[int]:
    """Grade *candidates* together; return how many requests are in flight each time that nothing else can go on."""
    waiting, found = list[asyncio.Event](), list[int]()

    async def judge(_: list[dict[str, Any]]) -> str:
        waiting.append(asyncio.Event())
        await waiting[-1].wait()
        return '{"reason": "it is", "verdict": true}'

    async def grades() -> None:
        async for _ in agrade_many(candidates, POLITE, Judge(judge, **options), progress=False):
            pass

    async def main() -> None:
        grading = asyncio.ensure_future(grades())
        while not grading.done():
            for _ in range(200):
                await asyncio.sleep(0)
            found.append(len(waiting))
            while waiting:
                waiting.pop().set()
        await grading

    asyncio.run(main())
    return [number for number in found if number]


@pytest.mark.parametrize(
    ("task", "prime", "expected"), [(TASK, True, [1, 7]), (TASK, False, [8]), ("Explain a refund.", True, [8])]
)
def test_the_first_request_about_a_long_task_goes_ahead(task: str, prime: bool, expected: list[int]) -> None:
    """Completions of one task wait until the first has an answer, unless the judge or a short task spares the round."""
    assert rounds([Candidate(f"Answer {n}.", input=task) for n in range(8)], prime=prime) == expected


def test_each_task_has_a_first_request_of_its_own() -> None:
    """A task holds up no other."""
    assert rounds([Candidate(f"Answer {n}.", input=f"{n % 3} {TASK}") for n in range(9)]) == [3, 6]


def test_requests_of_a_task_go_on_when_the_first_fails_or_is_cancelled() -> None:
    """Whatever becomes of the first request, the others are sent."""

    async def main(*, cancel: bool) -> list[object]:
        hanging, sent = asyncio.Event(), list[Ask]()

        async def transport(ask: Ask) -> Reply | Failure:
            sent.append(ask)
            if len(sent) == 1:
                await hanging.wait()
                return Failure("overloaded", "503")
            return Reply("{}")

        leads = Leads(transport)
        asks = [ask for n in range(3) for ask in plan(Candidate(f"{n}", input=TASK), POLITE, Judge(Counted())).asks]
        tasks = [asyncio.ensure_future(leads.send(ask)) for ask in asks]
        await asyncio.sleep(0.01)
        assert len(sent) == 1
        if cancel:
            tasks[0].cancel()
        hanging.set()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert len(sent) == 3
        return [type(one) for one in done]

    assert asyncio.run(main(cancel=False)) == [Failure, Reply, Reply]
    assert asyncio.run(main(cancel=True)) == [asyncio.CancelledError, Reply, Reply]


# -- the models that answered ------------------------------------------------------------------------------------


def reporting(*names: str) -> Counted:
    """Return a model whose replies report *names* in turn."""
    turn = cycle(names)
    return Counted(lambda ask: Reply(reply_to(ask, True), usage=PAID, model=next(turn)))


def test_a_result_names_the_models_that_answered(tmp_path: Path) -> None:
    """As they were reported, each once: of one judge, of a jury, of many candidates, of a case, and from a store."""
    two = Rubric("two").expects("Is polite", id="a").expects("Is short", id="b")
    one, other = Judge(reporting("gpt-5-2026-01-01")), Judge(reporting("gemini-4", "gemini-4-001"))
    single = grade(TEXTS[0], two, other, store=tmp_path / "replies.db")
    replayed = grade(TEXTS[0], two, other, store=tmp_path / "replies.db")
    assert single.models == replayed.models == ("gemini-4", "gemini-4-001")
    assert replayed.usage.calls == 0
    assert grade(TEXTS[0], two, Panel([one, other])).models == ("gemini-4", "gemini-4-001", "gpt-5-2026-01-01")
    (many,) = grade_many(TEXTS[:1], two, one, progress=False)
    assert many.to_dict()["models"] == ["gpt-5-2026-01-01"]
    assert many.rescore(threshold=0.1).models == many.models


def test_models_are_named_where_one_of_them_failed() -> None:
    """An ungraded result names those that replied; judges that report no model, and checks, give none."""
    two = Rubric("two").expects("Is polite", id="a").expects("Is short", id="b")
    model = Counted(lambda ask: Reply("?", usage=PAID, model="m-1") if "short" in ask.criteria[0].text else True)
    result = evaluate(TEXTS[0], two, Judge(model, repairs=0))
    assert isinstance(result, Ungraded)
    assert result.to_dict()["models"] == ["m-1"]
    assert grade(TEXTS[0], POLITE, Judge(Counted())).models == ()
    assert grade(TEXTS[0], POLITE, "offline").to_dict()["models"] == []


def test_adrive_says_what_it_needs_where_no_asyncio_loop_runs() -> None:
    """Under trio, it names `together=`; the steps are closed, and nothing is sent."""
    steps = flow(Candidate("Fine."), Rubric("r", ["Is kind", "Is short"]), Judge(lambda _: "", sealed=False))
    driven = adrive(steps)
    with pytest.raises(RubricError, match="together="):
        driven.send(None)


def test_the_first_error_of_jobs_side_by_side_ends_the_others_at_once() -> None:
    """The last of them fails while the first waits for ever: it is cancelled, cleans up, and the error is raised."""
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    async def fail() -> None:
        raise ValueError("the first error")

    with pytest.raises(ValueError, match="the first error"):
        simulate(side_by_side([wait(), wait(), fail()]))
    assert ended == ["cleaned up"] * 2


@pytest.mark.parametrize("times", [1, 2])
def test_jobs_side_by_side_are_cancelled_and_waited_for(times: int) -> None:
    """Whoever is cancelled, once or again while it waits, has no job left behind."""
    ended: list[str] = []

    async def wait(name: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append(name)
        return name

    async def main() -> None:
        task = asyncio.ensure_future(side_by_side([wait("a"), wait("b")]))
        for _ in range(times):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1

    simulate(main())
    # A task group cancels its tasks in no order; cancelled again, a job may not clean up.
    assert times > 1 or sorted(ended) == ["a", "b"]


def batches_of(count: int) -> Generator[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Yield one batch of so many asks, here texts, and return what came for them."""
    return (yield tuple(map(str, range(count))))


def driven(transport: Callable[[str], Awaitable[str]], count: int) -> Any:
    """Drive one batch, with texts in the place of asks."""
    return adrive(batches_of(count), transport)  # type: ignore[arg-type]


def test_asks_that_are_answered_at_once_take_no_tasks_of_their_own() -> None:
    """All are sent in the caller's task; once one has to wait, the others are in flight beside it, and in order."""
    tasks: set[object] = set()
    flying: list[int] = []
    in_flight = 0

    async def send(ask: str, *, slow: int) -> str:
        nonlocal in_flight
        in_flight += 1
        flying.append(in_flight)
        tasks.add(asyncio.current_task())
        if int(ask) >= slow:
            await asyncio.sleep(0.01)
        in_flight -= 1
        return f"re {ask}"

    async def main(slow: int) -> tuple[int, int]:
        tasks.clear()
        flying.clear()
        got = await driven(partial(send, slow=slow), 8)
        assert got == tuple(f"re {n}" for n in range(8))
        return len(tasks), max(flying)

    assert simulate(main(slow=8)) == (1, 1)
    assert simulate(main(slow=0)) == (8, 8)
    assert simulate(main(slow=3)) == (5, 5)
    assert simulate(main(slow=7)) == (1, 1)


@pytest.mark.parametrize("failing", [0, 5], ids=["the ask in the caller's task", "an ask in a task of its own"])
def test_an_error_of_one_ask_of_a_batch_ends_the_others_at_once(failing: int) -> None:
    """Whichever ask it is: the others are cancelled, clean up, and the error itself is raised."""
    ended: list[str] = []

    async def send(ask: str) -> str:
        try:
            await asyncio.sleep(0.01 if int(ask) == failing else 1_000)
        finally:
            ended.append(ask)
        raise ValueError("the first error")

    async def main() -> None:
        with pytest.raises(ValueError, match="the first error"):
            await driven(send, 6)
        assert len(asyncio.all_tasks()) == 1

    simulate(main())
    assert sorted(ended) == [*"012345"]


def test_a_batch_that_is_cancelled_leaves_no_ask_behind() -> None:
    """The ask in the caller's task ends, and so do those in tasks of their own, at whatever moment it comes."""

    async def main(rounds: int) -> None:
        ended: list[str] = []

        async def send(ask: str) -> str:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(ask)
            return ""

        task = asyncio.ensure_future(driven(send, 4))
        for _ in range(rounds):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1
        assert sorted(ended) in ([], ["0"], [*"0123"])

    for rounds in range(5):
        simulate(main(rounds))


def test_jobs_side_by_side_return_their_results_in_order() -> None:
    """The order is that of the jobs, whichever ends first."""

    async def after(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    assert simulate(side_by_side([after(0.02), after(0.01), after(0)])) == [0.02, 0.01, 0]
