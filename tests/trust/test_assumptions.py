"""What figures assume of grades and labels: each remark is made where it should be, and none on clean data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from rubric import Anchor, Cascade, DefinitionError, Grades, Judge, Rubric, grade_many
from rubric.quality import align, items
from rubric.suites.baseline import Change, Comparison
from rubric.trust import (
    Calibration,
    Label,
    Labels,
    agreement,
    calibrate,
    compare,
    errors_by,
    estimate,
    thresholds,
    trusted,
)
from rubric.trust.drift import Baseline, drift
from rubric.trust.estimates import estimate_of
from tests.recorded import grades, result
from tests.rows import each_row
from tests.simulations.drawing import covers, grouped, ratings

GOOD = Rubric("answers").expects("Good", id="good")
CHANCE = np.random.default_rng(1)
TRUTH = CHANCE.random(600) < 0.8
SAID = np.where(TRUTH, CHANCE.random(600) < 0.9, CHANCE.random(600) >= 0.8)
GRADES = grades(GOOD, {n: {"good": bool(said)} for n, said in enumerate(SAID)})
RANDOM = [int(n) for n in CHANCE.choice(600, 120, replace=False)]


def labels_of(places: Any, **more: Any) -> Labels:
    """Return labels of the candidates at *places*, on the whole."""
    return Labels([Label(str(n), bool(TRUTH[n]), **more) for n in places])


LABELS = labels_of(RANDOM)
ANOTHER = Judge("openai/gpt-5-mini")


def by(judge: Judge, rubric: Rubric = GOOD, places: Any = range(600)) -> Grades:
    return Grades(result(rubric, {"good": bool(SAID[n])}, str(n), judge=judge) for n in places)


def test_clean_data_have_no_remark() -> None:
    """A random sample, one rubric, one judge, fresh labels: nothing is said of assumptions."""
    assert agreement(GRADES, LABELS).notes == ()
    assert estimate(GRADES, LABELS).notes == ()
    assert trusted(GRADES, LABELS, 0.2).notes == ()
    assert calibrate(GRADES, LABELS).notes == ()
    assert compare(GRADES, GRADES).notes == ()
    assert compare(GRADES, GRADES)["pass rate"].bounds is None


@pytest.mark.parametrize(
    "chosen",
    [
        [n for n in range(600) if not SAID[n]][:100],  # all that the judge fails, first
        [n for n in range(600) if not TRUTH[n]][:70] + [n for n in range(600) if TRUTH[n]][:50],  # complaints
    ],
)
def test_labels_that_were_chosen_are_told_apart_from_a_random_sample(chosen: list[int]) -> None:
    """By the judge's own verdicts; with weights, and by Rogan and Gladen's estimate, nothing is said."""
    for found in (agreement(GRADES, labels_of(chosen)), estimate(GRADES, labels_of(chosen))):
        (note,) = (note for note in found.notes if "random sample" in note)
        assert re.search(r"the judge passes \d+ % of the labelled and \d+ % of the others", note)
        assert "give weights; if they were chosen by their quality, not by its verdicts, how='rogan-gladen'" in note
    assert "random sample" not in str(estimate(GRADES, labels_of(chosen), how="rogan-gladen").notes)
    weighted = Labels([evolve(row, weight=1.0 + n % 2) for n, row in enumerate(labels_of(chosen))])
    assert "random sample" not in str(estimate(GRADES, weighted).notes)


def test_chosen_numbers_options_and_groups_are_told_too() -> None:
    """Numbers by their ranks, options by the commonest, groups as single draws."""
    shades = Rubric().rates("Clear", {1: "no", 5: "yes"}, id="x").chooses("Tone", {"warm": 1, "cold": 0}, id="y")
    said = {n: {"x": 1 + n % 5, "y": "warm" if n % 5 > 1 else "cold"} for n in range(200)}
    low = {n: {"x": 1 + n % 5, "y": "warm" if n % 5 > 1 else "cold"} for n in said if n % 5 < 2}
    notes = str(agreement(grades(shades, said), Labels(low)).notes)
    assert "x: the judge gives the labelled candidates 1.50 and the others 4.00 on average" in notes
    assert "y: the judge says the same of" in notes
    every = {n: {"x": 1 + n % 5, "y": "warm" if n % 5 > 1 else "cold"} for n in range(0, 200, 3)}
    assert agreement(grades(shades, said), Labels(every)).notes == ()
    alike = {n: {"good": n // 20 % 2 == 0} for n in range(200)}  # ten prompts, whose answers are all alike
    given, groups = {n: alike[n] for n in range(60)}, {n: n // 20 for n in alike}
    assert agreement(grades(GOOD, alike, groups), Labels(given)).notes == ()


def test_rubrics_and_judges_that_are_mixed_up_are_told() -> None:
    """Of grades in one list, and of two runs that are compared."""
    other = GOOD.passing_at(0.9)
    mixed = Grades([*by(Judge("offline"), GOOD, range(300)), *by(ANOTHER, other, range(300, 600))])
    for found in (agreement(mixed, LABELS), estimate(mixed, LABELS), trusted(mixed, LABELS, 0.2)):
        assert "the grades are of 2 rubrics" in found.notes[0]
        assert "2 judges (offline" in found.notes[1]
    rows = [{"key": f"r{n}", "output": "Thank you." if n else None} for n in range(4)]
    graded = grade_many(rows, "Says thank you", "offline").collect()  # an empty row has a result, and no judge
    assert "judges" not in str(agreement(graded, Labels({"r1": True, "r2": True})).notes)
    warm = by(evolve(ANOTHER, temperature=0.7))
    notes = str(compare(by(ANOTHER), GRADES).notes)
    assert "different judges (openai/gpt-5-mini and offline), who may make the difference" in notes
    assert "with other settings" in str(compare(by(ANOTHER), warm).notes)
    assert "different rubrics" in str(compare(by(ANOTHER, other), by(ANOTHER)).notes)


def test_a_calibration_is_of_its_judge(tmp_path: Path) -> None:
    """Grades of another judge are refused, also after reading it from a file; the error has the way round."""
    calibrate(by(ANOTHER), LABELS).dump(tmp_path / "c.yaml")
    for found in (calibrate(by(ANOTHER), LABELS), Calibration.load(tmp_path / "c.yaml")):
        assert len(found(by(ANOTHER))) == 600
        with pytest.raises(DefinitionError, match=r"600 are by offline, not by openai.* any_judge=True\)"):
            found(GRADES)
        with pytest.raises(DefinitionError, match="with other settings"):
            found(by(evolve(ANOTHER, temperature=0.7)))
        assert found(GRADES, any_judge=True)[0].calibrated


def test_raters_who_differ_are_told_with_the_way_the_judge_leans() -> None:
    """The count, and what the judge says of these candidates; an estimate takes the mean of their votes."""
    two = {n: {"good": [bool(TRUTH[n]), bool(TRUTH[n]) ^ (n % 10 == 0)]} for n in RANDOM}
    ties = sum(n % 10 == 0 for n in RANDOM)
    (note,) = agreement(GRADES, Labels(two)).notes
    assert note.startswith(f"people are divided on {ties} candidates, left out here (the judge says yes to")
    assert estimate(GRADES, Labels(two), criterion="good").notes == ()
    (note,) = estimate(GRADES, Labels(two), criterion="good", how="rogan-gladen").notes
    assert note.startswith(f"people are divided on {ties} candidates, left out here")


def test_labels_that_chose_a_rubric_or_a_cascade_flatter_it() -> None:
    """Their digest goes with the rubric that `align` made, and with the rule of `trusted`."""
    scored = Rubric("s", threshold=0.9).scores("Good", id="good")
    said = {n: {"good": 0.8 if SAID[n] else 0.2} for n in range(600)}
    made = align(scored, grades(scored, said), LABELS, edits=["threshold"])
    assert made.rubric.provenance["labels"][0].startswith(LABELS.digest)
    fresh = labels_of([n for n in range(600) if n not in RANDOM][:100])
    again = grades(made.rubric, said)
    assert "120 labels chose the rubric or the judge" in agreement(again, LABELS).notes[0]
    assert agreement(again, fresh).notes == ()
    sure = trusted(GRADES, LABELS, 0.3).when
    one = evolve(GRADES[0], judge=Cascade("offline", "offline", when=sure))
    assert "chose the rubric or the judge" in str(estimate(Grades([one, *GRADES[1:]]), LABELS).notes)


def test_labels_that_share_candidates_with_those_that_chose_are_counted() -> None:
    """By key, whoever labelled them and whatever they said; labels of places are known as a whole set alone."""
    scored = Rubric("s", threshold=0.5).scores("Good", id="good")
    given = grades(scored, {n: {"good": 0.8 if SAID[n] else 0.2} for n in range(600)})
    again = given.rescore(thresholds(given, LABELS).best().rubric)
    fresh = [n for n in range(600) if n not in RANDOM][:90]
    notes = agreement(again, labels_of([*RANDOM[:30], *fresh], rater="bob")).notes
    assert "30 of these 120 labels chose the rubric or the judge: their figures flatter; use others" in notes
    assert agreement(again, labels_of(fresh)).notes == ()
    places = evolve(LABELS, by="index")
    chosen = given.rescore(thresholds(given, places).best().rubric)
    assert "these 120 labels chose" in str(agreement(chosen, places).notes)
    assert agreement(chosen, labels_of(RANDOM[:60], rater="bob")).notes == ()


def test_labelled_candidates_that_are_anchors_are_counted() -> None:
    """The judge was shown what people say of them, by whoever wrote the anchors; other candidates have no remark."""
    texts = [f"reply {n}" + " thanks" * (n % 2) for n in range(40)]
    anchored = Rubric("r").expects("Thankful", id="x", anchors=[Anchor(texts[3], True), Anchor(texts[4], False)])
    given = grade_many(texts, anchored, "offline").collect()
    people = {n: n % 2 == 1 for n in range(40)}
    assert (
        "2 labelled candidates among the anchors that the judge is shown; label others"
        in agreement(given, people).notes
    )
    assert "anchors" not in str(agreement(given, {n: said for n, said in people.items() if n > 4}).notes)


def test_labels_that_saw_the_verdict_are_counted() -> None:
    """Thirty of them are left out."""
    rows = [evolve(row, judge_seen=n < 30) for n, row in enumerate(LABELS)]
    assert "30 labels left out, since the rater had seen the judge's verdict" in agreement(GRADES, Labels(rows)).notes
    found = agreement(GRADES, Labels(rows).with_seen)
    assert "30 labels count although the rater had seen the judge's verdict" in found.notes
    assert found.criteria[0].n == agreement(GRADES, LABELS).criteria[0].n


def test_a_criterion_all_of_whose_labels_saw_the_verdict_is_left_out_and_counted() -> None:
    """One such label does not keep the others from being counted; where no other is left, there is no figure."""
    one = Label("0", True, judge_seen=True)  # of the whole; the others are of a criterion
    found = agreement(GRADES, Labels([one, *LABELS]))
    assert found.criteria == agreement(GRADES, LABELS).criteria
    assert "1 label left out, since the rater had seen the judge's verdict" in found.notes
    with pytest.raises(DefinitionError, match=r"all 1 were given after a look .*; label without it, or give"):
        agreement(GRADES, Labels([one]))


def test_two_results_of_one_place_are_told() -> None:
    """Two runs without keys in one list: a label counts twice; with keys they are a group."""
    runs = [grade_many(["thanks", "no"] * 20, "thanks", "offline").collect() for _ in range(2)]
    labels = Labels({n: n % 2 == 0 for n in range(30)})
    (note,) = agreement(Grades([*runs[0], *runs[1]]), labels).notes
    assert "40 places of candidates have two results or more" in note
    assert agreement(runs[0], labels).notes == ()
    rows = [{"output": "thanks" if n % 2 else "no", "key": f"T-{n}"} for n in range(30)]
    keyed = grade_many([*rows, rows[16]], "thanks", "offline").collect()
    told = "1 key ('T-16') of two results or more: a label counts for each of them, as one group"
    by_key = Labels({f"T-{n}": "" if n == 3 else n % 3 == 0 for n in range(30)})  # "" is no label, as in a file
    assert len(by_key) == 29
    assert [told in note for note in agreement(keyed, by_key).notes if "T-" in note] == [True]
    assert told in str(thresholds(keyed, by_key).notes)
    assert not any("T-" in note for note in agreement(Grades(keyed[:30]), by_key).notes)


def test_a_useless_and_an_inverted_judge_are_called_so() -> None:
    """With the figure that says so."""
    opposite = grades(GOOD, {n: {"good": not said} for n, said in enumerate(SAID)})
    for found in (estimate(opposite, LABELS), agreement(opposite, LABELS), trusted(opposite, LABELS, 0.2)):
        assert "the judge says the opposite of people (correlation -0." in str(found.notes)
    chance = np.random.default_rng(3).random(600) < 0.8
    useless = grades(GOOD, {n: {"good": bool(said)} for n, said in enumerate(chance)})
    assert "no agreement with people beyond chance is shown" in str(estimate(useless, LABELS).notes)
    same = grades(GOOD, {n: {"good": True} for n in range(600)})
    assert "the judge says the same of all 120 labelled candidates" in str(agreement(same, LABELS).notes)


def test_few_labels_that_an_exact_test_finds_enough_do_not_call_a_judge_useless() -> None:
    """Of 20 verdicts, 18 agree: the interval of the correlation is wide, and Fisher's test has p = 0.013."""
    people = {n: n >= 4 for n in range(20)}
    judge = grades(GOOD, {n: {"good": said != (n in (0, 10))} for n, said in people.items()})
    found = agreement(judge, Labels(people))
    assert found[0]["phi"].value == pytest.approx(0.69, abs=0.01)
    assert "no agreement" not in str(found.notes)


