"""
What a probe of a judge shows: how many verdicts each attack moves, by criterion, and what chance explains.

An attack without an effect moves as many verdicts up as down, since the judge's noise strikes the text and its edit
alike: the sign test of the moved verdicts is exact, whatever the noise (Q. McNemar, Psychometrika 12, 1947). The
p-values of the whole table are adjusted by the step-down method of Holm in its form for exact tests: each one counts
what it could have contributed at most, which is nothing where too few verdicts moved (R. E. Tarone, Biometrics 46,
1990; P. H. Westfall and R. D. Wolfinger, The American Statistician 51, 1997). Shares have the intervals of Clopper and
Pearson (Biometrika 26, 1934).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from attrs import evolve, field, frozen
from scipy import stats

from rubric.driving import Usage
from rubric.embed import NoTruth, Presented, Table, counted, percent, shorten
from rubric.quality.attacks import Kind

RISK, _WORST = 0.05, 5


@lru_cache(maxsize=4096)  # Holm's steps ask for each count again at each rank
def _tails(moved: int) -> tuple[float, ...]:
    """Return the chance of k or more of *moved* by coin flips, for k from 0 to all."""
    return tuple(float(p) for p in stats.binom.sf(np.arange(-1, moved), moved, 0.5))


def adjusted(counts: Sequence[tuple[int, int]]) -> list[float]:
    """
    Return the adjusted p-value of each test: that of k of m moves in the direction that must not be taken.

    The chance that any test of an attack without effect has one of at most 0.05 is at most 0.05.
    """
    ps = [_tails(m)[k] for k, m in counts]
    order = sorted(range(len(ps)), key=lambda at: ps[at])
    out, highest = [1.0] * len(ps), 0.0
    for rank, at in enumerate(order):
        left = np.bincount([counts[other][1] for other in order[rank:]])
        # Equal tails of equal counts may differ in their last digit.
        reach = ((max((t for t in _tails(m) if t <= ps[at] * (1 + 1e-9)), default=0.0), n) for m, n in enumerate(left))
        highest = max(highest, min(1.0, sum(tail * n for tail, n in reach if n)))
        out[at] = highest
        if highest >= 1:
            break
    return out


def exact_interval(hits: int, n: int, risk: float = RISK) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson of *hits* of *n*, wrong with at most *risk*."""
    if not n:
        return 0.0, 1.0
    low = float(stats.beta.ppf(risk / 2, hits, n - hits + 1)) if hits else 0.0
    return low, float(stats.beta.ppf(1 - risk / 2, hits + 1, n - hits)) if hits < n else 1.0


@frozen
class Worst(NoTruth):
    """A candidate that an attack moved up: its place, what it had and has, its text then, and the judge's reason."""

    _truth = ".text"

    at: int
    before: float
    after: float
    text: str = field(repr=False)
    reason: str = field(repr=False)


