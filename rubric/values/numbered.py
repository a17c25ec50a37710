"""
Show a run as one numbered list: `[3] user: ...`, `[4] call refund({"order": 7}) -> done`.

Judges, pages and evidence have the same list, so a step has one number everywhere. Each event begins a line, and no
other line begins so: what follows a line break within an event is indented, or an event could be forged by a text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from hashlib import sha256
from itertools import accumulate
from operator import attrgetter
from typing import Any

from attrs import evolve, frozen

from rubric.internals.frozen_map import Memo, thaw
from rubric.internals.text import as_json
from rubric.values.run_parts import RunPart
from rubric.values.runs import Event, Media, Message, Run, State, SubRun, ToolCall

_BREAK = re.compile("\r\n|[\n\r\u2028\u2029]")
_PLAIN = re.compile(r"[\w.:/-]+")
_OWN = ("assistant", "refusal")

OUTPUT, HIDDEN = "(the candidate)", "(not shown)"
"""What stands in the list in place of what is judged, which is shown apart, and of an answer that is not judged."""


@frozen
class NumberedStep:
    """
    One event as it is shown.

    Args:
        is_own: Whether the candidate said or did it, so that a quote of it is evidence; else others said it.
        index: That of its event in the run, or of the sub-run that it is in.
        offset: Characters of the whole list before it.
    """

    step: str
    event: Event
    text: str
    is_own: bool
    index: int
    offset: int


def numbered_steps(part: RunPart) -> list[NumberedStep]:
    """Return the steps of *part* as they are shown; `OUTPUT` stands for what is shown apart, except at the end."""
    steps, end = _whole(part.run, part.before), len(part.events)
    steps = steps[: bisect_left(steps, end, key=_index)]
    answer = None if part.answered is None else bisect_left(steps, part.answered, key=_index)
    apart = {n: OUTPUT for n, one in enumerate(steps) if part.chosen and one.step in part.chosen}
    apart |= {} if answer is None else {answer: OUTPUT if part.chosen is None else HIDDEN}
    for place, words in apart.items():
        steps[place] = evolve(one := steps[place], text=line_of(one.event, one.step, words), is_own=False)
    is_last = answer is not None and answer == len(steps) - 1 and not getattr(steps[-1].event, "media", ())
    return steps[:-1] if is_last else steps  # an output at the end follows the list


def chosen_steps(part: RunPart) -> list[NumberedStep]:
    """Return the steps that the output of *part* is made of."""
    return [one for one in _whole(part.run, part.before) if one.step in (part.chosen or ())]


def chosen_places(part: RunPart) -> tuple[tuple[str, int, int], ...]:
    """Return the steps that the output of *part* is made of, each with its start and its end in the output."""
    steps = chosen_steps(part)
    ends = [*accumulate(len(one.text) + 1 for one in steps)]
    return tuple((one.step, end - len(one.text) - 1, end - 1) for one, end in zip(steps, ends, strict=True))


_index = attrgetter("index")


def _all_steps(run: Run, before: str) -> list[NumberedStep]:
    found, offset = list[NumberedStep](), 0
    for step, event in run.steps(before):
        place = step[len(before) :].partition(".")[0]
        is_own = step != before + place or not isinstance(event, Message) or event.role in _OWN
        found.append(NumberedStep(step, event, line_of(event, step), is_own, int(place) - run.first, offset))
        offset += len(found[-1].text) + 1
    return found


_whole = Memo(_all_steps)


def line_of(event: Event, step: str, words: str | None = None) -> str:
    """Return *event* as it is shown, with *words* in place of what a message says."""
    match event:
        case Message():
            names = f" {as_json(event.name)}" if event.name else ""
            names += f" to {as_json(event.to)}" if event.to else ""
            text = f"{_name(event.role)}{names}: {words or event.content}"
        case ToolCall():
            text = f"{as_json(event.agent) + ' ' if event.agent else ''}call {words or call_text(event)}"
        case State():
            text = f"state {words or as_json(thaw(event.values))}"
        case SubRun():
            said = (f": {event.task}" if event.task else "") + (f"\n-> {event.result}" if event.result else "")
            text = f"sub-agent {as_json(event.agent)}{f': {words}' if words else said}"
    text += "".join(f"\n{name} ({_address(media)})" for name, media in media_of(event, step))
    return f"[{step}] " + _BREAK.sub(r"\g<0>    ", text)


def media_of(event: Event, step: str) -> list[tuple[str, Media]]:
    """Return the media of *event*, each with its name in the list, such as `image 3-1`."""
    if not (shown := getattr(event, "media", ())):
        return []
    names = (f"{m.kind} {step}-{n}{f' {as_json(m.name)}' if m.name else ''}" for n, m in enumerate(shown, 1))
    return [*zip(names, shown, strict=True)]


def _address(media: Media) -> str:
    address = media.address
    return f"sha256 {sha256(address.encode()).hexdigest()[:12]}" if address.startswith("data:") else address


def call_text(call: ToolCall) -> str:
    """Return *call* as it is shown: its name, its arguments, why it failed, and what it returned."""
    text = f"{_name(call.name)}({as_json(thaw(call.arguments)) if call.arguments else ''})"
    if call.error:
        text += f" failed: {call.error}"
    if call.result is not None:
        text += f"{chr(10) if call.error else ' '}-> {shown_result(call.result)}"
    return text


def shown_result(result: Any) -> str:
    """Return what a tool returned, as text."""
    return result if isinstance(result, str) else as_json(thaw(result))


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else as_json(name)
