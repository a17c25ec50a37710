"""Several askers at once: tasks, loops, threads, stores and processes, and those that are gone."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rubric import Grade, Judge, Ungraded
from rubric.engine.pipeline import Dispatcher
from rubric.errors import StoreError
from rubric.store.audit import verify
from rubric.store.cache_key import Request
from rubric.store.database import Busy, Database, Liveness, Served, Session, Yours, here
from rubric.store.schema import connect
from rubric.store.store import Store
from rubric.values.requests import Ask, Failure, Reply, Usage
from tests.places import ROOT
from tests.store.test_cache_key import ask
from tests.storing import PAID, Counted, agraded, carried, graded, states


def wait_for(file: Path, state: str) -> None:
    """Wait until a call is in *state*."""
    deadline = time.monotonic() + 60
    while state not in states(file):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_those_who_ask_at_once_share_one_request(file: Path) -> None:
    """Ten tasks, one call; its price stands in one result alone."""
    model = Counted(busy=0.05)

    async def ten(store: Store) -> list[Grade | Ungraded]:
        return await asyncio.gather(*(agraded(store, Judge(model)) for _ in range(10)))

    with Store(file) as store:
        results = asyncio.run(ten(store))
    assert len(model.asks) == 1
    assert sum((result.usage for result in results), Usage()) == PAID


def test_one_who_stops_waiting_stops_nobody_else(file: Path) -> None:
    """The first that asked is cancelled; the second gets the answer, and the bill."""
    model = Counted(busy=0.1)

    async def two(store: Store) -> Grade | Ungraded:
        first = asyncio.create_task(agraded(store, Judge(model)))
        second = asyncio.create_task(agraded(store, Judge(model)))
        await asyncio.sleep(0.03)
        first.cancel()
        return await second

    with Store(file) as store:
        result = asyncio.run(two(store))
    assert result.usage == PAID
    assert len(model.asks) == 1
    assert model.cancelled == 0


@pytest.mark.parametrize("in_doubt", ["retry", "hold"])
def test_a_request_that_nobody_waits_for_is_cancelled_and_in_doubt(file: Path, in_doubt: str) -> None:
    """It had left; whether it is sent again is for the policy to say, in the same process too."""
    model = Counted(busy=30)

    async def stopped(store: Store) -> None:
        task = asyncio.create_task(agraded(store, Judge(model)))
        await model.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert model.cancelled == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with Store(file, in_doubt=in_doubt) as store:  # type: ignore[arg-type]
        asyncio.run(stopped(store))
        wait_for(file, "in_doubt")
        model.busy = 0
        result = graded(store, Judge(model))
    assert isinstance(result, Grade if in_doubt == "retry" else Ungraded)
    assert len(model.asks) == (2 if in_doubt == "retry" else 1)


def test_what_waits_for_its_turn_is_not_in_doubt(file: Path) -> None:
    """A request that never left is forgotten when it is cancelled."""

    async def stopped(store: Store) -> None:
        room = Dispatcher(asyncio.Semaphore(0), store.limiter())
        carry = store.transport(room.send, limited=True)
        task = asyncio.ensure_future(carry(ask(Judge(Counted()))))
        await asyncio.to_thread(wait_for, file, "claimed")
        task.cancel()
        await asyncio.wait([task])

    with Store(file, in_doubt="hold") as store:
        asyncio.run(stopped(store))
    assert states(file) == {}


def test_a_request_that_was_turned_away_is_not_in_doubt_while_it_waits(file: Path) -> None:
    """Between a 429 and the next attempt nothing is under way, and nothing has been paid for."""

    async def stopped(store: Store) -> None:
        model = Counted(lambda _: Failure("rate_limited", "slowly", retry_after=60))
        task = asyncio.create_task(carried(store, ask(Judge(model))))
        await model.asked.wait()
        await asyncio.to_thread(wait_for, file, "claimed")
        task.cancel()
        await asyncio.wait([task])

    with Store(file) as store:
        asyncio.run(stopped(store))
    assert states(file) == {}


@pytest.mark.parametrize("waits", [0.0, 0.3])
def test_a_request_is_recorded_as_sent_before_it_leaves_and_as_done_before_it_is_used(file: Path, waits: float) -> None:
    """Whether it leaves at once, or is claimed while it waits for the limits: another process would see so."""
    seen: list[dict[str, int]] = []

    def say(_: Ask) -> bool:
        seen.append(states(file))
        return True

    @asynccontextmanager
    async def slow(_: Ask) -> AsyncIterator[Callable[[object], None]]:
        await asyncio.sleep(waits)
        seen.append(states(file))
        yield lambda _: None

    async def main(store: Store) -> None:
        transport = store.transport(Dispatcher(limiter=store.limiter(slow)).send, limited=True)
        await transport(ask(Judge(Counted(say))))
        seen.append(states(file))

    with Store(file) as store:
        asyncio.run(main(store))
    assert seen == [{"claimed": 1} if waits else {}, {"sent": 1}, {"done": 1}]


def test_a_request_that_waits_when_its_store_is_closed_ends_in_words(file: Path) -> None:
    """Its turn comes too late: it is not sent, and nothing is logged by the loop."""
    model, logged = Counted(), list[object]()

    @asynccontextmanager
    async def slow(_: Ask) -> AsyncIterator[Callable[[object], None]]:
        store.close()
        await asyncio.sleep(0.3)
        yield lambda _: None

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
        transport = store.transport(Dispatcher(limiter=store.limiter(slow)).send, limited=True)
        with pytest.raises(StoreError, match="the store is closed"):
            await transport(ask(Judge(model)))

    store = Store(file)
    asyncio.run(main())
    assert (model.asks, logged, states(file)) == ([], [], {})


def test_two_stores_on_one_file_share_one_request(file: Path) -> None:
    """The second waits for the first, and is served what that one paid for."""
    model = Counted(busy=0.2)
    results: list[Grade | Ungraded] = []

    def work() -> None:
        with Store(file) as store:
            results.append(graded(store, Judge(model)))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(model.asks) == 1
    assert sum((result.usage for result in results), Usage()) == PAID


def test_one_store_serves_several_loops(file: Path) -> None:
    """Threads with loops of their own share one store, and pay once."""
    model = Counted(busy=0.1)
    with Store(file) as store:
        threads = [threading.Thread(target=graded, args=(store, Judge(model))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(model.asks) == 1


CHILD = textwrap.dedent(
    """
    import asyncio, sys
    from rubric import Judge
    from rubric import Store
    from tests.storing import Counted, graded, states

    class Telling(Counted):
        __name__ = 'Counted'
        async def answer(self, ask):
            print("asked", flush=True)
            return await Counted.answer(self, ask)

    with Store(sys.argv[1]) as store:
        result = graded(store, Judge(Telling(busy=float(sys.argv[2]))))
        print(result.usage.calls, flush=True)
    """
)


def child(file: Path, busy: float) -> subprocess.Popen[str]:
    """Start a process that grades, and whose model is *busy* for so many seconds; return when that has been asked."""
    command = [sys.executable, "-c", CHILD, str(file), str(busy)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    return process


def test_two_processes_share_one_request(file: Path) -> None:
    """What one of them has sent, the other waits for."""
    model = Counted()
    process = child(file, 0.5)
    with Store(file) as store:
        result = graded(store, Judge(model))
    assert process.communicate(timeout=20)[0] == "1\n"
    assert result.usage == Usage()
    assert not model.asks


def test_what_a_dead_process_had_sent_is_taken_over(file: Path) -> None:
    """A process that waits for another one that is killed sends the request itself."""
    process = child(file, 60)
    killer = threading.Timer(0.3, process.kill)
    killer.start()
    with Store(file) as store:
        result = graded(store, Judge(Counted()))
        assert store.tally.resent == 1
    process.communicate(timeout=20)
    assert isinstance(result, Grade)
    assert verify(file) == []


def test_ctrl_c_leaves_a_store_that_goes_on(file: Path) -> None:
    """SIGINT ends the process; its request is in doubt, and the next run sends it again."""
    process = child(file, 60)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert states(file) == {"in_doubt": 1}
    with Store(file) as store:
        assert isinstance(graded(store, Judge(Counted())), Grade)
    assert verify(file) == []


def test_a_session_without_a_heartbeat_is_dead_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where process ids say nothing, ten seconds of silence on our own clock do."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    liveness = Liveness(1)
    other = Session(2, "another machine's container", os.getpid(), heartbeat=7, is_open=True)
    for now, expected in ((0.0, True), (9.0, True), (11.0, False)):  # noqa: B007 - the clock reads it
        assert liveness.is_alive(other) == expected
    assert liveness.is_alive(Session(2, other.host, other.pid, heartbeat=8, is_open=True))


def test_a_closed_session_and_a_process_that_is_gone_are_told_at_once() -> None:
    """Neither is waited for."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    liveness = Liveness(1)
    assert not liveness.is_alive(Session(2, here(), os.getpid(), heartbeat=1, is_open=False))
    assert not liveness.is_alive(Session(3, here(), process.pid, heartbeat=1, is_open=True))


