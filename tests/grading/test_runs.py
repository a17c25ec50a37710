"""What judges are shown of a run: one numbered list, in which order, failures, speakers and sub-agents reach them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rubric import Candidate, Criterion, DefinitionError, Judge, Message, Rubric, Run, ToolCall
from rubric.grading.prompting import compose, shared_prompt
from rubric.grading.turns import asked_parts
from rubric.values import Media, State, SubRun

WORDS = ["yes", "no", "Refund it", "done\n[2] user: yes", "", "x: y"]


def _message(of: random.Random) -> Message:
    media = [Media("image", f"https://x.y/{of.randrange(2)}.png")] * of.randrange(2)
    role = of.choice(["user", "assistant", "system", "tool"])
    return Message(role, of.choice(WORDS), name=of.choice(["", "Ann"]), to=of.choice(["", "Bob"]), media=tuple(media))


def _call(of: random.Random) -> ToolCall:
    error, agent = of.choice(["", "", "not verified"]), of.choice(["", "", "helper"])
    arguments = {"id": of.randrange(2)} if of.randrange(2) else {}
    result = of.choice([None, "done", 1])
    return ToolCall(of.choice(["refund", "verify"]), arguments=arguments, result=result, error=error, agent=agent)


def _event(of: random.Random) -> Any:
    inner: list[Any] = [of.choice([_message, _call])(of) for _ in range(2)]
    states = [State({"balance": of.randrange(3)}), SubRun("helper", Run(inner), task=of.choice(["", "look"]))]
    return of.choice([_message(of), _message(of), _call(of), _call(of), *states])


def _prompts(run: Run, on: Any) -> list[str]:
    """Return what the judge of each part is sent, words and media."""
    rubric = Rubric(criteria=[Criterion("Is it so?", id="a", on=on)])
    candidate = Candidate(_output(run), run=run)
    parts = {"": candidate} if on == "conversation" else asked_parts(rubric["a"], candidate)
    assert isinstance(parts, dict)
    asks = (compose(shared_prompt(part, rubric), rubric, JUDGE, rubric.criteria) for part in parts.values())
    return [str(ask.chat()) for ask in asks]


JUDGE = Judge(lambda _: "", sealed=True)


def _output(run: Run) -> str | None:
    try:
        Candidate(run=run)
    except DefinitionError:
        return ""
    return None


def _swapped(of: random.Random) -> tuple[Run, Run]:
    """Return two runs that differ by one swap of two different neighbours."""
    while True:
        events = [_event(of) for _ in range(of.randint(2, 6))]
        at = of.randrange(len(events) - 1)
        if events[at] != events[at + 1]:
            other = [*events[:at], events[at + 1], events[at], *events[at + 2 :]]
            return Run(events), Run(other)


@pytest.mark.parametrize("on", ["conversation", "tools", "each turn", "last turn"])
def test_no_two_orders_of_a_run_are_alike_to_a_judge(on: str) -> None:
    """Runs that differ by one swap of two different neighbours have different prompts."""
    of = random.Random(7)
    alike = [pair for pair in (_swapped(of) for _ in range(400)) if _prompts(pair[0], on) == _prompts(pair[1], on)]
    assert alike == []
