"""What the tests of adapters share: a judge behind a local server that passes one text, fails one, and rambles on one."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rubric import Judge, Rubric
from tests.servers import Server, nonce_of, prompt_of

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOD, BAD, ODD = "A good reply: Friday.", "A bad reply.", "An odd reply."
POLITE = Rubric("polite").expects("Is polite", id="polite").expects("Names a day", id="day", weight=3).passing_at(0.5)
KEY = "sk-test-0123456789abcdef"


def respond(body: dict[str, Any]) -> str:
    """Pass the good text, fail the bad one, and write prose about the odd one."""
    prompt = prompt_of(body)
    if ODD in prompt:
        return "I would rather talk about the weather."
    verdict = GOOD in prompt or "Is polite" in prompt.rpartition("Criterion")[2]
    nonce = nonce_of(body)
    return json.dumps({"reason": "So it is.", "verdict": verdict, **({"nonce": nonce} if nonce else {})})


@contextmanager
def judging() -> Iterator[Judge]:
    """Yield a judge at a local server, for OpenAI's protocol."""
    with Server(respond=respond) as server:
        base = server.at("ok").openai
        yield Judge("openai/gpt-4o-mini", repairs=0, via="http", params={"api_base": base, "api_key": KEY})
