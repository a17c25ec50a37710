"""
Agreement on one criterion: a judge with people, and people with each other.

What people say together is the target: the mean of numbers, the majority of verdicts and options. The ceiling is each
person with the others together: no judge can be expected to do better.
"""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen

from rubric.embed import NoTruth, Statistic, few_groups, percent
from rubric.trust import coefficients as co
from rubric.trust.coefficients import coefficient, share
from rubric.trust.inference import Codes, Floats, compact, mean_error, quantile
from rubric.trust.rates import ClassRates, balanced, named, rates_of
from rubric.trust.ratings import Ratings, Scale, together

_FEW, _UNEVEN = 30, 0.9

_RARE = 15
"""Where fewer people say one of two verdicts, coefficients that rest on it are hedged."""


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
        ceiling: People with each other, each with the others together; empty for one person.
        constant: The best judge that always says the same: its agreement, or for numbers its RMSE.
        remarks: What to know before a figure is trusted.
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

    def __getitem__(self, name: str) -> Statistic:
        """Return the statistic *name*, such as `agreement`, `kappa` or `pearson`."""
        for statistic in self.statistics:
            if statistic.name == name:
                return statistic
        raise KeyError(name)

    @property
    def title(self) -> str:
        """The id, or a name for the whole."""
        return self.id or "the whole"

    def sentence(self, one: str = "The judge", other: str = "people") -> str:
        """Describe the main figure."""
        if self.n < 2:
            return f"{one} and {other} rated {self.n} candidates in common, too few for a figure."
        ceiling = {statistic.name: statistic for statistic in self.ceiling}
        if self.kind == "number":
            r, off = self["pearson"], self["MAE"]
            said = f"is off by {off.value:.2f}" + (f" ({_range(off)})" if off.interval else "")
            with_people = f"correlates with {other} at {r.value:.2f}" if r.value is not None else r.reason
            with_people += f" ({_range(r)})" if r.interval else ""
            among = ceiling.get("pearson")
            tail = f"; people with each other at {among.value:.2f}" if among and among.value is not None else ""
            return f"{one} {with_people} and {said} on average{tail}."
        agreed = self["agreement"]
        among = ceiling.get("agreement")
        tail = f"; people with each other in {percent(among.value)}" if among and among.value is not None else ""
        return f"{one} agrees with {other} in {percent(agreed.value or 0.0, agreed.interval)}{tail}."


def _range(statistic: Statistic) -> str:
    low, high = statistic.interval or (np.nan, np.nan)
    return f"{low:.2f} to {high:.2f}"


def agreement_of(ratings: Ratings) -> CriterionAgreement:
    """Return the agreement on one criterion."""
    target, judge, scale = ratings.target, ratings.judge, ratings.scale
    anyone = ~np.isnan(ratings.people).all(axis=1)
    both = ~np.isnan(target) & ~np.isnan(judge)
    groups = compact(ratings.groups[both]) if ratings.grouped else None
    a, b = judge[both], target[both]
    n, ties = int(both.sum()), int((anyone & np.isnan(target)).sum())
    judged_too = int((anyone & ~np.isnan(judge)).sum())
    coverage = judged_too / max(1, int(anyone.sum()))
    rates = rates_of(a, b, scale.names, groups) if n > 1 else ()
    statistics = tuple(_pair(a, b, scale, groups, rates)) if n > 1 else ()
    categories, confusion = _confusion(a, b, scale)
    return CriterionAgreement(
        ratings.criterion,
        scale.kind,
        n,
        coverage,
        ties,
        float(b.mean()) if n and scale.kind != "option" else None,
        float(a.mean()) if n and scale.kind != "option" else None,
        categories,
        confusion,
        statistics,
        tuple(_ceiling(ratings)),
        _constant(b, scale) if n else None,
        tuple(_remarks(b, scale, coverage, ties, groups)),
        rates,
    )


