"""Votes that are decided stop: the verdict is that of all votes, in no more calls."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rubric import Grade, Judge, Jury, Panel, Rubric, Ungraded
from rubric.testing.scripted_model import ScriptedModel
from tests.drive import drive
from tests.examples import examples
from tests.findings import improvised, rubrics


@examples(100)
@given(rubrics(), st.integers(), st.integers(2, 5), st.data())
def test_a_panel_that_stops_early_comes_to_the_same_verdict(
    rubric: Rubric, seed: int, size: int, data: st.DataObject
) -> None:
    """For any rubric, aggregate, weights, quorum and failures; with no more calls, and bounds that hold the score."""
    rule: dict[str, Any] = {
        "aggregate": data.draw(st.sampled_from(["mean", "median", "majority"])),
        "tie_break": data.draw(st.sampled_from(["fail", "pass"])),
        "weights": data.draw(st.none() | st.lists(st.sampled_from([1, 2, 0.5, 7]), min_size=size, max_size=size)),
        "quorum": data.draw(st.none() | st.integers(1, size)),
    }
    if rule["aggregate"] != "majority":  # which alone has ties
        del rule["tie_break"]
    elif data.draw(st.booleans()):
        rule["consensus"] = data.draw(st.sampled_from([0.01, 0.34, 0.5, 0.67, 1]))
        del rule["tie_break"]
    failing = data.draw(st.sampled_from([0, 0, 0.2]))

    def graded(*, early_stop: bool) -> Grade | Ungraded:
        members = [Judge(ScriptedModel(improvised((seed, n), failing=failing))) for n in range(size)]
        return drive(rubric, Panel(members, early_stop=early_stop, **rule))

    whole, early = graded(early_stop=False), graded(early_stop=True)
    assert early.usage.calls <= whole.usage.calls
    assert early.passed in (None, whole.passed)
    if isinstance(whole, Grade):
        assert (early.outcome.verdict, early.passed) == (whole.verdict, whole.passed)


@examples(100)
@given(rubrics(), st.integers(), st.integers(1, 5), st.floats(0.1, 1), st.sampled_from([0, 0, 0.2]))
def test_a_jury_that_stops_early_comes_to_the_same_verdict(
    rubric: Rubric, seed: int, size: int, consensus: float, failing: float
) -> None:
    """For any rubric: gates, negation, abstentions and failures among the votes."""

    def graded(*, early_stop: bool) -> Grade | Ungraded:
        judge = Judge(ScriptedModel(improvised(seed, failing=failing)))
        return drive(rubric, Jury(judge, size, consensus, early_stop=early_stop))

    whole, early = graded(early_stop=False), graded(early_stop=True)
    assert early.usage.calls <= whole.usage.calls
    if isinstance(whole, Grade):
        assert early.outcome.verdict == whole.verdict
