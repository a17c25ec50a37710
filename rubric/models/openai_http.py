"""
Where a judge that is asked over plain HTTP lives, and which key goes there.

| the judge                                    | address                                   | key                      |
|----------------------------------------------|-------------------------------------------|--------------------------|
| `params={"api_base": ...}`, given in code    | that one                                  | `params["api_key"]`      |
| none, with `OPENAI_BASE_URL` (or `_API_BASE`)| that one                                  | `OPENAI_API_KEY`         |
| none                                         | OpenAI's, for `openai/...` and bare names | `OPENAI_API_KEY`         |

A key in `params` goes wherever the judge goes. To an address from `params` the environment's key goes only where the
name begins with `openai/`: other names are those of other vendors, whom it is no business of. No file can name an
address, a key, a header, or this way of asking.

OpenAI and the servers of its chat completions protocol, straight over HTTP: `Judge("openai/...", via="http")`.

It costs a fraction of the CPU time that LiteLLM takes for a call, and ends in the same replies and kinds of failure. No
more of a reply is read than what was asked for can need.

One HTTP session an event loop, opened on first use and closed with the loop; and one request over it.

A request leaves once; redirects are not followed, so that neither key nor candidate goes where nobody sent them; no
more of an answer is read than its reader takes; and whatever goes wrong is a typed failure.

An event loop closes its asynchronous generators before it ends (`asyncio.run` sees to it, and so does
`background_loop`), so each session lives in one. Sessions of loops that nobody closed are closed at exit.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import ssl
from contextlib import asynccontextmanager, suppress
from functools import lru_cache, partial
from io import BytesIO
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from attrs import evolve, frozen

from rubric.errors import ModelError
from rubric.internals.secrets import values_of
from rubric.models.chat_completions import _CALL, Endpoint, content_of, form_of, reply_in
from rubric.models.failures import UNSENT_USAGE, failure_of, failure_of_status, unsent, words_of
from rubric.models.http_bodies import most_bytes, read
from rubric.models.price_list import priced
from rubric.models.structured_output import lowered
from rubric.values.requests import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping

    from rubric.values.judges import Judge
    from rubric.values.requests import Ask, Reply


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
    return f"{path if path.endswith(_CALL) else path + _CALL}{mark}{query}"


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


_SECONDS_TO_CLOSE = 2.0
_MOST_ANSWERS = 64  # to one request; all but the last are of the kind that one may send in advance
_OK, _REDIRECTS = 200, 300
_LONGEST_ODD = 2**20  # of a redirect, which has no body to speak of


@asynccontextmanager
async def answer_to(
    endpoint: Endpoint, method: str, url: str, seconds: float, **sent: Any
) -> AsyncIterator[aiohttp.ClientResponse]:
    """
    Send one request, and yield the answer, of which nothing but the head is read.

    Args:
        url: At *endpoint*, whose headers go along unless *sent* has others.
        seconds: From now to the end of the block.

    Raises:
        ModelError: Also within the block: it failed, or the answer has an error status.
    """
    has_left: list[bool] = []
    try:
        async with asyncio.timeout(seconds):
            session, proxy = await _session_here(), proxy_for(url)
            given = {"headers": endpoint.headers, "proxy": proxy, "trace_request_ctx": has_left} | sent
            if "https" in (url[:5].lower(), (proxy or "")[:5].lower()):
                given["ssl"] = _trust(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
            async with session.request(method, url, allow_redirects=False, **given) as response:
                if not _OK <= response.status < _REDIRECTS:
                    said = words_of(await _message(response), endpoint.secrets)
                    raise ModelError(failure_of_status(response.status, said, response.headers))
                yield response
    except TimeoutError:
        if has_left:
            failure = Failure("timeout", f"no whole answer within {seconds:g} seconds", in_doubt=True)
        else:
            failure = Failure("timeout", f"no connection within {seconds:g} seconds", usage=UNSENT_USAGE)
        raise ModelError(failure) from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        failure = _failure(error, endpoint.secrets)
        raise ModelError(failure if has_left else unsent(failure)) from None


def _failure(error: Exception, secrets: Iterable[str]) -> Failure:
    # A certificate that cannot be verified is a ValueError, too.
    if isinstance(error, aiohttp.InvalidURL) or not isinstance(error, aiohttp.ClientError | OSError):
        return Failure("bad_request", f"the request cannot be sent: {words_of(str(error), secrets)}")
    return failure_of(error, secrets)


@lru_cache(maxsize=4)
def _trust(*_: str | None) -> ssl.SSLContext:
    """Return whose certificates are believed; the variables that name them may be set after a first failure."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(("http/1.1",))
    return context


async def whole(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the body of *response*, of an error's its beginning; raise `ModelError` above *limit* bytes."""
    encoding = response.headers.get("Content-Encoding", "")
    return await read(response.content.iter_any(), response.status, encoding, limit)


async def _message(response: aiohttp.ClientResponse) -> str:
    """Return what an answer with an error status says; its status counts, also where nobody can read the rest."""
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
    """Connections that only whoever opened them closes: never the collector, which may be that of a forked child."""

    def __init__(self) -> None:
        super().__init__(limit=0)
        self._factory = partial(_Protocol, loop=self._loop)  # type: ignore[assignment]  # a subclass

    def __del__(self, *_: object) -> None:
        """Leave the connections alone; each socket closes itself."""


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


async def _leaving(_: object, context: Any, __: object) -> None:
    """Take note that the request is written now: not before there is a connection, also through a proxy."""
    context.trace_request_ctx.append(True)


async def _keep(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[aiohttp.ClientSession, None]:
    # Nothing of the session's own limits a request: its deadline is the judge's, its place the gate's.
    connector, trace = _Connector(), aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_leaving)
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trace_configs=[trace],
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


_LARGE = 2**20


class OpenAIHTTPModel:
    """
    Answers with the model that the judge names, in one attempt, on the loop of whoever asks.

    A refusal is a `Reply` with `finish="refusal"`, so that its usage is kept; `length` is one that was cut. Everything
    else raises `ModelError`. What a call costs is worked out from its tokens, for models that LiteLLM's price list has;
    of others it is unknown (None).
    """

    is_punctual = True  # it keeps the judge's deadline, and knows whether the request had left by then

    async def answer(self, ask: Ask, /) -> Reply:
        """
        Return the reply to *ask*.

        Raises:
            ModelError: With the typed failure; its message has no secrets in it.
        """
        endpoint = endpoint_of(ask.judge)
        form = form_of(ask, endpoint)
        content, unsent = content_of(ask, endpoint)
        data = content if len(content) < _LARGE else BytesIO(content)  # aiohttp warns of large bodies in one piece
        try:
            async with answer_to(endpoint, "POST", endpoint.url, ask.judge.timeout, data=data) as response:
                limit = most_bytes(len(content), ask.max_tokens * ask.n, logprobs=ask.judge.logprobs)
                body = await whole(response, limit)
        except ModelError as error:
            raise ModelError(lowered(ask.judge, form, error.failure)) from None
        try:
            reply = reply_in(body, unsent, endpoint.secrets)
        except ModelError as error:
            failure = error.failure
            raise ModelError(evolve(failure, usage=priced(ask.judge, failure.usage))) from None
        return evolve(reply, usage=priced(ask.judge, reply.usage), remarks=exposure_of(endpoint))
