"""Judges that are functions: order, threads, kinds of results, and what they raise."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from rubric import Candidate, DefinitionError, Panel, Rubric, grade, grade_many
from rubric.engine.pipeline import Dispatcher, _Turns
from rubric.errors import ModelError
from rubric.models.registry import FunctionModel
from rubric.values.judges import Judge
from rubric.values.requests import RETRIED, Reply, Usage
from tests.rows import each_row
from tests.sendables import ask_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rubric.values.requests import Ask

Messages = list[dict[str, Any]]


def say_hello(messages: Messages) -> str:
    return "hello"


ASK = ask_of(Judge(say_hello))


def numbered(number: int) -> Ask:
    """Return an ask that a function can tell from others by its text."""
    return ask_of(Judge(say_hello), shared=str(number))


def answer(function: Any, ask: Ask = ASK) -> Reply:
    """Return the reply of *function* to *ask*."""
    return asyncio.run(FunctionModel(function).answer(ask))


def failure_of(function: Any) -> tuple[str, str]:
    """Return kind and message of the failure of *function*."""
    with pytest.raises(ModelError) as caught:
        answer(function)
    return caught.value.failure.kind, caught.value.failure.message


SLOW = type("RateLimitError", (Exception,), {"status_code": 429})
RAISED = [
    (ConnectionError("reset by peer"), "transport"), (TimeoutError("late"), "timeout"), (SLOW("slow down"), "rate_limited"),
    (ValueError("none"), "exception"), (RuntimeError("down"), "exception"),
]  # fmt: skip


@each_row(("error", "kind"), RAISED)
def test_what_may_pass_is_tried_again_as_that_of_a_model(error: Exception, kind: str) -> None:
    """A broken connection, a deadline and a rate limit count for `retries=`; any other error is final."""

    def judge(_: Messages) -> str:
        raise error

    assert failure_of(judge) == (kind, f"{type(error).__name__}: {error}")
    assert (kind in RETRIED) is (kind != "exception")


def test_a_sync_function() -> None:
    """What a sync function returns is the text of the reply; nobody knows what it cost."""
    assert answer(say_hello) == Reply("hello", usage=Usage(calls=1, cost=None, unmetered=1))


def test_an_async_function() -> None:
    """What an async function returns is the text of the reply."""

    async def judge(messages: Messages) -> str:
        await asyncio.sleep(0)
        return "hello"

    assert answer(judge).text == "hello"


class Greeter:
    """A judge that is an object."""

    async def __call__(self, messages: Messages) -> str:
        return "hello"

    async def method(self, greeting: str, messages: Messages) -> str:
        return greeting


@pytest.mark.parametrize("judge", [Greeter(), functools.partial(Greeter().method, "hello")])
def test_async_callables(judge: Any) -> None:
    """An object with an async `__call__`, and a partial of an async method, are awaited on the caller's loop."""
    assert answer(judge).text == "hello"


def test_a_sync_function_that_returns_an_awaitable() -> None:
    """An awaitable that a sync function returns is awaited."""
    greeter = Greeter()
    assert answer(lambda messages: greeter(messages)).text == "hello"  # noqa: PLW0108 - a sync function is the point


def test_the_messages() -> None:
    """The function gets chat messages with plain text."""
    assert answer(lambda messages: messages[0]["role"] + messages[0]["content"]).text == "systemYou judge."


PICTURE = "data:image/png;base64,AAAA"


@pytest.mark.parametrize("is_async", [True, False])
def test_images_reach_a_function(is_async: bool, tmp_path: Path) -> None:
    """A candidate's images come as blocks before the text of the last message, also through a store and many at once."""
    seen: list[Any] = []

    def judge(messages: Messages) -> str:
        seen.append(messages)
        return '{"verdict": true}'

    async def awaited(messages: Messages) -> str:
        return judge(messages)

    candidate, asked = Candidate("A cat.", images=[PICTURE]), Judge(awaited if is_async else judge, identity="v1")
    grade(candidate, "Describes the image", asked)
    grade_many(
        [{"output": "A cat.", "images": [PICTURE]}], "Describes the image", asked, store=tmp_path / "s.db"
    ).collect()
    for system, user in seen:
        image, text = user["content"]
        assert (type(system["content"]), image) == (str, {"type": "image_url", "image_url": {"url": PICTURE}})
        assert "A cat." in text["text"]
    assert len(seen) == 2


def test_the_offline_judge_says_that_it_sees_no_image() -> None:
    """It counts words, and the grade says what it has left out."""
    result = grade(Candidate("A cat.", images=[PICTURE]), "Describes the image", "offline")
    assert result.warnings == ("an image was not sent: the model does not take it",)


def test_an_async_function_runs_on_the_callers_loop() -> None:
    """An async function may use what belongs to the caller's loop."""

    async def main() -> bool:
        here = asyncio.get_running_loop()

        async def judge(messages: Messages) -> str:
            return str(asyncio.get_running_loop() is here)

        return (await FunctionModel(judge).answer(ASK)).text == "True"

    assert asyncio.run(main())


