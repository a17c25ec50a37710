"""Chats of other tools: only the candidate's words are the answer, and each part that is left out is named."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from rubric import (
    Criterion,
    DefinitionError,
    Message,
    Rubric,
    ToolCall,
    Ungraded,
    call,
    evaluate,
    grade,
    grade_many,
    runs,
)
from rubric.engine.sources import as_candidate
from rubric.integrations.langsmith import rubric_evaluator
from rubric.integrations.mapping import default_candidate
from rubric.integrations.promptfoo import default_candidate as of_promptfoo
from rubric.integrations.trl import default_candidate as of_trl
from rubric.runs.logs import entries_of
from rubric.suites.outputs import _reply
from rubric.values.candidates import Candidate
from rubric.values.chats import candidate_of_chat, chat_of
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KIND = "Thank you so much, kind sir"
POLITE = Rubric(criteria=[Criterion("Is polite")])
ASKED = {"role": "user", "content": KIND}
CALL = {"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
USED = {"type": "tool_use", "id": "1", "name": "find", "input": {}}
UNANSWERED: dict[str, list[Any]] = {
    "null and a call": [ASKED, {"role": "assistant", "content": None, "tool_calls": [CALL]}],
    "no content and a call": [ASKED, {"role": "assistant", "tool_calls": [CALL]}],
    "a call's block": [ASKED, {"role": "assistant", "content": [USED]}],
    "a legacy call": [ASKED, {"role": "assistant", "content": None, "function_call": CALL["function"]}],
    "a refusal": [ASKED, {"role": "assistant", "content": None, "refusal": "No."}],
    "a refusal alone": [ASKED, {"role": "assistant", "refusal": "No."}],
    "a refusal's block": [ASKED, {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}],
    "empty": [ASKED, {"role": "assistant", "content": ""}],
    "white space": [ASKED, {"role": "assistant", "content": " \n"}],
    "null": [ASKED, {"role": "assistant", "content": None}],
    "thoughts": [ASKED, {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]}],
    "LangChain": [{"type": "human", "content": KIND}, {"type": "ai", "content": "", "tool_calls": []}],
    "the question": [ASKED],
    "the result of a tool": [
        ASKED,
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "content": KIND},
    ],
    "a stray result": [ASKED, {"role": "tool", "tool_call_id": "9", "content": KIND}],
    "a block of a result": [
        ASKED,
        {"role": "assistant", "content": [USED]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": KIND}]},
    ],
    "instructions": [{"role": "system", "content": KIND}],
    "an earlier answer": [ASKED, {"role": "assistant", "content": KIND}, ASKED, {"role": "assistant", "content": ""}],
}


def _logged(row: dict[str, Any]) -> Any:
    read = entries_of([row])
    assert read is not None
    (entry,) = read()
    return entry


def _span(chat: list[Any], **fields: Any) -> dict[str, Any]:
    return {"run_type": "llm", "inputs": {}, "outputs": {"messages": chat}, "id": "1", **fields}


BRAINTRUST = {"root_span_id": "1", "span_id": "1", "input": None}
DOORS: dict[str, Callable[[list[Any]], Any]] = {
    "output of a row": lambda chat: as_candidate({"output": chat}),
    "messages of a row": lambda chat: as_candidate({"messages": chat}),
    "one function": candidate_of_chat,
    "Braintrust, MLflow, pydantic-evals": lambda chat: default_candidate(None, {"messages": chat}, None),
    "a list of theirs": lambda chat: default_candidate("Say it", chat, None),
    "promptfoo": lambda chat: of_promptfoo(chat, {"vars": {}, "prompt": "p"}),
    "log of promptfoo": lambda chat: _logged({"vars": {}, "prompt": "p", "response": {"output": chat}}),
    "log of LangSmith": lambda chat: _logged(_span(chat)),
    "log of Braintrust": lambda chat: _logged({**BRAINTRUST, "output": chat}),
    "outputs of a suite": lambda chat: _reply("replies[0]", {"output": chat}),
    "TRL": lambda chat: of_trl("Say it", chat),
    "Inspect, verifiers": lambda chat: candidate_of_chat(chat, output="", input=KIND),
}


@each_row("door", DOORS)
@each_row("form", UNANSWERED)
def test_only_the_last_words_of_the_candidate_are_its_answer(door: str, form: str) -> None:
    """What others said, or what it said before, is never graded as the answer of a chat that ends without one."""
    made: Any = None
    with suppress(DefinitionError):
        made = DOORS[door](UNANSWERED[form])
    made = made if isinstance(made, Candidate) else getattr(made, "candidate", None)
    assert made is None or not made.output.strip()


@each_row("form", UNANSWERED)
def test_a_chat_without_an_answer_is_ungraded_by_all_that_grade_many(form: str) -> None:
    """A judge that always says yes is not asked."""
    rows = [{"output": UNANSWERED[form]}, {"messages": UNANSWERED[form]}]
    results = grade_many(rows, POLITE, lambda _: '{"verdict": true}', progress=False).collect()
    assert all(isinstance(result, Ungraded) and result.usage.calls == 0 for result in results)


def test_an_evaluator_says_that_a_chat_has_no_answer() -> None:
    """There is no score."""
    evaluator = rubric_evaluator(POLITE, lambda _: '{"verdict": true}')
    for chat in UNANSWERED.values():
        (told,) = evaluator(outputs={"messages": chat})
        assert (told["score"], "has no answer" in told["comment"]) == (None, True)


def test_an_empty_output_beside_a_chat_is_an_answer() -> None:
    """A run without an answer is graded when it is asked for so."""
    made = as_candidate({"output": "", "messages": UNANSWERED["null and a call"]})
    assert (made.output, made.input, made.tool_calls[0].name) == ("", KIND, "find")


def test_a_response_of_a_suite_that_is_a_chat_without_an_answer_is_named() -> None:
    """Its case is ungraded, and never graded as an empty text."""
    for form, chat in UNANSWERED.items():
        found = _reply("replies[0]", {"output": chat})
        assert (found.candidate, "has no answer" in found.why) == (None, True), form


def test_an_empty_output_beside_messages_keeps_the_question() -> None:
    """It is an answer that is empty, to that question."""
    found = _reply("replies[0]", {"output": "", "messages": [ASKED]}).candidate
    assert found is not None
    assert (found.output, found.input) == ("", KIND)


def test_a_legacy_call_is_a_call() -> None:
    """Its result, which has no id but the name of the function, is with it."""
    call = {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": '{"id": 7}'}}
    told = {"role": "function", "name": "find", "content": "paid"}
    made = candidate_of_chat([ASKED, call, told, {"role": "assistant", "content": "It is paid."}])
    assert [(one.name, dict(one.arguments)) for one in made.tool_calls] == [("find", {"id": 7})]
    assert made.tool_calls[0].result == "paid"


def test_roles_of_other_tools_are_those_of_their_words() -> None:
    """`model` and `ai` are the assistant, also where a chat looks like one of ours."""
    chat = [{"role": "human", "content": "q"}, {"role": "ai", "content": "a"}, {"role": "human", "content": "q2"}]
    made = as_candidate({"output": "b", "messages": chat})
    assert [event.role for event in made.before if isinstance(event, Message)] == ["user", "assistant", "user"]


# -- parts that are left out ----------------------------------------------------------------------------------

PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
SOURCE = {"type": "base64", "media_type": "image/png", "data": "AA=="}
SAID = {"type": "text", "text": "Here it is."}
RETURNED = {"type": "tool_result", "tool_use_id": "1", "content": "boom"}


def _answer(*parts: Any, **keys: Any) -> list[Any]:
    return [ASKED, {"role": "assistant", "content": [*parts, SAID], **keys}]


def _question(*parts: Any) -> list[Any]:
    return [{"role": "user", "content": [*parts, {"type": "text", "text": "See?"}]}, *_answer()[1:]]


def _result(**returned: Any) -> list[Any]:
    told = {"role": "user", "content": [{**RETURNED, **returned}]}
    return [ASKED, {"role": "assistant", "content": [USED]}, told, *_answer()[1:]]


def _tool(content: Any, **keys: Any) -> list[Any]:
    asked = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    return [ASKED, asked, {"role": "tool", "tool_call_id": "1", "content": content, **keys}, *_answer()[1:]]


KINDS: dict[str, tuple[list[Any], str]] = {
    "a picture in a question": (_question(PICTURE), "pictures"),
    "a picture in an answer": (_answer(PICTURE), "pictures"),
    "a picture of Anthropic's": (_question({"type": "image", "source": SOURCE}), "pictures"),
    "a picture of the responses API": (
        _question({"type": "input_image", "image_url": "https://x.y/a.png"}),
        "pictures",
    ),
    "a screenshot of a tool": (_tool([PICTURE]), "pictures"),
    "a screenshot in a result": (_result(content=[{"type": "image", "source": SOURCE}]), "pictures"),
    "audio in a question": (_question({"type": "input_audio", "input_audio": {"data": "AA=="}}), "audio"),
    "a spoken answer": (_answer(audio={"id": "1", "transcript": "Here"}), "audio"),
    "a file": (_question({"type": "file", "file": {"file_id": "1"}}), "documents"),
    "a document": (_question({"type": "document", "source": SOURCE}), "documents"),
    "a video": (_question({"type": "video_url", "video_url": {"url": "https://x.y/a.mp4"}}), "videos"),
    "an error of a tool": (_result(is_error=True), "the error of a tool"),
    "an error of LangChain's": (_tool("boom", status="error"), "the error of a tool"),
    "a refusal's block": (_answer({"type": "refusal", "refusal": "No."}), "a refusal"),
    "a refusal": (_answer(refusal="No."), "a refusal"),
    "thinking": (_answer({"type": "thinking", "thinking": "Hm."}), "thoughts"),
    "hidden thinking": (_answer({"type": "redacted_thinking", "data": "AA=="}), "thoughts"),
    "reasoning": (_answer(reasoning_content="Hm."), "thoughts"),
    "reasoning of LangChain's": (_answer(additional_kwargs={"reasoning_content": "Hm."}), "thoughts"),
    "a name": (_answer(name="Dana"), "names of speakers"),
    "a broken call": (
        # Words before a call are not an answer, so the answer follows it.
        [*_answer(invalid_tool_calls=[{"name": "find", "args": "{", "type": "invalid_tool_call"}]), _answer()[-1]],
        "calls of tools that are not JSON",
    ),
    "a kind of tomorrow": (_answer({"type": "hologram", "data": "AA=="}), "parts of the type 'hologram'"),
}


HELD = {
    "pictures": lambda e: [m.kind for m in getattr(e, "media", ())] == ["image"],
    "audio": lambda e: [m.kind for m in getattr(e, "media", ())] == ["audio"],
    "documents": lambda e: [m.kind for m in getattr(e, "media", ())] == ["document"],
    "videos": lambda e: [m.kind for m in getattr(e, "media", ())] == ["video"],
    "the error of a tool": lambda e: getattr(e, "error", "") == "boom",
    "a refusal": lambda e: getattr(e, "role", "") == "refusal" and e.content == "No.",
    "names of speakers": lambda e: getattr(e, "name", "") == "Dana",
    "calls of tools that are not JSON": lambda e: getattr(e, "error", "").endswith("not JSON"),
}


@each_row("door", DOORS)
@each_row("kind", KINDS)
def test_each_part_is_held_or_named(door: str, kind: str) -> None:
    """Of what no judge is shown the result has a warning; all else is in the run, and the answer is the answer."""
    chat, name = KINDS[kind]
    if door == "Inspect, verifiers":
        made: Any = candidate_of_chat(chat, output="Here it is.", input=KIND)
    else:
        made = DOORS[door](chat)
    made = made if isinstance(made, Candidate) else made.candidate
    assert made.output == "Here it is."
    if name in HELD:
        assert any(map(HELD[name], made.run.events))
    else:
        result = evaluate(made, POLITE, lambda _: '{"verdict": true}')
        assert [warning for warning in result.warnings if warning.endswith(f"judge: {name}")]


def test_a_kind_is_named_once() -> None:
    """However many messages have it, and in however many rows."""
    thought = {"type": "thinking", "thinking": "Hm."}
    assert len(as_candidate({"output": [*_answer(thought, thought), *_answer(thought)]}).remarks) == 1
    plain = [ASKED, {"role": "assistant", "content": None, "tool_calls": [CALL]}, *_answer()[1:]]
    assert as_candidate({"output": plain}).remarks == ()


def _told(*messages: dict[str, Any]) -> list[Any]:
    """Return what happened in a chat of *messages*, by what each event says or calls, with its result."""
    events = chat_of([ASKED, *messages])[1:]
    return [each.content if isinstance(each, Message) else (each.name, each.result) for each in events]  # type: ignore[union-attr]


def test_words_after_a_call_stand_after_it() -> None:
    """The blocks of a message of Anthropic's have one order, and so have the events."""
    said = {"type": "text", "text": "I look."}
    assert _told({"role": "assistant", "content": [USED, said]}) == [("find", None), "I look."]
    thinking = {"role": "assistant", "content": [said, USED], "reasoning_content": "Hm."}
    assert _told(thinking) == ["I look.", ("find", None)]


