"""Edits of a rubric that are fitted to labels: what they are worth where they were not fitted, and when one is accepted."""

from __future__ import annotations

import json
import math
import random
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from rubric import DefinitionError, Grade, Grades, Rubric, Ungraded, dump, load
from rubric.quality import align
from rubric.quality.cross_fitting import cross_fit, missing_labels, p_of_gain
from rubric.trust import Label, Labels
from tests.command_line import run
from tests.recorded import result
from tests.rows import each_row

RUBRIC = Rubric("r").rates("Is clear", 0, 100, id="clarity")
Sample = tuple[list[Grade | Ungraded], dict[str, bool]]


def sample(n: int, cut: float, seed: int = 0, group: int = 1) -> Sample:
    """Return grades with a score that is as good as chance, and people who pass from *cut* on, with some noise."""
    chance = random.Random(seed)
    grades, labels = [], {}
    for place in range(n):
        score = chance.randint(0, 100)
        key = f"k{place}"
        grades.append(result(RUBRIC, {"clarity": score}, key=key, group=f"g{place // group}" if group > 1 else ""))
        labels[key] = chance.random() < 1 / (1 + np.exp(-12 * (score / 100 - cut)))
    return grades, labels


@pytest.mark.long
def test_a_better_threshold_is_accepted() -> None:
    """The new threshold lies near the true one, costs no call and raises the honest agreement."""
    found = align(RUBRIC, *sample(200, 0.4))
    edit = found.accepted[0]
    assert edit.kind == "threshold"
    assert 0.3 < (found.rubric.threshold or 0) < 0.5
    assert edit.honest > edit.before + 0.1
    assert (edit.calls, edit.missing, found.n) == (0, 0, 200)
    assert found.rubric.digest == RUBRIC.passing_at(found.rubric.threshold or 0).digest
    assert list(found.rubric.provenance) == ["labels"]
    assert len(edit.proposals) > 20
    assert "agreement rises from" in found.sentence


def test_nothing_accepted_is_the_old_rubric() -> None:
    """The result holds the same rubric object and says that no edit is better."""
    found = align(RUBRIC, *sample(100, 0.7))
    assert found.accepted == ()
    assert found.rubric is RUBRIC
    assert "No edit is shown to be better" in repr(found)


def test_labels_that_are_missing_are_counted() -> None:
    """An edit that is not shown to be better says how many more labels it needs."""
    found = align(RUBRIC, *sample(40, 0.58, seed=3), ["threshold"])
    assert not found.accepted
    assert found.edits[0].missing
    assert f"some {found.edits[0].missing} labels more" in str(found)


def test_a_weight_that_misleads_is_lowered() -> None:
    """A criterion that people ignore loses its weight, or the other gains."""
    rubric = Rubric("r", threshold=0.5).expects("Helps", id="helps").expects("Is long", id="long", weight=2)
    chance = random.Random(4)
    grades, labels = [], {}
    for place in range(200):
        helps, long = chance.random() < 0.5, chance.random() < 0.5
        grades.append(result(rubric, {"helps": helps, "long": long}, key=f"k{place}"))
        labels[f"k{place}"] = helps if chance.random() < 0.9 else not helps
    found = align(rubric, grades, labels, ["weights"])
    assert found.rubric["long"].weight == 0 or found.rubric["helps"].weight == 4
    assert found.accepted[0].honest > 0.8


