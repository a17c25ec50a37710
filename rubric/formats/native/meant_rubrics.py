"""The criteria of a rubric that were meant where fields of theirs stand apart: by their ids, or in templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rubric.formats.fields import KEYS
from rubric.internals.guesses import criteria_of
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric

_BY_ID = {
    **dict.fromkeys(("weights", "weight", "points"), "weight"),
    **dict.fromkeys(("required", "gates", "must_pass", "requires", "mandatory"), "required"),
    **dict.fromkeys(("thresholds", "min_scores", "cutoffs"), "min_score"),
}
_FROM = ("extends", "extend", "inherits", "inherit", "template", "uses", "use", "include", "base", "$ref", "ref")


def criteria_apart(
    given: dict[Any, Any], criterion: Callable[[Any], dict[str, Any] | None]
) -> tuple[list[Any], list[dict[Any, Any]]]:
    """
    Return the keys of *given*, a rubric, whose values are fields of its criteria, and the criteria with those.

    A key may say what its texts are for, as `must_not: [Shouts]`; *criterion* returns the one meant by a mapping.
    """
    listed = given.get("criteria")
    found: Any = criteria_of(listed) if isinstance(listed, dict) else listed if isinstance(listed, list) else []
    rows: list[Any] = [{"text": each} if isinstance(each, str) else each for each in found]
    if not all(isinstance(each, dict) and isinstance(each.get("text", ""), str) for each in rows):
        return [], []
    ids = [[str(row.get("id", row.get("name", Criterion(row.get("text") or "x").id))), row.get("text")] for row in rows]
    used = dict[Any, bool]()
    for key, field in _BY_ID.items():
        value = given.get(key)
        own: Any = value
        if isinstance(value, list):
            is_each = field == "weight" and len(value) == len(rows)
            own = (
                dict(zip([each[0] for each in ids], value, strict=True))
                if is_each
                else dict.fromkeys(map(str, value), True)
            )
            own = own if is_each or field == "required" else {}
        if isinstance(own, dict) and own and all(any(name in each for each in ids) for name in own):
            mine = [[each for name, each in own.items() if name in names] for names in ids]
            rows = [row | dict(zip([field], each, strict=False)) for row, each in zip(rows, mine, strict=True)]
            used[key] = True
    for index, row in enumerate(rows):
        name = next((str(row[key]).rpartition("/")[2] for key in _FROM if isinstance(row.get(key), str)), None)
        if name is not None and isinstance(held := given.get(name), dict):
            rows[index] = {**held, **{key: each for key, each in row.items() if key not in _FROM}}
            used[name] = True
    for key, value in given.items():
        listed = value if isinstance(value, list) and key not in (*used, *KEYS[Rubric].values()) else []
        own = [criterion({key: each} if isinstance(each, str) else each) for each in listed]
        are_groups = all(isinstance(each, dict) and "criteria" in each for each in listed)
        if own and all(
            each and ("rubric" in each if are_groups else "id" not in each and "text" in each) for each in own
        ):
            rows += own
            used[key] = True
    return [*used], rows
