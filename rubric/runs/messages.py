"""
The items, contents, events and samples of other tools, as messages in the form that `rubric.values.chats` reads.

docs/reference/run_formats.md has what is read of OpenAI's Responses, Gemini, ADK and Inspect, and what is left out.
Keys are read in both of their spellings, `functionCall` and `function_call`. A part of an unknown type stays in the
message as it is, so that the reader of chats names it as left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.values.chats import at, chat_of, is_cut_short, text_of, unread_in
from rubric.values.runs import Event, Run, State, SubRun

Said = dict[str, Any]
"""A message in the form of chats."""


def call(id_: Any, name: Any, arguments: Any, **own: Any) -> Said:
    """Return a message of the assistant that calls a tool."""
    made = {"id": str(id_), "name": name, "arguments": arguments, **own}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def result(id_: Any, content: Any, error: Any = None, **own: Any) -> Said:
    """Return the message with what a tool has returned, or with the error that it ended in."""
    is_parts = isinstance(content, list) and all(isinstance(part, Mapping) and part.get("type") for part in content)
    said = content if is_parts else text_of(content)
    why = error.get("message") or error if isinstance(error, Mapping) else error
    return {"role": "tool", "tool_call_id": str(id_), "content": said, "error": text_of(why) or None, **own}


def media(mime: Any, data: Any = None, url: Any = None, **own: Any) -> Said:
    """Return a part with a picture, a recording, a film or a document."""
    kind = str(mime or "").partition("/")[0]
    held = {"data": data, "media_type": mime} if data else {"url": url}
    return {"type": kind if kind in ("image", "audio", "video") else "document", **held, **own}


def run_of(messages: Iterable[Any], **given: Any) -> Run:
    """Return *messages*, in the form of chats and with events among them, as a run that says what it leaves out."""
    held = [*messages]
    events = chat_of(held)
    left = unread_in([each for each in held if not isinstance(each, Event)], events)
    given.setdefault("complete", not is_cut_short(held))
    return Run(events, metadata=FrozenMap({"left_out": left} if left else {}), **given)


# -- OpenAI's Responses -----------------------------------------------------------------------------------


def of_responses(items: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return the messages in *items* of OpenAI's Responses."""
    return [message for item in items for message in _item(item)]


def _item(item: Mapping[str, Any]) -> Iterator[Any]:
    kind, id_ = str(item.get("type") or "message"), item.get("call_id") or item.get("id")
    if kind == "message":
        content = item.get("content")
        parts = [_input_part(part) for part in content] if isinstance(content, list | tuple) else content
        yield {"role": item.get("role") or "assistant", "content": parts}
    elif kind == "reasoning":
        thoughts = [*(item.get("summary") or ()), *(item.get("content") or ())]
        yield {"role": "assistant", "content": [{"type": "reasoning", "reasoning": t.get("text")} for t in thoughts]}
    elif kind.endswith("_call_output"):
        yield result(id_, _output(item.get("output")), item.get("error"))
    elif kind.endswith("_call"):
        given: Any = next((item[key] for key in ("arguments", "action") if item.get(key)), None)
        given = given or {key: item[key] for key in ("input", "code") if item.get(key)}
        outer = ("id", "call_id", "type", "status", "name", "output", "outputs", "results", "result", "error")
        rest = {key: value for key, value in item.items() if key not in outer and value is not None}
        has_name = kind in ("function_call", "custom_tool_call", "mcp_call")
        yield call(id_, item.get("name") if has_name else item.get("name") or kind.removesuffix("_call"), given or rest)
        if kind == "image_generation_call" and item.get("result"):
            yield result(id_, [media("image/png", item["result"])])
        elif (found := next((item[k] for k in ("output", "outputs", "results") if item.get(k)), None)) or (
            item.get("error") or item.get("status") in ("failed", "incomplete")
        ):
            yield result(id_, _output(found), item.get("error") or ("" if found else item.get("status")))
    else:
        yield {"role": "assistant", "content": [{"type": kind}]}


def _input_part(part: Any) -> Any:
    """Return *part* with its text as chats have it; a picture has its address as a text here."""
    return {"type": "text", "text": part["text"]} if isinstance(part, Mapping) and "text" in part else part


def _output(output: Any) -> Any:
    if isinstance(output, Mapping) and output.get("type") == "computer_screenshot":
        return [{"type": "image", "url": output.get("image_url") or output.get("file_id")}]
    return [_input_part(part) for part in output] if isinstance(output, list | tuple) else output


