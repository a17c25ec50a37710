"""What a stranger's server may send: bodies without an end, packed bombs, odd shapes; and where a key may go."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.errors import ModelError
from rubric.models.chat_completions import reply_from
from rubric.models.http_client import proxy_for
from rubric.models.openai_http import OpenAIHTTPModel, endpoint_of
from rubric.models.registry import model_of
from rubric.models.retry import attempt
from rubric.values.judges import Judge
from rubric.values.requests import Ask, Failure, Reply
from tests.places import ROOT
from tests.rows import each_row
from tests.sendables import KEY, ask_of
from tests.servers import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Answer = Callable[[asyncio.StreamWriter], Coroutine[Any, Any, None]]

GOOD = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}


def ask_at(base: str, **judge: Any) -> Ask:
    """Return an ask that goes to *base*, with one attempt."""
    return ask_of(Judge("openai/m", via="http", retries=0, params={"api_base": base, "api_key": KEY}, **judge))


def outcome_of(answer: Answer, **judge: Any) -> Reply | Failure:
    """Return what comes of an ask to a server that reads a request and writes *answer*."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(writer)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def main() -> Reply | Failure:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            ask = ask_at(f"http://127.0.0.1:{port}/v1", **judge)
            return await attempt(model_of(ask.judge), ask)

    return asyncio.run(main())


def head(*lines: str, status: str = "200 OK") -> bytes:
    """Return the head of an answer."""
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "Connection: close", "", ""]).encode()


async def endless(writer: asyncio.StreamWriter) -> None:
    """Send a body for as long as anybody reads it, up to a gigabyte."""
    writer.write(head())
    for _ in range(1024):
        writer.write(b" " * 2**20)
        await writer.drain()


async def announced(writer: asyncio.StreamWriter) -> None:
    """Announce a gigabyte, and send it."""
    writer.write(head(f"Content-Length: {2**30}"))
    await endless(writer)


def packed(body: bytes, encoding: str) -> Answer:
    """Return the answer with *body* in *encoding*."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(f"Content-Encoding: {encoding}", f"Content-Length: {len(body)}") + body)

    return answer


async def bomb(writer: asyncio.StreamWriter) -> None:
    """Send a few kilobytes that unpack to 256 MB."""
    await packed(gzip.compress(bytes(2**28), 1), "gzip")(writer)


@pytest.mark.parametrize("answer", [endless, announced, bomb])
def test_no_more_is_read_than_a_reply_can_need(answer: Answer) -> None:
    """A body without end, one of a gigabyte and a packed bomb are bad responses, and are not taken into memory."""
    failure = outcome_of(answer)
    assert isinstance(failure, Failure)
    assert (failure.kind, "longer than" in failure.message) == ("bad_response", True)


def test_a_packed_reply_is_unpacked() -> None:
    """Some gateways pack although nobody asked them to."""
    reply = outcome_of(packed(gzip.compress(json.dumps(GOOD).encode()), "gzip"))
    assert isinstance(reply, Reply)
    assert reply.text == "yes"


def test_a_status_counts_where_nobody_can_read_the_rest() -> None:
    """A 429 in an encoding that was not asked for is still one."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head("Content-Encoding: br", "Content-Length: 2", status="429 Slow") + b"{}")

    failure = outcome_of(answer)
    assert isinstance(failure, Failure)
    assert failure.kind == "rate_limited"


@pytest.mark.parametrize(("body", "encoding"), [(b"nonsense", "gzip"), (b"{}", "br")])
def test_what_cannot_be_unpacked(body: bytes, encoding: str) -> None:
    """A body that is not what it says, or in an encoding of its own choice, is a bad response."""
    failure = outcome_of(packed(body, encoding))
    assert isinstance(failure, Failure)
    assert failure.kind == "bad_response"


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (head("Location: http://127.0.0.1:9/", "Content-Length: 0", status="307 Temporary Redirect"), "bad_request"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "bad_response"),
        (head(*(f"X-{number}: {'x' * 8000}" for number in range(9)), f"X: {'x' * 100_000}"), "bad_response"),
    ],
    ids=["redirect", "no-http", "long-header"],
)
def test_answers_that_are_none(start: bytes, kind: str) -> None:
    """A redirect is not followed, and what is not HTTP is a bad response."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(start)

    failure = outcome_of(answer)
    assert isinstance(failure, Failure)
    assert failure.kind == kind


def test_choices_and_probabilities_are_read() -> None:
    """Each choice's text is kept, and the tokens of the first with their likeliest alternatives."""
    top = [{"token": "8", "logprob": -0.1}, {"token": "7", "logprob": -2.5}]
    logprobs = {"content": [{"token": "8", "logprob": -0.1, "top_logprobs": top}]}
    choices = [
        {"message": {"content": "8"}, "finish_reason": "stop", "logprobs": logprobs},
        {"message": {"content": None}, "finish_reason": "stop"},
        {"message": {"content": "7"}, "finish_reason": "stop"},
    ]
    reply = reply_from(json.dumps({"choices": choices}).encode())
    assert (reply.text, reply.choices) == ("8", ("8", "", "7"))
    assert reply.logprobs == (("8", -0.1, (("8", -0.1), ("7", -2.5))),)


