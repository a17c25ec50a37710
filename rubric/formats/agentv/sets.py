"""Sets of graders: `assert-set`, and `composite` from before generation 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from rubric.checks import Unsupported
from rubric.formats.agentv.entries import Entry
from rubric.formats.agentv.grouping import Grader, as_criterion, binds, renamed
from rubric.rubrics import Rubric
from rubric.showing import shorten

__all__ = ["LISTS", "SETS", "read_set"]

SETS = ("assert-set", "composite")
"""The types of sets."""

LISTS = ("assert", "assertions", "evaluators", "graders")
"""Where a set may have its graders."""

_KNOWN = frozenset(
    {"type", "name", "metric", "id", "description", "weight", "required", "min_score", "threshold", "negate",
     "aggregator", "provider", *LISTS}
)  # fmt: skip


@frozen
class Rule:
    """When a set passes (None: when all in it pass), and what its graders weigh, by name."""

    threshold: float | None = None
    weights: Mapping[str, float] = {}


def read_set(entry: Entry, children: Sequence[Grader]) -> Grader | None:
    """Return the set *entry* of the graders *children*: all must pass, or their mean must meet a threshold."""
    entry.check_keys(_KNOWN)
    if not children:
        entry.warn("there is no grader in it; it is left out")
        return None
    rule = _rule(entry)
    if isinstance(rule, str):
        entry.warn(f"{rule} is not supported: the case is ungraded")
        return Grader(entry.name, Unsupported(rule), entry.path)
    criteria = [as_criterion(child, rule.weights.get(child.name)) for child in renamed(children)]
    judges = {child.judge for child in children}
    if len(judges) > 1:
        entry.warn("its graders name several judges; the case's judge takes them all")
    return Grader(
        entry.name,
        Rubric(entry.name, criteria=criteria, threshold=rule.threshold, binding=binds(criteria)),
        entry.path,
        judge=next(iter(judges)) if len(judges) == 1 else None,
        decides=True,
        variables={name: text for child in children for name, text in child.variables.items()},
    )


def _rule(entry: Entry) -> Rule | str:
    """Return the rule of a set; in words, one that is not supported."""
    own = entry.get("threshold")
    if entry.kind != "composite":
        return Rule() if own is None else Rule(entry.scope.number(own, entry.at("threshold"), high=1))
    given = entry.get("aggregator") or {"type": "weighted_average"}
    kind = given.get("type") if isinstance(given, Mapping) else given
    if kind not in ("weighted_average", "threshold") or not isinstance(given, Mapping):
        return f"composite with the aggregator {shorten(str(kind), 60)}"
    threshold = given.get("threshold", own)
    path = (*entry.at("aggregator"), "threshold")
    least = entry.task.threshold if threshold is None else entry.scope.number(threshold, path, high=1)
    return Rule(least, _weights(entry, given.get("weights")))


def _weights(entry: Entry, given: Any) -> dict[str, float]:
    path = (*entry.at("aggregator"), "weights")
    if given is None or isinstance(given, Mapping):
        read = {str(name): entry.scope.number(weight, (*path, name)) for name, weight in (given or {}).items()}
        return {name: weight for name, weight in read.items() if weight is not None}
    entry.scope.error(path, f"expected a weight for each name, got {shorten(repr(given))}")
    return {}
