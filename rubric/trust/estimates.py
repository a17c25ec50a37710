"""
Corrected estimates: what people would say of all candidates, from a few labels and many grades.

PPI++ (A. N. Angelopoulos, J. C. Duchi and T. Zrnic, arXiv 2311.01453): the mean of the labels, moved by what the judge
says of the unlabelled candidates, as far as it is right on the labelled ones. The interval of a rate is Agresti and
Coull's at the number of labels that the estimate is worth, that of a mean Student's; near an end of the scale, where a
small sample shows too few errors, pseudo-labels at each end, with the judge at its mean, keep the variance from being
too small. Ungraded candidates are a stratum of their own, if some of them are labelled.
"""

from __future__ import annotations

import math
from os import PathLike
from typing import Any, Literal

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray
from scipy import stats

from rubric import DefinitionError, Grades
from rubric.embed import Presented, Statistic, Table, counted, few_groups, fields, guided, percent, share_interval
from rubric.suites.report import Report
from rubric.trust.assumptions import count_unmatched, of_labels, sentences
from rubric.trust.inference import (
    UPPER,
    Codes,
    Floats,
    Interval,
    compact,
    effective_size,
    mean_error,
    quantile,
    repeat_by_weight,
    student,
    unit_interval,
    worth_of,
)
from rubric.trust.labels import Labels, as_labels
from rubric.trust.ratings import UNIT, VERDICT, Judged, Ratings, as_judged, ratings_of
from rubric.view.plots import chart, forest, row_of

How = Literal["ppi", "rogan-gladen"]
_FEW, _NOTHING = 30, 1e-15
_PSEUDO = 0.5
"""Pseudo-labels at each end of a scale of numbers, and pseudo-groups; simulated in tests/simulations."""


@frozen(repr=False)
class Estimate(Presented):
    """
    What people would say of all candidates.

    Args:
        measure: `pass rate`, `score`, or a criterion.
        value: The estimate: a rate in 0..1, or a mean on the scale of the criterion; None if the judge cannot be
            corrected.
        interval: Where the true value lies, with 95 % confidence.
        labels_only: The mean of the labels alone.
        judge_only: What the judge says of all candidates. Its interval is that of sampling alone: it leaves out the
            judge's errors.
        how: `ppi` or `rogan-gladen`.
        labels: The number of labelled candidates that the judge graded.
        grades: The number of graded candidates without a label.
        worth: The number of labels alone that would give as narrow an interval.
        power: How far the judge is followed, from 0 (not at all) to 1.
        more: How many more labels halve the interval; None if those of all candidates do not.
        ungraded: The candidates that the judge did not grade.
        ungraded_labels: What people say of those, where some are labelled.
        bounds: The value over all candidates, whatever the ungraded ones are, with 95 % confidence.
        notes: What to know before it is trusted.
    """

    _truth = ".value"

    measure: str
    value: float | None
    interval: Interval | None
    labels_only: Statistic
    judge_only: Statistic
    how: str
    labels: int
    grades: int
    worth: float | None = None
    power: float | None = None
    more: int | None = None
    ungraded: int = 0
    ungraded_labels: Statistic | None = None
    bounds: Interval | None = None
    notes: tuple[str, ...] = ()

    def _text(self, value: float, interval: Interval | None) -> str:
        is_rate = self.measure == "pass rate" or self.measure.startswith("rate of ")
        return percent(value, interval) if is_rate else str(Statistic("", value, interval))

    @property
    def sentence(self) -> str:
        """A description of the main figure."""
        judge = self.judge_only.value or 0.0
        if self.value is None:
            return f"The {self.measure} cannot be corrected: {self.notes[0]}."
        basis = f"{self.labels:,} labels and {self.grades:,} more grades"
        own, theirs = self._text(self.value, self.interval), self._text(judge, None)
        return f"The {self.measure} is {own}, by {basis}; the judge says {theirs}."

    def remarks(self) -> list[str]:
        """What to know before it is trusted."""
        lines = sentences(self.notes)
        if self.more is not None:
            lines.append(f"About {self.more:,} more labels halve the interval.")
        elif self.value is not None and self.how == "ppi" and self.grades:
            lines.append("No number of labels halves the interval: grade more candidates too.")
        return lines

    def tables(self) -> list[Table]:
        """The estimate beside labels only and the judge only."""
        own = Statistic("corrected", self.value, self.interval, "" if self.value is not None else self.notes[0])
        of_each = [(own, self.labels + self.grades), (self.labels_only, self.labels)]
        of_each += [(self.judge_only, self.labels + self.grades)]
        of_each += [] if self.ungraded_labels is None else [(self.ungraded_labels, self.ungraded)]
        rows = [(one.name, n, str(one)) for one, n in of_each]
        return [("", (self.measure, "candidates", "estimate"), rows)]

    def plot(self) -> Any:
        """Return the estimate beside labels only and the judge only, as an Altair chart."""
        shown = Statistic("corrected", self.value, self.interval), self.labels_only, self.judge_only
        rows = [row_of(one.name, one.value, one.interval) for one in shown]
        return chart(forest(rows, self.measure), title=self.sentence)


