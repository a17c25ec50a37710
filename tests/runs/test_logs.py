"""Logs of other tools as candidates: recognised by content, with chats and tool calls, and nothing left out in silence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rubric import DefinitionError, Grade, Rubric, Ungraded, grade, grade_many, plan
from rubric.engine.sources import as_candidate, source_of
from rubric.runs.logs import candidate_of
from tests.harnesses import harness

if TYPE_CHECKING:
    from pathlib import Path

    from rubric import Candidate

CALL = {"id": "1", "type": "function", "function": {"name": "orders", "arguments": '{"id": 7}'}}
CHAT = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "When?"}]
ANSWER = {"role": "assistant", "content": "On Friday."}
LANGCHAIN = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"]}

PROMPTFOO = [
    {
        "promptIdx": 0,
        "testIdx": 0,
        "vars": {"q": "When?"},
        "prompt": {"raw": "When?"},
        "response": {"output": "On Friday."},
    },
    {"promptIdx": 1, "testIdx": 0, "vars": {}, "prompt": {"raw": json.dumps(CHAT)}, "response": {"output": [CALL]}},
    {
        "promptIdx": 0,
        "testIdx": 1,
        "vars": {},
        "prompt": {"raw": "x"},
        "response": {"error": "rate limit"},
        "error": "e",
    },
]
LANGSMITH: list[dict[str, Any]] = [
    {
        "id": "r2",
        "trace_id": "r1",
        "parent_run_id": "r1",
        "run_type": "tool",
        "name": "pay",
        "dotted_order": "1.3",
        "inputs": {"sum": 2},
        "outputs": {"output": "paid"},
    },
    {
        "id": "r3",
        "trace_id": "r1",
        "parent_run_id": "r1",
        "run_type": "tool",
        "name": "orders",
        "dotted_order": "1.2",
        "inputs": {"id": 7},
        "outputs": {"output": "open"},
    },
    {
        "id": "r4",
        "trace_id": "r1",
        "parent_run_id": "r1",
        "run_type": "llm",
        "name": "model",
        "dotted_order": "1.4",
        "inputs": {"messages": [CHAT]},
        "outputs": {"generations": []},
    },
    {
        "id": "r1",
        "trace_id": "r1",
        "run_type": "chain",
        "name": "agent",
        "inputs": {"q": "When?"},
        "outputs": {"answer": "On Friday."},
        "reference_outputs": {"a": "Friday"},
    },
    {
        "id": "r5",
        "trace_id": "r5",
        "run_type": "chain",
        "name": "agent",
        "inputs": {"q": "When?"},
        "outputs": None,
        "error": "Timeout()",
    },
]
BRAINTRUST = [
    {
        "id": "a",
        "span_id": "s1",
        "root_span_id": "s1",
        "is_root": True,
        "input": CHAT,
        "output": [{"index": 0, "message": ANSWER}],
        "expected": "Friday",
        "span_attributes": {"name": "eval", "type": "eval"},
    },
    {
        "id": "b",
        "span_id": "s2",
        "root_span_id": "s1",
        "is_root": False,
        "input": {"id": 7},
        "output": "open",
        "span_attributes": {"name": "orders", "type": "tool"},
    },
]


def read(folder: Path, data: Any, name: str = "log.json") -> list[Candidate]:
    """Return the candidates of a file with *data*; JSON lines where its name says so."""
    path = folder / name
    text = "".join(json.dumps(row) + "\n" for row in data) if name.endswith("l") else json.dumps(data)
    path.write_text(text)
    found: list[Candidate] = []
    items: Any = source_of(path).items
    for item in items:
        try:
            found.append(as_candidate(item))
        except DefinitionError as error:
            found.append(as_candidate({"output": str(error), "key": "broken"}))
    return found


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_results_of_promptfoo(tmp_path: Path, depth: int) -> None:
    """An output with its prompt and variables; a list of tool calls is one; an error of the provider has its place."""
    data: Any = PROMPTFOO
    for _ in range(depth):
        data = {"version": 3, "results": data}
    first, second, third = read(tmp_path, data)
    assert (first.output, first.input, dict(first.variables), first.key) == (
        "On Friday.",
        "When?",
        {"q": "When?"},
        "0/0",
    )
    assert (second.output, second.input, [message.content for message in second.messages]) == (
        "",
        "When?",
        ["Be kind."],
    )
    assert [(call.name, dict(call.arguments)) for call in second.tool_calls] == [("orders", {"id": 7})]
    assert (first.group, second.group, third.key) == ("0", "0", "broken")
    assert "rate limit" in third.output


@pytest.mark.parametrize("name", ["log.json", "log.jsonl"])
def test_traces_of_langsmith(tmp_path: Path, name: str) -> None:
    """A trace is one candidate; the calls of its tools are in their order; a run without outputs has its place."""
    first, second = read(tmp_path, LANGSMITH, name)
    assert (first.output, first.input, first.reference) == ("On Friday.", "When?", "Friday")
    assert [(call.name, dict(call.arguments), call.result) for call in first.tool_calls] == [
        ("orders", {"id": 7}, "open"),
        ("pay", {"sum": 2}, "paid"),
    ]
    assert second.key == "broken"
    assert "Timeout()" in second.output


def test_a_tool_that_failed_has_its_error(tmp_path: Path) -> None:
    """The error of a span is that of its call."""
    failed = {**LANGSMITH[1], "outputs": None, "error": "no such order"}
    (candidate, _) = read(tmp_path, [failed, *LANGSMITH[3:]])
    assert [(call.result, call.error) for call in candidate.tool_calls] == [(None, "no such order")]


def test_calls_of_models_of_langsmith(tmp_path: Path) -> None:
    """An export of nothing but calls of models has each of them, with LangChain's serialised messages."""
    message = {
        **LANGCHAIN,
        # The words stand after the call: before it they were not an answer.
        "kwargs": {
            "content": [{"type": "tool_use", "id": "1", "name": "orders"}, {"type": "text", "text": "On Friday."}]
        },
    }
    row = {"id": "r", "parent_run_id": "p", "run_type": "llm", "inputs": {"messages": [CHAT]}}
    (candidate,) = read(
        tmp_path, [{**row, "outputs": {"generations": [[{"text": "", "message": message}]], "run": None}}]
    )
    assert (candidate.output, candidate.input, candidate.tool_calls[0].name) == ("On Friday.", "When?", "orders")
    assert [each.content for each in candidate.messages] == ["Be kind."]


