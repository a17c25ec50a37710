"""What stands between a judge and its model: proxies, certificates, redirects, hostile bodies; on the direct path."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from rubric import Rubric, grade
from rubric.batches.openai import create, find, line_of, replies, state
from rubric.errors import ModelError
from rubric.models.http_bodies import DEEPEST, MOST_BYTES, parse
from rubric.models.http_client import proxy_for
from rubric.models.openai_http import endpoint_of, exposure_of
from rubric.models.registry import model_of
from rubric.models.retry import attempt
from rubric.values.judges import Judge
from rubric.values.requests import RETRIED, Ask, Failure, FailureKind, Reply, Usage
from tests.proxies import Proxy
from tests.sendables import KEY, ask_of, openai_ask, run
from tests.servers import BEHAVIOURS, STRANGE, Endpoint, Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

UNSENT = (0.0, 0)  # cost, unmetered
_hosts = count()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of the machine's own has a say."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def failing(ask: Ask) -> Failure:
    """Return the failure of *ask*."""
    outcome = run(ask)
    assert isinstance(outcome, Failure), outcome
    return outcome


# -- the matrix ------------------------------------------------------------------------------------------

ODD: dict[str, FailureKind] = {
    **{name: "bad_request" for name in STRANGE if name.startswith("redirect")},
    "retry-after-odd": "rate_limited",
    "error-text-429": "rate_limited",
    "error-text-503": "overloaded",
    "error-word-429": "rate_limited",
    "error-word-401": "auth",
    **dict.fromkeys(
        ("error-digits", "nested", "nested-error", "values", "large", "bomb", "headers", "early-hints"),
        "bad_response",
    ),
}


@pytest.mark.parametrize("behaviour", STRANGE)
def test_what_no_vendor_would_do_is_a_typed_failure(server: Server, behaviour: str) -> None:
    """A hostile answer has its kind, leads nowhere else, and counts each request that left."""
    endpoint = server.at(behaviour)

    failure = failing(openai_ask(endpoint, via="http", retries=1, timeout=30))
    again = failure.kind in RETRIED
    assert (failure.kind, failure.usage.calls, len(endpoint.requests)) == (ODD[behaviour], 1 + again, 1 + again)


def test_the_whole_matrix_at_once_disturbs_nobody(server: Server) -> None:
    """All behaviours side by side: each request on the wire is counted, nothing foreign is raised, neighbours pass."""
    names = [*BEHAVIOURS, *STRANGE, *["ok"] * 20]
    endpoints = [server.at(name) for name in names]

    async def main() -> list[Reply | Failure]:
        async def one(name: str, endpoint: Endpoint) -> Reply | Failure:
            slow = name in ("hang", "trickle")
            ask = openai_ask(endpoint, via="http", retries=0, timeout=1 if slow else 60)
            return await attempt(model_of(ask.judge), ask)

        return await asyncio.gather(*map(one, names, endpoints))

    outcomes = asyncio.run(main())
    wrong = [name for name, outcome in zip(names, outcomes, strict=True) if _is_foreign(outcome)]
    assert not wrong
    assert [outcome.usage.calls for outcome in outcomes] == [len(endpoint.requests) for endpoint in endpoints]
    assert all(isinstance(outcome, Reply) for outcome in outcomes[-20:])


def _is_foreign(outcome: Reply | Failure) -> bool:
    return isinstance(outcome, Failure) and outcome.kind == "exception"


def test_a_redirect_says_what_to_do(server: Server) -> None:
    """The failure names where it would have led, and the cure."""
    failure = failing(openai_ask(server.at("redirect-307"), via="http"))
    assert "127.0.0.1:9" in failure.message
    assert "not followed" in failure.message


# -- bodies ----------------------------------------------------------------------------------------------

MONSTERS = {
    "deep": b"[" * 70 + b"]" * 70,
    "deep objects": b'{"a":' * 70 + b"1" + b"}" * 70,
    "deep, of both kinds": b'[{"a":' * 40 + b"1" + b"}]" * 40,
    "deep, never closed": b"[" * 100_000,
    "deep behind texts": b'["\\"[", ' * 70 + b"1" + b"]" * 70,
    "many lists": b"[" + b"[]," * 100_000 + b"0]",
    "many numbers": b"[" + b"1," * 100_000 + b"0]",
    "many texts": b"[" + b'"",' * 100_000 + b"0]",
}


@pytest.mark.parametrize("body", MONSTERS.values(), ids=MONSTERS)
def test_what_would_hold_up_the_loop_is_not_parsed(body: bytes) -> None:
    """A body that is nested deeply, or that has more values than any reply, is refused before it is parsed."""
    with pytest.raises(ModelError) as caught:
        parse(body)
    assert caught.value.failure.kind == "bad_response"


@pytest.mark.parametrize("text", ["1," * 100_000, "[" * 100_000, '\\"[' * 50_000, '{"a": ' * 20_000])
def test_a_text_may_hold_what_a_body_may_not(text: str) -> None:
    """What stands in a text does not count: a judge may quote code, and some servers send the prompt back."""

    assert parse(json.dumps({"text": text}).encode()) == {"text": text}


def test_as_deep_as_it_may_be() -> None:
    """The bound on the depth is kept to the level."""
    assert parse(b"[" * DEEPEST + b"]" * DEEPEST)
    with pytest.raises(ModelError):
        parse(b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1))


def test_no_answer_may_be_longer_than_the_bound(server: Server) -> None:
    """However long a reply was allowed, no more is read than fits into memory."""
    endpoint = server.at("large")
    ask = ask_of(openai_ask(endpoint, via="http", retries=0).judge, max_tokens=1_000_000)
    assert f"{MOST_BYTES:,} bytes" in failing(ask).message


# -- proxies ---------------------------------------------------------------------------------------------

CONNECTS: dict[str, FailureKind] = {
    "407": "auth",
    "403": "bad_request",
    "429": "transport",
    "500": "transport",
    "502": "transport",
    "503": "transport",
    "504": "transport",
    "hang": "timeout",
    "close": "transport",
    "garbage": "transport",
}


def proxied(scheme: str, via: str, endpoint: Endpoint | None = None, **judge: Any) -> Ask:
    """Return an ask for an address that only a proxy leads to; LiteLLM looks up the proxy of a host once."""
    path = endpoint.openai.split("/", 3)[3] if endpoint else "v1"
    base = f"{scheme}://host{next(_hosts)}.test/{path}"
    return ask_of(Judge("openai/m", via=via, params={"api_base": base, "api_key": KEY}, **judge))


@pytest.mark.parametrize("behaviour", CONNECTS)
def test_a_proxy_that_does_not_connect(monkeypatch: pytest.MonkeyPatch, behaviour: str) -> None:
    """Nothing was sent, so nothing is charged or in doubt, and another attempt follows where that may help."""
    with Proxy(behaviour) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        failure = failing(proxied("https", "http", retries=1, timeout=1.0 if behaviour == "hang" else 30))
    again = failure.kind in RETRIED
    assert (failure.kind, failure.usage.calls, len(proxy.asked)) == (CONNECTS[behaviour], 1 + again, 1 + again)
    assert (failure.usage.cost, failure.usage.unmetered, failure.in_doubt) == (*UNSENT, False)
    assert not any("authorization: bearer" in head.lower() for head in proxy.heads)


@pytest.mark.parametrize("behaviour", [name for name in CONNECTS if name.isdigit()])
def test_a_proxy_that_does_not_connect_is_the_same_through_litellm(
    monkeypatch: pytest.MonkeyPatch, behaviour: str
) -> None:
    """Through LiteLLM, too, nothing was sent and nothing is charged."""
    with Proxy(behaviour) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        failure = failing(proxied("https", "litellm", retries=1, timeout=30))
    again = failure.kind in RETRIED
    assert (failure.kind, failure.usage.calls, len(proxy.asked)) == (CONNECTS[behaviour], 1 + again, 1 + again)
    assert (failure.usage.cost, failure.usage.unmetered, failure.in_doubt) == (*UNSENT, False)


PLAIN: dict[str, FailureKind] = CONNECTS | {
    "403": "auth",
    "429": "rate_limited",
    "500": "overloaded",
    "502": "overloaded",
    "503": "overloaded",
    "504": "timeout",
    "garbage": "bad_response",
}


@pytest.mark.parametrize("behaviour", PLAIN)
def test_a_proxy_that_refuses_a_plain_request(monkeypatch: pytest.MonkeyPatch, behaviour: str) -> None:
    """Over plain HTTP a proxy's answer is the server's, as far as anybody can tell."""
    with Proxy(behaviour) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        failure = failing(proxied("http", "http", retries=1, timeout=1.0 if behaviour == "hang" else 30))
    again = failure.kind in RETRIED
    assert (failure.kind, failure.usage.calls, len(proxy.asked)) == (PLAIN[behaviour], 1 + again, 1 + again)


@pytest.mark.parametrize("via", ["http", "litellm"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch, scheme: str, via: str) -> None:
    """A proxy that refuses the connection is a transport failure at no cost."""
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    failure = failing(proxied(scheme, via, retries=1, timeout=30))
    assert (failure.kind, failure.usage, failure.in_doubt) == ("transport", Usage(calls=2, cost=0.0), False)


@pytest.mark.parametrize("via", ["http", "litellm"])
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_a_proxy_leads_there(server: Server, monkeypatch: pytest.MonkeyPatch, variable: str, via: str) -> None:
    """A proxy of the environment is used on both ways, whichever variable names it, also without `http://`."""
    endpoint = server.at("ok")
    with Proxy("ok", server.port) as proxy:
        monkeypatch.setenv(variable, proxy.url.removeprefix("http://"))
        outcome = run(proxied("http", via, endpoint, retries=0, timeout=30))
    assert isinstance(outcome, Reply), outcome
    assert (len(proxy.asked), len(endpoint.requests), outcome.usage.calls) == (1, 1, 1)


def test_a_password_for_the_proxy_goes_to_it_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy gets user and password, with the request to connect and nothing else."""
    with Proxy("502") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//user:open-sesame@"))
        failure = failing(proxied("https", "http", retries=0))
    assert "Proxy-Authorization: Basic" in proxy.heads[0]
    assert "open-sesame" not in str(failure)


