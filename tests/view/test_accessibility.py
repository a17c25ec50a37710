"""Names and contrast of every page, by axe-core: set `RUBRIC_AXE` to the `axe.min.js` of its npm package."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rubric import Candidate, Rubric, grade_many
from rubric.commands.kept_runs import Keeper
from rubric.commands.local_server import LocalServer
from rubric.commands.view import listing
from rubric.embed import RowBuilder
from rubric.labelling.drawing import Draw
from rubric.labelling.page import LabelPage
from tests.reports import REPORT
from tests.view.runs import run
from tests.view.test_templates import pages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.browsers import Browser

AXE = os.environ.get("RUBRIC_AXE", "")
RUN_AXE = "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 160)]))"

pytestmark = pytest.mark.skipif(not AXE, reason="RUBRIC_AXE names no axe.min.js (npm install axe-core)")
LOOKS = pytest.mark.parametrize(("width", "scheme"), [(w, s) for w in (1280, 400) for s in ("light", "dark")])


CELL = (
    '<!doctype html><html lang="en"><head><title>x</title><meta name="color-scheme" content="light dark"></head>'
    "<body><main><h1>x</h1><h2>x</h2>{}</main></body></html>"
)
"""A notebook's page, with the output of one cell."""

ASKED = (
    Rubric("replies", guidelines="Be strict.")
    .requires("Answers the question", id="answers")
    .rates("How clear is it?", {0: "no way in", 10: "at once"}, id="clarity")
    .chooses("Which tone?", {"hostile": 0, "warm": 1}, id="tone")
    .rates("How long is it?", (0, 100), id="length")
    .forbids("Promises a refund", id="refund")
    .scores("Helps", id="helps")
)


def labelling() -> LabelPage:
    """Return a page for labels, with a question of each type and what a judge said."""
    candidates = {f"k{n}": Candidate(f"reply {n} " * 500, input=f"question {n}", key=f"k{n}") for n in range(3)}
    results = {str(each.key): [each.to_dict()] for each in grade_many(list(candidates.values()), ASKED, "offline")}
    draw = Draw.of([*candidates])
    return LabelPage(ASKED, draw, [candidates[item.name] for item in draw.items], results)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Path, tuple[str, ...]]:
    """Return each page that is a file, with what is done on it before it is looked at."""
    folder = tmp_path_factory.mktemp("pages")
    old = run(40)
    found = {
        old.report(folder / "run.html"): ("", "page.open(1)", "$('help').showModal()"),
        run(40, seed=2).report(folder / "two.html", against=old): ("", "page.open(1)"),
        run(40, judged=2).report(folder / "judges.html", against=old): ("", "page.open(1)"),
        REPORT.write(folder / "suite.html"): ("", "page.open(0)"),
    }
    (folder / "label.html").write_text(labelling().html(mode="file"), "utf-8")
    answers = "fields.forEach((each) => each.querySelector('.option')?.click())"
    found[folder / "label.html"] = ("", "begin('Ann')", answers, "write(0)", "lookAtJudge()", "show(1)")
    for name, part in {"grade": old[0], "rubric": old[0].rubric, "run": old}.items():
        (folder / f"cell-{name}.html").write_text(CELL.format(part._repr_html_()), "utf-8")
        found[folder / f"cell-{name}.html"] = (
            "",
            "document.querySelectorAll('details').forEach((d) => (d.open = true))",
        )
    for name, page in pages("plain words", folder).items():
        (folder / f"plain-{name}.html").write_text(page, "utf-8")
        found[folder / f"plain-{name}.html"] = ("",)
    return found


def violations(browser: Browser, address: str, actions: tuple[str, ...], width: int, scheme: str) -> list[object]:
    """Return what axe-core finds on the page at *address*, after each of the *actions*."""
    tab = browser.open(address, width, prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
    tab.until("document.documentElement.dataset.ready !== undefined || !document.getElementById('work')")
    tab.run(Path(AXE).read_text("utf-8"))
    found: list[object] = []
    for action in actions:
        tab.run(action)
        tab.run("new Promise((done) => setTimeout(done, 50))")
        found += [[action, *each] for each in tab.run(RUN_AXE)]
    tab.close()
    return found


@LOOKS
def test_axe_finds_no_violation_in_a_file(
    browser: Browser, files: Mapping[Path, tuple[str, ...]], width: int, scheme: str
) -> None:
    """Each page, with and without an open candidate, has no violation."""
    for file, actions in files.items():
        assert violations(browser, file.as_uri(), actions, width, scheme) == [], file.name


@LOOKS
def test_axe_finds_no_violation_where_a_server_shows_it(
    browser: Browser, tmp_path: Path, width: int, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of runs, a run that takes labels, and one that is labelled blind, before and after the label."""
    monkeypatch.setenv("RUBRIC_RUNS", str(tmp_path))
    keeper, build = Keeper.of("replies", ["replies.jsonl"]), RowBuilder()
    for result in run(20):
        keeper.add(build.of(result))
    keeper.end()
    page, save = listing(tmp_path)
    server = LocalServer(page, save=save)
    with server.bind() as bound:
        threading.Thread(target=bound.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{bound.server_address[1]}/{server.token}/"
        assert violations(browser, address, ("",), width, scheme) == []
        assert keeper.folder is not None
        shown = f"{address}?run={keeper.folder.name}"
        actions = ("page.open(1)", "blind.turn(true)", "blind.say('pass')")
        assert violations(browser, shown, actions, width, scheme) == []
        bound.shutdown()
