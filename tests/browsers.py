"""A real browser for the tests of pages, driven from its command line."""

from __future__ import annotations

import shutil
import subprocess
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")


def dom_of(page: str, folder: Path, width: int = 1280) -> Seen:
    """Return what a browser made of *page* after all that would run has run; skip the test where there is none."""
    path = folder / "page.html"
    path.write_text(page, "utf-8")
    return seen_at(path.as_uri(), folder, width)


def seen_at(address: str, folder: Path, width: int = 1280) -> Seen:
    """Return what a browser made of the page at *address*, likewise."""
    browser = next((found for name in NAMES if (found := shutil.which(name))), None)
    if browser is None:
        pytest.skip(f"no browser on PATH: {', '.join(NAMES)}")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    options += [f"--window-size={width},900", "--virtual-time-budget=2000", "--dump-dom"]
    done = subprocess.run([browser, *options, address], capture_output=True, timeout=120, check=True)
    return Seen(done.stdout.decode())


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
        elif self._inside != "style":
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
