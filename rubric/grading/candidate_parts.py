"""
The turns of a conversation and the tool calls of a run as candidates of their own, and one finding of those on each.

A turn is an answer of the assistant: its candidate has the messages before it, the user's last message as its input,
and nothing that came later. So a judge that is asked about the second answer never sees the third. The candidate of
the tool calls has their text as its output, and not the answer, which may claim what no tool was called for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from typing import Any, cast, get_args

from attrs import evolve

from rubric.grading.code_checks import TURNS, is_of_view
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.text import counted, shorten
from rubric.scoring.outcomes import is_substantiated
from rubric.values.answers import EVEN
from rubric.values.artefacts import SEGMENT
from rubric.values.candidates import Candidate
from rubric.values.checks import Calls, Check, Decided, Holds, Script, Trajectory, Unsupported, Within
from rubric.values.criteria import SUB_AGENT, Criterion, OfSegments, View
from rubric.values.findings import Abstained, Finding, Scored, Unjudged
from rubric.values.judges import Judge
from rubric.values.numbered import chosen_steps
from rubric.values.requests import Failure
from rubric.values.rubrics import Rubric
from rubric.values.run_parts import RunPart, is_done
from rubric.values.run_rules import Matcher, RunRule, RunRules
from rubric.values.runs import Event, Message, Run, SubRun, ToolCall

_LONGEST_REASON = 300
_SEVERAL = 2
_MOST_SAID = 3
TOOL_CALLS = "tool calls"
NO_CALLS = "(no tool was called)"


def turns_of(candidate: Candidate, *, is_window: bool = False) -> list[Candidate]:
    """
    Return the candidate of each turn of the conversation; the last one is that of the output.

    An empty message of the assistant is a turn only if it is all that the user got: others go with calls of tools. A
    judge of a *window* sees a part of a long run: else the turns cost its square.
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


def _steps_where(candidate: Candidate, test: Callable[[Event, str], bool], otherwise: str) -> Candidate:
    """Return the steps for which *test* is true as a candidate, with all others as its run; the answer is not shown."""
    part = candidate.part or RunPart(candidate.run, None, len(candidate.before) if candidate.output else None)
    agents = {part.before: part.run.agent}
    chosen = set[str]()
    for step, event in part.run.steps(part.before):
        if isinstance(event, SubRun):
            agents[f"{step}."] = event.agent
        chosen |= {step} if test(event, agents[step[: step.rfind(".") + 1]]) else set()
    part = evolve(part, chosen=frozenset(chosen or {""}))
    said = "\n".join(one.text for one in chosen_steps(part)) or otherwise
    shown = None if candidate.part is None and not chosen else part
    return evolve(candidate, output=said, reference="", file_changes="", files=FrozenMap(), run=shown)


def _of_agent(candidate: Candidate, name: str) -> dict[str, Candidate]:
    """Return the run of each sub-agent called *name* as a candidate, by its step: what it handed back is the output."""
    found, part = dict[str, Candidate](), candidate.part
    for step, event in part.run.steps(part.before) if part else ():
        if isinstance(event, SubRun) and event.agent == name:
            own = RunPart(event.run, None, None, before=f"{step}.", chosen=frozenset())
            said = own.text_at(answered := own.last_message("assistant"))
            if event.result in ("", said) and said:
                own = evolve(own, answered=answered, chosen=None)
            fields: dict[str, Any] = {"output": event.result or said, "input": event.task, "reference": "", "run": own}
            found[f"step {step}"] = evolve(candidate, **fields, file_changes="", files=FrozenMap())
    return found


SEGMENTS = get_args(OfSegments)
"""What a criterion may be asked `on` to be asked of the segments of a run."""


def of_part(candidate: Candidate, part: Run) -> Candidate:
    """Return *candidate* as far as *part* of its run goes, with the task and the context."""
    shown = RunPart(part, None, None, chosen=frozenset())
    return evolve(candidate, output=SEGMENT, run=shown, reference="", file_changes="", files=FrozenMap())


def in_segments(candidate: Candidate, judge: Judge) -> dict[str, Candidate]:
    """Return *candidate* in segments of the size that *judge* reads, by name; the whole if it fits."""
    from rubric.grading.segments import segments_of  # noqa: PLC0415 - most runs are not cut

    parts = segments_of(candidate.run, judge.segment_tokens) if judge.segment_tokens else {}
    if len(parts) < _SEVERAL:
        return {"conversation": candidate}
    return {name: of_part(candidate, part) for name, part in parts.items()}


_OF_THE_RUN = (RunRule, RunRules, Calls, Trajectory, Within, Holds, Script, Decided, Unsupported, Rubric)
"""What is judged without an answer too: code that is given the run, and a rubric, whose criteria are looked at."""


def no_answer(criterion: Criterion, candidate: Candidate, rubric: Rubric) -> Unjudged | None:
    """Return the finding of *criterion* of *rubric* if *candidate* is a run without the answer that it reads."""
    why = "" if rubric.degenerate == "judge" else candidate.unanswered
    is_of_run = is_of_view(criterion) or isinstance(criterion.answer, _OF_THE_RUN)
    if not why or (is_of_run and any(map(is_done, candidate.run.events))):  # of a run without an act nothing is judged
        return None
    return Unjudged(criterion.id, Failure("degenerate", f"the candidate {why}", criterion=criterion.id))


