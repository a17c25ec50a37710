"""How a suite runs: order, concurrency, what is deferred, what is ungraded, and what cannot stop the others."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Budget, Candidate, Contains, Criterion, DefinitionError, Judge, Jury, Panel, Rubric
from rubric.driving import Failure, Usage
from rubric.errors import LoadError, ModelError, Problem
from rubric.results.report_rows import Row
from rubric.suites.cases import Case
from rubric.suites.report import Report
from rubric.suites.suite import Suite
from rubric.suites.suite_plan import NO_RESPONSE
from rubric.suites.targets.base import DeferError
from rubric.testing.scripted_model import ScriptedModel
from rubric.values import Script, Unsupported
from tests.examples import examples
from tests.findings import improvised, rubrics
from tests.judging import JudgeLike
from tests.rows import each_row
from tests.servers import Server
from tests.suite_help import GOOD, TWO, asks_of, many, one, saying

YES = {"version": True, "warm": True}


def test_a_suite_reports_a_row_a_case() -> None:
    """Scores, verdicts and counts are those of the grades."""
    suite = Suite("s", [Case("good", TWO, output=GOOD), Case("poor", TWO, output="Something else.")])
    judge = Judge(ScriptedModel(lambda ask: "2.3.0" in ask.candidate))
    report = suite.run(judge)
    assert [(row.id, row.status, row.score) for row in report] == [("good", "passed", 1.0), ("poor", "failed", 0.0)]
    assert report.counts == {"passed": 1, "failed": 1, "ungraded": 0, "deferred": 0}
    assert (report.exit_code, report.usage.calls, report.suite) == (1, 4, "s")


def test_rows_stand_in_the_order_of_the_cases() -> None:
    """However late a case is through."""

    async def slow_first(case: Case) -> str:
        for _ in range(8 - int(case.id[1:])):
            await asyncio.sleep(0)
        return GOOD

    seen: list[str] = []
    suite = many(8, output=None)
    report = suite.run(saying(**YES), target=slow_first, on_row=lambda row: seen.append(row.id))
    assert [row.id for row in report] == [case.id for case in suite]
    assert sorted(seen) == sorted(row.id for row in report)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_cases_are_under_way_than_allowed(concurrency: int) -> None:
    """And so many are."""
    under_way, most = 0, 0

    async def target(_: Case) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return GOOD

    many(9, output=None).run(saying(**YES), target=target, concurrency=concurrency)
    assert most == concurrency


def test_sync_targets_run_side_by_side_in_threads() -> None:
    """Three that wait for one another come through together, none of them on the loop."""
    barrier = threading.Barrier(3, timeout=30)
    names: list[str] = []

    def target(_: Case) -> str:
        barrier.wait()
        names.append(threading.current_thread().name)
        return GOOD

    report = many(3, output=None).run(saying(**YES), target=target, concurrency=3)
    assert report.passed
    assert all(name.startswith("rubric-target") for name in names)


def test_a_run_works_inside_a_running_loop() -> None:
    """As in a notebook; and it can be awaited."""

    async def main() -> list[Report]:
        return [one().run(saying(**YES)), await one().arun(saying(**YES))]

    assert [report.passed for report in asyncio.run(main())] == [True, True]


# -- where candidates come from --------------------------------------------------------------------------


def test_a_fixed_response_is_never_asked_for() -> None:
    """A target is there for cases without one."""
    report = one().run(saying(**YES), target=lambda case: pytest.fail("was asked"))
    assert report["a"].output == GOOD


@pytest.mark.parametrize(
    "made", [GOOD, Candidate(GOOD, input="And?"), pytest.param(lambda: asyncio.sleep(0, GOOD), id="an awaitable")]
)
def test_a_target_returns_a_text_or_a_candidate(made: Any) -> None:
    """What a text leaves open is as the case has it."""
    report = one(output=None, input="What is new?").run(
        saying(**YES), target=lambda case: made() if callable(made) else made
    )
    row = report["a"]
    assert (row.status, row.output) == ("passed", GOOD)
    assert row.input == ("And?" if isinstance(made, Candidate) else "What is new?")


def test_a_target_is_called_with_the_case() -> None:
    """It sees the input, the messages, whatever the case has."""
    seen: list[Case] = []
    suite = one(output=None, input="Hello?")
    suite.run(saying(**YES), target=lambda case: seen.append(case) or GOOD)  # type: ignore[func-returns-value]
    assert seen == [suite["a"]]


def test_without_a_response_and_a_target_a_case_is_deferred() -> None:
    """The others are graded, and the exit code says that something is missing."""
    suite = Suite("s", [Case("a", TWO, output=GOOD), Case("b", TWO)])
    report = suite.run(saying(**YES))
    assert [row.status for row in report] == ["passed", "deferred"]
    assert report["b"].reason == NO_RESPONSE
    assert report.exit_code == 2


@pytest.mark.parametrize(("deferred", "code"), [("pass", 0), ("fail", 1), ("error", 2)])
def test_what_a_deferred_case_counts_as_is_the_callers_choice(deferred: Any, code: int) -> None:
    """A pass, a fail, or an error."""
    assert one(output=None).run(saying(**YES), deferred=deferred).exit_code == code


def test_a_target_that_cannot_try_defers() -> None:
    """With its reason."""

    def target(_: Case) -> str:
        raise DeferError("the server is down")

    row = one(output=None).run(saying(**YES), target=target)["a"]
    assert (row.status, row.reason) == ("deferred", "the server is down")


FAILURES = [
    (ModelError(Failure("overloaded", "too many")), "not graded: too many"),
    (ValueError("key sk-0123456789abcdef"), "not graded: ValueError: key [secret]"),
    (StopIteration("the end"), "StopIteration"),
]


@each_row(("error", "said"), FAILURES)
@each_row("is_async", [True, False])
def test_a_target_that_fails_leaves_its_case_ungraded(error: Exception, said: str, *, is_async: bool) -> None:
    """With the failure, redacted; the judge is not asked, and the other case is graded."""

    def target(case: Case) -> str:
        if case.id == "c0":
            raise error
        return GOOD

    async def awaited(case: Case) -> str:
        return target(case)

    judge = saying(**YES)
    report = many(2, output=None).run(judge, target=awaited if is_async else target)
    assert [row.status for row in report] == ["ungraded", "passed"]
    assert said in report["c0"].reason
    assert len(asks_of(judge)) == 2


def test_what_a_failed_target_used_is_counted() -> None:
    """It may have been paid for; but no judge was asked."""

    def target(_: Case) -> str:
        raise ModelError(Failure("truncated", "cut", usage=Usage(calls=2, cost=0.5)))

    row = one(output=None).run("offline", target=target, budget=Budget(cost=1))["a"]
    assert (row.status, row.usage.calls, row.usage.cost, row.judge) == ("ungraded", 2, 0.5, "")


@pytest.mark.parametrize("said", [None, 3, ["a"]])
def test_a_target_that_returns_something_else_leaves_its_case_ungraded(said: Any) -> None:
    """An answer that is not text is not an empty answer."""
    row = one(output=None).run(saying(**YES), target=lambda case: said)["a"]
    assert row.status == "ungraded"
    assert "expected the text of a response" in row.reason


def test_what_is_no_target_is_refused() -> None:
    """Before anything is asked."""
    with pytest.raises(DefinitionError, match="target: expected a Target"):
        one().run(saying(**YES), target=3)  # type: ignore[arg-type]


# -- what goes wrong -------------------------------------------------------------------------------------


def test_a_judge_that_fails_leaves_its_case_ungraded() -> None:
    """It is not a verdict."""
    report = one().run(saying(version=True, warm=Failure("refusal", "no")))
    row = report["a"]
    assert (row.status, row.score, report.exit_code) == ("ungraded", None, 2)
    assert "refusal" in row.reason
    assert row.bounds == (0.5, 1.0)


def test_an_unsupported_grader_leaves_its_case_ungraded() -> None:
    """The other criteria are judged all the same."""
    rubric = TWO.checks(Unsupported("similar"), id="similar")
    row = one(rubric).run(saying(**YES))["a"]
    assert [entry.status for entry in row.entries] == ["scored", "scored", "unjudged"]
    assert row.status == "ungraded"


@pytest.mark.parametrize("allowed", [True, False])
def test_no_candidate_is_made_that_nothing_could_judge(*, allowed: bool) -> None:
    """A target costs; scripts count where they are allowed, and one criterion that can be judged is enough."""
    hopeless = Rubric().checks(Unsupported("similar"), id="u").includes(Rubric().checks(Unsupported("x")), id="n")
    scripted = hopeless.checks(Script(["no-such-program"]), id="s")
    rubrics = {"hopeless": hopeless, "scripted": scripted, "mixed": hopeless.expects("Is good", id="good")}
    suite = Suite("s", [Case(name, rubric) for name, rubric in rubrics.items()])
    asked: list[str] = []

    def target(case: Case) -> str:
        asked.append(case.id)
        return GOOD

    report = suite.run(saying(good=True), target=target, allow_scripts=allowed, concurrency=1)
    assert asked == (["scripted", "mixed"] if allowed else ["mixed"])
    assert {row.status for row in report} == {"ungraded"}
    assert "the target was not asked" in report["hopeless"].reason


def test_a_rubric_that_cannot_grade_does_not_stop_the_others() -> None:
    """Its case is ungraded, and says why."""
    suite = Suite("s", [Case("empty", Rubric("nothing"), output=GOOD), Case("b", TWO, output=GOOD)])
    report = suite.run(saying(**YES))
    assert [row.status for row in report] == ["ungraded", "passed"]
    assert "nothing to grade by" in report["empty"].reason


@pytest.mark.parametrize("max_cost", [None, 1])
def test_a_condition_that_raises_does_not_stop_the_others(max_cost: float | None) -> None:
    """A function of one's own may raise anything; with a budget too."""
    rubric = TWO.expects("x", id="x", when=lambda candidate: 1 / 0)  # type: ignore[arg-type,return-value]
    suite = Suite("s", [Case("a", rubric, output=GOOD), Case("b", TWO, output=GOOD)])
    report = suite.run(
        "offline" if max_cost else saying(**YES), budget=None if max_cost is None else Budget(cost=max_cost)
    )
    assert [row.status == "ungraded" for row in report] == [True, False]
    assert "ZeroDivisionError" in report["a"].reason


