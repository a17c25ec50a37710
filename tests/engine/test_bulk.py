"""`grade_many` and `agrade_many`: order, laziness, bounds, and a clean end however the loop is left."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from rubric import Budget, Candidate, DefinitionError, Grade, Judge, Jury, ModelError, Rubric, Ungraded
from rubric.driving import Failure, Reply
from rubric.engine.bulk import agrade_many, grade_many
from rubric.results import Unjudged
from rubric.testing.scripted_model import ScriptedModel, reply_to
from rubric.values.requests import RETRIED, Ask, Usage
from tests.examples import examples
from tests.places import ROOT
from tests.rows import each_row

POLITE = Rubric().expects("Is polite", id="polite")
FOUR = Rubric().expects("One").expects("Two").expects("Three").expects("Four")


@define(eq=False)
class Paced:
    """A model that takes as many turns of the loop as the candidate says, and knows how many asks were under way."""

    now: int = 0
    most: int = 0
    began: int = 0
    ended: int = 0
    cancelled: int = 0

    async def answer(self, ask: Ask) -> Reply:
        self.now += 1
        self.began += 1
        self.most = max(self.most, self.now)
        try:
            if ask.candidate.startswith("hold"):
                await asyncio.Event().wait()
            for _ in range(int(ask.candidate.split()[-1])):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # as a client does that closes its connection
            self.cancelled += 1
            raise
        finally:
            self.now -= 1
            self.ended += 1
        return Reply(reply_to(ask, True), usage=Usage(calls=1, cost=0.001))


def instant() -> Judge:
    return Judge(ScriptedModel(lambda _: True))


def texts(n: int) -> Iterator[str]:
    return (f"text {i}" for i in range(n))


def indices(results: list[Grade | Ungraded]) -> list[int | None]:
    return [result.index for result in results]


# -- order -----------------------------------------------------------------------------------------------


@examples(30)
@given(st.lists(st.integers(0, 30), max_size=25), st.integers(1, 8))
def test_results_come_in_the_order_of_the_candidates(turns: list[int], concurrency: int) -> None:
    """However long each takes, the results stand in the order of their candidates, one for each."""
    results = list(grade_many([f"text {n}" for n in turns], POLITE, Judge(Paced()), concurrency=concurrency))
    assert indices(results) == list(range(len(turns)))


def test_as_completed_the_quick_come_first() -> None:
    """Without order, a slow candidate holds up nobody, and each result tells its place."""
    results = list(grade_many(["text 200", "text 0", "text 0"], POLITE, Judge(Paced()), ordered=False))
    assert results[-1].index == 0
    assert sorted(n for n in indices(results) if n is not None) == [0, 1, 2]


def test_collected_as_completed_they_stand_in_order() -> None:
    """`collect` gives the order of the candidates, however they were completed."""
    grades = grade_many(["text 50", "text 0", "text 9"], POLITE, Judge(Paced()), ordered=False).collect()
    assert indices(list(grades)) == [0, 1, 2]


def test_many_is_the_same_as_one_by_one() -> None:
    """A result of `grade_many` equals that of `grade`."""
    from rubric import grade

    judge = instant()
    assert list(grade_many(texts(5), FOUR, judge)) == [grade(text, FOUR, judge) for text in texts(5)]


# -- laziness and bounds ---------------------------------------------------------------------------------


def counted(taken: list[int], n: int | None = None) -> Iterator[str]:
    for i in count() if n is None else range(n):
        taken.append(i)
        yield f"text {i % 3}"


def test_nothing_is_taken_before_it_is_needed() -> None:
    """A stream that nobody reads takes nothing from its source and asks nobody."""
    taken: list[int] = []
    model = Paced()
    stream = grade_many(counted(taken), POLITE, Judge(model))
    iter(stream)
    assert (taken, model.began) == ([], 0)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_slow_reader_stops_the_workers(ordered: bool) -> None:
    """Of an endless source, at most twice the concurrency is taken ahead of the reader."""
    taken: list[int] = []
    stream = iter(grade_many(counted(taken), POLITE, instant(), concurrency=5, ordered=ordered))
    for read in range(1, 60):
        next(stream)
        assert len(taken) <= read - 1 + 10
    stream.close()  # type: ignore[attr-defined]  # a generator


def test_a_slow_head_stops_the_workers() -> None:
    """In order, those behind a candidate that takes for ever are graded only as far as the bound."""
    taken: list[int] = []
    model = Paced()

    def source() -> Iterator[str]:
        yield "hold 0"
        yield from counted(taken)

    async def main() -> None:
        async with agrade_many(source(), POLITE, Judge(model), concurrency=4) as stream:
            first = asyncio.ensure_future(anext(aiter(stream)))
            while model.ended < 7:  # noqa: ASYNC110
                await asyncio.sleep(0)
            for _ in range(200):
                await asyncio.sleep(0)
            assert (model.began, len(taken), first.done()) == (8, 7, False)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)

    asyncio.run(main())


@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_so_many_requests_at_once_and_no_more(concurrency: int) -> None:
    """`concurrency` bounds the requests under way, however many each candidate needs."""
    model = Paced()
    results = list(grade_many([f"text {n % 7}" for n in range(40)], FOUR, Judge(model), concurrency=concurrency))
    assert (len(results), model.most, model.now) == (40, concurrency, 0)


def test_an_endless_async_source() -> None:
    """An async iterable is awaited where the grading runs; the sync verb takes one too."""

    async def source() -> AsyncIterator[str]:
        for n in count():
            await asyncio.sleep(0)
            yield f"text {n}"

    assert indices(list(islice(grade_many(source(), POLITE, instant()), 20))) == list(range(20))


def test_a_source_that_grades_itself() -> None:
    """A generator may grade while it is gone through: one stream feeds another."""
    first = (Candidate(f"text {result.index}") for result in grade_many(texts(20), POLITE, instant()))
    assert len(list(grade_many(first, POLITE, instant()))) == 20


@pytest.mark.parametrize("candidates", [[], iter(()), ()])
def test_no_candidates_no_results(candidates: list[str]) -> None:
    """An empty source gives an empty stream."""
    assert list(grade_many(candidates, POLITE, instant())) == []


def test_a_candidate_that_needs_no_call_makes_none() -> None:
    """Empty candidates and rubrics that code decides cost nothing."""
    model = ScriptedModel(lambda _: True)
    from rubric import Contains

    assert [g.passed for g in grade_many(["", " "], POLITE, Judge(model))] == [False, False]
    assert [g.passed for g in grade_many(["ab", "b"], Rubric().checks(Contains("a")), Judge(model))] == [True, False]
    assert model.asks == []


# -- what goes wrong -------------------------------------------------------------------------------------


@each_row(
    ("item", "message"),
    [
        (None, "candidates[1]: expected a text, a Candidate, a mapping or a Path, got nothing (None)"),
        (float("nan"), "candidates[1]: expected a text, a Candidate, a mapping or a Path, got nothing (nan)"),
        (7, "candidates[1]: expected a text, a Candidate, a mapping or a Path, got int"),
        ({"output": 7}, "candidates[1].output: expected text, got 7; write output='7'"),
        ({"output": None}, "candidates[1].output: expected text, got nothing (None)"),
        ({"text": "x"}, "candidates[1].output: is not there; name the text that is graded so (there are: text)"),
        ({"messages": []}, "candidates[1].messages: expected messages, each with a role and a content, got []"),
        ({"messages": None}, "candidates[1].messages: expected messages, each with a role and a content, got None"),
        ({"messages": "[]"}, "candidates[1].messages: expected messages, each with a role and a content, got []"),
        (
            {"output": "x", "refrence": "y"},
            "candidates[1].refrence: is not a field of a candidate; did you mean 'reference'? Name it, columns={'reference': 'refrence'}, or pass it over: columns={'refrence': None}",
        ),
    ],
)
def test_what_is_no_candidate_is_ungraded_in_its_place(item: object, message: str) -> None:
    """One bad row of a dataset says where it is and what it lacks, and those beside it are graded."""
    results = list(grade_many(["good", item, "fine"], POLITE, instant()))
    assert [type(result) for result in results] == [Grade, Ungraded, Grade]
    assert [str(failure) for failure in results[1].failures] == [f"bad_request: {message}"]
    assert results[1].usage.calls == 0


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_source_that_raises_loses_nothing(is_async: bool, ordered: bool) -> None:
    """What was taken before is graded and handed out; then the source's own error comes out."""

    def broken() -> Iterator[str]:
        yield from texts(7)
        raise LookupError("the disk is gone")

    async def abroken() -> AsyncIterator[str]:
        for text in broken():
            yield text

    model = Paced()
    results: list[Grade | Ungraded] = []
    stream = grade_many(abroken() if is_async else broken(), POLITE, Judge(model), ordered=ordered)
    with pytest.raises(LookupError, match="the disk is gone"):
        results.extend(stream)
    assert (sorted(r.index or 0 for r in results), model.now) == (list(range(7)), 0)


