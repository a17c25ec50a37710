"""The one background loop: many callers, running loops, interrupts, forks, and a quiet end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from rubric.internals import background_loop


async def which_loop() -> asyncio.AbstractEventLoop:
    await asyncio.sleep(0)
    return asyncio.get_running_loop()


async def fail() -> None:
    raise LookupError("no")


def in_child(script: str) -> subprocess.CompletedProcess[str]:
    """Run *script* in a new interpreter."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)


def test_run_returns_the_result() -> None:
    """What the coroutine returns is what `run` returns."""

    async def seven() -> int:
        return 7

    assert background_loop.run(seven()) == 7


def test_run_raises_the_error() -> None:
    """What the coroutine raises comes out of `run`."""
    with pytest.raises(LookupError, match="no"):
        background_loop.run(fail())


def test_run_works_inside_a_running_loop() -> None:
    """A synchronous call inside a running loop, as in a notebook, works and uses another loop."""

    async def notebook() -> bool:
        return background_loop.run(which_loop()) is not asyncio.get_running_loop()

    assert asyncio.run(notebook())


def test_all_threads_share_one_loop() -> None:
    """Eight threads and five short-lived loops all end up on the same background loop."""
    with ThreadPoolExecutor(8) as threads:
        used = set(threads.map(lambda _: background_loop.run(which_loop()), range(32)))
    used |= {asyncio.run(background_loop.on_background(which_loop())) for _ in range(5)}
    assert len(used) == 1


def test_run_from_the_loop_itself_is_refused() -> None:
    """A synchronous call from a coroutine on the background loop is an error, not a deadlock."""

    async def nested() -> None:
        background_loop.run(which_loop())

    with pytest.raises(RuntimeError, match="would never return"):
        background_loop.run(nested())


def test_on_background_from_the_loop_itself() -> None:
    """On the background loop already, `on_background` is a plain await."""

    async def nested() -> asyncio.AbstractEventLoop:
        return await background_loop.on_background(which_loop())

    assert background_loop.run(nested()) is background_loop.run(which_loop())


def test_on_background_raises_the_error() -> None:
    """What the coroutine raises comes out of `on_background`."""
    with pytest.raises(LookupError, match="no"):
        asyncio.run(background_loop.on_background(fail()))


def test_context_variables_travel_along() -> None:
    """The coroutine sees the context variables of its caller."""
    variable: ContextVar[str] = ContextVar("variable", default="unset")

    async def read() -> str:
        return variable.get()

    variable.set("set")
    assert background_loop.run(read()) == "set"


def test_cancelling_waits_for_the_end() -> None:
    """To cancel `on_background` cancels the coroutine and waits until its clean-up is done."""
    started, cleaned = threading.Event(), threading.Event()

    async def slow() -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned.set()

    async def main() -> bool:
        task = asyncio.create_task(background_loop.on_background(slow()))
        await asyncio.to_thread(started.wait)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled() and cleaned.is_set()

    assert asyncio.run(main())


def test_cancelled_before_it_started() -> None:
    """A job that is cancelled at once ends, and leaves no coroutine that was never awaited."""

    async def main() -> bool:
        task = asyncio.create_task(background_loop.on_background(which_loop()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(main())


@pytest.mark.parametrize("stop", [SystemExit, KeyboardInterrupt])
def test_the_loop_survives_a_task_that_exits(stop: type[BaseException]) -> None:
    """`SystemExit` and `KeyboardInterrupt` in a coroutine reach the caller; the loop goes on."""

    async def leave() -> None:
        raise stop

    with pytest.raises(stop):
        background_loop.run(leave())
    assert background_loop.run(which_loop()).is_running()


def test_closing_awaits_the_closers_and_the_next_use_starts_anew() -> None:
    """`close` awaits what was registered, on the loop, and then a new loop is started on demand."""
    closed_on = []

    async def closer() -> None:
        closed_on.append(asyncio.get_running_loop())

    before = background_loop.run(which_loop())
    background_loop.before_close(closer)
    background_loop.close()
    after = background_loop.run(which_loop())
    assert (closed_on, before.is_closed(), after is before) == ([before], True, False)


INTERRUPTED = """
import asyncio, os, signal, threading
from rubric.internals import background_loop as loops

async def slow():
    try:
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.05)
        print("cleaned up", flush=True)

try:
    loops.run(slow())
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_cancels_and_waits() -> None:
    """Ctrl-C during `run` cancels the coroutine, waits for its clean-up and is raised."""
    done = in_child(INTERRUPTED)
    assert (done.stdout, done.stderr) == ("cleaned up\ninterrupted\n", "")


FORKED = """
import asyncio, os, sys
from rubric.internals import background_loop as loops

async def loop_id():
    return id(asyncio.get_running_loop())

parent = loops.run(loop_id())
child = os.fork()
if child == 0:
    own = loops.run(loop_id())
    sys.exit(0 if own != parent else 1)
_, status = os.waitpid(child, 0)
assert loops.run(loop_id()) == parent
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_fork_gets_a_loop_of_its_own() -> None:
    """After a fork the child starts its own loop and the parent keeps its own; both end in silence."""
    done = in_child("import warnings; warnings.simplefilter('ignore')\n" + FORKED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_exit_with_work_in_flight_is_silent() -> None:
    """A process that ends while a task runs on the background loop prints nothing."""
    script = (
        "import asyncio\nfrom rubric.internals import background_loop as loops\n"
        "async def start():\n    asyncio.create_task(asyncio.sleep(60))\n    loops.kept = asyncio.all_tasks()\n"
        "loops.run(start())\n"
    )
    done = in_child(script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


NO_MORE_THREADS = """
import asyncio, threading
from rubric import grade_many
from rubric.internals import background_loop as loops

def refuse(self):
    raise RuntimeError("can't create new thread at interpreter shutdown")

loops.run(asyncio.to_thread(int))
begun = iter(grade_many(iter(["We thank you."] * 500), "Says thank you", "offline"))
next(begun)
threading.Thread.start = refuse
"""


def test_the_end_of_a_process_starts_no_thread() -> None:
    """Python 3.12 refuses new threads at exit; a used executor and a stream that was begun end in silence without."""
    done = in_child(NO_MORE_THREADS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
