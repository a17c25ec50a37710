"""The examples of the documented systems, with their figures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

from rubric import (
    Anchor,
    Criterion,
    DefinitionError,
    Grade,
    Judge,
    Jury,
    Likert,
    Panel,
    Rubric,
    Ungraded,
    UngradedError,
    Unit,
    When,
    ask,
)
from rubric.driving import Failure
from rubric.engine.grade import grade_or_raise as require
from rubric.results import NotApplicable, Scored
from rubric.testing.scripted_model import Line, Says, ScriptedModel
from rubric.values import Boolean, Leaf, Letter, UnitScale
from tests.drive import REPLY, check_details, drive
from tests.places import SHARED
from tests.rows import each_row


def whole(rubric: Rubric, *lines: Line, candidate: str = REPLY) -> Grade:
    """Return the grade that a judge who says *lines* in turn gives."""
    result = drive(rubric, Judge(ScriptedModel(lines)), candidate)
    assert isinstance(result, Grade)
    return result


# -- AgentV ------------------------------------------------------------------------------------------------

QUICKSORT = (
    Rubric("quicksort", threshold=0.8)
    .requires("Explains divide-and-conquer", id="core-concept", weight=2)
    .expects("Describes partition step", id="partition", weight=1.5)
    .expects("States O(n log n) average time", id="complexity")
)
ACCURACY: dict[Any, str] = {
    "0-2": "Completely wrong",
    "3-4": "Partially correct with major errors",
    "5-6": "Mostly correct with minor issues",
    "7-9": "Correct with minor omissions",
    10: "Perfectly accurate and complete",
}


@pytest.mark.parametrize(
    ("met", "score", "passed"),
    [
        ((True, True, True), 1.0, True),
        ((True, True, False), 3.5 / 4.5, False),
        ((True, False, True), 3 / 4.5, False),
        ((False, True, True), 2.5 / 4.5, False),
    ],
)
def test_a_checklist_is_the_share_of_the_weight_that_is_met(met: tuple[bool, ...], score: float, passed: bool) -> None:
    """Weights 2, 1.5 and 1, and a pass from 0.8."""
    grade = whole(QUICKSORT, *met)
    assert grade.score == pytest.approx(score)
    assert grade.passed is passed


def test_a_checklist_of_six_that_lacks_one_point_one() -> None:
    """4.9 of 6 is 0.817."""
    rubric = Rubric(threshold=0.8).expects("a", weight=2.9).expects("b", weight=2).expects("c", weight=1.1)
    grade = whole(rubric, True, True, False)
    assert (round(grade.score, 3), grade.passed) == (0.817, True)


def test_plain_strings_are_criteria_that_are_required_where_the_dialect_says_so() -> None:
    """One unmet of ten leaves 0.9, and the gate fails it."""
    texts = [Criterion(f"point {n}", required=True) for n in range(10)]
    grade = whole(Rubric(criteria=texts, threshold=0.8), *[True] * 9, False)
    assert (grade.score, grade.passed, grade.gates) == (0.9, False, ("point-9",))


@pytest.mark.parametrize(("level", "score", "band"), [(0, 0.0, ACCURACY["0-2"]), (6, 0.6, ACCURACY["5-6"])])
def test_a_level_is_its_place_on_the_range_and_bands_do_not_quantise(level: int, score: float, band: str) -> None:
    """6 lies in the band from 5 and is 0.6."""
    grade = whole(Rubric().rates("Provides correct answer", ACCURACY, id="accuracy"), level)
    finding = grade["accuracy"]
    assert isinstance(finding, Scored)
    assert (grade.score, finding.value, finding.level) == (score, level, band)


def test_score_ranges_are_weighted_like_a_checklist() -> None:
    """9 of 10 with weight 2 and 6 of 10 with weight 1 is 0.8, which meets 0.8."""
    grade = whole(Rubric(threshold=0.8).rates("a", ACCURACY, weight=2).rates("b", ACCURACY), 9, 6)
    assert grade.score == pytest.approx(0.8, abs=1e-12)
    assert grade.passed is True


def test_a_contradiction_is_not_a_guard() -> None:
    """The text is a fact: agreeing or silent is yes, and yes is good."""
    rubric = Rubric().adding(Criterion("Revenue rose to $10M", id="r", polarity="contradiction", required=True))
    assert whole(rubric, True).passed is True
    assert whole(rubric, False).passed is False


# -- promptfoo ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "flag", "threshold", "passed"),
    [(0.2, True, None, True), (0.9, False, None, False), (0.7, True, 0.8, False), (0.8, True, 0.8, True)],
)
def test_the_judges_own_pass_and_a_threshold_if_there_is_one(
    score: float, flag: bool, threshold: float | None, passed: bool
) -> None:
    """`llm-rubric`: without a threshold the flag decides, with one both must hold."""
    rubric = Rubric(criteria=[Criterion("Is not apologetic", answer=Unit(flag=True))], threshold=threshold)
    assert whole(rubric, Says(score, flag=flag)).passed is passed


def test_a_negated_assertion_turns_score_and_pass_over() -> None:
    """`not-llm-rubric`; and a judge that failed is not turned into a pass."""
    rubric = evolve(Rubric.of("Apologises", threshold=None), negate=True)
    grade = whole(rubric, Says(0.9, flag=True))
    assert (round(grade.score, 9), grade.passed) == (0.1, False)
    failed = drive(rubric, Judge(ScriptedModel([Failure("timeout", "late")])))
    assert isinstance(failed, Ungraded)


# -- mcptest: figures that need no file --------------------------------------------------------------------


def test_anchors_are_calibration_examples_in_the_prompt() -> None:
    """Two decimals, in the order given, under their heading."""
    anchors = [Anchor("2.3.0 added rate limits.", 1.0), Anchor("2.3.0 rewrote the billing engine.", 0.0)]
    model = ScriptedModel([1.0])
    drive(Rubric().scores("Every claim is supported", anchors=anchors), Judge(model))
    prompt = model.asks[0].messages[-1].text
    heading = prompt.index("Calibration examples")
    first = prompt.index('Response: "2.3.0 added rate limits." -> score 1.00')
    second = prompt.index('Response: "2.3.0 rewrote the billing engine." -> score 0.00')
    assert heading < first < second


@pytest.mark.parametrize("evidence", [(), ("",), ("  ",), ("version 9.9.9",)])
def test_a_criterion_without_evidence_scores_zero_and_gates(evidence: tuple[str, ...]) -> None:
    """Missing, empty, white space, or not in the candidate."""
    rubric = Rubric(evidence=True).scores("v", id="v").scores("c", id="c")
    grade = whole(rubric, Says(1.0, evidence=("2.3.0",)), Says(1.0, evidence=evidence))
    assert (grade.score, grade.passed, grade.gates) == (0.5, False, ("c",))


def test_runs_of_white_space_in_evidence_are_folded() -> None:
    """The span that is reported is the candidate's own, with its place."""
    grade = whole(Rubric(evidence=True).scores("v", id="v"), Says(1.0, evidence=("2.3.0   release",)))
    finding = grade["v"]
    assert isinstance(finding, Scored)
    assert [(e.text, e.start, e.end) for e in finding.evidence] == [("2.3.0 release", 4, 17)]
    assert grade.passed is True


