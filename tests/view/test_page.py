"""The page of a run in a real browser: what failed first, the table, its filters and keys, and one candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from attrs import evolve

from rubric import Grades
from rubric.results.report_rows import Entry, Row, RowBuilder
from rubric.suites.report import Report
from rubric.values.findings import Evidence
from rubric.view.page import page, rows_data
from rubric.view.run_data import alone
from tests.browsers import Browser, Tab, data_of
from tests.reports import entry
from tests.view.runs import SUPPORT, large, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READY = "document.documentElement.dataset.ready !== undefined"
SHOWN = "page.table.rows.length"


@pytest.fixture(scope="module")
def grades() -> Grades:
    return run(60)


@pytest.fixture(scope="module")
def address(grades: Grades, tmp_path_factory: pytest.TempPathFactory) -> str:
    return grades.report(tmp_path_factory.mktemp("run") / "page.html").as_uri()


@pytest.fixture
def tab(browser: Browser, address: str) -> Iterator[Tab]:
    tab = browser.open(address)
    tab.until(READY)
    yield tab
    tab.close()


# -- the table and its filters ---------------------------------------------------------------------------


def test_failing_candidates_come_first_and_ungraded_ones_between(tab: Tab, grades: Grades) -> None:
    """Without a click the worst failure is on top, and passes are at the end."""
    order = tab.run("page.table.rows.map((row) => row.status)")
    assert order == ["failed"] * len(grades.failed) + ["ungraded"] * len(grades.ungraded) + ["passed"] * len(
        grades.passed
    )
    scores = tab.run("page.table.rows.filter((row) => row.status === 'failed').map((row) => row.score)")
    assert scores == sorted(scores)


def test_cells_hold_the_answer_as_text(tab: Tab) -> None:
    """Yes and no, levels by their words and choices by their names stand in the cells, each with a sign."""
    cells = tab.run("[...document.querySelectorAll('td.criterion')].map((cell) => cell.innerText)")
    assert {"✓ yes", "✕ no", "✓ warm", "✓ 10: at once"} <= {*cells}
    widths = tab.run(
        "[...document.querySelector('tr.case').children].map((cell) => cell.getBoundingClientRect().width)"
    )
    assert min(widths) > 80  # the column of costs, too


def test_words_are_searched_in_reasons_and_kept_in_the_address(tab: Tab, grades: Grades) -> None:
    """`/` leads to the search; `reason:` searches reasons alone; the address finds the same again."""
    tab.press("/")
    tab.type("reason:invoice")
    said = [[*each.findings, *(finding for vote in each.votes for finding in vote.findings)] for each in grades]
    expected = sum(any("invoice" in finding.reason for finding in findings) for findings in said)
    assert tab.run(SHOWN) == expected > 0
    assert f"of {expected} (60 in all)" in tab.text
    address = tab.run("location.href")
    again = tab.browser.open(address)
    again.until(READY)
    assert again.run(SHOWN) == expected
    again.close()


def test_filters_by_criterion_verdict_and_flag_count_right(tab: Tab, grades: Grades) -> None:
    """Each filter leaves the rows that the results have, and several are joined by and."""
    falls = [
        each for each in grades if (each.contributions.get("answers") or 0) < 1 and "answers" in each.contributions
    ]
    assert tab.run("page.change({answers: [['answers', 'falls short']]}), " + SHOWN) == len(falls)
    assert tab.run("page.change({show: 'ungraded'}), " + SHOWN) == len([each for each in falls if each.score is None])
    assert tab.run("page.change(nothing()), page.change({group: 'day 2'}), " + SHOWN) == 12
    undecided = sum(each.score is None and each.passed is None for each in grades)
    assert tab.run("page.change(nothing()), page.change({is: ['undecided']}), " + SHOWN) == undecided
    split = [each for each in grades if len({vote.verdict for vote in each.votes}) > 1]
    assert tab.run("page.change(nothing()), page.change({is: ['judges disagree']}), " + SHOWN) >= len(split)


def test_any_column_sorts_both_ways(tab: Tab) -> None:
    """A click on a head sorts by it, a second one the other way, a third one as at first."""
    click = "document.querySelector('[data-key=id] button').click(), page.table.rows.map((row) => row.id)"
    up, down, first = tab.run(click), tab.run(click), tab.run(click)
    assert up == sorted(up)
    assert down == up[::-1]
    assert first != up


def test_the_keyboard_alone_walks_opens_and_closes(tab: Tab) -> None:
    """`n` opens the next that does not pass, `j` the one after it, `r` shows the text as written, Escape closes."""
    tab.press("n", "j", "j", "k")
    assert tab.run("page.table.current") == 1
    assert tab.run("document.querySelector('#detail h2').innerText") == tab.run("page.table.rows[1].id")
    assert tab.run("document.querySelector('.markdown .heading').innerText.startsWith('Your parcel')")
    tab.press("r")
    assert "## Your parcel" in tab.run("document.querySelector('.said-by pre.as-written').innerText")
    tab.press("r", "Escape", "?")
    assert tab.run("document.getElementById('detail').hidden")
    assert tab.run("document.getElementById('help').open")
    tab.press("Escape")
    assert not tab.run("document.getElementById('help').open")


def test_every_key_of_the_list_does_what_it_says(tab: Tab) -> None:
    """`p` goes back, arrows walk, Enter opens, Enter in the search goes on to the rows, `x` clears all filters."""
    tab.press("ArrowDown", "ArrowDown", "ArrowUp")
    assert tab.run("[page.table.current, page.state.row]") == [1, -1]
    tab.press("Enter")
    assert tab.run("page.state.row === page.table.rows[1].number")
    tab.press("n", "p", "p")
    assert tab.run("page.table.current") == 0
    tab.press("Escape", "/")
    tab.type("voucher")
    tab.press("Enter", "j", "Enter")
    assert tab.run("document.activeElement === page.table.table")
    assert tab.run("page.state.row === page.table.rows[1].number")
    tab.run("page.change({answers: [['cites', 'falls short']], is: ['gate failed'], group: 'day 1', show: 'failed'})")
    tab.press("x")
    assert tab.run(f"[{SHOWN}, page.state.q, document.getElementById('q').value]") == [60, "", ""]
    tab.press("/", "x", "Escape")
    kept = "[page.state.q, document.getElementById('q').value, document.activeElement === document.body]"
    assert tab.run(kept) == ["x", "x", True]
    named = {key for keys, _ in tab.run("KEYS") for key in keys.split(", ")}
    assert named == {"j", "↓", "k", "↑", "n", "p", "Enter", "Escape", "/", "r", "x", "?"}


def test_below_600_pixels_rows_are_cards(browser: Browser, address: str) -> None:
    """On a small screen a row names what it falls short of, and nothing is wider than the screen."""
    tab = browser.open(address, 400)
    tab.until(READY)
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")
    assert tab.run("getComputedStyle(document.querySelector('.run-table thead')).display") == "none"
    assert "✕\u00a0cites" in tab.run("document.getElementById('rows').innerText")
    tab.close()


# -- one candidate ---------------------------------------------------------------------------------------


def test_a_quote_leads_to_its_words_and_back(tab: Tab) -> None:
    """The number at a quote scrolls to the words in the text, and the one there back to the criterion."""
    tab.run("page.open(page.table.rows.findIndex((row) => row.cells.get(1).quotes))")
    marks = tab.run("[...document.querySelectorAll('.said-by mark')].map((mark) => mark.firstChild.textContent)")
    assert "Track it with the link in our mail." in "".join(marks)
    tab.run("document.querySelector('[data-quote]').click()")
    assert tab.until("document.querySelector('mark.shown') !== null")
    tab.run("document.querySelector('[data-mark]').click()")
    assert tab.until("document.querySelector('blockquote.shown') !== null")


def test_markdown_keeps_every_letter_and_makes_no_tag(tab: Tab) -> None:
    """Markup in Markdown is shown as text, in the order in which it was written."""
    text = "# A <b>x</b>\n\n* one\n  - two <img src=x onerror=alert(1)>\n1. three\n\n> four\n\n| a | b |\n|---|---|\n| c | `d` |\n\n```js\n<script>e()</script>\n```\n[f](javascript:g) **h** _i_"
    made = tab.run(
        f"((made) => [made.innerHTML, made.textContent, [...made.querySelectorAll('*')].map((e) => e.localName)])(markdown({text!r}))"
    )
    assert {*made[2]} <= {
        "p",
        "ul",
        "ol",
        "li",
        "blockquote",
        "div",
        "table",
        "tr",
        "th",
        "td",
        "code",
        "pre",
        "span",
        "strong",
        "em",
    }
    for words in (
        "<b>x</b>",
        "two <img src=x onerror=alert(1)>",
        "three",
        "four",
        "<script>e()</script>",
        "javascript:g",
        "h",
        "i",
    ):
        assert words in made[1]


@pytest.mark.parametrize(
    ("old", "now"), [("a b c", "a x c"), ("", "new"), ("same", "same"), ("one two", "two one"), ("ü ñ\n", "ü  ñ")]
)
def test_the_differences_of_two_texts_give_both_again(tab: Tab, old: str, now: str) -> None:
    """What is the same and old is the old text, what is the same and new the new one."""
    parts = tab.run(f"differences({old!r}, {now!r})")
    assert "".join(words for kind, words in parts if kind != "new") == old
    assert "".join(words for kind, words in parts if kind != "old") == now


# -- what failed, first ----------------------------------------------------------------------------------


def test_what_a_criterion_costs_is_what_rescoring_says(grades: Grades) -> None:
    """Of a criterion that alone costs the pass, meeting it passes; of any other it does not."""
    data = data_of(page("t", "h", rows_data([]), passed=True, counts={}))
    assert data == {"criteria": [], "rows": []}
    for result in grades.failed:
        if result.votes:
            continue
        row = RowBuilder().of(result)
        for n, (criterion, finding) in enumerate(zip(SUPPORT.criteria, result.findings, strict=True)):
            here = (Evidence("H", 0, 1),) if criterion.evidence else ()
            met: Any = evolve(cast("Any", finding), score=0.0 if criterion.polarity == "guard" else 1.0, evidence=here)
            changed = evolve(result, findings=(*result.findings[:n], met, *result.findings[n + 1 :])).rescore()
            assert (n in alone(row)) == changed.passed, (row.id, criterion.id)


def test_a_report_from_a_file_counts_what_every_rule_agrees_on() -> None:
    """Without the rubric a mean and a worst-of rule that both give the score have to agree."""
    base = Row("a", "failed", 0.5, "fail", threshold=0.7, entries=(entry("x", 0.0), entry("y", 1.0)))
    assert alone(base) == [0]
    assert alone(evolve(base, score=0.0, entries=(entry("x", 0.0), entry("y", 0.0)))) == []
    assert alone(evolve(base, score=0.9)) == []  # no rule that is known gives this score
    assert alone(evolve(base, status="ungraded", score=None)) == []
    gated = (entry("x", 0.0, gated=True), entry("y", 1.0), entry("z", 1.0), entry("w", 1.0))
    assert alone(evolve(base, score=0.75, gates=("x",), entries=gated)) == [0]


def test_criteria_are_listed_by_what_they_cost_each_as_a_filter(tab: Tab, grades: Grades) -> None:
    """The first criterion costs the most passes by itself; its button shows the rows that fall short of it."""
    alone_ = tab.run("costsOf(page.data).map((one) => one.alone)")
    assert alone_ == sorted(alone_, reverse=True)
    tab.run("document.querySelector('.cost-list button.cost').click()")
    assert tab.run("page.state.answers[0][1]") == "falls short"
    assert tab.run(SHOWN) == tab.run("costsOf(page.data)[0].short") > 0
    split = tab.run("page.table.rows.filter((row) => row.disagrees).length")
    assert f"judges disagree {split}" in tab.run("document.getElementById('flags').innerText")
    assert tab.run("document.getElementById('work').getBoundingClientRect().top < innerHeight / 2")
    tab.run("document.querySelector('.cost-list button.cost').click()")
    assert tab.run(SHOWN) == len(grades)


def test_alike_reasons_are_one_group(browser: Browser, tmp_path: Path) -> None:
    """Reasons that differ in numbers, quotations and some words are one group; others are their own."""
    said = ['It promises 10 % "at once".', 'It promises 99 % "now".', "It promises too much.", "There is no article."]
    rows = tuple(
        Row(f"r{n}", "failed", 0.0, "fail", threshold=0.5, entries=(Entry("a", "A", "scored", 0.0, 0.0, reason=why),))
        for n, why in enumerate(said)
    )
    path = Report("s", rows).write(tmp_path / "page.html")
    tab = browser.open(path.as_uri())
    tab.until(READY)
    assert tab.run("alikeReasons(page.data, 0).map((group) => group.rows.length)") == [3, 1] or tab.run(
        "alikeReasons(page.data, 0).map((group) => group.rows.length)"
    ) == [2, 1, 1]
    tab.close()


# -- many ------------------------------------------------------------------------------------------------


def test_a_large_page_holds_its_data_compressed_and_draws_what_is_in_sight(browser: Browser, tmp_path: Path) -> None:
    """Two thousand rows are all there, and some dozens of them are drawn."""
    path = large(2_000).report(tmp_path / "page.html")
    assert 'data-packed="deflate"' in path.read_text("utf-8")
    tab = browser.open(path.as_uri())
    tab.until(READY)
    assert tab.run(SHOWN) == 2_000
    assert tab.run("document.querySelectorAll('tr.case').length") < 80
    tab.run("page.table.choose(1999)")
    assert tab.run("document.querySelector('tr.current').dataset.at") == "1999"
    tab.close()
