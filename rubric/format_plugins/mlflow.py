"""Judges of MLflow: `make_judge`, `Guidelines`, serialised scorers; docs/how-to/from_frameworks.md maps their keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rubric import Criterion, Judge, Rubric, Suite, Unit, YesNo
from rubric.embed import SURE, Answer, Cursor, Format, Loading, Notes
from rubric.format_plugins.judges import judged_case, metrics, read_judge
from rubric.formats.recognition import STRONG, finds, in_any
from rubric.formats.rubric_items import free_name
from rubric.values import Unsupported

DATA = ("instructions_judge_pydantic_data", "builtin_scorer_pydantic_data")
"""The keys under which MLflow keeps what a serialised scorer was made of."""

_KEYS = ("name", "instructions", "guidelines", "model", "feedback_value_type", "builtin_scorer_class", *DATA)
_WORDS = {
    "inputs": "the input", "outputs": "the answer", "expectations": "the reference",
    "trace": "the run", "conversation": "the conversation",
}  # fmt: skip
_SLOT = re.compile(r"\{\{\s*(inputs|outputs|expectations|trace|conversation)\s*\}\}")
_BOOLEANS, _NUMBERS = ("bool", "boolean", "str", "string"), ("float", "int", "number", "integer")


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the document of *notes*: one case, whose candidate a target makes."""
    root = Cursor.of(notes, loading)
    listed = root.find("scorers", "judges") or root
    if listed is not root:
        root.reads(("scorers", "judges"))
    scorers = listed.listing() if isinstance(listed.value, list) else [listed]
    found: dict[str, Criterion] = {}
    judges: dict[str, Judge] = {}
    for scorer in scorers:
        _read(scorer, found, judges)
    rubric = root.built(Rubric, criteria=[*found.values()]) if found else None
    cases = [] if rubric is None else [judged_case("judge", root, rubric, judges, len(found))]
    return Suite(cases=cases, format="mlflow")


def _read(at: Cursor, found: dict[str, Criterion], judges: dict[str, Judge]) -> None:
    """Add the criteria of one scorer to *found*, and their judge to *judges*."""
    if not at.mapping("a judge (a mapping with a name, and instructions or guidelines)"):
        return
    inner = at.find(*DATA)
    for part in (at, inner):
        if part is not None:
            part.reads(_KEYS)
    kind = at["builtin_scorer_class"].value
    if kind not in (None, "Guidelines", "ExpectationsGuidelines"):
        kind = str(kind)
        at["builtin_scorer_class"].warn(f"{kind}: there is no such grader here, so the case is ungraded")
        found[free_name(kind, found)] = Criterion(kind, id=free_name(kind, found), answer=Unsupported(f"mlflow {kind}"))
        return
    data = at if inner is None else inner
    name = (at.find("name") or data["name"]).text("the name of a judge") or "judge"
    judge = read_judge(data.find("model") or at.find("model"))
    for criterion in _guidelines(data, name) if data.has("guidelines") else _instructions(data, name):
        id_ = free_name(criterion.id, found)
        found[id_] = criterion if id_ == criterion.id else Criterion(criterion.text, id=id_, answer=criterion.answer)
        if judge is not None:
            judges[id_] = judge


def _guidelines(at: Cursor, name: str) -> list[Criterion]:
    said = at["guidelines"]
    texts = [said] if isinstance(said.value, str) else said.listing("a guideline, or a list of them")
    if said.value == []:
        said.error("there are no guidelines to judge by; give it some")
    made = [(n, text.words("a guideline")) for n, text in enumerate(texts, 1)]
    ids = {n: name if len(made) == 1 else f"{name}-{n}" for n, _ in made}
    return [Criterion(text, id=ids[n], required=True) for n, text in made if text]


def _instructions(at: Cursor, name: str) -> list[Criterion]:
    text = at["instructions"].words("the instructions of a judge") if at.needs("instructions") else None
    if text is None:
        return []
    return [Criterion(_SLOT.sub(lambda slot: _WORDS[slot[1]], text).strip(), id=name, answer=_answer(at))]


def _answer(at: Cursor) -> Answer:
    kind: Any = at["feedback_value_type"].value
    if isinstance(kind, dict):
        at["feedback_value_type"].reads(("type", "enum"), quiet=("title", "description", "$defs", "items"))
    labels = kind.get("enum") if isinstance(kind, dict) else None
    named = kind.get("type") if isinstance(kind, dict) else kind
    if labels and {str(label).lower() for label in labels} != {"yes", "no"}:
        at["feedback_value_type"].warn("labels have no scores, so the case is ungraded; write `choices` in our format")
        return Unsupported("mlflow judge with labels")
    if named in _NUMBERS:
        at["feedback_value_type"].warn("the range of the number is not known; 0 to 1 is taken")
        return Unit()
    if named not in (None, *_BOOLEANS) and not labels:
        at["feedback_value_type"].error(f"expected one of {', '.join((*_BOOLEANS, *_NUMBERS))}, or an enum of labels")
    return YesNo()


# -- recognition --------------------------------------------------------------------------------------------------

_MLFLOW_DATA = ("instructions_judge_pydantic_data", "builtin_scorer_class")


def _is_judge(metric: Mapping[Any, Any]) -> bool:
    """True if *metric* is a judge of MLflow's: its instructions show variables, or it has guidelines and no more."""
    if {"name", "guidelines"} <= metric.keys() <= {"name", "guidelines", "model"}:
        return True
    return "name" in metric and _SLOT.search(str(metric.get("instructions"))) is not None


_EVIDENCE = (
    (SURE, in_any(metrics, "it holds a scorer of MLflow, with the key", _MLFLOW_DATA)),
    (STRONG, finds("it has MLflow's guidelines or variables", lambda seen: filter(_is_judge, metrics(seen)))),
)

FORMAT = Format("mlflow", read, evidence=_EVIDENCE)
