"""What one call asks about: criteria that go together, or the question at a node of a tree."""

from __future__ import annotations

from collections.abc import Sequence

from rubric.answers import Unit
from rubric.criteria import Criterion
from rubric.judges import Judge
from rubric.rubrics import Rubric
from rubric.trees import DecisionTree

__all__ = ["as_question", "grouped"]


def grouped(criteria: Sequence[Criterion], judge: Judge) -> list[list[Criterion]]:
    """
    Return what is asked together: trees and nested rubrics alone, others as many a call as the judge takes.

    Criteria that ask for the judge's own pass flag are kept apart: a flag beside a yes or no could contradict it.
    """
    size = len(criteria) if judge.per_call == "all" else judge.per_call
    groups: list[list[Criterion]] = []
    filling: dict[bool, list[Criterion]] = {}
    for criterion in criteria:
        flagged = criterion.answer == Unit(flag=True)
        if isinstance(criterion.answer, DecisionTree | Rubric):
            groups.append([criterion])
        elif len(filling.get(flagged, ())) in (0, size):
            groups.append([criterion])
            filling[flagged] = groups[-1]
        else:
            filling[flagged].append(criterion)
    return groups


def as_question(criterion: Criterion, node: DecisionTree) -> Criterion:
    """Return the question at *node* as a criterion that the judge scores: how surely the answer is yes."""
    return Criterion(node.question, id=criterion.id, answer=Unit(), evidence=False, abstain="forbid")
