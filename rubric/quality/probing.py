"""
How far can a judge be moved? `probe` grades candidates before and after attacks that should move no verdict.

An attack that is aimed at a criterion is graded by that criterion alone, whose request is the same byte for byte where
a judge is asked one criterion a call; other judges are asked all criteria, as they always are.

Where no attack has an effect, a candidate's verdicts differ by the judge's noise alone, so any of them may be the one
before: the moves up less those down have an exact distribution, given all verdicts of each candidate (the permutation
test of W. G. Cochran, Biometrika 37, 1950, for one attack). Of one attack alone it is the sign test of the moved
verdicts (Q. McNemar, Psychometrika 12, 1947), which must agree too, since it is exact whatever others do.

The p-values of the whole table are adjusted by the step-down method of Holm in its form for exact tests: each one
counts what it could have contributed at most, which is nothing where the verdicts hardly vary (R. E. Tarone, Biometrics
46, 1990; P. H. Westfall and R. D. Wolfinger, The American Statistician 51, 1997). Shares have the intervals of Clopper
and Pearson (Biometrika 26, 1934).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import neg
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import evolve, field, frozen
from scipy import stats

from rubric import Candidate, Cascade, Criterion, DefinitionError, Grade, Judge, Rubric, Ungraded, grade_many, plan
from rubric.driving import Usage
from rubric.embed import (
    TOLERANCE,
    Check,
    JudgeLike,
    NoTruth,
    Presented,
    Table,
    as_rubric,
    counted,
    fields,
    guided,
    judge_or_default,
    percent,
    shorten,
    source_of,
)
from rubric.engine import Candidates, Plan
from rubric.grading.candidate_parts import asked_parts
from rubric.quality.attacks import FLOOR, Attack, Kind, attacks_of
from rubric.values import AnyJudge

RISK, _WORST, _ENOUGH = 0.05, 5, 60


Test = tuple[int, tuple[float, ...]]
"""A place, and the chance of each place or a higher one without an effect."""


@lru_cache(maxsize=4096)
def sign_tails(moved: int) -> tuple[float, ...]:
    """Return the chance of k or more of *moved* by coin flips, for k from 0 to all."""
    return tuple(float(p) for p in stats.binom.sf(np.arange(-1, moved), moved, 0.5))


@lru_cache(maxsize=4096)  # most attacks edit the same candidates
def _net_tails(chances: tuple[float, ...]) -> tuple[float, ...]:
    """Return the chance of a net move or a larger one, from all down to all up, by each candidate's chance to move."""
    found = np.ones(1)
    for chance in chances:
        found = np.convolve(found, (chance, 1 - 2 * chance, chance))
    return tuple(float(p) for p in np.cumsum(found[::-1])[::-1])


