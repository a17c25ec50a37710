"""
What a choice among rubrics is worth on candidates that it was not chosen by.

The whole choice is repeated for each part of the groups, without its labels (cross-fitting). A gain in verdicts is
tested by McNemar's exact test (Q. McNemar, 1947), any other by Student's t for paired differences, by group.

Where the judge knows nothing, the folds choose alike by chance, and McNemar's test alone finds gains in 7 to 17 % of
samples; where most candidates pass, it finds one whenever the verdicts become a constant. So verdicts must also go with
those of people, by Fisher's exact test.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from rubric.trust.inference import POWER, Codes, Floats, contrast, folds_of, mean_error, paired_contrast

FOLDS = 50
_ROUNDS = 10
Agreements = NDArray[Any]
"""How far a rubric agrees with people on each candidate, in 0..1; of verdicts 0 or 1."""


def cross_fit(right: Agreements, groups: Codes, weights: Floats | None = None) -> tuple[int, Agreements]:
    """
    Return the best of several rubrics, and how far each candidate agrees with the one that is chosen without it.

    *right* has a row a rubric, the old one first, and a column a candidate; *groups* and *weights* are by candidate.
    """
    counts = np.ones(right.shape[1]) if weights is None else weights
    fold = folds_of(groups, FOLDS)
    honest = np.empty(right.shape[1], dtype=right.dtype)
    for number in np.unique(fold):
        inside = fold == number
        honest[inside] = right[_best(right[:, ~inside], counts[~inside]), inside]
    return _best(right, counts), honest


def _best(right: Agreements, weights: Floats) -> int:
    """Return the place of the best rubric: the old one where none is better, else the middle one of the best."""
    sums = right @ weights
    if not right.shape[1] or sums[0] >= sums.max() - 1e-9:
        return 0
    best = np.flatnonzero(sums >= sums.max() - 1e-9)
    return int(best[len(best) // 2])


def p_of_gain(before: Agreements, after: Agreements, groups: Codes, weights: Floats | None = None) -> float:
    """Return the one-sided p of a gain: McNemar's exact test of single verdicts that count alike, else Student's t."""
    differences = after.astype(float) - before.astype(float)
    is_weighted = weights is not None and bool(np.ptp(weights))
    mean = float(np.average(differences, weights=weights))
    if mean <= 0:
        return 1.0
    if int(groups.max()) + 1 == len(groups) and not is_weighted and np.isin(differences, (-1, 0, 1)).all():
        won, lost = int((differences > 0).sum()), int((differences < 0).sum())
        return float(stats.binom.sf(won - 1, won + lost, 0.5))
    found = paired_contrast(differences, groups)
    if found is None:
        return 1.0
    if not is_weighted:
        return found.p / 2
    _, error = mean_error(differences, groups, weights)
    return contrast(mean, max(error, found.error), int(groups.max())).p / 2


def p_of_constant(people: Floats, agreements: Agreements) -> float:
    """Return the p of verdicts that go with those of people as well, if they have nothing to do with them (Fisher)."""
    yes = people == 1
    said = np.where(agreements == 1, yes, ~yes)
    return float(stats.hypergeom.sf((said & yes).sum() - 1, len(yes), yes.sum(), said.sum()))


def missing_labels(
    before: Agreements, after: Agreements, risk: float, groups: Codes, weights: Floats | None = None
) -> int | None:
    """
    Return how many labels more would show the gain in four samples of five (R. J. Connor, Biometrics 43, 1987).

    At least those of one group more; with Student's quantile, since a few groups show little.
    """
    differences = after.astype(float) - before.astype(float)
    gain, error = mean_error(differences, groups, weights)
    if not gain > 0:
        return None
    square = float(np.average(differences**2, weights=weights))
    alone = math.sqrt(max(square - gain * gain, 0) / len(differences))
    design = max(1.0, (error / alone) ** 2) if alone and not math.isnan(error) else 1.0  # of groups and of weights
    n, beta = len(differences), stats.norm.ppf(POWER)
    size = n / (int(groups.max()) + 1)
    needed, alpha = 0.0, stats.norm.isf(risk)
    for _ in range(_ROUNDS):  # more labels have more degrees of freedom, and so need fewer
        needed = design * ((alpha * math.sqrt(square) + beta * math.sqrt(max(square - gain * gain, 0))) / gain) ** 2
        alpha = stats.t.isf(risk, max(1.0, needed / size - 1))
    return max(math.ceil(size), math.ceil(needed) - n)


def constant(people: Floats, weights: Floats, *, of_verdicts: bool) -> float:
    """Return the agreement of the best judge that always says the same."""
    said = (0.0, 1.0) if of_verdicts else np.unique(people)
    far = [float(np.average(np.abs(people - one), weights=weights)) for one in said]
    return 1 - min(far)
