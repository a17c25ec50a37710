"""A difference that needs no calls leaves every request as it was."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Criterion, DefinitionError, Judge, Rubric, Unit, diff
from rubric.grading.planning import plan_one
from tests import strategies
from tests.examples import examples


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


@pytest.mark.filterwarnings("ignore::rubric.quality.UnreviewedWarning")
@examples(100)
@given(strategies.rubrics(), st.data())
def test_a_judge_is_asked_the_same_unless_the_difference_says_otherwise(rubric: Rubric, data: st.DataObject) -> None:
    """Where `needs_calls` is False, the requests are equal to the byte."""
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
    """Weight, gate, least score and tags appear in no request."""
    for answer in (Unit(), Unit(flag=True)):
        before = Rubric(criteria=[Criterion("Is warm", id="w", answer=answer), "Is polite"])
        after = before.revising("w", **changes)
        assert not diff(before, after).needs_calls
        assert asked(before) == asked(after)
