"""The mock server of the tests: what it keeps of requests, and that it refuses them in the words of real servers."""

from __future__ import annotations

import json
import tracemalloc
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest

from rubric import Grade, Judge, Jury, Ungraded, evaluate
from tests import servers
from tests.models.recorded_failures import LLAMA_CPP, RECORDED, Recorded
from tests.sendables import KEY
from tests.servers import STATUSES, LlamaCpp, Server

if TYPE_CHECKING:
    from tests.servers import Endpoint

MEGABYTE = 1_000_000


def send(endpoint: Endpoint, *prompts: str, **more: Any) -> list[int]:
    """Send *prompts* one after another over one connection, and return the status of each answer."""
    address, _, number = endpoint.root.removeprefix("http://").partition("/")
    connection, statuses = HTTPConnection(address), []
    for prompt in prompts:
        body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **more}
        connection.request("POST", f"/{number}/v1/chat/completions", json.dumps(body))
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
    connection.close()
    return statuses


def test_two_hundred_prompts_of_a_megabyte_take_less_than_150_mb() -> None:
    """The newest bodies and blocks are kept, the oldest are dropped."""
    tracemalloc.start()
    try:
        with Server() as server:
            endpoint = server.at("ok")
            for n in range(200):
                send(endpoint, f"{n}" + "x" * MEGABYTE)
            _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(endpoint.requests) == 200
    assert endpoint.requests[-1].body["messages"][0]["content"].startswith("199x")
    assert most < 150 * MEGABYTE, f"{most:,} bytes"


def test_a_body_that_was_dropped_is_not_read_as_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path and its headers are still there; reading it fails with the reason."""
    monkeypatch.setattr(servers, "MOST_KEPT", 1_000)
    with Server() as server:
        endpoint = server.at("ok")
        send(endpoint, "first " * 100, "second " * 100)
    first, second = endpoint.requests
    assert second.body["messages"][0]["content"].startswith("second")
    assert (first.path, first.length > 600) == (second.path, True)
    with pytest.raises(AssertionError, match="an endpoint keeps the last 1,000 bytes"):
        _ = first.body


def test_the_prefix_cache_forgets_the_oldest_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest prompt is served from it, one before the limit is not."""
    monkeypatch.setattr(servers, "MOST_BLOCKS", 20)
    prefixes, old, new = servers.Prefixes(), "a" * 10_000, "b" * 10_000
    prefixes.remember(old)
    assert prefixes.cached_tokens(old) == 2_432
    prefixes.remember(new)
    assert (prefixes.cached_tokens(old), prefixes.cached_tokens(new)) == (0, 2_432)


RECORDED_HERE: dict[str, tuple[dict[str, Any], Recorded]] = {
    "n": ({"n": 3}, next(row for row in LLAMA_CPP if "'n'" in row.body)),
    "context": ({"messages": [{"role": "user", "content": "word" * 12_031}]}, LLAMA_CPP[0]),
}


@pytest.mark.parametrize("limit", [*RECORDED_HERE])
def test_llama_cpps_limits_are_refused_in_its_own_words(limit: str) -> None:
    """Status and body equal those that the real server sent."""
    asked, row = RECORDED_HERE[limit]
    refused = LlamaCpp(slots=2, context=4096)(asked)
    assert refused is not None
    assert (refused[0], json.loads(refused[1])) == (row.status, json.loads(row.body))


def test_openais_context_is_refused_in_its_own_words() -> None:
    """The words equal those that were published, but for the numbers."""
    said = STATUSES["context"].message.replace("8192", "4097").replace("9000", "6988")
    assert said in {json.loads(row.body)["error"]["message"] for row in RECORDED if row.server == "OpenAI"}


@pytest.mark.parametrize("via", ["litellm", "http"])
def test_a_server_with_two_slots_gives_a_jury_of_three_in_two_requests(via: Any) -> None:
    """The request for three is refused, then two and one are answered."""
    with Server() as server:
        server.refuse = LlamaCpp(slots=2)
        endpoint = server.at("ok")
        judge = Judge("openai/slots", via=via, params={"api_base": endpoint.openai, "api_key": KEY}, retries=0)
        result = evaluate("Good morning!", "Is polite", Jury(judge, 3, one_request=True))
        wanted = [request.body.get("n", 1) for request in endpoint.requests]
    assert isinstance(result, Grade), result
    assert (len(result.votes), wanted) == (3, [3, 2, 1])


@pytest.mark.parametrize("via", ["litellm", "http"])
def test_a_candidate_beyond_the_context_is_refused_and_ungraded(via: Any) -> None:
    """The failure is `context_window`, and the request is not sent again."""
    with Server() as server:
        server.refuse = LlamaCpp(context=4096)
        endpoint = server.at("ok")
        judge = Judge("openai/m", via=via, params={"api_base": endpoint.openai, "api_key": KEY})
        result = evaluate("word " * 12_000, "Is polite", judge)
    assert isinstance(result, Ungraded)
    assert ([failure.kind for failure in result.failures], len(endpoint.requests)) == (["context_window"], 1)
