"""AgentV files that are written: what they hold comes back as it was, and what they cannot hold is told."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubric import Contains, Criterion, IsJSON, Judge, Levels, Message, Rubric, Unit, YesNo, ask, grade
from rubric.formats.agentv.graders import asks
from rubric.formats.agentv.writer import write
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.checks import ContainsAll, Equals, Holds, Matches, Script
from tests.agentv import loads
from tests.examples import examples
from tests.strategies import ids, rubrics, texts


def _again(suite: Suite) -> Suite:
    data, _ = write(suite)
    return loads(data, "agentv-2")


names = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True).filter(lambda name: name != "llm-rubric")
written = texts().filter(lambda text: "endraw" not in text)
weights = st.sampled_from([0.5, 1, 2, 3.5])
gates = st.one_of(st.none(), st.sampled_from([0.25, 0.5, 1.0]))


@st.composite
def bands(draw: st.DrawFn) -> Levels:
    """Return bands from 0 to 10."""
    lows = sorted(draw(st.sets(st.integers(1, 10), max_size=4)) | {0})
    return Levels({f"{low}-{high - 1}": draw(written) for low, high in zip(lows, [*lows[1:], 11], strict=True)})


items = st.builds(
    Criterion,
    written,
    id=names,
    answer=st.one_of(st.just(YesNo()), bands()),
    weight=weights,
    required=st.booleans(),
    min_score=gates,
    polarity=st.sampled_from(["satisfy", "correctness", "contradiction"]),
)
lists_of_items = st.lists(items, min_size=1, max_size=3, unique_by=lambda c: c.id)


@st.composite
def judged(draw: st.DrawFn, *, threshold: float, binding: bool) -> Rubric:
    """Return what one judge answers: items, or one judgement."""
    name = draw(names)
    if draw(st.booleans()):
        criterion = Criterion(draw(written), id=name, answer=Unit(flag=True), min_score=draw(gates))
        return Rubric(name, criteria=[criterion], threshold=threshold)
    held = draw(lists_of_items)
    gated = any(c.required or c.min_score is not None for c in held)
    return Rubric(name, criteria=held, threshold=threshold, binding=binding and gated)


checks = st.one_of(
    st.builds(Contains, written, ignore_case=st.booleans()),
    st.builds(ContainsAll, st.lists(written, min_size=1, max_size=2), ignore_case=st.booleans()),
    st.builds(Equals, written),
    st.just(Matches("[a-z]+")),
    st.just(IsJSON()),
    st.builds(Script, st.lists(written, min_size=1, max_size=2)),
)


@st.composite
def graders(draw: st.DrawFn, threshold: float, depth: int = 1) -> Criterion:
    """Return one of several graders of a case."""
    weight = draw(weights)
    if draw(st.booleans()):
        check = draw(checks)
        return Criterion(str(check), id=draw(names), answer=check, weight=weight, required=draw(st.booleans()))
    if depth and draw(st.booleans()):
        inner = draw(st.lists(graders(threshold, depth - 1), min_size=1, max_size=2, unique_by=lambda c: c.id))
        bound = any(c.answer.binding if isinstance(c.answer, Rubric) else c.required for c in inner)
        rule = draw(st.sampled_from([None, 0.5]))
        rubric = Rubric(draw(names), criteria=inner, threshold=rule, binding=bound)
    else:
        rubric = draw(judged(threshold=threshold, binding=True))
    return Criterion(rubric.name, id=rubric.name, answer=rubric, weight=weight)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Return a case as AgentV can hold it."""
    threshold = draw(st.sampled_from([0.8, 0.5, 1.0]))
    if draw(st.booleans()):
        rubric = draw(judged(threshold=threshold, binding=False))
    else:
        several = draw(st.lists(graders(threshold), min_size=2, max_size=3, unique_by=lambda c: c.id))
        rubric = Rubric(criteria=several, threshold=threshold)
        rubric = rubric if any(map(asks, several)) else evolve(rubric, degenerate="judge")
    chat = [Message("system", draw(written)), Message("user", draw(written))]
    asked: dict[str, Any] = draw(st.sampled_from([{"input": draw(written)}, {"messages": chat}]))
    return Case(
        draw(ids.filter(lambda text: "endraw" not in text)),
        rubric,
        **asked,
        reference=draw(st.one_of(st.just(""), written)),
        context=draw(st.one_of(st.just(""), written.map("A good answer: {}".format))),
        variables=draw(st.dictionaries(names, written, max_size=2)),
        judge=draw(st.sampled_from([None, Judge("openai/gpt-5"), Judge("anthropic/claude-opus-4-5", temperature=0.5)])),
        tags=draw(st.lists(written, max_size=2)),
        metadata=draw(st.dictionaries(names, st.integers(0, 9), max_size=2)),
    )


