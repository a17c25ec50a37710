"""The criterion or the tree that was meant by one in a file that cannot be read: all its mistakes mended at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, partial
from itertools import islice
from typing import Any, TypeVar

from rubric.errors import DefinitionError
from rubric.formats.document import KeyPath
from rubric.formats.fields import SeveralError, WrongKeyError, message_of, problems_of
from rubric.formats.json_values import each_text
from rubric.formats.native.checks import read_check
from rubric.formats.native.meant_checks import (
    CASES,
    assertion_keys,
    check_in,
    check_of,
    has_threshold,
    of_bounds,
    of_several,
)
from rubric.formats.native.meant_whole import has_all
from rubric.formats.yaml import on_a_line, short_line
from rubric.internals.conversions import conversions, meant_value
from rubric.internals.guesses import cures_in, metric_text, roles, table, word_cure
from rubric.values.criteria import Criterion

T = TypeVar("T")
Read = Callable[[Any], object]

_LOW, _HIGH = "min low minimum lowest from start min_value", "max high maximum highest to end max_value"
CONDITIONS = ("when", "run_if", "needs", "if", "condition", "only_if", "applies_if", "depends_on")
_EXCEPTIONS = ("unless", "skip_if", "except_when", "skip_when", "not_when", "exclude_if")
_WORTH = {"yes": 1, "no": 0, "pass": 1, "fail": 0, "true": 1, "false": 0, "True": 1, "False": 0}
_TAGS = ("category", "group", "section", "dimension", "area", "tag")
_SCORES = "scores values points score value weights"
_CURE = re.compile(
    r"; ([^;]*write|[^;]*such as|did you mean|allowed|add it|quote|take|give|make it|for a weight)\b.*", re.DOTALL
)
_ENDS = 2  # keys of a scale
_BOUND = r"(?:>=|at least) ?(\d+(?:\.\d+)?)"
_OTHER = re.compile("if the colon is in the text, .*", re.DOTALL)
"""The other thing that a text of one word, a colon and more may be."""

_LONGEST = 120  # what is said before the line


class _MeantError(DefinitionError):
    """A problem that is told with the line that was meant, or beside it."""

    is_whole = True  # no other cure is put after it


class _MeantKeyError(WrongKeyError):
    """Such a problem of a key."""

    is_whole = True


trying: ContextVar[bool] = ContextVar("trying", default=False)


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
    mended = None if trying.get() or is_told else meant(data)
    if mended is None or ({*names} <= mended.keys() and all(value in data.values() for value in mended.values())):
        return None
    if not (line := short_line(mended)):
        return None
    line += _also(found, mended, data)
    left = {path[0] for path, error in found if len(path) == 1 and "leave it out" in message_of(error)}
    typed = {key: each for key, each in data.items() if key not in left} if isinstance(data, dict) else data
    if not has_all(typed, line):
        return None
    return _with_line(found, data, mended, f"write {line}")


def _also(found: list[tuple[KeyPath, DefinitionError]], meant: dict[str, Any], data: Any) -> str:
    """Return what else may be meant, or is needed beside the line."""
    other = _OTHER.search(found[0][1].message)
    said = f", or {other[0]}" if other else ""
    said += _left_out(data)
    rows: Any = table()["also"]
    fitting = (row for row in rows if re.search(row["meant"], repr(meant)) and re.search(row["typed"], repr(data)))
    said += "".join(f", {row['says']}" for row in fitting)
    bounds = re.findall(r"output\.length (\S+) (\d+)", str(meant.get("check")))
    if bounds and re.search("(?i)len", str(data)):
        words = of_bounds([(sign, int(most)) for sign, most in bounds], are_words=True)
        said += f", or, of words, {on_a_line({**meant, **words})}"
    tree = meant.get("tree", {})
    given = {*data} if isinstance(data, dict) else set[Any]()
    if {*_EXCEPTIONS, *CONDITIONS} & given and not {"tree", "ask", "then", "yes", "no"} & given:
        no, yes = ("yes", "no") if tree.get("yes") == 1 else ("no", "yes")
        if tree.get(no) == 1:
            rest = {key: each for key, each in meant.items() if key != "tree"}
            rest["text"] = f"{tree[yes]['ask']}; if the answer to {tree['ask']!r} is {no}, it cannot be told"
            said += f", which counts as met where the first answer is {no}"
            said += f"; to leave it out there, {on_a_line({**rest, 'abstain': 'exclude'})}"
    if "tests" in given and (tests := _tests_in(data["tests"], meant)):
        said += f", and beside the criteria tests: {on_a_line(tests)}"
    own, whole = (data.get("criteria") if given else None), meant.get("rubric")
    if isinstance(own, list) and isinstance(whole, list) and len(whole) > len(own):
        said += f", or, in place of what all cases must hold, rubric: {on_a_line(whole[-len(own) :])}"
    if "'severity':" in repr(data) and "required" not in meant and meant.get("weight") == 0:
        said += ", or, to count it too, without the weight"
    if meant.get("polarity") == "penalty" != data.get("polarity"):
        said += ", and in the rubric aggregation: points"
    return said


def _left_out(data: Any) -> str:
    """Return what the line for *data*, a criterion of another system, has no key for, each with the reason."""
    typed = _flat(data, ()) if isinstance(data, dict) else {}
    left = {key: why for key, why in _template(typed).get("left", {}).items() if key in typed}
    held = {why: {key: typed[key] for key in left if left[key] == why} for why in left.values()}
    return "".join(f", without {on_a_line(each)[1:-1]}: {why}" for why, each in held.items())


def _tests_in(data: Any, meant: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tests of the rubric that are meant by replies beside a criterion, by their answers; [] if none are."""
    if not isinstance(data, dict) or not {str(key).lower() for key in data} <= _WORTH.keys() or "text" not in meant:
        return []
    id_ = meant.get("id") or Criterion(meant["text"]).id
    given = {key: held if isinstance(held, list) else [held] for key, held in data.items()}
    return [{"reply": each, "expects": {id_: bool(_WORTH[str(key).lower()])}} for key in given for each in given[key]]