def test_collect_keeps_what_it_got() -> None:
    """If the source raises, `collected` has the results until then."""

    def broken() -> Iterator[str]:
        yield from texts(3)
        raise LookupError

    stream = grade_many(broken(), POLITE, instant())
    with pytest.raises(LookupError):
        stream.collect()
    assert len(stream.collected.passed) == 3


@define(eq=False)
class Hanging:
    """A model with a price that never answers the fourth criterion, but of the first candidate once others hang."""

    cost: float | None
    answered: int = 0
    hanging: int = 0
    hangs: asyncio.Event = field(factory=asyncio.Event)

    async def answer(self, ask: Ask) -> Reply:
        if ask.criteria[0].text == "Four":
            if ask.candidate != "text 0":
                self.hanging += 1
                self.hangs.set()
                await asyncio.Event().wait()
            await self.hangs.wait()
        self.answered += 1
        return Reply(reply_to(ask, True), usage=Usage(1, 10, 0, 5, self.cost))


@each_row(
    ("stop", "cost", "given"),
    [
        (KeyboardInterrupt, 0.001, {}),
        (LookupError, 0.001, {}),
        (KeyboardInterrupt, None, {"prices": {"Hanging": (100.0, 0.0)}}),
    ],
    ids=["an interrupt", "an error", "agreed prices"],
)
def test_a_run_that_is_stopped_counts_all_that_it_sent(
    stop: type[BaseException], cost: float | None, given: dict[str, Any]
) -> None:
    """The calls, tokens and cost of candidates that did not end are in `collected`, in its summary and in the budget."""
    model, budget = Hanging(cost), Budget(**given)

    def stop_at_once(_: object) -> None:
        raise stop

    stream = grade_many(texts(9), FOUR, Judge(model), concurrency=3, budget=budget, progress=stop_at_once)
    with pytest.raises(stop):
        stream.collect()
    found = stream.collected
    used, summary = found.usage, found.summary()
    assert (used.calls, used.prompt_tokens) == (model.answered, 10 * model.answered)
    assert used.cost == pytest.approx(0.001 * model.answered)
    assert (summary.usage, summary.unfinished) == (used, model.answered)
    assert budget.spent.calls == model.answered + model.hanging
    told = f"{model.answered} of the calls for candidates that did not end"
    assert told in summary.line
    assert told in str(summary)