def test_weights_are_told_with_what_labels_are_worth() -> None:
    """Half of them count thrice."""
    rows = [evolve(row, weight=1.0 + 2 * (n % 2)) for n, row in enumerate(LABELS)]
    assert "figures are by weight: 120 labels of weight 1 to 3 are worth 96 that count alike" in str(
        agreement(GRADES, Labels(rows)).notes
    )


def test_ungraded_pairs_leave_a_difference_open() -> None:
    """The bounds stand in the remark, and cover what the missing side could have been."""
    failing = {n: {"good": None if n < 60 else bool(said)} for n, said in enumerate(SAID)}
    found = compare(grades(GOOD, failing), GRADES)
    low, high = found["pass rate"].bounds or (0, 0)
    assert (low, high) == pytest.approx((-SAID[:60].mean() / 10, 1 / 10 - SAID[:60].mean() / 10))
    assert f"over all, it is {low:+.3f} to {high:+.3f}." in str(found)


def test_an_interval_beside_holm_has_a_word() -> None:
    """One of twelve criteria moved by as much as one in twenty does: its interval leaves out 0, its p does not."""
    many = Rubric("many")
    for n in range(12):
        many = many.expects(f"Good {n}", id=f"c{n}")
    old = {k: {f"c{n}": True for n in range(12)} for k in range(100)}
    new = {k: {f"c{n}": not (n == 0 and k < 8) for n in range(12)} for k in range(100)}
    found = compare(grades(many, new), grades(many, old))
    assert found["c0"].interval[1] < 0
    assert found["c0"].adjusted > 0.05
    assert any("among 12, chance may explain c0 (see p)" in note for note in found.notes)


