"""
Read chats as other tools write them: messages with roles, tool calls, and the results of tools.

The forms are those of OpenAI (`role`, `content`, `tool_calls`, a message of the role `tool`), of Anthropic (blocks
`tool_use` and `tool_result` in the content), of LangChain (`type`, or a serialised message) and of ShareGPT (`from`,
`value`), as mappings or as objects with the same attributes. Keys may be in camel case. A call is never dropped: what
may be one and cannot be read, such as a call without a name, is refused, since a rule would be kept without it.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from attrs import evolve

from rubric.errors import DefinitionError
from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.internals.text import shorten
from rubric.values.candidates import Candidate
from rubric.values.run_parts import answer_of
from rubric.values.runs import LOST_CALL, Event, Media, MediaKind, Message, Run, ToolCall

_SAID = frozenset({"content", "tool_calls", "toolCalls", "function_call", "functionCall", "refusal"})
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
    events = chat_of(messages)
    fields = {"remarks": unread_in(messages, events), **fields}
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
        if isinstance(value, str | list | Mapping) and name in given:  # a cell of a table holds JSON
            given[name] = listed(value)
    if not isinstance(given.get("run"), Run):  # a column of that name is about something else
        given.pop("run", None)
    messages: Any = given.get("messages")
    own: Any = calls if isinstance(calls := given.get("tool_calls"), list | tuple) else ()  # or a frame's gap
    output: Any = given.get("output")
    if isinstance(output, list | tuple) and output and all(at(p, "type") in ("text", "output_text") for p in output):
        output = [{"role": "assistant", "content": output}]  # the parts of OpenAI's content
    has_chat = is_chat(messages)
    before = chat_of(messages) if has_chat else ()
    if has_chat:
        given["remarks"] = unread_in(messages, before)
    chat = messages if has_chat and output is None else output if is_chat(output) else [output]
    if not isinstance(output, str) and is_chat(chat):
        known = {name: given.pop(name) for name in ("input", "reference") if given.get(name)}
        made = candidate_of_chat(chat, **known)
        called = calls_of(own)
        whole = (*(before if chat is not messages else ()), *made.before, *called, *made.run.events[len(made.before) :])
        given = {name: value for name, value in given.items() if name not in ("messages", "tool_calls")} | known
        remarks = dict.fromkeys((*given.get("remarks", ()), *made.remarks))
        given |= {"output": None if made.unanswered else made.output, "run": evolve(made.run, events=whole)}
        given["remarks"] = remarks
    elif has_chat and not all(map(_is_own, messages)):
        given["messages"] = before
    if "tool_calls" in given and any({"function", "toolName"} & {*call} for call in own if isinstance(call, Mapping)):
        given["tool_calls"] = calls_of(own)
    return given


def _is_own(message: Any) -> bool:
    """True if *message* has our own form; its mistakes are reported by the field."""
    has_text = isinstance(message, Mapping) and not isinstance(message.get("content"), list | tuple | None)
    is_plain = (
        has_text and {*message} <= {"role", "content", "reference"} and message.get("role") not in {*_ROLES, "tool"}
    )
    return isinstance(message, Message) or is_plain


def chat_of(messages: Iterable[Any]) -> tuple[Event, ...]:
    """
    Return what happened in a chat, in its order.

    A tool's result, its error and its pictures are kept with its call; a call without a result has None. A refusal has
    the role `refusal`, an empty answer is an empty message, thoughts are kept with it. *messages* may have events.
    """
    events: list[Event] = []
    calls: dict[str, list[int]] = {}
    for number, each in enumerate(map(_bare, messages)):
        if isinstance(each, Event):
            events.append(each)
            continue
        try:
            _add_events(events, each, calls)
        except DefinitionError as problem:
            where = f"messages[{number}]{'.' if problem.field else ''}{problem.field}"
            raise DefinitionError(where, problem.message) from None
    return tuple(events)


def _add_events(events: list[Event], message: Any, calls: dict[str, list[int]]) -> None:
    own = set[str]()  # ids are used again in later messages, and by some servers within one
    for part in _in_order(message):
        if isinstance(part, list):
            events += _events_of(message, part, events, calls)
            continue
        made = _tool_call(part[0])
        for key in {str(_id_of(part[0]) or ""), made.name}:
            calls[key] = [*(calls[key] if key in own else ()), len(events)]
            own.add(key)
        events.append(made)


def _in_order(message: Any) -> Iterator[list[Any] | tuple[Any]]:
    """Yield the parts of *message* up to each call, then that call alone: what it said after a call stands after it."""
    said, outer = list[Any](), _outer_calls(message)
    content = at(message, "content")
    parts: list[Any] = [*map(_part, content)] if isinstance(content, list | tuple) else [_text_in(content)]
    _refuse_unread_calls(message, parts)
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
        same = next((one for one in outer if _id_of(one) == _id_of(part) is not None), part)
        outer = [one for one in outer if one is not same]  # LangChain has the calls of Anthropic twice
        yield (same,)
        said = []
    yield said
    yield from ((one,) for one in outer)


def _is_call(part: Any) -> bool:
    return _kind(part).endswith(("tool_call", "tool_use"))


def _kind(part: Any) -> str:
    return str(at(part, "type")).replace("-", "_")  # the AI SDK of Vercel has hyphens


def _id_of(call: Any) -> Any:
    return next((id_ for key in ("id", "tool_call_id", "tool_use_id") if (id_ := at(call, key)) is not None), None)


def _part(part: Any) -> Any:
    """Return a *part* that is named by its only key, as Bedrock has them, with that as its type."""
    for kind in ("tool_use", "tool_result") if isinstance(part, Mapping) and "type" not in part else ():
        if isinstance(inner := at(part, kind), Mapping):
            return {**inner, "type": kind}
    return part


_CALLS = re.compile("(?i)(?:call|invocation|tool_?use)s?$")
_READ = frozenset({"tool_calls", "toolCalls", "function_call", "functionCall", "invalid_tool_calls"})


def _refuse_unread_calls(message: Any, parts: Iterable[Any]) -> None:
    """Refuse what may be a call and is not read as one: a rule that forbids the call would be kept without it."""
    items = message.items() if isinstance(message, Mapping) else ()
    held = {key for key, value in items if isinstance(value, list | Mapping) and value} - _READ
    kinds = {_kind(part) for part in parts if not (isinstance(part, str) or _is_call(part) or _is_result(part))}
    for name in filter(_CALLS.search, sorted({*map(str, held), *kinds})):
        said = f"the {'part of the type' if name in kinds else 'key'} {name!r} may hold calls of tools, and is not read"
        raise DefinitionError("", f"{said}; put them into tool_calls, as a list of {{id, name, arguments}}")


def _events_of(message: Any, parts: list[Any], events: list[Event], calls: Mapping[str, list[int]]) -> list[Event]:
    """Return what *message* says in these *parts*; results of tools in it go to the *calls* among *events*."""
    role, orphans = _role(message), list[Event]()
    results = [part for part in parts if not isinstance(part, str) and _is_result(part)]
    for result in results or ([message] if role == "tool" else []):
        names = ("tool_use_id", "tool_call_id", "tool_name", "name")
        key = next((key for name in names if (key := at(result, name))), "")
        if not _keep_result(events, calls, key, result):
            is_lost = key or not any(map(_is_open, events))
            text, shown = _result_of(result)
            lost = FrozenMap({LOST_CALL: str(key)} if is_lost else {})
            orphans.append(Message("tool", text, media=shown, metadata=lost))
    if role == "tool":
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
    return _kind(part).endswith("tool_result")


def _result_of(result: Any) -> tuple[str, tuple[Media, ...]]:
    """Return the text and the media of *result*, a message or a block; what a server's tool returned is JSON."""
    content = next((held for key in ("content", "result", "output") if (held := at(result, key)) is not None), None)
    content = at(content, "value") if at(content, "type") in ("text", "json") and at(content, "value") else content
    parts = content if isinstance(content, list | tuple) else ()
    media = tuple(one for part in parts for one in _media_of(part))
    text = _text_in(content)
    if not text and parts and at(result, "type") != "tool_result" and _is_result(result):
        text = text_of(
            [{k: v for k, v in p.items() if k != "encrypted_content"} for p in parts if isinstance(p, Mapping)]
        )
    return text, media