@define(eq=False)
class HangingAtOne:
    """A model that never answers of the fourth candidate, and tells when it has answered of nine others."""

    answered: int = 0
    nine: threading.Event = field(factory=threading.Event)

    async def answer(self, ask: Ask) -> Reply:
        if ask.candidate == "text 3":
            await asyncio.Event().wait()
        self.answered += 1
        if self.answered == 9:
            asyncio.get_running_loop().call_later(0.05, self.nine.set)  # until the last result is whole
        return Reply(reply_to(ask, True))


def test_results_behind_a_slow_one_are_not_lost_when_a_run_is_stopped() -> None:
    """In `collected` after an interrupt, and from `rest` of a stream that one reads."""
    model = HangingAtOne()

    def stop(progress: Any) -> None:
        if progress.done == 3:
            assert model.nine.wait(20)
            raise KeyboardInterrupt

    stream = grade_many(texts(10), POLITE, Judge(model), concurrency=10, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        stream.collect()
    assert {0, 1, 4, 5, 6, 7, 8, 9} <= {result.index for result in stream.collected}
    model = HangingAtOne()
    read = grade_many(texts(10), POLITE, Judge(model), concurrency=10)
    results = iter(read)  # leaving a loop over it would end it
    first = [next(results).index, next(results).index]
    assert model.nine.wait(20)
    assert [*first, *(result.index for result in read.rest())] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert read.rest() == []


def test_a_run_that_ends_has_the_usage_of_its_results() -> None:
    """Nothing is said of candidates that did not end."""
    grades = grade_many(texts(5), FOUR, instant()).collect()
    summary = grades.summary()
    assert grades.usage.calls == sum(result.usage.calls for result in grades) == 20
    assert (summary.unfinished, "did not end" in summary.line) == (0, False)


def test_a_judge_that_interrupts_ends_the_stream() -> None:
    """A judge that raises `SystemExit` ends the run with it; what was done before is handed out."""

    def judge(messages: list[dict[str, object]]) -> str:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        list(grade_many(texts(3), POLITE, judge))


def test_a_storm_leaves_no_result_out() -> None:
    """Each request fails with p = 0.3 in a random way: each result is a grade, or an ungraded that says why."""
    chance = random.Random(4)
    kinds = ["auth", "refusal", "context_window", "bad_request", "exception", *RETRIED]

    def say(ask: Ask) -> object:
        if chance.random() >= 0.3:
            return True
        wrong = [Failure(kind, "made up") for kind in sorted(kinds)]
        return chance.choice(
            [*wrong, "no verdict", '{"verdict": 7}', Reply(None), Reply('{"verdict"', finish="length")]
        )

    judge = Judge(ScriptedModel(say), retries=0)  # type: ignore[arg-type]
    results = list(grade_many(texts(200), FOUR, judge))
    assert indices(results) == list(range(200))
    for result in results:
        unjudged = [f for f in result.findings if isinstance(f, Unjudged)]
        assert isinstance(result, Ungraded) == bool(unjudged)
        assert all(f.failure.kind and f.failure.message for f in unjudged)
        assert isinstance(result, Ungraded) or result.score == 1.0
    assert {type(result) for result in results} == {Grade, Ungraded}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one text",), "expected many candidates, got the text 'one text'"),
        ((Candidate("x"),), "expected many candidates, got one Candidate"),
        ((7,), "expected an iterable"),
        (("nowhere.jsonl",), "there is no file 'nowhere.jsonl'"),
    ],
)
def test_what_is_not_many_candidates_is_refused_at_once(arguments: tuple[str], message: str) -> None:
    """One candidate, a number or a file that is not there is an error of the call."""
    with pytest.raises(DefinitionError, match=message):
        grade_many(*arguments, POLITE, instant())


