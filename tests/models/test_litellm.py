"""Every way in which a server can answer, through real LiteLLM over HTTP, ends as the right reply or typed failure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve

from rubric import Ungraded, evaluate, grade_many
from rubric.errors import ModelError
from rubric.internals import background_loop
from rubric.internals.frozen_map import thaw
from rubric.models.litellm import LiteLLMModel
from rubric.models.retry import attempt
from rubric.values.requests import RETRIED, Ask, Failure, FailureKind, Outgoing, Reply, Usage
from tests.sendables import KEY, NONCE, RECENT, VERDICT, anthropic_ask, is_closed_when_cancelled, openai_ask
from tests.servers import ANTHROPIC_BODIES, BEHAVIOURS, STATUSES, WIRES, Endpoint, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODEL = LiteLLMModel()

FAILURES: dict[str, FailureKind] = {
    "429": "rate_limited",
    "429-after": "rate_limited",
    "429-after-date": "rate_limited",
    "429-after-long": "rate_limited",
    "429-after-odd": "rate_limited",
    "redirect": "bad_request",
    "quota": "quota",
    "400": "bad_request",
    "422": "bad_request",
    "context": "context_window",
    "policy": "refusal",
    "401": "auth",
    "403": "auth",
    "404": "bad_request",
    "408": "timeout",
    "409": "overloaded",
    "413": "context_window",
    "500": "overloaded",
    "502": "overloaded",
    "503": "overloaded",
    "504": "timeout",
    "529": "overloaded",
    "truncated": "bad_response",
    "empty-body": "bad_response",
    "html": "bad_response",
    "invalid-utf-8": "bad_response",
    "{}": "bad_response",
    "choices-null": "bad_response",
    "choices-empty": "bad_response",
    "error-in-200": "overloaded",
    "error-in-200-text": "rate_limited",
    "nested": "bad_response",
    "long": "bad_response",
    "content-null": "bad_response",
    "content-empty": "bad_response",
    "content-number": "bad_response",
    "length-too-long": "transport",
    "reset": "transport",
    "reset-mid-body": "transport",
    "close": "transport",
    "hang": "timeout",
    "trickle": "timeout",
}

FINISHES = {
    "ok": "stop",
    "content-list": "stop",
    "surrogate": "stop",
    "think": "stop",
    "refusal": "refusal",
    "length": "length",
    "content-filter": "refusal",
    "filtered-away": "refusal",
    "finish-empty": "stop",
    "finish-weird": "weird",
    "finish-null": "stop",
    "no-usage": "stop",
    "usage-null": "stop",
}

ANTHROPIC_FAILURES = {
    name: kind for name, kind in FAILURES.items() if name in STATUSES or name in ANTHROPIC_BODIES or name in WIRES
} | {"no-usage": "bad_response"}

ANTHROPIC_FINISHES = {"ok": "stop", "refusal": "refusal", "length": "length", "finish-weird": "stop"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        # The first call of each dialect loads modules for a second or so; no deadline of a test should meet that.
        run(openai_ask(running.at("ok")))
        run(anthropic_ask(running.at("ok")))
        yield running


def run(ask: Ask) -> Reply | Failure:
    """Return the outcome of *ask*, attempts included, without the waits between them."""

    async def at_once(_: float) -> None:
        pass

    return asyncio.run(attempt(MODEL, ask, sleep=at_once))


def timeout_of(behaviour: str) -> float:
    """Return a deadline that only hangs and trickles meet."""
    return 1.0 if behaviour in ("hang", "trickle") else 30


def test_every_behaviour_is_in_the_tables() -> None:
    """What the server can do is what these tests expect something of."""
    assert set(BEHAVIOURS) == set(FAILURES) | set(FINISHES)


@pytest.mark.parametrize("behaviour", FAILURES)
def test_failures_are_typed_and_every_request_is_counted(server: Server, behaviour: str) -> None:
    """A failure has its kind, is tried again only where that may help, and counts each request that left."""
    endpoint = server.at(behaviour)
    failure = run(openai_ask(endpoint, retries=1, timeout=timeout_of(behaviour)))
    assert isinstance(failure, Failure)
    again = failure.kind in RETRIED and behaviour != "429-after-long"
    assert (failure.kind, failure.usage.calls, len(endpoint.requests)) == (FAILURES[behaviour], 1 + again, 1 + again)
    assert KEY not in str(failure)


@pytest.mark.parametrize("behaviour", FINISHES)
def test_replies_keep_how_they_ended(server: Server, behaviour: str) -> None:
    """A reply comes back with the reason for its end, from one request."""
    endpoint = server.at(behaviour)
    reply = run(openai_ask(endpoint))
    assert isinstance(reply, Reply)
    assert (reply.finish, reply.usage.calls, len(endpoint.requests)) == (FINISHES[behaviour], 1, 1)


@pytest.mark.parametrize("behaviour", ANTHROPIC_FAILURES)
def test_failures_in_anthropics_dialect(server: Server, behaviour: str) -> None:
    """The same behaviours are the same failures in Anthropic's dialect."""
    endpoint = server.at(behaviour)
    failure = run(anthropic_ask(endpoint, retries=0, timeout=timeout_of(behaviour)))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.usage.calls, len(endpoint.requests)) == (ANTHROPIC_FAILURES[behaviour], 1, 1)
    assert KEY not in str(failure)


