"""What changed between two rubrics, for the judge and for the score."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Contains, Criterion, DefinitionError, Judge, Rubric, Unit, ask, diff
from rubric.grading.planning import plan_one
from rubric.testing import strategies

TONE = Rubric("tone", threshold=0.7).expects("Is polite", id="polite").scores("Is warm", id="warm", weight=2)


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        (TONE, []),
        (evolve(TONE, threshold=0.9), [("threshold", "0.7", "0.9", "score")]),
        (evolve(TONE, guidelines="Be strict."), [("guidelines", "", "Be strict.", "judge")]),
        (evolve(TONE, name="manner"), [("name", "tone", "manner", "people")]),
        (TONE.revising("warm", weight=3, required=True), [
            ("warm.weight", "2", "3", "score"), ("warm.required", "no", "yes", "score"),
        ]),
        (TONE.revising("warm", text="Is kind"), [("warm.text", "Is warm", "Is kind", "judge")]),
        (TONE.revising("warm", id="kind"), [("kind.id", "warm", "kind", "judge")]),
        (TONE.revising("polite", polarity="guard"), [("polite.polarity", "satisfy", "guard", "judge")]),
        (TONE.revising("polite", abstain="zero"), [("polite.abstain", "none", "zero", "judge")]),
        (TONE.expects("Is short", weight=2), [("is-short", "", "Is short (yes or no, weight 2)", "judge")]),
        (evolve(TONE, criteria=TONE.criteria[:1]), [("warm", "Is warm (0..1, weight 2)", "", "judge")]),
        (evolve(TONE, criteria=TONE.criteria[::-1]), [("order", "polite, warm", "warm, polite", "judge")]),
    ],
)  # fmt: skip
def test_a_change_is_for_the_judge_or_for_the_score(after: Rubric, changes: list[tuple[str, ...]]) -> None:
    found = diff(TONE, after)
    assert [(c.id, c.before, c.after, c.affects) for c in found] == changes
    assert found.needs_calls == any(change[-1] == "judge" for change in changes)


def test_leaves_of_a_tree_are_for_the_score_and_its_questions_for_the_judge() -> None:
    tree = Rubric.deciding(ask("Is it polite?").yes(1.0).no(0.0))
    assert not diff(tree, Rubric.deciding(ask("Is it polite?").yes(0.9).no(0.0))).needs_calls
    assert diff(tree, Rubric.deciding(ask("Is it kind?").yes(1.0).no(0.0))).needs_calls


def test_a_nested_rubric_is_compared_criterion_by_criterion() -> None:
    outer = Rubric("outer").includes(TONE, id="tone")
    (change,) = diff(outer, Rubric("outer").includes(TONE.revising("warm", weight=5), id="tone"))
    assert (change.id, change.affects) == ("tone.warm.weight", "score")


def test_another_check_is_a_change() -> None:
    old, new = (Rubric(criteria=[Criterion("c", id="c", answer=Contains(word))]) for word in ("a", "b"))
    (change,) = diff(old, new)
    assert (change.id, change.before, change.after) == ("c.answer", "check: contains 'a'", "check: contains 'b'")


def test_what_is_no_rubric_is_refused() -> None:
    with pytest.raises(DefinitionError, match="after: expected a Rubric"):
        diff(TONE, "tone.yaml")  # type: ignore[arg-type]


@given(strategies.rubrics())
def test_a_rubric_does_not_differ_from_itself(rubric: Rubric) -> None:
    found = diff(rubric, evolve(rubric))
    assert (len(found), str(found)) == (0, "no differences")


def asked(rubric: Rubric) -> Any:
    judge = Judge(repr, sealed=False)
    planned = plan_one(Candidate("An answer."), rubric, judge, count=lambda *_: 0, price=lambda _: None)
    return [(a.messages, a.schema, a.abstainable, a.quoted, a.flagless) for a in planned.asks]


CHANGES: dict[str, Any] = {
    "threshold": [None, 0.2, 0.9],
    "strict": [True],
    "aggregation": ["min", "points"],
    "negate": [True],
    "borderline": [0.1],
    "name": ["another"],
    "abstain": ["forbid", "exclude", "zero", 0.4],
    "evidence": [True, False],
    "guidelines": ["Be strict."],
}


@pytest.mark.filterwarnings("ignore::rubric.UnreviewedWarning")
@given(strategies.rubrics(), st.data())
def test_a_judge_is_asked_the_same_unless_the_difference_says_otherwise(rubric: Rubric, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(CHANGES)))
    try:
        changed = evolve(rubric, **{name: data.draw(st.sampled_from(CHANGES[name]))})
        before, after = asked(rubric), asked(changed)
    except DefinitionError:
        return
    if not diff(rubric, changed).needs_calls:
        assert before == after


@pytest.mark.parametrize("changes", [{"weight": 3}, {"required": True}, {"min_score": 0.4}, {"tags": ["x"]}])
def test_a_criterion_is_asked_the_same_after_a_change_for_the_score(changes: dict[str, Any]) -> None:
    for answer in (Unit(), Unit(flag=True)):
        before = Rubric(criteria=[Criterion("Is warm", id="w", answer=answer), "Is polite"])
        after = before.revising("w", **changes)
        assert not diff(before, after).needs_calls
        assert asked(before) == asked(after)