def test_sync_calls_come_one_by_one_in_order() -> None:
    """Sync calls run in one thread that is not the caller's, in the order of the asks."""
    seen: list[tuple[str, int]] = []

    def judge(messages: Messages) -> str:
        seen.append((messages[-1]["content"].split("Criterion")[0], threading.get_ident()))
        return ""

    async def main() -> None:
        model = FunctionModel(judge)
        await asyncio.gather(*(model.answer(numbered(n)) for n in range(50)))

    asyncio.run(main())
    assert [number for number, _ in seen] == [str(n) for n in range(50)]
    assert len({thread for _, thread in seen} - {threading.get_ident()}) == 1


def test_async_calls_run_side_by_side() -> None:
    """Async calls are under way at the same time."""

    async def main() -> list[str | None]:
        met = asyncio.Barrier(3)

        async def judge(messages: Messages) -> str:
            await met.wait()
            return "met"

        model = FunctionModel(judge)
        return [reply.text for reply in await asyncio.gather(*(model.answer(ASK) for _ in range(3)))]

    assert asyncio.run(main()) == ["met"] * 3


def test_a_mapping_is_taken_as_json() -> None:
    """A mapping that a function returns becomes JSON."""
    assert answer(lambda _: {"verdict": True}).text == '{"verdict": true}'


@pytest.mark.parametrize(("value", "name"), [(None, "NoneType"), (7, "int"), (b"yes", "bytes"), (["yes"], "list")])
def test_other_results_are_bad_responses(value: object, name: str) -> None:
    """What is neither text nor a mapping is a bad response that names the type."""
    kind, message = failure_of(lambda _: value)
    assert (kind, f"returned {name};" in message) == ("bad_response", True)


def raise_(error: BaseException) -> str:
    raise error


def test_an_exception_is_a_typed_failure() -> None:
    """What a function raises becomes a failure with its type and text; the error is its cause."""
    error = LookupError("no such thing")
    with pytest.raises(ModelError) as caught:
        answer(lambda _: raise_(error))
    assert (caught.value.failure.kind, caught.value.failure.message) == ("exception", "LookupError: no such thing")
    assert caught.value.__cause__ is error


def test_a_script_that_has_run_out() -> None:
    """A function over an iterator that has run out fails; it does not hang."""
    script: Iterator[str] = iter([])
    assert failure_of(lambda _: next(script)) == ("exception", "StopIteration")


def test_secrets_in_exceptions_are_masked() -> None:
    """A key in the text of an exception is masked."""
    assert failure_of(lambda _: raise_(ValueError("bad key sk-abcdefghijkl")))[1] == "ValueError: bad key [secret]"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_interrupts_pass(stop: type[BaseException]) -> None:
    """Interrupts, exits and cancellations are not failures of the judge."""

    async def judge(messages: Messages) -> str:
        raise stop

    with pytest.raises(stop):
        answer(judge)


def test_a_call_that_hangs_does_not_hold_up_the_next() -> None:
    """The next one gets a thread of its own, and the end of the process waits for neither."""
    let_go = threading.Event()

    def judge(messages: Messages) -> str:
        if "0" in messages[-1]["content"]:
            let_go.wait()
        return "hello"

    async def two() -> str:
        model = FunctionModel(judge)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await model.answer(numbered(0))
        return (await model.answer(numbered(1))).text or ""

    assert asyncio.run(two()) == "hello"
    let_go.set()
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "rubric-judge")


# -- threads ---------------------------------------------------------------------------------------------


def of_judges() -> list[threading.Thread]:
    """Return the threads of functions that there are."""
    return [thread for thread in threading.enumerate() if thread.name == "rubric-judge"]


@pytest.mark.parametrize("kept", [True, False])
def test_functions_that_come_and_go_leave_few_threads(kept: bool) -> None:
    """Functions by the dozen, each of which judges once, leave no thread each, whether the grades are kept or not."""
    grades = []
    for _ in range(60):
        result = grade("Thank you.", "Says thank you", lambda _: '{"verdict": true}')
        grades += [result] if kept else []
    end = time.monotonic() + 60
    while len(of_judges()) > 4 and time.monotonic() < end:  # those that were told to end are about to
        time.sleep(0.001)
    assert len(of_judges()) <= 4


def test_a_function_keeps_its_thread() -> None:
    """What belongs to a thread, such as a connection of sqlite3, works from one grade to the next."""
    seen = set()

    def judge(messages: Messages) -> str:
        seen.add(threading.get_ident())
        return '{"verdict": true}'

    for _ in range(20):
        grade("Thank you.", "Says thank you", judge)
    assert len(seen) == 1


def test_a_call_that_hangs_takes_no_time_from_those_behind_it() -> None:
    """Short calls wait in the thread of a function; the deadline of each begins when the thread takes it."""
    let_go = threading.Event()

    def judge(messages: Messages) -> str:
        if "Names 250." in messages[-1]["content"]:
            let_go.wait()
        return '{"reason": "read", "verdict": true}'

    by = Judge(judge, timeout=0.5, retries=0, repairs=0)
    try:
        results = grade_many(["text"] * 300, [Rubric(criteria=[f"Names {n}."]) for n in range(300)], by).collect()
        assert [result.index for result in results if result.score is None] == [250]
        assert results[250].failures[0].kind == "timeout"
    finally:
        let_go.set()