def test_a_degenerate_candidate_is_answered_without_a_call() -> None:
    """As `grade` does."""
    judge = saying(**YES)
    row = one(output=" ").run(judge)["a"]
    assert (row.status, row.reason, asks_of(judge), row.judge) == ("failed", "the candidate is empty", [], "")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": True}, "concurrency"),
        ({"budget": 5}, "budget"),
        ({"deferred": "ignore"}, "deferred"),
    ],
)
def test_options_are_checked_before_anything_is_asked(options: dict[str, Any], field: str) -> None:
    """The error names the option."""
    judge = saying(**YES)
    with pytest.raises(DefinitionError, match=f"^{field}: "):
        one().run(judge, **options)
    assert asks_of(judge) == []


def test_what_a_callback_raises_ends_the_run() -> None:
    """It comes out as it was raised, not in a group."""

    def on_row(row: Row) -> None:
        raise LoadError([Problem("x", 1, 1, "", "mine")])

    with pytest.raises(LoadError, match="mine"):
        many(3).run(saying(**YES), on_row=on_row)


def test_a_cancelled_run_waits_for_what_is_under_way() -> None:
    """Targets get to clean up before the cancellation is through."""
    events: list[str] = []
    both = asyncio.Barrier(3)

    async def target(_: Case) -> str:
        events.append("began")
        await both.wait()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            events.append("ended")
        return GOOD

    async def main() -> None:
        task = asyncio.create_task(many(5, output=None).arun(saying(**YES), target=target, concurrency=2))
        await both.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert events == ["began", "began", "ended", "ended"]


