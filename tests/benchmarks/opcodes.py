"""
How many instructions of Python a grade takes, here and in an older checkout: figures that a busy machine repeats.

    git worktree add ../older 83f6fb0
    python -m tests.benchmarks.opcodes [--older ../older] [--only sealed,pairs] [--show 30]

The judge is an async function that answers at once. Seconds of CPU are in `tests.benchmarks.older`: an instruction may
call C that takes long. With `--show`, each row has the functions in which most instructions are, by themselves and
with all that they call.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from attrs import field, frozen

from tests.benchmarks.older import FACTS, criteria, instant, texts
from tests.benchmarks.sampling import place_of

ROOT = Path(__file__).parents[2]
FEW, MANY = 80, 120
"""
Grades are counted in two runs of so many each: what both have in common, such as the start of 64 workers, is the price
of a run, not of a grade.
"""


# -- counting ----------------------------------------------------------------------------------------------


@frozen
class Opcodes:
    """The instructions that ran in each function; `whole` has those of the functions that it called too."""

    own: Counter[Any] = field(factory=Counter)
    whole: Counter[Any] = field(factory=Counter)
    calls: Counter[Any] = field(factory=Counter)
    _stack: list[list[Any]] = field(factory=list)

    def enter(self, frame: Any, _: str, __: object) -> Any:
        """Follow the call of a function."""
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self.calls[frame.f_code] += 1
        self._stack.append([frame.f_code, 0, 0])
        return self.follow

    def follow(self, frame: Any, event: str, _: object) -> Any:
        """Count an instruction of the function at work; at its end, give its caller what it took."""
        if event == "opcode" and self._stack:
            self._stack[-1][1] += 1
        elif event == "return" and self._stack:
            code, own, below = self._stack.pop()
            self.own[code] += own
            if all(code is not each[0] for each in self._stack):
                self.whole[code] += own + below
            if self._stack:
                self._stack[-1][2] += own + below
        return self.follow


@contextmanager
def counting() -> Iterator[Opcodes]:
    """Count the instructions of this thread for the length of the block."""
    counted = Opcodes()
    gc.collect()
    gc.disable()
    sys.settrace(counted.enter)
    try:
        yield counted
    finally:
        sys.settrace(None)
        gc.enable()


# -- what is counted; public names alone, which both checkouts have ----------------------------------------

Work = Callable[[], None]


def graded(rubric: Any) -> Callable[[int], Work]:
    """Return a function that makes the work of grading so many candidates by one *rubric*, each sealed."""
    from rubric import Judge, agrade_many

    judge = Judge(instant, sealed=True)

    async def run(given: list[str]) -> None:
        assert all([result.score async for result in agrade_many(given, rubric, judge, progress=False)])

    return lambda count: lambda: asyncio.run(run(texts(count, 2_000)))


def sealed() -> Callable[[int], Work]:
    return graded(criteria(5))


def free_form() -> Callable[[int], Work]:
    from rubric import Rubric

    return graded(Rubric.of("Says when the refund arrives"))


def tree() -> Callable[[int], Work]:
    from rubric import Rubric, ask

    walk = ask("Is it about a refund?").yes(ask("Does it name a day?").yes(1.0).no(0.5)).no(0.0)
    return graded(Rubric.deciding(walk))


def rubrics_of(count: int) -> list[Any]:
    """Return so many rubrics of eight criteria each."""
    from rubric import Rubric

    facts = [[f"Names {FACTS[n % 5]} ({at}.{n})" for n in range(8)] for at in range(count)]
    return [Rubric(f"own {at}", criteria=words) for at, words in enumerate(facts)]


def building() -> Callable[[int], Work]:
    """A rubric of eight texts; nothing is graded."""

    def prepare(count: int) -> Work:
        return lambda: rubrics_of(count).clear()

    return prepare


def pairs() -> Callable[[int], Work]:
    """
    A rubric for each candidate, as in a step of training; both are there already.

    A checkout that takes no list of rubrics grades each pair by itself.
    """
    from rubric import Candidate, Judge, agrade, agrade_many
    from rubric.errors import DefinitionError

    async def judge(messages: list[dict[str, Any]]) -> str:
        return '{"reason": "read", "verdict": true}'

    async def run(given: list[Any], rubrics: list[Any]) -> None:
        try:
            stream = agrade_many(given, rubrics, Judge(judge), progress=False)
        except DefinitionError:
            await asyncio.gather(*map(partial(agrade, judge=Judge(judge)), given, rubrics))
        else:
            assert all([result.score async for result in stream])

    def prepare(count: int) -> Work:
        given = [Candidate(text, input=f"Question {at}") for at, text in enumerate(texts(count, 300))]
        rubrics = rubrics_of(count)
        return lambda: asyncio.run(run(given, rubrics))

    return prepare


def single() -> Callable[[int], Work]:
    """One call of `agrade` for each candidate."""
    from rubric import Judge, agrade

    rubric, judge = criteria(1), Judge(instant, sealed=True)

    async def run(count: int) -> None:
        for text in texts(count, 300):
            await agrade(text, rubric, judge)

    return lambda count: lambda: asyncio.run(run(count))


ROWS: dict[str, Callable[[], Callable[[int], Work]]] = {
    "sealed": sealed,
    "free-form": free_form,
    "tree": tree,
    "single": single,
    "pairs": pairs,
    "building": building,
}


def count_row(name: str) -> dict[str, Any]:
    """Return the instructions of a grade of row *name*, and by function."""
    prepare = ROWS[name]()
    prepare(FEW)()
    found = list[Opcodes]()
    for work in (prepare(FEW), prepare(MANY)):
        with counting() as counted:
            work()
        found.append(counted)
    few, many = found

    def by_function(kind: str) -> dict[str, float]:
        least, most = getattr(few, kind), getattr(many, kind)
        named = Counter[str]()
        for code, number in most.items():
            named[f"{place_of(code.co_filename)} {code.co_qualname}"] += number - least[code]
        return {place: number / (MANY - FEW) for place, number in named.most_common()}

    own = by_function("own")
    return {"total": sum(own.values()), "own": own, "whole": by_function("whole"), "calls": by_function("calls")}


# -- the table -----------------------------------------------------------------------------------------------


def in_process(checkout: Path, name: str) -> dict[str, Any]:
    """Return the figures of row *name* from a fresh process that imports the library from *checkout*."""
    code = (
        f"import sys, json; sys.path.insert(0, {str(checkout)!r}); import rubric; sys.path.insert(0, {str(ROOT)!r}); "
    )
    code += f"from tests.benchmarks.opcodes import count_row; print(json.dumps(count_row({name!r})))"
    environ = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    environ.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-c", code]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise SystemExit(f"{name} in {checkout} failed:\n{done.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def show(figures: dict[str, Any], most: int) -> None:
    """Print the functions with *most* instructions, by themselves and with what they call."""
    for kind in ("own", "whole"):
        print(f"\n| instructions, {kind} | calls | function |\n|---|---|---|")
        for place, number in [*figures[kind].items()][:most]:
            print(f"| {number:.0f} | {figures['calls'].get(place, 0):.1f} | {place} |")
    print()


def main() -> None:
    """Print a table, a row for each way to grade."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--older", type=Path, help="a checkout to compare with")
    parser.add_argument("--only", default="", help="rows, with commas between them")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="the N functions with most instructions")
    given = parser.parse_args()
    print("| a grade | older | this | this / older |\n|---|---|---|---|", flush=True)
    for name in [name for name in given.only.split(",") if name] or ROWS:
        now = in_process(ROOT, name)
        if given.older is None:
            print(f"| {name} | | {now['total']:,.0f} | |", flush=True)
        else:
            before = in_process(given.older.resolve(), name)["total"]
            print(f"| {name} | {before:,.0f} | {now['total']:,.0f} | {now['total'] / before:.3f} |", flush=True)
        if given.show:
            show(now, given.show)


if __name__ == "__main__":
    main()
