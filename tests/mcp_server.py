"""
A real MCP server, built with the official SDK, with tools that behave and tools that do not.

    python -m tests.mcp_server stdio|http [--port N] [--pid FILE] [--child FILE]

It writes its process id to FILE, so that a test can see whether it is gone; and with `--child` that of a process which it
starts and leaves behind.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from mcp.server import MCPServer, ServerRequestContext
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ListToolsResult, PaginatedRequestParams

PAGE = 3
"""Tools on a page of the list."""


class Paged(MCPServer[Any]):
    """A server that lists its tools in pages, as servers with many of them do."""

    async def _handle_list_tools(
        self, ctx: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        whole = await super()._handle_list_tools(ctx, params)
        start = int(params.cursor) if params and params.cursor else 0
        following = str(start + PAGE) if start + PAGE < len(whole.tools) else None
        return ListToolsResult(tools=whole.tools[start : start + PAGE], next_cursor=following)


server = Paged("weather", log_level="CRITICAL")


@server.tool()
def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"It is 21 degrees in {city}."


@server.tool(name="look.up")
def look_up(word: str) -> dict[str, str]:
    """Look a word up, under a name that no vendor takes."""
    return {"word": word, "means": "nothing"}


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("the sensor is broken")


@server.tool()
async def hang() -> str:
    """Never answer."""
    await asyncio.sleep(3600)
    return "late"


@server.tool()
def long(characters: int) -> str:
    """Say a lot."""
    return "x" * characters


@server.tool()
def picture() -> Image:
    """Return a picture."""
    return Image(data=b"no picture", format="png")


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


@server.tool()
def environment() -> str:
    """Tell the names of the variables that the server sees."""
    return " ".join(sorted(os.environ))


def main() -> None:
    """Serve until the client or the test ends it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=("stdio", "http"))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--pid", type=Path)
    parser.add_argument("--child", type=Path)
    given = parser.parse_args()
    if given.pid:
        given.pid.write_text(str(os.getpid()))
    if given.child:
        code, nothing = "import time; time.sleep(120)", subprocess.DEVNULL
        child = subprocess.Popen([sys.executable, "-c", code], stdin=nothing, stdout=nothing)
        given.child.write_text(str(child.pid), encoding="utf-8")
    sys.stderr.write("the weather server says hello on stderr\n")
    if given.transport == "http":
        server.run("streamable-http", host="127.0.0.1", port=given.port)
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
