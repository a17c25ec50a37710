"""
What many preferences say together: win rates, position bias, the win rate at equal length, and strengths of systems.

A tie, and a pair that the judge decides by the order alone, is half a win for each. Intervals are those of
`rubric.scoring.intervals`: by group, where pairs have groups.

The strengths are those of R. A. Bradley and M. E. Terry (Biometrika 39, 1952), with one tie more for each two systems
that met, so that a system that always wins has a finite strength. The rate at equal length is the intercept of a
logistic regression on the difference in length (Y. Dubois et al., arXiv 2404.04475). The errors of both are sandwich
errors by group (K.-Y. Liang and S. Zeger, Biometrika 73, 1986) with Student's quantile at groups - 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, Literal

from attrs import asdict, evolve, frozen

from rubric.errors import DefinitionError
from rubric.internals.containers import Listed
from rubric.rendering.plots import altair
from rubric.rendering.presenting import Presented, Table
from rubric.scoring.intervals import Interval, few_groups, mean_interval, t_quantile

if TYPE_CHECKING:
    from rubric.trust.preference import Preference

Side = Literal["a", "b", "tie"]

_WINS = {"a": 1.0, "b": 0.0, "tie": 0.5, "inconsistent": 0.5}
_EVEN = 0.5
_ROUNDS, _STEP, _ENOUGH = 100, 4.0, 1e-10
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
    """

    name: str
    value: float | None
    interval: Interval | None
    n: int
    bounds: Interval | None = None

    def __str__(self) -> str:
        return "none" if self.value is None else _percent(self.value, self.interval)


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
    interval: Interval | None
    wins: float
    n: int


