"""
The formats of runs, each recognised by its content, and the one way from a document to candidates.

`read` and `write` are for one run; `grade`, `grade_many` and the command line read the same files by themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from rubric.embed import guided
from rubric.errors import DefinitionError
from rubric.internals.atomic_write import replacing
from rubric.internals.row_files import Broken, read_json
from rubric.internals.text import shorten
from rubric.runs.atif import read_atif, write_atif
from rubric.runs.messages import of_adk, of_gemini, of_inspect, of_invocations, of_responses, run_of
from rubric.runs.spans import of_spans, spans_in
from rubric.values.candidates import Candidate
from rubric.values.chats import at, is_chat, is_cut_short, listed
from rubric.values.runs import Message, Run, SubRun

Found = Iterator[Candidate | Broken]


@frozen
class RunFormat:
    """
    A format of runs.

    Args:
        is_of: True if a document, as JSON has it, is of this format.
        read: Yields the candidates in a document, and `Broken` for what is none; the runs of sub-agents that are in
            other files are looked for in the folder.
    """

    name: str
    is_of: Callable[[Any], bool]
    read: Callable[[Any, Path | None], Found]


@guided
def candidate_of_run(run: Run, output: str | None = None, **given: Any) -> Candidate:
    """
    Return *run* as a candidate, like `Candidate(run=run)`; *output* is the answer that its log names.

    Its remarks name what its reader has left out, and sub-agents whose runs are not there.
    """
    left: dict[str, None] = dict.fromkeys(run.metadata.get("left_out", ()))
    for _, event in run.steps():
        if isinstance(event, SubRun):
            left |= dict.fromkeys(event.run.metadata.get("left_out", ()))
            if not event.run.events:
                left[f"the run of the sub-agent {event.agent!r} is not in the log, so no judge is shown it"] = None
    return Candidate(output, run=run, remarks=left, **given)


# -- the formats ------------------------------------------------------------------------------------------


def _rows(document: Any) -> list[Mapping[str, Any]]:
    """Return the objects that *document* is, or lists."""
    rows = document if isinstance(document, list | tuple) else [document]
    return [*rows] if rows and all(isinstance(row, Mapping) for row in rows) else []


def _has(document: Any, *keys: str) -> bool:
    return isinstance(document, Mapping) and document.keys() >= {*keys}


def _atif(document: Any, folder: Path | None) -> Found:
    yield candidate_of_run(read_atif(document, partial(_beside, folder, ())), key=str(document.get("session_id") or ""))


def _beside(folder: Path | None, opened: tuple[Path, ...], name: str) -> Run | None:
    """Return the run in the file *name*, which lies in *folder* or below; None if it does not."""
    if folder is None or "://" in name:
        return None
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file() or path in opened:
        return None
    return read_atif(read_json(path.read_bytes()), partial(_beside, folder, (*opened, path)))


def _inspect(document: Any, _: Path | None) -> Found:
    for sample in document.get("samples", [document]):
        yield inspect_sample(sample)


def inspect_sample(sample: Mapping[str, Any]) -> Candidate | Broken:
    """Return a *sample* of a log of Inspect's as a candidate; one with an error is none."""
    output, error = (sample.get("output") or {}).get("completion") or "", sample.get("error")
    model = str((sample.get("output") or {}).get("model") or "")
    run = run_of(of_inspect(sample), model=model, complete=not (sample.get("limit") or is_cut_short(_choices(sample))))
    if error:
        why = error.get("message") if isinstance(error, Mapping) else error
        return Broken(f"sample {sample.get('id')} has no output: {shorten(str(why), 200)}")
    reference = target if isinstance(target := sample.get("target") or "", str) else "\n".join(target)
    said = [each.content.strip() for each in run.events if isinstance(each, Message) and each.role == "assistant"]
    answer = None if output.strip() in ("", *said[-1:]) else output  # a submission, which only the log names
    return candidate_of_run(run, answer, reference=reference, key=str(sample.get("id")))


def _choices(response: Mapping[str, Any]) -> list[Any]:
    """Return the message of each of the choices in *response*, or in its `output`, with the reason for its end."""
    choices = _rows(response.get("choices") or (response.get("output") or {}).get("choices") or ())
    ends = ("finish_reason", "stop_reason")
    return [{**(each.get("message") or {}), **{key: each[key] for key in ends if key in each}} for each in choices]


