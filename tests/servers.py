"""
A local HTTP server that speaks two chat protocols, and misbehaves on request.

It answers OpenAI's `/v1/chat/completions` and Anthropic's `/v1/messages`. How it behaves is part of the
address: `server.at("429", "ok")` is an endpoint whose first request gets a 429 and every later one a good reply.

    with Server() as server:
        endpoint = server.at("reset", "ok")
        ...                                   # point a client at endpoint.openai or endpoint.anthropic
        assert len(endpoint.requests) == 2
"""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import re
import socket
import struct
import threading
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from itertools import count, islice, takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import define, evolve, field, frozen

from tests.serving import OnLoop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    Respond = Callable[[dict[str, Any]], str]
    Bill = Callable[[dict[str, Any], str], tuple[int, int]]

BLOCK = 512
"""Characters of a prompt that a prefix cache keeps together: 128 tokens."""

LEAST = 8
"""Blocks that a prefix must have before any of it is cached: 1,024 tokens."""

MOST_BLOCKS = 100_000
"""Blocks that the cache keeps; the oldest go first, as a vendor's do."""

MOST_KEPT = 64 * 2**20
"""Bytes of requests that an endpoint keeps; of the oldest beyond them it keeps all but the body."""


@frozen
class Status:
    """An answer with an error status, and what its error object says."""

    status: int
    code: str = "error"
    message: str = "the server made this up"
    headers: tuple[tuple[str, str], ...] = ()


STATUSES = {
    "429": Status(429, "rate_limit_exceeded", "Rate limit reached"),
    "429-after": Status(429, "rate_limit_exceeded", "Rate limit reached", (("Retry-After", "0.05"),)),
    "429-after-date": Status(
        429, "rate_limit_exceeded", "Rate limit reached", (("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT"),)
    ),
    "429-after-long": Status(429, "rate_limit_exceeded", "Rate limit reached", (("Retry-After", "3600"),)),
    "429-after-odd": Status(429, "rate_limit_exceeded", "Rate limit reached", (("Retry-After", "\u00e9t\u00e9"),)),
    "redirect": Status(307, headers=(("Location", "http://user:hidden@localhost/v1?key=hidden"),)),
    "quota": Status(429, "insufficient_quota", "You exceeded your current quota, please check your plan and billing"),
    "400": Status(400, "invalid_value", "Invalid value"),
    "422": Status(422, "unprocessable", "Unprocessable"),
    "context": Status(
        400,
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please "
        "reduce the length of the messages.",
    ),
    "policy": Status(400, "content_policy_violation", "Rejected as a result of our safety system"),
    "401": Status(401, "invalid_api_key", "Incorrect API key provided: sk-test-0123456789abcdef0123456789"),
    "403": Status(403, "forbidden", "Your project has no access to this model"),
    "404": Status(404, "model_not_found", "The model does not exist"),
    "408": Status(408, "timeout", "Request timed out"),
    "409": Status(409, "conflict", "A lock could not be acquired"),
    "413": Status(413, "too_large", "Request too large"),
    "500": Status(500, "server_error", "The server had an error"),
    "502": Status(502, "bad_gateway", "Bad gateway"),
    "503": Status(503, "overloaded", "Service unavailable"),
    "504": Status(504, "gateway_timeout", "Gateway timeout"),
    "529": Status(529, "overloaded_error", "Overloaded"),
}
"""Behaviours that answer with an error status, in either dialect."""


def _encoded(body: object) -> bytes:
    return json.dumps(body).encode()


def _choice(body: dict[str, Any], **changes: Any) -> bytes:
    body["choices"][0].update(changes)
    return _encoded(body)


def _message(body: dict[str, Any], **changes: Any) -> bytes:
    body["choices"][0]["message"].update(changes)
    return _encoded(body)


