"""The check that was meant by one in a file that cannot be read, and the polarity that goes with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rubric.formats.native.checks import CHECKS, ROWS
from rubric.formats.native.meant_rules import CALLED, call_in, call_with, run_check_in

_NAMES = {"regex": "matches", "pattern": "matches", "startswith": "starts_with", "endswith": "ends_with"}
_DENIED = {"contain": "contains", "include": "contains", "mention": "contains", "match": "matches", "call": "calls"}
"""The checks that are named with `must_not` before them."""
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
    if isinstance(value, str):
        return {} if value == "is_json" else check_of(value, None)
    if isinstance(value, dict) and (whole := _json_in(value) or _fields_in(value)):
        return {"check": whole}
    if ran := run_check_in(value):
        return {"check": ran}
    if isinstance(value, dict) and len(value) == 2 and (call := call_with(value)):  # noqa: PLR2004 - it and its arguments
        return check_of(*call)
    if isinstance(value, dict) and len(value) == 2 and "threshold" in value:  # noqa: PLR2004 - a metric and its bar
        metric = next(key for key in value if key != "threshold")
        found = check_of(metric, value[metric]).get("check", {})
        is_metric = "assertion" in found and isinstance(value[metric], str)
        return {"check": {"assertion": {**found["assertion"], "threshold": value["threshold"]}}} if is_metric else {}
    if isinstance(value, dict) and value.keys() == {"type", "value"}:
        return check_of(str(value["type"]), value["value"])
    if isinstance(value, dict) and len(value) == 2 and (case := _case_in(value)) is not None:  # noqa: PLR2004 - it and a check
        name, text = next(item for item in value.items() if item[0] not in (*CASES, "flags"))
        if _NAMES.get(name, name) == "matches":
            return {"check": {"matches": f"(?i){text}" if case else text}}
        return {"check": {name: {"text": text, "ignore_case": case}}}
    return (
        check_of(str(next(iter(value))), next(iter(value.values())))
        if isinstance(value, dict) and len(value) == 1
        else {}
    )


def _json_in(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the check of a value within JSON, which *value* names by a path of keys; {} if it names none."""
    path = next((value[key] for key in ("jsonpath", "json_path", "json-path", "path", "field") if key in value), "")
    said = [each for key, each in value.items() if key in ("equals", "value", "is", "const", "expected", "eq")]
    if (
        len(value) - len(said) != 1
        or len(said) != 1
        or not re.fullmatch(r"(\$\.)?[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", str(path))
    ):
        return {}
    schema: dict[str, Any] = {"const": said[0]}
    for key in reversed(str(path).removeprefix("$.").split(".")):
        schema = {"properties": {key: schema}, "required": [key]}
    return {"fits_schema": {"type": "object", **schema}}


