"""The core as a public instrument: drivers, transports, the pipeline around them, the retry policy."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import (
    Budget,
    Candidate,
    DefinitionError,
    Grade,
    Judge,
    Jury,
    Limits,
    ModelError,
    Rubric,
    RubricError,
    Ungraded,
    UngradedError,
    aevaluate,
    agrade,
    evaluate,
    grade,
)
from rubric.driving import Ask, Failure, Reply, Usage, adrive, drive, flow, pipeline, retry_delay
from rubric.grading.steps import Batch
from rubric.testing import ScriptedModel, reply_to
from rubric.values import as_judge
from rubric.values.requests import Transport

POLITE = Rubric("polite").expects("Is polite", id="polite").expects("Is kind", id="kind")
JUDGE = Judge("mine", retries=1, sealed=False)
PAID = Usage(calls=1, prompt_tokens=10, completion_tokens=5, cost=0.01)
BUSY = Failure("rate_limited", "429", retry_after=0.001, status=429)
Outcome = Reply | Failure


def yes(ask: Ask) -> Reply:
    """Answer an ask of any form with yes."""
    return Reply(reply_to(ask, True), usage=PAID)


def steps(judge: Judge | Jury = JUDGE, text: str = "Good morning!") -> Any:
    """Return the steps of one grade."""
    return flow(Candidate(text), POLITE, judge)


def counting(answer: Callable[[Ask], Outcome] = yes) -> tuple[list[Ask], Callable[[Ask], Outcome]]:
    """Return a blocking transport, and the list of what it was asked."""
    asks: list[Ask] = []

    def transport(ask: Ask) -> Outcome:
        asks.append(ask)
        return answer(ask)

    return asks, transport


# -- drivers ---------------------------------------------------------------------------------------------


def test_drive_needs_no_event_loop() -> None:
    """A blocking transport is called in the thread of the caller, once an ask, in order."""
    asks, transport = counting()
    result = drive(steps(), transport)
    assert (result.score, result.usage) == (1.0, PAID + PAID)
    assert [ask.criteria[0].id for ask in asks] == ["polite", "kind"]


def test_drive_sends_a_batch_by_the_map_that_it_is_given() -> None:
    """With the `map` of a thread pool, the asks of a batch are in flight side by side."""
    both = threading.Barrier(2, timeout=10)

    def transport(ask: Ask) -> Reply:
        both.wait()
        return yes(ask)

    with ThreadPoolExecutor(2) as threads:
        assert drive(steps(), transport, together=threads.map).score == 1.0


def test_all_drivers_come_to_the_same() -> None:
    """`drive`, `adrive` and `evaluate` return equal results for one model."""

    async def transport(ask: Ask) -> Reply:
        return yes(ask)

    blocking, awaited = drive(steps(), yes), asyncio.run(adrive(steps(), transport))
    with pipeline(yes) as way:
        piped = drive(steps(), way.send_blocking)
    assert blocking == awaited == piped


def test_adrive_sends_a_batch_as_it_is_told() -> None:
    """`together` gets the transport and the batch, and returns the outcomes in order."""
    sizes: list[int] = []

    async def one_by_one(transport: Transport, batch: Batch) -> Sequence[Outcome]:
        sizes.append(len(batch))
        return [await transport(ask) for ask in batch]

    async def transport(ask: Ask) -> Reply:
        return yes(ask)

    result = asyncio.run(adrive(steps(Jury(JUDGE, 2)), transport, together=one_by_one))
    assert (result.score, sizes) == (1.0, [4])


def test_adrive_without_a_transport_asks_the_models() -> None:
    """The models of the judges answer, as for `grade`."""
    model = ScriptedModel(lambda _: True)
    assert asyncio.run(adrive(steps(Judge(model)))).score == 1.0
    assert len(model.asks) == 2


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_transport_raises_closes_the_steps(is_async: bool) -> None:
    """The error comes out, and the generator is closed, not left to the garbage collector."""
    closed: list[bool] = []

    def watched() -> Any:
        try:
            yield from steps()
        finally:
            closed.append(True)

    def broken(ask: Ask) -> Reply:
        raise LookupError(ask.judge.name)

    async def abroken(ask: Ask) -> Reply:
        return broken(ask)

    with pytest.raises(LookupError):
        asyncio.run(adrive(watched(), abroken)) if is_async else drive(watched(), broken)
    assert closed == [True]


def test_a_cancelled_driver_leaves_nothing_in_flight() -> None:
    """The asks in flight are cancelled, and waited for, before the cancellation comes out."""
    ended: list[str] = []

    async def slow(ask: Ask) -> Reply:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            ended.append(ask.criteria[0].id)
        return yes(ask)

    async def main() -> None:
        task = asyncio.create_task(adrive(steps(), slow))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(ended) == ["kind", "polite"]

    asyncio.run(main())


# -- evaluate --------------------------------------------------------------------------------------------


def _broken(_: object) -> str:
    raise OSError("no route")


@pytest.mark.parametrize("is_async", [False, True])
def test_evaluate_returns_what_grade_raises(is_async: bool) -> None:
    """A grade is returned as by `grade`; an `Ungraded` instead of being raised."""

    def evaluated(judge: Any) -> Grade | Ungraded:
        return asyncio.run(aevaluate("x", POLITE, judge)) if is_async else evaluate("x", POLITE, judge)

    assert evaluated("offline") == grade("x", POLITE, "offline")
    result = evaluated(_broken)
    with pytest.raises(UngradedError) as caught:
        grade("x", POLITE, _broken)
    assert isinstance(result, Ungraded)
    assert [failure.kind for failure in result.failures] == ["exception", "exception"]
    assert caught.value.result.bounds == result.bounds == (0.0, 1.0)


@pytest.mark.parametrize("most", [1, 3])
def test_one_grade_has_so_many_requests_at_once(most: int) -> None:
    """`concurrency` bounds the requests of `grade`, `agrade`, `evaluate` and `aevaluate` too."""
    now, seen = 0, 0

    async def model(_: object) -> str:
        nonlocal now, seen
        now += 1
        seen = max(seen, now)
        await asyncio.sleep(0.001)
        now -= 1
        return '{"reason": "so", "verdict": true}'

    rubric = Rubric(criteria=[f"Criterion {n}" for n in range(9)])
    for one in (grade, evaluate):
        one("x", rubric, model, concurrency=most)
    for aone in (agrade, aevaluate):
        asyncio.run(aone("x", rubric, model, concurrency=most))
    assert seen == most
    with pytest.raises(DefinitionError, match="concurrency"):
        grade("x", rubric, model, concurrency=0)


# -- the pipeline around a transport ---------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
def test_a_pipeline_keeps_counts_and_limits_what_a_foreign_transport_sends(tmp_path: Path, is_async: bool) -> None:
    """Two runs of one grade: the second is from the store; a third candidate is over the budget, and not sent."""
    asks, transport = counting()

    async def atransport(ask: Ask) -> Outcome:
        return transport(ask)

    budget, limits = Budget(calls=2, prices={"mine": (1.0, 1.0)}), Limits(rpm=100)
    given = atransport if is_async else transport
    with pipeline(given, store=tmp_path / "replies.db", budget=budget, limits=limits) as way:

        def graded(text: str) -> Any:
            return drive(steps(text=text), way.send_blocking)

        results = [graded("a"), graded("a"), graded("b")]
    assert [result.usage.calls for result in results] == [2, 0, 0]
    assert {failure.kind for failure in results[2].failures} == {"budget"}
    assert (len(asks), budget.spent.calls) == (2, 2)


@pytest.mark.parametrize("raises", [False, True])
def test_a_pipeline_retries_what_a_transport_fails(raises: bool) -> None:
    """A failure may be returned or raised; it is retried as often as the judge says, and counted."""

    def turned_away(ask: Ask) -> Outcome:
        if len(asks) % 2:
            if raises:
                raise ModelError(BUSY)
            return BUSY
        return yes(ask)

    asks, transport = counting(turned_away)
    with pipeline(transport, concurrency=1) as way:
        result = drive(steps(), way.send_blocking)
    assert (result.score, len(asks), result.usage.calls) == (1.0, 4, 4)


def test_a_pipeline_ends_a_transport_that_hangs() -> None:
    """The judge's deadline holds for a blocking transport too; nothing waits for its thread."""
    hold = threading.Event()

    def hangs(ask: Ask) -> Reply:
        hold.wait(60)
        return yes(ask)

    with pipeline(hangs) as way:
        result = drive(steps(Judge("mine", retries=0, timeout=0.05, sealed=False)), way.send_blocking)
    hold.set()
    assert {failure.kind for failure in result.failures} == {"timeout"}
    assert all(failure.in_doubt for failure in result.failures)


