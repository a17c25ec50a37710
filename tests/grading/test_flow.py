"""Grading as a state machine: what is asked, in what order, and what becomes of replies that hold no verdict."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import (
    Anchor,
    Candidate,
    Contains,
    Criterion,
    DefinitionError,
    Grade,
    Judge,
    Jury,
    Message,
    Panel,
    Rubric,
    Ungraded,
    ask,
)
from rubric.driving import Ask, Failure, ProtocolError, Reply, Usage, flow
from rubric.grading.flow import LONG_PREFIX, Flow, leading
from rubric.grading.steps import Steps
from rubric.results import Abstained, NotApplicable, Scored, Unjudged
from rubric.testing.scripted_model import Line, ScriptedModel, reply_to
from tests.drive import REPLY, carry, drive
from tests.examples import examples
from tests.findings import improvised, rubrics
from tests.rows import each_row

PLAIN = Rubric().expects("Is it good?", id="a")
THREE = PLAIN.expects("Is it short?", id="b").expects("Is it new?", id="c")
TEMPERATURE = ask("Is there a temperature?").yes(1.0, "both").no(0.4, "no figure")
WEATHER = ask("Was the tool called?").yes(TEMPERATURE).no(0.0, "no call")


def says(*lines: Line, **options: Any) -> Judge:
    """Return a judge that says *lines* in turn."""
    return Judge(ScriptedModel(lines), **options)


def asks(judge: Judge) -> list[Ask]:
    """Return what *judge* was asked."""
    assert isinstance(judge.model, ScriptedModel)
    return judge.model.asks


def batches(rubric: Rubric, judge: Judge | Jury | Panel, candidate: str = REPLY) -> list[int]:
    """Return how many asks went out at a time."""
    return sizes_of(flow(Candidate.of(candidate), rubric, judge))


def sizes_of(steps: Steps[Any]) -> list[int]:
    """Return how many asks *steps* sends at a time."""
    sizes = []
    try:
        batch = next(steps)
        while True:
            sizes.append(len(batch))
            batch = steps.send(tuple(carry(one) for one in batch))
    except StopIteration:
        return sizes


# -- what is asked -----------------------------------------------------------------------------------------


def test_each_criterion_is_asked_about_alone() -> None:
    """One call a criterion, all of them at once."""
    judge = says(True, False, True)
    result = drive(THREE, judge)
    assert [[c.id for c in one.criteria] for one in asks(judge)] == [["a"], ["b"], ["c"]]
    assert batches(THREE, says(True, True, True)) == [3]
    assert [f.score for f in result.findings if isinstance(f, Scored)] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(("per_call", "groups"), [(1, [1, 1, 1]), (2, [2, 1]), (3, [3]), ("all", [3])])
def test_a_judge_takes_as_many_criteria_a_call_as_it_says(per_call: Any, groups: list[int]) -> None:
    """Also when fewer are left."""
    judge = Judge(ScriptedModel({"a": True, "b": False, "c": True}), per_call=per_call)
    result = drive(THREE, judge)
    assert [len(one.criteria) for one in asks(judge)] == groups
    assert [f.score for f in result.findings if isinstance(f, Scored)] == [1.0, 0.0, 1.0]


def test_trees_and_nested_rubrics_are_asked_alone() -> None:
    """What stands between two other criteria does not part them."""
    rubric = PLAIN.decides("t", by=ask("q").yes(1.0).no(0.0), id="t").includes(PLAIN, id="n").expects("z", id="z")
    judge = Judge(ScriptedModel({"a": True, "t": 1.0, "z": True}), per_call="all")
    drive(rubric, judge)
    assert sorted([c.id for c in one.criteria] for one in asks(judge)) == [["a"], ["a", "z"], ["t"]]


def test_what_code_decides_costs_no_call() -> None:
    """A check, and a criterion that does not apply."""
    rubric = Rubric().checks(Contains("2.3.0"), id="c").expects("x", id="x", when=lambda _: False)
    result = drive(rubric, says())
    assert isinstance(result, Grade)
    assert (result.score, result.usage.calls) == (1.0, 0)
    assert isinstance(result["x"], NotApplicable)


@pytest.mark.parametrize(
    ("lines", "score", "walk", "reason"),
    [
        ((0.9, 0.8), 1.0, [True, True], "both"),
        ((0.5, 0.49), 0.4, [True, False], "no figure"),
        ((0.49,), 0.0, [False], "no call"),
    ],
)
def test_a_tree_asks_only_what_it_reaches(lines: Any, score: float, walk: list[bool], reason: str) -> None:
    """Yes from 0.5; the leaf is the score, the path and its reason are reported."""
    judge = says(*lines)
    result = drive(Rubric.deciding(WEATHER), judge)
    assert isinstance(result, Grade)
    assert (result.score, [step.yes for step in result.path], len(asks(judge))) == (score, walk, len(lines))
    assert isinstance(result["overall"], Scored)
    assert result["overall"].reason == reason


def test_a_walk_that_breaks_off_has_the_bounds_of_what_it_could_still_reach() -> None:
    """After a first yes, only 0.4 and 1.0 are left; the step that was taken is kept."""
    result = drive(Rubric.deciding(WEATHER), says(0.9, Failure("timeout", "late")))
    assert isinstance(result, Ungraded)
    assert (result.bounds, [step.yes for step in result.path]) == ((0.4, 1.0), [True])


def test_trees_may_be_sixty_four_deep_and_criteria_a_thousand() -> None:
    """No recursion limit is near."""
    tree = ask("q").yes(1.0).no(0.0)
    for _ in range(63):
        tree = ask("q").yes(tree).no(0.0)
    assert drive(Rubric.deciding(tree), Judge(ScriptedModel(lambda _: 1.0))).passed is True
    many = Rubric(criteria=[f"criterion {n}" for n in range(1_000)])
    assert drive(many, Judge(ScriptedModel(lambda _: True))).usage.calls == 1_000


def test_rubrics_may_be_nested_twenty_deep() -> None:
    """One ask at the bottom, one score at the top."""
    rubric = PLAIN
    for _ in range(20):
        rubric = Rubric().includes(rubric, id="n")
    result = drive(rubric, says(True))
    assert isinstance(result, Grade)
    assert (result.score, result.usage.calls) == (1.0, 1)


@examples(100)
@given(rubrics(), st.integers())
def test_the_same_grading_asks_the_same_byte_for_byte(rubric: Rubric, seed: int) -> None:
    """Marks and nonces are derived, not drawn: replay and caches keep working."""
    first, second = (Judge(ScriptedModel(improvised(seed)), sealed=True) for _ in range(2))
    assert drive(rubric, first).outcome == drive(rubric, second).outcome
    assert [(a.messages, a.schema, a.nonce, a.vote) for a in asks(first)] == [
        (a.messages, a.schema, a.nonce, a.vote) for a in asks(second)
    ]


@pytest.mark.parametrize("rubric", [Rubric(), Rubric().includes(Rubric("inner"))])
def test_a_rubric_without_criteria_cannot_grade(rubric: Rubric) -> None:
    """Neither can one that holds such a rubric: nothing to grade by is not a vacuous pass."""
    with pytest.raises(DefinitionError, match="nothing to grade by"):
        drive(rubric, says())


# -- what cannot be read -----------------------------------------------------------------------------------


def test_an_unreadable_reply_is_asked_again_with_the_complaint() -> None:
    """Once, by default; the second answer counts, and both are in the usage."""
    judge = says("Looks fine to me!", True)
    result = drive(PLAIN, judge)
    assert isinstance(result, Grade)
    assert [one.repair for one in asks(judge)] == [0, 1]
    assert "could not be used: it holds no JSON object" in asks(judge)[1].messages[-1].text
    assert (result.usage.calls, [f.kind for f in result.failures]) == (2, ["unreadable"])


@pytest.mark.parametrize("repairs", [0, 1, 3])
def test_re_asks_are_bounded(repairs: int) -> None:
    """One ask and `repairs` more, then the criterion stays unjudged."""
    judge = says(*["no"] * 9, repairs=repairs)
    result = drive(PLAIN, judge)
    assert isinstance(result, Ungraded)
    assert len(asks(judge)) == 1 + repairs


def test_only_what_is_missing_is_asked_again() -> None:
    """Two of three verdicts were good: the third is asked about alone."""
    bad = '{"verdicts": [{"id": "a", "verdict": true}, {"id": "b", "verdict": 7}, {"id": "c", "verdict": false}]}'
    judge = says(bad, True, per_call="all")
    result = drive(THREE, judge)
    assert [[c.id for c in one.criteria] for one in asks(judge)] == [["a", "b", "c"], ["b"]]
    assert [f.score for f in result.findings if isinstance(f, Scored)] == [1.0, 1.0, 0.0]


def test_a_cut_reply_is_asked_again_with_twice_the_tokens() -> None:
    """And twice that if it is cut again."""
    cut = Reply('{"reason": "it is', finish="length")
    judge = says(cut, cut, True, max_tokens=100, repairs=2)
    assert drive(PLAIN, judge).passed is True
    assert [one.max_tokens for one in asks(judge)] == [100, 200, 400]


@each_row("kind", ["auth", "quota", "context_window", "bad_request", "rate_limited", "timeout", "exception"])
def test_failures_are_not_asked_again(kind: Any) -> None:
    """What may pass with time, the driver has tried; the rest would fail again."""
    judge = says(Failure(kind, "so it is"), True)
    result = drive(PLAIN, judge)
    assert isinstance(result, Ungraded)
    assert (len(asks(judge)), [f.kind for f in result.failures]) == (1, [kind])


@pytest.mark.parametrize("reply", [Reply("no", finish="content_filter"), Reply(None, refusal="I cannot help")])
def test_a_refusal_is_not_asked_again(reply: Reply) -> None:
    """It is an answer, but no verdict."""
    judge = says(reply, True)
    result = drive(PLAIN, judge)
    assert isinstance(result, Ungraded)
    assert (len(asks(judge)), result.failures[0].kind) == (1, "refusal")


def test_what_was_spent_on_unreadable_replies_and_failures_is_counted() -> None:
    """E14: tokens of a reply that held no verdict, and of a call that failed, were paid for."""
    spent = Usage(calls=1, prompt_tokens=10, completion_tokens=5, cost=0.25)
    judge = says(Reply("hm", usage=spent), Failure("timeout", "late", usage=spent))
    result = drive(PLAIN, judge)
    assert isinstance(result, Ungraded)
    assert (result.usage.calls, result.usage.completion_tokens, result.usage.cost) == (2, 10, 0.5)


def test_an_unknown_price_makes_the_whole_cost_unknown() -> None:
    """E14: it is never left out of a sum."""
    unpriced = Usage(calls=1, prompt_tokens=10, cost=None)
    judge = Judge(ScriptedModel(lambda one: Reply(reply_to(one, True), usage=unpriced)))
    assert drive(THREE, judge).usage.cost is None


# -- failures are not verdicts -----------------------------------------------------------------------------


def test_a_failed_call_does_not_raise_the_score() -> None:
    """E3: weights 1 and 9 and a guard; the heavy one fails, the guard is cut, and so nothing is claimed."""
    rubric = Rubric().expects("a", id="a").expects("b", weight=9, id="b").forbids("g", weight=10, id="g")
    lines = {"a": True, "b": Failure("transport", "broken"), "g": Reply("{", finish="length")}
    result = drive(rubric, Judge(ScriptedModel(lines)))
    assert isinstance(result, Ungraded)
    assert (result.bounds, result.coverage, result.passed) == ((0.05, 1.0), 0.05, None)
    assert {f.failure.criterion for f in result.findings if isinstance(f, Unjudged)} == {"b", "g"}


def test_a_failed_call_does_not_lower_the_score_either() -> None:
    """E4: an exception of the model's is not a guard that was found present."""
    rubric = Rubric().expects("a", id="a").forbids("g", weight=5, id="g")
    result = drive(rubric, Judge(ScriptedModel({"a": True, "g": Failure("exception", "KeyError")})))
    assert isinstance(result, Ungraded)
    assert result.bounds == pytest.approx((1 / 6, 1.0))
    assert result.passed is None


