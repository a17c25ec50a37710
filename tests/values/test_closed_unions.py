"""
A new kind of answer, check, finding or judge is named by a test in each place that was forgotten.

Where code matches on types, mypy does that, since each `match` ends with `assert_never`. Here is what no type checker
sees: that the unions hold every class, and that tables, files, prompts and readers of replies know every member.
"""

from __future__ import annotations

import json
import sys
from typing import Any, get_args

import pytest
from hypothesis import Phase, find, settings
from jsonschema import Draft202012Validator

from rubric import (
    Calls,
    Candidate,
    Choices,
    Contains,
    ContainsAll,
    ContainsAny,
    Criterion,
    EndsWith,
    Equals,
    FitsSchema,
    Grade,
    Holds,
    IsJSON,
    Judge,
    Levels,
    Matches,
    Rubric,
    StartsWith,
    Trajectory,
    Ungraded,
    Unit,
    YesNo,
    ask,
    call,
    dumps,
    grade,
    loads,
)
from rubric.formats.rubrics import schema
from rubric.internals.fields import Shown
from rubric.results.result import conclude
from rubric.values import Script, Similar, Unsupported, Within, judges
from rubric.values.answers import Answer, JudgeAnswer
from rubric.values.checks import Check, Decided
from rubric.values.closed_unions import AnyAnswer, AnyCheck
from rubric.values.findings import Abstained, Finding, NotApplicable, Scored, Unjudged
from rubric.values.judges import AnyJudge
from rubric.values.requests import Failure
from rubric.values.run_rules import RunRule, RunRules
from rubric.values.trees import DecisionTree
from tests import strategies
from tests.rows import each_row

JUDGED: dict[type, Answer] = {
    YesNo: YesNo(),
    Unit: Unit(),
    Levels: Levels({0: "no", 5: "yes"}),
    Choices: Choices({"bad": 0, "good": 1}),
}
"""An answer of each type that a judge is asked for in one reply."""

CHECKS: dict[type, Answer] = {
    Contains: Contains("words"),
    StartsWith: StartsWith("Some"),
    EndsWith: EndsWith("here"),
    ContainsAny: ContainsAny(["words", "text"]),
    ContainsAll: ContainsAll(["words", "here"]),
    Equals: Equals("Some words here"),
    Matches: Matches("w.rds"),
    IsJSON: IsJSON(),
    FitsSchema: FitsSchema({"type": "string"}),
    Calls: Calls("search"),
    Trajectory: Trajectory(["search"]),
    RunRule: call("search").at_least(1),
    RunRules: call("search").at_least(1) & call("delete_*").never(),
    Similar: Similar("words"),
    Within: Within(tool_calls=3),
    Holds: Holds(lambda candidate: True),
    Script: Script(["true"]),
    Unsupported: Unsupported("rouge"),
    Decided: Decided(0.5),
}
"""A check of each type."""

NESTED: dict[type, Answer] = {
    DecisionTree: ask("Are there words?").yes(1.0).no(0.0),
    Rubric: Rubric("inner", criteria=["Has words"]),
}

ANSWERS = JUDGED | CHECKS | NESTED
UNWRITTEN = {Holds, Decided}
"""What no file can hold."""

NO_WHY = Failure("timeout", "no answer")
FINDINGS: dict[type, Finding] = {
    Scored: Scored("c", 1.0),
    NotApplicable: NotApplicable("c"),
    Abstained: Abstained("c"),
    Unjudged: Unjudged("c", NO_WHY),
}


def concrete(parent: type[Any]) -> set[type[Any]]:
    """Return the classes of ours below *parent* that have no further ones."""
    # With slots, attrs makes a second class; the first one stays until it is collected.
    found = [kind for kind in parent.__subclasses__() if kind.__module__.startswith("rubric.")]
    below = [kind for kind in found if getattr(sys.modules[kind.__module__], kind.__name__, None) is kind]
    return {parent}.union(*map(concrete, below)) - {parent} if below else {parent}


