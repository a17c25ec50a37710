"""
One HTTP session an event loop, opened on first use and closed with the loop.

An event loop closes its asynchronous generators before it ends (`asyncio.run` sees to it, and so does
`rubric.loops`), so each session lives in one. What is left over at exit, by loops that nobody closed, is closed then.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

import aiohttp
from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["session_here"]

_SECONDS_TO_CLOSE = 2.0


class _Connector(aiohttp.TCPConnector):
    """Connections that only whoever opened them closes: never the collector, which may be that of a forked child."""

    def __del__(self, *_: object) -> None:
        """Leave the connections alone; each socket closes itself."""


@frozen(eq=False)
class _Kept:
    session: aiohttp.ClientSession
    keeper: AsyncGenerator[aiohttp.ClientSession, None]


_kept: dict[asyncio.AbstractEventLoop, _Kept] = {}
_lock = Lock()
_orphans: list[_Kept] = []


async def session_here() -> aiohttp.ClientSession:
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
    # Nothing of the session's own limits a request: its deadline is the judge's, its place the gate's.
    connector = _Connector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector,
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
