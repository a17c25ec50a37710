"""How the local servers of tests are started and stopped: on an event loop of their own, or in threads."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from types import TracebackType


class OnLoop:
    """A server of bytes, on an event loop in a thread of its own; leave the `with` block and it is gone."""

    port = 0
    options: ClassVar[Mapping[str, Any]] = {}

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main(started)), daemon=True)
        self._thread.start()
        assert started.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _main(self, started: threading.Event) -> None:
        self._loop, self._stop, self._tasks = asyncio.get_running_loop(), asyncio.Event(), set[asyncio.Task[None]]()
        listening = await asyncio.start_server(self._connected, "127.0.0.1", 0, **self.options)
        self.port = listening.sockets[0].getsockname()[1]
        started.set()
        await self._stop.wait()
        listening.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self.talk(reader, writer)
        writer.close()


class Silent(BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    def log_message(self, *_: Any) -> None:
        """Keep still."""

    def send(self, status: int, body: bytes, **headers: str) -> None:
        """Send a whole response; JSON, where *headers* say nothing else."""
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(ConnectionError):  # the client has had enough
            self.wfile.write(body)


class InThreads:
    """A server of Python's own, in threads; leave the `with` block and it is gone."""

    tls: ssl.SSLContext | None = None

    def handler(self) -> type[Silent]:
        """Return the class of what serves a request."""
        raise NotImplementedError

    @property
    def root(self) -> str:
        """Its address."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self._server.daemon_threads = True
        if self.tls:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
