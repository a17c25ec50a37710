"""The command `view`: a store or a report in the browser, read-only, in pages that run no script."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rubric.commands.local_server import NO_BROWSER, PORT, LocalServer, Page
from rubric.commands.options import PATH
from rubric.commands.output import Command, Refusal
from rubric.store import page as store_page
from rubric.suites.report import Report
from rubric.suites.reporters.html import render


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


@click.command(cls=Command)
@click.argument("file", type=PATH)
@PORT
@NO_BROWSER
def view(file: Path, port: int, *, no_browser: bool) -> None:
    """
    Show a store or a report in the browser, until Ctrl-C.

    FILE is a store (every request to a judge with its messages and its raw reply), or a report in JSON. Both can be
    searched. Only this machine and this user can open the address, and nothing is changed.
    """
    LocalServer(page_of(file), port).run(str(file), no_browser=no_browser)
