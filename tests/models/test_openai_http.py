"""The direct path ends, for every way in which a server can answer, as LiteLLM's does; and it sends what was asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from attrs import evolve

from rubric.errors import DefinitionError, DumpError, ModelError
from rubric.formats.fields import SeveralError, write
from rubric.formats.native.judge import read_any_judge
from rubric.internals import background_loop
from rubric.internals.frozen_map import thaw
from rubric.models.litellm import LiteLLMModel
from rubric.models.openai_http import OpenAIHTTPModel, endpoint_of
from rubric.models.registry import model_of
from rubric.values.judges import Judge
from rubric.values.requests import RETRIED, Ask, Failure, FailureKind, Outgoing, Reply, Usage
from rubric.values.runs import Media
from tests.models.test_litellm import FAILURES, FINISHES, timeout_of
from tests.sendables import KEY, NONCE, RECENT, VERDICT, is_closed_when_cancelled, openai_ask, run, schema_of
from tests.servers import Endpoint, Server

MODEL = OpenAIHTTPModel()

KINDS: dict[str, FailureKind] = FAILURES | {"length-too-long": "transport", "reset-mid-body": "transport"}


def direct(endpoint: Endpoint, **judge: Any) -> Ask:
    """Return an ask that goes straight to *endpoint*."""
    return openai_ask(endpoint, via="http", **judge)


def reply_to(server: Server, behaviour: str, **judge: Any) -> Reply:
    """Return the reply of an endpoint with *behaviour*."""
    outcome = run(direct(server.at(behaviour), **judge))
    assert isinstance(outcome, Reply), outcome
    return outcome


def failure_of(server: Server, behaviour: str, **judge: Any) -> Failure:
    """Return the failure of one attempt at an endpoint with *behaviour*."""
    outcome = run(direct(server.at(behaviour), retries=0, **judge))
    assert isinstance(outcome, Failure), outcome
    return outcome


def sent(server: Server, **judge: Any) -> dict[str, Any]:
    """Return the body of the request that an ask makes."""
    endpoint = server.at("ok")
    assert isinstance(run(direct(endpoint, **judge)), Reply)
    return endpoint.requests[0].body


@pytest.mark.parametrize("behaviour", KINDS)
def test_failures_are_those_of_the_other_path(server: Server, behaviour: str) -> None:
    """A failure has the kind that it has through LiteLLM, is tried again where that may help, and counts requests."""
    endpoint = server.at(behaviour)
    failure = run(direct(endpoint, retries=1, timeout=timeout_of(behaviour)))
    assert isinstance(failure, Failure)
    again = failure.kind in RETRIED and behaviour != "429-after-long"
    assert (failure.kind, failure.usage.calls, len(endpoint.requests)) == (KINDS[behaviour], 1 + again, 1 + again)
    assert KEY not in str(failure)


@pytest.mark.skipif(not RECENT, reason="an older LiteLLM tells less")
@pytest.mark.parametrize("behaviour", KINDS)
def test_what_is_known_of_a_failure_is_the_same(server: Server, behaviour: str) -> None:
    """Both paths agree on the status, on the wait, on whether it may have been paid for, and on what was used."""
    options: dict[str, Any] = {"retries": 0, "timeout": timeout_of(behaviour)}
    ours, theirs = (run(openai_ask(server.at(behaviour), via=via, **options)) for via in ("http", "litellm"))
    assert isinstance(ours, Failure)
    assert isinstance(theirs, Failure)
    assert (ours.status, ours.retry_after, ours.in_doubt) == (theirs.status, theirs.retry_after, theirs.in_doubt)
    if theirs.usage.prompt_tokens:
        assert evolve(ours.usage, cost=None) == evolve(theirs.usage, cost=None)


@pytest.mark.parametrize("behaviour", FINISHES)
def test_replies_are_those_of_the_other_path(server: Server, behaviour: str) -> None:
    """A reply has the end, the refusal, the model's name and the tokens that it has through LiteLLM."""
    ours, theirs = (run(openai_ask(server.at(behaviour), via=via)) for via in ("http", "litellm"))
    assert isinstance(ours, Reply)
    assert isinstance(theirs, Reply)
    assert ours.finish == FINISHES[behaviour]
    assert (ours.refusal, ours.model) == (theirs.refusal, theirs.model)
    assert evolve(ours.usage, cost=None) == evolve(theirs.usage, cost=None)
    assert ours.usage.cost == pytest.approx(theirs.usage.cost)
    if behaviour != "think":  # LiteLLM takes the thoughts out; the reader does, too
        assert ours.text == theirs.text