def _adk(document: Any, _: Path | None) -> Found:
    for case in at(document, "eval_cases") or [document]:
        told = at(case, "conversation")
        messages = of_adk(case.get("events") or ()) if told is None else of_invocations(told)
        yield candidate_of_run(run_of(messages), key=str(at(case, "eval_id") or case.get("id") or ""))


def _spans(document: Any, _: Path | None) -> Found:
    for trace, messages, named in of_spans(spans_in(_rows(document))):
        run = run_of(messages, **named)
        why = "has no messages and no calls: its tool was told not to record them, or it has no span of a model"
        yield candidate_of_run(run, key=trace) if run.events or run.metadata else Broken(f"trace {trace} {why}")


def _has_spans(document: Any) -> bool:
    rows = _rows(document)
    if any("resourceSpans" in row or "resource_spans" in row for row in rows):
        return True
    attributes = [row["attributes"] for row in rows if _has(row, "context", "attributes", "parent_id")]
    return any(isinstance(each, Mapping) and any(str(k).startswith("gen_ai.") for k in each) for each in attributes)


def _responses(document: Any, _: Path | None) -> Found:
    items = document
    if isinstance(document, Mapping):
        asked = document.get("input") or ()
        said = {"role": "user", "content": asked}
        told = document.get("instructions")
        items = [{"role": "system", "content": told}] if isinstance(told, str) else []
        items += [*([said] if isinstance(asked, str) else asked), *document["output"]]
    status = document.get("status") if isinstance(document, Mapping) else None
    is_whole = status in (None, "completed") and not is_cut_short(items)
    yield candidate_of_run(run_of(of_responses(items), complete=is_whole))


def _is_responses(document: Any) -> bool:
    if isinstance(document, Mapping):
        return document.get("object") == "response" and isinstance(document.get("output"), list | tuple)
    kinds = [_kind_of_item(row) for row in _rows(document)]
    return all(kinds) and any(kind not in ("", "message") for kind in kinds)


def _kind_of_item(row: Mapping[str, Any]) -> str:
    """Return what item of Responses *row* is; '' if it is none, 'message' if other chats have its form too."""
    kind = str(row.get("type") or "message")
    if kind == "message":
        parts = _rows(row.get("content") or "")
        is_own = any(part.get("type") in ("output_text", "input_text", "input_image") for part in parts)
        return "" if "role" not in row else "output" if is_own else kind
    marks = {"reasoning": ("summary",), "item_reference": ("id",), "mcp_list_tools": ("tools",), "compaction": ("id",)}
    ends = {"_call": ("id", "call_id"), "_call_output": ("call_id",)}
    wanted = marks.get(kind) or next((keys for end, keys in ends.items() if kind.endswith(end)), ())
    return kind if any(key in row for key in wanted) else ""


_REFUSED = frozenset({
    *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
})  # fmt: skip
"""Gemini's words for a response that a filter held back."""


def _gemini(document: Any, _: Path | None) -> Found:
    contents, finish, refusal = document, "", ""
    if isinstance(document, Mapping):
        system = at(document, "system_instruction")
        contents, first = _exchange(document)
        contents = [*([{**system, "role": "system"}] if isinstance(system, Mapping) else ()), *contents]
        finish = str(at(first, "finish_reason") or "").rpartition(".")[2]
        refusal = str(_block_reason(document) or (finish if finish in _REFUSED else ""))
    messages = of_gemini(contents)
    messages += [{"role": "assistant", "content": None, "refusal": refusal}] if refusal else []
    is_whole = bool(refusal) or finish in ("", "STOP", "FINISH_REASON_UNSPECIFIED")
    yield candidate_of_run(run_of(messages, complete=is_whole))


def _exchange(document: Mapping[str, Any]) -> tuple[list[Any], Mapping[str, Any]]:
    """Return the contents of a request and its response, and the first candidate, which may have none."""
    first = next(iter(_rows(document.get("candidates") or ())), {})
    said = first.get("content") or {}
    return [*(document.get("contents") or ()), *([said] if said.get("parts") else ())], first


def _block_reason(document: Mapping[str, Any]) -> Any:
    """Return why the prompt in *document* was refused; None if it was not."""
    return at(at(document, "prompt_feedback") or {}, "block_reason")


