"""
What the assumptions of figures are worth: how often intervals cover where one of them fails, and is answered.

Labels on ungraded candidates, divided raters, weights of a draw, groups of Rogan and Gladen's estimate, labels of both
sides of a comparison, calibrated values; and how often the word beside Holm's p is said for nothing.
"""

from __future__ import annotations

import numpy as np
from attrs import evolve

from rubric.trust.assumptions import beside_holm
from rubric.trust.calibration import _calibration_of
from rubric.trust.criterion_agreement import agreement_of
from rubric.trust.differences import _difference
from rubric.trust.estimates import estimate_of
from rubric.trust.inference import Floats, holm, paired_contrast
from rubric.trust.ratings import VERDICT, Scale
from tests.simulations.agreeing import STARS, Tally, lowest, rated
from tests.simulations.agreeing import shown as told
from tests.simulations.drawing import Chance, Table, chance_of, covers, grouped, ratings, verdicts

_FINDS = {".9/.8": (0.9, 0.8), ".8/.95": (0.8, 0.95)}


def _labelled(chance: Chance, people: Floats, n: int) -> Floats:
    """Return what *people* say of *n* candidates at random; NaN of all others."""
    drawn = chance.choice(len(people), n, replace=False)
    shown = np.full(len(people), np.nan)
    shown[drawn] = people[drawn]
    return shown


def clustered(runs: int) -> Table:
    """Yield the coverage of Rogan and Gladen's estimate where the judge errs by prompt, by group and without groups."""
    for rate in (0.5, 0.7, 0.95):
        for together in (0.1, 0.3, 0.6):
            cells = []
            for count, size, labelled in ((300, 5, 40), (100, 10, 20)):
                groups, chance = np.repeat(np.arange(count), size), chance_of(41, round(100 * rate))
                hits = np.zeros(2)
                for _ in range(runs):
                    people = (chance.random(len(groups)) < grouped(chance, rate, together, groups)).astype(float)
                    tpr, tnr = (grouped(chance, of, together, groups) for of in (0.9, 0.8))
                    luck = chance.random(len(groups))
                    judge = np.where(people == 1, luck < tpr, luck >= tnr).astype(float)
                    people[labelled * size :] = np.nan
                    for place, among in enumerate((groups, None)):
                        found = estimate_of(ratings(people, judge, among), "rogan-gladen")
                        hits[place] += covers(found.interval or (0, 1), rate)
                cells.append(hits / runs)
            yield (rate, together, *(f"{own:.1%} ({none:.1%})" for own, none in cells)), min(own for own, _ in cells)


def ungraded(runs: int) -> Table:
    """Yield the coverage of an estimate and of a difference where a judge fails on half of the bad candidates."""
    for labels in (40, 100, 300):
        chance, hits = chance_of(42), np.zeros(4)
        for _ in range(runs):
            people, judge = verdicts(chance, 0.7, (0.9, 0.8), 1_000)
            failed = (people == 0) & (chance.random(1_000) < 0.5)
            shown, said = _labelled(chance, people, labels), np.where(failed, np.nan, judge)
            found = estimate_of(ratings(shown, said))
            hits[0] += covers(found.interval, 0.7)
            blind = estimate_of(ratings(np.where(failed, np.nan, shown), said))
            low, high = blind.bounds or (0.0, 1.0)
            hits[1] += covers(blind.interval, 0.7)
            hits[2] += low <= people.mean() <= high
            hits[3] += found.ungraded_labels is not None
        yield (labels, *(f"{hit / runs:.1%}" for hit in hits[:3])), float(hits[0] / runs)