@each_row("logprobs", [None, [], {}, {"content": None}, {"content": [{}]}, {"content": [{"token": 1}]}])
def test_broken_probabilities_are_none(logprobs: Any) -> None:
    """Probabilities that are not whole are none, and the reply stands."""
    choice = {"message": {"content": "8"}, "logprobs": logprobs}
    assert reply_from(json.dumps({"choices": [choice]}).encode()).logprobs is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "choices": json_values
            | st.lists(
                st.fixed_dictionaries(
                    {},
                    optional={
                        "message": json_values
                        | st.fixed_dictionaries({}, optional={"content": json_values, "refusal": json_values}),
                        "finish_reason": json_values,
                        "logprobs": json_values | st.fixed_dictionaries({"content": json_values}),
                    },
                ),
                max_size=3,
            ),
            "usage": json_values
            | st.fixed_dictionaries({}, optional={"prompt_tokens": json_values, "prompt_tokens_details": json_values}),
            "error": json_values | st.fixed_dictionaries({"code": json_values}),
            "model": json_values,
        },
    )
)
def test_any_json_is_a_reply_or_a_typed_failure(data: Any) -> None:
    """Whatever JSON comes back, nothing but a reply or a `ModelError` comes of it, and no count is below 0."""
    try:
        usage = reply_from(json.dumps(data).encode()).usage
    except ModelError as error:
        usage = error.failure.usage
    assert min(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) >= 0


@given(st.binary(max_size=200))
def test_any_bytes_are_a_typed_failure(body: bytes) -> None:
    """Bytes that are not a chat completion raise a `ModelError`."""
    with pytest.raises(ModelError):
        reply_from(body)


def test_deep_nesting_is_a_bad_response() -> None:
    """A body that is nested a hundred thousand deep does not break the process."""
    with pytest.raises(ModelError) as caught:
        reply_from(b"[" * 100_000 + b"]" * 100_000)
    assert caught.value.failure.kind == "bad_response"


ENVIRON = {"OPENAI_API_KEY": "sk-ambient-0123456789"}
ELSEWHERE = {"api_base": "https://elsewhere.example/v1"}


@each_row(
    ("model", "params", "environ", "url", "key"),
    [
        ("openai/m", {}, {}, "https://api.openai.com/v1", True),
        ("m", {}, {}, "https://api.openai.com/v1", True),
        ("openai/m", {}, {"OPENAI_BASE_URL": "http://gate:80/v1/"}, "http://gate:80/v1", True),
        ("a/b", {}, {"OPENAI_API_BASE": "http://gate/v1"}, "http://gate/v1", True),
        ("openai/m", ELSEWHERE, {}, "https://elsewhere.example/v1", True),
        ("groq/m", ELSEWHERE, {}, "https://elsewhere.example/v1", False),
        ("openai/m", ELSEWHERE, {"OPENAI_BASE_URL": "http://gate/v1"}, "https://elsewhere.example/v1", True),
    ],
)
def test_where_the_environments_key_goes(
    model: str, params: dict[str, str], environ: dict[str, str], url: str, key: bool
) -> None:
    """It goes to OpenAI, to the address that the environment names, and to one in code for an `openai/` name."""
    endpoint = endpoint_of(Judge(model, via="http", params=params), ENVIRON | environ)
    assert (endpoint.url, "Authorization" in endpoint.headers) == (f"{url}/chat/completions", key)


