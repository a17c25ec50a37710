"""
Graders that a judge answers: a checklist, an analytic rubric, or one judgement on a free text.

What is judged is the grader's `value` (before generation 2: `criteria`, `rubrics`); without one, and before generation
2 only, what the case says a good answer does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from attrs import evolve

from rubric.answers import Unit
from rubric.checks import Unsupported
from rubric.criteria import Criterion
from rubric.formats.agentv.entries import Entry, Task
from rubric.formats.agentv.grouping import Grader, binds
from rubric.formats.agentv.items import are_items, is_item, read_items
from rubric.formats.agentv.templates import Prompt, read_prompt
from rubric.formats.documents import Path
from rubric.formats.includes.including import is_reference, read_text_at
from rubric.rubrics import Rubric

__all__ = ["FREE", "ITEMS", "read_judged", "rubric_of"]

ITEMS = ("rubrics", "rubric")
"""Types of items only, before generation 2."""

FREE = ("llm-grader", "llm_grader", "llm_judge", "llm-judge")
"""Types of one judgement, before generation 2; with items they are like the others."""

_KNOWN = frozenset(
    {"type", "name", "metric", "id", "description", "value", "weight", "required", "min_score", "threshold", "negate",
     "provider", "target", "model", "prompt", "rubric_prompt", "criteria", "rubrics", "rubric_item", "score_ranges",
     "temperature", "max_steps", "transform", "preprocessors", "config", "outcome", "expected_outcome", "operator"}
)  # fmt: skip


def rubric_of(name: str, items: Sequence[Criterion], task: Task, threshold: float | None = None) -> Rubric:
    """Return the rubric of *items*; without a *threshold* of its own, with that of the case."""
    least = task.threshold if threshold is None else threshold
    return Rubric(name, criteria=items, threshold=least, binding=binds(items))


def read_judged(entry: Entry) -> Grader | None:
    """Return the grader without what it counts; None where there is nothing to judge by, which is noted."""
    entry.check_keys(_KNOWN)
    if "target" in entry.fields and entry.scope.is_current:
        message = "`target` is no field of a grader any more; use `provider` instead"
        entry.scope.error(entry.at("target"), message, key=True)
    key = "prompt" if entry.get("prompt") is not None else "rubric_prompt"
    prompt = read_prompt(entry.get(key), entry.scope, entry.at(key))
    missing = "a prompt that a program writes" if prompt.program else "a transform" if entry.get("transform") else ""
    field, value = _value(entry)
    if value in (None, []) and not _stands_alone(entry, prompt):
        entry.warn(f"there is nothing to judge by, no `{field}` and no `prompt`; it is left out")
        return None
    if missing:
        return _undecided(entry, f"{entry.kind} with {missing}")
    for unused in ("max_steps", "preprocessors"):
        if unused in entry.fields:
            entry.scope.once(entry.at(unused), f"`{unused}` is not used: the judge has no tools, and reads plain text")
    items = _items(entry, field, value)
    if items is None:
        return _free(entry, prompt, field, value)
    return _listed(entry, prompt, items)


def _undecided(entry: Entry, why: str) -> Grader:
    entry.warn(f"{why} is not supported: the case is ungraded")
    return Grader(entry.name, Unsupported(why), entry.path)


def _stands_alone(entry: Entry, prompt: Prompt) -> bool:
    """Say whether a grader without a value judges all the same: by its prompt, or before 2 by the case's criteria."""
    given = prompt.lost or prompt.program or bool(prompt.text or prompt.template)
    return entry.kind not in ITEMS and (given or not entry.scope.is_current)


def _value(entry: Entry) -> tuple[str, Any]:
    """Return where what is judged stands, and what it is."""
    if entry.scope.is_current:
        for key in ("criteria", "rubrics", "rubric_item"):
            if key in entry.fields:
                message = f"`{key}` is no field of {entry.kind} any more; use `value` instead"
                entry.scope.error(entry.at(key), message, key=True)
        return "value", entry.get("value")
    for key in ("criteria", "rubrics", "value"):
        if entry.get(key) is not None:
            return key, entry.get(key)
    if entry.kind in ITEMS and is_item(entry.fields):
        return "", {key: part for key, part in entry.fields.items() if key not in ("type", "name", "metric")}
    return "rubrics" if entry.scope.generation == "agentv-1" else "criteria", None


def _items(entry: Entry, field: str, value: Any) -> list[Criterion] | None:
    """Return the items that *value* holds; None where it is a free text, or free data."""
    here = _place(entry, field)
    if isinstance(value, str) and "score_ranges" in entry.fields:
        own = {key: entry.get(key) for key in ("score_ranges", "min_score", "operator") if key in entry.fields}
        return read_items([{"outcome": value, **own}], entry.scope, [entry.path])
    if is_item(value):
        return read_items([value], entry.scope, [here])
    if isinstance(value, list) and (are_items(value) or not entry.scope.is_current):
        return read_items(value, entry.scope, [(*here, index) for index in range(len(value))])
    return None


def _place(entry: Entry, field: str) -> Path:
    """Return where the items stand: in the field of the grader; inline `rubrics` of a case are the list itself."""
    if entry.path[-2:-1] == ("rubrics",):
        return entry.path[:-1]
    return entry.at(field) if field else entry.path


def _listed(entry: Entry, prompt: Prompt, items: list[Criterion]) -> Grader | None:
    if prompt.text:
        entry.warn("items say what is judged; a prompt without a {{ variable }} is not used", "prompt")
    if not items:
        return None
    least = None if "score_ranges" in entry.fields else entry.least()
    rubric = rubric_of(entry.name, items, entry.task, least)
    return _prompted(entry, rubric, prompt, plain=least is None)


def _free(entry: Entry, prompt: Prompt, field: str, value: Any) -> Grader | None:
    """Return a grader of one judgement. The judge's own pass flag can fail it; without one the threshold decides."""
    if isinstance(value, bool | int | float):
        entry.scope.text(value, entry.at(field))
        return None
    text = prompt.text or _said(entry, field, value) or entry.task.criteria
    if not text and prompt.template is None and not prompt.lost:
        return _undecided(entry, f"{entry.kind} without criteria")
    criterion = Criterion(text or "As the prompt says", id=entry.name, answer=Unit(flag=True), min_score=entry.least())
    return _prompted(entry, Rubric(entry.name, criteria=[criterion], threshold=entry.task.threshold), prompt)


def _said(entry: Entry, field: str, value: Any) -> str:
    """Return what is judged: a text, what stands in the file that it names, or free data as JSON."""
    scope, path = entry.scope, entry.at(field)
    if is_reference(value):
        return (read_text_at(scope.fill(value, path), scope.loading, scope.notes, path) or "").strip()
    if isinstance(value, str):
        return scope.fill(value.strip(), path)
    return "" if value is None else _pretty(scope.filled(value, path))


def _prompted(entry: Entry, rubric: Rubric, prompt: Prompt, *, plain: bool = True) -> Grader:
    rubric = evolve(rubric, prompt=prompt.template)
    return Grader(entry.name, rubric, entry.path, plain=plain, variables=prompt.variables)


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)
