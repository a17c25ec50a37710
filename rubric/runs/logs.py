"""
Candidates out of the logs of other tools; docs/how-to/many_candidates.md has what a candidate is in each.

Chats and tool calls are carried over (`rubric.values.chats`), and so are runs (`rubric.runs`). What has no output, such
as a trace with an error, has a place among the candidates all the same, as an ungraded one that says why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from rubric.errors import DefinitionError
from rubric.internals.row_files import Broken
from rubric.internals.text import shorten
from rubric.runs.formats import format_of
from rubric.values.candidates import Candidate
from rubric.values.chats import at, calls_of, candidate_of_chat, is_chat, listed, text_of
from rubric.values.runs import Message, ToolCall

Entries = Callable[[], Iterator[Any]]
"""Reads a log: candidates, and `Broken` for entries without one."""


def entries_of(rows: Sequence[Any]) -> Entries | None:
    """Return a reader of *rows*, the objects of a log; None if they are of no log that is known."""
    first = next((row for row in rows if isinstance(row, Mapping)), {})
    if {"vars", "promptIdx"} <= first.keys() or {"vars", "prompt", "response"} <= first.keys():
        return lambda: (_of_promptfoo(row) for row in rows)
    for marks, read in _SPANS.items():
        if marks <= first.keys():
            return lambda: _of_spans([read(row) for row in rows if isinstance(row, Mapping)])
    return None


# -- what someone said ------------------------------------------------------------------------------------


def candidate_of(output: Any, asked: Any = None, **fields: Any) -> Candidate:
    """
    Return an *output* of any form as a candidate, with the input or the chat that it answers.

    The forms are a text, a chat, a message, the choices of a completion, generations of LangChain, a list of tool
    calls, and other data, which is shown as JSON.

    Args:
        asked: A text, or a chat: its last message is the input, and those before it are the conversation.
        fields: Of the candidate.

    Raises:
        DefinitionError: The output is a chat in which the assistant said and did nothing.
    """
    question = _candidate_in(asked, answers=False)
    said = _candidate_in(output)
    if not question.output:
        return evolve(said, **fields)
    events, before = said.run.events, (*question.before, Message("user", question.output))
    if events[: len(before)] != before:  # else the output is the conversation from its beginning
        is_asked = said.input == question.output
        events = (*(each for each in before if not is_asked or each not in (*events, before[-1])), *events)
    remarks = dict.fromkeys((*question.remarks, *said.remarks))
    output = None if said.unanswered else said.output
    return evolve(said, output=output, input="", run=evolve(said.run, events=events), remarks=remarks, **fields)


def _candidate_in(value: Any, **how: Any) -> Candidate:
    if not isinstance(value, str) and (form := format_of(value)) is not None and form.name != "chat":
        first, *more = [*form.read(value, None)]
        if more or isinstance(first, Broken):
            why = first.why if isinstance(first, Broken) else "it has several runs; give one"
            raise DefinitionError("output", f"it is in the format {form.name}, and {why}")
        return first
    found = _inner(value)
    while found is not value:
        value, found = found, _inner(found)
    if is_chat(chat := [value] if isinstance(value, Mapping) else value):
        return candidate_of_chat(chat, **how)
    if isinstance(value, list) and value and all(isinstance(each, Mapping) and "function" in each for each in value):
        return Candidate("", tool_calls=calls_of(value))
    return Candidate(text_of(value))


def _inner(value: Any) -> Any:
    """Return what *value* wraps: a mapping of one value, the messages of a state, the message of a completion."""
    if isinstance(value, Mapping):
        for name in ("messages", "choices", "generations", "message"):
            if value.get(name) and isinstance(value[name], list | tuple | Mapping):
                return value[name]
        return next(iter(value.values())) if len(value) == 1 else value
    if isinstance(value, list | tuple) and value and not is_chat(value):
        first = value[0]  # of LangChain's batches, and of the choices
        return first if isinstance(first, list) or (isinstance(first, Mapping) and "message" in first) else value
    return value


# -- promptfoo --------------------------------------------------------------------------------------------


def promptfoo_candidate(output: Any, prompt: Any, variables: Mapping[str, Any], reference: str | None) -> Candidate:
    """Return an output of promptfoo's; *reference* is the variable with the reference answer."""
    passages = variables.get("context")
    return candidate_of(
        output,
        chat if is_chat(chat := listed(prompt)) else prompt,
        reference="" if reference is None else text_of(variables[reference]),
        context=passages if isinstance(passages, str) else "",
        variables={name: text_of(value) for name, value in variables.items()},
    )


