"""
Suites as files of autorubric, HealthBench and PaperBench, with a sentence for each thing that is lost.

| format | what it holds of a case |
|---|---|
| autorubric | criteria of yes or no, or of choices, with weights; items with outputs, references and prompts |
| healthbench | criteria of yes or no, with points; the conversation and the output |
| paperbench | a tree of rubrics with yes or no at the leaves, and weights; no candidate |

None of them has a pass mark. All negative weights are penalties; a guard, which subtracts nothing, is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from attrs import evolve

from rubric import Case, Choices, Criterion, Rubric, Suite, YesNo
from rubric.contrib.signed_weights import by_points
from rubric.embed import Answer, thaw
from rubric.formats.losses import Held, Losses, averaged

Written = tuple[dict[str, Any], list[str]]
_CRITERION = frozenset({"text", "id", "weight", "answer", "polarity"})
_RUBRIC = frozenset({"name", "criteria"})


def _losses(case: Collection[str], criterion: Collection[str] = (), rubric: Collection[str] = ()) -> Losses:
    rows: dict[type, Held] = {
        Case: Held({"id", "rubric", "place", "unasked", *case}),
        Criterion: Held({*_CRITERION, *criterion}),
        Rubric: Held({*_RUBRIC, *rubric}),
    }
    return Losses(rows, "{}: {} is left out{}")


def _criteria(rubric: Rubric, losses: Losses, kinds: tuple[type[Answer], ...]) -> list[Criterion]:
    """Return the criteria of *rubric* that have an answer of *kinds* and a signed weight; all else is lost."""
    usual = by_points(rubric.judged).get("aggregation", "weighted_average")
    same = usual == averaged(rubric).aggregation or usual == rubric.aggregation
    losses.fields(evolve(rubric, aggregation="weighted_average") if same else rubric, "rubric.")
    kept = []
    for criterion in rubric.judged:
        if not isinstance(criterion.answer, kinds):
            losses.add(f"the criterion {criterion.id!r}", "the format has no answer like it")
        elif criterion.polarity not in ("satisfy", "penalty"):
            losses.add(f"the criterion {criterion.id!r}", f"the format has no polarity {criterion.polarity}")
        else:
            losses.fields(criterion, f"{criterion.id}.")
            kept.append(criterion)
    return kept


def _signed(criterion: Criterion) -> float:
    return -criterion.weight if criterion.polarity == "penalty" else criterion.weight


def _each(suite: Suite, losses: Losses, write: Callable[[Case, Losses], dict[str, Any] | None]) -> list[dict[str, Any]]:
    if suite.judge is not None:
        losses.of("the suite").add("judge", "the format names none")
    rows = []
    for case in suite:
        own = losses.of(f"case {case.id!r}")
        own.fields(case)
        row = write(case, own)
        if row is None:
            own.add("the case", "the format can judge nothing of its rubric")
        else:
            rows.append({key: value for key, value in row.items() if value not in ("", None, [], {})})
    return rows


def write_autorubric(suite: Suite) -> Written:
    """Return *suite* as a dataset of autorubric, each item with its rubric, and what is lost."""
    losses = _losses({"input", "output", "reference", "metadata"}, rubric={"guidelines"})

    def row(case: Case, own: Losses) -> dict[str, Any] | None:
        criteria = _criteria(case.rubric, own, (YesNo, Choices))
        if case.output is None:
            own.add("the case", "an item has a submission")
            return None
        about = {key: value for key, value in thaw(case.metadata).items() if key in ("description", "ground_truth")}
        listed = [_requirement(criterion) for criterion in criteria]
        rubric = {"guidelines": case.rubric.guidelines, "criteria": listed} if case.rubric.guidelines else listed
        found = {"submission": case.output, "prompt": case.input, "reference_submission": case.reference}
        return {**found, **about, "rubric": rubric} if listed else None

    alone = suite.cases[0] if len(suite) == 1 and suite.cases[0].output is None else None
    if alone is None:
        items = _each(suite, losses, row)
        shared = items[0]["rubric"] if items and all(item["rubric"] == items[0]["rubric"] for item in items) else None
        if shared is not None:  # written once, as by hand
            items = [{key: value for key, value in item.items() if key != "rubric"} for item in items]
        found = {"name": suite.name or "suite", "rubric": shared, "items": items}
        return {key: value for key, value in found.items() if value is not None}, losses.sentences
    rubric = row(alone.answered("none"), losses.of(f"case {alone.id!r}")) or {"rubric": []}
    whole = {"name": alone.id, "rubric": rubric["rubric"], "prompt": alone.input}
    return {key: value for key, value in whole.items() if value}, losses.sentences


def _requirement(criterion: Criterion) -> dict[str, Any]:
    row: dict[str, Any] = {"name": criterion.id, "requirement": criterion.text, "weight": _signed(criterion)}
    if isinstance(criterion.answer, Choices):
        row["options"] = [{"label": choice.label, "value": choice.score} for choice in criterion.answer.choices]
    return row


def write_healthbench(suite: Suite) -> Written:
    """Return *suite* as examples of HealthBench, and what is lost."""
    losses = _losses({"input", "messages", "output", "tags", "metadata"}, {"tags"}, {"guidelines"})

    def row(case: Case, own: Losses) -> dict[str, Any] | None:
        rubrics = [
            {"criterion": c.text, "points": _signed(c), "tags": [*c.tags]}
            for c in _criteria(case.rubric, own, (YesNo,))
        ]
        prompt = [{"role": message.role, "content": message.content} for message in case.messages]
        prompt += [{"role": "user", "content": case.input}] if case.input else []
        about = thaw(case.metadata)
        found = {"prompt_id": case.id, "prompt": prompt, "completion": case.output, "example_tags": [*case.tags]}
        return {**about, **found, "rubrics": rubrics} if rubrics else None

    return {"examples": _each(suite, losses, row)}, losses.sentences


def write_paperbench(suite: Suite) -> Written:
    """Return *suite* as trees of PaperBench, a file of one tree where there is one case, and what is lost."""
    losses = _losses((), {"tags"})

    def row(case: Case, own: Losses) -> dict[str, Any] | None:
        tree = _node(Criterion(case.rubric.name or case.id, id=case.id, answer=case.rubric), own, {})
        return None if tree is None else {"paper": case.id, "tree": tree}

    rows = _each(suite, losses, row)
    return rows[0] if len(rows) == 1 else {"examples": rows}, losses.sentences


_CATEGORIES = ("task_category", "finegrained_task_category")


def _node(criterion: Criterion, losses: Losses, above: dict[str, Any]) -> dict[str, Any] | None:
    found = {**above, "id": criterion.id, "requirements": criterion.text, "weight": criterion.weight}
    found |= dict(zip(_CATEGORIES, criterion.tags, strict=False))
    if not isinstance(criterion.answer, Rubric):
        return found
    rubric = criterion.answer
    if rubric.name != criterion.text:
        losses.add(f"the name of the rubric of {criterion.id!r}", "a task has its requirements for a name")
    if any(c.polarity != "satisfy" for c in rubric.judged):
        losses.add(f"a penalty of {criterion.id!r}", "the format subtracts nothing")
    positive = [c for c in rubric.judged if c.polarity == "satisfy"]
    plain = evolve(averaged(rubric), criteria=positive, text="", tree=None)
    kept = _criteria(plain, losses, (YesNo, Rubric)) if positive and any(c.weight for c in positive) else []
    nodes = [node for inner in kept if (node := _node(inner, losses, {})) is not None]
    return {**found, "sub_tasks": nodes} if nodes else None
