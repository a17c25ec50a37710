"""A result that is scored anew is the one that grading by that rule would give, without a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import DefinitionError, Grade, Judge, Jury, Panel, Rubric, Ungraded
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.judges import Cascade
from tests.drive import drive
from tests.examples import examples
from tests.findings import improvised, rubrics


@examples(100)
@given(rubrics(), st.integers(), st.sampled_from([0, 0.2]), st.sampled_from(["judge", "jury", "panel", "both"]))
def test_the_same_rule_gives_the_same_result(rubric: Rubric, seed: int, failing: float, kind: str) -> None:
    """For judges, juries, panels and panels of juries, graded or not."""
    judges = [Judge(ScriptedModel(improvised((seed, n), failing=failing))) for n in range(2)]
    benches: dict[str, Judge | Jury | Panel] = {
        "judge": judges[0],
        "jury": Jury(judges[0], 3, early_stop=True),
        "panel": Panel(judges, aggregate="majority", level="criterion"),
        "both": Panel([Jury(judges[0], 2), judges[1]], early_stop=True, quorum=1),
    }
    result = drive(rubric, benches[kind])
    assert result.rescore() == result


@examples(40)
@given(rubrics(), st.integers(), st.sampled_from(["fails", "borderline", "ungraded", (0.3, 0.8)]))
def test_a_cascade_under_the_same_rule_gives_the_same_result(rubric: Rubric, seed: int, when: Any) -> None:
    """Whether the second was asked or not."""
    first, then = (Judge(ScriptedModel(improvised((seed, n), failing=0.1))) for n in range(2))
    result = drive(rubric, Cascade(first, then, when))
    assert result.rescore() == result


@examples(100)
@given(rubrics(), st.integers(), st.data())
def test_another_rule_gives_what_grading_by_it_would(rubric: Rubric, seed: int, data: st.DataObject) -> None:
    """Threshold, aggregation, strictness, negation and the policy of abstentions: the same replies, another result."""
    rule: dict[str, Any] = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "threshold": st.sampled_from([0, 0.4, 0.9]),
                "aggregation": st.sampled_from(["min", "weighted_average"]),
                "strict": st.booleans(),
                "negate": st.booleans(),
                "borderline": st.none(),
            },
        )
    )
    loose = evolve(rubric, borderline=None)

    def by(graded: Rubric) -> Grade | Ungraded:
        return drive(graded, Panel([Judge(ScriptedModel(improvised((seed, n)))) for n in range(3)]))

    def outcome_of(make: Callable[[], Grade | Ungraded]) -> object:
        try:
            return make().outcome
        except DefinitionError as refused:  # penalties have no place under every rule
            return str(refused)

    graded = by(loose)
    assert outcome_of(lambda: graded.rescore(**rule)) == outcome_of(lambda: by(evolve(loose, **rule)))


@examples(100)
@given(rubrics(), st.integers(), st.data())
def test_other_votes_can_be_combined_anew(rubric: Rubric, seed: int, data: st.DataObject) -> None:
    """A panel's votes under another aggregate, by criterion, or with other weights."""
    judges = [Judge(ScriptedModel(improvised((seed, n), failing=0.1))) for n in range(3)]
    other = Panel(
        judges,
        aggregate=data.draw(st.sampled_from(["mean", "median", "majority"])),
        level=data.draw(st.sampled_from(["rubric", "criterion"])),
        weights=data.draw(st.sampled_from([None, (1, 2, 3)])),
        quorum=data.draw(st.sampled_from([None, 2])),
    )
    assert drive(rubric, Panel(judges)).rescore(judge=other).outcome == drive(rubric, other).outcome
