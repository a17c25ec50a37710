"""No text of a result steers a terminal: control characters and direction marks are escapes at every door."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from rubric import Case, Criterion, Grades, Rubric, RubricError, Suite, UngradedError, evaluate
from rubric.driving import Failure
from rubric.suites.report import Report
from rubric.suites.reporters.registry import reporter_names

HOSTILE = "red\x1b[31m bell\x07 csi\x9b2J right\u202eleft nul\x00 del\x7f"
STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
RUBRIC = Rubric("any").expects("Is it polite").scores("Is it warm")


def said(messages: list[dict[str, str]]) -> str:
    """Give a reason that would turn a terminal red."""
    return json.dumps({"reason": HOSTILE, "verdict": False} | ({"score": 0.5} if "0" in messages[-1] else {}))


def raising(_: list[dict[str, str]]) -> str:
    raise ValueError(HOSTILE)


def rendered(report: Report, name: str) -> str:
    """Return *report* as the reporter *name* writes it; the error of one that writes nothing of an ungraded case."""
    try:
        return report.render(name)
    except RubricError as error:
        return str(error)


def doors(judge: Any) -> dict[str, str]:
    """Return every text that people read of a result of *judge*, by its door."""
    result = evaluate("Hello there, you.", RUBRIC, judge)
    many = Grades([result])
    report = Suite("s", [Case(id="c", output="Hello\x1b there", rubric=RUBRIC)]).run(judge)
    failed = Failure("exception", HOSTILE)
    texts = {
        **{f"report.{name}": rendered(report, name) for name in reporter_names() if name not in ("json", "ndjson")},
        "failure": str(failed),
        "error": str(UngradedError(result)) if result.score is None else "",
        "explain": result.explain(),
        "feedback": "" if result.score is None else result.feedback(),
    }
    for name, item in {"result": result, "grades": many, "summary": many.summary(), "report": report}.items():
        for door in ("__str__", "to_markdown", "_repr_markdown_", "_repr_html_"):
            if callable(show := getattr(item, door, None)):
                texts[f"{name}.{door}"] = show()
    return texts


@pytest.mark.parametrize("judge", [said, raising])
def test_no_text_of_a_result_steers_a_terminal(judge: Any) -> None:
    """A judge's reason and an exception's text are escaped in text, Markdown, HTML and every reporter."""
    steering = {door: STEERS.findall(text) for door, text in doors(judge).items() if STEERS.search(text)}
    assert steering == {}


def test_advice_escapes_the_text_of_criteria() -> None:
    """The feedback for an author shows a criterion's control characters as escapes."""
    rubric = Rubric().adding(Criterion("Is it\x1b[31m polite?", id="polite"))
    result = evaluate("Hello there, you.", rubric, lambda _: '{"reason": "no", "verdict": false}')
    assert "\\u{1b}[31m" in result.feedback()  # type: ignore[union-attr]
    assert not STEERS.search(result.feedback())  # type: ignore[union-attr]
