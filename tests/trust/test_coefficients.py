"""Coefficients of agreement: the textbooks' figures, and the laws that hold for all ratings."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rubric.trust import coefficients as co
from rubric.trust.inference import Floats
from tests.examples import examples
from tests.recorded import DATA, needs_data
from tests.rows import each_row

LEVELS: tuple[co.Level, ...] = ("nominal", "ordinal", "interval")


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "agreement_reference" / "reference.json").read_text("utf-8"))
    return found


def table(rows: list[list[float | None]]) -> Floats:
    return np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=float)


def unrolled(counts: list[list[int]]) -> Floats:
    """Return two raters' ratings from a table of counts."""
    pairs = [(i, j) for i, row in enumerate(counts) for j, count in enumerate(row) for _ in range(count)]
    return np.array(pairs, dtype=float)


def divided_by_n(found: co.Coefficient) -> float | None:
    """Return the standard error where the sum of squares is divided by n, not by n - 1."""
    error, influence = found.error(), found.influence
    return None if error is None or influence is None else error * float(np.sqrt(1 - 1 / len(influence)))


@needs_data
@pytest.mark.parametrize("name", ["krippendorff_c", "krippendorff_wikipedia"])
def test_krippendorffs_alpha(reference: dict[str, Any], name: str) -> None:
    """Alpha equals the published values for each level of measurement."""
    ratings = table(reference[name]["ratings_by_unit"])
    for level, value in reference[name]["alpha"].items():
        if level == "ratio":  # left out: nobody reads it
            continue
        assert co.alpha(ratings, level).value == pytest.approx(value, abs=5e-4 if name == "krippendorff_c" else 5e-7)


@needs_data
def test_chance_corrected_coefficients_of_many_raters(reference: dict[str, Any]) -> None:
    """As R's irrCAC, values and standard errors of raw ratings, where sums are divided by n - 1."""
    ratings = table(reference["krippendorff_c"]["ratings_by_unit"])
    found = {
        "gwet_ac1": co.gwet(ratings),
        "krippendorff": co.alpha(ratings),
    }
    for name, one in found.items():
        value, error = reference["krippendorff_c"]["irrCAC"][name]
        assert one.value == pytest.approx(value, abs=6e-6), name
        near = error / 100 if name == "krippendorff" else 6e-6  # the jackknife's, beside a linearised one
        assert one.error() == pytest.approx(error, abs=near), name


@needs_data
def test_coefficients_of_a_table_of_two_raters(reference: dict[str, Any]) -> None:
    """As irrCAC's route for tables, where sums are divided by n."""
    both = unrolled(reference["irrCAC_contingency"]["table"])
    found = {
        "cohen": co.cohen(both[:, 0], both[:, 1]),
        "gwet_ac1": co.gwet(both),
        "krippendorff": co.alpha(both),
    }
    for name, one in found.items():
        value, error = reference["irrCAC_contingency"][name]
        assert one.value == pytest.approx(value, abs=5e-8), name
        near = error / 100 if name == "krippendorff" else 5e-9  # the jackknife's, beside a linearised one
        assert divided_by_n(one) == pytest.approx(error, abs=near), name


@needs_data
@pytest.mark.parametrize(
    ("weighting", "named"),
    [("", ("kappa", "ase", "ci")), ("linear", ("weighted_linear", "weighted_ase", "weighted_ci"))],
)
def test_cohens_kappa_as_sas_prints_it(
    reference: dict[str, Any], weighting: co.Weighting, named: tuple[str, ...]
) -> None:
    """Value, error and interval equal the printed ones, with and without weights."""
    said = reference["sas_kappa"]
    a, b = unrolled(said["table"]).T
    kappa = co.cohen(a, b, np.arange(3.0), weighting)
    value, error = kappa.value, divided_by_n(kappa)
    assert value == pytest.approx(said[named[0]], abs=5e-5)
    assert error == pytest.approx(said[named[1]], abs=5e-5)
    assert value is not None
    assert error is not None
    assert (value - 1.959964 * error, value + 1.959964 * error) == pytest.approx(said[named[2]], abs=5e-5)


