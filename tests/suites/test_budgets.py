"""A run that is held to a budget, with prices that are known."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from rubric import Budget, Candidate, Contains, DefinitionError, Judge, Jury, Rubric, Ungraded
from rubric.formats.suites import loads_suite
from rubric.models.pricing import dearest
from rubric.models.token_counts import most_tokens
from rubric.suites.cases import Case
from rubric.suites.report import Report
from rubric.suites.suite import Suite
from rubric.suites.targets.agents import AgentTarget
from rubric.suites.targets.base import Response
from rubric.suites.targets.models import ModelTarget
from rubric.values.checks import Within
from rubric.values.requests import Usage
from tests.judging import JudgeLike
from tests.rows import each_row
from tests.servers import Endpoint, Server
from tests.suite_help import GOOD
from tests.tool_server import ToolServer

RUBRIC = Rubric("one").expects("Names a version", id="version")


def priced(endpoint: Endpoint) -> Judge:
    """Return a judge whose model has a known price."""
    return Judge("openai/gpt-4o-mini", params={"api_base": endpoint.openai, "api_key": "sk-test"}, max_tokens=100)


def cases(count: int, output: str | None = GOOD) -> Suite:
    """Return so many cases that cost the same."""
    return Suite("s", [Case(f"c{n}", RUBRIC, output=output) for n in range(count)])


def worst_of(judge: Judge) -> float:
    """Return what is set aside for the one request of a case."""
    (ask,) = cases(1).plan(judge)["c0"].plan.asks
    sent, back = asyncio.run(most_tokens(ask))
    rates = dearest(judge, sent)
    assert rates is not None
    return sent * rates[0] + back * rates[1]


@pytest.mark.parametrize("concurrency", [1, 8])
def test_what_does_not_fit_into_the_budget_is_ungraded(concurrency: int) -> None:
    """Cases run while their planned most fits into what is left, one after another or side by side."""
    with Server(respond=JudgeLike({})) as server:
        endpoint = server.at("ok")
        judge = priced(endpoint)
        actual = cases(1).run(judge).usage.cost
        assert actual is not None
        cap = worst_of(judge) + 1.5 * actual  # what is left after one, and after two, is enough; after three it is not
        report = cases(6).run(judge, budget=Budget(cost=cap), concurrency=concurrency)
    assert [row.status for row in report] == ["passed"] * 2 + ["ungraded"] * 4
    assert f"over the budget of ${cap:g}: $" in report["c2"].reason
    stopped = report["c2"].result
    assert isinstance(stopped, Ungraded)
    assert {failure.kind for failure in stopped.failures} == {"budget"}
    assert report.usage.cost is not None
    assert report.usage.cost <= cap
    assert len(endpoint.requests) == 3


def test_a_budget_that_suffices_changes_nothing() -> None:
    """All cases are graded, and the plan's figure is enough."""
    with Server(respond=JudgeLike({})) as server:
        judge = priced(server.at("ok"))
        planned = cases(4).plan(judge).cost
        assert planned is not None
        assert cases(4).run(judge, budget=Budget(cost=planned[1])).passed


def test_a_target_is_not_asked_beyond_the_budget() -> None:
    """Nor is a candidate made that could not be judged; what a target spends counts."""
    asked: list[str] = []

    def target(case: Case) -> Response:
        asked.append(case.id)
        return Response(Candidate(GOOD), Usage(calls=1, cost=5.0), ("made up",))

    with Server(respond=JudgeLike({})) as server:
        judge = priced(server.at("ok"))
        report = cases(2, None).run(judge, target=target, budget=Budget(cost=5 + worst_of(judge)), concurrency=1)
    assert asked == ["c0"]
    assert [row.status for row in report] == ["passed", "ungraded"]
    assert "$5.0" in report["c1"].reason
    assert (report["c0"].usage.calls, report["c0"].warnings) == (2, ("made up",))


def test_retries_and_re_asks_are_within_the_budget_too() -> None:
    """What the plan cannot know, such as replies that nobody can read, does not lead beyond the cap."""
    with Server(respond=lambda _: "What?") as server:
        endpoint = server.at("ok")
        judge = priced(endpoint)
        cap = 3 * worst_of(judge)
        report = cases(20).run(Jury(judge, 3), budget=Budget(cost=cap))
    assert {row.status for row in report} == {"ungraded"}
    assert report.usage.cost is not None
    assert 0 < report.usage.cost <= cap
    assert report.usage.calls == len(endpoint.requests)
    assert "over the budget of $" in report["c19"].reason