def test_what_is_judged_can_settle_the_verdict_of_what_is_not() -> None:
    """A failed gate is a fail, though another criterion is missing."""
    rubric = PLAIN.requires("b", id="b")
    result = drive(rubric, Judge(ScriptedModel({"a": Failure("timeout", "late"), "b": False})))
    assert isinstance(result, Ungraded)
    assert (result.passed, result.coverage) == (False, 0.5)


def test_if_the_judge_abstains_from_everything_there_is_no_pass() -> None:
    """All excluded is not vacuous: the criteria applied, and nobody could tell."""
    result = drive(THREE.abstaining("exclude"), Judge(ScriptedModel(lambda _: None)))
    assert isinstance(result, Ungraded)
    assert (result.passed, result.bounds, {type(f) for f in result.findings}) == (None, (0.0, 1.0), {Abstained})


def test_a_null_where_no_abstention_is_allowed_is_unreadable() -> None:
    """It is asked again, and then unjudged."""
    judge = says(None, None)
    assert isinstance(drive(PLAIN, judge), Ungraded)
    assert len(asks(judge)) == 2


def test_a_nested_rubric_in_which_nothing_applies_does_not_apply() -> None:
    """It does not count as 1 in the mean."""
    inner = Rubric("inner").expects("x", id="x", when=lambda _: False)
    result = drive(PLAIN.includes(inner, id="n"), says(False))
    assert isinstance(result, Grade)
    assert (result.score, type(result["n"])) == (0.0, NotApplicable)


