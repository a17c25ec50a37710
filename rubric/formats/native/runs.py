"""Candidates in files, with their runs: messages, calls of tools, states and sub-runs in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
from attrs import field, frozen

from rubric.formats import fields
from rubric.formats.native.meant import read_or_tell
from rubric.values.candidates import Candidate, RunMetrics, as_calls, as_events, event_kind
from rubric.values.runs import Event, Media, Message, Run, State, SubRun, ToolCall

_read_media = fields.reader_of(Media)
_MEDIA: dict[str, Any] = {"media": lambda data: fields.read_all(data, "medium", _read_media)}
read_message = fields.reader_of(Message, **_MEDIA)
read_call = fields.reader_of(ToolCall, **_MEDIA)


def read_run(data: Any) -> Run:
    """Return a run: a list of events, or a mapping with them and with its agent and model."""
    return fields.read_within(data, "events", _read_run) if isinstance(data, list) else _read_run(data)


def _read_event(data: Any) -> Event:
    kind = event_kind(fields.as_dict(data, "a message, a tool call, a state or a sub-run"))
    return cast("Event", read_or_tell(_EVENTS[kind], data, _meant))


def _meant(data: Any) -> Any:
    from rubric.formats.native.meant_cases import meant_event  # noqa: PLC0415 - of errors alone

    return meant_event(data, lambda one: _EVENTS[event_kind(one)](one))


def _read_events(data: Any) -> list[Event]:
    """Return the messages of a candidate, and what stands among them."""
    return fields.read_all(data, "message", _read_event)


_EVENTS: dict[type, Callable[[Any], Any]] = {
    Message: read_message,
    ToolCall: read_call,
    State: fields.reader_of(State),
    SubRun: fields.reader_of(SubRun, run=read_run),
}
_read_run = fields.reader_of(Run, events=_read_events)


def _run(run: Run) -> Any:
    data = fields.fields_of(run)
    return data["events"] if [*data] == ["events"] else data


@frozen
class _Lists:
    """What makes the run of a candidate: lists, or the run itself."""

    messages: Any = field(default=(), converter=as_events)
    tool_calls: Any = field(default=(), converter=as_calls)
    run: Run | None = None


read_metrics = fields.reader_of(RunMetrics)
read_candidate = fields.reader_of(
    Candidate,
    also=attrs.fields(_Lists),
    part=None,
    messages=_read_events,
    tool_calls=lambda data: fields.read_all(data, "tool call", read_call),
    run=read_run,
    metrics=read_metrics,
    files=lambda data: data,
)
fields.WRITERS |= {
    **dict.fromkeys((RunMetrics, Media, *_EVENTS), fields.fields_of),
    Run: _run,
    Candidate: lambda candidate: {name: fields.write(value) for name, value in candidate.given().items()},
}