def divided(runs: int) -> Table:
    """Yield the coverage of the mean of the votes of two raters who pass .6 and .8 of the candidates."""
    for labels in (25, 60, 150):
        chance, hits = chance_of(43), np.zeros(2)
        for _ in range(runs):
            good = chance.random(1_000)
            people = np.stack([good < 0.6, good < 0.8], axis=1).astype(float)
            judge = ((good < 0.7) ^ (chance.random(1_000) < 0.1)).astype(float)
            people[labels:] = np.nan
            votes = evolve(ratings(people[:, 0], judge), people=people, raters=("a", "b"))
            agreed = np.where(people[:, 0] == people[:, 1], people[:, 0], np.nan)
            for place, one in enumerate((votes, ratings(agreed, judge))):
                hits[place] += covers(estimate_of(one).interval, 0.7)
        yield (labels, *(f"{hit / runs:.1%}" for hit in hits)), float(hits[0] / runs)


def weighted(runs: int) -> Table:
    """Yield the coverage of the agreement by labels that were drawn doubtful first, with weights and without."""
    for labels in (60, 100, 200):
        chance, hits = chance_of(44), np.zeros(2)
        for _ in range(runs):
            sure = chance.random(2_000) < 0.7  # the judge is right on .97 of what it is sure of, on .6 of the rest
            people = (chance.random(2_000) < 0.6).astype(float)
            right = chance.random(2_000) < np.where(sure, 0.97, 0.6)
            odds = np.where(sure, 1.0, 4.0)
            share = labels * odds / odds.sum()
            drawn = chance.random(2_000) < share
            shown, judge = np.where(drawn, people, np.nan), np.where(right, people, 1 - people)
            plain = ratings(shown, judge)
            for place, one in enumerate((evolve(plain, weights=1 / share), plain)):
                hits[place] += covers(agreement_of(one)["agreement"].interval, 0.7 * 0.97 + 0.3 * 0.6)
        yield (labels, *(f"{hit / runs:.1%}" for hit in hits)), float(hits[0] / runs)


def drawn(runs: int) -> Table:
    """Yield the coverage of an estimate by weight where fails were likelier to be drawn, and of the labels alone."""
    for rate in (0.5, 0.8, 0.95):
        for odds in (4, 10):
            cells, worst = [], 1.0
            for labels in (5, 20, 60, 200):
                chance, hits, counts = chance_of(48, odds), np.zeros(2), np.zeros(2)
                for _ in range(runs):
                    people, judge = verdicts(chance, rate, (0.9, 0.8), 1_500)
                    shown, share = _drawn(chance, people, np.where(judge == 0, odds, 1.0), labels)
                    if (~np.isnan(shown)).sum() > 1:
                        found = estimate_of(evolve(ratings(shown, judge), weights=1 / share))
                        ends = found.interval, found.labels_only.interval
                        hits += [covers(one, rate) for one in ends]
                        counts += [one is not None for one in ends]
                printed = counts > runs / 20  # of the labels alone there is none where they are worth little
                shares = np.divide(hits, counts, where=printed, out=np.full(2, np.nan))
                worst = min(worst, *shares[printed])
                cells.append(", ".join("–" if np.isnan(each) else f"{each:.1%}" for each in shares))
            yield (rate, odds, *cells), worst


def _drawn(chance: Chance, people: Floats, odds: Floats, labels: int) -> tuple[Floats, Floats]:
    """Return what *people* say of so many candidates, drawn by *odds*, and the share that was drawn of each kind."""
    share = np.minimum(1.0, labels * odds / odds.sum())
    return np.where(chance.random(len(people)) < share, people, np.nan), share


BY_WEIGHT = ("agreement", "kappa", "alpha", "AC1", "TPR", "TNR", "F1", "balanced accuracy")
BY_WEIGHT_OF_NUMBERS = ("pearson", "MAE", "RMSE", "bias", "kappa", "kappa, quadratic", "alpha, interval", "ICC1")