def test_who_pays_goes_along_with_the_environments_key() -> None:
    """The environment's organisation and project are sent with its key, and not with another."""
    environ = ENVIRON | {"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1"}
    ambient, own = (endpoint_of(Judge("m", via="http", params=p), environ).headers for p in ({}, {"api_key": "mine"}))
    assert (ambient["OpenAI-Organization"], ambient["OpenAI-Project"]) == ("org-1", "proj-1")
    assert not {"OpenAI-Organization", "OpenAI-Project"} & own.keys()


def test_a_key_of_the_judges_own_wins() -> None:
    """A key in code goes wherever the judge goes, before the environment's."""
    judge = Judge("groq/m", via="http", params={**ELSEWHERE, "api_key": "mine"})
    assert endpoint_of(judge, ENVIRON).headers["Authorization"] == "Bearer mine"


@pytest.mark.parametrize(
    ("judge", "kind"),
    [
        (Judge("openai/m", via="http"), "auth"),
        (Judge("groq/m", via="http"), "bad_request"),
        (Judge("m", via="http", params={"api_base": "ftp://files"}), "bad_request"),
        (Judge("m", via="http", params={"api_base": "http://:bad:"}), "bad_request"),
    ],
)
def test_judges_without_an_address_or_a_key(judge: Judge, kind: str) -> None:
    """What cannot be sent is a typed failure before anything is."""
    with pytest.raises(ModelError) as caught:
        asyncio.run(OpenAIHTTPModel().answer(ask_of(judge)))
    assert caught.value.failure.kind == kind


def test_an_address_may_have_a_query() -> None:
    """What follows the question mark stays at the end."""
    judge = Judge("m", via="http", params={"api_base": "https://x.example/v1?api-version=2"})
    assert endpoint_of(judge, {}).url == "https://x.example/v1/chat/completions?api-version=2"


def test_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that the environment names is used, but not for the addresses that it excepts."""
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    proxies = [proxy_for(f"https://{host}.example/v1") for host in ("outside", "inside")]
    assert proxies == ["http://proxy.example:3128", None]


START = """
import asyncio, os, sys
from rubric.internals import background_loop as loops
from rubric.values.judges import Judge
from rubric.models.openai_http import OpenAIHTTPModel
from tests.sendables import ask_of

def answer():
    return OpenAIHTTPModel().answer(ask_of(Judge("m", via="http", params={"api_base": sys.argv[1]})))
"""


def in_child(script: str, base: str) -> tuple[int, str, str]:
    """Run *script* in a new interpreter that warns of all but slowness; return its exit code and what it printed."""
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", START + script, base]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    told = [line for line in done.stderr.splitlines() if not line.startswith("Executing <")]  # how busy the machine is
    return done.returncode, done.stdout, "\n".join(told)


ENDS = {
    "asyncio.run": "for _ in range(3): asyncio.run(answer())",
    "the background loop": "loops.run(answer())",
    "another loop of each thread": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as threads:
    assert len([*threads.map(lambda _: asyncio.run(answer()), range(8))]) == 8
""",
    "a loop that nobody closes": """
import warnings; warnings.simplefilter("ignore", ResourceWarning)
loop = asyncio.new_event_loop()
loop.run_until_complete(answer())
""",
    "a loop that is closed without a word": """
import warnings; warnings.simplefilter("ignore", ResourceWarning)
loop = asyncio.new_event_loop()
loop.run_until_complete(answer())
loop.close()
asyncio.run(answer())
""",
    "a fork": """
import warnings; warnings.simplefilter("ignore")
async def first():
    await answer()
loops.run(first())
child = os.fork()
loops.run(answer())
asyncio.run(answer())
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    loops.run(answer())
""",
}


@each_row("script", ENDS.values(), ids=ENDS)
def test_sessions_end_in_silence(script: str) -> None:
    """However loops come and go, also through a fork, each session is closed, and nothing is printed."""
    with Server() as server:
        assert in_child(script, server.at("ok").openai) == (0, "", "")


def test_the_import_is_lazy() -> None:
    """The client library comes with the first judge that is asked this way."""
    script = "from rubric.models.registry import model_of; import sys; assert 'aiohttp' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False, timeout=60).returncode == 0


def test_a_reply_is_not_awaited_for_ever() -> None:
    """The model itself keeps to the judge's deadline."""
    with Server() as server:
        ask = ask_at(server.at("trickle").openai, timeout=0.2)
        with pytest.raises(ModelError) as caught:
            asyncio.run(OpenAIHTTPModel().answer(ask))
    assert caught.value.failure.kind == "timeout"