@frozen(repr=False)
class Preferences(Presented, Listed["Preference"]):
    """
    Many preferences, and what they say together.

    Args:
        preferences: In the order of the pairs.
    """

    _kind = "pair"
    _items = "preferences"
    _truth = ".win_rate"

    preferences: tuple[Preference, ...]

    def __attrs_post_init__(self) -> None:
        if not self.preferences:
            raise DefinitionError("pairs", "there are no pairs, so nothing can be preferred")

    def swapped(self) -> Preferences:
        """Return the same preferences with `a` and `b` exchanged."""
        other: dict[Any, Any] = {"a": "b", "b": "a"}

        def exchanged(one: Preference) -> Preference:
            criteria = tuple(
                evolve(
                    c,
                    outcome=other.get(c.outcome, c.outcome),
                    orders=tuple(other.get(side, side) for side in reversed(c.orders)),
                    reasons=c.reasons[::-1],
                )
                for c in one.criteria
            )
            return evolve(
                one,
                criteria=criteria,
                names=one.names[::-1],
                lengths=one.lengths[::-1],
                results=one.results[::-1],
            )

        return Preferences(tuple(map(exchanged, self.preferences)))

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
            raise KeyError(f"no criterion {criterion!r} among {', '.join(self.criteria)}")
        said: list[tuple[Preference, float | None]] = []
        for one in self.preferences:
            outcome = one.outcome if criterion is None else next((c.outcome for c in one if c.id == criterion), None)
            if name in one.names and one.names[0] != one.names[1] and outcome is not None:
                won = _WINS.get(outcome)
                said.append((one, won if won is None or one.names[0] == name else 1 - won))
        return _rate(name if criterion is None else criterion, said)

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
        return _rate("consistent", [(one, float(x == y)) for one, (x, y) in self._both()])

    @property
    def position(self) -> Rate:
        """
        How often the response that is shown first wins; ties count half.

        A judge without a position bias has one half, since each response is shown first once.
        """
        first = {"a": 1.0, "tie": _EVEN, "b": 0.0}
        return _rate("shown first", [(one, (first[x] + 1 - first[y]) / 2) for one, (x, y) in self._both()])

    def _both(self) -> list[tuple[Preference, tuple[Side, Side]]]:
        found = []
        for one in self.preferences:
            orders = one.orders
            if len(orders) > 1 and orders[0] is not None and orders[1] is not None:
                found.append((one, (orders[0], orders[1])))
        return found

    @property
    def length_controlled(self) -> Rate | None:
        """
        How often the first system would win if both responses were of one length; None for fewer than five pairs.

        It is of pairs between the first two systems.
        """
        rows, wins, units = [], [], []
        a, *others = self.systems
        for index, one in enumerate(self.preferences):
            won = _WINS.get(one.outcome)
            if won is None or {*one.names} != {a, *others[:1]}:
                continue
            sign = 1 if one.names[0] == a else -1
            rows.append(float(sign * (one.lengths[0] - one.lengths[1])))
            wins.append(won if sign > 0 else 1 - won)
            units.append(one.group or str(index))
        spread = pstdev(rows) if len(rows) >= _FEWEST else 0.0
        if not spread:
            return None
        points = [{0: 1.0, 1: math.tanh(row / spread)} for row in rows]
        fitted = _logistic(points, wins, units, 2, [({0: 1.0}, _EVEN)])
        middle, error = fitted.values[0], fitted.error({0: 1.0})
        interval = None if error is None else (_sigmoid(middle - error), _sigmoid(middle + error))
        return Rate("at equal length", _sigmoid(middle), interval, len(rows))

    @property
    def strengths(self) -> tuple[Strength, ...]:
        """
        The systems by strength, the strongest first; none where no chain of pairs joins all of them.
        """
        names = self.systems
        place = {name: n for n, name in enumerate(names)}
        rows: list[dict[int, float]] = []
        wins: list[float] = []
        units: list[str] = []
        for index, one in enumerate(self.preferences):
            won = _WINS.get(one.outcome)
            if won is not None and one.names[0] != one.names[1]:
                rows.append({place[one.names[0]]: 1.0, place[one.names[1]]: -1.0})
                wins.append(won)
                units.append(one.group or str(index))
        met = {tuple(sorted(row)) for row in rows}
        if _apart(len(names), met):
            return ()
        fitted = _logistic(rows, wins, units, len(names), [({x: 1.0, y: -1.0}, _EVEN) for x, y in sorted(met)])
        mean = fmean(fitted.values)
        found = []
        for name, n in place.items():
            contrast = {other: float(other == n) - 1 / len(names) for other in range(len(names))}
            value, error = fitted.values[n] - mean, fitted.error(contrast)
            mine = [(row[n], won) for row, won in zip(rows, wins, strict=True) if n in row]
            total = math.fsum(won if sign > 0 else 1 - won for sign, won in mine)
            interval = None if error is None else (value - error, value + error)
            found.append(Strength(name, value, interval, total, len(mine)))
        return tuple(sorted(found, key=lambda one: -one.value))

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
        return f"{said}; swapping the order changes {_percent(1 - same.value, None)} of the verdicts."

    def remarks(self) -> list[str]:
        """What to know before a figure is trusted."""
        lines, rate, first = [], self.win_rate(), self.position
        if (missing := self.counts["unjudged"]) and rate.bounds is not None:
            low, high = rate.bounds
            lines.append(f"{missing:,} pairs have no verdict; counted either way, the rate is {low:.0%} to {high:.0%}.")
        if first.interval is not None and not first.interval[0] <= _EVEN <= first.interval[1]:
            order = "first" if first.interval[0] > _EVEN else "last"
            lines.append(f"The judge prefers the response that is shown {order}: the first one wins in {first}.")
        if not first.n:
            lines.append("Each pair was asked about in one order, so a position bias is part of the rates.")
        controlled = self.length_controlled
        low, high = rate.interval or (0.0, 1.0)
        if controlled is not None and controlled.value is not None and not low <= controlled.value <= high:
            lines.append(f"At equal length the rate would be {controlled}: length is part of what wins.")
        if len(self.systems) > 2 and not self.strengths:
            lines.append("Some systems never met, not even by others in between, so strengths cannot be compared.")
        if few := few_groups(len({one.group for one in self.preferences if one.group})):
            lines.append(f"{few}.")
        return lines

    def tables(self) -> list[Table]:
        """Win rates; criteria; strengths of more than two systems."""
        head = ("", "rate", "95 % interval", "pairs")
        rates = [self.win_rate(), self.length_controlled, self.position, self.consistency]
        shown: list[Table] = [("", head, [_row(one) for one in rates if one is not None and one.n])]
        if len(self.criteria) > 1:
            rows = [_row(self.win_rate(criterion=id_)) for id_ in self.criteria]
            shown.append((f"Win rate of {self.systems[0]} by criterion", head, rows))
        if len(self.systems) > 2 and self.strengths:
            top = ("system", "strength", "95 % interval", "wins", "pairs", "win rate")
            shown.append(("Strengths", top, [
                (s.name, s.value, _range(s.interval, "{:+.2f}"), f"{s.wins:g}", s.n, str(self.win_rate(s.name)))
                for s in self.strengths
            ]))  # fmt: skip
        return shown

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        controlled = self.length_controlled
        return {
            "kind": "preferences",
            "sentence": self.sentence,
            "systems": [*self.systems],
            "counts": self.counts,
            "win_rates": [asdict(self.win_rate(name)) for name in self.systems],
            "criteria": [asdict(self.win_rate(criterion=id_)) for id_ in self.criteria],
            "position": asdict(self.position),
            "consistency": asdict(self.consistency),
            "length_controlled": None if controlled is None else asdict(controlled),
            "strengths": [asdict(one) for one in self.strengths],
            "preferences": [one.to_dict() for one in self.preferences],
            "remarks": self.remarks(),
        }

    def plot(self) -> Any:
        """Return a forest of win rates as an Altair chart (extra `plots`)."""
        alt = altair()
        rates = [self.win_rate(name) for name in self.systems[: None if len(self.systems) > 2 else 1]]
        rates += [self.win_rate(criterion=id_) for id_ in self.criteria] if len(self.criteria) > 1 else []
        rates += [one for one in (self.length_controlled, self.position) if one is not None]
        rows = [
            {"name": one.name, "value": one.value, "low": low, "high": high}
            for one in rates
            if one.value is not None
            for low, high in [one.interval or (one.value, one.value)]
        ]
        base = alt.Chart(alt.Data(values=rows), title=self.sentence).encode(y=alt.Y("name:N", sort=None, title=None))
        whole = alt.Scale(domain=[0, 1])
        lines = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title="win rate", scale=whole), x2="high:Q")
        points = base.mark_point(filled=True, size=70).encode(x="value:Q")
        even = alt.Chart(alt.Data(values=[{"at": _EVEN}])).mark_rule(strokeDash=[4, 4]).encode(x="at:Q")
        return alt.layer(even, lines, points)


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


