"""Chats as other tools write them: no message, no tool call and no result of one is lost."""

from __future__ import annotations

from typing import Any

import pytest

from rubric import DefinitionError
from rubric.engine.sources import as_candidate
from rubric.values.chats import candidate_of_chat, chat_of, is_chat

CALL = {"id": "1", "function": {"name": "orders", "arguments": '{"id": 7}'}}
OPENAI = [
    {"role": "user", "content": "When?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "paid"},
    {"role": "assistant", "content": [{"type": "text", "text": "On Friday."}]},
]
ANTHROPIC = [
    {"role": "user", "content": "When?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "orders", "input": {"id": 7}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "paid"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "On Friday."}]},
]
LANGCHAIN = [
    {"type": "human", "content": "When?"},
    {"type": "ai", "content": "", "tool_calls": [{"id": "1", "name": "orders", "args": {"id": 7}}]},
    {"type": "tool", "tool_call_id": "1", "content": "paid"},
    {"lc": 1, "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": {"content": "On Friday."}},
]


@pytest.mark.parametrize("chat", [OPENAI, ANTHROPIC, LANGCHAIN], ids=["openai", "anthropic", "langchain"])
def test_each_form_gives_the_same_candidate(chat: list[Any]) -> None:
    """The last message is the output, the user's last one the input, and a tool's result stands with its call."""
    assert is_chat(chat)
    candidate = candidate_of_chat(chat)
    assert (candidate.output, candidate.input, candidate.messages) == ("On Friday.", "When?", ())
    assert [(call.name, dict(call.arguments), call.result) for call in candidate.tool_calls] == [
        ("orders", {"id": 7}, "paid")
    ]
    assert [message.role for message in chat_of(chat)[0]] == ["user", "assistant"]


def test_a_result_without_its_call_is_a_message() -> None:
    """It is not dropped."""
    (message,), calls = chat_of([{"role": "tool", "tool_call_id": "9", "content": "paid"}])
    assert (message.role, message.content, calls) == ("tool", "paid", ())


@pytest.mark.parametrize("value", [[], "When?", ["When?"], [{"text": "a"}], [{"type": "text", "text": "a"}], None, [1]])
def test_other_values_are_no_chats(value: Any) -> None:
    """A list of texts, or of parts of one message, is none."""
    assert not is_chat(value)


def test_rows_of_data_sets_hold_chats() -> None:
    """Without an output a chat has it in its last message; explicit fields and the chat's are put together."""
    candidate = as_candidate({"messages": OPENAI})
    assert (candidate.output, candidate.input, len(candidate.tool_calls)) == ("On Friday.", "When?", 1)
    candidate = as_candidate({"output": "Yes.", "messages": ANTHROPIC, "tool_calls": [CALL]})
    assert ([call.name for call in candidate.tool_calls], len(candidate.messages)) == (["orders", "orders"], 2)
    candidate = as_candidate({"input": "When?", "output": LANGCHAIN})
    assert (candidate.input, candidate.messages, len(candidate.tool_calls)) == ("When?", (), 1)


def test_a_chat_without_an_answer_is_refused() -> None:
    """The user's message is never graded as the answer."""
    with pytest.raises(DefinitionError, match="the last of messages is no answer, but of the user"):
        as_candidate({"messages": OPENAI[:1]})


def test_frames_have_arrays_and_missing_values() -> None:
    """A missing cell is nothing, and an array of messages is a chat."""
    import numpy as np
    import pandas as pd

    for nothing in (None, float("nan"), pd.NA):
        assert as_candidate({"output": "Yes.", "messages": nothing, "tool_calls": nothing}).tool_calls == ()
        with pytest.raises(DefinitionError, match="output"):
            as_candidate({"output": nothing, "tool_calls": nothing})
    chat = np.empty(len(OPENAI), dtype=object)
    chat[:] = OPENAI
    assert as_candidate({"messages": chat}).output == "On Friday."