def test_a_call_in_the_content_and_beside_it_is_one() -> None:
    """LangChain keeps the calls of Anthropic twice, as blocks and as `tool_calls`; other calls of a message stay."""
    beside = [{"name": "find", "args": {"a": 1}, "id": "1"}, {"name": "more", "args": {}, "id": "2"}]
    message = {"type": "ai", "content": [USED, {"type": "text", "text": "."}], "tool_calls": beside}
    found = {"type": "tool", "tool_call_id": "1", "content": "7"}
    assert _told(message, found) == [("find", "7"), ".", ("more", None)]


def test_tools_of_the_server_are_calls() -> None:
    """What Anthropic's own tools did stands between the words before and after, and is not left out."""
    block = {"type": "web_search_result", "url": "https://x.y", "encrypted_content": "x" * 99}
    content = [
        {"type": "text", "text": "I look."},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [block]},
        {"type": "text", "text": "So it is."},
    ]
    made = candidate_of_chat([ASKED, {"role": "assistant", "content": content}])
    assert (made.output, made.remarks) == ("So it is.", ())
    assert made.tool_calls[0].result == '[{"type": "web_search_result", "url": "https://x.y"}]'


@pytest.mark.parametrize("by", ["id", "name"])
def test_calls_of_one_id_have_a_result_each(by: str) -> None:
    """Some servers give all calls one id, and Ollama gives none: the results are those of the calls in their order."""
    function = {"name": "find", "arguments": "{}"}
    call = {"function": function} | ({"id": "call_0"} if by == "id" else {})
    key = {"tool_call_id": "call_0"} if by == "id" else {"tool_name": "find"}
    results = [{"role": "tool", "content": text, **key} for text in ("7", "8")]
    once: list[Any] = [{"role": "assistant", "content": "", "tool_calls": [call, call]}, *results]
    assert _told(*once, *once) == [("find", "7"), ("find", "8")] * 2