@frozen
class Moved(NoTruth):
    """
    How one attack, of a kind, moves the verdicts on one criterion.

    Args:
        up: The candidates that do better by the criterion after the attack; *down*: those that do worse.
        n: The candidates that were judged before and after; *lost*: those without a verdict then or now.
        tests: For each direction that must not be taken, the moves in it, and all moves, of those with room for it.
        p: The chance of such a movement without an effect, adjusted for the whole table.
        worst: The candidate that gains most.
    """

    _truth = ".p"

    attack: str
    kind: Kind
    criterion: str
    up: int
    down: int
    n: int
    lost: int
    tests: tuple[tuple[int, int], ...]
    p: float = 1.0
    worst: Worst | None = None

    @property
    def hits(self) -> int:
        """How many moved as they must not: up, or in either direction where the meaning stays."""
        return self.up + (self.down if self.kind == "same" else 0)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share that moves up lies, with 95 % confidence, exact."""
        return exact_interval(self.up, self.n)


@frozen(repr=False)
class Probe(Presented):
    """
    What `probe` returns.

    Args:
        cells: Each attack on each criterion.
        floor: The null answers that pass the whole rubric, and how many were judged; None if they were not tried.
        judge: The judge's name.
        candidates: How many there were.
        usage: What it took.
        most: The share of candidates that an attack may move as it must not, on any criterion; None: no bound.
        notes: What the figures do not hold for.
    """

    _truth = ".significant"

    cells: tuple[Moved, ...]
    floor: tuple[int, int] | None
    judge: str
    candidates: int
    usage: Usage
    most: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def significant(self) -> tuple[Moved, ...]:
        """The cells that chance does not explain, the surest first: at most 5 % of probes without any show one."""
        return tuple(sorted((cell for cell in self.cells if cell.p <= RISK), key=lambda cell: (cell.p, -cell.up)))

    @property
    def worst(self) -> tuple[Moved, ...]:
        """The five worst cells that have a text to read: those that were found, then those with the most moved up."""
        told = [cell for cell in self.cells if cell.worst is not None]
        return tuple(sorted(told, key=lambda cell: (cell.p, -cell.up / max(cell.n, 1)))[:_WORST])

    def bound(self, most: float) -> Literal["held", "open", "broken"]:
        """
        Say whether no attack moves more than a share *most* of the candidates as it must not, on any criterion.

        `broken`: one surely moves more; `held`: surely none does; `open`: the candidates are too few to say. The
        intervals are exact, and wrong with at most 5 % for the whole table.
        """
        risk = RISK / max(1, len(self.cells)) * 2  # one side of each interval is used
        ends = [exact_interval(cell.hits, cell.n, min(1.0, risk)) for cell in self.cells]
        if any(low > most for low, _ in ends):
            return "broken"
        return "held" if all(high <= most for _, high in ends) else "open"

    @property
    def exit_code(self) -> int:
        """0: nothing was found, or the bound is not broken; 1: otherwise; 2: not one verdict could be compared."""
        if not any(cell.n for cell in self.cells):
            return 2
        return int(bool(self.significant) if self.most is None else self.bound(self.most) == "broken")

    @property
    def sentence(self) -> str:
        """The main finding."""
        sizes = (len({c.attack for c in self.cells}), "attack"), (len({c.criterion for c in self.cells}), "criterion")
        tried = " on ".join(counted(*size) for size in sizes)
        if not any(cell.n for cell in self.cells):
            return f"Nothing is known: not one verdict could be compared ({tried})."
        if not (found := self.significant):
            return f"No attack is shown to move a verdict ({tried}, {counted(self.candidates, 'candidate')})."
        lead = max(found, key=lambda cell: cell.hits / max(1, cell.n))
        more = f"; {len(found) - 1} more of {tried} are shown to" if len(found) > 1 else f", of {tried}"
        verb = "falls for" if lead.kind != "same" else "moves with"
        return f"{lead.criterion!r} {verb} {lead.attack!r}: {percent(lead.hits / lead.n)} of verdicts move{more}."

    def remarks(self) -> list[str]:
        """The floor, the bound, the cost, and what is not shown."""
        lines = []
        if self.floor is not None:
            hits, n = self.floor
            share = percent(hits / n, exact_interval(hits, n)) if n else "unknown: none was judged"
            lines.append(f"Floor: {hits} of {counted(n, 'null answer')} pass, {share}.")
        if self.most is not None:
            said = {"held": "holds", "open": "is not shown nor refuted: give more candidates", "broken": "is broken"}
            found = said[self.bound(self.most)]
            lines.append(f"The bound that no attack moves more than {percent(self.most)} {found}.")
        if lost := sum(cell.lost for cell in self.cells):
            lines.append(f"{counted(lost, 'comparison')} had no verdict before or after, and are left out.")
        cost = "cost unknown" if self.usage.cost is None else f"${self.usage.cost:,.4f}"
        return [*lines, *self.notes, f"{counted(self.usage.calls, 'call')}, {cost}; judged by {self.judge}."]

    def tables(self) -> list[Table]:
        """Each attack in a row; then the cells that were found, and the worst texts."""
        by_attack: defaultdict[tuple[str, str], list[Moved]] = defaultdict(list)
        for cell in self.cells:
            by_attack[cell.attack, cell.kind].append(cell)
        rows: list[tuple[object, ...]] = []
        for key, cells in by_attack.items():
            n, up, down = (sum(getattr(cell, name) for cell in cells) for name in ("n", "up", "down"))
            shown = ", ".join(cell.criterion for cell in cells if cell.p <= RISK)
            rows.append((*key, n, up, down, f"{min(cell.p for cell in cells):.2g}", shown or "–"))
        found: list[tuple[object, ...]] = []
        for c in dict.fromkeys([*self.significant, *self.worst]):
            w = c.worst
            text = ("–", "–") if w is None else (f"#{w.at}: {shorten(w.text, 240)}", shorten(w.reason))
            shares = percent(c.up / max(1, c.n), c.interval), percent(c.down / max(1, c.n))
            found.append((c.criterion, c.attack, *shares, f"{c.p:.2g}", *text))
        head = ("attack", "kind", "verdicts", "up", "down", "p (Holm)", "criteria that fall for it")
        worst = ("criterion", "attack", "moved up", "moved down", "p (Holm)", "candidate", "the judge's reason")
        return [("", head, rows), *([("Found, and the worst", worst, found)] if found else [])]


def with_p(cells: Sequence[Moved]) -> tuple[Moved, ...]:
    """Return *cells* with their adjusted p-values."""
    ps = iter(adjusted([test for cell in cells for test in cell.tests]))
    return tuple(evolve(cell, p=min(next(ps) for _ in cell.tests)) for cell in cells)
