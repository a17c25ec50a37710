"""Draft a rubric from an expected outcome: to be read, edited and kept, not to be used unseen."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from attrs import evolve

from rubric.engine.grade import JudgeLike, judge_or_default
from rubric.engine.pipeline import adrive
from rubric.errors import DefinitionError, ModelError
from rubric.grading.json_extraction import Ambiguous, find_objects
from rubric.grading.steps import Steps
from rubric.internals import background_loop
from rubric.internals.fields import check_text, refuse_path, suggest
from rubric.internals.frozen_map import FrozenMap
from rubric.prompts import render
from rubric.values.criteria import Criterion
from rubric.values.judges import Judge
from rubric.values.requests import Ask, Failure, Outgoing, Reply
from rubric.values.rubrics import Rubric, check_weights

FEWEST, MOST = 3, 7
"""Criteria of a draft, as AgentV's generator has them."""

_ITEM: dict[str, Any] = {
    "id": {"type": "string"},
    "text": {"type": "string"},
    "weight": {"type": "number"},
    "required": {"type": "boolean"},
}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_SCHEMA = FrozenMap(_object({"criteria": {"type": "array", "items": _object(_ITEM)}}))


def generate(expected_outcome: str, judge: JudgeLike | None = None, *, input: str = "", name: str = "") -> Rubric:
    """
    Return a draft: three to seven yes/no criteria that check what *expected_outcome* says.

    Args:
        expected_outcome: A description of a good answer.
        judge: The judge that writes it, or a model's name. Left out, the environment's API keys name one.
        input: The task that the answer is for, as context.
        name: The name of the rubric.

    Raises:
        DefinitionError: There is no outcome, or *judge* cannot write.
        ModelError: The model failed, or wrote no rubric within its repairs.
    """
    return background_loop.run(agenerate(expected_outcome, judge, input=input, name=name))


async def agenerate(
    expected_outcome: str, judge: JudgeLike | None = None, *, input: str = "", name: str = ""
) -> Rubric:
    """Return a draft like `generate`, without holding up the event loop."""
    check_text("expected_outcome", expected_outcome)
    refuse_path("expected_outcome", expected_outcome, f"give Path({expected_outcome!r}).read_text()")
    writer = judge_or_default(judge)
    if not isinstance(writer, Judge) or writer.model == "offline":
        shown = type(writer).__name__ if not isinstance(writer, Judge) else "'offline', which only counts words"
        raise DefinitionError("judge", f"expected one judge that can write, got {shown}; name a model")
    return await adrive(_drafting(expected_outcome, writer, input, name))


def _drafting(outcome: str, judge: Judge, task: str, name: str) -> Steps[Rubric]:
    """Ask *judge* for a draft, and again with the complaint if it cannot be used; yields asks, like `flow`."""
    complaint, retries = "", judge.retries
    for repair in range(judge.repairs + 1):
        (got,) = yield (evolve(_ask(outcome, task, judge, complaint, repair), retries=retries),)
        retries = max(0, retries - max(0, got.usage.calls - 1))
        if isinstance(got, Failure):
            raise ModelError(got)
        try:
            return _read_draft(got, name)
        except DefinitionError as problem:
            complaint = str(problem)
    raise ModelError(Failure("unreadable", complaint, judge=judge.name))


def _ask(outcome: str, task: str, judge: Judge, complaint: str, repair: int) -> Ask:
    mark = secrets.token_hex(8)
    blocks = [("task", task), ("expected outcome", outcome)]
    text = "\n\n".join(f"{title}, {mark}:\n{block}\n{mark}" for title, block in blocks if block)
    if complaint:
        text += f"\n\nYour last answer could not be used: {complaint}. Write the rubric again."
    slots = {"fewest": str(FEWEST), "most": str(MOST), "mark": mark}
    system = render.fill(render.text("draft"), slots)
    messages = (Outgoing("system", (system,)), Outgoing("user", (text,)))
    return Ask(judge, messages, _SCHEMA, (), max_tokens=judge.max_tokens, repair=repair)


def _read_draft(reply: Reply, name: str) -> Rubric:
    """Return the rubric that *reply* holds; raise `DefinitionError`, which says what is wrong, if it cannot be used."""
    try:
        found = find_objects(reply.text or "", lambda value, _: "criteria" in value)
    except Ambiguous as why:
        raise DefinitionError("", str(why)) from None
    items = found[-1][0]["criteria"] if found else None
    if not isinstance(items, list) or not FEWEST <= len(items) <= MOST:
        got = len(items) if isinstance(items, list) else "none"
        raise DefinitionError("criteria", f"expected a JSON object with {FEWEST} to {MOST} criteria, got {got}")
    rubric = Rubric(name, criteria=[_criterion(index, item) for index, item in enumerate(items)])
    check_weights(rubric)
    return rubric


def _criterion(index: int, item: Any) -> Criterion:
    where = f"criteria[{index}]"
    if not isinstance(item, Mapping) or "text" not in item:
        raise DefinitionError(where, "expected an object with id, text, weight and required")
    for key in item:
        if key not in _ITEM:
            raise DefinitionError(f"{where}.{key}", f"unknown key{suggest(str(key), _ITEM)}")
    try:
        return Criterion(**{key: value for key, value in item.items() if value is not None})
    except DefinitionError as problem:
        raise DefinitionError(f"{where}.{problem.field}", problem.message) from None
