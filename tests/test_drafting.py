"""Drafting a rubric from an expected outcome."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from rubric import Criterion, Failure, Judge, ModelError, agenerate, dumps, generate, loads
from rubric.errors import DefinitionError
from rubric.testing.scripted_model import ScriptedModel

ITEMS: list[dict[str, Any]] = [
    {"id": "names-cause", "text": "Names the off-by-one error as the cause", "weight": 3, "required": True},
    {"id": "shows-fix", "text": "Shows the corrected comparison", "weight": 2, "required": False},
    {"id": "tells-effect", "text": "Says that the array is read beyond its end", "weight": 1, "required": False},
]
DRAFT = {"criteria": ITEMS}


def writer(*lines: Any, **options: Any) -> tuple[Judge, ScriptedModel]:
    """Return a judge that writes *lines*, one after the other, and its model."""
    model = ScriptedModel(lines)
    return Judge(model, **options), model


def test_a_draft_is_a_rubric_like_any_other() -> None:
    """It can be read, edited and written down."""
    judge, model = writer(DRAFT)
    draft = generate("Finds the off-by-one error", judge, input="Review this loop", name="review").rubric
    assert draft is not None
    assert (draft.name, draft.criteria) == ("review", tuple(Criterion(**item) for item in ITEMS))
    assert loads(dumps(draft.revising("shows-fix", weight=4))).name == "review"
    assert "Finds the off-by-one error" in model.asks[0].messages[1].text
    assert "Review this loop" in model.asks[0].messages[1].text


def test_a_draft_can_be_awaited() -> None:
    """Without holding up the loop."""
    judge, _ = writer(json.dumps(DRAFT))
    assert len(asyncio.run(agenerate("Finds it", judge)).kept) == 3


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("I would check three things.", "expected a JSON object with 3 to 7 criteria, got none"),
        ({"criteria": []}, "got 0"),
        ({"criteria": ITEMS * 3}, "got 9"),
        ({"criteria": [*ITEMS, ITEMS[0]]}, "belongs to criteria[0] already"),
        ({"criteria": [*ITEMS[:2], {"id": "c", "text": ""}]}, "criteria[2].text"),
        ({"criteria": [*ITEMS[:2], {"id": "c", "text": "x", "weight": -1}]}, "criteria[2].weight"),
        ({"criteria": [*ITEMS[:2], {"id": "c", "text": "x", "wieght": 1}]}, "did you mean 'weight'?"),
        ({"criteria": [*ITEMS[:2], "x"]}, "criteria[2]: expected an object"),
        ({"criteria": [{**item, "weight": 0} for item in ITEMS]}, "sum to 0"),
    ],
)
def test_what_is_no_rubric_is_asked_for_again(line: Any, complaint: str) -> None:
    """With the complaint; after the last repair it is an error, never an empty rubric."""
    judge, model = writer(line, DRAFT)
    assert len(generate("Finds it", judge).kept) == 3
    assert complaint in model.asks[1].messages[1].text
    judge, _ = writer(line, line)
    with pytest.raises(ModelError) as caught:
        generate("Finds it", judge)
    assert caught.value.failure.kind == "unreadable"


def test_a_model_that_fails_is_an_error() -> None:
    """With its kind."""
    judge, _ = writer(Failure("auth", "no key"))
    with pytest.raises(ModelError, match="no key"):
        generate("Finds it", judge)


@pytest.mark.parametrize(
    ("outcome", "judge"), [("", "x/y"), (" ", "x/y"), ("Finds it", "offline"), ("Finds it", ["a", "b"])]
)
def test_who_cannot_write_is_refused(outcome: str, judge: Any) -> None:
    """No outcome, the offline judge, a panel."""
    with pytest.raises(DefinitionError):
        generate(outcome, judge)