@pytest.mark.parametrize(
    ("union", "parent", "samples"),
    [(AnyAnswer, Answer, ANSWERS), (AnyCheck, Check, CHECKS), (JudgeAnswer, None, JUDGED), (Finding, None, FINDINGS)],
    ids=["answers", "checks", "judged answers", "findings"],
)
def test_a_union_holds_every_class(union: Any, parent: type | None, samples: dict[type, Any]) -> None:
    """A class that is added to a family is a member of its union, and has a sample here."""
    assert set(get_args(union)) == set(samples)
    if parent is not None:
        assert concrete(parent) == set(samples)


def test_every_judge_is_a_member_of_its_union() -> None:
    """Whatever can be asked for the judges in it is in `AnyJudge`."""
    ours = [one for one in vars(judges).values() if isinstance(one, type) and one.__module__ == judges.__name__]
    shown = {one for one in ours if issubclass(one, Shown) and not one.__name__.startswith("_")}
    assert set(get_args(AnyJudge)) == shown - {judges.RecordedJudge}  # which is a `Judge`


@each_row("kind", ANSWERS, ids=lambda kind: kind.__name__)
def test_every_answer_is_described_and_written(kind: type) -> None:
    """Each answer has words for people, and a form in files that the published schema takes and the loader reads."""
    rubric = Rubric(criteria=[Criterion("Has words", answer=ANSWERS[kind])])
    assert "| Has words |" in rubric._repr_markdown_()
    if kind in UNWRITTEN:
        return
    written = dumps(rubric, format="json")
    Draft202012Validator(schema()).validate(json.loads(written))
    assert loads(written) == rubric


@each_row("kind", [*JUDGED, *NESTED], ids=lambda kind: kind.__name__)
def test_every_answer_is_asked_for_and_read(kind: type) -> None:
    """Each answer of a judge has a prompt and a reply form, and what comes back in that form is read."""
    rubric = Rubric(criteria=[Criterion("Has words", id="c", answer=ANSWERS[kind])])
    result = grade("Some words here", rubric, "offline")
    assert isinstance(result["c"], Scored)
    assert result.score == 1


@each_row("kind", CHECKS, ids=lambda kind: kind.__name__)
def test_every_check_is_run(kind: type) -> None:
    """Code decides each check without a call; what needs a suite, or is another system's, stays unjudged."""

    def never(_: object) -> str:
        raise AssertionError

    rubric = Rubric(criteria=[Criterion("Has words", id="c", answer=ANSWERS[kind])], degenerate="judge")
    candidate = Candidate("Some words here", tool_calls=[{"name": "search"}])
    try:
        found = grade(candidate, rubric, Judge(never))["c"]
    except Exception as problem:  # noqa: BLE001 - an Ungraded is the result as well
        found = problem.result["c"]  # type: ignore[attr-defined]
    assert isinstance(found, Unjudged if kind in (Script, Unsupported, Similar) else Scored)


@pytest.mark.long
@pytest.mark.parametrize("kind", JUDGED, ids=lambda kind: kind.__name__)
def test_every_answer_is_drawn_by_the_strategies(kind: type) -> None:
    """The strategies for users' own property tests draw each answer."""
    unshrunk = settings(phases=[Phase.generate], max_examples=500)
    assert isinstance(find(strategies.flat_answers, lambda answer: isinstance(answer, kind), settings=unshrunk), kind)


@pytest.mark.parametrize("kind", FINDINGS, ids=lambda kind: kind.__name__)
def test_every_finding_is_shown_and_written(kind: type) -> None:
    """Each finding has a row for people and a kind in plain data."""
    rubric = Rubric(criteria=[Criterion("Has words", id="c", abstain="zero")])
    result = conclude(rubric, Judge("offline"), [FINDINGS[kind]])
    assert isinstance(result, Grade | Ungraded)
    assert result._repr_markdown_().count("\n| c: Has words |") == 1
    (written,) = result.to_dict()["findings"]
    assert written["kind"].replace("_", "") == kind.__name__.lower()
