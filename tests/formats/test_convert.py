"""Conversions: what a file of another system holds comes back, losses are told, and a proof replays a run."""

from __future__ import annotations

import pytest

from rubric import Criterion, Rubric
from rubric.errors import DumpError
from rubric.formats.suites import convert, loads_suite
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from tests.rows import each_row
from tests.suite_help import GOOD


@each_row("form", ["promptfoo", "native"])
@each_row("value", [float("nan"), {1, 2}, b"x"])
def test_a_value_that_no_file_can_hold_is_refused(form: str, value: object) -> None:
    """Whatever the format is, it is a `DumpError` that says what can be written."""
    case = Case("a", Rubric(criteria=[Criterion("Is warm")]), output=GOOD, metadata={"note": value})
    with pytest.raises(DumpError, match="use texts, finite numbers, booleans, lists and mappings"):
        convert(Suite("s", [case]), form)


def test_a_loss_beside_another_is_told_too() -> None:
    """What an empty output comes to is told, though the loss of a criterion is told as well."""
    text = "suite: s\ncases: [{output: '', rubric: {criteria: [{polarity: guard, check: {contains: Paris}}]}}]"
    dropped = convert(loads_suite(text), "promptfoo").dropped
    assert any("fails the grade by itself" in loss for loss in dropped)
    assert any("degenerate would be read otherwise" in loss for loss in dropped)


def test_a_file_that_would_grade_nothing_is_refused() -> None:
    """It would not load; the reason is that of the first loss."""
    rubric = Rubric(criteria=[Criterion("Blames the reader", id="blames", polarity="penalty")])
    with pytest.raises(DumpError, match="nothing is left of it to grade by"):
        convert(Suite("s", [Case("a", rubric, output=GOOD)]), "promptfoo")