suites = st.builds(
    Suite, names, st.lists(cases(), min_size=1, max_size=2, unique_by=lambda case: case.id), format=st.just("agentv-2")
)


@settings(examples(40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(suites)
def test_what_agentv_can_hold_comes_back_as_it_was(suite: Suite) -> None:
    """A suite of AgentV's own kind is written without loss, and read again is equal."""
    _, dropped = write(suite)
    assert dropped == []
    assert _again(suite) == suite


@settings(examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(rubrics())
def test_whatever_is_lost_is_told(rubric: Rubric) -> None:
    """Any rubric is written; where it does not come back as it was, at least one sentence says what is lost."""
    suite = Suite("any", [Case("one", rubric, input="What?")], format="agentv-2")
    data, dropped = write(suite)
    assert all(test["assert"] for test in data["tests"])
    assert not data["tests"] or dropped or _again(suite) == suite
    assert dropped or data["tests"]
    assert all(sentence.startswith("case 'one': ") for sentence in dropped)


def test_a_rubric_without_criteria_is_lost_and_told() -> None:
    """There is no grader without anything to grade by."""
    suite = Suite("any", [Case("one", Rubric().includes(Rubric("empty")).expects("Is polite"))])
    _, dropped = write(suite)
    assert any("empty" in sentence for sentence in dropped)


def test_plain_texts_are_written_as_plain_texts() -> None:
    """Criteria that say no more than a text are the list of texts that one would write by hand."""
    held = [Criterion(text, id=f"rubric-{n}", required=True) for n, text in enumerate(["Is polite", "Is short"], 1)]
    rubric = Rubric("llm-rubric", criteria=held, threshold=0.8)
    data, dropped = write(Suite("plain", [Case("a", rubric, input="Hi")]))
    assert data == {"name": "plain", "tests": [{"id": "a", "input": "Hi", "assert": ["Is polite", "Is short"]}]}
    assert dropped == []


def test_a_text_that_looks_like_a_template_is_marked_as_raw() -> None:
    """Braces in a text are no variables of AgentV's, and come back as braces."""
    rubric = Rubric("braces", criteria=[Criterion("Shows {{ name }} as it is", id="a")], threshold=0.8)
    suite = Suite("s", [Case("c", rubric, input="{% if x %}")], format="agentv-2")
    assert _again(suite) == suite


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (Case("c", Rubric("r").expects("Good"), output="The answer"), "output"),
        (Case("c", Rubric("r").expects("Good"), server="shop"), "server"),
        (Case("c", Rubric("r").forbids("Bad").expects("Good")), "bad"),
        (Case("c", Rubric("r").chooses("Which?", {"a": 0, "b": 1})), "which"),
        (Case("c", Rubric("r").expects("Good").by_worst()), "rubric.aggregation"),
        (Case("c", Rubric("r").expects("Good"), judge=Judge(lambda _: "")), "judge"),
    ],
    ids=["output", "server", "guard", "choices", "worst", "function"],
)
def test_a_loss_names_the_case_and_the_field(case: Case, name: str) -> None:
    """What AgentV cannot hold is one sentence, with the case and the field."""
    _, dropped = write(Suite("s", [case]))
    assert any(f"case 'c': {name}" in sentence for sentence in dropped), dropped


_TREE = ask("Is it short?").yes(1).no(0)
_WHOLE = Rubric("r", threshold=0.8).expects("Good", id="good", weight=2).requires("Short", id="short")
_NOT_BOTH = Criterion("Both", id="odd", polarity="guard", answer=Rubric("in").expects("Rude").expects("Long"))


@pytest.mark.parametrize(
    ("rubric", "lost"),
    [
        (_WHOLE.chooses("Which?", {"a": 0, "b": 1}, id="odd"), "odd: AgentV's judges give no answer like Choices"),
        (_WHOLE.decides("Ok", _TREE, id="odd"), "odd: AgentV's judges give no answer like DecisionTree"),
        (_WHOLE.rates("How", {1: "bad", 5: "good"}, id="odd"), "odd: AgentV's bands run from 0 to 10"),
        (evolve(_WHOLE, criteria=[*_WHOLE, _NOT_BOTH]), "odd: AgentV has no guards that are rubrics"),
        (_WHOLE.checks(Holds(lambda candidate: not candidate.output), id="odd"), "odd: AgentV has no check like Holds"),
        (_WHOLE.includes(Rubric("in").decides("Ok", _TREE), id="odd"), "odd: nothing is left of it to grade by"),
    ],
    ids=["choices", "tree", "levels", "guard", "check", "nested"],
)
def test_one_criterion_that_cannot_be_held_costs_no_other(rubric: Rubric, lost: str) -> None:
    """The others are written as if it had never stood among them, and its reason is its own."""
    data, dropped = write(Suite("s", [Case("c", rubric)]))
    assert data == write(Suite("s", [Case("c", _WHOLE)]))[0]
    assert any(f"case 'c': {lost}" in sentence for sentence in dropped)
    assert not any("'c': good" in sentence or "'c': short" in sentence for sentence in dropped)


@pytest.mark.parametrize("nested", [False, True])
def test_judged_criteria_beside_checks_are_items_of_a_grader_of_their_weight(nested: bool) -> None:
    """So the score and the gates of the case are what they were, in a set too."""
    rubric = _WHOLE.checks(Contains("x"), id="x").scores("How good", id="how", required=True, weight=3)
    rubric = (
        Rubric("outer", threshold=0.8).includes(evolve(rubric, binding=True)).expects("Kind", id="kind")
        if nested
        else rubric
    )
    again = _again(Suite("s", [Case("c", rubric)])).cases[0].rubric
    for good, short, how in product([True, False], [True, False], [0.5, 0.9]):
        judge = Judge(ScriptedModel({"good": good, "short": short, "how": how, "kind": True}))
        before, after = (grade("an x", each, judge) for each in (rubric, again))
        assert after.score == pytest.approx(before.score)
        assert after.passed == before.passed


@pytest.mark.parametrize(
    "rubric",
    [Rubric.deciding(_TREE), Rubric("r", criteria=[_NOT_BOTH]), evolve(_WHOLE, negate=True), Rubric("r"),
     Rubric("r").expects("Free", weight=0).chooses("Which?", {"a": 0, "b": 1})],
    ids=["tree", "guard", "turned", "empty", "weightless"],
)  # fmt: skip
def test_a_test_that_nothing_is_left_of_is_left_out_and_told(rubric: Rubric) -> None:
    """No test is written without assertions, nor one that says the opposite."""
    data, dropped = write(Suite("s", [Case("c", rubric), Case("d", _WHOLE)]))
    assert [test["id"] for test in data["tests"]] == ["d"]
    assert "case 'c': rubric: nothing is left of it to grade by, so the test is left out" in dropped


@pytest.mark.parametrize("threshold", [0.8, 0.5, None])
def test_a_guard_is_a_required_grader_that_is_turned_over(threshold: float | None) -> None:
    """It fails the case where its text holds, and weighs what it did."""
    guard = Criterion("contains 'y'", id="y", answer=Contains("y"), polarity="guard")
    rubric = Rubric("r", criteria=[guard], threshold=threshold).expects("Good", id="good", weight=9)
    rubric = rubric.forbids("Rude", id="rude", weight=3)
    if threshold is not None:
        rubric = rubric.adding(Criterion("How rude", id="how", answer=Unit(), polarity="guard", weight=2))
    data, dropped = write(Suite("s", [Case("c", rubric)]))
    assert any("case 'c': rude.polarity: the guard is written as" in sentence for sentence in dropped)
    again = loads(data, "agentv-2")["c"].rubric
    for said, good, rude, how in product(["x", "x y"], [True, False], [True, False], [0.0, 0.1, 0.4, 0.9]):
        judge = Judge(ScriptedModel({"good": good, "rude": rude, "how": how}))
        before, after = (grade(said, each, judge) for each in (rubric, again))
        assert after.score == pytest.approx(before.score)
        assert after.passed == (before.passed and (threshold is not None or before.score >= 0.8))


def test_a_criterion_with_a_judge_of_its_own_has_a_grader_of_its_own() -> None:
    """Its judge is that grader's provider, and is not lost."""
    case = Case("c", _WHOLE, judges={"short": Judge("openai/gpt-5")})
    data, _ = write(Suite("s", [case]))
    assert [grader.get("provider") for grader in data["tests"][0]["assert"]] == [None, "openai:gpt-5"]


def test_the_judge_of_a_suite_is_the_default_of_its_tests() -> None:
    """The suite's judge is the provider of `default_test`."""
    suite = Suite(
        "s", [Case("c", Rubric("r", threshold=0.8).expects("Good"))], judge=Judge("openai/gpt-5"), format="agentv-2"
    )
    data, _ = write(suite)
    assert data["default_test"] == {"options": {"provider": "openai:gpt-5"}}
    assert _again(suite).judge == suite.judge


def test_a_conversation_is_left_out_and_told() -> None:
    """Its graders are those of single turns, which no test without turns has."""
    case = Case("c", Rubric(criteria=[Criterion("Good", id="a", on=1)]), turns=["First?", "Second?"])
    data, dropped = write(Suite("s", [case]))
    assert data["tests"] == []
    assert dropped == [
        "case 'c': turns: conversations are read from AgentV's files and not written, so the test is left out"
    ]
