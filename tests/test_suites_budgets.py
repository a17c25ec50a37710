"""A run that is held to a budget, with prices that are known."""

from __future__ import annotations

import asyncio

import pytest

from rubric import Candidate, Judge, ModelError, Rubric, Ungraded
from rubric.exchanges import Usage
from rubric.suites.budgets import Budget
from rubric.suites.cases import Case
from rubric.suites.suites import Suite
from rubric.suites.targets import Response

from .judging import Judging
from .servers import Endpoint, Server
from .suite_help import GOOD

RUBRIC = Rubric("one").expects("Names a version", id="version")


def priced(endpoint: Endpoint) -> Judge:
    """Return a judge whose model has a known price."""
    return Judge("openai/gpt-4o-mini", params={"api_base": endpoint.openai, "api_key": "sk-test"}, max_tokens=100)


def cases(count: int, output: str | None = GOOD) -> Suite:
    """Return so many cases that cost the same."""
    return Suite("s", [Case(f"c{n}", RUBRIC, output=output) for n in range(count)])


@pytest.mark.parametrize("concurrency", [1, 8])
def test_what_does_not_fit_into_the_budget_is_ungraded(concurrency: int) -> None:
    """Cases run while their planned most fits into what is left, one after another or side by side."""
    with Server(respond=Judging({})) as server:
        endpoint = server.at("ok")
        judge = priced(endpoint)
        cost = cases(1).plan(judge).cost
        actual = cases(1).run(judge).usage.cost
        assert cost is not None
        assert actual is not None
        cap = cost[1] + 1.5 * actual  # what is left after one, and after two, is enough; after three it is not
        report = cases(6).run(judge, max_cost=cap, concurrency=concurrency)
    assert [row.status for row in report] == ["passed"] * 2 + ["ungraded"] * 4
    assert report["c2"].reason.startswith(f"not graded: over the budget of ${cap:g}: $")
    stopped = report["c2"].result
    assert isinstance(stopped, Ungraded)
    assert {failure.kind for failure in stopped.failures} == {"budget"}
    assert report.usage.cost is not None
    assert report.usage.cost <= cap
    assert len(endpoint.requests) == 3


def test_a_budget_that_suffices_changes_nothing() -> None:
    """All cases are graded, and the plan's figure is enough."""
    with Server(respond=Judging({})) as server:
        judge = priced(server.at("ok"))
        planned = cases(4).plan(judge).cost
        assert planned is not None
        assert cases(4).run(judge, max_cost=planned[1]).passed


def test_a_target_is_not_asked_beyond_the_budget() -> None:
    """Nor is a candidate made that could not be judged; what a target spends counts."""
    asked: list[str] = []

    def target(case: Case) -> Response:
        asked.append(case.id)
        return Response(Candidate(GOOD), Usage(calls=1, cost=5.0), ("made up",))

    with Server(respond=Judging({})) as server:
        judge = priced(server.at("ok"))
        planned = cases(1).plan(judge).cost
        assert planned is not None
        report = cases(2, None).run(judge, target=target, max_cost=5 + planned[1], concurrency=1)
    assert asked == ["c0"]
    assert [row.status for row in report] == ["passed", "ungraded"]
    assert "$5.0" in report["c1"].reason
    assert (report["c0"].usage.calls, report["c0"].warnings) == (2, ("made up",))


def test_a_case_waits_for_money_that_others_hold() -> None:
    """What is set aside comes back when less was taken; then the next one fits."""

    async def main() -> list[str]:
        budget, events = Budget(1.0), list[str]()

        async def spend(name: str, cost: float) -> None:
            async with budget.holding(0.8) as bill:
                events.append(f"{name} began")
                await asyncio.sleep(0)
                bill.cost = cost
            events.append(f"{name} ended")

        await asyncio.gather(spend("a", 0.1), spend("b", 0.1))
        with pytest.raises(ModelError, match=r"\$0\.2000 are spent, and this case may take \$0\.9000"):
            async with budget.holding(0.9):
                raise AssertionError
        return events

    assert asyncio.run(main())[:2] == ["a began", "a ended"]


def test_a_cost_that_is_not_known_counts_as_planned() -> None:
    """A case that broke off may have cost all of it."""

    async def main() -> float:
        budget = Budget(1.0)
        with pytest.raises(ValueError, match="broke off"):
            async with budget.holding(0.4):
                raise ValueError("broke off")
        return budget.spent

    assert asyncio.run(main()) == 0.4
