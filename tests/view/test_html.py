"""The pieces of cards and pages: what they show, and that untrusted text in them stays text, in a real browser too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rubric import ask
from rubric.values.findings import Step
from rubric.view import html
from rubric.view.cards import draw_scores
from tests.browsers import Browser, Seen
from tests.examples import examples
from tests.reports import NASTY, PAYLOADS, texts

if TYPE_CHECKING:
    from pathlib import Path

TREE = ask("Is it there?").yes(ask("Is it warm?").yes(1.0).no(0.4, "cold")).no(0.0)


def every_piece(words: str) -> html.Html:
    """Return each piece with *words* wherever it takes a text."""
    tree = ask(f"? {words}").yes(1.0, words).no(ask(f"? {words}").yes(0.5).no(0.0))
    return html.card(
        html.header(words, html.badge(words, "passed"), title=words),
        html.facts((words, words)),
        html.table((words, words), [(words, html.band(0.1, 0.2, 0.9))]),
        html.section(words, html.notice(words), html.fold(words, html.candidate(words))),
        html.tree(tree, (Step(words, yes=False, score=0.1), Step(words, yes=True, score=0.9))),
        html.tag("a", words, href=f"#{words}", title=words),
        words,
    )


@examples(50)
@given(texts)
def test_a_text_makes_no_tag_and_no_attribute(words: str) -> None:
    """Any text leaves each piece with the tags and attributes that plain words give."""
    usual, odd = Seen(every_piece("plain words")), Seen(every_piece(words))
    assert {tag for tag, _ in odd.tags} <= {tag for tag, _ in usual.tags}
    assert {name for _, attrs in odd.tags for name in attrs} <= {name for _, attrs in usual.tags for name in attrs}


def test_attacks_in_every_piece_run_nothing(browser: Browser, tmp_path: Path) -> None:
    """A browser shows all cards, keeps the title, and finds no script and no image."""
    pieces = [every_piece(words) for words in NASTY]
    page = browser.made_of(html.page(PAYLOADS[0], *pieces), tmp_path)
    assert page.title == PAYLOADS[0]
    assert len(page.named("card")) == len(NASTY)
    assert not [tag for tag, _ in page.tags if tag in ("script", "img")]


def test_without_a_policy_attacks_in_a_notebook_run_nothing_either(browser: Browser, tmp_path: Path) -> None:
    """Escaping alone protects a page that has no content policy."""
    pieces = html.fragment(*[every_piece(words) for words in PAYLOADS])
    assert browser.made_of(f"<!DOCTYPE html><title>mine</title>{pieces}", tmp_path).title == "mine"


def test_text_is_escaped_once() -> None:
    """Markup that was made here is kept; plain text beside it is escaped."""
    assert html.join(("a & b", html.tag("b", "<i>"))) == "a &amp; b<b>&lt;i&gt;</b>"


def test_what_is_none_is_left_out() -> None:
    """Attributes and children that are None or False do not appear."""
    assert html.tag("p", None, "x", class_=None, open=False) == "<p>x</p>"


def test_a_threshold_is_marked_on_a_bar() -> None:
    """Score and threshold stand at their percentages."""
    page = Seen(html.bar(0.62, mark=0.8, kind="failed"))
    assert {"class": "failed", "width": "62.00", "height": "8"} in [attrs for _, attrs in page.tags]
    assert [attrs["x1"] for attrs in page.named("needs")] == ["80.00"]


@pytest.mark.parametrize(("low", "value", "high"), [(0.2, 0.5, 0.9), (0.9, None, 0.2), (-1, 0.5, 7)])
def test_a_band_stays_within_the_bar(low: float, value: float | None, high: float) -> None:
    """Swapped and excessive bounds are cut to the bar."""
    (span,) = Seen(html.band(low, value, high)).named("may")
    start, width = float(span["x"] or 0), float(span["width"] or 0)
    assert start >= 0
    assert start + width <= 100


def test_a_histogram_draws_each_score_in_its_bin() -> None:
    """Each bin's title counts its scores, also at 0 and 1."""
    drawn = Seen(draw_scores({"passed": [1.0, 0.97, 0.3], "failed": [0.3, 0.0]}, mark=0.7))
    titles = "".join([*drawn.words, drawn.title])
    assert "0.95 to 1.00: 2 passed" in titles
    assert "0.30 to 0.35: 1 passed" in titles
    assert "0.30 to 0.35: 1 failed" in titles
    assert "0.00 to 0.05: 1 failed" in titles


def test_a_histogram_of_nothing_is_empty() -> None:
    """Without scores there is no rectangle."""
    assert not [tag for tag, _ in Seen(draw_scores({})).tags if tag == "rect"]


def test_a_drawn_tree_marks_the_walk_to_its_leaf() -> None:
    """Two steps mark two questions and a leaf; without a walk nothing is marked."""
    path = (Step("Is it there?", yes=True, score=0.9), Step("Is it warm?", yes=False, score=0.2))
    drawn = Seen(html.tree(TREE, path))
    assert len(drawn.named("walked")) == 3
    assert "no0.4cold" in drawn.text
    assert not Seen(html.tree(TREE)).named("walked")


def test_a_walk_that_stopped_early_marks_what_it_reached() -> None:
    """One step marks its question and the next one."""
    assert len(Seen(html.tree(TREE, (Step("Is it there?", yes=True, score=1.0),))).named("walked")) == 2
