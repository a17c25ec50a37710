"""
What each criterion of a rubric can do to the verdict: without a judge, and explained in a sentence.

A rubric is a voting game (`rubric.quality.coalitions`): its players are the criteria, each of them at its best or at
its worst answer, and the coalitions that win are those that pass.

Sources: L. S. Shapley and M. Shubik, "A method for evaluating the distribution of power in a committee system"
(American Political Science Review 48, 1954); P. Straffin, "Homogeneity, independence, and power indices" (Public
Choice 30, 1977), for the reading of a share as the chance to decide where candidates of every quality are equally
likely; J. F. Banzhaf, "Weighted voting doesn't work" (Rutgers Law Review 19, 1965), for `flip`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil
from typing import Any, Literal

from attrs import evolve, frozen

from rubric import Criterion, DecisionTree, DefinitionError, Grade, Rubric, Ungraded, YesNo
from rubric.embed import TOLERANCE, Check, Finding, Listed, NoTruth, Presented, Table, shorten
from rubric.quality.coalitions import Child, Game, Share, part_at, scores_of, solve
from rubric.quality.reachable import Reach
from rubric.results import Evidence, Scored
from rubric.scoring.aggregation import Rules
from rubric.values.rubrics import rubric_of


@frozen
class Influence(NoTruth):
    """
    What one criterion, or one question of a tree, can do to the verdict.

    Args:
        id: The criterion's id; the question, for a node of a tree.
        weight: Its share in the weights of its rubric, from 0 to 1.
        share: How often it decides where candidates of every quality are equally likely: each criterion is at its
            best with chance p, and p is uniform in 0..1 (Shapley and Shubik). The shares of a rubric whose verdict
            can change sum to 1. A nested rubric is one player among the criteria of its rubric, and its own criteria
            are players among all leaves; only the questions of a tree, which are no criteria, may have a negative one.
        flip: The chance that its best and its worst answer differ in the verdict: with the others at their best or
            worst by even chance (Banzhaf); where grades are given, with the others as observed in them.
        pull: The least and the greatest change of the score between its worst and its best answer.
        decides: Whether any answers of the others, graded ones included, let it change the verdict.
        vetoes: Whether its worst answer alone fails the grade, as that of a gate does.
        interval: The 95 % interval of *share* where it is an estimate; None where it is exact.
        parts: The same for the criteria of a nested rubric and the questions of a tree.
    """

    _truth = ".decides"

    id: str
    weight: float
    share: float
    flip: float
    pull: tuple[float, float]
    decides: bool
    vetoes: bool
    interval: tuple[float, float] | None = None
    parts: tuple[Influence, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON holds."""
        return {
            "id": self.id,
            "weight": self.weight,
            "share": self.share,
            "flip": self.flip,
            "pull": [*self.pull],
            "decides": self.decides,
            "vetoes": self.vetoes,
            "interval": None if self.interval is None else [*self.interval],
            "parts": [part.to_dict() for part in self.parts],
        }