def asked_parts(criterion: Criterion, candidate: Candidate) -> dict[str, Candidate] | Unjudged:
    """Return the parts of *candidate* that *criterion* is asked of, by name; unjudged if there is no such turn."""
    if callable(criterion.on):
        return _apply_view(criterion, criterion.on, candidate)
    if criterion.on == "tools":
        return {TOOL_CALLS: _steps_where(candidate, lambda event, _: isinstance(event, ToolCall), NO_CALLS)}
    if isinstance(criterion.on, Matcher):
        return {"steps": _steps_where(candidate, criterion.on.fits, f"(no step is {criterion.on})")}
    if isinstance(criterion.on, str) and criterion.on.startswith(SUB_AGENT):
        if found := _of_agent(candidate, name := criterion.on.removeprefix(SUB_AGENT)):
            return found
        failure = Failure("bad_request", f"the run has no sub-agent {name!r}", criterion=criterion.id)
        return Unjudged(criterion.id, failure)
    is_window = criterion.on in TURNS
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


def _apply_view(criterion: Criterion, view: View, candidate: Candidate) -> dict[str, Candidate] | Unjudged:
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
    Return what *found*, a finding for each part, says of *criterion*: that of the only one, or by its `on`.

    The mean counts; of `worst` parts the worst score, of `any segment` the highest, of `all segments` the lowest, of
    the `latest segment` its own. A segment that is not judged leaves no doubt where the others decide.

    The worst answer to a criterion that should not hold is the highest. A turn that is not judged leaves the criterion
    unjudged, between the scores that it could have had; a turn to which it does not apply does not count. One without
    the evidence that *rubric* wants counts as unmet.
    """
    findings = [*found.values()]
    parts = tuple([evolve(finding, id=name) for name, finding in found.items()])
    if len(findings) == 1:
        only, is_turn = findings[0], criterion.on in TURNS
        return evolve(only, parts=parts) if is_turn and isinstance(only, Scored) and not only.parts else only
    counted = {name: one for name, one in found.items() if isinstance(one, Scored | Unjudged)}
    if not counted:
        return next((finding for finding in findings if isinstance(finding, Abstained)), findings[0])
    scored = {name: one for name, one in found.items() if isinstance(one, Scored)}
    backed = {name: is_substantiated(rubric, criterion, one) for name, one in scored.items()}
    scores = {name: one.score if backed[name] else float(criterion.is_unwanted) for name, one in scored.items()}
    broken = {name: one for name, one in found.items() if isinstance(one, Unjudged)}
    low = _pool(criterion, [broken[name].low if name in broken else scores[name] for name in counted])
    high = _pool(criterion, [broken[name].high if name in broken else scores[name] for name in counted])
    if broken and (low < high or criterion.on not in SEGMENTS):
        name, first = next(iter(broken.items()))
        failure = evolve(first.failure, message=f"{name}: {first.failure.message}")
        return Unjudged(criterion.id, failure, first.text, low, high, parts=parts)
    if criterion.on in SEGMENTS:  # there may be many: a few of those that decide
        deciding = [*scores][-1:] if criterion.on == "latest segment" else [n for n in scores if scores[n] == low]
        scored = {name: scored[name] for name in (deciding or [*scores])[:_MOST_SAID]}
    said = [
        f"{name} ({scores[name]:.2f}{'' if backed[name] else ', without evidence'}): {one.reason[:_LONGEST_REASON]}"
        for name, one in scored.items()
    ]
    worst = [name for name, score in scores.items() if score == low] if criterion.on == "worst turn" else []
    said[:0] = [f"worst: {', '.join(worst)}"] if len(worst) < len(scores) and worst else []
    said += [f"not judged, and it changes nothing: {', '.join(broken)}"] if broken else []
    quotes = tuple(quote for name, one in scored.items() if backed[name] for quote in one.evidence)
    flag = _flag(criterion, scored.values())
    # Of weighted answers none is certain: they say yes together where each of them does.
    leans = all((scores[name] < EVEN) if criterion.is_unwanted else (scores[name] >= EVEN) for name in scored)
    weighted = leans and any(one.weighted for one in scored.values())
    return Scored(criterion.id, low, reason="; ".join(said), evidence=quotes, flag=flag, weighted=weighted, parts=parts)


def _flag(criterion: Criterion, found: Iterable[Scored]) -> bool | None:
    """Return the pass flag of several parts: False if one fails, None if some have none; a check's: it holds."""
    flags = [one.flag for one in found]
    failing = isinstance(criterion.answer, Check) and criterion.is_unwanted
    if failing in flags:
        return failing
    return None if None in flags else not failing


def _pool(criterion: Criterion, scores: Sequence[float]) -> float:
    match criterion.on:
        case "worst turn" | "worst segment":
            return max(scores) if criterion.is_unwanted else min(scores)
        case "any segment":
            return max(scores)
        case "all segments":
            return min(scores)
        case "latest segment":
            return scores[-1]
    return fsum(scores) / len(scores)


def locate_evidence(finding: Finding, part: str) -> Finding:
    """Return *finding*, on *part* of a candidate, with evidence that names the part."""
    if not isinstance(finding, Scored) or not finding.evidence:
        return finding
    quotes = (evolve(e, where=part) if e.where == "output" and e.verified else e for e in finding.evidence)
    return evolve(finding, evidence=tuple(quotes))
