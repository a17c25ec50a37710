"""What came of a call, to JSON and back; and what it is worth: an answer, an unreadable reply, or a failure."""

from __future__ import annotations

import json
from functools import cache

from attrs import evolve
from cattrs import Converter

from rubric.exchanges import REASKED, UNSENT, Ask, Failure, FailureKind, Reply, Usage
from rubric.findings import Unjudged
from rubric.grading.reading import read

__all__ = ["dump", "free", "kind_of", "load", "never_left"]


@cache
def _converter() -> Converter:
    return Converter(detailed_validation=False)


def dump(outcome: Reply | Failure) -> str:
    """Return *outcome* as JSON."""
    what = "reply" if isinstance(outcome, Reply) else "failure"
    return json.dumps({what: _converter().unstructure(outcome)}, separators=(",", ":"), default=str)


def load(text: str) -> Reply | Failure:
    """
    Return the outcome in *text*.

    Raises:
        ValueError: There is none in it.
    """
    try:
        data = json.loads(text)
        if "reply" in data:
            return _converter().structure(data["reply"], Reply)
        return _converter().structure(data["failure"], Failure)
    except Exception as error:  # cattrs raises groups, and whatever the values raise
        raise ValueError(f"no reply and no failure: {type(error).__name__}") from error


def free(outcome: Reply | Failure) -> Reply | Failure:
    """Return *outcome* as one that is served again: it costs nothing, and is no call."""
    return evolve(outcome, usage=Usage())


def never_left(outcome: Reply | Failure) -> bool:
    """Say whether *outcome* is of a call that was held back (a limit, a budget): there is nothing to keep of it."""
    if isinstance(outcome, Reply) or outcome.usage.calls:
        return False
    return outcome.kind in UNSENT or not outcome.in_doubt


def kind_of(ask: Ask, outcome: Reply | Failure) -> FailureKind | None:
    """
    Return why *outcome* says nothing about any criterion of *ask*; None for an answer.

    Reading is pure: what is unreadable today is so whenever it is read.
    """
    if isinstance(outcome, Failure):
        return outcome.kind
    choices = [outcome, *(evolve(outcome, text=text, finish="stop") for text in outcome.choices[1:])]
    findings = [finding for choice in choices for finding in read(ask, choice)]
    kinds: list[FailureKind | None] = [
        finding.failure.kind if isinstance(finding, Unjudged) else None for finding in findings
    ]
    if None in kinds:
        return None
    again: list[FailureKind | None] = [kind for kind in kinds if kind in REASKED]
    return (again or kinds)[0]
