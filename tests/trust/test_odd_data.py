"""Few, constant, divided and uneven data: what is printed is true, or refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from attrs import evolve

from rubric import DefinitionError, Rubric
from rubric.trust import Label, Labels, agreement, compare, estimate, thresholds
from rubric.trust.criterion_agreement import agreement_of
from rubric.trust.estimates import estimate_of
from rubric.trust.inference import Floats, paired_contrast
from rubric.trust.ratings import VERDICT, Scale
from tests.recorded import grades
from tests.rows import each_row
from tests.simulations.drawing import Chance, covers, ratings, verdicts

GOOD = Rubric("answers").expects("Good", id="good")
CLEAR = Rubric("answers").rates("Clear", 1, 5, id="clear")
SAID = {n: {"good": n % 3 > 0} for n in range(40)}
GRADES = grades(GOOD, SAID)
STARS = Scale("number", 1.0, 5.0)
OPTIONS = Scale("option", options=("a", "b", "c"))


def test_people_with_too_little_in_common_get_a_sentence() -> None:
    """Where no two raters have three candidates in common there is no agreement, and it says so."""
    apart = Labels([Label(str(n), n % 2 == 0, rater="abc"[n % 3]) for n in range(60)])
    assert "3 people label 0 candidates in common, too few for a figure." in str(agreement(apart))
    assert "too few" in agreement(Labels.by_rater({n: {"a": True, "b": True} for n in "xy"})).sentence


def test_one_group_is_one_draw() -> None:
    """It has no estimate and no difference, which say so; nor a balanced accuracy with an interval."""
    together = grades(GOOD, SAID, dict.fromkeys(SAID, "g"))
    labels = Labels({n: n % 2 == 0 for n in range(20)})
    with pytest.raises(DefinitionError, match="two labelled groups that are graded, got 1"):
        estimate(together, labels)
    with pytest.raises(DefinitionError, match="fewer than two groups of candidates"):
        compare(together, together)
    assert agreement(together, labels).criteria[0]["balanced accuracy"].interval is None


def test_what_cannot_be_corrected_says_why_first() -> None:
    """The reason is that of the estimate, not that labels are few."""
    found = estimate(GRADES, Labels(dict.fromkeys(range(15), True)), how="rogan-gladen")
    assert found.sentence.startswith("The pass rate cannot be corrected: the labels are all the same")


def test_divided_people_are_told() -> None:
    """A sentence without a figure tells those on which people are divided, and so does a refusal."""
    divided = Labels.by_rater({n: {"a": True, "b": False} for n in range(30)})
    assert "people are divided on 30 more" in agreement(GRADES, divided).sentence
    with pytest.raises(DefinitionError, match="got 0; people are divided on 30"):
        estimate(GRADES, divided, how="rogan-gladen")


def test_labels_that_cannot_correct_a_difference_are_refused() -> None:
    """Of other candidates or criteria they would have no effect; what they correct is told."""
    one, other = Labels({n: n % 2 == 0 for n in range(20)}), Labels({n: n % 2 == 0 for n in range(20, 40)})
    with pytest.raises(DefinitionError, match="0 graded pairs have labels of both outputs on 'pass rate'"):
        compare(GRADES, GRADES, labels=(one, other))
    with pytest.raises(DefinitionError, match="of other criteria"):
        compare(GRADES, GRADES, labels=(one, Labels({n: {"good": True} for n in range(20)})))
    assert "The difference in pass rate is by 20 labels of both outputs" in str(compare(GRADES, GRADES, (one, one)))


def test_a_difference_covers_where_candidates_move_one_way_only() -> None:
    """Gains of .1 and no losses: 20 pairs often show none, and 95 % of the intervals hold .1 all the same."""
    chance, held = np.random.default_rng(4), 0
    for _ in range(500):
        found = paired_contrast((chance.random(20) < 0.1).astype(float), None)
        assert found is not None
        held += covers(found.interval, 0.1)
    assert held >= 475


def test_too_few_for_a_baseline_is_no_other_criterion() -> None:
    """One labelled candidate is too few to compare with what was saved."""
    saved = agreement(GRADES, Labels({n: n % 2 == 0 for n in range(20)})).baseline
    with pytest.raises(DefinitionError, match="fewer than two candidates"):
        agreement(GRADES, Labels({0: True})).against(saved)


@pytest.mark.parametrize("n", [2, 3, 40])
def test_intervals_hold_their_values(n: int) -> None:
    """Also an intraclass correlation below -1, of raters who contradict each other."""
    opposite = grades(CLEAR, {at: {"clear": 1 + at % 5} for at in range(n)})
    found = agreement(opposite, Labels({at: {"clear": 5 - at % 5} for at in range(n)}))
    json.dumps(found.to_dict(), allow_nan=False)
    for one in found["clear"].statistics:
        if one.interval is not None and one.value is not None:
            assert one.interval[0] <= one.value <= one.interval[1], one


def test_a_single_unit_that_differs_leaves_a_narrow_interval() -> None:
    """Of 60 candidates that raters see alike but for one, alpha is as certain as kappa is, and not from -0.9 to 1."""
    people = (np.arange(60) % 2).astype(float)
    found = agreement_of(ratings(people, np.where(np.arange(60) == 7, 0.0, people)))
    for name in ("phi", "alpha", "kappa"):
        assert found[name].interval is not None
        assert found[name].interval[0] > 0.7  # type: ignore[index]


def test_weighted_labels_that_are_alike_leave_room() -> None:
    """Ten passes by weight are no certainty; a heavy label is worth one."""
    alike = Labels([Label(str(n), value=True, weight=1 + n % 2) for n in range(10)])
    found = estimate(GRADES, alike)
    assert found.interval is not None
    assert found.interval[0] < 0.8
    heavy = Labels([Label(str(n), n == 0, weight=1e6 if n == 0 else 1) for n in range(30)])
    found = estimate(GRADES, heavy)
    assert found.interval is not None
    assert found.interval[0] < 0.1
    assert "worth 1 of one weight" in str(found)


def test_labels_by_weight_that_are_worth_little_have_no_interval_alone() -> None:
    """Below 30 of one weight none is printed of labels alone, of an agreement and of a threshold, which says so."""
    few = Labels([Label(str(n), n % 3 > 0, weight=1.0 + 9 * (n % 4 == 0)) for n in range(40)])
    assert estimate(GRADES, few).labels_only.interval is None
    assert "the interval says little, and labels alone have none" in str(estimate(GRADES, few))
    found = agreement(GRADES, few)
    assert "labels that are worth 16 of one weight, fewer than 30, have no interval" in str(found)
    whole = found.criteria[0]
    rates = [figure for one in whole.rates for figure in (one.recall, one.specificity, one.precision, one.f1)]
    assert all(one.interval is None for one in (*whole.statistics, *rates))
    assert all(one.interval is None for one in thresholds(GRADES, few).best().statistics)
    plain = Labels([evolve(label, weight=1.0) for label in few])
    assert agreement(GRADES, plain).criteria[0]["agreement"].interval is not None


def test_a_verdict_without_a_label_may_have_any_rate() -> None:
    """Labels by weight of what the judge fails alone: the rate of what it passes is unknown, so the interval is wide."""
    failed = Labels([Label(str(n), n % 2 == 0, weight=5.0) for n in range(40) if n % 3 == 0])
    low, high = estimate(GRADES, failed).interval or (0.0, 0.0)
    assert low < 0.25
    assert high > 0.75


@pytest.mark.parametrize(("rate", "odds"), [(0.5, 4), (0.5, 10), (0.95, 10)])
def test_estimates_by_weight_cover_where_fails_are_likelier_to_be_drawn(rate: float, odds: float) -> None:
    """Fails are drawn *odds* times as likely: 200 labels cover the rate in 90 % at least, and the labels alone."""
    chance, held = np.random.default_rng([7, int(odds)]), np.zeros(2)
    for _ in range(150):
        people, judge = verdicts(chance, rate, (0.9, 0.8), 1_500)
        likely = np.where(judge == 0, odds, 1.0)
        share = 200 * likely / likely.sum()
        shown = np.where(chance.random(1_500) < share, people, np.nan)
        found = estimate_of(evolve(ratings(shown, judge), weights=1 / share))
        held += covers(found.interval, rate), covers(found.labels_only.interval, rate)
    assert held[0] >= 135
    assert held[1] >= 128


Drawn = tuple[Floats, Floats]


def _threes(chance: Chance, n: int) -> Drawn:
    said, people = (1.0 + chance.choice(5, n).astype(float) for _ in range(2))
    return np.asarray(np.where(chance.random(n) < 0.9, 3.0, said), dtype=float), people


def _lenient(chance: Chance, n: int) -> Drawn:
    return (chance.random(n) < 0.95).astype(float), (chance.random(n) < 0.7).astype(float)


def _rare(chance: Chance, n: int) -> Drawn:
    said = chance.choice(3, n, p=[0.9, 0.05, 0.05])
    people = np.where(chance.random(n) < 0.5, said, chance.choice(3, n, p=[0.9, 0.05, 0.05]))
    return said.astype(float), people.astype(float)


@each_row(
    ("draw", "scale", "names", "truth"),
    [
        (_threes, STARS, ("pearson", "spearman"), 0.0),
        (_lenient, VERDICT, ("phi", "kappa"), 0.0),
        (_rare, OPTIONS, ("kappa", "alpha"), 0.5),
    ],
)
@each_row("n", [20, 60])
def test_coefficients_of_a_judge_who_nearly_always_says_the_same_cover(
    draw: Callable[[Chance, int], Drawn], scale: Scale, names: tuple[str, ...], truth: float, n: int
) -> None:
    """A judge whose other ratings are rare shows few that differ: intervals cover the truth in 90 % at least."""
    chance, held, counts = np.random.default_rng([5, n]), dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for _ in range(60):
        judge, people = draw(chance, n)
        found = agreement_of(ratings(people, judge, scale=scale))
        for name in names:
            if found[name].interval is not None:
                counts[name] += 1
                held[name] += covers(found[name].interval, truth)
    assert all(held[name] >= 0.9 * counts[name] for name in names), (held, counts)
