"""The loop that tries again: when, how often, how long it waits, and what it adds up."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest
from attrs import field, frozen
from hypothesis import given
from hypothesis import strategies as st

from rubric import Store, UngradedError, agrade, grade
from rubric.errors import ModelError
from rubric.models.litellm import LiteLLMModel
from rubric.models.retry import Deadline, _watches, attempt
from rubric.values.criteria import Criterion
from rubric.values.judges import Judge
from rubric.values.requests import REASKED, RETRIED, Failure, FailureKind, Reply, Usage
from tests.examples import examples
from tests.rows import each_row
from tests.sendables import ask_of, openai_ask
from tests.servers import BODIES, STATUSES, Server
from tests.simulating import simulate

if TYPE_CHECKING:
    from rubric.values.requests import Ask

KINDS: tuple[FailureKind, ...] = get_args(FailureKind)
OF_REQUESTS = [kind for kind in KINDS if kind not in ("budget", "in_doubt", "replay")]
GOOD = Reply("yes", usage=Usage(1, 10, 0, 5, 0.25))


@frozen
class Script:
    """A model that answers and fails as it is told, the last line for ever, and counts the asks."""

    lines: tuple[Reply | Failure | BaseException, ...]
    asks: list[Ask] = field(factory=list)

    async def answer(self, ask: Ask, /) -> Reply:
        line = self.lines[min(len(self.asks), len(self.lines) - 1)]
        self.asks.append(ask)
        if isinstance(line, Failure):
            raise ModelError(line)
        if isinstance(line, BaseException):
            raise line
        return line


def run(
    *lines: Reply | Failure | BaseException, retries: int = 2, jitter: float = 1.0
) -> tuple[Reply | Failure, list[float], int]:
    """Return the outcome, the waits and the number of asks."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    model = Script(lines)
    ask = ask_of(Judge(model, retries=retries))
    outcome = asyncio.run(attempt(model, ask, sleep=sleep, random=lambda: jitter))
    return outcome, waits, len(model.asks)


def failed(*lines: Reply | Failure | BaseException, **options: float) -> Failure:
    """Return the failure that a script ends in."""
    outcome, _, _ = run(*lines, **options)  # type: ignore[arg-type]  # retries is a whole number
    assert isinstance(outcome, Failure)
    return outcome


def test_a_good_reply_at_once() -> None:
    """A reply comes back as it is, after one ask and no wait."""
    assert run(GOOD) == (GOOD, [], 1)


@each_row("kind", KINDS)
def test_which_kinds_are_tried_again(kind: FailureKind) -> None:
    """Kinds that another attempt may cure get all attempts, a bad response two, the others one."""
    outcome, _, asks = run(Failure(kind, ""), retries=4)
    expected = 2 if kind == "bad_response" else 5 if kind in RETRIED else 1
    assert (getattr(outcome, "kind", ""), asks) == (kind, expected)


def test_a_cure() -> None:
    """A reply after failures in passing is a reply, with the usage of all attempts."""
    outcome, _, asks = run(Failure("rate_limited", ""), Failure("overloaded", ""), GOOD)
    assert (outcome.usage, asks) == (Usage(3, 10, 0, 5, 0.25), 3)


def test_bad_responses_are_counted_among_others() -> None:
    """The second bad response ends it, whatever came between."""
    bad, busy = Failure("bad_response", ""), Failure("overloaded", "")
    assert run(bad, busy, bad, GOOD, retries=9)[2] == 3


def test_the_waits_double_up_to_a_limit() -> None:
    """Without a wish of the server the waits grow from half a second to twenty seconds."""
    waits = run(Failure("overloaded", ""), retries=8)[1]
    assert waits == [0.5, 1, 2, 4, 8, 16, 20, 20]


def test_the_jitter_is_full() -> None:
    """A wait is a random part of the whole, down to nothing."""
    assert run(Failure("overloaded", ""), jitter=0.0)[1] == [0, 0]


def test_a_longer_wish_of_the_server_is_honoured() -> None:
    """Where the server asks for a longer wait, that is kept; where for a shorter one, the backoff is."""
    assert run(Failure("rate_limited", "", retry_after=7), Failure("rate_limited", "", retry_after=0.1))[1] == [7, 1]


def test_a_wish_beyond_two_minutes_ends_it() -> None:
    """A server that asks for more than two minutes is not waited for, and the failure says so."""
    outcome, waits, asks = run(Failure("rate_limited", "busy", retry_after=121))
    assert (waits, asks, "121 seconds" in str(outcome)) == ([], 1, True)


def test_the_failure_says_who_and_what() -> None:
    """The failure names the judge and the criterion."""
    failure = failed(Failure("auth", "no"))
    assert (failure.judge, failure.criterion) == ("Script", "is-polite")


