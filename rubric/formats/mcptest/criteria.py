"""The criteria of an mcptest rubric, and its decision tree ("Rubric scoring", weighted criteria and decision tree)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rubric.answers import Unit
from rubric.criteria import Anchor, Criterion, When
from rubric.errors import DefinitionError
from rubric.formats.documents import Unreadable
from rubric.formats.locating import given, listing, made, mapping, only
from rubric.trees import DecisionTree, Leaf
from rubric.validating import check_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rubric.formats.documents import Path
    from rubric.formats.notes import Notes

__all__ = ["FIELDS", "read_criteria", "read_tree"]

FIELDS = {
    "id": "name",
    "text": "description",
    "weight": "weight",
    "required": "required",
    "polarity": "guard",
    "min_score": "threshold",
    "when": "when",
    "anchors": "examples",
}
"""For each field of a criterion that an mcptest file can give, its key there."""

_PLAIN = {name: FIELDS[name] for name in ("id", "text", "weight")}
_WHEN = ("contains", "regex")
_ANCHOR = {"response": "response", "score": "score"}


def read_criteria(notes: Notes, path: Path, data: object, taken: Mapping[str, str]) -> list[Criterion]:
    """Return the criteria at *path*; *taken* has the ids that are in use already, with where."""
    found: list[Criterion] = []
    first = dict(taken)
    for index, item in enumerate(listing(notes, path, data, "a list of criteria")):
        criterion = _read_criterion(notes, (*path, index), item)
        if criterion is None:
            continue
        if criterion.id in first:
            message = f"the name {criterion.id!r} belongs to {first[criterion.id]} already; give one of them another"
            notes.error((*path, index, "name"), message)
        else:
            first[criterion.id] = f"criteria[{index}]"
            found.append(criterion)
    return found


def _read_criterion(notes: Notes, path: Path, data: object) -> Criterion | None:
    item = mapping(notes, path, data, "a criterion (a mapping with name and description)")
    if item is None:
        return None
    only(notes, path, item, FIELDS.values())
    if FIELDS["id"] not in item:
        notes.error(path, "the key 'name' is missing; add it: a criterion is reported by its name")
    values = {**given(notes, path, item, _PLAIN), **_gates(notes, path, item), "answer": Unit()}
    if (when := _read_when(notes, (*path, "when"), item)) is not None:
        values["when"] = when
    if "examples" in item:
        values["anchors"] = [*_read_examples(notes, (*path, "examples"), item["examples"])]
    return made(notes, path, Criterion, values, FIELDS)


def _gates(notes: Notes, path: Path, item: Mapping[Any, Any]) -> dict[str, Any]:
    """Return what makes the criterion a gate: a threshold of its own counts only where it is one."""
    required, guard = (_read_flag(notes, path, item, key) for key in ("required", "guard"))
    values: dict[str, Any] = {"required": required, "polarity": "guard" if guard else "satisfy"}
    threshold = _read_threshold(notes, (*path, "threshold"), item)
    if threshold is None:
        return values
    if not required and not guard:
        message = "a threshold of its own counts only where a criterion gates; add `required: true`, or take it out"
        notes.warn((*path, "threshold"), message)
    elif threshold == 0 and not guard:
        notes.warn((*path, "threshold"), "nothing is below 0, so this criterion gates nothing")
        values["required"] = False
    else:
        values["min_score"] = threshold
    return values


def _read_flag(notes: Notes, path: Path, item: Mapping[Any, Any], key: str) -> bool:
    value = item.get(key, False)
    if not isinstance(value, bool | Unreadable):
        notes.error((*path, key), f"expected true or false, got {value!r}")
    return value is True


def _read_threshold(notes: Notes, path: Path, item: Mapping[Any, Any]) -> float | None:
    if "threshold" not in item:
        return None
    value = item["threshold"]
    try:
        check_number("threshold", value, 0, 1)
    except DefinitionError as problem:
        notes.error(path, problem.message)
        return None
    return float(value) if isinstance(value, float) else value


def _read_when(notes: Notes, path: Path, item: Mapping[Any, Any]) -> When | None:
    if "when" not in item:
        return None
    data = mapping(notes, path, item["when"], "a mapping with contains or regex")
    if data is None:
        return None
    only(notes, path, data, _WHEN)
    named = [key for key in _WHEN if key in data]
    if len(named) != 1:
        found = " and ".join(named) or "neither"
        notes.error(path, f"expected one of contains and regex, got {found}; a condition is one of them")
        return None
    return made(notes, path, When, given(notes, path, data, {key: key for key in named}))


def _read_examples(notes: Notes, path: Path, data: object) -> Iterator[Anchor]:
    for index, item in enumerate(listing(notes, path, data, "a list of examples")):
        here = (*path, index)
        example = mapping(notes, here, item, "an example (a mapping with response and score)")
        if example is None:
            continue
        only(notes, here, example, _ANCHOR)
        anchor = made(notes, here, Anchor, given(notes, here, example, _ANCHOR))
        if anchor is not None:
            yield anchor


# -- trees ------------------------------------------------------------------------------------------

_QUESTION = {"question": "ask", "yes": "yes", "no": "no"}
_LEAF = {"score": "score", "reason": "reason"}


def read_tree(notes: Notes, path: Path, data: object) -> DecisionTree | None:
    """Return the tree at *path*; its root is a question."""
    node = mapping(notes, path, data, "a question (a mapping with ask, yes and no)")
    if node is None:
        return None
    if "ask" not in node and "score" in node:
        notes.error(path, "a tree starts with a question (ask, yes, no), and this is a leaf (score)")
        return None
    return _read_question(notes, path, node)


def _read_question(notes: Notes, path: Path, data: Mapping[Any, Any]) -> DecisionTree | None:
    node = {_BOOLEANS.get(key, key) if isinstance(key, bool) else key: value for key, value in data.items()}
    only(notes, path, node, _QUESTION.values())
    values = given(notes, path, node, _QUESTION)
    for side in ("yes", "no"):
        if side not in node:
            notes.error(path, f"the branch {side!r} is missing; a question has both")
        values[side] = _read_branch(notes, (*path, side), values[side]) if side in values else None
    if None in values.values():
        values |= {side: Leaf(0) for side in ("yes", "no") if values[side] is None}  # what else is wrong shows too
        made(notes, path, DecisionTree, values, _QUESTION)
        return None
    return made(notes, path, DecisionTree, values, _QUESTION)


_BOOLEANS = {True: "yes", False: "no"}
"""What YAML 1.1 takes the keys `yes` and `no` for."""


def _read_branch(notes: Notes, path: Path, data: object) -> DecisionTree | Leaf | None:
    node = mapping(notes, path, data, "a leaf (a mapping with score and reason) or a question (ask, yes, no)")
    if node is None:
        return None
    if "score" not in node and "reason" not in node:
        return _read_question(notes, path, node)
    only(notes, path, node, _LEAF)
    return made(notes, path, Leaf, given(notes, path, node, _LEAF))
