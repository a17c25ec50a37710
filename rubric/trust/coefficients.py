"""
Coefficients of agreement between raters, with their standard errors.

All take a table of units by raters; NaN is a rating that is missing. The errors come from one linearisation, which
says how much each unit moves the coefficient (K. L. Gwet, Handbook of Inter-Rater Reliability, 2014; for two raters
J. L. Fleiss, J. Cohen and B. S. Everitt, Psychological Bulletin 72, 1969). Influences of a group add up, so the errors
are by group where there are groups.

Of few units, or groups, some decide a correlation, and a linearisation makes its error too small. Intervals of numbers
are therefore by the jackknife that leaves out a whole group (J. G. MacKinnon, M. Ø. Nielsen and M. D. Webb, Journal of
Applied Econometrics 38, 2023).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from attrs import asdict, evolve, frozen
from numpy.typing import NDArray
from scipy import stats

from rubric.embed import Statistic
from rubric.trust.inference import Codes, Floats, Interval, mean_error, student, unit_interval

Level = Literal["nominal", "ordinal", "interval"]
Weighting = Literal["", "linear", "quadratic"]

FEWEST = 10
"""Units below which the errors of coefficients are too uncertain for an interval."""

RARE = 15
"""Units with the rarer verdict below which a sample may have missed some that differ."""

_MOST, _NO_ERROR = 0.999, 1e-9
"""The coefficient that Fisher's scale ends with, and the error below which all units are alike."""

_MOST_CELLS, _MOST_GROUPS = 1_000, 60
"""Different pairs of ratings that every other one is ranked against, and groups that are left out in turn."""

MOST_CATEGORIES = 60
"""More different ratings than these are not categories, but numbers."""


@frozen
class Coefficient:
    """
    A coefficient, and what each unit adds to its error.

    Args:
        value: None where it is undefined.
        reason: Why it is undefined.
        influence: How much each unit moves it, times the number of units; NaN of a unit that does not count.
        without: Returns it without each of so many groups, from the group of each unit; None: see `error`.
    """

    value: float | None
    reason: str = ""
    influence: Floats | None = None
    without: Callable[[Codes, int], Floats] | None = None

    def error(self, groups: Codes | None = None) -> float | None:
        """Return the standard error, by group; None where there is none."""
        if self.influence is None:
            return None
        counts = ~np.isnan(self.influence)
        _, error = mean_error(self.influence[counts], None if groups is None else groups[counts])
        return None if np.isnan(error) else error

    def fisher_error(self, groups: Codes | None = None) -> float | None:
        """Return the standard error on Fisher's scale, by group: of the jackknife where it is known."""
        error = self.error(groups)
        if error is None or self.value is None:
            return error
        value = float(np.clip(self.value, -_MOST, _MOST))
        if self.without is None or self.influence is None or error < _NO_ERROR:
            return error / (1 - value * value)
        counts = ~np.isnan(self.influence)
        codes = np.arange(len(counts)) if groups is None else groups
        left = self.without(codes, int(codes.max()) + 1)[np.unique(codes[counts])]
        z, slope = np.where(np.isfinite(left), left, value), 1 - value * value
        if np.abs(z).max() < _MOST:  # else a single unit differs, and without it Fisher's scale has no end
            z, slope = np.arctanh(z), 1.0
        return float(np.sqrt((len(z) - 1) / len(z) * ((z - z.mean()) ** 2).sum())) / slope


def _left_out(sums: Floats, of: Callable[[Floats], Floats], groups: Codes, number: int) -> Floats:
    """Return the coefficient *of* the *sums* of all units, a row a sum, without each group."""
    own = np.stack([np.bincount(groups, weights=each, minlength=number) for each in sums])
    with np.errstate(invalid="ignore", divide="ignore"):
        return of(sums.sum(axis=1, keepdims=True) - own)


