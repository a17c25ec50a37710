"""Runs of other tools: logs and objects that their own libraries have made, recognised by their content."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rubric import Candidate, DefinitionError, Grade, Rubric, Run, call, grade, grade_many, runs
from rubric.engine.sources import as_candidate, source_of
from rubric.integrations.mapping import default_candidate
from rubric.integrations.promptfoo import default_candidate as of_promptfoo
from rubric.integrations.trl import default_candidate as of_trl
from rubric.runs.formats import FORMATS, candidates_in, format_of
from rubric.values.runs import Message, State, SubRun, ToolCall
from tests.rows import each_row

if TYPE_CHECKING:
    from rubric.values.runs import Event

DATA = Path(__file__).parent / "data"
PICTURE, CART, PDF = (
    "image data:image/png;base64,iVBORw==",
    "image https://example.org/cart.png",
    "document https://example.org/a.pdf",
)
LOOKED = 'look_up {"order": "A1"} -> shipped'
LOST = 'look_up {"order": "A2"} failed: no such order'


def told(event: Event) -> str:
    """Return *event* in a line: who, what, what came of it, media, thoughts."""
    media = "".join(f" <{each.kind} {each.address}>" for each in getattr(event, "media", ()))
    match event:
        case Message():
            thought = f" ({event.reasoning})" if event.reasoning else ""
            name = f" {event.name}" if event.name else ""
            return f"{event.role}{name}: {event.content}{thought}{media}"
        case ToolCall():
            came = f" failed: {event.error}" if event.error else "" if event.result is None else f" -> {event.result}"
            by = f"{event.agent} calls " if event.agent else ""
            return f"{by}{event.name} {json.dumps(dict(event.arguments))}{came}{media}"
        case SubRun():
            return f"agent {event.agent}"
        case State():
            return f"state {dict(event.values)}"


AGENT = [
    "system: Be brief.",
    f"user: Where are A1 and A2? <{CART}> <{PICTURE}>",
    "assistant: Let me look. (I must look)",
    LOOKED,
    LOST,
    'ask_law {"q": "may I?"} -> The law says yes.',
    "agent helper",
    "user: may I?",
    "assistant: The law says yes.",
    "assistant: A1 has shipped.",
]
SAID = {
    "adk_session.json": [
        f"user: Refund order A1, please <{PICTURE}> <{PDF}>",
        "assistant root: Let me look. (I should look it up)",
        'root calls look_up {"order": "A1"} -> {"status": "ok", "state": "shipped"}',
        'root calls refund {"order": "A1"} failed: no such order',
        'root calls transfer_to_agent {"agent_name": "helper"} -> {"result": null}',
        "assistant helper: I am the helper and it is done.",
    ],
    "gemini.json": [
        f"user: Where is A1? <image data:image/png;base64,+/8=> <{PDF}>",
        "assistant: Let me look. (I must look)",
        LOOKED,
        LOST,
        'code {"code": "1/0", "language": "PYTHON"} failed: ZeroDivisionError',
        "assistant: A1 has shipped.",
    ],
    "inspect.json": [
        "user: Where are A1 and A2? <image data:image/png;base64,iVBORw0KGgo=>",
        "assistant: Let me look. (I must look)",
        f"{LOOKED} <image data:image/png;base64,iVBORw0KGgo=>",
        LOST,
        'helper {"input": "check the law"} -> The law says yes.',
        "agent helper",
        "user: check the law",
        "assistant: The law says yes.",
        "assistant: Your order A1 has shipped, A2 does not exist.",
    ],
    "langchain.json": [
        "system: Be brief.",
        f"user: Where is A1? <{CART}>",
        "assistant: Let me look. (I must look)",
        'look_up {"order": "A1"} failed: no such order',
        "assistant: It is unknown.",
    ],
    "otlp.json": AGENT,
    "response.json": [
        "system: Be brief.",
        "assistant:  (I must look)",
        "assistant: Let me look.",
        'web_search {"type": "search", "query": "A1"}',
        'look_up {"order": "A1"}',
        "refund {} failed: not allowed",
        "assistant: A1 has shipped.",
        "refusal: I cannot refund it.",
    ],
    "response_items.json": [
        f"user: Where is A1? <{CART}>",
        "assistant:  (I must look)",
        "assistant: Let me look.",
        'web_search {"type": "search", "query": "A1"}',
        LOOKED,
        "assistant: A1 has shipped.",
        "refusal: I cannot refund it.",
    ],
    "spans.json": AGENT,
    "trajectory.json": [
        "user: Where are A1 and A2?",
        "assistant: I must look\n\nLet me look. (I must look)",
        LOOKED,
        'look_up {"order": "A2"} -> ',
        'helper {"input": "check the law"} -> The law says yes.',
        "assistant: Your order A1 has shipped, A2 does not exist.",
    ],
}
NAMES = {
    "adk_session": "adk",
    "adk_cases": "adk",
    "gemini": "gemini",
    "inspect": "inspect",
    "langchain": "chat",
    "otlp": "opentelemetry",
    "response": "responses",
    "response_items": "responses",
    "spans": "opentelemetry",
    "trajectory": "atif",
}


def events_of(run: Run) -> list[str]:
    return [told(event) for _, event in run.steps()]


@each_row("name", SAID)
def test_a_log_is_read_in_its_order(name: str) -> None:
    """Words, thoughts, calls, results, failures, media and sub-agents of a real log are events, each at its place."""
    assert events_of(runs.read(DATA / name)) == SAID[name]


@each_row("path", [*DATA.iterdir()], ids=lambda path: path.stem)
def test_a_log_is_recognised_by_its_content(path: Path) -> None:
    """Each log is of one format; named, it is read alike."""
    document = json.loads(path.read_text())
    found = format_of(document)
    assert found is not None
    assert found.name == NAMES[path.stem]
    if path.stem != "adk_cases":
        assert runs.read(path, found.name) == runs.read(document) == runs.read(str(path))


def test_cases_of_adk_are_many(tmp_path: Path) -> None:
    """Each case of an eval set is a candidate under its id; one run is not read of two."""
    one, two = map(as_candidate, source_of(DATA / "adk_cases.json").items)  # type: ignore[arg-type]
    assert (one.key, two.key, one.output, two.output) == ("one", "two", "A1 has shipped.", "A1 has shipped.")
    assert events_of(two.run)[1:] == [
        'agent calls look_up {"order": "A1"} -> shipped',
        "assistant root: Let me look.",
        "assistant agent: A1 has shipped.",
    ]
    with pytest.raises(DefinitionError, match="it has 2 runs"):
        runs.read(DATA / "adk_cases.json")


def test_each_call_of_a_model_adds_what_is_new() -> None:
    """What was said twice is there twice; a history that was cut, or summed up, adds its summary alone."""

    def said(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "parts": [{"type": "text", "content": text}]}

    sent = [
        ([said("user", "yes"), said("user", "yes")], [said("assistant", "ok")]),
        (
            [said("user", "yes"), said("user", "yes"), said("assistant", "ok"), said("user", "yes")],
            [said("assistant", "ok")],
        ),
        ([said("user", "They agreed."), said("assistant", "ok"), said("user", "So?")], [said("assistant", "Done.")]),
    ]
    spans = [
        {
            "name": "chat",
            "context": {"trace_id": "t", "span_id": f"s{number}"},
            "parent_id": None,
            "start_time": f"2026-11-25T19:00:0{number}Z",
            "attributes": {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": json.dumps(asked),
                "gen_ai.output.messages": json.dumps(answer),
            },
        }
        for number, (asked, answer) in enumerate(sent)
    ]
    assert events_of(runs.read(spans[::-1])) == [
        "user: yes",
        "user: yes",
        "assistant: ok",
        "user: yes",
        "assistant: ok",
        "user: They agreed.",
        "user: So?",
        "assistant: Done.",
    ]


def test_older_events_of_spans_are_read() -> None:
    """The conventions had a message an event first, with the calls of OpenAI's form."""
    call = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": '{"order": "A1"}'}}
    events = [
        {"name": "gen_ai.system.message", "attributes": {"content": "Be brief."}},
        {"name": "gen_ai.user.message", "attributes": {"content": "Where is A1?"}},
        {"name": "gen_ai.assistant.message", "attributes": {"tool_calls": json.dumps([call])}},
        {"name": "gen_ai.tool.message", "attributes": {"id": "c", "content": "shipped"}},
        {"name": "gen_ai.choice", "attributes": {"message": '{"content": "A1 has shipped."}', "finish_reason": "stop"}},
    ]
    span = {"name": "chat", "context": {"trace_id": "t", "span_id": "s"}, "parent_id": None, "events": events}
    assert events_of(runs.read([{**span, "attributes": {"gen_ai.operation.name": "chat"}}])) == [
        "system: Be brief.",
        "user: Where is A1?",
        LOOKED,
        "assistant: A1 has shipped.",
    ]


