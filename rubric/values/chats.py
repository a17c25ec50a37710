"""
Read chats as other tools write them: messages with roles, tool calls, and the results of tools.

The forms are those of OpenAI (`role`, `content`, `tool_calls`, a message of the role `tool`), of Anthropic (blocks
`tool_use` and `tool_result` in the content), of LangChain (`type`, or a serialised message) and of ShareGPT (`from`,
`value`), as mappings or as objects with the same attributes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve

from rubric.internals.frozen_map import thaw
from rubric.internals.text import shorten
from rubric.values.candidates import Candidate
from rubric.values.run_parts import answer_of
from rubric.values.runs import Event, Media, MediaKind, Message, Run, ToolCall

_SAID = frozenset({"content", "tool_calls", "function_call", "refusal"})
_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "model": "assistant", "function": "tool"}
_SPEAKERS = {
    **_ROLES,
    **dict.fromkeys(("user", "customer", "client", "caller"), "user"),
    **dict.fromkeys(("assistant", "gpt", "chatgpt", "agent", "bot", "chatbot"), "assistant"),
    "system": "system",
}
"""Who speaks in ShareGPT's chats (`from`, `value`), and in transcripts of support (`speaker`, `text`)."""

_FROM, _WORDS = ("from", "speaker", "sender", "author"), ("value", "text", "content", "message")


def text_of(value: Any) -> str:
    """Return *value* as the text that a judge reads: a text as it is, a single text in a mapping alone, else JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and len(value) == 1:
        (only,) = value.values()
        if isinstance(only, str):
            return only
    return json.dumps(thaw(value), ensure_ascii=False, default=str)


def is_chat(value: Any) -> bool:
    """True if *value* is a list of messages, in one of the forms that `chat_of` reads."""
    return isinstance(value, list | tuple) and bool(value) and all(_role(_bare(each)) for each in value)


def candidate_of_chat(
    messages: Sequence[Any], *, output: str | None = None, answers: bool = True, **fields: Any
) -> Candidate:
    """
    Return a chat as a candidate with more *fields*: a run in the order of *messages*, whose last text is the output.

    The *output* may be given beside them. Where nobody *answers*, the last words of anybody are the output.
    """
    fields, events = {"remarks": unread_in(messages), **fields}, chat_of(messages)
    run = Run(events, complete=not is_cut_short(messages))
    answer, _ = answer_of(run)
    if output is None and not answers:
        said = [n for n, each in enumerate(events) if isinstance(each, Message)][-1:]
        if said != [answer]:
            text = "".join(each.content for n in said if isinstance(each := events[n], Message))
            return Candidate(text, messages=events[: said[0]] if said else (), **fields)
    words = "" if answer is None else getattr(events[answer], "content", "")
    if output and output.strip() != words.strip():
        run = evolve(run, events=(*events, Message("assistant", output)))
    return Candidate(output, run=run, **fields)


_CUT_SHORT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "incomplete"})
"""What OpenAI, Anthropic, Mistral and OpenTelemetry call the end of a reply that ran into a limit; in small letters."""


def is_cut_short(messages: Sequence[Any]) -> bool:
    """True if the last of *messages* says that its model ran into a limit: what is not there may have come after it."""
    last = _bare(messages[-1]) if messages else None
    ends = ("finish_reason", "stop_reason", "status")
    held = [at(each, key) for each in (last, at(last, "response_metadata")) for key in ends]
    return any(isinstance(end, str) and end.lower() in _CUT_SHORT for end in held)


def fields_with_chats(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *fields* of a candidate, with chats of other tools read; an answer at their end is the output."""
    given = dict(fields)
    for name in ("messages", "tool_calls"):
        value: Any = given.get(name)
        if hasattr(value, "tolist"):  # frames of pandas hold lists as arrays
            given[name] = value.tolist()
    if not isinstance(given.get("run"), Run):  # a column of that name is about something else
        given.pop("run", None)
    messages: Any = given.get("messages")
    own: Any = tuple(calls) if isinstance(calls := given.get("tool_calls"), list | tuple) else ()  # or a frame's gap
    output: Any = given.get("output")
    if isinstance(output, list | tuple) and output and all(at(p, "type") in ("text", "output_text") for p in output):
        output = [{"role": "assistant", "content": output}]  # the parts of OpenAI's content
    has_chat = is_chat(messages)
    if has_chat:
        given["remarks"] = unread_in(messages)
    chat = messages if has_chat and output is None else output if is_chat(output) else [output]
    if not isinstance(output, str) and is_chat(chat):
        known = {name: given.pop(name) for name in ("input", "reference") if given.get(name)}
        made = candidate_of_chat(chat, **known)
        called = calls_of(own)
        before = chat_of(messages) if has_chat and chat is not messages else ()
        whole = (*before, *made.before, *called, *made.run.events[len(made.before) :])
        given = {name: value for name, value in given.items() if name not in ("messages", "tool_calls")} | known
        remarks = dict.fromkeys((*given.get("remarks", ()), *made.remarks))
        given |= {"output": None if made.unanswered else made.output, "run": evolve(made.run, events=whole)}
        given["remarks"] = remarks
    elif has_chat and not all(map(_is_own, messages)):
        given["messages"] = chat_of(messages)
    if "tool_calls" in given and any("function" in call for call in own if isinstance(call, Mapping)):
        given["tool_calls"] = calls_of(own)
    return given


