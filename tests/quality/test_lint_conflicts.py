"""Checks that exclude or imply one another are those that a comparison of all pairs finds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Contains, ContainsAll, Criterion, EndsWith, Equals, Rubric, StartsWith
from rubric.quality.lint import lint
from rubric.quality.lint_conflicts import excluding, implications, meets

WORDS = st.sampled_from(["a", "b", "A", "ab", "ba", "aab", "ẞ", "ss"])
CHECKS = st.one_of(
    *(st.builds(kind, WORDS, ignore_case=st.booleans()) for kind in (Contains, StartsWith, EndsWith, Equals)),
    st.builds(ContainsAll, st.lists(WORDS, min_size=1, max_size=2), ignore_case=st.booleans()),
)
PLACED = st.lists(st.tuples(CHECKS, st.booleans()), max_size=6).map(
    lambda some: [
        (n, Criterion("x", id=f"c{n}", answer=check, polarity="guard" if guard else "satisfy"))
        for n, (check, guard) in enumerate(some)
    ]
)
TEXTS = ["", "ẞ", "ss", *(first + second for first in ("", *"abA") for second in ("a", "b", "A", "ab"))]


def texts_of(check: Any) -> tuple[str, ...]:
    return () if check.ignore_case else getattr(check, "texts", None) or (check.text,)


@given(PLACED)
def test_implied_checks_are_those_that_a_required_text_meets(placed: list[Any]) -> None:
    """Of each check those for a part that one of its own texts has, beside itself."""
    found = {one[0]: [other[0] for other in weaker] for one, weaker in implications(placed)}
    for n, one in placed:
        among = [
            k
            for k, other in placed
            if isinstance(other.answer, Contains)
            and other.answer != one.answer
            and any(meets(other.answer, text) for text in texts_of(one.answer))
        ]
        assert found.get(n, []) == among


@given(PLACED)
def test_no_text_meets_two_checks_that_exclude_one_another(placed: list[Any]) -> None:
    """The later one is told; checks that some text meets all of exclude nothing."""
    pairs = [*excluding(placed)]
    assert all(first < second for (first, _), (second, _) in pairs)
    for pair in pairs[:2]:
        both: list[tuple[Any, bool]] = [(one.answer, one.is_unwanted) for _, one in pair]
        assert not any(all(meets(check, text) != unwanted for check, unwanted in both) for text in TEXTS)


def rubric_of(add: Callable[[Rubric, int], Rubric], n: int) -> Rubric:
    made = Rubric("many")
    for k in range(n):
        made = add(made, k)
    return made


def calls_of(rubric: Rubric) -> int:
    """Return how many calls of functions a look at *rubric* takes."""
    count = 0

    def seen(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        lint(rubric, hints=True)
    finally:
        sys.setprofile(before)
    return count


KINDS: dict[str, Callable[[Rubric, int], Rubric]] = {
    "yes or no": lambda rubric, k: rubric.expects(f"States fact {k}", id=f"c{k}"),
    "weights": lambda rubric, k: rubric.expects(f"States fact {k}", id=f"c{k}", weight=1 + k % 5),
    "parts": lambda rubric, k: rubric.checks(Contains(f"({k})"), id=f"c{k}"),
    "gates": lambda rubric, k: rubric.checks(Contains(f"({k})"), id=f"c{k}", required=True),
    "levels": lambda rubric, k: rubric.rates(f"Clear on {k}", {1: "bad", 5: "good"}, id=f"c{k}"),
}


@pytest.mark.parametrize("add", KINDS.values(), ids=KINDS)
def test_looking_takes_calls_in_proportion_to_the_criteria(add: Callable[[Rubric, int], Rubric]) -> None:
    """Four times as many criteria take at most five times as many calls: nothing compares all pairs."""
    calls_of(rubric_of(add, 2))
    assert calls_of(rubric_of(add, 160)) < 5 * calls_of(rubric_of(add, 40))
