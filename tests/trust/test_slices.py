"""Errors by length, by group and by any name: found where they are, and silent where they are not."""

from __future__ import annotations

import json
import random

import pytest
from attrs import evolve

from rubric import Candidate, DefinitionError, Grades, Rubric
from rubric.internals.frozen_map import FrozenMap
from rubric.trust import Labels, errors_by
from tests.recorded import grades

GOOD = Rubric("r").expects("Good", id="good").rates("Clear", {1: "no", 5: "yes"}, id="clear")
TONE = Rubric("r").chooses("Tone", {"warm": 1, "cold": 0}, id="tone")


def sample(n: int, seed: int, harder: float = 0.0, groups: bool = False) -> tuple[Grades, Labels]:
    """Return a judge that is right in .9 of short answers, and fails .1 + *harder* of the long ones that people pass."""
    chance = random.Random(seed)
    people = {k: {"good": chance.random() < 0.7, "clear": chance.randint(2, 5)} for k in range(n)}
    said = {}
    for k, one in people.items():
        wrong = chance.random() < 0.1
        fails = k % 2 and one["good"] and chance.random() < harder
        said[k] = {
            "good": False if fails else one["good"] ^ wrong,
            "clear": one["clear"] - (bool(k % 2) and harder > 0),
        }
    results = grades(GOOD, said, {k: k // 10 for k in range(n)} if groups else None)
    texts = ("Yes. " * (40 if k % 2 else 2) for k in range(n))
    return Grades(evolve(r, candidate=Candidate(t, key=r.key)) for r, t in zip(results, texts, strict=True)), Labels(
        people
    )


def test_a_judge_that_is_harder_on_long_answers_is_told() -> None:
    """The difference with its interval, in the sentence and the slices; numbers likewise."""
    found = errors_by(*sample(300, 1, 0.3), criterion="good")
    assert found.sentence.startswith("Beside people, the judge is harder on long answers than on the others by 0.")
    difference = found["long"].difference
    assert difference is not None
    assert difference.interval is not None
    assert difference.interval[1] < 0
    assert found["long"].shown
    assert found["short"].n == 150
    clear = errors_by(*sample(300, 1, 0.3), criterion="clear")["long"].difference
    assert clear is not None
    assert clear.value == pytest.approx(-1)
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.long
@pytest.mark.parametrize("groups", [False, True])
def test_a_judge_that_errs_alike_everywhere_is_left_in_peace(groups: bool) -> None:
    """In 150 samples of 80 labels a difference is told in 5 % at most, with and without groups."""
    told = [errors_by(*sample(80, seed, 0.0, groups), criterion="good")["long"].shown for seed in range(150)]
    assert sum(told) <= 0.08 * 150


def test_slices_are_groups_or_any_names() -> None:
    """Each group, or each name of a mapping by key; labels without a name are counted."""
    results, labels = sample(120, 2, 0.0, groups=True)
    assert len(errors_by(results, labels, "group", criterion="good")) == 12
    named = {str(k): "billing" if k < 30 else "refund" for k in range(100)}
    found = errors_by(results, labels, named, criterion="good")
    assert [(one.id, one.n) for one in found] == [("billing", 30), ("refund", 70)]
    assert found.remarks() == ["20 labelled candidates are in no slice."]
    assert found.sentence == "No difference in the judge's errors is shown between 2 slices of 100 labels."


def test_slices_are_values_of_a_variable() -> None:
    """By the name of a variable of the candidates, as `Grades.by` has it, also of a file of results."""
    results, labels = sample(120, 2)
    topics = {str(k): "billing" if k < 30 else "refund" for k in range(120)}
    named = Grades(evolve(r, variables=FrozenMap({"topic": topics[r.key]})) for r in results)
    expected = errors_by(results, labels, topics, criterion="good")
    assert errors_by(named, labels, "topic", criterion="good") == expected
    assert [one.n for one in errors_by(named, labels, by="topic", criterion="good")] == [30, 90]
    with pytest.raises(DefinitionError, match="did you mean 'topic'"):
        errors_by(named, labels, by="topics", criterion="good")


def test_slices_have_the_remarks_of_their_labels() -> None:
    """Labels after a look at the verdict are counted, those with weights refused, and a random sample has no remark."""
    results, labels = sample(200, 3)
    rows = [row for row in labels if row.criterion == "good" and int(row.key) % 3 == 0]
    assert errors_by(results, Labels(rows)).notes == ()
    seen = Labels([evolve(row, judge_seen=k < 10) for k, row in enumerate(rows)])
    assert "10 labels left out" in str(errors_by(results, seen))
    with pytest.raises(DefinitionError, match="have weights"):
        errors_by(results, Labels([evolve(row, weight=1.0 + k % 2) for k, row in enumerate(rows)]))


def test_options_have_a_rate_of_errors() -> None:
    """The judge errs more often on one topic."""
    judge = grades(TONE, {k: {"tone": "cold" if k < 20 else "warm"} for k in range(60)})
    labels = Labels({k: {"tone": "warm"} for k in range(60)})
    found = errors_by(judge, labels, {str(k): "a" if k < 20 else ("b" if k < 40 else "c") for k in range(60)})
    assert "the judge errs more often on a answers" in found.sentence


def test_what_cannot_be_divided_says_why() -> None:
    """Unknown criteria, results without candidates, and a single slice."""
    results, labels = sample(60, 3)
    with pytest.raises(DefinitionError, match=r"there are labels for: 'good', 'clear'"):
        errors_by(results, labels)
    with pytest.raises(DefinitionError, match="grades that hold their candidates"):
        errors_by([evolve(one, candidate=None) for one in results], labels, criterion="good")
    with pytest.raises(DefinitionError, match="no result here has it: a mapping from keys to names"):
        errors_by(results, labels, "group", criterion="good")