@needs_data
def test_intraclass_correlations(reference: dict[str, Any]) -> None:
    """Shrout and Fleiss, 1979: the two values that are read, and what follows for the mean of raters."""
    said = reference["shrout_fleiss_1979"]
    ratings = np.array(said["ratings"], dtype=float)
    found, k = co.intraclass(ratings), ratings.shape[1]
    assert list(found) == ["ICC1", "ICC2"]
    for name, icc in found.items():
        assert icc.value == pytest.approx(said["icc"][name], abs=5.1e-3), name
        r = icc.value or 0.0
        assert k * r / (1 + (k - 1) * r) == pytest.approx(said["icc"][f"{name}k"], abs=5.1e-3), name


@needs_data
def test_a_correlation_and_its_error(reference: dict[str, Any]) -> None:
    """The law schools of Efron and Tibshirani; they print the bootstrap's error to two digits."""
    said = reference["efron_law"]
    found = co.pearson(np.array(said["lsat"], dtype=float), np.array(said["gpa"], dtype=float))
    assert found.value == pytest.approx(said["r"], abs=5e-4)
    assert found.error() == pytest.approx(said["bootstrap_se"], abs=5e-3)


@pytest.mark.parametrize(
    "coefficient", [co.kendall, co.spearman, lambda a, b: co.intraclass(np.stack([a, b], 1))["ICC2"]]
)
def test_an_error_is_that_of_the_jackknife(coefficient: Any) -> None:
    """With ties, which formulas for data without ties get wrong; leaving out each unit in turn gives the same error."""
    chance = np.random.default_rng(1)
    a = chance.integers(1, 6, 60).astype(float)
    b = np.clip(a + chance.choice([-2, 0, 0, 0, 1], 60), 1, 5)
    found = coefficient(a, b)
    left = [coefficient(np.delete(a, n), np.delete(b, n)).value for n in range(60)]
    assert found.error() == pytest.approx(np.sqrt(59 / 60 * ((left - np.mean(left)) ** 2).sum()), rel=0.05)


OF_TWO: dict[str, Any] = {
    "pearson": co.pearson,
    "kendall": co.kendall,
    "kappa, quadratic": lambda a, b: co.cohen(a, b, weighting="quadratic"),
    "alpha, interval": lambda a, b: co.alpha(np.stack([a, b], 1), "interval"),
    "ICC1": lambda a, b: co.intraclass(np.stack([a, b], 1))["ICC1"],
    "ICC2": lambda a, b: co.intraclass(np.stack([a, b], 1))["ICC2"],
}


@each_row("name", OF_TWO)
def test_the_jackknife_leaves_out_whole_groups(name: str) -> None:
    """Without each group a coefficient is that of the others, and its error on Fisher's scale is their spread."""
    chance, find = np.random.default_rng(3), OF_TWO[name]
    groups = chance.integers(0, 12, 80)
    a = chance.integers(1, 6, 80).astype(float)
    b = np.clip(a + chance.choice([-2, 0, 0, 0, 1], 80), 1, 5)
    left = np.array([find(a[groups != n], b[groups != n]).value for n in range(12)])
    assert find(a, b).without(groups, 12) == pytest.approx(left)
    z = np.arctanh(left)
    assert find(a, b).fisher_error(groups) == pytest.approx(np.sqrt(11 / 12 * ((z - z.mean()) ** 2).sum()))


@pytest.mark.parametrize("name", ["spearman", "alpha, ordinal"])
def test_the_jackknife_of_ranks_moves_them_a_little(name: str) -> None:
    """Ranks are not counted anew without each group: the error is that of the jackknife to a few per cent."""
    chance = np.random.default_rng(4)
    find = co.spearman if name == "spearman" else lambda a, b: co.alpha(np.stack([a, b], 1), "ordinal")
    groups, a = chance.integers(0, 30, 150), chance.integers(1, 6, 150).astype(float)
    b = np.clip(a + chance.choice([-2, 0, 0, 1], 150), 1, 5)
    z = np.arctanh(np.array([find(a[groups != n], b[groups != n]).value for n in range(30)], dtype=float))
    assert find(a, b).fisher_error(groups) == pytest.approx(np.sqrt(29 / 30 * ((z - z.mean()) ** 2).sum()), rel=0.05)


