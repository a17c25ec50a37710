"""What changed between two rubrics, for the judge and for the score."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given

from rubric import Contains, Criterion, DefinitionError, Rubric, ask, diff
from tests import strategies
from tests.examples import examples
from tests.rows import each_row

TONE = Rubric("tone", threshold=0.7).expects("Is polite", id="polite").scores("Is warm", id="warm", weight=2)


@each_row(
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
    """Each change has its path, both values and what it affects; only the judge's need calls."""
    found = diff(TONE, after)
    assert [(c.id, c.before, c.after, c.affects) for c in found] == changes
    assert found.needs_calls == any(change[-1] == "judge" for change in changes)


def test_leaves_of_a_tree_are_for_the_score_and_its_questions_for_the_judge() -> None:
    """A new leaf score needs no call, a new question does."""
    tree = Rubric.deciding(ask("Is it polite?").yes(1.0).no(0.0))
    assert not diff(tree, Rubric.deciding(ask("Is it polite?").yes(0.9).no(0.0))).needs_calls
    assert diff(tree, Rubric.deciding(ask("Is it kind?").yes(1.0).no(0.0))).needs_calls


def test_a_nested_rubric_is_compared_criterion_by_criterion() -> None:
    """The path of the change leads through both rubrics."""
    outer = Rubric("outer").includes(TONE, id="tone")
    (change,) = diff(outer, Rubric("outer").includes(TONE.revising("warm", weight=5), id="tone"))
    assert (change.id, change.affects) == ("tone.warm.weight", "score")


def test_another_check_is_a_change() -> None:
    """Both checks are shown in words."""
    old, new = (Rubric(criteria=[Criterion("c", id="c", answer=Contains(word))]) for word in ("a", "b"))
    (change,) = diff(old, new)
    assert (change.id, change.before, change.after) == ("c.answer", "check: contains 'a'", "check: contains 'b'")


def test_what_is_no_rubric_is_refused() -> None:
    """The error names the argument."""
    with pytest.raises(DefinitionError, match="after: expected a Rubric"):
        diff(TONE, "tone.yaml")  # type: ignore[arg-type]


@pytest.mark.long
@examples(100)
@given(strategies.rubrics())
def test_a_rubric_does_not_differ_from_itself(rubric: Rubric) -> None:
    """An equal copy gives "no differences"."""
    found = diff(rubric, evolve(rubric))
    assert (len(found), str(found)) == (0, "no differences")


def test_a_difference_shows_itself_as_all_results_do() -> None:
    """Text, Markdown and the card lead with the sentence and list each change; only without any is it false."""
    found = diff(TONE, TONE.passing_at(0.9))
    for shown in (str(found), found._repr_markdown_(), found._repr_html_(), repr(found)):
        assert "1 changed: 1 for the score; results can be rescored without a call" in shown
    assert str(found).splitlines()[-1].split()[:2] == ["score", "threshold"]
    assert "| score | threshold |" in found._repr_markdown_()
    assert found
    assert not diff(TONE, TONE)
