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
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from attrs import frozen

from rubric.embed import NoTruth

Sides = Sequence[float]
"""What the preferred and the rejected answer of a pair have: a contribution or a score; NaN where one is unjudged."""

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


def discrimination(differences: Sequence[float], groups: Sequence[int]) -> Discrimination:
    """
    Return how a criterion tells pairs apart, by the *differences* preferred - rejected; NaN where one is unjudged.

    The statuses are those of docs/how-to/generate_a_rubric.md: 2 of 2, 4 of 5 and 8 of 12 pairs have p up to 0.25.
    """
    sums: dict[int, int] = {}
    for more, group in zip(differences, groups, strict=True):
        if not math.isnan(more):
            sums[group] = sums.get(group, 0) + _sign(more)
    votes = Counter(_sign(total) for total in sums.values())
    p = sign_test(votes[1], votes[-1])
    return Discrimination(votes[1], votes[-1], votes[0], p, _status(len(sums), votes[1], votes[-1], p))


def sign_test(wins: int, losses: int) -> float:
    """Return the chance of as many *wins* or more by coin flips: one-sided and exact; 1 without any."""
    n = wins + losses
    ways = term = 1
    for k in range(losses):  # to win n - k - 1 is as rare as to lose k + 1
        term = term * (n - k) // (k + 1)
        ways += term
    return float(ways / 2**n)


def _sign(value: float) -> int:
    return (value > _TOLERANCE) - (value < -_TOLERANCE)


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


def screen(contributions: Sequence[Sequence[Sides]], groups: Sequence[int]) -> list[Discrimination]:
    """
    Return how each criterion tells pairs apart; the later one of two that always answer alike is a `duplicate`.

    Two good criteria answer alike on many pairs, since both go with the preference. They are duplicates only if their
    answers also coincide within the preferred and within the rejected answers, more than chance explains (p up to
    0.01, by permutation). *contributions* are criteria x pairs x (preferred, rejected), 1 as good, NaN where unjudged.
    """
    results = [discrimination([good - bad for good, bad in one], groups) for one in contributions]
    kept: list[int] = []
    for index, one in enumerate(results):
        if one.status not in KEPT:
            continue
        if any(_is_duplicate(contributions[index], contributions[earlier]) for earlier in kept):
            results[index] = Discrimination(one.wins, one.losses, one.ties, one.p, "duplicate")
        else:
            kept.append(index)
    return results


def _is_duplicate(one: Sequence[Sides], other: Sequence[Sides]) -> bool:
    # A comparison with NaN is False: nothing is known to be a duplicate of what was not judged.
    if not all(abs(a - b) <= _TOLERANCE for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True)):
        return False
    return sum(map(_log_arrangements, zip(*one, strict=True))) >= -math.log(_COINCIDENCE)


def _log_arrangements(values: Sequence[float]) -> float:
    """Return the logarithm of the number of ways to arrange *values*."""
    counts = Counter(round(value, 9) for value in values).values()
    return math.lgamma(len(values) + 1) - sum(math.lgamma(count + 1) for count in counts)


Scores = Callable[[Sequence[int]], Sequence[Sides]]
"""Returns the scores, pairs x (preferred, rejected), by the criteria at some places; NaN where there is none."""


def pair_wins(scores: Iterable[Sides]) -> list[float]:
    """Return 1 for each pair whose preferred answer scores higher, 0.5 for a tie, 0 for the rest; NaN for NaN."""
    more = [good - bad for good, bad in scores]
    return [margin if math.isnan(margin) else (1 + _sign(margin)) / 2 for margin in more]


def held_out(contributions: Sequence[Sequence[Sides]], groups: Sequence[int], seen: int, scores: Scores) -> list[float]:
    """
    Return how each pair is ranked by criteria that were chosen without it; NaN for those that the writer has seen.

    The other pairs come in up to five folds, in the order of their groups, and each fold is ranked by the criteria that
    the seen pairs and the folds before it choose: progressive validation (A. Blum, A. Kalai and J. Langford, "Beating
    the hold-out", COLT 1999). Were each fold ranked by what all others choose, as in cross-validation, lucky folds
    would keep a criterion for one another: coin flips then passed the sign test at 0.05 in 7 % of simulated runs.
    The writer has *seen* the first groups. Without a criterion that stays, all pairs are ties.
    """
    out = [math.nan] * len(groups)
    units = max(groups, default=-1) + 1 - seen
    folds = min(_FOLDS, units)
    for fold in range(folds):
        # The first folds have a unit more where the units cannot be divided evenly.
        start, end = (seen + units // folds * k + min(k, units % folds) for k in (fold, fold + 1))
        before = [place for place, group in enumerate(groups) if group < start]
        chosen = screen([[one[place] for place in before] for one in contributions], [groups[k] for k in before])
        kept = [index for index, one in enumerate(chosen) if one.status in KEPT]
        by = pair_wins(scores(kept)) if kept else [TIE] * len(groups)
        out = [by[place] if start <= group < end else out[place] for place, group in enumerate(groups)]
    return out