def test_a_question_ends_without_a_full_stop() -> None:
    """The remark on an inverted judge asks."""
    inverted = grades(GOOD, {n: {"good": not said} for n, said in enumerate(SAID)})
    assert "meant the other way round?\n" in str(agreement(inverted, LABELS))


def test_a_comparison_with_labels_looks_at_them_too() -> None:
    """Chosen labels, and labels after a look at the verdict, are remarked on; a tie is a half; weights are refused."""
    seen = Labels([evolve(row, judge_seen=n < 30) for n, row in enumerate(LABELS)])
    chosen = labels_of([n for n in range(600) if not SAID[n]][:100])
    found = compare(GRADES, by(ANOTHER), labels=(seen, chosen))
    assert any("Labels of the new run: 30 labels left out, since the rater had seen" in note for note in found.notes)
    (note,) = (note for note in found.notes if "not a random sample" in note)
    assert note.startswith("Labels of the old run: the judge passes")
    assert note.endswith("; label one.")
    assert compare(GRADES, GRADES, labels=(LABELS, LABELS)).notes == ()
    divided = Labels({n: {"good": [True, False]} for n in RANDOM})
    agreed = Labels({n: {"good": bool(TRUTH[n])} for n in RANDOM})
    assert compare(GRADES, GRADES, labels=(divided, agreed))["good"].labels == len(RANDOM)
    weighted = Labels([evolve(row, weight=1.0 + n % 2) for n, row in enumerate(LABELS)])
    with pytest.raises(DefinitionError, match="those of the new run have weights"):
        compare(GRADES, GRADES, labels=(weighted, LABELS))


