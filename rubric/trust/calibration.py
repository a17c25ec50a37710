"""
Calibration: from what a judge says to what people would say, learned from labels.

The map is fitted to all labels, and its error is measured out of fold: each fifth of the groups is predicted from the
other four. The width of the intervals comes from the same errors (conformal: V. Vovk et al., 2005; J. Lei et al., JASA
113, 2018), of which each group has one share (Y. Lee, R. F. Barber and R. Willett, arXiv 2306.06342). A map that is no
better than always saying the mean shows that the judge adds nothing.
"""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal

import numpy as np
from attrs import asdict, evolve, field, frozen
from scipy import optimize

from rubric import DefinitionError, Grade, Grades, Ungraded
from rubric.embed import TOLERANCE, FrozenMap, Listed, NoTruth, Presented, Table, fields, guided, percent
from rubric.trust.assumptions import of_labels, sentences
from rubric.trust.drift import Baseline, read
from rubric.trust.inference import Codes, Floats, compact, folds_of
from rubric.trust.labels import Labels, as_labels
from rubric.trust.ratings import Ratings, Scale, as_judged, mark_of, match_labels, scale_of, value_of

How = Literal["isotonic", "platt", "linear"]

FOLDS, FEWEST, COVERED = 5, 20, 0.9


@frozen
class Calibrated(NoTruth):
    """
    What people would say, learned from labels; see `calibrate`.

    Args:
        value: On the scale of the criterion; in 0..1 for the whole.
        interval: Holds the share of what people say that `calibrate` was asked for.
        labels: The labels that it was learned from, as `mark_of` returns them.
    """

    _truth = ".value"

    value: float
    interval: tuple[float, float]
    labels: str = field(default="", repr=False)


@frozen
class CriterionCalibration(NoTruth):
    """
    The map of one criterion.

    Args:
        id: The criterion's; empty for the score of the whole.
        how: `isotonic`, `platt` or `linear`.
        n: The labels that it rests on.
        points: The map: what the judge says, and what people would say. Between two points it is a straight line.
        error: The root mean squared error out of fold.
        uncalibrated: That of the judge as it is; None where it is on another scale than people.
        constant: That of always saying the mean, out of fold.
        margin: Half the width of the interval that holds a share *covered* of what people say.
        low: The lowest value of the scale.
        high: The highest value.
    """

    _truth = ".error"

    id: str
    how: str
    n: int
    points: tuple[tuple[float, float], ...]
    error: float
    uncalibrated: float | None
    constant: float
    margin: float
    low: float
    high: float
    covered: float = COVERED

    @property
    def adds_nothing(self) -> bool:
        """True if always saying the mean is as good: the judge adds nothing."""
        return self.error >= self.constant

    def __call__(self, said: float) -> Calibrated:
        """Return what people would say where the judge says *said*, on the scale of the criterion."""
        xs, ys = zip(*self.points, strict=True)
        value = float(np.interp(said, xs, ys))
        return Calibrated(value, (max(self.low, value - self.margin), min(self.high, value + self.margin)))