def test_times_are_those_of_the_log() -> None:
    """A call has the time and the duration of its execution."""
    call = runs.read(DATA / "spans.json").events[3]
    assert isinstance(call, ToolCall)
    assert (call.time, call.duration) == ("2026-11-25T19:37:48.299846Z", 0.00235)


@each_row("name", [each for each in SAID if each != "inspect.json"])
def test_a_file_is_graded_as_its_run(name: str) -> None:
    """`grade` and `grade_many` take the file, and see the answer with which the run ends."""
    prompts: list[str] = []

    def judge(messages: Any) -> str:
        prompts.append(json.dumps(messages))
        return '{"reason": "So it is.", "verdict": true}'

    answer = next(line for line in reversed(SAID[name]) if not line.startswith("refusal")).partition(": ")[2]
    assert grade(DATA / name, "Is polite", judge).passed
    (result,) = grade_many(DATA / name, "Is polite", judge, progress=False)
    assert isinstance(result, Grade)
    assert all(json.dumps(answer)[1:-1] in prompt for prompt in prompts)


def test_runs_are_rows_too(tmp_path: Path) -> None:
    """A list, or lines of JSON, hold runs of several formats, as documents, as values, and beside a reference."""
    documents = [
        json.loads((DATA / name).read_text()) for name in ("trajectory.json", "adk_session.json", "response.json")
    ]
    ends = ["Your order A1 has shipped, A2 does not exist.", "I am the helper and it is done.", "A1 has shipped."]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents))
    for given in (documents, tmp_path / "runs.jsonl", [runs.read(each) for each in documents]):
        assert [as_candidate(item).output for item in source_of(given).items] == ends  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["gemini.json", "response_items.json", "trajectory.json", "adk_session.json"])
