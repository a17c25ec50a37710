"""The HTML page: what it shows, and that a stranger's text in it stays text, in a real browser too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from attrs import evolve
from hypothesis import given

from rubric.internals.frozen_map import FrozenMap
from rubric.suites.report import Report
from rubric.values.findings import Evidence
from rubric.view.quotes import LONGEST_OUTPUT as LONGEST
from rubric.view.quotes import number_quotes, pieces
from tests.browsers import Browser, Seen, data_of
from tests.examples import examples
from tests.reports import NASTY, OUTPUT, PASSED, PAYLOADS, REPORT, entry, hostile, quote, reports

if TYPE_CHECKING:
    from pathlib import Path

OURS = {
    "html", "head", "meta", "title", "style", "body", "div", "header", "h1", "h2", "h3", "span", "b", "p", "svg", "rect", "line",
    "input", "button", "select", "option", "colgroup", "col", "dialog", "dl", "dt", "dd", "form", "kbd", "noscript", "script",
    "main", "table", "thead", "tbody", "tr", "th", "td", "a", "details", "summary", "section",
    "ul", "ol", "g", "text", "figure", "figcaption", "li", "small", "strong", "blockquote", "pre", "mark", "footer",
}  # fmt: skip


def assert_harmless(page: Seen, cases: int) -> None:
    """Assert that *page*, as it was drawn, holds our own tags alone, links within itself, and so many cases."""
    assert {tag for tag, _ in page.tags} <= OURS
    attributes = [(name, value) for _, attrs in page.tags for name, value in attrs.items()]
    assert not [name for name, _ in attributes if name.startswith("on") or name in ("src", "srcdoc", "action")]
    assert all(
        re.fullmatch(r"(height|width): [\d.]+(px|%);", value or "") for name, value in attributes if name == "style"
    )
    assert all((value or "").startswith("#") for name, value in attributes if name == "href")
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 2  # the data, and our own
    assert len(page.named("case")) == cases


def enemy() -> Report:
    """Return a report in which every text is an attack, or a megabyte long."""
    rows = [row for text in [*PAYLOADS, " ".join(NASTY), *NASTY[-3:]] for row in hostile(text)]
    long = [row for text in ("x" * 1_000_000, "<b>" * 300_000) for row in hostile(text)]
    return Report(PAYLOADS[2], (*rows, *long), warnings=tuple(PAYLOADS), version=PAYLOADS[0])


# -- what it shows ---------------------------------------------------------------------------------------


@given(reports)
@examples(25)
def test_any_report_is_a_page_of_our_own_tags_with_every_case(report: Report) -> None:
    """Whatever the texts hold, no tag and no attribute comes from them, and the data hold every case."""
    page = report.render("html")
    seen = Seen(page)
    assert {tag for tag, _ in seen.tags} <= OURS
    assert len([tag for tag, _ in seen.tags if tag == "script"]) == 2
    assert len(data_of(page)["rows"]) == len(report)


def test_the_page_loads_nothing_and_runs_its_own_script_alone() -> None:
    """There is no link to elsewhere, and a policy that allows one style, one script and no request."""
    page = REPORT.render("html")
    assert "http://" not in page
    assert "https://" not in page
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    form = (
        r"default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'; script-src 'sha256-[^']+'"
    )
    assert re.fullmatch(form, policy[1])


@pytest.fixture(scope="module")
def opened(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Return the page of `REPORT` with its first case open."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "page.html").write_text(REPORT.render("html"), "utf-8")
    return browser.seen(f"{(folder / 'page.html').as_uri()}#case-1")


def test_what_was_quoted_is_marked_in_the_candidate(opened: Seen) -> None:
    """Each quote has a number, at its words and at the criterion that it stands for."""
    assert {attrs.get("data-mark") for _, attrs in opened.tags} - {None} == {"1", "2"}
    assert {attrs.get("data-quote") for _, attrs in opened.tags} - {None} == {"1", "2"}
    assert "not found in the candidate" in opened.text


def test_the_page_shows_scores_gates_votes_paths_parts_and_cost(opened: Seen) -> None:
    """All that the report knows of a case that failed is to be read."""
    for words in ("3.5/5", "gate: refund", "needs 0.80", "no score", "Is it required?", "About slang", "with effort",
                  "a hidden character", "track(4471)", "suites/support.yaml:12:5", "12,400", "$0.0187", "a.yaml:3:1: x"):  # fmt: skip
        assert words in opened.text


def test_an_ungraded_case_shows_a_range_and_no_score(opened: Seen) -> None:
    """What could not be judged has no number, and never 0."""
    assert "0.20–0.90" in opened.text
    (row,) = [row for row in data_of(REPORT.render("html"))["rows"] if row["id"] == "limited"]
    assert "score" not in row


def test_cases_with_cells_stand_in_a_grid() -> None:
    """The last coordinate makes the columns; what else there is, the lines."""
    rows = [
        evolve(PASSED, id=f"greets [model={m}, prompt={p}]", cell=FrozenMap({"model": m, "prompt": p}))
        for m in ("gpt", "claude") for p in ("short", "long")
    ]  # fmt: skip
    page = Seen(Report("s", tuple(rows)).render("html"))
    assert [attrs["href"] for attrs in page.named("chip")] == ["#case-1", "#case-2", "#case-3", "#case-4"]
    assert [attrs.get("scope") for tag, attrs in page.tags if tag == "th"] == [None, "col", "col", "row", "row"]
    assert "greets · gpt" in page.text
    assert "greets · claude" in page.text


# -- highlights ------------------------------------------------------------------------------------------


def test_the_pieces_are_the_candidate() -> None:
    """Nothing is lost between quotes that touch, overlap or lie in one another."""
    found = (quote("Ada, your parcel"), quote("parcel is"), quote("in Oslo"), quote("is in Oslo and arrives"))
    marks = number_quotes(OUTPUT, [entry("c", 1.0, evidence=found)])
    parts = pieces(OUTPUT, marks)
    assert "".join(piece.text for piece in parts) == OUTPUT
    assert sorted(n for piece in parts for n in piece.numbers) == [1, 2, 3, 4]
    assert "".join(p.text for p in parts if p.quoted) == "Ada, your parcel is in Oslo and arrives"


def test_a_quote_that_lies_outside_of_the_candidate_marks_nothing() -> None:
    """A report that was edited by hand breaks no page."""
    odd = (Evidence("x", 5, 5000), Evidence("x", -2, 3), Evidence("x", 4, 4), Evidence("x", 0, 2, "run"), Evidence("x"))
    assert number_quotes(OUTPUT, [entry("c", 1.0, evidence=odd)]) == {}


def test_a_long_candidate_shows_its_ends_and_what_was_quoted() -> None:
    """What is left out is counted."""
    output = "a" * 500_000 + "the quote" + "z" * 500_000
    parts = pieces(output, number_quotes(output, [entry("c", 1.0, evidence=(quote("the quote", output),))]))
    assert sum(len(piece.text) + piece.left_out for piece in parts) == len(output)
    assert [piece.text for piece in parts if piece.quoted] == ["the quote"]
    assert sum(len(piece.text) for piece in parts) < LONGEST + 2_000


# -- in a browser ----------------------------------------------------------------------------------------

RUNS = "<script>document.title = 'pwned'</script>"


def test_the_browser_runs_what_is_in_a_page_without_a_policy(browser: Browser, tmp_path: Path) -> None:
    """The tests below could fail: this browser does run scripts."""
    assert browser.made_of(f"<title>x</title>{RUNS}", tmp_path).title == "pwned"


def test_nothing_in_a_hostile_report_runs_and_no_case_is_lost(browser: Browser, tmp_path: Path) -> None:
    """Attacks in every text field, control characters and megabytes: all cases are there, as text."""
    report = enemy()
    page = report.render("html")
    assert len(data_of(page)["rows"]) == len(report)
    (tmp_path / "page.html").write_text(page, "utf-8", newline="\n")
    tab = browser.open((tmp_path / "page.html").as_uri())
    tab.until("document.documentElement.dataset.ready !== undefined")
    for number in range(len(report)):
        tab.run(f"page.open(page.table.rows.findIndex((row) => row.number === {number}))")
        tab.press("r")
    title, shown = tab.run("document.title"), Seen(tab.run("document.documentElement.outerHTML"))
    assert title.startswith(PAYLOADS[2])
    assert tab.run("performance.getEntriesByType('resource').length") == 0
    assert_harmless(shown, len(shown.named("case")))
    wide = tab.run("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    tab.close()
    tab = browser.open((tmp_path / "page.html").as_uri(), 400)
    tab.until("document.documentElement.dataset.ready !== undefined")
    assert tab.run("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_script_that_got_into_the_page_would_not_run(browser: Browser, tmp_path: Path) -> None:
    """The policy stands behind the escaping."""
    planted = REPORT.render("html").replace("<main>", f"<main>{RUNS}<img src=x onerror=\"document.title='pwned'\">")
    page = browser.made_of(planted, tmp_path)
    assert ("img", {"src": "x", "onerror": "document.title='pwned'"}) in page.tags
    assert page.title.startswith("support")
