"""The check that was meant by one in a file that cannot be read, and the polarity that goes with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rubric.formats.native.checks import CHECKS, ROWS
from rubric.formats.native.meant_rules import CALLED, call_in, call_with, calls_in, run_check_in
from rubric.internals.guesses import roles, table

_NAMES = {"regex": "matches", "pattern": "matches", "startswith": "starts_with", "endswith": "ends_with"}
_DENIED = {"contain": "contains", "include": "contains", "mention": "contains", "match": "matches", "call": "calls"}
"""The checks that are named with `must_not` before them."""
MANY = re.compile("(contains_)?(any|all|one|some)(_of|Of)?|or|and|every")
"""The names of several checks, of which all or one must hold."""
CASES = {"ignore_case": True, "case_insensitive": True, "ignorecase": True, "case_sensitive": False}
"""What an option that is true says of capital letters."""


def _case_in(value: Mapping[Any, Any]) -> bool | None:
    """Return whether *value* ignores capital letters, where an option of it says so."""
    if isinstance(flags := value.get("flags"), str):
        return "i" in flags.lower() or None
    return next((CASES[key] == said for key, said in value.items() if key in CASES and isinstance(said, bool)), None)


def check_in(value: Any) -> dict[str, Any]:
    """Return the fields that are meant by the *value* of a check; {} if none is."""
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(value, str) and (pattern := re.fullmatch("/(.+)/(i?)", value)):
        return {"check": {"matches": f"(?i){pattern[1]}" if pattern[2] else pattern[1]}}
    if isinstance(value, str) and re.search(r"\boutput\b.*[<>=(]|[<>=(].*\boutput\b| in output$", value):
        return check_of("javascript" if re.search(r"\.length|===|&&|includes\(", value) else "python", value)
    if isinstance(value, str):
        return {} if value == "is_json" else check_of(value, None)
    if isinstance(value, dict) and value.get("type") == "string":  # which every candidate is
        value = {key: each for key, each in value.items() if key != "type"}
    whole = isinstance(value, dict) and (_json_in(value) or _fields_in(value))
    if whole or (whole := run_check_in(value)):
        return {"check": whole}
    if not isinstance(value, dict):
        return {}
    if number := _number_in(value):
        return {"check": number}
    if len(value) == 2 and (pair := _pair_in(value)) is not None:  # noqa: PLR2004 - it and what belongs to it
        return pair
    found = [check_of(str(name), each) for name, each in value.items()]
    if len(found) > 1 and all(found):
        return of_several([{name: each} for name, each in value.items()], is_all=True, are_checks=True)
    return found[0] if len(found) == 1 else {}


_TYPED = {"value", "schema", "pattern", "regex", "text", "values", "substring", "expected"}
"""The words for what a check of a named type looks for."""


def _pair_in(value: Mapping[Any, Any]) -> dict[str, Any] | None:
    """Return the fields that are meant by a check and the one key beside it in *value*; None if they are two checks."""
    if call := call_with(value):
        return check_of(*call)
    if "threshold" in value:
        metric = next(key for key in value if key != "threshold")
        found = check_of(metric, value[metric]).get("check", {})
        is_metric = "assertion" in found and isinstance(value[metric], str)
        return {"check": {"assertion": {**found["assertion"], "threshold": value["threshold"]}}} if is_metric else {}
    if "type" in value and (key := next(iter(_TYPED & value.keys()), "")):
        return check_of(str(value["type"]), value[key])
    if (case := _case_in(value)) is None:
        return None
    name, text = next(item for item in value.items() if item[0] not in (*CASES, "flags"))
    if _NAMES.get(name, name) == "matches":
        return {"check": {"matches": f"(?i){text}" if case else text}}
    return {"check": {name: {"text": text, "ignore_case": case}}}


_NUMBERED = {"gt", "gte", "lt", "lte", "greater_than", "less_than"}  # which alone are bounds of a number


def _number_in(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the check that one of the reply's numbers is near another, or within bounds, as *value* has it; or {}."""
    own, signs = roles("numbers"), roles("bounds")
    held: Any = next(iter(value.values())) if len(value) == 1 else None
    is_within = isinstance(held, dict) and own.get(next(iter(value))) == "near"  # else bounds may be those of a length
    given: dict[str, Any] = {own.get(key, str(key)): each for key, each in (held if is_within else value).items()}
    if isinstance(ends := given.get("between"), list) and len(given) == 1 and len(ends) == 2:  # noqa: PLR2004 - both
        given, is_within = {">=": ends[0], "<=": ends[1]}, True
    if not all(type(each) in (int, float) for each in given.values()):
        return {}
    rule = table()["number_rules"].get(" ".join(sorted(map(str, given))), "").format(**given)
    if given.keys() <= signs.keys() and (is_within or given.keys() <= _NUMBERED):
        rule = " && ".join(f"n {signs[key]} {each}" for key, each in given.items())
    found = f"(output.match(/-?[0-9]+([.][0-9]+)?/g) || []).some(n => {rule})"
    return _assertion("javascript", found) if rule else {}


def _json_in(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the check of a value within JSON, which *value* names by a path of keys; {} if it names none."""
    path = str(next((value[key] for key in _PATHS if key in value), ""))
    said = {known[key]: each for key, each in value.items() if key in (known := roles("within_json"))}
    steps = re.findall(r"\.?([A-Za-z_]\w*)|\[(\d)\]", path.removeprefix("$"))
    is_whole = "".join(f".{key}" if key else f"[{at}]" for key, at in steps) == f".{path.removeprefix('$').lstrip('.')}"
    if len(value) - len(said) != 1 or not said or not is_whole:
        return {}
    schema: dict[str, Any] = {**({"type": "number"} if any("imum" in each for each in said) else {}), **said}
    for key, at in reversed(steps):
        if key:
            schema = {"type": "object", "properties": {key: schema}, "required": [key]}
        else:
            items = [*({} for _ in range(int(at))), schema]
            schema = {"type": "array", "prefixItems": items, "minItems": len(items)}
    return {"fits_schema": schema}


_PATHS = ("jsonpath", "json_path", "json-path", "path", "field")
"""The words for a path of keys within JSON."""


def _fields_in(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the check that the first key of *value* names, with what stands beside it within it; {} if it fits not."""
    (name, first), *rest = value.items() if len(value) > 1 else [("", None), ("", None)]
    row = ROWS.get(name)
    own = {{"args": "arguments"}.get(key, key): each for key, each in rest}
    fits = row is not None and row.has_first and not isinstance(first, dict) and own.keys() <= {*row.fields[1:]}
    return {name: {row.fields[0]: first, **own}} if row is not None and fits else {}


def check_of(name: str, value: Any) -> dict[str, Any]:
    """Return the fields that are meant by a check with a *name* and its *value*; {} if none is."""
    name = re.sub("^(?:output|response|answer|reply)_(?=.)", "", name)
    if isinstance(value, dict) and _NAMES.get(name, name) == "matches" and value.keys() & {*CASES, "flags"}:
        inner = {name if key in _TYPED else key: each for key, each in value.items()}
        return _pair_in(inner) or {}
    if affirmed := re.fullmatch(f"(?:must|should)_(contains?|includes?|mentions?|{'|'.join(_NAMES)})", name):
        name = _DENIED.get(affirmed[1].removesuffix("s"), affirmed[1])
    bare = [check for words, check in table()["checks"].items() if name in words.split() and value in (None, {}, True)]
    if bare:
        return {"check": bare[0]}
    if denied := re.fullmatch("(?:not?|never|must_not|without)[-_ ](.+)|(?:not|none)(?:_of)?", name):
        name = _DENIED.get(denied[1], denied[1])
        if name in ("contains", None) and isinstance(value, list):  # none of them
            texts = all(isinstance(each, str) for each in value)
            rows = [{"contains_any": value}] if texts else value
            guards = [{**row, "polarity": "guard"} if "check" in (row := _row(each)) else {} for each in rows]
            one = guards[0] if len(guards) == 1 else {"rubric": {"aggregation": "min", "criteria": guards}}
            return {} if {} in guards else one
        found = check_of(name, value) if name else check_in(value)
        return {**found, "polarity": "guard"} if "check" in found else {}
    if (many := MANY.fullmatch(name)) and isinstance(value, list):
        return of_several(value, is_all=name in ("and", "every", "all") or many[2] == "all", are_checks=True)
    if name in _PATHS and isinstance(value, dict):
        return {"check": whole} if (whole := _json_in(value)) else {}
    if calls := _of_calls(name, value):
        return calls
    if re.fullmatch("is[-_]json|(json_?)?schema", name, re.IGNORECASE):
        value = value["schema"] if isinstance(value, dict) and [*value] == ["schema"] else value
        is_bare = value in (None, {}) or value is True
        return {"check": "is_json"} if is_bare else {"check": {"fits_schema": value}} if isinstance(value, dict) else {}
    return _of_texts(name, value) or _of_assertion(re.sub("^rouge[-_]?[l1-9]?$", "rouge-n", name), value)


def _of_calls(name: str, value: Any) -> dict[str, Any]:
    """Return the fields that are meant by a check of calls with a *name* and its *value*; {} if it is none."""
    if re.fullmatch("max_(?:tool_)?calls", name) and type(value) is int:
        return {"check": {"run": {"at_most": value, "of": "*"}}}
    calls = calls_in(value if name in CALLED else {name: value} if re.search("tool|call", name) else None)
    if calls:
        return of_several(calls, is_all=True, are_checks=True) if len(calls) > 1 else {"check": calls[0]}
    is_order = name in ("order", "in_order", "call_order", "tool_order") and isinstance(value, list)
    return {"check": call_in(value)} if name in CALLED or is_order else {}


def _of_assertion(name: str, value: Any) -> dict[str, Any]:
    """Return the check that an assertion of promptfoo with a *name* is; {} if there is none, or it is a program."""
    from rubric.formats.assertions.table import find_kind  # noqa: PLC0415 - it brings code that few rubrics need

    kind = name.replace("_", "-")
    is_code = kind in ("javascript", "python") and isinstance(value, str) and ".py" not in value
    if not (is_code or find_kind(kind)) or kind == "webhook" or isinstance(value, dict):
        return {}
    return {"check": {"assertion": {"type": kind, **({} if value in (None, True) else {"value": value})}}}


def assertion_keys(kind: str) -> set[str]:
    """Return the keys that stand beside the *kind* of an assertion."""
    from rubric.formats.assertions.table import find_kind  # noqa: PLC0415 - as above

    found = find_kind(kind)
    return {each.name for each in found.keys} if found else {"threshold"}


def _of_texts(name: str, value: Any) -> dict[str, Any]:
    """Return the fields that are meant by a check for texts, with a *name* and its *value*; {} if none is."""
    if name == "icontains" and isinstance(value, str):
        return {"check": {"contains": {"text": value, "ignore_case": True}}}
    if name == "contains" and isinstance(value, list):
        return {"check": {"contains_all": value}}
    if _NAMES.get(name, name) in ("starts_with", "ends_with") and isinstance(value, list):
        return of_several([{name: each} for each in value], is_all=False, are_checks=True)
    values = value.get("values") if isinstance(value, dict) else value
    if name in ("accepted_values", "equals_any", "equals", "in", "enum") and isinstance(values, list):
        return {"check": {"matches": f"^(?:{'|'.join(_escaped(str(each)) for each in values)})$"}}
    known = next((each for each in (name, name.replace("-", "_"), _NAMES.get(name)) if each in CHECKS), None)
    return {"check": {known: value}} if known else _bound(name.lower(), value)


def of_several(parts: list[Any], *, is_all: bool, are_checks: bool) -> dict[str, Any]:
    """Return the fields that all, or any, of several *parts* stand for, criteria or checks; {} if one is neither."""
    texts = [each.get("contains") if isinstance(each, dict) and len(each) == 1 else each for each in parts]
    if are_checks and all(isinstance(each, str) for each in texts):
        return {"check": {f"contains_{'all' if is_all else 'any'}": texts}}
    rows = [each if isinstance(each, str) and not are_checks else _row(each) for each in parts]
    is_denied = not is_all and any("polarity" in row for row in rows)  # what must not hold fails all
    if not rows or {} in rows or is_denied:
        return {}
    how = {"aggregation": "min"} if is_all else {"threshold": 100 // len(rows) / 100, "all_or_nothing": True}
    return {"rubric": {**how, "criteria": rows}}


def _row(part: Any) -> dict[str, Any]:
    """Return the criterion that *part*, one of several, stands for; {} if it stands for none."""
    if isinstance(part, dict) and part.keys() & {"text", "check", "rubric", "tree"}:
        return {**part, **check_in(part["check"])} if "check" in part else part
    return check_in(part if isinstance(part, dict) else {"contains": part})


def _escaped(text: str) -> str:
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)


def _bound(name: str, value: Any) -> dict[str, Any]:
    """Return the check of the most, or the fewest, words or letters, as `{max_words: 9}`; {} if *name* is no bound."""
    found = re.fullmatch(
        "(?:(max|min|at_most|at_least)_?)?(len(?:gth)?|size|chars?|char(?:acter)?s?(?:_count)?|words?(?:[-_]?count)?)",
        name,
    )
    if found is None:
        return {}
    typed = re.fullmatch(r"(<=?|>=?|==) ?(\d+)", value) if isinstance(value, str) else None
    given = {typed[1]: int(typed[2])} if typed else value if isinstance(value, dict) else {found[1]: value}
    bounds, unit = list[tuple[str, int]](), found[2]
    for key, most in given.items():
        named = re.fullmatch("(max|min)_(words|chars|characters|length)", str(key))
        word, unit = named.groups() if named else (str(key), unit)
        if word not in roles("bounds") or type(most) is not int:
            return {}
        bounds.append((roles("bounds")[word], most))
    return of_bounds(bounds, are_words=unit.startswith("word"))


def of_bounds(bounds: list[tuple[str, int]], *, are_words: bool) -> dict[str, Any]:
    """Return the check that the words, or the letters, are within *bounds*."""
    if not are_words:
        return {"check": _assertion("javascript", " && ".join(f"output.length {sign} {most}" for sign, most in bounds))}
    ends = {"<=": ("max", 0), "<": ("max", -1), ">=": ("min", 0), ">": ("min", 1)}
    return {"check": _assertion("word-count", {ends[sign][0]: most + ends[sign][1] for sign, most in bounds})}


def _assertion(kind: str, value: Any) -> dict[str, Any]:
    return {"assertion": {"type": kind, "value": value}}


def has_threshold(name: str) -> bool:
    """True if the check with a *name* has a threshold of its own."""
    return name in ROWS and "threshold" in ROWS[name].fields