def _is_open(event: Event) -> bool:
    return isinstance(event, ToolCall) and event.result is None and not (event.error or event.media)


def _keep_result(events: list[Event], calls: Mapping[str, list[int]], key: Any, result: Any) -> bool:
    """Keep *result*, a message or a block, with its call, or the only open one without an id; False if none fits."""
    places = calls.get(str(key), ()) if key else ()
    among = places or (calls.get("", ()) if key else sorted({n for held in calls.values() for n in held}))
    still_open = [n for n in among if _is_open(events[n])]
    place = next(iter(still_open if places or len(still_open) == 1 else ()), places[-1] if places else None)
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
    legacy = listed(at(message, "function_call"))
    return [
        *listed(at(message, "tool_calls")),
        *listed(at(message, "invalid_tool_calls")),
        *({"function": one} for one in legacy),
    ]


def listed(value: Any) -> list[Any]:
    """Return what *value* lists: it may be one thing alone, and JSON in a text, as may be each thing in it."""
    value = _parsed(value.tolist() if hasattr(value, "tolist") else value)
    if not value or (isinstance(value, str) and not value.strip()):
        return []
    return [*map(_parsed, value)] if isinstance(value, list | tuple) else [value]


def _parsed(value: Any) -> Any:
    """Return the list or the mapping in a text in JSON; any other *value* as it is."""
    with suppress(ValueError, RecursionError):
        made = json.loads(value) if isinstance(value, str) else value
        return made if isinstance(made, list | dict | None) else value
    return value


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