@pytest.mark.parametrize("behaviour", ANTHROPIC_FINISHES)
def test_replies_in_anthropics_dialect(server: Server, behaviour: str) -> None:
    """A reply in Anthropic's dialect comes back with the reason for its end."""
    reply = run(anthropic_ask(server.at(behaviour)))
    assert isinstance(reply, Reply)
    assert reply.finish == ANTHROPIC_FINISHES[behaviour]


def reply_to(server: Server, behaviour: str, make: Callable[..., Ask] = openai_ask, **judge: Any) -> Reply:
    """Return the reply of an endpoint with *behaviour*."""
    outcome = run(make(server.at(behaviour), **judge))
    assert isinstance(outcome, Reply), outcome
    return outcome


def failure_of(server: Server, behaviour: str, **judge: Any) -> Failure:
    """Return the failure of one attempt at an endpoint with *behaviour*."""
    outcome = run(openai_ask(server.at(behaviour), retries=0, **judge))
    assert isinstance(outcome, Failure), outcome
    return outcome


def test_the_text_of_a_good_reply(server: Server) -> None:
    """A good reply carries the text and the model's name."""
    reply = reply_to(server, "ok")
    assert (f'"nonce": "{NONCE}"' in str(reply.text), reply.model) == (True, "gpt-4o-mini")


def test_the_usage_of_a_good_reply(server: Server) -> None:
    """A good reply says what was used, and what it cost where the price is known."""
    usage = reply_to(server, "ok").usage
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens > 0
    assert usage.cost is not None
    assert usage.cost > 0


def test_an_unlisted_model_has_no_cost(server: Server) -> None:
    """The cost of a model without a known price is None, not 0."""
    assert reply_to(server, "ok", model="openai/nobody-knows-me").usage.cost is None


def test_missing_usage_is_unmetered(server: Server) -> None:
    """A reply without usage counts as unmetered, at an unknown cost."""
    assert reply_to(server, "no-usage").usage == Usage(calls=1, cost=None, unmetered=1)


@pytest.mark.parametrize("make", [openai_ask, anthropic_ask])
def test_cached_tokens_are_reported(server: Server, make: Callable[..., Ask]) -> None:
    """Tokens that the vendor's prefix cache served are reported in either dialect."""
    endpoint = server.at("ok")
    base = make(endpoint)
    long = (base.messages[0], Outgoing("user", (f"{make.__name__} " * 1000, "tail")))
    first, second = (run(evolve(base, messages=long)) for _ in range(2))
    assert (first.usage.cached_tokens, second.usage.cached_tokens >= 1024) == (0, True)