@guided
def estimate(
    grades: Grades | Report | Judged | str | PathLike[str],
    labels: Labels | Any,
    *,
    criterion: str | None = None,
    how: How = "ppi",
) -> Estimate:
    """
    Estimate what people would say of all candidates, from labels on some of them.

    The labelled candidates must be a random sample of all, or carry weights; with `how="rogan-gladen"` they may have
    another base rate, as long as the judge errs on them as it does on all.

    Args:
        grades: What the judge said of all candidates.
        labels: What people said of some.
        criterion: The id of the criterion; empty for the whole: the pass rate, or the score where labels are numbers.
            None for the whole, or for the one criterion that is labelled.
        how: `ppi` for PPI++; `rogan-gladen` for a rate where the labelled candidates were chosen, see C. Lee et al.,
            arXiv 2511.21140.

    Raises:
        DefinitionError: Nothing matches, a label is outside of its scale, or options have no mean.
    """
    fields.check_name("how", how, ("ppi", "rogan-gladen"))
    given = as_judged(grades)
    every = as_labels(labels)
    ratings = ratings_of(given, every, criterion)
    if ratings.scale.kind == "option":
        raise DefinitionError("criterion", f"{ratings.criterion!r} has options, and options have no mean")
    found = estimate_of(ratings, how)
    notes = of_labels(given, every, [ratings], by_chance=how == "ppi", ties=how != "ppi")
    return evolve(found, notes=(*found.notes, *notes))


