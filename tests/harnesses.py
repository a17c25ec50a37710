"""What the tests of adapters share: a judge behind a local server that passes one text, fails one, and rambles on one."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rubric import Candidate, Judge, Rubric
from tests.servers import Endpoint, Server, nonce_of, prompt_of

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOD, BAD, ODD = "A good reply: Friday.", "A bad reply.", "An odd reply."
REFUSED, DOWN = "A reply that the judge refuses.", "A reply on which the server is down."
POLITE = Rubric("polite").expects("Is polite", id="polite").expects("Names a day", id="day", weight=3).passing_at(0.5)
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "When?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "function": {"name": "orders", "arguments": '{"id": 7}'}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "paid"},
    {"role": "assistant", "content": GOOD},
]
SEEN = (GOOD, "When?", ["Be kind."], [("orders", {"id": 7}, "paid")])
"""What a candidate has of `CHAT`."""

KEY = "sk-test-0123456789abcdef"


def respond(body: dict[str, Any]) -> str:
    """Pass the good text, fail the bad one, and write prose about the odd one."""
    prompt = prompt_of(body)
    if ODD in prompt:
        return "I would rather talk about the weather."
    verdict = GOOD in prompt or "Is polite" in prompt.rpartition("Criterion")[2]
    nonce = nonce_of(body)
    return json.dumps({"reason": "So it is.", "verdict": verdict, **({"nonce": nonce} if nonce else {})})


def harness(module: str, package: str = "") -> Any:
    """Return the *module* of a harness; skip the tests where its *package* is not installed."""
    return pytest.importorskip(module, reason=f"{package or module} is not installed; `nox -s integrations` has it")


def seen(candidate: Candidate) -> tuple[Any, ...]:
    """Return what *candidate* has of a chat: its output, its input, its messages, its tool calls with their results."""
    calls = [(call.name, dict(call.arguments), call.result) for call in candidate.tool_calls]
    return candidate.output, candidate.input, [message.content for message in candidate.messages], calls


@contextmanager
def judging() -> Iterator[Judge]:
    """Yield a judge at a local server, for OpenAI's protocol."""
    with judging_at() as (judge, _):
        yield judge


@contextmanager
def judging_at() -> Iterator[tuple[Judge, Endpoint]]:
    """Yield a judge at a local server, and the server's endpoint: it refuses one text, and is down for another."""
    with Server(respond=respond) as server:
        server.refuse = _refuse
        endpoint = server.at("ok")
        params = {"api_base": endpoint.openai, "api_key": KEY}
        yield Judge("openai/gpt-4o-mini", repairs=0, retries=0, via="http", params=params), endpoint


def _refuse(body: dict[str, Any]) -> tuple[int, bytes] | None:
    prompt = prompt_of(body)
    if DOWN in prompt:
        return 503, b'{"error": {"message": "overloaded", "type": "server_error"}}'
    if REFUSED not in prompt:
        return None
    message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 150, "completion_tokens": 50, "total_tokens": 200}
    reply = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body.get("model")}
    return 200, json.dumps({**reply, "choices": [choice], "usage": usage}).encode()
