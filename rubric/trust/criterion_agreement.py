"""
Agreement on one criterion: a judge with people, and people with each other.

What people say together is the target: the mean of numbers, the majority of verdicts and options. It is easier to meet
than one person is, so like is compared with like: the judge with each person beside people with each other, on the same
candidates, averaged over pairs. A judge as good as people reaches what they reach.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from attrs import evolve, field, frozen

from rubric.embed import NoTruth, Statistic, counted, few_groups, percent
from rubric.trust import coefficients as co
from rubric.trust.coefficients import among_many, coefficient, share, widen, without_intervals
from rubric.trust.disagreements import Disagreement, disagreements_in
from rubric.trust.inference import Codes, Floats, compact, paired_contrast, repeat_by_weight, unit_interval, worth_of
from rubric.trust.rates import ClassRates, balanced_accuracy, named_rates, rates_of
from rubric.trust.ratings import Ratings, Scale

_FEW, _UNEVEN = 30, 0.9

_COMMON, _MOST_PAIRS = 3, 300
"""The candidates that two people have in common, and the pairs of people that are compared."""

LEVELS: tuple[co.Level, ...] = ("ordinal", "interval")
"""The alphas of numbers. A nominal one takes a rating that is a point off for as wrong as the opposite."""

BRIEF = {
    "verdict": ("agreement", "TPR", "TNR", "kappa"),
    "option": ("agreement", "balanced accuracy", "kappa"),
    "number": ("pearson", "RMSE", "bias"),
}
"""What is looked at first: how often, how the errors lie, and one coefficient; of people alone it is alpha."""

_EXACT = 0.5
"""Where more numbers are equal, intervals allow for differences that the sample missed."""


@frozen(repr=False)
class CriterionAgreement(NoTruth):
    """
    Agreement on one criterion, or on the whole.

    Args:
        id: The criterion's; empty for the verdict on the whole, `all criteria` for all of them together.
        kind: `verdict`, `number` or `option`.
        n: The candidates with a verdict of the judge and a label.
        coverage: The share of the labelled candidates of which the judge gave a verdict.
        ties: Labelled candidates on which as many people say one thing as another; they are left out.
        people: The mean of what people say, or their share of yes.
        judge: The same of the judge, over the same candidates.
        categories: The names of what may be said; empty for numbers with many values.
        confusion: How often people (rows) and the judge (columns) said what, in the order of *categories*.
        statistics: The judge with people: the agreement, the rates of a verdict (TPR, TNR, precision, F1, balanced
            accuracy), then coefficients that are corrected for chance.
        rates: The rates of each category of a verdict or an option.
        ceiling: People with each other, in pairs; alpha, AC1 and ICC of all at once. Empty for one person.
        each: The judge with each person, on the candidates of these pairs.
        constant: The best judge that always says the same: its agreement, or for numbers its RMSE.
        remarks: What to know before a figure is trusted.
        disagreements: The candidates of which the two sides do not say the same.
    """

    _truth = ".statistics"

    id: str
    kind: str
    n: int
    coverage: float
    ties: int
    people: float | None
    judge: float | None
    categories: tuple[str, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    statistics: tuple[Statistic, ...] = ()
    ceiling: tuple[Statistic, ...] = ()
    constant: Statistic | None = None
    remarks: tuple[str, ...] = ()
    rates: tuple[ClassRates, ...] = ()
    each: tuple[Statistic, ...] = ()
    disagreements: tuple[Disagreement, ...] = field(default=(), eq=False)

    def __getitem__(self, name: str) -> Statistic:
        """
        Return the statistic *name*, such as `agreement`, `kappa` or `pearson`.

        Raises:
            KeyError: There is no such statistic of this kind of ratings.
        """
        found = {statistic.name: statistic for statistic in self.statistics}
        if name not in found:
            raise KeyError(f"no statistic {name!r} of a {self.kind} among {', '.join(found)}")
        return found[name]

    @property
    def title(self) -> str:
        """The id, or a name for the whole."""
        return self.id or "the whole"

    def __str__(self) -> str:
        figures = [f"{each.name} {each}" for each in self.statistics if each.name in BRIEF[self.kind]]
        return ", ".join([f"{self.title}: {counted(self.n, 'candidate')}", *figures])

    def __repr__(self) -> str:
        return f"<CriterionAgreement {self}>"

    def sentence(self, one: str = "The judge", other: str = "people") -> str:
        """Describe the main figure."""
        if self.n < 2:
            divided = f"; {other} are divided on {self.ties:,} more" if self.ties else ""
            return f"{one} and {other} rated {counted(self.n, 'candidate')} in common, too few for a figure{divided}."
        if self.kind == "number":
            r, off = self["pearson"], self["MAE"]
            said = f"is off by {off.value:.2f}" + (f" ({_range(off)})" if off.interval else "")
            with_people = f"has no correlation with {other} ({r.reason})"
            with_people = f"correlates with {other} at {r.value:.2f}" if r.value is not None else with_people
            with_people += f" ({_range(r)})" if r.interval else ""
            tail = self._like_for_like("pearson", "at {:.2f}".format)
            return f"{one} {with_people} and {said} on average{tail}."
        agreed, tail = self["agreement"], self._like_for_like("agreement", lambda value: f"in {percent(value)}")
        return f"{one} agrees with {other} in {percent(agreed.value or 0.0, agreed.interval)}{tail}."

    def _like_for_like(self, name: str, shown: Callable[[float], str]) -> str:
        found = [next((s.value for s in of if s.name == name), None) for of in (self.each, self.ceiling)]
        one, among = (None if value is None else shown(value) for value in found)
        if among is None:
            return ""
        return f"; {f'with each of them {one}, ' if one else ''}people with each other {among}"


def _range(statistic: Statistic) -> str:
    low, high = statistic.interval or (np.nan, np.nan)
    return f"{low:.2f} to {high:.2f}"


def agreement_of(ratings: Ratings) -> CriterionAgreement:
    """Return the agreement on one criterion."""
    scale = ratings.scale
    anyone = ~np.isnan(ratings.people).all(axis=1)
    one, other, _ = _both(ratings)
    n, ties = len(one), int((anyone & np.isnan(ratings.target)).sum())
    judged_too = int((anyone & ~np.isnan(ratings.judge)).sum())
    coverage = judged_too / max(1, int(anyone.sum()))
    counted = by_weight(ratings)
    a, b, codes = _both(counted)
    groups = codes if counted.grouped else None
    worth, why = worth_of(ratings.weights[~np.isnan(ratings.target) & ~np.isnan(ratings.judge)])
    rates = rates_of(a, b, scale.names, groups, worth) if n > 1 else ()
    statistics = _pair(a, b, scale, groups, rates=rates, worth=worth) if n > 1 else []
    rates = tuple(evolve(r, people=int((other == k).sum()), judge=int((one == k).sum())) for k, r in enumerate(rates))
    categories, confusion = _confusion(one, other, scale)
    each, ceiling = _like_for_like(counted)
    constant = _constant(b, scale) if n else None
    remarks = _remarks(other, scale, coverage, groups if ratings.grouped else None)
    if why:
        statistics, each, ceiling = ([without_intervals(s, why) for s in of] for of in (statistics, each, ceiling))
        rates, remarks = tuple(without_intervals(one, why) for one in rates), [*remarks, why]
    if constant is not None and scale.kind != "number":
        said = constant.name.removeprefix("always ")
        remarks.append(f"a judge that always says {said} agrees in {percent(constant.value or 0.0)}")
    people, judge = (float(side.mean()) if n and scale.kind != "option" else None for side in (b, a))
    made = (categories, confusion, tuple(statistics), tuple(ceiling), constant, tuple(remarks), rates, tuple(each))
    apart = disagreements_in(ratings)
    return CriterionAgreement(ratings.criterion, scale.kind, n, coverage, ties, people, judge, *made, apart)


def _both(ratings: Ratings) -> tuple[Floats, Floats, Codes]:
    """Return what judge and people say where both say something, and the groups of these candidates."""
    target = ratings.target
    both = ~np.isnan(target) & ~np.isnan(ratings.judge)
    return ratings.judge[both], target[both], compact(ratings.groups[both])


def by_weight(ratings: Ratings) -> Ratings:
    """
    Return *ratings* with each labelled candidate as often as it counts.

    The copies of a candidate are one group, so errors are those of weighted estimates.
    """
    labelled = ~np.isnan(ratings.target)
    weights = ratings.weights[labelled]
    if not len(weights) or np.ptp(weights) == 0:
        return ratings
    rows = np.append(np.flatnonzero(labelled)[repeat_by_weight(weights)], np.flatnonzero(~labelled))
    kept = {name: getattr(ratings, name)[rows] for name in ("judge", "people", "groups", "weights")}
    return evolve(ratings, grouped=True, **kept)


def _correlations(a: Floats, b: Floats, scale: Scale) -> dict[str, co.Coefficient]:
    """Return how two raters go together: kappa, and of numbers correlations."""
    if scale.kind != "number":
        return {"kappa": co.cohen(a, b)}
    return {"pearson": co.pearson(a, b), "spearman": co.spearman(a, b), "kendall": co.kendall(a, b)}


def _alike(a: Floats, b: Floats, scale: Scale, groups: Codes | None, worth: float | None = None) -> Statistic:
    """Return how often two raters say the same."""
    different = len(co.categories_of(a, b)) if scale.kind == "number" else 0
    if different > co.MOST_CATEGORIES:
        return Statistic("agreement", None, reason=f"{different:,} different ratings are numbers, no categories")
    return share("agreement", (a == b).astype(float), groups, worth)


def _pair(
    a: Floats,
    b: Floats,
    scale: Scale,
    groups: Codes | None,
    *,
    rates: Sequence[ClassRates] = (),
    worth: float | None = None,
) -> list[Statistic]:
    """Return the statistics of two raters on a scale; by weight, of labels that are *worth* so many."""
    found = [_alike(a, b, scale, groups, worth)]
    found += named_rates(rates, balanced_accuracy(rates, a, b, groups)) if rates else []
    freedom = _freedom(a, b, scale, groups)
    plain = {name: coefficient(name, one, groups, freedom) for name, one in _coefficients(a, b, scale).items()}
    if (more := _unseen(a, b, scale, groups, worth)) is not None:
        x, y, unit = np.append(a, more[0]), np.append(b, more[1]), more[2]
        among = None if groups is None else np.append(groups, groups.max() + 1 + unit)
        for name, one in _coefficients(x, y, scale).items():
            other = coefficient(name, one, among, freedom).interval
            if name in plain and (name != "AC1" or scale.kind == "number"):
                plain[name] = widen(plain[name], other)
    errors = _errors(a, b, scale, groups, worth) if scale.kind == "number" else []
    first = [plain.pop(name) for name in ("pearson", "spearman", "kendall") if errors]
    return [*found, *first, *errors, *plain.values()]


def _coefficients(a: Floats, b: Floats, scale: Scale) -> dict[str, co.Coefficient]:
    """Return all coefficients of two raters."""
    both = np.stack([a, b], axis=1)
    found = _correlations(a, b, scale)
    if scale.kind == "number":
        found |= {"kappa": co.cohen(a, b), "kappa, linear": co.cohen(a, b, weighting="linear")}
        found |= {"kappa, quadratic": co.cohen(a, b, weighting="quadratic")}
        found |= {f"alpha, {level}": co.alpha(both, level) for level in LEVELS}
        return found | {"AC1": co.gwet(both), **co.intraclass(both)}
    found |= {"phi": co.pearson(a, b)} if scale.kind == "verdict" else {}
    return found | {"alpha": co.alpha(both), "AC1": co.gwet(both)}


def _freedom(a: Floats, b: Floats, scale: Scale, groups: Codes | None) -> float:
    """Return the units that a coefficient which is corrected for chance rests on, as its degrees of freedom."""
    # Of verdicts in groups these are groups that the rarer verdict is worth, of options and mostly equal numbers those
    # that differ, ten at least (A. V. Carter, K. T. Schnepel and D. G. Steigerwald, Review of Economics and Statistics
    # 99, 2017).
    least, counted = 1.0 if groups is not None else co.FEWEST, [side != _commonest(side) for side in (a, b)]
    if scale.kind == "number" and (a == b).mean() > _EXACT:
        least, counted = co.FEWEST, [a != b]
    elif scale.kind == "number" or (scale.kind == "verdict" and groups is None):
        return np.inf
    units = np.arange(len(b)) if groups is None else groups
    counts = [np.bincount(units[rows]) for rows in counted]
    return max(least, min(float(each.sum() ** 2 / (each**2).sum()) if each.any() else 1.0 for each in counts))


def _commonest(values: Floats) -> float:
    found, counts = np.unique(values, return_counts=True)
    return float(found[counts.argmax()])


def _unseen(
    a: Floats, b: Floats, scale: Scale, groups: Codes | None, worth: float | None
) -> tuple[Floats, Floats, Codes] | None:
    """
    Return candidates that a small sample may have missed, and which belong together; None where it has enough of them.

    Coefficients rest on the candidates to which a rater does not give his commonest rating: of a few, a sample may show
    none that differ. In groups they come as often as in those that have one, and by weight as heavy as one of those
    that the labels are worth.
    """
    units, every = np.arange(len(b)) if groups is None else groups, np.concatenate([a, b])
    often, rare = min(((_commonest(side), side != _commonest(side)) for side in (a, b)), key=lambda of: of[1].sum())
    number = worth * float(rare.mean()) if worth else len(np.unique(units[rare]))
    others = every[every != often]
    if number >= co.RARE or (scale.kind == "number" and not len(others)):
        return None
    other = _commonest(others) if len(others) else float(often == 0)
    times = round(len(b) / worth if worth else int(rare.sum()) / max(number, 1)) or 1
    x, y = np.array([often, often, other, other]), np.array([often, other, often, other])
    return np.repeat(x, times), np.repeat(y, times), np.repeat(np.arange(4), times)


def _errors(a: Floats, b: Floats, scale: Scale, groups: Codes | None, worth: float | None = None) -> list[Statistic]:
    """Return MAE, RMSE and bias, within the width of the scale; the root has the interval of its square."""
    # Most errors of a good judge are 0 and a few are large, so the intervals have pseudo-errors at the largest one
    # seen.
    most = np.inf if scale.low is None or scale.high is None else scale.high - scale.low
    off = np.abs(a - b)
    largest = float(off.max()) or float(np.ptp(np.concatenate([a, b]))) or 1.0
    unseen = 3 if worth or (groups is None and (len(a) < _FEW or (a == b).mean() > _EXACT)) else 0
    out = []
    for name, power, times in (("MAE", 1, unseen // 2), ("RMSE", 2, unseen)):
        shares = (off / largest) ** power
        found = Statistic(name, largest * float(shares.mean()) ** (1 / power), unit_interval(shares, groups))
        found = widen(found, unit_interval(*_append(shares, [1.0] * times, groups, worth)) if times else None)
        low, high = found.interval or (np.nan, np.nan)
        low, high = (min(most, largest * end ** (1 / power)) for end in (low, high))
        is_told = found.interval is not None and len(a if groups is None else np.unique(groups)) >= co.FEWEST
        out.append(evolve(found, interval=(low, high) if is_told else None))
    contrasts = [paired_contrast(a - b, groups)]
    more = (-largest, largest) if unseen else ()
    contrasts += [paired_contrast(*_append(a - b, [end], groups, worth)) for end in more]
    ends = [one.interval for one in contrasts if one is not None]
    both = (max(-most, min(low for low, _ in ends)), min(most, max(high for _, high in ends))) if ends else None
    return [*out, Statistic("bias", float((a - b).mean()), both)]


def _append(
    values: Floats, more: Sequence[float], groups: Codes | None, worth: float | None
) -> tuple[Floats, Codes | None]:
    """Return *values* with *more* of them, each a group where there are groups, and by weight as heavy as others."""
    times = round(len(values) / worth) if worth else 1
    units = None if groups is None else np.append(groups, np.repeat(groups.max() + 1 + np.arange(len(more)), times))
    return np.append(values, np.repeat(more, times)), units


def _confusion(a: Floats, b: Floats, scale: Scale) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    if not len(a):
        return (), ()
    found = co.categories_of(a, b) if scale.kind == "number" else np.arange(len(scale.names), dtype=float)
    if len(found) > 12:
        return (), ()
    size = len(found)
    cells = np.bincount(np.searchsorted(found, b) * size + np.searchsorted(found, a), minlength=size * size)
    names = scale.names or tuple(f"{value:g}" for value in found)
    return names, tuple(tuple(int(cell) for cell in row) for row in cells.reshape(size, size))


def _constant(b: Floats, scale: Scale) -> Statistic:
    if scale.kind == "number":
        return Statistic(f"always {b.mean():.2f}", float(b.std()))
    code, count = max(zip(*np.unique(b, return_counts=True), strict=True), key=lambda each: each[1])
    return Statistic(f"always {scale.names[int(code)]}", float(count / len(b)))


def among_people(ratings: Ratings) -> list[CriterionAgreement]:
    """Return how people agree with each other, then each of three and more with the others together."""
    several = int(((~np.isnan(ratings.people)).sum(axis=1) > 1).sum())
    every, scale = ratings.people[~np.isnan(ratings.people)], ratings.scale
    mean = None if scale.kind == "option" or not len(every) else float(every.mean())
    remarks = tuple(_few(several, "candidate", " with two labels"))
    figures = tuple(_like_for_like(ratings, judged=False)[1])
    made = CriterionAgreement(ratings.criterion, scale.kind, several, 1.0, 0, mean, mean, (), (), figures)
    apart = disagreements_in(evolve(ratings, judge=ratings.people[:, 0], people=ratings.people[:, 1:]))
    whole = evolve(made, remarks=remarks, disagreements=apart if len(ratings.raters) == 2 else ())
    each = []
    for nth, rater in enumerate(ratings.raters) if len(ratings.raters) > 2 else ():
        mine, others = ratings.people[:, nth], np.delete(ratings.people, nth, axis=1)
        named = f"{ratings.criterion}: {rater}" if ratings.criterion else rater
        found = agreement_of(evolve(ratings, criterion=named, judge=mine, people=others))
        each.append(evolve(found, coverage=1.0, ceiling=(), constant=None, remarks=tuple(_few(found.n, "candidate"))))
    return [whole, *each]


def _like_for_like(ratings: Ratings, *, judged: bool = True) -> tuple[list[Statistic], list[Statistic]]:
    """Return how the judge agrees with each person, and people with each other, on the same candidates; see above."""
    people, scale = ratings.people, ratings.scale
    if people.shape[1] < 2:
        return [], []
    judge = ratings.judge if judged else np.zeros(len(people))
    there = ~np.isnan(people) & ~np.isnan(judge)[:, None]
    common = np.triu(there.T.astype(float) @ there, 1)
    order = np.argsort(-common, axis=None, kind="stable")[:_MOST_PAIRS]
    pairs = [divmod(int(k), len(common)) for k in order if common.flat[k] >= _COMMON]
    with_each, among = [], []
    for one, other in pairs:
        rows = np.flatnonzero(there[:, one] & there[:, other])
        among.append((people[rows, one], people[rows, other], rows))
        with_each += [(judge[rows], people[rows, person], rows) for person in (one, other)]
    ceiling = _average(among, ratings)
    rated = ~np.isnan(people).all(axis=1)
    people, groups = people[rated], ratings.groups[rated] if ratings.grouped else None
    if scale.kind == "number":
        plain = {f"alpha, {level}": co.alpha(people, level) for level in LEVELS} | co.intraclass(people)
        ceiling += [coefficient(name, found, groups) for name, found in plain.items()]
    else:
        ceiling += [among_many(name, of, people, groups) for name, of in (("alpha", co.alpha), ("AC1", co.gwet))]
    return (_average(with_each, ratings) if judged else []), ceiling


def _average(pairs: Sequence[tuple[Floats, Floats, Codes]], ratings: Ratings) -> list[Statistic]:
    """Return the statistics of pairs of raters, each *(one, other, rows)*, averaged by their candidates."""
    if not pairs:
        return []
    a, b, rows = (np.concatenate(each) for each in zip(*pairs, strict=True))
    groups = compact(ratings.groups[rows] if ratings.grouped else rows)
    scale, found = ratings.scale, [_alike(a, b, ratings.scale, groups)]
    each = [_correlations(one, other, scale) for one, other, _ in pairs]
    for name in each[0]:
        known = [(c[name], at) for c, (_, _, at) in zip(each, pairs, strict=True) if c[name].influence is not None]
        if not known:
            found.append(Statistic(name, None, reason=each[0][name].reason))
            continue
        at = np.concatenate([rows for _, rows in known])
        value = sum((c.value or 0.0) * len(rows) for c, rows in known) / len(at)
        moved = np.concatenate([c.influence for c, _ in known if c.influence is not None])
        if len(at) < co.RARE * len(known):
            why = f"no interval where two people have fewer than {co.RARE} candidates in common"
            found.append(Statistic(name, value, reason=why))
            continue
        units = compact(ratings.groups[at] if ratings.grouped else at)
        without = partial(_without, known) if all(c.without for c, _ in known) else None
        found.append(coefficient(name, co.Coefficient(value, "", moved, without), units))
    return [*found, *(_errors(a, b, scale, groups)[:2] if scale.kind == "number" else [])]


def _without(known: Sequence[tuple[co.Coefficient, Codes]], groups: Codes, number: int) -> Floats:
    """Return the mean of coefficients, each with its candidates, without each group."""
    total, weight, start = np.zeros(number), np.zeros(number), 0
    for one, rows in known:
        codes = groups[start : start + len(rows)]
        start += len(rows)
        counts = len(rows) - np.bincount(codes, minlength=number)
        left = one.without(codes, number) if one.without else np.full(number, np.nan)
        total += counts * np.where(np.isfinite(left), left, one.value or 0.0)
        weight += counts
    return np.asarray(total / np.maximum(weight, 1))


def _few(n: int, what: str, more: str = "") -> list[str]:
    return [f"{counted(n, what)}{more}: with fewer than {_FEW} the intervals say little"] if n < _FEW else []


def _remarks(b: Floats, scale: Scale, coverage: float, groups: Codes | None) -> list[str]:
    n = len(b)
    remarks = _few(n, "labelled candidate")
    if coverage < 1:
        without = f"{percent(1 - coverage)} of the labelled candidates"
        remarks.append(f"the judge gave no verdict on {without}; they are left out")
    if n and scale.kind != "number" and max(np.unique(b, return_counts=True)[1]) / n > _UNEVEN:
        remarks.append("people say nearly always the same, so agreement by chance is high; see kappa and AC1")
    if groups is not None and (few := few_groups(len(np.unique(groups)))):
        remarks.append(few)
    return remarks