def test_a_refusal_keeps_its_words_and_its_usage(server: Server) -> None:
    """A refusal comes back as a reply, with what the model said and what it cost."""
    reply = reply_to(server, "refusal")
    assert (reply.text, reply.refusal, reply.usage.unmetered) == (None, "I cannot help with that.", 0)


def test_a_lone_surrogate_is_replaced(server: Server) -> None:
    """Text that could not be encoded later has the replacement character in its place; pairs stay whole."""
    assert reply_to(server, "surrogate").text == "\ufffd and a pair: \U0001f600"


def test_an_empty_reply_keeps_its_usage(server: Server) -> None:
    """A reply without content was paid for, and its failure says how much."""
    assert failure_of(server, "content-null").usage.prompt_tokens > 0


def test_retry_after_is_read(server: Server) -> None:
    """The seconds that a server asks to wait are in the failure."""
    assert failure_of(server, "429-after").retry_after == 0.05


@pytest.mark.parametrize("behaviour", ["hang", "reset", "504"])
def test_failures_that_may_have_been_paid_for_are_in_doubt(server: Server, behaviour: str) -> None:
    """Where nobody can tell whether the request was carried out, the failure says so."""
    failure = failure_of(server, behaviour, timeout=timeout_of(behaviour))
    assert (failure.in_doubt, failure.usage.unmetered, failure.usage.cost) == (True, 1, None)


def test_nobody_listens(server: Server) -> None:
    """A connection that never came about is a transport failure that nobody can have been paid for."""
    ask = openai_ask(Endpoint("http://127.0.0.1:9", ()), retries=0, timeout=30)
    failure = run(ask)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.in_doubt, failure.usage) == ("transport", False, Usage(calls=1, cost=0.0))


def test_an_unknown_vendor_is_a_bad_request(server: Server) -> None:
    """A model name that LiteLLM cannot place is a bad request, and says so without a request."""
    failure = failure_of(server, "ok", model="nosuchvendor/nosuchmodel", params={"api_base": None})
    assert (failure.kind, "nosuchvendor" in failure.message) == ("bad_request", True)


def test_the_traceback_has_no_key(server: Server) -> None:
    """The error of a model does not carry along the client library's own, which may hold the key."""
    with pytest.raises(ModelError) as caught:
        asyncio.run(MODEL.answer(openai_ask(server.at("401"))))
    assert (caught.value.__suppress_context__, KEY in str(caught.value)) == (True, False)


def sent(server: Server, make: Callable[..., Ask] = openai_ask, **judge: Any) -> dict[str, Any]:
    """Return the body of the request that an ask makes."""
    endpoint = server.at("ok")
    assert isinstance(run(make(endpoint, **judge)), Reply)
    return endpoint.requests[0].body


def test_the_schema_is_sent(server: Server) -> None:
    """The reply's schema goes along, under one name for all, where the model takes one."""
    sent_format = sent(server)["response_format"]
    assert sent_format["type"] == "json_schema"
    assert sent_format["json_schema"] == {"name": "verdict", "strict": True, "schema": thaw(VERDICT)}


def test_no_schema_for_a_model_that_takes_none(server: Server) -> None:
    """A model that is known to take no schema gets none; one that nobody knows gets one."""
    assert "response_format" not in sent(server, model="openai/gpt-4")
    assert "response_format" in sent(server, model="openai/nobody-knows-me")


def test_max_tokens_is_always_sent(server: Server) -> None:
    """The longest reply is in every request, in either dialect and under the name that the model takes."""
    assert sent(server)["max_tokens"] == 100
    assert sent(server, anthropic_ask)["max_tokens"] == 100
    assert sent(server, model="openai/gpt-5-mini")["max_completion_tokens"] == 100


