"""
Rates per class: how often the judge finds what people call so, and how often it is right where it says so.

A recall, a specificity and a precision are shares, with the interval of a share, or that of a mean by group. F1 is
2J / (1 + J) of the share J that both call so among those that either does; its interval is that of J on this scale. The
balanced accuracy is the mean of the recalls, from different candidates: their distances to their ends add up as squares
(MOVER: R. G. Newcombe, Statistics in Medicine 17, 1998; G. Y. Zou and A. Donner, Statistics in Medicine 27, 2008). With
groups the recalls are not independent: then it is at least as wide as by the linearised error by group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from rubric.embed import NoTruth, Statistic
from rubric.trust.coefficients import Coefficient, coefficient, share
from rubric.trust.inference import Codes, Floats, compact


@frozen
class ClassRates(NoTruth):
    """
    How well the judge finds one class.

    Args:
        name: The class: `yes`, `no`, or an option.
        people: The candidates that people call so.
        judge: The candidates that the judge calls so.
        recall: The share of *people*'s that the judge calls so: of `yes` the sensitivity (TPR), of `no` the specificity
            (TNR) of the judge.
        specificity: The share of all others that the judge does not call so.
        precision: The share of the judge's that people call so.
        f1: The harmonic mean of recall and precision.
    """

    _truth = ".f1"

    name: str
    people: int
    judge: int
    recall: Statistic
    specificity: Statistic
    precision: Statistic
    f1: Statistic


def rates_of(
    judge: Floats, people: Floats, names: Sequence[str], groups: Codes | None, worth: float | None = None
) -> tuple[ClassRates, ...]:
    """
    Return the rates of each class, by the codes that the *judge* and *people* gave, in the order of *names*.

    By weight, all labels are *worth* so many that count alike, and a class its share of that.
    """

    def part(name: str, right: NDArray[np.bool_], among: NDArray[np.bool_], why: str) -> Statistic:
        if not among.any():
            return Statistic(name, None, reason=why)
        part = worth and worth * float(among.mean())
        return share(name, right[among].astype(float), None if groups is None else compact(groups[among]), part)

    found = []
    for code, name in enumerate(names):
        said, true = judge == code, people == code
        either = part("F1", said & true, said | true, f"nobody says {name}")
        ends = either.interval and (_f1(either.interval[0]), _f1(either.interval[1]))
        f1 = either if either.value is None else evolve(either, value=_f1(either.value), interval=ends)
        recall = part("recall", said, true, f"people say {name} of none")
        specificity = part("specificity", ~said, ~true, f"people say {name} of all")
        precision = part("precision", true, said, f"the judge says {name} of none")
        found.append(ClassRates(name, int(true.sum()), int(said.sum()), recall, specificity, precision, f1))
    return tuple(found)


def _f1(share: float) -> float:
    return 2 * share / (1 + share)


def balanced_accuracy(rates: Sequence[ClassRates], judge: Floats, people: Floats, groups: Codes | None) -> Statistic:
    """Return the mean of the recalls, over the classes that people use."""
    used = [(code, one.recall) for code, one in enumerate(rates) if one.recall.value is not None]
    if len(used) < 2:
        return Statistic("balanced accuracy", None, reason="people use one class alone")
    value = sum(recall.value or 0.0 for _, recall in used) / len(used)
    if any(recall.interval is None for _, recall in used):
        return Statistic("balanced accuracy", value, reason="candidates of one class are of one group")
    low, high = (
        math.sqrt(sum(((recall.value or 0.0) - (recall.interval or (0, 1))[end]) ** 2 for _, recall in used))
        / len(used)
        for end in (0, 1)
    )
    if groups is None:
        return Statistic("balanced accuracy", value, (value - low, value + high))
    moved = np.zeros(len(people))
    for code, recall in used:
        true = people == code
        moved += true * ((judge == code) - (recall.value or 0.0)) * (len(people) / true.sum() / len(used))
    found = coefficient("balanced accuracy", Coefficient(2 * value - 1, influence=2 * moved), groups)  # from -1 to 1
    by_group = found.interval or (2 * value - 1, 2 * value - 1)
    ends = min(value - low, (by_group[0] + 1) / 2), max(value + high, (by_group[1] + 1) / 2)
    return Statistic("balanced accuracy", value, ends)


def named_rates(rates: Sequence[ClassRates], of_all: Statistic) -> list[Statistic]:
    """Return the rates of a verdict by the names that its readers know; of options what all of them come to."""
    if [one.name for one in rates] != ["no", "yes"]:
        return [of_all]
    no, yes = rates
    told = {"TPR": yes.recall, "TNR": no.recall, "precision": yes.precision, "NPV": no.precision, "F1": yes.f1}
    return [*(evolve(statistic, name=name) for name, statistic in told.items()), of_all]
