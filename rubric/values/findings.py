"""
Findings on one criterion: scored, not applicable, abstained or unjudged. The four are never merged.

Their texts are masked when they are made, so no door of a result shows a key that a judge repeats.
"""

from __future__ import annotations

from attrs import field, frozen

from rubric.internals.containers import NoTruth
from rubric.internals.secrets import clean_part
from rubric.values.requests import Failure


@frozen
class Evidence(NoTruth):
    """
    A span that a judge quoted.

    Args:
        text: The candidate's own words where the quote was found, else the judge's; what looks like a key is masked.
        start: Where it starts in *where*, in characters; None where it was not found.
        end: Where it ends.
        where: Which part of the candidate holds it: `output`, `step 3` of the run (`step 3.2` in that of a sub-agent),
            `run` (the file changes), `turn 2`, `tool calls`, or the name of a file.
    """

    _truth = ".verified"

    text: str = field(converter=clean_part)
    start: int | None = None
    end: int | None = None
    where: str = "output"

    @property
    def verified(self) -> bool:
        """Whether the span is in the candidate."""
        return self.start is not None


@frozen
class Step(NoTruth):
    """One question of a walk down a tree: the judge's score, and yes from 0.5."""

    _truth = ".yes"

    question: str
    yes: bool
    score: float
    reason: str = field(default="", converter=clean_part)


@frozen
class Scored(NoTruth):
    """
    A criterion with a score.

    Args:
        id: The criterion's.
        score: The judge's answer in 0..1, before polarity and evidence: for a guard and a penalty, 1 is "present".
        value: The answer itself: True, 0.8, 7, `"warm"`; None where code or another rubric decided.
        reason: The reason that the judge gave.
        evidence: Its quotes, found or not.
        flag: The judge's own pass flag, where it was asked for.
        level: The meaning of a level: the text of its anchor or band; between two, `between 5 (...) and 10 (...)`.
        path: The walk, for a tree.
        parts: The findings of a nested rubric; of several turns or segments, one each, whose id is as `turn 2`.
        votes: The findings that this one pools, in the order of the judges.
        weighted: Whether *score* is the expectation over the likeliest tokens in the verdict's place; *value* is the
            one that was sampled.
    """

    _truth = ".score, or the grade for .contributions[id]"

    id: str
    score: float
    value: bool | float | str | None = None
    reason: str = field(default="", converter=clean_part)
    evidence: tuple[Evidence, ...] = ()
    flag: bool | None = None
    level: str = ""
    path: tuple[Step, ...] = ()
    parts: tuple[Finding, ...] = ()
    votes: tuple[Finding, ...] = field(default=(), repr=False)
    weighted: bool = False


class _Unscored(NoTruth):
    """What every finding has, of one without a score: to read findings takes no `isinstance`."""

    __slots__ = ()

    @property
    def score(self) -> None:
        """None: there is no score."""
        return

    @property
    def value(self) -> None:
        """None: there is no answer."""
        return

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Empty: there are no quotes."""
        return ()


@frozen
class _Unanswered(_Unscored):
    _truth = "its class with isinstance"

    id: str
    reason: str = field(default="", converter=clean_part)
    votes: tuple[Finding, ...] = field(default=(), repr=False)

    @property
    def parts(self) -> tuple[Finding, ...]:
        """Empty: nothing in it was judged."""
        return ()


@frozen
class NotApplicable(_Unanswered):
    """A criterion whose `when` does not hold: no call, not in the mean, no gate."""


@frozen
class Abstained(_Unanswered):
    """A criterion on which the judge cannot tell."""


@frozen
class Unjudged(_Unscored):
    """
    A criterion without a verdict, and why.

    *low* and *high* are the scores that the missing verdict could have given; *text* is the start of the reply.
    """

    _truth = "its .failure"

    id: str
    failure: Failure
    text: str = field(default="", converter=clean_part)
    low: float = 0.0
    high: float = 1.0
    path: tuple[Step, ...] = ()
    parts: tuple[Finding, ...] = ()
    votes: tuple[Finding, ...] = field(default=(), repr=False)

    @property
    def reason(self) -> str:
        """Why there is no verdict: the message of the failure."""
        return self.failure.message


Finding = Scored | NotApplicable | Abstained | Unjudged
