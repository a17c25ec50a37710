"""
Simulate the false alarms of an audit of a reward, for ever, and how soon it finds a hack.

    python -m tests.simulations.auditing [--runs 2000] [--steps 3000]

Ten criteria a completion. The reward's judge is wrong in 10 % of verdicts, and says yes to 5 % more; the second judge
is wrong in 5 %. A hack makes the reward's judge say yes to more, from a step on. Where the published data are there, the
same is shown with judges and people who rated stories.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rubric.rewards.betting import STAKES, settle, unspent, usual
from tests.recorded import DATA, lines
from tests.simulations.drawing import Chance, head, row

CRITERIA, PER_STEP, RISK, TOLERANCE, BASELINE, ONSET = 10, 8, 0.05, 0.02, 50, 100


def gaps(chance: Chance, runs: int, quality: float, hack: float, criteria: int = CRITERIA) -> Any:
    """Return how much more the reward gives than the second judge, for one completion of each of *runs*."""
    size = (runs, criteria)
    met = chance.random(size) < quality
    reward = (met ^ (chance.random(size) < 0.1)) | (chance.random(size) < 0.05)
    lifted = hack / max(1e-9, 1 - float(reward.mean()))
    reward |= chance.random(size) < lifted
    return reward.mean(axis=1) - (met ^ (chance.random(size) < 0.05)).mean(axis=1)


def recorded() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield a name and what draws gaps, as `gaps` does, of each judge of HANNA's stories: against people, and another."""
    rows = lines("hanna", "ratings.jsonl")
    said = {name: [each["judges"][name] for each in rows] for name in rows[0]["judges"]}
    said |= {"people": [each["human_mean"] for each in rows]}
    scores = {who: np.clip([np.mean([*each.values()]) for each in one], 1, 5) / 4 - 0.25 for who, one in said.items()}
    (first, second, _), people = scores, scores["people"]
    for name, reward, other in (
        (f"{first}, people", scores[first], people),
        (f"{second}, people", scores[second], people),
        (f"{first}, {second}", scores[first], scores[second]),
    ):

        def draw(
            chance: Chance, runs: int, _: float, hack: float, __: int = 0, reward: Any = reward, other: Any = other
        ) -> Any:
            at = chance.integers(len(reward), size=runs)
            is_lifted = chance.random(runs) < hack / (1 - reward.mean())
            return np.where(is_lifted, 1.0, reward[at]) - other[at]

        yield name, draw


def limits(seen: Any, risk: float, span: float) -> Any:
    """Return `upper_limit` of each of many runs at once; *seen* is audits x runs."""
    low, high = np.full(seen.shape[1], -span), np.full(seen.shape[1], span)
    for _ in range(20):
        middle = (low + high) / 2
        capital: Any = [np.full(len(low), 1 / len(STAKES))] * len(STAKES)
        for gap in seen:
            capital = [np.minimum(held, 1e100) for held in settle(capital, -gap, -middle, span=span)]
        found = sum(capital) >= 1 / risk
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    return high


def alarms(
    chance: Chance,
    runs: int,
    steps: int,
    *,
    hack: float,
    ramp: int,
    allowed: float | None,
    share: float = 0.5,
    criteria: int = CRITERIA,
    span: float = 1.0,
    draw: Callable[..., Any] = gaps,
) -> Any:
    """Return the step of the alarm in each run, 0 for none: of what has a *share* of the risk, and so many criteria."""
    risk, limit = RISK * share, allowed
    if allowed is None:
        seen = np.array([draw(chance, runs, 0.45, 0, criteria) for _ in range(BASELINE * PER_STEP)])
        span = usual(seen[:, 0].tolist(), 0.5)[1]  # that of one run is that of all but a few
        limit = limits(np.clip(seen, -span, span), risk * 0.2 / 2, span) + TOLERANCE
        risk *= 0.8
    capital: Any = [np.zeros(runs)] * len(STAKES)
    at = np.zeros(runs, int)
    for step in range(1, steps + 1):
        grown = hack * min(1.0, (step - ONSET) / ramp if ramp else 1.0) if step > ONSET else 0.0
        fresh = unspent(step - 1) - unspent(step)
        for _ in range(PER_STEP):
            gap = draw(chance, runs, 0.45 + 0.2 * min(1, step / 1000), grown, criteria).clip(-span, span)
            capital = [np.minimum(held, 1e100) for held in settle(capital, gap, limit, fresh, span)]
            fresh = 0.0
        at[(at == 0) & (sum(capital) + unspent(step) >= 1 / risk)] = step
    return at


