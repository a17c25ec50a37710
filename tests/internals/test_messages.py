"""Tables that are not suites, files without replies, and arguments that do not fit: each is told what to call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from rubric import Case, Grades, Rubric, Suite, grade, grade_many, load_suite
from rubric.__main__ import main
from rubric.errors import DefinitionError, LoadError
from rubric.trust import agreement

POLITE = Rubric("tone", ["Is polite"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "question,answer\nCapital?,Paris\n"),
        ("a.jsonl", '{"question": "q", "answer": "a"}\n'),
        ("vars.jsonl", '{"vars": {"q": "a"}}\n'),
    ],
)
def test_a_table_without_assertions_is_no_suite_and_names_grade_many(tmp_path: Path, name: str, text: str) -> None:
    """The function and four commands refuse it in one line with the command to run."""
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(LoadError, match=f"grade-many rubric.yaml {file}"):
        load_suite(file)
    for command in ("lint", "validate", "convert", "plan"):
        found = CliRunner().invoke(main, [command, str(file)])
        assert found.exit_code == 2
        assert len(found.output.splitlines()) == 1


def test_a_table_with_an_assertion_is_a_suite(tmp_path: Path) -> None:
    """One column of assertions makes every row a case."""
    file = tmp_path / "a.csv"
    file.write_text("q,__expected\na,contains: b\nc,\n")
    assert len(load_suite(file)) == 2


@pytest.mark.parametrize(("name", "text"), [("e.jsonl", ""), ("e.json", " "), ("e.csv", ""), ("n.jsonl", '{"a": 1}')])
def test_a_file_without_replies_says_what_is_expected(tmp_path: Path, name: str, text: str) -> None:
    """Empty files and rows without an output show an example row."""
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(DefinitionError, match=rf"{name}: .*expected rows such as"):
        Suite("s", [Case("a", POLITE)]).answered(file)


def test_errors_on_a_scale_lie_within_its_width() -> None:
    """Intervals of the absolute error and of the bias stay within the possible range."""
    grades = grade_many(["polite is", "no", "is"], POLITE, "offline").collect()
    found = agreement(grades, {0: False, 1: True, 2: True})
    assert found.criteria
    numbers = agreement(grades, {0: 0.0, 1: 1.0, 2: 0.3})
    for name, low in (("MAE", 0), ("bias", -1)):
        interval = numbers.criteria[0][name].interval
        assert interval is None or low <= interval[0] <= interval[1] <= 1


SUITE: Any = Suite("s", [Case("a", POLITE, output="polite")])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: SUITE.plan("offline", targets="x"), "did you mean 'target'"),
        (lambda: SUITE.matrix(judge="offline"), "did you mean 'judges'"),
        (lambda: Case(cast("Any", POLITE), "a"), "Case\\('a', rubric\\)"),
        (lambda: grade("x", cast("Any", ["Is polite"]), "offline"), r"Rubric\(\"name\", \['Is polite'\]\)"),
        (lambda: Grades()[cast("Any", "nope")], "in the order of their candidates"),
    ],
)
def test_what_does_not_fit_is_told_the_call(call: Callable[[], object], said: str) -> None:
    """Misspelt options, swapped arguments and bare lists are answered with the call that works."""
    with pytest.raises((TypeError, DefinitionError), match=said):
        call()


def test_a_judge_that_cannot_write_names_the_option_at_a_terminal() -> None:
    """The command line names `--writer`, never the Python argument."""
    found = CliRunner().invoke(main, ["generate", "--outcome", "a refund", "--judge", "offline"])
    assert "--writer MODEL" in found.output
    assert "writer=" not in found.output