# -- Gemini, ADK ------------------------------------------------------------------------------------------


class _Pairs:
    """The ids of calls: a response without one belongs to the earliest open call of its name."""

    def __init__(self) -> None:
        self._open: list[tuple[str, str]] = []
        self._count = 0

    def add_call(self, name: str, id_: Any) -> str:
        self._count += 1
        self._open.append((name, str(id_ or f"{name} {self._count}")))
        return self._open[-1][1]

    def match_call(self, name: str, id_: Any) -> str:
        found = next((pair for pair in self._open if (str(id_) if id_ else name) in (pair[1], pair[0])), None)
        if found is not None:
            self._open.remove(found)
        return found[1] if found else str(id_ or name)


def of_gemini(contents: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return the messages in *contents* of Gemini."""
    found: list[Any] = []
    pairs = _Pairs()
    for each in contents:
        role = str(each.get("role") or "model")
        found += _content(each, "assistant" if role == "model" else role, pairs)
    return found


def _content(content: Mapping[str, Any], role: str, pairs: _Pairs, **own: Any) -> Iterator[Said]:
    return messages_of_parts((_part(part, pairs) for part in content.get("parts") or ()), role, **own)


def messages_of_parts(parts: Iterable[Said], role: str, **own: Any) -> Iterator[Said]:
    """Yield the messages in *parts*, some of which are messages themselves: words together, up to the next call."""
    said: list[Any] = []
    for part in parts:
        if "role" not in part:
            said.append(part)
            continue
        if said:
            yield {"role": role, "content": said, **own}
        said = []
        for one in part.get("tool_calls", ()) if "name" in own else ():
            one["agent"] = own["name"]
        yield part
    if said:
        yield {"role": role, "content": said, **own}


def _part(part: Mapping[str, Any], pairs: _Pairs) -> Said:
    """Return a part of Gemini's as one of a chat, or as a message if it is a call or a response."""
    if (called := at(part, "function_call")) is not None:
        id_ = pairs.add_call(str(called.get("name")), called.get("id"))
        return call(id_, called.get("name"), called.get("args") or {})
    if (code := at(part, "executable_code")) is not None:
        return call(pairs.add_call("code", code.get("id")), "code", {k: v for k, v in code.items() if k != "id"})
    if (ran := at(part, "code_execution_result")) is not None:
        id_, outcome = pairs.match_call("code", ran.get("id")), ran.get("outcome")
        failed = str(outcome) not in ("OUTCOME_OK", "Outcome.OUTCOME_OK")
        return result(id_, ran.get("output"), outcome if failed else None)
    if (given := at(part, "function_response")) is not None:
        id_, held = pairs.match_call(str(given.get("name")), given.get("id")), given.get("response")
        shown = [_part(each, pairs) for each in given.get("parts") or ()]
        error = held.get("error") if isinstance(held, Mapping) else None
        rest = {k: v for k, v in held.items() if k != "error"} if isinstance(held, Mapping) and error else held
        text = text_of(rest) if rest or rest == "" else ""
        return result(id_, [*([{"type": "text", "text": text}] if text else []), *shown] if shown else text, error)
    if (blob := at(part, "inline_data")) is not None:
        name = at(blob, "display_name") or ""
        data = blob.get("data")  # in the base 64 that is safe in addresses
        plain = data.replace("-", "+").replace("_", "/") if isinstance(data, str) else data
        return media(at(blob, "mime_type"), plain, name=name)
    if (file := at(part, "file_data")) is not None:
        return media(at(file, "mime_type"), url=at(file, "file_uri"), name=at(file, "display_name") or "")
    if isinstance(words := part.get("text"), str):
        return {"type": "thinking", "thinking": words} if part.get("thought") else {"type": "text", "text": words}
    return {"type": next(iter(part), "empty")}


def of_adk(events: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return the messages in *events* of ADK: a chunk that a later event has as a whole is left out."""
    found: list[Any] = []
    pairs = _Pairs()
    for event in events:
        if event.get("partial"):
            continue
        author, seconds = str(event.get("author") or "user"), event.get("timestamp")
        own: dict[str, str] = {} if author == "user" else {"name": author}
        if isinstance(seconds, int | float):
            own["time"] = datetime.fromtimestamp(seconds, UTC).isoformat()
        found += _content(event.get("content") or {}, "user" if author == "user" else "assistant", pairs, **own)
        if told := at(event, "error_message") or at(event, "error_code"):
            found.append({"role": "error", "content": str(told), **own})
        if changes := at(event.get("actions") or {}, "state_delta"):
            found.append(State(changes, time=own.get("time", "")))
    return found


def of_invocations(invocations: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return the messages in the *invocations* of a case of ADK's: what the user said, what was done, the answer."""
    events: list[Any] = []
    for each in invocations:
        between = at(each, "intermediate_data") or {}
        events.append({"author": "user", "content": at(each, "user_content")})
        events += at(between, "invocation_events") or ()
        used = [{"functionCall": one} for one in at(between, "tool_uses") or ()]
        came = [{"functionResponse": one} for one in at(between, "tool_responses") or ()]
        events.append({"author": "agent", "content": {"parts": [*used, *came]}})
        for author, parts in at(between, "intermediate_responses") or ():
            events.append({"author": author, "content": {"parts": parts}})
        events.append({"author": "agent", "content": at(each, "final_response")})
    return of_adk(events)


# -- Inspect ----------------------------------------------------------------------------------------------


def of_inspect(sample: Mapping[str, Any]) -> list[Any]:
    """Return the messages of a *sample* of Inspect's, with the runs of its sub-agents behind the calls of them."""
    kept = {f"attachment://{id_}": text for id_, text in (sample.get("attachments") or {}).items()}
    sample = _with_attachments(sample, kept) if kept else sample
    events = sample.get("events") or ()
    ran = {event.get("id"): event for event in events if event.get("event") == "tool"}
    names = {event.get("id"): event.get("name") for event in events if event.get("event") == "span_begin"}
    held = (sample.get("events_data") or {}).get("messages") or ()
    found: list[Any] = []
    for message in sample.get("messages") or ():
        found += _inspect_message(message, ran)
        for one in message.get("tool_calls") or ():
            span = ran.get(one.get("id"), {}).get("agent_span_id")
            if span is not None:
                inner = _of_span(events, span, held)
                agent = str(names.get(span) or one.get("function") or "agent")
                found.append(SubRun(agent, run_of(m for each in inner for m in _inspect_message(each, ran))))
    if sample.get("store"):
        found.append(State(thaw(sample["store"])))
    return found


def _inspect_message(message: Mapping[str, Any], ran: Mapping[Any, Any]) -> Iterator[Said]:
    content = message.get("content")
    parts = [_inspect_part(part) for part in content] if isinstance(content, list | tuple) else content
    event = ran.get(message.get("tool_call_id"), {})
    own = {"time": event.get("timestamp"), "duration": event.get("working_time")} if event else {}
    if message.get("role") == "tool":
        error = message.get("error") or {}
        yield result(message.get("tool_call_id"), parts, error.get("message") or error.get("type"), **own)
    else:
        yield {**{k: v for k, v in message.items() if k in ("role", "tool_calls")}, "content": parts}


def _inspect_part(part: Any) -> Any:
    kind = part.get("type")
    if kind in ("image", "audio", "video", "document"):
        return {"type": kind, "url": part.get(kind), "name": part.get("filename") or ""}
    return {"type": kind, "reasoning": part.get("reasoning") or part.get("summary")} if kind == "reasoning" else part


def _of_span(events: Sequence[Mapping[str, Any]], span: Any, held: Sequence[Any]) -> list[Any]:
    """Return what the models of a *span* have read and said, each message once."""
    found: dict[Any, Any] = {}
    for event in events:
        if event.get("event") == "model" and event.get("span_id") == span:
            read = [held[n] for start, end in event.get("input_refs") or () for n in range(start, min(end, len(held)))]
            said = [choice.get("message") for choice in (event.get("output") or {}).get("choices") or ()]
            for message in (*read, *(event.get("input") or ()), *said):
                found.setdefault(message.get("id") or json.dumps(thaw(message), default=str), message)
    return [*found.values()]


def _with_attachments(value: Any, kept: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return kept.get(value, value) if value.startswith("attachment://") else value
    if isinstance(value, Mapping):
        return {key: _with_attachments(each, kept) for key, each in value.items()}
    return [_with_attachments(each, kept) for each in value] if isinstance(value, list | tuple) else value
