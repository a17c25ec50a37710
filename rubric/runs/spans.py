"""
Runs in OpenTelemetry's spans, by its conventions for generative AI: agents, calls of models, executions of tools.

The spans are those of an OTLP file in JSON (`resourceSpans`) or of the SDK (`ReadableSpan.to_json`). What models were
sent and have said is read from `gen_ai.input.messages`, `gen_ai.output.messages` and `gen_ai.system_instructions`, of
spans or of their events, and from the older events `gen_ai.user.message` to `gen_ai.choice`. Each call of a model has
the conversation so far: what it has besides what is known is what happened. An agent below another one is a sub-run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from attrs import frozen

from rubric.runs.messages import Said, call, media, messages_of_parts, result, run_of
from rubric.values.chats import is_cut_short
from rubric.values.runs import SubRun

_MODELS = ("chat", "generate_content", "text_completion")
_AGENTS = ("invoke_agent", "create_agent", "invoke_workflow")
_DETAILS = "gen_ai.client.inference.operation.details"


@frozen
class Span:
    """A span, in the words of OpenTelemetry; *start* is its time as ISO 8601."""

    id: str
    trace: str
    parent: str
    name: str
    start: str
    seconds: float | None
    held: Mapping[str, Any]
    events: Sequence[tuple[str, Mapping[str, Any]]]
    error: str

    @property
    def does(self) -> str:
        """The operation: `chat`, `execute_tool`, `invoke_agent`, ...; '' for a span of something else."""
        return str(self.held.get("gen_ai.operation.name") or "")


def spans_in(rows: Iterable[Mapping[str, Any]]) -> list[Span]:
    """Return the spans in *rows*, each of which is one, or a request of OTLP's."""
    found: list[Span] = []
    for row in rows:
        resources = row.get("resourceSpans") or row.get("resource_spans")
        scopes = [one for each in resources or () for one in each.get("scopeSpans") or each.get("scope_spans") or ()]
        spans = [_as_of_sdk(span) for scope in scopes for span in scope.get("spans") or ()]
        found += map(_span, [row] if resources is None else spans)
    return sorted(found, key=lambda span: span.start)


def _as_of_sdk(span: Mapping[str, Any]) -> dict[str, Any]:
    """Return a *span* of OTLP's as the SDK writes it."""
    start, end = (
        datetime.fromtimestamp(int(span.get(key) or 0) / 1e9, UTC).isoformat()
        for key in ("startTimeUnixNano", "endTimeUnixNano")
    )
    status = span.get("status") or {}
    failed = status.get("code") in (2, "STATUS_CODE_ERROR")
    return {
        "name": span.get("name"),
        "context": {"span_id": span.get("spanId"), "trace_id": span.get("traceId")},
        "parent_id": span.get("parentSpanId"),
        "start_time": start,
        "end_time": end,
        "attributes": _attributes(span.get("attributes")),
        "events": [{**one, "attributes": _attributes(one.get("attributes"))} for one in span.get("events") or ()],
        "status": {"status_code": "ERROR" if failed else "", "description": status.get("message")},
    }


def _span(row: Mapping[str, Any]) -> Span:
    context, status, held = row.get("context") or {}, row.get("status") or {}, row.get("attributes") or {}
    start, seconds = str(row.get("start_time") or ""), None
    with suppress(ValueError):
        seconds = (datetime.fromisoformat(str(row.get("end_time"))) - datetime.fromisoformat(start)).total_seconds()
    events = [(str(each.get("name")), each.get("attributes") or {}) for each in row.get("events") or ()]
    raised = next((each.get("exception.message") for name, each in events if name == "exception"), None)
    error = raised or status.get("description") or held.get("error.type") or "it failed"
    return Span(
        id=str(context.get("span_id")),
        trace=str(context.get("trace_id")),
        parent=str(row.get("parent_id") or ""),
        name=str(row.get("name")),
        start=start,
        seconds=seconds,
        held=held,
        events=events,
        error=str(error) if status.get("status_code") == "ERROR" else "",
    )