def test_a_nested_failure_has_the_bounds_of_what_is_missing() -> None:
    """Half of a nested half is missing: a quarter."""
    inner = Rubric("inner").expects("x", id="x").expects("y", id="y")
    lines: dict[str, Line] = {"a": True, "x": True, "y": Failure("auth", "no")}
    result = drive(PLAIN.includes(inner, id="n"), Judge(ScriptedModel(lines)))
    assert isinstance(result, Ungraded)
    assert (result.bounds, result.coverage) == ((0.75, 1.0), 0.75)


@examples(100)
@given(rubrics(depth=2), st.integers(), st.sampled_from([1, 2, "all"]))
def test_a_failure_now_and_then_never_contradicts_the_whole(rubric: Rubric, seed: int, per_call: Any) -> None:
    """The score of the run in which nothing fails lies within the bounds of the one in which something does."""
    whole = drive(rubric, Judge(ScriptedModel(improvised(seed)), per_call=per_call))
    torn = drive(rubric, Judge(ScriptedModel(improvised(seed, failing=0.3)), per_call=per_call))
    assert torn.bounds[0] <= whole.bounds[0] <= whole.bounds[1] <= torn.bounds[1]
    assert torn.passed in (None, whole.passed)
    assert isinstance(whole, Grade) or isinstance(torn, Ungraded)


