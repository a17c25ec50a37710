"""Asks for tests: what a judge would be sent, and what is read from what it might answer."""

from __future__ import annotations

from typing import Any

from rubric.grading.prompting import compose, shared_prompt
from rubric.grading.reply_parser import read
from rubric.values.answers import Answer, YesNo
from rubric.values.candidates import Candidate
from rubric.values.criteria import Criterion
from rubric.values.findings import Finding, Unjudged
from rubric.values.judges import Judge
from rubric.values.requests import Ask, Failure, Reply
from rubric.values.rubrics import Rubric


def answer(messages: list[dict[str, Any]]) -> str:
    """Stand for a judge that is a function; the tests that use it never call it."""
    raise AssertionError(messages)


UNSEALED = Judge(answer)
SEALED = Judge(answer, sealed=True)


def ask_about(
    candidate: Candidate | str,
    *criteria: Criterion,
    judge: Judge = UNSEALED,
    vote: int = 0,
    repair: int = 0,
    **options: Any,
) -> Ask:
    """Return the ask of *judge* for *criteria* of a rubric with *options*."""
    rubric = Rubric(criteria=criteria, **options)
    return compose(shared_prompt(Candidate.of(candidate), rubric), rubric, judge, criteria, vote=vote, repair=repair)


def ask_for(
    kind: Answer | None = None, /, *, candidate: str = "Some text.", judge: Judge = UNSEALED, **options: Any
) -> Ask:
    """Return an ask for one criterion, `it`, whose answer is of *kind*: yes or no, if nothing is said."""
    return ask_about(candidate, Criterion("Is it so?", id="it", answer=kind or YesNo()), judge=judge, **options)


def read_one(ask: Ask, reply: str | Reply | Failure) -> Finding:
    """Return what the only criterion of *ask* comes to, by *reply*."""
    (finding,) = read(ask, Reply(reply) if isinstance(reply, str) else reply)
    return finding


def verdict_of(ask: Ask, reply: str) -> object:
    """Return the verdict that is read from *reply*; where there is none, the kind of the failure."""
    finding = read_one(ask, reply)
    return f"<{finding.failure.kind}>" if isinstance(finding, Unjudged) else getattr(finding, "value", None)