def test_bounds_of_a_corrected_difference_hold_it() -> None:
    """Ungraded sides widen what the labels corrected, not what the judge said."""
    flattered = {n: {"good": True} for n in range(600)}
    some = Grades([*grades(GOOD, flattered)][:590])
    rest = [result(GOOD, {}, str(n)) for n in range(590, 600)]
    graded = labels_of([n for n in RANDOM if n < 590])  # none on an ungraded side
    found = compare(Grades([*some, *rest]), GRADES, labels=(graded, graded))["pass rate"]
    assert found.bounds is not None
    assert found.bounds[0] <= found.difference <= found.bounds[1]


def test_a_threshold_has_the_remarks_of_its_labels() -> None:
    """Chosen labels choose another threshold; a random sample has no remark."""
    scored = Rubric("s", threshold=0.5).scores("Good", id="good")
    given = grades(scored, {n: {"good": 0.8 if SAID[n] else 0.2} for n in range(600)})
    assert thresholds(given, LABELS).notes == thresholds(given, LABELS).best().notes == ()
    chosen = labels_of([n for n in range(600) if not SAID[n]][:100])
    assert "not a random sample" in str(thresholds(given, chosen))
    assert "not a random sample" in str(thresholds(given, chosen).best())


def test_what_is_tested_exactly_takes_no_weights() -> None:
    """Of labels that were drawn with other probabilities, the guarantee of `trusted` would not hold."""
    weighted = Labels([evolve(row, weight=1.0 + n % 2) for n, row in enumerate(LABELS)])
    with pytest.raises(DefinitionError, match="weights"):
        trusted(GRADES, weighted, 0.2)
    assert "never" in str(trusted(GRADES, Labels({n: not TRUTH[n] for n in RANDOM}), 0.1))


