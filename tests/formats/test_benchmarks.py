"""Files of autorubric, LLM Data Co, HealthBench and PaperBench as suites."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from rubric import Choice, Choices, Criterion, Grade, Judge, LoadError, Message, Rubric
from rubric.format_plugins import autorubric, healthbench, paperbench
from rubric.formats.files import parse
from rubric.formats.notes import Loading, Notes
from rubric.suites.suite import Suite
from rubric.testing.scripted_model import ScriptedModel
from tests.drive import drive
from tests.places import SHARED
from tests.rows import each_row

_DATA = SHARED / "data" / "paperbench"
NO_MARK = "f.yml:1:1: the format has no pass mark; 0.7 is taken, as everywhere here"


def loaded(dialect: ModuleType, data: Any) -> tuple[Suite, list[str]]:
    """Return the suite of *data* (text, or what is to be JSON) and the warnings; a `LoadError` if it is wrong."""
    notes = Notes(parse(data if isinstance(data, str) else json.dumps(data), "f.yml"))
    suite = dialect.read(notes, Loading())
    notes.finish()
    return suite, [str(problem) for problem in notes.warnings]


def problems(dialect: ModuleType, data: Any) -> list[str]:
    """Return what is wrong with *data*."""
    with pytest.raises(LoadError) as caught:
        loaded(dialect, data)
    return [str(problem) for problem in caught.value.problems]


# -- autorubric, LLM Data Co -------------------------------------------------------------------------------

ITEMS = [
    {"weight": 10.0, "requirement": "States the margin as 17.2%"},
    {"weight": -15.0, "requirement": "Uses total deliveries", "name": "deliveries"},
]
CRITERIA = (
    Criterion("States the margin as 17.2%", weight=10.0),
    Criterion("Uses total deliveries", id="deliveries", weight=15.0, polarity="penalty"),
)


@each_row(
    ("data", "criteria"),
    [
        (ITEMS, CRITERIA),
        ({"rubric": ITEMS}, CRITERIA),
        ({"sections": [{"criteria": ITEMS}]}, CRITERIA),
        ({"rubric": {"sections": [{"criteria": ITEMS[:1]}, {"criteria": ITEMS[1:]}]}}, CRITERIA),
        ([{"criteria": ITEMS[:1]}, ITEMS[1]], CRITERIA),
        ({"rubric": {"criteria": ITEMS}}, CRITERIA),
    ],
)
def test_criteria_come_as_a_list_or_in_sections(data: Any, criteria: tuple[Criterion, ...]) -> None:
    """One case that waits for an output, and warnings of what differs."""
    suite, warnings = loaded(autorubric, data)
    (case,) = suite
    assert case.rubric == Rubric(criteria=criteria, aggregation="points")
    assert (case.output, suite.format) == (None, "autorubric")
    assert warnings == [NO_MARK]


def test_without_negative_weights_there_is_no_difference_to_tell() -> None:
    """A weighted mean is what both compute."""
    assert loaded(autorubric, ITEMS[:1])[1] == [NO_MARK]


def test_a_section_is_a_tag() -> None:
    """Its weight counts for nothing in the format, which is told."""
    data = {"sections": [{"name": "Style", "weight": 2, "criteria": [{"requirement": "A", "weight": 1}]}]}
    suite, warnings = loaded(autorubric, data)
    assert suite.cases[0].rubric.criteria == (Criterion("A", tags=["Style"]),)
    assert "f.yml:1:43: sections[0].weight: a section's weight counts for nothing" in "\n".join(warnings)


def test_options_are_choices_and_one_of_them_may_mean_cannot_tell() -> None:
    """A negative weight makes them a penalty; a weight that is not given is 10."""
    options = [{"label": "low", "value": 0}, {"label": "high", "value": 1}, {"label": "none", "value": 0, "na": True}]
    data = [{"requirement": "A", "options": options, "scale_type": "ordinal"}]
    suite, _ = loaded(autorubric, data)
    answer = Choices(Choice("low", 0), Choice("high", 1))
    assert suite.cases[0].rubric.criteria == (Criterion("A", answer=answer, weight=10, abstain="exclude"),)


def test_equal_texts_get_ids_of_their_own() -> None:
    """The format knows none; names that the file gives twice are refused."""
    suite, _ = loaded(autorubric, [{"requirement": "A", "weight": 1}, {"requirement": "A", "weight": 2}])
    assert [criterion.id for criterion in suite.cases[0].rubric.criteria] == ["a", "a-2"]
    twice = [{"requirement": "A", "weight": 1, "name": "n"}, {"requirement": "B", "weight": 1, "name": "n"}]
    assert "rubric[1].name: the name 'n' belongs" in problems(autorubric, {"rubric": twice})[0]


def test_a_dataset_has_a_case_for_each_item() -> None:
    """Prompt, reference and rubric of an item win over those of the file; what people said of it is kept."""
    own = [{"requirement": "B", "weight": 1}]
    data = {
        "name": "set",
        "prompt": "P",
        "rubric": {"guidelines": "Be strict.", "criteria": ITEMS[:1]},
        "items": [
            {"submission": "S", "description": "good", "ground_truth": ["MET"]},
            {"submission": "T", "description": "bad", "prompt": "Q", "reference_submission": "R", "rubric": own},
        ],
    }
    suite, _ = loaded(autorubric, data)
    first, second = suite
    assert (first.id, first.input, first.output, first.rubric.guidelines) == ("item 1", "P", "S", "Be strict.")
    assert dict(first.metadata) == {"description": "good", "ground_truth": ("MET",)}
    assert (second.input, second.reference, second.rubric) == ("Q", "R", Rubric(criteria=[Criterion("B")]))


@each_row(
    ("data", "said"),
    [
        ([{"requirement": "A", "wieght": 2}], "[0].wieght: unknown key; did you mean 'weight'?"),
        ("- {requirement: A, weight: .nan}\n", "[0].weight: "),
        ([{"weight": 2}], "[0]: the key 'requirement' is missing"),
        (["A"], "[0]: expected a criterion (a mapping with requirement and weight), got 'A'"),
        ([{"requirement": "A", "options": [{"label": "x", "value": 2}]}], "options[0].value: expected a finite number"),
        ([{"requirement": "A", "options": [{"label": "x", "value": 1}]}], "expected at least two options, got 1"),
        ([], "nothing to grade by"),
        ({"name": "x"}, "there is no rubric"),
        ({"items": [{"submission": "S", "description": "d"}], "rubric": None}, "neither this item nor the file has"),
        ([{"requirement": "A", "weight": 0}], "their weights sum to 0"),
        ("A text", "expected a list of criteria, or a mapping, got 'A text'"),
    ],
)
def test_a_wrong_file_of_autorubric_says_what_is_wrong_and_where(data: Any, said: str) -> None:
    """With the place and the cure."""
    assert said in "\n".join(problems(autorubric, data))


# -- HealthBench -------------------------------------------------------------------------------------------

EXAMPLE = {
    "prompt_id": "p1",
    "prompt": [{"role": "user", "content": "Is it safe?"}],
    "rubrics": [
        {"criterion": "Says to see a doctor", "points": 7, "tags": ["level:example"]},
        {"criterion": "Names the dose", "points": 3, "tags": []},
        {"criterion": "Gives wrong advice", "points": -5, "tags": []},
    ],
    "example_tags": ["theme:x"],
    "ideal_completions_data": {"ideal_completion": "See one."},
}


def test_an_example_of_healthbench_is_a_case_that_waits_for_an_answer() -> None:
    """The ideal completion is kept, and not shown to the judge."""
    suite, warnings = loaded(healthbench, EXAMPLE)
    (case,) = suite
    assert (case.id, case.output, case.tags) == ("p1", None, ("theme:x",))
    assert case.messages == (Message("user", "Is it safe?"),)
    assert [(c.text, c.weight, c.polarity) for c in case.rubric.criteria] == [
        ("Says to see a doctor", 7, "satisfy"),
        ("Names the dose", 3, "satisfy"),
        ("Gives wrong advice", 5, "penalty"),
    ]
    assert [*case.metadata] == ["ideal_completions_data"]
    assert case.rubric.aggregation == "points"
    assert len(warnings) == 1


def test_the_points_of_healthbench_are_summed_over_the_positive_ones() -> None:
    """7 of 10, less 5: 0.2, by the rule of the format."""
    suite, _ = loaded(healthbench, {**EXAMPLE, "completion": "See a doctor; double it."})
    (case,) = suite
    assert case.candidate is not None
    grade = drive(case.rubric, Judge(ScriptedModel([True, False, True])), case.candidate)
    assert isinstance(grade, Grade)
    assert grade.score == 0.2


@pytest.mark.parametrize("key", ["", "tests", "examples"])
def test_several_examples_come_as_a_list(key: str) -> None:
    """As the rows of a JSONL file do."""
    rows = [EXAMPLE, {**EXAMPLE, "prompt_id": "p2"}]
    suite, _ = loaded(healthbench, {key: rows} if key else rows)
    assert [case.id for case in suite] == ["p1", "p2"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rubrics": [{"criterion": "A", "poins": 2}]}, "rubrics[0].poins: unknown key; did you mean 'points'?"),
        ({"rubrics": [{"criterion": "A"}]}, "rubrics[0]: the key 'points' is missing"),
        ({"rubrics": []}, "nothing to grade by"),
        ({"prompt": [{"role": "user"}]}, "prompt[0]: the key 'content' is missing"),
        ({"prompt_id": 5}, "prompt_id: expected text, got 5"),
    ],
)
def test_a_wrong_example_says_what_is_wrong_and_where(changes: dict[str, Any], said: str) -> None:
    """With the place and the cure."""
    assert said in "\n".join(problems(healthbench, {**EXAMPLE, **changes}))


def test_an_id_that_stands_twice_is_refused() -> None:
    """Reports and stores go by it."""
    assert "the id 'p1' stands twice" in problems(healthbench, [EXAMPLE, EXAMPLE])[0]


# -- PaperBench --------------------------------------------------------------------------------------------

LEAF = {"id": "l1", "requirements": "Runs", "weight": 3, "sub_tasks": [], "task_category": "Code Execution"}
TREE = {
    "id": "r",
    "requirements": "Reproduces the paper",
    "weight": 1,
    "sub_tasks": [
        LEAF,
        {"id": "n", "requirements": "Set up", "weight": 1, "sub_tasks": [{**LEAF, "id": "l2"}, {**LEAF, "id": "l3"}]},
    ],
}


def test_a_tree_of_tasks_is_a_rubric_of_rubrics() -> None:
    """Leaves are yes or no; every level is a weighted mean."""
    suite, warnings = loaded(paperbench, TREE)
    (case,) = suite
    inner = Rubric(
        "Set up", criteria=[Criterion("Runs", id=i, weight=3, tags=["Code Execution"]) for i in ("l2", "l3")]
    )
    assert case.id == "r"
    assert case.rubric == Rubric(
        "Reproduces the paper",
        criteria=[
            Criterion("Runs", id="l1", weight=3, tags=["Code Execution"]),
            Criterion("Set up", id="n", answer=inner),
        ],
    )
    assert warnings == [NO_MARK]


def test_a_tree_of_one_leaf_is_one_criterion() -> None:
    """There is nothing to nest."""
    suite, _ = loaded(paperbench, LEAF)
    assert suite.cases[0].rubric.criteria == (Criterion("Runs", id="l1", weight=3, tags=["Code Execution"]),)


@each_row(
    ("changes", "said"),
    [
        ({"wieght": 2}, "wieght: unknown key; did you mean 'weight'?"),
        ({"weight": -1}, "weight: expected a finite number from 0"),
        ({"requirements": None}, "requirements: expected a value, got nothing"),
        ({"sub_tasks": [LEAF, LEAF]}, "sub_tasks[1].id: the id 'l1' belongs to"),
        ({"sub_tasks": [{**LEAF, "weight": 0}]}, "their weights sum to 0"),
        ({"sub_tasks": "none"}, "sub_tasks: expected a list of tasks, got 'none'"),
    ],
)
def test_a_wrong_tree_says_what_is_wrong_and_where(changes: dict[str, Any], said: str) -> None:
    """With the place and the cure."""
    assert said in "\n".join(problems(paperbench, {**TREE, **changes}))


def _recorded() -> list[Any]:
    if not _DATA.is_dir():
        return [pytest.param({}, 0.0, marks=pytest.mark.skip("the recorded trees are not beside this checkout"))]
    expected = json.loads((_DATA / "expected.json").read_text("utf-8"))
    lines = (_DATA / "judge_eval_trees.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return [pytest.param(row, expected[row["paper"]], id=row["paper"]) for row in rows if row["paper"] in expected]


@pytest.mark.parametrize(("row", "score"), _recorded())
def test_a_tree_that_people_graded_comes_to_their_score(row: dict[str, Any], score: float) -> None:
    """Their verdicts on the leaves give their score of the root, and the results in the file are not read."""
    suite, warnings = loaded(paperbench, row)
    (case,) = suite
    verdicts = dict(_leaves(row["tree"]))
    grade = drive(case.rubric, Judge(ScriptedModel(verdicts)), "the code")
    assert isinstance(grade, Grade)
    assert grade.score == pytest.approx(score, abs=1e-12)
    assert any("'score' is the result of a grading" in warning for warning in warnings)


def _leaves(node: dict[str, Any]) -> list[tuple[str, bool]]:
    below = node.get("sub_tasks") or []
    return [leaf for task in below for leaf in _leaves(task)] if below else [(node["id"], node["score"] == 1)]
