"""In every format: each kind of part is held or named as left out, and no other role's words are the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rubric.engine.sources import as_candidate
from rubric.values.runs import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from rubric import Candidate

DATA = Path(__file__).parent / "data"
MARK = "TWFyaw=="
"""What each part has in it, so that it is seen where it went."""
URL = f"https://example.org/{MARK}"

GEMINI: dict[str, dict[str, Any]] = {
    "a picture": {"inlineData": {"mimeType": "image/png", "data": MARK}},
    "audio": {"inline_data": {"mime_type": "audio/wav", "data": MARK}},
    "a film": {"fileData": {"mimeType": "video/mp4", "fileUri": URL}},
    "a PDF": {"file_data": {"mime_type": "application/pdf", "file_uri": URL}},
    "a thought": {"text": MARK, "thought": True},
    "a call": {"functionCall": {"name": MARK, "args": {}}},
    "code": {"executableCode": {"language": "PYTHON", "code": MARK}},
    "an unknown part": {MARK: {}},
}
RESPONSES: dict[str, dict[str, Any]] = {
    "a picture": {"role": "user", "content": [{"type": "input_image", "image_url": URL}]},
    "a file": {"role": "user", "content": [{"type": "input_file", "file_id": MARK}]},
    "audio": {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": MARK, "format": "wav"}}]},
    "a refusal": {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": MARK}]},
    "a thought": {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": MARK}]},
    "a call": {"type": "function_call", "call_id": "c", "name": MARK, "arguments": "{}"},
    "arguments that are not JSON": {"type": "function_call", "call_id": "c", "name": "f", "arguments": MARK},
    "a tool of its own": {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": MARK},
    "a search": {"type": "web_search_call", "id": "w", "action": {"query": MARK}},
    "a shell": {"type": "local_shell_call", "id": "w", "call_id": "c", "action": {"command": [MARK]}},
    "a failure": {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "error": {"message": MARK}},
    "a result": {"type": "code_interpreter_call", "id": "m", "code": "1", "outputs": [{"logs": MARK}]},
    "a drawing": {"type": "image_generation_call", "id": "i", "result": MARK},
    "an unknown item": {"type": f"{MARK}_call_list", "id": "x"},
}
OTEL: dict[str, dict[str, Any]] = {
    "a picture": {"type": "blob", "modality": "image", "mime_type": "image/png", "content": MARK},
    "audio": {"type": "uri", "modality": "audio", "uri": URL},
    "a film": {"type": "uri", "modality": "video", "mime_type": "video/mp4", "uri": URL},
    "a file": {"type": "file", "modality": "document", "file_id": MARK},
    "a thought": {"type": "reasoning", "content": MARK},
    "a call": {"type": "tool_call", "id": "c", "name": "f", "arguments": {"a": MARK}},
    "a call of the server": {"type": "server_tool_call", "id": "c", "name": "f", "server_tool_call": {"a": MARK}},
    "an unknown part": {"type": MARK},
}
INSPECT: dict[str, dict[str, Any]] = {
    "a picture": {"type": "image", "image": URL},
    "audio": {"type": "audio", "audio": URL, "format": "mp3"},
    "a film": {"type": "video", "video": URL, "format": "mp4"},
    "a PDF": {"type": "document", "document": URL, "filename": "a.pdf"},
    "a thought": {"type": "reasoning", "reasoning": MARK},
    "a call of the server": {
        "type": "tool_use",
        "id": "c",
        "name": "f",
        "arguments": json.dumps({"a": MARK}),
        "result": "",
    },
    "data": {"type": MARK, "data": {}},
}
ATIF: dict[str, dict[str, Any]] = {
    "a picture": {"message": [{"type": "image", "source": {"media_type": "image/png", "path": MARK}}]},
    "audio": {"message": [{"type": "audio", "source": {"media_type": "audio/wav", "path": MARK}}]},
    "a thought": {"message": "", "reasoning_content": MARK},
    "a call": {"message": "", "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {"a": MARK}}]},
    "a screenshot": {
        "message": "",
        "observation": {"results": [{"content": [{"type": "image", "source": {"path": MARK}}]}]},
    },
    "a sub-agent": {
        "message": "",
        "observation": {"results": [{"subagent_trajectory_ref": [{"trajectory_path": MARK}]}]},
    },
    "a film": {"message": [{"type": MARK, "source": {"path": "v.mp4"}}]},
    "a field": {"message": "", "metrics": {"extra": {"a": MARK}}},
}


def _gemini(part: Any) -> Any:
    return [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [part]}]


def _otel(part: Any) -> Any:
    said = json.dumps([{"role": "assistant", "parts": [part]}])
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": said}
    return [{"name": "chat", "context": {"trace_id": "t", "span_id": "s"}, "parent_id": None, "attributes": attributes}]


def _inspect(part: Any) -> Any:
    messages = [{"role": "assistant", "content": [part, {"type": "text", "text": "Hello"}]}]
    return {"id": 1, "epoch": 1, "target": "", "messages": messages, "output": {"completion": "Hello"}}


DOCUMENTS: dict[str, tuple[Callable[[Any], Any], dict[str, dict[str, Any]]]] = {
    "gemini": (_gemini, GEMINI),
    "adk": (lambda part: {"events": [{"author": "a", "content": {"parts": [part]}}]}, GEMINI),
    "responses": (lambda item: [item, {"type": "item_reference", "id": "x"}], RESPONSES),
    "opentelemetry": (_otel, OTEL),
    "inspect": (_inspect, INSPECT),
    "atif": (lambda step: {"schema_version": "ATIF-v1.8", "agent": {}, "steps": [{"source": "agent", **step}]}, ATIF),
}
KINDS = [(name, kind) for name, (_, parts) in DOCUMENTS.items() for kind in parts]


def read(document: Any, folder: Path) -> Candidate:
    path = folder / "run.json"
    path.write_text(json.dumps(document))
    return as_candidate(path)


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_each_kind_of_part_is_held_or_named(name: str, kind: str, tmp_path: Path) -> None:
    """What a part says is in an event of the run, or its type in a remark of the candidate."""
    make, parts = DOCUMENTS[name]
    candidate = read(make(parts[kind]), tmp_path)
    assert MARK in "".join(map(repr, (*candidate.run.events, *candidate.remarks)))


LISTS: dict[str, Callable[[Any], list[Any]]] = {
    "adk_session.json": lambda document: document["events"],
    "gemini.json": list,
    "langchain.json": list,
    "response_items.json": list,
    "spans.json": list,
    "trajectory.json": lambda document: document["steps"],
    "inspect.json": lambda document: document["samples"][0]["messages"],
}


@pytest.mark.parametrize("name", LISTS)
def test_no_other_roles_words_are_the_answer(name: str, tmp_path: Path) -> None:
    """However far a log has come, its output is what the assistant said last, with a remark on what followed; or none."""
    document = json.loads((DATA / name).read_text())
    if name == "inspect.json":
        document["samples"][0]["output"] = {}
    whole = LISTS[name](document)
    for count in range(len(whole), 0, -1):
        if isinstance(document, list):
            document = whole[:count]
        else:
            del LISTS[name](document)[count:]
        try:
            candidate = read(document, tmp_path)
        except Exception as error:  # noqa: BLE001 - it has no word yet
            said = str(error)
            assert "has no" in said or "without an answer" in said or name == "spans.json"
            continue
        events = [each for each in candidate.run.events if getattr(each, "role", "") != "refusal"]
        texts = [each for each in events if isinstance(each, Message) and each.role == "assistant" and each.content]
        if candidate.unanswered:
            assert (candidate.output, events[-1:] != texts[-1:]) == ("", True)
        else:
            assert candidate.output == texts[-1].content
            assert (events[-1] == texts[-1]) != any("is graded, step" in remark for remark in candidate.remarks)
