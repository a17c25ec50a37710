"""Vendors of every dialect, through real LiteLLM to local servers: what they are sent, and how their answers are read."""

from __future__ import annotations

import ast
import asyncio
import gzip
import json
import ssl
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from attrs import field, frozen

from rubric import Budget, Judge, Rubric, Store, Ungraded, grade, grade_many
from rubric.errors import DefinitionError
from rubric.models.http_bodies import MOST_BYTES, most_bytes
from rubric.models.registry import model_of
from rubric.models.retry import attempt
from rubric.store.audit import stats
from rubric.values.requests import Ask, Failure, Reply, Usage
from tests import vendors
from tests.rows import each_row
from tests.sendables import KEY, RECENT, VERDICT, ask_of
from tests.servers import Request
from tests.vendors import BACK, CACHED, THERE, Answering

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Dialect = Callable[[str, str], dict[str, Any]]

TEXT = '{"reason": "It does.", "verdict": true}'
AWS = {"aws_access_key_id": "AKIA0123456789", "aws_secret_access_key": "x" * 20, "aws_region_name": "us-east-1"}
AZURE = {"api_version": "2025-01-01-preview"}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": dict(VERDICT)}}


@frozen
class Vendor:
    """
    A model of a vendor's.

    Args:
        model: As LiteLLM names it.
        dialect: How it answers.
        form: How it is held to the reply's form: where in the request a schema stands, `JSON mode`, or nothing.
        base: The path of its address.
        params: What its judge needs besides.
        cached: The tokens that it says its cache has served.
        priced: Whether its price is listed.
        cut: How a reply that was cut ends.
        refused: How a refusal ends; empty where the vendor has none.
    """

    model: str
    dialect: Dialect
    form: str = "response_format"
    base: str = "/v1"
    params: dict[str, Any] = field(factory=dict)
    cached: int = CACHED
    priced: bool = False
    cut: str = "length"
    refused: str = "refusal"


VENDORS = [
    Vendor("openai/gpt-4o-mini", vendors.chat, priced=True),
    Vendor("openai/my-own", vendors.chat),
    Vendor("openai/gpt-3.5-turbo", vendors.chat, "JSON mode", priced=True),
    Vendor("openai/gpt-4", vendors.chat, "", priced=True),
    Vendor("azure/my-deployment", vendors.chat, base="", params=AZURE),
    Vendor("azure/gpt-4o", vendors.chat, base="", params=AZURE, priced=True),
    Vendor("anthropic/claude-sonnet-4-5", vendors.anthropic, "output_format", base="", priced=True),
    Vendor("anthropic/claude-3-nobody", vendors.anthropic, "tools", base=""),
    Vendor("gemini/gemini-2.5-flash", vendors.gemini, "generationConfig", base="", priced=True),
    Vendor("ollama/llama3", vendors.ollama, "format", base="", cached=0, priced=True, refused=""),
    Vendor("ollama_chat/llama3", vendors.ollama, "format", base="", cached=0, refused=""),
    Vendor("hosted_vllm/my-own", vendors.chat),
    Vendor("groq/llama-3.3-70b-versatile", vendors.groq, "tools"),
    Vendor("groq/openai/gpt-oss-20b", vendors.groq, priced=True),
    Vendor("mistral/mistral-large-latest", vendors.chat, priced=True),
    Vendor("deepseek/deepseek-chat", vendors.deepseek, "JSON mode", priced=True),
    Vendor("openrouter/openai/gpt-4o-mini", vendors.chat),
    Vendor("together_ai/x/y", vendors.chat),
    Vendor(
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", vendors.bedrock, "outputConfig", params=AWS, priced=True
    ),
    Vendor("bedrock/amazon.nova-pro-v1:0", vendors.bedrock, "toolConfig", params=AWS, priced=True),
]


def answering(body: object, status: int = 200, **headers: str) -> Answering:
    """Return a server that gives everybody the same answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answering(lambda _: (status, {name.replace("_", "-"): value for name, value in headers.items()}, content))


def judge_at(server: Answering, vendor: Vendor, **judge: Any) -> Judge:
    """Return a judge of *vendor*'s, at *server*."""
    params = {"api_key": KEY, "api_base": server.root + vendor.base, **vendor.params, **judge.pop("params", {})}
    if vendor.params is AWS:
        del params["api_key"], params["api_base"]
        params["aws_bedrock_runtime_endpoint"] = server.root
    return Judge(vendor.model, params=params, **{"retries": 0, **judge})