def _with_line(
    found: list[tuple[KeyPath, DefinitionError]], data: Any, meant: dict[str, Any], line: str
) -> list[tuple[KeyPath, DefinitionError]]:
    told: list[tuple[KeyPath, DefinitionError]] = []
    keys = [*data] if isinstance(data, dict) else []
    at = {key: index for index, key in enumerate(keys)}
    for path, error in sorted(found, key=lambda each: at.get(each[0][0], 0) if each[0] else -1):  # as they stand
        cure = _CURE.search(whole := message_of(error))
        is_name = cure is not None and path and meant.get(name_in(cure[0]), ...) == data.get(path[0])
        if told and "; " not in _CURE.sub("", whole):  # which the line mends
            continue
        said = (whole if is_name else _CURE.sub("", whole)).partition(" There, ")[0]
        said = said if len(said) < _LONGEST else said.partition("; ")[0]
        end = "" if told else f" W{line[1:]}" if said[-1] == "?" else f"; {line}"
        kind = _MeantKeyError if isinstance(error, WrongKeyError) else _MeantError
        told.append((path, kind("", said + end)))
    return told


def name_in(cure: str) -> str:
    found = re.search(r"; did you mean '(\w+)'", cure)
    return found[1] if found else ""


def meant_criterion(data: Any, read: Read, keys: Collection[str]) -> dict[str, Any] | None:
    """
    Return the mapping that *data* is meant for, or None; *read* takes it.

    Args:
        data: What stands for a criterion.
        read: Reads a criterion, or raises.
        keys: Those that a criterion has.
    """
    if not isinstance(data, dict):
        return None
    found = dict[str, Any]()
    rest = _flat(data, keys)
    for part in [*_together(rest, keys), *(_alone(key, value, keys) for key, value in rest.items())]:
        merged = _merged(found, part) if part.keys() & found.keys() else part
        if not merged and part:
            return None
        found |= merged
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


