"""
Plan labels before anybody labels: how many, for an interval so wide, at the price of a label and of a call.

A share of labels has the interval of a summary, and a corrected rate that of `estimate` where each kind of candidate is
as often as expected. Its variance is s^2 ((1 - r^2) / n + r^2 / N) with `n` labels among `N` graded candidates, where
`r` is the correlation of the judge's verdicts with those of people (PPI++: A. Angelopoulos, J. Duchi and T. Zrnic,
arXiv 2311.01453); the cheapest N for each n follows from the prices.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from itertools import count

import numpy as np
from attrs import frozen

from rubric import Grades
from rubric.embed import Listed, NoTruth, Presented, Table, fields, guided, share_interval
from rubric.trust.estimates import interval_of
from rubric.trust.inference import Floats
from rubric.trust.ratings import as_judged

_MANY = 100_000
"""Labels from which a width falls with the root of their number."""


@frozen
class Need(NoTruth):
    """
    What one figure takes.

    Args:
        id: The figure: `agreement`, `TPR`, `TNR`, `rate, labels alone` or `rate, corrected`.
        labels: The labels, of a random sample; None if no number is enough.
        graded: The candidates to grade.
        cost: The price of both; None where there is no price or no number.
        why: What it rests on.
    """

    _truth = ".labels"

    id: str
    labels: int | None
    graded: int
    cost: float | None
    why: str


@frozen(repr=False)
class LabelPlan(Presented, Listed[Need]):
    """
    What `plan_labels` returns: `plan_labels(0.1)["rate, corrected"].labels`.

    Args:
        needs: Each figure.
        width: The width of the interval, such as 0.1 from .75 to .85.
        share: The share of passes that is taken to be true.
        agreement: How often the judge is taken to be right on passes and on fails.
    """

    _items = "needs"
    _truth = "its figures"

    needs: tuple[Need, ...]
    width: float
    share: float
    agreement: float

    @property
    def sentence(self) -> str:
        """The cheapest way to the pass rate."""
        rates = [one for one in self.needs[-2:] if one.labels is not None]
        best = min(rates, key=lambda one: (one.cost or 0, one.labels), default=None)
        if best is None:
            return f"No number of labels gives the pass rate an interval {self.width:g} wide; grade more candidates."
        cost = "" if best.cost is None else f", at {best.cost:,.2f}"
        much = f"{best.labels:,} labels" + (f" and {best.graded:,} graded candidates" if best.graded else "")
        return f"A pass rate with an interval {self.width:g} wide takes {much}{cost} ({best.id})."

    def remarks(self) -> list[str]:
        """What the plan takes for true."""
        return [
            f"Taken: {self.share:.0%} pass, and the judge is right on {self.agreement:.0%} of passes and of fails.",
            "Label at random. Where one verdict is rare, its rate decides: find more of it, and weigh what you drew.",
        ]

    def tables(self) -> list[Table]:
        """Each figure in a row."""
        rows = [
            (n.id, n.labels or "none is enough", n.graded, "–" if n.cost is None else f"{n.cost:,.2f}", n.why)
            for n in self.needs
        ]
        return [("", ("figure", "labels", "graded", "cost", "since"), rows)]


@guided
def plan_labels(
    width: float = 0.1,
    grades: Grades | None = None,
    *,
    share: float = 0.5,
    agreement: float = 0.85,
    label_price: float = 0.0,
    call_price: float = 0.0,
) -> LabelPlan:
    """
    Return how many labels give intervals of 95 % that are *width* wide.

    Args:
        width: From the lower end of an interval to the upper one.
        grades: What is graded already: no further call is planned, and *share* is their pass rate.
        share: The share of passes, where there are no grades.
        agreement: How often the judge is right, on passes and on fails: a guess, or what `agreement` found before.
        label_price: What a label costs, in any currency.
        call_price: What grading a candidate costs, in the same.

    Raises:
        DefinitionError: A number is out of its range.
    """
    fields.check_number("width", width, 0.001, 0.9)
    fields.check_number("agreement", agreement, 0.5, 1)
    for name, price in (("label_price", label_price), ("call_price", call_price)):
        fields.check_number(name, price, 0, 1e9)
    there = 0
    if grades is not None:
        passed = [one for one in as_judged(grades).columns[""][1].tolist() if one == one]  # noqa: PLR0124 - not NaN
        there, share = len(passed), (sum(passed) + 1) / (len(passed) + 2)
    fields.check_number("share", share, 0.001, 0.999)

    def need(id: str, labels: int | None, graded: int, why: str) -> Need:
        calls = max(0, graded - there)
        cost = None if labels is None else labels * label_price + calls * call_price
        return Need(id, labels, max(graded, there), cost if label_price or call_price else None, why)

    of_class, alone = (_least_of_share(each, width) for each in (agreement, share))
    needs = [need("agreement", of_class, of_class, "a share")]
    for name, part, what in (("TPR", share, "pass"), ("TNR", 1 - share, "fail")):
        whole = math.ceil(of_class / part)
        needs.append(need(name, whole, whole, f"{of_class:,} that people {what}, {part:.0%} of a random sample"))
    needs.append(need("rate, labels alone", alone, 0, "the judge is not used"))
    labels, graded, r = _count_labels(width, share, agreement, there, (label_price, call_price))
    why = f"the judge's verdicts correlate with those of people at {r:.2f}"
    return LabelPlan((*needs, need("rate, corrected", labels, graded, why)), width, share, agreement)


def _least(fits: Callable[[int], bool]) -> int:
    """Return the least number that fits, or one near it: widths waver a little."""
    high = next(size for size in (2**power for power in count(1)) if fits(size))
    return bisect_left(range(high), True, high // 2, high, key=fits)  # noqa: FBT003


def _least_of_share(share: float, width: float) -> int:
    """Return the least number whose interval of *share* is no wider than *width*."""

    def fits(n: int) -> bool:
        low, high = share_interval(round(share * n), n) or (0.0, 1.0)
        return high - low <= width

    return _least(fits)


def _width_of_rate(labels: int, graded: int, share: float, agreement: float) -> float:
    """Return the width of the estimate from candidates of which each kind is as often as expected."""
    # That of many labels falls with the root of their number, and a million graded candidates tell as much as more.
    times = max(1.0, labels / _MANY)
    labels, graded = round(labels / times), min(round(graded / times), 10 * _MANY)

    def expect(n: int) -> tuple[Floats, Floats]:
        good = round(share * n)
        found, missed = round(agreement * good), round((1 - agreement) * (n - good))
        cells = [found, good - found, missed, n - good - missed]
        return np.repeat([1.0, 0.0, 1.0, 0.0], cells), np.repeat([1.0, 1.0, 0.0, 0.0], cells)

    (judge, people), (more, _) = expect(labels), expect(max(0, graded - labels))
    low, high = interval_of(people, judge, more)
    return (high - low) / math.sqrt(times)


def _count_labels(
    width: float, share: float, agreement: float, there: int, prices: tuple[float, float]
) -> tuple[int | None, int, float]:
    """Return the labels, the graded candidates, and the correlation; the cheapest of both where none is graded yet."""
    said = share * agreement + (1 - share) * (1 - agreement)
    r = share * (agreement - said) / math.sqrt(share * (1 - share) * said * (1 - said)) if 0 < said < 1 else 0.0
    label, call = (max(price, 1e-9) for price in prices) if any(prices) else (10.0, 1.0)
    each = min(max(1.0, r * math.sqrt(label / call / max(1 - r * r, 1e-6))), 1_000.0)  # graded candidates a label

    def graded_for(labels: int) -> int:
        return there or math.ceil(labels * each)

    if there and _width_of_rate(there, there, share, agreement) > width:
        return None, there, r
    n = _least(lambda n: n >= (there or math.inf) or _width_of_rate(n, graded_for(n), share, agreement) <= width)
    return n, graded_for(n), r
