"""Context windows: a prompt that cannot fit is planned as such, and not sent; nor are ten that overflow alike."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from rubric import Candidate, Judge, Rubric, evaluate, grade, plan
from rubric.driving import Failure, Reply, drive, flow
from rubric.grading.planning import plan_one
from rubric.models.windows import may_overflow, window_of
from rubric.values.findings import Scored
from rubric.values.requests import Ask
from tests.rows import each_row
from tests.servers import LlamaCpp, Server

CRITERIA = Rubric("r", criteria=[f"Criterion number {number} holds" for number in range(10)])
LONG = Candidate("The order was sent on Monday. " * 4_000)  # about 28,000 tokens


@each_row(
    ("judge", "window"),
    [
        (Judge("openai/gpt-4o-mini"), 128_000),
        (Judge("gpt-4o-mini", via="http"), 128_000),
        (Judge("anthropic/claude-sonnet-4-5"), 200_000),
        (Judge("gemini/gemini-2.5-pro"), 1_048_576),
        (Judge("openai/gpt-4o-mini", context=9_000), 9_000),
        (Judge("ollama_chat/claude-sonnet-4-5"), None),  # another vendor's model of the name
        (Judge("my-model", via="http://127.0.0.1:1/v1"), None),
        (Judge("offline"), None),
        (Judge(lambda messages: "", context=7), 7),
    ],
)
def test_a_window_is_stated_or_listed(judge: Judge, window: int | None) -> None:
    """What a judge states goes before LiteLLM's list; a name that the list has for another vendor is unknown."""
    assert window_of(judge) == window


@pytest.mark.parametrize("via", ["litellm", "http"])
def test_no_prompt_that_cannot_fit_is_sent(via: Any) -> None:
    """Each criterion is ungraded as `context_window`, with the numbers and no request; `plan` says so before."""
    with Server() as server:
        endpoint = server.at("ok")
        judge = Judge("openai/gpt-4o-mini", via=via, context=9_000, api_base=endpoint.openai, api_key="sk-test")
        result = evaluate(LONG, CRITERIA, judge)
        assert endpoint.requests == []
        assert grade("Short.", CRITERIA, judge).usage.calls == 10
    assert {failure.kind for failure in result.failures} == {"context_window"}
    assert result.coverage == 0
    assert result.usage.calls == 0
    assert "reads 9,000" in result.failures[0].message
    planned = plan(LONG, CRITERIA, judge)
    assert len(planned.beyond) == 10
    assert all(tokens > window == 9_000 for _, tokens, window in planned.beyond)
    assert "10 prompts of up to 28," in repr(planned)
    assert planned.to_dict()["beyond"][0] == dict(zip(("judge", "tokens", "window"), planned.beyond[0], strict=True))
    assert plan("Short.", CRITERIA, judge).beyond == ()


def test_a_prompt_is_refused_only_where_it_is_certain() -> None:
    """By an estimate it must be half as much again; a tokeniser of OpenAI's counts exactly."""
    tokens = plan(LONG, "Holds", Judge("openai/gpt-4o-mini")).prompt_tokens[0]
    for name, factor, calls in (("openai/gpt-4o-mini", 0.97, 0), ("gemini/gemini-2.5-pro", 0.97, 1), ("m", 0.6, 0)):
        with Server() as server:
            endpoint = server.at("ok")
            judge = Judge(name.removeprefix("gemini/"), via=endpoint.openai, context=int(tokens * factor))
            evaluate(LONG, "Holds", evolve(judge, retries=0, repairs=0))
            assert len(endpoint.requests) == calls, name


def test_a_function_has_the_window_that_is_stated() -> None:
    """Its tokens are four characters each."""
    asked = list[Any]()

    def yes(messages: Any) -> str:
        asked.append(messages)
        return '{"reason": "", "verdict": true}'

    assert not evaluate(LONG, CRITERIA, Judge(yes, context=5_000)).coverage
    assert asked == []
    assert grade(LONG, CRITERIA, Judge(yes, context=50_000)).passed


def test_a_short_prompt_is_not_counted() -> None:
    """No tokeniser makes more tokens than bytes."""
    (one, *_) = plan("ä" * 4_000, CRITERIA, "offline").asks
    assert (may_overflow(one, 12_000), may_overflow(one, 8_000)) == (False, True)


def test_ten_requests_do_not_overflow_one_after_another() -> None:
    """The shortest prompt goes ahead: after the server refused it for its length, the others are not sent."""
    with Server() as server:
        server.refuse = LlamaCpp(context=4_096)
        endpoint = server.at("ok")
        judge = Judge("any", via=endpoint.openai)
        result = evaluate(LONG, CRITERIA, judge)
        assert len(endpoint.requests) == 1
        assert result.usage.calls == 1
        several = Rubric("r", criteria=["Holds " + "indeed " * (9 - number) for number in range(10)])
        evaluate(LONG, several, judge)
        assert len(endpoint.requests) == 2
    assert [failure.kind for failure in result.failures] == ["context_window"] * 10
    assert "not sent, since a shorter prompt was too long" in result.failures[-1].message


def test_a_shorter_prompt_that_fits_is_judged() -> None:
    """Of prompts with one prefix, those that are too long fail, and the others are asked as usual."""
    rubric = Rubric("r", criteria=[f"Holds {'indeed ' * (50 * (number % 2 == 0))}{number}" for number in range(10)])
    longest = max(len(ask.messages[-1].text) for ask in plan(LONG, rubric, "offline").asks)
    sent = list[Ask]()

    def answer(ask: Ask) -> Reply | Failure:
        sent.append(ask)
        is_long = len(ask.messages[-1].text) > longest - 40
        return Failure("context_window", "too long") if is_long else Reply('{"reason": "", "verdict": true}')

    result = drive(flow(LONG, rubric, Judge("any", sealed=False)), answer)
    assert sum(isinstance(finding, Scored) for finding in result.findings) == 5
    assert len(sent) == 10


def test_a_jury_does_not_ask_again_what_did_not_fit() -> None:
    """Nor does the second judge of a cascade of the same judge, or a later vote: it has the same prefix."""
    from rubric import Jury

    with Server() as server:
        server.refuse = LlamaCpp(context=4_096)
        endpoint = server.at("ok")
        evaluate(LONG, CRITERIA, Jury(Judge("any", via=endpoint.openai), 5, early_stop=True))
        assert len(endpoint.requests) == 1


def test_a_plan_without_windows_says_nothing() -> None:
    """A driver of one's own may not know them."""
    planned = plan_one(LONG, CRITERIA, Judge("m"), count=lambda _, text: len(text), price=lambda _: None)
    assert planned.beyond == ()
