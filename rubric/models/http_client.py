"""
The HTTP client of the direct path: connections by way of aiohttp, and one request over them.

aiohttp's connector has the connections (their pool, proxies, TLS), its parser reads the responses. Calls go straight
over a connection (`post`): what a session of aiohttp does beyond that (cookies, redirects, middlewares, objects) takes
as long as the call itself. The few requests of batches, with forms and files, go through a session (`request`), and so
do calls where a release of aiohttp lacks the names that this stands on (`_LOWER`).

A request leaves once. Redirects are not followed, so that neither key nor candidate goes to an address that the user
did not give; no more of a response is read than the request can need; and every error becomes a typed failure.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import ssl
from collections.abc import AsyncGenerator
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache, partial
from io import BytesIO
from ipaddress import ip_address, ip_network
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from attrs import define, field, frozen
from yarl import URL

from rubric.errors import ModelError
from rubric.internals.secrets import values_of
from rubric.models.failure_kinds import UNSENT_USAGE, failure_of, failure_of_status, unsent, words_of
from rubric.models.http_bodies import read
from rubric.models.retry import persist
from rubric.values.requests import Failure, Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection
    from aiohttp.http_exceptions import HttpProcessingError
else:
    try:
        from aiohttp.client_proto import ResponseHandler
        from aiohttp.http_exceptions import HttpProcessingError
    except ImportError:
        ResponseHandler, HttpProcessingError = object, aiohttp.ClientError


T = TypeVar("T")

_LOWER = (
    (ResponseHandler, "set_response_params read data_received"),
    (aiohttp, "ClientRequest"),
    (aiohttp.TCPConnector, "connect _create_connection"),
)
"""What calls stand on below aiohttp's documented session."""

_IS_WHOLE = all(hasattr(owner, name) for owner, names in _LOWER for name in names.split())

# -- proxies and certificates -----------------------------------------------------------------------------

