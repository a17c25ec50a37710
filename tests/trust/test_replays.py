"""Published figures of judges and people, from the recorded ratings: what they print, we print."""

from __future__ import annotations

import csv
from statistics import fmean
from typing import Any

import pytest

from rubric import Rubric
from rubric.trust import Labels, agreement, calibrate, estimate
from tests.recorded import DATA, expected, grades, lines, needs_data
from tests.rows import each_row

pytestmark = needs_data


def test_hanna_means_of_systems() -> None:
    """The mean of a judge for each system and criterion; the intervals are by story."""
    rows = [row for row in lines("hanna", "ratings.jsonl") if row["judges"].get("Beluga-13B prompt 1")]
    names = list(rows[0]["human"])
    rubric = Rubric(
        "story", criteria=[Rubric().rates(name, {1: "low", 5: "high"}, id=name).criteria[0] for name in names]
    )
    for system, means in expected("hanna").items():
        if system == "source":
            continue
        mine = {row["story"]: row["judges"]["Beluga-13B prompt 1"] for row in rows if row["system"] == system}
        summary = grades(rubric, mine).summary()
        found = [1 + 4 * (one.mean or 0.0) for one in summary.criteria]
        assert [*found, fmean(found)] == pytest.approx(means, abs=5.1e-3)


def test_unieval_correlations() -> None:
    """Pearson, Spearman and Kendall of a judge in 0..1 with people on 1..6, to six digits."""
    rows = lines("unieval", "scores.jsonl")
    for name, said in expected("unieval").items():
        if name == "source":
            continue
        rubric = Rubric().scores(name, id=name)
        given = grades(rubric, {row["item"]: {name: row["judge"][name]} for row in rows})
        found = agreement(given, Labels({row["item"]: {name: (row["human"][name] - 1) / 5} for row in rows}))[name]
        assert [found[one].value for one in ("pearson", "spearman", "kendall")] == pytest.approx(said, abs=5e-7)


def test_pandalm_kappa_of_annotators() -> None:
    """Cohen's kappa of each pair, and how often the majority says what."""
    rows = lines("pandalm", "testset.jsonl")
    rubric = Rubric().chooses("Which is better?", {"0": 0.5, "1": 0, "2": 1}, id="better")
    by = [grades(rubric, {n: {"better": str(row["annotators"][k])} for n, row in enumerate(rows)}) for k in range(3)]
    said = expected("pandalm")
    for pair, kappa in said["kappa"].items():
        a, b = (by[int(number) - 1] for number in pair.split("-"))
        assert agreement(a, b)["better"]["kappa"].value == pytest.approx(kappa, abs=5e-3)
    people = Labels({n: {"better": [str(each) for each in row["annotators"]]} for n, row in enumerate(rows)})
    confusion = agreement(by[0], people)["better"].confusion
    assert [sum(row) for row in confusion] == [*said["majority"].values()]


def llm_rubric(question: str, kind: str) -> tuple[Any, Labels]:
    """Return a judge's levels for a question, and what each annotator said of the same text, a candidate each."""
    rubric = Rubric().rates(question, {1: "low", 4: "high"}, id=question)
    machine = {
        row["text_id"]: row for row in lines("llm_rubric", "machine_synth.jsonl") if row["criterion"] == question
    }
    with (DATA / "llm_rubric" / "human_synth.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["text_id"] in machine]
    said, people, groups = {}, {}, {}
    for n, row in enumerate(rows):
        probs = machine[row["text_id"]]["probs"]
        best = 1 + max(range(4), key=lambda level: probs[level])
        mean = sum(p * (level + 1) for level, p in enumerate(probs)) / sum(probs)
        if float(row[question] or 0) > 0:
            said[n] = {question: best if kind == "argmax" else mean}
            people[n], groups[n] = {question: float(row[question])}, row["text_id"]
    return grades(rubric, said, groups), Labels(people)


@each_row("question", [f"Q{n}" for n in range(9)])
@each_row("kind", ["argmax", "expected"])
def test_llm_rubric(question: str, kind: str) -> None:
    """RMSE and correlations of the likeliest level, and of the mean level, with 24 annotators."""
    said = expected("llm_rubric")[f"{question}/{kind}"]
    found = agreement(*llm_rubric(question, kind))[question]
    assert found.n == said["n"]
    assert found["RMSE"].value == pytest.approx(said["rmse"], abs=1e-9)
    for name in ("pearson", "spearman", "kendall"):
        assert found[name].value == pytest.approx(said[name], abs=1e-9), name


@pytest.mark.long
def test_llm_rubric_calibrated() -> None:
    """Out of fold the error falls; where the judge is no better than a constant, it says so."""
    for question in ("Q0", "Q1", "Q4", "Q7", "Q8"):
        for how in ("isotonic", "linear"):
            one = calibrate(*llm_rubric(question, "expected"), how)[question]
            assert one.uncalibrated is not None
            assert one.error < one.uncalibrated
            assert one.adds_nothing == (one.error >= one.constant)
    useless = calibrate(*llm_rubric("Q7", "expected"))
    assert "the judge adds nothing" in useless.sentence


def test_hanna_estimates_cover_the_mean_of_all_stories() -> None:
    """From 100 labels; the judge alone is far away."""
    rows = lines("hanna", "ratings.jsonl")
    rubric = Rubric().rates("RE", {1: "low", 5: "high"}, id="RE")
    judge = "Mistral-7B prompt 1"
    rows = [row for row in rows if row["judges"].get(judge, {}).get("RE") is not None]
    given = grades(rubric, {n: {"RE": row["judges"][judge]["RE"]} for n, row in enumerate(rows)})
    truth = fmean(fmean(row["human"]["RE"]) for row in rows)
    some = Labels({n: {"RE": [*map(float, rows[n]["human"]["RE"])]} for n in range(0, len(rows), len(rows) // 100)})
    found = estimate(given, some, criterion="RE")
    assert found.interval is not None
    assert found.interval[0] <= truth <= found.interval[1]
    assert found.labels_only.interval is not None
    assert found.interval[1] - found.interval[0] < found.labels_only.interval[1] - found.labels_only.interval[0]
