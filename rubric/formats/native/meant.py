"""The criterion or the tree that was meant by one in a file that cannot be read: all its mistakes mended at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, partial
from itertools import islice
from typing import Any, TypeVar

from rubric.errors import DefinitionError
from rubric.formats.document import KeyPath
from rubric.formats.fields import SeveralError, WrongKeyError, message_of, problems_of
from rubric.formats.yaml import LONGEST_LINE, on_a_line
from rubric.internals.conversions import conversions, meant_value
from rubric.internals.guesses import cures_in, word_cure
from rubric.internals.secrets import redact

T = TypeVar("T")
Read = Callable[[Any], object]

_TYPES: dict[str, dict[str, Any]] = {
    "boolean bool binary yes_no yesno yes/no pass_fail passfail": {"answer": "yes_no"},
    "llm-rubric": {},
    "scale ordinal levels likert rating range integer choice choices categorical enum": {"scale": True},
    "score float continuous unit numeric percentage": {"answer": "unit"},
    "guard negative forbid forbids forbidden must_not negated negate inverse invert not never avoid no": {
        "polarity": "guard"
    },
    "penalty deduction minus": {"polarity": "penalty"},
    "gate required require requires must must_have critical hard mandatory": {"required": True},
}
_CHECKS = {"regex": "matches", "pattern": "matches", "startswith": "starts_with"}
_LOW, _HIGH = "min low minimum lowest from start min_value", "max high maximum highest to end max_value"
_SHOWN = ("continue-on-error", "continue_on_error", "allow_failure", "informational", "non_blocking", "advisory")
_SEVERITIES: dict[str, dict[str, Any]] = {
    "error critical blocker fatal": {"required": True},
    "warning warn info notice minor": {},
}
_CONDITIONS = ("if", "condition", "only_if", "applies_if", "depends_on")
_REPLIES = ("output", "answer", "text", "reply", "example", "completion")
_SCORED = ("rating", "value", "points", "grade", "mark", "pass", "passes", "passed", "met", "label", "correct")
_TAGS = ("category", "group", "section", "dimension", "area", "tag")
_SCORES = "scores values points score value weights"
_CURE = re.compile(
    r"; ([^;]*write|[^;]*such as|did you mean|allowed|add it|quote|take|give|for a weight)\b.*", re.DOTALL
)
_OTHER = re.compile("if the colon is in the text, .*", re.DOTALL)
"""The other thing that a text of one word, a colon and more may be."""

_LONGEST = 120  # what is said before the line


class _MeantError(DefinitionError):
    """A problem that is told with the line that was meant, or beside it."""


class _MeantKeyError(WrongKeyError):
    """Such a problem of a key."""


_trying: ContextVar[bool] = ContextVar("_trying", default=False)


def read_or_tell(read: Callable[[Any], T], data: Any, meant: Callable[[Any], Any]) -> T:
    """Return *data* as *read* reads it; else raise its problems with the line that was *meant*, if it is known."""
    try:
        return read(data)
    except (DefinitionError, SeveralError) as problem:
        found = tell(problems_of(problem), data, meant)
        if found is None:
            raise
        raise SeveralError(found) from None


def tell(
    found: list[tuple[KeyPath, DefinitionError]], data: Any, meant: Callable[[Any], Any]
) -> list[tuple[KeyPath, DefinitionError]] | None:
    """Return the problems *found* in *data* with the line that was *meant*; None if it is not known, or told."""
    untold = [error for _, error in found if not isinstance(error, _MeantError | _MeantKeyError)]
    is_told = not untold  # of what is within it
    names = [name_in(message_of(error)) for error in untold]  # those that are proposed
    mended = None if _trying.get() or is_told else meant(data)
    if mended is None or ({*names} <= mended.keys() and all(value in data.values() for value in mended.values())):
        return None
    if len(line := on_a_line(mended)) > LONGEST_LINE or redact(line) != line:  # a secret is not repeated
        return None
    return _with_line(found, mended, f"write {line}{_also(found, mended, data)}")


def _also(found: list[tuple[KeyPath, DefinitionError]], meant: dict[str, Any], data: Any) -> str:
    """Return what else may be meant, or is needed beside the line."""
    other = _OTHER.search(found[0][1].message)
    said = f", or {other[0]}" if other else ""
    if "contains_all" in meant.get("check", ()) and "contains_all" not in repr(data):
        said += ", or for one of them, contains_any"
    if meant.get("tree", {}).get("no") == 1 and not {"tree", *_tree_words()} & data.keys():
        said += ", which counts as met where the first answer is no"
    if "severity" in data and "required" not in meant:
        said += ", or, to show it alone, weight: 0 beside it"
    if meant.get("polarity") == "penalty" != data.get("polarity"):
        said += ", and in the rubric aggregation: points"
    return said


def _with_line(
    found: list[tuple[KeyPath, DefinitionError]], meant: dict[str, Any], line: str
) -> list[tuple[KeyPath, DefinitionError]]:
    told: list[tuple[KeyPath, DefinitionError]] = []
    for path, error in found:
        cure = _CURE.search(whole := message_of(error))
        is_name = cure is not None and name_in(cure[0]) in meant
        said = (whole if is_name else _CURE.sub("", whole)).partition(" There, ")[0]
        said = said if len(said) < _LONGEST else said.partition("; ")[0]
        end = "" if told else f" W{line[1:]}" if said[-1] == "?" else f"; {line}"
        kind = _MeantKeyError if isinstance(error, WrongKeyError) else _MeantError
        told.append((path, kind("", said + end)))
    return told


def name_in(cure: str) -> str:
    found = re.search(r"; did you mean '(\w+)'", cure)
    return found[1] if found else ""


def meant_criterion(data: Any, read: Read, keys: Collection[str], checks: Collection[str]) -> dict[str, Any] | None:
    """
    Return the mapping that *data* is meant for, or None; *read* takes it.

    Args:
        data: What stands for a criterion.
        read: Reads a criterion, or raises.
        keys: Those that a criterion has.
        checks: The names of checks.
    """
    if not isinstance(data, dict):
        return None
    found = dict[str, Any]()
    rest = {str(key): value for key, value in data.items()}
    for part in [*_together(rest, keys, checks), *(_alone(key, value, keys, checks) for key, value in rest.items())]:
        if part.keys() & found.keys() and not (part := _one_scale(found, part)):
            return None
        found |= part
    found = _with_text(found, data, keys)
    is_scale = bool({"levels", "choices"} & found.keys())
    if not found or (found.pop("scale", False) and not is_scale) or (is_scale and found.get("answer") == "yes_no"):
        return None
    if "answer" not in rest and (is_scale or found.get("answer") == "yes_no"):
        found.pop("answer", None)
    mended = dict[str, Any]()
    for key in sorted(found, key=lambda each: ["id", "text", each].index(each)):
        beside: dict[str, Any] = {} if key in ("text", "check", "rubric") else {"text": "x"}
        scale: dict[str, Any] = {name: mended.get(name, found[name]) for name in ("levels", "choices") if name in found}
        beside |= scale if key in ("anchors", "min_score") else {}
        fits = partial(_fits, read, beside, key)
        own = filter(fits, (found[key], *_values(key, found[key], scale)))
        if not (fitting := [*islice(own, 1)] or meant_value(key, found[key], fits)):
            return None
        mended[key] = fitting[0]
    return mended if reads(read, mended) else None


def _with_text(found: dict[str, Any], data: dict[Any, Any], keys: Collection[str]) -> dict[str, Any]:
    """Return the fields *found* in *data* with a text, where its one key, or its first question, is one; or {}."""
    if "tree" in found:
        tree = _tree_of(found["tree"])
        asked = {"text": tree["ask"]} if isinstance(tree, dict) and isinstance(tree.get("ask"), str) else {}
        return asked | {**found, "tree": tree}
    if len(data) > 1 or found.keys() & {"text", "check", "rubric", "tree"}:
        return found
    ((name, value),) = data.items()
    if name in (*keys, "rates", "rate", "chooses", "decides"):  # which lack a scale, or a tree
        return {}
    return {"id": name, "text": value} if isinstance(value, str) else {"text": name, "weight": value}


def _one_scale(found: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of levels whose lowest and highest score the other of *found* and *part* names; else {}."""
    given = [found.get("levels"), part.get("levels")]
    texts = [each for each in given if isinstance(each, dict) and all(type(key) is int for key in each)]
    ends = [each for each in given if each not in texts and part.keys() == {"levels"}]
    is_one = texts and ends and _ends_of(ends[0]) == (min(texts[0]), max(texts[0]))
    return {"levels": texts[0]} if is_one else {}