def _is_own(message: Any) -> bool:
    """True if *message* has our own form; its mistakes are reported by the field."""
    has_text = isinstance(message, Mapping) and not isinstance(message.get("content"), list | tuple | None)
    is_plain = has_text and {*message} <= {"role", "content", "reference"} and message.get("role") not in _ROLES
    return isinstance(message, Message) or is_plain


def chat_of(messages: Iterable[Any]) -> tuple[Event, ...]:
    """
    Return what happened in a chat, in its order.

    A tool's result, its error and its pictures are kept with its call; a call without a result has None. A refusal has
    the role `refusal`, an empty answer is an empty message, thoughts are kept with it. *messages* may have events.
    """
    events: list[Event] = []
    calls: dict[str, list[int]] = {}
    for each in map(_bare, messages):
        if isinstance(each, Event):
            events.append(each)
            continue
        own = set[str]()  # ids are used again in later messages, and by some servers within one
        for part in _in_order(each):
            if isinstance(part, list):
                events += _events_of(each, part, events, calls)
                continue
            made = _tool_call(part[0])
            key = str(at(part[0], "id") or made.name)
            calls[key] = [*(calls[key] if key in own else ()), len(events)]
            own.add(key)
            events.append(made)
    return tuple(events)


def _in_order(message: Any) -> Iterator[list[Any] | tuple[Any]]:
    """Yield the parts of *message* up to each call, then that call alone: what it said after a call stands after it."""
    said, outer = list[Any](), _outer_calls(message)
    content = at(message, "content")
    parts: list[Any] = [*content] if isinstance(content, list | tuple) else [_text_in(content)]
    first = next((n for n, part in enumerate(parts) if not isinstance(part, str) and _is_call(part)), len(parts))
    for holder in (message, at(message, "additional_kwargs")):
        for key in _KEYS if holder is not None else ():
            held = at(holder, key)
            parts[first:first] = [
                {"type": key, key: one} for one in (held if isinstance(held, list | tuple) else [held]) if one
            ]
    for part in parts:
        if isinstance(part, str) or not _is_call(part):
            said.append(part)
            continue
        yield said
        same = next((one for one in outer if at(one, "id") == at(part, "id") is not None), part)
        outer = [one for one in outer if one is not same]  # LangChain has the calls of Anthropic twice
        yield (same,)
        said = []
    yield said
    yield from ((one,) for one in outer)


def _is_call(part: Any) -> bool:
    kind = str(at(part, "type"))
    return kind == "tool_call" or kind.endswith("tool_use")


def _events_of(message: Any, parts: list[Any], events: list[Event], calls: Mapping[str, list[int]]) -> list[Event]:
    """Return what *message* says in these *parts*; results of tools in it go to the *calls* among *events*."""
    role, orphans = _role(message), list[Event]()
    for block in parts:
        if (
            not isinstance(block, str)
            and _is_result(block)
            and not _keep_result(events, calls, at(block, "tool_use_id"), block)
        ):
            words, shown = _result_of(block)
            orphans += [Message("tool", words, media=shown)] if words or shown else []
    key = next((key for name in ("tool_call_id", "tool_name", "name") if (key := at(message, name))), "")
    if role == "tool" and _keep_result(events, calls, key, message):
        return orphans
    text = _text_in(parts)
    media = [one for part in parts for one in _media_of(part)]
    thoughts = [str(said) for p in parts if (said := at(p, str(at(p, "type")))) and at(p, "type") in _PARTS["thoughts"]]
    refusals = [
        Message("refusal", str(said)) for p in parts if at(p, "type") == "refusal" and (said := at(p, "refusal"))
    ]
    is_said = all(isinstance(part, str) or isinstance(at(part, "text"), str) for part in parts)
    is_empty_answer = role == "assistant" and is_said and not any(isinstance(p, tuple) for p in _in_order(message))
    if not (text or media or thoughts or is_empty_answer):
        return [*orphans, *refusals]
    name, reference = at(message, "name"), at(message, "reference")
    own: dict[str, Any] = {"name": name} if isinstance(name, str) and role != "tool" else {}
    own |= {"reference": reference} if isinstance(reference, str) and role == "assistant" else {}
    own |= {"time": time} if isinstance(time := at(message, "time"), str) else {}
    message = Message(role or "user", text, media=tuple(media), reasoning="\n".join(thoughts), **own)
    return [*orphans, message, *refusals]


