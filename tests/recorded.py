"""Grades made of recorded values, without a judge; and the published data beside the checkout."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from attrs import evolve

from rubric import Grades, Judge, Rubric
from rubric.driving import Failure
from rubric.results import Scored, Unjudged
from rubric.results.result import Grade, Ungraded, conclude, conclude_votes
from rubric.values.judges import Jury
from tests.places import SHARED

DATA = SHARED / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the published data are not at {DATA}")

_JUDGE = Judge("offline")


def result(
    rubric: Rubric, said: Mapping[str, Any], key: str = "", group: str = "", judge: Judge = _JUDGE
) -> Grade | Ungraded:
    """Return the result of what a judge *said* of each criterion; None is a failure, a number may lie between levels."""
    found: list[Any] = []
    for criterion in rubric.judged:
        value = said.get(criterion.id)
        if value is None:
            found.append(Unjudged(criterion.id, Failure("refusal", "no")))
            continue
        answer: Any = criterion.answer
        between = not isinstance(value, bool | str) and hasattr(answer, "low")
        score = (value - answer.low) / (answer.high - answer.low) if between else answer.place(value)
        found.append(Scored(criterion.id, float(score), value=value))
    return evolve(conclude(rubric, judge, found), key=key, group=group)


def grades(rubric: Rubric, said: Mapping[Any, Mapping[str, Any]], groups: Mapping[Any, object] | None = None) -> Grades:
    """Return the grades of what a judge said, by the key of a candidate."""
    return Grades(result(rubric, one, str(key), str(groups[key]) if groups else "") for key, one in said.items())


def jury(rubric: Rubric, votes: Mapping[Any, Sequence[Mapping[str, Any]]]) -> Grades:
    """Return the grades of a jury, by the key of a candidate."""
    out = []
    for key, each in votes.items():
        rule = Jury(_JUDGE, len(each))
        out.append(evolve(conclude_votes(rubric, rule, [result(rubric, one) for one in each]), key=str(key)))
    return Grades(out)


def lines(*path: str) -> list[dict[str, Any]]:
    """Return the objects in a file of lines below the data, packed or not."""
    data = DATA.joinpath(*path).read_bytes()
    text = (gzip.decompress(data) if path[-1].endswith(".gz") else data).decode("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def expected(name: str) -> dict[str, Any]:
    """Return the published figures of a data set."""
    found: dict[str, Any] = json.loads((DATA / name / "expected.json").read_text("utf-8"))
    return found