def simulated(runs: int, n: int, old: float) -> tuple[float, float, float, float]:
    """Return how often an edit is accepted, and the honest, the apparent and the true agreement of the chosen one."""
    accepted, honest, apparent, true = [], [], [], []
    for run_ in range(runs):
        chance = np.random.default_rng(run_)
        scores = [np.round(chance.random(m), 2) for m in (n, 20_000)]
        labels = [chance.random(len(s)) < 1 / (1 + np.exp(-12 * (s - 0.5))) for s in scores]
        cuts = np.array([old, *(np.unique(np.quantile(scores[0], np.linspace(0.02, 0.98, 40))) + 0.005)])
        right = (scores[0][None] >= cuts[:, None]) == labels[0]
        best, out = cross_fit(right, np.arange(n))
        accepted.append(best != 0 and p_of_gain(right[0], out, np.arange(n)) <= 0.05)
        honest.append(out.mean())
        apparent.append(right[best].mean())
        true.append(((scores[1] >= cuts[best]) == labels[1]).mean())
    return float(np.mean(accepted)), float(np.mean(honest)), float(np.mean(apparent)), float(np.mean(true))


def test_the_honest_agreement_is_the_true_one_on_average_and_nothing_to_gain_is_rarely_accepted() -> None:
    """Cross-fitted agreement is unbiased, apparent agreement is not, and false edits stay near 5 %."""
    accepted, honest, apparent, true = simulated(100, 100, 0.5)
    assert abs(honest - true) < 0.03
    assert apparent - true > 0.015
    assert accepted <= 0.05 + 2 * (0.05 * 0.95 / 100) ** 0.5


def test_a_gain_of_a_tenth_is_found_with_200_labels() -> None:
    """At least 60 % of such samples lead to an accepted edit."""
    accepted, _, _, true = simulated(60, 200, 0.72)
    assert accepted >= 0.6
    assert true > 0.83


@pytest.mark.long
@pytest.mark.parametrize("pass_rate", [0.5, 0.9])
def test_a_judge_that_knows_nothing_is_not_made_a_constant(pass_rate: float) -> None:
    """Random grades lead to almost no edit, even if always passing would agree more."""
    rubric = Rubric("r", threshold=0.5).expects("A", id="a").expects("B", id="b").rates("C", 0, 10, id="c")
    accepted = 0
    for seed in range(12):
        chance = random.Random(seed)
        grades = [
            result(
                rubric,
                {"a": chance.random() < 0.5, "b": chance.random() < 0.5, "c": chance.randint(0, 10)},
                key=f"k{n}",
            )
            for n in range(60)
        ]
        found = align(rubric, grades, {f"k{n}": chance.random() < pass_rate for n in range(60)})
        accepted += bool(found.accepted)
        if pass_rate > 0.5:  # it would agree more if it always passed
            assert found.accepted or "as a constant's do not" in found.edits[0].why
    assert accepted <= 2


@pytest.mark.parametrize("said", [True, False, 0.5])
def test_where_people_say_the_same_of_all_no_gain_is_claimed(said: Any) -> None:
    """The rubric stays, and a remark gives the reason."""
    found = align(RUBRIC, sample(60, 0.4)[0], {f"k{n}": said for n in range(60)})
    assert (found.rubric, {edit.missing for edit in found.edits}) == (RUBRIC, {None})
    assert "threshold: people say the same of all candidates, so no gain can be shown." in found.remarks()


@pytest.mark.long
def test_labelled_candidates_without_a_grade_are_left_out_and_counted() -> None:
    """Ungraded results are skipped, and labels by place still match their candidates."""
    grades, labels = sample(100, 0.4)
    failed = [result(RUBRIC, {"clarity": None}), *grades]
    found = align(
        RUBRIC, [evolve(one, key="", index=None) for one in failed], dict(enumerate([True, *labels.values()]))
    )
    expected = align(RUBRIC, grades, labels)
    assert (found.n, found.ungraded, found.rubric.digest) == (
        100,
        1,
        expected.rubric.digest,
    )  # labels by place stay with theirs
    assert "1 labelled candidate without a grade left out." in found.remarks()
    assert (expected.ungraded, expected.rubric is RUBRIC) == (0, False)


@pytest.mark.long
def test_the_unit_of_weights_changes_nothing() -> None:
    """Equal tiny weights give the same alignment as no weights."""
    grades, labels = sample(100, 0.4)
    tiny = Labels([Label(key, value, weight=2.0**-40) for key, value in labels.items()])
    assert align(RUBRIC, grades, tiny).to_dict() == align(RUBRIC, grades, labels).to_dict()