@pytest.mark.parametrize("wrong", [lambda _: "yes", lambda _: None, _broken, lambda _: next(iter(()))], ids=range(4))
def test_a_transport_that_breaks_its_promise_is_a_failure(wrong: Any) -> None:
    """Neither a wrong type nor an exception gets past the pipeline."""
    with pipeline(wrong) as way:
        result = drive(steps(), way.send_blocking)
    assert {failure.kind for failure in result.failures} == {"exception"}


def test_a_pipeline_is_shared_by_many_threads() -> None:
    """Threads that drive their own grades share its places, and each gets its own result."""
    now, most, lock = 0, 0, threading.Lock()

    def transport(ask: Ask) -> Reply:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.002)
        with lock:
            now -= 1
        return Reply(reply_to(ask, ask.candidate.endswith("0")), usage=PAID)

    with pipeline(transport, concurrency=3) as way, ThreadPoolExecutor(8) as threads:
        texts = [f"text {n % 2}" for n in range(20)]
        results = list(threads.map(lambda text: drive(steps(text=text), way.send_blocking), texts))
    assert [result.score for result in results] == [1.0, 0.0] * 10
    assert most == 3


def test_a_pipeline_without_a_transport_asks_the_models() -> None:
    """It is then the pipeline of `grade`."""
    with pipeline(budget=Budget(calls=2)) as way:
        assert drive(steps(Judge("offline")), way.send_blocking).usage.calls == 2


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"transport": "post"}, "transport"),
        ({"store": 7}, "store"),
        ({"budget": 5.0}, "budget"),
        ({"limits": 9}, "limits"),
    ],
)
def test_a_pipeline_of_something_else_is_refused(given: dict[str, Any], field: str) -> None:
    """The error names the argument."""
    with pytest.raises(DefinitionError, match=field):
        pipeline(**given)


