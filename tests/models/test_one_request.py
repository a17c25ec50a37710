"""Several replies in one request, and the probabilities of their tokens, over real HTTP: through LiteLLM and directly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rubric import Grade, Judge, Jury, Rubric, grade
from rubric.results import Scored
from tests.judging import JudgeLike
from tests.sendables import KEY
from tests.servers import Server

TEXT = "A newcomer could act on it"
CLEAR = Rubric().rates(TEXT, id="clear")
CANDIDATE = "Open the settings, choose 'Billing', and press 'Change plan'."


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Run a server that rates everything a 7, with a quarter of the probability on 8."""
    with Server(respond=JudgeLike({TEXT: 7})) as running:
        yield running


def judge_at(base: str, model: str = "openai/gpt-4o-mini", **options: Any) -> Judge:
    """Return a judge that asks at *base*."""
    return Judge(model, params={"api_base": base, "api_key": KEY}, **options)


@pytest.mark.parametrize("via", ["litellm", "http"])
def test_a_jury_is_one_request(server: Server, via: Any) -> None:
    """Five choices, one prompt paid for."""
    endpoint = server.at("ok")
    result = grade(CANDIDATE, CLEAR, Jury(judge_at(endpoint.openai, via=via), 5, one_request=True))
    assert [request.body.get("n") for request in endpoint.requests] == [5]
    assert (len(result.votes), result.usage.calls, result.score, result.warnings) == (5, 1, 0.7, ())


def test_a_vendor_that_gives_one_reply_is_asked_vote_by_vote(server: Server) -> None:
    """Anthropic takes no `n`: it is not sent, the votes are cast all the same, and a warning says so."""
    endpoint = server.at("ok")
    judge = judge_at(endpoint.anthropic, "anthropic/claude-sonnet-4-5")
    result = grade(CANDIDATE, CLEAR, Jury(judge, 3, one_request=True))
    assert (len(endpoint.requests), result.usage.calls, result.score) == (3, 3, 0.7)
    assert any("1 of 3 replies in one request" in warning for warning in result.warnings)
    assert not any("n" in request.body for request in endpoint.requests)


@pytest.mark.parametrize("via", ["litellm", "http"])
def test_probabilities_weight_the_score(server: Server, via: Any) -> None:
    """They are asked for, read, and used."""
    endpoint = server.at("ok")
    result = grade(CANDIDATE, CLEAR, judge_at(endpoint.openai, via=via, logprobs=True))
    assert isinstance(result, Grade)
    assert isinstance(result["clear"], Scored)
    assert (result["clear"].value, result["clear"].weighted, result.warnings) == (7, True, ())
    assert result.score == pytest.approx(0.725)
    assert {"logprobs": True, "top_logprobs": 20}.items() <= endpoint.requests[0].body.items()


def test_a_model_without_probabilities_says_so(server: Server) -> None:
    """The parameter that it does not take is left out and named, and the sampled score stands."""
    endpoint = server.at("ok")
    judge = judge_at(endpoint.anthropic, "anthropic/claude-sonnet-4-5", logprobs=True)
    result = grade(CANDIDATE, CLEAR, judge)
    assert isinstance(result, Grade)
    assert (result.score, "logprobs" in endpoint.requests[0].body) == (0.7, False)
    assert any("logprobs was not sent" in warning for warning in result.warnings)
    assert any("no probabilities" in warning for warning in result.warnings)