def estimate_of(ratings: Ratings, how: How = "ppi") -> Estimate:
    """Return the estimate of one criterion."""
    judge, scale = ratings.judge, ratings.scale
    is_rate = scale.kind == "verdict"
    target = ratings.target if how == "rogan-gladen" else ratings.votes
    graded, labelled = ~np.isnan(judge), ~np.isnan(target)
    both, rest = graded & labelled, graded & ~labelled
    weights, unlabelled = ratings.weights[both], int(rest.sum())
    if unlabelled and len(weights) and np.ptp(weights) > 0:
        rest = graded  # those without a label are not a random sample either: what was likely to be drawn is missing
    y, f, more = target[both], judge[both], judge[rest]
    groups = ratings.groups if ratings.grouped else None
    _check_enough(ratings, both)
    low, high = (0.0, 1.0) if is_rate else scale.ends(np.append(y, judge[graded]))
    span = (high - low) or 1.0
    labels_only = _of_labels("labels only", ratings, target, both, (low, span))
    ends = unit_interval((judge[graded] - low) / span, None if groups is None else groups[graded])
    judge_only = Statistic("judge only", float(judge[graded].mean()), _stretch(ends, low, span))
    notes = _notes(ratings, y, len(more), groups, both)
    ungraded = int((~graded).sum())
    missed = labelled & ~graded
    apart = _of_labels("labels on ungraded", ratings, target, missed, (low, span)) if missed.any() else None
    counts = {"labels": len(y), "grades": unlabelled, "ungraded": ungraded}
    made: dict[str, Any] = {"how": how, "ungraded_labels": apart, **counts}
    if how == "rogan-gladen":
        if not is_rate:
            raise DefinitionError("how", "rogan-gladen corrects rates; for a mean use 'ppi'")
        others = rest if len(more) else both
        clusters = None if groups is None else (groups[both], groups[others])
        value, interval, note = _rogan_gladen(y, f, judge[others], weights, clusters)
        notes = [note, *notes] if note else notes
    else:
        both_groups = None if groups is None else (groups[both], groups[rest])
        y, f, more = ((each - low) / span for each in (y, f, more))
        value, interval, extra = _ppi(
            _Sample(y, f, more, weights * weights.sum() / (weights @ weights), both_groups, is_rate)
        )
        if is_rate and (weights != 1).any():
            interval = _by_verdict(interval, ratings, target, both)
        value, interval = low + value * span, _stretch(interval, low, span)
        made |= extra
        if labels_only.interval is not None and len(more) == 0:  # the labels are all there is
            value, interval = labels_only.value, labels_only.interval
    if how == "ppi" and value is not None and interval is not None and apart is not None and apart.interval is not None:
        value, interval = _stratify(Statistic("", value, interval), apart, *mean_error((~graded).astype(float), groups))
        interval = max(low, interval[0]), min(high, interval[1])
        basis = f"by their {counted(int(missed.sum()), 'label')}, of which {apart.value:.2f} is the mean"
        notes.append(
            f"the {ungraded:,} ungraded candidates count {basis}; of graded ones it is {labels_only.value:.2f}"
        )
    elif ungraded and value is not None:
        share, (least, most) = ungraded / len(judge), interval or (value, value)
        made["bounds"] = ((1 - share) * least + share * low, (1 - share) * most + share * high)
        said = " to ".join(f"{end:.3f}" for end in made["bounds"])
        notes.append(f"{ungraded:,} candidates are ungraded and left out: over all, the value is {said}")
    return Estimate(_measure_of(ratings), value, interval, labels_only, judge_only, notes=tuple(notes), **made)


def _by_verdict(interval: Interval, ratings: Ratings, target: Floats, labelled: NDArray[np.bool_]) -> Interval:
    """Return the *interval* of a rate from labels by weight, as wide as by strata of what the judge says, too."""
    # The share that the judge passes is known (D. Holt and T. M. F. Smith, Journal of the Royal Statistical Society A
    # 142, 1979), and a verdict without a label may have any rate: of few heavy labels a sample may show none that
    # differs, or none at all.
    graded, groups = ~np.isnan(ratings.judge), ratings.groups if ratings.grouped else None

    def part(verdict: int) -> Statistic:
        rows = labelled & (ratings.judge == verdict)
        if not rows.any():
            return Statistic("", 0.5)
        ends = _interval(target[rows], None if groups is None else groups[rows], ratings.weights[rows])
        return Statistic("", float(np.average(target[rows], weights=ratings.weights[rows])), ends)

    passed = mean_error(ratings.judge[graded], None if groups is None else groups[graded])
    low, high = _stratify(part(0), part(1), *passed)[1]
    return min(interval[0], low), max(interval[1], high)


def _check_enough(ratings: Ratings, both: NDArray[np.bool_]) -> None:
    """Raise for fewer than two labelled and graded candidates, or groups of them: one draw shows no error."""
    found, units = int(both.sum()), "candidates"
    if found > 1 and ratings.grouped:
        found, units = len(np.unique(ratings.groups[both])), "groups"
    if found < 2:
        divided = int((~np.isnan(ratings.people).all(axis=1) & np.isnan(ratings.target)).sum())
        more = f"; people are divided on {divided:,}" if divided else ""
        raise DefinitionError("labels", f"an estimate takes two labelled {units} that are graded, got {found}{more}")


def _measure_of(ratings: Ratings) -> str:
    if ratings.criterion:
        return f"{'rate' if ratings.scale.kind == 'verdict' else 'mean'} of {ratings.criterion}"
    return "pass rate" if ratings.scale == VERDICT else "score" if ratings.scale == UNIT else "mean"


def _stretch(interval: Interval | None, low: float, span: float) -> Interval | None:
    return None if interval is None else (low + interval[0] * span, low + interval[1] * span)