@frozen(repr=False)
class Calibration(Presented, Listed[CriterionCalibration]):
    """
    What `calibrate` returns; called with grades, it returns them with calibrated values beside their scores.

    Args:
        criteria: The map of each criterion that is labelled.
        rubric: The rubric's digest: the grades of another rubric are refused.
        judge: The judge that it was learned from.
        baseline: What it rests on, for `agreement(...).against`.
        judges: The digests of the judges that it was learned from; empty if they are not known.
        labels: The labels that it was learned from, as `mark_of` returns them; using them again is remarked on.
        notes: What is not as its figures assume.
    """

    _truth = "its figures"

    criteria: tuple[CriterionCalibration, ...]
    rubric: str
    judge: str
    baseline: Baseline = field(eq=False)
    judges: tuple[str, ...] = ()
    labels: str = ""
    notes: tuple[str, ...] = field(default=(), eq=False)

    @property
    def sentence(self) -> str:
        """A description of the main figure."""
        lead = self.criteria[0]
        name = lead.id or "the score"
        before = "" if lead.uncalibrated is None else f", uncalibrated by {lead.uncalibrated:.3f}"
        mean = f"always saying the mean by {lead.constant:.3f}{': the judge adds nothing' if lead.adds_nothing else ''}"
        return f"Calibrated, the judge is off by {lead.error:.3f} on {name} (RMSE, out of fold{before}), {mean}."

    def remarks(self) -> list[str]:
        """Which criteria the judge adds nothing to, and what is not as assumed."""
        useless = [c.id or "the score" for c in self.criteria if c.adds_nothing]
        lines = [f"{', '.join(useless)}: the judge adds nothing to the mean of the labels."] if useless else []
        return [*lines, *sentences(self.notes)]

    def tables(self) -> list[Table]:
        """Each criterion in a row."""
        within = f"{percent(self.criteria[0].covered)} within"
        head = ("criterion", "labels", "calibrated", "uncalibrated", "constant", within)
        rows = [
            (c.id or "score", c.n, c.error, "–" if c.uncalibrated is None else c.uncalibrated, c.constant, c.margin)
            for c in self.criteria
        ]
        return [("Root mean squared error, out of fold", head, rows)]

    def __call__(self, grades: Grades, *, any_judge: bool = False) -> Grades:
        """
        Return *grades* with `calibrated` beside each score; the scores stay as they are.

        Args:
            any_judge: Whether grades of other judges, or of other settings, are taken; the map is not theirs.

        Raises:
            DefinitionError: They are of another rubric, or of another judge.
        """
        for (digest, name), count in as_judged(grades).judges.items() if self.judges and not any_judge else ():
            if digest not in self.judges:
                what = f"{name} with other settings" if name == self.judge else f"{name}, not by {self.judge}"
                cure = "calibrate anew, or calibration(grades, any_judge=True)"
                raise DefinitionError("grades", f"{count:,} are by {what}, whose errors this calibration knows; {cure}")
        return Grades(self._calibrate(result) for result in grades)

    def _calibrate(self, result: Grade | Ungraded) -> Grade | Ungraded:
        if result.rubric.digest != self.rubric:
            message = f"of the rubric {result.rubric.digest}, and this calibration is for {self.rubric}; calibrate anew"
            raise DefinitionError("grades", message)
        scales = {criterion.id: scale_of(criterion) for criterion in result.rubric.judged}
        scores: dict[str, Calibrated] = {}
        for curve in self.criteria:
            score = result.outcome.score if not curve.id else value_of(result[curve.id], scales[curve.id])
            if score is not None and not np.isnan(score):
                scores[curve.id] = evolve(curve(score), labels=self.labels)
        return evolve(result, calibrated=FrozenMap(scores))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        criteria = [{**asdict(c), "points": [list(p) for p in c.points]} for c in self.criteria]
        named = {"rubric": self.rubric, "judge": self.judge, "judges": [*self.judges], "labels": self.labels}
        return {"kind": "calibration", "sentence": self.sentence, **named, "criteria": criteria}

    def dump(self, path: str | PathLike[str]) -> None:
        """Write it to *path*, as YAML or as JSON by its ending."""
        self.baseline.dump(path, self.to_dict())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Calibration:
        """
        Return the calibration that `dump` wrote.

        Raises:
            DefinitionError: The file holds something else.
        """
        data = read(path, "calibration")
        try:
            points = [tuple((float(x), float(y)) for x, y in c["points"]) for c in data["criteria"]]
            of_each = zip(data["criteria"], points, strict=True)
            criteria = tuple(CriterionCalibration(**{**c, "points": found}) for c, found in of_each)
            known = tuple(data.get("judges", ())), data.get("labels", "")
            return cls(criteria, data["rubric"], data["judge"], Baseline.of(data), *known)
        except (KeyError, TypeError, ValueError) as problem:
            raise DefinitionError(str(path), f"holds no whole calibration: {problem!r}") from None


@guided
def calibrate(grades: Grades, labels: Labels | Any, how: How = "isotonic", *, covered: float = COVERED) -> Calibration:
    """
    Learn from *labels* what people would say where the judge says something.

    Args:
        grades: What the judge said, all under one rubric.
        labels: What people said of some of the candidates: numbers of a criterion, or of the whole; verdicts count as
            0 and 1.
        how: `isotonic` (rising steps), `platt` (a logistic curve, for verdicts and scores in 0..1) or `linear`.
        covered: The share of what people say that the interval of one score holds, in 0..1.

    Raises:
        DefinitionError: The grades are of several rubrics, fewer than twenty candidates are labelled, or they are of
            too few groups for such an interval.
    """
    fields.check_name("how", how, ("isotonic", "platt", "linear"))
    fields.check_number("covered", covered, 0.01, 0.999)
    given = as_judged(grades)
    if not given.digest:
        raise DefinitionError("grades", "are of several rubrics; calibrate those of one")
    every = as_labels(labels)
    ratings = match_labels(given, every)
    for one in ratings:
        if one.scale.kind == "option":
            raise DefinitionError("labels", f"{one.criterion!r} has options, and options have no mean")
    found = tuple(_calibration_of(one, given.scores, how, covered) for one in ratings)
    baseline = Baseline.of_ratings(given.name, given.digest, ratings)
    notes = tuple(of_labels(given, every, ratings, by_chance=False))
    judges = tuple(sorted(digest for digest, _ in given.judges if digest))
    return Calibration(found, given.digest, given.name, baseline, judges, mark_of(given, every), notes)


