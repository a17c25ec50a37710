"""The run of a candidate: one order, of which messages and tool calls are views."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Criterion, DefinitionError, Message, Rubric, ToolCall, dumps, loads
from rubric.values.rubric_tests import RubricTest
from rubric.values.runs import Event, Media, Run, State, SubRun

ASKED, ANSWERED = Message("user", "Refund order 7"), Message("assistant", "Done.")
LOOKED, REFUNDED = ToolCall("find", arguments={"id": 7}, result="paid"), ToolCall("refund", error="not verified")
WORDS = Message("assistant", "Let me look.")
WHOLE = Run([ASKED, WORDS, LOOKED, REFUNDED, ANSWERED])

events: st.SearchStrategy[Event] = st.one_of(
    st.builds(Message, st.sampled_from(["user", "assistant", "system"]), st.sampled_from(["a", "b", "yes", ""])),
    st.builds(
        ToolCall, st.sampled_from(["x", "y"]), result=st.sampled_from([None, "a", 1]), error=st.sampled_from(["", "no"])
    ),
    st.builds(State, st.just({"balance": 3})),
    st.builds(SubRun, st.just("helper"), st.just(Run([WORDS, LOOKED])), task=st.just("look")),
    st.builds(
        Message,
        st.just("user"),
        st.just("see"),
        media=st.just([Media("image", "https://x.y/a.png")]),
        name=st.just("Ann"),
    ),
)
runs = st.builds(Run, st.lists(events, max_size=6), agent=st.sampled_from(["", "shop"]))


def test_the_output_is_what_the_last_answer_said() -> None:
    """It may be left out; messages and calls are views, and the input is what the user said last."""
    made = Candidate(run=WHOLE)
    assert (made.output, made.input, made.run) == ("Done.", "Refund order 7", WHOLE)
    assert (made.messages, made.tool_calls) == ((ASKED, WORDS), (LOOKED, REFUNDED))
    assert made.before == WHOLE.events[:-1]


def test_calls_without_a_place_stand_between_the_last_message_and_the_output() -> None:
    """Messages may hold calls in their order."""
    made = Candidate("Done.", messages=[ASKED], tool_calls=[LOOKED, REFUNDED])
    assert made.run == Run([ASKED, LOOKED, REFUNDED, ANSWERED])
    assert Candidate("Done.", messages=[ASKED, WORDS, LOOKED], tool_calls=[REFUNDED]).run == WHOLE
    assert Candidate("Done.", input="Refund order 7", tool_calls=[LOOKED]).run == Run([ASKED, LOOKED, ANSWERED])


def test_an_answer_to_a_question_is_no_run() -> None:
    """It is equal to the candidate of a text, and its prompts are the same."""
    made = Candidate(run=Run([ASKED, ANSWERED]))
    assert made == Candidate("Done.", input="Refund order 7")
    assert made.run == Run([ASKED, ANSWERED])


@pytest.mark.parametrize("output", ["Done.", ""])
@pytest.mark.parametrize("messages", [None, [], [ASKED]])
def test_lists_that_hold_no_more_than_the_question_make_no_run(output: str, messages: list[Event] | None) -> None:
    """A case of a suite gives its empty lists too; one with an answer that is yet to come has an empty output."""
    made = Candidate(output, input="Refund order 7", messages=messages, tool_calls=[])
    assert made == Candidate(output, input="Refund order 7")
    assert made.part is None


def test_a_state_after_the_answer_is_no_other_answer() -> None:
    """The last state of a run is the state after it."""
    run = Run([*WHOLE.events, State({"balance": 0})])
    assert (Candidate(run=run).output, Candidate(run=run).run) == ("Done.", run)


@pytest.mark.parametrize("last", [ASKED, LOOKED, Message("assistant", ""), Message("system", "Stop.")])
def test_a_run_that_ends_otherwise_has_no_answer(last: Any) -> None:
    """No other role's text is ever the answer; the lines that work are said."""
    run = Run([ASKED, last])
    made = Candidate(run=run)
    assert (made.output, made.run) == ("", run)
    cure = 'Candidate("", run=run), or a row' if last is LOOKED else 'Rubric(..., degenerate="judge") has'
    assert cure in made.unanswered
    assert not Candidate("", run=run).unanswered
    assert Candidate("", run=run).run == run
    assert Candidate("Done.", run=run).run.events[-1] == ANSWERED


def test_another_answer_than_the_last_one_is_refused_with_the_lines_that_work() -> None:
    """It is not guessed whether it follows the run, or is another reading of it."""
    run, output = WHOLE, "It failed."
    with pytest.raises(DefinitionError, match="ends with another answer, 'Done"):
        Candidate(output, run=run)
    assert Candidate(run=Run([*run.events, Message("assistant", output)])).output == output


def test_lists_beside_a_run_are_refused() -> None:
    """The run holds them."""
    with pytest.raises(DefinitionError, match="there is a run, which holds them"):
        Candidate("Done.", run=WHOLE, tool_calls=[LOOKED])


@given(runs, st.sampled_from(["", "a", "Done."]), st.sampled_from(["", "yes", "task"]))
def test_a_candidate_is_the_same_in_code_in_files_and_when_it_is_evolved(run: Run, output: str, asked: str) -> None:
    """Its repr can be typed, it is equal to its copies, and a file holds all of it."""
    try:
        made = Candidate(output, run=run, input=asked)
    except DefinitionError:
        return
    assert eval(repr(made)) == made  # noqa: S307 - our own
    assert hash(evolve(made, context="c")) == hash(evolve(made, context="c"))
    assert evolve(made, context="c", key="k").run == made.run
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own
    rubric = Rubric(criteria=[Criterion("So?")], tests=[RubricTest(made, passes=True)])
    assert loads(dumps(rubric)) == rubric
    if made.output == output and output:
        assert Candidate(run=made.run, input=made.input, output=output) == made


def test_another_output_takes_the_place_of_the_old_one() -> None:
    """So do other calls and other messages, where their place is plain; else that is refused."""
    made = Candidate(run=WHOLE)
    assert evolve(made, output="No.").run == Run([*WHOLE.events[:-1], Message("assistant", "No.")])
    assert evolve(made, input="Hi").run.events[0] == Message("user", "Hi")
    assert evolve(made, tool_calls=[]).run == Run([ASKED, WORDS, ANSWERED])
    assert evolve(made, messages=[]).run == Run([ASKED, LOOKED, REFUNDED, ANSWERED])
    plain = Candidate("Done.", messages=[ASKED], tool_calls=[LOOKED])
    assert evolve(plain, tool_calls=[REFUNDED]).run == Run([ASKED, REFUNDED, ANSWERED])
    with pytest.raises(DefinitionError, match="stand in one order; give run="):
        evolve(made, tool_calls=[LOOKED])


def test_a_candidate_whose_making_failed_has_a_repr() -> None:
    """A debugger and pytest show it beside the error, with what was set."""
    made = Candidate.__new__(Candidate)
    assert (repr(made), repr(Rubric.__new__(Rubric))) == ("Candidate()", "Rubric()")
    object.__setattr__(made, "output", "Done.")
    assert repr(made) == "Candidate('Done.')"