# -- the retry policy ------------------------------------------------------------------------------------


@given(st.integers(0, 12), st.floats(0, 1))
def test_a_backoff_doubles_within_its_bounds(attempts: int, jitter: float) -> None:
    """The wait is a random part of 0.5, 1, 2 ... 20 seconds, and never more."""
    delay = retry_delay([Failure("overloaded", "")] * (attempts + 1), 99, random=lambda: jitter)
    assert delay is not None
    assert delay == pytest.approx(jitter * min(20.0, 0.5 * 2**attempts))


def test_the_policy_in_one_table() -> None:
    """Which failures are retried, and after how long."""

    def delay(*failures: Failure, **options: Any) -> float | None:
        return retry_delay(failures, random=lambda: 0.0, **options)

    bad, doubtful = Failure("bad_response", ""), Failure("timeout", "", in_doubt=True)
    assert delay(BUSY) == 0.001
    assert (delay(BUSY, BUSY), delay(BUSY, BUSY, BUSY)) == (0.001, None)
    assert delay(Failure("auth", "")) is None
    assert delay(Failure("overloaded", "", retry_after=121)) is None
    assert (delay(bad), delay(bad, BUSY, bad)) == (0.0, None)
    assert (delay(doubtful), delay(doubtful, resends=False)) == (0.0, None)
    assert delay(Failure("bad_request", "", again=True), retries=0) == 0.0


# -- judges ----------------------------------------------------------------------------------------------


def test_as_judge_takes_all_that_can_judge() -> None:
    """A name, a function, a list and a judge."""
    assert as_judge("offline") == Judge("offline")
    assert as_judge(["offline", "offline"]).judges == (Judge("offline"),) * 2  # type: ignore[union-attr]
    assert as_judge(JUDGE) is JUDGE


@pytest.mark.parametrize(("prime", "rounds"), [(True, [1, 2]), (False, [3])])
def test_priming_the_prefix_can_be_switched_off(prime: bool, rounds: list[int]) -> None:
    """With a long shared prompt one ask goes ahead, unless the judge says otherwise."""
    seen: list[int] = []

    async def together(transport: Transport, batch: Batch) -> Sequence[Outcome]:
        seen.append(len(batch))
        return [await transport(ask) for ask in batch]

    async def transport(ask: Ask) -> Reply:
        return yes(ask)

    rubric = Rubric(criteria=["One", "Two", "Three"])
    judge = Judge("mine", prime=prime)
    result = asyncio.run(adrive(flow(Candidate("x" * 8_000), rubric, judge), transport, together=together))
    assert isinstance(result, Grade)
    assert seen == rounds


def test_under_trio_the_error_names_what_works() -> None:
    """`agrade` needs asyncio; `adrive` with Inspect's or trio's own way of waiting does not."""
    trio = pytest.importorskip("trio", reason="trio is not installed")
    with pytest.raises(RubricError, match=r"rubric\.adrive"):
        trio.run(agrade, "We thank you.", "Says thank you", "offline")

    async def transport(ask: Ask) -> Reply:
        await trio.sleep(0)
        return Reply(reply_to(ask, True))

    async def together(send: Any, batch: Any) -> list[Any]:
        found: dict[int, Any] = {}

        async def one(place: int, ask: Ask) -> None:
            found[place] = await send(ask)

        async with trio.open_nursery() as nursery:
            for place, ask in enumerate(batch):
                nursery.start_soon(one, place, ask)
        return [found[place] for place in range(len(batch))]

    async def main() -> Grade | Ungraded:
        steps = flow(Candidate("We thank you."), Rubric().expects("Says thank you").expects("Is kind"), Judge("any"))
        return await adrive(steps, transport, together=together)

    assert trio.run(main).score == 1