def run(judge: Judge, **ask: Any) -> Reply | Failure:
    """Return what comes of an ask, without the waits between attempts."""

    async def at_once(_: float) -> None:
        pass

    made: Ask = ask_of(judge, **ask)
    return asyncio.run(attempt(model_of(judge), made, sleep=at_once))


def form_in(body: dict[str, Any]) -> str:
    """Return where in a request the schema of the reply stands, or that it asks for JSON mode."""
    if body.get("response_format") == {"type": "json_object"}:
        return "JSON mode"
    return next((name for name, value in body.items() if '"nonce' in json.dumps(value) and name not in PROMPT), "")


PROMPT = ("messages", "contents", "prompt", "system")
by_vendor = pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.model)


@pytest.mark.skipif(not RECENT, reason="an older LiteLLM does not know that Together takes a schema")
@by_vendor
def test_a_schema_is_sent_wherever_the_server_takes_one(vendor: Vendor) -> None:
    """Each vendor gets the schema in its own words, else JSON mode; where neither goes, the reply says so."""
    with answering(vendor.dialect(TEXT, "fine")) as server:
        reply = run(judge_at(server, vendor))
    assert isinstance(reply, Reply), reply
    assert reply.text == TEXT
    assert form_in(server.requests[0].body) == vendor.form
    assert reply.unsent == (() if vendor.form else ("response_format",))


@pytest.mark.skipif(not RECENT, reason="an older LiteLLM has other prices")
@by_vendor
def test_the_usage_of_every_vendor_is_read(vendor: Vendor) -> None:
    """Tokens, those that a cache has served, and the cost where the price is listed."""
    with answering(vendor.dialect(TEXT, "fine")) as server:
        usage = run(judge_at(server, vendor)).usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, THERE, BACK)
    assert (usage.cached_tokens, usage.cost is not None) == (vendor.cached, vendor.priced)


@by_vendor
def test_a_reply_that_was_cut_says_so(vendor: Vendor) -> None:
    """Whatever a vendor calls it, a reply that was cut ends as `length`."""
    with answering(vendor.dialect(TEXT[:20], "cut")) as server:
        reply = run(judge_at(server, vendor))
    assert isinstance(reply, Reply), reply
    assert reply.finish == vendor.cut


@each_row("vendor", [v for v in VENDORS if v.refused], ids=lambda vendor: vendor.model)
def test_a_refusal_is_none_of_the_judges_verdicts(vendor: Vendor) -> None:
    """Whatever a vendor calls it, a refusal or a filter ends as `refusal`."""
    with answering(vendor.dialect(TEXT, "refused")) as server:
        reply = run(judge_at(server, vendor))
    assert isinstance(reply, Reply), reply
    assert reply.finish == vendor.refused


def refusing(*refused: str) -> Answering:
    """Return a server of OpenAI's protocol that takes no `response_format` of the types *refused*."""

    def answer(request: Request) -> tuple[int, dict[str, str], bytes]:
        kind = request.body.get("response_format", {}).get("type")
        if kind in refused:
            said = {"error": {"message": f"response_format of type {kind} is not supported with this model"}}
            return 400, {}, json.dumps(said).encode()
        return 200, {}, json.dumps(vendors.chat(TEXT, "fine")).encode()

    return Answering(answer)


OWN = Vendor("hosted_vllm/my-own", vendors.chat)


