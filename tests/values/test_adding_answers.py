"""
Each answer and each check is known everywhere that files need it; a new one that was forgotten is named here.

An answer is added in `values/answers`, `grading/reply_parser` and `formats/native/answers`; a check in `values/checks`,
`grading/code_checks` and `formats/native/checks`; both in `formats/rubric.schema.json`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, find, settings
from hypothesis.errors import NoSuchExample

from rubric.formats.fields import WRITERS
from rubric.formats.native.answers import ANSWERS
from rubric.formats.native.checks import CHECKS, ROWS
from rubric.formats.rubrics import dumps, loads, schema
from rubric.values.answers import Answer, YesNo
from rubric.values.checks import Check, Decided, Holds
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric
from tests.places import ROOT
from tests.rows import each_row
from tests.strategies import flat_answers, rubrics

PAGE = ROOT / "docs" / "reference" / "file_format.md"

CODE_ALONE = (Holds, Decided)
"""Checks that hold a function, which no file can say, and what such a check has decided."""


def members(kind: type) -> Iterator[type]:
    """Yield the classes of the library that have no classes below them."""
    found: list[type] = kind.__subclasses__()
    # With slots, attrs makes a second class; the first one stays until it is collected.
    inner = [cls for cls in found if getattr(sys.modules[cls.__module__], cls.__name__, None) is cls]
    inner = [cls for cls in inner if cls.__module__.startswith("rubric.")]
    for cls in inner:
        yield from members(cls)
    if not inner:
        yield kind


EVERY = [kind for kind in members(Answer) if kind not in CODE_ALONE]


FIRST = settings(phases=[Phase.generate], max_examples=2_000, database=None)
"""The first example will do; to look for the smallest takes seconds."""


@pytest.mark.long
@each_row("kind", EVERY, ids=lambda kind: kind.__name__)
def test_written_and_read(kind: type) -> None:
    """It has a strategy, a writer that puts it under a key of the table, and a reader that reads it back."""
    try:
        strategy = flat_answers if kind is not Rubric else rubrics()
        answer: Any = find(strategy, lambda found: type(found) is kind, settings=FIRST)
    except NoSuchExample:  # pragma: no cover
        pytest.fail(f"tests.strategies has no strategy for {kind.__name__}")
    assert kind in WRITERS
    rubric = Rubric("", criteria=[Criterion("Is it so?", answer=answer)])
    assert loads(dumps(rubric)) == rubric
    assert any(issubclass(kind, row.kinds) for row in ANSWERS.values())


@each_row("key", ANSWERS)
def test_keys(key: str) -> None:
    """A key of the table is in the JSON Schema, excludes the others there, and has a row in the docs."""
    criterion = schema()["$defs"]["criterion"]["anyOf"][1]
    assert key in criterion["properties"]
    assert {"required": [key]} in criterion["oneOf"]
    assert f"| `{key}" in PAGE.read_text("utf-8")


@each_row("name", [*CHECKS, "is_json"])
def test_checks(name: str) -> None:
    """A check is in the JSON Schema, with each of its fields, and in the docs."""
    bare, named = schema()["$defs"]["check"]["anyOf"]
    assert name in (*named["properties"], bare["const"])
    if name in ROWS:
        forms = named["properties"][name].get("anyOf", [named["properties"][name]])
        assert {*forms[-1]["properties"]} == {*ROWS[name].fields}
    assert name in PAGE.read_text("utf-8")


def test_each_check_has_a_name() -> None:
    """As many as there are checks that a file can say; `assertion` is for functions of the library's own."""
    checks = sum(issubclass(kind, Check) for kind in EVERY) - 1  # one rule and several are `run`
    assert checks == len({*CHECKS, "is_json"} - {"assertion"})


def test_yes_or_no_is_left_out() -> None:
    """It is what a criterion without a key for an answer means."""
    assert WRITERS[YesNo](YesNo()) == "yes_no"
    assert "answer" not in dumps(Rubric("", criteria=["Is it so?"]))