_KEYS = ("audio", "images", "attachments", "refusal", "reasoning", "reasoning_content")
"""The keys of messages whose values are parts as well."""


def _is_result(part: Any) -> bool:
    return str(at(part, "type")).endswith("tool_result")


def _result_of(result: Any) -> tuple[str, tuple[Media, ...]]:
    """Return the text and the media of *result*, a message or a block; what a server's tool returned is JSON."""
    content = at(result, "content")
    parts = content if isinstance(content, list | tuple) else ()
    media = tuple(one for part in parts for one in _media_of(part))
    text = _text_in(content)
    if not text and parts and at(result, "type") != "tool_result" and _is_result(result):
        text = text_of(
            [{k: v for k, v in p.items() if k != "encrypted_content"} for p in parts if isinstance(p, Mapping)]
        )
    return text, media


def _keep_result(events: list[Event], calls: Mapping[str, list[int]], key: Any, result: Any) -> bool:
    """Keep *result*, a message or a block, with its call; False if there is no such call."""
    places = calls.get(str(key or ""), ())
    still_open = (n for n in places if isinstance(one := events[n], ToolCall) and one.result is None and not one.error)
    place = next(still_open, places[-1] if places else None)
    if place is None or not isinstance(call := events[place], ToolCall):
        return False
    text, media = _result_of(result)
    has_failed = bool(at(result, "is_error") or at(result, "error")) or at(result, "status") == "error"
    has_failed = has_failed or bool(at(at(result, "content"), "error_code"))
    why = at(result, "error")
    error = (text or str(at(why, "message") or why or "it failed")) if has_failed else ""
    known: dict[str, Any] = {"time": str, "duration": int | float}
    own: dict[str, Any] = {name: held for name, kind in known.items() if isinstance(held := at(result, name), kind)}
    events[place] = evolve(call, result=None if has_failed else text, error=error, media=(*call.media, *media), **own)
    return True


def _media_of(part: Any) -> list[Media]:
    """Return the picture, recording, film or document that *part* is; none if it is something else."""
    kind = str(at(part, "type"))
    found: MediaKind | None = next((medium for name, medium in _MEDIA.items() if kind in _PARTS[name]), None)
    if found is None:
        return []
    inner = [each for name in (kind, "source", "file", "image_url") if (each := at(part, name)) is not None]
    one = {key: said for key in _HELD for h in (part, *inner) if isinstance(said := at(h, key), str) and said}
    addresses = [each for each in inner if isinstance(each, str)]
    one |= {"url": addresses[0]} if addresses else {}
    mime = next((one[key] for key in ("media_type", "mime_type") if key in one), _MIMES[found] + one.get("format", ""))
    data = next((one[key] for key in ("data", "base64", "file_data") if key in one), "")
    source = at(part, "source")
    if at(source, "type") in ("text", "content"):  # a document of Anthropic's that is a text, or blocks with texts
        words = data or _text_in(at(source, "content"))
        mime, data = "text/plain", b64encode(words.encode("utf-8", "replace")).decode()
    url = f"data:{mime};base64,{data}" if data and not data.startswith("data:") else data
    address = url or next((one[key] for key in ("url", "file_url", "file_id", "id") if key in one), "unknown")
    return [Media(found, address, name=next((one[key] for key in ("filename", "title", "name") if key in one), ""))]


_HELD = (
    *("data", "base64", "file_data", "media_type", "mime_type", "format", "url", "file_url", "file_id", "id"),
    *("filename", "title", "name"),
)
_MEDIA: dict[str, MediaKind] = {"pictures": "image", "audio": "audio", "documents": "document", "videos": "video"}
_MIMES = {"image": "image/", "audio": "audio/", "video": "video/", "document": "application/pdf"}


def _outer_calls(message: Any) -> list[Any]:
    """Return the calls that *message* has beside its content."""
    legacy = at(message, "function_call")
    return [
        *(at(message, "tool_calls") or ()),
        *(at(message, "invalid_tool_calls") or ()),
        *([{"function": legacy}] if isinstance(legacy, Mapping) else ()),
    ]


