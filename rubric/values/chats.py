"""
Read chats as other tools write them: messages with roles, tool calls, and the results of tools.

The forms are those of OpenAI (`role`, `content`, `tool_calls`, a message of the role `tool`), of Anthropic (blocks
`tool_use` and `tool_result` in the content) and of LangChain (`type`, or a serialised message), as mappings or as
objects with the same attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve

from rubric.errors import DefinitionError
from rubric.internals.frozen_map import thaw
from rubric.internals.text import shorten
from rubric.values.candidates import Candidate, Message, ToolCall

_SAID = frozenset({"content", "tool_calls", "function_call", "refusal"})
_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "model": "assistant", "function": "tool"}


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
    Return a chat as a candidate: its last message is the output, those before it are the conversation.

    The last message of the user is the input, unless *fields* has one; tool calls are kept.

    Args:
        output: The last answer, which *messages* may hold or not; None takes their last message.
        answers: Whether the last message must be an answer.
        fields: Of the candidate.

    Raises:
        DefinitionError: It *answers*, and the last message is not of the assistant, or has no text.
    """
    if output is not None:
        last = {"role": "assistant", "content": output or "-"}  # an empty one would not be told from what came before
        whole = messages if ends_with(messages, output) else [*messages, last]
        return evolve(candidate_of_chat(whole, **fields), output=output)
    if answers and (why := why_unanswered(messages)):
        raise DefinitionError("output", why)
    said, calls = chat_of(messages)
    before = said[:-1]
    fields = {"remarks": unread_in(messages), **fields}
    if said and said[-1].reference:
        fields = {"reference": said[-1].reference, **fields}
    asked = before and before[-1].role == "user"
    if asked and not fields.get("input"):
        fields["input"], before = before[-1].content, before[:-1]
    elif asked and fields["input"] == before[-1].content:
        before = before[:-1]
    return Candidate(said[-1].content if said else "", messages=before, tool_calls=calls, **fields)


def why_unanswered(messages: Sequence[Any]) -> str:
    """
    Return why the last of *messages* is no answer that can be graded; '' if it is one.

    Only words of the assistant are an answer, and only those of its last message: what others said, or what it said
    before it called a tool, never stands in for them.
    """
    last = _bare(messages[-1]) if messages else None
    if (role := _role(last)) != "assistant":
        return f"is not there, and the last of messages is no answer, but of the {role or 'nobody'}"
    if _text_in(at(last, "content")).strip():
        return ""
    held = ", ".join(_unread_of(last)) or ("a call of a tool" if _calls_in(last) else "nothing")
    return (
        f"is not there: the last answer of the chat has no text, but {held}; "
        'give {"output": "", "messages": chat} to grade the run without an answer, or its text as the output'
    )


