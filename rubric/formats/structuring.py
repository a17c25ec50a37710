"""From plain data to nouns: what a rubric file may say, noun by noun."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from rubric.answers import Answer, Choice, Choices, Levels, ScoreRange, Unit, YesNo
from rubric.checks import (
    Calls,
    Check,
    Contains,
    ContainsAll,
    ContainsAny,
    EndsWith,
    Equals,
    FitsSchema,
    IsJSON,
    Matches,
    Script,
    StartsWith,
    Unsupported,
)
from rubric.criteria import Anchor, Criterion, When
from rubric.errors import DefinitionError
from rubric.formats.converters import (
    KEYS,
    Gathering,
    WrongKeyError,
    as_dict,
    as_list,
    converter,
    cure,
    reader_of,
    wanted,
)
from rubric.mappings import FrozenMap
from rubric.rubrics import Rubric, check_gate, check_weights
from rubric.scales import Boolean, Letter, Likert, Scale, UnitScale
from rubric.showing import shorten
from rubric.trees import DecisionTree, Leaf
from rubric.validating import check_number, check_text, suggest

__all__ = ["ANSWERS", "KINDS", "words_of"]

T = TypeVar("T")

KINDS = ("criteria", "text", "tree")
"""The keys of which a rubric has one."""

_PLAIN = re.compile(r"(-?\d{1,16})\.\.(-?\d{1,16})", re.ASCII)
"""How levels without bands are written."""


# -- free data: metadata, schemas, arguments ------------------------------------------------------


def read_free(data: Any) -> FrozenMap:
    """Return a mapping of the author's own; all its keys are texts."""
    _check_keys(as_dict(data, "a mapping"))
    return FrozenMap(data)


def _check_keys(data: Any) -> None:
    gathering = Gathering(FrozenMap)
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        with gathering.at(key):
            if isinstance(data, dict):
                _check_key(key)
            _check_keys(value)
    gathering.finish()


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise WrongKeyError("", f'expected text as a key, got {key!r}; quote it: "{str(key).lower()}"')


# -- answers --------------------------------------------------------------------------------------


def read_named_answer(data: Any) -> Answer:
    """Return what `answer:` says: `yes_no`, `unit` or `{unit: {flag: true}}`."""
    if isinstance(data, dict) and [*data] == ["unit"]:
        gathering = Gathering(Unit)
        unit = Unit()
        with gathering.at("unit"):
            unit = _read_unit(data["unit"])
        gathering.finish()
        return unit
    return _named(data, _NAMED_ANSWERS, "{unit: {flag: true}}")


_NAMED_ANSWERS: dict[str, Callable[[], Answer]] = {"yes_no": YesNo, "unit": Unit}
_NAMED_SCALES: dict[str, Callable[[], Scale]] = {"unit": UnitScale, "boolean": Boolean, "letter": Letter}


def _named(data: Any, names: dict[str, Callable[[], T]], other: str) -> T:
    if isinstance(data, str) and data in names:
        return names[data]()
    allowed = f"{', '.join(names)} or {other}"
    raise wanted(allowed, data)


def read_levels(data: Any) -> Levels:
    """Return levels: a mapping from scores to texts, a list of `{score_range, text}`, or a plain scale, `0..10`."""
    if isinstance(data, str) and (plain := _PLAIN.fullmatch(data.strip())):
        return _unnamed(lambda ends: Levels(ScoreRange(*ends)), map(int, plain.groups()))
    if isinstance(data, list):
        return _unnamed(Levels, _read_all(data, ScoreRange, _read_range))
    bands = as_dict(data, "a mapping from scores to texts, a list of {score_range, text}, or 0..10")
    gathering = Gathering(Levels)
    for score, text in bands.items():
        with gathering.at(score):
            read_text(text)
    gathering.finish()
    if not bands:
        raise DefinitionError("", "expected levels, got none; write 0..10 for a scale without texts")
    return _unnamed(Levels, bands)


def _read_range(data: Any) -> ScoreRange:
    band = dict(as_dict(data, "a mapping with score_range and text"))
    gathering = Gathering(ScoreRange)
    with gathering.at("score_range"):
        ends = as_list(band.pop("score_range", None), "a list of the lowest and the highest score")
        if len(ends) != 2:  # noqa: PLR2004
            raise wanted("the lowest and the highest score", ends)
        band = {"low": ends[0], "high": ends[1], **band}
    gathering.finish()
    return _read_band(band)