def _interval(values: Floats, groups: Codes | None, weights: Floats) -> Interval | None:
    """Return the interval of a weighted mean of *values* in 0..1; the copies of a candidate are one group."""
    if not np.ptp(weights):
        return unit_interval(values, groups)
    rows = repeat_by_weight(weights)
    among = np.arange(len(values)) if groups is None else groups
    return unit_interval(values[rows], among[rows], effective_size(weights) if groups is None else None)


def _notes(ratings: Ratings, y: Floats, more: int, groups: Codes | None, both: NDArray[np.bool_]) -> list[str]:
    notes = []
    if ratings.unmatched:
        notes.append(count_unmatched(ratings.unmatched))
    weights = ratings.weights[both]
    if (worth := effective_size(weights)) < _FEW:
        few = counted(len(y), "label") if len(y) < _FEW else f"labels that are worth {worth:.0f} of one weight"
        alone = ", and labels alone have none" if worth_of(weights)[1] else ""
        notes.append(f"with {few} the interval says little{alone}")
    if not more:
        notes.append("every graded candidate is labelled, so the labels are the estimate")
    if groups is not None and (few := few_groups(len(np.unique(groups[both])))):
        notes.append(few)
    return notes


def _of_labels(
    name: str, ratings: Ratings, target: Floats, rows: NDArray[np.bool_], scale: tuple[float, float]
) -> Statistic:
    """Return what the labels in *rows* say by themselves, on a *scale* with a low end and a width."""
    (low, span), y, weights = scale, target[rows], ratings.weights[rows]
    ends, why = (
        _interval((y - low) / span, ratings.groups[rows] if ratings.grouped else None, weights),
        worth_of(weights)[1],
    )
    return Statistic(name, float(np.average(y, weights=weights)), None if why else _stretch(ends, low, span), why)


def _stratify(graded: Statistic, ungraded: Statistic, share: float, error: float) -> tuple[float, Interval]:
    """Return the value over all candidates, of which a *share* is ungraded, with its interval."""
    # The interval is put together from those of both and from the *error* of the share, as in G. Y. Zou and A. Donner,
    # Statistics in Medicine 27, 2008.
    parts = [(by, one.value or 0.0, one.interval or (0.0, 1.0)) for by, one in ((1 - share, graded), (share, ungraded))]
    value, apart = sum(by * mean for by, mean, _ in parts), parts[0][1] - parts[1][1]
    moved = float(stats.norm.ppf(UPPER)) * apart * error
    low, high = (math.hypot(moved, *(by * (mean - ends[end]) for by, mean, ends in parts)) for end in (0, 1))
    return value, (value - low, value + high)


# -- PPI++ -------------------------------------------------------------------------------------------------


@frozen(eq=False)
class _Sample:
    """
    What an estimate rests on, all in 0..1.

    *y* is what people said, *f* what the judge said of the same candidates, and *more* of the others; *w* are the
    weights of the labelled candidates, which add up to as many of one weight as they are worth (L. Kish, 1965);
    *groups* those of the labelled and of the others.
    """

    y: Floats
    f: Floats
    more: Floats
    w: Floats
    groups: tuple[Codes, Codes] | None
    is_rate: bool


def interval_of(people: Floats, judge: Floats, more: Floats) -> Interval:
    """Return the interval of a rate, by what *people* and the *judge* said, and the judge of *more* candidates."""
    return _ppi(_Sample(people, judge, more, np.ones(len(people)), None, is_rate=True))[1]


def _ppi(sample: _Sample) -> tuple[float, Interval, dict[str, Any]]:
    """Return the estimate, its interval, and what it is worth."""
    n = float(sample.w.sum())
    plain = _Fit.of(sample, 0.0)
    value = min(max(plain.value, 0.0), 1.0)
    skew, few = (1 - 2 * value) ** 2, min(1.0, 20 / n)
    fit = _Fit.of(sample, 0.3 + 3 * skew + few * (1 + skew) if sample.is_rate else _PSEUDO)  # see tests/simulations
    design = _design_effect(sample, plain.power)
    worth = n / max(fit.variance / fit.labels_variance * design, 1e-6)
    q = student(_freedom(sample, fit))
    if sample.is_rate:
        interval = share_interval(value * worth, worth, q) or (0.0, 1.0)
    else:
        half = q * float(np.sqrt(fit.variance * design))
        interval = (max(0.0, min(fit.value - half, value)), min(1.0, max(fit.value + half, value)))
    target = fit.variance / 4 - fit.more_variance
    labels = len(sample.y)
    needed = int(np.ceil(labels * fit.own_variance / target)) - labels if target > 0 else None
    if needed is not None and needed > len(sample.more) > 0:  # more than are left to label
        needed = None
    return value, interval, {"worth": float(worth), "power": float(plain.power), "more": needed}


