"""Labels, agreement, estimates, differences, calibration, trusted verdicts and drift, as users call them."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rubric import Candidate, Cascade, DefinitionError, Grades, Judge, Rubric, grade_many, judge_function
from rubric.driving import Usage
from rubric.suites.cases import Case
from rubric.suites.report import Report
from rubric.suites.suite import Suite
from rubric.testing import ScriptedModel
from rubric.trust import Calibration, Label, Labels, agreement, calibrate, compare, estimate, trusted
from rubric.trust.estimates import estimate_of
from rubric.trust.ratings import VERDICTS, Scale, among, as_judged
from tests.examples import examples
from tests.recorded import grades, jury
from tests.rows import each_row
from tests.simulations.drawing import covers, grouped, ratings, verdicts

GOOD = Rubric("answers").expects("Good", id="good")
BOTH = GOOD.rates("Clear", {1: "no", 5: "yes"}, id="clear").passing_at(0.7)


def noisy(
    n: int = 200, right: float = 0.9, seed: int = 1
) -> tuple[dict[int, dict[str, Any]], dict[int, dict[str, Any]]]:
    """Return what people say of *n* candidates, and what a judge says that is *right* so often."""
    chance = random.Random(seed)
    people, judge = {}, {}
    for key in range(n):
        good, clear = chance.random() < 0.7, chance.randint(1, 5)
        people[key] = {"good": good, "clear": clear}
        off = chance.choice([-1, 0, 0, 1])
        judge[key] = {"good": good ^ (chance.random() > right), "clear": min(5, max(1, clear + off))}
    return people, judge


PEOPLE, JUDGE = noisy()
GRADES = grades(BOTH, JUDGE)
LABELS = Labels({key: PEOPLE[key] for key in range(100)})


# -- labels ------------------------------------------------------------------------------------------------


def test_labels_come_from_files_frames_and_mappings(tmp_path: Path) -> None:
    """The same labels, whatever they are written in; a missing value is none."""
    rows = [
        {"key": "a", "criterion": "good", "rater": "x", "value": "yes"},
        {"key": "b", "criterion": "", "rater": "x", "value": 0.5},
    ]
    frame = pd.DataFrame([*rows, {"key": "c", "value": None}])
    frame.to_csv(tmp_path / "labels.csv", index=False)
    frame.to_csv(tmp_path / "labels.tsv", index=False, sep="\t")
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for labels in (
        Labels.from_pandas(frame),
        *(Labels.read(tmp_path / f"labels.{kind}") for kind in ("csv", "tsv", "jsonl")),
    ):
        assert [(row.key, row.criterion, row.rater, str(row.value)) for row in labels] == [
            ("a", "good", "x", "yes"),
            ("b", "", "x", "0.5"),
        ]
    assert Labels.read(tmp_path / "labels.csv").rows[1].place == "labels.csv:3"
    assert [row.rater for row in Labels({"a": {"good": [True, False]}})] == ["1", "2"]
    renamed = frame.rename(columns={"key": "id", "value": "label"})
    assert len(Labels.from_pandas(renamed, columns={"key": "id", "value": "label"})) == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"key,label\na,1\n", "columns={'value': 'label'}"),
        ("a.csv", b"notes,case_id,value\nx,a,1\n", "columns={'key': 'case_id'}"),
        ("a.csv", b"key,value,value\na,1,0\n", "'value'"),
        ("a.csv", b"key,comment,label\na,,yes\nb,x,no\n", "columns={'value': 'label'} or"),
        ("a.jsonl", b'{"key": "a", "note": null, "label": "yes"}\n', "columns={'value': 'label'} or"),
        ("a.csv", b"key,note,when\na,,\nb,late,yes\n", "columns={'value': 'when'} or"),
        (
            "a.csv",
            b"key,ann,bob\na,,yes\nb,no,no\n",
            (
                "if 'ann' and 'bob' are criteria: criteria=['ann', 'bob'] or if they are people: raters=['ann', 'bob'] or "
                "if one alone is the label of the whole: columns={'value': 'ann'} or call it value in the file (there"
            ),
        ),
        (
            "a.csv",
            b"id,rater,when,link,note\na,ann,,yes,fine\na,bob,yes,no,\n",
            (
                "if 'when' and 'link' are criteria: columns={'key': 'id'}, criteria=['when', 'link'] or if one alone "
                "is the label of the whole: columns={'key': 'id', 'value': 'when'} or"
            ),
        ),
        (
            "a.csv",
            b"key,criterion,ann,bob\na,when,no,yes\n",
            "if 'ann' and 'bob' are people: raters=['ann', 'bob'] or if",
        ),
        ("a.csv", b"key;value\na;1\n", "parted by ';'"),
        ("a.csv", b"key,value\nM\xe4rz,1\n", "a.csv:2: no text in UTF-8"),
        ("a.csv", b"key,value\na,1,0\n", "a.csv:2: 3 cells under 2 names"),
        ("a.jsonl", b'{"key": "a", "value": 1, "value": 0}\n', "a.jsonl:1: no JSON: the key 'value' is used twice"),
    ],
)
def test_a_file_of_labels_that_can_be_read_in_two_ways_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    """The place, what was found, and the call that works: a column of labels, not that of the keys."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DefinitionError, match=re.escape(message)):
        Labels.read(tmp_path / name)


@each_row(
    ("make", "message"),
    [
        (lambda: Labels("labels.csv"), "Labels.read"),  # type: ignore[arg-type]
        (lambda: Labels.read("labels.txt"), "ends in .jsonl, .ndjson, .json, .csv, .tsv, .parquet, .xlsx"),
        (lambda: Labels({"a": {"good": object()}}), r"labels\['a'\]\['good'\]: expected a number, a text or a verdict"),
        (lambda: Labels([*Labels({"a": 1}), *Labels({"a": 2})]), "twice"),
        (lambda: Labels.from_pandas(pd.DataFrame({"id": [1], "value": [1]})), "expected a column key or index"),
        (
            lambda: Labels.from_pandas(pd.DataFrame({"id": [1], "label": [1]})),
            "columns={'key': 'id', 'value': 'label'} or call them key and value",
        ),
        (
            lambda: Labels.from_pandas(pd.DataFrame({"id": [1], "label": [1]}), columns={"key": "id"}),
            "columns={'key': 'id', 'value': 'label'} or call it value",
        ),
        (
            lambda: agreement(GRADES, Labels({0: {"clear": 7}})),
            r"labels\[0\]\['clear'\]: expected a number in 1..5, got 7",
        ),
        (lambda: agreement(GRADES, Labels({0: {"clarity": 3}})), "there is no criterion 'clarity'"),
        (lambda: agreement(GRADES, Labels({"zz": {"good": True}})), "none matches a candidate by key"),
        (
            lambda: agreement(Grades([evolve(each, key="") for each in GRADES]), {"zz": {"good": True}}),
            r"have no keys, and labels are by key \('zz', ...\); .* columns=\{'key': 'id'\}\)",
        ),
        (lambda: agreement(GRADES), "give labels, or grade with Jury"),
        (lambda: estimate(GRADES, LABELS), "there is no label for the whole; there are labels for: 'good', 'clear'"),
        (
            lambda: trusted(GRADES, LABELS),
            "labels: there is no label for the whole; there are labels for: 'good', 'clear'",
        ),
        (lambda: compare(GRADES, GRADES, LABELS), "give both"),  # type: ignore[arg-type]
        (lambda: calibrate(GRADES, Labels({n: {"good": True} for n in range(5)})), "label 20 at least"),
    ],
)
def test_what_cannot_be_says_where_and_what_works(make: Any, message: str) -> None:
    """Each error names the place of the label and what would be accepted."""
    with pytest.raises(DefinitionError, match=message):
        make()


def test_labels_of_a_rater_who_saw_the_verdict_are_left_out(tmp_path: Path) -> None:
    """They are counted; without others there is nothing to measure by."""
    rows = ["key,criterion,value,judge_seen"]
    rows += [
        f"{n},good,{JUDGE[n]['good'] if n < 40 else PEOPLE[n]['good']},{'yes' if n < 40 else ''}" for n in range(100)
    ]
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    labels = Labels.read(tmp_path / "labels.csv")
    assert sum(row.judge_seen for row in labels) == 40
    assert agreement(GRADES, labels)["good"].n == 60
    (tmp_path / "labels.csv").write_text("\n".join(rows[:40]))
    with pytest.raises(DefinitionError, match="all 39 were given after a look at the judge's verdict"):
        agreement(GRADES, Labels.read(tmp_path / "labels.csv"))


def test_equal_labels_have_one_digest() -> None:
    """In whatever order they stand; another value is another digest."""
    rows = [*LABELS]
    assert Labels(rows[::-1]).digest == LABELS.digest
    assert (
        Labels([evolve(rows[0], value=False), *rows[1:]]).digest
        != Labels([evolve(rows[0], value=True), *rows[1:]]).digest
    )


def test_labels_match_by_place_where_there_are_no_keys() -> None:
    """Numbers as keys refer to rows, and rows without a label are counted."""
    plain = grade_many(["thanks", "no"] * 20, "thanks", "offline").collect()
    found = agreement(plain, Labels({n: n % 2 == 0 for n in range(30)}))
    assert found.criteria[0]["agreement"].value == 1
    assert found.unlabelled == 10


