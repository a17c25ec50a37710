"""promptfoo's `_conversation`: the earlier tests of a provider and a prompt are the turns before."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from rubric import Case, Suite, convert, load_suite, loads_suite
from rubric.formats import DumpError, dumps_suite
from tests.rows import each_row

CHAT = """[
  // the turns before
  {% for completion in _conversation %}
    {"role": "user", "content": "{{ completion.input }}"},
    {"role": "assistant", "content": "{{ completion.output }}"},
  {% endfor %}
  {"role": "user", "content": "{{ question }}"}
]"""
TEXT = "{% for turn in _conversation %}{{ turn.input }} > {{ turn.output }} | {% endfor %}{{ question }}"
ASSERT = [{"type": "contains", "value": "to"}]
QUESTIONS = ("Who founded it?", "Where is he?", "Which state?")


def suite_of(prompt: str = CHAT, *more: str, each: Any = ({}, {}, {}), **keys: Any) -> Suite:
    tests = [{"vars": {"question": q}, "assert": ASSERT, **own} for q, own in zip(QUESTIONS, each, strict=True)]
    return loads_suite(json.dumps({"prompts": [prompt, *more], "tests": tests, **keys}), "promptfoo")


class Target:
    """Answers with what it was asked last, and keeps what it was sent; it fails at the *failing* text."""

    def __init__(self, failing: str = "-", said: str = "to {}") -> None:
        self.sent: list[Any] = []
        self.failing, self.said, self.busy = failing, said, 0
        self.lock = threading.Lock()

    def __call__(self, case: Case) -> str:
        asked = case.messages[-1].content if case.messages else case.input
        with self.lock:
            self.sent.append([(m.role, m.content) for m in case.messages] or case.input)
        if self.failing in asked:
            raise RuntimeError("the line is down")
        return self.said.format(asked)


def test_each_test_continues_those_before_it() -> None:
    """As on the page of chat threads; a `//` comment in a JSON prompt is taken out."""
    target = Target()
    report = suite_of().run(target=target)
    assert target.sent[2] == [
        ("user", QUESTIONS[0]),
        ("assistant", f"to {QUESTIONS[0]}"),
        ("user", QUESTIONS[1]),
        ("assistant", f"to {QUESTIONS[1]}"),
        ("user", QUESTIONS[2]),
    ]
    assert [row.status for row in report] == ["passed"] * 3


def test_a_text_shows_the_turns_whole() -> None:
    """The input of a turn is the whole text that was asked, as upstream has it where there are no messages."""
    target = Target(said="ok to")
    suite_of(TEXT).run(target=target)
    first, second, third = target.sent
    assert second == f"{first} > ok to | {QUESTIONS[1]}"
    assert third == f"{first} > ok to | {second} > ok to | {QUESTIONS[2]}"


@each_row("output", ['say "to"', "two\nlines, and \\ to", "{{ question }} to"])
@each_row("prompt", [CHAT, CHAT.replace('"{{ completion.output }}"', "{{ completion.output | dump }}")])
def test_no_output_breaks_the_json_around_it(prompt: str, output: str) -> None:
    """Quotes, newlines and braces of earlier outputs arrive unchanged, with and without `dump`."""
    target = Target(said=output.replace("{", "{{").replace("}", "}}"))
    suite_of(prompt).run(target=target)
    assert [content for role, content in target.sent[2] if role == "assistant"] == [output] * 2


def test_conversations_are_apart_by_id_prompt_provider_and_run() -> None:
    """Two ids, prompts, providers or runs never share their turns."""
    each = [{"metadata": {"conversationId": name}} for name in ("a", "b", "a")]
    target = Target()
    suite_of(each=each).run(target=target)
    assert sorted(map(len, target.sent)) == [1, 1, 3]
    target = Target()
    suite_of(CHAT, TEXT, providers=["openai:gpt-5", "openai:gpt-5-mini"]).run(target=target, runs=2)
    assert sorted(len(sent) for sent in target.sent if isinstance(sent, list)) == [1] * 4 + [3] * 4 + [5] * 4
    assert len(target.sent) == 24


def test_the_tests_of_a_scenario_are_a_conversation() -> None:
    """Each row of a scenario's `config` has its own turns."""
    scenario = {
        "config": [{"vars": {"name": "a"}}, {"vars": {"name": "b"}}],
        "tests": [{"vars": {"question": q}, "assert": ASSERT} for q in QUESTIONS[:2]],
    }
    text = json.dumps({"prompts": [CHAT], "scenarios": [scenario]})
    target = Target()
    loads_suite(text, "promptfoo").run(target=target)
    assert sorted(map(len, target.sent)) == [1, 1, 3, 3]


def test_a_test_may_be_kept_from_the_turns_before() -> None:
    """Its response is a turn for those after it all the same."""
    target = Target()
    suite_of(each=({}, {"options": {"disableConversationVar": True}}, {})).run(target=target)
    assert [len(sent) for sent in target.sent] == [1, 1, 5]


