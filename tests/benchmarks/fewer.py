"""
What each way to fewer calls saves, or costs, in calls and tokens; and that none changes a verdict.

    python -m tests.benchmarks.fewer [cases of each, 10000 if left out]

Each case is a random rubric with gates, guards, nested rubrics and trees, and random judges, a tenth of whose replies
cannot be read and are asked for again. Panels have random weights, any aggregate, tie break and quorum. In one request,
a model may give fewer choices than it is asked for. A cascade is compared with asking its second judge in any case; its
verdict must be that of whoever was asked last. A verdict that is another than that of the whole ends it with an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from attrs import define, evolve
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rubric import Grade, Judge, Jury, Panel, Rubric, Ungraded
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.judges import Cascade
from tests.drive import drive
from tests.findings import Sampling, improvised, rubrics, trees

UNREADABLE = 0.1

Result = Grade | Ungraded


@define
class Row:
    """What a way to fewer calls came to in all cases, beside the whole."""

    cases: int = 0
    others: int = 0
    calls: int = 0
    fewer_calls: int = 0
    tokens: int = 0
    fewer_tokens: int = 0

    def count(self, whole: Result, less: Result, *, is_other: bool) -> None:
        """Count one case."""
        self.cases += 1
        self.others += is_other
        self.calls += whole.usage.calls
        self.fewer_calls += less.usage.calls
        self.tokens += tokens_of(whole)
        self.fewer_tokens += tokens_of(less)

    def __str__(self) -> str:
        calls, tokens = self.fewer_calls / self.calls, self.fewer_tokens / self.tokens
        return f"{self.cases:,} | {self.others} | {self.calls:,} | {calls:.0%} | {self.tokens:,} | {tokens:.0%}"


def tokens_of(result: Result) -> int:
    """Return the tokens that went there and back."""
    return result.usage.prompt_tokens + result.usage.completion_tokens


def judge(seed: object, most: int = 100, **options: Any) -> Judge:
    """Return a judge that makes up its replies, up to *most* a request."""
    return Judge(ScriptedModel(Sampling(improvised(seed, unreadable=UNREADABLE), most)), **options)


def differs(whole: Result, less: Result) -> bool:
    """Say whether a grade has another verdict; without one there is nothing to compare."""
    return isinstance(whole, Grade) and (less.outcome.verdict, less.passed) != (whole.verdict, whole.passed)


def early_stop(rubric: Rubric, seed: int, row: Row, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """A panel that stops when it is decided."""
    size = draw(st.integers(2, 5))
    rule: dict[str, Any] = {
        "aggregate": draw(st.sampled_from(["mean", "median", "majority"])),
        "tie_break": draw(st.sampled_from(["fail", "pass"])),
        "weights": draw(st.none() | st.lists(st.sampled_from([1, 2, 0.5, 7]), min_size=size, max_size=size)),
        "quorum": draw(st.none() | st.integers(1, size)),
    }
    if rule["aggregate"] != "majority":  # which alone has ties
        del rule["tie_break"]
    whole, less = (
        drive(rubric, Panel([judge((seed, n)) for n in range(size)], early_stop=stop, **rule)) for stop in (False, True)
    )
    row.count(whole, less, is_other=differs(whole, less))


def one_request(rubric: Rubric, seed: int, row: Row, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """A jury whose votes are the choices of one reply."""
    size = draw(st.integers(2, 5))
    jury = Jury(judge(seed), size, draw(st.floats(0.1, 1)), early_stop=draw(st.booleans()))
    most = draw(st.sampled_from([1, 2, 100, 100]))
    whole, less = drive(rubric, jury), drive(rubric, evolve(jury, judge=judge(seed, most), one_request=True))
    row.count(whole, less, is_other=whole.outcome != less.outcome)


def cascade(rubric: Rubric, seed: int, row: Row, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """A judge first, and a panel of three where that leaves a doubt."""
    when = draw(st.sampled_from(["fails", "borderline", "ungraded", (0.3, 0.8)]))

    def panel() -> Panel:
        return Panel([judge((seed, n)) for n in range(1, 4)])

    whole, less = drive(rubric, panel()), drive(rubric, Cascade(judge((seed, 0)), panel(), when))
    last = whole if len(less.votes) > 1 else drive(rubric, judge((seed, 0)))
    row.count(whole, less, is_other=last.outcome != less.outcome)


def ahead(_: Rubric, seed: int, row: Row, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """A tree all of whose questions are asked at once: more calls for fewer rounds."""
    rubric = Rubric.deciding(draw(trees("t", 3)))
    whole, less = (drive(rubric, judge(seed, speculate=speculate)) for speculate in (False, True))
    row.count(whole, less, is_other=whole.outcome != less.outcome)


WAYS = {
    "early stop of a panel": early_stop,
    "a jury in one request": one_request,
    "cascade, beside its second": cascade,
    "a tree asked ahead": ahead,
}


def counted(name: str, cases: int) -> Row:
    """Return what the way called *name* comes to in so many cases."""
    row, way = Row(), WAYS[name]

    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(rubrics(), st.integers(), st.data())
    def run(rubric: Rubric, seed: int, data: st.DataObject) -> None:
        way(rubric, seed, row, data.draw)

    run()
    return row


def main(cases: int) -> int:
    """Print the table, and return how many verdicts were others than those of the whole."""
    print("| way | cases | other verdicts | calls, whole | with it | tokens, whole | with it |")
    print("|---|---|---|---|---|---|---|", flush=True)
    others = 0
    for name in WAYS:
        row = counted(name, cases)
        others += row.others
        print(f"| {name} | {row} |", flush=True)
    return others


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)))
