"""A threshold that is chosen by labels: what each would do, by the rules of grading, and what the choice is worth."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import DefinitionError, Grades, Rubric
from rubric.trust import Labels, Thresholds, agreement, thresholds
from rubric.trust.ratings import whole_of
from tests.examples import examples
from tests.recorded import grades, jury
from tests.rows import each_row

SCORED = Rubric("replies").scores("How good", id="good")


def sample(n: int, seed: int = 1, *, cut: float = 0.45, noise: float = 0.12) -> tuple[Grades, Labels]:
    """Return grades of a judge whose scores lie near the quality, and verdicts of people who pass from *cut*."""
    chance = random.Random(seed)
    quality = [chance.random() for _ in range(n)]
    said = {k: {"good": min(1.0, max(0.0, round(q + chance.gauss(0, noise), 3)))} for k, q in enumerate(quality)}
    return grades(SCORED, said), Labels({k: q >= cut for k, q in enumerate(quality)})


def test_a_threshold_is_chosen_for_agreement_and_applied() -> None:
    """From verdicts at .45, a threshold near it; the figure is cross-fitted, and lies below the apparent one."""
    given_, labels = sample(200)
    found = thresholds(given_, labels)
    best = found.best()
    assert best.threshold == pytest.approx(0.45, abs=0.06)
    assert best.now[0] == 0.7
    agreement = best["agreement"]
    assert agreement.value is not None
    assert best.now[1] < agreement.value <= best.apparent
    rubric = SCORED.passing_at(best.threshold)
    right = [r.rescore(rubric).passed is label.value for r, label in zip(given_, labels, strict=True)]
    assert sum(right) / 200 == pytest.approx(best.apparent)
    assert str(found).startswith(f"Pass from {best.threshold:g}: the judge then agrees with people in ")
    json.dumps([found.to_dict(), best.to_dict()], allow_nan=False)


@pytest.mark.long
def test_weights_count_as_often_as_they_say() -> None:
    """Candidates of a half that was drawn three times as often weigh a third, in the curve and in the choice."""
    given_, labels = sample(240)
    rows = [*labels]
    odd = [evolve(row, weight=3.0 if int(row.key) % 2 else 1.0) for row in rows]
    repeated = thresholds(Grades([r for r in given_ for _ in range(3 if int(r.key) % 2 else 1)]), Labels(rows))
    weighted = thresholds(given_, Labels(odd))
    assert [p.agreement for p in weighted] == pytest.approx([p.agreement for p in repeated], abs=0.01)
    low, high = weighted.best()["agreement"].interval or (0, 1)
    assert high - low > 0.05


def test_labels_of_very_uneven_weight_say_why_their_figures_have_no_interval() -> None:
    """Forty labels of which two weigh a hundred times as much are worth few, and the print says so."""
    given_, labels = sample(40)
    found = thresholds(
        given_, Labels([evolve(row, weight=100.0 if place < 2 else 1.0) for place, row in enumerate(labels)])
    )
    assert found.best()["agreement"].interval is None
    assert "fewer than 30, have no interval" in str(found)


def test_labels_that_chose_a_threshold_are_remarked_on_when_they_measure_it() -> None:
    """The rubric of a choice names them; other labels have no such remark."""
    given_, labels = sample(200)
    chosen = thresholds(given_, Labels([*labels][:100])).best().rubric
    again = given_.rescore(chosen)
    assert any("chose the rubric" in remark for remark in agreement(again, Labels([*labels][:100])).remarks())
    assert not any("chose the rubric" in remark for remark in agreement(again, Labels([*labels][100:])).remarks())


def test_a_threshold_serves_a_stated_rate_or_cost() -> None:
    """The strictest with a TPR, the most lenient with a TNR, the nearest to a pass rate, the cheapest."""
    found = thresholds(*sample(300))
    by = {p.threshold: p for p in found}
    strict, lenient = found.best("TPR", 0.95), found.best("TNR", 0.95)
    assert by[strict.threshold].tpr >= 0.95
    assert all(p.tpr < 0.95 for p in found if p.threshold > strict.threshold)
    assert by[lenient.threshold].tnr >= 0.95
    assert all(p.tnr < 0.95 for p in found if p.threshold < lenient.threshold)
    half = found.best("pass rate", 0.5)
    assert half["pass rate"].value == pytest.approx(0.5, abs=0.01)
    assert found.best("cost", 10).threshold > found.best("cost", 1).threshold > found.best("cost", 0.1).threshold
    assert found.best("cost", 1).threshold == found.best("agreement").threshold
    assert abs(found.best("balanced").threshold - 0.45) < 0.1


@pytest.mark.long
@examples(25)
@given(st.integers(0, 10**6))
def test_points_are_those_of_results_scored_again(seed: int) -> None:
    """Under each threshold the verdicts of grading, with gates, several criteria and juries."""
    chance = random.Random(seed)
    rubric = Rubric("r", threshold=0.6).scores("Good", id="a", weight=2).expects("B", id="b").requires("C", id="c")

    def say() -> dict[str, Any]:
        return {"a": chance.randint(0, 4) / 4, "b": chance.random() < 0.6, "c": chance.random() < 0.9}

    results = jury(rubric, {k: [say() for _ in range(3)] for k in range(30)}) if seed % 2 else None
    results = results or grades(rubric, {k: say() for k in range(30)})
    people = {k: k % 3 > 0 for k in range(30)}
    for point in thresholds(results, Labels(people)):
        again = [r.rescore(threshold=point.threshold).passed for r in results]
        assert point.pass_rate == pytest.approx(np.mean([passed is True for passed in again]))
        assert point.agreement == pytest.approx(np.mean([p is people[k] for k, p in enumerate(again)]))


@pytest.mark.long
def test_cross_fitted_figures_hold_in_simulation() -> None:
    """In 100 samples of 40 labels the interval of the agreement covers that of the choice in at least 92 %."""
    large, truth = sample(4_000, 99)
    scores = np.array([r.score or 0.0 for r in large])
    passed = np.array([label.value for label in truth])
    covered, optimism = 0, 0.0
    for seed in range(100):
        best = thresholds(*sample(40, seed)).best()
        true = float(np.mean((scores >= best.threshold) == passed))
        low, high = best["agreement"].interval or (0, 1)
        covered += low <= true <= high
        optimism += (best.apparent - true) / 100
    assert covered >= 92
    assert optimism > 0.01  # why the apparent figure is not the one that is shown


@each_row(
    ("make", "message"),
    [
        (lambda g, t: thresholds(g, Labels({k: {"good": True} for k in range(40)})), "expected verdicts on the whole"),
        (lambda g, t: thresholds(g, {k: 1 + k % 5 for k in range(40)}), "scores; .* such as passes_from=4$"),
        (lambda g, t: thresholds(g, {k: {"good": k / 40} for k in range(40)}), "scores; .* such as passes_from=0.73$"),
        (
            lambda g, t: thresholds(g, {0: 4, 1: "n/a"}, passes_from=4),
            r"labels\[1\]: .* got 'n/a'; .* leave its cell empty",
        ),
        (lambda g, t: thresholds(g, Labels(dict.fromkeys(range(40), True))), "some passed and some failed"),
        (lambda g, t: thresholds(g, Labels({k: k > 3 for k in range(9)})), "20 graded candidates .* got 9, 5 of them"),
        (lambda g, t: t.best("TPR"), r"aim: 'TPR' takes a rate in 0..1, such as at=0.95$"),
        (lambda g, t: t.best("cost"), "aim: 'cost' takes what a false pass costs in false fails, such as at=5$"),
        (lambda g, t: t.best("agreement", 0.5), "takes no number"),
        (lambda g, t: t.best("pass rate", 5), "at: expected a finite number from 0 to 1"),
        (
            lambda g, t: thresholds("graded.jsonl", Labels({0: True})),  # type: ignore[arg-type]
            r"grades: expected .* Grades.read_jsonl\(path, rubric\)",
        ),
        (lambda g, t: t.best("F1"), "aim: unknown value .F1.; allowed: agreement, balanced"),
        (
            lambda g, t: thresholds([r.rescore(SCORED.strictly()) for r in g], Labels({0: True})),
            "expected grades that pass from a threshold, and the rubric is strict",
        ),
    ],
)
def test_what_cannot_be_chosen_says_why(make: Any, message: str) -> None:
    """Each error says what was expected, and what would do."""
    given_, labels = sample(60)
    with pytest.raises(DefinitionError, match=message):
        make(given_, thresholds(given_, labels))


@pytest.mark.long
def test_labels_of_all_criteria_are_verdicts_by_the_rubric() -> None:
    """The printed line chooses by them; without a label of one criterion, or with evidence, they are none."""
    rubric = (
        Rubric("r", threshold=0.6)
        .requires("A", id="a")
        .expects("B", id="b")
        .forbids("C", id="c")
        .rates("D", {1: "no", 5: "yes"}, id="d")
    )
    chance = random.Random(1)
    said = {n: {"a": chance.random() < 0.9, "b": n % 2 == 0, "c": n % 7 == 0, "d": n % 5 + 1} for n in range(60)}
    graded = grades(rubric, said)
    people = Labels(said)
    assert [row.value for row in whole_of(graded, people)] == [one.passed for one in graded]
    with pytest.raises(DefinitionError, match="expected verdicts on the whole, got labels of criteria") as no:
        thresholds(graded, people)
    line = str(no.value).partition("write ")[2].partition(" to hold")[0]
    assert line == "thresholds(grades, labels, by_rubric=True)"
    found = eval(line, {"thresholds": thresholds, "grades": graded, "labels": people})  # noqa: S307 - the printed line
    assert found.best()["agreement"].value == 1
    some = Labels([row for row in people if row.criterion != "d"])
    with pytest.raises(DefinitionError, match="nobody labels all criteria"):
        whole_of(graded, some)
    with pytest.raises(DefinitionError, match=r"label whether each should pass: \{key: True\}$"):
        thresholds(graded, some)


def test_curves_are_plotted_beside_the_grades() -> None:
    """The chart of thresholds is one of those that `grades.plot` shows."""
    given_, labels = sample(60)
    found = thresholds(given_, labels)
    assert isinstance(found, Thresholds)
    assert len(given_.plot(found).to_dict()["vconcat"]) == 3


def test_a_threshold_that_changes_no_verdict_is_remarked_on() -> None:
    """Between the scores that there are, one cut is as good as another: only the estimates differ."""
    said = {k: {"good": score} for k, score in enumerate([0.0, 0.5, 1.0] * 10)}
    labels = Labels({k: one["good"] == 1.0 for k, one in said.items()})
    best = thresholds(grades(SCORED, said), labels).best()
    assert best.now[0] == 0.7 != best.threshold
    assert "Each labelled candidate has the verdict that it has at 0.7; only the way of estimating differs." in (
        best.remarks()
    )
    assert not any("has at 0.7" in said for said in thresholds(*sample(200)).best().remarks())


def test_the_verdicts_of_the_old_threshold_are_no_remark_on_a_new_one() -> None:
    """A judge whose scores part what people pass is of use, although at its threshold nothing passes."""
    said = {k: {"good": 0.1 + 0.4 * (k % 2)} for k in range(40)}
    labels = Labels({k: k % 2 == 1 for k in said})
    best = thresholds(grades(SCORED.passing_at(0.95), said), labels).best()
    assert best["agreement"].value == 1
    assert not any("tells nothing" in remark for remark in best.remarks())


@each_row("of", ["the whole", "one criterion", "texts, and a gap"])
def test_scores_of_people_are_passes_from_one_of_them(of: str) -> None:
    """They choose what the verdicts that they stand for choose, and the labels are known again."""
    results, truth = sample(60, 3)
    scores = {row.key: 4 + int(row.value) if row.value else 1 + int(str(row.key)) % 3 for row in truth}
    given: Any = {key: {"good": score} for key, score in scores.items()} if of == "one criterion" else scores
    given = {**{key: str(score) for key, score in scores.items()}, "x": ""} if "gap" in of else given
    chosen, wanted = thresholds(results, given, passes_from=4), thresholds(results, truth)
    assert (chosen.points, chosen.n) == (wanted.points, wanted.n)
    again = [result.rescore(chosen.best().rubric) for result in results]
    assert any("chose the rubric" in note for note in thresholds(again, given, passes_from=4).notes)