def _jackknife(sums: Floats, of: Callable[[Floats], Floats], counts: NDArray[np.bool_]) -> Coefficient:
    """Return the coefficient *of* the *sums* of the units that count, with how it moves without each of them."""
    every = np.zeros((len(sums), len(counts)))
    every[:, counts] = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        value, n = float(of(every.sum(axis=1))), len(counts)
    if not np.isfinite(value):
        return undefined("raters contradict each other on all units")
    without = partial(_left_out, every, of)
    moved = np.nan_to_num((counts.sum() - 1) * (value - without(np.arange(n), n)), posinf=0, neginf=0)
    return Coefficient(value, "", np.where(counts, moved - moved[counts].mean(), np.nan), without)


def undefined(reason: str) -> Coefficient:
    return Coefficient(None, reason)


def share(name: str, values: Floats, groups: Codes | None, worth: float | None = None) -> Statistic:
    """Return the mean of *values* in 0..1 with its interval; by weight, of labels that are *worth* so many."""
    interval = unit_interval(values, groups, worth)
    return Statistic(name, float(values.mean()), interval, "" if interval else "one group")


def coefficient(name: str, found: Coefficient, groups: Codes | None, freedom: float = np.inf) -> Statistic:
    """
    Return a coefficient with an interval on Fisher's scale, where it is nearly normal and stays within -1 and 1.

    Its degrees of freedom are those of its units, at most *freedom*; below ten units there is no interval.
    """
    if found.value is None:
        return Statistic(name, None, reason=found.reason)
    error = found.fisher_error(groups)
    counts = np.empty(0, bool) if found.influence is None else ~np.isnan(found.influence)
    n = int(counts.sum())
    if error is None or (n if groups is None else len(np.unique(groups))) < FEWEST:
        return Statistic(name, found.value, reason=f"no interval below {FEWEST} candidates, or groups of them")
    sizes = np.ones(n) if groups is None else np.bincount(groups[counts])
    even = float(sizes.sum() ** 2 / (sizes**2).sum())  # groups of one size that are worth as much (L. Kish, 1965)
    q = student(max(1.0, min(even - 1, freedom)))
    if error < _NO_ERROR:  # all units are alike: as many may differ as a share of none leaves open
        half = 2 * q * q / (n + q * q)
        ends = max(-1.0, found.value - half), min(1.0, found.value + half)
        return widen(Statistic(name, found.value, ends), (found.value, found.value))  # an ICC of few may be below -1
    middle = np.arctanh(np.clip(found.value, -_MOST, _MOST))
    low, high = np.tanh(middle - q * error), np.tanh(middle + q * error)
    return Statistic(name, found.value, (min(float(low), found.value), max(float(high), found.value)))


def widen(found: Statistic, other: Interval | None) -> Statistic:
    """Return *found* with an interval that reaches as far as the *other* one, too."""
    if found.interval is None or other is None:
        return found
    return evolve(found, interval=(min(found.interval[0], other[0]), max(found.interval[1], other[1])))


def without_intervals(found: Any, why: str) -> Any:
    """Return a statistic, or what holds some, without intervals, and *why* there are none."""
    if isinstance(found, Statistic):
        return evolve(found, interval=None, reason=found.reason or why)
    held = {name: one for name, one in asdict(found, recurse=False).items() if isinstance(one, Statistic)}
    return evolve(found, **{name: without_intervals(one, why) for name, one in held.items()})


def among_many(name: str, find: Callable[[Floats], Coefficient], ratings: Floats, groups: Codes | None) -> Statistic:
    """
    Return a coefficient of many raters, of which *find* has the value.

    Where few units are unanimous in the rarer of two verdicts, a sample may have none: the interval allows for one
    more, and for one more on which raters differ.
    """
    found = coefficient(name, find(ratings), groups)
    used = categories_of(ratings)
    if len(used) != 2 or found.interval is None:
        return found
    rare, often = sorted(used, key=lambda value: (ratings == value).sum())
    if ((ratings == rare) | np.isnan(ratings)).all(axis=1).sum() >= RARE:
        return found
    unit = None if groups is None else np.append(groups, groups.max() + 1)
    for more in (np.full(ratings.shape[1], rare), np.array([rare, *[often] * (ratings.shape[1] - 1)])):
        found = widen(found, coefficient(name, find(np.vstack([ratings, more])), unit).interval)
    return found