@frozen
class _Fit:
    """One power-tuned estimate: more labels make the *own* part of its variance smaller, more grades the other."""

    value: float
    power: float
    own_variance: float
    more_variance: float
    labels_variance: float

    @property
    def variance(self) -> float:
        """The variance of the value."""
        return self.own_variance + self.more_variance

    @classmethod
    def of(cls, sample: _Sample, pseudo: float) -> _Fit:
        """Return the fit with *pseudo* labels at each end, where the judge says what it says on average."""
        y, f, more, w = sample.y, sample.f, sample.more, sample.w
        n, extra = float(w.sum()), len(more)
        k = n + 2 * pseudo
        middle = float(((w * f).sum() + more.sum()) / (n + extra))
        mean_y = ((w * y).sum() + pseudo) / k
        mean_f = ((w * f).sum() + 2 * pseudo * middle) / k
        yy = ((w * (y - mean_y)) ** 2).sum() + pseudo * (mean_y**2 + (1 - mean_y) ** 2)
        ff = ((w * (f - mean_f)) ** 2).sum() + 2 * pseudo * (middle - mean_f) ** 2
        fy = (w**2 * (f - mean_f) * (y - mean_y)).sum() + pseudo * (middle - mean_f) * (1 - 2 * mean_y)
        var_y, var_f, covariance = yy / (k - 1), ff / (k - 1), fy / (k - 1)
        power = covariance / var_f / (1 + k / extra) if extra and var_f > 1e-12 else 0.0
        power = min(max(power, 0.0), 1.0)
        value = mean_y + power * (more.mean() - mean_f) if extra else mean_y
        lost = (n - 1) / max(1, n - 2) if power else 1.0  # the degree of freedom of the power
        own = max(0.0, lost * (var_y - 2 * power * covariance + power**2 * var_f) / k)
        others = power**2 * more.var() / extra if extra else 0.0
        alone = mean_y * (1 - mean_y) / (k - 1) if sample.is_rate and pseudo else var_y / k
        return cls(float(value), float(power), float(own), float(others), float(max(alone, 1e-15)))


def _freedom(sample: _Sample, fit: _Fit) -> float:
    """Return Student's degrees of freedom: the labels, or groups of them, that the variance rests on, less one."""
    # By weight, a few heavy ones may decide it (A. V. Carter, K. T. Schnepel and D. G. Steigerwald, Review of Economics
    # and Statistics 99, 2017): by what is seen of each, and by what the fit takes each to be, since few may differ.
    w, groups = sample.w, np.arange(len(sample.w)) if sample.groups is None else compact(sample.groups[0])
    units = float(groups.max()) + 1
    if np.ptp(w) > 0:
        residual = sample.y - fit.power * sample.f
        seen = np.bincount(groups, weights=w * (residual - np.average(residual, weights=w))) ** 2
        parts = seen + np.bincount(groups, weights=w**2) * max(fit.own_variance, _NOTHING) * w.sum()
        units = float(min(w.sum(), units, parts.sum() ** 2 / (parts**2).sum()))
    return max(1.0, units - 1)