DELETE = {"name": "delete_account", "arguments": '{"id": 7}'}
GONE = {"role": "tool", "tool_call_id": "1", "content": "gone"}
DONE = {"role": "assistant", "content": "Done."}
CALLED = {"role": "assistant", "content": None}
OF_DELETE = {"id": "1", "function": DELETE}


def _chat(result: dict[str, Any] = GONE, **called: Any) -> list[Any]:
    return [ASKED, {**CALLED, **called}, result, DONE]


SAME_CALL: dict[str, list[Any]] = {
    "a mapping": _chat(tool_calls=OF_DELETE),
    "a function alone": _chat(tool_calls=DELETE),
    "a text": _chat(tool_calls=json.dumps([OF_DELETE])),
    "a text with one": _chat(tool_calls=json.dumps(OF_DELETE)),
    "a list of texts": _chat(tool_calls=[json.dumps(OF_DELETE)]),
    "a function in a text": _chat(tool_calls=[{"id": "1", "function": json.dumps(DELETE)}]),
    "a legacy text": _chat(function_call=json.dumps(DELETE)),
    "camel case": _chat({"role": "tool", "toolCallId": "1", "content": "gone"}, toolCalls=[OF_DELETE]),
    "camel case without content": [ASKED, {"role": "assistant", "toolCalls": [OF_DELETE]}, GONE, DONE],
    "parameters": _chat(tool_calls=[{"id": "1", "name": "delete_account", "parameters": {"id": 7}}]),
    "a result that names no call": _chat({"role": "tool", "content": "gone"}, tool_calls=[OF_DELETE]),
    "a result by the name": _chat(
        {"role": "tool", "name": "delete_account", "content": "gone"}, tool_calls=[OF_DELETE]
    ),
    "the AI SDK": [
        ASKED,
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "1", "toolName": "delete_account", "input": {"id": 7}}],
        },
        {
            "role": "tool",
            "content": [{"type": "tool-result", "toolCallId": "1", "output": {"type": "text", "value": "gone"}}],
        },
        DONE,
    ],
    "Bedrock": [
        ASKED,
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "1", "name": "delete_account", "input": {"id": 7}}}],
        },
        {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "gone"}]}}]},
        DONE,
    ],
}


