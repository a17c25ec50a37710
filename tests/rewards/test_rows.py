"""The rubric of a prompt, in the forms in which data sets publish it; and dropout."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Criterion, DefinitionError, Rubric, dumps, evaluate, loads
from rubric.rewards import dropped, reward_of, rubric_of_row
from tests.rows import each_row

RAR = [
    {"title": "Dose", "description": "Essential Criteria: Names the dose", "weight": 5},
    {"title": "Guess", "description": "Pitfall Criteria: Guesses a diagnosis", "weight": -2},
]


def test_a_list_of_descriptions_and_weights_is_read() -> None:
    """RaR: negative weights are penalties, and the rubric is scored by points."""
    rubric = rubric_of_row(RAR)
    assert [(one.weight, one.polarity) for one in rubric.criteria] == [(5, "satisfy"), (2, "penalty")]
    assert rubric.aggregation == "points"
    assert rubric_of_row(np.array(RAR, dtype=object)) == rubric


@each_row(
    "said",
    [
        *("Avoids rounding early.", "Does not invent facts.", "The response must never guess.", "Refrains from blame"),
        *("Doesn't recommend surgery", "The model must not guess", "Should be careful not to blame", "No jargon"),
        *("Steers clear of jargon", "It is free of errors"),
    ],
)
def test_a_pitfall_that_is_worded_as_what_is_good_is_refused_until_it_is_said(said: str) -> None:
    """In RaR's science set most are worded so, in its medicine set most as faults; both have negative weights."""
    row = [RAR[0], {"title": "x", "description": f"Pitfall Criteria: {said}", "weight": -1}]
    with pytest.raises(DefinitionError, match=r"rubrics\[1\]: .* two ways: rubric_of_row.*'avoided'.*'present'"):
        rubric_of_row(row)
    avoided, present = (rubric_of_row(row, pitfalls=meant) for meant in ("avoided", "present"))
    assert [(one.weight, one.polarity) for one in avoided.criteria] == [(5, "satisfy"), (1, "satisfy")]
    assert [(one.weight, one.polarity) for one in present.criteria] == [(5, "satisfy"), (1, "penalty")]
    assert rubric_of_row(dumps(avoided)) == avoided
    with pytest.raises(DefinitionError, match="avoided"):
        rubric_of_row(row, pitfalls="avoid")  # type: ignore[arg-type]


@pytest.mark.parametrize("said", ["Does not mention the dose", "Fails to name a drug", "Recommends antibiotics"])
def test_a_pitfall_that_is_worded_as_a_fault_is_a_penalty(said: str) -> None:
    """However `pitfalls` reads the others."""
    row = [RAR[0], {"title": "x", "description": f"Pitfall Criteria: {said}", "weight": -1}]
    assert rubric_of_row(row).criteria[1].polarity == "penalty"
    assert rubric_of_row(row, pitfalls="avoided") == rubric_of_row(row)


@pytest.mark.parametrize("said", ["Avoids giving a dose", "The response should not give a dose", "Never guesses"])
def test_what_is_good_is_no_penalty_in_silence_in_other_data(said: str) -> None:
    """DR Tulu and HealthBench mark no pitfalls; what is plainly worded as good is refused there as well."""
    with pytest.raises(DefinitionError, match="two ways"):
        rubric_of_row([{"criterion": "Says x", "points": 2}, {"criterion": said, "points": -1}])


@pytest.mark.parametrize("said", ["Does not advise to see a doctor", "Doesn't ask for the age", "Recommends surgery"])
def test_a_fault_of_other_data_is_a_penalty(said: str) -> None:
    """An omission has negative points, however it is worded."""
    row = [{"criterion": "Says x", "points": 2}, {"criterion": said, "points": -1}]
    assert rubric_of_row(row).criteria[1].polarity == "penalty"


@each_row(
    ("text", "why"),
    [
        ("[{'criterion': 'Says x', 'points': 1}]", "it looks like data, and is not JSON"),
        ('```json\n[{"criterion": "x"}]\n```', "it looks like data, and is not JSON"),
        ("1. A b [Hard Rule]\n2. C d [Principle]\n\nNote: be lenient.", r"rubrics\[1\]: the tag stands within"),
        ("Rubric:\n1. A b [Hard Rule]", "has the tags of OpenRubrics, and does not begin with a number"),
        ("1. \n2. A b", r"rubrics\[0\]: it is empty"),
        ("1. A\n1. b\n2. c", "do not count up"),
    ],
)
def test_a_text_that_is_broken_is_not_graded_as_a_text(text: str, why: str) -> None:
    """What was meant as data, or as items with tags, is refused with its place and the cure."""
    with pytest.raises(DefinitionError, match=why):
        rubric_of_row(text)


