"""
The command `view`: a store or a report in the browser, read-only.

The server listens on 127.0.0.1 alone. It answers only where the address holds the secret token of this run, so that no
other user of the machine reads along, and where the `Host` is its own: a page elsewhere whose name is made to lead to
127.0.0.1 (DNS rebinding) names another one. It sends pages that run no script, and changes no file.
"""

from __future__ import annotations

import json
import secrets
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import click
from attrs import field, frozen

from rubric.commands.options import PATH
from rubric.commands.output import Command, Refusal, print_line
from rubric.errors import RubricError
from rubric.internals.secrets import clean
from rubric.rendering import html
from rubric.store import page as store_page
from rubric.suites.report import Report
from rubric.suites.reporters.html import render

Page = Callable[[dict[str, str]], str]
"""Returns a page for the fields of its address, such as `{"q": "refund"}`."""

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Type": "text/html; charset=utf-8",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def page_of(file: Path) -> Page:
    """
    Return what shows *file*, by its content: a store, or a report in JSON.

    Raises:
        RubricError: It is neither.
    """
    if not file.is_file():
        raise Refusal(f"{file}: there is no such file")
    with file.open("rb") as opened:
        start = opened.read(16)
    if start.startswith(b"SQLite format 3"):
        store_page.search(file, store_page.Query())
        return lambda fields: store_page.page(file, _query(fields))
    try:
        json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        cure = "a store is what --store FILE writes, a report what `grade SUITE --out report.json` does"
        raise Refusal(f"{file}: expected a store, or the report of a suite in JSON; {cure}") from None
    report = Report.load(file)
    return lambda fields: render(report, search=fields.get("q", ""))


def _query(fields: dict[str, str]) -> store_page.Query:
    start = fields.get("start", "")
    is_number = start.isascii() and start.isdigit() and len(start) < 10  # noqa: PLR2004
    return store_page.Query(fields.get("q", ""), fields.get("state", ""), int(start) if is_number else 0)


@frozen
class Viewer:
    """
    A server of one page, which `serve` runs.

    Args:
        page: Of the file.
        port: 0 for any that is free.
        token: The secret part of the address.
    """

    page: Page
    port: int = 0
    token: str = field(factory=lambda: secrets.token_urlsafe(16), repr=False)

    def bind(self) -> ThreadingHTTPServer:
        """
        Return the server, which listens already.

        Raises:
            OSError: The port is taken.
        """
        viewer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                port = cast("tuple[str, int]", self.server.server_address)[1]
                status, text = viewer.answer(self.path, self.headers.get("Host", ""), port)
                body = text.encode("utf-8", "backslashreplace")
                self.send_response(status)
                for name, value in {**_HEADERS, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):  # the browser has gone on
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing: the address holds the token."""

        server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        server.daemon_threads = True
        return server

    def answer(self, path: str, host: str, port: int) -> tuple[HTTPStatus, str]:
        """Return the answer to a request for *path*, addressed to *host*, at the server's *port*."""
        if host not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            return HTTPStatus.FORBIDDEN, _message("This address is not the viewer's.")
        parts = urlsplit(path)
        if not secrets.compare_digest(parts.path.encode(), f"/{self.token}/".encode()):
            return HTTPStatus.NOT_FOUND, _message("There is nothing here: open the address that `rubric view` printed.")
        fields = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        try:
            return HTTPStatus.OK, self.page(fields)
        except (RubricError, OSError) as problem:
            return HTTPStatus.INTERNAL_SERVER_ERROR, _message(clean(str(problem)))


def _message(words: str) -> str:
    return html.page("rubric", html.card(html.header(words)))


@click.command(cls=Command)
@click.argument("file", type=PATH)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, metavar="N", help="Listen here; 0 is any free port.")
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
def view(file: Path, port: int, *, no_browser: bool) -> None:
    """
    Show a store or a report in the browser, until Ctrl-C.

    FILE is a store (every request to a judge with its messages and its raw reply), or a report in JSON. Both can be
    searched. Only this machine and this user can open the address, and nothing is changed.
    """
    viewer = Viewer(page_of(file), port)
    try:
        server = viewer.bind()
    except OSError as problem:
        raise Refusal(f"--port {port}: {problem.strerror or problem}; leave --port out for a free one") from None
    with server:
        address = f"http://127.0.0.1:{server.server_address[1]}/{viewer.token}/"
        print_line(f"{file}: {address} (Ctrl-C ends it)")
        sys.stdout.flush()
        if not no_browser:
            webbrowser.open(address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