@each_row("form", SAME_CALL)
def test_a_call_in_another_spelling_is_that_call(form: str) -> None:
    """A mapping is a list of one, JSON in a text is what it holds, and camel case is snake case."""
    made = candidate_of_chat(SAME_CALL[form])
    found = [(one.name, dict(one.arguments), one.result) for one in made.tool_calls]
    assert found == [("delete_account", {"id": 7}, "gone")]
    assert (made.output, made.remarks) == ("Done.", ())


NO_CALL: dict[str, tuple[list[Any], str]] = {
    "a mapping of something": (_chat(tool_calls={"x": 1}), "expected a call with a name, got {'x': 1}"),
    "words": (_chat(tool_calls="delete_account(7)"), "expected a call with a name, got 'delete_account(7)'"),
    "a list of words": (_chat(tool_calls=["delete_account"]), "expected a call with a name"),
    "nothing": (_chat(tool_calls=[None]), "expected a call with a name, got None"),
    "no name": (_chat(tool_calls=[{"id": "1", "function": {"arguments": "{}"}}]), "expected a call with a name"),
    "a blank name": (_chat(tool_calls=[{"id": "1", "name": " "}]), "expected a call with a name"),
    "cut arguments": (
        _chat(tool_calls=[{"id": "1", "function": {"name": "find", "arguments": '{"id": 7'}}]),
        "the arguments of 'find' are no JSON, or cut off",
    ),
    "a key of its own": (_chat(tool_call=OF_DELETE), "the key 'tool_call' may hold calls of tools"),
    "a key in capitals": (_chat(ToolCalls=[OF_DELETE]), "the key 'ToolCalls' may hold calls"),
    "invocations": (_chat(toolInvocations=[OF_DELETE]), "the key 'toolInvocations' may hold calls"),
    "a part of its own": (
        [ASKED, {"role": "assistant", "content": [{"type": "tool-invocation", "toolInvocation": OF_DELETE}]}, DONE],
        "the part of the type 'tool_invocation' may hold calls",
    ),
}
NEVER = Rubric("agent").checks(call("delete_account").never(), required=True)


