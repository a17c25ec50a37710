"""What a suite's plan says before anything is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rubric import Contains, Criterion, DefinitionError, Judge, Jury, Rubric, When, ask, grade, plan
from rubric.suites import ModelTarget
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.suites.suite_plan import NO_RESPONSE
from rubric.values import Script, Similar, Unsupported, Within
from rubric.values.checks import Check
from tests.places import SHARED
from tests.suite_help import GOOD, TWO, asks_of, many, one, saying

UPSTREAM = SHARED / "upstream_cases.json"


def test_calls_are_criteria_times_votes() -> None:
    """The documented example of mcptest: two criteria and a jury of three."""
    planned = one(TWO, judge=Jury(Judge("claude-sonnet-4-5"), 3, 0.66)).plan()
    assert (planned.calls, planned["a"].plan.least, planned["a"].plan.most) == (6, 6, 6)
    assert planned["a"].judge == "jury of 3: claude-sonnet-4-5"


def test_the_documented_plans_are_ours() -> None:
    """Every upstream case with a projected number of calls comes to that number."""
    if not UPSTREAM.exists():
        pytest.skip(f"{UPSTREAM.name} is not there")
    cases = [case for case in json.loads(UPSTREAM.read_text()) if "projected_calls" in case["expected"]]
    assert cases
    for case in cases:
        criteria = [Criterion(c["description"], id=c["name"]) for c in case["rubric"]["rubric"]["criteria"]]
        jury = case["rubric"]["judge"].get("jury", {})
        judge = Jury(case["rubric"]["judge"]["model"], jury.get("size", 1), jury.get("consensus", 0.5))
        suite = Suite("s", [Case("a", Rubric(criteria=criteria), output=case["candidate"], judge=judge)])
        assert suite.plan().calls == case["expected"]["projected_calls"], case["id"]


def test_nothing_is_sent_and_no_target_is_called() -> None:
    """It is a plan."""
    judge = saying(version=True, warm=True)
    suite = Suite("s", [Case("a", TWO, output=GOOD), Case("b", TWO)])
    suite.plan(judge, target=lambda case: pytest.fail("was asked"))
    assert asks_of(judge) == []


def test_it_says_where_each_candidate_comes_from() -> None:
    """A fixed response, a live target, or nowhere: then the case would be deferred."""
    suite = Suite("s", [Case("a", TWO, output=GOOD), Case("b", TWO)])
    assert [case.source for case in suite.plan("offline", target=lambda case: GOOD)] == [
        "fixed response",
        "live target",
    ]
    without = suite.plan("offline")
    assert (without["b"].source, without["b"].deferred) == ("none", NO_RESPONSE)
    assert without.deferred == ("b",)


def test_a_target_that_cannot_be_asked_defers_what_it_should_answer() -> None:
    """The plan says what the run would: no vendor has the name, or there is no key."""
    suite = Suite("s", [Case("a", TWO, output=GOOD), Case("b", TWO, input="Why?")])
    unknown = suite.plan("offline", target="cli")
    assert unknown.deferred == ("b",)
    assert unknown["b"].deferred.startswith("the target 'cli': no vendor is known by 'cli'.")
    assert suite.run("offline", target="cli")["b"].reason == unknown["b"].deferred
    assert suite.plan("offline", target="openai/gpt-5")["b"].deferred.endswith("set OPENAI_API_KEY")
    with_address = ModelTarget("mine", params={"api_base": "http://localhost:1"})
    assert suite.plan("offline", target=with_address).deferred == ()


def test_a_missing_judge_defers_and_the_calls_are_planned_all_the_same() -> None:
    """The figures are what the run would take with one; the cost is not known."""
    planned = one().plan()
    assert (planned.calls, planned.cost, planned["a"].judge) == (2, None, "")
    assert "OPENAI_API_KEY" in planned["a"].deferred
    keyless = one().plan("openai/gpt-4o-mini")
    assert keyless["a"].deferred.endswith("set OPENAI_API_KEY")
    assert keyless.cost is not None


def test_a_missing_judge_is_told_once_and_named_by_no_name_of_ours() -> None:
    """However many cases lack it; how to give one is said for the shell and for code."""
    rubric = Rubric("r", ["Is polite"])
    planned = Suite("s", [Case("a", rubric, output="Hi"), Case("b", rubric, output="Ho")]).plan()
    for said in (str(planned), planned._repr_markdown_()):
        assert "_refuse" not in said.replace("\\", "")
        assert said.count("no judge was given") == 1
        assert "2 cases are deferred: " in said
    assert "--judge offline (judge='offline' in code)" in str(planned)
    assert planned.total.unpriced == ()


def test_a_fixed_response_is_planned_as_grade_plans_it() -> None:
    """The same calls, tokens and messages."""
    case = one(input="And?")["a"]
    assert case.candidate is not None
    assert one(input="And?").plan("offline")["a"].plan == plan(case.candidate, TWO, "offline")


def test_a_live_response_is_planned_with_every_condition_holding() -> None:
    """Nobody knows yet whether they do."""
    rubric = TWO.expects("c", id="c", when=When(contains="nothing of the kind"))
    nested = Rubric().includes(rubric, id="inner", when=When(contains="that neither"))
    assert one(rubric).plan("offline").calls == 2
    assert one(rubric, output=None).plan("offline").calls == 3
    assert one(nested, output=None).plan("offline").calls == 3


def test_trees_and_checks_count_as_in_a_plan() -> None:
    """A walk has a shortest and a longest way; code takes no call."""
    rubric = TWO.decides("t", by=ask("1").yes(ask("2").yes(1).no(0)).no(0)).checks(Contains("x"))
    planned = one(rubric).plan("offline")
    assert (planned.total.least, planned.total.most) == (3, 4)
    assert one(Rubric().checks(Contains("x"))).plan().total.most == 0


def test_criteria_with_judges_of_their_own_are_planned_for_those() -> None:
    """The calls are those of the run."""
    suite = one(judge=Jury("offline", 3), judges={"warm": Judge("offline")})
    assert suite.plan().calls == suite.run().usage.calls == 4
    assert suite.plan()["a"].judge == "jury of 3: offline (version); offline (warm)"


def test_a_run_makes_the_calls_that_were_planned() -> None:
    """For every case, one by one."""
    suite = many(3)
    judge = saying(version=True, warm=True)
    planned, report = suite.plan(judge), suite.run(judge)
    assert [case.plan.most for case in planned] == [row.usage.calls for row in report]
    assert planned.calls == report.usage.calls == 3 * grade(GOOD, TWO, judge).usage.calls


def test_it_is_plain_data_and_a_table() -> None:
    """For machines without the messages, for people with the scripts that would run."""
    rubric = TWO.checks(Script(["./grade.py", "--fast"]), id="script")
    suite = Suite("s", [Case("a|b", rubric, output=GOOD), Case("b", TWO)])
    planned = suite.plan("offline")
    data = json.loads(json.dumps(planned.to_dict()))
    assert data["calls"] == {"least": 4, "most": 4, "ceiling": 8}
    assert [case["candidate"] for case in data["cases"]] == ["fixed response", "none"]
    assert data["cases"][0]["scripts"] == ["script ./grade.py --fast"]
    assert GOOD not in json.dumps(data)
    shown = planned._repr_markdown_()
    assert shown.count("\n") == 5
    assert "a\\|b" in shown
    assert "./grade.py" in shown
    assert repr(planned).startswith("<SuitePlan: s: 2 cases, 1 deferred, 1 certain to be ungraded, 4 calls, ")


def test_a_grader_that_is_not_there_is_told_before_anything_is_paid_for() -> None:
    """However deep it stands; the case would be ungraded, whatever the judge says of the rest."""
    inner = Criterion("more", id="more", answer=Rubric().checks(Unsupported("javascript")).expects("Is warm"))
    suite = Suite("s", [Case("a", Rubric(criteria=[inner]).checks(Unsupported("latency")), output=GOOD)])
    planned = suite.plan("offline")
    assert planned["a"].unsupported == ("javascript", "latency")
    assert planned.to_dict()["cases"][0]["unsupported"] == ["javascript", "latency"]
    assert "ungraded: no grader here for javascript, latency" in planned._repr_markdown_()


@pytest.mark.parametrize(
    ("check", "target", "said"),
    [
        (Similar("Hi"), None, "x: a rubric does not choose whom to ask for embeddings"),
        (Similar("Hi", model=lambda texts: [[1.0] for _ in texts]), None, ""),
        (Within(cost=1), None, "x: the cost of the run is not known; let a live target answer"),
        (Within(latency=1), None, "x: the latency of the run is not known; let a live target answer"),
        (Within(cost=1), ModelTarget("openai/my-own"), "give the price of its model: --price MODEL=IN,OUT"),
        (Within(cost=1), ModelTarget("openai/gpt-5-mini"), ""),
        (Within(perplexity=1), ModelTarget("openai/gpt-5-mini"), "x: the perplexity of the run is not known"),
        (Within(latency=1, tokens=1, calls=1), ModelTarget("openai/my-own"), ""),
        (Within(cost=1), lambda _: "a function may tell it", ""),
    ],
)
def test_what_is_certain_to_stay_unjudged_is_told_before_anything_is_paid_for(
    check: Check, target: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing embeds, no price is known, or a run does not tell what is limited: with the reason, and the cure."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    rubric = Rubric("r").expects("Is kind").checks(check, id="x")
    planned = Suite("s", [Case("a", rubric, input="Hi", output=None if target else "Hello")]).plan(
        "openai/gpt-5-mini", target=target
    )
    assert ("1 certain to be ungraded" in planned.sentence) == bool(said)
    assert any(said in told for told in planned["a"].plan.unjudged) == bool(said)
    assert ("ungraded: x: " in planned._repr_markdown_()) == bool(said)
    if target is None:
        assert ("certain to stay unjudged: x: " in repr(plan("Hello", rubric, "openai/gpt-5-mini"))) == bool(said)


def test_a_cost_is_known_by_the_price_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is certain to stay unjudged."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    suite = Suite("s", [Case("a", Rubric("r").checks(Within(cost=1), id="x"), input="Hi")])
    planned = suite.plan("offline", target="openai/my-own", prices={"openai/my-own": (1, 2)})
    assert planned["a"].plan.unjudged == ()


def test_cases_are_found_by_their_ids() -> None:
    """In suites, plans and reports; a name that is none is an error that names the nearest."""
    suite = Suite("s", [Case("refund", TWO, output=GOOD), Case("greeting", TWO, output=GOOD)])
    for found in (suite, suite.plan("offline"), suite.run("offline")):
        assert "refund" in found
        assert found["refund"] in found
        assert "refunds" not in found
        with pytest.raises(KeyError, match=r"did you mean 'refund'\?"):
            found["refunds"]


def test_a_name_among_many_cases_lists_only_what_is_near() -> None:
    """An error of two thousand names would be read by nobody."""
    suite = Suite("s", [Case(f"case-{n}", TWO) for n in range(100)])
    with pytest.raises(KeyError, match=r"no case 'refund' among 100'?\"?$"):
        suite["refund"]


def test_prices_of_unlisted_models_are_taken_as_by_plan() -> None:
    """A suite is priced as a candidate is; the price of a model that no case asks is refused."""
    suite = many(3)
    assert suite.plan("openai/my-7b").cost is None
    found = suite.plan("openai/my-7b", prices={"openai/my-7b": (1, 2)})
    assert found.cost == pytest.approx(plan([GOOD] * 3, TWO, "openai/my-7b", prices={"openai/my-7b": (1, 2)}).cost)
    with pytest.raises(DefinitionError, match="no judge has this model; did you mean 'openai/my-7b'"):
        suite.plan("openai/my-7b", prices={"openai/my-8b": (1, 2)})