@frozen(repr=False)
class Influences(Presented, Listed[Influence]):
    """
    The influence of each criterion of a rubric, in its order; `influence(rubric)["cites"].share`.

    Args:
        rubric: The rubric.
        criteria: One for each of `rubric.judged`.
        method: `exact`, or `sampled` where there are more than 14 criteria, or leaves of nested ones.
        grades: How many grades `flip` was observed in; None if it was worked out.
    """

    rubric: Rubric
    criteria: tuple[Influence, ...]
    method: Literal["exact", "sampled"] = "exact"
    grades: int | None = None

    def __bool__(self) -> bool:  # type: ignore[override]  # a list is true where there is something in it
        return bool(self.criteria)

    @property
    def sentence(self) -> str:
        """What decides: "Passes only if all 3 hold; ..."."""
        return _explain(self)

    def explain(self) -> str:
        """Return the sentence."""
        return self.sentence

    def __str__(self) -> str:
        lines = [self.sentence, ""]
        width = max((len(shorten(one.id, 32)) for one in self), default=0)
        for one in self:
            bars = f"{_bar(one.share):<20} {one.share:6.1%} of decisions, {one.weight:6.1%} of the weight"
            lines.append(f"  {shorten(one.id, 32):<{width}}  {bars}{'' if one.decides else '  (cannot matter)'}")
        return "\n".join(lines)

    def tables(self) -> list[Table]:
        """What each criterion can do to the verdict; its parts stand below it."""
        head = ("criterion", "decides (share)", "weight", "flip", "pull", "can matter")
        rows: list[tuple[object, ...]] = []

        def add(several: Iterable[Influence], above: str) -> None:
            for one in several:
                shares = f"{one.share:.1%}", f"{one.weight:.1%}", f"{one.flip:.2%}"
                rows.append((f"{above}{one.id}", *shares, _span(one.pull), "yes" if one.decides else "no"))
                add(one.parts, f"{above}{one.id} / ")

        add(self, "")
        return [("", head, rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON holds, with the sentence and the rubric's digest."""
        return {
            "rubric": self.rubric.name,
            "digest": self.rubric.digest,
            "sentence": self.sentence,
            "method": self.method,
            "grades": self.grades,
            "criteria": [one.to_dict() for one in self],
        }

    def plot(self) -> Any:
        """Return the share of each criterion in the decisions beside that in the weights as an Altair chart."""
        from rubric.view.plots import bars  # noqa: PLC0415 - charts need an extra

        of = {"decisions": [one.share for one in self], "weight": [one.weight for one in self]}
        ids = [one.id for one in self]
        rows = [{"name": id_, "which": w, "value": v} for w in of for id_, v in zip(ids, of[w], strict=True)]
        return bars(rows, "share", self.sentence)


def influence(rubric: Rubric | str, grades: Iterable[Grade | Ungraded] | None = None) -> Influences:
    """
    Return what each criterion of *rubric* can do to the verdict: without a judge, and without a call.

    Conditional criteria are taken to apply; `decides` and `pull` also allow them not to.

    Args:
        rubric: A rubric, or the text of a free-form one.
        grades: Grades under this rubric; then `flip` is how often the verdicts that were observed would change.

    Raises:
        DefinitionError: The rubric cannot grade, or the grades are of another rubric.
    """
    rubric = rubric_of(rubric)
    if not rubric.judged:
        raise DefinitionError("criteria", "a rubric without criteria decides nothing; add one with expects(text)")
    rubric.check_weights()
    shares, flips, method = solve(Game.of(rubric, nested=False))
    observed = None
    if grades is not None:
        observed = _findings_of(rubric, grades)
        flips = _observed_flips(rubric, observed)
    parts: list[tuple[Influence, ...]] = [()] * len(rubric.judged)
    if any(isinstance(c.answer, Rubric | DecisionTree) for c in rubric.judged):
        leaves = Game.of(rubric, nested=True)
        leaf_shares, leaf_flips, method_of_leaves = solve(leaves)
        method = "sampled" if "sampled" in (method, method_of_leaves) else "exact"
        parts = [_parts_of(child, leaf_shares, leaf_flips) for child in leaves.children]
    reach, weights = Reach(rubric), _weight_shares(rubric)
    found = (
        Influence(
            criterion.id,
            weight=weights[index],
            share=shares[index].value,
            flip=flips[index],
            pull=reach.pull(index),
            decides=shares[index].value > 0 or reach.decides(index),
            vetoes=reach.vetoes(index),
            interval=shares[index].interval,
            parts=parts[index],
        )
        for index, criterion in enumerate(rubric.judged)
    )
    return Influences(rubric, tuple(found), method, None if observed is None else len(observed))


def _weight_shares(rubric: Rubric) -> list[float]:
    weights = [Fraction(criterion.weight) for criterion in rubric.judged]
    return [float(weight / sum(weights)) for weight in weights]


def _parts_of(child: Child, shares: Sequence[Share], flips: Sequence[float]) -> tuple[Influence, ...]:
    """Return the influence of the leaves below *child*: of the criteria of its rubric, or the questions of its tree."""

    def of(id: str, weight: float, player: int, pull: tuple[float, float], *, vetoes: bool) -> Influence:
        share, flip = shares[player], flips[player]
        return Influence(
            id,
            weight,
            share.value,
            flip,
            pull,
            decides=bool(share.value or flip),
            vetoes=vetoes,
            interval=share.interval,
        )

    if child.questions:
        return tuple(
            of(node.question, 1.0, player, (0.0, _spread(node)), vetoes=False)
            for node, player in zip(child.questions, child.players, strict=True)
        )
    if child.level is None:
        return ()
    inner, found = child.level.steps.rules.rubric, []
    reach = Reach(inner)
    for index, (one, weight) in enumerate(zip(child.level.children, _weight_shares(inner), strict=True)):
        below = _parts_of(one, shares, flips)
        whole = of(
            one.criterion.id,
            weight,
            one.players.start,
            reach.pull(index),
            vetoes=reach.vetoes(index),
        )
        if below:  # a rubric or a tree among the leaves is the sum of them
            total = [sum(part.share for part in below), sum(part.flip for part in below)]
            whole = evolve(whole, share=total[0], flip=total[1], interval=None, parts=below)
        found.append(whole)
    return tuple(found)


def _spread(tree: DecisionTree) -> float:
    scores = [leaf.score for leaf in tree.leaves()]
    return max(scores) - min(scores)


def _findings_of(rubric: Rubric, grades: Iterable[Grade | Ungraded]) -> list[tuple[Finding, ...]]:
    """Return the findings of the grades among *grades*; a result without a verdict has none to flip."""
    ids, found = [criterion.id for criterion in rubric.judged], []
    for index, grade in enumerate(grades):
        if isinstance(grade, Ungraded):
            continue
        if [finding.id for finding in grade.findings] != ids:
            message = f"expected grades of this rubric, got one of {grade.rubric.name!r}, whose criteria are others"
            raise DefinitionError(f"grades[{index}]", message)
        found.append(tuple(grade.findings))
    return found


def _observed_flips(rubric: Rubric, observed: Sequence[tuple[Finding, ...]]) -> list[float]:
    """Return how often, in *observed*, the best and the worst answer to each criterion differ in the verdict."""
    ends = [[_finding(criterion, best=best) for best in (False, True)] for criterion in rubric.judged]
    flips = []
    for index, (worst, best) in enumerate(ends):
        differing = 0
        for findings in observed:
            passed = {
                Rules(rubric).outcome((*findings[:index], end, *findings[index + 1 :])).passed for end in (worst, best)
            }
            differing += len(passed) > 1
        flips.append(differing / len(observed) if observed else 0.0)
    return flips


def _finding(criterion: Criterion, *, best: bool) -> Scored:
    """Return the finding of *criterion* at its best or its worst answer, with evidence where it needs some."""
    good = best != criterion.is_unwanted
    if isinstance(inner := criterion.answer, Rubric):
        parts = tuple(_finding(one, best=good != inner.negate) for one in inner.judged)
        return Scored(criterion.id, Rules(inner).outcome(parts).worst.score, parts=parts)
    scores = scores_of(criterion)
    quote = (Evidence("", 0, 0),)
    return Scored(criterion.id, max(scores) if good else min(scores), flag=best, evidence=quote)


# -- sentences -------------------------------------------------------------------------------------------


def _explain(found: Influences) -> str:
    """Return what decides, in sentences."""
    rubric, every = found.rubric, list(found)
    turned = " (and the rubric is negated: a pass is then a fail)" if rubric.negate else ""
    if not any(one.share for one in every) and not any(one.decides for one in every):
        always = (
            "passes"
            if Rules(rubric).result([part_at(rubric, c, best=False) for c in rubric.judged]).passed
            else "fails"
        )
        return f"No criterion can change the verdict: every candidate {always}{turned}."
    told, vetoing = [], [one for one in every if one.vetoes]
    if len(vetoing) == len(every):
        told.append(
            "Passes only if its one criterion is met" if len(every) == 1 else f"Passes only if all {len(every)} hold"
        )
    else:
        quorum = _quorum(rubric)
        if quorum:
            told.append(f"Passes if any {quorum} of {len(every)} hold")
        gates = [c.id for c in rubric.judged if c.required or c.polarity == "guard" or c.min_score is not None]
        told += _named([one.id for one in vetoing if one.id in gates], "a gate", "gates")
        told += _named([one.id for one in vetoing if one.id not in gates], "in effect a gate", "in effect gates")
    told += [f"{one.id!r} can never change the verdict" for one in every if not one.decides]
    rare = [one for one in every if one.decides and not one.share and one.interval is None]
    told += [f"{one.id!r} decides only beside graded or absent answers" for one in rare]
    leading = max(every, key=lambda one: one.share)
    if not told or (len(vetoing) < len(every) and leading.share > 1.5 / len(every)):
        told.append(
            f"{leading.id!r} decides in {leading.share:.0%} of the cases, with {leading.weight:.0%} of the weight"
        )
    return "; ".join(told) + f"{turned}."


def _named(ids: Sequence[str], one: str, several: str) -> list[str]:
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


def _bar(share: float, width: int = 20) -> str:
    return "█" * round(max(share, 0) * width) or ("▏" if share > 0 else "")


def _span(pull: tuple[float, float]) -> str:
    least, most = pull
    return f"{most:.3f}" if least == most else f"{least:.3f} to {most:.3f}"