@pytest.mark.parametrize("name", ["ALL_PROXY", "HTTPS_PROXY"])
@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "socks5h://127.0.0.1:1080", "ftp://x", "http://:bad:"])
def test_a_proxy_that_is_none_of_http_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, proxy: str) -> None:
    """A SOCKS proxy is not gone around in silence: the failure names the variable and what to do."""
    monkeypatch.setenv(name, proxy)
    failure = failing(proxied("https", "http"))
    assert (failure.kind, failure.in_doubt) == ("bad_request", False)
    assert name in failure.message
    assert "NO_PROXY" in failure.message


@pytest.mark.parametrize(
    ("environ", "url", "expected"),
    [
        ({"ALL_PROXY": "http://all:1"}, "https://x.test/", "http://all:1"),
        ({"ALL_PROXY": "http://all:1", "HTTPS_PROXY": "http://own:1"}, "https://x.test/", "http://own:1"),
        ({"ALL_PROXY": "http://all:1", "HTTP_PROXY": "http://own:1"}, "https://x.test/", "http://all:1"),
        ({"HTTPS_PROXY": "own:1"}, "https://x.test/", "http://own:1"),
        ({"ALL_PROXY": "http://all:1", "NO_PROXY": "*"}, "https://x.test/", None),
        ({"ALL_PROXY": "http://all:1", "NO_PROXY": "a.test, x.test"}, "https://x.test/", None),
        ({"ALL_PROXY": "http://all:1", "NO_PROXY": ".x.test"}, "https://deep.x.test/", None),
        ({"ALL_PROXY": "http://all:1", "NO_PROXY": "x.test"}, "https://notx.test/", "http://all:1"),
        ({"ALL_PROXY": "http://all:1", "NO_PROXY": "x.test:443"}, "https://x.test/", None),
        ({"ALL_PROXY": "http://all:1", "NO_PROXY": "x.test:8443"}, "https://x.test/", "http://all:1"),
        ({"ALL_PROXY": "http://all:1", "NO_PROXY": "10.0.0.0/8"}, "http://10.1.2.3:8000/v1", None),
        ({"ALL_PROXY": "http://all:1", "NO_PROXY": "10.0.0.0/8"}, "http://11.1.2.3:8000/v1", "http://all:1"),
        ({"ALL_PROXY": "http://all:1", "NO_PROXY": "::1"}, "http://[::1]:8000/v1", None),
        ({"ALL_PROXY": "http://all:1", "NO_PROXY": "fd00::/8"}, "http://[fd00::7]:8000/v1", None),
        ({"HTTP_PROXY": "http://own:1", "REQUEST_METHOD": "GET"}, "http://x.test/", None),
    ],
)
def test_which_proxy(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], url: str, expected: str | None) -> None:
    """The variable of the scheme goes before `ALL_PROXY`, and `NO_PROXY` excepts hosts, ports and networks."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == expected


def test_a_proxy_that_is_named_later_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that is set after a first failure, as in a notebook, has its effect."""
    assert proxy_for("https://later.test/") is None
    monkeypatch.setenv("HTTPS_PROXY", "http://own:1")
    assert proxy_for("https://later.test/") == "http://own:1"