def _range(interval: Interval | None, form: str) -> str:
    return "-" if interval is None else " to ".join(form.format(end) for end in interval)


def _percent(value: float, interval: Interval | None) -> str:
    said = f"{value:.0%}".replace("%", " %")
    return said if interval is None else f"{said} ({interval[0] * 100:.0f} to {interval[1] * 100:.0f})"


# -- logistic regression -------------------------------------------------------------------------------------

_Row = Mapping[int, float]


@frozen
class _Fitted:
    """Coefficients, and half the width of the interval of a sum of them."""

    values: list[float]
    error: Callable[[_Row], float | None]


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _logistic(
    rows: Sequence[_Row], wins: Sequence[float], units: Sequence[str], k: int, pseudo: Sequence[tuple[_Row, float]]
) -> _Fitted:
    """
    Fit the log odds of *wins*, values in 0..1, as sums over *rows*, by Newton's method.

    Args:
        units: The group of each row.
        k: The number of coefficients.
        pseudo: Observations more, which keep coefficients finite and are no part of the errors.
    """
    values, slight = [0.0] * k, 1e-6
    observed = [*zip(rows, wins, strict=True), *pseudo]
    information = [[0.0] * k for _ in range(k)]
    for _ in range(_ROUNDS):
        slope = [-slight * value for value in values]
        information = [[slight * (i == j) for j in range(k)] for i in range(k)]
        for row, won in observed:
            p = _sigmoid(math.fsum(values[i] * x for i, x in row.items()))
            for i, x in row.items():
                slope[i] += (won - p) * x
                for j, y in row.items():
                    information[i][j] += p * (1 - p) * x * y
        step = _solve(information, slope)
        largest = max(map(abs, step), default=0.0)
        values = [value + s * min(1.0, _STEP / (largest or 1.0)) for value, s in zip(values, step, strict=True)]
        if largest < _ENOUGH:
            break
    scores: dict[str, list[float]] = {}
    for row, won, unit in zip(rows, wins, units, strict=True):
        p = _sigmoid(math.fsum(values[i] * x for i, x in row.items()))
        mine = scores.setdefault(unit, [0.0] * k)
        for i, x in row.items():
            mine[i] += (won - p) * x
    m = len(scores)

    def error(contrast: _Row) -> float | None:
        if m < 2:
            return None
        weights = _solve(information, [contrast.get(i, 0.0) for i in range(k)])
        moved = [math.fsum(w * s for w, s in zip(weights, mine, strict=True)) for mine in scores.values()]
        model = math.fsum(w * contrast.get(i, 0.0) for i, w in enumerate(weights))  # without variance between groups
        variance = max(math.fsum(x * x for x in moved) * m / (m - 1), model if m == len(rows) else 0.0)
        return t_quantile(m - 1) * math.sqrt(variance)

    return _Fitted(values, error)


def _solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Return the solution of a positive definite system, by Cholesky's decomposition."""
    k = len(right)
    lower = [[0.0] * k for _ in range(k)]
    for i in range(k):
        for j in range(i + 1):
            rest = matrix[i][j] - math.fsum(lower[i][n] * lower[j][n] for n in range(j))
            lower[i][j] = math.sqrt(max(rest, 1e-12)) if i == j else rest / lower[j][j]
    out = [0.0] * k
    for i in range(k):
        out[i] = (right[i] - math.fsum(lower[i][n] * out[n] for n in range(i))) / lower[i][i]
    for i in reversed(range(k)):
        out[i] = (out[i] - math.fsum(lower[n][i] * out[n] for n in range(i + 1, k))) / lower[i][i]
    return out


def _apart(k: int, met: Iterable[tuple[int, ...]]) -> set[int]:
    """Return the systems that no chain of pairs joins with the first."""
    joined, pairs = {0}, [*met]
    grown = True
    while grown:
        more = {n for pair in pairs if joined & {*pair} for n in pair} - joined
        joined |= more
        grown = bool(more)
    return {*range(k)} - joined