def test_rogan_and_gladen_weigh_the_errors() -> None:
    """Doubtful candidates that were drawn more often count less: the errors are those of all candidates."""
    fails = [n for n in range(600) if not SAID[n]]
    passes = [n for n in range(600) if SAID[n]][:60]
    rows = [
        Label(str(n), bool(TRUTH[n]), weight=1.0 if n in fails else (600 - len(fails)) / 60) for n in [*fails, *passes]
    ]
    found = estimate(GRADES, Labels(rows), how="rogan-gladen")
    assert found.value == pytest.approx(TRUTH.mean(), abs=0.06)
    learned = calibrate(GRADES, Labels(rows)).notes
    assert "by weight" not in str(learned)  # it learns what people say where the judge says something


def test_no_more_labels_are_asked_for_than_candidates_are_left() -> None:
    """With all 100 others labelled the interval would not be half as wide: then more candidates are needed too."""
    found = estimate(Grades(GRADES[:160]), labels_of(range(60)))
    assert (found.grades, found.more) == (100, None)
    assert "No number of labels halves the interval: grade more candidates too." in str(found)


def test_a_remark_keeps_the_id_of_its_criterion() -> None:
    """A sentence begins with a capital letter, and an id is as it is; each ends with a full stop."""
    two = Rubric().expects("Good", id="good").expects("Kind", id="kind")
    said = {n: {"good": bool(SAID[n]), "kind": bool(CHANCE.random() < 0.5)} for n in range(60)}
    people = {n: {"good": bool(TRUTH[n]), "kind": bool(CHANCE.random() < 0.5)} for n in range(60)}
    remarks = agreement(grades(two, said), Labels(people)).remarks()
    assert any(remark.startswith("kind: no agreement with people beyond chance is shown") for remark in remarks)
    assert all(remark.endswith(".") for remark in remarks)
    one = agreement(GRADES, Labels({"1": bool(TRUTH[1])})).remarks()
    assert "The whole: 1 labelled candidate: with fewer than 30 the intervals say little." in one


def test_few_labels_that_are_right_are_called_few() -> None:
    """Nothing is said of all judges by 10 labels without an error; where all are ties, it is an error."""
    found = trusted(GRADES, Labels({n: bool(SAID[n]) for n in range(10)}), 0.05)
    assert found.sentence.startswith("10 labels are too few to keep a verdict")
    assert "whatever the labels" in trusted(GRADES, Labels({n: not SAID[n] for n in range(10)}), 0.05).sentence
    with pytest.raises(DefinitionError, match="people are not divided, got none"):
        trusted(GRADES, Labels({n: [True, False] for n in range(10)}), 0.05)