def test_a_test_that_asserts_nothing_is_a_turn() -> None:
    """Its exchange stands before the later turns, though the case itself is ungraded."""
    target = Target()
    report = suite_of(each=({"assert": []}, {"assert": []}, {})).run(target=target)
    assert [row.status for row in report] == ["ungraded", "ungraded", "passed"]
    assert len(target.sent[2]) == 5


def test_a_turn_that_failed_leaves_the_later_ones_ungraded_with_the_reason() -> None:
    """The later turns are not sent; the reason names the turn and its error."""
    target = Target(failing="Where")
    report = suite_of().run(target=target)
    assert [row.status for row in report] == ["passed", "ungraded", "ungraded"]
    assert len(target.sent) == 2
    assert "whose turn 2 has no response" in report[2].entries[0].reason
    assert "the line is down" in report[2].entries[0].reason
    suite = suite_of()
    (row,) = suite.only(suite.cases[2].id).run(target=target)
    assert "whose turn 1 has no response: it is not in the run" in row.entries[0].reason


def test_given_outputs_are_the_turns_before() -> None:
    """The outputs of `answered` stand in the run and in the judge's prompt of later turns."""
    suite = suite_of().answered(["one to", 'two "to"', "three to"])
    report = suite.run()
    assert [row.status for row in report] == ["passed"] * 3
    assert report[2].input == "Which state?"
    assert report[2].run[1:4] == ("[2] assistant: one to", "[3] user: Where is he?", '[4] assistant: two "to"')
    judged = suite_of(each=[{"assert": [{"type": "llm-rubric", "value": "is brief"}]}] * 3).answered(["a", "b", "c"])
    assert "assistant: b" in judged.plan("openai/gpt-5-mini")[2].plan.asks[0].chat()[-1]["content"]


def test_a_missing_output_is_asked_of_the_target_or_defers_the_later_turns() -> None:
    """Without a target the later turns wait; a target answers the missing turn alone."""
    rows = [{"vars": {"question": q}, "output": f"to {q}"} for q in (QUESTIONS[0], QUESTIONS[2])]
    suite = suite_of().answered(rows)
    assert [row.status for row in suite.run()] == ["passed", "deferred", "deferred"]
    target = Target(said="live to")
    report = suite.run(target=target)
    assert [row.status for row in report] == ["passed"] * 3
    assert "[4] assistant: live to" in report[2].run


def test_an_echo_is_a_turn() -> None:
    """The echo provider repeats the prompt with all earlier turns in it."""
    report = suite_of(
        TEXT, providers=["echo"], each=({}, {}, {"assert": [{"type": "contains", "value": "state"}]})
    ).run()
    assert report[1].output == f"{QUESTIONS[0]} > {QUESTIONS[0]} | {QUESTIONS[1]}"


def test_a_chat_that_is_no_json_leaves_its_case_ungraded() -> None:
    """A template that stops making JSON fails from that turn on, and the reason names `dump`."""
    prompt = CHAT.replace("},\n  {% endfor %}", "}\n  {% endfor %}")
    first, second, third = suite_of(prompt).run(target=Target())
    assert (first.status, second.status, third.status) == ("passed", "ungraded", "ungraded")
    assert "completion.output | dump" in second.entries[0].reason


def test_a_conversation_is_written_with_its_outputs_alone() -> None:
    """Writing needs the outputs; with them the earlier turns become each case's messages."""
    with pytest.raises(DumpError, match=r"suite\.answered"):
        dumps_suite(suite_of())
    suite = suite_of().answered(["one to", "two to", "three to"])
    again = loads_suite(dumps_suite(suite))
    assert [m.content for m in again[2].messages] == [QUESTIONS[0], "one to", QUESTIONS[1], "two to", QUESTIONS[2]]
    assert not convert(suite, "promptfoo").dropped
    assert any("history" in loss for loss in convert(suite_of(), "promptfoo").dropped)


def test_a_program_that_makes_the_prompt_is_shown_the_turns_before(tmp_path: Path) -> None:
    """promptfoo's `_conversation` among its variables: empty at first; one that fails then leaves its turn ungraded."""
    shown = "vars._conversation.map(turn => turn.input + ' ' + turn.output).join(', ')"
    (tmp_path / "ask.js").write_text(f"module.exports = ({{vars}}) => vars.q + '?' + {shown}")
    tests = [{"vars": {"q": name}, "assert": [{"type": "contains", "value": "x"}]} for name in "ab"]
    file = tmp_path / "promptfooconfig.json"
    file.write_text(json.dumps({"prompts": ["file://ask.js"], "tests": tests}))
    report = load_suite(file).run(target=lambda case: f"x of {case.input}")
    assert [(row.status, row.output) for row in report] == [("passed", "x of a?"), ("passed", "x of b?a? x of a?")]
    (tmp_path / "ask.js").write_text("module.exports = ({vars}) => vars._conversation.length ? nope : vars.q")
    report = load_suite(file).run(target=lambda case: "x")
    assert [row.status for row in report] == ["passed", "ungraded"]
    assert "which failed (ReferenceError" in report[1].reason
