"""How often the intervals of preferences cover: win rates, the rate at equal length, and strengths of systems."""

from __future__ import annotations

import numpy as np

from rubric.embed import Statistic
from rubric.trust.inference import Floats
from rubric.trust.pairwise.logistic import Logistic
from rubric.trust.pairwise.preference import Preference
from rubric.trust.pairwise.win_rates import _rate
from tests.simulations.agreeing import Tally, lowest, shown
from tests.simulations.drawing import RATES, SIZES, Table, chance_of, covers

_STRENGTHS = np.array([0.8, 0.2, -0.3, -0.7])


def won(runs: int) -> Table:
    """Yield the coverage of a win rate, by single pairs and by 20 prompts of ten, of which a fifth are ties."""
    blank = [Preference((), group=str(prompt)) for prompt in range(20)]
    for rate in RATES:
        cells = []
        for size in (*SIZES, None):
            chance, tally = chance_of(55), Tally({"won": Statistic("won", 0.8 * rate + 0.1)}, ["won"])
            for _ in range(runs):
                n, own = size or 200, np.full(size or 200, rate)
                if size is None:
                    own = np.repeat(chance.beta(rate * 7 / 3, (1 - rate) * 7 / 3, 20), 10)
                wins = np.where(chance.random(n) < 0.2, 0.5, chance.random(n) < own)
                pairs = [Preference(())] * n if size else [one for one in blank for _ in range(10)]
                found = _rate("won", zip(pairs, wins.tolist(), strict=True))
                tally.add({"won": Statistic("won", found.value, found.interval)})
            cells.append(tally.shares())
        yield (rate, *(shown(share) for (share,) in cells)), min(map(lowest, cells))


def strengths(runs: int) -> Table:
    """Yield the coverage of the strengths of four systems, by Bradley and Terry, which meet as often each."""
    met = [(a, b) for a in range(4) for b in range(a)]
    rows: Floats = np.array([[float(k == a) - float(k == b) for k in range(4)] for a, b in met])
    for size in SIZES[1:]:
        chance, held = chance_of(56), np.zeros(4)
        among = rows[np.arange(size) % len(met)]
        for _ in range(runs):
            wins = (chance.random(size) < 1 / (1 + np.exp(-among @ _STRENGTHS))).astype(float)
            fitted = Logistic(among.tolist(), wins.tolist(), [str(k) for k in range(size)], rows.tolist())
            ends = [fitted.estimate([float(k == one) - 0.25 for k in range(4)])[1] for one in range(4)]
            held += [covers(one, truth) for one, truth in zip(ends, _STRENGTHS, strict=True)]
        yield (size, *(f"{each / runs:.1%}" for each in held)), float(held.min() / runs)
