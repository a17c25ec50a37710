"""
Sessions with MCP servers, through the official SDK.

The SDK's sessions hold task groups: the task that entered a session must leave it, and an error raised inside comes out
wrapped in a group. So results and failures leave a session as values, and no error is raised through it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

import httpx2
from attrs import frozen
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

from rubric.embed import clean, shorten
from rubric.suites.targets.base import DeferError
from rubric.suites.targets.mcp_servers import Server, StdioServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from mcp import Tool
    from mcp_types import CallToolResult, ContentBlock


_SECONDS_TO_LEAVE = 10.0
_SECONDS_MORE = 5.0
_PAGES = 100
_TAIL = 4096
_GONE = frozenset({CONNECTION_CLOSED, INVALID_REQUEST})  # the latter reports a lost HTTP session

logging.getLogger("mcp").addHandler(logging.NullHandler())  # else a server's protocol errors go to our stderr


class GoneError(ConnectionError):
    """The server went away in the middle of a session."""


@frozen
class Result:
    """The result of a tool: its *text*, and whether that is an error."""

    text: str
    failed: bool = False


@frozen
class Connection:
    """A session with the server called *name*, whose *tools* it has listed."""

    name: str
    tools: tuple[Tool, ...]
    _client: Client
    _seconds: float

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Result:
        """
        Call *tool* with *arguments* and return its result; an error inside the server is a result too.

        Raises:
            GoneError: The server went away.
        """
        try:
            async with asyncio.timeout(self._seconds):
                said = await self._client.call_tool(
                    tool, dict(arguments), read_timeout_seconds=self._seconds + _SECONDS_MORE
                )
        except TimeoutError:
            return Result(f"the tool gave no answer within {self._seconds:g} seconds", failed=True)
        except MCPError as error:
            if error.code in _GONE:
                raise GoneError(f"the MCP server {self.name!r} went away during {tool!r}: {error.message}") from None
            return Result(error.message, failed=True)
        except Exception as error:  # noqa: BLE001 - such as a result that breaks the protocol
            return Result(f"the tool could not be called: {shorten(clean(str(error)))}", failed=True)
        return Result(_text(said), failed=said.is_error)


@asynccontextmanager
async def connect(name: str, server: Server, *, start: float, tool: float) -> AsyncIterator[Connection]:
    """
    Enter a session with *server*, called *name*; its processes or connections end with the session.

    It must list its tools within *start* seconds, and answer a call within *tool* seconds. `DeferError` is raised if
    it cannot be reached or is not an MCP server, `GoneError` if its transport breaks down later.
    """
    with tempfile.TemporaryFile() as stderr:
        leaving = AsyncExitStack()
        try:
            async with asyncio.timeout(start):
                client = await _enter(leaving, server, stderr, start, tool)
                connection = Connection(name, await _tools(client), client, tool)
        except Exception as error:  # noqa: BLE001 - a server may fail in any way
            await _leave(leaving)
            said = f"no answer within {start:g} seconds" if isinstance(error, TimeoutError) else _first(error)
            stderr.seek(max(0, stderr.seek(0, 2) - _TAIL))
            lines = stderr.read().decode(errors="replace").split("\n")
            if last := next((line.strip() for line in reversed(lines) if line.strip()), ""):
                said += f"; its last words on stderr: {last}"
            raise DeferError(f"the MCP server {name!r} is not there: {_safe(said, server)}") from None
        except BaseException:
            await _leave(leaving)
            raise
        try:
            yield connection
        except asyncio.CancelledError:
            broken = await _leave(leaving)
            task = asyncio.current_task()
            if broken is None or (task is not None and task.cancelling() > 0):
                raise
            # The session cancelled its own task, because its transport broke down.
            raise GoneError(f"the MCP server {name!r} went away: {_safe(_first(broken), server)}") from None
        finally:
            await _leave(leaving)


async def _enter(leaving: AsyncExitStack, server: Server, stderr: IO[bytes], start: float, tool: float) -> Client:
    # A third each for the two handshakes and for the list of tools: a server that ignores the first gets the second.
    transport: Any
    if isinstance(server, StdioServer):
        words = [*leaving.enter_context(_group()), server.command, *server.args]
        parameters = StdioServerParameters(
            command=words[0], args=words[1:], env=dict(server.env), cwd=server.cwd, encoding_error_handler="replace"
        )
        # `errlog` is handed to the process, as a file.
        transport = stdio_client(parameters, errlog=stderr)  # type: ignore[arg-type]
    else:
        limits = httpx2.Timeout(30.0, read=tool + 2 * _SECONDS_MORE)
        http = await leaving.enter_async_context(httpx2.AsyncClient(headers=dict(server.headers), timeout=limits))
        transport = streamable_http_client(server.url, http_client=http)
    return await leaving.enter_async_context(Client(transport, read_timeout_seconds=start / 3, cache=None))


_LAUNCHER = """\
import os, signal, sys
with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and the next program would inherit that
    signal.signal(getattr(signal, name), signal.SIG_DFL)
os.execvp(sys.argv[2], sys.argv[2:])
"""


@contextmanager
def _group() -> Iterator[tuple[str, ...]]:
    """Yield the start of a command whose process group ends with this block; empty on Windows."""
    # The SDK starts a server in a group of its own, and ends the group only if the server does not end by itself: a
    # grandchild that the server left behind would stay. The SDK does not show the number of the group, so a launcher
    # writes it to a file before it becomes the server. On Windows the SDK has a job object, which ends with the server.
    if not hasattr(os, "killpg"):
        yield ()
        return
    with tempfile.NamedTemporaryFile("r") as file:
        try:
            yield (sys.executable, "-ISc", _LAUNCHER, file.name)
        finally:
            number = file.read()
            if number:  # else nothing was started
                with suppress(ProcessLookupError, PermissionError):  # there is none left; on macOS, zombies alone
                    os.killpg(int(number), signal.SIGKILL)


async def _leave(leaving: AsyncExitStack) -> Exception | None:
    """Leave a session and return its error, or None; the SDK ends the server's process in any case."""
    try:
        async with asyncio.timeout(_SECONDS_TO_LEAVE):
            await leaving.aclose()
    except Exception as error:  # noqa: BLE001 - a dying server may do anything
        return error
    return None


async def _tools(client: Client) -> tuple[Tool, ...]:
    if client.server_capabilities.tools is None:
        return ()
    found, cursor = list["Tool"](), None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            return tuple(found)
    raise ValueError(f"its list of tools has more than {_PAGES} pages")


def _first(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{error}" if isinstance(error, MCPError) else f"{type(error).__name__}: {error}"


def _safe(said: str, server: Server) -> str:
    return shorten(clean(said, server.secrets), 400)


def _text(said: CallToolResult) -> str:
    text = "\n".join(_block(block) for block in said.content)
    if text or said.structured_content is None:
        return text
    return json.dumps(said.structured_content, ensure_ascii=False)


def _block(block: ContentBlock) -> str:
    match block.type:
        case "text":
            return block.text
        case "resource":
            inner = block.resource
            return getattr(inner, "text", None) or f"[resource {inner.uri}]"
        case "resource_link":
            return f"[resource {block.uri}]"
        case _:
            return f"[{block.type}, {block.mime_type}]"