# -- in the clear ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "proxy", "key", "told"),
    [
        ("http://far.test/v1", "", KEY, True),
        ("http://far.test/v1", "http://127.0.0.1:1", KEY, True),
        ("http://127.0.0.1:8000/v1", "http://far.test:1", KEY, True),
        ("http://127.0.0.1:8000/v1", "", KEY, False),
        ("http://localhost:8000/v1", "", KEY, False),
        ("http://[::1]:8000/v1", "", KEY, False),
        ("https://far.test/v1", "http://far.test:1", KEY, False),
        ("http://far.test/v1", "", "", False),
    ],
)
def test_a_key_that_leaves_the_machine_in_the_clear(
    monkeypatch: pytest.MonkeyPatch, base: str, proxy: str, key: str, told: bool
) -> None:
    """A key over plain HTTP is remarked on unless nobody else can read it."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    judge = Judge("m", via="http", params={"api_base": base, "api_key": key})
    assert bool(exposure_of(endpoint_of(judge, {}))) == told


def test_a_grade_says_that_the_key_went_in_the_clear(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning stands in the grade, and names the proxy that could read key and prompt."""
    with Proxy("ok", server.port) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        judge = proxied("http", "http", server.at("ok"), retries=0).judge
        result = grade("Good morning!", Rubric("polite").expects("Is polite"), judge)
    assert [warning for warning in result.warnings if "proxy 127.0.0.1" in warning and "https://" in warning]


