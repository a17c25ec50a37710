"""What came of a call, to JSON and back; and what it is worth: an answer, an unreadable reply, or a failure."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

from attrs import evolve
from cattrs import Converter

from rubric.exchanges import REASKED, UNSENT, Ask, Failure, FailureKind, Reply, Usage
from rubric.findings import Unjudged
from rubric.grading.reading import read

__all__ = ["dump", "free", "kind_of", "load", "never_left", "unpacked"]


@cache
def _converter() -> Converter:
    return Converter(detailed_validation=False)


def dump(outcome: Reply | Failure, key: str = "") -> str:
    """Return *outcome*, of the request of *key*, as JSON with a checksum over both."""
    what = "reply" if isinstance(outcome, Reply) else "failure"
    body = json.dumps({what: _converter().unstructure(outcome)}, separators=(",", ":"), default=str)
    return f"{body[:-1]}{_MARK}{_checksum(body, key)}{_END}"


def load(text: str, key: str = "") -> Reply | Failure:
    """
    Return the outcome in *text*, of the request of *key*.

    Raises:
        ValueError: There is none in it, or it is not what was written.
    """
    data = unpacked(text, key)
    try:
        if "reply" in data:
            return _converter().structure(data["reply"], Reply)
        return _converter().structure(data["failure"], Failure)
    except Exception as error:  # cattrs raises groups, and whatever the values raise
        raise ValueError(f"no reply and no failure: {type(error).__name__}") from error


def unpacked(text: str, key: str) -> dict[str, Any]:
    """
    Return the plain data in *text*, of the request of *key*; its checksum is looked at, and left out.

    Outcomes that an older version has written have none. SQLite itself does not see that a byte of a value has changed.

    Raises:
        ValueError: It is no outcome, or not what was written.
    """
    body, mark, rest = text.rpartition(_MARK)
    if mark:
        text = body + "}"
        if rest != _checksum(text, key) + _END:
            raise ValueError("it is not what was written")
    try:
        data: dict[str, Any] = json.loads(text)
        (_,) = data.keys() & {"reply", "failure"}
        (_,) = data
    except Exception as error:  # any text at all may have come of damage
        raise ValueError(f"no reply and no failure: {type(error).__name__}") from error
    return data


_MARK, _END = ',"sum":"', '"}'


def _checksum(body: str, key: str) -> str:
    return hashlib.sha256(f"{key}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


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