def categories_of(*ratings: Floats) -> Floats:
    """Return the different ratings, in order."""
    found: Floats = np.unique(np.concatenate([each.ravel() for each in ratings]))
    return found[~np.isnan(found)]


def counts_of(ratings: Floats, categories: Floats) -> Floats:
    """Return how often each unit was given each category."""
    return np.stack([(ratings == category).sum(axis=1) for category in categories], axis=1).astype(float)


# -- two raters --------------------------------------------------------------------------------------------


def cohen(a: Floats, b: Floats, categories: Floats | None = None, weighting: Weighting = "") -> Coefficient:
    """Return Cohen's kappa of two raters (J. Cohen, 1960; weighted, 1968)."""
    found = categories_of(a, b) if categories is None else categories
    if len(found) > MOST_CATEGORIES:
        return undefined(f"{len(found)} different ratings are numbers, no categories")
    w = np.eye(len(found))
    if weighting and len(found) > 1:
        apart = np.abs(found[:, None] - found) / np.ptp(found)
        w = 1 - (apart if weighting == "linear" else apart**2)
    one, two = np.searchsorted(found, a), np.searchsorted(found, b)
    pa, pb = (np.bincount(each, minlength=len(found)) / len(a) for each in (one, two))
    expected = float(pa @ w @ pb)
    if 1 - expected < 1e-12:
        return undefined("both give everything the same rating, so agreement by chance is complete")
    observed = w[one, two]
    agreement = float(observed.mean())
    kappa = (agreement - expected) / (1 - expected)
    by_a, by_b = w @ pb, pa @ w
    pull = by_a[one] + by_b[two] - 2 * expected
    influence = ((observed - agreement) - (1 - kappa) * pull) / (1 - expected)
    moments = partial(_left_out, _products(a - a.mean(), b - a.mean()), _of_distances)
    return Coefficient(kappa, "", influence, moments if weighting == "quadratic" else None)


