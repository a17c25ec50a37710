"""JSON objects in a text: which are found, how they are repaired, and what that may cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.grading.json_extraction import Ambiguous, find_objects, object_spans
from tests.forks import Forks
from tests.rows import each_row

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, min_size=1, max_size=4)
PROSE = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), max_size=40)


def found(text: str) -> list[Any]:
    """Return all objects of *text*."""
    return [value for value, _ in find_objects(text, lambda _value, _raw: True)]


def found_or_refused(text: str) -> list[Any]:
    """Return all objects of *text*; none if one of them is not clear."""
    try:
        return found(text)
    except Ambiguous:
        return []


@given(st.lists(st.tuples(PROSE, OBJECTS), max_size=3), st.booleans())
def test_objects_are_found_in_prose(parts: list[tuple[str, dict[str, Any]]], escaped: bool) -> None:
    """Whatever JSON objects stand in prose are found, in order, as json reads them."""
    text = "".join(prose + json.dumps(value, ensure_ascii=escaped) for prose, value in parts)
    assert found(text) == [value for _, value in parts]


@given(PROSE, OBJECTS, PROSE)
def test_the_source_of_an_object_is_given(before: str, value: dict[str, Any], after: str) -> None:
    """With each object comes its own text, and its span."""
    raw = json.dumps(value)
    text = before + raw + after
    assert [piece for _, piece in find_objects(text, lambda _value, _raw: True)] == [raw]
    assert object_spans(text) == [(len(before), len(before) + len(raw))]


@given(OBJECTS, st.data())
def test_a_cut_object_is_never_found(value: dict[str, Any], data: st.DataObject) -> None:
    """An object without its end is not taken for a shorter one."""
    raw = json.dumps(value)
    assert found_or_refused(raw[: data.draw(st.integers(0, len(raw) - 1))]) == []


@given(st.text())
def test_any_text_is_searched(text: str) -> None:
    """No text makes the search fail; it finds objects, or says that one is not clear."""
    assert all(isinstance(value, dict) for value in found_or_refused(text))


@given(st.text("{}[]\":,\\'truefalsn0123456789.- \n", max_size=80))
def test_near_json_is_searched(text: str) -> None:
    """Nor does text that is made of JSON's own characters."""
    assert all(isinstance(value, dict) for value in found_or_refused(text))


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 1}', '{"b": {"a": 1, "a": 2}}', '{"b": [{"a": 1, "a": 2}]}', "{'a': 1, 'a': 2}"]
)
def test_a_doubled_key_is_refused(text: str) -> None:
    """An object with a key twice, at any depth, strict or repaired, is not clear."""
    with pytest.raises(Ambiguous):
        found(text)


@pytest.mark.parametrize("text", ['{"a": 1', '{"a": {"b": 1}', '{"a": "}', '{"a": 1} {"b": 2'])
def test_an_object_without_an_end_is_refused(text: str) -> None:
    """An object that does not end is not clear."""
    with pytest.raises(Ambiguous):
        found(text)


def test_what_is_not_accepted_is_not_looked_at() -> None:
    """A doubled key, or a missing end, matters only in an object that was asked for."""
    text = '{"a": 1, "a": 2} {"verdict": true} {"c": '
    assert find_objects(text, lambda value, _: "verdict" in value) == [({"verdict": True}, '{"verdict": true}')]


@each_row(
    ("text", "value"),
    [
        ('{"a": 1,}', 1), ("{'a': 1}", 1), ("{a: 1}", 1), ('{"a": True}', True), ('{"a": None}', None), ('{"a": yes}', "yes"),
        ('{"a": "x" // note\n}', "x"), ('{"a": 8/10}', "8/10"), ('{"a": "it is "so" here"}', 'it is "so" here'), ('{"a": [1, 2,],}', [1, 2]),
        ('{"a": [1, 2}', [1, 2]), ('{"a": "one\ntwo"}', "one\ntwo"), ('{"a": "\\d"}', "\\d"), ("{“a”: “x”}", "x"), ("{'a': '} {'}", "} {"),
    ],
)  # fmt: skip
def test_punctuation_is_repaired(text: str, value: object) -> None:
    """What is broken in an object's punctuation alone is repaired."""
    assert found(text) == [{"a": value}]


@each_row("value", ["80%", "1 2", "~5", "!true", "true false", "(1)", "٣", "1_000", "", "5 or 6", "/* 1 */ 2", "--1"])
def test_no_value_is_guessed(value: str) -> None:
    """What json-repair would make of a value that no rule covers is not taken."""
    with pytest.raises(Ambiguous):
        found(f'{{"a": {value}}}')


def test_more_objects_than_anyone_writes() -> None:
    """A reply of thousands of objects is refused, not searched to its end."""
    with pytest.raises(Ambiguous):
        found('{"a": 1}' * 1_001)


HOSTILE = {
    "braces": "'{' * 200_000",
    "objects in objects": "'{\"a\":' * 40_000",
    "brackets": "'[' * 200_000",
    "brackets in an object": "'{\"a\": ' + '[' * 190_000",
    "quotes": "'\"' * 200_000",
    "backslashes": "'{\"a\": \"' + '\\\\' * 190_000",
    "an open text": "'{\"a\": \"' + 'x' * 190_000",
    "open texts": "'{\"a' * 66_000",
    "keys without values": "'{\"a\":' + '\"b\":' * 45_000",
    "python": "'{\\'a\\': it\\'s}' * 17_000",
    "objects": "'{\"verdict\": 1}' * 14_000",
    "broken objects": "'{\"verdict\": 1,,}' * 12_000",
    "lists of numbers": "'{\"a\": [' * 300 + '1,' * 90_000",
    "an object of many keys": "'{' + ','.join(f'\"k{i}\": {i}' for i in range(10_000)) + ',}'",
    "closing braces": "'}' * 200_000",
    "curly quotes": "'{“' * 100_000",
    "words": "'{' + 'a' * 190_000",
    "spaces": "'{' + ' ' * 190_000",
    "spaces and braces": "'{    ' * 40_000",
    "digits": "'{\"verdict\": ' + '9' * 190_000 + '}'",
    "commas": "'{\"verdict\": ' + ',' * 190_000 + '}'",
    "thinking": "'<think></think>' * 13_000",
    "open thinking": "'<think>' * 28_000",
    "thinking in objects": '\'{"a": "<think>"}\' * 11_000',
}


@pytest.fixture(scope="module")
def reading() -> Iterator[Forks]:
    """Yield a process that can read replies."""
    with Forks("from tests.asks import SEALED, UNSEALED, ask_for, verdict_of") as forks:
        yield forks


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_replies_take_no_time(name: str, reading: Forks) -> None:
    """200 kB of what parsers choke on are read in a moment, beside a candidate of a megabyte, and hold no verdict."""
    script = f"""
for judge in (SEALED, UNSEALED):
    ask = ask_for(judge=judge, candidate='{{"a": 1}} word' * 70_000)
    said = verdict_of(ask, {HOSTILE[name]})
    assert said in ("<unreadable>", "<truncated>"), said
"""
    run = reading.run(script)
    assert (run.status, run.stderr) == (0, "")
