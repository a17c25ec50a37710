"""What the tests of AgentV files share: reading a text or a file, and the graders of a case."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from attrs import evolve

from rubric import Criterion, Rubric
from rubric.formats.agentv.reader import read
from rubric.formats.document import FOR_SUITES, Document, Listing
from rubric.formats.files import parse
from rubric.formats.notes import Loading, Notes
from rubric.suites.suite import Suite
from rubric.values.checks import Check


def notes_of(text: str, source: str = "eval.yaml") -> Notes:
    """Return the notes of a file; one of JSON lines is a list of them."""
    if source.endswith(".jsonl"):
        rows = [parse(line, source, "json", FOR_SUITES).root for line in text.splitlines() if line.strip()]
        return Notes(Document(source, Listing(1, 1, parts=rows)))
    return Notes(parse(text, source, limits=FOR_SUITES))


def loads(text: str | dict[str, Any] | list[Any], generation: Any = None, **options: Any) -> Suite:
    """Return the suite of *text* (or of plain data), with all that is wrong with it raised."""
    notes = notes_of(text if isinstance(text, str) else json.dumps(text))
    suite = read(notes, Loading(**options), generation)
    notes.finish()
    return suite


def rubric_of(*entries: Any, key: str = "assert", **options: Any) -> Rubric:
    """Return the rubric of a case with *entries* as its graders."""
    test = {"id": "t1", "input": "What?", "criteria": "Answers well", key: list(entries)}
    (case,) = loads({"tests": [test]}, **options)
    return case.rubric


def graders_of(rubric: Rubric) -> list[Rubric | Criterion]:
    """Return the graders of a case: rubrics, also for a lone item, sets of graders, and criteria that code decides."""
    if rubric.name:
        return [rubric]
    return [
        c.answer if isinstance(c.answer, Rubric) else c if isinstance(c.answer, Check) else _around(c)
        for c in rubric.criteria
    ]


def _around(item: Criterion) -> Rubric:
    """Return the grader of which *item* is the only one."""
    return Rubric(re.sub(r"-\d+$", "", item.id), criteria=[evolve(item, id="rubric-1", weight=1)], threshold=None)


def is_set(grader: Rubric | Criterion) -> bool:
    """Say whether *grader* is a set of graders, or one that is turned over."""
    return isinstance(grader, Rubric) and all(isinstance(c.answer, Rubric | Check) for c in grader.criteria)


def written(path: Path, text: str) -> Path:
    """Return *path*, with *text* written to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
