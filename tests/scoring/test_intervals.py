"""Intervals cover the truth as often as they say: of means, of groups, and of drops between two runs."""

from __future__ import annotations

import random
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rubric import Candidate, grade_many
from rubric.embed import FrozenMap
from rubric.errors import DefinitionError
from rubric.results.report_rows import Row, Status
from rubric.results.summary import summarise
from rubric.scoring.intervals import mean_interval, share_interval
from rubric.suites.baseline import drop_of
from rubric.suites.report import Report
from rubric.trust.inference import paired_contrast
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from rubric.results.result import Grade, Ungraded


def covered(runs: int, draw: Callable[[random.Random], tuple[list[float], list[int] | None]], truth: float) -> float:
    """Return the share of *runs* whose interval holds the *truth*."""
    chance, hits = random.Random(13), 0
    for _ in range(runs):
        interval = mean_interval(*draw(chance))
        assert interval is not None
        assert interval[1] > interval[0]
        hits += interval[0] <= truth <= interval[1]
    return hits / runs


@each_row("n", [5, 20, 50])
@each_row("p", [0.5, 0.8, 0.95])
def test_the_interval_of_a_mean_covers_the_truth(n: int, p: float) -> None:
    """Of scores in quarters, which small samples near an end show with too little spread."""
    scores = [sum(i < j for i in range(4)) / 4 for j in range(5)]
    weights = [[1, 4, 6, 4, 1][k] * p**k * (1 - p) ** (4 - k) for k in range(5)]
    assert covered(600, lambda chance: (chance.choices(scores, weights, k=n), None), p) >= 0.93


@pytest.mark.parametrize("p", [0.5, 0.95])
@pytest.mark.parametrize("together", [0.1, 0.6])
def test_the_interval_of_groups_covers_the_truth(p: float, together: float) -> None:
    """20 prompts with ten candidates each, alike within a prompt."""

    def draw(chance: random.Random) -> tuple[list[float], list[int]]:
        shares = [chance.betavariate(p * (1 / together - 1), (1 - p) * (1 / together - 1)) for _ in range(20)]
        return [float(chance.random() < share) for share in shares for _ in range(10)], [i // 10 for i in range(200)]

    assert covered(400, draw, p) >= 0.92


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=60))
def test_the_interval_of_zeros_and_ones_is_that_of_a_share(values: list[float]) -> None:
    """The mean of binary values has the interval of a proportion."""
    assert mean_interval(values) == share_interval(round(sum(values)), len(values))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.data())
def test_no_interval_is_a_point(values: list[float], data: st.DataObject) -> None:
    """Whatever the groups are, two at least; and it holds the mean."""
    groups = [0, 1, *data.draw(st.lists(st.integers(0, 5), min_size=len(values) - 2, max_size=len(values) - 2))]
    interval = mean_interval(values, groups)
    assert interval is not None
    assert 0 <= interval[0] < interval[1] <= 1
    assert interval[0] - 1e-9 <= fmean(values) <= interval[1] + 1e-9


def test_more_of_the_same_narrows_the_interval() -> None:
    """Five grades of 1.0 are less than fifty."""
    widths = [high - low for low, high in filter(None, (mean_interval([0.75] * n) for n in (2, 5, 20, 100)))]
    assert all(wide > narrow > 0 for wide, narrow in pairwise(widths))


def test_one_group_has_no_interval() -> None:
    """Nothing tells how much groups differ."""
    assert mean_interval([0.2, 0.8, 0.9], ["a", "a", "a"]) is None


# -- summaries -------------------------------------------------------------------------------------------


def graded(groups: int, size: int = 4) -> list[Grade | Ungraded]:
    """Return grades of candidates in groups, in every other of which all are thankful."""
    texts = ("thanks", "no")
    given = [Candidate(texts[g % 2], group=f"g{g}") for g in range(groups) for _ in range(size)]
    return [*grade_many(given, "thanks", "offline").collect()]