def test_a_comparison_is_a_call_of_the_plan_and_of_the_budget() -> None:
    """Two outputs are compared by one request, beside the one for each of them."""

    def suite(*assertions: dict[str, str]) -> Suite:
        best = {"type": "select-best", "value": "choose the funniest tweet"}
        test = {"vars": {"topic": "t"}, "assert": [*assertions, best]}
        return loads_suite(json.dumps({"prompts": ["One {{topic}}", "Two {{topic}}"], "tests": [test]}), "promptfoo")

    def answer(case: Case) -> str:
        return f"An answer to {case.input}"

    model = "openai/gpt-5-mini"
    assert suite({"type": "llm-rubric", "value": "Is funny"}).plan(model, target=answer).calls == 3
    alone = suite().plan(model, target=answer)
    assert [case.plan.most for case in alone] == [1, 0]
    assert alone[0].judge == model
    needed = alone.cost
    assert needed is not None
    report = suite().run(model, target=answer, budget=Budget(cost=needed[1] / 2))
    assert {row.status for row in report} == {"ungraded"}
    assert report.usage.calls == 0


MODEL = "openai/my-own"
PRICES = {MODEL: (1000, 1000)}  # of 10 tokens sent and 5 received: $0.015


def answered(target: object, budget: Budget | None, count: int = 12, rubric: Rubric | None = None) -> Report:
    """Return the run of so many cases without a response, of which code decides everything."""
    by = rubric or Rubric("r").checks(Contains("Settings"), id="named")
    suite = Suite("s", [Case(f"c{n}", by, input=f"Where is it, {n}?") for n in range(count)])
    return suite.run("offline", target=target, budget=budget)  # type: ignore[arg-type]


@each_row(
    ("limits", "most"),
    [
        ({"calls": 5}, 5),
        ({"calls": 5, "cost": 1e6, "prices": PRICES}, 5),
        ({"cost": 4.5, "prices": PRICES}, 300),
        ({"tokens": 4400}, 293),
        ({"calls": 0}, 0),
    ],
)
@pytest.mark.parametrize("kind", [ModelTarget, AgentTarget])
def test_the_answers_of_a_model_pass_the_budget_like_those_of_a_judge(kind: Any, limits: Any, most: int) -> None:
    """Each request of the target reserves the most that it may take: no cap is exceeded, and the rest is ungraded."""
    budget = Budget(**limits)
    with ToolServer("Settings") as server:
        report = answered(kind(MODEL, params=server.params, max_tokens=4096), budget)
        sent = len(server.requests)
    assert {row.status for row in report} <= {"passed", "ungraded"}
    assert (budget.spent.calls, sum(row.status == "passed" for row in report)) == (sent, sent)
    assert sent <= min(12, most)
    if "calls" in limits:
        assert sent == most
    for amount, cap in ((budget.spent.cost, budget.cost), (budget.spent.tokens, budget.tokens)):
        assert cap is None or amount is None or amount <= cap


def test_a_retry_of_a_target_passes_the_budget_too() -> None:
    """What is sent again is another call; without one left it is not sent."""
    with ToolServer("") as server:  # an empty reply, which is paid for and asked again
        report = answered(ModelTarget(MODEL, params=server.params), Budget(calls=1), count=1)
        assert len(server.requests) == 1
    assert "over the budget of 1 calls" in report["c0"].reason


def test_a_function_is_not_asked_once_a_budget_is_used_up() -> None:
    """What it spends is charged when it says it, to the last call; no more than the cases in flight go beyond."""
    asked: list[str] = []

    async def target(case: Case) -> Response:
        asked.append(case.id)
        return Response(Candidate("Settings"), Usage(calls=1, cost=1.0))

    for budget in (Budget(calls=3), Budget(cost=3.0)):
        asked.clear()
        suite = Suite("s", [Case(f"c{n}", Rubric("r").checks(Contains("Settings"), id="x")) for n in range(9)])
        report = suite.run("offline", target=target, budget=budget, concurrency=1)
        assert (len(asked), budget.spent.calls) == (3, 3)
        assert "over the budget of" in report["c8"].reason


def test_the_cost_of_a_target_is_reckoned_at_the_prices_that_are_given() -> None:
    """So a check of the cost is decided, and the report and the budget know what was spent."""
    limit = Rubric("r").checks(Within(cost=0.02), id="cheap")
    with ToolServer("Settings") as server:
        target = ModelTarget(MODEL, params=server.params)
        budget = Budget(prices=PRICES)
        report = answered(target, budget, 2, limit)
        assert [row.status for row in report] == ["passed", "passed"]
        assert [report.usage.cost, budget.spent.cost] == pytest.approx([0.03, 0.03])
        assert {row.status for row in answered(target, None, 1, limit)} == {"ungraded"}


def test_a_target_without_a_known_price_is_refused_with_a_cap_of_the_cost() -> None:
    """A cap that cannot hold is refused before anything is sent, like that of a judge."""
    with ToolServer("Settings") as server:
        with pytest.raises(DefinitionError, match=f"budget: the price of '{MODEL}' is not known"):
            answered(ModelTarget(MODEL, params=server.params), Budget(cost=1.0))
        assert not server.requests