def _is_gemini(document: Any) -> bool:
    if isinstance(document, Mapping):
        contents, first = _exchange(document)
        return _is_gemini(contents) or bool(not contents and (at(first, "finish_reason") or _block_reason(document)))
    rows = _rows(document)
    has_parts = bool(rows) and all(isinstance(row.get("parts"), list) and "output" not in row for row in rows)
    return has_parts and not any("kind" in part for row in rows for part in _rows(row["parts"]))  # A2A has kinds


def _chat(document: Any, _: Path | None) -> Found:
    messages = document
    if isinstance(document, Mapping):
        said = [document] if _is_answer(document) else _choices(document)
        if len(said) > 1:
            raise DefinitionError("choices", f"the response has {len(said)} answers to one question; keep one of them")
        messages = [*listed(document.get("messages")), *said]
        ends = {key: document[key] for key in ("finish_reason", "stop_reason") if key in document}
        messages = [*messages[:-1], {**messages[-1], **ends}] if ends and not said else messages
    yield candidate_of_run(run_of(messages))


def _is_answer(document: Mapping[str, Any]) -> bool:
    """True if *document* is a response of Anthropic's."""
    return document.get("type") == "message" and _has(document, "role", "content", "stop_reason")


def _is_chat(document: Any) -> bool:
    if isinstance(document, Mapping) and ("messages" not in document or not document["messages"]):
        said = _choices(document) if isinstance(document.get("choices"), list | tuple) else []
        return _is_answer(document) or is_chat(said)
    rows = listed(document.get("messages")) if isinstance(document, Mapping) else document
    has_output = any("output" in row for row in (document, *(rows if isinstance(rows, list) else ())) if _has(row))
    return not has_output and is_chat(rows) and not _is_responses(rows)


def _is_adk(document: Any) -> bool:
    if not isinstance(document, Mapping):
        return False
    events, turns = _rows(document.get("events") or ()), _rows(document.get("conversation") or ())
    is_session = bool(events) and all("author" in each for each in events)
    is_case = bool(turns) and all(at(each, "user_content") for each in turns)
    return is_session or is_case or bool(_rows(at(document, "eval_cases") or ()))


FORMATS: Final = {
    each.name: each
    for each in (
        RunFormat("atif", lambda d: _has(d, "steps") and str(d.get("schema_version")).startswith("ATIF"), _atif),
        RunFormat("inspect", lambda d: _has(d, "eval", "samples") or _has(d, "epoch", "messages", "target"), _inspect),
        RunFormat("adk", _is_adk, _adk),
        RunFormat("opentelemetry", _has_spans, _spans),
        RunFormat("responses", _is_responses, _responses),
        RunFormat("gemini", _is_gemini, _gemini),
        RunFormat("chat", _is_chat, _chat),
    )
}


_MARKS: Final = {
    *("schema_version", "samples", "epoch", "events", "conversation", "eval_cases", "evalCases", "resourceSpans"),
    *("resource_spans", "object", "contents", "candidates", "promptFeedback", "prompt_feedback", "messages"),
    *("choices", "stop_reason"),
}
"""A mapping without any of these keys is not a run: rows are many, and each of them is asked."""


def _logged(document: Any) -> Any:
    """Return the request and the response of an entry of a log as one document, which formats have; else *document*."""
    parts = [document.get(key) for key in ("request", "response")] if isinstance(document, Mapping) else []
    held = [part for part in parts if isinstance(part, Mapping)]
    is_entry = len(held) == 2 and not _MARKS.isdisjoint({*held[0], *held[1]})  # noqa: PLR2004 - both
    return {**held[0], **held[1]} if is_entry else document


def format_of(document: Any) -> RunFormat | None:
    """Return the format of *document*, as JSON has it; None if it is of none. One of two formats is refused."""
    document = _logged(document)
    if isinstance(document, Mapping) and _MARKS.isdisjoint(document):
        return None
    found = [each for each in FORMATS.values() if each.is_of(document)]
    if len(found) > 1:
        names = " and ".join(each.name for each in found)
        lines = " or ".join(f"rubric.runs.read(path, {each.name!r})" for each in found)
        raise DefinitionError("", f"it has the marks of two formats, {names}; write {lines}")
    return found[0] if found else None


def candidates_in(document: Any, folder: Path | None = None) -> Found | None:
    """Return the candidates in a *document* of a known format, and `Broken` for what is none; None if it has none."""
    found = format_of(document)
    return None if found is None else found.read(_logged(document), folder)


