"""Two runs of one task: rules decide by code, a judge is shown what each did, and tasks that differ are refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rubric import Candidate, Criterion, DefinitionError, Message, Rubric, Run, ToolCall, prefer, prefer_many
from rubric.testing import ScriptedModel
from rubric.values.run_rules import call

TASK = Message("user", "Refund order 7, please.")
VERIFY = ToolCall("verify", arguments={"order": 7}, result="fine")
REFUND = ToolCall("refund", arguments={"order": 7}, result="done")
DONE = Message("assistant", "It is done.")
CAREFUL = Run([TASK, VERIFY, Message("assistant", "20 EUR?"), Message("user", "Yes."), REFUND, DONE])
HASTY = Run([TASK, REFUND, VERIFY, DONE])
ORDER = Criterion("Verifies first", id="order", check=call("refund").needs(call("verify"), same="order"))


def test_a_rule_decides_between_two_runs_without_a_call() -> None:
    """The run that keeps it is the better one, whatever the user said last in either."""
    for a, b, better in ((CAREFUL, HASTY, "a"), (HASTY, CAREFUL, "b"), (HASTY, HASTY, "tie")):
        found = prefer(Candidate(run=a), Candidate(run=b), Rubric(criteria=[ORDER]), "offline")
        assert (found.outcome, found.usage.calls) == (better, 0)


def test_a_judge_is_shown_both_runs_and_the_task_with_which_they_begin() -> None:
    """All that was said and called stands in each response, in both orders."""
    prompts: list[str] = []

    def say(ask_: Any) -> dict[str, str]:
        prompts.append(ask_.messages[-1].text)
        return {"reason": "", "choice": "tie"}

    prefer(Candidate(run=CAREFUL), Candidate(run=HASTY), Rubric().expects("Is careful"), ScriptedModel(say))
    assert len(prompts) == 2
    for prompt in prompts:
        task = prompt.partition("response 1, ")[0]
        assert TASK.content in task
        assert "Yes." not in task
        shown = [text for _, text in re.findall(r"response \d, (\w{16}):\n(.*?)\n\1", prompt, re.DOTALL)]
        careful, hasty = sorted(shown, key=lambda text: "20 EUR?" not in text)
        assert "Yes." in careful
        assert "Yes." not in hasty
        assert careful.index("verify(") < careful.index("refund(")
        assert hasty.index("refund(") < hasty.index("verify(")


def test_many_pairs_may_be_runs() -> None:
    """Each pair is decided as one alone is."""
    pairs = [{"a": Candidate(run=CAREFUL), "b": Candidate(run=HASTY)}] * 3
    found = prefer_many(pairs, Rubric(criteria=[ORDER]), "offline")
    assert [each.outcome for each in found] == ["a", "a", "a"]


@pytest.mark.parametrize(
    "other",
    [
        Candidate(run=Run([Message("user", "Cancel order 8."), DONE])),
        Candidate(run=Run([TASK, VERIFY, Message("assistant", "20 EUR?"), Message("user", "No!"), DONE])),
    ],
)
def test_runs_that_part_by_what_the_user_says_are_no_pair(other: Candidate) -> None:
    """They answer two tasks, whether they begin alike or not."""
    with pytest.raises(DefinitionError, match="a pair answers one task"):
        prefer(Candidate(run=CAREFUL), other, Rubric(criteria=[ORDER]), "offline")


def test_the_same_input_makes_a_pair_of_runs_that_part_by_what_the_user_says() -> None:
    """As the error says: a simulated user may say one thing to one run, and another to the other."""
    asked = Message("assistant", "20 EUR?")
    paid = Candidate(run=Run([TASK, asked, Message("user", "Yes."), VERIFY, REFUND, DONE]), input=TASK.content)
    left = Candidate(run=Run([TASK, asked, Message("user", "No!"), REFUND, DONE]), input=TASK.content)
    assert prefer(paid, left, Rubric(criteria=[ORDER]), "offline").outcome == "a"
