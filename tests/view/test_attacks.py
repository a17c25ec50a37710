"""Sixty hostile texts in every field of every page of a run, in a real browser: no foreign tag, and no request."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve

from rubric.commands.kept_runs import Keeper
from rubric.commands.local_server import LocalServer
from rubric.commands.view import listing
from rubric.suites.report import Report
from tests.browsers import Seen
from tests.reports import PAYLOADS, hostile
from tests.view.test_suite_page import OURS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browsers import Browser, Tab

OWN = OURS | {"em", "code", "br", "hr", "article", "kbd", "nav", "ins", "del"}
ALLOWED = {
    "onclick",
    "onerror",
    "onload",
    "src",
    "srcset",
    "srcdoc",
    "action",
    "formaction",
    "data",
    "poster",
    "background",
}


WALK = """(() => {
  const tags = new Set();
  for (let at = 0; at < page.table.rows.length; at++)
    for (const show of [() => page.open(at), () => page.raw(), () => page.raw()]) {
      show();
      for (const element of document.querySelectorAll("#work *")) tags.add(element.localName);
    }
  return [...tags];
})()"""
"""Opens each candidate, as Markdown and as written, and names the tags that were ever there."""


def attacks(evil: str) -> list[str]:
    """Return sixty texts that load something from *evil*, run something, or break out of where they stand."""
    run = "document.title='pwned'"
    loads = [
        f"<img src={evil}>", f"<img srcset='{evil} 2x'>", f"<link rel=stylesheet href={evil}>", f"<script src={evil}></script>",
        f"<iframe src={evil}></iframe>", f"<iframe srcdoc=\"<img src='{evil}'>\"></iframe>", f"<object data={evil}></object>",
        f"<embed src={evil}>", f"<video poster={evil} src={evil} autoplay></video>", f"<audio src={evil} autoplay></audio>",
        f"<svg><image href='{evil}'/></svg>", f"<svg><use href='{evil}#x'/></svg>", f"<body background={evil}>", f"<base href={evil}>",
        f"<meta http-equiv=refresh content='0;url={evil}'>", f"<style>@import url({evil});</style>", f"<p style='background:url({evil})'>",
        f"<link rel=prefetch href={evil}>", f"<link rel=preconnect href={evil}>", f"<form action={evil}><input autofocus></form>",
        f"<a ping={evil} href={evil}>x</a>", f"<table background={evil}>", f"<input type=image src={evil}>", f"<track src={evil}>",
        f"![x]({evil})", f"[x]({evil})", f"<{evil}>", f"[x]: {evil}", f"[![x]({evil})]({evil})", f"| ![x]({evil}) |\n|---|\n| y |",
    ]  # fmt: skip
    runs = [
        f"<svg onload={run}>", f"<details open ontoggle={run}>", f"<input autofocus onfocus={run}>", f"<marquee onstart={run}>",
        f"<body onload={run}>", f"<math><mtext><script>{run}</script>", f"<select autofocus onfocus={run}>", f"<x style=animation-name:rubric-shown onanimationstart={run}>",
        f"[x](javascript:{run})", f"`</code><script>{run}</script>`", f"```\n</pre><script>{run}</script>\n```",
    ]  # fmt: skip
    breaks = [
        f"</script><script>{run}</script>", f"</template><img src=x onerror={run}>", f"--><script>{run}</script>", f"]]><script>{run}</script>",
        f"\\u003c/script><script>{run}</script>", f"<!--<script>{run}", f"\u2028{run}\u2029", "</style><style>body{display:none}",
        "{{ 7 * 7 }}{% raw %}", f"${{{run}}}", "\ue0001,2\ue001quote\ue002", "\u202e\u200b\U000e0041 hidden",
    ]  # fmt: skip
    return [*PAYLOADS, *loads, *runs, *breaks]


@pytest.fixture
def evil() -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a server of an enemy, and the requests that it got."""
    got: list[str] = []

    class Enemy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Enemy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/x", got
        server.shutdown()


@contextmanager
def opened(browser: Browser, address: str) -> Iterator[Tab]:
    tab = browser.open(address)
    tab.until("document.documentElement.dataset.ready !== undefined")
    yield tab
    assert_own(tab)
    tab.close()


def assert_own(tab: Tab) -> None:
    """Assert that the page has our own tags and attributes alone, and its own title."""
    seen = Seen(tab.run("document.documentElement.outerHTML"))
    assert {tag for tag, _ in seen.tags} <= OWN
    assert not {name for _, attributes in seen.tags for name in attributes} & ALLOWED
    assert len([tag for tag, _ in seen.tags if tag == "script"]) == 2  # the data, and our own
    assert tab.run("document.title") != "pwned"


def test_there_are_sixty_of_them_and_a_page_without_a_policy_asks_the_enemy(
    browser: Browser, evil: tuple[str, list[str]], tmp_path: Path
) -> None:
    """The tests below could fail: this browser loads what is in a page."""
    address, got = evil
    texts = attacks(address)
    assert len({*texts}) == 60
    (tmp_path / "page.html").write_text("".join(texts[7:10]))
    browser.open((tmp_path / "page.html").as_uri()).close()
    assert got


def test_files_show_them_as_text_and_ask_nobody(browser: Browser, evil: tuple[str, list[str]], tmp_path: Path) -> None:
    """In a run and in two: each candidate opened, as Markdown and as written, each filter and each group of reasons."""
    address, got = evil
    rows = tuple(evolve(row, id=f"{n} {row.id}") for n, words in enumerate(attacks(address)) for row in hostile(words))
    old = Report("old", tuple(evolve(row, output=f"x {row.output}", status="passed") for row in rows))
    one = Report(rows[0].id, rows).write(tmp_path / "one.html")
    two = Report(rows[0].id, rows).write(tmp_path / "two.html", against=old)
    for page in (one, two):
        with opened(browser, page.as_uri()) as tab:
            assert {*tab.run(WALK)} <= OWN
            tab.run(
                "document.querySelectorAll('#shows button, #flags button, #costs button, #alike button').forEach((each) => each.click())"
            )
            tab.run("page.change({...nothing(), q: page.data.rows[3].id, like: 'x~y', tag: page.data.rows[3].tags[0]})")
    assert got == []


def test_a_server_shows_them_as_text_and_asks_nobody(
    browser: Browser, evil: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the list of runs, on the page of one, and where it is labelled, blind and beside the verdict."""
    monkeypatch.setenv("RUBRIC_RUNS", str(tmp_path))
    address, got = evil
    texts = attacks(address)
    keeper = Keeper.of(texts[0], texts[:3])
    for number, words in enumerate(texts):
        for row in hostile(words):
            keeper.add(evolve(row, id=f"{number} {row.id}"))
    keeper.end()
    page, save = listing(tmp_path)
    server = LocalServer(page, save=save)
    assert keeper.folder is not None
    with server.bind() as bound:
        threading.Thread(target=bound.serve_forever, daemon=True).start()
        own = f"http://127.0.0.1:{bound.server_address[1]}/{server.token}/"
        tab = browser.open(own)
        assert {tag for tag, _ in Seen(tab.run("document.documentElement.outerHTML")).tags} <= OWN
        tab.close()
        with opened(browser, f"{own}?run={keeper.folder.name}&blind=1") as tab:
            for _ in range(len(texts) - 1):
                tab.press("s")
            tab.press("p")
            tab.until("document.getElementById('blind-next') !== null")
            assert_own(tab)
            tab.press("b", "n", "d")
            tab.until("document.querySelector('[data-label][aria-pressed=true]') !== null")
        bound.shutdown()
    assert got == []