@pytest.mark.parametrize("concurrency", [0, -1, True, 1.5, None])
def test_a_concurrency_that_is_none_is_refused(concurrency: int) -> None:
    """`concurrency` is a whole number of at least 1."""
    with pytest.raises(DefinitionError, match="concurrency: expected a whole number of at least 1"):
        grade_many(["x"], POLITE, instant(), concurrency=concurrency)


def test_an_empty_rubric_is_refused_at_once() -> None:
    """A rubric without criteria is an error of the call, and not of each candidate."""
    with pytest.raises(DefinitionError, match="nothing to grade by"):
        grade_many(["x"], Rubric(), instant())


# -- the end ---------------------------------------------------------------------------------------------


def sources() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "rubric-source"]


def test_leaving_the_loop_leaves_nothing_running() -> None:
    """After `break`, what was under way has been cancelled and has ended, and the source has been closed."""
    model = Paced()
    closed = []

    def source() -> Iterator[str]:
        try:
            yield "text 0"
            while True:
                yield "hold 0"
        finally:
            closed.append(threading.current_thread().name)

    stream = grade_many(source(), POLITE, Judge(model), concurrency=6)
    for _ in stream:
        break
    assert (model.now, model.began - 1, closed, sources()) == (0, model.cancelled, ["rubric-source"], [])


def test_an_error_in_the_loop_leaves_nothing_running() -> None:
    """An exception of the reader's own stops what is under way before it goes on its way."""
    model = Paced()
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the loop is what this is about
        for _ in grade_many(["text 0", *["hold 0"] * 20], POLITE, Judge(model), concurrency=4):
            raise ZeroDivisionError
    assert (model.now, model.ended) == (0, model.began)


def test_a_stream_is_read_once() -> None:
    """A second loop over the same stream is an error, not an empty loop."""
    stream = grade_many(texts(2), POLITE, instant())
    assert len(stream.collect()) == 2
    with pytest.raises(RuntimeError, match="can be read once"):
        list(stream)


def test_a_stream_may_be_closed_at_any_time() -> None:
    """`close` before, between and after: it stops what runs, and is not an error."""
    with grade_many(texts(9), POLITE, instant()) as unread:
        unread.close()
    half = grade_many(texts(9), POLITE, instant())
    next(iter(half))
    half.close()
    half.close()
    gc.collect()
    assert sources() == []