def _attributes(listed: Any) -> dict[str, Any]:
    return {str(each.get("key")): _value(each.get("value") or {}) for each in listed or ()}


def _value(value: Mapping[str, Any]) -> Any:
    ((kind, held),) = [*value.items()][:1] or [("", None)]
    match kind:
        case "intValue":
            return int(held)
        case "arrayValue":
            return [_value(each) for each in held.get("values") or ()]
        case "kvlistValue":
            return _attributes(held.get("values"))
        case _:
            return held


# -- runs -------------------------------------------------------------------------------------------------


def of_spans(spans: Sequence[Span]) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Yield the id of each trace in *spans*, the messages of its run, and the other fields of the run."""
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace, []).append(span)
    for trace, held in traces.items():
        below: dict[str, list[Span]] = {}
        ids = {span.id for span in held}
        for span in held:
            below.setdefault(span.parent if span.parent in ids else "", []).append(span)
        top = [*_nearest(below.get("", ()), below)]
        whole = top[0] if len(top) == 1 and top[0].does in _AGENTS else None
        messages = _messages(whole, top if whole is None else [*_nearest(below.get(whole.id, ()), below)], below)
        models = [str(span.held["gen_ai.request.model"]) for span in held if "gen_ai.request.model" in span.held]
        agent = "" if whole is None else str(whole.held.get("gen_ai.agent.name") or "")
        asked = [span.held for span in held if span.does in _MODELS][-1:]
        ends = [{"status": end} for each in asked for end in each.get("gen_ai.response.finish_reasons") or ()]
        own = {"complete": False} if is_cut_short(ends) else {}
        yield trace, messages, {"agent": agent, "model": models[0] if models else "", **own}


def _nearest(spans: Iterable[Span], below: Mapping[str, Sequence[Span]]) -> Iterator[Span]:
    """Yield the spans among *spans* and below them that do something known, none below another."""
    for span in spans:
        if span.does in (*_MODELS, *_AGENTS, "execute_tool"):
            yield span
        else:
            yield from _nearest(below.get(span.id, ()), below)


def _messages(agent: Span | None, spans: Iterable[Span], below: Mapping[str, Sequence[Span]]) -> list[Any]:
    found: list[Any] = []
    seen: list[str] = []
    ran: dict[str, Said] = {}
    for span in sorted(spans, key=lambda span: span.start):
        if span.does in _AGENTS:
            found.append(_sub_run(span, below))
            continue
        if span.does in _MODELS:
            found += _new(_messages_of(span), seen)
        else:
            _note_result(span, found, ran)
        inner = sorted(_nearest(below.get(span.id, ()), below), key=lambda each: each.start)
        found += [_sub_run(each, below) for each in inner if each.does in _AGENTS]
    if agent is not None and not any(_is_of(each, "user") for each in found) and (told := [*_messages_of(agent)]):
        found = [*told, *(each for each in found if isinstance(each, SubRun))]
    for each in found:
        if _is_of(each, "tool") and (known := ran.pop(each["tool_call_id"], None)):
            each |= {**known, "content": each["content"] or known["content"], "error": known["error"] or each["error"]}
    return [*found, *ran.values()]


def _note_result(span: Span, found: list[Any], ran: dict[str, Said]) -> None:
    """Keep what the execution of a tool has brought in *ran*, by the id of its call, which *found* has then."""
    id_ = str(span.held.get("gen_ai.tool.call.id") or span.id)
    calls = [one["id"] for each in found if isinstance(each, dict) for one in each.get("tool_calls", ())]
    if id_ not in calls:
        arguments = _json(span.held.get("gen_ai.tool.call.arguments"))
        found.append(call(id_, span.held.get("gen_ai.tool.name"), arguments or {}))
    came = _json(span.held.get("gen_ai.tool.call.result"))
    ran[id_] = result(id_, came, span.error, time=span.start, duration=span.seconds)


def _is_of(message: Any, role: str) -> bool:
    return isinstance(message, dict) and message.get("role") == role


def _sub_run(span: Span, below: Mapping[str, Sequence[Span]]) -> SubRun:
    messages = _messages(span, _nearest(below.get(span.id, ()), below), below)
    return SubRun(str(span.held.get("gen_ai.agent.name") or span.name), run_of(messages))


def _new(told: Iterable[Any], known: list[str]) -> Iterator[Any]:
    """Yield what of *told* is not *known* yet, by its JSON: a call of a model is sent once more what came before."""
    place, end = 0, len(known)
    for each in told:
        key = json.dumps({**each, "finish_reason": ""}, sort_keys=True, default=str)  # those that are sent have none
        try:
            place = known.index(key, place, end) + 1
        except ValueError:
            known.append(key)
            yield each


# -- what a span tells ------------------------------------------------------------------------------------


def _messages_of(span: Span) -> Iterator[Said]:
    """Yield the messages that *span* has: what the model was told, what it was sent, and what it said."""
    held = {**span.held, **{k: v for name, more in span.events if name == _DETAILS for k, v in more.items()}}
    system = _json(held.get("gen_ai.system_instructions"))
    if isinstance(system, list):
        yield from messages_of_parts(map(_part, system), "system")
    elif system:
        yield {"role": "system", "content": str(system)}
    names = ("gen_ai.input.messages", "gen_ai.output.messages")
    listed = [each for name in names for each in _json(held.get(name)) or ()]
    for each in listed or _json(held.get("pydantic_ai.all_messages")) or ():
        own = {key: each[key] for key in ("name", "finish_reason") if each.get(key)}
        yield from messages_of_parts(map(_part, each.get("parts") or ()), str(each.get("role") or "user"), **own)
    if not listed:
        logged = _json(held.get("events")) or ()
        for name, each in [*span.events, *((str(one.get("event.name")), one) for one in logged)]:
            if name.startswith("gen_ai.") and name.endswith((".message", ".choice")):
                yield _message_of_event(name, each)


def _message_of_event(name: str, held: Mapping[str, Any]) -> Said:
    """Return the message of an event, as the conventions had them first."""
    held = {**held, **(inner if isinstance(inner := _json(held.get("message")), Mapping) else {})}
    role = "assistant" if name.endswith(".choice") else name.split(".")[1]
    made = {"role": role, "content": held.get("content"), "tool_calls": _json(held.get("tool_calls")) or ()}
    made |= {"finish_reason": held.get("finish_reason")}
    return result(held.get("id"), held.get("content")) if role == "tool" else made


def _part(part: Mapping[str, Any]) -> Said:
    """Return a part of OpenTelemetry's as one of a chat, or as a message if it is a call or its result."""
    kind, name = str(part.get("type")), str(part.get("name") or "")
    mime = part.get("mime_type") or part.get("media_type") or part.get("modality") or kind.partition("-")[0]
    match kind:
        case "text":
            return {"type": "text", "text": str(part.get("content") or part.get("text") or "")}
        case "reasoning" | "thinking":
            return {"type": "thinking", "thinking": part.get("content")}
        case "tool_call" | "server_tool_call":
            given = part.get("arguments", part.get("server_tool_call"))
            return call(part.get("id"), name, _json(given) or {})
        case "tool_call_response" | "server_tool_call_response":
            names = ("response", "result", "content", "server_tool_call_response")
            return result(part.get("id"), next((part[key] for key in names if key in part), None))
        case "blob" | "binary":
            return media(mime, data=part.get("content") or part.get("data"))
        case "uri" | "file" | "image-url" | "audio-url" | "video-url" | "document-url":
            return media(mime, url=part.get("uri") or part.get("url") or part.get("file_id"))
        case _:
            return {"type": kind}


def _json(value: Any) -> Any:
    """Return what *value*, an attribute, holds: spans have what is nested as JSON."""
    if isinstance(value, str):
        with suppress(ValueError):
            return json.loads(value)
    return value
