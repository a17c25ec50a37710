"""
One HTTP session an event loop, opened on first use and closed with the loop; and one request over it.

A request leaves once; redirects are not followed, so that neither key nor candidate goes where nobody sent them; no
more of an answer is read than its reader takes; and whatever goes wrong is a typed failure.

An event loop closes its asynchronous generators before it ends (`asyncio.run` sees to it, and so does
`rubric.loops`), so each session lives in one. What is left over at exit, by loops that nobody closed, is closed then.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import ssl
from contextlib import asynccontextmanager, suppress
from functools import lru_cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from attrs import frozen

from rubric.errors import ModelError
from rubric.exchanges import Failure
from rubric.models.bodies import read
from rubric.models.classifying import UNSENT_USAGE, failure_of, failure_of_status, unsent, words_of
from rubric.models.endpoints import proxy_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable

    from rubric.models.endpoints import Endpoint

__all__ = ["answer_to", "whole"]

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
