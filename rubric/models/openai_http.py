"""
OpenAI, and servers of its chat completions protocol, straight over HTTP: `Judge("openai/...", via="http")`.

It takes a fraction of the CPU time of a call through LiteLLM, and gives the same replies and kinds of failure. A
vendor's quirk goes into `chat_completions` (the body of a request or a response) or `failures` (an error's text or
status); here are the address, the key, the proxy and the wire.

| the judge                                    | address                                   | key                      |
|----------------------------------------------|-------------------------------------------|--------------------------|
| `params={"api_base": ...}`, given in code    | that one                                  | `params["api_key"]`      |
| none, with `OPENAI_BASE_URL` (or `_API_BASE`)| that one                                  | `OPENAI_API_KEY`         |
| none                                         | OpenAI's, for `openai/...` and bare names | `OPENAI_API_KEY`         |

A key in `params` goes to the judge's address. The environment's key goes to an address in `params` only if the name
begins with `openai/`: other names are those of other vendors. No file can name an address, a key, a header, or this way
of asking.

A request leaves once. Redirects are not followed, so that neither key nor candidate goes to an address that nobody
gave; no more of a response is read than the request can need; and every error becomes a typed failure.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import ssl
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache, partial
from io import BytesIO
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from attrs import frozen

from rubric.errors import ModelError
from rubric.internals.frozen_map import Memo
from rubric.internals.secrets import values_of
from rubric.models.chat_completions import CALL, Endpoint, content_of, form_of, lowered, reply_in
from rubric.models.failures import UNSENT_USAGE, failure_of, failure_of_status, unsent, words_of
from rubric.models.http_bodies import most_bytes, read
from rubric.models.pricing import priced
from rubric.values.requests import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping

    from aiohttp.connector import Connection

    from rubric.values.judges import Judge
    from rubric.values.requests import Ask, Reply


T = TypeVar("T")
_OPENAI = "https://api.openai.com/v1"
_PREFIX = "openai/"
_PORTS = {"http": 80, "https": 443}
_PROXIES = [spelt for name in ("http", "https", "all", "no") for spelt in (f"{name}_proxy", f"{name.upper()}_PROXY")]
_PROXIES += ["REQUEST_METHOD"]  # set for CGI, where HTTP_PROXY may be what a stranger's header says


def endpoint_of(judge: Judge, environ: Mapping[str, str] = os.environ) -> Endpoint:
    """
    Return where *judge* is to be asked.

    Raises:
        ModelError: It has no address (bad_request), or needs a key that nobody gave (auth).
    """
    given = judge.params.get("api_base") or judge.params.get("base_url")
    named = environ.get("OPENAI_BASE_URL") or environ.get("OPENAI_API_BASE")
    base = str(given or named or _own(judge.name)).rstrip("/")
    is_openai = base == _OPENAI
    ambient = environ if not given or judge.name.startswith(_PREFIX) else {}
    headers, key = _headers(judge, ambient)
    if is_openai and not key:
        raise ModelError(Failure("auth", "OpenAI wants a key: set OPENAI_API_KEY, or give params={'api_key': ...}"))
    extra = {str(name): str(value) for name, value in (judge.params.get("extra_headers") or {}).items()}
    secrets = tuple(filter(None, (key, *extra.values(), *values_of(judge.params))))
    model = judge.name.removeprefix(_PREFIX)
    return Endpoint(_url(base), model, headers | extra, secrets, is_openai)


def _own(name: str) -> str:
    if name.startswith(_PREFIX) or "/" not in name:
        return _OPENAI
    message = (
        f"via='http' goes to OpenAI, or to an address of yours: {name!r} needs params={{'api_base': ...}} or "
        "OPENAI_BASE_URL"
    )
    raise ModelError(Failure("bad_request", message))


def _headers(judge: Judge, ambient: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return the headers of a request, and the key in them; who pays is taken from where the key is."""
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    key = str(judge.params.get("api_key") or "")
    organization, project = judge.params.get("organization"), None
    if not key and (key := ambient.get("OPENAI_API_KEY", "")):
        organization = organization or ambient.get("OPENAI_ORGANIZATION") or ambient.get("OPENAI_ORG_ID")
        project = ambient.get("OPENAI_PROJECT_ID")
    if key:
        headers["Authorization"] = f"Bearer {key}"
    payer = {"OpenAI-Organization": organization, "OpenAI-Project": project}
    return headers | {name: str(value) for name, value in payer.items() if value}, key


