"""The words for a result that cards, texts and reports share: what it is measured by, and what a finding lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubric.scoring.outcomes import is_substantiated
from rubric.values.checks import Check
from rubric.values.criteria import Criterion
from rubric.values.findings import Finding, Scored
from rubric.values.judges import Cascade, Jury, Panel, passes_needed
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    from rubric.results.result import Result


def needs_of(result: Result) -> str:
    """Return what the verdict of *result* is measured by: votes, a score, or the judge's own verdict."""
    rubric, judge = result.rubric, result.judge
    if isinstance(judge, Cascade) and result.votes:
        judge = result.votes[-1].judge
    if isinstance(judge, Jury) or (isinstance(judge, Panel) and judge.aggregate == "majority"):
        if judge.consensus is None:
            return "needs more than half of the votes"
        if isinstance(judge, Jury) or len({*(judge.weights or [1])}) == 1:
            votes = len(judge.members)
            return f"needs {passes_needed(judge.consensus, votes)} of {votes} votes"
        return f"needs {judge.consensus:.0%} of the votes by weight"
    if rubric.strict:
        return "needs 1.00"
    if rubric.threshold is None:
        return "by the judge's own verdict"
    return f"{'has to stay below' if rubric.negate else 'needs'} {rubric.threshold:.2f}"


def lack_of(rubric: Rubric, criterion: Criterion, finding: Finding) -> str:
    """Return that *finding* lacks the quote without which it does not count; nothing if it does not."""
    if not isinstance(finding, Scored) or is_substantiated(rubric, criterion, finding):
        return ""
    return "its quote is not in the candidate" if finding.evidence else "no quote from the candidate"


def points_off(criterion: Criterion, contribution: float | None) -> float | None:
    """Return what a penalty takes off, in points; None of other criteria, and while it is not known."""
    is_penalty = criterion.polarity == "penalty" and contribution is not None
    return criterion.weight * (1 - contribution) if is_penalty and contribution is not None else None


def penalty_words(points: float, contribution: float | None) -> str:
    """Return whether a penalty was found, and what it takes off."""
    if not points:
        return "not found"
    return f"-{points:.3g}" if contribution else f"found, -{points:g}"


def reason_of(criterion: Criterion, finding: Finding) -> str:
    """Return the reason of *finding*; of a check, without the words that its criterion has said already."""
    reason = getattr(finding, "reason", "")
    return reason.removeprefix(f"{criterion.text}: ") if isinstance(criterion.answer, Check) else reason
