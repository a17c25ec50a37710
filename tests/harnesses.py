"""What the tests of adapters share: a judge behind a local server that passes one text, fails one, and rambles on one."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rubric import Candidate, Judge, Rubric
from tests.servers import Server, nonce_of, prompt_of

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOD, BAD, ODD = "A good reply: Friday.", "A bad reply.", "An odd reply."
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
    with Server(respond=respond) as server:
        base = server.at("ok").openai
        yield Judge("openai/gpt-4o-mini", repairs=0, via="http", params={"api_base": base, "api_key": KEY})
