"""Which preferences can be trusted: `trusted` of what `prefer_many` returns."""

from __future__ import annotations

import numpy as np
import pytest

from rubric import DefinitionError
from rubric.trust import Labels, Preference, Preferences, trusted
from rubric.trust.labels import Label
from rubric.trust.pairwise.preference import CriterionPreference


def preferred(outcomes: list[str], *, names: tuple[str, str] = ("a", "b"), group: str = "") -> Preferences:
    """Return pairs with these outcomes: `A` and `B` by one of two criteria alone, `a` and `b` by both."""
    made = []
    for at, said in enumerate(outcomes):
        second = "tie" if said.isupper() else said
        criteria = [CriterionPreference("one", said.lower()), CriterionPreference("two", second)]  # type: ignore[arg-type]
        made.append(Preference(tuple(criteria), key=f"pair-{at}", names=names, group=group))
    return Preferences(tuple(made))


def test_clear_preferences_are_kept_and_unclear_ones_are_not() -> None:
    """People agree where both criteria say so, and half of the time where one does."""
    pairs = preferred(["a"] * 70 + ["b"] * 70 + ["A"] * 40 + ["tie", "unjudged"] * 10)
    labels = {f"pair-{n}": "a" for n in range(70)} | {f"pair-{n}": "b" for n in range(70, 140)}
    labels |= {f"pair-{n}": "ab"[n % 2] for n in range(140, 180)}
    found = trusted(pairs, labels, error=0.05)
    assert (found.when.least, found.kept, found.kept_labels, found.wrong) == (1.0, 0.7, 140, 0)
    assert found.labels == 180  # of ties, whatever people say
    assert [found.when(pairs[at]) for at in (0, 70, 140, 180, 181)] == [False, False, True, True, True]
    assert "70 % of the verdicts can be kept" in found.sentence


def test_people_may_name_the_system_and_disagree() -> None:
    """The name of a system is its side; a pair on which people are divided says nothing, a tie of theirs is an error."""
    pairs = preferred(["a"] * 80, names=("old", "new"), group="x")
    rows = [Label(str(at), "old", rater="ann") for at in range(80)]
    rows += [Label("0", "new", rater="bob"), Label("1", "tie", rater="bob"), Label("1", "tie", rater="eve")]
    found = trusted(pairs, Labels(rows, by="index"), error=0.2)
    assert (found.labels, found.wrong) == (79, 1)


def test_labels_of_no_pair_are_refused() -> None:
    """A label that is not a side, and labels of none of the pairs."""
    with pytest.raises(DefinitionError, match="expected one of a, b, tie for a pair, got 'True'"):
        trusted(preferred(["a"]), {"pair-0": True})
    with pytest.raises(DefinitionError, match="by key or by place, got none"):
        trusted(preferred(["a"]), {"other": "a"})


@pytest.mark.long
def test_the_guarantee_holds_for_preferences() -> None:
    """Of 300 samples with a judge that is wrong in a tenth of what it keeps, at most 5 % keep it at an error of 0.1."""
    chance, broken = np.random.default_rng(30), 0
    for _ in range(300):
        labels = {f"pair-{n}": "b" if wrong else "a" for n, wrong in enumerate(chance.random(120) < 0.101)}
        broken += trusted(preferred(["a"] * 120), labels, error=0.1).kept > 0
    assert broken <= 300 * 0.05 + 8


def test_labels_of_pairs_with_weights_are_refused_and_those_of_other_pairs_are_told() -> None:
    """The exact test takes a random sample, and a label whose pair is not there is counted."""
    pairs = preferred(["a"] * 80)
    rows = [Label(f"pair-{at}", "a", weight=1 + at % 2) for at in range(80)]
    with pytest.raises(DefinitionError, match="have weights, and the exact test takes a random sample"):
        trusted(pairs, Labels(rows))
    found = trusted(pairs, {f"pair-{at}": "a" for at in range(80)} | {"pair-5000": "b"})
    assert found.labels == 80
    assert found.remarks() == ["1 labels match no pair ('pair-5000', ...)."]
