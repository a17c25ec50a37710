"""
Every check and every answer there is, as unions.

A `match` over one of them ends with `assert_never`, so that type checkers name each class that was forgotten. They have
a file of their own, since a rubric that has no rules is built without the classes of runs and of rules.
"""

from __future__ import annotations

from rubric.values import checks
from rubric.values.answers import JudgeAnswer
from rubric.values.rubrics import Rubric
from rubric.values.run_rules import RunRule, RunRules
from rubric.values.trees import DecisionTree

AnyCheck = (
    checks.Contains | checks.StartsWith | checks.EndsWith | checks.ContainsAny | checks.ContainsAll | checks.Equals
    | checks.Matches | checks.IsJSON | checks.FitsSchema | checks.Calls | checks.Trajectory | RunRule | RunRules
    | checks.Within | checks.Similar | checks.Holds | checks.Script | checks.Unsupported | checks.Decided
)  # fmt: skip

AnyAnswer = JudgeAnswer | DecisionTree | Rubric | AnyCheck