def test_turns_grow_while_calls_are_short() -> None:
    """A function that is fast has calls wait in its thread, up to a bound; a slow one has as many as threads."""

    class Model:
        threads, pace, busy = 1, 0.0, 0.0

    async def main() -> list[int]:
        turns, widths = _Turns(Model(), ASK.judge), list[int]()
        for pace in (0.0, 1.0):
            turns.model.pace = pace
            for _ in range(40):
                turns.end(await turns.begin())
            widths.append(turns.width)
        return widths

    assert asyncio.run(main()) == [32, 1]


def test_calls_that_hang_are_replaced_one_by_one() -> None:
    """A call that hangs does not hold up those that wait behind it, also of another user; they keep their order."""
    let_go, seen = threading.Event(), list[str]()
    begun = {number: threading.Event() for number in "0123"}

    def judge(messages: Messages) -> str:
        number = str(messages[-1]["content"]).split("Criterion")[0]
        seen.append(number)
        begun[number].set()
        if number in "01":
            let_go.wait()
        return number

    async def main() -> list[str | None]:
        first, other = FunctionModel(judge), FunctionModel(judge)
        hung = [asyncio.create_task(first.answer(numbered(n))) for n in (0, 1)]
        rest = [asyncio.create_task(other.answer(numbered(n))) for n in (2, 3)]
        for number, task in enumerate(hung):
            await asyncio.to_thread(begun[str(number)].wait)
            task.cancel()
        return [reply.text for reply in await asyncio.gather(*rest)]

    try:
        assert asyncio.run(asyncio.wait_for(main(), 30)) == ["2", "3"]
        assert seen == ["0", "1", "2", "3"]
    finally:
        let_go.set()


def test_threads_call_a_function_side_by_side() -> None:
    """With `threads=4` four calls of a sync function are under way at once, and no more."""
    met = threading.Barrier(4)
    lock, running, most = threading.Lock(), 0, 0

    def judge(messages: Messages) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        met.wait(30)
        with lock:
            running -= 1
        return '{"verdict": true}'

    grades = grade_many(["Thank you."] * 40, "Says thank you", Judge(judge, threads=4), concurrency=20).collect()
    assert (len(grades.passed), most) == (40, 4)


async def later(messages: Messages) -> str:
    return ""


@pytest.mark.parametrize("model", ["offline", "openai/gpt-5.6", later, Greeter(), FunctionModel(say_hello)])
def test_threads_without_an_effect_are_refused(model: Any) -> None:
    """A model name, a model and an async function have no threads of ours; one thread is what they all may say."""
    assert Judge(model, threads=1).threads == 1
    with pytest.raises(DefinitionError, match=r"threads: 8 has no effect .*; leave it out, or say .*concurrency=8"):
        Judge(model, threads=8)


# -- functions that are slow, one after another ----------------------------------------------------------


class Slow:
    """A model that is asked one call after another, and says how long its calls have taken so far."""

    is_serial = True
    busy = 0.0

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def answer(self, ask: Ask, /) -> Reply:
        await asyncio.sleep(0)
        self.busy += self.seconds
        return Reply("")


@each_row(
    ("seconds", "calls", "remarks"),
    [(0.1, 30, 1), (0.02, 30, 1), (1.0, 2, 1), (60.0, 1, 0), (0.1, 4, 0), (0.001, 600, 0)],
)
def test_a_remark_on_slow_functions(seconds: float, calls: int, remarks: int) -> None:
    """There is one, once, as soon as calls have waited half a second for calls that are not instant."""
    room = Dispatcher()

    async def main() -> None:
        judge = Judge(Slow(seconds))
        await asyncio.gather(*(room.send(ask_of(judge)) for _ in range(calls)))

    asyncio.run(main())
    assert (len(room.remarks()), room.remarks()) == (remarks, ())


def slow(messages: Messages) -> str:
    time.sleep(0.02)
    return '{"verdict": true}'


REMARK = "slow is a synchronous function, so its calls wait for one another; if it may be called side by side, say so"


def test_slow_functions_are_told_of_in_results() -> None:
    """Of a run one result says so, and its summary; with threads no result does."""
    texts = ["Thank you."] * 32
    grades = grade_many(texts, "Says thank you", slow).collect()
    assert sum(warning.startswith(REMARK) for result in grades for warning in result.warnings) == 1
    assert REMARK in str(grades)
    assert REMARK in grades.summary()._repr_markdown_()
    assert not any(result.warnings for result in grade_many(texts, "Says thank you", Judge(slow, threads=32)))


def test_slow_functions_are_told_of_in_one_result() -> None:
    """A rubric with many criteria, or a panel, is enough."""
    rubric = Rubric("thanks")
    for number in range(15):
        rubric = rubric.expects(f"Says thank you {number} times")
    assert REMARK in grade("Thank you.", rubric, Panel([slow, slow])).warnings[0]
