"""
Show a run as one numbered list: `[3] user: ...`, `[4] call refund({"order": 7}) -> done`.

Judges, pages and evidence have the same list, so a step has one number everywhere. Each event begins a line, and no
other line begins so: what follows a line break within an event is indented, or an event could be forged by a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

from rubric.internals.frozen_map import thaw
from rubric.internals.text import as_json
from rubric.values.run_parts import RunPart
from rubric.values.runs import Event, Media, Message, State, SubRun, ToolCall

_BREAK = re.compile("\r\n|[\n\r\u2028\u2029]")
_PLAIN = re.compile(r"[\w.:/-]+")
_OWN = ("assistant", "refusal")

OUTPUT = "(the candidate)"
"""What stands in the list in place of the output, which is shown apart."""


@frozen
class NumberedStep:
    """
    One event as it is shown.

    Args:
        step: Its place, such as `3`, or `3.2` in the run of a sub-agent.
        text: The line, or lines, with the step before it.
        is_own: Whether the candidate said or did it, so that a quote of it is evidence; else others said it.
    """

    step: str
    event: Event
    text: str
    is_own: bool


def numbered(part: RunPart) -> list[NumberedStep]:
    """Return the steps of *part*, with `OUTPUT` in place of the output."""
    return [*_steps(part.run.events, part.answered)]


def _steps(events: Sequence[Event], answered: int | None = None, before: str = "") -> Iterator[NumberedStep]:
    for place, event in enumerate(events):
        step = f"{before}{place + 1}"
        is_own = bool(before) or not isinstance(event, Message) or event.role in _OWN
        yield NumberedStep(step, event, line_of(event, step, None if place != answered else OUTPUT), is_own)
        if isinstance(event, SubRun):
            yield from _steps(event.run.events, before=f"{step}.")


def line_of(event: Event, step: str, words: str | None = None) -> str:
    """Return *event* as it is shown, with *words* in place of what a message says."""
    match event:
        case Message():
            names = f" {as_json(event.name)}" if event.name else ""
            names += f" to {as_json(event.to)}" if event.to else ""
            text = f"{_name(event.role)}{names}: {words or event.content}"
        case ToolCall():
            text = f"{as_json(event.agent) + ' ' if event.agent else ''}call {call_text(event)}"
        case State():
            text = f"state {as_json(thaw(event.values))}"
        case SubRun():
            task = f": {event.task}" if event.task else ""
            text = f"sub-agent {as_json(event.agent)}{task}" + (f"\n-> {event.result}" if event.result else "")
    media = event.media if isinstance(event, Message | ToolCall) else ()
    text += "".join(f"\n{media_name(one, step, place)}" for place, one in enumerate(media, 1))
    return f"[{step}] " + _BREAK.sub(r"\g<0>    ", text)


def media_name(media: Media, step: str, place: int) -> str:
    """Return how the list names *media*, number *place* of the event at *step*."""
    return f"{media.kind} {step}-{place}" + (f" {as_json(media.name)}" if media.name else "")


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
