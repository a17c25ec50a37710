"""
A local HTTP proxy that leads where it is asked to, by `CONNECT` or in plain, and misbehaves on request.

    with Proxy("502") as proxy:
        ...                                   # name proxy.url in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY
        assert proxy.asked == ["CONNECT judge.test:443"]
"""

from __future__ import annotations

import asyncio
import re

from tests.serving import OnLoop

BEHAVIOURS = ("ok", "407", "403", "429", "500", "502", "503", "504", "hang", "close", "garbage")


class Proxy(OnLoop):
    """The proxy, in a thread of its own; whatever host it is asked for, it leads to *port* of this machine."""

    def __init__(self, behaviour: str = "ok", port: int = 9) -> None:
        assert behaviour in BEHAVIOURS
        self.behaviour, self.leads_to = behaviour, port
        self.asked: list[str] = []
        self.heads: list[str] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        body = await reader.readexactly(int(length[1])) if length else b""
        self.heads.append(head)
        method, target, _ = head.split(" ", 2)
        self.asked.append(f"{method} {target}")
        if self.behaviour.isdigit():
            writer.write(f"HTTP/1.1 {self.behaviour} Said\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
        elif self.behaviour == "hang":
            await reader.read()
        elif self.behaviour == "garbage":
            writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        elif self.behaviour == "ok":
            await self._lead(method, head, body, reader, writer)

    async def _lead(
        self, method: str, head: str, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        there, thither = await asyncio.open_connection("127.0.0.1", self.leads_to)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            first, rest = head.split("\r\n", 1)
            _, target, version = first.split(" ")
            thither.write(f"{method} /{target.split('/', 3)[3]} {version}\r\n{rest}".encode("latin-1") + body)
        try:
            await asyncio.gather(_copied(reader, thither), _copied(there, writer))
        finally:
            thither.close()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while part := await reader.read(2**16):
        writer.write(part)
        await writer.drain()
    writer.close()