# -- the candidate -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("candidate", ["", "   ", "...", "Thought process:", "解"])
def test_a_degenerate_candidate_fails_without_a_call(candidate: str) -> None:
    """Empty, punctuation, or a known master key: score 0, and the reason is kept."""
    result = drive(PLAIN.forbids("x"), says(), candidate)
    assert isinstance(result, Grade)
    assert (result.score, result.passed, result.usage.calls, bool(result.degenerate)) == (0.0, False, 0, True)


def test_a_rubric_may_have_degenerate_candidates_judged_or_refused() -> None:
    """`judge` asks as for any other, `error` is ungraded."""
    assert drive(Rubric(criteria=PLAIN.criteria, degenerate="judge"), says(True), "").passed is True
    refused = drive(Rubric(criteria=PLAIN.criteria, degenerate="error"), says(), "")
    assert isinstance(refused, Ungraded)
    assert [f.kind for f in refused.failures] == ["degenerate"]


def test_a_conversation_is_no_failure_for_its_empty_last_answer() -> None:
    """The earlier answers were not judged: no judge said 0; the result says why, and is restored and rescored so."""
    said = [Message("user", "Refund it."), Message("assistant", "Done."), Message("user", "Thanks. When is it there?")]
    judge = says()
    for rubric in (PLAIN, Rubric(criteria=[Criterion("Is polite", on="each turn")])):
        result = drive(rubric, judge, Candidate("  ", messages=said))
        assert isinstance(result, Ungraded)
        assert {f.message for f in result.failures} == {"the candidate is a conversation without a last answer"}
        assert result.usage.calls == 0
        assert Ungraded.from_dict(result.to_dict(), rubric, judge).outcome == result.outcome
        assert isinstance(result.rescore(threshold=0.9), Ungraded)
    assert drive(PLAIN, says(), Candidate("", messages=said[:1])).score == 0  # this is the only answer


