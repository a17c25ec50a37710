"""What graders come to: each a criterion, and together the rubric of a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from rubric.answers import Answer
from rubric.checks import Check
from rubric.criteria import Criterion
from rubric.formats.agentv.entries import Task
from rubric.formats.documents import Path
from rubric.judges import Judge
from rubric.rubrics import Rubric

__all__ = ["Grader", "as_criterion", "binds", "grouped", "renamed"]


@frozen
class Grader:
    """
    One grader of a case.

    Args:
        name: Of its own, or its type.
        answer: A rubric for a judge, a nested one for a set, or a check.
        weight: How much it counts among the case's graders.
        gate: The score that it must reach, or the case fails; None: none.
        common: Whether its gate is the case's own threshold.
        judge: Who judges it; None: whoever judges the case.
        plain: Whether its rubric can be the case's.
        decides: Whether its own verdict must be a pass where it is the case's only grader, as that of a set.
        path: Where it stands.
        variables: Named texts that its prompt shows.
    """

    name: str
    answer: Answer
    path: Path
    weight: float = 1
    gate: float | None = None
    common: bool = False
    judge: Judge | None = None
    plain: bool = False
    decides: bool = False
    variables: Mapping[str, str] = {}


def renamed(graders: Sequence[Grader]) -> Iterator[Grader]:
    """Yield *graders* with names that differ: the second `llm-rubric` is `llm-rubric-2`."""
    taken = {grader.name for grader in graders}
    seen: set[str] = set()
    for grader in graders:
        name, number = grader.name, 1
        while name in seen or (number > 1 and name in taken):
            number += 1
            name = f"{grader.name}-{number}"
        seen.add(name)
        yield evolve(grader, name=name)


def as_criterion(grader: Grader, weight: float | None = None) -> Criterion:
    """Return *grader* as a criterion of the case, or of the set that it belongs to."""
    check = isinstance(grader.answer, Check)
    text = str(grader.answer) if check else grader.name
    return Criterion(
        text,
        id=grader.name,
        answer=grader.answer,
        weight=grader.weight if weight is None else weight,
        required=grader.gate is not None and check,
        min_score=None if check and grader.common else grader.gate,
    )


def binds(criteria: Sequence[Criterion]) -> bool:
    """Say whether a gate among *criteria* must fail the case too: AgentV documents that it fails the entire eval."""
    return any(
        c.answer.binding if isinstance(c.answer, Rubric) else c.required or c.min_score is not None for c in criteria
    )


def grouped(graders: Sequence[Grader], task: Task) -> Rubric:
    """
    Return the rubric of a case: that of its only grader, or one with a criterion for each.

    Raises:
        DefinitionError: All weights are 0.
    """
    borderline = task.borderline if task.borderline and task.borderline <= task.threshold else None
    if len(graders) == 1 and graders[0].plain and isinstance(graders[0].answer, Rubric):
        return evolve(graders[0].answer, threshold=task.threshold, borderline=borderline, binding=False)
    criteria = [as_criterion(grader) for grader in renamed(graders)]
    if len(graders) == 1 and graders[0].decides:
        criteria = [evolve(criteria[0], required=True)]
    return Rubric(criteria=criteria, threshold=task.threshold, borderline=borderline)
