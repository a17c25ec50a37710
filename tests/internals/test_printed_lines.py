"""Whatever wrong call is made of whatever public function, the line that is printed fits what it calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rubric
from rubric import CallError, Candidate, DefinitionError, Judge, Rubric, grade_many
from rubric.internals.cure_lines import sound
from rubric.trust import Labels, agreement, compare, estimate
from tests.examples import examples
from tests.wrong_calls import WORDS, lines_in, lost_values, public_calls, wrong_call

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
VALUES: list[Any] = [
    None, True, False, 0, 3, 0.5, -1, "3", "80%", "high", "1-5", "2 min", "", [], ["a", "b"], [("a", 1)], [1, 2, 3],
    {"a": 1}, {"a": "x"}, (1, 5), "majority", "offline", R, GRADES,
]  # fmt: skip


@examples(150)
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
            compile(line.removeprefix("await "), "cure", "exec")
            name = line.removeprefix("await ").partition("(")[0]
            if name in NAMES and inspect.isclass(NAMES[name]) and "..." not in line and "open" not in line:
                eval(line, dict(NAMES))  # noqa: S307 - a value of ours is made: that sends and changes nothing
            assert sound(f"; write {line}", own=call) == f"; write {line}"


OURS: dict[str, Any] = {
    "rubric": R, "judge": Judge("offline"), "candidate": Candidate("Thanks."), "grades": GRADES, "new": GRADES,
    "old": GRADES, "labels": Labels({0: True, 1: False}), "others": Labels({0: True, 1: False}),
    "suite": rubric.Suite("s", [rubric.Case("refund", R, output="Thanks.")]),
}  # fmt: skip
PUBLIC = public_calls(
    {type(each): each for each in (*OURS.values(), GRADES[0], R[0], rubric.Jury("offline", 3), OURS["suite"].cases[0])}
)


@examples(400)
@given(st.sampled_from(sorted(PUBLIC)), st.randoms(use_true_random=False))
def test_a_line_has_everything_that_was_typed(name: str, random: Random) -> None:
    """Whatever is called with one or two mistakes: a line has each value, or the message says which it leaves out."""
    called, function = PUBLIC[name]
    args, named = wrong_call(name, function, OURS, random)
    parameters = inspect.signature(function).parameters
    places = [n for n, p in parameters.items() if p.kind <= p.POSITIONAL_OR_KEYWORD and n not in ("self", "cls")]
    takes_any = {p.kind for p in parameters.values()} & {inspect.Parameter.VAR_KEYWORD}
    fits = named.keys() <= parameters.keys() or takes_any
    takes_more = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    if fits and (takes_more or len(args) <= len(places)):
        return  # it may run
    said = ""
    with suppress(ValueError, KeyError, IndexError, AttributeError, TypeError):  # of a value that fits nothing
        try:
            answer = called(*args, **named)
            if inspect.iscoroutine(answer):
                answer.close()
        except (CallError, DefinitionError) as error:
            said = str(error)
    assert lost_values(said, args, named, places) == []
    for line in lines_in(said):
        assert sound(f"; write {line}", own=name) == f"; write {line}"


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