def read_choices(data: Any) -> Choices:
    """Return choices: a mapping from labels to scores, or a list of `{label, score, text}`."""
    if isinstance(data, list):
        return _unnamed(Choices, _read_all(data, Choice, _read_choice))
    labels = as_dict(data, "a mapping from labels to scores, or a list of {label, score, text}")
    gathering = Gathering(Choices)
    for label, score in labels.items():
        with gathering.at(label):
            _check_key(label)
            check_number("", score, 0, 1)
    gathering.finish()
    return _unnamed(Choices, labels)


def _unnamed(build: Callable[[Any], T], data: Any) -> T:
    """Build a noun of one field that has no key of its own in files."""
    try:
        return build(data)
    except DefinitionError as problem:
        raise DefinitionError("", problem.message) from None


def _read_all(data: Any, what: type[T], read: Callable[[Any], T]) -> list[T]:
    gathering = Gathering(what)
    items = []
    for index, item in enumerate(as_list(data, f"a list of {what.__name__.lower()}s")):
        with gathering.at(index):
            items.append(read(item))
    gathering.finish()
    return items


def read_branch(data: Any) -> DecisionTree | Leaf:
    """Return what follows an answer in a tree: a question, a score, or `{score, reason}`."""
    if isinstance(data, dict):
        return _read_leaf(data) if "score" in data or "reason" in data else read_tree(data)
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise wanted("a score from 0 to 1, {score, reason}, or a question {ask, yes, no}", data)
    check_number("", data, 0, 1)
    return Leaf(data)


def read_tree(data: Any) -> DecisionTree:
    """Return a question with its branches; true and false stand for yes and no, as YAML 1.1 had it."""
    node = as_dict(data, "a question {ask, yes, no}")
    for boolean, name in ((True, "yes"), (False, "no")):
        if any(key is boolean for key in node) and name not in node:
            node = {(name if key is boolean else key): value for key, value in node.items()}
    return _read_question(node)


def read_check(data: Any) -> Check:
    """Return what code decides: `is_json`, or one check by its name, such as `{contains: ...}`."""
    if data == "is_json":
        return IsJSON()
    checks = as_dict(data, f"is_json, or a mapping with one of {', '.join(CHECKS)}")
    gathering = Gathering(Check)
    found: list[Check] = []
    for position, (name, value) in enumerate(checks.items()):
        with gathering.at(name):
            if name not in CHECKS:
                raise WrongKeyError("", f"no such check{suggest(str(name), [*CHECKS, 'is_json'])}")
            if position:
                raise WrongKeyError("", "a criterion has one check; make it a criterion of its own")
            found.append(CHECKS[name](value))
    gathering.finish()
    if not found:
        raise DefinitionError("", f"expected a check, got none; allowed: {', '.join(CHECKS)}, is_json")
    return found[0]


def _bare_or(read: Callable[[Any], Any], key: str) -> Callable[[Any], Any]:
    return lambda data: read(data if isinstance(data, dict) else {key: data})


def _read_schema(data: Any) -> FitsSchema:
    return FitsSchema(read_free(data))


# -- criteria and rubrics -------------------------------------------------------------------------


def words_of(answer: Answer) -> str:
    """Return the text of a criterion that has none of its own; only checks and rubrics need none."""
    if isinstance(answer, Check):
        return str(answer)
    if isinstance(answer, Rubric):
        return answer.name if answer.name.strip() else shorten(answer.text, 80) or "included"
    return ""


def read_when(data: Any) -> When | None:
    """Return the condition under which a criterion applies."""
    if data is None:
        return None
    given = [key for key in as_dict(data, _CONDITION) if key in KEYS[When].values()]
    if len(given) > 1 or not data:
        raise wanted(_CONDITION, " and ".join(given) or None)
    return _read_when(data)


_CONDITION = "a mapping with one of contains, regex, tool_called"


def read_criterion(data: Any) -> Criterion:
    """Return one criterion: its text, or a mapping."""
    if isinstance(data, str):
        data = {"text": data}
    given = as_dict(data, "a criterion (its text, or a mapping)")
    gathering = Gathering(Criterion)
    answer: Answer = YesNo()
    answers = [key for key in given if key in ANSWERS]
    for key in answers:
        with gathering.at(key):
            if key != answers[0]:
                raise WrongKeyError("", f"a criterion has one answer, and here is {answers[0]} too; keep one of them")
            answer = ANSWERS[key](given[key])
    rest = {key: value for key, value in given.items() if key not in ANSWERS}
    if {"check", "rubric"} & {*answers}:
        rest.setdefault("text", words_of(answer) or "unknown")
    with gathering.at():
        check_gate(rest.get("polarity"), rest)
        criterion = _read_criterion({**rest, "answer": answer})
    gathering.finish()
    return criterion