def test_warnings_of_the_file_are_in_the_report() -> None:
    """With their places."""
    suite = Suite("s", [], warnings=[Problem("f.yaml", 3, 5, "tests[0]", "is left out")])  # type: ignore[arg-type]
    assert suite.run().warnings == ("f.yaml:3:5: tests[0]: is left out",)


def test_a_serial_judge_does_not_time_out_over_its_queue() -> None:
    """A sync function takes one ask after another; waiting for the cases before it does not count."""
    turns: list[int] = []

    def function(messages: Any) -> str:
        turns.append(1)
        threading.Event().wait(0.1)
        return '{"reason": "", "verdict": true}'

    report = many(12, Rubric().expects("Is good")).run(Judge(function, timeout=1), concurrency=12)
    assert report.passed
    assert len(turns) == 12


# -- the whole way ---------------------------------------------------------------------------------------


def test_a_suite_runs_over_the_wire() -> None:
    """Real LiteLLM, a real socket: a passing and a failing case, with tokens and cost."""
    rubric = Rubric("wire").expects("Names a version", id="version").scores("Is warm", id="warm")
    suite = Suite("wire", [Case("a", rubric, output=GOOD), Case("b", rubric, output=GOOD, input="Again?")])
    with Server(respond=JudgeLike({"Names a version": True, "Is warm": 0.2})) as server:
        endpoint = server.at("ok")
        params = {"api_base": endpoint.openai, "api_key": "sk-test"}
        report = suite.run(Jury(Judge("openai/gpt-4o-mini", params=params), 2))
    assert [(row.status, row.score) for row in report] == [("failed", 0.6), ("failed", 0.6)]
    assert len(endpoint.requests) == report.usage.calls == 8
    assert report.usage.cost is not None
    assert report.usage.cost > 0
    assert report["a"].judge == "jury of 2: openai/gpt-4o-mini"
    assert "sk-test" not in repr(report.rows)


