"""Errors of real servers and vendors, recorded: each has its kind, over HTTP and through LiteLLM, on real sockets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rubric import Grade, Judge, Jury, Rubric, evaluate, model
from rubric.models.failure_kinds import failure_of_status
from rubric.values.requests import RETRIED, Failure
from tests.judging import JudgeLike
from tests.models.recorded_failures import LLAMA_CPP, RECORDED, Recorded
from tests.models.test_vendors import AWS, AZURE, Vendor, judge_at, run
from tests.rows import each_row
from tests.sendables import KEY
from tests.vendors import Answering, chat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import Request

BY_NAME = {
    "Anthropic": Vendor("anthropic/claude-sonnet-4-5", chat, base=""),
    "Azure": Vendor("azure/my-deployment", chat, base="", params=AZURE),
    "Bedrock": Vendor("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", chat, params=AWS),
    "DeepSeek": Vendor("deepseek/deepseek-chat", chat),
    "Gemini": Vendor("gemini/gemini-2.5-flash", chat, base=""),
    "Groq": Vendor("groq/openai/gpt-oss-20b", chat),
    "LM Studio": Vendor("lm_studio/m", chat),
    "Mistral": Vendor("mistral/mistral-large-latest", chat),
    "Ollama": Vendor("ollama_chat/llama3", chat, base=""),
    "OpenRouter": Vendor("openrouter/openai/gpt-4o-mini", chat),
    "Together": Vendor("together_ai/x/y", chat),
    "vLLM": Vendor("hosted_vllm/my-own", chat),
}
"""How LiteLLM names those that it has a way of its own to; the others are called as OpenAI is."""

OPENAI = Vendor("openai/gpt-4o-mini", chat)
by_row = pytest.mark.parametrize(
    "row", RECORDED, ids=[f"{n}-{row.server}-{row.status}" for n, row in enumerate(RECORDED)]
)


@pytest.fixture(scope="module")
def server() -> Iterator[Answering]:
    """Run a server that answers with the row that stands in `said`."""

    def answer(_: Request) -> tuple[int, dict[str, str], bytes]:
        row: Recorded = said[-1]
        return row.status, dict(row.headers), row.body.encode()

    said: list[Recorded] = []
    with Answering(answer) as running:
        running.said = said  # type: ignore[attr-defined]
        yield running


def failing(server: Answering, row: Recorded, vendor: Vendor, **judge: Any) -> Failure:
    """Return the failure of an ask that *server* answers with *row*."""
    server.said.append(row)  # type: ignore[attr-defined]
    outcome = run(judge_at(server, vendor, **judge))
    assert isinstance(outcome, Failure), outcome
    return outcome


@by_row
def test_its_kind_over_http(server: Answering, row: Recorded) -> None:
    """The kind decides whether the request is sent again, and the wait is the one that the server names."""
    failure = failing(server, row, OPENAI, via="http")
    assert (failure.kind, failure.retry_after) == (row.kind, row.waits), failure.message


@by_row
def test_its_kind_through_litellm(server: Answering, row: Recorded) -> None:
    """LiteLLM's way to the vendor gives the same kind, whatever class of error it makes of the body."""
    failure = failing(server, row, BY_NAME.get(row.server, OPENAI))
    assert (failure.kind, failure.retry_after) == (row.kind, row.waits), failure.message


@by_row
def test_its_message_is_for_people(server: Answering, row: Recorded) -> None:
    """The words of the innermost error are shown, on one line, without the JSON or the page around them."""
    message = failing(server, row, OPENAI, via="http").message
    assert message.partition(": ")[2][:1] not in ("", "{", "<", '"')
    assert len(message) < 300


def test_a_message_names_the_field_that_was_refused() -> None:
    """A list of invalid fields, as FastAPI gives it, is shown with their names."""
    body = {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}
    assert failure_of_status(422, json.dumps(body)).message == "HTTP 422: body.seed: Extra inputs are not permitted"


def test_a_text_that_is_repeated_decides_nothing() -> None:
    """The candidate may be repeated as the input that was refused, and its words are not the server's."""
    detail = [{"loc": ["body", "seed"], "msg": "bad", "input": "insufficient_quota: the maximum context length"}]
    assert failure_of_status(422, json.dumps({"detail": detail})).kind == "bad_request"


@pytest.mark.parametrize("row", LLAMA_CPP[:2], ids=["new", "old"])
def test_an_overflow_is_not_sent_again(server: Answering, row: Recorded) -> None:
    """A prompt that is too long for the model is sent once."""
    assert failing(server, row, OPENAI, via="http", retries=2).usage.calls == 1


@pytest.mark.parametrize("via", ["http", "litellm"])
def test_a_server_that_loads_its_model_is_asked_again(via: Any) -> None:
    """The first requests are turned away, and the one that comes when the model is there is answered."""
    loading = next(row for row in LLAMA_CPP if "Loading" in row.body)
    nothing: dict[str, str] = {}
    answers = [(503, nothing, loading.body.encode())] * 2 + [(200, nothing, json.dumps(chat("{}", "fine")).encode())]
    with Answering(lambda _: answers.pop(0)) as server:
        reply = run(judge_at(server, OPENAI, via=via, retries=2))
    assert not isinstance(reply, Failure), reply
    assert (reply.usage.calls, "overloaded" in RETRIED) == (3, True)