@each_row("door", DOORS)
@each_row("form", NO_CALL)
def test_what_may_be_a_call_and_cannot_be_read_is_refused(door: str, form: str) -> None:
    """A rule that forbids the call would be kept without it."""
    chat, said = NO_CALL[form]
    told = ""
    try:
        found = DOORS[door](chat)
        told = str(getattr(found, "why", found))
    except DefinitionError as problem:
        told = str(problem)
    assert said in told


@pytest.mark.parametrize("form", NO_CALL)
def test_a_rule_over_calls_that_cannot_be_read_is_ungraded(form: str, tmp_path: Path) -> None:
    """So it is in rows, in files and as a run alone; the message has the place."""
    chat, said = NO_CALL[form]
    lines, alone = tmp_path / "a.jsonl", tmp_path / "a.json"
    lines.write_text(json.dumps({"messages": chat}) + "\n" + json.dumps({"messages": [ASKED, DONE]}), "utf-8")
    alone.write_text(json.dumps(chat), "utf-8")
    for result in (
        *grade_many([{"messages": chat}, {"messages": chat, "output": "Done."}], NEVER, "offline"),
        grade_many(lines, NEVER, "offline").collect()[0],
    ):
        assert isinstance(result, Ungraded)
        assert "messages[1]" in result.failures[0].message
        assert said in result.failures[0].message
    for source in (chat, {"messages": chat}, alone):
        with pytest.raises(DefinitionError, match=re.escape(said)):
            runs.read(source)
    for held in (alone, {"messages": chat}):
        with pytest.raises(DefinitionError, match=re.escape(said)):
            grade(held, NEVER, "offline")


STRAY = {"role": "tool", "tool_call_id": "9", "content": ""}


