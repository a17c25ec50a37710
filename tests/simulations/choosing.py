"""What a chosen threshold is worth, and how often errors by length are told for nothing."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from rubric import Rubric
from rubric.embed import paired_mean
from rubric.trust.cutoffs import _Sample
from rubric.trust.inference import Floats, paired_contrast
from rubric.trust.slices import _slice
from tests.simulations.drawing import SIZES, Chance, Table, chance_of, covers, ratings, verdicts

TPR, TNR = 0.9, 0.8
FIGURES = ("agreement", "TPR", "TNR", "balanced accuracy")


def chosen(runs: int) -> Table:
    """Yield how often the interval of a chosen threshold's agreement holds, and how far the apparent figure flatters."""
    chance = chance_of(27)
    rubric = Rubric("r").scores("Good", id="good")
    quality, scores = _scored(chance, 50_000)
    for n in SIZES[1:]:
        covered, honest, flattering, reached = [], [], [], []
        for _ in range(runs):
            real, given = _scored(chance, n)
            people = (real >= 0.45).astype(float)
            if people.sum() in (0, n):
                continue
            best = _Sample(given, people, None, given, rubric, n).choice("agreement", 0.0)
            passed, good = scores >= best.threshold, quality >= 0.45
            true, rates = float(np.mean(passed == good)), (passed[good].mean(), 1 - passed[~good].mean())
            truths = zip(FIGURES, (true, *rates, sum(rates) / 2), strict=True)
            covered.append([covers(best[name].interval or (0.0, 1.0), one) for name, one in truths])
            honest.append((best["agreement"].value or 0.0) - true)
            flattering.append(best.apparent - true)
            reached.append(true)
        told = (f"{np.mean(honest):+.3f}", f"{np.mean(flattering):+.3f}", f"{np.mean(reached):.3f}")
        shares = np.mean(covered, axis=0)
        yield (n, *(f"{share:.1%}" for share in shares), *told), float(shares.min())


def _scored(chance: Chance, n: int) -> tuple[Floats, Floats]:
    quality = chance.random(n)
    return quality, np.clip(np.round(quality + chance.normal(0, 0.12, n), 2), 0, 1)


def paired(runs: int) -> Table:
    """Yield the coverage of a difference between two runs, and between the errors on long and on short answers."""
    for n in (20, 60, 200, 1_000):
        cells = []
        for fails, gains in ((0.02, 0.02), (0.02, 0.12), (0.1, 0.2)):
            chance, held = chance_of(29, n), np.zeros(2)
            for _ in range(runs):
                moved = chance.choice([-1.0, 0.0, 1.0], n, p=[fails, 1 - fails - gains, gains])
                found = paired_contrast(moved, None)
                by_group = paired_contrast(
                    chance.binomial(5, 0.5, 20)[np.arange(n) % 20] / 5 - 0.5 + moved, np.arange(n) % 20
                )
                held += [covers(None if one is None else one.interval, gains - fails) for one in (found, by_group)]
            cells.append(held / runs)
        chance, held_slice, given = chance_of(30, n), 0, 0
        for _ in range(runs):
            people, judge = verdicts(chance, 0.7, (TPR, TNR), n)
            is_long = np.arange(n) % 2 == 1
            judge = np.where(is_long & (people == 1) & (chance.random(n) < 0.2), 0.0, judge)
            one = _slice("long", ratings(people, judge), np.ones(n, dtype=bool), is_long, "length").difference
            held_slice, given = held_slice + covers(one.interval, -0.7 * TPR * 0.2), given + (one.interval is not None)
        told = (f"{own:.1%}, {grouped:.1%}" for own, grouped in cells)
        yield (n, *told, f"{held_slice / given:.1%}"), min(held_slice / given, *(min(cell) for cell in cells))


def slices(runs: int) -> Table:
    """Yield how often a difference by length is told, where there is none and where the judge fails more long ones."""
    chance = chance_of(28)
    for n in (40, 100, 300):
        cells = []
        for harder in (0.0, 0.2):
            told = 0
            for _ in range(runs):
                people, judge = verdicts(chance, 0.7, (TPR, TNR), n)
                is_long = np.arange(n) % 2 == 1
                judge = np.where(is_long & (people == 1) & (chance.random(n) < harder), 0.0, judge)
                found = _slice("long", evolve(ratings(people, judge)), np.ones(n, dtype=bool), is_long, "length")
                told += found.p <= 0.05
            cells.append(told / runs)
        yield (n, *(f"{cell:.1%}" for cell in cells)), 1 - cells[0]


def detected(runs: int) -> Table:
    """Yield how often a comparison finds a difference as large as it calls detectable, which should be 80 %."""
    for n in SIZES[1:]:
        cells = []
        for flips in (0.02, 0.1):
            chance, sizes, found = chance_of(57, n), list[float](), 0
            for place in range(2 * runs):
                gain = float(np.mean(sizes)) if place >= runs else 0.0
                moved = chance.choice([-1.0, 0.0, 1.0], n, p=[flips, 1 - 2 * flips - gain, flips + gain])
                one = paired_mean(moved.tolist())
                assert one is not None
                if place < runs:
                    sizes.append(min(one.detectable(), 1 - 2 * flips))
                found += place >= runs and one.interval()[0] > 0
            cells.append((float(np.mean(sizes)), found / runs))
        yield (n, *(f"{size:.3f}: {share:.1%}" for size, share in cells)), 1.0
