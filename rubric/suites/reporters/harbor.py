"""
The `reward.json` of a Harbor task: a number for each reward, and no file where something is not graded.

Rows of a folder of Reward Kit's are combined by its rules. Of any other suite each case is a reward, 0 where a gate
failed, and the only one is called `reward`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rubric import DefinitionError
from rubric.embed import TOLERANCE, shorten
from rubric.results import Row
from rubric.rewards import reward_of
from rubric.suites.report import Report


def render(report: Report) -> str:
    """
    Return the rewards of *report*.

    Raises:
        DefinitionError: A case has no grade, so there is no reward: a 0 would count as a bad answer.
    """
    scores, layout = {}, None
    if not report.rows:
        raise DefinitionError("reward.json", "nothing is written: no case was run")
    for row in report:
        if row.result is None or (earned := reward_of(row.result)) is None:
            why = row.reason or "a report that is read from a file holds no results"
            raise DefinitionError("reward.json", f"nothing is written: {row.id!r} is {row.status}: {shorten(why, 300)}")
        told = row.result.rubric.provenance.get("rewardkit")
        layout = told["layout"] if told else layout
        scores[row.id] = _score(row, told) if told else earned
    if layout is None:
        rewards = scores if len(scores) > 1 else {"reward": scores[report[0].id]}
    else:
        nodes = [*layout["dimensions"].items(), *((each["name"], each) for each in layout["rewards"])]
        rewards = {name: _value(node, scores) for name, node in nodes}
    return json.dumps(rewards, indent=2) + "\n"


def _value(node: Mapping[str, Any], scores: Mapping[str, float]) -> float:
    if "inputs" in node:
        weights = node.get("weights", {})
        inputs = [(weights.get(name, one.get("weight", 1)), one) for name, one in node["inputs"].items()]
        return round(_combine([(_value(one, scores), weight) for weight, one in inputs], node), 4)
    if node["case"] not in scores:
        raise DefinitionError("reward.json", f"nothing is written: the case {node['case']!r} was not run")
    return scores[node["case"]]


def _score(row: Row, rule: Mapping[str, Any]) -> float:
    """Return the score of a component: what its criteria come to by its *rule*."""
    parts: list[tuple[float, float]] = []
    is_flagged = False
    for criterion, entry in zip(row.result.rubric.criteria if row.result is not None else (), row.entries, strict=True):
        is_penalty = criterion.polarity == "penalty"
        votes = [(one.score if is_penalty else one.contribution) or 0.0 for one in entry.votes or [entry]]
        if guard := criterion.metadata.get("guard"):
            is_flagged = guard == "penalize" and sorted(votes)[len(votes) // 2] > 0
        elif rule["aggregation"] != "required-pass" or not criterion.metadata.get("optional"):
            lower = sorted(votes)[(len(votes) - 1) // 2]
            parts.append((lower, -criterion.weight if is_penalty else criterion.weight))
    found = _combine(parts, rule)
    return min(found, 0) if is_flagged else found


def _combine(parts: Sequence[tuple[float, float]], rule: Mapping[str, Any]) -> float:
    """Return what *parts*, values with their weights, come to by the aggregation of *rule*."""
    full = [value >= 1 - TOLERANCE for value, _ in parts]
    total, weight = sum(value * weight for value, weight in parts), sum(weight for _, weight in parts)
    mean = total / weight if weight else 0.0
    every = float(bool(full) and all(full))
    found = {"all-pass": every, "required-pass": every, "any-pass": float(any(full)), "weighted-sum": total}
    found["threshold"] = float(mean >= rule.get("threshold", 0) - TOLERANCE)
    return found.get(rule.get("aggregation", ""), mean)
