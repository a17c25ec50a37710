"""What figures of trust promise: shares, kept verdicts, two runs, drift, and remarks on what they assume."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import evolve
from scipy import stats

from rubric.embed import FrozenMap, mean_interval
from rubric.results.report_rows import Row, Status
from rubric.suites import Report, pass_rates
from rubric.trust.assumptions import _sample_remark, _useless
from rubric.trust.drift import Baseline, drift
from rubric.trust.inference import Floats, paired_contrast
from rubric.trust.selective import _try_thresholds, distance
from tests.simulations.drawing import SIZES, Chance, Table, chance_of, covers, ratings


def rates_of_one(runs: int) -> Table:
    """Yield the exact coverage of the interval of a pass rate."""
    del runs
    for p in (0.05, 0.5, 0.95):
        cells = []
        for n in SIZES:
            held = [covers(mean_interval([1.0] * k + [0.0] * (n - k)), p) for k in range(n + 1)]
            cells.append(float(stats.binom.pmf(np.arange(n + 1), n, p) @ np.array(held)))
        yield (p, *(f"{cell:.1%}" for cell in cells)), min(cells)


# -- kept verdicts ------------------------------------------------------------------------------------------

Drawn = Callable[[Chance, int], tuple[Floats, Floats]]
"""Draws what people say (0 or 1), and scores."""


def yes_no(p: float, yes: float, no: float) -> Drawn:
    def draw(chance: Chance, n: int) -> tuple[Floats, Floats]:
        people = chance.random(n) < p
        found = np.where(people, chance.random(n) < yes, chance.random(n) >= no)
        return people.astype(float), found.astype(float)

    return draw


def levels(p: float, yes: float, no: float) -> Drawn:
    def draw(chance: Chance, n: int) -> tuple[Floats, Floats]:
        people, found = yes_no(p, yes, no)(chance, n)
        far = chance.random(n) < np.where(found == people, 0.75, 0.25)
        return people, np.where(found == 1, np.where(far, 1.0, 0.75), np.where(far, chance.choice([0, 0.25], n), 0.5))

    return draw


def shades(chance: Chance, n: int) -> tuple[Floats, Floats]:
    people = (chance.random(n) < 0.8).astype(float)
    return people, np.where(people == 1, chance.beta(6, 1.2, n), chance.beta(2, 3, n)).round(2)


_KEPT: dict[str, tuple[Drawn, float, int]] = {
    "yes or no, .9/.8, 80 % good": (yes_no(0.8, 0.9, 0.8), 0.2, 300),
    "yes or no, .95/.8, 80 % good": (yes_no(0.8, 0.95, 0.8), 0.15, 300),
    "yes or no, .97/.8, 95 % good": (yes_no(0.95, 0.97, 0.8), 0.1, 500),
    "five levels, .9/.8, 80 % good": (levels(0.8, 0.9, 0.8), 0.1, 300),
    "five levels, .95/.7, 80 % good": (levels(0.8, 0.95, 0.7), 0.1, 500),
    "scores, 80 % good": (shades, 0.15, 300),
}


def kept(runs: int) -> Table:
    """Yield what `trusted` keeps at the default threshold, what the exact test of one level allows, and violations."""
    for name, (draw, error, n) in _KEPT.items():
        chance, held, allowed, bad = chance_of(14), 0.0, 0.0, 0
        everyone, scores = draw(chance_of(15), 200_000)
        far, wrong_far = sure_of(scores), (scores >= 0.7) != everyone
        for _ in range(runs):
            people, scores = draw(chance, n)
            sure, wrong = sure_of(scores), ((scores >= 0.7) != people).astype(float)
            found = _try_thresholds(sure, sure, wrong, "score", allowed=(error, 0.05))
            held += found.kept / runs
            allowed += allowed_by(sure, wrong, error) / runs
            least = found.when.least
            bad += least is not None and bool(wrong_far[far >= least - 1e-9].mean() > error)
        yield (name, error, n, f"{allowed:.1%}", f"{held:.1%}", f"{bad / runs:.1%}"), 1.0 - max(0.0, allowed - held)


def sure_of(scores: Floats) -> Floats:
    return np.array([distance(score, 0.7) for score in scores]).round(9)


def allowed_by(sure: Floats, wrong: Floats, error: float) -> float:
    """Return the largest share that is kept at a level which passes the exact test by itself."""
    for level in np.unique(sure):
        at = sure >= level
        if stats.binom.cdf(wrong[at].sum(), at.sum(), error) <= 0.05:
            return float(at.mean())
    return 0.0


# -- two runs -----------------------------------------------------------------------------------------------


def report(verdicts: Sequence[Sequence[bool]]) -> Report:
    """Return the report of cases with several runs each."""
    status: dict[bool, Status] = {True: "passed", False: "failed"}
    rows = ((case, run, v) for case, runs in enumerate(verdicts) for run, v in enumerate(runs, 1))
    return Report(
        "s", tuple(Row(f"{c} [run {r}]", status[v], float(v), cell=FrozenMap({"run": r})) for c, r, v in rows)
    )


def drops(runs: int) -> Table:
    """Yield how often `Report.compare` fails for one run of each case."""
    for cases in (20, 50, 200):
        cells = []
        for flips, drop in ((0.02, 0.0), (0.02, 0.1), (0.05, 0.1)):
            chance, failed = chance_of(8), 0
            for _ in range(runs):
                truth = chance.random(cases) < 0.8
                worse = truth & (chance.random(cases) >= drop / 0.8)
                before, after = (run ^ (chance.random(cases) < flips) for run in (truth, worse))
                failed += report(after[:, None].tolist()).compare(report(before[:, None].tolist())).exit_code
            cells.append(failed / runs)
        yield (cases, *(f"{cell:.1%}" for cell in cells)), 1 - cells[0]


def two_runs(runs: int) -> Table:
    """Yield how often two runs of a system whose cases move at random are told apart, and a drop of .10 is found."""
    for cases, size in ((4, 5), (10, 5), (20, 10), (40, 10)):
        for spread in (0.0, 0.15, 0.3):
            cells = []
            for drop in (0.0, 0.1):
                chance, gate, both = chance_of(16), 0, 0
                for _ in range(runs if not drop else runs // 2):
                    shares, moved = chance.beta(2, 1, cases), chance.normal(0, spread, cases)
                    before, after = (
                        chance.random((cases, size)) < np.clip(shares + sign * moved / 2 - less, 0, 1)[:, None]
                        for sign, less in ((1, 0.0), (-1, drop))
                    )
                    gate += report(after.tolist()).compare(report(before.tolist())).exit_code
                    differences = (after.astype(float) - before).ravel()
                    found = paired_contrast(differences, np.repeat(np.arange(cases), size))
                    both += found is not None and found.p < 0.05
                cells += [each / (runs if not drop else runs // 2) for each in (gate, both)]
            yield (f"{cases} × {size}", spread, *(f"{cell:.1%}" for cell in cells)), 1 - max(cells[:2])


def drifts(runs: int) -> Table:
    """Yield how often `against` calls an unchanged judge changed on new candidates, and finds one that got worse."""

    def month(chance: Chance, icc: float, right: float, name: str) -> Baseline:
        good = np.repeat(chance.beta(0.8 * (1 / icc - 1), 0.2 * (1 / icc - 1), 20), 10)
        people = (chance.random(200) < good).astype(float)
        judge = np.where(chance.random(200) < right, people, 1 - people)
        made = ratings(people, judge, np.repeat(np.arange(20), 10))
        named = evolve(made, names=tuple(f"{name} {n}" for n in range(200)))
        return Baseline.of_ratings("judge", "digest", [named])

    for icc in (0.1, 0.3):
        chance = chance_of(17)
        same, worse = (
            sum(drift(month(chance, icc, right, "b"), month(chance, icc, 0.9, "a")).changed for _ in range(runs)) / runs
            for right in (0.9, 0.7)
        )
        yield (icc, f"{same:.1%}", f"{worse:.1%}"), 1 - same


def several_runs(runs: int) -> Table:
    """Yield the coverage of pass@k, pass^k and flip rates, of cases that pass with a probability of their own."""
    for cases in (5, 20, 60, 200):
        chance, hits = chance_of(18), np.zeros(3)
        shares = chance_of(19).beta(1.5, 0.7, 1_000_000)
        truths = (
            float(np.mean(1 - (1 - shares) ** 3)),
            float(np.mean(shares**3)),
            float(np.mean(2 * shares * (1 - shares))),
        )
        for _ in range(runs):
            drawn = chance.random((cases, 5)) < chance.beta(1.5, 0.7, cases)[:, None]
            rates = pass_rates(report(drawn.tolist()))
            intervals = rates[2].any_interval, rates[2].all_interval, rates.flip_interval
            hits += [covers(one, truth) for one, truth in zip(intervals, truths, strict=True)]
        yield (cases, *(f"{hit / runs:.1%}" for hit in hits)), float(min(hits) / runs)


# -- remarks ------------------------------------------------------------------------------------------------

_DRAWS: Mapping[str, Callable[[Chance, Floats, Floats], Floats]] = {
    "at random": lambda chance, people, judge: np.ones(len(people)),
    "a judge's no twice as likely": lambda chance, people, judge: 2.0 - judge,
    "what the judge fails first": lambda chance, people, judge: 1e-9 + (judge == 0),
    "complaints: bad ones three times as likely": lambda chance, people, judge: 3.0 - 2 * people,
}


def remarked(runs: int) -> Table:
    """Yield how often labels are called no random sample, and a judge useless or inverted."""
    for name, weigh in _DRAWS.items():
        cells = []
        for yes, no in ((0.9, 0.8), (0.8, 0.95)):
            chance, told = chance_of(20), 0
            for _ in range(runs):
                people, judge = yes_no(0.8, yes, no)(chance, 1_000)
                weight = weigh(chance, people, judge)
                drawn = chance.choice(1_000, 100, replace=False, p=weight / weight.sum())
                shown = np.full(1_000, np.nan)
                shown[drawn] = people[drawn]
                told += bool(_sample_remark(ratings(shown, judge), 0.01, ""))
            cells.append(told / runs)
        yield (name, *(f"{cell:.1%}" for cell in cells)), 1 - max(cells) if name == "at random" else 1.0


def useless(runs: int) -> Table:
    """Yield how often a judge is called useless or inverted, by its errors and the number of labels."""
    for yes, no in ((0.9, 0.8), (0.7, 0.7), (0.5, 0.5), (0.2, 0.3)):
        cells = []
        for n in (20, 60, 200):
            chance, told = chance_of(21), [0, 0]
            for _ in range(runs):
                people, judge = yes_no(0.7, yes, no)(chance, n)
                said = _useless(ratings(people, judge))
                told[0] += "opposite" in said
                told[1] += bool(said) and "opposite" not in said
            cells += [f"{told[1] / runs:.1%}, {told[0] / runs:.1%}"]
        yield (f".{yes * 10:.0f}/.{no * 10:.0f}", *cells), 1.0