def _cut(body: dict[str, Any]) -> bytes:
    text = body["choices"][0]["message"]["content"]
    body["choices"][0]["message"]["content"] = text[: len(text) // 2]
    return _choice(body, finish_reason="length")


def _filtered_away(body: dict[str, Any]) -> bytes:
    body["choices"][0]["message"]["content"] = None
    return _choice(body, finish_reason="content_filter")


def _thinking(body: dict[str, Any]) -> bytes:
    text = body["choices"][0]["message"]["content"]
    return _message(body, content=f"<think>It might be wrong: {{}}</think>{text}")


def _without_usage(body: dict[str, Any]) -> bytes:
    del body["usage"]
    return _encoded(body)


BODIES: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "ok": _encoded,
    "truncated": lambda body: _encoded(body)[:-40],
    "empty-body": lambda _: b"",
    "html": lambda _: b"<html><body>Welcome to the hotel's wireless network</body></html>",
    "invalid-utf-8": lambda body: _encoded(body).replace(b'"assistant"', b'"\xff\xfe"'),
    "{}": lambda _: b"{}",
    "choices-null": lambda body: _encoded(body | {"choices": None}),
    "choices-empty": lambda body: _encoded(body | {"choices": []}),
    "error-in-200": lambda _: _encoded({"error": {"message": "upstream is busy", "code": 503, "type": "server_error"}}),
    "error-in-200-text": lambda _: _encoded({"error": {"message": "Rate limit reached", "code": "429"}}),
    "nested": lambda _: b"[" * 150_000 + b"]" * 150_000,
    "long": lambda body: _message(body, content="y" * 3_000_000),
    "content-null": lambda body: _message(body, content=None),
    "content-empty": lambda body: _message(body, content=""),
    "content-list": lambda body: _message(body, content=[{"type": "text", "text": "yes"}]),
    "content-number": lambda body: _message(body, content=7),
    "surrogate": lambda body: _message(body, content="\ud800 and a pair: \U0001f600"),
    "think": _thinking,
    "refusal": lambda body: _message(body, content=None, refusal="I cannot help with that."),
    "length": _cut,
    "content-filter": lambda body: _choice(body, finish_reason="content_filter"),
    "filtered-away": _filtered_away,
    "finish-empty": lambda body: _choice(body, finish_reason=""),
    "finish-weird": lambda body: _choice(body, finish_reason="weird"),
    "finish-null": lambda body: _choice(body, finish_reason=None),
    "no-usage": _without_usage,
    "usage-null": lambda body: _encoded(body | {"usage": None}),
}
"""Behaviours that answer with a 200 and this body, in OpenAI's dialect."""


def _stopped(body: dict[str, Any], **changes: Any) -> bytes:
    return _encoded(body | changes)


ANTHROPIC_BODIES: dict[str, Callable[[dict[str, Any]], bytes]] = {
    name: BODIES[name]
    for name in ("ok", "truncated", "empty-body", "html", "{}", "no-usage", "nested", "error-in-200-text")
} | {
    "content-empty": lambda body: _stopped(body, content=[]),
    "content-null": lambda body: _stopped(body, content=None),
    "refusal": lambda body: _stopped(body, stop_reason="refusal", content=[]),
    "length": lambda body: _stopped(body, stop_reason="max_tokens"),
    "finish-weird": lambda body: _stopped(body, stop_reason="weird"),
}
"""Behaviours that answer with a 200 and this body, in Anthropic's dialect."""

WIRES = ("length-too-long", "reset", "reset-mid-body", "close", "hang", "trickle")
"""Behaviours of the connection itself, the same in either dialect."""

BEHAVIOURS = (*STATUSES, *BODIES, *WIRES)


@frozen
class Request:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    _body: dict[str, Any] | None

    @property
    def body(self) -> dict[str, Any]:
        """What was asked for, unless too much came after it."""
        assert self._body is not None, f"this body is gone: an endpoint keeps the last {MOST_KEPT:,} bytes"
        return self._body

    @property
    def length(self) -> int:
        """The bytes that its client says the body has."""
        return int(self.headers.get("content-length", 0))


@define
class Endpoint:
    """A base address that behaves in a given way, and what was sent to it."""

    root: str
    behaviours: tuple[str, ...]
    requests: list[Request] = field(factory=list)
    asked: threading.Event = field(factory=threading.Event)
    closed: threading.Event = field(factory=threading.Event)
    said: bytes | None = None
    _kept: int = 0
    _oldest: int = 0

    @property
    def openai(self) -> str:
        """The base address for clients of OpenAI's protocol."""
        return f"{self.root}/v1"

    @property
    def anthropic(self) -> str:
        """The base address for clients of Anthropic's protocol."""
        return self.root

    def _receive(self, request: Request) -> str:
        self.requests.append(request)
        self._kept += request.length
        while self._kept > MOST_KEPT and self._oldest < len(self.requests) - 1:  # never the one that is answered now
            self._kept -= self.requests[self._oldest].length
            self.requests[self._oldest] = evolve(self.requests[self._oldest], body=None)
            self._oldest += 1
        self.asked.set()
        return self.behaviours[min(len(self.requests), len(self.behaviours)) - 1]


