"""The cursor that foreign formats are read through: values, paths, places and diagnostics."""

from __future__ import annotations

from typing import Any

import pytest

from rubric.errors import LoadError
from rubric.formats.cursor import Cursor
from rubric.formats.files import parse
from rubric.formats.notes import Notes
from rubric.values.runs import Message
from tests.rows import each_row

TEXT = """\
tests:
  - name: a
    weight: "2"
    flag: yes
  - {name: b, weight: -1}
nothing:
"""


def root(text: str = TEXT) -> Cursor:
    """Return the root of a small document."""
    return Cursor.of(Notes(parse(text, "f.yaml")))


def said(at: Cursor) -> list[str]:
    """Return the errors so far."""
    return [str(problem) for problem in at.notes.errors]


def test_going_down_keeps_the_path_and_the_place() -> None:
    """A value knows the keys and indices from the root, and its line and column."""
    weight = root()["tests"][1]["weight"]
    assert (weight.value, weight.path) == (-1, ("tests", 1, "weight"))
    assert str(weight.place) == "f.yaml:5:23"
    assert weight.root.value.keys() == {"tests", "nothing"}
    assert [test["name"].value for test in root()["tests"]] == ["a", "b"]


def test_a_value_that_is_not_there_has_the_place_of_its_holder() -> None:
    """Its problems are noted at the nearest value that the document has, with the path of that."""
    at = root()
    missing = at["tests"][0]["rubric"]["text"]
    assert missing.value is None
    missing.error("is missing")
    at["tests"][0].holding({"made": [1]})["made"][0].error("is odd")
    assert said(at) == ["f.yaml:2:5: tests[0]: is missing", "f.yaml:2:5: tests[0]: is odd"]


def test_a_problem_points_at_a_key_or_at_its_value() -> None:
    """With *key* the place is that of the key."""
    at = root()
    at["tests"][0]["weight"].error("value")
    at["tests"][0]["weight"].error("key", key=True)
    assert [line.split(": ")[0] for line in said(at)] == ["f.yaml:3:13", "f.yaml:3:5"]


def test_equal_problems_are_noted_once() -> None:
    """A part that many tests share is read for each of them; a reader still sees that it failed again."""
    at = root()
    for _ in range(3):
        at["tests"].error("is wrong")
        at["tests"].warn("is odd")
        at["tests"].once("is new")
    at["nothing"].once("is new")
    assert (len(at.notes.errors), len(at.notes.warnings), at.notes.failures) == (1, 2, 3)
    with pytest.raises(LoadError, match="is wrong"):
        at.notes.finish()


@each_row(
    ("read", "value", "problem"),
    [
        (lambda test: test["weight"].number(0), None, "weight: expected a number from 0, got '2'"),
        (lambda test: test["weight"].number(written=True), 2, ""),
        (lambda test: test["weight"].number(2, above=True, written=True), None, "expected a number above 2, got '2'"),
        (lambda test: test["weight"].number(0, 1, written=True), None, "expected a number from 0 to 1, got '2'"),
        (lambda test: test["flag"].flag(), None, "expected true or false, got 'yes'"),
        (lambda test: test["name"].text(), "a", ""),
        (lambda test: test.text(), None, "expected text, got a mapping"),
        (lambda test: test["name"].listing("a list of names"), [], "expected a list of names, got 'a'"),
        (lambda test: test["name"].mapping(), False, "expected a mapping, got 'a'"),
        (lambda test: test.needs("rubric"), False, "tests[0]: the key 'rubric' is missing; add it"),
        (lambda test: test.only(["name", "weights", "flag"]), None, "unknown key; did you mean 'weights'?"),
    ],
)
def test_typed_values(read: Any, value: Any, problem: str) -> None:
    """A value of another type is noted with what was expected and what was found."""
    at = root()
    assert read(at["tests"][0]) == value
    assert len(said(at)) == bool(problem)
    assert problem in "".join(said(at))


def test_hints_do_not_depend_on_the_order_of_a_set() -> None:
    """Known keys are looked through in their order, whatever the hashes of this process."""
    at = root("asserts: 1")
    at["asserts"].unknown("is not read", frozenset({"assertions", "assert", "evaluators"}))
    assert said(at) == ["f.yaml:1:1: asserts: unknown key 'asserts'; did you mean 'assert'?"]


def test_a_noun_is_read_in_one_step() -> None:
    """Unknown keys, keys without a value and missing fields are noted, all of them."""
    keys = {"role": "who", "content": "text"}
    fine = root("{who: user, text: Hi}")
    assert fine.noun(Message, "a message", keys) == Message("user", "Hi")
    at = root("who: nobody\ntext:\ntone: kind\n")
    assert at.noun(Message, "a message", keys) is None
    assert [problem.path for problem in at.notes.errors] == ["tone", "text", ""]