def adjust(tests: Sequence[Test]) -> list[float]:
    """
    Return the adjusted p-value of each of *tests*.

    The chance that any test of an attack without effect has one of at most 0.05 is at most 0.05.
    """
    ps, kinds = [tails[place] for place, tails in tests], [*dict.fromkeys(tails for _, tails in tests)]
    numbers = {tails: number for number, tails in enumerate(kinds)}
    kind_of = [numbers[tails] for _, tails in tests]
    order = sorted(range(len(ps)), key=lambda at: ps[at])
    out, highest = [1.0] * len(ps), 0.0
    for rank, at in enumerate(order):
        reach = 0.0
        for kind, count in Counter(kind_of[other] for other in order[rank:]).items():
            # Equal tails may differ in their last digit.
            first = bisect_left(kinds[kind], -ps[at] * (1 + 1e-9), key=neg)
            reach += count * kinds[kind][first] if first < len(kinds[kind]) else 0.0
        highest = max(highest, min(1.0, reach))
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
        few = max((cell.n for cell in self.cells), default=0)
        if 0 < few < _ENOUGH:
            least = math.ceil(math.log2(len(self.cells) / RISK))
            sure = f"an attack is sure to show where it moves {least} of them one way ({min(1, least / few):.0%})"
            lines.append(f"{counted(few, 'candidate')} are few: {sure}; give {_ENOUGH}.")
        if lost := sum(cell.lost for cell in self.cells):
            lines.append(f"{counted(lost, 'comparison')} had no verdict before or after, and are left out.")
        cost = "cost unknown" if self.usage.cost is None else f"${self.usage.cost:,.4f}"
        return [*lines, *self.notes, f"{counted(self.usage.calls, 'call')}, {cost}; judged by {self.judge}."]

    def tables(self) -> list[Table]:
        """Each attack in a row; then the cells that were found, and the worst texts."""
        by_attack: defaultdict[tuple[str, str], list[Moved]] = defaultdict(list)
        for cell in self.cells:
            by_attack[cell.attack, cell.kind].append(cell)
        rows = []
        for key, cells in by_attack.items():
            n, up, down = (sum(getattr(cell, name) for cell in cells) for name in ("n", "up", "down"))
            shown = ", ".join(cell.criterion for cell in cells if cell.p <= RISK)
            rows.append((*key, n, up, down, f"{min(cell.p for cell in cells):.2g}", shown or "–"))
        found = []
        for c in dict.fromkeys([*self.significant, *self.worst]):
            w = c.worst
            text = ("–", "–") if w is None else (f"#{w.at}: {shorten(w.text, 240)}", shorten(w.reason))
            shares = percent(c.up / max(1, c.n), c.interval), percent(c.down / max(1, c.n))
            found.append((c.criterion, c.attack, *shares, f"{c.p:.2g}", *text))
        head = ("attack", "kind", "verdicts", "up", "down", "p (Holm)", "criteria that fall for it")
        worst = ("criterion", "attack", "moved up", "moved down", "p (Holm)", "candidate", "the judge's reason")
        return [("", head, rows), *([("Found, and the worst", worst, found)] if found else [])]


def with_p(found: Sequence[tuple[Moved, Sequence[Test]]]) -> tuple[Moved, ...]:
    """Return cells with their adjusted p-values, each of its tests."""
    ps = iter(adjust([test for _, tests in found for test in tests]))
    return tuple(evolve(cell, p=min(max(next(ps), sign_tails(m)[k]) for k, m in cell.tests)) for cell, _ in found)


Result = Grade | Ungraded

_EVEN, _ROOM = 0.5, 0.25


@frozen
class _Shot:
    """One candidate under one attack (None: before all), and the criteria that it is about."""

    attack: Attack | None
    at: int
    candidate: Candidate
    rubric: Rubric
    criteria: tuple[Criterion, ...]


@guided
def probe(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    candidates: Candidates = (),
    *,
    attacks: Sequence[str | Attack] | str | None = None,
    most: float | None = None,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    **options: Any,
) -> Probe:
    """
    Find the attacks that move a judge's verdicts: twenty edits of each candidate that should move none.

    It grades every candidate once as it is and once under each attack; `plan_probe` says beforehand what that takes.
    At most 5 % of probes of a judge that no attack moves show one, over the whole table.

    Args:
        rubric: As for `grade`.
        judge: As for `grade`.
        candidates: As for `grade_many`: answers like those that will be graded, some bad and some good.
        attacks: The names of some of `rubric.quality.ATTACKS`, or attacks of your own; None makes all.
        most: The share of candidates, in 0..1, that no attack may move as it must not: decides the `exit_code`.
        columns: As for `grade_many`.
        options: What `grade_many` takes besides: `store`, `budget`, `limits`, `concurrency`, `progress`. What a budget
            refuses is left out, and counted.

    Raises:
        DefinitionError: There are no candidates, an attack is unknown, or code decides every criterion.
    """
    fields.check_number("most", 0.0 if most is None else most, 0, 1)
    shots, by, left_out = _prepare(rubric, judge, candidates, attacks, columns)
    texts, rubrics = [shot.candidate for shot in shots], [shot.rubric for shot in shots]
    results = grade_many(texts, rubrics, by, **{"progress": False, **options}).collect()
    pairs = [*zip(shots, results, strict=True)]
    before = {shot.at: result for shot, result in pairs if shot.attack is None}
    readings: dict[str, list[_Reading]] = {}
    for shot, result in pairs:
        if shot.attack is not None:
            for criterion in shot.criteria:
                was, now = (each.contributions.get(criterion.id) for each in (before[shot.at], result))
                told = shot.candidate.output, result[criterion.id].reason
                readings.setdefault(criterion.id, []).append(_Reading(shot.attack, shot.at, was, now, *told))
    cells = with_p([found for id_, some in readings.items() for found in _cells(id_, some)])
    idle = {attack.name: 0 for attack in attacks_of(attacks)}.keys() - {cell.attack for cell in cells}
    notes = [f"There was nothing to change for {', '.join(map(repr, sorted(idle)))}."] if idle else []
    unread = {criterion.id for criterion in shots[0].criteria} - readings.keys()
    notes += [f"Left out, since no attack changes what it is asked of: {id_!r}." for id_ in sorted(unread)]
    notes += [*failures_of(results), *([left_out] if left_out else [])]
    usage = Usage.total(result.usage for result in results)
    return Probe(cells, _floor(pairs), by.name, len(before), usage, most, tuple(notes))


