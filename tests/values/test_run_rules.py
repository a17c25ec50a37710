"""Rules over runs: what they say, by their definitions, of whole runs and of those that are cut short."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from attrs import evolve

from rubric import Candidate, Criterion, DefinitionError, Message, Rubric, ToolCall, call, evaluate, said, state
from rubric.values.run_rules import Matcher, RunRule, RunRules
from rubric.values.runs import Event, Run, State, SubRun
from tests.examples import rounds
from tests.rows import each_row
from tests.run_rules import cut_short_differs, differs, oracle, random_rule, random_run

ELEVEN: dict[str, RunRule] = {
    "verifies before it refunds": call("refund").needs(call("verify"), same="order"),
    "tests after the last edit": call("edit_*").then(call("run_tests")),
    "never deletes": call("delete_*").never(),
    "searches at most three times": call("search").at_most(3),
    "no loop": call("*").at_most(2, same="arguments"),
    "reads what it edits": call("edit").needs(call("read"), same="path"),
    "asks first": call("refund").needs(said("user", r"(?i)\byes\b")),
    "no silent failure": call(failed=True).then(said("assistant", "sorry|could not"), within=2),
    "nothing after logout": call("account_*").never().after(call("logout")).until(call("login")),
    "submits last": call("submit").last(),
    "one approval, one payment": call("refund").needs_one(call("verify"), same="order"),
}


def do(name: str, error: str = "", **arguments: Any) -> ToolCall:
    """Return a call of the tool *name*."""
    return ToolCall(name, arguments=arguments, error=error)


def user(text: str) -> Message:
    """Return what the user said."""
    return Message("user", text)


def agent(text: str) -> Message:
    """Return what the assistant said."""
    return Message("assistant", text)


GOOD = Run([
    user("refund 7"), do("login"), do("verify", order=7), agent("20 EUR?"), user("Yes"), do("account_read"), do("refund", order=7),
    do("logout"), do("read", path="a"), do("edit", path="a"), do("edit_line"), do("run_tests"), do("search", "down"), agent("sorry, no search"),
    do("submit"), agent("done"),
])  # fmt: skip
BAD = Run([
    user("refund 7"), do("refund", order=7), do("verify", order=8), do("logout"), do("account_read"), do("delete_db", "boom"),
    do("edit", path="a"), do("edit_line"), do("search"), do("search"), do("search"), do("search"), agent("done"), user("Yes"),
    do("refund", order=8), do("refund", order=8),
])  # fmt: skip
BROKEN = {
    "verifies before it refunds": ["2"], "tests after the last edit": ["8"], "never deletes": ["6"], "searches at most three times": ["12"],
    "no loop": ["11", "12"], "reads what it edits": ["7"], "asks first": ["2"], "no silent failure": ["6"], "nothing after logout": ["5"],
    "submits last": ["16"], "one approval, one payment": ["2", "16"],
}  # fmt: skip


def test_true_is_no_number_in_arguments() -> None:
    """Arguments are values of JSON: true is not 1, neither as a value nor as what two calls have in common."""
    run = Run([ToolCall("a", arguments={"x": True, "n": [1]}), ToolCall("b", arguments={"x": 1})])
    assert call("a", arguments={"x": 1}).never().judge(run).met
    assert call("a", arguments={"n": [True]}).never().judge(run).met
    assert not call("a", arguments={"x": True, "n": [1.0]}).never().judge(run).met
    assert not call("b").needs("a", same="x").judge(run).met


@each_row("name", ELEVEN)
def test_the_eleven_rules_tell_a_good_run_from_a_bad_one(name: str) -> None:
    """The good run keeps each, and the verdict on the bad one names the steps that break it."""
    kept, broken = ELEVEN[name].judge(GOOD), ELEVEN[name].judge(BAD)
    assert (kept.met, kept.breaches, kept.vacuous) == (True, (), False)
    assert (broken.met, [breach.step for breach in broken.breaches]) == (False, BROKEN[name])
    for step in BROKEN[name]:
        assert f"step [{step}] " in broken.reason


@each_row("name", ELEVEN)
def test_a_rule_is_a_value(name: str) -> None:
    """It has one hash and one repr that can be typed, is pickled, and is the same in Python, in YAML and back."""
    rule = ELEVEN[name]
    again = eval(repr(rule), {"call": call, "said": said, "state": state})  # noqa: S307 - what we wrote
    assert (again, hash(again), pickle.loads(pickle.dumps(rule))) == (rule, hash(rule), rule)  # noqa: S301


@pytest.mark.long
def test_verdicts_are_those_of_the_literal_quantifiers() -> None:
    """On random runs and rules of every kind and scope; `python -m tests.run_rules` takes a million of them."""
    rnd = Random(25)
    assert [why for _ in range(rounds(4_000)) if (why := differs(random_rule(rnd), random_run(rnd)))] == []


NEXT: list[Event] = [do("a", x=0), do("b", x=0), do("c"), do("a", x=1), do("b", x=1), user("yes")]
A, B, C = call("a"), call("b"), call("c")
CUT = [
    A.never(), A.at_most(1), A.at_most(1, same="x"), A.at_least(2), A.first(), A.last(), A.always(), A.needs(B), A.needs(B, same="x"),
    A.needs(B, within=1), A.needs_one(B), A.then(B), A.then(B, same="x"), A.then(B, within=1), A.then(said("user", "yes"), within=0),
    *(rule.after(C) for rule in (A.never(), A.at_least(2), A.needs(B), A.then(B), A.last(), A.first())),
    *(rule.until(C) for rule in (A.never(), A.at_least(1), A.needs(B), A.then(B), A.last(), A.first())),
    *(rule.before(C) for rule in (A.never(), A.at_least(1), A.needs(B), A.then(B), A.last(), A.first())),
    *(rule.after(C).until(B) for rule in (A.never(), A.at_least(1), A.last())),
    *(rule.after(C).before(B) for rule in (A.never(), A.at_least(1), A.first())),
]  # fmt: skip


@pytest.mark.long
@each_row("rule", CUT, ids=repr)
def test_a_run_that_is_cut_short_is_decided_only_if_all_its_ends_agree(rule: RunRule) -> None:
    """Each verdict is that of every way in which the run may go on; where it is unknown, two ways differ."""
    rnd = Random(3)
    for _ in range(rounds(12)):
        run = random_run(rnd, NEXT, 4, 0)
        assert not cut_short_differs(rule, run, NEXT, 3, exact=True)


def test_the_run_of_a_sub_agent_that_was_cut_short_cuts_the_whole() -> None:
    """What it did not log may break a rule."""
    run = Run([SubRun("a", Run([do("x")], complete=False))])
    assert (call("y").never().judge(run).met, call("x").never().judge(run).met) == (None, False)


def mutants(rule: RunRule) -> list[RunRule]:
    """Return the rules that differ from *rule* in one thing."""
    ways: list[dict[str, Any]] = [
        {"kind": kind} for kind in ("needs", "needs_one", "then", "never", "first", "last", "always")
    ]
    if rule.other is not None:
        ways += [{"event": rule.other, "other": rule.event}, {"other": call("nothing")}, {"other": call("submit")}]
        ways += [{"within": n} for n in {0, 1, (rule.within or 0) + 1, None}]
    if rule.same:
        ways += [{"same": same} for same in ("", "id", "order=id")]
    if rule.count is not None:
        ways += [{"count": rule.count + 1}, {"count": rule.count - 1}, {"kind": "at_least"}]
    if rule.start is not None:
        ways += [{"start": None}, {"end": None}, {"must_end": True}, {"start": rule.end, "end": rule.start}]
    else:
        ways += [{"start": call("login")}, {"end": call("login")}, {"end": call("login"), "must_end": True}]
    ways += [{"event": one} for one in (call("*"), call("read"), call("*", failed=False))]
    found = list[RunRule]()
    for way in ways:
        with suppress(DefinitionError):  # no such rule can be made
            found.append(evolve(rule, **way))
    return [one for one in dict.fromkeys(found) if one != rule]


ALL = [(name, mutant) for name, rule in ELEVEN.items() for mutant in mutants(rule)]
WORLD: list[Event] = [
    *(ToolCall(name, arguments={key: value}) for name in ("refund", "verify") for key, value in (("order", 7), ("order", 8), ("id", 7))),
    do("edit_a"), do("edit_b"), do("run_tests"), do("delete_db"), do("delete_all"), do("search"), do("search"), do("search", "down"),
    do("read", path="a"), do("edit", path="a"), do("read", path="b"), do("edit", path="b"), do("edit", id="a"), do("submit"),
    user("yes"), agent("sorry"), agent("ok"), do("login"), do("logout"), do("account_x"), do("verify", "boom", order=7),
]  # fmt: skip


@each_row(("name", "mutant"), ALL, ids=[f"{name}: {mutant!r}" for name, mutant in ALL])
def test_a_mutant_of_a_rule_is_told_apart_by_a_run(name: str, mutant: RunRule) -> None:
    """No part of a rule is without effect: some run is judged otherwise, as its definition is."""
    rnd, rule = Random(7), ELEVEN[name]
    for _ in range(4_000):
        run = random_run(rnd, WORLD, 14, 0)
        if rule.judge(run).met is not mutant.judge(run).met:
            assert oracle(mutant, run)[0] is mutant.judge(run).met
            return
    pytest.fail("no run tells them apart")


def test_there_are_sixty_mutants() -> None:
    """So many ways to get the eleven wrong are tried."""
    assert len(ALL) >= 60


@each_row("called", ["functions.refund", "mcp__bank__Refund", "bank:refund", "bank/refund"])
def test_a_rule_kept_only_since_a_tool_has_another_name_says_so(called: str) -> None:
    """A server or a vendor may put its own before the name; the pattern that is printed means both."""
    run = Run([ToolCall(called)])
    for rule in (call("refund").never(), call("refund").needs("verify"), call("verify").never().after("refund")):
        said = rule.judge(run).reason
        assert f"; {called} was called, which is another name; write '*refund' for both" in said, rule
    assert call("*refund").never().judge(run).met is False
    assert call("fund").never().judge(run).reason.endswith("kept")


def test_a_rule_whose_event_never_occurs_is_kept_vacuously_and_says_so() -> None:
    """Also one whose scope never begins, or never ends where it must; an absence is not vacuous."""
    run = Run([do("a")])
    for rule, lacks in (
        (call("b").needs("c"), "no call('b')"),
        (call("b").then("c"), "no call('b')"),
        (call("b").at_most(2), "no call('b')"),
        (call("a").never().after("b"), "no call('b')"),
        (call("a").never().before("b"), "no call('b')"),
        (call("a").at_least(2).after("a").before("b"), "no call('b')"),
    ):
        verdict = rule.judge(run)
        assert (verdict.met, verdict.vacuous) == (True, True), rule
        assert f"vacuously, since there is {lacks}" in verdict.reason
    assert not call("b").never().judge(run).vacuous


@each_row("bound", [{"gt": 50}, {"lte": 50}, ">50", "<= 50", {"$gt": 50, "$lt": 90}])
def test_a_bound_of_an_argument_is_refused(bound: Any) -> None:
    """It would be compared as a value, so that a refund of 80 kept a rule on those above 50."""
    with pytest.raises(DefinitionError, match="compared by a bound") as refused:
        call("refund", arguments={"amount": bound})
    own = str(refused.value).rpartition("; for one that is so itself, ")[2].strip("'")
    itself = Run([ToolCall("refund", arguments={"amount": bound})])
    assert call("refund", matches={"amount": own}).never().judge(itself).met is False
    assert call("refund", arguments={"amount": {"value": 50}, "note": "50 words"}).arguments
    rule = call("refund", matches={"amount": "^[5-9][0-9]$"}).never()
    assert [rule.judge(Run([ToolCall("refund", arguments={"amount": n})])).met for n in (49, 80)] == [True, False]


def test_each_turn_is_a_part_where_one_event_ends_it_and_begins_the_next() -> None:
    """At most one search for each question."""
    rule = call("search").at_most(1).after(said("user")).until(said("user"))
    searches = [do("search"), do("search")]
    assert rule.judge(Run([user("a"), searches[0], user("b"), searches[0]])).met
    assert [one.step for one in rule.judge(Run([user("a"), user("b"), *searches, user("c"), *searches])).breaches] == [
        "4",
        "7",
    ]


@each_row(
    ("rule", "done", "remark"),
    [
        (call("refund", arguments={"amount": 20}).at_least(1), [do("refund", amount=200)], "refund was called with amount 200"),
        (call("refund", arguments={"amount": 20}).at_least(1), [do("refund", amount="20")], "refund was called with amount '20'"),
        (call("refund", arguments={"amount": 20}).at_least(1), [do("refund", sum=20)], "refund was called with no amount"),
        (
            call("Refund*", arguments={"to": "Ann"}, matches={"amount": "^2.$"}).at_least(1),
            [do("refund_order", amount=200, to="Bob"), do("refund_order", amount=21, to="Bob")],
            "refund_order was called with to 'Bob' and amount 200; refund_order was called with to 'Bob' and amount 21",
        ),
        (call("pay").needs(call("check", arguments={"id": 1})), [do("check", id=2), do("pay")], "check was called with id 2"),
        (call("refund", arguments={"amount": 20}).needs(call("check")), [do("refund", amount=2)], "refund was called with amount 2"),
        (call("refund", arguments={"amount": 20}).at_least(2), [do("refund", amount=20), do("refund", amount=2)], ""),
        (call("refund", arguments={"amount": 20}, result="ok").at_least(1), [do("refund", amount=20)], ""),
        (call("refund", arguments={"amount": 20}).never(), [do("refund", amount=20)], ""),
        (call("refund", arguments={"amount": 20}).first(), [do("refund", amount=2)], ""),
    ],
)  # fmt: skip
def test_calls_with_other_arguments_than_a_rule_says_are_told(rule: RunRule, done: list[ToolCall], remark: str) -> None:
    """Where no call has those, the reason says which the calls of the tool have; each is told once."""
    reason = rule.judge(Run([*done, *done[:1]] if remark else done)).reason
    assert reason.partition("; ")[2] == remark if remark else "was called with" not in reason


def test_what_a_part_lacks_is_missing_at_the_event_that_ends_it() -> None:
    """Only what the last part lacks is missing at the end of the run."""
    rule = call("search").at_least(1).after(said("user")).until(said("user"))
    run = Run([user("a"), do("talk"), user("b"), do("search"), user("c"), do("talk")])
    verdict = rule.judge(run)
    assert [one.step for one in verdict.breaches] == ["3", ""]
    assert "broken at step [3] user: b: 0 of at least 1 before it; at the end, with 0 of at least 1" in verdict.reason
    assert call("plan").first().after(said("user")).before(call("go")).judge(Run([user("a"), do("go")])).met is False
    opened = call("plan").first().after(said("user")).before(said("user")).judge(run)
    assert [str(one).rpartition(": ")[2] for one in opened.breaches] == ["it is no call('plan')"] * 2


def test_sub_agents_count_in_their_order_and_are_chosen_by_name() -> None:
    """Their events stand after what started them; `agent` takes wild cards, and '' is the agent without a name."""
    run = Run([SubRun("coder", Run([do("edit", path="a")])), do("edit", path="b"), ToolCall("edit", agent="tester")])
    steps = {
        who: [one.step for one in call("edit", agent=who).never().judge(run).breaches]
        for who in (None, "c*", "", "TESTER")
    }
    assert steps == {None: ["1.1", "2", "3"], "c*": ["1.1"], "": ["2"], "TESTER": ["3"]}


def test_a_call_without_the_argument_shares_it_with_none() -> None:
    """It does not match another that lacks it as well."""
    rule = call("refund").needs("verify", same="order")
    assert rule.judge(Run([do("verify"), do("refund")])).met is False
    assert call("refund").then("verify", same="order").judge(Run([do("refund"), do("verify")])).met is False
    assert call("refund").at_most(1, same="order").judge(Run([do("refund"), do("refund")])).met is True


def test_arguments_with_two_names() -> None:
    """`same="order=id"` is the order of the one and the id of the other."""
    rule = call("refund").needs("find", same="order=id")
    assert rule.judge(Run([do("find", id=7), do("refund", order=7)])).met
    assert rule.judge(Run([do("find", order=7), do("refund", id=7)])).breaches


@each_row(
    ("rule", "said"),
    [
        (call("refund").needs("look*", same="id=order"), "'id', but 'order', 'why'; no call('look*') has the argument 'order'"),
        (call("look*").then("refund", same="order=id"), "'order', but 'id'; no call('refund') has the argument 'id'"),
        (call("refund").needs("look*", same="order"), "no call('look*') has the argument 'order', but 'id'"),
        (call("refund").at_most(1, same="pth"), "kept; no call('refund') has the argument 'pth', but 'order', 'why'"),
        (call("refund").needs("look*", same="number"), "'number', but 'order', 'why'; no call('look*')"),
    ],
    ids=["swapped", "swapped, after", "one name of two", "a misspelt name that nothing shares", "a name of neither"],
)  # fmt: skip
def test_an_argument_that_no_call_has_is_said(rule: RunRule, said: str) -> None:
    """With the arguments that there are, and the rule with its sides swapped where that one can be kept."""
    run = Run([do("look_up", id=7), do("refund", order=7, why="late")])
    reason = rule.judge(run).reason
    assert said in reason
    works = re.findall("; write same='(.*?)', first the argument of ", reason)
    assert bool(works) == (rule.same in ("id=order", "order=id"))
    assert all(evolve(rule, same=same).judge(run).met for same in works)


def test_an_argument_that_some_call_has_is_no_mistake() -> None:
    """Nothing is said of it, nor of a tool that is not called."""
    run = Run([do("look_up", id=8), do("look_up"), do("refund", order=7)])
    for other in ("look_up", "verify"):
        assert "argument" not in call("refund").needs(other, same="order=id").judge(run).reason


def test_a_role_that_no_message_has_is_told() -> None:
    """A text in the place of a role, as in `said("sorry")`, matches nothing, also where nothing is to be matched."""
    run = Run([user("a"), Message("assistant", "I am sorry")])
    for rule in (said("sorry").at_least(1), said("sorry").never(), said("user").then(said("sorry"))):
        reason = rule.judge(run).reason
        assert reason.endswith("no message has the role 'sorry'; for a text, write said('assistant', 'sorry')"), rule
    for rule in (said("system").never(), said("*").at_least(1), said("assistant", "sorry").at_least(1)):
        assert "no message" not in rule.judge(run).reason, rule


def test_arguments_results_and_failures_of_calls() -> None:
    """Arguments are equal, patterns are found in texts and in JSON, and a failed call is no proof if one says so."""
    run = Run([ToolCall("sh", arguments={"command": "rm -rf /", "opts": {"a": 1}}, result={"code": 0}), do("sh", "no")])
    for matcher, steps in (
        (call("sh", matches={"command": r"rm\s"}), ["1"]),
        (call("sh", matches={"opts": '"a": 1'}), ["1"]),
        (call("sh", arguments={"opts": {"a": 1}}), ["1"]),
        (call("sh", arguments={"opts": {"a": 2}}), []),
        (call("sh", result='"code": 0'), ["1"]),
        (call("sh", failed=True), ["2"]),
        (call("SH", failed=False), ["1"]),
    ):
        assert [one.step for one in matcher.never().judge(run).breaches] == steps, matcher


BALANCE = Run(
    [
        State({"balance": 50, "open": True}),
        do("pay"),
        State({"balance": 20}),
        do("log"),
        State({"open": False}),
        agent("Paid"),
    ]
)


@each_row(
    ("rule", "met", "steps"),
    [
        (state("balance", 20).at_end(), True, []),
        (state("balance", 50).at_end(), False, ["3"]),
        (state("balance", 50).first(), True, []),
        (state("balance", matches="^-").never(), True, []),
        (state("balance", matches="^[0-3]").always(), False, ["1"]),
        (state("balance", 20).after("pay"), True, []),
        (state("balance", 30).after("pay").until("log"), False, ["3"]),
        (state("balance", 20).after("log"), None, []),
        (state("balance", 20).after("nothing"), True, []),
        (state("balance").unchanged(), False, ["3"]),
        (state("open").unchanged().before("log"), None, []),
        (state("balance").unchanged().after("pay"), False, ["3"]),
        (state("open").unchanged().after("pay").until("log"), None, []),
        (state("open").unchanged(), False, ["5"]),
        (state("open", False).at_end(), True, []),
        (call("pay").then(state("balance", 20)), True, []),
        (state("mail").unchanged(), None, []),
        (call("pay").never().after(state("open", True)), False, ["2"]),
    ],
    ids=repr,
)
def test_states_are_compared_where_they_were_recorded(rule: RunRule, met: bool | None, steps: list[str]) -> None:
    """At the end, after an event, unchanged between two; unknown where nothing was recorded."""
    verdict = rule.judge(BALANCE)
    assert (verdict.met, [one.step for one in verdict.breaches]) == (met, steps), verdict.reason
    assert met is not None or "not recorded" in verdict.reason


def test_several_rules_are_one_check() -> None:
    """Broken if one is, else unknown if one is; with all breaches, and the reasons of those that decide."""
    a, b = call("a").never(), call("b").at_least(1)
    assert (a & b) == RunRules([a, b])
    assert (a & b) & a == a & (b & a) == RunRules([a, b, a])
    assert (a & b).judge(Run([do("b")])).met is True
    both = (a & b).judge(Run([do("a")]))
    assert (both.met, [one.step for one in both.breaches]) == (False, ["1", ""])
    assert ((a & b).judge(Run([], complete=False)).met, (a & b).judge(Run([do("a")], complete=False)).met) == (
        None,
        False,
    )


def refusals() -> list[tuple[str, Any, str]]:
    """Return what is refused: the field, how it is tried, and words of the cure."""
    return [
        ("count", lambda: call("a").at_least(0), "1 or more"),
        ("count", lambda: call("a").at_most(-1), "at least 0"),
        ("count", lambda: RunRule("never", call("a"), count=1), "at_most, at_least"),
        ("other", lambda: RunRule("needs", call("a")), "needs"),
        ("same", lambda: call("a").needs(said("user"), same="x"), "only calls have arguments"),
        ("same", lambda: call("a").needs("b", same="x="), "'a=b'"),
        ("same", lambda: call("a").needs("b", same="x = y"), "'a=b'"),
        ("same", lambda: call("a").needs("b", same="arguments=y"), "'a=b'"),
        ("same", lambda: call("a").at_most(1, same="x=y"), "write the one name"),
        ("start", lambda: call("a").never().after("b").after("c"), "already"),
        ("end", lambda: call("a").never().until("b").before("c"), "already"),
        ("event", lambda: state("s").at_end(), "unchanged()"),
        ("event", lambda: state("s", 1).unchanged(), "unchanged()"),
        ("event", lambda: RunRule("unchanged", call("a")), "without a value"),
        ("other", lambda: call("a").needs(3), r"call\(...\)"),  # type: ignore[arg-type]
        ("matches", lambda: said("user", "(?=x)"), "RE2"),
        ("matches.a", lambda: call("x", matches={"a": "("}), "RE2"),
    ]


@each_row(("field", "make", "words"), refusals(), ids=[f"{n} {one[0]}" for n, one in enumerate(refusals())])
def test_what_has_no_meaning_is_refused(field: str, make: Any, words: str) -> None:
    """With the field, and what works."""
    with pytest.raises(DefinitionError, match=words) as caught:
        make()
    assert caught.value.field == field


def test_a_matcher_is_a_check_that_it_occurs() -> None:
    """`check=call("a")` is `call("a").at_least(1)`, and a criterion may leave its text out."""
    assert Criterion("Calls a", check=call("a")).answer == call("a").at_least(1)  # type: ignore[arg-type]
    assert Criterion(check=call("a").never()).text == "call('a').never()"
    assert isinstance(call("a"), Matcher)


def test_a_rubric_without_rules_loads_no_classes_of_rules_and_runs() -> None:
    """Building a rubric of texts and checks imports neither rules nor runs; a rule of one call is made when asked."""
    code = (
        "import sys; from rubric import Calls, Contains, Rubric; Rubric('r').expects('Is kind').checks(Contains('x'));"
        " names = {'rubric.values.run_rules', 'rubric.values.runs'}; assert not names & {*sys.modules}, names;"
        " assert Calls('a').rule.kind == 'at_least'; assert names <= {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_class_of_a_matcher_is_not_a_matcher() -> None:
    """`on=call`, without its call, is refused: it names no events."""
    with pytest.raises(DefinitionError, match="on"):
        Criterion("Is kind", on=call)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError):
        Rubric("r").checks(call)  # type: ignore[arg-type]


@each_row(
    ("before", "given", "why"),
    [
        (8, {"same": "order"}, "no call('verify') with the same order before it"),
        ("7", {"same": "order"}, "with the same order before it; 7 and '7' differ: one is a text"),
        (7, {"same": "order", "within": 0}, "no call('verify') with the same order near enough (within=0) before it"),
    ],
)
def test_a_rule_that_is_broken_says_what_is_lacking(before: Any, given: dict[str, Any], why: str) -> None:
    """A call that is there, of something else or too far away, is not said to be missing."""
    verify, refund = (ToolCall(name, arguments={"order": n}) for name, n in (("verify", before), ("refund", 7)))
    rule = Rubric("r").checks(call("refund").needs("verify", **given))
    run = Run([verify, Message("user", "Go on"), refund, Message("assistant", "Done")])
    found = evaluate(Candidate(run=run), rule, "offline").findings[0]
    assert why in str(getattr(found, "reason", ""))