@pytest.mark.parametrize("column", ["run", "output", "messages"])
def test_a_column_holds_runs(name: str, column: str) -> None:
    """A run is a column among others, such as the reference, under each name that a run may have."""
    document = json.loads((DATA / name).read_text())
    if column == "messages" and isinstance(document, dict):
        pytest.skip("messages are a list")
    made = as_candidate({column: document, "reference": "R", "context": "C"})
    assert (made.output, made.reference, made.context) == (runs_answer(name), "R", "C")
    assert events_of(made.run) == SAID[name]


def span_with(**attributes: Any) -> list[dict[str, Any]]:
    """Return a log of one span of a model, that says "don"."""
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "don"}], **attributes.pop("own", {})}]
    held = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(said), **attributes}
    times = {"start_time": "2026-01-01T00:00:00+00:00", "end_time": "2026-01-01T00:00:01+00:00"}
    return [{"context": {"span_id": "1", "trace_id": "t"}, "parent_id": None, **times, "attributes": held}]


@each_row(
    "log",
    [
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "don", "finish_reason": "length"}],
        {"messages": [{"role": "assistant", "content": "don"}], "stop_reason": "max_tokens"},
        [{"type": "ai", "content": "don", "response_metadata": {"finish_reason": "length"}}],
        [{"type": "function_call", "call_id": "1", "name": "a", "arguments": "{}", "status": "incomplete"}],
        {"choices": [{"finish_reason": "length", "message": {"role": "assistant", "content": "don"}}]},
        {"type": "message", "role": "assistant", "content": "don", "stop_reason": "max_tokens"},
        span_with(own={"finish_reason": "length"}),
        span_with(**{"gen_ai.response.finish_reasons": ["length"]}),
    ],
)
def test_a_run_whose_model_ran_into_its_limit_is_not_complete(log: Any) -> None:
    """In each format's own words: what is not there may have come after it, so no rule is broken by its absence."""
    assert not runs.read(log).complete


@pytest.mark.parametrize("end", ["stop", "end_turn", "tool_calls", "STOP"])
def test_a_run_that_came_to_its_end_is_complete(end: str) -> None:
    """A limit that an earlier answer ran into, and that the run went on after, is none of the whole."""
    log = [{"role": "assistant", "content": "don", "finish_reason": "length"}, {"role": "user", "content": "Go on."}]
    assert runs.read([*log, {"role": "assistant", "content": "done", "finish_reason": end}]).complete