def test_a_sentence_without_a_correlation_is_one() -> None:
    """Where one of them says the same of all, the reason stands in brackets."""
    shades = Rubric().rates("Clear", {1: "no", 5: "yes"}, id="x")
    found = agreement(
        grades(shades, {n: {"x": 3} for n in range(40)}), Labels({n: {"x": 1 + n % 5} for n in range(40)})
    )
    assert "The judge has no correlation with people (one of them gives everything the same rating) and is off" in str(
        found
    )
    people = agreement(Labels({n: {"x": [3, 1 + n % 5]} for n in range(40)}))
    assert "2 people label 40 candidates, and their pearson is undefined: one of them gives" in people.sentence


def test_labels_that_calibrated_the_grades_are_told() -> None:
    """With what flatters and what does not; also after reading the calibration from a file, and by shared candidates."""
    calibrated = calibrate(GRADES, LABELS)(GRADES)
    fresh = [n for n in range(600) if n not in RANDOM][:90]
    (note,) = agreement(calibrated, LABELS).notes
    assert note.startswith("these 120 labels calibrated the grades: figures of scores stay as they are")
    assert "30 of these 120 labels calibrated" in str(estimate(calibrated, labels_of([*RANDOM[:30], *fresh])).notes)
    assert agreement(calibrated, labels_of(fresh)).notes == ()
    assert repr(calibrated[0].calibrated[""]).count("labels") == 0


def test_labels_of_an_item_analysis_and_of_an_alignment_are_looked_at() -> None:
    """Chosen labels are told there too; a random sample has no remark."""
    scored = Rubric("s", threshold=0.5).scores("Good", id="good")
    given = grades(scored, {n: {"good": 0.8 if SAID[n] else 0.2} for n in range(600)})
    chosen = labels_of([n for n in range(600) if not SAID[n]][:100])
    for told, silent in (
        (items(given, chosen).remarks(), items(given, LABELS).remarks()),
        (align(scored, given, chosen).remarks(), align(scored, given, LABELS).remarks()),
    ):
        assert "not a random sample" in str(told)
        assert "random sample" not in str(silent)


def test_labels_on_ungraded_pairs_count_for_them() -> None:
    """A judge that fails on bad answers hides a gain; labels on some of these show it, and no bounds are left."""
    better = TRUTH | (np.arange(600) % 5 == 0)
    new, old = (
        grades(GOOD, {n: {"good": bool(good) if good or n % 2 else None} for n, good in enumerate(of)})
        for of in (better, TRUTH)
    )
    both = [Labels({n: bool(of[n]) for n in range(0, 600, 3)}) for of in (better, TRUTH)]
    found = compare(new, old, labels=(both[0], both[1]))
    lead, hidden = found["pass rate"], compare(new, old)["pass rate"]
    true = float(better.mean() - TRUTH.mean())
    assert hidden.interval[1] < true
    assert lead.interval[0] < true < lead.interval[1]
    assert lead.bounds is None
    assert f"{found.ungraded} pairs with an ungraded side count by {lead.ungraded_labels} labels." in found.remarks()


_OF = ("the judge", "the judge's distance from people")
"""What is compared where the labels are the same: people cannot have changed, so they do not count."""


