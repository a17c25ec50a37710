"""Real AgentV files: each loads or says where it is wrong, and its items are those that AgentV's own parser reads."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rubric import Criterion, Levels, Rubric
from rubric.errors import LoadError, Problem
from rubric.formats.agentv.reader import read
from rubric.formats.notes import Loading, Notes
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values.checks import Unsupported
from tests.agentv import graders_of, is_set, notes_of
from tests.places import SHARED
from tests.rows import each_row

CORPUS = SHARED / "corpus"
GOLDEN = CORPUS / "golden_agentv.json"
FILES = sorted(p for p in (CORPUS / "agentv").rglob("*") if p.suffix in (".yaml", ".yml", ".json", ".jsonl"))

pytestmark = pytest.mark.skipif(not GOLDEN.is_file(), reason="the collected files are not beside this checkout")


def _golden() -> list[dict[str, Any]]:
    return json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.is_file() else []


@cache
def _read(file: Path) -> tuple[Notes, Suite]:
    """Return what a file holds, gates as AgentV's code sets them; a file that is not YAML for us has no suite."""
    notes = notes_of(file.read_text(encoding="utf-8"), file.name)
    return notes, read(notes, Loading(folder=file.parent, base=CORPUS, required=True))


@pytest.mark.long
@each_row("file", FILES, ids=lambda file: "/".join(file.relative_to(CORPUS / "agentv").parts))
def test_a_file_loads_or_says_where_it_is_wrong(file: Path) -> None:
    """A file of the corpus is a suite with cases, or an error with a line, a column and a cure."""
    problems, suite = _problems(file)
    assert all(p.line >= 1 and p.column >= 1 and p.message for p in problems)
    if not problems:
        assert suite is not None
        assert suite.cases
        assert suite.format in ("agentv-1", "agentv-1.5", "agentv-2")


def _problems(file: Path) -> tuple[tuple[Problem, ...], Suite | None]:
    try:
        notes, suite = _read(file)
        notes.finish()
    except LoadError as error:
        return error.problems, None
    return (), suite


@pytest.mark.long
@each_row("entry", _golden(), ids=lambda entry: entry["path"])
def test_the_tests_and_the_items_are_those_of_agentv(entry: dict[str, Any]) -> None:
    """Every test that AgentV reads is a case with the same graders; what it refuses is refused, or ungraded."""
    notes, suite = _read(CORPUS / entry["path"])
    cases = {case.id.split(" [")[0] if case.cell else case.id: case for case in suite}
    for test in entry["tests"]:
        case = cases.get(test["id"])
        if case is None:
            assert notes.errors, f"{test['id']} is lost without a word"
        elif "error" in test:
            assert _errors_of(case, notes, suite) or _is_undecided(case.rubric), test["error"]
        else:
            _compare(test, case, troubled=bool(_errors_of(case, notes, suite)))


def _errors_of(case: Case, notes: Notes, suite: Suite) -> list[Problem]:
    """Return what is wrong with a case, or with what it shares with all."""
    starts = sorted({c.place.line for c in suite if c.place})
    own = case.place.line if case.place else 1
    end = next((line for line in starts if line > own), 10**9)
    return [p for p in notes.errors if own <= p.line < end or p.line < starts[0]]


def _is_undecided(rubric: Rubric) -> bool:
    answers = [criterion.answer for criterion in rubric.criteria]
    return any(isinstance(a, Unsupported) or (isinstance(a, Rubric) and _is_undecided(a)) for a in answers)


def _compare(test: dict[str, Any], case: Case, *, troubled: bool) -> None:
    """
    Compare the graders of a case that judges answer, in any order.

    Where something is wrong with the case, such as a prompt's file that is not in the collection, the others must
    be there all the same: AgentV leaves such graders out, or takes the file's name for the prompt.
    """
    whole = case.rubric
    if case.turns:  # the collection has the graders of the conversation alone, not those of its turns
        (inner,) = [c.answer for c in whole.criteria if c.on == "conversation"] or [Rubric()]
        assert isinstance(inner, Rubric)
        whole = inner
    ours = [grader for grader in graders_of(whole) if isinstance(grader, Rubric) and not is_set(grader)]
    for grader in test["llm_graders"]:
        match = next((our for our in ours if our.name == grader["name"] and _same(our, grader)), None)
        assert match is not None or _is_undecided(case.rubric), f"{test['id']}: no {grader} in {ours}"
        if match is not None:
            ours.remove(match)
    assert troubled or all(_is_the_default(grader, test) for grader in ours), ours


def _is_the_default(grader: Rubric, test: dict[str, Any]) -> bool:
    """A test without any grader is judged by its criteria; AgentV adds that grader when it runs, not when it parses."""
    return not test["llm_graders"] and not test["other_types"] and len(grader.criteria) == 1


def _same(ours: Rubric, theirs: dict[str, Any]) -> bool:
    """Say whether two graders have the same items. AgentV's parser shows texts before variables are put in."""
    if "rubrics" not in theirs:
        return len(ours.criteria) == 1
    if any("{{" in _folded(item)["text"] for item in theirs["rubrics"]):
        return [c.id for c in ours.criteria] == [item["id"] for item in theirs["rubrics"]]
    return [_as_theirs(c) for c in ours.criteria] == [_folded(item) for item in theirs["rubrics"]]


def _as_theirs(criterion: Criterion) -> dict[str, Any]:
    levels = criterion.answer if isinstance(criterion.answer, Levels) else None
    return {
        "id": criterion.id,
        "text": criterion.text,
        "weight": criterion.weight,
        "required": criterion.required,
        "operator": criterion.polarity,
        "min_score": criterion.min_score,
        "ranges": [([r.low, r.high], r.text) for r in levels.ranges] if levels else [],
    }


def _folded(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of AgentV's in our words; one with bands alone is called by its id."""
    old = item.get("required_min_score")
    ranges = item.get("score_ranges", [])
    return {
        "id": item["id"],
        "text": (item.get("outcome") or item.get("expected_outcome") or item["id"]).strip(),
        "weight": item["weight"],
        "required": item.get("required", False),
        "operator": item.get("operator", "satisfy"),
        "min_score": item.get("min_score", old / 10 if old else None),
        "ranges": [(r["score_range"], r.get("outcome", r.get("expected_outcome"))) for r in ranges],
    }
