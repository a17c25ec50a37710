"""How much the votes of a jury agree, and how many of them are reliable."""

from __future__ import annotations

from functools import partial

import numpy as np
from attrs import frozen

from rubric.embed import NoTruth, Statistic
from rubric.trust import coefficients as co
from rubric.trust.coefficients import among_many, share
from rubric.trust.inference import Floats, compact
from rubric.trust.ratings import Judged, Scale

_RELIABLE = 0.9


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


def votes_of(name: str, scale: Scale, table: Floats, given: Judged) -> Votes:
    """Return how much the votes in *table*, a column a voter, agree."""
    several = (~np.isnan(table)).sum(axis=1) > 1
    votes = table[several]
    groups = compact(given.groups[several]) if given.grouped else None
    if not len(votes):
        why = "no candidate has two votes"
        flips, icc1, alpha = (Statistic(of, None, reason=why) for of in ("flip rate", "ICC1", "alpha"))
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
