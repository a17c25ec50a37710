"""
Read chats as other tools write them: messages with roles, tool calls, and the results of tools.

The forms are those of OpenAI (`role`, `content`, `tool_calls`, a message of the role `tool`), of Anthropic (blocks
`tool_use` and `tool_result` in the content) and of LangChain (`type`, or a serialised message), as mappings or as
objects with the same attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve

from rubric.errors import DefinitionError
from rubric.internals.frozen_map import thaw
from rubric.values.candidates import Candidate, Message, ToolCall

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


def candidate_of_chat(messages: Iterable[Any], **fields: Any) -> Candidate:
    """
    Return a chat as a candidate: its last message is the output, those before it are the conversation.

    The last message of the user is the input, unless *fields* has one; tool calls are kept.
    """
    said, calls = chat_of(messages)
    before = said[:-1]
    if said and said[-1].reference:
        fields = {"reference": said[-1].reference, **fields}
    asked = before and before[-1].role == "user"
    if asked and not fields.get("input"):
        fields["input"], before = before[-1].content, before[:-1]
    elif asked and fields["input"] == before[-1].content:
        before = before[:-1]
    return Candidate(said[-1].content if said else "", messages=before, tool_calls=calls, **fields)


def fields_with_chats(fields: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the *fields* of a candidate, with the chats of other tools read.

    The output may be a message or a chat. Where it is missing and `messages` end with an answer, that is the output.

    Raises:
        DefinitionError: There is no output, and the last message is none.
    """
    given = dict(fields)
    for name in ("messages", "tool_calls"):
        value: Any = given.get(name)
        if hasattr(value, "tolist"):  # frames of pandas hold lists as arrays
            given[name] = value.tolist()
    messages: Any = given.get("messages")
    output = given.get("output")
    if output is None and is_chat(messages):
        if (last := _role(_bare(messages[-1]))) in ("user", "system", "developer", "tool"):
            raise DefinitionError("output", f"is not there, and the last of messages is no answer, but of the {last}")
        output = given.pop("messages")
    elif is_chat(messages) and ends_with(messages, output, given.get("input")):
        output = given.pop("messages")
    elif is_chat(messages) and not all(map(_is_own, messages)):
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
    return isinstance(message, Message) or (has_text and {*message} <= {"role", "content", "reference"})


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
        blocks = content if isinstance(content, list | tuple) else ()
        used = [block for block in blocks if at(block, "type") == "tool_use"]
        for call in (*(at(each, "tool_calls") or ()), *used):
            key = str(at(call, "id") or f"call {len(calls)}")
            calls[key], turns[key] = _tool_call(call), answers + 1
        returned = [block for block in blocks if at(block, "type") == "tool_result"]
        for block in returned:
            _keep_result(calls, at(block, "tool_use_id"), _text_in(at(block, "content")))
        role, text = _role(each), _text_in(content)
        kept = role == "tool" and _keep_result(calls, at(each, "tool_call_id"), text)
        if text and not kept:
            reference = at(each, "reference") if role == "assistant" else ""
            said.append(Message(role or "user", text, reference=reference if isinstance(reference, str) else ""))
            answers += role == "assistant" and bool(text.strip())
    return tuple(said), tuple(evolve(c, turn=turns[key]) if turns[key] < answers else c for key, c in calls.items())


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
    has_text = isinstance(message, Mapping) and not {"content", "tool_calls"} & message.keys()
    return "" if has_text or not isinstance(found, str) else _ROLES.get(found, found)


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