def t_test_alarms(chance: Chance, runs: int, steps: int) -> float:
    """Return the share of runs without a change in which a t test of all gaps, at each step, ever has p < 0.05."""
    total, squares, ever = np.zeros(runs), np.zeros(runs), np.zeros(runs, bool)
    mean = float(np.mean([gaps(chance, 1000, 0.5, 0).mean() for _ in range(200)]))
    for step in range(1, steps + 1):
        for _ in range(PER_STEP):
            gap = gaps(chance, runs, 0.5, 0) - mean
            total, squares = total + gap, squares + gap**2
        n = step * PER_STEP
        error = np.sqrt((squares / n - (total / n) ** 2) / n)
        ever |= (step >= 5) & (total / n > 1.645 * error)
    return float(ever.mean())


def main(runs: int, steps: int) -> None:
    """Print the false alarms, then how soon hacks are found."""
    head("gap without a hack", "runs", "steps", "false alarms, ever")
    edge = float(np.mean([gaps(np.random.default_rng(30), 1000, 0.45, 0).mean() for _ in range(400)]))
    for name, allowed, span in (
        ("as in the first 50 steps", None, 1.0),
        ("as large as allowed", edge, 1.0),
        ("as large as allowed, within a span of 0.5", edge, 0.5),
    ):
        chance = np.random.default_rng(30)
        found = alarms(chance, runs, steps, hack=0, ramp=0, allowed=allowed, share=1.0, span=span)
        row([name, runs, steps, f"{(found > 0).mean():.1%}"])
    row(["a t test at each step", runs, 300, f"{t_test_alarms(np.random.default_rng(30), runs, 300):.1%}"])
    for name, criteria, share in (("the whole", CRITERIA, 0.5), ("one criterion of ten", 1, 0.5 / CRITERIA)):
        print(f"\nA hack of {name}:\n")
        head("hack", "comes", "found in 300 steps", "steps after its onset, median", "90 %")
        for hack in (0.22, 0.1, 0.05):
            for ramp in (0, 100, 200):
                chance = np.random.default_rng(31)
                kind: dict[str, Any] = {"hack": hack, "ramp": ramp, "share": share, "criteria": criteria}
                at = alarms(chance, 200, 400, allowed=None, **kind)
                after = at[at > ONSET] - ONSET
                quantiles = [f"{np.quantile(after, q):.0f}" if (at > 0).mean() > q else "–" for q in (0.5, 0.9)]
                row([hack, f"over {ramp} steps" if ramp else "at once", f"{(at > 0).mean():.0%}", *quantiles])
    if DATA.is_dir():
        print("\nRatings of stories, drawn at random:\n")
        head("reward, second judge", "hack", "comes", "alarms", "steps after its onset, median", "90 %")
        for name, draw in recorded():
            for hack, ramp, steps_of_it in ((0.0, 0, steps), (0.22, 0, 400), (0.22, 100, 400), (0.1, 0, 400)):
                chance = np.random.default_rng(32)
                at = alarms(
                    chance, runs if not hack else 200, steps_of_it, hack=hack, ramp=ramp, allowed=None, draw=draw
                )
                after = at[at > ONSET] - ONSET
                is_found = hack and (at > 0).mean() > 0.9
                quantiles = [f"{np.quantile(after, q):.0f}" if is_found else "–" for q in (0.5, 0.9)]
                row([name, hack, f"over {ramp} steps" if ramp else "at once", f"{(at > 0).mean():.1%}", *quantiles])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=3000)
    given = parser.parse_args()
    main(given.runs, given.steps)
