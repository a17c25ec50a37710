"""
Answer types in files: one table of the keys of a criterion, each with its reader and writer.

`native.rubric` adds the rows whose values hold rubrics and trees; `rubric.schema.json` has the forms of their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from attrs import frozen

from rubric.errors import DefinitionError, DumpError
from rubric.formats import fields
from rubric.formats.fields import WRITERS, Data, mismatch
from rubric.internals.fields import check_number
from rubric.values.answers import Answer, Choice, Choices, Levels, ScoreRange, Unit, YesNo


@frozen
class AnswerKey:
    """
    A key of a criterion that gives its answer type.

    Args:
        kinds: The classes of its answers.
        read: Reads an answer from its value.
    """

    kinds: tuple[type, ...]
    read: Callable[[Any], Answer]

    def __call__(self, data: Any) -> Answer:
        return self.read(data)


ANSWERS: dict[Any, AnswerKey] = {}
"""The keys of which a criterion has at most one, in the order in which messages name them."""


# -- reading ------------------------------------------------------------------------------------------------


def read_named_answer(data: Any) -> Answer:
    """Return the answer type under `answer:`: `yes_no`, `unit` or `{unit: {flag: true}}`."""
    if isinstance(data, dict) and [*data] == ["unit"]:
        return fields.read_inner(data, "unit", _read_unit)
    return fields.read_named(data, _NAMED, "{unit: {flag: true}}")


_NAMED: dict[str, Callable[[], Answer]] = {"yes_no": YesNo, "unit": Unit}

_DASHED = re.compile(r"(\d{1,16}) ?(?:-|–|to) ?(\d{1,16})", re.ASCII)
"""How other tools write them."""


def read_levels(data: Any) -> Levels:
    """Return levels: scores with texts, a list of `{score_range, text}`, or a scale: `0..10` or `[0, 10]`."""
    is_scale = isinstance(data, list) and len(data) == 2 and all(type(each) is int for each in data)  # noqa: PLR2004
    if is_scale or (isinstance(data, str) and ".." in data):
        return fields.read_bare(Levels, data)
    if isinstance(data, list) and not all(isinstance(each, str) for each in data):
        data = fields.read_all(data, "scorerange", _read_range)
    if isinstance(data, list):
        return fields.read_bare(Levels, data)
    if isinstance(data, str) and (dashed := _DASHED.fullmatch(data.strip())):
        raise DefinitionError("", f"expected a scale with two dots, got {data!r}; write {dashed[1]}..{dashed[2]}")
    bands = fields.as_dict(data, "a mapping from scores to texts, a list of {score_range, text}, or 0..10")
    fields.read_each(bands, fields.read_text)
    if not bands:
        raise DefinitionError("", "expected levels, got none; write 0..10 for a scale without texts")
    return fields.read_bare(Levels, bands)


def _read_range(data: Any) -> ScoreRange:
    band = {**fields.as_dict(data, "a mapping with score_range and text")}
    gathering = fields.Gathering()
    for key in (key for key in band if key not in ("score_range", "text")):
        with gathering.at(key):
            raise fields.UnknownKeyError(key, ("score_range", "text"), "ScoreRange", band[key])
    gathering.finish()
    if "score_range" not in band:
        raise DefinitionError("", "the key 'score_range' is missing; write {score_range: [low, high], text: ...}")
    low, high = fields.read_inner(band, "score_range", _read_ends)
    del band["score_range"]
    return _read_band({"low": low, "high": high, **band})


def _read_ends(data: Any) -> list[Any]:
    ends = fields.as_list(data, "a list of the lowest and the highest score")
    if len(ends) != 2:  # noqa: PLR2004
        raise mismatch("the lowest and the highest score", ends)
    return ends


def read_choices(data: Any) -> Choices:
    """Return choices: a mapping from labels to scores, a list of `{label, score, text}`, or for weight 0 of labels."""
    if isinstance(data, list) and data and all(isinstance(item, str) for item in data):
        return fields.read_bare(Choices, [str(item) for item in data])
    if isinstance(data, list):
        return fields.read_bare(Choices, fields.read_all(data, "choice", _read_choice))
    labels = fields.as_dict(data, "a mapping from labels to scores, or a list of {label, score, text}")
    gathering = fields.Gathering()
    for label, score in labels.items():
        with gathering.at(label):
            fields.check_key(label)
            check_number("", score, 0, 1)
    gathering.finish()
    return fields.read_bare(Choices, labels)


_read_unit = fields.reader_of(Unit)
_read_band = fields.reader_of(ScoreRange)
_read_choice = fields.reader_of(Choice)


# -- writing ------------------------------------------------------------------------------------------------


def write_answer(answer: Answer) -> Data:
    """Return the key and the value that give *answer*; nothing for yes or no."""
    for key, row in ANSWERS.items():
        if isinstance(answer, row.kinds) and type(answer) in WRITERS:
            return {} if isinstance(answer, YesNo) else {key: fields.write(answer)}
    msg = f"its answer is of a class of your own, {type(answer).__name__}; files know only those of the library"
    raise DumpError(msg)


def _choices(choices: Choices) -> Any:
    if not choices.is_scored:
        return [str(choice.label) for choice in choices.choices]
    if any(choice.text for choice in choices.choices):
        return [fields.fields_of(choice) for choice in choices.choices]
    return {str(choice.label): fields.free(choice.score) for choice in choices.choices}


WRITERS |= {
    YesNo: lambda _: "yes_no",
    Unit: lambda unit: {"unit": {"flag": True}} if unit.flag else "unit",
    Levels: lambda levels: {key: str(text) for key, text in levels.texts.items()} or f"{levels.low}..{levels.high}",
    Choices: _choices,
}


ANSWERS |= {
    "answer": AnswerKey((YesNo, Unit), read_named_answer),
    "levels": AnswerKey((Levels,), read_levels),
    "choices": AnswerKey((Choices,), read_choices),
}