def test_spans_of_braintrust(tmp_path: Path) -> None:
    """The root is the candidate, with the chat that was its input and the spans of its tools."""
    (candidate,) = read(tmp_path, BRAINTRUST)
    assert (candidate.output, candidate.input, candidate.reference) == ("On Friday.", "When?", "Friday")
    assert [message.content for message in candidate.messages] == ["Be kind."]
    assert [(call.name, call.result) for call in candidate.tool_calls] == [("orders", "open")]


def test_the_whole_conversation_as_an_output_is_not_doubled(tmp_path: Path) -> None:
    """A state that repeats what was asked has each message once."""
    row = {"id": "r", "run_type": "chain", "inputs": {"messages": CHAT}, "outputs": {"messages": [*CHAT, ANSWER]}}
    (candidate,) = read(tmp_path, [row])
    assert (candidate.output, candidate.input) == ("On Friday.", "When?")
    assert [message.content for message in candidate.messages] == ["Be kind."]


def test_other_json_is_rows_or_refused(tmp_path: Path) -> None:
    """An array is read like JSON lines, and with columns= a log is rows too; an object is a row."""
    assert [each.output for each in read(tmp_path, ["a", {"output": "b"}])] == ["a", "b"]
    (tmp_path / "rows.json").write_text(json.dumps([{"vars": 1, "promptIdx": 0, "answer": "c"}]))
    (result,) = grade_many(tmp_path / "rows.json", "Is polite", "offline", columns={"output": "answer", "vars": None})
    assert isinstance(result, Grade)
    assert [each.output for each in read(tmp_path, {"output": "a"})] == ["a"]
    for text, message in (('{"total": "a"}', "no column holds the text that is graded"), ("{", "no JSON")):
        (tmp_path / "one.json").write_text(text)
        with pytest.raises(DefinitionError, match=message):
            grade_many(tmp_path / "one.json", "Is polite", "offline")