def read_criteria(data: Any) -> list[Criterion]:
    """Return a list of criteria, no two of which share an id."""
    gathering = Gathering(Criterion)
    seen: dict[str, int] = {}
    criteria = []
    for index, item in enumerate(as_list(data, "a list of criteria")):
        with gathering.at(index):
            criterion = read_criterion(item)
            criteria.append(criterion)
            first = seen.setdefault(criterion.id, index)
            if first != index:
                message = f"the id {criterion.id!r} belongs to criteria[{first}] already; give one of them another"
                raise DefinitionError("id", message)
    gathering.finish()
    return criteria


def read_scale(data: Any) -> Scale:
    """Return how scores are shown: `unit`, `boolean`, `letter` or `{likert: {min: 1, max: 5}}`."""
    if isinstance(data, dict) and [*data] == ["likert"]:
        gathering = Gathering(Likert)
        scale = Likert()
        with gathering.at("likert"):
            scale = _read_likert(data["likert"])
        gathering.finish()
        return scale
    return _named(data, _NAMED_SCALES, "{likert: {min: 1, max: 5}}")


def read_rubric(data: Any) -> Rubric:
    """Return a rubric: a mapping with one of `criteria`, `text` and `tree`; something in it counts."""
    given = as_dict(data, "a rubric (a mapping with criteria, text or tree)")
    gathering = Gathering(Rubric)
    kinds = [key for key in given if key in KINDS]
    if not kinds:
        gathering.wrong.append(DefinitionError("", "a rubric has criteria, text or tree, and here is none; write one"))
    for key in kinds[1:]:
        with gathering.at(key):
            raise WrongKeyError("", f"a rubric has {kinds[0]} or {key}, not both; nest one in the other")
    with gathering.at():
        rubric = _read_rubric({key: value for key, value in given.items() if key not in kinds[1:]})
        check_weights(rubric)
    gathering.finish()
    return rubric


def _read_worst(data: Any) -> Any:
    return "min" if data == "worst" else data


def read_text(data: Any) -> Any:
    """Return *data*, a text with something in it."""
    try:
        check_text("", data)
    except DefinitionError as problem:
        raise DefinitionError("", problem.message + cure(data, problem.message)) from None
    return data


_read_unit = reader_of(Unit)
_read_band = reader_of(ScoreRange)
_read_choice = reader_of(Choice)
_read_leaf = reader_of(Leaf)
_read_likert = reader_of(Likert, {"low": "min", "high": "max"})
_read_anchor = reader_of(Anchor)
_read_question = reader_of(DecisionTree, {"question": "ask"}, yes=read_branch, no=read_branch)
_read_when = reader_of(When, holds=None)
_read_criterion = reader_of(
    Criterion, when=read_when, anchors=lambda data: _read_all(data, Anchor, _read_anchor), metadata=read_free
)
_read_rubric = reader_of(
    Rubric,
    {"name": "rubric"},
    criteria=read_criteria,
    text=read_text,
    tree=read_tree,
    aggregation=_read_worst,
    scale=read_scale,
)

CHECKS: dict[Any, Callable[[Any], Check]] = {
    "contains": _bare_or(reader_of(Contains), "text"),
    "starts_with": _bare_or(reader_of(StartsWith), "text"),
    "ends_with": _bare_or(reader_of(EndsWith), "text"),
    "contains_any": _bare_or(reader_of(ContainsAny), "texts"),
    "contains_all": _bare_or(reader_of(ContainsAll), "texts"),
    "equals": _bare_or(reader_of(Equals), "text"),
    "matches": _bare_or(reader_of(Matches), "pattern"),
    "fits_schema": _read_schema,
    "calls": _bare_or(reader_of(Calls, arguments=read_free), "name"),
    "script": _bare_or(reader_of(Script, config=read_free), "command"),
    "unsupported": _bare_or(reader_of(Unsupported), "type"),
}
ANSWERS: dict[Any, Callable[[Any], Answer]] = {
    "answer": read_named_answer,
    "levels": read_levels,
    "choices": read_choices,
    "tree": read_tree,
    "check": read_check,
    "rubric": read_rubric,
}
"""The keys of which a criterion has at most one, each with what reads it."""

converter.register_structure_hook(Criterion, lambda data, _: read_criterion(data))
converter.register_structure_hook(Rubric, lambda data, _: read_rubric(data))