def _design_effect(sample: _Sample, power: float) -> float:
    """Return how much larger the variance is for groups than for candidates on their own; see L. Kish, 1965."""
    # Groups of which all have the commonest label do not tell whether labels go together; where few do, it is
    # uncertain, and most often too small. So half a pseudo-group of candidates that are alike is added to those that
    # tell.
    if sample.groups is None:
        return 1.0
    y, f, more, w = sample.y, sample.f, sample.more, sample.w
    labelled, others = sample.groups
    count = int(max(labelled.max(), others.max() if len(others) else 0)) + 1

    def sums(groups: Codes, values: Floats) -> Floats:
        return np.bincount(groups, weights=values, minlength=count).astype(float)

    residual = w * (y - power * f)
    n, own = sums(labelled, w), sums(labelled, residual)
    extra, said = sums(others, np.ones(len(more))), sums(others, more)
    without = (own.sum() - own) / (n.sum() - n)
    whole = own.sum() / n.sum()
    alone = residual.var(ddof=1) / len(y)
    if len(more):
        without = without + power * (said.sum() - said) / (extra.sum() - extra)
        whole = whole + power * said.sum() / extra.sum()
        alone += power**2 * more.var() / len(more)
    by_group = (1 - 1 / (n > 0).sum()) * ((without - whole) ** 2).sum()
    alike = float((n**2).sum() / n.sum())  # the effect where all candidates of a group are alike
    found = float(by_group / alone) if alone > _NOTHING else alike
    values, counts = np.unique(y, return_counts=True)
    tell = len(np.unique(labelled[y != values[counts.argmax()]]))
    return (tell * found + _PSEUDO * alike) / (tell + _PSEUDO)


# -- Rogan and Gladen --------------------------------------------------------------------------------------


def _right(right: NDArray[np.bool_], weights: Floats) -> tuple[float, float]:
    """Return how many labels that count alike these are worth, and the share of them that is *right*."""
    return effective_size(weights), float(np.average(right, weights=weights)) if len(right) else 0.0


def _rogan_gladen(
    y: Floats, f: Floats, others: Floats, weights: Floats, groups: tuple[Codes, Codes] | None
) -> tuple[float | None, Interval | None, str]:
    """Return the rate that explains the judge's, by its errors on the labelled; the interval is of arXiv 2511.21140."""
    (good, right_good), (bad, right_bad) = (_right(f[y == side] == side, weights[y == side]) for side in (1, 0))
    if not good or not bad:
        return None, None, "the labels are all the same, so they show the judge's errors on one side alone"
    informed = right_bad + right_good - 1
    if informed <= 0:
        return None, (0.0, 1.0), "the judge passes bad candidates as often as good ones, or more often"
    share, n = float(others.mean()), len(others)
    value = min(max((share + right_bad - 1) / informed, 0.0), 1.0)
    z, design = float(stats.norm.ppf(UPPER)), 1.0
    share_, n_ = (n * share + z * z / 2) / (n + z * z), n + z * z
    b, b_ = (bad * right_bad + 1) / (bad + 2), bad + 2
    g, g_ = (good * right_good + 1) / (good + 2), good + 2
    inner = b + g - 1
    if inner <= 0:
        return value, (0.0, 1.0), "the judge hardly tells good candidates from bad ones"
    centre = min(max((share_ + b - 1) / inner, 0.0), 1.0)
    if groups is not None:
        missed, cleared = ((weights[y == side].sum()) for side in (1, 0))
        moved = np.where(y == 1, -centre * (f - g) / missed, (1 - centre) * (1 - f - b) / cleared)
        design, z = _cluster_effect(np.append(weights * moved, (others - share_) / n), np.concatenate(groups))
    shift = 2 * z * z * (-(1 - centre) * b * (1 - b) / b_ + centre * g * (1 - g) / g_)
    spread = share_ * (1 - share_) / n_ + (1 - centre) ** 2 * b * (1 - b) / b_ + centre**2 * g * (1 - g) / g_
    half = z * float(np.sqrt(spread * design)) / inner
    return value, (max(0.0, centre + shift - half), min(1.0, centre + shift + half)), ""


def _cluster_effect(moved: Floats, groups: Codes) -> tuple[float, float]:
    """Return how much larger the variance is by group, at least 1, and Student's quantile; *moved* adds up to it."""
    sums = np.bincount(compact(groups), weights=moved)
    m = len(sums)
    by_group = m / max(1, m - 1) * float((sums**2).sum())
    return max(1.0, by_group / max(float((moved**2).sum()), _NOTHING)), quantile(groups, len(moved))
