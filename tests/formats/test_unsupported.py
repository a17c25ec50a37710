"""Graders that the library lacks: ungraded, or skipped or failed by the word of the caller."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rubric import Contains, Criterion, Rubric
from rubric.commands.grade import grade
from rubric.errors import DefinitionError
from rubric.formats.suites import dumps_suite, loads_suite
from rubric.suites.suite import Suite
from rubric.values.checks import NOTHING, Otherwise, Unsupported

CONFIG = """
tests:
  - description: half
    providerOutput: yes it is
    assert: [{type: contains, value: yes}, {type: moderation, weight: 3}]
  - description: set
    providerOutput: yes it is
    assert:
      - {type: contains, value: yes}
      - {type: assert-set, assert: [{type: moderation}, {type: not-classifier, value: x}]}
  - description: all
    providerOutput: yes it is
    assert: [{type: moderation}, {type: not-moderation}]
  - description: nothing
    providerOutput: yes it is
"""


def suite_as(otherwise: Otherwise) -> Suite:
    return loads_suite(CONFIG, "promptfoo").unsupported_as(otherwise)


@pytest.mark.parametrize(
    ("otherwise", "statuses"),
    [
        ("ungraded", ["ungraded", "ungraded", "ungraded", "ungraded"]),
        ("skip", ["passed", "passed", "ungraded", "ungraded"]),
        ("fail", ["failed", "failed", "failed", "ungraded"]),
    ],
)
def test_an_unsupported_grader_is_what_the_caller_says(otherwise: Otherwise, statuses: list[str]) -> None:
    """A case of which nothing would be left stays ungraded, and so does one that asserts nothing."""
    report = suite_as(otherwise).run("offline")
    assert [row.status for row in report] == statuses


def test_what_is_skipped_is_named_and_not_covered() -> None:
    """In the row of its case, with the share of the weight that was judged."""
    report = suite_as("skip").run("offline")
    assert report["half"].warnings == ("skipped as asked: moderation; 25% of the weight was judged",)
    result = report["half"].result
    assert result is not None
    assert (result.coverage, result.outcome.score) == (0.25, 1.0)
    assert "skipped as asked" in report.render("md")


def test_a_grader_that_is_turned_over_fails_as_well() -> None:
    """`not-moderation` does not pass because `moderation` is not there."""
    rubric = Rubric(criteria=[Criterion("x", answer=Unsupported("m"))], negate=True)
    outer = Rubric(criteria=[Criterion("c", answer=Contains("a")), Criterion("n", answer=rubric)])
    (case,) = Suite("s", [loads_suite(CONFIG, "promptfoo").cases[2]]).unsupported_as("fail")
    assert all(isinstance(criterion.answer, Unsupported) for criterion in case.rubric.criteria)
    assert outer.criteria[1].answer == rubric


def test_what_the_caller_said_can_be_written_down() -> None:
    """A native suite keeps it."""
    suite = suite_as("skip")
    assert loads_suite(dumps_suite(suite)).cases == suite.cases


def test_only_three_words_are_known() -> None:
    """Any other is refused."""
    with pytest.raises(DefinitionError, match="skip"):
        suite_as("pass")  # type: ignore[arg-type]


def test_an_empty_case_is_never_skipped() -> None:
    """It asserts nothing, which is not a grader that the library lacks."""
    assert suite_as("skip")["nothing"].rubric.criteria[0].answer == NOTHING


def test_the_command_line_skips_by_an_option(tmp_path: Path) -> None:
    """The report names what was skipped, and the exit code is that of what was judged."""
    file, out = tmp_path / "promptfooconfig.yaml", tmp_path / "r.json"
    file.write_text("\n".join(CONFIG.splitlines()[:5]))
    assert CliRunner().invoke(grade, [str(file), "-j", "offline"]).exit_code == 2
    result = CliRunner().invoke(grade, [str(file), "-j", "offline", "--unsupported", "skip", "--out", str(out)])
    assert result.exit_code == 0
    assert "skipped as asked" in json.dumps(json.loads(out.read_text()))
    assert CliRunner().invoke(grade, [str(file), "-j", "offline", "--unsupported", "fail"]).exit_code == 1