def _closeness(a: Floats, b: Floats, scale: Scale, groups: Codes | None) -> list[Statistic]:
    """Return how close two raters are, not corrected for chance."""
    found = [share("agreement", (a == b).astype(float), groups)]
    if scale.kind != "number":
        return found
    if (different := len(co.categories_of(a, b))) > co.MOST_CATEGORIES:
        found = [Statistic("agreement", None, reason=f"{different:,} different ratings are numbers, no categories")]
    plain = [("pearson", co.pearson(a, b)), ("spearman", co.spearman(a, b)), ("kendall", co.kendall(a, b))]
    return [*found, *(coefficient(name, c, groups) for name, c in plain), *_errors(a, b, scale, groups)]


def _pair(
    a: Floats, b: Floats, scale: Scale, groups: Codes | None, rates: tuple[ClassRates, ...] = ()
) -> list[Statistic]:
    """Return the statistics of two raters on a scale."""
    both = np.stack([a, b], axis=1)
    found = _closeness(a, b, scale, groups)
    found += named(rates, balanced(rates, a, b, groups)) if rates else []
    plain: list[tuple[str, co.Coefficient]] = [("kappa", co.cohen(a, b))]
    if scale.kind == "number":
        plain += [("kappa, linear", co.cohen(a, b, weighting="linear"))]
        plain += [("kappa, quadratic", co.cohen(a, b, weighting="quadratic"))]
        plain += [(f"alpha, {level}", co.alpha(both, level)) for level in ("nominal", "ordinal", "interval")]
        plain += [("AC1", co.many(both, "gwet")), ("AC2", co.many(both, "gwet", "quadratic"))]
        found += [coefficient(name, c, groups) for name, c in plain]
        if groups is not None:
            within = co.within_groups(a, b, groups)
            found.append(
                Statistic("kendall, within groups", within, reason="" if within is not None else "no group ranks")
            )
        return [*found, *_intraclass(both, groups)]
    plain += [("phi", co.pearson(a, b))] if scale.kind == "verdict" else []
    plain += [("alpha", co.alpha(both))]
    found += [coefficient(name, c, groups) for name, c in plain]
    if scale.kind == "verdict" and min((b == 0).sum(), (b == 1).sum()) < _RARE:
        found = _hedged(found, a, b, groups)
    return [*found, coefficient("AC1", co.many(both, "gwet"), groups)]


def _hedged(found: list[Statistic], a: Floats, b: Floats, groups: Codes | None) -> list[Statistic]:
    """
    Return *found* with intervals that also hold for one more candidate in each cell of the table.

    Coefficients that are corrected for chance rest on the rarer verdict: of a few, a sample may show none that differ.
    """
    a, b = np.append(a, [0.0, 0.0, 1.0, 1.0]), np.append(b, [0.0, 1.0, 0.0, 1.0])
    groups = None if groups is None else np.append(groups, groups.max() + 1 + np.arange(4))
    both = np.stack([a, b], axis=1)
    more = {"kappa": co.cohen(a, b), "phi": co.pearson(a, b), "alpha": co.alpha(both)}
    out = []
    for one in found:
        other = coefficient(one.name, more[one.name], groups).interval if one.name in more else None
        if one.interval is not None and other is not None:
            one = evolve(one, interval=(min(one.interval[0], other[0]), max(one.interval[1], other[1])))  # noqa: PLW2901
        out.append(one)
    return out


def _intraclass(both: Floats, groups: Codes | None) -> list[Statistic]:
    found = co.intraclass(both)
    if not found:
        return [Statistic("ICC1", None, reason="all ratings are the same, or there are fewer than two")]
    if groups is None:
        return [*found.values()]
    why = "its analytic interval takes candidates as independent"
    return [evolve(icc, interval=None, reason=why) for icc in found.values()]


