"""
Rows of results that keep an answer in a file: the `index.jsonl` of AgentV since 4.40.

`answer_path` (or `output_path`) names the answer, `transcript_path` the messages of its run, both from the folder of
the results. A name that leads out of that folder is not followed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rubric.embed import shorten

_ANSWERS = ("answer_path", "output_path")
_LARGEST = 20_000_000


def with_answer_files(row: Any, folder: Path) -> Any:
    """Return *row* of a file in *folder* with the answer and the calls in its files, or why they cannot be read."""
    if not isinstance(row, Mapping) or "test_id" not in row or row.get("output") is not None:
        return row
    named = next((row[key] for key in _ANSWERS if isinstance(row.get(key), str)), None)
    if named is None:
        return row
    try:
        answer = _read(folder, named)
        calls = _calls(_read(folder, row["transcript_path"])) if isinstance(row.get("transcript_path"), str) else []
    except (OSError, ValueError) as problem:
        return {**row, "error": f"its answer in {shorten(named, 80)!r} cannot be read: {problem}"}
    return {**row, "output": answer, **({"tool_calls": calls} if calls and not row.get("tool_calls") else {})}


def _read(folder: Path, name: str) -> str:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError("it leads out of the folder of the results")
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"it is larger than {_LARGEST:,} bytes")
    return path.read_text("utf-8")


def _calls(transcript: str) -> list[dict[str, Any]]:
    """Return the calls of tools in the messages of *transcript*, JSON lines, in their order."""
    messages = [json.loads(line) for line in transcript.split("\n") if line.strip()]
    made = (message.get("tool_calls") for message in messages if isinstance(message, dict))
    calls = [call for several in made if isinstance(several, list) for call in several if isinstance(call, dict)]
    return [
        {"name": call.get("tool"), "arguments": call.get("input") or {}, "result": call.get("output") or ""}
        for call in calls
        if isinstance(call.get("tool"), str)
    ]
