"""A real browser for the tests of pages, driven by keyboard."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from itertools import count
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from attrs import define, field

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")


def _browser() -> str:
    """Return the path of a browser; skip the test where there is none."""
    found = next((found for name in NAMES if (found := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser on PATH: {', '.join(NAMES)}")
    return found


OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")


def data_of(page: str) -> Any:
    """Return the data that a page of results holds for its script."""
    found = re.search(r'<script type="application/json" id="data"( data-packed="deflate")?>([^<]*)</script>', page)
    assert found is not None
    return json.loads(zlib.decompress(base64.b64decode(found[2])) if found[1] else found[2])


class Seen(HTMLParser):
    """What is in a page: its tags with their attributes, its title, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.title = ""
        self.words: list[str] = []
        self._inside = ""
        self._is_in_body = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        self._is_in_body |= tag == "body"

    def handle_data(self, data: str) -> None:
        if self._inside == "title" and not self._is_in_body:  # drawings have titles too
            self.title += data
        elif self._inside not in ("style", "script"):
            self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    @property
    def text(self) -> str:
        """All that is to be read, on one line."""
        return " ".join("".join(self.words).split())

    def named(self, word: str) -> list[dict[str, str | None]]:
        """Return the attributes of the tags that have the class *word*."""
        return [attrs for _, attrs in self.tags if word in (attrs.get("class") or "").split()]


# -- by keyboard ---------------------------------------------------------------------------------------------

_KEYS = {"Enter": (13, "\r"), "Backspace": (8, ""), "ArrowDown": (40, ""), "ArrowUp": (38, ""), "Escape": (27, "")}
_KEYS |= {"ArrowLeft": (37, ""), "ArrowRight": (39, "")}


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """Yield a browser with a profile in *folder*, driven by its DevTools protocol."""
    profile = folder / "driven"
    command = [_browser(), *OPTIONS, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"]
    loop = asyncio.new_event_loop()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        session = loop.run_until_complete(_session())
        try:
            told = profile / "DevToolsActivePort"
            _until(lambda: told.exists() and len(told.read_text().split()) == 2)
            port, path = told.read_text().split()
            socket = loop.run_until_complete(session.ws_connect(f"ws://127.0.0.1:{port}{path}", max_msg_size=0))
            try:
                yield Browser(loop, socket)
            finally:
                loop.run_until_complete(socket.close())  # the session leaves the connection of a socket open
        finally:
            loop.run_until_complete(session.close())
            process.terminate()
            process.wait(30)
            loop.close()


async def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession()


def _until(holds: Any, seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "the browser does not come so far"
        time.sleep(0.02)
    return found


@define
class Browser:
    """A running browser, or a profile of its own in one."""

    _loop: asyncio.AbstractEventLoop
    _socket: aiohttp.ClientWebSocketResponse
    _profile: dict[str, str] = field(factory=dict)
    _numbers: Iterator[int] = field(factory=lambda: count(1))

    def ask(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """Return the answer to one command of the protocol."""
        return self._loop.run_until_complete(self._ask(method, session, params))

    async def _ask(self, method: str, session: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": params}
        await self._socket.send_json(command | ({"sessionId": session} if session else {}))
        answer = await self._told("id", number)
        assert "error" not in answer, answer
        return dict(answer["result"])

    async def _told(self, key: str, value: object) -> dict[str, Any]:
        while True:
            told: dict[str, Any] = await asyncio.wait_for(self._socket.receive_json(), 30)
            if told.get(key) == value:
                return told

    @contextmanager
    def apart(self) -> Iterator[Browser]:
        """Yield the browser with a profile of its own: what pages keep is there for the block alone."""
        profile = {"browserContextId": self.ask("Target.createBrowserContext")["browserContextId"]}
        try:
            yield Browser(self._loop, self._socket, profile, self._numbers)
        finally:
            self.ask("Target.disposeBrowserContext", **profile)

    def seen(self, address: str) -> Seen:
        """Return what a new profile makes of the page at *address*, after all that would run in two seconds has run."""
        with self.apart() as apart:
            tab = apart.open(address)
            tab.ask("Emulation.setVirtualTimePolicy", policy="advance", budget=2000)
            self._loop.run_until_complete(self._told("method", "Emulation.virtualTimeBudgetExpired"))
            return Seen(tab.run("document.documentElement.outerHTML"))

    def made_of(self, page: str, folder: Path) -> Seen:
        """Return what it makes of *page*, likewise, as a file in *folder*."""
        path = folder / "page.html"
        path.write_text(page, "utf-8")
        return self.seen(path.as_uri())

    def open(self, address: str, width: int = 1280, height: int = 900, **media: str) -> Tab:
        """Return a new tab at *address*, once it is loaded; *media* such as `prefers_color_scheme="dark"`."""
        target = self.ask("Target.createTarget", url="about:blank", **self._profile)["targetId"]
        tab = Tab(self, self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        tab.ask("Emulation.setEmulatedMedia", features=features)
        tab.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        tab.ask("Page.navigate", url=address)
        _until(lambda: tab.run("document.readyState") == "complete" and tab.run("location.href") != "about:blank")
        return tab


@define
class Tab:
    """One page in a browser."""

    browser: Browser
    _session: str = field(repr=False)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer to one command of the protocol."""
        return self.browser.ask(method, self._session, **params)

    def run(self, script: str) -> Any:
        """Return the value of *script* in the page."""
        return self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)["result"].get(
            "value"
        )

    def until(self, script: str) -> Any:
        """Return the value of *script* as soon as it holds."""
        return _until(lambda: self.run(script))

    def reload(self) -> None:
        """Load the page again, and wait until the new one, not the old one, is complete."""
        self.run("document.documentElement.dataset.old = ''")
        self.ask("Page.reload")
        self.until("document.readyState == 'complete' && document.documentElement.dataset.old === undefined")

    def press(self, *keys: str) -> None:
        """Press *keys* one after the other, as a keyboard does."""
        for key in keys:
            code, text = _KEYS.get(key, (ord(key[0].upper()), key))
            pressed = {"key": key, "windowsVirtualKeyCode": code}
            self.ask("Input.dispatchKeyEvent", type="keyDown", **pressed, **({"text": text} if text else {}))
            self.ask("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def type(self, words: str) -> None:
        """Type *words*, a key a letter."""
        self.press(*words)

    @property
    def text(self) -> str:
        """What is to be read on the page now."""
        return str(self.run("document.body.innerText"))

    def close(self) -> None:
        self.ask("Page.close")

    def picture(self, path: Path) -> None:
        """Write what is seen to a PNG file."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
