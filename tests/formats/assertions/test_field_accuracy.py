"""AgentV's `field-accuracy`: fields of an output that is JSON, compared with those of the expected one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric import Candidate
from rubric.formats.assertions.field_accuracy import Field, FieldAccuracy
from rubric.formats.suites import load_suite, loads_suite
from tests.rows import each_row

INVOICE = {"number": "INV-1", "total": 1889, "supplier": {"name": "Acme"}, "items": [{"price": 1370}, {"price": 262}]}


def score(fields: list[Field], output: Any, expected: Any = INVOICE, *, strict: bool = False) -> float:
    text = output if isinstance(output, str) else json.dumps(output)
    reference = expected if isinstance(expected, str) else json.dumps(expected)
    return FieldAccuracy(tuple(fields), strict)(Candidate(text, reference=reference))[0]


@each_row(
    ("options", "given", "expected", "holds"),
    [
        ({}, "a", "a", True),
        ({}, "a", "b", False),
        ({}, 1, 1.0, True),
        ({}, 1, "1", False),
        ({}, 1, True, False),
        ({}, None, None, True),
        ({}, {"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, True),
        ({}, [1, 2], [2, 1], False),
        ({"match": "numeric_tolerance", "tolerance": 1}, 1889.5, 1889, True),
        ({"match": "numeric_tolerance", "tolerance": 1}, 1891, 1889, False),
        ({"match": "numeric_tolerance", "tolerance": 1}, "1889.5 USD", "1889", True),
        ({"match": "numeric_tolerance", "tolerance": 0.01, "relative": True}, 101, 100, True),
        ({"match": "numeric_tolerance", "tolerance": 0.01, "relative": True}, 102, 100, False),
        ({"match": "numeric_tolerance", "tolerance": 0.01, "relative": True}, 0.005, 0, True),
        ({"match": "numeric_tolerance"}, 5, 5.0, True),
        ({"match": "numeric_tolerance"}, "many", 5, False),
        ({"match": "numeric_tolerance"}, True, 1, False),
        ({"match": "date"}, "15-JAN-2025", "2025-01-15", True),
        ({"match": "date"}, "15-January-2025", "01/15/2025", True),
        ({"match": "date"}, "2025-01-15T23:59:00+02:00", "2025-01-15", True),
        ({"match": "date"}, "15/01/2025", "2025-01-15", True),
        ({"match": "date"}, "05/06/2025", "2025-05-06", True),
        ({"match": "date", "formats": ("DD/MM/YYYY",)}, "05/06/2025", "2025-06-05", True),
        ({"match": "date"}, "2025-01-16", "2025-01-15", False),
        ({"match": "date"}, "soon", "soon", False),
        ({"match": "date"}, "Jan 2, 2024", "2024-01-02", True),
        ({"match": "date"}, "2 January 2024", "2024-01-02", True),
        ({"match": "date"}, "Tue, 02 Jan 2024 10:00:00 GMT", "2024-01-02", True),
        ({"match": "date"}, "2024/1/2", "01-02-24", True),
        ({"match": "date"}, "March 2024", "2024-03", True),
        ({"match": "date", "formats": ("DD/MM/YYYY",)}, "2024 Mar 5 (draft)", "05/03/2024", True),
        ({"match": "date"}, "January 2nd, 2024", "2024-01-02", False),
        ({"match": "date"}, "Feb 30 2024", "Mar 1 2024", False),
    ],
)
def test_a_field_is_compared_as_its_match_says(options: dict[str, Any], given: Any, expected: Any, holds: bool) -> None:
    """Dates by the day, numbers with a tolerance, and all else as JSON."""
    assert score([Field("a", **options)], {"a": given}, {"a": expected}) == float(holds)


def test_paths_lead_into_mappings_and_lists() -> None:
    """A path that leads nowhere is a field that is missing."""
    fields = [Field(path) for path in ("supplier.name", "items[1].price", "items[2].price", "number.x", "items.x")]
    assert score(fields[:2], INVOICE) == 1
    assert score(fields[:2], {**INVOICE, "items": []}) == 0.5
    assert score(fields[2:], {}) == 1  # nothing is expected there


def test_missing_fields_fail_where_they_are_required() -> None:
    """Others do not count; where none counts, the score is 0."""
    number, total = Field("number", weight=3), Field("total", required=False)
    assert score([number, total], {"number": "INV-1"}) == 1
    assert score([number, total], {"total": 1889}) == 0.25
    assert score([total], {"x": 1}) == 0


def test_the_score_is_the_weighted_mean_or_all_or_nothing() -> None:
    """By the `aggregation` of the grader."""
    fields = [Field("number", weight=2), Field("total", weight=1)]
    output = {**INVOICE, "total": 0}
    assert score(fields, output) == pytest.approx(2 / 3)
    assert score(fields, output, strict=True) == 0
    assert score(fields, INVOICE, strict=True) == 1


def test_json_is_found_in_what_is_around_it() -> None:
    """The first of the output, the last of the expected messages; an output without any fails."""
    assert score([Field("number")], f"Here:\n```json\n{json.dumps(INVOICE)}\n```") == 1
    assert score([Field("number")], INVOICE, f'{{"number": 2}}\n\n{json.dumps(INVOICE)}') == 1
    assert score([Field("number")], "I cannot read it.") == 0


FILE = """\
tests:
  - id: invoice
    input: Extract
    output: '{"number": "INV-1", "total": 1890.5}'
    expected_output: EXPECTED
    assert:
      - type: field-accuracy
        fields:
          - {path: number, match: exact, weight: 2}
          - {path: total, match: numeric_tolerance, tolerance: 1}
"""


@pytest.mark.parametrize(
    ("expected", "status", "found"),
    [
        ("[{role: assistant, content: {number: INV-1, total: 1889}}]", "failed", 2 / 3),
        ("{number: INV-1, total: 1890}", "passed", 1),
        ("a good invoice", "ungraded", None),
    ],
)
def test_a_file_is_graded_by_its_fields(tmp_path: Path, expected: str, status: str, found: float | None) -> None:
    """Without a judge; an expected output that is not JSON is not graded."""
    (tmp_path / "a.eval.yaml").write_text(FILE.replace("EXPECTED", expected))
    row = load_suite(tmp_path / "a.eval.yaml").run("offline")["invoice"]
    assert row.status == status
    assert row.result is not None
    assert getattr(row.result, "score", None) == (None if found is None else pytest.approx(found))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("match: exact", "match: fuzzy"),
        ("weight: 2", "weight: -2"),
        ("path: number, ", ""),
        ("        fields:", "        aggregation: mean\n        fields:"),
    ],
)
def test_what_cannot_be_compared_leaves_its_test_ungraded(old: str, new: str) -> None:
    """With a warning that has its place."""
    suite = loads_suite(FILE.replace(old, new), "agentv-2")
    assert [problem.line > 1 for problem in suite.warnings if "the case is ungraded" in problem.message] == [True]
    assert suite.answered(["{}"]).run("offline")["invoice"].status == "ungraded"