def prompt_of(body: dict[str, Any]) -> str:
    """Return all text of a request's prompt, in order, as a prefix cache sees it."""
    messages = [{"content": body.get("system") or ""}, *body.get("messages", [])]
    return "\n".join(_text(message["content"]) for message in messages)


def _text(content: str | Iterable[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@define
class Prefixes:
    """What a provider's prefix cache would serve: only beginnings of prompts whose replies are complete."""

    _known: dict[bytes, None] = field(factory=dict)

    def cached_tokens(self, prompt: str) -> int:
        """Return how many tokens of *prompt* a cache would serve now."""
        hits = sum(1 for _ in takewhile(self._known.__contains__, self._blocks(prompt)))
        return hits * BLOCK // 4 if hits >= LEAST else 0

    def remember(self, prompt: str) -> None:
        """Take *prompt* into the cache: its reply has been sent."""
        self._known.update(dict.fromkeys(self._blocks(prompt)))
        for block in [*islice(self._known, max(0, len(self._known) - MOST_BLOCKS))]:
            del self._known[block]

    @staticmethod
    def _blocks(prompt: str) -> Iterable[bytes]:
        """Yield a hash of each beginning of *prompt*: the beginnings themselves are quadratic, 2 GB for one of 1 MB."""
        state = sha256()
        for end in range(BLOCK, len(prompt) + 1, BLOCK):
            state.update(prompt[end - BLOCK : end].encode("utf-8", "surrogatepass"))
            yield state.digest()[:16]


@frozen
class LlamaCpp:
    """
    The limits of a llama.cpp server, and its words where a request is beyond them.

        server.refuse = LlamaCpp(slots=2, context=4096)
    """

    slots: int = 1
    context: int = 4096

    def __call__(self, body: dict[str, Any]) -> tuple[int, bytes] | None:
        """Return the status and the body of the refusal; None for a request within the limits."""
        wanted, tokens = body.get("n", 1), len(prompt_of(body)) // 4
        if not 1 <= wanted <= self.slots:
            said = f"Field 'n': Value must be between 1 <= value <= {self.slots}, but got {wanted}"
            return self._refusal(said, "invalid_request_error")
        if tokens > self.context:
            room = f"the available context size ({self.context} tokens), try increasing it"
            said, numbers = (
                f"request ({tokens} tokens) exceeds {room}",
                {"n_prompt_tokens": tokens, "n_ctx": self.context},
            )
            return self._refusal(said, "exceed_context_size_error", **numbers)
        return None

    @staticmethod
    def _refusal(message: str, kind: str, **numbers: int) -> tuple[int, bytes]:
        return 400, _encoded({"error": {"code": 400, "message": message, "type": kind, **numbers}})


_NONCE = re.compile(r'"nonce": "([^"]+)"')


def nonce_of(body: dict[str, Any]) -> str:
    """Return the nonce that the last message of a request asks for; empty without one."""
    found = _NONCE.findall(_text(body["messages"][-1]["content"]))
    return found[-1] if found else ""


def say_yes(body: dict[str, Any]) -> str:
    """Answer yes, with the nonce that was asked for."""
    nonce = nonce_of(body)
    return json.dumps({"reason": "It does.", "verdict": True, **({"nonce": nonce} if nonce else {})})


class Server(OnLoop):
    """The server, in a thread of its own; leave the `with` block and it is gone."""

    options: ClassVar = {"backlog": 1024, "limit": 1 << 24}

    def __init__(self, *, respond: Respond = say_yes, bill: Bill | None = None) -> None:
        self.respond = respond
        self.bill = bill
        self.prefixes = Prefixes()
        self.refuse: Callable[[dict[str, Any]], Status | tuple[int, bytes] | None] = lambda _: None
        """From a request to the error that it is refused with, or its status and body; None for one that is answered."""
        self._endpoints: dict[str, Endpoint] = {}
        self._numbers = count(1)

    def at(self, *behaviours: str) -> Endpoint:
        """Return a new endpoint: its first request gets the first behaviour, the last one is for all that follow."""
        assert set(behaviours) <= {*BEHAVIOURS, *STRANGE}, behaviours
        number = str(next(self._numbers))
        endpoint = Endpoint(f"http://127.0.0.1:{self.port}/{number}", behaviours)
        self._endpoints[number] = endpoint
        return endpoint

    def saying(self, said: object) -> Endpoint:
        """Return a new endpoint that answers every request with *said*, as JSON, and status 200."""
        endpoint = self.at("ok")
        endpoint.said = said if isinstance(said, bytes) else _encoded(said)
        return endpoint

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the requests of one connection."""
        while request := await _read(reader):
            await self._serve(request, reader, writer)

    async def _serve(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        endpoint = self._endpoints[request.path.split("/")[1]]
        behaviour = endpoint._receive(request)
        dialect = _anthropic if request.path.endswith("/messages") else _openai
        if refusal := self.refuse(request.body):
            await (_send_status(writer, refusal) if isinstance(refusal, Status) else _send(writer, *refusal))
        elif endpoint.said is not None:
            await _send(writer, 200, endpoint.said)
        elif request.path.endswith("/embeddings"):
            await _send(writer, 200, _embeddings(request.body))
        elif behaviour in STRANGE:
            await STRANGE[behaviour](writer)
        elif behaviour in STATUSES:
            await _send_status(writer, STATUSES[behaviour])
        elif behaviour in WIRES:
            await _misbehave(behaviour, endpoint, reader, writer)
        else:
            await self._reply(dialect, behaviour, request, writer)

    async def _reply(
        self, dialect: Callable[..., bytes], behaviour: str, request: Request, writer: asyncio.StreamWriter
    ) -> None:
        prompt = prompt_of(request.body)
        text = self.respond(request.body)
        body = dialect(behaviour, request.body, prompt, text, self.prefixes.cached_tokens(prompt))
        if self.bill is not None:
            body = _recounted(body, *self.bill(request.body, text))
        await _send(writer, 200, body)
        self.prefixes.remember(prompt)


@contextmanager
def openai_serving(respond: Respond) -> Iterator[Endpoint]:
    """Serve the models called `openai/...`, by the environment: *respond* gives the text of each reply."""
    import pytest  # which the environments of the benchmarks need not have

    with Server(respond=respond) as server, pytest.MonkeyPatch.context() as environment:
        endpoint = server.at("ok")
        environment.setenv("OPENAI_API_KEY", "sk-test")
        for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
            environment.setenv(name, endpoint.openai)
        yield endpoint


def _embeddings(request: dict[str, Any]) -> bytes:
    """Return a vector for each text: how often it has each vowel."""
    texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
    vectors = [[1.0 + text.count(vowel) for vowel in "aeiou"] for text in texts]
    data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return _encoded({"object": "list", "data": data, "model": request.get("model", ""), "usage": usage})


def _recounted(body: bytes, there: int, back: int) -> bytes:
    """Return *body* with another count of its tokens, in either dialect."""
    data = json.loads(body)
    names = ("input_tokens", "output_tokens") if "stop_reason" in data else ("prompt_tokens", "completion_tokens")
    data["usage"] = dict(zip(names, (there, back), strict=True)) | {"total_tokens": there + back}
    return _encoded(data)


def _openai(behaviour: str, request: dict[str, Any], prompt: str, text: str, cached: int) -> bytes:
    message = {"role": "assistant", "content": text, "refusal": None}
    usage = {
        "prompt_tokens": len(prompt) // 4,
        "completion_tokens": len(text) // 4,
        "total_tokens": (len(prompt) + len(text)) // 4,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request.get("model"),
        "choices": [_numbered(n, message, request) for n in range(request.get("n", 1))],
        "usage": usage,
    }
    return BODIES[behaviour](body)


def _numbered(index: int, message: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """Return a choice, with a token a word or sign where probabilities are asked for: a number could be one more."""
    choice = {"index": index, "message": message, "finish_reason": "stop"}
    if request.get("logprobs"):
        tokens = re.findall(r"\w+|\W", message["content"])
        choice["logprobs"] = {"content": [_likeliest(token) for token in tokens], "refusal": None}
    return choice


def _likeliest(token: str) -> dict[str, Any]:
    """Return *token* with the likeliest in its place: itself, and beside a number with three quarters the next one."""
    others = [(token, 0.75), (str(int(token) + 1), 0.25)] if token.isdigit() else [(token, 1.0)]
    said = [{"token": text, "logprob": math.log(chance), "bytes": None} for text, chance in others]
    return {**said[0], "top_logprobs": said}


def _anthropic(behaviour: str, request: dict[str, Any], prompt: str, text: str, cached: int) -> bytes:
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.get("model"),
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": len(prompt) // 4 - cached,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": len(text) // 4,
        },
    }
    return ANTHROPIC_BODIES[behaviour](body)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(first.split(" ")[1], headers, json.loads(body or b"{}"))


def _head(status: int, length: int, headers: Iterable[tuple[str, str]] = ()) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", "Content-Type: application/json", f"Content-Length: {length}"]
    return "\r\n".join([*lines, *(f"{k}: {v}" for k, v in headers), "", ""]).encode()


async def _send(
    writer: asyncio.StreamWriter, status: int, body: bytes, headers: Iterable[tuple[str, str]] = ()
) -> None:
    writer.write(_head(status, len(body), headers) + body)
    await writer.drain()


async def _send_status(writer: asyncio.StreamWriter, said: Status) -> None:
    error = {"message": said.message, "type": said.code, "param": None, "code": said.code}
    await _send(writer, said.status, _encoded({"type": "error", "error": error}), said.headers)


async def _misbehave(
    behaviour: str, endpoint: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    if behaviour == "hang":
        await reader.read()
        endpoint.closed.set()
    elif behaviour == "trickle":
        await _trickle(endpoint, writer)
    elif behaviour != "close":
        if behaviour != "reset":
            writer.write(_head(200, 1000) + b'{"choices": [')
            await writer.drain()
        if behaviour.startswith("reset"):
            _reset_on_close(writer)
    raise ConnectionError


async def _trickle(endpoint: Endpoint, writer: asyncio.StreamWriter) -> None:
    """Send the head, then a byte now and then, until the client has had enough."""
    try:
        writer.write(_head(200, 1000))
        for _ in range(1000):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)
    finally:
        endpoint.closed.set()


def _reset_on_close(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


# -- what no vendor would do -----------------------------------------------------------------------------


def _redirecting(status: int) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    async def redirect(writer: asyncio.StreamWriter) -> None:
        await _send(writer, status, b"", (("Location", "http://127.0.0.1:9/v1/chat/completions"),))

    return redirect


def _saying(body: bytes, *headers: tuple[str, str]) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    async def say(writer: asyncio.StreamWriter) -> None:
        await _send(writer, 200, body, headers)

    return say


def _pouring(start: bytes, unit: bytes, times: int) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    """Return what sends *start*, then *unit* so many times or until nobody listens, and closes the connection."""

    async def pour(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        for _ in range(times):
            writer.write(unit)
            await writer.drain()
        raise ConnectionError

    return pour


async def _retry_after_odd(writer: asyncio.StreamWriter) -> None:
    await _send(writer, 429, b"{}", (("Retry-After", "bient\u00f4t \u0663"),))


@cache
def _packed() -> bytes:
    return gzip.compress(bytes(2**28))


async def _bomb(writer: asyncio.StreamWriter) -> None:
    await _send(writer, 200, _packed(), (("Content-Encoding", "gzip"),))


def _error(**error: Any) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    return _saying(_encoded({"error": {"message": "the server made this up"} | error}))


_CLOSING = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
_MIB = 2**20

STRANGE: dict[str, Callable[[asyncio.StreamWriter], Awaitable[None]]] = {
    **{f"redirect-{status}": _redirecting(status) for status in (301, 302, 303, 307, 308)},
    "retry-after-odd": _retry_after_odd,
    "error-text-429": _error(code="429"),
    "error-text-503": _error(code="503 Service Unavailable"),
    "error-word-429": _error(code="rate_limit_exceeded"),
    "error-word-401": _error(type="authentication_error", code=None),
    "error-digits": _error(code="9" * 5000),
    "nested": _saying(b"[" * 150_000 + b"]" * 150_000),
    "nested-error": _saying(b'{"error": ' + b"[" * 900 + b"]" * 900 + b"}"),
    "values": _saying(b"[" + b"[]," * 300_000 + b"0]"),
    "large": _pouring(_CLOSING + b'{"choices": [{"message": {"content": "', b"x" * _MIB, 1024),
    "bomb": _bomb,
    "headers": _pouring(b"HTTP/1.1 200 OK\r\n", b"X: " + b"x" * 8000 + b"\r\n", 2**16),
    "early-hints": _pouring(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100, 2**16),
}
"""Behaviours of a server that is hostile or broken, the same in either dialect."""
