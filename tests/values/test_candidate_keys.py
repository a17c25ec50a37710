"""Keys and groups of candidates: they name results, and no judge and no store sees them."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from rubric import Candidate, DefinitionError, Grades, Judge, Jury, Rubric, Store, grade, grade_many
from rubric.driving import flow
from rubric.store.cache_key import request_of
from rubric.testing import ScriptedModel

POLITE = Rubric("polite").expects("Says thank you")
NAMED = Candidate("Thank you.", key="a", group="prompt 1")


@pytest.mark.parametrize("judge", ["offline", Jury("offline", 3)])
@pytest.mark.parametrize("output", ["Thank you.", ""])
def test_results_carry_key_and_group(judge: Any, output: str) -> None:
    """Of one judge and of several, and of a candidate that needs no call; under another rule too."""
    result = grade(Candidate(output, key="a", group="prompt 1"), POLITE, judge)
    for each in (result, result.rescore(threshold=0.1)):
        assert (each.key, each.group) == ("a", "prompt 1")


def test_they_are_in_rows_frames_and_lines() -> None:
    """Where a candidate has none the row says None, and the line leaves it out."""
    grades = grade_many([NAMED, "No."], POLITE, "offline").collect()
    assert [(row["key"], row["group"]) for row in grades.rows()] == [("a", "prompt 1"), (None, None)]
    assert grades.to_pandas()["key"].tolist() == ["a", pd.NA]
    lines = [json.loads(line) for line in grades.to_jsonl().splitlines()]
    assert [line.get("group") for line in lines] == ["prompt 1", None]
    assert "key" not in lines[1]
    assert "key" not in Grades(grades[1:]).rows()[0]


def test_they_come_from_columns() -> None:
    """A whole number is its digits, as a frame with gaps holds it too."""
    rows = [{"output": "Thanks", "id": 7.0, "prompt": None}, {"output": "Thanks", "id": 8, "prompt": "x"}]
    columns = {"key": "id", "group": "prompt"}
    grades = grade_many(rows, POLITE, "offline", columns=columns).collect()
    assert [(result.key, result.group) for result in grades] == [("7", ""), ("8", "x")]


def test_a_key_is_a_text_or_a_whole_number() -> None:
    """Decimals, lists and booleans are definition errors."""
    wrongs: list[Any] = [1.5, ["a"], True]
    for wrong in wrongs:
        with pytest.raises(DefinitionError, match="key: expected a text or a whole number"):
            Candidate("a", key=wrong)


def test_they_change_no_request_and_no_stored_key() -> None:
    """The asks are equal, and so is what they are stored under."""
    (named,), (plain,) = (next(flow(c, POLITE, Judge("openai/gpt-5.6"))) for c in (NAMED, Candidate("Thank you.")))
    assert named == plain
    assert request_of(named).key == request_of(plain).key


def test_a_stored_reply_serves_another_key(tmp_path: Any) -> None:
    """A run with keys costs nothing after one without."""
    model = ScriptedModel(['{"reason": "", "verdict": "yes"}'])
    with Store(tmp_path / "replies") as store:
        judge = Judge(model, sealed=False)
        assert grade("Thank you.", POLITE, judge, store=store).passed
        assert grade(NAMED, POLITE, judge, store=store).key == "a"
    assert len(model.asks) == 1


def test_an_item_that_fails_keeps_its_key() -> None:
    """A condition that raises leaves the candidate ungraded, under its name."""

    def broken(_: Candidate) -> bool:
        raise ValueError

    rubric = POLITE.expects("Is short", when=broken)
    (result,) = grade_many([NAMED], rubric, "offline").collect()
    assert result.passed is None
    assert (result.key, result.group) == ("a", "prompt 1")
