"""MCP servers for an agent: how to start or reach them. Only code gives them, never a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attrs import Attribute, evolve, field, frozen

from rubric import DefinitionError
from rubric.embed import FrozenMap, clean, fields, guided
from rubric.internals.secrets import masked_command


def _as_env(value: Mapping[str, str]) -> FrozenMap:
    return fields.as_settings("env", value, hidden=True)


def _as_headers(value: Mapping[str, str]) -> FrozenMap:
    return fields.as_settings("headers", value, hidden=True)


def _texts(_: Any, attribute: Attribute[Any], value: FrozenMap) -> None:
    for key, item in value.items():
        if not isinstance(item, str):
            raise DefinitionError(f"{attribute.name}.{key}", f"expected text, got {type(item).__name__}")


def _as_folder(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _address(_: Any, attribute: Attribute[Any], value: object) -> None:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise fields.refuse(attribute.name, value, "an address such as 'http://127.0.0.1:8000/mcp'")


@guided
@frozen(repr=False)
class StdioServer(fields.Shown):
    """
    An MCP server that is started for each case, spoken to over its standard streams, and stopped after it.

    It runs in a process group of its own, all of which ends with the case, however that ends: the processes that it has
    started end too, unless they have left the group.

    Its standard error does not reach ours. Of our environment it sees only what a program needs to start (`PATH`,
    `HOME` and their like), so no API key, unless *env* gives it one.

    Args:
        command: The program.
        args: Its arguments.
        env: Further variables of its environment; hidden in the `repr`.
        cwd: The folder that it runs in; None means ours.
    """

    _positional = ("command", "args")

    command: str = field(validator=fields.text)
    args: tuple[str, ...] = field(default=(), converter=fields.listed, validator=fields.texts)
    env: FrozenMap = field(default=FrozenMap(), converter=_as_env, validator=_texts)
    cwd: str | None = field(default=None, converter=_as_folder, validator=fields.optional(fields.string))

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that must not appear in a message."""
        return tuple(self.env.values())

    def __repr__(self) -> str:
        shown = fields.Shown.__repr__(evolve(self, args=masked_command(self.args)))
        return clean(shown, self.secrets)


@guided
@frozen(repr=False)
class HTTPServer(fields.Shown):
    """
    An MCP server that is running already, reached by streamable HTTP; every case has a session of its own.

    Args:
        url: Its address, such as `"http://127.0.0.1:8000/mcp"`.
        headers: Sent with each request, such as `{"Authorization": "Bearer ..."}`; hidden in the `repr`.
    """

    _positional = ("url",)

    url: str = field(validator=_address)
    headers: FrozenMap = field(default=FrozenMap(), converter=_as_headers, validator=_texts)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that must not appear in a message."""
        address = urlsplit(self.url)
        return (*self.headers.values(), *filter(None, (address.password, address.query)))

    def __repr__(self) -> str:
        query = urlsplit(self.url).query
        shown = fields.Shown.__repr__(evolve(self, url=self.url.replace(f"?{query}", "?***")) if query else self)
        return clean(shown, self.secrets)


Server = StdioServer | HTTPServer


def as_servers(value: Mapping[str, Server]) -> FrozenMap:
    """Return *value* as servers by name; refuse all else."""
    servers = fields.as_map("servers", value)
    for name, server in servers.items():
        if not isinstance(server, StdioServer | HTTPServer):
            raise fields.refuse(f"servers.{name}", server, "a StdioServer or an HTTPServer")
    return servers
