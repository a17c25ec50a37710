"""
A local server that speaks OpenAI's chat protocol, with tool calls, from a script.

    with ToolServer(wants("get_weather", city="Oslo"), "It is 21 degrees.") as server:
        ...                                   # point a client at server.address
        assert len(server.requests) == 2
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.serving import InThreads, Silent

Line = str | dict[str, Any] | int
"""What is answered: text, a message, or an HTTP status; the last line is for all requests that follow."""


def wants(*calls: str | tuple[str, Any], text: str | None = None, **arguments: Any) -> dict[str, Any]:
    """Return a message that asks for tools: one with *arguments*, or several as pairs; text for arguments is sent raw."""
    pairs = [(call, arguments) if isinstance(call, str) else call for call in calls]
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": _raw(given)}}
            for n, (name, given) in enumerate(pairs, 1)
        ],
    }


def _raw(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


class ToolServer(InThreads):
    """The server, in a thread of its own; leave the `with` block and it is gone."""

    def __init__(self, *script: Line, finish: str = "", before: Callable[[int], object] = lambda _: None) -> None:
        self.script = script
        self.finish = finish
        self.before = before
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    @property
    def address(self) -> str:
        """The base address for clients."""
        return f"{self.root}/v1"

    @property
    def params(self) -> dict[str, str]:
        """What a target needs to get here."""
        return {"api_base": self.address, "api_key": "sk-test-0123456789abcdef"}

    def told(self, turn: int = -1) -> list[str]:
        """Return the results of tools that the model was told in one request."""
        return [message["content"] for message in self.requests[turn]["messages"] if message["role"] == "tool"]

    def handler(self) -> type[Silent]:
        """Return the class of what serves a request."""
        outer = self

        class Handler(Silent):
            def do_POST(self) -> None:  # noqa: N802 - http.server's name
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send(*outer.answer(body, dict(self.headers)), Connection="close")

        return Handler

    def answer(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        """Keep a request, and return the status and the body of its answer."""
        self.requests.append(body)
        self.headers.append(headers)
        self.before(len(self.requests))
        line = self.script[min(len(self.requests), len(self.script)) - 1]
        if isinstance(line, int):
            return line, json.dumps({"error": {"message": "the server made this up", "code": "error"}}).encode()
        return 200, json.dumps(self._completion(line, body)).encode()

    def _completion(self, line: str | dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": line} if isinstance(line, str) else line
        finish = self.finish or ("tool_calls" if message.get("tool_calls") else "stop")
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body.get("model", ""),
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }
