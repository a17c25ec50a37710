"""The criteria of a rubric that were meant where fields of theirs stand apart: by their ids, or in templates."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rubric.formats.fields import KEYS, MOST
from rubric.formats.files import read_text
from rubric.formats.native.meant import name_in, reads
from rubric.formats.notes import Loading
from rubric.internals.cure_lines import imports_of
from rubric.internals.fields import names_a_file
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


def script_of(given: dict[Any, Any], loading: Loading) -> tuple[str, str]:
    """Return the key by which *given* takes from another file, and the line that writes what is meant; '' if none."""

    def named_in(data: Any, *keys: str) -> str:
        return next((key for key in keys if isinstance(data.get(key), str) and names_a_file(data[key])), "")

    def held(name: object) -> Any:
        from rubric.formats.rubrics import loads  # noqa: PLC0415 - which reads with this module

        return loads(read_text(loading.folder / name, loading.root)) if isinstance(name, Path) else name  # type: ignore[operator]

    def shown(value: object) -> str:
        return f"load({value.as_posix()!r})" if isinstance(value, Path) else repr(value)

    key, name = named_in(given, *_FROM), given.get("rubric", "")
    listed = typed if isinstance(typed := given.get("criteria"), list) else []
    rows = [{**row} if isinstance(row, dict) else {} for row in listed]
    if loading.folder is None or not (key or any(named_in(row, *_FROM, "rubric") for row in rows)):
        return "", ""
    rest = {each: value for each, value in given.items() if each not in (key, "rubric", "criteria")}
    with suppress(Exception):  # a part of it is not there, or has no verb: then no line is meant
        made, code = (held(Path(given[key])), shown(Path(given[key]))) if key else (Rubric(name), f"Rubric({name!r})")
        steps = [("revising", [id_], {"weight": value}) for id_, value in rest.pop("weights", {}).items()]
        for row, as_typed in zip(rows, listed, strict=True):
            file = "" if key else named_in(row, *_FROM, "rubric")
            verb = "includes" if file else "revising" if row.get("id") in made.ids else "adding"
            first = Path(row.pop(file)) if file else row.pop("id") if verb == "revising" else as_typed
            steps.append((verb, [first], row if verb != "adding" else {}))
        steps += [("without", rest.pop(word), {}) for word in ("exclude", "without", "remove") if word in rest]
        steps += [("passing_at", [rest.pop("threshold")], {})] if "threshold" in rest else []
        for verb, args, named in steps:
            made = getattr(made, verb)(*map(held, args), **named)
            code += (
                f".{verb}({', '.join([*map(shown, args), *(f'{each}={value!r}' for each, value in named.items())])})"
            )
        code = f"dump({f'attrs.evolve({code}, name={name!r})' if key and name else code}, 'team.yaml')"
        return ("", "") if rest else (key or "criteria", imports_of(code, whole=True) + code)
    return "", ""


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
