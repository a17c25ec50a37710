"""Two questions about raters: how much the votes of a jury agree, and whether a judge may replace a person."""

from __future__ import annotations

from functools import partial

import numpy as np
from attrs import frozen
from scipy import stats

from rubric.embed import NoTruth, Statistic
from rubric.trust import coefficients as co
from rubric.trust.coefficients import among_many, share
from rubric.trust.inference import Floats, compact, mean_error
from rubric.trust.ratings import Judged, Ratings, Scale

_FEW, _RELIABLE = 30, 0.9


@frozen
class Votes(NoTruth):
    """
    How much the votes of a jury agree on one criterion.

    Args:
        id: The criterion's; empty for the whole.
        n: The candidates with two votes at least.
        flip_rate: How often two votes on one candidate differ.
        icc: The reliability of one vote, ICC(1).
        alpha: Krippendorff's alpha of the votes.
        needed: How many votes a reliability of .9 takes (Spearman-Brown); None if no number does, or it is unknown.
    """

    _truth = ".flip_rate"

    id: str
    n: int
    flip_rate: Statistic
    icc: Statistic
    alpha: Statistic
    needed: int | None


@frozen
class AltTest(NoTruth):
    """
    The alternative annotator test (N. Calderon, R. Reichart and R. Dror, arXiv 2501.10970).

    Args:
        criterion: Its id; empty for the whole.
        winning_rate: The share of people whom the judge may replace: it agrees with the others at least as well.
        advantage: The mean probability that the judge agrees with the others at least as well as a person does.
        epsilon: How much better a person may be, in return for what people cost.
        passed: True if the winning rate is .5 or more.
        p_values: Of each person.
    """

    _truth = ".passed"

    criterion: str
    winning_rate: float
    advantage: float
    epsilon: float
    passed: bool
    p_values: tuple[float, ...]


def votes_of(name: str, scale: Scale, table: Floats, given: Judged) -> Votes:
    """Return how much the votes in *table*, a column a voter, agree."""
    several = (~np.isnan(table)).sum(axis=1) > 1
    votes = table[several]
    groups = compact(given.groups[several]) if given.grouped else None
    if not len(votes):
        flips, icc1, alpha = (
            Statistic(of, None, reason="no candidate has two votes") for of in ("flip rate", "ICC1", "alpha")
        )
        return Votes(name, 0, flips, icc1, alpha, None)
    m = (~np.isnan(votes)).sum(axis=1)
    same = np.zeros(len(votes))
    for value in co.categories_of(votes):
        count = (votes == value).sum(axis=1)
        same += count * (count - 1)
    flips = share("flip rate", 1 - same / (m * (m - 1)), groups)
    none = co.undefined("all votes are the same, or some are missing")
    reliability = among_many("ICC1", lambda votes: co.intraclass(votes).get("ICC1", none), votes, groups)
    needed = 1 if flips.value == 0 else None
    if (icc := reliability.value or 0.0) > 0:
        needed = max(1, int(np.ceil(_RELIABLE * (1 - icc) / (icc * (1 - _RELIABLE)) - 1e-9)))
    level: co.Level = "interval" if scale.kind == "number" else "nominal"
    alpha = among_many("alpha", partial(co.alpha, level=level), votes, groups)
    return Votes(name, len(votes), flips, reliability, alpha, needed)


def alt_test(ratings: Ratings, epsilon: float) -> AltTest | None:
    """Return the alternative annotator test; None below three people, or thirty candidates that a person rated."""
    people, judge = ratings.people, ratings.judge
    r = people.shape[1]
    if r < 3:
        return None
    ps, advantages = [], []
    for rater in range(r):
        others = np.delete(people, rater, axis=1)
        rows = ~np.isnan(people[:, rater]) & ~np.isnan(judge) & ~np.isnan(others).all(axis=1)
        if rows.sum() < _FEW:
            return None
        mine, theirs = (_alignment(each[rows], others[rows], ratings.scale) for each in (judge, people[:, rater]))
        wins, losses = (mine >= theirs).astype(float), (theirs >= mine).astype(float)
        advantages.append(float(wins.mean()))
        gap, error = mean_error(losses - wins, compact(ratings.groups[rows]) if ratings.grouped else None)
        ps.append(float(stats.norm.cdf((gap - epsilon) / error)) if error > 0 else float(gap >= epsilon))
    rate = float((stats.false_discovery_control(ps, method="by") <= 0.05).mean())  # Y. Benjamini, D. Yekutieli
    return AltTest(ratings.criterion, rate, float(np.mean(advantages)), epsilon, rate >= 0.5, tuple(ps))


def _alignment(values: Floats, others: Floats, scale: Scale) -> Floats:
    """Return how well each value fits the others': the share that says the same, or minus the distance."""
    if scale.kind == "number":
        return np.asarray(-np.sqrt(np.nanmean((others - values[:, None]) ** 2, axis=1)))
    there = ~np.isnan(others)
    return np.asarray(((others == values[:, None]) & there).sum(axis=1) / there.sum(axis=1))