STREAMED = 'event: error\ndata: {"error": {"message": "Input validation error: grammar is not valid", "code": 422}}\n\n'


def test_an_error_in_a_stream_that_nobody_asked_for(server: Answering) -> None:
    """Some servers answer with a 200 and an event; the error in it has its kind."""
    row = Recorded(
        "TGI", "2.4, 2024-11-15", "huggingface/text-generation-inference/issues/2749", 200, STREAMED, "bad_request"
    )
    failure = failing(server, row, OPENAI, via="http")
    assert (failure.kind, failure.status) == ("bad_request", 422)


# -- several replies in one request ------------------------------------------------------------------------

CLEAR = Rubric().rates("A newcomer could act on it", id="clear")
REFUSALS = {
    row.server: row
    for row in RECORDED
    if any(part in row.body for part in ("'n'", "n must be 1", "n = 1", "Multiple candidates"))
}


def limited(row: Recorded, most: int) -> tuple[Answering, list[int]]:
    """Return a server that answers with *row* where more than so many replies are wanted, and how many were each time."""
    wanted: list[int] = []
    judging = JudgeLike({"A newcomer could act on it": 7})

    def answer(request: Request) -> tuple[int, dict[str, str], bytes]:
        count = request.body.get("n", 1)
        wanted.append(count)
        if count > most:
            return row.status, {}, row.body.encode()
        body = chat(judging(request.body), "fine")
        body["choices"] = [{**body["choices"][0], "index": index} for index in range(count)]
        return 200, {}, json.dumps(body).encode()

    return Answering(answer), wanted


WAYS = ["http", "litellm", "a client"]


def judge_by(way: str, server: Answering) -> Judge:
    """Return a judge that asks *server* over HTTP, through LiteLLM, or by a client of OpenAI's."""
    base = f"{server.root}/v1"
    if way == "a client":
        from openai import OpenAI

        closing = {"Connection": "close"}  # leaves no socket to another test
        return Judge(model(OpenAI(base_url=base, api_key=KEY, default_headers=closing), "m"), retries=0)
    return Judge("openai/m", via=way, retries=0, params={"api_base": base, "api_key": KEY})


@each_row("way", WAYS)
@each_row("row", REFUSALS.values(), ids=REFUSALS)
def test_a_server_that_gives_one_reply_a_request_is_asked_vote_by_vote(row: Recorded, way: str) -> None:
    """The jury is graded in the same run, and the next one asks for no more than the server gives."""
    most = {"llama.cpp": 2, "OpenAI": 128}.get(row.server, 1)
    size = most + 1
    server, wanted = limited(row, most)
    with server:
        judge = judge_by(way, server)
        jury = Jury(judge, size, one_request=True)
        results = [evaluate("Open the settings, then press 'Change plan'.", CLEAR, jury) for _ in range(2)]
    for result in results:
        assert isinstance(result, Grade), result
        assert (len(result.votes), result.score) == (size, 0.7)
        assert any(f"gave {most} of {size} replies in one request" in warning for warning in result.warnings)
    again = [most] * (most > 1) + [1] * (size - most if most > 1 else size)
    assert wanted == [size, *again, *again]
    assert results[1].usage.calls == len(again)


SCHEMALESS = [row for row in RECORDED if row.kind == "bad_request" and "schema" in row.body.lower()]


@each_row("way", WAYS)
@each_row("row", SCHEMALESS, ids=[f"{row.server}-{row.status}" for row in SCHEMALESS])
def test_a_server_that_refuses_the_schema_is_asked_without_it(row: Recorded, way: str) -> None:
    """It goes out again at once with the constant schema, then in JSON mode; the reply is read like any other."""
    forms: list[str] = []
    judging = JudgeLike({"A newcomer could act on it": 7})

    def answer(request: Request) -> tuple[int, dict[str, str], bytes]:
        forms.append((request.body.get("response_format") or {}).get("type", "nothing"))
        if forms[-1] == "json_schema":
            return row.status, {}, row.body.encode()
        return 200, {}, json.dumps(chat(judging(request.body), "fine")).encode()

    with Answering(answer) as server:
        result = evaluate("Open the settings.", CLEAR, judge_by(way, server))
    assert isinstance(result, Grade), result
    assert forms == ["json_schema", "json_schema", "json_object"]


def test_another_bad_request_is_none_about_the_number_of_replies() -> None:
    """A request that is refused for another reason is not sent again with fewer replies."""
    row = next(row for row in LLAMA_CPP if "top_logprobs" in row.body)
    server, wanted = limited(row, 0)
    with server:
        judge = Judge("m", via=f"{server.root}/v1", retries=0)
        result = evaluate("Open the settings.", CLEAR, Jury(judge, 3, one_request=True))
    assert not isinstance(result, Grade)
    assert wanted == [3]