def _calibration_of(ratings: Ratings, scores: Floats, how: How, covered: float) -> CriterionCalibration:
    target = ratings.target
    said = scores if not ratings.criterion else ratings.judge  # of the whole, the score says more than the verdict
    both = ~np.isnan(target) & ~np.isnan(said)
    x, y = said[both], target[both]
    if len(x) < FEWEST:
        what = ratings.criterion or "the whole"
        raise DefinitionError("labels", f"{len(x)} graded candidates are labelled for {what}; label {FEWEST} at least")
    scale = ratings.scale if ratings.criterion else Scale("number", 0.0, 1.0)
    low, high = (0.0, 1.0) if scale.kind == "verdict" else scale.ends(y)
    groups = compact(ratings.groups[both])
    folds = folds_of(groups, FOLDS)
    predicted, means = np.empty(len(y)), np.empty(len(y))
    for fold in range(FOLDS):
        out = folds == fold
        if out.any():
            predicted[out] = np.interp(x[out], *np.array(_fit(x[~out], y[~out], how, low, high)).T)
            means[out] = y[~out].mean()
    margin = _margin(np.abs(y - predicted), groups, covered)
    points = tuple((float(a), float(b)) for a, b in _fit(x, y, how, low, high))
    rms, own, constant = (float(np.sqrt(((y - said) ** 2).mean())) for said in (predicted, x, means))
    return CriterionCalibration(ratings.criterion, how, len(y), points, rms, own, constant, margin, low, high, covered)


def _margin(off: Floats, groups: Codes, covered: float) -> float:
    """Return what a share *covered* of errors does not exceed, given those *off*: each group, and the next, is one."""
    sizes = np.bincount(groups)
    order = np.argsort(off)
    shares = np.cumsum(1 / sizes[groups[order]]) / (len(sizes) + 1)
    if shares[-1] < covered - TOLERANCE:
        needed, most = np.ceil(covered / (1 - covered) - TOLERANCE), np.floor(100 * shares[-1]) / 100
        why = f"an interval for {percent(covered)} needs {needed:,.0f} labelled groups or more, got {len(sizes)}"
        raise DefinitionError("covered", f"{why}; label more, or give covered={most:g}")
    return float(off[order][np.searchsorted(shares, covered - TOLERANCE)])


def _fit(x: Floats, y: Floats, how: How, low: float, high: float) -> list[tuple[float, float]]:
    """Return the points of the map, with rising x."""
    if how == "isotonic":
        xs, codes, counts = np.unique(x, return_inverse=True, return_counts=True)
        means = np.bincount(codes, weights=y) / counts
        ys = optimize.isotonic_regression(means, weights=counts).x
        return list(zip(xs.tolist(), np.asarray(ys).tolist(), strict=True))
    if np.ptp(x) == 0:
        return [(float(x[0]), float(y.mean()))]
    grid = np.linspace(x.min(), x.max(), 2 if how == "linear" else 65)
    if how == "linear":
        slope, start = np.polyfit(x, y, 1)
        return list(zip(grid.tolist(), np.clip(start + slope * grid, low, high).tolist(), strict=True))
    if y.min() < 0 or y.max() > 1:
        raise DefinitionError("how", "platt is for verdicts and scores in 0..1; use isotonic or linear")
    n_yes, n_no = y.sum(), len(y) - y.sum()
    goal = y * (n_yes + 1) / (n_yes + 2) + (1 - y) / (n_no + 2)  # J. Platt, 1999
    centre, spread = x.mean(), x.std()

    def loss(p: Floats) -> float:
        z = p[0] + p[1] * (x - centre) / spread
        return float((np.logaddexp(0, z) - goal * z).sum())

    a, b = optimize.minimize(loss, np.zeros(2), method="BFGS").x
    curve = 1 / (1 + np.exp(-(a + b * (grid - centre) / spread)))
    return list(zip(grid.tolist(), curve.tolist(), strict=True))
