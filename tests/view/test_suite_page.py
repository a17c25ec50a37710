"""The HTML page: what it shows, and that a stranger's text in it stays text, in a real browser too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import evolve
from hypothesis import given

from rubric.internals.frozen_map import FrozenMap
from rubric.suites.report import Report
from rubric.values.findings import Evidence
from rubric.view.quotes import LONGEST_OUTPUT as LONGEST
from rubric.view.quotes import numbered, pieces
from tests.browsers import Seen, dom_of
from tests.examples import examples
from tests.reports import FAILED, NASTY, OUTPUT, PASSED, PAYLOADS, REPORT, entry, hostile, quote, reports

if TYPE_CHECKING:
    from pathlib import Path

OURS = {
    "html", "head", "meta", "title", "style", "body", "div", "header", "h1", "h2", "h3", "span", "b", "p", "svg", "rect", "line",
    "input", "nav", "label", "main", "table", "thead", "tbody", "tr", "th", "td", "a", "details", "summary", "section",
    "ul", "ol", "li", "small", "strong", "blockquote", "pre", "mark", "footer",
}  # fmt: skip


def assert_harmless(page: Seen, cases: int) -> None:
    """Assert that *page* holds our own tags alone, links within itself, and so many cases."""
    assert {tag for tag, _ in page.tags} <= OURS
    attributes = [(name, value) for _, attrs in page.tags for name, value in attrs.items()]
    assert not [name for name, _ in attributes if name.startswith("on") or name in ("src", "style", "srcdoc", "action")]
    assert all((value or "").startswith("#") for name, value in attributes if name == "href")
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
    """Whatever the texts hold, no tag and no attribute comes from them."""
    assert_harmless(Seen(report.render("html")), len(report))


def test_the_page_loads_and_runs_nothing() -> None:
    """There is no script, no link to elsewhere, and a policy that allows none."""
    page = REPORT.render("html")
    assert "<script" not in page
    assert "http://" not in page
    assert "https://" not in page
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy[1]


def test_what_was_quoted_is_marked_in_the_candidate() -> None:
    """Each quote has a number, at its words and at the criterion that it stands for."""
    page = Seen(Report("s", (FAILED,)).render("html"))
    anchors = {attrs.get("id") for _, attrs in page.tags}
    links = {attrs["href"] for _, attrs in page.tags if (attrs.get("href") or "").startswith("#case-1-q")}
    assert links == {"#case-1-q1", "#case-1-q2"}
    assert {link[1:] for link in links if link} <= anchors
    assert "not found in the candidate" in page.text


def test_the_page_shows_scores_gates_votes_paths_parts_and_cost() -> None:
    """All that the report knows of a case that failed is to be read."""
    text = Seen(REPORT.render("html")).text
    for words in ("3.5/5", "gate: refund", "0.620, needs 0.8", "no score", "Is it required?", "About slang", "with effort",
                  "a hidden character", "track(4471)", "suites/support.yaml:12:5", "12,400", "$0.0187", "a.yaml:3:1: x"):  # fmt: skip
        assert words in text


def test_the_threshold_is_marked_on_the_bar() -> None:
    """A bar ends at the score; a mark stands where it had to end."""
    page = Seen(Report("s", (FAILED,)).render("html"))
    assert {"class": "needs", "x1": "80.00", "x2": "80.00", "y2": "8"} in [attrs for _, attrs in page.tags]
    assert {"class": "failed", "width": "62.00", "height": "8"} in [attrs for _, attrs in page.tags]


def test_an_ungraded_case_shows_a_range_and_no_score() -> None:
    """What could not be judged has no number, and never 0."""
    page = Seen(Report("s", (REPORT["limited"],)).render("html"))
    assert "0.20–0.90" in page.text
    assert [attrs.get("width") for attrs in page.named("may")] == ["70.00"]
    assert not [attrs for attrs in page.named("ungraded") if attrs.get("width") == "0.00"]


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
    marks = numbered(OUTPUT, [entry("c", 1.0, evidence=found)])
    parts = pieces(OUTPUT, marks)
    assert "".join(piece.text for piece in parts) == OUTPUT
    assert sorted(n for piece in parts for n in piece.numbers) == [1, 2, 3, 4]
    assert "".join(p.text for p in parts if p.quoted) == "Ada, your parcel is in Oslo and arrives"


def test_a_quote_that_lies_outside_of_the_candidate_marks_nothing() -> None:
    """A report that was edited by hand breaks no page."""
    odd = (Evidence("x", 5, 5000), Evidence("x", -2, 3), Evidence("x", 4, 4), Evidence("x", 0, 2, "run"), Evidence("x"))
    assert numbered(OUTPUT, [entry("c", 1.0, evidence=odd)]) == {}


def test_a_long_candidate_shows_its_ends_and_what_was_quoted() -> None:
    """What is left out is counted."""
    output = "a" * 500_000 + "the quote" + "z" * 500_000
    parts = pieces(output, numbered(output, [entry("c", 1.0, evidence=(quote("the quote", output),))]))
    assert sum(len(piece.text) + piece.left_out for piece in parts) == len(output)
    assert [piece.text for piece in parts if piece.quoted] == ["the quote"]
    assert sum(len(piece.text) for piece in parts) < LONGEST + 2_000


# -- in a browser ----------------------------------------------------------------------------------------

RUNS = "<script>document.title = 'pwned'</script>"


def test_the_browser_runs_what_is_in_a_page_without_a_policy(tmp_path: Path) -> None:
    """The tests below could fail: this browser does run scripts."""
    assert dom_of(f"<title>x</title>{RUNS}", tmp_path).title == "pwned"


def test_nothing_in_a_hostile_report_runs_and_no_case_is_lost(tmp_path: Path) -> None:
    """Attacks in every text field, control characters and megabytes: all cases are there, as text."""
    report = enemy()
    page = dom_of(report.render("html"), tmp_path)
    assert page.title != "pwned"
    assert page.title.startswith(PAYLOADS[2])
    assert_harmless(page, len(report))
    assert RUNS.replace(" = ", "=") in page.text


def test_a_script_that_got_into_the_page_would_not_run(tmp_path: Path) -> None:
    """The policy stands behind the escaping."""
    planted = REPORT.render("html").replace("<main>", f"<main>{RUNS}<img src=x onerror=\"document.title='pwned'\">")
    page = dom_of(planted, tmp_path)
    assert ("script", {}) in page.tags
    assert page.title.startswith("support")


MEASURE = """<script>
const shown = () => [...document.querySelectorAll('.case')].filter(e => e.offsetParent !== null).length;
const counts = ['all', 'failed', 'ungraded', 'deferred', 'passed'].map(name => {
  document.getElementById('show-' + name).checked = true;
  return shown();
});
const look = getComputedStyle(document.querySelector('.badge.failed'));
document.title = [...counts, document.documentElement.scrollWidth <= innerWidth, look.borderRadius].join(' ');
</script>"""


def measured(report: Report, folder: Path, width: int) -> str:
    """Return how many cases each filter leaves, whether the page fits its window, and whether it is styled."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", report.render("html"))
    return dom_of(page.replace("</body>", f"{MEASURE}</body>"), folder, width).title


def test_the_filter_shows_the_cases_of_one_status(tmp_path: Path) -> None:
    """It works by the style sheet alone."""
    assert measured(REPORT, tmp_path, 1280) == "4 1 1 1 1 true 16px"


def test_a_hostile_report_does_not_widen_the_page(tmp_path: Path) -> None:
    """Words of a megabyte are broken, on a small screen too."""
    report = enemy()
    everything = f"{len(report)} {len(report)} 0 0 0 true 16px"
    assert measured(report, tmp_path, 500) == everything
