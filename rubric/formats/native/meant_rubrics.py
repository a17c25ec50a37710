"""The criteria of a rubric that were meant where fields of theirs stand apart: by their ids, or in templates."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rubric.formats.fields import KEYS, MOST
from rubric.formats.native.meant import name_in, reads
from rubric.internals.guesses import criteria_of, roles, word_cure
from rubric.values.criteria import Criterion
from rubric.values.rubric_tests import RubricTest
from rubric.values.rubrics import Rubric

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
    for key, field in roles("by_id").items():
        value = given.get(key)
        own: Any = value
        if isinstance(value, list):
            is_each = field == "weight" and len(value) == len(rows)
            gates = dict.fromkeys(map(str, value), True) if field == "required" else {}
            own = dict(zip([each[0] for each in ids], value, strict=True)) if is_each else gates
        if isinstance(own, dict) and own and all(any(name in each for each in ids) for name in own):
            mine = [[each for name, each in own.items() if name in names] for names in ids]
            rows = [row | dict(zip([field], each, strict=False)) for row, each in zip(rows, mine, strict=True)]
            used[key] = True
    for index, row in enumerate(rows):
        name = next((str(row[key]).rpartition("/")[2] for key in _FROM if isinstance(row.get(key), str)), None)
        if name is not None and isinstance(held := given.get(name), dict):
            rows[index] = {**held, **{key: each for key, each in row.items() if key not in _FROM}}
            used[name] = True
    for key, value in [*given.items()][:MOST]:  # a file may have unknown keys without end
        listed = value if isinstance(value, list) and key not in (*used, *KEYS[Rubric].values()) else []
        checked = criterion({key: value}) if key not in (*used, *KEYS[Rubric].values()) else None
        if checked and "check" in checked:
            rows.append(checked)
            used[key] = True
            continue
        own = [criterion({key: each} if isinstance(each, str) else each) for each in listed]
        are_groups = all(isinstance(each, dict) and "criteria" in each for each in listed)
        if own and all(
            each and ("rubric" in each if are_groups else "id" not in each and "text" in each) for each in own
        ):
            rows += own
            used[key] = True
    return [*used], rows


_VERDICTS = ("expect", "expects", "expected", "verdict", "label", "outcome", "result", "assert", "passes", "fails")


def meant_test(data: Any, read: Callable[[Any], object]) -> dict[str, Any] | None:
    """Return the test of a rubric that *data* is meant for, or None; *read* takes it."""
    found, keys = dict[str, Any](), KEYS[RubricTest].values()
    ours = {"score", *_VERDICTS, *roles("met"), *roles("ends")}
    for key, value in data.items() if isinstance(data, dict) else ():
        is_held = key in _VERDICTS and isinstance(value, dict)
        is_answers = is_held and not value.keys() & ours
        for name, each in {"expects": value}.items() if is_answers else (value if is_held else {key: value}).items():
            cure = word_cure("keys", "RubricTest", str(name), keys)
            is_verdict = name in _VERDICTS and not (name in keys and each is True)
            field = roles("met").get(str(each).lower(), "") if is_verdict else ""
            bounds = [*each.items()] if isinstance(each, dict) else re.findall(r"^([<>]=) ?(\d+(?:\.\d+)?)$", str(each))
            ends = bounds if name == "score" else [(name, each)]
            if field:
                found[field] = True
            elif len(ends) == 1 and ends[0][0] in roles("ends"):
                found["score"] = roles("ends")[ends[0][0]].format(ends[0][1])
            elif isinstance(each, list) and "fails: true and expects" in cure:  # the criteria that failed it
                found["expects"] = {**found.get("expects", {}), **dict.fromkeys(map(str, each), False)}
            elif name in keys or "leave it out" not in cure:
                found[str(name) if name in keys else name_in(cure) or str(name)] = each
    return found if found != data and reads(read, found) else None
