"""
What many preferences say together: win rates, position bias, the win rate at equal length, and strengths of systems.

A tie, and a pair that the judge decides by the order alone, is half a win for each. Intervals are those of
`rubric.scoring.intervals`: by group, where pairs have groups.

The strengths are those of R. A. Bradley and M. E. Terry (Biometrika 39, 1952), with one tie more for each two systems
that met, so that a system that always wins has a finite strength. The rate at equal length is the intercept of a
logistic regression on the difference in length (Y. Dubois et al., arXiv 2404.04475). Both take numpy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import combinations
from operator import attrgetter
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, Literal

from attrs import asdict, evolve, frozen

from rubric import DefinitionError
from rubric.embed import Listed, Presented, Table, counted, few_groups, mean_interval, percent
from rubric.view.plots import chart, forest, row_of

if TYPE_CHECKING:
    from rubric.trust.pairwise.preference import Preference

Side = Literal["a", "b", "tie"]

_WINS = {"a": 1.0, "b": 0.0, "tie": 0.5, "inconsistent": 0.5}
_EVEN = 0.5
_FEWEST = 5
"""Pairs from which there is a rate at equal length."""


@frozen
class Rate:
    """
    A share, with its interval.

    Args:
        name: What it is the share of.
        value: The share in 0..1; None where nothing was counted.
        interval: Where the true share lies, with 95 % confidence; None where that cannot be said.
        n: How many pairs were counted.
        bounds: The lowest and the highest value that the pairs without a verdict could give.
        p: Of two systems: how often equal ones are as far apart by chance; *adjusted*: for all comparisons (Holm).
    """

    name: str
    value: float | None
    interval: tuple[float, float] | None
    n: int
    bounds: tuple[float, float] | None = None
    p: float | None = None
    adjusted: float | None = None

    def __str__(self) -> str:
        return "none" if self.value is None else percent(self.value, self.interval)


@frozen
class Strength:
    """
    The strength of a system by Bradley and Terry: log odds of a win against an average system.

    Args:
        name: The system's.
        value: The strength; the mean of all is 0.
        interval: Where the true strength lies, with 95 % confidence; None where that cannot be said.
        wins: The wins; a tie is half of one.
        n: The pairs.
    """

    name: str
    value: float
    interval: tuple[float, float] | None
    wins: float
    n: int


@frozen(repr=False)
class Preferences(Presented, Listed["Preference"]):
    """
    Many preferences, and what they say together.

    Args:
        preferences: In the order of the pairs.
        unseen: What their rows hold that no judge sees; '' for nothing.
    """

    _kind = "pair"
    _items = "preferences"
    _id = attrgetter("key")
    _truth = ".win_rate"

    preferences: tuple[Preference, ...]
    unseen: str = ""

    def __attrs_post_init__(self) -> None:
        if not self.preferences:
            raise DefinitionError("pairs", "there are no pairs, so nothing can be preferred")

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, in the order in which they occur."""
        return tuple(dict.fromkeys(name for one in self.preferences for name in one.names))

    def win_rate(self, system: str | None = None, criterion: str | None = None) -> Rate:
        """
        Return how often a system wins, of the pairs that it is in; ties count half.

        Args:
            system: Its name; None for the first, which is `a` where systems have no names.
            criterion: The id of a criterion; None for the whole.

        Raises:
            KeyError: There is no such system, or no such criterion.
        """
        name = self.systems[0] if system is None else system
        if name not in self.systems:
            raise KeyError(f"no system {name!r} among {', '.join(self.systems)}")
        if criterion is not None and criterion not in self.criteria:
            cure = f"; write preferences.between({name!r}, {criterion!r})" if criterion in self.systems else ""
            raise KeyError(f"no criterion {criterion!r} among {', '.join(self.criteria)}{cure}")
        said: list[tuple[Preference, float | None]] = []
        for one in self.preferences:
            outcome = one.outcome if criterion is None else next((c.outcome for c in one if c.id == criterion), None)
            if name in one.names and one.names[0] != one.names[1] and outcome is not None:
                won = _WINS.get(outcome)
                said.append((one, won if won is None or one.names[0] == name else 1 - won))
        return _rate(name if criterion is None else criterion, said)

    @property
    def matchups(self) -> tuple[Rate, ...]:
        """Each two systems that met, by their own pairs: who is really better than whom. It takes numpy."""
        return self._matchups(self.systems)

    def between(self, system: str, other: str) -> Rate:
        """Return how often *system* wins against *other*, as in `matchups`; raise a KeyError if they never met."""
        found = self._matchups([*dict.fromkeys([system, other, *self.systems])])
        if not found or found[0].name != f"{system} against {other}":
            raise KeyError(f"{system!r} and {other!r} never met; the systems are {', '.join(self.systems)}")
        return found[0]

    def _matchups(self, names: Sequence[str]) -> tuple[Rate, ...]:
        stats, found = _of_stats("matchups", "inference"), list[Rate]()
        for two in combinations(names, 2):
            if met := [one for one in self.preferences if {*one.names} == {*two}]:
                decided = self._decisive(two)
                wins = [(2 * won - 1) * (1 if one.names[0] == two[0] else -1) for one, won, _ in decided]
                units = stats.np.unique([unit for _, _, unit in decided], return_inverse=True)[1]
                apart = stats.paired_contrast(stats.np.array(wins), units) if decided else None
                rate = evolve(Preferences(tuple(met)).win_rate(two[0]), name=" against ".join(two))
                found.append(rate if apart is None else evolve(rate, p=apart.p))
        adjusted = iter(stats.holm([one.p for one in found if one.p is not None]))
        return tuple(one if one.p is None else evolve(one, adjusted=next(adjusted)) for one in found)

    @property
    def criteria(self) -> tuple[str, ...]:
        """The ids of the criteria, in the order in which they occur."""
        return tuple(dict.fromkeys(c.id for one in self.preferences for c in one))

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs have which outcome."""
        names = ("a", "b", "tie", "inconsistent", "unjudged")
        return {name: sum(one.outcome == name for one in self.preferences) for name in names}

    @property
    def consistency(self) -> Rate:
        """How often both orders come to the same verdict, of the pairs that were asked about in both."""
        return _rate("consistent", [(one, float(x == y)) for one, x, y in self._both()])

    @property
    def position(self) -> Rate:
        """
        How often the response that is shown first wins; ties count half.

        A judge without a position bias has one half, since each response is shown first once.
        """
        return _rate("shown first", [(one, (_WINS[x] + 1 - _WINS[y]) / 2) for one, x, y in self._both()])

    def _both(self) -> Iterator[tuple[Preference, Side, Side]]:
        for one in self.preferences:
            first, second, *_ = *one.orders, None, None
            if first is not None and second is not None:
                yield one, first, second

    def _decisive(self, systems: Sequence[str]) -> list[tuple[Preference, float, str]]:
        """Return each pair of two *systems* that has a verdict, what its first system won, and the pair's group."""
        return [
            (one, _WINS[one.outcome], one.group or str(index))
            for index, one in enumerate(self.preferences)
            if one.outcome in _WINS and one.names[0] != one.names[1] and {*one.names} <= {*systems}
        ]

    @property
    def length_controlled(self) -> Rate | None:
        """
        How often the first system would win if both responses were of one length; None for fewer than five pairs.

        It is of pairs between the first two systems.

        Raises:
            ImportError: numpy is missing (extra `stats`).
        """
        return self._by_length()[0]

    def _by_length(self) -> tuple[Rate | None, bool]:
        """Return the rate at equal length, and whether it surely differs from that at the lengths that there are."""
        rows, wins, units = [], [], []
        for one, won, unit in self._decisive(self.systems[:2]):
            sign = 1 if one.names[0] == self.systems[0] else -1
            rows.append(sign * (one.lengths[0] - one.lengths[1]))
            wins.append(won if sign > 0 else 1 - won)
            units.append(unit)
        spread = pstdev(rows) if len(rows) >= _FEWEST else 0.0
        if not spread:
            return None, False
        shown = [(1.0, math.tanh(row / spread)) for row in rows]
        fitted = _of_stats("length_controlled", "pairwise.logistic").Logistic(shown, wins, units, [(1.0, 0.0)])
        value, interval = fitted.estimate((1.0, 0.0))
        ends = None if interval is None else (_sigmoid(interval[0]), _sigmoid(interval[1]))
        named = f"{' against '.join(self.systems[:2])} " if len(self.systems) > 2 else ""
        rate = Rate(f"{named}at equal length", _sigmoid(value), ends, len(rows))
        # The two rates come from the same pairs, so that their intervals may overlap although they differ: the error
        # is that of their difference, by its gradient (the delta method), at the lengths of these pairs.
        ps = [_sigmoid(fitted.estimate(row)[0]) for row in shown]
        steps = [p * (1 - p) for p in ps]
        at_zero = _sigmoid(value) * (1 - _sigmoid(value))
        gradient = (fmean(steps) - at_zero, fmean(step * row[1] for step, row in zip(steps, shown, strict=True)))
        middle, interval = fitted.estimate(gradient)
        half = math.inf if interval is None else interval[1] - middle
        return rate, abs(fmean(ps) - _sigmoid(value)) > half

    @property
    def strengths(self) -> tuple[Strength, ...]:
        """
        The systems by strength, the strongest first; none where no chain of pairs joins all of them.

        Raises:
            ImportError: numpy is missing (extra `stats`).
        """
        names, decided = self.systems, self._decisive(self.systems)
        met = sorted({tuple(sorted(one.names)) for one, _, _ in decided})
        if not decided or not _is_joined(names, met):
            return ()

        @cache  # a row for each two systems, whatever the number of pairs
        def between(a: str, b: str) -> list[float]:
            return [float(name == a) - float(name == b) for name in names]

        rows, wins, units = zip(*((between(*one.names), won, unit) for one, won, unit in decided), strict=True)
        fitted = _of_stats("strengths", "pairwise.logistic").Logistic(
            rows, wins, units, [between(*pair) for pair in met]
        )
        found = []
        for name in names:
            value, interval = fitted.estimate([float(name == other) - 1 / len(names) for other in names])
            mine = [won if one.names[0] == name else 1 - won for one, won, _ in decided if name in one.names]
            found.append(Strength(name, value, interval, math.fsum(mine), len(mine)))
        return tuple(sorted(found, key=lambda one: -one.value))

    @property
    def cycles(self) -> Rate:
        """
        How often three systems beat one another in a circle, of the triples in which each two have a winner.

        An order of the systems contradicts each circle. A judge that flips coins has a quarter (M. G. Kendall and B.
        Babington Smith, Biometrika 31, 1940). Triples share pairs, so there is no interval.
        """
        more: Counter[tuple[str, str]] = Counter()
        for one, won, _ in self._decisive(self.systems):
            more[one.names] += round(2 * won - 1)
            more[one.names[1], one.names[0]] -= round(2 * won - 1)
        found = []
        for trio in combinations(self.systems, 3):
            wins = [sum(more[one, other] > 0 for other in trio) for one in trio]
            if sum(wins) == len(trio):
                found.append(float(max(wins) == 1))
        return Rate("cycles", fmean(found) if found else None, None, len(found))

    def _fit(self) -> tuple[tuple[Rate | None, bool], tuple[Strength, ...], tuple[Rate, ...], bool]:
        """Return `_by_length`, the strengths, the matchups, and whether numpy is there; nothing without it."""
        try:
            return self._by_length(), self.strengths, self.matchups, True
        except ImportError:
            return (None, False), (), (), False

    # -- shown -----------------------------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """A description of the main figure."""
        rate = self.win_rate()
        if rate.value is None:
            return f"None of {len(self):,} pairs could be judged."
        first, *rest = self.systems
        others = " and ".join(rest) if len(rest) <= 2 else "the others"
        said = f"{first} wins against {others} in {rate} of {rate.n:,} pairs, ties counted half"
        same = self.consistency
        if same.value is None:
            return f"{said}."
        return f"{said}; swapping the order changes {percent(1 - same.value)} of the verdicts."

    def remarks(self) -> list[str]:
        """What to know before a figure is trusted."""
        lines, rate, first = [], self.win_rate(), self.position
        if (missing := self.counts["unjudged"]) and rate.bounds is not None:
            low, high = rate.bounds
            lines.append(f"{missing:,} pairs have no verdict; counted either way, the rate is {low:.0%} to {high:.0%}.")
        if said := [one.remarks()[0] for one in self.preferences if one.outcome == "unjudged" and one.remarks()]:
            lines.append(f"The commonest reason: {max(said, key=said.count)}")
        if first.interval is not None and not first.interval[0] <= _EVEN <= first.interval[1]:
            order = "first" if first.interval[0] > _EVEN else "last"
            lines.append(f"The judge prefers the response that is shown {order}: the first one wins in {first}.")
        if all(len(one.orders) == 1 for one in self.preferences):
            lines.append("Each pair was asked about in one order, so a position bias is part of the rates.")
        (controlled, differs), strengths, _, has_numpy = self._fit()
        if differs and controlled is not None:
            named = f"{'of ' * (len(self.systems) > 2)}{controlled.name}"
            why = "length, or what goes with it, is part of what wins"
            lines.append(f"The rate {named} would be {controlled}: {why}.")
        if not has_numpy:
            lines.append("The rate at equal length and strengths take numpy: pip install 'rubric-grade[stats]'.")
        elif len(self.systems) > 2 and not strengths:
            lines.append("Some systems never met, not even by others in between, so strengths cannot be compared.")
        if (cycles := self.cycles).value:
            lines.append(f"Three systems beat one another in a circle in {cycles} of {counted(cycles.n, 'triple')}.")
        if few := few_groups(len({one.group for one in self.preferences if one.group})):
            lines.append(f"{few}.")
        return [*lines, *filter(None, [self.unseen])]

    def tables(self) -> list[Table]:
        """Outcomes; win rates; criteria; strengths of more than two systems."""
        sides = {one.names for one in self.preferences}
        outcomes = (*(sides.pop() if len(sides) == 1 else "ab"), *list(self.counts)[2:])
        head = ("", "rate", "95 % interval", "pairs")
        (controlled, _), strengths, matchups, _ = self._fit()
        rates = [self.win_rate(), controlled, self.position, self.consistency, self.cycles]
        shown: list[Table] = [("Outcomes", outcomes, [(*self.counts.values(),)])]
        shown.append(("", head, [_row(one) for one in rates if one is not None and one.n]))
        if len(self.criteria) > 1:
            rows = [_row(self.win_rate(criterion=id_)) for id_ in self.criteria]
            shown.append((f"Win rate of {self.systems[0]} by criterion", head, rows))
        if len(self.systems) > 2 and strengths:
            top = ("system", "strength", "95 % interval", "wins", "pairs", "win rate")
            ranked = [(s, _range(s.interval, "{:+.2f}"), str(self.win_rate(s.name))) for s in strengths]
            shown.append(("Strengths", top, [(s.name, s.value, at, f"{s.wins:g}", s.n, won) for s, at, won in ranked]))
        tested = [(*_row(one), one.p, one.adjusted) for one in matchups if one.p is not None]
        if len(self.systems) > 2 and tested:
            shown.append(("Each two systems", (*head, "p", "p (Holm)"), [*tested]))
        return shown

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        (controlled, _), strengths, matchups, _ = self._fit()
        rates: dict[str, Any] = {name: asdict(getattr(self, name)) for name in ("position", "consistency", "cycles")}
        rates |= {"win_rates": [asdict(self.win_rate(name)) for name in self.systems]}
        rates |= {"criteria": [asdict(self.win_rate(criterion=id_)) for id_ in self.criteria]}
        rates |= {"length_controlled": None if controlled is None else asdict(controlled)}
        told = {"kind": "preferences", "sentence": self.sentence, "systems": [*self.systems], "counts": self.counts}
        lists = {"strengths": [*map(asdict, strengths)], "matchups": [*map(asdict, matchups)]}
        lists |= {"preferences": [one.to_dict() for one in self.preferences]}
        return {**told, **rates, **lists, "remarks": self.remarks()}

    def plot(self) -> Any:
        """Return a forest of win rates as an Altair chart (extra `plots`)."""
        rates = [self.win_rate(name) for name in self.systems[: None if len(self.systems) > 2 else 1]]
        rates += [self.win_rate(criterion=id_) for id_ in self.criteria] if len(self.criteria) > 1 else []
        rates += [one for one in (self._fit()[0][0], self.position) if one is not None]
        rows = [row_of(one.name, one.value, one.interval) for one in rates if one.value is not None]
        return chart(forest(rows, "win rate", [(_EVEN, "even")], whole=True), title=self.sentence)


