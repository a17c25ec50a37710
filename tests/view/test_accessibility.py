"""Names and contrast of the page of a run, by axe-core: set `RUBRIC_AXE` to the `axe.min.js` of its npm package."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.browsers import browsing
from tests.view.runs import run

AXE = os.environ.get("RUBRIC_AXE", "")


@pytest.mark.skipif(not AXE, reason="RUBRIC_AXE names no axe.min.js (npm install axe-core)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_axe_finds_no_violation(tmp_path: Path, width: int, scheme: str) -> None:
    """The page with and without an open candidate, alone and against an earlier run, has no violation."""
    script = Path(AXE).read_text("utf-8")
    first = run(40).report(tmp_path / "run.html")
    both = run(40, seed=2).report(tmp_path / "two.html", against=run(40))
    found: list[object] = []
    with browsing(tmp_path) as browser:
        for page in (first, both):
            tab = browser.open(page.as_uri(), width, prefers_color_scheme=scheme)
            tab.until("document.documentElement.dataset.ready !== undefined")
            tab.run(script)
            for action in ("", "page.open(1)"):
                tab.run(action)
                run_axe = "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 160)]))"
                found += [[page.name, action, *each] for each in tab.run(run_axe)]
            tab.close()
    assert found == []
