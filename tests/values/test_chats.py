"""Chats as other tools write them: no message, no tool call and no result of one is lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve

from rubric import Candidate, Criterion, DefinitionError, Message, Rubric, grade
from rubric.engine.sources import as_candidate
from rubric.grading.candidate_parts import turns_of
from rubric.internals.frozen_map import FrozenMap
from rubric.suites.outputs import _reply
from rubric.values.chats import candidate_of_chat, chat_of, is_chat
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable

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
    assert [type(event).__name__ for event in chat_of(chat)] == ["Message", "ToolCall", "Message"]


def test_a_result_without_its_call_is_a_message() -> None:
    """It is not dropped, and says that its call is not there."""
    said = Message("tool", "paid", metadata=FrozenMap({"lost_call": "9"}))
    assert chat_of([{"role": "tool", "tool_call_id": "9", "content": "paid"}]) == (said,)


@each_row("value", [[], "When?", ["When?"], [{"text": "a"}], [{"type": "text", "text": "a"}], None, [1]])
def test_other_values_are_no_chats(value: Any) -> None:
    """A list of texts, or of parts of one message, is none."""
    assert not is_chat(value)


ASKED = [("user", "q1"), ("assistant", "bad one"), ("user", "q2"), ("assistant", "good two")]
WHOLE = [{"role": role, "content": text} for role, text in ASKED]
DOORS: dict[str, Callable[[], Candidate]] = {
    "row": lambda: as_candidate({"output": "good two", "messages": WHOLE}),
    "row with the question": lambda: as_candidate({"output": "good two", "input": "q2", "messages": WHOLE}),
    "row with white space": lambda: as_candidate({"output": " good two\n", "messages": WHOLE}),
    "blocks": lambda: as_candidate(
        {
            "output": "good two",
            "messages": [*WHOLE[:3], {"role": "assistant", "content": [{"type": "text", "text": "good two"}]}],
        }
    ),
    "code": lambda: Candidate("good two", messages=WHOLE),
    "code with the question": lambda: Candidate("good two", input="q2", messages=WHOLE),
    "messages": lambda: Candidate("good two", messages=[Message(*each) for each in ASKED]),
    "conversation": lambda: candidate_of_chat(WHOLE, output="good two", input="q2"),
    "reply": lambda: _reply("replies[0]", {"output": "good two", "messages": WHOLE}).candidate or Candidate(""),
    "evolved": lambda: evolve(Candidate("x", messages=WHOLE), output="good two"),
}


@each_row("door", DOORS)
def test_a_chat_whose_last_answer_is_the_output_too_counts_it_once(door: str) -> None:
    """Each turn is judged once, and has the number that it has without a column of its own."""
    rubric = Rubric("r", [Criterion("Is good", id="k", on="each turn")])
    alone = as_candidate({"messages": WHOLE})
    seen: list[str] = []

    def judge(messages: list[dict[str, str]]) -> str:
        seen.append(messages[-1]["content"])
        said = [word for word in messages[-1]["content"].split("Criterion:")[0].split() if word in ("good", "bad")]
        return json.dumps({"verdict": said[-1] == "good"})

    found = grade(DOORS[door](), rubric, judge)
    assert len(seen) == 2
    assert found.score == grade(alone, rubric, judge).score == 0.5


def test_calls_keep_their_turns_beside_an_output_of_its_own() -> None:
    """A call of an earlier answer is not one of the output, whether the chat holds the output or not."""
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    chat = [WHOLE[0], {"role": "assistant", "content": "", "tool_calls": [call]}, *WHOLE[1:]]
    for messages in (chat, chat[:-1]):
        first, second = turns_of(as_candidate({"output": "good two", "messages": messages}))
        assert ([call.name for call in first.tool_calls], second.tool_calls) == (["find"], ())


def test_an_answer_that_is_said_again_later_is_a_turn_of_its_own() -> None:
    """Only the last message can be the output."""
    made = Candidate("good two", messages=[*WHOLE, {"role": "user", "content": "Sure?"}])
    assert (len(made.messages), made.input) == (4, "Sure?")


def test_an_answer_before_another_question_is_a_turn_of_its_own() -> None:
    """The input follows the messages, so the same words were said twice."""
    assert len(Candidate("good two", input="q3", messages=WHOLE).messages) == 4
    assert len(as_candidate({"output": "good two", "input": "q3", "messages": WHOLE}).messages) == 4


def test_the_reference_of_the_last_answer_becomes_that_of_the_output() -> None:
    """It was written for that answer."""
    last = {"role": "assistant", "content": "good two", "reference": "two"}
    for made in (Candidate("good two", messages=[*WHOLE[:3], last]), as_candidate({"messages": [*WHOLE[:3], last]})):
        assert made.reference == "two"


def test_rows_of_data_sets_hold_chats() -> None:
    """Without an output a chat has it in its last message; explicit fields and the chat's are put together."""
    candidate = as_candidate({"messages": OPENAI})
    assert (candidate.output, candidate.input, len(candidate.tool_calls)) == ("On Friday.", "When?", 1)
    candidate = as_candidate({"output": "Yes.", "messages": ANTHROPIC, "tool_calls": [CALL]})
    assert ([call.name for call in candidate.tool_calls], len(candidate.messages)) == (["orders", "orders"], 2)
    candidate = as_candidate({"input": "When?", "output": LANGCHAIN})
    assert (candidate.input, candidate.messages, len(candidate.tool_calls)) == ("When?", (), 1)


def test_a_chat_without_an_answer_has_none() -> None:
    """The user's message is never graded as the answer."""
    made = as_candidate({"messages": OPENAI[:1]})
    assert (made.output, "with [1] user: When?" in made.unanswered) == ("", True)
    assert as_candidate({"messages": OPENAI[:1], "output": ""}).unanswered == ""


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
