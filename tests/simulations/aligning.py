"""How honest `align` is: recorded judges and people, of whom it sees a few labels; the truth is all the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from rubric import Rubric
from rubric.quality import Alignment, align
from rubric.quality.alignment import _thresholds, _weights
from rubric.quality.labelled import Sample, sample_of
from tests.recorded import lines, result
from tests.simulations.drawing import chance_of

HANNA = ("RE", "CH", "EM", "SU", "EG", "CX")


@frozen
class Recorded:
    """What a judge and people said of all candidates; *contributions* has a column a criterion."""

    name: str
    rubric: Rubric
    grades: tuple[Any, ...]
    people: np.ndarray
    contributions: np.ndarray
    all: Sample

    @classmethod
    def of(cls, name: str, rubric: Rubric, said: Sequence[dict[str, Any]], people: Sequence[float]) -> Recorded:
        """Return the judge called *name*; people pass the better half, as nearly as can be."""
        grades = [result(rubric, one, key=str(n)) for n, one in enumerate(said)]
        cut = min(np.unique(people), key=lambda value: abs(np.mean(np.array(people) > value) - 0.5))
        passes = np.array(people) > cut
        sample = sample_of(rubric, grades, {str(n): bool(one) for n, one in enumerate(passes)})
        contributions = np.array([[grade.contributions[id_] for id_ in rubric.ids] for grade in grades])
        return cls(name, rubric, tuple(grades), passes, contributions, sample)

    def truth(self, rubric: Rubric, but: Sequence[int] = ()) -> float:
        """Return the agreement of *rubric* with people on all candidates, *but* those."""
        kept = np.ones(len(self.people), dtype=bool)
        kept[[*but]] = False
        weights = np.array([criterion.weight for criterion in rubric.criteria])
        passes = self.contributions @ weights / weights.sum() >= (rubric.threshold or 0.0) - 1e-9
        return float((passes == self.people)[kept].mean())

    def align(self, old: Rubric, n: int, seed: int, **options: Any) -> tuple[Alignment, list[int]]:
        """Return what `align` makes of *n* labels drawn at random, and which."""
        drawn = [int(k) for k in chance_of(seed).choice(len(self.people), n, replace=False)]
        labels = {str(k): bool(self.people[k]) for k in drawn}
        return align(old, [self.grades[k] for k in drawn], labels, **options), drawn

    def best(self) -> Rubric:
        """Return the rubric that no edit makes better on all candidates."""
        now = self.rubric
        while True:
            tried = [now, *(one for _, one in (*_thresholds(now, self.all), *_weights(now)))]
            found = max(tried, key=self.truth)
            if found is now or self.truth(found) <= self.truth(now):
                return now
            now = found

    def spoilt(self, by: float) -> Rubric:
        """Return the best rubric with the threshold that takes so much of its agreement."""
        best = self.best()
        aim = self.truth(best) - by
        return min((one for _, one in _thresholds(best, self.all)), key=lambda one: abs(self.truth(one) - aim))


def judges() -> list[Recorded]:
    """Return the recorded judges, with rubrics as one writes them without labels."""
    rows = lines("hanna", "ratings.jsonl")
    rubric = Rubric("hanna", threshold=0.5)
    for name in HANNA:
        rubric = rubric.rates(f"Is good at {name}", 1, 5, id=name)
    people = [float(np.mean([row["human_mean"][name] for name in HANNA])) for row in rows]
    found = []
    for judge in rows[0]["judges"]:  # a few of its means lie below 1, where it answered 0
        said = [{name: min(5.0, max(1.0, value)) for name, value in row["judges"][judge].items()} for row in rows]
        found.append(Recorded.of(f"HANNA, {judge.split()[0]}", rubric, said, people))
    rows = lines("unieval", "scores.jsonl")
    said = [{name: row["judge"][name] for name in ("naturalness", "informativeness")} for row in rows]
    rubric = Rubric("unieval", threshold=0.5).scores("Is natural", id="naturalness")
    rubric = rubric.scores("Is informative", id="informativeness")
    return [*found, Recorded.of("UniEval", rubric, said, [row["human"]["overall"] for row in rows])]


def honesty(judge: Recorded, runs: int, n: int = 100) -> tuple[float, float, float]:
    """Return the honest, the apparent and the true agreement of the threshold that *n* labels choose, on average."""
    found = []
    for run in range(runs):
        made, drawn = judge.align(judge.rubric, n, run, edits=["threshold"])
        (edit,) = made.edits
        chosen = {one.change: one.rubric for one in edit.proposals}.get(edit.change, judge.rubric)
        found.append((edit.honest, edit.apparent, judge.truth(chosen, drawn)))
    honest, apparent, true = np.mean(found, axis=0)
    return float(honest), float(apparent), float(true)


def accepted(judge: Recorded, old: Rubric, runs: int, n: int) -> tuple[float, float]:
    """Return how often an edit of *old* is accepted by *n* labels, and what it then truly gains on average."""
    gains = []
    for run in range(runs):
        made, drawn = judge.align(old, n, run)
        if made.accepted:
            gains.append(judge.truth(made.rubric, drawn) - judge.truth(old, drawn))
    return len(gains) / runs, float(np.mean(gains or [0.0]))


def table(runs: int) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield a row a judge, and whether it is as it should be."""
    for judge in judges():
        honest, apparent, true = honesty(judge, runs)
        idle, _ = accepted(judge, judge.best(), runs, 100)
        often, gain = accepted(judge, judge.spoilt(0.1), runs, 200)
        holds = abs(honest - true) <= 0.03 and idle <= 0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5
        holds = holds and often >= 0.6 and gain >= 0.06
        figures = (f"{true:.3f}", f"{honest - true:+.3f}", f"{apparent - true:+.3f}")
        yield (judge.name, *figures, f"{idle:.1%}", f"{often:.0%}", f"{gain:.3f}"), holds