@pytest.mark.parametrize(
    ("refused", "forms", "unsent"),
    [
        (("json_schema",), ["response_format", "JSON mode", "JSON mode"], ()),
        (("json_schema", "json_object"), ["response_format", "JSON mode", "", ""], ("response_format",)),
    ],
)
@pytest.mark.parametrize("way", ["litellm", "http"])
def test_a_form_that_a_server_refuses_is_sent_once(
    way: str, refused: tuple[str, ...], forms: list[str], unsent: object
) -> None:
    """The next lower form is sent at once, without retries too, counted as a request, and remembered; on both ways."""
    with refusing(*refused) as server:
        judge = judge_at(server, OWN)
        if way == "http":
            judge = Judge("my-own", via="http", params=judge.params, retries=0)
        replies = [run(judge) for _ in range(2)]
    assert [form_in(request.body) for request in server.requests] == forms
    assert [reply.usage.calls for reply in replies] == [len(forms) - 1, 1]
    assert [isinstance(reply, Reply) and reply.unsent for reply in replies] == [unsent, unsent]


def test_a_form_of_the_users_own_is_not_lowered() -> None:
    """What `extra_body` says is sent as it is, once."""
    with refusing("json_schema") as server:
        own = {"extra_body": {"response_format": {"type": "json_schema", "json_schema": {}}}}
        params = {**judge_at(server, OWN).params, **own}
        failure = run(Judge("my-own", via="http", params=params, retries=0))
    assert isinstance(failure, Failure)
    assert (failure.kind, len(server.requests)) == ("bad_request", 1)


def test_forms_are_refused_to_many_at_once() -> None:
    """Asks that leave together are each sent again, and every request is counted."""
    polite = Rubric().adding(*[f"Property {n} of a good answer holds" for n in range(8)])
    with refusing("json_schema") as server:
        result = grade_many(["Good morning!"], polite, judge_at(server, OWN, sealed=False)).collect()[0]
    assert not isinstance(result, Ungraded)
    assert result.usage.calls == len(server.requests)


def test_a_bad_request_about_something_else_is_not_sent_again() -> None:
    """An error that does not speak of the reply's form is final."""
    with answering({"error": {"message": "Invalid value: temperature"}}, 400) as server:
        failure = run(judge_at(server, OWN, retries=2))
    assert isinstance(failure, Failure)
    assert (failure.kind, len(server.requests), failure.usage.calls) == ("bad_request", 1, 1)


def test_a_grade_says_that_no_schema_went() -> None:
    """Where neither a schema nor JSON mode was sent, a person who reads the grade knows."""
    with answering(vendors.chat(TEXT, "fine")) as server:
        judge = judge_at(server, Vendor("openai/gpt-4", vendors.chat), sealed=False)
        result = grade("Good morning!", "Is polite", judge)
    assert result.warnings == ("response_format was not sent: the model does not take it",)


@each_row("model", ["azure/my-deployment", "openai/gpt-4o-mini", "ollama_chat/llama3", "gemini/g"])
@each_row(
    "name",
    [
        "additional_drop_params",
        "allowed_openai_params",
        "drop_params",
        "extra_headers",
        "metadata",
        "base_model",
        "ssl_verify",
    ],
)
def test_parameters_of_litellms_own_are_passed_on(model: str, name: str) -> None:
    """How LiteLLM is to call is not a parameter of a model, and none is left out as if it were one."""
    values = {"extra_headers": {"X-Mine": "yes"}, "metadata": {"a": "b"}, "base_model": "azure/gpt-4o"}
    lists = {"additional_drop_params": ["seed"], "allowed_openai_params": ["seed"]}
    vendor = next((v for v in VENDORS if v.model == model), Vendor(model, vendors.gemini, base=""))
    with answering(vendor.dialect(TEXT, "fine")) as server:
        reply = run(judge_at(server, vendor, params={name: (values | lists).get(name, True)}))
    assert isinstance(reply, Reply), reply
    assert reply.unsent == ()
    if name == "extra_headers":
        assert server.requests[0].headers["x-mine"] == "yes"


def test_azures_api_version_is_sent() -> None:
    """The version that is asked for stands in the address."""
    with answering(vendors.chat(TEXT, "fine")) as server:
        run(judge_at(server, Vendor("azure/my-deployment", vendors.chat, base="", params=AZURE)))
    assert server.requests[0].path.endswith("?api-version=2025-01-01-preview")


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("request_timeout", "timeout"),
        ("retry_policy", "retries"),
        ("fallbacks", "Cascade"),
        ("caching", "Store"),
        ("stream_options", "read whole"),
    ],
)
def test_parameters_that_are_ours_are_refused_with_the_option_that_does_it(name: str, cure: str) -> None:
    """What would send, wait or answer behind our back is refused where it is given."""
    with pytest.raises(DefinitionError, match=cure):
        Judge("openai/gpt-4o-mini", params={name: 1})


