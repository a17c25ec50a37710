"""Logs that end oddly: which text is graded, what is said of it, and what is judged without one; alike at each door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rubric import (
    Candidate,
    Contains,
    Criterion,
    Grade,
    Message,
    Rubric,
    Run,
    ToolCall,
    Ungraded,
    call,
    evaluate,
    plan,
)
from rubric.engine.sources import as_candidate
from rubric.runs import read
from tests.command_line import run as command
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable

USER = {"role": "user", "content": "Refund order 7."}
SAID = {"role": "assistant", "content": "It arrives on Friday."}
THANKS = {"role": "user", "content": "thanks!"}
SYSTEM = {"role": "system", "content": "Be kind."}
EMPTY = {"role": "assistant", "content": ""}
REFUSED = {"role": "assistant", "content": None, "refusal": "No."}
FUNCTION = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": '{"id": 7}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [FUNCTION]}
BESIDE = {"role": "assistant", "content": "It arrives on Friday.", "tool_calls": [FUNCTION]}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "ok"}
BLOCK = {"type": "tool_use", "id": "1", "name": "refund", "input": {"id": 7}}

ANSWERED: dict[str, tuple[Any, str]] = {
    "the user's thanks": ([USER, CALLED, RESULT, SAID, THANKS], "user: thanks!"),
    "the same, of a chat": ([USER, SAID, THANKS], "user: thanks!"),
    "an instruction": ([USER, SAID, SYSTEM], "system: Be kind."),
    "a call that came back": ([USER, BESIDE, RESULT], "call refund"),
    "two texts": (
        [USER, {"role": "assistant", "content": "I look."}, SAID, THANKS],
        "user: thanks!",
    ),
    "Anthropic": (
        [USER, {"role": "assistant", "content": [{"type": "text", "text": SAID["content"]}]}, THANKS],
        "user: thanks!",
    ),
    "LangChain": (
        [
            {"type": "human", "content": "q"},
            {"type": "ai", "content": SAID["content"]},
            {"type": "human", "content": "thanks!"},
        ],
        "user: thanks!",
    ),
}
UNANSWERED: dict[str, tuple[Any, str]] = {
    "the result of a call": ([USER, CALLED, RESULT], "call refund"),
    "a call": ([USER, CALLED], "call refund"),
    "words before a call that did not come back": ([USER, BESIDE], "call refund"),
    "a call's block": (
        [USER, {"role": "assistant", "content": [{"type": "text", "text": "I look."}, BLOCK]}],
        "call refund",
    ),
    "a refusal": ([USER, REFUSED], "refusal: No."),
    "a later refusal": ([USER, SAID, THANKS, REFUSED], "refusal: No."),
    "an empty answer": ([USER, EMPTY], "assistant: (no text)"),
    "an empty answer to a later question": ([USER, SAID, THANKS, EMPTY], "assistant: (no text)"),
    "a call for a later question": ([USER, SAID, THANKS, CALLED, RESULT], "call refund"),
}
SILENT: dict[str, tuple[Any, str]] = {
    "the question": ([SYSTEM, USER], "user: Refund"),
    "instructions": ([SYSTEM], "system: Be"),
    "the question alone": ([USER], "user: Refund"),
}


def _file(folder: Path, document: Any) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps(document))
    return path


DOORS: dict[str, Callable[[Path, Any], Candidate]] = {
    "a file": lambda folder, log: as_candidate(_file(folder, log)),
    "code": lambda folder, log: Candidate(run=read(_file(folder, log))),
    "a row": lambda _, log: as_candidate({"messages": log}),
    "an output that is a chat": lambda _, log: as_candidate({"output": log}),
}
CODE = Criterion("Refunds once at most", id="once", check=call("refund").at_most(1))
TEXT = Criterion("Says when", id="friday", check=Contains("Friday"))
JUDGED = Criterion("Is polite", id="polite")
CALLS = Criterion("Calls no other tool", id="calls", on="tools")


def says_yes(_: Any) -> str:
    return '{"verdict": true, "reason": "r"}'


@each_row("door", DOORS)
@each_row("log", ANSWERED)
def test_the_last_text_of_the_assistant_is_the_answer(
    tmp_path_factory: pytest.TempPathFactory, door: str, log: str
) -> None:
    """What follows it is shown, and named among the warnings."""
    folder = tmp_path_factory.mktemp("log")
    messages, end = ANSWERED[log]
    made = DOORS[door](folder, messages)
    result = evaluate(made, Rubric("r", [TEXT, JUDGED, CODE]), says_yes)
    assert (made.output, result.passed) == ("It arrives on Friday.", True)
    (said,) = (one for one in result.warnings if "ends with" in one)
    assert end in said
    assert Candidate.of(made) == eval(repr(made))  # noqa: S307 - our own


@each_row("door", DOORS)
@each_row("log", UNANSWERED)
def test_without_an_answer_only_rules_and_views_of_the_run_are_judged(
    tmp_path_factory: pytest.TempPathFactory, door: str, log: str
) -> None:
    """What reads the answer is unjudged by name, is not asked about, and is not counted in a plan."""
    folder = tmp_path_factory.mktemp("log")
    messages, end = UNANSWERED[log]
    made = DOORS[door](folder, messages)
    rubric = Rubric("r", [TEXT, JUDGED, CODE, CALLS, Criterion("Is kind", id="turns", on="each turn")])
    result = evaluate(made, rubric, says_yes)
    assert isinstance(result, Ungraded)
    assert (made.output, result["once"].score, result["calls"].score, result.usage.calls) == ("", 1, 1, 1)
    lacking = {"friday", "polite", "turns"}
    assert {failure.criterion for failure in result.failures} >= lacking
    assert {failure.kind for failure in result.failures} == {"degenerate"}
    assert all(end in failure.message for failure in result.failures)
    assert set(plan(made, rubric, "offline").free) >= {*lacking, "once"}
    assert made == eval(repr(made))  # noqa: S307 - our own


@each_row("door", DOORS)
@each_row("log", SILENT)
def test_nothing_is_judged_of_a_run_in_which_the_agent_did_nothing(
    tmp_path_factory: pytest.TempPathFactory, door: str, log: str
) -> None:
    """No rule is kept by it, and no judge is asked about no calls."""
    messages, end = SILENT[log]
    made = DOORS[door](tmp_path_factory.mktemp("log"), messages)
    result = evaluate(made, Rubric("r", [TEXT, JUDGED, CODE, CALLS]), says_yes)
    assert isinstance(result, Ungraded)
    assert (len(result.failures), result.usage.calls, result.outcome.coverage) == (4, 0, 0)
    assert all(end in failure.message for failure in result.failures)


@each_row("log", ["the user's thanks", "the same, of a chat"])
def test_another_text_is_graded_by_the_lines_that_the_warning_prints(log: str) -> None:
    """The one for code, and the one for rows of files."""
    messages, _ = ANSWERED[log]
    run = read(messages)
    (said,) = Candidate(run=run).remarks
    assert 'Candidate("the text", run=run), or a row {"output": "the text", "messages": [...]}' in said
    for made in (Candidate("the text", run=run), as_candidate({"output": "the text", "messages": messages})):
        assert (made.output, made.run.events[-1]) == ("the text", Message("assistant", "the text"))


@each_row("log", UNANSWERED | SILENT)
def test_a_run_without_an_answer_is_judged_as_it_is_by_the_lines_that_the_failure_prints(log: str) -> None:
    """An empty text beside an act is an answer; of mere words, the rubric says whether a judge reads them."""
    messages, _ = (UNANSWERED | SILENT)[log]
    run = read(messages)
    criteria = [TEXT, JUDGED]
    (failure, _) = evaluate(Candidate(run=run), Rubric("r", criteria), says_yes).failures
    with_empty = [Candidate("", run=run), as_candidate({"output": "", "messages": messages})]
    if 'Candidate("", run=run), or a row {"output": "", "messages": [...]}' in failure.message:
        made = [(each, Rubric("r", criteria)) for each in with_empty]
    else:
        assert 'Rubric(..., degenerate="judge")' in failure.message
        alone = [Candidate(run=run), as_candidate({"messages": messages})]
        made = [(each, Rubric("r", criteria, degenerate="judge")) for each in (*alone, *with_empty)]
    for candidate, rubric in made:
        result = evaluate(candidate, rubric, says_yes)
        assert isinstance(result, Grade)
        assert (result["friday"].score, result["polite"].score, result.usage.calls) == (0, 1, 1)


def test_at_the_terminal_the_end_of_a_log_is_said(tmp_path: Path) -> None:
    """It passes with a warning, or is ungraded by name with the exit status for that."""
    rules = tmp_path / "r.yaml"
    rules.write_text("criteria: [{id: friday, text: Says when, check: {contains: Friday}}]")
    passed = command("grade", str(rules), str(_file(tmp_path, ANSWERED["the user's thanks"][0])), "--judge", "offline")
    assert (passed.exit_code, "ends with [4] user: thanks!" in passed.output) == (0, True)
    lacks = command("grade", str(rules), str(_file(tmp_path, UNANSWERED["a call"][0])), "--judge", "offline")
    assert (lacks.exit_code, "without an answer" in lacks.output) == (2, True)


def test_a_rule_that_is_broken_fails_a_run_without_an_answer() -> None:
    """What is unjudged cannot change that."""
    rubric = Rubric("r", [Criterion("Never refunds", id="never", check=call("refund").never(), required=True), JUDGED])
    result = evaluate(Candidate(run=Run([Message("user", "q"), ToolCall("refund", result="ok")])), rubric, says_yes)
    assert (result.bounds, result.outcome.best.passed) == ((0, 0.5), False)


CUT: dict[str, Any] = {
    "OpenAI": {"choices": [{"message": SAID, "finish_reason": "length"}]},
    "Anthropic": {"type": "message", **SAID, "stop_reason": "max_tokens"},
    "Responses": {"object": "response", "status": "incomplete", "input": "q", "output": [{"type": "message", **SAID}]},
    "a chat": [USER, {**SAID, "finish_reason": "length"}],
}


@each_row("door", ["a file", "code"])
@each_row("log", CUT)
def test_an_answer_that_was_cut_off_is_graded_with_a_warning(
    tmp_path_factory: pytest.TempPathFactory, door: str, log: str
) -> None:
    """What is not in it may have come after it."""
    made = DOORS[door](tmp_path_factory.mktemp("log"), CUT[log])
    result = evaluate(made, Rubric("r", [TEXT]), says_yes)
    assert (made.output, result.warnings) == (
        "It arrives on Friday.",
        ("the log ends before the run did, so the answer may lack its end",),
    )
    assert "lack its end" not in "".join(Candidate(run=read([USER, SAID])).remarks)


def _sample(completion: str, *messages: dict[str, Any]) -> dict[str, Any]:
    return {"id": 1, "epoch": 1, "target": "", "messages": [*messages], "output": {"completion": completion}}


def test_a_log_of_inspect_that_repeats_a_text_of_its_run_is_read_as_the_run() -> None:
    """Words beside a call are no answer there either; an answer that only the log names, such as a submission, is."""
    call = {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "1", "function": "f", "arguments": {}}]}
    back = {"role": "tool", "tool_call_id": "1", "content": "ok"}
    assert "call f" in as_candidate(_sample("I look.", USER, call)).unanswered
    thanked = as_candidate(_sample("It arrives on Friday.", USER, SAID, THANKS))
    assert (thanked.output, len(thanked.remarks)) == ("It arrives on Friday.", 1)
    submitted = as_candidate(_sample("Friday.", USER, call, back))
    assert (submitted.output, submitted.unanswered) == ("Friday.", "")
    assert as_candidate(_sample("", USER)).unanswered