def test_the_same_request_leaves_on_both_paths(server: Server) -> None:
    """What is sent straight is what LiteLLM sends, field by field."""
    options: dict[str, Any] = {"temperature": 0.3, "seed": 7, "params": {"top_p": 0.9, "my_own_setting": 3}}
    bodies = []
    for via in ("http", "litellm"):
        endpoint = server.at("ok")
        run(openai_ask(endpoint, via=via, **options))
        bodies.append(endpoint.requests[0].body)
    assert bodies[0] == bodies[1]


def test_the_request_goes_where_it_should(server: Server) -> None:
    """The call's own path, the key and the vendor's name of the model go to the address that the code names."""
    endpoint = server.at("ok")
    run(direct(endpoint))
    (request,) = endpoint.requests
    assert request.path.endswith("/v1/chat/completions")
    assert (request.headers["authorization"], request.body["model"]) == (f"Bearer {KEY}", "gpt-4o-mini")


def test_the_text_of_a_good_reply(server: Server) -> None:
    """A good reply carries the text, the tokens and what these cost."""
    reply = reply_to(server, "ok")
    assert (f'"nonce": "{NONCE}"' in str(reply.text), reply.usage.prompt_tokens > 0) == (True, True)
    assert (reply.usage.calls, reply.usage.unmetered) == (1, 0)
    assert reply.usage.cost == pytest.approx(
        reply.usage.prompt_tokens * 1.5e-07 + reply.usage.completion_tokens * 6e-07
    )


def test_cached_tokens_are_reported(server: Server) -> None:
    """Tokens that the vendor's prefix cache served are reported."""
    base = direct(server.at("ok"))
    long = (base.messages[0], Outgoing("user", ("a prefix that is the same " * 300, "tail")))
    first, second = (run(evolve(base, messages=long)) for _ in range(2))
    assert (first.usage.cached_tokens, second.usage.cached_tokens >= 1024) == (0, True)


@pytest.mark.parametrize(
    ("model", "options", "unsent"),
    [
        ("openai/gpt-4o-mini", {}, ()),
        ("openai/gpt-5-mini", {}, ("temperature",)),
        ("openai/o3", {}, ("temperature",)),
        ("openai/gpt-5.6", {"params": {"reasoning_effort": "none"}}, ()),
        ("my-own/model", {}, ()),
    ],
)
def test_what_a_model_does_not_take_is_left_out_and_named(
    server: Server, model: str, options: dict[str, Any], unsent: tuple[str, ...]
) -> None:
    """A sampling parameter that a reasoning model would refuse is left out of the request and named in the reply."""
    reply = reply_to(server, "ok", model=model, temperature=0, seed=7, **options)
    assert reply.unsent == unsent


@pytest.mark.parametrize(
    ("model", "name"),
    [("openai/gpt-4o-mini", "max_tokens"), ("openai/gpt-5-mini", "max_completion_tokens"), ("mine", "max_tokens")],
)
def test_the_longest_reply_is_sent_under_the_name_that_the_model_takes(server: Server, model: str, name: str) -> None:
    """OpenAI's reasoning models want another name for the length of a reply than all others."""
    assert sent(server, model=model)[name] == 100


def test_the_schema_is_sent_but_to_models_that_refuse_it(server: Server) -> None:
    """The reply's schema goes along, also to models that nobody knows, and not to OpenAI's oldest."""
    schema = {"name": "verdict", "strict": True, "schema": thaw(VERDICT)}
    assert sent(server, model="mine")["response_format"] == {"type": "json_schema", "json_schema": schema}
    assert "response_format" not in sent(server, model="openai/gpt-4-turbo")


def test_it_is_said_where_no_schema_went(server: Server) -> None:
    """A model that is not held to the form of its reply is named in the grade, as it is through LiteLLM."""
    replies = [run(direct(server.at("ok"), model=model)) for model in ("openai/gpt-4-turbo", "mine")]
    assert [isinstance(reply, Reply) and reply.unsent for reply in replies] == [("response_format",), ()]


def test_extra_body_has_the_last_word(server: Server) -> None:
    """`extra_body` goes over what would be sent; None takes a field away."""
    body = sent(server, params={"extra_body": {"response_format": None, "guided": {"a": [1]}}})
    assert ("response_format" in body, body["guided"]) == (False, {"a": [1]})


