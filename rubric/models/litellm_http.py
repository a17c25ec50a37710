"""
The wire below LiteLLM: each of our requests leaves once, to the address that it names, with a bounded response.

By itself, LiteLLM follows redirects with the candidate, reads and unpacks responses of any size, masks secrets in all
of an error's text while the loop is blocked, resends over a broken connection, and does not say whether a request has
left. All its ways to vendors end in a transport of httpx: its own over aiohttp, or httpx's. So these are wrapped, once
a process. A context variable has the call that a request belongs to: other requests in the process, of code that uses
LiteLLM too, are not touched, nor are those that fetch (a model). Those that fetch an image of ours are refused: LiteLLM
downloads it for vendors that take no addresses, and a file that others wrote could name any address of this network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, closing, contextmanager
from contextvars import ContextVar
from functools import wraps
from io import BytesIO
from typing import Any

import aiohttp
import httpx
from attrs import define, field
from yarl import URL

from rubric.errors import ModelError
from rubric.models.failure_kinds import UNSENT_USAGE, error_in, failure_of, failure_of_status, unsent, words_of
from rubric.models.http_bodies import most_bytes, parse, read, read_now
from rubric.values.requests import Failure

_FIRST_REDIRECT, _FIRST_ERROR = 300, 400
_FETCHING = frozenset({"GET", "HEAD", "OPTIONS"})
_REPLACED = frozenset({b"accept-encoding", b"content-length", b"transfer-encoding"})
_FRAMING = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})
_LARGE = 2**20
_ANSWERS = ("choices", "content", "candidates", "message", "messages", "output", "outputs", "response", "results")
_STREAMS = ("stream", "ndjson")
Headers = list[tuple[bytes, bytes]]


class Answered(BaseException):
    """
    Ends a call of LiteLLM's whose completion was read: there is nothing left that it could add.

    It derives from BaseException, so that LiteLLM does not take it for a failed call, whose traceback it formats.
    """


@define(eq=False)
class Call:
    """
    A call of ours to LiteLLM: its requests and its response.

    Args:
        is_watched: Whether all requests of LiteLLM's for it pass through here.
        tokens: The most in the response, over all choices.
        images: The paths, with their queries, of the images' addresses.
        may_end_early: Whether LiteLLM is needed for the request alone, so that a whole completion ends the call.
        was_cut: Whether Ollama says that the reply was cut, which LiteLLM passes on for one of its two calls alone.
        completion: The response in OpenAI's dialect, as plain data: LiteLLM fails over some of them.
    """

    logprobs: bool
    secrets: tuple[str, ...] = field(repr=False)
    is_watched: bool
    tokens: int = 0
    images: frozenset[bytes] = frozenset()
    may_end_early: bool = False
    has_left: bool = False
    was_cut: bool = False
    completion: dict[str, Any] | None = field(default=None, repr=False)
    _is_over: bool = False
    _sent: set[str] = field(factory=set)
    _failure: Failure | None = None
    _refused: tuple[int, Mapping[str, str], str] | None = None

    def failure_of(self, error: Exception) -> Failure:
        """Map *error*, raised by LiteLLM, to a failure, by the response if there is one."""
        failure = self._failure or failure_of(error, self.secrets, self._refused)
        return unsent(failure) if self._has_stayed else failure

    def out_of_time(self, seconds: float) -> Failure:
        """Return the failure of a call that has not ended within *seconds*."""
        if self._has_stayed:
            return Failure("timeout", f"it could not be sent within {seconds:g} seconds", usage=UNSENT_USAGE)
        return Failure("timeout", f"no whole answer within {seconds:g} seconds", in_doubt=True)

    @property
    def _has_stayed(self) -> bool:
        """Whether it is certain that nothing has left: a few vendors have client libraries of their own."""
        return not self.has_left and (self.is_watched or bool(self._sent))

    def takes(self, request: httpx.Request) -> bool:
        """True if *request*, which leaves now, is ours; raise if it was sent before, or fetches an image."""
        if not self._is_over and request.method in _FETCHING and request.url.raw_path in self.images:
            self._failure = Failure("bad_request", _NO_ADDRESSES)
            raise httpx.TransportError(_NO_ADDRESSES)
        if self._is_over or request.method in _FETCHING:
            return False
        if str(request.url) in self._sent:
            raise httpx.TransportError("sent already")  # of this class, after which LiteLLM does not resend
        self._sent.add(str(request.url))
        return True

    def limit(self, request: httpx.Request) -> int:
        """Return how many bytes the reply to *request*, whose content was read, may have."""
        return most_bytes(len(request.content), self.tokens, logprobs=self.logprobs)

    def receive(self, request: httpx.Request, status: int, headers: Headers, body: bytes) -> httpx.Response:
        """Return the response for LiteLLM; raise `ModelError` if it has no reply, `Answered` if it ends the call."""
        text = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        if _FIRST_REDIRECT <= status < _FIRST_ERROR:
            raise ModelError(failure_of_status(status, "", text))
        if status >= _FIRST_ERROR:
            self._refused = (status, text, body.decode("utf-8", "replace"))
        elif not any(word in text.get("content-type", "") for word in _STREAMS):
            if isinstance(data := parse(body, self.secrets), dict):
                self.was_cut = data.get("done_reason") == "length"
                # A text at the top, beside a code, is how vLLM tells an error; messages of other dialects are objects.
                self.completion = data if "choices" in data or isinstance(data.get("message"), str) else None
                error = data.get("error") or data.get("errors")
                if error and not any(data.get(name) for name in _ANSWERS):
                    raise ModelError(error_in(error, self.secrets))
            said = self.completion or {}
            # Another tier than was asked for has other prices, which LiteLLM knows.
            if self.may_end_early and said.get("choices") and said.get("service_tier") in (None, "default"):
                raise Answered
        # LiteLLM copies headers about as ASCII, and fails over others.
        kept = [(n, v.decode("latin-1").encode("ascii", "replace")) for n, v in headers if n.lower() not in _FRAMING]
        return httpx.Response(status, headers=kept, stream=httpx.ByteStream(body), request=request)

    def end(self, error: Exception) -> httpx.TransportError:
        """Record what went wrong on the wire, and return the error for LiteLLM."""
        failure = error.failure if isinstance(error, ModelError) else failure_of(error, self.secrets)
        if failure.kind == "bad_response" and isinstance(error, ValueError) and not self.has_left:
            # The address is invalid, and will be invalid the next time.
            failure = Failure("bad_request", f"the request cannot be sent: {words_of(str(error), self.secrets)}")
        self._failure = failure
        return httpx.TransportError(words_of(str(error), self.secrets))


_NO_ADDRESSES = (
    "this vendor takes no addresses of images, and none is fetched from here; give the image itself, as a data: URL or "
    "in a suite as a file://"
)


def addresses_in(messages: Iterable[Mapping[str, Any]]) -> frozenset[bytes]:
    """Return the paths, with their queries, of the addresses of images in *messages*."""
    contents = [content for message in messages if isinstance(content := message.get("content"), list)]
    blocks = (block.get("image_url") for content in contents for block in content if isinstance(block, Mapping))
    urls = (block.get("url") for block in blocks if isinstance(block, Mapping))
    return frozenset(httpx.URL(url).raw_path for url in urls if isinstance(url, str) and url.startswith("https://"))


_current: ContextVar[Call | None] = ContextVar("call", default=None)


@contextmanager
def calling(*, logprobs: bool, secrets: tuple[str, ...], is_watched: bool) -> Iterator[Call]:
    """Assign the requests in the block to one call; those of LiteLLM's callbacks after it are not ours."""
    call = Call(logprobs, secrets, is_watched)
    token = _current.set(call)
    try:
        yield call
    finally:
        call._is_over = True  # noqa: SLF001 - its own module
        _current.reset(token)