def test_an_interval_of_few_is_wider_than_its_linearisation() -> None:
    """Of ten candidates one decides: the error of the jackknife is larger; of 3,000 both are equal."""
    chance = np.random.default_rng(5)
    for size, larger in ((10, True), (3_000, False)):
        a = chance.normal(size=size)
        found = co.pearson(a, a + chance.normal(size=size))
        ratio = (found.fisher_error() or 0) / ((found.error() or 1) / (1 - (found.value or 0) ** 2))
        assert ratio > 1.1 if larger else ratio == pytest.approx(1, abs=0.01)


def test_kendall_of_many_different_ratings_has_the_error_of_a_part_of_their_pairs() -> None:
    """Of 3,000 different pairs, a thousand tell the error to a few per cent."""
    chance = np.random.default_rng(1)
    a = chance.normal(size=3_000)
    b = a + chance.normal(size=3_000)
    (error, again) = (co.kendall(a[::step], b[::step]).error() for step in (1, 3))
    assert error is not None
    assert again == pytest.approx(error * 3**0.5, rel=0.1)


# -- laws --------------------------------------------------------------------------------------------------

whole = st.integers(1, 5).map(float)
matrices = st.tuples(st.integers(4, 12), st.integers(2, 4)).flatmap(
    lambda shape: arrays(float, shape, elements=st.one_of(whole, st.just(np.nan)))
)


def every(ratings: Floats) -> dict[str, float | None]:
    return {"gwet": co.gwet(ratings).value} | {level: co.alpha(ratings, level).value for level in LEVELS}


def close(one: dict[str, float | None], other: dict[str, float | None]) -> bool:
    same = {name: None if value is None else pytest.approx(value, abs=1e-9) for name, value in one.items()}
    return other == same


@given(matrices, st.randoms(use_true_random=False))
@examples(60)
def test_the_order_of_raters_and_units_changes_nothing(ratings: Floats, chance: Any) -> None:
    """Shuffled rows and columns give every coefficient the same value."""
    rows, columns = [*range(ratings.shape[0])], [*range(ratings.shape[1])]
    chance.shuffle(rows)
    chance.shuffle(columns)
    assert close(every(ratings), every(ratings[rows][:, columns]))


@given(matrices)
@examples(60)
def test_other_names_of_categories_change_no_nominal_coefficient(ratings: Floats) -> None:
    """Renamed categories give the same nominal coefficients."""
    renamed = np.array([np.nan, 40.0, 10.0, 50.0, 20.0, 30.0])[np.nan_to_num(ratings).astype(int)]
    renamed[np.isnan(ratings)] = np.nan
    kept = ("gwet", "nominal")
    one, other = every(ratings), every(renamed)
    assert close({name: one[name] for name in kept}, {name: other[name] for name in kept})


@given(arrays(float, st.integers(3, 20), elements=whole), st.integers(2, 4))
@examples(60)
def test_perfect_agreement_is_one(ratings: Floats, raters: int) -> None:
    """Equal ratings by all raters give every coefficient the value 1."""
    assume(np.ptp(ratings) > 0)
    for value in every(np.repeat(ratings[:, None], raters, axis=1)).values():
        assert value == pytest.approx(1)


@given(arrays(float, st.tuples(st.integers(5, 30), st.just(2)), elements=whole))
@examples(60)
def test_influences_average_to_nothing(ratings: Floats) -> None:
    """So that their spread is the error; and swapping two raters changes neither."""
    a, b = ratings.T
    for one, other in (
        (co.cohen(a, b), co.cohen(b, a)),
        (co.pearson(a, b), co.pearson(b, a)),
        (co.spearman(a, b), co.spearman(b, a)),
        *((co.alpha(ratings, level), co.alpha(ratings[:, ::-1], level)) for level in LEVELS),
        (co.gwet(ratings), co.gwet(ratings[:, ::-1])),
    ):
        assert one.value == pytest.approx(other.value)
        if one.value is not None and one.influence is not None and other.influence is not None:
            assert np.nanmean(one.influence) == pytest.approx(0, abs=0.05 if one.value == 1 else 1e-1)
            assert one.error() == pytest.approx(other.error())


def test_what_is_undefined_says_why() -> None:
    """Never NaN, and never a number that means nothing."""
    same = np.ones((9, 2))
    for found in (co.cohen(*same.T), co.pearson(*same.T), co.kendall(*same.T), co.alpha(same)):
        assert found.value is None
        assert found.reason
        assert found.error() is None
    assert co.intraclass(same) == {}