def test_a_request_and_its_response_are_one_run() -> None:
    """OpenAI's answer stands under `choices`, beside the messages or alone; one of Anthropic's is a run by itself."""
    answer = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}]}
    asked = {"messages": [{"role": "user", "content": "q"}]}
    assert events_of(runs.read({**asked, **answer})) == ["user: q", "assistant: done"]
    assert events_of(runs.read({"object": "chat.completion", **answer})) == ["assistant: done"]
    block = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "done"}]}
    assert events_of(runs.read({**block, "stop_reason": "end_turn"})) == ["assistant: done"]
    with pytest.raises(DefinitionError, match="the response has 2 answers to one question"):
        runs.read({"choices": answer["choices"] * 2})


def test_what_is_of_another_format_or_version_is_refused() -> None:
    """Messages of A2A have parts as Gemini's have; another ATIF than the first has other fields, a newer one is told."""
    a2a = [{"role": role, "parts": [{"kind": "text", "text": "q"}]} for role in ("user", "agent")]
    with pytest.raises(DefinitionError, match="a run in none of the formats"):
        runs.read(a2a)
    trajectory = json.loads((DATA / "trajectory.json").read_text())
    with pytest.raises(DefinitionError, match=r"schema_version: expected ATIF-v1\.0 to ATIF-v1\.8, got 'ATIF-v2\.0'"):
        runs.read({**trajectory, "schema_version": "ATIF-v2.0"})
    newer = runs.read({**trajectory, "schema_version": "ATIF-v1.99"})
    assert any("ATIF-v1.99 is newer" in remark for remark in newer.metadata["left_out"])


def test_lines_of_spans_are_one_log(tmp_path: Path) -> None:
    """Spans that are written line by line are put together by their trace."""
    spans = json.loads((DATA / "spans.json").read_text())
    (tmp_path / "spans.jsonl").write_text("".join(json.dumps(each) + "\n" for each in spans))
    (candidate,) = source_of(tmp_path / "spans.jsonl").items  # type: ignore[misc]
    assert events_of(candidate.run) == AGENT


@pytest.mark.parametrize(
    "row",
    [
        {"type": "reasoning", "output": "x"},
        {"type": "phone_call", "output": "x"},
        {"role": "pilot", "refusal": "y", "output": "x"},
        {"parts": ["a"], "output": "x"},
        {"events": [{"name": "a"}], "output": "x"},
        {"schema_version": "1.0", "steps": [], "output": "x"},
        {"object": "response", "output": "x"},
        {"context": "y", "attributes": {"gen_ai.system": "z"}, "output": "x"},
    ],
)
def test_rows_that_look_like_runs_are_rows(row: dict[str, Any], tmp_path: Path) -> None:
    """Columns with the names that formats have are columns: the text that is called output is graded."""
    (tmp_path / "rows.json").write_text(json.dumps([row]))
    for given in ([row], tmp_path / "rows.json"):
        assert [as_candidate(item).output for item in source_of(given).items] == ["x"]  # type: ignore[union-attr]


def test_a_document_of_two_formats_is_refused(tmp_path: Path) -> None:
    """The error has a line for each, and each of them reads the file."""
    both = {**json.loads((DATA / "trajectory.json").read_text()), **json.loads((DATA / "otlp.json").read_text())}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(both))
    with pytest.raises(DefinitionError, match="marks of two formats, atif and opentelemetry") as refused:
        runs.read(path)
    lines = str(refused.value).partition("write ")[2].split(" or ")
    assert [len(eval(line, {"rubric": __import__("rubric"), "path": path}).events) for line in lines] == [6, 8]  # noqa: S307
    with pytest.raises(DefinitionError, match="marks of two formats"):
        grade(path, "Is polite", "offline")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"a": 1}, "a run in none of the formats atif, inspect, adk"),
        ("gone.json", "there is no file 'gone.json'"),
        ({"eval": {}, "samples": []}, "it has no run"),
        (
            {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": "s", "name": "GET"}]}]}]},
            "trace t has no",
        ),
    ],
)
def test_what_is_no_run_is_refused(given: Any, why: str) -> None:
    """The error says what it is not, or what its log lacks."""
    with pytest.raises(DefinitionError, match=why):
        runs.read(given)
    with pytest.raises(DefinitionError, match="expected one of atif, inspect"):
        runs.read(given if isinstance(given, dict) else {}, "otel")


OTHERS = ("notes", "final_metrics", "continued_trajectory_ref", "extra", "subagent_trajectories")


