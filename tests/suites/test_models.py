"""A model as a target, through real LiteLLM over HTTP: what it is sent, what becomes the candidate, what defers."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve

from rubric import Rubric
from rubric.errors import DefinitionError, ModelError
from rubric.internals import background_loop
from rubric.models.api_keys import missing_key
from rubric.models.chat_turns import ChatModel, ToolRequest
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.suites.targets.base import DeferError, Response, Target
from rubric.suites.targets.models import ModelTarget, opening
from rubric.values import Within
from rubric.values.candidates import RunMetrics
from rubric.values.judges import Judge
from rubric.values.requests import FailureKind
from rubric.values.runs import Message
from tests.rows import each_row
from tests.servers import Server
from tests.tool_server import ToolServer, wants

if TYPE_CHECKING:
    from collections.abc import Iterator

MODEL = "openai/gpt-4o-mini"
CASE = Case("rates", "Says what 2.3.0 added", input="What did 2.3.0 add?")


def respond(server: ToolServer, case: Case = CASE, **settings: Any) -> Response:
    """Return what a target that is reached at *server* makes of *case*."""
    settings = {"model": MODEL, "params": server.params, **settings}
    return background_loop.run(ModelTarget(**settings).respond(case))


@pytest.fixture(scope="module")
def faults() -> Iterator[Server]:
    """Yield the server that misbehaves on request."""
    with Server() as server:
        yield server


def test_a_case_becomes_a_candidate_with_the_models_answer_and_its_usage() -> None:
    """The output is what the model said and why it stopped, the rest is the case's, and the tokens are counted."""
    with ToolServer("Rate limits.") as server:
        response = respond(server)
    assert response.candidate == evolve(CASE.responding("Rate limits."), metrics=RunMetrics(finish_reason="stop"))
    assert (response.usage.calls, response.usage.prompt_tokens, response.usage.completion_tokens) == (1, 10, 5)
    assert response.warnings == ()


def test_the_system_prompt_the_messages_and_the_input_are_sent_in_this_order() -> None:
    """The conversation of the case stands between the system prompt and the input."""
    case = Case("c", "x", input="And 2.4?", messages=(Message("user", "2.3?"), Message("assistant", "Rate limits.")))
    with ToolServer("Nothing.") as server:
        respond(server, case, system="Be brief.", temperature=0.5, max_tokens=7)
    sent = server.requests[0]
    assert [message["content"] for message in sent["messages"]] == ["Be brief.", "2.3?", "Rate limits.", "And 2.4?"]
    assert (sent["temperature"], sent["max_tokens"], "tools" in sent) == (0.5, 7, False)


def test_an_input_that_is_the_last_message_is_sent_once() -> None:
    """A file may tell the same question in both places."""
    case = Case("c", "x", input="Hello?", messages=(Message("user", "Hello?"),))
    assert opening(case) == [{"role": "user", "content": "Hello?"}]


def test_a_role_that_vendors_refuse_goes_as_a_user_who_names_it() -> None:
    """What a tool said is not lost, and the request is not turned away for it."""
    case = Case("c", "x", messages=(Message("tool", "21 degrees"),))
    assert opening(case) == [{"role": "user", "content": "tool: 21 degrees"}]


def test_a_case_that_asks_nothing_defers() -> None:
    """Without an input and messages there is nothing to send."""
    with pytest.raises(DeferError, match="'empty' asks nothing"):
        opening(Case("empty", "x", input="  "))


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("openai/gpt-4o-mini", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-flash", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("groq/llama-3.1-8b-instant", "GROQ_API_KEY"),
    ],
)
def test_without_a_key_it_defers_and_names_the_variable(model: str, names: str) -> None:
    """Nothing is sent, and the message says what to set."""
    with pytest.raises(DeferError, match=f"no key for the model '{model}': set {names}"):
        background_loop.run(ModelTarget(model).respond(CASE))


@each_row(
    ("model", "environ", "params"),
    [
        ("openai/gpt-4o-mini", {"OPENAI_API_KEY": "k"}, {}),
        ("anthropic/claude-sonnet-4-5", {"ANTHROPIC_AUTH_TOKEN": "k"}, {}),
        ("gemini/gemini-2.5-flash", {"PALM_API_KEY": "k"}, {}),
        ("github/gpt-4.1", {"GITHUB_TOKEN": "k"}, {}),
        ("openai/gpt-4o-mini", {}, {"api_key": "k"}),
        ("openai/local", {}, {"api_base": "http://127.0.0.1:1/v1"}),
        ("vertex_ai/gemini-2.5-flash", {}, {}),
        ("bedrock/anthropic.claude-3-haiku-20240307-v1:0", {}, {}),
        ("ollama/llama3", {}, {}),
    ],
)
def test_no_key_is_missing_where_there_is_another_way_in(model: str, environ: dict[str, str], params: Any) -> None:
    """A key by another name, one from the caller, or a vendor that needs none."""
    assert missing_key(Judge(model, params=params), environ) == ""


@pytest.mark.parametrize(
    ("behaviour", "kind", "requests"),
    [
        ("401", "auth", 1),
        ("quota", "quota", 1),
        ("400", "bad_request", 1),
        ("context", "context_window", 1),
        ("429-after", "rate_limited", 2),
        ("503", "overloaded", 2),
        ("reset", "transport", 2),
        ("hang", "timeout", 2),
        ("html", "bad_response", 2),
        ("content-empty", "bad_response", 2),
        ("length", "truncated", 1),
        ("content-filter", "refusal", 1),
    ],
)
def test_a_model_that_does_not_answer_is_a_typed_failure(
    faults: Server, behaviour: str, kind: FailureKind, requests: int
) -> None:
    """No empty candidate is made up; what may pass is tried again, and each attempt is counted."""
    endpoint = faults.at(behaviour)
    params = {"api_base": endpoint.openai, "api_key": "sk-test-0123456789abcdef"}
    target = ModelTarget(MODEL, params=params, retries=1, timeout=1.0 if behaviour == "hang" else 10)
    with pytest.raises(ModelError) as caught:
        background_loop.run(target.respond(CASE))
    failure = caught.value.failure
    assert (failure.kind, len(endpoint.requests), failure.usage.calls) == (kind, requests, requests)
    assert "0123456789abcdef" not in str(failure)