@lru_cache(maxsize=256)
def _url(base: str) -> str:
    path, mark, query = base.partition("?")
    if not _is_reachable(path):
        raise ModelError(Failure("bad_request", "the judge's address is none that http:// or https:// can reach"))
    path = path.rstrip("/")
    return f"{path if path.endswith(CALL) else path + CALL}{mark}{query}"


def _is_reachable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in _PORTS and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def proxy_for(url: str) -> str | None:
    """
    Return the proxy that the environment names for *url*; None for none.

    `HTTPS_PROXY` or `HTTP_PROXY` goes before `ALL_PROXY`, small letters before capital ones; `NO_PROXY` lists hosts,
    which stand for those below them too, with or without a port, networks such as 10.0.0.0/8, or is `*`.

    Raises:
        ModelError: It is a SOCKS proxy, or none that http:// or https:// can reach (bad_request).
    """
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
    if not _is_reachable(proxy):
        raise ModelError(Failure("bad_request", f"{name} names no http:// or https:// address: {cure}"))
    return proxy


def _is_excepted(host: str, port: int, named: Mapping[str, str]) -> bool:
    if proxy_bypass(f"{host}:{port}"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return any(address in network for name in named.get("no", "").split(",") for network in _networks(name.strip()))


def _networks(name: str) -> list[IPv4Network | IPv6Network]:
    try:
        return [ip_network(name.strip("[]"), strict=False)]
    except ValueError:
        return []


def exposure_of(endpoint: Endpoint) -> tuple[str, ...]:
    """Return that key and prompt go to *endpoint* in the clear, in words, where they do and leave this machine."""
    return _exposure(endpoint.url, proxy_for(endpoint.url)) if endpoint.secrets else ()


@lru_cache(maxsize=256)
def _exposure(url: str, proxy: str | None) -> tuple[str, ...]:
    parts, way = urlsplit(url), urlsplit(proxy or "")
    if parts.scheme != "http" or (_is_loopback(parts.hostname) and (not proxy or _is_loopback(way.hostname))):
        return ()
    through = f" through the proxy {way.hostname}, which can read both," if proxy else ""
    return (f"key and prompt went{through} to http://{parts.hostname} unencrypted: use https:// where it is to be had",)


def _is_loopback(host: str | None) -> bool:
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost" or str(host).endswith(".localhost")


# -- what the requests of a judge share -------------------------------------------------------------------

_VARIABLES = [*_PROXIES, "SSL_CERT_FILE", "SSL_CERT_DIR", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"]
_VARIABLES += ["OPENAI_ORGANIZATION", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"]


def _variables() -> tuple[object, ...]:
    """Return the values of the variables that decide where and how a request goes."""
    return tuple(map(_environ.get, _NAMES))


# The dict below `os.environ`, if this Python has it: its look-ups are ten times as fast, and there are 17 a request.
_environ: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_NAMES = tuple(map(os.environ.encodekey, _VARIABLES)) if _environ is not os.environ else _VARIABLES


@frozen(eq=False)
class _Destination:
    """
    Where the requests of one judge go, as long as the *environment* stays as it is.

    Args:
        options: For aiohttp: headers, proxy, certificates.
        remarks: Notes on it for a person.
    """

    environment: tuple[object, ...]
    endpoint: Endpoint
    options: dict[str, Any]
    remarks: tuple[str, ...]


_destinations: Memo[Judge, list[_Destination]] = Memo(lambda _: [])


def destination_of(judge: Judge) -> _Destination:
    """Return where the requests of *judge* go; raise `ModelError` as `endpoint_of` and `proxy_for` do."""
    environment, known = _variables(), _destinations(judge)
    if not known or known[0].environment != environment:
        endpoint = endpoint_of(judge)
        proxy = proxy_for(endpoint.url)
        options: dict[str, Any] = {"headers": endpoint.headers, "proxy": proxy, "allow_redirects": False}
        if "https" in (endpoint.url[:5].lower(), (proxy or "")[:5].lower()):
            options["ssl"] = _trust(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        known[:] = [_Destination(environment, endpoint, options, exposure_of(endpoint))]
    return known[0]


@lru_cache(maxsize=4)
def _trust(*_: str | None) -> ssl.SSLContext:
    """Return the certificates that are trusted; the variables that name them may be set after a first failure."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(("http/1.1",))
    return context


# -- one request ------------------------------------------------------------------------------------------

_SECONDS_TO_CLOSE = 2.0
_MOST_ANSWERS = 64  # to one request; all but the last are of the kind that one may send in advance
_OK, _REDIRECTS = 200, 300
_LONGEST_ODD = 2**20  # of a redirect, which has no body to speak of
_left: ContextVar[list[bool]] = ContextVar("left")


async def request(
    judge: Judge,
    method: str,
    url: str,
    seconds: float,
    read: Callable[[aiohttp.ClientResponse], Awaitable[T]],
    **sent: Any,
) -> T:
    """
    Send one request, and return what *read* makes of the response.

    Args:
        judge: Its key goes along, in the headers of its endpoint, unless *sent* has others.
        seconds: From now until *read* is done.

    Raises:
        ModelError: It failed, or the response has an error status.
    """
    has_left: list[bool] = []
    _left.set(has_left)
    to = destination_of(judge)
    try:
        async with asyncio.timeout(seconds):
            session = await _session_here()
            async with session.request(method, url, **to.options | sent) as response:
                if not _OK <= response.status < _REDIRECTS:
                    said = words_of(await _message(response), to.endpoint.secrets)
                    raise ModelError(failure_of_status(response.status, said, response.headers))
                return await read(response)
    except TimeoutError:
        # In doubt once the request may have left: the server may have answered, and charged, all the same.
        if has_left:
            failure = Failure("timeout", f"no whole answer within {seconds:g} seconds", in_doubt=True)
        else:
            failure = Failure("timeout", f"no connection within {seconds:g} seconds", usage=UNSENT_USAGE)
        raise ModelError(failure) from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        failure = _failure(error, to.endpoint.secrets)
        raise ModelError(failure if has_left else unsent(failure)) from None


def _failure(error: Exception, secrets: Iterable[str]) -> Failure:
    # A certificate that cannot be verified is a ValueError, too.
    if isinstance(error, aiohttp.InvalidURL) or not isinstance(error, aiohttp.ClientError | OSError):
        return Failure("bad_request", f"the request cannot be sent: {words_of(str(error), secrets)}")
    return failure_of(error, secrets)


async def whole(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the body of *response*, of an error's its beginning; raise `ModelError` above *limit* bytes."""
    encoding = response.headers.get("Content-Encoding", "")
    length = response.content_length
    if not encoding and length is not None and length <= limit and response.status < _REDIRECTS:
        return await response.read()  # the parser ends it after so many bytes
    return await read(response.content.iter_any(), response.status, encoding, limit)


async def _message(response: aiohttp.ClientResponse) -> str:
    """Return the text of an error; its status counts even if the body cannot be read."""
    try:
        return (await whole(response, _LONGEST_ODD)).decode("utf-8", "replace")
    except ModelError:
        return ""


class _Protocol(ResponseHandler):
    """A connection that ends when more answers come than anybody asked for: "103 Early Hints" without an end, say."""

    def data_received(self, data: bytes) -> None:
        """Take in what came, which may be a quarter of a megabyte of answers."""
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
        """Return a connection, and take note that the request leaves now: not before, also through a proxy."""
        connection = await super().connect(req, traces, timeout)
        _left.get().append(True)
        return connection

    def __del__(self, *_: object) -> None:
        """Leave the connections alone; each socket closes itself."""


# -- sessions ---------------------------------------------------------------------------------------------
#
# One session an event loop, since its connections cannot be used from another one; opened on first use and closed with
# the loop. A loop closes its asynchronous generators before it ends (`asyncio.run` does, and so does
# `background_loop`), so each session lives in one. Sessions of loops that nobody closed are closed at exit.


@frozen(eq=False)
class _Kept:
    session: aiohttp.ClientSession
    keeper: AsyncGenerator[aiohttp.ClientSession, None]


_kept: dict[asyncio.AbstractEventLoop, _Kept] = {}
_lock = Lock()
_orphans: list[_Kept] = []


async def _session_here() -> aiohttp.ClientSession:
    """Return the session of the running loop."""
    loop = asyncio.get_running_loop()
    kept = _kept.get(loop)
    if kept is None:
        _drop_closed()
        keeper = _keep(loop)
        kept = _Kept(await anext(keeper), keeper)
        with _lock:
            kept = _kept.setdefault(loop, kept)
    return kept.session


async def _keep(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[aiohttp.ClientSession, None]:
    # The session limits nothing by itself: the deadline is the judge's, concurrency the engine's.
    async with aiohttp.ClientSession(
        connector=_Connector(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    ) as session:
        try:
            yield session
        finally:
            with _lock:
                _kept.pop(loop, None)


def _drop_closed() -> None:
    """Forget the sessions of loops that were closed without a word to their generators."""
    with _lock:
        for loop in [loop for loop in _kept if loop.is_closed()]:
            _kept.pop(loop).session.detach()


def _close_rest() -> None:
    for loop, kept in [*_kept.items()]:
        with suppress(Exception):  # the others are to have their turn
            _close(loop, kept)
        kept.session.detach()


def _close(loop: asyncio.AbstractEventLoop, kept: _Kept) -> None:
    if loop.is_closed():
        return
    if loop.is_running():
        asyncio.run_coroutine_threadsafe(kept.keeper.aclose(), loop).result(_SECONDS_TO_CLOSE)
    else:
        loop.run_until_complete(kept.keeper.aclose())


def _forget_after_fork() -> None:
    """Drop the parent's sessions: closing them here would take their connections from its loop."""
    global _lock  # noqa: PLW0603
    _lock = Lock()
    _orphans.extend(_kept.values())
    for kept in _orphans:
        kept.session.detach()
    _kept.clear()


atexit.register(_close_rest)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


# -- the model --------------------------------------------------------------------------------------------

_LARGE = 2**20


class OpenAIHTTPModel:
    """
    Answers with the model that the judge names, in one attempt, on the caller's loop.

    A refusal is a `Reply` with `finish="refusal"`, so that its usage is kept; `length` is one that was cut. Everything
    else raises `ModelError`. The cost of a call is worked out from its tokens, for models in LiteLLM's price list; for
    others it is unknown (None).
    """

    is_punctual = True  # it keeps the judge's deadline, and knows whether the request had left by then

    async def answer(self, ask: Ask, /) -> Reply:
        """
        Return the reply to *ask*.

        Raises:
            ModelError: With the typed failure; its message has no secrets in it.
        """
        judge, to = ask.judge, destination_of(ask.judge)
        content, unsent = content_of(ask, to.endpoint)
        data = content if len(content) < _LARGE else BytesIO(content)  # aiohttp warns of large bodies in one piece
        limit = most_bytes(len(content), ask.max_tokens * ask.n, logprobs=judge.logprobs)
        form = form_of(ask, to.endpoint)
        try:
            body = await request(judge, "POST", to.endpoint.url, judge.timeout, partial(whole, limit=limit), data=data)
        except ModelError as error:
            raise ModelError(lowered(judge, form, error.failure)) from None
        return reply_in(body, unsent, to.endpoint.secrets, partial(priced, judge), to.remarks)
