"""Rubrics in the spelling of mcptest, and what they lose by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field

from rubric.answers import Choices, Levels, Unit, YesNo
from rubric.formats.mcptest.criteria import FIELDS
from rubric.formats.mcptest.rubrics import OPTIONS, SCALES
from rubric.rubrics import Rubric, averaged
from rubric.scales import Likert, Scale
from rubric.showing import shown_fields
from rubric.trees import Leaf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rubric.criteria import Criterion, When
    from rubric.trees import DecisionTree

__all__ = ["Data", "Losses", "named", "plain_rubric", "rubric_keys"]

Data = dict[str, Any]

_HELD = ("name", "criteria", "text", "tree", *OPTIONS)
_THRESHOLD = 0.7
"""What mcptest takes where no threshold is given."""


@define
class Losses:
    """What a file cannot hold, in `sentences`."""

    sentences: list[str] = field(factory=list)

    def add(self, whose: str, what: str, why: str = "mcptest has no place for it") -> None:
        """Add that *what*, of *whose*, is left out, and *why*."""
        self.sentences.append(f"{whose}: {what} is left out; {why}")

    def fields(self, whose: str, value: object, held: Iterable[str]) -> None:
        """Add the fields of *value* that are not as by default, but for those that are *held*."""
        kept = {*held}
        for found in shown_fields(value):
            if found.name not in kept:
                self.add(whose, found.name)


def plain_rubric(losses: Losses, whose: str, rubric: Rubric) -> Rubric:
    """Return *rubric* without what no mcptest rubric has."""
    rubric = averaged(rubric)
    losses.fields(f"{whose}: rubric", rubric, _HELD)
    if rubric.threshold is None:
        losses.add(f"{whose}: rubric", "threshold: null", f"mcptest's rubrics pass from a score, here {_THRESHOLD}")
    return Rubric(
        rubric.name,
        criteria=rubric.criteria,
        text=rubric.text,
        tree=rubric.tree,
        **{name: getattr(rubric, name) for name in OPTIONS if getattr(rubric, name) is not None},
    )


def rubric_keys(losses: Losses, whose: str, rubric: Rubric) -> Data | None:
    """Return the keys of an eval that say *rubric*; None if mcptest could judge nothing of it."""
    options = _options(rubric)
    if rubric.text and options.keys() <= {"threshold"}:
        return {"rubric": rubric.text, **options}
    if rubric.tree is not None:
        return {"rubric": {**options, "tree": _tree(rubric.tree)}}
    if rubric.text:
        losses.sentences.append(f"{whose}: the text of its rubric is written as one criterion, to keep the rest of it")
    criteria = [data for c in rubric.judged if (data := _criterion(losses, whose, rubric, c)) is not None]
    return {"rubric": {**options, "criteria": criteria}} if any(c.get("weight", 1) for c in criteria) else None


def _options(rubric: Rubric) -> Data:
    names = {f.name for f in shown_fields(rubric)}
    values = {key: getattr(rubric, name) for name, key in OPTIONS.items() if name in names}
    return values | ({"scale": _scale(rubric.scale)} if "scale" in values else {})


def _scale(scale: Scale) -> Any:
    if isinstance(scale, Likert):
        return {"likert": {"min": scale.low, "max": scale.high}}
    return next(name for name, kind in SCALES.items() if isinstance(scale, kind))


def _tree(node: DecisionTree | Leaf) -> Data:
    if isinstance(node, Leaf):
        return {"score": node.score, **({"reason": node.reason} if node.reason else {})}
    return {"ask": node.question, "yes": _tree(node.yes), "no": _tree(node.no)}


def _criterion(losses: Losses, whose: str, rubric: Rubric, criterion: Criterion) -> Data | None:
    here = f"{whose}: criterion {criterion.id!r}"
    if not isinstance(criterion.answer, YesNo | Unit | Levels | Choices):
        losses.add(here, "the criterion", "mcptest has no checks, trees or rubrics among its criteria")
        return None
    if criterion.polarity == "penalty":
        losses.add(here, "the criterion", "mcptest subtracts nothing")
        return None
    _tell(losses, here, rubric, criterion)
    guard = criterion.polarity == "guard"
    values = {
        "name": criterion.id,
        "description": criterion.text,
        "weight": criterion.weight if criterion.weight != 1 else None,
        "required": criterion.required or (criterion.min_score is not None and not guard) or None,
        "guard": guard or None,
        "threshold": criterion.min_score,
        "when": _when(losses, here, criterion.when),
        "examples": [{"response": a.response, "score": a.score} for a in criterion.anchors] or None,
    }
    return {key: value for key, value in values.items() if value is not None}


def _tell(losses: Losses, here: str, rubric: Rubric, criterion: Criterion) -> None:
    """Add what is lost of *criterion*."""
    if criterion.answer != Unit():
        losses.add(here, "its kind of answer", "mcptest's judge says a number from 0 to 1")
    held = (*FIELDS, "answer") if criterion.evidence not in (None, rubric.evidence) else (*FIELDS, "answer", "evidence")
    losses.fields(here, criterion, held)
    if criterion.polarity not in ("satisfy", "guard"):
        losses.add(here, f"the polarity {criterion.polarity}", "mcptest knows guards and no others")
    if any(anchor.reason for anchor in criterion.anchors):
        losses.add(here, "the reason of an example")


def _when(losses: Losses, here: str, when: When | None) -> Data | None:
    if when is None:
        return None
    found = {key: getattr(when, key) for key in ("contains", "regex") if getattr(when, key) is not None}
    if not found:
        losses.add(here, "when", "mcptest's conditions are contains and regex")
    return found or None


def named(rubric: Rubric, first: Rubric) -> Data | None:
    """Return the reference to *first* that says *rubric*: only threshold and strict may differ."""
    overrides = {key: getattr(rubric, key) for key in ("threshold", "strict")}
    changed = {key: value for key, value in overrides.items() if value != getattr(first, key)}
    return {"ref": rubric.name, **changed} if evolve(first, **changed) == rubric else None
