"""
The turns of a conversation and the tool calls of a run as candidates of their own, and one finding of those on each.

A turn is an answer of the assistant: its candidate has the messages before it, the user's last message as its input,
and nothing that came later. So a judge that is asked about the second answer never sees the third. The candidate of
the tool calls has their text as its output, and not the answer, which may claim what no tool was called for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import cast

from attrs import evolve

from rubric.internals.frozen_map import FrozenMap
from rubric.internals.text import counted, shorten
from rubric.scoring.aggregation import substantiated
from rubric.values.answers import EVEN
from rubric.values.candidates import Candidate
from rubric.values.checks import Check
from rubric.values.criteria import Criterion, View
from rubric.values.findings import Abstained, Evidence, Finding, Scored, Unjudged
from rubric.values.numbered import chosen_steps
from rubric.values.requests import Failure
from rubric.values.rubrics import Rubric
from rubric.values.run_parts import RunPart
from rubric.values.runs import Message, ToolCall

_LONGEST_REASON = 300
TOOL_CALLS = "tool calls"
NO_CALLS = "(no tool was called)"


def turns_of(candidate: Candidate, *, is_window: bool = False) -> list[Candidate]:
    """
    Return the candidate of each turn of the conversation; the last one is that of the output.

    An empty message of the assistant is a turn only if it is all that the user got: others go with calls of tools.

    Args:
        is_window: Whether their judges see a part of a long run: else the turns cost its square.
    """
    if candidate.part is None:
        return [candidate]
    part, events = candidate.part, candidate.part.run.events
    said, found = [n for n, each in enumerate(candidate.before) if isinstance(each, Message)], list[Candidate]()
    since, roles = 0, ["", *(cast("Message", events[n]).role for n in said), ""]
    asked: int | None = None
    for place, index in enumerate(said, 1):
        message = cast("Message", events[index])
        is_alone = roles[place - 1] == "user" and roles[place + 1] == "user"
        if message.role == "assistant" and (message.content.strip() or is_alone):
            own = RunPart(part.run, asked, index, since, end=index + 1, is_window=is_window)
            question, words = part.text_at(asked), message.content
            found.append(evolve(candidate, output=words, input=question, reference=message.reference, run=own))
            since = index + 1
        asked = index if message.role == "user" else asked
    return [*found, evolve(candidate, run=evolve(part, since=since, is_window=is_window)) if found else candidate]


def _calls_of(candidate: Candidate) -> Candidate:
    part, said = candidate.part, NO_CALLS
    if part is not None:
        steps = frozenset(step for step, event in part.run.steps(part.before) if isinstance(event, ToolCall))
        part = evolve(part, chosen=steps)
        said = "\n".join(one.text for one in chosen_steps(part)) or said
    return evolve(candidate, output=said, reference="", file_changes="", files=FrozenMap(), run=part)


def asked_parts(criterion: Criterion, candidate: Candidate) -> dict[str, Candidate] | Unjudged:
    """Return the parts of *candidate* that *criterion* is asked of, by name; unjudged if there is no such turn."""
    if callable(criterion.on):
        return _seen(criterion, criterion.on, candidate)
    if criterion.on == "tools":
        return {TOOL_CALLS: _calls_of(candidate)}
    is_window = criterion.on in ("each turn", "worst turn")
    turns = {f"turn {number}": turn for number, turn in enumerate(turns_of(candidate, is_window=is_window), 1)}
    if criterion.on == "last turn":
        name = f"turn {len(turns)}"
        return {name: turns[name]}
    there = f"the conversation has {counted(len(turns), 'turn')}"
    if isinstance(criterion.on, int):
        if turn := turns.get(name := f"turn {criterion.on}"):
            return {name: turn}
        there += f", and no {name}"
    elif len(turns) == 1 or not isinstance(criterion.answer, Rubric):
        return turns
    else:  # its outcome is that of its criteria, which have one finding each
        there += ", and a nested rubric is asked of one: ask it of one turn, or each of its criteria of all"
    return Unjudged(criterion.id, Failure("bad_request", there, criterion=criterion.id))


def _seen(criterion: Criterion, view: View, candidate: Candidate) -> dict[str, Candidate] | Unjudged:
    """Return what a function of the user's own, *view*, makes of *candidate*; unjudged if it fails."""
    name = getattr(view, "__name__", "the function of `on`")
    try:
        seen = view(candidate)
    except Exception as error:  # noqa: BLE001 - it may raise anything
        why = shorten(f"{name} raised {type(error).__name__}: {error}")
        return Unjudged(criterion.id, Failure("exception", why, criterion=criterion.id))
    if isinstance(seen, Candidate):
        return {name: seen}
    why = f"{name} returned {type(seen).__name__}, expected a Candidate"
    return Unjudged(criterion.id, Failure("exception", why, criterion=criterion.id))