def test_an_outcome_of_a_guard_is_the_other_way_round() -> None:
    """A label "pass" says that the unwanted is absent; "yes" says that it is there."""
    rubric = Rubric().forbids("Promises a refund", id="refund")
    given = grades(rubric, {n: {"refund": n % 2 == 0} for n in range(10)})
    for words in (("yes", "no"), ("fail", "pass")):
        found = agreement(given, Labels({n: {"refund": words[n % 2]} for n in range(10)}))
        assert found["refund"]["agreement"].value == 1


# -- agreement ---------------------------------------------------------------------------------------------


def test_an_agreement_leads_with_a_sentence() -> None:
    """With its interval; and what is missing is counted."""
    found = agreement(
        GRADES, Labels([*Labels({key: PEOPLE[key] for key in range(60)}), *Labels({"zz": {"good": True}})])
    )
    assert found["good"].sentence().startswith("The judge agrees with people in 87 % (76 to 93)")
    for shown in (str(found), found._repr_markdown_(), found._repr_html_(), repr(found)):
        assert found.sentence.split()[0] in shown
    assert "1 label matches no candidate ('zz')." in str(found)
    assert "140 candidates have no label." in str(found)
    assert found["clear"].sentence().startswith("The judge correlates with people at 0.")
    json.dumps(found.to_dict(), allow_nan=False)


LABEL = Rubric("moderation").chooses("Which label?", {"safe": 1, "hate": 0, "spam": 0}, id="label").passing_at(0.5)
MARKED = {"a": {"label": "safe"}, "b": {"label": "hate"}, "c": {"label": "hate"}}
OF_LABEL = grades(LABEL, MARKED)


@each_row(("said", "labels", "found"), [
    (OF_LABEL, {"a": {"label": "safe"}, "b": {"label": "Hate"}, "c": {"label": "spam"}}, [("label", "c", "hate", "spam")]),
    (OF_LABEL, {"a": "pass", "b": "pass", "c": "fail"}, [("", "b", "no", "yes")]),
    (OF_LABEL, {"a": ["pass", "fail"], "b": ["good", "ok", "bad"]}, [("", "b", "no", "yes")]),  # a tie is left out
    (grades(BOTH, {"a": {"good": True, "clear": 5}, "b": {"good": True, "clear": 2}}),
     {"a": {"clear": [4, 5], "good": "no"}, "b": {"clear": "5", "good": "1"}},
     [("clear", "b", 2.0, 5.0), ("clear", "a", 5.0, 4.5), ("good", "a", "yes", "no")]),
    (grades(Rubric("g").forbids("Rude", id="rude"), {"a": {"rude": True}}), {"a": {"rude": "pass"}},
     [("rude", "a", "yes", "no")]),
], ids=["options", "whole", "raters", "numbers", "guard"])  # fmt: skip
def test_what_the_judge_and_people_say_otherwise_is_listed(said: Any, labels: Any, found: list[Any]) -> None:
    """Of verdicts, options, numbers (the furthest first) and the whole, read as figures read them; ties are left out."""
    differing = agreement(said, labels).disagreements
    assert [(one.criterion, one.key, one.judge, one.people) for one in differing] == found


def test_options_of_two_files_are_compared_by_their_names(tmp_path: Path) -> None:
    """Each file tells those alone that its judge chose, so their numbers differ."""
    sides = [grades(LABEL, {"a": {"label": "hate"}, "b": {"label": label}}) for label in ("safe", "spam")]
    for n, each in enumerate(sides):
        each.to_jsonl(tmp_path / f"{n}.jsonl")
    apart = agreement(tmp_path / "0.jsonl", as_judged(tmp_path / "1.jsonl"))
    assert apart["label"]["agreement"].value == 0.5
    assert [(one.key, one.judge, one.people) for one in apart["label"].disagreements] == [("b", "safe", "spam")]


def test_disagreements_are_those_of_a_file_a_figure_and_a_person(tmp_path: Path) -> None:
    """Words of a CSV count as verdicts; what is shown leads with a sentence; two judges, and two people, are compared."""
    (tmp_path / "labels.csv").write_text("key,value\na,pass\nb,pass\nc,fail\n", encoding="utf-8")
    found = agreement(OF_LABEL, Labels.read(tmp_path / "labels.csv"))
    assert found.disagreements.sentence == "The judge and people differ in 1 of 3 ratings."
    assert "| the whole | b | no | yes |" in found.disagreements._repr_markdown_()
    assert found.disagreements == agreement(OF_LABEL, tmp_path / "labels.csv").disagreements
    assert [*found[0].disagreements] == [*found.disagreements]
    assert "disagreements" not in str(found.to_dict())
    two = Rubric("t").expects("Good", id="good").expects("Kind", id="kind")
    both = agreement(grades(two, {"a": {"good": True, "kind": True}}), {"a": {"good": True, "kind": False}})
    assert both.overall is not None
    assert (
        [one.criterion for one in both.overall.disagreements]
        == [one.criterion for one in both.disagreements]
        == ["kind"]
    )
    assert both.disagreements.n == 2
    people = Labels.by_rater({"a": {"ann": True, "bob": True}, "b": {"ann": True, "bob": False}})
    apart = agreement(people).disagreements
    assert [(one.key, one.judge, one.people) for one in apart] == [("b", "yes", "no")]
    assert apart.tables()[0][1] == ("criterion", "key", "ann", "bob")
    assert [
        one.key
        for one in agreement(OF_LABEL, Labels.by_rater({"a": {"x": "fail", "y": "pass"}})).by_rater["x"].disagreements
    ] == ["a"]
    other = agreement(OF_LABEL, grades(LABEL, {**MARKED, "a": {"label": "spam"}})).disagreements
    assert {one.criterion for one in other} == {"", "label"}
    every = agreement(GRADES, Labels({key: {"good": said["good"]} for key, said in PEOPLE.items()}))
    assert len(every.disagreements) == every["good"].confusion[0][1] + every["good"].confusion[1][0]
    with pytest.raises(DefinitionError, match="give labels"):
        _ = agreement(jury(GOOD, {0: [{"good": True}] * 3})).disagreements


def test_the_figures_of_a_criterion_are_its_text() -> None:
    """As in its rows of the table, in one line, also where many are shown."""
    found = agreement(GRADES, LABELS)
    rows = [f"{row[2]} {row[3]}" for row in found.tables()[0][2] if row[0] == "good"]
    assert str(found["good"]) == ", ".join(["good: 100 candidates", *rows])
    assert f"{str(found['clear'])[:30]}" in str([*found.criteria])


