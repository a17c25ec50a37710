"""A report beside a baseline: what became better or worse, and what is allowed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from attrs import evolve
from hypothesis import given

from rubric.errors import DefinitionError
from rubric.results.report_rows import Entry, Row, Status
from rubric.suites.report import Deferred, Report
from tests.examples import examples
from tests.reports import FAILED, REPORT, entry, reports
from tests.rows import each_row

if TYPE_CHECKING:
    from pathlib import Path

    from rubric.suites.baseline import Comparison, Kind


def row(id: str, score: float | None, status: Status | None = None, *entries: Entry) -> Row:
    """Return a row that passes from 0.7."""
    found: Status = "ungraded" if score is None else "passed" if score >= 0.7 else "failed"
    return Row(id, status or found, score=score, threshold=0.7, entries=entries)


def beside(before: Row, after: Row, largest_drop: float | None = None, deferred: Deferred = "error") -> Comparison:
    """Return how one case changed."""
    return Report("s", (after,), deferred=deferred).against(Report("s", (before,)), largest_drop=largest_drop)


@each_row(
    ("before", "after", "kind"),
    [
        (row("a", 0.8), row("a", 0.9), "better"),
        (row("a", 0.9), row("a", 0.8), "worse"),
        (row("a", 0.8), row("a", 0.8 + 1e-12), "same"),
        (row("a", 0.6), row("a", 0.8), "better"),
        (row("a", 0.8), row("a", None), "ungraded"),
        (row("a", 0.3), row("a", None), "ungraded"),
        (row("a", None), row("a", 0.0), "better"),
        (row("a", None, "deferred"), row("a", None), "same"),
        (row("a", None), row("a", None, "deferred"), "same"),
        (row("a", 0.9, "failed"), row("a", 0.8, "passed"), "better"),
        (row("a", 0.8, "passed"), row("a", 0.9, "failed"), "worse"),
    ],
)
def test_how_a_case_changed(before: Row, after: Row, kind: Kind) -> None:
    """By how it came out first, and by its score only where that is the same."""
    assert beside(before, after)["a"].kind == kind


def test_what_has_no_score_has_no_difference() -> None:
    """Ungraded is never counted as 0, in a case or in the mean."""
    before = Report("s", (row("a", 0.9), row("b", 0.8)))
    after = Report("s", (row("a", None), row("b", 0.8)))
    found = after.against(before)
    assert found["a"].delta is None
    assert found["a"].changed_status
    assert found.sentence == "Cases are no longer graded: 1 same, 1 ungraded, mean +0.000."
    assert (found.mean_before, found.mean_after, found.mean_delta) == (0.8, 0.8, 0.0)


def test_cases_that_are_new_or_gone_are_told_and_not_counted() -> None:
    """The mean rests on the cases that are in both."""
    found = Report("s", (row("b", 0.8), row("c", 0.1))).against(Report("s", (row("a", 1.0), row("b", 0.8))))
    assert [(change.id, change.kind) for change in found] == [("b", "same"), ("c", "new"), ("a", "gone")]
    assert found.counts == {"better": 0, "worse": 0, "same": 1, "new": 1, "gone": 1, "ungraded": 0}
    assert found.mean_delta == 0
    assert found.passed


@each_row(
    ("scores", "largest_drop", "code"),
    [
        ((0.9, 0.8), None, 0),
        ((0.9, 0.8), 0.1, 0),
        ((0.9, 0.8), 0.0999, 1),
        ((0.9, 0.8), 0.0, 1),
        ((0.8, 0.9), 0.0, 0),
        ((0.8, 0.8 - 1e-12), 0.0, 0),
        ((0.9, 0.6), None, 1),
        ((0.71, 0.69), 0.5, 1),
        ((0.9, None), None, 2),
        ((0.3, None), 1.0, 2),
        ((None, None), 0.0, 0),
        ((None, 0.0), 0.0, 0),
    ],
)
def test_what_is_allowed(scores: tuple[float | None, float | None], largest_drop: float | None, code: int) -> None:
    """A score may fall so far; a pass may not be lost, and a case may not go ungraded."""
    found = beside(row("a", scores[0]), row("a", scores[1]), largest_drop)
    assert (found.exit_code, found.passed) == (code, code == 0)


def test_a_drop_is_told_apart_from_one_that_is_allowed() -> None:
    """The cases that fell too far are listed."""
    before = Report("s", (row("a", 1.0), row("b", 1.0)))
    found = Report("s", (row("a", 0.9), row("b", 0.75))).against(before, largest_drop=0.2)
    assert [change.id for change in found.dropped] == ["b"]
    assert found.mean_delta == pytest.approx(-0.175)


@pytest.mark.parametrize(("deferred", "code"), [("pass", 0), ("fail", 1), ("error", 2)])
def test_a_pass_that_is_deferred_now_counts_as_the_report_says(deferred: Deferred, code: int) -> None:
    """As in the report's own exit code."""
    assert beside(row("a", 0.9), row("a", None, "deferred"), deferred=deferred).exit_code == code


