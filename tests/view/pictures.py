"""
Take pictures of every page, at 1,280 and 400 pixels, light and dark: `python -m tests.view.pictures FOLDER [NAME ...]`.

They are for people to look at; no test compares them.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rubric.commands.kept_runs import Keeper
from rubric.commands.local_server import LocalServer
from rubric.commands.view import listing, page_of
from rubric.embed import RowBuilder
from rubric.suites import Report
from tests.browsers import browsing
from tests.reports import REPORT
from tests.view.runs import one, run, wide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

LOOKS = [(1280, "light"), (1280, "dark"), (400, "light"), (400, "dark")]
"""The width of the window, and the scheme of its colours."""


CALLS = "new Promise((done) => { const wait = setInterval(() => { const call = document.querySelector('.calls details'); if (call) { clearInterval(wait); call.open = true; done(); } }, 50); })"
"""Waits for the calls, and unfolds the first."""


def _suite(path: Path) -> None:
    REPORT.write(path)


def _replies(path: Path) -> None:
    build = RowBuilder()
    Report("support replies", tuple(build.of(each) for each in run(60))).write(path)


@contextmanager
def _served(folder: Path) -> Iterator[Mapping[str, tuple[str, str]]]:
    """Yield the address of each page that a server shows, and what is done on it: of a run whose calls are stored."""
    store = folder / "replies.store"
    os.environ["RUBRIC_RUNS"] = str(folder / "runs")
    keeper, build = Keeper.of("support reply", ["rubric.yaml", "replies.jsonl"], store=store), RowBuilder()
    for number in range(40):
        keeper.add(build.of(one(number, store=store if number < 8 else None)))
    keeper.end()
    page, save = listing(folder / "runs")
    calls = LocalServer(page_of(store))
    server = LocalServer(page, save=save)
    with server.bind() as bound, calls.bind() as other:
        for each in (bound, other):
            threading.Thread(target=each.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{bound.server_address[1]}/{server.token}/"
        assert keeper.folder is not None
        shown = f"{address}?run={keeper.folder.name}"
        opened = "page.change({q: 'ticket-00003'}); page.open(0)"
        yield {
            "list": (address, ""),
            "blind": (f"{shown}&blind=1", ""),
            "labelled": (f"{shown}&blind=1", "blind.say('fail')"),
            "in-place": (shown, f"{opened}; show($('label-state'))"),
            "calls": (
                shown,
                f"{opened}; page.calls(); {CALLS}",
            ),
            "store": (f"http://127.0.0.1:{other.server_address[1]}/{calls.token}/", ""),
        }
        bound.shutdown()
        other.shutdown()


PAGES: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "run": (lambda path: run(400).report(path, title="Friday's replies"), ""),
    "table": (lambda path: run(400).report(path), "show($('work'))"),
    "open": (lambda path: run(400).report(path, title="Friday's replies"), "page.move(1, isFailing); show($('work'))"),
    "jury": (
        lambda path: run(400).report(path),
        "page.change({is: ['judges disagree']}); page.open(0); show($('work'))",
    ),
    "filtered": (
        lambda path: run(400).report(path),
        "page.change({q: 'reason:voucher', answers: [['cites', 'falls short']]})",
    ),
    "one": (lambda path: wide(1).report(path), ""),
    "forty": (lambda path: wide(40).report(path), ""),
    "two": (lambda path: run(200, better=0.08).report(path, against=run(200)), ""),
    "two-open": (
        lambda path: run(200, better=0.08, seed=2).report(path, against=run(200)),
        "page.open(0); show($('work'))",
    ),
    "judges": (lambda path: run(200, judged=2).report(path, against=run(200)), "page.open(0); show($('work'))"),
    "suite": (_suite, ""),
    "replies": (_replies, "page.change({q: 'ticket-00001'}); page.open(0); show($('work'))"),
    "suite-open": (_suite, "page.open(0); show($('work'))"),
}
"""Each page: what writes it, and what is done on it before the picture."""


def main(folder: Path, names: list[str]) -> None:
    """Write the pictures of the pages with these *names*, or of all."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as profile, browsing(Path(profile)) as browser, _served(Path(profile)) as served:
        for name in names or [*PAGES, *served]:
            if name in served:
                address, action = served[name]
            else:
                write, action = PAGES[name]
                write(folder / f"{name}.html")
                address = (folder / f"{name}.html").as_uri()
            for width, scheme in LOOKS:
                tab = browser.open(address, width, 900, prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
                tab.until("document.documentElement.dataset.ready !== undefined || !document.getElementById('work')")
                tab.run(action)
                tab.run("new Promise((done) => setTimeout(done, 400))")
                tab.picture(folder / f"{name}-{width}-{scheme}.png")
                wider = tab.run("document.documentElement.scrollWidth - innerWidth")
                sys.stdout.write(f"{name} {width} {scheme}: {'fits' if wider <= 0 else f'{wider} px too wide'}\n")
                tab.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
