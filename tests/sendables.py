"""Asks, built by hand, for tests of models and of what carries asks to them."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rubric.internals.frozen_map import FrozenMap
from rubric.values.criteria import Criterion
from rubric.values.judges import Judge
from rubric.values.requests import Ask, Failure, Outgoing, Reply

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tests.servers import Endpoint

RECENT = tuple(int(part) for part in version("litellm").split(".")[:2]) >= (1, 106)
"""Whether LiteLLM is as new as what these tests were written for; an older one knows fewer models."""

KEY = "sk-test-0123456789abcdef"
NONCE = "abcdefgh"


def schema_of(**properties: Any) -> FrozenMap:
    """Return the strict schema of an object with *properties*."""
    return FrozenMap(
        {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    )


VERDICT = schema_of(reason={"type": "string"}, verdict={"type": "boolean"}, nonce={"type": "string"})


def ask_of(judge: Judge, *criteria: Criterion, shared: str = "shared", **changes: Any) -> Ask:
    """Return an ask of *judge* about *criteria*, "Is polite" if there are none."""
    tail = f'Criterion. Answer with {{"reason": ..., "verdict": ..., "nonce": "{NONCE}"}}'
    given: dict[str, Any] = {
        "messages": (Outgoing("system", ("You judge.",)), Outgoing("user", (shared, tail))),
        "schema": VERDICT,
        "criteria": criteria or (Criterion("Is polite"),),
        "nonce": NONCE,
        "max_tokens": 100,
    }
    return Ask(judge, **(given | changes))


def openai_ask(endpoint: Endpoint, model: str = "openai/gpt-4o-mini", **judge: Any) -> Ask:
    """Return an ask that goes to *endpoint* in OpenAI's dialect."""
    params = {"api_base": endpoint.openai, "api_key": KEY, **judge.pop("params", {})}
    return ask_of(Judge(model, params=params, **judge))


def anthropic_ask(endpoint: Endpoint, model: str = "anthropic/claude-sonnet-4-5", **judge: Any) -> Ask:
    """Return an ask that goes to *endpoint* in Anthropic's dialect."""
    params = {"api_base": endpoint.anthropic, "api_key": KEY, **judge.pop("params", {})}
    return ask_of(Judge(model, params=params, **judge))


def run(ask: Ask) -> Reply | Failure:
    """Return the outcome of *ask*, attempts included, without the waits between them."""
    from rubric.models.registry import model_of
    from rubric.models.retry import attempt

    async def at_once(_: float) -> None:
        pass

    return asyncio.run(attempt(model_of(ask.judge), ask, sleep=at_once))


def is_closed_when_cancelled(endpoint: Endpoint, answer: Coroutine[Any, Any, Reply]) -> bool:
    """Cancel *answer* once *endpoint* has its request; True if it raises `CancelledError` and its connection closes."""

    async def main() -> bool:
        task = asyncio.create_task(answer)
        assert await asyncio.to_thread(endpoint.asked.wait, 30), task
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    return asyncio.run(main()) and endpoint.closed.wait(10)