def test_a_run_is_written_to_a_file(tmp_path: Path) -> None:
    """What another tool has logged is written in ATIF, and read as the same events."""
    for name, said in SAID.items():
        run = runs.read(DATA / name)
        runs.write(run, tmp_path / "run.json")
        again = runs.read(tmp_path / "run.json")
        assert events_of(again) == said
        assert as_candidate(again).remarks == as_candidate(run).remarks
        written = json.loads((tmp_path / "run.json").read_text())
        assert written.keys() <= {"schema_version", "session_id", "trajectory_id", "agent", "steps", *OTHERS}


def test_runs_of_sub_agents_are_read_beside_the_file_alone(tmp_path: Path) -> None:
    """A reference to a file in its folder is read; one out of it, or to a file that is not there, is named as missing."""
    (tmp_path / "log").mkdir()
    sub = {"schema_version": "ATIF-v1.6", "agent": {"name": "sub", "version": "1"}, "steps": []}
    step = {"step_id": 1, "source": "agent", "message": "Done."}
    for path in (tmp_path / "log" / "sub.json", tmp_path / "out.json"):
        path.write_text(json.dumps({**sub, "steps": [step]}))
    refs = [{"trajectory_path": path} for path in ("sub.json", "../out.json", "gone.json")]
    result = {"subagent_trajectory_ref": refs}
    root = {**sub, "steps": [{**step, "source": "system", "observation": {"results": [result]}}]}
    (tmp_path / "log" / "run.json").write_text(json.dumps(root))
    run = runs.read(tmp_path / "log" / "run.json")
    assert [len(each.run.events) for each in run.events if isinstance(each, SubRun)] == [1, 0, 0]
    assert [*as_candidate(run).remarks] == [
        f"the run of the sub-agent {path!r} is not in the log, so no judge is shown it"
        for path in ("../out.json", "gone.json")
    ]


def test_every_format_has_a_log_here() -> None:
    """A format without a real log would be read by guess."""
    assert {*NAMES.values()} == {*FORMATS}


@pytest.mark.parametrize("name", ["gemini.json", "response_items.json", "trajectory.json"])
def test_adapters_take_runs(name: str) -> None:
    """What a task of another harness returns may be a run of any format; its question is not said twice."""
    document = json.loads((DATA / name).read_text())
    asked = SAID[name][0].partition(": ")[2].partition(" <")[0]
    for given in (asked, None):
        for made in (
            default_candidate(given, document, "R"),
            of_trl(given, document, "R"),
            of_promptfoo(document, {"vars": {}, "prompt": given or ""}),
        ):
            assert (made.output, made.input) == (runs_answer(name), asked)
            assert [told(each) for each in made.run.events if isinstance(each, ToolCall)] == [
                line for line in SAID[name] if line.startswith(("look_up", "code", "helper", "web_search"))
            ]


def runs_answer(name: str) -> str:
    return next(line for line in reversed(SAID[name]) if line.startswith("assistant")).partition(": ")[2]


ASKED = {"contents": [{"role": "user", "parts": [{"text": "Where is A1?"}]}]}
CUT = {"content": {"role": "model", "parts": [{"text": "It has"}]}, "finishReason": "MAX_TOKENS"}


@each_row("asked", [ASKED, {}], ids=["with its request", "alone"])
@each_row(
    ("response", "output", "events", "is_whole"),
    [
        ({"candidates": [CUT]}, "It has", ["assistant: It has"], False),
        ({"candidates": [{**CUT, "finishReason": "FinishReason.STOP"}]}, "It has", ["assistant: It has"], True),
        ({"candidates": [{**CUT, "finishReason": "SAFETY"}]}, "It has", ["assistant: It has", "refusal: SAFETY"], True),
        ({"candidates": [{"finishReason": "SAFETY"}]}, "", ["refusal: SAFETY"], True),
        ({"candidates": [{"content": {"role": "model"}, "finish_reason": "SPII"}]}, "", ["refusal: SPII"], True),
        ({"promptFeedback": {"blockReason": "OTHER"}}, "", ["refusal: OTHER"], True),
    ],
    ids=["cut", "whole", "held back", "refused", "without parts", "prompt refused"],
)
def test_gemini_says_how_its_response_ended(
    asked: dict[str, Any], response: dict[str, Any], output: str, events: list[str], is_whole: bool
) -> None:
    """A response that was cut is a run that is not complete; one that a filter held back ends with a refusal."""
    found = candidates_in(asked | response)
    assert found is not None
    (candidate,) = found
    assert isinstance(candidate, Candidate)
    assert (candidate.output, candidate.run.complete) == (output, is_whole)
    assert events_of(candidate.run) == [*(["user: Where is A1?"] if asked else []), *events]