@pytest.mark.parametrize("name", ["a.md", "a.html", "a.csv", "a"])
def test_a_baseline_is_yaml_or_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Another ending is refused with the line for a baseline and the one for people, which work."""
    monkeypatch.chdir(tmp_path)
    found = agreement(GRADES, LABELS)
    for one in (found, calibrate(GRADES, LABELS)):
        with pytest.raises(DefinitionError, match="it is data, to compare with") as no:
            one.dump(name)
    with pytest.raises(DefinitionError) as no:
        found.dump(name)
    assert not [*tmp_path.iterdir()]
    for line in re.findall(r"write (.*?)(?=; for|$)", str(no.value)):
        exec(line, {"agreement": found})  # noqa: S102 - the printed line
    assert "The judge agrees" in Path(name).read_text("utf-8")
    assert not found.against("a.yaml").changed
    found.dump("a.json")
    assert json.loads(Path("a.json").read_text("utf-8"))["kind"] == "agreement"
    assert not found.against("a.json").changed


def test_an_agreement_shows_a_few_figures_and_the_rest_on_request() -> None:
    """How often, how the errors lie, one coefficient; `detailed` has rates, coefficients and confusion."""
    found = agreement(GRADES, LABELS)
    assert [row[2] for row in found.tables()[0][2]] == ["agreement", "TPR", "TNR", "kappa", "pearson", "RMSE", "bias"]
    assert len(found.tables()) == 1
    assert "more figures" in str(found)
    assert "more figures" not in str(found.detailed)
    titles = [title for title, _, _ in found.detailed.tables()]
    assert titles[1:3] == ["good: each class", "good: people in rows, the judge in columns"]
    assert found.to_dict()["criteria"][0]["rates"][1]["recall"]["value"] == found["good"]["TPR"].value


def test_numbers_have_no_nominal_alpha() -> None:
    """A point off is not as wrong as the opposite; what is asked for and not there names what is."""
    clear = agreement(GRADES, LABELS)["clear"]
    assert clear["alpha, interval"].value == pytest.approx(0.9, abs=0.1)
    with pytest.raises(KeyError, match=r"no statistic 'alpha, nominal' of a number among .*alpha, ordinal"):
        clear["alpha, nominal"]


def test_people_agree_with_each_other_without_a_judge() -> None:
    """Of three, each with the others too; of one nothing can be said, and the error says what can."""
    chance = random.Random(1)
    said = {k: {n: PEOPLE[k]["good"] ^ (chance.random() < 0.1) for n in ("ann", "bob", "cy")} for k in range(80)}
    labels = Labels.by_rater(said, "good")
    found = agreement(labels)
    assert [one.id for one in found] == ["good", "good: ann", "good: bob", "good: cy"]
    assert found.sentence.startswith("3 people agree with each other in 82 %")
    assert found["good"]["alpha"] == next(
        one for one in agreement(GRADES, labels)["good"].ceiling if one.name == "alpha"
    )
    both = {k for k, one in said.items() if one["bob"] == one["cy"]}
    right = sum(said[k]["ann"] == said[k]["bob"] for k in both)
    assert found["good: ann"]["agreement"].value == pytest.approx(right / len(both))
    stars = agreement(Labels({k: [PEOPLE[k]["clear"], min(5, PEOPLE[k]["clear"] + 1)] for k in range(50)}))
    assert stars.sentence.startswith("2 people correlate with each other at 0.9")
    words = agreement(Labels({k: ["warm", "cold"] if k % 5 == 0 else ["warm"] * 2 for k in range(50)}))
    assert words.criteria[0].kind == "option"
    for one in (found, stars, words):
        json.dumps(one.to_dict(), allow_nan=False)
    with pytest.raises(DefinitionError, match=r"two raters or more, .* agreement\(grades, labels\)"):
        agreement(Labels({"a": True}))


def _said(ann: str, bob: str, **others: str) -> Labels:
    """Return what two people say of 24 candidates, each a word of its list in turn, but of the keys of *others*."""
    rows: dict[str, dict[str, str]] = {
        f"k{n}": {who: words.split()[n % len(words.split())] for who, words in (("ann", ann), ("bob", bob))}
        for n in range(24)
    }
    for key, word in others.items():
        rows[key]["ann"] = word
    return Labels.by_rater(rows)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (_said("pass fail", "Yes No"), "verdict"),
        (_said("1 0", "true FAIL"), "verdict"),
        (_said("1 2 3 1", "1 2 3 1"), "number"),
        (_said("Warm cold dry", "warm cold dry"), "option"),
        (_said("good bad neutral mixed", "good ok neutral mixed"), "option"),
        (_said("yes no partly", "yes partly"), "option"),
        (Labels.by_rater({"a": {"ann": "warm", "bob": "cold"}}), "option"),
    ],
)
def test_what_people_say_is_a_verdict_a_number_or_a_category(labels: Labels, kind: str) -> None:
    """Words for a verdict are one however they are spelled; categories of one vocabulary stay what they are."""
    assert among(labels)[0].scale.kind == kind


@pytest.mark.parametrize("word", ["passs", "?", "n/a", "unsure", "gut", "7"])
def test_a_few_words_that_are_no_verdict_do_not_turn_verdicts_into_categories(word: str) -> None:
    """They are refused by name, with a line for each meaning, and each line does what was meant."""
    labels = _said("pass fail", "Yes No", k4=word)
    with pytest.raises(
        DefinitionError, match=rf"labels\['k4'\]\['ann'\]: expected yes or no .*'{re.escape(word)}'"
    ) as no:
        agreement(labels)
    lines = re.findall(r"labels\.replace\(\{.*?\}\)", str(no.value))
    shares = [agreement(eval(line, {"labels": labels}))["the whole"]["agreement"].value for line in lines]  # noqa: S307 - the printed line
    assert shares == pytest.approx([1, 23 / 24, 23 / 24])  # a pass, a fail, a category


def test_a_word_among_numbers_is_refused_by_name() -> None:
    """A mark for "no label" does not turn ratings into categories."""
    with pytest.raises(
        DefinitionError, match=r"expected a number, got '\?'; if it is not a label, leave its cell empty"
    ):
        agreement(_said("1 2 3 4 5", "1 2 3 4 5", k4="?"))


@pytest.mark.parametrize(
    ("ann", "bob"),
    [
        ("pass fail", "gut schlecht"),
        ("gut schlecht", "pass fail"),
        ("good bad", "gut schlecht"),
        ("gut mittel schlecht", "good medium bad"),
        ("a b c", "x y y"),
        ("pass", "gut"),
        ("pass fail unsure", "yes no unsure"),
        ("1 2 3 4", "eins zwei drei vier"),
    ],
)
def test_two_vocabularies_are_not_a_disagreement(ann: str, bob: str) -> None:
    """Two people without a word in common are refused with the line that maps the words of one, which works."""
    labels = _said(ann, bob)
    with pytest.raises(DefinitionError, match=r"'ann' says .* and 'bob' says .*no word in common") as no:
        agreement(labels)
    (line,) = re.findall(r"labels\.replace\(\{.*?\}\)", str(no.value))
    mapped = among(eval(line, {"labels": labels}))[0].people  # noqa: S307 - the printed line
    assert sum(mapped[:, 0] == mapped[:, 1]) >= 16


def test_several_raters_label_some_of_the_candidates_of_groups() -> None:
    """The ceiling is by group over the labelled candidates alone: those that nobody labelled are in no figure."""
    several = {key: {"good": [PEOPLE[key]["good"], PEOPLE[key]["good"], key % 9 > 0]} for key in range(60)}
    grouped = grades(BOTH, JUDGE, {key: key // 5 for key in JUDGE})
    found = agreement(grouped, Labels(several))["good"]
    alone = agreement(grades(BOTH, {k: JUDGE[k] for k in range(60)}, {k: k // 5 for k in range(60)}), Labels(several))
    assert found.ceiling == alone["good"].ceiling
    assert {one.name for one in found.ceiling} >= {"alpha", "AC1"}


def test_labels_come_from_wide_tables(tmp_path: Path) -> None:
    """A column a rater; empty cells are none, and a column that is not there is an error with the near name."""
    frame = pd.DataFrame([{"id": "a", "ann": "yes", "bob": "no"}, {"id": "b", "ann": "no", "bob": None}])
    frame.to_csv(tmp_path / "wide.csv", index=False)
    wanted = [("a", "ann", "yes"), ("a", "bob", "no"), ("b", "ann", "no")]
    for labels in (
        Labels.read(tmp_path / "wide.csv", columns={"key": "id"}, raters=["ann", "bob"]),
        Labels.from_pandas(frame, columns={"key": "id"}, raters=["ann", "bob"]),
        Labels.by_rater({"a": {"ann": "yes", "bob": "no"}, "b": {"ann": "no", "bob": None}}),
    ):
        assert [(row.key, row.rater, row.value) for row in labels] == wanted
    with pytest.raises(DefinitionError, match="there is no column 'anne'; did you mean 'ann'"):
        Labels.read(tmp_path / "wide.csv", columns={"key": "id"}, raters=["anne"])


@pytest.mark.parametrize(
    ("content", "named", "wanted"),
    [
        ("id,when,link\na,,yes\nb,no,yes\n", {"criteria": ["when", "link"]}, "a--link-yes b--when-no b--link-yes"),
        ("id,rater,when,link\na,ann,,yes\n", {"criteria": ("when", "link")}, "a-ann-link-yes"),
        ("id,when,link\na,no,yes\n", {"criteria": ["when", "link"], "raters": ["ann"]}, "a-ann-when-no a-ann-link-yes"),
        ("id,value\na,no\n", {"criteria": ["when"]}, "a--when-no"),
        ("id,when\na,no\n", {"columns": {"key": "id", "value": "when"}, "criteria": ["when"]}, "a--when-no"),
        ("id,value\na,no\n", {"criteria": ["when"], "raters": ["ann"]}, "a-ann-when-no"),
        ("id,ann,bob\na,no,yes\n", {"criteria": ["when"], "raters": ["ann", "bob"]}, "a-ann-when-no a-bob-when-yes"),
    ],
)
def test_a_table_with_a_column_a_criterion_is_read(
    tmp_path: Path, content: str, named: dict[str, Any], wanted: str
) -> None:
    """Its columns are criteria, its raters stay; one name that is not a column is that of all values."""
    (tmp_path / "wide.csv").write_text(content)
    arguments = {"columns": {"key": "id"}, **named}
    frame = pd.read_csv(tmp_path / "wide.csv")
    for labels in (Labels.read(tmp_path / "wide.csv", **arguments), Labels.from_pandas(frame, **arguments)):
        assert " ".join(f"{row.key}-{row.rater}-{row.criterion}-{row.value}" for row in labels) == wanted


@pytest.mark.parametrize(
    ("content", "named", "message"),
    [
        ("key,when\na,no\n", {"criteria": ["when", "lnk"]}, "there is no column 'lnk'"),
        ("key,when,link,ann,bob\na,1,1,1,1\n", {"criteria": ["when", "link"], "raters": ["ann", "bob"]}, "of one"),
        ("key,when,link,value\na,1,1,1\n", {"criteria": ["when"], "columns": {"value": "link"}}, "is not read where"),
        ("key,criterion,when\na,x,1\n", {"criteria": ["when"]}, "there is a column 'criterion' too"),
        ("key,when,link\na,1,1\n", {"columns": {"value": ["when", "link"]}}, "write criteria=['when', 'link']"),
        ("key,when,link\na,1,1\n", {"columns": {"criterion": ["when", "link"]}}, "write criteria=['when', 'link']"),
        ("key,when,link\na,1,1\n", {"columns": {"rater": ["when", "link"]}}, "write raters=['when', 'link']"),
        ("key,when,link\na,1,1\n", {"columns": {"value": 3.5}}, "expected the name of a column, got 3.5"),
    ],
)
def test_columns_that_are_criteria_and_something_else_are_refused(
    tmp_path: Path, content: str, named: dict[str, Any], message: str
) -> None:
    """No column is read as two things, and several columns of one field are criteria or people."""
    (tmp_path / "wide.csv").write_text(content)
    with pytest.raises(DefinitionError, match=re.escape(message)):
        Labels.read(tmp_path / "wide.csv", **named)


def test_a_wrong_option_of_labels_is_the_only_one_that_is_told(tmp_path: Path) -> None:
    """The call is not said to have more arguments without a name than were typed."""
    (tmp_path / "wide.csv").write_text("id,value\na,1\n")
    with pytest.raises(DefinitionError, match="no such option") as no:
        Labels.read(tmp_path / "wide.csv", columns={"key": "id"}, nonsense=["when"])  # type: ignore[call-arg]
    assert "without a name" not in str(no.value)


def test_values_of_a_column_with_the_name_of_a_criterion_are_not_the_whole(tmp_path: Path) -> None:
    """They are refused where grades show that name, and the printed arguments read them as that criterion."""
    rows = [f"{key},{'yes' if PEOPLE[key]['good'] else 'no'}" for key in range(100)]
    (tmp_path / "labels.csv").write_text("\n".join(["key,good", *rows]))
    labels = Labels.read(tmp_path / "labels.csv", columns={"value": "good"})
    for of in (agreement, estimate, trusted):
        with pytest.raises(DefinitionError, match=re.escape("read them with criteria=['good']; if they are")):
            of(GRADES, labels)
    again = Labels.read(tmp_path / "labels.csv", columns={"value": "good"}, criteria=["good"])
    assert agreement(GRADES, again)["good"].n == 100
    whole = Labels([evolve(row) for row in labels])
    assert agreement(GRADES, whole)["the whole"].n == 100


def test_a_file_of_one_rater_is_named_and_joined(tmp_path: Path) -> None:
    """One name that is no column, beside a column of values, is their rater; labels of two join by the printed line."""
    frame = pd.DataFrame({"key": ["a", "b"], "label": ["yes", "no"]})
    frame.to_csv(tmp_path / "anna.csv", index=False)
    named: Any = {"columns": {"value": "label"}, "raters": ["anna"]}
    for labels in (Labels.read(tmp_path / "anna.csv", **named), Labels.from_pandas(frame, **named)):
        assert [(row.key, row.rater, row.value) for row in labels] == [("a", "anna", "yes"), ("b", "anna", "no")]
    for raters, column in ((["anna", "bob"], "anna"), (["valu"], "valu")):
        with pytest.raises(DefinitionError, match=f"there is no column '{column}'|is not read where raters name"):
            Labels.from_pandas(frame.rename(columns={"label": "value"}), raters=raters)
    a, b = Labels({"a": True, "b": False}), Labels({"a": True})
    assert repr(a) == "<Labels: 2 labels of 2 candidates, the whole>"
    with pytest.raises(DefinitionError, match="the one rater labels the whole of 'a' twice") as no:
        Labels([*a, *b])
    line = str(no.value).partition("name each rater: ")[2]
    made: dict[str, Any] = {"a": a, "b": b, "Labels": Labels}
    exec(line.replace("; Labels(", "; joined = Labels("), made)  # noqa: S102 - the printed line
    assert made["joined"].raters == ("ann", "bob")
    assert len(made["joined"]) == 3


@given(st.randoms(use_true_random=False))
@examples(10)
def test_the_order_of_keys_labels_and_raters_changes_no_figure(chance: Any) -> None:
    """Shuffled labels and results give equal tables, values and intervals."""
    several = {
        key: {"good": [PEOPLE[key]["good"], key % 7 > 0], "clear": [PEOPLE[key]["clear"], key % 5 + 1]}
        for key in range(60)
    }
    rows, results = [*Labels(several)], [*GRADES]
    chance.shuffle(rows)
    chance.shuffle(results)
    rows.sort(key=lambda row: row.criterion)
    one, other = (
        agreement(GRADES, Labels(sorted(Labels(several), key=lambda row: row.criterion))),
        agreement(Grades(results), Labels(rows)),
    )
    for mine, theirs in zip(one, other, strict=True):
        assert mine.confusion == theirs.confusion
        for a, b in zip(mine.statistics, theirs.statistics, strict=True):
            assert a.value == pytest.approx(b.value)
            assert a.interval == pytest.approx(b.interval)


def test_a_judge_that_always_says_the_same_stands_beside() -> None:
    """The agreement of a constant judge is shown, and phi says why it has no value."""
    found = agreement(
        grades(GOOD, {n: {"good": True} for n in range(60)}), Labels({n: {"good": n % 3 > 0} for n in range(60)})
    )
    good = found["good"]
    assert good.constant is not None
    assert good.constant.name == "always yes"
    assert good.constant.value == pytest.approx(2 / 3)
    assert "a judge that always says yes agrees in 67 %" in str(found)
    assert good["agreement"].value == pytest.approx(2 / 3)
    assert good["phi"].value is None
    assert "same rating" in good["phi"].reason


def test_people_are_compared_with_each_other() -> None:
    """The ceiling; a tie has no majority."""
    chance = random.Random(3)
    several = {key: {"good": [PEOPLE[key]["good"] ^ (chance.random() < 0.05) for _ in range(3)]} for key in range(90)}
    found = agreement(GRADES, Labels(several))
    ceiling = {each.name: each.value for each in found["good"].ceiling}
    assert ceiling["agreement"] is not None
    assert ceiling["agreement"] > 0.85
    assert re.search(r"; with each of them in \d+ %, people with each other in \d+ %", found.sentence)
    (row,) = [row for row in found.detailed.tables()[0][2] if row[2] == "AC1"]
    assert row[5] == str({one.name: one for one in found["good"].ceiling}["AC1"])
    tied = agreement(GRADES, Labels({key: {"good": [True, key % 2 == 0]} for key in range(20)}))
    assert (tied["good"].n, tied["good"].ties) == (10, 10)


@pytest.mark.parametrize("people", [2, 3, 5])
def test_a_judge_as_good_as_people_reaches_what_they_reach(people: int) -> None:
    """Judge and people all err in 15 %: with each person, and with each other, they agree alike."""
    chance = np.random.default_rng(2)
    truth = chance.random(2_000) < 0.7
    said = [truth ^ (chance.random(2_000) < 0.15) for _ in range(people + 1)]
    found = agreement(
        grades(GOOD, {n: {"good": bool(one)} for n, one in enumerate(said[0])}),
        Labels({n: {"good": [bool(rater[n]) for rater in said[1:]]} for n in range(2_000)}),
    )["good"]
    judge, among = ({one.name: one.value or 0.0 for one in of} for of in (found.each, found.ceiling))
    assert judge["agreement"] == pytest.approx(among["agreement"], abs=0.02)
    assert judge["kappa"] == pytest.approx(among["kappa"], abs=0.05)


def test_a_stricter_person_correlates_as_well() -> None:
    """A person who is two points stricter than the other orders candidates alike."""
    chance = np.random.default_rng(3)
    clear = Rubric().rates("Clear", {0: "no", 10: "yes"}, id="clear")
    true = chance.integers(3, 9, 300)
    one, two, judge = (np.clip(true + chance.integers(-1, 2, 300) - less, 0, 10) for less in (0, 2, 0))
    found = agreement(
        grades(clear, {n: {"clear": int(value)} for n, value in enumerate(judge)}),
        Labels({n: {"clear": [int(a), int(b)]} for n, (a, b) in enumerate(zip(one, two, strict=True))}),
    )["clear"]
    ceiling = {each.name: each.value for each in found.ceiling}
    assert ceiling["pearson"] == pytest.approx(np.corrcoef(one, two)[0, 1])
    assert ceiling["kendall"] == pytest.approx(stats.kendalltau(one, two).statistic)


def test_an_agreement_is_by_weight() -> None:
    """Doubtful candidates were drawn more often and the judge errs on them: each stands for fewer."""
    chance = np.random.default_rng(4)
    hard = chance.random(4_000) < 0.2
    right = chance.random(4_000) >= np.where(hard, 0.4, 0.05)
    drawn = chance.random(4_000) < np.where(hard, 0.25, 0.05)
    rows = [Label(str(n), bool(right[n]), "good", weight=4.0 if hard[n] else 20.0) for n in np.flatnonzero(drawn)]
    given = grades(GOOD, {n: {"good": True} for n in range(4_000)})
    found = agreement(given, Labels(rows))["good"]
    assert found.n == len(rows)
    assert found["agreement"].value == pytest.approx(right.mean(), abs=0.04)
    low, high = found["agreement"].interval or (0, 0)
    assert low <= right.mean() <= high
    plain = agreement(given, Labels([evolve(row, weight=1.0) for row in rows]))["good"]["agreement"]
    assert plain.interval is not None
    assert plain.interval[1] < right.mean()


def test_remarks_are_made_where_figures_mislead() -> None:
    """Few labels, many missing verdicts and one-sided labels each have a remark."""
    some = {key: said if key % 4 else {"good": None, "clear": None} for key, said in JUDGE.items()}
    found = agreement(grades(BOTH, some), Labels({key: {"good": True} for key in range(20)}))
    said = " ".join(found["good"].remarks)
    for words in ("fewer than 30", "no verdict on 25 %", "nearly always the same"):
        assert words in said


def test_two_judges_and_the_votes_of_a_jury() -> None:
    """A second judge is compared like a person; votes show how often the judge flips."""
    _, other = noisy(seed=1, right=0.8)
    found = agreement(GRADES, grades(BOTH, other))
    assert found["good"].n == 200
    chance = random.Random(5)
    votes = {n: [{"good": (n % 2 == 0) ^ (chance.random() < 0.1)} for _ in range(5)] for n in range(60)}
    alone = agreement(jury(GOOD, votes))
    (whole, good) = alone.votes
    assert alone.sentence.startswith("Two votes on one candidate differ in")
    assert good.flip_rate.value == whole.flip_rate.value
    assert good.flip_rate.value == pytest.approx(0.18, abs=0.06)
    assert good.needed is not None
    assert 2 <= good.needed <= 9
    assert agreement(jury(GOOD, {n: [{"good": True}] * 3 for n in range(9)})).votes[0].needed == 1


def test_intervals_are_by_group() -> None:
    """Ten candidates that share everything are one."""
    groups = {key: key // 10 for key in JUDGE}
    copied = {key: JUDGE[key // 10 * 10] for key in JUDGE}
    people = Labels({key: {"good": PEOPLE[key // 10 * 10]["good"]} for key in JUDGE})
    wide, narrow = (agreement(grades(GOOD, copied, by), people)["good"] for by in (groups, None))
    for name in ("agreement", "kappa"):
        one, other = wide[name].interval, narrow[name].interval
        assert one is not None
        assert other is not None
        assert one[1] - one[0] > 2 * (other[1] - other[0])


# -- estimates ---------------------------------------------------------------------------------------------


def test_an_estimate_stands_beside_labels_and_judge() -> None:
    """The estimate lies in its interval and says how many labels and grades it uses."""
    found = estimate(GRADES, LABELS, criterion="good")
    assert (found.labels, found.grades) == (100, 100)
    assert found.value is not None
    assert found.interval is not None
    assert found.interval[0] < found.value < found.interval[1]
    assert "by 100 labels and 100 more grades" in found.sentence
    assert "labels only" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=3, max_size=40))
@examples(40)
def test_without_more_grades_the_labels_are_the_estimate(pairs: list[tuple[bool, bool]]) -> None:
    """If every grade has a label, estimate and interval are those of the labels."""
    given = grades(GOOD, {n: {"good": said} for n, (said, _) in enumerate(pairs)})
    found = estimate(given, Labels({n: {"good": person} for n, (_, person) in enumerate(pairs)}), criterion="good")
    assert found.value == found.labels_only.value
    assert found.interval == found.labels_only.interval


def test_labels_that_are_all_the_same_are_no_certainty() -> None:
    """Fifty equal labels are fifty labels."""
    for name, value in (("clear", 3), ("good", True)):
        found = estimate(GRADES, Labels({key: {name: value} for key in range(50)}), criterion=name)
        assert found.interval is not None
        assert found.interval[1] > found.interval[0]


def test_a_mean_at_the_end_of_a_scale_is_no_certainty() -> None:
    """Ten labels of 4 on 0..4 do not say that all are 4; the interval holds what they leave open."""
    clear = Rubric().rates("Clear", {0: "no", 4: "yes"}, id="clear")
    given = grades(clear, {n: {"clear": 4 if n % 20 else 3} for n in range(500)})
    found = estimate(given, Labels({n: {"clear": 4} for n in range(1, 20, 2)}), criterion="clear")
    assert found.interval is not None
    assert found.interval[0] < 3.7
    assert found.interval[1] == pytest.approx(4)


@each_row("mean", [0.5, 0.9, 0.97])
@each_row("n", [10, 25, 60])
def test_the_estimate_of_a_mean_covers_the_truth(mean: float, n: int) -> None:
    """On 0..4, with a judge who is exact in four of five, and never wider than by the labels alone."""
    chance, hits, widths = np.random.default_rng(1), 0, 0.0
    for _ in range(150):
        people = chance.binomial(4, mean, n + 500).astype(float)
        judge = np.clip(people + chance.choice([-1, 0, 0, 0, 0, 0, 0, 0, 0, 1], n + 500), 0, 4)
        people[n:] = np.nan
        found = estimate_of(ratings(people, judge, scale=Scale("number", 0.0, 4.0)))
        (low, high), (least, most) = found.interval or (0, 0), found.labels_only.interval or (0, 0)
        hits += low <= 4 * mean <= high
        widths += (high - low) / (most - least) / 150
    assert hits / 150 >= 0.93
    assert widths < 1


@pytest.mark.parametrize("rate", [0.05, 0.95])
def test_the_estimate_of_a_rate_in_uneven_groups_covers_the_truth(rate: float) -> None:
    """Few groups tell how alike candidates of a group are where nearly all verdicts are the same."""
    chance, hits = np.random.default_rng(8), 0
    groups = np.repeat(np.arange(100), [1, 2, 3, 5, 8, 10, 15, 20, 30, 40] * 10)
    for _ in range(150):
        people, judge = verdicts(chance, grouped(chance, rate, 0.6, groups), (0.9, 0.8), len(groups))
        people[groups >= 30] = np.nan
        hits += covers(estimate_of(ratings(people, judge, groups)).interval, rate)
    assert hits >= 0.93 * 150


def test_two_rare_verdicts_in_two_groups_do_not_show_that_groups_do_not_matter() -> None:
    """Their interval is wider than that of as many candidates on their own."""
    people, judge = np.ones(400), np.arange(400) % 7 > 0
    people[[3, 61]], people[200:] = 0, np.nan
    one, other = (
        estimate_of(ratings(people, judge.astype(float), by)).interval or (0, 0) for by in (np.arange(400) // 5, None)
    )
    assert one[1] - one[0] > 1.2 * (other[1] - other[0])


def test_raters_who_differ_count_by_the_mean_of_their_votes() -> None:
    """Two raters who say .6 and .8 say .7 together; ties are no reason to leave a candidate out."""
    chance = random.Random(5)
    said = {n: [chance.random() < 0.6, chance.random() < 0.8] for n in range(150)}
    found = estimate(
        grades(GOOD, {n: {"good": n % 3 > 0} for n in range(400)}), Labels({n: {"good": v} for n, v in said.items()})
    )
    assert found.labels == 150
    assert found.labels_only.value == pytest.approx(sum(map(sum, said.values())) / 300)


def test_a_useless_judge_costs_nothing() -> None:
    """The interval is at most 7 % wider than that of the labels alone."""
    chance = random.Random(7)
    given = grades(GOOD, {n: {"good": chance.random() < 0.5} for n in range(2000)})
    found = estimate(given, Labels({n: {"good": chance.random() < 0.9} for n in range(80)}), criterion="good")
    assert found.interval is not None
    assert found.labels_only.interval is not None
    ratio = (found.interval[1] - found.interval[0]) / (found.labels_only.interval[1] - found.labels_only.interval[0])
    assert ratio <= 1.07


def test_labels_on_ungraded_candidates_show_whether_failures_are_random() -> None:
    """A judge that fails on bad candidates leaves out the bad ones."""
    failing = {
        key: said if PEOPLE[key]["good"] or key % 3 else {"good": None, "clear": None} for key, said in JUDGE.items()
    }
    found = estimate(
        grades(BOTH, failing), Labels({key: {"good": PEOPLE[key]["good"]} for key in JUDGE}), criterion="good"
    )
    assert found.ungraded > 10
    assert found.ungraded_labels is not None
    assert "labels, of which 0.00 is the mean" in str(found)
    truth = sum(said["good"] for said in PEOPLE.values()) / len(PEOPLE)
    assert found.value == pytest.approx(truth)  # all are labelled, and the ungraded ones count by their labels
    assert found.bounds is None
    half = estimate(
        grades(BOTH, failing), Labels({n: {"good": PEOPLE[n]["good"]} for n in range(100)}), criterion="good"
    )
    assert half.ungraded_labels is not None
    assert half.value is not None
    assert half.value < (half.judge_only.value or 1.0)
    unlabelled = Labels({n: {"good": PEOPLE[n]["good"]} for n, said in failing.items() if said["good"] is not None})
    bounded = estimate(grades(BOTH, failing), unlabelled, criterion="good")
    assert bounded.bounds is not None
    assert bounded.bounds[0] - 1e-9 <= truth < bounded.bounds[1]


def test_rogan_gladen_is_right_where_labels_were_chosen() -> None:
    """Half of the labelled are bad, and a tenth of all are."""
    chance = random.Random(11)
    truth = {n: chance.random() < 0.9 for n in range(3000)}
    given = grades(GOOD, {n: {"good": chance.random() < (0.92 if good else 0.2)} for n, good in truth.items()})
    bad, good = ([n for n, is_good in truth.items() if is_good == wanted][:100] for wanted in (False, True))
    labels = Labels({n: {"good": truth[n]} for n in (*bad, *good)})
    found, plain = (
        estimate(given, labels, criterion="good", how="rogan-gladen"),
        estimate(given, labels, criterion="good"),
    )
    assert found.value == pytest.approx(0.9, abs=0.04)
    assert found.interval is not None
    assert found.interval[0] <= 0.9 <= found.interval[1]
    assert plain.value is not None
    assert abs(plain.value - 0.9) > 0.1
    assert "passes bad candidates as often" in str(
        estimate(
            grades(GOOD, {n: {"good": n % 2 > 0} for n in range(40)}),
            Labels({n: {"good": n % 4 > 1} for n in range(30)}),
            criterion="good",
            how="rogan-gladen",
        )
    )


def test_weights_undo_a_sample_that_was_chosen(tmp_path: Path) -> None:
    """Two in three labelled candidates are bad, and each stands for fewer."""
    truth = {n: n % 4 > 0 for n in range(400)}
    given = grades(GOOD, {n: {"good": (n * 7) % 5 > 1} for n in truth})
    rows = ["key,criterion,value,weight"]
    rows += [
        f"{n},good,{'yes' if truth[n] else 'no'},{6 if truth[n] else 1}"
        for n in truth
        if (n % 12 == 1 if truth[n] else n % 8 == 0)
    ]
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    weighted = Labels.read(tmp_path / "labels.csv")
    found = estimate(given, weighted, criterion="good")
    plain = estimate(given, Labels({row.key: {"good": row.value} for row in weighted}), criterion="good")
    assert found.value is not None
    assert plain.value is not None
    assert found.value > plain.value + 0.2


# -- differences -------------------------------------------------------------------------------------------


def test_a_difference_is_paired_by_key() -> None:
    """Keys without a partner are listed, and ungraded pairs are left out."""
    worse = {key: {**said, "good": bool(said["good"]) and key % 5 > 0} for key, said in JUDGE.items() if key < 190}
    worse[3] = {"good": None, "clear": 3}
    found = compare(grades(BOTH, worse), GRADES)
    good = found["good"]
    assert good.difference < 0
    assert good.is_shown
    assert good.interval[1] < 0
    assert (good.gained, good.n) == (0, 189)
    lost = tuple(str(key) for key in range(0, 190, 5) if JUDGE[key]["good"])
    assert (good.worse, good.better) == (lost, ())
    assert found.worse == lost
    assert f"{len(lost)} candidates scored lower ('{lost[0]}', " in str(found)
    assert not any(remark.endswith("..") for remark in found.remarks())
    assert found.unpaired_old == tuple(map(str, range(190, 200)))
    assert found.ungraded == 1
    assert good.pairs_for(good.detectable / 2) == pytest.approx(4 * 189, abs=2)
    assert "down by" in found.sentence
    json.dumps(found.to_dict(), allow_nan=False)


@given(st.integers(0, 1000))
@examples(15)
def test_swapping_two_runs_negates_the_difference(seed: int) -> None:
    """Differences and intervals change sign, and p stays."""
    other = grades(BOTH, noisy(60, seed=seed)[1])
    mine = Grades(GRADES[:60])
    for there, back in zip(compare(mine, other), compare(other, mine), strict=True):
        assert there.difference == pytest.approx(-back.difference)
        assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]))
        assert there.p == pytest.approx(back.p)
        assert (there.worse, there.better) == (back.better, back.worse)


def test_labels_of_both_runs_correct_the_difference() -> None:
    """A judge that likes the new run better than people do is corrected."""
    flattered = {key: {**said, "good": True} for key, said in JUDGE.items()}
    new = grades(BOTH, flattered)
    plain, corrected = compare(new, GRADES)["good"], compare(new, GRADES, labels=(LABELS, LABELS))["good"]
    assert plain.difference > 0.2
    assert corrected.labels == 100
    assert corrected.interval[0] <= 0 <= corrected.interval[1]


# -- calibration -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["isotonic", "linear", "platt"])
def test_a_calibration_stands_beside_the_scores(how: Any, tmp_path: Path) -> None:
    """Scores are untouched; a dumped one is read back; the grades of another rubric are refused."""
    labels = LABELS if how != "platt" else Labels({key: {"good": PEOPLE[key]["good"]} for key in range(100)})
    found = calibrate(GRADES, labels, how=how)
    after = found(GRADES)
    assert [result.outcome for result in after] == [result.outcome for result in GRADES]
    one = after[0].calibrated["good"]
    assert 0 <= one.interval[0] <= one.value <= one.interval[1] <= 1
    found.dump(tmp_path / "calibration.yaml")
    again = Calibration.load(tmp_path / "calibration.yaml")
    assert again == found
    assert (again.rubric, again.judge, again["good"].n) == (BOTH.digest, "offline", 100)
    with pytest.raises(DefinitionError, match="calibrate anew"):
        again(grades(GOOD, JUDGE))


def test_a_judge_that_adds_nothing_is_told_so() -> None:
    """The sentence says it of a judge that answers at random."""
    chance = random.Random(2)
    useless = grades(BOTH, {key: {"good": chance.random() < 0.5, "clear": chance.randint(1, 5)} for key in PEOPLE})
    assert "the judge adds nothing" in calibrate(useless, LABELS).sentence


# -- trusted -----------------------------------------------------------------------------------------------


def test_trusted_verdicts_are_an_occasion_for_a_cascade() -> None:
    """The sure half is right; the rest goes to the second judge."""
    chance = random.Random(4)
    rubric = Rubric().scores("Good", id="good").passing_at(0.5)
    truth = {n: chance.random() < 0.5 for n in range(600)}
    said = {}
    for n, good in truth.items():
        sure = n % 2 == 0
        right = good if chance.random() < (0.99 if sure else 0.6) else not good
        said[n] = {"good": (0.95 if right else 0.05) if sure else (0.6 if right else 0.4)}
    given = grades(rubric, said)
    found = trusted(given, Labels(truth), error=0.05, risk=0.05)
    assert found.kept == pytest.approx(0.5)
    assert [found.when(result) for result in given[:2]] == [False, True]
    rule = Cascade("offline", "offline", when=found.when)
    assert rule.when is found.when
    strict = trusted(given, Labels({n: truth[n] for n in range(60)}), error=0.02, risk=0.05)
    assert strict.kept == 0
    assert strict.needed is None or strict.needed > 60
    assert all(strict.when(result) for result in given)


@pytest.mark.parametrize(
    ("p", "finds", "error"), [(0.8, (0.9, 0.8), 0.2), (0.7, (0.9, 0.9), 0.2), (0.95, (0.97, 0.8), 0.1)]
)
def test_a_no_is_no_surer_than_a_yes(p: float, finds: tuple[float, float], error: float) -> None:
    """With the default threshold, a judge of yes and no keeps all where all of it passes the exact test."""
    chance = random.Random(8)
    truth = {n: chance.random() < p for n in range(500)}
    said = {n: {"good": chance.random() < (finds[0] if good else 1 - finds[1])} for n, good in truth.items()}
    wrong = sum(said[n]["good"] != good for n, good in truth.items())
    assert stats.binom.cdf(wrong, 500, error) <= 0.05
    found = trusted(grades(GOOD, said), Labels(truth), error=error)
    assert (found.kept, found.kept_labels, found.wrong) == (1, 500, wrong)


def test_whatever_the_labels_is_said_where_all_of_the_judge_fails() -> None:
    """Where a part of the verdicts is right enough, it says how many labels would do."""
    scored = Rubric().scores("Good", id="good").passing_at(0.5)
    truth = {n: n % (4 if n < 40 else 20) > 0 for n in range(100)}  # the surest are wrong in a quarter
    given = grades(scored, {n: {"good": 1.0 if n < 40 else 0.8} for n in truth})
    found = trusted(given, Labels(truth), error=0.18)
    assert (found.kept, found.needed is not None and found.needed > 100) == (0, True)
    assert "would do" in found.sentence
    assert "whatever the labels" in trusted(given, Labels(truth), error=0.05).sentence


def test_a_jury_is_as_sure_as_its_votes_agree() -> None:
    """Trust goes by the share of votes, and keeps a part of the verdicts."""
    chance = random.Random(6)
    truth = {n: n % 2 == 0 for n in range(400)}
    votes = {n: [{"good": good ^ (chance.random() < 0.15)} for _ in range(5)] for n, good in truth.items()}
    found = trusted(jury(GOOD, votes), Labels(truth), error=0.05)
    assert found.when.by == "votes"
    assert 0.3 < found.kept <= 1


# -- drift -------------------------------------------------------------------------------------------------


def test_an_unchanged_judge_has_not_drifted(tmp_path: Path) -> None:
    """Baselines as values, paths and calibrations give the same answer."""
    saved = agreement(GRADES, LABELS)
    saved.dump(tmp_path / "baseline.yaml")
    calibrate(GRADES, LABELS).dump(tmp_path / "calibration.yaml")
    now = agreement(grades(BOTH, noisy(right=0.91)[1]), LABELS)
    for baseline in (saved, tmp_path / "baseline.yaml", str(tmp_path / "calibration.yaml"), calibrate(GRADES, LABELS)):
        found = now.against(baseline)
        assert found.exit_code == 0
        assert found.sentence == "No change is shown in 4 figures, corrected for their number."
    assert saved.against(saved).exit_code == 0


def test_which_of_two_judges_is_right_more_often_is_one_test(tmp_path: Path) -> None:
    """Over all criteria with verdicts, by candidate, on the same labels, and as well by a file; scales are left out."""
    two = Rubric("r").expects("A", id="a").expects("B", id="b").rates("C", {1: "no", 5: "yes"}, id="c")
    chance = random.Random(2)
    people = {n: {"a": chance.random() < 0.6, "b": chance.random() < 0.6, "c": chance.randint(1, 5)} for n in range(80)}

    def by(right: float) -> Any:
        said = {
            n: {k: v ^ (chance.random() > right) if isinstance(v, bool) else v for k, v in one.items()}
            for n, one in people.items()
        }
        return agreement(grades(two, said), Labels(people))

    poor, good = by(0.75), by(0.95)
    found = good.against(poor)
    assert found.right is not None
    assert (found.right.id, found.right.n) == ("right, over 2 criteria", 80)
    hits = [
        [
            (good[k].confusion[0][0] + good[k].confusion[1][1]) / 80,
            (poor[k].confusion[0][0] + poor[k].confusion[1][1]) / 80,
        ]
        for k in "ab"
    ]
    assert [found.right.new, found.right.old] == pytest.approx(np.mean(hits, axis=0).tolist())
    assert found.right.p == found.right.adjusted < 0.001
    assert "Which is right more often: one test" in str(found)
    assert f"the judge is right more often now: {found.right.old:.3f} then" in found.sentence
    wins = [{one.key for one in side.disagreements if one.criterion != "c"} for side in (good, poor)]
    assert not {*found.right.better} & ({*wins[0]} - {*wins[1]})
    assert {*found.right.worse} <= {*wins[0]}
    assert found.right.better
    poor.dump(tmp_path / "poor.yaml")
    assert good.against(tmp_path / "poor.yaml").right == found.right
    other = agreement(grades(two, people), Labels({n: {"c": one["c"]} for n, one in people.items()}))
    assert other.against(other).right is None
    alone = agreement(GRADES, LABELS)
    assert (right := alone.against(alone).right) is not None
    assert (right.id, right.difference) == ("right", 0)


def test_an_alarm_can_fire(tmp_path: Path) -> None:
    """A judge that fell to chance; people who changed their minds; and what is different by name."""
    saved = agreement(GRADES, LABELS)
    broken = agreement(grades(BOTH, noisy(right=0.3)[1]), LABELS).against(saved)
    assert broken.exit_code == 1
    assert any(change.id.startswith("the judge's distance from people") for change in broken.shown)
    minds = Labels({key: {"good": False, "clear": 1} for key in range(100)})
    assert any(one.id.startswith("people") for one in agreement(GRADES, minds).against(saved).shown)
    (tmp_path / "nothing.yaml").write_text("kind: menu\n")
    with pytest.raises(DefinitionError, match="expected a saved agreement or calibration, got menu"):
        saved.against(tmp_path / "nothing.yaml")


@pytest.mark.parametrize("share", [0.62, 1.0])
def test_a_judge_that_leaves_more_ungraded_has_changed(share: float) -> None:
    """What it still says is as before, and so few can be less of a change than that the others have no verdict."""
    saved = agreement(GRADES, LABELS)
    silent = {key: {"good": None, "clear": None} if key < 100 * share else said for key, said in JUDGE.items()}
    found = agreement(grades(BOTH, silent), LABELS).against(saved)
    assert found.exit_code == 1
    lead = next(one for one in found.shown if one.id == "the share left ungraded on good")
    assert (lead.old, round(lead.new, 2), lead.n) == (0, share, 100)
    assert "left ungraded" in found.sentence
    some = {key: {"good": None, "clear": None} if key < 3 else said for key, said in JUDGE.items()}
    assert agreement(grades(BOTH, some), LABELS).against(saved).exit_code == 0


def test_results_without_a_call_cannot_show_drift() -> None:
    """Stored replies are those of the judge of then; a remark says so, and what asks it again."""
    saved, remark = agreement(GRADES, LABELS), "Store(path, mode='refresh')"
    assert any(remark in note for note in saved.against(saved).remarks())
    asked = Grades(evolve(one, usage=Usage(calls=1)) if n == 3 else one for n, one in enumerate(GRADES))
    assert not any(remark in note for note in agreement(asked, LABELS).against(saved).remarks())
    assert not any(remark in note for note in saved.remarks())


def test_other_candidates_are_compared_on_average() -> None:
    """New keys each month: the same judge is not called changed, and a broken one is."""
    saved = agreement(GRADES, LABELS)

    def month(right: float) -> Any:
        people, judge = noisy(seed=9, right=right)
        shifted = {key + 1000: said for key, said in judge.items()}
        return agreement(grades(BOTH, shifted), Labels({key + 1000: people[key] for key in range(100)}))

    assert month(0.9).against(saved).exit_code == 0
    assert month(0.3).against(saved).exit_code == 1


def test_drift_is_by_group(tmp_path: Path) -> None:
    """Twenty prompts whose ten answers are all alike are twenty draws, also in a saved baseline."""

    def month(start: int, passing: int) -> Any:
        said = {n: {"good": n // 10 - start // 10 < passing} for n in range(start, start + 200)}
        return agreement(
            grades(GOOD, said, {n: n // 10 for n in said}), Labels({n: dict(one) for n, one in said.items()})
        )

    then, now = month(0, 15), month(1000, 11)
    then.dump(tmp_path / "baseline.yaml")
    for saved in (then, tmp_path / "baseline.yaml"):
        assert not now.against(saved).changed  # 75 % and 55 %: of 400 single answers that would be no chance
    assert month(1000, 5).against(then).changed


# -- lines, charts, weight -----------------------------------------------------------------------------------


def test_a_file_of_results_serves_as_well_as_grades(tmp_path: Path) -> None:
    """The scales are inferred from what was said."""
    GRADES.to_jsonl(tmp_path / "results.jsonl")
    read, given = as_judged(tmp_path / "results.jsonl"), as_judged(GRADES)
    for name, (scale, values) in given.columns.items():
        assert read.columns[name][0].kind == scale.kind
        np.testing.assert_allclose(read.columns[name][1], values)
    for one, other in zip(agreement(tmp_path / "results.jsonl", LABELS), agreement(GRADES, LABELS), strict=True):
        assert one.statistics == other.statistics


def test_results_have_charts() -> None:
    """Charts are data: they can be looked into without a browser."""
    found = agreement(GRADES, LABELS)
    for result in (
        found,
        estimate(GRADES, LABELS, criterion="clear"),
        compare(GRADES, GRADES),
        agreement(jury(GOOD, {n: [{"good": True}] * 3 for n in range(9)})),
    ):
        chart = result.plot().to_dict()
        assert "data" in json.dumps(chart)


def test_importing_the_library_loads_no_numpy() -> None:
    """Neither NumPy nor SciPy is loaded by `from rubric import grade`."""
    code = "import sys, rubric; from rubric import grade; print('numpy' in sys.modules, 'scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_without_the_extra_everything_else_works() -> None:
    """`import *` takes no name of the extra, and such a name says what to install."""
    code = """