def _flat(data: Mapping[Any, Any], keys: Collection[str]) -> dict[str, Any]:
    """Return what *data* holds, with what stands under its settings, and a group of criteria by its name."""
    rest = {"type" if key == "expectation_type" else str(key): value for key, value in data.items()}
    for key in [each for each in rest if _is_group(each, rest, keys)]:
        rest["criteria"] = rest.pop(key)
    named = [{"type": key, **held} for key, held in rest.items() if isinstance(held, dict) and len(rest) == 1]
    rest = next(filter(_template, named), rest)
    for key in ("config", "settings", "kwargs", "feedback_config"):
        if isinstance(held := rest.get(key), dict) and not held.keys() & rest.keys():
            rest |= rest.pop(key)
    return rest


def _is_group(key: str, rest: Mapping[str, Any], keys: Collection[str]) -> bool:
    """True if *key* is a word for the criteria of a group, and not for a field of a criterion."""
    is_free = key not in keys and "criteria" not in rest and isinstance(rest[key], list)
    is_word = is_free and name_in(word_cure("keys", "Rubric", key, ["criteria"])) == "criteria"
    return is_word and not word_cure("keys", "Criterion", key, keys) and not check_of(key, rest[key])


def _with_text(found: dict[str, Any], data: dict[Any, Any], keys: Collection[str]) -> dict[str, Any]:
    """Return the fields *found* in *data* with a text, where its one key, or its first question, is one; or {}."""
    if "tree" in found:
        tree = _tree_of(given := found["tree"])
        words = [given.get(key) for key in _tree_words()["ask"]] if isinstance(given, dict) else []
        words += [tree.get("ask")] if isinstance(tree, dict) else []
        asked = next((each for each in words if isinstance(each, str)), "")
        return ({"text": asked} if asked else {}) | {**found, "tree": tree}
    is_asked = " " in str(found.get("id", "")) or ("id" in found and found.keys() & {"levels", "choices"})
    if is_asked and not found.keys() & {"text", "check", "rubric"}:
        found = {"text": found.pop("id"), **found}  # a name of several words, or of what a scale is for
    if len(data) > 1 or found.keys() & {"text", "check", "rubric", "tree"}:
        return found
    ((name, value),) = data.items()
    if name in keys or word_cure("keys", "Criterion", name, keys):  # which lacks a scale, a tree, or what is checked
        return {}
    return {"id": name, "text": value} if isinstance(value, str) else {"text": name, "weight": value}


