"""The case of a suite that was meant by one in a file that cannot be read: all its mistakes mended at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from typing import Any

from rubric.errors import DefinitionError
from rubric.formats.fields import write
from rubric.formats.native.meant import Read, are_rows, name_in, reads
from rubric.internals.guesses import kind_in_files, word_cure
from rubric.runs.messages import run_of

_TEXTS = ("input", "output", "reference")
_FIELDS = {
    "messages": "conversation chat dialogue dialog history chat_history transcript",
    "rubric": "scorer scorers metric metrics grader graders evaluator evaluators",
    "runs": "epochs repeat repeats trials n num_runs",
    "images": "image picture pictures",
}
_ASSERTED = ("assert", "asserts", "assertions", "expect", "expects", "checks", "criteria", "evaluation_steps")
_NOTES = ("description", "comment", "comments", "note", "notes", "author", "owner")


def meant_case(
    data: Any, read: Read, keys: Collection[str], criterion: Callable[[Any], dict[str, Any] | None]
) -> dict[str, Any] | None:
    """
    Return the case that *data* is meant for, or None; *read* takes it.

    Args:
        data: What stands for a case.
        read: Reads a case, or raises.
        keys: Those that a case has.
        criterion: Returns the criterion that is meant by a mapping, or None.
    """
    if not isinstance(data, dict):
        return None
    found = dict[str, Any]()
    if isinstance(data.get("description"), str) and not data.keys() & {"id", "name", "metadata"}:
        data = {"id" if key == "description" else key: value for key, value in data.items()}
    for key, value in data.items():
        try:
            part = _part(str(key), value, keys, criterion)
        except (TypeError, DefinitionError):  # what cannot be read, such as a text that a comment cuts, or a call
            return None
        if part is None or part.keys() & found.keys():
            return None
        found |= part
    messages: Any = found.get("messages")
    is_whole = isinstance(messages, list) and len(messages) > 1 and messages[-1].get("role") == "assistant"
    if is_whole and not {"output", "turns"} & found.keys():  # the answer is graded
        found = found | {"messages": messages[:-1], "output": messages[-1].get("content")}
        if len(messages) == 2 and "input" not in found and messages[0].get("role") == "user":  # noqa: PLR2004 - both
            found = {"input": found.pop("messages")[0].get("content"), **found}
    mended = ({"id": found.pop("id")} if "id" in found else {}) | found
    return mended if reads(read, mended) else None


def _part(
    key: str, value: Any, keys: Collection[str], criterion: Callable[[Any], dict[str, Any] | None]
) -> dict[str, Any] | None:
    """Return the field, or the fields, that a *key* with its *value* stands for; None if it stands for none."""
    if kind_in_files(value) == "verdict" and key not in keys:
        return None
    if key in _ASSERTED or (key == "metrics" and isinstance(value, list)):
        rows = [_asserted(each, criterion) for each in (value if isinstance(value, list) else [value])]
        return None if None in rows else {"rubric": rows}
    if key in _NOTES and isinstance(value, str):
        return {"metadata": {key: value}}
    name = key if key in keys else next((name for name, words in _FIELDS.items() if key in words.split()), "")
    name = name or name_in(word_cure("keys", "Case", key, keys))
    if name in _TEXTS and isinstance(value, list) and all(isinstance(each, str) for each in value):
        return None  # several answers, or the paragraphs of one
    listed: list[dict[Any, Any]] = value if are_rows(value) else []
    if name == "rubric" and not isinstance(value, str):
        return {name: _rubric(value, criterion)}
    if key.endswith("_file") and isinstance(value, str) and key.removesuffix("_file") in (*_TEXTS, "context"):
        return {key.removesuffix("_file"): f"file://{value.removeprefix('file://')}"}
    if listed and name in ("input", "messages", "turns", "run"):
        return _chat(name, listed)
    return {name: _value(name, value)} if name else None


def _rubric(value: Any, criterion: Callable[[Any], dict[str, Any] | None]) -> Any:
    """Return the *value* of a rubric with the criteria that are meant."""
    rows = value.get("criteria") if isinstance(value, dict) else value
    mended = [criterion(each) or each if isinstance(each, dict) else each for each in rows or ()]
    return mended if value is rows else {**value, "criteria": mended} if mended else value


def _chat(name: str, listed: list[dict[Any, Any]]) -> dict[str, Any] | None:
    """Return the field that messages *listed* under a *name* stand for; None if they are none."""
    if name == "run":
        events = [_event(part) for each in listed for part in _apart(each)]
        return None if None in events else {name: events}
    if name == "messages" and any("tool_calls" in each for each in listed):
        return {"run": write(run_of(map(_with_functions, listed)))}
    said = [_message(part) for each in listed for part in _apart(each)]
    if name == "turns" and all(each.keys() <= {"input", "reference"} for each in listed):
        return {name: listed}
    if any(each is None for each in said):
        return None
    is_asked = name == "turns" and all(each["role"] == "user" for each in said if each)
    return {"turns": [each["content"] for each in said if each]} if is_asked else {"messages": said}


def _asserted(data: Any, criterion: Callable[[Any], dict[str, Any] | None]) -> Any:
    """Return the criterion that an assertion of promptfoo, or one of ours, stands for; None if it stands for none."""
    if not isinstance(data, dict):
        return data if isinstance(data, str) else None
    if data.get("type") == "llm-rubric" and data.keys() == {"type", "value"}:
        return data["value"]
    return criterion(data)


def _event(data: dict[Any, Any]) -> dict[str, Any] | None:
    """Return the message, or the call, that an event of a run stands for; None if it is another one."""
    tool = next((key for key in ("tool", "call", "function", "tool_call") if isinstance(data.get(key), str)), "")
    if tool:
        return dict(_call({("name" if key == tool else key): value for key, value in data.items()}))
    return data if data.keys() & {"name", "state", "run", "role"} else _message(data)


def _with_functions(message: dict[Any, Any]) -> dict[Any, Any]:
    """Return a *message* whose calls are written as vendors write them."""
    calls = message.get("tool_calls") or []
    return {**message, "tool_calls": [each if "function" in each else {"function": each} for each in calls]}


def _apart(data: dict[Any, Any]) -> list[dict[Any, Any]]:
    """Return what is said in a turn, `{user: Hi, assistant: Hello}`, by each."""
    return [{role: text} for role, text in data.items()] if data.keys() <= _ROLES.keys() else [data]


_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "system": "system"}


def _message(data: dict[Any, Any]) -> dict[str, Any] | None:
    """Return a message with its role and its content, also of `{user: Hi}`; None for anything else."""
    if {"role", "content"} <= data.keys():
        return data
    role, text = next(iter(data.items()))
    return {"role": _ROLES[role], "content": text} if len(data) == 1 and role in _ROLES else None


def _value(name: str, value: Any) -> Any:
    """Return the *value* of the field called *name* in the form that files have."""
    if name in _TEXTS and not isinstance(value, str):
        texts = [*value.values()] if isinstance(value, dict) else []
        return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else json.dumps(value, ensure_ascii=False)
    if name == "id" and isinstance(value, int):
        return str(value)
    if name == "context" and isinstance(value, dict):
        return [f"{key}: {text}" for key, text in value.items()]
    if name == "tags" and isinstance(value, str):
        return [each for each in re.split(r"[,\s]+", value) if each]
    if name == "images":
        files = [value] if isinstance(value, str) else value
        return [each if re.match(r"\w+:", str(each)) else f"file://{each}" for each in files]
    if name == "tool_calls" and isinstance(value, list):
        return [_call(each) for each in value]
    return value


def _call(data: Any) -> Any:
    known = ("name", "arguments", "result", "error")
    if isinstance(data, dict):
        words = {key: name_in(word_cure("keys", "ToolCall", str(key), known)) or key for key in data}
        words |= {key: "arguments" for key in data if str(key).endswith("parameters")}
        return {(key if key in known else words[key]): value for key, value in data.items()}
    return {"name": data} if isinstance(data, str) else data