def test_anchors_are_keyed_by_criterion_and_never_show_the_graded_text() -> None:
    """E13: each criterion has its own examples, and the candidate is none of them."""
    anchors = [Anchor("Rate limits per tenant.", 1.0), Anchor(REPLY.upper() + "\n", 0.0)]
    judge = says(0.9, True)
    drive(Rubric().scores("a", id="a", anchors=anchors).expects("b", id="b"), judge)
    first, second = (one.messages[-1].parts[-1] for one in asks(judge))
    assert 'Calibration examples:\nResponse: "Rate limits per tenant." -> score 1.00' in first
    assert "score 0.00" not in first
    assert "Calibration" not in second


# -- batches -----------------------------------------------------------------------------------------------

LONG = "A sentence about rate limits. " * (LONG_PREFIX // 20)


def test_with_a_long_prefix_one_ask_goes_ahead() -> None:
    """The vendor's cache can then serve the rest; with two asks it is not worth a wait."""
    yes = Judge(ScriptedModel(lambda _: True))
    assert batches(THREE, yes, LONG) == [1, 2]
    assert batches(THREE.without("c"), yes, LONG) == [2]
    assert batches(THREE, yes) == [3]


def test_a_prefix_that_was_sent_is_not_sent_ahead_again() -> None:
    """Later rounds of the same candidate, such as re-asks, go out together."""
    judge = Judge(ScriptedModel(lambda one: True if one.repair else "what?"))
    assert batches(THREE, judge, LONG) == [1, 2, 3]


@examples(60)
@given(rubrics(), st.integers(), st.sampled_from([1, "all"]), st.booleans(), st.sampled_from([0, 0.3]))
def test_a_rubric_that_is_asked_about_one_by_one_has_nothing_to_send_ahead(
    rubric: Rubric, seed: int, per_call: Any, speculate: bool, unreadable: float
) -> None:
    """For any rubric, with replies that cannot be read and prompts too long: as if the batches had been looked at."""
    say, most = improvised(seed, unreadable=unreadable), len(LONG) + seed % 2_000
    too_long = Failure("context_window", "too long")
    script = lambda one: too_long if len(one.messages[-1].text) > most else say(one)  # noqa: E731 - one line
    judge = Judge(ScriptedModel(script), per_call=per_call, speculate=speculate)
    whole = leading(flow(Candidate(LONG), rubric, judge, ahead=False))
    assert batches(rubric, judge, LONG) == sizes_of(whole)


def test_each_judge_of_a_panel_has_one_ask_sent_ahead() -> None:
    """Caches are the vendors' own."""

    class Other(ScriptedModel):
        """A model by another name."""

    panel = Panel([Judge(ScriptedModel(lambda _: True)), Judge(Other(lambda _: True))])
    assert batches(THREE, panel, LONG) == [2, 4]


def test_replies_find_their_asks_whatever_was_sent_ahead() -> None:
    """The findings stand in the rubric's order."""
    judge = Judge(ScriptedModel({"a": True, "b": False, "c": True}))
    result = drive(THREE, judge, LONG)
    assert [f.score for f in result.findings if isinstance(f, Scored)] == [1.0, 0.0, 1.0]


def test_a_model_that_cannot_be_hashed_can_judge() -> None:
    """Whoever writes a model need not think of sets."""

    class Unhashable(ScriptedModel):
        __hash__ = None  # type: ignore[assignment]  # the point of the test

    assert drive(THREE, Judge(Unhashable(lambda _: True)), LONG).passed is True


def test_a_flow_can_be_closed_at_any_time() -> None:
    """A driver that is cancelled closes it; nothing is left running."""
    steps = flow(Candidate(LONG), THREE, Jury(Judge(ScriptedModel(lambda _: True)), 5, early_stop=True))
    next(steps)
    steps.close()
    with pytest.raises(StopIteration):
        next(steps)


# -- what a driver may send ----------------------------------------------------------------------------------

YES = Reply('{"reason": "it is", "verdict": true}')


def started(rubric: Rubric = THREE) -> Flow:
    """Return a flow that waits for its first replies, of a judge that nobody asks."""
    steps = flow(Candidate(REPLY), rubric, Judge(lambda _: ""))
    next(steps)
    return steps


@each_row(
    ("replies", "found"),
    [
        ([], "got 0"),
        ([YES], "got 1"),
        ([YES] * 4, "got 4"),
        (iter([YES] * 2), "got 2"),
        ([YES, None, YES], "got NoneType at place 1"),
        ([YES, YES, '{"verdict": true}'], "got str at place 2"),
        (YES, "got Reply"),
        ("yes", "got str"),
        (None, "got NoneType"),
    ],
)
def test_replies_that_do_not_fit_the_batch_are_refused(replies: Any, found: str) -> None:
    """The error says what the flow waits for and what it got; then the right replies are taken as if nothing were."""
    steps = started()
    with pytest.raises(
        ProtocolError, match=f"a batch of 3 asks waits for one Reply or Failure each, {found}"
    ) as caught:
        steps.send(replies)
    assert caught.value.state == steps.state == "waiting"
    fitting: list[Reply | Failure] = [YES, YES, Failure("timeout", "no reply")]
    with pytest.raises(StopIteration) as end:
        steps.send(iter(fitting))
    assert isinstance(end.value.value, Ungraded)


def test_a_flow_is_started_by_next_and_goes_on_by_send() -> None:
    """Replies before the first batch, and next() in the place of replies, are refused; send(None) starts it as well."""
    steps = flow(Candidate(REPLY), PLAIN, Judge(lambda _: ""))
    assert steps.state == "new"
    with pytest.raises(ProtocolError, match="the flow is new: nothing has been asked yet") as caught:
        steps.send([YES])
    assert copy.copy(caught.value).state == "new"
    assert len(steps.send(None)) == 1
    with pytest.raises(ProtocolError, match="a batch of 1 ask waits for its replies"):
        next(steps)
    with pytest.raises(StopIteration):
        steps.send([YES])


def test_a_flow_takes_nothing_after_its_end() -> None:
    """A flow that has ended, was closed or raised an error takes no more replies; as an iterator it is at its end."""
    ended, closed, thrown, broken = started(PLAIN), started(PLAIN), started(PLAIN), flow(Candidate(""), Rubric(), "x")  # type: ignore[arg-type]
    with pytest.raises(StopIteration):
        ended.send([YES])
    closed.close()
    with pytest.raises(KeyError):
        thrown.throw(KeyError("x"))
    with pytest.raises(DefinitionError):
        next(broken)
    for steps, state in ((ended, "ended"), (closed, "closed"), (thrown, "ended"), (broken, "ended")):
        with pytest.raises(ProtocolError, match=f"the flow is {state}: it takes no more replies"):
            steps.send([YES])
        assert list(steps) == []
        steps.close()
        assert steps.state == state


def test_a_flow_can_be_delegated_to() -> None:
    """A generator may `yield from` it, as one of its own steps."""

    def both() -> Steps[list[Grade | Ungraded]]:
        judge = Judge(lambda _: "")
        first = yield from flow(Candidate("One text."), PLAIN, judge)
        return [first, (yield from flow(Candidate("Another text."), PLAIN, judge))]

    steps = both()
    next(steps)
    steps.send((YES,))
    with pytest.raises(StopIteration) as end:
        steps.send((YES,))
    assert [result.passed for result in end.value.value] == [True, True]


@pytest.mark.parametrize("rubric", [PLAIN, Rubric.of("Is it good?"), THREE.with_evidence().abstaining("exclude")])
def test_the_form_of_a_reply_is_plain_data(rubric: Rubric) -> None:
    """A driver may put it into a request's body as it is."""
    (batch,) = [next(flow(Candidate(REPLY), rubric, Judge("openai/gpt-5.6")))]
    form = json.loads(json.dumps(batch[0].response_format()))
    assert form["json_schema"]["schema"]["required"] == [*batch[0].schema["properties"]]
