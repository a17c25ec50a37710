"""Values of ours are fields of pydantic models: read from what a request holds, and written into what answers it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError, create_model

from rubric import Candidate, Contains, Criterion, Grade, Judge, Jury, Likert, Rubric, Store, grade

R = Rubric("reply", threshold=0.8).expects("Is polite", weight=2).checks(Contains("ticket"))
G = grade("Thanks, politely.", R, "offline")


@pytest.mark.parametrize(
    ("kind", "given", "made"),
    [
        (Rubric, R, R),
        (Rubric, R.to_dict(), R),
        (Rubric, R.to_yaml(), R),
        (Criterion, {"text": "Is polite", "weight": 2}, R[0]),
        (Criterion, "Is polite", Criterion("Is polite")),
        (Judge, "offline", Judge("offline")),
        (Judge, {"model": "offline", "timeout": 5}, Judge("offline", timeout=5)),
        (Jury, {"judge": "offline", "size": 3}, Jury("offline", 3)),
        (Candidate, "Thanks.", Candidate("Thanks.")),
        (Likert, {"low": 1, "high": 5}, Likert(1, 5)),
        (Grade, G, G),
    ],
)
def test_a_field_reads_what_makes_its_value(kind: Any, given: Any, made: Any) -> None:
    """A value stays; a mapping and a text become one, as in a file or by the constructor."""
    field: Any = getattr(create_model("Body", field=(kind, ...))(field=given), "field")  # noqa: B009 - it is made here
    assert repr(field) == repr(made)


@pytest.mark.parametrize("value", [R, R[0], R[1]], ids=["rubric", "criterion", "check"])
def test_what_a_model_writes_is_read_again(value: Any) -> None:
    """A rubric and its criteria go through the JSON of a model unchanged."""
    of: TypeAdapter[Any] = TypeAdapter(type(value))
    assert of.validate_json(of.dump_json(value)) == value


def test_a_result_is_written_as_its_plain_form() -> None:
    """A grade in a response is the JSON of `to_dict`."""
    assert TypeAdapter(Grade).dump_python(G, mode="json") == G.to_dict()


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (Rubric, {"criteria": [{"txt": "Is polite"}]}, "criteria[0].txt: unknown key; did you mean 'text'?"),
        (Rubric, 3, "expected a Rubric, got int"),
        (Criterion, {"weight": "much", "text": "a"}, "criteria[0].weight: expected a finite number"),
        (Judge, {"model": "offline", "timout": 5}, "did you mean 'timeout'?"),
        (Grade, G.to_dict(), "take the field as a dict, and write Grade.from_dict(data, rubric)"),
        (Store, "replies.db", "expected a Store, got str"),
    ],
)
def test_a_field_that_cannot_be_read_says_why(kind: Any, given: Any, said: str, tmp_path: Path) -> None:
    """A wrong value is a problem of its field, in our words; the path of a request opens no file."""
    with pytest.raises(ValidationError, match=re.escape(said)) as refused:
        TypeAdapter(kind).validate_python(given)
    assert type(refused.value.errors()[0]["ctx"]["error"]) is ValueError  # FastAPI cannot write others
    assert not (tmp_path / "replies.db").exists()


def test_the_schema_of_a_model_has_its_rubric() -> None:
    """The JSON Schema of a request takes a mapping or a text; that of a response is an object."""
    of = TypeAdapter(Rubric)
    assert of.json_schema() == {"title": "Rubric", "anyOf": [{"type": "object"}, {"type": "string"}]}
    assert of.json_schema(mode="serialization") == {"title": "Rubric", "anyOf": [{"type": "object"}]}
