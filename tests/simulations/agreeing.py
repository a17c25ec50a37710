"""How often the intervals of agreement cover: verdicts and numbers, groups, people with each other, and juries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import product

import numpy as np
from attrs import evolve
from scipy import stats

from rubric.embed import Statistic
from rubric.trust import coefficients as co
from rubric.trust.annotators import votes_of
from rubric.trust.criterion_agreement import _like_for_like, _pair
from rubric.trust.inference import Codes, Floats
from rubric.trust.rates import rates_of
from rubric.trust.ratings import VERDICT, Judged, Scale
from tests.simulations.drawing import JUDGES, RATES, SIZES, Chance, Table, chance_of, covers, grouped, ratings, verdicts

STARS = Scale("number", 1.0, 5.0)
_LARGE = 1_000_000
_GROUPS = np.repeat(np.arange(20), 10)

Found = dict[str, Statistic]


class Tally:
    """How often the intervals of several figures cover, among the samples in which each has one."""

    def __init__(self, truth: Found, names: Sequence[str]) -> None:
        self.truth, self.names = {name: truth[name].value for name in names}, names
        self.held, self.counts = Counter[str](), Counter[str]()

    def add(self, found: Found, times: int = 1) -> None:
        """Count a sample that was drawn so many *times*."""
        for name in self.names:
            one = found.get(name)  # an intraclass correlation of equal ratings is not printed
            if one is not None and one.interval is not None:
                self.counts[name] += times
                self.held[name] += times * covers(one.interval, self.truth[name] or 0.0)

    def shares(self) -> list[float | None]:
        """Return the coverage of each; None where hardly any sample has an interval."""
        most = max(self.counts.values(), default=0)
        return [self.held[n] / self.counts[n] if self.counts[n] > most / 20 else None for n in self.names]


def shown(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def lowest(shares: Sequence[float | None]) -> float:
    return min((share for share in shares if share is not None), default=1.0)


# -- verdicts ----------------------------------------------------------------------------------------------


def figures(judge: Floats, people: Floats, groups: Codes | None = None, *, of_classes: bool) -> Found:
    """Return agreement and coefficients of verdicts, and the rates *of_classes*."""
    rates = rates_of(judge, people, VERDICT.names, groups) if of_classes else ()
    return {one.name: one for one in _pair(judge, people, VERDICT, groups, rates=rates)}


def of_table(counts: Sequence[int], *, of_classes: bool) -> Found:
    """Return the figures of a table: both yes, people alone, the judge alone, both no."""
    judge, people = (np.repeat(side, counts) for side in ([1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]))
    return figures(judge, people, of_classes=of_classes)


_truth = cache(partial(of_table, of_classes=True))


def of_verdicts(rate: float, errs: tuple[float, float], size: int | None, runs: int, names: Sequence[str]) -> Tally:
    """Return the coverage in samples of one *size*, drawn as tables; None: 20 groups of ten, with an ICC of .3."""
    cells = [rate * errs[0], rate * (1 - errs[0]), (1 - rate) * (1 - errs[1]), (1 - rate) * errs[1]]
    tally, of_classes = Tally(_truth(tuple(round(share * _LARGE) for share in cells)), names), names != _COEFFICIENTS
    chance = chance_of(5)
    if size is None:
        for _ in range(runs):
            people, judge = verdicts(chance, grouped(chance, rate, 0.3, _GROUPS), errs, len(_GROUPS))
            tally.add(figures(judge, people, _GROUPS, of_classes=of_classes))
        return tally
    for counts, times in Counter(map(tuple, chance.multinomial(size, cells, runs).tolist())).items():
        tally.add(of_table(counts, of_classes=of_classes), times)
    return tally


_COEFFICIENTS = ("agreement", "kappa", "phi", "alpha", "AC1")


def coefficients(runs: int) -> Table:
    """Yield the coverage of coefficients of verdicts: each judge, each size."""
    for rate in RATES:
        for name, errs in JUDGES.items():
            found = [of_verdicts(rate, errs, size, runs, _COEFFICIENTS).shares() for size in (*SIZES, None)]
            cells = (", ".join(shown(share).replace("%", "") for share in each) for each in found)
            yield (rate, name, *cells), min(map(lowest, found))


RATES_OF_CLASSES = ("TPR", "TNR", "precision", "NPV", "F1", "balanced accuracy")


def rates(runs: int) -> Table:
    """Yield the coverage of the rates of classes, of a judge .9/.8."""
    for rate in RATES:
        for size in (*SIZES, None):
            found = of_verdicts(rate, JUDGES[".9/.8"], size, runs, RATES_OF_CLASSES).shares()
            yield (rate, size or "20 × 10, ICC 0.3", *map(shown, found)), lowest(found)


# -- numbers -----------------------------------------------------------------------------------------------

NUMBERS = (
    *("pearson", "spearman", "kendall", "MAE", "RMSE", "bias", "kappa", "kappa, quadratic"),
    *("alpha, interval", "AC1", "ICC1", "ICC2"),
)


def rated(chance: Chance, n: int, exact: float | None, groups: Codes | None = None) -> tuple[Floats, Floats]:
    """Return what people and a judge say on 1..5: equal in a share *exact*; None for two noisy raters."""
    if exact is None:
        true = chance.normal(3, 1, n)
        if groups is not None:  # a third of the variance is that of groups
            true = 3 + chance.normal(0, 0.58, groups.max() + 1)[groups] + chance.normal(0, 0.815, n)
        one, two = (np.clip(np.round(true + chance.normal(0, 0.8, n)), 1.0, 5.0) for _ in range(2))
        return np.asarray(one, dtype=float), np.asarray(two, dtype=float)
    people = chance.choice(5, n, p=[0.1, 0.15, 0.2, 0.25, 0.3]) + 1.0
    if groups is not None:
        people = np.where(chance.random(n) < 0.55, people[groups * 10], people)
    off = np.where(chance.random(n) < exact, 0, chance.choice([-2, -1, 1], n, p=[0.2, 0.6, 0.2]))
    return np.asarray(people, dtype=float), np.asarray(np.clip(people + off, 1.0, 5.0), dtype=float)


def numbers(runs: int) -> Table:
    """Yield the coverage of what is said of numbers."""
    for exact in (None, 0.8, 0.9):
        whole = {one.name: one for one in _pair(*rated(chance_of(12), 200_000, exact), STARS, None)}
        columns = []
        for size in (*SIZES, None):
            chance, tally = chance_of(13), Tally(whole, NUMBERS)
            groups = _GROUPS if size is None else None
            for _ in range(runs if size != SIZES[-1] else runs // 2):
                found = _pair(*rated(chance, size or 200, exact, groups), STARS, groups)
                tally.add({one.name: one for one in found})
            columns.append(tally.shares())
        named = "two noisy raters" if exact is None else f"{exact:.0%} exact"
        for figure, shares in zip(NUMBERS, zip(*columns, strict=True), strict=True):
            yield (named, figure, *map(shown, shares)), lowest(shares)


UNEVEN = ("kappa", "phi or pearson", "spearman", "kendall", "alpha", "AC1", "ICC1")


def uneven(runs: int) -> Table:
    """Yield the coverage of coefficients where a judge, or people, nearly always say the same."""
    options = Scale("option", options=("a", "b", "c"))

    def lenient(chance: Chance, n: int) -> tuple[Floats, Floats]:
        return (chance.random(n) < 0.95).astype(float), (chance.random(n) < 0.7).astype(float)

    def threes(chance: Chance, n: int) -> tuple[Floats, Floats]:
        said, people = (1.0 + chance.choice(5, n).astype(float) for _ in range(2))
        return np.asarray(np.where(chance.random(n) < 0.9, 3.0, said), dtype=float), people

    def rare(chance: Chance, n: int) -> tuple[Floats, Floats]:
        people, other = (chance.choice(3, n, p=[0.9, 0.05, 0.05]).astype(float) for _ in range(2))
        return np.asarray(np.where(chance.random(n) < 0.7, people, other), dtype=float), people

    kinds: tuple[tuple[str, Scale, Callable[[Chance, int], tuple[Floats, Floats]]], ...] = (
        ("verdicts: a judge passes 95 %, whatever people say", VERDICT, lenient),
        ("numbers: a judge says 3 in 92 %, whatever people say", STARS, threes),
        ("options: people say one of three in 90 %", options, rare),
    )
    other = {"phi or pearson": ("phi", "pearson"), "alpha": ("alpha, interval",)}
    for named, scale, draw in kinds:
        whole = {one.name: one for one in _pair(*draw(chance_of(51), _LARGE // 5), scale, None)}
        names = [next((n for n in (name, *other.get(name, ())) if n in whole), name) for name in UNEVEN]
        for size in SIZES[1:]:
            chance = chance_of(52)
            tally = Tally({name: whole.get(name, Statistic(name, None)) for name in names}, names)
            for _ in range(runs):
                tally.add({one.name: one for one in _pair(*draw(chance, size), scale, None)})
            yield (named, size, *map(shown, tally.shares())), lowest(tally.shares())


def items(runs: int) -> Table:
    """Yield the coverage of the correlation of two yes/no criteria, and of one with the mean of four others."""

    def drawn(
        chance: Chance, rate: float, common: float, n: int, groups: Codes | None
    ) -> tuple[Floats, Floats, Floats]:
        quality = chance.normal(size=n)
        if groups is not None:
            quality = 0.55 * chance.normal(size=groups.max() + 1)[groups] + (1 - 0.55**2) ** 0.5 * quality
        limits = stats.norm.ppf([rate, rate, 0.3, 0.5, 0.7, 0.8])
        seen = common**0.5 * quality + (1 - common) ** 0.5 * chance.normal(size=(len(limits), n))
        one, other, *others = (seen < limits[:, None]).astype(float)
        return one, other, np.asarray(np.mean(others, axis=0))

    names = ("two", "rest")
    for rate, common in product(RATES, (0.0, 0.5, 0.8)):
        one, other, rest = drawn(chance_of(61), rate, common, _LARGE // 2, None)
        whole = {name: co.correlation(name, one, side, None) for name, side in zip(names, (other, rest), strict=True)}
        shares = []
        for size in (*SIZES[1:], None):
            chance, tally, groups = chance_of(62), Tally(whole, names), _GROUPS if size is None else None
            for _ in range(runs if size != SIZES[-1] else runs // 2):
                one, other, rest = drawn(chance, rate, common, size or len(_GROUPS), groups)
                tally.add(
                    {
                        name: co.correlation(name, one, side, groups)
                        for name, side in zip(names, (other, rest), strict=True)
                    }
                )
            shares.append(tally.shares())
        yield (rate, common, *(", ".join(map(shown, each)) for each in shares)), min(map(lowest, shares))


# -- people, and juries --------------------------------------------------------------------------------------

Drawn = Callable[[Chance, int, int], tuple[Floats, Floats]]
"""Draws what a judge and so many people say of so many candidates."""


def voting(chance: Chance, n: int, raters: int) -> tuple[Floats, Floats]:
    """Return verdicts: people are right in .85, the judge in .8; each person labels three of four candidates."""
    true = chance.random(n) < 0.6
    people = (true[:, None] == (chance.random((n, raters)) < 0.85)).astype(float)
    if raters > 2:
        people[chance.random((n, raters)) < 0.25] = np.nan
    return (true == (chance.random(n) < 0.8)).astype(float), people


def starring(chance: Chance, n: int, raters: int) -> tuple[Floats, Floats]:
    """Return ratings on 1..5, of people who differ in strictness."""
    true = chance.normal(3, 1, n)
    strict = np.linspace(-0.4, 0.4, raters)
    people = np.clip(np.round(true[:, None] + strict + chance.normal(0, 0.7, (n, raters))), 1.0, 5.0)
    if raters > 2:
        people[chance.random((n, raters)) < 0.25] = np.nan
    return np.clip(np.round(true + chance.normal(0, 0.8, n)), 1.0, 5.0), people


def ceilings(runs: int) -> Table:
    """Yield the coverage of people with each other, and of the judge with each of them."""
    kinds: tuple[tuple[str, Drawn, Scale, tuple[str, ...], tuple[str, ...]], ...] = (
        ("verdicts", voting, VERDICT, ("agreement", "kappa"), ("alpha", "AC1")),
        ("numbers", starring, STARS, ("agreement", "pearson", "MAE"), ("alpha, interval", "alpha, ordinal")),
    )
    for kind, draw, scale, both, among in kinds:
        for raters in (2, 3, 5):
            whole = _of_people(draw, scale, chance_of(31), 100_000, raters)
            for size in (*SIZES, None):
                chance = chance_of(32)
                tallies = [Tally(one, names) for one, names in zip(whole, (both, (*both, *among)), strict=True)]
                for _ in range(runs if size != SIZES[-1] else runs // 2):
                    found = _of_people(draw, scale, chance, size, raters)
                    for tally, one in zip(tallies, found, strict=True):
                        tally.add(one)
                shares = [share for tally in tallies for share in tally.shares()]
                told = (", ".join(shown(share) for share in tally.shares()) for tally in tallies)
                yield (kind, raters, size or "20 × 10", *told), lowest(shares)


def _of_people(draw: Drawn, scale: Scale, chance: Chance, size: int | None, raters: int) -> list[Found]:
    judge, people = draw(chance, size or 200, raters)
    if size is None:  # a third of the candidates of a prompt are the first one again, as its raters see it
        again = np.where(chance.random(200) < 0.55, _GROUPS * 10, np.arange(200))
        judge, people = judge[again], people[again]
    made = ratings(np.zeros(len(judge)), judge, None if size else _GROUPS, scale)
    found = _like_for_like(evolve(made, people=people))
    return [{name: Statistic(name, None) for name in _EVERY} | {one.name: one for one in each} for each in found]


_EVERY = ("agreement", "kappa", "alpha", "AC1", "pearson", "MAE", "alpha, interval", "alpha, ordinal")


def juries(runs: int) -> Table:
    """Yield the coverage of the flip rate, the reliability and alpha of the votes of three."""

    def found(chance: Chance, n: int) -> Found:
        votes = (chance.random((n, 3)) < chance.beta(1.5, 0.7, n)[:, None]).astype(float)
        given = Judged(("",) * n, tuple(range(n)), np.arange(n), {}, np.zeros(n))
        one = votes_of("x", VERDICT, votes, given)
        return {"flip rate": one.flip_rate, "ICC1": one.icc, "alpha": one.alpha}

    whole = found(chance_of(33), 500_000)
    for size in SIZES:
        chance, tally = chance_of(34), Tally(whole, [*whole])
        for _ in range(runs):
            tally.add(found(chance, size))
        yield (size, *map(shown, tally.shares())), lowest(tally.shares())
