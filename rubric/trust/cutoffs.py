"""
Choose a threshold by labels: what each would do, and what the choice is worth on candidates that it was not chosen by.

Nothing is asked again: a candidate passes where its score reaches the threshold, and no gate fails it. The choice is
repeated for each part of the groups, without its labels (cross-fitting): the figures of a choice are those of verdicts
by thresholds that were chosen without them. Their intervals also hold that of the verdicts by the chosen threshold.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from rubric import DefinitionError, Grade, Grades, Rubric, Ungraded
from rubric.embed import (
    TOLERANCE,
    Check,
    Listed,
    NoTruth,
    Presented,
    Statistic,
    Table,
    Wording,
    fields,
    guided,
    percent,
)
from rubric.suites.report import Report
from rubric.trust.assumptions import of_labels, sentences
from rubric.trust.coefficients import share, widen, without_intervals
from rubric.trust.criterion_agreement import by_weight
from rubric.trust.inference import Codes, Floats, compact, folds_of, worth_of
from rubric.trust.labels import Labels, as_labels, number_in
from rubric.trust.rates import balanced_accuracy, rates_of
from rubric.trust.ratings import LEFT_OUT, as_judged, mark_of, match_labels, whole_of
from rubric.view.plots import chart, part

Aim = Literal["agreement", "balanced", "cost", "TPR", "TNR", "pass rate"]

_FEWEST, _FOLDS, _MOST_CUTS, _SHOWN = 20, 50, 200, 9


@frozen
class Point(NoTruth):
    """
    What one threshold does to the labelled candidates.

    Args:
        threshold: The score from which a candidate passes.
        agreement: The share of verdicts that are those of people.
        tpr: The share of what people pass that passes.
        tnr: The share of what people fail that fails.
        pass_rate: The share of all graded candidates that passes, labelled or not.
    """

    _truth = ".agreement"

    threshold: float
    agreement: float
    tpr: float
    tnr: float
    pass_rate: float


@frozen(repr=False)
class ChosenThreshold(Presented):
    """
    A threshold, and what it is worth: `rubric.passing_at(choice.threshold)`, or `choice.rubric`.

    Args:
        threshold: The threshold.
        aim: What it was chosen for.
        statistics: Agreement, TPR, TNR and balanced accuracy, cross-fitted, and the pass rate of all candidates.
        apparent: The agreement on the labels that chose it, which is too high on average.
        now: The threshold of the rubric, and its agreement.
        n: The labels.
        rubric: The rubric with the threshold, for `dump`. Its provenance names the labels, so that using them again is
            remarked on, and the threshold before, under which the results stay readable.
        notes: What is not as the figures assume.
    """

    _truth = ".threshold"

    threshold: float
    aim: str
    statistics: tuple[Statistic, ...]
    apparent: float
    now: tuple[float, float]
    n: int
    rubric: Rubric = field(eq=False)
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Statistic:
        """Return the statistic *name*, such as `TPR`."""
        return next(one for one in self.statistics if one.name == name)

    @property
    def sentence(self) -> str:
        """The threshold and its agreement."""
        found = self["agreement"]
        now = f"; at {self.now[0]:g}, as it is, in {percent(self.now[1])}"
        shown = percent(found.value or 0.0, found.interval)
        return f"Pass from {self.threshold:g}: the judge then agrees with people in {shown}, cross-fitted{now}."

    def remarks(self) -> list[str]:
        """What to know before it is used."""
        return [
            f"On the {self.n} labels that chose it, it agrees in {percent(self.apparent)}, which flatters.",
            "Measure it with other labels, or by these figures; the same labels flatter whatever is measured by them.",
            *sentences(self.notes),
        ]

    def tables(self) -> list[Table]:
        """The figures."""
        return [(f"Chosen for {self.aim}", ("figure", "value"), [(one.name, str(one)) for one in self.statistics])]


@frozen(repr=False)
class Thresholds(Presented, Listed[Point]):
    """
    What `thresholds` returns: a point for each threshold that makes a difference, from the lowest.

    Args:
        points: The points.
        n: The labelled candidates.
        now: The threshold of the rubric.
        notes: What is not as the figures assume.
    """

    _kind = "threshold"
    _items = "points"
    _id = attrgetter("threshold")
    _truth = "its points"

    points: tuple[Point, ...]
    n: int
    now: float
    _sample: _Sample = field(eq=False)
    notes: tuple[str, ...] = ()

    @guided
    def best(self, aim: Aim = "agreement", at: float | None = None) -> ChosenThreshold:
        """
        Return the threshold that serves *aim* best; of several alike the middle one.

        Args:
            aim: `agreement`; `balanced`, the mean of TPR and TNR; `cost`, the least cost of errors; `TPR` or `TNR`, the
                strictest threshold with that TPR, or the most lenient with that TNR; `pass rate`, the nearest to it.
            at: For `cost`: how many false fails a false pass is worth, such as 5. For the rates: the rate, in 0..1.

        Raises:
            DefinitionError: There is no such aim, or *at* is missing.
        """
        fields.check_name("aim", aim, get_args(Aim))
        if aim in ("agreement", "balanced"):
            if at is not None:
                raise DefinitionError("at", f"{aim!r} takes no number; leave it out")
        elif at is None:
            what = "what a false pass costs in false fails" if aim == "cost" else "a rate in 0..1"
            raise DefinitionError("aim", Wording(f"{aim!r} takes {what}, such as ", at=5 if aim == "cost" else 0.95))
        else:
            fields.check_number("at", at, 0, 1 if aim != "cost" else 1e9, above=aim == "cost")
        chosen = self._sample.choice(aim, at or 0.0)
        return evolve(chosen, notes=(*self.notes, *chosen.notes))

    def remarks(self) -> list[str]:
        """What to know before one is chosen."""
        return sentences(self.notes)

    @property
    def sentence(self) -> str:
        """The best threshold for agreement."""
        return self.best().sentence

    def tables(self) -> list[Table]:
        """Some of the points."""
        places = sorted({round(k * (len(self.points) - 1) / (_SHOWN - 1)) for k in range(_SHOWN)})
        rows = [
            (f"{p.threshold:g}", p.agreement, p.tpr, p.tnr, f"{p.pass_rate:.1%}")
            for p in (self.points[place] for place in places)
        ]
        return [("", ("pass from", "agreement", "TPR", "TNR", "pass rate of all"), rows)]

    def plot(self) -> Any:
        """Return the curves over the threshold, with the best one for agreement as a line, as an Altair chart."""
        names = {"agreement": "agreement", "TPR": "tpr", "TNR": "tnr", "pass rate": "pass_rate"}
        values = [(p.threshold, name, getattr(p, of)) for p in self.points for name, of in names.items()]
        rows = [{"threshold": at, "figure": name, "value": value} for at, name, value in values]
        best = self.best()
        return chart(part("curves", [(best.threshold, f"best: {best.threshold:.2f}")], rows=rows), title=best.sentence)


@guided
def thresholds(
    grades: Grades | Report | Sequence[Grade | Ungraded],
    labels: Labels | Mapping[Any, Any] | str | PathLike[str],
    *,
    passes_from: float | None = None,
    by_rubric: bool = False,
) -> Thresholds:
    """
    Return what each threshold would do to *grades*; no calls.

    Args:
        grades: Results under one rubric with a threshold.
        labels: Verdicts of people on the whole, 20 at least, with passes and fails among them.
        passes_from: Of labels that are scores, of the whole or of one criterion: the lowest with which a person passes
            a candidate, such as 4 of 5.
        by_rubric: Of labels of all criteria: whether what the rubric makes of those of a person, with its weights and
            its threshold, is held for right. What code checks is as in the grades.

    Raises:
        DefinitionError: The rubric has no threshold that could be chosen, or the labels are not verdicts on the whole.
    """
    if isinstance(grades, str | PathLike):
        raise fields.refuse("grades", grades, "results to score anew, such as Grades.read_jsonl(path, rubric)")
    results = [*(grades.grades if isinstance(grades, Report) else grades)]
    given, rubric = as_judged(results), _rubric(results)
    reach = _reaches(results, rubric)
    every = whole_of(results, as_labels(labels)) if by_rubric else as_labels(labels)
    verdicts = _as_verdicts(every, passes_from)
    found = next((one for one in match_labels(given, verdicts) if not one.criterion), None)
    if found is None or found.scale.kind != "verdict":
        cure, of = "label whether each should pass: {key: True}", {*every.criteria} - {""}
        if of and {c.id for c in rubric.judged if not isinstance(c.answer, Check)} <= of:
            what = f"what the rubric makes of these labels at its threshold, {rubric.threshold:g}"
            cure += f"; write thresholds(grades, labels, by_rubric=True) to hold for right {what}"
        raise DefinitionError("labels", f"expected verdicts on the whole, got labels of criteria, or scores; {cure}")
    target = found.target[~np.isnan(found.target) & ~np.isnan(reach)]
    n, passed = len(target), int(target.sum())
    if n < _FEWEST or passed in (0, n):
        message = f"expected {_FEWEST} graded candidates with a label at least, some passed and some failed by people"
        raise DefinitionError("labels", f"{message}; got {n}, {passed} of them passed")
    counted = by_weight(evolve(found, judge=reach))  # each as often as it counts
    rows = ~np.isnan(counted.target) & ~np.isnan(counted.judge)
    groups = compact(counted.groups[rows]) if counted.grouped else None
    was = rubric.provenance
    known = {**was, "labels": [*dict.fromkeys([*was.get("labels", ()), mark_of(given, every)])]}
    known["thresholds"] = [*dict.fromkeys([*was.get("thresholds", ()), rubric.threshold])]
    sides = counted.judge[rows], counted.target[rows], groups
    weight = worth_of(found.weights[~np.isnan(found.target) & ~np.isnan(reach)])
    sample = _Sample(*sides, reach[~np.isnan(reach)], evolve(rubric, provenance=known), n, *weight)
    points = tuple(Point(*map(float, figures)) for figures in zip(*sample.curve(), strict=True))
    notes = [*of_labels(given, every, [found], verdicts=False), *filter(None, [sample.why])]
    return Thresholds(points, n, rubric.threshold or 0.0, sample, tuple(notes))


def _as_verdicts(labels: Labels, passes_from: float | None) -> Labels:
    """Return *labels*, scores of the whole or of one criterion, as verdicts; refuse scores that nothing makes some."""
    whole = labels.criteria[0] if len(labels.criteria) == 1 else ""
    of_whole = [row for row in labels if row.criterion == whole]
    rows = [(row, None if isinstance(row.value, bool) else number_in(row.value)) for row in of_whole]
    if passes_from is None:
        known = [number for _, number in rows if number is not None]
        if {*known} <= {0, 1}:
            return labels
        likely = round(min(known) + 0.75 * (max(known) - min(known)), 2)
        said = "expected verdicts on the whole, got scores; say from which score a person passes a candidate, such as "
        raise DefinitionError("labels", Wording(said, passes_from=int(likely) if likely.is_integer() else likely))
    if (odd := next((row for row, number in rows if number is None), None)) is not None:
        raise DefinitionError(odd.place or "labels", f"expected a score, got {odd.value!r}{LEFT_OUT}")
    return evolve(labels, rows=[evolve(row, criterion="", value=(n or 0) >= passes_from) for row, n in rows])


def _reaches(results: Sequence[Grade | Ungraded], rubric: Rubric) -> Floats:
    """Return the highest threshold at which each result passes: of most its score. NaN if ungraded."""
    # A gate may ask for the threshold itself, and a jury may count verdicts; such results are scored anew, by halves.
    gated = any(rubric.gate_of(criterion) is not None for criterion in rubric.judged)
    found = [np.nan if isinstance(one, Ungraded) else one.score for one in results]
    scores = sorted({one.score for r in results for one in (r, *r.votes) if one.score is not None} | {0.0, 1.0})
    for place, result in enumerate(results):
        if isinstance(result, Grade) and (gated or result.votes or result.degenerate):
            passed = bisect_left(scores, True, key=lambda cut: not result.rescore(threshold=cut).passed)  # noqa: FBT003
            found[place] = scores[passed - 1] if passed else -np.inf
    return np.array(found, dtype=float)


def _rubric(results: Sequence[Grade | Ungraded]) -> Rubric:
    """Return the rubric of *results*; raise if no threshold can be chosen for it."""
    rubrics = {one.rubric for one in results}
    if len(rubrics) != 1:
        raise DefinitionError("grades", f"expected grades of one rubric, got those of {len(rubrics)}")
    (rubric,) = rubrics
    if rubric.threshold is None or rubric.strict or rubric.negate:
        why = "is negated" if rubric.negate else "is strict" if rubric.strict else "has no threshold"
        raise DefinitionError("grades", f"expected grades that pass from a threshold, and the rubric {why}")
    return rubric


@frozen(eq=False)
class _Sample:
    """The labelled candidates: what each reaches and what people say, *every* graded one, and `worth_of` the first."""

    reach: Floats
    people: Floats
    groups: Codes | None
    every: Floats
    rubric: Rubric
    n: int
    worth: float | None = None
    why: str = ""

    @property
    def cuts(self) -> Floats:
        """A threshold for each way to divide the candidates, in the middle between two scores."""
        scores = np.unique(np.round(self.every[np.isfinite(self.every)], 9))
        ends = [0.0, *scores, *([1.0] if scores.size and scores[-1] < 1 else [])]
        found = sorted({_between(low, high) for low, high in pairwise(ends) if high > low} | {0.0})
        if len(found) > _MOST_CUTS:
            found = [found[round(k * (len(found) - 1) / (_MOST_CUTS - 1))] for k in range(_MOST_CUTS)]
        return np.array(found)

    def passing(self, cuts: Floats, reach: Floats) -> Floats:
        """Return a row a cut and a column a candidate: 1 for a pass."""
        return (reach[None, :] >= cuts[:, None] - TOLERANCE).astype(float)

    def curve(self) -> Iterator[Floats]:
        """Yield thresholds, agreement, TPR, TNR and pass rate."""
        cuts = self.cuts
        passing = self.passing(cuts, self.reach)
        yield cuts
        yield (passing == self.people).mean(axis=1)
        for verdict in (1, 0):
            yield (passing[:, self.people == verdict] == verdict).mean(axis=1)
        yield self.passing(cuts, self.every).mean(axis=1)

    def _figures(self, said: Floats) -> list[Statistic]:
        no, yes = rates_of(said, self.people, ("no", "yes"), self.groups, self.worth)
        agreement = share("agreement", (said == self.people).astype(float), self.groups, self.worth)
        named = evolve(yes.recall, name="TPR"), evolve(no.recall, name="TNR")
        found = [agreement, *named, balanced_accuracy((no, yes), said, self.people, self.groups)]
        return [without_intervals(one, self.why) for one in found] if self.why else found

    def choice(self, aim: Aim, at: float) -> ChosenThreshold:
        cuts = self.cuts
        passing, rates = self.passing(cuts, self.reach), self.passing(cuts, self.every).mean(axis=1)
        right = passing == self.people

        def best(rows: NDArray[np.bool_]) -> int:
            yes, no = ((self.people[rows] == verdict).astype(float) for verdict in (1, 0))
            return _best(aim, at, (passing[:, rows] @ yes, yes.sum()), (passing[:, rows] @ no, no.sum()), rates)

        chosen = best(np.ones(len(self.people), dtype=bool))
        folds = folds_of(np.arange(len(self.people)) if self.groups is None else self.groups, _FOLDS)
        said = np.empty(len(self.people))
        for fold in np.unique(folds):
            said[folds == fold] = passing[best(folds != fold), folds == fold]
        honest, flattering = self._figures(said), self._figures(passing[chosen])
        # The honest figures alone do not know that the choice is by chance.
        both = (widen(one, other.interval) for one, other in zip(honest, flattering, strict=True))
        statistics = (*both, Statistic("pass rate", float(rates[chosen])))
        old = self.rubric.threshold or 0.0
        now = self.passing(np.array([old]), self.reach)[0]
        as_it_is = float((now == self.people).mean())
        cut, borderline = float(cuts[chosen]), self.rubric.borderline
        rubric = evolve(self.rubric, threshold=cut, borderline=None if borderline is None else min(borderline, cut))
        apparent, of = float(right[chosen].mean()), f"{aim} at {at:g}" if at else aim
        why = f"each labelled candidate has the verdict that it has at {old:g}; only the way of estimating differs"
        same = (why,) * (cut != old and bool((now == passing[chosen]).all()))
        return ChosenThreshold(cut, of, statistics, apparent, (old, as_it_is), self.n, rubric, same)


def _between(low: float, high: float) -> float:
    """Return a short decimal above *low* and up to *high*."""
    middle = (low + high) / 2
    return next((short for d in (2, 3, 4) if low + TOLERANCE < (short := round(middle, d)) <= high), middle)


def _best(aim: Aim, at: float, right: tuple[Floats, float], wrong: tuple[Floats, float], rates: Floats) -> int:
    """Return the place of the best cut, the middle one of those that are alike; *right* is what people pass."""
    (hits, yes), (alarms, no) = right, wrong
    tpr, tnr = hits / max(yes, TOLERANCE), 1 - alarms / max(no, TOLERANCE)
    match aim:
        case "agreement":
            worth = hits - alarms
        case "balanced":
            worth = tpr + tnr
        case "cost":
            worth = hits - at * alarms
        case "TPR":  # it falls with the threshold
            return int(max(np.flatnonzero(tpr >= at - TOLERANCE), default=0))
        case "TNR":
            return int(min(np.flatnonzero(tnr >= at - TOLERANCE), default=len(tnr) - 1))
        case "pass rate":
            worth = -np.abs(rates - at)
    alike = np.flatnonzero(worth >= worth.max() - TOLERANCE)
    return int(alike[len(alike) // 2])