# -- certificates ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a key and of a certificate for this machine that nobody trusts."""
    if shutil.which("openssl") is None:
        pytest.skip("nothing here makes certificates")
    file = tmp_path_factory.mktemp("certificates") / "own.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(
        [*command, *name, "-keyout", file, "-out", file.with_suffix(".crt")], check=True, capture_output=True
    )
    file.write_text(file.read_text() + file.with_suffix(".crt").read_text())
    return file


@contextmanager
def guarded(certificate: Path, port: int) -> Iterator[tuple[str, list[int]]]:
    """Yield the address of a TLS server before *port*, and a list that grows by each connection that is let in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    accepted: list[int] = []

    def serve(listening: socket.socket) -> None:
        while True:
            try:
                plain, _ = listening.accept()
            except OSError:
                return
            accepted.append(1)
            try:
                with (
                    context.wrap_socket(plain, server_side=True) as inside,
                    socket.create_connection(("127.0.0.1", port)) as there,
                ):
                    there.sendall(inside.recv(2**20))
                    inside.sendall(there.recv(2**20))
            except OSError:
                plain.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}", accepted
        listening.shutdown(socket.SHUT_RDWR)


def guarded_ask(base: str, endpoint: Endpoint, via: str) -> Ask:
    """Return an ask for *endpoint* behind *base*, with two retries."""
    address = f"{base}/{endpoint.openai.split('/', 3)[3]}"
    return ask_of(Judge("openai/m", via=via, retries=2, timeout=30, params={"api_base": address, "api_key": KEY}))


@pytest.mark.parametrize("via", ["http", "litellm"])
def test_a_bad_certificate_is_tried_once_with_a_hint(server: Server, certificate: Path, via: str) -> None:
    """Another attempt cannot help, nothing was sent, and the cure is named."""
    endpoint = server.at("ok")
    with guarded(certificate, server.port) as (base, accepted):
        failure = failing(guarded_ask(base, endpoint, via))
    assert (failure.kind, failure.usage, failure.in_doubt) == ("bad_request", Usage(calls=1, cost=0.0), False)
    assert "SSL_CERT_FILE" in failure.message
    assert (len(accepted), endpoint.requests) == (1, [])


def test_the_cure_for_a_bad_certificate_works_in_the_same_process(
    server: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that `SSL_CERT_FILE` names is trusted from the next request on."""
    with guarded(certificate, server.port) as (base, _):
        assert failing(guarded_ask(base, server.at("ok"), "http")).kind == "bad_request"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert isinstance(run(guarded_ask(base, server.at("ok"), "http")), Reply)


def test_a_server_without_tls_is_tried_once_with_a_hint(server: Server) -> None:
    """`https://` to a server that speaks plain HTTP is a bad request, and says what it may be."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(2**16)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        failure = failing(guarded_ask(f"https://127.0.0.1:{listening.getsockname()[1]}", server.at("ok"), "http"))
        thread.join(10)
    assert (failure.kind, failure.usage) == ("bad_request", Usage(calls=1, cost=0.0))
    assert "http://?" in failure.message


def test_a_connection_that_takes_too_long_was_never_sent() -> None:
    """A server that accepts and never shakes hands holds the deadline; nothing is charged or in doubt."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        base = f"https://127.0.0.1:{listening.getsockname()[1]}/v1"
        judge = Judge("m", via="http", retries=0, timeout=0.2, params={"api_base": base, "api_key": KEY})
        failure = failing(ask_of(judge))
    assert (failure.kind, failure.usage, failure.in_doubt) == ("timeout", Usage(calls=1, cost=0.0), False)