def _errors(a: Floats, b: Floats, scale: Scale, groups: Codes | None) -> list[Statistic]:
    """Return MAE, RMSE and bias, within the width of the scale; the root has the interval of its square."""
    out = []
    most = np.inf if scale.low is None or scale.high is None else scale.high - scale.low
    q = quantile(groups, len(a))
    for name, values in (("MAE", np.abs(a - b)), ("RMSE", (a - b) ** 2), ("bias", a - b)):
        mean, error = mean_error(values, groups)
        error = (
            error or float(np.ptp(np.concatenate([a, b])) or 1) / len(a) / 2
        )  # no spread in a sample is no certainty
        low, high = mean - q * error, mean + q * error
        if name == "RMSE":
            mean, low, high = (float(np.sqrt(max(0.0, v))) for v in (mean, low, high))
        low, high = max(-most if name == "bias" else 0.0, low), min(most, high)
        out.append(Statistic(name, mean, (low, high) if np.isfinite(low + high) else None))
    return out


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
    remarks = tuple(_few(several, "candidates with two labels"))
    whole = CriterionAgreement(
        ratings.criterion, scale.kind, several, 1.0, 0, mean, mean, statistics=tuple(_ceiling(ratings)), remarks=remarks
    )
    each = []
    for nth, rater in enumerate(ratings.raters) if len(ratings.raters) > 2 else ():
        mine, others = ratings.people[:, nth], np.delete(ratings.people, nth, axis=1)
        named = f"{ratings.criterion}: {rater}" if ratings.criterion else rater
        found = agreement_of(evolve(ratings, criterion=named, judge=mine, people=others))
        each.append(evolve(found, coverage=1.0, ceiling=(), constant=None, remarks=tuple(_few(found.n, "candidates"))))
    return [whole, *each]


def _ceiling(ratings: Ratings) -> list[Statistic]:
    """Return how people agree with each other: each with the others together, and all at once."""
    people, scale = ratings.people, ratings.scale
    if people.shape[1] < 2:
        return []
    one, rest, units = [], [], []
    for rater in range(people.shape[1]):
        others = together(np.delete(people, rater, axis=1), scale)
        both = ~np.isnan(people[:, rater]) & ~np.isnan(others)
        one.append(people[both, rater])
        rest.append(others[both])
        units.append(ratings.groups[both] if ratings.grouped else np.flatnonzero(both))
    a, b, among = np.concatenate(one), np.concatenate(rest), np.concatenate(units)
    if len(a) < 2:
        return []
    among = compact(among.astype(np.intp))
    found = [each for each in _closeness(a, b, scale, among) if each.name != "bias"]
    levels: tuple[co.Level, ...] = ("nominal", "ordinal", "interval")
    level = {f"alpha, {one}": one for one in levels} if scale.kind == "number" else {"alpha": "nominal"}
    found += [coefficient(name, co.alpha(people, kind), groups_of(ratings)) for name, kind in level.items()]  # type: ignore[arg-type]
    if scale.kind != "number":
        rated = ~np.isnan(people).all(axis=1)
        groups = None if groups_of(ratings) is None else ratings.groups[rated]
        plain = {"fleiss": "fleiss", "AC1": "gwet"} if people.shape[1] > 2 else {"AC1": "gwet"}  # of two, see kappa
        found += [coefficient(name, co.many(people[rated], kind), groups) for name, kind in plain.items()]
        return found
    return [*found, *co.intraclass(people).values()]


def groups_of(ratings: Ratings) -> Codes | None:
    """Return the groups of the candidates, where there are any."""
    return ratings.groups if ratings.grouped else None


def _few(n: int, what: str) -> list[str]:
    return [f"{n} {what}: with fewer than {_FEW} the intervals say little"] if n < _FEW else []


def _remarks(b: Floats, scale: Scale, coverage: float, ties: int, groups: Codes | None) -> list[str]:
    n = len(b)
    remarks = _few(n, "labelled candidates")
    if coverage < 1:
        remarks.append(f"the judge gave no verdict on {1 - coverage:.0%} of the labelled candidates; they are left out")
    if ties:
        remarks.append(f"on {ties} candidates people are divided; they are left out")
    if n and scale.kind != "number" and max(np.unique(b, return_counts=True)[1]) / n > _UNEVEN:
        remarks.append("people say nearly always the same, so agreement by chance is high; see kappa and AC1")
    if n and scale.kind != "number":
        constant = _constant(b, scale)
        said = constant.name.removeprefix("always ")
        remarks.append(f"a judge that always says {said} agrees in {percent(constant.value or 0.0)}")
    if groups is not None and (few := few_groups(len(np.unique(groups)))):
        remarks.append(few)
    return remarks