@guided
def plan_probe(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    candidates: Candidates = (),
    *,
    attacks: Sequence[str | Attack] | str | None = None,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
) -> Plan:
    """Return what `probe` would take, of the same arguments: calls, tokens and cost. Nothing is sent."""
    shots, by, left_out = _prepare(rubric, judge, candidates, attacks, columns)
    planned = plan([shot.candidate for shot in shots], [shot.rubric for shot in shots], by)
    return evolve(planned, remarks=(*planned.remarks, left_out)) if left_out else planned


def _prepare(rubric: Any, judge: Any, candidates: Any, attacks: Any, columns: Any) -> tuple[list[_Shot], AnyJudge, str]:
    given, by = as_rubric(rubric), judge_or_default(judge).without_early_stop()  # it would spare different votes
    texts, left_out = all_of(candidates, columns)
    judged = tuple(criterion for criterion in given.judged if not isinstance(criterion.answer, Check))
    if not judged:
        raise DefinitionError("rubric", "code decides every criterion, and no judge can be moved; try lint(rubric)")
    if not any(_reads_output(criterion, text) for criterion in judged for text in texts):
        why = "no criterion is asked of the output, which is what attacks change; leave out `on`"
        raise DefinitionError("rubric", why)
    is_alone = _asks_one_by_one(by)
    shots = [_Shot(None, at, candidate, given, judged) for at, candidate in enumerate(texts)]
    for attack in attacks_of(attacks):
        about = tuple(criterion for criterion in judged if attack.applies(criterion))
        parts = [(criterion,) for criterion in about] if attack.aimed else [about] if about else []
        for at, candidate in enumerate(texts):
            for part in parts:
                reached = tuple(criterion for criterion in part if _reads_output(criterion, candidate))
                if reached and (text := attack.of(candidate.output, part[0])) is not None:
                    by_rubric = _alone(given, part[0]) if attack.aimed and is_alone else given
                    shots.append(_Shot(attack, at, evolve(candidate, output=text), by_rubric, reached))
    return shots, by, left_out


def _reads_output(criterion: Criterion, candidate: Candidate) -> bool:
    """True if a change of the output of *candidate* changes what *criterion* is asked of."""
    changed = evolve(candidate, output=f"{candidate.output} …")
    return criterion.on == "conversation" or asked_parts(criterion, candidate) != asked_parts(criterion, changed)


def all_of(candidates: Any, columns: Any) -> tuple[list[Candidate], str]:
    """Return all *candidates*, of any source that `grade_many` takes and that is not async; and what is left out."""
    found, left_out = source_of(candidates, columns).read_all()
    if not found:
        raise DefinitionError("candidates", "there are none; give answers like those that will be graded, 60 or more")
    return [*found.values()], left_out