def over_parts(rubric: Rubric, criterion: Criterion, found: Mapping[str, Finding]) -> Finding:
    """
    Return what *found*, a finding for each part, says of *criterion*: that of the only one, the mean, or the worst.

    The worst answer to a criterion that should not hold is the highest. A turn that is not judged leaves the criterion
    unjudged, between the scores that it could have had; a turn to which it does not apply does not count. One without
    the evidence that *rubric* wants counts as unmet.
    """
    findings = [*found.values()]
    if len(findings) == 1:
        return findings[0]
    counted = [finding for finding in findings if isinstance(finding, Scored | Unjudged)]
    if not counted:
        return next((finding for finding in findings if isinstance(finding, Abstained)), findings[0])
    scored = {name: one for name, one in found.items() if isinstance(one, Scored)}
    backed = {name: substantiated(rubric, criterion, one) for name, one in scored.items()}
    scores = {name: one.score if backed[name] else float(criterion.is_unwanted) for name, one in scored.items()}
    broken = {name: one for name, one in found.items() if isinstance(one, Unjudged)}
    if broken:
        name, first = next(iter(broken.items()))
        failure = evolve(first.failure, message=f"{name}: {first.failure.message}")
        low = _pooled(criterion, [*scores.values(), *(one.low for one in broken.values())])
        high = _pooled(criterion, [*scores.values(), *(one.high for one in broken.values())])
        return Unjudged(criterion.id, failure, first.text, low, high)
    said = [
        f"{name} ({scores[name]:.2f}{'' if backed[name] else ', without evidence'}): {one.reason[:_LONGEST_REASON]}"
        for name, one in scored.items()
    ]
    quotes = tuple(quote for name, one in scored.items() if backed[name] for quote in one.evidence)
    pooled = _pooled(criterion, [*scores.values()])
    flag = _flag(criterion, scored.values())
    # Of weighted answers none is certain: they say yes together where each of them does.
    leans = all(score < EVEN if criterion.is_unwanted else score >= EVEN for score in scores.values())
    weighted = leans and any(one.weighted for one in scored.values())
    return Scored(criterion.id, pooled, reason="; ".join(said), evidence=quotes, flag=flag, weighted=weighted)


def _flag(criterion: Criterion, found: Iterable[Scored]) -> bool | None:
    """
    Return the pass flag of several parts: one that fails fails the whole; None if some have none, and none fails.

    The flag of a check says that it holds, which fails a criterion that should not hold.
    """
    flags = [one.flag for one in found]
    failing = isinstance(criterion.answer, Check) and criterion.is_unwanted
    if failing in flags:
        return failing
    return None if None in flags else not failing


def _pooled(criterion: Criterion, scores: Sequence[float]) -> float:
    if criterion.on == "worst turn":
        return max(scores) if criterion.is_unwanted else min(scores)
    return fsum(scores) / len(scores)


def placed(finding: Finding, part: str) -> Finding:
    """Return *finding*, on *part* of a candidate, with evidence that names it; of tool calls, nothing else counts."""
    if not isinstance(finding, Scored) or not finding.evidence:
        return finding
    return evolve(finding, evidence=tuple(_of_part(quote, part) for quote in finding.evidence))


def _of_part(quote: Evidence, part: str) -> Evidence:
    if part == TOOL_CALLS and quote.verified and quote.where != "output":
        return Evidence(quote.text)
    return evolve(quote, where=part) if quote.where == "output" and quote.verified else quote