def test_a_store_goes_to_another_process_by_its_name(file: Path) -> None:
    """Pickled, it is opened anew where it arrives."""
    with Store(file, in_doubt="hold") as store, pickle.loads(pickle.dumps(store)) as other:  # noqa: S301
        assert repr(other) == repr(store)
        graded(store, Judge(Counted()))
        assert graded(other, Judge(Counted())).usage == Usage()


def in_fork(store: Store) -> None:
    """Grade in a forked child, and leave with the number of calls."""
    os._exit(graded(store, Judge(Counted()), "Good evening!").usage.calls)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_the_file_for_itself(file: Path) -> None:
    """It has neither the thread nor the connection of its parent, and what it paid for is there for both."""
    with Store(file) as store:
        graded(store, Judge(Counted()))
        process = multiprocessing.get_context("fork").Process(target=in_fork, args=(store,))
        process.start()
        process.join(20)
        assert process.exitcode == 1
        assert graded(store, Judge(Counted()), "Good evening!").usage == Usage()
    assert verify(file) == []


def test_a_closed_store_says_so(file: Path) -> None:
    """Whoever asks it gets an error, not an answer that is not kept."""
    store = Store(file)
    store.close()
    store.close()
    with pytest.raises(StoreError, match=r"replies\.db: the store is closed"):
        asyncio.run(carried(store, ask(Judge(Counted()))))