@pytest.mark.parametrize(
    ("when", "applies"),
    [
        (When(contains="error"), True),
        (When(contains="ERROR"), False),
        (When(regex=r"error \d+"), True),
        (When(regex="^error"), False),
        (When(regex="^error", negated=True), True),
        (~When(contains="error"), False),
        (~~When(contains="error"), True),
        (~When(holds=lambda candidate: not candidate.output), True),
    ],
)
def test_a_conditional_criterion_is_judged_only_where_it_applies(when: When, applies: bool) -> None:
    """Case matters; a pattern is searched."""
    rubric = Rubric().scores("Apologises", id="a", when=when, required=True, min_score=0.9).scores("b", id="b")
    lines = (0.5, 1.0) if applies else (1.0,)
    grade = whole(rubric, *lines, candidate="Sorry, something went wrong on our end (error 500).")
    assert (grade.passed, isinstance(grade["a"], NotApplicable)) == (not applies, not applies)


# -- mcptest: the distilled cases --------------------------------------------------------------------------

_FILE = SHARED / "upstream_cases.json"
_ELSEWHERE = ("mt-ref", "mt-preset", "mt-matrix", "mt-explain", "mt-panel-and-jury")
"""What is for loaders, presets and plans; and ours is the other way: juries may sit on panels."""

_REFUSALS = {
    "duplicate_name": r"belongs to criteria\[0\] already",
    "empty_panel": "at least one judge",
    "invalid_consensus": "^consensus: expected a finite number above 0 to 1, got 2",
    "invalid_likert": "^high: the order is another; write Likert\\(1, 5\\)$",
    "invalid_when": "^when: expected one of",
    "judge_score_out_of_range": "expected a score from 0 to 1, got 8",
    "missing_description": "^text: expected text",
    "no_criteria_or_tree": "nothing to grade by",
    "tree_incomplete": "^tree: expected a DecisionTree",
    "tree_root_must_ask": "^tree: expected a DecisionTree",
    "unknown_aggregation": "^aggregation: unknown value 'median'",
    "weights_sum_zero": "^criteria: their weights sum to 0",
}


