"""A real browser for the tests of pages, driven from its command line, or by keyboard."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import subprocess
import time
import zlib
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from attrs import define, field

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")


def _browser() -> str:
    """Return the path of a browser; skip the test where there is none."""
    found = next((found for name in NAMES if (found := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser on PATH: {', '.join(NAMES)}")
    return found


OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")


def dom_of(page: str, folder: Path, width: int = 1280) -> Seen:
    """Return what a browser made of *page* after all that would run has run; skip the test where there is none."""
    path = folder / "page.html"
    path.write_text(page, "utf-8")
    return seen_at(path.as_uri(), folder, width)


def seen_at(address: str, folder: Path, width: int = 1280) -> Seen:
    """Return what a browser made of the page at *address*, likewise."""
    options = [*OPTIONS, f"--user-data-dir={folder / 'profile'}"]
    options += [f"--window-size={width},900", "--virtual-time-budget=2000", "--dump-dom"]
    done = subprocess.run([_browser(), *options, address], capture_output=True, timeout=120, check=True)
    return Seen(done.stdout.decode())


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
    """A running browser."""

    _loop: asyncio.AbstractEventLoop
    _socket: aiohttp.ClientWebSocketResponse
    _sent: int = 0

    def ask(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """Return the answer to one command of the protocol."""
        return self._loop.run_until_complete(self._ask(method, session, params))

    async def _ask(self, method: str, session: str, params: dict[str, Any]) -> dict[str, Any]:
        self._sent += 1
        command = {"id": self._sent, "method": method, "params": params}
        await self._socket.send_json(command | ({"sessionId": session} if session else {}))
        while True:
            answer = await asyncio.wait_for(self._socket.receive_json(), 30)
            if answer.get("id") == self._sent:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def open(self, address: str, width: int = 1280, height: int = 900, **media: str) -> Tab:
        """Return a new tab at *address*, once it is loaded; *media* such as `prefers_color_scheme="dark"`."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
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