def _merged(found: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Return both metadata, or texts of levels whose ends the other of *found* and *part* names; {} if they differ."""
    if part.keys() == {"metadata"} and isinstance(part["metadata"], dict) and isinstance(found["metadata"], dict):
        return {"metadata": {**found["metadata"], **part["metadata"]}}
    given = [found.get("levels"), part.get("levels")]
    texts = [each for each in given if isinstance(each, dict) and all(type(key) is int for key in each)]
    ends = [each for each in given if each not in texts and part.keys() == {"levels"}]
    is_one = texts and ends and _ends_of(ends[0]) == (min(texts[0]), max(texts[0]))
    return {"levels": texts[0]} if is_one else {}


def _ends_of(levels: Any) -> tuple[int, int]:
    if are_rows(levels) and all(isinstance(each.get("score_range"), list) for each in levels):
        levels = dict.fromkeys(end for each in levels for end in each["score_range"])
    if isinstance(levels, dict) and levels and all(type(key) is int for key in levels):
        return min(levels), max(levels)
    found = re.fullmatch(r"\D*(\d+)\D+(\d+)\D*", str(levels))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _together(rest: dict[str, Any], keys: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the fields that some keys stand for together, and take them out of the *rest*."""

    def take(words: str) -> Any:
        return next((rest.pop(word) for word in words.split() if word in rest and word not in keys), None)

    if row := _template(rest):
        typed = {key: rest.pop(key, None) for key in (*row["keys"], *row.get("left", ()))}
        fields = each_text(row["means"], lambda text: _without_slots(typed[text[1:]]) if text[:1] == "$" else text)
        yield {**fields, **(check_in(fields["check"]) if "check" in fields else {})}
    yield from _typed(rest, take)
    yield from _steps_in(rest, take)
    yield from _beside_scale(rest, take)
    option = next((key for key in CASES if isinstance(rest.get(key), bool)), "")
    if option and isinstance(rest.get("check"), dict) and len(rest["check"]) == 1:
        yield check_in({**rest.pop("check"), option: rest.pop(option)})
    if scale := _scale_in(rest):
        for ends in (_LOW, _HIGH):
            take(ends)
        yield {"levels": scale}
    for key in ("choices", "options", "labels", "categories"):
        labels = rest.get(key)
        if isinstance(labels, list) and isinstance(passing := take("passing_labels pass_labels"), list):
            rest["scores"] = [int(label in passing) for label in labels]
        if isinstance(labels, list) and isinstance(scores := take(_SCORES), list):
            is_paired = len(scores) == len(rest.pop(key))
            yield {"choices": dict(zip(map(str, labels), scores, strict=True)) if is_paired else None}
    yield from filter(None, (_tree_in(rest), _group_in(rest)))
    if (points := take("penalty deduction")) not in (None, False):
        yield {"polarity": "penalty", **({} if points is True else {"weight": points})}


def _beside_scale(rest: dict[str, Any], take: Callable[[str], Any]) -> Iterator[dict[str, Any]]:
    """Yield the examples, and the lowest score that passes, that stand beside a scale; they leave the *rest*."""
    scaled = {"scale", "levels", "range", "likert", "stars"} & rest.keys()
    texts = next((key for key in ("descriptions", "descriptors") if isinstance(rest.get(key), list)), "")
    for key in ("likert", "stars"):
        if type(rest.get(key)) is int and rest[key] > 1:
            rest[key] = f"1..{rest[key]}"
    if scaled and texts and (ends := _ends_of(rest[key := next(iter(scaled))])) > (0, 0):
        rest[key] = {"min": ends[0], "max": ends[1], "labels": rest.pop(texts)}
    if scaled and are_rows(rest.get("anchors")):  # examples, where alone they are its levels
        yield {"anchors": rest.pop("anchors")}
    bar = next((rest[key] for key in _LOW.split() if key in rest), None)
    if (scaled or "anchors" in rest) and not _scale_in(rest) and isinstance(bar, int | float):
        take(_LOW)
        yield {"min_score": bar}


def _steps_in(rest: dict[str, Any], take: Callable[[str], Any]) -> Iterator[dict[str, Any]]:
    """Yield the text that steps of an evaluation are; they, and tests, which are told beside it, leave the *rest*."""
    steps = next((rest[key] for key in ("evaluation_steps", "steps") if key in rest), None)
    if isinstance(steps, list) and all(isinstance(each, str) for each in steps):
        take("evaluation_steps steps")
        first = [rest.pop(key) for key in ("text", "criteria") if isinstance(rest.get(key), str)]
        yield {"text": " ".join(each if each.rstrip()[-1:] in ".!?" else f"{each}." for each in (*first, *steps))}
    if isinstance(rest.get("tests"), dict):
        del rest["tests"]


def _template(rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of the table for a criterion of another system with the keys of *rest*; {} if there is none."""

    def fits(key: str, words: str) -> bool:
        typed = str(rest.get(key, "")).lower().strip("[]").replace(" ", "")
        is_slot = "{{" in typed and key != "input"  # what a check looks for is no text for a judge
        return key in rest and not is_slot and (not words or typed in words.split())

    rows: Any = table()["templates"]
    return next((row for row in rows if all(map(fits, row["keys"], row["keys"].values()))), {})


_GIVEN = {"output": "the reply", "input": "the question", "reference": "the reference"}


def _without_slots(value: Any) -> Any:
    """Return the texts in *value*, also in its messages, with words for what the judge is shown in place of slots."""
    if are_rows(value) and all("content" in each for each in value):
        value = "\n\n".join(str(each["content"]) for each in value)

    def words_for(slot: re.Match[str]) -> str:
        names = [field_of("Case", name, _GIVEN) for name in re.split("[._]", slot[1])]
        return next((_GIVEN[name] for name in names if name in _GIVEN), slot[0])

    return re.sub(r"\{\{\s*([\w.]+)\s*\}\}", words_for, value) if isinstance(value, str) else value


def _typed(rest: dict[str, Any], take: Callable[[str], Any]) -> Iterator[dict[str, Any]]:
    """Yield the fields that a type names, with what stands beside it; they are taken out of the *rest*."""
    kind = rest.pop("check") if isinstance(rest.get("check"), str) and "value" in rest else take("type kind")
    named = [key for key in ("metric", "scorer", "evaluator") if metric_text(str(rest.get(key, "")).replace("-", "_"))]
    kind = rest.pop(named[0]) if kind is None and named and "text" not in rest else kind
    if isinstance(kind, str) and {"value", "threshold"} <= rest.keys() and has_threshold(kind):
        yield check_in({kind: rest.pop("value"), "threshold": rest.pop("threshold")})
    elif isinstance(kind, str) and (fields := check_of(kind.lower(), rest.get("value"))):
        rest.pop("value", None)
        held: Any = fields["check"].get("assertion", {}) if isinstance(fields.get("check"), dict) else {}
        for each in sorted(assertion_keys(held["type"]) & rest.keys()) if held else ():
            held[each] = rest.pop(each)
        yield fields
    elif kind is not None:
        means = _means(str(kind).lower())
        if means is not None and "text" not in rest and isinstance(rest.get("value"), str):
            yield {"text": rest.pop("value")}
        if "text" not in rest and (text := metric_text(str(kind).replace("-", "_"))):
            means = {"text": text}
        yield {"type": kind} if means is None else means


@cache
def _tree_words() -> dict[str, list[str]]:
    """Return the keys of a question, each with itself and the other words for it."""
    return {key: [key, *words] for key, words in cures_in("keys", "DecisionTree") if " " not in key}


def _group_in(rest: dict[str, Any]) -> dict[str, Any]:
    """Return the id that a word for a group of criteria, or for the metric of a text, names; {} if none does."""
    names = _TAGS if "criteria" in rest else ("metric",)
    group = next((key for key in names if isinstance(rest.get(key), str)), "")
    return {"id": rest.pop(group)} if group and "id" not in rest else {}


def _is_asked(condition: object) -> bool:
    """True if *condition* is a sentence that a judge can be asked, and no expression over variables."""
    code = r"[=!<>]=|\{\{|\$\{|\b\w+\.\w+\b|^\w+\(|^(contains|regex|matches|tool_called)\b"
    return " " in str(condition) and re.search(code, str(condition)) is None


_HELD = re.compile(r"""(not )?(?:contains\(\s*[\w.]+\s*,\s*)?(['"])([^'"]+)\2\s*(?:\)|(not )?in [\w.]+)""")
"""A condition that a text is in the reply, as in a workflow."""


def _when_in(rest: dict[str, Any]) -> dict[str, Any]:
    """Return the condition by code that another word than `when` holds, or that is negated; {} if none is."""
    for key in (*CONDITIONS, *_EXCEPTIONS):
        held, is_not = rest.get(key), key in _EXCEPTIONS
        if said := _HELD.fullmatch(held) if isinstance(held, str) else None:
            held, is_not = {"contains": said[3]}, is_not != bool(said[1] or said[4])
        while isinstance(held, dict) and len(held) == 1:
            ((word, value),) = held.items()
            bare = re.sub(
                "^(?:not|none)[_-]?(?:of)?|^(excludes|lacks|without)$", lambda m: "contains" * bool(m[1]), word
            )
            is_not = is_not != (bare != word)
            if name := field_of("When", bare, ("contains", "regex", "tool_called")) * bool(bare):
                del rest[key]
                return {"when": {name: value, **({"negated": True} if is_not else {})}}
            held = value
    return {}


def _tree_in(rest: dict[str, Any]) -> dict[str, Any]:
    """Return the tree of questions that stands beside a text, or whose first question is a condition; {} if none."""
    own = {key: next((each for each in words if each in rest), "") for key, words in _tree_words().items()}
    if all(own.values()) and isinstance(asked := rest[own["ask"]], str) and "tree" not in rest:
        tree = {key: _branch(rest.pop(each)) for key, each in own.items()}
        return {"text": rest.pop("text", asked), "tree": tree}
    text = rest.get("text")
    if when := _when_in(rest):
        return when
    if isinstance(rest.get("when"), str):
        rest["if"] = rest.pop("when")
    unless = next((key for key in _EXCEPTIONS if key in rest), "")
    asked = rest.get(unless)
    if isinstance(text, str) and isinstance(asked, str) and _is_asked(asked):
        del rest[unless]
        return {"tree": {"ask": asked, "yes": 1, "no": {"ask": text, "yes": 1, "no": 0}}}
    asked = next((rest[key] for key in CONDITIONS if _is_asked(rest.get(key))), None)
    if not isinstance(asked, str) or not isinstance(text, str):
        return {}
    for key in CONDITIONS:
        rest.pop(key, None)
    return {"tree": {"ask": asked, "yes": {"ask": text, "yes": 1, "no": 0}, "no": 1}}


def _alone(key: str, value: Any, keys: Collection[str]) -> dict[str, Any]:
    """Return the field, or the fields, that a *key* with its *value* stands for."""
    if key not in keys and isinstance(value, list) and (many := re.fullmatch("(any|all|none)(?:_of|Of)", key)):
        rows = [{"text": each, "polarity": "guard"} for each in value] if many[1] == "none" else value
        return of_several(rows, is_all=many[1] != "any", are_checks=False)
    if key not in keys and (fields := check_of(key, value)):
        return fields
    if key in ("check", "assert", "assertion"):
        return check_in(value) or {"check": value}
    if scale := _scaled(key, value, keys):
        return scale
    if isinstance(value, int | float) and value < 0 and "weight" in (key, field_of("Criterion", key, keys)):
        return {"polarity": "penalty", "weight": -value}
    return _named(key, value, keys)


def _scaled(key: str, value: Any, keys: Collection[str]) -> dict[str, Any]:
    """Return the scale, and what passes on it, that a *key* with its *value* stands for; {} if it stands for none."""
    if key == "answer" and isinstance(value, dict | str) and (scale := _scale_of(value)):
        return {"levels": scale}
    if key in ("rubric", "levels") and (ranges := _ranges_in(value)):
        return {"levels": ranges}
    if key in ("levels", "scale", "anchors") and (texts := _paired(value)) and "response" not in value[0]:
        is_whole = all(type(each) is int for each in texts.values())
        return {"levels": {n: text for text, n in texts.items()}} if is_whole else {"choices": texts}
    if key in ("anchors", "examples") and isinstance(value, dict) and all(type(each) is int for each in value):
        return {"levels": value}
    if isinstance(value, str) and re.fullmatch(_BOUND, value):
        return {"min_score": value} if field_of("Criterion", key, keys) in ("required", "min_score") else {}
    if not isinstance(value, dict):
        return {}
    if key == "required" and len(value) == 1 and {*value} <= {"at_least", *_LOW.split()}:
        return {"min_score": next(iter(value.values()))}
    bars = [each for word, each in value.items() if field_of("Criterion", str(word), keys) == "min_score"]
    is_scale = key in ("levels", "scale", "range") and len(value) == _ENDS + 1
    if is_scale and len(bars) == 1 and (scale := _scale_in(value)):
        return {"levels": scale, "min_score": bars[0]}
    is_scored = key in ("scores", "score", "scoring") and all(isinstance(each, str) for each in value)
    return {"choices": value} if is_scored else {}


def _means(word: str, known: str = "types") -> dict[str, Any] | None:
    """Return the fields that *word* stands for, by default as the type of a criterion; None if it stands for none."""
    return next((means for words, means in table()[known].items() if word in words.split()), None)


def _named(key: str, value: Any, keys: Collection[str]) -> dict[str, Any]:
    """Return the field that a *key* means by its name, or by a word for what it asks: `must_not: Shouts`."""
    means = None if key in keys else _means(key)
    severity = _means(str(value).lower(), "severities") if key == "severity" else None
    own = {"criteria": {"rubric": {"criteria": value}} if isinstance(value, list) else None, "severity": severity}
    own |= dict.fromkeys(_TAGS, {"tags": [value]} if isinstance(value, str) else None)
    if (found := own.get(key)) is not None:
        return found
    cure = "" if key in keys else word_cure("keys", "Criterion", key, keys)
    if cure.endswith("; leave it out") or "metadata: {" in cure:  # which is told of the key
        return {"metadata": {key: value}} if "metadata" in cure else {}
    if key in ("expects", "expect", "should", "criteria") and isinstance(value, str):
        return {"text": value}
    if key in ("decision", "branches", "decide", "decides", "decision_tree") and isinstance(value, dict):
        return {"tree": value}
    means = {"answer": "unit"} if key == "scores" else means
    if means is not None and isinstance(value, str) and means.keys() & {"polarity", "required", "answer"}:
        return {"text": value, **means}
    if means is not None and value is True:
        return means or {key: value}
    return {field_of("Criterion", key, keys): value}


def field_of(owner: str, key: str, keys: Collection[str]) -> str:
    """Return the field of *owner*, one of *keys*, that a *key* is a word for; itself if it is for none."""
    return key if key in keys else name_in(word_cure("keys", owner, key, keys)) or key


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
        yield from _anchors(value, *_ends_of(beside.get("levels")))
    elif key == "min_score" and (found := re.fullmatch(_BOUND + r"|(\d+(?:\.\d+)?)", str(value))):
        number, ends = float(found[1] or found[2]), _ends_of(beside.get("levels"))
        yield round((number - ends[0]) / (ends[1] - ends[0]), 4) if ends > (0, 0) and number % 1 == 0 else number


def _anchors(value: list[dict[Any, Any]], low: int, high: int) -> Iterator[list[dict[Any, Any]]]:
    """Yield the examples in *value* by our keys, as they are scored, and with scores from *low* to *high* as shares."""
    own, rows = roles("replies"), list[dict[Any, Any]]()
    for row in value:
        worth = {word: _WORTH.get(str(each), each) for word, each in row.items()}
        rows.append({"score" if str(row[word]) in _WORTH else own.get(word, word): worth[word] for word in row})
    if [*map(len, rows)] == [*map(len, value)]:
        yield rows
        if high > low and all(type(row.get("score")) is int for row in rows):
            yield [{**row, "score": round((row["score"] - low) / (high - low), 4)} for row in rows]


def _levels(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        scale = _scale_in(value)
        texts = next((value[key] for key in ("labels", "texts", "descriptions", "anchors") if key in value), ())
        if isinstance(texts, dict):
            yield texts
        low, high = _ends_of(scale) if texts else (0, 0)
        if isinstance(texts, list) and high > 0 and len(texts) in (_ENDS, high - low + 1):
            numbers = (low, high) if len(texts) == _ENDS else range(low, high + 1)
            yield dict(zip(numbers, texts, strict=True))
        if all(type(each) is int for each in value.values()) and (not scale or len(value) == _ENDS):
            yield scale or {number: text for text, number in value.items()}
        numbered = {key: re.findall(r"\d+", str(key)) for key in value}  # `score1_description`
        if all(len(found) == 1 for found in numbered.values()):
            yield {int(numbered[key][0]): text for key, text in value.items()}
    if ranges := _ranges_in(value):
        yield ranges
    for each in conversions("levels", value):
        yield f"{each[0]}..{each[1]}" if isinstance(each, tuple) else each


def _choices(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield {text: number for number, text in value.items()}
    pairs = [item for row in value for item in row.items()] if are_rows(value) else []
    if pairs:
        yield dict(pairs) if len(pairs) == len(value) else _paired(value)


def are_rows(value: Any) -> bool:
    """True if *value* is a list of mappings."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _paired(value: Any) -> dict[str, float]:
    """Return the texts in rows that have one and a number each, with their numbers; or {}."""
    return dict(_pairs(value, int, float))


def _ranges_in(value: Any) -> list[dict[str, Any]]:
    """Return the ranges of scores with their texts, in rows that have one of both; or []."""
    return [{"score_range": ends, "text": text} for text, ends in _pairs(value, list)]


def _pairs(value: Any, *kinds: type) -> list[Any]:
    """Return text and value, of one of *kinds*, of rows that have both, whatever these are called; [] for others."""
    rows = [sorted(row.values(), key=lambda each: type(each) is not str) for row in value] if are_rows(value) else []
    return rows if all([*map(type, row)] in [[str, kind] for kind in kinds] for row in rows) else []


def _fits(read: Read, beside: Mapping[str, Any], key: str, value: object) -> bool:
    return reads(read, {**beside, key: value})


def reads(read: Read, data: Any) -> bool:
    token = trying.set(True)  # else what is within it would be tried at each level anew
    try:
        read(data)
    except (DefinitionError, SeveralError, TypeError, ValueError):
        return False
    finally:
        trying.reset(token)
    return True


def meant_tree(data: Any, read: Read) -> dict[Any, Any] | None:
    """Return the question with its branches that *data* is meant for, or None; *read* takes it."""
    tree = _tree_of(data)
    return tree if isinstance(tree, dict) and reads(read, tree) else None


def _tree_of(data: Any) -> Any:
    """Return the question with its branches that *data* seems to be: also one in a list, or in nodes by name."""
    data = data[0] if isinstance(data, list) and len(data) == 1 else data
    if are_rows(data) and len(data[-1]) == 1:  # if, elif, else
        *first, last = map(_branch, data)
        whole = last.get("no") if isinstance(last, dict) else None
        for each in reversed(first):
            whole = {**each, "no": whole} if isinstance(each, dict) and "no" not in each else None
        return data if whole is None else whole
    nodes = data.get("nodes") if isinstance(data, dict) else None
    start = next((data[key] for key in ("start", "root", "entry") if key in data), None) if nodes else None
    return _node(start, nodes, ()) if isinstance(nodes, dict) and start in nodes else _branch(data)


def _node(name: Any, nodes: Mapping[Any, Any], above: tuple[Any, ...]) -> Any:
    """Return the branch with a *name* among *nodes*, those that it names in their places; none stands in itself."""
    if not isinstance(name, str) or name not in nodes or name in above:
        return _branch(name)
    held = _branch(nodes[name])
    if not isinstance(held, dict):
        return held
    return {key: each if key == "ask" else _node(each, nodes, (*above, name)) for key, each in held.items()}


_ASKED = "Is this so: it "
_BRANCHES = ("answers", "options", "choices", "cases", "branches", "values", "switch")


def _question_in(check: Any) -> tuple[str, bool]:
    """Return the question by which a judge answers what a *check* decides, and whether it is negated; '' if none."""
    fields = {"check": check, **check_in(check)}
    with suppress(DefinitionError, SeveralError):
        return "" if "rubric" in fields else f"{_ASKED}{read_check(fields['check'])}?", "polarity" in fields
    return "", False


def _branch(data: Any) -> Any:
    if isinstance(data, dict) and not {"score", "reason"} & data.keys():
        own = {word: key for key, words in _tree_words().items() for word in words}
        named = {own.get(str(key).lower(), key): value for key, value in data.items()}
        node = {key: _branch(value) if key in ("yes", "no", *_BRANCHES) else value for key, value in named.items()}
        for key in _BRANCHES:  # as rows of a label and a branch, with the branch for all else beside them
            rows: Any = node.get(key)
            if are_rows(rows) and all(len(row) == len(("when", "then")) for row in rows):
                left = {"else": node.pop("no")} if "no" in node else {}
                node[key] = {str(label): _branch(each) for label, each in (row.values() for row in rows)} | left
        key = next((key for key in _BRANCHES if isinstance(node.get(key), dict) and "ask" in node), "")
        branches: dict[Any, Any] = node.pop(key, {})
        if branches.keys() <= {"yes", "no"}:
            node |= branches
        elif len(branches) > 1 and node.keys() == {"ask"}:
            *first, (label, whole) = branches.items()
            other = "" if label in ("other", *_tree_words()["no"]) else f" (and not {label!r})"
            for label, each in reversed(first):
                whole, other = {"ask": f"{node['ask']} Is it {label!r}{other}?", "yes": each, "no": whole}, ""
            return whole
        rest = {key: each for key, each in node.items() if key not in ("yes", "no")}
        if len(rest) == 1 and not isinstance(rest.get("ask"), str):
            asked, is_negated = _question_in(next((rest[key] for key in ("ask", "check") if key in rest), rest))
            if asked:
                ends = {"no": "yes", "yes": "no"} if is_negated else {"yes": "yes", "no": "no"}
                node = {"ask": asked, **{key: node[end] for key, end in ends.items() if end in node}}
        return node
    word = data if isinstance(data, bool) else {"pass": True, "fail": False}.get(str(data).lower(), data)
    return int(word) if isinstance(word, bool) else data
