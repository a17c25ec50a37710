""""""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rubric.errors import DefinitionError, DumpError
from rubric.formats.cursor import Gathering, as_dict, as_list, wanted
from rubric.formats.nouns import (
    _PLAIN,
    WRITERS,
    Data,
    _check_key,
    _named,
    _read_all,
    _unnamed,
    fields_of,
    free,
    read_text,
    reader_of,
    write,
)
from rubric.internals.fields import check_number
from rubric.values.answers import Answer, Choice, Choices, Levels, ScoreRange, Unit, YesNo
from rubric.values.checks import Check
from rubric.values.rubrics import Rubric
from rubric.values.trees import DecisionTree

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


_read_unit = reader_of(Unit)
_read_band = reader_of(ScoreRange)
_read_choice = reader_of(Choice)


# -- answers --------------------------------------------------------------------------------------


def _answer(answer: Answer) -> Data:
    """Return the key and the value that give *answer*."""
    for kind, key in _ANSWER_KEYS.items():
        if isinstance(answer, kind) and type(answer) in WRITERS:
            return {key: write(answer)}
    msg = f"its answer is of a class of your own, {type(answer).__name__}; files know only those of the library"
    raise DumpError(msg)


def _unit(unit: Unit) -> Any:
    return {"unit": {"flag": True}} if unit.flag else "unit"


def _levels(levels: Levels) -> Any:
    return {key: str(text) for key, text in levels.texts.items()} or f"{levels.low}..{levels.high}"


def _choices(choices: Choices) -> Any:
    if any(choice.text for choice in choices.choices):
        return [fields_of(choice) for choice in choices.choices]
    return {str(choice.label): free(choice.score) for choice in choices.choices}


_ANSWER_KEYS: dict[type, str] = {
    Unit: "answer",
    Levels: "levels",
    Choices: "choices",
    DecisionTree: "tree",
    Check: "check",
    Rubric: "rubric",
}

WRITERS |= {Unit: _unit, Levels: _levels, Choices: _choices}
