"""
A server of one page, for this machine and this user alone.

It listens on 127.0.0.1. It answers only where the address holds the secret token of this run, so that no other user of
the machine reads along, and where the `Host` is its own: a page elsewhere whose name is made to lead to 127.0.0.1 (DNS
rebinding) names another one. What is sent to it must come from its own page.
"""

from __future__ import annotations

import json
import secrets
import sys
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from attrs import field, frozen

from rubric import DefinitionError, RubricError
from rubric.commands.output import Refusal, print_line
from rubric.embed import clean
from rubric.view import html

Page = Callable[[dict[str, str]], str]
"""Returns a page for the fields of its address, such as `{"q": "refund"}`."""

LARGEST = 1_000_000
"""Bytes of what a page may send."""

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Type": "text/html; charset=utf-8",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@frozen
class LocalServer:
    """A server of one *page*; *save* takes the JSON that it sends, and *token* is the secret part of the address."""

    page: Page
    port: int = 0
    save: Callable[[Any], None] | None = None
    token: str = field(factory=lambda: secrets.token_urlsafe(16), repr=False)

    def bind(self) -> ThreadingHTTPServer:
        """Return the server, which listens already; raise `OSError` if the port is taken."""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply(*owner.answer(self.path, *self._address()))

            def _address(self) -> tuple[str, int]:
                return self.headers.get("Host", ""), cast("tuple[str, int]", self.server.server_address)[1]

            def _reply(self, status: HTTPStatus, text: str) -> None:
                body = text.encode("utf-8", "backslashreplace")
                self.send_response(status)
                for name, value in {**_HEADERS, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):  # the browser has gone on
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing: the address holds the token."""

        class Saving(Handler):
            def do_POST(self) -> None:
                said = self.headers.get("Content-Length", "")
                length = int(said) if said.isascii() and said.isdigit() else LARGEST + 1
                if length > LARGEST:
                    self.close_connection = True
                    self._reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "this is too long")
                    return
                names = {name.lower(): value for name, value in self.headers.items()}
                port = self._address()[1]
                self._reply(*owner.receive(self.path, port, names, self.rfile.read(length)))

        server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler if self.save is None else Saving)
        server.daemon_threads = True
        return server

    def answer(self, path: str, host: str, port: int) -> tuple[HTTPStatus, str]:
        """Return the answer to a request for *path*, addressed to *host*, at the server's *port*."""
        if (refused := self._refusal(path, host, port)) is not None:
            return refused
        fields = {name: values[-1] for name, values in parse_qs(urlsplit(path).query).items()}
        try:
            return HTTPStatus.OK, self.page(fields)
        except (RubricError, OSError) as problem:
            return HTTPStatus.INTERNAL_SERVER_ERROR, _message(clean(str(problem)))

    def receive(self, path: str, port: int, headers: Mapping[str, str], body: bytes) -> tuple[HTTPStatus, str]:
        """Return the answer to the JSON *body*, which a page sends with *headers*, in lower case."""
        host, kind = headers.get("host", ""), headers.get("content-type", "")
        if (refused := self._refusal(path, host, port)) is not None:
            return refused
        # A page elsewhere can send a form without asking, but no JSON, and it names its origin.
        if headers.get("origin") != f"http://{host}" or kind.partition(";")[0].strip() != "application/json":
            return HTTPStatus.FORBIDDEN, "this does not come from the page"
        assert self.save is not None  # noqa: S101 - else nothing is received
        try:
            self.save(json.loads(body))
        except (DefinitionError, ValueError, RecursionError) as problem:
            return HTTPStatus.BAD_REQUEST, clean(str(problem))
        except OSError as problem:
            return HTTPStatus.INTERNAL_SERVER_ERROR, f"the file cannot be written: {problem.strerror or problem}"
        return HTTPStatus.OK, "saved"

    def _refusal(self, path: str, host: str, port: int) -> tuple[HTTPStatus, str] | None:
        if host not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            return HTTPStatus.FORBIDDEN, _message("This address is not this server's.")
        if not secrets.compare_digest(urlsplit(path).path.encode(), f"/{self.token}/".encode()):
            return HTTPStatus.NOT_FOUND, _message("There is nothing here: open the address that the command printed.")
        return None

    def run(self, name: str, *, no_browser: bool) -> None:
        """Serve the page of *name* until Ctrl-C, and open a browser."""
        try:
            server = self.bind()
        except OSError as problem:
            said = f"--port {self.port}: {problem.strerror or problem}"
            raise Refusal(f"{said}; leave --port out for a free one") from None
        with server:
            address = f"http://127.0.0.1:{server.server_address[1]}/{self.token}/"
            print_line(f"{name}: {address} (Ctrl-C ends it)")
            sys.stdout.flush()
            if not no_browser:
                webbrowser.open(address)
            with suppress(KeyboardInterrupt):
                server.serve_forever()


def _message(words: str) -> str:
    return html.page("rubric", html.card(html.header(words)))
