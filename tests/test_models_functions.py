"""Judges that are functions: order, threads, kinds of results, and what they raise."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import TYPE_CHECKING, Any

import pytest

from rubric.errors import ModelError
from rubric.exchanges import Reply, Usage
from rubric.judges import Judge
from rubric.models import FunctionModel
from tests.sendables import ask_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rubric.exchanges import Ask

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
    """Interrupts, exits and cancellations are no failures of the judge."""

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