def _fields_in(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the check that the first key of *value* names, with what stands beside it within it; {} if it fits not."""
    (name, first), *rest = value.items() if len(value) > 1 else [("", None), ("", None)]
    row = ROWS.get(name)
    own = {{"args": "arguments"}.get(key, key): each for key, each in rest}
    fits = row is not None and row.has_first and not isinstance(first, dict) and own.keys() <= {*row.fields[1:]}
    return {name: {row.fields[0]: first, **own}} if row is not None and fits else {}


def check_of(name: str, value: Any) -> dict[str, Any]:
    """Return the fields that are meant by a check with a *name* and its *value*; {} if none is."""
    if denied := re.fullmatch("(?:not?|never|must_not|without)[-_ ](.+)|(?:not|none)(?:_of)?", name):
        name = _DENIED.get(denied[1], denied[1])
        any_of = "any_of" if name in ("contains", None) and isinstance(value, list) else name  # none of them
        found = check_of(any_of, value) if any_of else check_in(value)
        return {**found, "polarity": "guard"} if found else {}
    if name in ("length", "words", "word_count", "word-count") and isinstance(value, dict):
        bounds = [_bound(f"{bound}_{name.replace('-', '_')}", most) for bound, most in value.items()]
        whole = value.keys() == {"min", "max"} and name != "length" and all(bounds)
        return {"check": _words(value)} if whole else bounds[0] if len(bounds) == 1 else {}
    if (many := re.fullmatch("(contains_)?(any|all|one|some)(_of)?|or|and", name)) and isinstance(value, list):
        return _of_several(value, is_all=name == "and" or many[2] == "all")
    if name in CALLED or (name in ("order", "in_order", "call_order", "tool_order") and isinstance(value, list)):
        return {"check": call_in(value)}
    if re.fullmatch("is[-_]json|(json_?)?schema", name, re.IGNORECASE) and (value in (None, {}) or value is True):
        return {"check": "is_json"}
    if re.fullmatch("is[-_]json|(json_?)?schema", name, re.IGNORECASE) and isinstance(value, dict):
        return {"check": {"fits_schema": value}}
    if isinstance(value, str) and (metric := re.fullmatch("(rouge)([-_]?[nl1-9])?|bleu|gleu|meteor|levenshtein", name)):
        return {"check": {"assertion": {"type": "rouge-n" if metric[1] else name, "value": value}}}
    return _of_texts(name, value)


def _of_texts(name: str, value: Any) -> dict[str, Any]:
    """Return the fields that are meant by a check for texts, with a *name* and its *value*; {} if none is."""
    if name == "icontains" and isinstance(value, str):
        return {"check": {"contains": {"text": value, "ignore_case": True}}}
    if name == "contains" and isinstance(value, list):
        return {"check": {"contains_all": value}}
    if _NAMES.get(name, name) in ("starts_with", "ends_with") and isinstance(value, list):
        return _of_several([{name: each} for each in value], is_all=False)
    values = value.get("values") if isinstance(value, dict) else value
    if name in ("accepted_values", "equals_any", "in", "enum") and isinstance(values, list):
        return {"check": {"matches": f"^(?:{'|'.join(_escaped(str(each)) for each in values)})$"}}
    known = next((each for each in (name, name.replace("-", "_"), _NAMES.get(name)) if each in CHECKS), None)
    return {"check": {known: value}} if known else _bound(name.lower(), value)


def _of_several(checks: list[Any], *, is_all: bool) -> dict[str, Any]:
    """Return the one check for all, or for any, of several *checks* for texts; {} if there is none."""
    texts = [each.get("contains") if isinstance(each, dict) and len(each) == 1 else each for each in checks]
    if all(isinstance(each, str) for each in texts):
        return {"check": {f"contains_{'all' if is_all else 'any'}": texts}}
    patterns = [_pattern(each) for each in checks if not is_all]
    return {} if is_all or None in patterns else {"check": {"matches": "|".join(map(str, patterns))}}


def _pattern(check: Any) -> str | None:
    """Return the pattern that finds what a *check* of a text does; None if no pattern does."""
    (name, text), *more = [("contains", check)] if not isinstance(check, dict) else [*check.items()] or [("", None)]
    name = {"text": "contains", "substring": "contains"}.get(name, _NAMES.get(name, name))
    if (
        more
        or not isinstance(text, str)
        or name not in ("contains", "icontains", "matches", "starts_with", "ends_with")
    ):
        return None
    plain = text if name == "matches" else _escaped(text)
    ends = {"icontains": ("(?i:", ")"), "starts_with": ("^", ""), "ends_with": ("", "$")}
    return plain.join(ends.get(name, ("", "")))


def _escaped(text: str) -> str:
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)


def _words(bounds: Mapping[str, int]) -> dict[str, Any]:
    return {"assertion": {"type": "word-count", "value": dict(bounds)}}


def _bound(name: str, value: Any) -> dict[str, Any]:
    """Return the fields that are meant by the most, or the fewest, words or letters; {} if *name* is no such bound."""
    found = re.fullmatch("(max|min)_?(length|chars|characters|words?|word_?count)", name)
    if found is None or type(value) is not int:
        return {}
    if found[2].startswith("word"):
        return {"check": _words({found[1]: value})}
    if found[1] == "min":
        return {"check": {"matches": f"(?s).{{{value}}}"}}
    return {"check": {"matches": f"(?s).{{{value + 1}}}"}, "polarity": "guard"}


def has_threshold(name: str) -> bool:
    """True if the check with a *name* has a threshold of its own."""
    return name in ROWS and "threshold" in ROWS[name].fields