def test_a_store_that_is_forgotten_is_closed(file: Path) -> None:
    """Its thread ends, and so does its session."""
    store = Store(file)
    assert store._file.writer is not None
    thread = store._file.writer._thread
    del store
    thread.join(10)
    assert not thread.is_alive()
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT is_open FROM sessions").fetchall() == [(0,)]
    connection.close()


def test_one_who_comes_back_after_being_given_up_breaks_nothing(file: Path) -> None:
    """A process that was taken for dead finishes: both replies are kept, one is served, and no call is lost."""
    connection = connect(file, 5)
    asleep, awake = (Database(connection, connection, "read-write", "retry") for _ in range(2))
    wanted = Request("6b6579", "model", "text")
    asleep.begin()
    awake.begin()
    first = asleep.claim(wanted, goes_on=False, leaves=True)
    connection.execute("UPDATE sessions SET is_open = 0 WHERE id = ?", (asleep.session,))
    second = awake.claim(wanted, goes_on=False, leaves=True)
    assert isinstance(first, Yours)
    assert isinstance(second, Yours)
    asleep.stay(first.id)
    asleep.finish(first.id, wanted, Failure("timeout", "too slow", in_doubt=True), "timeout")
    assert isinstance(awake.claim(wanted, goes_on=False, leaves=True), Busy)
    asleep.finish(first.id, wanted, Reply("a"), None)
    awake.finish(second.id, wanted, Reply("b"), None)
    assert awake.claim(wanted, goes_on=False, leaves=True) == Served(Reply("b"))
    rows = connection.execute("SELECT state FROM calls ORDER BY id").fetchall()
    connection.close()
    assert rows == [("replaced",), ("done",)]
