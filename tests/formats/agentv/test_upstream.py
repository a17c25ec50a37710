"""Every recorded case of AgentV's: the same file and the same replies come to the same score and verdict."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import pytest
from attrs import define

from rubric import Criterion, Grade, Judge, Levels, Rubric, Ungraded, YesNo, grade
from rubric.errors import LoadError, ModelError, UngradedError
from rubric.formats.suites import loads_suite
from rubric.suites.suite import Suite
from rubric.values.checks import Unsupported
from rubric.values.requests import Ask, Failure, Reply
from tests.agentv import graders_of
from tests.places import SHARED
from tests.rows import each_row

CASES = SHARED / "upstream_cases.json"
THRESHOLD = 0.8
GENERATIONS = ("agentv-1", "agentv-1.5", "agentv-2")

pytestmark = pytest.mark.skipif(not CASES.is_file(), reason="the recorded cases are not beside this checkout")


def _cases() -> list[dict[str, Any]]:
    recorded = json.loads(CASES.read_text(encoding="utf-8")) if CASES.is_file() else []
    return [case for case in recorded if case["format"] in GENERATIONS]


def _expected(case: dict[str, Any]) -> dict[str, Any]:
    expected: dict[str, Any] = case["expected"]
    return expected


def _items(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the items as AgentV parsed them, with the `required` that the file has and generation 2 drops."""
    raw = {item["id"]: item for item in _walk(case["rubric"]) if "id" in item}
    parsed = [item for grader in _graders(case) for item in grader.get("rubrics", [])]
    kept = ("required", "min_score")
    return [{**{k: raw.get(i["id"], {})[k] for k in kept if k in raw.get(i["id"], {})}, **i} for i in parsed]