def unread_in(messages: Iterable[Any], events: Sequence[Event]) -> tuple[str, ...]:
    """
    Return a remark for each kind of part of *messages* that no judge is shown: thoughts, and what is not known.

    There is one too for each result without a call among their *events*, and for each call without a result where
    others have one and something comes after it.
    """
    calls = [each for each in events if isinstance(each, ToolCall)]
    open_calls = [each for each in calls if _is_open(each)]
    missing = dict.fromkeys(each.name for each in open_calls if len(open_calls) < len(calls) and each is not events[-1])
    parts = dict.fromkeys(name for each in messages for name in _parts_of(_bare(each)))
    gone = (name for name in parts if name == "thoughts" or name not in _PARTS)
    left = (f"left out of the chat, and not shown to the judge: {name}" for name in gone)
    lost = dict.fromkeys(e.metadata[LOST_CALL] for e in events if isinstance(e, Message) and LOST_CALL in e.metadata)
    orphans = (
        f"the log has no call for the result of {key!r}, so one is missing, and no rule is kept by what is not there"
        for key in lost
    )
    return (*left, *orphans, *(f"the log has no result of a call of {name!r}, but those of others" for name in missing))


def _parts_of(message: Any) -> Iterator[str]:
    """Yield what kinds of parts *message* has besides text and calls of tools; of one kind perhaps several times."""
    for holder in () if isinstance(message, Message) else (message, at(message, "additional_kwargs")):
        keys: Iterable[str] = () if holder is None else holder if isinstance(holder, Mapping) else _CALLED
        yield from (_CALLED[key] for key in keys if key in _CALLED and at(holder, key))
        if at(at(holder, "audio"), "transcript"):
            yield "the transcript of audio"
    content = at(message, "content")
    for part in map(_part, content) if isinstance(content, list | tuple) else ():
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
    """Return the item or the attribute *name* of *value*, of an item also in camel case; else None."""
    if not isinstance(value, Mapping):
        return getattr(value, name, None)
    found = value.get(name)
    return value.get(_in_camel_case(name)) if found is None and "_" in name else found


@cache
def _in_camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


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
    held = message.keys() if isinstance(message, Mapping) else {name for name in _SAID if hasattr(message, name)}
    says_nothing = _SAID.isdisjoint(held)
    return "" if says_nothing or not isinstance(found, str) else _ROLES.get(found, found)


def _text_in(content: Any) -> str:
    if isinstance(content, list | tuple):
        return "".join(part if isinstance(part, str) else str(at(part, "text") or "") for part in content)
    return "" if content is None else content if isinstance(content, str) else text_of(content)


def _tool_call(call: Any) -> ToolCall:
    function = _parsed(at(call, "function") or at(call, "custom"))
    named = function if isinstance(function, Mapping) or hasattr(function, "name") else call
    name = at(named, "name") or at(named, "tool_name") or function
    if not isinstance(name, str) or not name.strip():
        raise DefinitionError("tool_calls", f"expected a call with a name, got {shorten(repr(thaw(call)), 80)}")
    keys = ((named, "arguments"), (call, "args"), (call, "input"), (named, "parameters"))
    given: Any = next((held for holder, key in keys if (held := at(holder, key))), {})
    is_words = isinstance(words := at(at(call, "custom"), "input"), str)  # those of a custom tool are not JSON
    given = {"input": words} if is_words else _parsed(given)
    is_invalid = _kind(call).startswith("invalid")
    if isinstance(given, str):
        if given[:1] in ("{", "[") and not is_invalid:
            said = f"the arguments of {name!r} are no JSON, or cut off: {shorten(repr(given), 60)}; mend them, or, if"
            raise DefinitionError("tool_calls", f"{said} the model wrote so, give the call type='invalid_tool_call'")
        given = {"text": given}
    error = at(call, "error") or ("its arguments are not JSON" if is_invalid else "")
    return ToolCall(
        str(name),
        arguments=given if isinstance(given, Mapping) else {"value": given},
        result=at(call, "result"),
        error=error if isinstance(error, str) else "",
        agent=agent if isinstance(agent := at(call, "agent"), str) else "",
    )
