"""Nouns in notebooks: Markdown that shows what is there, and that no cell can break out of."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rubric import Contains, Grade, Judge, Jury, Panel, Rubric, ask
from rubric.internals.text import cell, shorten, table
from rubric.testing.scripted_model import Says, ScriptedModel
from tests.drive import drive
from tests.examples import examples
from tests.strategies import any_texts, rubrics, texts

_BAR = re.compile(r"(?<!\\)(?:\\\\)*\|")


@given(any_texts(60))
def test_a_cell_stays_one_cell(text: str) -> None:
    """One line, no bare bar, no tag, no emphasis."""
    shown = cell(text)
    assert len(shown.splitlines()) <= 1
    assert not _BAR.search(shown)
    assert "<" not in shown
    assert not re.search(r"(?<!\\)(?:\\\\)*[*_`\[\]$~]", shown)


@given(st.lists(st.tuples(any_texts(), any_texts()), max_size=4))
def test_a_table_has_as_many_cells_as_it_was_given(rows: list[tuple[str, str]]) -> None:
    """Whatever stands in them."""
    lines = table(("a", "b"), rows).split("\n")
    assert len(lines) == 2 + len(rows)
    assert {len(_BAR.findall(line)) for line in lines} == {3}


@examples(100)
@given(rubrics())
def test_a_rubric_shows_a_row_a_criterion(value: Rubric) -> None:
    """Its name cannot add lines, nor can anything else."""
    lines = value._repr_markdown_().split("\n")
    assert len(lines) == 4 + len(value.judged)
    assert "<" not in lines[0]


def test_a_rubric_tells_what_hangs_on_each_criterion() -> None:
    """Answer, polarity, gate and weight."""
    rubric = (
        Rubric("reply: a <b>")
        .requires("Answers", id="a")
        .rates("Clear", {1: "no", 5: "yes"}, id="b", min_score=0.5, weight=2)
        .forbids("Lies", id="c")
        .checks(Contains("x"), id="d")
        .decides("t", by=ask("q").yes(1).no(0), id="t")
    )
    assert rubric._repr_markdown_() == (
        "**reply: a &lt;b&gt;** (5 criteria, pass at 0.7)\n\n"
        "| id | criterion | answer | weight |\n"
        "|---|---|---|---|\n"
        "| a | Answers | yes or no, required | 1 |\n"
        "| b | Clear | 1..5 (anchors 1, 5), at least 0.5 | 2 |\n"
        "| c | Lies | yes or no, guard | 1 |\n"
        "| d | contains 'x' | check | 1 |\n"
        "| t | t | tree | 1 |"
    )
    assert str(rubric) == "<Rubric 'reply: a <b>': 5 criteria, pass at 0.7>"


@given(texts(), any_texts(60), any_texts(60))
def test_a_grade_shows_strangers_words_in_their_cells_only(text: str, reason: str, quote: str) -> None:
    """Neither the judge's reason nor its quotes can add a row."""
    rubric = Rubric(evidence=True).expects(text, id="a")
    result = drive(rubric, Judge(ScriptedModel([Says(True, reason=reason, evidence=(quote,))])))
    assert isinstance(result, Grade)
    assert len(result._repr_markdown_().split("\n")) == 5


def test_the_members_of_a_panel_are_shown() -> None:
    """A row a vote; judges show themselves too."""
    panel = Panel([Judge(ScriptedModel([True])), Jury(Judge(ScriptedModel([True, False])), 2)], weights=[1, 2])
    shown = drive(Rubric().expects("a"), panel)._repr_markdown_()
    assert "| vote | verdict | result |" in shown
    assert shown.count("\n| ScriptedModel | pass |") == 1
    assert "| judge | weight |" in panel._repr_markdown_()
    assert Judge("openai/gpt")._repr_markdown_().startswith("| judge | settings |")
    assert Jury("openai/gpt", 3)._repr_markdown_().startswith("jury of 3, consensus 0.5: ")


@given(any_texts(300), st.integers(1, 50))
def test_shortened_text_is_one_line_of_at_most_so_many_characters(text: str, limit: int) -> None:
    """And whole where it fits."""
    short = shorten(text, limit)
    assert len(short) <= limit
    assert len(short.splitlines()) <= 1