def watch(of_litellm: type) -> None:
    """Wrap the transports that LiteLLM sends with, its own and httpx's; once a process."""
    _wrap(of_litellm, _over_aiohttp)
    _wrap(httpx.AsyncHTTPTransport, _over_httpx)
    _wrap_now(httpx.HTTPTransport)


def _wrap(kind: type, exchange: Callable[..., Any]) -> None:
    theirs: Any = kind.handle_async_request  # type: ignore[attr-defined]

    @wraps(theirs)
    async def handle_async_request(self: Any, request: httpx.Request) -> httpx.Response:
        call = _current.get()
        if call is None or not call.takes(request):
            response: httpx.Response = await theirs(self, request)
            return response
        await request.aread()
        try:
            return call.receive(request, *await exchange(theirs, self, request, call))
        except Exception as error:  # noqa: BLE001 - whatever it was, it becomes a typed failure
            raise call.end(error) from None

    kind.handle_async_request = handle_async_request  # type: ignore[attr-defined]


def _wrap_now(kind: type[httpx.HTTPTransport]) -> None:
    """Wrap the transport of the few vendors that LiteLLM calls from a thread."""
    theirs = kind.handle_request

    @wraps(theirs)
    def handle_request(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        call = _current.get()
        if call is None or not call.takes(request):
            return theirs(self, request)
        request.read()
        call.has_left = True
        try:
            with closing(theirs(self, request)) as response:
                encoding = response.headers.get("content-encoding", "")
                body = read_now(response.iter_raw(), response.status_code, encoding, call.limit(request))
            return call.receive(request, response.status_code, response.headers.raw, body)
        except Exception as error:  # noqa: BLE001 - as above
            raise call.end(error) from None

    kind.handle_request = handle_request  # type: ignore[method-assign]


async def _over_aiohttp(_: object, transport: Any, request: httpx.Request, call: Call) -> tuple[int, Headers, bytes]:
    session = transport._get_valid_client_session()  # noqa: SLF001 - the same in all releases that are supported
    if _TRACE not in session.trace_configs:
        session.trace_configs.append(_TRACE)
    verify = {} if transport._ssl_verify is None else {"ssl": transport._ssl_verify}  # noqa: SLF001
    content = request.content
    kept = [(_text(n), _text(v)) for n, v in request.headers.raw if n.lower() not in _REPLACED]
    async with session.request(
        request.method,
        URL(str(request.url), encoded=True),
        headers=[*kept, ("accept-encoding", "identity")],  # the reply must come unpacked
        data=content if len(content) < _LARGE else BytesIO(content),  # aiohttp warns of large bodies in one piece
        allow_redirects=False,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # the deadline is the judge's
        proxy=await transport._get_proxy_settings(request),  # noqa: SLF001
        server_hostname=request.extensions.get("sni_hostname"),
        **verify,
    ) as response:
        encoding = response.headers.get("Content-Encoding", "")
        body = await read(response.content.iter_any(), response.status, encoding, call.limit(request))
        return response.status, [*response.raw_headers], body


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


async def _over_httpx(theirs: Any, transport: Any, request: httpx.Request, call: Call) -> tuple[int, Headers, bytes]:
    async def trace(name: str, _: object) -> None:
        call.has_left = call.has_left or name.endswith("send_request_headers.started")

    request.headers["accept-encoding"] = "identity"
    request.extensions = {**request.extensions, "trace": trace}
    response: httpx.Response
    async with aclosing(await theirs(transport, request)) as response:
        encoding = response.headers.get("content-encoding", "")
        body = await read(response.aiter_raw(), response.status_code, encoding, call.limit(request))
    return response.status_code, response.headers.raw, body


async def _leaving(*_: object) -> None:
    """Record that a request is written; aiohttp calls this in the task of the request."""
    if call := _current.get():
        call.has_left = True


_TRACE = aiohttp.TraceConfig()
_TRACE.on_request_headers_sent.append(_leaving)
_TRACE.freeze()
