"""A plan of labels: its intervals come out as wide as they were planned."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from rubric import DefinitionError, Rubric
from rubric.embed import share_interval
from rubric.trust import Labels, estimate, plan_labels
from tests.recorded import grades

GOOD = Rubric("r").expects("Good", id="good")


def test_shares_take_as_many_labels_as_wilson_says() -> None:
    """The least number whose interval is so narrow; a rate of one class takes as many of that class."""
    plan = plan_labels(0.1, share=0.2, agreement=0.9)
    n = plan["agreement"].labels
    assert n is not None
    low, high = share_interval(round(0.9 * n), n) or (0, 1)
    assert high - low <= 0.1
    assert plan["TPR"].labels == n * 5
    assert plan["TNR"].labels == pytest.approx(n * 1.25, abs=1)
    assert plan["rate, labels alone"].graded == 0  # the judge is not asked


@pytest.mark.long
@pytest.mark.parametrize(("share", "width"), [(0.7, 0.12), (0.98, 0.1), (0.95, 0.2)])
def test_a_corrected_rate_is_as_wide_as_planned(share: float, width: float) -> None:
    """Twelve samples of the planned size, estimated: the mean width is within 15 % of the plan, near an end too."""
    plan = plan_labels(width, share=share, agreement=0.9, label_price=1, call_price=0.02)
    need = plan["rate, corrected"]
    assert need.labels is not None
    assert need.cost == pytest.approx(need.labels + 0.02 * need.graded)
    widths = []
    for seed in range(12):
        chance = random.Random(seed)
        truth = [chance.random() < share for _ in range(need.graded)]
        judge = grades(GOOD, {k: {"good": good ^ (chance.random() > 0.9)} for k, good in enumerate(truth)})
        found = estimate(judge, Labels({k: {"good": truth[k]} for k in range(need.labels)}), criterion="good")
        low, high = found.interval or (0, 1)
        widths.append(high - low)
    assert fmean(widths) == pytest.approx(width, rel=0.15)


def test_the_plan_is_the_cheapest_of_its_neighbours() -> None:
    """Dearer labels mean fewer of them and more calls; what is graded already costs nothing more."""
    cheap, dear = (plan_labels(0.1, label_price=p, call_price=0.01)["rate, corrected"] for p in (0.1, 10))
    assert cheap.labels is not None
    assert dear.labels is not None
    assert dear.labels < cheap.labels
    assert dear.graded > cheap.graded
    there = grades(GOOD, {k: {"good": k % 3 > 0} for k in range(600)})
    given = plan_labels(0.1, there, agreement=0.9, label_price=1, call_price=1)
    assert given.share == pytest.approx(2 / 3, abs=0.01)
    assert given["rate, corrected"].cost == given["rate, corrected"].labels
    few = grades(GOOD, {k: {"good": k % 3 > 0} for k in range(40)})
    assert plan_labels(0.05, few)["rate, corrected"].labels is None
    assert "none is enough" in str(plan_labels(0.05, few))


def test_prices_and_widths_are_checked() -> None:
    """Each by its name."""
    with pytest.raises(DefinitionError, match="width: expected"):
        plan_labels(2)
    with pytest.raises(DefinitionError, match="label_price: expected"):
        plan_labels(label_price=-1)
