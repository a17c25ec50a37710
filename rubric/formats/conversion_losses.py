"""What a format cannot hold: a sentence for each thing, from a table of the fields that it can."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from attrs import evolve, field, frozen

from rubric import DefinitionError, Judge, Rubric
from rubric.embed import fields
from rubric.formats.model_names import SETTINGS, provider_id
from rubric.values import AnyJudge, Unsupported


@frozen
class Losses:
    """
    Collects a sentence for each thing that is lost.

    Args:
        held: The fields that the format has a place for, by class.
        whose: The case, the criterion or the judge that loses it.
        sentences: All that is lost of a suite.
    """

    held: Mapping[type, Collection[str]]
    whose: str
    sentences: list[str] = field(factory=list)

    def of(self, whose: str) -> Losses:
        """Return losses of *whose*, collected with these."""
        return evolve(self, whose=whose)

    def add(self, what: str, why: str = "") -> None:
        """Add that *what* is lost, and *why*."""
        self.sentences.append(f"{self.whose}: {what} is dropped{f'; {why}' if why else ''}.")

    def fields(self, value: object, after: str = "") -> None:
        """Add the fields of *value*, named before a text, that are not as by default and have no place."""
        for found in fields.shown_fields(value):
            if found.name not in self.held[type(value)]:
                self.add(f"{found.name}{after}")


def as_averaged(rubric: Rubric) -> Rubric:
    """Return *rubric* for files that know no points: without penalties, points are the weighted average."""
    return evolve(rubric, aggregation="weighted_average") if rubric.aggregation == "points" else rubric


def without(lost: Unsupported) -> str:
    """Return why a case is left out: graded without the unsupported grader *lost*, it could pass."""
    cure = "to write the rest of it, convert suite.unsupported_as('skip')"
    return f"{lost.type!r} cannot be written, and without it a case that is ungraded would have a verdict; {cure}"


def provider_of(judge: AnyJudge | None, losses: Losses) -> str | dict[str, Any] | None:
    """Return *judge* as promptfoo names one; None where it cannot, told to *losses*."""
    if judge is None:
        return None
    if not isinstance(judge, Judge) or not isinstance(judge.model, str):
        losses.add(f"the judge {judge!r}", "a file names one model")
        return None
    try:
        id_ = provider_id(judge.model)
    except DefinitionError as problem:
        losses.add(f"the judge {judge.model!r}", str(problem))
        return None
    losses.fields(judge, f" of the judge {judge.model!r}")
    config = {found.name: getattr(judge, found.name) for found in fields.shown_fields(judge) if found.name in SETTINGS}
    return {"id": id_, "config": config} if config else id_
