"""What a report says of one case: plain, redacted data that every reporter renders."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen

from rubric.containers import NoTruth
from rubric.exchanges import Usage
from rubric.findings import Evidence, Step
from rubric.grades import Grade, Ungraded
from rubric.mappings import FrozenMap
from rubric.suites.cases import Place

__all__ = ["Entry", "Row", "Status", "below"]

Status = Literal["passed", "failed", "ungraded", "deferred"]


@frozen
class Entry(NoTruth):
    """
    What became of one criterion.

    Args:
        id: The criterion's.
        text: What was to be judged.
        status: `scored`, `not applicable`, `abstained` or `unjudged`.
        score: The judge's answer in 0..1; None unless scored.
        contribution: What it adds to the mean, in 0..1 with 1 as good; None while it is not known.
        weight: How much it counts.
        answer: How it is answered, in words: `yes or no`, `0..10, required`.
        value: The answer itself, as text: `yes`, `7`, `warm`; of a guard and a penalty, whether it was found.
        level: What a level means, see `Scored`.
        gated: Whether it failed the grade.
        reason: What the judge said for it, or why there is no verdict.
        evidence: What was quoted.
        path: The walk, for a tree.
        parts: The entries of a nested rubric.
        votes: The entries of the members of a jury or a panel.
        judge: Whose vote it is; empty where it is not a vote.
    """

    _truth = ".contribution"

    id: str
    text: str
    status: Literal["scored", "not applicable", "abstained", "unjudged"]
    score: float | None = None
    contribution: float | None = None
    weight: float = 1
    answer: str = ""
    value: str = ""
    level: str = ""
    gated: bool = False
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    path: tuple[Step, ...] = ()
    parts: tuple[Entry, ...] = ()
    votes: tuple[Entry, ...] = ()
    judge: str = ""


@frozen
class Vote(NoTruth):
    """What one member of a jury or a panel came to."""

    judge: str
    score: float | None
    passed: bool | None
    verdict: str = ""


@frozen
class Row(NoTruth):
    """
    What became of one case.

    Args:
        id: The case's, with its cell in a matrix.
        status: `passed`; `failed`; `ungraded` (something could not be judged); `deferred` (there was no candidate to
            judge, or nobody to judge it).
        score: In 0..1; None without a grade.
        verdict: `pass`, `borderline` or `fail`; empty without a grade.
        shown: The score on the rubric's scale, for people.
        threshold: What the score had to meet; None where the judge's own pass flag decided.
        bounds: The lowest and the highest score that the findings allow.
        reason: Why it failed, is ungraded or deferred, in a sentence or two; empty for a plain pass.
        rubric: The rubric's name.
        judge: Who judged.
        input: What the candidate answers.
        output: The candidate's text; empty if there was none.
        run: The candidate's tool calls, a line each.
        entries: A row for each criterion.
        votes: What the members of a jury or a panel came to.
        gates: The ids of the criteria that failed the grade whatever the mean is.
        path: The walk, where the rubric is one tree.
        warnings: What a person should know.
        usage: What it cost.
        cell: The coordinates in a matrix.
        tags: The case's labels.
        place: Where the case was written.
        vacuous: Whether no criterion applied.
        result: The whole result; it is not written to files, and None in a report that was read from one.
    """

    _truth = '.status == "passed"'

    id: str
    status: Status
    score: float | None = None
    verdict: str = ""
    shown: str = ""
    threshold: float | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    reason: str = ""
    rubric: str = ""
    judge: str = ""
    input: str = ""
    output: str = ""
    run: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    votes: tuple[Vote, ...] = ()
    gates: tuple[str, ...] = ()
    path: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()
    cell: FrozenMap = FrozenMap()
    tags: tuple[str, ...] = ()
    place: Place | None = None
    vacuous: bool = False
    result: Grade | Ungraded | None = field(default=None, eq=False, repr=False)


def below(score: float, mark: float, digits: int = 2) -> str:
    """Return a *score* below *mark* with so many decimals, at least *digits*, that it is also seen to be below."""
    texts = (f"{score:.{more}f}" for more in range(digits, 17))
    return next((text for text in texts if float(text) < mark), repr(score))