@pytest.mark.parametrize("via", ["litellm", "http://127.0.0.1:8000/v1"])
@pytest.mark.parametrize("name", ["headers", "default_headers", "http_headers", "custom_headers"])
def test_headers_under_another_name_are_refused_with_the_one_that_sends_them(name: str, via: str) -> None:
    """They went into the body of the request, or nowhere, and no header was sent."""
    with pytest.raises(DefinitionError, match=r"this is set by params=.*extra_headers") as caught:
        Judge("tiny", via=via, params={name: {"X-Key": "abc-secret-9"}})
    assert "abc-secret-9" not in str(caught.value)
    line = str(caught.value).rpartition("this is set by params=")[2]
    assert "extra_headers" in Judge("tiny", via=via, params=ast.literal_eval(line)).params


@pytest.mark.parametrize("name", ["proxy", "http_proxy", "proxies"])
def test_what_the_environment_sets_is_sent_to_no_vendor(name: str) -> None:
    """An address of a proxy, with its password, would stand in the body of each request."""
    with pytest.raises(DefinitionError, match="this is set by the environment"):
        Judge("openai/gpt-5", params={name: "http://user:secret@proxy:1"})


REDIRECTED = ["openai/gpt-4o-mini", "azure/my-deployment", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash",
              "ollama/llama3", "hosted_vllm/my-own", "mistral/mistral-large-latest", "deepseek/deepseek-chat",
              "bedrock/amazon.nova-pro-v1:0"]  # fmt: skip
LONG = b'{"x": "' + b"y" * 4_000_000 + b'"}'
NESTED = b"[" * 150_000 + b"]" * 150_000
HOSTILE: dict[str, tuple[int, dict[str, str], bytes, str]] = {
    "redirect": (307, {"Location": "http://u:hidden@elsewhere.example:81/v1?key=hidden"}, b"", "bad_request"),
    "redirect-303": (303, {"Location": "/elsewhere"}, b"", "bad_request"),
    "nested": (200, {}, NESTED, "bad_response"),
    "nested-inside": (200, {}, b'{"choices": ' + NESTED + b"}", "bad_response"),
    "nested-error": (500, {}, NESTED, "overloaded"),
    "long": (200, {}, LONG, "bad_response"),
    "long-error": (503, {}, LONG, "overloaded"),
    "bomb": (200, {"Content-Encoding": "gzip"}, gzip.compress(LONG), "bad_response"),
    "bomb-error": (429, {"Content-Encoding": "gzip"}, gzip.compress(LONG), "rate_limited"),
    "packed-oddly": (200, {"Content-Encoding": "br"}, b"{}", "bad_response"),
    "html": (200, {}, b"<p>Hello</p>" * 50_000, "bad_response"),
    "text-status": (200, {}, b'{"error": {"message": "slow down", "code": "429"}}', "rate_limited"),
    "word-status": (200, {}, b'{"error": {"message": "slow down", "code": "busy"}}', "bad_response"),
    "endless-status": (200, {}, b'{"error": {"message": "x", "code": "' + b"9" * 5000 + b'"}}', "bad_response"),
    "odd-wait": (429, {"Retry-After": "\u00e9\u00e9"}, b'{"error": {"message": "slow down"}}', "rate_limited"),
    "odd-header": (503, {"X-Odd": "\u00e9\u00ff"}, b"{}", "overloaded"),
}


@each_row("vendor", [v for v in VENDORS if v.model in REDIRECTED], ids=lambda vendor: vendor.model)
@each_row("kind", HOSTILE)
def test_hostile_answers_are_typed_failures_of_one_request(kind: str, vendor: Vendor) -> None:
    """Whatever a server sends, each vendor's way ends in one request, in time, with a failure of the right kind."""
    status, headers, body, expected = HOSTILE[kind]
    with Answering(lambda _: (status, headers, body)) as server:
        failure = run(judge_at(server, vendor))
    assert isinstance(failure, Failure), failure
    assert (failure.kind, failure.usage.calls, len(server.requests)) == (expected, 1, 1)
    assert "hidden" not in str(failure)
    if kind == "redirect":
        assert "elsewhere.example:81" in failure.message


