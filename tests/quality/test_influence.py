"""What a criterion can do to the verdict: held against every coalition, by the rules of grading."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from rubric import Choices, Criterion, DefinitionError, Levels, Rubric, ScoreRange, Unit, YesNo, ask, influence
from rubric.quality import coalitions
from rubric.results import Evidence
from rubric.scoring.outcomes import outcome
from rubric.values.findings import Scored
from tests.examples import examples

TREE = ask("Is it polite?").yes(ask("Is it warm?").yes(1.0).no(0.3)).no(0.4)


@st.composite
def rubrics(draw: st.DrawFn, depth: int = 0, most: int = 6, kinds: tuple[str, ...] = ()) -> Rubric:
    """Rubrics of all aggregations, answers, gates and polarities, nested up to three deep."""
    aggregation: Any = draw(st.sampled_from(["weighted_average", "weighted_average", "min", "points"]))
    threshold = draw(st.sampled_from([None, 0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 1.0]))
    allowed = kinds or ("yes", "yes", "unit", "levels", "choices", "tree", "rubric")
    if threshold is None:
        allowed = tuple(kind for kind in allowed if kind in ("yes", "rubric"))
    criteria = []
    for index in range(draw(st.integers(1, most if depth == 0 else 3))):
        kind = draw(st.sampled_from(allowed if depth < 2 else allowed[:1]))
        answers: dict[str, Any] = {
            "yes": YesNo(),
            "unit": Unit(),
            "levels": Levels(ScoreRange(1, 5)),
            "choices": Choices({"a": 0.1, "b": 0.6, "c": 0.9}),
            "tree": TREE,
        }
        answer = draw(rubrics(depth=depth + 1)) if kind == "rubric" else answers[kind]
        penalty = aggregation == "points" and threshold is not None and not getattr(answer, "binding", False)
        polarity: Any = draw(st.sampled_from(["satisfy", "satisfy", "satisfy", "guard"] + ["penalty"] * penalty))
        options: dict[str, Any] = {}
        if polarity != "penalty" and draw(st.integers(0, 4)) == 0:
            options["required"] = True
        if polarity == "satisfy" and draw(st.integers(0, 5)) == 0:
            options["min_score"] = draw(st.sampled_from([0.3, 0.5, 1.0]))
        weight = draw(st.sampled_from([0, 1, 1, 2, 3, 0.5, 0.1, 1.5]))
        criteria.append(Criterion(f"c{index}", answer=answer, polarity=polarity, weight=weight, **options))
    rubric = Rubric(
        "r",
        criteria=criteria,
        threshold=threshold,
        aggregation=aggregation,
        strict=draw(st.integers(0, 9)) == 0,
        negate=draw(st.integers(0, 6)) == 0,
        binding=depth > 0 and draw(st.booleans()),
        all_or_nothing=depth > 0 and draw(st.booleans()),
    )
    try:
        rubric.check_weights()
    except DefinitionError:
        assume(False)
    return rubric


def finding_at(criterion: Criterion, *, best: bool) -> Scored:
    """Return the finding of *criterion* at its best or its worst answer, with evidence where it needs some."""
    good = best != criterion.is_unwanted
    if isinstance(inner := criterion.answer, Rubric):
        parts = tuple(finding_at(one, best=good != inner.negate) for one in inner.judged)
        return Scored(criterion.id, outcome(inner, parts).worst.score, parts=parts)
    scores = coalitions.scores_of(criterion)
    return Scored(criterion.id, max(scores) if good else min(scores), flag=best, evidence=(Evidence("", 0, 0),))


def subsets(n: int) -> list[tuple[int, ...]]:
    return list(product((0, 1), repeat=n))


def shares_and_flips(wins: dict[tuple[int, ...], bool], n: int) -> tuple[list[float], list[float]]:
    """Shapley's value by all subsets, and Banzhaf's."""
    shares, flips = [], []
    for player in range(n):
        share, flip = Fraction(), 0
        for members, won in wins.items():
            if members[player]:
                continue
            change = int(wins[(*members[:player], 1, *members[player + 1 :])]) - int(won)
            size = sum(members)
            share += Fraction(math.factorial(size) * math.factorial(n - 1 - size), math.factorial(n)) * change
            flip += abs(change)
        shares.append(float(share))
        flips.append(flip / 2 ** (n - 1))
    return shares, flips


@examples(40)
@given(rubrics(most=5))
def test_influence_is_that_of_all_coalitions_by_the_rules_of_grading(rubric: Rubric) -> None:
    """Shares equal those counted over every combination; what flips a verdict in one of them can decide."""
    ends = [[finding_at(one, best=best) for best in (False, True)] for one in rubric.judged]
    n = len(ends)
    wins = {
        members: outcome(rubric, [end[bit] for end, bit in zip(ends, members, strict=True)]).passed is True
        for members in subsets(n)
    }
    shares, flips = shares_and_flips(wins, n)
    found = influence(rubric)
    assert found.method == "exact"
    assert [one.share for one in found] == pytest.approx(shares, abs=1e-9)
    assert all(one.decides for one, flip in zip(found, flips, strict=True) if flip)


def test_a_gate_decides_nothing_where_another_criterion_cannot_reach_the_threshold() -> None:
    """A minimum below the threshold fails whatever the gate says; a worst answer that fails its own gate is no way out."""
    half = Criterion("half", answer=Choices({"a": 0.1, "b": 0.9}), required=True, min_score=0.3)
    gate = Criterion("gate", weight=0, required=True)
    rubric = Rubric(criteria=[gate, half], threshold=1.0, aggregation="min")
    assert [one.decides for one in influence(rubric)] == [False, False]


@examples(40)
@given(rubrics(most=4, kinds=("yes", "levels", "choices", "tree")))
def test_a_criterion_cannot_matter_only_if_no_answers_of_the_others_let_it(rubric: Rubric) -> None:
    """`decides` equals a search over every answer of the others."""
    every = [[Scored(one.id, score) for score in sorted(set(coalitions.scores_of(one)))] for one in rubric.judged]
    assume(math.prod(map(len, every)) <= 200)
    for index, found in enumerate(influence(rubric)):
        ends = [finding_at(rubric.judged[index], best=best) for best in (False, True)]
        matters = any(
            outcome(rubric, (*others[:index], ends[0], *others[index:])).passed
            != outcome(rubric, (*others[:index], ends[1], *others[index:])).passed
            for others in product(*every[:index], *every[index + 1 :])
        )
        assert found.decides == matters


@examples(30)
@given(rubrics(kinds=("yes", "unit", "levels")), st.integers(2, 9))
def test_scaling_all_weights_changes_no_share(rubric: Rubric, by: int) -> None:
    """Weights times a constant give the same shares."""
    scaled = Rubric(
        "s",
        criteria=[evolve(one, weight=one.weight * by) for one in rubric.criteria],
        **{name: getattr(rubric, name) for name in ("threshold", "aggregation", "strict", "negate")},
    )
    assert [one.share for one in influence(scaled)] == [one.share for one in influence(rubric)]


@examples(30)
@given(rubrics(kinds=("yes", "unit", "levels")), st.randoms(use_true_random=False))
def test_the_order_of_the_criteria_changes_no_share(rubric: Rubric, chance: random.Random) -> None:
    """A shuffled rubric gives each criterion the same share."""
    order = [*rubric.criteria]
    chance.shuffle(order)
    found = influence(evolve(rubric, criteria=order))
    assert {one.id: one.share for one in found} == {one.id: one.share for one in influence(rubric)}


@examples(30)
@given(rubrics(kinds=("yes", "levels")))
def test_a_criterion_without_weight_or_gate_changes_no_share(rubric: Rubric) -> None:
    """A criterion of weight 0 never decides and takes nothing from the others."""
    found = influence(rubric.expects("shown only", weight=0))
    assert [one.share for one in found][:-1] == pytest.approx([one.share for one in influence(rubric)], abs=1e-12)
    assert not found["shown-only"].decides


def test_a_criterion_too_light_for_the_threshold_is_said_never_to_decide() -> None:
    """Its share is 0, and the explanation names the gates in effect."""
    rubric = Rubric("reply", threshold=0.8).requires("date").expects("tone", weight=3).expects("ticket #", weight=0.5)
    found = influence(rubric)
    assert not found["ticket"].decides
    assert found["ticket"].share == 0
    assert "'ticket' can never change the verdict" in found.explain()
    assert "'tone' is in effect a gate" in found.explain()
    assert "'date' is a gate" in found.explain()


def test_a_graded_answer_of_another_lets_a_light_criterion_decide() -> None:
    """The criterion has no share among extremes and still decides beside a partial score."""
    rubric = Rubric("r", threshold=0.8).scores("a", weight=4).expects("b", weight=0.5)
    found = influence(rubric)
    assert found["b"].share == 0
    assert found["b"].decides
    assert "'b' decides only beside graded or absent answers" in found.explain()


def test_a_condition_that_may_not_hold_lets_another_criterion_decide() -> None:
    """The light criterion decides where the heavy one does not apply."""
    heavy = Criterion("heavy", weight=9, when=lambda _: True)
    assert influence(Rubric("r", criteria=[heavy, "light"], threshold=0.9))["light"].decides


def test_a_rubric_that_asks_for_all_says_so() -> None:
    """The explanation is one sentence, and every criterion has a veto."""
    rubric = Rubric("r", threshold=0.9).expects("a").expects("b").expects("c")
    found = influence(rubric)
    assert found.explain() == "Passes only if all 3 hold."
    assert all(one.vetoes for one in found)


def test_a_rubric_of_equal_criteria_names_how_many_suffice() -> None:
    """Five equal criteria are explained as "any 3 of 5"."""
    assert influence(_five()).explain() == "Passes if any 3 of 5 hold."


def _five() -> Rubric:
    return Rubric("r", criteria=["a", "b", "c", "d", "e"], threshold=0.6)


def test_a_rubric_that_passes_everything_says_so() -> None:
    """With a threshold of 0 no criterion can change the verdict."""
    assert influence(Rubric("r", threshold=0).expects("a")).explain().startswith("No criterion can change the verdict")


def test_more_criteria_than_can_be_counted_are_drawn_and_say_so() -> None:
    """Of eighteen, orders are sampled, with an interval around each share."""
    chance = random.Random(3)
    rubric = Rubric("r", criteria=[Criterion(f"c{n}", weight=chance.random()) for n in range(18)])
    found = influence(rubric)
    assert found.method == "sampled"
    assert sum(one.share for one in found) == pytest.approx(1)
    for one in found:
        assert one.interval is not None
        assert one.interval[0] <= one.share <= one.interval[1]
        assert one.share == pytest.approx(one.weight, abs=0.03)


def test_influence_is_plain_data_for_json() -> None:
    """Sentence and shares survive JSON."""
    data = json.loads(json.dumps(influence(_five()).to_dict()))
    assert data["sentence"] == "Passes if any 3 of 5 hold."
    assert [one["share"] for one in data["criteria"]] == pytest.approx([0.2] * 5)