_PORTS = {"http": 80, "https": 443}
_PROXIES = [spelt for name in ("http", "https", "all", "no") for spelt in (f"{name}_proxy", f"{name.upper()}_PROXY")]
_PROXIES += ["REQUEST_METHOD"]  # set for CGI, where HTTP_PROXY may be a header that a client has sent
VARIABLES = (*_PROXIES, "SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables of the environment that decide how a request goes."""


def is_reachable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in _PORTS and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def proxy_for(url: str) -> str | None:
    """Return the environment's proxy for *url*; None for none. A SOCKS proxy is refused."""
    # `HTTPS_PROXY` or `HTTP_PROXY` goes before `ALL_PROXY`, lower case before upper case. `NO_PROXY` lists hosts, with
    # all hosts below them, with or without a port, and networks such as 10.0.0.0/8; or is `*`.
    return _proxy(url, tuple(map(os.environ.get, _PROXIES)))


@lru_cache(maxsize=256)
def _proxy(url: str, _: tuple[str | None, ...]) -> str | None:
    parts, named = urlsplit(url), getproxies()
    proxy = named.get(parts.scheme) or named.get("all")
    if not proxy or not parts.hostname or _is_excepted(parts.hostname, parts.port or _PORTS[parts.scheme], named):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    scheme = proxy.partition("://")[0].lower()
    name = f"{parts.scheme.upper()}_PROXY" if named.get(parts.scheme) else "ALL_PROXY"
    cure = f"name an http:// proxy in {parts.scheme.upper()}_PROXY, or {parts.hostname} in NO_PROXY to go without one"
    if scheme.startswith("socks"):
        raise ModelError(Failure("bad_request", f"{name} names a SOCKS proxy, which is not spoken here: {cure}"))
    if not is_reachable(proxy):
        raise ModelError(Failure("bad_request", f"{name} names no http:// or https:// address: {cure}"))
    return proxy


def _is_excepted(host: str, port: int, named: Mapping[str, str]) -> bool:
    if proxy_bypass(f"{host}:{port}"):
        return True
    with suppress(ValueError):  # a name is in no network
        address = ip_address(host)
        for name in named.get("no", "").split(","):
            with suppress(ValueError):  # it is the name of a host
                if address in ip_network(name.strip().strip("[]"), strict=False):
                    return True
    return False


@lru_cache(maxsize=4)
def _trust(*_: str | None) -> ssl.SSLContext:
    """Return the certificates that are trusted; the variables that name them may be set after a first failure."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(("http/1.1",))
    return context


# -- one request ------------------------------------------------------------------------------------------

_SECONDS_TO_CLOSE = 2.0
_MOST_ANSWERS = 64  # to one request; all but the last are of the kind that one may send in advance
_FIRST_FINAL, _SWITCHING, _OK, _REDIRECTS = 200, 101, 200, 300
_LONGEST_ODD = 2**20  # of a redirect, which has no body to speak of
_NO_TIMEOUTS = aiohttp.ClientTimeout(total=None, sock_connect=None)  # the deadline is the judge's
_left: ContextVar[list[bool]] = ContextVar("left")


@frozen(eq=False)
class Server:
    """
    A server, and the way to it; *secrets* are texts that must not be shown.

    Args:
        trust: The certificates that are trusted; None for those of aiohttp, where nothing is encrypted.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    proxy: str | None = field(repr=False)
    trust: ssl.SSLContext | None
    secrets: tuple[str, ...] = field(repr=False)
    _calls: dict[asyncio.AbstractEventLoop, _Call] = field(factory=dict, init=False, repr=False)

    @classmethod
    def at(cls, url: str, headers: Mapping[str, str], secrets: tuple[str, ...]) -> Server:
        """Return the server at *url*, with proxy and certificates as the environment says; see `proxy_for`."""
        proxy, trust = proxy_for(url), None
        if "https" in (url[:5].lower(), (proxy or "")[:5].lower()):
            trust = _trust(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        return cls(url, headers, proxy, trust, secrets)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments for a session of aiohttp, or for a request."""
        proxy = URL(self.proxy) if self.proxy else None
        return {"headers": self.headers, "proxy": proxy} | ({"ssl": self.trust} if self.trust else {})

    def call(self, session: aiohttp.ClientSession) -> _Call:
        loop = asyncio.get_running_loop()
        known = self._calls.get(loop)
        if known is None:
            self._calls.clear()  # most processes have one loop; a closed one must not be kept alive
            request = aiohttp.ClientRequest("POST", URL(self.url), loop=loop, session=session, **self.options)
            known = self._calls[loop] = _Call(request)
        return known


@define(eq=False)
class _Call:
    """What all calls on one loop share: the request to find a connection with, and the head but for its last line."""

    request: aiohttp.ClientRequest
    _head: str = ""

    def head(self, length: int) -> bytes:
        """Return the head of a call that sends *length* bytes; there has to be a connection."""
        if not self._head:
            # For the first connection, the connector has added to the headers what a proxy needs.
            sent = self.request
            lines = [f"POST {sent.url if sent.proxy and not sent.is_ssl() else sent.url.raw_path_qs} HTTP/1.1"]
            lines += [f"{name}: {value}" for name, value in sent.headers.items() if name.lower() not in _FRAMING]
            if any(sign in line for line in lines for sign in "\r\n\0"):  # a key with a line break would end the head
                raise ValueError("a header has a line break in it")
            self._head = "".join(f"{line}\r\n" for line in lines)
        return f"{self._head}Content-Length: {length}\r\n\r\n".encode()


async def post(server: Server, content: bytes, seconds: float, limit: int) -> bytes:
    """Send *content*; return the body of the response, at most *limit* bytes within *seconds*."""
    return await _attempt(server, seconds, partial(_post if _IS_WHOLE else _post_by_session, server, content, limit))


async def request(
    server: Server,
    method: str,
    url: str,
    seconds: float,
    read: Callable[[aiohttp.ClientResponse], Awaitable[T]],
    **sent: Any,
) -> T:
    """Send a request to *url*, of *server*'s, and return the result of *read* on the response; raise as `post`."""

    async def exchange(session: aiohttp.ClientSession) -> T:
        options: dict[str, Any] = server.options | {"allow_redirects": False} | sent
        async with session.request(method, url, **options) as response:
            await _check(response.content, response.status, response.headers, server.secrets)
            return await read(response)

    return await _attempt(server, seconds, exchange)


@frozen
class Received:
    """A response: its *text*, its *status* with the *reason*, and its *headers*, by their names in small letters."""

    text: str
    status: int = 200
    reason: str = ""
    headers: Mapping[str, str] = field(factory=dict, repr=False)


async def fetch(
    method: str, url: str, headers: Mapping[str, str], content: str, *, seconds: float, retries: int, limit: int
) -> tuple[Received | Failure, Usage]:
    """Send *content* to *url*; return the response or the failure, with what failed attempts used; raise nothing."""
    secrets = tuple(values_of(headers))
    sent = {"data": content.encode()} if content else {}

    async def read_response(response: aiohttp.ClientResponse) -> Received:
        body = await whole(response.content, response.status, response.headers, limit)
        named = {name.lower(): value for name, value in response.headers.items()}
        return Received(body.decode("utf-8", "replace"), response.status, response.reason or "", named)

    async def once() -> Received | Failure:
        try:
            server = Server.at(url, headers, secrets)
            return await request(server, method, url, seconds, read_response, **sent)
        except ModelError as error:
            return error.failure
        except Exception as error:  # noqa: BLE001 - such as a header that is none
            return Failure.of(error)

    return await persist(once, retries)


async def _post_by_session(server: Server, content: bytes, limit: int, session: aiohttp.ClientSession) -> bytes:
    data = BytesIO(content)  # of large bodies in one piece, aiohttp warns
    async with session.post(server.url, data=data, allow_redirects=False, **server.options) as response:
        await _check(response.content, response.status, response.headers, server.secrets)
        return await whole(response.content, response.status, response.headers, limit)


async def _post(server: Server, content: bytes, limit: int, session: aiohttp.ClientSession) -> bytes:
    call, connector = server.call(session), session.connector
    if connector is None:
        raise aiohttp.ClientConnectionError("the session is closed")
    connection = await connector.connect(call.request, [], _NO_TIMEOUTS)
    try:
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None:
            raise aiohttp.ServerDisconnectedError  # noqa: TRY301 - it closes the connection, too
        protocol.set_response_params(read_until_eof=True, auto_decompress=False)
        transport.write(call.head(len(content)) + content)
        message, body = await protocol.read()
        while message.code < _FIRST_FINAL and message.code != _SWITCHING:
            message, body = await protocol.read()
        status = message.code
        await _check(body, status, message.headers, server.secrets)
        data = await whole(body, status, message.headers, limit)
        is_idle = not transport.get_write_buffer_size()  # a server may answer before it has all of the request
    except HttpProcessingError as error:
        connection.close()
        info = call.request.request_info
        raise aiohttp.ClientResponseError(info, (), status=error.code, message=error.message) from None
    except BaseException:
        connection.close()
        raise
    connection.release() if is_idle else connection.close()
    return data


_FRAMING = frozenset({"content-length", "transfer-encoding"})


async def _check(
    content: aiohttp.StreamReader, status: int, headers: Mapping[str, str], secrets: Iterable[str]
) -> None:
    """Raise the failure of a response with an error *status*; it counts even if the body cannot be read."""
    if _OK <= status < _REDIRECTS:
        return
    try:
        said = (await whole(content, status, headers, _LONGEST_ODD)).decode("utf-8", "replace")
    except ModelError:
        said = ""
    raise ModelError(failure_of_status(status, said, headers, secrets=secrets))


async def whole(content: aiohttp.StreamReader, status: int, headers: Mapping[str, str], limit: int) -> bytes:
    """Return *content*, of an error its beginning; raise `ModelError` above *limit* bytes."""
    encoding, length = headers.get("Content-Encoding", ""), headers.get("Content-Length", "")
    if not encoding and length.isdecimal() and int(length) <= limit and "Transfer-Encoding" not in headers:
        return await content.read()  # the parser ends it after so many bytes
    return await read(content.iter_any(), status, encoding, limit)


async def _attempt(server: Server, seconds: float, exchange: Callable[[aiohttp.ClientSession], Awaitable[T]]) -> T:
    """Return the result of *exchange* within so many *seconds*; raise its errors as `ModelError`."""
    has_left: list[bool] = []
    _left.set(has_left)
    try:
        async with asyncio.timeout(seconds):
            return await exchange(await _session_here())
    except TimeoutError:
        # In doubt once the request may have left: the server may have answered, and charged, all the same.
        if has_left:
            failure = Failure("timeout", f"no whole answer within {seconds:g} seconds", in_doubt=True)
        else:
            failure = Failure("timeout", f"no connection within {seconds:g} seconds", usage=UNSENT_USAGE)
        raise ModelError(failure) from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        # A certificate that cannot be verified is a ValueError, too.
        if isinstance(error, aiohttp.InvalidURL) or not isinstance(error, aiohttp.ClientError | OSError):
            said = words_of(str(error), server.secrets)
            failure = Failure("bad_request", f"the request cannot be sent: {said}")
        else:
            failure = failure_of(error, server.secrets)
        raise ModelError(failure if has_left else unsent(failure)) from None


class _Protocol(ResponseHandler):
    """A connection that ends if more responses come than requests: "103 Early Hints" without an end, say."""

    def data_received(self, data: bytes) -> None:
        """Parse *data*, which may be a quarter of a megabyte of responses."""
        super().data_received(data)
        if len(self) > _MOST_ANSWERS and self.transport is not None:
            self.set_exception(HttpProcessingError(message="more answers than were asked for"))
            self.transport.abort()


class _Connector(aiohttp.TCPConnector):
    """Connections that are closed explicitly: never by the collector, which may be that of a forked child."""

    def __init__(self) -> None:
        super().__init__(limit=0)
        self._factory = partial(_Protocol, loop=self._loop)  # type: ignore[assignment]  # a subclass

    async def connect(self, req: aiohttp.ClientRequest, traces: Any, timeout: aiohttp.ClientTimeout) -> Connection:  # noqa: ASYNC109
        """Return a connection, and record that the request leaves now: not before, also through a proxy."""
        connection = await super().connect(req, traces, timeout)
        _left.get().append(True)
        return connection

    def __del__(self, *_: object) -> None:
        """Leave the connections alone; each socket closes itself."""


# -- sessions ---------------------------------------------------------------------------------------------
#
# One session an event loop, since a connection cannot be used from another loop; opened on first use and closed with
# the loop. A loop closes its asynchronous generators before it ends (`asyncio.run` does, and so does
# `background_loop`), so each session lives in one. Sessions that are still open are closed at exit.
# The lock is for loops in several threads that open or drop sessions at a time; a forked child gets a new one, since a
# thread that does not exist there may have held it.


async def _note_sent(*_: object) -> None:
    _left.get().append(True)


_TRACE = aiohttp.TraceConfig()
_TRACE.on_request_headers_sent.append(_note_sent)
_Keeper = AsyncGenerator[aiohttp.ClientSession, None]
_kept: dict[asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, _Keeper]] = {}
_lock = Lock()
_orphans: list[tuple[aiohttp.ClientSession, _Keeper]] = []  # of parents, kept so that none is closed here


async def _session_here() -> aiohttp.ClientSession:
    loop = asyncio.get_running_loop()
    kept = _kept.get(loop)
    if kept is None:
        with _lock:
            for other in [other for other in _kept if other.is_closed()]:  # without closing their generators
                _kept.pop(other)[0].detach()
        keeper = _keep(loop)
        kept = (await anext(keeper), keeper)
        with _lock:
            kept = _kept.setdefault(loop, kept)
    return kept[0]


async def _keep(loop: asyncio.AbstractEventLoop) -> _Keeper:
    # The session limits nothing by itself: the deadline is the judge's, concurrency the engine's.
    async with aiohttp.ClientSession(
        connector=_Connector() if _IS_WHOLE else aiohttp.TCPConnector(limit=0),
        trace_configs=[] if _IS_WHOLE else [_TRACE],
        timeout=_NO_TIMEOUTS,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    ) as session:
        try:
            yield session
        finally:
            with _lock:
                _kept.pop(loop, None)


def _close_rest() -> None:
    for loop, (session, keeper) in [*_kept.items()]:
        with suppress(Exception):  # the others must be closed, too
            if loop.is_running():
                asyncio.run_coroutine_threadsafe(keeper.aclose(), loop).result(_SECONDS_TO_CLOSE)
            elif not loop.is_closed():
                loop.run_until_complete(keeper.aclose())
        session.detach()


def _forget_after_fork() -> None:
    """Drop the parent's sessions: closing them here would end connections that the parent still uses."""
    global _lock  # noqa: PLW0603
    _lock = Lock()
    _orphans.extend(_kept.values())
    for session, _ in _orphans:
        session.detach()
    _kept.clear()


atexit.register(_close_rest)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