def fields_with_chats(fields: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the *fields* of a candidate, with the chats of other tools read.

    The output may be a message or a chat. Where it is missing and `messages` end with an answer, that is the output.

    Raises:
        DefinitionError: There is no output, and the last message is no answer with a text.
    """
    given = dict(fields)
    for name in ("messages", "tool_calls"):
        value: Any = given.get(name)
        if hasattr(value, "tolist"):  # frames of pandas hold lists as arrays
            given[name] = value.tolist()
    messages: Any = given.get("messages")
    output = given.get("output")
    has_chat = is_chat(messages)
    if has_chat:
        given["remarks"] = unread_in(messages)
    if has_chat and (output is None or ends_with(messages, output, given.get("input"))):
        output = given.pop("messages")
    elif has_chat and not all(map(_is_own, messages)):
        is_text = isinstance(output, str) and bool(output.strip())
        said, calls = chat_of([*messages, {"role": "assistant", "content": output}] if is_text else messages)
        given["messages"] = said[:-1] if is_text else said
        given["tool_calls"] = (*calls, *_own_calls(given))
    if output is not None and not isinstance(output, str):
        chat = output if is_chat(output) else [output]
        if is_chat(chat):
            known = {name: given[name] for name in ("input", "reference") if given.get(name)}
            made = candidate_of_chat(chat, **known)
            before = given["messages"] if is_chat(given.get("messages")) else ()
            given |= {"output": made.output, "input": made.input, "messages": (*before, *made.messages)}
            given |= {"reference": made.reference, "tool_calls": (*_own_calls(given), *made.tool_calls)}
            given["remarks"] = dict.fromkeys((*given.get("remarks", ()), *made.remarks))
    if any("function" in call for call in _own_calls(given) if isinstance(call, Mapping)):
        given["tool_calls"] = calls_of(given["tool_calls"])
    return given


def ends_with(messages: Iterable[Any], output: Any, asked: Any = None) -> bool:
    """True if the last of *messages* is the answer *output*, to what the user *asked* last; it is one turn."""
    said, asked = chat_of(messages)[0], asked if isinstance(asked, str) else ""
    return isinstance(output, str) and len(Candidate(output, input=asked, messages=said).messages) < len(said)


def _own_calls(fields: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the tool calls that *fields* have; a missing value of a frame is none."""
    calls = fields.get("tool_calls")
    return tuple(calls) if isinstance(calls, list | tuple) else ()


def _is_own(message: Any) -> bool:
    """True if *message* has our own form; its mistakes are reported by the field."""
    has_text = isinstance(message, Mapping) and not isinstance(message.get("content"), list | tuple | None)
    is_plain = has_text and {*message} <= {"role", "content", "reference"} and message.get("role") not in _ROLES
    return isinstance(message, Message) or is_plain


def chat_of(messages: Iterable[Any]) -> tuple[tuple[Message, ...], tuple[ToolCall, ...]]:
    """
    Return the messages and the tool calls of a chat.

    A tool's result is kept with its call; a call without a result has None. A call before an earlier answer than the
    last one has the number of that answer.
    """
    said: list[Message] = []
    calls: dict[str, ToolCall] = {}
    turns: dict[str, int] = {}
    answers = 0
    for each in map(_bare, messages):
        content = at(each, "content")
        for call in _calls_in(each):
            key = str(at(call, "id") or f"call {len(calls)}")
            calls[key], turns[key] = _tool_call(call), answers + 1
        for block in _blocks(each, "tool_result"):
            _keep_result(calls, at(block, "tool_use_id"), _text_in(at(block, "content")))
        role, text = _role(each), _text_in(content)
        kept = role == "tool" and _keep_result(calls, at(each, "tool_call_id"), text)
        if text and not kept:
            reference = at(each, "reference") if role == "assistant" else ""
            said.append(Message(role or "user", text, reference=reference if isinstance(reference, str) else ""))
            answers += role == "assistant" and bool(text.strip())
    return tuple(said), tuple(evolve(c, turn=turns[key]) if turns[key] < answers else c for key, c in calls.items())


def _blocks(message: Any, *kinds: str) -> list[Any]:
    """Return the parts of *message* that are of *kinds*."""
    content = at(message, "content")
    return [part for part in content if at(part, "type") in kinds] if isinstance(content, list | tuple) else []


def _calls_in(message: Any) -> list[Any]:
    legacy = at(message, "function_call")
    return [
        *(at(message, "tool_calls") or ()),
        *_blocks(message, "tool_use"),
        *([{"function": legacy}] if isinstance(legacy, Mapping) else ()),
    ]


_KINDS = {
    "pictures": ("image", "image_url", "input_image", "images"),
    "audio": ("audio", "input_audio", "output_audio"),
    "documents": ("file", "input_file", "document", "attachments"),
    "videos": ("video", "video_url", "input_video"),
    "thoughts": ("thinking", "redacted_thinking", "reasoning", "reasoning_content"),
    "a refusal": ("refusal",),
    "the error of a tool": ("is_error", "error"),
    "names of speakers": ("name",),
    "calls of tools that are no JSON": ("invalid_tool_calls",),
}
_CALLED = {kind: name for name, kinds in _KINDS.items() for kind in kinds}
"""The parts of messages that no judge is shown, as the warnings name them, by their types and keys."""


def unread_in(messages: Iterable[Any]) -> tuple[str, ...]:
    """Return a remark for each kind of part of *messages* that a candidate does not hold."""
    found = dict.fromkeys(name for each in messages for name in _unread_of(_bare(each)))
    return tuple(f"left out of the chat, and not shown to the judge: {name}" for name in found)


def _unread_of(message: Any) -> Iterator[str]:
    """Yield what kinds of parts *message* has besides text and calls of tools; of one kind perhaps several times."""
    extra = at(message, "additional_kwargs")
    for holder in (message, extra):
        for key in () if isinstance(message, Message) else _CALLED:
            is_speaker = key != "name" or _role(message) in ("user", "assistant")
            if at(holder, key) and is_speaker:
                yield _CALLED[key]
    if at(message, "status") == "error":
        yield _CALLED["is_error"]
    content = at(message, "content")
    for part in content if isinstance(content, list | tuple) else ():
        kind = at(part, "type")
        if kind == "tool_result":
            yield from _unread_of(part)
        elif kind != "tool_use" and not isinstance(part, str) and not isinstance(at(part, "text"), str):
            yield _CALLED.get(str(kind), f"parts of the type {shorten(repr(kind), 40)}")


def _keep_result(calls: dict[str, ToolCall], key: Any, result: str) -> bool:
    """Keep *result* with its call; False if there is no such call."""
    call = calls.get(str(key or ""))
    if call is not None:
        calls[str(key)] = evolve(call, result=result)
    return call is not None


def calls_of(calls: Iterable[Any]) -> tuple[ToolCall, ...]:
    """Return tool calls in OpenAI's form, or in a plain one (`name`, `arguments` or `args`, `result`)."""
    return tuple(map(_tool_call, calls))


def at(value: Any, name: str) -> Any:
    """Return the item or the attribute *name* of *value*, or None."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _bare(message: Any) -> Any:
    """Return a serialised message of LangChain's as its fields."""
    if isinstance(message, Mapping):
        if isinstance(inner := message.get("kwargs"), Mapping) and "lc" in message:
            kind = str((message.get("id") or [""])[-1]).removesuffix("Chunk").removesuffix("Message").lower()
            return {"type": kind, **inner}
        if isinstance(inner := message.get("data"), Mapping) and "content" in inner:
            return {"type": message.get("type"), **inner}
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
    function = at(call, "function")
    named = function if isinstance(function, Mapping) or hasattr(function, "name") else call
    name = at(named, "name") or (function if isinstance(function, str) else "tool")
    given = at(named, "arguments") or at(call, "args") or at(call, "input") or {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = {"text": given}
    result = at(call, "result")
    return ToolCall(str(name), arguments=given if isinstance(given, Mapping) else {"value": given}, result=result)
