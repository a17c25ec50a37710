"""Limits against a real server, through LiteLLM and sockets, with short windows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import define, field

from rubric import Grade, Judge
from rubric.engine.bulk import grade_many
from rubric.engine.pipeline import Dispatcher
from rubric.engine.rate_limits import Limits
from rubric.values.requests import Ask, Commit, Failure, Limiter, Reply
from tests.engine.test_rate_limits import fullest
from tests.sendables import openai_ask
from tests.servers import Endpoint, Request, Server, say_yes


@define
class Noting:
    """Passes requests on to a gate, and notes when each leaves, and until when one was told to wait."""

    gate: Limiter
    left: list[float] = field(factory=list)
    closed: list[tuple[float, float]] = field(factory=list)

    @asynccontextmanager
    async def __call__(self, ask: Ask) -> AsyncIterator[Commit]:
        async with self.gate(ask) as settle:
            self.left.append(time.monotonic())

            def noted(outcome: Reply | Failure | None) -> None:
                if isinstance(outcome, Failure) and outcome.retry_after:
                    now = time.monotonic()
                    self.closed.append((now, now + outcome.retry_after))
                settle(outcome)

            yield noted


def send_all(endpoint: Endpoint, gate: Limiter, count: int) -> list[Reply | Failure]:
    """Send so many requests to *endpoint* side by side."""
    ask = openai_ask(endpoint)

    async def main() -> list[Reply | Failure]:
        room = Dispatcher(limiter=gate)
        return await asyncio.gather(*(room.send(ask) for _ in range(count)))

    return asyncio.run(main())


def test_no_window_of_the_server_is_over_the_limit() -> None:
    """Whatever the way there takes, the server sees no more in any window than there may be."""
    arrived: list[float] = []

    def respond(body: dict[str, object]) -> str:
        arrived.append(time.monotonic())
        return say_yes(body)

    with Server(respond=respond) as server:
        outcomes = send_all(server.at("ok"), Limits(rpm=8, window=0.3), 24)
    assert {type(each) for each in outcomes} == {Reply}
    assert len(arrived) == 24
    assert fullest(arrived, 0.3) <= 8


def test_no_request_leaves_before_the_server_wants_it() -> None:
    """A Retry-After in a real reply holds all requests back, those of other candidates too."""
    with Server() as server:
        endpoint = server.at("429-after", "429-after", "ok", "429-after", "ok")
        gate = Noting(Limits(concurrency=2))
        outcomes = send_all(endpoint, gate, 12)
    assert {type(each) for each in outcomes} == {Reply}
    assert len(gate.closed) == 3
    assert len(gate.left) == len(endpoint.requests) == 15
    assert not [left for left in gate.left for start, end in gate.closed if start < left < end]


def test_a_storm_is_over_when_the_server_is_better() -> None:
    """Refused side by side, requests come through with fewer at once, and none is lost."""
    with Server() as server:
        endpoint = server.at(*["429"] * 6, "ok")
        limits = Limits(concurrency=8)
        outcomes = send_all(endpoint, limits, 16)
    assert {type(each) for each in outcomes} == {Reply}
    (limiter,) = limits._limiters.values()
    assert 1 <= limiter.allowed < 8
    assert limiter.in_flight == 0


class Clocked(Server):
    """A server that notes when each request has arrived, and when its answer left."""

    def __init__(self) -> None:
        super().__init__()
        self.served: list[tuple[float, float]] = []

    async def _serve(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived = time.monotonic()
        await super()._serve(request, reader, writer)
        self.served.append((arrived, time.monotonic()))


def test_by_the_servers_clock_no_request_comes_too_early() -> None:
    """Of many candidates, one request at a time: after each Retry-After the next one comes no earlier than it says."""
    said = ["429-after", "ok", "429-after", "429-after", "ok", "ok", "429-after", "ok"]
    with Clocked() as server:
        params = {"api_base": server.at(*said).openai, "api_key": "none-at-all"}
        judge = Judge("openai/gpt-4o-mini", via="http", params=params)
        texts = [f"Good morning, number {number}." for number in range(10)]
        results = list(grade_many(texts, "Is polite", judge, limits=Limits(concurrency=1)))
    assert all(isinstance(result, Grade) for result in results)
    assert len(server.served) == 14
    turned_away = [n for n, behaviour in enumerate(said) if behaviour == "429-after"]
    # Nothing was under way beside it; the wait is counted from when the answer began to leave.
    assert all(server.served[n + 1][0] - server.served[n][0] >= 0.05 for n in turned_away)
