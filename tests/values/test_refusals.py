"""What no noun can hold is refused where it is built, with the field and the cure."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from rubric import (
    Anchor,
    Calls,
    Candidate,
    Choice,
    Choices,
    Contains,
    Criterion,
    DecisionTree,
    DefinitionError,
    FitsSchema,
    Judge,
    Jury,
    Levels,
    Likert,
    Matches,
    Panel,
    Rubric,
    ScoreRange,
    ToolCall,
    Unit,
    When,
    ask,
)
from rubric.values import Leaf
from rubric.values.judges import as_judge
from tests.rows import each_row

HALF: Any = ask("Is it so?").yes(1)
TREE = ask("Is it so?").yes(1).no(0)


def levels(given: Any) -> Levels:
    """Return levels; their one argument has no name."""
    return Levels(given)


def choices(given: Any) -> Choices:
    """Return choices; their one argument has no name."""
    return Choices(given)


REFUSED: list[tuple[Callable[..., Any], dict[str, Any], str, str]] = [
    (Criterion, {"text": ""}, "text", "got an empty one"),
    (Criterion, {"text": " \n"}, "text", "got an empty one"),
    (Criterion, {"text": False}, "text", 'quote it: "no"'),
    (Criterion, {"text": 7}, "text", "got 7"),
    (Criterion, {"text": "x", "id": ""}, "id", "got an empty one"),
    (Criterion, {"text": "x", "id": " a"}, "id", "take them out"),
    (Criterion, {"text": "x", "id": "a\u200bb"}, "id", "invisible"),
    (Criterion, {"text": "x", "weight": -1}, "weight", "from 0"),
    (Criterion, {"text": "x", "weight": math.nan}, "weight", "got nan"),
    (Criterion, {"text": "x", "weight": math.inf}, "weight", "got inf"),
    (Criterion, {"text": "x", "weight": 10**400}, "weight", "a finite number"),
    (Criterion, {"text": "x", "weight": "2"}, "weight", "got '2'"),
    (Criterion, {"text": "x", "weight": True}, "weight", "got True"),
    (Criterion, {"text": "x", "required": 1}, "required", "True or False"),
    (Criterion, {"text": "x", "min_score": 0}, "min_score", "above 0 to 1"),
    (Criterion, {"text": "x", "min_score": 1.01}, "min_score", "above 0 to 1"),
    (Criterion, {"text": "x", "polarity": "gaurd"}, "polarity", "did you mean 'guard'?"),
    (Criterion, {"text": "x", "answer": "yes"}, "answer", "YesNo()"),
    (Criterion, {"text": "x", "answer": Unit}, "answer", "YesNo()"),
    (Criterion, {"text": "x", "answer": HALF}, "answer", "YesNo()"),
    (Criterion, {"text": "x", "when": "error"}, "when", "When(contains=...)"),
    (Criterion, {"text": "x", "anchors": Anchor("a", 1)}, "anchors", "a list of Anchor"),
    (Criterion, {"text": "x", "anchors": [("a", 1)]}, "anchors[0]", "expected Anchor"),
    (Criterion, {"text": "x", "evidence": "yes"}, "evidence", "True or False"),
    (Criterion, {"text": "x", "abstain": "exlude"}, "abstain", "did you mean 'exclude'?"),
    (Criterion, {"text": "x", "abstain": 2}, "abstain", "from 0 to 1"),
    (Criterion, {"text": "x", "tags": "ab"}, "tags", "a list of texts"),
    (Criterion, {"text": "x", "metadata": 5}, "metadata", "a mapping"),
    (Anchor, {"response": "", "score": 1}, "response", "got an empty one"),
    (Anchor, {"response": "x", "score": 1.1}, "score", "from 0 to 1"),
    (When, {}, "when", "got nothing"),
    (
        Criterion,
        {"text": "x", "levels": (0, 2), "min_score": 1},
        "min_score",
        "for the level give 0.5, for the best 1.0",
    ),
    (When, {"contains": "a", "regex": "b"}, "when", "got contains and regex"),
    (When, {"regex": "("}, "regex", "RE2"),
    (When, {"regex": "(?=a)"}, "regex", "no look-around"),
    (When, {"holds": 3}, "when", "a function"),
    (ScoreRange, {"low": 5, "high": 3, "text": "x"}, "low", "swap them"),
    (ScoreRange, {"low": 0.5, "high": 3, "text": "x"}, "low", "a whole number"),
    (levels, {"given": [ScoreRange(0, 5, "a"), ScoreRange(5, 9, "b")]}, "ranges", "overlap"),
    (levels, {"given": [ScoreRange(0, 3, "a"), ScoreRange(7, 9, "b")]}, "ranges", "no band covers 4-6"),
    (levels, {"given": [ScoreRange(1, 1, "a")]}, "ranges", "at least two scores"),
    (levels, {"given": {"0-5": "a", 3: "b"}}, "ranges", "overlap"),
    (levels, {"given": {"0-5": "a", 7: "b"}}, "ranges", "no band covers 6"),
    (levels, {"given": {0: "a", "0": "b"}}, "ranges", "two bands start at 0"),
    (levels, {"given": {0: "a", 5: False}}, "ranges[5]", 'quote it: "no"'),
    (levels, {"given": {0.5: "a"}}, "ranges", "a whole number"),
    (levels, {"given": {"low": "a"}}, "ranges", '"7-10"'),
    (levels, {"given": 10}, "ranges", "a list of ScoreRange"),
    (choices, {"given": {"only": 1}}, "choices", "at least two options, got 1"),
    (choices, {"given": {"Yes": 1, "yes ": 0}}, "choices", "stands twice"),
    (choices, {"given": {"a": 0, "b": 2}}, "score", "from 0 to 1"),
    (Choice, {"label": "", "score": 1}, "label", "got an empty one"),
    (Leaf, {"score": 1.5}, "score", "from 0 to 1"),
    (Leaf, {"score": True}, "score", "got True"),
    (DecisionTree, {"question": "q", "yes": HALF, "no": 0}, "yes", "both .yes(...) and .no(...)"),
    (DecisionTree, {"question": "q", "yes": 1, "no": "0"}, "no", "a score from 0 to 1"),
    (DecisionTree, {"question": " ", "yes": 1, "no": 0}, "question", "got an empty one"),
    (Contains, {"text": ""}, "text", "got an empty one"),
    (Matches, {"pattern": ""}, "pattern", "a regular expression"),
    (Matches, {"pattern": "a{2000}"}, "pattern", "RE2"),
    (Matches, {"pattern": r"(a)\1"}, "pattern", "no back-references"),
    (FitsSchema, {"schema": {"type": "strnig"}}, "schema", "not a JSON Schema"),
    (FitsSchema, {"schema": {"intent": "billing"}}, "schema", "'intent' is not a keyword of JSON Schema"),
    (FitsSchema, {"schema": {"items": {"requird": ["a"]}}}, "schema", "did you mean 'required'?"),
    (FitsSchema, {"schema": {"properties": {"a": {"nullable": True}}}}, "schema", 'write type: [string, "null"]'),
    (FitsSchema, {"schema": True}, "schema", "a mapping"),
    (Calls, {"name": "x", "arguments": ["a"]}, "arguments", "a mapping"),
    (Likert, {"low": 5, "high": 1}, "high", "runs upwards"),
    (Likert, {"low": math.nan}, "low", "a finite number"),
    (Rubric, {"name": None}, "name", "expected text"),
    (Rubric, {"criteria": "Is it good?"}, "criteria", "a list of criteria"),
    (Rubric, {"criteria": ["Good?", 5]}, "criteria[1]", "got 5"),
    (Rubric, {"criteria": ["Good?", ""]}, "criteria[1].text", "got an empty one"),
    (Rubric, {"criteria": ["Good?", "good"]}, "criteria[1].id", "'good' belongs to criteria[0] already"),
    (Rubric, {"criteria": ["Good?"], "text": "x"}, "text", "not both"),
    (Rubric, {"text": "x", "tree": TREE}, "tree", "not both"),
    (Rubric, {"text": " "}, "text", "got white space"),
    (Rubric, {"tree": HALF}, "tree", "a DecisionTree"),
    (Rubric, {"tree": Leaf(1)}, "tree", "a DecisionTree"),
    (Rubric, {"tree": TREE, "aggregation": "min"}, "aggregation", "takes none"),
    (Rubric, {"tree": TREE, "threshold": None}, "threshold", "no pass flag"),
    (Rubric, {"threshold": 1.01}, "threshold", "from 0 to 1"),
    (Rubric, {"threshold": -0.1}, "threshold", "from 0 to 1"),
    (Rubric, {"threshold": math.nan}, "threshold", "got nan"),
    (Rubric, {"threshold": "0.7"}, "threshold", "got '0.7'"),
    (Rubric, {"threshold": None, "criteria": [Criterion("x", answer=Unit())]}, "threshold", "Unit(flag=True)"),
    (Rubric, {"borderline": 0.8}, "borderline", "at most the threshold 0.7"),
    (Rubric, {"strict": "yes"}, "strict", "True or False"),
    (Rubric, {"aggregation": "wieghted_average"}, "aggregation", "did you mean 'weighted_average'?"),
    (Rubric, {"aggregation": "sum"}, "aggregation", "allowed: weighted_average, min, points"),
    (Rubric, {"abstain": True}, "abstain", "from 0 to 1"),
    (Rubric, {"scale": "letter"}, "scale", "Letter()"),
    (Rubric, {"degenerate": "pass"}, "degenerate", "allowed: fail, judge, error"),
    (Candidate, {"output": None}, "output", "is missing"),
    (Candidate, {"output": "x", "messages": 5}, "messages", "a list of Messages"),
    (Candidate, {"output": "x", "tool_calls": [{"nme": "x"}]}, "tool_calls[0]", "nme"),
    (Candidate, {"output": "x", "variables": ["a"]}, "variables", "a mapping"),
    (Candidate, {"output": "x", "images": ["http://x/y.png"]}, "images[0]", "https://"),
    (Candidate, {"output": "x", "images": ["https://"]}, "images[0]", "https://host/..."),
    (Candidate, {"output": "x", "images": ["data:image/png;base64,!!!"]}, "images[0]", "base64"),
    (Candidate, {"output": "x", "images": ["data:image/png;base64,"]}, "images[0]", "base64"),
    (Candidate, {"output": "x", "images": ["data:image/png;base64,AAAA", "data:image/png"]}, "images[1]", "base64"),
    (Candidate, {"output": "x", "tool_calls": [{"name": "a"}, {"name": "b", "turn": 7}]}, "tool_calls[1]", "turn"),
    (ToolCall, {"name": ""}, "name", "got an empty one"),
    (Judge, {"model": ""}, "model", "the name of a model"),
    (Judge, {"model": None}, "model", "a LiteLLM model name"),
    (Judge, {"model": "m", "temperature": 3}, "temperature", "from 0 to 2"),
    (Judge, {"model": "m", "max_tokens": 0}, "max_tokens", "at least 1"),
    (Judge, {"model": "m", "timeout": 0}, "timeout", "above 0"),
    (Judge, {"model": "m", "per_call": "most"}, "per_call", "a whole number of at least 1 or 'all'"),
    (Judge, {"model": "m", "per_call": 0}, "per_call", "at least 1"),
    (Judge, {"model": "m", "repairs": -1}, "repairs", "at least 0"),
    (Judge, {"model": "m", "reasoning": "first"}, "reasoning", "before"),
    (Judge, {"model": "m", "params": {"n": 3}}, "params.n", "Jury(judge, size)"),
    (Judge, {"model": "m", "params": 3}, "params", "a mapping"),
    (Jury, {"judge": "m", "size": 0}, "size", "at least 1"),
    (Jury, {"judge": "m", "consensus": 0}, "consensus", "above 0 to 1"),
    (Jury, {"judge": "m", "consensus": 2}, "consensus", "above 0 to 1"),
    (Jury, {"judge": "m", "size": 2, "quorum": 3}, "quorum", "at most the number of votes, 2"),
    (Panel, {"judges": []}, "judges", "at least one judge"),
    (Panel, {"judges": "m"}, "judges", "a list of judges"),
    (Panel, {"judges": ["m"], "aggregate": "avrage"}, "aggregate", "allowed: mean, median, majority"),
    (Panel, {"judges": ["m"], "aggregate": "mayority"}, "aggregate", "did you mean 'majority'?"),
    (Panel, {"judges": ["m"], "tie_break": "random"}, "tie_break", "fail"),
    (Panel, {"judges": ["m"], "weights": [1, 2]}, "weights", "one a judge, 1, got 2"),
    (Panel, {"judges": ["m"], "weights": [0]}, "weights", "positive"),
    (Panel, {"judges": ["m"], "weights": [math.nan]}, "weights", "positive"),
    (Panel, {"judges": ["m"], "weights": 5}, "weights", "a list of numbers"),
    (Panel, {"judges": ["m"], "quorum": 2}, "quorum", "at most the number of votes, 1"),
]


@each_row(
    ("noun", "given", "field", "cure"), REFUSED, ids=[f"{n.__name__}-{f}-{i}" for i, (n, _, f, _) in enumerate(REFUSED)]
)
def test_a_value_that_cannot_be_is_refused(noun: Any, given: dict[str, Any], field: str, cure: str) -> None:
    """The error names the field, and says what may stand there or what to do (E1, E6)."""
    with pytest.raises(DefinitionError) as refused:
        noun(**given)
    assert refused.value.field == field
    assert cure in str(refused.value)


VERBS: list[tuple[Callable[[], Any], str]] = [
    (lambda: Rubric().expects("a").expects("a"), "criteria[1].id"),
    (lambda: Rubric().without("a"), "id"),
    (lambda: Rubric().expects("a").without("b"), "id"),
    (lambda: Rubric().revising("a", weight=2), "id"),
    (lambda: Rubric().expects("a").revising("a", wieght=2), "wieght"),
    (lambda: Rubric().expects("a").revising("a", metadata=2), "metadata"),
    (lambda: Rubric.of("x").expects("a"), "text"),
    (lambda: Rubric.deciding(TREE).by_worst(), "aggregation"),
    (lambda: Rubric().scores("a").passing_at(None), "threshold"),
    (lambda: Rubric().passing_at(None).scores("a"), "threshold"),
    (lambda: Rubric().checks(5), "check"),  # type: ignore[arg-type]  # the point of the test
    (lambda: Rubric().decides("x", by=HALF), "by"),
    (lambda: Rubric().includes("x"), "rubric"),  # type: ignore[arg-type]  # the point of the test
    (lambda: ask("q").yes(1).yes(0), "yes"),
    (lambda: ask("q").yes(TREE, "a reason"), "yes"),
    (lambda: Candidate.of(5), "candidate"),  # type: ignore[arg-type]  # the point of the test
    (lambda: as_judge([]), "judges"),
]


@each_row(("verb", "field"), VERBS, ids=[f"{field}-{i}" for i, (_, field) in enumerate(VERBS)])
def test_a_verb_refuses_like_a_constructor(verb: Callable[[], Any], field: str) -> None:
    """No chain leads to a rubric that could not be written down at once."""
    with pytest.raises(DefinitionError) as refused:
        verb()
    assert refused.value.field == field


def test_an_unknown_field_is_an_error() -> None:
    """E1: a misspelt weight is not a weight of 1."""
    with pytest.raises(TypeError, match="wieght"):
        Criterion("x", wieght=2)  # type: ignore[call-arg]  # the point of the test


def test_a_tree_is_at_most_sixty_four_questions_deep() -> None:
    """One more is refused."""
    tree = TREE
    for _ in range(63):
        tree = ask("q").yes(tree).no(0)
    with pytest.raises(DefinitionError, match="at most 64 questions deep"):
        ask("q").yes(tree).no(0)


def test_a_missing_id_is_told_with_the_nearest_one() -> None:
    """As a `KeyError`, like that of any mapping."""
    with pytest.raises(KeyError, match="did you mean 'clarity'"):
        Rubric().expects("x", id="clarity")["clarty"]


def test_a_refusal_can_be_pickled() -> None:
    """It crosses process borders with its field."""
    error = pickle.loads(pickle.dumps(DefinitionError("weight", "no")))  # noqa: S301 - our own
    assert (error.field, error.message, str(error)) == ("weight", "no", "weight: no")


def test_a_verb_cannot_be_taken_back() -> None:
    """What it means is not an option."""
    with pytest.raises(DefinitionError, match=r"^required: this verb means True, got False"):
        Rubric().requires("x", required=False)
    with pytest.raises(DefinitionError, match=r"^polarity: this verb means 'guard', got 'satisfy'"):
        Rubric().forbids("x", polarity="satisfy")  # type: ignore[call-arg]  # the point of the test
    assert Rubric().requires("x", required=True) == Rubric().requires("x")