# -- batches ---------------------------------------------------------------------------------------------


def told(answer: bytes | tuple[bytes, bytes], call: Callable[[Judge], Awaitable[Any]]) -> Any:
    """Return what *call* comes to at a server that writes *answer*, to files and to the rest; or the typed failure."""
    files, rest = answer if isinstance(answer, tuple) else (answer, answer)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            await reader.readexactly(int(length[1]) if length else 0)
            writer.write(files if b"/files" in head.splitlines()[0] else rest)
            await writer.drain()
        writer.close()

    async def main() -> Any:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
            base = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
            try:
                return await call(Judge("m", params={"api_base": base, "api_key": KEY}))
            except ModelError as error:
                return error.failure

    return asyncio.run(main())


def ok(body: bytes, *headers: str) -> bytes:
    """Return a whole answer with *body*."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "Connection: close", "", ""]
    return "\r\n".join(lines).encode() + body


NO_BATCHES: dict[str, tuple[bytes, FailureKind]] = {
    "a redirect": (b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:9/\r\nConnection: close\r\n\r\n", "bad_request"),
    "an error in a 200": (ok(b'{"error": {"code": "429", "message": "slow"}}'), "rate_limited"),
    "a page of a hotel": (ok(b"<html></html>"), "bad_response"),
    "nested": (ok(b"[" * 100_000), "bad_response"),
    "a bomb": (ok(gzip.compress(bytes(2**26), 1), "Content-Encoding: gzip"), "bad_response"),
}


@pytest.mark.parametrize(("answer", "kind"), NO_BATCHES.values(), ids=NO_BATCHES)
@pytest.mark.parametrize(
    "call", [lambda judge: state(judge, "b"), lambda judge: find(judge, "m")], ids=["state", "find"]
)
def test_what_is_no_answer_about_batches(
    answer: bytes, kind: FailureKind, call: Callable[[Judge], Awaitable[Any]]
) -> None:
    """It is a typed failure: neither a batch that never ends, nor one that is not there and would be sent again."""
    failure = told(answer, call)
    assert isinstance(failure, Failure)
    assert failure.kind == kind


def test_a_batch_whose_name_was_not_understood_is_in_doubt() -> None:
    """A yes that nobody can read may be a batch that is paid for, and is looked for before it is sent again."""

    async def serve(judge: Judge) -> Any:
        return await create(judge, [line_of(ask_of(judge))], "m")

    good, cut = ok(b'{"id": "one"}'), ok(b'{"id": "one"')
    assert told((good, good), serve) == "one"
    assert told((good, cut), serve).in_doubt
    assert not told((cut, good), serve).in_doubt  # a file alone is not a batch


ANSWERED = {"choices": [{"message": {"content": "yes"}, "finish_reason": "end_turn"}]}
LINES: dict[str, tuple[Any, str]] = {
    "a number": ({"status_code": 200, "body": ANSWERED}, "stop"),
    "a text": ({"status_code": "200", "body": ANSWERED}, "stop"),
    "an error as a text": ({"status_code": "429", "body": {"error": {"message": "slow"}}}, "rate_limited"),
    "an error in a 200": ({"status_code": 200, "body": {"error": {"code": "503"}}}, "overloaded"),
    "no status": ({"body": ANSWERED}, "timeout"),
    "no object": ("busy", "timeout"),
    "no body": ({"status_code": 200}, "bad_response"),
}


@pytest.mark.parametrize(("response", "end"), LINES.values(), ids=LINES)
def test_lines_of_a_batch_are_read_like_replies(response: Any, end: str) -> None:
    """Each line has its own fate, whatever stands in the others, and whatever its status is written as."""
    line = line_of(ask_of(Judge("m", params={"api_base": "http://127.0.0.1:9/v1"})))
    said = json.dumps({"custom_id": line.key, "response": response}).encode()
    body = b"\n".join([b"[" * 100_000, b"no JSON", b"", said, b'{"custom_id": [1]}'])

    async def read(judge: Judge) -> Any:
        return await replies(judge, "file-1", {line.key: line})

    for answer in (ok(body), ok(gzip.compress(body), "Content-Encoding: gzip")):
        outcome = told(answer, read)[line.key]
        assert (outcome.finish if isinstance(outcome, Reply) else outcome.kind) == end
