"""A ranking of several candidates by pairs, and the share of cycles in it."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, DefinitionError, Rubric
from rubric.testing import ScriptedModel
from rubric.trust import Preference, Preferences, rank
from rubric.trust.pairwise.preference import CriterionPreference
from tests.trust.test_preference import shown

if TYPE_CHECKING:
    from collections.abc import Callable

BETTER = Rubric("better").expects("Is the better answer", id="better")


def choosing(beats: Callable[[str, str], bool]) -> ScriptedModel:
    """Return a judge that prefers a text that *beats* the other, wherever it is shown."""

    def say(ask: Any) -> dict[str, str]:
        first, second = shown(ask)
        return {"reason": "", "choice": "1" if beats(first, second) else "2" if beats(second, first) else "tie"}

    return ScriptedModel(say)


def test_an_order_without_a_cycle_is_found_with_its_wins() -> None:
    """Each longer text beats each shorter one: three wins, two, one and none, and no circle among four triples."""
    found = rank(["xx", "xxxx", "x", "xxx"], BETTER, choosing(lambda a, b: len(a) > len(b)), input="Which?")
    assert [(one.name, one.wins, one.n) for one in found.strengths] == [
        ("#1", 3, 3), ("#3", 2, 3), ("#0", 1, 3), ("#2", 0, 3),
    ]  # fmt: skip
    assert all(one.interval is not None for one in found.strengths)
    assert (len(found), found.cycles.value, found.cycles.n) == (6, 0.0, 4)
    assert "circle" not in str(found)


def test_a_planted_cycle_is_told() -> None:
    """Rock, paper and scissors beat one another in a circle, and all of them beat the well: one of four triples."""
    wins = {("rock", "scissors"), ("scissors", "paper"), ("paper", "rock")}
    judge = choosing(lambda a, b: (a, b) in wins or (b == "well" and a != "well"))
    names = ("rock", "paper", "scissors", "well")
    found = rank([Candidate(name, key=name, input="q", group="g") for name in names], BETTER, judge)
    assert (found.cycles.value, found.cycles.n, found.strengths[-1].name) == (0.25, 4, "well")
    assert found.remarks()[-1] == "Three systems beat one another in a circle in 25 % of 4 triples."
    assert found.to_dict()["cycles"]["value"] == 0.25


def test_ties_are_half_a_win_and_no_part_of_a_cycle() -> None:
    """A triple with a tie, or with a pair that the order decides, has no winner in each pair."""
    found = rank(["a", "b", "c"], BETTER, choosing(lambda a, b: (a, b) == ("a", "b")))
    assert [(one.name, one.wins) for one in found.strengths] == [("#0", 1.5), ("#2", 1.0), ("#1", 0.5)]
    assert (found.cycles.value, found.cycles.n) == (None, 0)


@given(
    st.integers(3, 7).flatmap(
        lambda n: st.lists(st.booleans(), min_size=comb(n, 2), max_size=comb(n, 2)).map(lambda x: (n, x))
    )
)
def test_cycles_are_those_of_kendall(given_: tuple[int, list[bool]]) -> None:
    """Without ties, all triples but those that one member wins twice are circles: C(n, 3) less the sum of C(wins, 2)."""
    n, flips = given_
    wins, pairs = [0] * n, []
    for (a, b), first in zip(combinations(range(n), 2), flips, strict=True):
        wins[a if first else b] += 1
        criterion = CriterionPreference("c", "a" if first else "b")
        pairs.append(Preference((criterion,), names=(str(a), str(b))))
    cycles = Preferences(tuple(pairs)).cycles
    assert cycles.value is not None
    assert (round(cycles.value * cycles.n), cycles.n) == (comb(n, 3) - sum(comb(w, 2) for w in wins), comb(n, 3))


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ("one text", "candidates: expected an iterable of two candidates or more"),
        (["alone"], "candidates: expected two or more"),
        ([Candidate("a", key="k"), Candidate("b", key="k")], "each with a key of its own"),
        ([Candidate("a", group="g"), Candidate("b", group="h")], "of several groups; rank the candidates of each"),
        ([Candidate("a", input="x"), Candidate("b", input="y")], "the input of b is not that of a"),
    ],
)
def test_what_cannot_be_ranked_is_refused(candidates: Any, message: str) -> None:
    """One candidate, keys that repeat, and answers to different prompts have no ranking."""
    with pytest.raises(DefinitionError, match=message):
        rank(candidates, BETTER, choosing(lambda a, b: a > b))
