"""The formats of JSON Schema."""

from __future__ import annotations

import pytest

from rubric import DefinitionError, FitsSchema
from rubric.values.schema_formats import FORMATS, fits
from tests.rows import each_row

YES = {
    "date": "2024-02-29", "time": "23:59:60Z", "date-time": "2024-01-02t03:04:05.5+01:00", "email": "a.b@c.org",
    "iso-time": "03:04:05", "iso-date-time": "2024-01-02 03:04:05", "uri": "urn:isbn:1", "uri-reference": "/a?b#c",
    "uuid": "123E4567-e89b-12d3-a456-426614174000", "hostname": "a-b.org.", "ipv4": "127.0.0.1", "ipv6": "::ffff:1.2.3.4",
    "duration": "P1DT2H", "regex": "(?<a>x)", "json-pointer": "", "relative-json-pointer": "1/a", "byte": "YQ==",
    "json-pointer-uri-fragment": "#/a", "uri-template": "/a/{b,c}", "url": "https://user@example.org:8080/a",
}  # fmt: skip
NO = {
    "date": "2023-02-29", "time": "03:04:05", "date-time": "2024-13-02T03:04:05Z", "email": "a@b", "iso-time": "3:04:05",
    "iso-date-time": "2024-01-02", "uri": "//a", "uri-reference": "a b", "uuid": "123e4567", "hostname": "-a.org",
    "ipv4": "01.2.3.4", "ipv6": "1::2::3", "duration": "P1Y2W", "regex": "(", "json-pointer": "a",
    "relative-json-pointer": "01", "byte": "Y", "json-pointer-uri-fragment": "/a", "uri-template": "{", "url": "a.org",
}  # fmt: skip


@each_row("name", YES)
def test_a_format_is_that_of_its_rfc(name: str) -> None:
    """A text has it or not; nothing is asked of other values."""
    assert (fits(name, YES[name]), fits(name, NO[name]), fits(name, 7)) == (True, False, True)


@each_row(("value", "held"), [(1, True), (1.0, True), (2**31, False), (0.5, False), (True, True), ("x", True)])
def test_a_format_of_numbers_asks_nothing_of_other_values(value: object, held: bool) -> None:
    """`int32` is a whole number of 32 bits."""
    assert fits("int32", value) is held


def test_each_name_is_known_or_an_annotation() -> None:
    """A schema of the web may name others; they are listed, and nothing is checked."""
    assert {*YES} < FORMATS
    assert fits("colour", "x")
    assert FitsSchema({"items": {"format": "colour"}, "format": "date"}).unknown_formats == ["colour"]


def test_a_schema_says_which_format_a_value_lacks() -> None:
    """Formats hold, in any part of it."""
    schema = FitsSchema({"properties": {"mail": {"format": "email"}}})
    assert schema.misfit({"mail": "no"}) == "$.mail: 'no' is not of the format 'email'"
    assert not schema.misfit({"mail": "me@example.org"})


def test_a_schema_in_which_a_format_is_no_text_is_refused() -> None:
    """As its specification has it."""
    with pytest.raises(DefinitionError):
        FitsSchema({"format": 7})