def _ends_of(levels: Any) -> tuple[int, int]:
    if isinstance(levels, dict) and levels and all(type(key) is int for key in levels):
        return min(levels), max(levels)
    found = re.fullmatch(r"\D*(\d+)\D+(\d+)\D*", str(levels))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _together(rest: dict[str, Any], keys: Collection[str], checks: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the fields that some keys stand for together, and take them out of the *rest*."""

    def take(words: str) -> Any:
        return next((rest.pop(word) for word in words.split() if word in rest and word not in keys), None)

    kind = rest.pop("check") if isinstance(rest.get("check"), str) and "value" in rest else take("type kind")
    if isinstance(kind, str) and (fields := _check(kind.lower(), rest.get("value"), checks)):
        del rest["value"]
        yield fields
    elif kind is not None:
        means = _means(str(kind).lower())
        yield {"type": kind} if means is None else means
    option = next((key for key in _CASES if isinstance(rest.get(key), bool)), "")
    if option and isinstance(rest.get("check"), dict) and len(rest["check"]) == 1:
        yield _in_check({**rest.pop("check"), option: rest.pop(option)}, checks)
    if scale := _scale_in(rest):
        for ends in (_LOW, _HIGH):
            take(ends)
        yield {"levels": scale}
    for key in ("choices", "options", "labels", "categories"):
        if isinstance(labels := rest.get(key), list) and isinstance(scores := take(_SCORES), list):
            is_paired = len(scores) == len(rest.pop(key))
            yield {"choices": dict(zip(map(str, labels), scores, strict=True)) if is_paired else None}
    yield from filter(None, (_tree_in(rest), _group_in(rest)))
    if (points := take("penalty deduction")) not in (None, False):
        yield {"polarity": "penalty", **({} if points is True else {"weight": points})}


@cache
def _tree_words() -> dict[str, list[str]]:
    """Return the keys of a question, each with itself and the other words for it."""
    return {key: [key, *words] for key, words in cures_in("keys", "DecisionTree") if " " not in key}


def _group_in(rest: dict[str, Any]) -> dict[str, Any]:
    """Return the id that a word for a group of criteria, or for the metric of a text, names; {} if none does."""
    names = _TAGS if "criteria" in rest else ("metric",) if "text" in rest else ()
    group = next((key for key in names if isinstance(rest.get(key), str)), "")
    return {"id": rest.pop(group)} if group and "id" not in rest else {}


def _is_asked(condition: object) -> bool:
    """True if *condition* is a sentence that a judge can be asked, and no expression over variables."""
    return " " in str(condition) and re.search(r"[=!<>]=|\{\{|\$\{|\b\w+\.\w+\b", str(condition)) is None


def _tree_in(rest: dict[str, Any]) -> dict[str, Any]:
    """Return the tree of questions that stands beside a text, or whose first question is a condition; {} if none."""
    own = {key: next((each for each in words if each in rest), "") for key, words in _tree_words().items()}
    if all(own.values()) and isinstance(asked := rest[own["ask"]], str) and "tree" not in rest:
        tree = {key: _branch(rest.pop(each)) for key, each in own.items()}
        return {"text": rest.pop("text", asked), "tree": tree}
    asked = next((rest[key] for key in _CONDITIONS if _is_asked(rest.get(key))), None)
    text = rest.get("text")
    if not isinstance(asked, str) or not isinstance(text, str):
        return {}
    for key in _CONDITIONS:
        rest.pop(key, None)
    return {"tree": {"ask": asked, "yes": {"ask": text, "yes": 1, "no": 0}, "no": 1}}


def _alone(key: str, value: Any, keys: Collection[str], checks: Collection[str]) -> dict[str, Any]:
    """Return the field, or the fields, that a *key* with its *value* stands for."""
    if key not in keys and (fields := _check(key, value, checks)):
        return fields
    if key in ("check", "assert", "assertion"):
        return _in_check(value, checks) or {"check": value}
    if key == "answer" and isinstance(value, dict | str) and (scale := _scale_of(value)):
        return {"levels": scale}
    if key in ("rubric", "levels") and (ranges := _ranges_in(value)):
        return {"levels": ranges}
    if key in ("levels", "scale", "anchors") and (texts := _paired(value)) and "response" not in value[0]:
        is_whole = all(type(each) is int for each in texts.values())
        return {"levels": {n: text for text, n in texts.items()}} if is_whole else {"choices": texts}
    if key in ("anchors", "examples") and isinstance(value, dict) and all(type(each) is int for each in value):
        return {"levels": value}
    if isinstance(value, int | float) and value < 0 and "weight" in (key, _field(key, keys)):
        return {"polarity": "penalty", "weight": -value}
    return _named(key, value, keys)


def _means(word: str, known: Mapping[str, dict[str, Any]] = _TYPES) -> dict[str, Any] | None:
    """Return the fields that *word* stands for, by default as the type of a criterion; None if it stands for none."""
    return next((means for words, means in known.items() if word in words.split()), None)


def _named(key: str, value: Any, keys: Collection[str]) -> dict[str, Any]:
    """Return the field that a *key* means by its name, or by a word for what it asks: `must_not: Shouts`."""
    means = None if key in keys else _means(key)
    severity = _means(str(value).lower(), _SEVERITIES) if key == "severity" else None
    own = {"criteria": {"rubric": {"criteria": value}}, "severity": severity}
    own |= dict.fromkeys(_TAGS, {"tags": [value]} if isinstance(value, str) else None)
    if (found := own.get(key)) is not None:
        return found
    if key in ("expects", "expect", "should") and isinstance(value, str):
        return {"text": value}
    if key in ("decision", "branches", "decide", "decides", "decision_tree") and isinstance(value, dict):
        return {"tree": value}
    means = {"answer": "unit"} if key == "scores" else {"weight": 0} if key in _SHOWN else means
    if means is not None and isinstance(value, str) and means.keys() & {"polarity", "required", "answer"}:
        return {"text": value, **means}
    if means is not None and value is True:
        return means or {key: value}
    return {_field(key, keys): value}


def _field(key: str, keys: Collection[str]) -> str:
    """Return the field of a criterion that a *key* is a word for; itself if it is for none."""
    return key if key in keys else name_in(word_cure("keys", "Criterion", key, keys)) or key


_CALLED = {"tool_called", "tool_call", "called", "tool", "calls", "tool_calls", "tools", "sequence"}
_CASES = {"ignore_case": True, "case_insensitive": True, "ignorecase": True, "case_sensitive": False}
"""What an option that is true says of capital letters."""


def _case_in(value: Mapping[Any, Any]) -> bool | None:
    """Return whether *value* ignores capital letters, where an option of it says so."""
    if isinstance(flags := value.get("flags"), str):
        return "i" in flags.lower() or None
    return next((_CASES[key] == said for key, said in value.items() if key in _CASES and isinstance(said, bool)), None)


def _in_check(value: Any, checks: Collection[str]) -> dict[str, Any]:
    """Return the fields that are meant by the *value* of a check; {} if none is."""
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(value, str) and (pattern := re.fullmatch("/(.+)/(i?)", value)):
        return {"check": {"matches": f"(?i){pattern[1]}" if pattern[2] else pattern[1]}}
    if isinstance(value, str):
        return {} if value == "is_json" else _check(value, None, checks)
    if isinstance(value, dict) and (rule := _order_in(value)):
        return {"check": {"run": rule}}
    if isinstance(value, dict) and len(value) == 2 and "threshold" in value:  # noqa: PLR2004 - a metric and its bar
        metric = next(key for key in value if key != "threshold")
        found = _check(metric, value[metric], checks).get("check", {})
        is_metric = "assertion" in found and isinstance(value[metric], str)
        return {"check": {"assertion": {**found["assertion"], "threshold": value["threshold"]}}} if is_metric else {}
    if isinstance(value, dict) and value.keys() == {"type", "value"}:
        return _check(str(value["type"]), value["value"], checks)
    if isinstance(value, dict) and len(value) == 2 and (case := _case_in(value)) is not None:  # noqa: PLR2004 - it and a check
        name, text = next(item for item in value.items() if item[0] not in (*_CASES, "flags"))
        if _CHECKS.get(name, name) == "matches":
            return {"check": {"matches": f"(?i){text}" if case else text}}
        return {"check": {name: {"text": text, "ignore_case": case}}}
    order = next((key for key in _ORDERED if isinstance(value, dict) and key in value), "")
    if order and (tools := [*_CALLED & value.keys()]) and len(value) == 2:  # noqa: PLR2004 - both
        order = "exact" if {order, value[order]} & {"exact", "strict"} else "in_order"
        return {"check": {"trajectory": {"tools": value[tools[0]], "order": order}}}
    return (
        _check(str(next(iter(value))), next(iter(value.values())), checks)
        if isinstance(value, dict) and len(value) == 1
        else {}
    )


_ORDERED = ("order", "in_order", "ordered", "exact", "strict")
_ORDERS = ("before", "after", "then", "needs")
_COUNTS: dict[str, str] = {
    **dict.fromkeys(("max", "at_most", "most", "max_calls", "limit"), "at_most"),
    **dict.fromkeys(("min", "at_least", "least", "min_calls"), "at_least"),
}


def _order_in(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the rule that *value* names by a call, and where it stands or how often; {} if it names none."""
    one = next((value[key] for key in ("call", "calls", "tool", "first") if key in value), None)
    word = next((key for key in (*_ORDERS, *_COUNTS) if key in value), "")
    same = {"same": value["same"]} if "same" in value else {}
    if len(value) != 2 + len(same) or not isinstance(one, str):
        return {}
    if word in _COUNTS and type(value[word]) is int:
        return {_COUNTS[word]: value[word], "of": one, **same}
    if word not in _ORDERS or not isinstance(value[word], str):
        return {}
    first, last = (value[word], one) if word in ("after", "needs") else (one, value[word])
    return ({"every": first, "then": last} if word == "then" else {"every": last, "needs": first}) | same


def _check(name: str, value: Any, checks: Collection[str]) -> dict[str, Any]:
    """Return the fields that are meant by a check with a *name* and its *value*; {} if none is."""
    if denied := re.fullmatch("(?:not?|never|must_not|without)[-_ ](.+)", name):
        any_of = "contains_any" if denied[1] == "contains" and isinstance(value, list) else denied[1]  # none of them
        found = _check(any_of, value, checks)
        return {**found, "polarity": "guard"} if found else {}
    if name in ("length", "words", "word_count", "word-count") and isinstance(value, dict):
        bounds = [_bound(f"{bound}_{name.replace('-', '_')}", most) for bound, most in value.items()]
        whole = value.keys() == {"min", "max"} and name != "length" and all(bounds)
        return {"check": _words(value)} if whole else bounds[0] if len(bounds) == 1 else {}
    if name in ("any_of", "all_of") and are_rows(value) and all([*each] == ["contains"] for each in value):
        return {"check": {f"contains_{name[:3]}": [each["contains"] for each in value]}}
    if name in _CALLED:
        return {"check": _call_in(value)}
    if re.fullmatch("is[-_]json|(json_?)?schema", name, re.IGNORECASE) and (value in (None, {}) or value is True):
        return {"check": "is_json"}
    if re.fullmatch("is[-_]json|(json_?)?schema", name, re.IGNORECASE) and isinstance(value, dict):
        return {"check": {"fits_schema": value}}
    if isinstance(value, str) and (metric := re.fullmatch("(rouge)([-_]?[nl1-9])?|bleu|gleu|meteor|levenshtein", name)):
        return {"check": {"assertion": {"type": "rouge-n" if metric[1] else name, "value": value}}}
    if name == "icontains" and isinstance(value, str):
        return {"check": {"contains": {"text": value, "ignore_case": True}}}
    if name == "contains" and isinstance(value, list):
        return {"check": {"contains_all": value}}
    own = {_CHECKS.get(name, name): value} if _CHECKS.get(name, name) in checks else None
    return {"check": own} if own else _bound(name.lower(), value)


def _call_in(value: Any) -> dict[str, Any]:
    """Return the check that a tool was called, as *value* has it, or so often, or that several were, in their order."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return {"trajectory": value}
    if isinstance(value, dict) and value and all(type(each) is int and each >= 0 for each in value.values()):
        return {"run": [rule for name, times in value.items() for rule in _counted(str(name), times)]}
    own = {"tool": "name", "function": "name", **dict.fromkeys(("args", "parameters", "input"), "arguments")}
    is_named = isinstance(value, dict)
    return {"calls": {own.get(key, key): each for key, each in value.items()} if is_named else value}


def _counted(name: str, times: int) -> list[dict[str, Any]]:
    """Return the rules that a tool is called so many *times*, or that all are, where *name* is a bound."""
    if name in _COUNTS:
        return [{_COUNTS[name]: times, "of": "*"}]
    return [{"at_least": times, "of": name}, {"at_most": times, "of": name}] if times else [{"never": name}]


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


def _scale_of(value: dict[Any, Any] | str) -> str:
    """Return the scale that an answer names, as `{min: 1, max: 5}` or `1-5`; '' if it names none."""
    ends = re.fullmatch(r"(\d{1,3})\s*(?:-|\.\.|to)\s*(\d{1,3})", value) if isinstance(value, str) else None
    return f"{ends[1]}..{ends[2]}" if ends else _scale_in(value) if isinstance(value, dict) else ""


def _scale_in(value: Mapping[Any, Any]) -> str:
    """Return the scale from the lowest to the highest whole number that *value* names, such as `1..5`; '' if none."""
    ends = [value[word] for words in (_LOW, _HIGH) for word in words.split() if word in value]
    return f"{min(ends)}..{max(ends)}" if [*map(type, ends)] == [int, int] else ""


def _values(key: str, value: Any, beside: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what the *value* of a *key* may mean in another form, with what stands *beside* it."""
    if key == "levels":
        yield from _levels(value)
    elif key == "choices":
        yield from _choices(value)
    elif key in ("answer", "polarity") and isinstance(value, str):
        means = None if value == "negative" else _means(value.lower())
        if means is not None and (key == "answer" or key in means):
            yield {"answer": "yes_no", **means}[key]
    elif key == "required" and value in ("yes", "no", "gate", "always", "never"):
        yield value not in ("no", "never")
    elif key == "anchors" and are_rows(value):
        own = dict.fromkeys(_REPLIES, "response") | dict.fromkeys(_SCORED, "score")
        own |= dict.fromkeys(("comment", "explanation", "rationale", "why", "note"), "reason")
        rows = [
            {own.get(word, word): int(each) if each in (True, False) else each for word, each in row.items()}
            for row in value
        ]
        low, high = _ends_of(beside.get("levels"))
        yield rows
        if high > low and all(type(row.get("score")) is int for row in rows):
            yield [{**row, "score": round((row["score"] - low) / (high - low), 4)} for row in rows]
    elif key == "min_score" and isinstance(value, int) and (ends := _ends_of(beside.get("levels"))) > (0, 0):
        yield round((value - ends[0]) / (ends[1] - ends[0]), 4)


def _levels(value: Any) -> Iterator[Any]:
    texts = (
        next((value[key] for key in ("labels", "texts", "descriptions", "anchors") if key in value), ())
        if isinstance(value, dict)
        else ()
    )
    if isinstance(texts, dict):
        yield texts
    ends = _ends_of(_scale_in(value)) if texts else (0, 0)
    if isinstance(texts, list) and ends > (0, 0) and len(texts) in (2, ends[1] - ends[0] + 1):
        numbers = ends if len(texts) == 2 else range(ends[0], ends[1] + 1)  # noqa: PLR2004 - those of both ends
        yield dict(zip(numbers, texts, strict=True))
    if isinstance(value, dict) and all(type(each) is int for each in value.values()):
        yield _scale_in(value) or {number: text for text, number in value.items()}
    if isinstance(value, dict) and all(len(re.findall(r"\d+", str(key))) == 1 for key in value):
        yield {int(re.findall(r"\d+", str(key))[0]): text for key, text in value.items()}  # `score1_description`
    if ranges := _ranges_in(value):
        yield ranges
    for each in conversions("levels", value):
        yield f"{each[0]}..{each[1]}" if isinstance(each, tuple) else each


def _ranges_in(value: Any) -> list[dict[str, Any]]:
    """Return the ranges of scores with their texts, in rows that have one of both, whatever they are called; or []."""
    rows = [sorted(row.values(), key=lambda each: isinstance(each, str)) for row in (value if are_rows(value) else ())]
    are_ranges = all([*map(type, row)] == [list, str] for row in rows)
    return [{"score_range": ends, "text": text} for ends, text in rows] if are_ranges else []


def _choices(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield {text: number for number, text in value.items()}
    pairs = [item for row in value for item in row.items()] if are_rows(value) else []
    if pairs:
        yield dict(pairs) if len(pairs) == len(value) else _paired(value)


def are_rows(value: Any) -> bool:
    """True if *value* is a list of mappings."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _paired(value: Any) -> dict[str, float] | None:
    """Return the texts in rows that have one and a number each, whatever they are called, with their numbers."""
    rows = [
        sorted(row.values(), key=lambda each: not isinstance(each, str)) for row in (value if are_rows(value) else ())
    ]
    is_paired = rows and all([type(each) for each in row] in ([str, int], [str, float]) for row in rows)
    return {row[0]: row[1] for row in rows} if is_paired else None


def _fits(read: Read, beside: Mapping[str, Any], key: str, value: object) -> bool:
    return reads(read, {**beside, key: value})


def reads(read: Read, data: Any) -> bool:
    token = _trying.set(True)  # else what is within it would be tried at each level anew
    try:
        read(data)
    except (DefinitionError, SeveralError, TypeError, ValueError):
        return False
    finally:
        _trying.reset(token)
    return True


def meant_tree(data: Any, read: Read) -> dict[Any, Any] | None:
    """Return the question with its branches that *data* is meant for, or None; *read* takes it."""
    tree = _tree_of(data)
    return tree if isinstance(tree, dict) and reads(read, tree) else None


def _tree_of(data: Any) -> Any:
    """Return the question with its branches that *data* seems to be: also one in a list, or in nodes by name."""
    data = data[0] if isinstance(data, list) and len(data) == 1 else data
    nodes = data.get("nodes") if isinstance(data, dict) else None
    start = next((data[key] for key in ("start", "root", "entry") if key in data), None) if nodes else None
    return _node(start, nodes, ()) if isinstance(nodes, dict) and start in nodes else _branch(data)


def _node(name: Any, nodes: Mapping[Any, Any], above: tuple[Any, ...]) -> Any:
    """Return the branch with a *name* among *nodes*, those that it names in their places; none stands in itself."""
    if not isinstance(name, str) or name not in nodes or name in above:
        return _branch(name)
    held = _branch(nodes[name])
    return (
        {key: each if key == "ask" else _node(each, nodes, (*above, name)) for key, each in held.items()}
        if isinstance(held, dict)
        else held
    )


def _branch(data: Any) -> Any:
    if isinstance(data, dict) and not {"score", "reason"} & data.keys():
        own = {word: key for key, words in _tree_words().items() for word in words}
        return {own.get(str(key).lower(), key): _branch(value) for key, value in data.items()}
    word = data if isinstance(data, bool) else {"pass": True, "fail": False}.get(str(data).lower(), data)
    return int(word) if isinstance(word, bool) else data