def test_headers_of_the_users_own_are_sent_and_not_shown(server: Server) -> None:
    """Further headers reach the server; their values do not turn up in what a failure says."""
    endpoint = server.at("401")
    outcome = run(direct(endpoint, params={"extra_headers": {"X-Gate": "open-sesame-1234"}, "organization": "org-1"}))
    headers = endpoint.requests[0].headers
    assert (headers["x-gate"], headers["openai-organization"]) == ("open-sesame-1234", "org-1")
    assert "open-sesame" not in str(outcome)


def test_several_choices_and_probabilities_are_asked_for(server: Server) -> None:
    """An ask for several choices, of a judge that wants probabilities, says both."""
    endpoint = server.at("ok")
    run(evolve(direct(endpoint, logprobs=True), n=3))
    body = endpoint.requests[0].body
    assert (body["n"], body["logprobs"], body["top_logprobs"]) == (3, True, 20)


@pytest.mark.parametrize("value", [float("nan"), object()])
def test_parameters_that_are_no_json_are_refused(server: Server, value: object) -> None:
    """A parameter that cannot be sent is a bad request, and none leaves."""
    endpoint = server.at("ok")
    failure = run(direct(endpoint, params={"odd": value}))
    assert isinstance(failure, Failure)
    assert (failure.kind, len(endpoint.requests)) == ("bad_request", 0)


def test_a_large_prompt_is_sent_whole(server: Server) -> None:
    """A prompt of several megabytes arrives, without a warning."""
    endpoint = server.at("ok")
    image = "data:image/png;base64," + "A" * 3_000_000
    assert isinstance(run(evolve(direct(endpoint), media=(("", Media("image", image)),))), Reply)
    assert endpoint.requests[0].body["messages"][-1]["content"][0]["image_url"]["url"] == image


def test_a_lone_surrogate_in_the_prompt_is_sent(server: Server) -> None:
    """Text that UTF-8 has no bytes for goes out escaped, as JSON can."""
    ask = evolve(direct(server.at("ok")), messages=(Outgoing("user", ("\ud800",)),))
    assert isinstance(run(ask), Reply)


@pytest.mark.parametrize("behaviour", ["hang", "trickle"])
def test_a_cancellation_closes_the_connection(server: Server, behaviour: str) -> None:
    """A cancelled call raises `CancelledError`, and the server sees the connection close."""
    endpoint = server.at(behaviour)
    assert is_closed_when_cancelled(endpoint, MODEL.answer(direct(endpoint)))


def test_nobody_listens(server: Server) -> None:
    """A connection that never came about is a transport failure that nobody can have been paid for."""
    failure = run(direct(Endpoint("http://127.0.0.1:9", ()), retries=0, timeout=30))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.in_doubt, failure.usage) == ("transport", False, Usage(calls=1, cost=0.0))


def test_the_traceback_has_no_key(server: Server) -> None:
    """The error of a model does not carry along the client library's own, which may hold the key."""
    with pytest.raises(ModelError) as caught:
        asyncio.run(MODEL.answer(direct(server.at("reset"))))
    assert (caught.value.__suppress_context__, KEY in str(caught.value)) == (True, False)


def test_calls_from_the_background_loop(server: Server) -> None:
    """A synchronous caller is served on the background loop."""
    assert background_loop.run(MODEL.answer(direct(server.at("ok")))).finish == "stop"


def test_a_judge_says_how_it_is_asked() -> None:
    """The way shows in the judge, decides on its model, and belongs to model names alone."""
    assert repr(Judge("mine", via="http")) == "Judge('mine', via='http')"
    assert isinstance(model_of(Judge("mine", via="http")), OpenAIHTTPModel)
    assert isinstance(model_of(Judge("mine")), LiteLLMModel)
    for model in ("offline", str.upper):
        with pytest.raises(DefinitionError, match="via"):
            Judge(model, via="http")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(DefinitionError, match="via"):
        Judge("mine", via="https")
    with pytest.raises(DefinitionError, match="via"):
        Judge("mine", via="http://localhost:8000/v1", params={"api_base": "http://localhost:9000/v1"})


def test_an_address_is_a_way_to_ask() -> None:
    """Given an address, a judge goes straight there; it is the same judge as with `api_base` and `http`."""
    short = Judge("mine", via="http://localhost:8000/v1", seed=1)
    assert short == Judge("mine", via="http", params={"api_base": "http://localhost:8000/v1"}, seed=1)
    assert evolve(short, seed=2).via == "http"
    assert endpoint_of(short).url == "http://localhost:8000/v1/chat/completions"