def failures_of(results: Sequence[Result]) -> list[str]:
    """Return a remark on the commonest failure among *results*; none if nothing failed."""
    failures = Counter(f"{failure.kind}: {failure.message}" for one in results for failure in one.failures)
    return [f"The commonest failure: {times:,} × {shorten(said, 200)}" for said, times in failures.most_common(1)]


def _asks_one_by_one(judge: AnyJudge) -> bool:
    """True if what *judge* is asked of a criterion does not depend on the others of the rubric."""
    if isinstance(judge, Judge):
        return judge.per_call == 1
    return not isinstance(judge, Cascade) and all(map(_asks_one_by_one, judge.members))


def _alone(rubric: Rubric, criterion: Criterion) -> Rubric:
    """Return *rubric* with *criterion* alone; the same object each time, so that it is prepared once."""
    if not rubric.criteria:
        return rubric
    weight = criterion.weight or 1  # one without weight cannot grade alone
    alone = evolve(criterion, weight=weight)
    return rubric.derive(("alone", criterion.id), lambda: evolve(rubric, criteria=[alone], tests=()))


@frozen
class _Reading:
    """What a criterion contributes for one candidate before and after an attack; None without a verdict."""

    attack: Attack
    at: int
    was: float | None
    now: float | None
    text: str
    reason: str


def _cells(id_: str, readings: Sequence[_Reading]) -> list[tuple[Moved, list[Test]]]:
    """Return what each attack does to the criterion *id_*, and its tests."""
    # A verdict can move up where there is room: the mean of its candidate's verdicts is low. Attacks that take the
    # answer away say nothing of the others' noise, so their verdicts count for themselves alone.
    seen: defaultdict[int, list[float]] = defaultdict(list)
    by_attack: defaultdict[str, list[_Reading]] = defaultdict(list)
    for one in readings:
        by_attack[one.attack.name].append(one)
        if one.was is not None and one.at not in seen:
            seen[one.at].append(one.was)
        if one.now is not None and one.attack.kind != "loss":
            seen[one.at].append(one.now)
    usual = {at: _level_and_chance(values) for at, values in seen.items()}
    cells = []
    for mine in by_attack.values():
        attack = mine[0].attack
        gains: list[tuple[float, float, float, _Reading]] = []
        for one in mine:
            if one.was is not None and one.now is not None:
                own = _level_and_chance([*seen[one.at], one.now]) if attack.kind == "loss" else usual[one.at]
                gains.append((one.now - one.was, *own, one))
        up, down = (sum(sign * gain > TOLERANCE for gain, *_ in gains) for sign in (1, -1))
        moves, tests = [], []
        for sign in (1, -1) if attack.kind == "same" else (1,):
            there = [(sign * gain, chance) for gain, level, chance, _ in gains if sign * (level - _EVEN) <= _ROOM]
            right, wrong = (sum(each > TOLERANCE for each in (s * gain for gain, _ in there)) for s in (-1, 1))
            moves.append((wrong, wrong + right))
            tests.append((len(there) + wrong - right, _net_tails(tuple(sorted(chance for _, chance in there)))))
        worst = None
        if up:
            best = max(gains, key=lambda each: each[0])[-1]
            worst = Worst(best.at, best.was or 0.0, best.now or 0.0, best.text, best.reason)
        lost = len(mine) - len(gains)
        cell = Moved(attack.name, attack.kind, id_, up, down, len(gains), lost, tuple(moves), worst=worst)
        cells.append((cell, tests))
    return cells


def _level_and_chance(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of a candidate's verdicts, and the chance that the second of two of them is higher."""
    n, alike = len(values), sum(count * count for count in Counter(values).values())
    return sum(values) / n, (n * n - alike) / (2 * n * max(1, n - 1))


def _floor(pairs: Sequence[tuple[_Shot, Result]]) -> tuple[int, int] | None:
    """Return how many different null answers pass, and how many were judged; None if they were not tried."""
    nulls = {
        (shot.candidate.output, shot.candidate.input): result
        for shot, result in pairs
        if shot.attack is not None and shot.attack.name == FLOOR
    }
    decided = [result.passed for result in nulls.values() if result.passed is not None]
    return (sum(decided), len(decided)) if nulls else None
