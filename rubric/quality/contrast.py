"""
Which criteria tell preferred answers from rejected ones, and whether they rank pairs that they have not seen.

Contrastive generation writes criteria from pairs and keeps those that agree with the preferences (OpenRubrics,
T. Liu et al., arXiv 2510.07743; Auto-Rubric, arXiv 2510.17314). Two things are added, since pairs are few:

* A criterion is screened by the exact sign test at 0.25. A stricter level drops good criteria when few pairs are at
  hand (R. B. Bendel and A. A. Afifi, JASA 72, 1977), and screening is not the proof.
* The proof is of the whole: pairs are ranked by criteria that neither the writer nor the screening chose with them.

Pairs of one group (one task) count as one, by the majority of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from scipy import stats

from rubric.internals.containers import NoTruth

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

Status = Literal["tells apart", "too few", "untested", "alike", "reversed", "chance", "duplicate", "refused"]

KEPT = ("tells apart", "too few", "untested")
"""The statuses of criteria that stay."""

SCREEN = 0.25
"""The one-sided p up to which a criterion stays."""

SHOWN = 0.05
"""The one-sided p up to which a criterion is shown to tell pairs apart."""

TIE = 0.5
"""What a pair counts that is scored alike, of 1."""

_FOLDS = 5
_TOLERANCE = 1e-9
_COINCIDENCE = 0.01


@frozen
class Discrimination(NoTruth):
    """
    How one criterion tells the preferred answers of pairs from the rejected ones.

    Args:
        wins: Units (groups of pairs, or pairs) in which the preferred answer does better.
        losses: Units in which the rejected one does better.
        ties: Units in which both do alike.
        p: The chance of as many wins by coin flips: the one-sided sign test. 1 without wins and losses.
        status: What follows, see `discrimination`.
    """

    _truth = ".status"

    wins: int
    losses: int
    ties: int
    p: float
    status: Status


def discrimination(differences: Floats, groups: Codes) -> Discrimination:
    """
    Return how a criterion tells pairs apart, by the *differences* preferred - rejected; NaN where one is unjudged.

    | status | stays | when |
    |---|---|---|
    | `untested` | yes | no pair was judged |
    | `alike` | no | it answers both alike in every pair |
    | `reversed` | no | it prefers the rejected answer more often than the preferred one |
    | `tells apart` | yes | the sign test has p up to 0.25: 2 of 2, 4 of 5, 8 of 12 |
    | `too few` | yes | it tells one pair apart, rightly: that could be chance, and nothing speaks against it |
    | `chance` | no | it is right no more often than chance explains |
    """
    there = ~np.isnan(differences)
    given = differences[there]
    signs = np.where(np.abs(given) <= _TOLERANCE, 0.0, np.sign(given))
    units = np.unique(groups[there], return_inverse=True)[1]
    votes = np.sign(np.bincount(units, weights=signs)) if len(signs) else signs
    wins, losses = int((votes > 0).sum()), int((votes < 0).sum())
    p = float(stats.binom.sf(wins - 1, wins + losses, 0.5)) if wins + losses else 1.0
    return Discrimination(wins, losses, len(votes) - wins - losses, p, _status(len(votes), wins, losses, p))


def _status(n: int, wins: int, losses: int, p: float) -> Status:
    if not n:
        return "untested"
    if not wins + losses:
        return "alike"
    if losses > wins:
        return "reversed"
    if p <= SCREEN + _TOLERANCE:
        return "tells apart"
    return "too few" if not losses else "chance"


def screened(contributions: Floats, groups: Codes) -> list[Discrimination]:
    """
    Return how each criterion tells pairs apart; the later one of two that always answer alike is a `duplicate`.

    Two good criteria answer alike on many pairs, since both go with the preference. They are duplicates only if their
    answers also coincide within the preferred and within the rejected answers, more than chance explains (p up to
    0.01, by permutation).

    Args:
        contributions: Criteria x pairs x (preferred, rejected), in 0..1 with 1 as good; NaN where unjudged.
        groups: The number of the group of each pair.
    """
    found = [discrimination(one[:, 0] - one[:, 1], groups) for one in contributions]
    kept: list[int] = []
    for index, one in enumerate(found):
        if one.status not in KEPT:
            continue
        if any(_is_duplicate(contributions[index], contributions[earlier]) for earlier in kept):
            found[index] = Discrimination(one.wins, one.losses, one.ties, one.p, "duplicate")
        else:
            kept.append(index)
    return found


def _is_duplicate(one: Floats, other: Floats) -> bool:
    if np.isnan(one).any() or np.isnan(other).any() or not np.allclose(one, other, atol=_TOLERANCE):
        return False
    return sum(map(_log_arrangements, one.T)) >= -math.log(_COINCIDENCE)


def _log_arrangements(values: Floats) -> float:
    """Return the logarithm of the number of ways to arrange *values*."""
    counts = Counter(np.round(values, 9).tolist()).values()
    return math.lgamma(len(values) + 1) - sum(math.lgamma(count + 1) for count in counts)


Scores = Callable[[Sequence[int]], Floats]
"""Returns the scores, pairs x (preferred, rejected), by the criteria at some places; NaN where there is none."""


def ranked(scores: Floats) -> Floats:
    """Return 1 for each pair whose preferred answer scores higher, 0.5 for a tie, 0 for the rest; NaN for NaN."""
    more = scores[:, 0] - scores[:, 1]
    right = np.where(np.abs(more) <= _TOLERANCE, TIE, (more > 0).astype(float))
    return np.where(np.isnan(more), np.nan, right)


def held_out(contributions: Floats, groups: Codes, seen: int, scores: Scores) -> Floats:
    """
    Return how each pair is ranked by criteria that were chosen without it; NaN for those that the writer has seen.

    The other pairs come in up to five folds, in the order of their groups, and each fold is ranked by the criteria that
    the seen pairs and the folds before it choose: progressive validation (A. Blum, A. Kalai and J. Langford, "Beating
    the hold-out", COLT 1999). Were each fold ranked by what all others choose, as in cross-validation, lucky folds
    would keep a criterion for one another: coin flips then passed the sign test at 0.05 in 7 % of simulated runs.

    Args:
        contributions: As for `screened`.
        groups: As for `screened`.
        seen: How many groups, the first ones, the writer was shown.
        scores: Scores the pairs by some of the criteria. Without a criterion that stays, all pairs are ties.
    """
    out = np.full(len(groups), np.nan)
    last = int(groups.max(initial=-1)) + 1
    for fold in np.array_split(np.arange(seen, last), max(1, min(_FOLDS, last - seen))):
        inside, before = np.isin(groups, fold), groups < fold.min(initial=last)
        chosen = screened(contributions[:, before], groups[before])
        kept = [index for index, one in enumerate(chosen) if one.status in KEPT]
        by = ranked(scores(kept)) if kept else np.full(len(groups), TIE)
        out[inside] = by[inside]
    return out
