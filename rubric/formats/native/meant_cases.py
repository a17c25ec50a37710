"""The case of a suite that was meant by one in a file that cannot be read: all its mistakes mended at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Any

from rubric.errors import DefinitionError
from rubric.formats.document import KeyPath
from rubric.formats.fields import KEYS, MOST, SeveralError, UnknownKeyError, WrongKeyError, problems_of, write
from rubric.formats.native.meant import Read, are_rows, field_of, name_in, reads
from rubric.formats.yaml import short_line
from rubric.internals.guesses import key_cure, kind_in_files, roles
from rubric.runs.messages import run_of
from rubric.values.runs import Message, ToolCall

Problems = list[tuple[KeyPath, DefinitionError]]

_TEXTS = ("input", "output", "reference")
_BESIDE = ("assert", "asserts", "assertions", "expect", "expects", "checks", "extra_criteria", "additional_criteria")
"""The words for what a case must hold beside what all cases do."""
_ASSERTED = (*_BESIDE, "criteria", "evaluation_steps")
THRESHOLDS = ("threshold", "pass_threshold", "passing_score", "min_score", "pass_mark")
"""The words for the threshold of a rubric, where they stand beside it."""

_WHOLE = {"candidate", "test_case", "case", "sample", "example"}
_NOTES = ("description", "comment", "comments", "note", "notes", "author", "owner")


def under_meant_keys(found: Problems, data: dict[Any, Any], read: Read, rounds: int = 3) -> Problems:
    """
    Return the problems *found* in *data*, a suite, as *read* has them once each key is the one that it is a word for.

    What the other key cures elsewhere is not told, and what it brings there is.
    """
    known, typed, apart = data, dict[KeyPath, UnknownKeyError](), Problems()
    unknown = [(path, error) for path, error in found[:MOST] if isinstance(error, UnknownKeyError)]
    unknown = [(path, error) for path, error in unknown if error.meant or "write defaults: {" in error.cure]
    depth = min((len(path) for path, _ in unknown), default=0)
    for path, error in unknown if rounds else ():  # a file may have unknown keys without end
        *within, _ = path
        if len(path) != depth or tuple(within) not in ((), ("defaults",), ("cases", *within[1:])):
            continue  # what a suite's own key brings may be another problem of its cases
        shared, moved = known.get("defaults", {}), re.search(r"^; (.*write )defaults: \{(\w+): ", error.cure)
        if moved and isinstance(shared, dict) and isinstance(error.value, dict) and moved[2] not in shared:
            shared = {"defaults": {**shared, moved[2]: error.value}}
            known = {key: value for key, value in known.items() if key != error.key} | shared
            line = short_line(shared)[1:-1]
            apart.append((path, WrongKeyError("", f"unknown key; {moved[1]}{line}") if line else error))
        elif error.meant and error.meant not in reduce(getitem, within, known):
            typed[*within, error.meant] = error
            known = _with_key(known, within, error.key, error.meant)
    if not (typed or apart):
        return found
    rest: Problems = []
    try:
        read(known)
    except (DefinitionError, SeveralError) as again:
        rest = under_meant_keys(problems_of(again), known, read, rounds - 1)
    for new, error in typed.items():
        error.within = [((), each) for path, each in rest if path == new]
        apart.append(((*new[:-1], error.key), error))
    return [*apart, *((_as_typed(path, typed), error) for path, error in rest if path not in typed)]


def _with_key(data: Any, within: Sequence[Any], key: Any, name: str) -> Any:
    """Return *data* with a *name* in place of the *key* of what is *within* it."""
    if not within:
        return {name if each == key else each: value for each, value in data.items()}
    items = {**data} if isinstance(data, dict) else dict(enumerate(data))
    items[within[0]] = _with_key(items[within[0]], within[1:], key, name)
    return items if isinstance(data, dict) else [*items.values()]


def _as_typed(path: KeyPath, typed: Mapping[KeyPath, UnknownKeyError]) -> KeyPath:
    """Return *path* with the key that was *typed* where another one is meant."""
    new = next((new for new in typed if path[: len(new)] == new), ())
    return (*new[:-1], typed[new].key, *path[len(new) :]) if new else path


def meant_case(
    data: Any,
    read: Read,
    keys: Collection[str],
    criterion: Callable[[Any], dict[str, Any] | None],
    shared: Mapping[str, Any] | None = None,
    *,
    slots: Collection[str] = (),
) -> dict[str, Any] | None:
    """
    Return the case that *data* is meant for, or None; *read* takes it.

    Args:
        data: What stands for a case.
        read: Reads a case, or raises.
        keys: Those that a case has.
        criterion: Returns the criterion that is meant by a mapping, or None.
        shared: The rubric of all cases, which holds beside what a case asserts; None if there is none.
        slots: Names in it that no variable has; a field of the case may be meant.
    """
    if not isinstance(data, dict):
        return None
    found, typed = dict[str, Any](), data
    asserted = data.keys() & {*_BESIDE, *(("criteria",) if shared else ())}  # which may replace what is shared, too
    bars = [key for key in data if key in THRESHOLDS]
    if (bars and not asserted) or (asserted and shared is not None and not shared):
        return None  # which is told alone, or is of a file
    data = {key: value for key, value in data.items() if key not in bars}
    for key in _WHOLE & data.keys():
        if isinstance(data[key], dict) and not data[key].keys() & data.keys():  # its fields stand in the case itself
            data = {name: each for name, each in data.items() if name != key} | data[key]
    if isinstance(data.get("description"), str) and not data.keys() & {"id", "name", "metadata"}:
        data = {"id" if key == "description" else key: value for key, value in data.items()}
    for key, value in data.items():
        try:
            part = _part(str(key), value, keys, criterion)
        except (TypeError, ValueError, DefinitionError):  # such as a text that a comment cuts
            return None
        if part is None or part.keys() & found.keys():
            return None
        found |= part
    if asserted and (bars or shared):
        found["rubric"] = _with_shared(found["rubric"], shared or {}, [typed[key] for key in bars])
    found = _answered(found, slots, keys)
    mended = ({"id": found.pop("id")} if "id" in found else {}) | found
    return mended if mended != typed and reads(read, mended) else None


def _answered(found: dict[str, Any], slots: Collection[str], keys: Collection[str]) -> dict[str, Any]:
    """Return the fields *found* of a case, of whose messages the last one is graded, with variables for *slots*."""
    messages: Any = found.get("messages")
    is_whole = are_rows(messages) and len(messages) > 1 and messages[-1].get("role") == "assistant"
    if is_whole and not {"output", "turns"} & found.keys():  # the answer is graded
        found = found | {"messages": messages[:-1], "output": messages[-1].get("content")}
        if len(messages) == 2 and "input" not in found and messages[0].get("role") == "user":  # noqa: PLR2004 - both
            found = {"input": found.pop("messages")[0].get("content"), **found}
    filled = {name: found.get(field_of("Case", name, keys)) for name in slots}
    if filled := {name: text for name, text in filled.items() if isinstance(text, str)}:
        found["variables"] = {**(own := found.get("variables", {})), **filled, **own}
    return found


def _with_shared(own: list[Any], shared: Mapping[str, Any], bars: list[Any]) -> Any:
    """Return the criteria of the *shared* rubric and its *own* ones, with the threshold that *bars* has."""
    both = [*shared.get("criteria", [shared["text"]] if "text" in shared else []), *own]
    rest = {key: each for key, each in shared.items() if key not in ("criteria", "text")}
    rest |= dict(zip(("threshold",), bars, strict=False))
    return {**rest, "criteria": both} if rest else both


def _part(
    key: str, value: Any, keys: Collection[str], criterion: Callable[[Any], dict[str, Any] | None]
) -> dict[str, Any] | None:
    """Return the field, or the fields, that a *key* with its *value* stands for; None if it stands for none."""
    if kind_in_files(value) == "verdict" and key not in keys:
        return None
    if key in _ASSERTED or (key == "metrics" and isinstance(value, list)):
        parts: dict[Any, Any] = value if isinstance(value, dict) else {}
        is_several = len(parts) > 1 and criterion(parts) is None
        held = [{name: each} for name, each in parts.items()] if is_several else value
        rows = [_asserted(each, criterion) for each in (held if isinstance(held, list) else [held])]
        return None if None in rows else {"rubric": rows}
    if key in _NOTES and isinstance(value, str):
        return {"metadata": {key: value}}
    name = key if key in keys else name_in(key_cure("Case", key, keys, value))
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
    if name in ("run", "messages") and any("tool_calls" in each for each in listed):
        return {"run": write(run_of(map(_with_functions, listed)))}
    if name == "run":
        events = [_event(part) for each in listed for part in _apart(each)]
        return None if None in events else {name: events}
    said = [_message(part) for each in listed for part in _apart(each)]
    turns = [_turn(each) for each in listed if name == "turns"]
    if turns and all("input" in each and each.keys() <= {"input", "reference"} for each in turns):
        return {name: [each if len(each) > 1 else each["input"] for each in turns]}
    if any(each is None for each in said):
        return None
    is_asked = name == "turns" and all(each["role"] == "user" for each in said if each)
    return {"turns": [each["content"] for each in said if each]} if is_asked else {"messages": said}


def _turn(data: dict[Any, Any]) -> dict[str, Any]:
    """Return a turn of the user with its words for what is said, and for the reference."""

    def field(key: str) -> str:
        return "input" if roles("speakers").get(key) == "user" else field_of("Case", key, ("input", "reference"))

    return {field(str(key)): value for key, value in data.items()}


def _asserted(data: Any, criterion: Callable[[Any], dict[str, Any] | None]) -> Any:
    """Return the criterion that an assertion of promptfoo, or one of ours, stands for; None if it stands for none."""
    if not isinstance(data, dict):
        return data if isinstance(data, str) else None
    if data.get("type") == "llm-rubric" and data.keys() == {"type", "value"}:
        return data["value"]
    return criterion(data)


def meant_event(data: Any, read: Read) -> dict[Any, Any] | None:
    """Return the event of a run that *data* is meant for, or None; *read* takes it."""
    try:
        event = _event(data) if isinstance(data, dict) and data else None
    except (TypeError, ValueError, DefinitionError):
        return None
    return event if event and reads(read, event) else None


def _event(data: dict[Any, Any]) -> dict[Any, Any] | None:
    """Return the message, or the call, that an event of a run stands for; None if it is another one."""
    kind = next((key for key in ("type", "event", "kind") if isinstance(data.get(key), str)), "")
    is_call = kind != "" and _bare(data[kind]) in _CALLS
    if is_call or (kind and (data[kind] == "message" or data.get("role") == data[kind])):
        data = {key: value for key, value in data.items() if key != kind}
    (key, value), *_ = data.items() if data else [("", None)]
    if isinstance(value, dict) and _bare(key) in _CALLS:
        data, is_call = {**value, **{name: each for name, each in data.items() if name != key}}, True
    elif isinstance(value, dict) and len(data) == 1 and key not in ("values", "run", "metadata"):
        return {"name": key, "arguments": value}
    tool = next((key for key in data if _bare(key) in (*_CALLS, "name") and key != "name"), "")
    if (is_call or tool) and data.get("role", "assistant") in (*roles("speakers"), "tool"):
        return dict(_call({key: value for key, value in data.items() if key != "role"}))
    return data if data.keys() & {"name", "state", "run"} and "role" not in data else _message(data)


_CALLS = ("tool", "call", "function", "action", "use")


def _bare(word: object) -> str:
    """Return what a *word* such as `tool_input` says behind the name of a call."""
    return re.sub("^(?:(?:tool|call|function|action)_)+(?=.)", "", str(word).lower())


def _with_functions(message: dict[Any, Any]) -> dict[Any, Any]:
    """Return a *message* whose calls are written as vendors write them."""
    calls = message.get("tool_calls") or []
    return {**message, "tool_calls": [each if "function" in each else {"function": each} for each in calls]}


def _apart(data: dict[Any, Any]) -> list[dict[Any, Any]]:
    """Return what is said in a turn, `{user: Hi, assistant: Hello}`, by each."""
    return [{role: text} for role, text in data.items()] if data.keys() <= roles("speakers").keys() else [data]


def _message(data: dict[Any, Any]) -> dict[str, Any] | None:
    """Return a message with its role and its content, also of `{user: Hi}`; None for anything else."""
    said_by = [key for key, value in data.items() if str(value).lower() in roles("speakers") and key != "content"]
    role, text = next(iter(data.items()))
    if len(data) == 1 and role in roles("speakers"):
        return {"role": roles("speakers")[role], "content": text}
    if "role" not in data and len(said_by) != 1:
        return None
    said = "role" if "role" in data else said_by[0]
    own = {field_of("Message", str(key), KEYS[Message].values()): value for key, value in data.items() if key != said}
    return {"role": roles("speakers").get(str(data[said]).lower(), data[said]), **own} if "content" in own else None


def _value(name: str, value: Any) -> Any:
    """Return the *value* of the field called *name* in the form that files have."""
    if name in _TEXTS and not isinstance(value, str):
        ((key, text), *more) = value.items() if isinstance(value, dict) and value else [("", None)]
        is_one = isinstance(text, str) and not more and field_of("Case", str(key), _TEXTS) in _TEXTS
        return text if is_one else json.dumps(value, ensure_ascii=False)
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
    if not isinstance(data, dict):
        return {"name": data} if isinstance(data, str) else data
    keys, found, ids = KEYS[ToolCall].values(), dict[str, Any](), dict[str, Any]()
    for key, value in data.items():
        name = "arguments" if str(key).endswith("parameters") else field_of("ToolCall", str(key), keys)
        name = name if name in keys else field_of("ToolCall", _bare(key), keys)
        if _bare(key) in ("id", "call_id"):
            ids[key] = value
        elif name in found:
            raise DefinitionError(name, "two keys are words for it")
        else:
            found[name] = json.loads(value) if name == "arguments" and isinstance(value, str) else value
    return found | ({"metadata": {**ids, **found.get("metadata", {})}} if ids else {})