import sys
sys.modules["numpy"] = sys.modules["scipy"] = None
import rubric.__main__
from rubric import *
assert "grade" in globals() and "prefer" in globals() and "agreement" not in globals()
from rubric import trust
try:
    trust.agreement
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "rubric.trust.agreement takes numpy and scipy: pip install 'rubric-grade[stats]'"


def test_candidates_with_the_same_key_are_one_group() -> None:
    """A label is of each of them."""
    given = grade_many([Candidate("thanks", key=str(n // 2)) for n in range(60)], "thanks", "offline").collect()
    found = agreement(given, Labels({str(n): True for n in range(30)}))
    assert found.criteria[0].n == 60
    assert not found.unmatched


# -- suites ------------------------------------------------------------------------------------------------


def suite_of(size: int) -> Suite:
    return Suite("s", [Case(f"case-{n}", GOOD, output=f"reply {n}") for n in range(size)])


def by_number(is_good: Any) -> Judge:
    return Judge(ScriptedModel(lambda ask: is_good(int(ask.candidate.split()[1]))), identity="by number")


def test_labels_match_the_cases_of_a_report_by_id(tmp_path: Path) -> None:
    """Reports, their files and reordered suites match by the ids of the cases."""
    report = suite_of(40).run(by_number(lambda n: n % 3 > 0))
    labels = Labels({f"case-{n}": {"good": n % 3 > 0} for n in reversed(range(20))})
    assert agreement(report, labels)["good"]["agreement"].value == 1
    assert agreement(report, labels).unmatched == ()
    assert estimate(report, labels, criterion="good").labels == 20
    worse = Suite("s", suite_of(40).cases[::-1]).run(by_number(lambda n: n % 3 > 1))
    assert compare(report, worse)["good"].n == 40
    report.grades.to_jsonl(tmp_path / "results.jsonl")
    assert agreement(tmp_path / "results.jsonl", labels)["good"]["agreement"].value == 1


def test_repetitions_have_the_key_of_their_case_and_runs_are_one_group() -> None:
    """Repetitions share a key; runs have keys of their own and a common group."""
    report = suite_of(2).run(by_number(lambda n: n > 0), repeat=2)
    assert [result.key for result in report.grades] == ["case-0", "case-0", "case-1", "case-1"]
    asked = Suite("s", [Case("a", GOOD, input="?", runs=2), Case("b", GOOD, input="?")])
    found = asked.run(by_number(bool), target=lambda case: Candidate("reply 1", input=case.input)).grades
    assert [(r.key, r.group) for r in found] == [("a [run 1]", "a"), ("a [run 2]", "a"), ("b", "")]


def test_a_candidate_of_a_target_may_have_a_key_of_its_own() -> None:
    """The target's key names the grade, and the case's id names the row."""
    asked = Suite("s", [Case("a", GOOD, input="?")])
    report = asked.run(by_number(bool), target=lambda case: case.responding("reply 1", key="trace-9"))
    assert (report.rows[0].id, report.grades[0].key) == ("a", "trace-9")


def test_cases_without_a_result_are_no_grades_and_failed_targets_keep_their_key() -> None:
    """A deferred case gives no grade; a failed one gives an ungraded result."""

    def failing(case: Case) -> str:
        raise RuntimeError(case.id)

    suite = Suite("s", [*suite_of(1).cases, Case("late", GOOD, input="?")])
    assert [result.key for result in suite.run(by_number(bool)).grades] == ["case-0"]
    assert [result.key for result in suite.run(by_number(bool), target=failing).grades] == ["case-0", "late"]


def test_a_report_from_a_file_has_no_grades_and_names_the_cure(tmp_path: Path) -> None:
    """The error has the call that writes the results."""
    path = suite_of(2).run(by_number(bool)).write(tmp_path / "report.json")
    with pytest.raises(DefinitionError, match=r"report.grades.to_jsonl"):
        agreement(Report.load(path), Labels({"case-0": True}))


def test_the_ids_of_cases_change_no_key_of_the_store(tmp_path: Path) -> None:
    """Renamed cases are served from the store."""
    suite_of(3).run(by_number(bool), store=tmp_path / "s")
    renamed = Suite("s", [evolve(case, id=f"other {case.id}") for case in suite_of(3).cases])
    assert renamed.run(by_number(bool), store=tmp_path / "s").usage.calls == 0


def test_an_interval_that_is_none_is_left_out_of_the_sentence() -> None:
    """No text shows "nan", and each interval contains its value."""
    scored = Rubric("s").scores("x y")
    found = agreement(grade_many(["x", "y", "z"], scored, "offline").collect(), Labels({0: 0.2, 1: 0.3, 2: 0.9}))
    assert "nan" not in str(found)
    for statistic in found[0].statistics:
        if statistic.value is not None and statistic.interval is not None:
            assert statistic.interval[0] <= statistic.value <= statistic.interval[1], statistic


def test_two_pass_rates_differ_by_1_at_most() -> None:
    """The interval of a difference stays between -1 and 1."""
    ten = Rubric().checks(lambda c: c.output == "x", text="Is x", id="x")
    few = grade_many(["x", "y"], ten, "offline").collect()
    found = compare(few, few)
    assert all(-1 <= low <= high <= 1 for low, high in (one.interval for one in found))
    assert "No difference is so large" in str(found)


def test_a_label_that_is_no_number_is_refused_at_once() -> None:
    """NaN is refused when the labels are made."""
    with pytest.raises(DefinitionError, match=r"labels\[0\]: expected .*, got NaN; leave out"):
        Labels({0: float("nan")})


def test_a_file_of_labels_with_other_columns_is_told_the_option(tmp_path: Path) -> None:
    """The error has the `columns` argument to add."""
    (tmp_path / "labels.csv").write_text("id,label\n1,yes\n")
    with pytest.raises(DefinitionError, match=r"columns=\{'key': 'id', 'value': 'label'\}"):
        Labels.read(tmp_path / "labels.csv")


def test_the_column_with_verdicts_is_proposed_as_the_labels(tmp_path: Path) -> None:
    """Sooner than that of who gave them."""
    (tmp_path / "labels.csv").write_text("post,who,usable\nP1,mia,good\n")
    with pytest.raises(DefinitionError, match=r"columns=\{'key': 'post', 'value': 'usable'\}"):
        Labels.read(tmp_path / "labels.csv")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (Labels({0: 80, 1: 20}), "expected a number in 0..1, got 80; 80 of 100 is 0.8"),
        (Labels({0: 2, 1: 5}), r"2 on a scale from 1 to 5 is 0.25; write .*\(value=\(frame\['value'\] - 1\) / 4\)\)$"),
        (Labels({0: "meh", 1: "fine"}), "or in all labels of the whole a verdict .*got 'meh'; if it is a pass, write"),
        (Labels({0: -1, 1: 0}), "expected a number in 0..1, got -1$"),
        (
            Labels({0: "good", 1: "so-so"}),
            (
                r"expected yes or no \(pass or fail, yes or no, .*, good or bad, .*\), got 'so-so'; if it is a pass, "
                r"write labels.replace\(\{'so-so': 'pass'\}\), and if it is a fail, labels.replace"
            ),
        ),
    ],
)
def test_a_label_in_per_cent_is_told_its_share(labels: Labels, message: str) -> None:
    """80 on a scale from 0 to 1 is answered with 0.8, and a word beside numbers or other words with those taken."""
    with pytest.raises(DefinitionError, match=message):
        agreement(grade_many(["x", "y"], Rubric("s").scores("x y"), "offline").collect(), labels)


def test_words_for_a_verdict_are_labels_of_the_whole_unless_they_are_options() -> None:
    """Each word that the message lists is read; where the one criterion has good and bad as options, it has them."""
    pairs = [pair.split(" or ") for pair in VERDICTS.split(", ")]
    graded = grade_many(["x", "y"], Rubric("s").scores("x y"), "offline").collect()
    for yes, no in pairs:
        assert agreement(graded, Labels({0: yes, 1: no})).criteria[0].kind == "verdict"
    mapped = Labels({0: "meh", 1: "pass"}, by="index").replace({"meh": "fail"})
    assert agreement(graded, mapped).criteria[0].kind == "verdict"
    chosen = Rubric("s").chooses("Which?", {"bad": 0, "good": 1}, id="which")
    options = grade_many(["x", "y"], chosen, judge_function(lambda *_: "good")).collect()
    assert agreement(options, Labels({0: "good", 1: "bad"})).criteria[0].kind == "option"
    passing = Rubric("s").chooses("Which?", {"fail": 0, "pass": 1}, id="which")
    verdicts_ = grade_many(["x", "y"], passing, judge_function(lambda *_: "pass")).collect()
    assert agreement(verdicts_, Labels({0: "pass", 1: "fail"})).criteria[0].kind == "verdict"


def test_keys_that_are_places_are_told_how_to_be_read_so() -> None:
    """Where results have no keys, a column that is named as the index is one, whatever else the rows have."""
    graded = grade_many(["x", "y"], Rubric("s").scores("x y"), "offline").collect()
    frame = pd.DataFrame({"key": [0, 1], "value": [1.0, 0.0]})
    with pytest.raises(DefinitionError, match="if these are places from 0, call their column index; else grade with"):
        agreement(graded, Labels.from_pandas(frame))
    assert len(agreement(graded, Labels.from_pandas(frame, columns={"index": "key"})).criteria)


def test_labels_by_rater_that_are_turned_round_are_told_the_right_way() -> None:
    """What names the raters there are the candidates."""
    grades = grade_many([Candidate("x", key="a"), Candidate("y", key="b")], Rubric("s", ["x"]), "offline").collect()
    said = {"ann": {"a": True, "b": False}, "bob": {"a": True, "b": True}}
    with pytest.raises(
        DefinitionError, match=r"none matches.*; by rater, write Labels.by_rater\(\{key: \{rater: value\}\}\)$"
    ):
        agreement(grades, Labels.by_rater(said))
    assert len(agreement(grades, Labels.by_rater({key: {who: said[who][key] for who in said} for key in "ab"})))
    alone = {who: dict.fromkeys("abcde", True) for who in ("ann", "bob", "cy")}
    remark = "if 'ann', 'bob', 'cy' are people, write Labels.by_rater({key: {rater: value}})"
    assert remark in str(agreement(Labels.by_rater(alone)))
    right = Labels.by_rater({key: {who: alone[who][key] for who in alone} for key in "abcde"})
    assert "are people" not in str(agreement(right))
    assert "are people" not in str(agreement(Labels.by_rater({"a": dict.fromkeys("xyz", True)})))


def test_a_judge_stands_beside_each_person() -> None:
    """With several raters, it is told with whom the judge agrees, on what that one labelled."""
    said = {k: {"ann": PEOPLE[k]["good"], "bob": not PEOPLE[k]["good"]} for k in range(60)}
    del said[3]["bob"]
    found = agreement(GRADES, Labels.by_rater(said, "good"))
    ann, bob = found.by_rater["ann"], found.by_rater["bob"]
    assert (ann.n, bob.n) == (60, 59)
    alone = agreement(GRADES, Labels({k: {"good": PEOPLE[k]["good"]} for k in range(60)}))
    assert ann["agreement"] == alone["good"]["agreement"]
    assert "good: the judge and each person" in str(found)
    assert alone.by_rater == {}
    once = agreement(
        GRADES, Labels.by_rater({k: {"ann": True, **({"bob": True} if k == 0 else {})} for k in range(9)}, "good")
    )
    assert re.search(r"bob +1 +too few", str(once))


def test_an_estimate_of_a_criterion_without_labels_says_what_is_labelled() -> None:
    """The error lists what the labels are of."""
    with pytest.raises(DefinitionError, match="there are labels for: the whole"):
        estimate(grade_many(["x", "y"], GOOD, "offline").collect(), Labels({0: True, 1: False}), criterion="nope")


def test_a_guard_that_is_found_more_often_is_said_to_be_worse() -> None:
    """The difference of a guard counts how often it is present, which reads like a gain."""
    rubric = Rubric("r").forbids("Promises a voucher", id="gift").expects("Is polite", id="polite")
    decide = judge_function(lambda candidate, criterion: criterion.id == "polite" or "voucher" in candidate.output)
    old, new = (
        grade_many([text] * 12, rubric, decide).collect() for text in ("Thanks.", "A voucher, thanks: voucher.")
    )
    found = compare(new, old)
    assert found["gift"].difference == 1
    assert any("A yes to 'gift' is unwanted" in note for note in found.notes)
    assert not any("'polite'" in note for note in found.notes)
