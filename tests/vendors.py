"""
Vendors whose protocols are not OpenAI's, as small local servers: what each is sent, and what each answers.

    with Answering(lambda request: (200, {}, b"{}")) as server:
        ...                                   # point a client at server.root
        assert server.requests[0].body["format"]
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from attrs import define, field

from tests.servers import Request
from tests.serving import InThreads, Silent

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    Answer = Callable[[Request], tuple[int, dict[str, str], bytes]]

THERE, CACHED, BACK = 2000, 1024, 20
"""Tokens that each vendor says were sent, were found in its cache, and came back."""


@define(eq=False, slots=False)
class Answering(InThreads):
    """A server that answers each request as *answer* says; leave the `with` block and it is gone."""

    answer: Answer
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(factory=list)

    def handler(self) -> type[Silent]:
        """Return the class of what serves a request."""
        outer = self

        class Handler(Silent):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # noqa: N802 - http.server's name
                body = self.rfile.read(int(self.headers["content-length"]))
                request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(body))
                outer.requests.append(request)
                status, headers, content = outer.answer(request)
                self.send(status, content, **headers)

        return Handler


def chat(text: str | None, how: str) -> dict[str, Any]:
    """Return OpenAI's chat completion, which most vendors have taken over."""
    finish = {"cut": "length", "refused": "content_filter"}.get(how, "stop")
    usage = {
        "prompt_tokens": THERE,
        "completion_tokens": BACK,
        "total_tokens": THERE + BACK,
        "prompt_tokens_details": {"cached_tokens": CACHED},
    }
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def groq(text: str, how: str) -> dict[str, Any]:
    """Return a chat completion of Groq's, which LiteLLM does not read without its service tier."""
    return chat(text, how) | {"service_tier": "on_demand"}


def deepseek(text: str, how: str) -> dict[str, Any]:
    """Return a chat completion that says in DeepSeek's words what its cache has served."""
    body = chat(text, how)
    del body["usage"]["prompt_tokens_details"]
    body["usage"] |= {"prompt_cache_hit_tokens": CACHED, "prompt_cache_miss_tokens": THERE - CACHED}
    return body


def anthropic(text: str, how: str) -> dict[str, Any]:
    """Return a message of Anthropic's."""
    stop = {"cut": "max_tokens", "refused": "refusal"}.get(how, "end_turn")
    usage = {
        "input_tokens": THERE - CACHED,
        "cache_read_input_tokens": CACHED,
        "cache_creation_input_tokens": 0,
        "output_tokens": BACK,
    }
    content = [] if how == "refused" else [{"type": "text", "text": text}]
    message = {"id": "1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return message | {"content": content, "stop_reason": stop, "usage": usage}


def gemini(text: str, how: str) -> dict[str, Any]:
    """Return what Gemini generates."""
    finish = {"cut": "MAX_TOKENS", "refused": "SAFETY"}.get(how, "STOP")
    parts = [] if how == "refused" else [{"text": text}]
    usage = {
        "promptTokenCount": THERE,
        "cachedContentTokenCount": CACHED,
        "candidatesTokenCount": BACK,
        "totalTokenCount": THERE + BACK,
    }
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}


def ollama(text: str, how: str) -> dict[str, Any]:
    """Return a message of Ollama's, to either of its calls."""
    done = {"done": True, "done_reason": "length" if how == "cut" else "stop"}
    counts = {"prompt_eval_count": THERE, "eval_count": BACK}
    return {"model": "m", "response": text, "message": {"role": "assistant", "content": text}} | done | counts


def bedrock(text: str, how: str) -> dict[str, Any]:
    """Return what Bedrock's Converse answers."""
    stop = {"cut": "max_tokens", "refused": "guardrail_intervened"}.get(how, "end_turn")
    usage = {
        "inputTokens": THERE - CACHED,
        "cacheReadInputTokens": CACHED,
        "cacheWriteInputTokens": 0,
        "outputTokens": BACK,
        "totalTokens": THERE + BACK,
    }
    message = {"role": "assistant", "content": [{"text": text}]}
    return {"output": {"message": message}, "stopReason": stop, "usage": usage, "metrics": {"latencyMs": 1}}
