"""The reward function for TRL, called as TRL's trainers call one."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from rubric import DefinitionError
from rubric.integrations.trl import default_candidate, rubric_reward
from tests.harnesses import BAD, GOOD, ODD, POLITE, judging

COLUMNS = {"answer": ["Friday"] * 3, "trainer_state": object()}


def rewards(completions: list[Any], prompts: list[Any], **options: Any) -> tuple[list[float | None], dict[str, Any]]:
    """Return what the function gives for a batch, and what it logs."""
    logged: dict[str, Any] = {}
    with judging() as judge:
        reward = rubric_reward(POLITE, judge, **options)
        assert inspect.iscoroutinefunction(reward)  # or TRL would not await it
        found = asyncio.run(
            reward(
                prompts=prompts,
                completions=completions,
                completion_ids=[[1]] * 3,
                log_extra=logged.__setitem__,
                log_metric=logged.__setitem__,
                **COLUMNS,
            )
        )
    return found, logged


def test_an_ungraded_completion_has_no_reward() -> None:
    """None, which TRL leaves out; its share is a metric, and each criterion a column."""
    found, logged = rewards([GOOD, BAD, ODD], ["When?"] * 3)
    assert found == [1, 0.25, None]
    assert logged["polite/ungraded"] == pytest.approx(1 / 3)
    assert logged["polite/day"][:2] == [1, 0]


def test_conversations_are_rewarded_alike() -> None:
    """Prompts and completions may be lists of messages."""
    prompts = [[{"role": "user", "content": "When?"}]] * 3
    completions = [[{"role": "assistant", "content": text}] for text in (GOOD, BAD, ODD)]
    assert rewards(completions, prompts)[0] == [1, 0.25, None]


def test_a_conversation_keeps_its_messages_and_its_tool_calls() -> None:
    """The last message is the candidate, what was said before it the conversation."""
    call = {"id": "1", "function": {"name": "orders", "arguments": '{"id": 7}'}}
    prompt = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "When?"}]
    completion = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "paid"},
        {"role": "assistant", "content": GOOD},
    ]
    candidate = default_candidate(prompt, completion, "Friday")
    assert (candidate.output, candidate.input, candidate.reference) == (GOOD, "When?", "Friday")
    assert [message.content for message in candidate.messages] == ["Be kind."]
    assert [(each.name, each.result) for each in candidate.tool_calls] == [("orders", "paid")]


def test_a_column_of_references_must_be_there() -> None:
    """A misspelt column is an error that lists the columns, not a run without references."""
    with pytest.raises(DefinitionError, match="no column 'answers'; its columns are: answer, trainer_state"):
        rewards([GOOD, BAD, ODD], ["When?"] * 3, reference="answers")
    assert rewards([GOOD, BAD, ODD], ["When?"] * 3, reference="answer")[0] == [1, 0.25, None]