def _walk(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _walk(inner)


# -- what we do otherwise, on purpose --------------------------------------------------------------------


def _object(reply: Any) -> Any:
    """Return the object of a reply, from its first brace to its last; None where there is none."""
    if not isinstance(reply, str):
        return reply
    try:
        return json.loads(reply[reply.find("{") : reply.rfind("}") + 1])
    except ValueError:
        return None


def _checks(reply: Any) -> list[dict[str, Any]] | None:
    """Return the verdicts on the items in a reply, those that are not a mapping left out; None where it has none."""
    found = _object(reply)
    if not isinstance(found, dict) or "checks" not in found:
        return None
    return [check for check in found["checks"] or () if isinstance(check, dict)]


def _says_text_for_a_value(case: dict[str, Any]) -> bool:
    said = json.dumps(case["judge_replies"]).replace("\\", "").replace('": ', '":')
    return any(f'"{key}":"{value}' in said for key, value in _AS_TEXT)


_FLAGS = ("satisfied", "passed", "pass")
_AS_TEXT = [(key, v) for key in _FLAGS for v in ("true", "false", "yes", "no")] + [("score", d) for d in "0123456789"]


def _leaves_the_score_out(case: dict[str, Any]) -> bool:
    found = [_object(reply) for reply in case["judge_replies"]]
    return any(isinstance(said, dict) and "pass" in said and said.get("score") is None for said in found)


def _gives_text_for_a_number_or_a_flag(case: dict[str, Any]) -> bool:
    items = [part for part in _walk(case["rubric"]) if "type" not in part]
    kinds = {"weight": int | float, "required": bool}
    return any(key in item and not isinstance(item[key], kind) for item in items for key, kind in kinds.items())


def _weighs_nothing(case: dict[str, Any]) -> bool:
    lists = [grader.get("rubrics", []) for grader in _graders(case)] + [_graders(case)]
    return any(part and not any(item.get("weight", 1) for item in part) for part in lists)


def _graders(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the graders as AgentV parsed them, those in sets among them."""
    return [part for part in _walk(_expected(case).get("parsed") or []) if "type" in part]


def _leaves_reasoning_out(case: dict[str, Any]) -> bool:
    replies = [reply for reply in case["judge_replies"] if _checks(reply) is not None]
    return any(
        "overall_reasoning" not in _object(reply) or any("reasoning" not in check for check in _checks(reply) or ())
        for reply in replies
    )


def _repeats_an_id(case: dict[str, Any], *, alike: bool) -> bool:
    """Say whether a reply has two verdicts on one item that are *alike*, or that are not."""
    for reply in case["judge_replies"]:
        said: dict[str, set[Any]] = {}
        for check in (checks := _checks(reply) or []):
            said.setdefault(str(check.get("id")), set()).add(check.get("satisfied", check.get("score")))
        if len(said) < len(checks) and alike is all(len(verdicts) == 1 for verdicts in said.values()):
            return True
    return False


def _asks_too_much_of_a_grader(case: dict[str, Any]) -> bool:
    scores = [part["min_score"] for part in _walk(case["rubric"]) if "type" in part and "min_score" in part]
    return any(not isinstance(score, int | float) or not 0 < score <= 1 for score in scores)


def _has_two_objects(case: dict[str, Any]) -> bool:
    decoder = json.JSONDecoder()
    for reply in case["judge_replies"]:
        if isinstance(reply, str) and "{" in reply:
            try:
                _, end = decoder.raw_decode(reply, reply.index("{"))
            except ValueError:
                continue
            if "{" in reply[end:]:
                return True
    return False


def _leaves_a_criterion_out(case: dict[str, Any]) -> bool:
    parsed = [grader for grader in _graders(case) if "rubrics" in grader]
    replies = [found for found in map(_checks, case["judge_replies"]) if found is not None]
    pairs = zip(parsed, replies, strict=False)
    return any({i["id"] for i in grader["rubrics"]} - {str(c.get("id")) for c in said} for grader, said in pairs)


def _fails_a_required_grader(case: dict[str, Any]) -> bool:
    return any(grader.get("required") for grader in _graders(case))


def _mixes_modes(case: dict[str, Any]) -> bool:
    return any(
        len({"score_ranges" in item for item in grader["rubrics"]}) > 1
        for grader in _graders(case)
        if grader.get("rubrics")
    )


def _is_judge_failure(case: dict[str, Any]) -> bool:
    expected = _expected(case)
    verdicts = [expected.get("verdict"), *(grader.get("verdict") for grader in expected.get("graders") or ())]
    failed = [isinstance(reply, dict) and "__error" in reply for reply in case["judge_replies"]]
    return "skip" in verdicts or _failed_in_grading(case) or any(failed[-1:])


def _failed_in_grading(case: dict[str, Any]) -> bool:
    return str(_expected(case).get("error") or "").startswith("judge")


def _is_out_of_range(case: dict[str, Any]) -> bool:
    """Say whether the last reply has a judgement that is not a share of 1, or an item's that is not a whole number to 10."""
    said = _object(case["judge_replies"][-1]) if case["judge_replies"] else None
    if not isinstance(said, dict):
        return False
    scores = [(check.get("score"), 10) for check in _checks(said) or ()] + [(said.get("score"), 1)]
    numbers = [(score, high) for score, high in scores if isinstance(score, int | float)]
    return any(not 0 <= score <= high or (high > 1 and score != int(score)) for score, high in numbers)


def _has_a_gate_on_a_checklist_item(case: dict[str, Any]) -> bool:
    return any("min_score" in item and "score_ranges" not in item for item in _items(case))


def _gates_a_level(case: dict[str, Any]) -> bool:
    return any(item.get("required") and "score_ranges" in item for item in _items(case))


def _has_one_id_twice(case: dict[str, Any]) -> bool:
    items = [grader.get("rubrics", []) for grader in _graders(case)]
    return any(len({item["id"] for item in part}) < len(part) for part in items)


def _says_nothing(case: dict[str, Any]) -> bool:
    """Say whether the last reply is an object without any judgement."""
    said = _object(case["judge_replies"][-1]) if case["judge_replies"] else None
    return isinstance(said, dict) and said.keys().isdisjoint({"checks", "pass", "passed", "score", "__error"})


def _is_unchecked(case: dict[str, Any]) -> bool:
    """Say whether an inline item of generation 1 has bands or a gate that AgentV refuses in an evaluator."""
    items = [item for item in case["rubric"].get("rubrics") or () if isinstance(item, dict)]
    gates = [item["required_min_score"] for item in items if "required_min_score" in item]
    wrong = any(not isinstance(gate, int) or not 0 <= gate <= 10 for gate in gates)
    return wrong or any(not _covers(item["score_ranges"]) for item in items if "score_ranges" in item)


def _covers(ranges: Any) -> bool:
    """Say whether bands hold every score from 0 to 10 once."""
    if isinstance(ranges, dict):
        return all(str(key).isdecimal() and int(key) <= 10 for key in ranges) and "0" in map(str, ranges)
    pairs = [band.get("score_range") if isinstance(band, dict) else None for band in ranges or ()]
    ends = [pair for pair in pairs if isinstance(pair, list) and len(pair) == 2]
    whole = len(ends) == len(pairs) and all(isinstance(end, int) for pair in ends for end in pair)
    return whole and sorted(n for low, high in ends for n in range(low, high + 1)) == [*range(11)]


def _should_be_refused(case: dict[str, Any]) -> bool:
    return str(case.get("proposed", "")).startswith("load error:")


def _has_two_gates(case: dict[str, Any]) -> bool:
    both = [item for item in _walk(case["rubric"]) if {"min_score", "required_min_score"} <= item.keys()]
    return any(item["min_score"] * 10 != item["required_min_score"] for item in both)


def _has_a_negative_weight(case: dict[str, Any]) -> bool:
    return any(item["weight"] < 0 for item in _items(case))


def _gives_texts_to_a_rubric_evaluator(case: dict[str, Any]) -> bool:
    lists = [entry.get("rubrics", []) for entry in case["rubric"].get("evaluators", [])]
    return any(isinstance(item, str) for items in lists for item in items)


Rule = tuple[Callable[[dict[str, Any]], bool], str, str]
"""A predicate on a recorded case; what ours comes to; why."""

DEVIATIONS: dict[str, Rule] = {
    "numbers and booleans as text": (
        _says_text_for_a_value,
        "read",
        "A judge that writes true or 0.8 in quotes has said what it means; AgentV asks again, or skips the grader.",
    ),
    "several objects in a reply": (
        _has_two_objects,
        "ungraded",
        "Two verdicts that disagree are an unreadable reply. AgentV fails to parse it, too, and scores 0.",
    ),
    "a reply without its reasoning": (
        _leaves_reasoning_out,
        "read",
        "A verdict counts without its reason; AgentV's generation 2 wants both, and falls back to another score.",
    ),
    "an id that the judge repeats": (
        partial(_repeats_an_id, alike=True),
        "read",
        "Equal verdicts are one; AgentV counts a repeated one twice.",
    ),
    "an id with two verdicts": (
        partial(_repeats_an_id, alike=False),
        "ungraded",
        "Which one holds is a guess; AgentV counts both.",
    ),
    "a min_score that no score can meet": (
        _asks_too_much_of_a_grader,
        "refused",
        "A grader's min_score outside of (0, 1] is an error; AgentV ignores it in silence.",
    ),
    "an omitted criterion": (
        _leaves_a_criterion_out,
        "ungraded",
        "A criterion that the judge left out is asked for again and then unjudged; AgentV drops it from the mean.",
    ),
    "a failed judge": (
        _is_judge_failure,
        "ungraded",
        "A judge that failed is never a verdict; AgentV skips the grader, and scores 0 if none is left.",
    ),
    "a score out of range": (
        _is_out_of_range,
        "ungraded",
        "It was meant on another scale; generation 1 takes the nearest end for a free judgement.",
    ),
    "a judge with tools": (
        lambda case: any(part["type"] == "agent-rubric" for part in _graders(case)),
        "read",
        "It reads what the candidate made and writes no file: its verdict is its reply.",
    ),
    "no judgement in a reply": (_says_nothing, "ungraded", "Nothing was said; generation 1 scores that 0."),
    "an inline item that an evaluator may not have": (
        _is_unchecked,
        "refused",
        "Generation 1 checks the items of evaluators and not the inline ones; one rule holds for both here.",
    ),
    "what was proposed to be refused": (_should_be_refused, "refused", "The cases themselves propose it."),
    "two gates that differ": (_has_two_gates, "refused", "One of them is not meant; AgentV prefers min_score."),
    "an id that stands twice": (_has_one_id_twice, "refused", "AgentV lets the last definition win."),
    "a verdict without its score": (
        _leaves_the_score_out,
        "read",
        "A pass flag alone is 1 or 0, as promptfoo has it; AgentV's schema wants the score, too.",
    ),
    "a weight that is not a number, a flag that is not a boolean": (
        _gives_text_for_a_number_or_a_flag,
        "refused",
        "AgentV takes its default in silence; what is written was meant.",
    ),
    "weights that sum to 0": (_weighs_nothing, "refused", "Nothing would count; AgentV scores 0."),
    "a negative weight": (_has_a_negative_weight, "refused", "AgentV checks the weights of graders only."),
    "texts in a rubric evaluator": (
        _gives_texts_to_a_rubric_evaluator,
        "read",
        "The page on the rubric evaluator shows texts as items; AgentV's code of that time skips them.",
    ),
    "criteria of both kinds": (
        _mixes_modes,
        "own mode",
        "Each criterion is answered in its own way; AgentV has all scored 0 to 10 as soon as one has bands.",
    ),
    "min_score on a checklist item": (
        _has_a_gate_on_a_checklist_item,
        "gates",
        "A gate that is written down gates; AgentV stores it and ignores it.",
    ),
    "required on an item with bands": (
        _gates_a_level,
        "gates",
        "It gates at its min_score, else at the threshold (before generation 2: at 10 of 10); generation 2 ignores it.",
    ),
    "a required grader": (
        _fails_a_required_grader,
        "score is reported",
        "It fails the case, and the score stays the mean; AgentV reports 0.",
    ),
}
"""Where we part from AgentV on purpose, by name: which cases, how ours come out, and why."""


def _outcomes(case: dict[str, Any]) -> set[str]:
    return {how for applies, how, _ in DEVIATIONS.values() if applies(case)}


# -- the adapter -----------------------------------------------------------------------------------------


@define
class Recorded:
    """A judge that says what was recorded, one reply after the other; the last one again when they run out."""

    replies: list[Any]
    asked: int = 0

    async def answer(self, ask: Ask) -> Reply:
        """Return the next reply, in the form that was asked for."""
        said = self.replies[min(self.asked, len(self.replies) - 1)]
        self.asked += 1
        if isinstance(said, dict) and "__error" in said:
            raise ModelError(Failure("transport", str(said["__error"])))
        return Reply(said if isinstance(said, str) and not _is_checks(said) else _translated(said, ask))


def _is_checks(text: str) -> bool:
    try:
        said = json.loads(text)
    except ValueError:
        return False
    return isinstance(said, dict) and "checks" in said


def _translated(said: Any, ask: Ask) -> str:
    """Return a reply in our form: `verdicts` for `checks`, or the one entry that is asked for."""
    data = json.loads(said) if isinstance(said, str) else said
    checks = _checks(data)
    if checks is None:
        return json.dumps(data)
    if len(ask.criteria) > 1:
        asked = {c.id: c for c in ask.criteria}
        return json.dumps({"verdicts": [_by_mode(e, asked.get(str(e.get("id")))) for e in checks]})
    (criterion,) = ask.criteria
    entries = [_by_mode(entry, criterion) for entry in checks if entry.get("id") == criterion.id]
    return "\n".join(map(json.dumps, entries)) or "{}"


def _by_mode(entry: dict[str, Any], criterion: Criterion | None) -> dict[str, Any]:
    """Return an entry for the criterion's own kind: a yes/no item that AgentV scored 0 to 10 is met from 7."""
    if criterion is not None and not isinstance(criterion.answer, Levels) and "satisfied" not in entry:
        return {**entry, "satisfied": entry["score"] >= 7} if isinstance(entry.get("score"), int) else entry
    return entry


def _file(case: dict[str, Any]) -> dict[str, Any]:
    """Return a file of the case's generation around what was recorded."""
    part = case["rubric"]
    if case["format"] == "agentv-1":
        test: dict[str, Any] = {"id": "t1", "input": "Q", "expected_outcome": "Answers well"}
        test |= {key: value for key, value in part.items() if key != "evaluators"}
        test |= {"execution": {"evaluators": part["evaluators"]}} if "evaluators" in part else {}
        return {"evalcases": [test]}
    shared = {key: part[key] for key in ("default_test", "execution") if key in part}
    own = {key: value for key, value in part.items() if key not in shared}
    return {**shared, "tests": [{"id": "t1", "input": "Q", **own}]}


def _load(case: dict[str, Any], **options: Any) -> Suite:
    """Return the suite of the case's file by the default call."""
    suite = loads_suite(json.dumps(_file(case)), **options)
    assert suite.format == case["format"]
    return suite


def _graded(case: dict[str, Any]) -> tuple[Grade | Ungraded, Recorded, Rubric]:
    (loaded,) = _load(case, required=True)
    recorded = Recorded(case["judge_replies"] or [{}])
    judge = Judge(recorded, per_call="all", repairs=3, retries=2, timeout=5)
    candidate = loaded.answered(case["candidate"]).candidate
    assert candidate is not None
    try:
        return grade(candidate, loaded.rubric, judge), recorded, loaded.rubric
    except UngradedError as problem:
        return problem.result, recorded, loaded.rubric


def _is_refused(case: dict[str, Any]) -> bool:
    return _expected(case).get("error") is not None and not _failed_in_grading(case)


ERRORS: dict[str, tuple[str, ...]] = {
    "ranges_overlap": ("overlap",),
    "ranges_shorthand_start": ("start at 0",),
    "ranges_coverage": ("leave out the scores",),
    "ranges_incomplete": ("leave out the scores",),
    "ranges_bounds": ("0 to 10",),
    "ranges_integer": ("whole numbers",),
    "ranges_min_gt_max": ("lower end",),
    "range_not_pair": ("list of two numbers",),
    "range_outcome": ("needs an `outcome`",),
    "ranges_not_array_or_map": ("expected a map", "list of {score_range"),
    "min_score_out_of_range": ("expected a number above 0 to 1",),
    "required_min_score_invalid": ("whole number", "from 0 to 10"),
    "removed_field": ("removed", "any more"),
    "unsupported_type": ("unsupported",),
    "weight_invalid": ("expected a number from 0",),
}
"""Kinds of AgentV's errors, and what one of ours must say for each."""


def _says(kind: str, message: str) -> bool:
    known = next((words for name, words in ERRORS.items() if kind.startswith(name)), ())
    return not known or any(word in message for word in known)


@each_row("case", [c for c in _cases() if _is_refused(c)],
                         ids=lambda case: case["id"])  # fmt: skip
def test_what_agentv_refuses_is_refused(case: dict[str, Any]) -> None:
    """A file that AgentV refuses has an error with its place, and of the same kind."""
    with pytest.raises(LoadError) as caught:
        _load(case)
    assert any(_says(_expected(case)["error"], p.message) for p in caught.value.problems), str(caught.value)
    assert all(p.line and p.column and p.path for p in caught.value.problems)


@each_row("case", [c for c in _cases() if not _is_refused(c)],
                         ids=lambda case: case["id"])  # fmt: skip
def test_a_recorded_case_comes_out_alike(case: dict[str, Any]) -> None:
    """Score, verdict, items and calls are AgentV's, but for what `DEVIATIONS` names."""
    outcomes = _outcomes(case)
    if "refused" in outcomes:
        with pytest.raises(LoadError):
            _load(case)
        return
    result, recorded, rubric = _graded(case)
    if _expected(case).get("no_grader"):
        assert "read" in outcomes or _is_default(rubric)
    elif "read" in outcomes:
        assert isinstance(result, Grade)
    elif "ungraded" in outcomes:
        assert isinstance(result, Ungraded)
    else:
        assert isinstance(result, Grade), result
        _compare(case, result, outcomes)
        assert recorded.asked == _expected(case).get("judge_calls", recorded.asked)
    _compare_items(case, rubric)


def _is_default(rubric: Rubric) -> bool:
    """A test whose only grader holds nothing is judged by its criteria, if it has any, or by nobody."""
    return [criterion.text for criterion in rubric.criteria] in (["Answers well"], [str(Unsupported("no grader"))])


def _compare(case: dict[str, Any], result: Grade, outcomes: set[str]) -> None:
    expected = _expected(case)
    if "own mode" not in outcomes and "score is reported" not in outcomes:
        assert result.score == pytest.approx(expected.get("case_score", result.score), abs=1e-9)
    if "own mode" in outcomes:
        return
    assert result.passed == _passes(case)
    if case["format"] == "agentv-1" and not result.gates and "float_artifact" not in expected:
        assert result.verdict == expected.get("verdict", expected["case_verdict"])
    if "criteria_passed" in expected and len(expected["criteria_passed"]) == len(result.findings):
        _compare_criteria(expected["criteria_passed"], result, result.gates if "gates" in outcomes else ())


def _passes(case: dict[str, Any]) -> bool:
    """
    Return whether ours must pass.

    As AgentV's case does, and its grader (whose gates AgentV loses when it computes the case anew), and where a gate
    that AgentV knows of but does not apply holds. 0.8 that a float made 0.7999... meets 0.8.
    """
    expected = _expected(case)
    if "case fail" in str(case.get("proposed", "")):
        return False
    graders = expected.get("parsed") or []
    if any("rubrics" in grader for grader in graders) and not any(grader.get("negate") for grader in graders):
        least = _threshold(case)
        meets = expected["case_score"] >= least - 1e-9
        return bool(meets and not _is_gated(case) and (least >= THRESHOLD or expected["case_verdict"] == "pass"))
    return bool(expected["case_verdict"] == "pass" and expected.get("verdict") != "fail")


def _threshold(case: dict[str, Any]) -> float:
    """Return what the case must reach: its own threshold, that of the defaults, or AgentV's."""
    part = case["rubric"]
    places = [part, part.get("execution"), part.get("default_test")]
    said = [place["threshold"] for place in places if isinstance(place, dict) and "threshold" in place]
    return float(said[0]) if said else THRESHOLD


def _is_gated(case: dict[str, Any]) -> bool:
    said = {check.get("id"): check for reply in case["judge_replies"] for check in _checks(reply) or ()}
    return any(_fails(item, said[item["id"]], case) for item in _items(case) if item["id"] in said)


def _fails(item: dict[str, Any], check: dict[str, Any], case: dict[str, Any]) -> bool:
    """Say whether an item's gate fails: at its own value, else with bands at 10 of 10 (2: threshold), else at yes."""
    value = check["score"] / 10 if "score" in check else float(check["satisfied"])
    default = _threshold(case) if case["format"] == "agentv-2" and "score_ranges" in item else 1.0
    gate = item.get("min_score") or item.get("required_min_score", 0) / 10 or (default if item.get("required") else 0)
    return bool(value < gate - 1e-9)


def _compare_criteria(passed: list[bool], result: Grade, ours: Collection[str]) -> None:
    """A level counts as passed from 7, in AgentV's report, where no gate fails it; the gates *ours* are not AgentV's."""
    for criterion, met in zip(result.rubric.judged, passed, strict=True):
        least = 0.7 if isinstance(criterion.answer, Levels) else 1
        if isinstance(criterion.answer, YesNo | Levels) and criterion.id not in ours:
            reached = result.contributions[criterion.id] >= least - 1e-9 and criterion.id not in result.gates
            assert reached == met, criterion.id


def _compare_items(case: dict[str, Any], rubric: Rubric) -> None:
    graders = [grader for grader in graders_of(rubric) if isinstance(grader, Rubric)]
    for ours, theirs in zip(graders, _expected(case).get("parsed") or [], strict=False):
        items = theirs.get("rubrics")
        if items is None:
            continue
        assert [c.id for c in ours.criteria] == [item["id"] for item in items]
        assert [c.weight for c in ours.criteria] == [item["weight"] for item in items]
        required = {item["id"]: item.get("required", False) for item in _items(case)}
        assert {c.id: c.required for c in ours.criteria}.items() <= required.items()
        assert [isinstance(c.answer, Levels) for c in ours.criteria] == ["score_ranges" in item for item in items]


@each_row("name", DEVIATIONS)
def test_a_deviation_has_a_known_outcome_and_a_reason(name: str) -> None:
    """Whoever parts from AgentV says how, and why."""
    _, how, why = DEVIATIONS[name]
    assert how in ("read", "ungraded", "refused", "own mode", "gates", "score is reported")
    assert why.endswith(".")
