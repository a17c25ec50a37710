"""What a model is offered: the tools of one or several servers, as functions with names that it can tell apart."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from attrs import frozen

from rubric.validating import suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp import Tool

    from rubric.suites.connections import Connection

__all__ = ["Held", "Toolbox"]

_LONGEST_NAME = 64


@frozen
class Held:
    """One tool, and the connection to its server."""

    connection: Connection
    tool: Tool


@frozen
class Toolbox:
    """
    Tools by the names of their functions.

    A function is called like its tool. Where two servers have a tool of one name, the server's name goes before it.
    What vendors do not take in a name (they take letters, digits, `_` and `-`, 64 in all) becomes `_`.
    """

    tools: Mapping[str, Held]

    @classmethod
    def of(cls, connections: Iterable[Connection]) -> Toolbox:
        """Return the box with all tools of *connections*."""
        held = [Held(connection, tool) for connection in connections for tool in connection.tools]
        often = Counter(_valid(one.tool.name) for one in held)
        box: dict[str, Held] = {}
        for one in held:
            name = _valid(one.tool.name)
            box[_free(name if often[name] == 1 else _valid(f"{one.connection.name}__{name}"), box)] = one
        return cls(box)

    def offered(self) -> list[dict[str, Any]]:
        """Return the functions in the form of OpenAI's chat API."""
        return [{"type": "function", "function": _function(name, held.tool)} for name, held in self.tools.items()]

    def unknown(self, name: str) -> str:
        """Return what a model is told that wants a function called *name*, which there is none of."""
        return f"there is no tool {name!r}{suggest(name, self.tools)}"


def _function(name: str, tool: Tool) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {}, **tool.input_schema}
    return {"name": name, "description": tool.description or tool.title or "", "parameters": parameters}


def _valid(name: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return (name if re.match(r"[A-Za-z_]", name) else f"_{name}")[:_LONGEST_NAME]


def _free(name: str, taken: Mapping[str, object]) -> str:
    free, number = name, 2
    while free in taken:
        ending = f"_{number}"
        free, number = f"{name[: _LONGEST_NAME - len(ending)]}{ending}", number + 1
    return free
