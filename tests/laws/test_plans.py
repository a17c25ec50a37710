"""A run keeps to its plan: its calls lie within the bounds, and its asks are those that were planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rubric import Criterion, Judge, Jury, Panel, Rubric, Unit
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.judges import AnyJudge, Cascade
from tests.drive import drive, planned
from tests.examples import examples
from tests.findings import improvised, rubrics

BENCHES: list[Callable[..., AnyJudge]] = [
    lambda judge, **_: judge(0),
    lambda judge, **rule: Jury(judge(0), 3, **rule),
    lambda judge, **rule: Panel([judge(0), judge(1), judge(2)], **rule),
    lambda judge, **rule: Panel([Jury(judge(0), 2, **rule), judge(1)], **rule),
    lambda judge, **rule: Jury(Panel([judge(0), judge(1)]), 2, **rule),
    lambda judge, **rule: Jury(Cascade(Jury(judge(0), 2, **rule), judge(1), "fails"), 2, **rule),
]


def _all(rubric: Rubric) -> list[Criterion]:
    nested = [inner for c in rubric.judged if isinstance(c.answer, Rubric) for inner in _all(c.answer)]
    return [*rubric.judged, *nested]


@examples(100)
@given(rubrics(), st.integers(), st.sampled_from(BENCHES), st.booleans(), st.sampled_from([1, 2, "all"]))
def test_a_run_keeps_to_its_plan(rubric: Rubric, seed: int, bench: Any, early_stop: bool, per_call: Any) -> None:
    """The calls lie within the least and the most, and every ask was in the plan, vote number and all."""
    alone = any(criterion.answer == Unit(flag=True) for criterion in _all(rubric))  # then other verdicts have flags too
    judges = [Judge(ScriptedModel(improvised((seed, n))), per_call=1 if alone else per_call) for n in range(3)]
    judge = bench(judges.__getitem__, early_stop=early_stop)
    plan, result = planned(rubric, judge), drive(rubric, judge)
    assert plan.least <= result.usage.calls <= plan.most
    foreseen = {(id(one.judge), one.vote, one.messages) for one in plan.asks}
    for one in judges:
        assert isinstance(one.model, ScriptedModel)
        assert {(id(a.judge), a.vote, a.messages) for a in one.model.asks} <= foreseen


@examples(80)
@given(rubrics(), st.integers(), st.integers(0, 2))
def test_re_asks_stay_below_the_ceiling(rubric: Rubric, seed: int, repairs: int) -> None:
    """However many replies are unreadable."""
    judge = Judge(ScriptedModel(improvised(seed, unreadable=0.5)), repairs=repairs)
    plan, result = planned(rubric, judge), drive(rubric, judge)
    assert result.usage.calls <= plan.ceiling