@pytest.mark.parametrize("weight", [0, -1.0, math.nan, math.inf, "2"])
def test_a_label_that_represents_no_candidates_is_refused(weight: Any) -> None:
    """Zero, negative, infinite and textual weights are definition errors."""
    with pytest.raises(DefinitionError, match="weight: expected a finite number above 0"):
        Label("a", True, weight=weight)


def test_labels_of_a_group_at_least_are_missing() -> None:
    """Two groups need at least another group's labels; independent labels need one."""
    before, after = np.zeros(100), np.tile([1.0, 0, 0, 0], 25)
    few = missing_labels(before, after, 0.05, np.repeat(np.arange(2), 50))
    assert few is not None
    assert few >= 50  # Student's quantile with one degree of freedom is 6.3
    assert missing_labels(before, after, 0.05, np.arange(100)) == 1


def test_candidates_of_a_group_are_in_one_fold_and_count_as_one() -> None:
    """Gains within one group prove nothing."""
    groups = np.repeat(np.arange(4), 25)
    before, after = np.zeros(100, dtype=bool), np.zeros(100, dtype=bool)
    after[:25] = True  # 25 gains, all of one group
    assert p_of_gain(before, after, np.arange(100)) < 1e-6
    assert p_of_gain(before, after, groups) > 0.05
    right = np.stack([before, after])
    _, honest = cross_fit(right, groups)
    assert not honest.any()  # without the group, the other rubric is no better


@pytest.mark.long
def test_the_file_is_edited_where_it_differs(tmp_path: Path) -> None:
    """`--write` changes the threshold and keeps every comment."""
    file = tmp_path / "rubric.yaml"
    file.write_text("# agreed in May\nrubric: r\nthreshold: 0.7  # from the labels\ncriteria:\n")
    file.write_text(file.read_text() + "  - {id: clarity, text: Is clear, levels: {0: bad, 100: good}}\n")
    rubric = load(file)
    grades, labels = sample(200, 0.4)
    results = Grades(result(rubric, {"clarity": g.findings[0].value}, key=g.key) for g in grades)
    results.to_jsonl(tmp_path / "results.jsonl")
    (tmp_path / "labels.csv").write_text("key,value\n" + "".join(f"{k},{v}\n" for k, v in labels.items()))
    done = run("align", *(str(tmp_path / name) for name in ("rubric.yaml", "results.jsonl", "labels.csv")), "--write")
    assert done.exit_code == 0, done.output
    kept = file.read_text()
    assert "# agreed in May" in kept
    assert "# from the labels" in kept
    assert load(file).threshold == align(rubric, results, labels).rubric.threshold
    dump(rubric, file)


@each_row(
    ("options", "match"),
    [
        ({"labels": {"k1": True}}, "20 graded candidates"),
        ({"labels": {f"k{n}": {"clarity": 50} for n in range(40)}}, "verdicts of people on the whole"),
        ({"edits": ["criteria"]}, "threshold"),
        ({"edits": ["texts"]}, "name it: writer="),
        ({"edits": ["anchors"]}, "grades that hold their candidates"),
        ({"edits": "threshold"}, "a list of kinds"),
        ({"grades": "results.jsonl"}, "results to score anew"),
    ],
)
def test_what_cannot_be_fitted_is_refused(options: dict[str, Any], match: str) -> None:
    """Too few labels, wrong kinds and missing material each have their own error."""
    grades, labels = sample(40, 0.5)
    with pytest.raises(DefinitionError, match=match):
        align(RUBRIC, **{"grades": grades, "labels": labels, **options})


