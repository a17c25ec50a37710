"""A rubric with everything in it, through real LiteLLM, over real sockets."""

from __future__ import annotations

import json

import pytest

from rubric import Candidate, Criterion, Grade, Judge, Rubric, Unit, grade, plan
from rubric.internals.frozen_map import thaw
from tests.everything import CALLS, CANDIDATE, EVERYTHING, QUOTE, VERDICTS
from tests.forks import Forks
from tests.judging import JudgeLike
from tests.servers import Endpoint, Server, prompt_of


def gpt(endpoint: Endpoint, **options: object) -> Judge:
    """Return a judge that asks *endpoint* in OpenAI's protocol."""
    params = {"api_base": endpoint.openai, "api_key": "sk-test"}
    return Judge("openai/gpt-4o-mini", params=params, **options)  # type: ignore[arg-type]  # any of a judge's options


def test_everything_is_graded_in_every_way_and_nothing_is_printed(importing: Forks) -> None:
    """Sync, async, inside a running loop, in eight threads, with two vendors: the same grade, and silence."""
    with Server(respond=JudgeLike(VERDICTS, evidence=QUOTE)) as server:
        addresses = [server.at("ok").openai, server.at("ok").anthropic]
        ended = importing.run("from tests.graded_everywhere import main; main(*sys.argv[1:])", *addresses)
    assert (ended.status, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize(("per_call", "calls"), [(1, CALLS), (4, 6), ("all", 4)])
def test_several_criteria_a_call_give_the_same_grade_with_fewer_requests(per_call: int | str, calls: int) -> None:
    """One criterion a call, or four, or all of a kind: the requests differ, the grade does not."""
    with Server(respond=JudgeLike(VERDICTS, evidence=QUOTE)) as server:
        endpoint = server.at("ok")
        result = grade(CANDIDATE, EVERYTHING, gpt(endpoint, per_call=per_call))
    assert result.shown == "4.4/5"
    assert len(endpoint.requests) == result.usage.calls == calls


def test_a_plan_counts_what_is_then_sent() -> None:
    """The plan's messages are those of the requests, and its figures hold."""
    with Server(respond=JudgeLike(VERDICTS, evidence=QUOTE)) as server:
        endpoint = server.at("ok")
        judge = gpt(endpoint)
        planned = plan(CANDIDATE, EVERYTHING, judge)
        grade(CANDIDATE, EVERYTHING, judge)
    sent = [request.body["messages"] for request in endpoint.requests]
    assert planned.least <= len(sent) <= planned.most
    assert all(messages in [a.chat() for a in planned.asks] for messages in sent)
    assert planned.cost is not None
    assert 0 < planned.cost[0] < planned.cost[1]


def test_the_price_is_none_where_it_is_unknown() -> None:
    """A model without a price has a cost of None, not of 0."""
    with Server(respond=JudgeLike({})) as server:
        endpoint = server.at("ok")
        params = {"api_base": endpoint.openai, "api_key": "sk-test"}
        priced = grade("It is.", Rubric().expects("Is"), Judge("openai/gpt-4o-mini", params=params))
        unpriced = grade("It is.", Rubric().expects("Is"), Judge("openai/my-own-model", params=params))
    assert priced.usage.cost is not None
    assert priced.usage.cost > 0
    assert unpriced.usage.cost is None


TWENTY = Rubric("twenty").adding(*[f"Property number {n} of a good answer holds" for n in range(20)])
LONG = Candidate(" ".join(f"word{n}" for n in range(1050)), input="Write two thousand tokens.")


def cached_share(result: Grade, endpoint: Endpoint) -> float:
    """Return the share of the prompt tokens after the first request that the server found in its prefix cache."""
    return result.usage.cached_tokens / sum(len(prompt_of(r.body)) // 4 for r in endpoint.requests[1:])


def test_twenty_criteria_asked_at_once_share_their_prefix() -> None:
    """At least 90 % of the prompt tokens after the first call are a prefix of an earlier, completed call."""
    assert 1_900 <= len(LONG.output) // 4 <= 2_200
    with Server(respond=JudgeLike({})) as server:
        endpoint = server.at("ok")
        result = grade(LONG, TWENTY, gpt(endpoint))
        share = cached_share(result, endpoint)
    assert result.usage.calls == 20
    assert share >= 0.9


def test_the_response_schema_is_the_same_for_all_criteria_of_a_type() -> None:
    """A vendor's schema cache sees one schema a type, whatever the criteria; a server of one's own that of each ask."""
    mixed = TWENTY.adding(*[Criterion(f"Degree {n}", answer=Unit()) for n in range(5)])
    verdicts = {f"Degree {n}": n / 5 for n in range(5)}
    with Server(respond=JudgeLike(verdicts)) as server:
        endpoint = server.at("ok")
        result = grade(LONG, mixed, gpt(endpoint), keep=True)
    constant = {json.dumps(thaw(exchange.ask.schema)) for exchange in result.exchanges}
    sent = [json.dumps(request.body["response_format"]) for request in endpoint.requests]
    assert (len(result.exchanges), len(constant)) == (25, 2)
    assert (len(sent), len({*sent})) == (25, 25)  # each with its own nonce