@pytest.mark.parametrize(
    "last",
    [
        {"content": "Let me look.", "tool_calls": [{"id": "1", "function": {"name": "look_up", "arguments": "{}"}}]},
        {"content": [{"type": "text", "text": "Let me look."}, {"type": "tool_use", "id": "1", "name": "look_up"}]},
    ],
    ids=["beside its content", "a block of it"],
)
def test_words_before_a_call_are_no_answer_at_any_door(tmp_path: Path, last: dict[str, Any]) -> None:
    """What the assistant said before it called a tool is not its answer, neither of a file of a run nor of a row."""
    chat = [{"role": "user", "content": "Where is A1?"}, {"role": "assistant", **last}]
    (tmp_path / "run.json").write_text(json.dumps(chat))
    (tmp_path / "rows.jsonl").write_text(json.dumps({"messages": chat}) + "\n")
    assert as_candidate(tmp_path / "run.json").output == ""
    assert as_candidate({"messages": chat}).output == ""
    (row,) = grade_many(tmp_path / "rows.jsonl", "x", "offline")
    assert "has no answer: the run ends without an answer of the assistant, with [3] call look_up;" in row.explain()
    assert as_candidate({"output": "", "messages": chat}).output == ""  # the cure


def test_two_last_messages_of_the_assistant_are_one_answer_and_a_warning(tmp_path: Path) -> None:
    """Whoever wrote one answer in two messages is told which one is graded."""
    says = [{"role": "assistant", "content": text} for text in ("Thank you.", "It arrives on Friday.")]
    (tmp_path / "run.json").write_text(json.dumps(chat := [{"role": "user", "content": "Where is A1?"}, *says]))
    for given in (tmp_path / "run.json", {"messages": chat}):
        made = as_candidate(given)
        assert made.output == "It arrives on Friday."
        assert made.remarks[0].startswith(
            "the assistant ends with two messages in a row, and the last is graded, step 3"
        )
    assert as_candidate({"messages": chat[:2]}).remarks == ()


def test_a_run_is_graded_as_a_candidate() -> None:
    """A run in the place of a candidate is refused with the line that grades it."""
    run = runs.read([{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "It has shipped."}])
    with pytest.raises(DefinitionError, match=re.escape("grade(Candidate(run=run), rubric, judge)")):
        grade(run, "It has shipped", "offline")  # type: ignore[arg-type]
    assert grade(Candidate(run=run), "It has shipped", "offline").passed


@each_row(
    "said",
    [
        [{"from": "human", "value": "Where is A1?"}, {"from": "gpt", "value": "On its way."}],
        [{"speaker": "customer", "text": "Where is A1?"}, {"speaker": "Agent", "text": "On its way."}],
        [{"author": "user", "message": "Where is A1?"}, {"author": "bot", "message": "On its way."}],
    ],
)
def test_a_chat_by_speakers_is_a_chat(said: list[dict[str, str]]) -> None:
    """As ShareGPT's data sets and transcripts of support have it; the answer alone is graded."""
    for made in (as_candidate({"messages": said}), as_candidate({"output": said})):
        assert (made.input, made.output) == ("Where is A1?", "On its way.")


def test_messages_that_are_no_chat_are_told_as_such() -> None:
    """And not that the output is missing."""
    with pytest.raises(DefinitionError, match="messages: expected messages, each with a role and a content, got "):
        as_candidate({"messages": [["customer", "How?"]]})


def test_an_entry_of_a_log_of_requests_is_a_run(tmp_path: Path) -> None:
    """Its request and its response are one chat, in a file, in lines and in code."""
    called = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": "{}"}}
    entry = {
        "ts": 1,
        "request": {"model": "m", "messages": [{"role": "user", "content": "Refund 7."}]},
        "response": {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [called]}}]},
    }
    (tmp_path / "entry.json").write_text(json.dumps(entry))
    (tmp_path / "log.jsonl").write_text(f"{json.dumps(entry)}\n" * 2)
    rule = Rubric("r").checks(call("refund").never())
    assert [result.verdict for result in grade_many(tmp_path / "log.jsonl", rule, "offline")] == ["fail", "fail"]
    assert [grade(each, rule, "offline").verdict for each in (entry, tmp_path / "entry.json")] == ["fail"] * 2
    assert [type(each) for each in runs.read(entry).events] == [Message, ToolCall]
