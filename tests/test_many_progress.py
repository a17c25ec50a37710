"""Progress: a bar on a terminal, lines elsewhere, a function of one's own; and several gates as one."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rubric import Ask, DefinitionError, Failure, Judge, ModelError, Reply, Rubric
from rubric.drivers.attempts import Settle
from rubric.drivers.budgets import Budget
from rubric.drivers.gates import gates
from rubric.drivers.limits import Limits
from rubric.drivers.progress import Progress, reporting
from rubric.exchanges import Usage
from rubric.streams import agrade_many, grade_many
from rubric.testing import ScriptedModel
from tests.asks import ask_for

POLITE = Rubric().expects("Is polite", id="polite")


def instant() -> Judge:
    return Judge(ScriptedModel(lambda _: True))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(wanted: bool | None, stream: io.StringIO, n: int = 3) -> str:
    """Return what is shown of *n* results that come 6 seconds after one another."""
    ticks = iter(range(0, 10_000, 6))
    results = list(grade_many(["x y", None, "z"][:n], POLITE, instant()))
    with reporting(wanted, 3, stream=stream, clock=lambda: float(next(ticks))) as tell:
        for result in results:
            tell(result)
    return stream.getvalue()


def test_lines_where_there_is_no_terminal() -> None:
    """Asked for, it is a line now and then, and one at the end."""
    lines = shown(True, io.StringIO()).splitlines()
    assert lines[0] == "graded 2 of 3 (67%), 0.1/s, $0.0000, 1 ungraded, 0:09 left"
    assert lines[-1].startswith("graded 3 of 3 (100%), ")


def test_nothing_where_nobody_looks() -> None:
    """Left alone, nothing is written to what is no terminal; and with False, to nothing at all."""
    assert shown(None, io.StringIO()) == shown(False, Terminal()) == ""


@pytest.mark.parametrize("wanted", [None, True])
def test_a_bar_on_a_terminal(wanted: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a bar shows the count, the rate, the spend and the failures."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    text = shown(wanted, Terminal())
    assert "grading" in text
    assert "3/3" in text
    assert "$0.0000 · 1 ungraded" in text


def test_what_is_no_way_to_show_progress_is_refused() -> None:
    """A word is neither a yes nor a no."""
    with pytest.raises(DefinitionError, match="progress: expected True, False, None, or a function"):
        list(grade_many(["x"], POLITE, instant(), progress="no"))  # type: ignore[arg-type]


def test_nothing_goes_to_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    """Progress is for standard error; a run writes nothing to standard output."""
    list(grade_many(["x", "y"], POLITE, instant(), progress=True))
    out, err = capfd.readouterr()
    assert (out, err.count("graded 2 of 2")) == ("", 1)


def test_a_function_is_told_of_each_result() -> None:
    """It gets the state after each result, in the thread that reads."""
    states: list[Progress] = []
    list(grade_many(["x", None, "y"], POLITE, instant(), progress=states.append))
    assert [(s.done, s.total, s.passed, s.ungraded) for s in states] == [(1, 3, 1, 0), (2, 3, 1, 1), (3, 3, 2, 1)]


def test_a_function_that_raises_ends_the_stream() -> None:
    """An error of the function's is the reader's, and leaves nothing running."""

    def stop(state: Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(grade_many(["x"], POLITE, instant(), progress=stop))


def test_the_state_in_words() -> None:
    """Unknown totals and costs are said to be unknown, large numbers are readable."""
    state = Progress(12_000, None, 9_000, 3, Usage(12_000, cost=None), 10.0)
    assert str(state) == "graded 12,000, 1,200/s, cost unknown, 3 ungraded"
    assert str(Progress(10, 4_010, seconds=10.0)) == "graded 10 of 4,010 (0%), 1.0/s, $0.0000, 0 ungraded, 1:06:40 left"


# -- gates -----------------------------------------------------------------------------------------------


class Post:
    """A gate that writes down who passes."""

    def __init__(self, name: str, log: list[str], *, shut: bool = False) -> None:
        self.name, self.log, self.shut = name, log, shut

    @asynccontextmanager
    async def __call__(self, ask: Ask) -> AsyncIterator[Settle]:
        if self.shut:
            raise ModelError(Failure("budget", "shut"))
        self.log.append(f"{self.name} in")
        try:
            yield lambda outcome: self.log.append(f"{self.name} told {type(outcome).__name__}")
        finally:
            self.log.append(f"{self.name} out")


@pytest.fixture
def log() -> list[str]:
    return []


def test_several_gates_are_passed_in_order(log: list[str]) -> None:
    """A request enters them in order, each is told what came, and they are left in the reverse order."""
    gate = gates(Post("a", log), None, Post("b", log))
    assert gate is not None

    async def main() -> None:
        async with gate(ask_for()) as settle:
            settle(Reply("text"))

    asyncio.run(main())
    assert log == ["a in", "b in", "a told Reply", "b told Reply", "b out", "a out"]


def test_a_gate_that_is_shut_lets_the_others_go(log: list[str]) -> None:
    """If one refuses, those before it are told that nothing has left, and are left."""
    gate = gates(Post("a", log), Post("b", log, shut=True))
    results = list(grade_many(["x"], POLITE, instant(), limits=gate))
    assert [failure.kind for failure in results[0].failures] == ["budget"]
    assert log == ["a in", "a told NoneType", "a out"]


def test_what_the_budget_refuses_is_ungraded() -> None:
    """When the calls are used up, the rest is ungraded with the reason; what was paid for is kept."""
    budget = Budget(calls=3)
    grades = grade_many([f"text {n}" for n in range(10)], POLITE, instant(), budget=budget).collect()
    assert (len(grades.passed), len(grades.ungraded), budget.spent.calls) == (3, 7, 3)
    assert grades.summary().failures == {"budget": 7}


def test_a_budget_without_a_price_is_refused_before_anything_is_sent() -> None:
    """The sync verb refuses at the call, the async one when it is first read."""
    model = ScriptedModel(lambda _: True)
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


def test_no_gates_are_none(log: list[str]) -> None:
    """Nothing to pass is no gate; one is itself."""
    post = Post("a", log)
    assert gates(None, None) is None
    assert gates(None, post) is post


def test_every_request_passes_the_limits(log: list[str], tmp_path: Path) -> None:
    """`grade_many` sends all requests through the gates that it is given; what a store has is no request."""
    store = tmp_path / "replies.db"
    grade_many(["known"], POLITE, instant(), store=store).collect()
    results = grade_many(["known", "new"], POLITE, instant(), store=store, limits=Post("a", log)).collect()
    assert [(result.passed, result.usage.calls) for result in results] == [(True, 0), (True, 1)]
    assert log == ["a in", "a told Reply", "a out"]
