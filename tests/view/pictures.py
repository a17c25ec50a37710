"""
Take pictures of every page, at 1,280 and 400 pixels, light and dark: `python -m tests.view.pictures FOLDER [NAME ...]`.

They are for people to look at; no test compares them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.browsers import browsing
from tests.reports import REPORT
from tests.view.runs import run, wide

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LOOKS = [(1280, "light"), (1280, "dark"), (400, "light"), (400, "dark")]
"""The width of the window, and the scheme of its colours."""


def _suite(path: Path) -> None:
    REPORT.write(path)


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
    "suite-open": (_suite, "page.open(0); show($('work'))"),
}
"""Each page: what writes it, and what is done on it before the picture."""


def main(folder: Path, names: list[str]) -> None:
    """Write the pictures of the pages with these *names*, or of all."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as profile, browsing(Path(profile)) as browser:
        for name in names or PAGES:
            write, action = PAGES[name]
            path = folder / f"{name}.html"
            write(path)
            for width, scheme in LOOKS:
                tab = browser.open(
                    path.as_uri(), width, 900, prefers_color_scheme=scheme, prefers_reduced_motion="reduce"
                )
                tab.until("document.documentElement.dataset.ready !== undefined")
                tab.run(action)
                tab.run("new Promise((done) => setTimeout(done, 150))")
                tab.picture(folder / f"{name}-{width}-{scheme}.png")
                wider = tab.run("document.documentElement.scrollWidth - innerWidth")
                sys.stdout.write(f"{name} {width} {scheme}: {'fits' if wider <= 0 else f'{wider} px too wide'}\n")
                tab.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