BENCHES: list[Any] = [lambda j: j, lambda j: Jury(j, 2), lambda j: Panel([j, j], level="criterion")]
OUTPUTS = st.sampled_from([GOOD, "", "Something else, without a number.", None])


@examples(60)
@given(st.lists(st.tuples(rubrics(), OUTPUTS), max_size=4), st.integers(), st.sampled_from(BENCHES))
def test_every_case_has_a_row_and_the_counts_add_up(
    cases: list[tuple[Rubric, str | None]], seed: int, bench: Any
) -> None:
    """Whatever the rubrics, the candidates and the judges."""
    suite = Suite("any", [Case(f"c{n}", rubric, output=output) for n, (rubric, output) in enumerate(cases)])
    judge = Judge(ScriptedModel(improvised(seed, failing=0.1, unreadable=0.1)), per_call=1, retries=0)
    report = suite.run(bench(judge))
    assert [row.id for row in report] == [case.id for case in suite]
    assert sum(report.counts.values()) == len(suite)
    assert report.usage.calls == sum(row.usage.calls for row in report)
    for row, case in zip(report, suite, strict=True):
        assert (row.status == "deferred") == (case.output is None)
        assert (row.score is not None) == (row.status in ("passed", "failed"))
        assert bool(row.reason) == (row.status != "passed")
        assert row.status == "deferred" or [entry.id for entry in row.entries] == [c.id for c in case.rubric.judged]


def test_checks_need_no_judge() -> None:
    """A suite that code decides alone is graded without a key."""
    suite = one(Rubric(criteria=[Criterion("Names it", answer=Contains("2.3.0"))]))
    row = suite.run()["a"]
    assert (row.status, row.judge, row.usage.calls) == ("passed", "", 0)
