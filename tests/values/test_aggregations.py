"""Each aggregation combines alike in both of its forms, and all that rests on one follows it."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Criterion, Rubric, influence
from rubric.quality.coalitions import part_at
from rubric.scoring.outcomes import Rules
from rubric.values.aggregations import COMBINATIONS, exact
from rubric.values.rubrics import Aggregation
from tests.places import ROOT

KINDS = get_args(Aggregation)
WEIGHTED = st.lists(
    st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from([1, 2, 3]), st.booleans()), min_size=1, max_size=6
)


@pytest.mark.parametrize("kind", KINDS)
@given(counted=WEIGHTED)
def test_the_steps_come_to_the_score(kind: Any, counted: list[tuple[float, int, bool]]) -> None:
    """Start, join and finish are the score that grading takes at once."""
    does_earn = [not (is_penalty and COMBINATIONS[kind].subtracts) for _, _, is_penalty in counted]
    if not any(does_earn):
        does_earn = [True] * len(counted)
    whole = sum((Fraction(w) for (_, w, _), earn in zip(counted, does_earn, strict=True) if earn), Fraction())
    combination = COMBINATIONS[kind]
    values = [
        combination.value(exact(c), Fraction(w), earns=earn) for (c, w, _), earn in zip(counted, does_earn, strict=True)
    ]
    score = combination.score(*zip(*counted, strict=True))
    at_once = combination.join([combination.start(), *values])
    by_steps: Fraction | float = combination.start()
    for value in values:
        by_steps = combination.join([by_steps, value])
    assert float(combination.finish(at_once, whole)) == pytest.approx(score, abs=1e-12)
    assert float(combination.finish(by_steps, whole)) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@given(
    weights=st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=4),
    threshold=st.sampled_from([0.3, 0.5, 0.7, 1.0]),
)
def test_influence_is_that_of_all_coalitions_graded(kind: Any, weights: list[int], threshold: float) -> None:
    """The chance that a criterion is the one that changes the verdict, by brute force over the rules of grading."""
    criteria = [Criterion(f"Is it {n}?", weight=weight) for n, weight in enumerate(weights)]
    rubric = Rubric("r", criteria, aggregation=kind, threshold=threshold)
    ends = [[part_at(rubric, criterion, best=best) for best in (False, True)] for criterion in criteria]
    for index, found in enumerate(influence(rubric)):
        share, n = 0.0, len(criteria)
        for others in product((0, 1), repeat=len(criteria)):
            if others[index]:
                continue
            with_it = [pair[one or at == index] for at, (pair, one) in enumerate(zip(ends, others, strict=True))]
            without = [pair[one] for pair, one in zip(ends, others, strict=True)]
            if Rules(rubric).result(with_it).passed != Rules(rubric).result(without).passed:
                share += 1 / (n * comb(n - 1, sum(others)))
        assert found.share == pytest.approx(share)


@pytest.mark.parametrize("kind", KINDS)
@given(counted=WEIGHTED)
def test_a_lone_contribution_is_the_score(kind: Any, counted: list[tuple[float, int, bool]]) -> None:
    """Of each aggregation, whatever its weight, and of a penalty too: grading does not combine it with anything."""
    assert [COMBINATIONS[kind].score([c], [w], [lost]) for c, w, lost in counted] == [c for c, _, _ in counted]


def test_each_aggregation_has_a_row_and_a_name_in_files() -> None:
    """The names, the rows of the table and the schema of rubric files are the same; files may also say `worst`."""
    schema = json.loads((ROOT / "rubric/formats/rubric.schema.json").read_text("utf-8"))
    named = schema["$defs"]["rubric"]["properties"]["aggregation"]["enum"]
    assert {*KINDS} == {*COMBINATIONS} == {*named} - {"worst"}


def test_only_the_combination_tells_aggregations_apart() -> None:
    """In scoring and in quality no other module branches on the name of an aggregation to compute a score."""
    found = [
        path.name
        for folder in ("scoring", "quality")
        for path in sorted((ROOT / "rubric" / folder).glob("*.py"))
        if "aggregation ==" in (text := path.read_text("utf-8")) or "aggregation !=" in text
    ]
    assert found in ([], ["influence.py"])  # how a sentence words equal weights


def test_what_earns_is_counted_once() -> None:
    """A penalty beside what earns takes off, and is not a part of the whole."""
    rubric = Rubric("r").expects("a", weight=3).penalizes("b", points=2).by_points()
    assert Rules(rubric).whole == 3
    assert [Rules(rubric).earns(criterion) for criterion in rubric.judged] == [True, False]
