"""The resources of an MCP server as files that a judge with tools may read."""

from __future__ import annotations

from rubric import DefinitionError
from rubric.driving import Failure
from rubric.embed import FrozenMap, fields, on_background, run
from rubric.suites.targets.agents import CURE, whole
from rubric.suites.targets.base import DeferError
from rubric.suites.targets.mcp_servers import HTTPServer, Server, StdioServer


async def aresources_of(server: Server, /, *, timeout: float = 60.0) -> FrozenMap:  # noqa: ASYNC109 - for each step
    """Return the resources like `resources_of`, without blocking the event loop."""
    if not isinstance(server, StdioServer | HTTPServer):
        raise fields.refuse("server", server, "a StdioServer or an HTTPServer")
    try:
        from rubric.suites.targets.mcp_sessions import connect  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ImportError(f"{CURE} ({error})", name="mcp") from error

    async def read() -> tuple[dict[str, str], list[str]] | Failure:
        # As a value: the sessions' task groups would wrap what is raised.
        try:
            async with connect("server", server, start=timeout, tool=timeout) as connection:
                return await connection.resources()
        except (ConnectionError, DeferError) as error:
            return Failure("transport", str(error))

    found = await on_background(whole(read()))
    if isinstance(found, Failure):
        raise DefinitionError("server", found.message)
    texts, notes = found
    if notes:
        raise DefinitionError("server", notes[0])
    return FrozenMap(texts)


def resources_of(server: Server, /, *, timeout: float = 60.0) -> FrozenMap:
    """
    Return the texts of the resources of an MCP *server* by their URIs: `Candidate(answer, files=resources_of(server))`.

    The server is started or reached once, and left before this returns; what a judge reads is a snapshot. Binary
    resources are left out. `AgentTarget(..., resources=True)` takes the snapshot at the end of an agent's run, in its
    own session.

    Args:
        timeout: Seconds for each step: the start, and the resources together.

    Raises:
        DefinitionError: The server is not there, a resource cannot be read, or they exceed the bounds of a snapshot.
        ImportError: The MCP SDK is not installed.
    """
    return run(aresources_of(server, timeout=timeout))