def _rate(name: str, said: Iterable[tuple[Preference, float | None]]) -> Rate:
    """Return the mean of what is *said* of pairs, with its interval, by group where pairs have groups."""
    given = [*said]
    counted = [(one, value) for one, value in given if value is not None]
    if not counted:
        return Rate(name, None, None, 0, (0.0, 1.0) if given else None)
    values = [value for _, value in counted]
    groups = [one.group or (index,) for index, (one, _) in enumerate(counted)]
    interval = mean_interval(values, groups if any(one.group for one, _ in counted) else None)
    total, missing = math.fsum(values), len(given) - len(counted)
    bounds = (total / len(given), (total + missing) / len(given)) if missing else None
    return Rate(name, total / len(values), interval, len(values), bounds)


def _row(rate: Rate) -> tuple[object, ...]:
    return (rate.name, "none" if rate.value is None else rate.value, _range(rate.interval, "{:.3f}"), rate.n)


def _range(interval: tuple[float, float] | None, form: str) -> str:
    return "-" if interval is None else " to ".join(form.format(end) for end in interval)


# -- strengths -----------------------------------------------------------------------------------------------


def _of_stats(name: str, module: str) -> Any:
    """Return the *module* that the attribute *name* takes; without numpy, say how to install it."""
    try:
        return import_module(f"rubric.trust.{module}")
    except ImportError as error:
        message = f"Preferences.{name} takes numpy: pip install 'rubric-grade[stats]'"
        raise ImportError(message, name=error.name) from error


def _sigmoid(x: float) -> float:
    return (1 + math.tanh(x / 2)) / 2


def _is_joined(names: Sequence[str], met: Sequence[tuple[str, ...]]) -> bool:
    """True if chains of pairs that *met* join all *names*."""
    joined = {*names[:1]}
    while more := {name for pair in met if joined & {*pair} for name in pair} - joined:
        joined |= more
    return joined == {*names}
