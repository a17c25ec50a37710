"""Cascades as the judges of a suite's cases."""

from __future__ import annotations

import pytest

from rubric import Jury
from rubric.formats.suites import convert
from rubric.models.api_keys import why_keyless
from rubric.values.judges import Cascade
from tests.suite_help import TWO, asks_of, one, saying


@pytest.mark.parametrize(("says", "asked"), [(True, 0), (False, 1)])
def test_a_cascade_goes_on_by_what_it_finds_of_its_own_share(*, says: bool, asked: int) -> None:
    """Another judge's criterion counts in both results, and does not make it go on."""
    first, then, other = saying(version=says), saying(version=True), saying(warm=False)
    suite = one(TWO, judge=Cascade(first, then, when="fails"), judges={"warm": other})
    row = suite.run()["a"]
    assert (len(asks_of(first)), len(asks_of(then)), len(asks_of(other))) == (1, asked, 1)
    assert ([vote.score for vote in row.votes][-1], row.score) == (0.5, 0.5)
    assert row.usage.calls == 2 + asked


def test_a_cascade_is_named_in_words() -> None:
    """With both of its judges."""
    bench = Cascade("offline", Jury("openai/gpt-9", 3), when="fails")
    assert bench.name == "cascade: offline, then jury of 3: openai/gpt-9"
    assert [judge.name for judge in bench.single_judges()] == ["offline", "openai/gpt-9"]


def test_a_cascade_needs_the_keys_of_both() -> None:
    """Nobody knows beforehand whether the second is asked."""
    assert "OPENAI_API_KEY" in why_keyless(Cascade("offline", "openai/gpt-4o-mini", when="fails"), {})
    assert why_keyless(Cascade("offline", "offline", when="fails"), {}) == ""


def test_a_format_without_cascades_says_what_it_loses() -> None:
    """It is not left out in silence."""
    plain = convert(one(), "promptfoo").dropped
    told = convert(one(judge=Cascade("a", "b", when="fails")), "promptfoo").dropped
    assert len(told) > len(plain)
