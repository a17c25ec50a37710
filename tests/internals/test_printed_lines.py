"""Whatever wrong call is made of whatever public function, the line that is printed fits what it calls."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable
from importlib import resources
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rubric
from rubric import CallError, Candidate, DefinitionError, Judge, Rubric, grade_many
from rubric.internals.cure_lines import sound
from rubric.trust import agreement, compare, estimate

TABLE = tomllib.loads(resources.files("rubric.internals").joinpath("guesses.toml").read_text("utf-8"))
R = Rubric("reply").expects("Thanks the customer", id="thanks")
GRADES = grade_many([Candidate("We thank you."), Candidate("No.")], R, "offline").collect()
NAMES: dict[str, Any] = {name: getattr(rubric, name) for name in rubric.__all__} | {
    "rubric": R, "judge": Judge("offline"), "candidate": Candidate("Thanks."), "candidates": ["Thanks."],
    "grades": GRADES, "agreement": agreement, "compare": compare,
}  # fmt: skip
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "Rubric": (Rubric, ("reply", ["Is polite"])),
    "Criterion": (rubric.Criterion, ("Is polite",)),
    "Candidate": (Candidate, ("Thanks.",)),
    "Judge": (Judge, ("openai/gpt-5",)),
    "Jury": (rubric.Jury, ("offline", 3)),
    "Panel": (rubric.Panel, (["offline", "offline"],)),
    "Budget": (rubric.Budget, ()),
    "Limits": (rubric.Limits, ()),
    "Contains": (rubric.Contains, ("a",)),
    "grade": (rubric.grade, ("Thanks.", R, "offline")),
    "grade_many": (grade_many, (["Thanks."], R, "offline")),
    "plan": (rubric.plan, ("Thanks.", R, "offline")),
    "expects": (R.expects, ("Is warm",)),
    "forbids": (R.forbids, ("Is rude",)),
    "rates": (R.rates, ("Is warm", 1, 5)),
    "scores": (R.scores, ("Is warm",)),
    "agreement": (agreement, (GRADES, {0: True, 1: False})),
    "compare": (compare, (GRADES, GRADES)),
    "estimate": (estimate, (GRADES, {0: True, 1: False})),
    "worst": (GRADES.worst, ()),
    "sort": (GRADES.sort, ("score",)),
}
WORDS = sorted(
    {
        word
        for part in ("arguments", "notes")
        for cures in TABLE[part].values()
        for words in cures.values()
        for word in words.split()
        if word.isidentifier()
    }
    | {word for words in TABLE["terms"].values() for word in words.split() if word.isidentifier()}
)
VALUES: list[Any] = [
    None, True, False, 0, 3, 0.5, -1, "3", "80%", "high", "1-5", "2 min", "", [], ["a", "b"], [("a", 1)], [1, 2, 3],
    {"a": 1}, {"a": "x"}, (1, 5), "majority", "offline", R, GRADES,
]  # fmt: skip


def lines_in(said: str) -> list[str]:
    """Return what *said*, a message, proposes as code: what follows each `write`, if that is a call of a name."""
    return list(re.findall(r"[Ww]rite ((?:await )?[A-Za-z_.]+\(.*?\)[\w.()]*)(?=; |$|, or )", said))


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(CALLS)),
    st.dictionaries(st.sampled_from(WORDS), st.sampled_from(VALUES), min_size=1, max_size=2),
)
def test_a_line_that_is_printed_fits_what_it_calls(call: str, named: dict[str, Any]) -> None:
    """Each wrong call is refused by an error of ours; its lines compile, and bind to the signatures that they name."""
    function, args = CALLS[call]
    try:
        function(*args, **named)
    except (CallError, DefinitionError) as error:
        for line in lines_in(str(error)):
            compile(line.removeprefix("await "), "cure", "eval")
            name = line.removeprefix("await ").partition("(")[0]
            if name in NAMES and inspect.isclass(NAMES[name]) and "..." not in line and "open" not in line:
                eval(line, dict(NAMES))  # noqa: S307 - a value of ours is made: that sends and changes nothing
            assert sound(f"; write {line}") == f"; write {line}"


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("no; write grades.first(5)", "no"),
        ("no; write grades.worst(5)", "no; write grades.worst(5)"),
        ("no; write grade(candidate, rubric, judge, speed=1)", "no"),
        (
            "no; write Budget(cost='x'); or, for calls, write Budget(calls=5)",
            "no; or, for calls, write Budget(calls=5)",
        ),
        ("no; write rubric.load('a.yaml')", "no; write rubric.load('a.yaml')"),
        ("no; write the lowest, (1, 5)", "no; write the lowest, (1, 5)"),
    ],
)
def test_a_line_that_does_not_fit_is_not_printed(said: str, left: str) -> None:
    """A member that there is not, an option that the call does not take, a value that is refused: no line has one."""
    assert sound(said) == left