def _of_promptfoo(row: Any) -> Candidate | Broken:
    response = row.get("response") if isinstance(row, Mapping) else None
    if not isinstance(response, Mapping) or response.get("output") is None:
        why = (at(response, "error") or at(row, "error")) or "no output"
        return Broken(f"promptfoo has no output: {shorten(str(why), 200)}")
    prompt = row.get("prompt")
    try:
        made = promptfoo_candidate(response["output"], at(prompt, "raw") or prompt, row.get("vars") or {}, None)
    except DefinitionError as problem:
        return Broken(f"promptfoo's {problem}")
    test = row.get("testIdx")
    return made if test is None else evolve(made, key=f"{test}/{row.get('promptIdx', 0)}", group=str(test))


# -- traces -----------------------------------------------------------------------------------------------


@frozen
class _Span:
    id: str
    trace: str
    is_root: bool
    is_tool: bool
    order: str
    name: str
    input: Any
    output: Any
    reference: Any
    error: Any


def _of_langsmith(row: Mapping[str, Any]) -> _Span:
    parents = row.get("parent_run_id") or row.get("parent_run_ids")
    return _Span(
        id=str(row.get("reference_example_id") or row.get("id") or ""),
        trace=str(row.get("trace_id") or row.get("id")),
        is_root=not parents,
        is_tool=row.get("run_type") == "tool",
        order=str(row.get("dotted_order") or row.get("start_time") or ""),
        name=str(row.get("name") or "tool"),
        input=row.get("inputs"),
        output=row.get("outputs"),
        reference=row.get("reference_outputs"),
        error=row.get("error"),
    )


def _of_braintrust(row: Mapping[str, Any]) -> _Span:
    attributes, metrics = row.get("span_attributes") or {}, row.get("metrics") or {}
    return _Span(
        id=str(row.get("id") or ""),
        trace=str(row.get("root_span_id")),
        is_root=bool(row.get("is_root", row.get("span_id") in (None, row.get("root_span_id")))),
        is_tool=attributes.get("type") == "tool",
        order=str(metrics.get("start") or row.get("created") or ""),
        name=str(attributes.get("name") or "tool"),
        input=row.get("input"),
        output=row.get("output"),
        reference=row.get("expected"),
        error=row.get("error"),
    )


_SPANS: dict[frozenset[str], Callable[[Mapping[str, Any]], _Span]] = {
    frozenset({"run_type", "inputs", "outputs"}): _of_langsmith,
    frozenset({"root_span_id", "input", "output"}): _of_braintrust,
}
"""The keys by which the rows of an export are recognised. A data set's examples have no `run_type`: their outputs are
reference answers."""


def _of_spans(spans: Sequence[_Span]) -> Iterator[Candidate | Broken]:
    """Yield the roots, with the calls of tools in their traces; without roots, all spans but those of tools."""
    tools: dict[str, list[_Span]] = defaultdict(list)
    for span in sorted(spans, key=lambda each: each.order):
        if span.is_tool and not span.is_root:
            tools[span.trace].append(span)
    roots = [span for span in spans if span.is_root] or [span for span in spans if not span.is_tool]
    for span in roots:
        if span.output is None:
            yield Broken(f"{span.name} {span.id} has no output: {shorten(str(span.error or 'it did not end'), 200)}")
            continue
        try:
            made = candidate_of(span.output, span.input, reference=_text(span.reference), key=span.id)
        except DefinitionError as problem:
            yield Broken(f"{span.name} {span.id}: {problem}")
            continue
        yield made if made.tool_calls else evolve(made, tool_calls=[_call_of(tool) for tool in tools[span.trace]])


def _text(value: Any) -> str:
    return "" if value is None else _candidate_in(value, answers=False).output


def _call_of(span: _Span) -> ToolCall:
    given = span.input if isinstance(span.input, Mapping) else {} if span.input is None else {"input": span.input}
    result = None if span.output is None else _text(span.output)
    return ToolCall(span.name, arguments=given, result=result, error=text_of(span.error))