_PARTS = {
    "pictures": ("image", "image_url", "input_image", "images"),
    "audio": ("audio", "input_audio", "output_audio"),
    "documents": ("file", "input_file", "document", "attachments"),
    "videos": ("video", "video_url", "input_video"),
    "thoughts": ("thinking", "redacted_thinking", "reasoning", "reasoning_content"),
    "a refusal": ("refusal",),
}
_CALLED = {kind: name for name, kinds in _PARTS.items() for kind in kinds}
"""The parts of messages, as errors and warnings name them, by their types and keys."""


def unread_in(messages: Iterable[Any]) -> tuple[str, ...]:
    """Return a remark for each kind of part of *messages* that no judge is shown: thoughts, and what is not known."""
    parts = dict.fromkeys(name for each in messages for name in _parts_of(_bare(each)))
    gone = (name for name in parts if name == "thoughts" or name not in _PARTS)
    return tuple(f"left out of the chat, and not shown to the judge: {name}" for name in gone)


def _parts_of(message: Any) -> Iterator[str]:
    """Yield what kinds of parts *message* has besides text and calls of tools; of one kind perhaps several times."""
    for holder in () if isinstance(message, Message) else (message, at(message, "additional_kwargs")):
        keys: Iterable[str] = () if holder is None else holder if isinstance(holder, Mapping) else _CALLED
        yield from (_CALLED[key] for key in keys if key in _CALLED and at(holder, key))
        if at(at(holder, "audio"), "transcript"):
            yield "the transcript of audio"
    content = at(message, "content")
    for part in content if isinstance(content, list | tuple) else ():
        kind = at(part, "type")
        if kind == "tool_result":
            yield from _parts_of(part)
        elif (
            not (_is_call(part) or _is_result(part))
            and not isinstance(part, str)
            and not isinstance(at(part, "text"), str)
        ):
            yield _CALLED.get(str(kind), f"parts of the type {shorten(repr(kind), 40)}")


def calls_of(calls: Iterable[Any]) -> tuple[ToolCall, ...]:
    """Return tool calls in OpenAI's form, or in a plain one (`name`, `arguments` or `args`, `result`)."""
    return tuple(map(_tool_call, calls))


def at(value: Any, name: str) -> Any:
    """Return the item or the attribute *name* of *value*, or None."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _bare(message: Any) -> Any:
    """Return a serialised message of LangChain's, or one of a transcript, as its fields."""
    if isinstance(message, Mapping):
        if isinstance(inner := message.get("kwargs"), Mapping) and "lc" in message:
            kind = str((message.get("id") or [""])[-1]).removesuffix("Chunk").removesuffix("Message").lower()
            return {"type": kind, **inner}
        if isinstance(inner := message.get("data"), Mapping) and "content" in inner:
            return {"type": message.get("type"), **inner}
        if message.keys().isdisjoint(("role", "type")):
            who, said = (next((message[key] for key in keys if key in message), None) for keys in (_FROM, _WORDS))
            if isinstance(said, str) and (role := _SPEAKERS.get(str(who).lower())):
                return {"role": role, "content": said}
    return message


def _role(message: Any) -> str:
    found = at(message, "role") or at(message, "type")
    says_nothing = isinstance(message, Mapping) and _SAID.isdisjoint(message.keys())
    return "" if says_nothing or not isinstance(found, str) else _ROLES.get(found, found)


def _text_in(content: Any) -> str:
    if isinstance(content, list | tuple):
        return "".join(part if isinstance(part, str) else str(at(part, "text") or "") for part in content)
    return "" if content is None else content if isinstance(content, str) else text_of(content)


def _tool_call(call: Any) -> ToolCall:
    function = at(call, "function") or at(call, "custom")
    named = function if isinstance(function, Mapping) or hasattr(function, "name") else call
    name = at(named, "name") or (function if isinstance(function, str) else "tool")
    given = at(named, "arguments") or at(call, "args") or at(call, "input") or {}
    if isinstance(words := at(at(call, "custom"), "input"), str):  # the words of a custom tool of OpenAI's are not JSON
        given = {"input": words}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = {"text": given}
    error = at(call, "error") or ("its arguments are not JSON" if at(call, "type") == "invalid_tool_call" else "")
    return ToolCall(
        str(name),
        arguments=given if isinstance(given, Mapping) else {"value": given},
        result=at(call, "result"),
        error=error if isinstance(error, str) else "",
        agent=agent if isinstance(agent := at(call, "agent"), str) else "",
    )