def test_the_criteria_that_changed_are_told() -> None:
    """By id, nested ones with the ids around them; what is the same is left out."""
    old = (entry("same", 1.0), entry("less", 0.9), entry("out", 1.0), entry("style", 0.5, parts=(entry("slang", 1.0),)))
    new = (
        entry("same", 1.0),
        entry("less", 0.4, gated=True),
        Entry("new", "New", "unjudged"),
        entry("style", 0.5, parts=(entry("slang", 0.0),)),
    )
    changes = beside(row("a", 0.9, None, *old), row("a", 0.4, None, *new))["a"].criteria
    assert [(c.id, c.before, c.after, c.gated) for c in changes] == [
        ("less", 0.9, 0.4, True),
        ("new", None, "unjudged", False),
        ("style/slang", 1.0, 0.0, False),
        ("out", 1.0, None, False),
    ]


def test_rows_that_share_an_id_are_compared_in_their_order() -> None:
    """None hides another."""
    before, after = Report("s", (row("a", 0.8), row("a", 0.9))), Report("s", (row("a", 0.8), row("a", 0.7)))
    assert [change.kind for change in after.against(before)] == ["same", "worse"]


def test_a_baseline_may_be_a_file(tmp_path: Path) -> None:
    """What the JSON reporter wrote."""
    path = REPORT.write(tmp_path / "baseline.json")
    found = REPORT.against(path)
    assert found.passed
    assert found.counts["same"] == len(REPORT)


def test_a_drop_beyond_the_scale_is_refused() -> None:
    """It lies in 0..1."""
    with pytest.raises(DefinitionError, match="largest_drop"):
        REPORT.against(REPORT, largest_drop=5)


def test_too_few_cases_to_show_any_drop_are_called_so() -> None:
    """A comment on a pull request begins with it: "no drop" would be read as "nothing is worse"."""
    before, after = (Report("s", tuple(row(name, score) for name in "ab")) for score in (1.0, 0.0))
    found = after.compare(before, risk=0.05)
    assert found.passed
    assert found.sentence == "Too few cases to show a drop: 2 worse, mean -1.000."
    many = (Report("s", tuple(row(f"{n}", 1.0 - (n < bad)) for n in range(50))) for bad in (2, 0))
    assert next(many).compare(next(many), risk=0.05).sentence.startswith("No drop beyond what is allowed: 2 worse")


@each_row(
    ("scores", "said"),
    [
        ((1.0, 0.0), "fell by 0.020 (90 % interval -0.036 to +0.075, 50 cases)"),
        ((0.0, 1.0), "rose by 0.020 (90 % interval -0.036 to +0.075, 50 cases)"),
        ((1.0, 1.0), "did not change (90 % interval of the drop -0.046 to +0.046, 50 cases)"),
    ],
)
def test_an_interval_has_the_sign_of_the_figure_before_it(scores: tuple[float, float], said: str) -> None:
    """A rise has the interval of the rise, and what did not change is not called a fall of 0."""
    rest = [row(str(n), 1.0) for n in range(1, 50)]
    before, after = (Report("s", (row("0", score), *rest)) for score in scores)
    assert f"The pass rate {said}" in after.compare(before, risk=0.05).remarks()[0]


def test_a_comparison_shows_itself() -> None:
    """In a line, as a table of what changed, and as plain data."""
    found = Report("s", (evolve(FAILED, score=0.5, entries=()),)).against(Report("s", (FAILED, row("gone", 0.8))))
    assert repr(found) == "<Comparison: No pass is lost: 1 worse, 1 gone, mean -0.120.>"
    assert found.remarks()[0].startswith("A score may fall while its case passes; largest_drop=0")
    assert "| late | worse | failed 0.620 | failed 0.500 | -0.120 |" in found._repr_markdown_()
    data = json.loads(json.dumps(found.to_dict()))
    assert data["changes"][0]["delta"] == pytest.approx(-0.12)
    assert data["changes"][0]["criteria"][0] == {"id": "answers", "before": 1.0, "after": None, "gated": False}


@given(reports, reports)
@examples(25)
def test_any_two_reports_can_be_compared(before: Report, after: Report) -> None:
    """Each case of both is in it once, and a report is no worse than itself."""
    found = after.against(before, largest_drop=0.0)
    assert sum(change.kind != "gone" for change in found) == len(after)
    assert sum(change.kind != "new" for change in found) == len(before)
    assert found._repr_markdown_()
    json.dumps(found.to_dict())
    assert after.against(after, largest_drop=0.0).exit_code == 0