def test_an_attempt_that_failed_in_passing_is_made_again(faults: Server) -> None:
    """The answer counts, and so does the attempt before it."""
    endpoint = faults.at("503", "ok")
    target = ModelTarget(MODEL, params={"api_base": endpoint.openai, "api_key": "k"})
    response = background_loop.run(target.respond(CASE))
    assert json.loads(response.candidate.output)["verdict"] is True
    assert response.usage.calls == 2


def test_a_refusal_is_an_answer() -> None:
    """A rubric may well ask for one."""
    refusing = {"role": "assistant", "content": None, "refusal": "I will not."}
    with ToolServer(refusing) as server:
        assert respond(server).candidate.output == "I will not."


def test_a_parameter_that_the_model_does_not_take_is_told(faults: Server) -> None:
    """It is left out, as a judge's is, and the response says so."""
    endpoint = faults.at("ok")
    params = {"api_base": endpoint.openai, "api_key": "k"}
    response = background_loop.run(ModelTarget("openai/o3-mini", temperature=0.5, params=params).respond(CASE))
    assert response.warnings == ("the model takes no temperature: left out",)
    assert "temperature" not in endpoint.requests[0].body


def test_a_chat_turn_holds_the_tools_that_the_model_wants() -> None:
    """Names and arguments as the model wrote them, and the message to send back."""
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    with ToolServer(wants(("look", {"at": 1}), ("look", '{"at": '), text="Let me see.")) as server:
        turn = background_loop.run(
            ChatModel(Judge(MODEL, max_tokens=4096, params=server.params)).say(
                [{"role": "user", "content": "?"}], [tool]
            )
        )
    assert server.requests[0]["tools"] == [tool]
    assert (turn.text, turn.finish, turn.usage.calls) == ("Let me see.", "tool_calls", 1)
    assert turn.tool_calls == (ToolRequest("call_1", "look", '{"at": 1}'), ToolRequest("call_2", "look", '{"at": '))
    assert [call["function"]["arguments"] for call in turn.message["tool_calls"]] == ['{"at": 1}', "{}"]


def test_a_request_for_tools_that_was_cut_is_a_failure() -> None:
    """Half of the arguments is not what the model wanted."""
    with ToolServer(wants("look", at=1), finish="length") as server, pytest.raises(ModelError, match="max_tokens=4096"):
        background_loop.run(
            ChatModel(Judge(MODEL, max_tokens=4096, params=server.params)).say([{"role": "user", "content": "?"}])
        )


@each_row(
    ("arguments", "problem"),
    [
        ('{"a": ', "Expecting value"),
        ("[1]", "expected a JSON object, got list"),
        ("null", "expected a JSON object, got NoneType"),
        ('{"a": NaN}', "not JSON compliant"),
        ('{"a": "\\ud800"}', "surrogates not allowed"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_arguments_that_are_no_sendable_object_are_refused(arguments: str, problem: str) -> None:
    """Whatever a model writes ends as a ValueError at the worst."""
    with pytest.raises(ValueError, match=problem):
        ToolRequest("1", "look", arguments).parse()


def test_no_arguments_are_an_empty_object() -> None:
    """Some vendors send an empty text for a function without parameters."""
    assert ToolRequest("1", "look", " ").parse() == {}


@pytest.mark.parametrize("model", ["offline", "", 7])
def test_a_target_that_is_no_vendors_model_is_refused(model: Any) -> None:
    """The offline judge counts words; it has no answers."""
    with pytest.raises(DefinitionError, match="model: expected"):
        ModelTarget(model)


def test_a_target_shows_its_settings_without_the_key() -> None:
    """The key stays out of reprs, and so out of logs."""
    target = ModelTarget(MODEL, params={"api_key": "sk-secret-123456"})
    assert isinstance(target, Target)
    assert repr(target) == f"ModelTarget('{MODEL}', params={{'api_key': '***'}})"


def test_a_cancelled_answer_ends_its_request(faults: Server) -> None:
    """Nothing goes on in the background when the caller has gone."""
    endpoint = faults.at("hang")
    target = ModelTarget(MODEL, params={"api_base": endpoint.openai, "api_key": "k"})

    async def cancelled() -> None:
        task = asyncio.create_task(target.respond(CASE))
        await asyncio.to_thread(endpoint.asked.wait, 10)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(cancelled())
    assert endpoint.closed.wait(10)


def test_the_time_to_load_a_client_is_no_part_of_what_an_answer_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first case of a process waits for the import of a client, and its latency does not say so."""
    clock = [0.0]

    async def ready(_: ChatModel) -> str:
        clock[0] = max(clock[0], 100.0)
        return ""

    monkeypatch.setattr(ChatModel, "ready", ready)
    monkeypatch.setattr("rubric.suites.runner.time.perf_counter", lambda: clock[0])
    with ToolServer("Rate limits.") as server:
        suite = Suite("s", [Case("a", Rubric().checks(Within(latency=1)), input="Why?")])
        report = suite.run(target=ModelTarget(MODEL, params=server.params))
    assert (report.rows[0].status, report.rows[0].metrics["latency"]) == ("passed", 0.0)
