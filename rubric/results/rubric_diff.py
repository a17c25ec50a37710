"""
Compare two rubrics: what changed for the judge, and what for the score alone.

A change for the score costs nothing: `rescore` applies it to results that are there. A change for the judge needs new
replies, of the criteria that it is about; a store serves all others. `rescore` refuses what is such a change here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from attrs import fields, frozen

from rubric.internals.containers import Listed, NoTruth
from rubric.internals.fields import refuse
from rubric.internals.guided import guided
from rubric.internals.text import as_json, shorten
from rubric.results.presentation import Presented, Table
from rubric.values.answers import Unit
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric, describe
from rubric.values.trees import DecisionTree, Leaf

For = Literal["judge", "score", "people"]

_FOR_SCORE = frozenset(
    {"threshold", "borderline", "strict", "aggregation", "negate", "binding", "all_or_nothing", "weight", "required",
     "min_score"}
)  # fmt: skip
_FOR_PEOPLE = frozenset({"name", "scale", "tags", "metadata", "tests", "reviewed", "provenance"})
"""Fields of rubrics and criteria; the judge reads all others, or they decide whether it is asked."""


@frozen
class RubricChange(NoTruth):
    """
    One difference of two rubrics.

    Args:
        id: Where: a field of the rubric (`threshold`), a criterion (`clarity`), or a field of one (`clarity.weight`).
        before: The value in the first rubric, as text; empty for a criterion that is added.
        after: The value in the second; empty for a criterion that is removed.
        affects: `judge` (new replies are needed), `score` (old findings can be rescored) or `people` (neither).
    """

    _truth = ".affects"

    id: str
    before: str
    after: str
    affects: For


@frozen(repr=False)
class RubricDiff(Presented, Listed[RubricChange]):
    """
    The differences of two rubrics, in the order of the second; it has a length of 0 if both ask and score alike.

    Args:
        before: The digest of the first rubric.
        after: The digest of the second.
        changes: What differs.
    """

    _kind = "change"
    _items = "changes"

    before: str
    after: str
    changes: tuple[RubricChange, ...] = ()

    def of(self, affects: For) -> tuple[RubricChange, ...]:
        """Return the changes for the `judge`, the `score` or `people`."""
        return tuple(change for change in self.changes if change.affects == affects)

    @property
    def needs_calls(self) -> bool:
        """True if the second rubric asks a judge anything that the first one does not ask."""
        return bool(self.of("judge"))

    def __bool__(self) -> bool:  # type: ignore[override]  # a list is true where there is something in it
        return bool(self.changes)

    @property
    def sentence(self) -> str:
        """How many changes there are, and whether they need calls."""
        if not self.changes:
            return "no differences"
        counts = ", ".join(f"{len(found)} for the {name}" for name in ("judge", "score") if (found := self.of(name)))
        cost = "new calls are needed" if self.needs_calls else "results can be rescored without a call"
        return f"{len(self.changes)} changed{f': {counts}' if counts else ''}; {cost}"

    def to_dict(self) -> dict[str, Any]:
        """Return the differences as plain JSON-able data."""
        return {**super().to_dict(), "needs_calls": self.needs_calls}

    def tables(self) -> list[Table]:
        """The changes: those for the judge, then for the score, then for people."""
        order: tuple[For, ...] = ("judge", "score", "people")
        rows = [
            (change.affects, change.id, shorten(change.before, 300), shorten(change.after, 300))
            for affects in order
            for change in self.of(affects)
        ]
        return [("", ("for the", "what", "before", "after"), rows)] if rows else []


@guided
def diff(before: Rubric, after: Rubric) -> RubricDiff:
    """
    Return what changed from the rubric *before* to the rubric *after*.

    Criteria are matched by their ids, or by their texts where an id is new.

    Raises:
        DefinitionError: One of them is not a rubric.

    Example:
        >>> from rubric import Rubric, diff
        >>> old = Rubric("tone").expects("Is polite", weight=1)
        >>> diff(old, old.revising("is-polite", weight=2)).sentence
        '1 changed: 1 for the score; results can be rescored without a call'
    """
    for name, given in (("before", before), ("after", after)):
        if not isinstance(given, Rubric):
            raise refuse(name, given, "a Rubric (a file is read by load)")
    return RubricDiff(before.digest, after.digest, tuple(changes_between(before, after)))


def changes_between(old: Rubric, new: Rubric, within: str = "") -> Iterator[RubricChange]:
    """Yield what changed from *old* to *new*, with *within* before the ids."""
    for name in (each.name for each in fields(Rubric)):
        if name != "criteria" and getattr(old, name) != getattr(new, name):
            yield _change(f"{within}{name}", getattr(old, name), getattr(new, name), _affects(name, old, new))
    pairs = _match(old.criteria, new.criteria)
    for criterion in old.criteria:
        if criterion.id not in {was.id for was, _ in pairs}:
            yield RubricChange(f"{within}{criterion.id}", _whole(criterion), "", "judge")
    kept = {now.id: was for was, now in pairs}
    for criterion in new.criteria:
        if criterion.id not in kept:
            yield RubricChange(f"{within}{criterion.id}", "", _whole(criterion), "judge")
        else:
            yield from _of_criteria(kept[criterion.id], criterion, f"{within}{criterion.id}.")
    order = [now.id for _, now in pairs]
    if order != (was := [criterion.id for criterion in new.criteria if criterion.id in kept]):
        yield RubricChange(f"{within}order", ", ".join(order), ", ".join(was), "judge")


def _match(old: Sequence[Criterion], new: Sequence[Criterion]) -> list[tuple[Criterion, Criterion]]:
    """Return the criteria of both that are the same one, in the order of *old*."""
    by_id = {criterion.id: criterion for criterion in new}
    gone = {criterion.id for criterion in old}
    by_text = {criterion.text: criterion for criterion in reversed(new) if criterion.id not in gone}
    pairs = [(criterion, by_id.get(criterion.id) or by_text.pop(criterion.text, None)) for criterion in old]
    return [(was, now) for was, now in pairs if now is not None]


def _of_criteria(old: Criterion, new: Criterion, within: str) -> Iterator[RubricChange]:
    for name in (each.name for each in fields(Criterion)):
        was, now = getattr(old, name), getattr(new, name)
        if was == now and type(was) is type(now):
            continue
        if isinstance(was, Rubric) and isinstance(now, Rubric):
            yield from changes_between(was, now, within)
        elif name == "answer":
            yield _change(f"{within}answer", describe(old), describe(new), _affects(name, old, new), (was, now))
        else:
            yield _change(f"{within}{name}", was, now, _affects(name, old, new))


def _affects(name: str, old: Any, new: Any) -> For:
    was, now = getattr(old, name), getattr(new, name)
    if name in _FOR_PEOPLE:
        return "people"
    if name == "abstain":  # a judge that may abstain is told so; how an abstention counts is the score's matter
        return "judge" if "forbid" in (was, now) or None in (was, now) else "score"
    if name == "threshold":  # without one, the judge's own pass flag decides
        return "judge" if now is None else "score"
    if name == "degenerate":
        return "judge" if "judge" in (was, now) else "score"
    if name == "polarity" and {was, now} == {"guard", "penalty"}:
        return "score"
    if name in ("answer", "tree") and isinstance(was, DecisionTree) and isinstance(now, DecisionTree):
        return "score" if _questions(was) == _questions(now) else "judge"
    if name == "answer" and (was, now) == (Unit(flag=True), Unit()):  # the flag is there, and is not needed
        return "score"
    return "score" if name in _FOR_SCORE else "judge"


def _questions(tree: DecisionTree | Leaf) -> Any:
    """Return the questions of *tree* and their places, without the scores of its leaves."""
    return None if isinstance(tree, Leaf) else (tree.question, _questions(tree.yes), _questions(tree.no))


def _change(id: str, was: Any, now: Any, affects: For, values: tuple[Any, Any] = ("", "")) -> RubricChange:
    before, after = _show(was), _show(now)
    if before == after:  # descriptions that leave the difference out
        before, after = map(repr, values if values != ("", "") else (was, now))
    return RubricChange(id, before, after, affects)


def _show(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return as_json(value)
    return "none" if value is None or value == () else repr(value)


def _whole(criterion: Criterion) -> str:
    weight = f", weight {criterion.weight:g}" if criterion.weight != 1 else ""
    return f"{criterion.text} ({describe(criterion)}{weight})"
