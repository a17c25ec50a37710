"""
Scores by the rule of other systems, from a grade of this one: pure, and exact until the last rounding.

autorubric, The LLM Data Company's `rubric` and HealthBench give every criterion a signed weight. What is met adds its
weight, so what should not be there and is subtracts, and only positive weights stand below the line:

    S = sum of value x weight      P = sum of the positive weights      N = sum of the negative ones, without sign
    score = S / P  if P > 0;  1 + S / N  if only N > 0;  0 if neither;  then cut to 0..1

A rubric by points with penalties has this score natively, and so has one of penalties alone. `llm_data_score` gives it
for every rubric, those with guards too, and uncut.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rubric.answers import Choices
from rubric.errors import DefinitionError
from rubric.findings import Abstained, NotApplicable, Scored
from rubric.grading.scoring import policy

if TYPE_CHECKING:
    from rubric.criteria import Criterion
    from rubric.findings import Finding
    from rubric.grades import Grade
    from rubric.rubrics import Rubric

__all__ = ["llm_data_score"]


def llm_data_score(grade: Grade, *, cut: bool = True) -> float:
    """
    Return the score of *grade* as autorubric, LLM Data Co and HealthBench compute it.

    Abstentions follow the rubric's policy, as autorubric's do: `exclude` is its SKIP, `zero` its ZERO, `fail` its FAIL,
    and a number its PARTIAL.

    Args:
        grade: Of a rubric whose criteria are judged one by one; guards and penalties count with negative weight.
        cut: Cut to 0..1. HealthBench averages the uncut scores of its examples, and cuts the average.

    Raises:
        DefinitionError: Several judges gave the grade; their votes have scores of their own.
    """
    if grade.votes:
        raise DefinitionError("grade", "several judges gave it; score each of its `votes`")
    pairs = zip(grade.rubric.judged, grade.findings, strict=True)
    parts = [part for c, f in pairs if (part := _part(grade.rubric, c, f)) is not None]
    total = sum((value * weight for value, weight in parts), Fraction())
    above = sum((weight for _, weight in parts if weight > 0), Fraction())
    below = -sum((weight for _, weight in parts if weight < 0), Fraction())
    score = total / above if above else 1 + total / below if below else Fraction()
    return float(min(max(score, Fraction()), Fraction(1)) if cut else score)


def _part(rubric: Rubric, criterion: Criterion, finding: Finding) -> tuple[Fraction, Fraction] | None:
    """Return the value and the signed weight of *criterion*; None where it does not count."""
    negative = criterion.is_unwanted
    weight = Fraction(criterion.weight) * (-1 if negative else 1)
    match finding:
        case Scored():
            return Fraction(finding.score), weight
        case Abstained():
            credit = policy(rubric, criterion)
            return None if credit == "exclude" else (_of_abstention(criterion, credit), weight)
        case NotApplicable():
            return None
    raise AssertionError(finding)  # a grade has no unjudged criterion


def _of_abstention(criterion: Criterion, credit: str | float) -> Fraction:
    """Return the value that stands in for "cannot tell"; a guard gets no partial credit."""
    negative = criterion.is_unwanted
    match credit:
        case "fail" if isinstance(criterion.answer, Choices):
            scores = [choice.score for choice in criterion.answer.choices]
            return Fraction(max(scores) if negative else min(scores))
        case "fail":
            return Fraction(negative)
        case str():
            return Fraction()
        case number:
            return Fraction() if negative else Fraction(number)
