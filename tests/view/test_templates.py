"""Templates: what they escape, in whole pages, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import UndefinedError

from rubric import Candidate, Judge, Rubric, ask, evaluate, grade_many
from rubric.labelling.drawing import Draw
from rubric.labelling.page import LabelPage
from rubric.results.collection import Grades
from rubric.testing import ScriptedModel
from rubric.view import html, store_page, suite_page
from tests.browsers import Seen
from tests.reports import PAYLOADS, hostile

HIDDEN = "\u202e\u200b\U000e0041"
"""A control of direction, a character without width, and a tag."""


def pages(words: str, folder: Path) -> dict[str, str]:
    """Return each kind of page with *words* wherever a stranger's text may stand."""
    rubric = Rubric(f"r {words}", guidelines=words).expects(f"Warm {words}", id="a").scores(f"Kind {words}", id="b")
    rubric = rubric.decides("t", by=ask(f"? {words}").yes(1.0).no(0.0))
    results = grade_many([Candidate(f"warm {words}", input=words)], rubric, "offline")
    grades = Grades(list(results))
    grades.report(folder / "page.html", title=words)
    store = folder / "replies.store"
    evaluate(f"hello {words}", Rubric("z").expects(f"Good {words}", id="g"), ScriptedModel({"g": True}), store=store)
    evaluate("x y z", Rubric("z").expects("Good", id="g"), Judge(ScriptedModel({"g": False})), store=store)
    label = LabelPage(rubric, Draw.of(["k"]), [Candidate(words, input=words, key="k")], title=words)
    return {
        "results": (folder / "page.html").read_text("utf-8"),
        "suite": suite_page.render(hostile(words)),
        "store": store_page.page(store, store_page.Query(words, words)),
        "calls": store_page.page(store, store_page.Query()),
        "label": label.html(mode="file"),
    }


def test_hostile_texts_add_nothing_to_any_page(tmp_path: Path) -> None:
    """Every page has the tags and attributes that plain words give, and its policy."""
    plain = {name: Seen(page) for name, page in pages("plain words", _folder(tmp_path, "plain")).items()}
    for number, payload in enumerate(PAYLOADS):
        for name, page in pages(payload, _folder(tmp_path, str(number))).items():
            odd = Seen(page)
            assert {tag for tag, _ in odd.tags} <= {tag for tag, _ in plain[name].tags}, name
            names = {key for _, attrs in plain[name].tags for key in attrs}
            assert {key for _, attrs in odd.tags for key in attrs} <= names, name
            assert "default-src 'none'" in page


def _folder(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def test_a_template_shows_hidden_characters() -> None:
    """A value is escaped as `escape` does it: markup becomes text, and invisible characters are written out."""
    page = html.page(f"<b>'\"{HIDDEN}", f"<i>{HIDDEN}", footer=f"<u>{HIDDEN}")
    assert not any(char in page for char in HIDDEN)
    assert not {"b", "i", "u"} & {tag for tag, _ in Seen(page).tags}
    assert "\\u{202e}" in page


def test_a_template_without_one_of_its_values_is_an_error() -> None:
    """A name that a template misses raises; it would leave a gap in a page."""
    with pytest.raises(UndefinedError):
        html.render("page.html", title="t")