def test_a_failure_about_several_criteria_names_none() -> None:
    """A call that judges several criteria fails for all of them."""
    model = Script((Failure("auth", "no"),))
    ask = ask_of(Judge(model), Criterion("a"), Criterion("b"), many=True)
    failure = asyncio.run(attempt(model, ask))
    assert isinstance(failure, Failure)
    assert failure.criterion == ""


@each_row(
    ("failure", "usage"),
    [
        (Failure("auth", ""), Usage(1, cost=0.0)),
        (Failure("rate_limited", ""), Usage(3, cost=0.0)),
        (Failure("timeout", "", in_doubt=True), Usage(3, cost=None, unmetered=3)),
        (Failure("bad_response", ""), Usage(2, cost=None, unmetered=2)),
        (Failure("bad_response", "", usage=Usage(1, 10, 0, 0, 0.5)), Usage(2, 20, 0, 0, 1.0)),
        (Failure("exception", ""), Usage(1, cost=None, unmetered=1)),
    ],
)
def test_what_failures_used(failure: Failure, usage: Usage) -> None:
    """Turned away costs nothing; an unknown fate is unmetered; what the model reports is taken as it is."""
    assert failed(failure).usage == usage


@given(st.lists(st.sampled_from(OF_REQUESTS), max_size=6), st.integers(0, 5))
def test_every_attempt_is_counted(kinds: list[FailureKind], retries: int) -> None:
    """However it goes, the usage counts each ask, and there are no more than were granted."""
    outcome, waits, asks = run(*(Failure(kind, "") for kind in kinds), GOOD, retries=retries)
    assert outcome.usage.calls == asks == len(waits) + 1 <= 1 + retries


def test_an_unexpected_exception_is_a_failure() -> None:
    """What a model raises that it should not is a failure with type and text, without secrets."""
    failure = failed(ZeroDivisionError("by sk-0123456789abc"))
    assert (failure.kind, failure.message) == ("exception", "ZeroDivisionError: by [secret]")


def test_something_else_than_a_reply_is_a_failure() -> None:
    """A model that returns no `Reply` has failed."""
    failure = failed("yes")  # type: ignore[arg-type]  # that is the point
    assert (failure.kind, "returned str" in failure.message) == ("exception", True)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_interrupts_pass(stop: type[BaseException]) -> None:
    """Interrupts and exits end the attempts."""
    with pytest.raises(stop):
        run(stop())


class Hanging:
    """A model that never answers."""

    async def answer(self, ask: Ask, /) -> Reply:
        await asyncio.Event().wait()
        return GOOD


def test_any_model_ends() -> None:
    """A model that does not end is ended at the judge's timeout, and its fate is in doubt."""
    ask = ask_of(Judge(Hanging(), timeout=0.01, retries=0))
    failure = asyncio.run(attempt(Hanging(), ask))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.in_doubt, failure.usage.unmetered) == ("timeout", True, 1)


class Slow:
    """A model that takes longer to get ready than it has for an answer."""

    async def ready(self) -> None:
        await asyncio.sleep(0.1)

    async def answer(self, ask: Ask, /) -> Reply:
        return GOOD


def test_getting_ready_has_no_deadline() -> None:
    """The time that a model takes to get ready is not the attempt's."""
    assert asyncio.run(attempt(Slow(), ask_of(Judge(Slow(), timeout=0.05)))) == GOOD