def test_the_most_that_is_read_grows_with_what_was_asked_for_and_has_an_end() -> None:
    """A reply may be as long as its tokens, with the prompt in it, and never longer than the bound."""
    assert most_bytes(1000, 100) < most_bytes(1000, 4000) < most_bytes(1000, 4000, logprobs=True)
    assert most_bytes(10**9, 10**9) == MOST_BYTES


@pytest.fixture
def untrusted(tmp_path: Path) -> ssl.SSLContext:
    """Return the context of a server whose certificate nobody has signed."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    files = ["-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*command, *files], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context


UNREACHED = [
    "openai/gpt-4o-mini",
    "azure/my-deployment",
    "anthropic/claude-sonnet-4-5",
    "ollama/llama3",
    "hosted_vllm/my-own",
]
some_vendors = pytest.mark.parametrize("vendor", [v for v in VENDORS if v.model in UNREACHED], ids=lambda v: v.model)


@some_vendors
def test_a_bad_certificate_is_tried_once_with_the_cure(untrusted: ssl.SSLContext, vendor: Vendor) -> None:
    """Another attempt would find the same certificate; nothing was sent, and nothing is charged."""
    with Answering(lambda _: (200, {}, b"{}"), untrusted) as server:
        failure = run(judge_at(server, vendor, retries=2))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.in_doubt, failure.usage, server.requests) == (
        "bad_request",
        False,
        Usage(calls=1, cost=0.0),
        [],
    )
    assert "SSL_CERT_FILE" in failure.message


@some_vendors
@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "http://nobody.invalid"])
def test_a_connection_that_never_came_about_costs_nothing(address: str, vendor: Vendor) -> None:
    """Refused, or of no such host: a transport failure that is not in doubt."""
    params = {"api_key": KEY, **vendor.params, "api_base": address}
    failure = run(Judge(vendor.model, params=params, retries=0))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.in_doubt, failure.usage) == ("transport", False, Usage(calls=1, cost=0.0))


def test_a_connection_that_never_came_about_is_neither_charged_nor_held(tmp_path: Path) -> None:
    """A budget has its tokens and its money back, and a store that holds what is in doubt sends it again."""
    judge = Judge("openai/gpt-4o-mini", params={"api_base": "http://127.0.0.1:9/v1", "api_key": KEY}, retries=0)
    budget = Budget(tokens=100_000, cost=1.0, calls=1)
    for _ in range(2):
        with Store(tmp_path / "replies.db", in_doubt="hold") as store:
            result = grade_many(["Good morning!"], "Is polite", judge, store=store, budget=budget).collect()[0]
        assert isinstance(result, Ungraded)
        assert [failure.kind for failure in result.failures] == ["transport"]
    assert (budget.spent.calls, budget.spent.tokens, budget.spent.cost) == (0, 0, 0.0)
    assert "in_doubt" not in stats(tmp_path / "replies.db").states


@pytest.mark.parametrize("host", ["127.0.0.1:99999", f"{'a' * 70}.invalid"])
def test_an_address_that_is_none_is_not_tried_again(host: str) -> None:
    """Another attempt would find the same address."""
    failure = run(Judge("hosted_vllm/m", params={"api_base": f"http://{host}/v1"}, retries=2))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.usage) == ("bad_request", Usage(calls=1, cost=0.0))


def test_what_could_not_be_sent_in_time_is_not_in_doubt() -> None:
    """A server that never takes the connection has not been sent anything."""
    # 192.0.2.0/24 is kept for documentation: packets to it vanish, or are refused where there is no route.
    judge = Judge("hosted_vllm/m", params={"api_base": "http://192.0.2.1/v1"}, timeout=0.3, retries=0)
    failure = run(judge)
    assert isinstance(failure, Failure)
    assert failure.kind in ("timeout", "transport")
    assert (failure.in_doubt, failure.usage) == (False, Usage(calls=1, cost=0.0))
