"""Scores by the rule of the systems with signed weights, against the rule as it is documented."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Choices, Criterion, Grade, Judge, Rubric
from rubric.format_plugins.signed_weights import by_points
from rubric.testing.scripted_model import Says, ScriptedModel
from tests.drive import drive

Part = tuple[float, float | None]
"""A signed weight, and a value in 0..1; None for "cannot tell"."""


def documented(parts: list[Part], credit: str | float = "exclude") -> Fraction | None:
    """Return what the documented formula makes of *parts*, before it is cut; None where nothing is scored."""
    total = positive = negative = Fraction()
    scored = 0
    for weight, value in parts:
        w = Fraction(weight)
        if value is None:
            if credit == "exclude":
                continue
            partial = 0 if isinstance(credit, str) or w < 0 else Fraction(credit)
            total += w if credit == "fail" and w < 0 else partial * w
        else:
            total += Fraction(value) * w
        scored += 1
        positive += max(w, Fraction())
        negative += max(-w, Fraction())
    if not scored:
        return None
    return total / positive if positive > 0 else 1 + total / negative if negative > 0 else Fraction()


def graded(parts: list[Part], credit: str | float = "exclude", against: str = "guard") -> Grade | None:
    """Return the grade of a rubric with *parts*, those *against* of that polarity; None where it is not a grade."""
    menu = Choices({"none": 0, "some": 0.25, "half": 0.5, "most": 0.7, "all": 1})
    criteria = [
        Criterion("t", id=f"c{n}", answer=menu, weight=abs(w), polarity=against if w < 0 else "satisfy")  # type: ignore[arg-type]
        for n, (w, _) in enumerate(parts)
    ]
    labels = {choice.score: choice.label for choice in menu.choices}
    script = {f"c{n}": Says(None if v is None else labels[v]) for n, (_, v) in enumerate(parts)}
    rubric = Rubric(abstain=credit, **by_points(criteria))  # type: ignore[arg-type]  # a policy, or a number
    result = drive(rubric, Judge(ScriptedModel(script)))
    return result if isinstance(result, Grade) else None


_weights = st.one_of(st.sampled_from([10.0, 8.0, -15.0, 1.0, 0.1, -0.3]), st.floats(-100, 100, allow_subnormal=False))
_values = st.sampled_from([0.0, 0.25, 0.5, 0.7, 1.0])
_parts = st.lists(st.tuples(_weights, _values), min_size=1, max_size=6).filter(lambda parts: any(w for w, _ in parts))


_open_parts = st.lists(st.tuples(_weights, st.one_of(st.none(), _values)), min_size=1, max_size=5)


@given(_open_parts.filter(lambda parts: any(w for w, _ in parts)), st.sampled_from(["exclude", "zero", 0.5]))
def test_with_penalties_the_native_score_is_the_documented_one(parts: list[Part], credit: str | float) -> None:
    """By points where both signs meet, averaged where one is alone; abstentions too."""
    grade, exact = graded(parts, credit, "penalty"), documented(parts, credit)
    if grade is not None and exact is not None:
        assert grade.score == pytest.approx(float(min(max(exact, Fraction()), Fraction(1))), abs=1e-12)
