"""
Every check and every answer there is, as unions.

A `match` over one of them ends with `assert_never`, so that type checkers name each class that was forgotten. They have
a file of their own, since a rubric that has no rules is built without the classes of runs and of rules.
"""

from __future__ import annotations

from rubric.values.answers import JudgeAnswer
from rubric.values.checks import (
    Calls,
    Contains,
    ContainsAll,
    ContainsAny,
    Decided,
    EndsWith,
    Equals,
    FitsSchema,
    Holds,
    IsJSON,
    Matches,
    Script,
    Similar,
    StartsWith,
    Trajectory,
    Unsupported,
    Within,
)
from rubric.values.rubrics import Rubric
from rubric.values.run_rules import RunRule, RunRules
from rubric.values.trees import DecisionTree

AnyCheck = (
    Contains | StartsWith | EndsWith | ContainsAny | ContainsAll | Equals | Matches | IsJSON | FitsSchema | Calls
    | Trajectory | RunRule | RunRules | Within | Similar | Holds | Script | Unsupported | Decided
)  # fmt: skip

AnyAnswer = JudgeAnswer | DecisionTree | Rubric | AnyCheck
