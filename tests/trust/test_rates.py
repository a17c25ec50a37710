"""Rates per class: the shares of textbooks, and intervals that hold."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Rubric
from rubric.embed import share_interval
from rubric.trust import Labels, agreement
from rubric.trust.rates import balanced_accuracy, rates_of
from tests.examples import examples
from tests.recorded import grades

CODES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=40)


def of_table(hits: int, misses: int, alarms: int, rest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what a judge and people say, by the four cells of a table."""
    judge = [1] * hits + [0] * misses + [1] * alarms + [0] * rest
    people = [1] * (hits + misses) + [0] * (alarms + rest)
    return np.array(judge, dtype=float), np.array(people, dtype=float)


def test_a_textbook_table_has_the_rates_of_the_textbook() -> None:
    """Altman and Bland, BMJ 308 (1994), liver scans: sensitivity 231 of 258, specificity 54 of 86, PPV 231 of 263, NPV 54 of 81."""
    judge, people = of_table(231, 27, 32, 54)
    no, yes = rates_of(judge, people, ("no", "yes"), None)
    assert yes.recall.value == no.specificity.value == 231 / 258
    assert no.recall.value == yes.specificity.value == 54 / 86
    assert (yes.precision.value, no.precision.value) == (231 / 263, 54 / 81)
    assert yes.recall.interval == share_interval(231, 258)
    assert yes.f1.value == pytest.approx(2 * 231 / (2 * 231 + 27 + 32))
    assert balanced_accuracy((no, yes), judge, people, None).value == pytest.approx((231 / 258 + 54 / 86) / 2)


@examples(60)
@given(CODES)
def test_rates_are_those_of_the_confusion_matrix(pairs: list[tuple[int, int]]) -> None:
    """Precision, recall, F1 and balanced accuracy by their definitions, class by class."""
    judge, people = (np.array(one, dtype=float) for one in zip(*pairs, strict=True))
    found = rates_of(judge, people, ("a", "b", "c"), None)
    recalls = []
    for code, one in enumerate(found):
        hits = sum(j == p == code for j, p in pairs)
        said, true = sum(j == code for j, _ in pairs), sum(p == code for _, p in pairs)
        assert (one.people, one.judge) == (true, said)
        assert one.recall.value == (pytest.approx(hits / true) if true else None)
        assert one.precision.value == (pytest.approx(hits / said) if said else None)
        assert one.f1.value == (pytest.approx(2 * hits / (said + true)) if said + true else None)
        recalls += [hits / true] if true else []
        for statistic in (one.recall, one.specificity, one.precision, one.f1):
            if statistic.interval is not None:
                assert 0 <= statistic.interval[0] <= (statistic.value or 0) <= statistic.interval[1] <= 1
    whole = balanced_accuracy(found, judge, people, None)
    assert whole.value == (pytest.approx(sum(recalls) / len(recalls)) if len(recalls) > 1 else None)


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "groups", "name"), [(60, 0, "TPR"), (60, 0, "F1"), (60, 0, "balanced"), (200, 40, "balanced")]
)
def test_intervals_of_rates_hold_in_simulation(n: int, groups: int, name: str) -> None:
    """In 300 samples of a judge with a known TPR and TNR, 95 % intervals cover at least 92 %."""
    chance, tpr, tnr, share = random.Random(5), 0.9, 0.75, 0.6
    truth = {"TPR": tpr, "balanced": (tpr + tnr) / 2}
    truth["F1"] = 2 * share * tpr / (share * tpr + (1 - share) * (1 - tnr) + share)
    covered = 0
    for _ in range(300):
        shifts = [chance.uniform(-0.1, 0.1) for _ in range(groups or 1)]
        among = [k % groups for k in range(n)] if groups else None
        people = np.array([float(chance.random() < share) for _ in range(n)])
        judge = np.array([
            float(chance.random() < (tpr if p else 1 - tnr) + (shifts[among[k]] if among else 0) * (1 if p else -1))
            for k, p in enumerate(people)
        ])  # fmt: skip
        codes = None if among is None else np.array(among)
        no, yes = rates_of(judge, people, ("no", "yes"), codes)
        statistic = {"TPR": yes.recall, "F1": yes.f1}.get(name) or balanced_accuracy((no, yes), judge, people, codes)
        low, high = statistic.interval or (0, 1)
        covered += low <= truth[name] <= high
    assert covered >= 0.92 * 300


def test_agreement_has_rates_of_verdicts_and_of_options() -> None:
    """By their usual names before the coefficients; each option has its own."""
    judge = {n: {"good": n % 3 != 0, "tone": ("warm", "cold", "rude")[n % 3]} for n in range(60)}
    people = {n: {"good": n % 4 != 0, "tone": ("warm", "cold", "warm")[n % 3]} for n in range(60)}
    rubric = Rubric("r").expects("Good", id="good").chooses("Tone", {"warm": 1, "cold": 0.5, "rude": 0}, id="tone")
    found = agreement(grades(rubric, judge), Labels(people))
    names = [one.name for one in found["good"].statistics]
    assert names[:8] == ["agreement", "TPR", "TNR", "precision", "NPV", "F1", "balanced accuracy", "kappa"]
    assert found["good"]["TPR"].value == pytest.approx(sum(n % 3 != 0 and n % 4 != 0 for n in range(60)) / 45)
    assert [one.name for one in found["tone"].rates] == ["warm", "cold", "rude"]
    assert found["tone"].rates[2].recall.value is None
    assert found["tone"].rates[2].recall.reason == "people say rude of none"
    assert found["tone"]["balanced accuracy"].value == pytest.approx((0.5 + 1) / 2)
