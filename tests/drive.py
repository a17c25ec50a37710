"""A synchronous driver of the grading flow, for tests: it carries each ask to the scripted model of its judge."""

from __future__ import annotations

from typing import Any

from rubric import Candidate, Grade, ModelError, Rubric, Ungraded
from rubric.driving import flow
from rubric.grading.planning import Plan, plan_one
from rubric.results import NotApplicable, Scored
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.judges import AnyJudge
from rubric.values.requests import Ask, Failure, Reply
from rubric.values.rubrics import WHOLE

REPLY = "The 2.3.0 release added per-tenant rate limits."
"""What is graded, where the test does not care."""


def carry(ask: Ask) -> Reply | Failure:
    """Return what the model of *ask* answers; a scripted model never waits, so it needs no event loop."""
    assert isinstance(ask.judge.model, ScriptedModel)
    try:
        ask.judge.model.answer(ask).send(None)
    except ModelError as problem:
        return problem.failure
    except StopIteration as end:
        reply: Reply = end.value
        return reply
    raise AssertionError


def drive(rubric: Rubric, judge: AnyJudge, candidate: Candidate | str = REPLY) -> Grade | Ungraded:
    """Return what *candidate* comes to."""
    steps = flow(Candidate.of(candidate), rubric, judge)
    try:
        batch = next(steps)
        while True:
            batch = steps.send(tuple(carry(ask) for ask in batch))
    except StopIteration as end:
        result: Grade | Ungraded = end.value
        return result


def planned(rubric: Rubric, judge: AnyJudge, candidate: str = REPLY) -> Plan:
    """Return the plan, with a token a character and a cent a token."""
    return plan_one(Candidate(candidate), rubric, judge, count=lambda _, text: len(text), price=lambda _: (0.01, 0.01))


def check_details(result: Grade, models: list[ScriptedModel], expected: dict[str, Any]) -> None:
    """Check what the distilled cases tell besides score and verdict."""
    calls = sum(len(model.asks) for model in models)
    assert calls == expected.get("judge_calls", calls)
    assert list(result.gates) == expected.get("failed_gates", list(result.gates))
    walk = ["yes" if step.yes else "no" for step in result.path]
    assert walk == expected.get("path", walk)
    assert result.shown == expected.get("display", result.shown)
    assert all(isinstance(result[name], NotApplicable) for name in expected.get("skipped", ()))
    assert all(line in models[0].asks[0].messages[-1].text for line in expected.get("prompt_contains", ()))
    if "reason" in expected:
        finding = result[WHOLE]
        assert isinstance(finding, Scored)
        assert finding.reason == expected["reason"]