def _of_distances(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = sums
    return np.asarray(1 - n * (xx + yy - 2 * xy) / (n * (xx + yy) - 2 * x * y))


def pearson(a: Floats, b: Floats) -> Coefficient:
    """Return the correlation of two raters."""
    x, y = a - a.mean(), b - b.mean()
    sx, sy = np.sqrt((x**2).mean()), np.sqrt((y**2).mean())
    if sx < 1e-12 or sy < 1e-12:
        return undefined("one of them gives everything the same rating")
    u, v = x / sx, y / sy
    r = float(np.clip((u * v).mean(), -1, 1))
    return Coefficient(r, "", u * v - r * (u**2 + v**2) / 2, partial(_left_out, _products(u, v), _of_products))


def correlation(name: str, a: Floats, b: Floats, groups: Codes | None) -> Statistic:
    """
    Return the correlation of two columns, with its interval.

    Where fewer than 15 units have other than the commonest value, or one of two values beside an end of the other
    column, a sample may have missed some: the interval allows for one more at each pair of the columns' ends. Of groups
    half are enough, since with fewer than 30 nothing could be common.
    """
    found = coefficient(name, pearson(a, b), groups)
    units = np.arange(len(a)) if groups is None else groups
    x, y = np.repeat([a.min(), a.max()], 2), np.tile([b.min(), b.max()], 2)
    rows = [
        side != values[counts.argmax()] for side in (a, b) for values, counts in [np.unique(side, return_counts=True)]
    ]
    if min(len(categories_of(side)) for side in (a, b)) == 2:
        rows += [(a == one) & (b == other) for one, other in zip(x, y, strict=True)]
    number = len(np.unique(units))
    if min(len(np.unique(units[each])) for each in rows) >= min(RARE, number if groups is None else number / 2):
        return found
    times = round(len(a) / number)
    more = None if groups is None else np.append(groups, np.repeat(groups.max() + 1 + np.arange(4), times))
    wider = pearson(np.append(a, np.repeat(x, times)), np.append(b, np.repeat(y, times)))
    return widen(found, coefficient(name, wider, more).interval)


def _products(u: Floats, v: Floats) -> Floats:
    return np.stack([np.ones(len(u)), u, v, u * u, v * v, u * v])


def _of_products(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = sums
    return np.asarray((n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y)))


def spearman(a: Floats, b: Floats) -> Coefficient:
    """Return the correlation of ranks; a unit also moves the ranks of the others."""
    x, y = stats.rankdata(a), stats.rankdata(b)
    found = pearson(x, y)
    if found.value is None or found.influence is None:
        return found
    u, v = ((each - each.mean()) / each.std() for each in (x, y))
    lifted = _rank_sums(v - found.value * u, a) / (2 * x.std()) + _rank_sums(u - found.value * v, b) / (2 * y.std())
    lifted -= lifted.mean()
    of_ranks, n = partial(_left_out, _products(u, v), _of_products), len(a)

    def without(groups: Codes, number: int) -> Floats:
        return of_ranks(groups, number) - np.bincount(groups, weights=lifted, minlength=number) / n

    return Coefficient(found.value, "", found.influence + lifted, without)


def _rank_sums(values: Floats, by: Floats) -> Floats:
    """Return for each unit the sum of the *values* of all that lie above it, less that of those below, *by* rank."""
    order = np.argsort(by)
    sums, ordered = np.append(0.0, np.cumsum(values[order])), by[order]
    below, above = (np.searchsorted(ordered, by, side=side) for side in ("left", "right"))
    return np.asarray(sums[-1] - sums[above] - sums[below])


def kendall(a: Floats, b: Floats) -> Coefficient:
    """Return Kendall's tau-b, with the influence of the jackknife: how it moves if a unit is left out."""
    cells, codes, counts = np.unique(np.stack([a, b]), axis=1, return_inverse=True, return_counts=True)
    n, some = len(a), np.arange(len(counts))
    if len(some) > _MOST_CELLS:  # their pairs with some of them tell as much
        some = np.random.default_rng(0).choice(len(some), _MOST_CELLS, replace=False)
    sums = np.zeros((3, len(counts)))
    for place in some:
        s, t = np.sign(cells - cells[:, [place]])
        sums += counts[place] * np.stack([s * t, s * s, t * t])
    sums *= n / counts[some].sum()
    whole = sums @ counts
    if min(whole[1:]) == 0:
        return undefined("one of them gives everything the same rating")
    left = whole[:, None] - 2 * sums
    with np.errstate(invalid="ignore", divide="ignore"):
        alone = np.where(left[1:].min(axis=0) > 0, left[0] / np.sqrt(left[1] * left[2]), 0.0)
    moved = (n - 1) * (np.average(alone, weights=counts) - alone)[codes.ravel()]

    def tau(rows: Any) -> float:
        found: Any = stats.kendalltau(a[rows], b[rows])
        return float(found.statistic)

    def without(groups: Codes, number: int) -> Floats:
        if number > _MOST_GROUPS or number == n:  # of many, the units of a group move it one by one
            return value - np.bincount(groups, weights=moved, minlength=number) / (n - 1)
        return np.array([tau(groups != group) for group in range(number)])

    value = tau(slice(None))
    return Coefficient(value, "", moved, without)


# -- many raters -------------------------------------------------------------------------------------------


def gwet(ratings: Floats) -> Coefficient:
    """Return Gwet's AC1 of units by any number of raters (K. L. Gwet, 2014)."""
    found = categories_of(ratings)
    if len(found) > MOST_CATEGORIES:
        return undefined(f"{len(found)} different ratings are numbers, not categories")
    table = counts_of(ratings, found)
    table = table[table.sum(axis=1) > 0]
    rated = table.sum(axis=1)
    both = rated > 1
    if not both.any():
        return undefined("no unit has two ratings")
    n, q = len(table), len(found)
    agree = np.where(both, (table * (table - 1)).sum(axis=1) / np.where(both, rated * (rated - 1), 1), 0.0)
    observed, used = float(agree.sum() / both.sum()), (table / rated[:, None]).mean(axis=0)
    scale = 1 / (q - 1) if q > 1 else 0.0
    expected = float(scale * (used * (1 - used)).sum())
    pulls = scale * (table @ (1 - used)) / rated
    value = (observed - expected) / (1 - expected)
    moved = n / both.sum() * (agree - expected * both) - 2 * (1 - value) * (pulls - expected)
    return Coefficient(value, influence=moved / (1 - expected) - value)


def alpha(ratings: Floats, level: Level = "nominal") -> Coefficient:
    """
    Return Krippendorff's alpha (K. Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011).

    The distances of ordinal ratings are those of their middle ranks, so they need no table of pairs.
    """
    counts = (~np.isnan(ratings)).sum(axis=1)
    rows = ratings[counts > 1]
    if not len(rows):
        return undefined("no unit has two ratings")
    found = categories_of(rows)
    if len(found) < 2:
        return undefined("all ratings are the same")
    if level == "nominal" and len(found) > MOST_CATEGORIES:
        return undefined(f"{len(found):,} different ratings are numbers, no categories")
    values, m = rows, counts[counts > 1]
    if level == "nominal":
        parts = counts_of(rows, found).T
        disagreement = (m * m - (parts**2).sum(axis=0)) / (m - 1)
    else:
        if level == "ordinal":
            values = np.full(rows.shape, np.nan)
            values[~np.isnan(rows)] = stats.rankdata(rows[~np.isnan(rows)])
        centred = values - np.nanmean(values)
        parts = np.stack([np.nansum(centred, axis=1), np.nansum(centred**2, axis=1)])
        disagreement = 2 * (m * parts[1] - parts[0] ** 2) / (m - 1)

    def of(sums: Floats) -> Floats:
        n, observed, *totals = sums
        if level == "nominal":
            expected = (n * n - sum(total * total for total in totals)) / n
        else:
            expected = 2 * (totals[1] - totals[0] ** 2 / n)
        return np.asarray(1 - observed / n * (n - 1) / expected)

    return _jackknife(np.stack([m, disagreement, *parts]), of, counts > 1)


# -- intraclass correlation --------------------------------------------------------------------------------


def intraclass(ratings: Floats) -> dict[str, Coefficient]:
    """
    Return ICC1 and ICC2 of units that all raters rated; empty below three units, or two raters.

    One rating a unit by any rater (one-way), or by one of several raters who rate all units (two-way random, absolute
    agreement): P. E. Shrout and J. L. Fleiss, Psychological Bulletin 86, 1979. Their intervals take ratings as normal;
    the influence is that of the jackknife, since most ratings of a good judge are exact.
    """
    complete = np.asarray(~np.isnan(ratings).any(axis=1))
    x = ratings[complete] - (ratings[complete].mean() if complete.any() else 0.0)
    n, k = x.shape
    if n < 3 or k < 2 or np.ptp(x) == 0:
        return {}

    sums = np.stack([np.ones(n), x.sum(axis=1), (x**2).sum(axis=1), x.sum(axis=1) ** 2, *x.T])

    def of(place: int, sums: Floats) -> Floats:
        n, total, squares, rows, *sides = sums
        middle = total**2 / (n * k)
        between, raters, every = rows / k - middle, sum(side**2 for side in sides) / n - middle, squares - middle
        within, left = (every - between) / (n * (k - 1)), (every - between - raters) / ((n - 1) * (k - 1))
        between, raters = between / (n - 1), raters / (k - 1)
        one = (between - within) / (between + (k - 1) * within)
        two = (between - left) / (between + (k - 1) * left + k * (raters - left) / n)
        return np.asarray([one, two][place])

    return {name: _jackknife(sums, partial(of, place), complete) for place, name in enumerate(("ICC1", "ICC2"))}
