"""What never left, or left and was then held back: the store keeps no trace of the one, and does not forget the other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import get_args

import pytest

from rubric import Judge
from rubric.engine.budget import Budget
from rubric.engine.pipeline import Dispatcher
from rubric.engine.rate_limits import Limits
from rubric.store.database import InDoubt
from rubric.store.store import Store
from rubric.values.requests import Ask, Failure, Limiter, Reply, Usage
from tests.store.test_cache_key import ask
from tests.storing import Counted, states

BOTH = pytest.mark.parametrize("in_doubt", get_args(InDoubt))


def outcomes(store: Store, gate: Limiter, *asks: Ask) -> list[Reply | Failure]:
    """Return what comes of *asks*, one after the other, within *gate*."""
    carry = store.transport(Dispatcher(limiter=store.limiter(gate)).send, limited=True)

    async def main() -> list[Reply | Failure]:
        return [await carry(each) for each in asks]

    return asyncio.run(main())


@BOTH
def test_a_request_that_a_limit_refuses_is_no_call(file: Path, in_doubt: InDoubt) -> None:
    """It has more tokens than may ever leave: nothing was sent, so nothing is counted, kept or in doubt."""
    model = Counted()
    with Store(file, in_doubt=in_doubt) as store:
        (failure,) = outcomes(store, Limits(tpm=1), ask(Judge(model)))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.usage, failure.in_doubt, model.asks) == ("bad_request", Usage(), False, [])
    assert states(file) == {}


@BOTH
def test_a_request_that_would_have_to_wait_too_long_is_no_call(file: Path, in_doubt: InDoubt) -> None:
    """The server wants ten minutes of silence: the first call failed, the second one never left."""
    model = Counted(lambda _: Failure("rate_limited", "wait", retry_after=600))
    with Store(file, in_doubt=in_doubt) as store:
        first, second = outcomes(store, Limits(), ask(Judge(model)), ask(Judge(model), "Another text."))
    assert [first.usage.calls, second.usage, len(model.asks)] == [1, Usage(), 1]
    assert states(file) == {"failed": 1}


@BOTH
def test_a_request_that_a_budget_refuses_is_no_call(file: Path, in_doubt: InDoubt) -> None:
    """With no call left, a new session asks as if this one had not been there."""
    model = Counted()
    with Store(file, in_doubt=in_doubt) as store:
        first, second = outcomes(store, Budget(calls=1), ask(Judge(model)), ask(Judge(model), "Another text."))
        assert isinstance(first, Reply)
        assert isinstance(second, Failure)
        assert (second.kind, second.usage) == ("budget", Usage())
        (third,) = outcomes(store, Budget(calls=1), ask(Judge(model), "Another text."))
        assert isinstance(third, Reply)
    assert states(file) == {"done": 2}


def test_a_budget_that_ends_between_attempts_leaves_the_first_in_doubt(file: Path) -> None:
    """The first attempt timed out and may be paid for; that no second one may leave does not undo it."""
    model = Counted(lambda _: Failure("timeout", "too slow", in_doubt=True))
    with Store(file) as store:
        (failure,) = outcomes(store, Budget(calls=1), ask(Judge(model)))
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.usage.calls) == ("budget", 1)
        assert states(file) == {"in_doubt": 1}
    with Store(file, in_doubt="hold") as store:
        (failure,) = outcomes(store, Budget(calls=1), ask(Judge(model)))
        assert isinstance(failure, Failure)
        assert (failure.kind, len(model.asks)) == ("in_doubt", 1)


def test_a_budget_that_ends_after_a_broken_reply_leaves_it_for_audit(file: Path) -> None:
    """The first attempt was answered, by something that is not a reply: it is a call that failed, and was paid for."""
    model = Counted(lambda _: Failure("bad_response", "a page of HTML"))
    with Store(file) as store:
        (failure,) = outcomes(store, Budget(calls=1), ask(Judge(model)))
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.usage.calls) == ("budget", 1)
    assert states(file) == {"failed": 1}


def test_each_judge_is_known_once_however_much_it_is_asked(file: Path) -> None:
    """Where calls are held, requests are sent without retries, by one judge, and not by one a request."""
    judge, room = Judge(Counted()), Dispatcher()

    async def main() -> None:
        carry = store.transport(room.send)
        for number in range(20):
            await carry(ask(judge, f"Text number {number}."))

    with Store(file, in_doubt="hold") as store:
        asyncio.run(main())
    assert len(room._queues) == 1
