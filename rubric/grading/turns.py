"""
The turns of a conversation as candidates of their own, and one finding of those on each turn.

A turn is an answer of the assistant: its candidate has the messages before it, the user's last message as its input,
and nothing that came later. So a judge that is asked about the second answer never sees the third.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from attrs import evolve

from rubric.values.candidates import Candidate
from rubric.values.criteria import Criterion
from rubric.values.findings import Abstained, Finding, Scored, Unjudged
from rubric.values.requests import Failure

_LONGEST_REASON = 300


def turns_of(candidate: Candidate) -> list[Candidate]:
    """Return the candidate of each turn of the conversation; the last one is *candidate* itself."""
    found = []
    for index, message in enumerate(candidate.messages):
        if message.role == "assistant" and message.content.strip():
            before = candidate.messages[:index]
            asked = next((m.content for m in reversed(before) if m.role == "user"), "")
            found.append(
                evolve(candidate, output=message.content, input=asked, messages=before, reference="", tool_calls=())
            )
    return [*found, candidate]


def asked_turns(criterion: Criterion, candidate: Candidate) -> list[Candidate] | Unjudged:
    """Return the turns that *criterion* is asked of; unjudged if there is no such turn."""
    turns = turns_of(candidate)
    if criterion.on == "last turn":
        return turns[-1:]
    if not isinstance(criterion.on, int):
        return turns
    if criterion.on <= len(turns):
        return [turns[criterion.on - 1]]
    there = f"the conversation has {len(turns)} turn{'' if len(turns) == 1 else 's'}, and no turn {criterion.on}"
    return Unjudged(criterion.id, Failure("bad_request", there, criterion=criterion.id))


def over_turns(criterion: Criterion, findings: Sequence[Finding]) -> Finding:
    """
    Return what *findings*, one for each turn, say of *criterion*: their mean, or the worst of them.

    The worst answer to a criterion that should not hold is the highest. A turn that is not judged leaves the criterion
    unjudged, between the scores that it could have had; a turn to which it does not apply does not count.
    """
    if len(findings) == 1:
        return findings[0]
    counted = [finding for finding in findings if isinstance(finding, Scored | Unjudged)]
    if not counted:
        return next((finding for finding in findings if isinstance(finding, Abstained)), findings[0])
    broken = [(turn, finding) for turn, finding in enumerate(findings, 1) if isinstance(finding, Unjudged)]
    lows = [finding.low if isinstance(finding, Unjudged) else finding.score for finding in counted]
    highs = [finding.high if isinstance(finding, Unjudged) else finding.score for finding in counted]
    if broken:
        turn, first = broken[0]
        failure = evolve(first.failure, message=f"turn {turn}: {first.failure.message}")
        return Unjudged(criterion.id, failure, first.text, _pooled(criterion, lows), _pooled(criterion, highs))
    said = [
        f"turn {turn} ({finding.score:.2f}): {finding.reason[:_LONGEST_REASON]}"
        for turn, finding in enumerate(findings, 1)
        if isinstance(finding, Scored)
    ]
    return Scored(criterion.id, _pooled(criterion, lows), reason="; ".join(said))


def _pooled(criterion: Criterion, scores: Sequence[float]) -> float:
    if criterion.on == "worst turn":
        return max(scores) if criterion.is_unwanted else min(scores)
    return fsum(scores) / len(scores)