def test_plan_counts_what_a_log_holds_and_grade_refuses_it(tmp_path: Path) -> None:
    """Other JSON is the text of one candidate there, such as an answer that has to be JSON."""
    log, answer = tmp_path / "log.json", tmp_path / "answer.json"
    log.write_text(json.dumps({"results": PROMPTFOO[:2]}))
    answer.write_text('["Friday"]')
    assert (plan(log, "Is polite", "offline").least, plan(answer, "Is polite", "offline").least) == (2, 1)
    assert grade(answer, "Is polite", "offline").score is not None
    with pytest.raises(DefinitionError, match="many candidates are for grade_many"):
        grade(log, "Is polite", "offline")


def test_examples_of_a_data_set_are_not_taken_for_outputs(tmp_path: Path) -> None:
    """The outputs of LangSmith's examples are reference answers; they are refused, as unknown columns are."""
    with pytest.raises(DefinitionError, match="look like fields of a candidate"):
        read(tmp_path, [{"id": "e", "inputs": {"q": "When?"}, "outputs": {"a": "On Friday."}}])


@pytest.mark.filterwarnings("ignore")
def test_a_log_of_inspect(tmp_path: Path) -> None:
    """Samples have their conversation, target and tool calls; one that failed is ungraded, and says why."""
    harness("inspect_ai", "inspect-ai")
    from inspect_ai import Task
    from inspect_ai import eval as run_eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ModelOutput
    from inspect_ai.solver import solver
    from inspect_ai.tool import ToolCall

    @solver  # type: ignore[untyped-decorator]  # Inspect may not be installed
    def agent() -> Any:
        async def solve(state: Any, _: Any) -> Any:
            if state.input_text == "Why?":
                raise RuntimeError("the tool broke")
            call = ToolCall(id="1", function="orders", arguments={"number": 7})
            state.messages.append(ChatMessageAssistant(content="", tool_calls=[call]))
            state.messages.append(ChatMessageTool(content="order 7 is open", tool_call_id="1", function="orders"))
            state.output = ModelOutput.from_content("mock", "On Friday.")
            state.messages.append(state.output.message)
            return state

        return solve

    samples = [Sample(input="When?", target="Friday", id="s1"), Sample(input="Why?", id="s2")]
    task = Task(dataset=samples, solver=agent())
    run_eval(task, model="mockllm/model", display="none", log_dir=str(tmp_path), fail_on_error=False)
    (path,) = tmp_path.glob("*.eval")
    good, bad = grade_many(
        path, Rubric("when").expects("Names Friday"), lambda messages: '{"verdict": true, "reason": "r"}'
    )
    assert isinstance(good, Grade), good.explain()
    assert isinstance(bad, Ungraded)
    assert "sample s2 has no output: RuntimeError('the tool broke')" in bad.explain()
    items: Any = source_of(path).items
    candidate = next(iter(items))
    assert (candidate.output, candidate.input, candidate.reference, candidate.key) == (
        "On Friday.",
        "When?",
        "Friday",
        "s1",
    )
    assert [(call.name, dict(call.arguments), call.result) for call in candidate.tool_calls] == [
        ("orders", {"number": 7}, "order 7 is open")
    ]
    with pytest.raises(DefinitionError, match="has no columns"):
        grade_many(path, "Is polite", "offline", columns={"input": "q"})


def test_what_the_user_said_between_two_answers_is_kept() -> None:
    """An output of several turns is a conversation after the question; its last message is graded."""
    turns = [{"role": "assistant", "content": "Which?"}, {"role": "user", "content": "The red one."}]
    made = candidate_of([*turns, {"role": "assistant", "content": "It costs 5."}], "What does it cost?")
    assert (made.input, made.output) == ("The red one.", "It costs 5.")
    assert [message.content for message in made.messages] == ["What does it cost?", "Which?"]


def test_words_before_a_result_whose_call_is_not_there_are_no_answer() -> None:
    """They may have been said before the call."""
    chat = [{"role": "assistant", "content": "I look."}, {"role": "tool", "content": "5"}]
    assert "without an answer of the assistant" in candidate_of(chat, "What?").unanswered
