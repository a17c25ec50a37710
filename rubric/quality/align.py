"""
Fit a rubric to labels of people, and say what that is worth on candidates that it was not fitted to.

A threshold that is chosen from labels looks better on these labels even where nothing is to be gained. So the whole
search is repeated for each tenth of the groups, without their labels (cross-fitting), and an edit is accepted only if
the verdicts on the tenths agree with people more often than those of the old rubric, by McNemar's exact test
(Q. McNemar, 1947); a group of candidates counts as one. No model is called: grades are scored anew.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np
from attrs import asdict, evolve, field, frozen
from numpy.typing import NDArray
from scipy import stats

from rubric.errors import DefinitionError
from rubric.internals.containers import NoTruth
from rubric.internals.fields import check_name, check_number, refuse
from rubric.rendering.presenting import Presented, Table
from rubric.results.collection import Grades
from rubric.results.result import Grade, Ungraded
from rubric.trust.inference import POWER, paired
from rubric.trust.labels import Labels, as_labels
from rubric.trust.ratings import Codes, Floats, judged, matched
from rubric.values.rubrics import Rubric

Kind = Literal["threshold", "weights"]
Verdicts = NDArray[np.bool_]

_FOLDS = 10
_MOST_THRESHOLDS = 50
_FACTORS = (0.0, 0.5, 2.0)
"""What a weight is multiplied by."""


@frozen
class Proposal(NoTruth):
    """
    One change of the rubric: what it says, and how often the grades then agree with the labels it was chosen by.

    Args:
        change: The change, such as `threshold 0.7 -> 0.62`.
        apparent: The share of labels that the changed rubric agrees with; it was chosen by these labels.
    """

    _truth = ".apparent"

    change: str
    apparent: float


@frozen
class Edit(NoTruth):
    """
    The best change of one kind.

    Args:
        kind: `threshold` or `weights`.
        change: The change; empty if none looks better than the rubric as it is.
        accepted: Whether it is shown to agree with people more often.
        before: The agreement of the rubric before it.
        apparent: Its agreement on the labels that it was chosen by, which is too high on average.
        honest: Its agreement on candidates that it was not chosen by.
        p: The probability of such a gain, or a larger one, if there is none.
        missing: How many labels more would show the gain in four of five such samples; 0 if it is shown; None if there
            is no gain to show.
        proposals: All changes that were tried.
        calls: The calls that it took.
    """

    _truth = ".accepted"

    kind: Kind
    change: str
    accepted: bool
    before: float
    apparent: float
    honest: float
    p: float
    missing: int | None
    proposals: tuple[Proposal, ...]
    calls: int = 0


@frozen(repr=False)
class Alignment(Presented):
    """
    What `align` returns.

    Args:
        rubric: The rubric with the accepted edits; the old one if there are none. `dump(rubric, path)` changes the file
            where it differs, and keeps its comments.
        edits: One for each kind, in the order in which they were tried.
        n: The labels that were used.
        baseline: The agreement of the old rubric.
        constant: The agreement of a judge that always says the same.
        risk: How often a rubric that cannot gain is changed.
    """

    _truth = ".accepted"

    rubric: Rubric = field(repr=False)
    edits: tuple[Edit, ...]
    n: int
    baseline: float
    constant: float
    risk: float

    @property
    def accepted(self) -> tuple[Edit, ...]:
        """The accepted edits."""
        return tuple(edit for edit in self.edits if edit.accepted)

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        shown = f"{self.n:,} labels"
        if not self.accepted:
            return f"No edit is shown to be better than the rubric, which agrees with {self.baseline:.0%} of {shown}."
        changes = "; ".join(edit.change for edit in self.accepted)
        last = self.accepted[-1]
        return f"{changes}: agreement rises from {self.baseline:.0%} to {last.honest:.0%} of {shown}, cross-fitted."

    def remarks(self) -> list[str]:
        """What to know before the rubric is changed."""
        some = [edit for edit in self.edits if not edit.accepted and edit.missing]
        return [
            f"A judge that always says the same agrees with {self.constant:.0%}.",
            *(f"{e.change or e.kind}: some {e.missing:,} labels more may show whether it is better." for e in some),
        ]

    def tables(self) -> list[Table]:
        """Each kind of edit in a row."""
        head = ("edit", "best change", "before", "apparent", "honest", "p", "accepted")
        rows: list[tuple[object, ...]] = [
            (e.kind, e.change or "–", e.before, e.apparent, e.honest, e.p, "yes" if e.accepted else "no")
            for e in self.edits
        ]
        return [("Agreement with people", head, rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        kept: dict[str, Any] = asdict(self, filter=lambda attribute, _: attribute.name != "rubric")
        return {"kind": "alignment", "sentence": self.sentence, **kept, "digest": self.rubric.digest}


def align(
    rubric: Rubric,
    grades: Grades | Sequence[Grade | Ungraded],
    labels: Labels | Mapping[Any, Any] | str | PathLike[str],
    edits: Sequence[Kind] = ("threshold", "weights"),
    *,
    risk: float = 0.05,
) -> Alignment:
    """
    Return *rubric* with the threshold and the weights that agree better with people, if that is shown; no calls.

    Args:
        rubric: The rubric; its criteria are those of the grades.
        grades: What the judge said. Ungraded results are left out.
        labels: Verdicts of people on the whole: yes or no.
        edits: The kinds of edit to try, in this order, each on the rubric with those before it.
        risk: How often a rubric that cannot gain is changed at all; each kind takes its part of it.

    Raises:
        DefinitionError: Labels are no verdicts on the whole, carry weights, or fewer than 20 have a grade; or a kind of
            edit is unknown.
    """
    check_number("risk", risk, 1e-6, 0.5)
    if isinstance(edits, str) or not edits:
        raise refuse("edits", edits, 'a list of kinds, such as ["threshold"]')
    for kind in edits:
        check_name("edits", kind, get_args(Kind))
    if not isinstance(rubric, Rubric):
        raise refuse("rubric", rubric, "a Rubric")
    if isinstance(grades, str | PathLike):
        raise refuse("grades", grades, "results to score anew, such as what grade_many(...).collect() returns")
    graded = [one for one in (each.rescore(rubric) for each in grades) if isinstance(one, Grade)]
    said, groups = _labels(graded, labels)
    rows = np.flatnonzero(~np.isnan(said))
    if len(rows) < _FEWEST:
        raise DefinitionError("labels", f"expected {_FEWEST} graded candidates with a label at least, got {len(rows)}")
    some, people = [graded[row] for row in rows], said[rows] == 1
    among = np.unique(groups[rows], return_inverse=True)[1].astype(np.intp)
    now = rubric
    found = []
    for kind in edits:
        edit, now = _edited(now, kind, some, people, among, risk=risk / len(edits))
        found.append(edit)
    baseline = float(np.mean(_verdicts(rubric, some) == people))
    constant = float(max(people.mean(), 1 - people.mean()))
    return Alignment(now, tuple(found), len(rows), baseline, constant, risk)


_FEWEST = 20


def _labels(graded: Sequence[Grade], labels: Any) -> tuple[Floats, Codes]:
    if not graded:
        raise DefinitionError("grades", "expected at least one grade, got none")
    given = as_labels(labels)
    if any(label.weight != 1 for label in given):
        raise DefinitionError("labels", "expected labels that count alike, got weights; leave them out")
    for ratings in matched(judged(graded), given):
        if not ratings.criterion and ratings.scale.kind == "verdict":
            return ratings.target, ratings.groups
    raise DefinitionError("labels", "expected verdicts of people on the whole, yes or no; got other labels alone")


def _edited(
    rubric: Rubric, kind: Kind, graded: Sequence[Grade], people: Verdicts, groups: Codes, *, risk: float
) -> tuple[Edit, Rubric]:
    """Return the best edit of one *kind*, and the rubric with it if it is accepted."""
    tried = [("", rubric), *(_thresholds(rubric, graded) if kind == "threshold" else _weights(rubric))]
    right = np.stack([_verdicts(changed, graded) for _, changed in tried]) == people
    best, honest = cross_fitted(right, groups)
    before, apparent = right[0].mean(), right[best].mean()
    p = p_of_gain(right[0], honest, groups)
    accepted = bool(best != 0 and p <= risk)
    proposals = tuple(Proposal(change, float(r.mean())) for (change, _), r in zip(tried[1:], right[1:], strict=True))
    missing = 0 if accepted else missing_labels(right[0], honest, risk)
    figures = (float(before), float(apparent), float(honest.mean()), p)
    return Edit(kind, tried[best][0], accepted, *figures, missing, proposals), tried[best][1] if accepted else rubric


def _verdicts(rubric: Rubric, graded: Sequence[Grade]) -> Verdicts:
    return np.array([grade.rescore(rubric).passed is True for grade in graded])


def _thresholds(rubric: Rubric, graded: Sequence[Grade]) -> Iterator[tuple[str, Rubric]]:
    """Yield the rubric with each threshold between two scores that were given."""
    if rubric.threshold is None:
        raise DefinitionError("edits", 'the rubric has no threshold: the judge decides; give edits=["weights"]')
    scores = np.unique([round(1 - g.score if rubric.negate else g.score, 9) for g in graded])
    middles = (scores[1:] + scores[:-1]) / 2
    if len(middles) > _MOST_THRESHOLDS:
        middles = np.quantile(middles, np.linspace(0, 1, _MOST_THRESHOLDS))
    for cut in dict.fromkeys(round(float(middle), 3) for middle in middles):
        if cut != rubric.threshold:
            borderline = None if rubric.borderline is None else min(rubric.borderline, cut)
            yield f"threshold {rubric.threshold:g} -> {cut:g}", evolve(rubric, threshold=cut, borderline=borderline)


def _weights(rubric: Rubric) -> Iterator[tuple[str, Rubric]]:
    """Yield the rubric with one weight halved, doubled or 0."""
    counted = [criterion for criterion in rubric.criteria if criterion.weight]
    if len(counted) < 2:  # noqa: PLR2004 - one weight alone changes nothing
        return
    for criterion in counted:
        for factor in _FACTORS:
            weight = criterion.weight * factor
            change = f"weight of {criterion.id} {criterion.weight:g} -> {weight:g}"
            changed = rubric.revising(criterion.id, weight=weight)
            if any(one.weight and one.polarity != "penalty" for one in changed.criteria):
                yield change, changed


# -- what it is worth --------------------------------------------------------------------------------------


def cross_fitted(right: Verdicts, groups: Codes) -> tuple[int, Verdicts]:
    """
    Return the best of several rubrics, and which candidates the one that is chosen without them gets right.

    Args:
        right: A row a rubric, the old one first; a column a candidate.
        groups: The number of the group of each candidate, from 0.
    """
    order = [*range(int(groups.max()) + 1)]
    random.Random(0).shuffle(order)  # noqa: S311 - the same folds each time
    fold = np.array([order[group] % _FOLDS for group in groups])
    honest = np.empty(right.shape[1], dtype=bool)
    for number in np.unique(fold):
        inside = fold == number
        honest[inside] = right[_best(right[:, ~inside]), inside]
    return _best(right), honest


def _best(right: Verdicts) -> int:
    """Return the place of the best rubric: the old one where none is better, else the middle one of the best."""
    counts = right.sum(axis=1)
    if not right.shape[1] or counts[0] == counts.max():
        return 0
    best = np.flatnonzero(counts == counts.max())
    return int(best[len(best) // 2])


def p_of_gain(before: Verdicts, after: Verdicts, groups: Codes) -> float:
    """Return the one-sided p of a gain: McNemar's exact test, or by group where groups have several candidates."""
    won, lost = int((after & ~before).sum()), int((before & ~after).sum())
    if won <= lost:
        return 1.0
    if int(groups.max()) + 1 == len(groups):
        return float(stats.binom.sf(won - 1, won + lost, 0.5))
    found = paired(after.astype(float) - before.astype(float), groups)
    return 1.0 if found is None else found.p / 2


def missing_labels(before: Verdicts, after: Verdicts, risk: float) -> int | None:
    """Return how many labels more would show the gain in four samples of five (R. J. Connor, Biometrics 43, 1987)."""
    n = len(before)
    gain = float(after.mean() - before.mean())
    if gain <= 0:
        return None
    differ = float((after != before).mean())
    alpha, beta = stats.norm.isf(risk), stats.norm.ppf(POWER)
    needed = ((alpha * math.sqrt(differ) + beta * math.sqrt(max(differ - gain * gain, 0))) / gain) ** 2
    return max(1, math.ceil(float(needed)) - n)