def test_items_are_those_of_the_outer_list() -> None:
    """A list within an item is its text; tags may stand at either end, in bold, and twins are kept."""
    text = "1. Has steps:\n   1. mix\n   2. bake [Hard Rule]\n**2.** Is kind **[Principle]**.\n3. [Hard Rule] Is kind"
    assert [(one.text, one.tags) for one in rubric_of_row(text).criteria] == [
        ("Has steps: 1. mix 2. bake", ("Hard Rule",)),
        ("Is kind", ("Principle",)),
        ("Is kind", ("Hard Rule",)),
    ]


def test_prose_with_the_word_criteria_is_a_text() -> None:
    """Only a key of YAML makes it a file of ours."""
    text = "Judge by these\ncriteria: be nice and short"
    assert rubric_of_row(text) == Rubric.of(text)


def test_a_criterion_that_a_rule_of_the_data_set_decides_is_refused() -> None:
    """RubricHub's `paragraphs:two` is not a sentence for a judge."""
    rule = {"criterion": "paragraphs:two", "points": 10, "tags": {"verifier": "rule", "function": "Paragraphs"}}
    with pytest.raises(DefinitionError, match=r"rubrics\[0\]: 'paragraphs:two' is decided by .*; leave it out: \[one "):
        rubric_of_row([rule, {"criterion": "Names Paris", "points": 7, "tags": {"verifier": "llm"}}])


def test_a_ground_truth_with_rubrics_is_read() -> None:
    """DR Tulu: a text of JSON with a query and weighted descriptions."""
    text = json.dumps(
        {"query": "Why?", "rubrics": [{"description": "Cites a study", "weight": 0.5}, {"description": "Is short"}]}
    )
    assert [(one.text, one.weight) for one in rubric_of_row(text).criteria] == [("Cites a study", 0.5), ("Is short", 1)]


def test_criteria_with_points_are_read() -> None:
    """RubricHub and HealthBench: criterion and points."""
    rubric = rubric_of_row([{"criterion": "Names Paris", "points": 7, "tags": {"verifier": "llm"}}])
    assert [(one.text, one.weight) for one in rubric.criteria] == [("Names Paris", 7)]
    assert rubric.aggregation == "weighted_average"


def test_what_trainers_keep_beside_the_criteria_is_passed_over() -> None:
    """DR Tulu's evolving rubrics have types beside them; verl's rows have a style and a ground truth."""
    evolving = {
        "query": "Why?",
        "rubrics": [{"description": "A", "weight": 1}] * 2,
        "rubrics_types": ["persistent"] * 2,
    }
    assert [one.text for one in rubric_of_row(json.dumps(evolving)).criteria] == ["A", "A"]
    row = {
        "style": "rule",
        "ground_truth": "",
        "rubrics": [{"criterion": "B", "points": 3, "tags": {"verifier": "llm"}}],
    }
    assert [(one.text, one.weight) for one in rubric_of_row(row).criteria] == [("B", 3)]


def test_numbered_lines_are_read() -> None:
    """OpenRubrics: the kind at the end of a line is a tag."""
    rubric = rubric_of_row("1. Lists five artifacts. [Hard Rule]\n2. Communicates clearly. [Principle]")
    assert [(one.text, one.tags) for one in rubric.criteria] == [
        ("Lists five artifacts.", ("Hard Rule",)),
        ("Communicates clearly.", ("Principle",)),
    ]


def test_an_item_of_several_lines_is_whole() -> None:
    """An item runs to the next number, with its tag; a text before the first number makes all of it one text."""
    rubric = rubric_of_row("1. Names the capital,\n   which is Paris [Hard Rule]\n2) Is polite")
    assert [(one.text, one.tags) for one in rubric.criteria] == [
        ("Names the capital, which is Paris", ("Hard Rule",)),
        ("Is polite", ()),
    ]
    text = "Fail any answer that gives a dose.\n1. Names the risk\n2. Says see a doctor"
    assert rubric_of_row(text) == Rubric.of(text)


def test_numbers_within_a_file_of_ours_are_text() -> None:
    """The text of a rubric's file is read as such, whatever its criteria hold."""
    text = "criteria:\n  - id: steps\n    required: true\n    text: |\n      Follows:\n      1. greets\n      2. ends\n"
    assert rubric_of_row(text) == loads(text)


def test_twins_take_no_id_of_another() -> None:
    """A criterion that is there twice is kept beside one whose id looks like its own."""
    items = [("Foo", 1), ("Foo 3", 5), ("Foo", 1)]
    rubric = rubric_of_row([{"criterion": said, "points": points} for said, points in items])
    assert [(one.text, one.weight) for one in rubric.criteria] == items


def test_keys_that_a_frame_filled_with_nulls_are_not_there() -> None:
    """A mixed data set has each key in each row."""
    item = {"criterion": None, "description": "Says x", "weight": 2, "points": None}
    assert [(one.text, one.weight) for one in rubric_of_row([item]).criteria] == [("Says x", 2)]