def _cases(*, refused: bool) -> list[Any]:
    if not _FILE.is_file():
        return [pytest.param({}, marks=pytest.mark.skip("the distilled cases are not beside this checkout"))]
    cases = [c for c in json.loads(_FILE.read_text("utf-8")) if c["format"] == "mcptest"]
    ours = [c for c in cases if not c["id"].startswith(_ELSEWHERE) and refused is bool(c["expected"].get("error"))]
    return [pytest.param(case, id=case["id"]) for case in ours]


_AGGREGATIONS = {"worst": "min"}
_SCALES = {"unit": UnitScale(), "boolean": Boolean(), "letter": Letter()}


def _tree(node: dict[str, Any]) -> Any:
    if "ask" not in node:
        return Leaf(node["score"], reason=node.get("reason", ""))
    question: Any = ask(node["ask"])
    for side in node.keys() & {"yes", "no"}:
        question = getattr(question, side)(_tree(node[side]))
    return question


def _criterion(item: dict[str, Any]) -> Criterion:
    return Criterion(
        item.get("description", ""),
        id=item["name"],
        answer=Unit(),
        weight=item.get("weight", 1),
        required=item.get("required", False),
        polarity="guard" if item.get("guard") else "satisfy",
        min_score=item.get("threshold"),
        when=When(**item["when"]) if "when" in item else None,
        anchors=[Anchor(e["response"], e["score"]) for e in item.get("examples", ())],
    )


def _scale(scale: Any) -> Any:
    return Likert(scale["likert"]["min"], scale["likert"]["max"]) if isinstance(scale, dict) else _SCALES[scale]


def _rubric(case: dict[str, Any]) -> Rubric:
    given = case["rubric"]["rubric"]
    threshold = case["rubric"].get("threshold")
    if isinstance(given, str):
        return Rubric(text=given, threshold=0.7 if threshold is None else threshold)
    return Rubric(
        criteria=[_criterion(item) for item in given.get("criteria", ())],
        tree=_tree(given["tree"]) if "tree" in given else None,
        threshold=given.get("threshold", 0.7) if threshold is None else threshold,
        strict=given.get("strict", False),
        evidence=given.get("require_evidence", False),
        aggregation=_AGGREGATIONS.get(given.get("aggregation"), given.get("aggregation", "weighted_average")),
        scale=_scale(given.get("scale", "unit")),
    )


def _bench(case: dict[str, Any], judges: list[Judge]) -> Judge | Jury | Panel:
    rule = case["rubric"].get("judge", {})
    if "panel" in rule:
        options = {key: rule[key] for key in ("aggregate", "tie_break") if key in rule}
        return Panel(judges[: len(rule["panel"])], **options)
    if "jury" in rule:
        return Jury(judges[0], rule["jury"]["size"], rule["jury"]["consensus"])
    return judges[0]


def _said(case: dict[str, Any]) -> list[list[Line]]:
    """Return the replies of each judge: those of a panel are listed one member after the other."""
    replies = [Says(r["score"], r["reason"], _quotes(r)) for r in case["judge_replies"]]
    members = len(case["rubric"].get("judge", {}).get("panel", ())) or 1
    each = len(replies) // members
    return [[*replies[n * each : (n + 1) * each]] for n in range(members)]


def _quotes(reply: dict[str, Any]) -> tuple[str, ...]:
    return (reply["evidence"],) if "evidence" in reply else ()


def _graded(case: dict[str, Any]) -> tuple[Grade | Ungraded, list[ScriptedModel]]:
    models = [ScriptedModel(lines) for lines in _said(case)]
    judge = _bench(case, [Judge(model, repairs=0) for model in models])
    return drive(_rubric(case), judge, case["candidate"]), models


@each_row("case", _cases(refused=False))
def test_a_distilled_case_comes_to_its_figures(case: dict[str, Any]) -> None:
    """Score and verdict; where they are told, also gates, walk, display, prompt and calls."""
    (result, models), expected = _graded(case), case["expected"]
    assert isinstance(result, Grade)
    assert result.score == pytest.approx(expected["score"])
    assert result.passed is expected["pass"]
    check_details(result, models, expected)


@each_row("case", _cases(refused=True))
def test_a_distilled_error_is_an_error(case: dict[str, Any]) -> None:
    """At construction, or, where the judge is wrong, as a result that is not graded."""
    with pytest.raises((DefinitionError, UngradedError), match=_REFUSALS[case["expected"]["error"]]):
        require(_graded(case)[0])