def test_the_command_reads_what_grade_many_wrote(tmp_path: Path) -> None:
    """Its lines have no usage."""
    chance = random.Random(1)
    rubric, candidates, labels, out = (tmp_path / name for name in ("r.yaml", "c.jsonl", "l.csv", "o.jsonl"))
    rubric.write_text("threshold: 0.9  # ours\ncriteria: [{check: {contains: a}}, {check: {contains: b}, weight: 2}]\n")
    said = [(chance.random() < 0.5, chance.random() < 0.5) for _ in range(60)]
    texts = ["x " + "a" * a + "b" * b for a, b in said]
    candidates.write_text("".join(json.dumps({"output": text, "key": n}) + "\n" for n, text in enumerate(texts)))
    labels.write_text("key,value\n" + "".join(f"{n},{'yes' if b else 'no'}\n" for n, (_, b) in enumerate(said)))
    assert run("grade-many", str(rubric), str(candidates), "-j", "offline", "--out", str(out)).exit_code == 0
    done = run("align", str(rubric), str(out), str(labels), "--write")
    assert done.exit_code == 0, done.output
    assert rubric.read_text().startswith("threshold: 0.5  # ours")


def graded_files(folder: Path, labels: str) -> list[str]:
    """Return the files of a rubric of two criteria, results and *labels*; of every third candidate it is too strict."""
    rubric, candidates, results = (folder / name for name in ("r.yaml", "c.jsonl", "o.jsonl"))
    rubric.write_text("rubric: r\ncriteria: [Says thanks, {text: Names a day, weight: 3}]\n")
    rows = [{"id": f"k{n}", "answer": "Thanks a day" if n % 2 else "Hm"} for n in range(40)]
    candidates.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    said = ["good" if n % 2 or not n % 3 else "bad" for n in range(40)]
    (folder / "l.csv").write_text(f"{labels}\n" + "".join(f"k{n},{word}\n" for n, word in enumerate(said)))
    columns = ("--column", "output=answer", "--column", "key=id")
    assert (
        run("grade-many", str(rubric), str(candidates), "-j", "offline", "--out", str(results), *columns).exit_code == 0
    )
    return [str(rubric), str(results), str(folder / "l.csv")]


@pytest.mark.parametrize(("labels", "columns"), [("id,verdict", "key=id value=verdict"), ("key,value", "")])
def test_the_columns_of_labels_are_named_by_an_option(tmp_path: Path, labels: str, columns: str) -> None:
    """The line that the message ends with is taken; words such as good and bad are verdicts."""
    files = graded_files(tmp_path, labels)
    typed = [word for each in columns.split() for word in ("--column", each)]
    if typed:
        said = run("align", *files).stderr
        assert said.rstrip().endswith(f"write rubric align {shlex.join([*files, *typed])}")
    assert "which agrees with" in run("align", *files, *typed).stdout
    assert "output: is not a field of a label" in run("align", *files, *typed, "--column", "output=answer").stderr


@pytest.mark.parametrize(
    ("labels", "columns"),
    [("id,verdict", "output=answer key=id value=verdict"), ("key,value", "output=answer key=id")],
)
def test_the_columns_of_labels_and_of_candidates_are_told_apart(tmp_path: Path, labels: str, columns: str) -> None:
    """A field belongs to one of the two files, and a key to each that has its column; the line that is printed works."""
    files = graded_files(tmp_path, labels)
    typed = [word for each in columns.split() for word in ("--column", each)]
    more = [*files, "--edit", "anchors", "--candidates", str(tmp_path / "c.jsonl"), "-j", "offline", *typed]
    out = " ".join(run("align", *more).stdout.split())
    assert "anchors: no labelled candidate that was misjudged can be one: 7 without a label of a criterion." in out
    lost = run("align", *more[: more.index("key=id") - 1]).stderr
    assert "--column key=id" in lost
    if labels == "id,verdict":
        line = shlex.split(lost.rpartition("write rubric ")[2])
        assert line[0] == "align"
        assert "which agrees with" in run(*line).stdout
