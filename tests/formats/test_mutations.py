"""However a file is damaged, it gives a rubric or a `LoadError`, and no other exception."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.errors import LoadError
from rubric.formats.rubrics import dumps, load, loads
from rubric.internals.fields import names_a_file
from rubric.values.rubrics import Rubric
from tests.examples import examples
from tests.places import ROOT
from tests.strategies import any_texts, rubrics

EVERYTHING = ROOT / "tests" / "files" / "everything.yaml"
YAML = EVERYTHING.read_text("utf-8")
DOCUMENTS = {"yaml": YAML, "written": dumps(load(EVERYTHING)), "json": dumps(load(EVERYTHING), format="json")}


def damaged(text: str) -> Iterator[str]:
    """Yield *text* with every other line taken out, doubled, and swapped with the next; and cut short."""
    lines = text.splitlines(keepends=True)
    for n in range(0, len(lines), 2):
        yield "".join(lines[:n] + lines[n + 1 :])
        yield "".join(lines[: n + 1] + lines[n:])
        yield "".join(lines[:n] + lines[n : n + 2][::-1] + lines[n + 2 :])
    for n in range(0, len(text), 97):
        yield text[:n]


def survives(text: str) -> bool:
    """Say whether *text* holds a rubric; any exception but a `LoadError` comes through."""
    try:
        rubric = loads(text, source="damaged.yaml")
    except LoadError as error:
        problems = error.problems
    else:
        assert isinstance(rubric, Rubric)
        return True
    assert problems
    assert all(problem.line >= 1 and problem.column >= 1 and problem.message for problem in problems)
    return False


@pytest.mark.long
@pytest.mark.parametrize("name", DOCUMENTS)
def test_damaged(name: str) -> None:
    """A file with a line missing, doubled or out of place, or cut short, is read or refused."""
    outcomes = [survives(text) for text in damaged(DOCUMENTS[name])]
    assert len(outcomes) > 100
    assert not all(outcomes)


@given(st.data())
def test_one_text_exchanged(data: st.DataObject) -> None:
    """A file with any text in the place of another is read or refused."""
    words = data.draw(st.sampled_from(YAML.split()))
    survives(YAML.replace(words, data.draw(any_texts()), 1))


@given(st.lists(st.sampled_from([*"{}[],:-?|>&*!%@`'\"#\\ \n\t~<=a1", "text: ", "criteria:", "- ", "\\U", "0x", "<<"])))
def test_any_punctuation(parts: list[str]) -> None:
    """Any heap of the characters that mean something in YAML is read or refused."""
    survives("".join(parts))


@given(st.text().filter(lambda text: not names_a_file(text)))
def test_any_text(text: str) -> None:
    """Any text is read or refused; one that looks like a path is refused as such."""
    survives(text)


@examples(100)
@given(rubrics(), st.data())
def test_damaged_rubric(rubric: Rubric, data: st.DataObject) -> None:
    """Any rubric with a piece of its file missing is read or refused."""
    text = dumps(rubric)
    start = data.draw(st.integers(0, len(text)))
    survives(text[:start] + text[start + data.draw(st.integers(1, 20)) :])
