"""Criteria that may have no judge: programs, and graders of other systems that this library lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from attrs import evolve

from rubric import Criterion, Holds, Rubric
from rubric.embed import NOTHING
from rubric.programs.processes import is_allowed
from rubric.values import Unsupported

Otherwise = Literal["ungraded", "skip", "fail"]
"""What becomes of a grader that this library lacks."""


def _criteria_of(rubric: Rubric) -> Iterator[Criterion]:
    """Yield every criterion that is answered by no rubric; those of nested rubrics too."""
    for criterion in rubric.criteria:
        if isinstance(criterion.answer, Rubric):
            yield from _criteria_of(criterion.answer)
        else:
            yield criterion


def unsupported_graders(rubric: Rubric) -> Iterator[Unsupported]:
    """Yield the graders in *rubric* that this library does not have; those of nested rubrics too."""
    return filter(None, map(_lack_of, _criteria_of(rubric)))


def _lack_of(criterion: Criterion) -> Unsupported | None:
    """Return the grader of *criterion* if this library does not have it, or not without an extra that is missing."""
    answer = criterion.answer
    if isinstance(answer, Unsupported):
        return answer
    cure = str(getattr(answer.function, "lacks", "")) if isinstance(answer, Holds) else ""
    return Unsupported(criterion.id, cure=cure) if cure else None


def treat_unsupported(rubric: Rubric, otherwise: Otherwise) -> Rubric:
    """
    Return *rubric* with its unsupported graders skipped, failed or ungraded.

    A rubric of which nothing would be left keeps its graders: if it skipped all of them, it would pass vacuously. The
    same holds within it: a nested rubric of which nothing is left, or one that turns its outcome over, is itself
    skipped or failed.
    """
    criteria = [_treat(criterion, otherwise) for criterion in rubric.criteria]
    if otherwise == "skip" and all(map(_lack_of, criteria)):
        return rubric
    return evolve(rubric, criteria=criteria) if criteria != [*rubric.criteria] else rubric


def _treat(criterion: Criterion, otherwise: Otherwise) -> Criterion:
    answer = criterion.answer
    if (lack := _lack_of(criterion)) is not None and lack != NOTHING:
        return evolve(criterion, answer=evolve(lack, otherwise=otherwise))
    if not isinstance(answer, Rubric) or not (lacking := [*unsupported_graders(answer)]) or NOTHING in lacking:
        return criterion
    if all(map(_lack_of, _criteria_of(answer))) or answer.negate:
        types = ", ".join(dict.fromkeys(one.type for one in lacking))
        return evolve(criterion, answer=Unsupported(types, otherwise=otherwise), min_score=None)
    return evolve(criterion, answer=treat_unsupported(answer, otherwise))


def skipped_types(rubric: Rubric) -> list[str]:
    """Return the types of the graders in *rubric* that the caller has skipped, each once."""
    return [*dict.fromkeys(grader.type for grader in unsupported_graders(rubric) if grader.otherwise == "skip")]


def can_be_judged(rubric: Rubric) -> bool:
    """True if anything in *rubric* can be judged; else a target would be paid for a candidate in vain."""
    for criterion in rubric.judged:
        answer = criterion.answer
        if not is_allowed() and criterion.programs:
            continue
        if isinstance(answer, Rubric):
            if can_be_judged(answer):
                return True
        elif (lack := _lack_of(criterion)) is None or lack.otherwise == "fail":
            return True
    return False
