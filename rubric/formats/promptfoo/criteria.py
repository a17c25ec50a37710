"""What assertions come to, and the criteria that several of them are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from rubric.answers import Unit
from rubric.checks import Check, Unsupported
from rubric.criteria import Criterion, slug
from rubric.formats.promptfoo.parts import Part
from rubric.judges import Judge
from rubric.rubrics import Degenerate, Rubric
from rubric.showing import shorten

__all__ = ["Made", "criteria_of", "degenerate_of", "unsupported"]


@frozen
class Made:
    """What one assertion came to: a check or a rubric, in its own words."""

    text: str
    answer: Check | Rubric
    weight: float = 1
    tags: tuple[str, ...] = ()
    kind: str = ""
    judges: frozenset[Judge | None] = frozenset()
    place: Part | None = None


def unsupported(kind: str, detail: str, place: Part) -> Made:
    """Return what stands for a *kind* of thing that this library does not have: whatever it belongs to is ungraded."""
    words = f"{kind}: {shorten(detail, 80)}" if detail.strip() else kind
    place.warn(f"{kind}: there is no such grader here, so whatever it belongs to is ungraded")
    return Made(words, Unsupported(kind), kind=kind, place=place)


def degenerate_of(made: Sequence[Made]) -> Degenerate:
    """Leave an empty output to the checks where no judge is asked: only a judge can be talked round by nothing."""
    return "fail" if any(one.judges for one in made) else "judge"


def criteria_of(made: Sequence[Made], *, flat: bool) -> list[Criterion]:
    """Return a criterion for each; *flat*: there is no threshold, so that a flag that fails may fail the whole."""
    taken: set[str] = set()
    return [_criterion(one, _unused(one, taken), flat=flat) for one in made]


def _unused(made: Made, taken: set[str]) -> str:
    """Return an id of the metric or the type that nothing else has yet."""
    stem = slug(made.tags[0] if made.tags else made.kind)
    number, id_ = 1, stem
    while id_ in taken:
        number += 1
        id_ = f"{stem}-{number}"
    taken.add(id_)
    return id_


def _criterion(made: Made, id_: str, *, flat: bool) -> Criterion:
    options: dict[str, Any] = {"id": id_, "weight": made.weight, "tags": made.tags}
    if flat and made.weight and made.answer == Rubric(text=made.text, threshold=None):
        return Criterion(made.text, answer=Unit(flag=True), **options)
    return Criterion(made.text, answer=made.answer, **options)
