"""What every adapter does with its options, whatever the harness."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from rubric import DefinitionError, Rubric
from rubric.embed import Grader
from tests.rows import each_row


@each_row(
    ("option", "cure"),
    [
        ({"stroe": "kept.db"}, "did you mean 'store'?"),
        ({"judges": "openai/gpt-5"}, "did you mean 'judge'?"),
        ({"model": "openai/gpt-5"}, "did you mean 'judge'?"),
        ({"workers": 4}, "did you mean 'concurrency'?"),
        ({"cache": True}, "write store='replies.db'"),
        ({"rpm": 60}, "write limits=Limits(rpm=60)"),
        ({"max_cost": 2}, "write budget=Budget(cost=2)"),
        ({"threshold": 0.5}, "write rubric.passing_at(0.5)"),
        ({"n": 3}, "write Jury('openai/gpt-5', 3)"),
        ({"colour": 3}, "allowed: concurrency, store, budget, limits, keep, judge, candidate"),
    ],
)
def test_a_wrong_option_of_an_adapter_is_told_the_right_one(option: dict[str, Any], cure: str) -> None:
    """The words that people bring are answered as in calls of this library."""
    with pytest.raises(DefinitionError) as refused:
        Grader(Rubric("r", ["Is polite"]), "offline", option)
    assert cure in str(refused.value)


@each_row(
    ("line", "cure"),
    [
        ("from rubric.integrations.langsmith import evaluator", "did you mean 'rubric_evaluator'?"),
        ("from rubric.integrations.langsmith import create_llm_as_judge", "; grade('the reply', "),
        ("from rubric.integrations.trl import reward_xyz", "; it has default_candidate, rubric_reward"),
        ("from rubric.integrations import openai", "model(client, 'gpt-5')"),
    ],
)
def test_a_name_that_an_adapter_lacks_is_answered(line: str, cure: str) -> None:
    """An import has the adapter's own names, or what the package says of the name; `hasattr` stays as it is."""
    with pytest.raises(ImportError) as refused:
        exec(line)  # noqa: S102 - the lines above
    assert cure in str(refused.value)
    module = line.split()[1]
    assert not hasattr(import_module(module), "evaluator_")