def test_messages_are_joined_texts(server: Server) -> None:
    """A vendor that finds prefixes by itself gets each message as one text."""
    assert [type(message["content"]) for message in sent(server)["messages"]] == [str, str]


def test_anthropic_is_told_what_to_cache(server: Server) -> None:
    """Anthropic gets the shared part as a block of its own, marked; the tail is not marked."""
    shared, tail = sent(server, anthropic_ask)["messages"][-1]["content"]
    assert (shared["text"], shared["cache_control"], "cache_control" in tail) == (
        "shared",
        {"type": "ephemeral"},
        False,
    )


def test_parameters_are_sent(server: Server) -> None:
    """Temperature, seed and further parameters reach a model that takes them."""
    body = sent(server, temperature=0.3, seed=7, params={"top_p": 0.9})
    assert (body["temperature"], body["seed"], body["top_p"]) == (0.3, 7, 0.9)


@pytest.mark.parametrize(
    ("model", "make", "unsent"),
    [
        ("openai/gpt-4o-mini", openai_ask, ()),
        ("openai/gpt-5-mini", openai_ask, ("temperature",)),
        ("anthropic/claude-sonnet-4-5", anthropic_ask, ("seed",)),
    ],
)
def test_what_a_model_does_not_take_is_left_out_and_named(
    server: Server, model: str, make: Callable[..., Ask], unsent: tuple[str, ...]
) -> None:
    """A parameter that the model would refuse is left out of the request and named in the reply."""
    reply = reply_to(server, "ok", make, model=model, temperature=0, seed=7)
    assert reply.unsent == unsent


@pytest.mark.skipif(not RECENT, reason="an older LiteLLM does not know the model")
def test_a_parameter_that_another_one_allows(server: Server) -> None:
    """A temperature that a reasoning model takes only without reasoning is sent where the reasoning is off."""
    reply = reply_to(server, "ok", model="openai/gpt-5.6", temperature=0, params={"reasoning_effort": "none"})
    assert reply.unsent == ()


def test_unknown_parameters_are_passed_on(server: Server) -> None:
    """A parameter of the vendor's own goes into the request."""
    assert sent(server, params={"my_own_setting": 3})["my_own_setting"] == 3


@pytest.mark.parametrize("behaviour", ["hang", "trickle"])
def test_a_cancellation_closes_the_connection(server: Server, behaviour: str) -> None:
    """A cancelled call raises `CancelledError`, and the server sees the connection close."""
    endpoint = server.at(behaviour)
    assert is_closed_when_cancelled(endpoint, MODEL.answer(openai_ask(endpoint)))


def test_calls_from_the_background_loop(server: Server) -> None:
    """A caller that is on the background loop already is served there."""
    assert background_loop.run(MODEL.answer(openai_ask(server.at("ok")))).finish == "stop"


def test_the_address_of_a_server_in_place_of_a_model_is_put_where_it_belongs() -> None:
    """The address is that of `via`, and the model is still to be named."""
    found = evaluate("Good morning!", "Is polite", "http://127.0.0.1:9/v1")
    assert "or Judge('its-model', via='http://127.0.0.1:9/v1')" in found.failures[0].message


@pytest.mark.parametrize(
    ("name", "hint"), [("offlin", "'offlin'; did you mean 'offline'?"), ("opnai/gpt", "'opnai/gpt'.")]
)
def test_a_model_of_no_known_vendor_says_how_names_are_written(name: str, hint: str) -> None:
    """Nothing is sent, and the message has the name, the form, and a near one."""
    result = grade_many(["Good morning!"], "Is polite", name).collect()[0]
    assert isinstance(result, Ungraded)
    assert result.failures[0].kind == "bad_request"
    form = "A model's name is vendor/model, such as 'openai/gpt-5.6'"
    own = f"; on a server of yours, it is openai/{name} where OPENAI_BASE_URL has its address"
    own += f", or Judge({name!r}, via='http://localhost:8000/v1')"
    assert result.failures[0].message == f"no vendor is known by {hint} {form}{own}"