def test_in_a_running_loop() -> None:
    """As in a notebook: the sync stream can be read inside a running event loop."""

    async def notebook() -> int:
        return len(grade_many(texts(9), POLITE, instant()).collect())

    assert asyncio.run(notebook()) == 9


def test_in_threads() -> None:
    """Streams in several threads do not disturb one another."""
    with ThreadPoolExecutor(4) as threads:
        lengths = list(threads.map(lambda n: len(grade_many(texts(n), POLITE, instant()).collect()), range(12)))
    assert lengths == list(range(12))


def test_async_is_the_same() -> None:
    """`agrade_many` gives what `grade_many` gives, by `async for` and by `collect`."""

    async def main() -> tuple[list[int | None], int]:
        results = [result async for result in agrade_many(texts(30), POLITE, instant())]
        return indices(results), len(await agrade_many(texts(30), POLITE, instant()).collect())

    assert asyncio.run(main()) == (list(range(30)), 30)


def test_async_leaving_the_block_leaves_nothing_running() -> None:
    """After `async with`, nothing of the stream is under way."""
    model = Paced()

    async def main() -> None:
        async with agrade_many(["text 0", *["hold 0"] * 20], POLITE, Judge(model), concurrency=4) as stream:
            async for _ in stream:
                break
        assert (model.now, model.ended) == (0, model.began)
        while len(asyncio.all_tasks()) > 1:  # Python's own task, which closes the iterator  # noqa: ASYNC110
            await asyncio.sleep(0)

    asyncio.run(main())


def test_async_a_cancellation_leaves_nothing_running() -> None:
    """Whoever cancels the task that reads gets it back when all has ended."""
    model = Paced()

    async def read() -> None:
        async for _ in agrade_many(["hold 0"] * 20, POLITE, Judge(model), concurrency=4):
            raise AssertionError

    async def main() -> None:
        task = asyncio.create_task(read())
        while model.now < 4:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert (model.now, model.cancelled) == (0, 4)


INTERRUPTED = """
import asyncio, sys, threading
from rubric import Judge, Rubric
from rubric.values.requests import Reply
from rubric.engine.bulk import grade_many

under_way = 0

class Slow:
    async def answer(self, ask):
        global under_way
        under_way += 1
        if under_way == 8:
            print("ready", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            under_way -= 1

def endless():
    while True:
        yield "text"

try:
    for result in grade_many(endless(), Rubric().expects("Is polite"), Judge(Slow()), concurrency=8):
        print("a result?")
except KeyboardInterrupt:
    names = [thread.name for thread in threading.enumerate() if thread.name == "rubric-source"]
    print("interrupted", under_way, names)
    sys.exit(7)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_in_a_real_process() -> None:
    """SIGINT while eight requests hang: all are cancelled and awaited, then `KeyboardInterrupt` comes out; no noise."""
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (out, err, child.returncode) == ("interrupted 0 []\n", "", 7)


FLAT = """
import resource, sys
from rubric import Judge, Rubric
from rubric.values.requests import Reply, Usage
from rubric.engine.bulk import grade_many

class Instant:
    async def answer(self, ask):
        return Reply('{"reason": "ok", "verdict": true}', usage=Usage(calls=1, cost=0.0))

def kib():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() // 1024

def source(n):
    return (f"{i} " + "x" * 2000 for i in range(n))

n = int(sys.argv[1])
start = 0
for result in grade_many(source(n), Rubric().expects("Is polite"), Judge(Instant())):
    if result.index == n // 10:
        start = kib()
print(kib() - start)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_flat() -> None:
    """Between 10 % and 100 % of 2,500 candidates of 2 kB, the process grows by less than 4 MiB; see the benchmark."""
    done = subprocess.run([sys.executable, "-c", FLAT, "2500"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 4 * 1024


def test_a_jury_over_many() -> None:
    """Votes are graded as for one candidate."""
    (result,) = grade_many(["text"], POLITE, Jury(instant(), 3))
    assert len(result.votes) == 3


def test_the_room_is_not_lost_to_failures() -> None:
    """Hundreds of failing requests leave the bound on requests as it was."""

    @define(eq=False)
    class Failing(Paced):
        async def answer(self, ask: Ask) -> Reply:
            await Paced.answer(self, ask)
            raise ModelError(Failure("refusal", "no"))

    model = Failing()
    results = list(grade_many(["text 3"] * 300, FOUR, Judge(model), concurrency=5))
    assert (len(results), model.most, model.now) == (300, 5, 0)