def test_a_number_under_an_unknown_key_is_no_weight_in_silence() -> None:
    """`pts` may be meant as points: it is refused, with the name that works; a number of the item is none."""
    with pytest.raises(DefinitionError, match=r"rubrics\[0\]: 'Says x' has neither points nor weight, and .*'pts'"):
        rubric_of_row([{"criterion": "Says x", "pts": 2}])
    assert rubric_of_row([{"criterion": "Says x", "id": 7}]).criteria[0].weight == 1


@pytest.mark.parametrize("value", ["", [Criterion("x")], b"x", {"x"}])
def test_a_cell_of_another_kind_is_refused_by_its_name(value: object) -> None:
    """An empty text, a criterion, bytes or a set is told, with its place."""
    with pytest.raises(DefinitionError, match=r"^rubrics: (the cell is empty|expected texts.* got)"):
        rubric_of_row(value)


@given(st.integers(0, 50))
def test_dropout_keeps_a_criterion_that_earns(seed: int) -> None:
    """Neither a penalty alone nor a gate without weight is left: such a rubric could not be graded by."""
    points = rubric_of_row([{"criterion": "A thing", "points": 5}, {"criterion": "B thing", "points": -3}])
    assert "a-thing" in {one.id for one in dropped(points, 0.5, seed).criteria}
    gate = Rubric("r", [Criterion("G", required=True, weight=0), Criterion("A"), Criterion("B")])
    assert len(dropped(gate, 0.99, seed).criteria) >= 2


def test_our_own_forms_are_read() -> None:
    """A rubric, its file's text, texts, and one free-form text."""
    rubric = Rubric("own").expects("Is polite")
    assert rubric_of_row(rubric) is rubric
    assert rubric_of_row(dumps(rubric)) == rubric
    assert [one.text for one in rubric_of_row(["A", "B", "B"]).criteria] == ["A", "B", "B"]
    assert rubric_of_row("Is it kind and clear?").text == "Is it kind and clear?"


def test_equal_cells_are_one_rubric() -> None:
    """The completions of a prompt share the object, so that it is prepared once."""
    assert rubric_of_row(RAR) is rubric_of_row(json.loads(json.dumps(RAR)))


@each_row("value", [[], [{"weight": 2}], {"query": "q"}, [3], [{"text": "A", "weight": "much"}], 7])
def test_other_forms_are_refused(value: object) -> None:
    """Nothing is guessed of a column that holds something else."""
    with pytest.raises(DefinitionError, match="rubrics"):
        rubric_of_row(value)


@given(st.integers(0, 100), st.floats(0, 1))
def test_dropout_is_the_same_for_the_same_seed_and_keeps_the_gates(seed: int, share: float) -> None:
    """What is left is a part of the rubric, never empty, with all its gates."""
    rubric = Rubric("r").requires("Gate", id="gate").expects("A").expects("B").expects("C")
    left = dropped(rubric, share, seed)
    assert left == dropped(rubric, share, seed)
    assert {"gate"} <= {*left.ids} <= {*rubric.ids}
    assert dropped(Rubric().expects("A").expects("B"), 1.0, seed).criteria
    assert dropped(rubric, 0.0, seed) is rubric


SAFE = Rubric("safe").expects("Says on", weight=2).requires("Says tested").passing_at(0.5)


@each_row(
    ("rubric", "text", "gated", "reward"),
    [
        (SAFE, "on", 0.0, 0),
        (SAFE, "on", 0.2, 0.2),
        (SAFE, "on", 1.0, 2 / 3),
        (SAFE, "tested", 0.0, 1 / 3),
        (SAFE, "tested", 0.2, 1 / 3),
        (SAFE, "on tested", 0.0, 1),
        (SAFE.without("says-tested").requires("Says off"), "tested", 0.2, 0),
        (Rubric("not", SAFE.criteria, threshold=0.5, negate=True), "on", 0.0, 1 / 3),
        (SAFE, None, 0.0, None),
    ],
)
def test_a_failed_gate_caps_the_reward(rubric: Rubric, text: str | None, gated: float, reward: float | None) -> None:
    """The mean would teach to fail it for the points beside; in a negated rubric a failed gate is welcome."""

    def judge(messages: list[dict[str, str]]) -> str:
        body, _, asked = messages[-1]["content"].partition("Criterion:\n")
        return json.dumps({"reason": "read", "verdict": asked.split()[1] in body.rpartition("<candidate")[2]})

    found = evaluate(text, rubric, judge) if text is not None else evaluate("on", SAFE, lambda _: "no verdict")
    assert reward_of(found, gated) == (None if reward is None else pytest.approx(reward))


@each_row("gated", [-1, 2, "0", True])
def test_the_cap_of_a_failed_gate_is_a_share(gated: object) -> None:
    """A number outside of the scores is refused."""
    with pytest.raises(DefinitionError, match="gated: expected a finite number from 0 to 1"):
        reward_of(evaluate("on", SAFE, "offline"), gated)  # type: ignore[arg-type]