def candidates_of_file(path: Path) -> Found | None:
    """Return the candidates in the JSON file at *path*; None if it is of no known format, or no JSON."""
    if path.suffix.lower() not in (".json", ".jsonl", ".ndjson") or not path.is_file():
        return None
    try:
        return candidates_in(_document(path), path.parent)
    except DefinitionError as problem:
        if problem.field == "source":  # it is not JSON, which the reader of rows says with the line
            return None
        raise


_MOST_DEPTH = 6

# -- for one run ------------------------------------------------------------------------------------------


@guided
def read(source: Path | str | Mapping[str, Any] | list[Any], format: str | None = None) -> Run:
    """
    Return the run in *source*: a file in JSON, or what one holds, as a mapping or a list; also an object of Pydantic's.

    Args:
        format: `atif`, `inspect`, `adk`, `opentelemetry`, `responses`, `gemini` or `chat`; None recognises it.

    Raises:
        DefinitionError: There is no run in it, or there are several; or it cannot be read as its format has it.
    """
    folder: Path | None = None
    document: Any = source
    if isinstance(source, Path | str):
        folder, document = Path(source).parent, _document(Path(source))
    elif hasattr(document, "model_dump"):
        document = document.model_dump(mode="json", exclude_none=True)
    if format is not None and format not in FORMATS:
        raise DefinitionError("format", f"expected one of {', '.join(FORMATS)}, got {format!r}")
    document = _logged(document)
    chosen = format_of(document) if format is None else FORMATS[format]
    if chosen is None:
        held = [f"read(source{''.join(f'[{step!r}]' for step in steps)})" for steps in chats_in(document)]
        cure = f"; it holds a chat: write {' or '.join(held[:3])}" if held else ""
        raise DefinitionError("source", f"it is a run in none of the formats {', '.join(FORMATS)}{cure}")
    first, *more = [*chosen.read(document, folder)] or [Broken("it has no run")]
    if isinstance(first, Broken):
        raise DefinitionError("source", first.why)
    if more:
        raise DefinitionError("source", f"it has {1 + len(more)} runs; grade_many(path, rubric, judge) grades each")
    return first.run


def _document(path: Path) -> Any:
    if not path.is_file():
        raise DefinitionError("source", f"there is no file {str(path)!r}")
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix in (".jsonl", ".ndjson"):
            return [read_json(line) for line in text.splitlines() if line.strip()]
        return read_json(text)
    except (ValueError, RecursionError) as problem:
        raise DefinitionError("source", f"{path.name}: no JSON: {shorten(str(problem), 200)}") from None


def chats_in(data: Any, *steps: str | int) -> Iterator[list[str | int]]:
    """Yield the path to each chat in *data*, which is at *steps*."""
    if is_chat(data):
        yield [*steps]
    elif len(steps) < _MOST_DEPTH:
        items = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
        for step, value in items:
            yield from chats_in(value, *steps, step)


@guided
def is_run(source: Any) -> bool:
    """True if *source* holds runs of a known format: a file, if it is a path, else a document, as JSON has it."""
    return (candidates_of_file(Path(source)) if isinstance(source, Path | str) else candidates_in(source)) is not None


@guided
def write(run: Run, path: Path | str) -> None:
    """
    Write *run* to the file at *path*, in ATIF.

    Raises:
        DefinitionError: It has no events, or a number that JSON has not, such as NaN.
    """
    try:
        text = json.dumps(write_atif(run), ensure_ascii=False, indent=2, allow_nan=False)
    except ValueError:
        raise DefinitionError("run", "has a number that JSON has not: inf or nan; give it as text, or None") from None
    with replacing(path) as file:
        file.write(text.encode("utf-8", "backslashreplace").decode() + "\n")  # half a surrogate pair is escaped


def inspect_samples(path: Path) -> Found:
    """Return the samples of a log of Inspect's, which inspect-ai reads one at a time."""
    try:
        from inspect_ai.log import read_eval_log_samples  # noqa: PLC0415 - Inspect reads its own archives
    except ImportError as error:
        raise ImportError(f"reading {path.name} needs inspect-ai: pip install inspect-ai") from error
    samples = read_eval_log_samples(str(path), all_samples_required=False, resolve_attachments=True)
    return (inspect_sample(sample.model_dump(mode="json", exclude_none=True)) for sample in samples)
