"""When a cascade goes on to its second judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubric.grading.averaging import TOLERANCE
from rubric.judges import Cascade

if TYPE_CHECKING:
    from rubric.grades import Grade, Ungraded

__all__ = ["goes_on"]


def goes_on(rule: Cascade, first: Grade | Ungraded) -> bool:
    """
    Say whether *rule* asks its second judge, after what the *first* came to.

    A first that came to no grade always leaves a doubt; a function of the user's own decides by itself.
    """
    when = rule.when
    if not isinstance(when, str | tuple):
        return bool(when(first))
    score = first.outcome.score
    if score is None:
        return True
    if isinstance(when, tuple):
        low, high = when
        return low - TOLERANCE <= score <= high + TOLERANCE
    match when:
        case "fails":
            return not first.passed
        case "borderline":
            return first.outcome.verdict == "borderline"
        case "disagrees":
            return len({vote.outcome.verdict for vote in first.votes}) > 1
        case _:  # ungraded, and the first came to a grade
            return False