def test_a_summary_is_by_group() -> None:
    """A hundred answers to 25 prompts, alike within a prompt, are not a hundred observations."""
    grouped, alone = summarise(graded(25)), summarise(graded(25), [None] * 100)
    assert (grouped.groups, alone.groups) == (25, None)
    for wide, narrow in ((grouped.pass_interval, alone.pass_interval), (grouped.mean_interval, alone.mean_interval)):
        assert wide is not None
        assert narrow is not None
        assert wide[1] - wide[0] > 1.7 * (narrow[1] - narrow[0])
    assert grouped.criteria[0].interval == grouped.pass_interval
    assert "25, and intervals are by group" in str(grouped)
    assert "too narrow" not in str(grouped)


def test_few_groups_are_remarked_on() -> None:
    """The summary warns of narrow intervals at 20 groups and below."""
    assert "6 groups: with 20 or fewer, intervals can be too narrow" in str(summarise(graded(6)))


def test_repeated_keys_are_a_group() -> None:
    """The same item judged twice is one item; keys that differ are none."""
    twice = grade_many([Candidate("thanks", key=str(n // 2)) for n in range(60)], "thanks", "offline").collect()
    assert twice.summary().groups == 30
    assert (
        grade_many([Candidate("thanks", key=str(n)) for n in range(60)], "thanks", "offline").collect().summary().groups
        is None
    )
    assert twice[0].cluster == twice[1].cluster


# -- drops -----------------------------------------------------------------------------------------------


def report(verdicts: list[bool], scores: list[float] | None = None) -> Report:
    scores = scores or [0.9 if verdict else 0.2 for verdict in verdicts]
    status: dict[bool, Status] = {True: "passed", False: "failed"}
    rows = zip(verdicts, scores, strict=True)
    return Report("s", tuple(Row(str(n), status[v], score=s, threshold=0.7) for n, (v, s) in enumerate(rows)))


def alarms(cases: int, flips: float, drop: float, runs: int = 300) -> float:
    """Return how often two runs of a system with noisy verdicts, the second worse by *drop*, fail."""
    chance, failed = random.Random(5), 0
    for _ in range(runs):
        truth = [chance.random() < 0.8 for _ in range(cases)]
        worse = [t and chance.random() >= drop / 0.8 for t in truth]
        before, after = ([t ^ (chance.random() < flips) for t in run] for run in (truth, worse))
        failed += report(after).compare(report(before)).exit_code == 1
    return failed / runs


@pytest.mark.long
@pytest.mark.parametrize("cases", [20, 50, 200])
def test_noise_is_no_drop(cases: int) -> None:
    """The same system graded twice, with 2 % of the verdicts flipping."""
    assert alarms(cases, flips=0.02, drop=0) <= 0.06


def test_a_drop_lies_within_the_scale() -> None:
    """Of few cases too: two shares are at most 1 apart, as `rubric.trust.compare` has it."""
    found = drop_of("pass rate", [(1, 0), (1, 1), (0, 0), (1, 0)], ["a", "b", "c", "d"], 0.025)
    assert found is not None
    assert (found.interval[1], found.is_shown) == (1, False)


@pytest.mark.long
def test_a_drop_is_found() -> None:
    """Of .10 over 200 cases, with 5 % flips."""
    assert alarms(200, flips=0.05, drop=0.1) >= 0.8


def of_runs(verdicts: list[list[bool]]) -> Report:
    """Return the report of cases with several runs each."""
    status: dict[bool, Status] = {True: "passed", False: "failed"}
    rows = ((case, run, v) for case, runs in enumerate(verdicts) for run, v in enumerate(runs, 1))
    return Report(
        "s", tuple(Row(f"{c} [run {r}]", status[v], score=float(v), cell=FrozenMap({"run": r})) for c, r, v in rows)
    )


@pytest.mark.long
def test_the_runs_of_a_case_are_one_draw() -> None:
    """20 cases with ten runs each, of which each case moves at random: one alarm in twenty, not in nine."""
    chance, failed = random.Random(5), 0
    for _ in range(400):
        shares = [(chance.betavariate(2, 1), chance.gauss(0, 0.15)) for _ in range(20)]
        before, after = (
            of_runs([[chance.random() < share + sign * moved for _ in range(10)] for share, moved in shares])
            for sign in (0.5, -0.5)
        )
        failed += after.compare(before).exit_code
    assert failed / 400 <= 0.055


def test_two_comparisons_of_the_same_runs_agree() -> None:
    """`Report.compare` and `rubric.trust.compare` give one interval, and count the cases."""
    before, after = ([[True] * 5, [True] * 5, [n < late for n in range(5)], [True] * 5] for late in (4, 2))
    (drop,) = of_runs(after).compare(of_runs(before), risk=0.025).drops
    assert (drop.n, drop.cases) == (20, 4)
    assert "4 cases with 20 runs" in str(of_runs(after).compare(of_runs(before)))
    moved = np.array(
        [float(a) - float(b) for x, y in zip(after, before, strict=True) for a, b in zip(x, y, strict=True)]
    )
    found = paired_contrast(moved, np.repeat(np.arange(4), 5))
    assert found is not None
    assert found.interval == pytest.approx((-drop.interval[1], -drop.interval[0]))


@pytest.mark.long
@pytest.mark.parametrize("cases", [20, 50, 200])
def test_a_detectable_drop_is_found_in_four_of_five(cases: int) -> None:
    """Within a tenth, for verdicts that flip in 5 % of the cases."""
    (drop, *_) = report([n % 20 > 1 for n in range(cases)]).compare(report([n % 20 != 1 for n in range(cases)])).drops
    assert alarms(cases, flips=0.025, drop=drop.detectable) == pytest.approx(0.8, abs=0.12)


def test_a_drop_of_scores_is_found_where_verdicts_hold() -> None:
    """All pass, and all scores fell; and nothing is said of scores that only repeat the verdict."""
    before = report([True] * 40, [0.95 - n / 500 for n in range(40)])
    found = report([True] * 40, [0.80 - n / 500 for n in range(40)]).compare(before)
    assert found.exit_code == 1
    assert [drop.measure for drop in found.drops if drop.is_shown] == ["mean score"]
    assert [drop.measure for drop in report([True, False]).compare(report([True, True])).drops] == ["pass rate"]


def test_a_comparison_states_its_power_and_what_it_leaves_out() -> None:
    """Fifty cases show large drops only."""
    before, after = report([True] * 50), report([False] + [True] * 49)
    rows = (*after.rows[:-1], Row("49", "ungraded"))
    found = Report("s", rows).compare(Report("s", (*before.rows[:-1], Row("49", "ungraded"))))
    text = str(found)
    assert "The pass rate fell by 0.020" in text
    assert "no drop is shown" in text
    assert "1 case left out" in text
    assert "A drop of 0.16 is found by 80 % of such comparisons." in text
    assert text.splitlines()[-1] in found._repr_markdown_()
    assert "No drop is so large" in str(report([True, False]).compare(report([False, True])))
    assert found.to_dict()["drops"][0]["is_shown"] is False


def test_a_case_that_is_no_longer_graded_is_an_error() -> None:
    """A judge that failed is neither worse nor as good."""
    before = report([True] * 30)
    assert Report("s", (*before.rows[:-1], Row("29", "ungraded"))).compare(before).exit_code == 2


def test_too_few_cases_say_nothing() -> None:
    """One case in each run gives no drop and a sentence that says so."""
    assert drop_of("pass rate", [(1.0, 0.0)], ["a"], 0.05) is None
    assert "nothing can be compared" in str(report([False]).compare(report([True])))


@pytest.mark.parametrize("risk", [0, 1, "x"])
def test_a_risk_is_a_probability(risk: float) -> None:
    """0, 1 and texts are refused."""
    with pytest.raises(DefinitionError, match="risk"):
        report([True]).compare(report([True]), risk=risk)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30))
@example([(0.0, 0.0), (0.0, 3.969418620084719e-276)])
def test_swapping_the_runs_negates_the_drop(pairs: list[tuple[float, float]]) -> None:
    """The drop and its interval change sign."""
    cases = [*map(str, range(len(pairs)))]
    there = drop_of("mean score", pairs, cases, 0.05)
    back = drop_of("mean score", [(b, a) for a, b in pairs], cases, 0.05)
    assert there is not None
    assert back is not None
    assert there.drop == pytest.approx(-back.drop)
    assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]))
    assert there.interval[0] < there.interval[1]