def test_no_file_says_how_a_judge_is_asked() -> None:
    """A file can neither choose the way, which could lead to another address, nor hold a judge that has one."""
    with pytest.raises(SeveralError) as caught:
        read_any_judge({"model": "openai/gpt-4o-mini", "via": "http"})
    assert [path for path, _ in caught.value.problems] == [("via",)]
    with pytest.raises(DumpError, match="via"):
        write(Judge("openai/gpt-4o-mini", via="http"))


@pytest.mark.parametrize("via", ["litellm", "http"])
def test_who_pays_is_said_on_both_paths(server: Server, via: str) -> None:
    """The organisation that the judge names reaches OpenAI's protocol, also on LiteLLM's short way."""
    endpoint = server.at("ok")
    run(openai_ask(endpoint, via=via, params={"organization": "org-1", "extra_headers": {"X-Gate": "open"}}))
    headers = endpoint.requests[0].headers
    assert (headers["openai-organization"], headers["x-gate"]) == ("org-1", "open")


@pytest.mark.skipif(not RECENT, reason="the short way is taken with a recent LiteLLM alone")
@pytest.mark.parametrize("behaviour", ["reset", "429"])
def test_those_who_speak_openais_protocol_are_asked_once(
    server: Server, behaviour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once LiteLLM's short way is taken, a vendor that it leads to gets each request once, whatever comes of it."""
    monkeypatch.setenv("EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER", "True")  # as after a first call to OpenAI
    endpoint = server.at(behaviour)
    failure = run(openai_ask(endpoint, model="deepinfra/m", retries=0))
    assert isinstance(failure, Failure)
    assert (failure.kind, len(endpoint.requests)) == (KINDS[behaviour], 1)


def test_a_change_of_the_environment_counts_from_the_next_request(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the requests of a judge share is worked out anew: the address, the key, a proxy."""
    endpoint = server.at("ok")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.openai)
    ask = evolve(direct(endpoint), judge=Judge("openai/m", via="http", retries=0))
    for key in ("sk-first", "sk-second"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        assert isinstance(run(ask), Reply)
    assert [request.headers["authorization"] for request in endpoint.requests] == [
        "Bearer sk-first",
        "Bearer sk-second",
    ]
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert isinstance(run(ask), Failure)


@pytest.mark.parametrize("key", ["sk-te\nst-0123456789abcdef", "sk-te\r\nX-Other: st-0123456789abcdef"])
def test_a_key_with_a_line_break_is_not_sent(server: Server, key: str) -> None:
    """It would end its header, and the rest of it would be one of its own; the failure does not show it."""
    endpoint = server.at("ok")
    failure = run(direct(endpoint, params={"api_key": key}))
    assert isinstance(failure, Failure)
    assert (failure.usage.cost, failure.in_doubt, endpoint.requests) == (0.0, False, [])
    assert "0123456789abcdef" not in str(failure)


@pytest.mark.parametrize("schemas", [1, 3])
def test_requests_about_different_answers_have_their_own_schema(server: Server, schemas: int) -> None:
    """The kept part of a body belongs to one schema, one limit and one number of choices."""
    endpoint = server.at("ok")
    ask = direct(endpoint)
    asks = [evolve(ask, schema=schema_of(**{f"v{n}": {"type": "string"}})) for n in range(schemas)]
    for each in (*asks, *asks, evolve(ask, max_tokens=7), evolve(ask, n=2)):
        assert isinstance(run(each), Reply)
    names = [[*r.body["response_format"]["json_schema"]["schema"]["properties"]] for r in endpoint.requests]
    assert names[: 2 * schemas] == [[f"v{n}"] for n in range(schemas)] * 2
    assert (endpoint.requests[-2].body["max_tokens"], endpoint.requests[-1].body["n"]) == (7, 2)


@pytest.mark.parametrize("tier", [None, "priority"])
def test_the_cost_is_that_of_the_other_path(server: Server, tier: str | None) -> None:
    """LiteLLM is not asked for the cost of an ordinary call of OpenAI's, and the result is the same."""
    params = {"service_tier": tier} if tier else {}
    there, here = (
        run(openai_ask(server.at("ok"), "openai/gpt-4.1", via=via, params=params)) for via in ("litellm", "http")
    )
    assert isinstance(there, Reply)
    assert there.usage == here.usage
    assert there.usage.cost
