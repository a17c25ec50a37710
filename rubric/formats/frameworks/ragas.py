"""
Rubrics of ragas: a text for each score, for all samples or for each, and the definitions of its critics.

| in the file                                  | here                                                            |
|----------------------------------------------|-----------------------------------------------------------------|
| `score1_description` .. `score5_description` | anchors of one criterion; the lowest score is 0, the highest 1  |
| `name`, `definition`                         | a yes/no criterion: an `AspectCritic`                           |
| samples with `rubrics` of their own          | a case each, with `user_input`, `response`, `reference`         |
"""

from __future__ import annotations

import re
from typing import Any

from rubric.formats.benchmarks.signed_weights import examples, warn_of_pass_mark
from rubric.formats.cursor import Cursor, Loading, Notes
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values.answers import Levels
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric

SCORE = re.compile(r"score(\d{1,4})_description", re.ASCII)
SAMPLE = {"input": "user_input", "output": "response", "reference": "reference"}
TEXT = "How good is the answer, by the descriptions of the scores?"


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the document of *notes*."""
    root = Cursor.of(notes, loading)
    holders = examples(root, "a rubric, or a list of samples with rubrics")
    cases = [case for number, at in enumerate(holders, 1) if (case := _case(at, number)) is not None]
    warn_of_pass_mark(root)
    return Suite(cases=cases, format="ragas")


def _case(at: Cursor, number: int) -> Case | None:
    if not at.mapping("a rubric, or a sample (a mapping with rubrics)"):
        return None
    name = at.value.get("name")
    name = name if isinstance(name, str) and name.strip() else ""
    criterion: Criterion | None
    if at.has("definition"):
        text = at["definition"].text("what the critic looks for")
        criterion = at.built(Criterion, text, id=name or "critic") if text else None
    else:
        holder = at["rubrics"] if at.has("rubrics") else at
        criterion = _scored(holder, name)
    if criterion is None:
        return None
    values: dict[str, Any] = {"id": name or f"sample-{number}", **at.given(SAMPLE, blank=SAMPLE.values())}
    return at.made(Case, {**values, "rubric": Rubric(criteria=[criterion]), "place": at.place}, SAMPLE)


def _scored(at: Cursor, name: str) -> Criterion | None:
    if not at.mapping("descriptions of scores (score1_description, ...)"):
        return None
    found = {int(match[1]): part for key, part in at.items() if (match := SCORE.fullmatch(str(key)))}
    texts = {score: found[score].text("the description of a score") for score in sorted(found)}
    if len(texts) < 2 or None in texts.values():  # noqa: PLR2004
        if None not in texts.values():
            at.error("a rubric describes two scores at least: score1_description, score2_description, ...")
        return None
    levels = at.built(Levels, texts)
    return None if levels is None else at.built(Criterion, TEXT, id=name or "quality", answer=levels)
