"""The published JSON Schema, from which editors complete, says what the loader says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from rubric.errors import LoadError
from rubric.formats.rubrics import dumps, loads, schema
from rubric.values.rubrics import Rubric
from tests.examples import examples
from tests.places import ROOT
from tests.rows import each_row
from tests.strategies import rubrics

VALIDATOR = Draft202012Validator(schema())
EVERYTHING = ROOT / "tests" / "files" / "everything.yaml"


def test_schema_is_one() -> None:
    """The schema is itself valid."""
    Draft202012Validator.check_schema(schema())


@examples(100)
@given(rubrics())
def test_written_rubrics_fit(rubric: Rubric) -> None:
    """Whatever is written fits the schema."""
    VALIDATOR.validate(json.loads(dumps(rubric, format="json")))


def test_everything_fits() -> None:
    """A file that uses all of the format fits the schema."""
    data = YAML(typ="safe", pure=True).load(EVERYTHING.read_text("utf-8"))
    VALIDATOR.validate(json.loads(json.dumps(data)))


@each_row(
    "document",
    [
        {},
        {"rubric": "a"},
        {"text": "a", "criteria": ["b"]},
        {"text": ""},
        {"text": False},
        {"text": "a", "colour": "red"},
        {"text": "a", "threshold": 2},
        {"text": "a", "threshold": "0.5"},
        {"text": "a", "aggregation": "mean"},
        {"text": "a", "abstain": 2},
        {"text": "a", "scale": "likert"},
        {"criteria": "a"},
        {"criteria": [5]},
        {"criteria": [""]},
        {"criteria": [{"id": "a"}]},
        {"criteria": [{"text": "a", "wieght": 1}]},
        {"criteria": [{"text": "a", "weight": -1}]},
        {"criteria": [{"text": "a", "min_score": 0}]},
        {"criteria": [{"text": "a", "polarity": "bad"}]},
        {"criteria": [{"text": "a", "answer": "unit", "levels": "0..10"}]},
        {"criteria": [{"text": "a", "answer": "maybe"}]},
        {"criteria": [{"text": "a", "levels": {"a": "b"}}]},
        {"criteria": [{"text": "a", "levels": {}}]},
        {"criteria": [{"text": "a", "choices": {"a": 1}}]},
        {"criteria": [{"text": "a", "choices": {"a": 1, "b": 2}}]},
        {"criteria": [{"text": "a", "tree": {"ask": "b", "yes": 1}}]},
        {"criteria": [{"text": "a", "tree": {"ask": "b", "yes": 1, "no": 2}}]},
        {"criteria": [{"text": "a", "check": "is_yaml"}]},
        {"criteria": [{"text": "a", "check": {"contains": "b", "equals": "c"}}]},
        {"criteria": [{"text": "a", "when": {}}]},
        {"criteria": [{"text": "a", "when": {"contains": "a", "regex": "b"}}]},
        {"criteria": [{"text": "a", "anchors": [{"response": "b"}]}]},
        {"criteria": [{"text": "a", "rubric": {"criteria": [5]}}]},
    ],
)
def test_refused_by_both(document: Any) -> None:
    """What the loader refuses, an editor marks."""
    assert not VALIDATOR.is_valid(document)
    with pytest.raises(LoadError):
        loads(json.dumps(document))
