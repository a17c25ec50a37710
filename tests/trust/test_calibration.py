"""The interval of one calibrated score: what it covers, and how many labels it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rubric import DefinitionError, Rubric
from rubric.trust import calibrate
from rubric.trust.calibration import _margin
from tests.recorded import grades

RUBRIC = Rubric().scores("Is good", id="good")


def sample(chance: Any, count: int) -> tuple[Any, dict[int, float]]:
    """Return grades, and what people say: about the same."""
    said = chance.random(count)
    people = np.clip(said + chance.normal(0, 0.15, count), 0, 1)
    return grades(RUBRIC, {n: {"good": float(x)} for n, x in enumerate(said)}), dict(enumerate(people.tolist()))


@pytest.mark.parametrize("covered", [0.8, 0.95])
def test_the_interval_covers_new_labels(covered: float) -> None:
    """Over 25 samples of 60 labels, new labels lie in the interval as often as was asked."""
    chance, hits = np.random.default_rng(30), []
    for _ in range(25):
        given, people = sample(chance, 60)
        one = calibrate(given, {key: {"good": value} for key, value in people.items()}, "linear", covered=covered)[
            "good"
        ]
        xs = chance.random(200)
        ys = np.clip(xs + chance.normal(0, 0.15, 200), 0, 1)
        hits += [low <= y <= high for (low, high), y in zip([one(float(x)).interval for x in xs], ys, strict=True)]
    assert abs(np.mean(hits) - covered) < 0.03


def test_too_few_labels_are_refused_with_what_would_do() -> None:
    """For 99 % there must be 99 labels; the cure in the message works."""
    given, people = sample(np.random.default_rng(1), 30)
    labels = {key: {"good": value} for key, value in people.items()}
    with pytest.raises(DefinitionError, match=r"needs 99 labelled groups or more, got 30; label more, or .*=0\.96"):
        calibrate(given, labels, covered=0.99)
    assert calibrate(given, labels, covered=0.96)["good"].covered == 0.96


def test_each_group_has_one_share() -> None:
    """A group of many labels counts as much as one of a single label."""
    off, groups = np.array([*[0.9] * 50, *[0.1] * 9]), np.array([*[0] * 50, *range(1, 10)])
    assert _margin(off, groups, 0.8) == 0.1
    assert _margin(off, groups, 0.9) == 0.9
    assert _margin(off, np.arange(59), 0.8) == 0.9