def test_slices_and_drift_have_a_word_where_an_interval_and_p_differ() -> None:
    """Their p are adjusted for their number, their intervals are not; two slices have no adjustment, so no word."""
    given = grades(GOOD, {n: {"good": n // 8 >= (12 if n % 8 == 0 else 5)} for n in range(400)})
    labels = dict.fromkeys(range(400), True)
    topics = {n: f"t{n % 8}" for n in range(400)}
    slices = errors_by(given, labels, topics)
    assert (slices["t0"].difference.interval or (0, 0))[1] < 0
    assert not slices["t0"].shown
    assert "among 8, chance may explain t0 (see p)" in str(slices.notes)
    two = errors_by(given, labels, {n: "t0" if n % 8 == 0 else "rest" for n in range(400)})
    assert "chance may explain" not in str(two.notes)
    was: Any = {id_: {f"k{n}": [1.0, 1.0] for n in range(100)} for id_ in ("a", "b", "c")}
    now = {**was, "a": {name: [float(n >= 6), 1.0] for n, name in enumerate(was["a"])}}
    moved, still = (drift(Baseline("j", "d", one), Baseline("j", "d", was)) for one in (now, was))
    assert not moved.changed
    assert [c.id for c in moved.changes] == [f"{of} on {id_}" for id_ in "abc" for of in _OF]
    assert re.fullmatch(
        r"No change is shown in 6 figures, corrected for their number; alone, the judge on a moved by -0.060 "
        r"\(-0.1\d\d to -0.0\d\d, p 0.\d+ corrected\), the judge's distance from people on a moved by .*\.",
        moved.sentence,
    )
    assert still.sentence == "No change is shown in 6 figures, corrected for their number."
    assert "among 6, chance may explain the judge on a" in str(moved.notes)
    assert still.notes == ()


def test_a_comparison_of_few_cases_with_many_runs_says_how_few_they_are() -> None:
    """Runs of one case are one draw; with one run each the number of cases stands in the sentence."""
    few, single = (
        Comparison(
            "s", tuple(Change(f"{c} [run {r}]", "same", "passed", "passed", 1, 1, case=c) for c, r in rows), risk=0.05
        )
        for rows in ([(f"c{n % 4}", n) for n in range(20)], [(f"c{n}", 1) for n in range(20)])
    )
    assert (
        "Runs of one case count as one draw; 4 groups: with 20 or fewer, intervals can be too narrow." in few.remarks()
    )
    assert "groups" not in str(single.remarks())


@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_rogan_gladen_covers_the_truth_by_group(rate: float) -> None:
    """Prompts with ten answers each, whose judge errs by prompt: without groups the interval is too narrow."""
    groups, chance, held = np.repeat(np.arange(60), 10), np.random.default_rng(3), np.zeros(2)
    for _ in range(100):
        people = (chance.random(600) < grouped(chance, rate, 0.3, groups)).astype(float)
        finds = [grouped(chance, of, 0.3, groups) for of in (0.9, 0.8)]
        judge = np.where(people == 1, chance.random(600) < finds[0], chance.random(600) >= finds[1]).astype(float)
        people[200:] = np.nan
        for place, among in enumerate((groups, None)):
            held[place] += covers(estimate_of(ratings(people, judge, among), "rogan-gladen").interval, rate)
    assert held[0] >= 91
    assert held[1] < 85


def test_labels_that_saw_the_verdict_count_on_request_in_an_estimate_too() -> None:
    """All of them had seen it: without the request there is no figure, with it the remark says so."""
    seen = Labels([evolve(row, judge_seen=True) for row in LABELS])
    with pytest.raises(DefinitionError, match=r"give labels\.with_seen"):
        estimate(GRADES, seen)
    for notes in (estimate(GRADES, seen.with_seen).notes, trusted(GRADES, seen.with_seen, 0.2).notes):
        assert "120 labels count although the rater had seen the judge's verdict" in notes


def test_bounds_of_an_estimate_allow_for_its_own_error() -> None:
    """Ungraded candidates that are all bad lie at the lower bound, which holds the truth as often as an interval does."""
    chance, held = np.random.default_rng(4), 0
    for _ in range(60):
        good = chance.random(300) < 0.7
        said = np.where(good, 1.0, np.where(chance.random(300) < 0.5, np.nan, chance.random(300) < 0.2))
        people = np.where(np.isnan(said) | (np.arange(300) >= 80), np.nan, good)
        low, high = estimate_of(ratings(people, said)).bounds or (0, 1)
        held += low <= good.mean() <= high
    assert held >= 57


@each_row(
    ("places", "is_told"),
    [(range(30), True), (range(0, 400, 13), False), ((0, 2, 150), False), ((3, 29, 7, 1, 12), True)],
)
def test_labels_of_the_first_places_alone_may_be_of_another_file(places: Any, is_told: bool) -> None:
    """A random draw of all would not lie there; with keys nothing is said."""
    said = {n: {"good": bool(n % 3)} for n in range(400)}
    one = Rubric().expects("Good", id="good")
    placed = Grades(evolve(grade, key="", index=n) for n, grade in enumerate(grades(one, said)))
    labels = {n: said[n] for n in places}
    remark = f"among the first {max(places) + 1} of 400 places"
    assert (remark in str(agreement(placed, labels).remarks())) is is_told
    assert remark not in str(agreement(grades(one, said), labels).remarks())
