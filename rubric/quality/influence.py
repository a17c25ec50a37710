"""
What each criterion of a rubric can do to the verdict: without a judge, and explained in a sentence.

A rubric is a voting game (`rubric.quality.coalitions`): its players are the criteria, each of them at its best or at
its worst answer, and the coalitions that win are those that pass.

Sources: L. S. Shapley and M. Shubik, "A method for evaluating the distribution of power in a committee system"
(American Political Science Review 48, 1954); P. Straffin, "Homogeneity, independence, and power indices" (Public
Choice 30, 1977), for the reading of a share as the chance to decide where candidates of every quality are equally
likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any, Literal

from attrs import asdict, frozen

from rubric import DefinitionError, Rubric, YesNo
from rubric.embed import TOLERANCE, Check, Listed, NoTruth, Presented, Table, guided, shorten
from rubric.quality.coalitions import part_at, shares_of
from rubric.quality.reachable import Reach
from rubric.scoring.outcomes import Rules
from rubric.values.rubrics import rubric_of


@frozen
class Influence(NoTruth):
    """
    What one criterion can do to the verdict.

    Args:
        id: The criterion's id.
        weight: Its share in the weights of its rubric, from 0 to 1.
        share: How often it decides where candidates of every quality are equally likely: each criterion is at its
            best with chance p, and p is uniform in 0..1 (Shapley and Shubik). The shares of a rubric whose verdict
            can change sum to 1. A nested rubric is one criterion; `influence(it)` says what its own ones do.
        decides: Whether any answers of the others, graded ones included, let it change the verdict.
        vetoes: Whether its worst answer alone fails the grade, as that of a gate does.
        interval: The 95 % interval of *share* where it is an estimate; None where it is exact.
    """

    _truth = ".decides"

    id: str
    weight: float
    share: float
    decides: bool
    vetoes: bool
    interval: tuple[float, float] | None = None


@frozen(repr=False)
class Influences(Presented, Listed[Influence]):
    """
    The influence of each criterion of a rubric, in its order; `influence(rubric)["cites"].share`.

    Args:
        rubric: The rubric.
        criteria: One for each of `rubric.judged`.
        method: `exact`, or `sampled` where there are more than 14 criteria.
    """

    rubric: Rubric
    criteria: tuple[Influence, ...]
    method: Literal["exact", "sampled"] = "exact"

    def __bool__(self) -> bool:  # type: ignore[override]  # a list is true where there is something in it
        return bool(self.criteria)

    @property
    def sentence(self) -> str:
        """What decides: "Passes only if all 3 hold; ..."."""
        rubric, every = self.rubric, self.criteria
        turned = " (and the rubric is negated: a pass is then a fail)" if rubric.negate else ""
        if not any(one.share or one.decides for one in every):
            worst = Rules(rubric).result([part_at(rubric, c, best=False) for c in rubric.judged])
            always = "passes" if worst.passed else "fails"
            return f"No criterion can change the verdict: every candidate {always}{turned}."
        told, vetoing = [], [one for one in every if one.vetoes]
        if len(vetoing) == len(every):
            all_hold = "its one criterion is met" if len(every) == 1 else f"all {len(every)} hold"
            told.append(f"Passes only if {all_hold}")
        else:
            told += [f"Passes if any {quorum} of {len(every)} hold"] if (quorum := _quorum(rubric)) else []
            gates = [c.id for c in rubric.judged if c.required or c.polarity == "guard" or c.min_score is not None]
            told += _clause([one.id for one in vetoing if one.id in gates], "a gate", "gates")
            told += _clause([one.id for one in vetoing if one.id not in gates], "in effect a gate", "in effect gates")
        told += [f"{one.id!r} can never change the verdict" for one in every if not one.decides]
        rare = [one for one in every if one.decides and not one.share and one.interval is None]
        told += [f"{one.id!r} decides only beside graded or absent answers" for one in rare]
        leading = max(every, key=lambda one: one.share)
        if not told or (len(vetoing) < len(every) and leading.share > 1.5 / len(every)):
            of_weight = f"with {leading.weight:.0%} of the weight"
            told.append(f"{leading.id!r} decides in {leading.share:.0%} of the cases, {of_weight}")
        return "; ".join(told) + f"{turned}."

    def explain(self) -> str:
        """Return the sentence."""
        return self.sentence

    def tables(self) -> list[Table]:
        """What each criterion can do to the verdict."""
        head = ("criterion", "decides (share)", "weight", "can matter")
        rows = [
            (shorten(one.id, 32), f"{one.share:.1%}", f"{one.weight:.1%}", "yes" if one.decides else "no")
            for one in self
        ]
        return [("", head, rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON holds, with the sentence and the rubric's digest."""
        head = {"rubric": self.rubric.name, "digest": self.rubric.digest, "sentence": self.sentence}
        return {**head, "method": self.method, "criteria": [asdict(one) for one in self]}


@guided
def influence(rubric: Rubric | str) -> Influences:
    """
    Return what each criterion of *rubric* can do to the verdict: without a judge, and without a call.

    Conditional criteria are taken to apply; `decides` also allows them not to.

    Args:
        rubric: A rubric, or the text of a free-form one.

    Raises:
        DefinitionError: The rubric cannot grade.
    """
    rubric = rubric_of(rubric)
    if not rubric.judged:
        raise DefinitionError("criteria", "a rubric without criteria decides nothing; add one with expects(text)")
    rubric.check_weights()
    weights, reach = [Fraction(criterion.weight) for criterion in rubric.judged], Reach(rubric)
    found = tuple(
        Influence(
            criterion.id,
            weight=float(weights[index] / sum(weights)),
            share=share.value,
            decides=share.value > 0 or reach.decides(index),
            vetoes=reach.vetoes(index),
            interval=share.interval,
        )
        for index, (criterion, share) in enumerate(zip(rubric.judged, shares_of(rubric), strict=True))
    )
    return Influences(rubric, found, "exact" if found[0].interval is None else "sampled")


# -- sentences -------------------------------------------------------------------------------------------


def _clause(ids: Sequence[str], one: str, several: str) -> list[str]:
    """Return the clause that says what the criteria *ids* are, if there are any."""
    *first, last = [repr(id_) for id_ in ids] or [""]
    if not last:
        return []
    return [f"{', '.join(first)} and {last} are {several}" if first else f"{last} is {one}"]


def _quorum(rubric: Rubric) -> int:
    """Return how many of the criteria suffice, where they are alike; else 0."""
    alike = len({c.weight for c in rubric.judged}) == 1 and rubric.aggregation == "weighted_average"
    plain = all(isinstance(c.answer, YesNo | Check) for c in rubric.judged)
    if not (alike and plain) or rubric.strict or rubric.threshold is None or len(rubric.judged) < 2:  # noqa: PLR2004
        return 0
    if any(c.required or c.polarity != "satisfy" or c.min_score is not None for c in rubric.judged):
        return 0
    return max(ceil((Fraction(rubric.threshold) - Fraction(TOLERANCE)) * len(rubric.judged)), 0)