def test_against_a_server() -> None:
    """Against a server that recovers, the waits are what it asks for and the requests are what is counted."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    with Server() as server:
        endpoint = server.at("429-after", "reset", "ok")
        ask = openai_ask(endpoint, timeout=30)
        reply = asyncio.run(attempt(LiteLLMModel(), ask, sleep=sleep, random=lambda: 0.0))
    assert isinstance(reply, Reply)
    assert (waits, reply.usage.calls, reply.usage.unmetered, len(endpoint.requests)) == ([0.05, 0.0], 3, 1, 3)


UNREADABLE, CUT, EMPTY = Reply("Well."), Reply('{"reason": "It', finish="length"), Reply("")
LINES = st.sampled_from([UNREADABLE, CUT, EMPTY, *(Failure(kind, "") for kind in OF_REQUESTS)])


def requests_of(lines: tuple[Reply | Failure, ...], retries: int, repairs: int) -> int:
    """Return how many requests one criterion takes of a model that answers and fails as *lines* say."""
    model = Script(lines)
    judge = Judge(model, retries=retries, repairs=repairs, timeout=10_000)
    with suppress(UngradedError):
        simulate(agrade("Hello.", "Is polite", judge))
    return len(model.asks)


@each_row(("retries", "repairs"), [(0, 0), (0, 1), (0, 3), (1, 0), (2, 1), (3, 2)])
@each_row("kind", [*OF_REQUESTS, "empty"])
def test_one_kind_of_failure_uses_retries_or_repairs(kind: Any, retries: int, repairs: int) -> None:
    """Never both: a bad response is sent again once at most, and not at all without retries."""
    again = min(retries, 1) if kind in ("bad_response", "empty") else retries if kind in RETRIED else 0
    again = repairs if kind in REASKED else again
    line = {"unreadable": UNREADABLE, "truncated": CUT, "empty": EMPTY}.get(kind, Failure(kind, ""))
    assert requests_of((line,), retries, repairs) == 1 + again


@examples(60)
@given(st.lists(LINES, min_size=1, max_size=12).map(tuple), st.integers(0, 4), st.integers(0, 3))
def test_a_criterion_takes_at_most_one_and_the_retries_and_the_repairs(
    lines: tuple[Reply | Failure, ...], retries: int, repairs: int
) -> None:
    """Whatever goes wrong, in whatever order: the two numbers add up, and do not multiply."""
    assert requests_of(lines, retries, repairs) <= 1 + retries + repairs


def test_in_doubt_calls_that_are_held_take_no_more(tmp_path: Path) -> None:
    """A store that sends nothing twice counts the same way."""
    model = Script((Failure("rate_limited", ""), UNREADABLE, Failure("overloaded", "")))
    judge = Judge(model, retries=2, repairs=2, timeout=10_000, identity="v1")
    with Store(tmp_path / "replies.db", in_doubt="hold") as store, pytest.raises(UngradedError) as error:
        grade("Hello.", "Is polite", judge, store=store)
    assert len(model.asks) == error.value.result.usage.calls == 4


@each_row("behaviour", [*(kind for kind in BODIES if kind != "surrogate"), *STATUSES, "reset", "close"])
@each_row("via", ["http", "litellm"])
def test_without_retries_and_repairs_one_request_leaves(behaviour: str, via: str) -> None:
    """On the wire, however the server misbehaves."""
    with Server() as server:
        endpoint = server.at(behaviour)
        params = {"api_base": endpoint.openai, "api_key": "none-at-all"}
        judge = Judge("openai/gpt-4o-mini", via=via, retries=0, repairs=0, params=params)
        with suppress(UngradedError):
            grade("Hello.", "Is polite", judge)
        assert len(endpoint.requests) == 1


# -- deadlines -------------------------------------------------------------------------------------------


@examples(50)
@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3), st.sampled_from([1.0, 1.5])), max_size=12))
def test_each_request_has_its_own_deadline(requests: list[tuple[float, float, float]]) -> None:
    """Whenever each is sent, however long it takes: it is through if and only if that is within its timeout."""

    async def one(start: float, seconds: float, most: float) -> bool:
        await asyncio.sleep(start)
        try:
            with Deadline(most):
                await asyncio.sleep(seconds)
        except TimeoutError:
            return False
        return True

    async def main() -> list[bool]:
        return await asyncio.gather(*(one(*each) for each in requests))

    came = simulate(main())
    for (_, seconds, timeout), is_through in zip(requests, came, strict=True):
        assert is_through == (seconds < timeout) or seconds == pytest.approx(timeout, abs=1e-5)


def test_a_deadline_within_a_deadline() -> None:
    """A judge that grades by itself has two in one task; the sooner one ends it, and each ends its own."""

    async def main() -> list[str]:
        said = []
        try:
            with Deadline(2.0):
                try:
                    with Deadline(1.0):
                        await asyncio.sleep(5)
                except TimeoutError:
                    said.append("inner")
                await asyncio.sleep(5)
        except TimeoutError:
            said.append("outer")
        await asyncio.sleep(5)
        return said

    assert simulate(main()) == ["inner", "outer"]


def test_a_cancellation_is_none_of_the_deadline() -> None:
    """A task that is cancelled from outside ends as cancelled, also where its time is over at that moment."""

    async def main() -> list[bool]:
        async def waits() -> None:
            with Deadline(1.0):
                await asyncio.sleep(5)

        before, both = asyncio.create_task(waits()), asyncio.create_task(waits())
        await asyncio.sleep(0.5)
        before.cancel()
        asyncio.get_running_loop().call_later(0.5, both.cancel)
        await asyncio.wait([before, both])
        return [before.cancelled(), both.cancelled()]

    assert simulate(main()) == [True, True]


def test_deadlines_of_one_loop_after_the_other() -> None:
    """Each loop has timers of its own, and none is kept once it is closed."""
    model = Script((GOOD,))
    slow = Judge(lambda _: "never", timeout=0.01)

    async def hangs() -> bool:
        try:
            with Deadline(slow.timeout):
                await asyncio.Event().wait()
        except TimeoutError:
            return True
        return False

    gc.collect()
    of_others = [loop for loop in _watches if loop.is_closed()]  # another test's, which something still holds
    for _ in range(3):
        assert asyncio.run(attempt(model, ask_of(Judge(model)))) == GOOD
        assert asyncio.run(hangs())
    gc.collect()
    assert not [loop for loop in _watches if loop.is_closed() and loop not in of_others]
