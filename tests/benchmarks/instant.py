"""
A server of OpenAI's chat completions protocol that costs next to nothing, in a process of its own.

    python -m tests.benchmarks.instant --seconds 0.05

It prints its base address and answers each request after so many seconds with a verdict of yes, carrying the nonce
that the request asks for. `GET /stats` says how many requests came.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_NONCE = re.compile(rb'\\"nonce\\": ?\\"([^"\\]+)')


class Connection(asyncio.Protocol):
    """One client's connection: requests are read whole and answered later, without a task."""

    requests = 0

    def __init__(self, seconds: float) -> None:
        self._seconds, self._buffer = seconds, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what is written to."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is whole."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n") + 4) > 3:
            length = _LENGTH.search(self._buffer, 0, end)
            whole = end + (int(length[1]) if length else 0)
            if len(self._buffer) < whole:
                return
            request, self._buffer = self._buffer[:whole], self._buffer[whole:]
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        if request.startswith(b"GET"):
            self._send(json.dumps({"requests": Connection.requests}).encode())
            return
        Connection.requests += 1
        asyncio.get_running_loop().call_later(self._seconds, self._send, completion(request))

    def _send(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


def completion(request: bytes) -> bytes:
    """Return a chat completion that says yes."""
    nonces = _NONCE.findall(request)
    nonce = {"nonce": nonces[-1].decode()} if nonces else {}
    text = json.dumps({**nonce, "reason": "The answer meets the requirement.", "verdict": True})
    message = {"role": "assistant", "content": text, "refusal": None}
    usage = {"prompt_tokens": len(request) // 4, "completion_tokens": len(text) // 4}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-4o-mini",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {**usage, "total_tokens": sum(usage.values()), "prompt_tokens_details": {"cached_tokens": 0}},
        }
    ).encode()


async def serve(seconds: float) -> None:
    """Serve until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(seconds), "127.0.0.1", 0, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


@contextmanager
def running(seconds: float) -> Iterator[str]:
    """Run the server in a process of its own; the base address is what comes of it."""
    command = [sys.executable, "-m", "tests.benchmarks.instant", "--seconds", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.05)
    asyncio.run(serve(parser.parse_args().seconds))
