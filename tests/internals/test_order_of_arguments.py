"""Arguments in a wrong order, of another call, or of another kind are answered with the call that works."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import count

import pandas as pd
import pytest

from rubric import DefinitionError, Grades, Judge, Rubric, Suite, grade, grade_many, judge_function, prefer
from rubric.errors import CallError
from rubric.quality import probe
from rubric.trust import Labels, agreement
from tests.rows import each_row

POLITE = Rubric("reply", ["Is polite"])
TEXTS = ["We thank you, politely.", "No."]
GRADES = grade_many(TEXTS, POLITE, "offline", progress=False).collect()
LABELS = Labels({0: True, 1: False})
YES = judge_function(lambda candidate, criterion: True)


@each_row(
    ("call", "order"),
    [
        (lambda: probe(TEXTS, POLITE, "offline"), "probe(rubric, judge, candidates)"),  # type: ignore[arg-type]
        (lambda: agreement(LABELS, GRADES), "agreement(grades, "),
        (lambda: prefer(POLITE, "one", "two", "offline"), "prefer(a, b, rubric, judge)"),  # type: ignore[arg-type]
        (lambda: prefer("one", "two", "offline", POLITE), "prefer(a, b, rubric, judge)"),
        (lambda: grade(POLITE, "We thank you.", YES), "candidate comes first, then the rubric"),  # type: ignore[arg-type]
        (lambda: grade("offline", POLITE, "We thank you for your letter."), "candidate comes first"),
        (lambda: grade_many(YES, POLITE, TEXTS), "candidate comes first, then the rubric"),  # type: ignore[arg-type]
    ],
    ids=count(),
)
def test_arguments_in_a_wrong_order_are_told_the_order(call: Callable[[], object], order: str) -> None:
    """A value of ours that stands in the place of another is named, whatever the function."""
    with pytest.raises(DefinitionError) as raised:
        call()
    assert order in str(raised.value)


@pytest.mark.parametrize("rubric", ["rubric", ["rubric", "Is polite"]])
def test_a_rubric_that_names_a_column_is_refused(rubric: str | list[str]) -> None:
    """The text and the column could both be meant, so the error has both lines; each works."""
    rows = [{"output": "We thank you.", "rubric": "Says thanks"}, {"output": "No.", "rubric": "Is polite"}]
    for candidates, line in ((rows, "[row['rubric'] for row in rows]"), (pd.DataFrame(rows), "list(frame['rubric'])")):
        with pytest.raises(DefinitionError) as raised:
            grade_many(candidates, rubric, "offline")
        assert f"write rubric={line}; for this text, write rubric=Rubric.of('rubric')" in str(raised.value)
        each = eval(line, {"rows": rows, "frame": candidates})  # noqa: S307 - the line that was printed
        assert [one.rubric.text for one in grade_many(candidates, each, "offline")] == ["Says thanks", "Is polite"]
    assert grade_many(rows, Rubric.of("rubric"), "offline").collect()[0].rubric.text == "rubric"


@each_row(
    ("call", "cure"),
    [
        (lambda: GRADES.sort("score", ascending=False), "write grades.sort('score', descending=True)"),  # type: ignore[call-arg]
        (lambda: GRADES.sort(by="score"), "write grades.sort('score')"),  # type: ignore[call-arg]
        (lambda: GRADES.worst(n=5), "Write grades.worst(5)"),  # type: ignore[call-arg]
        (lambda: GRADES.filter("score > 0.5"), "lambda g: g.score > 0.5"),  # type: ignore[arg-type]
        (lambda: Suite("s", []).run(limit=1), "such as suite.only('refund')"),  # type: ignore[call-arg]
        (lambda: grade("Thanks", POLITE, YES, temperature=0), "attrs.evolve(judge, temperature=0)"),  # type: ignore[call-arg]
        (lambda: grade(outputs="Thanks", judge=YES), "Write grade(candidate='Thanks', judge=judge, rubric=rubric)"),  # type: ignore[call-arg]
        (lambda: grade_many(TEXTS, ["a", "b", "c"], YES), "Rubric('reply', ['Is polite', 'Is clear'])"),
        (lambda: Labels([True, False]), "dict(enumerate(values))"),  # type: ignore[list-item]
        (lambda: Judge("judge.py"), "judge_function(function)"),
    ],
    ids=count(),
)
def test_a_call_that_does_not_fit_is_told_the_one_that_does(call: Callable[[], object], cure: str) -> None:
    """Methods and functions alike answer with a line to paste."""
    with pytest.raises((CallError, DefinitionError)) as raised:
        call()
    assert cure in str(raised.value)


def test_few_results_are_printed_one_by_one() -> None:
    """`print(grades.worst(5))` shows the results, each with what it falls short of; many show the summary alone."""
    assert "#1: reply: fail" in str(GRADES.worst(5))
    assert "#1" not in str(Grades([*GRADES] * 6))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from rubric.metrics import cohen_kappa_score", "agreement(grades, labels).overall['kappa'].value"),
        ("from rubric.judges import Judge", "it is in rubric: from rubric import Judge"),
        ("from rubric.pytest import assert_grade", "it is rubric.integrations.pytest"),
        ("import rubric.nothing_of_ours", "names are in rubric itself"),
    ],
)
def test_a_module_that_there_is_not_is_answered_with_the_one_that_there_is(line: str, said: str) -> None:
    """The error is Python's own, with the cure for the names that were to be imported."""
    with pytest.raises(ModuleNotFoundError) as raised:
        exec(line)  # noqa: S102 - a line of this test
    assert said in str(raised.value)


def test_whether_a_module_is_there_can_still_be_asked() -> None:
    """`find_spec` says None of a module that there is not, as of any other package's."""
    code = "import rubric, importlib.util as u; print(u.find_spec('rubric.metrics'), u.find_spec('rubric.trust').name)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["None", "rubric.trust"]