def by_weight(runs: int) -> Table:
    """Yield the coverage of agreement by weight, where what the judge fails, or any, is four times as likely drawn."""
    for what, rate in (("verdicts", 0.5), ("verdicts", 0.95), ("numbers", 0.0)):
        names, scale = (BY_WEIGHT, VERDICT) if rate else (BY_WEIGHT_OF_NUMBERS, STARS)

        def draw(chance: Chance, n: int, rate: float = rate) -> tuple[Floats, Floats]:
            return verdicts(chance, rate, (0.9, 0.8), n) if rate else rated(chance, n, 0.8)

        people, judge = draw(chance_of(53), 200_000)
        truth = {one.name: one for one in agreement_of(ratings(people, judge, scale=scale)).statistics}
        for kind in ("by verdict", "by chance"):
            for labels in (20, 60, 200):
                chance, tally = chance_of(54), Tally(truth, names)
                for _ in range(runs):
                    people, judge = draw(chance, 2_000)
                    often = judge < 3 * (rate == 0) + 0.5 if kind == "by verdict" else chance.random(2_000) < 0.3
                    shown, share = _drawn(chance, people, np.where(often, 4.0, 1.0), labels)
                    made = evolve(ratings(shown, judge, scale=scale), weights=1 / share)
                    tally.add({one.name: one for one in agreement_of(made).statistics})
                named = f"{what}, {rate:.0%} pass" if rate else what
                yield (named, kind, labels, ", ".join(map(told, tally.shares()))), lowest(tally.shares())


def corrected_differences(runs: int) -> Table:
    """Yield the coverage of a difference that labels of both sides correct, by a judge who favours the new system."""
    for name, gain in (("unchanged", 0.0), ("better by .10", 0.1)):
        for labels in (20, 60, 200):
            chance, hits = chance_of(45), np.zeros(2)
            for _ in range(runs):
                old, was = verdicts(chance, 0.7, (0.9, 0.8), 500)
                new = np.maximum(old, chance.random(500) < gain / 0.3).astype(float)
                now = np.where(new == 1, chance.random(500) < 0.95, chance.random(500) >= 0.6).astype(float)
                shown = _labelled(chance, new - old, labels)
                for place, people in enumerate((shown, np.full(500, np.nan))):
                    one = _difference("x", now, was, None, people, is_verdict=True)
                    hits[place] += covers(None if one is None else one.interval, gain)
            yield (name, labels, *(f"{hit / runs:.1%}" for hit in hits)), float(hits[0] / runs)


def beside(runs: int) -> Table:
    """Yield how often, among unchanged criteria, an interval leaves out 0, a change is shown, and the word is said."""
    for criteria in (2, 5, 10):
        chance, told = chance_of(46), np.zeros(3)
        for _ in range(runs):
            moved = chance.choice([-1.0, 0.0, 1.0], (criteria, 100), p=[0.1, 0.8, 0.1])
            found = [one for row in moved if (one := paired_contrast(row, None)) is not None]
            adjusted = holm([one.p for one in found])
            rows = [(str(n), one.interval, p) for n, (one, p) in enumerate(zip(found, adjusted, strict=True))]
            told += (
                any(not low <= 0 <= high for _, (low, high), _ in rows),
                min(adjusted) < 0.05,
                bool(beside_holm(rows, 0.05)),
            )
        yield (criteria, *(f"{each / runs:.1%}" for each in told)), 1 - float(told[1] / runs)


def calibrated(runs: int) -> Table:
    """Yield how often the 90 % interval of a calibrated score holds what people say of other candidates."""
    scale = Scale("number", 0.0, 1.0)
    for n in (20, 60, 200, 1_000):
        cells = []
        for how in ("isotonic", "platt", "linear"):
            chance, held = chance_of(47), 0.0
            for _ in range(runs):
                people = chance.beta(2, 1.5, n + 100)
                judge = np.clip(people**1.5 + chance.normal(0, 0.12, n + 100), 0, 1)
                made = _calibration_of(ratings(people[:n], judge[:n], scale=scale), judge[:n], how, 0.9)
                held += sum(covers(made(f).interval, y) for f, y in zip(judge[n:], people[n:], strict=True)) / 100
            cells.append(held / runs)
        yield (n, *(f"{cell:.1%}" for cell in cells)), 1.0
