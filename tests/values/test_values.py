"""Nouns are values: frozen, equal by value, hashable, copied and pickled without loss, typed back from their repr."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rubric
from rubric import (
    Anchor,
    Calls,
    Candidate,
    Choices,
    Contains,
    Criterion,
    DefinitionError,
    Equals,
    FitsSchema,
    IsJSON,
    Judge,
    Jury,
    Levels,
    Likert,
    Matches,
    Message,
    Panel,
    Rubric,
    ScoreRange,
    StartsWith,
    ToolCall,
    Unit,
    When,
    YesNo,
    ask,
)
from rubric.driving import Failure, Reply, Usage
from rubric.internals import frozen_map
from rubric.internals.frozen_map import FrozenMap, freeze, thaw
from rubric.results import Evidence, NotApplicable, Scored, Unjudged
from rubric.values import (
    Boolean,
    Letter,
    UnitScale,
    answers,
    candidates,
    checks,
    criteria,
    findings,
    judges,
    requests,
    rubric_tests,
    rubrics,
    run_rules,
    trees,
)
from rubric.values.criteria import slug
from tests import strategies
from tests.examples import examples

NAMES: dict[str, Any] = {}
for module in (
    answers,
    candidates,
    checks,
    frozen_map,
    criteria,
    findings,
    judges,
    requests,
    rubric_tests,
    rubrics,
    run_rules,
    trees,
):
    NAMES |= {name: value for name, value in vars(module).items() if isinstance(value, type)}
NAMES |= {"call": rubric.call, "said": rubric.said, "state": rubric.state}  # as rules over runs are typed

TREE = ask("Is it so?").yes(ask("Really?").yes(1.0, "sure").no(0.5)).no(0.0)
NOUNS: list[Any] = [
    YesNo(),
    Unit(flag=True),
    ScoreRange(0, 4, "no"),
    Levels(),
    Levels({0: "no way in", 5: "with effort", 10: "at once"}),
    Choices({"hostile": 0, "neutral": 0.6, "warm": 1}),
    TREE,
    ask("half"),
    ask("half").yes(1),
    Contains("ticket #", ignore_case=True),
    StartsWith("Dear"),
    Equals("yes"),
    Matches(r"\d+"),
    IsJSON(),
    FitsSchema({"type": "object", "required": ["a"]}),
    Calls("search", arguments={"q": ["a", {"b": 1}]}),
    Anchor("well", 0.75, reason="short"),
    When(regex="a|b"),
    When(contains="a", negated=True),
    Criterion("Is it 'good'?", weight=2.5, polarity="guard", when=When(contains="x"), metadata={"a": [1, {"b": None}]}),
    Rubric("r", criteria=["a", Criterion("b", answer=TREE)], threshold=0.8, borderline=0.6, scale=Likert(1, 7)),
    Rubric().includes(Rubric.of("inner"), id="n").checks(Contains("x")),
    UnitScale(),
    Likert(0, 10),
    Boolean(),
    Letter(),
    Candidate("out", messages=[Message("user", "hi")], tool_calls=[ToolCall("t", arguments={"a": [1]}, result=[2])]),
    Judge("openai/gpt", temperature=0.5, per_call="all", params={"top_p": 0.9}),
    Jury("m", 5, 0.66, early_stop=True),
    Panel(["a", Jury("b", 3)], aggregate="median", weights=[1, 2], quorum=1),
    Evidence("x", 1, 2),
    Scored("a", 0.5, value="warm", evidence=(Evidence("x"),)),
    NotApplicable("a", "why"),
    Unjudged("a", Failure("timeout", "late"), low=0.2),
    Usage(calls=3, cost=None),
    Reply("text"),
    Failure("auth", "no", status=401),
    FrozenMap({"a": [1, {"b": 2}]}),
]
each_noun = pytest.mark.parametrize("noun", NOUNS, ids=[f"{type(n).__name__}-{i}" for i, n in enumerate(NOUNS)])


def typed_back(value: Any) -> Any:
    """Return what one gets who types the repr of *value*."""
    return eval(repr(value), dict(NAMES))  # noqa: S307 - that is the test


@each_noun
def test_a_noun_can_be_typed_back_from_its_repr(noun: Any) -> None:
    """The repr is what one would type."""
    assert typed_back(noun) == noun


@each_noun
def test_a_noun_survives_copies_and_pickles(noun: Any) -> None:
    """Equal to its copies, with the same hash, and so a key like any other."""
    for again in (copy.copy(noun), copy.deepcopy(noun), pickle.loads(pickle.dumps(noun))):  # noqa: S301 - our own
        assert again == noun
        assert {noun: 1}[again] == 1


@each_noun
def test_a_noun_cannot_be_changed(noun: Any) -> None:
    """No field can be set, and none added."""
    with pytest.raises((attrs.exceptions.FrozenInstanceError, AttributeError, TypeError)):
        noun.anything = 1
    for attribute in attrs.fields(type(noun)) if attrs.has(type(noun)) else ():
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(noun, attribute.name, None)


@examples(100)
@given(strategies.rubrics(depth=2))
def test_any_rubric_can_be_typed_back_copied_and_pickled(value: Rubric) -> None:
    """Whatever texts, numbers and nested rubrics it holds."""
    assert typed_back(value) == value
    assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - our own
    assert hash(copy.deepcopy(value)) == hash(value)


@given(strategies.rubrics())
def test_a_chain_of_verbs_equals_the_constructor(value: Rubric) -> None:
    """Criterion by criterion, rule by rule, in either order."""
    plain = [f.name for f in attrs.fields(Rubric) if f.name not in ("criteria", "text", "tree")]
    rules = {name: getattr(value, name) for name in plain}
    if value.criteria:
        chained = Rubric(**rules)
        for criterion in value.criteria:
            chained = chained.adding(criterion)
        assert chained == Rubric(criteria=value.criteria, **rules) == value
    if value.text:
        assert attrs.evolve(Rubric.of(value.text), **rules) == value


def test_each_verb_is_its_constructor_form() -> None:
    """What the chain of the README comes to, written out."""
    house = Rubric.of("In our house style", name="house")
    chained = (
        Rubric("support reply")
        .requires("Answers the question")
        .expects("Cites an article", weight=2)
        .scores("Warm")
        .rates("Clear", {0: "no", 10: "yes"}, id="clarity")
        .chooses("Tone?", {"hostile": 0, "warm": 1})
        .forbids("Promises a refund")
        .checks(Contains("ticket #"), weight=0.5)
        .decides("escalation", by=TREE)
        .includes(house, weight=2)
        .with_evidence()
        .strictly()
        .by_worst()
        .shown_as(Letter())
        .abstaining("exclude")
        .guided_by("Be kind.")
        .passing_at(0.8)
        .borderline_at(0.6)
    )
    written = Rubric(
        "support reply",
        criteria=[
            Criterion("Answers the question", required=True),
            Criterion("Cites an article", weight=2),
            Criterion("Warm", answer=Unit()),
            Criterion("Clear", answer=Levels({0: "no", 10: "yes"}), id="clarity"),
            Criterion("Tone?", answer=Choices({"hostile": 0, "warm": 1})),
            Criterion("Promises a refund", polarity="guard"),
            Criterion("contains 'ticket #'", answer=Contains("ticket #"), weight=0.5),
            Criterion("escalation", answer=TREE),
            Criterion("house", answer=house, weight=2),
        ],
        threshold=0.8,
        borderline=0.6,
        strict=True,
        aggregation="min",
        evidence=True,
        abstain="exclude",
        guidelines="Be kind.",
        scale=Letter(),
    )
    assert chained == written
    assert hash(chained) == hash(written)


def test_verbs_leave_the_rubric_as_it_is() -> None:
    """Each returns another one."""
    start = Rubric("r").expects("a", id="a")
    start.expects("b").passing_at(0.1).strictly()
    assert start == Rubric("r", criteria=[Criterion("a", id="a")])


def test_rubrics_made_of_the_same_one_know_nothing_of_each_others_criteria() -> None:
    """Two rubrics that were made of one may use the same ids, and none of them may use its own id twice."""
    start = Rubric("r").expects("a", id="a")
    one, other = start.expects("b", id="b").expects("c", id="c"), start.expects("b", id="b")
    again = other.expects("c", id="c").adding("d", "e")
    assert [c.id for c in one] == ["a", "b", "c"]
    assert [c.id for c in again] == ["a", "b", "c", "d", "e"]
    for made, place in ((start.expects("d", id="d"), 1), (one, 1), (again, 1)):
        taken = made[place].id
        with pytest.raises(DefinitionError, match=rf"criteria\[{len(made)}\].id: the id '{taken}' belongs to criteria"):
            made.expects("twice", id=taken)
        assert made.expects("again", id="new") == made.adding(Criterion("again", id="new"))
    assert hash(one) == hash(Rubric("r", criteria=one.criteria))


def test_a_rubric_remembers_no_criterion_that_was_refused() -> None:
    """What a refused call had put in order before its fault is not in the rubric, and its ids are free."""
    start = Rubric("r").expects("a", id="a")
    with pytest.raises(DefinitionError, match="belongs to"):
        start.adding(Criterion("b", id="b"), Criterion("a again", id="a"))
    assert start.expects("b", id="b")["b"].text == "b"


def test_a_criterion_of_a_rubric_within_is_changed_by_the_line_that_is_printed() -> None:
    """An id that only a rubric within has is refused, with the line that changes it there."""
    rubric = Rubric("r", ["Is short"]).includes(Rubric("tone", ["Is kind", "Is clear"]), id="style")
    calls: list[tuple[Any, float | None]] = [(partial(rubric.revising, weight=2), 2), (rubric.without, None)]
    for call, left in calls:
        with pytest.raises(DefinitionError, match="it is in 'style': write ") as refused:
            call("is-kind")
        changed = eval(str(refused.value).partition("write ")[2], {"rubric": rubric})  # noqa: S307 - our own line
        assert changed["style"].answer.weights.get("is-kind") == left


def test_without_and_revising_undo_and_redo() -> None:
    """By id; the others stay where they are."""
    start = Rubric().expects("a", id="a").expects("b", id="b").expects("c", id="c")
    assert [c.id for c in start.without("a", "c").criteria] == ["b"]
    assert start.revising("b", weight=3).revising("b", weight=1) == start
    assert start.revising("b", id="z")["z"].text == "b"


def test_levels_may_be_given_as_a_mapping_or_as_ranges() -> None:
    """A key is a band or a single score; the last is the highest score; the order does not matter."""
    ranges = [ScoreRange(0, 4, "no"), ScoreRange(5, 9, "so"), ScoreRange(10, 10, "yes")]
    mapping: dict[Any, str] = {10: "yes", "0-4": "no", "5..9": "so"}
    assert Levels(mapping) == Levels(ranges) == Levels(reversed(ranges))
    assert Levels({"0-4": "no", "5..9": "so", "10": "yes"}) == Levels(ranges)
    assert [Levels(ranges).place(n) for n in (0, 5, 10)] == [0.0, 0.5, 1.0]
    assert [Levels(ranges).band(n) for n in (4, 5, 10)] == ["no", "so", "yes"]


@given(st.text(min_size=1).filter(str.strip))
def test_an_id_is_made_of_the_words_of_the_text(text: str) -> None:
    """The same text gives the same id, wherever it stands; any text gives a valid one."""
    made = Criterion(text)
    assert made.id == Criterion(text, weight=2).id == slug(text)
    assert 1 <= len(made.id) <= 64


def test_a_wide_and_deep_rubric_is_still_a_value() -> None:
    """A thousand criteria, rubrics nested twenty deep, a tree of sixty-four questions."""
    tree = TREE
    for _ in range(62):
        tree = ask("q").yes(tree).no(0)
    deep = Rubric(criteria=[Criterion(f"c {n}") for n in range(1_000)]).decides("t", by=tree)
    for _ in range(20):
        deep = Rubric().includes(deep, id="n")
    again = pickle.loads(pickle.dumps(deep))  # noqa: S301 - our own
    assert (again == deep == copy.deepcopy(deep), hash(again) == hash(deep)) == (True, True)


def test_maps_do_not_change_and_neither_does_what_they_hold() -> None:
    """Lists become tuples, sets frozen sets; plain data comes back out."""
    inner: dict[str, Any] = {"b": [1, 2]}
    frozen = FrozenMap({"a": inner, "s": {1}})
    inner["b"].append(3)
    assert frozen == {"a": {"b": (1, 2)}, "s": frozenset({1})}
    assert isinstance(hash(frozen), int)
    assert thaw(freeze({"a": [{"b": ()}]})) == {"a": [{"b": []}]}


def test_every_public_name_is_there() -> None:
    """What `__all__` promises can be had."""
    assert [name for name in rubric.__all__ if not hasattr(rubric, name)] == []
