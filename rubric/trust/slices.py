"""
Where a judge errs: on long and short answers, by group or by any name, each beside all others.

An error is what the judge says less what people say, so below 0 the judge is harder than people; of options it is 1 for
another option. Differences are Welch's, by group, and Holm's correction keeps the chance of any false alarm at 5 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from attrs import evolve, frozen

from rubric import DefinitionError, Grade, Grades, Ungraded
from rubric.embed import Listed, NoTruth, Presented, Statistic, Table, guided
from rubric.suites.report import Report
from rubric.trust.assumptions import beside_holm, of_labels, sentences
from rubric.trust.coefficients import share
from rubric.trust.inference import Contrast, compact, holm, unpaired_contrast
from rubric.trust.labels import Labels, as_labels
from rubric.trust.ratings import Judged, Ratings, as_judged, ratings_of

_ALARM, _FEW = 0.05, 8
_NAMED = "a mapping from keys to names divides them otherwise: by={'a': 'billing'}"


@frozen
class Slice(NoTruth):
    """
    Some of the labelled candidates.

    Args:
        id: The name, such as `long`.
        n: How many there are.
        agreement: How often the judge says what people say.
        error: The mean of what the judge says less what people say; of options the share of other options.
        difference: The error less that of all others, with its interval; without a value below 8 on a side.
        p: The chance of such a difference, or a larger one, if there is none; Holm's over all slices.
    """

    _truth = ".difference"

    id: str
    n: int
    agreement: Statistic
    error: float
    difference: Statistic
    p: float

    @property
    def shown(self) -> bool:
        """True if chance does not explain the difference."""
        return self.p <= _ALARM

    def sentence(self, kind: str) -> str:
        """Describe the difference."""
        value, (low, high) = self.difference.value or 0.0, self.difference.interval or (np.nan, np.nan)
        how = ("errs less often", "errs more often") if kind == "option" else ("is harder", "is milder")
        low, high = (low, high) if value > 0 else (-high, -low)
        return f"{how[value > 0]} on {self.id} answers than on the others by {abs(value):.2f} ({low:.2f} to {high:.2f})"


@frozen(repr=False)
class Slices(Presented, Listed[Slice]):
    """
    What `errors_by` returns: `errors_by(grades, labels)["long"].difference`.

    Args:
        slices: Each one.
        criterion: The criterion; empty for the whole.
        scale: `verdict`, `number` or `option`.
        left: Labelled candidates that are in no slice, such as those without a group.
        notes: What is not as the figures assume.
    """

    _items = "slices"
    _truth = "its slices"

    slices: tuple[Slice, ...]
    criterion: str
    scale: str
    left: int = 0
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The slices whose errors differ."""
        shown = [one for one in self.slices if one.shown]
        if len(self.slices) == 2:
            shown = [one for one in shown if ((one.difference.value or 0) < 0) != (self.scale == "option")]
        n = sum(one.n for one in self.slices)
        none = f"No difference in the judge's errors is shown between {len(self.slices)} slices of {n:,} labels."
        return f"Beside people, the judge {'; '.join(one.sentence(self.scale) for one in shown)}." if shown else none

    def remarks(self) -> list[str]:
        """What to know before a figure is trusted."""
        left = [f"{self.left} labelled candidates are in no slice"] if self.left else []
        return sentences([*left, *self.notes])

    def tables(self) -> list[Table]:
        """Each slice in a row."""
        rows = [(s.id, s.n, str(s.agreement), f"{s.error:+.3f}", str(s.difference), s.p) for s in self.slices]
        return [("", ("answers", "n", "agreement", "error", "error less that of the others", "p (Holm)"), rows)]


@guided
def errors_by(
    grades: Grades | Report | Sequence[Grade | Ungraded] | Judged,
    labels: Labels | Mapping[Any, Any] | str | PathLike[str],
    by: str | Mapping[Any, str] = "length",
    *,
    criterion: str | None = None,
) -> Slices:
    """
    Say whether the judge errs otherwise on some candidates than on the others; no calls.

    Args:
        grades: What the judge said.
        labels: What people say.
        by: `length`: the shorter and the longer half of the outputs. A variable of the candidates, such as `topic`,
            or `group`, `tag` and the like, as for `Grades.by`. Or a name for each key (or place) of a candidate.
        criterion: The criterion; empty for the whole; None: the whole, or the one that is labelled.

    Raises:
        DefinitionError: There is no such criterion among the labels, nothing to divide by, or labels have weights.
    """
    given, people = as_judged(grades), as_labels(labels)
    ratings = ratings_of(given, people, criterion)
    if ratings.is_weighted:
        raise DefinitionError("labels", "have weights, and slices take a random sample; label one")
    both = ~np.isnan(ratings.target) & ~np.isnan(ratings.judge)
    slices_of = _slices_of(by, given, both)
    inside = both & np.any([*slices_of.values()] or [both], axis=0)
    found = [_slice(name, ratings, inside, rows, by) for name, rows in sorted(slices_of.items()) if (rows & both).any()]
    if len(found) < 2:
        raise DefinitionError("by", f"expected labelled candidates in two slices at least, got {len(found)}; {_NAMED}")
    adjusted = holm([one.p for one in found]) if len(found) > 2 else [one.p for one in found]
    slices = tuple(evolve(one, p=p) for one, p in zip(found, adjusted, strict=True))
    told = [(one.id, one.difference.interval, one.p) for one in slices]
    notes = [*of_labels(given, people, [ratings], cure="label one"), *beside_holm(told, _ALARM)]
    return Slices(slices, ratings.criterion, ratings.scale.kind, int((both & ~inside).sum()), tuple(notes))


def _slices_of(by: str | Mapping[Any, str], given: Judged, both: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return for each slice, by its name, whether each candidate is in it."""
    if by == "length":
        shown = (getattr(result, "candidate", None) for result in given.results)
        lengths = np.array([np.nan if one is None else len(one.output) for one in shown])
        if np.isnan(lengths[both]).all():
            raise DefinitionError("grades", "expected grades that hold their candidates; a file of results has none")
        middle = np.nanmedian(lengths[both])
        return {"long": lengths > middle, "short": lengths <= middle}
    return {name: np.isin(np.arange(len(given)), rows) for name, rows in given.rows_by(by, _NAMED).items()}


def _slice(
    name: str, ratings: Ratings, inside: np.ndarray[Any, Any], mine: np.ndarray[Any, Any], by: str | Mapping[Any, str]
) -> Slice:
    right = (ratings.judge == ratings.target).astype(float)
    errors = 1 - right if ratings.scale.kind == "option" else ratings.judge - ratings.target
    one, others = inside & mine, inside & ~mine
    groups = ratings.groups if ratings.grouped and by != "group" else None  # a group that is a slice is not a draw
    among = [None if groups is None else compact(groups[rows]) for rows in (one, others)]
    found: Contrast | None = None
    if min(one.sum(), others.sum()) >= _FEW:
        found = unpaired_contrast(errors[one], errors[others], *among)
    difference = Statistic("difference", None, reason="too few labels")
    if found is not None:
        difference = Statistic("difference", found.value, found.interval)
    agreement = share("agreement", right[one], among[0])
    return Slice(name, int(one.sum()), agreement, float(errors[one].mean()), difference, found.p if found else 1.0)