@each_row(
    ("chat", "verdict"),
    [
        ([ASKED, STRAY, DONE], "ungraded"),
        ([ASKED, {"role": "tool", "content": "gone"}, DONE], "ungraded"),
        (
            [
                ASKED,
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "9", "content": "gone"}]},
                DONE,
            ],
            "ungraded",
        ),
        (_chat(tool_calls=[{"id": "1", "function": {"name": "find", "arguments": "{}"}}]), "pass"),
        ([STRAY, *_chat(tool_calls=[OF_DELETE])], "fail"),
    ],
)
def test_no_rule_is_kept_by_a_log_that_lacks_a_call(chat: list[Any], verdict: str) -> None:
    """There is a result of it. What is there breaks a rule all the same, and a judge reads the chat."""
    for row in ({"messages": chat}, {"output": chat}, {"messages": chat, "output": "Done."}):
        result = grade_many([row], NEVER, "offline").collect()[0]
        assert result.verdict == verdict, row
        lacks = any("the log has no call for the result of" in each for each in result.warnings)
        assert lacks == (verdict != "pass")
        assert grade(row, POLITE, lambda _: '{"verdict": true}').verdict == "pass"


def test_a_call_without_a_result_is_named_where_others_have_one() -> None:
    """Of the last call, and of a log without results, nothing is said."""
    find = {"id": "2", "name": "find"}
    told = "the log has no result of a call of 'find', but those of others"
    assert candidate_of_chat(_chat(tool_calls=[OF_DELETE, find])).remarks == (told,)
    assert candidate_of_chat([ASKED, {**CALLED, "tool_calls": [OF_DELETE, find]}, DONE]).remarks == ()
    assert candidate_of_chat([*_chat(tool_calls=[OF_DELETE]), {**CALLED, "tool_calls": [find]}]).remarks == ()


def test_arguments_that_a_model_wrote_wrongly_are_a_call_that_failed() -> None:
    """The line of the refusal reads them."""
    call = {"id": "1", "type": "invalid_tool_call", "name": "find", "arguments": '{"id": 7'}
    (made,) = chat_of([{**CALLED, "tool_calls": [call]}])
    assert made == ToolCall("find", arguments={"text": '{"id": 7'}, error="its arguments are not JSON")


def test_a_chat_in_another_column_or_in_a_text_is_found() -> None:
    """It is read where it can mean nothing else, and named where it is graded as a text."""
    chat = _chat(tool_calls=[OF_DELETE])
    assert grade({"messages": json.dumps(chat)}, NEVER, "offline").verdict == "fail"
    assert len([*runs.read({"messages": json.dumps(chat)}).steps()]) > 1
    with pytest.raises(DefinitionError, match="'trace' is a chat: name it messages"):
        grade({"trace": chat}, NEVER, "offline")
    with pytest.raises(DefinitionError, match=re.escape("it holds a chat: write read(source['a'][0])")):
        runs.read({"a": [chat]})
    assert "name it messages" in str(grade_many([{"output": json.dumps(chat)}], NEVER, "offline").collect()[0].warnings)
    for calls in ('[{"name": "delete_account"}]', {"name": "delete_account"}, ['{"name": "delete_account"}']):
        assert grade({"output": "Done.", "tool_calls": calls}, NEVER, "offline").verdict == "fail"


def test_a_block_with_a_result_of_no_call_is_kept() -> None:
    """What it says is a message of a tool, as the result of no call is in the chats of OpenAI."""
    orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "9", "content": "paid"}]}
    assert [(each.role, each.content) for each in chat_of([orphan])] == [("tool", "paid")]  # type: ignore[union-attr]


def test_a_custom_tool_of_openai_has_its_name_and_its_words() -> None:
    """Its input is a text, and no JSON."""
    call = {"id": "1", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    (made,) = chat_of([{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert made == ToolCall("sql", arguments={"input": "SELECT 1"})


@pytest.mark.parametrize(
    "source",
    [
        {"type": "text", "media_type": "text/plain", "data": "paid"},
        {"type": "content", "content": [{"type": "text", "text": "paid"}]},
    ],
)
def test_a_document_that_is_a_text_has_it(source: Any) -> None:
    """Its address is in base 64, as that of any other content is."""
    (made,) = chat_of([{"role": "user", "content": [{"type": "document", "source": source}]}])
    assert isinstance(made, Message)
    assert made.media[0].address == "data:text/plain;base64,cGFpZA=="


def test_a_transcript_that_is_left_out_is_named() -> None:
    """A recording has the words of it beside it, which no judge is shown."""
    made = candidate_of_chat(
        [ASKED, {"role": "assistant", "content": "Yes", "audio": {"id": "a", "transcript": "Yes"}}]
    )
    assert made.remarks == ("left out of the chat, and not shown to the judge: the transcript of audio",)
